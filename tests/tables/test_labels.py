"""Labels: sets, people, long tables and counts as plain arrays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from appellate import as_candidates
from appellate.tables import (
    TableError,
    features,
    find_roles,
    read_labels,
    read_table,
    write_table,
)


def read(columns, **given):
    table = read_table(columns)
    return read_labels(table, find_roles(table, **given))


def named(labels):
    return [tuple(labels.class_names[row]) for row in labels.matrix]


X = {"x": [0.5, 1.5, 2.5]}


@pytest.mark.parametrize(
    "cells",
    [
        ["cat|dog", " dog ", "cow | cat"],
        ["['cat', 'dog']", "['dog']", "['cow', 'cat']"],
        ['["cat", "dog"]', '["dog"]', '["cow", "cat", "cat"]'],
        [["cat", "dog"], ["dog"], ["cow", "cat"]],
        ["cat;dog", "dog", "cow;cat"],
        ["cat, dog", "dog", "cow, cat"],
    ],
)
def test_sets_are_read_whatever_parts_them(cells):
    labels = read({**X, "c": cells}, candidates="c")
    assert named(labels) == [("cat", "dog"), ("dog",), ("cat", "cow")]
    assert labels.class_names.tolist() == ["cat", "cow", "dog"]
    assert set(labels.people) == {-1}
    assert labels.owner.tolist() == labels.first.tolist() == [0, 1, 2]
    same = as_candidates(labels.matrix, classes=labels.class_names)
    assert same.sets() == named(labels)


def test_names_with_commas_are_one_label_and_a_separator_can_be_given():
    cells = ["Doe, Jane", "Roe, Rick", "Poe, Edgar"]
    assert len(read({**X, "c": cells}, candidates="c").class_names) == 3
    assert len(read({**X, "c": cells}, candidates="c", separator=",").class_names) == 6
    assert len(read({**X, "c": ["a|b", "b", "a"]}, candidates="c", separator="").class_names) == 3


def test_lists_that_cannot_be_read_name_the_row():
    with pytest.raises(TableError, match=r"column 'c', row 1: .* this one cannot be read: '\[x'?"):
        read({**X, "c": ["['a']", "[x]", "['b']"]}, candidates="c")


def test_indicator_columns():
    labels = read({**X, "a": [1, 0, 1], "b": ["1", "1.0", "0"]}, candidates=["a", "b"])
    assert named(labels) == [("a", "b"), ("b",), ("a",)]
    with pytest.raises(TableError, match=r"column 'b', row 2: neither 0 nor 1"):
        read({**X, "a": [1, 0, 1], "b": [1, 1, 0.5]}, candidates=["a", "b"])


def test_people_keep_their_answers():
    columns = {**X, "ann": ["cat", "dog", None], "ben": ["cat", "", "cow"], "c": ["dog"] * 3}
    labels = read(columns, annotators=["ann", "ben", "c"])
    said = zip(labels.rows, labels.people_names[labels.people], labels.labels, strict=True)
    assert [(int(r), str(p), str(labels.class_names[l])) for r, p, l in said] == [
        (0, "ann", "cat"),
        (0, "ben", "cat"),
        (0, "c", "dog"),
        (1, "ann", "dog"),
        (1, "c", "dog"),
        (2, "ben", "cow"),
        (2, "c", "dog"),
    ]
    assert labels.counts.tolist() == [[2, 0, 1], [0, 0, 2], [0, 1, 1]]
    assert labels.class_names[labels.majority].tolist() == ["cat", "dog", "cow"]


def test_long_tables():
    columns = {
        "item": ["b", "a", "b", "b", "a"],
        "label": ["x", "y", "x", "x", None],
        "worker": ["w2", "w1", "w1", "w2", "w2"],
        "size": [2.0, 1.0, 2.0, 2.0, 1.0],
        "truth": ["x", "y", "x", "x", "y"],
    }
    labels = read(columns, long="item,label,worker", truth="truth")
    assert labels.ids.tolist() == ["b", "a"]
    assert labels.owner.tolist() == [0, 1, 0, 0, 1]
    assert labels.first.tolist() == [0, 1]
    assert labels.truth.tolist() == ["x", "y"]
    assert labels.counts.tolist() == [[2, 0], [0, 1]]  # w2 said x twice
    assert read(columns, long=["item", "label"]).counts.tolist() == [[3, 0], [0, 1]]
    with pytest.raises(TableError, match=r"column 'item', row 1: no name"):
        read({**columns, "item": ["b", None, "b", "b", "a"]}, long="item,label,worker")


def test_counts_are_weights():
    labels = read({**X, "a": [2, 0, 1], "b": [1, 3, 2]}, counts=["a", "b"])
    assert labels.counts.tolist() == [[2, 1], [0, 3], [1, 2]]
    assert labels.weights.sum() == 9
    for wrong in ([-1, 0, 1], ["x", "1", "2"], [None, 1.0, 2.0]):
        with pytest.raises(TableError, match=r"column 'a', row 0: not a number of votes"):
            read({**X, "a": wrong, "b": [1, 3, 2]}, counts=["a", "b"])


def test_one_number_in_two_spellings_is_one_label_with_the_truth_too():
    labels = read({**X, "c": ["2|3", "2.0", "3.0|1"], "t": ["2", "2", "3.0"]}, truth="t")
    assert labels.class_names.tolist() == ["1", "2", "3"]
    assert labels.truth.tolist() == ["2", "2", "3"]
    assert labels.notes == ("labels that are the same number are read as one: '2.0' as '2', "
                            "'3.0' as '3'.",)  # fmt: skip
    arrow = {**X, "ann": pa.array([1.0, 2.0, None]), "ben": ["1", "2", "3"]}
    assert read(arrow, annotators=["ann", "ben"]).class_names.tolist() == ["1", "2", "3"]


def test_na_and_none_are_labels_unless_they_are_named_as_missing():
    columns = {**X, "ann": ["NA", "none", "a"], "ben": ["a", "NA", ""]}
    labels = read(columns, annotators=["ann", "ben"])
    assert labels.class_names.tolist() == ["NA", "a", "none"]
    assert "If one of them means that an answer is missing" in labels.notes[0]
    labels = read(columns, annotators=["ann", "ben"], missing=["NA", "none"])
    assert labels.class_names.tolist() == ["a"]
    columns = {**X, "ann": [-1.0, 2.0, 3.0], "ben": ["3", "-1", "2"]}
    assert read(columns, annotators="*n", missing="-1").class_names.tolist() == ["2", "3"]


def test_ids_are_names_of_their_own():
    assert read({"id": [3, 1, 2], "c": ["a|b", "b", "a"]}).ids.tolist() == ["3", "1", "2"]
    with pytest.raises(TableError, match=r"\(id\): 'a' occurs more than once"):
        read({"k": ["a", "a", "b"], "c": ["a|b", "b", "a"]}, id="k")
    with pytest.raises(TableError, match=r"column 'k', row 1: no name"):
        read({"k": ["a", None, "b"], "c": ["a|b", "b", "a"]}, id="k")


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["a|b"], "there is only one row"),
        (["a|b", "", "a"], "no label in row 1"),
        (["a", "a", "a"], "every row has the one label 'a'"),
        (["a|b", "b|a", "a|b"], "every row has all 2 labels"),
        ([f"l{i}" for i in range(60)], "60 different labels in 60 rows"),
    ],
)
def test_problems_are_said(cells, said):
    columns = {"x": np.arange(len(cells)) / 3, "c": cells}
    assert said in " ".join(read(columns, candidates="c").problems())


def test_gaps_between_separators_are_noted():
    labels = read({**X, "c": ["a||b", "|b", "a"]}, candidates="c")
    assert named(labels) == [("a", "b"), ("b",), ("a",)]
    assert labels.notes == ("nothing before, after or between two '|' in rows 0, 1.",)


def write_sheet(path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for _ in range(2):
        book.active.append([])
    for row in (["x", "c"], [1, "a|b"], [], [2, None], [3, "b"]):
        book.active.append(row)
    book.save(path)


@pytest.mark.parametrize(
    ("name", "content", "where"),
    [
        ("t.csv", "x,c\n1,a|b\n2,\n3,b\n", "row 1 (line 3)"),
        ("t.csv", 'x,c\n\n"1\n1",a|b\n2,\n3,b\n', "row 1 (line 5)"),
        ("t.tsv", "x\tc\r\n1\ta|b\r\n2\t\r\n3\tb\r\n4\t\r\n", "rows 1, 3 (lines 3, 5)"),
        ("t.jsonl", '{"x": 1, "c": "a|b"}\n\n{"x": 2}\n{"x": 3, "c": "b"}\n', "row 1 (line 3)"),
        ("t.json", '[{"x": 1, "c": "a|b"}, {"x": 2}, {"x": 3, "c": "b"}]', "row 1"),
        ("t.xlsx", write_sheet, "row 1 (line 6)"),
        ("t.parquet", lambda p: write_table({"x": [1, 2], "c": ["a|b", None]}, p), "row 1"),
    ],
)
def test_rows_are_named_by_the_lines_of_their_file_too(name, content, where, tmp_path):
    file = tmp_path / name
    file.write_text(content, newline="") if isinstance(content, str) else content(file)
    table = read_table(file)
    said = read_labels(table, find_roles(table, candidates="c")).problems()
    assert said[0] == f"no label in {where}: add one, or drop the rows."


def test_lines_of_numbers_that_cannot_be_used(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("item,x,c\n1,1,a\n1,1,b\n2,1e31,a\n2,2,b\n3,inf,a\n", newline="")
    table = read_table(file)
    roles = find_roles(table, long="item,c", features="x")
    with pytest.raises(TableError, match=r"'x', row 2 \(line 4\): a number too large"):
        features(table, roles, rows=read_labels(table, roles).first, largest=1e30)
    with pytest.raises(TableError, match=r"'x', row 4 \(line 6\): an infinite number"):
        features(table, roles, rows=read_labels(table, roles).first)
    for k in (1, 2):
        (tmp_path / f"p{k}.csv").write_text("x,c\n1,a|b\n2,b\n")
    assert read_table(tmp_path / "p*.csv").lines is None
