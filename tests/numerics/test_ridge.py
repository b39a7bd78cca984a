"""The smoother against the paper's formulas, scikit-learn's ridge, and brute-force refits."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from appellate.numerics.entries import CandidateEntries
from appellate.numerics.geometry import Geometry
from appellate.numerics.kernels import GaussianKernel, LinearKernel
from appellate.numerics.lowrank import FeatureSmoother
from appellate.numerics.ridge import KernelSmoother, LinearSmoother, Smoother
from appellate.numerics.rows import ArrayRows
from tests.problems import random_candidates, random_confidence

N, Q, LABELS, RIDGE = 40, 3, 6, 0.07


@pytest.fixture
def data():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(N, Q))
    return X, rng.normal(size=(9, Q)), rng.normal(size=(N, LABELS))


def smoothers(X) -> list[Smoother]:
    gaussian, linear = GaussianKernel(1.3), LinearKernel()
    return [
        KernelSmoother(gaussian(X, X), RIDGE, X, gaussian),
        KernelSmoother(linear(X, X), RIDGE, X, linear),
        FeatureSmoother(ArrayRows(X), RIDGE),
    ]


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
    kernel = GaussianKernel(1.3)
    smoother = smoothers(X)[0]
    K = kernel(X, X)
    np.testing.assert_allclose(
        smoother.training_output(targets), paper_output(K, K, targets, RIDGE), atol=1e-10
    )
    np.testing.assert_allclose(
        smoother.predict(new, targets), paper_output(K, kernel(new, X), targets, RIDGE), atol=1e-10
    )


@pytest.mark.parametrize("index", [1, 2])
def test_linear_smoothers_equal_sklearn_ridge(data, index):
    X, new, targets = data
    smoother, ridge = smoothers(X)[index], Ridge(alpha=RIDGE).fit(X, targets)
    np.testing.assert_allclose(smoother.training_output(targets), ridge.predict(X), atol=1e-9)
    np.testing.assert_allclose(smoother.predict(new, targets), ridge.predict(new), atol=1e-9)


@pytest.mark.parametrize("index", [0, 1, 2])
def test_leave_one_out_equals_refitting(data, index):
    X, _, targets = data
    closed_form = smoothers(X)[index].leave_one_out(targets)
    for i in range(N):
        others = np.arange(N) != i
        refitted = smoothers(X[others])[index].predict(X[[i]], targets[others])
        np.testing.assert_allclose(closed_form[[i]], refitted, atol=1e-9)


@pytest.mark.parametrize("index", [0, 1, 2])
def test_maps_ones_to_ones(data, index):
    smoother = smoothers(data[0])[index]
    np.testing.assert_allclose(smoother.training_output(np.ones((N, 1))), 1, atol=1e-10)
    identity = smoother.training_output(np.eye(N))
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
    expected = entries.gather(smoother.training_output(confidence))
    np.testing.assert_allclose(apply(entries.gather(confidence)), expected, atol=1e-13)
    assert smoother.on_candidates(entries) is apply


@pytest.mark.parametrize("index", [0, 2])
def test_sparse_targets(data, index):
    X, new, _ = data
    rng = np.random.RandomState(2)
    candidates = random_candidates(rng, N, LABELS)
    entries = CandidateEntries(candidates)
    dense = random_confidence(rng, candidates)
    sparse = entries.to_sparse(entries.gather(dense))
    smoother = smoothers(X)[index]
    for method in (smoother.training_output, smoother.leave_one_out):
        np.testing.assert_allclose(method(sparse), method(dense), atol=1e-12)
    np.testing.assert_allclose(
        smoother.predict(new, sparse), smoother.predict(new, dense), atol=1e-12
    )


@pytest.mark.parametrize("scale", [1, 30, 1000])
def test_wide_linear_models_predict_what_they_output(scale):
    """Almost interpolating: training output and prediction agree in single precision."""
    rng = np.random.RandomState(0)
    X = scale * rng.normal(size=(50, 200)) + 10 * scale
    targets = rng.uniform(size=(50, 3))
    expected = Ridge(alpha=RIDGE).fit(X, targets).predict(X)
    for dtype, atol in ((np.float32, 2e-4), (np.float64, 1e-9)):
        smoother = Geometry(X.astype(dtype)).smoother("linear", 1.0, RIDGE)
        assert isinstance(smoother, LinearSmoother)
        targets = targets.astype(dtype)
        np.testing.assert_allclose(smoother.training_output(targets), expected, atol=atol)
        np.testing.assert_allclose(smoother.predict(X.astype(dtype), targets), expected, atol=atol)


def test_a_small_ridge_keeps_its_digits(data):
    rng = np.random.RandomState(0)
    X, targets = rng.normal(size=(300, 20)), rng.uniform(size=(300, 3))
    X, targets = X.astype(np.float32), targets.astype(np.float32)
    smoother = Geometry(X).smoother("rbf", 1.0, np.float64(1e-4))
    output = smoother.training_output(targets)
    assert output.dtype == np.float32
    np.testing.assert_allclose(smoother.predict(X, targets), output, atol=5e-4)


@pytest.mark.parametrize("rate", [0.3, 0.9])
def test_nothing_outlives_its_last_use(data, rate):
    """Without waiting for the collector: an n x n matrix, or a file, may hang on it."""
    candidates = random_candidates(np.random.RandomState(1), N, LABELS, rate)
    entries = CandidateEntries(candidates)
    gc.disable()
    try:
        made = smoothers(data[0])
        gone = [weakref.ref(each) for each in made]
        for each in made:
            each.on_candidates(entries)
        del each, made
        assert [reference() for reference in gone] == [None] * 3
    finally:
        gc.enable()


def test_float32_is_kept(data):
    X, new, targets = (a.astype(np.float32) for a in data)
    for smoother, reference in zip(smoothers(X), smoothers(X.astype(float)), strict=True):
        assert smoother.training_output(targets).dtype == np.float32
        prediction = smoother.predict(new, targets)
        assert prediction.dtype == np.float32
        np.testing.assert_allclose(prediction, reference.predict(new, targets), atol=2e-3)


def test_matrix_is_built_in_place():
    X = np.random.RandomState(0).normal(size=(30, 2))
    gram = GaussianKernel(1.0)(X, X)
    assert np.shares_memory(KernelSmoother(gram, 0.1, X, GaussianKernel(1.0)).matrix, gram)


def test_more_rows_than_a_block():
    X = np.random.RandomState(0).normal(size=(1100, 2))
    kernel = GaussianKernel(0.5)
    K = kernel(X, X)
    targets = X**2
    smoother = KernelSmoother(kernel(X, X), 0.1, X, kernel)
    np.testing.assert_allclose(
        smoother.training_output(targets), paper_output(K, K, targets, 0.1), atol=1e-8
    )


def test_prediction_in_blocks(data, monkeypatch):
    X, new, targets = data
    smoother = smoothers(X)[0]
    whole = smoother.predict(new, targets)
    monkeypatch.setattr("appellate.numerics.ridge._PREDICT_BYTES", 2 * N * 8)
    np.testing.assert_allclose(smoother.predict(new, targets), whole, rtol=1e-12)


def test_indefinite_matrix_is_an_error():
    X = np.zeros((2, 1))
    with pytest.raises(np.linalg.LinAlgError, match="larger regularization"):
        KernelSmoother(np.array([[0.0, 9.0], [9.0, 0.0]]), 0.1, X, LinearKernel())


def test_leave_one_out_needs_two_rows():
    with pytest.raises(ValueError, match="at least two rows"):
        FeatureSmoother(ArrayRows(np.ones((1, 1))), 0.1).leave_one_out(np.ones((1, 2)))


def test_geometry_keeps_a_gram_that_is_asked_for():
    X = np.random.RandomState(0).normal(size=(20, 3))
    geometry = Geometry(X)
    kernel, gram = geometry.gram("rbf", 2.0)
    before = gram.copy()
    np.testing.assert_array_equal(gram, kernel(X, X))
    shared = geometry.smoother("rbf", 2.0, 0.1)
    np.testing.assert_array_equal(geometry.gram("rbf", 2.0)[1], before)
    alone = Geometry(X).smoother("rbf", 2.0, 0.1)
    np.testing.assert_allclose(shared.matrix, alone.matrix, atol=1e-14)


def test_geometry_shares_and_chooses():
    X = np.random.RandomState(0).normal(size=(20, 3))
    geometry = Geometry(X)
    assert geometry.smoother("rbf", 1.0, 0.1) is geometry.smoother("rbf", 1.0, 0.1)
    assert geometry.smoother("rbf", 1.0, 0.1) is not geometry.smoother("rbf", 2.0, 0.1)
    assert geometry.smoother("linear", 1.0, 0.1) is geometry.smoother("linear", 2.0, 0.1)
    assert isinstance(geometry.smoother("linear", 1.0, 0.1), FeatureSmoother)
    assert isinstance(Geometry(X[:3]).smoother("linear", 1.0, 0.1), KernelSmoother)
    assert geometry.neighbors(50)[1].shape == (20, 19)
    assert geometry.neighbors(50)[0] is geometry.neighbors(19)[0]
    assert Geometry(X[:1]).neighbors(3)[1].shape == (1, 0)
