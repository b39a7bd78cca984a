"""Scores against the candidate sets alone; no truth is needed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from appellate.candidates import check_length
from appellate.metrics._reading import (
    arrange_candidates,
    check_probabilities,
    find_columns,
    read_sets,
)

_LOG_TEMPERATURES = np.log([1e-3, 1e1])
_LEAST = float(np.log(1e-6))


def covering_rate(candidates: Any, predicted: ArrayLike, *, classes: Any = None) -> float:
    """Share of rows whose predicted label is among their candidates; needs no truth.

    A label outside the set is certainly wrong, so the rate bounds the accuracy from above if
    every truth is a candidate. Inside the set it is blind: any candidate counts, and large
    sets are covered by luck.

    Parameters
    ----------
    candidates : array-like
        Candidate sets, anything that `as_candidates` reads.
    predicted : array-like, shape (n,)
        Predicted labels; one that is no class is not covered.
    classes : sequence, default=None
        Names of the columns of an unnamed matrix; 0 .. l - 1 by default.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> covering_rate(["cat|dog", "cow"], ["dog", "cat"])
    0.5
    """
    sets = read_sets(candidates, classes)
    labels = np.asarray(predicted)
    check_length(sets, len(labels))
    columns = find_columns(labels, sets.class_names)
    covered = sets.matrix[np.arange(len(columns)), columns] & (columns >= 0)
    return float(np.mean(covered))


def approximated_accuracy(
    candidates: Any, probabilities: ArrayLike, *, classes: Any = None
) -> float:
    """Mean share that a predicted label has in the probability of the candidates.

    With ``w = y * p / sum(y * p)``, the probabilities p restricted to the candidates y of a
    row, the mean of w at the predicted label, the largest of p; 0 where that is no candidate
    (PLENCH [1]_). Needs no truth. It is sharper than the covering rate and favours
    over-confident models.

    Parameters
    ----------
    candidates : array-like
        Candidate sets, anything that `as_candidates` reads.
    probabilities : array-like, shape (n, l)
        One probability for every row and class, as of ``predict_proba``.
    classes : sequence, default=None
        Class of every column of `probabilities`, as `classes_` of a classifier; by default
        the classes of `candidates`, in their order. Candidates beyond them count for nothing.

    Returns
    -------
    float
        In [0, 1], never above the covering rate of the same predictions.

    References
    ----------
    .. [1] Wang et al. (2025). Realistic evaluation of deep partial-label learning
       algorithms. ICLR.

    Examples
    --------
    >>> y = ["a|b", "b|c"]
    >>> approximated_accuracy(y, [[0.5, 0.5, 0.0], [0.5, 0.25, 0.25]], classes=["a", "b", "c"])
    0.25
    """
    chances = check_probabilities(probabilities)
    matrix = arrange_candidates(candidates, classes, chances)
    inside = np.where(matrix, chances, 0)
    rows, best = np.arange(len(chances)), chances.argmax(axis=1)
    totals = inside.sum(axis=1)
    shares = inside[rows, best] / np.where(totals > 0, totals, 1)
    return float(np.mean(shares))


def candidate_likelihood(
    candidates: Any, scores: ArrayLike, *, classes: Any = None, probabilities: bool = False
) -> float:
    """Mean log-probability of the candidate sets under the scores of a classifier.

    With ``p = softmax(scores / t)``, the mean of ``log(sum of p over the candidates)`` at the
    temperature t in [0.001, 10] that makes it largest. That one fitted number takes out the
    scale of the scores, in which ridge regressions of different width and penalty differ. No
    set is given less than 1e-6.

    Unlike the covering rate it looks at more than the largest score, and it does not jump.

    Parameters
    ----------
    candidates : array-like
        Candidate sets, anything that `as_candidates` reads.
    scores : array-like, shape (n, l), or (n,) for two classes
        As of ``decision_function``.
    classes : sequence, default=None
        Class of every column of `scores`, as `classes_` of a classifier; by default the
        classes of `candidates`, in their order.
    probabilities : bool, default=False
        Whether the scores are probabilities, as of a network: their logarithms are scored.

    Returns
    -------
    float
        At most 0, where all the probability is on the candidates; constant scores get the
        mean log of ``candidates / classes``.

    Examples
    --------
    >>> y, names = ["a|b", "b|c"], ["a", "b", "c"]
    >>> candidate_likelihood(y, [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], classes=names).__round__(3)
    -0.405
    >>> candidate_likelihood(y, [[0.9, 0.1, 0.0], [0.2, 0.1, 0.0]], classes=names).__round__(3)
    -0.316
    """
    values = np.asarray(scores, dtype=float)
    if values.ndim == 1:
        values = np.stack([-values / 2, values / 2], axis=1)
    if values.ndim != 2 or not np.isfinite(values).all():
        raise ValueError(
            f"scores of shape {values.shape} must be finite, one for every row and class (n, l)."
        )
    if probabilities:
        values = np.log(np.maximum(check_probabilities(scores), 1e-12))
    inside = np.where(arrange_candidates(candidates, classes, values), values, -np.inf)

    def loss(log_temperature: float) -> float:
        sharpness = np.exp(-log_temperature)
        logs = logsumexp(sharpness * inside, axis=1) - logsumexp(sharpness * values, axis=1)
        return -float(np.mean(np.clip(logs, _LEAST, 0)))

    low, high = _LOG_TEMPERATURES
    found = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 0.02})
    return -min(float(found.fun), loss(low), loss(high))
