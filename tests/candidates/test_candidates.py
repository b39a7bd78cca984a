"""Every form that candidates may come in, and what must hold for all of them."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from appellate.candidates import CandidateSets, as_candidates, check_length, name_rows
from tests.candidates.forms import (
    ANSWERS,
    MATRIX,
    NAMES,
    SETS,
    STRINGS,
    VOTES,
    narwhals_frame,
    objects,
    pd,
    pl,
    shuffled_table,
)

pytestmark = pytest.mark.filterwarnings("error")

# -- every accepted form gives the same sets --------------------------------------------------

UNNAMED: dict[str, Any] = {
    "bool matrix": lambda: (MATRIX.astype(bool), {"classes": NAMES}),
    "int matrix": lambda: (MATRIX, {"classes": NAMES}),
    "int8 matrix, Fortran order": lambda: (
        np.asfortranarray(MATRIX.astype(np.int8)),
        {"classes": NAMES},
    ),
    "uint8 matrix, array of names": lambda: (
        MATRIX.astype(np.uint8),
        {"classes": np.array(NAMES)},
    ),
    "float matrix": lambda: (MATRIX.astype(float), {"classes": tuple(NAMES)}),
    "object matrix": lambda: (
        MATRIX.astype(object),
        {"classes": NAMES, "layout": "indicator"},
    ),
    "list of rows": lambda: (MATRIX.tolist(), {"classes": NAMES, "layout": "indicator"}),
    "sparse matrix": lambda: (sp.csr_matrix(MATRIX), {"classes": NAMES}),
    **{
        f"sparse {kind}": lambda kind=kind: (
            sp.coo_array(MATRIX).asformat(kind),
            {"classes": NAMES},
        )
        for kind in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")
    },
    "sparse bool": lambda: (sp.csr_array(MATRIX.astype(bool)), {"classes": NAMES}),
}

NAMED: dict[str, Any] = {
    "pandas 0/1": lambda: (pd().DataFrame(MATRIX, columns=NAMES), {}),
    "pandas bool": lambda: (pd().DataFrame(MATRIX.astype(bool), columns=NAMES), {}),
    "pandas mixed types": lambda: (
        pd().DataFrame(
            {"anna": [1, 0, 1], "bob": [True, True, False], "carl": [0.0, 0.0, 1.0]},
        ),
        {},
    ),
    "pandas nullable": lambda: (pd().DataFrame(MATRIX, columns=NAMES).astype("Int64"), {}),
    "pandas sparse": lambda: (pd().DataFrame(MATRIX, columns=NAMES).astype("Sparse[int]"), {}),
    "pandas, columns in another order": lambda: (
        pd().DataFrame(MATRIX, columns=NAMES)[["carl", "anna", "bob"]],
        {"classes": NAMES},
    ),
    "polars 0/1": lambda: (pl().DataFrame(MATRIX, schema=NAMES), {}),
    "polars bool": lambda: (pl().DataFrame(MATRIX.astype(bool), schema=NAMES), {}),
    "narwhals": lambda: (narwhals_frame(), {}),
    "lists": lambda: ([list(row) for row in SETS], {}),
    "tuples in a tuple": lambda: (tuple(SETS), {}),
    "sets": lambda: ([set(row) for row in SETS], {}),
    "frozensets": lambda: ([frozenset(row) for row in SETS], {}),
    "arrays": lambda: ([np.array(row) for row in SETS], {}),
    "mixed collections": lambda: ([list(SETS[0]), set(SETS[1]), SETS[2]], {}),
    "repeated labels": lambda: ([["bob", "anna", "bob"], ["bob"], ["carl", "anna"]], {}),
    "object array of lists": lambda: (objects([list(row) for row in SETS]), {}),
    "pandas series of lists": lambda: (pd().Series([list(row) for row in SETS]), {}),
    "pandas series of sets": lambda: (pd().Series([set(row) for row in SETS]), {}),
    "polars list column": lambda: (pl().Series([list(row) for row in SETS]), {}),
    "polars array column": lambda: (
        pl().Series(
            [["anna", "bob"], ["bob", "bob"], ["carl", "anna"]],
            dtype=pl().Array(pl().String, 2),
        ),
        {},
    ),
    "2-D array of labels": lambda: (
        np.array([["anna", "bob"], ["bob", "bob"], ["carl", "anna"]]),
        {"layout": "sets"},
    ),
    "strings": lambda: (STRINGS, {}),
    "strings, layout named": lambda: (STRINGS, {"layout": "sets"}),
    "string array": lambda: (np.array(STRINGS), {}),
    "object array of strings": lambda: (np.array(STRINGS, dtype=object), {}),
    "pandas strings": lambda: (pd().Series(STRINGS), {}),
    "pandas categorical": lambda: (pd().Series(STRINGS, dtype="category"), {}),
    "pandas index": lambda: (pd().Index(STRINGS), {}),
    "polars strings": lambda: (pl().Series(STRINGS), {}),
    "polars categorical": lambda: (pl().Series(STRINGS, dtype=pl().Categorical), {}),
    "other separator": lambda: (["anna, bob", "bob", "anna, carl"], {"separator": ","}),
    "long separator": lambda: (["anna or bob", "bob", "anna or carl"], {"separator": " or "}),
    "answers, rows": lambda: (ANSWERS, {"layout": "annotators"}),
    "answers, array": lambda: (np.array(ANSWERS, dtype=object), {"layout": "annotators"}),
    "answers, pandas": lambda: (pd().DataFrame(ANSWERS), {"layout": "annotators"}),
    "answers, pandas NA": lambda: (
        pd().DataFrame(ANSWERS).astype("string"),
        {"layout": "annotators"},
    ),
    "answers, polars": lambda: (
        pl().DataFrame(ANSWERS, orient="row", schema=["p", "q", "r"]),
        {"layout": "annotators"},
    ),
    "answers, own mark": lambda: (
        [["anna", "bob", "?"], ["bob", "bob", "-"], ["carl", "?", "anna"]],
        {"layout": "annotators", "missing": ["?", "-"]},
    ),
    "long, tuples": lambda: (VOTES, {"layout": "long"}),
    "long, pairs": lambda: ([vote[:2] for vote in VOTES], {"layout": "long"}),
    "long, pandas": lambda: (pd().DataFrame(VOTES), {"layout": "long"}),
    "long, polars": lambda: (
        pl().DataFrame(VOTES, orient="row", schema=["image", "name", "who"]),
        {"layout": "long"},
    ),
    "long, pandas by name": lambda: (shuffled_table(pd().DataFrame), {"layout": "long"}),
    "long, polars by name": lambda: (shuffled_table(pl().DataFrame), {"layout": "long"}),
    "candidate sets": lambda: (as_candidates(SETS), {}),
    "candidate sets, reordered": lambda: (
        as_candidates(SETS, classes=["carl", "anna", "bob"]),
        {"classes": NAMES},
    ),
}


FORMS = UNNAMED | NAMED


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_sets(form):
    y, options = FORMS[form]()
    sets = as_candidates(y, **options)
    assert sets.sets() == SETS
    assert sets.class_names.tolist() == NAMES
    assert sets.matrix.dtype == bool
    assert sets.matrix.flags.c_contiguous
    assert sets.shape == sets.matrix.shape == (3, 3)
    assert len(sets) == 3


@pytest.mark.parametrize("form", NAMED)
def test_an_unseen_class_is_an_empty_column(form):
    y, options = NAMED[form]()
    sets = as_candidates(y, **(options | {"classes": ["dora", "carl", "bob", "anna"]}))
    assert sets.class_names.tolist() == ["dora", "carl", "bob", "anna"]
    assert not sets.matrix[:, 0].any()
    assert [set(row) for row in sets.sets()] == [set(row) for row in SETS]


LABELS: dict[str, Any] = {
    "ints": lambda: ([3, 1, 3], [1, 3], "i"),
    "range": lambda: (range(3), [0, 1, 2], "i"),
    "int array": lambda: (np.array([3, 1, 3], dtype=np.int16), [1, 3], "i"),
    "uint array": lambda: (np.array([3, 1, 3], dtype=np.uint8), [1, 3], "u"),
    "float array": lambda: (np.array([3.0, -1.0, 3.0]), [-1.0, 3.0], "f"),
    "float32 array": lambda: (np.array([3, 1, 3], dtype=np.float32), [1.0, 3.0], "f"),
    "float list": lambda: ([3.0, 1, 3], [1.0, 3.0], "f"),
    "bools": lambda: ([True, False, True], [False, True], "b"),
    "bool array": lambda: (np.array([True, False, True]), [False, True], "b"),
    "strings": lambda: (["b", "a", "b"], ["a", "b"], "U"),
    "string array": lambda: (np.array(["b", "a", "b"]), ["a", "b"], "U"),
    "object strings": lambda: (np.array(["b", "a", "b"], dtype=object), ["a", "b"], "O"),
    "object ints": lambda: (np.array([3, 1, 3], dtype=object), [1, 3], "i"),
    "numpy scalars": lambda: ([np.int64(3), 1, np.int64(3)], [1, 3], "i"),
    "mixed": lambda: ([3, "a", 3], [3, "a"], "O"),
    "dates": lambda: (
        [datetime.date(2020, 1, 2), datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)],
        [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)],
        "O",
    ),
    "datetime64": lambda: (
        np.array(["2020-01-02", "2020-01-01", "2020-01-02"], dtype="M8[ns]"),
        list(np.array(["2020-01-01", "2020-01-02"], dtype="M8[ns]")),
        "M",
    ),
    "huge ints": lambda: ([2**70, 5, 2**70], [5, 2**70], "O"),
    "trailing NUL": lambda: (["a\0", "a", "a\0"], ["a", "a\0"], "O"),
    "pandas ints": lambda: (pd().Series([3, 1, 3]), [1, 3], "i"),
    "pandas nullable": lambda: (pd().Series([3, 1, 3], dtype="Int64"), [1, 3], "i"),
    "pandas strings": lambda: (pd().Series(["b", "a", "b"]), ["a", "b"], "O"),
    "pandas categories": lambda: (pd().Series([3, 1, 3], dtype="category"), [1, 3], "i"),
    "polars ints": lambda: (pl().Series([3, 1, 3], dtype=pl().Int32), [1, 3], "i"),
    "polars strings": lambda: (pl().Series(["b", "a", "b"]), ["a", "b"], "O"),
}


@pytest.mark.parametrize("form", LABELS)
def test_a_vector_of_labels_gives_singletons_and_keeps_the_type(form):
    y, names, kind = LABELS[form]()
    sets = as_candidates(y)
    assert sets.class_names.dtype.kind == kind
    assert [type(n) for n in sets.class_names.tolist()] == [type(n) for n in names] or kind == "M"
    assert (sets.class_names == np.array(names, dtype=sets.class_names.dtype)).all()
    assert [row[0] for row in sets.sets()] == list(y)
    assert (sets.matrix.sum(axis=1) == 1).all()


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([[(1, "x"), (0, "y")], [(0, "y")]], [(0, "y"), (1, "x")]),
        ([[2, "b"], ["b", (1, 2)]], [2, "b", (1, 2)]),
        ([[True], [False, True]], [False, True]),
        ([[2.5, 1.5], [1.5]], [1.5, 2.5]),
        (
            [[frozenset({1, 2})], [frozenset({1})], [frozenset({3})]],
            [frozenset({1, 2}), frozenset({1}), frozenset({3})],
        ),
        ([[-1, 5], [5]], [-1, 5]),
    ],
    ids=["tuples", "mixed", "bools", "floats", "no total order", "ints"],
)
def test_class_names_of_any_type_come_back(labels, expected):
    sets = as_candidates(labels, layout="sets")
    assert sets.class_names.tolist() == expected
    assert [set(row) for row in sets.sets()] == [set(row) for row in labels]


def test_tuples_are_labels_when_the_layout_says_so():
    sets = as_candidates([(1, 2), (0, 1), (1, 2)], layout="labels")
    assert sets.sets() == [((1, 2),), ((0, 1),), ((1, 2),)]


def test_strings_stay_whole_without_separator_or_as_labels():
    strings = ["a|b", "c"]
    assert as_candidates(strings, separator=None).sets() == [("a|b",), ("c",)]
    assert as_candidates(strings, layout="labels").sets() == [("a|b",), ("c",)]


def test_an_unnamed_matrix_numbers_its_classes():
    sets = as_candidates(MATRIX)
    assert sets.class_names.dtype.kind == "i"
    assert sets.sets() == [(0, 1), (1,), (0, 2)]


def test_one_column_is_an_indicator_of_one_class():
    assert as_candidates(np.ones((3, 1))).sets() == [(0,), (0,), (0,)]


def test_the_matrix_is_a_copy():
    given_matrix = MATRIX.astype(bool)
    sets = as_candidates(given_matrix)
    given_matrix[:] = False
    assert sets.matrix.sum() == MATRIX.sum()


def test_frame_columns_keep_order_and_type():
    frame = pd().DataFrame(MATRIX, columns=[7, 3, 5])
    assert as_candidates(frame).class_names.tolist() == [7, 3, 5]
    assert as_candidates(frame).class_names.dtype.kind == "i"
    two_levels = pd().DataFrame(MATRIX, columns=[("x", 1), ("y", 1), ("x", 2)])
    assert as_candidates(two_levels).class_names.tolist() == [("x", 1), ("y", 1), ("x", 2)]


def test_the_order_of_mixed_labels_does_not_change_with_the_start_of_python():
    code = (
        "from appellate.candidates import as_answers, as_candidates\n"
        "named = [{'a', 'b', 'c', 1, (2,)}, {'d', 0}]\n"
        "print(as_candidates(named).class_names.tolist())\n"
        "print(as_answers(named, layout='labels').class_names.tolist())"
    )
    environments = [os.environ | {"PYTHONHASHSEED": seed} for seed in ("1", "2", "3")]
    printed = {
        subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        ).stdout
        for env in environments
    }
    assert len(printed) == 1


def test_import_loads_no_data_frame_library():
    code = (
        "import sys, appellate.candidates\n"
        "print(sorted({'pandas', 'polars', 'torch'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


# -- row ids ----------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [["p", "q", "r"], [5, 6, 9], [1, 2, 3]])
@pytest.mark.parametrize("kind", ["series", "indicator", "annotators"])
def test_a_pandas_index_becomes_ids(index, kind):
    if kind == "series":
        sets = as_candidates(pd().Series(STRINGS, index=index))
    elif kind == "indicator":
        sets = as_candidates(pd().DataFrame(MATRIX, columns=NAMES, index=index))
    else:
        sets = as_candidates(pd().DataFrame(ANSWERS, index=index), layout="annotators")
    assert sets.ids.tolist() == index
    assert sets[[2, 0]].ids.tolist() == [index[2], index[0]]


def test_a_plain_range_index_gives_no_ids_but_a_sliced_one_does():
    series = pd().Series(STRINGS)
    assert as_candidates(series).ids is None
    assert as_candidates(series.iloc[1:]).ids.tolist() == [1, 2]
    assert as_candidates(series.iloc[::2]).ids.tolist() == [0, 2]
    assert as_candidates(pl().Series(STRINGS)).ids is None


def test_items_of_a_long_table_become_ids_in_order_of_appearance():
    votes = [(9, "a"), (2, "b"), (9, "b"), (5, "a")]
    sets = as_candidates(votes, layout="long")
    assert sets.ids.tolist() == [9, 2, 5]
    assert sets.ids.dtype.kind == "i"
    assert sets.sets() == [("a", "b"), ("b",), ("a",)]
    numeric = as_candidates(np.array([[9, 1], [2, 0], [9, 0]]), layout="long")
    assert numeric.ids.tolist() == [9, 2]


def test_items_give_the_order_of_rows():
    sets = as_candidates(VOTES, layout="long", items=["z", "x", "y"])
    assert sets.ids.tolist() == ["z", "x", "y"]
    assert sets.sets() == [SETS[2], SETS[0], SETS[1]]


# -- candidate sets as an object --------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (slice(1, None), [1, 2]),
        (slice(None, None, -1), [2, 1, 0]),
        (np.array([2, 0]), [2, 0]),
        ([0, 0], [0, 0]),
        (np.array([True, False, True]), [0, 2]),
        ([False, True, False], [1]),
        (-1, [2]),
        ((np.array([1]), ...), [1]),
        (slice(0, 0), []),
    ],
)
def test_rows_can_be_selected(rows, expected):
    sets = CandidateSets(MATRIX.astype(bool), np.array(NAMES), np.array(["x", "y", "z"]))
    chosen = sets[rows]
    assert chosen.sets() == [SETS[i] for i in expected]
    assert chosen.ids.tolist() == ["xyz"[i] for i in expected]
    assert chosen.matrix.flags.c_contiguous
    assert chosen.shape == (len(expected), 3)


def test_columns_cannot_be_selected():
    with pytest.raises(IndexError, match="only rows"):
        as_candidates(SETS)[:, 1]


def test_numpy_sees_the_matrix():
    sets = as_candidates(SETS)
    assert np.array_equal(np.asarray(sets), MATRIX)
    assert np.asarray(sets, dtype=float).dtype == float
    assert np.shares_memory(np.asarray(sets), sets.matrix)
    assert not np.shares_memory(np.array(sets), sets.matrix)
    assert repr(sets) == "CandidateSets(3 rows, 3 classes, 1.67 candidates per row)"


def test_scikit_learn_slices_them():
    from sklearn.base import BaseEstimator
    from sklearn.model_selection import cross_val_score, train_test_split

    class Most(BaseEstimator):
        """Predict the most frequent candidate."""

        def fit(self, X, y):
            assert isinstance(y, CandidateSets)
            assert [int(i) for i in y.ids] == X[:, 0].tolist()
            self.column_ = y.matrix.sum(axis=0).argmax()
            return self

        def score(self, X, y):
            check_length(y, len(X))
            return y.matrix[:, self.column_].mean()

    X = np.arange(12).reshape(-1, 1)
    series = pd().Series(["a|b", "a", "a|c"] * 4, index=[f"{i}" for i in range(12)])
    sets = as_candidates(series)
    assert cross_val_score(Most(), X, sets, cv=3).tolist() == [1.0, 1.0, 1.0]
    X_train, _, kept, left = train_test_split(X, sets, random_state=0)
    assert len(kept) + len(left) == 12
    assert kept.ids.tolist() == [str(i) for i in X_train[:, 0]]


def test_length_is_checked_against_X():
    sets = as_candidates(SETS)
    check_length(sets, 3)
    with pytest.raises(ValueError, match="X has 10 rows, but y has candidate sets for 3") as info:
        check_length(sets, 10)
    assert "inconsistent numbers of samples" in str(info.value)


def test_rows_are_named_up_to_five():
    assert name_rows([3]) == "row 3"
    assert name_rows(np.array([3, 17])) == "rows 3, 17"
    assert name_rows(range(17)) == "rows 0, 1, 2, 3, 4 and 12 more"


# -- what must hold for all -------------------------------------------------------------------

LABEL = st.one_of(
    st.integers(-5, 5),
    st.text("abc|\0é", min_size=1, max_size=3),
    st.tuples(st.integers(0, 2), st.integers(0, 2)),
)
ROWS = st.lists(st.frozensets(LABEL, min_size=1, max_size=4), min_size=1, max_size=8)


@given(ROWS)
def test_sets_come_back(rows):
    sets = as_candidates(rows)
    assert [frozenset(row) for row in sets.sets()] == rows
    assert set(sets.class_names.tolist()) == frozenset().union(*rows)
    again = as_candidates(sets.sets(), layout="sets", classes=sets.class_names)
    assert np.array_equal(again.matrix, sets.matrix)


@given(ROWS, st.data())
def test_rows_and_classes_may_be_permuted(rows, data):
    sets = as_candidates(rows)
    order = data.draw(st.permutations(range(len(rows))))
    columns = data.draw(st.permutations(range(sets.shape[1])))
    classes = [sets.class_names.tolist()[j] for j in columns]
    permuted = as_candidates([rows[i] for i in order], classes=classes)
    assert np.array_equal(permuted.matrix, sets.matrix[order][:, columns])
    assert np.array_equal(as_candidates(sets, classes=classes).matrix, sets.matrix[:, columns])


@given(ROWS, st.data())
def test_slicing_and_reading_commute(rows, data):
    sets = as_candidates(rows)
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=8))
    mask = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    assert [frozenset(row) for row in sets[chosen].sets()] == [rows[i] for i in chosen]
    kept = [row for row, keep in zip(rows, mask, strict=True) if keep]
    assert [frozenset(row) for row in sets[np.array(mask)].sets()] == kept


@given(ROWS)
def test_a_long_table_of_the_sets_gives_the_sets(rows):
    table = [(i, label) for i, row in enumerate(rows) for label in row]
    sets = as_candidates(table, layout="long")
    assert [frozenset(row) for row in sets.sets()] == rows
    assert sets.ids.tolist() == list(range(len(rows)))
