"""Read separated cells: regular files with pyarrow, all others row by row."""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from appellate.tables.cells import TableError, name_some, restore

if TYPE_CHECKING:
    from appellate.tables.reading import Opened, Table

_DELIMITERS = ("\t", ";", ",", "|")  # in this order where several part a file equally well
_LETTERS = 1 << 20  # in which the delimiter is looked for
_ROWS = 20_000  # that are Python objects at a time
_LATE = {"", "approve", "reject"}  # titles of Mechanical Turk that rows may end before
_NEWLINE, _RETURN, _QUOTE = b'\n\r"'
_BLOCK = 1 << 24  # bytes that pyarrow reads at a time
csv.field_size_limit(1 << 30)


class Cells(NamedTuple):
    """The cells of a text file.

    Attributes
    ----------
    first : list of str
        The first row that is not blank, which may hold the titles.
    columns : list of pyarrow.ChunkedArray
        The texts of the rows below, or of all rows.
    lines : ndarray of int, shape (n,)
        Lines, from 1, at which these rows begin.
    """

    first: list[str]
    columns: list[Any]
    lines: NDArray[np.intp]


def read_csv_file(opened: Opened) -> Table:
    """Read separated cells: with pyarrow if the file is regular, else row by row."""
    table, text = opened.decode()
    delimiter, header = opened.options.get("delimiter"), opened.options.get("header", "first")
    newline = "\n" if "\n" in text else "\r"  # of an old Macintosh
    if delimiter is None:
        delimiter = _find_delimiter(text, newline)
    elif len(delimiter := delimiter.replace("\\t", "\t")) != 1:
        raise TableError(f"the delimiter {delimiter!r} is not one character.")
    found = read_quickly(text.encode(errors="surrogatepass"), delimiter, titled=header == "first")
    late = list[str]()
    if found is None:
        found, late = read_carefully(table.source, text, newline, delimiter, header)
    titles = found.first if header == "first" else [str(j) for j in range(len(found.first))]
    titles = [restore(title) for title in titles]
    columns = []
    for title, column in zip(titles, found.columns, strict=True):
        if pc.any(pc.starts_with(column, pattern="'")).as_py():
            column = pa.array([restore(cell) for cell in column.to_pylist()], pa.string())
        blank = not title.strip() and not pc.any(pc.not_equal(column, "")).as_py()
        columns.append(pa.nulls(len(column)) if blank else column)
    notes = table.notes
    if late:
        notes = (*notes, f"rows end before the last columns, which are empty: {name_some(late)}.")
    if delimiter != "," and Path(table.path or "").suffix.lower() not in (".tsv", ".tab"):
        notes = (f"cells are separated by {delimiter!r}.", *notes)
    data = pa.Table.from_arrays(columns, names=titles)
    return replace(table, data=data, delimiter=delimiter, notes=notes, lines=found.lines)


def read_quickly(content: bytes, delimiter: str, *, titled: bool) -> Cells | None:
    r"""Read a text file, or return None if pyarrow would read it in another way, or not at all.

    Both readers give the same cells for a file in which every quote opens, closes or is doubled,
    every carriage return is followed by a line feed, and all rows have the same number of cells.

    Parameters
    ----------
    content : bytes
        The file in UTF-8, without a byte order mark.
    delimiter : str
        What separates the cells.
    titled : bool
        Whether the first row that is not blank holds the titles.

    Returns
    -------
    Cells or None

    Examples
    --------
    >>> found = read_quickly(b"a,b\n1,x\n\n2,y\n", ",", titled=True)
    >>> found.first, found.columns[1].to_pylist(), found.lines.tolist()
    (['a', 'b'], ['x', 'y'], [2, 4])
    >>> read_quickly(b'a,b\n1,x"y\n', ",", titled=True) is None
    True
    """
    if not content or len(delimiter.encode()) != 1 or delimiter in '"\r\n':
        return None
    if content.count(b"\r") != content.count(b"\r\n"):
        return None
    letters = np.frombuffer(content, dtype=np.uint8)
    newlines = np.flatnonzero(letters == _NEWLINE)
    quotes = np.flatnonzero(letters == _QUOTE) if b'"' in content else newlines[:0]
    if not _are_regular(letters, quotes, ord(delimiter)):
        return None
    ends = newlines
    if len(quotes):  # a line feed between an opening and a closing quote ends no row
        ends = newlines[np.searchsorted(quotes, newlines) % 2 == 0]
    starts = np.concatenate([[0], ends + 1])
    stops = np.concatenate([ends, [len(letters)]])
    returned = (stops > starts) & (letters[stops - 1] == _RETURN)
    filled = np.flatnonzero(stops - returned > starts)
    rows = filled[1:] if titled else filled
    if not len(rows):
        return None
    head = content[starts[filled[0]] : stops[filled[0]]].decode()
    (first,) = csv.reader(io.StringIO(head, "\n"), delimiter=delimiter, strict=True)
    columns = _parse(content, int(starts[rows[0]]), delimiter, len(first), len(quotes) > 0)
    if columns is None or any(len(column) != len(rows) for column in columns):
        return None
    lines = np.searchsorted(newlines, starts[rows]) + 1
    return Cells(first, columns, lines.astype(np.intp))


