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
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from appellate._text import listing, naming
from appellate._text import neutralize as neutralize
from appellate._text import printable as printable  # the one door for tables
from appellate._text import restore as restore

#: Words that stand for no number in a column of numbers; a label may be called so.
NO_NUMBER = frozenset({"na", "n/a", "nan", "null", "none", "<na>", "#n/a"})

#: Types of Arrow that hold texts.
TEXTS = frozenset({pa.string(), pa.large_string(), pa.string_view()})

#: How numbers are written: with a decimal point, a decimal comma, or thousands that are grouped by
#: commas or by dots. Where dots group thousands, a comma is decimal.
Style = Literal[".", ",", "1,234", "1.234"]
#: Styles in which a mark groups thousands.
GROUPS = ("1,234", "1.234")

_POINT = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_COMMA = r"[+-]?[0-9]+(,[0-9]+)?([eE][+-]?[0-9]+)?"
_GROUPED = r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]+)?"
_DOTTED = r"[+-]?[1-9][0-9]{0,2}(\.[0-9]{3})+(,[0-9]+)?"
_UNDOTTED = r"[+-]?[0-9]{1,3}(,[0-9]+)?"
_INFINITE = r"[+-]?inf(inity)?"
_NUMBER = re.compile(_POINT)
_SEPARATORS = ("|", ";", ",")
LIKELY = ("/", "+", "&", " or ", " and ")  # may part labels too, or be a part of one
_PARTNERS = {"[": "]", "{": "}", "(": ")"}
#: Dates with year, month and day in this order, and perhaps a time; and dates that are no texts.
ISO = "ISO 8601"
_DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y",
         "%d.%m.%y", "%m/%d/%y", "%d/%m/%y")  # fmt: skip
_CLOCKS = ("", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S")
#: Ways of writing dates, the first that fits all cells counts.
DATE_FORMATS = (*(f"{day}{clock}" for day in _DAYS for clock in _CLOCKS), ISO)
_DATE = r"[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}([ T][0-9]{1,2}:.*)?"
_DAY = re.compile("%[dmyY]")
_NUMERIC = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)


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
    return listing((f"'{printable(name)}'" for name in shown), most)


def list_rows(rows: Sequence[int] | NDArray[Any], lines: NDArray[Any] | None = None) -> str:
    """Name rows for a message: their numbers from 0, and their lines where these are known.

    Examples
    --------
    >>> import numpy as np
    >>> list_rows([1], np.array([2, 3])), list_rows([0, 4])
    ('row 1 (line 3)', 'rows 0, 4')
    """
    where = naming("row", rows)
    return where if lines is None else f"{where} ({naming('line', lines[rows])})"


def as_text(value: Any) -> str:
    """Write any value as a text: nothing for None, labels of a list joined, no needless ``.0``.

    Examples
    --------
    >>> from datetime import datetime
    >>> [as_text(value) for value in [None, 3.0, 0.5, "a ", ["b", 2.0], datetime(2024, 1, 5)]]
    ['', '3', '0.5', 'a ', 'b|2', '2024-01-05']
    """
    if isinstance(value, str):
        return value
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if value is None or value != value:
        return ""
    if isinstance(value, float):
        return repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, (list, tuple, set)):
        return "|".join(map(as_text, value))
    return str(value).removesuffix(" 00:00:00")


def as_label(value: Any) -> str | None:
    """Return a label, its letters composed (NFC) and without spaces around it; None if empty.

    Examples
    --------
    >>> [as_label(value) for value in [" cat ", "none", "NA", "  ", None, 3.0]]
    ['cat', 'none', 'NA', None, None, '3']
    """
    return unicodedata.normalize("NFC", as_text(value)).rstrip("\0").strip() or None


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
    return float(text) if re.fullmatch(f"{_POINT}|{_INFINITE}", text.lower()) else None


