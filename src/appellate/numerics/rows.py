"""Training rows that are read block by block, wherever they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from appellate.numerics.features import Features, StoredFeatures
from appellate.numerics.threads import ordered_map

BlockFunction = Callable[[NDArray[Any]], Any]
_BLOCK_ROWS = 4096
_PIECE_BYTES = 32 * 2**20  # of one block under way, in double precision


class Rows(ABC):
    """Rows of features of which never more than some blocks are held at a time.

    Attributes
    ----------
    shape : tuple of int
        ``(n, q)``.
    dtype : dtype
        float32 or float64.
    local : bool
        Whether the blocks are read by this process.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    local: bool = True

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.shape[0]

    @abstractmethod
    def blocks(self) -> Iterator[NDArray[Any]]:
        """Yield the rows, block after block."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Read all rows into memory, (n, q)."""
        out = np.empty(self.shape, dtype=dtype or self.dtype)
        start = 0
        for block in self.blocks():
            self._check_end(start + len(block))
            out[start : start + len(block)] = block
            start += len(block)
        self._check_end(start, last=True)
        return out

    def take(self, indices: NDArray[np.intp]) -> NDArray[Any]:
        """Return some rows, whose numbers ascend."""
        found, start = [], 0
        for block in self.blocks():
            low, high = np.searchsorted(indices, (start, start + len(block)))
            found.append(block[indices[low:high] - start])
            start += len(block)
        return np.concatenate(found)

    def features(
        self,
        function: BlockFunction,
        width: int,
        cache_dir: Any = None,
        dtype: Any = np.float32,
    ) -> Features:
        """Keep what a function makes of every block: (n, width) features."""
        out = StoredFeatures((len(self), width), dtype, cache_dir)
        start = 0
        for block in ordered_map(function, self._pieces(width), blas=True):
            self._check_end(start + len(block))
            out.write(start, block)
            start += len(block)
        self._check_end(start, last=True)
        return out

    def _pieces(self, width: int) -> Iterator[NDArray[Any]]:
        """The blocks, divided so that some of them at a time take little memory."""
        most = max(1, _PIECE_BYTES // (8 * max(width, self.shape[1])))
        for block in self.blocks():
            yield from (block[rows] for rows in gen_batches(len(block), most))

    def _check_end(self, end: int, last: bool = False) -> None:
        if end > len(self) or (last and end != len(self)):
            found = f"only {end}" if last else f"more than {len(self)}"
            raise ValueError(
                f"X had {len(self)} rows when it was opened, and now {found}: it was changed "
                "meanwhile. Open it again."
            )


class ArrayRows(Rows):
    """Rows of an array in memory, or of one that is mapped from a file.

    Parameters
    ----------
    matrix : ndarray, shape (n, q)
        The array.
    dtype : dtype, default=None
        To which every block is converted; that of the array if None.
    """

    def __init__(self, matrix: NDArray[Any], dtype: Any = None) -> None:
        self.matrix, self.shape = matrix, matrix.shape
        self.dtype = np.dtype(dtype or matrix.dtype)

    def blocks(self) -> Iterator[NDArray[Any]]:  # noqa: D102
        batches = gen_batches(len(self), _BLOCK_ROWS)
        return (self.matrix[rows].astype(self.dtype, copy=False) for rows in batches)

    def take(self, indices: NDArray[np.intp]) -> NDArray[Any]:  # noqa: D102
        return np.asarray(self.matrix[indices], dtype=self.dtype)
