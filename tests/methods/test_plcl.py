"""PL-CL against the formulas of the paper's supplement, typed literally, from both starts."""

from __future__ import annotations

import numpy as np
import pytest

from appellate import PLCLClassifier
from appellate.paper.authors import SupplementPLCL
from tests.literal import graph, neighbors, propagate, smoother
from tests.problems import random_candidates, random_confidence


@pytest.mark.parametrize(
    ("alpha1", "alpha2", "alpha3", "alpha4", "ridge"),
    [(0.5, 0.5, 1.0, 1.0, 0.03), (0.2, 0.9, 2.0, 0.4, 0.1)],
)
@pytest.mark.parametrize("kind", [PLCLClassifier, SupplementPLCL])
def test_equals_the_supplement(alpha1, alpha2, alpha3, alpha4, ridge, kind):
    rng = np.random.RandomState(0)
    X, candidates = rng.normal(size=(16, 6)), random_candidates(rng, 16, 4, 0.5)
    supervision = random_confidence(rng, candidates)
    Y_hat = 1.0 - candidates
    unit, near = neighbors(X, 5)
    S, S_hat = smoother(X, ridge), smoother(X, ridge / alpha1)
    P, P_hat = supervision, Y_hat
    if kind is SupplementPLCL:
        P_hat = Y_hat / np.maximum(Y_hat.sum(axis=1, keepdims=True), 1)
    for _ in range(3):
        H, H_hat = S @ P, S_hat @ P_hat
        P_hat = (alpha1 * H_hat + alpha2 * (1 - P)) / (alpha1 + alpha2)
        P_hat = np.minimum(1, np.maximum(Y_hat, P_hat))
        W = graph(unit, P, near, alpha3, alpha4)
        target = (H + alpha2 * (1 - P_hat)) / (1 + alpha2)
        P = propagate(W, candidates, target, (1 + alpha2) / alpha4)
    model = kind(
        n_neighbors=5,
        complementary_weight=alpha1,
        agreement=alpha2,
        feature_weight=alpha3,
        confidence_weight=alpha4,
        regularization=ridge,
        max_iter=3,
    ).fit(X, candidates, supervision=supervision)
    np.testing.assert_allclose(model.confidence_, P, atol=1e-4)
    np.testing.assert_allclose(model.training_output_, S @ P, atol=1e-4)
