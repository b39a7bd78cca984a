"""Reading: every kind of file, what is found, and what is refused in words."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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
        with pytest.raises(TableError, match=r"is no table \(.*Give a path, a data frame"):
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
    with pytest.raises(TableError, match=r"no file 'brids.csv'\. Did you mean 'birds.csv'"):
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
