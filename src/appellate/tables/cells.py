"""What a cell is: empty, a number, a label, a date, a formula. The only definitions of these.

A table is columns of Arrow. Functions on one cell and on a whole column are side by side here,
so that a file and a data frame, Python and the command line mean the same.
"""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from appellate._text import printable as printable  # the one door for tables

#: Words that stand for no number in a column of numbers; a label may be called so.
NO_NUMBER = frozenset({"na", "n/a", "nan", "null", "none", "<na>", "#n/a"})

_STARTS = "=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20"  # the last four are full-width = + - @
_FORMULA = re.compile(f"'*[{_STARTS}]")
_EITHER = re.compile(r"'*[+-]?([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][+-]?[0-9]+)?")
_POINT = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_COMMA = r"[+-]?[0-9]+(,[0-9]+)?([eE][+-]?[0-9]+)?"
_INFINITE = r"(?i)[+-]?inf(inity)?"
_NUMBER = re.compile(_POINT)
_PARTNERS = {"[": "]", "{": "}", "(": ")"}
_DATES = tuple(
    f"{day}{clock}"
    for day in ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y")
    for clock in ("", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S")
)
_DATE = r"^[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}([ T][0-9]{1,2}:.*)?$"


class TableError(ValueError):
    """A table that cannot be read or understood: what is wrong, where, and what to do."""


def name_some(names: Iterable[Any], most: int = 5) -> str:
    """Name the first few, each cut to a readable length and safe to print.

    Examples
    --------
    >>> print(name_some(["a", "b", "c"], 2))
    'a', 'b' and 1 more
    """
    shown = [name if len(name) <= 40 else name[:39] + "…" for name in map(str, names)]
    rest = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(f"'{printable(name)}'" for name in shown[:most]) + rest


def name_rows(rows: Sequence[int] | NDArray[Any], most: int = 5) -> str:
    """Name row numbers for a message; they count from 0, without the header."""
    shown = ", ".join(str(int(row)) for row in rows[:most])
    rest = f" and {len(rows) - most} more" if len(rows) > most else ""
    return f"row{'' if len(rows) == 1 else 's'} {shown}{rest}"


def neutralize(cell: str) -> str:
    r"""Put an apostrophe before a text that a spreadsheet would take for a formula.

    Texts that start with ``= + - @``, tab or a line break get one; numbers such as ``-1.5`` or
    ``-1,5`` do not. A text that already starts with apostrophes followed by one of these gets
    one more, so that `restore` undoes it without loss.

    Parameters
    ----------
    cell : str
        A cell of a table.

    Returns
    -------
    str

    Examples
    --------
    >>> [neutralize(cell) for cell in ["=cmd()", "-1.5", "-1,5", "cat", "'=x"]]
    ["'=cmd()", '-1.5', '-1,5', 'cat', "''=x"]
    """
    return f"'{cell}" if _FORMULA.match(cell) and not _EITHER.fullmatch(cell) else cell


def restore(cell: str) -> str:
    """Undo `neutralize`.

    Examples
    --------
    >>> [restore(cell) for cell in ["'=cmd()", "-1.5", "'tis", "''=x", "'-1.5"]]
    ['=cmd()', '-1.5', "'tis", "'=x", "'-1.5"]
    """
    escaped = cell.startswith("'") and _FORMULA.match(cell) and not _EITHER.fullmatch(cell)
    return cell[1:] if escaped else cell


def as_text(value: Any, separator: str = "|") -> str:
    """Write any value as a text: nothing for None, labels of a list joined, no needless ``.0``.

    Examples
    --------
    >>> from datetime import datetime
    >>> [as_text(value) for value in [None, 3.0, 0.5, "a ", ["b", 2.0], datetime(2024, 1, 5)]]
    ['', '3', '0.5', 'a ', 'b|2', '2024-01-05']
    """
    if isinstance(value, str):
        return value
    if value is None or value != value:
        return ""
    if isinstance(value, float):
        return repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, datetime):
        text = value.isoformat(" ")
        return text.removesuffix(" 00:00:00")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (list, tuple, set)):
        return separator.join(as_text(each) for each in value)
    return str(value)


