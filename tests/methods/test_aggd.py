"""PL-AGGD against its alternation with dense matrices and generic QP solvers."""

from __future__ import annotations

import numpy as np
import pytest

from appellate import AGGDClassifier
from appellate.candidates import as_candidates
from appellate.core.problem import Problem
from tests.literal import graph, neighbors, propagate, smoother
from tests.problems import random_candidates, random_confidence


@pytest.fixture
def data():
    rng = np.random.RandomState(0)
    return rng.normal(size=(16, 6)), random_candidates(rng, 16, 4, 0.5)


@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.3, 2.0)])
def test_equals_the_literal_alternation(data, weights):
    X, candidates = data
    supervision = random_confidence(np.random.RandomState(1), candidates)
    unit, near = neighbors(X, 5)
    P, S = supervision, smoother(X, 0.05)
    M = S @ P
    for _ in range(3):
        W = graph(unit, P, near, *weights)
        P = propagate(W, candidates, M, 1 / weights[1])
        M = S @ P
    model = AGGDClassifier(
        n_neighbors=5, feature_weight=weights[0], confidence_weight=weights[1], max_iter=3
    ).fit(X, candidates, supervision=supervision)
    np.testing.assert_allclose(model.confidence_, P, atol=1e-4)
    np.testing.assert_allclose(model.training_output_, M, atol=1e-4)


def test_starts_from_what_the_graph_rebuilds_best(data):
    """Without supervision the first confidence minimises |(I - W) P|^2 on the feature graph."""
    X, candidates = data
    unit, near = neighbors(X, 5)
    W = graph(unit, np.zeros_like(candidates, dtype=float), near, 1.0, 0.0)
    expected = propagate(W, candidates, np.zeros(candidates.shape), 0.0)
    problem = Problem(X, as_candidates(candidates))
    ours = problem.entries.scatter(AGGDClassifier(n_neighbors=5)._solve(problem, None).initial)
    residuals = [np.sum(((np.eye(16) - W) @ P) ** 2) for P in (ours, expected)]
    assert residuals[0] == pytest.approx(residuals[1], abs=1e-5)


def test_objective_decreases(data):
    """Each turn lowers the joint objective of model, graph and confidence."""
    X, candidates = data
    unit, near = neighbors(X, 5)
    S = smoother(X, 0.05)
    values = []
    for turns in range(1, 6):
        P = AGGDClassifier(n_neighbors=5, max_iter=turns).fit(X, candidates).confidence_
        W = graph(unit, P, near, 1.0, 1.0)
        rebuilt = np.sum((unit - W @ unit) ** 2) + np.sum((P - W @ P) ** 2)
        values.append(np.sum(P * (P - S @ P)) + rebuilt)
    assert (np.diff(values) <= 1e-5).all()
