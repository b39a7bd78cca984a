"""What every column of a table is: labels, people, names, truth, text, features; and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import chain, combinations, groupby, permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from appellate.tables import cells
from appellate.tables.cells import Labels, TableError, coded, name_some, read_labels, together
from appellate.tables.reading import Table

Columns = str | Sequence[str]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_PEOPLE = (
    *_words("annotator worker rater coder judge expert labeler labeller reviewer assessor"),
    *_words("grader scorer voter volunteer radiologist pathologist moderator contributor"),
)
_PEOPLE_WORDS = {*_PEOPLE, *_words("participant prolific user person who crowd turker")}
_ITEM_WORDS = {
    *_words("item task unit question sample image document doc sentence tweet example instance"),
    *_words("object query record row case photo picture clip video audio recording post essay"),
}
_LABEL_TITLES = (
    *_words("candidates candidate candidatelabels candidateset partiallabels partiallabel labels"),
    *_words("label names tags answers answer response annotation class classes category target"),
    *_words("choice vote judgment judgement verdict y"),
)
_LABEL_WORDS = {*_LABEL_TITLES} - {"y"}
_RANK = {title: i for i, title in enumerate(_LABEL_TITLES)}
_TRUTH_TITLES = {
    *_words("truth true ytrue truelabel trueclass groundtruth gold goldlabel goldstandard gt"),
    *_words("actual correct"),
}
_JOINT_WORDS = {*_words("majority consensus final adjudicated aggregated")}
_HASH_WORDS = {"hash", "md", "sha"}  # digits are words of their own
_ID_WORDS = {*_HASH_WORDS, *_words("id ids uid uuid guid key index idx rowid")}
_ID_TITLES = {*_ID_WORDS, *_words("sampleid name file filename path url")}
_ADDED = ("label", "confidence", "outcome")  # to the user's table by a run
_MAYBE = ("runner_up", "runner_up_confidence", "suspicion", "votes", "margin", "evidence")
_OUTCOMES = {"upheld", "overturned", "reviewed", "excluded", "outside the answers", "unanswered"}
_PICTURE = re.compile(r"(?i)\S.*\.(png|jpe?g|gif|webp|bmp|tiff?|svg)(\?.*)?|data:image/.*")
_FILE = re.compile(r"(?i)([\w.~-]*[/\\])+[^/\\]+|[^/\\\s]+\.[a-z][a-z0-9]{1,4}")
_HASH = re.compile(r"(?i)(0x)?[0-9a-f]{16,}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_VECTOR = re.compile(r"\[[-+\d.,eE\s]*\.[-+\d.,eE\s]*\]")
_FEW = 10  # rows; fewer may be numbered, or agree, by chance
_SAMPLE = 2000  # rows on which guesses of people and counts are tried first
_MOST = 0.8
_AGREED = 0.2  # Cohen's kappa of people who look at the same thing


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
        """Print a table of columns, roles and reasons; many alike share a line."""
        lines = []
        for role in (*_LAYOUTS, *_SINGLE, "text", "features", "ignore"):
            value = getattr(self, role)
            names = [value] if isinstance(value, str) else list(value or ())
            for reason, group in groupby(names, lambda name: self.reasons.get(name, "")):
                alike = [cells.printable(name)[:60] for name in group]
                if len(alike) > 12:
                    alike = [f"{alike[0]} ... {alike[-1]} ({len(alike)})"]
                lines += [(name, _SINGULAR.get(role, role), reason) for name in alike]
        widths = [max(len(line[j]) for line in lines) for j in (0, 1)]
        return "\n".join(f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}".rstrip() for a, b, c in lines)


_LAYOUTS = ("candidates", "annotators", "long", "counts")
_SINGLE = ("id", "truth", "image")
_NAMED = (*_LAYOUTS, *_SINGLE, "text", "ignore")
_KINDS = {"number": "numbers", "date": "dates", "vector": "lists of numbers"}
_SINGULAR = {
    "annotators": "annotator",
    "counts": "count",
    "features": "feature",
    "ignore": "set aside",
}


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
    named = {role: columns for role, columns in locals().items() if role in _NAMED}
    named |= {role: str(name) for role, name in named.items() if type(name) is int}  # of pandas
    if table.export is not None and not any(named[role] for role in _LAYOUTS):
        if not table.export.roles:
            raise TableError(
                f"{table.source}: nobody chose a label of a whole item in the labelling tool. "
                "Label some items there, and export them again."
            )
        named |= table.export.roles
    refused = {role for role, columns in named.items() if columns is False}
    given = {
        role: table.find([columns] if role in _SINGLE else columns, role)
        for role, columns in named.items()
        if not (columns is None or isinstance(columns, bool)) and len(columns)
    }
    layouts = [role for role in _LAYOUTS if role in given]
    if len(layouts) > 1:
        raise TableError(
            f"{' and '.join(layouts)}: labels are in one of these ways. Give one of them."
        )
    if len(given.get("long", "ab")) not in (2, 3):
        raise TableError("long: name the columns item, label and, optionally, person.")
    guess = _Guess(table, [missing] if isinstance(missing, str) else missing)
    for role, columns in given.items():
        twice = [name for name in columns if name in guess.reasons]
        if twice:
            raise TableError(
                f"column {name_some(twice[:1])} is given as {guess.role_of(twice[0])} and as "
                f"{role}. A column has one role."
            )
        guess.take(role, columns)
    chosen = None if features is None else table.find(features, "features")
    guess.find_labels(separator, chosen or ())
    guess.find_others(refused, chosen)
    return guess.roles()


class _Column:
    """What a column looks like, by one pass over its cells.

    `kind` is one of empty, number, date, list, vector, nested and text; `values` are its
    distinct cells as texts and how often they occur, None for many floats and for lists;
    `start` are the numbers of its first rows, none if it is no column of numbers.
    """

    def __init__(self, table: Table, name: str) -> None:
        self.table, self.name = table, name
        parted = re.sub(r"(?<=[a-z])(?=[A-Z])|(?=I[dD]$)", " ", name).lower()
        self.words = {*re.findall(r"[a-z]+|\d+", parted)}
        self.title = "".join(letter for letter in parted if letter.isalnum())
        self.data = data = table.data.column(name)
        kind, some, nested = data.type, data.slice(0, _SAMPLE), pa.types.is_nested(data.type)
        self.values: dict[str, int] | None = None
        self.filled, self.distinct = len(data) - data.null_count, len(data)
        many = 0.3 * len(some) + 20
        if not nested and not (
            pa.types.is_floating(kind) and len(some.drop_null().unique()) > many
        ):
            counted = table.texts(name).drop_null().value_counts()
            self.values = dict(zip(*(each.to_pylist() for each in counted.flatten()), strict=True))
            self.filled, self.distinct = sum(self.values.values()), len(self.values)
        numbers = None
        if not self.filled:
            self.kind = "empty"
        elif nested:
            inner = getattr(kind, "value_type", None)
            plain = "list" if inner in cells.TEXTS else "vector"
            self.kind = "nested" if inner is None else plain
        elif pa.types.is_temporal(kind):
            self.kind = "date"
        else:
            few = cells.numbers(some, table.style(name)) if pa.types.is_primitive(kind) else None
            numbers = table.numbers(name) if few is None else few
            is_date = numbers is None and cells.date_format(data) is not None
            self.kind = "date" if is_date else "text" if numbers is None else "number"
        self.start = np.empty(0) if numbers is None else numbers[:_SAMPLE]
        filled = self.start[~np.isnan(self.start)]
        self.is_whole = bool(len(filled) and np.all(filled == np.trunc(filled)))
        self.is_prose, most = False, self.distinct > 0.5 * self.filled
        if self.kind == "text" and (most or self.distinct > 20):
            lengths = [(len(cell.split()), len(cell)) for cell in list(self.values or ())[:5000]]
            words, letters = np.mean(lengths, axis=0)
            is_long = bool(words >= (4 if most else 6) or (letters >= 40 and words >= 3))
            self.is_prose = is_long and not self.mostly(_VECTOR) and not self._recurs()
        self.is_code = self.is_whole or (self.kind == "text" and not self.is_prose)

    def mostly(self, pattern: re.Pattern[str]) -> bool:
        """Tell whether texts have a form."""
        some = list(self.values or ())[:1000] if self.kind == "text" else []
        return bool(some) and sum(map(bool, map(pattern.fullmatch, some))) >= 0.9 * len(some)

    def _recurs(self) -> bool:
        """Tell whether texts are made of few labels that come again and again, as no prose is."""
        some = list(self.values or ())[:1000]
        mark = cells.find_separator(dict.fromkeys(some, 1))
        sets = [cells.parse_list(cell) or (mark and cell.split(mark)) or [cell] for cell in some]
        parts = Counter(part.strip() for labels in sets for part in labels)
        return parts.total() >= 5 * len(parts)

    @property
    def names_by_title(self) -> bool:
        """Tell whether the title is one of names or ids."""
        named = (_ID_TITLES | _ITEM_WORDS) & {self.title, *self.words}
        return bool(named) or self.title.endswith("id")

    @property
    def is_numbered(self) -> bool:
        """Tell whether the title has a number or a letter of its own, as ``label_2``."""
        return any(len(word) == 1 or word.isdigit() for word in self.words)

    @property
    def is_label(self) -> bool:
        """Tell whether cells recur as labels do, each of them one."""
        if self.kind == "date":
            return 1 < self.distinct <= max(2, 0.2 * self.filled)
        return self.is_code and self.distinct <= max(2, min(1000, 0.5 * self.filled))

    @property
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
    def likely_separator(self) -> str | None:
        """What may part labels in a cell, though it may be a part of them too."""
        known = self.kind == "text" and not self.is_prose
        return cells.find_separator(self.values or {}, cells.LIKELY) if known else None


class _Guess:
    """Columns find their roles one after the other; what is taken is not asked again."""

    def __init__(self, table: Table, missing: Iterable[Any]) -> None:
        self.table = table
        self.look = cache(lambda name: _Column(table, name))
        self.found: dict[str, list[str]] = {role: [] for role in (*_NAMED, "features")}
        self.reasons: dict[str, str] = {}
        self.separator: str | None = None
        self.missing = tuple(map(cells.as_text, missing))
        self.notes: list[str] = []

    def roles(self) -> Roles:
        columns: dict[str, Any] = {role: tuple(names) for role, names in self.found.items()}
        columns |= {role: next(iter(columns[role]), None) for role in _SINGLE}
        columns["ignore"] = {name: self.reasons[name] for name in self.found["ignore"]}
        columns |= {"separator": self.separator, "missing": self.missing, "reasons": self.reasons}
        return Roles(**columns, notes=tuple(self.notes))

    def take(self, role: str, names: Sequence[str], reason: str = "given") -> None:
        self.reasons |= dict.fromkeys(names, reason)
        self.found[role] += names

    def role_of(self, name: str) -> str:
        return next(role for role, names in self.found.items() if name in names)

    def free(self) -> list[_Column]:
        return [self.look(name) for name in self.table.names if name not in self.reasons]

    def find_labels(self, separator: str | None, features: Sequence[str]) -> None:
        """Find labels if none are given, what parts them, and whether -1 is no answer.

        What an earlier run added to the table is set aside before, if all of it is there.
        """
        added = {}
        for title in self.table.names:
            stem = re.sub(r"^appeal_(\D+)\d*$", r"\1", title)
            if stem in (*_ADDED, *_MAYBE) and title not in (*self.reasons, *features):
                added[title] = stem
        outcomes = [{*(self.look(t).values or ("",))} for t in added if added[t] == "outcome"]
        if {*_ADDED} <= {*added.values()} and all(found <= _OUTCOMES for found in outcomes):
            self.take("ignore", list(added), "the result of an earlier run")
        guesses = (self._long, self._sets, self._people, self._counts, self._plain)
        if not (any(self.found[role] for role in _LAYOUTS) or any(guess() for guess in guesses)):
            parted = {c.name: c.likely_separator for c in self.free()}
            hints = [
                f" If cells of {name_some([name])} hold several labels each, give candidates= "
                f"and separator={mark!r}."
                for name, mark in parted.items()
                if mark
            ]
            raise TableError(
                f"{self.table.source}: no column looks like labels. Name it with candidates=, or "
                "annotators=, long= or counts= for answers of people. The columns: "
                f"{name_some(self.table.names, 12)}.{''.join(hints[:1])}"
            )
        if separator is None and len(self.found["candidates"]) == 1:
            column = self.look(self.found["candidates"][0])
            separator = (
                cells.find_separator(column.values or {}) if column.kind == "text" else None
            )
            if separator is None and column.likely_separator:
                self.notes.append(
                    f"if {column.likely_separator!r} parts several labels in the cells of "
                    f"{name_some([column.name])}, say so with separator=."
                )
        self.separator = separator or None
        people = [self.look(name) for name in self.found["annotators"]]
        marks = sum((c.values or {}).get("-1", 0) for c in people)
        often = not self.missing and marks > 0.3 * sum(c.filled for c in people)
        if often and all(c.is_whole and np.nanmin(c.start) >= -1 for c in people):
            self.missing = ("-1",)
            self.notes.append("-1 is taken as no answer (missing=).")

    def _long(self) -> bool:
        """Find item, label and person: pairs of the first and last come once, items again.

        Titles tell item from person. One of the two will do in a table of three columns, and a
        person's where items are texts; of three columns of texts no title needs to be known. Then
        answers to an item must agree more often than any two answers do.
        """
        free = [c for c in self.free() if c.is_code]
        keys = [c for c in free if c.filled == len(c.data) and 1 < c.distinct <= 0.7 * c.filled]
        people = [c for c in keys if _PEOPLE_WORDS & c.words]
        items = [c for c in keys if c not in people and (_ITEM_WORDS | _ID_WORDS) & c.words]
        others = [c for c in keys if c not in (*people, *items)]
        texts, three = [c for c in others if c.kind == "text"], len(self.table.names) == 3
        pairs = [(i, p) for p in people for i in items]
        pairs += [(i, p) for i, p in permutations(items, 2) if not people]
        titled = len(pairs)
        pairs += [(i, p) for p in people for i in (others if three else texts)]
        if three:
            pairs += [(i, p) for i in items for p in others]
            pairs += [(i, p) for i, p in permutations(texts, 2) if not people and not items]
        for k, (item, person) in enumerate(pairs):
            if person not in people and item.distinct <= person.distinct:
                continue
            if self._pairs(item, person) < 0.95 * len(self.table):
                continue
            fitting = [c for c in free if c not in (item, person) and c.is_label]
            fitting = [c for c in fitting if c.distinct < max(item.distinct, 3)]
            fitting = [c for c in fitting if self._pairs(item, c) > item.distinct]
            fitting = [c for c in fitting if self._pairs(person, c) > person.distinct]
            fitting = [c for c in fitting if c.title not in _TRUTH_TITLES]
            fitting = [c for c in fitting if k < titled or self._agree(item, c)]
            fitting.sort(key=lambda c: not self._agree(item, c))
            fitting.sort(key=lambda c: not _LABEL_WORDS & {c.title, *c.words})
            if fitting:
                self.take("long", [item.name, fitting[0].name, person.name])
                self.reasons[item.name] = "item: comes again, once a person"
                self.reasons[fitting[0].name] = "label: differs within an item"
                self.reasons[person.name] = "person: gives one answer an item"
                return True
        return False

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

    def _sets(self) -> bool:
        found = [c for c in self.free() if c.separator or c.kind == "list"]
        found.sort(key=lambda c: (c.title in _TRUTH_TITLES, _RANK.get(c.title, 99)))
        if not found:
            return False
        mark = found[0].separator
        how = f"parted by {mark!r}" if mark and mark != "[" else "in lists"
        self.take("candidates", [found[0].name], f"several labels in a cell, {how}")
        self.notes += [
            f"{name_some([c.name])} could hold candidates too: name the right column with "
            "candidates=."
            for c in found[1:]
            if c.title not in _TRUTH_TITLES
        ]
        return True

    def _people(self) -> bool:
        """Find columns with the same labels, which agree on rows more often than by chance."""
        free = [c for c in self.free() if c.is_code and not _JOINT_WORDS & c.words]
        free = [c for c in free if c.distinct <= 60 and c.title not in _TRUTH_TITLES]
        titled = [c for c in free if c.words & _PEOPLE_WORDS or c.title.startswith(_PEOPLE)]
        values = [{*(c.values or ())} for c in titled]
        shared = {value for value, n in Counter(chain(*values)).items() if n > 1}
        linked: set[str] = set()  # how sure people were is no answer: no label links it to them
        for own in sorted(values, key=len, reverse=True):
            linked |= own if not linked or own & linked else set()
        alike = all(own <= linked and len(own & shared) >= len(own) / 2 for own in values)
        if len(titled) > 1 and alike:
            self.take("annotators", [c.name for c in titled], "a person by its title")
            return True
        free = [c for c in free if not _LABEL_WORDS & {c.title, *c.words} or c.is_numbered]
        labelled = any(c.title in _LABEL_TITLES for c in self.free())
        for group in _groups(free):
            agreed, compared, holes = _agreement(group)
            numbers = group[0].is_whole
            least = 0.4 if numbers and holes < 0.05 else 0.2
            sure = compared >= 5 and least <= agreed < 1
            mixed = len({bool(c.likely_separator) for c in group}) > 1  # 'a/b' beside 'a'
            most = 2 if numbers or labelled or mixed else 1
            if len(group) > most and (sure or holes > 0.9):
                names = sorted((c.name for c in group), key=self.table.names.index)
                self.take("annotators", names, "same labels as the others, mostly agreeing")
                return True
        return False

    def _counts(self) -> bool:
        """Find columns of votes: their sum is another column, or varies far less than they do."""
        free = [c for c in self.free() if c.is_whole and not _ID_WORDS & c.words]
        free = [c for c in free if 0 <= c.start.min() < c.start.max()]  # not where one is NaN
        if len(free) < 3 or len(self.table) < 3:
            return False
        numbers = np.stack([c.start for c in free], axis=1)
        sums = np.concatenate([np.zeros((len(numbers), 1)), numbers.cumsum(axis=1)], axis=1)
        spread = np.concatenate([[0], numbers.var(axis=0).cumsum()])
        found = []
        for i, k in combinations(range(len(free) + 1), 2):
            total = sums[:, k] - sums[:, i]
            if k - i < 2 or numbers[:, i:k].max() < 2 or total.min() < 1:
                continue
            whole = [c.name for c in free[:i] + free[k:] if np.array_equal(c.start, total)]
            varies = -1.0 if whole else float(total.var() / (spread[k] - spread[i]))
            if whole or (k - i > 2 and varies <= 0.05):
                how = f"sum up to {name_some(whole)}" if whole else "their sum hardly varies"
                found.append((varies, i - k, i, how))
        if found:
            _, width, i, how = min(found)
            names = [c.name for c in free[i : i - width]]
            self.take("counts", names, f"votes for a label: {how}")
        return bool(found)

    def _plain(self) -> bool:
        """Find one label a row, by its title."""
        found = [c for c in self.free() if _LABEL_WORDS & {c.title, *c.words} and c.is_label]
        if found:
            first = min(found, key=lambda c: _RANK.get(c.title, 99))
            self.take("candidates", [first.name], "labels by its title, one a row")
        return bool(found)

    def find_others(self, refused: set[str], features: Sequence[str] | None) -> None:
        """Find names, truth, pictures and prose, and features among the rest."""
        read = read_labels(self.table, self.roles())
        tests: dict[str, tuple[Callable[[_Column], bool], str]] = {
            "truth": (lambda column: _is_truth(column, read), "labels of this table"),
            "id": (_names_rows, "another name in every row"),
            "image": (lambda column: column.mostly(_PICTURE), "names of pictures"),
            "text": (lambda column: column.is_prose, "prose"),
        }
        for role, (test, why) in tests.items():
            if role in refused or self.found[role] or (role == "id" and self.found["long"]):
                continue
            found = [c.name for c in self.free() if c.name not in (features or ()) and test(c)]
            if role == "id":
                found.sort(key=lambda name: not self.look(name).names_by_title)
            if found and (role != "text" or features is None):
                self.take(role, found[:1] if role in _SINGLE else found, why)
        if features is not None:
            for name in features:
                if name in self.reasons and name not in self.found["text"]:
                    raise TableError(
                        f"column {name_some([name])} is no feature: it is given as "
                        f"{self.role_of(name)}."
                    )
            self.take("features", [name for name in features if name not in self.found["text"]])
            self.reasons |= dict.fromkeys(features, "given")
            self.take("ignore", [c.name for c in self.free()], "not among the features given")
            return
        for column in self.free():
            reason = self._no_feature(column, read)
            kind = _KINDS.get(column.kind, f"{column.distinct} categories")
            self.take("ignore" if reason else "features", [column.name], reason or kind)

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
        if column.distinct <= 1.2 * len(read.class_names) + 1:
            known, classes, own, chance = _match(column, read)
            # Numbers, and words of two classes, may be class names by chance: they must fit.
            sure = column.kind != "number" and (classes > 2 or read.n_rows < _FEW)
            fits = read.n_rows >= _FEW and own >= max(_MOST, (1 + chance) / 2)
            truth = column.title in _TRUTH_TITLES and known >= _MOST
            if truth or (known == 1 and classes > 1 and (sure or fits)):
                return "holds labels of this table; if they are the true ones, give truth="
        if self.found["counts"]:
            if np.array_equal(column.start, read.counts[:_SAMPLE].sum(axis=1)):
                return "the number of votes"
            if _is_majority(column, read):
                return "follows from the votes; if it is the true label, give truth="
        values = self.table.numbers(column.name) if column.is_whole else None
        if values is not None and read.n_rows >= _FEW:
            values = values[read.first]  # whole numbers without a gap, in any order; none is NaN
            if values.max() - values.min() + 1 == len(values) == len(np.unique(values)):
                return "counts the rows"
        near = column.distinct >= 0.9 * column.filled and column.filled >= _FEW
        hinted = bool(_ID_WORDS & column.words) or column.title.endswith(("id", "hash"))
        id_like = near or bool(_HASH_WORDS & column.words)
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
                return "names of files" if files else "another text in nearly every row"
        return None


def _names_rows(column: _Column) -> bool:
    """Tell whether a column names the rows: no value twice, and texts, or a title that says so."""
    unique = column.distinct == column.filled == len(column.data)
    if not column.is_code or not unique or _HASH_WORDS & column.words:
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


def _is_truth(column: _Column, read: Labels) -> bool:
    """Tell whether a column holds the true labels: its title says so, and its cells fit."""
    if column.title in _TRUTH_TITLES:
        return column.separator is not None or _match(column, read)[0] >= 0.5
    if column.title not in _LABEL_TITLES or read.n_rows < 3:
        return False
    known, classes, own, chance = _match(column, read)
    return known == 1 and classes > 1 and own >= max(0.95, (1 + chance) / 2)


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
    """Put columns together that could be people, the largest group first.

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
