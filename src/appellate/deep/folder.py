"""The folder of a run: its checkpoint, its log, and how it is stopped and taken up again."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from appellate._files import write_file
from appellate.deep.checkpoint import CheckpointError, load_tree, save_tree
from appellate.deep.processes import n_processes, rank

if TYPE_CHECKING:
    from appellate.deep.trainer import Trainer

Record = dict[str, Any]
CHECKPOINT = "checkpoint.safetensors"
LOG = "log.jsonl"


class Stopwatch:
    """Time of each epoch, rows a second, and how long the rest will take."""

    def __init__(self, n_epochs: int) -> None:
        self._left = n_epochs
        self._last = time.perf_counter()

    def lap(self, n_rows: int) -> Record:
        """Close an epoch."""
        now = time.perf_counter()
        seconds, self._last = now - self._last, now
        self._left -= 1
        return {
            "seconds": seconds,
            "rows_per_second": n_rows / max(seconds, 1e-9),
            "seconds_left": seconds * self._left,
        }


class RunFolder:
    """Where a run keeps its checkpoint and its log.

    Parameters
    ----------
    folder : path
        Made if it is not there.
    fingerprint : str
        Of the data and of all settings; a checkpoint of another run is refused.
    checkpoint_every : int
        Epochs between checkpoints. The last epoch and an interrupt always write one.
    resume : bool
        Whether to go on from a checkpoint; without it a checkpoint in the way is an error.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        fingerprint: str,
        *,
        checkpoint_every: int = 1,
        resume: bool = False,
    ) -> None:
        self.folder = Path(folder)
        self._fingerprint, self._every, self._resume = fingerprint, checkpoint_every, resume
        self._stop_asked = False
        self._board: Any = None

    @contextmanager
    def open(self, trainer: Trainer) -> Iterator[None]:
        """Take up the run, and defer Ctrl-C and SIGTERM to the end of a step."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / CHECKPOINT
        if path.exists() and not self._resume:
            raise FileExistsError(
                f"'{path}' is there already. Go on from it with resume=True, or name another "
                "folder of the run."
            )
        if path.exists():
            tree = load_tree(path)
            if tree.get("fingerprint") != self._fingerprint:
                raise CheckpointError(
                    f"'{path}' belongs to a run with other data or settings. Name another "
                    "folder, or use the data and settings of that run."
                )
            trainer.load_state(tree["trainer"])
        self._restart_log(trainer.history)
        try:
            with self._deferred_signals():
                yield
        finally:
            if self._board is not None:
                self._board.close()

    def close_batch(self, trainer: Trainer) -> None:
        """After each step: stop here if the user asked to."""
        if self._stop_asked:
            self.save(trainer)
            raise KeyboardInterrupt

    def close_epoch(self, record: Record, trainer: Trainer) -> None:
        """Write the log, and a checkpoint if it is due."""
        done = trainer.epoch == trainer.n_epochs
        if rank() == 0:
            with (self.folder / LOG).open("a", encoding="utf-8") as file:
                file.write(json.dumps(record, allow_nan=False) + "\n")
            self._draw(record)
        if done or trainer.epoch % self._every == 0:
            self.save(trainer)

    def save(self, trainer: Trainer) -> None:
        """Write the checkpoint; the first process does it for all."""
        if rank() == 0:
            tree = {"fingerprint": self._fingerprint, "trainer": trainer.state()}
            save_tree(tree, self.folder / CHECKPOINT)

    def _restart_log(self, history: list[Record]) -> None:
        """Write the log anew up to the checkpoint, since more may have been logged after it."""
        if rank() > 0:
            return
        lines = (json.dumps(record, allow_nan=False) + "\n" for record in history)
        write_file(self.folder / LOG, "".join(lines))
        if find_spec("tensorboard") is not None:
            from torch.utils.tensorboard import SummaryWriter

            board = self.folder / "tensorboard"
            self._board = SummaryWriter(board, purge_step=len(history) + 1)

    def _draw(self, record: Record) -> None:
        if self._board is None:
            return
        for name, value in record.items():
            if name != "epoch":
                self._board.add_scalar(name, value, record["epoch"])

    @contextmanager
    def _deferred_signals(self) -> Iterator[None]:
        """Let a signal wait for the end of the step; several processes cannot agree on one."""
        if n_processes() > 1 or threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {sign: signal.getsignal(sign) for sign in (signal.SIGINT, signal.SIGTERM)}

        def note(number: int, frame: Any) -> None:
            if self._stop_asked:  # the second time: at once
                raise KeyboardInterrupt
            self._stop_asked = True

        try:
            for sign in before:
                signal.signal(sign, note)
            yield
        finally:
            for sign, handler in before.items():
                signal.signal(sign, signal.SIG_DFL if handler is None else handler)
