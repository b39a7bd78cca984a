"""The options ``--cost`` and ``--order``: what a wrong label costs, in whose order."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from appellate.cli.errors import UserError, in_options

if TYPE_CHECKING:
    from appellate.cli.roles import Case
    from appellate.cli.tables_in import Table

#: For the help of a command; it loads nothing.
COST_HELP = "What a near miss costs: absolute, within:3, ordinal:3, tree, or a FILE.csv of costs."
ORDER_HELP = "All labels from first to last, for a cost that needs an order."
_WORDS = {
    "Use None, ": "Use ",
    "a mapping of names to paths, or a matrix": "or a FILE.csv of costs",
    "a mapping of names to paths": "a FILE.csv of names and paths",
}


def split_order(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, ...]:
    """Read ``--order``; labels that hold a comma are quoted, as in CSV."""
    if value is None:
        return ()
    names = [name.strip() for name in next(csv.reader([value], skipinitialspace=True), [])]
    twice = sorted({name for name in names if names.count(name) > 1})
    if len(names) < 2 or not all(names) or twice:
        reason = f"'{twice[0]}' comes twice." if twice else "give two labels or more."
        raise click.BadParameter(f"{reason} For instance: --order small,medium,large")
    return tuple(names)


def settle(case: Case, cost: str | None, order: tuple[str, ...]) -> tuple[Case, Any]:
    """Put the labels in their order and read the cost; both are checked before any work.

    Returns
    -------
    Case, cost
        The case with its labels in order, and what `PLCPClassifier` takes as `cost`.
    """
    from appellate.costs import WORDS, as_numbers, cost_matrix, is_ordered

    if order and not is_ordered(cost):
        raise UserError(
            "--order is for a cost that needs one: add --cost absolute, within:N or ordinal:W."
        )
    if order:
        case = _reorder(case, order)
    names = case.sets.class_names.tolist()
    if is_ordered(cost) and not order and as_numbers(names) is None:
        raise UserError(
            f"--cost {cost} needs an order, and not all labels are numbers. Name all labels from "
            f"first to last: --order {_some(names)}"
        )
    found: Any = cost
    if cost is not None and cost.partition(":")[0] not in WORDS and Path(cost).suffix:
        found = _read_file(cost, names)
    try:
        cost_matrix(found, names)
    except ValueError as error:
        words = {f"cost={cost!r} ": "it ", **_WORDS}
        raise UserError(f"--cost {cost}: {in_options(str(error), words)}") from error
    return case, found


def _reorder(case: Case, order: tuple[str, ...]) -> Case:
    """Give the candidate sets the columns of an order; labels that no row has are added."""
    import numpy as np

    from appellate.candidates import CandidateSets

    found = case.sets.class_names.tolist()
    known = {str(name): j for j, name in enumerate(found)}
    lacking = [name for name in known if name not in order]
    if lacking:
        raise UserError(f"--order lacks labels of the table: {', '.join(map(repr, lacking[:8]))}.")
    matrix = np.zeros((len(case), len(order)), dtype=bool)
    names = np.empty(len(order), dtype=object)
    for j, name in enumerate(order):
        if name in known:
            matrix[:, j] = case.sets.matrix[:, known[name]]
        names[j] = found[known[name]] if name in known else _like(name, found)
    labels = names if case.sets.class_names.dtype == object else np.array(names.tolist())
    return replace(case, sets=CandidateSets(matrix, labels, case.sets.ids))


def _like(name: str, labels: list[Any]) -> Any:
    """Read a label that no row has as what the others are: a number among numbers."""
    kind = type(labels[0])
    try:
        return kind(name) if kind in (int, float) else name
    except ValueError:
        what = "whole number" if kind is int else "number"
        raise UserError(f"--order: '{name}' is no {what}, but the labels are.") from None


def _read_file(path: str, names: list[Any]) -> Any:
    """Read a table of costs, or of labels and their paths in a tree."""
    from appellate.cli.cells import as_text
    from appellate.cli.tables_in import read_table

    table = read_table(path)
    first, *others = table.columns
    rows = {as_text(cell): i for i, cell in enumerate(table.columns[first])}
    lacking = [name for name in names if str(name) not in rows]
    if lacking:
        raise UserError(f"--cost: {table.source} has no row for the label '{lacking[0]}'.")
    if len(others) == 1:
        paths = table.columns[others[0]]
        return {str(name): as_text(paths[rows[str(name)]]) for name in names}
    return _read_matrix(table, rows, names)


def _read_matrix(table: Table, rows: dict[str, int], names: list[Any]) -> list[list[float]]:
    from appellate.cli.cells import as_text

    missing = [name for name in names if str(name) not in table.columns]
    if missing:
        raise UserError(
            f"--cost: {table.source} has no column for the label '{missing[0]}'. A table of costs "
            "has the true labels in its first column and one column for every predicted label; "
            "a table of paths has two columns."
        )
    matrix = []
    for true in names:
        row = []
        for predicted in names:
            cell = as_text(table.columns[str(predicted)][rows[str(true)]])
            try:
                row.append(float(cell))
            except ValueError:
                raise UserError(
                    f"--cost: {table.source}, row '{true}', column '{predicted}' holds {cell!r}, "
                    "which is no number."
                ) from None
        matrix.append(row)
    return matrix


def _some(names: list[Any]) -> str:
    shown = ",".join(str(name) for name in names[:4])
    return shown + (",..." if len(names) > 4 else "")
