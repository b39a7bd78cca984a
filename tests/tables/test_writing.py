"""Writing: what is written is read back cell by cell, and no spreadsheet runs it."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from appellate._files import WriteError
from appellate.tables import TableError, join, read_table, write_csv, write_table

CELL = st.text(
    st.one_of(
        st.sampled_from("\r\n\t\"',;|=+-@ \uff1d1.5_"),
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"),
    ),
    max_size=6,
)
ROWS = st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=6)


@given(ROWS)
def test_csv_is_read_back_cell_by_cell(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("csv")
    columns = dict(zip("abc", map(list, zip(*rows, strict=True)), strict=True))
    file = write_table(columns, folder / "a.csv")
    assert read_table(file).data.to_pydict() == columns
    with file.open(newline="", encoding="utf-8") as stream:  # as any other reader
        assert len(list(csv.reader(stream))) == len(rows) + 1
    again = write_table(read_table(file), folder / "b.csv")
    assert again.read_bytes() == file.read_bytes()


@given(st.lists(CELL, min_size=1, max_size=5))
def test_one_column_too(tmp_path_factory, cells):
    file = write_table({"a": cells}, tmp_path_factory.mktemp("csv") / "a.csv")
    assert read_table(file).data.to_pydict() == {"a": cells}


def test_formulas_are_neutralized_and_numbers_are_not(tmp_path):
    file = write_table({"=t": ["=cmd()", "-1,5", "-1.5", "@x"], "n": [-1.5, -2, 3, 4]},
                       tmp_path / "a.csv")  # fmt: skip
    rows = list(csv.reader(io.StringIO(file.read_text())))
    assert rows == [["'=t", "n"], ["'=cmd()", "-1.5"], ["-1,5", "-2"], ["-1.5", "3"], ["'@x", "4"]]


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_a_table_of_added_columns_alone(ending, tmp_path):
    added = {"a": np.array([0.1234567, np.nan]), "b": ["=x", None], "c": [True, False]}
    file = write_table(None, tmp_path / f"a.{ending}", added=added, digits=3)
    table = read_table(file)
    assert table.names == ["a", "b", "c"]
    assert table.numbers("a")[0] == (0.1234567 if ending == "parquet" else 0.123)
    assert table.texts("b").to_pylist() == ["=x", None]
    assert table.texts("c").to_pylist() == ["True", "False"]
    assert write_table(None, tmp_path / "e.csv", added={"a": [], "b": []}).read_text() == "a,b\n"


def test_the_own_columns_come_back_and_the_added_get_free_names(tmp_path):
    source = tmp_path / "a.csv"
    source.write_text('label;w;note\n"a|b";1,50;"x\ny"\nb;2;"\rz"\n', newline="")
    table = read_table(source)
    out = write_table(
        table, tmp_path / "b.csv", added={"label": ["a", "b"], "p": [0.123456789, 1]}, digits=6
    )
    back = read_table(out)
    assert back.names == ["label", "w", "note", "appellate_label", "p"]
    for name in table.names:
        assert back.data.column(name).to_pylist() == table.data.column(name).to_pylist()
    assert back.delimiter == ";"
    assert back.numbers("p").tolist() == [0.123457, 1]  # with a comma, as the others


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "jsonl", "json"])
def test_the_ending_says_the_kind(tmp_path, ending):
    columns = {"a": ["x", None], "n": [1.5, None], "l": [["p", "q"], ["q"]]}
    file = write_table(pa.table(columns), tmp_path / f"a.{ending}", added={"label": ["u", "v"]})
    back = read_table(file)
    assert back.kind == {"tsv": "csv", "jsonl": "json"}.get(ending, ending)
    assert back.texts("label").to_pylist() == ["u", "v"]
    assert back.texts("l").to_pylist() == ["p|q", "q"]
    assert back.numbers("n")[0] == 1.5


def test_json_has_no_nan(tmp_path):
    file = write_table({"a": ["x"]}, tmp_path / "a.jsonl", added={"p": [float("nan")]})
    assert json.loads(file.read_text()) == {"a": "x", "p": None}


def test_labels_with_bars_are_written_as_lists(tmp_path):
    file = write_table(pa.table({"l": [["p|r", "q"], ["q"]]}), tmp_path / "a.csv")
    assert read_table(file).texts("l").to_pylist() == ['["p|r", "q"]', '["q"]']


def test_nul_does_not_stop_the_writer(tmp_path):
    file = write_table(pa.table({"a": ["x\0y"]}), tmp_path / "a.csv")
    assert read_table(file).texts("a").to_pylist() == ["x␀y"]


def test_what_cannot_be_written(tmp_path):
    with pytest.raises(TableError, match=r"a.txz': a table is written to a name that ends in"):
        write_table({"a": [1]}, tmp_path / "a.txz")
    for name in ("a", "a.js", "a.p", "a.c"):  # the start of an ending is none
        with pytest.raises(TableError, match="ends in"):
            write_table({"a": [1]}, tmp_path / name)
    (tmp_path / "b.csv").mkdir()
    with pytest.raises(WriteError, match="a folder has that name"):
        write_table({"a": [1]}, tmp_path / "b.csv")


def test_to_a_stream():
    stream = io.StringIO()
    names = write_csv({"a": ["x\ry"]}, stream, added={"a": ["z"]})
    assert names == ["appellate_a"]
    assert stream.getvalue() == 'a,appellate_a\n"x\ry",z\n'


def test_pandas_in_pandas_out_polars_in_polars_out(tmp_path):
    added = {"label": ["a", "b"], "w": [0.5, 0.25]}
    frame = pd.DataFrame({"w": [1, 2]}, index=["p", "q"])
    out = join(read_table(frame), added)
    assert out.index.tolist() == ["p", "q"]
    assert out["label"].tolist() == ["a", "b"]
    assert out["appellate_w"].tolist() == [0.5, 0.25]
    assert frame.columns.tolist() == ["w"]
    assert join(read_table(pl.DataFrame({"w": [1, 2]})), added)["appellate_w"].to_list() == [
        0.5,
        0.25,
    ]
    assert join(read_table(pa.table({"w": [1, 2]})), added).column_names == [
        "w",
        "label",
        "appellate_w",
    ]
    file = write_table({"w": [1, 2]}, tmp_path / "a.parquet")
    for source in (file, {"w": [1, 2]}, [{"w": 1}, {"w": 2}]):
        assert isinstance(join(read_table(source), added), pd.DataFrame)


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_formulas_behind_a_separator_are_defused(mark):
    """A spreadsheet that separates by another character shows them as cells."""
    texts = [
        "x;=1+1;y",
        "x,=1+1",
        "x\t=1+1",
        "a\n=1+1",
        'x;"=1+1"',
        "x;-cmd|' /C calc'!A0",
        "x,+f(1)",
    ]
    stream = io.StringIO()
    write_csv({"n": ["0"] * len(texts), "t": texts}, stream, delimiter=mark)
    for other in ",;\t":
        rows = csv.reader(io.StringIO(stream.getvalue(), newline=""), delimiter=other)
        assert not [cell for row in rows for cell in row if cell.startswith(("=", "-cmd", "+f"))]


def test_texts_without_formulas_stay_as_they_are():
    texts = ["[0.5,-0.3]", "1;-2", "one\n- two\n- three", "hi,@me", "a,b", "x;'=1", "2024-01-05"]
    stream = io.StringIO()
    write_csv({"n": ["0"] * len(texts), "t": texts}, stream)
    rows = list(csv.reader(io.StringIO(stream.getvalue(), newline="")))
    assert [row[1] for row in rows[1:]] == texts
