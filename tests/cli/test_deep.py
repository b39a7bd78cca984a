"""`appellate deep`: a run from configuration to results, stopped, resumed, and misused."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

from appellate.cli import deep
from appellate.cli.app import run
from appellate.deep.checkpoint import load_tree, save_tree
from appellate.experiments.networks import runs, sources
from appellate.io import load_model
from tests.test_files import make_special

SMALL = ["--set", "network=mlp", "--set", "hidden=[8]", "--set", "batch_size=16"]
COUPLED = ["--config", "proden-plcp-cifar10", *SMALL, "--set", "n_epochs=4"]


def make_arrays(n=60, n_test=30, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n + n_test)
    X = (rng.normal(size=(len(y), 4)) + 3 * np.eye(3, 4)[y]).astype(np.float32)
    candidates = rng.random((n, 3)) < 0.3
    candidates[np.arange(n), y[:n]] = True
    return {
        "X": X[:n],
        "candidates": candidates,
        "y_true": y[:n],
        "X_test": X[n:],
        "y_test": y[n:],
        "class_names": np.array(["ant", "bee", "cow"]),
    }


@pytest.fixture(scope="module")
def npz(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "small.npz"
    np.savez(path, **make_arrays())
    return path


@pytest.fixture(scope="module")
def whole(npz, tmp_path_factory):
    """A coupled run that was not stopped."""
    folder = tmp_path_factory.mktemp("run") / "whole"
    assert run(["deep", "train", *COUPLED, "--data", str(npz), "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def images(monkeypatch):
    """Let the image sets be small."""

    def load(source, home):
        rng = np.random.default_rng(0)
        X = rng.integers(0, 256, (48, 3, 32, 32), dtype=np.uint8)
        y = np.arange(48) % 10
        given = rng.random((48, 10)) < 0.2 if source == "cifar10n" else None
        if given is not None:
            given[np.arange(48), y] = True
        return sources.RunData(X, given, np.arange(10).astype(str), y, X[:20], y[:20])

    monkeypatch.setattr(sources, "_load_images", load)


def read(folder):
    return json.loads((folder / "run.json").read_text(encoding="utf-8"))


def same_run(one, two):
    first, second = read(one), read(two)
    assert first["results"] == second["results"]
    assert (one / "docket.csv").read_bytes() == (two / "docket.csv").read_bytes()
    (left, right) = (load_model(folder / "model") for folder in (one, two))
    X = make_arrays()["X"]
    assert np.array_equal(left.predict_proba(X), right.predict_proba(X))


def test_the_folder_of_a_run(whole):
    assert {"run.json", "model", "docket.csv", "log.jsonl", runs.CHECKPOINT} <= {
        path.name for path in whole.iterdir()
    }
    record = read(whole)
    assert record["settings"]["hidden"] == [8]
    assert record["settings"]["momentum"] == 0.9
    assert record["candidates"]["truth_coverage"] == 1
    assert len(record["candidates"]["sha256"]) == 64
    assert record["sessions"][0]["versions"]["torch"]
    assert record["paper"] is None  # other data
    results = record["results"]
    assert set(results["test"]["accuracy"]) == {"base", "partner", "mean"}
    assert results["selected_by"] is None
    appeals, scores = results["training"]["appeals"], results["training"]["accuracy"]
    gain = (appeals["corrected"] - appeals["broken"]) / 60
    assert scores["mean"] - scores["base"] == pytest.approx(gain)
    log = (whole / "log.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["epoch"] for line in log] == [1, 2, 3, 4]
    with (whole / "docket.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 60
    assert {row["truth"] for row in rows} == {"ant", "bee", "cow"}


def test_results_can_be_recomputed(whole, capsys):
    assert run(["deep", "evaluate", str(whole), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == read(whole)
    assert run(["deep", "evaluate", str(whole)]) == 0
    said = capsys.readouterr().out
    for part in (
        "base",
        "partner",
        "(predicts)",
        "changed labels",
        "covering rate",
        "epoch 4 of 4",
    ):
        assert part in said


def test_a_finished_run_says_so(whole, capsys, npz):
    assert run(["deep", "resume", str(whole)]) == 0
    said = capsys.readouterr()
    assert "is already finished" in said.err
    assert "test accuracy" in said.out
    assert run(["deep", "train", *COUPLED, "--data", str(npz), "--out", str(whole)]) == 2
    assert f"appellate deep evaluate {whole}" in capsys.readouterr().err


class Killed(BaseException):
    """What nobody catches."""


def stop_at(monkeypatch, epoch, how):
    def listener(total):
        def listen(record):
            if record["epoch"] == epoch:
                how()

        return listen

    monkeypatch.setattr(deep, "_listener", listener)


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_stopped_and_resumed(sign, whole, npz, tmp_path, capsys, monkeypatch):
    folder = tmp_path / "stopped run"
    with monkeypatch.context() as patch:
        stop_at(patch, 2, lambda: signal.raise_signal(sign))
        assert run(["deep", "train", *COUPLED, "--data", str(npz), "--out", str(folder)]) == 130
    said = capsys.readouterr().err
    assert "Stopped after 2 of 4 epochs" in said
    assert f"appellate deep resume '{folder}'" in said
    assert run(["deep", "train", *COUPLED, "--data", str(npz), "--out", str(folder)]) == 2
    assert "appellate deep resume" in capsys.readouterr().err
    assert run(["deep", "evaluate", str(folder)]) == 2
    assert "is not finished (2 of 4 epochs)" in capsys.readouterr().err
    assert run(["deep", "resume", str(folder)]) == 0
    said = capsys.readouterr().err
    assert "epoch 3/4: loss" in said
    written = said.rpartition("wrote ")[2].partition(" to ")[0].split(", ")
    assert set(written) == {path.name for path in folder.iterdir()}
    same_run(whole, folder)
    assert len(read(folder)["sessions"]) == 2


def test_killed_and_resumed(whole, npz, tmp_path, monkeypatch):
    def die():
        raise Killed

    with monkeypatch.context() as patch:
        stop_at(patch, 3, die)
        with pytest.raises(Killed):
            run(["deep", "train", *COUPLED, "--data", str(npz), "--out", str(tmp_path / "run")])
    assert run(["deep", "resume", str(tmp_path / "run")]) == 0
    same_run(whole, tmp_path / "run")


def test_other_data_are_not_taken_up(npz, tmp_path, capsys, monkeypatch):
    mine = tmp_path / "mine.npz"
    mine.write_bytes(npz.read_bytes())
    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        stop_at(patch, 1, lambda: signal.raise_signal(signal.SIGINT))
        run(["deep", "train", *COUPLED, "--data", str(mine), "--out", str(folder)])
    capsys.readouterr()
    np.savez(mine, **make_arrays(seed=3))
    assert run(["deep", "resume", str(folder)]) == 2
    assert "candidate sets" in capsys.readouterr().err
    np.savez(mine, **make_arrays() | {"X": make_arrays(seed=3)["X"]})
    assert run(["deep", "resume", str(folder)]) == 2
    assert "other data or settings" in capsys.readouterr().err


def test_an_epoch_selected_without_the_truth(npz, tmp_path, capsys):
    more = ["--set", "validation_fraction=0.25", "--set", "selection=approximated_accuracy"]
    arguments = [*COUPLED, *more, "--data", str(npz), "--out", str(tmp_path / "run")]
    assert run(["deep", "train", *arguments]) == 0
    said = capsys.readouterr().out
    assert "selected by approximated_accuracy without true labels" in said
    assert "test accuracy, last epoch" in said
    assert "held-out rows" in said
    results = read(tmp_path / "run")["results"]
    assert 1 <= results["epoch"] <= 4
    assert results["held_out"]["covering_rate"] <= 1
    if results["epoch"] == 4:
        assert results["test"] == results["test_last_epoch"]


def test_without_truth(tmp_path, capsys):
    arrays = make_arrays()
    path = tmp_path / "plain.npz"
    np.savez(path, X=arrays["X"], candidates=arrays["candidates"])
    arguments = ["--config", "proden-cifar10", *SMALL, "--set", "n_epochs=1", "--data", str(path)]
    assert run(["deep", "train", *arguments, "--out", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().out
    assert "no test rows" in said
    assert "no true labels" in said
    assert "covering rate" in said


def test_smoke_with_base_and_coupled_on_the_same_candidates(images, tmp_path, capsys):
    more = ["--smoke", "--set", "n_epochs=1", "--set", "width=0.02", "--flip", "0.3"]
    records = {}
    for name in ("pico-cifar10", "pico-plcp-cifar10"):
        assert run(["deep", "train", "--config", name, *more, "--out", str(tmp_path / name)]) == 0
        said = capsys.readouterr()
        assert "SMOKE RUN" in said.err
        assert "SMOKE RUN" in said.out
        records[name] = read(tmp_path / name)
    base, coupled = records.values()
    assert base["candidates"] == coupled["candidates"]
    assert coupled["paper"] == {"mean": 94.53, "deviation": 0.1}
    assert "94.53 ± 0.10 %" in said.out
    assert "not comparable" in said.out
    assert coupled["smoke"]
    assert coupled["settings"]["queue_size"] == 512
    lines = (tmp_path / name / "docket.csv").read_text(encoding="utf-8").splitlines()
    ids = [row["id"] for row in csv.DictReader(lines)]
    assert sorted(map(int, ids)) == list(range(48))
    assert ids != sorted(ids, key=int)  # a random part, under its own row numbers


def test_candidate_sets_of_people_and_flips(images, tmp_path, capsys):
    def sets(*more):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        small = ["--smoke", "--set", "n_epochs=1", "--set", "network=linear", "--out", str(folder)]
        assert run(["deep", "train", "--config", "proden-cifar10", *small, *more]) == 0
        return read(folder)

    people = sets("--data", "CIFAR-10N")
    assert people["data"]["flip"] is None
    first, other = sets(), sets("--random-state", "1")
    assert first["data"]["flip"] == 0.1  # the least of the configuration
    assert first["candidates"]["sha256"] != other["candidates"]["sha256"]
    supervised = sets("--flip", "0", "--set", "partner=independent")
    assert supervised["candidates"]["mean_size"] == 1
    assert supervised["paper"]["mean"] == 90.03
    assert 'partner = "independent"' in supervised["changes"]
    assert sets("--data", "fashion-mnist")["paper"] is None


def test_two_processes(npz, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "appellate", "deep", "train", *COUPLED, "--set", "n_epochs=2"]
    processes = [
        subprocess.Popen(
            [*command, "--data", str(npz), "--out", str(tmp_path / "run")],
            env=os.environ
            | {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
            | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    (first, told), (second, silent) = (each.communicate(timeout=240) for each in processes)
    assert [each.returncode for each in processes] == [0, 0], told + silent
    assert "epoch 2/2: loss" in told
    assert "test accuracy" in first
    assert second == ""
    assert "epoch" not in silent
    assert read(tmp_path / "run")["sessions"][0]["processes"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config", "proden-cifar"], "Did you mean 'proden-cifar10'?"),
        (["--config", "none.toml"], "cannot read 'none.toml'"),
        (["--set", "learning_rte=1"], "Did you mean 'learning_rate'?"),
        (["--set", "learning_rate"], "is not NAME=VALUE"),
        (["--set", "learning_rate=-1"], "learning_rate"),
        (["--set", "network=resnet19"], "Unknown network 'resnet19'"),
        (["--set", "network=convnet"], "The rows are vectors"),
        (["--data", "cifar11"], "unknown data set 'cifar11'. Did you mean"),
        (["--data", "none.npz"], "cannot find the file"),
        (["--flip", "0.1"], "already has candidate sets"),
        (["--flip", "nan", "--data", "cifar10"], "not a probability"),
        (["--device", "warp"], "warp"),
        (["--set", "partner=both"], "'partner' parameter of Coupling must be"),
        (["--data", "cifar10", "--data-home", "/nowhere"], "cifar"),
    ],
)
def test_mistakes(arguments, message, npz, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("appellate.datasets.images.require_files", missing_files)
    folder = tmp_path / "run"
    given = ["--config", "proden-cifar10", "--data", str(npz), *SMALL, *arguments]
    assert run(["deep", "train", *given, "--out", str(folder)]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert ("The rows are vectors" in said.err) == ("network" in arguments[-1])
    assert not said.out
    assert not folder.exists()


def missing_files(*_, **__):
    raise FileNotFoundError("the files of cifar10 are not in the data home.")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": None}, "has no array 'X'"),
        ({"candidates": None}, "has no array 'candidates'"),
        ({"X": np.zeros((59, 4))}, "X has 59 rows, but candidates 60"),
        ({"X": np.zeros(60)}, "has shape (60,)"),
        ({"X": np.full((60, 4), np.nan)}, "NaN or infinite features in rows 0, 1"),
        ({"X": np.full((60, 4), "a")}, "not numbers"),
        ({"X": np.full((60, 4), None)}, "cannot be read"),
        ({"candidates": np.zeros((60, 3))}, "candidates"),
        ({"candidates": np.full((60, 3), 0.5)}, "candidates"),
        ({"y_true": np.full(60, 3)}, "no class of that name in rows 0"),
        ({"y_true": np.zeros((60, 2))}, "one label per row"),
        ({"y_test": None}, "must be given together"),
        ({"X_test": np.zeros((30, 5))}, "rows of X_test have shape (5,)"),
        ({"class_names": np.array(["a", "a", "b"])}, "3 different names"),
    ],
)
def test_bad_arrays(change, message, tmp_path, capsys):
    arrays = {k: v for k, v in (make_arrays() | change).items() if v is not None}
    path = tmp_path / "bad.npz"
    np.savez(path, **arrays)
    given = ["--config", "proden-cifar10", "--data", str(path), *SMALL]
    assert run(["deep", "train", *given, "--out", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "bad.npz" in said


def test_labels_by_name_or_number(tmp_path):
    arrays = make_arrays()
    for labels in (arrays["y_true"], arrays["class_names"][arrays["y_true"]]):
        path = tmp_path / "names.npz"
        np.savez(path, **arrays | {"y_true": labels})
        assert np.array_equal(sources.load_run_data(str(path), None).truth, arrays["y_true"])


def test_no_npz(tmp_path, capsys):
    given = ["deep", "train", "--config", "proden-cifar10", "--out", str(tmp_path / "run")]
    (tmp_path / "text.npz").write_text("no archive")
    assert run([*given, "--data", str(tmp_path / "text.npz")]) == 2
    assert "cannot be read as an NPZ file" in capsys.readouterr().err
    np.save(tmp_path / "one.npy", np.zeros(3))
    assert run([*given, "--data", str(tmp_path / "one.npy")]) == 2
    assert "numpy.savez" in capsys.readouterr().err


def test_folders_that_will_not_do(npz, tmp_path, capsys):
    given = ["deep", "train", *COUPLED, "--data", str(npz), "--out"]
    (tmp_path / "file").write_text("")
    assert run([*given, str(tmp_path / "file")]) == 2
    assert "a file is where a folder would have to be" in capsys.readouterr().err
    (tmp_path / "checkpoint.safetensors").write_text("")
    assert run([*given, str(tmp_path)]) == 2
    assert "the checkpoint of another run" in capsys.readouterr().err
    for command in ("resume", "evaluate"):
        assert run(["deep", command, str(tmp_path / "none")]) == 2
        assert "holds no run" in capsys.readouterr().err
        (tmp_path / "run.json").write_text("{")
        assert run(["deep", command, str(tmp_path)]) == 2
        assert "is damaged" in capsys.readouterr().err
        (tmp_path / "run.json").write_text("{}")
        assert run(["deep", command, str(tmp_path)]) == 2
        assert "not a record of a deep run" in capsys.readouterr().err


def test_a_loss_that_explodes(npz, tmp_path, capsys):
    given = [*COUPLED, "--data", str(npz), "--out", str(tmp_path / "run")]
    assert run(["deep", "train", *given, "--set", "learning_rate=1e30"]) == 2
    assert "Lower learning_rate" in capsys.readouterr().err


def test_without_torch(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert run(["deep", "resume", str(tmp_path)]) == 2
    assert "pip install 'appellate[deep]'" in capsys.readouterr().err


def test_configurations_are_listed_and_shown(capsys):
    assert run(["deep", "configs"]) == 0
    said = capsys.readouterr().out
    assert "proden-plcp-cifar100\n  PRODEN-PLCP; paper: flip 0: 65.52 %" in said
    assert "pico-independent-cifar10\n  Two independent PiCOs; not in the paper" in said
    assert run(["deep", "configs", "pico-cifar100"]) == 0
    said = capsys.readouterr().out
    assert 'network = "resnet18"' in said
    assert "flip 0.1: paper 69.91 ± 0.24 %, prototype_start = 100" in said
    assert run(["deep", "configs", "pico-independent-cifar100"]) == 0
    said = capsys.readouterr().out
    assert 'partner = "independent"' in said
    assert "flip 0.1: no figure, prototype_start = 100" in said


def test_help_and_list_do_not_load_torch():
    code = (
        "import sys\n"
        "from appellate.cli.app import run\n"
        "assert run(['deep', '--help']) == run(['deep', 'train', '--help']) == 0\n"
        "assert 'numpy' not in sys.modules\n"
        "assert run(['deep', 'configs']) == 0\n"
        "assert 'torch' not in sys.modules\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    assert max(map(len, said.stdout.splitlines())) <= 99


# -- folders that others have changed ----------------------------------------------------------


@pytest.fixture
def changed(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "changed")


def refused(command, folder, capsys):
    assert run(["deep", command, str(folder)]) == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    return said


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("settings", None, "settings is not a table"),
        ("settings", {}, "settings has no n_epochs"),
        ("seed", "x", "seed is 'x'"),
        ("data", {}, "data has no source"),
        ("method", "none", "unknown method 'none'"),
        ("candidates", {"sha256": 1}, "sha256 is '1'"),
        ("changes", [7], "an entry of changes is '7'"),
        ("results", 7, "results is not a table"),
    ],
)
def test_a_record_that_was_changed_is_named(name, value, message, changed, capsys):
    record = read(changed)
    results = value if name == "results" else None
    (changed / "run.json").write_text(json.dumps(record | {"results": results, name: value}))
    assert message in refused("resume", changed, capsys)


@pytest.mark.parametrize("text", ["[" * 200_000, '{"format_version": "x"}', "\xff"])
def test_a_record_that_is_nonsense_is_named(text, changed, capsys):
    (changed / "run.json").write_bytes(text.encode("latin-1"))
    for command in ("resume", "evaluate", "table"):
        assert "run.json" in refused(command, changed, capsys)


def change_state(folder, change):
    tree = load_tree(folder / "checkpoint.safetensors")
    change(tree["trainer"])
    save_tree(tree, folder / "checkpoint.safetensors")
    (folder / "run.json").write_text(json.dumps(read(folder) | {"results": None}))


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.pop("method"),
        lambda state: state.update(position=[10**30, 0]),
        lambda state: state.update(position=7),
        lambda state: state.update(history=[7]),
        lambda state: state.update(labels=state["labels"][:3]),
        lambda state: state.update(sums={"loss": state["labels"]}),
        lambda state: state.update(optimizer={}),
        lambda state: next(iter(state["method"].values())).resize_(1),
    ],
)
def test_a_checkpoint_that_was_changed_is_named(change, changed, capsys):
    change_state(changed, change)
    assert "checkpoint.safetensors' is damaged" in refused("resume", changed, capsys)


@pytest.mark.parametrize("kind", ["fifo", "/dev/zero", "/etc/passwd", "../elsewhere"])
@pytest.mark.parametrize(
    "name", ["run.json", "checkpoint.safetensors", "log.jsonl", "model", "docket.csv"]
)
def test_nothing_is_read_or_written_through_a_link(name, kind, changed, capsys):
    (changed / "run.json").write_text(json.dumps(read(changed) | {"results": None}))
    place = changed / name
    shutil.rmtree(place) if place.is_dir() else place.unlink()
    make_special(place, kind)
    assert f"{name}' is a" in refused("resume", changed, capsys)
    assert not (changed.parent / "elsewhere").exists()


def test_a_configuration_that_is_nested_deeply_is_named(tmp_path, capsys):
    (tmp_path / "a.toml").write_text("a=" + "[" * 5000)
    arguments = ["deep", "train", "--config", str(tmp_path / "a.toml"), "--out", str(tmp_path)]
    assert run(arguments) == 2
    assert "a.toml' is" in capsys.readouterr().err
