"""Tall tables of numbers in blocks of rows: in memory, mapped, in a file, in Parquet, on Dask.

The rows of a fit and the features made of them are both such tables, (n, r) numbers of which
never more than some blocks are held at a time. A smoother of low rank,
``S = 1 1'/n + Z diag(w) Z'``, maps candidate entries of D to those of ``S D`` in two passes
over the features Z: one *gathers* ``D'Z``, (l, r), touching for every sample the few labels
that it has, one *evaluates* the candidate entries of ``Z C'`` for (l, r) coefficients C.
Nothing of size n x n or n x l is formed.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import warnings
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import repeat
from operator import getitem
from pathlib import Path
from typing import Any

import numba as nb
import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from appellate._compat import check_n_features
from appellate._text import install
from appellate.numerics.entries import CandidateEntries, Values
from appellate.numerics.threads import ordered_map

__all__ = ["ParquetRows"]

Part = tuple[Any, ...]
Parts = Iterable[Part] | None
Function = Callable[..., Any]
_BLOCK_ROWS = 4096  # of a table that is given, at most
_BATCH_ROWS = 16_384  # of Parquet files
_BLOCK_BYTES = 16 * 2**20
_PIECE_BYTES = 32 * 2**20  # of one block under way, in double precision


class Blocks(ABC):
    """An (n, r) table of numbers, read in blocks of rows.

    Attributes
    ----------
    shape : tuple of int
        ``(n, r)``.
    dtype : dtype
        float32 or float64.
    local : bool
        Whether the blocks are read by this process.
    slices : list of slice
        Rows of every block.
    feature_names : ndarray of str, or None
        Names of the columns.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    slices: list[slice]
    local: bool = True
    feature_names: NDArray[Any] | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.shape[0]

    @abstractmethod
    def blocks(self) -> Iterator[NDArray[Any]]:
        """Yield the rows, block after block."""

    def _items(self) -> tuple[Iterable[Any], Function]:
        """What stands for the blocks, and how a thread reads one of them."""
        return self.blocks(), np.asarray

    def map(self, function: Function, parts: Parts = None, *common: Any) -> Iterable[Any]:
        """Yield ``function(block, *part, *common)`` for every block, in order.

        `parts` has one tuple of further arguments for every block.
        """
        items, read = self._items()

        def work(item: tuple[Any, Part]) -> Any:
            return function(read(item[0]), *item[1], *common)

        pairs = zip(items, repeat(()) if parts is None else parts, strict=parts is not None)
        return ordered_map(work, pairs, blas=function not in (_gather, _evaluate))

    def fold(self, function: Function, parts: Parts = None) -> Any:
        """Add up ``function(block, *part, sum so far)``; the first sum is None."""
        total = None
        for block, part in zip(self.blocks(), repeat(()) if parts is None else parts):  # noqa: B905
            total = function(block, *part, total)
        return total

    def place(self, values: Sequence[Any]) -> Sequence[Any]:
        """Bring one value for every block to where the block is, for `parts` of later maps."""
        return values

    def take(self, indices: NDArray[np.intp]) -> NDArray[Any]:
        """Return some rows, whose numbers ascend."""
        found, start = [], 0
        for block in self.blocks():
            low, high = np.searchsorted(indices, (start, start + len(block)))
            found.append(block[indices[low:high] - start])
            start += len(block)
        return np.concatenate(found)

    def toarray(self) -> NDArray[Any]:
        """Return all rows in the memory of this process, to be read only."""
        out = np.empty(self.shape, dtype=self.dtype)
        for start, block in self._count(self.blocks()):
            out[start : start + len(block)] = block
        return out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Read all rows into memory, (n, r)."""
        return np.array(self.toarray(), dtype=dtype, copy=copy)

    def make(self, function: Function, width: int, dtype: Any, cache_dir: Any = None) -> Blocks:
        """Keep what a function makes of every block: (n, width) numbers.

        They are kept in memory, in a file in `cache_dir`, or by the workers of a cluster.
        """
        out = StoredBlocks((len(self), width), dtype, cache_dir)
        made = ordered_map(function, self._pieces(width), blas=True)
        for start, block in self._count(made):
            out.write(start, block)
        return out

    def rewrite(self, function: Function, width: int, *common: Any) -> None:
        """Overwrite every block by ``function(block, *common)``, which may not be wider."""
        raise TypeError(f"{type(self).__name__} can only be read.")

    def _pieces(self, width: int) -> Iterator[NDArray[Any]]:
        """The blocks, divided so that some of them at a time take little memory."""
        most = max(1, _PIECE_BYTES // (8 * max(width, self.shape[1])))
        for block in self.blocks():
            yield from (block[rows] for rows in gen_batches(len(block), most))

    def _count(self, blocks: Iterable[NDArray[Any]]) -> Iterator[tuple[int, NDArray[Any]]]:
        """Give every block the number of its first row; there must be n rows in all."""
        start = 0
        for block in blocks:
            if start + len(block) > len(self):
                raise self._changed(f"more than {len(self)}")
            yield start, block
            start += len(block)
        if start != len(self):
            raise self._changed(f"only {start}")

    def _changed(self, found: str) -> ValueError:
        return ValueError(
            f"X had {len(self)} rows when it was opened, and now {found}: it was changed "
            "meanwhile. Open it again."
        )


class ArrayBlocks(Blocks):
    """Rows of an array in memory, of one that is mapped from a file, or of a sparse matrix.

    Parameters
    ----------
    matrix : ndarray or scipy.sparse matrix, shape (n, q)
        The table. Of a sparse one, only a block at a time is dense.
    dtype : dtype, default=None
        To which every block is converted; that of the table if None.

    Examples
    --------
    >>> import numpy as np
    >>> table = ArrayBlocks(np.array([[1.0], [2.0]], dtype=np.float32))
    >>> [block.sum() for block in table.make(np.square, 1, np.float32).blocks()]
    [np.float32(5.0)]
    """

    def __init__(self, matrix: Any, dtype: Any = None) -> None:
        self.matrix = matrix.tocsr() if sp.issparse(matrix) else matrix
        self.shape, self.dtype = matrix.shape, np.dtype(dtype or matrix.dtype)
        most = _BLOCK_BYTES // max(1, self.shape[1] * self.dtype.itemsize)
        self.slices = list(gen_batches(self.shape[0], max(1, min(_BLOCK_ROWS, most))))

    def read(self, rows: Any) -> NDArray[Any]:
        """Return some rows; a view where that is possible."""
        block = self.matrix[rows]
        block = block.toarray() if sp.issparse(block) else np.asarray(block)
        return block.astype(self.dtype, copy=False)

    def blocks(self) -> Iterator[NDArray[Any]]:
        return map(self.read, self.slices)

    def _items(self) -> tuple[Iterable[Any], Function]:
        return self.slices, self.read

    def take(self, indices: NDArray[np.intp]) -> NDArray[Any]:
        return self.read(indices)

    def toarray(self) -> NDArray[Any]:
        return self.read(slice(0, len(self)))


class StoredBlocks(ArrayBlocks):
    """Features that a fit writes: in memory, or in a file without a name.

    The file is unlinked as soon as it is open, so that nothing is left of it when the process
    ends, however it ends. It is read block by block: it takes no address space.

    Parameters
    ----------
    shape : tuple of int
        ``(n, r)``.
    dtype : dtype
        Of the features.
    cache_dir : str or path, default=None
        Folder of the file; memory if None.

    Raises
    ------
    OSError
        If the folder has no room for them.

    Examples
    --------
    >>> import numpy as np
    >>> features = StoredBlocks((2, 1), np.float32)
    >>> features.write(0, np.array([[1.0], [2.0]]))
    >>> entries = CandidateEntries(np.array([[True, True], [False, True]]))
    >>> gather(features, lay_out(features, entries), np.array([0.5, 0.5, 1.0]))
    array([[0.5],
           [2.5]])
    """

    def __init__(self, shape: tuple[int, int], dtype: Any, cache_dir: Any = None) -> None:
        self.shape, self.dtype, self._file = shape, np.dtype(dtype), None
        row_bytes = max(1, shape[1] * self.dtype.itemsize)
        if cache_dir is None:
            self.matrix = np.empty(shape, dtype=self.dtype)
        else:
            self._file = _open_unnamed(cache_dir, shape[0] * row_bytes)
            weakref.finalize(self, self._file.close)
        self.slices = list(gen_batches(shape[0], max(1, _BLOCK_BYTES // row_bytes)))

    def write(self, start: int, block: NDArray[Any]) -> None:
        """Keep the features of the rows from `start` on."""
        position = start * block.shape[1]
        if self._file is None:
            self.matrix.ravel()[position : position + block.size] = block.ravel()
            return
        data = np.ascontiguousarray(block, dtype=self.dtype)
        if os.pwrite(self._file.fileno(), data.data, position * data.itemsize) < data.nbytes:
            raise OSError("cache_dir has no room left for the features. Name another folder.")

    def read(self, rows: slice) -> NDArray[Any]:
        """Return the features of a range of rows; a view if they are in memory."""
        if self._file is None:
            return self.matrix[rows]
        out = np.empty((rows.stop - rows.start, self.shape[1]), dtype=self.dtype)
        offset = rows.start * self.shape[1] * out.itemsize
        if os.preadv(self._file.fileno(), [out.data], offset) < out.nbytes:
            raise OSError("the file of features in cache_dir ended early; fit again.")
        return out

    def take(self, indices: NDArray[np.intp]) -> NDArray[Any]:
        return Blocks.take(self, indices)

    def rewrite(self, function: Function, width: int, *common: Any) -> None:
        # Narrower rows are packed towards the front, behind those that are still read.
        for rows, block in zip(self.slices, self.map(function, None, *common), strict=True):
            self.write(rows.start, block)
        self.shape = (len(self), width)
        if self._file is None:
            self.matrix = self.matrix.ravel()[: len(self) * width].reshape(self.shape)


def _open_unnamed(folder: Any, size: int) -> Any:
    free = shutil.disk_usage(folder).free
    if size > free:
        raise OSError(
            f"cache_dir '{folder}' has {free / 1e9:.1f} GB free, but the features take "
            f"{size / 1e9:.1f} GB. Name another folder or lower n_landmarks."
        )
    return tempfile.TemporaryFile(prefix=".appellate-", dir=folder)


class ParquetRows(Blocks):
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
    >>> from appellate.numerics.blocks import ParquetRows
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
        from pyarrow import parquet

        if isinstance(columns, str):
            raise TypeError(f"columns must be a sequence of names: columns=['{columns}'].")
        path = Path(path)
        self.files = sorted(path.glob("*.parquet"), key=_natural) if path.is_dir() else [path]
        if not self.files:
            raise FileNotFoundError(f"there is no *.parquet file in '{path}'.")
        schemas = [parquet.read_schema(file) for file in self.files]
        names = _data_columns(schemas[0]) if columns is None else list(columns)
        for file, schema in zip(self.files, schemas, strict=True):
            _check_columns(file, schema, names)
        kinds = [np.dtype(each.field(k).type.to_pandas_dtype()) for each in schemas for k in names]
        small = all(kind.itemsize <= 4 and kind.kind == "f" for kind in kinds)
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

        number, start, names = 0, 0, list(self.feature_names)
        for path in self.files:
            with parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(_BATCH_ROWS, columns=names):
                    block = np.empty((batch.num_rows, len(names)), dtype=self.dtype)
                    for j, name in enumerate(names):
                        block[:, j] = batch.column(name).to_numpy(zero_copy_only=False)
                    yield check_block(block, number, start, self.dtype, f"'{path}'")
                    number, start = number + 1, start + len(block)


def _natural(path: Path) -> tuple[list[Any], str]:
    """Key by which names are sorted as people count: ``part.2`` before ``part.10``."""
    parts = re.split(r"(\d+)", path.name)
    return [int(part) if k % 2 else part for k, part in enumerate(parts)], path.name


def _data_columns(schema: Any) -> list[str]:
    """Columns of a Parquet file but for a stored index."""
    stored = (schema.pandas_metadata or {}).get("index_columns", [])
    index = {"__null_dask_index__", *(name for name in stored if isinstance(name, str))}
    return [name for name in schema.names if name not in index]


def _check_columns(file: Path, schema: Any, names: Sequence[str]) -> None:
    """Refuse columns of a Parquet file that are not there or are not numbers."""
    from pyarrow import types

    strange = [name for name in names if name not in schema.names]
    if strange:
        raise ValueError(f"'{file}' has no column {', '.join(map(repr, strange))}.")
    tests = types.is_boolean, types.is_integer, types.is_floating
    texts = [name for name in names if not any(is_(schema.field(name).type) for is_ in tests)]
    if texts:
        raise ValueError(
            f"'{file}': columns {', '.join(map(repr, texts[:5]))} are not numbers. "
            "Name those that are: columns=[...]."
        )


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
        Of the blocks.
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
        self._tasks, self.slices, self.dtype = tasks, slices, np.dtype(dtype)
        self.shape, self.feature_names = (slices[-1].stop, width), feature_names

    def blocks(self) -> Iterator[NDArray[Any]]:
        return (_run("compute", [task])[0] for task in self._tasks)

    def map(self, function: Function, parts: Parts = None, *common: Any) -> Iterable[Any]:
        return _run("compute", self._calls(function, parts, *common))

    def fold(self, function: Function, parts: Parts = None) -> Any:
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

    def make(self, function: Function, width: int, dtype: Any, cache_dir: Any = None) -> Blocks:
        shared = _dask().delayed(function, traverse=False)
        tasks = _run("persist", self._calls(_call, None, shared))
        return DaskBlocks(tasks, self.slices, width, dtype)

    def rewrite(self, function: Function, width: int, *common: Any) -> None:
        self._tasks = _run("persist", self._calls(function, None, *common))
        self.shape = (len(self), width)

    def _calls(self, function: Function, parts: Parts, *common: Any) -> list[Any]:
        delayed = _dask().delayed
        call, shared = delayed(function), [delayed(each, traverse=False) for each in common]
        pairs = zip(self._tasks, repeat(()) if parts is None else parts, strict=False)
        return [call(task, *part, *shared) for task, part in pairs]


def _call(block: NDArray[Any], function: Function) -> Any:
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
        return _open_mapped(X)
    return _open_dask(X) if is_lazy(X) else None


def _open_mapped(X: NDArray[Any]) -> Blocks | None:
    """Rows of a mapped array whose numbers scikit-learn would copy to float64, all at once."""
    if X.dtype.kind not in "biuf" or X.dtype in (np.float32, np.float64):
        return None
    rows = ArrayBlocks(X, np.float64)
    for number, (start, block) in enumerate(rows._count(rows.blocks())):
        check_block(block, number, start, np.float64)
    return rows


def _open_dask(X: Any) -> DaskBlocks:
    """Chunks of any sizes, as one block each; columns are brought together."""
    X, names = _read_dask(X)
    if np.isnan(X.shape[0]):
        X = X.compute_chunk_sizes()
    check, dtype = _dask().delayed(check_block), _float_type(X.dtype)
    slices, tasks, start = [], [], 0
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
        Of a block, (m, q), to its m results; it is pickled, so it should carry only what it
        needs.
    X : dask array or data frame
        New rows.
    dtype : dtype or None
        Of the result; that of the features if None.
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


# -- passes over tall features -------------------------------------------------------------

Placed = tuple[CandidateEntries, Sequence[Any]]


def lay_out(features: Blocks, entries: CandidateEntries) -> Placed:
    """Bring labels and row starts of the candidates to the blocks, for many passes."""
    parts = []
    for rows in features.slices:
        indptr = entries.indptr[rows.start : rows.stop + 1]
        labels = entries.labels[indptr[0] : indptr[-1]].astype(np.int32)
        parts.append((labels, (indptr - indptr[0]).astype(np.int32)))
    return entries, features.place(parts)


def gather(features: Blocks, placed: Placed, values: Values) -> NDArray[np.float64]:
    """``D'Z``, (l, r), of a matrix D given by its candidate entries."""
    (entries, candidates), total = placed, np.zeros((placed[0].shape[1], features.shape[1]))
    parts = [
        (part, values[entries.indptr[rows.start] : entries.indptr[rows.stop]])
        for rows, part in zip(features.slices, candidates, strict=True)
    ]
    for part in features.map(_gather, parts, entries.shape[1]):
        total += part
    return total


