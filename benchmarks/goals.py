"""Where users wait: ratios of CPU time within one run, next to the goals.

start       saving a model / importing pandas; imports / the whole of a run of 250 rows; import
            of torch, dask and skrub by such a run
solvers     the light jury and SURE-PLCP at 5,000 rows / kernel matrix + Cholesky + inverse
threads     fits with as many BLAS threads as cores; as they are / the faster of all and one
neighbours  neighbours for the review page at 100,000 rows / the fit of jury and testimony, and
            their recall, with features that depend on six factors and with independent ones
memory      peak of the jury above that of the process before / what it tells the budget
reading     a CSV file of 100,000 rows: pyarrow / the careful reader; guessing the roles / reading
many        rectify on Parquet of a million rows, in one process and on two local Dask workers,
            and testimony with a million answers without features: CPU seconds and peak (not in
            make bench: it takes minutes); half: the same with 500,000, tenth: with 100,000
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from _common import apart, peak_bytes, run_parts

_IMPORTS = """
import sys, time
start = time.process_time()
{body}
print(time.process_time() - start, *{{"torch", "dask", "skrub"}} & sys.modules.keys())
"""
_RUN = """
from appellate import rectify
rectify({table!r}, candidates="names", random_state=0).save({folder!r})
"""
_MODULES = "from appellate import rectify; import appellate.io as io; io._import_skops()"
_SAVE = """
from appellate import rectify
from appellate.io import save_model
run = rectify({table!r}, candidates="names", random_state=0)
start = time.process_time()
save_model(run.model, {folder!r})
"""


def make_table(n, q=20, labels=5, factors=None, seed=0):
    """Rows around one centre per label, and candidate sets of one or two names."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(labels, size=n)
    noise = rng.normal(size=(n, factors or q))
    if factors:
        noise = noise @ rng.normal(size=(factors, q)) + 0.1 * rng.normal(size=(n, q))
    X = 3 * rng.normal(size=(labels, q))[truth] / np.sqrt(q / 5) + noise
    candidates = np.eye(labels, dtype=bool)[truth]
    candidates[np.arange(n), rng.integers(labels, size=n)] = True
    return X, candidates, truth


def write_csv(path, n):
    X, candidates, _ = make_table(n)
    names = np.array(list("abcde"))
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"x{j}" for j in range(X.shape[1])), "names"])
        for row, sets in zip(X.round(4).tolist(), candidates, strict=True):
            writer.writerow([*row, "|".join(names[sets])])


