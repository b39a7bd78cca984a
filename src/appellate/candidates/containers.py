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
    try:
        source: Any = nw.from_native(y, eager_only=True, allow_series=True, pass_through=True)
    except DuplicateError:
        twice = [repr(title) for title, count in Counter(y.columns).items() if count > 1]
        raise ValueError(
            f"duplicate {naming('column', twice)}. Give every column its own name."
        ) from None
    ids = None
    if isinstance(source, (nw.DataFrame, nw.Series)):
        ids = row_index(y)
        source = source if isinstance(source, nw.DataFrame) else plain_column(source)
    elif np.ma.is_masked(y):
        raise ValueError("y has masked entries. Fill them or drop the rows.")
    elif hasattr(y, "__array__"):
        source = np.asarray(y)
        if source.ndim not in (1, 2):
            raise ValueError(
                f"y has {source.ndim} dimensions. Give one label or set per row (1-D) "
                "or a 0/1 matrix (2-D)."
            )
    elif isinstance(y, Sequence) and not isinstance(y, (str, bytes, bytearray)):
        source = list(y)
    elif not sp.issparse(y):
        raise TypeError(
            f"y is a {type(y).__name__}, not a sequence with one entry per row. Give a matrix, a "
            "data frame or a list of candidate sets; turn an iterator into list(y), a dict into "
            "list(y.values()), a lazy frame into y.collect()."
        )
    if getattr(getattr(source, "dtype", None), "kind", "") == "c":
        raise ValueError("Complex data not supported: labels and 0/1 entries are not complex.")
    if not (source.shape[0] if hasattr(source, "shape") else len(source)):
        raise ValueError("y has no rows.")
    return source, ids


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


def table_columns(source: Any) -> tuple[list[NDArray[Any]], list[Any] | None]:
    """Return the columns of a table and their titles, if they have any."""
    titles = None
    if isinstance(source, nw.DataFrame):
        columns, titles = [plain_column(c) for c in source.iter_columns()], list(source.columns)
    elif isinstance(source, np.ndarray) and source.ndim == 2:
        columns = list(source.T)
    elif sp.issparse(source) or not all(isinstance(r, (list, tuple, np.ndarray)) for r in source):
        raise TypeError("y is not a table. Give a data frame, a 2-D array or a list of rows.")
    else:
        width = len(source[0])
        ragged = [i for i, row in enumerate(source) if len(row) != width]
        if ragged:
            raise ValueError(
                f"{naming('row', ragged)}: ragged, as row 0 has {width} entries. Make all rows "
                "equally long, or give lists of labels to as_candidates(y, layout='sets')."
            )
        columns = [object_array(column) for column in zip(*source, strict=True)]
    if not columns:
        raise ValueError("y has no columns.")
    return columns, titles
