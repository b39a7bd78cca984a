"""A user's table: one reader and one meaning for Python and every command.

`read_table` opens whatever holds a table, `find_roles` says what its columns are, `labels` and
`features` turn it into arrays, `diagnose` explains it, `write_table` writes it.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from appellate._text import install

if find_spec("pyarrow") is None:  # pragma: no cover
    raise ImportError(f"Tables need pyarrow: {install('table')}")

from appellate.tables.cells import TableError, neutralize, printable
from appellate.tables.diagnosis import Diagnosis, diagnose
from appellate.tables.labels import Labels, read_labels
from appellate.tables.reading import Table, read_table
from appellate.tables.roles import Roles, find_roles
from appellate.tables.tools import Export, find_tool, open_export, write_suggestions
from appellate.tables.writing import check_ending, join, write_csv, write_table

if TYPE_CHECKING:
    from appellate.tables.encoding import (
        ColumnReading,
        TextEncoder,
        contributions,
        feature_kinds,
        features,
        find_column_readings,
        make_encoder,
    )
    from appellate.tables.vectors import embed_pictures, embed_texts

__all__ = [
    "ColumnReading",
    "Diagnosis",
    "Export",
    "Labels",
    "Roles",
    "Table",
    "TableError",
    "TextEncoder",
    "check_ending",
    "contributions",
    "diagnose",
    "embed_pictures",
    "embed_texts",
    "feature_kinds",
    "features",
    "find_column_readings",
    "find_roles",
    "find_tool",
    "join",
    "make_encoder",
    "neutralize",
    "open_export",
    "printable",
    "read_labels",
    "read_table",
    "write_csv",
    "write_suggestions",
    "write_table",
]


def __getattr__(name: str) -> Any:
    """Load what needs scikit-learn when it is asked for."""
    if name in __all__:
        home = "vectors" if name.startswith("embed") else "encoding"
        return getattr(import_module(f"appellate.tables.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
