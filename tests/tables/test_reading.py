"""Reading: every kind of file, what is found, and what is refused in words."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import appellate
from appellate.tables import Table, TableError, read_table

COLUMNS = {"w": ["1.5", "2"], "names": ["anna|bob", "bob"]}
FRAME = pd.DataFrame({"w": [1.5, 2.0], "names": ["anna|bob", "bob"]})


def put(folder, name, content):
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def texts(table):
    return {name: table.texts(name).to_pylist() for name in table.names}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


WRITERS = {
    "a.csv": lambda f: FRAME.to_csv(f, index=False),
    "a.tsv": lambda f: FRAME.to_csv(f, index=False, sep="\t"),
    "semicolons.csv": lambda f: FRAME.to_csv(f, index=False, sep=";", decimal=","),
    "bars.csv": lambda f: FRAME.replace("anna|bob", "anna;bob").to_csv(f, index=False, sep="|"),
    "a.parquet": lambda f: FRAME.to_parquet(f),
    "a.arrow": lambda f: FRAME.to_feather(f),
    "lines.jsonl": lambda f: FRAME.to_json(f, orient="records", lines=True),
    "records.json": lambda f: FRAME.to_json(f, orient="records"),
    "columns.json": lambda f: FRAME.to_json(f),
    "a.xlsx": lambda f: FRAME.to_excel(f, index=False),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_kind_of_file_means_the_same(here, name):
    WRITERS[name](here / name)
    table = read_table(name)
    assert table.names == ["w", "names"]
    assert table.numbers("w").tolist() == [1.5, 2.0]
    labels = [label.replace(";", "|") for label in table.texts("names").to_pylist()]
    assert labels == ["anna|bob", "bob"]
    assert len(table.sha256) == 64
    assert read_table(name).sha256 == table.sha256


FRAMES = {
    "pandas": FRAME,
    "polars": pl.DataFrame(COLUMNS),
    "lazy": pl.LazyFrame(COLUMNS),
    "arrow": pa.table(COLUMNS),
    "dict": COLUMNS,
    "records": FRAME.to_dict(orient="records"),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_every_kind_of_frame_means_the_same(kind):
    table = read_table(FRAMES[kind])
    assert table.kind == "frame"
    assert table.numbers("w").tolist() == [1.5, 2.0]
    assert table.texts("names").to_pylist() == ["anna|bob", "bob"]
    assert read_table(table) is table


def test_hash_of_a_frame_is_that_of_its_cells():
    again = pd.concat([FRAME.iloc[:1], FRAME.iloc[1:]])
    assert read_table(FRAME).sha256 == read_table(again).sha256
    assert read_table(FRAME).sha256 != read_table(FRAME.iloc[1:]).sha256


def test_a_named_index_is_a_column_and_columns_of_several_types_are_texts():
    frame = pd.DataFrame({"o": [1, "x", None]}, index=pd.Index(["p", "q", "r"], name="key"))
    assert texts(read_table(frame)) == {"key": ["p", "q", "r"], "o": ["1", "x", None]}


def test_intervals_are_categories():
    frame = pd.DataFrame({"w": pd.cut(pd.Series([1.0, 2.0, None]), [0, 1, 2])})
    assert texts(read_table(frame)) == {"w": ["(0, 1]", "(1, 2]", None]}


@pytest.mark.parametrize("titles", [["a", "a"], [0, "0"]])
def test_a_title_of_pandas_that_comes_twice_is_named(titles):
    message = f"the table has several columns called '{titles[1]}'. Give each its own title."
    with pytest.raises(TableError, match=re.escape(message)):
        read_table(pd.DataFrame([[1, 2]], columns=titles))


def test_what_is_no_table():
    for wrong in (np.zeros(3), 5, None, ["a"], {"a": [1], "b": [1, 2]}, {"a": 1}):
        with pytest.raises(TableError, match=r"is not a table \(.*Give a path, a data frame"):
            read_table(wrong)
    with pytest.raises(TableError, match="half a letter"):
        read_table(pd.DataFrame({"a": pd.Series(["\ud800"], dtype=object)}))


def test_decimal_commas_are_read_beside_words_for_no_number(here):
    table = read_table(put(here, "a.csv", "w;v\n1,5;NA\nNA;x\n2;y\n"))
    assert "decimal commas are read in 'w'." in table.notes
    assert np.array_equal(table.numbers("w"), [1.5, np.nan, 2], equal_nan=True)
    assert table.numbers("v") is None


def test_a_raised_digit_in_a_name_is_no_number(here):
    for i in (10, 2):
        put(here, f"m1²{i}.csv", f"a\n{i}\n")
    assert read_table("m*.csv").texts("a").to_pylist() == ["2", "10"]


def test_shards_come_in_natural_order(here):
    (here / "shards").mkdir()
    for i in (2, 10, 1):
        pd.DataFrame({"a": [i]}).to_parquet(f"shards/part-{i}.parquet")
    put(here / "shards", "state.json", "{}")
    for source in ("shards", "shards/part-*.parquet"):
        assert read_table(source).numbers("a").tolist() == [1, 2, 10]
    assert "3 files are read as one table" in read_table("shards").notes[0]
    assert "'state.json'" in read_table("shards").notes[1]
    pd.DataFrame({"b": [1]}).to_parquet("shards/part-3.parquet")
    with pytest.raises(TableError, match=r"part-3.parquet' and .* differ in 'a', 'b'"):
        read_table("shards")


def test_standard_input_is_of_whichever_kind_it_turns_out_to_be(here, monkeypatch):
    FRAME.to_parquet("a.parquet")
    contents = [b'{"w": 1.5}\n', b"w\n1.5\n", (here / "a.parquet").read_bytes()]
    for content in contents:
        stream = io.TextIOWrapper(io.BytesIO(content))
        monkeypatch.setattr(sys, "stdin", stream)
        assert read_table("-").numbers("w")[0] == 1.5


def test_titles_are_stripped_alike(here):
    put(here, "a.csv", " w , names ,truth\n1,a|b,a\n")
    put(here, "a.jsonl", '{" w ": 1, "names ": "a|b", "truth": "a"}\n')
    for source in ("a.csv", "a.jsonl", pd.DataFrame({" w ": [1], " names": ["a|b"], "truth": 1})):
        assert read_table(source).names == ["w", "names", "truth"]


def test_columns_of_json_lines_come_in_the_order_in_which_they_are_met(here):
    put(here, "a.jsonl", '{"a": 1}\n{"z": 1, "k": 2, "b": 3, "a": 4}\n')
    code = "from appellate.tables import read_table; print(read_table('a.jsonl').names)"
    for seed in "01":
        out = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        assert out.strip() == "['a', 'z', 'k', 'b']"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('"Width, cm";"Height, cm";names\n1,5;2;a|b\n', ["Width, cm", "Height, cm", "names"]),
        ("Width, cm;Height, cm;names\n1,5;2,0;a|b\n", ["Width, cm", "Height, cm", "names"]),
        ("id,names\n1,a;b\n2,c;d\n", ["id", "names"]),
        ("id\ttext\n1\ta, b; c, d\n", ["id", "text"]),
        ("x\n1\n", ["x"]),
        ('a,b\n"x;y\n;z",2\n', ["a", "b"]),
    ],
)
def test_the_delimiter_is_found_over_several_lines_outside_quotes(here, text, names):
    assert read_table(put(here, "a.csv", text)).names == names


def test_delimiter_encoding_and_decimal_can_be_given(here):
    put(here, "a.csv", "a:b\n1:\xe9\n".encode("latin-1"))
    table = read_table("a.csv", delimiter=":", encoding="latin-1")
    assert texts(table) == {"a": ["1"], "b": ["é"]}
    assert table.options == {"delimiter": ":", "encoding": "latin-1"}
    put(here, "b.csv", 'a,b\n"1,5",x\n')
    assert read_table("b.csv").numbers("a") is None
    assert read_table("b.csv", decimal=",").numbers("a").tolist() == [1.5]
    put(here, "c.csv", "a;b\n1,5;x\n")
    assert read_table("c.csv", decimal=".").numbers("a") is None
    with pytest.raises(TableError, match="not one character"):
        read_table("a.csv", delimiter="::")
    with pytest.raises(TableError, match="unknown encoding 'nonsense'"):
        read_table("a.csv", encoding="nonsense")
    with pytest.raises(TableError, match="is neither"):
        read_table("a.csv", decimal="-")


def test_the_encoding_is_found_and_said(here):
    put(here, "bom.csv", "\ufeffa,b\n1,é\n")
    put(here, "utf16.csv", "a,b\n1,é\n".encode("utf-16"))
    put(here, "windows.csv", "a,b\n1,é\n".encode("cp1252"))
    for name in ("bom.csv", "utf16.csv", "windows.csv"):
        assert texts(read_table(name)) == {"a": ["1"], "b": ["é"]}
    assert "read as cp1252" in read_table("windows.csv").notes[0]
    put(here, "mixed.csv", "a,b\n1,ü\n".encode() + b"2,\xe9\n")
    with pytest.raises(TableError, match=r"line 3: byte 0xe9 has another encoding"):
        read_table("mixed.csv")


def test_rows_never_shift(here):
    text = 'a,b\r\n1,"x\r\ny"\r\n2,"z\rq"\r\n3,"k\nl"\r\n'
    table = read_table(put(here, "a.csv", text))
    assert table.data.column("b").to_pylist() == ["x\r\ny", "z\rq", "k\nl"]
    assert texts(read_table(put(here, "mac.csv", "a,b\r1,2\r3,4\r"))) == {
        "a": ["1", "3"],
        "b": ["2", "4"],
    }


def test_untitled_columns_without_a_cell_are_nothing(here):
    assert read_table(put(here, "a.csv", "a,b,,\n1,2,,\n")).names == ["a", "b"]
    assert read_table(put(here, "b.csv", ",b\n0,2\n")).names == ["", "b"]


def test_the_apostrophes_of_an_earlier_file_are_taken_away(here):
    table = read_table(put(here, "a.csv", "'=t,b\n'=x,'tis\n''@y,'-1.5\n"))
    assert table.data.to_pydict() == {"=t": ["=x", "'@y"], "b": ["'tis", "'-1.5"]}


def test_excel(here):
    with pd.ExcelWriter("a.xlsx") as book:
        FRAME.assign(day=pd.to_datetime(["2024-01-05", "2024-02-01"])).to_excel(book, index=False)
        pd.DataFrame({"a": [1]}).to_excel(book, sheet_name="more", index=False)
    table = read_table("a.xlsx")
    assert table.texts("day").to_pylist() == ["2024-01-05", "2024-02-01"]
    assert table.notes == ("sheet 'Sheet1' is read; there are also 'more'.",)
    assert read_table("a.xlsx", sheet="more").names == ["a"]
    assert read_table("a.xlsx", sheet=1).names == ["a"]
    with pytest.raises(TableError, match=r"no sheet 'mor'\. It has 'Sheet1', 'more'"):
        read_table("a.xlsx", sheet="mor")


def write_bad_letters(file):
    offsets = pa.py_buffer(np.array([0, 2, 3], dtype=np.int32))
    column = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"ab\xff")])
    pq.write_table(pa.table({"s": column}), file)
    return file.read_bytes()


WRONG = {
    "ragged.csv": ("a,b\n1,2\n1,2,3\n", r"line 3: 3 cells, but the header has 2"),
    "short.csv": ('a,b\n"1\n2",3\n4\n', r"line 4: 1 cells"),
    "nul.csv": (b"a,b\n1,2\n3,\0\n", r"line 3: a NUL byte"),
    "late.csv": (b"a,b\n" + b"1,2\n" * 20_000 + b"3,\0\n", r"line 20002: a NUL byte"),
    "return.csv": ("a,b\n1,x\ry\n", r"line 2: a carriage return within a line"),
    "alone.csv": ("a\nx\ry\n", r"line 2: a carriage return within a line"),
    "open.csv": ('a,b\n1,"x\n', r"line 2: .*quote that is not closed"),
    "twice.csv": ("a, a\n1,2\n", r"several columns called 'a'"),
    "untitled.csv": ("a,,\n1,2,3\n", r"several columns without a title"),
    "empty.csv": (" \n", "is empty"),
    "header.csv": ("a,b\n", "has a header but no rows"),
    "digits.jsonl": ('{"a": ' + "9" * 5000 + "}\n", r"line 1: a number of too many digits"),
    "surrogate.jsonl": ('{"a": "x"}\n{"a": "\\ud800"}\n', r"column 'a', row 1: half a letter"),
    "title.jsonl": ('{"\\ud800": 1}\n', r"title: half a letter"),
    "deep.json": ("[" * 100_000, "lists within lists"),
    "broken.json": ('{"a":\n', r"line 1, column 6: not JSON"),
    "array.json": ("[1, 2]", r"entry 0: not an object"),
    "lines.jsonl": ('{"a": 1}\n[2]\n', r"line 2: not an object"),
    "broken.parquet": (b"PAR1....", "cannot be read as Parquet"),
    "broken.arrow": (b"ARROW1....", "cannot be read as Arrow"),
    "broken.xlsx": (b"PK\x03\x04....", "cannot be read as a spreadsheet"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_with_its_place(here, name):
    content, said = WRONG[name]
    with pytest.raises(TableError, match=said) as caught:
        read_table(put(here, name, content))
    assert name in str(caught.value)
    assert str(caught.value).endswith(".")


def test_bad_letters_in_parquet(here):
    put(here, "a.parquet", write_bad_letters(here / "b.parquet"))
    with pytest.raises(TableError, match=r"column 's', row 1: byte 0xff is not UTF-8"):
        read_table("a.parquet")


def test_numbers_too_large_for_arrow_are_texts(here):
    table = read_table(put(here, "a.jsonl", json.dumps({"a": 10**400}) + '\n{"a": 1}\n'))
    assert table.texts("a").to_pylist() == [str(10**400), "1"]


def test_a_missing_file_or_column_is_named_with_the_nearest(here):
    put(here, "birds.csv", "names,w\na,1\n")
    with pytest.raises(TableError, match=r"the file 'brids.csv'\. Did you mean 'birds.csv'"):
        read_table("brids.csv")
    (here / "nothing").mkdir()
    with pytest.raises(TableError, match="folder without a table"):
        read_table("nothing")
    table = read_table("birds.csv")
    with pytest.raises(TableError, match=r"no column 'Nmaes' \(truth\)\. Did you mean 'names'\?"):
        table.find("Nmaes", "truth")


def test_columns_by_name_pattern_and_list():
    table = read_table({"w1": [1], "w2": [1], "a,b": [1], "x[1]": [1], "cafe\u0301": [1]})
    assert table.find("w*") == ("w1", "w2")
    assert table.find(["w2", "w*"]) == ("w2", "w1")
    assert table.find("w2,w1") == ("w2", "w1")
    assert table.find("a,b") == ("a,b",)
    assert table.find("x[1]") == ("x[1]",)
    assert table.find("caf\u00e9") == ("cafe\u0301",)


def test_names_reach_messages_without_their_escape_sequences():
    table = read_table({"a\x1b]0;x\x07": [1]})
    with pytest.raises(TableError) as caught:
        table.find("b")
    assert "\x1b" not in str(caught.value)
    assert "\\x1b]0;x\\x07" in str(caught.value)


def test_reading_loads_no_scikit_learn(here):
    put(here, "a.csv", "w,names\n1,a|b\n2,b\n")
    code = (
        "import sys; from appellate.tables import diagnose; print(diagnose('a.csv').kind); "
        "print({'polars', 'sklearn', 'skrub', 'scipy', 'click'} & {*sys.modules})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert run.stdout.split("\n")[:2] == ["partial-label", "set()"]


def test_repr():
    assert repr(read_table({"a": [1]})) == "Table(the table, 1 rows, 1 columns)"
    assert isinstance(read_table({"a": [1]}), Table)


@pytest.mark.parametrize("kind", [set, frozenset])
@pytest.mark.parametrize("make", [dict, pd.DataFrame])
def test_sets_are_read_in_one_order(kind, make):
    names = ["wren", "robin", "finch", "crow", "owl"]
    columns = {"x": [1.5, 2.5], "c": [kind(names), kind(["owl"])]}
    table = read_table(make(columns))
    assert table.data.column("c").to_pylist() == [sorted(names), ["owl"]]
    again = read_table({"x": [1.5, 2.5], "c": [sorted(names), ["owl"]]})
    assert table.sha256 == again.sha256


def test_what_is_good_to_know_of_one_file_is_said_of_all(tmp_path):
    put(tmp_path, "a1.csv", "w;names\n1;a|b\n2;b\n")
    put(tmp_path, "a2.csv", "w;names\n3;caf\xe9|b\n4;b\n".encode("latin-1"))
    notes = read_table(tmp_path / "a*.csv").notes
    alone = [read_table(tmp_path / f"a{i}.csv").notes for i in (1, 2)]
    assert alone[0] != alone[1]
    assert {*alone[0], *alone[1]} <= {*notes}
    assert len({*notes}) == len(notes)


# -- orientations of JSON --------------------------------------------------------------

ANIMALS = pd.DataFrame({"x": [1, 2, 3], "names": ["a|b", "b", "a"]})


@pytest.mark.parametrize("orient", ["columns", "index", "split", "records", "table"])
@pytest.mark.parametrize("index", [None, ["k2", "k1", "k3"]])
def test_json_of_every_orientation_of_pandas_is_the_same_table(here, orient, index):
    frame = ANIMALS if index is None else ANIMALS.set_axis(index)
    (here / "a.json").write_text(frame.to_json(orient=orient))
    table = read_table("a.json")
    assert table.data.select(["x", "names"]).to_pydict() == ANIMALS.to_dict(orient="list")
    keys = [] if index is None or orient == "records" else ["index"]
    assert table.names == [*keys, "x", "names"]
    if keys:
        assert table.texts("index").to_pylist() == index


def test_columns_of_json_are_paired_by_the_key_of_the_row(here):
    content = {"a": {"k1": 1, "k2": 2}, "b": {"k2": "b2", "k1": "b1", "k3": "b3"}}
    (here / "a.json").write_text(json.dumps(content))
    assert read_table("a.json").data.select(["a", "b"]).to_pylist() == [
        {"a": 1, "b": "b1"},
        {"a": 2, "b": "b2"},
        {"a": None, "b": "b3"},
    ]


def test_an_object_per_row_under_a_name_is_a_row(here):
    content = {"img1.png": {"x": 1, "label": "a|b"}, "img2.png": {"x": 2, "label": "b"}}
    (here / "a.json").write_text(json.dumps(content))
    table = read_table("a.json")
    assert table.names == ["index", "x", "label"]
    assert table.texts("index").to_pylist() == [*content]
    assert table.notes == ()


def test_notes_how_nested_objects_are_read_when_they_do_not_tell(here):
    rows = {f"row {i}": {"x": "u", "y": "v"} for i in range(5)}
    (here / "a.json").write_text(json.dumps(rows))
    table = read_table("a.json")
    assert table.names == ["index", "x", "y"]
    assert "each object, 'row 0' first, is read as one row" in table.notes[0]


def test_a_row_of_split_json_that_is_too_short_is_named(here):
    (here / "a.json").write_text('{"columns": ["a", "b"], "data": [[1, 2], [3]]}')
    with pytest.raises(TableError, match="entry 1 of 'data': 1 cells, but there are 2 columns"):
        read_table("a.json")


# -- folders ---------------------------------------------------------------------------


def test_hidden_folders_are_not_read(here):
    for name in ("data/a.csv", "data/.ipynb_checkpoints/a-checkpoint.csv", "data/__MACOSX/a.csv",
                 "data/part/.git/x/b.csv", "data/part/_SUCCESS.csv"):  # fmt: skip
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        put(here, name, "x,names\n1,cat\n2,dog\n")
    assert len(read_table("data")) == 2
    (here / ".hidden").mkdir()
    put(here, ".hidden/a.csv", "x\n1\n")
    assert len(read_table(".hidden")) == 1  # it was named


# -- thousands -------------------------------------------------------------------------


def test_commas_before_three_digits_group_thousands(here):
    text = "salary\tnames\n1,234\tcat\n12,345\tdog\n999\tcat\n-1,234,567.5\tcat\nNA\tdog\n"
    table = read_table(put(here, "a.tsv", text))
    wanted = [1234, 12345, 999, -1234567.5, np.nan]
    assert np.array_equal(table.numbers("salary"), wanted, equal_nan=True)
    assert any("commas group thousands in 'salary'" in note for note in table.notes)
    assert any("give decimal=','" in note for note in table.notes)


@pytest.mark.parametrize("cells", [["0,125", "0,250"], ["1,234", "1,5"], ["1,2345", "2,000"]])
def test_commas_that_do_not_group_are_decimals(here, cells):
    table = read_table(put(here, "a.tsv", "w\tn\n" + "".join(f"{c}\tx\n" for c in cells)))
    assert table.numbers("w").tolist() == [float(cell.replace(",", ".")) for cell in cells]


def test_decimal_commas_of_another_column_decide_and_are_noted(here):
    table = read_table(put(here, "a.csv", "w;v\n1,234;1,5\n2,345;2\n"))
    assert table.numbers("w").tolist() == [1.234, 2.345]
    assert any("every comma in 'w' is followed by three digits" in note for note in table.notes)
    table = read_table("a.csv", decimal=".")
    assert table.numbers("w").tolist() == [1234, 2345]
    assert table.numbers("v") is None


def test_the_decimal_mark_that_is_given_decides(here):
    put(here, "a.tsv", "w\tn\n1,234\tx\n2,345\ty\n")
    assert read_table("a.tsv", decimal=",").numbers("w").tolist() == [1.234, 2.345]
    assert read_table("a.tsv", decimal=".").numbers("w").tolist() == [1234, 2345]


def test_notes_thousands_in_a_file_of_commas(here):
    put(here, "a.csv", 'w,n\n"1,234",x\n"2,345",y\n')
    table = read_table("a.csv")
    assert table.numbers("w") is None
    assert "give decimal='.'" in table.notes[0]
    assert read_table("a.csv", decimal=".").numbers("w").tolist() == [1234, 2345]


def salaries(cells, mark=";", other=()):
    other = other or ["x"] * len(cells)
    lines = [f"salary{mark}n", *(f"{c}{mark}{o}" for c, o in zip(cells, other, strict=True))]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [
        (["1.234", "12.345", "999"], [1234, 12345, 999]),
        (["1.234", "-1.234.567", "NA"], [1234, -1234567, np.nan]),
        (["1.234,50", "12.345,75", "9,5"], [1234.5, 12345.75, 9.5]),
    ],
)
def test_dots_that_cannot_be_decimal_group_thousands(here, cells, wanted):
    """In a file of semicolons 1.234 was read as 1.234, without a note."""
    table = read_table(put(here, "a.csv", salaries(cells)))
    assert np.array_equal(table.numbers("salary"), wanted, equal_nan=True)
    assert any("dots group thousands in 'salary'" in note for note in table.notes)
    assert any("give decimal='.'" in note for note in table.notes)


def test_dots_group_thousands_next_to_decimal_commas(here):
    put(here, "a.csv", salaries(["1.234", "12.345"], other=["1,5", "2,5"]))
    table = read_table("a.csv")
    assert table.numbers("salary").tolist() == [1234, 12345]
    assert table.numbers("n").tolist() == [1.5, 2.5]
    assert any("dots group thousands in 'salary'" in note for note in table.notes)


def test_dots_that_are_all_followed_by_three_digits_are_noted(here):
    put(here, "a.csv", salaries(["1.234", "12.345"]))
    table = read_table("a.csv")
    assert table.numbers("salary").tolist() == [1.234, 12.345]
    assert any("every dot in 'salary' is followed by three digits" in n for n in table.notes)
    assert read_table("a.csv", decimal=",").numbers("salary").tolist() == [1234, 12345]
    silent = read_table("a.csv", decimal=".")
    assert silent.numbers("salary").tolist() == [1.234, 12.345]
    assert not any("dot" in note for note in silent.notes)


@pytest.mark.parametrize(
    "cells", [["0.125", "1.250"], ["1.234", "1.5"], ["1.234", "1234"], ["a 1.234", "2.345"]]
)
def test_other_dots_are_decimal_points_without_a_note(here, cells):
    table = read_table(put(here, "a.csv", salaries(cells)))
    assert not any("dot" in note for note in table.notes)
    found = table.numbers("salary")
    assert found is None or found.tolist() == [float(cell) for cell in cells]


@pytest.mark.parametrize("mark", [",", "\t"])
def test_dots_in_files_of_commas_and_tabs_are_decimal_points(here, mark):
    table = read_table(put(here, "a.csv", salaries(["1.234", "12.345", "999"], mark)))
    assert table.numbers("salary").tolist() == [1.234, 12.345, 999]
    assert not any("dot" in note for note in table.notes)


# -- headers ---------------------------------------------------------------------------


def test_rows_may_all_end_before_the_last_columns(here):
    text = "HITId,WorkerId,Answer,Approve,Reject\nh1,w1,cat\nh2,w2,dog\n"
    table = read_table(put(here, "batch.csv", text))
    assert texts(table) == {
        "HITId": ["h1", "h2"], "WorkerId": ["w1", "w2"], "Answer": ["cat", "dog"],
        "Approve": [None, None], "Reject": [None, None],
    }  # fmt: skip
    assert "rows end before the last columns, which are empty: 'Approve', 'Reject'." in table.notes


def test_rows_of_mechanical_turk_may_end_at_approve_or_reject(here):
    text = "HITId,Answer,Approve,Reject\nh1,cat\nh2,dog,x\nh3,cat,,bad\n"
    table = read_table(put(here, "batch.csv", text))
    assert texts(table)["Reject"] == [None, None, "bad"]
    assert texts(table)["Approve"] == [None, "x", None]
    assert read_table(put(here, "b.csv", "a,b,,\n1,2\n3,4,\n")).names == ["a", "b"]


@pytest.mark.parametrize("text", ["a,b,c\n1,2,3\n4,5\n", "a,b,c\n1,2\n", "a,b,c\n1,2\n4\n"])
def test_a_row_that_ends_early_for_another_reason_is_refused(here, text):
    with pytest.raises(TableError, match=r"line \d: \d cells, but the header has 3"):
        read_table(put(here, "a.csv", text))


@pytest.mark.parametrize("header", ["none", None])
def test_columns_of_a_file_without_a_header_are_numbered(here, header):
    put(here, "a.tsv", "w1\tt1\tcat\nw2\tt1\tdog\n")
    table = read_table("a.tsv", header=header)
    assert table.names == ["0", "1", "2"]
    assert table.texts("2").to_pylist() == ["cat", "dog"]
    assert table.lines.tolist() == [1, 2]
    assert table.options == {"header": "none"}
    pd.DataFrame([["w1", 1.5], ["w2", 2]]).to_excel("a.xlsx", index=False, header=False)
    assert texts(read_table("a.xlsx", header=header)) == {"0": ["w1", "w2"], "1": ["1.5", "2"]}


def test_a_header_is_for_files_that_can_lack_one(here):
    with pytest.raises(TableError, match="header='none' is for text files and Excel"):
        read_table(FRAME, header="none")
    with pytest.raises(TableError, match="header='second' is neither 'first' nor 'none'"):
        read_table(FRAME, header="second")
    put(here, "a.csv", "a,b\n1,2,3\n")
    with pytest.raises(TableError, match="line 2: 3 cells, but the first row has 2"):
        read_table("a.csv", header="none")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1.5,2,7\n2.5,3,8\n", "all titles are numbers"),
        ("w1,t1,cat\nw2,t1,dog\nw1,t2,cat\n", "every title is also a cell of its column"),
    ],
)
def test_notes_a_header_that_looks_like_a_row(here, text, why):
    (note,) = read_table(put(here, "a.csv", text)).notes
    assert why in note
    assert note.endswith("If the file has no header, give header='none'.")
    assert read_table("a.csv", header="none").notes == ()


@pytest.mark.parametrize("text", ["0,1,2\n5,6,7\n", "1,2\n1,2\n", "a,b\n1,2\n", "cat\ncat\ndog\n"])
def test_an_ordinary_header_is_not_noted(here, text):
    assert read_table(put(here, "a.csv", text)).notes == ()


def test_repeated_titles_of_a_file_may_mean_that_it_has_no_header(here):
    with pytest.raises(TableError, match=r"called '0'\. Give each its own title\. If the"):
        read_table(put(here, "a.csv", "0,1,0\n1,2,3\n"))


# -- kinds -----------------------------------------------------------------------------


@pytest.mark.parametrize("title", ["PAR1", "ARROW1", "ARROW1x", "PK"])
def test_a_title_does_not_make_a_csv_file_binary(here, title):
    assert read_table(put(here, "a.csv", f"{title},b\n1,2\n")).names == [title, "b"]


def test_a_binary_file_is_known_by_its_start_whatever_its_ending(here):
    FRAME.to_parquet("a.parquet")
    (here / "a.parquet").rename("a.csv")
    assert read_table("a.csv").kind == "parquet"


def test_a_matlab_file_is_named_and_so_is_what_reads_it(here):
    scipy_io = pytest.importorskip("scipy.io")
    scipy_io.savemat(here / "birds.mat", {"data": np.ones((2, 2))})
    with pytest.raises(TableError, match=r"'birds.mat' is a MATLAB file.*load_partial_mat"):
        read_table("birds.mat")
    (here / "birds.mat").rename("birds.dat")
    with pytest.raises(TableError, match="load_partial_mat"):
        read_table("birds.dat")


def test_arrays_of_several_dimensions_in_cells_are_refused():
    frame = pd.DataFrame({"x": [1, 2], "emb": [np.zeros((2, 2)), np.ones((2, 2))]})
    message = r"column 'emb', row 0: an array of shape \(2, 2\).*ravel\(\)"
    with pytest.raises(TableError, match=message):
        read_table(frame)
    mixed = pd.DataFrame({"emb": [np.ones(2), "x"]})
    assert texts(read_table(mixed)) == {"emb": ["1|1", "x"]}


# -- Arrow -----------------------------------------------------------------------------

VIEWS = {
    "text": pa.array(["a", "a text that is longer than a view", None], pa.string_view()),
    "bytes": pa.array([b"\xff", b"b", None], pa.binary_view()),  # not UTF-8
    "list": pa.array([["cat"], ["cat", "dog"], None], pa.list_view(pa.string())),
    "deep": pa.array([["cat"], ["dog"], None], pa.list_(pa.string_view())),
    "large": pa.array(["a", "b", None], pa.large_string()),
    "runs": pa.RunEndEncodedArray.from_arrays([2, 3], ["a", "b"]),
    "codes": pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None], pa.int8()), pa.array(["u", "v"], pa.string_view())
    ),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_of_arrow_are_read_and_can_be_used(name):
    table = read_table(pa.table({"x": [1, 2, 3], name: VIEWS[name]}))
    column = table.data.column(name)
    assert column.to_pylist() == VIEWS[name].to_pylist()
    assert "view" not in str(column.type)
    column.take(pa.array([2, 0]))
    table.texts(name)


def test_files_and_tables_of_polars_are_read(here):
    frame = pl.DataFrame({"t": ["u", None, "w"], "c": ["a|b", "a", "b"], "l": [["a"], ["b"], []]})
    frame.write_ipc(here / "a.arrow")
    for source in ("a.arrow", pa.table(frame)):
        table = read_table(source)
        assert table.data.take(pa.array([0, 2])).column("t").to_pylist() == ["u", "w"]
        assert table.texts("c").to_pylist() == ["a|b", "a", "b"]


def test_damaged_offsets_of_arrow_are_refused(here):
    """Plain pyarrow reads such a file and ends the process when a cell is looked at."""
    sink = io.BytesIO()
    table = pa.table({"names": ["aaaa", "bbbb"]})
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    offsets = np.array([0, 4, 8], dtype="<i4").tobytes()
    damaged = np.array([0, 0x7F000000, 8], dtype="<i4").tobytes()
    assert sink.getvalue().count(offsets) == 1
    put(here, "a.arrow", sink.getvalue().replace(offsets, damaged))
    with pytest.raises(TableError, match=r"'a.arrow', column 'names': damaged. Write the file"):
        read_table("a.arrow")


@pytest.mark.parametrize("kind", ["stream", "file"])
def test_no_changed_byte_of_arrow_ends_the_process(here, kind):
    code = """
