"""The partner's speed and memory, each as a ratio of two things measured in this run.

projection  ragged projection against the fastest of three QP solvers, row by row as in the paper
fit         a whole PLCP fit over SURE, up to the size of Yahoo! News' training half, against one
            Cholesky factorisation of the same size, and its peak memory against one n x n matrix
"""

from __future__ import annotations

import time

import clarabel
import numpy as np
import piqp
import scipy.linalg as la
import scipy.sparse as sp
from _common import apart, best_time, make_candidates, make_data, peak_bytes, run_parts
from _solvers import solve_daqp

from appellate import PLCPClassifier, SUREClassifier
from appellate.numerics.entries import CandidateEntries
from appellate.numerics.simplex import project_entries

SIZES = [("Lost", 561, 16, 2.2), ("FG-NET", 501, 78, 7.5), ("Soccer Player", 8736, 171, 2.1)]
FITS = [(5000, 50, 8), (11495, 219, 6)]
SOLVED_ROWS = 400


def project_daqp(v):
    return solve_daqp(-v)


def project_piqp(v):
    m = len(v)
    solver = piqp.DenseSolver()
    solver.setup(np.eye(m), -v, np.ones((1, m)), np.ones(1), x_l=np.zeros(m))
    solver.solve()
    return solver.result.x


def project_clarabel(v):
    m = len(v)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    A = sp.csc_matrix(np.vstack([np.ones((1, m)), -np.eye(m)]))
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(m)]
    rhs = np.append(1.0, np.zeros(m))
    return np.array(
        clarabel.DefaultSolver(sp.eye(m, format="csc"), -v, A, rhs, cones, settings).solve().x
    )


def projection() -> None:
    print("projection onto the candidate simplices: QP solver / ours (at least 100)")
    rng = np.random.RandomState(0)
    for name, n, n_labels, average in SIZES:
        entries = CandidateEntries(make_candidates(rng, n, n_labels, average))
        values = rng.normal(scale=0.5, size=len(entries))
        projected = project_entries(values, entries)
        rows = [values[a:b] for a, b in zip(entries.indptr[:-1], entries.indptr[1:], strict=True)]
        rows = rows[:SOLVED_ROWS]
        timings = {}
        for solver in (project_daqp, project_piqp, project_clarabel):
            solved = np.concatenate([solver(row) for row in rows])
            assert np.abs(solved - projected[: len(solved)]).max() < 1e-4, solver.__name__
            elapsed = best_time(lambda s=solver: [s(row) for row in rows], 3)  # noqa: B023
            timings[solver.__name__.partition("_")[2]] = elapsed * n / len(rows)
        fastest = min(timings, key=timings.get)
        ours = best_time(lambda: project_entries(values, entries), 50)  # noqa: B023
        print(
            f"  {name:14} n={n:5} l={n_labels:3}  {fastest} {timings[fastest] * 1e3:8.1f} ms"
            f"  ours {ours * 1e6:7.1f} us  ratio {timings[fastest] / ours:7.0f}"
        )


def fits() -> None:
    print("PLCP over SURE: whole fit / one Cholesky, peak memory / one n x n matrix", flush=True)
    for size in FITS:
        apart(fit, *size)


def fit(n: int, n_labels: int, limit: int) -> None:
    X, candidates = make_data(n, n_labels)
    small = PLCPClassifier(SUREClassifier())
    small.fit(X[:200], candidates[:200])  # compile and warm up
    before = peak_bytes()
    start = time.perf_counter()
    model = PLCPClassifier(SUREClassifier()).fit(X, candidates)
    ours = time.perf_counter() - start
    memory = (peak_bytes() - before) / (8 * n * n)
    del model
    gram = X @ X.T
    gram.flat[:: n + 1] += n
    cholesky = np.median([best_time(lambda: la.cholesky(gram, lower=True), 1) for _ in range(3)])
    print(
        f"  n={n:6} l={n_labels:3}  fit {ours:6.1f} s  Cholesky {cholesky:5.1f} s"
        f"  ratio {ours / cholesky:4.1f} (at most {limit})"
        f"  memory {memory:4.2f} n x n (at most 3)",
        flush=True,
    )


PARTS = {"projection": projection, "fit": fits}

if __name__ == "__main__":
    run_parts(__doc__, PARTS, list(PARTS))
