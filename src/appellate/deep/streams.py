"""Named random streams, so that a method and its coupled version draw the same numbers."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray


class Streams:
    """Random numbers by name and position, not by history.

    What is drawn for "views" at epoch 3, batch 7 depends on the seed, the name and (3, 7)
    alone: not on what was drawn before, by whom, or in which process. A run that continues from
    a checkpoint, and one with a second network, therefore see the same
    numbers, and only the seed and the position must be saved.

    Parameters
    ----------
    seed : int
        Seed of all streams together.

    Examples
    --------
    >>> streams = Streams(0)
    >>> streams.permutation(5, "batches", 3).tolist() == streams.permutation(
    ...     5, "batches", 3).tolist()
    True
    >>> streams.seed("views", 0) == streams.seed("dropout", 0)
    False
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def seed(self, name: str, *position: int) -> int:
        """Return the seed of a stream at a position, below 2^63."""
        key = (zlib.crc32(name.encode()), *position)
        words = np.random.SeedSequence(self._seed, spawn_key=key).generate_state(2, np.uint32)
        return int(words[0]) << 31 | int(words[1]) >> 1

    def permutation(self, n: int, name: str, *position: int) -> NDArray[np.intp]:
        """Shuffle 0 .. n - 1."""
        return np.random.default_rng(self.seed(name, *position)).permutation(n)

    @contextmanager
    def drawing(self, name: str, *position: int) -> Iterator[None]:
        """Let torch draw from a stream within the block; `isolated` gives its own back."""
        seed = self.seed(name, *position)
        torch.default_generator.manual_seed(seed)
        if (
            torch.accelerator.is_available()
        ):  # else it only costs time: a stack trace for each kind
            torch.manual_seed(seed)
        yield


@contextmanager
def isolated(device: torch.device) -> Iterator[None]:
    """Give torch's global random state back as it was, after the block."""
    on_cpu = device.type in ("cpu", "meta")
    kind = "cuda" if on_cpu else device.type
    with torch.random.fork_rng(devices=[] if on_cpu else [device], device_type=kind):
        yield
