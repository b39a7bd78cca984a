"""Deep classifiers with scikit-learn's manners: what PRODEN and PiCO have in common."""

from __future__ import annotations

import hashlib
import json
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch.utils.data import Dataset

from appellate._compat import Interval, StrOptions
from appellate.appeal import AppealClassifier
from appellate.base import Disambiguation
from appellate.deep.augment import make_augmentation
from appellate.deep.data import ArrayInputs, DatasetInputs, Inputs, Scaling, in_order, open_inputs
from appellate.deep.losses import PARTNER_OUTPUTS
from appellate.deep.methods import (
    Coupled,
    CoupledTwin,
    CouplingSettings,
    Ensemble,
    Method,
)
from appellate.deep.networks import make_network
from appellate.deep.processes import agreed
from appellate.deep.runs import Record, RunFolder
from appellate.deep.selection import SCORES, Selection
from appellate.deep.streams import Streams, isolated
from appellate.deep.trainer import Trainer, TrainingSettings, predict
from appellate.model_selection import candidate_train_test_split
from appellate.numerics.blocks import Blocks
from appellate.numerics.entries import CandidateEntries, Values
from appellate.numerics.geometry import Geometry

#: Parameters that change where and how a run is done, not what it computes.
_SURROUNDINGS = (
    "checkpoint_every",
    "cost",
    "device",
    "n_workers",
    "resume",
    "run_dir",
    "verbose",
    "warm_start",
)


