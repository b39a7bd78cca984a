"""The labels of a table as plain arrays: candidate sets, or who answered what.

Nothing is thrown away: answers keep their annotator, counts their number. What becomes of them is
decided behind `appellate.as_candidates` and by the methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from appellate._text import listing
from appellate.tables.cells import (
    NO_NUMBER,
    TableError,
    distinct_labels,
    in_order,
    list_rows,
    name_some,
    one_spelling,
    parse_list,
    printable,
)

if TYPE_CHECKING:
    from appellate.tables.reading import Table
    from appellate.tables.roles import Roles


@dataclass(frozen=True, eq=False)
class Labels:
    """Candidates or answers, one entry each, of the n samples of a table.

    Attributes
    ----------
    rows, people, labels : ndarray of int, shape (m,)
        Sample, annotator (-1 for candidates and if it is not known) and label of every entry.
    weights : ndarray of float, shape (m,)
        How often an answer was given.
    n_rows : int
        Number of samples: rows of the table, or items of a long table.
    class_names : ndarray of str, shape (l,)
        Labels that occur, sorted, as numbers if all are numbers.
    ids : ndarray, shape (n,), or None
        Names of the samples.
    people_names : ndarray of str
        What the annotators are called.
    owner : ndarray of int, shape (rows of the table,)
        The sample that a row of the table belongs to.
    first : ndarray of int, shape (n,)
        The first row of the table that belongs to a sample.
    truth : ndarray of object, shape (n,), or None
        True labels, None if there is none.
    notes : tuple of str
        What was read in a way that is good to know.
    lines : ndarray of int, shape (n,), or None
        Lines of the file at which the samples begin, if it has lines.
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
    lines: NDArray[np.intp] | None = None

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

        With `answers` of annotators, a row may have none, or all labels.
        """
        n, l = self.n_rows, len(self.class_names)
        empty = np.flatnonzero(np.bincount(self.rows, minlength=n) == 0)
        said = []
        if n < 2:
            said.append("there is only one row, and nothing to compare it with.")
        if len(empty) and not answers:
            where = list_rows(empty, self.lines)
            said.append(f"no label in {where}: add one, or drop the rows.")
        if not l:
            said.append("No row has a label. Is it the correct column, and the correct missing=?")
        elif l < 2:
            said.append(
                f"every row has the one label {name_some(self.class_names)}, so there is nothing "
                "to decide. Is it the correct column, and the correct separator=?"
            )
        elif self.matrix.all() and not answers:
            said.append(f"every row has all {l} labels: narrow the sets of some rows.")
        if l > max(50, n // 2):
            said.append(
                f"{l} different labels in {n} rows, e.g. {name_some(self.class_names, 3)}: labels "
                "that hardly ever recur cannot be learned. Is it the correct column, and the "
                "correct separator=?"
            )
        return said


def read_labels(table: Table, roles: Roles) -> Labels:
    """Read candidates or annotators' answers from a table.

    Parameters
    ----------
    table : Table
        The user's.
    roles : Roles
        What its columns are, see `find_roles`.

    Returns
    -------
    Labels
        Sample, annotator and label of every answer or candidate. In a long table an annotator who
        gives several answers to an item has one vote for it, shared by the labels named.

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
    notes: list[str] = []
    found = _find_answers(table, roles, notes)
    given, codes = found.given, found.codes
    first = found.first
    truth = None
    truths, true = coded(table, roles.truth) if roles.truth else (found.owner, [])
    spelled = one_spelling([*given, *true], roles.missing)
    changed = [f"'{a}' as '{b}'" for a, b in spelled.items() if b not in (None, a)]
    if changed:
        shown = printable(listing(changed))
        notes.append(f"labels that are the same number are read as one: {shown}.")
    kept = {spelled[given[code]] for code in np.unique(codes[codes >= 0]).tolist()}
    fixed = roles.counts or roles.candidates[1:]
    names = list(given) if fixed else in_order(name for name in kept if name)
    place = {name: j for j, name in enumerate(names)}
    final = np.array([place.get(spelled[g] or "", -1) for g in given] + [-1])[codes]
    n_entries = len(found.rows)
    people = np.full(n_entries, -1) if found.people is None else found.people
    weights = np.ones(n_entries) if found.weights is None else found.weights
    keep = np.flatnonzero(final >= 0)
    entries = np.stack([found.rows, people, final])[:, keep].astype(np.intp)
    weights = weights[keep]
    if len(roles.long) > 2:
        entries, weights = _one_vote(entries, notes)
    if roles.truth:
        truth = np.array([*(spelled[t] for t in true), None], dtype=object)[truths[first]]
    doubtful = [name for name in names if name.lower() in NO_NUMBER | {"?", "-", "-1"}]
    if doubtful and not fixed:
        notes.append(
            f"read as labels: {name_some(doubtful)}. If one of them means that an answer is "
            "missing, name it with missing=."
        )
    notes += _alike(names)
    return Labels(
        rows=entries[0],
        people=entries[1],
        labels=entries[2],
        weights=weights,
        n_rows=len(first),
        class_names=np.array(names, dtype=np.str_),
        ids=found.ids if roles.id is None else _ids(table, roles.id, first),
        people_names=np.array(found.people_names, dtype=np.str_),
        owner=found.owner,
        first=first,
        truth=truth,
        notes=tuple(notes),
        lines=None if table.lines is None else table.lines[first],
    )


