"""Spellings of labels: numbers written in two ways, lists in a cell, letters of two sizes."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")
_PARTNERS = {"[": "]", "{": "}", "(": ")"}


def as_decimal(label: str) -> Decimal | None:
    """Return the exact number that a label is, if it is one."""
    return Decimal(label) if _NUMBER.fullmatch(label) and label.isascii() else None


def unify_numbers(labels: Iterable[str]) -> dict[str, str]:
    """Return one spelling for all labels if all are numbers and two are the same number.

    Whole numbers lose their ``.0``, others get the shortest spelling.

    Examples
    --------
    >>> unify_numbers(["2", "2.0", "3.0", "0.50", ".5"])
    {'2': '2', '2.0': '2', '3.0': '3', '0.50': '.5', '.5': '.5'}
    >>> unify_numbers(["2", "3.0"]), unify_numbers(["2", "2.0", "cat"])
    ({}, {})
    """
    numbers: dict[str, Decimal] = {}
    for label in dict.fromkeys(labels):
        number = as_decimal(label)
        if number is None:
            return {}
        numbers[label] = number
    if len({*numbers.values()}) == len(numbers):
        return {}
    short: dict[Decimal, str] = {}
    for label in sorted(numbers, key=len):
        short.setdefault(numbers[label], label)
    return {label: _plain(number, short[number]) for label, number in numbers.items()}


def _plain(number: Decimal, short: str) -> str:
    return str(int(number)) if abs(number) < 10**15 and number == int(number) else short


def say_numbers(spellings: dict[str, str]) -> list[str]:
    """Say which spellings `unify_numbers` made one."""
    changed = [f"{label!r} as {name!r}" for label, name in spellings.items() if label != name]
    if not changed:
        return []
    rest = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
    return [f"labels that are the same number are read as one: {', '.join(changed[:3])}{rest}."]


def say_cases(names: Iterable[str]) -> list[str]:
    """Say which labels differ in upper and lower case alone."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.casefold(), []).append(name)
    alike = [" and ".join(map(repr, group)) for group in groups.values() if len(group) > 1]
    if not alike:
        return []
    return [
        f"labels that differ in upper and lower case alone: {', '.join(alike[:3])}"
        f"{f' and {len(alike) - 3} more' if len(alike) > 3 else ''}. They count as different; if "
        "they are not, write them alike."
    ]


def read_lists(cells: Sequence[str]) -> list[list[str]] | None:
    """Read cells such as ``['cat', 'dog']`` of Python or JSON; None if they are no lists.

    Raises
    ------
    ValueError
        If all filled cells look like lists, but one cannot be read.

    Examples
    --------
    >>> read_lists(["['cat', 'dog']", "{2.0, 3}", "", "[]"])
    [['cat', 'dog'], ['2', '3'], [], []]
    >>> read_lists(["cat|dog", "[cat]"])
    """
    distinct = {cell: cell.strip() for cell in cells}
    filled = [text for text in distinct.values() if text]
    if not filled or not all(_PARTNERS.get(text[0]) == text[-1] for text in filled):
        return None
    read = {cell: _parse(text) if text else [] for cell, text in distinct.items()}
    wrong = next((i for i, cell in enumerate(cells) if read[cell] is None), None)
    if wrong is None:
        return [read[cell] or [] for cell in cells]
    if all(text[0] == "(" for text in filled) and not any(map(bool, read.values())):
        return None  # names in brackets
    raise ValueError(
        f"cells look like Python or JSON lists, but row {wrong} cannot be read: "
        f"{cells[wrong][:40]!r}. Write its labels as in \"['cat', 'dog']\", or as 'cat|dog'."
    )


def _parse(text: str) -> list[str] | None:
    """Return the labels of a list; None if it is none, or of other things."""
    try:
        labels = json.loads(text)
    except (ValueError, RecursionError):
        try:
            labels = ast.literal_eval(text)
            if _count_strings(text) != sum(isinstance(label, str) for label in labels):
                return None  # as numpy prints it, without commas: Python glues the words
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            return None
    kinds = (list, tuple, set)
    if not isinstance(labels, kinds) or not all(type(e) in (str, int, float) for e in labels):
        return None
    ordered: list[Any] = sorted(labels, key=str) if isinstance(labels, set) else list(labels)
    return [_name(label) for label in ordered]


def _name(label: Any) -> str:
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def _count_strings(text: str) -> int:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(token.type == tokenize.STRING for token in tokens)
