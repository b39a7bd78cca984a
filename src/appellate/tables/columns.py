"""Read files of columns that have types: Parquet, Arrow; and check that they are whole."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from appellate.tables.cells import TableError, printable
from appellate.tables.tools import name_classes

if TYPE_CHECKING:
    from appellate.tables.reading import Opened, Table


def reads_columns(read: Callable[[Any], Any]) -> Callable[[Opened], Table]:
    """Make a reader of files that hold columns of a table with their types.

    The reader of Arrow takes a damaged file, and what uses its columns then ends the process. So
    all columns are checked first; and they are in memory, because the bytes of a mapped file
    may change or vanish.

    Parameters
    ----------
    read : callable
        Gets a path or a stream, and returns a pyarrow.Table.
    """

    def made(opened: Opened) -> Table:
        source, stream = opened.source, opened.stream
        stream.seek(0)
        try:
            with ThreadPoolExecutor(1) as pool:
                hashed = pool.submit(hashlib.file_digest, stream, "sha256")
                data = read(stream if opened.path == "-" else Path(opened.path))
            names = [printable(name) for name in data.column_names]
        except (pa.ArrowException, OSError, MemoryError, ValueError) as error:
            said = printable(str(error).partition("\n")[0]) or type(error).__name__
            raise TableError(
                f"{source} cannot be read as {opened.kind.capitalize()}: {said.rstrip('.')}. "
                "Write the file again."
            ) from error
        for name, column in zip(names, data.columns, strict=True):
            check_column(f"{source}, column '{name}'", column)
        if opened.path != "-":  # of Hugging Face, perhaps
            data = name_classes(data, Path(opened.path).parent)
        return replace(opened.table(hashed.result().hexdigest()), data=data)

    return made


@reads_columns
def read_parquet(file: Any) -> Any:
    """Read Parquet."""
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(file) as opened:
        return opened.read()


@reads_columns
def read_arrow(file: Any) -> Any:
    """Read Arrow: a file (Feather) or a stream."""
    whole = file.read_bytes() if isinstance(file, Path) else file.getvalue()
    try:
        return pa.ipc.open_file(pa.py_buffer(whole)).read_all()
    except pa.ArrowInvalid:
        return pa.ipc.open_stream(pa.py_buffer(whole)).read_all()


def check_column(where: str, column: Any) -> None:
    """Refuse a damaged column, texts that are not UTF-8, and types that cannot be written."""
    if pa.types.is_union(column.type) or column.type == pa.month_day_nano_interval():
        raise TableError(
            f"{where}: cells of the type {column.type} cannot be read. Convert the column to text "
            "or numbers, or drop it."
        )
    try:
        column.validate(full=True)
    except (pa.ArrowException, ValueError) as error:
        said = ": damaged"
        if "UTF8" in str(error):  # its parts are in order, so that its cells can be looked at
            said = _find_damage(column)
        raise TableError(f"{where}{said}. Write the file again.") from error


def check_moments(where: str, column: Any) -> None:
    """Refuse dates and times that Python cannot hold, and time zones that do not exist."""
    kind = column.type
    try:
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            pc.min_max(column).as_py()
        elif _holds_moments(kind):
            column.to_pylist()
    except (OverflowError, ValueError) as error:  # an ArrowInvalid is a ValueError
        zone = getattr(kind, "tz", None)
        what = f", or the time zone {zone!r} does not exist" if zone else ""
        raise TableError(
            f"{where}: a date or time lies outside the years 1 to 9999{what}. Correct the column, "
            "or drop it."
        ) from error


def _holds_moments(kind: Any) -> bool:
    """Tell whether cells of a type are, or have in them, dates, times or durations."""
    inner = [kind.value_type] if pa.types.is_dictionary(kind) else []
    inner += [kind.field(i).type for i in range(kind.num_fields)]
    return bool(pa.types.is_temporal(kind)) or any(map(_holds_moments, inner))


def _find_damage(column: Any) -> str:
    for row, cell in enumerate(column):
        try:
            cell.as_py()
        except UnicodeDecodeError as error:
            return f", row {row}: byte 0x{error.object[error.start]:02x} is not UTF-8"
    return ": damaged"
