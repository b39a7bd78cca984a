"""A Dask cluster of processes that loses a worker gives the rows of one process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from appellate.experiments.cluster import ClusterError, connect
from tests.experiments.small import make_runs, read_rows

ROOT = Path(__file__).parents[2]

pytest.importorskip("distributed")


def test_a_killed_worker_changes_nothing(tmp_path, stored):
    path = tmp_path / "runs.sqlite"
    modules = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": modules}
    done = subprocess.run(
        [sys.executable, "-m", "tests.experiments.cluster_script", str(path), "3"],
        cwd=ROOT,
        env=os.environ | one,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["workers"] == 2
    assert told["killed"]
    assert told["failures"] == []
    assert told["computed"] == len(make_runs(3))
    assert read_rows(path) == read_rows(stored)


def test_no_scheduler_at_the_address():
    with (
        pytest.raises(ClusterError, match="no Dask scheduler answers"),
        connect(2, "nonsense://x"),
    ):
        pass
