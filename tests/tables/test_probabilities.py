"""Class probabilities of a model as one more answer per row of a table."""

from __future__ import annotations

import json

import numpy as np
import pytest

import appellate
from appellate.cli.app import run as cli
from appellate.tables import TableError, find_roles, read_table

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore::appellate.NoteWarning")
NAMES = np.array(["cat", "cow", "dog"])


def make_table(n=120, seed=0):
    """Three poor annotators and a good model; no feature."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n)
    table = pd.DataFrame({"name": [f"i{i}" for i in range(n)]})
    for k in range(3):
        table[f"w{k}"] = NAMES[np.where(rng.random(n) < 0.4, truth, rng.integers(3, size=n))]
    scores = 4 * np.eye(3)[truth] + rng.normal(size=(n, 3))
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    for j in (2, 0, 1):  # not in the order of the classes
        table[f"p_{NAMES[j]}"] = shares[:, j].round(6)
    return table, NAMES[truth]


def to_long(table):
    ids = [name for name in table if not name.startswith("w")]
    return table.melt(ids, var_name="who", value_name="label")


def to_counts(table):
    said = table[["w0", "w1", "w2"]]
    counts = {name: (said == name).sum(axis=1) for name in NAMES}
    return table.drop(columns=list(said)).assign(**counts)


@pytest.mark.parametrize(
    ("change", "columns"),
    [
        (lambda table: table, {"annotators": "w*"}),
        (to_long, {"long": "name,label,who"}),
        (to_counts, {"counts": "cat,cow,dog"}),
    ],
)
def test_a_model_is_one_more_answer_and_never_a_feature(change, columns):
    table, truth = make_table()
    without = appellate.rectify(change(table), **columns, ignore="p_*")
    run = appellate.rectify(change(table), **columns, model_probabilities="p_*")
    assert run.settings["method"] == "testimony"
    assert not run.settings["features"]
    assert run.settings["roles"]["model_probabilities"]["p_cow"] == "cow"
    right = [np.mean(each.docket["label"] == truth) for each in (without, run)]
    assert right[1] > max(0.9, right[0] + 0.1)
    again = run.decide({run.docket["id"][0]: truth[0]})
    assert again.docket["label"][0] == truth[0]


def test_the_command_line_takes_them(tmp_path, capsys):
    table, _ = make_table()
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ["--annotators", "w*", "--model-probabilities", "p_*", "--out", str(tmp_path / "o")]
    assert cli(["rectify", str(tmp_path / "t.csv"), *words]) == 0
    assert "model probability" in capsys.readouterr().out
    roles = json.loads((tmp_path / "o" / "run.json").read_text())["settings"]["roles"]
    assert roles["model_probabilities"] == {f"p_{name}": name for name in ("dog", "cat", "cow")}
    assert "model probability" in repr(appellate.load(tmp_path / "o"))
    assert cli(["check", str(tmp_path / "t.csv"), *words[:4]]) == 0
    assert "--model-probabilities 'p_*'" in capsys.readouterr().out


def spoil(table, row, column, value):
    table = table.copy()
    table.loc[row, column] = value
    return table


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.assign(p_owl=0.0), r"column 'p_owl' .* has no label 'owl'"),
        (lambda t: t.drop(columns="p_cow"), "no column for the label 'cow'"),
        (lambda t: spoil(t, 7, "p_dog", 1.5), r"column 'p_dog', row 7 .*1\.5 is not between 0"),
        (lambda t: spoil(t, 7, "p_dog", -0.1), r"'p_dog', row 7 .*-0\.1 is not between 0"),
        (lambda t: spoil(t, 7, ["p_cat", "p_cow", "p_dog"], 0.3), "row 7 .*sums to 0.9, not to 1"),
        (lambda t: spoil(t, 7, "p_dog", None), r"column 'p_dog', row 7 .*cell is empty"),
        (lambda t: t.assign(p_dog="x"), r"column 'p_dog' .*does not hold numbers"),
    ],
)
def test_what_is_not_a_probability_is_refused_with_its_place(change, said):
    with pytest.raises(TableError, match=said):
        appellate.rectify(change(make_table()[0]), annotators="w*", model_probabilities="p_*")


def test_rows_may_lack_the_model():
    table, truth = make_table()
    table = spoil(table, slice(0, 9), ["p_cat", "p_cow", "p_dog"], None)
    run = appellate.rectify(table, annotators="w*", model_probabilities="p_*")
    assert np.mean(run.docket["label"][10:] == truth[10:]) > 0.9


def test_probabilities_that_vary_within_an_item_are_refused():
    long = to_long(make_table()[0])
    long.loc[130, ["p_cat", "p_cow", "p_dog"]] = 1.0, 0.0, 0.0
    with pytest.raises(TableError, match=r"row 130 .*differs from the first row of the same item"):
        appellate.rectify(long, long="name,label,who", model_probabilities="p_*")


def test_candidates_and_other_methods_take_no_probabilities():
    table = make_table()[0]
    table["maybe"] = table["w0"] + "|" + table["w1"]
    for given in ({"candidates": "maybe"}, {"ignore": "w*"}):
        with pytest.raises(TableError, match="candidates= holds sets, not answers"):
            appellate.rectify(table, model_probabilities="p_*", **given)
    with pytest.raises(ValueError, match="method 'jury' cannot use model_probabilities="):
        appellate.rectify(table, annotators="w*", model_probabilities="p_*", method="jury")


@pytest.mark.parametrize("pattern", ["p_cat,p_cow", ["p_cat", "p_cow"], "p_*,w*", "*_*"])
def test_a_pattern_must_say_which_class_a_column_is_of(pattern):
    with pytest.raises(TableError, match="Give one pattern with one '\\*'"):
        find_roles(read_table(make_table()[0]), annotators="w0", model_probabilities=pattern)


def test_a_column_of_probabilities_has_no_other_role():
    table = read_table(make_table()[0])
    with pytest.raises(TableError, match=r"'p_cat' is not a feature"):
        find_roles(table, annotators="w*", model_probabilities="p_*", features="p_cat")
    with pytest.raises(TableError, match="A column has one role"):
        find_roles(table, annotators="w*", model_probabilities="p_*", ignore="p_cat")
