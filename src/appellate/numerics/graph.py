"""Neighbour graphs: reconstruction weights, Laplacians, and propagation of confidences.

The weights are the solutions of batched small quadratic programs.
"""

from __future__ import annotations

import warnings
from typing import Any

import numba as nb
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize
from sklearn.utils import gen_batches

from appellate.numerics.entries import CandidateEntries, Values
from appellate.numerics.kernels import Gaussian, check_magnitude
from appellate.numerics.neighbors import find_neighbors
from appellate.numerics.quadratic import Solution, minimize_quadratic

_RIDGE = 1e-8
_BLOCK_BYTES = 64 * 2**20
_POWER_STEPS = 30
_POWER_STEPS_AGAIN = 6
_POWER_MARGIN = 1.05


class NeighborGraph:
    """Nearest neighbours among rows of unit length: how they rebuild samples and confidences.

    Propagation solves ``min |(I - W) P|^2 + fidelity |P - F|^2`` with every row of P on its
    candidate simplex, for weights W that change and neighbours that do not. ``(I - W) P`` is
    needed only at the labels that a sample or one of its neighbours has, so the map from
    candidate entries to it is one sparse matrix with (k + 1) nnz entries, whose pattern is found
    once.

    Cost: one search for neighbours, n k^2 q; then O(n k^3) for weights and O(k nnz) a step of
    propagation and in memory. Nothing of size n x n or n x l is formed.

    Parameters
    ----------
    X : ndarray or scipy.sparse matrix, shape (n, q)
        The rows, of any length.
    n_neighbors : int
        k, less than n.
    entries : CandidateEntries
        Where the candidates stand.
    search : object or None, default=None
        As in `appellate.numerics.neighbors.NeighborSearch`.

    Attributes
    ----------
    neighbors : ndarray of int, shape (n, k)
        Neighbours of every sample, itself excluded.
    gram : ndarray, shape (n, k, k)
        Inner products of the feature differences to them.
    """

    def __init__(
        self, X: Any, n_neighbors: int, entries: CandidateEntries, search: Any = None
    ) -> None:
        check_magnitude(X)
        rows = normalize(X)  # to unit length; rows of zeros stay
        self.entries = entries
        self._vector: NDArray[np.float64] | None = None
        if search is None and n_neighbors:
            exact = NearestNeighbors(n_neighbors=n_neighbors).fit(rows)
            self.neighbors = exact.kneighbors(return_distance=False)
        else:
            self.neighbors = find_neighbors(search, rows, n_neighbors)[1]
        self.gram = difference_gram(rows, self.neighbors)
        # Edges and pattern of the map from candidate entries of P to ``(I - W) P``.
        n, k = self.neighbors.shape
        around = np.column_stack([np.arange(n), self.neighbors]).ravel()  # the sample first
        sizes = entries.counts[around]  # entries that each contributes
        edges = np.repeat(np.arange(n * (k + 1)), sizes)
        offsets = np.arange(len(edges)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        columns = entries.indptr[around[edges]] + offsets  # which candidate entry
        keys = (edges // (k + 1)) * entries.shape[1] + entries.labels[columns]
        _, pairs = np.unique(keys, return_inverse=True)  # (sample, label) that can differ
        order = np.argsort(pairs, kind="stable")
        indptr = np.concatenate(([0], np.cumsum(np.bincount(pairs))))
        self._edges, shape = edges[order], (len(indptr) - 1, len(entries.labels))
        self._pattern = sp.csr_array((np.empty(len(edges)), columns[order], indptr), shape=shape)

    def weights(
        self,
        confidence: Values | None = None,
        feature_weight: float = 1.0,
        confidence_weight: float = 0.0,
        start: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """Weights, (n, k), that rebuild features and confidences from the neighbours."""
        gram = feature_weight * self.gram
        if confidence is not None:
            at = (self.entries.labels, self.entries.indptr, self.neighbors)
            exact = confidence.astype(np.float64, copy=False)
            add_confidence_gram(gram, exact, *at, confidence_weight)
        start = np.zeros(self.neighbors.shape) if start is None else start
        weights: NDArray[np.float64] = reconstruction_weights(gram, start)
        return weights

    def propagate(
        self,
        weights: NDArray[np.float64],
        start: Values,
        target: Values | None = None,
        fidelity: float = 0.0,
        *,
        tol: float = 1e-6,
        max_iter: int = 10_000,
    ) -> Solution:
        """Confidence that the neighbours rebuild best, near a target.

        Parameters
        ----------
        weights : ndarray, shape (n, k)
            Weight of every neighbour.
        start : ndarray, shape (nnz,)
            First point.
        target : ndarray, shape (nnz,), default=None
            Candidate entries of F; None: nothing else to go by.
        fidelity : float, default=0.0
            Weight of the distance to the target.
        tol, max_iter : float, int
            As in `minimize_quadratic`.

        Returns
        -------
        Solution
            Candidate entries of P, objective (up to the constant ``fidelity |F|^2``), residual.
        """
        signed = np.column_stack([np.ones(len(weights)), -weights]).ravel()
        residual_map = self._pattern
        residual_map.data = signed[self._edges].astype(start.dtype)
        back, pull = residual_map.T, start.dtype.type(fidelity)
        linear = np.zeros_like(start) if target is None else pull * target
        solution = minimize_quadratic(
            lambda values: back @ (residual_map @ values) + pull * values,
            linear,
            _POWER_MARGIN * self._largest_eigenvalue(weights) + fidelity,
            self.entries,
            start=start,
            tol=tol,
            max_iter=max_iter,
        )
        if not solution.converged:
            warnings.warn(
                f"The propagation of confidences stopped after {max_iter} steps with a "
                f"residual of {solution.residual:.1e}: rows that almost coincide take many steps.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return solution

    def _largest_eigenvalue(self, weights: NDArray[np.float64]) -> float:
        """Estimate the largest eigenvalue of ``(I - W)'(I - W)``, from below.

        By a few power iterations; later calls start from the vector of the one before.
        """
        (n, k), value, n_steps = weights.shape, 1.0, _POWER_STEPS_AGAIN
        vector: Any = self._vector
        if vector is None:
            vector, n_steps = np.random.RandomState(0).normal(size=n), _POWER_STEPS
        indptr = np.arange(n + 1) * k
        graph = sp.csr_array((weights.ravel(), self.neighbors.ravel(), indptr), shape=(n, n))
        for _ in range(n_steps):
            residual = vector - graph @ vector
            image = residual - graph.T @ residual
            value = float(np.linalg.norm(image))
            if value == 0.0:
                return 1.0
            vector = image / value
        self._vector = vector
        return value


def difference_gram(X: Any, neighbors: NDArray[np.intp]) -> NDArray[np.float64]:
    """Inner products of the differences of every row to its neighbours, (n, k, k).

    ``G_i[a, b] = <x_i - x_a, x_i - x_b>``, in blocks of rows of at most 64 MiB, which are dense
    if X is sparse.

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
        own, around = X[block], X[neighbors[block].ravel()]
        if sp.issparse(X):
            own, around = own.toarray(), around.toarray()
        differences = own[:, np.newaxis] - around.reshape(len(own), k, X.shape[1])  # (m, k, q)
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
def add_confidence_gram(gram, values, labels, indptr, neighbors, weight):  # type: ignore[no-untyped-def]
    """Add the same inner products for confidences, from their candidate entries, in place.

    The values are to be float64, so that rounding stays below the ridge of the reconstruction
    problem.
    """
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


@nb.njit(cache=True)
def _solve_passive(gram, passive, ridge, factor, out):  # type: ignore[no-untyped-def]
    """Solve ``gram[passive, passive] out = 1`` by a small Cholesky factorisation.

    False if rounding in the matrix is larger than the ridge that was added to it.
    """
    size = passive.size
    for a in range(size):
        for b in range(a + 1):
            total = gram[passive[a], passive[b]]
            for c in range(b):
                total -= factor[a, c] * factor[b, c]
            if a == b:
                if not total > 0.1 * ridge:
                    return False
                factor[a, a] = np.sqrt(total)
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
    return True


@nb.njit(cache=True)
def _reconstruct_row(gram, ridge, weights):  # type: ignore[no-untyped-def]
    """Solve one row's problem by an active-set method (Lawson and Hanson)."""
    k = weights.size
    factor = np.empty((k, k))
    trial = np.empty(k)
    u = np.zeros(k)
    # The support of the given weights is tried first; it is often still the answer.
    is_passive = weights > 0
    passive = np.flatnonzero(is_passive)
    if not _solve_passive(gram, passive, ridge, factor, trial):
        return False
    if (trial[: passive.size] > 0).all():
        u[passive] = trial[: passive.size]
    else:
        is_passive[:] = False
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
            passive = np.flatnonzero(is_passive)
            if not _solve_passive(gram, passive, ridge, factor, trial):
                return False
            step, leaving = 1.0, -1
            for c, p in enumerate(passive):
                if trial[c] <= 0 and u[p] <= step * (u[p] - trial[c]):
                    step, leaving = u[p] / (u[p] - trial[c]), int(p)
            for c, p in enumerate(passive):
                u[p] += step * (trial[c] - u[p])
            if leaving < 0:
                break
            u[leaving] = 0.0
            is_passive[leaving] = False
    weights[:] = u / u.sum()
    return True


@nb.njit(cache=True)
def reconstruction_weights(grams, start):  # type: ignore[no-untyped-def]
    """Weights that rebuild each sample best from its neighbours, (n, k), rows on the simplex.

    Solves ``min w' G_i w`` over the simplex for every sample: the non-negative least-squares
    problem ``min u' G_i u / 2 - sum u``, u >= 0, has the solution up to scale. ``G_i`` is divided
    by its mean diagonal and 1e-8 is added to it, or ten times as much, and so on, where the
    rounding of differences that almost vanish is larger; where all vanish the weights are equal.
    About k^3 operations a sample.

    Parameters
    ----------
    grams : ndarray, shape (n, k, k)
        Inner products of the differences, see `difference_gram`.
    start : ndarray, shape (n, k)
        Weights of a similar problem, whose support is tried first; zeros if there is none.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[0.0], [-1.0], [3.0]])
    >>> gram = difference_gram(rows, np.array([[1, 2]]))
    >>> reconstruction_weights(gram, np.zeros((1, 2))).round(6)
    array([[0.75, 0.25]])
    """
    weights = start.copy()
    n, k = weights.shape
    gram = np.empty((k, k))
    for i in range(n):
        scale = 0.0
        for a in range(k):
            scale += grams[i, a, a] / k
        if not scale > 1e-300:
            weights[i] = 1.0 / max(k, 1)
            continue
        ridge, solved = _RIDGE, False
        while not solved and ridge < 1e9:  # numbers that are not finite have no solution
            gram[:] = grams[i] / scale
            for a in range(k):
                gram[a, a] += ridge
            solved = _reconstruct_row(gram, ridge, weights[i])
            ridge *= 10
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
    weights = Gaussian(width).from_squared(distances**2)
    one_way = sp.csr_array(
        (weights.ravel(), neighbors.ravel(), np.arange(n + 1) * k), shape=(n, n)
    )
    both_ways = (one_way + one_way.T) / 2
    degrees = both_ways.sum(axis=1)
    scale = sp.diags_array(1 / np.sqrt(np.where(degrees > 0, degrees, 1)))
    return (sp.eye_array(n) - scale @ both_ways @ scale).tocsr()


@nb.njit(cache=True)
def _restrict(data, columns, starts, labels, indptr, rows, out_data, out_columns, out_starts):  # type: ignore[no-untyped-def]
    """Fill, or only count where `out_data` is empty, the entries that share a label."""
    position = 0
    for entry in range(rows.size):
        out_starts[entry] = position
        i, label = rows[entry], labels[entry]
        for edge in range(starts[i], starts[i + 1]):
            other = columns[edge]
            low, high = indptr[other], indptr[other + 1]
            at = low + np.searchsorted(labels[low:high], label)
            if at < high and labels[at] == label:
                if out_data.size:
                    out_data[position] = data[edge]
                    out_columns[position] = at
                position += 1
    out_starts[rows.size] = position


def restrict_graph(graph: sp.csr_array, entries: CandidateEntries) -> sp.csr_array:
    """Map candidate entries of P to those of ``graph @ P``, as a sparse (nnz, nnz) matrix.

    Two entries are linked where their samples are and their labels agree.

    Examples
    --------
    >>> import numpy as np
    >>> graph = sp.csr_array(np.array([[1.0, 2.0], [0.0, 1.0]]))
    >>> entries = CandidateEntries(np.array([[True, True], [False, True]]))
    >>> restrict_graph(graph, entries).toarray()
    array([[1., 0., 0.],
           [0., 1., 2.],
           [0., 0., 1.]])
    """
    m = len(entries)
    starts = np.empty(m + 1, dtype=np.intp)
    fixed = (graph.data, graph.indices, graph.indptr, entries.labels, entries.indptr, entries.rows)
    empty: tuple[Any, Any] = np.empty(0, graph.dtype), np.empty(0, np.intp)
    _restrict(*fixed, *empty, starts)
    data, columns = np.empty(starts[-1], graph.dtype), np.empty(starts[-1], np.intp)
    if len(data):
        _restrict(*fixed, data, columns, starts)
    return sp.csr_array((data, columns, starts), shape=(m, m))
