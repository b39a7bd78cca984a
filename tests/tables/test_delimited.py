"""pyarrow reads regular text files; the careful reader would find the same cells."""

from __future__ import annotations

import csv
import io

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appellate import rectify
from appellate._table_formats import FORMATS, Format
from appellate.datasets import load_partial_csv
from appellate.tables import TableError, delimited, read_table
from appellate.tables.columns import reads_columns
from appellate.tables.delimited import read_carefully, read_quickly

LETTERS = [
    "a",
    "1",
    ",",
    ";",
    '"',
    '""',
    "\n",
    "\r\n",
    "\r",
    "'",
    " ",
    "\t",
    "é",
    "\u2028",
    "\x0b",
]
CELLS = st.text(st.sampled_from("ab1,;\"\n \t'é.\u2028"), max_size=5)


def carefully(text, delimiter, header):
    newline = "\n" if "\n" in text else "\r"
    return read_carefully("'x.csv'", text, newline, delimiter, header)


def compare(text, delimiter, header):
    """Read a text in both ways; return whether it was read quickly."""
    found = read_quickly(text.encode(), delimiter, titled=header == "first")
    if found is None:
        return False
    expected, late = carefully(text, delimiter, header)
    assert found.first == expected.first
    assert not late
    assert [c.to_pylist() for c in found.columns] == [c.to_pylist() for c in expected.columns]
    assert all(column.type == pa.string() for column in found.columns)
    np.testing.assert_array_equal(found.lines, expected.lines)
    assert found.lines.dtype == expected.lines.dtype
    return True


@settings(max_examples=1500, deadline=None)
@given(st.lists(st.sampled_from(LETTERS), max_size=40), st.sampled_from(["first", "none"]))
def test_any_text_is_read_as_the_careful_reader_reads_it(parts, header):
    """If the careful reader refuses a text, compare would raise its error."""
    compare("".join(parts), ",", header)


@settings(max_examples=300, deadline=None)
@given(
    st.integers(2, 4).flatmap(
        lambda width: st.lists(
            st.lists(CELLS, min_size=width, max_size=width), min_size=2, max_size=6
        )
    ),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.booleans(),
)
def test_regular_tables_are_read_quickly(rows, delimiter, newline, quoting, blank):
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=delimiter, lineterminator=newline, quoting=quoting)
    for row in rows:
        writer.writerow(row)
        file.write(newline * blank)
    assert compare(file.getvalue(), delimiter, "first")


def test_rows_across_the_blocks_of_pyarrow(monkeypatch):
    monkeypatch.setattr(delimited, "_BLOCK", 100)
    rows = "".join(f'{i},"a\n""{i}"\n\n' for i in range(200))
    assert compare(f"x,y\n{rows}", ",", "first")
    assert not compare(f"x,y\n1,{'a' * 500}\n", ",", "first")


@pytest.mark.parametrize(
    "text",
    ["a,b\n1\n", "a,b\n1,2,3\n", 'a,b\n1,x"y\n', 'a,b\n1,"x"y\n', 'a,b\n1,"x\n', "a,b\r1,2\r",
     'a,b\n1,"x\ry"\n', "a,b\n", "", "\n\n", "a,b\n1,2\n  \n"],
)  # fmt: skip
def test_irregular_files_are_left_to_the_careful_reader(text):
    assert read_quickly(text.encode(), ",", titled=True) is None


@pytest.mark.parametrize("delimiter", ["§", '"', "\n"])
def test_delimiters_that_pyarrow_does_not_know_are_left_to_the_careful_reader(delimiter):
    assert read_quickly("a§b\n1§2\n".encode(), delimiter, titled=True) is None


def test_an_error_names_the_line_after_pyarrow_gave_up(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 500 + "1\n" + "1,2\n")
    with pytest.raises(TableError, match="line 502: 1 cells, but the header has 2"):
        read_table(path)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_encodings_give_the_same_table(tmp_path, encoding):
    text = "größe;name\n1,5;Anna\n2,25;Bo\n"
    (tmp_path / "t.csv").write_bytes(text.encode(encoding))
    table = read_table(tmp_path / "t.csv")
    assert table.names == ["größe", "name"]
    np.testing.assert_array_equal(table.numbers("größe"), [1.5, 2.25])
    assert table.lines.tolist() == [2, 3]


@reads_columns
def read_orc(file):
    return pytest.importorskip("pyarrow.orc").ORCFile(file).read()


@pytest.mark.filterwarnings("ignore::appellate.NoteWarning")
def test_a_new_format_is_one_row(tmp_path):
    """A newcomer adds ORC: a file, a folder of files and a file without an ending are read."""
    orc = pytest.importorskip("pyarrow.orc")
    row = Format("orc", ("ORC",), (".orc",), (b"ORC",), f"{__name__}:read_orc", typed=True)
    FORMATS.append(row)
    try:
        data = pa.table({"x": [1.5, 2.0], "y": ["a|b", "b"]})
        for name in ("t.orc", "part/1.orc", "part/2.orc", "unnamed"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            orc.write_table(data, str(tmp_path / name))
        assert read_table(tmp_path / "t.orc").kind == "orc"
        assert read_table(tmp_path / "t.orc").data.equals(data)
        assert read_table(tmp_path / "unnamed").data.equals(data)
        assert len(read_table(tmp_path / "part")) == 4
        run = rectify(tmp_path / "part", candidates="y", features="x")
        assert not (run.save(tmp_path / "out") / "rectified.csv").exists()
        (tmp_path / "bad.orc").write_bytes(b"ORC damaged")
        with pytest.raises(TableError, match="cannot be read as Orc"):
            read_table(tmp_path / "bad.orc")
    finally:
        FORMATS.remove(row)


@pytest.mark.parametrize("row", FORMATS, ids=lambda row: row.name)
def test_help_lists_every_format(row):
    for function in (read_table, rectify, load_partial_csv):
        for title in row.titles:
            assert title in function.__doc__
