"""Graph weights, Laplacians and propagation against generic solvers and definitions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize

from appellate.numerics.entries import CandidateEntries
from appellate.numerics.graph import (
    NeighborGraph,
    add_confidence_gram,
    difference_gram,
    find_neighbors,
    normalized_laplacian,
    reconstruction_weights,
    restrict_graph,
)
from tests.problems import random_candidates, random_confidence, solve_qp


def qp_weights(gram):
    """Min w'Gw over the simplex, by a generic QP solver, on the scaled and ridged problem."""
    k = len(gram)
    scaled = gram / np.trace(gram) * k + 1e-8 * np.eye(k)
    w, _ = solve_qp(2 * scaled, np.zeros(k), np.ones((1, k)), [1.0], -np.eye(k), np.zeros(k))
    return w, scaled


def rebuild(gram):
    return reconstruction_weights(gram, np.zeros(gram.shape[:2]))


def loop_gram(rows, neighbors):
    return np.array([(rows[i] - rows[n]) @ (rows[i] - rows[n]).T for i, n in enumerate(neighbors)])


@pytest.mark.parametrize(("n", "q", "k"), [(40, 15, 10), (40, 3, 10), (12, 1, 10), (8, 4, 7)])
def test_weights_equal_generic_solver(n, q, k):
    """Also with fewer dimensions than neighbours, and with all rows as neighbours."""
    X = normalize(np.random.RandomState(n + q).normal(size=(n, q)) + 0.5)
    neighbors = find_neighbors(None, X, k)[1]
    gram = difference_gram(X, neighbors)
    weights = rebuild(gram)
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
    (w,) = rebuild(gram)
    slopes = gram[0] @ w / np.trace(gram[0])
    assert w @ slopes <= slopes.min() + 1e-6


def test_start_does_not_matter():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(50, 12))
    neighbors = find_neighbors(None, X, 8)[1]
    gram = difference_gram(X, neighbors)
    plain = rebuild(gram)
    for start in (rng.dirichlet(np.ones(8), size=50), np.eye(8)[rng.randint(8, size=50)], plain):
        np.testing.assert_allclose(reconstruction_weights(gram, start), plain, atol=1e-9)


@pytest.mark.parametrize("rows", [np.ones((6, 2)), np.zeros((6, 3))])
def test_coinciding_rows_have_equal_weights(rows):
    graph = NeighborGraph(rows, 4, CandidateEntries(np.ones((6, 2), bool)))
    np.testing.assert_array_equal(graph.weights(), 0.25)


def test_duplicate_row_takes_all_the_weight():
    rows = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.2]])
    weights = rebuild(difference_gram(rows, np.array([[1, 2, 3]])))
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
    both, values = gram.copy(), entries.gather(confidence)
    add_confidence_gram(both, values, entries.labels, entries.indptr, neighbors, 0.7)
    np.testing.assert_allclose(both, gram + 0.7 * loop_gram(confidence, neighbors), atol=1e-12)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
def test_sparse_rows_have_the_graph_of_dense_ones(kind, monkeypatch):
    monkeypatch.setattr("appellate.numerics.graph._BLOCK_BYTES", 2000)
    rng = np.random.RandomState(0)
    X = (rng.uniform(size=(30, 8)) < 0.7) * rng.uniform(size=(30, 8))
    entries = CandidateEntries(np.ones((30, 2), bool))
    dense, sparse = NeighborGraph(X, 5, entries), NeighborGraph(kind(X), 5, entries)
    np.testing.assert_allclose(sparse.gram, dense.gram, atol=1e-12)


@pytest.mark.parametrize("value", [1e160, 1e300])
def test_rows_without_a_finite_length_are_an_error(value):
    with pytest.raises(ValueError, match="scale the features"):
        NeighborGraph(value * np.eye(4), 2, CandidateEntries(np.ones((4, 2), bool)))


@pytest.mark.parametrize("size", [1e-2, 1e-4, 1e-6])
def test_differences_that_almost_vanish_have_weights(size):
    """Of many equal rows, rounding of the confidences' products can exceed the ridge."""
    graph = NeighborGraph(np.ones((60, 1)), 10, CandidateEntries(np.ones((60, 3), bool)))
    for seed in range(20):
        rng = np.random.RandomState(seed)
        steps = rng.choice(size * 10.0 ** -np.arange(4), size=60)
        confidence = rng.dirichlet(np.ones(3)) + np.outer(steps, [1, -1, 0])
        start = rng.dirichlet(np.ones(10), size=60) * (rng.uniform(size=(60, 10)) < 0.5)
        weights = graph.weights(confidence.ravel(), 1.0, 1.0, start)
        assert (weights >= 0).all()
        np.testing.assert_allclose(weights.sum(axis=1), 1)


