"""PL-KNN against a brute-force vote."""

from __future__ import annotations

import numpy as np
import pytest

from appellate import PLKNNClassifier
from appellate.evidence.confidence import blur, initial_confidence
from tests.problems import random_candidates


@pytest.fixture
def data():
    rng = np.random.RandomState(0)
    return rng.normal(size=(50, 3)), random_candidates(rng, 50, 5), rng.normal(size=(8, 3))


def brute_force(X, candidates, queries, k, weights, skip_self):
    scores = np.zeros((len(queries), candidates.shape[1]))
    for i, query in enumerate(queries):
        distances = np.linalg.norm(X - query, axis=1)
        if skip_self:
            distances[i] = np.inf
        nearest = np.argsort(distances)[:k]
        total = distances[nearest].sum()
        for row in nearest:
            vote = 1 if weights == "uniform" else 1 - distances[row] / total
            scores[i] += vote * candidates[row]
    return scores


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("k", [4, 10])
def test_equals_brute_force(data, weights, k):
    X, candidates, new = data
    model = PLKNNClassifier(k, weights=weights).fit(X, candidates)
    scores = brute_force(X, candidates, new, k, weights, skip_self=False)
    np.testing.assert_allclose(
        model.predict_proba(new), scores / scores.sum(axis=1, keepdims=True), atol=1e-12
    )
    np.testing.assert_array_equal(model.predict(new), scores.argmax(axis=1))
    training = brute_force(X, candidates, X, k, weights, skip_self=True)
    np.testing.assert_array_equal(model.training_output_, np.eye(5)[training.argmax(axis=1)])
    masked = np.where(candidates, training, -1)
    np.testing.assert_array_equal(model.transduction_, masked.argmax(axis=1))
    at_top = masked == masked.max(axis=1, keepdims=True)
    assert model.n_ties_ == np.count_nonzero(at_top.sum(axis=1) > 1)


def test_supervision_reduces_the_candidate_sets(data):
    """The paper's operator G, kept to the candidates: at least one candidate survives."""
    X, candidates, new = data
    rng = np.random.RandomState(1)
    supervision = blur(rng.uniform(size=candidates.shape), candidates, 2.0)
    reduced = candidates & (supervision >= initial_confidence(candidates) - 1e-12)
    assert reduced.any(axis=1).all()
    assert reduced.sum() < candidates.sum()
    model = PLKNNClassifier(6).fit(X, candidates, supervision=supervision)
    np.testing.assert_array_equal(
        model.predict_proba(new), PLKNNClassifier(6).fit(X, reduced).predict_proba(new)
    )
    np.testing.assert_array_equal(model.candidates_, candidates)


def test_uniform_supervision_changes_nothing(data):
    X, candidates, new = data
    supervision = initial_confidence(candidates)
    one = PLKNNClassifier().fit(X, candidates, supervision=supervision)
    np.testing.assert_array_equal(
        one.predict_proba(new), PLKNNClassifier().fit(X, candidates).predict_proba(new)
    )


def test_coinciding_neighbours_vote_fully():
    X = np.zeros((4, 1))
    model = PLKNNClassifier(3, weights="distance").fit(X, ["a", "a", "b", "a"])
    assert model.predict([[0.0]]) == ["a"]