def one_spelling(labels: Iterable[str], missing: Iterable[Any] = ()) -> dict[str, str | None]:
    """Return the spelling of labels, one for the same number, None for a missing label.

    Examples
    --------
    >>> one_spelling(["2", "2.0", "3.0", "0.50", ".5", "cat", "?"], missing=["?"])
    {'2': '2', '2.0': '2', '3.0': '3.0', '0.50': '.5', '.5': '.5', 'cat': 'cat', '?': None}
    """
    marks = {mark for mark in map(as_label, missing) if mark}
    spelled = {label: label for label in (*labels, *marks)}
    groups: dict[Decimal, list[str]] = {}
    for label in spelled:
        if _NUMBER.fullmatch(label) and len(label) < 400:
            groups.setdefault(Decimal(label), []).append(label)
    for number, group in groups.items():
        if len(group) > 1:
            whole = abs(number) < 10**15 and number == int(number)
            name = str(int(number)) if whole else min(group, key=len)
            spelled |= dict.fromkeys(group, name)
    marks |= {spelled[mark] for mark in marks}
    return {label: None if name in marks else name for label, name in spelled.items()}


def in_order(labels: Iterable[str]) -> list[str]:
    """Sort labels, as numbers if all are numbers."""
    names = sorted({*labels})
    return sorted(names, key=Decimal) if all(map(_NUMBER.fullmatch, names)) else names


def distinct_labels(values: Iterable[Any]) -> tuple[str, ...]:
    """Return the labels of one set, each once."""
    return tuple(dict.fromkeys(label for value in values if (label := as_label(value))))


def parse_list(text: str) -> tuple[str, ...] | None:
    """Read a list of labels such as ``['cat', 'dog']``, of Python or JSON; None if it is not one.

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
    return distinct_labels(sorted(values, key=str) if isinstance(values, set) else values)


def is_text(kind: Any) -> bool:
    """Tell whether a type of Arrow holds texts, or codes of texts."""
    return kind in TEXTS or (pa.types.is_dictionary(kind) and kind.value_type in TEXTS)


def with_columns(data: Any, changed: Mapping[str, Any]) -> Any:
    """Return a table with other cells in some columns, in time linear in the columns.

    Examples
    --------
    >>> import pyarrow as pa
    >>> with_columns(pa.table({"a": [1], "b": [2]}), {"b": pa.array(["x"])}).to_pydict()
    {'a': [1], 'b': ['x']}
    """
    if not changed:
        return data
    fields = [
        pa.field(each.name, changed[each.name].type) if each.name in changed else each
        for each in data.schema
    ]
    columns = [
        changed.get(name, column)
        for name, column in zip(data.column_names, data.columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields, metadata=data.schema.metadata))


def without_views(data: Any) -> Any:
    """Return a table whose texts and lists are stored one after another, as all kernels expect.

    Polars writes views, and few functions of Arrow take them. Bytes that are UTF-8 become texts:
    Hive and Impala write texts without saying so.
    """
    changed = {}
    for field, column in zip(data.schema, data.columns, strict=True):
        plain = _plain_type(field.type)
        if plain != field.type:
            # Arrow 26 loses cells when it casts lists of views, and follows the views of empty
            # cells, which nobody checks, out of the memory of a damaged file.
            flat = field.type in (pa.string_view(), pa.binary_view()) and not column.null_count
            column = column.cast(plain) if flat else pa.array(column.to_pylist(), plain)
            changed[field.name] = column
        if plain in (pa.binary(), pa.large_binary()):
            with suppress(pa.ArrowInvalid):
                changed[field.name] = column.cast(pa.string())
    return with_columns(data, changed)


def _plain_type(kind: Any) -> Any:
    """Return the type that holds the same cells without views or runs."""
    test = pa.types
    if test.is_string_view(kind):
        return pa.string()
    if test.is_binary_view(kind):
        return pa.binary()
    if test.is_run_end_encoded(kind):
        return _plain_type(kind.value_type)
    if test.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _plain_type(kind.value_type), kind.ordered)
    if test.is_fixed_size_list(kind):
        return pa.list_(_plain_type(kind.value_type), kind.list_size)
    if test.is_large_list(kind) or test.is_large_list_view(kind):
        return pa.large_list(_plain_type(kind.value_type))
    if test.is_list(kind) or test.is_list_view(kind):
        return pa.list_(_plain_type(kind.value_type))
    if test.is_struct(kind):
        return pa.struct([(each.name, _plain_type(each.type)) for each in kind])
    return kind


def texts(column: Any) -> Any:
    """Return a column as an Arrow array of texts: composed, stripped, null where empty."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return texts(column.cast(kind.value_type))
    if pa.types.is_floating(kind):
        distinct, codes = np.unique(np.asarray(column, dtype=float), return_inverse=True)
        names = pa.array([as_text(value) or None for value in distinct.tolist()], pa.string())
        return names.take(pa.array(codes))
    if pa.types.is_boolean(kind):
        column = pc.if_else(column, "True", "False")
    elif pa.types.is_timestamp(kind):
        days = column.cast(pa.date32())
        if pc.all(pc.equal(days.cast(kind), column)).as_py() in (True, None):
            column = days
        else:
            with suppress(pa.ArrowInvalid):  # parts of seconds are kept
                column = column.cast(pa.timestamp("s", kind.tz))
        column = column.cast(pa.string())
    elif kind in TEXTS or pa.types.is_integer(kind) or pa.types.is_date(kind):
        column = column.cast(pa.string())
    else:
        column = pa.array([as_text(value) for value in column.to_pylist()], pa.string())
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    whole = pc.utf8_rtrim(whole, characters="\0")  # NumPy loses these too, in names of classes
    trimmed = pc.utf8_trim_whitespace(pc.utf8_normalize(whole, form="NFC"))
    return pc.if_else(pc.equal(trimmed, ""), None, trimmed)


