"""Nearest rows for the review page: exact for few rows, by NN-descent for many."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from appellate.numerics import neighbours
from appellate.numerics.neighbours import descend, nearest_rows


def make_rows(n, q=20, factors=6):
    """Rows whose features depend on a few factors."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, factors)) @ rng.normal(size=(factors, q)) + 3


def recall(rows, found):
    """Share of the neighbours that are no farther than the k-th nearest."""
    k = found.shape[1]
    farthest = NearestNeighbors(n_neighbors=k).fit(rows).kneighbors()[0][:, -1:]
    apart = np.linalg.norm(rows[:, np.newaxis] - rows[found], axis=2)
    return np.mean(apart <= farthest * (1 + 1e-5))


def test_few_rows_get_their_exact_neighbours():
    rows = make_rows(300)
    exact = NearestNeighbors(n_neighbors=5).fit(rows).kneighbors(return_distance=False)
    np.testing.assert_array_equal(nearest_rows(rows, 5), exact)


def test_many_rows_are_never_all_compared(monkeypatch):
    monkeypatch.setattr(neighbours, "EXACT_SEARCH_ROWS", 100)
    monkeypatch.setattr(neighbours, "NearestNeighbors", None)
    rows = make_rows(3000, q=50)
    found = nearest_rows(rows, 5)
    assert recall(rows, found) > 0.9
    np.testing.assert_array_equal(found, nearest_rows(rows, 5))


@pytest.mark.parametrize("n", [2, 7, 25, 49, 1000, 4000])
def test_a_row_gets_distinct_others_the_nearest_first(n):
    rows, k = make_rows(n), min(5, n - 1)
    found = descend(rows, k)
    assert found.shape == (n, k)
    assert found.min() >= 0
    assert all(len({i, *near}) == k + 1 for i, near in enumerate(found.tolist()))
    apart = np.linalg.norm(rows[:, np.newaxis] - rows[found], axis=2)
    assert (np.diff(apart, axis=1) >= -1e-4).all()
    assert recall(rows, found) > 0.93


def test_rows_that_are_all_the_same_have_neighbours():
    found = descend(np.ones((1000, 3)), 5)
    assert all(len({i, *near}) == 6 for i, near in enumerate(found.tolist()))