def cpu(body):
    """CPU seconds of code in an interpreter of its own, the least of three, and its imports."""
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = [
        subprocess.run(
            [sys.executable, "-c", _IMPORTS.format(body=body)],
            env=kept,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for _ in range(3)
    ]
    best = min(done, key=lambda words: float(words[0]))
    return float(best[0]), sorted(best[1:])


def took(call, repeats=1):
    times = []
    for _ in range(repeats):
        start = time.process_time()
        out = call()
        times.append(time.process_time() - start)
    return min(times), out


def tell(what, ratio, goal, more=""):
    met = "met" if ratio <= goal else "MISSED"
    print(f"  {what:<58} {ratio:6.2f}  goal {goal:g} {met}  {more}", flush=True)


def start():
    with tempfile.TemporaryDirectory() as folder:
        table = f"{folder}/t.csv"
        write_csv(table, 250)
        pandas, _ = cpu("import pandas")
        libraries, _ = cpu("import numpy, pandas, sklearn.base, numba")
        imports, _ = cpu(_MODULES)
        saving, _ = cpu(_SAVE.format(table=table, folder=f"{folder}/m"))
        whole, found = cpu(_RUN.format(table=table, folder=f"{folder}/o"))
    tell("save_model / import pandas", saving / pandas, 1.5, f"{saving:.2f} s")
    tell("imports / run of 250 rows", imports / whole, 0.5, f"{imports:.2f} of {whole:.2f} s")
    print(f"  of these numpy, pandas, scikit-learn and numba: {libraries:.2f} s")
    tell("imports of torch, dask, skrub", len(found), 0, " ".join(found))


def unit(X):
    """Kernel matrix, Cholesky factor and inverse."""
    import scipy.linalg as la
    from sklearn.metrics.pairwise import rbf_kernel

    gram = rbf_kernel(X)
    gram.flat[:: len(X) + 1] += 1
    factor, _ = la.lapack.dpotrf(gram.T, lower=1, clean=0, overwrite_a=1)
    la.lapack.dpotri(factor, lower=1, overwrite_c=1)


def solvers(n=5000):
    from appellate import JuryClassifier, PLCPClassifier, SUREClassifier

    X, candidates, truth = make_table(n, labels=10)
    methods = {
        "light jury": (JuryClassifier("kernel", random_state=0), 10),
        "SURE-PLCP": (PLCPClassifier(SUREClassifier()), 3.5),
    }
    for model, _ in methods.values():
        model.fit(X[:300], candidates[:300])
    one, _ = took(lambda: unit(X), 3)
    for name, (model, goal) in methods.items():
        seconds, _ = took(lambda model=model: model.fit(X, candidates))
        right = np.mean(model.transduction_ == truth)
        tell(f"{name}, {n} rows / kernel + Cholesky + inverse", seconds / one, goal,
             f"{seconds:.1f} s, training labels {right:.3f}")  # fmt: skip


def threads():
    """Small fits: their own number of BLAS threads next to all of them, and next to one."""
    from threadpoolctl import threadpool_limits

    from appellate import (
        CLPLClassifier,
        GaussianKernel,
        JuryClassifier,
        PLCPClassifier,
        SUREClassifier,
    )
    from appellate.numerics import threads as module

    jury = JuryClassifier("kernel", random_state=0)
    kernel = GaussianKernel(approximation="nystroem", n_landmarks=512)
    features = PLCPClassifier(SUREClassifier(kernel=kernel))
    cases = (
        ("PLCP(CLPL), 300 rows", PLCPClassifier(CLPLClassifier()), 300),
        ("light jury, 300 rows", jury, 300),
        ("light jury, 1,000 rows", jury, 1000),
        ("light jury, 2,000 rows", jury, 2000),
        ("SURE-PLCP, 30,000 rows, 512 landmarks", features, 30_000),
    )
    bounds = module._ONE_THREAD_ROWS, module._ONE_THREAD_WIDTH
    for name, model, n in cases:
        X, candidates, _ = make_table(n, labels=10)

        def fit(limits, most=None, model=model, data=(X, candidates)):
            module._ONE_THREAD_ROWS, module._ONE_THREAD_WIDTH = limits
            with threadpool_limits(limits=most, user_api="blas"):
                start = time.perf_counter()
                model.fit(*data)
                return time.perf_counter() - start

        fit(bounds)
        tried = [(fit((0, 0)), fit(bounds), fit((0, 0), 1)) for _ in range(3)]
        module._ONE_THREAD_ROWS, module._ONE_THREAD_WIDTH = bounds
        every, ours, one = np.min(tried, axis=0)
        print(f"  {name}: all threads {every:.2f} s, ours {ours:.2f} s: {every / ours:.1f}")
        tell(f"{name}: ours / the best number of threads", ours / min(every, one), 1.25)


def neighbours(n=100_000):
    from sklearn.neighbors import NearestNeighbors

    from appellate import JuryClassifier, TestimonyClassifier
    from appellate.candidates import as_answers
    from appellate.numerics.neighbours import descend, nearest_rows

    descend(make_table(500)[0], 5)  # compile
    found = {}
    for name, factors in {"six factors": 6, "independent": None}.items():
        X, candidates, truth = make_table(n, factors=factors)
        seconds, near = took(lambda X=X: nearest_rows(X, 5))
        some = np.random.default_rng(0).choice(n, 1000, replace=False)
        farthest = NearestNeighbors(n_neighbors=6).fit(X).kneighbors(X[some])[0][:, -1:]
        apart = np.linalg.norm(X[some][:, np.newaxis] - X[near[some]], axis=2)
        recall = np.mean(apart <= farthest * (1 + 1e-6))
        found[name] = seconds, recall
        print(f"  neighbours, {name}: {seconds:.2f} s, recall {recall:.3f}", flush=True)
    rng = np.random.default_rng(1)
    other = rng.integers(5, size=(n, 3))
    said = np.where(rng.random((n, 3)) < 0.7, truth[:, np.newaxis], other)
    fits = {
        "testimony": lambda: TestimonyClassifier().fit(X, as_answers(said)),
        "light jury": lambda: JuryClassifier("kernel", random_state=0).fit(X, candidates),
    }
    for method, fit in fits.items():
        seconds, _ = took(fit)
        for name, (own, _) in found.items():
            tell(f"neighbours ({name}) / fit of {method}, {n} rows", own / seconds, 0.05,
                 f"fit {seconds:.0f} s")  # fmt: skip


def peak(n, landmarks=0):
    """Peak of a fit of the light jury above that of the process before, and its budget."""
    from appellate import GaussianKernel, JuryClassifier
    from appellate.candidates import as_candidates
    from appellate.core.problem import Problem

    X, candidates, _ = make_table(n, labels=10)
    kernel = GaussianKernel(
        approximation="nystroem" if landmarks else "exact", n_landmarks=landmarks or None
    )
    model = JuryClassifier("kernel", random_state=0, kernel=kernel)
    model.fit(X[:300], candidates[:300])
    before = peak_bytes()
    model.fit(X, candidates)
    problem = Problem(
        X,
        as_candidates(candidates),
        kernels=model._kernels,
        n_matrices=model._n_matrices,
        n_squares=model._n_squares,
    )
    budget = problem.representation(model._kernels()[0][0]).memory
    return peak_bytes() - before, budget


def memory():
    cases = {(5000, 0): "5,000 rows, exact", (20_000, 1024): "20,000 rows, 1,024 landmarks"}
    for (n, landmarks), name in cases.items():
        used, budget = apart(peak, n, landmarks)
        tell(f"peak of the light jury / its budget, {name}", used / budget, 1,
             f"{used / 1e9:.2f} of {budget / 1e9:.2f} GB")  # fmt: skip


def reading(n=100_000):
    from appellate.tables import delimited as module
    from appellate.tables import find_roles, read_table

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        write_csv(path, n)
        quick, table = took(lambda: read_table(path), 3)
        both = module.read_quickly
        module.read_quickly = lambda *_, **__: None
        try:
            careful, _ = took(lambda: read_table(path), 3)
        finally:
            module.read_quickly = both
    roles, _ = took(lambda: find_roles(table, candidates="names"), 3)
    tell(f"pyarrow / careful reader, {n} rows of CSV", quick / careful, 1, f"{quick:.2f} s")
    print(f"  guessing the roles: {roles:.2f} s, {roles / quick:.1f} times reading")


def rectify_many(path, **settings):
    from appellate import rectify

    before = peak_bytes()
    seconds, run = took(
        lambda: rectify(path, candidates="names", random_state=0, settings=settings or None)
    )
    return seconds, peak_bytes() - before, run.labels["label"].to_numpy(str)


def rectify_on_dask(path):
    """CPU seconds of the caller and of two workers, and the largest peak of the three."""
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**options, memory_limit=None) as cluster, Client(cluster) as client:
        client.wait_for_workers(2)
        before = client.run(time.process_time)
        seconds, used, labels = rectify_many(path, scheduler=cluster.scheduler_address)
        after, peaks = client.run(time.process_time), client.run(peak_bytes)
    both = sum(after.values()) - sum(before.values())
    return seconds, both, max(used, *peaks.values()), labels


