"""One training after another in one fit: what they share, and what each leaves."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from appellate.deep.augment import make_augmentation
from appellate.deep.data import ArrayInputs, Inputs, Rows, Scaling, in_order
from appellate.deep.folder import Record, RunFolder
from appellate.deep.methods import Method, Plan
from appellate.deep.selection import HeldOut
from appellate.deep.settings import Listener, Optimizer, Run, Selection, Settings
from appellate.deep.streams import Streams, isolated
from appellate.deep.trainer import Trainer
from appellate.model_selection import candidate_train_test_split


@dataclass(frozen=True, eq=False)
class Heard:
    """What a training leaves: the networks, its records, what they say of all rows."""

    method: Method
    history: list[Record]
    best_epoch: int
    heads: dict[str, NDArray[np.float32]]


@dataclass(frozen=True, eq=False)
class Hearing:
    """All trainings of a fit: on the same rows, with the same settings.

    Attributes
    ----------
    inputs : Inputs
        Training rows.
    candidates : ndarray of bool, shape (n, l)
        Their candidate sets.
    plan : Plan
        What is trained.
    optimizer : Optimizer
        How, with nothing left open.
    views : tuple of str
        Augmentations.
    scaling : Scaling
        Of the rows.
    selection : Selection
        Which epoch is kept.
    head : str
        Who predicts.
    run : Run
        Where it is done.
    folder : Path or None
        Of the checkpoints.
    settings : dict
        All else that a checkpoint must agree with.
    """

    inputs: Inputs
    candidates: NDArray[np.bool_]
    plan: Plan
    optimizer: Optimizer
    views: tuple[str, ...]
    scaling: Scaling
    selection: Selection
    head: str
    run: Run
    folder: Path | None
    settings: dict[str, Any]

    def train(
        self,
        start: NDArray[Any],
        n_epochs: int,
        seed: int,
        *,
        tau: float = 0.0,
        fixed: bool = False,
        rows: Rows | None = None,
        place: str = "",
        before: Method | None = None,
    ) -> Heard:
        """Train from a confidence.

        Parameters
        ----------
        start : ndarray, shape (n, l)
            The confidence.
        n_epochs : int
            Passes over the rows.
        seed : int
            Of all streams.
        tau, fixed : float, bool
            What becomes of the confidence, see `Plan`.
        rows : ndarray of int or None
            Rows to train on; None: all.
        place : str
            Folder of the checkpoint in that of the fit.
        before : Method or None
            Whose weights to start from, if they fit.
        """
        device, streams = self.run.find_device(), Streams(seed)
        first = torch.from_numpy(np.asarray(start, dtype=np.float32))
        plan = replace(self.plan, tau=tau, fixed=fixed)
        with isolated(device):
            method = _take_over(plan.make(first, streams), before).to(device)
            held_out = self._hold_out(seed)
            trainer = Trainer(
                method,
                self.inputs,
                torch.from_numpy(self.candidates),
                self.optimizer,
                n_epochs,
                streams=streams,
                views=[make_augmentation(name) for name in self.views],
                scaling=self.scaling,
                device=device,
                rows=rows,
                held_out=held_out,
                folder=self._open_folder(place, [first, seed, n_epochs, tau, fixed, rows]),
                listen=self._listener(place),
            )
            history = trainer.train()
            best_epoch = (0 if held_out is None else held_out.best_epoch) or trainer.epoch
            return Heard(method, history, best_epoch, trainer.predict())

    def _listener(self, place: str) -> Listener | None:
        """Who hears of every epoch, and of what it is an epoch."""
        listener = self.run.listener
        if listener is None or not place:
            return listener
        return lambda record: listener({**record, "part": place})

    def _hold_out(self, seed: int) -> HeldOut | None:
        n, share = len(self.candidates), self.selection.fraction
        if not share:
            return None
        if not 1 <= share * n <= n - 1:
            raise ValueError(
                f"validation_fraction={share:g} of {n} rows leaves no row to "
                f"{'select' if share * n < 1 else 'train'} on: give it another value."
            )
        rows: Rows = candidate_train_test_split(
            np.arange(n), self.candidates, test_size=share, random_state=seed
        )[1]
        return HeldOut(np.sort(rows), self.candidates, self.selection.selection, self.head)

    def _open_folder(self, place: str, more: list[Any]) -> RunFolder | None:
        if self.folder is None:
            return None
        digest = self._digest.copy()
        digest.update(json.dumps(_plain(more), sort_keys=True).encode())
        every, resume = self.run.checkpoint_every, self.run.resume
        folder, told = self.folder / place, digest.hexdigest()
        return RunFolder(folder, told, checkpoint_every=every, resume=resume)

    @cached_property
    def _digest(self) -> Any:
        """Fingerprint of the data and of all settings."""
        told = _plain([self.settings, self.views, self.optimizer])
        digest = hashlib.blake2b(json.dumps(told, sort_keys=True).encode(), digest_size=16)
        digest.update(np.ascontiguousarray(self.candidates).tobytes())
        digest.update(str((len(self.inputs), self.inputs.row_shape)).encode())
        if isinstance(self.inputs, ArrayInputs):  # a dataset may be random
            for batch in self.inputs.batches(
                in_order(len(self.inputs), 4096), torch.device("cpu")
            ):
                digest.update(batch.contiguous().numpy().tobytes())
        return digest


def _take_over(method: Method, before: Method | None) -> Method:
    """Give a method the weights of another one, if they fit."""
    if before is not None:
        state, kept = method.state_dict(), weights(before)
        if all(k in state and state[k].shape == v.shape for k, v in kept.items()):
            method.load_state_dict({**state, **kept})
    return method


def weights(method: nn.Module) -> dict[str, torch.Tensor]:
    """All weights and buffers but what was learnt of the training rows' labels."""
    state = method.state_dict().items()
    return {k: v for k, v in state if not k.endswith(("confidence", "prior.shares"))}


def _plain(value: Any) -> Any:
    """Describe a parameter for the fingerprint of a run."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str | int | float | bool | None):
        return value
    if isinstance(value, Settings):
        value = value.get_params()
    if isinstance(value, np.ndarray | torch.Tensor):
        return hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=16).hexdigest()
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if callable(value):
        name = getattr(value, "__qualname__", type(value).__qualname__)
        return f"{getattr(value, '__module__', '')}.{name}"
    return str(value)
