"""What every column of a table is: labels, people, names, truth, text, features; and why."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from appellate.tables import cells
from appellate.tables.cells import TableError, as_text, name_some, printable
from appellate.tables.labels import Labels, find_separator, read_labels
from appellate.tables.reading import Table

Columns = str | Sequence[str]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_PEOPLE = _words("annotator worker rater coder judge expert labeler labeller reviewer assessor")
_PEOPLE_WORDS = {*_PEOPLE, *_words("participant user person who crowd turker")}
_ITEM_WORDS = {
    *_words("item task unit question sample image document doc sentence tweet example instance"),
    *_words("object query record row case"),
}
_LABEL_TITLES = (
    *_words("candidates candidate candidatelabels candidateset partiallabels partiallabel labels"),
    *_words("label names tags answers answer response annotation class classes category target"),
    *_words("choice vote judgment judgement verdict y"),
)
_TRUTH_TITLES = {
    *_words("truth true ytrue truelabel trueclass groundtruth gold goldlabel goldstandard gt"),
    *_words("actual correct"),
}
_HASH_WORDS = {*_words("hash md sha")}  # digits are words of their own
_ID_WORDS = {*_HASH_WORDS, *_words("id ids uid uuid guid key index idx rowid")}
_ID_TITLES = {*_ID_WORDS, *_words("sampleid name file filename path url")}
_ADDED = ("label", "confidence", "outcome")  # to the user's table by a run
_MAYBE = ("suspicion", "margin", "evidence")
_OUTCOMES = frozenset({"upheld", "overturned", "reviewed", "excluded"})
_PICTURE = re.compile(r"(?i)\S.*\.(png|jpe?g|gif|webp|bmp|tiff?|svg)(\?.*)?|data:image/.*")
_FILE = re.compile(r"(?i)([\w.~-]*[/\\])+[^/\\]+|[^/\\\s]+\.[a-z][a-z0-9]{1,4}")
_HASH = re.compile(r"(?i)(0x)?[0-9a-f]{16,}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FEW = 10  # rows; fewer may be numbered, or agree, by chance
_SAMPLE = 2000  # rows on which guesses of people and counts are tried first
_MOST = 0.8


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are, given or guessed.

    Exactly one of `candidates`, `annotators`, `long` and `counts` is filled.

    Attributes
    ----------
    candidates : tuple of str
        One column of candidate sets (or of one label a row), or several of 0 and 1, one a label.
    annotators : tuple of str
        One column a person.
    long : tuple of str
        Columns item, label and, optionally, person of a table with one answer a row.
    counts : tuple of str
        One column a label, of how many people chose it.
    id, truth, image : str or None
        Columns of names of the rows, of true labels, of pictures.
    text : tuple of str
        Columns of prose.
    features : tuple of str
        Columns to learn from, beside `text`.
    ignore : dict of str to str
        Columns that are set aside, and why.
    separator : str or None
        What parts the labels in a cell of `candidates`; None if nothing does.
    missing : tuple of str
        What stands for no label.
    reasons : dict of str to str
        Why a column has its role, ``"given"`` where the user said so.
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

    def to_dict(self) -> dict[str, Any]:
        """Return everything as a dictionary of JSON's types."""
        return asdict(self)

    def __str__(self) -> str:
        """Print a table of columns, roles and reasons."""
        lines = []
        for role in (*_LAYOUTS, "id", "truth", "image", "text", "features"):
            value = getattr(self, role)
            for name in [value] if isinstance(value, str) else value or ():
                lines.append((name, _SINGULAR.get(role, role), self.reasons.get(name, "")))
        lines += [(name, "set aside", reason) for name, reason in self.ignore.items()]
        shown = [tuple(printable(cell)[:60] for cell in line[:2]) + line[2:] for line in lines]
        widths = [max(len(line[j]) for line in shown) for j in (0, 1)]
        return "\n".join(f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}".rstrip() for a, b, c in shown)


_LAYOUTS = ("candidates", "annotators", "long", "counts")
_SINGULAR = {"annotators": "annotator", "counts": "count", "features": "feature"}


