"""The folder of a run: its checkpoint, its log, and how it is stopped and taken up again.

A checkpoint is one file with everything that a run needs to continue: tensors as safetensors, the
rest as JSON. Nothing is pickled, so reading a file cannot run code. It is written under another
name and renamed when it is complete: a run that is killed while writing leaves the file before it.
"""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from appellate._files import (
    MemberError,
    check_member,
    check_members,
    parse_json,
    whole_file,
    write_file,
)
from appellate.deep.processes import n_processes, rank
from appellate.deep.settings import Record

if TYPE_CHECKING:
    from appellate.deep.trainer import Trainer

CHECKPOINT = "checkpoint.safetensors"
LOG = "log.jsonl"
_BOARD = "tensorboard"
_TENSOR, _PAIRS = "__tensor__", "__pairs__"


class CheckpointError(ValueError):
    """A file that cannot be read, or that belongs to another run."""


def save_tree(tree: dict[str, Any], path: Path) -> None:
    """Write nested dicts and lists of tensors and plain values; tuples become lists.

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


def load_tree(path: Path) -> dict[str, Any]:
    """Read what `save_tree` wrote.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    CheckpointError
        If it is damaged, or no file of ours.
    """
    try:
        with safe_open(check_member(path.parent, path.name), framework="pt") as file:
            skeleton = (file.metadata() or {})["tree"]
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        tree = _put_back(parse_json(skeleton), tensors)
        if not isinstance(tree, dict):
            raise TypeError("it holds no names")
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"cannot find the file '{path}'.") from None
    except MemberError as error:
        raise CheckpointError(str(error)) from error
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        raise _damaged(path, error) from error
    return tree


def _damaged(path: Path, error: Exception) -> CheckpointError:
    said = str(error).partition("\n")[0][:200]
    return CheckpointError(
        f"'{path}' is damaged or was not written by appellate ({type(error).__name__}: {said}). "
        "Remove it to begin again, or get the folder again."
    )


def _check_state(trainer: Trainer) -> None:
    """Raise an error if what was loaded cannot be the state of a run."""
    epoch, n = trainer.epoch, len(trainer.trained)
    places = type(epoch) is int and type(trainer.batch) is int and trainer.batch >= 0
    if not places or not 0 <= epoch <= trainer.n_epochs:
        raise ValueError(f"epoch {epoch} of {trainer.n_epochs}")
    json.dumps(trainer.history, allow_nan=False)
    if len(trainer.history) != epoch or not all(isinstance(r, dict) for r in trainer.history):
        raise ValueError("the log does not fit the epochs")
    if trainer.labels.shape != (n,) or trainer.labels.dtype != torch.int64:
        raise ValueError("the labels do not fit the rows")
    if any(value.dim() for value in trainer.sums.values()):
        raise ValueError("a sum is not a number")
    kept = trainer.held_out
    if kept is not None and not (type(kept.best_epoch) is int and 0 <= kept.best_epoch <= epoch):
        raise ValueError(f"the best epoch is {kept.best_epoch}")
    if kept is not None and kept.best is not None:
        shapes = {name: value.shape for name, value in trainer.method.state_dict().items()}
        if shapes != {name: value.shape for name, value in kept.best.items()}:
            raise ValueError("the best epoch is of another network")


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
        return [_take_out(v, f"{name}.{i}", tensors) for i, v in enumerate(value)]
    return value


def _put_back(value: Any, tensors: dict[str, torch.Tensor]) -> Any:
    if isinstance(value, list):
        return [_put_back(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    if _TENSOR in value:
        return tensors[value[_TENSOR]]
    return {key: _put_back(item, tensors) for key, item in value.get(_PAIRS, value.items())}


@dataclass(eq=False)
class RunFolder:
    """Where a run keeps its checkpoint and its log.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    fingerprint : str
        Hash of the data and of all settings; a checkpoint of another run is refused.
    checkpoint_every : int
        Epochs between checkpoints. The last epoch and an interrupt always write one.
    resume : bool
        Whether to continue from a checkpoint. If False, an existing checkpoint is an error.
    """

    folder: Path
    fingerprint: str
    checkpoint_every: int = 1
    resume: bool = False

    _stop_asked: bool = field(default=False, init=False)
    _board: Any = field(default=None, init=False)

    @contextmanager
    def open(self, trainer: Trainer) -> Iterator[None]:
        """Take up the run, and defer Ctrl-C and SIGTERM to the end of a step."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / CHECKPOINT
        try:  # nothing is written through a link
            check_members(self.folder, {LOG: "a file", CHECKPOINT: "a file", _BOARD: "a folder"})
        except MemberError as error:
            raise CheckpointError(str(error)) from error
        if path.exists():
            if not self.resume:
                raise FileExistsError(
                    f"'{path}' exists already. Continue it with resume=True, or name another "
                    "folder of the run."
                )
            tree = load_tree(path)
            if tree.get("fingerprint") != self.fingerprint:
                raise CheckpointError(
                    f"'{path}' belongs to a run with other data or settings. Name another "
                    "folder, or use the data and settings of that run."
                )
            try:
                trainer.load_state(tree["trainer"])
                _check_state(trainer)
            except Exception as error:  # whatever a changed file leads to
                if "out of memory" in str(error):
                    raise
                raise _damaged(path, error) from error
        if rank() == 0:  # more may have been logged after the checkpoint
            lines = (json.dumps(record, allow_nan=False) + "\n" for record in trainer.history)
            write_file(self.folder / LOG, "".join(lines))
            if find_spec("tensorboard") is not None:
                from torch.utils.tensorboard import SummaryWriter

                board, step = self.folder / _BOARD, len(trainer.history) + 1
                self._board = SummaryWriter(board, purge_step=step)
        before: dict[signal.Signals, Any] = {}
        if n_processes() == 1 and threading.current_thread() is threading.main_thread():
            before = {sign: signal.getsignal(sign) for sign in (signal.SIGINT, signal.SIGTERM)}
        try:
            for sign in before:  # several processes could not agree on a step
                signal.signal(sign, self._note)
            yield
        finally:
            for sign, handler in before.items():
                signal.signal(sign, signal.SIG_DFL if handler is None else handler)
            if self._board is not None:
                self._board.close()

    def _note(self, number: int, frame: Any) -> None:
        if self._stop_asked:  # the second time: at once
            raise KeyboardInterrupt
        self._stop_asked = True

    def close_batch(self, trainer: Trainer) -> None:
        """After each step: stop here if the user asked to."""
        if self._stop_asked:
            self.save(trainer)
            raise KeyboardInterrupt

    def close_epoch(self, record: Record, trainer: Trainer) -> None:
        """Write the log, and a checkpoint if it is due."""
        if rank() == 0:
            with (self.folder / LOG).open("a", encoding="utf-8") as file:
                file.write(json.dumps(record, allow_nan=False) + "\n")
        if self._board is not None:
            for name, value in record.items():
                self._board.add_scalar(name, value, record["epoch"])
        if trainer.epoch == trainer.n_epochs or trainer.epoch % self.checkpoint_every == 0:
            self.save(trainer)

    def save(self, trainer: Trainer) -> None:
        """Write the checkpoint; the first process does it for all."""
        if rank() == 0:
            tree = {"fingerprint": self.fingerprint, "trainer": trainer.state()}
            save_tree(tree, self.folder / CHECKPOINT)
