"""Every misuse of candidates is refused with a reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from appellate.candidates import as_candidates
from tests.candidates.forms import (
    ANSWERS,
    MATRIX,
    NAMES,
    SETS,
    STRINGS,
    pd,
    pl,
)

pytestmark = pytest.mark.filterwarnings("error")

NAN = float("nan")


def spoilt(value: float) -> np.ndarray:
    """Return a float matrix with one wrong entry in row 2, column 1."""
    matrix = MATRIX.astype(float)
    matrix[2, 1] = value
    return matrix


def doubled_frame() -> Any:
    """Return a frame in which one column name comes twice."""
    return pd().DataFrame(MATRIX, columns=["a", "b", "a"])


MISUSES: list[tuple[str, Any, type[Exception], str]] = [
    # rows without a label
    (
        "empty row",
        lambda: as_candidates(MATRIX * [[1], [0], [0]]),
        ValueError,
        r"^rows 1, 2: no c",
    ),
    (
        "many empty rows",
        lambda: as_candidates(np.eye(99)[:, :2]),
        ValueError,
        r"6 and 92 more: no",
    ),
    ("empty list", lambda: as_candidates([["a"], []]), ValueError, r"^row 1: no cand.* drop the"),
    ("only empty lists", lambda: as_candidates([[], []]), ValueError, r"^rows 0, 1: no candidate"),
    ("empty string", lambda: as_candidates(["a", " "]), ValueError, r"^row 1: no candidate"),
    (
        "empty string, no separator",
        lambda: as_candidates(["a", ""], separator=None),
        ValueError,
        r"^row 1: no candidate",
    ),
    (
        "empty piece",
        lambda: as_candidates(["a", "anna||bob"]),
        ValueError,
        r"^row 1: an empty lab",
    ),
    (
        "None in a set",
        lambda: as_candidates([["a"], ["b", None]]),
        ValueError,
        r"^row 1: an empty",
    ),
    ("NaN in a set", lambda: as_candidates([[NAN, 2.0], [1.0]]), ValueError, r"^row 0: an empty"),
    (
        "None for a set",
        lambda: as_candidates([["a"], None]),
        ValueError,
        r"contains NaN.* row 1\.",
    ),
    (
        "None for a string",
        lambda: as_candidates(["a|b", None]),
        ValueError,
        r"contains NaN.*row 1",
    ),
    (
        "None for a string, layout named",
        lambda: as_candidates(["a|b", None], layout="sets"),
        ValueError,
        r"contains NaN.*row 1",
    ),
    (
        "None for a label",
        lambda: as_candidates([1, None]),
        ValueError,
        r"contains NaN.* row 1\. Dr",
    ),
    ("blank label", lambda: as_candidates(["a", ""], layout="labels"), ValueError, r"NaN.* row 1"),
    ("NaN label", lambda: as_candidates(np.array([1, NAN])), ValueError, r"Input y contains NaN"),
    (
        "NaN label, list",
        lambda: as_candidates([1, NAN]),
        ValueError,
        r"Input y contains NaN.*row 1",
    ),
    (
        "infinite label",
        lambda: as_candidates([1.0, np.inf]),
        ValueError,
        r"Input y contains infin",
    ),
    (
        "NA, pandas",
        lambda: as_candidates(pd().Series([1, None], dtype="Int64")),
        ValueError,
        r"Input y contains NaN.* row 1",
    ),
    (
        "NA, pandas bool",
        lambda: as_candidates(pd().Series([True, None], dtype="boolean")),
        ValueError,
        r"Input y contains NaN.* row 1",
    ),
    (
        "NaT, pandas",
        lambda: as_candidates(pd().Series(["2020-01-01", None], dtype="datetime64[ns]")),
        ValueError,
        r"Input y contains NaN.* row 1",
    ),
    (
        "null, polars",
        lambda: as_candidates(pl().Series([1, None])),
        ValueError,
        r"contains NaN.*row 1",
    ),
    (
        "null list, polars",
        lambda: as_candidates(pl().Series([["a"], None])),
        ValueError,
        r"contains NaN.*row 1",
    ),
    # entries that are not 0 or 1
    (
        "NaN entry",
        lambda: as_candidates(spoilt(NAN)),
        ValueError,
        r"^Input y contains NaN in row 2\.",
    ),
    (
        "negative entry",
        lambda: as_candidates(spoilt(-1)),
        ValueError,
        r"^row 2, column 1: -1\.0 is n",
    ),
    ("negative entry, fix", lambda: as_candidates(spoilt(-1)), ValueError, r"missing=-1"),
    (
        "fraction",
        lambda: as_candidates(spoilt(0.5)),
        ValueError,
        r"^row 2, column 1: 0\.5 is neither",
    ),
    ("two", lambda: as_candidates(MATRIX * 2), ValueError, r"^row 0, column 0: 2 is.*Pass y > 0"),
    (
        "infinite entry",
        lambda: as_candidates(spoilt(np.inf)),
        ValueError,
        r"column 1: inf is neither",
    ),
    (
        "named entry",
        lambda: as_candidates(spoilt(3), classes=NAMES),
        ValueError,
        r"^row 2, column 'bob': 3\.0 is",
    ),
    (
        "entry of a frame",
        lambda: as_candidates(pd().DataFrame(spoilt(3), columns=NAMES)),
        ValueError,
        r"^row 2, column 'bob': 3\.0 is .*layout=\"long\"",
    ),
    (
        "null in a frame",
        lambda: as_candidates(pl().DataFrame({"a": [1, 1], "b": [None, 0]})),
        ValueError,
        r"^Input y contains NaN in row 0",
    ),
    (
        "NA in a frame of objects",
        lambda: as_candidates(
            pd().DataFrame({"a": [1, 1], "b": pd().array([None, True], dtype="boolean")}),
            layout="indicator",
        ),
        ValueError,
        r"^Input y contains NaN in row 0",
    ),
    (
        "strings in a matrix",
        lambda: as_candidates(MATRIX.astype(str), layout="indicator"),
        ValueError,
        r"^row 0, column 0: '1' is neither 0 nor 1",
    ),
    (
        "sparse entry",
        lambda: as_candidates(sp.csr_array(spoilt(2)), classes=NAMES),
        ValueError,
        r"^row 2, column 'bob': 2\.0 is",
    ),
    (
        "sparse NaN",
        lambda: as_candidates(sp.csc_array(spoilt(NAN))),
        ValueError,
        r"contains NaN in row 2",
    ),
    (
        "sparse doubles",
        lambda: as_candidates(sp.csr_array(([1, 1], [1, 1], [0, 2]), shape=(1, 2))),
        ValueError,
        r"^row 0, column 1: 2 is neither",
    ),
    # shapes and kinds
    ("3-D", lambda: as_candidates(np.ones((2, 2, 2))), ValueError, r"3 dimensions.*1-D.*2-D"),
    ("0-D", lambda: as_candidates(np.array(1)), ValueError, r"0 dimensions"),
    ("1-D sparse", lambda: as_candidates(sp.coo_array([1, 0])), ValueError, r"shape \(2,\)"),
    ("number", lambda: as_candidates(3), TypeError, r"^y is a int, not a sequence"),
    ("string", lambda: as_candidates("anna|bob"), TypeError, r"^y is a str, not a sequence"),
    ("bytes", lambda: as_candidates(b"ab"), TypeError, r"^y is a bytes, not a sequence"),
    ("dict", lambda: as_candidates({"x": ["a"]}), TypeError, r"dict.*list\(y\.values\(\)\)"),
    ("set", lambda: as_candidates({"a", "b"}), TypeError, r"^y is a set, not a sequence"),
    ("generator", lambda: as_candidates(row for row in SETS), TypeError, r"generator.*list\(y\)"),
    (
        "lazy frame",
        lambda: as_candidates(pl().LazyFrame({"a": [1]})),
        TypeError,
        r"LazyFrame.*y\.collect\(\)",
    ),
    ("None", lambda: as_candidates(None), ValueError, r"Expected array-like .* got None"),
    ("no rows", lambda: as_candidates([]), ValueError, r"^y has no rows"),
    ("no rows, matrix", lambda: as_candidates(np.ones((0, 3))), ValueError, r"^y has no rows"),
    ("no classes", lambda: as_candidates(np.ones((3, 0))), ValueError, r"shape \(3, 0\)"),
    ("complex", lambda: as_candidates(MATRIX * 1j), ValueError, r"Complex data not supported"),
    ("complex labels", lambda: as_candidates([1j, 2]), ValueError, r"Complex data not supported"),
    (
        "complex sparse",
        lambda: as_candidates(sp.csr_array(MATRIX * 1j)),
        ValueError,
        r"Complex data not supported",
    ),
    (
        "masked",
        lambda: as_candidates(np.ma.masked_equal([1, 2], 2)),
        ValueError,
        r"^y has masked entries",
    ),
    (
        "continuous",
        lambda: as_candidates(np.array([1.0, 0.5])),
        ValueError,
        r"Unknown label type: continuous\. row 1: .*0\.5.*Bin",
    ),
    ("continuous list", lambda: as_candidates([1, 0.5]), ValueError, r"Unknown label type: cont"),
    (
        "continuous objects",
        lambda: as_candidates(np.array([1, 0.5], dtype=object)),
        ValueError,
        r"Unknown label type: continuous",
    ),
    (
        "unhashable",
        lambda: as_candidates([["a", ["b"]], ["c"]]),
        TypeError,
        r"\['b'\], a list.*hash",
    ),
    (
        "strings and lists",
        lambda: as_candidates(["a", ["b"]]),
        TypeError,
        r"row 0 is a str, row 1 is a l",
    ),
    (
        "numbers and lists",
        lambda: as_candidates([["b"], 3]),
        TypeError,
        r"row 0 is a list, row 1 is a i",
    ),
    (
        "numbers as sets",
        lambda: as_candidates([1, 2], layout="sets"),
        TypeError,
        r"row 0 is a int.*list of labels",
    ),
    (
        "0/1 lists",
        lambda: as_candidates(MATRIX.tolist()),
        ValueError,
        r"np\.asarray\(.*layout=\"sets\"",
    ),
    ("bool lists", lambda: as_candidates([[True], [False]]), ValueError, r"layout=\"indicator\""),
    (
        "confidences in lists",
        lambda: as_candidates([[0.2, 0.8], [0.5, 0.5]]),
        ValueError,
        r"equally long lists of numbers from 0 to 1",
    ),
    (
        "ragged",
        lambda: as_candidates([[1, 0], [1], [0, 1], [1]], layout="indicator"),
        ValueError,
        r"^rows 1, 3: ragged.*layout='sets'",
    ),
    (
        "vector as matrix",
        lambda: as_candidates([1, 0], layout="indicator"),
        TypeError,
        r"^y is not a table",
    ),
    (
        "matrix as labels",
        lambda: as_candidates(MATRIX, layout="labels"),
        ValueError,
        r"one label per row",
    ),
    (
        "frame as sets",
        lambda: as_candidates(pd().DataFrame(MATRIX), layout="sets"),
        TypeError,
        r"takes one column. Select it",
    ),
    (
        "table of cells",
        lambda: as_candidates(np.array(ANSWERS, dtype=object)),
        ValueError,
        r"layout=\"annotators\".*layout=\"long\"",
    ),
    (
        "frame of answers",
        lambda: as_candidates(pd().DataFrame(ANSWERS)),
        ValueError,
        r"layout=\"annotators\".*layout=\"long\"",
    ),
    (
        "long table of 0 and 1",
        lambda: as_candidates(pd().DataFrame({"item": [0, 1], "label": [1, 1]})),
        ValueError,
        r"layout=\"long\"",
    ),
    (
        "sets with a layout",
        lambda: as_candidates(as_candidates(SETS), layout="long"),
        TypeError,
        r"already",
    ),
    (
        "no columns, rows",
        lambda: as_candidates([[], []], layout="indicator"),
        ValueError,
        r"^y has no columns",
    ),
    # classes
    (
        "duplicate columns",
        lambda: as_candidates(doubled_frame()),
        ValueError,
        r"duplicate column 'a'",
    ),
    (
        "unknown class",
        lambda: as_candidates(["a", "zoe|a", "zoe"], classes=["a"]),
        ValueError,
        r"^rows 1, 2: unknown class 'zoe'. Add it to `classes`",
    ),
    (
        "unknown label",
        lambda: as_candidates(np.array([1, 2, 7]), classes=[1, 2]),
        ValueError,
        r"^row 2: unknown class 7",
    ),
    (
        "class of another type",
        lambda: as_candidates([1, 2], classes=["1", "2"]),
        ValueError,
        r"^rows 0, 1: unknown class 1, 2\.",
    ),
    (
        "unknown column",
        lambda: as_candidates(pd().DataFrame(MATRIX, columns=NAMES), classes=["anna", "bob"]),
        ValueError,
        r"^column 'carl' not in `classes`",
    ),
    (
        "unknown class of sets",
        lambda: as_candidates(as_candidates(SETS), classes=["anna"]),
        ValueError,
        r"^columns 'bob', 'carl' not in `classes`",
    ),
    (
        "class count",
        lambda: as_candidates(MATRIX, classes=["a"]),
        ValueError,
        r"has 1 names.* 3 columns",
    ),
    (
        "duplicate classes",
        lambda: as_candidates(SETS, classes=["a", "a"]),
        ValueError,
        r"duplicate 'a'",
    ),
    ("no class", lambda: as_candidates(SETS, classes=[]), ValueError, r"^`classes` is empty"),
    (
        "missing class",
        lambda: as_candidates(SETS, classes=["a", None]),
        ValueError,
        r"`classes` holds a mis",
    ),
    (
        "string as classes",
        lambda: as_candidates(SETS, classes="ab"),
        TypeError,
        r"^`classes` is a str",
    ),
    (
        "set as classes",
        lambda: as_candidates(SETS, classes={"a"}),
        TypeError,
        r"`classes` is a set.*in order",
    ),
    (
        "number of classes",
        lambda: as_candidates(SETS, classes=3),
        TypeError,
        r"^`classes` is a int",
    ),
    # options
    (
        "layout",
        lambda: as_candidates(SETS, layout="wide"),
        ValueError,
        r"unknown layout 'wide'.*'sets'",
    ),
    ("separator", lambda: as_candidates(STRINGS, separator=""), ValueError, r"^separator ''"),
    (
        "rule",
        lambda: as_candidates(ANSWERS, layout="annotators", rule="top"),
        ValueError,
        r"unknown rule 'top'.*'votes:2'",
    ),
    (
        "rule without number",
        lambda: as_candidates(ANSWERS, layout="annotators", rule="votes"),
        ValueError,
        r"unknown rule",
    ),
    (
        "rule of no kind",
        lambda: as_candidates(ANSWERS, layout="annotators", rule=2),
        ValueError,
        r"unknown rule 2",
    ),
    (
        "k zero",
        lambda: as_candidates(ANSWERS, layout="annotators", rule="votes:0"),
        ValueError,
        r"'votes:0': k must be",
    ),
    (
        "k fraction",
        lambda: as_candidates(ANSWERS, layout="annotators", rule="votes:1.5"),
        ValueError,
        r"k must be a pos",
    ),
    (
        "p zero",
        lambda: as_candidates(ANSWERS, layout="annotators", rule="share:0"),
        ValueError,
        r"p must be in \(0, 1\]",
    ),
    (
        "p too large",
        lambda: as_candidates(ANSWERS, layout="annotators", rule="share:1.1"),
        ValueError,
        r"p must be in",
    ),
    (
        "p no number",
        lambda: as_candidates(ANSWERS, layout="annotators", rule="share:x"),
        ValueError,
        r"p must be in",
    ),
    (
        "p NaN",
        lambda: as_candidates(ANSWERS, layout="annotators", rule="share:nan"),
        ValueError,
        r"p must be in",
    ),
    (
        "rule without votes",
        lambda: as_candidates(SETS, rule="votes:2"),
        ValueError,
        r"^rule='votes:2' is for tables of answers.*layout=\"annotators\"",
    ),
    (
        "missing without answers",
        lambda: as_candidates(SETS, missing=-1),
        ValueError,
        r"^missing=-1 is for tables of answers",
    ),
    (
        "items without long",
        lambda: as_candidates(SETS, items=[1]),
        ValueError,
        r"^`items` is for layout",
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
