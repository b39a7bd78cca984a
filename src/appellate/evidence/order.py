"""Is there an order among the labels? It is found from the candidate sets.

Ages, grades and sizes are ordered. A classifier that knows it shares evidence between
neighbouring labels: its scores F become ``F G_w``, with G_w a Gaussian of width w over the places
of the labels. The width is the one whose out-of-fold scores prove most about the sets, by the
criterion B (`held_out.criterion`). If the labels have no order, smoothing lowers B and the
width is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate._text import listing
from appellate.evidence.ambiguity import PROOF
from appellate.evidence.held_out import above_chance, row_criterion
from appellate.evidence.likelihood import Evidence, set_odds
from appellate.evidence.scales import fit_temperature, mixture_weights, soften

__all__ = ["choose_width", "label_places", "order_matrix"]

#: Widths among which the criterion chooses, in places.
WIDTHS = (0, 1, 2, 4, 8, 16)


def label_places(classes: Any, order: Any = "auto") -> NDArray[np.intp] | None:
    """Find the place of every class in the order of the labels.

    Parameters
    ----------
    classes : array-like, shape (l,)
        Class names.
    order : {"auto"}, None or sequence, default="auto"
        The labels in their order; ``"auto"``: that of the numbers if all class names are
        numbers or texts of numbers; None: the labels have no order.

    Returns
    -------
    ndarray of int, shape (l,), or None
        None without an order.

    Raises
    ------
    ValueError
        If the order lacks a class, has one twice, or names one that is not there.

    Examples
    --------
    >>> label_places(["9", "10", "8"])
    array([1, 2, 0])
    >>> label_places(["L", "M", "S"], order=["S", "M", "L"])
    array([2, 1, 0])
    >>> label_places(["cat", "dog"]) is None
    True
    """
    names = np.asarray(classes).tolist()
    if order is None:
        return None
    if isinstance(order, str):
        if order != "auto":
            raise ValueError(f"order={order!r}: it must be 'auto', None or the labels in order.")
        numbers = as_numbers(names)
        if numbers is None:
            return None
        return np.asarray(np.argsort(np.argsort(numbers, kind="stable")))
    given = [str(each) for each in np.asarray(order).tolist()]
    known = [str(each) for each in names]
    missing = [name for name in known if name not in given]
    strange = [name for name in given if name not in known]
    repeated = sorted({name for name in given if given.count(name) > 1})
    for problem, found in (
        ("does not contain", missing),
        ("contains unknown labels:", strange),
        ("repeats", repeated),
    ):
        if found:
            raise ValueError(
                f"order {problem} {listing(found)}. Give every label once, in its order."
            )
    return np.array([given.index(name) for name in known])


def as_numbers(names: list[Any]) -> NDArray[np.float64] | None:
    """Read all names as finite numbers, or return None."""
    try:
        values = np.array([float(name) for name in names])
    except (TypeError, ValueError):
        return None
    return values if np.isfinite(values).all() else None


def order_matrix(places: NDArray[np.intp], width: float) -> NDArray[np.float64]:
    """Make the matrix G_w that shares scores between neighbouring labels, (l, l).

    ``G[j, k] ~ exp(-(place_j - place_k)^2 / (2 w^2))``; rows sum to one, and then the whole is
    divided by the median of its diagonal, so that temperatures keep their range.

    Parameters
    ----------
    places : ndarray of int, shape (l,)
        From `label_places`.
    width : float
        Standard deviation of the Gaussian, in places. The matrix of width 0 is the identity.

    Examples
    --------
    >>> import numpy as np
    >>> order_matrix(np.arange(3), 1.0).round(2)
    array([[1.  , 0.61, 0.14],
           [0.48, 0.79, 0.48],
           [0.14, 0.61, 1.  ]])
    """
    if width == 0:
        return np.eye(len(places))
    gaps = np.subtract.outer(places, places).astype(np.float64)
    matrix = np.exp(-np.square(gaps) / (2 * width**2))
    matrix /= matrix.sum(axis=1, keepdims=True)
    return np.asarray(matrix / np.median(np.diag(matrix)))


def choose_width(
    scores: Sequence[NDArray[Any]], evidence: Evidence, places: NDArray[np.intp]
) -> int:
    """Choose the width of the order; 0 if none is proven.

    For every width, each member's temperature and then the weights of all members make the
    criterion largest. The best width must be better than none by more than two standard
    errors, paired over the rows.

    Parameters
    ----------
    scores : sequence of ndarray, shape (n, l)
        Out-of-fold scores of the members, which learned from the sets themselves.
    evidence : Evidence
        Evidence of the same rows.
    places : ndarray of int, shape (l,)
        From `label_places`.

    Returns
    -------
    int

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.RandomState(0)
    >>> age = rng.randint(30, size=200)
    >>> sets = np.abs(np.arange(30) - age[:, np.newaxis]) <= 1
    >>> scores = -0.001 * np.square(np.arange(30) - age[:, None]) + rng.normal(size=sets.shape)
    >>> choose_width([scores], Evidence.of_sets(sets), np.arange(30)) > 0
    True
    >>> choose_width([scores], Evidence.of_sets(sets), rng.permutation(30))
    0
    """
    rows = {}
    for width in WIDTHS:
        matrix = order_matrix(places, width)
        softened = []
        for each in scores:
            smoothed = each @ matrix
            softened.append(soften(smoothed, fit_temperature(smoothed, evidence, 0.0)))
        odds: NDArray[Any] = np.column_stack([set_odds(each, evidence, 0.0) for each in softened])
        weights = mixture_weights(odds)
        mixed = sum(weight * each for weight, each in zip(weights, softened, strict=True))
        rows[width] = row_criterion(np.asarray(mixed), evidence, 0.0)
    best = max(rows, key=lambda width: float(rows[width].mean()))
    return best if best and above_chance(rows[best] - rows[0], PROOF) else 0
