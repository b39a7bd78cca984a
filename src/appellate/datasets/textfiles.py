"""Delimited text files as columns of strings, and as numbers."""

from __future__ import annotations

import csv
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from appellate.candidates.names import listing, naming
from appellate.datasets.integrity import check_is_file

_DELIMITERS = (",", ";", "\t")
_COMMA = re.compile(r"[+-]?\d+(,\d+)?")
_LARGE = 2**22  # bytes from which a data frame library is worth its import


class Header(NamedTuple):
    """How a file begins: titles, delimiter, and whether the first row has as many cells."""

    titles: list[str]
    delimiter: str
    regular: bool


def read_header(path: Path, *, delimiter: str | None = None, encoding: str = "utf-8") -> Header:
    """Read the titles of a file.

    Parameters
    ----------
    path : Path
        The file.
    delimiter : str, default=None
        What parts its cells; by default the comma, semicolon or tab that is most frequent in
        its first line.
    encoding : str, default="utf-8"
        How its letters are stored.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is no delimited text, empty, or a title comes twice or is missing; the first may
        be, as that of a data frame's index.
    """
    with _open(path, encoding) as file:
        line = file.readline()
    if delimiter is None:
        delimiter = max(_DELIMITERS, key=line.count)
    elif len(delimiter) != 1:
        raise ValueError(f"the delimiter {delimiter!r} is not one character.")
    start = list(_rows(path, delimiter, encoding, limit=2))
    if not start:
        raise ValueError(f"'{path}' is empty.")
    titles = [title.strip() for title in start[0][1]]
    twice = [repr(title) for title, count in Counter(titles).items() if count > 1]
    if "" in titles[1:] or twice:
        what = f"{naming('title', twice)} more than once" if twice else "a column without title"
        raise ValueError(f"'{path}' has {what}. Give every column its own title.")
    return Header(titles, delimiter, len(start) == 2 and len(start[1][1]) == len(titles))


def read_columns(path: Path, header: Header, *, encoding: str = "utf-8") -> dict[str, list[str]]:
    """Read all cells as strings, by column; blank lines are skipped.

    Raises
    ------
    ValueError
        If there are no rows, or a row has more or fewer cells than the header.
    """
    width = len(header.titles)
    rows = []
    for number, row in _rows(path, header.delimiter, encoding):
        if len(row) != width:
            raise ValueError(
                f"'{path}', line {number}: {len(row)} cells, but the header has {width}. The "
                "line is cut off, or a cell with the delimiter in it lacks quotes."
            )
        rows.append(row)
    if len(rows) < 2:
        raise ValueError(f"'{path}' has a header, but no rows.")
    columns = zip(*rows[1:], strict=True)
    return {t: list(column) for t, column in zip(header.titles, columns, strict=True)}


def read_quickly(
    path: Path, header: Header, numbers: Sequence[str], texts: Sequence[str]
) -> tuple[NDArray[np.float64], dict[str, list[str]]] | None:
    """Read a large and flawless file by polars or pandas.

    Parameters
    ----------
    path : Path
        The file, in UTF-8.
    header : Header
        Its titles.
    numbers, texts : sequence of str
        Columns to read as numbers and as strings.

    Returns
    -------
    tuple or None
        A matrix of the numbers and the strings by column. None if no such library is there,
        the file is small, or anything in it gives pause: `read_columns` then says what.
    """
    backend: Any = next((name for name in ("polars", "pandas") if find_spec(name)), None)
    if backend is None or not header.regular or path.stat().st_size < _LARGE:
        return None
    options: dict[str, Any] = {"infer_schema": False}
    if backend == "pandas":
        options = {
            "dtype": dict.fromkeys(texts, str),
            "keep_default_na": False,
            "na_values": [""],
            "float_precision": "round_trip",
            "encoding": "utf-8-sig",
        }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pandas will have no other precision one day
            frame = nw.read_csv(str(path), backend=backend, separator=header.delimiter, **options)
        return _plain(frame, header, numbers, texts)
    except Exception:  # whatever the library complains of, the careful reader says it better
        return None


def _plain(
    frame: Any, header: Header, numbers: Sequence[str], texts: Sequence[str]
) -> tuple[NDArray[np.float64], dict[str, list[str]]] | None:
    if [title.strip() for title in frame.columns] != header.titles:
        return None
    series = dict(zip(header.titles, frame.iter_columns(), strict=True))
    if any(series[name].null_count() for name in (*numbers, *texts)):
        return None
    X = np.empty((len(frame), len(numbers)))
    for j, name in enumerate(numbers):
        column = series[name]
        if column.dtype != nw.String and not column.dtype.is_numeric():
            return None
        X[:, j] = column.cast(nw.Float64).to_numpy()
    return X, {name: series[name].to_list() for name in texts}


def to_numbers(cells: Sequence[str], title: str, where: str) -> NDArray[np.float64]:
    """Turn the cells of a column into numbers; a blank cell is NaN.

    Raises
    ------
    ValueError
        If a cell is no number, with its row.
    """
    try:
        return np.array([float(cell) if cell.strip() else np.nan for cell in cells])
    except ValueError:
        row = next(i for i, cell in enumerate(cells) if not is_number(cell))
    raise ValueError(
        f"{where}: column {title!r} holds {cells[row]!r} in row {row}, which is no number. Name "
        "the feature columns with features=, or the others with ids= and ignore=."
    )


def decimal_points(cells: Sequence[str], delimiter: str) -> list[str] | None:
    """Write numbers with decimal commas by points; None if the cells are no such numbers.

    Examples
    --------
    >>> decimal_points(["0,94", "2", ""], ";")
    ['0.94', '2', '']
    >>> decimal_points(["1,234"], ",")  # thousands, perhaps
    """
    filled = [] if delimiter == "," else [cell.strip() for cell in cells if cell.strip()]
    if not any("," in cell for cell in filled) or not all(map(_COMMA.fullmatch, filled)):
        return None
    return [cell.replace(",", ".") for cell in cells]


def is_number(cell: str) -> bool:
    """Tell whether a cell is a number or blank."""
    try:
        float(cell or "nan")
    except ValueError:
        return not cell.strip()
    return True


def check_titles(names: Sequence[str], titles: Sequence[str], where: str) -> None:
    """Raise ValueError if a column is not there, with the nearest title."""
    for name in names:
        if name not in titles:
            near = get_close_matches(str(name), titles, n=1, cutoff=0.5)
            guess = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"{where} has no column {name!r}.{guess} Its columns are {listing(titles)}."
            )


@contextmanager
def _open(path: Path, encoding: str) -> Iterator[Any]:
    """Open a text file, and say in plain words if it is none."""
    real = "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding
    try:
        with check_is_file(path).open(encoding=real, newline="") as file:
            yield file
    except UnicodeDecodeError as error:
        raise ValueError(
            f"'{path}' is no text in {encoding}. Save it as CSV in UTF-8, or name its encoding, "
            "such as 'latin-1'."
        ) from error
    except LookupError as error:
        raise ValueError(f"unknown encoding {encoding!r}.") from error
    except csv.Error as error:
        raise ValueError(f"'{path}' is no delimited text: {error}.") from error


def _rows(
    path: Path, delimiter: str, encoding: str, limit: int | None = None
) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the last line and the cells of every row that is not blank."""
    count = 0
    with _open(path, encoding) as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        for row in reader:
            if row:
                yield reader.line_num, row
                count += 1
            if count == limit:
                return