def as_label(value: Any) -> str | None:
    """Return a label, its letters composed (NFC) and without spaces around it; None if empty.

    Examples
    --------
    >>> [as_label(value) for value in [" cat ", "none", "NA", "  ", None, 3.0]]
    ['cat', 'none', 'NA', None, None, '3']
    """
    return unicodedata.normalize("NFC", as_text(value)).strip() or None


def as_number(text: str, decimal: str = ".") -> float | None:
    """Return the number that a text is, NaN for words such as ``NA``; None if it is none.

    Examples
    --------
    >>> [as_number(text) for text in ["-1.5", "1e3", "0_1", "1,5", "inf", "NA"]]
    [-1.5, 1000.0, None, None, inf, nan]
    >>> as_number("1,5", decimal=",")
    1.5
    """
    text = text.strip()
    if not text or text.lower() in NO_NUMBER:
        return float("nan")
    if decimal == "," and re.fullmatch(_COMMA, text):
        text = text.replace(",", ".")
    return float(text) if _NUMBER.fullmatch(text) or re.fullmatch(_INFINITE, text) else None


def one_spelling(labels: Iterable[str]) -> dict[str, str]:
    """Return one spelling for labels that are the same number; nothing if none are.

    Examples
    --------
    >>> one_spelling(["2", "2.0", "3.0", "0.50", ".5", "cat"])
    {'2': '2', '2.0': '2', '0.50': '.5', '.5': '.5'}
    """
    groups: dict[Decimal, list[str]] = {}
    for label in dict.fromkeys(labels):
        if _NUMBER.fullmatch(label) and len(label) < 400:
            groups.setdefault(Decimal(label), []).append(label)
    spelled: dict[str, str] = {}
    for number, group in groups.items():
        if len(group) > 1:
            whole = abs(number) < 10**15 and number == int(number)
            name = str(int(number)) if whole else min(group, key=len)
            spelled |= dict.fromkeys(group, name)
    return spelled


def in_order(labels: Iterable[str]) -> list[str]:
    """Sort labels, as numbers if all are numbers."""
    names = sorted({*labels})
    return sorted(names, key=Decimal) if all(map(_NUMBER.fullmatch, names)) else names


def split(text: str, separator: str | None) -> tuple[str, ...]:
    """Return the distinct labels in a cell."""
    parts = text.split(separator) if separator else (text,)
    return tuple(dict.fromkeys(label for part in parts if (label := as_label(part))))


def parse_list(text: str) -> tuple[str, ...] | None:
    """Read a cell such as ``['cat', 'dog']`` of Python or JSON; None if it is no list of labels.

    Examples
    --------
    >>> parse_list("['cat', 'dog']"), parse_list("{2.0, 3}"), parse_list("[]"), parse_list("cat")
    (('cat', 'dog'), ('2', '3'), (), None)
    """
    text = text.strip()
    if not text or _PARTNERS.get(text[0]) != text[-1]:
        return None
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        try:
            values = ast.literal_eval(text)
            tokens = tokenize.generate_tokens(io.StringIO(text).readline)
            strings = sum(token.type == tokenize.STRING for token in tokens)
            if strings != sum(isinstance(value, str) for value in values):
                return None  # as numpy prints it, without commas: Python glues the words
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            return None
    if not isinstance(values, (list, tuple, set)):
        return None
    if not all(type(value) in (str, int, float) for value in values):
        return None
    if isinstance(values, set):
        values = sorted(values, key=str)
    return tuple(dict.fromkeys(label for value in values if (label := as_label(value))))


