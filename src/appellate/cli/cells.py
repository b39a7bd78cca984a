"""Cells of text tables: which are empty, which are numbers, which a spreadsheet would run."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from typing import Any

#: Texts that mean an empty cell of a feature, in small letters; a label may be called so.
EMPTY = frozenset({"", "na", "n/a", "nan", "null", "none", "<na>", "#n/a"})

_STARTS = "=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20"  # the last four are full-width = + - @
_FORMULA = re.compile(f"'*[{_STARTS}]")
_ESCAPED = re.compile(f"'+[{_STARTS}]")
_NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?")


def is_empty(cell: Any) -> bool:
    """Tell whether a cell of a feature holds nothing: None, NaN, or a text such as ``NA``."""
    if isinstance(cell, str):
        return cell.strip().lower() in EMPTY
    return cell is None or cell != cell


def as_label(cell: Any) -> str | None:
    """Return a label without the spaces around it; None if the cell is blank, None or NaN.

    Examples
    --------
    >>> [as_label(cell) for cell in [" cat ", "none", "NA", "  ", None, 3.0]]
    ['cat', 'none', 'NA', None, None, '3']
    """
    return as_text(cell).strip() or None


def neutralize(cell: str) -> str:
    r"""Put an apostrophe before a text that a spreadsheet would take for a formula.

    Texts that start with ``= + - @``, tab or a line break get one; numbers such as ``-1.5`` or
    ``-1,5`` do not. A text that already starts with apostrophes followed by one of these gets
    one more, so that `restore` undoes it without loss.

    Examples
    --------
    >>> [neutralize(cell) for cell in ["=cmd()", "-1.5", "-1,5", "cat", "'=x"]]
    ["'=cmd()", '-1.5', '-1,5', 'cat', "''=x"]
    """
    if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell


def restore(cell: str) -> str:
    """Undo `neutralize`.

    Examples
    --------
    >>> [restore(cell) for cell in ["'=cmd()", "-1.5", "'tis", "''=x"]]
    ['=cmd()', '-1.5', "'tis", "'=x"]
    """
    return cell[1:] if _ESCAPED.match(cell) else cell


def match(text: str, known: Container[str]) -> str:
    """Return the known text that a text stands for, with or without the apostrophe of a formula.

    Examples
    --------
    >>> match("'=x", {"=x"}), match("'=x", {"=x", "'=x"}), match("=x", {"'=x"}), match("y", {"x"})
    ('=x', "'=x", "'=x", 'y')
    """
    spellings = (text, restore(text), neutralize(text))
    return next((each for each in spellings if each in known), text)


def as_text(cell: Any, separator: str = "|") -> str:
    """Write any cell as a text: nothing for None, labels of a list joined."""
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, float):
        return repr(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
    if isinstance(cell, (list, tuple, set)):
        return separator.join(as_text(each) for each in cell)
    return str(cell)


def safe_texts(cells: Iterable[Any], separator: str = "|") -> list[str]:
    """Write a column for a CSV file: texts neutralised, numbers as they are."""
    return [
        neutralize(cell)
        if isinstance(cell, str)
        else as_text(cell)
        if isinstance(cell, (int, float))
        else neutralize(as_text(cell, separator))
        for cell in cells
    ]
