"""How many networks are heard, and how they take candidate sets: label-first or set-first.

A network has learnt how frequent each label is. A candidate set that came first (faces and a
caption, segments and an image's tags) contains that already, so the network's targets are

    P(y = j | x, S)  ~  1[j in S] p_j(x) / pi_j^tau        tau = 0 label-first, 1 set-first

*In-sample*, p is the network's own output in training and pi a moving average; it costs nothing.
*Honest*, p comes from networks that did not see the row, in rounds over folds: where networks
memorise their rows, and where tau has to be found from the sets (`appellate.evidence`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from appellate.deep.hearing import Heard, Hearing
from appellate.deep.methods import Committee, Method
from appellate.deep.processes import n_processes
from appellate.deep.settings import Ambiguity
from appellate.deep.streams import Streams
from appellate.evidence import (
    Evidence,
    above_chance,
    estep,
    fit_temperature,
    row_criterion,
    soften,
)
from appellate.numerics.entries import Values

Matrix = NDArray[Any]
TAUS = (0.0, 0.25, 0.5, 0.75, 1.0)
_TEMPERATURES = 0.5, 4.0
_GAP, _RATIO = 0.02, 1.15  # of the criterion over that of label-first, to be set-first
_PROOF = 2.0  # standard errors
_IN_SAMPLE = 0.5  # tau; 1 takes away too much of what is still being learnt
_FOLDS = 5


@dataclass(frozen=True)
class Reading:
    """What honest probabilities say of the sets: tau, temperature and criterion.

    Attributes
    ----------
    tau, temperature, criterion : float
        The best of the taus, with the temperature that it is best with.
    label_first : float
        The criterion at tau = 0.
    set_first : bool
        Whether tau is above 0 beyond doubt: the gate.
    """

    tau: float
    temperature: float
    criterion: float
    label_first: float
    set_first: bool

    @classmethod
    def of(cls, scores: Matrix, evidence: Evidence, taus: Sequence[float] = TAUS) -> Reading:
        """Choose among taus, each with its own temperature, by the criterion alone."""
        found: dict[float, tuple[float, Values]] = {}
        for tau in dict.fromkeys((0.0, *taus)):
            heat = fit_temperature(scores, evidence, tau, _TEMPERATURES)
            found[tau] = heat, row_criterion(soften(scores, heat), evidence, tau)
        best = max(taus, key=lambda tau: found[tau][1].mean())
        (heat, rows), plain = found[best], found[0.0][1]
        value, before = float(rows.mean()), float(plain.mean())
        larger = value - before >= _GAP or value >= _RATIO * max(before, 0.0)
        proven = above_chance(rows, _PROOF) and above_chance(rows - plain, _PROOF)
        return cls(best, heat, value, before, bool(larger and proven))

    def posterior(self, scores: Matrix, evidence: Evidence) -> Matrix:
        """Posterior of the labels, (n, l), by the E-step at this tau and temperature."""
        values = estep(soften(scores, self.temperature), evidence, self.tau)
        return np.asarray(evidence.entries.scatter(values))


@dataclass(frozen=True, eq=False)
class Judgement:
    """What a fit comes to.

    Attributes
    ----------
    heard : list of Heard
        Trainings that are left; the first gives the verdict.
    others : bool
        Whether the first is not among those that predict.
    confidence : ndarray, shape (n, l), or None
        Of the training rows; None: the output, normalised over the candidates.
    details : dict
        Fitted attributes.
    """

    heard: list[Heard]
    others: bool
    confidence: Matrix | None
    details: dict[str, Any]

    @property
    def method(self) -> Method | Committee:
        """All networks that are left."""
        if len(self.heard) == 1:
            return self.heard[0].method
        return Committee([each.method for each in self.heard], self.others)

    def heads(self) -> dict[str, Matrix]:
        """Probabilities of the training rows by verdict, partners and result, (n, l)."""
        said = [each.heads for each in self.heard]
        if len(said) == 1:
            return said[0]
        judges = said[self.others :]
        means = {
            name: np.mean([each.get(name, each["base"]) for each in judges], axis=0)
            for name in ("partner", "mean")
        }
        return {"base": said[0]["base"], **means}


@dataclass(frozen=True, eq=False)
class Panel:
    """Networks of one fit.

    Attributes
    ----------
    hearing : Hearing
        Trains them.
    start : ndarray, shape (n, l)
        Confidence to start from.
    n_epochs : int
        Passes over the rows, of each network.
    seed : int
        Of the first network, and of all streams.
    ambiguity : Ambiguity
        How candidate sets arise.
    n_networks : int or None
        How many; None: one, or five where rows have to be left out.
    """

    hearing: Hearing
    start: Matrix
    n_epochs: int
    seed: int
    ambiguity: Ambiguity
    n_networks: int | None = None

    def judge(self, before: Method | None = None) -> Judgement:
        """Train all that is needed, and choose."""
        tau = self.ambiguity.tau
        if tau == 0 or (tau is not None and self.ambiguity.targets != "honest"):
            heard = self._on_all_rows(tau, before=before)
            return self._in_sample(heard, tau) if tau else self._label_first(heard)
        said = self._on_folds(self.start, self._epochs, "honest-0")
        taus = TAUS if tau is None else (tau,)
        reading = Reading.of(_logs(said), self.evidence, taus)
        if tau is None and not reading.set_first:
            return self._label_first(self._on_all_rows(0.0), [("honest-0", reading)])
        return self._set_first(_logs(said), reading, taus)

    # -- ways to a result ---------------------------------------------------------------

    def _label_first(self, heard: list[Heard], readings: Any = ()) -> Judgement:
        return Judgement(heard, False, None, _details(0.0, "label-first", readings))

    def _in_sample(self, heard: list[Heard], tau: float, *more: Any) -> Judgement:
        """Divide the moving class priors out of the mean output."""
        judgement = Judgement(heard, bool(more), None, _details(tau, "in-sample", *more))
        shares = [_prior_of(each.method) for each in heard[bool(more) :]]
        output = judgement.heads().get(self.hearing.head, judgement.heads()["base"])
        weights = (np.mean(shares, axis=0) + 0.01 / output.shape[1]) ** -tau
        entries = self.evidence.entries
        values = self.evidence.normalize(entries.gather(output.astype(float) * weights))
        return replace(judgement, confidence=entries.scatter(values))

    def _set_first(self, scores: Matrix, reading: Reading, taus: Sequence[float]) -> Judgement:
        """Honest rounds; beside them, where that is open, networks in-sample on the folds."""
        base = self._on_all_rows(0.0, n=1)
        readings = [("honest-0", reading)]
        if self.ambiguity.targets != "honest":
            heard = self._fold_networks(self.start, self.n_epochs, "in-sample", _IN_SAMPLE)
            trial = Reading.of(_logs(self._honest(heard, "in-sample")), self.evidence)
            readings.append(("in-sample", trial))
            if self.ambiguity.targets == "in-sample":
                return self._in_sample(base + heard, _IN_SAMPLE, readings)
        for number in range(1, self._n_rounds - 1):
            goals = reading.posterior(scores, self.evidence)
            scores = _logs(self._on_folds(goals, self._epochs, f"honest-{number}", fixed=True))
            reading = Reading.of(scores, self.evidence, taus)
            readings.append((f"honest-{number}", reading))
        if self.ambiguity.targets == "auto" and trial.criterion > reading.criterion:
            return self._in_sample(base + heard, _IN_SAMPLE, readings)
        goals, place = reading.posterior(scores, self.evidence), f"honest-{self._n_rounds - 1}"
        last = self._train([self._task(k, goals, place, fixed=True) for k in range(self._n)])
        return Judgement(base + last, True, goals, _details(reading.tau, "honest", readings))

    # -- trainings ----------------------------------------------------------------------

    def _on_all_rows(
        self, tau: float, *, n: int | None = None, before: Method | None = None
    ) -> list[Heard]:
        """Independent networks; the first is what one network alone would be."""
        first = self.hearing.train(self.start, self.n_epochs, self.seed, tau=tau, before=before)
        rest = range(1, n or self.n_networks or (_FOLDS if self.ambiguity.tau is None else 1))
        tasks = [
            {
                **{"start": self.start, "n_epochs": self.n_epochs, "tau": tau},
                **{"seed": self._seed("network", k), "place": f"network-{k + 1}"},
            }
            for k in rest
        ]
        return [first, *self._train(tasks)]

    def _on_folds(self, start: Matrix, epochs: int, place: str, *, fixed: bool = False) -> Matrix:
        """What networks say of the rows that they did not see, (n, l)."""
        return self._honest(self._fold_networks(start, epochs, place, fixed=fixed), place)

    def _fold_networks(
        self, start: Matrix, epochs: int, place: str, tau: float = 0.0, *, fixed: bool = False
    ) -> list[Heard]:
        tasks, folds = [], self._folds(place)
        for k in range(self._n):
            rows = np.flatnonzero(folds != k)
            task = self._task(k, start, place, fixed=fixed)
            tasks.append(task | {"rows": rows, "n_epochs": epochs, "tau": tau})
        return self._train(tasks)

    def _task(self, k: int, start: Matrix, place: str, *, fixed: bool) -> dict[str, Any]:
        return {
            **{"start": start, "n_epochs": self._epochs, "seed": self._seed(place, k)},
            **{"fixed": fixed, "place": f"{place}/network-{k + 1}"},
        }

    def _train(self, tasks: list[dict[str, Any]]) -> list[Heard]:
        """Train one network after the other, or side by side in processes of their own."""
        run = self.hearing.run
        n_jobs = 1 if n_processes() > 1 else min(effective_n_jobs(run.n_jobs), len(tasks))
        if n_jobs < 2:
            return [self.hearing.train(**task) for task in tasks]
        quiet = replace(self.hearing, run=run.quiet())
        devices = run.devices()
        work = (
            delayed(_train_apart)(quiet, task, devices[k % len(devices)])
            for k, task in enumerate(tasks)
        )
        heard = []
        for each in Parallel(n_jobs=n_jobs, return_as="generator")(work):
            heard.append(each)
            if run.listener is not None:
                run.listener(each.history[-1])
        return heard

    def _honest(self, heard: list[Heard], place: str) -> Matrix:
        """Of each fold what its network says, (n, l)."""
        out, folds = np.empty(self.start.shape), self._folds(place)
        for k, each in enumerate(heard):
            rows = folds == k
            out[rows] = each.heads.get(self.hearing.head, each.heads["base"])[rows]
        return out

    # -- numbers ------------------------------------------------------------------------

    @cached_property
    def evidence(self) -> Evidence:
        """Of the candidate sets."""
        return Evidence.of_sets(self.hearing.candidates)

    def _folds(self, place: str) -> NDArray[np.intp]:
        """Fold of every row, at random, others in every round."""
        order = Streams(self.seed).permutation(len(self.start), f"folds {place}")
        return np.asarray(order % self._n)

    @property
    def _n(self) -> int:
        return min(self.n_networks or _FOLDS, len(self.start))

    @property
    def _n_rounds(self) -> int:
        usual = 8 if len(self.hearing.inputs.row_shape) == 1 else 4
        return max(2, min(self.ambiguity.n_rounds or usual, self.n_epochs))

    @property
    def _epochs(self) -> int:
        """Epochs of a round: all rounds together have those of one network."""
        return max(1, round(self.n_epochs / self._n_rounds))

    def _seed(self, name: str, k: int) -> int:
        return Streams(self.seed).seed(name, k) % np.iinfo(np.int32).max


def _train_apart(hearing: Hearing, task: dict[str, Any], device: str) -> Heard:
    """Train in a process of its own, with one thread."""
    torch.set_num_threads(1)
    apart = replace(hearing, run=hearing.run.on(device)).train(**task)
    return replace(apart, method=apart.method.cpu())


def _logs(probabilities: Matrix) -> Matrix:
    return np.asarray(np.log(np.maximum(probabilities, 1e-12)))


def _prior_of(method: Method) -> Matrix:
    prior: Any = getattr(method, "base", method).prior
    return np.asarray(prior.shares.cpu().numpy(), dtype=float)


def _details(tau: float, targets: str, readings: Any = ()) -> dict[str, Any]:
    criterion = {name: reading.criterion for name, reading in readings}
    return {"ambiguity_": tau, "targets_": targets, "criterion_": criterion}
