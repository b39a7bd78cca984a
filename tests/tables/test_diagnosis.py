"""The diagnosis: which kind of labels, why, and what to type next."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pandas as pd
import pytest

from appellate.tables import TableError, diagnose, find_roles, read_table, write_table
from tests.tables import crowds

KINDS = {
    crowds.titanic: "partial-label",
    crowds.dog_answer: "answers",
    crowds.kern_long: "answers",
    crowds.dog_wide: "answers",
    crowds.dog_wide_numbers: "answers",
    crowds.dog_wide_marks: "answers",
    crowds.three_people: "answers",
    crowds.tweet_counts: "answers",
    crowds.votes: "answers",
    crowds.tweets: "partial-label",
    crowds.feature_called_y: "partial-label",
    crowds.prodigy: "partial-label",
    crowds.pictures: "partial-label",
    crowds.taxis: "partial-label",
    crowds.earlier_run: "partial-label",
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def follow(command):
    """Read the table as a pasted command does; return the roles and where it would write."""
    words = shlex.split(command)
    assert words[:2] == ["appellate", "rectify"]
    path, given, words = words[2], {}, words[3:]
    while words:
        word = words.pop(0)
        assert word.startswith("--")
        name, _, value = word[2:].partition("=")
        given.setdefault(name, []).append(value or words.pop(0))
    (out,) = given.pop("out")
    single = {"id", "truth", "image", "separator", "delimiter", "encoding", "decimal", "sheet"}
    given = {k: v[0] if k in single else v for k, v in given.items()}
    reading = {
        k: given.pop(k) for k in ("delimiter", "encoding", "decimal", "sheet") if k in given
    }
    table = read_table(path, **reading)
    return find_roles(table, **given), out


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "xlsx"])
def test_real_tables_and_the_command_that_is_proposed(here, make, ending):
    name = f"my table.{ending}"
    if ending == "xlsx":
        pd.DataFrame(make()).to_excel(name, index=False)
    else:
        write_table(make(), name)
    (here / "mytable").mkdir()
    found = diagnose(name)
    assert found.kind == KINDS[make], found
    assert not found.problems
    roles, out = follow(found.command)
    assert out == "mytable-2"
    for role in ("labels", "separator", "id", "truth", "image", "text", "missing", "features"):
        assert getattr(roles, role) == getattr(found.roles, role), role
    json.dumps(found.to_dict(), allow_nan=False)
    assert found.command in str(found)


def test_python_that_is_proposed(here):
    write_table(crowds.tweets(), "a.csv")
    line = diagnose("a.csv").python.splitlines()[-1]
    assert line == (
        "run = appellate.rectify('a.csv', candidates='votes', id='tweet_id', truth='truth', "
        "text='tweet')"
    )
    frame = diagnose(pd.DataFrame(crowds.titanic()))
    assert frame.command is None
    assert "appellate.rectify(table, candidates='maybe'" in frame.python


@pytest.mark.parametrize("title", ["a b", "-x", "it's", "w*", "a,b", "$HOME", "=x", "[1]", "é"])
def test_odd_titles_and_names_of_files_are_quoted(here, title):
    sets, truth = crowds.make_sets()
    pd.DataFrame({title: sets, f"{title} truth": truth, "x": np.arange(60) / 7}).to_csv(
        here / "-odd $x.csv", index=False
    )
    found = diagnose("-odd $x.csv", candidates=[title], truth=f"{title} truth")
    roles, out = follow(found.command)
    assert roles.candidates == (title,)
    assert roles.truth == f"{title} truth"
    assert not out.startswith("-")


def test_how_a_file_was_read_is_part_of_the_command(here):
    sets, _ = crowds.make_sets()
    frame = pd.DataFrame({"x": np.arange(60) / 7, "straße": sets})
    frame.to_csv("a.csv", sep="\t", encoding="cp437", index=False)
    found = diagnose(read_table("a.csv", encoding="cp437", delimiter="\\t"))
    assert "--encoding cp437" in found.command
    assert follow(found.command)[0].candidates == ("straße",)


def test_shards_are_read_by_the_command_too(here):
    (here / "shards").mkdir()
    frame = pd.DataFrame(crowds.titanic())
    for i in range(3):
        frame.iloc[i * 20 : i * 20 + 20].to_parquet(f"shards/{i}.parquet")
    for source in ("shards", "shards/*.parquet"):
        found = diagnose(source)
        roles, out = follow(found.command)
        assert roles.candidates == ("maybe",)
        assert not (here / out).exists()


def test_plain_and_wrong_labels():
    r = crowds.rng()
    truth = r.choice(["a", "b"], 50)
    x = r.normal(size=50)
    found = diagnose({"x": x, "label": truth})
    assert found.kind == "plain"
    assert found.command is None
    assert "any classifier of scikit-learn" in found.python
    assert "rectify(table, annotators=['label'])" in found.python
    wrong = np.where(np.arange(50) < 5, "a", truth)
    found = diagnose({"x": x, "label": wrong, "truth": truth})
    assert found.kind == "noisy"
    assert "not the true label in" in found.reason
    assert "rectify(table, annotators=['label'], truth='truth')" in found.python
    people = {"rater1": truth, "rater2": truth, "x": x}
    assert diagnose(people).kind == "plain"


def test_all_labels_of_a_set_are_true():
    found = diagnose({"x": [1.5, 2.5], "c": ["a|b", "b"], "truth": ["a|b", "b"]})
    assert found.kind == "multi-label"
    assert "OneVsRestClassifier" in found.python
    empty = diagnose({"x": np.arange(20) / 3, "c": ["a|b", "b", "", "c"] * 5})
    assert empty.kind == "multi-label"
    assert not empty.problems


def test_noisy_sets_and_missing_truths_are_said():
    columns = {"x": np.arange(4) / 3, "c": ["a|b", "b", "a|c", "c"], "truth": ["a", "a", "", "c"]}
    found = diagnose(columns)
    assert found.facts["truth_coverage"] == pytest.approx(2 / 3)
    assert "among them in" in found.reason
    assert "no true label in row 2. Accuracy is for the other rows." in found.notes


def test_slips_of_the_pen_are_said():
    cells = ["Third|Second"] * 5 + ["Thrid|First"] + ["first|First"] * 4 + ["class1", "class2"] * 3
    found = diagnose({"x": np.arange(16) / 3, "c": cells})
    said = " ".join(found.notes)
    assert "'Thrid' occurs once and is close to 'Third'" in said
    assert "differ in upper and lower case alone: 'First' and 'first'" in said
    assert "class" not in said


def test_problems_are_named():
    found = diagnose({"x": ["u"] * 30, "c": ["a|b", "b", "a"] * 9 + ["a", "", "b"]})
    assert any("no label in row 28" in p for p in found.problems)
    assert any("No feature column is left" in p for p in found.problems)
    assert "Fix these first" in str(found)


def test_a_row_that_nobody_answered_needs_no_mending():
    columns = crowds.three_people()
    for person in ("ann", "ben", "cleo"):
        columns[person][7] = None
    found = diagnose(columns)
    assert found.facts["empty"] == 1
    assert found.problems == []


def test_features_that_differ_within_few_items_are_noted():
    columns = crowds.dog_answer()
    columns["width"] = columns["question"] / 7
    columns["width"][5] = 0.01
    assert any("'width' differs between the rows" in note for note in diagnose(columns).notes)


@pytest.mark.parametrize(("labels", "expected"), [("12345", True), ("12", False), ("abc", False)])
def test_a_cost_is_proposed_for_labels_that_are_numbers(labels, expected):
    rng = np.random.default_rng(0)
    truth = rng.integers(len(labels), size=60)
    people = {
        name: [labels[k] if rng.random() < 0.8 else labels[0] for k in truth]
        for name in ("ann", "ben", "cleo")
    }
    notes = diagnose({"x": rng.normal(size=60), **people}, annotators=list(people)).notes
    assert any("cost='absolute'" in note for note in notes) == expected


def test_escape_sequences_do_not_reach_the_terminal():
    sets, _ = crowds.make_sets()
    hostile = [s.replace("First", "F\x1b[31m\x07") for s in sets]
    found = diagnose({"x\x1b]0;t\x07": np.arange(60) / 7, "c": hostile, "C": hostile})
    assert "\x1b" not in str(found)


def test_no_labels():
    with pytest.raises(TableError, match="no label column found"):
        diagnose({"a": [1.5, 2.5]})
