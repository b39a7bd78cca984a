"""Projection onto the probability simplex, and convex quadratics over the candidate simplices."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
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
    inputs lose no digits. Cost: O(nnz log c) for c candidates per sample.

    Parameters
    ----------
    values : ndarray, shape (nnz,)
        Candidate entries of the matrix to project.
    entries : CandidateEntries
        Positions of the values.

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


@dataclass(frozen=True)
class Solution:
    """Answer of `minimize_quadratic`.

    Attributes
    ----------
    values : ndarray, shape (nnz,)
        Candidate entries of the minimiser D.
    product : ndarray, shape (nnz,)
        Candidate entries of ``A D``.
    objective : list of float
        Objective at the start and after every accepted step; it does not increase.
    residual : float
        Largest change that the last projected gradient step made.
    converged : bool
        Whether the residual fell below the tolerance.
    n_iter : int
        Number of accepted steps.
    """

    values: Values
    product: Values
    objective: list[float]
    residual: float
    converged: bool
    n_iter: int


def minimize_quadratic(
    apply: Callable[[Values], Values],
    linear: Values,
    lipschitz: float,
    entries: CandidateEntries,
    *,
    start: Values | None = None,
    tol: float = 1e-6,
    max_iter: int = 10_000,
) -> Solution:
    """Solve ``min <D, A D> - 2 <F, D>`` with every row of D on its candidate simplex.

    Nesterov's momentum with a restart whenever the objective would rise [1]_, so the
    recorded objective decreases and the answer does not depend on the start. One product
    with A a step: the product at the extrapolated point follows by linearity. A single step
    without momentum is the plain ``D <- project(D - (A D - F) / lipschitz)``.

    Parameters
    ----------
    apply : callable
        Candidate entries of D -> candidate entries of ``A D``; A symmetric, not negative.
    linear : ndarray, shape (nnz,)
        Candidate entries of F.
    lipschitz : float
        About the largest eigenvalue of A; an underestimate costs steps, not correctness.
    entries : CandidateEntries
        Positions of the candidates.
    start : ndarray, shape (nnz,), default=None
        First point, uniform if None.
    tol : float, default=1e-6
        Stop when a step from the extrapolated point changes no entry by more; never less
        than 50 units of the dtype's rounding.
    max_iter : int, default=10_000
        Largest number of products with A.

    Raises
    ------
    ValueError
        If the objective is not a finite number.

    References
    ----------
    .. [1] O'Donoghue, Candes (2015). Adaptive restart for accelerated gradient schemes.
       Foundations of Computational Mathematics 15.

    Examples
    --------
    >>> import numpy as np
    >>> entries = CandidateEntries(np.array([[True, True, False]]))
    >>> solution = minimize_quadratic(lambda d: d, np.array([0.9, 0.3]), 1.0, entries)
    >>> solution.values
    array([0.8, 0.2])
    """
    tol = max(tol, 50 * float(np.finfo(linear.dtype).eps))
    step = linear.dtype.type(1 / lipschitz)
    current = entries.uniform(linear.dtype) if start is None else project_entries(start, entries)
    product = apply(current)
    objective = [_objective(current, product, linear)]
    slack = 8 * float(np.finfo(linear.dtype).eps) * max(1.0, abs(objective[0]))
    ahead = current
    ahead_product = product
    momentum = 1.0
    residual, converged = math.inf, False
    for _ in range(max_iter):
        new = project_entries(ahead - step * (ahead_product - linear), entries)
        new_product = apply(new)
        value = _objective(new, new_product, linear)
        if value > objective[-1] + slack:
            if momentum > 1:
                ahead = current
                ahead_product = product
                momentum = 1.0
            else:  # even the plain step was too long: the bound was an underestimate
                step = step / 2
            continue
        residual = float(np.max(np.abs(new - ahead)))
        next_momentum = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        weight = linear.dtype.type((momentum - 1) / next_momentum)
        ahead = new + weight * (new - current)
        ahead_product = new_product + weight * (new_product - product)
        current = new
        product = new_product
        momentum = next_momentum
        objective.append(value)
        if residual <= tol:
            converged = True
            break
    return Solution(current, product, objective, residual, converged, len(objective) - 1)


def _objective(values: Values, product: Values, linear: Values) -> float:
    slope = product - 2 * linear
    if values.dtype == np.float64:
        value = float(np.dot(values, slope))
    else:
        slope *= values
        value = float(slope.sum(dtype=np.float64))  # many entries: rounding would hide a step
    if not math.isfinite(value):
        raise ValueError(
            "the confidences have no finite objective: features or supervision are too large or "
            "not numbers. Scale the features, for instance by StandardScaler."
        )
    return value