def evaluate(
    features: Blocks, placed: Placed, coefficients: NDArray[Any], shift: NDArray[Any]
) -> Values:
    """Candidate entries of ``Z C' + 1 shift'`` for (l, r) coefficients C."""
    entries, candidates = placed
    parts = [(part,) for part in candidates]
    out = np.empty(len(entries), dtype=coefficients.dtype)
    results = features.map(_evaluate, parts, coefficients, shift)
    for rows, part in zip(features.slices, results, strict=True):
        out[entries.indptr[rows.start] : entries.indptr[rows.stop]] = part
    return out


def product(features: Blocks, coefficients: NDArray[Any], shift: NDArray[Any]) -> NDArray[Any]:
    """``Z C' + 1 shift'``, (n, l): the one matrix of this size that a fit leaves behind."""
    out = np.empty((len(features), len(coefficients)), dtype=coefficients.dtype)
    results = features.map(product_block, None, coefficients, shift)
    for rows, part in zip(features.slices, results, strict=True):
        out[rows] = part
    return out


def moments(features: Blocks) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Column sums, (r,), and ``Z'Z``, (r, r), in double precision."""
    total, gram = features.fold(_add_moments)
    gram += np.tril(gram, -1).T
    return total, gram


def turn(features: Blocks, turn: NDArray[Any], offset: NDArray[Any]) -> None:
    """Overwrite Z by ``Z turn - 1 offset'``, which may be narrower but not wider."""
    common = turn.astype(features.dtype).T, -offset.astype(features.dtype)
    features.rewrite(product_block, turn.shape[1], *common)


