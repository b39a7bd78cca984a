"""New rows and a saved model: what is matched, what is said, what is refused."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from appellate.cli.app import run
from appellate.tables import read_table
from tests.cli.tables import read_rows, write_rows, write_table
from tests.cli.test_rectify import rectify

CANDIDATES = ["--candidates", "labels", "--id", "item"]


def with_formulas(i):
    return {"=a": f"{i % 7}", "kind": ("=x", "'=y", "z")[i % 3]}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model that learned from a column and from categories that are formulas."""
    home = tmp_path_factory.mktemp("formulas")
    rows = write_table(home / "t.csv", extra=with_formulas)
    options = [*CANDIDATES, "--truth", "truth", "--out", home / "o"]
    assert rectify(home / "t.csv", *options) == 0
    return home, rows


def predicted(model, path, capsys, *options):
    capsys.readouterr()
    assert run(["predict", str(model), str(path), *options]) == 0
    said = capsys.readouterr()
    return list(csv.DictReader(io.StringIO(said.out))), said.err


def test_new_categories_are_said(model, tmp_path, capsys):
    home, rows = model
    new = [row | {"site": "west" if i < 7 else row["site"]} for i, row in enumerate(rows)]
    write_rows(tmp_path / "new.csv", new)
    found, said = predicted(home / "o", tmp_path / "new.csv", capsys)
    assert len(found) == 60
    assert "column 'site': 7 of 60 rows hold a category that the model never saw, e.g. 'west'" in (
        said
    )
    assert "column 'kind'" not in said


def test_what_we_wrote_is_read_back(model, tmp_path, capsys):
    home, _ = model
    expected, _ = predicted(home / "o", home / "t.csv", capsys, "--proba")
    again, said = predicted(home / "o", home / "o/rectified.csv", capsys, "--proba")
    assert "never saw" not in said
    shares = [[(r["p(cat)"], r["p(dog)"]) for r in rows] for rows in (expected, again)]
    assert shares[0] == shares[1]
    options = [*CANDIDATES, "--truth", "truth", "--features", "x*", "--features"]
    assert rectify(home / "o/rectified.csv", *options, "=a", "--out", tmp_path / "again") == 0
    found, _ = predicted(tmp_path / "again", home / "t.csv", capsys)
    assert len(found) == 60


def test_labels_that_are_formulas_are_read_back(tmp_path, capsys):
    names = ("=x", "dog", "cow")
    write_table(tmp_path / "t.csv", names=names)
    rows = [
        {("=l" if k == "labels" else "@t" if k == "truth" else k): v for k, v in row.items()}
        for row in read_rows(tmp_path / "t.csv")
    ]
    rows = [row | {"=l": "|".join(sorted(row["=l"].split("|"), key=len))} for row in rows]
    write_rows(tmp_path / "t.csv", rows)
    options = ["--candidates", "=l", "--id", "item", "--truth", "@t", "--features", "x*"]
    rows[0]["=l"], rows[1]["=l"] = "dog|=x", "cow|=x"
    write_rows(tmp_path / "t.csv", rows)
    for source, out in (("t.csv", "one"), ("one/rectified.csv", "two")):
        assert rectify(tmp_path / source, *options, "--out", tmp_path / out) == 0
        said = capsys.readouterr().out
        assert "3 labels ('=x', 'cow', 'dog')" in said
        assert "rectified" in said
    one, two = (json.loads((tmp_path / d / "run.json").read_text()) for d in ("one", "two"))
    assert one["scores"]["accuracy"] == two["scores"]["accuracy"]


