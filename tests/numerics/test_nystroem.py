"""Nystroem smoothers against dense formulas on scikit-learn's features, and the exact kernel."""

from __future__ import annotations

import os

import numpy as np
import pytest
from sklearn.kernel_approximation import Nystroem

from appellate.numerics import blocks as blocks_module
from appellate.numerics.blocks import ArrayBlocks, StoredBlocks
from appellate.numerics.entries import CandidateEntries
from appellate.numerics.kernels import Gaussian, GaussianKernel, LaplacianKernel
from appellate.numerics.passes import moments, turn
from appellate.numerics.smoothers import (
    FeatureSmoother,
    KernelSmoother,
    LinearSmoother,
    NystroemSmoother,
    choose_landmarks,
    nystroem_basis,
)
from tests.numerics.test_smoothers import output, predict
from tests.problems import random_candidates, random_confidence

N, Q, LABELS, RIDGE, WIDTH = 120, 4, 6, 0.07, 2.0


@pytest.fixture
def X():
    return np.random.RandomState(0).normal(size=(N, Q))


def dense_smoother(features):
    """The hat matrix of ridge regression with a free bias, typed literally."""
    centred = features - features.mean(axis=0)
    hat = centred @ np.linalg.inv(centred.T @ centred + RIDGE * np.eye(centred.shape[1]))
    return hat @ centred.T + 1 / len(features)


def sklearn_features(X, landmarks):
    model = Nystroem(gamma=1 / (2 * WIDTH**2), n_components=len(landmarks), random_state=0)
    return model.fit(landmarks), model.transform(X)


def make(X, landmarks, **options):
    kernel = Gaussian(WIDTH)
    basis = nystroem_basis(ArrayBlocks(X), landmarks, kernel, **options)
    return NystroemSmoother(basis, RIDGE, X.dtype)


@pytest.mark.parametrize("block", [1, 7, 4096])
def test_equals_the_dense_formula_on_sklearns_features(X, block, monkeypatch):
    monkeypatch.setattr(blocks_module, "_BLOCK_ROWS", block)
    monkeypatch.setattr("appellate.numerics.smoothers._BATCH_BYTES", 8 * Q * 5)
    monkeypatch.setattr(blocks_module, "_BLOCK_BYTES", 4 * 30 * block)
    landmarks = X[::4]
    S = dense_smoother(sklearn_features(X, landmarks)[1])
    smoother = make(X, landmarks)
    np.testing.assert_allclose(output(smoother, np.eye(N)), S, atol=2e-6)
    np.testing.assert_allclose(smoother.diagonal, np.diag(S), atol=2e-6)


def test_prediction_is_ridge_on_sklearns_features(X):
    from sklearn.linear_model import Ridge

    landmarks, targets = X[::4], np.random.RandomState(1).normal(size=(N, 3))
    new = np.random.RandomState(2).normal(size=(9, Q))
    model, F = sklearn_features(X, landmarks)
    expected = Ridge(alpha=RIDGE).fit(F, targets).predict(model.transform(new))
    np.testing.assert_allclose(predict(make(X, landmarks), new, targets), expected, atol=1e-4)


def test_all_rows_as_landmarks_are_the_exact_kernel(X):
    landmarks, sample = choose_landmarks(ArrayBlocks(X), 10 * N)  # fewer rows than landmarks
    entries = CandidateEntries(random_candidates(np.random.RandomState(3), N, LABELS))
    values, new = entries.uniform(), np.random.RandomState(4).normal(size=(9, Q))
    np.testing.assert_array_equal(sample, X)
    for setting, ridge in [
        (GaussianKernel(1.0), 0.05),
        (GaussianKernel(1.0), 0.5),
        (GaussianKernel(0.3), 0.05),
        (LaplacianKernel(1.0), 0.05),
        (LaplacianKernel(1.0, root=True), 0.05),
    ]:
        kernel = setting.at(setting.unit.mean_distance(setting.unit.distances(sample)))
        a = KernelSmoother(kernel(X, X), ridge, X, kernel)
        b = NystroemSmoother(nystroem_basis(ArrayBlocks(X), landmarks, kernel), ridge, X.dtype)
        np.testing.assert_allclose(
            b.on_candidates(entries)(values), a.on_candidates(entries)(values), atol=5e-6
        )
        for complement in (False, True):
            out, regressor = a.regress(entries, values, complement=complement)
            near, close = b.regress(entries, values, complement=complement)
            np.testing.assert_allclose(near, out, atol=5e-6)
            np.testing.assert_allclose(close.predict(new), regressor.predict(new), atol=5e-5)


