"""The door for features that are not an array in memory: Parquet files and Dask collections."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate.numerics.cluster import DaskRows, check_block, column_names, load_dask
from appellate.numerics.rows import ArrayRows, Rows

__all__ = ["ParquetRows"]

_BATCH_ROWS = 16_384
#: What a fit leaves of its training rows: nothing that prediction needs.
_OF_TRAINING = (
    "candidates_",
    "confidence_",
    "feature_names_in_",
    "history_",
    "ids_",
    "initial_confidence_",
    "label_history_",
    "overturned_",
    "training_output_",
    "transduction_",
    "verdict_",
    "verdict_confidence_",
    "_leverage",
)


class ParquetRows(Rows):
    """Rows of a Parquet file, or of a folder of them, read in blocks.

    Pass it as X to `fit` and `predict` of any classifier here; never more than a few blocks
    of 16,384 rows are in memory, but for methods that need all rows at once, such as nearest
    neighbours and the exact kernel. A memory-mapped array
    (``numpy.load(..., mmap_mode="r")``) needs no such door: it is an array.

    Parameters
    ----------
    path : str or path
        The file; or a folder, whose ``*.parquet`` are read in the order of their names, with
        ``part.2`` before ``part.10``, as Dask reads them.
    columns : sequence of str, default=None
        Columns to read; if None all but a stored index of pandas or Dask. They must be numbers
        without gaps.

    Attributes
    ----------
    feature_names : ndarray of str, shape (q,)
        Names of the columns.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from appellate import SUREClassifier
    >>> from appellate.blocks import ParquetRows
    >>> with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
    ...     pd.DataFrame({"x": [0.0, 0.1, 5.0, 5.1]}).to_parquet(file.name)
    ...     rows = ParquetRows(file.name)
    ...     model = SUREClassifier().fit(rows, ["cat|dog", "cat", "dog", "cat|dog"])
    ...     model.predict(rows)
    array(['cat', 'cat', 'dog', 'dog'], dtype='<U3')
    """

    def __init__(self, path: str | Path, *, columns: Sequence[str] | None = None) -> None:
        if find_spec("pyarrow") is None:
            raise ImportError("Parquet files need pyarrow: pip install 'appellate[io]'")
        from pyarrow import parquet

        if isinstance(columns, str):
            raise TypeError(f"columns must be a sequence of names: columns=['{columns}'].")
        path = Path(path)
        self.files = sorted(path.glob("*.parquet"), key=_natural) if path.is_dir() else [path]
        if not self.files:
            raise FileNotFoundError(f"there is no *.parquet file in '{path}'.")
        names = _data_columns(self.files[0]) if columns is None else list(columns)
        kinds = [kind for file in self.files for kind in _read_kinds(file, names)]
        small = all(kind.itemsize <= 4 and kind.kind == "f" for kind in kinds)
        self.dtype = np.dtype(np.float32 if small else np.float64)
        n = sum(parquet.ParquetFile(file).metadata.num_rows for file in self.files)
        self.shape = (n, len(names))
        self.feature_names = np.array(names, dtype=object)

    def blocks(self) -> Iterator[NDArray[Any]]:  # noqa: D102
        from pyarrow import parquet

        number = start = 0
        for path in self.files:
            with parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(_BATCH_ROWS, columns=list(self.feature_names)):
                    block = np.empty((batch.num_rows, self.shape[1]), dtype=self.dtype)
                    for j, name in enumerate(self.feature_names):
                        block[:, j] = batch.column(name).to_numpy(zero_copy_only=False)
                    yield check_block(block, number, start, self.dtype, f"'{path}'")
                    number, start = number + 1, start + len(block)


def _natural(path: Path) -> tuple[list[Any], str]:
    """Key by which names are sorted as people count: ``part.2`` before ``part.10``."""
    parts = re.split(r"(\d+)", path.name)
    return [int(part) if k % 2 else part for k, part in enumerate(parts)], path.name


def _data_columns(file: Path) -> list[str]:
    """Columns of a Parquet file but for a stored index."""
    from pyarrow import parquet

    schema = parquet.read_schema(file)
    stored = (schema.pandas_metadata or {}).get("index_columns", [])
    index = {"__null_dask_index__", *(name for name in stored if isinstance(name, str))}
    return [name for name in schema.names if name not in index]


def _read_kinds(file: Path, names: Sequence[str]) -> list[np.dtype[Any]]:
    """Types of columns of a Parquet file, all of which must be there and be numbers."""
    from pyarrow import parquet, types

    schema = parquet.read_schema(file)
    strange = [name for name in names if name not in schema.names]
    if strange:
        raise ValueError(f"'{file}' has no column {', '.join(map(repr, strange))}.")

    def is_number(kind: Any) -> bool:
        return bool(types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind))

    texts = [name for name in names if not is_number(schema.field(name).type)]
    if texts:
        raise ValueError(
            f"'{file}': columns {', '.join(map(repr, texts[:5]))} are not numbers. "
            "Name those that are: columns=[...]."
        )
    return [np.dtype(schema.field(name).type.to_pandas_dtype()) for name in names]


def is_lazy(X: Any) -> bool:
    """Whether X is a Dask collection, without importing Dask."""
    return hasattr(X, "__dask_graph__")


def open_rows(X: Any) -> Rows | None:
    """Return rows to be read in blocks, or None if X is for scikit-learn to validate."""
    if isinstance(X, Rows):
        return X
    if isinstance(X, np.memmap) and X.ndim == 2 and X.size:
        return _open_mapped(X)
    return DaskRows(X) if is_lazy(X) else None


def _open_mapped(X: NDArray[Any]) -> Rows | None:
    """Rows of a mapped array whose numbers scikit-learn would copy to float64, all at once."""
    if X.dtype.kind not in "biuf" or X.dtype in (np.float32, np.float64):
        return None
    rows = ArrayRows(X, np.float64)
    start = 0
    for number, block in enumerate(rows.blocks() if X.dtype.kind == "f" else ()):
        check_block(block, number, start, np.float64)
        start += len(block)
    return rows


def compute(y: Any) -> Any:
    """Bring labels of a Dask collection into memory; leave others as they are."""
    return y.compute() if is_lazy(y) else y


def remember_features(model: Any, rows: Rows) -> None:
    """Set what scikit-learn's `validate_data` sets in `fit`."""
    model.n_features_in_ = rows.shape[1]
    names = getattr(rows, "feature_names", None)
    if names is not None:
        model.feature_names_in_ = names
    elif hasattr(model, "feature_names_in_"):
        del model.feature_names_in_


