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


@pytest.mark.parametrize(
    ("what", "least"),
    [
        (("save_model", "save_model again"), 5),
        (("append to nothing", "append", "append to a spreadsheet's file"), 3),
        (("predict", "predict to Parquet", "reproduce"), 3),
        pytest.param(("checkpoint", "checkpoint again"), 4, id="checkpoint"),
        pytest.param(("rectify again",), 20, marks=pytest.mark.slow),
        pytest.param(("rectify", "rectify again, one by one"), 20, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("how", ["kill", "full"])
def test_stopped_at_every_point(what, least, how, tmp_path):
    """Every point is tried, and the next run works; see `harness`."""
    if what[0] == "checkpoint":
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
    assert tuple(tried) == what
    assert min(tried.values()) >= (least if how == "kill" else 2), tried