def test_few_rows():
    rows = np.array([[1.0, 2.0], [2.0, 1.0]])
    graph = NeighborGraph(rows, 1, CandidateEntries(np.ones((2, 2), bool)))
    assert graph.neighbors.tolist() == [[1], [0]]
    np.testing.assert_array_equal(graph.weights(), 1)
    alone = NeighborGraph(np.ones((1, 2)), 0, CandidateEntries(np.ones((1, 2), bool)))
    assert alone.weights().shape == (1, 0)


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


def make_propagation(seed, n=14, n_labels=4, k=5):
    rng = np.random.RandomState(seed)
    rows = rng.normal(size=(n, 3))
    entries = CandidateEntries(random_candidates(rng, n, n_labels, 0.5))
    graph = NeighborGraph(rows, k, entries)
    weights = rng.dirichlet(np.ones(k), size=n)
    dense = np.zeros((n, n))
    dense[np.arange(n)[:, None], graph.neighbors] = weights
    return graph, entries, weights, dense, rng.normal(size=(n, n_labels))


def full_qp(W, candidates, target, fidelity):
    """The paper's vectorised program, vec(P) of length n l."""
    n, l = candidates.shape
    R = np.eye(n) - W
    P = np.kron(np.eye(l), 2 * (R.T @ R + fidelity * np.eye(n)))
    Y = candidates.T.ravel().astype(float)
    x, value = solve_qp(
        P,
        -2 * fidelity * target.T.ravel(),
        np.hstack([np.eye(n)] * l),
        np.ones(n),
        np.vstack([-np.eye(n * l), np.eye(n * l)]),
        np.concatenate([np.zeros(n * l), Y]),
    )
    return x.reshape(l, n).T, value


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("fidelity", [0.0, 0.3, 1.5])
def test_propagation_equals_generic_solver(seed, fidelity):
    graph, entries, weights, W, target = make_propagation(seed)
    expected, value = full_qp(W, entries.scatter(np.ones(len(entries))) > 0, target, fidelity)
    solution = graph.propagate(
        weights, entries.uniform(), entries.gather(target), fidelity, tol=1e-12, max_iter=100_000
    )
    assert solution.converged
    assert solution.objective[-1] == pytest.approx(value, abs=1e-7)
    assert (np.diff(solution.objective) <= 1e-12).all()
    if fidelity:
        np.testing.assert_allclose(entries.scatter(solution.values), expected, atol=1e-6)


def test_weights_may_change_and_the_pattern_stays():
    graph, entries, weights, W, target = make_propagation(4)
    rng, start = np.random.RandomState(1), entries.uniform()
    graph.propagate(rng.dirichlet(np.ones(5), size=14), start)
    again = graph.propagate(weights, start, entries.gather(target), 1.0, tol=1e-12)
    expected, _ = full_qp(W, entries.scatter(np.ones(len(entries))) > 0, target, 1.0)
    np.testing.assert_allclose(entries.scatter(again.values), expected, atol=1e-6)


def test_propagation_says_when_it_stops_early():
    graph, entries, weights, _, target = make_propagation(4)
    with pytest.warns(ConvergenceWarning, match="stopped after 2 steps with a residual of"):
        graph.propagate(weights, entries.uniform(), entries.gather(target), 0.1, max_iter=2)


def test_no_neighbours_leaves_the_projected_target():
    entries = CandidateEntries(np.array([[True, True, False]]))
    graph = NeighborGraph(np.ones((1, 2)), 0, entries)
    solution = graph.propagate(graph.weights(), entries.uniform(), np.array([0.9, 0.3]), 1.0)
    # |P|^2 + |P - F|^2 is least at half the target, shifted onto the simplex
    np.testing.assert_allclose(solution.values, [0.65, 0.35], atol=1e-6)


def test_largest_eigenvalue():
    graph, _, weights, W, _ = make_propagation(2, n=40)
    R = np.eye(40) - W
    exact = np.linalg.eigvalsh(R.T @ R)[-1]
    value = graph._largest_eigenvalue(weights)
    assert 0.95 * exact <= value <= exact + 1e-9
    again = graph._largest_eigenvalue(weights)
    assert value - 1e-12 <= again <= exact + 1e-9


@pytest.mark.parametrize("rate", [0.1, 0.6])
def test_restricted_graph(rate):
    rng = np.random.RandomState(3)
    graph = sp.csr_array(rng.uniform(size=(15, 15)) * (rng.uniform(size=(15, 15)) < 0.3))
    candidates = random_candidates(rng, 15, 5, rate)
    entries = CandidateEntries(candidates)
    confidence = rng.normal(size=candidates.shape) * candidates
    product = restrict_graph(graph, entries) @ entries.gather(confidence)
    np.testing.assert_allclose(product, entries.gather(graph @ confidence), atol=1e-14)
