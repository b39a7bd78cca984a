"""The likelihood of candidate sets against its definition and its invariances."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from appellate.metrics import candidate_likelihood

N, L = 8, 4
candidate_sets = arrays(bool, (N, L)).filter(lambda matrix: matrix.any(axis=1).all())


def likelihood_at(candidates, scores, temperature):
    """The definition, typed out."""
    weights = np.exp((scores - scores.max(axis=1, keepdims=True)) / temperature)
    shares = (weights * candidates).sum(axis=1) / weights.sum(axis=1)
    return np.mean(np.log(np.maximum(shares, 1e-6)))


@given(candidate_sets, arrays(float, (N, L), elements=st.floats(-1, 1)))
def test_likelihood_is_the_best_over_temperatures(candidates, scores):
    found = candidate_likelihood(candidates, scores)
    grid = [likelihood_at(candidates, scores, t) for t in np.geomspace(1e-3, 10, 15)]
    assert found <= 1e-12
    assert found >= likelihood_at(candidates, scores, 10) - 1e-9
    assert found <= max(grid) + 0.05
    shifted = scores + np.arange(N)[:, None]
    assert candidate_likelihood(candidates, shifted) == pytest.approx(found, abs=1e-3)


def test_likelihood_does_not_depend_on_the_scale():
    rng = np.random.RandomState(0)
    candidates = rng.uniform(size=(200, 5)) < 0.4
    candidates[:, 0] |= ~candidates.any(axis=1)
    scores = 0.2 * candidates + rng.normal(scale=0.2, size=candidates.shape)
    found = candidate_likelihood(candidates, scores)
    assert candidate_likelihood(candidates, 3 * scores) == pytest.approx(found, abs=1e-3)
    grid = [likelihood_at(candidates, scores, t) for t in np.geomspace(1e-3, 10, 400)]
    assert found == pytest.approx(max(grid), abs=1e-3)


def test_likelihood_of_two_classes_from_one_score():
    candidates = np.array([[1, 0], [1, 1], [0, 1], [0, 1]])
    scores = np.array([-0.3, 0.1, 0.4, -0.2])
    both = np.stack([np.zeros(4), scores], axis=1)
    found = candidate_likelihood(candidates, scores)
    assert found == pytest.approx(candidate_likelihood(candidates, both))


def test_likelihood_of_unknown_labels_is_finite():
    scores = np.array([[1.0, 0.0], [0.0, 1.0]])
    found = candidate_likelihood(["a", "zebra"], scores, classes=["a", "b"])
    assert found == pytest.approx(np.log(1e-6) / 2, abs=1e-3)


def test_likelihood_checks_scores():
    for scores in ([[np.nan, 0.0]], [[[0.0]]]):
        with pytest.raises(ValueError, match="scores of shape"):
            candidate_likelihood(["a"], scores, classes=["a", "b"])
