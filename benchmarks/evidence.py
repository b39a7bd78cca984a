"""The jury against the paper's method: accuracy, calibration, ambiguity found, cost.

figures      Lost, MSRCv2, FG-NET on ten splits and LabelMe (union of the answers), with
             APPELLATE_DATA_HOME; p by paired t-test and, in brackets, Nadeau and Bengio's.
never-worse  digits, Fashion-MNIST and generated rows under four kinds of candidate sets at three
             levels: `auto` against base, PLCP and the light jury at fixed tau.
cost         5,000 generated rows: seconds as a ratio to one PLCP(PL-AGGD) fit.
large        the light jury at n = 1e4, 1e5, 1e6: seconds, memory, growth.

Usage: python benchmarks/evidence.py [figures|never-worse|cost|large] [splits] [rows] [store]

`rows` is the most that never-worse takes of a data set, 2000 by default; it keeps its runs in the
file `store` (never-worse.jsonl) and goes on from there.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from _common import make_data, peak_bytes
from scale import make_rows
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from appellate import AGGDClassifier, GaussianKernel, JuryClassifier, PLCPClassifier
from appellate.datasets import (
    load_fashion_mnist,
    load_labelme,
    make_long_tailed,
    make_partial_labels,
)
from appellate.experiments.controls import RidgeControl
from appellate.experiments.problems import load_problem
from appellate.experiments.protocol import split_rows
from appellate.metrics import expected_calibration_error, paired_comparison

SPLITS = 10
METHODS = {
    "ridge on equal shares": lambda seed: RidgeControl(),
    "PL-AGGD": lambda seed: AGGDClassifier(),
    "PLCP(PL-AGGD)": lambda seed: PLCPClassifier(AGGDClassifier()),
    "PLCP(PL-AGGD), auto": lambda seed: PLCPClassifier(
        AGGDClassifier(), ambiguity="auto", random_state=seed
    ),
    "light jury": lambda seed: JuryClassifier("kernel", random_state=seed),
    "full jury": lambda seed: JuryClassifier("auto", random_state=seed),
}
SIZES = (10_000, 100_000, 1_000_000)


def table(head, rows):
    """Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def judge(model, test, truth_test, truth_train):
    """All that is said of one fit."""
    P = model.predict_proba(test)
    errors = np.abs(model.classes_[P.argmax(axis=1)] - truth_test)
    contested = model.candidates_.sum(axis=1) > 1
    return {
        "test": np.mean(errors == 0),
        "within 3": np.mean(errors <= 3),
        "transductive": np.mean(model.transduction_ == truth_train),
        "ECE test": expected_calibration_error(truth_test, P),
        "ECE contested": expected_calibration_error(
            truth_train[contested], model.confidence_[contested]
        ),
        "tau": getattr(model, "ambiguity_", None) or 0.0,  # None: as printed
    }


def measure(fits):
    """Scores of every method, a list over the fits of (X, candidates, truth, test, truth)."""
    found = {name: [] for name in METHODS}
    for number, (X, candidates, truth, test, truth_test) in enumerate(fits):
        for name, make in METHODS.items():
            if not number:
                make(0).fit(X[:100], candidates[:100])  # compiled before the clock starts
            started = time.process_time()
            model = make(number).fit(X, candidates)
            seconds = time.process_time() - started
            found[name].append(judge(model, test, truth_test, truth) | {"seconds": seconds})
    return {
        name: {key: np.array([row[key] for row in rows]) for key in rows[0]}
        for name, rows in found.items()
    }


def fits(name, splits):
    """The splits of a data set of the paper, or LabelMe's own."""
    if name == "labelme":
        data = load_labelme()
        centre, scale = data.X.mean(axis=0), data.X.std(axis=0) + 1e-12
        X, test = ((each - centre) / scale for each in (data.X, data.X_test))
        yield X, data.candidates, data.y_true, test, data.y_test
        return
    problem = load_problem(name)
    X = problem.X
    if name == "lost":  # as in the authors' experiments, over the whole set
        X = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    for seed in range(splits):
        train, test = split_rows(len(X), seed)
        yield (
            X[train],
            problem.candidates[train],
            problem.truth[train],
            X[test],
            problem.truth[test],
        )


