"""The jury against the paper's method: cost; accuracy, calibration and ambiguity found.

cost         5,000 generated rows: processor time as a ratio to one PLCP(PL-AGGD) fit
figures      Lost, MSRCv2, FG-NET on ten splits and LabelMe (union of the answers), with
             APPELLATE_DATA_HOME; p by paired t-test and, in brackets, Nadeau and Bengio's: an hour
scenes       Lost and MSRCv2 by halves of the *sets*: none is in training and test rows
never-worse  digits, Fashion-MNIST and generated rows under four kinds of candidate sets at three
             levels, and letters: `auto` against base, PLCP and the light jury at fixed tau. It
             takes hours, keeps its runs in a file and goes on from there. Draws from 100 on are
             for choosing constants (--first 100), draws 0 to 9 for the figures
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from _common import ROOT, add_line, make_data, make_parser, read_lines, table
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from appellate import AGGDClassifier, JuryClassifier, PLCPClassifier
from appellate.datasets import (
    get_data_home,
    load_fashion_mnist,
    load_labelme,
    make_long_tailed,
    make_partial_labels,
)
from appellate.experiments.controls import RidgeControl
from appellate.experiments.problems import load_problem
from appellate.experiments.protocol import split_rows
from appellate.metrics import expected_calibration_error, paired_comparison

METHODS = {
    "ridge on equal shares": lambda seed: RidgeControl(),
    "PL-AGGD": lambda seed: AGGDClassifier(),
    "PLCP(PL-AGGD)": lambda seed: PLCPClassifier(AGGDClassifier()),
    "PLCP(PL-AGGD), jury": lambda seed: PLCPClassifier(
        AGGDClassifier(), partner="jury", random_state=seed
    ),
    "light jury": lambda seed: JuryClassifier("kernel", random_state=seed),
    "full jury": lambda seed: JuryClassifier("auto", random_state=seed),
}


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


def split_sets(candidates, seed):
    """Training and test rows that share no set: half of the sets each."""
    codes = np.unique(candidates, axis=0, return_inverse=True)[1].ravel()
    order = np.random.RandomState(seed).permutation(codes.max() + 1)
    mask = np.isin(codes, order[: len(order) // 2])
    return np.flatnonzero(mask), np.flatnonzero(~mask)


def fits(name, splits, *, scenes=False):
    """The splits of a data set of the paper, or LabelMe's own."""
    if name == "labelme":
        data = load_labelme()
        centre, scale = data.X.mean(axis=0), data.X.std(axis=0) + 1e-12
        X, test = ((each - centre) / scale for each in (data.X, data.X_test))
        yield X, data.candidates, data.y_true, test, data.y_test
        return
    problem = load_problem(name)
    X, sets, truth = problem.X, problem.candidates, problem.truth
    for seed in range(splits):
        train, test = split_sets(sets, seed) if scenes else split_rows(len(X), seed)
        yield X[train], sets[train], truth[train], X[test], truth[test]


def figures(names, splits, *, scenes=False):
    """Accuracy, calibration, tau, cost."""
    for name in names:
        found = measure(fits(name, splits, scenes=scenes))
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
    """Processor time at 5,000 generated rows."""
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
    yield "letters", "words", 0.0


def draw_letters(seed, n=1200):
    """Letters of words: training rows and as many test rows, no word in both; standardised."""
    data = np.load(get_data_home() / "letters" / "letters.npz")
    order = np.random.RandomState(seed).permutation(data["group"].max() + 1)[data["group"]]
    rows = np.argsort(order, kind="stable")
    train, test = rows[:n], rows[n : 2 * n]
    X = data["X"].astype(float)
    X = (X - X[train].mean(axis=0)) / (X[train].std(axis=0) + 1e-12)
    return X[train], data["candidates"][train], X[test], data["truth"][test]


