"""Tall tables of numbers in blocks of rows: in memory, mapped, in a file.

The rows of a fit and the features made of them are both such tables, (n, r) numbers. Only
some blocks are in memory at a time. `appellate.numerics.sources` has tables that come
from Parquet files and from Dask, `appellate.numerics.passes` what is computed over them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from appellate.numerics.threads import ordered_map

BlockPart = tuple[Any, ...]
Parts = Iterable[BlockPart] | None
BlockFunction = Callable[..., Any]
_BLOCK_ROWS = 4096  # of a table that is given, at most
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

    def _items(self) -> tuple[Iterable[Any], BlockFunction]:
        """Keys of the blocks, and how a thread reads one of them."""
        return self.blocks(), np.asarray

    def map(self, function: BlockFunction, parts: Parts = None, *common: Any) -> Iterable[Any]:
        """Yield ``function(block, *part, *common)`` for every block, in order.

        `parts` has one tuple of further arguments for every block. Compiled functions call no
        BLAS.
        """
        items, read = self._items()

        def work(item: tuple[Any, BlockPart]) -> Any:
            return function(read(item[0]), *item[1], *common)

        pairs = zip(items, repeat(()) if parts is None else parts, strict=parts is not None)
        return ordered_map(work, pairs, blas=not hasattr(function, "py_func"))

    def fold(self, function: BlockFunction, parts: Parts = None) -> Any:
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

    def make(
        self, function: BlockFunction, width: int, dtype: Any, cache_dir: Any = None
    ) -> Blocks:
        """Keep what a function makes of every block: (n, width) numbers.

        They are kept in memory, in a file in `cache_dir`, or by the workers of a cluster.
        """
        out = StoredBlocks((len(self), width), dtype, cache_dir)
        made = ordered_map(function, self._pieces(width), blas=True)
        for start, block in self._count(made):
            out.write(start, block)
        return out

    def rewrite(self, function: BlockFunction, width: int, *common: Any) -> None:
        """Overwrite every block by ``function(block, *common)``, which may not be wider."""
        raise TypeError(f"{type(self).__name__} can only be read.")

    def _pieces(self, width: int) -> Iterator[NDArray[Any]]:
        """The blocks, divided so that some of them at a time take little memory."""
        most = max(1, _PIECE_BYTES // (8 * max(width, self.shape[1])))
        for block in self.blocks():
            yield from (block[rows] for rows in gen_batches(len(block), most))

    def _count(self, blocks: Iterable[NDArray[Any]]) -> Iterator[tuple[int, NDArray[Any]]]:
        """Give every block the number of its first row; there must be n rows in all."""
        n, stop = len(self), 0
        for block in blocks:
            start, stop = stop, stop + len(block)
            if stop > n:
                break
            yield start, block
        if stop != n:
            raise ValueError(
                f"X had {n} rows when it was opened, and now "
                f"{f'more than {n}' if stop > n else f'only {stop}'}: it was changed meanwhile. "
                "Open it again."
            )


class ArrayBlocks(Blocks):
    """Rows of an array in memory, of one that is mapped from a file, or of a sparse matrix.

    Parameters
    ----------
    matrix : ndarray or scipy.sparse matrix, shape (n, q)
        The table. If it is sparse, only one block at a time is dense.
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
        """Yield the rows, block after block."""
        return map(self.read, self.slices)

    def _items(self) -> tuple[Iterable[Any], BlockFunction]:
        return self.slices, self.read

    def take(self, indices: NDArray[np.intp]) -> NDArray[Any]:
        """Return some rows."""
        return self.read(indices)

    def toarray(self) -> NDArray[Any]:
        """Return all rows, to be read only."""
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
        Type of the features.
    cache_dir : str or path, default=None
        Folder of the file; memory if None.

    Raises
    ------
    OSError
        If the folder has too little space.

    Examples
    --------
    >>> import numpy as np
    >>> features = StoredBlocks((2, 1), np.float32)
    >>> features.write(0, np.array([[1.0], [2.0]]))
    >>> features.toarray().ravel()
    array([1., 2.], dtype=float32)
    """

    def __init__(self, shape: tuple[int, int], dtype: Any, cache_dir: Any = None) -> None:
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self._file = None
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
            raise OSError("cache_dir has no space left for the features. Name another folder.")

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
        """Return some rows, whose numbers ascend."""
        return Blocks.take(self, indices)

    def rewrite(self, function: BlockFunction, width: int, *common: Any) -> None:
        """Overwrite every block by ``function(block, *common)``, which may not be wider."""
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
