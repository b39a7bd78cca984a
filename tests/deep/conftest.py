"""Settings of the deep tests: one thread, so that sums are always taken in one order."""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("torch") is not None:
    import torch

    torch.set_num_threads(1)
