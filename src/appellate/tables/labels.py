"""Labels of a table as plain arrays: candidate sets, or who answered what.

Nothing is thrown away here: answers keep their person, counts their number. What becomes of
them is decided behind `appellate.as_candidates` and by the methods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from appellate.tables import cells
from appellate.tables.cells import TableError, as_label, name_rows, name_some, split
from appellate.tables.reading import Table

if TYPE_CHECKING:
    from appellate.tables.roles import Roles

SEPARATORS = ("|", ";", ",")

# Row and code of every label, the labels, the people, what to note.
_Entries = tuple[NDArray[np.intp], NDArray[np.intp], Sequence[str], tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class Labels:
    """Candidates or answers, one entry each, of the n samples of a table.

    Attributes
    ----------
    rows, people, labels : ndarray of int, shape (m,)
        Sample, person (-1 for candidates and where it is not known) and label of every entry.
    weights : ndarray of float, shape (m,)
        How often an answer was given.
    n_rows : int
        Number of samples: rows of the table, or items of a long table.
    class_names : ndarray of str, shape (l,)
        Labels that occur, sorted, as numbers if all are numbers.
    ids : ndarray, shape (n,), or None
        Names of the samples.
    people_names : ndarray of str
        What the people are called.
    owner : ndarray of int, shape (rows of the table,)
        The sample that a row of the table belongs to.
    first : ndarray of int, shape (n,)
        The first row of the table that belongs to a sample.
    truth : ndarray of object, shape (n,), or None
        True labels, None where there is none.
    notes : tuple of str
        What was read in a way that is good to know.
    """

    rows: NDArray[np.intp]
    people: NDArray[np.intp]
    labels: NDArray[np.intp]
    weights: NDArray[np.float64]
    n_rows: int
    class_names: NDArray[Any]
    ids: NDArray[Any] | None
    people_names: NDArray[Any]
    owner: NDArray[np.intp]
    first: NDArray[np.intp]
    truth: NDArray[Any] | None
    notes: tuple[str, ...]

    @cached_property
    def counts(self) -> NDArray[np.float64]:
        """Votes, shape (n, l)."""
        counts = np.zeros((self.n_rows, len(self.class_names)))
        np.add.at(counts, (self.rows, self.labels), self.weights)
        return counts

    @cached_property
    def matrix(self) -> NDArray[np.bool_]:
        """Candidates, shape (n, l): True where a label is in the set or was answered."""
        matrix = np.zeros((self.n_rows, len(self.class_names)), dtype=bool)
        matrix[self.rows, self.labels] = True
        return matrix

    @property
    def majority(self) -> NDArray[np.intp]:
        """Most frequent label of every sample, the first in order among equals; -1 if none."""
        counts = self.counts
        return np.where(counts.any(axis=1), counts.argmax(axis=1), -1)

    def problems(self, *, answers: bool = False) -> list[str]:
        """Say why nothing could be learned from these labels.

        With `answers` of people, a row may have none, or all labels.
        """
        n, l = self.n_rows, len(self.class_names)
        empty = np.flatnonzero(np.bincount(self.rows, minlength=n) == 0)
        said = []
        if n < 2:
            said.append("one row only: nothing can be compared with it.")
        if len(empty) and not answers:
            said.append(f"no label in {name_rows(empty)}: give them one or drop them.")
        if l < 2:
            said.append(
                f"every row has the one label {name_some(self.class_names)}, so there is nothing "
                "to decide. Is it the right column, and the right separator?"
            )
        elif self.matrix.all() and not answers:
            said.append(f"every row has all {l} labels: narrow the sets of some rows.")
        if l > max(50, n // 2):
            said.append(
                f"{l} different labels in {n} rows, e.g. {name_some(self.class_names, 3)}: labels "
                "that hardly ever recur cannot be learned. Is it the right column, and the right "
                "separator?"
            )
        return said


def read_labels(table: Table, roles: Roles) -> Labels:
    """Read candidates or people's answers from a table.

    Parameters
    ----------
    table : Table
        The user's.
    roles : Roles
        What its columns are, see `find_roles`.

    Returns
    -------
    Labels
        Sample, person and label of every answer or candidate. In a long table a person who
        repeats an answer has one vote.

    Raises
    ------
    TableError
        If a cell cannot be read as what it should be.

    Examples
    --------
    >>> from appellate.tables import find_roles, read_labels, read_table
    >>> table = read_table({"x": [0.5, 1.5], "names": ["anna|bob", "bob"]})
    >>> read = read_labels(table, find_roles(table))
    >>> read.matrix, read.class_names.tolist()
    (array([[ True,  True],
           [False,  True]]), ['anna', 'bob'])
    >>> table = read_table({"ann": ["cat", "dog"], "ben": ["cat", None], "cleo": ["cow", "dog"]})
    >>> read = read_labels(table, find_roles(table, annotators=["ann", "ben", "cleo"]))
    >>> read.rows.tolist(), read.people.tolist(), read.class_names[read.labels].tolist()
    ([0, 0, 0, 1, 1], [0, 1, 2, 0, 2], ['cat', 'cat', 'cow', 'dog', 'dog'])
    """
    owner = first = np.arange(len(table))
    people_names: Sequence[str] = ()
    items = people = weights = None
    notes: tuple[str, ...] = ()
    if roles.counts or len(roles.candidates) > 1:
        given: Sequence[str] = roles.counts or roles.candidates
        counts = _counts(table, given, most=np.inf if roles.counts else 1)
        rows, codes = np.nonzero(counts)
        weights = counts[rows, codes]
    elif roles.candidates:
        rows, codes, given, notes = _sets(table, roles)
    elif roles.annotators:
        people_names = roles.annotators
        given, answers = together([coded(table, name) for name in roles.annotators])
        rows, people = np.nonzero(answers >= 0)
        codes = answers[rows, people]
    else:
        (owner, items), (codes, given), *who = (coded(table, name) for name in roles.long)
        rows = owner
        people, people_names = who[0] if who else (None, ())
        _refuse_nameless(table, roles.long[0], owner)
        first = np.full(len(items), len(table))
        np.minimum.at(first, owner, np.arange(len(table)))
    truth, truths = coded(table, roles.truth) if roles.truth else (None, [])
    spelled, notes_ = _spell([*given, *truths], roles.missing)
    kept = {spelled[given[code]] for code in np.unique(codes[codes >= 0]).tolist()} - {None}
    fixed = roles.counts or roles.candidates[1:]
    names = list(given) if fixed else cells.in_order(name for name in kept if name)
    place = {name: j for j, name in enumerate(names)}
    final = np.array([place.get(spelled[g] or "", -1) for g in given] + [-1])[codes]
    people = np.full(len(rows), -1) if people is None else people
    weights = np.ones(len(rows)) if weights is None else weights
    keep = np.flatnonzero(final >= 0)
    entries = np.stack([rows, people, final])[:, keep].astype(np.intp)
    weights = weights[keep]
    if len(roles.long) > 2:
        entries = np.unique(entries, axis=1)
        weights = np.ones(entries.shape[1])
    ids = _ids(table, roles.id, first)
    return Labels(
        rows=entries[0],
        people=entries[1],
        labels=entries[2],
        weights=weights,
        n_rows=len(first),
        class_names=np.array(names, dtype=np.str_),
        ids=np.array(items, dtype=object) if ids is None and items else ids,
        people_names=np.array(people_names, dtype=np.str_),
        owner=owner,
        first=first,
        truth=None if truth is None else _named(truth[first], [spelled[t] for t in truths]),
        notes=(*notes, *notes_, *_doubtful(names, roles)),
    )


def find_separator(column: Mapping[str, int]) -> str | None:
    """Return what parts labels in the cells of a column, if anything does.

    Parameters
    ----------
    column : mapping of str to int
        Distinct cells and how often they occur.

    Examples
    --------
    >>> find_separator({"cat;dog": 1, "dog;cow": 2, "cow": 3})
    ';'
    >>> find_separator({"Doe, Jane": 1, "Roe, Rick": 1})
    """
    found = []
    for mark in SEPARATORS:
        holding = sum(count for cell, count in column.items() if mark in cell)
        if holding and _recombine([split(cell, mark) for cell in column], mark):
            found.append((holding, mark))
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _recombine(parted: Sequence[Sequence[str]], mark: str) -> bool:
    """Tell labels from prose and from names such as 'Doe, Jane': their parts come again."""
    parts = Counter(part for row in parted for part in row)
    if not parts:
        return False
    words, letters = np.mean([(part.count(" ") + 1, len(part)) for part in parts], axis=0)
    again = sum(count for count in parts.values() if count > 1)
    return bool(words <= 4 and letters <= 40 and (mark == "|" or again >= 0.6 * parts.total()))


def coded(table: Table, name: str) -> tuple[NDArray[np.intp], list[str]]:
    """Return a column as numbers of its distinct texts, -1 where empty."""
    column = table.texts(name).dictionary_encode()
    codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return codes.astype(np.intp), column.dictionary.to_pylist()


def _named(codes: NDArray[np.intp], names: Sequence[str | None]) -> NDArray[Any]:
    return np.array([*names, None], dtype=object)[codes]


def _spell(
    given: Sequence[str], missing: Sequence[str]
) -> tuple[dict[str, str | None], tuple[str, ...]]:
    """Give every label its one spelling, None to those that stand for none; say what changed."""
    marks = {mark for mark in map(as_label, missing) if mark}
    same = cells.one_spelling([*given, *marks])
    marks |= {same[mark] for mark in marks if mark in same}
    spelled = {label: same.get(label, label) for label in given}
    changed = [f"'{a}' as '{b}'" for a, b in spelled.items() if a != b and b not in marks]
    rest = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
    shown = cells.printable(", ".join(changed[:3])) + rest
    notes = (f"labels that are the same number are read as one: {shown}.",) if changed else ()
    return {label: None if name in marks else name for label, name in spelled.items()}, notes


def _sets(table: Table, roles: Roles) -> _Entries:
    """Return row and label of every candidate in a column of sets."""
    name, mark = roles.candidates[0], roles.separator
    column = table.data.column(name)
    notes: tuple[str, ...] = ()
    if pa.types.is_nested(column.type):
        codes = np.arange(len(table))
        parted = [_distinct(value) for value in column.to_pylist()]
    else:
        codes, texts = coded(table, name)
        lists = _lists(table, name, codes, texts)
        parted = lists or [split(text, mark) for text in texts]
        gaps = [mark and not all(map(str.strip, text.split(mark))) for text in texts]
        rows = np.flatnonzero(np.array([*gaps, False], dtype=bool)[codes])
        if lists:
            notes = (f"cells of {name_some([name])} are read as lists of labels.",)
        elif len(rows):
            notes = (f"nothing before, after or between two {mark!r} in {name_rows(rows)}.",)
    place: dict[str, int] = {}
    flat = [place.setdefault(label, len(place)) for row in parted for label in row]
    sizes = np.array([*map(len, parted), 0])
    starts, lengths = (sizes.cumsum() - sizes)[codes], sizes[codes]
    within = np.arange(lengths.sum()) - np.repeat(lengths.cumsum() - lengths, lengths)
    positions = np.repeat(starts, lengths) + within
    rows = np.repeat(np.arange(len(table)), lengths)
    return rows, np.array(flat, dtype=np.intp)[positions], list(place), notes


def _distinct(values: Any) -> tuple[str, ...]:
    each = values if isinstance(values, list) else [values]
    return tuple(dict.fromkeys(label for value in each if (label := as_label(value))))


def _lists(
    table: Table, name: str, codes: NDArray[np.intp], texts: Sequence[str]
) -> list[tuple[str, ...]] | None:
    """Read cells such as ``['cat', 'dog']`` if all look like it."""
    if not all(text[0] in "[{(" and text[-1] in "]})" for text in texts):
        return None
    lists = [cells.parse_list(text) for text in texts]
    wrong = next((i for i, row in enumerate(lists) if row is None), None)
    if wrong is None:
        return [row or () for row in lists]
    if not any(lists):
        return None  # names in brackets
    raise TableError(
        f"{table.source}, column {name_some([name])}: cells look like Python or JSON lists, but "
        f"row {np.flatnonzero(codes == wrong)[0]} cannot be read: {texts[wrong][:40]!r}. Write "
        "its labels as in \"['cat', 'dog']\", or as 'cat|dog'."
    )


def _counts(table: Table, names: Sequence[str], most: float) -> NDArray[np.float64]:
    """Read columns of votes, or of 0 and 1."""
    counts = np.zeros((len(table), len(names)))
    for j, name in enumerate(names):
        values = table.numbers(name)
        values = np.full(len(table), np.nan) if values is None else values
        fits = (values >= 0) & (values <= most) & (values < np.inf)
        wrong = np.flatnonzero(~(fits if most > 1 else fits & (values == np.trunc(values))))
        if len(wrong):
            where = f"{table.source}, column {name_some([name])}, row {wrong[0]}"
            raise TableError(
                f"{where}: no number of votes. Write 0 where nobody chose the label."
                if most > 1
                else f"{where}: neither 0 nor 1. Several columns of candidates hold 0 and 1, one "
                "a label; for one column a person use annotators=."
            )
        counts[:, j] = values
    return counts


def together(
    columns: Sequence[tuple[NDArray[np.intp], list[str]]],
) -> tuple[list[str], NDArray[np.intp]]:
    """Return the distinct labels of several columns and their codes, shape (rows, columns)."""
    place: dict[str, int] = {}
    found = []
    for codes, texts in columns:
        lookup = [*(place.setdefault(text, len(place)) for text in texts), -1]
        found.append(np.array(lookup)[codes])
    return list(place), np.stack(found, axis=1)


def _refuse_nameless(table: Table, name: str, codes: NDArray[np.intp]) -> None:
    rows = np.flatnonzero(codes < 0)
    if len(rows):
        raise TableError(
            f"{table.source}, column {name_some([name])}: no name in {name_rows(rows)}. Fill the "
            "cells or drop the rows."
        )


def _ids(table: Table, name: str | None, first: NDArray[np.intp]) -> NDArray[Any] | None:
    if name is None:
        return None
    codes, texts = coded(table, name)
    _refuse_nameless(table, name, codes[first])
    twice = np.flatnonzero(np.bincount(codes[first]) > 1)
    if len(twice):
        raise TableError(
            f"{table.source}, column {name_some([name])} (id): "
            f"{name_some((texts[i] for i in twice), 3)} occurs more than once. Give every row its "
            "own id; if a row is one answer of several, use long=."
        )
    return _named(codes[first], texts)


def _doubtful(names: Sequence[str], roles: Roles) -> tuple[str, ...]:
    """Say which labels of people are called as an empty cell often is."""
    doubtful = [name for name in names if name.lower() in cells.NO_NUMBER | {"?", "-", "-1"}]
    if not doubtful or not (roles.annotators or roles.long):
        return ()
    return (
        f"taken as labels: {name_some(doubtful)}. If that means that there is no answer, name it "
        "with missing=.",
    )
