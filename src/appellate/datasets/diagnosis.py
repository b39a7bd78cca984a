"""Is this my problem? What kind of labels a user's file holds, and what to do with them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from appellate.candidates import name_rows
from appellate.candidates.names import listing, naming
from appellate.datasets.asides import (
    COUNTER,
    LABELS,
    TRUTH_TITLES,
    UNTITLED,
    counts_rows,
    find_earlier,
    holds_labels,
)
from appellate.datasets.home import simplify
from appellate.datasets.labelkinds import (
    Kind,
    Sets,
    count_sets,
    coverage,
    find_separator,
    judge_labels,
    judge_sets,
    name_empty,
    name_gaps,
    split,
)
from appellate.datasets.spellings import read_lists, say_cases, say_numbers, unify_numbers
from appellate.datasets.suggestions import suggest, suggest_long
from appellate.datasets.textfiles import (
    check_titles,
    decimal_points,
    is_number,
    read_columns,
    read_header,
)

Table = dict[str, list[str]]

_LABEL_TITLES = (
    "candidates",
    "candidatelabels",
    "candidateset",
    "partiallabels",
    "partiallabel",
    "labels",
    "label",
    "tags",
    "answers",
    "answer",
    "class",
    "classes",
    "category",
    "target",
    "y",
)
_ID_TITLES = ("id", "ids", "index", "rowid", "sampleid", "name", "file", "filename", "path")
_PEOPLE = ("annotator", "worker", "rater", "coder", "judge", "expert", "labeler", "labeller")
_ROLES = {
    "item": ("item", "task", "unit", "sample", "image"),
    "label": ("label", "answer", "response"),
    "annotator": (*_PEOPLE, "who"),
}


@dataclass
class Diagnosis:
    """What the labels of a file look like.

    Attributes
    ----------
    kind : str
        ``"partial-label"`` (sets of which one label is true), ``"multi-label"`` (sets of which
        all are), ``"noisy"`` (people or labels disagree) or ``"plain"`` (one label a row).
    reason : str
        Why it looks like that.
    columns : list of str
        The columns of the labels.
    separator : str or None
        What parts labels in a cell; None if nothing does.
    truth : str or None
        The column of the true labels.
    facts : dict
        Counts: rows, classes, sizes of the sets, rows without candidate, features, ...
    ids : str or None
        The column that names the rows.
    problems : list of str
        What has to be mended first, with row numbers.
    notes : list of str
        What is good to know, though nothing has to be done.
    layout : str or None
        ``"annotators"`` or ``"long"`` if several people answered, one column a person or one
        answer a row.
    next : str
        What to type next: lines of Python.
    """

    kind: Kind
    reason: str
    columns: list[str]
    separator: str | None
    truth: str | None
    facts: dict[str, Any]
    problems: list[str] = field(default_factory=list)
    ids: str | None = None
    next: str = ""
    notes: list[str] = field(default_factory=list)
    layout: str | None = None

    def __post_init__(self) -> None:
        """Say that nothing can be learned of one row, or where every set holds all labels."""
        if self.facts["rows"] < 2:
            self.problems.insert(0, "one row only: nothing can be compared with it.")
        if self.kind != "multi-label" and self.facts["full_sets"] == self.facts["rows"]:
            said = f"every row has all {self.facts['classes']} labels, so nothing can be learned"
            self.problems.insert(0, f"{said}: narrow the sets of some rows.")

    def to_dict(self) -> dict[str, Any]:
        """Return everything as a dictionary."""
        return asdict(self)


def diagnose_csv(
    path: str | os.PathLike[str],
    *,
    candidates: str | Sequence[str] | None = None,
    truth: str | None = None,
    separator: str | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
) -> Diagnosis:
    r"""Tell what kind of labels a CSV file holds.

    Parameters
    ----------
    path : path-like
        The file; its first line holds the titles of the columns.
    candidates : str or sequence of str, default=None
        The column of labels, or several columns, one for each person. By default columns
        titled like ``annotator1``, ``annotator2``, or a column titled like ``candidates`` or
        ``label``, or the first column with several labels in a cell.
    truth : str, default=None
        Column of the true labels; by default one titled like ``truth``, if there is any.
    separator : str, default=None
        What parts labels in a cell, ``""`` if nothing does; by default that of ``| ; ,`` which
        is found in most cells.
    delimiter, encoding
        See `load_partial_csv`.

    Returns
    -------
    Diagnosis
        Kind of the labels, the facts behind it, what to mend, and what to type next.

    Raises
    ------
    FileNotFoundError, ValueError
        If the file cannot be read, or no column looks like labels.

    Notes
    -----
    Candidate sets and multi-label targets look alike: the file cannot tell whether one label
    of a set is true or all are. Without a column of true labels the answer is a guess, and
    `reason` says so.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from appellate.datasets import diagnose_csv
    >>> text = "width,candidates,truth\n1.5,anna|bob,bob\n0.5,carl,carl\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "own.csv").write_text(text)
    ...     found = diagnose_csv(f"{folder}/own.csv")
    >>> found.kind, found.facts["singletons"], found.facts["truth_coverage"]
    ('partial-label', 1, 1.0)
    """
    file = Path(path)
    header = read_header(file, delimiter=delimiter, encoding=encoding)
    if len(header.titles) == 1 and "|" in header.titles[0]:
        raise ValueError(
            f"{file.name} looks delimited by '|': its header is one cell, {header.titles[0]!r}. "
            "Save it with commas between the cells, or give the delimiter."
        )
    table = read_columns(file, header, encoding=encoding)
    pairs = ((title, decimal_points(cells, header.delimiter)) for title, cells in table.items())
    points = {title: cells for title, cells in pairs if cells is not None}
    given = [candidates] if isinstance(candidates, str) else list(candidates or ())
    check_titles([*given, *([truth] if truth else [])], header.titles, file.name)
    truth = truth or next((t for t in table if simplify(t) in TRUTH_TITLES), None)
    roles = {} if given else _find_roles(table)
    if roles:
        found, _ = _diagnose_long(table, roles)
        found.truth, found.layout = truth, "long"
        others = [title for title in table if title not in (*roles.values(), truth)]
        found.facts["other_columns"] = others
        found.next = suggest_long(file, roles, header.delimiter, encoding)
        return found
    columns = given or _find_labels(table, truth, points, file.name)
    if len(columns) == 1:
        found, sets = _diagnose_cells(table, columns[0], truth, separator)
    elif all(cell.strip() in ("0", "1") for name in columns for cell in table[name]):
        found, sets = _diagnose_indicators(table, columns, truth)
    else:
        found, sets = _diagnose_people(table, columns, truth)
        found.layout = "annotators"
    commas = [title for title in points if title not in (*found.columns, truth)]
    _add_features(found, table | {title: points[title] for title in commas}, sets)
    if commas:
        found.notes.append(f"decimal commas are read in {naming('column', map(repr, commas))}.")
    whole = _has_whole_truth(found, table)
    reading = {} if delimiter is None else {"delimiter": delimiter}
    reading |= {} if encoding == "utf-8" else {"encoding": encoding}
    found.next = suggest(
        found.kind,
        file,
        found.columns,
        found.separator,
        found.truth if whole else None,
        found.ids,
        found.facts if whole else _with_truth_aside(found),
        reading,
    )
    return found


def _with_truth_aside(found: Diagnosis) -> dict[str, Any]:
    return found.facts | {"other_columns": [*found.facts["other_columns"], found.truth]}


def _find_roles(table: Table) -> dict[str, str]:
    """Return the columns item, label and annotator of a table with one answer a row."""
    roles = {}
    for role, words in _ROLES.items():
        titles = [title for title in table if simplify(title).startswith(words)]
        if len(titles) != 1:
            return {}
        roles[role] = titles[0]
    items = table[roles["item"]]
    return roles if len({*items}) < len(items) else {}


def _find_labels(
    table: Table, truth: str | None, numbers: Collection[str], where: str
) -> list[str]:
    """Guess which columns hold labels; what looks like numbers does so by its title only."""
    others = [title for title in table if title != truth]
    people = [title for title in others if simplify(title).startswith(_PEOPLE)]
    if len(people) > 1:
        return people
    for name in _LABEL_TITLES:
        for title in others:
            if simplify(title) == name:
                return [title]
    for title in others:
        if title not in numbers and find_separator(table[title]) is not None:
            return [title]
    raise ValueError(
        f"{where}: no column looks like labels. Name it; the columns are {listing(table)}."
    )


def _diagnose_cells(
    table: Table, column: str, truth: str | None, separator: str | None
) -> tuple[Diagnosis, Sets]:
    cells = table[column]
    lists = read_lists(cells) if separator is None else None
    mark = find_separator(cells) if separator is None and lists is None else separator or None
    sets = [split(cell, mark) for cell in cells]
    notes = []
    if lists is not None:
        sets = [tuple(dict.fromkeys(row)) for row in lists]
        notes = [f"cells of {column!r} are read as lists of labels, such as {max(cells)!r}."]
    answers = None if truth is None else [split(cell, mark) for cell in table[truth]]
    sets, answers, said = _unify(sets, answers)
    facts = count_sets(sets)
    if facts["several"]:
        kind, reason = judge_sets(sets, facts, answers)
    else:
        kind, reason = judge_labels(sets, facts, answers)
        mark = None
    problems = name_empty(sets) + name_gaps(cells, mark) if kind != "multi-label" else []
    found = Diagnosis(kind, reason, [column], mark, truth, facts, problems, notes=notes + said)
    return found, sets


def _unify(sets: Sets, answers: Sets | None) -> tuple[Sets, Sets | None, list[str]]:
    """Give labels that are the same number one spelling, and say so."""
    spellings = unify_numbers(label for row in (*sets, *(answers or ())) for label in row)
    notes = say_cases(sorted({label for row in sets for label in row}))
    if not spellings:
        return sets, answers, notes
    notes += [f"{text} Python keeps them apart." for text in say_numbers(spellings)]
    both = [
        [tuple(dict.fromkeys(spellings[label] for label in row)) for row in rows]
        for rows in (sets, answers or [])
    ]
    return both[0], None if answers is None else both[1], notes


def _diagnose_indicators(
    table: Table, columns: list[str], truth: str | None
) -> tuple[Diagnosis, Sets]:
    rows = zip(*(table[name] for name in columns), strict=True)
    sets = [tuple(compress(columns, (cell.strip() == "1" for cell in row))) for row in rows]
    facts = count_sets(sets) | {"classes": len(columns)}
    facts["full_sets"] = sum(len(labels) == len(columns) for labels in sets)
    answers = None if truth is None else [split(cell, None) for cell in table[truth]]
    judge = judge_sets if facts["several"] else judge_labels
    kind, reason = judge(sets, facts, answers)
    problems = name_empty(sets) if kind != "multi-label" else []
    return Diagnosis(kind, reason, columns, None, truth, facts, problems), sets


def _diagnose_people(
    table: Table, columns: list[str], truth: str | None
) -> tuple[Diagnosis, Sets]:
    rows = zip(*(table[name] for name in columns), strict=True)
    answers = [[label for cell in row for label in split(cell, None)] for row in rows]
    truths = None if truth is None else [split(cell, None) for cell in table[truth]]
    return _judge_people(answers, columns, len(columns), truth, truths)


def _diagnose_long(table: Table, roles: dict[str, str]) -> tuple[Diagnosis, Sets]:
    answers: dict[str, list[str]] = {}
    for item, label in zip(table[roles["item"]], table[roles["label"]], strict=True):
        answers.setdefault(item.strip(), []).extend(split(label, None))
    people = {person.strip() for person in table[roles["annotator"]]}
    return _judge_people(list(answers.values()), [*roles.values()], len(people), None, None)


def _judge_people(
    answers: list[list[str]],
    columns: list[str],
    n_people: int,
    truth: str | None,
    truths: Sets | None,
) -> tuple[Diagnosis, Sets]:
    sets: Sets = [tuple(dict.fromkeys(row)) for row in answers]
    sets, truths, notes = _unify(sets, truths)
    facts = count_sets(sets) | {"people": n_people, "answers": sum(map(len, answers))}
    if truths is not None:
        facts["truth_coverage"] = coverage(sets, truths)
    kind: Kind = "noisy" if facts["several"] else "plain"
    reason = f"{n_people} people agree on every row."
    if facts["several"]:
        share = f"{facts['several']} of {len(sets)} rows ({facts['several'] / len(sets):.1%})"
        reason = f"{n_people} people disagree on {share}; their answers make candidate sets."
    problems = name_empty(sets)
    return Diagnosis(kind, reason, columns, None, truth, facts, problems, notes=notes), sets


def _add_features(found: Diagnosis, table: Table, sets: Sets) -> None:
    """Sort the other columns into features, row names and the rest; count missing cells."""
    taken = {*found.columns, found.truth}
    rest = [title for title in table if title and title not in taken]
    if "" in table:
        found.notes.append(f"the column {UNTITLED}, is left out.")
    found.ids = next((title for title in rest if _names_rows(title, table[title])), None)
    counters = [t for t in rest if t != found.ids and counts_rows(map(str.strip, table[t]))]
    found.notes += [f"column {title!r} {COUNTER}, so it is no feature." for title in counters]
    asides = {*find_earlier(table), *_find_more_labels(found, table, sets, rest), *counters}
    numeric = [
        title
        for title in rest
        if title != found.ids and title not in asides and _is_numeric(table[title])
    ]
    missing = {title: sum(not cell.strip() for cell in table[title]) for title in numeric}
    found.facts |= {
        "features": len(numeric),
        "other_columns": [t for t in rest if t not in numeric and t != found.ids],
        "missing_cells": sum(missing.values()),
    }
    holes = [repr(title) for title, count in missing.items() if count]
    if holes:
        found.notes.append(
            f"empty cells ({sum(missing.values())}) in {naming('column', holes)}: rectify fills "
            "them."
        )
    if not numeric:
        found.problems.append("no column of numbers is left for features.")


def _names_rows(title: str, cells: Sequence[str]) -> bool:
    """Tell whether a column names the rows, by its title; one such as 'acid' has decimals."""
    named = simplify(title) in _ID_TITLES
    if not named and simplify(title).endswith("id"):
        named = not any("." in cell and is_number(cell) for cell in cells)
    return named and len({*cells}) == len(cells)


def _is_numeric(cells: Sequence[str]) -> bool:
    return all(map(is_number, cells)) and any(cell.strip() for cell in cells)


def _find_more_labels(
    found: Diagnosis, table: Table, sets: Sets, titles: Sequence[str]
) -> list[str]:
    """Return further columns that hold labels, and say so."""
    names = sorted({label for labels in sets for label in labels})
    matrix = np.array([[name in labels for name in names] for labels in map(set, sets)])
    more = [
        title
        for title in titles
        if holds_labels(
            title, ("".join(split(cell, None)) for cell in table[title]), names, matrix
        )
    ]
    found.notes += [
        f"column {title!r} {LABELS}, so it is no feature; if they are the true ones, check again "
        f"with --truth {shlex.quote(title)}."
        for title in more
    ]
    return more


def _has_whole_truth(found: Diagnosis, table: Table) -> bool:
    """Tell whether no row lacks its truth; else say that Python leaves it out."""
    if found.truth is None:
        return True
    blank = [i for i, cell in enumerate(table[found.truth]) if not cell.strip()]
    if blank:
        found.notes.append(
            f"no truth in {name_rows(blank)}: rectify scores the others; in Python the truth is "
            "left out."
        )
    return not blank
