"""Kill the driver, share the store: the rows are those of an undisturbed run, bit for bit."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.experiments.nursery import N_SPLITS
from tests.experiments.small import make_runs, read_rows

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def raised(tmp_path_factory):
    """What the nursery told, and the folder of its stores."""
    folder = tmp_path_factory.mktemp("stores")
    return raise_and_kill(folder, 20), folder


def raise_and_kill(folder, n_kills):
    modules = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": modules}
    done = subprocess.run(
        [sys.executable, "-m", "tests.experiments.nursery", str(folder), str(n_kills)],
        cwd=ROOT,
        env=os.environ | one,
        capture_output=True,
        text=True,
        timeout=550,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_undisturbed(raised):
    told, folder = raised
    assert told["undisturbed"] == len(make_runs(N_SPLITS))
    assert len(read_rows(folder / "undisturbed.sqlite")) == len(make_runs(N_SPLITS))


def test_twenty_kills_change_nothing(raised):
    check_kills(*raised, 20)


@pytest.mark.slow
def test_a_hundred_kills_change_nothing(tmp_path):
    check_kills(raise_and_kill(tmp_path, 100), tmp_path, 100)


def check_kills(told, folder, n_kills):
    killed = told["kill"]
    assert killed["killed"] == n_kills
    assert killed["found"] + killed["computed"] == told["undisturbed"]
    assert killed["counts"] == sorted(killed["counts"])  # nothing was ever lost
    assert killed["found"] > 0
    assert read_rows(folder / "kill.sqlite") == read_rows(folder / "undisturbed.sqlite")


def test_two_processes_share_a_store(raised):
    told, folder = raised
    assert told["two"] == {"codes": [0, 0], "rows": told["undisturbed"]}
    assert read_rows(folder / "two.sqlite") == read_rows(folder / "undisturbed.sqlite")


@pytest.mark.slow
def test_the_command_is_killed_with_its_workers(tmp_path):
    """The same through the command line and two worker processes, on a file."""
    rng = np.random.RandomState(0)
    truth = rng.randint(4, size=300)
    lines = ["a,b,candidates,label"]
    for label in truth:
        sets = "|".join(map(str, sorted({label, rng.randint(4)})))
        lines.append(f"{rng.normal(label):.4f},{rng.normal(-label):.4f},{sets},{label}")
    data = tmp_path / "own.csv"
    data.write_text("\n".join(lines) + "\n")
    command = [sys.executable, "-m", "appellate", "compare", str(data), "--truth", "label"]
    command += ["--methods", "sure,aggd,plcl", "--n-jobs", "2"]
    calm, shaken = tmp_path / "calm", tmp_path / "shaken"
    subprocess.run([*command, "--out", str(calm)], check=True, capture_output=True)
    chance = random.Random(3)
    for _ in range(20):
        child = subprocess.Popen(
            [*command, "--out", str(shaken)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            child.wait(chance.uniform(3, 9))
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    subprocess.run([*command, "--out", str(shaken)], check=True, capture_output=True)
    assert read_rows(shaken / "runs.sqlite") == read_rows(calm / "runs.sqlite")
    for name in ("comparison.csv", "comparison.md", "comparison.tex"):
        assert (shaken / name).read_bytes() == (calm / name).read_bytes()
