"""The formats of tables: the only list of them, for readers, messages and help texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any


@dataclass(frozen=True)
class Format:
    """A kind of file that holds a table.

    Attributes
    ----------
    name : str
        What `appellate.tables.Table.kind` says.
    titles : tuple of str
        What people call it.
    endings : tuple of str
        Endings of the names of such files.
    starts : tuple of bytes
        How such files begin; empty for a text, which may begin with anything.
    home : str
        Module and function, ``"module:function"``, that makes a `Table` of an opened file. A
        format whose cells have types decorates it with `appellate.tables.columns.reads_columns`.
    typed : bool
        Whether columns keep their types; a result is then written in such a format only.
    headed : bool
        Whether a first row holds the titles, so that it can be missing.
    options : tuple of str
        Options of reading that only some formats have, and that this one has.
    """

    name: str
    titles: tuple[str, ...]
    endings: tuple[str, ...]
    starts: tuple[bytes, ...]
    home: str
    typed: bool = False
    headed: bool = False
    options: tuple[str, ...] = ()

    @property
    def read(self) -> Callable[[Any], Any]:
        """The function that reads."""
        return resolve_name(self.home)


#: All formats. If a folder holds files of several formats, the first of them counts.
FORMATS = [
    Format(
        "parquet",
        ("Parquet",),
        (".parquet", ".pq"),
        (b"PAR1",),
        "appellate.tables.columns:read_parquet",
        typed=True,
    ),
    Format(
        "arrow",
        ("Arrow",),
        (".arrow", ".feather"),
        (b"ARROW1", b"\xff\xff\xff\xff"),
        "appellate.tables.columns:read_arrow",
        typed=True,
    ),
    Format(
        "csv",
        ("CSV", "TSV"),
        (".csv", ".tsv", ".tab", ".txt"),
        (),
        "appellate.tables.delimited:read_csv_file",
        headed=True,
        options=("delimiter", "encoding"),
    ),
    Format(
        "json",
        ("JSON",),
        (".jsonl", ".ndjson", ".json"),
        (),
        "appellate.tables.objects:read_json_file",
        options=("encoding",),
    ),
    Format(
        "excel",
        ("Excel",),
        (".xlsx", ".xls", ".xlsb", ".ods"),
        (b"PK\x03\x04", b"\xd0\xcf\x11\xe0"),
        "appellate.tables.objects:read_workbook",
        headed=True,
        options=("sheet",),
    ),
]


def find_format(name: str) -> Format | None:
    """Return the format of a name; None for a data frame, which has none."""
    return next((each for each in FORMATS if each.name == name), None)


def format_titles() -> str:
    """List all formats for a sentence.

    Examples
    --------
    >>> format_titles()
    'CSV, TSV, JSON, Excel, Parquet or Arrow'
    """
    ordered = sorted(FORMATS, key=lambda each: each.typed)  # those that everyone knows first
    titles = [title for each in ordered for title in each.titles]
    return f"{', '.join(titles[:-1])} or {titles[-1]}"


def names_formats(function: Any) -> Any:
    """Write the formats into a docstring, in the place of ``<formats>``."""
    if function.__doc__:  # which python -OO drops
        function.__doc__ = function.__doc__.replace("<formats>", format_titles())
    return function
