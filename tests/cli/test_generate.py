"""``appellate generate``: what it writes."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris

from appellate.cli.app import run
from appellate.datasets import load_partial_csv, make_partial_labels

ANIMALS = """\
width,note,truth
1.50,first,cat
2,second,dog
3,,cow
4,fourth,car
"""


@pytest.fixture
def animals(tmp_path):
    path = tmp_path / "animals.csv"
    path.write_text(ANIMALS)
    return path


def test_digits_as_csv(tmp_path, capsys):
    out = tmp_path / "new" / "digits.csv"
    assert run(["generate", "--from", "digits", "--flip", "0.5", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert f"wrote {out}: 1797 samples, 10 classes" in said
    assert f"appellate check '{out}'" in said
    X, y = load_digits(return_X_y=True)
    data = load_partial_csv(out, truth="truth")
    assert np.array_equal(data.X, X)
    assert np.array_equal(data.y_true, y)
    expected = make_partial_labels(y, flip_probability=0.5, random_state=0)
    assert np.array_equal(data.candidates, expected)


def test_iris_as_npz_with_names(tmp_path, capsys):
    out = tmp_path / "iris.npz"
    command = [
        "generate",
        "--from",
        "iris",
        "--strategy",
        "fixed",
        "--n-false",
        "1",
        "--seed",
        "7",
    ]
    assert run([*command, "--out", str(out), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["summary"]["mean_size"] == 2
    assert document["file"] == str(out)
    assert document["seed"] == 7
    X, y = load_iris(return_X_y=True)
    with np.load(out) as written:
        assert np.array_equal(written["X"], X)
        assert np.array_equal(written["y_true"], y)
        assert written["class_names"].tolist() == ["setosa", "versicolor", "virginica"]
        expected = make_partial_labels(y, strategy="fixed", n_false=1, random_state=7)
        assert np.array_equal(written["candidates"], expected)


def test_the_other_columns_of_a_file_stay_as_they_are(animals, tmp_path):
    out = tmp_path / "out.csv"
    command = ["generate", "--from", str(animals), "--flip", "1", "--out", str(out)]
    assert run([*command, "--separator", ";"]) == 0
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["width", "note", "candidates", "truth"]
    assert rows[0] == {
        "width": "1.50",
        "note": "first",
        "candidates": "car;cat;cow;dog",
        "truth": "cat",
    }


@pytest.mark.parametrize(
    ("options", "sets"),
    [
        (["--strategy", "pairwise", "--flip", "1"], ["cat|cow", "car|dog", "cow|dog", "car|cat"]),
        (["--strategy", "cooccurring", "--epsilon", "1"], ["cat|cow", "car|dog", "cow|dog"]),
        (
            [
                "--strategy",
                "hierarchical",
                "--flip",
                "1",
                "--group",
                "cat,dog,cow",
                "--group",
                "car",
            ],
            ["cat|cow|dog"] * 3 + ["car"],
        ),
        (["--flip", "0"], ["cat", "dog", "cow", "car"]),
    ],
)
def test_strategies(animals, tmp_path, options, sets):
    out = tmp_path / "out.csv"
    assert run(["generate", "--from", str(animals), "--out", str(out), *options]) == 0
    with out.open(newline="") as file:
        written = [row["candidates"] for row in csv.DictReader(file)]
    assert written[: len(sets)] == sets


def test_noise_instances_and_least_sizes(tmp_path, capsys):
    out = tmp_path / "out.csv"
    start = ["generate", "--out", str(out), "--json", "--from"]
    assert run([*start, "wine", "--strategy", "noisy", "--eta", "0.5"]) == 0
    assert 0.3 < json.loads(capsys.readouterr().out)["summary"]["truth_coverage"] < 0.7
    assert run([*start, "breast_cancer", "--min-candidates", "2"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["singleton_share"] == 0
    assert run([*start, "iris", "--strategy", "instance_dependent", "--flip", "0.1"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["mean_size"] < 1.4


def test_numbers_in_groups(tmp_path):
    (tmp_path / "n.csv").write_text("x,truth\n1,1\n2,2\n3,3\n")
    out = tmp_path / "out.csv"
    command = ["generate", "--from", str(tmp_path / "n.csv"), "--strategy", "hierarchical"]
    assert run([*command, "--group", "1,2", "--group", "3", "--flip", "1", "--out", str(out)]) == 0
    assert load_partial_csv(out, truth="truth").candidates.sum(axis=1).tolist() == [2, 2, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--strategy", "fixed", "--flip", "0.5"],
            "--strategy fixed does not use --flip; it uses --n-false.",
        ),
        (["--flip", "1.5"], "--flip 1.5 is no probability"),
        (["--strategy", "hierarchical"], "--strategy hierarchical needs --group"),
        (
            ["--strategy", "hierarchical", "--group", "cat"],
            "--group names nothing for class 'car'",
        ),
        (["--strategy", "hierarchical", "--group", "a,b", "--group", "a"], "a is in several gr"),
        (["--min-candidates", "9"], "--min-candidates 9 cannot be had"),
        (["--strategy", "unifrom"], "is not one of 'uniform'"),
        (["--truth", "species"], "no column 'species'"),
        (["--separator", "a"], "contains the separator 'a'"),
        (["--separator", ""], "separator"),
        (["--seed", "-1"], "is not in the range"),
    ],
)
def test_mistakes_end_with_2_and_write_nothing(animals, tmp_path, options, message, capsys):
    out = tmp_path / "new" / "out.csv"
    assert run(["generate", "--from", str(animals), "--out", str(out), *options]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert "Traceback" not in said.err
    assert not said.out
    assert not out.parent.exists()


@pytest.mark.parametrize(
    ("source", "text", "message"),
    [
        ("digit", None, "is neither a CSV file nor one of digits"),
        ("none.csv", None, "there is no file"),
        ("own.csv", "truth\na\n", "has no column of numbers"),
        ("own.csv", "x,candidates,truth\n1,a,a\n", "has a column 'candidates' already"),
        ("own.csv", "x,truth\n1,a\n2\n", "line 3: 1 cells"),
    ],
)
def test_sources_that_do_not_serve(tmp_path, monkeypatch, source, text, message, capsys):
    monkeypatch.chdir(tmp_path)
    if text is not None:
        (tmp_path / source).write_text(text)
    assert run(["generate", "--from", source, "--out", "out.csv"]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()


def test_what_is_written_is_csv_or_npz(animals, capsys):
    assert run(["generate", "--from", str(animals), "--out", "out.xlsx"]) == 2
    assert "name a .csv or .npz file" in capsys.readouterr().err
