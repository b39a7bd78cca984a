"""What every column of a table is: labels, annotators, ids, true labels, features; and why."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from itertools import chain, combinations, groupby, permutations
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

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
from appellate.tables.cells import Labels, TableError, coded, name_some, read_labels, together
from appellate.tables.commands import SPECIFIED, in_python, options_of
from appellate.tables.probabilities import classes_by_column
from appellate.tables.reading import Table

_FORMER = (*ADDED, *FORMERLY_ADDED)
_TAKEN = re.compile(rf"(?:{PREFIX}|{FORMER_PREFIX})(\D+)\d*")  # the name was taken in the table
_PICTURE = re.compile(r"(?i)\S.*\.(png|jpe?g|gif|webp|bmp|tiff?|svg)(\?.*)?|data:image/.*")
_FILE = re.compile(r"(?i)([\w.~-]*[/\\])+[^/\\]+|[^/\\\s]+\.[a-z][a-z0-9]{1,4}")
_HASH = re.compile(r"(?i)(0x)?[0-9a-f]{16,}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_VECTOR = re.compile(r"\[[-+\d.,eE\s]*\.[-+\d.,eE\s]*\]")
_FEW = 10  # rows; fewer may be numbered, or agree, by chance
_SAMPLE = 2000  # rows on which guesses of people and counts are tried first
_MOST = 0.8
_AGREED = 0.2  # Cohen's kappa of people who look at the same thing
_FITS = 0.95  # share of rows in which the truth is among the candidates
_ONCE = 0.75  # share of answers that are the annotator's first on an item, if titles name both
_VARIES = 0.05  # share of items within which a column varies that describes the answer
_TWICE = 0.1  # share of cells that name a label twice, from which on they are answers
_LABELS = 60  # different answers of one annotator, at most
_VOTES = 100  # answers an item, at most, for a sum to be a number of votes


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
        """Whether labels were found in a column of one label a row."""
        return _ONE_LABEL in (self.reasons.get(name) for name in self.candidates)

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


_ONE_LABEL = "one label per row, detected from the column name"
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
                f"{table.source}: nobody chose a label of a whole item in the labelling tool. "
                "Label some items there, and export them again."
            )
        named |= {role: listed(columns) for role, columns in table.export.roles.items()}
    refused = {role for role in _NAMED if given.get(role) is False}
    columns = {role: table.find(names, role) for role, names in named.items() if names}
    layouts = [role for role in _LAYOUTS if role in columns]
    if len(layouts) > 1:
        raise TableError(
            f"{' and '.join(layouts)}: labels are in one of these ways. Give one of them."
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


def _many_fractions(table: Table, name: str, some: Any) -> NDArray[np.float64] | None:
    """Return the numbers of a column of many fractions, whose texts are not worth counting.

    `some` are its first cells. None if the column holds anything else.
    """
    data, many = table.data.column(name), 0.3 * len(some) + 20
    if len(some.drop_null().unique()) <= many:
        return None
    if pa.types.is_floating(data.type):
        return np.asarray(data.to_numpy(), dtype=np.float64)
    few = cells.numbers(some, table.style(name)) if cells.is_text(data.type) else None
    if few is None:
        return None
    filled = few[~np.isnan(few)]
    whole = np.all(filled == np.trunc(filled))
    return None if whole or len(np.unique(filled)) <= many else table.numbers(name)


class _Column:
    """What a column looks like, by one pass over its cells.

    `kind` is one of empty, number, date, list, vector, nested and text; `values` are its
    distinct cells as texts and how often they occur, None for many floats and for lists;
    `start` are the numbers of its first rows, none if it is not a column of numbers.
    """

    def __init__(self, table: Table, name: str) -> None:
        self.table, self.name = table, name
        self.words = {*titles.split(name)}
        self.title = "".join(titles.split(name))
        self.data = data = table.data.column(name)
        self.values: dict[str, int] | None = None
        self.filled, self.distinct = len(data) - data.null_count, len(data)
        nested = pa.types.is_nested(data.type)
        fractions = None if nested else _many_fractions(table, name, data.slice(0, _SAMPLE))
        if fractions is not None:
            self.filled = np.count_nonzero(~np.isnan(fractions))
        elif not nested:
            counted = table.texts(name).drop_null().value_counts()
            self.values = dict(zip(*(each.to_pylist() for each in counted.flatten()), strict=True))
            self.filled, self.distinct = sum(self.values.values()), len(self.values)
        self.kind, numbers = self._find_kind(fractions)
        self.start = np.empty(0) if numbers is None else numbers[:_SAMPLE]
        filled = np.empty(0) if numbers is None else numbers[~np.isnan(numbers)][:_SAMPLE]
        self.is_whole = bool(len(filled) and np.all(filled == np.trunc(filled)))
        self.is_prose = self._find_prose()
        self.is_code = self.is_whole or (self.kind == "text" and not self.is_prose)

    def _find_kind(
        self, fractions: NDArray[np.float64] | None
    ) -> tuple[str, NDArray[np.float64] | None]:
        """Return the kind of the column, and its numbers if it has some."""
        data, kind = self.data, self.data.type
        if not self.filled:
            return "empty", None
        if pa.types.is_nested(kind):
            inner = getattr(kind, "value_type", None)
            of_values = "list" if inner in cells.TEXTS else "vector"
            return "nested" if inner is None else of_values, None
        if pa.types.is_temporal(kind):
            return "date", None
        style, some = self.table.style(self.name), data.slice(0, _SAMPLE)
        few = cells.numbers(some, style) if pa.types.is_primitive(kind) else None
        known = few is not None and not np.isnan(few).all()
        numbers = few if known else fractions
        numbers = self.table.numbers(self.name) if numbers is None else numbers
        if numbers is not None:
            return "number", numbers
        return "text" if cells.date_format(data) is None else "date", None

    def _find_prose(self) -> bool:
        """Tell whether cells are texts of several words, most of them different."""
        most = self.distinct > 0.5 * self.filled
        if self.kind != "text" or not (most or self.distinct > 20):
            return False
        lengths = [(len(cell.split()), len(cell)) for cell in list(self.values or ())[:5000]]
        words, letters = np.mean(lengths, axis=0)
        is_long = bool(words >= (4 if most else 6) or (letters >= 40 and words >= 3))
        return is_long and not self.mostly(_VECTOR) and not self._recurs()

    def mostly(self, pattern: re.Pattern[str]) -> bool:
        """Tell whether texts have a form."""
        some = list(self.values or ())[:1000] if self.kind == "text" else []
        return bool(some) and sum(map(bool, map(pattern.fullmatch, some))) >= 0.9 * len(some)

    def _recurs(self) -> bool:
        """Tell whether texts are made of few labels that recur, unlike free text."""
        some = list(self.values or ())[:1000]
        mark = cells.find_separator(dict.fromkeys(some, 1))
        sets = [cells.parse_list(cell) or (mark and cell.split(mark)) or [cell] for cell in some]
        parts = Counter(part.strip() for labels in sets for part in labels)
        return parts.total() >= 5 * len(parts)

    @property
    def names_by_title(self) -> bool:
        """Tell whether the title is one of names or ids."""
        named = (titles.ID_TITLES | titles.ITEM_WORDS) & {self.title, *self.words}
        return bool(named) or self.title.endswith("id")

    @property
    def is_numbered(self) -> bool:
        """Tell whether the title has a number or a letter of its own, as ``label_2``."""
        return any(len(word) == 1 or word.isdigit() for word in self.words)

    @cached_property
    def meta(self) -> str | None:
        """In what way the column describes an answer, an annotator or a place; None if not."""
        address = "an IP address" if self.mostly(titles.ADDRESS) else None
        return titles.meta(self.name) or address

    @property
    def is_titled(self) -> bool:
        """Tell whether the title says labels, and cells recur as labels do."""
        other = self.title in titles.TRUTH_TITLES or titles.JOINT_WORDS & self.words
        titled = titles.is_label(self.name) and not other
        return titled and self.is_label and self.distinct > 1

    @property
    def is_label(self) -> bool:
        """Tell whether cells recur as labels do, each of them one."""
        if self.kind == "date":
            return 1 < self.distinct <= max(2, 0.2 * self.filled)
        return self.is_code and self.distinct <= max(2, min(1000, 0.5 * self.filled))

    @cached_property
    def separator(self) -> str | None:
        """What parts labels in a cell; ``"["`` for lists of Python or JSON."""
        if self.kind != "text" or self.is_prose or self.mostly(_PICTURE) or not self.values:
            return None
        lists = [cells.parse_list(cell) for cell in list(self.values)[:200]]
        if None not in lists:
            parts = {part for found in lists for part in found or ()}
            return None if self.mostly(_VECTOR) and len(parts) > len(lists) else "["
        mark = cells.find_separator(self.values)
        holding = sum(count for cell, count in self.values.items() if mark and mark in cell)
        return mark if mark == "|" or holding >= 0.05 * self.filled else None

    @property
    def repeats_labels(self) -> bool:
        """Tell whether cells of several labels name one twice, as answers do and sets do not."""
        mark, some = self.separator, list(self.values or ())[:1000]
        if self.kind == "list":
            several = [row or [] for row in self.data.slice(0, 1000).to_pylist()]
        elif mark == "[":
            several = [list(ast.literal_eval(re.sub(r"\bnull\b", "None", cell))) for cell in some]
        else:
            several = [[part.strip() for part in cell.split(mark)] for cell in some if mark]
        twice = sum(len({*parts}) < len(parts) for parts in several)
        return twice > _TWICE * len(several)

    @property
    def likely_separator(self) -> str | None:
        """What may part labels in a cell, though it may be a part of them too."""
        known = self.kind == "text" and not self.is_prose
        return cells.find_separator(self.values or {}, cells.LIKELY) if known else None


@dataclass(frozen=True)
class _Proposal:
    """One way to read the labels of a table: a layout, and why each column is a part of it."""

    layout: str
    reasons: Mapping[str, str]
    doubt: str = ""  # why it is not taken unasked
    truth: str | None = None
    notes: tuple[str, ...] = ()


class _Guess:
    """Columns find their roles one after the other; what is taken is not asked again."""

    def __init__(
        self, table: Table, missing: Iterable[Any], features: Sequence[str] | None
    ) -> None:
        self.table, self.features = table, features
        self.look = cache(lambda name: _Column(table, name))
        self.found: dict[str, list[str]] = {role: [] for role in (*_NAMED, "features")}
        self.reasons: dict[str, str] = {}
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

    def free(self) -> list[_Column]:
        return [self.look(name) for name in self.table.names if name not in self.reasons]

    def _open(self) -> list[_Column]:
        """Return the columns that may have to do with labels: no features, no facts on answers."""
        return [c for c in self.free() if c.name not in (self.features or ()) and not c.meta]

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

    def propose(self) -> tuple[list[_Proposal], str]:
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
        return [first, _Proposal("candidates", {rival.name: _ONE_LABEL})], doubt

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

    def _read(self, proposal: _Proposal) -> Labels | None:
        """Read the labels that are proposed; None if they cannot be read."""
        guess = self.copy()
        guess.accept(proposal, None)
        try:
            return read_labels(self.table, guess.roles())
        except TableError:
            return None

    def _follows(self, column: _Column, proposal: _Proposal) -> bool:
        """Tell whether cells fit no other reading: always a candidate, or the most voted."""
        if proposal.layout not in ("candidates", "counts"):
            return False
        read = self._read(proposal)
        if read is None:
            return False
        fits = _is_majority if proposal.layout == "counts" else _is_among
        return fits(column, read)

    def _shares(self, column: _Column, proposal: _Proposal) -> bool:
        """Tell whether a column shares the labels of a proposal: it may hold true labels."""
        read = self._read(proposal)
        return read is not None and _match(column, read)[0] >= _MOST

    def accept(self, proposal: _Proposal | None, separator: str | None) -> None:
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

    def _find_separator(self, column: _Column) -> str | None:
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

    def _long(self) -> list[_Proposal]:
        """Find item, label and annotator: pairs of the first and last come once, items again.

        Titles tell item from annotator, and then some pairs may come again. One of the two will do
        in a table of three columns, and an annotator's where items are texts; of three columns of
        texts no title needs to be known. Then answers to an item must agree more often than any
        two answers do. Without the title of an annotator, all of it is in doubt.
        """
        free = [c for c in self._open() if c.is_code]
        for item, person, titled in self._long_pairs(free):
            named = titles.is_person(person.name)
            if not named and item.distinct <= person.distinct:
                continue
            once = _ONCE if named and titles.is_item(item.name) else 0.95
            if self._pairs(item, person) < once * len(self.table):
                continue
            others = [c for c in free if c not in (item, person)]
            fitting = [c for c in others if self._answers(c, item, person)]
            fitting = [c for c in fitting if titled or self._agree(item, c)]
            fitting.sort(key=lambda c: not self._agree(item, c))
            fitting.sort(key=lambda c: not titles.is_label(c.name))
            if fitting:
                label = fitting[0]
                reasons = {
                    item.name: "item: repeats, once per annotator",
                    label.name: "label: differs within an item",
                    person.name: "annotator: gives one answer per item",
                }
                doubt = (
                    f"each row looks like one answer: item {name_some([item.name])}, label "
                    f"{name_some([label.name])}, annotator {name_some([person.name])}. No column "
                    "name says that these are annotators."
                )
                return [_Proposal("long", reasons, "" if named else doubt)]
        return []

    def _long_pairs(self, free: Sequence[_Column]) -> list[tuple[_Column, _Column, bool]]:
        """Return the columns that may be item and annotator, and whether titles name both."""
        people, items, others = _split_keys(free)
        texts, three = [c for c in others if c.kind == "text"], len(self.table.names) == 3
        titled = [(i, p) for p in people for i in items] if people else permutations(items, 2)
        pairs = [(i, p) for p in people for i in (others if three else texts)]
        if three:
            pairs += [(i, p) for i in items for p in others]
            pairs += list(permutations(texts, 2)) if not people and not items else []
        return [(*each, True) for each in titled] + [(*each, False) for each in pairs]

    def _answers(self, column: _Column, item: _Column, person: _Column) -> bool:
        """Tell whether a column may hold the answers of annotators to items."""
        if not column.is_label or titles.is_id(column.name):
            return False
        if column.distinct >= max(item.distinct, 3) or column.title in titles.TRUTH_TITLES:
            return False
        if self._pairs(item, column) <= item.distinct:
            return False
        titled = titles.is_person(person.name) and titles.is_label(column.name)
        return titled or self._pairs(person, column) > person.distinct

    def _agree(self, item: _Column, label: _Column) -> bool:
        """Tell whether answers to one item agree more often than by chance."""
        (of_item, _), (said, names) = (coded(self.table, c.name) for c in (item, label))
        of_item, said = of_item[said >= 0], said[said >= 0]
        alike = np.unique(of_item * len(names) + said, return_counts=True)[1]
        each, shares = np.bincount(of_item), np.bincount(said) / len(said)
        chance = float(shares @ shares)
        compared, same = each @ (each - 1), alike @ (alike - 1)
        return bool(same > (chance + _AGREED * (1 - chance)) * compared)

    def _pairs(self, one: _Column, other: _Column) -> int:
        """Return how many different pairs two columns make."""
        texts = (self.table.texts(column.name).fill_null("") for column in (one, other))
        return len(pc.binary_join_element_wise(*texts, "\0").unique())

    def _sets(self) -> list[_Proposal]:
        """Find columns of several labels per cell; report if there are several."""
        found = [c for c in self._open() if c.separator or c.kind == "list"]
        found = [c for c in found if c.title.removesuffix("s") not in titles.PEOPLE]
        found.sort(key=lambda c: (c.title in titles.TRUTH_TITLES, titles.RANK.get(c.title, 99)))
        made = []
        for column in found:
            mark = column.separator
            how = f"separated by {mark!r}" if mark and mark != "[" else "in lists"
            doubt = ""
            if column.repeats_labels:
                doubt = (
                    f"cells of {name_some([column.name])} repeat labels, so they look like the "
                    "answers of several annotators. Write each answer into a column of its own, "
                    "and name these columns with annotators=; as candidates, the number of "
                    "answers is lost."
                )
            reasons = {column.name: f"several labels per cell, {how}"}
            made.append(_Proposal("candidates", reasons, doubt))
        others = [c for c in found[1:] if c.title not in titles.TRUTH_TITLES]
        if made and others:
            too = [
                f"{name_some([c.name])} could hold candidates too: name the correct column with "
                "candidates=."
                for c in others
            ]
            made[0] = replace(made[0], notes=tuple(too))
            if not titles.is_label(found[0].name):
                both = name_some([c.name for c in (found[0], *others)], 4)
                doubt = f"{both} hold several labels per cell each."
                made = [replace(each, doubt=doubt, notes=()) for each in made]
                return made[: 1 + len(others)][:3]
        return made[:1]

    def _people(self) -> list[_Proposal]:
        """Find annotators: a family of titles, or columns of the same labels that agree."""
        family = max(self._families(), key=len, default=[])
        if family:
            names = [c.name for c in family]
            reasons = dict.fromkeys(names, "detected from the column name")
            doubt = (
                f"{name_some(names, 4)} are named like annotators, but agree no more often than "
                "by chance."
            )
            stem, *_, kind = titles.family(names[0]) or ("", "")
            named = kind == "*" and stem in titles.PEOPLE  # a name may be that of anything else
            agreed, compared, _ = _agreement(family) if named else (1.0, 0, 0.0)
            odd = compared >= _FEW and agreed < _AGREED
            return [_Proposal("annotators", reasons, doubt if odd else "")]
        return self._alike()

    def _alike(self) -> list[_Proposal]:
        """Find annotators without titles: columns of the same labels that mostly agree."""
        free = [c for c in self._open() if c.is_code and not titles.JOINT_WORDS & c.words]
        free = [c for c in free if c.distinct <= _LABELS and c.title not in titles.TRUTH_TITLES]
        free = [c for c in free if not titles.is_id(c.name)]
        free = [c for c in free if not titles.is_label(c.name) or c.is_numbered]
        labelled = any(c.title in titles.LABEL_TITLES for c in self.free())
        for group in _groups(free):
            agreed, compared, holes = _agreement(group)
            numbers = group[0].is_whole
            least = 0.4 if numbers and holes < 0.05 else 0.2
            sure = compared >= 5 and least <= agreed < 1
            mixed = len({bool(c.likely_separator) for c in group}) > 1  # 'a/b' beside 'a'
            most = 2 if numbers or labelled or mixed else 1
            if len(group) > most and (sure or holes > 0.9):
                names = sorted((c.name for c in group), key=self.table.names.index)
                reasons = dict.fromkeys(names, "same labels as the others, mostly agreeing")
                titled = all(titles.is_label(name) for name in names)
                doubt = (
                    f"{name_some(names, 4)} look like annotators: they hold the same labels and "
                    "mostly agree. No column name says so."
                )
                return [_Proposal("annotators", reasons, "" if titled else doubt)]
        return []

    def _families(self) -> list[list[_Column]]:
        """Return the families of annotators by their titles, each whole.

        A family is two columns or more, each of few labels. If names tell its members apart,
        nearly all of them must have the same labels: a name may be that of anything else.
        """
        by_stem: dict[tuple[str, ...], list[_Column]] = {}
        for column in self._open():
            stem = titles.family(column.name)
            if stem is not None:
                by_stem.setdefault(stem, []).append(column)
        return [
            group
            for (stem, *_, kind), group in by_stem.items()
            if len(group) > 1 and _are_labels(group)
            if kind == "#" or stem not in titles.PEOPLE or _share_labels(group)
        ]

    def _counts(self) -> list[_Proposal]:
        """Find columns of votes: their sum is another column, or varies far less than they do."""
        free = [c for c in self._open() if c.is_whole and not titles.ID_WORDS & c.words]
        free = [c for c in free if 0 <= c.start.min() < c.start.max()]  # not where one is NaN
        if len(free) < 3 or len(self.table) < 3:
            return []
        numbers = np.stack([c.start for c in free], axis=1)
        sums = np.concatenate([np.zeros((len(numbers), 1)), numbers.cumsum(axis=1)], axis=1)
        spread = np.concatenate([[0], numbers.var(axis=0).cumsum()])
        found = []
        for i, k in combinations(range(len(free) + 1), 2):
            total = sums[:, k] - sums[:, i]
            if k - i < 2 or numbers[:, i:k].max() < 2 or total.min() < 1:
                continue
            whole = [c for c in free[:i] + free[k:] if np.array_equal(c.start, total)]
            varies = -1.0 if whole else float(total.var() / (spread[k] - spread[i]))
            if whole or (k - i > 2 and varies <= 0.05):
                named = any(c.words & titles.TOTALS for c in whole) and total.max() <= _VOTES
                how = "their sum hardly varies"
                how = f"sum up to {name_some([c.name for c in whole])}" if whole else how
                found.append((not named, varies, i - k, i, how))
        if not found:
            return []
        doubtful, _, width, i, how = min(found)
        names = [c.name for c in free[i : i - width]]
        doubt = f"{name_some(names, 4)} may be numbers of votes, one column per label: {how}."
        reasons = dict.fromkeys(names, f"votes for a label: {how}")
        return [_Proposal("counts", reasons, doubt if doubtful else "")]

    def _plain(self) -> list[_Proposal]:
        """Find one label a row, by its title."""
        found = [c for c in self._open() if titles.is_label(c.name) and c.is_label]
        found = [c for c in found if c.title not in titles.TRUTH_TITLES]
        found.sort(key=lambda c: (c.distinct < 2, titles.RANK.get(c.title, 99)))
        notes = [
            f"{name_some([c.name])} could hold the labels too: name the correct column with "
            "candidates=."
            for c in found[1:]
        ]
        return [
            _Proposal("candidates", {c.name: _ONE_LABEL}, notes=tuple(notes)) for c in found[:1]
        ]

    def finish(
        self, proposal: _Proposal | None, separator: str | None, refused: set[str]
    ) -> Roles:
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
        tests: dict[str, tuple[Callable[[_Column], bool], str]] = {
            "truth": (self._is_truth(read), "labels of this table"),
            "id": (_names_rows, "unique in every row"),
            "image": (lambda column: column.mostly(_PICTURE), "image files"),
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

    def _varies(self, column: _Column, read: Labels) -> bool:
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

    def _is_truth(self, read: Labels) -> Callable[[_Column], bool]:
        """Return a test for true labels: a title of them, or among sets one of labels."""

        def test(column: _Column) -> bool:
            if column.title in titles.TRUTH_TITLES:
                return column.separator is not None or _match(column, read)[0] >= 0.5
            sets = self.found["candidates"] and column.title in titles.LABEL_TITLES
            return bool(sets) and _is_among(column, read)

        return test

    def _not_unasked(self, column: _Column) -> str | None:
        """Say why a column is not learned from unless the user names it; None if it is."""
        if column.meta:
            return column.meta
        if column.is_code and titles.is_id(column.name):
            return "an id"
        if column.is_code and column.title in titles.PEOPLE_WORDS:
            return "names an annotator"
        titled = column.title in titles.TARGETS and column.is_titled
        return "named like labels" if titled else None

    def _no_feature(self, column: _Column, read: Labels) -> str | None:
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
        if values is not None and read.n_rows >= _FEW:
            values = values[read.first]  # whole numbers without a gap, in any order; none is NaN
            if values.max() - values.min() + 1 == len(values) == len(np.unique(values)):
                return "counts the rows"
        return _looks_like_an_id(column)

    def _holds_labels(self, column: _Column, read: Labels) -> str | None:
        """Say why a column follows from the labels of the table; None if it does not."""
        if column.distinct <= 1.2 * len(read.class_names) + 1:
            known, classes, own, chance = _match(column, read)
            # Numbers, and words of two classes, may be class names by chance: they must fit.
            sure = column.kind != "number" and (classes > 2 or read.n_rows < _FEW)
            fits = read.n_rows >= _FEW and own >= max(_MOST, (1 + chance) / 2)
            truth = column.title in titles.TRUTH_TITLES and known >= _MOST
            if truth or (known == 1 and classes > 1 and (sure or fits)):
                return "holds labels of this table; if they are the true ones, give truth="
        if self.found["counts"]:
            if np.array_equal(column.start, read.counts[:_SAMPLE].sum(axis=1)):
                return "the number of votes"
            if _is_majority(column, read):
                return "follows from the votes; if it is the true label, give truth="
        return None


def _looks_like_an_id(column: _Column) -> str | None:
    """Say why a column tells rows apart rather than kinds of rows; None if it does not."""
    near = column.distinct >= 0.9 * column.filled and column.filled >= _FEW
    hinted = bool(titles.ID_WORDS & column.words) or column.title.endswith(("id", "hash"))
    id_like = near or bool(titles.HASH_WORDS & column.words)
    if column.kind == "number":
        huge = near and column.is_whole and np.nanmax(np.abs(column.start)) > 2**53
        return "an id or a hash" if huge or (column.is_whole and hinted and id_like) else None
    if column.kind == "text" and not column.is_prose:
        if column.mostly(_HASH) or (hinted and id_like):
            return "an id or a hash"
        if column.mostly(_VECTOR):
            return "lists of numbers, as texts; give them with embeddings="
        if near:
            files = column.mostly(_FILE)
            return "names of files" if files else "different in nearly every row"
    return None


def _split_keys(free: Sequence[_Column]) -> tuple[list[_Column], list[_Column], list[_Column]]:
    """Return columns that recur and are titled like annotators, like items, and all others."""
    full = [c for c in free if c.filled == len(c.data) and c.distinct > 1]
    keys = [c for c in full if c.distinct <= 0.7 * c.filled]
    people = [c for c in keys if titles.is_person(c.name)]
    items = [c for c in full if c not in people and titles.is_item(c.name)]
    items = [c for c in items if c.distinct <= (0.95 if people else 0.7) * c.filled]
    return people, items, [c for c in keys if c not in (*people, *items)]


def _names_rows(column: _Column) -> bool:
    """Tell whether a column names the rows: no value twice, and texts, or a title that says so."""
    unique = column.distinct == column.filled == len(column.data)
    if not column.is_code or not unique or titles.HASH_WORDS & column.words:
        return False
    if column.mostly(_PICTURE) or column.mostly(_VECTOR):
        return False
    texts = column.kind == "text" and column.filled >= _FEW and not column.mostly(_HASH)
    return texts or column.names_by_title


def _match(column: _Column, read: Labels) -> tuple[float, int, float, float]:
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


def _is_among(column: _Column, read: Labels) -> bool:
    """Tell whether cells are candidates of their rows, in nearly all rows and not by chance."""
    if read.n_rows < 3:
        return False
    known, classes, own, chance = _match(column, read)
    return known == 1 and classes > 1 and own >= max(_FITS, (1 + chance) / 2)


def _are_labels(group: Sequence[_Column]) -> bool:
    """Tell whether columns hold few labels that come again; some columns may be empty."""
    filled = [c for c in group if c.kind != "empty"]
    if not filled or not all(c.is_code and c.distinct <= _LABELS for c in filled):
        return False
    labels = {*chain.from_iterable(c.values or () for c in filled)}
    return len(labels) <= min(_LABELS, 0.5 * sum(c.filled for c in filled))


def _share_labels(group: Sequence[_Column]) -> bool:
    """Tell whether nearly all columns hold labels that others have too."""
    group = [c for c in group if c.kind != "empty"]
    values = [{*(c.values or ())} for c in group]
    shared = {value for value, n in Counter(chain(*values)).items() if n > 1}
    linked: set[str] = set()  # how sure people were is no answer: no label links it to them
    for own in sorted(values, key=len, reverse=True):
        linked |= own if not linked or own & linked else set()
    alike = sum(own <= linked and len(own & shared) >= len(own) / 2 for own in values)
    return len(group) > 1 and alike >= 0.9 * len(group)


def _is_majority(column: _Column, read: Labels) -> bool:
    """Tell whether a column is but another name for the label with the most votes."""
    if not 1 < column.distinct <= len(read.class_names) or column.values is None:
        return False
    indices, texts = coded(column.table, column.name)
    table = np.zeros((len(texts) + 1, len(read.class_names)))
    np.add.at(table, (indices[read.first], read.majority), 1)
    table = table[: len(texts)]
    different = len(np.unique(table.argmax(axis=1))) == len(texts)
    return bool(different and table.max(axis=1).sum() >= 0.9 * read.n_rows)


def _groups(columns: Sequence[_Column]) -> list[list[_Column]]:
    """Put columns together that could be annotators, the largest group first.

    Texts whose values are for the most part those of a larger column, and numbers whose titles
    are one stem with a number.
    """
    groups: list[tuple[set[str], list[_Column]]] = []
    for column in sorted(columns, key=lambda c: -c.distinct):
        values = {*(column.values or ())}
        if column.is_whole:
            values = {re.sub(r"\d+$", "", column.name)}
            if column.distinct > 20:
                continue
        for known, group in groups:
            if column.is_whole == group[0].is_whole and len(values & known) >= _MOST * len(values):
                known |= values
                group.append(column)
                break
        else:
            groups.append((values, [column]))
    return sorted((group for _, group in groups if len(group) > 1), key=len, reverse=True)


def _agreement(group: Sequence[_Column]) -> tuple[float, int, float]:
    """Return Cohen's kappa over pairs of columns, cells compared, and the share of empty ones."""
    table = group[0].table
    texts, codes = together([coded(table, c.name) for c in group[:: max(1, len(group) // 40)]])
    codes = np.where(codes == (texts.index("-1") if "-1" in texts else -1), -1, codes)
    same = expected = compared = 0.0
    for one, other in combinations(codes[:_SAMPLE].T, 2):
        both = (one >= 0) & (other >= 0)
        if both.any():
            shares = [np.bincount(each[both], minlength=len(texts)) for each in (one, other)]
            expected += float(shares[0] @ shares[1]) / both.sum()
            same += np.count_nonzero(one[both] == other[both])
            compared += both.sum()
    agreed = (same - expected) / (compared - expected) if compared > expected else 0.0
    return agreed, int(compared), float(np.mean(codes < 0))
