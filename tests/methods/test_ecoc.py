"""PL-ECOC against its paper's sums, typed literally."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from appellate import PLECOCClassifier
from appellate.evidence.confidence import blur, initial_confidence
from tests.problems import random_candidates


@pytest.fixture
def data():
    rng = np.random.RandomState(0)
    return rng.normal(size=(60, 4)), random_candidates(rng, 60, 6, 0.2), rng.normal(size=(7, 4))


def squared_hinge(rows, signs, ridge):
    """min sum max(0, 1 - s (x'w + b))^2 + ridge (|w|^2 + b^2), by a generic optimiser."""
    both = np.column_stack([rows, np.ones(len(rows))])

    def loss(w):
        return np.sum(np.maximum(0, 1 - signs * (both @ w)) ** 2) + ridge * w @ w

    return minimize(loss, np.zeros(both.shape[1]), options={"gtol": 1e-8}).x


def test_equals_the_paper(data):
    X, candidates, new = data
    model = PLECOCClassifier(kernel="linear", regularization=0.7, random_state=0)
    model.fit(X, candidates)
    centre, size = X.mean(axis=0), np.sqrt(((X - X.mean(axis=0)) ** 2).sum(axis=1).mean())
    code = model.code_
    assert code.shape == (6, np.ceil(10 * np.log2(6)))
    assert set(np.unique(code)) == {-1, 1}
    answers = {"train": [], "new": []}
    for column in code.T:
        sides = [set(column[row]) for row in candidates]
        known = np.array([len(side) == 1 for side in sides])
        assert known.mean() >= 0.1
        signs = np.array([side.pop() for side, one in zip(sides, known, strict=True) if one])
        w = squared_hinge((X[known] - centre) / size, signs, 0.7)
        for name, rows in (("train", X), ("new", new)):
            answers[name].append((rows - centre) / size @ w[:-1] + w[-1])
    H, R = np.array(answers["train"]), np.zeros(code.shape)
    for j, t in np.ndindex(code.shape):
        R[j, t] = np.mean(np.sign(H[t, candidates[:, j]]) == code[j, t])
    R /= R.sum(axis=1, keepdims=True)
    for name, rows in (("train", X), ("new", new)):
        losses = np.zeros((len(rows), 6))
        for j, t in np.ndindex(code.shape):
            losses[:, j] += R[j, t] * np.exp(-code[j, t] * np.array(answers[name])[t])
        np.testing.assert_allclose(model.decision_function(rows), 1 / (1 + losses), atol=1e-4)
        np.testing.assert_array_equal(model.predict(rows), losses.argmin(axis=1))
    losses = np.where(candidates, 1 / model.decision_function(X) - 1, np.inf)
    np.testing.assert_array_equal(model.transduction_, losses.argmin(axis=1))
    winners = model.decision_function(X).argmax(axis=1)
    np.testing.assert_array_equal(model.training_output_, np.eye(6)[winners])


def test_the_unit_of_the_features_does_not_matter(data):
    X, candidates, new = data
    for kernel in ("rbf", "linear"):
        model = PLECOCClassifier(kernel=kernel, random_state=0)
        one = model.fit(X, candidates).decision_function(new)
        two = model.fit(1000 * X, candidates).decision_function(1000 * new)
        np.testing.assert_allclose(one, two, atol=1e-5)


def test_supervision_reduces_the_candidate_sets(data):
    X, candidates, new = data
    supervision = blur(np.random.RandomState(1).uniform(size=candidates.shape), candidates, 2.0)
    reduced = candidates & (supervision >= initial_confidence(candidates) - 1e-12)
    model = PLECOCClassifier(random_state=0)
    one = model.fit(X, candidates, supervision=supervision).predict_proba(new)
    np.testing.assert_allclose(one, model.fit(X, reduced).predict_proba(new), atol=1e-12)


def test_too_large_sets_take_the_fullest_columns():
    """Where no column reaches the share, the best that were drawn are taken."""
    rng = np.random.RandomState(0)
    X, candidates = rng.normal(size=(80, 3)), random_candidates(rng, 80, 30, 0.35)
    model = PLECOCClassifier(random_state=0).fit(X, candidates)
    known = [
        np.mean([len(set(column[row])) == 1 for row in candidates]) for column in model.code_.T
    ]
    assert model.n_iter_ > 0
    assert max(known) < 0.1


def test_the_seed_draws_the_code():
    rng = np.random.RandomState(0)
    X, candidates = rng.normal(size=(80, 3)), random_candidates(rng, 80, 20, 0.1)
    codes = [PLECOCClassifier(random_state=s).fit(X, candidates).code_ for s in (0, 0, 1)]
    np.testing.assert_array_equal(codes[0], codes[1])
    assert not np.array_equal(codes[0], codes[2])
