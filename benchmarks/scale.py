"""Many rows: time, memory, accuracy, each measurement in a process of its own.

growth      SURE-PLCP at n = 1e4, 1e5 (q = 50, l = 20, m = 512): seconds, peak memory, growth
million     the same up to n = 1e6
rivals      what one would do instead: SGDClassifier and HistGradientBoostingClassifier on the
            candidate pairs as weighted duplicates, n = 1e5
prediction  rows a second of predict
neighbors   PL-AGGD-PLCP at n = 1e5 with a search for neighbours that is named, and its recall
landmarks   accuracy against the exact kernel at n = 10,000 over the number of landmarks: generated
            data and, with APPELLATE_DATA_HOME, Fashion-MNIST; the best that rank 1024 can do; it
            draws docs/images/landmarks.png
images      all 60,000 training images of Fashion-MNIST over the number of landmarks
disk        X on disk, n = 1e6, under a limit of 4 GiB on the address space
jury        the light jury at n = 1e4, 1e5, 1e6
wide        check, rectify and predict on 2,000 and 10,000 columns of numbers, 20 rows
draw        draw what `landmarks` measured last
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from _common import ROOT, apart, peak_bytes, run_parts

Q, LABELS, LANDMARKS = 50, 20, 512
SIZES = (10_000, 100_000, 1_000_000)
MANY = 100_000
CURVE = (64, 128, 256, 512, 1024, 2048, 4096)
SCORES = ("training", "test")
PICTURE = ROOT / "docs" / "images" / "landmarks.png"
MEASURED = PICTURE.with_suffix(".json")


def make_rows(n, seed=0):
    """Overlapping Gaussian classes; 2.5 candidates a row on average."""
    centres = np.random.default_rng(99).normal(size=(LABELS, Q))
    rng = np.random.default_rng(seed)
    truth = rng.integers(LABELS, size=n)
    X = np.empty((n, Q), dtype=np.float32)
    candidates = np.zeros((n, LABELS), dtype=bool)
    for start in range(0, n, 100_000):
        rows = slice(start, min(start + 100_000, n))
        size = rows.stop - start
        X[rows] = centres[truth[rows]] + 2.5 * rng.normal(size=(size, Q))
        candidates[rows] = rng.random((size, LABELS)) < 1.5 / (LABELS - 1)
    candidates[np.arange(n), truth] = True
    return X, candidates, truth


def coupled(base, **options):
    from appellate import PLCPClassifier
    from appellate.methods import make_base

    made = make_base(base) if isinstance(base, str) else base
    if "kernel" in options and hasattr(made, "kernel"):
        made.set_params(kernel=options["kernel"])
    return PLCPClassifier(made, random_state=0, **options)


def nystroem(m=LANDMARKS, **options):
    from appellate import GaussianKernel

    return {"kernel": GaussianKernel(approximation="nystroem", n_landmarks=m, **options)}


def judge(model, started, cpu, truth, **more):
    """What is told of a fit."""
    told = {
        "seconds": time.perf_counter() - started,
        "cpu": time.process_time() - cpu,
        "peak": peak_bytes(),
    }
    test, _, answers = make_rows(20_000, seed=1)
    told["test"] = float(np.mean(model.predict(test) == answers))
    if hasattr(model, "transduction_"):
        told["training"] = float(np.mean(model.transduction_ == truth))
    return told | more


def warm(base="sure", **options):
    """Compile before the clock starts."""
    X, candidates, _ = make_rows(300)
    coupled(base, **(options or nystroem(64))).fit(X, candidates)


def line(name, told, width=34):
    training = f"{told['training']:.4f}" if "training" in told else "   -  "
    print(
        f"  {name:{width}} {told['seconds']:7.1f} s ({told['cpu']:7.1f} s of processor)"
        f"  {told['peak'] / 2**30:5.2f} GiB"
        f"  training {training}  test {told['test']:.4f}",
        flush=True,
    )


# -- growth ----------------------------------------------------------------------------


def fit_sure(n):
    warm()
    X, candidates, truth = make_rows(n)
    started, cpu = time.perf_counter(), time.process_time()
    model = coupled("sure", **nystroem()).fit(X, candidates)
    steps = sum(r.base_steps + r.partner_steps for r in model.history_)
    return judge(model, started, cpu, truth, steps=steps)


def growth(fit, sizes, title):
    print(title)
    told = [apart(fit, n) for n in sizes]
    for n, each in zip(sizes, told, strict=True):
        line(f"n = {n:,}" + (f" ({each['steps']} steps)" if "steps" in each else ""), each)
    for key, name in (("seconds", "wall clock"), ("cpu", "processor time")):
        exponent = np.polyfit(np.log(sizes), np.log([each[key] for each in told]), 1)[0]
        print(f"  growth exponent {exponent:.2f} of the {name} (at most 1.15)")


def growth_of_sure(sizes):
    limit = " (1e6: at most 240 s, 8 GiB)" if len(sizes) > 2 else ""
    growth(fit_sure, sizes, f"SURE-PLCP, q = {Q}, l = {LABELS}, m = {LANDMARKS}{limit}")


def fit_jury(n):
    from appellate import JuryClassifier

    make = partial(JuryClassifier, "kernel", random_state=0, **nystroem())
    make().fit(*make_rows(300)[:2])
    X, candidates, truth = make_rows(n)
    started, cpu = time.perf_counter(), time.process_time()
    return judge(make().fit(X, candidates), started, cpu, truth)


# -- neighbours ------------------------------------------------------------------------


def fit_aggd(n):
    import logging

    from sklearn.neighbors import NearestNeighbors

    from appellate.methods.aggd import AGGDClassifier

    said = []
    logger = logging.getLogger("appellate")
    logger.setLevel(logging.INFO)
    logger.addHandler(handler := logging.Handler())
    handler.emit = lambda record: said.append(record.getMessage())
    base = AGGDClassifier(neighbors=NearestNeighbors(algorithm="brute", n_jobs=-1))
    warm(AGGDClassifier())
    said.clear()
    X, candidates, truth = make_rows(n)
    started, cpu = time.perf_counter(), time.process_time()
    model = coupled(base, **nystroem()).fit(X, candidates)
    recall = next(line for line in said if "nearest neighbours" in line)
    return judge(model, started, cpu, truth, recall=recall)


def neighbors():
    print(f"PL-AGGD-PLCP, n = {MANY:,}, q = {Q}, l = {LABELS}, m = {LANDMARKS}, brute search")
    told = apart(fit_aggd, MANY)
    line(f"n = {MANY:,}", told)
    print(f"  {told['recall']}")


# -- what one would do instead ---------------------------------------------------------


def fit_pairs(name, n):
    """Every row once for each candidate, with the weight 1 / candidates."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import SGDClassifier

    X, candidates, truth = make_rows(n)
    started, cpu = time.perf_counter(), time.process_time()
    rows, labels = np.nonzero(candidates)
    weights = 1 / candidates.sum(axis=1)[rows]
    if name == "sgd":
        model = SGDClassifier(loss="log_loss", random_state=0)
    else:
        model = HistGradientBoostingClassifier(random_state=0)
    model.fit(X[rows], labels, sample_weight=weights)
    scores = np.where(candidates, model.predict_proba(X), -1)
    right = float(np.mean(scores.argmax(axis=1) == truth))
    return judge(model, started, cpu, truth, training=right)


