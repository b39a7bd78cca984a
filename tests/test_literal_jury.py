"""Jury, order, resemblance and the coupling with a base equal an independent re-implementation."""

from __future__ import annotations

import numpy as np
import pytest

from appellate import JuryClassifier, PLCPClassifier, PLKNNClassifier, SUREClassifier
from appellate.datasets import make_partial_labels
from appellate.evidence.ambiguity import choose_tau, resemblance
from appellate.evidence.likelihood import Evidence
from appellate.evidence.order import choose_width, order_matrix
from appellate.methods.jury.members import KERNELS, draw_folds
from tests import literal_jury

SETTINGS = [
    (type(kernel).__name__.removesuffix("Kernel").lower(), kernel.root, kernel.bandwidth, ridge)
    for kernel, ridge in KERNELS
]


def make_problem(kind):
    """Small problems whose sets arose in four ways; the last labels of each are rare."""
    rng = np.random.RandomState(3)
    n, l = 90, 5
    if kind == "ages":
        truth = rng.randint(12, size=n)
        X = np.column_stack([truth, rng.normal(size=n)]) + 1.5 * rng.normal(size=(n, 2))
        low, high = rng.randint(3, size=(2, n))
        places = np.arange(12)
        sets = (places >= (truth - low)[:, None]) & (places <= (truth + high)[:, None])
        return X, sets, rng.normal(size=(7, 2)) + 5
    prior = 0.6 ** np.arange(l)
    truth = rng.choice(l, size=n, p=prior / prior.sum())
    X = 1.5 * rng.normal(size=(l, 4))[truth] + rng.normal(size=(n, 4))
    if kind == "bags":
        sets = np.zeros((n // 3, l), dtype=bool)
        sets[np.repeat(np.arange(n // 3), 3), truth] = True
        sets = np.repeat(sets, 3, axis=0)
    else:
        options = {"X": X} if kind == "instance_dependent" else {}
        sets = make_partial_labels(
            truth, strategy=kind, flip_probability=0.4, random_state=0, **options
        )
    return X, sets, rng.normal(size=(7, 4))


def fit_literally(X, sets, new, base=None):
    fold = draw_folds(len(X), 3, None, np.random.RandomState(0))
    return literal_jury.Jury(X, sets, fold, SETTINGS, new, base=base), fold


@pytest.mark.parametrize("kind", ["bags", "uniform", "instance_dependent", "ages"])
def test_light_jury_equals_the_literal_one(kind):
    X, sets, new = make_problem(kind)
    expected, _ = fit_literally(X, sets, new)
    jury = JuryClassifier("kernel", n_folds=3, random_state=0).fit(X, sets)
    assert jury.ambiguity_ == expected.tau
    assert jury.order_width_ == expected.width
    assert (jury.order_width_ > 0) == (kind == "ages")
    assert jury.resemblance_ == pytest.approx(expected.resemblance, abs=1e-8)
    found = [weight for name, weight, _ in jury.weights_ if not name.endswith("earlier")]
    np.testing.assert_allclose(np.array(found) / sum(found), expected.weights, atol=1e-8)
    assert (len(jury.weights_) > len(KERNELS)) == expected.earlier
    np.testing.assert_allclose(jury.training_output_, expected.output, atol=1e-8)
    np.testing.assert_allclose(jury.confidence_, expected.posterior, atol=1e-8)
    np.testing.assert_allclose(jury.predict_proba(new), expected.new, atol=1e-8)


@pytest.mark.parametrize("base", [SUREClassifier(), PLKNNClassifier()])
@pytest.mark.parametrize("kind", ["bags", "instance_dependent", "ages"])
def test_coupling_with_a_jury_equals_the_literal_one(kind, base):
    X, sets, new = make_problem(kind)
    fold = draw_folds(len(X), 3, None, np.random.RandomState(0))
    held = np.empty(sets.shape)
    for k in (1, 2, 3):
        base.fit(X[fold != k], sets[fold != k])
        held[fold == k] = base.decision_function(X[fold == k])
    base.fit(X, sets)
    expected, _ = fit_literally(X, sets, new, base=(held, base.decision_function(new)))
    jury = JuryClassifier("kernel", n_folds=3)
    coupled = PLCPClassifier(base, partner=jury, random_state=0).fit(X, sets)
    np.testing.assert_array_equal(coupled.verdict_, base.transduction_)
    assert coupled.ambiguity_ == expected.tau
    assert coupled.order_width_ == expected.width
    np.testing.assert_allclose(coupled.training_output_, expected.output, atol=1e-8)
    np.testing.assert_allclose(coupled.confidence_, expected.posterior, atol=1e-8)
    np.testing.assert_allclose(coupled.predict_proba(new), expected.new, atol=1e-8)
    name, weight, _ = coupled.weights_[len(KERNELS)]
    assert name == type(base).__name__
    assert weight * (1 + expected.earlier) == pytest.approx(expected.weights[-1], abs=1e-8)


@pytest.mark.parametrize("seed", range(20))
def test_resemblance_equals_the_areas_of_all_pairs(seed):
    rng = np.random.RandomState(seed)
    n, l = 150, 4
    H = rng.dirichlet(np.full(l, 0.2), size=n).round(2) + 1e-3  # with ties
    Y = rng.uniform(size=(n, l)) < 0.5
    Y[np.arange(n), H.argmax(axis=1)] = True
    expected = literal_jury.resemblance(H, Y)
    assert resemblance(H, Evidence.of_sets(Y)) == pytest.approx(expected, abs=1e-12)


def test_order_matrix_equals_the_literal_one():
    for width in (0, 1, 4):
        np.testing.assert_allclose(
            order_matrix(np.arange(9), width), literal_jury.order_matrix(9, width), atol=1e-14
        )


def test_choose_width_equals_the_literal_choice():
    rng = np.random.RandomState(0)
    age = rng.randint(10, size=120)
    Y = np.abs(np.arange(10) - age[:, None]) <= rng.randint(1, 3, size=120)[:, None]
    for noise in (0.3, 1.0, 3.0):
        near = -0.01 * (np.arange(10) - age[:, None]) ** 2
        scores = [near + noise * rng.normal(size=Y.shape) for _ in range(2)]
        found = choose_width(scores, Evidence.of_sets(Y), np.arange(10))
        assert found == literal_jury.order_width(scores, Y)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("A", [None, 0.5, 0.65, 0.66, 0.9])
def test_choose_tau_equals_the_literal_rule(A, ordered):
    rng = np.random.RandomState(0)
    for spread in (0.001, 0.01, 0.1):
        for _ in range(50):
            level = rng.uniform(-0.1, 1)
            B = {tau: (level + spread * rng.normal(size=3)).tolist() for tau in (0.0, 0.5, 1.0)}
            expected = literal_jury.choose_tau(B, A, ordered)
            assert choose_tau(B, A, ordered=ordered) == expected
