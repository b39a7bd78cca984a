"""What predictions for held-out rows are worth, measured without the true labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from appellate.evidence.likelihood import Evidence, set_odds
from appellate.numerics.entries import Values

__all__ = ["above_chance", "choose_round", "criterion", "row_criterion", "suspicion"]

_ENOUGH = 0.95  # of the best criterion, for a later round
_OUTSIDE = 0.001, 0.05, 0.5  # least, first and largest rate of truths outside their set
_OUTSIDE_STEPS = 30


def criterion(probabilities: NDArray[Any], evidence: Evidence, tau: float) -> float:
    """Measure how well out-of-fold probabilities explain the sets; 0 is chance.

    ``B = mean_i log((1 - e) L_i + e)`` with the odds of `set_odds`; e, the rate at which the
    truth lies outside the set, is found by 30 steps of expectation-maximisation within
    [.001, .5]. It conditions on the sets, so that values of tau can be compared.

    Parameters
    ----------
    probabilities : ndarray of shape (n, l)
        Out-of-fold: of classifiers that did not see the row's label.
    evidence : Evidence
        What was observed of the rows.
    tau : float
        Ambiguity: 0 for label-first, 1 for set-first.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> evidence = Evidence.of_sets(np.array([[True, False], [False, True]]))
    >>> round(criterion(np.array([[0.9, 0.1], [0.2, 0.8]]), evidence, 0.0), 3)
    0.534
    >>> round(criterion(np.full((2, 2), 0.5), evidence, 0.0), 3)
    0.0
    """
    return float(row_criterion(probabilities, evidence, tau).mean())


def row_criterion(probabilities: NDArray[Any], evidence: Evidence, tau: float) -> Values:
    """Every row's part of the criterion, ``log((1 - e) L_i + e)``, (n,).

    Parameters
    ----------
    probabilities : ndarray of shape (n, l)
        Out-of-fold: of classifiers that did not see the row's label.
    evidence : Evidence
        What was observed of the rows.
    tau : float
        Ambiguity: 0 for label-first, 1 for set-first.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> evidence = Evidence.of_sets(np.array([[True, False], [False, True]]))
    >>> row_criterion(np.array([[0.9, 0.1], [0.2, 0.8]]), evidence, 0.0).round(2)
    array([0.49, 0.57])
    """
    odds = set_odds(probabilities, evidence, tau)
    outside = _outside_rate(odds)
    return np.log((1 - outside) * odds + outside)


def above_chance(rows: Values, errors: float) -> bool:
    """Whether a mean over rows is more than so many of its standard errors above 0.

    Parameters
    ----------
    rows : ndarray of shape (n,)
        A number a row, such as `row_criterion`.
    errors : float
        Standard errors that count as proof.

    Returns
    -------
    bool

    Examples
    --------
    >>> import numpy as np
    >>> above_chance(np.array([1.0, 2.0, 1.5]), 2), above_chance(np.array([1.0, -2.0, 1.5]), 2)
    (True, False)
    """
    return bool(rows.mean() > max(errors * rows.std() / np.sqrt(len(rows)), 1e-9))


@nb.njit(cache=True)
def _outside_rate(odds):  # type: ignore[no-untyped-def]
    least, rate, largest = _OUTSIDE
    for _ in range(_OUTSIDE_STEPS):
        total = 0.0
        for odd in odds:
            total += rate / ((1 - rate) * odd + rate)
        rate = min(max(total / odds.size, least), largest)
    return rate


def choose_round(criteria: Sequence[float]) -> int:
    """Choose the last round that has 95 % of the best criterion; the best if none is above 0.

    Parameters
    ----------
    criteria : sequence of float
        The criterion after every round.

    Returns
    -------
    int
        Counted from 0.

    Examples
    --------
    >>> choose_round([0.2, 0.40, 0.39, 0.3]), choose_round([-0.1, -0.2])
    (2, 0)
    """
    top = max(criteria)
    if top <= 0:
        return int(np.argmax(criteria))
    return max(r for r, value in enumerate(criteria) if value >= _ENOUGH * top)


def suspicion(probabilities: NDArray[Any], evidence: Evidence) -> Values:
    """Out-of-fold mass outside the possible labels, (n,): an order of rows, not a percentage.

    Parameters
    ----------
    probabilities : ndarray of shape (n, l)
        Out-of-fold: of classifiers that did not see the row's label.
    evidence : Evidence
        What was observed of the rows.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> evidence = Evidence.of_sets(np.array([[True, True, False]]))
    >>> suspicion(np.array([[0.1, 0.2, 0.7]]), evidence).round(2)
    array([0.7])
    """
    inside = evidence.entries.row_sum(evidence.entries.gather(probabilities))
    return np.clip(1 - inside, 0, 1)
