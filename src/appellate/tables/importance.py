"""What every column contributes to knowing the labels, by honest output alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ROWS = 800  # drawn from a larger table
_SHUFFLES = 3
_MOST = 300  # columns; more would take minutes

Fit = Callable[[NDArray[np.intp]], Callable[[NDArray[Any]], NDArray[Any]]]


def contributions(
    fit: Fit,
    rows: NDArray[Any],
    evidence: NDArray[Any],
    columns: Mapping[str, NDArray[np.intp]],
    *,
    random_state: int | None = 0,
) -> dict[str, float]:
    """Say how much every column helps to foresee the labels of rows that were not learned from.

    A model of one half of the rows foretells the labels of the other half, and the other way
    round; then again with one column shuffled. What is lost is what the column contributes
    beside all others: nothing, if another says the same.

    Parameters
    ----------
    fit : callable
        Learns from the rows that it is given the places of, and returns a function from features
        to probabilities of the labels.
    rows : ndarray, shape (n, d)
        Features as numbers. Of more than 800 rows, some are drawn.
    evidence : ndarray, shape (n, l)
        What was said of the labels of each row: its candidates, or votes.
    columns : mapping of str to ndarray of int
        Places of the numbers that a column became.
    random_state : int or None, default=0
        Of drawing, halving and shuffling.

    Returns
    -------
    dict of str to float
        Loss of the probability of what was said, between -1 and 1, the largest first; empty for
        more than 300 columns.

    References
    ----------
    Breiman. Random forests. Machine Learning 45, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> size, other = np.array([0.0, 1.0] * 20), np.arange(40) // 8
    >>> rows, said = np.stack([size, other], axis=1), np.eye(2)[size.astype(int)]
    >>> def fit(places):
    ...     return lambda some: np.eye(2)[some[:, 0].astype(int)]
    >>> found = contributions(fit, rows, said, {"size": np.array([0]), "other": np.array([1])})
    >>> list(found), found["other"]
    (['size', 'other'], 0.0)
    """
    if not 1 <= len(columns) <= _MOST or len(rows) < 4:
        return {}
    random = np.random.default_rng(random_state)
    told = np.flatnonzero(evidence.any(axis=1) & ~evidence.all(axis=1))
    chosen = random.permutation(told)[:_ROWS]
    lost = dict.fromkeys(columns, 0.0)
    halves = np.array_split(chosen, 2)
    for known, asked in (halves, halves[::-1]):
        if len(known) < 2 or not len(asked):
            return {}
        foretell = fit(np.sort(known))
        said = evidence[asked] / evidence[asked].max(axis=1, keepdims=True)
        plain = rows[asked]
        full = _mass(foretell(plain), said)
        for name, places in columns.items():
            for _ in range(_SHUFFLES):
                shuffled = plain.copy()
                shuffled[:, places] = plain[random.permutation(len(plain))][:, places]
                share = len(asked) / len(chosen) / _SHUFFLES
                lost[name] += share * (full - _mass(foretell(shuffled), said))
    return dict(sorted(lost.items(), key=lambda pair: -pair[1]))


def _mass(probabilities: NDArray[Any], said: NDArray[Any]) -> float:
    return float((probabilities * said).sum(axis=1).mean())
