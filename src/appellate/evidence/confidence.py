"""The paper's small equations: initial confidence and blur.

The public functions take (n, l) matrices; the loops use the same equations on candidate
entries alone (`normalize_entries`, `blur_entries`, `reduce_candidates`).
`normalize_rows` and `normalize_entries` divide by a sum that may be zero.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from appellate.numerics.entries import CandidateEntries, Values

__all__ = ["blur", "initial_confidence"]


def initial_confidence(candidates: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Spread each sample's confidence evenly over its candidates (Eq. 1).

    Parameters
    ----------
    candidates : ndarray of bool, shape (n, l)
        True where the label is a candidate; every row has at least one.

    Returns
    -------
    ndarray, shape (n, l)
        ``1 / |S_i|`` on the candidates of sample i, zero elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> initial_confidence(np.array([[True, True, False], [False, False, True]]))
    array([[0.5, 0.5, 0. ],
           [0. , 0. , 1. ]])
    """
    entries = CandidateEntries(np.asarray(candidates, dtype=bool))
    return entries.scatter(entries.uniform())


def blur(
    confidence: NDArray[Any], candidates: NDArray[np.bool_], temperature: float | None = -1.0
) -> NDArray[Any]:
    """Soften a confidence within its candidates (Eqs. 3 and 9).

    ``O = rownorm(exp(e^k P) * Y)`` with the sum as norm. For a temperature k < 0 the gap
    between any two candidates shrinks and their order stays.

    Parameters
    ----------
    confidence : ndarray, shape (n, l)
        Any finite numbers; only those of candidates are read.
    candidates : ndarray of bool, shape (n, l)
        True where the label is a candidate; every row has at least one.
    temperature : float or None, default=-1.0
        The paper's k; the exponent is e^k times the confidence (0.37 for k = -1). None
        turns blurring off: negative entries become zero and rows are divided by their sum
        (uniform where that is zero).

    Returns
    -------
    ndarray, shape (n, l)
        Rows on the simplex over the candidates.

    Examples
    --------
    >>> import numpy as np
    >>> sure = np.array([[1.0, 0.0, 0.0]])
    >>> blur(sure, np.array([[True, True, False]])).round(3)
    array([[0.591, 0.409, 0.   ]])
    """
    entries = CandidateEntries(np.asarray(candidates, dtype=bool))
    values = entries.gather(np.asarray(confidence))
    values = values if values.dtype.kind == "f" else values.astype(float)
    return entries.scatter(blur_entries(values, entries, temperature))


def blur_entries(values: Values, entries: CandidateEntries, temperature: float | None) -> Values:
    """Blur candidate entries; see `blur`."""
    if temperature is None:
        positive = np.maximum(values, 0)
        top = np.maximum(entries.row_max(positive), np.finfo(values.dtype).tiny)
        return normalize_entries(positive / entries.spread(top), entries)
    largest = float(np.finfo(values.dtype).max)
    # e^k must stay finite, because it is multiplied by the zero distance of the top label.
    sharpness = largest if temperature >= math.log(largest) else math.exp(temperature)
    with np.errstate(over="ignore", under="ignore"):
        below_top = values - entries.spread(entries.row_max(values))
        weights = np.exp(values.dtype.type(sharpness) * below_top)
    return weights / entries.spread(entries.row_sum(weights))  # the top label's weight is 1


def normalize_entries(
    values: Values, entries: CandidateEntries, otherwise: Values | None = None
) -> Values:
    """Divide every sample's entries by their sum.

    Where that is zero, they are those of `otherwise`, by default all the same.
    """
    totals = entries.spread(entries.row_sum(values))
    if (totals > 0).all():
        return values / totals
    even = entries.uniform(values.dtype) if otherwise is None else otherwise
    return _divide(values, totals, even)


def normalize_rows(values: Values, otherwise: Any = None) -> Values:
    """Divide every row of a matrix by its sum; otherwise even, or what is given.

    Examples
    --------
    >>> import numpy as np
    >>> normalize_rows(np.array([[1.0, 3.0], [0.0, 0.0]]))
    array([[0.25, 0.75],
           [0.5 , 0.5 ]])
    """
    even = values.dtype.type(1 / values.shape[1]) if otherwise is None else otherwise
    return _divide(values, values.sum(axis=1, keepdims=True), even)


def _divide(values: Values, totals: Values, otherwise: Any) -> Values:
    empty = totals <= 0
    return np.where(empty, otherwise, values / np.where(empty, values.dtype.type(1), totals))


def one_hot(scores: NDArray[Any]) -> NDArray[Any]:
    """Set the largest entry of every row to one, all others to zero."""
    winners = np.zeros_like(scores)
    winners[np.arange(len(scores)), scores.argmax(axis=1)] = 1
    return winners


def reduce_candidates(
    entries: CandidateEntries, initial: Values, supervision: Values | None
) -> sp.csr_array:
    """Drop the candidates that supervision rates below their initial confidence.

    The paper's operator ``G(O - P)``, kept to the candidates; both sum to one over them, so
    at least one candidate survives.
    """
    kept = np.ones(len(entries), dtype=initial.dtype)
    if supervision is not None:
        kept[supervision < initial - 8 * np.finfo(initial.dtype).eps] = 0
    reduced = entries.to_sparse(kept).copy()  # eliminate_zeros writes into the indices
    reduced.eliminate_zeros()
    return reduced
