"""What every column of a table is: labels, annotators, ids, true labels, features; and why."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from typing import Any, Unpack

import numpy as np

from appellate._added import (
    ADDED,
    ALWAYS,
    FORMER_PREFIX,
    FORMERLY_ADDED,
    ONLY_OURS,
    OUTCOMES,
    PREFIX,
)
from appellate._table_options import ColumnOptions, check_options, takes_options
from appellate.tables import cells, titles
from appellate.tables.cells import TableError, name_some
from appellate.tables.commands import SPECIFIED, in_python, options_of
from appellate.tables.labels import Labels, coded, read_labels
from appellate.tables.looks import FILE_NAME, HASH, PICTURE, SAMPLED, VECTOR, ColumnLook
from appellate.tables.probabilities import classes_by_column
from appellate.tables.proposals import FEW, MOST, ONE_LABEL, LabelFinder, Proposal
from appellate.tables.reading import Table

_FORMER = (*ADDED, *FORMERLY_ADDED)
_TAKEN = re.compile(rf"(?:{PREFIX}|{FORMER_PREFIX})(\D+)\d*")  # the name was taken in the table
_FITS = 0.95  # share of rows in which the truth is among the candidates
_VARIES = 0.05  # share of items within which a column varies that describes the answer


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are, specified or detected.

    Exactly one of `candidates`, `annotators`, `long` and `counts` is filled.

    Attributes
    ----------
    candidates : tuple of str
        One column of candidate sets (or of one label per row), or 0/1 columns, one per label.
    annotators : tuple of str
        One column per annotator.
    long : tuple of str
        Columns item, label and, optionally, annotator of a table with one answer per row.
    counts : tuple of str
        Vote-count columns, one per label.
    id, truth, image : str or None
        Columns with row ids, true labels, and image files.
    text : tuple of str
        Text columns.
    features : tuple of str
        Feature columns, in addition to `text`.
    model_probabilities : dict of str to str
        Columns of class probabilities of a model, and the class of each; never features.
    ignore : dict of str to str
        Columns that are ignored, and why.
    separator : str or None
        What separates the labels in a cell of `candidates`; None if nothing does.
    missing : tuple of str
        Values that mean "no answer".
    reasons : dict of str to str
        Why a column has its role, ``"specified"`` if the user named it.
    notes : tuple of str
        What is good to know of the guesses.
    """

    candidates: tuple[str, ...] = ()
    annotators: tuple[str, ...] = ()
    long: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    id: str | None = None
    truth: str | None = None
    image: str | None = None
    text: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    model_probabilities: Mapping[str, str] = field(default_factory=dict)
    ignore: Mapping[str, str] = field(default_factory=dict)
    separator: str | None = None
    missing: tuple[str, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def layout(self) -> str:
        """How the labels are laid out: the name of the role that holds them."""
        return next(name for name in _LAYOUTS if getattr(self, name))

    @property
    def labels(self) -> tuple[str, ...]:
        """The columns that hold the labels."""
        found: tuple[str, ...] = getattr(self, self.layout)
        return found

    @property
    def one_label(self) -> bool:
        """Whether labels were found in a column of one label per row."""
        return ONE_LABEL in (self.reasons.get(name) for name in self.candidates)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as a dictionary of JSON's types."""
        return asdict(self)

    def __str__(self) -> str:
        """Print a table of columns, roles and reasons; many alike share a line."""
        lines = []
        for role in (*_LAYOUTS, "model_probabilities", *_SINGLE, "text", "features", "ignore"):
            value = getattr(self, role)
            names = [value] if isinstance(value, str) else list(value or ())
            for reason, group in groupby(names, lambda name: self.reasons.get(name, "")):
                alike = [cells.printable(name)[:60] for name in group]
                shown = fold_names(alike)
                lines += [(name, _SINGULAR.get(role, role), reason) for name in shown]
        widths = [max(len(line[j]) for line in lines) for j in (0, 1)]
        return "\n".join(f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}".rstrip() for a, b, c in lines)


def fold_names(names: Sequence[str], few: int = 3, most: int = 12) -> list[str]:
    """Fold names that differ in their numbers only, and any that are too many.

    Parameters
    ----------
    names : sequence of str
        Names of columns that are alike otherwise.
    few : int, default=3
        Numbered names, one after the other, that are still listed one by one.
    most : int, default=12
        Lines that are still listed one by one.

    Examples
    --------
    >>> fold_names(["age", "x0", "x1", "x2", "x3", "y1", "y2"])
    ['age', 'x0 ... x3 (4)', 'y1', 'y2']
    """
    lines: list[str] = []
    for stem, run in groupby(names, lambda name: re.sub(r"[0-9]+", "0", name)):
        alike = list(run)
        if len(alike) > few and re.search(r"[0-9]", stem):
            alike = [f"{alike[0]} ... {alike[-1]} ({len(alike)})"]
        lines += alike
    return lines if len(lines) <= most else [f"{names[0]} ... {names[-1]} ({len(names)})"]


_LAYOUTS = ("candidates", "annotators", "long", "counts")
_SINGLE = ("id", "truth", "image")
_NAMED = (*_LAYOUTS, "model_probabilities", *_SINGLE, "text", "ignore")
_KINDS = {"number": "numbers", "date": "dates", "vector": "lists of numbers"}
_NO_ANSWERS = (
    "model_probabilities= counts as one more answer per row, but candidates= holds sets, not "
    "answers. Give the labels with annotators=, long= or counts=, or leave "
    "model_probabilities= out."
)
_LOOKS = {
    "candidates": "several labels per cell",
    "annotators": "like annotators",
    "long": "like one answer per row",
    "counts": "like numbers of votes",
}
_SINGULAR = {
    "annotators": "annotator",
    "counts": "count",
    "features": "feature",
    "model_probabilities": "model probability",
    "ignore": "ignored",
}


class UnclearTableError(TableError):
    """A table whose columns can be read in several ways, or in one that nobody asked for.

    Attributes
    ----------
    readings : Readings
        The ways; the message writes each as keyword arguments.
    """

    def __init__(self, readings: Readings) -> None:
        said = (in_python(options_of(readings.table, roles)) for roles in readings.roles)
        super().__init__(
            f"{readings.table.source}: {readings.doubt} {readings.advice}\n"
            + "\n".join(f"    {line}" for line in said)
        )
        self.readings = readings


@dataclass(frozen=True)
class Readings:
    """The ways to read a table.

    Attributes
    ----------
    table : Table
        The table.
    roles : tuple of Roles
        One if the table is clear.
    doubt : str
        Why the user has to choose or confirm; empty if the table is clear.
    """

    table: Table
    roles: tuple[Roles, ...]
    doubt: str = ""

    @property
    def advice(self) -> str:
        """Say what to do about the doubt."""
        one = "If this is correct, say so:", "Choose one reading:"
        return one[len(self.roles) > 1]


@takes_options(ColumnOptions)
def find_roles(table: Table, **options: Unpack[ColumnOptions]) -> Roles:
    r"""Say what every column of a table is; columns that are not specified are detected.

    Labels are guessed only if titles say so, or cells leave no doubt: sets such as ``cat|dog``
    next to no column called ``label``, or votes that sum up to their number. Otherwise the error
    shows the arguments to choose from.

    Parameters
    ----------
    table : Table
        See `read_table`.
    **options
        The columns that are known.

    Returns
    -------
    Roles
        The columns, and why they are what they are.

    Raises
    ------
    TableError
        If a column is not there, has two roles, or none looks like labels; or if labels can be
        read in several ways.

    Examples
    --------
    >>> from appellate.tables import find_roles, read_table
    >>> table = read_table({"maybe": ["a|b", "b", "a|c"], "w": [1.5, 0.5, 2.5]})
    >>> print(find_roles(table))
    maybe  candidates  several labels per cell, separated by '|'
    w      feature     numbers
    """
    found = find_readings(table, **options)
    if found.doubt:
        raise UnclearTableError(found)
    return found.roles[0]


def find_readings(table: Table, **options: Unpack[ColumnOptions]) -> Readings:
    """Find every way in which a table may be read; the parameters are those of `find_roles`."""
    check_options("find_roles", ColumnOptions, options)
    given: dict[str, Any] = dict(options)
    features, separator = given.get("features"), given.get("separator")
    missing = given.get("missing") or ()
    named = {role: listed(given.get(role)) for role in _NAMED}
    if table.export is not None and not any(named[role] for role in _LAYOUTS):
        if not table.export.roles:
            raise TableError(
                f"{table.source}: in the labelling tool, no item as a whole was labelled. "
                "Label some items there, and export them again."
            )
        named |= {role: listed(columns) for role, columns in table.export.roles.items()}
    refused = {role for role in _NAMED if given.get(role) is False}
    columns = {role: table.find(names, role) for role, names in named.items() if names}
    layouts = [role for role in _LAYOUTS if role in columns]
    if len(layouts) > 1:
        raise TableError(
            f"{' and '.join(layouts)}: the labels are in one of these forms. Give one of them."
        )
    if len(columns.get("long", "ab")) not in (2, 3):
        raise TableError("long= needs the columns item, label and, optionally, annotator.")
    chosen = None if features is None else table.find(listed(features), "features")
    guess = _Guess(table, [missing] if isinstance(missing, str) else missing, chosen)
    if "model_probabilities" in columns:
        if layouts == ["candidates"]:
            raise TableError(_NO_ANSWERS)
        found = columns["model_probabilities"]
        guess.classes = classes_by_column(named["model_probabilities"], found)
    for role, names in columns.items():
        twice = [name for name in names if name in guess.reasons]
        if twice:
            raise TableError(
                f"column {name_some(twice[:1])} is named by {guess.role_of(twice[0])}= and by "
                f"{role}=. A column has one role."
            )
        guess.take(role, names)
    guess.take_results()
    if layouts:
        return Readings(table, (guess.finish(None, separator, refused),))
    proposals, doubt = guess.propose()
    readings = tuple(guess.finish(each, separator, refused) for each in proposals)
    if guess.classes and all(each.layout == "candidates" for each in readings):
        raise TableError(_NO_ANSWERS)
    return Readings(table, readings, doubt)


def listed(columns: Any) -> list[Any]:
    """Return columns that a user named, in a list; none if they are None, True or False."""
    if columns is None or isinstance(columns, bool):
        return []
    one = isinstance(columns, (str, int, np.integer))
    return [columns] if one else list(columns)


class _Guess(LabelFinder):
    """Columns find their roles one after the other; what is taken is not asked again."""

    def __init__(
        self, table: Table, missing: Iterable[Any], features: Sequence[str] | None
    ) -> None:
        super().__init__(table, features)
        self.found: dict[str, list[str]] = {role: [] for role in (*_NAMED, "features")}
        self.separator: str | None = None
        self.missing = tuple(map(cells.as_text, missing))
        self.notes: list[str] = []
        self.left_out: dict[str, str] = {}
        self.classes: dict[str, str] = {}

    def copy(self) -> _Guess:
        """Return a guess that knows as much and goes its own way."""
        other = copy(self)
        other.found = {role: list(names) for role, names in self.found.items()}
        other.reasons, other.notes = dict(self.reasons), list(self.notes)
        other.left_out = dict(self.left_out)
        return other

    def roles(self) -> Roles:
        columns: dict[str, Any] = {role: tuple(names) for role, names in self.found.items()}
        columns |= {role: next(iter(columns[role]), None) for role in _SINGLE}
        columns["model_probabilities"] = self.classes
        columns["ignore"] = {name: self.reasons[name] for name in self.found["ignore"]}
        columns |= {"separator": self.separator, "missing": self.missing, "reasons": self.reasons}
        return Roles(**columns, notes=tuple(self.notes))

    def take(self, role: str, names: Sequence[str], reason: str = SPECIFIED) -> None:
        self.reasons |= dict.fromkeys(names, reason)
        self.found[role] += names

    def role_of(self, name: str) -> str:
        return next(role for role, names in self.found.items() if name in names)

    def take_results(self) -> None:
        """Set aside what an earlier run added to the table."""
        matches = {t: _TAKEN.fullmatch(t) for t in self.table.names}
        stems = {t: match[1] if match else t for t, match in matches.items()}
        taken = (*self.reasons, *(self.features or ()))
        added = {t: stem for t, stem in stems.items() if stem in _FORMER and t not in taken}
        held = [{*(self.look(t).values or ("",))} for t in added if added[t] == "outcome"]
        whole = {*ALWAYS} <= {*added.values()} and all(found <= OUTCOMES for found in held)
        if not whole and not {*ONLY_OURS[:2]} <= {*added.values()}:
            added = {t: stem for t, stem in added.items() if stem in ONLY_OURS}
        self.take("ignore", list(added), "the result of an earlier run")

    def propose(self) -> tuple[list[Proposal], str]:
        """Return the ways to read the labels, and why the user has to choose among them.

        What titles say, or cells prove, goes before what is but likely. A column with the title
        of labels that is not a part of it is another way, unless its cells follow from the first.
        """
        tried = (guess() for guess in (self._long, self._sets, self._people, self._counts))
        found = [proposals for proposals in tried if proposals]
        sure = [proposals for proposals in found if not proposals[0].doubt]
        plain = self._plain()
        chosen = (sure or found or [plain])[0]
        if not chosen:
            raise TableError(self._no_labels())
        first, *others = chosen
        if others or first in plain:
            return [first, *others], first.doubt
        labels = [c for c in self._open() if c.is_titled]
        inside = [c for c in labels if c.name in first.reasons and first.doubt]
        beside = [c for c in labels if c.name not in first.reasons]
        beside = inside or [c for c in beside if not self._follows(c, first)]
        if not beside or (first.layout == "annotators" and inside):
            return [first], first.doubt
        rival = min(beside, key=lambda c: titles.RANK.get(c.title, 99))
        names = [name for name in first.reasons if name != rival.name]
        doubt = (
            f"the labels may be in {name_some(names, 4)} ({_LOOKS[first.layout]}), or in "
            f"{name_some([rival.name])}, which is named like labels."
        )
        if rival.name not in first.reasons and self._shares(rival, first):
            first = replace(first, truth=rival.name)
        return [first, Proposal("candidates", {rival.name: ONE_LABEL})], doubt

    def _no_labels(self) -> str:
        """Say that no column looks like labels, and what could be done."""
        parted = {c.name: c.likely_separator for c in self.free()}
        hints = [
            f" If cells of {name_some([name])} hold several labels each, give candidates= "
            f"and separator={mark!r}."
            for name, mark in parted.items()
            if mark
        ]
        return (
            f"{self.table.source}: no label column found. Name it with candidates=, or use "
            "annotators=, long= or counts= for annotators' answers. The columns: "
            f"{name_some(self.table.names, 12)}.{''.join(hints[:1])}"
        )

    def _read(self, proposal: Proposal) -> Labels | None:
        """Read the labels that are proposed; None if they cannot be read."""
        guess = self.copy()
        guess.accept(proposal, None)
        try:
            return read_labels(self.table, guess.roles())
        except TableError:
            return None

    def _follows(self, column: ColumnLook, proposal: Proposal) -> bool:
        """Tell whether cells fit no other reading: always a candidate, or the most voted."""
        if proposal.layout not in ("candidates", "counts"):
            return False
        read = self._read(proposal)
        if read is None:
            return False
        fits = _is_majority if proposal.layout == "counts" else _is_among
        return fits(column, read)

    def _shares(self, column: ColumnLook, proposal: Proposal) -> bool:
        """Tell whether a column shares the labels of a proposal: it may hold true labels."""
        read = self._read(proposal)
        return read is not None and _match(column, read)[0] >= MOST

    def accept(self, proposal: Proposal | None, separator: str | None) -> None:
        """Take the columns of a proposal; find what separates labels, and marks of no answer."""
        if proposal is not None:
            self.take(proposal.layout, list(proposal.reasons))
            self.reasons |= proposal.reasons
            self.notes += proposal.notes
            if proposal.truth and not self.found["truth"]:
                self.take("truth", [proposal.truth], "labels of this table")
        if separator is None and len(self.found["candidates"]) == 1:
            separator = self._find_separator(self.look(self.found["candidates"][0]))
        self.separator = separator or None
        people = [self.look(name) for name in self.found["annotators"]]
        marks = sum((c.values or {}).get("-1", 0) for c in people)
        often = marks > 0.3 * sum(c.filled for c in people)
        often = often or all("lf" in c.words for c in people)
        least = [cells.as_number(cell) for c in people for cell in c.values or ()]
        whole = all(c.is_whole for c in people if c.filled) and all((n or 0) >= -1 for n in least)
        if marks and often and whole and not self.missing:
            self.missing = ("-1",)
            self.notes.append("-1 is read as no answer (missing=).")
        said = [
            self.look(name) for name in (*self.found["annotators"][:50], *self.found["long"][1:2])
        ]
        several = [c.name for c in said if c.separator]
        if several:
            self.notes.append(
                f"answers in {name_some(several, 3)} name several labels at once. Each "
                "combination is read as a label of its own."
            )

    def _find_separator(self, column: ColumnLook) -> str | None:
        """Find what separates labels; say so, unless it is a bar, and say what may do so."""
        name, values = name_some([column.name]), column.values or {}
        if column.kind != "text" or column.separator == "[":
            return None
        mark = cells.find_separator(values)
        held = {each: sum(n for cell, n in values.items() if each in cell) for each in (",", ";")}
        inside = [each for each, n in held.items() if n >= 0.05 * column.filled]
        if mark not in (None, "|"):
            self.notes.append(
                f"cells of {name} are split at {mark!r}. If it is part of a label, give "
                "separator=''."
            )
        elif not mark and (likely := column.likely_separator):
            self.notes.append(
                f"if {likely!r} separates several labels in the cells of {name}, say so with "
                "separator=."
            )
        elif not mark and inside:
            self.notes.append(
                f"{inside[0]!r} is read as a part of the labels in {name}. If it separates "
                f"several labels, give separator={inside[0]!r}."
            )
        return mark

    def finish(self, proposal: Proposal | None, separator: str | None, refused: set[str]) -> Roles:
        """Return all roles, the labels being where a proposal says."""
        guess = self.copy()
        guess.accept(proposal, separator)
        guess.find_others(refused)
        return guess.roles()

    def find_others(self, refused: set[str]) -> None:
        """Find names, truth, images and text, and features among the rest."""
        read, features = read_labels(self.table, self.roles()), self.features
        if self.found["long"]:
            varying = [c.name for c in self._open() if self._varies(c, read)]
            self._leave_out(dict.fromkeys(varying, "varies within an item"))
        tests: dict[str, tuple[Callable[[ColumnLook], bool], str]] = {
            "truth": (lambda column: self._is_truth(column, read), "labels of this table"),
            "id": (_names_rows, "unique in every row"),
            "image": (lambda column: column.mostly(PICTURE), "image files"),
            "text": (lambda column: column.is_prose and not column.meta, "several words per cell"),
        }
        for role, (test, why) in tests.items():
            if role in refused or self.found[role] or (role == "id" and self.found["long"]):
                continue
            found = [c.name for c in self.free() if c.name not in (features or ()) and test(c)]
            if role == "id":
                found.sort(key=lambda name: not self.look(name).names_by_title)
            if found and (role != "text" or features is None):
                self.take(role, found[:1] if role in _SINGLE else found, why)
            if found and role == "truth" and self.look(found[0]).title in titles.LABEL_TITLES:
                self.notes.append(
                    f"{name_some(found[:1])} is read as the true labels: it is among the "
                    "candidates of nearly every row. It only scores the result."
                )
        if features is None:
            self._find_features(read)
        else:
            self._take_features(features)

    def _take_features(self, features: Sequence[str]) -> None:
        """Take the features that the user named, and ignore all other columns."""
        for name in features:
            if name in self.reasons and name not in self.found["text"]:
                raise TableError(
                    f"column {name_some([name])} is not a feature: its role is "
                    f"{self.role_of(name).replace('_', ' ')}."
                )
        self.take("features", [name for name in features if name not in self.found["text"]])
        self.reasons |= dict.fromkeys(features, SPECIFIED)
        self.take("ignore", [c.name for c in self.free()], "not among the specified features")

    def _find_features(self, read: Labels) -> None:
        """Take all columns as features that can be; say which ones were left out, and why."""
        for column in self.free():
            reason = self._no_feature(column, read)
            unasked = None if reason else self._not_unasked(column)
            kind = _KINDS.get(column.kind, f"{column.distinct} categories")
            if unasked:
                self._leave_out({column.name: unasked})
            else:
                self.take("ignore" if reason else "features", [column.name], reason or kind)
        if self.left_out:
            by_reason: dict[str, list[str]] = {}
            for name, why in self.left_out.items():
                by_reason.setdefault(why, []).append(name)
            said = "; ".join(f"{name_some(names)} ({why})" for why, names in by_reason.items())
            self.notes.append(
                f"ignored: {said}. To use such a column, name all feature columns with features=."
            )

    def _leave_out(self, reasons: Mapping[str, str]) -> None:
        """Set columns aside that could be learned from, if the user wants it."""
        self.take("ignore", list(reasons))
        self.reasons |= reasons
        self.left_out |= reasons

    def _varies(self, column: ColumnLook, read: Labels) -> bool:
        """Tell whether a column differs within the items of a long table."""
        if column.kind not in ("text", "number", "date"):
            return False
        codes, texts = coded(self.table, column.name)
        filled = codes >= 0
        owner = read.owner[filled]
        pairs = np.unique(owner * max(len(texts), 1) + codes[filled]) // max(len(texts), 1)
        several = np.bincount(owner, minlength=read.n_rows) > 1
        different = np.bincount(pairs, minlength=read.n_rows) > 1
        return bool(np.count_nonzero(different) > _VARIES * np.count_nonzero(several))

    def _is_truth(self, column: ColumnLook, read: Labels) -> bool:
        """Tell true labels by their title, or one label per row among sets by its cells."""
        if column.title in titles.TRUTH_TITLES:
            return column.separator is not None or _match(column, read)[0] >= 0.5
        sets = self.found["candidates"] and column.title in titles.LABEL_TITLES
        return bool(sets) and _is_among(column, read)

    def _not_unasked(self, column: ColumnLook) -> str | None:
        """Say why a column is not learned from unless the user names it; None if it is."""
        if column.meta:
            return column.meta
        if column.is_code and titles.is_id(column.name):
            return "an id"
        if column.is_code and column.title in titles.PEOPLE_WORDS:
            return "names an annotator"
        titled = column.title in titles.TARGETS and column.is_titled
        return "named like labels" if titled else None

    def _no_feature(self, column: ColumnLook, read: Labels) -> str | None:
        """Say why a column is nothing to learn from; None if it may be."""
        if not column.name:
            return "without a name, like the index of a data frame"
        if column.kind == "empty":
            return "empty"
        if column.kind in ("nested", "list"):
            return "lists or objects; spread them over columns of their own"
        if column.distinct == 1 and column.filled == len(column.data):
            return "constant"
        reason = self._holds_labels(column, read)
        if reason:
            return reason
        values = self.table.numbers(column.name) if column.is_whole else None
        if values is not None and read.n_rows >= FEW:
            values = values[read.first]  # whole numbers without a gap, in any order; none is NaN
            if values.max() - values.min() + 1 == len(values) == len(np.unique(values)):
                return "counts the rows"
        return _looks_like_an_id(column)

    def _holds_labels(self, column: ColumnLook, read: Labels) -> str | None:
        """Say why a column follows from the labels of the table; None if it does not."""
        if column.distinct <= 1.2 * len(read.class_names) + 1:
            known, classes, own, chance = _match(column, read)
            # Numbers, and words of two classes, may be class names by chance: they must fit.
            sure = column.kind != "number" and (classes > 2 or read.n_rows < FEW)
            fits = read.n_rows >= FEW and own >= max(MOST, (1 + chance) / 2)
            truth = column.title in titles.TRUTH_TITLES and known >= MOST
            if truth or (known == 1 and classes > 1 and (sure or fits)):
                return "holds labels of this table; if they are the true ones, give truth="
        if self.found["counts"]:
            if np.array_equal(column.start, read.counts[:SAMPLED].sum(axis=1)):
                return "the number of votes"
            if _is_majority(column, read):
                return "follows from the votes; if it is the true label, give truth="
        return None


def _looks_like_an_id(column: ColumnLook) -> str | None:
    """Say why a column tells rows apart rather than kinds of rows; None if it does not."""
    near = column.distinct >= 0.9 * column.filled and column.filled >= FEW
    hinted = bool(titles.ID_WORDS & column.words) or column.title.endswith(("id", "hash"))
    id_like = near or bool(titles.HASH_WORDS & column.words)
    if column.kind == "number":
        huge = near and column.is_whole and np.nanmax(np.abs(column.start)) > 2**53
        return "an id or a hash" if huge or (column.is_whole and hinted and id_like) else None
    if column.kind == "text" and not column.is_prose:
        if column.mostly(HASH) or (hinted and id_like):
            return "an id or a hash"
        if column.mostly(VECTOR):
            return "lists of numbers, as texts; give them with embeddings="
        if near:
            files = column.mostly(FILE_NAME)
            return "names of files" if files else "different in nearly every row"
    return None


def _names_rows(column: ColumnLook) -> bool:
    """Tell whether a column names the rows: no value twice, and texts, or a title that says so."""
    unique = column.distinct == column.filled == len(column.data)
    if not column.is_code or not unique or titles.HASH_WORDS & column.words:
        return False
    if column.mostly(PICTURE) or column.mostly(VECTOR):
        return False
    texts = column.kind == "text" and column.filled >= FEW and not column.mostly(HASH)
    return texts or column.names_by_title


def _match(column: ColumnLook, read: Labels) -> tuple[float, int, float, float]:
    """Compare a column with the labels of the rows.

    Returns the share of its cells that are class names, how many classes these are, the share
    of the cells that are candidates of their own rows, and what that would be by chance.
    """
    if column.values is None or column.kind not in ("text", "number", "date"):
        return 0.0, 0, 0.0, 1.0
    place = {name: j for j, name in enumerate(read.class_names.tolist())}
    numbers = {cells.as_number(name): j for name, j in place.items()} | {None: -1}
    indices, texts = coded(column.table, column.name)
    lookup = [place.get(text, numbers.get(cells.as_number(text), -1)) for text in texts]
    known = np.array([*lookup, -1])[indices[read.first]]
    rows = np.flatnonzero(known >= 0)
    filled = np.count_nonzero(indices[read.first] >= 0)
    if not len(rows):
        return 0.0, 0, 0.0, 1.0
    matrix = read.matrix
    shares = np.bincount(known[rows], minlength=matrix.shape[1]) / len(rows)
    own = float(matrix[rows, known[rows]].mean())
    chance = float(shares @ matrix.mean(axis=0))
    return len(rows) / int(filled), int(np.count_nonzero(shares)), own, chance


def _is_among(column: ColumnLook, read: Labels) -> bool:
    """Tell whether cells are candidates of their rows, in nearly all rows and not by chance."""
    if read.n_rows < 3:
        return False
    known, classes, own, chance = _match(column, read)
    return known == 1 and classes > 1 and own >= max(_FITS, (1 + chance) / 2)


def _is_majority(column: ColumnLook, read: Labels) -> bool:
    """Tell whether a column is but another name for the label with the most votes."""
    if not 1 < column.distinct <= len(read.class_names) or column.values is None:
        return False
    indices, texts = coded(column.table, column.name)
    table = np.zeros((len(texts) + 1, len(read.class_names)))
    np.add.at(table, (indices[read.first], read.majority), 1)
    table = table[: len(texts)]
    different = len(np.unique(table.argmax(axis=1))) == len(texts)
    return bool(different and table.max(axis=1).sum() >= 0.9 * read.n_rows)
