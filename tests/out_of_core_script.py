"""A fit with X and its features on disk under a limit on the address space; tells as JSON.

Arguments: rows, landmarks, gigabytes of address space, folder.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

os.environ |= {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2", "MALLOC_ARENA_MAX": "4"}

import resource

import numpy as np

Q, LABELS, BLOCK = 50, 20, 50_000


def write_rows(path, n):
    """Write X block by block; return candidates and truth."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(LABELS, Q))
    X = np.lib.format.open_memmap(path, "w+", np.float32, (n, Q))
    truth, candidates = rng.integers(LABELS, size=n), np.empty((n, LABELS), dtype=bool)
    for start in range(0, n, BLOCK):
        rows = slice(start, min(start + BLOCK, n))
        size = rows.stop - start
        X[rows] = centres[truth[rows]] + 2.5 * rng.normal(size=(size, Q))
        candidates[rows] = rng.random((size, LABELS)) < 1.5 / (LABELS - 1)
    candidates[np.arange(n), truth] = True
    X.flush()
    return candidates, truth


def main(n, n_landmarks, limit, folder):
    resource.setrlimit(resource.RLIMIT_AS, (int(limit * 2**30),) * 2)
    from appellate import GaussianKernel, PLCPClassifier, SUREClassifier

    candidates, truth = write_rows(folder / "X.npy", n)
    X = np.load(folder / "X.npy", mmap_mode="r")
    kernel = GaussianKernel(approximation="nystroem", n_landmarks=n_landmarks, cache_dir=folder)
    model = PLCPClassifier(SUREClassifier(kernel=kernel))
    started, cpu = time.perf_counter(), time.process_time()
    model.fit(X, candidates)
    fitted, cpu = time.perf_counter(), time.process_time() - cpu
    labels = model.predict(X)
    predicted = time.perf_counter()
    told = {
        "seconds": fitted - started,
        "cpu": cpu,
        "predict_seconds": predicted - fitted,
        "training": float(np.mean(model.transduction_ == truth)),
        "test": float(np.mean(labels == truth)),
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "files": sorted(p.name for p in folder.iterdir()),
    }
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]))
