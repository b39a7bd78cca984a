"""Rows that are not an array in memory: Parquet files, maps of any numbers, Dask collections."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import repeat
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate._compat import check_n_features
from appellate._text import install
from appellate.numerics.blocks import ArrayBlocks, BlockFunction, Blocks, Parts

__all__ = ["ParquetRows"]

_BATCH_ROWS = 16_384  # of Parquet files


class ParquetRows(Blocks):
    """Rows of a Parquet file, or of a folder of them, read in blocks.

    Pass it as X to `fit` and `predict` of any classifier here; never more than a few blocks
    of 16,384 rows are in memory, but for methods that need all rows at once, such as nearest
    neighbours and the exact kernel. A memory-mapped array
    (``numpy.load(..., mmap_mode="r")``) needs no such class: it is an array.

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
    >>> from appellate.numerics.sources import ParquetRows
    >>> with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
    ...     pd.DataFrame({"x": [0.0, 0.1, 5.0, 5.1]}).to_parquet(file.name)
    ...     rows = ParquetRows(file.name)
    ...     model = SUREClassifier().fit(rows, ["cat|dog", "cat", "dog", "cat|dog"])
    ...     model.predict(rows)
    array(['cat', 'cat', 'dog', 'dog'], dtype='<U3')
    """

    feature_names: NDArray[Any]

    def __init__(self, path: str | Path, *, columns: Sequence[str] | None = None) -> None:
        if find_spec("pyarrow") is None:
            raise ImportError(f"Parquet files need pyarrow: {install('io')}")
        from pyarrow import parquet, types

        if isinstance(columns, str):
            raise TypeError(f"columns must be a sequence of names: columns=['{columns}'].")
        path = Path(path)
        self.files = sorted(path.glob("*.parquet"), key=_natural) if path.is_dir() else [path]
        if not self.files:
            raise FileNotFoundError(f"cannot find a *.parquet file in '{path}'.")
        schemas = [parquet.read_schema(file) for file in self.files]
        stored = (schemas[0].pandas_metadata or {}).get("index_columns", [])
        index = {"__null_dask_index__", *(name for name in stored if isinstance(name, str))}
        usual = [name for name in schemas[0].names if name not in index]
        names = usual if columns is None else list(columns)
        tests = types.is_boolean, types.is_integer, types.is_floating
        for file, schema in zip(self.files, schemas, strict=True):
            strange = [name for name in names if name not in schema.names]
            if strange:
                raise ValueError(f"'{file}' has no column {', '.join(map(repr, strange))}.")
            kinds = {name: schema.field(name).type for name in names}
            texts = [name for name in names if not any(is_(kinds[name]) for is_ in tests)]
            if texts:
                raise ValueError(
                    f"'{file}': columns {', '.join(map(repr, texts[:5]))} are not numbers. "
                    "Name those that are: columns=[...]."
                )
        dtypes = [np.dtype(s.field(k).type.to_pandas_dtype()) for s in schemas for k in names]
        small = all(dtype.itemsize <= 4 and dtype.kind == "f" for dtype in dtypes)
        self.dtype = np.dtype(np.float32 if small else np.float64)
        self.slices, n = [], 0
        for file in self.files:
            size = parquet.read_metadata(file).num_rows
            starts = range(n, n + size, _BATCH_ROWS)
            self.slices += [slice(k, min(k + _BATCH_ROWS, n + size)) for k in starts]
            n += size
        self.shape, self.feature_names = (n, len(names)), np.array(names, dtype=object)

    def blocks(self) -> Iterator[NDArray[Any]]:  # noqa: D102
        from pyarrow import parquet

        number = 0
        start = 0
        names = list(self.feature_names)
        for path in self.files:
            with parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(_BATCH_ROWS, columns=names):
                    block = np.empty((batch.num_rows, len(names)), dtype=self.dtype)
                    for j, name in enumerate(names):
                        block[:, j] = batch.column(name).to_numpy(zero_copy_only=False)
                    yield check_block(block, number, start, self.dtype, f"'{path}'")
                    number, start = number + 1, start + len(block)


def _natural(path: Path) -> tuple[list[Any], str]:
    """Key that sorts names by their numbers: ``part.2`` before ``part.10``."""
    parts = re.split(r"(\d+)", path.name)
    return [int(part) if k % 2 else part for k, part in enumerate(parts)], path.name


class DaskBlocks(Blocks):
    """Chunks of a Dask array or data frame, or features that the workers of a cluster keep.

    The passes run where the chunks are. Landmarks, the small algebra and the loops over
    candidate entries stay with the caller; a pass sends every chunk its candidate entries, or
    the (l, r) coefficients, and gets the same back. Chunks and features are results of tasks:
    those of a worker that dies are computed again, and workers that run out of memory put them
    on disk.

    Parameters
    ----------
    tasks : sequence of dask delayed
        One block each.
    slices : list of slice
        Their rows.
    width : int
        Their columns.
    dtype : dtype
        Type of the blocks.
    feature_names : ndarray of str, default=None
        Names of the columns.
    """

    local = False

    def __init__(
        self,
        tasks: Sequence[Any],
        slices: list[slice],
        width: int,
        dtype: Any,
        feature_names: NDArray[Any] | None = None,
    ) -> None:
        self._tasks = tasks
        self.slices = slices
        self.dtype = np.dtype(dtype)
        self.shape, self.feature_names = (slices[-1].stop, width), feature_names

    def blocks(self) -> Iterator[NDArray[Any]]:
        return (_run("compute", [task])[0] for task in self._tasks)

    def map(self, function: BlockFunction, parts: Parts = None, *common: Any) -> Iterable[Any]:
        return _run("compute", self._calls(function, parts, *common))

    def fold(self, function: BlockFunction, parts: Parts = None) -> Any:
        level, add = self._calls(function, parts, None), _dask().delayed(_add)
        while len(level) > 1:
            pairs = [level[k : k + 2] for k in range(0, len(level), 2)]
            level = [add(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
        return [np.array(each) for each in _run("compute", level)[0]]

    def place(self, values: Sequence[Any]) -> Sequence[Any]:
        return _run("persist", [_dask().delayed(each, traverse=False) for each in values])

    def take(self, indices: NDArray[np.intp]) -> NDArray[Any]:
        within = [(indices >= rows.start) & (indices < rows.stop) for rows in self.slices]
        parts = [(indices[k] - rows.start,) for rows, k in zip(self.slices, within, strict=True)]
        return np.concatenate(list(self.map(getitem, parts)))

    def make(
        self, function: BlockFunction, width: int, dtype: Any, cache_dir: Any = None
    ) -> Blocks:
        tasks = _run("persist", self._calls(_call, None, function))
        return DaskBlocks(tasks, self.slices, width, dtype)

    def rewrite(self, function: BlockFunction, width: int, *common: Any) -> None:
        self._tasks = _run("persist", self._calls(function, None, *common))
        self.shape = (len(self), width)

    def _calls(self, function: BlockFunction, parts: Parts, *common: Any) -> list[Any]:
        delayed = _dask().delayed
        call, shared = delayed(function), [delayed(each, traverse=False) for each in common]
        pairs = zip(self._tasks, repeat(()) if parts is None else parts, strict=False)
        return [call(task, *part, *shared) for task, part in pairs]


def _call(block: NDArray[Any], function: BlockFunction) -> Any:
    return function(block)


def _add(left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
    return [a + b for a, b in zip(left, right, strict=True)]


def _run(how: str, tasks: Sequence[Any]) -> Sequence[Any]:
    """Compute or persist tasks."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        results: Sequence[Any] = getattr(_dask(), how)(*tasks)
    return results


