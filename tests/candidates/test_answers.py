"""Answers are kept: who said what, from every kind of table."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from appellate.candidates import Answers, as_answers, as_candidates
from tests.candidates.forms import ANSWERS, VOTES, pd, pl, shuffled_table

COUNTS = np.array([[9, 1, 0], [5, 4, 1], [0, 0, 2]])


def triples(answers: Answers) -> set[tuple]:
    """Who said what, in names."""
    people = answers.person_names
    return {
        (int(i), None if people is None else people.tolist()[j], answers.class_names.tolist()[k])
        for i, j, k in zip(answers.rows, answers.people, answers.labels, strict=True)
    }


def arrow(columns):
    return pytest.importorskip("pyarrow").table({str(k): list(v) for k, v in columns.items()})


@pytest.mark.parametrize("library", ["lists", "numpy", "pandas", "polars", "arrow"])
def test_a_wide_table_keeps_who_said_what(library):
    columns = {f"p{j}": [row[j] for row in ANSWERS] for j in range(3)}
    table = {
        "lists": lambda: ANSWERS,
        "numpy": lambda: np.array(ANSWERS, dtype=object),
        "pandas": lambda: pd().DataFrame(columns),
        "polars": lambda: pl().DataFrame(columns),
        "arrow": lambda: arrow(columns),
    }[library]()
    answers = as_answers(table)
    names = [0, 1, 2] if library in ("lists", "numpy") else ["p0", "p1", "p2"]
    said = {(0, 0, "anna"), (0, 1, "bob"), (1, 0, "bob"), (1, 1, "bob"), (2, 0, "carl")}
    assert triples(answers) == {(i, names[j], k) for i, j, k in said | {(2, 2, "anna")}}
    assert answers.rows.dtype == answers.people.dtype == answers.labels.dtype == np.int32
    assert answers.weights is answers.sizes is None
    assert repr(answers) == "Answers(3 rows, 6 answers of 3 annotators, 3 classes)"


@pytest.mark.parametrize("library", ["lists", "pandas", "polars", "arrow"])
def test_a_long_table_keeps_who_said_what(library):
    makers = {"pandas": lambda c: pd().DataFrame(c), "polars": lambda c: pl().DataFrame(c)}
    maker = makers.get(library, arrow)
    table = VOTES if library == "lists" else shuffled_table(maker)
    answers = as_answers(table, layout="long")
    assert triples(answers) == {("xyz".index(i), who, label) for i, label, who in VOTES}
    assert answers.ids.tolist() == ["x", "y", "z"]
    assert len(answers.rows) == 5  # one answer was given twice by the same person


def test_a_long_table_may_have_weights_and_rows_that_nobody_answered():
    frame = pd().DataFrame(
        {"item": ["x", "x", "y"], "label": ["a", "b", "a"], "weight": [2, 0.5, 1]}
    )
    answers = as_answers(frame, layout="long", items=["x", "w", "y"])
    assert answers.person_names is None
    assert answers.votes().tolist() == [[2, 0.5], [0, 0], [1, 0]]
    assert answers.ids.tolist() == ["x", "w", "y"]
    with pytest.raises(ValueError, match="item 'w': no candidate"):
        as_candidates(frame, layout="long", items=["x", "w", "y"])


def test_answers_of_unknown_people_add_up():
    answers = as_answers([("x", "a"), ("x", "a"), ("x", "b"), ("y", "b")], layout="long")
    assert answers.votes().tolist() == [[2, 1], [0, 1]]
    assert answers.weights.tolist() == [2, 1, 1]


def test_an_unknown_person_who_names_a_label_twice_named_it_once():
    answers = as_answers([("x", "a|a"), ("x", "a|b")], layout="long", separator="|")
    assert answers.votes().tolist() == [[2, 1]]
    assert answers.weights is None
    assert answers.sizes.tolist() == [1, 2, 2]


def test_people_may_name_several_labels():
    cells = [["cat|dog", "cat"], ["dog", None], [None, "cow|cat"]]
    answers = as_answers(cells, separator="|")
    assert answers.sizes.tolist() == [2, 2, 1, 1, 2, 2]
    lists = [[["cat", "dog"], ["cat"]], [["dog"], None], [None, {"cow", "cat"}]]
    assert triples(as_answers(lists)) == triples(answers)
    assert as_answers(lists).sizes.tolist() == answers.sizes.tolist()
    lines = [(0, ["cat", "dog"]), (0, ["cat"]), (0, ["cat"])]  # three unknown people
    assert as_answers(lines, layout="long").sizes.tolist() == [2, 2, 1, 1]


def test_a_label_a_row_may_be_missing():
    answers = as_answers(["a", None, "b"], layout="labels")
    assert answers.votes().tolist() == [[1, 0], [0, 0], [0, 1]]
    assert answers.person_names is None
    numbers = as_answers(np.array([3, -1, 2]), layout="labels", missing=-1)
    assert numbers.class_names.tolist() == [2, 3]
    assert as_answers(np.array([1.0, np.nan]), layout="labels").class_names.tolist() == [1]


L = np.array([[0, -1, 0], [-1, -1, 1], [-1, 2, -1], [-1, -1, -1]])


@pytest.mark.parametrize("form", ["array", "int8", "floats", "lists", "frame"])
def test_minus_one_of_a_label_matrix_is_an_abstention(form):
    table = {"array": L, "int8": L.astype(np.int8), "lists": L.tolist()}.get(form)
    if form == "floats":
        table = L.astype(float)
    if form == "frame":
        table = pytest.importorskip("pandas").DataFrame(L, columns=["lf0", "lf1", "lf2"])
    answers = as_answers(table)
    assert answers.class_names.tolist() == [0, 1, 2]
    assert len(answers.rows) == 4
    np.testing.assert_array_equal(answers.table(), L)


def test_a_label_matrix_may_have_empty_cells():
    table = L.astype(float)
    table[3, 0] = np.nan
    for form in (table, table.astype(object)):
        answers = as_answers(form)
        assert answers.class_names.tolist() == [0, 1, 2]
        np.testing.assert_array_equal(answers.table(), L)


def test_minus_one_may_be_a_label():
    assert as_answers(np.array([[-1.0, 0.5], [0.0, 1.0]])).class_names.tolist() == [-1, 0, 0.5, 1]
    assert as_answers(L, classes=[-1, 0, 1, 2]).votes().sum() == L.size
    assert as_answers(L, classes=[0, 1, 2, 3]).votes().sum() == 4
    assert as_answers(np.array([[1, -1], [-1, -1]])).class_names.tolist() == [-1, 1]
    assert as_answers(L - 1).class_names.tolist() == [-2, -1, 0, 1]
    texts = as_answers([["-1", "0"], ["1", "0"]])
    assert texts.votes().sum() == 4


def test_candidate_sets_are_what_one_person_named():
    answers = as_answers(["a|b", "b"], layout="auto")
    assert answers.sizes.tolist() == [2, 2, 1]
    assert as_answers(["a", "b"], layout="auto").sizes is None
    sets = as_candidates(ANSWERS, layout="annotators")
    assert as_answers(sets) is sets.answers


def test_candidates_keep_their_answers_when_rows_are_chosen():
    sets = as_candidates(ANSWERS, layout="annotators", rule="share:0.5")
    chosen = sets[[2, 0, 2]]
    assert triples(chosen.answers) == {
        (0, 0, "carl"), (0, 2, "anna"), (1, 0, "anna"), (1, 1, "bob"), (2, 0, "carl"),
        (2, 2, "anna"),
    }  # fmt: skip
    assert np.array_equal(chosen.answers.votes(), sets.answers.votes()[[2, 0, 2]])
    wider = as_candidates(sets, classes=["zoe", "carl", "bob", "anna"])
    assert triples(wider.answers) == triples(sets.answers)
    assert (
        as_candidates(sets.answers, rule="votes:1").sets()
        == as_candidates(ANSWERS, layout="annotators").sets()
    )


@given(
    answers=arrays(
        np.int64, st.tuples(st.integers(1, 6), st.just(3)), elements=st.integers(-1, 3)
    ),
    data=st.data(),
)
def test_choosing_rows_and_reading_commute(answers, data):
    kept = as_answers(answers, missing=-1, classes=range(4))
    rows = data.draw(st.lists(st.integers(0, len(answers) - 1), max_size=8))
    chosen = kept[np.array(rows, dtype=int)]
    assert len(chosen) == len(rows)
    assert triples(chosen) == {
        (i, j, int(answers[row, j]))
        for i, row in enumerate(rows)
        for j in range(3)
        if answers[row, j] >= 0
    }
    assert (np.diff(chosen.rows) >= 0).all()


def test_a_model_is_one_more_person():
    answers = as_answers(ANSWERS)
    more = answers.add("model", ["bob", None, "carl"])
    assert triples(more) == triples(answers) | {(0, "model", "bob"), (2, "model", "carl")}
    weighted = answers.add("model", [[0.5, 0.25, 0.25], [0, 1, 0], [0, 0, 1]])
    assert weighted.votes()[0].tolist() == [1.5, 1.25, 0.25]
    assert more.person_names.tolist() == [0, 1, 2, "model"]
    with pytest.raises(ValueError, match="is already an annotator"):
        more.add("model", ["bob"] * 3)
    with pytest.raises(ValueError, match="answers 2 rows, but there are 3"):
        more.add("other", ["bob"] * 2)


# -- counts -----------------------------------------------------------------------------------


@given(
    counts=arrays(np.int64, st.tuples(st.integers(1, 6), st.just(4)), elements=st.integers(0, 5)),
    rule=st.sampled_from(["union", "votes:1", "share:0.6", "share:1"]),
)
def test_counting_first_or_later_is_the_same(counts, rule):
    counts[:, 0] += counts.sum(axis=1) == 0
    answers = np.full((len(counts), counts.sum(axis=1).max()), -1)
    for i, row in enumerate(counts):
        answers[i, : row.sum()] = np.repeat(np.arange(4), row)
    counted = as_candidates(counts, layout="counts", rule=rule)
    uncounted = as_candidates(
        answers, layout="annotators", rule=rule, missing=-1, classes=np.arange(4)
    )
    assert np.array_equal(counted.matrix, uncounted.matrix)
    assert np.array_equal(counted.answers.votes(), uncounted.answers.votes())
    assert counted.class_names.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", ["floats", "lists", "sparse", "pandas", "polars", "arrow"])
def test_counts_in_any_container(kind):
    names = ["cat", "dog", "cow"]
    columns = dict(zip(names, COUNTS.T, strict=True))
    counts = {
        "floats": lambda: COUNTS.astype(float),
        "lists": COUNTS.tolist,
        "sparse": lambda: sp.csr_array(COUNTS),
        "pandas": lambda: pd().DataFrame(columns),
        "polars": lambda: pl().DataFrame(columns),
        "arrow": lambda: arrow(columns),
    }[kind]()
    classes = names if kind in ("floats", "lists", "sparse") else None
    sets = as_candidates(counts, layout="counts", rule="share:0.8", classes=classes)
    assert sets.sets() == [("cat",), ("cat", "dog"), ("cow",)]
    assert np.array_equal(sets.answers.votes(), COUNTS)


def test_counts_keep_index_and_order_of_classes():
    frame = pd().DataFrame(COUNTS, index=list("xyz"), columns=["cat", "dog", "cow"])
    sets = as_candidates(frame, layout="counts", classes=["cow", "dog", "cat", "bat"])
    assert sets.ids.tolist() == ["x", "y", "z"]
    assert np.array_equal(sets.answers.votes()[:, :3], COUNTS[:, ::-1])


@pytest.mark.parametrize(
    ("counts", "options", "message"),
    [
        ([[1, -1]], {}, "row 0, column 1: -1 is not a number of votes"),
        (sp.csr_array([[1, -1]]), {}, "row 0, column 1: -1 is not a number of votes"),
        (sp.coo_array([1, 0]), {}, r"counts have shape \(2,\); give rows and classes"),
        ([[1, float("nan")]], {}, "nan is not a number of votes"),
        ([["cat", "dog"]], {}, "counts must be numbers. Count the answers first"),
        ([[1, 0], [0, 0]], {}, "row 1: no candidate"),
        ([[1, 0]], {"rule": "votes:2"}, "no label has 2 votes"),
        ([[1, 0]], {"rule": "most"}, "unknown rule 'most'"),
        ([[1, 0]], {"classes": ["a"]}, "1 names, but the counts have 2 columns"),
        (np.arange(3), {}, r"counts have shape \(3,\)"),
    ],
)
def test_mistakes_in_counts(counts, options, message):
    with pytest.raises(ValueError, match=message):
        as_candidates(counts, layout="counts", **options)


# -- complementary labels ---------------------------------------------------------------------


@pytest.mark.parametrize("excluded", [["a", "b|c", "b"], [["a"], ["b", "c"], ["b"]]])
def test_labels_that_a_row_does_not_have(excluded):
    sets = as_candidates(excluded, layout="complementary", classes=list("abc"))
    assert sets.sets() == [("b", "c"), ("a",), ("a", "c")]


def test_numbers_and_matrices_may_be_complementary():
    sets = as_candidates(np.array([0, 2, 1]), layout="complementary")
    assert sets.sets() == [(1, 2), (0, 1), (0, 2)]
    matrix = np.array([[0, 1, 0], [0, 0, 0]])
    assert as_candidates(matrix, layout="complementary").sets() == [(0, 2), (0, 1, 2)]
    with pytest.raises(ValueError, match="row 1: no candidate"):
        as_candidates(["a", "a|b"], layout="complementary")
