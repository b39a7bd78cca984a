"""Read a user's table, whatever holds it: files, folders of shards, data frames."""

from __future__ import annotations

import csv
import fnmatch
import glob
import hashlib
import inspect
import io
import json
import os
import re
import sys
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from appellate._text import did_you_mean, install
from appellate.tables import cells
from appellate.tables.cells import TableError, as_text, is_text, list_rows, name_some, restore
from appellate.tables.quick import Cells, read_quickly
from appellate.tables.tools import Export, find_tool, name_classes, open_export
from appellate.tables.workbooks import check_apart, is_clear, look_through

_BOMS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_DELIMITERS = ("\t", ";", ",", "|")  # in this order where several part a file equally well
_SAMPLE = 1 << 20  # letters in which the delimiter is looked for
_BLOCK = 20_000  # rows that are Python objects at a time
_HALF = re.compile("[\ud800-\udfff]")
_HIDDEN = (".", "_")  # as .ipynb_checkpoints, __MACOSX and _SUCCESS begin
_MATLAB = b"MATLAB "
_LATE = {"", "approve", "reject"}  # titles of Mechanical Turk that rows may end before
_INDEX = re.compile(r"__index_level_\d+__|__null_dask_index__")  # of pandas, of Dask
csv.field_size_limit(1 << 30)


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Named columns of equal length, in Arrow, and their source.

    Attributes
    ----------
    source : str
        What the table is called in messages.
    data : pyarrow.Table
        The columns; all texts if they were read from CSV.
    kind : str
        ``"csv"``, ``"parquet"``, ``"arrow"``, ``"json"``, ``"excel"`` or ``"frame"``.
    notes : tuple of str
        What was found and guessed on the way.
    path : str or None
        What was named to read it; None for a data frame.
    delimiter, encoding, decimal, sheet : str or None
        How it was read; `decimal` is ``","`` where numbers have decimal commas.
    grouped, dotted : frozenset of str
        Columns whose commas, or dots, group thousands: ``1,234`` or ``1.234`` is 1234.
    guessed : tuple of str
        Those of the notes that say what marks in numbers mean, which a model may know better.
    native : object
        The data frame that was given.
    digest : str
        SHA-256 of the file's bytes; empty for a data frame.
    options : dict
        Options of `read_table` that were given, to read it in the same way again.
    export : Export or None
        What a labelling tool wrote, if it came from one.
    lines : ndarray of int, shape (n,), or None
        Lines, from 1, at which the rows of one text file or sheet begin; None of all else.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = read_table(pa.table({"x": [1.5, 2.0], " names ": ["anna|bob", "bob"]}))
    >>> table, table.names
    (Table(the table, 2 rows, 2 columns), ['x', 'names'])
    >>> table.find(["n*"], "candidates")
    ('names',)
    """

    source: str
    data: Any
    kind: str
    notes: tuple[str, ...] = ()
    path: str | None = None
    delimiter: str = ","
    encoding: str | None = None
    decimal: str = "."
    grouped: frozenset[str] = frozenset()
    dotted: frozenset[str] = frozenset()
    guessed: tuple[str, ...] = ()
    sheet: str | None = None
    native: Any = None
    digest: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    export: Export | None = None
    lines: NDArray[np.intp] | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.data.num_rows)

    def __repr__(self) -> str:
        """Name the source and the size."""
        return f"Table({self.source}, {len(self)} rows, {len(self.names)} columns)"

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the file's bytes, or of titles, types and cells of a data frame."""
        if self.digest:
            return self.digest
        digest = hashlib.sha256()
        sink = SimpleNamespace(write=digest.update, flush=bool, close=bool, closed=False)
        plain = self.data.replace_schema_metadata(None).combine_chunks()
        with pa.PythonFile(sink, "w") as file, pa.ipc.new_stream(file, plain.schema) as stream:
            stream.write_table(plain)
        return digest.hexdigest()

    @property
    def home(self) -> Path:
        """The folder that names of files in the cells are relative to."""
        path = Path(self.path or "")
        return path if path.is_dir() else path.parent

    @property
    def names(self) -> list[str]:
        """Titles of the columns."""
        return list(self.data.column_names)

    def texts(self, name: str) -> Any:
        """Return a column as an Arrow array of texts, null where empty; see `cells.texts`."""
        return cells.texts(self.data.column(name))

    def numbers(self, name: str, missing: Sequence[str] = ()) -> NDArray[np.float64] | None:
        """Return a column as numbers, NaN where empty or `missing`; None if it is none of them."""
        return cells.numbers(self.data.column(name), self.style(name), missing)

    def style(self, name: str) -> cells.Style:
        """Say how numbers of a column are written if they are texts, see `cells.numbers`."""
        if name in self.grouped:
            return "1,234"
        if name in self.dotted:
            return "1.234"
        return "," if self.decimal == "," else "."

    def where(self, name: str, rows: Sequence[int] | NDArray[Any] = ()) -> str:
        """Say for a message where something is: the table, a column, rows and their lines."""
        place = f"{self.source}, column {name_some([name])}"
        return f"{place}, {list_rows(rows, self.lines)}" if len(rows) else place

    def find(self, patterns: str | Sequence[str], role: str = "") -> tuple[str, ...]:
        """Return the columns named by names, patterns such as ``w*`` or lists ``a,b``.

        Parameters
        ----------
        patterns : str or sequence of str
            A name counts before a pattern, and a pattern before a list.
        role : str, default=""
            What they are wanted for; the message names it if a column does not exist.

        Returns
        -------
        tuple of str
            In the order of the patterns, each once.
        """
        composed = {unicodedata.normalize("NFC", name): name for name in self.names}
        found: list[str] = []
        for pattern in [patterns] if isinstance(patterns, str) else patterns:
            wanted = unicodedata.normalize("NFC", str(pattern)).strip()
            if wanted in composed:
                names = [composed[wanted]]
            else:
                names = [composed[name] for name in fnmatch.filter(composed, wanted)]
            if not names and "," in wanted:
                names = list(self.find(wanted.split(","), role))
            if not names:
                raise TableError(
                    f"{self.source} has no column {name_some([wanted])}"
                    f"{f' ({role})' if role else ''}.{did_you_mean(wanted, self.names)} Its "
                    f"columns: {name_some(self.names, 12)}."
                )
            found += names
        return tuple(dict.fromkeys(found))


