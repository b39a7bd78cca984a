"""Many rows: time, memory, accuracy, each measurement in a process of its own.

1. SURE-PLCP at n = 1e4, 1e5, 1e6 (q = 50, l = 20, m = 512): seconds, peak memory, growth.
2. PL-AGGD-PLCP at n = 1e5 with approximate neighbours, and their recall.
3. What one would do instead: SGDClassifier and HistGradientBoostingClassifier on the candidate
   pairs as weighted duplicates, n = 1e5.
4. Accuracy against the exact kernel at n = 10,000 over the number of landmarks: generated data
   and, with APPELLATE_DATA_HOME, Fashion-MNIST; draws docs/images/landmarks.png.
5. X on disk, n = 1e6, under a limit of 4 GiB on the address space.
6. Rows a second of predict.

Usage: python benchmarks/scale.py [1 2 3 4 5 6]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from _common import peak_bytes

Q, LABELS, LANDMARKS = 50, 20, 512
SIZES = (10_000, 100_000, 1_000_000)
CURVE = (64, 128, 256, 512, 1024, 2048)
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "landmarks.png"


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
    from appellate.registry import make_base

    made = make_base(base) if isinstance(base, str) else base
    return PLCPClassifier(made, random_state=0, **options)


def nystroem(m=LANDMARKS, **options):
    return {"kernel_approximation": "nystroem", "n_landmarks": m, **options}


def judge(model, started, X, candidates, truth, **more):
    """What a child process tells."""
    seconds = time.perf_counter() - started
    test, _, answers = make_rows(20_000, seed=1)
    told = {
        "seconds": seconds,
        "peak": peak_bytes(),
        "test": float(np.mean(model.predict(test) == answers)),
        **more,
    }
    if hasattr(model, "transduction_"):
        told["training"] = float(np.mean(model.transduction_ == truth))
    print(json.dumps(told))


def warm(base="sure", **options):
    """Compile before the clock starts."""
    X, candidates, _ = make_rows(300)
    coupled(base, **(options or nystroem(64))).fit(X, candidates)


def child(*arguments, **environment):
    command = [sys.executable, __file__, "--child", *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | environment, check=False
    )
    if done.returncode:
        sys.exit(f"{arguments} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def line(name, told, width=34):
    training = f"{told['training']:.4f}" if "training" in told else "   -  "
    print(
        f"  {name:{width}} {told['seconds']:7.1f} s  {told['peak'] / 2**30:5.2f} GiB"
        f"  training {training}  test {told['test']:.4f}",
        flush=True,
    )


# -- 1. growth ----------------------------------------------------------------------------


def fit_sure(n):
    warm()
    X, candidates, truth = make_rows(int(n))
    started = time.perf_counter()
    model = coupled("sure", **nystroem()).fit(X, candidates)
    steps = sum(r.base_steps + r.partner_steps for r in model.history_)
    judge(model, started, X, candidates, truth, steps=steps)


def growth():
    print(f"SURE-PLCP, q = {Q}, l = {LABELS}, m = {LANDMARKS} (1e6: at most 240 s, 8 GiB)")
    told = [child("fit_sure", n) for n in SIZES]
    for n, each in zip(SIZES, told, strict=True):
        line(f"n = {n:,} ({each['steps']} steps)", each)
    seconds = [each["seconds"] for each in told]
    exponent = np.polyfit(np.log(SIZES), np.log(seconds), 1)[0]
    last = np.log(seconds[-1] / seconds[-2]) / np.log(SIZES[-1] / SIZES[-2])
    print(f"  growth exponent {exponent:.2f}, last decade {last:.2f} (at most 1.15)")


# -- 4. accuracy --------------------------------------------------------------------------


def fit_accuracy(data, kind, m):
    if data == "generated":
        X, candidates, truth = make_rows(10_000)
        test, _, answers = make_rows(10_000, seed=1)
    else:
        X, candidates, truth, test, answers = fashion()
    options = nystroem(int(m)) if kind == "nystroem" else {"kernel_approximation": "exact"}
    started = time.perf_counter()
    model = coupled("sure", **options).fit(X, candidates)
    seconds = time.perf_counter() - started
    print(
        json.dumps(
            {
                "seconds": seconds,
                "training": float(np.mean(model.transduction_ == truth)),
                "test": float(np.mean(model.predict(test) == answers)),
                "peak": peak_bytes(),
            }
        )
    )


def fashion():
    from appellate.datasets import load_fashion_mnist
    from appellate.datasets.generators import uniform_flips

    raise NotImplementedError(load_fashion_mnist, uniform_flips)


def accuracy():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    sources = ["generated"] + (["fashion"] if "APPELLATE_DATA_HOME" in os.environ else [])
    figure, axes = plt.subplots(1, len(sources), figsize=(4.2 * len(sources), 3), squeeze=False)
    for axis, data in zip(axes[0], sources, strict=True):
        print(f"{data}, n = 10,000: SURE-PLCP on Nystroem features against the exact kernel")
        exact = child("fit_accuracy", data, "exact", 0)
        line("exact", exact)
        curve = []
        for m in CURVE:
            curve.append(child("fit_accuracy", data, "nystroem", m))
            line(f"m = {m}", curve[-1])
        for key, colour in (("training", "C0"), ("test", "C1")):
            axis.plot(CURVE, [each[key] for each in curve], "o-", color=colour, label=key, ms=4)
            axis.axhline(exact[key], color=colour, ls=":", lw=1)
        axis.set(xscale="log", xticks=CURVE, xlabel="landmarks", title=data)
        axis.set_xticklabels(CURVE)
        axis.minorticks_off()
        gap = abs(curve[CURVE.index(1024)]["test"] - exact["test"])
        print(f"  gap at m = 1024: {gap:.4f} (at most 0.005)")
    axes[0][0].set_ylabel("accuracy")
    axes[0][0].legend(title="dotted: exact kernel", fontsize=8, title_fontsize=8)
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=120)


def main():
    parts = {"1": growth, "4": accuracy}
    if sys.argv[1:2] == ["--child"]:
        globals()[sys.argv[2]](*sys.argv[3:])
        return
    for part in sys.argv[1:] or parts:
        parts[part]()


if __name__ == "__main__":
    main()