def rivals():
    print(f"n = {MANY:,}, q = {Q}, l = {LABELS}: candidate pairs as weighted duplicates")
    ours = apart(fit_sure, MANY)
    line("SURE-PLCP, m = 512", ours)
    for name, title in (
        ("sgd", "SGDClassifier (logistic)"),
        ("trees", "HistGradientBoostingClassifier"),
    ):
        theirs = apart(fit_pairs, name, MANY)
        line(title, theirs)
        ratios = (theirs[key] / ours[key] for key in ("cpu", "peak"))
        print("  theirs / ours: processor time {:.1f}, memory {:.1f}".format(*ratios), flush=True)


# -- accuracy --------------------------------------------------------------------------


def fit_accuracy(data, kind, m, n=10_000):
    from appellate import GaussianKernel, SUREClassifier

    if data == "generated":
        X, candidates, truth = make_rows(10_000)
        test, _, answers = make_rows(10_000, seed=1)
    else:
        X, candidates, truth, test, answers = fashion(n)
    base, options = "sure", {"kernel": GaussianKernel(approximation="exact")}
    if kind == "nystroem":
        options = nystroem(m)
    elif kind == "best":
        X, test = best_features(X, test, m)
        base, options = SUREClassifier(kernel="linear"), {"kernel": "linear"}
    started, cpu = time.perf_counter(), time.process_time()
    model = coupled(base, **options).fit(X, candidates)
    return {
        "seconds": time.perf_counter() - started,
        "cpu": time.process_time() - cpu,
        "training": float(np.mean(model.transduction_ == truth)),
        "test": float(np.mean(model.predict(test) == answers)),
        "peak": peak_bytes(),
    }


