"""Gaussian and linear kernels: what a user asks for, and the functions that follow from it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import gen_batches

from appellate._compat import Interval, StrOptions

_BLOCK_ROWS = 512
_CACHE_DIR: list[Any] = [str, os.PathLike, None]


@dataclass(eq=False, repr=False)
class GaussianKernel(BaseEstimator):  # type: ignore[misc]
    """Gaussian kernel of a classifier, ``exp(-|x - y|^2 / (2 width^2))``, and how it is kept.

    Pass it as `kernel`; ``"rbf"`` is short for ``GaussianKernel()``. Its parameters can be
    searched: ``kernel__bandwidth``.

    Parameters
    ----------
    bandwidth : float, default=1.0
        Width as a multiple of the mean distance of all pairs of training rows.
    approximation : {"auto", "exact", "nystroem"}, default="auto"
        The kernel matrix itself, n x n, or Nystroem features by way of landmarks, whose cost
        grows linearly with the rows. Auto decides from the number of rows and the free memory;
        the logger ``"appellate"`` says what was chosen and what it takes.
    n_landmarks : int or None, default=None
        Landmarks of the Nystroem features; None: 1024 or more, by the number of rows, or as
        many as fit into memory.
    cache_dir : str, path or None, default=None
        Folder for the Nystroem features; None keeps them in memory.

    Examples
    --------
    >>> from appellate.numerics.kernels import GaussianKernel
    >>> GaussianKernel(bandwidth=2.0, n_landmarks=500)
    GaussianKernel(bandwidth=2.0, n_landmarks=500)
    """

    _parameter_constraints = {
        "bandwidth": [Interval(Real, 0, None, closed="neither")],
        "approximation": [StrOptions({"auto", "exact", "nystroem"})],
        "n_landmarks": [Interval(Integral, 1, None, closed="left"), None],
        "cache_dir": _CACHE_DIR,
    }

    bandwidth: float = 1.0
    approximation: str = "auto"
    n_landmarks: int | None = None
    cache_dir: Any = None


@dataclass(eq=False, repr=False)
class LinearKernel(BaseEstimator):  # type: ignore[misc]
    """Linear kernel of a classifier, ``<x, y>``: the model is linear in the features.

    Pass it as `kernel`; ``"linear"`` is short for ``LinearKernel()``.

    Parameters
    ----------
    cache_dir : str, path or None, default=None
        Folder for the scaled copy of the features that a fit makes where there are fewer of
        them than rows; None keeps it in memory.

    Examples
    --------
    >>> from appellate.numerics.kernels import LinearKernel
    >>> LinearKernel()
    LinearKernel()
    """

    _parameter_constraints = {"cache_dir": _CACHE_DIR}

    cache_dir: Any = None


KernelSetting = GaussianKernel | LinearKernel
#: What every parameter `kernel` takes.
KERNEL_CONSTRAINT: list[Any] = [StrOptions({"rbf", "linear"}), GaussianKernel, LinearKernel]
_WORDS: dict[str, KernelSetting] = {"rbf": GaussianKernel(), "linear": LinearKernel()}


def read_kernel(kernel: Any) -> KernelSetting:
    """Return what a parameter `kernel` asks for, or raise an error that names what is wrong.

    Parameters
    ----------
    kernel : {"rbf", "linear"}, GaussianKernel or LinearKernel
        As the user has it.

    Examples
    --------
    >>> read_kernel("rbf")
    GaussianKernel()
    >>> read_kernel(GaussianKernel(bandwidth=0.0))
    Traceback (most recent call last):
    sklearn...: The 'bandwidth' parameter of GaussianKernel must be a float in the range (0.0, ...
    """
    if isinstance(kernel, str) and kernel in _WORDS:
        return _WORDS[kernel]
    if not isinstance(kernel, GaussianKernel | LinearKernel):
        raise ValueError(
            f"kernel={kernel!r}: it must be 'rbf', 'linear', a GaussianKernel(...) or a "
            "LinearKernel(...)."
        )
    kernel._validate_params()
    if getattr(kernel, "approximation", "") == "exact":
        for name in ("n_landmarks", "cache_dir"):
            if getattr(kernel, name) is not None:
                raise ValueError(
                    f"{kernel!r}: {name} is for Nystroem features: drop it, or take another "
                    "approximation."
                )
    return kernel


def check_magnitude(X: Any) -> None:
    """Raise a ValueError if squares of the numbers in X, dense or sparse, would overflow."""
    values = X.data if hasattr(X, "indptr") else np.asarray(X)
    largest = max(float(values.max(initial=0)), -float(values.min(initial=0)))
    if largest > float(np.finfo(values.dtype).max) ** 0.5 / (4 * X.shape[1] ** 0.5):
        raise _too_large(values.dtype)


def _too_large(dtype: Any) -> ValueError:
    return ValueError(
        f"distances between rows are too large for {dtype}: scale the features, for "
        "instance by StandardScaler."
    )


def squared_distances(X: NDArray[Any], Y: NDArray[Any] | None = None) -> NDArray[Any]:
    """Squared Euclidean distances, (n, m), between rows shifted to the mean of `Y`.

    The shift changes no distance but keeps digits when features are far from zero.
    """
    check_magnitude(X)
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
        raise _too_large(squared.dtype)
    return total / (n * (n - 1)) if total > 0 else 1.0


@dataclass(frozen=True)
class Gaussian:
    """``K_ij = exp(-|x_i - y_j|^2 / (2 width^2))``."""

    width: float

    def __call__(self, X: NDArray[Any], Y: NDArray[Any]) -> NDArray[Any]:
        """Return the (n, m) kernel matrix between the rows of `X` and `Y`."""
        return self.from_squared(squared_distances(X, Y))

    def from_squared(self, squared: NDArray[Any]) -> NDArray[Any]:
        """Turn squared distances into kernel values, in place."""
        squared *= squared.dtype.type(-0.5 / self.width**2)
        return np.exp(squared, out=squared)
