"""What the cells of a user's table mean: answers, truth, features."""

from __future__ import annotations

import pytest

from appellate.cli.app import run
from appellate.io import read_meta
from tests.cli.tables import make_rows, read_rows, write_rows, write_table
from tests.cli.test_rectify import rectify

ODD = ("none", "NA", "n/a")  # labels that an empty feature might be called


def long_rows(names=("cat", "dog", "cow"), n=60):
    """One answer a row, two features and the truth of the item in every row."""
    X, candidates, truth = make_rows(n)
    return [
        {"item": f"i{i}", "answer": names[j], "x0": f"{X[i, 0]:.4f}", "x1": f"{X[i, 1]:.4f}",
         "t": names[truth[i]]}
        for i in range(n)
        for j in range(3)
        if candidates[i, j]
    ]  # fmt: skip


@pytest.mark.parametrize("layout", ["long", "annotators"])
def test_labels_may_be_called_none(layout, tmp_path, capsys):
    rows = long_rows(ODD)
    options = ["--long", "item,answer", "--truth", "t"]
    if layout == "annotators":
        rows = [row | {"b": row["answer"]} for row in rows]
        options = ["--annotators", "answer", "--annotators", "b", "--truth", "t"]
    write_rows(tmp_path / "t.csv", rows)
    assert rectify(tmp_path / "t.csv", *options, "--out", tmp_path / "o") == 0
    said = capsys.readouterr()
    assert "3 labels ('NA', 'n/a', 'none')" in said.out
    assert "taken as labels: 'NA', 'n/a', 'none'" in said.err
    assert "--missing NA --missing n/a --missing none" in said.err
    assert "accuracy    appeal: 0." in said.out
    labels = {row["label"] for row in read_rows(tmp_path / "o/rectified.csv")}
    assert labels == set(ODD)
    options += ["--missing", " NA ", "--out", tmp_path / "p"]
    assert rectify(tmp_path / "t.csv", *options) == 2
    assert "no candidate" in capsys.readouterr().err, "what --missing names is no label"


def test_spaces_around_answers_and_truth_do_not_count(tmp_path, capsys):
    rows = long_rows()
    write_rows(tmp_path / "plain.csv", rows)
    spaced = [
        row | ({"answer": f" {row['answer']} ", "t": f"{row['t']} "} if i % 2 else {})
        for i, row in enumerate(rows)
    ]
    write_rows(tmp_path / "spaced.csv", spaced)
    said = []
    for name in ("plain", "spaced"):
        options = ["--long", "item,answer", "--truth", "t", "--out", tmp_path / name]
        assert rectify(tmp_path / f"{name}.csv", *options) == 0
        said.append([li for li in capsys.readouterr().out.splitlines() if li[:8] == "accuracy"])
    assert said[0] == said[1]
    both = [read_rows(tmp_path / name / "rectified.csv") for name in ("plain", "spaced")]
    assert [r["label"] for r in both[0]] == [r["label"] for r in both[1]]


def test_rows_of_an_item_that_differ(tmp_path, capsys):
    rows = long_rows()
    rows.append(rows[0] | {"x1": "77", "t": ""})  # a truth that is not given does not contradict
    write_rows(tmp_path / "t.csv", rows)
    options = ["--long", "item,answer", "--truth", "t", "--out", tmp_path / "o"]
    assert rectify(tmp_path / "t.csv", *options) == 0
    said = capsys.readouterr().err
    assert "columns that differ between the rows of one item: 'x1' (up to 1 of 60 items)" in said
    assert "first row is used" in said
    wrong = next(name for name in ("cat", "dog") if name != rows[0]["t"])
    rows.append(rows[0] | {"t": wrong})
    write_rows(tmp_path / "t.csv", rows)
    assert rectify(tmp_path / "t.csv", *options) == 2
    said = capsys.readouterr().err
    assert "column 't' (--truth): the rows of item 'i0' disagree" in said
    assert f"'{wrong}'" in said


def said_of(path, rows, capsys, *options):
    """Rectify rows by their column of candidates; return what is said, and the features."""
    write_rows(path / "t.csv", rows)
    given = ["--candidates", "labels", "--id", "item", *options]
    assert rectify(path / "t.csv", *given, "--out", path / "o") == 0
    said = capsys.readouterr()
    return said.out + said.err, set(read_meta(path / "o/model")["columns"])


