"""Training and test inputs as batches of tensors: arrays, memory-mapped arrays, datasets."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

RowNumbers = NDArray[np.intp]


class Inputs(ABC):
    """Rows that can be fetched in batches.

    Parameters
    ----------
    n : int
        Number of rows.
    row_shape : tuple of int
        Shape of a row as the network sees it: features, or channels, height, width.
    """

    dtype = np.dtype(np.float32)  # of what is computed from them
    double = False  # whether batches are float64

    def __init__(self, n: int, row_shape: tuple[int, ...]) -> None:
        self.shape, self.row_shape = (n, *row_shape), row_shape

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.shape[0]

    @abstractmethod
    def batches(self, batches: Sequence[RowNumbers], device: torch.device) -> Iterator[Tensor]:
        """Yield the rows of each batch on the device, as float32 or, if they are, float64."""


class ArrayInputs(Inputs):
    """Rows of an array, which may be a memory-mapped file: only a batch is ever read.

    Parameters
    ----------
    X : ndarray
        Vectors (n, q), grey images (n, h, w), or colour images (n, c, h, w) or (n, h, w, c).
        Bytes are divided by 255.

    Examples
    --------
    >>> import numpy as np
    >>> ArrayInputs(np.zeros((5, 28, 28), dtype=np.uint8)).row_shape
    (1, 28, 28)
    >>> ArrayInputs(np.zeros((5, 32, 32, 3), dtype=np.uint8)).row_shape
    (3, 32, 32)
    """

    def __init__(self, X: NDArray[Any]) -> None:
        self._X, (n, *row) = X, X.shape
        self._last = X.ndim == 4 and row[0] not in (1, 3) and row[2] in (1, 3)
        grey = [1] if X.ndim == 3 else []
        super().__init__(n, tuple([row[2], *row[:2]] if self._last else grey + row))
        self.double = X.dtype == np.float64
        self._kept: tuple[torch.device, Tensor] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is on a device."""
        return {**self.__dict__, "_kept": None}

    def batches(self, batches: Sequence[RowNumbers], device: torch.device) -> Iterator[Tensor]:
        """Yield the rows of each batch on the device, as float32 or, if they are, float64."""
        whole = self._whole(device)
        for rows in batches:
            if whole is None:
                batch = torch.from_numpy(np.ascontiguousarray(self._X[rows])).to(device)
            else:
                batch = whole[torch.from_numpy(rows).to(device)]
            if batch.dtype == torch.uint8:
                batch = batch / 255
            elif batch.dtype != torch.float64:  # which `InputScaling` centres before it is rounded
                batch = batch.to(torch.float32)
            if self._last:  # torch's convolutions can crash on strides of channels last
                batch = batch.movedim(-1, 1).contiguous()
            yield batch.reshape(-1, *self.row_shape)

    def _whole(self, device: torch.device) -> Tensor | None:
        """All rows on the device, unless they are, or are a view of, a file on disk."""
        base: Any = self._X
        while base is not None:
            if isinstance(base, np.memmap):
                return None
            base = getattr(base, "base", None)
        if self._kept is None or self._kept[0] != device:
            self._kept = device, torch.from_numpy(np.ascontiguousarray(self._X)).to(device)
        return self._kept[1]


class DatasetInputs(Inputs):
    """Rows of a torch dataset, whose items are an input or begin with one.

    Parameters
    ----------
    dataset : torch.utils.data.Dataset
        With a length. Its labels, if it has some, are ignored.
    n_workers : int, default=0
        Processes that read ahead.
    """

    def __init__(self, dataset: Dataset[Any], n_workers: int = 0) -> None:
        self._dataset, self._n_workers = dataset, n_workers
        n = len(dataset)  # type: ignore[arg-type]
        super().__init__(n, tuple(_input_of(dataset[0]).shape))

    def batches(self, batches: Sequence[RowNumbers], device: torch.device) -> Iterator[Tensor]:
        """Yield the rows of each batch as float32 on the device."""
        loader = DataLoader(
            self._dataset,
            batch_sampler=[rows.tolist() for rows in batches],
            num_workers=self._n_workers,
            collate_fn=_stack,
            generator=torch.Generator(),
        )
        for batch in loader:
            yield batch.to(device, torch.float32)


def open_inputs(X: Any, n_workers: int = 0) -> Inputs:
    """Take an array or a dataset as inputs; inputs stay what they are."""
    if isinstance(X, Inputs):
        return X
    return DatasetInputs(X, n_workers) if isinstance(X, Dataset) else ArrayInputs(X)


class InputScaling(NamedTuple):
    """Mean and deviation of the inputs: of each feature, or of each channel of images.

    In float64; rows are centred and scaled in their own precision, and are float32 then.
    """

    mean: Tensor = torch.zeros(1, dtype=torch.float64)
    deviation: Tensor = torch.ones(1, dtype=torch.float64)

    @classmethod
    def of(cls, inputs: Inputs, batch_size: int = 4096) -> InputScaling:
        """Measure all rows, block by block: first the mean, then the deviation from it."""
        images, least = len(inputs.row_shape) > 1, 1e-14 if inputs.double else 1e-7
        axes, shape = ((0, 2, 3), (1, -1, 1, 1)) if images else ((0,), (1, -1))
        count = len(inputs) * math.prod(inputs.row_shape[1:])

        def average(measure: Callable[[Tensor], Tensor]) -> Tensor:
            total = torch.zeros(inputs.row_shape[0], dtype=torch.float64)
            batches = cut_batches(np.arange(len(inputs)), batch_size)
            for batch in inputs.batches(batches, torch.device("cpu")):
                total = total + measure(batch.to(torch.float64)).sum(dim=axes)
            return (total / count).reshape(shape)

        mean = average(lambda block: block)
        deviation = average(lambda block: (block - mean) ** 2).sqrt()
        return cls(mean, torch.where(deviation <= least * (1 + mean.abs()), 1.0, deviation))

    def __call__(self, batch: Tensor) -> Tensor:
        """Centre and scale a batch."""
        mean, deviation = (x.to(batch.dtype).to(batch.device) for x in (self.mean, self.deviation))
        return ((batch - mean) / deviation).float()


def cut_batches(rows: RowNumbers, batch_size: int) -> list[RowNumbers]:
    """Cut rows into batches as they come."""
    return [rows[start : start + batch_size] for start in range(0, len(rows), batch_size)]


def cut(order: RowNumbers, batch_size: int, *, drop_last: bool = False) -> list[RowNumbers]:
    """Cut an order of rows into batches of at least two rows.

    A last row alone joins the batch before it, and a data set of one row is taken twice:
    batch normalisation cannot learn from one row. With `drop_last` the rows that do not fill
    a batch are left out, unless they are the only batch.

    Examples
    --------
    >>> [len(rows) for rows in cut(np.arange(10), 4)]
    [4, 4, 2]
    >>> [len(rows) for rows in cut(np.arange(10), 4, drop_last=True)]
    [4, 4]
    >>> [len(rows) for rows in cut(np.arange(3), 4, drop_last=True)]
    [3]
    """
    if drop_last and len(order) >= batch_size:
        order = order[: len(order) - len(order) % batch_size]
    if len(order) == 1:
        return [np.repeat(order, 2)]
    batches = cut_batches(order, batch_size)
    if len(batches[-1]) == 1:
        last = batches.pop()
        batches[-1] = np.concatenate([batches[-1], last])
    return batches


def _input_of(item: Any) -> Tensor:
    return torch.as_tensor(item[0] if isinstance(item, tuple | list) else item)


def _stack(items: list[Any]) -> Tensor:
    return torch.stack([_input_of(item) for item in items])
