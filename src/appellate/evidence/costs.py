"""What a wrong label costs, and the label of the smallest expected cost.

A cost is an (l, l) matrix C: ``C[k, j]`` is the cost of saying j where k is true. Under the
probabilities p of a row the label ``argmin over j of sum over k of p_k C[k, j]`` costs least
[1]_. With 0/1 costs that is the most likely label.

.. [1] Elkan (2001). The foundations of cost-sensitive learning. IJCAI.
"""

from __future__ import annotations

import re
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate._text import did_you_mean, listing
from appellate.evidence.order import as_numbers
from appellate.numerics.entries import CandidateEntries, Values

__all__ = ["cost_matrix"]

#: Words that a cost may begin with; all need an order of the labels.
COST_WORDS = ("absolute", "within", "ordinal")
_BLOCK = 1 << 22  # entries of a block of expected costs
_ROUNDING = 64  # costs that differ by as many units in the last place are tied


def cost_matrix(cost: Any, classes: Any) -> NDArray[np.float64] | None:
    """Make the matrix of costs between all labels.

    Parameters
    ----------
    cost : None, str or array-like
        - None: every wrong label costs the same, without a matrix.
        - ``"absolute"``: the distance of both labels.
        - ``"within:t"``: 1 where the distance is above t, else 0.
        - ``"ordinal:w"``: ``1 - exp(-distance^2 / (2 w^2))``; the label of the smallest
          expected cost is the largest of the probabilities smoothed by a Gaussian of width w.
        - (l, l) matrix: row k, column j holds the cost of saying j where k is true; nothing
          may cost less than the true label itself. Index and columns of a data frame name them.

        The distance is that of the values if all class names are numbers (or texts of
        numbers), else that of their places among the classes. Texts are sorted unless the
        candidate sets say otherwise: ``as_candidates(y, classes=["S", "M", "L"])``.
    classes : array-like, shape (l,)
        Class names.

    Returns
    -------
    ndarray, shape (l, l), or None
        Shifted so that its smallest entry is 0, which changes no decision.

    Raises
    ------
    ValueError
        If the cost is none of these, or does not fit the classes.

    Examples
    --------
    >>> cost_matrix("within:2", [10, 11, 13])
    array([[0., 0., 1.],
           [0., 0., 0.],
           [1., 0., 0.]])
    """
    if cost is None:
        return None
    names = np.asarray(classes).tolist()
    if not isinstance(cost, str):
        return _check_matrix(cost, names)
    word, _, number = cost.partition(":")
    size = inf
    if word in ("within", "ordinal"):
        if re.fullmatch(r"([0-9]+\.?|[0-9]*\.[0-9]+)(e[-+]?[0-9]+)?", number):
            size = float(number)
        if size == inf or (word == "ordinal" and size == 0):
            least = "a width above 0" if word == "ordinal" else "a distance of 0 or more"
            raise ValueError(f"cost={cost!r} needs {least} after the colon, such as '{word}:3'.")
    elif word != "absolute" or number:
        raise ValueError(
            f"unknown cost {cost!r}.{did_you_mean(word, COST_WORDS)} Use None, 'absolute', "
            "'within:3', 'ordinal:3', or a matrix."
        )
    numbers = as_numbers(names)
    values = np.arange(float(len(names))) if numbers is None else numbers
    distance = np.abs(np.subtract.outer(values, values))
    if word == "absolute":
        return distance
    if word == "within":
        return (~is_within(values[:, np.newaxis], values, size)).astype(float)
    return np.asarray(-np.expm1(-np.square(distance / size) / 2))


def is_within(one: NDArray[Any], other: NDArray[Any], size: float) -> NDArray[np.bool_]:
    """Whether numbers differ by no more than a size, but for their rounding; 0 is exact."""
    slack = 4 * np.finfo(float).eps * np.maximum(np.abs(one), np.abs(other)) if size else 0.0
    return np.asarray(np.abs(one - other) <= size + slack)


