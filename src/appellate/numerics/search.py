"""Nearest neighbours by any search that speaks scikit-learn's interface, and their recall."""

from __future__ import annotations

import logging
from functools import cached_property
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
_POOR_RECALL = 0.5


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
        The index of the centred rows.
    centre_ : ndarray, shape (q,)
        Their mean: Faiss calculates in single precision, which keeps no digits far from zero.

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

        self.centre_ = np.asarray(X).mean(axis=0, dtype=np.float64)
        rows = self._centred(X)
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
        import faiss

        rows, index = self._centred(X), self.index_
        squared, indices = index.search(rows, n_neighbors)
        probes = index.nprobe
        while (few := (indices < 0).any(axis=1)).any() and probes < index.nlist:  # small clusters
            probes = min(2 * probes, index.nlist)
            wider = faiss.SearchParametersIVF()
            wider.nprobe = probes
            squared[few], indices[few] = index.search(rows[few], n_neighbors, params=wider)
        if not return_distance:
            return np.asarray(indices)
        return np.sqrt(np.maximum(squared, 0)), np.asarray(indices)

    def _centred(self, X: Any) -> NDArray[np.float32]:
        return np.ascontiguousarray(np.asarray(X) - self.centre_, dtype=np.float32)


class NeighborSearch:
    """Nearest rows of fixed ones, for one block of queries after another.

    The index is built at the first question and kept; it is not saved with the object.

    Parameters
    ----------
    search : object or None
        ``fit(X)`` and ``kneighbors(X, n_neighbors)``, or a transformer with ``fit`` and
        ``transform`` to a sparse graph of distances, as `KNeighborsTransformer` and pynndescent's
        have; None: exact, by scikit-learn. It is cloned.
    X : ndarray, shape (n, q)
        Rows among which to search.
    n_neighbors : int
        k.

    Examples
    --------
    >>> import numpy as np
    >>> NeighborSearch(None, np.array([[0.0], [4.0]]), 1).ask(np.array([[3.0]]))
    (array([[1.]]), array([[1]]))
    """

    def __init__(self, search: Any, X: NDArray[Any], n_neighbors: int) -> None:
        self.search, self.X, self.n_neighbors = search, X, n_neighbors

    def ask(self, queries: NDArray[Any]) -> Found:
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


def find_neighbors(search: Any, X: NDArray[Any], n_neighbors: int) -> Found:
    """Distances and indices, (n, k) each, of the rows of `X` nearest to each but itself.

    `search` is as in `NeighborSearch`; `n_neighbors` is less than n.
    """
    if n_neighbors == 0:
        return np.empty((len(X), 0), dtype=X.dtype), np.empty((len(X), 0), dtype=np.intp)
    if search is None:
        exact = NearestNeighbors(n_neighbors=n_neighbors).fit(X)
        distances, indices = exact.kneighbors()
        return distances, indices
    found = NeighborSearch(search, X, n_neighbors + 1).ask(X)
    return found_all(search, *_without_self(*found))


def found_all(search: Any, distances: NDArray[Any], indices: NDArray[np.intp]) -> Found:
    """Return what a search found, or raise a ValueError that names a row with too few."""
    if (indices < 0).any():
        row = int(np.flatnonzero((indices < 0).any(axis=1))[0])
        raise ValueError(
            f"{search!r} found fewer than {indices.shape[1]} neighbours of row {row}. Let it "
            "search further, or lower n_neighbors."
        )
    return distances, indices


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
    """Measure recall and log it; as a warning if it is poor."""
    recall = measure_recall(X, indices)
    level = logging.WARNING if recall < _POOR_RECALL else logging.INFO
    message = "%r found %.1f %% of the nearest neighbours of a sample."
    logger.log(level, message, search, 100 * recall)
    return recall


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