def weighted_lengths(features: Blocks, weights: NDArray[Any]) -> NDArray[np.float64]:
    """Diagonal of ``Z diag(w) Z'``, (n,)."""
    return np.concatenate(list(features.map(_length_block, None, weights)))


def product_block(
    features: NDArray[Any], coefficients: NDArray[Any], shift: NDArray[Any]
) -> NDArray[Any]:
    """``Z C' + 1 shift'`` of one block."""
    return np.asarray(features @ coefficients.T + shift)


def _length_block(features: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.float64]:
    return np.einsum("ij,ij,j->i", features, features, weights)


def _add_moments(block: NDArray[Any], so_far: Any) -> tuple[Any, Any]:
    exact, r = block.astype(np.float64), block.shape[1]
    total, gram = so_far or (np.zeros(r), np.zeros((r, r), order="F"))
    total += exact.sum(axis=0)
    return total, la.blas.dsyrk(1.0, exact.T, beta=1.0, c=gram, lower=1, overwrite_c=1)


@nb.njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _gather(features, candidates, values, n_labels):  # type: ignore[no-untyped-def]
    """``D'Z`` of one block, (l, r), added up in double precision."""
    labels, indptr = candidates
    out = np.zeros((n_labels, features.shape[1]))
    for i in range(indptr.size - 1):
        for entry in range(indptr[i], indptr[i + 1]):
            value = values[entry]
            if value != 0:
                row = out[labels[entry]]
                for p in range(row.size):
                    row[p] += value * features[i, p]
    return out


@nb.njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _evaluate(features, candidates, coefficients, shift):  # type: ignore[no-untyped-def]
    """Candidate entries of ``Z C' + 1 shift'`` of one block."""
    labels, indptr = candidates
    out = np.empty(labels.size, coefficients.dtype)
    for i in range(indptr.size - 1):
        for entry in range(indptr[i], indptr[i + 1]):
            row = coefficients[labels[entry]]
            total = shift[labels[entry]]
            for p in range(row.size):
                total += row[p] * features[i, p]
            out[entry] = total
    return out
