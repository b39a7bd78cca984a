"""A fit on two Dask workers, one of them killed midway: run as a script, tells as JSON.

Arguments: rows, features, megabytes a worker may take (0: no limit).
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import signal
import sys
import time

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from sklearn.base import clone

from appellate import GaussianKernel, JuryClassifier, PLCPClassifier, SUREClassifier
from appellate.numerics.sources import DaskBlocks

LABELS = 10


def make_block(block_info):
    """Rows of one chunk, made where they are needed."""
    start, stop = block_info[None]["array-location"][0]
    return make_rows(start, stop, block_info[None]["chunk-shape"][1])[0]


def make_rows(start, stop, q):
    centres = np.random.default_rng(99).normal(size=(LABELS, q)).astype(np.float32)
    rng = np.random.default_rng(start)
    truth = rng.integers(LABELS, size=stop - start)
    rows = centres[truth] + 2 * rng.standard_normal((stop - start, q), dtype=np.float32)
    candidates = rng.random((stop - start, LABELS)) < 0.2
    candidates[np.arange(stop - start), truth] = True
    return rows, candidates


def kill_at_a_pass(victim, told, number=3):
    """Kill one worker right before a pass over the features, which are there by then."""
    passes, plain = itertools.count(1), DaskBlocks.map

    def kill_then_pass(self, *arguments):
        if next(passes) == number:
            os.kill(victim, signal.SIGKILL)
            told["killed"] = victim
        return plain(self, *arguments)

    DaskBlocks.map = kill_then_pass


def make_model(method):
    kernel = GaussianKernel(approximation="nystroem", n_landmarks=64)
    if method == "jury":
        return JuryClassifier("kernel", kernel=kernel, max_rounds=3, n_folds=3, random_state=0)
    return PLCPClassifier(SUREClassifier(kernel=kernel), max_rounds=2)


def main(n, q, limit, method):
    size = min(4_000, 6_000_000 // q, n // 3)
    chunks = tuple(min(size, n - start) for start in range(0, n, size))
    X = da.map_blocks(make_block, chunks=(chunks, (q,)), dtype=np.float32)
    starts = np.concatenate([[0], np.cumsum(chunks)])
    candidates = np.concatenate([make_rows(a, b, q)[1] for a, b in itertools.pairwise(starts)])
    model = make_model(method)
    told = {"size_of_X": n * q * 4, "limit": limit * 10**6}
    cluster = LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        memory_limit=limit * 10**6 or None,
        dashboard_address=":0",
        silence_logs=logging.CRITICAL,
    )
    with cluster, Client(cluster) as client:
        client.wait_for_workers(2)
        victim = sorted(client.run(os.getpid).values())[0]
        kill_at_a_pass(victim, told)
        started = time.perf_counter()
        model.fit(X, candidates)
        told["seconds"] = time.perf_counter() - started
        lazy = model.predict(X)
        told["lazy"] = isinstance(lazy, da.Array)
        predicted = lazy.compute()
    rows = X.compute(scheduler="sync")
    reference = clone(model).fit(rows, candidates)
    told["same_training"] = float(np.mean(model.transduction_ == reference.transduction_))
    told["same_new"] = float(np.mean(predicted == reference.predict(rows)))
    told["largest"] = float(np.abs(model.confidence_ - reference.confidence_).max())
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]), sys.argv[4])
