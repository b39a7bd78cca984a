"""A stopped run goes on as if it had never stopped, however it was stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import save_file  # noqa: E402

from appellate.deep import panel, settings  # noqa: E402
from appellate.deep.checkpoint import CheckpointError, load_tree, save_tree  # noqa: E402
from tests.deep.small import (  # noqa: E402
    MAKERS,
    assert_same_run,
    make_images,
    make_table,
    proden,
    state_of,
    timeless,
)

ROOT = Path(__file__).parents[2]


class StoppedError(Exception):
    """What ends a run in these tests."""


@pytest.fixture
def stop_after(monkeypatch):
    """Let a verbose run end after the checkpoint of an epoch; 0 lets it go on."""

    def set_epoch(epoch):
        def tell(record):
            if record["epoch"] == epoch:
                raise StoppedError

        monkeypatch.setattr(settings, "_tell", tell)

    return set_epoch


def read_log(folder):
    lines = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


CASES = {
    "alone": {},
    "coupled": {"partner": "non-candidate"},
    "twin": {"partner": "candidate", "schedule": "cosine", "optimizer": "adam"},
    "ensemble": {"partner": "independent", "schedule": "step", "decay_every": 1},
    "selected": {
        "partner": "non-candidate",
        "validation_fraction": 0.25,
        "selection": "covering_rate",
        "learning_rate": 0.5,
    },
    "dropped": {"partner": "non-candidate", "drop_last": True},
    "half": {"partner": "non-candidate", "precision": "float16"},
    "fused": {"optimizer": "adam", "fused": True, "norm": "after", "start": "torch"},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", MAKERS)
def test_resumed_run_equals_the_whole(kind, case, tmp_path, stop_after):
    X, candidates, _ = make_table()
    whole = MAKERS[kind](**CASES[case]).fit(X, candidates)

    def make(**more):
        return MAKERS[kind](**CASES[case], folder=tmp_path / "run", verbose=True, **more)

    stop_after(2)
    with pytest.raises(StoppedError):
        make().fit(X, candidates)
    assert len(read_log(tmp_path / "run")) == 2
    stop_after(0)
    resumed = make(resume=True).fit(X, candidates)
    assert_same_run(resumed, whole, X)
    assert resumed.n_iter_ == 4
    assert timeless(read_log(tmp_path / "run")) == timeless(whole.history_)
    if case == "selected":
        assert whole.best_epoch_ < 4  # else nothing is shown

    again = make(resume=True).fit(X, candidates)  # nothing is left to do
    assert_same_run(again, whole, X)


def test_resume_with_dropout_and_augmentation(tmp_path, stop_after):
    X, candidates = make_images(6, side=28)
    options = {"network": "convnet", "width": 0.02, "n_epochs": 2}
    options |= {"batch_size": 3, "augmentation": "simple", "partner": "non-candidate"}
    whole = proden(**options).fit(X, candidates)
    options |= {"folder": tmp_path, "verbose": True}
    stop_after(1)
    with pytest.raises(StoppedError):
        proden(**options).fit(X, candidates)
    stop_after(0)
    assert_same_run(proden(**options, resume=True).fit(X, candidates), whole, X)


def test_log_after_the_last_checkpoint_is_written_anew(tmp_path, stop_after):
    """Three epochs are logged but only two are in the checkpoint: the third is done again."""
    X, candidates, _ = make_table()
    options = {"folder": tmp_path, "checkpoint_every": 2, "verbose": True, "n_epochs": 5}
    stop_after(3)
    with pytest.raises(StoppedError):
        proden(**options).fit(X, candidates)
    assert [record["epoch"] for record in read_log(tmp_path)] == [1, 2, 3]
    stop_after(0)
    model = proden(**options, resume=True).fit(X, candidates)
    assert [record["epoch"] for record in read_log(tmp_path)] == [1, 2, 3, 4, 5]
    assert_same_run(model, proden(n_epochs=5).fit(X, candidates), X)


def test_every_step_may_be_the_last(tmp_path, monkeypatch):
    """Interrupted after each step in turn, also the last of an epoch, by Ctrl-C or SIGTERM."""
    X, candidates, _ = make_table()
    options = {"n_epochs": 2, "batch_size": 14, "partner": "non-candidate"}
    options |= {"folder": tmp_path}
    signs = [signal.SIGINT, signal.SIGTERM, signal.SIGINT, signal.SIGTERM, signal.SIGINT]
    before = [signal.getsignal(sign) for sign in signs[:2]]
    whole = proden(**options | {"folder": None}).fit(X, candidates)
    step = panel.Trainer._step
    done = []

    def interrupted(self, rows, x):
        if signs:
            signal.raise_signal(signs.pop(0))
        step(self, rows, x)  # the step is finished first
        done.append((self.epoch, self.batch))

    monkeypatch.setattr(panel.Trainer, "_step", interrupted)
    for number in range(5):
        with pytest.raises(KeyboardInterrupt):
            proden(**options, resume=number > 0).fit(X, candidates)
    model = proden(**options, resume=True).fit(X, candidates)
    assert done == [(epoch, batch) for epoch in (0, 1) for batch in (0, 1, 2)]
    assert_same_run(model, whole, X)
    assert [signal.getsignal(sign) for sign in (signal.SIGINT, signal.SIGTERM)] == before


def test_second_signal_does_not_wait(tmp_path, monkeypatch):
    X, candidates, _ = make_table()
    before = signal.getsignal(signal.SIGINT)

    def impatient(self, rows, x):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the second one must end it")

    monkeypatch.setattr(panel.Trainer, "_step", impatient)
    with pytest.raises(KeyboardInterrupt):
        proden(folder=tmp_path).fit(X, candidates)
    assert not (tmp_path / "checkpoint.safetensors").exists()
    assert signal.getsignal(signal.SIGINT) is before


def test_tensorboard_if_installed(tmp_path):
    pytest.importorskip("tensorboard")
    X, candidates, _ = make_table()
    proden(n_epochs=1, folder=tmp_path).fit(X, candidates)
    assert list((tmp_path / "tensorboard").glob("events*"))


DRIVER = """
import os, signal, sys
import torch
torch.set_num_threads(1)
from appellate.deep import checkpoint
from tests.deep.small import make_table, pico

