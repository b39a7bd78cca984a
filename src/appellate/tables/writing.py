"""Write tables: one CSV writer, Parquet and JSON lines by the name's ending."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TextIO

import narwhals.stable.v2 as nw
import pyarrow as pa

from appellate._added import PREFIX
from appellate._files import whole_file
from appellate._text import defuse
from appellate.tables.cells import TableError, as_text, neutralize
from appellate.tables.reading import Table, read_table

_NOTHING = Table("nothing", pa.table({}), "frame")
_KINDS = (".csv", ".tsv", ".parquet", ".jsonl", ".json")
_OTHER_ENDINGS = {".pq": ".parquet", ".ndjson": ".jsonl", ".tab": ".tsv", ".txt": ".csv"}


def join(table: Table, added: Mapping[str, Sequence[Any]]) -> Any:
    """Return the columns of a table with added columns, renamed if a name is taken.

    Parameters
    ----------
    table : Table
        The user's.
    added : mapping of str to sequence
        Further columns; one whose name is taken becomes ``appellate_NAME``.

    Returns
    -------
    object
        A data frame of the kind that the table was; pandas for a file, if it is installed, else
        Arrow.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = read_table(pa.table({"label": ["a|b", "b"]}))
    >>> join(table, {"label": ["a", "b"], "confidence": [0.9, 1.0]}).column_names
    ['label', 'appellate_label', 'confidence']
    """
    if table.native is not None and not isinstance(table.native, (list, Mapping)):
        frame = nw.from_native(table.native)
        frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
        series = [
            nw.new_series(name, values, backend=frame.implementation)
            for name, values in _beside(table, added).items()
        ]
        if frame.implementation.is_pandas_like():  # rows are known by their index
            series = [nw.maybe_set_index(s, index=nw.maybe_get_index(frame)) for s in series]
        return frame.with_columns(series).to_native()
    data = _append(table, added)
    try:
        return data.to_pandas()
    except ImportError:  # pragma: no cover
        return data


def free_names(taken: Iterable[str], names: Iterable[str]) -> list[str]:
    """Return free names for further columns."""
    used, free = {*taken}, []
    for name in names:
        ours = f"{PREFIX}{name}"
        spellings = (name, ours, *(f"{ours}{i}" for i in range(2, 1000)))
        free.append(next(each for each in spellings if each not in used))
        used.add(free[-1])
    return free


def _beside(
    table: Table, added: Mapping[str, Sequence[Any]] | None, digits: int | None = None
) -> dict[str, list[Any]]:
    """Return further columns under free names, as plain Python objects, numbers rounded."""
    found, added = {}, added or {}
    for name, values in zip(free_names(table.names, added), added.values(), strict=True):
        plain = [value.item() if hasattr(value, "item") else value for value in values]
        if digits is not None:
            plain = [float(f"{v:.{digits}g}") if isinstance(v, float) else v for v in plain]
        found[name] = plain
    return found


def _append(table: Table, added: Mapping[str, Sequence[Any]] | None) -> Any:
    data = table.data
    for name, values in _beside(table, added).items():
        column = pa.array(values, from_pandas=True)
        data = data.append_column(name, column) if data.num_columns else pa.table({name: column})
    return data


def _storable(data: Any) -> Any:
    """Write cells of objects without a field as JSON, as Parquet cannot hold them."""
    for i, field in enumerate(data.schema):
        if _is_hollow(field.type):
            values = data.column(i).to_pylist()
            texts = [None if v is None else json.dumps(v, default=as_text) for v in values]
            data = data.set_column(i, field.name, pa.array(texts, pa.string()))
    return data


def _is_hollow(kind: Any) -> bool:
    """Tell whether a type holds an object without fields."""
    inner = (
        [kind.field(i).type for i in range(kind.num_fields)] if pa.types.is_nested(kind) else []
    )
    return (pa.types.is_struct(kind) and not inner) or any(map(_is_hollow, inner))


def _with_index(table: Table, data: Any) -> Any:
    """Put the index of a pandas frame next to its columns, where pandas looks for it."""
    index = getattr(table.native, "index", None)
    if index is None or type(table.native).__module__.partition(".")[0] != "pandas":
        return data
    counted = nw.get_native_namespace(table.native).RangeIndex(len(data))
    if index.equals(counted) and index.names == [None]:
        return data
    try:
        beside = pa.Table.from_pandas(table.native.iloc[:, :0], preserve_index=True)
    except (pa.ArrowException, TypeError, ValueError):  # of objects, such as intervals
        return data
    for name in beside.column_names:
        if name not in data.column_names:
            data = data.append_column(name, beside.column(name))
    return data.replace_schema_metadata(beside.schema.metadata)


def saved_index(path: str | os.PathLike[str]) -> Any:
    """Return the index that a Parquet file keeps next to its columns; None if there is none."""
    import pyarrow.parquet

    try:
        known = pyarrow.parquet.read_schema(path).pandas_metadata or {}
        names = [name for name in known.get("index_columns", []) if isinstance(name, str)]
        if not names:
            return None
        kept = pyarrow.parquet.read_table(path, columns=names)
        kept.validate(full=True)
        return kept.to_pandas().index
    except (pa.ArrowException, KeyError, TypeError, ValueError, AttributeError):
        return None


def write_table(
    data: Any,
    path: str | os.PathLike[str],
    *,
    added: Mapping[str, Sequence[Any]] | None = None,
    digits: int | None = None,
) -> Path:
    """Write a table in the format of the file's ending, whole or not at all.

    Parameters
    ----------
    data : Table, anything that `read_table` takes, or None
        The columns. In CSV they come back cell by cell as they were read. None if there are
        none except `added`.
    path : path-like
        A name that ends in ``.csv``, ``.tsv``, ``.parquet``, ``.jsonl`` or ``.json``.
    added : mapping of str to sequence, default=None
        Further columns, see `join`.
    digits : int, default=None
        Significant digits of the numbers in `added`, in CSV and JSON; by default all.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    TableError
        If the ending is not known.
    WriteError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = write_table({"id": ["=x", "b"], "n": [1, 2]}, f"{folder}/a.csv")
    ...     print(file.read_text())
    id,n
    '=x,1
    b,2
    """
    kind = check_ending(path)
    table = _NOTHING if data is None else read_table(data)
    with whole_file(path) as stage:
        if kind == ".parquet":
            import pyarrow.parquet

            data = _with_index(table, _storable(_append(table, added)))
            pyarrow.parquet.write_table(data, stage)
            return Path(path)
        with stage.open("w", encoding="utf-8", newline="") as stream:
            if kind in (".csv", ".tsv"):
                delimiter = "\t" if kind == ".tsv" else None
                write_csv(table, stream, added=added, digits=digits, delimiter=delimiter)
                return Path(path)
            columns = {name: table.data.column(name).to_pylist() for name in table.names}
            columns |= _beside(table, added, digits)
            rows = ({n: None if v != v else v for n, v in zip(columns, row, strict=True)}
                    for row in zip(*columns.values(), strict=True))  # fmt: skip
            lines = (json.dumps(row, ensure_ascii=False, default=as_text) for row in rows)
            if kind == ".json":
                stream.write("[" + ",\n".join(lines) + "]\n")
            else:
                stream.writelines(f"{line}\n" for line in lines)
    return Path(path)


def check_ending(path: str | os.PathLike[str]) -> str:
    """Return the ending of a file that a table can be written to, or raise a `TableError`.

    Parameters
    ----------
    path : str or path
        Where to write the table.

    Returns
    -------
    str

    Examples
    --------
    >>> check_ending("labels.csv")
    '.csv'
    """
    ending = Path(path).suffix.lower()
    kind = _OTHER_ENDINGS.get(ending, ending)
    if kind not in _KINDS:
        raise TableError(
            f"'{path}': a table is written to a name that ends in '.csv', '.tsv', '.parquet', "
            "'.jsonl' or '.json'."
        )
    return kind


def write_csv(
    data: Any,
    stream: TextIO,
    *,
    added: Mapping[str, Sequence[Any]] | None = None,
    digits: int | None = None,
    delimiter: str | None = None,
) -> list[str]:
    """Write a table as CSV to an open file or the standard output.

    Texts that a spreadsheet would run get an apostrophe, which `read_table` takes away again. A
    formula within a text, behind a comma, semicolon, tab or line break, gets one that stays.

    Parameters
    ----------
    data, added, digits
        See `write_table`.
    stream : file
        Takes texts.
    delimiter : str, default=None
        What parts the cells; by default what parted them when they were read.

    Returns
    -------
    list of str
        The names that the added columns got.

    Examples
    --------
    >>> import sys
    >>> names = write_csv({"id": ["a"], "note": ["=1+1"]}, sys.stdout, added={"label": ["cat"]})
    id,note,label
    a,'=1+1,cat
    """
    table = _NOTHING if data is None else read_table(data)
    columns: dict[str, list[str]] = {}
    for name, column in zip(table.names, table.data.columns, strict=True):
        values = column.to_pylist()
        lists = [value for value in values if isinstance(value, list)]
        if any("|" in as_text(each) for value in lists for each in value):
            values = [value and json.dumps(value, ensure_ascii=False) for value in values]
        is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        columns[name] = [as_text(v) if is_number else _safe(as_text(v)) for v in values]
    beside = _beside(table, added, digits)
    for name, values in beside.items():
        texts = map(as_text, values)
        comma = table.decimal == "," and all(isinstance(v, (float, int)) for v in values)
        columns[name] = [t.replace(".", ",") if comma else _safe(t) for t in texts]
    # Lines end with a line feed, yet csv quotes carriage returns: some Pythons would not. NUL,
    # which no text file may hold, is written as its picture.
    lines: Any = SimpleNamespace(
        write=lambda line: stream.write(line[:-2].replace("\0", "␀") + "\n")
    )
    mark = delimiter or table.delimiter
    writer = csv.writer(lines, delimiter=mark, lineterminator="\r\n")
    writer.writerow([_safe(name) for name in columns])
    writer.writerows(zip(*columns.values(), strict=True))
    return list(beside)


def _safe(text: str) -> str:
    return neutralize(defuse(text))
