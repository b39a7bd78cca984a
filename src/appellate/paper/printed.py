"""The paper's own numbers, from a file in this package."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files

from appellate.experiments.layouts import Figure, Published

# Printed under Table 2, per cent; the paper does not define it.
IMPROVEMENT_RATIOS = {
    "PL-CL": 3.61,
    "PL-AGGD": 5.10,
    "SURE": 12.24,
    "LALO": 4.01,
    "PL-SVM": 39.26,
    "PL-KNN": 53.98,
}

# Table "Two representative errors": confidence at the start, of the base alone, with PLCP.
REPRESENTATIVE_ERRORS = {
    ("SURE", "rises"): ((0.5000, 0.5334, 0.4177), (0.5000, 0.4666, 0.5823)),
    ("SURE", "starts high"): ((0.6127, 0.5327, 0.4881), (0.3873, 0.4673, 0.5119)),
    ("LALO", "rises"): ((0.2500, 0.3241, 0.2472), (0.2500, 0.2289, 0.3227)),
    ("LALO", "starts high"): ((0.5625, 0.5081, 0.4474), (0.3181, 0.4362, 0.4781)),
}


@cache
def figures() -> dict[tuple[str, str, str], Figure]:
    """Return all printed figures by table, method and column.

    Examples
    --------
    >>> figures()["test_accuracy", "SURE-PLCP", "Lost"]
    Figure(mean=0.719, std=0.021, mark='win')
    """
    text = files("appellate.paper").joinpath("printed.csv").read_text(encoding="utf-8")
    found = {}
    for row in csv.DictReader(text.splitlines()):
        unit = 100.0 if row["table"].endswith("_percent") else 1.0
        found[row["table"], row["method"], row["dataset"]] = Figure(
            mean=float(row["mean"]) / unit,
            std=float(row["std"]) / unit,
            mark={"+": "win", "-": "loss"}.get(row["significance"], ""),
        )
    return found


def lookup(table: str | None, method: str | None, column: str) -> Figure | None:
    """Return a printed figure, or None where the paper has none."""
    return figures().get((str(table), str(method), column))


def published(table: str) -> Published:
    """Return the published figures of one table."""
    found = {
        (method, column): f for (name, method, column), f in figures().items() if name == table
    }
    ratios = IMPROVEMENT_RATIOS if table == "test_accuracy" else {}
    return Published(found, table.endswith("_percent"), ratios)
