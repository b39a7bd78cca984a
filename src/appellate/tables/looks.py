"""What a column of a table looks like: its kind, its distinct cells, what its title says."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from appellate.tables import cells, titles
from appellate.tables.reading import Table

PICTURE = re.compile(r"(?i)\S.*\.(png|jpe?g|gif|webp|bmp|tiff?|svg)(\?.*)?|data:image/.*")
FILE_NAME = re.compile(r"(?i)([\w.~-]*[/\\])+[^/\\]+|[^/\\\s]+\.[a-z][a-z0-9]{1,4}")
HASH = re.compile(r"(?i)(0x)?[0-9a-f]{16,}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
VECTOR = re.compile(r"\[[-+\d.,eE\s]*\.[-+\d.,eE\s]*\]")
SAMPLED = 2000  # rows on which guesses of people and counts are tried first
_TWICE = 0.1  # share of cells that name a label twice, from which on they are answers


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


class ColumnLook:
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
        fractions = None if nested else _many_fractions(table, name, data.slice(0, SAMPLED))
        if fractions is not None:
            self.filled = np.count_nonzero(~np.isnan(fractions))
        elif not nested:
            counted = table.texts(name).drop_null().value_counts()
            self.values = dict(zip(*(each.to_pylist() for each in counted.flatten()), strict=True))
            self.filled, self.distinct = sum(self.values.values()), len(self.values)
        self.kind, numbers = self._find_kind(fractions)
        self.start = np.empty(0) if numbers is None else numbers[:SAMPLED]
        filled = np.empty(0) if numbers is None else numbers[~np.isnan(numbers)][:SAMPLED]
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
        style, some = self.table.style(self.name), data.slice(0, SAMPLED)
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
        return is_long and not self.mostly(VECTOR) and not self._recurs()

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
        if self.kind != "text" or self.is_prose or self.mostly(PICTURE) or not self.values:
            return None
        lists = [cells.parse_list(cell) for cell in list(self.values)[:200]]
        if None not in lists:
            parts = {part for found in lists for part in found or ()}
            return None if self.mostly(VECTOR) and len(parts) > len(lists) else "["
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