@pytest.mark.parametrize("n_landmarks", [30, N - 1, N])
def test_the_basis_has_the_kernel_of_the_features(X, n_landmarks):
    """Also its constant part, which no centred feature shows where all rows are landmarks."""
    basis = make(X, X[:n_landmarks]).basis
    features = basis.features.toarray() + basis.offset
    K_nm = Gaussian(WIDTH)(X, X[:n_landmarks])
    expected = K_nm @ np.linalg.solve(K_nm[:n_landmarks], K_nm.T)
    found = features * basis.strengths @ features.T + basis.common
    np.testing.assert_allclose(found, expected, atol=5e-6)
    values = Gaussian(WIDTH)(X, basis.landmarks)
    np.testing.assert_allclose(values @ basis.rest, basis.common, atol=1e-7)
    assert (basis.common > 1e-3) is (n_landmarks == N)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("rate", [0.0, 0.3, 0.9])
def test_candidate_map_equals_the_dense_product(X, dtype, on_disk, rate, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks_module, "_BLOCK_BYTES", 4 * 30 * 17)
    rng = np.random.RandomState(1)
    candidates = random_candidates(rng, N, LABELS, rate)
    candidates[:, 3] = False  # a label that is never a candidate
    candidates[~candidates.any(axis=1), 0] = True
    confidence = random_confidence(rng, candidates).astype(dtype)
    entries = CandidateEntries(candidates)
    smoother = make(X.astype(dtype), X[::4].copy(), cache_dir=tmp_path if on_disk else None)
    out = smoother.on_candidates(entries)(entries.gather(confidence))
    assert out.dtype == dtype
    expected = entries.gather(output(smoother, confidence))
    np.testing.assert_allclose(out, expected, atol=3e-6)
    found, _ = smoother.regress(entries, entries.gather(confidence))
    assert found.dtype == dtype
    np.testing.assert_allclose(found, output(smoother, confidence), atol=3e-6)


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("width", [5, 3, 0])
def test_features_turn_in_their_place(width, on_disk, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks_module, "_BLOCK_BYTES", 4 * 5 * 7)  # seven rows a block
    rng = np.random.RandomState(0)
    F = rng.normal(size=(N, 5))
    vectors, offset = rng.normal(size=(5, width)), rng.normal(size=width)
    features = StoredBlocks(F.shape, np.float32, tmp_path if on_disk else None)
    features.write(0, F)
    total, gram = moments(features)
    np.testing.assert_allclose(total, F.sum(axis=0), atol=1e-5)
    np.testing.assert_allclose(gram, F.T @ F, atol=1e-4)
    turn(features, vectors, offset)
    assert features.shape == (N, width)
    np.testing.assert_allclose(
        np.concatenate(list(features.blocks())), F @ vectors - offset, atol=1e-5
    )


def test_duplicate_landmarks_change_nothing(X):
    landmarks = X[:20]
    twice = make(X, np.concatenate([landmarks, landmarks[:7]]))
    once = make(X, landmarks)
    assert twice.features.shape == once.features.shape
    np.testing.assert_allclose(output(twice, np.eye(N)), output(once, np.eye(N)), atol=2e-6)


