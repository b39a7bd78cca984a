"""Readings: what is never guessed silently, and what the user is asked instead."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from appellate._added import ADDED, OUTCOMES
from appellate.tables import TableError, diagnose, find_roles, read_labels, read_table
from appellate.tables.roles import UnclearTableError, find_readings
from tests.tables import crowds

N = 200


def of(columns):
    return read_table(columns)


def soil(r):
    sand = r.integers(10, 60, N)
    silt = r.integers(5, 40, N)
    clay = 100 - sand - silt
    return {"sand": sand, "silt": silt, "clay": clay, "ph": r.normal(size=N)}


def questionnaire(r):
    level = np.round(r.normal(3, 1, N)[:, None] + r.normal(0, 0.4, (N, 5)))
    answers = np.clip(level, 1, 5).astype(int)
    return {f"q{i + 1}": answers[:, i] for i in range(5)} | {"age": r.integers(18, 80, N)}


def symptoms(r):
    ill = r.random(N) < 0.5
    flip = {name: r.random(N) < 0.2 for name in ("fever", "cough", "rash")}
    return {name: np.where(ill ^ wrong, "yes", "no") for name, wrong in flip.items()}


def genres(r):
    names = np.array(["rock", "pop", "jazz", "folk"])
    pairs = [r.choice(names, 2, replace=False) for _ in range(N)]
    return {"x": r.normal(size=N), "genres": ["|".join(pair) for pair in pairs]}


def skills(r):
    return {
        "age": r.integers(18, 60, N),
        "skills": [g.replace("|", "; ") for g in genres(r)["genres"]],
    }


def panel(r):
    subject, session = np.divmod(np.arange(N), 5)
    return {"subject_id": subject, "session_id": session, "bp": r.normal(size=N)}


def functions(r):
    truth = np.arange(N) % 2
    said = {f"lf_{name}": np.where(r.random(N) < 0.8, truth, -1) for name in ("spam", "url", "me")}
    return {"text": crowds.make_tweets(N), **said}


def long_answers(r):
    items, people = np.divmod(np.arange(N), 4)
    return {
        "task": items,
        "worker": people,
        "answer": np.array(["ok", "bad"])[r.integers(2, size=N)],
    }


RIVALS = {
    soil: {"counts": ("sand", "silt", "clay")},
    questionnaire: {"annotators": ("q1", "q2", "q3", "q4", "q5")},
    symptoms: {"annotators": ("fever", "cough", "rash")},
    genres: {"candidates": ("genres",)},
    skills: {"candidates": ("skills",)},
    panel: {"long": ("subject_id", "label", "session_id")},
    functions: {"annotators": ("lf_spam", "lf_url", "lf_me")},
    long_answers: {"long": ("task", "answer", "worker")},
}


@pytest.mark.parametrize("make", RIVALS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("title", ["label", "target", "class"])
def test_a_label_title_next_to_a_structure_gives_two_readings(make, title):
    r = crowds.rng()
    columns = make(r) | {title: r.integers(2, size=N)}
    table = of(columns)
    found = find_readings(table)
    assert len(found.roles) == 2
    ((layout, names),) = RIVALS[make].items()
    names = tuple(title if name == "label" else name for name in names)
    assert getattr(found.roles[0], layout) == names
    assert found.roles[1].labels == (title,)
    with pytest.raises(UnclearTableError) as caught:
        find_roles(table)
    lines = str(caught.value).splitlines()
    assert lines[-1].strip().startswith(f"annotators=['{title}']")
    for line, roles in zip(lines[-2:], found.roles, strict=True):
        again = find_roles(table, **eval(f"dict({line})"))  # copied as it is
        assert again.labels == roles.labels
    shown = diagnose(table)
    assert shown.kind == "unclear"
    assert shown.roles is None
    assert [reading.roles.labels for reading in shown.readings] == [names, (title,)]


def test_a_label_next_to_functions_may_be_the_truth():
    columns = functions(crowds.rng()) | {"label": np.arange(N) % 2}
    first, second = find_readings(of(columns)).roles
    assert (first.truth, first.missing) == ("label", ("-1",))
    assert second.truth is None


def test_labels_that_follow_from_the_sets_are_no_rival():
    sets, truth = crowds.make_sets()
    roles = find_roles(of({"maybe": sets, "label": truth, "x": np.arange(60) / 7}))
    assert (roles.candidates, roles.truth) == (("maybe",), "label")
    assert any("'label' is read as the true labels" in note for note in roles.notes)


def test_a_rival_that_is_named_is_none():
    columns = symptoms(crowds.rng()) | {"label": np.arange(N) % 2, "x": np.arange(N) / 7}
    roles = find_roles(of(columns), annotators=["fever", "cough", "rash"])
    assert roles.ignore["label"] == "named like labels"
    roles = find_roles(of(columns), candidates="label")
    assert roles.features == ("fever", "cough", "rash", "x")
    with pytest.raises(UnclearTableError, match="look like annotators"):
        find_roles(of(columns), features=["label", "x"])


@pytest.mark.parametrize("make", sorted(crowds.PROPOSED, key=lambda make: make.__name__))
def test_what_no_title_says_is_proposed_and_not_taken(make):
    table = of(make())
    with pytest.raises(UnclearTableError, match="If this is correct, say so:") as caught:
        find_roles(table)
    line = str(caught.value).splitlines()[-1]
    roles = find_roles(table, **eval(f"dict({line})"))
    found = diagnose(table)
    assert roles.labels == found.roles.labels
    assert found.doubt in str(found)
    assert "rectify does not read the table like this unless you say so" in str(found)


def test_two_columns_of_sets_without_a_title_are_two_readings():
    sets, _ = crowds.make_sets()
    found = find_readings(of({"skills": sets, "towns": sets[::-1]}))
    assert [roles.candidates for roles in found.roles] == [("skills",), ("towns",)]


@pytest.mark.parametrize("names", [("casual", "registered", "cnt"), ("male", "female", "people")])
def test_sums_that_are_no_votes_are_proposed_only(names):
    r = crowds.rng()
    one, two = r.integers(50, 500, (2, N))
    table = of(dict(zip(names, (one, two, one + two), strict=True)))
    assert find_readings(table).doubt


# -- what separates labels -------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        ["dress, long", "dress, short", "shirt, long", "shirt, short"],
        ["dress", "dress, long", "shirt, long", "shirt"],
        ["Springfield, IL", "Springfield, OR", "Portland, OR", "Portland, ME"],
        ["urban; day", "urban; night", "rural; day", "rural; night"],
    ],
)
@pytest.mark.parametrize("given", [{"candidates": "label"}, {}])
def test_a_mark_inside_labels_does_not_split_them(labels, given):
    table = of({"x": np.arange(N) / 7, "label": crowds.rng().choice(labels, N)})
    roles = find_roles(table, **given)
    assert read_labels(table, roles).class_names.tolist() == sorted(labels)
    assert any("is read as a part of the labels" in note for note in roles.notes)
    mark = ";" if ";" in labels[0] else ","
    roles = find_roles(table, candidates="label", separator=mark)
    parts = {part.strip() for label in labels for part in label.split(mark)}
    assert {*read_labels(table, roles).class_names} == parts


@pytest.mark.parametrize("mark", [",", "; "])
def test_a_split_is_said(mark):
    sets = [cell.replace("|", mark) for cell in crowds.make_sets()[0]]
    table = of({"x": np.arange(60) / 7, "label": sets})
    roles = find_roles(table, candidates="label")
    assert roles.separator == mark.strip()
    assert any(f"split at {mark.strip()!r}" in note for note in roles.notes)
    assert not any(
        "split at" in n for n in find_roles(table, candidates="label", separator=mark).notes
    )


@pytest.mark.parametrize(
    "cells", [["0,0,0,1", "1,1,0", "0,1,1"], ["['x', 'x', 'y']", "['y', 'x']"]]
)
def test_cells_that_repeat_labels_are_answers(cells):
    table = of({"annotations": cells * 30, "x": np.arange(30 * len(cells)) / 7})
    with pytest.raises(UnclearTableError, match="repeat labels, so they look like the answers"):
        find_roles(table)


# -- what is learned from ----------------------------------------------------------------------


def test_no_unasked_features():
    r = crowds.rng()
    aside = {
        "patient_id": r.integers(1000, 1100, N),
        "id": np.arange(N) % 100,
        "userid": r.integers(40, size=N),
        "zip": np.array(["01234", "02134", "90210", "00501"])[r.integers(4, size=N)],
        "postcode": r.integers(10000, 10020, N),
        "user_ip": [f"10.0.0.{i % 9}" for i in range(N)],
        "origin": [f"192.168.{i % 5}.1" for i in range(N)],
        "_trust": r.random(N),
        "worker": r.integers(20, size=N),
        "AcceptTime": [f"2020-01-{i % 28 + 1:02d} 10:00" for i in range(N)],
        "rater_gender": r.choice(["f", "m"], N),
        "annotator_age": r.integers(18, 60, N),
        "worker_country": r.choice(["US", "IN"], N),
        "label": r.choice(["u", "v"], N),
    }
    kept = {
        "acid": r.integers(5, size=N),
        "humid": r.choice(["y", "n"], N),
        "year": r.integers(1990, 2020, N),
    }
    table = of({"names": (["a|b", "b", "a"] * N)[:N], **aside, **kept})
    roles = find_roles(table, candidates="names")
    assert roles.features == tuple(kept)
    assert {*roles.ignore} == {*aside}
    (note,) = (note for note in roles.notes if note.startswith("ignored: "))
    assert "'patient_id', 'id', 'userid' (an id)" in note
    chosen = find_roles(table, candidates="names", features=["zip", "patient_id"])
    assert chosen.features == ("zip", "patient_id")


def test_what_varies_within_an_item_describes_the_answer():
    columns = crowds.dog_answer()
    n, r = len(columns["answer"]), crowds.rng()
    columns |= {"width": columns["question"] / 7, "mood": r.choice(["good", "bad"], n)}
    columns["when"] = [f"it was about {i} o'clock or so, I said" for i in range(n)]
    frame = pd.DataFrame(columns).rename_axis("rowno")
    roles = find_roles(of(frame))
    assert roles.features == ("width",)
    assert roles.text == ()
    assert {*roles.ignore} == {"rowno", "mood", "when"}


def test_what_a_platform_writes_is_never_the_label():
    items, people = np.divmod(np.arange(N), 4)
    r = crowds.rng()
    appen = {
        "_unit_id": items,
        "_worker_id": people + 10 * (items % 9),
        "_trust": r.integers(2, size=N),
    }
    with pytest.raises(TableError, match="no label column found"):
        find_roles(of(appen))
    zoo = {
        "subject_id": items,
        "user_name": people,
        "user_ip": [f"1.1.1.{p}" for p in r.integers(9, size=N)],
    }
    with pytest.raises(TableError, match="no label column found"):
        find_roles(of(zoo))


@pytest.mark.parametrize("title", ADDED)
def test_what_a_run_adds_is_no_feature_of_the_next(title):
    sets, truth = crowds.make_sets()
    r = crowds.rng()
    columns = {"maybe": sets, "x": r.normal(size=60)} | {name: r.random(60) for name in ADDED}
    columns |= {"label": truth, "outcome": r.choice(sorted(OUTCOMES), 60)}
    assert title in find_roles(of(columns)).ignore
    assert title in find_roles(of(columns), candidates="maybe").ignore
    own = {"maybe": sets, "x": columns["x"], "runner_up": truth, "suspicion": r.random(60)}
    assert find_roles(of(own)).features == ("x",)


def test_the_docstring_of_a_run_names_what_it_adds():
    from appellate.rectification.run import Rectification

    assert all(f"``{name}``" in Rectification.__doc__ for name in ADDED)


# -- annotators ---------------------------------------------------------------------------------


def test_repeated_answers_of_an_annotator_share_one_vote():
    item, person, answer = crowds.make_answers(items=60)
    again = np.arange(0, len(item), 11)  # nine in a hundred
    columns = {
        "worker": np.r_[person, person[again]],
        "task": np.r_[item, item[again]],
        "answer": np.r_[answer, (answer[again] + np.arange(len(again)) % 2) % 4],
        "gold": np.r_[item, item[again]] % 4,
    }
    table = of(columns)
    roles = find_roles(table)
    assert roles.long == ("task", "answer", "worker")
    read = read_labels(table, roles)
    votes = np.zeros((read.n_rows, len(read.people_names)))
    np.add.at(votes, (read.rows, read.people), read.weights)
    assert {*np.round(votes[votes > 0], 9).tolist()} == {1.0}
    assert read.weights.min() == 0.5
    assert f"{len(again)} of {len(item) + len(again)} answers repeat an item" in " ".join(
        read.notes
    )


def family_of(names, labels=(0, 1)):
    r = crowds.rng()
    truth = r.integers(len(labels), size=60)

    def said():
        return np.where(r.random(60) < 0.5, truth, r.integers(len(labels), size=60))

    return {name: np.array(labels)[said()] for name in names}


@pytest.mark.parametrize(
    "names",
    [
        [f"Ann{i}" for i in range(1, 7)],
        ["annotator_a", "annotator_b"],
        ["worker 1", "worker 2"],
        ["rater_1_label", "rater_2_label"],
        ["label_rater1", "label_rater2"],
        ["expert_anna", "expert_bob", "expert_cy"],
        ["lf_long_word", "lf_url", "lf_has_2_links"],
        ["user1", "user2", "user3"],
        ["coderA", "coderB"],
    ],
)
def test_a_family_of_titles_is_annotators(names):
    columns = {"x": np.arange(60) / 7} | family_of(names)
    assert find_roles(of(columns)).annotators == tuple(names)


@pytest.mark.parametrize("names", [["annual_1", "annual_2"], ["rater_age", "rater_city"]])
def test_other_titles_are_no_family(names):
    columns = {"c": (["a|b", "b", "a"] * 20), "x": np.arange(60) / 7} | family_of(names)
    assert find_roles(of(columns)).candidates == ("c",)


def test_what_raters_say_of_themselves_is_no_family_or_doubted():
    r = crowds.rng()
    sets = (["a|b", "b", "a"] * 20)[:60]
    sure = {name: r.integers(1, 6, 60) for name in ("rater_confidence", "rater_difficulty")}
    assert find_roles(of({"c": sets, **sure})).candidates == ("c",)
    odd = {name: r.integers(1, 6, 60) for name in ("rater_mood", "rater_energy")}
    with pytest.raises(UnclearTableError, match="agree no more often than by chance"):
        find_roles(of({"x": r.random(60), **odd}))


def test_a_large_sparse_family_is_whole():
    r = crowds.rng()
    cells = np.where(r.random((300, 506)) < 0.02, r.integers(2, size=(300, 506)), np.nan)
    cells[:, 7] = np.nan
    cells[:, 9] = np.where(np.arange(300) < 3, 1, np.nan)
    frame = pd.DataFrame(cells, columns=[f"Ann{i}" for i in range(506)])
    roles = find_roles(of(frame.assign(text=crowds.make_tweets(300))))
    assert roles.annotators == tuple(frame.columns)
    assert (roles.text, roles.features) == (("text",), ())


def test_functions_that_give_one_label_each_are_a_family():
    r = crowds.rng()
    said = {f"lf_{k}": np.where(r.random(60) < 0.3, k % 2, np.nan) for k in range(6)}
    assert find_roles(of({"x": r.random(60), **said})).annotators == tuple(said)
    late = np.full(3000, np.nan)
    late[2500:] = 1  # after the rows that are looked at first
    said = {"ann1": np.arange(3000) % 2, "ann2": late}
    assert find_roles(of(said)).annotators == ("ann1", "ann2")


def test_few_answers_an_item_and_one_label_a_person_are_answers():
    items = np.r_[np.arange(80), np.arange(20)]
    people = np.r_[np.arange(80) % 4, (np.arange(20) + 1) % 4]
    columns = {"task": items, "worker": people, "answer": people % 2}
    assert find_roles(of(columns)).long == ("task", "answer", "worker")


# -- cells, and titles that are numbers ----------------------------------------------------------


def test_integer_titles(tmp_path):
    item, person, answer = crowds.make_answers()
    path = tmp_path / "a.csv"
    pd.DataFrame({"p": person, "i": item, "a": answer}).to_csv(path, header=False, index=False)
    frame = pd.read_csv(path, header=None)
    assert find_roles(of(frame), long=[1, 2, 0]).long == ("1", "2", "0")
    assert find_roles(of(frame), long=frame.columns[[1, 2, 0]]).long == ("1", "2", "0")
    assert find_roles(of(frame), candidates=0, id=False, features=np.int64(1)).features == ("1",)
    with pytest.raises(TableError, match=r"no column '7' \(truth\)"):
        find_roles(of(frame), candidates=0, truth=7)


@pytest.mark.parametrize("word", ["None", "NaN", "NA"])
def test_words_for_nothing_among_candidates_are_noted(word):
    table = of({"x": np.arange(6), "c": ["a|b", "b", word, "a", "a", "b"]})
    assert any(
        f"read as labels: '{word}'" in n for n in read_labels(table, find_roles(table)).notes
    )


def test_labels_that_differ_in_case_are_noted_when_they_are_read():
    table = of({"x": np.arange(6), "c": ["Cat|dog", "CAT", "cat", "dog", "dog", "cat"]})
    (note,) = read_labels(table, find_roles(table)).notes
    assert "'CAT' and 'Cat' and 'cat'" in note


def test_a_truth_next_to_no_labels():
    table = of({"c": ["?", "?", "?"], "f1": ["a", "b", "a"], "x": [0.5, 1.5, 2.5]})
    found = diagnose(table, candidates="c", truth="f1", missing="?")
    assert any("No row has a label" in problem for problem in found.problems)
