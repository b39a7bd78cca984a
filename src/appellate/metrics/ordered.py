"""Scores that know how far a wrong label is from the true one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from appellate.costs import cost_matrix
from appellate.metrics._reading import find_places, paired, read_ordered


def mean_absolute_error(truth: ArrayLike, predicted: ArrayLike, *, order: Any = None) -> float:
    """Mean distance of the predicted label from the true one.

    Unlike what the paper calls MAE3 and MAE5, which are shares (`tolerance_accuracy`).

    Parameters
    ----------
    truth, predicted : array-like, shape (n,)
        Labels: numbers, or any names together with `order`.
    order : sequence, default=None
        All classes from first to last; distances are then counted in places.

    Returns
    -------
    float
        0 or more, smaller is better.

    Examples
    --------
    >>> mean_absolute_error([20, 30, 40], [23, 34, 40]).__round__(3)
    2.333
    >>> mean_absolute_error(["S", "L"], ["M", "L"], order=["S", "M", "L"])
    0.5
    """
    true, guess = read_ordered(truth, predicted, order)
    return float(np.mean(np.abs(true - guess)))


def quadratic_weighted_kappa(
    truth: ArrayLike, predicted: ArrayLike, *, order: Any = None
) -> float:
    """Agreement beyond chance, a miss counting by the square of its distance.

    Cohen's kappa with quadratic weights [1]_, ``1 - mean (t_i - p_i)^2 / mean over i and j of
    (t_i - p_j)^2``: 1 for perfect agreement, 0 where predictions say nothing of the truth. It
    is scikit-learn's ``cohen_kappa_score(weights="quadratic")``, but for numbers that are not
    evenly spaced, whose distances count here and whose ranks count there.

    Parameters
    ----------
    truth, predicted : array-like, shape (n,)
        Labels: numbers, or any names together with `order`.
    order : sequence, default=None
        All classes from first to last; distances are then counted in places.

    Returns
    -------
    float
        In [-1, 1], larger is better; NaN where all labels, true and predicted, are one.

    References
    ----------
    .. [1] Cohen (1968). Weighted kappa. Psychological Bulletin 70.

    Examples
    --------
    >>> quadratic_weighted_kappa([1, 2, 3, 4], [1, 2, 4, 3]).__round__(3)
    0.8
    """
    true, guess = read_ordered(truth, predicted, order)
    by_chance = true.var() + guess.var() + (true.mean() - guess.mean()) ** 2
    if by_chance == 0:
        return float("nan")
    return float(1 - np.mean((true - guess) ** 2) / by_chance)


def expected_cost(
    truth: ArrayLike, predicted: ArrayLike, cost: Any, *, classes: Any = None
) -> float:
    """Mean cost of the predicted labels, given the true ones.

    Parameters
    ----------
    truth, predicted : array-like, shape (n,)
        Labels.
    cost : None, str, dict or (l, l) matrix
        As the classifiers take it (`appellate.costs.cost_matrix`); None counts errors. Of a
        matrix the smallest entry is taken off, so that the best is 0.
    classes : sequence, default=None
        All classes, in order; by default the labels that occur, sorted.

    Returns
    -------
    float
        0 or more, smaller is better.

    Examples
    --------
    >>> expected_cost([20, 30, 40], [23, 34, 40], "within:3").__round__(3)
    0.333
    >>> ages = ["young", "old"]
    >>> expected_cost(["old", "young"], ["young", "old"], [[0, 1], [9, 0]], classes=ages)
    5.0
    """
    true, guess = paired(truth=truth, predicted=predicted)
    names = np.unique(np.concatenate([true, guess])) if classes is None else np.asarray(classes)
    matrix = cost_matrix(cost, names)
    if matrix is None:
        return float(np.mean(true != guess))
    rows, columns = (find_places(labels, names, "classes") for labels in (true, guess))
    return float(np.mean(matrix[rows, columns]))
