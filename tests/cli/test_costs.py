"""``--cost`` and ``--order``: from the options to the labels, the page, run.json and the model."""

from __future__ import annotations

import json

import numpy as np
import pytest

from appellate.cli.app import run
from appellate.io import load_model
from appellate.review.page import read_page, unpack_page
from tests.cli.tables import read_rows, write_rows

pytest.importorskip("skops")
pytest.importorskip("jinja2")

SIZES = ["S", "M", "L", "XL", "XXL"]


@pytest.fixture
def shirts(tmp_path):
    """Sizes that do not sort by themselves, with candidates around the truth."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(60):
        truth = int(rng.integers(5))
        near = [j for j in range(5) if abs(j - truth) <= 1 or rng.uniform() < 0.15]
        x = truth + rng.normal(scale=1.2)
        rows.append(
            {
                "id": f"r{i}",
                "width": f"{x:.4f}",
                "noise": f"{rng.normal():.4f}",
                "size": "|".join(SIZES[j] for j in near),
                "age": "|".join(str(10 * j) for j in near),
            }
        )
    write_rows(tmp_path / "t.csv", rows)
    return tmp_path


def rectify(home, column, *options):
    """Run with one column of candidates; the others are set aside by naming the features."""
    arguments = ["rectify", str(home / "t.csv"), "--candidates", column, "--id", "id"]
    arguments += ["--features", "width", "--features", "noise", "--base", "sure"]
    return run([*arguments, "--out", str(home / "o"), *map(str, options)])


def test_order_cost_and_everything_that_shows_them(shirts, capsys):
    options = ["--cost", "absolute", "--order", ",".join(SIZES)]
    assert rectify(shirts, "size", *options) == 0
    assert "labels ('S', 'M', 'L', 'XL', 'XXL')" in capsys.readouterr().out
    document = json.loads((shirts / "o" / "run.json").read_text())
    assert document["settings"]["call"]["cost"] == "absolute"
    assert document["settings"]["call"]["order"] == ",".join(SIZES)
    assert "cost='absolute'" in document["settings"]["model"]
    page = (shirts / "o" / "docket.html").read_text()
    assert "cost of a miss" in page
    assert ">absolute<" in page
    meta = json.loads((shirts / "o" / "model" / "meta.json").read_text())
    assert meta["classes"] == SIZES

    model = load_model(shirts / "o" / "model")[-1]
    np.testing.assert_array_equal(
        model.cost_, np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    )
    among = np.where(model.candidates_, model.confidence_ @ model.cost_, np.inf)
    labels = [SIZES.index(r["label"]) for r in read_rows(shirts / "o" / "rectified.csv")]
    np.testing.assert_allclose(among[np.arange(60), labels], among.min(axis=1), atol=1e-9)


def test_predict_follows_the_cost_of_the_model(shirts):
    ages = np.array([0, 10, 20, 30, 40])
    matrix = np.abs(np.subtract.outer(ages, ages)) * np.array([[1], [1], [30], [1], [1]])
    dear = [
        {"true": a} | dict(zip(ages, row, strict=True))
        for a, row in zip(ages, matrix, strict=True)
    ]
    write_rows(shirts / "dear.csv", dear)
    assert rectify(shirts, "age", "--cost", shirts / "dear.csv") == 0
    new = shirts / "p.csv"
    assert (
        run(["predict", str(shirts / "o"), str(shirts / "t.csv"), "--proba", "--out", str(new)])
        == 0
    )
    moved = 0
    for row in read_rows(new):
        chances = np.array([float(row[f"p({age})"]) for age in ages])
        expected = chances @ matrix
        label = int(row["label"])
        assert expected[label // 10] == pytest.approx(min(expected), abs=1e-2)
        assert float(row["confidence"]) == pytest.approx(chances[label // 10], abs=1e-5)
        moved += label // 10 != chances.argmax()
    assert moved > 0, "nothing was decided by the cost"


def test_no_cost_is_said_nowhere(shirts, capsys):
    assert rectify(shirts, "size") == 0
    assert "cost " not in capsys.readouterr().out
    assert "cost of a miss" not in (shirts / "o" / "docket.html").read_text()
    assert json.loads((shirts / "o" / "run.json").read_text())["settings"]["call"]["cost"] is None


def test_a_file_of_costs(shirts):
    options = ["--cost", "absolute", "--order", ",".join(SIZES)]
    assert rectify(shirts, "size", *options) == 0
    by_word = [r["label"] for r in read_rows(shirts / "o" / "rectified.csv")]
    steps = [
        {"true": a} | {b: abs(i - j) for j, b in enumerate(SIZES)} for i, a in enumerate(SIZES)
    ]
    write_rows(shirts / "costs.csv", steps)
    assert rectify(shirts, "size", "--cost", shirts / "costs.csv") == 0
    assert [r["label"] for r in read_rows(shirts / "o" / "rectified.csv")] == by_word
    assert ">5 x 5 matrix<" in (shirts / "o" / "docket.html").read_text()


def test_a_base_that_is_chosen_keeps_the_cost(shirts, monkeypatch):
    monkeypatch.setattr("appellate.rectification.selection._BANDWIDTHS", (1.0,))
    monkeypatch.setattr("appellate.rectification.selection._REGULARIZATIONS", (0.05,))
    assert rectify(shirts, "age", "--cost", "ordinal:15", "--base", "auto") == 0
    document = json.loads((shirts / "o" / "run.json").read_text())
    assert "cost='ordinal:15'" in document["settings"]["model"]


def test_excluded_rows_are_labelled_by_the_cost_too(shirts):
    write_rows(shirts / "d.csv", [{"id": "r3", "decision": "none", "label": ""}])
    options = ["--cost", "absolute", "--decisions", shirts / "d.csv"]
    assert rectify(shirts, "age", *options) == 0
    row = read_rows(shirts / "o" / "docket.csv")[3]
    assert (row["outcome"], row["label"]) == ("excluded", "")
    data = read_page(shirts / "o" / "docket.html")
    label = data["classes"][unpack_page(data["history"])[-1, 3]]
    assert label in row["candidates"].split("|"), "the page says what the model would take"


@pytest.mark.parametrize(
    ("column", "options", "said"),
    [
        ("size", ["--cost", "absolute"], "needs an order"),
        ("size", ["--cost", "absolut"], "Did you mean 'absolute'?"),
        ("size", ["--cost", "foo"], "unknown cost 'foo'"),
        ("age", ["--cost", "within:x"], "needs a distance of 0 or more"),
        ("size", ["--cost", "tree"], "unknown cost 'tree'"),
        ("size", ["--method", "plcp", "--order", "S,M,L,XL,XXL"], "uses --order only with a cost"),
        ("size", ["--cost", "absolute", "--order", "S,M,L"], "lacks labels of the table: 'XL'"),
        ("size", ["--cost", "absolute", "--order", "S,M,S"], "has 'S' twice"),
        ("size", ["--cost", "absolute", "--order", "S"], "lacks labels"),
        ("size", ["--cost", "no-such.csv"], "no-such.csv"),
    ],
)
def test_mistakes_are_said_before_any_work(column, options, said, shirts, capsys):
    assert rectify(shirts, column, *options) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
    assert not (shirts / "o").exists()


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ([{"true": s, "S": 0, "M": 1} for s in SIZES], "no column for the label 'L'"),
        ([{"true": "S", "S": 0, "M": 1}], "no row for the label 'L'"),
        ([{"true": s} | dict.fromkeys(SIZES, "much") for s in SIZES], "must hold numbers"),
        ([{"true": s} | {t: int(s == t) for t in SIZES} for s in SIZES], "similarities"),
    ],
)
def test_mistakes_in_files(table, said, shirts, capsys):
    write_rows(shirts / "c.csv", table)
    assert rectify(shirts, "size", "--cost", shirts / "c.csv") == 2
    assert said in capsys.readouterr().err


def test_an_order_may_name_labels_that_no_row_has(shirts):
    order = ["XS", *SIZES, '"3,XL"']
    assert rectify(shirts, "size", "--cost", "within:1", "--order", ",".join(order)) == 0
    meta = json.loads((shirts / "o" / "model" / "meta.json").read_text())
    assert meta["classes"] == ["XS", *SIZES, "3,XL"]


@pytest.mark.parametrize(("more", "code"), [("5", 0), ("old", 2)], ids=["number", "text"])
def test_an_order_of_numbers_stays_one_of_numbers(more, code, tmp_path, capsys):
    rows = [{"x": i / 2, "y": [i % 3, (i + 1) % 3]} for i in range(12)]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    arguments = ["rectify", str(tmp_path / "t.jsonl"), "--candidates", "y", "--base", "sure"]
    arguments += ["--cost", "absolute", "--order", f"0,1,2,{more}", "--out", str(tmp_path / "o")]
    assert run(arguments) == code
    if code:
        assert f"'{more}', which is not a number" in capsys.readouterr().err
    else:
        model = load_model(tmp_path / "o" / "model")[-1]
        assert model.classes_.tolist() == ["0", "1", "2", "5"]
        assert model.cost_[0].tolist() == [0, 1, 2, 5]
