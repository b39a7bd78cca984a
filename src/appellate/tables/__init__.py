"""A user's table: one reader and one meaning for Python and every command.

`read_table` opens whatever holds a table, `find_roles` says what its columns are, `labels` and
`features` turn it into arrays, `diagnose` explains it, `write_table` writes it.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from appellate._text import install

if find_spec("pyarrow") is None:  # pragma: no cover
    raise ImportError(f"Tables need pyarrow: {install('table')}")

from appellate.tables.cells import Labels, TableError, neutralize, printable, read_labels
from appellate.tables.diagnosis import Diagnosis, diagnose
from appellate.tables.reading import Table, read_table
from appellate.tables.roles import Roles, find_roles
from appellate.tables.writing import check_ending, join, write_csv, write_table

if TYPE_CHECKING:
    from appellate.tables.encoding import TextEncoder, feature_kinds, features, make_encoder

__all__ = [
    "Diagnosis",
    "Labels",
    "Roles",
    "Table",
    "TableError",
    "TextEncoder",
    "check_ending",
    "diagnose",
    "feature_kinds",
    "features",
    "find_roles",
    "join",
    "make_encoder",
    "neutralize",
    "printable",
    "read_labels",
    "read_table",
    "write_csv",
    "write_table",
]

_ENCODING = ("TextEncoder", "feature_kinds", "features", "make_encoder")


def __getattr__(name: str) -> Any:
    """Load what needs scikit-learn when it is asked for."""
    if name in _ENCODING:
        from appellate.tables import encoding

        return getattr(encoding, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