written, when, where = 0, int(sys.argv[2]), sys.argv[3]
save_file, replace = checkpoint.save_file, os.replace

def half_saved(tensors, path, metadata):
    global written
    save_file(tensors, path, metadata=metadata)
    written += 1
    if written == when and where == "write":
        size = os.path.getsize(path)
        os.truncate(path, size // 2)
        os.kill(os.getpid(), signal.SIGKILL)

def not_replaced(source, target):
    if written == when and where == "move" and target.name.startswith("checkpoint"):
        os.kill(os.getpid(), signal.SIGKILL)
    replace(source, target)

checkpoint.save_file, os.replace = half_saved, not_replaced
X, candidates, _ = make_table()
pico(partner="non-candidate", folder=sys.argv[1]).fit(X, candidates)
"""


@pytest.mark.parametrize(
    ("when", "where"), [pytest.param(1, "move", marks=pytest.mark.slow), (3, "write")]
)
def test_killed_while_it_writes(tmp_path, when, where):
    X, candidates, _ = make_table()
    killed = subprocess.run(
        [sys.executable, "-c", DRIVER, str(tmp_path), str(when), where],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    path = tmp_path / "checkpoint.safetensors"
    (half,) = tmp_path.glob(".appellate-*")
    assert path.exists() == (when > 1)
    if when > 1:  # that of the epoch before, whole
        assert load_tree(path)["trainer"]["position"] == [when - 1, 0]
        with pytest.raises(CheckpointError):
            load_tree(half)
    make = MAKERS["pico"]
    resumed = make(partner="non-candidate", folder=tmp_path, resume=True).fit(X, candidates)
    assert_same_run(resumed, make(partner="non-candidate").fit(X, candidates), X)
    assert not half.exists()


# -- what is refused --------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    X, candidates, _ = make_table()
    proden(n_epochs=1, folder=folder).fit(X, candidates)
    return folder


def other_features(X, y):
    X = X.copy()
    X[3, 2] += 1e-3
    return X, y


def other_sets(X, y):
    y = y.copy()
    y[5] = True
    return X, y


@pytest.mark.parametrize("change", [other_features, other_sets, lambda X, y: (X[:-1], y[:-1])])
def test_checkpoint_of_other_data_is_refused(finished, change):
    X, candidates, _ = make_table()
    with pytest.raises(CheckpointError, match="other data or settings"):
        proden(n_epochs=1, folder=finished, resume=True).fit(*change(X, candidates))


@pytest.mark.parametrize(
    "change",
    [
        {"random_state": 1},
        {"n_epochs": 2},
        {"learning_rate": 0.1},
        {"hidden": (9,)},
        {"network": "linear"},
        {"partner": "non-candidate"},
        {"validation_fraction": 0.2},
        {"precision": "bfloat16"},
        {"drop_last": True},
        {"start": "torch"},
    ],
)
def test_checkpoint_of_other_settings_is_refused(finished, change):
    X, candidates, _ = make_table()
    options = {"n_epochs": 1, "folder": finished, "resume": True} | change
    with pytest.raises(CheckpointError, match="other data or settings"):
        proden(**options).fit(X, candidates)


def test_supervision_belongs_to_the_run(finished):
    X, candidates, truth = make_table()
    supervision = np.eye(4)[truth]
    with pytest.raises(CheckpointError, match="other data or settings"):
        proden(n_epochs=1, folder=finished, resume=True).fit(
            X, candidates, supervision=supervision
        )


def test_where_and_how_it_is_run_may_change(finished):
    X, candidates, _ = make_table()
    options = {"n_epochs": 1, "folder": str(finished), "resume": True}
    for change in ({"verbose": True}, {"device": torch.device("cpu")}, {"checkpoint_every": 3}):
        model = proden(**options | change).fit(X, candidates)
        assert model.n_iter_ == 1  # the epoch of the checkpoint; none was run again
        assert len((finished / "log.jsonl").read_text().splitlines()) == 1


def test_checkpoint_in_the_way_is_an_error(finished):
    X, candidates, _ = make_table()
    before = (finished / "checkpoint.safetensors").read_bytes()
    with pytest.raises(FileExistsError, match="resume=True, or name another folder"):
        proden(n_epochs=1, folder=finished).fit(X, candidates)
    assert (finished / "checkpoint.safetensors").read_bytes() == before


def test_resume_without_checkpoint_starts(tmp_path):
    X, candidates, _ = make_table()
    model = proden(folder=tmp_path / "new", resume=True).fit(X, candidates)
    assert_same_run(model, proden().fit(X, candidates), X)


def test_folder_that_cannot_be_made(tmp_path):
    X, candidates, _ = make_table()
    (tmp_path / "file").write_text("")
    for run_dir in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(OSError, match="file"):
            proden(folder=run_dir).fit(X, candidates)


# -- the file ---------------------------------------------------------------------------


def test_tree_comes_back(tmp_path):
    tree = {
        "numbers": {0: torch.arange(3), 2: {"deep": torch.rand(2, 3).T}},
        "list": [1, 0.1, None, True, "text", [torch.tensor(3.0)]],
        "pair": (0.95, 0.8),
        "half": torch.ones(2, dtype=torch.bfloat16),
        "empty": {},
    }
    save_tree(tree, tmp_path / "tree")
    found = load_tree(tmp_path / "tree")
    assert list(found) == list(tree)
    assert found["list"][:5] == tree["list"][:5]
    assert found["pair"] == [0.95, 0.8]
    assert found["empty"] == {}
    assert torch.equal(found["list"][5][0], tree["list"][5][0])
    assert torch.equal(found["numbers"][0], tree["numbers"][0])
    assert torch.equal(found["numbers"][2]["deep"], tree["numbers"][2]["deep"])
    assert found["half"].dtype == torch.bfloat16


def test_same_tensor_twice(tmp_path):
    """As two layers of a user's network that share their weights."""
    tensor = torch.rand(3)
    save_tree({"one": tensor, "two": tensor}, tmp_path / "tree")
    found = load_tree(tmp_path / "tree")
    assert torch.equal(found["one"], tensor)
    assert torch.equal(found["two"], tensor)


def test_failed_write_leaves_the_file_before(tmp_path, monkeypatch):
    path = tmp_path / "tree"
    save_tree({"value": 1}, path)
    with pytest.raises((TypeError, ValueError)):
        save_tree({"value": object()}, path)
    with pytest.raises(ValueError, match="not JSON compliant"):
        save_tree({"value": float("nan")}, path)

    def full(descriptor):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        save_tree({"value": 2}, path)
    assert load_tree(path) == {"value": 1}


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "foreign", "not a tree"])
def test_damaged_file_is_named(tmp_path, damage):
    path = tmp_path / "tree"
    save_tree({"value": torch.rand(100)}, path)
    whole = path.read_bytes()
    if damage == "foreign":
        save_file({"weight": torch.ones(2)}, path)
    elif damage == "not a tree":
        save_file({"weight": torch.ones(2)}, path, metadata={"tree": "{"})
    else:
        path.write_bytes({"cut": whole[:-50], "empty": b"", "text": b"hello " * 30}[damage])
    with pytest.raises(CheckpointError, match=r"tree' is damaged or was not written by appell"):
        load_tree(path)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_tree(tmp_path / "nowhere")


def test_damaged_checkpoint_is_not_written_over(tmp_path):
    X, candidates, _ = make_table()
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(CheckpointError, match="damaged"):
        proden(folder=tmp_path, resume=True).fit(X, candidates)
    assert path.read_bytes() == b"not a checkpoint"


def test_checkpoint_holds_everything(tmp_path):
    X, candidates, _ = make_table()
    model = MAKERS["pico"](partner="non-candidate", folder=tmp_path).fit(X, candidates)
    trainer = load_tree(tmp_path / "checkpoint.safetensors")["trainer"]
    names = {"queue", "queue_labels", "position", "prototypes", "confidence"}
    assert {f"base.{name}" for name in names} <= trainer["method"].keys()
    for name, value in state_of(model).items():
        assert torch.equal(value, trainer["method"][name])
    assert trainer["optimizer"]["state"][0]["momentum_buffer"].any()
    assert trainer["position"] == [4, 0]
