"""Rows and features on a Dask cluster: the passes run where the chunks are.

Landmarks, the small algebra and the loops over candidate entries stay with the caller; a pass
sends every chunk its candidate entries, or the (l, r) coefficients, and gets the same back.
Chunks and features are results of tasks, so those of a worker that dies are computed again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate.numerics.features import Features, Part, product_block
from appellate.numerics.rows import BlockFunction, Rows


def load_dask() -> Any:
    """Import Dask, or say how to install it."""
    try:
        import dask
    except ImportError as error:
        raise ImportError("Dask input needs dask: pip install 'appellate[dask]'") from error
    return dask


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


def column_names(X: Any) -> NDArray[Any] | None:
    """Names of the columns of a data frame; None if it has none, or not only texts."""
    names = list(getattr(X, "columns", ()))
    named = names and all(isinstance(name, str) for name in names)
    return np.array(names, dtype=object) if named else None


class DaskRows(Rows):
    """Rows of a Dask array or data frame, chunk by chunk.

    Parameters
    ----------
    X : dask array, shape (n, q), or dask data frame
        Chunks of any sizes; columns are brought together.
    """

    local = False

    def __init__(self, X: Any) -> None:
        self.feature_names = column_names(X)
        if hasattr(X, "to_dask_array"):
            X = X.to_dask_array(lengths=True)
        if X.ndim != 2:
            raise ValueError(f"Expected 2D array, got {X.ndim}D array instead.")
        if np.isnan(X.shape[0]):
            X = X.compute_chunk_sizes()
        X = X.rechunk({1: -1})
        self.shape = (int(X.shape[0]), int(X.shape[1]))
        self.dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
        check = load_dask().delayed(check_block)
        self.blocks_of_rows: list[slice] = []
        self._parts: list[Any] = []
        start = 0
        for number, (size, part) in enumerate(
            zip(X.chunks[0], X.to_delayed().ravel(), strict=True)
        ):
            if size:
                self.blocks_of_rows.append(slice(start, start + size))
                self._parts.append(check(part, number, start, self.dtype))
            start += size
        if not self._parts:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")

    def blocks(self) -> Iterator[NDArray[Any]]:  # noqa: D102
        return (_compute([part])[0] for part in self._parts)

    def take(self, indices: NDArray[np.intp]) -> NDArray[Any]:  # noqa: D102
        dask = load_dask()
        pick, tasks = dask.delayed(_pick), []
        for rows, part in zip(self.blocks_of_rows, self._parts, strict=True):
            low, high = np.searchsorted(indices, (rows.start, rows.stop))
            tasks.append(pick(part, indices[low:high] - rows.start))
        return np.concatenate(_compute(tasks))

    def features(  # noqa: D102
        self,
        function: BlockFunction,
        width: int,
        cache_dir: Any = None,
        dtype: Any = np.float32,
    ) -> Features:
        dask = load_dask()
        call, shared = dask.delayed(_call), dask.delayed(function, traverse=False)
        tasks = [call(shared, part) for part in self._parts]
        return DaskFeatures((len(self), width), self.blocks_of_rows, _persist(tasks), dtype)


class DaskFeatures(Features):
    """Features that the workers of a cluster keep, a block for every chunk of the rows.

    Workers that run out of memory put them on disk, as Dask does with all results.
    """

    def __init__(
        self, shape: tuple[int, int], blocks: list[slice], parts: Sequence[Any], dtype: Any
    ) -> None:
        self.shape, self.blocks, self._parts, self.dtype = shape, blocks, parts, dtype

    def moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # noqa: D102
        dask = load_dask()
        of, add = dask.delayed(_moments), dask.delayed(_add)
        level = [of(part) for part in self._parts]
        while len(level) > 1:
            pairs = [level[k : k + 2] for k in range(0, len(level), 2)]
            level = [add(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
        total, gram = _compute(level)[0]
        return np.array(total), np.array(gram)

    def turn(self, turn: NDArray[Any], offset: NDArray[Any]) -> None:  # noqa: D102
        dask = load_dask()
        call = dask.delayed(product_block)
        common = (turn.T.astype(self.dtype), -offset.astype(self.dtype))
        shared = [dask.delayed(each, traverse=False) for each in common]
        self._parts = _persist([call(part, *shared) for part in self._parts])
        self.shape = (self.shape[0], turn.shape[1])

    def _lay_out(self, pieces: list[Part]) -> Sequence[Any]:
        dask = load_dask()
        return _persist([dask.delayed(piece, traverse=False) for piece in pieces])

    def _map(
        self, function: Callable[..., Any], parts: Sequence[Part], *common: Any
    ) -> Sequence[Any]:
        dask = load_dask()
        call = dask.delayed(function)
        shared = [dask.delayed(each, traverse=False) for each in common]
        return _compute(
            [call(block, *part, *shared) for block, part in zip(self._parts, parts, strict=True)]
        )


def _call(function: BlockFunction, block: NDArray[Any]) -> Any:
    return function(block)


def _moments(block: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    exact = block.astype(np.float64)
    return exact.sum(axis=0), exact.T @ exact


def _add(left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a + b for a, b in zip(left, right, strict=True))


def _pick(block: NDArray[Any], indices: NDArray[np.intp]) -> NDArray[Any]:
    return block[indices]


def _compute(tasks: Sequence[Any]) -> Sequence[Any]:
    dask = load_dask()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        results: Sequence[Any] = dask.compute(*tasks)
    return results


def _persist(tasks: Sequence[Any]) -> Sequence[Any]:
    dask = load_dask()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        results: Sequence[Any] = dask.persist(*tasks)
    return results
