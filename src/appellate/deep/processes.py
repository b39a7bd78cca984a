"""The few things that several training processes have to agree on (torch.distributed)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import signature

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel


@contextmanager
def opened_group(device: str) -> Iterator[None]:
    """Join the processes that torchrun started, within the block; nothing if it did not.

    Parameters
    ----------
    device : str
        Where this process will compute; with CUDA each takes the GPU of its local number.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) < 2 or "RANK" not in os.environ:
        yield
        return
    on_cuda = device.startswith("cuda") or (device == "auto" and torch.cuda.is_available())
    if on_cuda:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group("nccl" if on_cuda else "gloo")
    try:
        yield
    finally:
        dist.destroy_process_group()


def n_processes() -> int:
    """Count the processes of this run; 1 unless a process group was opened."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Return the number of this process, from 0."""
    return dist.get_rank() if n_processes() > 1 else 0


def gather_processes(tensor: Tensor) -> Tensor:
    """Stack the tensors of all processes, in their order; they must have one shape."""
    if n_processes() == 1:
        return tensor
    parts = [torch.empty_like(tensor) for _ in range(n_processes())]
    dist.all_gather(parts, tensor.detach().contiguous())
    return torch.cat(parts)


def wrap(method: nn.Module) -> nn.Module:
    """Let the processes average their gradients.

    The method gathers its own buffers (confidences, queue, prototypes) itself.
    """
    if n_processes() == 1:
        return method
    if "forward_sync_buffers" in signature(DistributedDataParallel).parameters:  # torch 2.13
        return DistributedDataParallel(method, forward_sync_buffers=False)
    return DistributedDataParallel(method, broadcast_buffers=False)


def average_statistics(method: nn.Module) -> None:
    """Average the running statistics of batch normalisation, so that all predict alike."""
    if n_processes() == 1:
        return
    for name, buffer in method.named_buffers():
        if name.endswith(("running_mean", "running_var")):
            dist.all_reduce(buffer)
            buffer /= n_processes()


def agreed(number: int) -> int:
    """Give every process the number of the first one."""
    if n_processes() == 1:
        return number
    box = [number]
    dist.broadcast_object_list(box, src=0)
    return box[0]