def best_features(X, new, m):
    """Features of the best approximation of rank m to the kernel: its leading eigenvectors.

    No m landmarks come closer to the kernel, in any unitarily invariant norm.
    """
    from appellate.numerics.kernels import Gaussian, squared_distances

    squared = squared_distances(X)
    kernel = Gaussian(Gaussian(1.0).mean_distance(squared))
    gram = kernel.from_distances(squared)
    basis = np.random.default_rng(0).normal(size=(len(X), m + 200)).astype(np.float32)
    for _ in range(5):
        basis = np.linalg.qr(gram @ basis)[0]
    values, vectors = np.linalg.eigh(basis.T @ (gram @ basis))
    values, vectors = values[-m:], (basis @ vectors)[:, -m:]
    return vectors * np.sqrt(values), kernel(new, X) @ vectors / np.sqrt(values)


def fashion(n=10_000):
    """Fashion-MNIST pixels, every false label a candidate with probability 0.3."""
    from appellate.datasets import load_fashion_mnist, make_partial_labels

    data, test = load_fashion_mnist(), load_fashion_mnist(subset="test")
    rows = np.random.default_rng(0).permutation(len(data.X))[:n]
    truth = data.y_true[rows]
    candidates = make_partial_labels(truth, flip_probability=0.3, random_state=0)
    X, new = (part.astype(np.float32) / 255 for part in (data.X[rows], test.X))
    return X, candidates, truth, new, test.y_true


def accuracy():
    sources = ["generated"] + (["fashion"] if "APPELLATE_DATA_HOME" in os.environ else [])
    for data in sources:
        print(f"{data}, n = 10,000: SURE-PLCP on Nystroem features against the exact kernel")
        exact = apart(fit_accuracy, data, "exact", 0)
        line("exact", exact)
        curve = {}
        for m in CURVE:
            curve[m] = apart(fit_accuracy, data, "nystroem", m)
            line(f"m = {m}", curve[m])
        best = apart(fit_accuracy, data, "best", 1024)
        line("best approximation of rank 1024", best)
        known = json.loads(MEASURED.read_text()) if MEASURED.exists() else {}
        known[data] = {"exact": exact, "best of rank 1024": best, "nystroem": curve}
        MEASURED.write_text(json.dumps(known, indent=1) + "\n")
        lost = ", ".join(f"{exact[key] - curve[1024][key]:+.4f} {key}" for key in SCORES)
        print(f"  lost at m = 1024: {lost} (at most 0.005)")
    draw()


def all_images():
    if "APPELLATE_DATA_HOME" not in os.environ:
        print("Fashion-MNIST is left out: APPELLATE_DATA_HOME is not set")
        return
    from appellate.numerics.memory import default_landmarks

    print("Fashion-MNIST, n = 60,000: SURE-PLCP on Nystroem features")
    for m in (1024, 2048, default_landmarks(60_000), 4096):
        line(f"m = {m}", apart(fit_accuracy, "fashion", "nystroem", m, 60_000))