def check_features(model: Any, n_features: int, names: Any) -> None:
    """Raise a ValueError if new rows have other features than those that were fitted."""
    if n_features != model.n_features_in_:
        raise ValueError(
            f"X has {n_features} features, but {type(model).__name__} is expecting "
            f"{model.n_features_in_} features as input."
        )
    known = getattr(model, "feature_names_in_", None)
    if names is not None and known is not None and list(names) != list(known):
        raise ValueError(
            "The feature names should match those that were passed during fit, in the same "
            f"order: {', '.join(map(str, known[:5]))}, ..."
        )


def predict_lazily(model: Any, method: str, X: Any, dtype: Any, width: int | None) -> Any:
    """Apply a method of a fitted model to every chunk of a Dask collection, later.

    Parameters
    ----------
    model : PartialLabelClassifier
        The fitted model; only what prediction needs of it goes to the workers.
    method : str
        Name of the method.
    X : dask array or data frame
        New rows.
    dtype : dtype or None
        Of the result; that of the features if None.
    width : int or None
        Columns of the result; None for one number a row.

    Returns
    -------
    dask array
        Not computed yet.
    """
    names = column_names(X)
    if hasattr(X, "to_dask_array"):
        X = X.to_dask_array()
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead.")
    check_features(model, X.shape[1], names)
    if dtype is None:
        dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
    shape: dict[str, Any] = {"drop_axis": 1} if width is None else {}
    X = X.rechunk({1: -1})
    if width is not None:
        shape = {"chunks": (X.chunks[0], (width,))}
    light = load_dask().delayed(_lighten(model), traverse=False)
    empty = np.empty((0,) if width is None else (0, width), dtype=dtype)
    return X.map_blocks(_apply, light, method, empty, dtype=dtype, meta=empty, **shape)


def _apply(
    block: NDArray[Any], model: Any, method: str, empty: Any, block_info: Any
) -> NDArray[Any]:
    if not len(block):
        return empty
    number, start = block_info[0]["chunk-location"][0], block_info[0]["array-location"][0][0]
    kind = np.float32 if block.dtype == np.float32 else np.float64
    block = check_block(block, number, None if np.isnan(start) else int(start), kind)
    return np.asarray(getattr(model, method)(block)).astype(empty.dtype, copy=False)


def _lighten(model: Any) -> Any:
    """Copy a fitted model without what it knows of its training rows."""
    light = copy.copy(model)
    for name in _OF_TRAINING:
        light.__dict__.pop(name, None)
    for name in ("partner_", "estimator_"):
        if name in light.__dict__:
            setattr(light, name, _lighten(getattr(light, name)))
    return light