def read_table(
    source: Any,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    sheet: str | int | None = None,
    question: str | None = None,
    header: str | None = "first",
) -> Table:
    r"""Read a table from a file, several files, or a data frame.

    Parameters
    ----------
    source : str, path or data frame
        A file of CSV, TSV, Parquet, Arrow, JSON (lines, an array, or any orientation that
        pandas writes) or Excel; a folder or a pattern such as ``"part-*.parquet"`` of files that
        together are one table, in natural order, without hidden files and folders; ``"-"`` for
        the standard input; a data frame of pandas, polars or Arrow, a list of dicts, or a dict
        of lists.
    delimiter : str, default=None
        What parts the cells of a text file; by default the tab, semicolon, comma or bar that
        parts its first rows most evenly, outside quotes.
    encoding : str, default=None
        How the letters of a text file are stored; by default what its byte order mark says,
        else UTF-8, else that of Windows (cp1252), which is noted.
    decimal : str, default=None
        ``"."`` or ``","``; by default decimal commas are read in columns of numbers that have
        them, where a comma does not separate the cells. Commas that are all followed by three
        digits group thousands, unless another column has decimal commas; with ``"."`` they do
        so in every file. Dots that are all followed by three digits group thousands in a file
        with decimal commas, or in one of semicolons if some cells have no dot, or two.
    sheet : str or int, default=None
        Sheet of an Excel file; by default the first.
    question : str, default=None
        What annotators were asked, in the export of a labelling tool; by default the question with
        the most answers.
    header : {"first", "none"} or None, default="first"
        Whether the first row of a text file or an Excel sheet holds the titles. ``"none"`` or
        None if it does not: the columns are then called ``"0"``, ``"1"`` and so on.

    Returns
    -------
    Table
        Columns, and what was found and guessed.

    Raises
    ------
    TableError
        If it cannot be read: what is wrong, where, and what to do.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "own.csv").write_text("w;names\n1,5;anna|bob\n2,0;bob\n")
    ...     table = read_table(f"{folder}/own.csv")
    >>> table.numbers("w")
    array([1.5, 2. ])
    >>> print(*table.notes, sep="\n")
    cells are separated by ';'.
    decimal commas are read in 'w'.
    """
    given = dict(locals())
    options = {name: given[name] for name in READING if given[name] is not None}
    options["header"] = _check_header(header)
    if isinstance(source, Table):
        return source
    if decimal not in (None, ".", ","):
        raise TableError(f"decimal={decimal!r} is neither '.' nor ','.")
    if isinstance(source, (str, os.PathLike)):
        table = _read_path(os.fspath(source), options)
    else:
        table = _read_frame(source)
    if options["header"] == "first":
        del options["header"]
    elif table.kind not in ("csv", "excel"):
        raise TableError(
            f"header='none' is for text files and Excel, but {table.source} names its columns. "
            "Leave header out."
        )
    if question is not None and table.export is None:
        raise TableError(
            f"{table.source} is not an export of a labelling tool and has no question "
            f"{question!r}. Leave question out."
        )
    data = table.data
    names = [str(name).strip() for name in data.column_names]
    kept = [i for i, name in enumerate(data.column_names) if not _INDEX.fullmatch(name)]
    kept = [i for i in kept if names[i] or i == 0 or data.column(i).null_count < len(data)]
    _refuse_repeated(table, [names[i] for i in kept])
    if not len(data) or not kept:
        raise TableError(f"{table.source} has a header but no rows. Give at least two rows.")
    data = data.select(kept).rename_columns([names[i] for i in kept])
    for name, column in zip(data.column_names, data.columns, strict=True):
        if table.kind == "frame" and column.type in cells.TEXTS:
            _check_column(table.where(name), column)
        _check_moments(table.where(name), column)
    table = replace(table, data=cells.without_views(data), options=options)
    if table.kind in ("csv", "excel") and "header" not in options:
        table = replace(table, notes=(*table.notes, *_doubt_header(table)))
    return _find_decimals(table, decimal)


