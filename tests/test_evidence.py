"""Evidence, criterion, E-step and weights against plain loops and a generic solver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar, root
from scipy.special import softmax

from appellate.evidence.ambiguity import choose_tau
from appellate.evidence.groups import Groups
from appellate.evidence.held_out import (
    above_chance,
    choose_round,
    criterion,
    row_criterion,
    suspicion,
)
from appellate.evidence.likelihood import Evidence, estep, label_shares, set_odds
from appellate.evidence.scales import fit_scale, fit_temperature, mixture_weights, soften
from appellate.numerics.entries import CandidateEntries
from tests.problems import random_candidates


def make(seed=0, n=60, l=5, sharpness=1.0):
    """Probabilities of every label, and candidate sets."""
    rng = np.random.RandomState(seed)
    candidates = random_candidates(rng, n, l)
    return soften(sharpness * rng.normal(size=(n, l)), 1.0), candidates, rng


def plain_odds(P, weights, tau):
    """``p(x | S) / p(x)``, row by row, from its formula."""
    pi = P.mean(axis=0) + 1e-4
    pi = pi / pi.sum()
    out = []
    for p, w in zip(P, weights, strict=True):
        inside = sum(w[j] * p[j] * pi[j] ** -tau for j in range(len(p)))
        out.append(inside / sum(w[j] * pi[j] ** (1 - tau) for j in range(len(p))))
    return np.array(out)


def plain_criterion(odds):
    """The largest value over e, which expectation-maximisation approaches from below."""
    found = minimize_scalar(
        lambda e: -np.mean(np.log((1 - e) * odds + e)), bounds=(0.001, 0.5), method="bounded"
    )
    return -found.fun


def plain_estep(P, weights, tau, steps):
    """The E-step with (n, l) matrices."""
    l = P.shape[1]
    Q = weights * P
    Q = Q / Q.sum(axis=1, keepdims=True)
    pi = Q.mean(axis=0) + 0.01 / l
    for _ in range(steps):
        Q = weights * P * pi**-tau
        Q = Q / Q.sum(axis=1, keepdims=True)
        pi = np.sqrt(pi * (Q.mean(axis=0) + 0.01 / l))
    return Q


@pytest.mark.parametrize("tau", [0.0, 0.5, 1.0, 0.3])
def test_odds_and_criterion(tau):
    P, candidates, rng = make()
    weights = candidates * rng.uniform(0.1, 1, size=candidates.shape)
    with np.errstate(divide="ignore"):
        evidence = Evidence.of_logs(np.log(weights))
    expected = plain_odds(P, weights, tau)
    np.testing.assert_allclose(set_odds(P, evidence, tau), expected, rtol=1e-12)
    assert criterion(P, evidence, tau) == pytest.approx(plain_criterion(expected), abs=1e-3)
    assert criterion(P, evidence, tau) <= plain_criterion(expected) + 1e-5


@pytest.mark.parametrize("tau", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("share", ["equal", "unequal"])
def test_no_information_proves_nothing(tau, share):
    _, candidates, _ = make(n=400)
    prior = np.full(5, 0.2) if share == "equal" else np.array([0.6, 0.2, 0.1, 0.06, 0.04])
    P = np.tile(prior, (400, 1))
    evidence = Evidence.of_sets(candidates)
    np.testing.assert_allclose(set_odds(P, evidence, tau), 1, rtol=2e-3)
    assert abs(criterion(P, evidence, tau)) < 1e-3
    assert not above_chance(row_criterion(P, evidence, tau), 2)


def test_a_constant_factor_of_a_row_says_nothing():
    P, candidates, rng = make()
    plain, scaled = (
        Evidence.of_sets(candidates).times(np.log(factor) + np.zeros((60, 5)))
        for factor in (np.ones((60, 1)), rng.uniform(1e-5, 1e5, size=(60, 1)))
    )
    for tau in (0.0, 1.0):
        assert criterion(P, scaled, tau) == pytest.approx(criterion(P, plain, tau), rel=1e-9)
        np.testing.assert_allclose(estep(P, scaled, tau), estep(P, plain, tau), rtol=1e-9)


@pytest.mark.parametrize("tau", [0.5, 1.0])
def test_estep_against_matrices(tau):
    P, candidates, rng = make()
    weights = candidates * rng.uniform(0.1, 1, size=candidates.shape)
    with np.errstate(divide="ignore"):
        evidence = Evidence.of_logs(np.log(weights))
    for steps in (1, 30):
        found = evidence.entries.scatter(estep(P, evidence, tau, steps=steps))
        np.testing.assert_allclose(found, plain_estep(P, weights, tau, steps), rtol=1e-9)
    at_candidates = estep(evidence.entries.gather(P), evidence, tau)
    np.testing.assert_array_equal(at_candidates, estep(P, evidence, tau))


@pytest.mark.parametrize("seed", range(5))
def test_thirty_steps_are_enough(seed):
    """Without the damping the labels of every other step differ."""
    P, candidates, _ = make(seed, n=300, l=8, sharpness=3.0)
    evidence = Evidence.of_sets(candidates)
    thirty, sixty = (estep(P, evidence, 1.0, steps=steps) for steps in (30, 60))
    np.testing.assert_allclose(thirty, sixty, atol=2e-3)
    labels = evidence.entries.argmax(thirty), evidence.entries.argmax(sixty)
    np.testing.assert_array_equal(*labels)


def test_set_first_sets_are_recognised():
    """Draw sets by either model: the criterion of the truth's posterior knows which it was."""
    rng = np.random.RandomState(0)
    prior, n = np.array([0.55, 0.25, 0.1, 0.06, 0.04]), 4000
    for way in (0.0, 1.0):
        if way:  # a set of three labels, then one of them at random
            candidates = np.zeros((n, 5), dtype=bool)
            for row in candidates:
                row[rng.choice(5, size=3, replace=False, p=prior)] = True
            truth = np.array([rng.choice(np.flatnonzero(row)) for row in candidates])
        else:
            truth = rng.choice(5, size=n, p=prior)
            candidates = rng.uniform(size=(n, 5)) < 0.4
            candidates[np.arange(n), truth] = True
        centres = 1.2 * np.eye(5)
        X = centres[truth] + rng.normal(size=(n, 5))
        likelihood = np.exp(-((X[:, None] - centres) ** 2).sum(axis=2) / 2)
        shares = np.bincount(truth, minlength=5) / n
        P = likelihood * shares
        P /= P.sum(axis=1, keepdims=True)
        evidence = Evidence.of_sets(candidates)
        values = {tau: [criterion(P, evidence, tau)] for tau in (0.0, 0.5, 1.0)}
        assert choose_tau(values) == way
        accuracy = {
            tau: np.mean(evidence.entries.argmax(estep(P, evidence, tau)) == truth)
            for tau in (0.0, 1.0)
        }
        assert accuracy[way] > accuracy[1 - way]


