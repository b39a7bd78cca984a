"""IPAL against its paper's steps with dense matrices and a generic solver."""

from __future__ import annotations

import numpy as np
import pytest

from appellate import IPALClassifier
from appellate.methods.ipal import rebuilding_weights
from tests.problems import random_candidates, random_confidence, solve_qp


@pytest.fixture
def data():
    rng = np.random.RandomState(0)
    return rng.normal(size=(40, 12)), random_candidates(rng, 40, 5), rng.normal(size=(9, 12))


def nearest(X, query, k, skip=None):
    distances = np.linalg.norm(X - query, axis=1)
    if skip is not None:
        distances[skip] = np.inf
    return np.argsort(distances)[:k]


def least_squares(rows, target):
    """min |target - rows' w|^2 over w >= 0 by the interior-point solver."""
    k = len(rows)
    none = np.empty((0, k)), np.empty(0)
    return solve_qp(2 * rows @ rows.T, -2 * rows @ target, *none, -np.eye(k), np.zeros(k))[0]


def literal(X, candidates, start, k, inertia, steps):
    """Confidence and labels, typed from the paper's equations 1 to 6."""
    n = len(X)
    W = np.zeros((n, n))  # W[a, i]: weight of neighbour a of row i
    for i in range(n):
        near = nearest(X, X[i], k, skip=i)
        W[near, i] = least_squares(X[near], X[i])
    H = W / W.sum(axis=0)
    P = start
    for _ in range(steps):
        P = (inertia * H.T @ P + (1 - inertia) * start) * candidates
        P = P / P.sum(axis=1, keepdims=True)
    scaled = P * start.sum(axis=0) / P.sum(axis=0)
    return scaled / scaled.sum(axis=1, keepdims=True), scaled.argmax(axis=1)


@pytest.mark.parametrize(("k", "inertia", "steps"), [(4, 0.95, 30), (10, 0.6, 5)])
def test_equals_the_paper(data, k, inertia, steps):
    X, candidates, new = data
    start = random_confidence(np.random.RandomState(1), candidates)
    confidence, labels = literal(X, candidates, start, k, inertia, steps)
    model = IPALClassifier(k, inertia=inertia, max_iter=steps)
    model.fit(X, candidates, supervision=start)
    np.testing.assert_allclose(model.confidence_, confidence, atol=1e-6)
    np.testing.assert_array_equal(model.transduction_, labels)
    for row in new:
        near = nearest(X, row, k)
        weights = least_squares(X[near], row)
        built = [weights[labels[near] == j] @ X[near][labels[near] == j] for j in range(5)]
        errors = np.array([np.sum((row - each) ** 2) for each in built])
        scores = model.decision_function(row[np.newaxis])[0]
        np.testing.assert_allclose(scores, 1 - errors / (row @ row), atol=1e-6)
        assert model.predict(row[np.newaxis])[0] == errors.argmin()


def test_without_supervision_it_starts_even(data):
    X, candidates, _ = data
    even = candidates / candidates.sum(axis=1, keepdims=True)
    confidence, _ = literal(X, candidates, even, 10, 0.95, 100)
    model = IPALClassifier().fit(X, candidates)
    np.testing.assert_allclose(model.confidence_, confidence, atol=1e-6)


def test_equal_neighbours_share_their_weight():
    rows = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    weights = rebuilding_weights(np.array([[3.0, 1.0]]), rows, np.array([[0, 1, 2]]))
    np.testing.assert_allclose(weights, [[1.5, 1.5, 0.0]], atol=1e-6)
