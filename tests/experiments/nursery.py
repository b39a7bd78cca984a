"""Raise drivers of one store and kill them: run as a script, tells what happened as JSON.

A process of its own forks quickly and safely: nothing here has started a thread.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from appellate.experiments.protocol import execute
from appellate.experiments.runner import run_all
from appellate.experiments.store import Store
from tests.experiments.small import make_problem, make_runs, read_rows

N_SPLITS = 12


def drive(path):
    problem = make_problem()
    with Store(path) as store:
        return run_all(make_runs(N_SPLITS), {"small": problem}, store)


def fork_driver(path):
    child = os.fork()
    if child == 0:
        try:
            drive(path)
        finally:
            os._exit(0)
    return child


def count(path):
    try:
        return len(read_rows(path))
    except Exception:  # not made yet
        return 0


def kill_often(path, n_kills):
    """Kill drivers at random moments, sooner where they are ahead of the plan."""
    chance = random.Random(7)
    total = len(make_runs(N_SPLITS))
    killed, counts = 0, []
    while killed < n_kills:
        ahead = count(path) > total * (killed + 1) / (n_kills + 2)
        child = fork_driver(path)
        time.sleep(chance.uniform(0, 0.01 if ahead else 0.3))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        killed += os.WIFSIGNALED(status)
        counts.append(count(path))
    last = drive(path)
    return {"killed": killed, "counts": counts, "found": last.found, "computed": last.computed}


def two_at_once(path):
    children = [fork_driver(path), fork_driver(path)]
    codes = [os.waitpid(child, 0)[1] for child in children]
    return {"codes": codes, "rows": count(path)}


def warm_up():
    """Load and compile everything once, so that drivers start at once."""
    problem = make_problem()
    for run in make_runs(1):
        execute(run, problem)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    warm_up()
    told = {"undisturbed": drive(folder / "undisturbed.sqlite").computed}
    told["kill"] = kill_often(folder / "kill.sqlite", int(sys.argv[2]))
    told["two"] = two_at_once(folder / "two.sqlite")
    sys.stdout.write(json.dumps(told))
