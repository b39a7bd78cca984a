"""SURE against its objective and the alternation written with dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from appellate import SUREClassifier
from tests.problems import random_candidates, random_confidence, solve_qp


@pytest.fixture
def data():
    rng = np.random.RandomState(0)
    return rng.normal(size=(30, 3)), random_candidates(rng, 30, 4)


def smoother(X, ridge):
    distances = squareform(pdist(X))
    K = np.exp(-(distances**2) / (2 * pdist(X).mean() ** 2))
    inverse = np.linalg.inv(K + ridge * np.eye(len(X)))
    v = inverse.sum(axis=1)
    return np.eye(len(X)) - ridge * (inverse - np.outer(v, v) / v.sum())


def project(row, candidates):
    """Project by a generic QP solver."""
    m = candidates.sum()
    point, _ = solve_qp(
        np.eye(m), -row[candidates], np.ones((1, m)), [1.0], -np.eye(m), np.zeros(m)
    )
    out = np.zeros(len(row))
    out[candidates] = point
    return out


def literal_sure(X, candidates, start, maximization, ridge, turns):
    S, P = smoother(X, ridge), start
    for _ in range(turns):
        Q = S @ P
        best = np.where(candidates, Q, -np.inf).argmax(axis=1)
        pulled = Q + maximization / 2 * np.eye(candidates.shape[1])[best]
        P = np.array([project(*row) for row in zip(pulled, candidates, strict=True)])
    return P, S @ P


@pytest.mark.parametrize("supervised", [False, True])
def test_equals_the_literal_alternation(data, supervised):
    X, candidates = data
    start = candidates / candidates.sum(axis=1, keepdims=True)
    supervision = None
    if supervised:
        start = supervision = random_confidence(np.random.RandomState(3), candidates)
    P, M = literal_sure(X, candidates, start, 0.3, 0.05, turns=4)
    model = SUREClassifier(max_iter=4, tol=0).fit(X, candidates, supervision=supervision)
    np.testing.assert_allclose(model.confidence_, P, atol=1e-6)
    np.testing.assert_allclose(model.training_output_, M, atol=1e-6)
    np.testing.assert_array_equal(
        model.transduction_, np.where(candidates, M, -np.inf).argmax(axis=1)
    )
    assert model.n_iter_ == 4


def test_objective_decreases(data):
    """|S P - P|^2 + ridge |W|^2 reduces to <P, P - S P>; SURE subtracts its pull."""
    X, candidates = data
    S = smoother(X, 0.05)
    values = []
    for turns in range(1, 8):
        P = SUREClassifier(max_iter=turns, tol=0).fit(X, candidates).confidence_
        values.append(np.sum(P * (P - S @ P)) - 0.3 * P.max(axis=1).sum())
    assert (np.diff(values) <= 1e-10).all()
    assert values[0] > values[-1]


def test_stops_when_the_confidence_settles(data):
    X, candidates = data
    model = SUREClassifier().fit(X, candidates)
    assert model.n_iter_ < 100
    one_more = SUREClassifier(max_iter=model.n_iter_ + 1, tol=0).fit(X, candidates)
    assert np.linalg.norm(one_more.confidence_ - model.confidence_) < 2e-3
