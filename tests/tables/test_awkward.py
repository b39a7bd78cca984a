"""Twelve awkward tables mean what they should, and come back row for row."""

from __future__ import annotations

import unicodedata

import pytest

from appellate.tables import diagnose, find_roles, read_labels, read_table, write_table

COMPOSED, PARTED = unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é")

#: Content, classes, numbers of the column w, cells of the column note.
TABLES = {
    "2 and 2.0": ("w,c,note\n1,2|3,k\n2,2.0,l\n3,3.0|1,m\n", "1 2 3", [1, 2, 3], "k l m"),
    "NFC and NFD": (
        f"w,c,note\n1,{COMPOSED}|a,k\n2,{PARTED},l\n3,a|b,m\n",
        f"a b {COMPOSED}",
        [1, 2, 3],
        "k l m",
    ),
    "semicolons, commas in titles": (
        '"w";c;"note";"h, cm"\n1;a|b;k;2\n2;b;l;3\n3;a|c;m;4\n',
        "a b c",
        [1, 2, 3],
        "k l m",
    ),
    "decimal commas": (
        "w;c;note\n1,5;a|b;k\n-2,25;b;l\n3;a|c;m\n",
        "a b c",
        [1.5, -2.25, 3],
        "k l m",
    ),
    "Latin-1": (
        "w,c,note\n1,ü|b,k\n2,b,ß\n3,ü|c,m\n".encode("latin-1"),
        "b c ü",
        [1, 2, 3],
        "k ß m",
    ),
    "byte order mark": ("\ufeffw,c,note\n1,a|b,k\n2,b,l\n3,a|c,m\n", "a b c", [1, 2, 3], "k l m"),
    "CRLF": ("w,c,note\r\n1,a|b,k\r\n2,b,l\r\n3,a|c,m\r\n", "a b c", [1, 2, 3], "k l m"),
    "embedded newlines": (
        'w,c,note\n1,a|b,"k\nk"\n2,b,"l\r\nl"\n3,a|c,m\n',
        "a b c",
        [1, 2, 3],
        ["k\nk", "l\r\nl", "m"],
    ),
    "a lone carriage return": (
        'w,c,note\n1,a|b,"k\rk"\n2,b,"\rl"\n3,a|c,m\n',
        "a b c",
        [1, 2, 3],
        ["k\rk", "\rl", "m"],
    ),
    "numbers with underscores": (
        "w,c,note\n1,a|b,0_1\n2,b,2_3\n3,a|c,4_5\n",
        "a b c",
        [1, 2, 3],
        "0_1 2_3 4_5",
    ),
    "dates as labels": (
        "w,c,note\n1,2024-01-05|2024-01-06,k\n2,2024-01-06,l\n3,2024-01-05|2024-02-01,m\n",
        "2024-01-05 2024-01-06 2024-02-01",
        [1, 2, 3],
        "k l m",
    ),
    "a class called NA": (
        "w,c,note\n1,NA|b,k\n2,b,l\n3,NA|none,m\n",
        "NA b none",
        [1, 2, 3],
        "k l m",
    ),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "xlsx"])
def test_awkward_tables(tmp_path, name, ending):
    content, classes, numbers, notes = TABLES[name]
    file = tmp_path / "table.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    if ending != "csv":
        table = read_table(file)
        numbers_ = {"w": table.numbers("w")} if table.decimal == "," else {}
        columns = {**table.data.to_pydict(), **numbers_}
        file = tmp_path / f"table.{ending}"
        if ending == "xlsx":
            if "carriage" in name or "newlines" in name:
                pytest.skip("a spreadsheet has line feeds only")
            import pandas as pd

            pd.DataFrame(columns).to_excel(file, index=False)
        else:
            write_table(columns, file)
    table = read_table(file)
    notes = notes.split() if isinstance(notes, str) else notes
    assert table.data.column("note").to_pylist() == notes
    assert table.numbers("w").tolist() == numbers
    labels = read_labels(table, find_roles(table, candidates="c"))
    assert labels.class_names.tolist() == classes.split()
    found = diagnose(table, candidates="c")
    assert found.kind == "partial-label"
    assert found.facts["classes"] == 3
    assert found.facts["rows"] == 3

    out = write_table(table, tmp_path / "out.csv", added={"label": ["x", "y", "z"]})
    back = read_table(out)
    assert back.names == [*table.names, "label"]
    for column in table.names:
        assert back.texts(column).to_pylist() == table.texts(column).to_pylist()
    assert back.data.column("note").to_pylist() == notes
    again = read_labels(back, find_roles(back, candidates="c"))
    assert again.matrix.tolist() == labels.matrix.tolist()


def test_plot_codes_are_no_numbers():
    table = read_table({"plot": ["0_1", "2_3", "0_1", "2_3"] * 3, "c": ["a|b", "b", "a", "b"] * 3})
    assert table.numbers("plot") is None
    assert find_roles(table).reasons["plot"] == "2 categories"


def test_dates_are_labels_in_columns_of_people():
    days = ["2024-01-05", "2024-01-06", "2024-01-05", "2024-02-01"]
    table = read_table({"rater1": days, "rater2": days[::-1], "x": [0.5, 1.5, 2.5, 3.5]})
    labels = read_labels(table, find_roles(table, annotators="rater*"))
    assert labels.class_names.tolist() == ["2024-01-05", "2024-01-06", "2024-02-01"]
