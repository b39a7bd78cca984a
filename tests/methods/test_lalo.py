"""LALO against its alternation with dense matrices and a generic QP solver."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from appellate import LALOClassifier
from tests.literal import smoother
from tests.problems import random_candidates, random_confidence, solve_qp


def laplacian(X, k):
    distances = cdist(X, X)
    np.fill_diagonal(distances, np.inf)
    near = np.argsort(distances, axis=1)[:, :k]
    kept = np.take_along_axis(distances, near, axis=1)
    A = np.zeros((len(X), len(X)))
    np.put_along_axis(A, near, np.exp(-(kept**2) / (2 * kept.mean() ** 2)), axis=1)
    A = (A + A.T) / 2
    root = np.diag(A.sum(axis=1) ** -0.5)
    return np.eye(len(X)) - root @ A @ root


def minimise(L, candidates, target, mu):
    n, l = candidates.shape
    Y = candidates.T.ravel().astype(float)
    x, _ = solve_qp(
        np.kron(np.eye(l), 2 * (np.eye(n) + 2 * mu * L)),
        -2 * target.T.ravel(),
        np.hstack([np.eye(n)] * l),
        np.ones(n),
        np.vstack([-np.eye(n * l), np.eye(n * l)]),
        np.concatenate([np.zeros(n * l), Y]),
    )
    return x.reshape(l, n).T


@pytest.mark.parametrize("mu", [0.005, 0.5])
@pytest.mark.parametrize("supervised", [False, True])
def test_equals_the_literal_alternation(mu, supervised):
    rng = np.random.RandomState(0)
    X, candidates = rng.normal(size=(16, 4)), random_candidates(rng, 16, 4, 0.5)
    P = candidates / candidates.sum(axis=1, keepdims=True)
    supervision = random_confidence(rng, candidates) if supervised else None
    P = supervision if supervised else P
    S, L = smoother(X, 0.05), laplacian(X, 4)
    for _ in range(3):
        P = minimise(L, candidates, S @ P, mu)
    model = LALOClassifier(laplacian_weight=mu, n_neighbors=4, max_iter=3, tol=0)
    model.fit(X, candidates, supervision=supervision)
    np.testing.assert_allclose(model.confidence_, P, atol=1e-5)
    np.testing.assert_allclose(model.training_output_, S @ P, atol=1e-5)
    assert model.n_iter_ == 3


def test_stops_when_the_confidence_settles():
    rng = np.random.RandomState(1)
    model = LALOClassifier(max_iter=500).fit(
        rng.normal(size=(60, 4)), random_candidates(rng, 60, 4)
    )
    assert 1 < model.n_iter_ < 500
