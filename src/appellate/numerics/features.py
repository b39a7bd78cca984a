"""Tall features of the training rows, and the passes over them that a step needs.

A smoother of low rank, ``S = 1 1'/n + Z diag(w) Z'``, maps candidate entries of D to those of
``S D`` in two passes over the (n, r) features Z: one *gathers* ``D'Z``, (l, r), touching for
every sample the few labels that it has, one *evaluates* the candidate entries of ``Z C'`` for
(l, r) coefficients C. Nothing of size n x n or n x l is formed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numba as nb
import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from appellate.numerics.entries import CandidateEntries, Values
from appellate.numerics.threads import ordered_map

Part = tuple[Any, ...]
_BLOCK_BYTES = 16 * 2**20


class Features(ABC):
    """The (n, r) features Z of fixed rows, wherever they are kept, in blocks of rows.

    Attributes
    ----------
    shape : tuple of int
        ``(n, r)``.
    blocks : list of slice
        Rows of every block.
    dtype : dtype
        Of the features.
    """

    shape: tuple[int, int]
    dtype: Any
    blocks: list[slice]
    _known: tuple[CandidateEntries, Sequence[Any]] | None = None

    @abstractmethod
    def _map(self, function: Callable[..., Any], parts: Sequence[Part], *common: Any) -> Any:
        """Yield ``function(block of Z, *part, *common)`` for every block, in order."""

    def _lay_out(self, pieces: list[Part]) -> Sequence[Any]:
        """Bring what every pass needs of the candidates to where the blocks are."""
        return pieces

    def _candidates(self, entries: CandidateEntries) -> Sequence[Any]:
        """Labels and row starts of the candidates in every block; kept for the next pass."""
        if self._known is None or self._known[0] is not entries:
            pieces = []
            for rows in self.blocks:
                indptr = entries.indptr[rows.start : rows.stop + 1]
                labels = entries.labels[indptr[0] : indptr[-1]].astype(np.int32)
                pieces.append((labels, (indptr - indptr[0]).astype(np.int32)))
            self._known = (entries, self._lay_out(pieces))
        return self._known[1]

    def gather(self, entries: CandidateEntries, values: Values) -> NDArray[np.float64]:
        """``D'Z``, (l, r), of a matrix D given by its candidate entries."""
        total = np.zeros((entries.shape[1], self.shape[1]))
        parts = [
            (candidates, values[entries.indptr[rows.start] : entries.indptr[rows.stop]])
            for rows, candidates in zip(self.blocks, self._candidates(entries), strict=True)
        ]
        for part in self._map(gather_block, parts, entries.shape[1]):
            total += part
        return total

    def evaluate(
        self, entries: CandidateEntries, coefficients: NDArray[Any], shift: NDArray[Any]
    ) -> Values:
        """Candidate entries of ``Z C' + 1 shift'`` for (l, r) coefficients C."""
        parts = [(candidates,) for candidates in self._candidates(entries)]
        out = np.empty(len(entries), dtype=coefficients.dtype)
        results = self._map(evaluate_block, parts, coefficients, shift)
        for rows, part in zip(self.blocks, results, strict=True):
            out[entries.indptr[rows.start] : entries.indptr[rows.stop]] = part
        return out

    def product(self, coefficients: NDArray[Any], shift: NDArray[Any]) -> NDArray[Any]:
        """``Z C' + 1 shift'``, (n, l): the one matrix of this size that a fit leaves behind."""
        out = np.empty((self.shape[0], len(coefficients)), dtype=coefficients.dtype)
        parts: list[Part] = [()] * len(self.blocks)
        results = self._map(product_block, parts, coefficients, shift)
        for rows, part in zip(self.blocks, results, strict=True):
            out[rows] = part
        return out

    def gather_dense(self, targets: NDArray[Any]) -> NDArray[np.float64]:
        """``T'Z``, (l, r), of a whole matrix of targets."""
        total = np.zeros((targets.shape[1], self.shape[1]))
        for part in self._map(_dense_block, [(targets[rows],) for rows in self.blocks]):
            total += part
        return total

    def toarray(self) -> NDArray[Any]:
        """Return all features in the memory of this process, to be read only."""
        parts: list[Part] = [()] * len(self.blocks)
        results = deque(self._map(_whole_block, parts))
        out = np.empty(self.shape, dtype=self.dtype)
        for rows in self.blocks:
            out[rows] = results.popleft()  # given up as it is copied
        return out

    @abstractmethod
    def moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Column sums, (r,), and ``Z'Z``, (r, r), in double precision."""

    @abstractmethod
    def turn(self, turn: NDArray[Any], offset: NDArray[Any]) -> None:
        """Overwrite Z by ``Z turn - 1 offset'``, which may be narrower but not wider."""

    def weighted_lengths(self, weights: NDArray[Any]) -> NDArray[np.float64]:
        """Diagonal of ``Z diag(w) Z'``, (n,)."""
        parts: list[Part] = [()] * len(self.blocks)
        return np.concatenate(list(self._map(_length_block, parts, weights)))


