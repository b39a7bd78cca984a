"""What the benchmarks share: generated data, timing, memory, a QP solver row by row."""

from __future__ import annotations

import resource
import time

import daqp
import numpy as np


def make_candidates(rng, n, n_labels, average):
    counts = np.clip(1 + rng.poisson(average - 1, size=n), 1, n_labels)
    candidates = np.zeros((n, n_labels), dtype=bool)
    for row, count in zip(candidates, counts, strict=True):
        row[rng.choice(n_labels, size=count, replace=False)] = True
    return candidates


def make_data(n, n_labels, n_features=163):
    rng = np.random.RandomState(0)
    truth = rng.randint(n_labels, size=n)
    X = rng.normal(size=(n_labels, n_features))[truth] + rng.normal(size=(n, n_features)) * 2
    candidates = make_candidates(rng, n, n_labels, 2.0)
    candidates[np.arange(n), truth] = True
    return X, candidates


def best_time(call, repeats=5):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def solve_daqp(linear, quadratic=None):
    """Min x'Qx/2 + linear'x over the simplex."""
    m = len(linear)
    quadratic = np.eye(m) if quadratic is None else quadratic
    sense = np.zeros(m + 1, dtype=np.int32)
    sense[-1] = 5
    upper, lower = np.append(np.full(m, 1e30), 1.0), np.append(np.zeros(m), 1.0)
    return daqp.solve(quadratic, linear, np.ones((1, m)), upper, lower, sense)[0]
