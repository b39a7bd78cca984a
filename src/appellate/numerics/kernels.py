"""Kernels: the settings that a user gives, and the functions of rows that follow from them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numba as nb
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.metrics.pairwise import euclidean_distances, manhattan_distances
from sklearn.utils import gen_batches

from appellate._compat import Interval, StrOptions
from appellate._parameters import share_docs

_BLOCK_ROWS = 512
_TILE_ROWS = 64
_CACHE_DIR: list[Any] = [str, os.PathLike, None]


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


def squared_distances(X: Any, Y: Any = None) -> NDArray[Any]:
    """Squared Euclidean distances, (n, m), between rows shifted to the mean of `Y`.

    The shift changes no distance but keeps digits when features are far from zero. Sparse rows
    are compared as they are.
    """
    check_magnitude(X)
    distances: NDArray[Any]
    if sp.issparse(X) or sp.issparse(Y):
        distances = euclidean_distances(X, Y, squared=True)
        return distances
    centre = (X if Y is None else Y).mean(axis=0)
    shifted = X - centre
    distances = euclidean_distances(shifted, None if Y is None else Y - centre, squared=True)
    return distances


def absolute_distances(X: Any, Y: Any = None) -> NDArray[Any]:
    """Sums of absolute differences, (n, m), of the rows of `X` and `Y`, dense or sparse.

    Examples
    --------
    >>> import numpy as np
    >>> absolute_distances(np.array([[0.0, 1.0]]), np.array([[2.0, 0.0], [0.0, 1.0]]))
    array([[3., 0.]])
    """
    check_magnitude(X)
    if sp.issparse(X) or sp.issparse(Y):
        rows = _with_short_indices(X)
        distances = manhattan_distances(rows, None if Y is None else _with_short_indices(Y))
        return np.asarray(distances, dtype=X.dtype)
    rows = np.ascontiguousarray(X, dtype=np.result_type(X, X if Y is None else Y))
    other = rows if Y is None else np.ascontiguousarray(Y, dtype=rows.dtype)
    out = np.empty((len(rows), len(other)), dtype=rows.dtype)
    _absolute_distances(rows, other, out, Y is None)
    return out


def _with_short_indices(X: Any) -> sp.csr_array:
    """Sparse rows with 32-bit indices, which scikit-learn needs here."""
    found = sp.csr_array(X)
    indices = (each.astype(np.int32, copy=False) for each in (found.indices, found.indptr))
    return sp.csr_array((found.data, *indices), shape=found.shape)


@nb.njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _absolute_distances(X, Y, out, symmetric):  # type: ignore[no-untyped-def]
    """Fill `out` tile by tile, so that the rows of a tile stay in the cache.

    If X is Y, tiles above the diagonal mirror those below.
    """
    for top in range(0, X.shape[0], _TILE_ROWS):
        bottom = min(top + _TILE_ROWS, X.shape[0])
        for left in range(0, bottom if symmetric else Y.shape[0], _TILE_ROWS):
            right = min(left + _TILE_ROWS, Y.shape[0])
            for i in range(top, bottom):
                for j in range(left, right):
                    total = X.dtype.type(0)
                    for p in range(X.shape[1]):
                        total += abs(X[i, p] - Y[j, p])
                    out[i, j] = total
            if symmetric and left < top:
                for j in range(left, right):
                    for i in range(top, bottom):
                        out[j, i] = out[i, j]


def signed_root(X: Any) -> Any:
    """``sign(x) sqrt(|x|)`` of every feature; sparse rows stay sparse.

    Examples
    --------
    >>> import numpy as np
    >>> signed_root(np.array([-4.0, 0.0, 9.0]))
    array([-2.,  0.,  3.])
    """
    if sp.issparse(X):
        roots = X.copy()
        roots.data = signed_root(X.data)
        return roots
    return np.asarray(np.copysign(np.sqrt(np.abs(X)), X))


@dataclass(frozen=True)
class Radial:
    """A kernel function of a distance.

    Attributes
    ----------
    width : float
        In the unit of the distance.
    root : bool
        Whether signed square roots of the features are compared.
    """

    width: float
    root: bool = False

    _metric: ClassVar[Callable[..., NDArray[Any]]]  # distances of rows as they are compared
    _squared: ClassVar[bool]  # whether these are squares of distances

    def __call__(self, X: Any, Y: Any) -> NDArray[Any]:
        """Return the (n, m) kernel matrix between the rows of `X` and `Y`."""
        return self.from_distances(self.distances(X, Y))

    def distances(self, X: Any, Y: Any = None) -> NDArray[Any]:
        """Return what `from_distances` takes, (n, m); `Y` defaults to `X`."""
        if self.root:
            X = signed_root(X)
            Y = None if Y is None else signed_root(Y)
        return self._metric(X, Y)

    def mean_distance(self, distances: NDArray[Any]) -> float:
        """Return the mean distance of all pairs i < j of rows, from what `distances` returned.

        One if all rows coincide (or there is only one): any width gives the same kernel then.
        """
        n = len(distances)
        blocks = (distances[rows] for rows in gen_batches(n, _BLOCK_ROWS))
        total = sum(float((np.sqrt(part) if self._squared else part).sum()) for part in blocks)
        if not np.isfinite(total):
            raise _too_large(distances.dtype)
        return total / (n * (n - 1)) if total > 0 else 1.0

    def from_distances(self, distances: NDArray[Any]) -> NDArray[Any]:
        """Turn what `distances` returned into kernel values, in place."""
        scale = -0.5 / self.width**2 if self._squared else -1 / self.width
        distances *= distances.dtype.type(scale)
        return np.exp(distances, out=distances)


@dataclass(frozen=True)
class Gaussian(Radial):
    """``K_ij = exp(-|x_i - y_j|^2 / (2 width^2))``. Its distances are squared.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [3.0], [6.0]])
    >>> Gaussian(1.0).mean_distance(Gaussian(1.0).distances(X))
    4.0
    """

    _metric = staticmethod(squared_distances)
    _squared = True


@dataclass(frozen=True)
class Laplacian(Radial):
    """``K_ij = exp(-|x_i - y_j|_1 / width)``.

    Examples
    --------
    >>> import numpy as np
    >>> Laplacian(2.0)(np.array([[0.0, 1.0]]), np.array([[2.0, 1.0]])).round(3)
    array([[0.368]])
    """

    _metric = staticmethod(absolute_distances)
    _squared = False


@share_docs
@dataclass(eq=False, repr=False)
class RadialKernel(BaseEstimator):  # type: ignore[misc]
    """A kernel that depends on a distance of rows. It holds the settings of the two below.

    Parameters
    ----------
    <radial>
    """

    _parameter_constraints = {
        "bandwidth": [Interval(Real, 0, None, closed="neither")],
        "approximation": [StrOptions({"auto", "exact", "nystroem"})],
        "n_landmarks": [Interval(Integral, 1, None, closed="left"), None],
        "cache_dir": _CACHE_DIR,
        "root": ["boolean"],
    }

    bandwidth: float = 1.0
    approximation: str = "auto"
    n_landmarks: int | None = None
    cache_dir: Any = None
    root: bool = False

    _function: ClassVar[type[Radial]]

    @property
    def unit(self) -> Radial:
        """The kernel function of width one. Kernels of equal units share their distances."""
        return self._function(1.0, self.root)

    def at(self, mean: float) -> Radial:
        """Return the kernel function of rows whose mean distance is given."""
        return replace(self.unit, width=self.bandwidth * mean)


@share_docs
@dataclass(eq=False, repr=False)
class GaussianKernel(RadialKernel):
    """Gaussian kernel of a classifier, ``exp(-|x - y|^2 / (2 width^2))``.

    Pass it as `kernel`; ``"rbf"`` is short for ``GaussianKernel()``. Its parameters can be
    searched: ``kernel__bandwidth``.

    Parameters
    ----------
    <radial>

    Examples
    --------
    >>> from appellate import GaussianKernel
    >>> GaussianKernel(bandwidth=2.0, n_landmarks=500)
    GaussianKernel(bandwidth=2.0, n_landmarks=500)
    """

    _function = Gaussian


@share_docs
@dataclass(eq=False, repr=False)
class LaplacianKernel(RadialKernel):
    """Laplacian kernel of a classifier, ``exp(-|x - y|_1 / width)``.

    The distance is the sum of absolute differences, so that one outlying feature counts less
    than in a Gaussian kernel. The kernel suits histograms and other features if few of them
    matter. Pass it as `kernel`; ``"laplacian"`` is short for ``LaplacianKernel()``.

    Parameters
    ----------
    <radial>

    Examples
    --------
    >>> from appellate import LaplacianKernel, SUREClassifier
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> SUREClassifier(kernel=LaplacianKernel(bandwidth=0.5)).fit(X, y).predict([[0.05], [4.9]])
    array(['cat', 'dog'], dtype='<U3')
    """

    _function = Laplacian


@dataclass(eq=False, repr=False)
class LinearKernel(BaseEstimator):  # type: ignore[misc]
    """Linear kernel of a classifier, ``<x, y>``: the model is linear in the features.

    Pass it as `kernel`; ``"linear"`` is short for ``LinearKernel()``.

    Parameters
    ----------
    cache_dir : str, path or None, default=None
        Folder for the scaled copy of the features that a fit makes if it has fewer
        features than rows; None keeps it in memory.

    Examples
    --------
    >>> from appellate.numerics.kernels import LinearKernel
    >>> LinearKernel()
    LinearKernel()
    """

    _parameter_constraints = {"cache_dir": _CACHE_DIR}

    cache_dir: Any = None


KernelSetting = RadialKernel | LinearKernel
_WORDS: dict[str, KernelSetting] = {
    "rbf": GaussianKernel(),
    "laplacian": LaplacianKernel(),
    "linear": LinearKernel(),
}
_KINDS = (GaussianKernel, LaplacianKernel, LinearKernel)
#: What every parameter `kernel` takes.
KERNEL_CONSTRAINT: list[Any] = [StrOptions(set(_WORDS)), *_KINDS]


def read_kernel(kernel: Any) -> KernelSetting:
    """Return what a parameter `kernel` asks for, or raise an error that names what is wrong.

    Parameters
    ----------
    kernel : {"rbf", "laplacian", "linear"}, GaussianKernel, LaplacianKernel or LinearKernel
        The value of the parameter.

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
    if not isinstance(kernel, _KINDS):
        raise ValueError(
            f"kernel={kernel!r}: it must be 'rbf', 'laplacian', 'linear', a GaussianKernel(...), "
            "a LaplacianKernel(...) or a LinearKernel(...)."
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


def kernel_key(kernel: Any) -> str:
    """Name a kernel by its kind and all its settings: equal kernels have equal keys."""
    setting = read_kernel(kernel)
    return f"{type(setting).__name__}{vars(setting)}"
