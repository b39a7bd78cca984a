"""The rounds of a jury, as functions of the members' outputs.

1. `run_rounds`: the kernel members learn, round after round, from the posterior of the round
   before; `judge_outputs` makes scales, weights, posterior and criterion of every round. How the
   sets arose (tau) and the round that counts are chosen by the criterion.
2. `run_panel`: forests join the kernel members for up to two further rounds.
3. `mix_members`: members that are fitted once join, and all are mixed.

Nothing is remembered between these functions: targets, outputs and what was chosen are passed.
A function `fit(targets, smooth)`, made by `exact.prepare` or `nystroem.prepare`, fits the kernel
members and returns their `Outputs`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from appellate.evidence.ambiguity import PROOF, choose_tau, resemblance
from appellate.evidence.groups import Groups
from appellate.evidence.held_out import above_chance, choose_round, row_criterion, suspicion
from appellate.evidence.likelihood import Evidence, estep, set_odds
from appellate.evidence.order import choose_width, order_matrix
from appellate.evidence.scales import Scale, fit_scale, fit_temperature, mixture_weights
from appellate.methods.jury.members import Doubles, FittedMember, LateMember, Replicas
from appellate.numerics.entries import Values
from appellate.numerics.kernels import RadialKernel

_DOUBT = 1.0  # standard errors by which an earlier round must be better to be mixed in
_PROBES = 3  # rounds with every tau
_PANELS = 2  # rounds with forests
_ENOUGH = 0.95  # of the best criterion, for the later of these
_SHRINK = 0.5  # share of equal weights among kernels and forests
_SILENT = 0.02  # weight below which a forest does not learn again
_STILL = 1e-3  # mean change of a posterior that is settled
_LATE_TEMPERATURES = 0.1, 10.0  # of members that are fitted once
_SEEDS = 2**30


@dataclass(frozen=True, eq=False)
class Outputs:
    """What members that take part in the rounds return, on the kernel matrix or on landmarks.

    Attributes
    ----------
    targets : list of ndarray
        What the members learned from: targets of every replica, as candidate entries.
    rows : ndarray of int, shape (s,), or slice
        Rows on which scales, weights and the criterion are found: all, or a sample.
    evidence : Evidence
        Evidence of these rows.
    held_out : list of ndarray, shape (s, l)
        Every member's scores of these rows, by the replica that lacks them.
    replicas : Replicas
        Which rows each replica has.
    """

    targets: list[Values]
    rows: Any
    evidence: Evidence
    held_out: list[Doubles]
    replicas: Replicas

    @abstractmethod
    def mix(self, scales: Sequence[Scale], weights: NDArray[Any]) -> list[Values]:
        """Mixture of the members at the candidates of every replica's own rows."""

    @abstractmethod
    def everywhere(
        self, scales: Sequence[Scale], weights: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Mixtures on all rows, (n, l): held out, and with only the own target left out."""

    @abstractmethod
    def fitted(self, scales: Sequence[Scale], weights: NDArray[Any]) -> list[FittedMember]:
        """Return the members as they judge new rows."""


#: ``fit(targets, smooth)`` fits the kernel members; on the kernel matrix ``forests, seed`` too.
FitKernels = Callable[..., Outputs]
#: ``fit(targets, seed)`` fits a forest to (n, K + 1, l) targets; returns such scores and a model.
FitMember = Callable[[Doubles, int], tuple[Doubles, Any]]
#: ``fit(targets, seed)`` fits a member once to the targets of every replica.
FitOnce = Callable[[list[Values], int], LateMember]
#: Name, kernel and ridge of a kernel member.
NamedKernel = tuple[str, RadialKernel, float]


@dataclass(frozen=True, eq=False)
class JuryRound:
    """What a jury found in one round.

    Attributes
    ----------
    targets, posterior : list of ndarray
        What the members learned from, and the posterior that followed, as candidate entries of
        every replica.
    shares : ndarray, shape (l,)
        Share of every label in the targets of all rows.
    scales, weights : list of Scale, ndarray
        Those of the members.
    used : ndarray
        Weights in the posterior.
    held_out : ndarray, shape (s, l), or None
        Mixture of the members on held-out rows; None if nobody needs it any more.
    row_criteria : ndarray, shape (s,)
        Every row's part of the criterion of this mixture.
    criterion : float
        The criterion B: their mean.
    """

    targets: list[Values]
    posterior: list[Values]
    shares: NDArray[np.float64]
    scales: list[Scale]
    weights: NDArray[np.float64]
    used: NDArray[np.float64]
    held_out: Doubles | None
    row_criteria: Values
    criterion: float


def judge_outputs(
    outputs: Outputs,
    replicas: Replicas,
    covering: Sequence[Groups | None],
    tau: float,
    shrink: float = 0.0,
) -> JuryRound:
    """Find scales, weights and criterion of the outputs, and the posterior that follows.

    Parameters
    ----------
    outputs : Outputs
        Those of the members.
    replicas : Replicas
        Which rows each replica has.
    covering : sequence of Groups or None
        Groups of every replica, if their labels are to be covered.
    tau : float
        How the sets arose.
    shrink : float, default=0.0
        Share of equal weights in the weights of posterior and criterion.
    """
    evidence = outputs.evidence
    n, _, l = replicas.shape
    labels = replicas.evidence.entries.labels
    shares = np.bincount(labels, weights=outputs.targets[0], minlength=l) / n
    scales = [fit_scale(each, evidence, tau, shares) for each in outputs.held_out]
    weights = weigh_members(outputs.held_out, scales, evidence, tau)
    used = (1 - shrink) * weights + shrink / len(weights)
    held_out = mixture(outputs.held_out, scales, used)
    posterior = []
    parts = zip(outputs.mix(scales, used), replicas.parts, covering, strict=True)
    for mixed, part, groups in parts:
        found = estep(mixed, part, tau, groups=groups)
        posterior.append(found.astype(mixed.dtype, copy=False))
    rows = row_criterion(held_out, evidence, tau)
    return JuryRound(
        outputs.targets,
        posterior,
        shares,
        scales,
        weights,
        used,
        held_out,
        rows,
        float(rows.mean()),
    )


def mixture(outputs: Sequence[Doubles], scales: Sequence[Scale], weights: NDArray[Any]) -> Doubles:
    """``sum_m w_m softmax((output_m + b_m) / T_m)``."""
    total = np.zeros(outputs[0].shape)
    for output, scale, weight in zip(outputs, scales, weights, strict=True):
        if weight > 0:
            total += weight * scale.soften(output)
    return total


def weigh_members(
    held_out: Sequence[Doubles], scales: Sequence[Scale], evidence: Evidence, tau: float
) -> NDArray[np.float64]:
    """Find the mixture weights of members by their scores of held-out rows."""
    pairs = zip(held_out, scales, strict=True)
    odds = [set_odds(scale.soften(each), evidence, tau) for each, scale in pairs]
    return mixture_weights(np.column_stack(odds))


def find_order(
    fit: FitKernels, start: list[Values], places: NDArray[np.intp] | None
) -> tuple[int, Doubles | None]:
    """Find the width of the order among the labels, and the matrix that follows from it."""
    if places is None:
        return 0, None
    outputs = fit(start)
    width = choose_width(outputs.held_out, outputs.evidence, places)
    return width, order_matrix(places, width) if width else None


# -- the rounds of the kernel members ------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Choice:
    """What was chosen among the rounds of the kernel members.

    Attributes
    ----------
    rounds : list of JuryRound
        Rounds of the chosen tau; the last one is the chosen round.
    first : JuryRound
        The first round with the smallest tau.
    earlier : JuryRound or None
        An earlier round whose criterion is better by more than chance.
    tau : float
        How the sets arose.
    criteria : dict
        Criterion of every round, by tau.
    covering : sequence of Groups or None
        Groups of every replica, if their labels are covered.
    resemblance : float or None
        Whether false labels look like the true ones.
    latest : Outputs
        Outputs of the round that was run last, so that nobody fits them again.
    """

    rounds: list[JuryRound]
    first: JuryRound
    earlier: JuryRound | None
    tau: float
    criteria: dict[Any, list[float]]
    covering: Sequence[Groups | None]
    resemblance: float | None
    latest: Outputs


def run_rounds(
    fit: FitKernels,
    replicas: Replicas,
    covering: Sequence[Groups | None],
    start: list[Values],
    taus: Sequence[float],
    max_rounds: int,
    order: tuple[int, Doubles | None],
    on_round: Callable[[int, int], object] | None = None,
) -> Choice:
    """Run the rounds of the kernel members and choose tau and round.

    Three rounds with each tau; then further ones with the chosen tau until nothing moves. Every
    round learns from the posterior of the round before. If the first round is the best, or
    nothing is proven, no posterior helps and tau is not identified: label-first.

    Parameters
    ----------
    fit : callable
        Fits the kernel members.
    replicas, covering
        See `judge_outputs`.
    start : list of ndarray
        Targets of the first round.
    taus : sequence of float
        Values of tau to try.
    max_rounds : int
        Rounds of the chosen tau, at most.
    order : tuple
        From `find_order`.
    on_round : callable, default=None
        Called after every fit with its number and the largest possible number.
    """
    if replicas.evidence.entries.counts.max() == 1:
        max_rounds = 1  # there is nothing to find out
    width, smooth = order
    probes = min(_PROBES, max_rounds)
    rounds: dict[float, list[JuryRound]] = {tau: [] for tau in taus}
    n_fits = 1 + (probes - 1) * len(taus) + max_rounds - probes

    def run(tau: float, outputs: Outputs) -> JuryRound:
        done = judge_outputs(outputs, replicas, covering, tau)
        rounds[tau].append(done if tau == 0 else replace(done, held_out=None))
        fitted = sum(map(len, rounds.values())) - len(taus) + 1
        if on_round is not None and fitted > 0:
            on_round(fitted, n_fits)
        return done

    outputs = fit(start, smooth)
    for tau in taus:  # which share the first fit
        run(tau, outputs)
    for _ in range(1, probes):
        for tau in taus:
            outputs = fit(rounds[tau][-1].posterior, smooth)
            run(tau, outputs)
    tau, resembling = _choose_tau(rounds, outputs.evidence, ordered=width > 0)
    for other in set(taus) - {tau}:  # their targets are not needed again
        tried = rounds[other]
        tried[1:] = [replace(each, targets=[], posterior=[]) for each in tried[1:]]
    for _ in range(probes, max_rounds):
        outputs = fit(rounds[tau][-1].posterior, smooth)
        last = run(tau, outputs)
        if np.abs(last.posterior[0] - last.targets[0]).mean() < _STILL:
            break
    number = choose_round([each.criterion for each in rounds[tau]])
    if not above_chance(rounds[tau][number].row_criteria, PROOF):
        number = 0
    if number == 0:
        tau = min(taus)
    chosen = rounds[tau][: number + 1]
    best = max(chosen, key=lambda each: each.criterion)
    better = above_chance(best.row_criteria - chosen[-1].row_criteria, _DOUBT)
    return Choice(
        rounds=chosen,
        first=rounds[min(taus)][0],
        earlier=best if better else None,
        tau=tau,
        criteria=_criteria(rounds),
        covering=covering,
        resemblance=resembling,
        latest=outputs,
    )


def _choose_tau(
    rounds: dict[float, list[JuryRound]], evidence: Evidence, ordered: bool
) -> tuple[float, float | None]:
    """Choose tau by the first rounds of each; return it, and whether false labels look true."""
    resembling = None
    if 0.0 in rounds:
        best = choose_round([each.criterion for each in rounds[0.0]])
        held_out = cast(Doubles, rounds[0.0][best].held_out)
        resembling = resemblance(held_out, evidence)
    tau = choose_tau(_criteria(rounds), resembling, ordered=ordered)
    return tau if tau in rounds else next(iter(rounds)), resembling


def _criteria(rounds: dict[float, list[JuryRound]]) -> dict[Any, list[float]]:
    """Criterion of every round by tau."""
    return {tau: [each.criterion for each in done] for tau, done in rounds.items()}


# -- all members ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Mixture:
    """What all members of a jury come to.

    Attributes
    ----------
    history : list of ndarray
        Posterior of all rows, as entries of the evidence: label-first after one round, then
        round by round.
    held_out, output : ndarray, shape (n, l)
        Probabilities by members that never saw the row, and by members that did not see the
        row's own target.
    members : list of FittedMember
        The members.
    suspicion : ndarray, shape (n,)
        Held-out probability outside the candidates, by the kernel members.
    criteria : dict
        Criterion of every round, by tau; under ``"panel"`` those with forests.
    rounds : list of (JuryRound, Outputs)
        Rounds whose mixtures are averaged in `output`: the last one, and an earlier one if it was
        better.
    """

    history: list[Values]
    held_out: Doubles
    output: Doubles
    members: list[FittedMember]
    suspicion: Values
    criteria: dict[Any, list[float]]
    rounds: list[tuple[JuryRound, Outputs]]


def mix_members(
    fit: FitKernels,
    choice: Choice,
    replicas: Replicas,
    smooth: Doubles | None,
    rng: np.random.RandomState,
    forests: Sequence[tuple[str, FitMember]] = (),
    late: Sequence[FitOnce] = (),
    base: LateMember | None = None,
) -> Mixture:
    """Let further members learn from what the kernel members found, and mix all.

    Forests take part in up to two further rounds. Late members are fitted once, to the targets
    of the last round, and judge new rows only. A base is weighed with all of them, and judges
    training rows too. If an earlier round of the kernel members had a better criterion, by more
    than chance, their output after it is half of everything: sets whose false labels look like
    the true one are learned too well in the end.

    Parameters
    ----------
    fit : callable
        Fits the kernel members.
    choice : Choice
        From `run_rounds`.
    replicas : Replicas
        Which rows each replica has.
    smooth : ndarray, shape (l, l), or None
        From `find_order`.
    rng : RandomState
        Seeds forests and late members.
    forests : sequence of (str, callable), default=()
        Name and fit of every forest.
    late : sequence of callable, default=()
        Fit of every member that is fitted once.
    base : tuple, default=None
        Name, held-out scores of all rows and models of a classifier that does not learn from
        the jury.
    """
    tau = choice.tau
    last = choice.rounds[-1]
    outputs = _outputs_of(last, choice, fit, smooth)
    held_out, output = outputs.everywhere(last.scales, last.used)
    doubt = suspicion(held_out, replicas.evidence)
    rounds = [choice.first, *choice.rounds]
    criteria = dict(choice.criteria)
    if forests:
        panel, outputs, criteria["panel"] = run_panel(fit, choice, replicas, smooth, rng, forests)
        rounds += panel
        last = panel[-1]
        output = outputs.everywhere(last.scales, last.used)[1]

    joined = _fit_late(late, last, replicas.evidence, tau, smooth, rng) if late else []
    if base is not None:
        base_member, base_scores = _scale_base(base, outputs, tau, smooth)
        joined.append((base_member, base_scores[outputs.rows]))
    members = [*outputs.fitted(last.scales, last.weights), *(each for each, _ in joined)]
    scores = [*outputs.held_out, *(each for _, each in joined)]
    scales = [each.scale for each in members]
    weights = weigh_members(scores, scales, outputs.evidence, tau) if joined else last.weights
    pairs = zip(members, weights.tolist(), strict=True)
    members = [replace(each, weight=weight) for each, weight in pairs]
    if forests or late:
        held_out = mixture(scores, scales, weights)
    if base is not None:
        n_rounds = len(last.weights)  # members that took part in the rounds
        unseen, left_out = outputs.everywhere(scales[:n_rounds], weights[:n_rounds])
        own = weights[-1] * base_member.scale.soften(base_scores)
        output = (left_out + own) / (weights[:n_rounds].sum() + weights[-1])
        held_out = held_out if forests or late else unseen + own

    averaged = [(last, outputs)]
    earlier = choice.earlier
    if earlier is not None:
        before = _outputs_of(earlier, choice, fit, smooth)
        averaged.append((earlier, before))
        unseen, left_out = before.everywhere(earlier.scales, earlier.used)
        held_out = (held_out + unseen) / 2
        output = (output + left_out) / 2
        for each in before.fitted(earlier.scales, earlier.weights):
            members.append(replace(each, name=f"{each.name}, earlier"))
        members = [replace(each, weight=each.weight / 2) for each in members]
    history = [each.posterior[0] for each in rounds]
    if earlier is not None or base is not None:
        history.append(estep(output, replicas.evidence, tau, groups=choice.covering[0]))
    return Mixture(history, held_out, output, members, doubt, criteria, averaged)


def _outputs_of(
    done: JuryRound, choice: Choice, fit: FitKernels, smooth: Doubles | None
) -> Outputs:
    """Return the outputs of the kernel members in a round; fit them again unless it was last."""
    if done.targets is choice.latest.targets:
        return choice.latest
    return fit(done.targets, smooth)


def run_panel(
    fit: FitKernels,
    choice: Choice,
    replicas: Replicas,
    smooth: Doubles | None,
    rng: np.random.RandomState,
    forests: Sequence[tuple[str, FitMember]],
) -> tuple[list[JuryRound], Outputs, list[float]]:
    """Run rounds of kernels and forests; see `mix_members` for the parameters.

    The second round is kept if it has 95 % of the larger criterion. There is none if no round of
    the kernels helped, or if no forest has weight.

    Returns
    -------
    rounds : list of JuryRound
        Up to the one that is kept.
    outputs : Outputs
        Outputs of this round.
    criteria : list of float
        Criterion of every round that was run.
    """
    targets = choice.rounds[-1].targets
    n_kernels = len(choice.rounds[-1].weights)
    kept: list[JuryRound] = []
    criteria: list[float] = []
    for _ in range(_PANELS if len(choice.rounds) > 1 else 1):
        outputs = fit(targets, smooth, forests, rng.randint(_SEEDS))
        done = judge_outputs(outputs, replicas, choice.covering, choice.tau, _SHRINK)
        criteria.append(done.criterion)
        if done.criterion >= _ENOUGH * max(criteria) or not kept:
            kept.append(done)
            last = outputs
        counts = done.weights[n_kernels:] >= _SILENT
        forests = [each for each, loud in zip(forests, counts, strict=True) if loud]
        if not forests:
            break
        targets = done.posterior
    return kept, last, criteria


def _fit_late(
    late: Sequence[FitOnce],
    last: JuryRound,
    evidence: Evidence,
    tau: float,
    smooth: Doubles | None,
    rng: np.random.RandomState,
) -> list[tuple[FittedMember, Doubles]]:
    """Fit members once to the targets of the last round; return them with held-out scores."""
    found = []
    for fit in late:
        name, scores, models = fit(last.targets, rng.randint(_SEEDS))
        scores = scores if smooth is None else scores @ smooth
        scale = fit_scale(scores, evidence, tau, last.shares, _LATE_TEMPERATURES)
        found.append((FittedMember(name, 0.0, scale, models, smooth), scores))
    return found


def _scale_base(
    base: LateMember, outputs: Outputs, tau: float, smooth: Doubles | None
) -> tuple[FittedMember, Doubles]:
    """Find the temperature of a base; return it with held-out scores of all rows, (n, l)."""
    name, scores, models = base
    scores = scores if smooth is None else scores @ smooth
    temperature = fit_temperature(scores[outputs.rows], outputs.evidence, tau)
    return FittedMember(name, 0.0, Scale(temperature), models, smooth), scores
