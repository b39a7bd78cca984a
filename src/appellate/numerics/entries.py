"""The candidate entries of an (n, l) matrix, row by row: all that a loop has to carry."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numba as nb
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Values = NDArray[np.floating[Any]]


class CandidateEntries:
    """Positions of the candidates of n samples among l labels.

    A confidence is zero outside the candidates, so it is carried as the 1-D array of its
    ``nnz`` candidate entries, row after row (the ``data`` of a CSR matrix), which is several
    times shorter than n x l. Every row has at least one entry.

    Parameters
    ----------
    candidates : ndarray of bool, shape (n, l)
        True where the label is a candidate of the sample.

    Attributes
    ----------
    shape : tuple of int
        ``(n, l)``.
    rows, labels : ndarray of int, shape (nnz,)
        Sample and label of every entry.
    indptr : ndarray of int, shape (n + 1,)
        The entries of sample i are ``indptr[i]:indptr[i + 1]``.
    counts : ndarray of int, shape (n,)
        Number of candidates of every sample.

    Examples
    --------
    >>> import numpy as np
    >>> entries = CandidateEntries(np.array([[True, False, True], [False, True, False]]))
    >>> entries.gather(np.array([[0.2, 9.0, 0.8], [9.0, 1.0, 9.0]]))
    array([0.2, 0.8, 1. ])
    """

    def __init__(self, candidates: NDArray[np.bool_]) -> None:
        self.shape: tuple[int, int] = candidates.shape
        self.rows, self.labels = np.nonzero(candidates)
        self.counts = np.count_nonzero(candidates, axis=1)
        self.indptr = np.concatenate(([0], np.cumsum(self.counts)))

    def __len__(self) -> int:
        """Return the number of candidate entries."""
        return len(self.labels)

    def gather(self, matrix: NDArray[Any]) -> Values:
        """Read the candidate entries of an (n, l) matrix."""
        values: Values = matrix[self.rows, self.labels]
        return values

    def scatter(self, values: NDArray[Any]) -> NDArray[Any]:
        """Write candidate entries into an (n, l) matrix of zeros."""
        matrix = np.zeros(self.shape, dtype=values.dtype)
        matrix[self.rows, self.labels] = values
        return matrix

    def to_sparse(self, values: Values) -> sp.csr_array:
        """View candidate entries as a sparse (n, l) matrix."""
        return sp.csr_array((values, self.labels, self.indptr), shape=self.shape)

    def uniform(self, dtype: Any = np.float64) -> Values:
        """Equal confidence for every candidate of a sample (the paper's P at the start)."""
        return np.repeat(1.0 / self.counts.astype(dtype), self.counts)

    def spread(self, per_row: NDArray[Any]) -> NDArray[Any]:
        """Repeat one number per sample over the sample's entries."""
        return np.repeat(per_row, self.counts)

    def row_sum(self, values: Values) -> Values:
        """Sum the entries of every sample, (n,)."""
        return np.add.reduceat(values, self.indptr[:-1])

    def row_max(self, values: Values) -> Values:
        """Take the largest entry of every sample, (n,)."""
        return np.maximum.reduceat(values, self.indptr[:-1])

    def argmax(self, values: Values) -> NDArray[np.intp]:
        """Label of every sample's largest entry, (n,); ties go to the first label."""
        return self.labels[first_max(values, self.indptr)]

    def decide(self, values: Values) -> tuple[NDArray[np.intp], int]:
        """Return the label of every sample's largest entry, (n,), and how many rows are tied.

        Ties go to the first label.
        """
        best = first_max(values, self.indptr)
        is_best = values == np.repeat(values[best], self.counts)
        n_best = np.add.reduceat(is_best.astype(np.intp), self.indptr[:-1])
        return self.labels[best], int(np.count_nonzero(n_best > 1))

    @cached_property
    def by_label(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Order of the entries label after label, and where each label starts, (l + 1,)."""
        order = np.argsort(self.labels, kind="stable")
        starts = np.searchsorted(self.labels[order], np.arange(self.shape[1] + 1))
        return order, starts


@nb.njit(cache=True)
def first_max(values, indptr):  # type: ignore[no-untyped-def]
    """Find the position of every sample's largest entry; ties go to the first."""
    out = np.empty(indptr.size - 1, np.intp)
    for i in range(out.size):
        best = indptr[i]
        for entry in range(indptr[i] + 1, indptr[i + 1]):
            if values[entry] > values[best]:
                best = entry
        out[i] = best
    return out


def order_of_appearance(candidates: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Order the labels as they come up in the rows, whatever their columns.

    First the candidates of the first row, among them first those that are candidates of the
    second row, and so on: the columns read as binary numbers, from the largest down. Only
    labels that no row tells apart keep the order of their columns.

    Examples
    --------
    >>> import numpy as np
    >>> order_of_appearance(np.array([[0, 1, 0, 1], [1, 0, 0, 1]], dtype=bool))
    array([3, 1, 0, 2])
    """
    columns = [column.tobytes() for column in np.packbits(candidates, axis=0).T]
    return np.array(sorted(range(len(columns)), key=columns.__getitem__, reverse=True))
