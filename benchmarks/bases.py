"""Speed and memory of the base classifiers, each as a ratio of two things of this run.

solvers   PL-AGGD at the size of Lost against the same fit by generic QP solvers
coupling  every kernel base coupled against alone, n = 4,000
growth    growth of the time over n = 2,000, 4,000, 8,000, and peak memory against one n x n matrix
largest   every coupled base at the size of Yahoo! News' training half: minutes each, 3 n x n
"""

from __future__ import annotations

import time

import clarabel
import numpy as np
import scipy.sparse as sp
from _common import apart, best_time, make_data, peak_bytes, run_parts
from _solvers import solve_daqp

from appellate import PLCPClassifier
from appellate.methods import make_base
from appellate.numerics.entries import CandidateEntries
from appellate.numerics.graph import NeighborGraph
from appellate.numerics.kernels import Gaussian
from appellate.numerics.smoothers import KernelSmoother

BASES = ("knn", "svm", "sure", "lalo", "aggd", "plcl")
KERNEL_BASES = ("sure", "lalo", "aggd", "plcl")
GROWTH = (2000, 4000, 8000)
LARGEST = (11495, 219, 163)


def coupled(name):
    return PLCPClassifier(make_base(name), random_state=0)


# -- generic solvers -------------------------------------------------------------------


def propagation_problem(weights, neighbors, candidates, target, fidelity):
    """The confidence update as the papers have it: one sparse QP over all n l confidences."""
    n, k = neighbors.shape
    l = candidates.shape[1]
    graph = sp.csr_array((weights.ravel(), neighbors.ravel(), np.arange(n + 1) * k), shape=(n, n))
    residual = sp.eye_array(n) - graph
    T = 2 * (residual.T @ residual + fidelity * sp.eye_array(n))
    quadratic = sp.csc_matrix(sp.kron(sp.eye_array(l), T))
    sums = sp.csc_matrix(sp.hstack([sp.eye_array(n)] * l))
    return quadratic, -2 * fidelity * target.T.ravel(), sums, candidates.T.ravel().astype(float)


def solve_clarabel(P, q, sums, upper):
    m, n = len(q), sums.shape[0]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    A = sp.csc_matrix(sp.vstack([sums, -sp.eye_array(m), sp.eye_array(m)]))
    rhs = np.concatenate([np.ones(n), np.zeros(m), upper])
    cones = [clarabel.ZeroConeT(n), clarabel.NonnegativeConeT(2 * m)]
    return np.array(
        clarabel.DefaultSolver(sp.csc_matrix(sp.triu(P)), q, A, rhs, cones, settings).solve().x
    )


def solver_ratio():
    print("PL-AGGD, size of Lost: generic solvers / ours (at least 1000)")
    X, candidates = make_data(561, 16, 108)
    entries = CandidateEntries(candidates)
    graph, start = NeighborGraph(X, 10, entries), entries.uniform()
    weights = graph.weights(start, 1.0, 1.0)
    unit = Gaussian(1.0)
    kernel = Gaussian(unit.mean_distance(unit.distances(X)))
    output = KernelSmoother(kernel(X, X), 0.05, X, kernel).on_candidates(entries)(start)
    ours = graph.propagate(weights, start, output, 1.0).values
    problem = propagation_problem(
        weights, graph.neighbors, candidates, entries.scatter(output), 1.0
    )
    started = time.perf_counter()
    solution = solve_clarabel(*problem).reshape(candidates.shape[::-1]).T
    at_once = time.perf_counter() - started
    assert np.abs(entries.gather(solution) - ours).max() < 1e-3
    by_rows = best_time(lambda: [solve_daqp(np.zeros(10), 2 * gram) for gram in graph.gram], 2)
    one_turn = at_once + by_rows
    fit = best_time(lambda: make_base("aggd").fit(X, candidates), 5)
    print(
        f"  confidences {at_once:.2f} s (clarabel), "
        f"weights {by_rows:.2f} s (daqp): {10 * one_turn:.1f} s for the ten turns of a fit; "
        f"ours {fit * 1e3:.0f} ms a whole fit: ratio {10 * one_turn / fit:.0f}"
    )


# -- coupling --------------------------------------------------------------------------


def coupling_ratio():
    print("coupled / alone, n = 4000, l = 50 (at most 2)")
    X, candidates = make_data(4000, 50)
    for name in KERNEL_BASES:
        make_base(name).fit(X[:200], candidates[:200])
        alone = best_time(lambda b=name: make_base(b).fit(X, candidates), 2)
        both = best_time(lambda b=name: coupled(b).fit(X, candidates), 2)
        print(f"  {name:5} {alone:6.2f} s  {both:6.2f} s  ratio {both / alone:4.2f}", flush=True)


# -- in processes of their own, so that the peak memory is that of one fit ------------------


def measure(make, name, n, n_labels, n_features):
    """Seconds and bytes of one fit."""
    X, candidates = make_data(n, n_labels, n_features)
    make(name).fit(X[:200], candidates[:200])
    before = peak_bytes()
    start = time.perf_counter()
    make(name).fit(X, candidates)
    return time.perf_counter() - start, peak_bytes() - before


def growth():
    print(f"growth of a fit over n = {GROWTH}, l = 50 (exponent at most 3, knn 2)")
    for name in BASES:
        results = [apart(measure, make_base, name, n, 50, 60) for n in GROWTH]
        seconds = [s for s, _ in results]
        exponent = np.polyfit(np.log(GROWTH), np.log(seconds), 1)[0]
        memory = results[-1][1] / (8 * GROWTH[-1] ** 2)
        times = " ".join(f"{s:7.2f}" for s in seconds)
        print(
            f"  {name:5} {times} s  exponent {exponent:4.2f}  memory {memory:4.2f} n x n",
            flush=True,
        )


def largest():
    n, n_labels, n_features = LARGEST
    print(f"coupled at n = {n}, q = {n_features}, l = {n_labels} (at most 300 s, 3 n x n)")
    for name in BASES:
        seconds, memory = apart(measure, coupled, name, n, n_labels, n_features)
        print(
            f"  {name:5} {seconds:6.1f} s  memory {memory / 2**30:5.2f} GiB"
            f" = {memory / (8 * n * n):4.2f} n x n",
            flush=True,
        )


PARTS = {
    "solvers": solver_ratio,
    "coupling": coupling_ratio,
    "growth": growth,
    "largest": largest,
}

if __name__ == "__main__":
    run_parts(__doc__, PARTS, ["solvers", "coupling", "growth"])
