"""Splits: disjoint, covering, of even size, with every class's candidates shared out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit, cross_val_score

from appellate import PLKNNClassifier, SUREClassifier, as_candidates
from appellate.candidates import CandidateSets
from appellate.model_selection import (
    CandidateKFold,
    CandidateStratifiedKFold,
    candidate_train_test_split,
    cross_val_predict,
)
from appellate.testing import make_clusters
from tests.problems import random_candidates


@st.composite
def problems(draw):
    n, n_labels = draw(st.integers(4, 40)), draw(st.integers(1, 6))
    rng = np.random.RandomState(draw(st.integers(0, 1000)))
    return random_candidates(rng, n, n_labels, draw(st.floats(0, 1)))


def skewed_candidates(n=600, n_labels=12, seed=0):
    """Classes of very different size, rows sorted by class: the hard case for plain folds."""
    rng = np.random.RandomState(seed)
    weights = 1.0 / np.arange(1, n_labels + 1)
    truth = np.sort(rng.choice(n_labels, size=n, p=weights / weights.sum()))
    candidates = rng.uniform(size=(n, n_labels)) < 0.15
    candidates[np.arange(n), truth] = True
    return candidates


SPLITTERS = [CandidateKFold, CandidateStratifiedKFold]


@pytest.mark.parametrize("splitter", SPLITTERS)
@given(
    candidates=problems(),
    n_splits=st.integers(2, 4),
    shuffle=st.booleans(),
)
def test_no_row_is_on_both_sides(splitter, candidates, n_splits, shuffle):
    n = len(candidates)
    folds = splitter(n_splits, shuffle=shuffle, random_state=0 if shuffle else None)
    seen = np.zeros(n, dtype=int)
    for train, test in folds.split(np.zeros((n, 1)), candidates):
        assert not set(train) & set(test)
        assert set(train) | set(test) == set(range(n))
        assert n // n_splits <= len(test) <= -(-n // n_splits)
        seen[test] += 1
    assert (seen == 1).all()
    assert folds.get_n_splits() == n_splits


@pytest.mark.parametrize("shuffle", [False, True])
def test_stratified_folds_share_out_every_class(shuffle):
    candidates = skewed_candidates()
    counts = candidates.sum(axis=0)
    folds = CandidateStratifiedKFold(5, shuffle=shuffle, random_state=1 if shuffle else None)
    X = np.zeros((len(candidates), 1))
    worst = 0.0
    for _, test in folds.split(X, candidates):
        worst = max(worst, np.abs(candidates[test].sum(axis=0) - counts / 5).max())
        singles = (candidates[test].sum(axis=1) == 1).mean()
        assert singles == pytest.approx((candidates.sum(axis=1) == 1).mean(), abs=0.05)
    assert worst <= 2
    plain = max(
        np.abs(candidates[test].sum(axis=0) - counts / 5).max() for _, test in KFold(5).split(X)
    )
    assert plain > 20


def test_equal_sets_are_shared_out():
    sets = as_candidates(["a|b"] * 10 + ["a"] * 10 + ["b|c"] * 5)
    for _, test in CandidateStratifiedKFold(5).split(np.zeros((25, 1)), sets):
        found = sets[test].sets()
        assert [found.count(s) for s in (("a", "b"), ("a",), ("b", "c"))] == [2, 2, 1]


def test_shuffling_follows_the_seed():
    candidates = skewed_candidates(n=100)
    X = np.zeros((100, 1))

    def tests(**options):
        return [t.tolist() for _, t in CandidateStratifiedKFold(4, **options).split(X, candidates)]

    assert tests(shuffle=True, random_state=0) == tests(shuffle=True, random_state=0)
    assert tests(shuffle=True, random_state=0) != tests(shuffle=True, random_state=1)
    assert tests() == tests()


@pytest.mark.parametrize("splitter", SPLITTERS)
def test_any_form_of_candidates(splitter):
    _, candidates, _ = make_clusters(n_samples=12)
    names = np.array(["a", "b", "c"])
    forms = [
        candidates,
        sp.csr_array(candidates.astype(int)),
        pd.DataFrame(candidates, columns=names),
        pl.DataFrame({name: candidates[:, j] for j, name in enumerate(names)}),
        ["|".join(names[row]) for row in candidates],
        [set(names[row]) for row in candidates],
        as_candidates(candidates),
    ]
    expected = [t.tolist() for _, t in splitter(3).split(np.zeros((12, 1)), candidates)]
    for form in forms:
        found = [t.tolist() for _, t in splitter(3).split(np.zeros((12, 1)), form)]
        assert found == expected


@pytest.mark.parametrize("splitter", SPLITTERS)
def test_works_in_scikit_learn(splitter):
    X, candidates, _ = make_clusters()
    for y in (candidates, as_candidates(candidates, classes=["a", "b", "c"])):
        assert cross_val_score(SUREClassifier(), X, y, cv=splitter(3)).mean() > 0.95
        search = GridSearchCV(SUREClassifier(), {"maximization": [0.1, 0.3]}, cv=splitter(3)).fit(
            X, y
        )
        assert search.best_score_ > 0.95
    assert (
        repr(splitter(3)) == f"{splitter.__name__}(n_splits=3, random_state=None, shuffle=False)"
    )


def test_splitters_check_their_rows():
    X = np.zeros((3, 1))
    with pytest.raises(ValueError, match="candidate sets for 2"):
        list(CandidateKFold(2).split(X, ["a", "b"]))
    with pytest.raises(ValueError, match="row 1"):
        list(CandidateKFold(2).split(X, np.array([[1, 0], [0, 0], [1, 1]])))
    with pytest.raises(ValueError, match="needs the candidate sets"):
        list(CandidateStratifiedKFold(2).split(X))
    with pytest.raises(ValueError, match="n_splits=4"):
        list(CandidateStratifiedKFold(4).split(X, ["a", "b", "a"]))
    assert len(list(CandidateKFold(3).split(X))) == 3


# -- hold-out -----------------------------------------------------------------------------


@given(problems(), st.floats(0.15, 0.85), st.booleans())
def test_hold_out_parts_the_rows(candidates, test_size, stratify):
    n = len(candidates)
    rows = np.arange(n)
    X_train, X_test, y_train, y_test, train, test = candidate_train_test_split(
        rows[:, None], candidates, rows, test_size=test_size, stratify=stratify, random_state=0
    )
    assert sorted([*train, *test]) == list(rows)
    assert len(test) == round(test_size * n)
    np.testing.assert_array_equal(X_train.ravel(), train)
    np.testing.assert_array_equal(X_test.ravel(), test)
    np.testing.assert_array_equal(y_train.matrix, candidates[train])
    np.testing.assert_array_equal(y_test.matrix, candidates[test])


def test_hold_out_is_stratified():
    candidates = skewed_candidates()
    _, _, _, y_test = candidate_train_test_split(
        np.zeros((600, 1)), candidates, test_size=0.3, random_state=0
    )
    assert np.abs(y_test.matrix.sum(axis=0) - 0.3 * candidates.sum(axis=0)).max() <= 2
    other = candidate_train_test_split(np.zeros((600, 1)), candidates, random_state=1)[3]
    assert len(other) == 150


def test_hold_out_keeps_containers_and_classes():
    X, candidates, truth = make_clusters(n_samples=20)
    y = ["|".join(np.array(["a", "b", "c"])[row]) for row in candidates]
    frame, sparse = pd.DataFrame(X, index=list("abcdefghijklmnopqrst")), sp.coo_array(X)
    parts = candidate_train_test_split(
        frame, y, sparse, pl.DataFrame(X), list(truth), test_size=5, random_state=3
    )
    X_train, X_test, y_train, y_test, sparse_train, _, polars_train, _, *lists = parts
    assert isinstance(X_train, pd.DataFrame)
    assert isinstance(y_train, CandidateSets)
    assert isinstance(polars_train, pl.DataFrame)
    np.testing.assert_array_equal(sparse_train.toarray(), X_train.to_numpy())
    np.testing.assert_array_equal(polars_train.to_numpy(), X_train.to_numpy())
    assert [len(X_test), *map(len, lists)] == [5, 15, 5]
    assert y_train.class_names.tolist() == y_test.class_names.tolist() == ["a", "b", "c"]


def test_arrow_tables_are_split_as_frames_are():
    X, candidates, _ = make_clusters(n_samples=20)
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"v": X[:, 0], "w": X[:, 1]})
    X_train, _, _, _, v_train, _ = candidate_train_test_split(
        table, candidates, table["v"], test_size=5, random_state=3
    )
    assert X_train["v"].to_pylist() == v_train.to_pylist()
    found, expected = (
        cross_val_predict(PLKNNClassifier(), Z, candidates) for Z in (table, X[:, :2])
    )
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("test_size", [0, 1.0, 4, -1, 0.01, True])
def test_hold_out_leaves_rows_on_both_sides(test_size):
    with pytest.raises(ValueError, match="leaves no row"):
        candidate_train_test_split(np.zeros((4, 1)), ["a", "b", "a", "b"], test_size=test_size)


def test_hold_out_checks_lengths():
    with pytest.raises(ValueError, match="X has 3 rows"):
        candidate_train_test_split(np.zeros((3, 1)), ["a", "b", "a", "b"])
    with pytest.raises(ValueError, match="rows"):
        candidate_train_test_split(np.zeros((4, 1)), ["a", "b", "a", "b"], [1, 2, 3])


# -- predictions over folds -----------------------------------------------------------------


@pytest.mark.parametrize("form", ["strings", "sets", "matrix", "frame"])
@pytest.mark.parametrize("cv", [None, 4, CandidateKFold(4), KFold(4)])
def test_held_out_probabilities_have_a_column_a_class(form, cv):
    X, candidates, _ = make_clusters()
    candidates[:, 0] = True  # a class that every row has: scikit-learn codes its column as 0
    names = np.array(["a", "b", "c"])
    sets = as_candidates(candidates, classes=names)
    forms = {
        "strings": ["|".join(names[row]) for row in candidates],
        "sets": sets,
        "matrix": candidates,
        "frame": pd.DataFrame(candidates.astype(int), columns=names),
    }
    ask = {"X": pd.DataFrame(X, columns=["u", "v"]), "y": forms[form], "cv": cv}
    chances = cross_val_predict(SUREClassifier(), method="predict_proba", **ask)
    assert chances.shape == (60, 3)
    folds = CandidateStratifiedKFold(5 if cv is None else 4) if not hasattr(cv, "split") else cv
    for train, test in folds.split(X, sets):
        model = SUREClassifier().fit(X[train], sets[train])
        np.testing.assert_allclose(chances[test], model.predict_proba(X[test]), atol=1e-9)
    labels = cross_val_predict(SUREClassifier(), **ask)
    names = np.arange(3) if form == "matrix" else names
    np.testing.assert_array_equal(labels, names[chances.argmax(axis=1)])


def test_held_out_predictions_need_folds():
    X, candidates, _ = make_clusters()
    with pytest.raises(ValueError, match="every row exactly once"):
        cross_val_predict(SUREClassifier(), X, candidates, cv=ShuffleSplit(2, random_state=0))