def numbers(
    column: Any, style: Style = ".", missing: Sequence[str] = ()
) -> NDArray[np.float64] | None:
    """Return a column as numbers, NaN where empty; None if it is none of numbers.

    Parameters
    ----------
    column : Arrow array
        Numbers, true and false, or texts.
    style : {".", ",", "1,234", "1.234"}, default="."
        How texts are written: with a decimal point, with a decimal comma, or with commas or dots
        that group thousands. A column of whole numbers without a mark is read in any style.
    missing : sequence of str, default=()
        Texts that mean an empty cell.

    Examples
    --------
    >>> import pyarrow as pa
    >>> numbers(pa.array(["1.5", "", "NA", "-2"]))
    array([ 1.5,  nan,  nan, -2. ])
    >>> numbers(pa.array(["0_1", "2_3"]))
    >>> numbers(pa.array(["1,5", "2"]), ","), numbers(pa.array(["1,500", "2"]), "1,234")
    (array([1.5, 2. ]), array([1500.,    2.]))
    >>> numbers(pa.array(["1.500,5", "2"]), "1.234")
    array([1500.5,    2. ])
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        return numbers(column.cast(kind.value_type), style, missing)
    if kind in TEXTS:
        few = texts(column.slice(0, 200)) if len(column) > 1000 else None
        if few is not None and numbers(few, style, missing) is None and _has_words(few, missing):
            return None  # without a look at all of a long text
        column = pc.utf8_lower(texts(column))
        marks = pa.array([*NO_NUMBER, *(mark.lower() for mark in missing)])
        column = pc.if_else(pc.is_in(column, marks), None, column)
        if style == "," and _all_match(column, _COMMA):
            column = pc.replace_substring(column, ",", ".")
        elif style == "1,234" and _all_match(column, f"({_GROUPED}|{_POINT})"):
            column = pc.replace_substring(column, ",", "")
        elif style == "1.234" and _all_match(column, f"({_DOTTED}|{_COMMA})"):
            column = _without_dots(column)
        real = pc.match_substring_regex(column, f"^{_POINT}$")
        if not pc.any(real).as_py() or not _all_match(column, f"({_POINT}|{_INFINITE})"):
            return None
        column = pc.replace_substring_regex(column, r"^\+|inity$", "")
    elif not any(test(kind) for test in _NUMERIC):
        return None
    return np.array(column.cast(pa.float64(), safe=False), dtype=np.float64)


def _has_words(column: Any, missing: Sequence[str]) -> bool:
    """Tell whether some text is neither a number in any style nor a word for none."""
    marks = [*NO_NUMBER, *(mark.lower() for mark in missing)]
    cells = (cell.lower() for cell in column.drop_null().to_pylist())
    return not all(
        cell in marks or re.fullmatch(f"{_POINT}|{_COMMA}|{_GROUPED}|{_INFINITE}", cell)
        for cell in cells
    )


def _without_dots(column: Any) -> Any:
    """Return texts in which dots group thousands with a decimal point alone."""
    return pc.replace_substring(pc.replace_substring(column, ".", ""), ",", ".")


def dots_group(column: Any) -> bool | None:
    """Tell whether dots in a column of texts group thousands.

    Returns
    -------
    bool or None
        None if some dot cannot. True if a cell has no dot although others do, or two dots, or a
        comma as well: decimals would not be written so. False if every cell has one dot, which
        may be a decimal point with three digits behind it.

    Examples
    --------
    >>> import pyarrow as pa
    >>> [dots_group(pa.array(["1.234", cell])) for cell in ["999", "2.345.678", "2.345", "0.5"]]
    [True, True, False, None]
    """
    for some in (column.slice(0, 200), column):
        cells = pc.utf8_lower(texts(some))
        cells = cells.filter(pc.invert(pc.is_in(cells, pa.array([*NO_NUMBER])))).drop_null()
        if not _all_match(cells, f"({_DOTTED}|{_UNDOTTED})"):
            return None
    if not pc.any(pc.match_substring(cells, ".")).as_py():
        return None
    return not _all_match(cells, r"[^.,]*\.[^.,]*")


def _matches(column: Any, pattern: str) -> Any:
    return pc.match_substring_regex(column, f"^{pattern}$")


def _all_match(column: Any, pattern: str) -> bool:
    return bool(pc.all(_matches(column, pattern)).as_py())


def number_style(column: Any, style: Style) -> Style | None:
    """Return the style that a column of numbers shows; None if it has neither point nor comma."""
    kind = column.type
    if not is_text(kind):
        return None
    cells = column.cast(kind.value_type) if pa.types.is_dictionary(kind) else column
    for mark, shown in ((",", style), (".", style if style in GROUPS else ".")):
        if pc.any(pc.match_substring(cells, mark)).as_py():
            return shown
    return None


def read_numbers(
    column: Any, style: Style | None, missing: Sequence[str] = (), *, by_commas: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return a column as numbers, each cell for itself, and which cells could not be read.

    A cell in another style is read if it cannot mean anything else: ``1,5`` is never 15, but
    ``1,234`` may be 1234.

    Parameters
    ----------
    column : Arrow array
        A column of any type.
    style : {".", ",", "1,234", "1.234"} or None
        How texts are written; None as ".".
    missing : sequence of str, default=()
        Texts that mean an empty cell.
    by_commas : bool, default=False
        Whether commas separate the cells of the file, so that ``1.234`` has a decimal point.

    Examples
    --------
    >>> import pyarrow as pa
    >>> read_numbers(pa.array(["1.5", "1,5", "1,234", "true", "NA"]), ".")
    (array([1.5, 1.5, nan, 1. , nan]), array([False, False,  True, False, False]))
    """
    found = None
    if not is_text(column.type) or style in (None, "."):  # nearly always; the rest takes longer
        found = numbers(column, style or ".", missing)
    if found is not None:
        return found, np.zeros(len(found), dtype=bool)
    cells = pc.utf8_lower(texts(column))
    marks = pa.array([*NO_NUMBER, *(mark.lower() for mark in missing)])
    cells = pc.if_else(pc.is_in(cells, marks), None, cells)
    for word, number in (("true", "1"), ("false", "0")):
        cells = pc.if_else(pc.equal(cells, word), number, cells)
    point = _matches(cells, f"({_POINT}|{_INFINITE})")
    comma = pc.and_(_matches(cells, _COMMA), pc.match_substring(cells, ","))
    plain = pc.replace_substring_regex(cells, r"^\+|inity$", "")
    decimal = pc.replace_substring(plain, ",", ".")
    grouped, dotted = _matches(cells, _GROUPED), _matches(cells, _DOTTED)
    if style == "1.234":
        read = pc.if_else(point, plain, None)
        read = pc.if_else(pc.or_(dotted, comma), _without_dots(plain), read)
    elif style == ",":
        point = point if by_commas else pc.and_not(point, dotted)
        read = pc.if_else(comma, decimal, pc.if_else(point, plain, None))
    elif style == "1,234":
        whole = pc.replace_substring(plain, ",", "")
        read = pc.if_else(grouped, whole, pc.if_else(point, plain, None))
    else:
        comma = pc.and_not(comma, grouped)
        read = pc.if_else(point, plain, pc.if_else(comma, decimal, None))
    wrong = pc.and_(pc.is_valid(cells), pc.is_null(read))
    values = np.array(read.cast(pa.float64()), dtype=np.float64)
    return values, wrong.to_numpy(zero_copy_only=False)


