"""One file with everything that a run needs to go on: tensors as safetensors, the rest as JSON.

Nothing is pickled, so reading a file cannot run code. A file is written beside its place and
moved there when it is whole: a run that is killed while writing leaves the file before it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from appellate._files import whole_file

_TENSOR, _PAIRS, _TUPLE = "__tensor__", "__pairs__", "__tuple__"


class CheckpointError(ValueError):
    """A file that cannot be read, or that belongs to another run."""


def save_tree(tree: dict[str, Any], path: Path) -> None:
    """Write nested dicts, lists and tuples of tensors and plain values.

    Parameters
    ----------
    tree : dict
        Its keys may be strings or integers.
    path : Path
        The file; replaced at once, or not at all.
    """
    tensors: dict[str, torch.Tensor] = {}
    skeleton = json.dumps(_take_out(tree, "", tensors), allow_nan=False)
    with whole_file(path) as part:
        save_file(tensors, part, metadata={"tree": skeleton})


def load_tree(path: Path, device: str = "cpu") -> dict[str, Any]:
    """Read what `save_tree` wrote.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    CheckpointError
        If it is damaged, or no file of ours.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no file '{path}'.")
    try:
        with safe_open(path, framework="pt", device=device) as file:
            skeleton = (file.metadata() or {})["tree"]
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        tree: dict[str, Any] = _put_back(json.loads(skeleton), tensors)
    except (SafetensorError, KeyError, ValueError) as error:
        raise CheckpointError(
            f"'{path}' is damaged or was not written by appellate ({error})."
        ) from error
    return tree


def _take_out(value: Any, name: str, tensors: dict[str, torch.Tensor]) -> Any:
    """Move the tensors of a tree into a flat dict and leave their names behind."""
    if isinstance(value, torch.Tensor):
        # A copy: two names may share one memory, which safetensors refuses.
        tensors[name] = value.detach().to("cpu", copy=True).contiguous()
        return {_TENSOR: name}
    if isinstance(value, dict):
        pairs = [(k, _take_out(v, f"{name}.{k}".lstrip("."), tensors)) for k, v in value.items()]
        return dict(pairs) if all(isinstance(k, str) for k in value) else {_PAIRS: pairs}
    if isinstance(value, list | tuple):
        items = [_take_out(v, f"{name}.{i}", tensors) for i, v in enumerate(value)]
        return {_TUPLE: items} if isinstance(value, tuple) else items
    return value


def _put_back(value: Any, tensors: dict[str, torch.Tensor]) -> Any:
    if isinstance(value, list):
        return [_put_back(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    if _TENSOR in value:
        return tensors[value[_TENSOR]]
    if _PAIRS in value:
        return {key: _put_back(item, tensors) for key, item in value[_PAIRS]}
    if _TUPLE in value:
        return tuple(_put_back(item, tensors) for item in value[_TUPLE])
    return {key: _put_back(item, tensors) for key, item in value.items()}