def draw_cell(name, strategy, level, seed, most):
    """Training rows and sets, test rows and true labels of one draw of a cell."""
    if name == "letters":
        return draw_letters(seed)
    X, y = rows_of(name, most)
    if strategy == "set_first" and name != "generated":
        chosen = make_long_tailed(y, imbalance=10, random_state=0)
        X, y = X[chosen], y[chosen]
    options = {LEVELS[strategy][0]: level, "random_state": seed}
    if strategy == "instance_dependent":
        options["X"] = X
    sets = make_partial_labels(y, strategy=strategy, **options)
    train, test = split_rows(len(X), seed)
    return X[train], sets[train], X[test], y[test]


def run_cell(cell, seed, most, ours):
    """Test accuracy of every method on one draw of a cell, and what auto found."""
    X, sets, new, truth = draw_cell(*cell, seed, most)
    scores = {}
    for method, make in (RIVALS | ours).items():
        model = make(seed).fit(X, sets)
        scores[method] = float(np.mean(model.predict(new) == truth))
    found = model.resemblance_
    return scores | {
        "tau": float(model.ambiguity_),
        "resemblance": np.nan if found is None else found,
        "order": float(model.order_width_),
    }


def never_worse(draws, most, store, ours):
    """Auto against the best rival of each cell; one line of the store a run, so it goes on."""
    done = {tuple(key): scores for *key, scores in read_lines(store)}
    for seed in draws:
        for cell in cells():
            if (*cell, seed) in done:
                continue
            done[*cell, seed] = run_cell(cell, seed, most, ours)
            add_line(store, [*cell, seed, done[*cell, seed]])
    rows = []
    for cell in cells():
        runs = [done[*cell, seed] for seed in draws]
        scores = {key: np.array([run[key] for run in runs]) for key in runs[0]}
        best = max(RIVALS, key=lambda method: scores[method].mean())
        told = [*cell[:2], f"{cell[2]:g}", *(f"{each.mean():.3f}" for each in scores.values())]
        for method in ours:
            compared = paired_comparison(scores[method], scores[best])
            text = f"{compared.difference:+.3f}"
            if compared.difference < 0:
                text += f" (p {compared.t_pvalue:.2g}, {compared.corrected_pvalue:.2g})"
                text += " *" * (compared.t_pvalue < 0.05 / len(list(cells())))
            told.append(text)
        rows.append(told)
    print(
        f"{len(draws)} draws a cell; p by paired t-test where auto is below, then Nadeau and "
        f"Bengio's; * below .05 / {len(rows)} cells.\n"
    )
    gaps = [f"{method} - best" for method in ours]
    head = ["data", "sets", "level", *RIVALS, *ours, "tau", "resemblance", "order", *gaps]
    print(table(head, rows))


def main():
    parser = make_parser(__doc__)
    words = ("cost", "figures", "scenes", "never-worse")
    parser.add_argument("part", nargs="?", choices=words, default="cost", help="[default: cost]")
    parser.add_argument("--splits", type=int, default=10, help="or draws  [default: 10]")
    most = "largest number of rows in never-worse  [default: 2000]"
    parser.add_argument("--first", type=int, default=0, help="first draw  [default: 0]")
    parser.add_argument("--light", action="store_true", help="without the full jury")
    parser.add_argument("--rows", type=int, default=2000, help=most)
    store = ROOT / "build" / "never-worse.jsonl"
    parser.add_argument("--store", type=Path, default=store, help="of never-worse")
    given = parser.parse_args()
    with threadpool_limits(limits=1):
        if given.part == "never-worse":
            draws = range(given.first, given.first + given.splits)
            ours = {k: v for k, v in OURS.items() if not given.light or k == "light auto"}
            never_worse(draws, given.rows, given.store, ours)
        elif given.part == "figures":
            figures(("lost", "msrcv2", "fgnet", "labelme"), given.splits)
        elif given.part == "scenes":
            figures(("lost", "msrcv2"), given.splits, scenes=True)
        else:
            cost()


if __name__ == "__main__":
    main()
