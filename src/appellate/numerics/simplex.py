"""Euclidean projection onto the probability simplex, over all labels or over the candidates."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from appellate.numerics.entries import CandidateEntries, Values

_INSERTION_SORT_LIMIT = 32


@nb.njit(cache=True)
def _project_segments(values, indptr, out):  # type: ignore[no-untyped-def]
    """Project every segment ``values[indptr[i]:indptr[i + 1]]`` onto the simplex."""
    longest = 0
    for i in range(indptr.size - 1):
        longest = max(longest, indptr[i + 1] - indptr[i])
    descending = np.empty(longest, values.dtype)
    for i in range(indptr.size - 1):
        start, stop = indptr[i], indptr[i + 1]
        size = stop - start
        top = values[start]
        for p in range(start + 1, stop):
            top = max(top, values[p])
        if size <= _INSERTION_SORT_LIMIT:
            for p in range(size):
                value = values[start + p] - top
                q = p
                while q > 0 and descending[q - 1] < value:
                    descending[q] = descending[q - 1]
                    q -= 1
                descending[q] = value
        else:
            descending[:size] = -np.sort(top - values[start:stop])
        total = values.dtype.type(0)
        threshold = values.dtype.type(0)
        for p in range(size):
            total += descending[p]
            candidate = (total - 1) / (p + 1)
            if descending[p] <= candidate:
                break
            threshold = candidate
        for p in range(start, stop):
            out[p] = max(values[p] - top - threshold, 0)


def project_entries(values: Values, entries: CandidateEntries) -> Values:
    """Project every sample's candidate entries onto the simplex.

    Solves ``min |p - v|^2`` subject to ``p >= 0``, ``sum p = 1`` for every sample, exactly,
    by sorting and thresholding [1]_. Values are shifted by their largest first, so that huge
    inputs lose no digits. Cost: O(nnz log c) for c candidates a sample.

    Parameters
    ----------
    values : ndarray, shape (nnz,)
        Candidate entries of the matrix to project.
    entries : CandidateEntries
        Where they stand.

    Returns
    -------
    ndarray, shape (nnz,)
        The projected entries, in the dtype of `values`.

    References
    ----------
    .. [1] Held, Wolfe, Crowder (1974). Validation of subgradient optimization.
       Mathematical Programming 6.

    Examples
    --------
    >>> import numpy as np
    >>> entries = CandidateEntries(np.array([[True, False, True], [False, True, False]]))
    >>> project_entries(np.array([0.4, 1.0, -3.0]), entries)
    array([0.2, 0.8, 1. ])
    """
    out = np.empty_like(values)
    _project_segments(values, entries.indptr, out)
    return out


def project_rows(matrix: NDArray[Any]) -> NDArray[Any]:
    """Project every row of an (n, l) matrix onto the simplex over all l labels.

    The order of a row is kept, so the largest score stays the largest probability.

    Examples
    --------
    >>> import numpy as np
    >>> project_rows(np.array([[0.5, 0.7, -0.2]]))
    array([[0.4, 0.6, 0. ]])
    """
    n, l = matrix.shape
    out = np.empty(n * l, dtype=matrix.dtype)
    _project_segments(np.ravel(matrix), np.arange(n + 1) * l, out)
    return out.reshape(n, l)
