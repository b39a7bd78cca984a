"""Nearest neighbours by any search that speaks scikit-learn's interface, and their recall."""

from __future__ import annotations

import logging
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors

from appellate.numerics.kernels import check_magnitude

logger = logging.getLogger("appellate")

Found = tuple[NDArray[Any], NDArray[np.intp]]
_SAMPLE = 200  # rows on which recall is measured
_POOR_RECALL = 0.5


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
        self.search, self.X, self.n_neighbors = search, X, n_neighbors

    def ask(self, queries: Any) -> Found:
        """Return distances and indices, (m, k) each.

        Where fewer were found, the indices end with -1; `found_all` refuses that.
        """
        index, k = self._index, self.n_neighbors
        if hasattr(index, "kneighbors"):
            distances, indices = index.kneighbors(queries, k)
        else:
            distances, indices = _read_graph(sp.csr_array(index.transform(queries)), k)
        return (
            np.asarray(distances).astype(self.X.dtype, copy=False),
            np.asarray(indices).astype(np.intp, copy=False),
        )

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

    `search` is as in `NeighborSearch`; `n_neighbors` is less than n. Of any search but the
    exact one, which is None, recall is measured and logged.
    """
    check_magnitude(X)
    if n_neighbors == 0:
        n = X.shape[0]
        return np.empty((n, 0), dtype=X.dtype), np.empty((n, 0), dtype=np.intp)
    if search is None:
        exact = NearestNeighbors(n_neighbors=n_neighbors).fit(X)
        distances, indices = exact.kneighbors()
        return distances, indices
    found = NeighborSearch(search, X, n_neighbors + 1).ask(X)
    distances, indices = found_all(search, *_without_self(*found))
    report_recall(search, X, indices)
    return distances, indices


def found_all(search: Any, distances: NDArray[Any], indices: NDArray[np.intp]) -> Found:
    """Return what a search found, or raise a ValueError that names a row with too few."""
    if (indices < 0).any():
        row = int(np.flatnonzero((indices < 0).any(axis=1))[0])
        raise ValueError(
            f"{search!r} found fewer than {indices.shape[1]} neighbours of row {row}. Let it "
            "search further, or lower n_neighbors."
        )
    return distances, indices


def measure_recall(X: Any, indices: NDArray[np.intp]) -> float:
    """Share of the true nearest neighbours of 200 rows that a search found among `X`.

    Ties count by distance: a neighbour no farther than the k-th nearest is one of them.
    """
    n, k = indices.shape
    rows = np.sort(np.random.RandomState(0).permutation(n)[:_SAMPLE])
    exact = NearestNeighbors(n_neighbors=k + 1).fit(X)
    nearest = exact.kneighbors(X[rows])[0]
    found = dense_rows(X, indices[rows].ravel()).reshape(len(rows), k, -1)
    gaps = dense_rows(X, rows)[:, np.newaxis].astype(np.float64) - found
    distances = np.sqrt((gaps**2).sum(axis=2))
    return float(np.mean(distances <= nearest[:, -1:] * (1 + 1e-5) + 1e-12))


def report_recall(search: Any, X: Any, indices: NDArray[np.intp]) -> float:
    """Measure recall and log it; as a warning if it is poor."""
    recall = measure_recall(X, indices)
    level = logging.WARNING if recall < _POOR_RECALL else logging.INFO
    message = "%r found %.1f %% of the nearest neighbours of a sample."
    logger.log(level, message, search, 100 * recall)
    return recall


def dense_rows(X: Any, rows: Any) -> NDArray[Any]:
    """Return some rows of a matrix that may be sparse."""
    return np.asarray(X[rows].toarray() if sp.issparse(X) else X[rows])


def _read_graph(graph: sp.csr_array, k: int) -> Found:
    """The k nearest of every row of a sparse graph of distances; -1 where there are fewer."""
    m = graph.shape[0]
    distances = np.full((m, k), np.inf)
    indices = np.full((m, k), -1, dtype=np.intp)
    for i in range(m):
        row = slice(graph.indptr[i], graph.indptr[i + 1])
        order = np.argsort(graph.data[row], kind="stable")[:k]
        distances[i, : len(order)] = graph.data[row][order]
        indices[i, : len(order)] = graph.indices[row][order]
    return distances, indices


def _without_self(distances: NDArray[Any], indices: NDArray[Any]) -> Found:
    """Drop every row from its own neighbours, or the farthest if it is not among them."""
    own = indices == np.arange(len(indices))[:, np.newaxis]
    missing = ~own.any(axis=1)
    own[missing, -1] = True
    shape = (len(indices), indices.shape[1] - 1)
    return distances[~own].reshape(shape), indices[~own].reshape(shape)
