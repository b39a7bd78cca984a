"""Nearest neighbours by any search that speaks scikit-learn's interface, and their recall."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.neighbors import NearestNeighbors

logger = logging.getLogger("appellate")

Found = tuple[NDArray[Any], NDArray[np.intp]]
_SAMPLE = 200  # rows on which recall is measured


class FaissNeighbors(BaseEstimator):  # type: ignore[misc]
    """Approximate nearest neighbours by Faiss [1]_: an inverted file over clusters of rows.

    Meets the interface that the classifiers' parameter `neighbors` asks for, and that of
    scikit-learn's `NearestNeighbors` as far as that goes.

    Cost: about n sqrt(n) q for building and ``share`` n^2 q for searching.

    Parameters
    ----------
    share : float, default=0.1
        Share of the clusters that is searched: 1 finds the exact neighbours. What it takes
        for a good recall depends on the data.

    Attributes
    ----------
    index_ : faiss.IndexIVFFlat
        The index of the rows.

    References
    ----------
    .. [1] Johnson, Douze, Jegou (2019). Billion-scale similarity search with GPUs. IEEE
       Transactions on Big Data 7.

    Examples
    --------
    >>> import numpy as np
    >>> from appellate import FaissNeighbors
    >>> rows = np.random.RandomState(0).normal(size=(500, 3)).astype(np.float32)
    >>> distances, indices = FaissNeighbors(share=1.0).fit(rows).kneighbors(rows[:2], 1)
    >>> indices.ravel()
    array([0, 1])
    """

    def __init__(self, share: float = 0.1) -> None:
        self.share = share

    def fit(self, X: Any, y: Any = None) -> Self:
        """Build the index of the rows."""
        if find_spec("faiss") is None:
            raise ImportError("FaissNeighbors needs faiss: pip install 'appellate[neighbors]'")
        import faiss

        rows = np.ascontiguousarray(X, dtype=np.float32)
        n, q = rows.shape
        n_clusters = max(1, round(np.sqrt(n)))
        index = faiss.IndexIVFFlat(faiss.IndexFlatL2(q), q, n_clusters)
        sample = np.random.RandomState(0).permutation(n)[: 64 * n_clusters]
        index.cp.min_points_per_centroid = 1
        index.train(rows[np.sort(sample)])
        index.add(rows)
        index.nprobe = max(1, round(self.share * n_clusters))
        self.index_ = index
        return self

    def kneighbors(
        self, X: Any, n_neighbors: int, return_distance: bool = True
    ) -> Found | NDArray[np.intp]:
        """Return distances and indices, (m, k) each, of the nearest rows."""
        rows = np.ascontiguousarray(X, dtype=np.float32)
        index = self.index_
        squared, indices = index.search(rows, n_neighbors)
        while (indices < 0).any() and index.nprobe < index.nlist:  # small clusters
            index.nprobe = min(2 * index.nprobe, index.nlist)
            squared, indices = index.search(rows, n_neighbors)
        if not return_distance:
            return np.asarray(indices)
        return np.sqrt(np.maximum(squared, 0)), np.asarray(indices)


def find_neighbors(
    search: Any, X: NDArray[Any], queries: NDArray[Any] | None, n_neighbors: int
) -> Found:
    """Distances and indices, (m, k) each, of the nearest rows of `X`.

    Parameters
    ----------
    search : object or None
        ``fit(X)`` and ``kneighbors(X, n_neighbors)``, or a transformer with ``fit`` and
        ``transform`` to a sparse graph of distances, as `KNeighborsTransformer` and pynndescent's
        have; None: exact, by scikit-learn. It is cloned.
    X : ndarray, shape (n, q)
        Rows among which to search.
    queries : ndarray, shape (m, q), or None
        Rows whose neighbours to find; those of `X`, each but itself, if None.
    n_neighbors : int
        k; fewer than n if `queries` is None.

    Raises
    ------
    ValueError
        If the search found fewer.
    """
    if n_neighbors == 0:
        return np.empty((len(X), 0), dtype=X.dtype), np.empty((len(X), 0), dtype=np.intp)
    if search is None:
        exact = NearestNeighbors(n_neighbors=n_neighbors).fit(X)
        distances, indices = exact.kneighbors(queries)
        return distances, indices
    wanted = n_neighbors + (queries is None)
    distances, indices = _ask(search, X, X if queries is None else queries, wanted)
    if queries is None:
        distances, indices = _without_self(distances, indices)
    if (indices < 0).any():
        row = int(np.flatnonzero((indices < 0).any(axis=1))[0])
        raise ValueError(
            f"{search!r} found fewer than {n_neighbors} neighbours of row {row}. Let it search "
            "further, or lower n_neighbors."
        )
    return distances.astype(X.dtype, copy=False), indices.astype(np.intp, copy=False)


def measure_recall(X: NDArray[Any], indices: NDArray[np.intp]) -> float:
    """Share of the true nearest neighbours of 200 rows that a search found among `X`.

    Ties count by distance: a neighbour no farther than the k-th nearest is one of them.
    """
    n, k = indices.shape
    rows = np.sort(np.random.RandomState(0).permutation(n)[:_SAMPLE])
    exact = NearestNeighbors(n_neighbors=k + 1).fit(X)
    nearest = exact.kneighbors(X[rows])[0]
    gaps = X[rows, np.newaxis].astype(np.float64) - X[indices[rows]]
    distances = np.sqrt((gaps**2).sum(axis=2))
    return float(np.mean(distances <= nearest[:, -1:] * (1 + 1e-5) + 1e-12))


def report_recall(search: Any, X: NDArray[Any], indices: NDArray[np.intp]) -> float:
    """Measure recall and log it."""
    recall = measure_recall(X, indices)
    logger.info("%r found %.1f %% of the nearest neighbours of a sample.", search, 100 * recall)
    return recall


def _ask(search: Any, X: NDArray[Any], queries: NDArray[Any], k: int) -> Found:
    search = clone(search)
    if hasattr(search, "kneighbors"):
        distances, indices = search.fit(X).kneighbors(queries, k)
        return np.asarray(distances), np.asarray(indices)
    if not hasattr(search, "transform"):
        raise TypeError(
            f"{search!r} cannot search for neighbours: it needs fit(X) and kneighbors(X, "
            "n_neighbors), or transform(X) to a sparse graph, as in scikit-learn."
        )
    search.set_params(n_neighbors=k)
    graph = sp.csr_array(search.fit(X).transform(queries))
    return _read_graph(graph, k)


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