def date_format(column: Any) -> str | None:
    """Say how dates are written in a column, one of `DATE_FORMATS`; None if it is none of dates.

    Texts are dates if all filled cells are, in one way of writing them; ``03/04/2024`` is the
    4th of March unless another cell says otherwise.

    Examples
    --------
    >>> import pyarrow as pa
    >>> date_format(pa.array(["31.12.2023", "", "01.02.2024"])), date_format(pa.array(["cat"]))
    ('%d.%m.%Y', None)
    """
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        return ISO
    filled = texts(column).drop_null() if is_text(column.type) else pa.array([], pa.string())
    if not len(filled) or not _all_match(filled, _DATE):
        return None
    for form in DATE_FORMATS:
        if all(
            not read_dates(some, form, only=True).null_count
            for some in (filled.slice(0, 1000), filled)
        ):
            return form
    return None


def is_ambiguous(column: Any, form: str) -> bool:
    """Tell whether dates that are read month first could be read day first."""
    other = form.replace("%m/%d", "%d/%m")
    if other == form or not is_text(column.type):
        return False
    first, second = (
        read_dates(texts(column).drop_null(), each, only=True) for each in (form, other)
    )
    return not second.null_count and not first.equals(second)


def read_dates(column: Any, form: str, *, only: bool = False) -> Any:
    """Return a column as Arrow timestamps, each cell for itself, null if it is not a date.

    Parameters
    ----------
    column : Arrow array
        A column of any type.
    form : str
        One of `DATE_FORMATS`. A text in ISO 8601 is read all the same: it cannot be mistaken.
    only : bool, default=False
        Read texts in this format alone.

    Examples
    --------
    >>> import pyarrow as pa
    >>> read = read_dates(pa.array(["03/04/2024", "2024-04-03", "04/31/2024"]), "%d/%m/%Y")
    >>> [each and each.date().isoformat() for each in read.to_pylist()]
    ['2024-04-03', '2024-04-03', None]
    """
    kind = column.type
    if pa.types.is_date(kind):
        return column.cast(pa.timestamp("us"))
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.timestamp("us"))
    cells = texts(column)
    if form == ISO:
        return _read_iso(cells)
    read = _parse_dates(cells, form)
    if only or read.null_count == cells.null_count:
        return read
    return pc.coalesce(read, _read_iso(pc.if_else(pc.is_null(read), cells, None)))


