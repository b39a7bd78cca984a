"""The docket: columns, containers, ids, truth, round of the change."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from appellate import PLCPClassifier, SUREClassifier
from appellate.docket import Docket

COLUMNS = [
    "id",
    "candidates",
    "n_candidates",
    "first_label",
    "label",
    "outcome",
    "first_confidence",
    "confidence",
    "margin",
    "since_round",
]


def make_docket(**options):
    """Four samples, three rounds: unchanged, changed at once, later, and there and back."""
    fields = {
        "candidates": np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1], [0, 1, 1]], dtype=bool),
        "class_names": np.array(["a", "b", "c"]),
        "verdict_confidence": np.array([[1, 0, 0], [0.7, 0.3, 0], [0.4, 0.3, 0.3], [0, 0.9, 0.1]]),
        "appeal_confidence": np.array([[1, 0, 0], [0.2, 0.8, 0], [0.1, 0.2, 0.7], [0, 0.6, 0.4]]),
        "label_history": np.array([[0, 0, 0, 1], [0, 1, 1, 2], [0, 1, 2, 1], [0, 1, 2, 1]]),
    }
    return Docket(**{**fields, **options})


def test_columns():
    table = make_docket().columns()
    assert list(table) == COLUMNS
    assert table["id"].tolist() == [0, 1, 2, 3]
    assert table["candidates"].tolist() == ["a", "a|b", "a|b|c", "b|c"]
    assert table["n_candidates"].tolist() == [1, 2, 3, 2]
    assert table["first_label"].tolist() == ["a", "a", "a", "b"]
    assert table["label"].tolist() == ["a", "b", "c", "b"]
    assert table["outcome"].tolist() == ["unchanged", "changed", "changed", "unchanged"]
    np.testing.assert_allclose(table["first_confidence"], [1, 0.7, 0.4, 0.9])
    np.testing.assert_allclose(table["confidence"], [1, 0.8, 0.7, 0.6])
    np.testing.assert_allclose(table["margin"], [1, 0.6, 0.5, 0.2])
    assert table["since_round"].tolist() == [0, 1, 2, 2]


def test_truth_and_ids():
    table = make_docket(truth=["a", "b", "a", "c"], ids=["w", "x", "y", "z"]).columns()
    assert list(table) == [*COLUMNS, "truth", "first_correct", "correct"]
    assert table["id"].tolist() == ["w", "x", "y", "z"]
    assert table["first_correct"].tolist() == [True, False, True, False]
    assert table["correct"].tolist() == [True, True, False, False]


@pytest.mark.parametrize("field", ["ids", "truth"])
def test_wrong_length_is_an_error(field):
    with pytest.raises(ValueError, match=f"{field} has 3 values, but 4 samples"):
        make_docket(**{field: ["a", "b", "c"]})


def test_labels_that_contain_the_separator():
    docket = make_docket(class_names=np.array(["a|x", "b", "c"]))
    assert docket.columns()["candidates"].tolist() == ["a|x", "a|x;b", "a|x;b;c", "b;c"]
    assert docket.columns(" / ")["candidates"][1] == "a|x / b"


def test_one_class_has_full_margin():
    docket = Docket(
        np.ones((2, 1), bool),
        np.array(["a"]),
        np.ones((2, 1)),
        np.ones((2, 1)),
        np.zeros((2, 2), int),
    )
    assert docket.columns()["margin"].tolist() == [1, 1]


@pytest.mark.parametrize("backend", ["pandas", "polars"])
@pytest.mark.parametrize("names", [["a", "b", "c"], [10, 20, 30], [("a", 1), "b", None]])
def test_frames(backend, names):
    frames = pytest.importorskip(backend)
    objects = np.empty(3, dtype=object)
    objects[:] = names
    classes = objects if isinstance(names[0], tuple) else np.array(names)
    frame = make_docket(class_names=classes).to_frame(backend)
    assert isinstance(frame, frames.DataFrame)
    assert list(frame.columns) == COLUMNS
    assert len(frame) == 4
    if not isinstance(names[0], tuple):
        assert list(frame["first_label"]) == [names[0]] * 3 + [names[1]]


def test_unknown_output():
    with pytest.raises(ValueError, match="'pandas', 'polars' or 'dict'"):
        make_docket().to_frame("arrow")


@pytest.fixture(scope="module")
def arrays():
    X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    return X, ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]


def test_another_order_of_the_index_is_warned_of():
    pandas = pytest.importorskip("pandas")
    y = pandas.Series(["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"], list("abcdef"))
    X = pandas.DataFrame({"x": [0.0, 0.1, 0.2, 5.0, 5.1, 5.2]}, index=list("fabcde"))
    model = PLCPClassifier(SUREClassifier())
    with pytest.warns(UserWarning, match="row 0 of X, 'f', is given row 0 of y, 'a'") as caught:
        model.fit(X, y)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y.loc[X.index])
        model.fit(X, y.reset_index(drop=True))
        model.fit(X.to_numpy(), y)


def test_docket_is_of_the_users_kind(arrays):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X, y = arrays
    model = PLCPClassifier(SUREClassifier())
    index = [f"item{i}" for i in range(6)]
    docket = model.fit(X, pandas.Series(y, index=index)).docket(truth=["cat"] * 3 + ["dog"] * 3)
    assert isinstance(docket, pandas.DataFrame)
    assert docket["id"].tolist() == index
    assert docket["correct"].all()
    assert isinstance(model.fit(X, polars.Series(y)).docket(), polars.DataFrame)
    assert isinstance(model.fit(polars.DataFrame({"x": X[:, 0]}), y).docket(), polars.DataFrame)
    framed = model.fit(pandas.DataFrame(X, columns=["x"], index=index), y)
    assert framed.docket()["id"].tolist() == index
    assert framed.docket(ids=range(6))["id"].tolist() == list(range(6))
    assert isinstance(model.fit(X, y).docket(), pandas.DataFrame)
    assert isinstance(model.docket(output="dict"), dict)


def test_without_frame_libraries_a_dict(arrays, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    docket = PLCPClassifier(SUREClassifier()).fit(*arrays).docket()
    assert isinstance(docket, dict)
    assert list(docket) == COLUMNS


def test_truth_that_is_not_known_is_neither_right_nor_wrong():
    docket = make_docket(truth=["a", None, "a", float("nan")])
    known = make_docket(truth=["a", "b", "a", "c"]).columns()["correct"]
    for name in ("first_correct", "correct"):
        assert docket.columns()[name][[1, 3]].tolist() == [None, None]
    assert docket.columns()["correct"][0] is bool(known[0])
    pytest.importorskip("pandas")
    frame = docket.to_frame("pandas")
    assert frame["correct"].isna().tolist() == [False, True, False, True]
    assert frame["correct"][0] == known[0]


def test_nan_beside_texts_alone_is_not_known_either():
    docket = make_docket(truth=["a", float("nan"), "a", "c"]).columns()
    assert docket["correct"][1] is None


def test_class_numbers_are_no_truth_of_named_classes():
    with pytest.raises(TypeError, match=r"truth has values such as 0, but the classes are 'a'"):
        make_docket(truth=[0, 1, None, 2])
    numbered = {"class_names": np.array([1, 2, 3])}
    with pytest.raises(TypeError, match="pass the names of the true labels"):
        make_docket(truth=["1", "2", "3", "1"], **numbered)
    assert make_docket(truth=[1.0, 2.0, 3.0, 1.0], **numbered).truth == [1.0, 2.0, 3.0, 1.0]


@pytest.mark.parametrize("cost", [None, np.zeros((1, 1))])
def test_the_only_class_has_a_margin_of_one(cost):
    one = {"verdict_confidence": np.ones((2, 1)), "appeal_confidence": np.ones((2, 1))}
    docket = Docket(np.ones((2, 1), dtype=bool), np.array(["a"]), **one, cost=cost,
                    label_history=np.zeros((2, 2), dtype=int))  # fmt: skip
    assert docket.columns()["margin"].tolist() == [1, 1]


def test_a_model_of_one_class_with_a_cost_has_a_docket():
    model = PLCPClassifier(SUREClassifier(), cost="absolute").fit([[0.0], [1.0]], ["a", "a"])
    assert model.docket(output="dict")["margin"].tolist() == [1, 1]


def test_the_docket_names_the_cost_that_was_followed():
    model = PLCPClassifier(SUREClassifier(), cost="within:1")
    model.fit([[0.0], [1.0], [5.0]], ["1|2", "2", "3"]).set_params(cost="absolute")
    assert model.docket(output="docket").cost_name == "within:1"
    assert model.fit([[0.0], [1.0]], ["1", "2"]).docket(output="docket").cost_name == "absolute"