def test_the_standard_output_has_every_name_once(model, tmp_path, capsys):
    home, rows = model
    write_rows(tmp_path / "new.csv", [row | {"label": "?"} for row in rows])
    capsys.readouterr()
    assert run(["predict", str(home / "o"), str(tmp_path / "new.csv")]) == 0
    header = next(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert header[-3:] == ["label", "appellate_label", "confidence"]
    assert len(set(header)) == len(header)


def test_true_and_false_of_json_are_those_of_csv(tmp_path, capsys):
    rows = write_table(tmp_path / "t.csv", extra=lambda i: {"flag": i % 3 == 0})
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    options = [*CANDIDATES, "--features", "x*", "--features", "flag", "--out", tmp_path / "o"]
    assert rectify(tmp_path / "t.jsonl", *options) == 0
    expected, _ = predicted(tmp_path / "o", tmp_path / "t.jsonl", capsys)
    for spelling in (str, lambda flag: str(flag).upper(), lambda flag: str(int(flag))):
        write_rows(tmp_path / "new.csv", [row | {"flag": spelling(row["flag"])} for row in rows])
        found, _ = predicted(tmp_path / "o", tmp_path / "new.csv", capsys)
        assert [r["confidence"] for r in found] == [r["confidence"] for r in expected]
    write_rows(tmp_path / "new.csv", [row | {"flag": "maybe"} for row in rows])
    _, said = predicted(tmp_path / "o", tmp_path / "new.csv", capsys)
    assert "column 'flag': 60 of 60 rows hold no number that can be read, e.g. 'maybe'" in said


def test_where_predict_writes(model, tmp_path, capsys, monkeypatch):
    home, _ = model
    monkeypatch.chdir(tmp_path)
    expected, _ = predicted(home / "o", home / "t.csv", capsys)
    assert predicted(home / "o", home / "t.csv", capsys, "--out", "-")[0] == expected
    assert not any(tmp_path.iterdir())
    assert run(["predict", str(home / "o"), str(home / "t.csv"), "--out", str(tmp_path)]) == 2
    assert "a table is written to a name that ends in '.csv'" in capsys.readouterr().err


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "jsonl"])
def test_the_name_says_the_format(ending, model, tmp_path, capsys):
    home, _ = model
    expected, _ = predicted(home / "o", home / "t.csv", capsys)
    out = tmp_path / f"p.{ending}"
    for _ in range(2):  # a file of its own is written again
        assert run(["predict", str(home / "o"), str(home / "t.csv"), "--out", str(out)]) == 0
    table = read_table(out)
    assert table.kind == {"tsv": "csv", "jsonl": "json"}.get(ending, ending)
    assert table.texts("label").to_pylist() == [row["label"] for row in expected]


def test_files_of_others_are_not_written_over(model, tmp_path, capsys, monkeypatch):
    home, rows = model
    monkeypatch.setattr("appellate.rectification.prediction.label_rows", None)  # before the work
    (tmp_path / "mine.csv").write_text("a,b\n1,2\n")
    write_rows(tmp_path / "new.csv", rows)
    for out, why in {
        tmp_path / "mine.csv": "was not written by this command",
        tmp_path / "new.csv": "is also the input",
        home / "o" / "model" / "p.csv": "is in the model's folder",
    }.items():
        arguments = [str(home / "o"), str(tmp_path / "new.csv"), "--out", str(out)]
        assert run(["predict", *arguments]) == 2
        assert why in capsys.readouterr().err
    assert (tmp_path / "mine.csv").read_text() == "a,b\n1,2\n"
    assert read_rows(tmp_path / "new.csv") == rows


@pytest.mark.parametrize("number", ["1e308", "-1.7e308"])
def test_numbers_that_overflow_are_refused(number, model, tmp_path, capsys, recwarn):
    home, rows = model
    write_rows(tmp_path / "n.csv", [rows[0], rows[1], rows[2] | {"x1": number}])
    assert run(["predict", str(home / "o"), str(tmp_path / "n.csv")]) == 2
    said = capsys.readouterr()
    assert "row 2 (line 4): a number too large to compute with" in said.err
    assert said.out == ""
    assert not recwarn.list


def test_no_rows_to_label(model, tmp_path, capsys):
    home, rows = model
    (tmp_path / "new.csv").write_text(",".join(rows[0]) + "\n")
    assert run(["predict", str(home / "o"), str(tmp_path / "new.csv")]) == 2
    assert "a header but no rows" in capsys.readouterr().err


def test_embeddings_for_a_model_of_columns(model, tmp_path, capsys):
    home, _ = model
    np.save(tmp_path / "x.npy", np.zeros((60, 2)))
    arguments = [str(home / "o"), str(home / "t.csv"), "--embeddings", str(tmp_path / "x.npy")]
    assert run(["predict", *arguments]) == 2
    assert "learned from columns ('x0'" in capsys.readouterr().err
