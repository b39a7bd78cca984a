"""Roles: what columns are, guessed from their cells or given."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from appellate.tables import TableError, find_roles, read_labels, read_table, write_table
from appellate.tables.reading import Table
from appellate.tables.roles import find_readings
from tests.tables import crowds


@pytest.mark.parametrize("make", crowds.EXPECTED, ids=lambda make: make.__name__)
@pytest.mark.parametrize("kind", ["frame", "csv"])
def test_every_column_finds_its_role(make, kind, tmp_path):
    table = read_table(make())
    if kind == "csv":
        table = read_table(write_table(table, tmp_path / "a.csv"))
    found = find_readings(table)
    (roles,) = found.roles
    assert bool(found.doubt) == (make in crowds.PROPOSED)
    expected = dict(crowds.EXPECTED[make])
    if kind == "csv" and make is crowds.prodigy:
        expected["ignore"] = ("_input_hash", "_task_hash", "answer")  # one value: no object
        roles = find_roles(table, ignore="meta")
    for role in ("candidates", "annotators", "long", "counts", "text", "features", "missing"):
        assert getattr(roles, role) == expected.get(role, ()), role
    for role in ("id", "truth", "image"):
        assert getattr(roles, role) == expected.get(role), role
    assert {*roles.ignore} - {"meta"} == {*expected.get("ignore", ())} - {"meta"}
    shown = str(roles)
    folded = [line.split(" ... ")[0].strip() for line in shown.splitlines() if " ... " in line]
    for name in table.names:
        assert roles.reasons[name]
        stem = name.rstrip("0123456789")
        assert name in shown or any(each.startswith(stem) for each in folded)


def test_roles_are_printed_as_a_table():
    table = read_table({"maybe": ["a|b", "b", "a|c"], "w\x1b": [1.5, 0.5, 2.5], "k": ["x"] * 3})
    assert str(find_roles(table)).splitlines() == [
        "maybe  candidates  several labels per cell, separated by '|'",
        "w\\x1b  feature     numbers",
        "k      ignored     constant",
    ]


def test_many_columns_alike_share_a_line():
    r = crowds.rng()
    pixels = {f"p{i}": r.random(9) for i in range(64)}
    shown = str(find_roles(read_table({**pixels, "c": ["a|b", "b", "a"] * 3})))
    assert shown.splitlines()[1] == "p0 ... p63 (64)  feature     numbers"


@pytest.mark.parametrize("kind", ["frame", "csv"])
def test_no_distinct_texts_of_measurements_are_counted(kind, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    columns = {"weight": rng.normal(size=400), "height": rng.normal(size=400).round(3)}
    table = read_table(columns | {"names": ["a|b", "b", "a|c", "c"] * 100})
    if kind == "csv":
        table = read_table(write_table(table, tmp_path / "a.csv"))
    counted, plain = [], Table.texts
    monkeypatch.setattr(
        Table, "texts", lambda self, name: counted.append(name) or plain(self, name)
    )
    roles = find_roles(table)
    assert roles.features == ("weight", "height")
    assert "names" in counted
    assert not {"weight", "height"} & {*counted}


def test_what_is_given_counts():
    table = read_table(crowds.titanic())
    roles = find_roles(
        table, candidates="maybe", features=["a*", "sex"], id=False, truth=False, text=False
    )
    assert roles.features == ("age", "alone", "sex")
    assert roles.id is roles.truth is None
    assert roles.ignore["embarked"] == "not among the specified features"
    roles = find_roles(table, ignore="age,sex")
    assert roles.features == ("alone", "embarked")
    assert roles.ignore == {"age": "specified", "sex": "specified"}
    frame = pd.DataFrame(crowds.titanic())
    assert find_roles(table, ignore=frame.columns[3:5]).features == ("alone", "embarked")
    roles = find_roles(table, features="PassengerId")
    assert roles.id is None
    assert roles.features == ("PassengerId",)


def test_text_can_be_given_and_refused():
    table = read_table(crowds.tweets())
    assert find_roles(table, text=False).text == ()
    assert find_roles(table, text="tweet").reasons["tweet"] == "specified"
    assert find_roles(table, features=["tweet_id"]).text == ()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"candidates": "mabye"}, r"no column 'mabye' \(candidates\)\. Did you mean 'maybe'"),
        ({"truth": "maybe", "candidates": "maybe"}, "named by candidates= and by truth="),
        ({"candidates": "maybe", "annotators": ["sex", "class"]}, "Give one of them"),
        ({"long": ["maybe"]}, "needs the columns item, label"),
        (
            {"features": "class", "truth": "class"},
            "'class' is not a feature: its role is truth",
        ),
        ({"features": "nothing*"}, "has no column 'nothing"),
    ],
)
def test_what_does_not_fit_is_said(given, said):
    with pytest.raises(TableError, match=said):
        find_roles(read_table(crowds.titanic()), **given)


def test_without_labels():
    with pytest.raises(TableError, match=r"no label column found\. Name it with candidates="):
        find_roles(read_table({"a": [1.5, 2.5], "b": [0.5, 1.5]}))


def test_prose_is_never_labels():
    table = read_table({"label": crowds.make_tweets(50), "x": np.arange(50) / 7})
    with pytest.raises(TableError, match="no label column found"):
        find_roles(table)


def test_the_role_of_a_column_that_is_no_feature_is_named():
    table = read_table({"a": [1, 2, 3], "data": ["p", "q", "r"], "c": ["x|y", "x", "y"]})
    with pytest.raises(TableError, match="'a' is not a feature: its role is ignore"):
        find_roles(table, candidates="c", id="data", ignore="a", features="a")


def test_features_are_no_people():
    r = crowds.rng()
    pixels = {f"p{i}": r.integers(0, 17, 80) for i in range(16)}
    answers = {f"q{i}": r.choice(["yes", "no"], 80) for i in range(6)}
    roles = find_roles(read_table({**pixels, **answers, "label": r.choice(["a", "b"], 80)}))
    assert roles.candidates == ("label",)
    assert len(roles.features) == 22


def test_labels_in_disguise_are_no_features():
    sets, truth = crowds.make_sets()
    r = crowds.rng()
    codes = {"First": 1, "Second": 2, "Third": 3}
    numbered = ["|".join(str(codes[s]) for s in row.split("|")) for row in sets]
    table = read_table({"c": sets, "kind": truth, "x": r.normal(size=60)})
    assert "holds labels of this table" in find_roles(table).ignore["kind"]
    grey = r.integers(1, 4, 60)
    table = read_table({"c": numbered, "kind": [codes[t] for t in truth], "grey": grey})
    roles = find_roles(table)
    assert roles.features == ("grey",)
    assert "holds labels" in roles.ignore["kind"]


def test_two_columns_of_sets_are_said():
    sets, _ = crowds.make_sets()
    roles = find_roles(read_table({"tags": sets, "more": sets[::-1]}))
    assert roles.candidates == ("tags",)
    assert "'more' could hold candidates too" in roles.notes[0]


def test_ids_that_are_no_numbers_to_learn_from():
    sets, _ = crowds.make_sets()
    r = crowds.rng()
    columns = {
        "c": sets,
        "acid": r.random(60),
        "task_key": r.permutation(10**6)[:60],
        "big": r.integers(2**60, 2**62, 60),
        "price": r.permutation(10**6)[:60],
    }
    roles = find_roles(read_table(columns), id=False)
    assert roles.features == ("acid", "price")
    assert {*roles.ignore} == {"task_key", "big"}


def test_roles_as_a_document():
    import json

    roles = find_roles(read_table(crowds.titanic()))
    assert json.loads(json.dumps(roles.to_dict()))["truth"] == "class"
    assert roles.layout == "candidates"
    assert roles.labels == ("maybe",)


def test_what_recurs_is_no_crowd():
    r = crowds.rng()
    labels = ["cat", "dog", "cow"]
    visits = [(f"p{i}", f"v{k}", labels[i % 3], r.normal()) for i in range(30) for k in range(3)]
    table = dict(
        zip(("patient_id", "visit", "label", "x"), zip(*visits, strict=True), strict=True)
    )
    assert find_roles(read_table(table)).candidates == ("label",)
    item, person, _ = crowds.make_answers()
    noise = {"shop": item.astype(str), "town": person.astype(str), "label": r.choice(labels, 120)}
    assert find_roles(read_table(noise)).candidates == ("label",)
    numbers = {"height": item, "width": person, "label": np.array(labels)[item % 3]}
    assert find_roles(read_table(numbers)).candidates == ("label",)


def test_what_is_known_of_a_person_is_no_person():
    r = crowds.rng()
    known = {"user_age": r.integers(18, 60, 80), "user_level": r.integers(1, 6, 80)}
    roles = find_roles(read_table({**known, "label": r.choice(["a", "b"], 80)}))
    assert roles.candidates == ("label",)
    assert roles.features == ("user_age", "user_level")
    graders = {"grader_1": known["user_level"], "grader_2": known["user_level"][::-1]}
    assert find_roles(read_table(graders)).annotators == ("grader_1", "grader_2")


def test_what_is_known_of_a_person_or_of_an_answer_is_no_label():
    r = crowds.rng()
    items, people = np.divmod(np.arange(240), 4)
    people = (people * 5 + items) % 20
    said = np.where(r.random(240) < 0.8, items % 3, r.integers(3, size=240))
    known = {"country": np.array(["US", "IN"])[people % 2], "sure": r.integers(1, 6, 240)}
    answers = {"item_id": items, "worker_id": people, **known, "sentiment": said}
    assert find_roles(read_table(answers)).long == ("item_id", "sentiment", "worker_id")


@pytest.mark.parametrize("person", ["moderator", "PROLIFIC_PID"])
def test_people_of_other_trades_are_known(person):
    said = np.array(["ok", "spam"])[np.arange(120) // 4 % 2]
    said[::7] = "ok"
    answers = {"comment": np.char.add("c", (np.arange(120) // 4).astype(str)), "decision": said}
    answers |= {person: np.char.add("m", (np.arange(120) % 12).astype(str)), "ms": np.arange(120)}
    assert find_roles(read_table(answers)).long == ("comment", "decision", person)


def test_sets_beside_the_truth_are_no_two_people():
    said = {"maybe": ["flu / cold", "cold", "flu"] * 20, "found": ["flu", "cold", "flu"] * 20}
    with pytest.raises(TableError, match="cells of 'maybe' hold several labels each"):
        find_roles(read_table(said))


def test_how_sure_people_are_is_no_answer():
    r = crowds.rng()
    said = {f"rater{k}": np.array(["a", "b", "c"])[np.arange(90) % 3] for k in (1, 2, 3)}
    for name in said:
        said[name] = np.where(r.random(90) < 0.8, said[name], "a")
    sure = {f"{name}_confidence": r.integers(1, 6, 90) for name in said}
    roles = find_roles(read_table(said | sure))
    assert roles.annotators == tuple(said)
    assert roles.features == tuple(sure)


def test_labels_that_are_numbered_are_of_several_people():
    r = crowds.rng()
    truth = np.array(["a", "b", "c"])[np.arange(90) % 3]
    said = {f"label_{k}": np.where(r.random(90) < 0.8, truth, "a") for k in (1, 2)}
    for joint in ("final_label", "consensus"):
        roles = find_roles(read_table(said | {joint: truth}))
        assert roles.annotators == tuple(said)
        assert "truth=" in roles.ignore[joint]
    levels = {f"label_{k}": np.char.add(f"{k}", truth) for k in (1, 2)}
    assert find_roles(read_table(levels)).candidates == ("label_1",)


@pytest.mark.parametrize("mark", [", ", "; ", " | ", "', '"])
def test_large_sets_are_no_prose(mark):
    r = crowds.rng()
    names = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight"])
    sets = [mark.join(names[r.random(9) < 0.5]) or "one" for _ in range(90)]
    if "'" in mark:
        sets = [f"['{cell}']" for cell in sets]
    prose = [" ".join([*r.choice(names, 6), f"{i}, so"]) for i in range(90)]
    roles = find_roles(read_table({"guesses": sets, "remark": prose}))
    assert (roles.candidates, roles.text) == (("guesses",), ("remark",))


@pytest.mark.parametrize("size", [3, 16])
@pytest.mark.parametrize("write", [str, np.array_str])
def test_lists_of_measurements_are_neither_sets_nor_prose(size, write):
    values = crowds.rng().normal(size=(60, size))
    as_text = [write(row if write is np.array_str else row.tolist()) for row in values]
    roles = find_roles(read_table({"vector": as_text, "maybe": ["a|b", "b|c", "a"] * 20}))
    assert roles.candidates == ("maybe",)
    assert "embeddings=" in roles.ignore["vector"]


def test_an_id_by_title_comes_before_other_names():
    sets, _ = crowds.make_sets()
    codes, names = [f"Q{i}" for i in range(60)], [f"n{i}" for i in range(60)]
    table = read_table({"code": codes, "sets": sets, "sample_id": names, "x": np.arange(60) / 7})
    roles = find_roles(table)
    assert roles.id == "sample_id"
    assert roles.ignore["code"] == "different in nearly every row"
    assert find_roles(read_table(table.data.drop(["sample_id"]))).id == "code"


@pytest.mark.parametrize(("mark", "given"), [("/", {}), (" or ", {}), ("/", {"candidates": "c"})])
def test_other_marks_between_labels_are_asked_for(mark, given):
    sets = [mark.join(cell.split("|")) for cell in crowds.make_sets()[0]]
    table = read_table({"c": sets, "x": np.arange(60) / 7})
    if given:
        (note,) = find_roles(table, **given).notes
        assert (
            note == "if '/' separates several labels in the cells of 'c', say so with separator=."
        )
    else:
        with pytest.raises(TableError, match=rf"give candidates= and separator='{mark}'\.$"):
            find_roles(table)
    roles = find_roles(table, candidates="c", separator=mark)
    assert sorted(read_labels(table, roles).class_names) == ["First", "Second", "Third"]


def test_columns_of_pandas_without_titles_are_named_by_their_numbers():
    frame = pd.DataFrame([["w1", "t1", "cat"], ["w2", "t1", "dog"], ["w1", "t2", "cat"]])
    assert find_roles(read_table(frame), long=[1, 2, 0]).long == ("1", "2", "0")
    assert find_roles(read_table(frame), candidates=2).candidates == ("2",)