class StoredFeatures(Features):
    """Features in memory, or in a file without a name.

    The file is unlinked as soon as it is open, so that nothing is left of it when the process
    ends, however it ends. It is read block by block: it takes no address space.

    Parameters
    ----------
    shape : tuple of int
        ``(n, r)``.
    dtype : dtype
        Of the features.
    cache_dir : str or path, default=None
        Folder of the file; memory if None.
    matrix : ndarray, shape (n, r), default=None
        Features that are there already.

    Raises
    ------
    OSError
        If the folder has no room for them.

    Examples
    --------
    >>> import numpy as np
    >>> features = StoredFeatures((2, 1), np.float32)
    >>> features.write(0, np.array([[1.0], [2.0]]))
    >>> entries = CandidateEntries(np.array([[True, True], [False, True]]))
    >>> features.gather(entries, np.array([0.5, 0.5, 1.0]))
    array([[0.5],
           [2.5]])
    """

    def __init__(
        self,
        shape: tuple[int, int],
        dtype: Any,
        cache_dir: Any = None,
        matrix: NDArray[Any] | None = None,
    ) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self._row_bytes = max(1, shape[1] * self.dtype.itemsize)
        self._matrix = matrix
        if matrix is None and cache_dir is None:
            self._matrix = np.empty(shape, dtype=self.dtype)
        elif matrix is None:
            self._file = _open_unnamed(cache_dir, shape[0] * self._row_bytes)
            weakref.finalize(self, self._file.close)
        self.blocks = list(gen_batches(shape[0], max(1, _BLOCK_BYTES // self._row_bytes)))

    def write(self, start: int, block: NDArray[Any]) -> None:
        """Keep the features of the rows from `start` on."""
        self._write(start * self.shape[1], block)

    def _write(self, position: int, block: NDArray[Any]) -> None:
        if self._matrix is not None:
            self._matrix.ravel()[position : position + block.size] = block.ravel()
            return
        data: Any = np.ascontiguousarray(block, dtype=self.dtype).ravel().view(np.uint8)
        offset = position * self.dtype.itemsize
        while len(data):
            written = os.pwrite(self._file.fileno(), data, offset)
            data, offset = data[written:], offset + written

    def read(self, rows: slice) -> NDArray[Any]:
        """Return the features of some rows; a view if they are in memory."""
        if self._matrix is not None:
            return self._matrix[rows]
        out = np.empty((rows.stop - rows.start, self.shape[1]), dtype=self.dtype)
        data: Any = out.ravel().view(np.uint8)
        offset = rows.start * self._row_bytes
        while len(data):
            count = os.preadv(self._file.fileno(), [data], offset)
            if count == 0:
                raise OSError("the file of features in cache_dir ended early; fit again.")
            data, offset = data[count:], offset + count
        return out

    def toarray(self) -> NDArray[Any]:  # noqa: D102
        return self.read(slice(0, self.shape[0]))

    def moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # noqa: D102
        total, gram = np.zeros(self.shape[1]), np.zeros((self.shape[1], self.shape[1]), order="F")
        for rows in self.blocks:
            block = self.read(rows).astype(np.float64)
            total += block.sum(axis=0)
            gram = la.blas.dsyrk(1.0, block.T, beta=1.0, c=gram, lower=1, overwrite_c=1)
        gram += np.tril(gram, -1).T
        return total, gram

    def turn(self, turn: NDArray[Any], offset: NDArray[Any]) -> None:  # noqa: D102
        parts: list[Part] = [()] * len(self.blocks)
        turn, shift = turn.astype(self.dtype), -offset.astype(self.dtype)
        results = self._map(product_block, parts, turn.T, shift)
        for rows, block in zip(self.blocks, results, strict=True):
            # Narrower rows are packed towards the front, behind those that are still read.
            self._write(rows.start * block.shape[1], block)
        self.shape = (self.shape[0], turn.shape[1])
        self._row_bytes = max(1, turn.shape[1] * self.dtype.itemsize)
        if self._matrix is not None:
            self._matrix = self._matrix.ravel()[: self.shape[0] * self.shape[1]]
            self._matrix = self._matrix.reshape(self.shape)

    def _map(
        self, function: Callable[..., Any], parts: Sequence[Part], *common: Any
    ) -> Iterator[Any]:
        def work(item: tuple[slice, Part]) -> Any:
            rows, part = item
            return function(self.read(rows), *part, *common)

        blas = function in (product_block, _dense_block)
        return ordered_map(work, zip(self.blocks, parts, strict=True), blas=blas)


def _open_unnamed(folder: Any, size: int) -> Any:
    free = shutil.disk_usage(folder).free
    if size > free:
        raise OSError(
            f"cache_dir '{folder}' has {free / 1e9:.1f} GB free, but the features take "
            f"{size / 1e9:.1f} GB. Name another folder or lower n_landmarks."
        )
    return tempfile.TemporaryFile(prefix=".appellate-", dir=folder)


# -- one block of rows --------------------------------------------------------------------


def gather_block(
    features: NDArray[Any], candidates: Part, values: Values, n_labels: int
) -> NDArray[np.float64]:
    """``D'Z`` of one block, (l, r), added up in double precision."""
    out = np.zeros((n_labels, features.shape[1]))
    labels, indptr = candidates
    _gather(features, labels, indptr, values, out)
    return out


def evaluate_block(
    features: NDArray[Any], candidates: Part, coefficients: NDArray[Any], shift: NDArray[Any]
) -> Values:
    """Candidate entries of ``Z C' + 1 shift'`` of one block."""
    labels, indptr = candidates
    out = np.empty(len(labels), dtype=coefficients.dtype)
    _evaluate(features, labels, indptr, coefficients, shift, out)
    return out


def product_block(
    features: NDArray[Any], coefficients: NDArray[Any], shift: NDArray[Any]
) -> NDArray[Any]:
    """``Z C' + 1 shift'`` of one block."""
    return np.asarray(features @ coefficients.T + shift)


def _whole_block(features: NDArray[Any]) -> NDArray[Any]:
    return features


def _dense_block(features: NDArray[Any], targets: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(targets.T @ features)


def _length_block(features: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.float64]:
    return np.einsum("ij,ij,j->i", features, features, weights)


@nb.njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _gather(features, labels, indptr, values, out):  # type: ignore[no-untyped-def]
    for i in range(indptr.size - 1):
        for entry in range(indptr[i], indptr[i + 1]):
            value = values[entry]
            if value != 0:
                row = out[labels[entry]]
                for p in range(row.size):
                    row[p] += value * features[i, p]


@nb.njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _evaluate(features, labels, indptr, coefficients, shift, out):  # type: ignore[no-untyped-def]
    for i in range(indptr.size - 1):
        for entry in range(indptr[i], indptr[i + 1]):
            row = coefficients[labels[entry]]
            total = shift[labels[entry]]
            for p in range(row.size):
                total += row[p] * features[i, p]
            out[entry] = total
