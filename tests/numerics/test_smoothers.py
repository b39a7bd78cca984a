"""The smoother against the paper's formulas, scikit-learn's ridge, and brute-force refits."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from appellate.numerics.blocks import ArrayBlocks
from appellate.numerics.entries import CandidateEntries
from appellate.numerics.kernels import Gaussian
from appellate.numerics.smoothers import (
    FeatureSmoother,
    KernelSmoother,
    LinearSmoother,
    Regressor,
    Smoother,
    leave_one_out,
)
from tests.problems import random_candidates, random_confidence

N, Q, LABELS, RIDGE = 40, 3, 6, 0.07


@pytest.fixture
def data():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(N, Q))
    return X, rng.normal(size=(9, Q)), rng.normal(size=(N, LABELS))


def smoothers(X) -> list[Smoother]:
    gaussian = Gaussian(1.3)
    return [
        KernelSmoother(gaussian(X, X), RIDGE, X, gaussian),
        LinearSmoother(X, RIDGE),
        FeatureSmoother(ArrayBlocks(X), RIDGE),
    ]


def regress(smoother, targets):
    """Regression on targets at every label: training output and model."""
    entries = CandidateEntries(np.ones(targets.shape, dtype=bool))
    return smoother.regress(entries, targets.ravel())


def output(smoother, targets):
    return regress(smoother, targets)[0]


def predict(smoother, X, targets):
    return regress(smoother, targets)[1].predict(X)


def paper_output(K, K_new, targets, ridge):
    """Eqs. KKT solution and kernel modeling output of the paper, typed literally."""
    n = len(K)
    inverse = np.linalg.inv(K / (2 * ridge) + np.eye(n) / 2)
    s = np.ones(n) @ inverse
    b = s @ targets / (s @ np.ones(n))
    A = inverse @ (targets - np.outer(np.ones(n), b))
    return K_new @ A / (2 * ridge) + b


def test_equals_the_papers_formulas(data):
    X, new, targets = data
    kernel = Gaussian(1.3)
    smoother = smoothers(X)[0]
    K = kernel(X, X)
    np.testing.assert_allclose(
        output(smoother, targets), paper_output(K, K, targets, RIDGE), atol=1e-10
    )
    np.testing.assert_allclose(
        predict(smoother, new, targets),
        paper_output(K, kernel(new, X), targets, RIDGE),
        atol=1e-10,
    )


@pytest.mark.parametrize("index", [1, 2])
def test_linear_smoothers_equal_sklearn_ridge(data, index):
    X, new, targets = data
    smoother, ridge = smoothers(X)[index], Ridge(alpha=RIDGE).fit(X, targets)
    np.testing.assert_allclose(output(smoother, targets), ridge.predict(X), atol=1e-9)
    np.testing.assert_allclose(predict(smoother, new, targets), ridge.predict(new), atol=1e-9)


@pytest.mark.parametrize("index", [0, 1, 2])
def test_leave_one_out_equals_refitting(data, index):
    X, _, targets = data
    smoother = smoothers(X)[index]
    closed_form = leave_one_out(output(smoother, targets), targets, smoother.diagonal)
    for i in range(N):
        others = np.arange(N) != i
        refitted = predict(smoothers(X[others])[index], X[[i]], targets[others])
        np.testing.assert_allclose(closed_form[[i]], refitted, atol=1e-9)


@pytest.mark.parametrize("index", [0, 1, 2])
def test_maps_ones_to_ones(data, index):
    smoother = smoothers(data[0])[index]
    np.testing.assert_allclose(output(smoother, np.ones((N, 1))), 1, atol=1e-10)
    identity = output(smoother, np.eye(N))
    np.testing.assert_allclose(identity, identity.T, atol=1e-10)
    np.testing.assert_allclose(smoother.diagonal, np.diag(identity), atol=1e-12)


@pytest.mark.parametrize("index", [0, 1, 2])
@pytest.mark.parametrize("rate", [0.0, 0.3, 0.9])
def test_candidate_map_equals_dense_product(data, index, rate):
    """Few candidates take the gathered blocks, many the matrix itself."""
    rng = np.random.RandomState(1)
    candidates = random_candidates(rng, N, LABELS, rate)
    confidence = random_confidence(rng, candidates)
    entries = CandidateEntries(candidates)
    smoother = smoothers(data[0])[index]
    apply = smoother.on_candidates(entries)
    expected = entries.gather(output(smoother, confidence))
    np.testing.assert_allclose(apply(entries.gather(confidence)), expected, atol=1e-13)


@pytest.mark.parametrize("index", [0, 2])
@pytest.mark.parametrize("complement", [False, True])
def test_targets_off_the_candidates_are_zero(data, index, complement):
    X, new, _ = data
    rng = np.random.RandomState(2)
    candidates = random_candidates(rng, N, LABELS)
    entries = CandidateEntries(candidates)
    dense = random_confidence(rng, candidates)
    smoother = smoothers(X)[index]
    out, model = smoother.regress(entries, entries.gather(dense), complement=complement)
    targets = 1 - dense if complement else dense
    np.testing.assert_allclose(out, output(smoother, dense), atol=1e-12)
    np.testing.assert_allclose(model.predict(new), predict(smoother, new, targets), atol=1e-12)


def test_the_smoothing_itself(data):
    smoother = smoothers(data[0])[0]
    smoothing = np.eye(N) - smoother.ridge * smoother.matrix
    np.testing.assert_allclose(smoothing @ data[2], output(smoother, data[2]), atol=1e-12)
    np.testing.assert_allclose(np.diag(smoothing), smoother.diagonal, atol=1e-15)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix, sp.csc_array])
@pytest.mark.parametrize("shape", [(40, 90), (90, 12)])
def test_sparse_rows_give_what_dense_ones_give(shape, kind, dtype, monkeypatch):
    """Wide ones are never dense, tall ones only a block at a time."""
    monkeypatch.setattr("appellate.numerics.blocks._BLOCK_ROWS", 17)
    rng = np.random.RandomState(0)
    X = ((rng.uniform(size=shape) < 0.2) * rng.uniform(size=shape)).astype(dtype)
    X[:, 3] += 2
    targets = rng.uniform(size=(shape[0], 3)).astype(dtype)
    expected = Ridge(alpha=RIDGE).fit(X.astype(float), targets).predict(X)
    if shape[0] < shape[1]:
        plain = kind.toarray

        def refuse(self, *arguments, **options):
            assert self.shape != shape
            return plain(self, *arguments, **options)

        monkeypatch.setattr(kind, "toarray", refuse, raising=False)
        smoother = LinearSmoother(kind(X), RIDGE)
    else:
        smoother = FeatureSmoother(ArrayBlocks(kind(X)), RIDGE)
    out, model = regress(smoother, targets)
    scores = model.predict(kind(X))
    assert (out.dtype, scores.dtype) == (dtype, dtype)
    atol = 1e-9 if dtype == np.float64 else 2e-4
    np.testing.assert_allclose(out, expected, atol=atol)
    np.testing.assert_allclose(scores, expected, atol=atol)
    np.testing.assert_allclose(model.predict(X), expected, atol=atol)


def test_sparse_rows_without_a_centre_and_with_a_kernel(data):
    X, new, _ = data
    coefficients, zero = np.eye(Q), np.zeros(Q)
    plain = Regressor(None, None, coefficients, zero)
    np.testing.assert_array_equal(plain.predict(sp.csr_array(new)), new)
    kernel = Regressor(Gaussian(1.0), X[:Q], coefficients, zero)
    np.testing.assert_array_equal(kernel.predict(sp.csr_array(new)), kernel.predict(new))


def test_numbers_whose_squares_overflow_are_an_error():
    for X in (np.full((4, 9), 1e160), np.full((9, 4), -1e300)):
        with pytest.raises(ValueError, match="scale the features"):
            LinearSmoother(X, RIDGE)
        with pytest.raises(ValueError, match="scale the features"):
            LinearSmoother(sp.csr_array(X), RIDGE)
        with pytest.raises(ValueError, match="scale the features"):
            FeatureSmoother(ArrayBlocks(X), RIDGE)


@pytest.mark.parametrize("scale", [1, 30, 1000])
def test_wide_linear_models_predict_what_they_output(scale):
    """Almost interpolating: training output and prediction agree in single precision."""
    rng = np.random.RandomState(0)
    X = scale * rng.normal(size=(50, 200)) + 10 * scale
    targets = rng.uniform(size=(50, 3))
    expected = Ridge(alpha=RIDGE).fit(X, targets).predict(X)
    for dtype, atol in ((np.float32, 2e-4), (np.float64, 1e-9)):
        smoother = LinearSmoother(X.astype(dtype), RIDGE)
        targets = targets.astype(dtype)
        np.testing.assert_allclose(output(smoother, targets), expected, atol=atol)
        np.testing.assert_allclose(
            predict(smoother, X.astype(dtype), targets), expected, atol=atol
        )


def test_a_small_ridge_keeps_its_digits(data):
    rng = np.random.RandomState(0)
    X, targets = rng.normal(size=(300, 20)), rng.uniform(size=(300, 3))
    X, targets = X.astype(np.float32), targets.astype(np.float32)
    kernel = Gaussian(6.0)
    smoother = KernelSmoother(kernel(X, X), np.float64(1e-4), X, kernel)
    out, model = regress(smoother, targets)
    assert out.dtype == np.float32
    np.testing.assert_allclose(model.predict(X), out, atol=5e-4)


@pytest.mark.parametrize("rate", [0.3, 0.9])
def test_nothing_outlives_its_last_use(data, rate):
    """Without waiting for the collector: an n x n matrix, or a file, may hang on it."""
    candidates = random_candidates(np.random.RandomState(1), N, LABELS, rate)
    entries = CandidateEntries(candidates)
    gc.disable()
    try:
        made = smoothers(data[0])
        gone = [weakref.ref(each) for each in made]
        maps = [each.on_candidates(entries) for each in made]
        del made
        assert len(maps) == 3
        assert [reference() for reference in gone] == [None] * 3
    finally:
        gc.enable()


def test_float32_is_kept(data):
    X, new, targets = (a.astype(np.float32) for a in data)
    for smoother, reference in zip(smoothers(X), smoothers(X.astype(float)), strict=True):
        assert output(smoother, targets).dtype == np.float32
        prediction = predict(smoother, new, targets)
        assert prediction.dtype == np.float32
        np.testing.assert_allclose(prediction, predict(reference, new, targets), atol=2e-3)


def test_matrix_is_built_in_place():
    X = np.random.RandomState(0).normal(size=(30, 2))
    gram = Gaussian(1.0)(X, X)
    assert np.shares_memory(KernelSmoother(gram, 0.1, X, Gaussian(1.0)).matrix, gram)


def test_more_rows_than_a_block():
    X = np.random.RandomState(0).normal(size=(1100, 2))
    kernel = Gaussian(0.5)
    K = kernel(X, X)
    targets = X**2
    smoother = KernelSmoother(kernel(X, X), 0.1, X, kernel)
    np.testing.assert_allclose(
        output(smoother, targets), paper_output(K, K, targets, 0.1), atol=1e-8
    )


def test_prediction_in_blocks(data, monkeypatch):
    X, new, targets = data
    smoother = smoothers(X)[0]
    whole = predict(smoother, new, targets)
    monkeypatch.setattr("appellate.numerics.smoothers._PREDICT_BYTES", 2 * N * 8)
    np.testing.assert_allclose(predict(smoother, new, targets), whole, rtol=1e-12)


def test_indefinite_matrix_is_an_error():
    X = np.zeros((2, 1))
    with pytest.raises(np.linalg.LinAlgError, match="larger regularization"):
        KernelSmoother(np.array([[0.0, 9.0], [9.0, 0.0]]), 0.1, X, None)