def _dask() -> Any:
    return import_module("dask")  # which is there if a Dask collection is


# -- the door ------------------------------------------------------------------------------


def is_lazy(X: Any) -> bool:
    """Whether X is a Dask collection, without importing Dask."""
    return hasattr(X, "__dask_graph__")


def open_blocks(X: Any) -> Blocks | None:
    """Return rows to be read in blocks, or None if X is for scikit-learn to validate."""
    if isinstance(X, Blocks):
        return X
    if isinstance(X, np.memmap) and X.ndim == 2 and X.size:
        if X.dtype.kind not in "biuf" or X.dtype in (np.float32, np.float64):
            return None
        rows = ArrayBlocks(X, np.float64)  # which scikit-learn would copy all at once
        for number, (block, where) in enumerate(zip(rows.blocks(), rows.slices, strict=True)):
            check_block(block, number, where.start, np.float64)
        return rows
    if not is_lazy(X):
        return None
    X, names = _read_dask(X)  # chunks of any sizes, as one block each
    if np.isnan(X.shape[0]):
        X = X.compute_chunk_sizes()
    check, dtype = _dask().delayed(check_block), _float_type(X.dtype)
    slices = []
    tasks = []
    start = 0
    for number, (size, task) in enumerate(zip(X.chunks[0], X.to_delayed().ravel(), strict=True)):
        if size:
            slices.append(slice(start, start + size))
            tasks.append(check(task, number, start, dtype))
        start += size
    if not tasks:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    return DaskBlocks(tasks, slices, int(X.shape[1]), dtype, names)


