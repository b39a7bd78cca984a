"""Columns that could be read as features, but are labels, counters or an earlier result."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate.datasets.home import simplify
from appellate.datasets.spellings import as_decimal

LABELS = "holds labels of this table"
EARLIER = "the result of an earlier run"
COUNTER = "counts the rows"
UNTITLED = "without a title, as the index of a data frame"

TRUTH_TITLES = ("truth", "ytrue", "truelabel", "groundtruth", "gold", "goldlabel", "trueclass")

_ADDED = ("label", "confidence", "outcome")  # to the user's table by `appellate rectify`
_OUTCOMES = {"upheld", "overturned", "reviewed", "excluded"}
_MOST = 0.8  # share of the cells
_FEW = 10  # rows; fewer may be numbered by chance
_WHOLE = re.compile(r"([+-]?\d{1,15})(\.0*)?")


def holds_labels(
    title: str, cells: Iterable[str], names: Sequence[str], matrix: NDArray[np.bool_]
) -> bool:
    """Tell whether a column holds labels of the rows, such as the true ones.

    Parameters
    ----------
    title : str
        Of the column.
    cells : iterable of str
        Its n cells; blank if missing.
    names : sequence of str
        The l class names.
    matrix : ndarray of bool, shape (n, l)
        Candidates of the rows.

    Returns
    -------
    bool
        A column of texts does if all are class names, and at least two. Numbers must moreover
        be among the candidates of their rows more often than by chance, in 80 % at least of ten
        rows or more: grey values are no digits. Under a title such as ``truth`` it is enough
        that most cells are class names.

    Examples
    --------
    >>> matrix = np.array([[True, True, False], [False, True, True]])
    >>> holds_labels("kind", ["cat", "dog"], ["cat", "dog", "owl"], matrix)
    True
    >>> holds_labels("grey", ["2", "0"], ["0", "1", "2"], matrix)
    False
    """
    titled = simplify(title) in TRUTH_TITLES
    codes = {name: j for j, name in enumerate(names)}
    numbers = {number: j for name, j in codes.items() if (number := as_decimal(name)) is not None}
    rows, found, strange, numeric = [], [], 0, True
    for i, cell in enumerate(cells):
        number = as_decimal(cell) if numeric else None
        code = codes.get(cell, numbers.get(number) if number is not None else None)
        if code is not None:
            rows.append(i)
            found.append(code)
            numeric = numeric and number is not None
        elif cell.strip():
            strange += 1
            if not titled:
                return False
    if titled and found:
        return len(found) >= _MOST * (len(found) + strange)
    if len({*found}) < 2:
        return False
    return not numeric or _is_candidate(matrix[rows], found)


def _is_candidate(matrix: NDArray[np.bool_], codes: Sequence[int]) -> bool:
    """Tell whether labels are candidates of their own rows, and not of any row as well."""
    if len(codes) < _FEW:
        return False
    own = matrix[np.arange(len(codes)), codes].mean()
    shares = np.bincount(codes, minlength=matrix.shape[1]) / len(codes)
    chance = shares @ matrix.mean(axis=0)
    return bool(own >= max(_MOST, (1 + chance) / 2))


def counts_rows(cells: Iterable[str]) -> bool:
    """Tell whether a column numbers the rows: whole numbers without a gap, in any order.

    Examples
    --------
    >>> counts_rows(map(str, range(20, 0, -1))), counts_rows(map(str, range(0, 40, 2)))
    (True, False)
    """
    seen: set[int] = set()
    for cell in cells:
        whole = _WHOLE.fullmatch(cell)
        if whole is None or int(whole[1]) in seen:
            return False
        seen.add(int(whole[1]))
    return len(seen) >= _FEW and max(seen) - min(seen) == len(seen) - 1


def find_earlier(columns: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return the columns that `appellate rectify` added to a table, if all of them are there.

    Examples
    --------
    >>> find_earlier({"label": ["a"], "confidence": ["0.5"], "outcome": ["upheld"]})
    ['label', 'confidence', 'outcome']
    >>> find_earlier({"label": ["a"], "confidence": ["0.5"], "outcome": ["died"]})
    []
    """
    added = {
        name: [title for title in columns if re.fullmatch(rf"{name}|appeal_{name}\d*", title)]
        for name in _ADDED
    }
    added["outcome"] = [
        title for title in added["outcome"] if all(str(c) in _OUTCOMES for c in columns[title])
    ]
    return [title for titles in added.values() for title in titles] if all(added.values()) else []