class _Found(NamedTuple):
    """Labels as they are written: one entry per answer or candidate.

    Attributes
    ----------
    rows, codes
        Item and place in `given` of every entry; a place is negative if there is no label.
    given
        Labels as they are written.
    owner, first
        Item of every row of the table, and the first row of every item.
    people, people_names, weights, ids
        Annotator of every entry, their names, how much each entry counts, and the names of the
        items; None if there are none.
    """

    rows: Any
    codes: Any
    given: Sequence[str]
    owner: Any
    first: Any
    people: Any = None
    people_names: Sequence[str] = ()
    weights: Any = None
    ids: Any = None


def _find_answers(table: Table, roles: Roles, notes: list[str]) -> _Found:
    """Find all answers or candidates of a table, by its layout."""
    every = np.arange(len(table))
    if roles.counts or len(roles.candidates) > 1:
        given: Sequence[str] = roles.counts or roles.candidates
        counts = _counts(table, given, most=np.inf if roles.counts else 1)
        rows, codes = np.nonzero(counts)
        return _Found(rows, codes, given, every, every, weights=counts[rows, codes])
    if roles.candidates:
        rows, codes, given = _sets(table, roles, notes)
        return _Found(rows, codes, given, every, every)
    if roles.annotators:
        given, answers = together([coded(table, name) for name in roles.annotators])
        rows, people = np.nonzero(answers >= 0)
        codes = answers[rows, people]
        return _Found(rows, codes, given, every, every, people, roles.annotators)
    (owner, items), (codes, given), *who = (coded(table, name) for name in roles.long)
    person, people_names = who[0] if who else (None, ())
    _refuse_nameless(table, roles.long[0], np.flatnonzero(owner < 0))
    first = np.full(len(items), len(table))
    np.minimum.at(first, owner, every)
    ids = np.array(items, dtype=object)
    return _Found(owner, codes, given, owner, first, person, people_names, ids=ids)


