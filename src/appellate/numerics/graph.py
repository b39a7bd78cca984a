"""Nearest neighbours by any search that speaks scikit-learn's interface, and their graphs.

A graph has reconstruction weights, the solutions of batched small quadratic programs, a
Laplacian, and propagates confidences.
"""

from __future__ import annotations

import logging
import warnings
from functools import cached_property
from typing import Any

import numba as nb
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import paired_euclidean_distances
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize
from sklearn.utils import gen_batches

from appellate.numerics.entries import CandidateEntries, Values
from appellate.numerics.kernels import Gaussian, check_magnitude
from appellate.numerics.simplex import Solution, minimize_quadratic

_logger = logging.getLogger("appellate")

Found = tuple[NDArray[Any], NDArray[np.intp]]
_SAMPLE = 200  # rows on which recall is measured
_POOR_RECALL = 0.5
_RIDGE = 1e-8
_BLOCK_BYTES = 64 * 2**20
_POWER_STEPS = 30
_POWER_STEPS_AGAIN = 6
_POWER_MARGIN = 1.05


class NeighborSearch:
    """Nearest rows of fixed ones, for one block of queries after another.

    The index is built at the first question and kept; it is not saved with the object.

    Parameters
    ----------
    search : object or None
        ``fit(X)`` and ``kneighbors(X, n_neighbors)``, or a transformer with ``fit`` and
        ``transform`` to a sparse graph of distances, as `KNeighborsTransformer` and pynndescent's
        have; None: exact, by scikit-learn. It is cloned.
    X : ndarray or scipy.sparse matrix, shape (n, q)
        Rows among which to search.
    n_neighbors : int
        k.

    Examples
    --------
    >>> import numpy as np
    >>> NeighborSearch(None, np.array([[0.0], [4.0]]), 1).ask(np.array([[3.0]]))
    (array([[1.]]), array([[1]]))
    """

    def __init__(self, search: Any, X: Any, n_neighbors: int) -> None:
        self.search = search
        self.X = X
        self.n_neighbors = n_neighbors

    def ask(self, queries: Any, *, but_self: bool = False) -> Found:
        """Return distances and indices, (m, k) each, or name a query with fewer neighbours.

        With `but_self` the queries are the rows themselves, and each is left out of its own
        neighbours, or the farthest if it is not among them: k - 1 remain.
        """
        index, k = self._index, self.n_neighbors
        if hasattr(index, "kneighbors"):
            distances, indices = index.kneighbors(queries, k)
        else:
            distances, indices = _read_graph(sp.csr_array(index.transform(queries)), k)
        distances = np.asarray(distances).astype(self.X.dtype, copy=False)
        indices = np.asarray(indices).astype(np.intp, copy=False)
        if but_self:
            others = indices != np.arange(len(indices))[:, np.newaxis]
            others[others.all(axis=1), -1] = False
            distances, indices = (a[others].reshape(-1, k - 1) for a in (distances, indices))
        if (indices < 0).any():
            row = int(np.flatnonzero((indices < 0).any(axis=1))[0])
            raise ValueError(
                f"{self.search!r} found fewer than {indices.shape[1]} neighbours of row {row}. "
                "Let it search further, or lower n_neighbors."
            )
        return distances, indices

    @cached_property
    def _index(self) -> Any:
        index = NearestNeighbors() if self.search is None else clone(self.search, safe=False)
        if not hasattr(index, "kneighbors"):
            if not hasattr(index, "transform"):
                raise TypeError(
                    f"{index!r} cannot search for neighbours: it needs fit(X) and kneighbors(X, "
                    "n_neighbors), or transform(X) to a sparse graph, as in scikit-learn."
                )
            index.set_params(n_neighbors=self.n_neighbors)
        return index.fit(self.X)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the index out."""
        return {name: value for name, value in vars(self).items() if name != "_index"}


def find_neighbors(search: Any, X: Any, n_neighbors: int) -> Found:
    """Distances and indices, (n, k) each, of the rows of `X` nearest to each but itself.

    `search` is as in `NeighborSearch`; `n_neighbors` is less than n. The recall of any
    search except the exact one (None) is measured and logged.
    """
    check_magnitude(X)
    if n_neighbors == 0:
        n = X.shape[0]
        return np.empty((n, 0), dtype=X.dtype), np.empty((n, 0), dtype=np.intp)
    if search is None:
        exact: Found = NearestNeighbors(n_neighbors=n_neighbors).fit(X).kneighbors()
        return exact
    distances, indices = NeighborSearch(search, X, n_neighbors + 1).ask(X, but_self=True)
    report_recall(search, X, indices)
    return distances, indices


def report_recall(search: Any, X: Any, indices: NDArray[np.intp]) -> float:
    """Share of the true nearest neighbours of 200 rows that a search found among `X`.

    Ties count by distance: a neighbour no farther than the k-th nearest is one of them. It is
    logged, as a warning if it is poor.
    """
    n, k = indices.shape
    rows = np.sort(np.random.RandomState(0).permutation(n)[:_SAMPLE])
    nearest = NearestNeighbors(n_neighbors=k + 1).fit(X).kneighbors(X[rows])[0]
    found = paired_euclidean_distances(X[np.repeat(rows, k)], X[indices[rows].ravel()])
    farthest = nearest[:, -1:] * (1 + 1e-5) + 1e-12
    recall = float(np.mean(found.reshape(-1, k) <= farthest))
    level = logging.WARNING if recall < _POOR_RECALL else logging.INFO
    message = "%r found %.1f %% of the nearest neighbours of a sample."
    _logger.log(level, message, search, 100 * recall)
    return recall


def _read_graph(graph: sp.csr_array, k: int) -> Found:
    """The k nearest of every row of a sparse graph of distances; -1 if it has fewer."""
    m = graph.shape[0]
    distances = np.full((m, k), np.inf)
    indices = np.full((m, k), -1, dtype=np.intp)
    for i in range(m):
        row = slice(graph.indptr[i], graph.indptr[i + 1])
        order = np.argsort(graph.data[row], kind="stable")[:k]
        distances[i, : len(order)] = graph.data[row][order]
        indices[i, : len(order)] = graph.indices[row][order]
    return distances, indices


def link_matrix(weights: NDArray[Any], neighbors: NDArray[np.intp], n: int) -> sp.csr_array:
    """Sparse (m, n) matrix of the weights, (m, k), of every row's neighbours."""
    m, k = neighbors.shape
    return sp.csr_array((weights.ravel(), neighbors.ravel(), np.arange(m + 1) * k), shape=(m, n))


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
        Positions of the candidates.
    search : object or None, default=None
        As in `NeighborSearch`.

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
        self.neighbors = find_neighbors(search, rows, n_neighbors)[1]
        self.gram = difference_gram(rows, self.neighbors)
        # Edges and pattern of the map from candidate entries of P to ``(I - W) P``.
        n, k = self.neighbors.shape
        around = np.column_stack([np.arange(n), self.neighbors]).ravel()  # the sample first
        edges, columns = _entries_of(around, entries)
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
            Candidate entries of F; None: no target.
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
        n, k = weights.shape
        value = 1.0
        n_steps = _POWER_STEPS_AGAIN
        vector: Any = self._vector
        if vector is None:
            vector, n_steps = np.random.RandomState(0).normal(size=n), _POWER_STEPS
        links = weights.ravel(), self.neighbors.ravel(), np.arange(n + 1) * k
        graph = sp.csr_array(links, shape=(n, n))
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
    n = len(neighbors)
    one_way = link_matrix(Gaussian(width).from_distances(distances**2), neighbors, n)
    both_ways = (one_way + one_way.T) / 2
    degrees = both_ways.sum(axis=1)
    scale = sp.diags_array(1 / np.sqrt(np.where(degrees > 0, degrees, 1)))
    return (sp.eye_array(n) - scale @ both_ways @ scale).tocsr()


def _entries_of(
    samples: NDArray[np.intp], entries: CandidateEntries
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Candidate entries of samples, one after another: at which place each is, and which."""
    sizes = entries.counts[samples]
    places = np.repeat(np.arange(len(samples)), sizes)
    offsets = np.arange(len(places)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return places, entries.indptr[samples[places]] + offsets


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
    m, l = len(entries), entries.shape[1]
    edges, columns = _entries_of(graph.indices, entries)
    owners = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    own, keys = entries.rows * l + entries.labels, owners[edges] * l + entries.labels[columns]
    at = np.minimum(np.searchsorted(own, keys), m - 1)
    linked = np.flatnonzero(own[at] == keys)
    linked = linked[np.argsort(at[linked], kind="stable")]
    starts = np.concatenate(([0], np.cumsum(np.bincount(at[linked], minlength=m))))
    return sp.csr_array((graph.data[edges[linked]], columns[linked], starts), shape=(m, m))