def describe_cost(cost: Any) -> str:
    """Say a cost in a few words; nothing for None.

    Examples
    --------
    >>> describe_cost("within:3"), describe_cost([[0, 1], [2, 0]])
    ('within:3', '2 x 2 matrix')
    """
    if cost is None or isinstance(cost, str):
        return cost or ""
    return f"{len(cost)} x {len(cost)} matrix"


def expected_costs(probabilities: NDArray[Any], matrix: NDArray[Any]) -> NDArray[Any]:
    """Compute the expected cost of every label for every row, (n, l): one product.

    Costs that differ from the smallest of a row by rounding alone are set to it, so that the
    first of them is found, whatever the order of summation was.
    """
    costs = probabilities @ matrix.astype(probabilities.dtype, copy=False)
    return _tie(costs, costs.min(axis=1, keepdims=True), matrix)


def candidate_costs(
    confidence: Values, entries: CandidateEntries, matrix: NDArray[Any]
) -> NDArray[Any]:
    """Compute the expected costs of every sample's candidates, as entries; ties as above.

    Block by block of rows, so that no (n, l) matrix is formed.
    """
    shares, matrix = entries.to_sparse(confidence), matrix.astype(confidence.dtype, copy=False)
    costs = np.empty_like(confidence)
    n, l = entries.shape
    step = max(1, _BLOCK // l)
    for start in range(0, n, step):
        part = slice(entries.indptr[start], entries.indptr[min(start + step, n)])
        block = np.asarray(shares[start : start + step] @ matrix)
        costs[part] = block[entries.rows[part] - start, entries.labels[part]]
    least = entries.spread(np.minimum.reduceat(costs, entries.indptr[:-1]))
    return _tie(costs, least, matrix)


def _tie(costs: NDArray[Any], least: NDArray[Any], matrix: NDArray[Any]) -> NDArray[Any]:
    rounding = float(_ROUNDING * np.finfo(costs.dtype).eps * matrix.max(initial=0.0))
    return np.where(costs <= least + rounding, least, costs)


def is_ordered(cost: Any) -> bool:
    """Tell whether a cost needs an order of the labels."""
    return isinstance(cost, str) and cost.partition(":")[0] in COST_WORDS


def _check_matrix(cost: Any, names: list[Any]) -> NDArray[np.float64]:
    try:
        matrix = np.asarray(cost, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"the cost matrix holds something that is not a number: {error}"
        ) from error
    l = len(names)
    if matrix.shape != (l, l):
        raise ValueError(
            f"the cost matrix has shape {matrix.shape}, but there are {l} classes: it needs one "
            f"row for every true and one column for every predicted label, ({l}, {l})."
        )
    texts = list(map(str, names))
    for axis, word in enumerate(("index", "columns") if hasattr(cost, "loc") else ()):
        titles = list(map(str, getattr(cost, word)))  # a data frame says which is which
        if titles in (texts, list(map(str, range(l)))):
            continue
        if sorted(titles) != sorted(texts):
            raise ValueError(
                f"the cost matrix has the {word} {listing(titles)}, but the classes are "
                f"{listing(texts)}. Name them alike, or pass cost.to_numpy()."
            )
        matrix = matrix.take([titles.index(text) for text in texts], axis=axis)
    for k, j in np.argwhere(~np.isfinite(matrix)):
        raise ValueError(
            f"the cost of saying {names[j]!r} where {names[k]!r} is true is not finite."
        )
    for k, j in np.argwhere(matrix < np.diag(matrix)[:, np.newaxis]):
        raise ValueError(
            f"saying {names[j]!r} where {names[k]!r} is true would cost less than the true "
            "label. Rows of the matrix are true labels, columns are predicted labels, and larger "
            "is worse. Negate a matrix of similarities."
        )
    return np.asarray(matrix - matrix.min(initial=np.inf))