def _one_vote(
    entries: NDArray[np.intp], notes: list[str]
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Give every annotator one vote per item, shared by the labels that the annotator named.

    Entries are rows, annotators and labels, shape (3, m). An unknown annotator (-1) has one vote
    for each different answer.
    """
    distinct, times = np.unique(entries, axis=1, return_counts=True)
    rows, people = distinct[:2]
    pair = np.unique(rows * (people.max(initial=0) + 2) + people, return_inverse=True)[1]
    weights = times / np.bincount(pair, times)[pair]
    known = people >= 0
    repeats = int(times[known].sum()) - len(np.unique(pair[known]))
    if repeats:
        notes.append(
            f"{repeats} of {int(times.sum())} answers repeat an item for the same annotator. An "
            "annotator has one vote per item; different answers share it."
        )
    return distinct, np.where(known, weights, 1.0)


def _alike(names: Sequence[str]) -> list[str]:
    """Say which labels differ in upper and lower case alone."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.casefold(), []).append(name)
    alike = [" and ".join(map(repr, group)) for group in groups.values() if len(group) > 1]
    if not alike:
        return []
    return [
        f"labels that differ in upper and lower case alone: {printable(listing(alike, 3))}. "
        "They count as different; if they are not, write them alike."
    ]


def coded(table: Table, name: str) -> tuple[NDArray[np.intp], list[str]]:
    """Return a column as numbers of its distinct texts, -1 where empty."""
    column = table.texts(name).dictionary_encode()
    codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return codes.astype(np.intp), column.dictionary.to_pylist()


def _sets(
    table: Table, roles: Roles, notes: list[str]
) -> tuple[NDArray[np.intp], NDArray[np.intp], list[str]]:
    """Return row and code of every candidate in a column of sets, and the labels."""
    name, mark = roles.candidates[0], roles.separator
    column = table.data.column(name)
    if pa.types.is_nested(column.type):
        codes = np.arange(len(table))
        cells = column.to_pylist()
        parted = [distinct_labels(cell if isinstance(cell, list) else [cell]) for cell in cells]
    else:
        codes, texts = coded(table, name)
        parted = [distinct_labels(text.split(mark) if mark else [text]) for text in texts]
        bracketed = all(text[0] in "[{(" and text[-1] in "]})" for text in texts)
        lists = [parse_list(text) for text in texts if bracketed]
        gaps = [mark and not all(map(str.strip, text.split(mark))) for text in texts]
        rows = np.flatnonzero(np.array([*gaps, False], dtype=bool)[codes])
        if None in lists and any(lists):  # not if all are names in brackets
            wrong = lists.index(None)
            raise TableError(
                f"{table.where(name, np.flatnonzero(codes == wrong)[:1])}: cells look like Python "
                "or JSON lists, but this one cannot be read: "
                f"{texts[wrong][:40]!r}. Write its labels as in \"['cat', 'dog']\", or as "
                "'cat|dog'."
            )
        if lists and None not in lists:
            parted = [row or () for row in lists]
            notes.append(f"cells of {name_some([name])} are read as lists of labels.")
        elif len(rows):
            where = list_rows(rows, table.lines)
            notes.append(f"nothing before, after or between two {mark!r} in {where}.")
    place: dict[str, int] = {}
    numbered = [[place.setdefault(label, len(place)) for label in row] for row in parted]
    sets = pa.array([*numbered, []], pa.list_(pa.int64()))  # the last for empty cells
    taken = sets.take(pa.array(codes % len(sets)))
    return pc.list_parent_indices(taken).to_numpy(), taken.flatten().to_numpy(), list(place)


def _counts(table: Table, names: Sequence[str], most: float) -> NDArray[np.float64]:
    """Read columns of votes, or of 0 and 1."""
    counts = np.zeros((len(table), len(names)))
    for j, name in enumerate(names):
        values = table.numbers(name)
        values = np.full(len(table), np.nan) if values is None else values
        fits = (values >= 0) & (values <= most) & (values < np.inf)
        wrong = np.flatnonzero(~(fits if most > 1 else fits & (values == np.trunc(values))))
        if len(wrong):
            where = table.where(name, wrong[:1])
            raise TableError(
                f"{where}: not a number of votes. Write 0 if nobody chose the label."
                if most > 1
                else f"{where}: neither 0 nor 1. Several columns of candidates hold 0 and 1, one "
                "per label; for one column per annotator use annotators=."
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


def _refuse_nameless(table: Table, name: str, rows: NDArray[np.intp]) -> None:
    if len(rows):
        raise TableError(f"{table.where(name, rows)}: no name. Fill the cells or drop the rows.")


def _ids(table: Table, name: str, first: NDArray[np.intp]) -> NDArray[Any]:
    codes, texts = coded(table, name)
    _refuse_nameless(table, name, first[codes[first] < 0])
    twice = np.flatnonzero(np.bincount(codes[first]) > 1)
    if len(twice):
        raise TableError(
            f"{table.where(name)} (id): {name_some((texts[i] for i in twice), 3)} occurs more "
            "than once. Give every row its own id; if a row is one answer of several, use long=."
        )
    return np.array(texts, dtype=object)[codes[first]]