def texts(column: Any) -> Any:
    """Return a column as an Arrow array of texts: composed, stripped, null where empty."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return texts(column.cast(kind.value_type))
    if pa.types.is_boolean(kind):
        column = pc.if_else(column, "True", "False")
    elif pa.types.is_floating(kind):
        return _float_texts(column)
    elif pa.types.is_timestamp(kind):
        column = _moment_texts(column)
    elif _is_text(kind) or pa.types.is_integer(kind) or pa.types.is_date(kind):
        column = column.cast(pa.string())
    else:
        column = pa.array([as_text(value) for value in column.to_pylist()], pa.string())
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    trimmed = pc.utf8_trim_whitespace(pc.utf8_normalize(whole, form="NFC"))
    return pc.if_else(pc.equal(trimmed, ""), None, trimmed)


def _is_text(kind: Any) -> bool:
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(test(kind) for test in tests)


def _float_texts(column: Any) -> Any:
    values = column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else None
    values = column.to_numpy() if values is None else values
    distinct, codes = np.unique(np.asarray(values, dtype=float), return_inverse=True)
    names = pa.array([as_text(value) or None for value in distinct.tolist()], pa.string())
    return names.take(pa.array(codes))


def _moment_texts(column: Any) -> Any:
    days = column.cast(pa.date32())
    if pc.all(pc.equal(days.cast(column.type), column)).as_py() in (True, None):
        return days.cast(pa.string())
    try:
        return column.cast(pa.timestamp("s", column.type.tz)).cast(pa.string())
    except pa.ArrowInvalid:
        return column.cast(pa.string())


def numbers(
    column: Any, decimal: str = ".", missing: Sequence[str] = ()
) -> NDArray[np.float64] | None:
    """Return a column as numbers, NaN where empty; None if it is none of numbers.

    Parameters
    ----------
    column : Arrow array
        Numbers, true and false, or texts.
    decimal : str, default="."
        ``","`` where texts may have decimal commas.
    missing : sequence of str, default=()
        Texts that stand for an empty cell.

    Examples
    --------
    >>> import pyarrow as pa
    >>> numbers(pa.array(["1.5", "", "NA", "-2"]))
    array([ 1.5,  nan,  nan, -2. ])
    >>> numbers(pa.array(["0_1", "2_3"]))
    >>> numbers(pa.array(["1,5", "2"]), decimal=",")
    array([1.5, 2. ])
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        return numbers(column.cast(kind.value_type), decimal, missing)
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        column = column.cast(pa.float64(), safe=False)
    elif _is_text(kind):
        column = _parse_numbers(texts(column), decimal, missing)
        if column is None:
            return None
    elif not pa.types.is_boolean(kind):
        return None
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return np.array(whole.to_numpy(zero_copy_only=False), dtype=np.float64)


def _parse_numbers(column: Any, decimal: str, missing: Sequence[str]) -> Any:
    lower = pc.utf8_lower(column)
    blank = pc.is_in(lower, pa.array([*NO_NUMBER, *(mark.lower() for mark in missing)]))
    column = pc.if_else(blank, None, column)
    if decimal == "," and pc.all(pc.match_substring_regex(column, f"^{_COMMA}$")).as_py():
        column = pc.replace_substring(column, ",", ".")
    real = pc.match_substring_regex(column, f"^{_POINT}$")
    if not pc.any(real).as_py():
        return None
    infinite = pc.match_substring_regex(column, f"{_INFINITE[:4]}^{_INFINITE[4:]}$")
    if not pc.all(pc.or_(real, infinite)).as_py():
        return None
    column = pc.replace_substring_regex(column, r"^\+", "")
    column = pc.replace_substring_regex(pc.utf8_lower(column), r"^(-?)inf(inity)?$", r"\1inf")
    return column.cast(pa.float64())


def has_commas(column: Any) -> bool:
    """Tell whether texts are numbers of which some have a decimal comma."""
    if not _is_text(column.type):
        return False
    filled = texts(column).drop_null()
    return bool(
        pc.any(pc.match_substring(filled, ",")).as_py()
        and pc.all(pc.match_substring_regex(filled, f"^{_COMMA}$")).as_py()
    )


def dates(column: Any) -> Any:
    """Return a column as Arrow timestamps; None if it is none of dates.

    Texts are dates if all filled cells are, in one way of writing them; ``03/04/2024`` is the
    4th of March unless another cell says otherwise.

    Examples
    --------
    >>> import pyarrow as pa
    >>> dates(pa.array(["31.12.2023", "", "01.02.2024"])).to_pylist()[2].isoformat()
    '2024-02-01T00:00:00'
    >>> dates(pa.array(["cat"]))
    """
    kind = column.type
    if pa.types.is_date(kind):
        return column.cast(pa.timestamp("us"))
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", kind.tz), safe=False)
    if not _is_text(kind):
        return None
    cells = texts(column)
    filled = cells.drop_null()
    if not len(filled) or not pc.all(pc.match_substring_regex(filled, _DATE)).as_py():
        return None
    for form in _DATES:
        parsed = pc.strptime(filled, format=form, unit="us", error_is_null=True)
        if not parsed.null_count:
            return pc.strptime(cells, format=form, unit="us", error_is_null=True)
    try:
        return cells.cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        return None
