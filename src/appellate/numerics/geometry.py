"""What the classifiers of one fit ask of the same training rows, computed once, on demand."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from appellate.numerics.kernels import (
    GaussianKernel,
    LinearKernel,
    mean_distance,
    squared_distances,
)
from appellate.numerics.ridge import FeatureSmoother, KernelSmoother, Smoother


class Geometry:
    """Smoothers and neighbours of fixed training rows, shared by a base and its partner.

    Parameters
    ----------
    X : ndarray, shape (n, q)
        The training rows.

    Examples
    --------
    >>> import numpy as np
    >>> geometry = Geometry(np.array([[0.0], [1.0], [5.0]]))
    >>> geometry.smoother("rbf", 1.0, 0.1) is geometry.smoother("rbf", 1.0, 0.1)
    True
    >>> geometry.neighbors(1)[1].ravel()
    array([1, 0, 1])
    """

    def __init__(self, X: NDArray[Any]) -> None:
        self.X = X
        self._smoothers: dict[tuple[str, float, float], Smoother] = {}
        self._neighbors: dict[int, tuple[NDArray[Any], NDArray[np.intp]]] = {}

    def smoother(self, kernel: str, bandwidth: float, ridge: float) -> Smoother:
        """Return the ridge smoother of the rows; factored at the first call only.

        Parameters
        ----------
        kernel : {"rbf", "linear"}
            Gaussian or linear.
        bandwidth : float
            Width of the Gaussian kernel as a multiple of the mean distance of all pairs.
        ridge : float
            Weight of the squared norm of the coefficients.
        """
        key = (kernel, bandwidth if kernel == "rbf" else 1.0, ridge)
        if key not in self._smoothers:
            self._smoothers[key] = self._build_smoother(*key)
        return self._smoothers[key]

    def neighbors(self, n_neighbors: int) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """Distances and indices, (n, k) each, of every row's nearest other rows."""
        k = min(n_neighbors, len(self.X) - 1)
        if k not in self._neighbors:
            self._neighbors[k] = nearest_rows(self.X, None, k)
        return self._neighbors[k]

    def _build_smoother(self, kernel: str, bandwidth: float, ridge: float) -> Smoother:
        n, q = self.X.shape
        if kernel == "rbf":
            squared = squared_distances(self.X)
            gaussian = GaussianKernel(bandwidth * mean_distance(squared))
            return KernelSmoother(gaussian.from_squared(squared), ridge, self.X, gaussian)
        if q < n:
            return FeatureSmoother(self.X, ridge)
        linear = LinearKernel()
        return KernelSmoother(linear(self.X, self.X), ridge, self.X, linear)


def nearest_rows(
    X: NDArray[Any], queries: NDArray[Any] | None, n_neighbors: int
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Euclidean nearest rows of `X` to each query; to each row, itself excluded, if None."""
    if n_neighbors == 0:
        return np.empty((len(X), 0), dtype=X.dtype), np.empty((len(X), 0), dtype=np.intp)
    search = NearestNeighbors(n_neighbors=n_neighbors).fit(X)
    distances, indices = search.kneighbors(queries)
    return distances, indices
