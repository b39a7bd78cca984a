"""Decisions of reviewers: the file that the docket page exports, and what becomes of it."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from appellate.cli.cells import restore
from appellate.cli.errors import UserError
from appellate.cli.roles import Case
from appellate.cli.tables_in import name_some, read_table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from appellate.candidates import CandidateSets

#: Columns of a file of decisions.
COLUMNS = ("id", "decision", "label", "time")
#: Accept the appeal, keep the verdict, choose another candidate, none of these, take back.
KINDS = ("accept", "keep", "other", "none", "clear")


@dataclass(frozen=True)
class Decisions:
    """What was decided of which samples.

    Attributes
    ----------
    rows : ndarray of int, shape (m,)
        Samples.
    kinds : list of str
        One of `KINDS` each; never ``clear``.
    labels : ndarray of int, shape (m,)
        Class index; -1 for none.
    unknown : int
        Decisions on ids that the table does not have.
    """

    rows: NDArray[np.intp]
    kinds: list[str]
    labels: NDArray[np.intp]
    unknown: int = 0

    def apply(self, sets: CandidateSets) -> tuple[CandidateSets, NDArray[np.bool_]]:
        """Return sets with one candidate for every decided row, and which rows to train on."""
        import numpy as np

        from appellate.candidates import CandidateSets

        matrix, kept = sets.matrix.copy(), np.ones(len(sets), dtype=bool)
        decided = self.labels >= 0
        matrix[self.rows[decided]] = False
        matrix[self.rows[decided], self.labels[decided]] = True
        kept[self.rows[~decided]] = False
        return CandidateSets(matrix, sets.class_names, sets.ids), kept


def read_decisions(path: Path, case: Case) -> Decisions:
    """Read decisions; a later one on the same id replaces an earlier.

    Raises
    ------
    UserError
        If the file is none, or gives a row of the table a label that the table does not have.
    """
    import numpy as np

    table = read_table(str(path), "Decide on some rows first, or leave --decisions out.")
    lacking = [name for name in COLUMNS[:3] if name not in table.columns]
    if lacking:
        raise UserError(
            f"{table.source} is no file of decisions: it has no column {name_some(lacking)}. "
            "Export one from docket.html."
        )
    classes = {str(name): j for j, name in enumerate(case.sets.class_names.tolist())}
    places = {str(name): i for i, name in enumerate(case.ids)}
    latest: dict[str, tuple[str, str]] = {}
    triples = zip(*(table.columns[name] for name in COLUMNS[:3]), strict=True)
    for number, (name, kind, label) in enumerate(triples):
        name, label = restore(str(name)), restore(str(label or ""))
        if kind not in KINDS:
            raise UserError(f"{table.source}, row {number}: '{kind}' is none of {KINDS}.")
        if name in places and kind not in ("none", "clear") and label not in classes:
            raise UserError(
                f"{table.source}, row {number}: the label {label!r} of {name!r} is none of the "
                f"table's. Its labels: {name_some(classes)}."
            )
        latest[name] = (kind, label)
    known = {n: d for n, d in latest.items() if n in places and d[0] != "clear"}
    unknown = sum(n not in places for n in latest)
    if unknown and not known:
        raise UserError(
            f"none of the {len(latest)} ids in {table.source} is in the table, e.g. "
            f"{name_some(latest, 3)}. Were they made with another --id?"
        )
    return Decisions(
        np.array([places[n] for n in known], dtype=np.intp),
        [kind for kind, _ in known.values()],
        np.array(
            [-1 if kind == "none" else classes[label] for kind, label in known.values()],
            dtype=np.intp,
        ),
        unknown,
    )


def as_line(record: dict[str, Any]) -> str:
    """Write one decision as a line of CSV, formulas neutralised."""
    from appellate.cli.cells import neutralize

    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerow(
        [neutralize(str(record.get(name, "") or "")) for name in COLUMNS]
    )
    return stream.getvalue()