def draw():
    """Draw what was measured last."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    known = json.loads(MEASURED.read_text())
    figure, axes = plt.subplots(1, len(known), figsize=(4.2 * len(known), 3), squeeze=False)
    for axis, (data, told) in zip(axes[0], known.items(), strict=True):
        sizes = sorted(map(int, told["nystroem"]))
        for key, colour in zip(SCORES, ("C0", "C1"), strict=True):
            heights = [told["nystroem"][str(m)][key] for m in sizes]
            axis.plot(sizes, heights, "o-", color=colour, label=key, ms=4)
            axis.axhline(told["exact"][key], color=colour, ls=":", lw=1)
            axis.plot(1024, told["best of rank 1024"][key], "*", color=colour, ms=9)
        axis.set(xscale="log", xlabel="landmarks", title=data)
        axis.set_xticks(sizes, sizes)
        axis.minorticks_off()
    axes[0][0].set_ylabel("accuracy")
    axes[0][0].legend(
        title="dotted: exact kernel\nstar: best of rank 1024", fontsize=8, title_fontsize=8
    )
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=120)


# -- rows on disk, and prediction -------------------------------------------------


def on_disk():
    print("n = 1,000,000, m = 256: X and features on disk, 4 GiB of address space")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.out_of_core_script", "1000000", "256", "4", folder]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    told = json.loads(done.stdout)
    line("fit", told)
    print(f"  predict: {1e6 / told['predict_seconds']:,.0f} rows a second")


def prediction():
    warm()
    X, candidates, _ = make_rows(20_000)
    new = make_rows(200_000, seed=2)[0]
    print("rows a second of predict, fitted on 20,000 rows")
    for m in (256, 512, 1024):
        model = coupled("sure", **nystroem(m), max_rounds=1).fit(X, candidates)
        before, started = peak_bytes(), time.perf_counter()
        model.predict(new)
        seconds = time.perf_counter() - started
        grown = (peak_bytes() - before) / 2**20
        print(f"  m = {m:4}: {len(new) / seconds:10,.0f}, {grown:.0f} MiB more memory")


def write_wide(path, columns, rows=20):
    """Write rows of three classes; every third has a second candidate."""
    rng, names = np.random.RandomState(0), ("cat", "dog", "cow")
    truth = rng.randint(3, size=rows)
    X = rng.normal(size=(rows, columns)) + truth[:, np.newaxis]
    lines = [",".join(["id", "names", *(f"x{j}" for j in range(columns))])]
    for i in range(rows):
        sets = {names[truth[i]], names[(truth[i] + (i % 3 == 0)) % 3]}
        lines.append(",".join([f"r{i}", "|".join(sorted(sets)), *(f"{v:.4f}" for v in X[i])]))
    path.write_text("\n".join(lines) + "\n")


def run_wide():
    print("\nwide: CPU seconds of commands, start of Python included, on 20 rows")
    for columns in (2000, 10_000):
        with tempfile.TemporaryDirectory() as folder:
            data, out = Path(folder, "t.csv"), Path(folder, "out")
            write_wide(data, columns)
            named = ["--candidates", "names", "--id", "id", "--out", str(out)]
            new = ["--out", str(Path(folder, "new.csv"))]
            for command in (
                ["check", data],
                ["rectify", data, *named],
                ["predict", out, data, *new],
            ):
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                call = [sys.executable, "-m", "appellate", *map(str, command)]
                subprocess.run(call, check=True, capture_output=True)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                print(f"{columns:>8} columns {command[0]:8} {spent:6.1f}")


PARTS = {
    "growth": lambda: growth_of_sure(SIZES[:2]),
    "million": lambda: growth_of_sure(SIZES),
    "rivals": rivals,
    "prediction": prediction,
    "neighbors": neighbors,
    "landmarks": accuracy,
    "images": all_images,
    "disk": on_disk,
    "jury": lambda: growth(fit_jury, SIZES, f"the light jury, m = {LANDMARKS}"),
    "wide": run_wide,
    "draw": draw,
}

if __name__ == "__main__":
    run_parts(__doc__, PARTS, ["growth", "rivals", "prediction"])
