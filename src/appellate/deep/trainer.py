"""The loop: epochs of batches, one step each, with a checkpoint that holds everything."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from appellate.deep.data import Inputs, Rows, Scaling, cut, in_order
from appellate.deep.folder import Record, RunFolder, Stopwatch
from appellate.deep.methods import Batch, Method
from appellate.deep.processes import average_statistics, gather, n_processes, rank, wrap
from appellate.deep.selection import HeldOut
from appellate.deep.settings import Listener, Optimizer
from appellate.deep.streams import Streams

View = Callable[[Tensor], Tensor]
_PRECISIONS = {"bfloat16": torch.bfloat16, "float16": torch.float16}


class Trainer:
    """Train a method on inputs and candidate sets.

    Parameters
    ----------
    method : Method
        What is trained; on the device already.
    inputs : Inputs
        Training rows.
    candidates : Tensor of bool, shape (n, l)
        Their candidate sets.
    optimizer : Optimizer
        How, with nothing left open.
    n_epochs : int
        Passes over the data.
    streams : Streams
        Where randomness comes from.
    views : sequence of callable
        Augmentations, one for each view that the method wants.
    scaling : Scaling
        Applied after them.
    device : torch.device
        Where to compute.
    rows : ndarray of int or None
        Rows to train on; None: all.
    held_out : HeldOut or None
        Of these, rows kept aside to choose an epoch by.
    folder : RunFolder or None
        Where checkpoint and log are kept.
    listen : callable or None
        Called with every epoch's record.
    """

    def __init__(
        self,
        method: Method,
        inputs: Inputs,
        candidates: Tensor,
        optimizer: Optimizer,
        n_epochs: int,
        *,
        streams: Streams,
        views: Sequence[View],
        scaling: Scaling,
        device: torch.device,
        rows: Rows | None = None,
        held_out: HeldOut | None = None,
        folder: RunFolder | None = None,
        listen: Listener | None = None,
    ) -> None:
        self.method, self.inputs, self.settings = method, inputs, optimizer
        self.n_epochs = int(n_epochs)
        self.candidates, self.device = candidates.to(device), device
        self.streams, self.views, self.scaling = streams, views, scaling
        self.held_out, self.folder, self.listen = held_out, folder, listen
        rows = np.arange(len(inputs)) if rows is None else rows
        self.rows = rows if held_out is None else np.setdiff1d(rows, held_out.rows)
        trained = [p for p in method.parameters() if p.requires_grad]
        self.optimizer = optimizer.make(trained)
        self.scaler = torch.amp.GradScaler(device.type, enabled=optimizer.precision == "float16")
        self.stepper = wrap(method)
        self.epoch, self.batch = 0, 0
        self.sums: dict[str, Tensor] = {}
        self.labels = self._labels()
        self.history: list[Record] = []

    def train(self) -> list[Record]:
        """Run all epochs that are left; return one record for each epoch of the run."""
        with nullcontext() if self.folder is None else self.folder.open(self):
            clock = Stopwatch(self.n_epochs - self.epoch)
            while self.epoch < self.n_epochs:
                self._train_epoch()
                record = self._close_epoch(clock)
                if self.folder is not None:
                    self.folder.close_epoch(record, self)
                if self.listen is not None and rank() == 0:
                    self.listen(record)
        if self.held_out is not None and self.held_out.best is not None:
            self.method.load_state_dict(self.held_out.best)
        return self.history

    def predict(self, rows: Rows | None = None) -> dict[str, NDArray[np.float32]]:
        """Probabilities of training rows, by default all, by every head, (m, l)."""
        chosen = np.arange(len(self.inputs)) if rows is None else rows
        batches = [chosen[part] for part in in_order(len(chosen), 1024)]
        return predict(self.method, self.inputs.batches(batches, self.device), self.scaling)

    def state(self) -> dict[str, Any]:
        """Return everything that the rest of the run depends on."""
        return {
            "method": self.method.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "position": [self.epoch, self.batch],
            "sums": self.sums,
            "labels": self.labels,
            "held_out": None if self.held_out is None else self.held_out.state(),
            "history": self.history,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.method.load_state_dict(state["method"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scaler.load_state_dict(state["scaler"])
        self.epoch, self.batch = state["position"]
        self.sums = {name: value.to(self.device) for name, value in state["sums"].items()}
        self.labels, self.history = state["labels"].to(self.device), state["history"]
        if self.held_out is not None:
            self.held_out.load_state(state["held_out"])

    # -- one epoch, one step ------------------------------------------------------------

    def _train_epoch(self) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.rate(self.epoch, self.n_epochs)
        order = self.rows[self.streams.permutation(len(self.rows), "batches", self.epoch)]
        size, drop_last = self.settings.batch_size, self.settings.drop_last
        assert size is not None
        batches = [_own_share(rows) for rows in cut(order, size, drop_last=drop_last)]
        left = batches[self.batch :]
        self.method.train()
        for rows, x in zip(left, self.inputs.batches(left, self.device), strict=True):
            self._step(rows, x)
            self.batch += 1
            if self.folder is not None:
                self.folder.close_batch(self)

    def _step(self, rows: Rows, x: Tensor) -> None:
        place = (self.epoch, self.batch, rank())
        numbers = torch.from_numpy(rows).to(self.device)
        with self.streams.drawing("views", *place), torch.no_grad():
            views = tuple(self.scaling(view(x)) for view in self.views)
        batch = Batch(numbers, views, self.candidates[numbers])
        with self.streams.drawing("networks", *place), self._autocast():
            step = self.stepper(batch, self.epoch, self.n_epochs)
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(step.loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        for name, value in {"loss": step.loss.detach(), **step.parts}.items():
            self.sums[name] = self.sums.get(name, 0.0) + value * len(rows)
        self.sums["rows"] = self.sums.get("rows", 0.0) + torch.tensor(float(len(rows)))

    def _close_epoch(self, clock: Stopwatch) -> Record:
        average_statistics(self.method)
        names = [name for name in self.sums if name != "rows"]
        totals = torch.stack([self.sums[name].to(self.device) for name in [*names, "rows"]])
        totals = gather(totals[None]).sum(dim=0).cpu().double()
        values = dict(zip(names, (totals[:-1] / totals[-1]).tolist(), strict=True))
        if not all(math.isfinite(value) for value in values.values()):
            raise FloatingPointError(
                f"the loss is not finite in epoch {self.epoch + 1}. Lower learning_rate "
                f"({self.settings.learning_rate:g}), or use precision='float32'."
            )
        labels, before = self._labels(), self.labels
        record: Record = {
            "epoch": self.epoch + 1,
            "learning_rate": self.settings.rate(self.epoch, self.n_epochs),
            **values,
            "changed": float((labels != before).double().mean()),
            "mean_confidence": float(self._confidence().amax(dim=1).double().mean()),
        }
        if self.held_out is not None:
            heads = self.predict(self.held_out.rows)
            record |= self.held_out.judge(heads, self.epoch + 1, self.method)
        record |= clock.lap(int(totals[-1]))
        self.labels, self.sums = labels, {}
        self.epoch, self.batch = self.epoch + 1, 0
        self.history.append(record)
        return record

    def _labels(self) -> Tensor:
        return self._confidence().argmax(dim=1)

    def _confidence(self) -> Tensor:
        """Confidence of the rows that are trained on."""
        return self.method.confidence[torch.from_numpy(self.rows).to(self.device)]

    def _autocast(self) -> torch.autocast:
        dtype = _PRECISIONS.get(self.settings.precision)
        return torch.autocast(self.device.type, dtype=dtype, enabled=dtype is not None)


@torch.inference_mode()
def predict(method: Any, batches: Any, scaling: Scaling) -> dict[str, NDArray[np.float32]]:
    """Probabilities of batches of inputs by every head, (m, l), in evaluation mode."""
    method.eval()
    parts: dict[str, list[Tensor]] = {}
    for batch in batches:
        for name, probabilities in method.heads(scaling(batch)).items():
            parts.setdefault(name, []).append(probabilities.cpu())
    return {name: torch.cat(tensors).numpy() for name, tensors in parts.items()}


def _own_share(rows: Rows) -> Rows:
    """Rows of a batch that this process takes; all take equally many, of two or more."""
    n = n_processes()
    if n == 1:
        return rows
    each = max(len(rows) // n, 2)
    return np.resize(rows, each * n)[rank() :: n]
