"""CLPL against a generic quadratic-program solver, and its slope against differences."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import approx_fprime
from scipy.spatial.distance import pdist, squareform
from sklearn.exceptions import ConvergenceWarning

from appellate import CLPLClassifier, GaussianKernel
from appellate.methods.clpl import convex_loss
from tests.problems import random_candidates, random_confidence, solve_qp


@pytest.fixture
def data():
    rng = np.random.RandomState(0)
    return rng.normal(size=(20, 3)), random_candidates(rng, 20, 4)


def literal(features, candidates, weights, ridge):
    """Minimum and scores of the paper's problem, as a quadratic program with slacks.

    Variables: W (r, l), b (l), and a slack for every row's mean and every other label.
    """
    (n, r), l = features.shape, candidates.shape[1]
    columns = (r + 1) * l
    lines = []
    for i in range(n):
        with_bias = np.append(features[i], 1)
        lines.append(np.kron(with_bias, weights[i]))  # the mean must reach 1
        for j in np.flatnonzero(~candidates[i]):
            lines.append(np.kron(with_bias, -np.eye(l)[j]))
    A, m = np.array(lines), len(lines)
    quadratic = np.diag(np.r_[np.full(r * l, 2 * ridge), np.zeros(l), np.full(m, 2.0)])
    inequality = np.block([[-A, -np.eye(m)], [np.zeros((m, columns)), -np.eye(m)]])
    x, value = solve_qp(
        quadratic,
        np.zeros(columns + m),
        np.empty((0, columns + m)),
        np.empty(0),
        inequality,
        np.r_[-np.ones(m), np.zeros(m)],
    )
    model = x[:columns].reshape(r + 1, l)
    return value, features @ model[:-1] + model[-1]


@pytest.mark.parametrize("ridge", [0.03, 1.0])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "sparse"])
def test_equals_a_quadratic_program(data, kernel, ridge):
    X, candidates = data
    weights = random_confidence(np.random.RandomState(1), candidates)
    if kernel == "rbf":
        K = np.exp(-(squareform(pdist(X)) ** 2) / (2 * pdist(X).mean() ** 2))
        features, rows = np.linalg.cholesky(K + 1e-6 * np.eye(20)), X
    else:
        moved = X - X.mean(axis=0) if kernel == "linear" else X
        features = moved / np.sqrt((moved**2).sum(axis=1).mean())
        rows = sp.csr_array(X) if kernel == "sparse" else X
    value, scores = literal(features, candidates, weights, ridge)
    model = CLPLClassifier(
        kernel="linear" if kernel == "sparse" else kernel, regularization=ridge, tol=1e-9
    ).fit(rows, candidates, supervision=weights)
    assert model.objective_ == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(model.training_output_, (1 + scores) / 2, atol=1e-3)
    np.testing.assert_allclose(model.decision_function(rows), (1 + scores) / 2, atol=2e-3)


def test_slope_equals_differences(data):
    _, candidates = data
    rng = np.random.RandomState(2)
    scores, weights = rng.normal(size=candidates.shape), random_confidence(rng, candidates)
    slope = convex_loss(scores, weights, ~candidates)[1]
    numeric = approx_fprime(
        scores.ravel(), lambda s: convex_loss(s.reshape(scores.shape), weights, ~candidates)[0]
    )
    np.testing.assert_allclose(slope.ravel(), numeric, atol=1e-5)


def test_all_landmarks_equal_the_kernel(data):
    X, candidates = data
    exact = CLPLClassifier().fit(X, candidates)
    all_rows = GaussianKernel(approximation="nystroem", n_landmarks=20)
    near = CLPLClassifier(kernel=all_rows).fit(X, candidates)
    np.testing.assert_allclose(near.decision_function(X), exact.decision_function(X), atol=1e-3)


def test_too_few_steps_are_said(data):
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        CLPLClassifier(max_iter=2).fit(*data)
