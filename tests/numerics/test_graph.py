"""Graph weights and Laplacians against generic solvers and definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from appellate.numerics.entries import CandidateEntries
from appellate.numerics.geometry import Geometry
from appellate.numerics.graph import (
    add_confidence_gram,
    difference_gram,
    normalized_laplacian,
    reconstruction_weights,
    unit_rows,
)
from appellate.numerics.search import find_neighbors
from tests.problems import random_candidates, random_confidence, solve_qp


def qp_weights(gram):
    """Min w'Gw over the simplex, by a generic QP solver, on the scaled and ridged problem."""
    k = len(gram)
    scaled = gram / np.trace(gram) * k + 1e-8 * np.eye(k)
    w, _ = solve_qp(2 * scaled, np.zeros(k), np.ones((1, k)), [1.0], -np.eye(k), np.zeros(k))
    return w, scaled


def loop_gram(rows, neighbors):
    return np.array([(rows[i] - rows[n]) @ (rows[i] - rows[n]).T for i, n in enumerate(neighbors)])


@pytest.mark.parametrize(("n", "q", "k"), [(40, 15, 10), (40, 3, 10), (12, 1, 10), (8, 4, 7)])
def test_weights_equal_generic_solver(n, q, k):
    """Also with fewer dimensions than neighbours, and with all rows as neighbours."""
    X = unit_rows(np.random.RandomState(n + q).normal(size=(n, q)) + 0.5)
    neighbors = find_neighbors(None, X, k)[1]
    gram = difference_gram(X, neighbors)
    weights = reconstruction_weights(gram)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    assert (weights >= 0).all()
    for row, g in zip(weights, gram, strict=True):
        if np.trace(g) < 1e-12:
            continue
        expected, scaled = qp_weights(g)
        assert row @ scaled @ row <= expected @ scaled @ expected + 1e-9
        if q >= k:
            np.testing.assert_allclose(row, expected, atol=1e-6)


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 5))
def test_weights_are_optimal_for_any_gram(seed, k, rank):
    """No corner of the simplex is better: the optimality condition of the program."""
    root = np.random.RandomState(seed).normal(size=(k, rank))
    gram = (root @ root.T)[np.newaxis]
    (w,) = reconstruction_weights(gram)
    slopes = gram[0] @ w / np.trace(gram[0])
    assert w @ slopes <= slopes.min() + 1e-6


def test_start_does_not_matter():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(50, 12))
    neighbors = find_neighbors(None, X, 8)[1]
    gram = difference_gram(X, neighbors)
    plain = reconstruction_weights(gram)
    for start in (rng.dirichlet(np.ones(8), size=50), np.eye(8)[rng.randint(8, size=50)], plain):
        np.testing.assert_allclose(reconstruction_weights(gram, start), plain, atol=1e-9)


@pytest.mark.parametrize("rows", [np.ones((6, 2)), np.zeros((6, 3))])
def test_coinciding_rows_have_equal_weights(rows):
    graph = Geometry(rows).graph(4)
    entries = CandidateEntries(np.ones((6, 2), bool))
    np.testing.assert_array_equal(graph.weights(entries), 0.25)


def test_duplicate_row_takes_all_the_weight():
    rows = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.2]])
    weights = reconstruction_weights(difference_gram(rows, np.array([[1, 2, 3]])))
    np.testing.assert_allclose(weights, [[1, 0, 0]], atol=1e-6)


def test_grams_equal_their_definition(monkeypatch):
    monkeypatch.setattr("appellate.numerics.graph._BLOCK_BYTES", 2000)  # several blocks
    rng = np.random.RandomState(0)
    X = rng.normal(size=(30, 4))
    neighbors = find_neighbors(None, X, 5)[1]
    gram = difference_gram(X, neighbors)
    np.testing.assert_allclose(gram, loop_gram(X, neighbors), atol=1e-12)
    candidates = random_candidates(rng, 30, 6)
    confidence = random_confidence(rng, candidates)
    entries = CandidateEntries(candidates)
    both = add_confidence_gram(gram.copy(), entries.gather(confidence), entries, neighbors, 0.7)
    np.testing.assert_allclose(both, gram + 0.7 * loop_gram(confidence, neighbors), atol=1e-12)


def test_few_rows():
    graph = Geometry(np.array([[1.0, 2.0], [2.0, 1.0]])).graph(10)
    assert graph.neighbors.tolist() == [[1], [0]]
    entries = CandidateEntries(np.ones((2, 2), bool))
    np.testing.assert_array_equal(graph.weights(entries), 1)
    alone = Geometry(np.ones((1, 2))).graph(10)
    assert alone.weights(CandidateEntries(np.ones((1, 2), bool))).shape == (1, 0)


def test_laplacian_equals_its_definition():
    X = np.random.RandomState(0).normal(size=(20, 3))
    distances, neighbors = find_neighbors(None, X, 4)
    A = np.zeros((20, 20))
    for i in range(20):
        for d, j in zip(distances[i], neighbors[i], strict=True):
            A[i, j] = np.exp(-(d**2) / (2 * 1.5**2))
    A = (A + A.T) / 2
    root = np.diag(A.sum(axis=1) ** -0.5)
    laplacian = normalized_laplacian(distances, neighbors, 1.5).toarray()
    np.testing.assert_allclose(laplacian, np.eye(20) - root @ A @ root, atol=1e-12)
    assert np.linalg.eigvalsh(laplacian)[-1] <= 2 + 1e-12
