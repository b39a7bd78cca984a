"""Read a user's table, whatever holds it: files, folders of shards, data frames."""

from __future__ import annotations

import fnmatch
import glob
import hashlib
import io
import os
import re
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from appellate._table_formats import FORMATS, Format, find_format, names_formats
from appellate._table_options import ReadingOptions, check_options, takes_options
from appellate._text import did_you_mean, listing
from appellate.tables import cells
from appellate.tables.cells import TableError, is_text, list_rows, name_some
from appellate.tables.columns import check_column, check_moments
from appellate.tables.objects import read_frame, refuse_repeated, with_export
from appellate.tables.tools import Export, open_export

_BOMS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_HIDDEN = (".", "_")  # as .ipynb_checkpoints, __MACOSX and _SUCCESS begin
_MATLAB = b"MATLAB "
_INDEX = re.compile(r"__index_level_\d+__|__null_dask_index__")  # of pandas, of Dask


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
        Name of the format, such as ``"csv"``; ``"frame"`` for a data frame.
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


@takes_options(ReadingOptions)
@names_formats
def read_table(source: Any, **options: Unpack[ReadingOptions]) -> Table:
    r"""Read a table from a file, several files, or a data frame.

    Parameters
    ----------
    source : str, path or data frame
        A file of <formats>, where JSON is lines, an array, or any orientation that pandas
        writes; a folder or a pattern such as ``"part-*.parquet"`` of files that together are
        one table, in natural order, without hidden files and folders; ``"-"`` for the standard
        input; a data frame of pandas, polars or Arrow, a list of dicts, or a dict of lists.
    **options
        How to read a file.

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
    check_options("read_table", ReadingOptions, options)
    header = options.get("header", "first") or "none"
    if header not in ("first", "none"):
        raise TableError(f"header={header!r} is neither 'first' nor 'none'.")
    given = {name: each for name, each in options.items() if each is not None and name != "header"}
    given |= {} if header == "first" else {"header": header}
    decimal, question = options.get("decimal"), options.get("question")
    if isinstance(source, Table):
        return source
    if decimal not in (None, ".", ","):
        raise TableError(f"decimal={decimal!r} is neither '.' nor ','.")
    if isinstance(source, (str, os.PathLike)):
        table = _read_path(os.fspath(source), given)
    else:
        table = Table("the table", read_frame(source, "the table"), "frame", native=source)
    found = find_format(table.kind)
    headed = found is not None and found.headed
    if header == "none" and not headed:
        raise TableError(
            f"header='none' is for text files and Excel, but {table.source} names its columns. "
            "Leave header= out."
        )
    _refuse_unused(table.source, found, given)
    if question is not None and table.export is None:
        raise TableError(
            f"{table.source} is not an export of a labelling tool and has no question "
            f"{question!r}. Leave question= out."
        )
    table = replace(table, data=_check_columns(table, headed), options=given)
    if headed and header == "first":
        table = replace(table, notes=(*table.notes, *_doubt_header(table)))
    return _find_decimals(table, decimal)


def _refuse_unused(source: str, found: Format | None, given: Mapping[str, Any]) -> None:
    """Refuse an option that is for other formats: nobody would read it."""
    for name in dict.fromkeys(name for each in FORMATS for name in each.options):
        takers = [title for each in FORMATS if name in each.options for title in each.titles]
        if name in given and not (found and name in found.options):
            raise TableError(
                f"{source} is {found.titles[0] if found else 'a data frame'}, but {name}= is only "
                f"for {listing(takers)}. Leave {name}= out."
            )


def _check_columns(table: Table, headed: bool) -> Any:
    """Return the columns under clean titles, without those that only number the rows."""
    data = table.data
    names = [str(name).rstrip("\0").strip() for name in data.column_names]
    kept = [i for i, name in enumerate(data.column_names) if not _INDEX.fullmatch(name)]
    kept = [i for i in kept if names[i] or i == 0 or data.column(i).null_count < len(data)]
    other = " If the file has no header, give header='none'." if headed else ""
    refuse_repeated(table.source, [names[i] for i in kept], other)
    if not len(data) or not kept:
        raise TableError(f"{table.source} has a header but no rows. Give at least two rows.")
    data = data.select(kept).rename_columns([names[i] for i in kept])
    for name, column in zip(data.column_names, data.columns, strict=True):
        if table.kind == "frame" and column.type in cells.TEXTS:
            check_column(table.where(name), column)
        check_moments(table.where(name), column)
    return cells.without_views(data)


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


def _read_path(path: str, options: Mapping[str, Any]) -> Table:
    """Read the file, the files in natural order, or the standard input that a path names."""
    if path == "-":
        stream = io.BytesIO(sys.stdin.buffer.read())
        return _read_stream("the standard input", path, stream, options)
    place, note = Path(path), tuple[str, ...]()
    if place.is_dir():
        files = [file for file in place.rglob("*") if not _is_hidden(file, place)]
        inside = {file: _format_of(file.suffix.lower()) for file in files}
        found = next((each for each in FORMATS if each in inside.values()), None)
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


def _format_of(ending: str) -> Format | None:
    """Return the format that the ending of a file means."""
    return next((each for each in FORMATS if ending in each.endings), None)


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
        return with_export(replace(whole, notes=(f"{n} files are read as one export.",)), export)
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
        _refuse_nul(source, text)
        return self.table(encoding=named, notes=notes), text


def _refuse_nul(source: str, text: str) -> None:
    """Refuse a text with a NUL in it, and say in which line."""
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise TableError(
            f"{source}, line {line}: a NUL byte, so this is not a text file. Give CSV, TSV, "
            "JSON, Parquet or Excel; if it is text in UTF-16, name its encoding (encoding=)."
        )


def _read_stream(source: str, path: str, stream: Any, options: Mapping[str, Any]) -> Table:
    """Read one file, or all of the standard input."""
    opened = Opened(source, path, stream, options)
    start = stream.read(4096)
    found = _recognize(source, start, Path(path).suffix.lower())
    named = options.get("encoding") or start.startswith(tuple(_BOMS))
    if not named and (found is None or not found.starts):
        _refuse_nul(source, start.decode("latin-1"))  # before gigabytes of them are read
    if found is None:
        found = _format_of(".json" if opened.content.lstrip()[:1] in b"{[" else ".csv")
    assert found is not None
    table: Table = found.read(replace(opened, kind=found.name))
    return table


def _recognize(source: str, start: bytes, ending: str) -> Format | None:
    """Say what a file is by how it begins and by its ending; None if neither tells."""
    if start.startswith(_MATLAB) or (ending == ".mat" and b"\0" in start):
        raise TableError(
            f"{source} is a MATLAB file, not a table. If it holds 'data' and 'partial_target', "
            "read it with appellate.datasets.load_partial_mat in Python, or compare methods on "
            "it with 'appellate compare'. Otherwise save its columns as CSV."
        )
    known = _format_of(ending)
    if b"\0" in start or (known and known.starts):  # a text may begin with the word PAR1, too
        begun = (each for each in FORMATS if start.startswith(each.starts or (b"\0\0\0",)))
        known = next(begun, known)
    return known
