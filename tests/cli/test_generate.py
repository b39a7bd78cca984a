"""``appellate generate``: what it writes."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris

from appellate.cli.app import run
from appellate.datasets import load_partial_csv, make_crowd, make_partial_labels
from appellate.tables import find_roles, read_labels, read_table

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
    assert f"appellate check {out}" in said
    X, y = load_digits(return_X_y=True)
    data = load_partial_csv(out, truth="truth", features="pixel*")
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
        "--random-state",
        "7",
    ]
    assert run([*command, "--out", str(out), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["summary"]["mean_size"] == 2
    assert document["file"] == str(out)
    assert document["random_state"] == 7
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
    assert list(rows[0]) == ["width", "note", "truth", "candidates"]
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
                "--groups",
                "cat,dog,cow",
                "--groups",
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


@pytest.mark.parametrize(
    ("source", "options", "fact", "least", "most"),
    [
        ("wine", ["--strategy", "noisy", "--eta", "0.5"], "truth_coverage", 0.3, 0.7),
        ("breast_cancer", ["--min-candidates", "2"], "singleton_share", 0, 0),
        ("digits", ["--strategy", "set_first", "--bag-size", "3"], "max_size", 2, 3),
        (
            "iris",
            ["--strategy", "instance_dependent", "--flip", "0.1"],
            "mean_size",
            1,
            1.4,
        ),
    ],
)
def test_noise_instances_and_least_sizes(tmp_path, capsys, source, options, fact, least, most):
    out = str(tmp_path / "out.csv")
    assert run(["generate", "--from", source, "--out", out, "--json", *options]) == 0
    assert least <= json.loads(capsys.readouterr().out)["summary"][fact] <= most


def test_numbers_in_groups(tmp_path):
    (tmp_path / "n.csv").write_text("x,truth\n1,1\n2,2\n3,3\n")
    out = tmp_path / "out.csv"
    command = ["generate", "--from", str(tmp_path / "n.csv"), "--strategy", "hierarchical"]
    assert (
        run([*command, "--groups", "1,2", "--groups", "3", "--flip", "1", "--out", str(out)]) == 0
    )
    assert load_partial_csv(out, truth="truth").candidates.sum(axis=1).tolist() == [2, 2, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--strategy", "fixed", "--flip", "0.5"],
            "--strategy 'fixed' does not use --flip. Leave it out",
        ),
        (["--flip", "1.5"], "--flip 1.5 is not a probability"),
        (["--strategy", "hierarchical"], "--strategy hierarchical needs --super-class"),
        (
            ["--strategy", "hierarchical", "--groups", "cat"],
            "--groups lacks the class 'car', 'cow', 'dog'.",
        ),
        (
            ["--strategy", "hierarchical", "--groups", "a,b", "--groups", "a"],
            "in several --super-class options",
        ),
        (["--min-candidates", "9"], "--min-candidates 9 is not possible"),
        (["--strategy", "unifrom"], "Did you mean 'uniform'?"),
        (["--truth", "species"], "no column 'species' (truth)"),
        (["--separator", "a"], "--separator 'a' is part of class 'car'"),
        (["--separator", ""], "--separator ''"),
        (["--random-state", "-1"], "is not in the range"),
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
        ("digit", None, "cannot find the file 'digit'"),
        ("none.csv", None, "cannot find the file"),
        ("own.csv", "x,candidates,truth\n1,a,a\n", "already has a column 'candidates'"),
        ("own.csv", "x,truth\n1,a\n2\n3,c\n", "line 3"),
        ("own.csv", "x,truth\n1,a\n2,\n3,c\n", "No true label in row 1"),
    ],
)
def test_sources_that_do_not_serve(tmp_path, monkeypatch, source, text, message, capsys):
    monkeypatch.chdir(tmp_path)
    if text is not None:
        (tmp_path / source).write_text(text)
    assert run(["generate", "--from", source, "--out", "out.csv"]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "jsonl", "json"])
def test_the_name_says_the_format(animals, tmp_path, ending):
    out = tmp_path / f"out.{ending}"
    assert run(["generate", "--from", str(animals), "--flip", "1", "--out", str(out)]) == 0
    table = read_table(out)
    assert table.kind == {"tsv": "csv", "jsonl": "json"}.get(ending, ending)
    assert table.names == ["width", "note", "truth", "candidates"]
    assert table.data.column("candidates").to_pylist() == ["car|cat|cow|dog"] * 4
    again = tmp_path / f"again.{ending}"
    assert run(["generate", "--from", str(out), "--out", str(again)]) == 2  # has candidates


def test_other_formats_are_refused(animals, capsys):
    assert run(["generate", "--from", str(animals), "--out", "out.xlsx"]) == 2
    assert "a name that ends in '.csv'" in capsys.readouterr().err


def test_only_an_earlier_result_is_replaced(animals, tmp_path, capsys):
    """0.1 wrote over any file, the input included."""
    command = ["generate", "--from", str(animals), "--out"]
    assert run([*command, str(animals)]) == 2
    assert "is also the input. Choose another file" in capsys.readouterr().err
    assert animals.read_text() == ANIMALS
    for name in ("mine.csv", "mine.npz"):
        mine = tmp_path / name
        mine.write_text("precious\n1\n")
        assert run([*command, str(mine)]) == 2
        assert "was not written by this command" in capsys.readouterr().err
        assert mine.read_text() == "precious\n1\n"
    for name in ("out.csv", "out.npz"):
        options = ["--features", "width"]
        assert run([*command, str(tmp_path / name), *options]) == 0
        first = (tmp_path / name).read_bytes()
        assert run([*command, str(tmp_path / name), *options, "--random-state", "1"]) == 0
        assert (tmp_path / name).read_bytes() != first


def test_formulas_are_neutralised(tmp_path):
    (tmp_path / "f.csv").write_text("x,note,truth\n1,=cmd(),a\n2,@SUM(A1),b\n3,-1.5,=c\n")
    out = tmp_path / "out.csv"
    command = ["generate", "--from", str(tmp_path / "f.csv"), "--flip", "1", "--out", str(out)]
    assert run(command) == 0
    rows = list(csv.reader(out.read_text().splitlines()))
    assert rows[1:] == [
        ["1", "'=cmd()", "a", "'=c|a|b"],
        ["2", "'@SUM(A1)", "b", "'=c|a|b"],
        ["3", "-1.5", "'=c", "'=c|a|b"],
    ]
    data = load_partial_csv(out, truth="truth", features="x")
    assert data.class_names.tolist() == ["=c", "a", "b"]
    assert data.y_true.tolist() == [1, 2, 0]


def test_categories_and_gaps_confuse_too(tmp_path, capsys):
    rows = [f"{i % 5 if i % 7 else ''},{'ns'[i % 2]},{'ab'[i % 2]}" for i in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["x,site,truth", *rows]))
    command = ["generate", "--from", str(tmp_path / "t.csv"), "--strategy", "instance_dependent"]
    assert run([*command, "--out", str(tmp_path / "out.csv")]) == 0
    assert run([*command, "--out", str(tmp_path / "out.npz")]) == 2
    assert "hold numbers only" in capsys.readouterr().err


CROWD = ["--from", "iris", "--answers", "3", "--people", "9", "--spammers", "0.3"]


def test_a_crowd_one_column_a_person(tmp_path, capsys):
    out = tmp_path / "wide.csv"
    assert run(["generate", *CROWD, "--experts", "0.2", "--out", str(out)]) == 0
    assert "450 answers to 150 rows by 2 experts, 3 spammers, 4 workers" in capsys.readouterr().out
    y = load_iris().target_names[load_iris().target]
    options = {"n_people": 9, "n_answers": 3, "spammers": 0.3, "experts": 0.2, "random_state": 0}
    expected = make_crowd(y, **options).answers
    table = read_table(out)
    read = read_labels(table, find_roles(table))
    assert read.class_names.tolist() == expected.class_names.tolist()
    for part in ("rows", "people", "labels"):
        np.testing.assert_array_equal(getattr(read, part), getattr(expected, part))
    assert find_roles(table).truth == "truth"


def test_a_crowd_one_row_an_answer_is_rectified(tmp_path, capsys):
    """The long table holds the same answers, and `rectify` reads it unaided."""
    wide, out = tmp_path / "wide.csv", tmp_path / "long.parquet"
    assert run(["generate", *CROWD, "--out", str(wide)]) == 0
    assert run(["generate", *CROWD, "--layout", "long", "--json", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    document = json.loads(said[said.index("{") :])
    assert document["summary"]["answers"] == 450
    assert 0.4 < document["summary"]["right"] < 0.8
    one, two = (read_labels(t, find_roles(t)) for t in map(read_table, (wide, out)))
    votes = [np.bincount(each.rows * 3 + each.labels, minlength=450) for each in (one, two)]
    np.testing.assert_array_equal(*votes)
    assert run(["rectify", str(out), "--out", str(tmp_path / "found")]) == 0
    assert len(read_table(tmp_path / "found" / "docket.csv")) == 150


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--spammers", "0.3"], "--spammers is for annotators; add --answers"),
        (["--answers", "3", "--flip", "0.3"], "--flip is for candidate sets"),
        (["--answers", "3", "--flip", "1"], "--flip is for candidate sets"),
        (["--answers", "3", "--n-false", "1"], "--n-false is for candidate sets"),
        (["--answers", "3", "--strategy", "noisy"], "--strategy is for candidate sets"),
        (["--answers", "3", "--min-candidates", "2"], "--min-candidates is for candidate sets"),
        (["--answers", "31"], "must lie from 1 to"),
        (["--answers", "3", "--accuracy", "2"], "is not a share"),
    ],
)
def test_options_of_crowds_and_sets_are_kept_apart(more, message, tmp_path, capsys):
    out = tmp_path / "out.csv"
    assert run(["generate", "--from", "iris", *more, "--out", str(out)]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_answers_are_no_arrays_and_replace_nothing(animals, tmp_path, capsys):
    command = ["generate", "--from", str(animals), "--answers", "2", "--people", "3"]
    assert run([*command, "--out", str(tmp_path / "a.npz")]) == 2
    assert "--answers needs a table as --out" in capsys.readouterr().err
    named = tmp_path / "named.csv"
    named.write_text(ANIMALS.replace("width", "worker_2"))
    command[2] = str(named)
    assert run([*command, "--out", str(tmp_path / "a.csv")]) == 2
    assert "already has a column 'worker_2'" in capsys.readouterr().err


def test_columns_that_are_not_in_the_arrays_are_said(tmp_path, capsys):
    table = tmp_path / "a.csv"
    rows = [f"item {i},{i / 7},{'cat' if i % 2 else 'dog'}" for i in range(30)]
    table.write_text("\n".join(["name,x,label", *rows]) + "\n")
    command = ["generate", "--from", str(table), "--truth", "label", "--out"]
    assert run([*command, str(tmp_path / "a.npz")]) == 0
    assert "Columns that the arrays do not hold: 'name'.\n" in capsys.readouterr().out
    assert run([*command, str(tmp_path / "b.csv")]) == 0
    assert "the arrays do not hold" not in capsys.readouterr().out