def numbered(n=60):
    """Rows whose labels are the digits 1, 2 and 3, with a grey value of the same numbers."""
    X, candidates, truth = make_rows(n)
    return [
        {"item": f"i{i}", "labels": "|".join("123"[j] for j in range(3) if candidates[i, j]),
         "x0": f"{X[i, 0]:.4f}", "x1": f"{X[i, 1]:.4f}", "grey": str(i // 3 % 3 + 1),
         "kind": f"{truth[i] + 1}.0"}
        for i in range(n)
    ]  # fmt: skip


def test_a_truth_that_is_not_named_is_no_feature(tmp_path, capsys):
    rows = write_table(tmp_path / "t.csv")
    ours = {"x0", "x1", "x2", "site"}
    said, features = said_of(tmp_path, rows, capsys)
    assert features == ours
    assert "ignored     'truth': holds labels of this table; name it with --truth" in said
    some = [row | {"truth": row["truth"] if i % 2 else ""} for i, row in enumerate(rows)]
    assert said_of(tmp_path, some, capsys)[1] == ours
    some[1]["truth"] = "owl"  # a true label that is no candidate anywhere
    assert said_of(tmp_path, some, capsys)[1] == ours
    named = said_of(tmp_path, rows, capsys, "--features", "x0", "--features", "truth")[1]
    assert named == {"x0", "truth"}


def test_a_truth_of_numbers_is_no_feature_but_grey_values_are(tmp_path, capsys):
    said, features = said_of(tmp_path, numbered(), capsys)
    assert features == {"x0", "x1", "grey"}
    assert "ignored     'kind': holds labels of this table" in said


def test_the_result_of_an_earlier_run_is_no_feature(tmp_path, capsys):
    rows = write_table(tmp_path / "t.csv")
    for _ in range(3):
        said, features = said_of(tmp_path, rows, capsys, "--truth", "truth")
        assert features == {"x0", "x1", "x2", "site"}
        rows = read_rows(tmp_path / "o/rectified.csv")
    assert "ignored     'outcome': the result of an earlier run" in said
    assert "ignored     'appeal_confidence': the result of an earlier run" in said


def test_a_feature_with_another_role_is_refused(tmp_path, capsys):
    write_table(tmp_path / "t.csv")
    options = ["--candidates", "labels", "--truth", "truth", "--out", tmp_path / "o"]
    for name, role in (("labels", "--candidates"), ("truth", "--truth")):
        given = ["--features", name, "--features", "x0"]
        assert rectify(tmp_path / "t.csv", *options, *given) == 2
        assert f"column '{name}' is that of {role}" in capsys.readouterr().err
    assert rectify(tmp_path / "t.csv", *options, "--features", "*") == 0


def test_one_number_in_two_spellings_is_one_label(tmp_path, capsys):
    """As pandas writes whole numbers of a column with gaps."""
    rows = [
        {"item": f"i{i}", "x": f"{int(t) + i / 99:.3f}", "w1": t, "w2": "2", "w3": w3,
         "t": f"{t}.00"}
        for i in range(30)
        for t, w3 in [(str(i % 3 + 1), f"{i % 3 + 1}.0" if i % 2 else "")]
    ]  # fmt: skip
    write_rows(tmp_path / "t.csv", rows)
    options = ["--id", "item", "--truth", "t", "--out", tmp_path / "o"]
    assert rectify(tmp_path / "t.csv", "--annotators", "w*", *options) == 0
    said = capsys.readouterr()
    assert "3 labels ('1', '2', '3')" in said.out
    assert "truth among candidates: 1.000" in said.out
    assert "labels that are the same number are read as one: '1.0' as '1'" in said.err
    assert {row["label"] for row in read_rows(tmp_path / "o/rectified.csv")} == set("123")
    joined = [row | {"w1": f"{row['w1']}|{row['w2']}.0"} for row in rows]
    write_rows(tmp_path / "t.csv", joined)
    options += ["--features", "x"]
    assert rectify(tmp_path / "t.csv", "--candidates", "w1", *options) == 0
    said = capsys.readouterr().out
    assert "3 labels ('1', '2', '3')" in said
    assert "truth among candidates: 1.000" in said
    joined[0]["w1"] = "cat|1"  # not all are numbers: nothing is made one
    write_rows(tmp_path / "t.csv", joined)
    assert rectify(tmp_path / "t.csv", "--candidates", "w1", *options) == 0
    assert "labels ('1', '2', '2.0', '3', 'cat')" in capsys.readouterr().out


def test_missing_labels_are_dropped_from_sets(tmp_path, capsys):
    rows = write_table(tmp_path / "t.csv")
    rows = [row | {"labels": f"{row['labels']}|?"} for row in rows]
    assert "3 labels" in said_of(tmp_path, rows, capsys, "--missing", "?")[0]
    rows[4]["labels"] = "?"
    write_rows(tmp_path / "t.csv", rows)
    options = ["--candidates", "labels", "--missing", "?", "--out", tmp_path / "p"]
    assert rectify(tmp_path / "t.csv", *options) == 2
    assert "row 4: no candidate" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--candidates", "labels", "--rule", "votes:2"], "--rule counts answers of people"),
        (["--annotators", "labels", "--separator", ";"], "--separator parts the labels"),
        (["--long", "item,labels", "--separator", "|"], "--separator parts the labels"),
    ],
)
def test_options_without_effect_are_refused(options, message, tmp_path, capsys):
    write_table(tmp_path / "t.csv")
    assert rectify(tmp_path / "t.csv", *options, "--out", tmp_path / "o") == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("start", ["['", '["', "{'", "('"])