def testimony_many(n):
    from appellate import TestimonyClassifier
    from appellate.candidates import as_answers

    rng = np.random.default_rng(0)
    truth = rng.integers(10, size=n)
    said = np.where(rng.random((n, 3)) < 0.7, truth[:, np.newaxis], rng.integers(10, size=(n, 3)))
    answers = as_answers(said)
    before = peak_bytes()
    seconds, model = took(lambda: TestimonyClassifier().fit(None, answers))
    return seconds, peak_bytes() - before, np.mean(model.transduction_ == truth)


def many(n=1_000_000):
    import pyarrow as pa
    import pyarrow.parquet as pq

    seconds, used, right = apart(testimony_many, n // 3)
    print(f"  testimony, {n} answers without features: {seconds:.0f} s, {used / 1e9:.1f} GB, "
          f"training labels {right:.3f}", flush=True)  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/t.parquet"
        X, candidates, truth = make_table(n, factors=6)
        names = np.array(list("abcde"))
        columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
        columns["names"] = ["|".join(names[sets]) for sets in candidates]
        pq.write_table(pa.table(columns), path)
        del X, candidates, columns
        seconds, used, here = apart(rectify_many, path)
        print(f"  rectify on Parquet, {n} rows: {seconds:.0f} s, {used / 1e9:.1f} GB, "
              f"labels {np.mean(here == names[truth]):.3f}", flush=True)  # fmt: skip
        seconds, both, used, there = apart(rectify_on_dask, path)
    print(f"  the same on two Dask workers: {seconds:.0f} s and {both:.0f} s of the workers, "
          f"{used / 1e9:.1f} GB in the largest process, {np.mean(here == there):.4f} of the "
          "labels the same", flush=True)  # fmt: skip


PARTS = {
    "start": start,
    "solvers": solvers,
    "threads": threads,
    "neighbours": neighbours,
    "memory": memory,
    "reading": reading,
    "many": many,
    "half": partial(many, 500_000),
    "tenth": partial(many, 100_000),
}

if __name__ == "__main__":
    run_parts(__doc__, PARTS, ["start", "solvers", "threads", "neighbours", "memory", "reading"])
