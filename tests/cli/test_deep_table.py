"""`appellate deep table` on folders of real runs, of unfinished ones, and of no runs."""

from __future__ import annotations

import csv
import json
import shutil
import signal
import sys

import numpy as np
import pytest

from appellate.cli.app import run
from appellate.experiments.networks import sources
from tests.cli.test_deep import SMALL, make_arrays, read, stop_at

VARIANTS = {
    "base": ["--config", "proden-cifar10"],
    "coupled": ["--config", "proden-plcp-cifar10"],
    "control": ["--config", "proden-independent-cifar10"],
}
TITLES = {
    "base": "PRODEN",
    "coupled": "PRODEN-PLCP",
    "control": "two independent PRODENs",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Runs of three variants with two seeds, and the data."""
    home = tmp_path_factory.mktemp("runs")
    np.savez(home / "small.npz", **make_arrays(n=40, n_test=200))
    for variant, arguments in VARIANTS.items():
        for seed in (0, 1):
            train(home, variant, arguments, seed, 0)
    return home


def train(home, name, arguments, seed, code):
    given = [*arguments, *SMALL, "--set", "n_epochs=2", "--seed", str(seed)]
    given += ["--data", str(home / "small.npz"), "--out", str(home / f"{name}-{seed}")]
    assert run(["deep", "train", *given]) == code
    return home / f"{name}-{seed}"


def folders(home, *variants):
    return [str(home / f"{variant}-{seed}") for variant in variants for seed in (0, 1)]


def accuracies(home, variant):
    results = [read(home / f"{variant}-{seed}")["results"] for seed in (0, 1)]
    return [100 * each["test"]["accuracy"][each["head"]] for each in results]


def test_the_numbers_are_those_of_the_runs(home, capsys):
    assert run(["deep", "table", *folders(home, *VARIANTS), "--json"]) == 0
    said = capsys.readouterr()
    table = json.loads(said.out)["table"]
    means = {line["method"]: line["mean"] for line in table if line["against"] is None}
    for variant, title in TITLES.items():
        assert means[title] == pytest.approx(np.mean(accuracies(home, variant)))
    found = {(row["method"], row["against"]): row for row in table if row["against"]}
    difference = np.subtract(accuracies(home, "coupled"), accuracies(home, "base"))
    assert found["PRODEN-PLCP", "PRODEN"]["difference"] == pytest.approx(difference.mean())
    assert ("PRODEN-PLCP", "two independent PRODENs") in found
    assert all(row["paper_mean"] is None for row in table)  # other data


def test_text_and_files(home, capsys, tmp_path):
    given = ["deep", "table", *folders(home, "base", "coupled")]
    assert run(given) == 0
    said = capsys.readouterr().out
    mean, deviation = (f(accuracies(home, "base")) for f in (np.mean, lambda v: np.std(v, ddof=1)))
    assert f"{mean:.2f} ± {deviation:.2f}" in said
    assert "small.npz" in said
    assert "never of the best test epoch" in said
    for ending in ("md", "csv", "tex", "json"):
        path = tmp_path / "new" / f"table.{ending}"
        assert run([*given, "--out", str(path)]) == 0
        assert capsys.readouterr().out == said
        text = path.read_text(encoding="utf-8")
        assert "PRODEN-PLCP" in text
        if ending == "csv":
            rows = list(csv.DictReader(text.splitlines()))
            assert [row["against"] for row in rows] == ["", "", "PRODEN"]
            assert float(rows[0]["mean"]) == pytest.approx(mean, rel=1e-5)
        if ending == "json":
            assert run([*given, "--json"]) == 0
            assert json.loads(text) == json.loads(capsys.readouterr().out)


def test_all_heads(home, capsys):
    assert run(["deep", "table", *folders(home, "coupled"), "--heads", "--json"]) == 0
    table = json.loads(capsys.readouterr().out)["table"]
    scores = read(home / "coupled-0")["results"]["test"]["accuracy"]
    assert {line["head"] for line in table} == set(scores) == {"base", "partner", "mean"}


def test_unfinished_runs_are_named(home, tmp_path, capsys, monkeypatch):
    shutil.copy(home / "small.npz", tmp_path)
    with monkeypatch.context() as patch:
        stop_at(patch, 1, lambda: signal.raise_signal(signal.SIGINT))
        stopped = train(tmp_path, "stopped", VARIANTS["base"], 5, 130)
    capsys.readouterr()
    assert run(["deep", "table", str(home / "base-0"), str(stopped)]) == 0
    note = f"Left out: '{stopped}' is not finished (1 of 2 epochs). Resume it: appellate deep"
    assert note in capsys.readouterr().out
    assert run(["deep", "table", str(stopped)]) == 2
    said = capsys.readouterr()
    assert "none of the runs has a test accuracy" in said.err
    assert note in said.err
    assert not said.out


def test_smaller_runs_are_not_set_beside_the_paper(tmp_path, capsys, monkeypatch):
    def load(source, home):
        X = np.random.default_rng(0).integers(0, 256, (48, 3, 32, 32), dtype=np.uint8)
        y = np.arange(48) % 10
        return sources.RunData(X, None, np.arange(10).astype(str), y, X[:20], y[:20])

    monkeypatch.setattr(sources, "_load_images", load)
    small = ["--smoke", "--set", "n_epochs=1", "--set", "network=linear"]
    given = ["--config", "proden-cifar10", *small, "--out", str(tmp_path / "run")]
    assert run(["deep", "train", *given]) == 0
    capsys.readouterr()
    assert run(["deep", "table", str(tmp_path / "run"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["table"][0]["paper_mean"] is None
    (note,) = [note for note in document["notes"] if "not comparable" in note]
    assert "the paper's 89.12 ± 0.12" in note
    for part in ("n_epochs = 1, not 500", '"linear", not "convnet"', "48 training rows"):
        assert part in note
    assert any("SMOKE RUNS" in note for note in document["notes"])


def test_the_same_run_twice(home, tmp_path, capsys):
    once = str(home / "base-0")
    assert run(["deep", "table", once, once, "--json"]) == 0  # the same folder is one run
    assert json.loads(capsys.readouterr().out)["table"][0]["seeds"] == [0]
    shutil.copytree(once, tmp_path / "copy")
    assert run(["deep", "table", once, str(tmp_path / "copy")]) == 2
    said = capsys.readouterr()
    assert f"'{once}' and '{tmp_path / 'copy'}' are the same run" in said.err
    assert not said.out


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (None, "holds no run"),
        ("{", "is damaged"),
        ("{}", "not a record of a deep run"),
        ('{"format": "appellate-deep-run", "format_version": 99}', "newer version of Appellate"),
        ('{"format": "appellate-deep-run", "format_version": 1, "results": {}}', "has no 'data'"),
        ('{"format": "appellate-deep-run", "results": {"test": 1}}', "has no 'data'"),
        ('{"format": "appellate-deep-run", "format_version": 1}', "is not finished"),
    ],
)
def test_no_runs(record, message, home, tmp_path, capsys):
    folder = tmp_path / "folder"
    folder.mkdir()
    if record is not None:
        (folder / "run.json").write_text(record)
    arguments = [str(folder)] if record and record.endswith("1}") else [str(home / "base-0")]
    assert run(["deep", "table", *arguments, str(folder)]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert str(folder) in said.err
    assert not said.out


def test_files_that_will_not_do(home, tmp_path, capsys):
    given = ["deep", "table", str(home / "base-0"), "--out"]
    assert run([*given, str(tmp_path / "table.xls")]) == 2
    assert "must end in .md, .csv, .tex, .json" in capsys.readouterr().err
    (tmp_path / "table.md").mkdir()
    assert run([*given, str(tmp_path / "table.md")]) == 2
    assert "a folder has that name" in capsys.readouterr().err
    assert run(["deep", "table"]) == 2
    assert "DIR" in capsys.readouterr().err


def test_without_torch(monkeypatch, capsys, home):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert run(["deep", "table", str(home / "base-0")]) == 2
    assert "pip install 'appellate[deep]'" in capsys.readouterr().err
