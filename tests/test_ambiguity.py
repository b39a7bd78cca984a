"""PLCP with evidence: a literal retyping, Algorithm 1 where it should be, and what is gained."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from appellate import (
    AGGDClassifier,
    LALOClassifier,
    PartnerClassifier,
    PLCLClassifier,
    PLCPClassifier,
    PLKNNClassifier,
    PLSVMClassifier,
    SUREClassifier,
)
from appellate.evidence import Evidence, estep, fit_temperature
from tests.problems import random_candidates

BASES = [
    PLKNNClassifier(),
    PLSVMClassifier(random_state=0),
    SUREClassifier(),
    LALOClassifier(),
    AGGDClassifier(),
    PLCLClassifier(),
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


def literal(X, candidates, tau, rounds):
    """Section by section: base, division, partner, division, with dense matrices only."""
    evidence = Evidence.of_sets(candidates)

    def honest(model):
        scores = model.leave_one_out_decision()
        return softmax(scores / fit_temperature(scores, evidence, tau), axis=1)

    def divide(P):
        pi = P.mean(axis=0) + 1e-4
        Q = candidates * P * (pi / pi.sum()) ** -tau
        return Q / Q.sum(axis=1, keepdims=True)

    supervision = partner = None
    for _ in range(rounds):
        said = honest(SUREClassifier().fit(X, candidates, supervision=supervision))
        mixed = said if partner is None else (said + partner) / 2
        heard = PartnerClassifier().fit(X, candidates, supervision=divide(mixed))
        partner = honest(heard)
        supervision = divide((said + partner) / 2)
    return heard, evidence.entries.scatter(estep(partner, evidence, tau))


@pytest.mark.parametrize("tau", [0.0, 0.5, 1.0])
def test_equals_a_literal_retyping(data, tau):
    X, candidates, _ = data
    model = PLCPClassifier(SUREClassifier(), ambiguity=tau, max_rounds=3).fit(X, candidates)
    partner, posterior = literal(X, candidates, tau, 3)
    np.testing.assert_allclose(model.confidence_, posterior, atol=1e-6)
    np.testing.assert_allclose(model.decision_function(X), partner.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(model.transduction_, posterior.argmax(axis=1))
    assert model.ambiguity_ == tau


def test_label_first_is_algorithm_1(data):
    X, candidates, _ = data
    printed = PLCPClassifier(SUREClassifier()).fit(X, candidates)
    said = PLCPClassifier(SUREClassifier(), ambiguity="label-first").fit(X, candidates)
    np.testing.assert_array_equal(printed.training_output_, said.training_output_)
    assert printed.ambiguity_ is None


@pytest.mark.parametrize("base", BASES, ids=lambda base: type(base).__name__)
def test_sets_that_came_first_are_read_as_such(base):
    X, candidates, truth = bags()
    model = PLCPClassifier(base, ambiguity="auto", random_state=0).fit(X, candidates)
    plain = PLCPClassifier(base, random_state=0).fit(X, candidates)
    assert model.ambiguity_ == 1.0
    assert np.mean(model.transduction_ == truth) > np.mean(plain.transduction_ == truth) + 0.02
    assert np.isfinite(model.predict_proba(X)).all()


def test_auto_is_algorithm_1_where_nothing_speaks_against_it():
    """Features that say nothing: no E-step helps, so that the printed method is left alone."""
    rng = np.random.RandomState(0)
    X, candidates = rng.normal(size=(60, 3)), random_candidates(rng, 60, 4, 0.5)
    auto = PLCPClassifier(SUREClassifier(), ambiguity="auto", random_state=0).fit(X, candidates)
    printed = PLCPClassifier(SUREClassifier(), random_state=0).fit(X, candidates)
    assert auto.ambiguity_ is None
    np.testing.assert_array_equal(auto.training_output_, printed.training_output_)


def test_heads_probabilities_and_docket(data):
    X, candidates, truth = data
    model = PLCPClassifier(SUREClassifier(), ambiguity="set-first").fit(X, candidates)
    for head in ("partner", "base", "mean"):
        chances = model.set_params(head=head).predict_proba(X)
        np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-9)
        np.testing.assert_array_equal(chances.argmax(axis=1), model.predict(X))
    docket = model.docket(output="dict", truth=truth)
    np.testing.assert_array_equal(docket["appeal"], model.transduction_)
    one = candidates.sum(axis=1) == 1
    assert not model.overturned_[one].any()
    assert model.label_history_.shape == (6, 80)


def test_wrong_ambiguities_are_named(data):
    X, candidates, _ = data
    for wrong in ("sets", 1.5, None):
        with pytest.raises(ValueError, match="'ambiguity' parameter of PLCPClassifier"):
            PLCPClassifier(SUREClassifier(), ambiguity=wrong).fit(X, candidates)


def test_rounds_are_kept_and_ended_as_in_algorithm_1(data):
    X, candidates = data[:2]
    base, ways = SUREClassifier(), {"ambiguity": "set-first", "keep_confidences": True}
    model = PLCPClassifier(base, **ways).fit(X, candidates)
    np.testing.assert_allclose(model.history_[-1].partner_confidence, model.confidence_)
    for each in model.history_:
        np.testing.assert_allclose(each.base_confidence.sum(axis=1), 1)
        assert not (each.base_confidence[~candidates]).any()
    assert model.termination_condition_ == "max_rounds"
    assert model.n_iter_ == 5
    short = PLCPClassifier(base, tol=1.0, **ways).fit(X, candidates)
    assert short.termination_condition_ == "tol"
    assert short.n_iter_ == 2