def figures(splits):
    """Accuracy, calibration, tau, cost."""
    for name in ("lost", "msrcv2", "fgnet", "labelme"):
        found = measure(fits(name, splits))
        first = found["PLCP(PL-AGGD)"]
        keys = ["test", "within 3"] if name == "fgnet" else ["test"]
        keys += ["transductive", "ECE test", "ECE contested", "tau"]
        rows = []
        for method, scores in found.items():
            cells = [method, *(f"{scores[key].mean():.3f}" for key in keys)]
            cells.append(f"{scores['seconds'].sum() / first['seconds'].sum():.1f}")
            if len(first["test"]) > 1 and method != "PLCP(PL-AGGD)":
                compared = paired_comparison(scores["test"], first["test"])
                cells.append(
                    f"{compared.difference:+.3f}, {compared.t_pvalue:.0e} "
                    f"({compared.corrected_pvalue:.0e})"
                )
            else:
                cells.append("")
            rows.append(cells)
        print(f"\n{name}\n")
        print(table(["method", *keys, "cost", "against PLCP, p"], rows), flush=True)


def cost():
    """Seconds at 5,000 generated rows."""
    X, candidates = make_data(5000, 20)
    seconds = {}
    for name, make in METHODS.items():
        make(0).fit(X[:100], candidates[:100])
        started = time.process_time()
        make(0).fit(X, candidates)
        seconds[name] = time.process_time() - started
    first = seconds["PLCP(PL-AGGD)"]
    rows = [[name, f"{s:.1f}", f"{s / first:.1f}"] for name, s in seconds.items()]
    print(table(["5,000 rows", "seconds", "cost"], rows))


LEVELS = {
    "uniform": ("flip_probability", (0.1, 0.3, 0.6)),
    "instance_dependent": ("flip_probability", (0.1, 0.3, 0.5)),
    "pairwise": ("flip_probability", (0.3, 0.6, 0.9)),
    "set_first": ("bag_size", (2, 4, 6)),
}
RIVALS = {
    "PL-AGGD": METHODS["PL-AGGD"],
    "PLCP": METHODS["PLCP(PL-AGGD)"],
    "tau = 0": lambda seed: JuryClassifier("kernel", ambiguity=0.0, random_state=seed),
    "tau = .5": lambda seed: JuryClassifier("kernel", ambiguity=0.5, random_state=seed),
    "tau = 1": lambda seed: JuryClassifier("kernel", ambiguity=1.0, random_state=seed),
}
OURS = {"light auto": METHODS["light jury"], "full auto": METHODS["full jury"]}


def rows_of(name, most):
    """Features and truth; generated classes have a long tail, others are balanced."""
    rng = np.random.RandomState(1000)
    if name == "generated":
        y = rng.choice(8, size=most, p=0.7 ** np.arange(8) / np.sum(0.7 ** np.arange(8)))
        return rng.normal(size=(8, 10))[y] + rng.normal(size=(most, 10)), y
    load = load_digits if name == "digits" else load_fashion_mnist
    X, y = load(return_X_y=True)
    chosen = rng.permutation(len(X))[:most]
    return X[chosen].reshape(len(chosen), -1).astype(float), y[chosen]


def cells():
    """Every data set, kind of candidate sets and level."""
    for name in ("digits", "Fashion-MNIST", "generated"):
        for strategy, (_, levels) in LEVELS.items():
            for level in levels:
                yield name, strategy, level


def run_cell(name, strategy, level, seed, most):
    """Test accuracy of every method on one draw of the sets and one split, and auto's tau."""
    X, y = rows_of(name, most)
    if strategy == "set_first" and name != "generated":
        chosen = make_long_tailed(y, imbalance=10, random_state=0)
        X, y = X[chosen], y[chosen]
    options = {LEVELS[strategy][0]: level, "random_state": seed}
    if strategy == "instance_dependent":
        options["X"] = X
    sets = make_partial_labels(y, strategy=strategy, **options)
    train, test = split_rows(len(X), seed)
    scores = {}
    for method, make in (RIVALS | OURS).items():
        model = make(seed).fit(X[train], sets[train])
        scores[method] = float(np.mean(model.predict(X[test]) == y[test]))
    return scores | {"tau": float(model.ambiguity_)}


