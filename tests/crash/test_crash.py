"""Killed, or the disk full, before any single change: the old or the new is there, whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the test forks")


# What is written, and the least number of points at which it is killed.
QUICK = {
    "save_model": 5,
    "save_model again": 5,
    "append to nothing": 3,
    "append": 3,
    "append to a spreadsheet's file": 3,
    "predict": 3,
    "predict to Parquet": 3,
    "reproduce": 3,
}
CHECKPOINTS = {"checkpoint": 4, "checkpoint again": 4}
FOLDERS = {"rectify": 20, "rectify again": 20, "rectify again, one by one": 20}


@pytest.mark.parametrize(
    ("how", "what"),
    [
        pytest.param("kill", QUICK, id="kill-quick"),
        pytest.param("full", CHECKPOINTS, id="full-checkpoint"),
        pytest.param("full", QUICK, marks=pytest.mark.slow, id="full-quick"),
        pytest.param("kill", CHECKPOINTS, marks=pytest.mark.slow, id="kill-checkpoint"),
        pytest.param("kill", FOLDERS, marks=pytest.mark.slow, id="kill-folders"),
        pytest.param("full", FOLDERS, marks=pytest.mark.slow, id="full-folders"),
    ],
)
def test_stopped_at_every_point(how, what, tmp_path):
    """Every point is tried, and the next run works; see `harness`."""
    if what is CHECKPOINTS:
        pytest.importorskip("torch")
    modules = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": modules}
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.harness", str(tmp_path), how, *what],
        cwd=ROOT,
        env=os.environ | one,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    tried = json.loads(done.stdout)
    assert tried.keys() == what.keys()
    for name, least in what.items():
        assert tried[name] >= (least if how == "kill" else 2), name
