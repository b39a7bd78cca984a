"""Candidate sets for data whose true labels are known."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from appellate._votes import is_missing
from appellate.candidates import name_rows


def make_partial_labels(
    y: ArrayLike, *, flip_probability: float = 0.3, random_state: Any = None
) -> NDArray[np.bool_]:
    """Hide true labels in candidate sets, uniformly.

    Every false label joins a sample's candidate set independently and with the same
    probability q; the true label is always in it. A set of one is possible: it has
    probability ``(1 - q) ** (l - 1)`` for l classes.

    Parameters
    ----------
    y : array-like, shape (n,)
        True labels of any type that can be sorted. Generate before splitting, so that
        training and test rows have the same columns.
    flip_probability : float, default=0.3
        Probability q, in [0, 1], with which a false label becomes a candidate. 0 gives
        every sample its true label alone; 1 makes all labels candidates of all samples.
    random_state : int, RandomState, Generator or None, default=None
        Source of randomness; an int makes the result repeatable.

    Returns
    -------
    ndarray of bool, shape (n, l)
        True where the label is a candidate. Columns are the classes in the order of
        ``numpy.unique(y)``.

    See Also
    --------
    appellate.as_candidates : Read candidate sets that already exist.

    Examples
    --------
    >>> from appellate.datasets import make_partial_labels
    >>> make_partial_labels(["cat", "dog", "cow"], flip_probability=0.5, random_state=0)
    array([[ True, False, False],
           [False,  True,  True],
           [ True,  True, False]])
    """
    classes, truth = _encode(y)
    chance = _check_probability(flip_probability)
    candidates = _draw(random_state, (len(truth), len(classes))) < chance
    candidates[np.arange(len(truth)), truth] = True
    return candidates


def _encode(y: ArrayLike) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Sorted classes of the labels and the column of every label."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(
            f"y has shape {labels.shape}; give one true label a row, a 1-D array. Candidate "
            "sets that already exist are read by appellate.as_candidates."
        )
    if not labels.size:
        raise ValueError("y is empty; give at least one true label.")
    missing = [i for i, label in enumerate(labels.tolist()) if is_missing(label)]
    if missing:
        raise ValueError(f"y has no label in {name_rows(missing)}. Drop the rows.")
    try:
        classes, columns = np.unique(labels, return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in labels.tolist()})
        raise TypeError(
            f"y mixes labels that cannot be sorted together ({', '.join(kinds)}). Make them "
            "all of one type, for example strings."
        ) from error
    return classes, columns


def _check_probability(chance: float) -> float:
    if isinstance(chance, bool | np.bool_) or not isinstance(chance, Real):
        raise TypeError(f"flip_probability={chance!r} is no number; give one in [0, 1].")
    if not 0 <= chance <= 1:
        raise ValueError(f"flip_probability={chance!r} is no probability; give one in [0, 1].")
    return float(chance)


def _draw(random_state: Any, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1) from either kind of numpy generator."""
    if isinstance(random_state, np.random.Generator):
        return random_state.random(shape)
    return np.asarray(check_random_state(random_state).random_sample(shape))
