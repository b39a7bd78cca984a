"""Nystroem features: a kernel of n rows by way of m landmarks among them.

With the kernel matrix ``K_mm`` of the landmarks and ``K_nm`` of all rows with them, the features
``F = K_nm K_mm^-1/2`` have the inner products ``F F' = K_nm K_mm^-1 K_mn``, which is the kernel
matrix itself where all rows are landmarks [1]_. scikit-learn's `Nystroem` makes the same
features; here they are made block by block, and turned so that the centred features are
orthonormal: ``F - 1 f' = Z diag(sqrt(s)) V'``. In these coordinates the ridge smoother is

    S = 1 1'/n + Z diag(s / (s + ridge)) Z'

for every ridge, so that models of different ridges share the features Z.

References
----------
.. [1] Williams, Seeger (2000). Using the Nystroem method to speed up kernel machines. NIPS.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray
from sklearn.cluster import kmeans_plusplus
from sklearn.utils import gen_batches

from appellate.numerics.features import Features
from appellate.numerics.kernels import (
    GaussianKernel,
    Kernel,
    mean_distance,
    squared_distances,
)
from appellate.numerics.rows import Rows

_BATCH_BYTES = 8 * 2**20
_SAMPLE = 4096  # rows whose mean distance stands for that of all


@dataclass(frozen=True)
class Basis:
    """Orthonormal centred features of the training rows, and how new rows get theirs.

    Attributes
    ----------
    features : Features
        Z, (n, r), with orthonormal columns that sum to zero.
    strengths : ndarray, shape (r,)
        s, the eigenvalues of the centred features' Gram matrix.
    kernel : Kernel or None
        None where the rows themselves are the features.
    landmarks : ndarray, shape (m, q), or None
        Rows that the kernel compares with.
    turn : ndarray, shape (m, r)
        ``Z = k(X, landmarks) turn - offset``.
    offset : ndarray, shape (r,)
        See `turn`.
    """

    features: Features
    strengths: NDArray[np.float64]
    kernel: Kernel | None
    landmarks: NDArray[np.float64] | None
    turn: NDArray[np.float64]
    offset: NDArray[np.float64]


def sample_rows(rows: Rows, size: int) -> NDArray[Any]:
    """Return a fixed uniform sample of the rows, in their order; all of them if they are few.

    Examples
    --------
    >>> import numpy as np
    >>> from appellate.numerics.rows import ArrayRows
    >>> sample_rows(ArrayRows(np.array([[1.0], [2.0]])), 5)
    array([[1.],
           [2.]])
    """
    n = len(rows)
    indices = np.arange(n)
    if size < n:
        indices = np.sort(np.random.default_rng(0).choice(n, size, replace=False, shuffle=False))
    return rows.take(indices)


def choose_landmarks(
    rows: Rows, n_landmarks: int, method: str
) -> tuple[NDArray[np.float64], float]:
    """Choose landmarks among the rows, and estimate the mean distance of all pairs.

    Parameters
    ----------
    rows : Rows
        The training rows.
    n_landmarks : int
        At most so many; all rows if they are fewer.
    method : {"uniform", "k-means++"}
        A uniform sample, or one of rows far from one another, drawn from four times as many.

    Returns
    -------
    ndarray, shape (m, q)
        The landmarks.
    float
        Mean distance, of a sample of 4096 rows if there are more.
    """
    m = min(n_landmarks, len(rows))
    sample = sample_rows(rows, max(_SAMPLE, 4 * m)).astype(np.float64)
    rng = np.random.RandomState(0)
    some = sample[np.sort(rng.permutation(len(sample))[:_SAMPLE])]
    if m == len(rows):
        chosen = sample
    elif method == "uniform":
        chosen = sample[np.sort(rng.permutation(len(sample))[:m])]
    else:
        chosen = kmeans_plusplus(sample, m, random_state=0)[0]
    return chosen, mean_distance(squared_distances(some))


def nystroem_basis(
    rows: Rows, landmarks: NDArray[np.float64], kernel: GaussianKernel, cache_dir: Any = None
) -> Basis:
    """Make the features of all rows from their kernel values with the landmarks.

    Directions in which the landmarks do not differ (duplicates among them) are left out.

    Cost: 5 n m^2 / 2 multiply-adds and 2 n m kernel values, in double precision, in blocks of
    rows. Memory: n r features in float32, in `cache_dir` if it is given.
    """
    values, vectors = la.eigh(kernel(landmarks, landmarks))
    kept = values > len(values) * np.finfo(np.float64).eps * values[-1]
    root = vectors[:, kept] / np.sqrt(values[kept])  # (m, r)
    return _basis(rows, kernel, landmarks, root, cache_dir)


def linear_basis(rows: Rows, cache_dir: Any = None) -> Basis:
    """Take the rows themselves as features: the linear kernel."""
    return _basis(rows, None, None, np.eye(rows.shape[1]), cache_dir)


def _basis(
    rows: Rows,
    kernel: Kernel | None,
    landmarks: NDArray[np.float64] | None,
    root: NDArray[np.float64],
    cache_dir: Any,
) -> Basis:
    raw = partial(raw_features, kernel=kernel, landmarks=landmarks)
    total, gram = rows.accumulate(partial(_moments, raw=raw, root=root))
    mean = total / len(rows)
    gram -= len(rows) * np.outer(mean, mean)
    strengths, vectors = la.eigh(gram)
    kept = strengths > max(gram.shape) * np.finfo(np.float64).eps * max(strengths[-1], 0.0)
    strengths, vectors = strengths[kept], vectors[:, kept] / np.sqrt(strengths[kept])
    turn, offset = root @ vectors, mean @ vectors
    make = partial(_turned, raw=raw, turn=turn, offset=offset)
    features = rows.features(make, len(strengths), cache_dir)
    return Basis(features, strengths, kernel, landmarks, turn, offset)


def raw_features(
    block: NDArray[Any], kernel: Kernel | None, landmarks: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Kernel values of a block with the landmarks, or the block itself; double precision.

    Wide blocks are converted bit by bit.
    """
    if kernel is None or landmarks is None:
        return block.astype(np.float64, copy=False)
    out = np.empty((len(block), len(landmarks)))
    for rows in gen_batches(len(block), max(1, _BATCH_BYTES // (8 * block.shape[1]))):
        out[rows] = kernel(block[rows].astype(np.float64, copy=False), landmarks)
    return out


def _moments(block: NDArray[Any], raw: Any, root: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    features = raw(block) @ root
    return features.sum(axis=0), features.T @ features


def _turned(
    block: NDArray[Any], raw: Any, turn: NDArray[Any], offset: NDArray[Any]
) -> NDArray[np.float32]:
    return (raw(block) @ turn - offset).astype(np.float32)