def _parse_dates(cells: Any, form: str) -> Any:
    """Parse texts in one format; the 31st of February and a year of two digits are none."""
    read = pc.strptime(cells, format=form, unit="us", error_is_null=True)
    order = _DAY.findall(form)
    pattern = "[-/.]".join(f"(?P<{part[1]}>[0-9]+)" for part in order)
    parts = pc.extract_regex(cells, f"^{pattern}")
    year = "Y" if "%Y" in order else "y"
    fits = pc.equal(pc.struct_field(parts, "d").cast(pa.int64()), pc.day(read))
    long = pc.equal(pc.utf8_length(pc.struct_field(parts, year)), 4 if year == "Y" else 2)
    return pc.if_else(pc.and_(fits, long).fill_null(False), read, None)


def _read_iso(cells: Any) -> Any:
    """Read texts such as 2024-01-05T12:30:00+02:00; a time without a zone is one of UTC."""
    coded = cells.dictionary_encode()
    found = []
    for text in coded.dictionary.to_pylist():
        moment = None
        if re.match(r"\d{4}-\d\d?-\d\d?", text):
            with suppress(ValueError):
                moment = datetime.fromisoformat(text)
        if moment is not None and moment.tzinfo is not None:
            with suppress(OverflowError):
                moment = moment.astimezone(UTC)
            moment = moment.replace(tzinfo=None)
        found.append(moment)
    return pa.array(found, pa.timestamp("us")).take(coded.indices)


