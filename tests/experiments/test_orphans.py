"""Workers do not outlive a driver that was killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]
DRIVER = """
import sys
import time
from pathlib import Path
from appellate.experiments.runner import run_all
from appellate.experiments.store import Store
from tests.experiments.small import make_problem, make_runs
if __name__ == "__main__":
    with Store(Path(sys.argv[1])) as store:
        n_runs, pause = map(int, sys.argv[2:])
        report = lambda *_: (print("done", flush=True), time.sleep(pause))
        run_all(make_runs(500)[:n_runs], {"small": make_problem()}, store, n_jobs=2,
                report=report)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs the parent's id to change")
@pytest.mark.parametrize(("n_runs", "pause"), [(4000, 0), (1, 600)], ids=["busy", "idle"])
def test_workers_end_with_their_driver(n_runs, pause, tmp_path):
    """Also one that has had nothing to do: it waited for work until its time was up."""
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    modules = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "runs.sqlite"), str(n_runs), str(pause)],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": modules},
        stdout=subprocess.PIPE,
        text=True,
    ) as driver:
        for _ in range(min(4, n_runs)):
            assert driver.stdout.readline() == "done\n"
        workers = [
            each
            for each in psutil.Process(driver.pid).children(recursive=True)
            if "resource_tracker" not in " ".join(each.cmdline())
        ]
        assert len(workers) >= 2
        driver.kill()
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert alive == []