def test_cells_of_pandas_lists(start, tmp_path, capsys):
    rows = write_table(tmp_path / "t.csv")
    end = {"[": "]", "{": "}", "(": ",)"}[start[0]]
    between = f"{start[1]}, {start[1]}"
    lists = [
        row | {"labels": start + row["labels"].replace("|", between) + start[1] + end}
        for row in rows
    ]
    said, _ = said_of(tmp_path, lists, capsys)
    assert "3 labels ('cat', 'cow', 'dog'), 1.70 candidates each" in said
    assert "are read as lists of labels" in said
    for wrong in ("[cat]", "['cat' 'dog']", "[['cat']]", "{'cat': 1}", "[None]"):
        lists[5]["labels"] = wrong
        write_rows(tmp_path / "t.csv", lists)
        options = ["--candidates", "labels", "--out", tmp_path / "p"]
        assert rectify(tmp_path / "t.csv", *options) == 2
        said = capsys.readouterr().err
        assert "look like Python or JSON lists, but row 5 cannot be read" in said


def test_names_in_brackets_are_labels(tmp_path, capsys):
    rows = write_table(tmp_path / "t.csv", names=("(a)", "(b)", "(c)"))
    assert "3 labels ('(a)', '(b)', '(c)')" in said_of(tmp_path, rows, capsys)[0]


def test_a_wrong_separator_is_guessed(tmp_path, capsys):
    rows = write_table(tmp_path / "t.csv", separator="; ")
    said, _ = said_of(tmp_path, rows, capsys)
    assert "every row has one label, but some cells hold ';'" in said
    assert "add --separator ';'" in said
    said, _ = said_of(tmp_path, rows, capsys, "--separator", ";")
    assert "every row has one label" not in said


def test_letters_composed_or_not_are_one_label(tmp_path, capsys):
    names = ("\u00e9t\u00e9", "cat", "Cat")
    rows = write_table(tmp_path / "t.csv", names=names)
    for row in rows[::2]:
        row["labels"] = row["labels"].replace("\u00e9", "e\u0301")
    for row in rows[::3]:
        row["truth"] = row["truth"].replace("\u00e9", "e\u0301")
    said, _ = said_of(tmp_path, rows, capsys, "--truth", "truth")
    assert "3 labels ('Cat', 'cat', '\u00e9t\u00e9')" in said
    assert "truth among candidates: 1.000" in said
    assert "differ in upper and lower case alone: 'Cat' and 'cat'" in said
    rows = [{"kind" if name == "truth" else name: row[name] for name in row} for row in rows]
    assert "kind" not in said_of(tmp_path, rows, capsys)[1]


def test_decimal_commas(tmp_path, capsys):
    rows = write_table(tmp_path / "t.csv")
    for row in rows:
        row["x0"], row["x1"] = row["x0"].replace(".", ","), row["x1"].replace(".", ",")
    rows[3]["x1"] = "NA"
    write_rows(tmp_path / "t.csv", rows, delimiter=";")
    options = ["--candidates", "labels", "--id", "item", "--out", tmp_path / "o"]
    assert rectify(tmp_path / "t.csv", *options) == 0
    said = capsys.readouterr()
    assert "3 numbers: 'x0', 'x1', 'x2'" in said.out
    assert "note: decimal commas are read in 'x0', 'x1'." in said.err
    assert rectify(tmp_path / "t.csv", *options) == 0
    command = ["predict", str(tmp_path / "o"), str(tmp_path / "t.csv")]
    assert run([*command, "--out", str(tmp_path / "p.csv")]) == 0
    for row in rows:
        row["x0"], row["x1"] = row["x0"].replace(",", "."), row["x1"].replace(",", ".")
    write_rows(tmp_path / "t.csv", rows, delimiter=";")
    assert run([*command, "--out", str(tmp_path / "q.csv")]) == 0
    both = [read_rows(tmp_path / name, delimiter=";") for name in ("p.csv", "q.csv")]
    assert [row["confidence"] for row in both[0]] == [row["confidence"] for row in both[1]]


def test_counters_and_the_index_of_a_data_frame_are_no_features(tmp_path, capsys):
    rows = write_table(tmp_path / "t.csv")
    rows = [{"": str(i), "nr": str(i * 7 % 60 + 100), "age": str(i * 2)} | row
            for i, row in enumerate(rows)]  # fmt: skip
    said, features = said_of(tmp_path, rows, capsys)
    assert features == {"age", "x0", "x1", "x2", "site"}
    assert "ignored     '': without a title" in said
    assert "ignored     'nr': counts the rows; name it with --features if" in said
    named = said_of(tmp_path, rows, capsys, "--features", "nr", "--features", "x0")[1]
    assert named == {"nr", "x0"}
