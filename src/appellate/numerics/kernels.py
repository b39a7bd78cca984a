"""Gaussian and linear kernels, and the width that the paper takes from the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import gen_batches

_BLOCK_ROWS = 512


def squared_distances(X: NDArray[Any], Y: NDArray[Any] | None = None) -> NDArray[Any]:
    """Squared Euclidean distances, (n, m), between rows shifted to the mean of `Y`.

    The shift changes no distance but keeps digits when features are far from zero.
    """
    centre = (X if Y is None else Y).mean(axis=0)
    shifted = X - centre
    distances: NDArray[Any] = euclidean_distances(
        shifted, None if Y is None else Y - centre, squared=True
    )
    return distances


def mean_distance(squared: NDArray[Any]) -> float:
    """Mean Euclidean distance over all pairs i < j of rows, from their squared distances.

    One when all rows coincide (or there is only one): any width gives the same kernel then.

    Examples
    --------
    >>> import numpy as np
    >>> mean_distance(squared_distances(np.array([[0.0], [3.0], [6.0]])))
    4.0
    """
    n = len(squared)
    total = sum(float(np.sqrt(squared[rows]).sum()) for rows in gen_batches(n, _BLOCK_ROWS))
    if not np.isfinite(total):
        raise ValueError(
            f"distances between rows are too large for {squared.dtype}: scale the features, for "
            "instance by StandardScaler."
        )
    return total / (n * (n - 1)) if total > 0 else 1.0


@dataclass(frozen=True)
class GaussianKernel:
    """``K_ij = exp(-|x_i - y_j|^2 / (2 width^2))``."""

    width: float

    def __call__(self, X: NDArray[Any], Y: NDArray[Any]) -> NDArray[Any]:
        """Return the (n, m) kernel matrix between the rows of `X` and `Y`."""
        return self.from_squared(squared_distances(X, Y))

    def from_squared(self, squared: NDArray[Any]) -> NDArray[Any]:
        """Turn squared distances into kernel values, in place."""
        squared *= squared.dtype.type(-0.5 / self.width**2)
        return np.exp(squared, out=squared)


@dataclass(frozen=True)
class LinearKernel:
    """``K_ij = <x_i, y_j>``."""

    def __call__(self, X: NDArray[Any], Y: NDArray[Any]) -> NDArray[Any]:
        """Return the (n, m) kernel matrix between the rows of `X` and `Y`."""
        return np.asarray(X @ Y.T)


Kernel = GaussianKernel | LinearKernel
