"""Two Dask workers, one of them killed midway: run as a script, tells what happened as JSON."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import nullcontext
from pathlib import Path

from appellate.experiments import runner
from appellate.experiments.cluster import connect, run_on_dask
from appellate.experiments.protocol import execute
from appellate.experiments.store import Store
from tests.experiments.small import make_problem, make_runs


def execute_slowly(key, run, problem):
    """Leave time to be killed in."""
    time.sleep(0.05)
    return key, execute(run, problem)


def run_and_kill(client, told):
    def hand_out(runs, problems, *_):
        pids = client.run(os.getpid)
        outcomes = run_on_dask(runs, problems, 2, None)
        for number, pair in enumerate(outcomes):
            if number == 2:
                victim = sorted(pids.values())[0]
                os.kill(victim, signal.SIGKILL)
                told["killed"] = victim
            yield pair

    return hand_out


if __name__ == "__main__":
    from appellate.experiments import cluster

    cluster.execute_keyed = execute_slowly
    told = {}
    n_splits = int(sys.argv[2])
    with Store(Path(sys.argv[1])) as store, connect(2, None) as client:
        client.wait_for_workers(2)
        told["workers"] = len(client.run(os.getpid))
        cluster.connect = lambda *_: nullcontext(client)  # not a second cluster
        cluster.run_on_dask = run_and_kill(client, told)
        problems = {"small": make_problem()}
        summary = runner.run_all(make_runs(n_splits), problems, store, backend="dask")
    told |= {"computed": summary.computed, "failures": list(summary.failures.values())}
    sys.stdout.write(json.dumps(told))
