"""Kernels and bandwidth against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist, pdist
from sklearn.base import clone

from appellate.numerics.kernels import (
    Gaussian,
    GaussianKernel,
    Laplacian,
    LaplacianKernel,
    LinearKernel,
    absolute_distances,
    check_magnitude,
    kernel_key,
    read_kernel,
    squared_distances,
)


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_mean_distance_over_pairs(shift):
    X = np.random.RandomState(0).normal(size=(700, 5))  # more rows than one block
    for unit, metric in ((Gaussian(1.0), "euclidean"), (Laplacian(1.0), "cityblock")):
        found = unit.mean_distance(unit.distances(X + shift))
        assert found == pytest.approx(pdist(X, metric).mean(), rel=1e-9)


@pytest.mark.parametrize("rows", [np.zeros((4, 2)), np.ones((1, 3))])
def test_mean_distance_of_coinciding_rows_is_one(rows):
    assert Gaussian(1.0).mean_distance(squared_distances(rows)) == 1.0
    assert Laplacian(1.0).mean_distance(absolute_distances(rows)) == 1.0


def test_gaussian_kernel():
    rng = np.random.RandomState(0)
    X, Y = rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
    expected = np.exp(-(cdist(X, Y) ** 2) / (2 * 1.7**2))
    np.testing.assert_allclose(Gaussian(1.7)(X, Y), expected, rtol=1e-12)


def test_laplacian_kernel_equals_its_definition():
    rng = np.random.RandomState(0)
    X, Y = rng.normal(size=(150, 3)), rng.normal(size=(70, 3))  # more rows than one tile
    expected = np.exp(-cdist(X, Y, "cityblock") / 1.7)
    np.testing.assert_allclose(Laplacian(1.7)(X, Y), expected, rtol=1e-12)


@pytest.mark.parametrize("kind", [Gaussian, Laplacian])
def test_root_compares_signed_square_roots(kind):
    rng = np.random.RandomState(0)
    X, Y = rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
    roots = [np.sign(each) * np.sqrt(np.abs(each)) for each in (X, Y)]
    np.testing.assert_allclose(kind(0.7, root=True)(X, Y), kind(0.7)(*roots), rtol=1e-12)


@pytest.mark.parametrize("kind", [Gaussian, Laplacian])
@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("mixed", [False, True])
def test_sparse_rows_have_the_distances_of_dense_rows(kind, root, mixed):
    rng = np.random.RandomState(0)
    X, Y = rng.normal(size=(2, 9, 4)) * (rng.uniform(size=(2, 9, 4)) < 0.5)
    kernel = kind(1.5, root)
    first = X if mixed else sp.csr_array(X)
    np.testing.assert_allclose(kernel(first, sp.csr_array(Y)), kernel(X, Y), atol=1e-12)
    np.testing.assert_allclose(kernel.distances(sp.csr_array(X)), kernel.distances(X), atol=1e-12)


@pytest.mark.parametrize("kind", [Gaussian, Laplacian])
def test_float32_is_kept(kind):
    X = np.random.RandomState(0).normal(size=(5, 2)).astype(np.float32)
    assert kind(1.0, root=True)(X, X).dtype == np.float32


def test_kernels_that_differ_have_different_keys():
    kernels = ["rbf", "laplacian", "linear", GaussianKernel(2.0), GaussianKernel(root=True)]
    assert len({kernel_key(each) for each in kernels}) == len(kernels)
    assert kernel_key("laplacian") == kernel_key(LaplacianKernel())


def test_words_are_short_for_kernels():
    assert vars(read_kernel("rbf")) == vars(GaussianKernel())
    assert vars(read_kernel("linear")) == vars(LinearKernel())
    assert isinstance(read_kernel("laplacian"), LaplacianKernel)
    given = GaussianKernel(2.0, "nystroem", 30)
    assert read_kernel(given) is given


def test_kernels_are_cloned_and_searched():
    kernel = clone(GaussianKernel(bandwidth=2.0)).set_params(n_landmarks=7)
    assert (kernel.bandwidth, kernel.n_landmarks) == (2.0, 7)


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        ("gauss", "kernel='gauss': it must be 'rbf', 'laplacian', 'linear'"),
        (["rbf"], r"kernel=\['rbf'\]: it must be"),
        (Gaussian(1.0), "it must be 'rbf'"),
        (GaussianKernel(0), "'bandwidth' parameter of GaussianKernel must be"),
        (GaussianKernel(np.nan), "bandwidth.* must be"),
        (GaussianKernel(np.inf), "bandwidth.* must be"),
        (GaussianKernel("wide"), "bandwidth.* must be"),
        (GaussianKernel(approximation="none"), "approximation.* must be a str among"),
        (GaussianKernel(n_landmarks=0), "n_landmarks.* must be an int in the range"),
        (GaussianKernel(n_landmarks=2.5), "n_landmarks.* must be"),
        (GaussianKernel(approximation="exact", n_landmarks=5), "n_landmarks is for Nystroem"),
        (GaussianKernel(approximation="exact", cache_dir="."), "cache_dir is for Nystroem"),
        (GaussianKernel(cache_dir=7), "cache_dir.* must be"),
        (LaplacianKernel(-1.0), "'bandwidth' parameter of LaplacianKernel must be"),
        (LinearKernel(cache_dir=7), "cache_dir.* must be"),
    ],
)
def test_what_is_wrong_with_a_kernel_is_named(kernel, said):
    with pytest.raises(ValueError, match=said):
        read_kernel(kernel)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_passes_has_finite_distances(dtype):
    largest = float(np.finfo(dtype).max) ** 0.5
    for factor, fits in ((0.05, True), (0.2, False), (1.0, False)):
        X = largest * factor * np.array([[1, -1, 1], [-1, 1, -1]], dtype=dtype)
        for rows in (X, sp.csr_array(X)):
            if fits:
                check_magnitude(rows)
                assert np.isfinite(squared_distances(X)).all()
            else:
                with pytest.raises(ValueError, match="scale the features"):
                    check_magnitude(rows)


def test_no_number_is_too_large_for_an_error():
    for value in (1e160, 1e300, 1.7e308):
        with pytest.raises(ValueError, match="scale the features, for instance by StandardScaler"):
            squared_distances(np.array([[value], [-value], [0.0]]))


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_absolute_distances_of_rows_with_themselves_are_symmetric(n, dtype):
    """Only half of them are computed."""
    X = np.random.default_rng(0).normal(size=(n, 7)).astype(dtype)
    found = absolute_distances(X)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(found, absolute_distances(X, X.copy()))
    expected = np.abs(X[:, np.newaxis] - X).sum(axis=2, dtype=np.float64)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
