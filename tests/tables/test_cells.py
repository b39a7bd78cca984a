"""Cells: empty, number, label, date, formula, and what reaches a terminal."""

from __future__ import annotations

import datetime as dt
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from appellate import _text
from appellate.tables import cells

NUMBERS = {
    "1": 1.0,
    "-1.5": -1.5,
    "+.5": 0.5,
    "2.": 2.0,
    "1e3": 1000.0,
    "1E-2": 0.01,
    " 7 ": 7.0,
    "inf": math.inf,
    "-Infinity": -math.inf,
    "NA": math.nan,
    "null": math.nan,
    "": math.nan,
    "0_1": None,
    "1,5": None,
    "0x1": None,
    "\u0661": None,
    "1 2": None,
    "cat": None,
}


@pytest.mark.parametrize("text", NUMBERS)
def test_a_cell_and_a_column_agree_on_numbers(text):
    expected = NUMBERS[text]
    assert cells.as_number(text) == expected or (expected != expected)
    column = cells.numbers(pa.array([text, "1"]))
    if expected is None:
        assert cells.as_number(text) is None
        assert column is None
    else:
        assert np.array_equal(column, [expected, 1.0], equal_nan=True)


@given(st.floats(allow_nan=False))
def test_numbers_are_read_as_python_reads_them(number):
    assert cells.numbers(pa.array([repr(number), "0"]))[0] == number
    assert cells.as_number(repr(number)) == number


def test_a_column_of_words_alone_is_no_column_of_numbers():
    assert cells.numbers(pa.array(["NA", "none", "inf"])) is None


def test_decimal_commas():
    column = pa.array(["-1,5", "2", "", "1e3"])
    assert np.array_equal(cells.numbers(column, ","), [-1.5, 2, np.nan, 1000], equal_nan=True)
    assert cells.numbers(pa.array(["1,5", "x"]), ",") is None
    assert cells.numbers(pa.array(["1.5", "2"]), ",").tolist() == [1.5, 2]


def test_marks_of_missing_numbers():
    assert np.isnan(cells.numbers(pa.array(["?", "1"]), missing=["?"])[0])


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([3.0, 0.1, None, 1e20], ["3", "0.1", None, "1e+20"]),
        ([3, None], ["3", None]),
        ([True, False, None], ["True", "False", None]),
        (["  a ", "", " ", None, "NA", "e\u0301"], ["a", None, None, None, "NA", "\u00e9"]),
        ([dt.date(2024, 1, 5)], ["2024-01-05"]),
        ([dt.datetime(2024, 1, 5), None], ["2024-01-05", None]),
        ([dt.datetime(2024, 1, 5, 3)], ["2024-01-05 03:00:00"]),
        ([["a", "b"], None], ["a|b", None]),
    ],
)
def test_columns_as_texts_agree_with_cells(values, texts):
    assert cells.texts(pa.array(values)).to_pylist() == texts
    assert cells.texts(pa.chunked_array([values])).to_pylist() == texts
    assert [cells.as_label(value) for value in values] == texts


def test_dictionaries_are_read_as_what_they_hold():
    column = pa.array(["a", "b", "a", None]).dictionary_encode()
    assert cells.texts(column).to_pylist() == ["a", "b", "a", None]
    assert cells.numbers(pa.array(["1", "2"]).dictionary_encode()).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("texts", "first"),
    [
        (["2024-01-05", None], dt.datetime(2024, 1, 5)),
        (["2024-01-05 10:30", "2024-01-06 11:00"], dt.datetime(2024, 1, 5, 10, 30)),
        (["2024-01-05T10:30:15.25"], dt.datetime(2024, 1, 5, 10, 30, 15, 250_000)),
        (["31.12.2023"], dt.datetime(2023, 12, 31)),
        (["03/04/2024", "12/31/2024"], dt.datetime(2024, 3, 4)),
        (["03/04/2024", "31/12/2024"], dt.datetime(2024, 4, 3)),
    ],
)
def test_dates(texts, first):
    column = pa.array(texts)
    assert cells.read_dates(column, cells.date_format(column)).to_pylist()[0] == first


@pytest.mark.parametrize("text", ["cat", "2024-13-05", "1.2", "12", "1-2-3-4"])
def test_no_dates(text):
    assert cells.date_format(pa.array([text])) is None


def test_labels_that_are_one_number_have_one_spelling():
    assert cells.one_spelling(["2", "2.0", "1e5", "100000", "01", "1", "cat", "3"]) == {
        "2": "2",
        "2.0": "2",
        "1e5": "100000",
        "100000": "100000",
        "01": "1",
        "1": "1",
        "cat": "cat",
        "3": "3",
    }
    assert cells.in_order(["10", "9", "2.5"]) == ["2.5", "9", "10"]
    assert cells.in_order(["10", "9", "x"]) == ["10", "9", "x"]


HOSTILE = st.text(st.sampled_from("'=+-@\t\r\n\uff1d1.,5ae"), max_size=8)


@given(HOSTILE)
def test_neutralizing_is_undone_and_leaves_no_formula(text):
    safe = cells.neutralize(text)
    assert cells.restore(safe) == text
    if not _text._NUMBER.fullmatch(safe):
        assert safe[:1] not in {*"=+-@\t\r\n\uff1d"}


@given(HOSTILE)
def test_what_was_read_is_written_as_it_was(text):
    """A file's own apostrophes survive reading and writing."""
    read = cells.restore(text)
    assert cells.neutralize(read) in (text, f"'{text}")


def test_terminals_get_nothing_that_moves_the_cursor():
    hostile = "\x1b]52;c;x\x07 \u202e \u2028 \x9b \ud800 é 鳥 \u00a0"
    shown = cells.printable(hostile)
    assert "é 鳥" in shown
    assert not {"\x1b", "\x07", "\u202e", "\u2028", "\x9b", "\ud800"} & {*shown}
    shown.encode()


def test_lists_in_cells():
    assert cells.parse_list('["a", "b"]') == ("a", "b")
    assert cells.parse_list("('a',)") == ("a",)
    for wrong in ("['a' 'b']", "[a]", "{'a': 1}", "[[1]]", "", "cat", "[", "[" * 10_000):
        assert cells.parse_list(wrong) is None