#: Names of the options that say how a file is read.
READING = tuple(name for name in inspect.signature(read_table).parameters if name != "source")


def _check_header(header: str | None) -> str:
    header = "none" if header is None else header
    if header not in ("first", "none"):
        raise TableError(f"header={header!r} is neither 'first' nor 'none'.")
    return header


def _doubt_header(table: Table) -> Iterator[str]:
    """Say that the titles look like a row, as in a file without a header."""
    titles = [title for title in table.names if title]
    numbers = [cells.as_number(title) for title in titles]
    numbered = numbers in ([*range(len(numbers))], [*range(1, len(numbers) + 1)])
    if not titles or numbered:  # as pandas numbers columns without titles
        return
    if all(number is not None and number == number for number in numbers):
        why = "all titles are numbers"
    elif len(titles) > 1 and all(
        pc.any(pc.equal(table.texts(title), title)).as_py() for title in titles
    ):
        why = "every title is also a cell of its column"
    else:
        return
    yield (
        f"the first row is used as the header ({name_some(titles, 3)}), but {why}. If the file "
        "has no header, give header='none'."
    )


def _has(mark: str, column: Any) -> bool:
    """Tell whether some text of a column has a mark."""
    kind = column.type
    if not is_text(kind):
        return False
    texts = column.cast(kind.value_type) if pa.types.is_dictionary(kind) else column
    return bool(pc.any(pc.match_substring(texts, mark)).as_py())


def _find_decimals(table: Table, decimal: str | None) -> Table:
    """Find out what the commas and dots of numbers mean: decimals or thousands."""
    columns = dict(zip(table.names, table.data.columns, strict=True))
    commas = {name: column for name, column in columns.items() if _has(",", column)}
    grouped = [n for n, c in commas.items() if cells.numbers(c, "1,234") is not None]
    if decimal == ".":
        return replace(table, grouped=frozenset(grouped))
    if decimal is None and table.delimiter == ",":
        if not grouped:
            return table
        note = (
            f"numbers such as '1,234' are read as texts in {name_some(grouped)}. If the comma "
            "groups thousands, give decimal='.'."
        )
        return replace(table, notes=(*table.notes, note), guessed=(note,))
    dots = _find_dots(table, decimal)
    mixed = [n for n in commas if n in dots]  # 1.234,5
    found = [n for n, c in commas.items() if cells.numbers(c, ",") is not None]
    plain = [name for name in (*found, *mixed) if name not in grouped]
    by_comma = decimal == "," or bool(plain)
    dotted = [name for name, sure in dots.items() if sure or by_comma]
    notes = list[str]()
    if by_comma:
        notes += [f"decimal commas are read in {name_some(found)}."] if found else []
        doubtful = [name for name in found if name in grouped and decimal is None]
        if doubtful:
            notes.append(
                f"every comma in {name_some(doubtful)} is followed by three digits; they are "
                f"read as decimal commas, as in {name_some(plain[:1])}. If they group thousands, "
                "give decimal='.'."
            )
        grouped = []
    elif grouped:
        notes.append(
            f"commas group thousands in {name_some(grouped)}: '1,234' is read as 1234. If they "
            "are decimal commas, give decimal=','."
        )
    notes += _tell_dots(dots, dotted)
    return replace(
        table,
        decimal="," if by_comma and found else table.decimal,
        grouped=frozenset(grouped),
        dotted=frozenset(dotted),
        notes=(*table.notes, *notes),
        guessed=tuple(notes),
    )


