"""PL-SVM against its pseudo-code and, where the problem is convex, a generic optimiser."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from appellate import GaussianKernel
from appellate.evidence.confidence import blur, initial_confidence
from appellate.methods.svm import MarginModel, PLSVMClassifier
from tests.problems import random_candidates, solve_qp


@pytest.fixture
def data():
    rng = np.random.RandomState(0)
    return rng.normal(size=(40, 3)), random_candidates(rng, 40, 5), rng.normal(size=(9, 3))


def gaussian(X, Y, bandwidth=1.0):
    squared = ((X[:, None] - Y[None]) ** 2).sum(axis=2)
    return np.exp(-squared / (2 * (bandwidth * pdist(Y).mean()) ** 2))


def literal_pegasos(K, candidates, regularization, n_epochs, seed):
    """The loop as it is written, ``F = K A`` computed anew in every step.

    Ties go to the label that the first rows have: the class before the others in the order of
    the columns read as binary numbers, from the largest down.
    """
    n, l = candidates.shape
    digits = ["".join("1" if c else "0" for c in column) for column in candidates.T]
    preference = sorted(range(l), key=lambda j: digits[j], reverse=True)
    rng, A, t = np.random.RandomState(seed), np.zeros((n, l)), 0
    for _ in range(n_epochs):
        for i in rng.permutation(n):
            t += 1
            F = K[i] @ A
            inside = [j for j in preference if candidates[i, j]]
            outside = [j for j in preference if not candidates[i, j]]
            if not outside:
                continue
            a, b = max(inside, key=lambda j: F[j]), max(outside, key=lambda j: F[j])
            if (F[a] - F[b]) / (regularization * t) < 1:
                A[i, a] += 1
                A[i, b] -= 1
    return A / (regularization * t)


@pytest.mark.parametrize("regularization", [1e-3, 0.05])
@pytest.mark.parametrize("bandwidth", [0.5, 1.0])
def test_equals_the_pseudo_code(data, regularization, bandwidth):
    X, candidates, new = data
    candidates[3] = True  # every label a candidate: no step is ever taken
    coefficients = literal_pegasos(
        gaussian(X, X, bandwidth), candidates, regularization, n_epochs=6, seed=7
    )
    model = PLSVMClassifier(
        regularization=regularization, kernel=GaussianKernel(bandwidth), n_epochs=6, random_state=7
    ).fit(X, candidates)
    steps = regularization * 6 * len(X)
    np.testing.assert_array_equal(
        np.rint(model._model.regressor.coefficients * steps), np.rint(coefficients * steps)
    )
    np.testing.assert_allclose(
        model.decision_function(new), gaussian(new, X, bandwidth) @ coefficients, atol=1e-9
    )
    margins = gaussian(X, X, bandwidth) @ coefficients
    np.testing.assert_allclose(model.training_output_, margins, atol=1e-9)
    np.testing.assert_array_equal(
        model.transduction_, np.where(candidates, margins, -np.inf).argmax(axis=1)
    )
    assert not coefficients[3].any()
    assert coefficients.any()
    assert model.n_iter_ == 6


def test_linear_is_the_linear_kernel(data):
    X, candidates, new = data
    coefficients = literal_pegasos(X @ X.T, candidates, 0.01, n_epochs=5, seed=3)
    model = PLSVMClassifier(kernel="linear", regularization=0.01, n_epochs=5, random_state=3)
    model.fit(X, candidates)
    np.testing.assert_allclose(model._model.regressor.coefficients, X.T @ coefficients, atol=1e-9)
    np.testing.assert_allclose(
        model.decision_function(new), new @ X.T @ coefficients, rtol=1e-9, atol=1e-9
    )


def hinge_optimum(features, labels, l, regularization):
    """Smallest lambda/2 |W|^2 + mean hinge, as a QP in W and one slack a row."""
    n, q = features.shape
    P = np.zeros((q * l + n, q * l + n))
    P[: q * l, : q * l] = regularization * np.eye(q * l)
    cost = np.concatenate([np.zeros(q * l), np.full(n, 1 / n)])
    rows = []
    for i, label in enumerate(labels):
        for other in set(range(l)) - {label}:  # 1 - <W_label - W_other, x> <= slack
            row = np.zeros((l, q))
            row[label], row[other] = -features[i], features[i]
            rows.append(np.concatenate([row.ravel(), -np.eye(n)[i]]))
    positive = np.hstack([np.zeros((n, q * l)), -np.eye(n)])
    bounds = np.concatenate([np.full(len(rows), -1.0), np.zeros(n)])
    _, value = solve_qp(
        P, cost, np.zeros((0, q * l + n)), [], np.vstack([rows, positive]), bounds, tol=1e-10
    )
    return value


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_approaches_the_optimum_of_the_convex_case(kernel):
    """With one candidate a row the problem is the multi-class hinge loss."""
    rng = np.random.RandomState(1)
    n, l, regularization = 30, 3, 0.05
    X = rng.normal(size=(n, 2))
    labels = (np.arctan2(*X.T) // 2.1 + 2).astype(int) % l
    labels[:4] = rng.randint(l, size=4)
    K = gaussian(X, X) if kernel == "rbf" else X @ X.T
    root = np.linalg.cholesky(K + 1e-12 * np.eye(n)) if kernel == "rbf" else X
    optimum = hinge_optimum(root, labels, l, regularization)

    def objective(n_epochs):
        model = PLSVMClassifier(
            kernel=kernel, regularization=regularization, n_epochs=n_epochs, random_state=0
        ).fit(X, np.eye(l, dtype=bool)[labels])
        W = model._model.regressor.coefficients
        norm = np.sum(W * (K @ W)) if kernel == "rbf" else np.sum(W**2)
        F = model.training_output_
        rival = np.where(np.eye(l, dtype=bool)[labels], -np.inf, F).max(axis=1)
        losses = np.maximum(0, 1 - (F[np.arange(n), labels] - rival))
        return regularization / 2 * norm + losses.mean()

    few, many = objective(3), objective(1000)
    assert optimum - 1e-6 <= many < 1.02 * optimum
    assert few > many


def test_supervision_reduces_the_candidate_sets(data):
    X, candidates, new = data
    supervision = blur(np.random.RandomState(1).uniform(size=candidates.shape), candidates, 2.0)
    reduced = candidates & (supervision >= initial_confidence(candidates) - 1e-12)
    assert reduced.sum() < candidates.sum()
    supervised = PLSVMClassifier(random_state=0).fit(X, candidates, supervision=supervision)
    plain = PLSVMClassifier(random_state=0).fit(X, reduced)
    np.testing.assert_array_equal(supervised.decision_function(new), plain.decision_function(new))
    np.testing.assert_array_equal(supervised.candidates_, candidates)
    labels = supervised.transduction_
    assert candidates[np.arange(len(X)), labels].all()


def test_one_hot_output_has_the_margins_order(data):
    X, candidates, new = data
    margin = PLSVMClassifier(random_state=0).fit(X, candidates)
    one_hot = PLSVMClassifier(random_state=0, output="one-hot").fit(X, candidates)
    winners = np.eye(5)[margin.training_output_.argmax(axis=1)]
    np.testing.assert_array_equal(one_hot.training_output_, winners)
    np.testing.assert_array_equal(one_hot.transduction_, margin.transduction_)
    np.testing.assert_array_equal(one_hot.confidence_, margin.confidence_)
    np.testing.assert_array_equal(one_hot.predict_proba(new), margin.predict_proba(new))
    assert one_hot.n_ties_ == 0


def test_confidence_is_the_nearest_point_of_the_simplex(data):
    X, candidates, _ = data
    model = PLSVMClassifier(random_state=0).fit(X, candidates)
    for i in (0, 1, 2):
        m = candidates[i].sum()
        margins = model.training_output_[i, candidates[i]]
        point, _ = solve_qp(np.eye(m), -margins, np.ones((1, m)), [1], -np.eye(m), np.zeros(m))
        np.testing.assert_allclose(model.confidence_[i, candidates[i]], point, atol=1e-6)


def test_probabilities_keep_the_order_of_all_margins(data):
    X, candidates, new = data
    model = PLSVMClassifier(random_state=0).fit(X, candidates)
    scores, probabilities = model.decision_function(new), model.predict_proba(new)
    np.testing.assert_array_equal(scores.argsort(axis=1), probabilities.argsort(axis=1))
    assert ((probabilities > 0) & (probabilities < 1)).all()


@pytest.mark.parametrize("l", [1, 2, 5, 500])
def test_a_full_margin_is_nearly_certain_among_any_number_of_labels(l):
    ahead = np.eye(l)[:1]
    probability = MarginModel(None, None).probabilities(ahead)[0, 0]
    assert probability == pytest.approx(0.99 if l > 1 else 1)


def test_random_state_orders_the_visits(data):
    X, candidates, new = data
    one, same, other, free = (
        PLSVMClassifier(random_state=seed).fit(X, candidates).decision_function(new)
        for seed in (0, 0, 1, None)
    )
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 1e-6
    assert np.abs(one - free).max() > 1e-6
    generator = np.random.RandomState(0)
    twice = [PLSVMClassifier(random_state=generator).fit(X, candidates) for _ in range(2)]
    np.testing.assert_array_equal(twice[0].decision_function(new), one)
    assert np.abs(twice[1].decision_function(new) - one).max() > 1e-6


def test_class_names_do_not_matter(data):
    """Also where everything ties: in the first step, and for features without content."""
    X, candidates, new = data
    order = np.array([3, 0, 4, 1, 2])
    for features in (X, np.ones_like(X)):
        plain = PLSVMClassifier(random_state=0).fit(features, candidates)
        permuted = PLSVMClassifier(random_state=0).fit(features, candidates[:, order])
        np.testing.assert_allclose(
            permuted.decision_function(new), plain.decision_function(new)[:, order], atol=1e-12
        )


@pytest.mark.parametrize(("kernel", "matrices"), [("rbf", 1.5), ("linear", 0.1)])
def test_memory(kernel, matrices):
    """One n x n matrix for the Gaussian kernel, none for the linear one."""
    rng = np.random.RandomState(0)
    X, candidates = rng.normal(size=(2000, 3)), random_candidates(rng, 2000, 4)
    model = PLSVMClassifier(n_epochs=1, kernel=kernel)
    model.fit(X[:50], candidates[:50])  # compiles
    tracemalloc.start()
    model.fit(X, candidates)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < matrices * 8 * len(X) ** 2


def test_rows_in_single_precision_are_not_copied(monkeypatch):
    monkeypatch.setattr("appellate.numerics.blocks._BLOCK_ROWS", 128)
    rng = np.random.RandomState(0)
    X = rng.normal(size=(5000, 400)).astype(np.float32)
    candidates, model = random_candidates(rng, 5000, 4), PLSVMClassifier(n_epochs=1)
    model.set_params(kernel="linear").fit(X[:50], candidates[:50])  # compiles
    tracemalloc.start()
    model.fit(X, candidates)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.5 * X.nbytes
