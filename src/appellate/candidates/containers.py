"""Open the containers that labels come in: frames, series, arrays, sparse matrices, lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from appellate.candidates.names import naming, object_array


def open_labels(y: Any) -> tuple[Any, NDArray[Any] | None]:
    """Return y as frame, 2-D array, sparse matrix, 1-D array or list, and its row ids."""
    if y is None:
        raise ValueError("Expected array-like (array or non-string sequence), got None for y.")
    source, ids = _from_frame(y), None
    if isinstance(source, (nw.DataFrame, nw.Series)):
        ids = row_index(y)
        source = source if isinstance(source, nw.DataFrame) else plain_column(source)
    elif not sp.issparse(source):
        source = _array_or_list(y)
    if getattr(getattr(source, "dtype", None), "kind", "") == "c":
        raise ValueError("Complex data not supported: labels and 0/1 entries are not complex.")
    if not (source.shape[0] if hasattr(source, "shape") else len(source)):
        raise ValueError("y has no rows.")
    return source, ids


def _from_frame(y: Any) -> Any:
    try:
        return nw.from_native(y, eager_only=True, allow_series=True, pass_through=True)
    except DuplicateError:
        twice = [repr(title) for title, count in Counter(y.columns).items() if count > 1]
    raise ValueError(f"duplicate {naming('column', twice)}. Give every column its own name.")


def row_index(frame: Any) -> NDArray[Any] | None:
    """Return the index of a pandas object, unless it merely counts the rows."""
    index = getattr(frame, "index", None)
    if index is None or callable(index) or not hasattr(index, "to_numpy"):
        return None
    values: NDArray[Any] = index.to_numpy()
    return None if np.array_equal(values, np.arange(len(values))) else values


def plain_column(series: Any) -> NDArray[Any]:
    """Return numbers and booleans in their own type, anything else as objects."""
    if series.dtype.is_numeric() or series.dtype in (nw.Boolean, nw.Unknown):
        return np.asarray(series.to_numpy())
    return object_array(series.to_list())


def _array_or_list(y: Any) -> NDArray[Any] | list[Any]:
    if np.ma.is_masked(y):
        raise ValueError("y has masked entries. Fill them or drop the rows.")
    if hasattr(y, "__array__"):
        array = np.asarray(y)
        if array.ndim in (1, 2):
            return array
        raise ValueError(
            f"y has {array.ndim} dimensions. Give one label or set a row (1-D) "
            "or a 0/1 matrix (2-D)."
        )
    if isinstance(y, Sequence) and not isinstance(y, (str, bytes, bytearray)):
        return list(y)
    raise TypeError(
        f"y is a {type(y).__name__}, not a sequence with one entry a row. Give a matrix, a data "
        "frame or a list of candidate sets; turn an iterator into list(y), a dict into "
        "list(y.values()), a lazy frame into y.collect()."
    )


def table_columns(source: Any) -> tuple[list[NDArray[Any]], list[Any] | None]:
    """Return the columns of a table and their titles, if they have any."""
    titles = None
    if isinstance(source, nw.DataFrame):
        columns, titles = [plain_column(c) for c in source.iter_columns()], list(source.columns)
    elif isinstance(source, np.ndarray) and source.ndim == 2:
        columns = list(source.T)
    else:
        columns = _transpose(source)
    if not columns:
        raise ValueError("y has no columns.")
    return columns, titles


def _transpose(rows: Any) -> list[NDArray[Any]]:
    """Return the columns of a list of rows."""
    if sp.issparse(rows) or not all(isinstance(row, (list, tuple, np.ndarray)) for row in rows):
        raise TypeError("y is no table. Give a data frame, a 2-D array or a list of rows.")
    width = len(rows[0])
    ragged = [i for i, row in enumerate(rows) if len(row) != width]
    if ragged:
        raise ValueError(
            f"{naming('row', ragged)}: ragged, as row 0 has {width} entries. Make all rows "
            "equally long, or give lists of labels to as_candidates(y, layout='sets')."
        )
    return [object_array(column) for column in zip(*rows, strict=True)]