def _read_dask(X: Any) -> tuple[Any, NDArray[Any] | None]:
    """Array of a Dask collection, and the names of its columns if they are all texts."""
    names = list(getattr(X, "columns", ()))
    named = names and all(isinstance(name, str) for name in names)
    if hasattr(X, "to_dask_array"):
        X = X.to_dask_array()
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead.")
    return X.rechunk({1: -1}), np.array(names, dtype=object) if named else None


def _float_type(dtype: Any) -> np.dtype[Any]:
    return np.dtype(np.float32 if dtype == np.float32 else np.float64)


def check_block(
    block: Any, number: int, start: int | None, dtype: Any, source: str = "X"
) -> NDArray[Any]:
    """Return a block as finite numbers of a type, or name the block and row that is not.

    `start` is the number of rows before the block, None if that is not known.

    Examples
    --------
    >>> import numpy as np
    >>> check_block(np.array([[1.0], [np.nan]]), 3, 30, np.float64)
    Traceback (most recent call last):
    ValueError: X contains NaN or infinity in chunk 3, row 1 of the chunk (row 31 of all, ...
    """
    block = np.asarray(block, dtype=dtype)
    if not np.isfinite(block.sum(dtype=np.float64)) and not np.isfinite(block).all():
        row = int(np.flatnonzero(~np.isfinite(block).all(axis=1))[0])
        counted = "" if start is None else f"row {start + row} of all, both "
        raise ValueError(
            f"{source} contains NaN or infinity in chunk {number}, row {row} of the chunk "
            f"({counted}counted from 0). Fill the gaps or drop the rows."
        )
    return block


def check_features(model: Any, rows: Any, names: Any, *, reset: bool = False) -> None:
    """Remember number and names of features in `fit`, else raise a ValueError if they differ."""
    check_n_features(model, rows, reset=reset)
    known = getattr(model, "feature_names_in_", None)
    if reset:
        vars(model).pop("feature_names_in_", None)
        if names is not None:
            model.feature_names_in_ = names
    elif names is not None and known is not None and list(names) != list(known):
        raise ValueError(
            "The feature names should match those that were passed during fit, in the same "
            f"order: {', '.join(map(str, known[:5]))}, ..."
        )


def predict_lazily(call: Any, X: Any, dtype: Any, width: int | None, *, model: Any = None) -> Any:
    """Apply a function to every chunk of a Dask collection, later.

    Parameters
    ----------
    call : callable
        Function of a block, (m, q), to its m results. It is pickled, so it should contain only
        what it needs.
    X : dask array or data frame
        New rows.
    dtype : dtype or None
        Type of the result; that of the features if None.
    width : int or None
        Columns of the result; None for one number a row.
    model : estimator, default=None
        The features must be those that it was fitted on.

    Returns
    -------
    dask array
        Not computed yet.
    """
    X, names = _read_dask(X)
    if model is not None:
        check_features(model, X, names)
    empty = np.empty((0,) if width is None else (0, width), dtype=dtype or _float_type(X.dtype))
    shape: dict[str, Any] = {"drop_axis": 1}
    if width is not None:
        shape = {"chunks": (X.chunks[0], (width,))}
    shared = _dask().delayed(call, traverse=False)
    return X.map_blocks(_apply, shared, empty, dtype=empty.dtype, meta=empty, **shape)


def _apply(block: NDArray[Any], call: Any, empty: Any, block_info: Any) -> NDArray[Any]:
    if not len(block):
        return empty
    number, start = block_info[0]["chunk-location"][0], block_info[0]["array-location"][0][0]
    start = None if np.isnan(start) else int(start)
    block = check_block(block, number, start, _float_type(block.dtype))
    return np.asarray(call(block)).astype(empty.dtype, copy=False)