def test_temperature_is_the_best_on_a_fine_grid():
    rng = np.random.RandomState(0)
    truth = rng.randint(5, size=300)
    candidates = rng.uniform(size=(300, 5)) < 0.3
    candidates[np.arange(300), truth] = True
    evidence = Evidence.of_sets(candidates)
    scores = np.eye(5)[truth] + 0.5 * rng.normal(size=(300, 5))
    for scale in (0.3, 1.0, 3.0):
        found = fit_temperature(scale * scores, evidence, 0.0)
        grid = np.exp(np.linspace(np.log(0.01), np.log(10), 400))
        values = [criterion(soften(scale * scores, t), evidence, 0.0) for t in grid]
        assert criterion(soften(scale * scores, found), evidence, 0.0) >= max(values) - 1e-5


def test_weights_against_a_generic_solver():
    rng = np.random.RandomState(0)
    for _ in range(5):
        quality = rng.uniform(0, 2, size=4)
        odds = np.exp(quality * rng.normal(0.3, 1, size=(200, 4)))
        members = np.column_stack([np.ones(200), odds])
        solved = minimize(
            lambda w, members=members: -np.mean(np.log(members @ w)),
            np.full(5, 0.2),
            jac=lambda w, members=members: -np.mean(members / (members @ w)[:, None], axis=0),
            bounds=[(0, 1)] * 5,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 500},
        )
        weights = mixture_weights(odds)
        assert weights.sum() == pytest.approx(1)
        idle = solved.x[0]
        value = np.mean(np.log(members @ np.concatenate([[idle], (1 - idle) * weights])))
        assert value >= -solved.fun - 1e-4


def test_weights_of_members_that_know_nothing():
    np.testing.assert_allclose(mixture_weights(np.ones((10, 3))), 1 / 3)
    np.testing.assert_allclose(mixture_weights(np.zeros((10, 3))), 1 / 3)
    np.testing.assert_allclose(mixture_weights(np.full((4, 2), 1e-300)).sum(), 1)


def test_choose_round_takes_the_last_good_one():
    assert choose_round([0.5, 1.0, 0.97, 0.951, 0.94]) == 3
    assert choose_round([-0.2, -0.1]) == 1
    assert choose_round([0.0]) == 0


def test_suspicion_is_mass_outside():
    P, candidates, _ = make()
    found = suspicion(P, Evidence.of_sets(candidates))
    np.testing.assert_allclose(found, (P * ~candidates).sum(axis=1), atol=1e-12)