def _are_regular(letters: NDArray[np.uint8], quotes: NDArray[np.intp], delimiter: int) -> bool:
    """Tell whether every quote opens a cell, closes one, or is one of two within a cell."""
    if len(quotes) % 2:
        return False
    if not len(quotes):
        return True
    opening, closing = quotes[::2], quotes[1::2]
    doubled = closing[:-1] + 1 == opening[1:]
    before = letters[opening - 1]  # of the first letter of all: the last, which is not asked for
    begins = np.isin(before, (delimiter, _NEWLINE))
    begins[0] |= opening[0] == 0
    begins[1:] |= doubled
    after = letters[np.minimum(closing + 1, len(letters) - 1)]
    ends = np.isin(after, (delimiter, _NEWLINE, _RETURN))
    ends[-1] |= closing[-1] == len(letters) - 1
    ends[:-1] |= doubled
    return bool(begins.all() and ends.all())


def _parse(
    content: bytes, start: int, delimiter: str, width: int, quoted: bool
) -> list[Any] | None:
    from pyarrow import csv as arrow

    names = [str(j) for j in range(width)]
    buffer = pa.py_buffer(content).slice(start)
    try:
        table = arrow.read_csv(
            pa.BufferReader(buffer),
            arrow.ReadOptions(column_names=names, block_size=_BLOCK, use_threads=False),
            arrow.ParseOptions(delimiter=delimiter, newlines_in_values=quoted),
            arrow.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
        )
    except pa.ArrowException:  # a row of another width, or longer than a block
        return None
    return list(table.columns)


def read_carefully(
    source: str, text: str, newline: str, delimiter: str, header: str
) -> tuple[Cells, list[str]]:
    """Read cells row by row, and the last titles for which rows have no cells.

    Raises an error that names the line of whatever is wrong.
    """
    titles, line = list[str](), 1
    reader = csv.reader(io.StringIO(text, newline), delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    blocks: list[list[Any]] = []
    lines = array("q")
    short: dict[int, tuple[int, int]] = {}  # width of rows that end early: how many, first line
    try:
        for row in reader:
            if not titles and row:
                titles = row
                if header == "first":
                    line = reader.line_num + 1
                    continue
            missing = len(titles) - len(row)
            if row and missing == 0:
                rows.append(row)
                lines.append(line)
            elif "".join(row).strip():
                if missing < 0 or header == "none":
                    raise _ragged(source, line, len(row), len(titles), delimiter, header)
                n, first = short.get(len(row), (0, line))
                short[len(row)] = n + 1, first
                rows.append([*row, *[""] * missing])
                lines.append(line)
            line = reader.line_num + 1
            if len(rows) == _ROWS:
                blocks.append([pa.array(cells, pa.string()) for cells in zip(*rows, strict=True)])
                rows = []
    except csv.Error as error:
        said = f"{error}. Look for a quote that is not closed or not doubled"
        if "new-line" in str(error):
            said = "a carriage return within a line. Put quotes around the cell that holds it"
        raise TableError(f"{source}, line {line}: {said}.") from error
    late = _find_late(titles, short, len(lines))
    if late is None:
        width, (_, line) = min(short.items(), key=lambda each: each[1][1])
        raise _ragged(source, line, width, len(titles), delimiter, header)
    if rows:
        blocks.append([pa.array(cells, pa.string()) for cells in zip(*rows, strict=True)])
    columns = [
        pa.chunked_array([block[j] for block in blocks], pa.string()) for j in range(len(titles))
    ]
    return Cells(titles, columns, np.array(lines, dtype=np.intp)), late


def _ragged(
    source: str, line: int, width: int, titles: int, delimiter: str, header: str
) -> TableError:
    other = "the header" if header == "first" else "the first row"
    return TableError(
        f"{source}, line {line}: {width} cells, but {other} has {titles}. Correct the line; a "
        f"cell that holds {delimiter!r} or a line break needs quotes around it."
    )


def _find_late(
    titles: Sequence[str], short: Mapping[int, tuple[int, int]], n_rows: int
) -> list[str] | None:
    """Return the last titles for which rows may have no cells; None if some row is ragged.

    All rows may end at the same column, as those of Mechanical Turk do before its columns for
    approval. Some rows may end early only if nothing but these columns is missing.
    """
    if not short:
        return []
    late = [title.strip() for title in titles[min(short) :]]
    alike = len(short) == 1 and n_rows > 1 and min(short) > 1 and sum(
        n for n, _ in short.values()
    ) == n_rows  # fmt: skip
    if alike or {title.lower() for title in late} <= _LATE:
        return [title for title in late if title]
    return None


def _find_delimiter(text: str, newline: str) -> str:
    """Return what parts the first rows most evenly, and then into most cells."""
    found, best = ",", (0.0, 0)
    for delimiter in _DELIMITERS:
        widths: list[int] = []
        try:
            sample = io.StringIO(text[:_LETTERS], newline)
            for row in islice(csv.reader(sample, delimiter=delimiter, strict=True), 50):
                widths += [len(row)] if row else []
        except csv.Error:
            widths = widths if len(text) > _LETTERS else widths[:1]
        if widths and widths[0] > 1:
            body = {*widths[1:]}
            early = len(body) == 1 and 1 < min(body) < widths[0]  # all rows end early
            score = (1.0 if early else widths.count(widths[0]) / len(widths)), widths[0]
            found, best = (delimiter, score) if score > best else (found, best)
    return found
