"""The partner against a generic convex solver of the paper's literal problem, and its theory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform
from sklearn.exceptions import ConvergenceWarning

from appellate import PartnerClassifier
from appellate.evidence.confidence import blur
from appellate.experiments.controls import CandidatePartner
from tests.literal import smoother
from tests.problems import random_candidates, random_confidence, solve_qp


def make_problem(seed, n=14, n_labels=4):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 3))
    candidates = random_candidates(rng, n, n_labels)
    return X, candidates, blur(random_confidence(rng, candidates), candidates)


def gaussian_gram(X):
    return np.exp(-(squareform(pdist(X)) ** 2) / (2 * pdist(X).mean() ** 2))


def literal_partner(K, candidates, supervision, ridge, gamma, target="C"):
    """Eq. partner classifier in its kernel form, all of W, b, C at once, by Clarabel.

    W = Phi' A, so |W|^2 = tr(A'KA) and the output is K A + 1 b'. Variables: A, b, C for each
    label, stacked. With target "L" the ablation's partner: L in place of C.
    """
    n, l = candidates.shape
    size = n + 1 + n
    eye, one = np.eye(n), np.ones((n, 1))
    fit = np.hstack([K, one, -eye])  # residual of one label
    P = np.zeros((l * size, l * size))
    q = np.zeros(l * size)
    for j in range(l):
        part = slice(j * size, (j + 1) * size)
        P[part, part] = 2 * fit.T @ fit
        P[part, part][:n, :n] += 2 * ridge * K
        sign = 1 if target == "C" else -1  # tr(O C') or tr(O (1 - L)')
        q[j * size + n + 1 : (j + 1) * size] = sign * gamma * supervision[:, j]
    select = np.zeros((n * l, l * size))
    for j in range(l):
        select[j * n : (j + 1) * n, j * size + n + 1 : (j + 1) * size] = eye
    row_sums = np.hstack([eye] * l) @ select
    Y = candidates.T.ravel().astype(float)
    lower, upper = (1 - Y, np.ones(n * l)) if target == "C" else (np.zeros(n * l), Y)
    total = l - 1 if target == "C" else 1
    x, _ = solve_qp(
        P,
        q,
        row_sums,
        np.full(n, float(total)),
        np.vstack([-select, select]),
        np.concatenate([-lower, upper]),
    )
    blocks = x.reshape(l, size)
    A, b, C = blocks[:, :n].T, blocks[:, n], blocks[:, n + 1 :].T
    return C, K @ A + b


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("gamma", [0.5, 2.0])
def test_equals_generic_solver_of_the_literal_problem(seed, gamma):
    X, candidates, supervision = make_problem(seed)
    C, output = literal_partner(gaussian_gram(X), candidates, supervision, 0.05, gamma)
    model = PartnerClassifier(collaboration=gamma, tol=1e-12, max_iter=200_000)
    model.fit(X, candidates, supervision=supervision)
    np.testing.assert_allclose(1 - model.confidence_, C, atol=1e-6)
    np.testing.assert_allclose(1 - model.training_output_, output, atol=1e-6)


def test_linear_partner_equals_generic_solver():
    X, candidates, supervision = make_problem(5)
    C, output = literal_partner(X @ X.T, candidates, supervision, 0.05, 2.0)
    model = PartnerClassifier(kernel="linear", tol=1e-12, max_iter=200_000)
    model.fit(X, candidates, supervision=supervision)
    np.testing.assert_allclose(1 - model.confidence_, C, atol=1e-5)
    np.testing.assert_allclose(1 - model.training_output_, output, atol=1e-5)


def test_aggressive_link_equals_generic_solver():
    """Min tr(D'(I - S)D) + gamma |O - D|^2 over the candidate simplices."""
    X, candidates, supervision = make_problem(6)
    gamma, ridge = 2.0, 0.05
    n, l = candidates.shape
    inverse = np.linalg.inv(gaussian_gram(X) + ridge * np.eye(n))
    v = inverse.sum(axis=1)
    A = ridge * (inverse - np.outer(v, v) / v.sum()) + gamma * np.eye(n)
    P = np.kron(np.eye(l), 2 * A)
    q = -2 * gamma * supervision.T.ravel()
    Y = candidates.T.ravel().astype(float)
    D, _ = solve_qp(
        P,
        q,
        np.hstack([np.eye(n)] * l),
        np.ones(n),
        np.vstack([-np.eye(n * l), np.eye(n * l)]),
        np.concatenate([np.zeros(n * l), Y]),
    )
    model = PartnerClassifier(link="aggressive", tol=1e-12)
    model.fit(X, candidates, supervision=supervision)
    np.testing.assert_allclose(model.confidence_, D.reshape(l, n).T, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_candidate_and_non_candidate_partner_are_one_problem(seed):
    X, candidates, supervision = make_problem(seed, n=40, n_labels=6)
    new = np.random.RandomState(9).normal(size=(20, 3))
    partners = [
        kind().fit(X, candidates, supervision=supervision)
        for kind in (PartnerClassifier, CandidatePartner)
    ]
    for name in ("confidence_", "training_output_"):
        first, second = (getattr(partner, name) for partner in partners)
        np.testing.assert_allclose(first, second, atol=1e-10)
    scores = [partner.decision_function(new) for partner in partners]
    np.testing.assert_allclose(*scores, atol=1e-10)


def test_literal_problems_of_partners_p_and_o_agree():
    """The identity also holds between the two problems as the paper writes them."""
    X, candidates, supervision = make_problem(1)
    K = gaussian_gram(X)
    C, _ = literal_partner(K, candidates, supervision, 0.05, 2.0, "C")
    L, _ = literal_partner(K, candidates, supervision, 0.05, 2.0, "L")
    np.testing.assert_allclose(C, 1 - L, atol=1e-6)


@given(st.integers(0, 1000))
def test_zero_hot_as_collaboration_grows(seed):
    """Sec. 4.3: C becomes zero exactly where the supervision is largest."""
    X, candidates, supervision = make_problem(seed, n=10)
    model = PartnerClassifier(collaboration=1e9).fit(X, candidates, supervision=supervision)
    expected = np.eye(candidates.shape[1])[supervision.argmax(axis=1)]
    np.testing.assert_allclose(model.confidence_, expected, atol=1e-6)


def test_objective_decreases_and_is_recorded():
    X, candidates, supervision = make_problem(2, n=60)
    model = PartnerClassifier().fit(X, candidates, supervision=supervision)
    assert len(model.objective_) == model.n_iter_ + 1 > 5
    assert (np.diff(model.objective_) <= 1e-12 * np.abs(model.objective_[0])).all()
    D = model.confidence_
    final = np.sum(D * (D - model.training_output_)) - 2.0 * np.sum(supervision * D)
    assert model.objective_[-1] == pytest.approx(final, rel=1e-9)


def test_one_step_is_one_alternation_of_the_paper():
    X, candidates, supervision = make_problem(3)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = PartnerClassifier(max_iter=1).fit(X, candidates, supervision=supervision)
    from appellate.numerics.entries import CandidateEntries
    from appellate.numerics.simplex import project_entries

    S = smoother(X, 0.05)
    entries = CandidateEntries(candidates)
    step = project_entries(entries.gather(S @ supervision + supervision), entries)
    np.testing.assert_allclose(model.confidence_, entries.scatter(step), atol=1e-12)


def test_without_a_base_the_supervision_is_uniform():
    X, candidates, _ = make_problem(4)
    uniform = candidates / candidates.sum(axis=1, keepdims=True)
    alone = PartnerClassifier().fit(X, candidates)
    told = PartnerClassifier().fit(X, candidates, supervision=uniform)
    np.testing.assert_allclose(alone.confidence_, told.confidence_, atol=1e-12)
