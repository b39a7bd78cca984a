"""Labels of a table: candidates in a cell, one column a person, or one answer a row."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from appellate.cli.cells import as_label, as_text, match, restore
from appellate.cli.errors import UserError
from appellate.cli.features_in import FROM_ZERO
from appellate.cli.tables_in import Table, expand, name_some

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from appellate.candidates import CandidateSets


@dataclass(frozen=True)
class Labels:
    """How the user names the columns of labels; one of the three ways.

    Attributes
    ----------
    candidates : str or None
        Column of candidate sets.
    annotators : tuple of str
        Names or patterns of one column a person.
    long : tuple of str
        Columns item, label and, optionally, annotator of a table of answers.
    separator, rule : str
        As in `appellate.as_candidates`.
    missing : tuple of str
        What stands for no label; the same number in another spelling does so too.
    """

    candidates: str | None = None
    annotators: tuple[str, ...] = ()
    long: tuple[str, ...] = ()
    separator: str = "|"
    rule: str = "union"
    missing: tuple[str, ...] = ()

    @property
    def option(self) -> str:
        """The option that names the columns."""
        if self.candidates:
            return "--candidates"
        return "--annotators" if self.annotators else "--long"

    def read(self, cell: Any) -> str | None:
        """Return the label in a cell, its letters composed (NFC); None if there is none."""
        text = as_label(cell)
        return None if text is None or self.means_none(text) else compose(text)

    def means_none(self, label: Any) -> bool:
        """Tell whether a label stands for none."""
        if not self.missing:
            return False
        from appellate.datasets.spellings import as_decimal

        text = as_text(label).strip()
        number = as_decimal(text)
        return text in self.missing or (
            number is not None and number in map(as_decimal, self.missing)
        )


@dataclass
class Answers:
    """Labels of a table as they were read.

    Attributes
    ----------
    sets : CandidateSets
        Of the n samples.
    owner : ndarray of int, shape (rows of the table,)
        The sample that a row of the table belongs to.
    votes : list or None
        Majority vote of every sample, where the table holds answers.
    columns : list of str
        Where the labels were.
    spellings : dict of str to str
        Labels that are numbers in one of several spellings, and what they are called.
    notes : list of str
        What the user should know.
    """

    sets: CandidateSets
    owner: NDArray[np.intp]
    votes: list[Any] | None
    columns: list[str]
    spellings: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def read_labels(table: Table, labels: Labels, truth: str | None) -> Answers:
    """Read the candidates of a table; labels of the truth have a say in the spelling."""
    try:
        if labels.candidates is not None:
            return _read_candidates(table, labels, truth)
        if labels.annotators:
            return _read_annotators(table, labels, truth)
        return _read_long(table, labels, truth)
    except (ValueError, TypeError) as error:
        where = labels.candidates or name_some(labels.annotators or labels.long)
        raise UserError(f"{table.source}, labels in {where}: {error} {FROM_ZERO}") from error


def _read_candidates(table: Table, labels: Labels, truth: str | None) -> Answers:
    import numpy as np

    from appellate.candidates import as_candidates
    from appellate.datasets.labelkinds import find_separator

    assert labels.candidates is not None
    cells = table.column(labels.candidates, "--candidates")
    notes = []
    if any(isinstance(cell, (list, tuple)) for cell in cells):
        rows: list[Any] = [[] if cell is None else cell for cell in cells]
    else:
        texts = _unescaped([as_text(cell) for cell in cells], labels.separator)
        rows, said = _part(texts, labels.separator)
        notes += said
        mark = find_separator(texts) if all(len(row) < 2 for row in rows) else None
        if mark is not None:
            notes.append(
                f"every row has one label, but some cells hold {mark!r}, as in "
                f"{next(text for text in texts if mark in text)[:40]!r}. If it parts candidates, "
                f"add --separator '{mark}'."
            )
    spellings: dict[str, str] = {}
    if all(isinstance(row, (list, tuple)) for row in rows):  # as_candidates refuses others
        kept = {id(row): _keep(row, labels) for row in rows}
        spellings = _spellings(table, labels, truth, (e for row in kept.values() for e in row))
        rows = [kept[id(row)] for row in rows]
        rows = [[spellings.get(e, e) for e in row] for row in rows] if spellings else rows
    sets = as_candidates(rows, layout="sets", separator=labels.separator)
    return Answers(sets, np.arange(len(table)), None, [labels.candidates], spellings, notes)


def _part(texts: list[str], separator: str) -> tuple[list[Any], list[str]]:
    """Part cells into labels, one object for equal cells; say if they were lists."""
    from appellate.datasets.spellings import read_lists

    lists = read_lists(texts)
    if lists is not None:
        return lists, ["cells such as \"['cat', 'dog']\" are read as lists of labels."]
    parts = {
        text: [part.strip() for part in text.split(separator)] if text.strip() else []
        for text in set(texts)
    }
    return [parts[text] for text in texts], []


def _keep(row: Sequence[Any], labels: Labels) -> list[Any]:
    """Return the labels of a row that do not stand for none."""
    return [
        compose(label) if isinstance(label, str) else label
        for label in row
        if not labels.means_none(label)
    ]


def compose(text: str) -> str:
    """Return a text with its letters composed (NFC)."""
    return unicodedata.normalize("NFC", text)


def _unescaped(cells: list[str], separator: str) -> list[str]:
    """Undo the apostrophes of an earlier run before labels that occur without them too."""
    escaped = [restore(cell) != cell for cell in cells]
    if not any(escaped):
        return cells
    rows = [[part.strip() for part in cell.split(separator)] for cell in cells]
    known = {part for row, e in zip(rows, escaped, strict=True) for part in row[e:]}
    return [
        restore(cell) if row[0] not in known and match(row[0], known) in known else cell
        for cell, row in zip(cells, rows, strict=True)
    ]


def _spellings(
    table: Table, labels: Labels, truth: str | None, answers: Iterable[Any]
) -> dict[str, str]:
    """Return one spelling of labels that are numbers; empty if they are, or have, but one."""
    from appellate.datasets.spellings import unify_numbers

    truths = [labels.read(cell) for cell in table.columns[truth]] if truth else []
    found: set[str] = set()
    for label in (*answers, *truths):
        if isinstance(label, str):
            found.add(label)
        elif label is not None:
            return {}
    return unify_numbers(sorted(found))


def _read_annotators(table: Table, labels: Labels, truth: str | None) -> Answers:
    import numpy as np

    from appellate.candidates import as_candidates

    names = expand(table, labels.annotators, "--annotators")
    answers = [[labels.read(cell) for cell in table.columns[name]] for name in names]
    spellings = _spellings(table, labels, truth, (e for column in answers for e in column))
    people = [[spellings.get(e or "", e) for e in row] for row in zip(*answers, strict=True)]
    sets = as_candidates(people, layout="annotators", rule=labels.rule)
    return Answers(sets, np.arange(len(table)), _majority(people), names, spellings)


def _read_long(table: Table, labels: Labels, truth: str | None) -> Answers:
    import numpy as np

    from appellate.candidates import as_candidates

    columns = [[as_label(c) for c in table.column(name, "--long")] for name in labels.long]
    empty = [i for i, item in enumerate(columns[0]) if item is None]
    if empty:
        raise UserError(
            f"{table.source}, column '{labels.long[0]}': row {empty[0]} names no item {FROM_ZERO}."
        )
    given = list(map(labels.read, columns[1]))
    spellings = _spellings(table, labels, truth, given)
    columns[1] = [spellings.get(label or "", label) for label in given]
    items = list(dict.fromkeys(columns[0]))
    number = {item: i for i, item in enumerate(items)}
    sets = as_candidates(
        [list(row) for row in zip(*columns, strict=True)],
        layout="long",
        rule=labels.rule,
        items=items,
    )
    owner = np.array([number[item] for item in columns[0]], dtype=np.intp)
    answers: list[list[Any]] = [[] for _ in items]
    for i, label in zip(owner.tolist(), columns[1], strict=True):
        answers[i].append(label)
    return Answers(sets, owner, _majority(answers), list(labels.long), spellings)


def _majority(answers: Sequence[Sequence[Any]]) -> list[Any]:
    """Most frequent answer of every sample; the first in order among equals."""
    from collections import Counter

    winners = []
    for row in answers:
        counts = Counter(a for a in row if a is not None)
        winners.append(min(counts, key=lambda a: (-counts[a], a)) if counts else None)
    return winners
