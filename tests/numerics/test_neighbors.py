"""Neighbours by scikit-learn's interface: exact searches agree, approximate ones tell recall."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.neighbors import KNeighborsTransformer, NearestNeighbors

from appellate import AGGDClassifier, LALOClassifier, PLCLClassifier, PLKNNClassifier
from appellate.io import load_model, save_model
from appellate.numerics.graph import (
    NeighborSearch,
    find_neighbors,
    report_recall,
)
from tests.test_large import make_problem

SEARCHES = [
    NearestNeighbors(algorithm="kd_tree"),
    NearestNeighbors(algorithm="brute"),
    KNeighborsTransformer(mode="distance"),
]


@pytest.mark.parametrize("search", SEARCHES, ids=lambda s: type(s).__name__)
def test_exact_searches_agree(search):
    rng = np.random.RandomState(0)
    X, queries = rng.normal(size=(200, 4)), rng.normal(size=(7, 4))
    pairs = [[find_neighbors(each, X, 5) for each in (None, search)]]
    pairs.append([NeighborSearch(each, X, 5).ask(queries) for each in (None, search)])
    for (distances, indices), (near, found) in pairs:
        np.testing.assert_array_equal(found, indices)
        np.testing.assert_allclose(near, distances, atol=1e-5)


@pytest.mark.parametrize("search", SEARCHES, ids=lambda s: type(s).__name__)
def test_duplicate_rows_are_not_their_own_neighbours(search):
    X = np.repeat(np.arange(4.0), 6)[:, np.newaxis]
    distances, indices = find_neighbors(search, X, 3)
    assert (indices != np.arange(24)[:, np.newaxis]).all()
    assert distances.max() < 1e-6


@pytest.mark.parametrize(
    "model",
    [AGGDClassifier, LALOClassifier, PLCLClassifier, PLKNNClassifier],
    ids=lambda m: m.__name__,
)
def test_classifiers_take_a_search_and_tell_its_recall(model, caplog):
    X, candidates, _ = make_problem(200)
    reference = model().fit(X, candidates)
    with caplog.at_level(logging.INFO, logger="appellate"):
        found = model(neighbors=NearestNeighbors(algorithm="ball_tree")).fit(X, candidates)
    np.testing.assert_array_equal(found.transduction_, reference.transduction_)
    np.testing.assert_array_equal(found.predict(X), reference.predict(X))
    assert "found 100.0 % of the nearest neighbours" in caplog.text


def test_sparse_rows_and_their_recall():
    rng = np.random.RandomState(0)
    X = rng.uniform(size=(300, 6)) * (rng.uniform(size=(300, 6)) < 0.5)
    distances, indices = find_neighbors(None, sp.csr_array(X), 4)
    np.testing.assert_allclose(distances, find_neighbors(None, X, 4)[0], atol=1e-7)
    assert report_recall(None, sp.csr_array(X), indices) == 1.0
    assert find_neighbors(None, sp.csr_array(X[:1]), 0)[1].shape == (1, 0)


@pytest.mark.parametrize("value", [1e160, 1e300])
def test_numbers_without_finite_distances_are_an_error(value):
    with pytest.raises(ValueError, match="scale the features"):
        find_neighbors(None, value * np.eye(8), 7)


def test_recall_is_measured():
    X = np.random.RandomState(0).normal(size=(400, 3))
    indices = find_neighbors(None, X, 10)[1]
    assert report_recall(None, X, indices) == 1.0
    broken = indices.copy()
    broken[:, 5:] = (np.arange(400)[:, None] + 200) % 400
    assert 0.4 < report_recall(None, X, broken) < 0.65


class Blind(BaseEstimator):
    def fit(self, X, y=None):
        return self

    def kneighbors(self, X, n_neighbors):
        return np.zeros((len(X), n_neighbors)), np.full((len(X), n_neighbors), -1)


def test_a_search_that_fails_is_named():
    X = np.zeros((5, 2))
    with pytest.raises(ValueError, match=r"Blind\(\) found fewer than 2 neighbours of row 0"):
        find_neighbors(Blind(), X, 2)
    with pytest.raises(TypeError, match=r"needs fit\(X\) and kneighbors"):
        find_neighbors(BaseEstimator(), X, 2)


@pytest.mark.parametrize("search", [None, NearestNeighbors(algorithm="brute")])
def test_new_rows_are_searched_in_one_index(search, monkeypatch, tmp_path):
    monkeypatch.setattr("appellate.core.base._PREDICT_ROWS", 50)
    X, candidates, _ = make_problem(200)
    model = PLKNNClassifier(neighbors=search).fit(X, candidates)
    built = []
    fit = NearestNeighbors.fit
    monkeypatch.setattr(NearestNeighbors, "fit", lambda *args: built.append(1) or fit(*args))
    proba = model.predict_proba(X)
    assert len(built) == 1
    np.testing.assert_array_equal(model.predict_proba(X), proba)
    assert len(built) == 1
    pytest.importorskip("skops")
    loaded = load_model(save_model(model, tmp_path / "model"))
    np.testing.assert_array_equal(loaded.predict_proba(X), proba)
    assert len(built) == 2


def test_a_poor_recall_is_a_warning(caplog):
    X = np.random.RandomState(0).normal(size=(400, 3))
    far = (np.arange(400)[:, None] + 200 + np.arange(5)) % 400
    with caplog.at_level(logging.WARNING, logger="appellate"):
        report_recall("this search", X, find_neighbors(None, X, 5)[1])
        assert not caplog.records
        report_recall("this search", X, far)
    assert "this search' found" in caplog.text


class PlainSearch:
    """The two methods, and nothing of scikit-learn's."""

    def fit(self, X):
        self.rows = X
        return self

    def kneighbors(self, X, n_neighbors):
        return NearestNeighbors().fit(self.rows).kneighbors(X, n_neighbors)


def test_any_object_with_the_two_methods():
    X = np.random.RandomState(0).normal(size=(50, 3))
    np.testing.assert_array_equal(
        find_neighbors(PlainSearch(), X, 4)[1], find_neighbors(None, X, 4)[1]
    )
