"""PLCP with a jury as partner: what is gained, what is refused, and that nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags

from appellate import (
    AGGDClassifier,
    GaussianKernel,
    JuryClassifier,
    LALOClassifier,
    PLCLClassifier,
    PLCPClassifier,
    PLKNNClassifier,
    PLSVMClassifier,
    SoftLabelClassifier,
    SUREClassifier,
)
from appellate.io import load_model, save_model
from tests.problems import random_candidates

BASES = [
    PLKNNClassifier(),
    PLSVMClassifier(random_state=0),
    SUREClassifier(),
    LALOClassifier(),
    AGGDClassifier(),
    PLCLClassifier(),
    SoftLabelClassifier(LogisticRegression(), random_state=0),
]


@pytest.fixture(scope="module")
def data():
    rng = np.random.RandomState(0)
    truth = rng.randint(4, size=80)
    X = rng.normal(size=(4, 3))[truth] * 1.5 + rng.normal(size=(80, 3))
    candidates = random_candidates(rng, 80, 4, 0.3)
    candidates[np.arange(80), truth] = True
    return X, candidates, truth


def bags(n_bags=120, seed=0):
    """Scenes: three rows share the union of their labels, some labels are frequent."""
    rng = np.random.RandomState(seed)
    shares = np.array([0.5, 0.2, 0.1, 0.1, 0.05, 0.05])
    truth = rng.choice(6, size=(n_bags, 3), p=shares)
    X = 1.2 * rng.normal(size=(6, 4))[truth] + rng.normal(size=(n_bags, 3, 4))
    sets = np.zeros((n_bags, 6), dtype=bool)
    for row, labels in zip(sets, truth, strict=True):
        row[labels] = True
    return X.reshape(-1, 4), sets.repeat(3, axis=0), truth.ravel()


@pytest.mark.parametrize("base", BASES, ids=lambda base: type(base).__name__)
def test_every_base_gains_on_set_first_data(base):
    X, candidates, truth = bags()
    train, test = np.arange(300), np.arange(300, 360)
    coupled = PLCPClassifier(base, partner="jury", random_state=0)
    coupled.fit(X[train], candidates[train])
    alone = clone(base).fit(X[train], candidates[train])
    assert coupled.ambiguity_ > 0
    np.testing.assert_array_equal(coupled.verdict_, alone.transduction_)
    gain = np.mean(coupled.transduction_ == truth[train]) - np.mean(
        alone.transduction_ == truth[train]
    )
    assert gain > 0.02
    assert coupled.score(X[test], truth[test]) >= alone.score(X[test], truth[test])


def test_a_base_that_knows_nothing_gets_no_weight(data):
    X, candidates, _ = data
    noise = np.random.RandomState(0).normal(size=(80, 3))

    class Noise(SUREClassifier):
        """Learns from columns that have nothing to do with the labels."""

        def _solve(self, problem, start):
            blind = problem.take(np.arange(problem.n_rows))
            blind.matrix = blind.X = noise[: problem.n_rows]
            return super()._solve(blind, start)

    coupled = PLCPClassifier(Noise(), partner="jury", random_state=0).fit(X, candidates)
    light = JuryClassifier("kernel", random_state=0).fit(X, candidates)
    weight = next(weight for name, weight, _ in coupled.weights_ if name == "Noise")
    assert weight < 0.05
    assert np.mean(coupled.transduction_ == light.transduction_) > 0.97


def test_a_base_that_knows_more_than_the_kernels_is_followed():
    """One of 101 columns tells the label, and only the base knows which."""
    rng = np.random.RandomState(0)
    truth = rng.randint(3, size=200)
    X = np.hstack([4.0 * truth[:, None], 4 * rng.normal(size=(200, 100))])
    candidates = random_candidates(rng, 200, 3, 0.4)
    candidates[np.arange(200), truth] = True

    forest = RandomForestClassifier(10, max_features=0.5, min_samples_leaf=2)
    base = SoftLabelClassifier(forest, n_rounds=2, n_folds=3, random_state=0)
    coupled = PLCPClassifier(base, partner="jury", random_state=0).fit(X, candidates)
    light = JuryClassifier("kernel", random_state=0).fit(X, candidates)
    weight = next(weight for name, weight, _ in coupled.weights_ if name == type(base).__name__)
    assert weight > 0.3
    right = np.mean(coupled.transduction_ == truth)
    assert right > np.mean(light.transduction_ == truth)


def test_heads_probabilities_docket_and_history(data):
    X, candidates, truth = data
    base = SUREClassifier()
    model = PLCPClassifier(base, partner="jury", random_state=0).fit(X, candidates)
    alone = clone(base).fit(X, candidates)
    for head in ("partner", "base", "mean"):
        chances = model.set_params(head=head).predict_proba(X)
        np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-9)
        np.testing.assert_array_equal(chances.argmax(axis=1), model.predict(X))
    np.testing.assert_allclose(
        model.set_params(head="base").predict_proba(X), alone.predict_proba(X)
    )
    docket = model.docket(output="dict", truth=truth)
    np.testing.assert_array_equal(docket["first_label"], alone.transduction_)
    np.testing.assert_array_equal(docket["label"], model.transduction_)
    assert not model.overturned_[candidates.sum(axis=1) == 1].any()
    assert len(model.history_) == model.n_iter_ == len(model.label_history_) - 1
    assert isinstance(model.partner_, JuryClassifier)
    np.testing.assert_allclose(
        model.partner_.predict_proba(X), model.set_params(head="partner").predict_proba(X)
    )


def test_a_jury_with_settings_is_a_partner(data):
    X, candidates, _ = data
    jury = JuryClassifier("kernel", ambiguity="set-first", n_folds=3, order=None)
    model = PLCPClassifier(SUREClassifier(), partner=jury, random_state=0).fit(X, candidates)
    assert model.ambiguity_ == 1.0
    assert not hasattr(jury, "classes_")
    assert clone(model).set_params(partner__n_folds=4).partner.n_folds == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"partner": "friend"}, "'partner' parameter of PLCPClassifier"),
        ({"smoothing": 0.3}, "smoothing=0.3 belongs to Algorithm 1"),
        ({"kernel": "linear"}, "kernel='linear' belongs to Algorithm 1"),
        ({"partner": JuryClassifier("kernel", cost="absolute")}, "cost of its own"),
    ],
)
def test_what_does_not_fit_a_jury_is_refused(data, options, message):
    X, candidates, _ = data
    with pytest.raises(ValueError, match=message):
        PLCPClassifier(SUREClassifier(), **{"partner": "jury"} | options).fit(X, candidates)


def test_a_foreign_base_without_probabilities_is_refused(data):
    class Foreign:
        def fit(self, X, candidates, supervision=None):
            self.training_output_ = candidates / candidates.sum(axis=1, keepdims=True)
            return self

    with pytest.raises(TypeError, match="no predict_proba, which a jury as partner needs"):
        PLCPClassifier(Foreign(), partner="jury").fit(data[0], data[1])


@pytest.mark.parametrize(
    "base",
    [
        SUREClassifier(kernel="linear"),
        PLKNNClassifier(),
        SoftLabelClassifier(LogisticRegression(), random_state=0),
    ],
    ids=lambda base: type(base).__name__,
)
@pytest.mark.parametrize("landmarks", [None, 40])
def test_sparse_rows_give_what_dense_rows_give(data, base, landmarks, tmp_path):
    X, candidates, _ = data
    X = np.where(np.abs(X) > 0.8, X, 0.0)
    way = "exact" if landmarks is None else "nystroem"
    kernel = GaussianKernel(approximation=way, n_landmarks=landmarks)
    jury = JuryClassifier("kernel", kernel=kernel, n_folds=3, max_rounds=3)
    model = PLCPClassifier(base, partner=jury, random_state=0)
    assert get_tags(model).input_tags.sparse
    dense = clone(model).fit(X, candidates)
    sparse = clone(model).fit(sp.csr_array(X), candidates)
    same = load_model(save_model(sparse, tmp_path / "model"))
    np.testing.assert_allclose(sparse.confidence_, dense.confidence_, atol=1e-8)
    np.testing.assert_array_equal(sparse.transduction_, dense.transduction_)
    for head in ("partner", "base", "mean"):
        expected = dense.set_params(head=head).predict_proba(X)
        for rows in (X, sp.csr_array(X)):
            for fitted in (sparse, same):
                found = fitted.set_params(head=head).predict_proba(rows)
                np.testing.assert_allclose(found, expected, atol=1e-8)


def test_a_base_that_needs_dense_rows_refuses_sparse_rows(data):
    X, candidates, _ = data
    model = PLCPClassifier(AGGDClassifier(), partner="jury")
    assert not get_tags(model).input_tags.sparse
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        model.fit(sp.csr_array(X), candidates)


def test_supervision_and_cost_are_followed(data):
    X, candidates, _ = data
    start = candidates / candidates.sum(axis=1, keepdims=True)
    one, two = (
        PLCPClassifier(SUREClassifier(), partner="jury", random_state=0).fit(X, candidates, **more)
        for more in ({}, {"supervision": start})
    )
    np.testing.assert_allclose(one.confidence_, two.confidence_, atol=1e-6)
    cost = np.ones((4, 4)) - np.eye(4)
    cost[:, 0] = 0.01  # saying 0 is nearly free
    cheap = PLCPClassifier(SUREClassifier(), partner="jury", cost=cost, random_state=0)
    cheap.fit(X, candidates)
    unsure = candidates[:, 0] & (cheap.confidence_.max(axis=1) < 0.98)
    assert unsure.sum() > 2
    assert (cheap.transduction_[unsure] == 0).all()
