"""Nearest neighbours of all rows in less than quadratic time."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

EXACT_SEARCH_ROWS = 12_000  # up to here the exact search takes less than half a second
_COMPONENTS = 32  # more features are reduced to so many, which is what an index can use
_TREES = 6
_LEAF = 24  # rows that are compared with each other in a leaf
_KEPT = 8  # neighbours that the search goes on from, at least
_ROUNDS = 8
_STILL = 0.1  # share of the neighbours whose change is worth another round


def nearest_rows(rows: NDArray[Any], n_neighbors: int) -> NDArray[np.intp]:
    """Indices, (n, k), of the rows nearest to every row, itself left out, the nearest first.

    Exact up to 12,000 rows. Beyond, rows of more than 32 features are reduced to 32 principal
    components. Random trees then give first neighbours, and neighbours of neighbours better ones
    (NN-descent [1]_), in about n log n. ``benchmarks/goals.py neighbours`` measures recall and
    time at 100,000 rows of 20 features: it finds 98 % of the five nearest if the features depend
    on six factors, and 61 % if they are independent, where nearest rows are hardly nearer than
    others.

    Parameters
    ----------
    rows : ndarray, shape (n, q)
        Features.
    n_neighbors : int
        k; less if there are too few rows.

    References
    ----------
    .. [1] Dong, Moses, Li (2011). Efficient k-nearest neighbor graph construction for generic
       similarity measures. WWW.

    Examples
    --------
    >>> import numpy as np
    >>> nearest_rows(np.array([[0.0], [1.0], [5.0]]), 1).ravel()
    array([1, 0, 1])
    """
    n = len(rows)
    k = min(n_neighbors, n - 1)
    if n <= EXACT_SEARCH_ROWS:
        search = NearestNeighbors(n_neighbors=k).fit(rows)
        return np.asarray(search.kneighbors(return_distance=False), dtype=np.intp)
    if rows.shape[1] > _COMPONENTS:
        rows = PCA(_COMPONENTS, random_state=0).fit_transform(rows)
    return descend(rows, k)


def descend(rows: NDArray[Any], k: int) -> NDArray[np.intp]:
    """Find the k nearest rows of every row by random trees and NN-descent; k < n."""
    n, rng = len(rows), np.random.default_rng(0)
    centred = np.ascontiguousarray(rows - rows.mean(axis=0), dtype=np.float32)
    moved = _plant(centred, rng).ravel()
    moved = moved[moved >= 0]
    centred = centred[moved]  # near rows are now near in memory
    kept = min(max(k, _KEPT), n - 1)
    near = np.full((n, kept), -1, dtype=np.int32)
    far = np.full((n, kept), np.inf, dtype=np.float32)
    fresh = np.zeros((n, kept), dtype=np.bool_)
    for _ in range(_TREES):
        _compare_leaves(centred, _plant(centred, rng), near, far, fresh)
    for i in np.flatnonzero((near < 0).any(axis=1)).tolist():  # in a leaf of few rows
        others = rng.choice(n - 1, min(n - 1, 4 * kept), replace=False)
        _compare_some(centred, i, others + (others >= i), near, far, fresh)
    for _ in range(_ROUNDS):
        if _join(centred, near, far, fresh) <= _STILL * n * k:
            break
    found = np.empty((n, k), dtype=np.intp)
    found[moved] = moved[near[:, :k]]
    return found


def _plant(rows: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.int32]:
    """Lay the rows out in the leaves of a random tree, (leaves, size); -1 if there is none.

    Every level halves all nodes along one direction, the difference of two random rows.
    """
    n = len(rows)
    levels = max(0, int(np.ceil(np.log2(n / _LEAF))))
    size = -(-n // 2**levels) * 2**levels
    nodes = np.full((1, size), -1, dtype=np.int32)
    nodes[0, :n] = np.arange(n)
    for _ in range(levels):
        first, second = rng.choice(n, 2, replace=False)
        along = np.append(rows @ (rows[first] - rows[second]), np.float32(np.inf))
        half = nodes.shape[1] // 2
        order = np.argpartition(along[nodes], half, axis=1)
        nodes = np.take_along_axis(nodes, order, axis=1).reshape(-1, half)
    return nodes


@nb.njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def _distance(rows, i, j):  # type: ignore[no-untyped-def]
    total = np.float32(0)
    for p in range(rows.shape[1]):
        apart = rows[i, p] - rows[j, p]
        total += apart * apart
    return total


@nb.njit(cache=True)
def _insert(near, far, fresh, i, j, distance):  # type: ignore[no-untyped-def]
    """Put j among the sorted neighbours of i; return whether it is new and near enough."""
    last = near.shape[1] - 1
    if distance >= far[i, last]:
        return False
    for p in range(last + 1):
        if near[i, p] == j:
            return False
    p = last
    while p > 0 and far[i, p - 1] > distance:
        near[i, p] = near[i, p - 1]
        far[i, p] = far[i, p - 1]
        fresh[i, p] = fresh[i, p - 1]
        p -= 1
    near[i, p] = j
    far[i, p] = distance
    fresh[i, p] = True
    return True


@nb.njit(cache=True)
def _compare_leaves(rows, leaves, near, far, fresh):  # type: ignore[no-untyped-def]
    """Compare all rows of a leaf with each other."""
    for leaf in leaves:
        for a in range(leaf.size):
            for b in range(a):
                i, j = leaf[a], leaf[b]
                if i >= 0 and j >= 0:
                    distance = _distance(rows, i, j)
                    _insert(near, far, fresh, i, j, distance)
                    _insert(near, far, fresh, j, i, distance)


@nb.njit(cache=True)
def _compare_some(rows, i, others, near, far, fresh):  # type: ignore[no-untyped-def]
    for j in others:
        _insert(near, far, fresh, i, np.int32(j), _distance(rows, i, j))


@nb.njit(cache=True)
def _join(rows, near, far, fresh):  # type: ignore[no-untyped-def]
    """Compare the neighbours of every row, and the rows that it is a neighbour of, each once.

    Two that both were compared at this row before are left out. Returns how many neighbours
    changed.
    """
    n, kept = near.shape
    most = 2 * kept
    group = np.full((n, most), -1, dtype=np.int32)
    recent = np.zeros((n, most), dtype=np.bool_)
    filled = np.zeros(n, dtype=np.int32)
    for i in range(n):
        for p in range(kept):
            group[i, p] = near[i, p]
            recent[i, p] = fresh[i, p]
        filled[i] = kept
    for i in range(n):
        for p in range(kept):
            j = near[i, p]
            mutual = False
            for q in range(kept):
                if near[j, q] == i:
                    recent[j, q] |= fresh[i, p]
                    mutual = True
            if not mutual and filled[j] < most:
                group[j, filled[j]] = i
                recent[j, filled[j]] = fresh[i, p]
                filled[j] += 1
    fresh[:] = False
    changed = 0
    for i in range(n):
        for a in range(filled[i]):
            for b in range(a + 1, filled[i]):
                if not (recent[i, a] or recent[i, b]):
                    continue
                one, other = group[i, a], group[i, b]
                distance = _distance(rows, one, other)
                changed += _insert(near, far, fresh, one, other, distance)
                changed += _insert(near, far, fresh, other, one, distance)
    return changed
