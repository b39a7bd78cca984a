"""Read a user's table: CSV, TSV, Parquet or JSON lines, from a file or the standard input."""

from __future__ import annotations

import csv
import fnmatch
import hashlib
import io
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from appellate.cli.cells import match
from appellate.cli.errors import UserError

_LOOK = 1 << 16  # bytes that are looked at before a file is read
_BOMS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
_DELIMITERS = (",", "\t", ";")
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__|__null_dask_index__")  # of pandas, of Dask
csv.field_size_limit(1 << 26)


@dataclass(frozen=True)
class Table:
    """Named columns of equal length.

    Attributes
    ----------
    source : str
        What the table is called in messages.
    columns : dict of str to list
        Cells; all texts if they were read from CSV.
    sha256 : str
        Of the file's bytes.
    delimiter : str
        Of the CSV that is written from it.
    """

    source: str
    columns: dict[str, list[Any]]
    sha256: str
    delimiter: str = ","

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(next(iter(self.columns.values())))

    def column(self, name: str, option: str) -> list[Any]:
        """Return a column by name, or say which columns there are."""
        if name not in self.columns:
            import difflib

            near = difflib.get_close_matches(name, self.columns, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise UserError(
                f"{self.source} has no column '{name}' ({option}).{hint} "
                f"Its columns: {name_some(self.columns)}."
            )
        return self.columns[name]


def name_some(names: Any, most: int = 12) -> str:
    """Name the first few, cut to a readable length."""
    shown = [name if len(name) <= 40 else name[:39] + "…" for name in map(str, names)]
    rest = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(f"'{name}'" for name in shown[:most]) + rest


def expand(table: Table, patterns: Sequence[str], option: str) -> list[str]:
    """Return the columns that names or patterns such as ``x*`` stand for, in their order."""
    found: list[str] = []
    for pattern in patterns:
        exact = match(pattern, table.columns)
        names = [exact] if exact in table.columns else fnmatch.filter(table.columns, pattern)
        if not names:
            table.column(pattern, option)
        found += [name for name in names if name not in found]
    return found


def read_table(path: str, advice: str = "Give at least two rows of data.") -> Table:
    """Read a table; ``-`` is the standard input, of whichever kind it turns out to be.

    Parameters
    ----------
    path : str
        The file.
    advice : str
        What to do if it has no rows.

    Raises
    ------
    UserError
        If it cannot be read: what is wrong, where, and what to do.
    """
    source, content = _read_bytes(path)
    kind = _kind(path, content)
    if kind == "parquet":
        columns, delimiter = _read_parquet(source, content), ","
    elif kind == "jsonl":
        columns, delimiter = _read_jsonl(source, _decode(source, content)), ","
    else:
        columns, delimiter = _read_csv(source, _decode(source, content), kind)
    if not columns or not len(next(iter(columns.values()))):
        raise UserError(f"{source} has a header but no rows. {advice}")
    return Table(source, columns, hashlib.sha256(content).hexdigest(), delimiter)


def _read_bytes(path: str) -> tuple[str, bytes]:
    if path == "-":
        source, content = "the standard input", sys.stdin.buffer.read()
        _refuse_binary(source, content[:_LOOK])
    else:
        source, file = f"'{path}'", Path(path)
        if file.is_dir():
            raise UserError(f"{source} is a folder. Name the file in it.")
        try:
            with file.open("rb") as stream:
                start = stream.read(_LOOK)
                _refuse_binary(source, start)
                content = start + stream.read()
        except FileNotFoundError as error:
            raise UserError(f"there is no file {source}. Check the path.") from error
        except (OSError, MemoryError) as error:
            reason = getattr(error, "strerror", None) or "it does not fit into memory"
            raise UserError(f"cannot read {source}: {reason}.") from error
    if not content.strip():
        raise UserError(f"{source} is empty. Give a table with a header and rows.")
    return source, content


def _refuse_binary(source: str, start: bytes) -> None:
    if start.startswith(b"PAR1"):
        return
    for bom, name in _BOMS.items():
        if start.startswith(bom):
            raise UserError(f"{source} is {name} text. Save it as UTF-8.")
    if b"\0" in start:
        raise UserError(
            f"{source} is not a text file (it has a NUL byte at position {start.index(0)}), nor "
            "Parquet. Give CSV, TSV, JSON lines or Parquet; save a spreadsheet as CSV in UTF-8."
        )


def _kind(path: str, content: bytes) -> str:
    suffix = Path(path).suffix.lower()
    if content.startswith(b"PAR1") or suffix in (".parquet", ".pq"):
        return "parquet"
    if suffix in (".jsonl", ".ndjson", ".json") or (path == "-" and content[:1] == b"{"):
        return "jsonl"
    return "tsv" if suffix in (".tsv", ".tab") else "csv"


def _decode(source: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{source}, line {line}: byte 0x{content[error.start]:02x} is not UTF-8. Save the "
            "file as UTF-8; if only some lines are in another encoding, correct these."
        ) from error


def _read_csv(source: str, text: str, kind: str) -> tuple[dict[str, list[Any]], str]:
    header = text.split("\n", 1)[0]
    delimiter = "\t" if kind == "tsv" else max(_DELIMITERS, key=header.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        names = next(reader)
        rows = []
        for row in reader:
            if len(row) == len(names):
                rows.append(row)
            elif row:
                raise UserError(
                    f"{source}, line {reader.line_num}: {len(row)} cells, but the header has "
                    f"{len(names)}. Correct the line; a cell that holds {delimiter!r} or a line "
                    "break needs quotes around it."
                )
    except csv.Error as error:
        raise UserError(
            f"{source}, line {reader.line_num}: {error}. Look for a quote that is not closed."
        ) from error
    _check_names(source, names)
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in names]
    return dict(zip(names, columns, strict=True)), delimiter


def _check_names(source: str, names: list[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        what = "without a name" if twice == [""] else f"named {name_some(twice)}"
        raise UserError(f"{source} has several columns {what}. Give every column its own name.")


def _read_jsonl(source: str, text: str) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    number = 0
    for line, record in enumerate(text.split("\n"), 1):
        if not record.strip():
            continue
        try:
            value = json.loads(record)
        except (json.JSONDecodeError, RecursionError) as error:
            raise UserError(
                f"{source}, line {line}: not JSON ({error}). Write one object a line."
            ) from error
        if not isinstance(value, dict):
            raise UserError(f"{source}, line {line}: not an object. Write one object a line.")
        for name in value.keys() - columns.keys():
            columns[name] = [None] * number
        for name, cells in columns.items():
            cells.append(value.get(name))
        number += 1
    first = json.loads(text.lstrip().split("\n", 1)[0]) if number else {}
    order = [*first, *(name for name in columns if name not in first)]
    return {name: columns[name] for name in order}


def _read_parquet(source: str, content: bytes) -> dict[str, list[Any]]:
    if find_spec("pyarrow") is None:
        raise UserError("Parquet needs pyarrow: pip install 'appellate[io]'")
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(io.BytesIO(content))
    except (pyarrow.ArrowException, OSError, MemoryError) as error:
        raise UserError(
            f"{source} cannot be read as Parquet: {error}. Write the file again."
        ) from error
    _check_names(source, table.column_names)
    names = [name for name in table.column_names if not _UNNAMED_INDEX.fullmatch(name)]
    return {name: table.column(name).to_pylist() for name in names}
