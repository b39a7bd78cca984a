"""Answers of several people: the rules that make candidates of them, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from appellate.candidates import as_candidates
from tests.candidates.forms import ANSWERS, VOTES, pd, pl

pytestmark = pytest.mark.filterwarnings("error")

NAN = float("nan")
TALLIES = st.lists(
    st.lists(st.integers(0, 4), min_size=3, max_size=3).filter(any), min_size=1, max_size=5
)
SHARES = st.fractions(0, 1, max_denominator=12).filter(bool)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("union", ["abc", "ab", "c"]),
        ("votes:1", ["abc", "ab", "c"]),
        ("share:1", ["abc", "ab", "c"]),
        ("share:0.84", ["abc", "ab", "c"]),
        ("share:5/6", ["ab", "ab", "c"]),
        ("share:0.51", ["ab", "ab", "c"]),
        ("share:0.5", ["a", "ab", "c"]),
        ("share:1e-9", ["a", "ab", "c"]),
    ],
)
def test_rules_on_annotators(rule, expected):
    answers = [list("aaabbc"), list("ab    "), list("   c  ")]
    sets = as_candidates(answers, layout="annotators", rule=rule)
    assert ["".join(row) for row in sets.sets()] == expected


def test_votes_counts_people():
    answers = [list("aaabbc"), list("bb   c")]
    sets = as_candidates(answers, layout="annotators", rule="votes:2")
    assert sets.sets() == [("a", "b"), ("b",)]
    assert sets.class_names.tolist() == ["a", "b", "c"]


def test_a_share_is_not_spoilt_by_rounding():
    answers = [list("aaaaaaabcd")]  # 7 of 10 votes, but 0.7 * 10 > 7 in floats
    assert as_candidates(answers, layout="annotators", rule="share:0.7").sets() == [("a",)]


def test_an_annotator_who_repeats_an_answer_has_one_vote():
    table = [("x", "a", 1), ("x", "a", 1), ("x", "b", 1), ("x", "b", 2)]
    assert as_candidates(table, layout="long", rule="votes:2").sets() == [("b",)]
    pairs = [vote[:2] for vote in table]
    assert as_candidates(pairs, layout="long", rule="votes:2").sets() == [("a", "b")]


def test_a_mark_for_no_answer_is_no_label():
    answers = np.array([[-1, 4, 4], [2, -1, -1]])
    sets = as_candidates(answers, layout="annotators", missing=-1)
    assert sets.sets() == [(4,), (2,)]
    assert sets.class_names.dtype.kind == "i"
    lines = [(0, -1), (0, 4), (1, 2)]
    assert as_candidates(lines, layout="long", missing=-1).sets() == [(4,), (2,)]


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_integers_that_a_gap_made_floats_are_integers_again(library):
    frame = library().DataFrame({"p": [1, None], "q": [1, 2]})
    sets = as_candidates(frame, layout="annotators")
    assert sets.class_names.tolist() == [1, 2]
    assert sets.class_names.dtype.kind == "i"
    halves = library().DataFrame({"p": [1.5, None], "q": [1.0, 2.0]})
    assert as_candidates(halves, layout="annotators").class_names.tolist() == [1.0, 1.5, 2.0]


@given(TALLIES, SHARES, st.permutations("abc"))
def test_a_share_is_the_smallest_set_and_does_not_depend_on_order(tallies, share, classes):
    table = [
        (i, label)
        for i, tally in enumerate(tallies)
        for label, count in zip("abc", tally, strict=True)
        for _ in range(count)
    ]
    rule = f"share:{share}"
    found = as_candidates(table, layout="long", rule=rule, classes=list("abc"))
    for row, tally in zip(found.sets(), tallies, strict=True):
        votes = dict(zip("abc", tally, strict=True))
        needed = share * sum(tally)
        fewest = min(votes[label] for label in row)
        assert sum(votes[label] for label in row) >= needed
        assert sum(votes[label] for label in row if votes[label] > fewest) < needed
        assert all(votes[label] < fewest for label in votes if label not in row)
    other = as_candidates(table[::-1], layout="long", rule=rule, classes=classes)
    order = np.argsort(other.ids)
    columns = [classes.index(label) for label in "abc"]
    assert np.array_equal(other.matrix[order][:, columns], found.matrix)


@given(TALLIES, st.integers(1, 4))
def test_votes_are_those_of_a_count(tallies, k):
    answers = [
        [label for label, count in zip("abc", tally, strict=True) for _ in range(count)]
        for tally in tallies
    ]
    answers = [row + [None] * (12 - len(row)) for row in answers]
    expected = [
        tuple(label for label, count in zip("abc", tally, strict=True) if count >= k)
        for tally in tallies
    ]
    if all(expected):
        rule = f"votes:{k}"
        assert as_candidates(answers, layout="annotators", rule=rule).sets() == expected
    else:
        with pytest.raises(ValueError, match=f"no label has {k} votes"):
            as_candidates(answers, layout="annotators", rule=f"votes:{k}")


def test_a_share_may_be_written_as_a_rounded_fraction():
    rule = f"share:{5 / 6}"
    assert Fraction(rule.removeprefix("share:")) > Fraction(5, 6)
    sets = as_candidates([list("aaabbc")], layout="annotators", rule=rule)
    assert sets.sets() == [("a", "b")]


MISUSES: list[tuple[str, Any, type[Exception], str]] = [
    (
        "too few votes",
        lambda: as_candidates(ANSWERS, layout="annotators", rule="votes:2"),
        ValueError,
        r"^rows 0, 2: no candidate, as no label has 2 votes. Lower k",
    ),
    (
        "nobody answered",
        lambda: as_candidates([["a", None], [None, ""]], layout="annotators"),
        ValueError,
        r"^row 1: no candidate\.",
    ),
    (
        "nobody answered, share",
        lambda: as_candidates([["a"], [None]], layout="annotators", rule="share:0.5"),
        ValueError,
        r"^row 1: no candidate\.",
    ),
    (
        "no answers at all",
        lambda: as_candidates([[None], [None]], layout="annotators"),
        ValueError,
        r"holds no label",
    ),
    (
        "unknown answer",
        lambda: as_candidates(ANSWERS, layout="annotators", classes=["anna", "bob"]),
        ValueError,
        r"^row 2: unknown class 'carl'",
    ),
    (
        "no columns",
        lambda: as_candidates(pd().DataFrame(index=[0, 1]), layout="annotators"),
        ValueError,
        r"^y has no columns",
    ),
    (
        "ragged answers",
        lambda: as_candidates([["a", "b"], ["a"]], layout="annotators"),
        ValueError,
        r"^row 1: ragged, as row 0 has 2 entries",
    ),
    (
        "answers in a list of labels",
        lambda: as_candidates(["a", "b"], layout="annotators"),
        TypeError,
        r"^y is not a table",
    ),
    (
        "items without votes",
        lambda: as_candidates(VOTES, layout="long", rule="votes:2"),
        ValueError,
        r"^items 'x', 'y', 'z': no candidate, as no label has 2",
    ),
    (
        "one column",
        lambda: as_candidates([["x"], ["y"]], layout="long"),
        ValueError,
        r"long table has 1 columns",
    ),
    (
        "four columns without names",
        lambda: as_candidates([["x", "a", 1, 0]], layout="long"),
        ValueError,
        r"long table has 4 columns.*of these names",
    ),
    (
        "no item",
        lambda: as_candidates([("x", "a"), (None, "a")], layout="long"),
        ValueError,
        r"^row 1: no item",
    ),
    (
        "no annotator",
        lambda: as_candidates([("x", "a", NAN), ("x", "a", 1)], layout="long"),
        ValueError,
        r"^row 0: no annotator",
    ),
    (
        "items lacking in the table",
        lambda: as_candidates(VOTES, layout="long", items=["x", "y", "z", "w"]),
        ValueError,
        r"^item 'w': no candidate",
    ),
    (
        "items lacking in `items`",
        lambda: as_candidates(VOTES, layout="long", items=["x"]),
        ValueError,
        r"^items 'y', 'z' of the table not in `items`",
    ),
    (
        "items twice",
        lambda: as_candidates(VOTES, layout="long", items=["x", "y", "z", "x"]),
        ValueError,
        r"^duplicate 'x' in `items`",
    ),
]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [case[1:] for case in MISUSES],
    ids=[case[0] for case in MISUSES],
)
def test_misuse_is_refused_with_a_reason(call, error, message):
    with pytest.raises(error, match=message) as info:
        call()
    assert type(info.value) is error
