"""The networks of one fit: their number, and how they use candidate sets.

A network has learnt how frequent each label is. A candidate set that came first (faces and a
caption, segments and an image's tags) contains that already, so the network's targets are

    P(y = j | x, S)  ~  1[j in S] p_j(x) / pi_j^tau        tau = 0 label-first, 1 set-first

*In-sample*, p is the network's own output in training and pi a moving average; it costs nothing.
*Honest*, p comes from networks that did not see the row, in rounds over folds: where networks
memorise their rows, and where tau has to be found from the sets (`appellate.evidence.likelihood`).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import clone

from appellate.deep.augment import make_augmentation
from appellate.deep.checkpoint import RunFolder
from appellate.deep.data import ArrayInputs, Inputs, InputScaling, RowNumbers, cut_batches
from appellate.deep.methods import DeepMethod, MethodPlan, combine
from appellate.deep.processes import n_processes
from appellate.deep.settings import Record, Settings
from appellate.deep.streams import Streams, isolated
from appellate.deep.trainer import HeldOut, Trainer, predict_rows
from appellate.evidence.ambiguity import PROOF, TAUS, choose_tau, resemblance
from appellate.evidence.held_out import above_chance, row_criterion
from appellate.evidence.likelihood import Evidence, estep
from appellate.evidence.scales import fit_temperature, soften
from appellate.model_selection import candidate_train_test_split
from appellate.numerics.entries import Values
from appellate.numerics.threads import replacing_workers

AnyMatrix = NDArray[Any]
_TEMPERATURES = 0.5, 4.0
_IN_SAMPLE = 0.5  # tau; 1 takes away too much of what is still being learnt
_HONEST = 1.0  # tau; .5 is better in the first round, but its later rounds learn less
_FOLDS = 5

#: Parameters that change where and how a run is done, not what it computes.
_SURROUNDINGS = ("cost", "run", "warm_start")


@dataclass(frozen=True)
class Reading:
    """What out-of-fold probabilities say about the sets.

    Attributes
    ----------
    tau, temperature, criterion : float
        The chosen tau, the temperature at which its criterion is largest, and that criterion.
    resemblance : float or None
        Whether the false labels look like the true ones (`appellate.evidence.resemblance`), by
        the label-first networks; None if too few rows are confident, or if tau was given.
    """

    tau: float
    temperature: float
    criterion: float
    resemblance: float | None = None

    @classmethod
    def of(cls, scores: AnyMatrix, evidence: Evidence, tau: float | None = None) -> Reading:
        """Read the sets by label-first networks; tau is chosen unless it is given.

        If the taus cannot be told apart, or the criterion is not above chance: label-first.
        """
        taus = TAUS if tau is None else (tau,)
        fits: dict[float, tuple[float, Values]] = {}
        for each in taus:
            heat = fit_temperature(scores, evidence, each, _TEMPERATURES)
            fits[each] = heat, row_criterion(soften(scores, heat), evidence, each)
        resembling = None
        if tau is None:
            resembling = resemblance(soften(scores, fits[0.0][0]), evidence)
            criteria = {each: [float(rows.mean())] for each, (_, rows) in fits.items()}
            tau = choose_tau(criteria, resembling, alike="label-first")
            if not above_chance(fits[tau][1], PROOF):
                tau = 0.0
        heat, rows = fits[tau]
        return cls(tau, heat, float(rows.mean()), resembling)

    def posterior(self, scores: AnyMatrix, evidence: Evidence) -> AnyMatrix:
        """Posterior of the labels, (n, l), by the E-step at this tau and temperature."""
        values = estep(soften(scores, self.temperature), evidence, self.tau)
        return np.asarray(evidence.entries.scatter(values))


@dataclass(frozen=True, eq=False)
class Heard:
    """What a training leaves: the networks, its records, what they say of all rows."""

    method: DeepMethod
    history: list[Record]
    best_epoch: int
    heads: dict[str, NDArray[np.float32]]


@dataclass(frozen=True, eq=False)
class Judgement:
    """What a fit comes to.

    Attributes
    ----------
    heard : list of Heard
        Trainings that are kept; the first gives the first label.
    tau : float
        How the sets were taken.
    targets : str
        Whose output the targets were made of.
    readings : dict of str to Reading
        What networks on folds proved about the sets, by step.
    others : bool
        Whether the first is not among those that predict.
    confidence : ndarray, shape (n, l), or None
        Confidence of the training rows; None: the output, normalised over the candidates.
    """

    heard: list[Heard]
    tau: float
    targets: str
    readings: dict[str, Reading] = field(default_factory=dict)
    others: bool = False
    confidence: AnyMatrix | None = None

    @property
    def resemblance(self) -> float | None:
        """Whether the false labels look like the true ones; None if this was not measured."""
        first = self.readings.get("honest-0")
        return None if first is None else first.resemblance

    def heads(self) -> dict[str, AnyMatrix]:
        """Probabilities of the training rows: first label, partners and result, (n, l)."""
        return combine([each.heads for each in self.heard], self.others)


@dataclass(frozen=True, eq=False)
class Panel:
    """Networks of one fit: all trained on the same rows, with the same settings.

    Attributes
    ----------
    settings : DeepClassifier
        With nothing left open.
    inputs : Inputs
        Training rows.
    candidates : ndarray of bool, shape (n, l)
        Their candidate sets.
    scaling : Scaling
        Scaling of the rows.
    start : ndarray, shape (n, l)
        Confidence to start from.
    seed : int
        Seed of the first network, and of all streams.
    folder : Path or None
        Folder of the checkpoints.
    """

    settings: Any
    inputs: Inputs
    candidates: NDArray[np.bool_]
    scaling: InputScaling
    start: AnyMatrix
    seed: int
    folder: Path | None

    def judge(self, before: DeepMethod | None = None) -> Judgement:
        """Train all that is needed, and choose."""
        tau, targets = self.settings.ambiguity.tau, self.settings.ambiguity.targets
        start, n_epochs = self.start, self.settings.n_epochs
        if tau == 0 or (tau is not None and targets != "honest"):
            heard = self._on_all_rows(before=before, tau=tau, fixed=targets == "given")
            if tau:
                return self._in_sample(heard, tau)
            return Judgement(heard, 0.0, "given" if targets == "given" else "label-first")
        usual = 8 if len(self.inputs.row_shape) == 1 else 4
        n_rounds = max(2, min(self.settings.ambiguity.n_rounds or usual, n_epochs))
        short = max(1, round(n_epochs / n_rounds))  # all rounds together are one network's epochs
        _, scores = self._on_folds(start, short, "honest-0")
        reading = Reading.of(scores, self.evidence, tau)
        readings = {"honest-0": reading}
        if reading.tau == 0:
            return Judgement(self._on_all_rows(), 0.0, "label-first", readings)
        tau = _HONEST if tau is None else tau
        reading = Reading.of(scores, self.evidence, tau)
        first = self.train(start, n_epochs, self.seed)
        if targets != "honest":
            heard, said = self._on_folds(start, n_epochs, "in-sample", tau=_IN_SAMPLE)
            trial = readings["in-sample"] = Reading.of(said, self.evidence, _IN_SAMPLE)
            if targets == "in-sample":
                return self._in_sample([first, *heard], _IN_SAMPLE, readings)
        for number in range(1, n_rounds - 1):
            goals = reading.posterior(scores, self.evidence)
            _, scores = self._on_folds(goals, short, f"honest-{number}", fixed=True)
            reading = readings[f"honest-{number}"] = Reading.of(scores, self.evidence, tau)
        if targets == "auto" and trial.criterion > reading.criterion:
            return self._in_sample([first, *heard], _IN_SAMPLE, readings)
        goals = reading.posterior(scores, self.evidence)
        last = f"honest-{n_rounds - 1}"
        heard = [first, *self._train_all(goals, short, last, range(self._n), fixed=True)]
        return Judgement(heard, tau, "honest", readings, True, goals)

    def _in_sample(
        self, heard: list[Heard], tau: float, readings: dict[str, Reading] | None = None
    ) -> Judgement:
        """Divide the moving class priors out of the mean output.

        After readings the first network only gives the first label.
        """
        judgement = Judgement(heard, tau, "in-sample", readings or {}, bool(readings))
        judges = [each.method for each in heard[judgement.others :]]
        bases: list[Any] = [getattr(method, "base", method) for method in judges]
        shares = [base.prior.shares.cpu().numpy().astype(float) for base in bases]
        output = self._head_of(judgement.heads())
        weights = (np.mean(shares, axis=0) + 0.01 / output.shape[1]) ** -tau
        entries = self.evidence.entries
        values = self.evidence.normalize(entries.gather(output.astype(float) * weights))
        return replace(judgement, confidence=entries.scatter(values))

    # -- several trainings --------------------------------------------------------------

    def _on_all_rows(self, before: DeepMethod | None = None, **how: Any) -> list[Heard]:
        """Independent networks; the first is what one network alone would be."""
        start, n_epochs = self.start, self.settings.n_epochs
        first = self.train(start, n_epochs, self.seed, before=before, **how)
        usual = _FOLDS if self.settings.ambiguity.tau is None else 1
        numbers = range(1, self.settings.n_networks or usual)
        return [first, *self._train_all(start, n_epochs, "", numbers, **how)]

    def _on_folds(
        self, start: AnyMatrix, n_epochs: int, place: str, **how: Any
    ) -> tuple[list[Heard], AnyMatrix]:
        """Networks that did not see a fold each, and logarithms of what they say of it, (n, l).

        The folds are drawn at random, others in every round.
        """
        order = Streams(self.seed).permutation(len(self.start), f"folds {place}")
        folds, said = order % self._n, np.empty(self.start.shape)
        heard = self._train_all(start, n_epochs, place, range(self._n), folds, **how)
        for k, each in enumerate(heard):
            said[folds == k] = self._head_of(each.heads)[folds == k]
        return heard, np.log(np.maximum(said, 1e-12))

    def _train_all(
        self,
        start: AnyMatrix,
        n_epochs: int,
        place: str,
        which: range,
        folds: Any = None,
        **how: Any,
    ) -> list[Heard]:
        """Train one network after the other, or side by side in processes of their own."""
        streams, run = Streams(self.seed), self.settings.run
        tasks = [
            {
                "start": start,
                "n_epochs": n_epochs,
                "seed": streams.seed(place or "network", k) % np.iinfo(np.int32).max,
                "rows": None if folds is None else np.flatnonzero(folds != k),
                "place": f"{place}/network-{k + 1}".lstrip("/"),
                **how,
            }
            for k in which
        ]
        n_jobs = 1 if n_processes() > 1 else min(effective_n_jobs(run.n_jobs), len(tasks))
        if n_jobs < 2:
            return [self.train(**task) for task in tasks]
        devices, heard = run.devices(), []
        panel = replace(self)  # without what was computed: a digest cannot be sent
        work = (
            delayed(_train_apart)(panel, task, devices[k % len(devices)])
            for k, task in enumerate(tasks)
        )
        with replacing_workers():
            for each in Parallel(n_jobs=n_jobs, return_as="generator")(work):
                heard.append(each)
                if run.listener is not None:
                    run.listener(each.history[-1])
        return heard

    def _head_of(self, heads: dict[str, AnyMatrix]) -> AnyMatrix:
        return heads.get(self.settings.head, heads["base"])

    # -- numbers ------------------------------------------------------------------------

    @cached_property
    def plan(self) -> MethodPlan:
        """What is trained."""
        return MethodPlan.of(self.settings, self.inputs.row_shape)

    @cached_property
    def evidence(self) -> Evidence:
        """Evidence of the candidate sets."""
        return Evidence.of_sets(self.candidates)

    @property
    def _n(self) -> int:
        return min(self.settings.n_networks or _FOLDS, len(self.start))

    # -- one training -------------------------------------------------------------------

    def train(
        self,
        start: AnyMatrix,
        n_epochs: int,
        seed: int,
        *,
        tau: float = 0.0,
        fixed: bool = False,
        rows: RowNumbers | None = None,
        place: str = "",
        before: DeepMethod | None = None,
    ) -> Heard:
        """Train from a confidence.

        Parameters
        ----------
        start : ndarray, shape (n, l)
            The confidence.
        n_epochs : int
            Passes over the rows.
        seed : int
            Seed of all streams.
        tau, fixed : float, bool
            What becomes of the confidence, see `MethodPlan`.
        rows : ndarray of int or None
            Rows to train on; None: all.
        place : str
            Folder of the checkpoint in that of the fit.
        before : Method or None
            Whose weights to start from, if they fit.
        """
        run = self.settings.run
        selection = self.settings.selection
        streams = Streams(seed)
        device = run.find_device()
        listener = run.listener
        held_out = None
        folder = None
        n, share = len(self.candidates), selection.fraction
        if share and not 1 <= share * n <= n - 1:
            raise ValueError(
                f"validation_fraction={share:g} of {n} rows leaves no row to "
                f"{'select' if share * n < 1 else 'train'} on: give it another value."
            )
        if share:
            sets, how = self.candidates, {"test_size": share, "random_state": seed}
            aside = np.sort(candidate_train_test_split(np.arange(n), sets, **how)[1])
            held_out = HeldOut(aside, sets, selection.selection, self.settings.head)
        if listener is not None and place:
            listener = lambda record: run.listener({**record, "part": place})  # noqa: E731
        first = torch.from_numpy(np.asarray(start, dtype=np.float32))
        if self.folder is not None:
            told, digest = [first, seed, n_epochs, tau, fixed, rows], self._digest.copy()
            digest.update(json.dumps(told, default=_plain).encode())
            own, fingerprint = self.folder / place, digest.hexdigest()
            folder = RunFolder(own, fingerprint, run.checkpoint_every, run.resume)
        plan = replace(self.plan, tau=tau, fixed=fixed)
        with isolated(device):
            trainer = Trainer(
                plan.make(first, streams).take_over(before).to(device),
                self.inputs,
                torch.from_numpy(self.candidates),
                self.settings.optimizer,
                n_epochs,
                streams=streams,
                views=[make_augmentation(name) for name in self.settings.augmentation],
                scaling=self.scaling,
                device=device,
                rows=rows,
                held_out=held_out,
                folder=folder,
                listen=listener,
            )
            history = trainer.train()
            best_epoch = (0 if held_out is None else held_out.best_epoch) or trainer.epoch
            heads = predict_rows(trainer.method, self.inputs, self.scaling)
            return Heard(trainer.method, history, best_epoch, heads)

    @cached_property
    def _digest(self) -> Any:
        """Fingerprint of the data and of all settings."""
        params = self.settings.get_params(deep=False) | {"class": type(self.settings).__name__}
        told = {k: v for k, v in params.items() if k not in _SURROUNDINGS}
        told |= {"rows": [len(self.inputs), self.inputs.row_shape], "sets": self.candidates}
        told_as = json.dumps(told, default=_plain, sort_keys=True)
        digest = hashlib.blake2b(told_as.encode(), digest_size=16)
        if isinstance(self.inputs, ArrayInputs):  # a dataset may be random
            batches = cut_batches(np.arange(len(self.inputs)), 4096)
            for batch in self.inputs.batches(batches, torch.device("cpu")):
                digest.update(batch.contiguous().numpy().tobytes())
        return digest


def _plain(value: Any) -> Any:
    """Describe for the fingerprint of a run what JSON has no word for."""
    if isinstance(value, Settings):
        return value.get_params()
    if isinstance(value, np.ndarray | torch.Tensor):
        return hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=16).hexdigest()
    if callable(value):
        name = getattr(value, "__qualname__", type(value).__qualname__)
        return f"{getattr(value, '__module__', '')}.{name}"
    return str(value)


def _train_apart(panel: Panel, task: dict[str, Any], device: str) -> Heard:
    """Train in a process of its own, with one thread, unheard."""
    torch.set_num_threads(1)
    settings = clone(panel.settings)
    settings.run.set_params(device=device, verbose=False)
    apart = replace(panel, settings=settings).train(**task)
    return replace(apart, method=apart.method.cpu())
