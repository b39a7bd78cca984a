"""What sets of labels look like: counts, and the verdict that they suggest."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from appellate.candidates import name_rows

Kind = Literal["partial-label", "multi-label", "noisy", "plain"]
Sets = list[tuple[str, ...]]

_SEPARATORS = ("|", ";", ",")
_EMPTY_SETS = 0.05  # share of empty sets from which they look meant


def find_separator(cells: Sequence[str]) -> str | None:
    """Return what parts labels in most cells, if anything does."""
    counts = {mark: sum(mark in cell for cell in cells) for mark in _SEPARATORS}
    for mark in sorted(counts, key=lambda mark: -counts[mark]):
        if counts[mark] and (mark == "|" or _recombines(cells, mark)):
            return mark
    return None


def _recombines(cells: Sequence[str], mark: str) -> bool:
    """Tell labels apart from names such as 'Doe, Jane': their parts come in several cells."""
    seen = Counter(part for cell in set(cells) for part in {*split(cell, mark)})
    return any(seen[part] > 1 for cell in cells if mark in cell for part in split(cell, mark))


def split(cell: str, mark: str | None) -> tuple[str, ...]:
    """Return the distinct labels in a cell, their letters composed (NFC)."""
    cell = unicodedata.normalize("NFC", cell)
    parts = (part.strip() for part in (cell.split(mark) if mark else (cell,)))
    return tuple(dict.fromkeys(part for part in parts if part))


def count_sets(sets: Sets) -> dict[str, Any]:
    """Count rows, classes and sizes."""
    sizes = np.fromiter(map(len, sets), dtype=int, count=len(sets))
    classes = {label for labels in sets for label in labels}
    return {
        "rows": len(sets),
        "classes": len(classes),
        "mean_size": float(sizes.mean()),
        "largest": int(sizes.max()),
        "singletons": int(np.count_nonzero(sizes == 1)),
        "several": int(np.count_nonzero(sizes > 1)),
        "full_sets": int(np.count_nonzero(sizes == len(classes))) if len(classes) > 1 else 0,
        "empty": int(np.count_nonzero(sizes == 0)),
        "truth_coverage": None,
    }


def name_empty(sets: Sets) -> list[str]:
    """Name the rows without a label."""
    rows = [i for i, labels in enumerate(sets) if not labels]
    if not rows:
        return []
    return [f"no label in {name_rows(rows)}: give them one or drop them."]


def name_gaps(cells: Sequence[str], mark: str | None) -> list[str]:
    """Name the rows with nothing before, after or between separators."""
    if mark is None:
        return []
    parted = [cell.split(mark) if cell.strip() else [] for cell in cells]
    rows = [i for i, parts in enumerate(parted) if not all(part.strip() for part in parts)]
    if not rows:
        return []
    return [f"an empty label in {name_rows(rows)}: take out the {mark!r} that parts nothing."]


def coverage(sets: Sets, answers: Sets) -> float | None:
    """Return the share of the rows whose truth, where there is one, is in the set."""
    pairs = [(row, truth) for row, truth in zip(sets, answers, strict=True) if truth]
    return float(np.mean([{*truth} <= {*row} for row, truth in pairs])) if pairs else None


def judge_sets(sets: Sets, facts: dict[str, Any], answers: Sets | None) -> tuple[Kind, str]:
    """Judge rows of which some have several labels; adds the truth coverage to the facts."""
    share = facts["several"] / facts["rows"]
    start = f"{share:.1%} of the rows have several labels"
    if answers is not None:
        if any(len(truth) > 1 for truth in answers):
            return "multi-label", f"{start}, and so has the truth: all labels of a set count."
        covered = coverage(sets, answers)
        if covered is None:
            return judge_sets(sets, facts, None)
        facts["truth_coverage"] = covered
        if covered == 1:
            return "partial-label", f"{start}, and the one true label is always among them."
        return (
            "partial-label",
            f"{start}, and the one true label is among them in {covered:.1%} of the rows: the "
            "sets are noisy.",
        )
    empty = facts["empty"] / facts["rows"]
    if empty >= _EMPTY_SETS:
        return (
            "multi-label",
            f"{start} and {empty:.1%} have none. A candidate set is never empty, so this looks "
            "like all labels of a set being true; the file alone cannot tell.",
        )
    return (
        "partial-label",
        f"{start}. This is partial-label if one label of each set is true, multi-label if all "
        "are; the file alone cannot tell.",
    )


def judge_labels(sets: Sets, facts: dict[str, Any], answers: Sets | None) -> tuple[Kind, str]:
    """Judge rows with one label at most; adds the truth coverage to the facts."""
    if answers is not None:
        facts["truth_coverage"] = covered = coverage(sets, answers)
        if covered is not None and covered < 1:
            wrong = f"{1 - covered:.1%} of the rows"
            return "noisy", f"every row has one label, which is not the truth in {wrong}."
    return "plain", "every row has one label at most."
