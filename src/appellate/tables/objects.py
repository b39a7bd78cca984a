"""Read tables of Python objects: JSON, spreadsheets, data frames."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa

from appellate._text import install
from appellate.tables.cells import TableError, as_text, name_some, printable
from appellate.tables.tools import Export, find_tool, open_export
from appellate.tables.workbooks import check_apart, is_clear, look_through

if TYPE_CHECKING:
    from appellate.tables.reading import Opened, Table

_HALF = re.compile("[\ud800-\udfff]")


def read_json_file(opened: Opened) -> Table:
    """Read one array of objects, one object as pandas writes it, or one object per line."""
    table, text = opened.decode()
    question = opened.options.get("question")
    source = table.source
    whole = None
    begun = None
    if text.lstrip().startswith("["):
        records = _parse(source, text, 0)
    else:
        with suppress(ValueError, RecursionError):
            whole = json.loads(text)
        found = _read_orientation(source, whole) if isinstance(whole, dict) else None
        if found is not None:
            columns, notes = found
            data = from_columns(source, columns)
            return replace(table, data=data, notes=(*table.notes, *notes))
        lines = [(i, line) for i, line in enumerate(text.split("\n"), 1) if line.strip()]
        records = [_parse(source, line, i) for i, line in lines]
        begun = np.array([i for i, _ in lines], dtype=np.intp)
    tool = find_tool(records)
    if tool is not None:
        export = open_export(records, tool, source=source, question=question)
        return with_export(table, export)
    for i, record in enumerate(records):
        if not isinstance(record, dict):
            where = f"entry {i}" if begun is None else f"line {begun[i]}"
            raise TableError(f"{source}, {where}: not an object. Write one object a row.")
    return replace(table, data=from_columns(source, _turn(records)), lines=begun)


def _read_orientation(
    source: str, whole: dict[str, Any]
) -> tuple[dict[str, list[Any]], list[str]] | None:
    """Read a JSON object as pandas writes a table, in any orientation; None if it is none.

    Returns
    -------
    columns : dict of str to list
        The columns.
    notes : list of str
        How the object was read, if it could be read in another way.
    """
    names: Any = whole.get("columns")
    rows: Any = whole.get("data")
    schema = whole.get("schema")
    if whole.keys() <= {"columns", "index", "data"} and _are(names, str) and _are(rows, list):
        wrong = next((i for i, row in enumerate(rows) if len(row) != len(names)), None)
        if wrong is not None:
            raise TableError(
                f"{source}, entry {wrong} of 'data': {len(rows[wrong])} cells, but there are "
                f"{len(names)} columns. Correct it."
            )
        columns = {name: [row[j] for row in rows] for j, name in enumerate(names)}
        return _with_keys(columns, whole.get("index")), []
    if whole.keys() == {"schema", "data"} and isinstance(schema, dict) and _are(rows, dict):
        columns = _turn(rows)
        if schema.get("primaryKey") == ["index"] and _is_count(columns.get("index", [])):
            del columns["index"]
        return columns, []
    if whole and _are([*whole.values()], dict) and any(whole.values()):
        return _read_nested(whole)
    sizes = {len(c) if isinstance(c, list) else None for c in whole.values()}
    return (whole, []) if len(sizes) == 1 and None not in sizes else None


def _are(values: Any, kind: type) -> bool:
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)


def _is_count(keys: Sequence[Any]) -> bool:
    """Tell whether keys merely number the rows, from 0."""
    return list(map(str, keys)) == list(map(str, range(len(keys))))


def _with_keys(columns: dict[str, list[Any]], keys: Any) -> dict[str, list[Any]]:
    """Put the names of the rows before the columns, if they have names."""
    n = len(next(iter(columns.values()), []))
    if not isinstance(keys, list) or len(keys) != n or _is_count(keys) or "index" in columns:
        return columns
    return {"index": keys, **columns}


def _read_nested(
    whole: Mapping[str, Mapping[str, Any]],
) -> tuple[dict[str, list[Any]], list[str]]:
    """Read objects in an object: one per column by row, or one per row by column.

    Numbers are names of rows. Otherwise the cells of a column are of one type; if that does not
    tell, there are more rows than columns.
    """
    outer, inner = [*whole], [*dict.fromkeys(key for each in whole.values() for key in each)]
    by_row = _are_numbers(outer)
    notes: list[str] = []
    if by_row == _are_numbers(inner):
        in_rows = [{type(v) for v in each.values() if v is not None} for each in whole.values()]
        across = [{type(each.get(key)) for each in whole.values()} - {type(None)} for key in inner]
        mixed = any(len(types) > 1 for types in in_rows)
        by_row = mixed and all(len(types) <= 1 for types in across)
        if mixed == any(len(types) > 1 for types in across):
            by_row = len(outer) > len(inner)
            kind = "row" if by_row else "column"
            notes.append(
                f"each object, {name_some(outer[:1])} first, is read as one {kind}. If that is "
                "wrong, write a JSON array of one object per row."
            )
    if by_row:
        return _with_keys(_turn([*whole.values()]), outer), notes
    columns = {name: [cells.get(key) for key in inner] for name, cells in whole.items()}
    return _with_keys(columns, inner), notes


def _are_numbers(keys: Sequence[str]) -> bool:
    return all(key.isascii() and key.lstrip("-").isdigit() for key in keys)


def _parse(source: str, text: str, line: int) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {line or error.lineno}, column {error.colno}"
        raise TableError(
            f"{source}, {where}: not JSON ({error.msg}). Write one object a line, or one array of "
            "objects."
        ) from error
    except (ValueError, RecursionError) as error:
        deep = isinstance(error, RecursionError)
        said = "lists within lists without end" if deep else "a number of too many digits"
        raise TableError(f"{source}, line {line or 1}: {said}. Correct it.") from error


def _turn(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return rows as columns."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def from_columns(source: str, columns: Mapping[Any, Sequence[Any]]) -> Any:
    """Make Arrow columns of Python objects; texts if they are of several kinds."""
    arrays = {}
    for title, values in columns.items():
        name = as_text(title)
        try:
            name.encode()
            arrays[name] = values
            if not isinstance(values, (pa.Array, pa.ChunkedArray)):
                if any(isinstance(value, (set, frozenset)) for value in values):
                    values = [
                        sorted(value, key=str) if isinstance(value, (set, frozenset)) else value
                        for value in values  # in one order, whatever the process hashes by
                    ]
                try:
                    arrays[name] = pa.array(values, from_pandas=True)
                except (pa.ArrowException, OverflowError, TypeError):
                    _refuse_arrays(f"{source}, column '{printable(name)}'", values)
                    texts = [as_text(value) or None for value in values]
                    arrays[name] = pa.array(texts, pa.string())
        except UnicodeEncodeError as error:
            rows = [i for i, value in enumerate(values) if _HALF.search(as_text(value))]
            where = f"row {rows[0]}" if rows else "title"
            raise TableError(
                f"{source}, column '{printable(name)}', {where}: half a letter (a lone "
                "surrogate). Write the text again."
            ) from error
    return pa.table(arrays)


def _refuse_arrays(where: str, values: Sequence[Any]) -> None:
    shapes = [np.shape(v) if isinstance(v, np.ndarray) else () for v in values]
    wrong = next((i for i, shape in enumerate(shapes) if len(shape) > 1), None)
    if wrong is not None:
        raise TableError(
            f"{where}, row {wrong}: an array of shape {shapes[wrong]}. A cell holds one value or "
            "one list: flatten the arrays with ravel(), or give them as embeddings."
        )


def read_workbook(opened: Opened) -> Table:
    """Read a sheet of an Excel workbook."""
    table, content = opened.table(), opened.content
    sheet, header = opened.options.get("sheet"), opened.options.get("header", "first")
    try:
        import python_calamine
    except ImportError as error:
        raise TableError(f"Excel files need python-calamine: {install('table')}") from error
    if not is_clear(content):
        check_apart(content, sheet or 0, table.source)
    try:
        book = python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(content))
        names = book.sheet_names
        name = names[sheet or 0] if not isinstance(sheet, str) else sheet
        if name not in names:
            raise TableError(f"{table.source} has no sheet {name!r}. It has {name_some(names)}.")
        odd = look_through(content, name, table.source)
        page = book.get_sheet_by_name(name)
        first, rows = (page.start or (0, 0))[0] + 1, page.to_python()
    except (python_calamine.CalamineError, IndexError, OSError) as error:
        raise TableError(
            f"{table.source} cannot be read as a spreadsheet: {str(error) or 'no such sheet'}. "
            "Save it again, or as CSV."
        ) from error
    filled = [(i, row) for i, row in enumerate(rows, first) if any(cell != "" for cell in row)]
    rows = [row for _, row in filled]
    titles = [as_text(cell) for cell in rows[0]] if rows else []
    titled = header == "first"
    titles = titles if titled else [str(j) for j in range(len(titles))]
    lines = np.array([i for i, _ in filled[titled:]], dtype=np.intp)
    columns = [
        [None if cell == "" else cell for cell in column]
        for column in zip(*rows[titled:], strict=True)
    ]
    others = [each for each in names if each != name]
    said = f"sheet {name!r} is read; there are also {name_some(others)}."
    notes = (said, *odd) if others else odd
    numbered = dict(enumerate(columns or [[]] * len(titles)))  # titles may come twice
    data = from_columns(table.source, numbered).rename_columns(titles)
    return replace(table, data=data, sheet=name, notes=notes, lines=lines)


def read_frame(source: Any, name: str) -> Any:
    """Return the Arrow columns of a data frame, which messages call `name`."""
    if hasattr(source, "iloc"):  # pandas has any titles, twice, or 0 next to "0"
        refuse_repeated(name, [as_text(title) for title in getattr(source, "columns", ())])
    try:
        columns: Mapping[Any, Any]
        if isinstance(source, Mapping):
            columns = source
        elif isinstance(source, list) and all(isinstance(row, dict) for row in source):
            columns = _turn(source)
        else:
            named = getattr(getattr(source, "index", None), "name", None)
            reset = named is not None and named not in source.columns
            frame = nw.from_native(source.reset_index() if reset else source)
            frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
            columns = {}
            for series in frame.iter_columns():
                name, objects = as_text(series.name), series.dtype == nw.Object
                try:
                    columns[name] = series.to_list() if objects else series.to_arrow()
                    inner = getattr(getattr(columns[name], "type", None), "value_type", None)
                    if isinstance(inner, pa.BaseExtensionType):  # intervals, as of pandas.cut
                        columns[name] = pa.array(series.to_native().cat.rename_categories(str))
                except (pa.ArrowException, TypeError, OverflowError, UnicodeEncodeError):
                    columns[name] = series.to_list()
        return from_columns(name, columns)
    except (pa.ArrowException, TypeError, nw.exceptions.NarwhalsError) as error:
        raise TableError(
            f"a {type(source).__name__} is not a table ({str(error).splitlines()[0]}). Give a "
            "path, a data frame of pandas, polars or Arrow, a dict of lists, or a list of dicts."
        ) from error


def with_export(table: Table, export: Export) -> Table:
    """Fill a table with what a labelling tool wrote."""
    data = from_columns(table.source, export.columns)
    return replace(table, data=data, export=export, notes=(*table.notes, *export.notes))


def refuse_repeated(source: str, titles: Sequence[str], other: str = "") -> None:
    """Refuse titles that come twice; `other` is what else the user can do."""
    twice = [title for title, n in Counter(titles).items() if n > 1]
    if twice:
        what = "without a title" if twice == [""] else f"called {name_some(twice)}"
        raise TableError(f"{source} has several columns {what}. Give each its own title.{other}")
