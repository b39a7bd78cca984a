"""A jury: members whose honest outputs are mixed by weights found without the truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from importlib.util import find_spec
from numbers import Integral
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.ensemble import RandomForestRegressor
from sklearn.utils import check_random_state

from appellate._compat import Interval, StrOptions, fit_context
from appellate._parameters import share_docs
from appellate.candidates.names import number_groups
from appellate.core.base import COUNT, SHARE, AppealClassifier
from appellate.core.problem import Kernel, Problem
from appellate.core.results import ProbabilityModel, Result
from appellate.evidence.ambiguity import PROOF, WORDS, choose_tau, read_ambiguity, resemblance
from appellate.evidence.costs import candidate_costs
from appellate.evidence.held_out import above_chance, choose_round, row_criterion, suspicion
from appellate.evidence.likelihood import Evidence, estep, set_odds
from appellate.evidence.order import choose_width, label_places, order_matrix
from appellate.evidence.scales import Scale, fit_scale, fit_temperature, mixture_weights
from appellate.methods.jury.members import (
    Expert,
    ForestJuror,
    KernelJuror,
    MakeModels,
    Replicas,
    Scores,
    Smoothed,
    make_folds,
    seat,
)
from appellate.methods.jury.nystroem import LandmarkBench, LandmarkOutputs
from appellate.numerics.entries import Values
from appellate.numerics.kernels import (
    GaussianKernel,
    LaplacianKernel,
    RadialKernel,
    kernel_key,
    read_kernel,
)

__all__ = ["JuryClassifier"]

#: Kernel, with its width in mean distances, and ridge of every kernel member.
KERNELS: tuple[tuple[RadialKernel, float], ...] = (
    (GaussianKernel(0.5), 0.05),
    (GaussianKernel(1.0), 0.05),
    (GaussianKernel(1.0), 0.5),
    (GaussianKernel(0.5, root=True), 0.05),
    (LaplacianKernel(1.0), 0.05),
    (LaplacianKernel(1.0, root=True), 0.05),
)
_DOUBT = 1.0  # standard errors by which an earlier round must be better to be mixed in
_PROBES = 3  # rounds with every tau
_PANELS = 2  # rounds with further members
_ENOUGH = 0.95  # of the best criterion, for the later round
_SILENT = 0.02  # weight below which a further member does not learn again
_STILL = 1e-3  # mean change of a posterior that is settled
_UNHEARD = 1e-4  # weight below which a member does not predict
_EXPERT_TEMPERATURES = 0.1, 10.0
_SEEDS = 2**30


class ArrayOutputs:
    """Outputs of members that judge all rows at once.

    Attributes
    ----------
    names : list of str
        Of the members.
    evidence : Evidence
        Of the rows in `held_out`.
    held_out : list of ndarray, shape (n, l)
        Every member's scores of the rows by the replica that lacks them.
    """

    def __init__(
        self,
        names: list[str],
        outputs: list[Scores],
        makers: list[MakeModels],
        replicas: Replicas,
    ) -> None:
        self.names = names
        self.replicas = replicas
        self.evidence = replicas.evidence
        self.held_out = [replicas.honest(each) for each in outputs]
        self._outputs = outputs
        self._makers = makers

    def mix(self, scales: Sequence[Scale], weights: NDArray[Any]) -> list[Values]:
        """Mixture of all members at the candidates of every replica's own rows."""
        mixed = mixture(self._outputs, scales, weights)
        pairs = zip(self.replicas.rows, self.replicas.own, strict=True)
        return [own.entries.gather(mixed[rows, k]) for k, (rows, own) in enumerate(pairs)]

    def everywhere(
        self, scales: Sequence[Scale], weights: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Mixtures on all rows, (n, l): held out, and each without its own target only."""
        own = [each[:, 0] for each in self._outputs]
        return mixture(self.held_out, scales, weights), mixture(own, scales, weights)

    def models(self) -> list[list[Any]]:
        """Return what scores new rows, for every member."""
        return [make() for make in self._makers]


class ArrayBench:
    """Members that judge all rows at once."""

    def __init__(self, members: Sequence[KernelJuror | ForestJuror], replicas: Replicas) -> None:
        self.members = members
        self.replicas = replicas

    def learn(
        self, targets: Sequence[Values], seed: int = 0, smooth: Scores | None = None
    ) -> ArrayOutputs:
        """Let all members learn from the targets of every replica.

        `smooth` shares the targets, and with them the scores, between neighbouring labels.
        """
        dense = self.replicas.scatter(targets)
        if smooth is not None:
            dense = dense @ smooth
        learned = [each.learn(dense, seed) for each in self.members]
        names = [each.name for each in self.members]
        outputs, makers = [one for one, _ in learned], [make for _, make in learned]
        return ArrayOutputs(names, outputs, makers, self.replicas)


Outputs = ArrayOutputs | LandmarkOutputs
Bench = ArrayBench | LandmarkBench


def mixture(outputs: Sequence[Scores], scales: Sequence[Scale], weights: NDArray[Any]) -> Scores:
    """``sum_m w_m softmax((output_m + b_m) / T_m)``."""
    total = np.zeros(outputs[0].shape)
    for output, scale, weight in zip(outputs, scales, weights, strict=True):
        if weight > 0:
            total += weight * scale.soften(output)
    return total


@dataclass(frozen=True, eq=False)
class JuryRound:
    """What a jury found in one round.

    Attributes
    ----------
    targets, posterior : list of ndarray
        What the members learned from, and what the round made of it, as candidate entries of
        every replica.
    scales, weights : sequence of Scale, ndarray
        Of the members.
    used : ndarray
        Weights in the posterior.
    held_out : ndarray, shape (s, l)
        The mixture of the members on rows that they did not see.
    rows : ndarray, shape (s,)
        Every row's part of the criterion of the mixture.
    """

    targets: list[Values]
    posterior: list[Values]
    scales: list[Scale]
    weights: NDArray[np.float64]
    used: NDArray[np.float64]
    held_out: Scores | None
    rows: Values

    @property
    def criterion(self) -> float:
        """B of the mixture."""
        return float(self.rows.mean())


def judge(
    outputs: Outputs, replicas: Replicas, tau: float, targets: list[Values], shrink: float = 0.0
) -> JuryRound:
    """Find scales, weights and criterion of the outputs, and the posterior that follows.

    `shrink` is the share of equal weights in those of posterior and criterion.
    """
    shares = _label_shares(replicas, targets)
    scales = [fit_scale(each, outputs.evidence, tau, shares) for each in outputs.held_out]
    weights = weigh(outputs.held_out, scales, outputs.evidence, tau)
    used = (1 - shrink) * weights + shrink / len(weights)
    held_out = mixture(outputs.held_out, scales, used)
    parts = zip(outputs.mix(scales, used), replicas.own, replicas.covering, strict=True)
    posterior = [
        estep(mixed, own, tau, groups=groups).astype(mixed.dtype, copy=False)
        for mixed, own, groups in parts
    ]
    rows = row_criterion(held_out, outputs.evidence, tau)
    return JuryRound(targets, posterior, scales, weights, used, held_out, rows)


def weigh(
    held_out: Sequence[Scores], scales: Sequence[Scale], evidence: Evidence, tau: float
) -> NDArray[np.float64]:
    """Mixture weights of members by their scores of rows that they did not see."""
    pairs = zip(held_out, scales, strict=True)
    return mixture_weights(
        np.column_stack([set_odds(s.soften(h), evidence, tau) for h, s in pairs])
    )


def _label_shares(replicas: Replicas, targets: Sequence[Values]) -> NDArray[np.float64]:
    """Share of every label in the targets of all rows, (l,)."""
    n, _, l = replicas.shape
    return np.bincount(replicas.evidence.entries.labels, weights=targets[0], minlength=l) / n


@dataclass(frozen=True, eq=False)
class Deliberation:
    """The rounds of the kernel members at every tau that was tried, and what was chosen.

    Attributes
    ----------
    rounds : dict
        The rounds of every tau.
    tau : float
        How the sets are taken.
    chosen : int
        Number of the round at that tau.
    replicas : Replicas
        With the groups that are covered, if any.
    width : int
        Of the order among the labels; 0 without.
    smooth : ndarray, shape (l, l), or None
        What shares scores between neighbouring labels.
    resemblance : float or None
        Whether false labels look like the true ones.
    latest : tuple of list and Outputs
        Targets and outputs of the last round that was run.
    """

    rounds: dict[float, list[JuryRound]]
    tau: float
    chosen: int
    replicas: Replicas
    width: int
    smooth: Scores | None
    resemblance: float | None
    latest: tuple[list[Values], Outputs]

    @property
    def round(self) -> JuryRound:
        """The round that was chosen."""
        return self.rounds[self.tau][self.chosen]

    @property
    def earlier(self) -> JuryRound | None:
        """A round whose criterion is better by more than chance: it is mixed in."""
        best = max(self.rounds[self.tau][: self.chosen + 1], key=lambda each: each.criterion)
        return best if above_chance(best.rows - self.round.rows, _DOUBT) else None

    def again(self, bench: Bench, done: JuryRound) -> Outputs:
        """Return the outputs of the kernel members in a round; they learn once more if need be."""
        targets, outputs = self.latest
        if done.targets is targets:
            return outputs
        return bench.learn(done.targets, smooth=self.smooth)


def criteria(rounds: dict[float, list[JuryRound]]) -> dict[Any, list[float]]:
    """Criterion of every round by tau."""
    return {tau: [each.criterion for each in done] for tau, done in rounds.items()}


def find_order(
    bench: Bench, start: list[Values], places: NDArray[np.intp] | None
) -> tuple[int, Scores | None]:
    """Find the width of the order among the labels, and the matrix that follows from it."""
    if places is None:
        return 0, None
    outputs = bench.learn(start)
    width = choose_width(outputs.held_out, outputs.evidence, places)
    return width, order_matrix(places, width) if width else None


def deliberate(
    bench: Bench,
    replicas: Replicas,
    start: list[Values],
    taus: Sequence[float],
    max_rounds: int,
    order: tuple[int, Scores | None],
    on_round: Callable[[int], object] | None,
) -> Deliberation:
    """Run the rounds of the kernel members and choose tau and round.

    Three rounds with each tau; then on with the chosen one until nothing moves. Every round
    learns from the posterior of the one before. If the first round is the best, or nothing is
    proven, no posterior helps and tau is not identified: label-first.
    """
    if replicas.evidence.entries.counts.max() == 1:
        max_rounds = 1  # there is nothing to find out
    width, smooth = order
    rounds: dict[float, list[JuryRound]] = {tau: [] for tau in taus}
    first = bench.learn(start, smooth=smooth)
    latest = start, first

    def run(tau: float) -> JuryRound:
        nonlocal latest
        targets = rounds[tau][-1].posterior if rounds[tau] else start
        outputs = bench.learn(targets, smooth=smooth) if rounds[tau] else first
        latest = targets, outputs
        done = judge(outputs, replicas, tau, targets)
        rounds[tau].append(done if tau == 0 else replace(done, held_out=None))
        if on_round is not None:
            on_round(sum(map(len, rounds.values())))
        return done

    for _ in range(min(_PROBES, max_rounds)):
        for tau in taus:
            run(tau)
    resembling = None
    if 0.0 in rounds:
        label_first = rounds[0.0][choose_round([each.criterion for each in rounds[0.0]])]
        resembling = resemblance(cast(Scores, label_first.held_out), first.evidence)
    tau = choose_tau(criteria(rounds), resembling, ordered=width > 0)
    tau = tau if tau in rounds else taus[0]
    for other in set(taus) - {tau}:  # targets are not asked of them again
        tried = rounds[other]
        tried[1:] = [replace(each, targets=[], posterior=[]) for each in tried[1:]]
    for _ in range(_PROBES, max_rounds):
        last = run(tau)
        if np.abs(last.posterior[0] - last.targets[0]).mean() < _STILL:
            break
    chosen = choose_round([each.criterion for each in rounds[tau]])
    if not above_chance(rounds[tau][chosen].rows, PROOF):
        chosen = 0
    if chosen == 0:
        tau = min(taus)
    return Deliberation(rounds, tau, chosen, replicas, width, smooth, resembling, latest)


@dataclass(frozen=True, eq=False)
class Seat:
    """A member of a fitted jury.

    Attributes
    ----------
    name : str
        What it is called.
    weight : float
        Its part in the mixture.
    scale : Scale
        What makes probabilities of its scores.
    models : list
        Objects with ``predict(X)``, scores of new rows; their probabilities are averaged.
    """

    name: str
    weight: float
    scale: Scale
    models: list[Any]

    def probabilities(self, X: NDArray[Any]) -> Scores:
        """Probabilities of new rows, (m, l)."""
        parts = (self.scale.soften(model.predict(X)) for model in self.models)
        return np.asarray(sum(parts) / len(self.models))


@dataclass(frozen=True, eq=False)
class Voice:
    """A classifier that does not learn from the jury, but is weighed with its members.

    Attributes
    ----------
    name : str
        What it is called.
    scores : ndarray, shape (n, l)
        Of every row, by a fit that did not see the row.
    models : list
        Objects with ``predict(X)``, scores of new rows.
    """

    name: str
    scores: Scores
    models: list[Any]

    def smoothed(self, matrix: Scores | None) -> Voice:
        """Share the scores between neighbouring labels."""
        if matrix is None:
            return self
        models = [Smoothed(each, matrix) for each in self.models]
        return Voice(self.name, self.scores @ matrix, models)


@dataclass(frozen=True, eq=False)
class Conclusion:
    """What a jury comes to.

    Attributes
    ----------
    history : list of ndarray
        Posterior of all rows, as entries of the evidence: label-first after one round, then
        round by round.
    held_out, output : ndarray, shape (n, l)
        Probabilities by members that never saw the row, and that did not see its target.
    seats : list of Seat
        The members.
    details : dict
        Further fitted attributes, by name.
    """

    history: list[Values]
    held_out: Scores
    output: Scores
    seats: list[Seat]
    details: dict[str, Any]


def conclude(
    bench: Bench,
    found: Deliberation,
    members: Sequence[ForestJuror | Expert],
    base: Voice | None,
    rng: Any,
) -> Conclusion:
    """Let further members learn from what the kernel members found, and mix all.

    Forests take part in up to two further rounds. Experts are fitted once, on the targets of
    the last round, and judge new rows only. A base, if there is one, is weighed with all of them
    and judges training rows too. If an earlier round of the kernel members had a better
    criterion, by more than chance, their output after it is half of everything: sets whose false
    labels look like the true one are learned too well in the end.
    """
    replicas = found.replicas
    evidence = replicas.evidence
    outputs = found.again(bench, found.round)
    last = found.round
    held_out, output = outputs.everywhere(last.scales, last.used)
    doubt = suspicion(held_out, evidence)
    rounds = [found.rounds[min(found.rounds)][0], *found.rounds[found.tau][: found.chosen + 1]]
    proven = criteria(found.rounds)
    forests = [each for each in members if isinstance(each, ForestJuror)]
    if forests and isinstance(bench, ArrayBench):
        done, outputs, proven["panel"] = _panel(bench, forests, found, rng)
        rounds += done
        last = done[-1]
        output = outputs.everywhere(last.scales, last.used)[1]
    n_rounds = len(last.weights)  # members that took part in the rounds
    names = list(outputs.names)
    models = outputs.models()
    scores = list(outputs.held_out)
    scales = list(last.scales)
    weights = last.weights
    shares = _label_shares(replicas, last.targets)
    for expert in (each for each in members if isinstance(each, Expert)):
        fitted, said = expert.learn(last.targets, rng.randint(_SEEDS))
        voice = Voice(expert.name, said, fitted).smoothed(found.smooth)
        names.append(voice.name)
        models.append(voice.models)
        scores.append(voice.scores)
        scales.append(fit_scale(voice.scores, evidence, found.tau, shares, _EXPERT_TEMPERATURES))
    if base is not None:
        base = base.smoothed(found.smooth)
        known = base.scores if isinstance(bench, ArrayBench) else base.scores[bench.sample]
        names.append(base.name)
        models.append(base.models)
        scores.append(known)
        scales.append(Scale(fit_temperature(known, outputs.evidence, found.tau)))
    if len(scores) > n_rounds:
        weights = weigh(scores, scales, outputs.evidence, found.tau)
    if members:
        held_out = mixture(scores, scales, weights)
    if base is not None:
        judged = weights[:n_rounds]
        own = weights[-1] * scales[-1].soften(base.scores)
        unseen, left_out = outputs.everywhere(scales[:n_rounds], judged)
        output = (left_out + own) / (judged.sum() + weights[-1])
        held_out = held_out if members else unseen + own
    seats = list(map(Seat, names, weights.tolist(), scales, models))
    history = [each.posterior[0] for each in rounds]
    earlier = found.earlier
    if earlier is not None:
        before = found.again(bench, earlier)
        pairs = zip(
            (held_out, output), before.everywhere(earlier.scales, earlier.used), strict=True
        )
        held_out, output = ((one + other) / 2 for one, other in pairs)
        names = [f"{name}, earlier" for name in before.names]
        seats += map(Seat, names, earlier.weights.tolist(), earlier.scales, before.models())
        seats = [replace(each, weight=each.weight / 2) for each in seats]
    if earlier is not None or base is not None:
        history.append(estep(output, evidence, found.tau, groups=replicas.covering[0]))
    details = {
        "ambiguity_": found.tau,
        "criterion_": proven,
        "order_width_": found.width,
        "resemblance_": found.resemblance,
        "suspicion_": doubt,
    }
    return Conclusion(history, held_out, output, seats, details)


def _panel(
    bench: ArrayBench, forests: Sequence[ForestJuror], found: Deliberation, rng: Any
) -> tuple[list[JuryRound], ArrayOutputs, list[float]]:
    """Rounds of kernels and forests up to the one that is kept, its outputs, all criteria.

    The second is kept if it has 95 % of the larger criterion; there is none if no round of
    the kernels helped, or no forest counts.
    """
    targets = found.round.targets
    kept: list[JuryRound] = []
    proven: list[float] = []
    for _ in range(_PANELS if found.chosen else 1):
        panel = ArrayBench([*bench.members, *forests], bench.replicas)
        outputs = panel.learn(targets, rng.randint(_SEEDS), found.smooth)
        done = judge(outputs, found.replicas, found.tau, targets, shrink=0.5)
        proven.append(done.criterion)
        if done.criterion >= _ENOUGH * max(proven) or not kept:
            kept.append(done)
            last = outputs
        counts = done.weights[len(bench.members) :] >= _SILENT
        forests = [each for each, loud in zip(forests, counts, strict=True) if loud]
        if not forests:
            break
        targets = done.posterior
    return kept, last, proven


@share_docs
@dataclass(eq=False, repr=False)
class JuryClassifier(AppealClassifier):
    """Partial-label learning by a jury: members that never judge rows they were trained on.

    A row's label has the posterior [1]_: what the row looks like, judged by classifiers that
    did not see the row's own label, times what was observed of it. A jury of kernel machines,
    forests and networks gives the first, calibrated; candidate sets the second, either
    *label-first* (a label was drawn, and others joined it) or *set-first* (a set was there,
    and one of it is this row's, as with faces and the names in a caption [2]_). Which of the
    two, whether the labels are ordered, the members' weights and temperatures and the number of
    rounds are found from the data, without any true label, by how much the jury's out-of-fold
    output proves about the sets (`appellate.evidence.criterion`).

    1. kernel members learn from the posterior of the round before (the sets, at first) in all
       rows, and in all but one of K folds, for every fold
    2. temperatures and weights make the criterion of the held-out folds largest; rare labels get
       back half of what shrinkage took from them, unless the sets came first
    3. ``posterior ~ evidence * mixture / pi^tau`` [3]_ [4]_, each row by members that left it
       out
    4. tau is chosen after three rounds (`appellate.evidence.choose_tau`), the last good round
       after eight; if an earlier one was better by more than chance, both are averaged
    5. forests join for up to two rounds; networks are fitted once at the end

    If the labels are numbers, or `order` gives their order, the criterion decides before the
    first round whether neighbouring labels share their scores (`appellate.evidence.order`).

    Cost: six inverses of n x n matrices and a few dozen products, O(n^3), for
    ``members="kernel"``; then the forests and networks, O(n log n). Memory: ten n x n matrices.
    Nystroem features (`GaussianKernel`) make both linear in n.

    Parameters
    ----------
    members : {"auto", "kernel"} or list, default="auto"
        Members besides the six kernel members: a random forest and, with torch installed, a
        network; none (the light jury); or a list of members, which learn from soft targets:

        - a ``RandomForestRegressor`` or ``ExtraTreesRegressor`` with ``bootstrap=True``, which
          takes part in the rounds
        - the word ``"network"``, a small `appellate.deep.PRODENClassifier`
        - a classifier with ``fit(X, candidates, supervision=)``, such as those of this library;
          `SoftLabelClassifier` makes one of any classifier or regressor of scikit-learn

        Beyond 9,000 rows, if the kernels become features, the kernel members are alone.
    ambiguity : {"auto", "label-first", "set-first"} or float, default="auto"
        How the candidate sets arose: tau from 0 to 1, or found from the data.
    n_folds : int, default=5
        Folds K, at most one a row.
    max_rounds : int, default=8
        Rounds of the kernel members.
    covering : bool or "auto", default=False
        Whether every label of a group's set belongs to some row of the group; `fit` needs
        `groups` then. Auto: if the criterion is the larger for it.
    order : {"auto"}, None or sequence of labels, default="auto"
        The labels in their order, such as ``["small", "medium", "large"]``; auto: that of the
        numbers if all labels are numbers; None: there is none. An order is used only if the data
        show that neighbouring labels look alike.
    <cost>
    n_jobs : int or None, default=None
        Forests, networks or other members that are fitted at a time, as in joblib. It changes
        no result.
    random_state : int, RandomState instance or None, default=None
        Makes the folds, and seeds forests and networks.
    kernel : {"rbf"} or GaussianKernel, default="rbf"
        Width that the widths of the kernel members are multiples of, and how kernels are kept
        if there are many rows.

    Attributes
    ----------
    <classes>
    ambiguity_ : float
        The tau in use: 0 label-first, 1 set-first.
    resemblance_ : float or None
        Whether false candidates look like their row: .5 if not, 1 if always; None if too few
        rows are confident (`appellate.evidence.resemblance`).
    order_width_ : int
        How far the evidence of a label reaches along the order, in labels; 0: no order was found.
    covering_ : bool
        Whether groups were covered.
    weights_ : list of tuple
        Name, weight and temperature of every member.
    criterion_ : dict
        What each round proved about the sets, a list for every tau that was tried; under
        ``"panel"`` the rounds with further members.
    verdict_ : ndarray, shape (n,)
        Label of every training row after one round, the sets taken as label-first.
    transduction_ : ndarray, shape (n,)
        Label of every training row at the end.
    overturned_ : ndarray of bool, shape (n,)
        Where the two differ; never for a row with one candidate.
    verdict_confidence_, confidence_ : ndarray, shape (n, l)
        Posterior behind them, rows on the simplex over the candidates.
    honest_output_ : ndarray, shape (n, l)
        Probabilities of the training rows by members that never saw them.
    training_output_ : ndarray, shape (n, l)
        Probabilities of the training rows by members that left the row's own target out.
    suspicion_ : ndarray, shape (n,)
        Honest mass outside the candidates: an order in which to look for rows whose true label
        is not among their candidates.
    label_history_ : ndarray of int, shape (rounds + 1, n)
        Class index of every training row: verdict first, then round by round.
    n_iter_ : int
        Rounds behind the final labels.

    References
    ----------
    .. [1] Jin, Ghahramani (2002). Learning with multiple labels. NIPS.
    .. [2] Cour, Sapp, Taskar (2011). Learning from partial labels. JMLR 12.
    .. [3] Menon et al. (2021). Long-tail learning via logit adjustment. ICLR. (Divides by label
       frequency where data are long-tailed. Here the reason is another, the origin of the sets,
       and it is found from the data whether to divide.)
    .. [4] Hong et al. (2023). Long-tailed partial label learning via dynamic rebalancing. ICLR.
       (The same for partial labels and networks.)

    Examples
    --------
    >>> from appellate import JuryClassifier
    >>> from appellate.testing import make_clusters
    >>> X, candidates, truth = make_clusters()
    >>> jury = JuryClassifier("kernel", random_state=0).fit(X, candidates)
    >>> bool((jury.transduction_ == truth).all())
    True
    >>> jury.predict_proba([[10.0, 0.0]]).round(1)
    array([[1., 0., 0.]])
    """

    members: Any = "auto"
    _: KW_ONLY
    ambiguity: Any = "auto"
    n_folds: int = 5
    max_rounds: int = 8
    covering: Any = False
    order: Any = "auto"
    cost: Any = None
    n_jobs: int | None = None
    random_state: Any = None
    kernel: Any = "rbf"

    _parameter_constraints = {
        "members": [StrOptions({"auto", "kernel"}), list, tuple],
        "ambiguity": [StrOptions({"auto", *WORDS}), SHARE],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "max_rounds": [COUNT],
        "covering": ["boolean", StrOptions({"auto"})],
        "order": [StrOptions({"auto"}), None, "array-like"],
        "n_jobs": [None, Integral],
        "kernel": [StrOptions({"rbf"}), GaussianKernel],
    }

    @fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        supervision: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        evidence: ArrayLike | None = None,
    ) -> Self:
        """Fit to training rows and their candidate sets.

        Parameters
        ----------
        X : array-like, shape (n, q)
            Features; a Dask array or `ParquetRows` where kernels become Nystroem features.
        y : array-like
            Candidate sets, as everywhere (`PartialLabelClassifier.fit`).
        supervision : array-like, shape (n, l), default=None
            Confidence to start from: rows on the simplex over the candidates.
        groups : array-like, shape (n,), default=None
            Photo, page or recording of every row. Rows of a group are held out together; a row
            without one (None, NaN, a blank) stands alone.
        evidence : array-like, shape (n, l), default=None
            Log-likelihoods of what else is known of every label; they add to what the sets say.

        Returns
        -------
        self
        """
        problem, start = self._open(X, y, supervision)
        self._keep(problem, self._solve(problem, start, groups, evidence))
        return self

    def _kernels(self) -> list[tuple[Kernel, Any]]:
        return [(self._kernel(kernel), ridge) for kernel, ridge in KERNELS]

    def _n_matrices(self) -> float:
        """Matrices of n x n doubles: an inverse with its folds for every member, and a new one."""
        return len(KERNELS) * (0.5 + 1 / self.n_folds) + 3.5

    def _n_squares(self) -> float:
        """Matrices of m x m doubles: a member and a kind of features have one per replica."""
        kinds = len({kernel_key(kernel) for kernel, _ in self._kernels()})
        return (self.n_folds + 1) * (len(KERNELS) + kinds) + 5

    def _kernel(self, member: RadialKernel) -> RadialKernel:
        """The kernel of a member, with the user's representation and multiple of its width."""
        given = read_kernel(self.kernel)
        settings = given.get_params() | {"root": member.root}
        settings["bandwidth"] *= member.bandwidth
        return type(member)(**settings)

    def _solve(
        self,
        problem: Problem,
        start: Values | None,
        groups: Any = None,
        logs: Any = None,
        base: Callable[[Replicas], Voice] | None = None,
    ) -> Result:
        rng = check_random_state(self.random_state)
        dtype = problem.dtype
        entries = problem.entries
        evidence = Evidence.of_sets(problem.candidates)
        evidence = evidence if logs is None else evidence.times(logs)
        first = None if start is None else entries.scatter(start)
        bench, found = self._judge(problem, evidence, first, groups, rng)
        many = isinstance(bench, LandmarkBench)
        members = [] if many else self._further(problem, found.replicas)
        voice = None if base is None else base(found.replicas)
        result = conclude(bench, found, members, voice, rng)
        history = [
            entries.gather(evidence.entries.scatter(values)).astype(dtype)
            for values in result.history
        ]
        costs = problem.cost
        output = result.output.astype(dtype)
        ranks = [v if costs is None else -candidate_costs(v, entries, costs) for v in history]
        heard = [each for each in result.seats if each.weight >= _UNHEARD]
        return Result(
            initial=entries.uniform(dtype),
            confidence=history[-1],
            output=entries.gather(output),
            n_iter=len(history) - 1,
            model=lambda: JuryModel(output, heard),
            ranking=history[-1],
            details={
                **result.details,
                "covering_": found.replicas.covering[0] is not None,
                "honest_output_": result.held_out.astype(dtype),
                "label_history_": np.array([entries.argmax(rank) for rank in ranks]),
                "verdict_confidence_": entries.scatter(history[0]),
                "weights_": [(s.name, s.weight, s.scale.temperature) for s in result.seats],
            },
        )

    def _judge(
        self, problem: Problem, evidence: Evidence, start: Any, groups: Any, rng: Any
    ) -> tuple[Bench, Deliberation]:
        """Run the rounds of the kernel members; if it is not told, covering or not."""
        if self.covering is not False and groups is None:
            raise ValueError(f"covering={self.covering!r} needs groups: fit(X, y, groups=...).")
        n = problem.n_rows
        if groups is not None and len(groups) != n:
            raise ValueError(
                f"groups has {len(groups)} values; it needs one for every of {n} rows."
            )
        places = label_places(problem.classes, self.order)
        groups = None if groups is None else number_groups(groups)
        fold = make_folds(n, self.n_folds, groups, rng)
        ways = {False: [None], True: [groups]}.get(self.covering, [None, groups])
        divided = [Replicas.split(evidence, fold, each) for each in ways]
        taus = read_ambiguity(self.ambiguity)
        bench = self._make_bench(problem, divided[0])
        first = [own.prior for own in divided[0].own]
        if start is not None:
            own = zip(divided[0].rows, divided[0].own, strict=True)
            first = [has.normalize(has.entries.gather(start[rows])) for rows, has in own]
        order = find_order(bench, first, places)
        tried = [
            deliberate(bench, replicas, first, taus, self.max_rounds, order, self._on_round)
            for replicas in divided
        ]
        return bench, max(tried, key=lambda found: found.round.criterion)

    def _make_bench(self, problem: Problem, replicas: Replicas) -> Bench:
        """Make the kernel members: exact, or on Nystroem features if there are many rows."""
        names = [_describe(kernel, ridge) for kernel, ridge in KERNELS]
        kernels = self._kernels()
        if problem.representation(kernels[0][0]).kind == "nystroem":
            parts = zip(names, kernels, strict=True)
            members = [(name, problem.basis(each), ridge) for name, (each, ridge) in parts]
            return LandmarkBench(members, replicas)
        exact = problem.as_double()
        jurors = []
        with exact.keeping_distances():
            for name, (kernel, ridge) in zip(names, kernels, strict=True):
                smoother: Any = exact.smoother(kernel, ridge, keep=False)
                jurors.append(KernelJuror(name, smoother, replicas))
        return ArrayBench(jurors, replicas)

    def _further(self, problem: Problem, replicas: Replicas) -> list[ForestJuror | Expert]:
        """Members beside the kernels."""
        few = min(len(rows) for rows in replicas.rows) < 2 or replicas.shape[2] < 2
        if few or self.members == "kernel":
            return []
        members = self.members
        if isinstance(members, str):
            forest = RandomForestRegressor(40, min_samples_leaf=2, max_features="sqrt")
            members = [forest, "network"] if find_spec("torch") else [forest]
        return [seat(each, problem.matrix, replicas, self.n_jobs) for each in members]


def _describe(kernel: RadialKernel, ridge: float) -> str:
    kind = type(kernel).__name__.removesuffix("Kernel")
    of = " of square roots" if kernel.root else ""
    return f"{kind}{of}, width {kernel.bandwidth:g}, ridge {ridge:g}"


@dataclass(frozen=True)
class JuryModel(ProbabilityModel):
    """The members that predict, mixed by their weights."""

    seats: list[Seat]

    def decision(self, X: Any) -> NDArray[Any]:
        """Mix the members' probabilities of new rows, (m, l)."""
        total = sum(each.weight for each in self.seats)
        parts = (each.weight / total * each.probabilities(X) for each in self.seats)
        return np.asarray(sum(parts), dtype=X.dtype)
