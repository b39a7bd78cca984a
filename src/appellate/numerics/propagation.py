"""Confidence propagation over a sparse graph, on candidate entries."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from appellate.numerics.entries import CandidateEntries, Values
from appellate.numerics.quadratic import Solution, minimize_quadratic

_POWER_STEPS = 30
_POWER_STEPS_AGAIN = 6
_POWER_MARGIN = 1.05


class Propagation:
    """Spread confidences so that each sample's is rebuilt from its neighbours'.

    Solves ``min |(I - W) P|^2 + fidelity |P - F|^2`` with every row of P on its candidate
    simplex, for weights W that change and neighbours that do not. ``(I - W) P`` is needed
    only at the labels that a sample or one of its neighbours has, so the map from candidate
    entries to it is one sparse matrix with (k + 1) nnz entries, whose pattern is found once.

    Cost: O(k nnz) a step and in memory; nothing of size n x n or n x l is formed.

    Parameters
    ----------
    neighbors : ndarray of int, shape (n, k)
        Neighbours of every sample.
    entries : CandidateEntries
        Where the candidates stand.
    """

    def __init__(self, neighbors: NDArray[np.intp], entries: CandidateEntries) -> None:
        n, k = neighbors.shape
        self.entries, self.neighbors = entries, neighbors
        self._vector: NDArray[np.float64] | None = None
        around = np.column_stack([np.arange(n), neighbors])  # (n, k + 1), the sample first
        sizes = entries.counts[around]  # entries that each contributes
        edges = np.repeat(np.arange(n * (k + 1)), sizes.ravel())
        offsets = np.arange(len(edges)) - np.repeat(
            np.cumsum(sizes.ravel()) - sizes.ravel(), sizes.ravel()
        )
        columns = entries.indptr[around.ravel()[edges]] + offsets  # which candidate entry
        keys = (edges // (k + 1)) * entries.shape[1] + entries.labels[columns]
        _, rows = np.unique(keys, return_inverse=True)  # (sample, label) pairs that can differ
        order = np.argsort(rows, kind="stable")
        self._edges = edges[order]
        indptr = np.concatenate(([0], np.cumsum(np.bincount(rows)))) if len(rows) else [0]
        shape = (len(indptr) - 1, len(entries))
        self._pattern = sp.csr_array(
            (np.empty(len(edges)), columns[order], np.asarray(indptr)), shape=shape
        )

    def _largest_eigenvalue(self, weights: NDArray[np.float64]) -> float:
        """Estimate the curvature; later calls start from the vector of the one before."""
        n_steps = _POWER_STEPS_AGAIN
        if self._vector is None:
            self._vector = np.random.RandomState(0).normal(size=len(weights))
            n_steps = _POWER_STEPS
        value, self._vector = largest_eigenvalue(self.neighbors, weights, self._vector, n_steps)
        return value

    def initial_confidence(self, weights: NDArray[np.float64], dtype: Any) -> Values:
        """Confidence that the neighbours rebuild best, with nothing else to go by."""
        return self.solve(weights, None, 0.0, self.entries.uniform(dtype)).values

    def solve(
        self,
        weights: NDArray[np.float64],
        target: Values | None,
        fidelity: float,
        start: Values,
        *,
        tol: float = 1e-6,
        max_iter: int = 10_000,
    ) -> Solution:
        """Propagate with the given reconstruction weights.

        Parameters
        ----------
        weights : ndarray, shape (n, k)
            Weight of every neighbour.
        target : ndarray, shape (nnz,), or None
            Candidate entries of F; may be None if `fidelity` is 0.
        fidelity : float
            Weight of the distance to the target.
        start : ndarray, shape (nnz,)
            First point.
        tol, max_iter : float, int
            As in `minimize_quadratic`.

        Returns
        -------
        Solution
            Minimiser, objective trace (up to the constant ``fidelity |F|^2``), residual.
        """
        signed = np.column_stack([np.ones(len(weights)), -weights]).ravel()
        residual_map = self._pattern
        residual_map.data = signed[self._edges].astype(start.dtype)
        back = residual_map.T
        pull = start.dtype.type(fidelity)
        linear = np.zeros_like(start) if target is None else pull * target

        def apply(values: Values) -> Values:
            return back @ (residual_map @ values) + pull * values

        lipschitz = _POWER_MARGIN * self._largest_eigenvalue(weights) + fidelity
        return minimize_quadratic(
            apply, linear, lipschitz, self.entries, start=start, tol=tol, max_iter=max_iter
        )


def largest_eigenvalue(
    neighbors: NDArray[np.intp],
    weights: NDArray[np.float64],
    vector: NDArray[np.float64],
    n_steps: int,
) -> tuple[float, NDArray[np.float64]]:
    """Estimate the largest eigenvalue of ``(I - W)'(I - W)`` by a few power iterations.

    Returns
    -------
    float
        The estimate; it comes from below.
    ndarray, shape (n,)
        Where to start for similar weights.
    """
    n, k = neighbors.shape
    graph = sp.csr_array((weights.ravel(), neighbors.ravel(), np.arange(n + 1) * k), shape=(n, n))
    value = 1.0
    for _ in range(n_steps):
        residual = vector - graph @ vector
        image = residual - graph.T @ residual
        value = float(np.linalg.norm(image))
        if value == 0.0:
            return 1.0, vector
        vector = image / value
    return value, vector


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