def as_known(cells: Any, known: Sequence[str]) -> Any:
    """Write texts as the known ones are written: by the same number, or but for case and spaces.

    Parameters
    ----------
    cells : Arrow array of texts
        New cells.
    known : sequence of str
        Texts whose spelling counts. Where two of them differ in case alone, both are kept.

    Examples
    --------
    >>> import pyarrow as pa
    >>> as_known(pa.array(["True", "1.0", "light  Red", "blue"]), ["TRUE", "1", "Light red"])
    ... # doctest: +ELLIPSIS
    <pyarrow...>
    [
      "TRUE",
      "1",
      "Light red",
      "blue"
    ]
    """
    alike: dict[Any, list[str]] = {}
    for text in known:
        for key in _keys(text):
            alike.setdefault(key, []).append(text)
    same = {*known}
    coded = cells.dictionary_encode()
    spelled = []
    for text in coded.dictionary.to_pylist():
        found = [alike.get(key, []) for key in _keys(text)]
        only = next((names[0] for names in found if len(names) == 1), text)
        spelled.append(text if text in same else only)
    return pa.array(spelled, pa.string()).take(coded.indices)


def _keys(text: str) -> list[Any]:
    """Return what is the same of two spellings of one category."""
    folded = " ".join(text.split()).casefold()
    is_number = _NUMBER.fullmatch(text) and len(text) < 400
    return [Decimal(text), folded] if is_number else [folded]


def find_separator(column: Mapping[str, int], marks: Sequence[str] = _SEPARATORS) -> str | None:
    """Return what separates labels in the cells of a column, if anything does.

    A bar always does. Another mark may be part of a label, as in 'dress, long' or 'Springfield,
    IL'. It separates labels only if most parts come again, and at least half of the parts that
    follow a mark also begin a cell: labels of a set change places or are alone, parts of one
    label keep their place.

    Parameters
    ----------
    column : mapping of str to int
        Distinct cells and how often they occur.
    marks : sequence of str, default=("|", ";", ",")
        What may separate labels.

    Examples
    --------
    >>> find_separator({"cat;dog": 1, "dog;cow": 2, "cow": 3})
    ';'
    >>> find_separator({"Doe, Jane": 1, "Roe, Rick": 1})
    >>> find_separator({"dress, long": 9, "dress, short": 9, "shirt, long": 9, "shirt": 9})
    """
    found = []
    for mark in marks:
        holding = sum(count for cell, count in column.items() if mark in cell)
        split = [distinct_labels(cell.split(mark)) for cell in column if holding]
        parts = Counter(part for cell in split for part in cell)
        if parts:  # prose is long, and parts of names such as 'Doe, Jane' come once
            words, letters = np.mean([(part.count(" ") + 1, len(part)) for part in parts], axis=0)
            again = sum(count for count in parts.values() if count > 1)
            recurs = again >= 0.6 * parts.total() and _change_places(split)
            if words <= 4 and letters <= 40 and (mark == "|" or recurs):
                found.append((holding, mark))
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _change_places(split: Sequence[Sequence[str]]) -> bool:
    """Tell whether at least half of the parts that follow a mark also begin a cell."""
    first = {cell[0] for cell in split if cell}
    later = {part for cell in split for part in cell[1:]}
    return len(later & first) >= 0.5 * len(later)
