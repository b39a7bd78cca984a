"""The loop: epochs of batches, one step each, with a checkpoint that holds everything."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from appellate.deep.checkpoint import RunFolder
from appellate.deep.data import Inputs, InputScaling, RowNumbers, cut, cut_batches
from appellate.deep.methods import Batch, DeepMethod
from appellate.deep.processes import average_statistics, gather_processes, n_processes, rank, wrap
from appellate.deep.settings import Listener, Optimizer, Record
from appellate.deep.streams import Streams
from appellate.metrics import approximated_accuracy, candidate_likelihood, covering_rate

Heads = dict[str, NDArray[np.float32]]
_PARTS = ("method", "optimizer", "scaler")  # with a state of their own
_BEST = ("best", "best_epoch", "best_score")
_PRECISIONS = {"bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(eq=False)
class HeldOut:
    """Rows kept aside, and the epoch that did best on their candidate sets.

    Parameters
    ----------
    rows : ndarray of int
        Rows that are not trained on.
    candidates : ndarray of bool, shape (n, l)
        Candidate sets of all rows.
    score : str
        One of `appellate.deep.settings.SCORES` to choose the epoch by, or ``"last"`` to only
        record all of them.
    head : str
        Whose probabilities are scored.
    """

    rows: RowNumbers
    candidates: NDArray[np.bool_]
    score: str
    head: str
    best: dict[str, Any] | None = None
    best_epoch: int = 0
    best_score: float | None = None

    def judge(self, heads: Heads, epoch: int, method: DeepMethod) -> dict[str, float]:
        """Score an epoch, and keep its state if none before was better."""
        probabilities, sets = heads.get(self.head, heads["base"]), self.candidates[self.rows]
        names = np.arange(sets.shape[1])
        scores = {
            "covering_rate": covering_rate(sets, probabilities.argmax(axis=1), classes=names),
            "approximated_accuracy": approximated_accuracy(sets, probabilities, classes=names),
            "candidate_likelihood": candidate_likelihood(
                sets, probabilities, classes=names, probabilities=True
            ),
        }
        score = scores.get(self.score)
        if score is not None and (self.best_score is None or score > self.best_score):
            self.best_epoch, self.best_score = epoch, score
            self.best = {k: v.detach().clone() for k, v in method.state_dict().items()}
        return scores


@dataclass(eq=False)
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
    settings : Optimizer
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
        Rows among these that are held out to choose an epoch.
    folder : RunFolder or None
        Where checkpoint and log are kept.
    listen : callable or None
        Called with every epoch's record.
    """

    method: DeepMethod
    inputs: Inputs
    candidates: Tensor
    settings: Optimizer
    n_epochs: int
    _: KW_ONLY
    streams: Streams
    views: Sequence[Callable[[Tensor], Tensor]]
    scaling: InputScaling
    device: torch.device
    rows: RowNumbers | None = None
    held_out: HeldOut | None = None
    folder: RunFolder | None = None
    listen: Listener | None = None
    epoch: int = field(default=0, init=False)
    batch: int = field(default=0, init=False)
    sums: dict[str, Tensor] = field(default_factory=dict, init=False)
    history: list[Record] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.candidates = self.candidates.to(self.device)
        self.trained = np.arange(len(self.inputs)) if self.rows is None else self.rows
        if self.held_out is not None:
            self.trained = np.setdiff1d(self.trained, self.held_out.rows)
        if not self.trained.size:
            raise ValueError(
                "validation_fraction= leaves a fold without rows to train on. Lower it."
            )
        learnt = [p for p in self.method.parameters() if p.requires_grad]
        self.optimizer = self.settings.make(learnt)
        halves = self.settings.precision == "float16"
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=halves)
        self.stepper = wrap(self.method)
        self.labels = self._confidence().argmax(dim=1)

    def train(self) -> list[Record]:
        """Run all epochs that are left; return one record for each epoch of the run."""
        n, size = len(self.trained), cast(int, self.settings.batch_size)
        with nullcontext() if self.folder is None else self.folder.open(self):
            self._since = time.perf_counter()
            while self.epoch < self.n_epochs:
                for group in self.optimizer.param_groups:
                    group["lr"] = self.settings.rate(self.epoch, self.n_epochs)
                order = self.trained[self.streams.permutation(n, "batches", self.epoch)]
                batches = cut(order, size, drop_last=self.settings.drop_last)
                left = [_own_share(rows) for rows in batches[self.batch :]]
                self.method.train()
                for rows, x in zip(left, self.inputs.batches(left, self.device), strict=True):
                    self._step(rows, x)
                    self.batch += 1
                    if self.folder is not None:
                        self.folder.close_batch(self)
                record = self._close_epoch()
                if self.folder is not None:
                    self.folder.close_epoch(record, self)
                if self.listen is not None and rank() == 0:
                    self.listen(record)
        if self.held_out is not None and self.held_out.best is not None:
            self.method.load_state_dict(self.held_out.best)
        return self.history

    def state(self) -> dict[str, Any]:
        """Return everything that the rest of the run depends on."""
        return {
            **{name: getattr(self, name).state_dict() for name in _PARTS},
            "position": [self.epoch, self.batch],
            "sums": self.sums,
            "labels": self.labels,
            "held_out": self.held_out and {k: getattr(self.held_out, k) for k in _BEST},
            "history": self.history,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        for name in _PARTS:
            getattr(self, name).load_state_dict(state[name])
        self.epoch, self.batch = state["position"]
        self.sums = {name: value.to(self.device) for name, value in state["sums"].items()}
        self.labels, self.history = state["labels"].to(self.device), state["history"]
        if self.held_out is not None:
            self.held_out.__dict__.update(state["held_out"])

    # -- one epoch, one step ------------------------------------------------------------

    def _step(self, rows: RowNumbers, x: Tensor) -> None:
        place = (self.epoch, self.batch, rank())
        numbers = torch.from_numpy(rows).to(self.device)
        with self.streams.drawing("views", *place), torch.no_grad():
            views = tuple(self.scaling(view(x)) for view in self.views)
        batch = Batch(numbers, views, self.candidates[numbers])
        short = _PRECISIONS.get(self.settings.precision)
        shorter = torch.autocast(self.device.type, dtype=short, enabled=short is not None)
        with self.streams.drawing("networks", *place), shorter:
            step = self.stepper(batch, self.epoch, self.n_epochs)
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(step.loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        for name, value in {"loss": step.loss.detach(), **step.parts}.items():
            self.sums[name] = self.sums.get(name, 0.0) + value * len(rows)
        self.sums["rows"] = self.sums.get("rows", 0.0) + torch.tensor(float(len(rows)))

    def _close_epoch(self) -> Record:
        average_statistics(self.method)
        names = [name for name in self.sums if name != "rows"]
        totals = torch.stack([self.sums[name].to(self.device) for name in [*names, "rows"]])
        totals = gather_processes(totals[None]).sum(dim=0).cpu().double()
        values = dict(zip(names, (totals[:-1] / totals[-1]).tolist(), strict=True))
        if not all(math.isfinite(value) for value in values.values()):
            raise FloatingPointError(
                f"the loss is not finite in epoch {self.epoch + 1}. Lower learning_rate "
                f"({self.settings.learning_rate:g}), or use precision='float32'."
            )
        confidence, before = self._confidence(), self.labels
        self.labels = confidence.argmax(dim=1)
        record: Record = {
            "epoch": self.epoch + 1,
            "learning_rate": self.settings.rate(self.epoch, self.n_epochs),
            **values,
            "changed": float((self.labels != before).double().mean()),
            "mean_confidence": float(confidence.amax(dim=1).double().mean()),
        }
        if self.held_out is not None:
            heads = predict_rows(self.method, self.inputs, self.scaling, self.held_out.rows)
            record |= self.held_out.judge(heads, self.epoch + 1, self.method)
        self.sums = {}
        self.epoch = self.epoch + 1
        self.batch = 0
        now = time.perf_counter()
        seconds, self._since = now - self._since, now
        record["seconds"] = seconds
        record["rows_per_second"] = int(totals[-1]) / max(seconds, 1e-9)
        record["seconds_left"] = seconds * (self.n_epochs - self.epoch)
        self.history.append(record)
        return record

    def _confidence(self) -> Tensor:
        """Confidence of the rows that are trained on."""
        return self.method.confidence[torch.from_numpy(self.trained).to(self.device)]


@torch.inference_mode()
def predict_rows(
    method: Any, inputs: Inputs, scaling: InputScaling, rows: RowNumbers | None = None
) -> Heads:
    """Probabilities of rows, by default all, by every head, (m, l), in evaluation mode."""
    method.eval()
    parts: dict[str, list[Tensor]] = {}
    batches = cut_batches(np.arange(len(inputs)) if rows is None else rows, 1024)
    for batch in inputs.batches(batches, next(method.parameters()).device):
        for name, probabilities in method.heads(scaling(batch)).items():
            parts.setdefault(name, []).append(probabilities.cpu())
    return {name: torch.cat(tensors).numpy() for name, tensors in parts.items()}


def _own_share(rows: RowNumbers) -> RowNumbers:
    """Rows of a batch that this process takes; all take equally many, of two or more."""
    n = n_processes()
    if n == 1:
        return rows
    each = max(len(rows) // n, 2)
    return np.resize(rows, each * n)[rank() :: n]
