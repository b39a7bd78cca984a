"""Neighbour graphs: reconstruction weights as batched small quadratic programs, Laplacians."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.preprocessing import normalize
from sklearn.utils import gen_batches

from appellate.numerics.entries import CandidateEntries, Values
from appellate.numerics.kernels import GaussianKernel

_RIDGE = 1e-8
_BLOCK_BYTES = 64 * 2**20


def unit_rows(X: NDArray[Any]) -> NDArray[Any]:
    """Scale every row to unit Euclidean length; rows of zeros stay.

    Examples
    --------
    >>> import numpy as np
    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    return np.asarray(normalize(X))


def difference_gram(X: NDArray[Any], neighbors: NDArray[np.intp]) -> NDArray[np.float64]:
    """Inner products of the differences of every row to its neighbours, (n, k, k).

    ``G_i[a, b] = <x_i - x_a, x_i - x_b>``, in blocks of rows of at most 64 MiB.

    Examples
    --------
    >>> import numpy as np
    >>> difference_gram(np.array([[0.0], [1.0], [3.0]]), np.array([[1, 2], [0, 2], [1, 0]]))[0]
    array([[1., 3.],
           [3., 9.]])
    """
    n, k = neighbors.shape
    X = X.astype(np.float64, copy=False)  # rounding must stay below the ridge
    gram = np.empty((n, k, k))
    for block in gen_batches(n, max(1, _BLOCK_BYTES // (8 * max(1, k * X.shape[1])))):
        differences = X[block, np.newaxis] - X[neighbors[block]]  # (m, k, q)
        gram[block] = differences @ differences.transpose(0, 2, 1)
    return gram


@nb.njit(cache=True)
def _dot(values, labels, start, stop, other, other_stop):  # type: ignore[no-untyped-def]
    """Inner product of two sparse rows whose labels ascend."""
    total = 0.0
    while start < stop and other < other_stop:
        if labels[start] == labels[other]:
            total += values[start] * values[other]
            start += 1
            other += 1
        elif labels[start] < labels[other]:
            start += 1
        else:
            other += 1
    return total


@nb.njit(cache=True)
def _add_confidence_gram(gram, values, labels, indptr, neighbors, weight):  # type: ignore[no-untyped-def]
    n, k = neighbors.shape
    cross = np.empty(k)
    for i in range(n):
        start, stop = indptr[i], indptr[i + 1]
        own = _dot(values, labels, start, stop, start, stop)
        for a in range(k):
            p = neighbors[i, a]
            cross[a] = _dot(values, labels, start, stop, indptr[p], indptr[p + 1])
        for a in range(k):
            p = neighbors[i, a]
            for b in range(a + 1):
                q = neighbors[i, b]
                dot = _dot(values, labels, indptr[p], indptr[p + 1], indptr[q], indptr[q + 1])
                product = weight * (own - cross[a] - cross[b] + dot)
                gram[i, a, b] += product
                if a != b:
                    gram[i, b, a] += product


def add_confidence_gram(
    gram: NDArray[np.float64],
    values: Values,
    entries: CandidateEntries,
    neighbors: NDArray[np.intp],
    weight: float,
) -> NDArray[np.float64]:
    """Add the same inner products for confidences, from their candidate entries, in place.

    Both are formed in double precision, so that rounding stays below the ridge of the
    reconstruction problem.
    """
    values = values.astype(np.float64, copy=False)
    _add_confidence_gram(gram, values, entries.labels, entries.indptr, neighbors, weight)
    return gram


@nb.njit(cache=True)
def _solve_passive(gram, passive, size, factor, out):  # type: ignore[no-untyped-def]
    """Solve ``gram[passive, passive] out = 1`` by a small Cholesky factorisation."""
    for a in range(size):
        for b in range(a + 1):
            total = gram[passive[a], passive[b]]
            for c in range(b):
                total -= factor[a, c] * factor[b, c]
            if a == b:
                factor[a, a] = np.sqrt(max(total, 1e-300))
            else:
                factor[a, b] = total / factor[b, b]
    for a in range(size):
        total = 1.0
        for c in range(a):
            total -= factor[a, c] * out[c]
        out[a] = total / factor[a, a]
    for a in range(size - 1, -1, -1):
        total = out[a]
        for c in range(a + 1, size):
            total -= factor[c, a] * out[c]
        out[a] = total / factor[a, a]


@nb.njit(cache=True)
def _reconstruct(grams, weights):  # type: ignore[no-untyped-def]
    """Solve every row's problem by an active-set method (Lawson and Hanson)."""
    n, k = weights.shape
    gram = np.empty((k, k))
    factor = np.empty((k, k))
    trial = np.empty(k)
    u = np.empty(k)
    passive = np.empty(k, np.intp)
    is_passive = np.empty(k, np.bool_)
    for i in range(n):
        scale = 0.0
        for a in range(k):
            scale += grams[i, a, a] / k
        if not scale > 1e-300:
            weights[i] = 1.0 / k
            continue
        for a in range(k):
            for b in range(k):
                gram[a, b] = grams[i, a, b] / scale
            gram[a, a] += _RIDGE
        # The support of the given weights is tried first; it is often still the answer.
        size = 0
        for a in range(k):
            u[a] = 0.0
            is_passive[a] = weights[i, a] > 0
            if is_passive[a]:
                passive[size] = a
                size += 1
        if size > 0:
            _solve_passive(gram, passive, size, factor, trial)
            feasible = True
            for c in range(size):
                feasible = feasible and trial[c] > 0
            for c in range(size):
                if feasible:
                    u[passive[c]] = trial[c]
                else:
                    is_passive[passive[c]] = False
        for _ in range(10 * k):
            entering, best = -1, 1e-7
            for a in range(k):
                if not is_passive[a]:
                    slope = 1.0
                    for b in range(k):
                        slope -= gram[a, b] * u[b]
                    if slope > best:
                        entering, best = a, slope
            if entering < 0:
                break
            is_passive[entering] = True
            while True:
                size = 0
                for a in range(k):
                    if is_passive[a]:
                        passive[size] = a
                        size += 1
                _solve_passive(gram, passive, size, factor, trial)
                step, leaving = 1.0, -1
                for c in range(size):
                    a = passive[c]
                    if trial[c] <= 0 and u[a] <= step * (u[a] - trial[c]):
                        step, leaving = u[a] / (u[a] - trial[c]), a
                for c in range(size):
                    u[passive[c]] += step * (trial[c] - u[passive[c]])
                if leaving < 0:
                    break
                u[leaving] = 0.0
                is_passive[leaving] = False
        total = 0.0
        for a in range(k):
            total += u[a]
        for a in range(k):
            weights[i, a] = u[a] / total


def reconstruction_weights(
    gram: NDArray[np.float64], start: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Weights that rebuild each sample best from its neighbours.

    Solves ``min w' G_i w`` over the simplex for every sample at once: the non-negative
    least-squares problem ``min u' G_i u / 2 - sum u``, u >= 0, has the solution up to scale.
    ``G_i`` is divided by its mean diagonal and 1e-8 is added to it; where all differences
    vanish the weights are equal. Compiled; about k^3 operations a sample.

    Parameters
    ----------
    gram : ndarray, shape (n, k, k)
        Inner products of the differences, see `difference_gram`.
    start : ndarray, shape (n, k), default=None
        Weights of a similar problem, whose support is tried first.

    Returns
    -------
    ndarray, shape (n, k)
        Rows on the simplex.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[0.0], [-1.0], [3.0]])
    >>> reconstruction_weights(difference_gram(rows, np.array([[1, 2]]))).round(6)
    array([[0.75, 0.25]])
    """
    n, k = gram.shape[:2]
    weights = np.zeros((n, k)) if start is None else start.copy()
    if k > 0:
        _reconstruct(gram, weights)
    return weights


def normalized_laplacian(
    distances: NDArray[Any], neighbors: NDArray[np.intp], width: float
) -> sp.csr_array:
    """``I - D^-1/2 A D^-1/2`` of the symmetrised Gaussian neighbour weights A, (n, n).

    Parameters
    ----------
    distances : ndarray, shape (n, k)
        Distances to the neighbours.
    neighbors : ndarray of int, shape (n, k)
        Who they are.
    width : float
        Width of the Gaussian.

    Examples
    --------
    >>> import numpy as np
    >>> normalized_laplacian(np.ones((2, 1)), np.array([[1], [0]]), 1.0).toarray()
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    n, k = neighbors.shape
    weights = GaussianKernel(width).from_squared(distances**2)
    one_way = sp.csr_array(
        (weights.ravel(), neighbors.ravel(), np.arange(n + 1) * k), shape=(n, n)
    )
    both_ways = (one_way + one_way.T) / 2
    degrees = both_ways.sum(axis=1)
    scale = sp.diags_array(1 / np.sqrt(np.where(degrees > 0, degrees, 1)))
    return (sp.eye_array(n) - scale @ both_ways @ scale).tocsr()