def find_roles(
    table: Table,
    *,
    candidates: Columns | None = None,
    annotators: Columns | None = None,
    long: Columns | None = None,
    counts: Columns | None = None,
    id: str | bool | None = None,
    truth: str | bool | None = None,
    image: str | bool | None = None,
    text: Columns | bool | None = None,
    features: Columns | None = None,
    ignore: Columns | None = None,
    separator: str | None = None,
    missing: str | Sequence[Any] = (),
) -> Roles:
    r"""Say what every column of a table is; what is not given is guessed from the cells.

    Parameters
    ----------
    table : Table
        See `read_table`.
    candidates, annotators, long, counts : str or sequence of str, default=None
        Columns of the labels, in one of four ways, see `Roles`. Names, patterns such as
        ``"w*"``, or lists such as ``"ann,ben"``. Guessed if none is given.
    id, truth, image : str, default=None
        Columns of names of the rows, of true labels, of pictures; False if there is none.
    text : str or sequence of str, default=None
        Columns of prose; False if there is none to learn from.
    features : str or sequence of str, default=None
        Columns to learn from; by default all that can be.
    ignore : str or sequence of str, default=None
        Columns to leave out.
    separator : str, default=None
        What parts the labels in a cell, ``""`` if nothing does.
    missing : str or sequence, default=()
        What stands for no label, beside an empty cell.

    Returns
    -------
    Roles
        The columns, and why they are what they are.

    Raises
    ------
    TableError
        If a column is not there, has two roles, or none looks like labels.

    Examples
    --------
    >>> from appellate.tables import find_roles, read_table
    >>> table = read_table({"maybe": ["a|b", "b", "a|c"], "w": [1.5, 0.5, 2.5]})
    >>> print(find_roles(table))
    maybe  candidates  several labels in a cell, parted by '|'
    w      feature     numbers
    """
    marks = (missing,) if isinstance(missing, str) else tuple(map(as_text, missing))
    guess = _Guess(table, marks)
    named = {"candidates": candidates, "annotators": annotators, "long": long, "counts": counts}
    given = {r: table.find(c, r) for r, c in named.items() if c is not None and len(c)}
    if len(given) > 1:
        raise TableError(
            f"{' and '.join(given)}: labels are in one of these ways. Give one of them."
        )
    if "long" in given and len(given["long"]) not in (2, 3):
        raise TableError("long: name the columns item, label and, optionally, person.")
    single = {"id": id, "truth": truth, "image": image}
    for role, name in single.items():
        if isinstance(name, str):
            given[role] = table.find([name], role)[:1]
    if text is not None and not isinstance(text, bool):
        given["text"] = table.find(text, "text")
    given["ignore"] = table.find(ignore, "ignore") if ignore is not None else ()
    guess.refuse_twice(given)
    guess.take(given)
    refused = {role for role, name in (*single.items(), ("text", text)) if name is False}
    layout = next((name for name in _LAYOUTS if name in given), None)
    if layout is None:
        layout = guess.find_labels()
    if layout == "candidates":
        guess.find_separator(separator)
    guess.find_missing(layout)
    guess.find_others(refused, table.find(features, "features") if features is not None else None)
    return guess.roles()


