"""Kernels and bandwidth against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist

from appellate.numerics.kernels import (
    GaussianKernel,
    LinearKernel,
    mean_distance,
    squared_distances,
)


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_mean_distance_over_pairs(shift):
    X = np.random.RandomState(0).normal(size=(700, 5))  # more rows than one block
    expected = pdist(X).mean()
    assert mean_distance(squared_distances(X + shift)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("rows", [np.zeros((4, 2)), np.ones((1, 3))])
def test_mean_distance_of_coinciding_rows_is_one(rows):
    assert mean_distance(squared_distances(rows)) == 1.0


def test_gaussian_kernel():
    rng = np.random.RandomState(0)
    X, Y = rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
    expected = np.exp(-(cdist(X, Y) ** 2) / (2 * 1.7**2))
    np.testing.assert_allclose(GaussianKernel(1.7)(X, Y), expected, rtol=1e-12)


def test_linear_kernel():
    X = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(LinearKernel()(X, X), X @ X.T)


def test_float32_is_kept():
    X = np.random.RandomState(0).normal(size=(5, 2)).astype(np.float32)
    assert GaussianKernel(1.0)(X, X).dtype == np.float32
