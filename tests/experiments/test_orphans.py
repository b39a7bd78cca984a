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
from pathlib import Path
from appellate.experiments.runner import run_all
from appellate.experiments.store import Store
from tests.experiments.small import make_problem, make_runs
if __name__ == "__main__":
    with Store(Path(sys.argv[1])) as store:
        run_all(make_runs(500), {"small": make_problem()}, store, n_jobs=2,
                report=lambda *_: print("done", flush=True))
"""


@pytest.mark.skipif(os.name != "posix", reason="needs the parent's id to change")
def test_workers_end_with_their_driver(tmp_path):
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    modules = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "runs.sqlite")],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": modules},
        stdout=subprocess.PIPE,
        text=True,
    ) as driver:
        for _ in range(4):
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
