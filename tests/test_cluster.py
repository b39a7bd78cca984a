"""A real cluster of two processes gives the labels of one, also when it loses a worker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytest.importorskip("distributed")


def fit_on_cluster(*arguments, timeout=280):
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "tests.cluster_script", *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | one | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("method", ["plcp", "jury"])
def test_a_killed_worker_changes_no_label(method):
    told = fit_on_cluster(1_800, 8, 0, method)
    assert told["killed"]
    assert told["lazy"]
    assert told["same_training"] == 1.0
    assert told["same_new"] == 1.0
    assert told["largest"] < 1e-3


@pytest.mark.slow
def test_workers_smaller_than_the_rows():
    told = fit_on_cluster(50_000, 4_000, 600, "plcp", timeout=1800)
    assert told["killed"]
    assert told["limit"] < told["size_of_X"]
    assert told["same_training"] == 1.0
    assert told["same_new"] == 1.0
