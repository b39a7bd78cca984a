"""Labels of a table as plain arrays: candidate sets, or who answered what.

Nothing is thrown away here: answers keep their person, counts their number. What becomes of
them is decided behind `appellate.as_candidates` and by the methods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from appellate.tables import cells
from appellate.tables.cells import (
    TableError,
    as_label,
    in_order,
    name_rows,
    name_some,
    one_spelling,
    parse_list,
    split,
)
from appellate.tables.reading import Table

if TYPE_CHECKING:
    from appellate.tables.roles import Roles

SEPARATORS = ("|", ";", ",")


@dataclass(frozen=True, eq=False, kw_only=True)
class Labels:
    """What the samples of a table are called and where they stand in it.

    Attributes
    ----------
    n_rows : int
        Number of samples: rows of the table, or items of a long table.
    class_names : ndarray of str, shape (l,)
        Labels that occur, sorted, as numbers if all are numbers.
    ids : ndarray of str, shape (n,), or None
        Names of the samples.
    owner : ndarray of int, shape (rows of the table,)
        The sample that a row of the table belongs to.
    first : ndarray of int, shape (n,)
        The first row of the table that belongs to a sample.
    truth : ndarray of object, shape (n,), or None
        True labels, None where there is none.
    notes : tuple of str
        What was read in a way that is good to know.
    """

    n_rows: int
    class_names: NDArray[Any]
    owner: NDArray[np.intp]
    first: NDArray[np.intp]
    ids: NDArray[Any] | None = None
    truth: NDArray[Any] | None = None
    notes: tuple[str, ...] = ()

    @property
    def matrix(self) -> NDArray[np.bool_]:
        """Candidates, shape (n, l): True where a label is in the set or was answered."""
        raise NotImplementedError

    def problems(self) -> list[str]:
        """Say why nothing could be learned from these labels."""
        n, l = self.n_rows, len(self.class_names)
        matrix = self.matrix
        empty = np.flatnonzero(~matrix.any(axis=1))
        said = []
        if n < 2:
            said.append("one row only: nothing can be compared with it.")
        if len(empty):
            said.append(f"no label in {name_rows(empty)}: give them one or drop them.")
        if l < 2:
            said.append(
                f"every row has the one label {name_some(self.class_names)}, so there is nothing "
                "to decide. Is it the right column, and the right separator?"
            )
        elif matrix.all():
            said.append(f"every row has all {l} labels: narrow the sets of some rows.")
        if l > max(50, n // 2):
            said.append(
                f"{l} different labels in {n} rows, e.g. {name_some(self.class_names, 3)}: labels "
                "that hardly ever recur cannot be learned. Is it the right column, and the right "
                "separator?"
            )
        return said


@dataclass(frozen=True, eq=False, kw_only=True)
class Sets(Labels):
    """Candidate sets: of each row's labels one is true.

    Attributes
    ----------
    entries : ndarray of int, shape (2, number of candidates)
        Row and label of every candidate.
    """

    entries: NDArray[np.intp]

    @property
    def matrix(self) -> NDArray[np.bool_]:
        """Candidates, shape (n, l)."""
        matrix = np.zeros((self.n_rows, len(self.class_names)), dtype=bool)
        matrix[self.entries[0], self.entries[1]] = True
        return matrix


@dataclass(frozen=True, eq=False, kw_only=True)
class Answers(Labels):
    """Who answered what.

    Attributes
    ----------
    rows, people, labels : ndarray of int, shape (m,)
        Sample, person (-1 if not known) and label of every answer.
    weights : ndarray of float, shape (m,)
        How often it was given.
    people_names : ndarray of str
        What the people are called.
    """

    rows: NDArray[np.intp]
    people: NDArray[np.intp]
    labels: NDArray[np.intp]
    weights: NDArray[np.float64]
    people_names: NDArray[Any]

    @property
    def counts(self) -> NDArray[np.float64]:
        """Votes, shape (n, l)."""
        counts = np.zeros((self.n_rows, len(self.class_names)))
        np.add.at(counts, (self.rows, self.labels), self.weights)
        return counts

    @property
    def matrix(self) -> NDArray[np.bool_]:
        """Labels that somebody gave, shape (n, l)."""
        return self.counts > 0

    @property
    def majority(self) -> NDArray[np.intp]:
        """Most frequent label of every sample, the first in order among equals; -1 if none."""
        counts = self.counts
        return np.where(counts.any(axis=1), counts.argmax(axis=1), -1)


@dataclass
class _Coder:
    """Gives every label its one spelling; `missing` are no labels."""

    missing: Sequence[str] = ()
    names: dict[str, str] = field(default_factory=dict)

    def learn(self, labels: Sequence[str]) -> None:
        marks = {mark for mark in map(as_label, self.missing) if mark}
        same = one_spelling([*labels, *marks])
        marks |= {same[mark] for mark in marks if mark in same}
        names = {label: same.get(label, label) for label in labels}
        self.names = {label: n for label, n in names.items() if n not in marks}

    def notes(self) -> tuple[str, ...]:
        changed = [f"'{a}' as '{b}'" for a, b in self.names.items() if a != b]
        if not changed:
            return ()
        rest = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        shown = cells.printable(", ".join(changed[:3]))
        return (f"labels that are the same number are read as one: {shown}{rest}.",)


def read_labels(table: Table, roles: Roles) -> Sets | Answers:
    """Read the labels of a table: sets where it has candidates, else answers.

    Parameters
    ----------
    table : Table
        The user's.
    roles : Roles
        What its columns are, see `find_roles`.

    Raises
    ------
    TableError
        If a cell cannot be read as what it should be.
    """
    return candidate_sets(table, roles) if roles.candidates else answers(table, roles)


def candidate_sets(table: Table, roles: Roles) -> Sets:
    """Read a column of candidate sets, or columns of 0 and 1, one a label.

    Parameters
    ----------
    table : Table
        The user's.
    roles : Roles
        With `candidates` and `separator`.

    Returns
    -------
    Sets
        Candidates and class names.

    Examples
    --------
    >>> from appellate.tables import candidate_sets, find_roles, read_table
    >>> table = read_table({"x": [0.5, 1.5], "names": ["anna|bob", "bob"]})
    >>> sets = candidate_sets(table, find_roles(table, candidates="names"))
    >>> sets.matrix, sets.class_names.tolist()
    (array([[ True,  True],
           [False,  True]]), ['anna', 'bob'])
    """
    rows: NDArray[Any]
    notes: tuple[str, ...] = ()
    if len(roles.candidates) > 1:
        rows, columns = np.nonzero(_indicators(table, roles.candidates))
        given = [roles.candidates[j] for j in columns.tolist()]
        order: list[str] | None = list(roles.candidates)
    else:
        rows, given, notes = _parted(table, roles)
        order = None
    coder = _Coder(roles.missing)
    truth = _truth_texts(table, roles)
    coder.learn([*dict.fromkeys([*given, *(t for t in truth or () if t)])])
    kept = [i for i, label in enumerate(given) if label in coder.names]
    named = [coder.names[given[i]] for i in kept]
    names = order or in_order(named)
    place = {name: j for j, name in enumerate(names)}
    codes = np.array([place[name] for name in named], dtype=np.intp)
    everyone = np.arange(len(table))
    return Sets(
        n_rows=len(table),
        class_names=np.array(names, dtype=np.str_),
        owner=everyone,
        first=everyone,
        ids=_ids(table, roles, everyone),
        truth=_truth(truth, coder, everyone),
        notes=(*notes, *coder.notes()),
        entries=np.stack([rows[kept].astype(np.intp), codes]),
    )


def answers(table: Table, roles: Roles) -> Answers:
    """Read people's answers: one column a person, one answer a row, or counts of votes.

    Parameters
    ----------
    table : Table
        The user's.
    roles : Roles
        With `annotators`, `long` or `counts`.

    Returns
    -------
    Answers
        Sample, person, label and weight of every answer. In a long table a person who repeats
        an answer has one vote.

    Examples
    --------
    >>> from appellate.tables import answers, find_roles, read_table
    >>> table = read_table({"ann": ["cat", "dog"], "ben": ["cat", None], "cleo": ["cow", "dog"]})
    >>> said = answers(table, find_roles(table, annotators=["ann", "ben", "cleo"]))
    >>> said.rows.tolist(), said.people.tolist(), said.class_names[said.labels].tolist()
    ([0, 0, 0, 1, 1], [0, 1, 2, 0, 2], ['cat', 'cat', 'cow', 'dog', 'dog'])
    """
    owner = np.arange(len(table))
    items = None
    weights: NDArray[Any] | None = None
    who: Sequence[str] = ()
    if roles.counts:
        counts = _counts(table, roles.counts)
        rows, codes = np.nonzero(counts)
        people = np.full(len(rows), -1)
        weights, given = counts[rows, codes], list(roles.counts)
    elif roles.annotators:
        coded = [table.texts(name).dictionary_encode() for name in roles.annotators]
        who = roles.annotators
        given, codes = _together(coded)
        present = np.flatnonzero(codes.ravel() >= 0)
        rows, people = np.unravel_index(present, codes.shape)
        codes = codes.ravel()[present]
    else:
        items, owner, people, who, codes, given = _long(table, roles)
        rows = owner
    coder = _Coder(roles.missing)
    truth = _truth_texts(table, roles)
    coder.learn([*dict.fromkeys([*given, *(t for t in truth or () if t)])])
    used = [given[i] for i in np.unique(codes[codes >= 0]).tolist()]
    names = (
        list(given) if roles.counts else in_order(coder.names[g] for g in used if g in coder.names)
    )
    place = {name: j for j, name in enumerate(names)}
    lookup = np.array([place.get(coder.names.get(g, ""), -1) for g in given] + [-1])
    final = lookup[codes] if not roles.counts else codes
    keep = final >= 0
    triples = np.stack([rows[keep], people[keep], final[keep]]).astype(np.intp)
    weights = np.ones(triples.shape[1]) if weights is None else weights[keep]
    if roles.long and len(roles.long) > 2:
        triples = np.unique(triples, axis=1)
        weights = np.ones(triples.shape[1])
    n = len(table) if items is None else len(items)
    first = np.full(n, len(table), dtype=np.intp)
    np.minimum.at(first, owner, np.arange(len(table)))
    ids = _ids(table, roles, first)
    return Answers(
        n_rows=n,
        class_names=np.array(names, dtype=np.str_),
        owner=owner,
        first=first,
        ids=ids if ids is not None or items is None else np.array(items, dtype=np.str_),
        truth=_truth(truth, coder, first),
        notes=(*coder.notes(), *_doubtful(names, roles)),
        rows=triples[0],
        people=triples[1],
        labels=triples[2],
        weights=weights,
        people_names=np.array(who, dtype=np.str_),
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
    lengths = np.array([(part.count(" ") + 1, len(part)) for part in parts])
    words, letters = lengths.mean(axis=0)
    if words > 4 or letters > 40:
        return False
    again = sum(count for count in parts.values() if count > 1)
    return mark == "|" or again >= 0.6 * parts.total()


def _parted(table: Table, roles: Roles) -> tuple[NDArray[np.intp], list[str], tuple[str, ...]]:
    """Return row and label of every candidate in a column of sets."""
    name = roles.candidates[0]
    column = table.data.column(name)
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        parted = [
            tuple(dict.fromkeys(label for each in value or () if (label := as_label(each))))
            for value in column.to_pylist()
        ]
        return _flat(parted, range(len(parted)))
    coded = table.texts(name).dictionary_encode()
    distinct = coded.dictionary.to_pylist()
    codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    notes: tuple[str, ...] = ()
    lists = [parse_list(cell) for cell in distinct]
    looks = [cell[:1] in "[{(" and cell[-1:] in "]})" for cell in distinct]
    if all(looks) and any(row is not None for row in lists):
        if None in lists:
            row = int(np.flatnonzero(codes == lists.index(None))[0])
            raise TableError(
                f"{table.source}, column {name_some([name])}: cells look like Python or JSON "
                f"lists, but row {row} cannot be read: {distinct[lists.index(None)][:40]!r}. "
                "Write its labels as in \"['cat', 'dog']\", or as 'cat|dog'."
            )
        notes = (f"cells of {name_some([name])} are read as lists of labels.",)
        parted = [row or () for row in lists]
    else:
        mark = roles.separator
        parted = [split(cell, mark) for cell in distinct]
        gaps = [mark and not all(map(str.strip, cell.split(mark))) for cell in distinct]
        rows = np.flatnonzero(np.array([*gaps, False], dtype=bool)[codes])
        if len(rows):
            notes = (f"nothing before, after or between two {mark!r} in {name_rows(rows)}.",)
    owner, given, _ = _flat([*parted, ()], codes.tolist())
    return owner, given, notes


def _flat(
    parted: Sequence[Sequence[str]], codes: Sequence[int]
) -> tuple[NDArray[np.intp], list[str], tuple[str, ...]]:
    owner = np.repeat(np.arange(len(codes)), [len(parted[code]) for code in codes])
    return owner, [label for code in codes for label in parted[code]], ()


def _indicators(table: Table, names: Sequence[str]) -> NDArray[np.bool_]:
    matrix = np.zeros((len(table), len(names)), dtype=bool)
    for j, name in enumerate(names):
        values = table.numbers(name)
        wrong = None if values is None else np.flatnonzero((values != 0) & (values != 1))
        if values is None or wrong is None or len(wrong):
            where = "" if wrong is None or not len(wrong) else f" in row {wrong[0]}"
            raise TableError(
                f"{table.source}, column {name_some([name])}{where}: neither 0 nor 1. Several "
                "columns of candidates hold 0 and 1, one a label; for one column a person use "
                "annotators=."
            )
        matrix[:, j] = values == 1
    return matrix


def _counts(table: Table, names: Sequence[str]) -> NDArray[np.float64]:
    counts = np.zeros((len(table), len(names)))
    for j, name in enumerate(names):
        values = table.numbers(name)
        wrong = None if values is None else np.flatnonzero(~((values >= 0) & (values < np.inf)))
        if values is None or wrong is None or len(wrong):
            where = "" if wrong is None or not len(wrong) else f" in row {wrong[0]}"
            raise TableError(
                f"{table.source}, column {name_some([name])} (counts){where}: no number of votes. "
                "Write 0 where nobody chose the label."
            )
        counts[:, j] = values
    return counts


def _together(coded: Sequence[Any]) -> tuple[list[str], NDArray[np.intp]]:
    """Return the distinct labels of several columns and their codes, shape (rows, columns)."""
    place: dict[str, int] = {}
    columns = []
    for column in coded:
        codes = [place.setdefault(label, len(place)) for label in column.dictionary.to_pylist()]
        lookup = np.array([*codes, -1], dtype=np.intp)
        columns.append(lookup[column.indices.fill_null(-1).to_numpy(zero_copy_only=False)])
    return list(place), np.stack(columns, axis=1)


def _long(table: Table, roles: Roles) -> tuple[Any, ...]:
    coded = [table.texts(name).dictionary_encode() for name in roles.long]
    indices = [c.indices.fill_null(-1).to_numpy(zero_copy_only=False) for c in coded]
    nameless = np.flatnonzero(indices[0] < 0)
    if len(nameless):
        raise TableError(
            f"{table.source}, column {name_some(roles.long[:1])}: {name_rows(nameless)} names no "
            "item. Fill the cells or drop the rows."
        )
    people = indices[2] if len(coded) > 2 else np.full(len(table), -1)
    who = coded[2].dictionary.to_pylist() if len(coded) > 2 else ()
    items = coded[0].dictionary.to_pylist()
    return (
        items,
        indices[0].astype(np.intp),
        people,
        who,
        indices[1],
        coded[1].dictionary.to_pylist(),
    )


def _ids(table: Table, roles: Roles, first: NDArray[np.intp]) -> NDArray[Any] | None:
    if roles.id is None:
        return None
    cells_ = table.texts(roles.id).take(pa.array(first))
    if cells_.null_count:
        rows = np.flatnonzero(pc.is_null(cells_).to_numpy(zero_copy_only=False))
        raise TableError(
            f"{table.source}, column {name_some([roles.id])} (id): no name in {name_rows(rows)}."
        )
    counts = cells_.value_counts()
    twice = counts.filter(pc.greater(counts.field("counts"), 1)).field("values").to_pylist()
    if twice:
        raise TableError(
            f"{table.source}, column {name_some([roles.id])} (id): {name_some(twice, 3)} occurs "
            "more than once. Give every row its own id; if a row is one answer of several, use "
            "long=."
        )
    return np.array(cells_.to_pylist(), dtype=object)


def _truth_texts(table: Table, roles: Roles) -> list[str | None] | None:
    return None if roles.truth is None else table.texts(roles.truth).to_pylist()


def _truth(
    texts: Sequence[str | None] | None, coder: _Coder, first: NDArray[np.intp]
) -> NDArray[Any] | None:
    if texts is None:
        return None
    values = [coder.names.get(texts[i] or "") for i in first.tolist()]
    return np.array(values, dtype=object)


def _doubtful(names: Sequence[str], roles: Roles) -> tuple[str, ...]:
    """Say which labels of people are called as an empty cell often is."""
    doubtful = [name for name in names if name.lower() in cells.NO_NUMBER | {"?", "-", "-1"}]
    if not doubtful or roles.counts:
        return ()
    return (
        f"taken as labels: {name_some(doubtful)}. If that means that there is no answer, name it "
        "with missing=.",
    )