import pathlib, sys
from appellate.tables import TableError, diagnose, read_table
from tests.fuzz.hostile import generator, make_arrow
for seed in range(30):
    pathlib.Path("a.arrow").write_bytes(make_arrow(generator("arrow", seed), sys.argv[1]))
    try:
        diagnose(read_table("a.arrow"))
        print("read")
    except TableError as error:
        print("refused")
"""
    root = str(Path(__file__).parents[2])
    paths = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", code, kind],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert {*done.stdout.split()} == {"read", "refused"}


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([0, 2**62]).view(pa.timestamp("us")),
        pa.array([0, 2**30], pa.int32()).view(pa.date32()),
        pa.array([0, 2**61]).view(pa.duration("s")),
        pa.array([0, 1]).view(pa.timestamp("us", "Mars/Olympus")),
        pa.array([[0], [2**62]], pa.list_(pa.timestamp("us"))),
    ],
    ids=["moment", "day", "duration", "zone", "list"],
)
def test_refuses_dates_that_python_cannot_hold(cells, tmp_path):
    """Found by `make fuzz`: predict to JSON ended in an OverflowError."""
    table = pa.table({"when": cells, "names": ["a|b", "b"]})
    path = tmp_path / "odd.arrow"
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    for source in (path, table):
        with pytest.raises(TableError, match=r"column 'when': a date or time lies outside"):
            read_table(source)


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()], ids=str)
def test_bytes_that_are_utf8_are_texts(here, kind):
    """The labels were called "b'a'"."""
    cells = pa.array([b"a|\xc3\xa9", b"a", None], kind)
    pq.write_table(pa.table({"x": [1, 2, 3], "names": cells}), "a.parquet")
    assert read_table("a.parquet").texts("names").to_pylist() == ["a|é", "a", None]
    assert read_table(pa.table({"names": cells})).texts("names").to_pylist() == ["a|é", "a", None]


@pytest.mark.filterwarnings("ignore::appellate.NoteWarning")
def test_nul_at_the_end_of_titles_and_labels_is_left_out(here):
    """NumPy leaves it out too: a column was not found, and rows had no candidate."""
    names = ["cat\0|dog", "dog", "cat\0"] * 4
    pq.write_table(pa.table({"x\0": [0.5, 1.5, 2.5] * 4, "names": names}), "a.parquet")
    run = appellate.rectify("a.parquet", candidates="names", method="plcp", base="knn")
    assert [each["name"] for each in run.settings["features"]] == ["x"]
    assert run.settings["labels"] == ["cat", "dog"]
    lists = [[label] for label in ["cat\0", "dog", "cat"] * 4]
    run = appellate.rectify({"names": lists, "x": [0.5, 1, 1.5] * 4}, annotators="names")
    assert run.settings["labels"] == ["cat", "dog"]


def test_a_damaged_view_of_an_empty_cell_is_not_followed(here):
    """Found by `make fuzz`: Arrow checks only the views of filled cells, and the process ended."""
    cells = pa.array(["a" * 20, None, "b"] * 4, pa.string_view())
    validity, views, letters = cells.buffers()
    damaged = bytearray(views.to_pybytes())
    damaged[16:20] = np.int32(-704643072).tobytes()  # its length
    buffers = [validity, pa.py_buffer(bytes(damaged)), letters]
    column = pa.Array.from_buffers(cells.type, 12, buffers, 4)
    column.validate(full=True)
    table = read_table(pa.table({"names": column}))
    assert table.texts("names").to_pylist() == ["a" * 20, None, "b"] * 4


@pytest.mark.parametrize("kind", ["union", "interval"])
def test_refuses_columns_of_arrow_types_that_cannot_be_written(tmp_path, kind):
    columns = {
        "union": pa.UnionArray.from_sparse(
            pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])]
        ),
        "interval": pa.array([(1, 2, 3)] * 2, pa.month_day_nano_interval()),
    }
    table = pa.table({"odd": columns[kind], "names": ["a|b", "b"]})
    path = tmp_path / "odd.arrow"
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(TableError, match=r"column 'odd'.*cannot be read"):
        read_table(path)


@pytest.mark.parametrize(
    ("kind", "option", "said"),
    [
        ("csv", {"sheet": "Sheet1"}, "is CSV, but sheet= is only for Excel. Leave sheet= out."),
        ("parquet", {"encoding": "utf-8"}, "is Parquet, but encoding= is only for CSV, TSV, JSON"),
        ("json", {"delimiter": ";"}, "is JSON, but delimiter= is only for CSV, TSV"),
        ("frame", {"sheet": "Sheet1"}, "the table is a data frame, but sheet= is only for Excel"),
    ],
)
def test_an_option_of_another_format_is_refused(kind, option, said, tmp_path):
    frame = pd.DataFrame({"size": [1, 2, 3], "label": ["cat", "dog", "cat"]})
    path = tmp_path / f"animals.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "parquet":
        frame.to_parquet(path)
    elif kind == "json":
        frame.to_json(path, orient="records")
    with pytest.raises(TableError, match=said):
        read_table(frame if kind == "frame" else path, **option)