def _find_dots(table: Table, decimal: str | None) -> dict[str, bool]:
    """Return the columns whose dots may group thousands, and whether they must."""
    if decimal != "," and table.delimiter != ";":
        return {}
    columns = zip(table.names, table.data.columns, strict=True)
    found = {name: cells.dots_group(column) for name, column in columns if _has(".", column)}
    return {name: sure for name, sure in found.items() if sure is not None}


def _tell_dots(dots: Mapping[str, bool], dotted: Sequence[str]) -> Iterator[str]:
    """Say how dots that may group thousands are read."""
    if dotted:
        yield (
            f"dots group thousands in {name_some(dotted)}: '1.234' is read as 1234. If they are "
            "decimal points, give decimal='.'."
        )
    unsure = [name for name in dots if name not in dotted]
    if unsure:
        yield (
            f"every dot in {name_some(unsure)} is followed by three digits; they are read as "
            "decimal points. If they group thousands, give decimal=','."
        )


def _find_damage(column: Any) -> str:
    for row, cell in enumerate(column):
        try:
            cell.as_py()
        except UnicodeDecodeError as error:
            return f", row {row}: byte 0x{error.object[error.start]:02x} is not UTF-8"
    return ": damaged"


def _read_path(path: str, options: Mapping[str, Any]) -> Table:
    """Read the file, the files in natural order, or the standard input that a path names."""
    if path == "-":
        stream = io.BytesIO(sys.stdin.buffer.read())
        return _read_stream("the standard input", path, stream, options)
    place, note = Path(path), tuple[str, ...]()
    if place.is_dir():
        files = [file for file in place.rglob("*") if not _is_hidden(file, place)]
        inside = {file: _kind_of(file) for file in files}
        found = next((each.name for each in FORMATS if each.name in inside.values()), None)
        if found is None:
            raise TableError(f"'{path}' is a folder without a table. Name a file.")
        left = sorted(file.name for file, kind in inside.items() if kind not in (None, found))
        note = (f"left out of the folder: {name_some(left)}.",) if left else ()
        files = [file for file, kind in inside.items() if kind == found]
    else:
        files = [Path(name) for name in glob.glob(path, recursive=True) if Path(name).is_file()]
        files = [place] if place.exists() else files
    if not files:
        beside = [file.name for file in place.parent.iterdir()] if place.parent.is_dir() else []
        near = [place.with_name(name) for name in get_close_matches(place.name, beside, n=1)]
        guess = f"Did you mean {name_some(near)}?" if near else "Check the path."
        raise TableError(f"cannot find the file {name_some([path])}. {guess}")
    parts = {file: re.split(r"(\d+)", str(file)) for file in files}
    files.sort(key=lambda file: [int(p) if p.isdecimal() else p for p in parts[file]])
    own = options if len(files) == 1 else {**options, "question": None}
    tables: list[Table] = []
    try:
        for file in files:
            with file.open("rb") as opened:
                source = f"'{cells.printable(str(file))}'"
                table = _read_stream(source, str(file), opened, own)
            tables.append(table)
    except (OSError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or "it does not fit into memory"
        raise TableError(f"cannot read '{path}': {reason}.") from error
    if len(tables) == 1:
        return replace(tables[0], path=path, notes=(*tables[0].notes, *note))
    return _join(path, files, tables, note, options.get("question"))


def _kind_of(file: Path) -> str | None:
    """Name the format that the ending of a file means."""
    ending = file.suffix.lower()
    return next((each.name for each in FORMATS if ending in each.endings), None)


def _is_hidden(file: Path, folder: Path) -> bool:
    """Tell whether a file, or a folder on the way to it, is hidden."""
    return any(part.startswith(_HIDDEN) for part in file.relative_to(folder).parts)


def _join(
    path: str, files: list[Path], tables: list[Table], note: tuple[str, ...], question: str | None
) -> Table:
    """Make one table, or one export of a labelling tool, of several files."""
    first, n = tables[0], len(tables)
    digest = hashlib.sha256("".join(table.digest for table in tables).encode()).hexdigest()
    whole = replace(first, source=f"'{path}'", path=path, digest=digest, lines=None)
    exports = [table.export for table in tables if table.export]
    if len(exports) == n:  # a file a person, as doccano writes them, or parts of one
        people = [f.stem for f, each in zip(files, exports, strict=True) for _ in each.records]
        records = [record for each in exports for record in each.records]
        asked: dict[str, Any] = {"question": question, "people": people}
        export = open_export(records, exports[0].tool, source=whole.source, **asked)
        return _with_export(replace(whole, notes=(f"{n} files are read as one export.",)), export)
    for table in tables[1:]:
        differing = {*map(str.strip, first.names)} ^ {*map(str.strip, table.names)}
        if differing:
            raise TableError(
                f"{table.source} and {first.source} differ in {name_some(sorted(differing))}. "
                "Files of one table must have the same columns."
            )
    try:
        data = pa.concat_tables([table.data for table in tables], promote_options="permissive")
    except pa.ArrowException as error:
        raise TableError(
            f"{first.source} and the other files do not fit together: {error}."
        ) from error
    said = f"{n} files are read as one table, {files[0].name} first."
    own = dict.fromkeys(each for table in tables for each in table.notes)
    return replace(whole, data=data, notes=(said, *note, *own))


@dataclass(frozen=True, eq=False)
class Opened:
    """One file, or all of the standard input.

    Attributes
    ----------
    source : str
        What the file is called in messages.
    path : str
        What was named to read it.
    stream : binary stream
        Its bytes.
    options : mapping
        Options of `read_table` that were given.
    kind : str
        Name of the format.
    """

    source: str
    path: str
    stream: Any
    options: Mapping[str, Any]
    kind: str = ""

    @cached_property
    def content(self) -> bytes:
        """All bytes; an error if there are none but white space."""
        self.stream.seek(0)
        content: bytes = self.stream.read()
        if not content.strip():
            raise TableError(f"{self.source} is empty. Give a table with a header and rows.")
        return content

    def table(self, digest: str = "", **more: Any) -> Table:
        """Return a table of this file, to be filled."""
        digest = digest or hashlib.sha256(self.content).hexdigest()
        return Table(self.source, None, self.kind, path=self.path, digest=digest, **more)

    def decode(self) -> tuple[Table, str]:
        """Return a table to be filled that knows the encoding, and the text of the file."""
        source, content = self.source, self.content
        encoding, notes = self.options.get("encoding"), tuple[str, ...]()
        begun = (e for bom, e in _BOMS.items() if content.startswith(bom))
        named = encoding or next(begun, "utf-8")
        named = "utf-8-sig" if named.lower() in ("utf-8", "utf8") else named
        try:
            text = content.decode(named)
        except LookupError as error:
            raise TableError(f"unknown encoding {named!r}. Name one such as 'latin-1'.") from error
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            rest = content.decode("utf-8", errors="ignore")
            if encoding is not None or b"\0" in content or not rest.isascii():
                what = f"is not {named}"
                if encoding is None:
                    what = "has another encoding than the rest"
                raise TableError(
                    f"{source}, line {line}: byte 0x{content[error.start]:02x} {what}. Save the "
                    "file as UTF-8, or name its encoding (encoding=)."
                ) from error
            named = "cp1252" if not re.search(rb"[\x81\x8d\x8f\x90\x9d]", content) else "latin-1"
            text = content.decode(named)
            notes = (f"not UTF-8 (line {line}), so read as {named}: if letters look wrong, name "
                     "the encoding (encoding=).",)  # fmt: skip
        if "\0" in text:
            line = text.count("\n", 0, text.index("\0")) + 1
            raise TableError(
                f"{source}, line {line}: a NUL byte, so this is not a text file. Give CSV, TSV, "
                "JSON, Parquet or Excel; if it is text in UTF-16, name its encoding (encoding=)."
            )
        return self.table(encoding=named, notes=notes), text


def _read_stream(source: str, path: str, stream: Any, options: Mapping[str, Any]) -> Table:
    """Read one file, or all of the standard input."""
    opened = Opened(source, path, stream, options)
    start = stream.read(4096)
    found = _find_format(source, start, Path(path).suffix.lower())
    if found is None:
        found = _FORMATS["json" if opened.content.lstrip()[:1] in b"{[" else "csv"]
    return found.read(replace(opened, kind=found.name))


def _find_format(source: str, start: bytes, ending: str) -> Format | None:
    """Say what a file is by how it begins and by its ending; None if neither tells."""
    if start.startswith(_MATLAB) or (ending == ".mat" and b"\0" in start):
        raise TableError(
            f"{source} is a MATLAB file, not a table. If it holds 'data' and 'partial_target', "
            "read it with appellate.datasets.load_partial_mat in Python, or compare methods on "
            "it with 'appellate compare'. Otherwise save its columns as CSV."
        )
    known = next((each for each in FORMATS if ending in each.endings), None)
    if b"\0" in start or (known and known.starts):  # a text may begin with the word PAR1, too
        begun = (each for each in FORMATS if start.startswith(each.starts or (b"\0\0\0",)))
        known = next(begun, known)
    return known


def _read_columns(read: Callable[[Any], Any]) -> Callable[[Opened], Table]:
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
            names = [cells.printable(name) for name in data.column_names]
        except (pa.ArrowException, OSError, MemoryError, ValueError) as error:
            said = cells.printable(str(error).partition("\n")[0]) or type(error).__name__
            raise TableError(
                f"{source} cannot be read as {opened.kind.capitalize()}: {said.rstrip('.')}. "
                "Write the file again."
            ) from error
        for name, column in zip(names, data.columns, strict=True):
            _check_column(f"{source}, column '{name}'", column)
        if opened.path != "-":  # of Hugging Face, perhaps
            data = name_classes(data, Path(opened.path).parent)
        return replace(opened.table(hashed.result().hexdigest()), data=data)

    return made


def _read_parquet(file: Any) -> Any:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(file) as opened:
        return opened.read()


def _read_arrow(file: Any) -> Any:
    whole = file.read_bytes() if isinstance(file, Path) else file.getvalue()
    try:
        return pa.ipc.open_file(pa.py_buffer(whole)).read_all()
    except pa.ArrowInvalid:
        return pa.ipc.open_stream(pa.py_buffer(whole)).read_all()


def _check_column(where: str, column: Any) -> None:
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


def _check_moments(where: str, column: Any) -> None:
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


def _read_csv(opened: Opened) -> Table:
    """Read separated cells: with pyarrow if the file is regular, else row by row."""
    table, text = opened.decode()
    delimiter, header = opened.options.get("delimiter"), opened.options["header"]
    newline = "\n" if "\n" in text else "\r"  # of an old Macintosh
    if delimiter is None:
        delimiter = _find_delimiter(text, newline)
    elif len(delimiter := delimiter.replace("\\t", "\t")) != 1:
        raise TableError(f"the delimiter {delimiter!r} is not one character.")
    found = read_quickly(text.encode(errors="surrogatepass"), delimiter, titled=header == "first")
    late = list[str]()
    if found is None:
        found, late = _read_carefully(table.source, text, newline, delimiter, header)
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


def _read_carefully(
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
            if len(rows) == _BLOCK:
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
            sample = io.StringIO(text[:_SAMPLE], newline)
            for row in islice(csv.reader(sample, delimiter=delimiter, strict=True), 50):
                widths += [len(row)] if row else []
        except csv.Error:
            widths = widths if len(text) > _SAMPLE else widths[:1]
        if widths and widths[0] > 1:
            body = {*widths[1:]}
            early = len(body) == 1 and 1 < min(body) < widths[0]  # all rows end early
            score = (1.0 if early else widths.count(widths[0]) / len(widths)), widths[0]
            found, best = (delimiter, score) if score > best else (found, best)
    return found


def _read_json(opened: Opened) -> Table:
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
            data = _from_columns(source, columns)
            return replace(table, data=data, notes=(*table.notes, *notes))
        lines = [(i, line) for i, line in enumerate(text.split("\n"), 1) if line.strip()]
        records = [_parse(source, line, i) for i, line in lines]
        begun = np.array([i for i, _ in lines], dtype=np.intp)
    tool = find_tool(records)
    if tool is not None:
        export = open_export(records, tool, source=source, question=question)
        return _with_export(table, export)
    for i, record in enumerate(records):
        if not isinstance(record, dict):
            where = f"entry {i}" if begun is None else f"line {begun[i]}"
            raise TableError(f"{source}, {where}: not an object. Write one object a row.")
    return replace(table, data=_from_columns(source, _turn(records)), lines=begun)


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


def _with_export(table: Table, export: Export) -> Table:
    data = _from_columns(table.source, export.columns)
    return replace(table, data=data, export=export, notes=(*table.notes, *export.notes))


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


def _from_columns(source: str, columns: Mapping[Any, Sequence[Any]]) -> Any:
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
                    _refuse_arrays(f"{source}, column '{cells.printable(name)}'", values)
                    texts = [as_text(value) or None for value in values]
                    arrays[name] = pa.array(texts, pa.string())
        except UnicodeEncodeError as error:
            rows = [i for i, value in enumerate(values) if _HALF.search(as_text(value))]
            where = f"row {rows[0]}" if rows else "title"
            raise TableError(
                f"{source}, column '{cells.printable(name)}', {where}: half a letter (a lone "
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


def _read_excel(opened: Opened) -> Table:
    table, content = opened.table(), opened.content
    sheet, header = opened.options.get("sheet"), opened.options["header"]
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
    data = _from_columns(table.source, numbered).rename_columns(titles)
    return replace(table, data=data, sheet=name, notes=notes, lines=lines)


def _refuse_repeated(table: Table, titles: Sequence[str]) -> None:
    twice = [title for title, n in Counter(titles).items() if n > 1]
    if twice:
        what = "without a title" if twice == [""] else f"called {name_some(twice)}"
        other = ""
        if table.kind in ("csv", "excel"):
            other = " If the file has no header, give header='none'."
        raise TableError(
            f"{table.source} has several columns {what}. Give each its own title.{other}"
        )


def _read_frame(source: Any) -> Table:
    if hasattr(source, "iloc"):  # pandas has any titles, twice, or 0 beside "0"
        own = Table("the table", None, "frame")
        _refuse_repeated(own, [as_text(title) for title in getattr(source, "columns", ())])
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
        data = _from_columns("the table", columns)
    except (pa.ArrowException, TypeError, nw.exceptions.NarwhalsError) as error:
        raise TableError(
            f"a {type(source).__name__} is not a table ({str(error).splitlines()[0]}). Give a "
            "path, a data frame of pandas, polars or Arrow, a dict of lists, or a list of dicts."
        ) from error
    return Table("the table", data, "frame", native=source)


# -- the formats ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Format:
    """A kind of file that holds a table.

    Attributes
    ----------
    name : str
        What `Table.kind` says.
    endings : tuple of str
        Endings of the names of such files.
    starts : tuple of bytes
        How such files begin; empty for a text, which may begin with anything.
    read : callable
        Reads an `Opened` file and returns a `Table`. `_read_columns` makes one of a function that
        reads a pyarrow.Table.
    """

    name: str
    endings: tuple[str, ...]
    starts: tuple[bytes, ...]
    read: Callable[[Opened], Table]


#: All formats. If a folder holds files of several formats, the first of them counts.
FORMATS = [
    Format("parquet", (".parquet", ".pq"), (b"PAR1",), _read_columns(_read_parquet)),
    Format(
        "arrow",
        (".arrow", ".feather"),
        (b"ARROW1", b"\xff\xff\xff\xff"),
        _read_columns(_read_arrow),
    ),
    Format("csv", (".csv", ".tsv", ".tab", ".txt"), (), _read_csv),
    Format("json", (".jsonl", ".ndjson", ".json"), (), _read_json),
    Format(
        "excel",
        (".xlsx", ".xls", ".xlsb", ".ods"),
        (b"PK\x03\x04", b"\xd0\xcf\x11\xe0"),
        _read_excel,
    ),
]
_FORMATS = {each.name: each for each in FORMATS}
