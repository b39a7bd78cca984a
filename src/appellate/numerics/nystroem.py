"""Nystroem features: a kernel of n rows by way of m landmarks among them.

With the kernel matrix ``K_mm = L L'`` of the landmarks and ``K_nm`` of all rows with them, the
features ``F = K_nm L'^-1`` have the inner products ``F F' = K_nm K_mm^-1 K_mn``, which is the
kernel matrix itself where all rows are landmarks [1]_. scikit-learn's `Nystroem` makes the same
features up to a rotation; here they are made block by block, and turned so that the centred
features are orthonormal: ``F - 1 f' = Z diag(sqrt(s)) V'``. In these coordinates the ridge
smoother is

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
from sklearn.utils import gen_batches

from appellate.numerics.blocks import Blocks, moments, turn
from appellate.numerics.kernels import Gaussian, Kernel, mean_distance, squared_distances

SAMPLE_ROWS = 4096  # whose mean distance stands for that of all
_BATCH_BYTES = 8 * 2**20


@dataclass(frozen=True)
class Basis:
    """Orthonormal centred features of the training rows, and how new rows get theirs.

    Attributes
    ----------
    features : Blocks
        Z, (n, r), with orthonormal columns that sum to zero.
    strengths : ndarray, shape (r,)
        s, the eigenvalues of the centred features' Gram matrix.
    kernel : Kernel
        What the features stand for.
    landmarks : ndarray, shape (m, q)
        Rows that the kernel compares with.
    turn : ndarray, shape (m, r)
        ``Z = k(X, landmarks) turn - offset``.
    offset : ndarray, shape (r,)
        See `turn`.
    common : float
        What the features of the training rows have in common where they do not differ:
        ``F F' = (Z + 1 offset') diag(s) (Z + 1 offset')' + common``. A free bias takes it up.
    rest : ndarray, shape (m,)
        ``k(X, landmarks) rest`` is `common` for every training row.
    """

    features: Blocks
    strengths: NDArray[np.float64]
    kernel: Kernel
    landmarks: NDArray[np.float64]
    turn: NDArray[np.float64]
    offset: NDArray[np.float64]
    common: float
    rest: NDArray[np.float64]


def sample_rows(rows: Blocks, size: int) -> NDArray[Any]:
    """Return a fixed uniform sample of the rows, in their order; all of them if they are few.

    Examples
    --------
    >>> import numpy as np
    >>> from appellate.numerics.blocks import ArrayBlocks
    >>> sample_rows(ArrayBlocks(np.array([[1.0], [2.0]])), 5)
    array([[1.],
           [2.]])
    """
    n = len(rows)
    indices = np.arange(n)
    if size < n:
        indices = np.sort(np.random.default_rng(0).choice(n, size, replace=False, shuffle=False))
    return rows.take(indices)


def choose_landmarks(rows: Blocks, n_landmarks: int) -> tuple[NDArray[np.float64], float]:
    """Draw landmarks from the rows, uniformly, and estimate the mean distance of all pairs.

    Parameters
    ----------
    rows : Blocks
        The training rows.
    n_landmarks : int
        At most so many; all rows if they are fewer.

    Returns
    -------
    ndarray, shape (m, q)
        The landmarks.
    float
        Mean distance, of a sample of 4096 rows if there are more.
    """
    m = min(n_landmarks, len(rows))
    sample = sample_rows(rows, max(SAMPLE_ROWS, 4 * m))
    rng = np.random.RandomState(0)
    some = sample[np.sort(rng.permutation(len(sample))[:SAMPLE_ROWS])].astype(np.float64)
    if m < len(rows):
        sample = sample[np.sort(rng.permutation(len(sample))[:m])]
    return sample.astype(np.float64), mean_distance(squared_distances(some))


def nystroem_basis(
    rows: Blocks, landmarks: NDArray[np.float64], kernel: Gaussian, cache_dir: Any = None
) -> Basis:
    """Make the features of all rows from their kernel values with the landmarks.

    Landmarks that add nothing to the others (duplicates among them) are left out.

    Cost: n m kernel values and n m^2 multiply-adds in double precision, n m^2 in single, and
    some 10 m^3, in blocks of rows. Memory: n m features in float32, in `cache_dir` if it is
    given.
    """
    landmarks, factor = _factor(kernel(landmarks, landmarks), landmarks)
    centre = factor.mean(axis=0)  # the landmarks' own features are the rows of the factor
    make = partial(_whitened, kernel=kernel, landmarks=landmarks, factor=factor, centre=centre)
    features = rows.make(make, len(factor), np.float32, cache_dir)
    strengths, vectors, mean = _orthonormalize(features)
    back = partial(la.solve_triangular, factor, lower=True, trans="T")
    offset, mean = mean @ vectors + centre @ vectors, mean + centre
    rest = mean - (vectors * strengths) @ (vectors.T @ mean)  # across all that differs
    way = (back(vectors), offset, float(rest @ rest), back(rest))
    return Basis(features, strengths, kernel, landmarks, *way)


def _factor(
    gram: NDArray[np.float64], landmarks: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Landmarks that differ, the most different first, and the Cholesky factor of their kernel."""
    factor, order, rank, _ = la.lapack.dpstrf(gram, lower=1)
    return landmarks[order[:rank] - 1], np.asfortranarray(np.tril(factor[:rank, :rank]))


def _orthonormalize(
    features: Blocks,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Overwrite F by ``Z = (F - 1 mean') turn``; return strengths, turn and mean.

    Features are stored about a centre near their mean, so that single precision keeps the
    digits in which rows differ.
    """
    total, gram = moments(features)
    n = features.shape[0]
    gram -= np.outer(total, total / n)
    strengths, vectors = la.eigh(gram, overwrite_a=True)
    kept = strengths > len(gram) * np.finfo(np.float64).eps * max(strengths[-1], 0.0)
    strengths, vectors = strengths[kept], vectors[:, kept] / np.sqrt(strengths[kept])
    turn(features, vectors, total / n @ vectors)
    return strengths, vectors, total / n


def _whitened(
    block: NDArray[Any],
    kernel: Kernel,
    landmarks: NDArray[np.float64],
    factor: NDArray[np.float64],
    centre: NDArray[np.float64],
) -> NDArray[np.float32]:
    """``k(block, landmarks) L'^-1 - 1 centre'``, bit by bit in double precision."""
    out = np.empty((len(block), len(landmarks)), dtype=np.float32)
    widest = max(block.shape[1], len(landmarks))
    for rows in gen_batches(len(block), max(1, _BATCH_BYTES // (8 * widest))):
        values = kernel(block[rows].astype(np.float64, copy=False), landmarks)
        out[rows] = la.blas.dtrsm(1.0, factor, values.T, lower=1, overwrite_b=1).T - centre
    return out
