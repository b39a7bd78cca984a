"""Broken input: a message that says what, where and what to do; exit code 2; nothing left."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

from appellate.cli.app import run
from tests.cli.tables import make_rows, write_rows, write_table

SAFE = ["--candidates", "labels", "--base", "sure"]


def table(path, **options):
    return write_table(path / "t.csv", **options)


def change(path, **cells):
    rows = table(path)
    rows[7] |= cells
    write_rows(path / "t.csv", rows)


def write(path, content):
    (path / "t.csv").write_bytes(content if isinstance(content, bytes) else content.encode())


def sparse(path):
    with (path / "t.csv").open("wb") as file:
        file.truncate(2 << 30)


def huge_npy(path):
    table(path)
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (60, 5000000), }"
    header += b" " * (128 - 10 - len(header) - 1) + b"\n"
    prefix = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
    (path / "x.npy").write_bytes(prefix + header + b"\0" * 99)


def objects_npy(path):
    table(path)
    np.save(path / "x.npy", np.array([{"a": 1}] * 60, dtype=object), allow_pickle=True)


def short_npy(path):
    table(path)
    np.save(path / "x.npy", make_rows(10)[0])


def infinite_npy(path):
    table(path)
    np.save(path / "x.npy", np.full((60, 2), np.inf))


def nan_npy(path):
    table(path)
    np.save(path / "x.npy", np.full((60, 2), np.nan))


def all_labels(path):
    write_rows(path / "t.csv", [{"x": str(i), "labels": "a|b"} for i in range(20)])


def excluded(path, kept=1):
    rows = table(path)
    lines = [{"id": r["item"], "decision": "none", "label": ""} for r in rows[kept:]]
    write_rows(path / "d.csv", lines)


def identical(path):
    rows = [{"item": r["item"], "labels": r["labels"], "x": "1"} for r in table(path)]
    write_rows(path / "t.csv", rows)


def many_classes(path):
    write_rows(path / "t.csv", [{"x": str(i), "labels": f"c{i}|d{i}"} for i in range(5000)])


def taken(path):
    table(path)
    (path / "out").write_text("a file")


def truncated_parquet(path):
    table(path)
    (path / "t.csv").write_bytes(b"PAR1" + b"\x15\x00" * 25)


EMBEDDED = [*SAFE, "--embeddings", "x.npy"]
CASES = {
    "no file": (lambda p: None, SAFE, r"cannot find the file 't\.csv'"),
    "folder": (lambda p: (p / "t.csv").mkdir(), SAFE, "is a folder"),
    "wrong column": (table, ["--candidates", "lables"], "Did you mean 'labels'"),
    "wrong truth": (table, [*SAFE, "--truth", "y"], r"no column 'y' \(truth\)"),
    "empty file": (lambda p: write(p, ""), SAFE, "is empty"),
    "blank file": (lambda p: write(p, "\n \n"), SAFE, "is empty"),
    "header only": (lambda p: write(p, "labels,x\n"), SAFE, "a header but no rows"),
    "one row": (lambda p: write(p, "labels,x\na|b,1\n"), SAFE, "there is only one row"),
    "one class": (lambda p: write(p, "labels,x\na,1\na,2\n"), SAFE, "the one label 'a'"),
    "garbage": (
        lambda p: write(p, os.urandom(9) + b"\0\1"),
        SAFE,
        "is not a text file|another encoding",
    ),
    "2 GB": (sparse, SAFE, "a NUL byte"),
    "ragged": (lambda p: write(p, "labels,x\na|b,1\nb,2,3\n"), SAFE, "line 3: 3 cells"),
    "open quote": (lambda p: write(p, 'labels,x\n"a|b,1\n'), SAFE, "quote that is not closed"),
    "same names": (lambda p: write(p, "labels,x,x\na,1,2\n"), SAFE, "columns called 'x'"),
    "same ids": (
        lambda p: change(p, item="i3"),
        [*SAFE, "--id", "item"],
        r"'i3' occurs more than once",
    ),
    "no candidates": (lambda p: change(p, labels=""), SAFE, r"row 7"),
    "infinite": (
        lambda p: change(p, x1="inf"),
        SAFE,
        r"column 'x1', row 7 \(line 9\): an infinite",
    ),
    "identical": (identical, SAFE, "'x': constant"),
    "10,000 classes": (many_classes, SAFE, "10000 different labels in 5000 rows"),
    "wrong feature": (table, [*SAFE, "--features", "y*"], r"no column 'y\*' \(features\)"),
    "label as feature": (table, [*SAFE, "--features", "labels"], "is not a feature"),
    "claimed size": (huge_npy, EMBEDDED, "is not a NumPy file"),
    "pickled npy": (objects_npy, EMBEDDED, "is not a NumPy file"),
    "short npy": (short_npy, EMBEDDED, "has 10 rows, but there are 60 items"),
    "infinite npy": (infinite_npy, EMBEDDED, "rows 0, 1, .*: infinite numbers"),
    "nan npy": (nan_npy, EMBEDDED, "'x.npy' holds no number"),
    "all labels": (all_labels, SAFE, "every row has all 2 labels"),
    "all excluded": (
        lambda p: excluded(p, 0),
        [*SAFE, "--id", "item", "--decisions", "d.csv"],
        "the decisions exclude 60 of 60 items",
    ),
    "one left": (
        excluded,
        [*SAFE, "--id", "item", "--decisions", "d.csv"],
        "the decisions exclude 59 of 60 items",
    ),
    "no npy": (table, EMBEDDED, "cannot find the file 'x.npy'"),
    "torn parquet": (truncated_parquet, SAFE, "cannot be read as Parquet"),
    "no base": (table, ["--candidates", "labels", "--base", "shure"], "Did you mean 'sure'"),
    "two ways": (table, [*SAFE, "--long", "item,labels"], "in one of these forms"),
    "bad rule": (table, ["--annotators", "labels", "--rule", "most"], "rule"),
    "out is a file": (taken, SAFE, "a file is where a folder would have to be"),
}


@pytest.mark.parametrize("name", CASES)
def test_broken_input(name, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    prepare, options, message = CASES[name]
    prepare(Path())
    before = sorted(p.name for p in Path().iterdir())
    assert run(["rectify", "t.csv", *options, "--out", "out"]) == 2
    said = capsys.readouterr()
    assert re.search(message, said.err), said.err
    assert "Traceback" not in said.err
    assert sorted(p.name for p in Path().iterdir()) == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"x": 1}\n{oops', "line 2, column 2: not JSON"),
        ("[1]\n", "entry 0: not an object"),
        (json.dumps({"labels": 3, "x": 1}), "there is only one row"),
    ],
)
def test_broken_json_lines(content, message, tmp_path, capsys):
    (tmp_path / "t.jsonl").write_text(content)
    arguments = ["rectify", str(tmp_path / "t.jsonl"), *SAFE, "--out", str(tmp_path / "o")]
    assert run(arguments) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


def test_a_place_that_cannot_be_written_is_refused_before_the_work(tmp_path, capsys):
    write_table(tmp_path / "t.csv")
    assert run(["rectify", str(tmp_path / "t.csv"), *SAFE, "--out", "/proc/nope/o"]) == 2
    said = capsys.readouterr()
    assert "cannot write '/proc/nope/o'" in said.err
    assert "[1/" not in said.err
    assert not said.out


def test_writing_fails_late(tmp_path, capsys, monkeypatch):
    """A disk that fills up while the page is written leaves nothing behind."""
    write_table(tmp_path / "t.csv")

    replace = os.replace  # compiled code is cached by it too, which must go on

    def full(source, target):
        if "docket" in Path(target).name:
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr("appellate.review.decisions.os.replace", full)
    arguments = ["rectify", str(tmp_path / "t.csv"), *SAFE, "--out", str(tmp_path / "a" / "b")]
    assert run(arguments) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]
