"""Columns of class probabilities of a model: which class each is of, and what they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from appellate.tables.cells import TableError, name_some
from appellate.tables.labels import Labels

if TYPE_CHECKING:
    from appellate.tables.reading import Table
    from appellate.tables.roles import Roles

_ROLE = "model_probabilities="
_NEAR = 1e-3  # to 1, which the probabilities of a row sum to


def classes_by_column(patterns: Sequence[str], columns: Sequence[str]) -> dict[str, str]:
    """Return the class of every column: what the ``*`` of the pattern means.

    Examples
    --------
    >>> classes_by_column(["p_*"], ["p_cat", "p_dog"])
    {'p_cat': 'cat', 'p_dog': 'dog'}
    """
    if len(patterns) != 1 or str(patterns[0]).count("*") != 1:
        raise TableError(
            f"{_ROLE}: {name_some(list(map(str, patterns)))} does not say which class a column is "
            "of. Give one pattern with one '*' for the name of the class, such as 'p_*'."
        )
    start, _, end = str(patterns[0]).strip().partition("*")
    return {name: name[len(start) : len(name) - len(end)].strip() for name in columns}


def pattern_of(classes: Mapping[str, str]) -> str:
    """Return the pattern that the columns were named with.

    Examples
    --------
    >>> pattern_of({"p_p": "p", "p_dog": "dog"})
    'p_*'
    """
    patterns: set[str] | None = None
    for column, name in classes.items():
        places = [i for i in range(len(column)) if column.startswith(name, i)]
        own = {f"{column[:i]}*{column[i + len(name) :]}" for i in places}
        patterns = own if patterns is None else patterns & own
    return min(patterns or {"*"})


def read_probabilities(
    table: Table, roles: Roles, labels: Labels, class_names: Sequence[str]
) -> NDArray[np.float64]:
    """Read the probabilities of a model, one row per item and one column per class.

    Parameters
    ----------
    table, roles, labels
        The table, what its columns are, and the labels that were read from it.
    class_names : sequence of str
        The classes, in the order of the columns that are returned.

    Returns
    -------
    ndarray, shape (n, l)
        NaN in the rows for which all cells are empty.

    Raises
    ------
    TableError
        If a class has no column, a column has no class, or cells are not probabilities.
    """
    column_of = {name: column for column, name in roles.model_probabilities.items()}
    unknown = [column for name, column in column_of.items() if name not in class_names]
    if unknown:
        raise TableError(
            f"{table.where(unknown[0])} ({_ROLE}): the table has no label "
            f"{name_some([roles.model_probabilities[unknown[0]]])}. The labels: "
            f"{name_some(list(class_names), 8)}. Rename the column, or choose another pattern."
        )
    lacking = [name for name in class_names if name not in column_of]
    if lacking:
        raise TableError(
            f"{table.source}: {_ROLE} has no column for the label {name_some(lacking, 8)}. Give "
            "one column per label, of zeros if the model does not know the label."
        )
    columns = [column_of[name] for name in class_names]
    values = np.stack([_numbers(table, column) for column in columns], axis=1)
    empty = np.isnan(values)
    for row, j in np.argwhere(empty & ~empty.all(axis=1, keepdims=True))[:1]:
        raise TableError(
            f"{table.where(columns[j], [row])} ({_ROLE}): the cell is empty. Fill it, or empty "
            "all probabilities of the row if the model has none for it."
        )
    for row, j in np.argwhere((values < 0) | (values > 1))[:1]:
        raise TableError(
            f"{table.where(columns[j], [row])} ({_ROLE}): {values[row, j]:g} is not between 0 and "
            "1. Give probabilities, not scores or percentages."
        )
    total = values.sum(axis=1)
    for row in np.flatnonzero(np.abs(total - 1) > _NEAR)[:1]:
        raise TableError(
            f"{table.where(columns[0], [row])} and the other columns of {_ROLE}: the row sums to "
            f"{total[row]:.4g}, not to 1. Give probabilities, not scores."
        )
    first = values[labels.first]
    same = np.isclose(values, first[labels.owner], rtol=0, atol=1e-9, equal_nan=True)
    for row, j in np.argwhere(~same)[:1]:
        raise TableError(
            f"{table.where(columns[j], [row])} ({_ROLE}): {values[row, j]:g} differs from the "
            "first row of the same item. Give all rows of an item the same probabilities."
        )
    return np.asarray(first)


def _numbers(table: Table, column: str) -> NDArray[np.float64]:
    values = table.numbers(column)
    if values is None and table.data.column(column).null_count < len(table):
        raise TableError(f"{table.where(column)} ({_ROLE}) does not hold numbers.")
    return np.full(len(table), np.nan) if values is None else values
