"""The graph methods with dense matrices and generic solvers, typed from their papers."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist, pdist, squareform

from tests.problems import solve_qp


def smoother(X, ridge):
    """Training-output map from the paper's formulas, A and b eliminated numerically."""
    n = len(X)
    K = np.exp(-(squareform(pdist(X)) ** 2) / (2 * pdist(X).mean() ** 2))
    inverse = np.linalg.inv(K / (2 * ridge) + np.eye(n) / 2)
    s = np.ones(n) @ inverse
    b = s[np.newaxis] / (s @ np.ones(n))  # b' = b @ P
    A = inverse @ (np.eye(n) - np.ones((n, 1)) @ b)
    return K @ A / (2 * ridge) + np.ones((n, 1)) @ b


def neighbors(X, k):
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    distances = cdist(unit, unit)
    np.fill_diagonal(distances, np.inf)
    return unit, np.argsort(distances, axis=1)[:, :k]


def graph(unit, P, near, feature_weight, confidence_weight):
    """Column by column QP of the reconstruction weights, as an (n, n) matrix."""
    n, k = near.shape
    W = np.zeros((n, n))
    for i, row in enumerate(near):
        Dx, Dp = unit[i] - unit[row], P[i] - P[row]
        G = feature_weight * Dx @ Dx.T + confidence_weight * Dp @ Dp.T
        G = G / np.trace(G) * k + 1e-8 * np.eye(k)
        W[i, row], _ = solve_qp(
            2 * G, np.zeros(k), np.ones((1, k)), [1.0], -np.eye(k), np.zeros(k)
        )
    return W


def propagate(W, candidates, target, fidelity):
    """The vectorised QP over all n l confidences."""
    n, l = candidates.shape
    T = 2 * (np.eye(n) - W).T @ (np.eye(n) - W)
    C = np.kron(np.eye(l), T)
    Y = candidates.T.ravel().astype(float)
    x, _ = solve_qp(
        C + 2 * fidelity * np.eye(n * l),
        -2 * fidelity * target.T.ravel(),
        np.hstack([np.eye(n)] * l),
        np.ones(n),
        np.vstack([-np.eye(n * l), np.eye(n * l)]),
        np.concatenate([np.zeros(n * l), Y]),
    )
    return x.reshape(l, n).T
