"""X and the features of the map on disk, under a hard limit on the address space."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytest.importorskip("resource")


def run(*arguments, timeout=280):
    return subprocess.run(
        [sys.executable, "-m", "tests.out_of_core_script", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def test_under_a_limit_on_the_address_space(tmp_path):
    """The libraries alone map most of the 2.5 GB."""
    done = run(10_000, 64, 2.5, tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["training"] > 0.9
    assert told["files"] == ["X.npy"]


@pytest.mark.slow
def test_a_million_rows_under_four_gigabytes(tmp_path):
    done = run(1_000_000, 256, 4, tmp_path, timeout=3600)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["training"] > 0.9


def open_files(pid):
    """The files that a process has open; one that is closed meanwhile is left out."""
    targets = []
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            targets.append(os.readlink(descriptor))
    return targets


def test_nothing_is_left_after_a_crash(tmp_path):
    """Killed while the features are on disk: the file has no name, so it is gone."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.out_of_core_script", "100000", "128", "8", str(tmp_path)],
        cwd=ROOT,
    )
    try:
        deadline = time.monotonic() + 200
        while time.monotonic() < deadline and process.poll() is None:
            targets = open_files(process.pid)
            if any(t.startswith(str(tmp_path)) and t.endswith("(deleted)") for t in targets):
                break
            time.sleep(0.05)
        else:
            pytest.fail("no features were put on disk")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)
    assert [p.name for p in tmp_path.iterdir()] == ["X.npy"]
