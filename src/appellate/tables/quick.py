"""Read a regular text file with pyarrow; leave every irregular one to the careful reader."""

from __future__ import annotations

import csv
import io
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_NEWLINE, _RETURN, _QUOTE = b'\n\r"'
_BLOCK = 1 << 24  # bytes that pyarrow reads at a time


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