def test_kinds_of_evidence_multiply():
    P, candidates, rng = make()
    logs = rng.normal(size=candidates.shape)
    evidence = Evidence.of_sets(candidates).times(logs)
    expected = candidates * np.exp(logs) * P
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(evidence.entries.scatter(estep(P, evidence, 0.0)), expected)
    logs = evidence.logs()
    logs[[3, 7]] = -np.inf
    logs[[3, 7], [0, 4]] = 0
    decided = Evidence.of_logs(logs)
    posterior = decided.entries.scatter(estep(P, decided, 1.0))
    assert posterior[3, 0] == posterior[7, 4] == 1
    some = evidence.take(np.array([5, 2]))
    np.testing.assert_allclose(some.logs(), evidence.logs()[[5, 2]])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_impossible_evidence_names_the_row(value):
    logs = np.zeros((4, 2))
    logs[2] = value
    with pytest.raises(ValueError, match="row 2"):
        Evidence.of_logs(logs)


def test_covering_gives_every_label_a_row():
    rng = np.random.RandomState(0)
    entries = CandidateEntries(np.repeat([[True, True, True, False]], 5, axis=0))
    weak = rng.dirichlet([8, 1, 0.2], size=5)
    shares = entries.scatter(Groups(["a"] * 5, entries).cover(weak.ravel()))
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert weak.sum(axis=0).min() < 0.5
    assert shares.sum(axis=0)[:3].min() > 0.99


def test_groups_that_cannot_be_covered():
    entries = CandidateEntries(np.array([[True, True], [True, False], [True, True]]))
    with pytest.raises(ValueError, match="rows 0 and 1 are of one group"):
        Groups([1, 1, 2], entries)
    small = Groups([0, 1, 2], entries)  # a single row cannot have two labels
    values = np.array([0.9, 0.1, 1.0, 0.3, 0.7])
    np.testing.assert_array_equal(small.cover(values), values)


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 12),
    l=st.integers(1, 5),
    tau=st.sampled_from([0.0, 0.5, 1.0]),
    scale=st.sampled_from([0.0, 1.0, 1e3, 1e6]),
    kind=st.sampled_from(["random", "single", "full", "one label"]),
    seed=st.integers(0, 99),
)
def test_degenerate_sets(n, l, tau, scale, kind, seed):
    """Everything stays finite and on the simplex, whatever the sets and scores are."""
    rng = np.random.RandomState(seed)
    candidates = {
        "random": random_candidates(rng, n, l),
        "single": np.eye(l, dtype=bool)[rng.randint(l, size=n)],
        "full": np.ones((n, l), dtype=bool),
        "one label": np.eye(l, dtype=bool)[np.zeros(n, dtype=int)],
    }[kind]
    evidence = Evidence.of_sets(candidates)
    scores = scale * rng.normal(size=(n, l))
    temperature = fit_temperature(scores, evidence, tau)
    assert 0.01 <= temperature <= 10
    P = soften(scores, temperature)
    assert np.isfinite(criterion(P, evidence, tau))
    posterior = evidence.entries.scatter(estep(P, evidence, tau))
    assert not posterior[~candidates].any()
    np.testing.assert_allclose(posterior.sum(axis=1), 1)
    weights = mixture_weights(set_odds(P, evidence, tau)[:, None])
    np.testing.assert_allclose(weights, 1)
    if kind in ("single", "one label"):
        np.testing.assert_array_equal(posterior, candidates)
    if kind == "full":
        assert criterion(P, evidence, 0.0) < 1e-2


def test_shares_are_never_zero():
    shares = label_shares(np.array([[1.0, 0.0]]))
    assert shares.sum() == pytest.approx(1)
    assert shares.min() > 9e-5


def test_the_shift_gives_labels_their_share_of_what_was_learned():
    """Against a generic solver; half of it is taken label-first, none set-first."""
    rng = np.random.RandomState(0)
    scores = rng.normal(size=(300, 4)) + np.array([2.0, 1.0, 0.0, 0.0])
    shares = np.array([0.3, 0.3, 0.3, 0.1])
    evidence = Evidence.of_sets(random_candidates(rng, 300, 4, 0.5))
    scale = fit_scale(scores, evidence, 0.0, shares)
    heat = fit_temperature(scores, evidence, 0.0)
    assert scale.temperature == heat

    def gaps(free):
        shift = np.append(free, 0.0)
        return (softmax(scores / heat + shift, axis=1).mean(axis=0) - shares)[:3]

    wanted = np.append(root(gaps, np.zeros(3)).x, 0.0)
    found = 2 * scale.shift / heat
    np.testing.assert_allclose(found - found[3], wanted, atol=0.02)
    half = fit_scale(scores, evidence, 0.5, shares)
    assert 0 < np.ptp(half.shift / half.temperature) < np.ptp(scale.shift / heat)
    assert not np.any(fit_scale(scores, evidence, 1.0, shares).shift)
