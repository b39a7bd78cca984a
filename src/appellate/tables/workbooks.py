"""What a reader of Excel workbooks does not tell: cells far away, and cells read as empty."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from zipfile import BadZipFile, ZipFile

from appellate._text import SHOWN
from appellate.tables.cells import TableError, printable

_UNREADABLE = (
    BadZipFile,
    ElementTree.ParseError,
    LookupError,
    NotImplementedError,
    OSError,
    StopIteration,
    ValueError,
    zlib.error,
)
_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_STRICT = "{http://purl.oclc.org/ooxml/spreadsheetml/main}"
_APART = Path(__file__).with_name("_extent.py")
_UNPACKED = 1 << 30  # bytes of all members of an archive, from which on it is opened apart
_LARGEST_LIST = 16 << 20  # bytes of the list of sheets
_BLOCK = 4 << 20
_LARGE, _SPARSE = 20_000_000, 100  # cells of a sheet; cells for every one that is filled
_LARGEST = 1 << 28  # cells; the reader takes 32 bytes for each
_ANY = re.compile(rb"<(?:\w+:)?c[\s/>]")
_CELL = re.compile(rb"<(?:\w+:)?c(\s[^>]*?)?(?:/>|>(.*?)</(?:\w+:)?c>)", re.DOTALL)
_PLACE = re.compile(rb'\sr="([A-Z]{1,3})([0-9]{1,7})"')
_ERROR = re.compile(rb"<(?:\w+:)?v>([^<]*)<")
_VALUE = re.compile(rb"<(?:\w+:)?(?:v>[^<]|is\b)")
_FORMULA = re.compile(rb"<(?:\w+:)?f[\s/>]")
_MERGED = re.compile(rb'<(?:\w+:)?mergeCell\s[^>]*?ref="([A-Z]+[0-9]+:[A-Z]+[0-9]+)"')


@dataclass
class _Seen:
    """What was seen of a sheet."""

    cells: int = 0
    unclear: int = 0  # cells that are written in another way than programs write them
    # The outermost cells: their column and row, and their name.
    left: tuple[int, str] = (1 << 14, "")
    right: tuple[int, str] = (0, "")
    top: tuple[int, str] = (1 << 20, "")
    bottom: tuple[int, str] = (0, "")
    formulas: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)


def look_through(content: bytes, sheet: str, source: str) -> tuple[str, ...]:
    """Look through a sheet of an ``.xlsx`` file before it is read.

    Parameters
    ----------
    content : bytes
        The file. Other kinds (``.xls``, ``.xlsb``, ``.ods``) are for `check_apart`.
    sheet : str
        Name of the sheet that will be read.
    source : str
        What messages call the file.

    Returns
    -------
    tuple of str
        Notes: a hidden sheet, and cells that are read as empty.

    Raises
    ------
    TableError
        If a cell is so far away from the others that the sheet does not fit into memory.
    """
    try:
        with ZipFile(BytesIO(content)) as archive:
            member, state = _find_sheet(archive, sheet)
            if member is None:
                return ()
            with archive.open(member) as stream:
                seen = _scan(stream)
    except _UNREADABLE:
        check_apart(content, sheet, source)
        return ()  # whoever reads the file says what is wrong with it
    if seen.unclear:
        check_apart(content, sheet, source)
    _check_extent(seen, f"{source}, sheet {sheet!r}")
    notes = []
    if state:
        notes.append(f"sheet {sheet!r} is read, although it is hidden.")
    if seen.formulas:
        notes.append(
            f"{_some(seen.formulas, 'a formula without a stored result')}, so it is read as "
            "empty. Open the file in a spreadsheet program and save it there."
        )
    if seen.errors:
        notes.append(f"{_some(seen.errors, 'an error')}, so it is read as empty.")
    if seen.merged:
        notes.append(
            f"{_some(seen.merged, 'merged cells')}: only the first cell of each has the value, "
            "the others are read as empty. Split them, and fill every cell."
        )
    return tuple(map(printable, notes))


def is_clear(content: bytes) -> bool:
    """Tell whether `look_through` can look at a workbook: an ``.xlsx`` file of a usual size."""
    try:
        with ZipFile(BytesIO(content)) as archive:
            members = {each.filename.lower(): each.file_size for each in archive.infolist()}
    except _UNREADABLE:
        return False
    return "xl/workbook.xml" in members and sum(members.values()) <= _UNPACKED


def check_apart(content: bytes, sheet: str | int, source: str) -> None:
    """Open a workbook in a process of its own, which ends if there is not enough memory.

    Parameters
    ----------
    content : bytes
        The file, of any kind.
    sheet : str or int
        Name or number of the sheet that will be read.
    source : str
        What messages call the file.

    Raises
    ------
    TableError
        If the sheet cannot be opened, or its cells are so far away from each other that it does
        not fit into memory.
    """
    if not sys.executable:  # an embedded interpreter
        return
    paths = [path for path in sys.path if path]
    command = [sys.executable, "-P", str(_APART), *map(json.dumps, (paths, sheet, _LARGE))]
    done = subprocess.run(command, input=content, capture_output=True, check=False)
    if done.returncode == -getattr(signal, "SIGXCPU", 0) < 0:
        raise TableError(
            f"{source} cannot be opened as a spreadsheet in ten minutes of processor time. Save "
            "it as CSV or Parquet."
        )
    if done.returncode:
        raise TableError(
            f"{source} cannot be opened as a spreadsheet: it is damaged, or a cell is so far away "
            "from the others that it does not fit into memory. Delete rows and columns without "
            "content, and save it again, or as CSV."
        )
    found = json.loads(done.stdout)
    if "cells" in found:
        ends = [_cell_name(*found[side]) for side in ("right", "bottom")]
        seen = _Seen(found["cells"], right=(found["columns"], ends[0]), left=(1, ""), top=(1, ""))
        seen.bottom = found["rows"], ends[1]
        _check_extent(seen, f"{source}, sheet {found['name']!r}")


def _cell_name(row: int, column: int) -> str:
    """Name a cell as spreadsheets do.

    Examples
    --------
    >>> _cell_name(0, 0), _cell_name(1048575, 16383)
    ('A1', 'XFD1048576')
    """
    letters = ""
    column += 1
    while column:
        column, letter = divmod(column - 1, 26)
        letters = chr(65 + letter) + letters
    return f"{letters}{row + 1}"


def _some(cells: list[str], what: str) -> str:
    more = f" and {len(cells) - SHOWN} more" if len(cells) > SHOWN else ""
    return f"{', '.join(cells[:SHOWN])}{more}: {what}"


def _find_sheet(archive: ZipFile, sheet: str) -> tuple[str | None, str]:
    """Return the member of an archive that holds a sheet, and how it is hidden, if it is."""
    names = {name.lower(): name for name in archive.namelist()}
    if "xl/workbook.xml" not in names:
        return None, ""
    book = _parse(archive, names["xl/workbook.xml"])
    for main in (_MAIN, _STRICT):
        for each in book.iter(f"{main}sheet"):
            if each.get("name") == sheet:
                key = next((v for k, v in each.attrib.items() if k.endswith("}id")), None)
                links = _parse(archive, names["xl/_rels/workbook.xml.rels"])
                target = next(link.get("Target", "") for link in links if link.get("Id") == key)
                path = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
                hidden = each.get("state", "visible")
                return names[path.lower()], "" if hidden == "visible" else hidden
    return None, ""


def _parse(archive: ZipFile, name: str) -> ElementTree.Element:
    if archive.getinfo(name).file_size > _LARGEST_LIST:
        raise ValueError("too long a list of sheets")
    return ElementTree.fromstring(archive.read(name))


def _scan(stream: Any) -> _Seen:
    """Look at every cell of a sheet, block by block."""
    seen = _Seen()
    for block in _blocks(stream):
        seen.unclear += len(_ANY.findall(block))
        for found in _CELL.finditer(block):
            seen.unclear -= 1
            _note(seen, found[1] or b"", found[2] or b"")
        seen.merged += [each.decode() for each in _MERGED.findall(block)]
    return seen


def _blocks(stream: Any) -> Iterator[bytes]:
    """Yield parts of a sheet that end between two rows."""
    rest = b""
    while part := stream.read(_BLOCK):
        rest += part
        cut = max(rest.rfind(b"<row"), rest.rfind(b":row"))
        if cut > 0:
            yield rest[:cut]
            rest = rest[cut:]
    yield rest


def _note(seen: _Seen, attributes: bytes, inside: bytes) -> None:
    """Note a cell that is not empty."""
    place = _PLACE.search(attributes)
    if not inside:
        return
    if place is None:
        seen.unclear += 1
        return
    name = (place[1] + place[2]).decode()
    column, row = 0, int(place[2])
    for letter in place[1]:
        column = 26 * column + letter - 64
    seen.cells += 1
    seen.left, seen.right = min(seen.left, (column, name)), max(seen.right, (column, name))
    seen.top, seen.bottom = min(seen.top, (row, name)), max(seen.bottom, (row, name))
    if b't="e"' in attributes:
        value = _ERROR.search(inside)
        seen.errors.append(f"{name} ({value[1].decode(errors='replace') if value else 'error'})")
    elif b't="str"' not in attributes and _FORMULA.search(inside) and not _VALUE.search(inside):
        seen.formulas.append(name)


def _check_extent(seen: _Seen, where: str) -> None:
    """Refuse a sheet whose reader would need memory for cells that are not there."""
    rows, columns = seen.bottom[0] - seen.top[0] + 1, seen.right[0] - seen.left[0] + 1
    if not seen.cells or rows * columns < _LARGE:
        return
    if rows * columns > _SPARSE * seen.cells:
        names = list(dict.fromkeys((seen.right[1], seen.bottom[1])))
        far = f"cells {' and '.join(names)} are" if len(names) > 1 else f"cell {names[0]} is"
        raise TableError(
            f"{where}: {far} far away from the others, so the sheet would have {rows} rows and "
            f"{columns} columns. Delete those cells, and save the file again."
        )
    if rows * columns > _LARGEST:
        raise TableError(
            f"{where} has {rows} rows and {columns} columns, which is too much for a spreadsheet. "
            "Save it as CSV or Parquet."
        )
