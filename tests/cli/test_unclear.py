"""``check`` and ``rectify`` on tables that can be read in several ways."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pytest

from appellate.cli.app import run
from appellate.tables import write_table
from tests.tables import crowds


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def soil(n=60):
    r = crowds.rng()
    sand, silt = r.integers(10, 60, n), r.integers(5, 40, n)
    return {
        "sand": sand,
        "silt": silt,
        "clay": 100 - sand - silt,
        "ph": np.where(np.arange(n) % 2, 4.5, 7.5) + r.random(n) / 9,
        "label": np.array(["wheat", "rice"])[np.arange(n) % 2],
    }


def commands(text):
    found = [line for line in text.splitlines() if line.strip().startswith("appellate rectify ")]
    return [shlex.split(line)[1:] for line in found]


def test_rectify_refuses_and_prints_both_commands(here, capsys):
    write_table(soil(), "my soil.csv")
    typed = ["--out", "found", "--random-state", "3", "--set", "max_rounds=2"]
    assert run(["rectify", "my soil.csv", *typed]) == 2
    said = capsys.readouterr()
    assert not said.out
    assert "or in 'label', which is named like labels" in said.err
    first, second = commands(said.err)
    assert first[:8] == [
        "rectify", "my soil.csv", "--counts", "sand", "--counts", "silt", "--counts", "clay",
    ]  # fmt: skip
    assert second[:4] == ["rectify", "my soil.csv", "--annotators", "label"]
    for command in (first, second):
        assert command[command.index("--random-state") + 1] == "3"
        assert command[command.index("--set") + 1] == "max_rounds=2"
        assert command[command.index("--out") + 1] == "found"
    assert run(["rectify", "my soil.csv", "--annotators", "label", "--out", "found"]) == 0


def test_check_shows_both_readings(here, capsys):
    write_table(soil(), "soil.csv")
    assert run(["check", "soil.csv"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("'soil.csv': unclear\n")
    assert "Reading 1: annotators' answers" in said
    assert "Reading 2: one label per row" in said
    both = commands(said)
    assert [command[2:4] for command in both] == [["--counts", "sand"], ["--annotators", "label"]]
    for command in both:
        assert run(command) == 0
    capsys.readouterr()
    assert run(["check", "soil.csv", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["kind"], document["roles"]) == ("unclear", None)
    assert [each["kind"] for each in document["readings"]] == ["answers", "plain"]
    compile(document["python"], "next", "exec")


@pytest.mark.parametrize("make", [crowds.votes, crowds.three_people, crowds.volunteers])
def test_rectify_refuses_what_check_proposes_until_it_is_said(here, capsys, make):
    write_table(make(), "t.csv")
    assert run(["check", "t.csv"]) == 0
    (proposed,) = commands(capsys.readouterr().out)
    assert run(["rectify", "t.csv", "--out", "t"]) == 2
    assert commands(capsys.readouterr().err) == [proposed]
    assert run(proposed) == 0


def test_nothing_to_decide_is_said_before_the_work(here, capsys):
    write_table({"x": np.arange(40) / 7, "label": ["a", "b"] * 20}, "t.csv")
    assert run(["rectify", "t.csv", "--candidates", "label", "--out", "o"]) == 2
    said = capsys.readouterr().err
    assert "every row has a single candidate, so no label can change" in said
    assert "--annotators" in said
    assert run(["rectify", "t.csv", "--annotators", "label", "--out", "o"]) == 0


def test_a_split_is_told_by_rectify(here, capsys):
    sets = [cell.replace("|", ",") for cell in crowds.make_sets()[0]]
    write_table({"x": np.arange(60) / 7, "names": sets}, "t.csv")
    assert run(["rectify", "t.csv", "--candidates", "names", "--out", "o"]) == 0
    assert "note: cells of 'names' are split at ','" in capsys.readouterr().err


def test_ids_are_told_and_not_learned_from(here, capsys):
    sets, _ = crowds.make_sets()
    table = {"x": np.arange(60) / 7, "patient_id": np.arange(60) % 20, "names": sets}
    write_table(table, "t.csv")
    assert run(["rectify", "t.csv", "--out", "o"]) == 0
    assert "note: ignored: 'patient_id' (an id)" in capsys.readouterr().err
    settings = json.loads((here / "o" / "run.json").read_text())["settings"]
    assert [feature["name"] for feature in settings["features"]] == ["x"]
    assert run(["rectify", "t.csv", "--features", "x,patient_id", "--out", "o"]) == 0


def test_a_truth_where_no_row_has_a_label(here, capsys):
    write_table({"c": ["?", "?", "?"], "f1": ["a", "b", "a"], "x": [1.5, 2.5, 0.5]}, "t.parquet")
    given = ["t.parquet", "--candidates", "c", "--truth", "f1", "--missing", "?"]
    assert run(["check", *given]) == 0
    assert "No row has a label" in capsys.readouterr().out
