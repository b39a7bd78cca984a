"""Scores of predictions and of appeals, with the truth and without it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from appellate.candidates import as_candidates, check_length


def covering_rate(candidates: Any, predicted: ArrayLike, *, classes: Any = None) -> float:
    """Share of rows whose predicted label is among their candidates; needs no truth.

    Parameters
    ----------
    candidates : array-like
        Candidate sets, anything that `as_candidates` reads.
    predicted : array-like, shape (n,)
        Predicted labels.
    classes : sequence, default=None
        Names of the columns of an unnamed matrix; 0 .. l - 1 by default.

    Returns
    -------
    float
        In [0, 1]; an upper bound on the accuracy if every truth is a candidate.

    Examples
    --------
    >>> covering_rate(["cat|dog", "cow"], ["dog", "cat"])
    0.5
    """
    sets = as_candidates(candidates, classes=classes)
    labels = np.asarray(predicted).tolist()
    check_length(sets, len(labels))
    column = {name: j for j, name in enumerate(sets.class_names.tolist())}
    covered = [
        label in column and bool(row[column[label]])
        for row, label in zip(sets.matrix, labels, strict=True)
    ]
    return float(np.mean(covered))


def transductive_accuracy(truth: ArrayLike, labels: ArrayLike) -> float:
    """Share of training samples whose disambiguated label is true.

    Examples
    --------
    >>> transductive_accuracy(["a", "b", "a"], ["a", "b", "b"]).__round__(3)
    0.667
    """
    return float(np.mean(np.asarray(truth) == np.asarray(labels)))


def correction_ratio(truth: ArrayLike, verdict: ArrayLike, appeal: ArrayLike) -> float:
    """Share of the samples with a wrong verdict whose appeal is right.

    The paper's "correction ratio" (Sec. 4.1): how many of the mislabeled training samples
    are rectified. NaN where no verdict was wrong.

    Examples
    --------
    >>> correction_ratio([0, 1, 1, 0], verdict=[0, 0, 0, 1], appeal=[0, 1, 0, 1]).__round__(3)
    0.333
    """
    right_before, right_after = _rightness(truth, verdict, appeal)
    return float(right_after[~right_before].mean()) if not right_before.all() else float("nan")


def broken_ratio(truth: ArrayLike, verdict: ArrayLike, appeal: ArrayLike) -> float:
    """Share of the samples with a right verdict whose appeal is wrong; NaN if there is none.

    Examples
    --------
    >>> broken_ratio([0, 1, 1, 0], verdict=[0, 1, 0, 1], appeal=[1, 1, 0, 1])
    0.5
    """
    right_before, right_after = _rightness(truth, verdict, appeal)
    return float((~right_after)[right_before].mean()) if right_before.any() else float("nan")


def _rightness(truth: ArrayLike, verdict: ArrayLike, appeal: ArrayLike) -> Any:
    true, before, after = np.asarray(truth), np.asarray(verdict), np.asarray(appeal)
    if not true.shape == before.shape == after.shape:
        raise ValueError(
            f"truth, verdict and appeal need one label a sample each; got shapes {true.shape}, "
            f"{before.shape}, {after.shape}."
        )
    return before == true, after == true