class _Column:
    """What a column looks like; computed when asked for."""

    def __init__(self, table: Table, name: str) -> None:
        self.table, self.name = table, name
        self.data = table.data.column(name)
        self.words = re.findall(r"[a-z]+|\d+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())
        self.title = "".join(letter for letter in name.lower() if letter.isalnum())

    @cached_property
    def kind(self) -> str:
        """One of empty, number, date, list, vector, nested and text."""
        kind = self.data.type
        if self.data.null_count == len(self.data):
            return "empty"
        if pa.types.is_nested(kind):
            if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
                return "vector" if pa.types.is_fixed_size_list(kind) else "nested"
            return "list" if cells._is_text(kind.value_type) else "vector"
        if pa.types.is_temporal(kind):
            return "date"
        if pa.types.is_boolean(kind) or pa.types.is_primitive(kind):
            return "number"
        if self.values is not None and not self.values:
            return "empty"
        if self.table.numbers(self.name) is not None:
            return "number"
        return "date" if cells.dates(self.data) is not None else "text"

    @cached_property
    def filled(self) -> int:
        if self.kind == "number" and not cells._is_text(self.data.type):
            return int(len(self.data) - self.data.null_count)
        return int(sum(self.values.values())) if self.values is not None else len(self.data)

    @cached_property
    def values(self) -> dict[str, int] | None:
        """Distinct cells as texts, and how often they occur; None for many floats and lists."""
        if pa.types.is_nested(self.data.type):
            return None
        if pa.types.is_floating(self.data.type):
            start = self.data.slice(0, _SAMPLE)
            if pc.count_distinct(start).as_py() > 0.3 * len(start) + 20:
                return None
        counted = self.table.texts(self.name).drop_null().value_counts()
        pairs = (counted.field("values").to_pylist(), counted.field("counts").to_pylist())
        return dict(zip(*pairs, strict=True))

    @cached_property
    def distinct(self) -> int:
        return len(self.values) if self.values is not None else len(self.data)

    @cached_property
    def start(self) -> NDArray[np.float64] | None:
        """Numbers of the first rows."""
        return cells.numbers(self.data.slice(0, _SAMPLE), self.table.decimal)

    @cached_property
    def is_whole(self) -> bool:
        if self.kind != "number" or self.start is None:
            return False
        filled = self.start[~np.isnan(self.start)]
        return bool(np.all(filled == np.trunc(filled)))

    @cached_property
    def shape(self) -> tuple[float, float]:
        """Words and letters of a distinct cell, on average."""
        some = list(self.values or ())[:5000]
        if not some:
            return 0.0, 0.0
        return sum(len(c.split()) for c in some) / len(some), sum(map(len, some)) / len(some)

    def share(self, pattern: re.Pattern[str]) -> float:
        """Share of the distinct cells that have a form."""
        some = list(self.values or ())[:1000]
        return sum(bool(pattern.fullmatch(cell)) for cell in some) / max(len(some), 1)

    @property
    def is_prose(self) -> bool:
        words, letters = self.shape
        many = self.distinct > 20 or self.distinct > 0.5 * self.filled
        return self.kind == "text" and many and (words >= 4 or (letters >= 40 and words >= 3))

    @property
    def is_picture(self) -> bool:
        return self.kind == "text" and self.share(_PICTURE) >= 0.9

    @property
    def is_unique(self) -> bool:
        return self.distinct == self.filled == len(self.data)

    @property
    def may_be_label(self) -> bool:
        """Tell whether cells recur as labels do, each of them one."""
        if self.kind == "date":
            return 1 < self.distinct <= max(2, 0.2 * self.filled)
        if self.kind == "number" and not self.is_whole:
            return False
        few = self.distinct <= max(2, 0.5 * self.filled) and self.distinct <= 1000
        return self.kind in ("text", "number") and few and not self.is_prose


class _Guess:
    """Columns find their roles one after the other; what is taken is not asked again."""

    def __init__(self, table: Table, missing: tuple[str, ...]) -> None:
        self.table = table
        self.columns = {name: _Column(table, name) for name in table.names}
        self.found: dict[str, Any] = {"missing": missing}
        self.reasons: dict[str, str] = {}
        self.ignore: dict[str, str] = {}
        self.notes: list[str] = []

    def roles(self) -> Roles:
        return Roles(
            **self.found, ignore=self.ignore, reasons=self.reasons, notes=tuple(self.notes)
        )

    def refuse_twice(self, given: Mapping[str, tuple[str, ...]]) -> None:
        for (one, first), (other, second) in combinations(given.items(), 2):
            both = [name for name in first if name in second]
            if both and {one, other} != {"text", "ignore"}:
                raise TableError(
                    f"column {name_some(both[:1])} is given as {one} and as {other}. A column has "
                    "one role."
                )

    def take(self, given: Mapping[str, tuple[str, ...]], reason: str = "given") -> None:
        for role, names in given.items():
            if role == "ignore":
                self.ignore |= dict.fromkeys(names, reason)
            else:
                self.found[role] = names[0] if role in ("id", "truth", "image") else names
            self.reasons |= dict.fromkeys(names, reason)

    def free(self) -> list[_Column]:
        return [column for name, column in self.columns.items() if name not in self.reasons]

    def aside(self, name: str, reason: str) -> None:
        self.ignore[name] = self.reasons[name] = reason

    # Labels.

    def find_labels(self) -> str:
        for name in self._earlier():
            self.aside(name, "the result of an earlier run")
        for guess in (self._long, self._sets, self._people, self._counts, self._plain):
            layout = guess()
            if layout:
                return layout
        raise TableError(
            f"{self.table.source}: no column looks like labels. Name it with candidates=, or "
            "annotators=, long= or counts= for answers of people. The columns: "
            f"{name_some(self.table.names, 12)}."
        )

    def _earlier(self) -> list[str]:
        added = {
            name: [t for t in self.columns if re.fullmatch(rf"{name}|appeal_{name}\d*", t)]
            for name in (*_ADDED, *_MAYBE)
        }
        added["outcome"] = [
            t for t in added["outcome"] if {*(self.columns[t].values or ("",))} <= _OUTCOMES
        ]
        whole = all(added[name] for name in _ADDED)
        return [t for titles in added.values() for t in titles] if whole else []

    def _long(self) -> str | None:
        """Find item, label and person: pairs of the first and last come once, items again."""
        free = [c for c in self.free() if c.kind in ("text", "number") and c.values is not None]
        names = [c for c in free if c.distinct > 1 and not c.is_prose]
        again = [c for c in names if c.distinct <= 0.7 * c.filled and c.filled == len(c.data)]
        keys = [c for c in again if c.kind == "text" or c.is_whole]
        people = [c for c in keys if _PEOPLE_WORDS & {*c.words}]
        items = [c for c in keys if c not in people and ((_ITEM_WORDS | _ID_WORDS) & {*c.words})]
        pairs = [(i, p) for p in people for i in items]
        pairs += [(i, p) for i in items for p in items if i.distinct > p.distinct and not people]
        for item, person in pairs:
            answer = self._answer(item, [c for c in names if c not in (item, person)])
            if answer and self._once(item, person):
                self.take({"long": (item.name, answer.name, person.name)}, "")
                self.reasons |= {
                    item.name: "item: comes again, once a person",
                    answer.name: "label: differs within an item",
                    person.name: "person: gives one answer an item",
                }
                return "long"
        return None

    def _once(self, item: _Column, person: _Column) -> bool:
        pairs = pc.binary_join_element_wise(
            self.table.texts(item.name), self.table.texts(person.name), "\0"
        )
        return bool(pc.count_distinct(pairs).as_py() >= 0.95 * len(pairs))

    def _answer(self, item: _Column, others: Iterable[_Column]) -> _Column | None:
        """Return the column whose few values differ within an item."""
        fitting = [c for c in others if c.may_be_label and c.distinct < max(item.distinct, 3)]
        owner = self.table.texts(item.name)
        differing = []
        for column in fitting:
            both = pc.binary_join_element_wise(
                owner, self.table.texts(column.name), "\0", null_handling="replace"
            )
            if pc.count_distinct(both).as_py() > item.distinct:
                differing.append(column)
        titled = [
            c for c in differing if c.title in _LABEL_TITLES or {*_LABEL_TITLES} & {*c.words}
        ]
        rest = [c for c in differing if c.title not in _TRUTH_TITLES]
        return next(iter([*titled, *rest]), None)

    def _sets(self) -> str | None:
        found = []
        for column in self.free():
            mark = self._mark(column)
            if mark is not None or column.kind == "list":
                found.append((column, mark))
        found = [pair for pair in found if pair[0].title not in _TRUTH_TITLES] or found
        if not found:
            return None
        order = {title: i for i, title in enumerate(_LABEL_TITLES)}
        column, mark = min(found, key=lambda pair: order.get(pair[0].title, len(order)))
        how = f"parted by {mark!r}" if mark else "in lists"
        self.take({"candidates": (column.name,)}, f"several labels in a cell, {how}")
        for other, _ in found:
            if other is not column and other.title not in _TRUTH_TITLES:
                self.notes.append(
                    f"{name_some([other.name])} could hold candidates too: name the right column "
                    "with candidates=."
                )
        return "candidates"

    def _mark(self, column: _Column) -> str | None:
        """Return what parts labels in a column of texts; ``"["`` for lists of Python or JSON."""
        if column.kind != "text" or column.is_picture or column.is_prose or not column.values:
            return None
        some = list(column.values)[:200]
        if all(cells.parse_list(cell) is not None for cell in some):
            return "["
        mark = find_separator(column.values)
        if mark is None or mark == "|":
            return mark
        holding = sum(n for cell, n in column.values.items() if mark in cell)
        return mark if holding >= 0.05 * column.filled else None

    def _people(self) -> str | None:
        """Find columns with the same labels, which agree on rows more often than by chance."""
        free = [
            c
            for c in self.free()
            if ((c.kind == "text" and not c.is_prose) or c.is_whole)
            and c.distinct <= 60
            and c.title not in _TRUTH_TITLES
            and not c.title.startswith("majority")
        ]
        titled = [c for c in free if {*c.words} & _PEOPLE_WORDS or c.title.startswith(_PEOPLE)]
        if len(titled) > 1:
            return self._take_people(titled, "a person by its title")
        labelled = any(c.title in _LABEL_TITLES for c in self.free())
        texts = [c for c in free if c.kind == "text" and c.title not in _LABEL_TITLES]
        for group in sorted(self._groups(texts), key=len, reverse=True):
            agreed, pairs = _agreement(group)
            if len(group) > 2 or not labelled:
                sparse = pairs < _FEW and any(c.filled < len(c.data) for c in group)
                if (0.2 <= agreed < 1 and (pairs >= 5 or sparse)) or (sparse and len(group) > 2):
                    return self._take_people(group, "same labels as the others, mostly agreeing")
        for stem in dict.fromkeys(c.words[0] for c in free if c.is_whole and len(c.words) == 2):
            group = [c for c in free if c.is_whole and c.words[:1] == [stem] and len(c.words) == 2]
            group = [c for c in group if c.words[1].isdigit()]
            if len(group) < 3 or max(c.distinct for c in group) > 20:
                continue
            agreed, pairs = _agreement(group)
            holes = 1 - sum(c.filled for c in group) / (len(group) * len(self.table))
            marked = sum((c.values or {}).get("-1", 0) for c in group) > 0
            if (agreed >= 0.2 and (holes > 0.05 or marked)) or agreed >= 0.4:
                return self._take_people(group, "same numbers as the others, mostly agreeing")
        return None

    def _take_people(self, group: Sequence[_Column], reason: str) -> str:
        order = [name for name in self.columns if name in {c.name for c in group}]
        self.take({"annotators": tuple(order)}, reason)
        return "annotators"

    def _groups(self, columns: Sequence[_Column]) -> list[list[_Column]]:
        """Put columns together whose values are for the most part those of a larger one."""
        groups: list[tuple[set[str], list[_Column]]] = []
        for column in sorted(columns, key=lambda c: -c.distinct):
            values = {*(column.values or ())}
            for known, group in groups:
                if values and len(values & known) >= _MOST * len(values):
                    known |= values
                    group.append(column)
                    break
            else:
                groups.append((values, [column]))
        return [group for known, group in groups if len(group) > 1 and len(known) > 1]

    def _counts(self) -> str | None:
        """Find columns of votes: their sum is one number, or another column."""
        free = [
            c
            for c in self.free()
            if c.is_whole
            and c.start is not None
            and not np.isnan(c.start).any()
            and c.start.min() >= 0
            and not _ID_WORDS & {*c.words}
        ]
        if len(free) < 3 or len(self.table) < 3:
            return None
        numbers = np.stack([c.start for c in free if c.start is not None], axis=1)
        sums = np.concatenate([np.zeros((len(numbers), 1)), numbers.cumsum(axis=1)], axis=1)
        for width in range(len(free) - 1, 1, -1):
            for i in range(len(free) - width + 1):
                total = sums[:, i + width] - sums[:, i]
                block = numbers[:, i : i + width]
                varies = (block.min(axis=0) < block.max(axis=0)).all()
                if block.max() < 2 or not varies or total.min() < 1:
                    continue
                others = [c for c in free if c not in free[i : i + width]]
                whole = [c for c in others if c.start is not None and (c.start == total).all()]
                if whole or (total.min() == total.max() and width > 2):
                    names = tuple(c.name for c in free[i : i + width])
                    how = f"sum up to {name_some([whole[0].name])}" if whole else "one sum"
                    self.take({"counts": names}, f"votes for a label: {how}")
                    return "counts"
        return None

    def _plain(self) -> str | None:
        """Find one label a row, by its title."""
        order = {title: i for i, title in enumerate(_LABEL_TITLES)}
        found = [c for c in self.free() if c.title in order and c.may_be_label]
        found = found or [
            c for c in self.free() if {*c.words} & {*_LABEL_TITLES[:-1]} and c.may_be_label
        ]
        if not found:
            return None
        column = min(found, key=lambda c: order.get(c.title, len(order)))
        self.take({"candidates": (column.name,)}, "labels by its title, one a row")
        return "candidates"

    def find_separator(self, separator: str | None) -> None:
        names = self.found["candidates"]
        if separator is None and len(names) == 1:
            column = self.columns[names[0]]
            text = column.kind == "text" and column.values
            separator = find_separator(column.values or {}) if text else None
        self.found["separator"] = separator or None

    def find_missing(self, layout: str) -> None:
        """Take -1 as no answer where people's answers are numbers and it is frequent."""
        if layout != "annotators" or self.found["missing"]:
            return
        columns = [self.columns[name] for name in self.found["annotators"]]
        marks = sum((c.values or {}).get("-1", 0) for c in columns)
        numbers = all(
            c.is_whole and c.start is not None and np.nanmin(c.start) >= -1 for c in columns
        )
        if numbers and marks > 0.3 * sum(c.filled for c in columns):
            self.found["missing"] = ("-1",)
            self.notes.append("-1 is taken as no answer (missing=).")

    # Everything else.

    def find_others(self, refused: set[str], features: Sequence[str] | None) -> None:
        for name in self._earlier():
            if name not in self.reasons and name not in (features or ()):
                self.aside(name, "the result of an earlier run")
        read = read_labels(self.table, self.roles())
        if "truth" not in refused | {*self.found}:
            self._find_truth(read, features or ())
        if "id" not in refused | {*self.found} and not self.found.get("long"):
            found = [c for c in self.free() if c.name not in (features or ()) and _names_rows(c)]
            if found:
                self.take({"id": (found[0].name,)}, "another name in every row")
        if "image" not in refused | {*self.found}:
            found = [c for c in self.free() if c.name not in (features or ()) and c.is_picture]
            if found:
                self.take({"image": (found[0].name,)}, "names of pictures")
        if "text" not in refused | {*self.found} and features is None:
            prose = tuple(c.name for c in self.free() if c.is_prose)
            self.take({"text": prose}, "prose")
        if features is not None:
            self._take_features(features)
            return
        chosen = []
        for column in self.free():
            reason = self._no_feature(column, read)
            if reason:
                self.aside(column.name, reason)
            else:
                chosen.append(column.name)
                self.reasons[column.name] = _describe(column)
        self.found["features"] = tuple(chosen)

    def _take_features(self, names: Sequence[str]) -> None:
        used = [
            name
            for name in names
            if name in self.reasons and name not in self.found.get("text", ())
        ]
        if used:
            raise TableError(
                f"column {name_some(used[:1])} is no feature: it is {self._role_of(used[0])}."
            )
        for column in self.free():
            if column.name in names:
                self.reasons[column.name] = "given"
            else:
                self.aside(column.name, "not among the features given")
        taken = self.found.get("text", ())
        self.found["features"] = tuple(name for name in names if name not in taken)

    def _role_of(self, name: str) -> str:
        roles = (role for role, value in self.found.items() if name in (value or ()))
        return f"given as {next(roles, 'ignore')}"

    def _find_truth(self, read: Labels, features: Sequence[str]) -> None:
        free = [c for c in self.free() if c.name not in features]
        titled = [
            c for c in free if c.title in _TRUTH_TITLES and c.kind in ("text", "number", "date")
        ]
        names = {*read.class_names.tolist()}
        for column in titled:
            known = sum(n for v, n in (column.values or {}).items() if _known(v, names))
            parted = self._mark(column) is not None
            if parted or known >= 0.5 * column.filled:
                return self.take({"truth": (column.name,)}, "labels of this table under its title")
        for column in free:
            if column.title in _LABEL_TITLES and _is_candidate(column, read, 0.95):
                return self.take({"truth": (column.name,)}, "always among the labels of its row")
        return None

    def _no_feature(self, column: _Column, read: Labels) -> str | None:
        """Say why a column is nothing to learn from; None if it may be."""
        if not column.name:
            return "without a title, as the index of a data frame"
        if column.kind == "empty":
            return "empty"
        if column.kind in ("nested", "list"):
            return "lists or objects; spread them over columns of their own"
        if column.distinct == 1 and column.filled == len(column.data):
            return "the same in all rows"
        if _holds_labels(column, read):
            return "holds labels of this table; if they are the true ones, give truth="
        if self.found.get("counts"):
            if column.is_whole and np.array_equal(column.start, read.counts[:_SAMPLE].sum(axis=1)):
                return "the number of votes"
            if _is_majority(column, read):
                return "follows from the votes; if it is the true label, give truth="
        if column.kind == "vector":
            return None
        if _counts_rows(column, read.first):
            return "counts the rows"
        words = {*column.words}
        hinted = bool(_ID_WORDS & words) or column.title.endswith(("id", "hash"))
        near = column.distinct >= 0.9 * column.filled and column.filled >= _FEW
        if column.kind == "number":
            if column.is_whole and hinted and (near or _HASH_WORDS & words):
                return "an id or a hash"
            whole = pa.types.is_integer(column.data.type) and near
            huge = whole and pc.max(pc.abs_checked(column.data)).as_py() > 2**53
            return "an id or a hash" if huge else None
        if column.kind == "text":
            if column.share(_HASH) >= 0.95 or (hinted and near):
                return "an id or a hash"
            if column.share(_FILE) >= 0.9 and near:
                return "names of files"
            if near and not column.is_prose:
                return "another text in nearly every row"
        return None


def _known(value: str, names: set[str]) -> bool:
    return (
        value in names or (value.endswith(".0") and value[:-2] in names) or f"{value}.0" in names
    )


def _describe(column: _Column) -> str:
    if column.kind == "text":
        return f"{column.distinct} categories"
    kinds = {"number": "numbers", "date": "dates", "vector": "lists of numbers"}
    return kinds.get(column.kind, column.kind)


def _names_rows(column: _Column) -> bool:
    """Tell whether a column names the rows: by its title, or as a code, with no value twice."""
    if column.kind not in ("text", "number") or column.is_picture or column.is_prose:
        return False
    if not column.is_unique or _HASH_WORDS & {*column.words}:
        return False
    if column.kind == "number" and not column.is_whole:
        return False
    hinted = column.title in _ID_TITLES or bool(_ID_WORDS & {*column.words})
    return hinted or column.title.endswith("id") or column.title in _ITEM_WORDS


def _counts_rows(column: _Column, first: NDArray[np.intp]) -> bool:
    """Tell whether a column numbers the samples: whole numbers without a gap, in any order."""
    if not column.is_whole or column.distinct < _FEW:
        return False
    values = column.table.numbers(column.name)
    if values is None or np.isnan(values).any():
        return False
    values = values[first]
    span = values.max() - values.min() + 1
    return bool(len(values) >= _FEW and span == len(values) == len(np.unique(values)))


def _codes(column: _Column, read: Labels) -> NDArray[np.intp]:
    """Return the class of every sample's cell, -1 if empty, -2 if it is no class."""
    place = {name: j for j, name in enumerate(read.class_names.tolist())}
    numbers = {cells.as_number(name): j for name, j in place.items()} | {None: -2}
    coded = column.table.texts(column.name).dictionary_encode()
    lookup = [
        place.get(text, numbers.get(cells.as_number(text), -2))
        for text in coded.dictionary.to_pylist()
    ]
    indices = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return np.array([*lookup, -1])[indices][read.first]


def _holds_labels(column: _Column, read: Labels) -> bool:
    """Tell whether a column holds labels of the rows, such as the true ones.

    Texts do if all are class names, and at least two (of two classes: and agree with the rows).
    Numbers must be among the candidates of their rows more often than by chance.
    """
    if column.values is None or column.kind not in ("text", "number", "date"):
        return False
    if column.distinct > len(read.class_names) + (len(read.class_names) + 4) // 5:
        return False
    codes = _codes(column, read)
    titled = column.title in _TRUTH_TITLES
    strange = np.count_nonzero(codes == -2)
    found = np.unique(codes[codes >= 0])
    if titled:
        return bool(np.count_nonzero(codes >= 0) >= _MOST * np.count_nonzero(codes != -1))
    if strange or len(found) < 2:
        return False
    if column.kind != "number" and (len(found) > 2 or len(codes) < _FEW):
        return True
    return _is_candidate(column, read, _MOST)


def _is_candidate(column: _Column, read: Labels, share: float) -> bool:
    """Tell whether cells are candidates of their own rows, and not of any row as well."""
    if column.values is None or column.kind not in ("text", "number", "date"):
        return False
    codes = _codes(column, read)
    rows = np.flatnonzero(codes >= 0)
    if len(rows) < 3 or (codes == -2).any() or len(np.unique(codes[rows])) < 2:
        return False
    matrix = read.matrix
    own = matrix[rows, codes[rows]].mean()
    shares = np.bincount(codes[rows], minlength=matrix.shape[1]) / len(rows)
    chance = shares @ matrix.mean(axis=0)
    few = len(rows) < _FEW and column.kind == "number"
    return bool(not few and own >= max(share, (1 + chance) / 2))


def _is_majority(column: _Column, read: Labels) -> bool:
    """Tell whether a column is but another name for the label with the most votes."""
    if column.values is None or not 1 < column.distinct <= len(read.class_names):
        return False
    texts = column.table.texts(column.name).to_numpy(zero_copy_only=False)[read.first]
    pairs: dict[str, dict[int, int]] = {}
    for text, code in zip(texts, read.majority.tolist(), strict=True):
        counts = pairs.setdefault(text, {})
        counts[code] = counts.get(code, 0) + 1
    best = [max(counts, key=lambda code: counts[code]) for counts in pairs.values()]
    right = sum(counts[code] for counts, code in zip(pairs.values(), best, strict=True))
    return len({*best}) == len(best) and right >= 0.9 * len(texts)


def _agreement(group: Sequence[_Column]) -> tuple[float, int]:
    """Return Cohen's kappa over pairs of columns, and how many cells were compared."""
    some = group[:: max(1, len(group) // 40)]
    columns = [
        c.table.texts(c.name).slice(0, _SAMPLE).to_numpy(zero_copy_only=False) for c in some
    ]
    same = expected = 0.0
    total = 0
    for one, other in combinations(columns, 2):
        pairs = zip(one, other, strict=True)
        both = [(a, b) for a, b in pairs if not {a, b} & {None, "-1"}]
        if both:
            left, right = zip(*both, strict=True)
            total += len(both)
            same += sum(a == b for a, b in both)
            expected += sum(left.count(v) * right.count(v) for v in {*left}) / len(both)
    if not total or expected >= total:
        return 0.0, total
    return (same - expected) / (total - expected), total