class DeepClassifier(AppealClassifier):
    """Base class of `PRODENClassifier` and `PiCOClassifier`.

    A subclass says how its method is made (`_make_base`) and how many views it needs
    (`_views`).
    """

    _parameter_constraints = {
        **AppealClassifier._parameter_constraints,
        "network": [str, callable],
        "network_options": [dict, None],
        "partner": [StrOptions({"non-candidate", "candidate", "independent"}), None],
        "collaboration": [Interval(Real, 0, None, closed="left")],
        "blur": [Interval(Real, None, None, closed="neither"), None],
        "partner_output": [StrOptions(set(PARTNER_OUTPUTS))],
        "reduction": [StrOptions({"auto", "sum", "mean"})],
        "direction": [StrOptions({"both", "to_base", "to_partner"})],
        "head": [StrOptions({"base", "partner", "mean"})],
        "n_epochs": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 2, None, closed="left")],
        "drop_last": ["boolean"],
        "optimizer": [StrOptions({"sgd", "adam"})],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "momentum": [Interval(Real, 0, 1, closed="left")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "schedule": [StrOptions({"constant", "cosine", "step"})],
        "decay": [Interval(Real, 0, 1, closed="right")],
        "decay_every": [Interval(Integral, 1, None, closed="left")],
        "standardize": ["boolean"],
        "selection": [StrOptions({"last", *SCORES})],
        "validation_fraction": [Interval(Real, 0, 1, closed="left")],
        "warm_start": ["boolean"],
        "precision": [StrOptions({"float32", "bfloat16", "float16"})],
        "device": [str, torch.device],
        "n_workers": [Interval(Integral, 0, None, closed="left")],
        "run_dir": [str, object, None],
        "resume": ["boolean"],
        "checkpoint_every": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["boolean"],
    }

    #: Called with every epoch's record, in place of the line of `verbose`.
    _listen: Callable[[Record], None] | None = None

    # -- what a method implements -------------------------------------------------------

    @abstractmethod
    def _make_base(
        self, network: Callable[[int | None], Any], shape: tuple[int, ...], start: torch.Tensor
    ) -> Method:
        """Make the method; `network(n_outputs)` makes its networks."""

    @abstractmethod
    def _views(self) -> tuple[str, ...]:
        """Name the augmentation of every view."""

    # -- what the house asks of a classifier --------------------------------------------

    def _disambiguate(
        self, geometry: Geometry, entries: CandidateEntries, supervision: Values | None
    ) -> Disambiguation:
        """Train; `supervision` is the confidence to start from."""
        self._check_params()
        rows = geometry.matrix if isinstance(geometry.X, Blocks) else geometry.X
        inputs = open_inputs(rows, self.n_workers)
        self.input_shape_ = inputs.shape
        device = self._find_device()
        seed = agreed(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        streams = Streams(seed)
        candidates = entries.scatter(np.ones(len(entries), dtype=bool))
        initial = entries.uniform(np.float32) if supervision is None else supervision
        start = torch.from_numpy(entries.scatter(np.asarray(initial, dtype=np.float32)))
        with isolated(device):
            self._scaling = Scaling.of(inputs) if self._scales(inputs) else Scaling.none()
            self._method = self._make_method(inputs.shape, start, streams).to(device)
            held_out = self._hold_out(candidates, seed)
            folder = self._open_folder(inputs, candidates, start, seed)
            trainer = Trainer(
                self._method,
                inputs,
                torch.from_numpy(candidates),
                self._training_settings(),
                streams=streams,
                views=[make_augmentation(name) for name in self._views()],
                scaling=self._scaling,
                device=device,
                held_out=held_out,
                folder=folder,
                listen=self._listen or (_tell if self.verbose else None),
            )
            if folder is None:
                self.history_ = trainer.train()
            else:
                with folder.open(trainer):
                    self.history_ = trainer.train()
            heads = trainer.predict(inputs)
        chosen_epoch = 0 if held_out is None else held_out.best_epoch
        self.best_epoch_ = chosen_epoch or trainer.epoch
        chosen = heads.get(self.head, heads["base"])
        verdict, appeal = (_normalized(entries, each) for each in (heads["base"], chosen))
        return Disambiguation(
            initial=initial,
            confidence=appeal,
            output=entries.gather(chosen),
            n_iter=len(self.history_),
            ranking=appeal,
            state=(verdict, chosen),
        )

    def _conclude(
        self, geometry: Geometry, entries: CandidateEntries, result: Disambiguation
    ) -> NDArray[Any]:
        verdict, output = result.state
        self.verdict_confidence_ = entries.scatter(verdict)
        by_base = replace(result, confidence=verdict, ranking=verdict)
        labels = [entries.argmax(self._rank(entries, each)) for each in (by_base, result)]
        self.label_history_ = np.array(labels)
        self.verdict_ = self.classes_[labels[0]]
        self.overturned_ = labels[0] != labels[1]
        return np.asarray(output)

    def _score_blocks(self, X: Any) -> Iterator[NDArray[Any]]:
        check_is_fitted(self)
        yield self._decision(self._check_rows(X, reset=False))

    def _decision(self, X: Any) -> NDArray[Any]:
        heads = self._predict_heads(X)
        return heads.get(self.head, heads["base"])

    def _probabilities(self, scores: NDArray[Any]) -> NDArray[Any]:
        return scores  # probabilities already

    def predict_heads(self, X: Any) -> dict[str, NDArray[np.float32]]:
        """Probabilities of new rows by every network that can predict.

        Returns
        -------
        dict of str to ndarray, shape (m, l)
            ``"base"``, and with a partner ``"partner"`` and ``"mean"``.
        """
        check_is_fitted(self)
        return self._predict_heads(self._check_rows(X, reset=False))

    # -- opening ------------------------------------------------------------------------

    def _check_rows(self, X: Any, reset: bool) -> Any:
        """Take vectors, images (bytes or floats), a memory-mapped array or a dataset."""
        if isinstance(X, Dataset):
            inputs: Inputs = DatasetInputs(X, self.n_workers)
        else:
            dtypes = [np.float64, np.float32, np.uint8]
            if reset or getattr(X, "ndim", 2) < 3:
                checked = validate_data(self, X, dtype=dtypes, allow_nd=True, reset=reset)
            else:  # images in any layout; their shape is compared below
                checked = check_array(X, dtype=dtypes, allow_nd=True)
            if checked.ndim > 4:
                raise ValueError(
                    f"X has shape {checked.shape}; give vectors (n, q), grey images (n, h, w) or "
                    "colour images (n, c, h, w) or (n, h, w, c)."
                )
            inputs = ArrayInputs(checked)
        if not reset and inputs.shape != self.input_shape_:
            raise ValueError(
                f"X has rows of shape {inputs.shape}, but {type(self).__name__} was fitted on "
                f"rows of shape {self.input_shape_}."
            )
        return inputs

    def _check_params(self) -> None:
        if self.selection != "last" and not self.validation_fraction:
            raise ValueError(
                f"selection={self.selection!r} needs rows to select on: set "
                "validation_fraction, such as 0.1."
            )
        if self.resume and self.run_dir is None:
            raise ValueError("resume=True needs the run_dir that holds the checkpoint.")
        if self.resume and self.random_state is None:
            raise ValueError("resume=True needs the random_state that the run was begun with.")

    def _find_device(self) -> torch.device:
        if str(self.device) != "auto":
            try:
                return torch.empty(0, device=self.device).device
            except (AssertionError, RuntimeError) as error:
                raise ValueError(f"there is no device {str(self.device)!r}: {error}") from error
        found = (
            torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        )
        return torch.device("cpu") if found is None else found

    def _scales(self, inputs: Inputs) -> bool:
        return bool(self.standardize) and isinstance(inputs, ArrayInputs)

    # -- parts of a fit -----------------------------------------------------------------

    def _make_method(
        self, shape: tuple[int, ...], start: torch.Tensor, streams: Streams
    ) -> Method:
        """Make the networks, each from a stream of its own, or take over those of before."""
        before = getattr(self, "_method", None) if self.warm_start else None

        def network(n_outputs: int | None) -> Any:
            return make_network(self.network, shape, n_outputs, **(self.network_options or {}))

        with streams.drawing("base"):
            method = self._make_base(network, shape, start)
        if self.partner is not None:
            with streams.drawing("partner"):
                method = self._couple(method, network, shape, start)
        if before is not None:
            kept = {k: v for k, v in before.state_dict().items() if not k.endswith("confidence")}
            state = method.state_dict()
            if all(k in state and state[k].shape == v.shape for k, v in kept.items()):
                method.load_state_dict({**state, **kept})
        return method

    def _couple(
        self, base: Method, network: Any, shape: tuple[int, ...], start: torch.Tensor
    ) -> Method:
        if self.partner == "independent":
            return Ensemble(base, self._make_base(network, shape, start))
        settings = CouplingSettings(
            self.collaboration, self.blur, self.partner_output, self.reduction, self.direction
        )
        kind = Coupled if self.partner == "non-candidate" else CoupledTwin
        return kind(base, network(start.shape[1]), settings)

    def _training_settings(self) -> TrainingSettings:
        names = TrainingSettings.__dataclass_fields__
        return TrainingSettings(**{name: getattr(self, name) for name in names})

    def _hold_out(self, candidates: NDArray[np.bool_], seed: int) -> Selection | None:
        if not self.validation_fraction:
            return None
        share = float(self.validation_fraction)
        rows = candidate_train_test_split(
            np.arange(len(candidates)), candidates, test_size=share, random_state=seed
        )[1]
        return Selection(np.sort(rows), candidates, self.selection, self.head)

    def _open_folder(
        self, inputs: Inputs, candidates: NDArray[np.bool_], start: torch.Tensor, seed: int
    ) -> RunFolder | None:
        if self.run_dir is None:
            return None
        params = {k: _plain(v) for k, v in self.get_params().items() if k not in _SURROUNDINGS}
        params |= {"class": type(self).__name__, "seed": seed}
        digest = hashlib.blake2b(json.dumps(params, sort_keys=True).encode(), digest_size=16)
        digest.update(np.ascontiguousarray(candidates).tobytes() + start.numpy().tobytes())
        digest.update(str((len(inputs), inputs.shape)).encode())
        if isinstance(inputs, ArrayInputs):  # a dataset may be random
            for batch in inputs.batches(in_order(len(inputs), 4096), torch.device("cpu")):
                digest.update(batch.contiguous().numpy().tobytes())
        return RunFolder(
            self.run_dir,
            digest.hexdigest(),
            checkpoint_every=self.checkpoint_every,
            resume=self.resume,
        )

    def _predict_heads(self, X: Any) -> dict[str, NDArray[np.float32]]:
        inputs = open_inputs(X, self.n_workers)
        device = next(self._method.parameters()).device
        batches = inputs.batches(in_order(len(inputs), 1024), device)
        return predict(self._method, batches, self._scaling.to(device))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.non_deterministic = False
        return tags


def _normalized(entries: CandidateEntries, probabilities: NDArray[Any]) -> Values:
    """Probabilities of the candidates, divided by their sum; even where that is zero."""
    values = entries.gather(probabilities)
    total = entries.spread(entries.row_sum(values))
    even = entries.uniform(values.dtype)
    return np.where(total > 0, values / np.where(total > 0, total, 1), even)


def _plain(value: Any) -> Any:
    """Describe a parameter for the fingerprint of a run."""
    if isinstance(value, str | int | float | bool | None):
        return value
    if callable(value):
        name = getattr(value, "__qualname__", type(value).__qualname__)
        return f"{getattr(value, '__module__', '')}.{name}"
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    return str(value)


def _tell(record: Record) -> None:
    """One line an epoch on the standard error."""
    left = record["seconds_left"]
    sys.stderr.write(
        f"epoch {record['epoch']}: loss {record['loss']:.4f}, labels changed "
        f"{record['changed']:.1%}, {record['rows_per_second']:.0f} rows/s, "
        f"{left / 60:.1f} min left\n"
    )
