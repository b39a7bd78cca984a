"""The same awkward table means the same to every command and to Python."""

from __future__ import annotations

import json

import pytest

import appellate
from appellate.cli.app import run
from appellate.datasets import load_partial_csv
from appellate.experiments.problems import load_own
from appellate.tables import find_roles, read_labels, read_table
from tests.tables.test_awkward import TABLES


def by_check(path, capsys):
    assert run(["check", str(path), "--candidates", "c", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)["facts"]
    return facts["classes"], facts["mean_size"] * facts["rows"]


def by_load(path, _):
    data = load_partial_csv(path, candidates="c")
    return len(data.class_names), data.candidates.sum()


def by_compare(path, _):
    problem = load_own(str(path), candidates="c")
    return problem.candidates.shape[1], problem.candidates.sum()


def by_rectify(path, _):
    found = appellate.rectify(path, candidates="c", features="w", method="plcp", base="knn")
    sets = [cell.split("|") for cell in found.docket["candidates"]]
    return len({label for each in sets for label in each}), sum(map(len, sets))


MEANINGS = {
    "rectify": by_rectify,
    "check": by_check,
    "load_partial_csv": by_load,
    "compare": by_compare,
}


@pytest.mark.filterwarnings("ignore::appellate.NoteWarning")  # of three rows, and of readings
@pytest.mark.parametrize("who", MEANINGS)
@pytest.mark.parametrize("name", TABLES)
def test_classes_and_candidates(tmp_path, capsys, name, who):
    content, classes, _, _ = TABLES[name]
    path = tmp_path / "table.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    table = read_table(path)
    labels = read_labels(table, find_roles(table, candidates="c"))
    assert labels.class_names.tolist() == classes.split()
    found, size = MEANINGS[who](path, capsys)
    assert found == 3
    assert size == pytest.approx(labels.matrix.sum())


@pytest.mark.parametrize("name", TABLES)
def test_generate_hides_the_same_labels_and_keeps_the_rows(tmp_path, name, capsys):
    """With one label a row, as truth: its classes are those of the other commands."""
    content, _, _, notes = TABLES[name]
    content = content if isinstance(content, bytes) else content.encode()
    path, out = tmp_path / "table.csv", tmp_path / "out.csv"
    path.write_bytes(content)
    table = read_table(path)
    single = read_labels(table, find_roles(table, candidates="c", separator=""))
    assert run(["generate", "--from", str(path), "--truth", "c", "--separator", "~",
                "--flip", "1", "--out", str(out)]) == 0  # fmt: skip
    back = read_table(out)
    notes = notes.split() if isinstance(notes, str) else notes
    assert back.data.column("note").to_pylist() == notes
    assert back.texts("c").to_pylist() == table.texts("c").to_pylist()
    hidden = read_labels(back, find_roles(back, candidates="candidates", separator="~"))
    assert hidden.class_names.tolist() == single.class_names.tolist()
    assert hidden.matrix.all()


@pytest.mark.parametrize("name", TABLES)
def test_rows_come_back_from_rectify_and_predict(tmp_path, name, capsys):
    content, classes, _, notes = TABLES[name]
    path, out, new = tmp_path / "table.csv", tmp_path / "out", tmp_path / "new.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    options = ["--candidates", "c", "--features", "w", "--method", "plcp", "--base", "knn"]
    assert run(["rectify", str(path), *options, "--out", str(out)]) == 0
    assert run(["predict", str(out), str(path), "--out", str(new)]) == 0
    notes = notes.split() if isinstance(notes, str) else notes
    table = read_table(path)
    for file in (out / "rectified.csv", new):
        back = read_table(file)
        assert back.data.column("note").to_pylist() == notes
        assert back.texts("c").to_pylist() == table.texts("c").to_pylist()
        assert {*back.texts("label").to_pylist()} <= {*classes.split()}
