"""The same three candidate sets in the forms that the tests of candidates begin with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

NAMES = ["anna", "bob", "carl"]
SETS = [("anna", "bob"), ("bob",), ("anna", "carl")]
MATRIX = np.array([[1, 1, 0], [0, 1, 0], [1, 0, 1]])
STRINGS = ["anna|bob", "bob", " anna | carl "]
ANSWERS = [["anna", "bob", None], ["bob", "bob", None], ["carl", "", "anna"]]
VOTES = [
    ("x", "bob", 1),
    ("y", "bob", 1),
    ("x", "anna", 2),
    ("z", "carl", 2),
    ("z", "anna", 3),
    ("z", "anna", 3),
]


def pd() -> Any:
    """Return pandas, or skip the test."""
    return pytest.importorskip("pandas")


def pl() -> Any:
    """Return polars, or skip the test."""
    return pytest.importorskip("polars")


def narwhals_frame() -> Any:
    """Return a frame that is wrapped already."""
    narwhals = pytest.importorskip("narwhals")
    return narwhals.from_native(pl().DataFrame(MATRIX, schema=NAMES), eager_only=True)


def objects(values: list[Any]) -> np.ndarray:
    """Return a 1-D object array, also of lists."""
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return array


def shuffled_table(frame: Any) -> Any:
    """Return the votes as a frame whose columns come in another order, with one to spare."""
    item, label, annotator = zip(*VOTES, strict=True)
    columns = {"time": range(6), "label": label, "annotator": annotator, "item": item}
    return frame(columns)
