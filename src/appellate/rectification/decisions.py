"""What reviewers decided: read for a prepared table, and written for the next review."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate._text import did_you_mean
from appellate.candidates.names import is_missing
from appellate.docket import Docket, free_separator
from appellate.rectification.preparation import Preparation
from appellate.review import Decisions, read_decisions
from appellate.review.decisions import DecisionRecord, as_file, check_kind
from appellate.tables import Table, read_table
from appellate.tables.cells import as_label, as_number, as_text, name_some

_NEEDED = ("id", "decision", "label")  # columns of a table of decisions
_HOW_TO_EXCLUDE = (
    "To say that no label is true, pass a data frame with id, decision ('none') and label (empty)."
)
Reviewed = Mapping[int, tuple[str, str]]  # kind and label of a decision, by item


@dataclass(frozen=True, eq=False)
class Review:
    """What reviewers decided.

    Attributes
    ----------
    decisions : Decisions
        The latest on every item that has one.
    audited : ndarray of bool, shape (n,)
        Which of these items were drawn at random.
    before : ndarray of str, shape (n,)
        The labels that the items had.
    unaided : Docket
        The labels without any decision; audited items are compared with them.
    notes : sequence of str
        How the decisions were read, as far as the user should know.
    """

    decisions: Decisions
    audited: NDArray[np.bool_]
    before: NDArray[Any]
    unaided: Docket
    notes: Sequence[str] = ()

    def labels(self) -> NDArray[Any]:
        """Return the labels of the items without any decision, (n,)."""
        return np.asarray(self.unaided.class_names[self.unaided.appeal])

    def confidence(self) -> NDArray[np.float64]:
        """Return the confidence of these labels, (n,)."""
        return confidence_of(self.unaided)

    def right(self) -> NDArray[np.bool_]:
        """Tell for which items these labels are what was decided, (n,)."""
        found = np.zeros(len(self.audited), dtype=bool)
        found[self.decisions.rows] = self.labels()[self.decisions.rows] == self.decisions.names
        return found


def confidence_of(docket: Docket) -> NDArray[np.float64]:
    """Return the confidence of the final label of every item, (n,)."""
    items = np.arange(len(docket.appeal))
    return np.asarray(docket.appeal_confidence[items, docket.appeal], dtype=np.float64)


def take_decisions(
    prepared: Preparation, before: Reviewed, decisions: Any
) -> tuple[Decisions, list[str]]:
    """Read a file of decisions, or add some to those that were made before.

    These are a data frame of decisions, or labels by name. Also return what the user should know
    of how they were read.
    """
    options: dict[str, Any] = {
        "classes": prepared.classes.tolist(),
        "candidates": prepared.reviewable,
        "ids": None if prepared.labels.ids is None else prepared.names,
        "data": prepared.data,
    }
    notes: list[str] = []
    if isinstance(decisions, (str, os.PathLike)):
        if not Path(decisions).exists():
            raise ValueError(
                f"cannot find the file '{os.fspath(decisions)}'. Decide on some rows first."
            )
        found = read_decisions(
            decisions, **options, spell=lambda them: _spell(prepared, them, notes)
        )
        return found, notes
    skipped: list[str] = []
    if isinstance(decisions, Mapping) and not {*_NEEDED} <= decisions.keys():
        written = _records_of(prepared, decisions, skipped)
    else:
        written = _records_in(read_table(decisions))
    records = _spell(prepared, written, notes)
    if skipped:
        notes.append(
            f"decisions without a label are skipped: {name_some(skipped)}. {_HOW_TO_EXCLUDE}"
        )
    found = read_decisions(records, **options)
    anew = {record["id"] for record in records}
    kept = [
        {"id": prepared.names[i], "decision": kind, "label": label}
        for i, (kind, label) in before.items()
        if prepared.names[i] not in anew
    ]
    return read_decisions([*kept, *records], **options) if kept else found, notes


def _records_in(table: Table) -> list[DecisionRecord]:
    """Return the decisions of a table."""
    lacking = [name for name in _NEEDED if name not in table.names]
    if lacking:
        raise ValueError(
            f"the decisions lack the column {name_some(lacking)}. Pass a table with the "
            "columns id, decision and label, or a mapping from ids to labels."
        )
    cells = (table.texts(name).fill_null("").to_pylist() for name in _NEEDED)
    records = [dict(zip(_NEEDED, row, strict=True)) for row in zip(*cells, strict=True)]
    for record in records:
        check_kind(record, "the decisions")
    return records


def _records_of(
    prepared: Preparation, labels: Mapping[Any, Any], skipped: list[str]
) -> list[DecisionRecord]:
    """Return labels by name as decisions; names without a label are skipped."""
    records, rows = [], {name: i for i, name in enumerate(prepared.names)}
    for key, value in labels.items():
        name = str(key) if str(key) in rows else as_text(key)
        written = None if is_missing(value) else as_label(value)
        label = _find_class(prepared, written)
        if not label:
            skipped.append(name)
            continue
        row = rows.get(name)
        inside = row is not None and label in prepared.classes[prepared.reviewable[row]]
        kind = "other" if inside else "none"
        records.append({"id": name, "decision": kind, "label": written or ""})
    if skipped and not records:
        raise ValueError(f"no decision has a label: {name_some(skipped)}. {_HOW_TO_EXCLUDE}")
    return records


def _find_class(prepared: Preparation, label: str | None) -> str:
    """Return the class that a label means, by its number or its letters; empty for none.

    A label that means no class is returned as it is.
    """
    classes = prepared.classes.tolist()
    if label is None or label in map(as_label, prepared.roles.missing):
        return ""
    number, folded = as_number(label), label.casefold()
    for alike in (
        [name for name in classes if name == label],
        [name for name in classes if number is not None and as_number(name) == number],
        [name for name in classes if name.casefold() == folded],
    ):
        if len(alike) == 1:
            return str(alike[0])
    return label


def _spell(
    prepared: Preparation, records: Iterable[DecisionRecord], notes: list[str]
) -> list[DecisionRecord]:
    """Return decisions with their labels spelled as those of the table; add notes on them."""
    known, rows = {*prepared.classes.tolist()}, {n: i for i, n in enumerate(prepared.names)}
    spelled = []
    respelled: dict[str, str] = {}
    new: dict[str, int] = {}
    for record in records:
        written = as_label(record.get("label", ""))
        label, kind = _find_class(prepared, written), record["decision"]
        row = rows.get(record["id"])
        if label and label != written:
            respelled[str(written)] = label
            if (
                kind == "none"
                and row is not None
                and label in prepared.classes[prepared.reviewable[row]]
            ):
                kind = "other"
        if label and label not in known and kind != "clear":
            new[label] = new.get(label, 0) + 1
        spelled.append({**record, "decision": kind, "label": label})
    for written, label in respelled.items():
        notes.append(
            f"decisions: the label {name_some([written])} is read as {name_some([label])}."
        )
    for label, count in new.items():
        notes.append(
            f"decisions: the table has no label {name_some([label])}."
            f"{did_you_mean(label, prepared.classes.tolist())} It is used as a new label of "
            f"{count} item{'' if count == 1 else 's'}."
        )
    return spelled


def decisions_csv(prepared: Preparation, reviewed: Reviewed) -> str:
    """Write the decisions of a run as the file that the page and its server go on with."""
    glue = free_separator(prepared.classes)
    return as_file(
        {
            "id": prepared.names[i],
            "decision": kind,
            "label": label,
            "candidates": glue.join(prepared.classes[prepared.reviewable[i]].tolist()),
            "data": prepared.data,
        }
        for i, (kind, label) in reviewed.items()
    )
