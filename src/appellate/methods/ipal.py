"""IPAL: neighbours that rebuild a row pass their labels on to it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from sklearn.utils import gen_batches

from appellate._parameters import allow, share_docs
from appellate.core.base import SHARE, PartialLabelClassifier
from appellate.core.problem import Problem
from appellate.core.results import Model, Result
from appellate.evidence.confidence import normalize_entries, normalize_rows
from appellate.numerics.entries import Values
from appellate.numerics.graph import NeighborSearch, link_matrix, restrict_graph

_RIDGE = 1e-8  # of a row's mean squared length: which of equal neighbours counts is no matter
_BLOCK_BYTES = 64 * 2**20


@share_docs
@dataclass(eq=False, repr=False)
class IPALClassifier(PartialLabelClassifier):
    """Instance-based partial-label learning by iterative propagation (IPAL).

    Every row is rebuilt from its neighbours by non-negative least squares,
    ``min |x_i - sum over a of w_ia x_a|^2, w_i >= 0``, and the weights, divided by their sum, are
    the rows of H. Confidences are passed on along them [1]_,

        P <- inertia H P + (1 - inertia) P_0,   kept to the candidates, rows divided by their sum

    from ``P_0`` equal over the candidates (under PLCP: the partner's supervision). Last, every
    label's column is scaled to the mass that it had in ``P_0``, so that no label takes all. A
    new row, rebuilt from its neighbours too, gets the label whose share of them rebuilds it best,
    ``argmin over j of |x - sum over a with label j of w_a x_a|^2``.

    Cost: one neighbour search, n k^2 q, and n small least-squares problems; then k nnz a step.
    Memory: n (k + l).

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbours that rebuild a row (k); all others if there are fewer.
    inertia : float, default=0.95
        Share of what comes from the neighbours (the original's alpha).
    max_iter : int, default=100
        Steps of propagation.
    <neighbors>
    <cost>

    Attributes
    ----------
    <classes>
    confidence_ : ndarray, shape (n, l)
        Confidence after propagation and scaling, rows on the simplex over the candidates.
    training_output_ : ndarray, shape (n, l)
        The same.
    transduction_ : ndarray, shape (n,)
        Label of every training row: the candidate of the largest confidence.
    n_iter_ : int
        Steps taken.

    References
    ----------
    .. [1] Zhang, Yu (2015). Solving the partial label learning problem: an instance-based
       approach. IJCAI.

    Examples
    --------
    >>> from appellate import IPALClassifier
    >>> X = [[0.0, 1.0], [0.1, 1.0], [0.2, 1.0], [1.0, 0.0], [1.0, 0.1], [1.0, 0.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> IPALClassifier(n_neighbors=2).fit(X, y).predict([[0.05, 0.9], [1.1, 0.3]])
    array(['cat', 'dog'], dtype='<U3')
    """

    n_neighbors: int = 10
    _: KW_ONLY
    inertia: float = allow(0.95, SHARE)
    max_iter: int = 100
    neighbors: Any = None
    cost: Any = None

    def _solve(self, problem: Problem, start: Values | None) -> Result:
        entries = problem.entries
        initial = problem.uniform(start)
        rows = problem.matrix
        nearest = problem.neighbors(self.n_neighbors, self.neighbors)[1]
        weights = rebuilding_weights(rows, rows, nearest)
        graph = link_matrix(normalize_rows(weights, otherwise=0), nearest, len(rows))  # H
        pass_on = restrict_graph(graph, entries)
        confidence: Values = initial.astype(np.float64)
        for _ in range(self.max_iter):
            mixed = self.inertia * (pass_on @ confidence) + (1 - self.inertia) * initial
            confidence = normalize_entries(mixed, entries, initial)
        first, last = (
            np.bincount(entries.labels, weights=values, minlength=entries.shape[1])
            for values in (initial, confidence)
        )
        scale = np.where(last > 0, first / np.where(last > 0, last, 1), 1)
        scaled = normalize_entries(confidence * scale[entries.labels], entries, initial)
        scaled = scaled.astype(problem.dtype)

        def make() -> RebuildingModel:
            search = NeighborSearch(self.neighbors, rows, min(self.n_neighbors, problem.n_rows))
            labels = entries.argmax(scaled)
            return RebuildingModel(entries.scatter(scaled), search, labels, entries.shape[1])

        return Result(initial, scaled, scaled, self.max_iter, make)


@dataclass(frozen=True)
class RebuildingModel(Model):
    """Training rows with their labels, from which new rows are rebuilt."""

    search: NeighborSearch
    labels: NDArray[np.intp]
    n_labels: int

    def decision(self, X: Any) -> NDArray[Any]:
        """Score new rows by ``1 - |x - what the label's neighbours rebuild|^2 / |x|^2``."""
        nearest = self.search.ask(X)[1]
        weights = rebuilding_weights(X, self.search.X, nearest)
        scores = np.zeros((len(X), self.n_labels), dtype=X.dtype)
        with np.errstate(over="ignore", invalid="ignore"):  # the caller refuses such rows
            for i in range(len(X)):
                own, labels = np.asarray(X[i], dtype=np.float64), self.labels[nearest[i]]
                length = own @ own
                for label in np.unique(labels[weights[i] > 0]) if length > 0 else ():
                    share = labels == label
                    built = weights[i, share] @ self.search.X[nearest[i, share]]
                    scores[i, label] = 1 - np.sum((own - built) ** 2) / length
        return scores


def rebuilding_weights(
    X: NDArray[Any], rows: NDArray[Any], nearest: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Non-negative weights, (m, k), with which its nearest `rows` rebuild every row of `X` best.

    Each problem is reduced to k equations by the Cholesky factor of the neighbours' inner
    products.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> rebuilding_weights(np.array([[2.0, -1.0]]), rows, np.array([[0, 1]])).round(6)
    array([[2., 0.]])
    """
    m, k = nearest.shape
    weights = np.zeros((m, k))
    for block in gen_batches(m, max(1, _BLOCK_BYTES // (8 * max(1, k * rows.shape[1])))):
        around = rows[nearest[block]].astype(np.float64, copy=False)  # (b, k, q)
        gram = around @ around.transpose(0, 2, 1)
        towards = np.einsum("bkq,bq->bk", around, X[block].astype(np.float64, copy=False))
        size = np.trace(gram, axis1=1, axis2=2) / max(1, k)
        for i in np.flatnonzero(size > 0):
            factor = np.linalg.cholesky(gram[i] / size[i] + _RIDGE * np.eye(k))
            weights[block.start + i] = nnls(
                factor.T, np.linalg.solve(factor, towards[i] / size[i]), maxiter=100 * k
            )[0]
    return weights
