"""Two processes (gloo): one run, the same in both, and the same as in one process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import load_file  # noqa: E402

from appellate.deep.processes import agreed, gather_processes, n_processes, rank  # noqa: E402
from appellate.deep.trainer import _own_share  # noqa: E402
from tests.deep.small import MAKERS, make_table, proden, state_of, timeless  # noqa: E402

ROOT = Path(__file__).parents[2]
#: One step on all 40 rows with a network without batch normalisation.
ONE_STEP = {"network": "linear", "n_epochs": 1, "batch_size": 40}
ONE_STEP |= {"partner": "non-candidate"}
RUNS = {
    "one_step": ("proden", ONE_STEP),
    "proden": ("proden", {"partner": "non-candidate", "validation_fraction": 0.2}),
    "pico": ("pico", {"partner": "non-candidate", "random_state": None}),
    "twin": ("proden", {"partner": "candidate", "batch_size": 13, "precision": "bfloat16"}),
    "dropped": ("proden", {"partner": "non-candidate", "drop_last": True}),
}
RESUMED = ("pico", {"partner": "non-candidate"})

DRIVER = """
import json, os, sys
from pathlib import Path
import torch
import torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo")
from safetensors.torch import save_file
from appellate.deep import panel
from tests.deep.small import MAKERS, make_table, state_of, timeless
from tests.deep.test_processes import RESUMED, RUNS

folder, number = Path(sys.argv[1]), dist.get_rank()
X, candidates, _ = make_table()

def keep(name, model):
    state = {k: v.clone() for k, v in state_of(model).items()}
    state["output"] = torch.from_numpy(model.training_output_.copy())
    save_file(state, folder / f"{name}{number}")
    (folder / f"{name}{number}.json").write_text(json.dumps(timeless(model.history_)))

for name, (kind, options) in RUNS.items():
    keep(name, MAKERS[kind](**options).fit(X, candidates))

kind, options = RESUMED
keep("whole", MAKERS[kind](**options).fit(X, candidates))
options = {**options, "folder": folder / "run"}

class StoppedError(Exception):
    pass

close_epoch = panel.RunFolder.close_epoch

def stopped(self, record, trainer):
    close_epoch(self, record, trainer)
    if record["epoch"] == 2:
        raise StoppedError

panel.RunFolder.close_epoch = stopped
try:
    MAKERS[kind](**options).fit(X, candidates)
except StoppedError:
    pass
panel.RunFolder.close_epoch = close_epoch
dist.barrier()
keep("resumed", MAKERS[kind](**options, resume=True).fit(X, candidates))
dist.barrier()
dist.destroy_process_group()
os._exit(0)  # threads of gloo may abort a process that takes its time to end
"""


def launch(folder):
    """All runs of two processes, done at once: starting them is what takes time."""
    (folder / "driver.py").write_text(DRIVER)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    launcher += ["--nproc-per-node", "2", str(folder / "driver.py"), str(folder)]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        launcher,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_two_processes(tmp_path):
    launch(tmp_path)
    for name in [*RUNS, "whole", "resumed"]:
        assert_both_end_alike(tmp_path, name)
    assert_step_of_one_process(tmp_path)
    assert_resumed_equals_whole(tmp_path)


def assert_both_end_alike(folder, name):
    first, second = (load_file(folder / f"{name}{number}") for number in (0, 1))
    assert first.keys() == second.keys()
    assert any(key.endswith("confidence") for key in first)
    if name in ("pico", "whole", "resumed"):
        assert {"base.queue", "base.queue_labels", "base.prototypes"} <= first.keys()
    for key, value in first.items():
        assert torch.equal(value, second[key]), (name, key)
    records = [(folder / f"{name}{number}.json").read_text() for number in (0, 1)]
    assert records[0] == records[1]


def assert_step_of_one_process(folder):
    """A step of both on halves of a batch is the step of one process on all of it."""
    kind, options = RUNS["one_step"]
    X, candidates, _ = make_table()
    alone = state_of(MAKERS[kind](**options).fit(X, candidates))
    both = load_file(folder / "one_step0")
    for name, value in alone.items():
        torch.testing.assert_close(both[name], value, rtol=1e-5, atol=1e-6)
    untrained = state_of(MAKERS[kind](**options, learning_rate=1e-12).fit(X, candidates))
    name = "base.network.classifier.weight"
    assert (both[name] - untrained[name]).abs().max() > 1e-3  # it was a step


def assert_resumed_equals_whole(folder):
    """The checkpoint is the first process's, and both go on from it."""
    whole, resumed = (load_file(folder / f"{name}0") for name in ("whole", "resumed"))
    for name, value in whole.items():
        assert torch.equal(value, resumed[name]), name
    texts = [(folder / f"{name}0.json").read_text() for name in ("whole", "resumed")]
    assert texts[0] == texts[1]
    assert len((folder / "run" / "log.jsonl").read_text().splitlines()) == 4


def test_every_row_of_a_batch_is_taken_once(monkeypatch):
    from appellate.deep import trainer

    rows = np.arange(100, 112)
    monkeypatch.setattr(trainer, "n_processes", lambda: 3)
    shares = []
    for number in range(3):
        monkeypatch.setattr(trainer, "rank", lambda number=number: number)
        shares.append(_own_share(rows))
    assert [len(share) for share in shares] == [4, 4, 4]
    assert sorted(np.concatenate(shares)) == rows.tolist()
    few = [_own_share(np.array([5, 6, 7]))]
    assert [len(share) for share in few] == [2]  # at least two, for batch normalisation


def test_alone_nothing_is_gathered():
    assert (n_processes(), rank(), agreed(5)) == (1, 0, 5)
    tensor = torch.arange(3)
    assert gather_processes(tensor) is tensor
    X, candidates, _ = make_table()
    one, two = (proden(n_epochs=1).fit(X, candidates) for _ in range(2))
    assert timeless(one.history_) == timeless(two.history_)
