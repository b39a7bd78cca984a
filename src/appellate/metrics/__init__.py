"""Scores of predictions and of corrections, and tests of whether one method is better.

Most need true labels, three do not. Ordered labels have scores of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from appellate.candidates import check_length
from appellate.candidates.names import factorize, label_vector, ordered
from appellate.evidence.costs import cost_matrix, is_within
from appellate.metrics import _reading as reading
from appellate.metrics.paired import PairedComparison, paired_comparison
from appellate.numerics.search import minimize_over_log

__all__ = [
    "PairedComparison",
    "accuracy",
    "approximated_accuracy",
    "broken_ratio",
    "candidate_likelihood",
    "correction_ratio",
    "covering_rate",
    "expected_calibration_error",
    "expected_cost",
    "paired_comparison",
    "tolerance_accuracy",
]

_LOG_TEMPERATURES = np.log([1e-3, 1e1])
_LEAST = float(np.log(1e-6))


def accuracy(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Share of samples whose predicted label is true.

    For the training rows and their `transduction_` it is what the paper calls transductive
    accuracy: it "reflects the disambiguation ability of a PLL approach" (Sec. 4.2).

    Parameters
    ----------
    truth, predicted : array-like, shape (n,)
        Labels; names are compared with names and numbers with numbers.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> accuracy(["a", "b", "a", "a"], ["a", "b", "b", "a"])
    0.75
    """
    return float(np.mean(np.equal(*reading.paired(truth=truth, predicted=predicted))))


def tolerance_accuracy(
    truth: ArrayLike, predicted: ArrayLike, tolerance: float, *, order: Any = None
) -> float:
    """Share of samples whose predicted label is within a tolerance of the true one.

    The paper's MAE3 and MAE5 of facial ages (Sec. 3.2.2): "test samples can be considered to be
    correctly classified if the difference between the predicted age and true age is no more
    than 3/5 years". Despite their name they are accuracies, not mean absolute errors.

    Parameters
    ----------
    truth, predicted : array-like, shape (n,)
        Labels: numbers, or any names together with `order`.
    tolerance : float
        Largest difference that counts as right, but for rounding; 0 gives `accuracy`.
    order : sequence, default=None
        All classes from first to last; differences are then counted in places.

    Returns
    -------
    float
        In [0, 1]; it grows with the tolerance.

    Examples
    --------
    >>> tolerance_accuracy([20, 30, 40], [23, 34, 40], 3).__round__(3)
    0.667
    >>> sizes = ["S", "M", "L", "XL"]
    >>> tolerance_accuracy(["S", "M", "XL"], ["M", "M", "S"], 1, order=sizes).__round__(3)
    0.667
    """
    if not tolerance >= 0:
        raise ValueError(f"tolerance is {tolerance!r}; it must be 0 or more.")
    true, guess = reading.read_ordered(truth, predicted, order)
    return float(np.mean(is_within(true, guess, tolerance)))