def never_worse(splits, most, store):
    """Auto against the best rival of each cell; one line of the store a run, so it goes on."""
    done = {}
    if store.exists():
        for line in store.read_text().splitlines():
            *key, scores = json.loads(line)
            done[tuple(key)] = scores
    for seed in range(splits):
        for cell in cells():
            if (*cell, seed) in done:
                continue
            done[*cell, seed] = run_cell(*cell, seed, most)
            with store.open("a") as file:
                file.write(json.dumps([*cell, seed, done[*cell, seed]]) + "\n")
    rows = []
    for cell in cells():
        runs = [done[*cell, seed] for seed in range(splits)]
        scores = {key: np.array([run[key] for run in runs]) for key in runs[0]}
        best = max(RIVALS, key=lambda method: scores[method].mean())
        told = [*cell[:2], f"{cell[2]:g}", *(f"{each.mean():.3f}" for each in scores.values())]
        for method in OURS:
            compared = paired_comparison(scores[method], scores[best])
            text = f"{compared.difference:+.3f}"
            if compared.difference < 0:
                text += f" (p {compared.t_pvalue:.2g}, {compared.corrected_pvalue:.2g})"
                text += " *" * (compared.t_pvalue < 0.05 / len(list(cells())))
            told.append(text)
        rows.append(told)
    print(
        f"{splits} draws a cell; p by paired t-test where auto is below, then Nadeau and "
        f"Bengio's; * below .05 / {len(rows)} cells.\n"
    )
    head = ["data", "sets", "level", *RIVALS, *OURS, "tau", "light - best", "full - best"]
    print(table(head, rows))


def large():
    """Every size in a process of its own."""
    if "--child" in sys.argv:
        n = int(sys.argv[-1])
        X, candidates, truth = make_rows(n)
        kernel = GaussianKernel(approximation="nystroem", n_landmarks=512)
        options = {"kernel": kernel, "random_state": 0}
        JuryClassifier("kernel", **options).fit(X[:300], candidates[:300])
        started, cpu = time.perf_counter(), time.process_time()
        model = JuryClassifier("kernel", **options).fit(X, candidates)
        told = [time.perf_counter() - started, time.process_time() - cpu, peak_bytes() / 1e9]
        test, _, answers = make_rows(20_000, seed=1)
        told += [np.mean(model.predict(test) == answers), np.mean(model.transduction_ == truth)]
        print(json.dumps([float(each) for each in told]))
        return
    rows, before = [], None
    for n in SIZES:
        command = [sys.executable, __file__, "large", "--child", str(n)]
        told = json.loads(subprocess.check_output(command, text=True).splitlines()[-1])
        growth = "" if before is None else f"{np.log10(told[1] / before):.2f}"
        before = told[1]
        cells = [f"{told[0]:.0f}", f"{told[1]:.0f}", f"{told[2]:.1f}", growth]
        rows.append([f"{n:,}", *cells, f"{told[3]:.3f}", f"{told[4]:.3f}"])
    head = ["rows", "seconds", "CPU seconds", "peak GB", "exponent", "test", "transductive"]
    print(table(head, rows))


def main():
    arguments = sys.argv[1:]
    what = arguments[0] if arguments else "figures"
    splits = int(arguments[1]) if arguments[1:] and arguments[1].isdigit() else SPLITS
    if what == "large":
        large()
        return
    most = int(arguments[2]) if len(arguments) > 2 else 2000
    store = Path(arguments[3] if len(arguments) > 3 else "never-worse.jsonl")
    with threadpool_limits(limits=1):
        if what == "never-worse":
            never_worse(splits, most, store)
        elif what == "cost":
            cost()
        else:
            figures(splits)


if __name__ == "__main__":
    main()