def test_rows_that_all_coincide():
    X = np.ones((30, 2))
    landmarks, _ = choose_landmarks(ArrayBlocks(X), 5)
    basis = nystroem_basis(ArrayBlocks(X), landmarks, Gaussian(1.0))
    targets = np.random.RandomState(0).uniform(size=(30, 3))
    out = output(NystroemSmoother(basis, 0.1, X.dtype), targets)
    np.testing.assert_allclose(out, np.tile(targets.mean(axis=0), (30, 1)), atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n_features", "offset", "scale"),
    [(Q, 0, 1), (Q, 1e4, 1), (Q, 0, 1e6), (Q, 0, 1e-6), (N + 5, 0, 1), (N + 5, 1e4, 1)],
)
def test_linear_models_keep_their_digits(dtype, n_features, offset, scale, tmp_path):
    """Against scikit-learn in double precision on centred features."""
    from sklearn.linear_model import Ridge

    rng = np.random.RandomState(0)
    X = rng.normal(size=(N, n_features))
    X[:, 0] *= scale
    X, targets = (X + offset).astype(dtype), rng.normal(size=(N, 3))
    exact = X.astype(np.float64)
    ridge = Ridge(alpha=RIDGE).fit(exact - exact.mean(axis=0), targets)
    expected = ridge.predict(exact - exact.mean(axis=0))
    makers = [lambda: LinearSmoother(X, RIDGE)]
    if n_features < N:
        makers = [lambda: FeatureSmoother(ArrayBlocks(X), RIDGE)]
        makers.append(lambda: FeatureSmoother(ArrayBlocks(X), RIDGE, tmp_path))
    for maker in makers:
        smoother = maker()
        tolerance = 1e-3 if dtype == np.float32 else 1e-6
        np.testing.assert_allclose(output(smoother, targets), expected, atol=tolerance)
        np.testing.assert_allclose(predict(smoother, X, targets), expected, atol=tolerance)


def test_collinear_columns_of_any_size(X):
    for scale in (1e-8, 1.0, 1e8):
        twice = FeatureSmoother(ArrayBlocks(np.c_[X, X, np.ones(N)] * scale), RIDGE * scale**2)
        once = FeatureSmoother(ArrayBlocks(X * np.sqrt(2) * scale), RIDGE * scale**2)
        np.testing.assert_allclose(twice.diagonal, once.diagonal, atol=1e-6)
    hard = FeatureSmoother(ArrayBlocks(np.c_[X, X] * 1e8), 1e-9)
    np.testing.assert_allclose(hard.diagonal.sum(), Q + 1, atol=1e-3)


def test_landmarks_are_rows_and_the_same_every_time():
    X = np.random.RandomState(0).normal(size=(5000, 2))
    landmarks, sample = choose_landmarks(ArrayBlocks(X), 50)
    again, _ = choose_landmarks(ArrayBlocks(X.astype(np.float32)), 50)
    assert len(np.unique(landmarks, axis=0)) == 50
    np.testing.assert_allclose(landmarks, again, atol=1e-6)
    gaps = np.abs(landmarks[:, None] - X[None, :]).sum(axis=2).min(axis=1)
    assert gaps.max() == 0
    from scipy.spatial.distance import pdist

    assert abs(pdist(sample).mean() / pdist(X).mean() - 1) < 0.02


def test_the_file_of_features_has_no_name(tmp_path):
    stored = StoredBlocks((10, 3), np.float32, tmp_path)
    block = np.random.RandomState(0).normal(size=(10, 3)).astype(np.float32)
    stored.write(4, block[4:])
    stored.write(0, block[:4])
    np.testing.assert_array_equal(stored.read(slice(2, 9)), block[2:9])
    np.testing.assert_array_equal(stored.take(np.array([1, 7])), block[[1, 7]])
    np.testing.assert_array_equal(np.asarray(stored), block)
    assert os.listdir(tmp_path) == []


def test_a_folder_without_room(tmp_path):
    with pytest.raises(OSError, match=r"has .* GB free, but the features take 4000000.0 GB"):
        StoredBlocks((10**9, 10**6), np.float32, tmp_path)