def expected_cost(
    truth: ArrayLike, predicted: ArrayLike, cost: Any, *, classes: Any = None
) -> float:
    """Mean cost of the predicted labels, given the true ones.

    Parameters
    ----------
    truth, predicted : array-like, shape (n,)
        Labels.
    cost : None, str or (l, l) matrix
        As for the classifiers (`appellate.evidence.cost_matrix`); None counts errors. The
        smallest entry of a matrix is subtracted, so that the best is 0.
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
    true, guess = reading.paired(truth=truth, predicted=predicted)
    found = list(factorize(np.concatenate([true, guess]))[0])
    names = label_vector(ordered(found) if classes is None else classes)
    matrix = cost_matrix(cost, names)
    if matrix is None:
        return float(np.mean(true != guess))
    rows, columns = (reading.find_columns(labels, names, "classes") for labels in (true, guess))
    return float(np.mean(matrix[rows, columns]))


def correction_ratio(truth: ArrayLike, verdict: ArrayLike, appeal: ArrayLike) -> float:
    """Share of the samples with a wrong first label whose final label is correct.

    "We record the indices of mislabeled samples on each data set, and ascertain how many of
    them can be successfully corrected by PLCP" (Sec. 4.1 of the paper). NaN if no first
    label was wrong.

    Parameters
    ----------
    truth : array-like, shape (n,)
        True labels of the training rows.
    verdict, appeal : array-like, shape (n,)
        Their first and final labels.

    Returns
    -------
    float
        In [0, 1], or NaN.

    Examples
    --------
    >>> correction_ratio([0, 1, 1, 0], verdict=[0, 0, 0, 1], appeal=[0, 1, 0, 1]).__round__(3)
    0.333
    """
    right_before, right_after = _rightness(truth, verdict, appeal)
    return float(right_after[~right_before].mean()) if not right_before.all() else float("nan")


def broken_ratio(truth: ArrayLike, verdict: ArrayLike, appeal: ArrayLike) -> float:
    """Share of the samples with a correct first label whose final label is wrong.

    "It is conceivable that PLCP could result in mislabeling of originally correct samples"
    (Sec. 4.1 of the paper). With both ratios, ``accuracy after = accuracy before +
    correction_ratio (1 - accuracy before) - broken_ratio * accuracy before``.

    Parameters
    ----------
    truth : array-like, shape (n,)
        True labels of the training rows.
    verdict, appeal : array-like, shape (n,)
        Their first and final labels.

    Returns
    -------
    float
        In [0, 1]; NaN if no first label was correct.

    Examples
    --------
    >>> broken_ratio([0, 1, 1, 0], verdict=[0, 1, 0, 1], appeal=[1, 1, 0, 1])
    0.5
    """
    right_before, right_after = _rightness(truth, verdict, appeal)
    return float((~right_after)[right_before].mean()) if right_before.any() else float("nan")


def expected_calibration_error(
    truth: ArrayLike, probabilities: ArrayLike, *, classes: Any = None, n_bins: int = 15
) -> float:
    """Mean gap between the confidence of predictions and their accuracy.

    With the rows in equally wide bins ``((b - 1) / n_bins, b / n_bins]`` of their largest
    probability, ``sum over b of |B_b| / n * |accuracy(B_b) - confidence(B_b)|`` [1]_. Needs
    true labels.

    Parameters
    ----------
    truth : array-like, shape (n,)
        True labels; one that is not a class counts as a wrong prediction.
    probabilities : array-like, shape (n, l)
        One probability for every row and class, as of ``predict_proba``.
    classes : sequence, default=None
        Class of every column; 0 .. l - 1 by default.
    n_bins : int, default=15
        Number of bins.

    Returns
    -------
    float
        In [0, 1]; 0 for perfect calibration.

    References
    ----------
    .. [1] Guo, Pleiss, Sun, Weinberger (2017). On calibration of modern neural networks. ICML.

    Examples
    --------
    >>> sure = [[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.9, 0.1]]
    >>> expected_calibration_error([0, 0, 1, 1], sure).__round__(3)
    0.4
    """
    if n_bins < 1:
        raise ValueError(f"n_bins is {n_bins!r}; it must be 1 or more.")
    chances = reading.checked_probabilities(probabilities)
    names = np.arange(chances.shape[1]) if classes is None else label_vector(classes)
    if len(names) != chances.shape[1]:
        raise ValueError(f"probabilities has {chances.shape[1]} columns for {len(names)} classes.")
    true, guess = reading.paired(truth=truth, predicted=names[chances.argmax(axis=1)])
    confidence = chances.max(axis=1)
    bins = np.clip(np.ceil(confidence * n_bins).astype(int) - 1, 0, n_bins - 1)
    gaps = np.bincount(bins, weights=(true == guess) - confidence, minlength=n_bins)
    return float(np.abs(gaps).sum() / len(chances))


def _rightness(truth: ArrayLike, verdict: ArrayLike, appeal: ArrayLike) -> Any:
    true, before, after = reading.paired(truth=truth, verdict=verdict, appeal=appeal)
    return before == true, after == true


# -- against the candidate sets alone ------------------------------------------------------------


def covering_rate(candidates: Any, predicted: ArrayLike, *, classes: Any = None) -> float:
    """Share of rows whose predicted label is among their candidates; needs no true labels.

    A label outside the set is certainly wrong, so the rate bounds the accuracy from above if
    every truth is a candidate. Inside the set it is blind: any candidate counts, and large
    sets are covered by luck.

    Parameters
    ----------
    candidates : array-like
        Candidate sets, anything that `as_candidates` reads.
    predicted : array-like, shape (n,)
        Predicted labels; one that is not a class is not covered.
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
    sets = reading.read_named(candidates, classes)
    labels = label_vector(predicted)
    check_length(sets, len(labels))
    columns = reading.find_columns(labels, sets.class_names)
    covered = sets.matrix[np.arange(len(columns)), columns] & (columns >= 0)
    return float(np.mean(covered))


def approximated_accuracy(
    candidates: Any, probabilities: ArrayLike, *, classes: Any = None
) -> float:
    """Mean share that a predicted label has in the probability of the candidates.

    With ``w = y * p / sum(y * p)``, the probabilities p restricted to the candidates y of a
    row, the mean of w at the predicted label, the largest of p; 0 if that is not a candidate
    (PLENCH [1]_). Needs no true labels. It is sharper than the covering rate and favours
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
    chances = reading.checked_probabilities(probabilities)
    matrix = reading.arrange_candidates(candidates, classes, chances)
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
        values = np.log(np.maximum(reading.checked_probabilities(scores), 1e-12))
    inside = np.where(reading.arrange_candidates(candidates, classes, values), values, -np.inf)

    def loss(log_temperature: float) -> float:
        sharpness = np.exp(-log_temperature)
        logs = logsumexp(sharpness * inside, axis=1) - logsumexp(sharpness * values, axis=1)
        return -float(np.mean(np.clip(logs, _LEAST, 0)))

    low, high = _LOG_TEMPERATURES
    found = minimize_over_log(loss, (low, high), precision=0.02)
    return -min(found.loss, loss(low), loss(high))
