"""Propagation against a generic QP solver of the full problem, with its n l unknowns."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from appellate.numerics.entries import CandidateEntries
from appellate.numerics.geometry import Geometry
from appellate.numerics.propagation import Propagation, largest_eigenvalue, restrict_graph
from tests.problems import random_candidates, solve_qp


def make_problem(seed, n=14, n_labels=4, k=5):
    rng = np.random.RandomState(seed)
    graph = Geometry(rng.normal(size=(n, 3))).graph(k)
    entries = CandidateEntries(random_candidates(rng, n, n_labels, 0.5))
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
def test_equals_generic_solver(seed, fidelity):
    graph, entries, weights, W, target = make_problem(seed)
    expected, value = full_qp(W, entries.scatter(np.ones(len(entries))) > 0, target, fidelity)
    solution = graph.propagation(entries).solve(
        weights, entries.gather(target), fidelity, entries.uniform(), tol=1e-12, max_iter=100_000
    )
    assert solution.converged
    assert solution.objective[-1] == pytest.approx(value, abs=1e-7)
    assert (np.diff(solution.objective) <= 1e-12).all()
    if fidelity:
        np.testing.assert_allclose(entries.scatter(solution.values), expected, atol=1e-6)


def test_weights_may_change_and_the_pattern_stays():
    graph, entries, weights, W, target = make_problem(4)
    propagation = graph.propagation(entries)
    rng = np.random.RandomState(1)
    propagation.solve(rng.dirichlet(np.ones(5), size=14), None, 0.0, entries.uniform())
    again = propagation.solve(weights, entries.gather(target), 1.0, entries.uniform(), tol=1e-12)
    expected, _ = full_qp(W, entries.scatter(np.ones(len(entries))) > 0, target, 1.0)
    np.testing.assert_allclose(entries.scatter(again.values), expected, atol=1e-6)
    assert graph.propagation(entries) is propagation


def test_no_neighbours_leaves_the_projected_target():
    entries = CandidateEntries(np.array([[True, True, False]]))
    propagation = Propagation(np.empty((1, 0), np.intp), entries)
    solution = propagation.solve(np.empty((1, 0)), np.array([0.9, 0.3]), 1.0, entries.uniform())
    # |P|^2 + |P - F|^2 is least at half the target, shifted onto the simplex
    np.testing.assert_allclose(solution.values, [0.65, 0.35], atol=1e-6)


def test_largest_eigenvalue():
    graph, _, weights, W, _ = make_problem(2, n=40)
    R = np.eye(40) - W
    exact = np.linalg.eigvalsh(R.T @ R)[-1]
    start = np.random.RandomState(0).normal(size=40)
    value, vector = largest_eigenvalue(graph.neighbors, weights, start, 30)
    assert 0.95 * exact <= value <= exact + 1e-9
    again, _ = largest_eigenvalue(graph.neighbors, weights, vector, 6)
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
