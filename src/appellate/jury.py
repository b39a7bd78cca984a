"""A jury: members whose honest outputs are mixed by weights found without the truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from importlib.util import find_spec
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.utils import check_random_state

from appellate._compat import Interval, StrOptions, fit_context
from appellate._docs import share_docs
from appellate.base import COUNT, SHARE, AppealClassifier, ProbabilityModel, Result
from appellate.candidates.names import number_groups
from appellate.costs import candidate_costs
from appellate.evidence import (
    TAUS,
    Evidence,
    Scale,
    above_chance,
    choose_round,
    choose_tau,
    estep,
    fit_scale,
    mixture_weights,
    row_criterion,
    set_odds,
    suspicion,
)
from appellate.jurors import Expert, Juror, KernelJuror, Replicas, Scores, make_folds, seat
from appellate.landmarks import LandmarkBench, LandmarkHearing
from appellate.numerics.entries import Values
from appellate.numerics.kernels import GaussianKernel, read_kernel
from appellate.problem import Kernel, Problem

__all__ = ["JuryClassifier"]

#: Width in mean distances, and ridge, of every kernel member.
KERNELS = ((0.5, 0.05), (1.0, 0.05), (2.0, 0.05), (1.0, 0.5))
AMBIGUITIES = {"label-first": 0.0, "set-first": 1.0}
_PROOF = 2.0  # standard errors of a criterion that is more than chance
_DOUBT = 1.0  # standard errors by which an earlier round must be better to be heard too
_PROBES = 3  # rounds with every tau
_PANELS = 2  # rounds with further members
_ENOUGH = 0.95  # of the best criterion, for the later round
_SILENT = 0.02  # weight below which a further member is not heard again
_STILL = 1e-3  # mean change of a posterior that is settled
_UNHEARD = 1e-4  # weight below which a member does not predict
_EXPERT_TEMPERATURES = 0.1, 10.0
_SEEDS = 2**30


class ArrayHearing:
    """All that members said, as (n, K + 1, l) arrays."""

    def __init__(self, outputs: list[Scores], replicas: Replicas) -> None:
        self.outputs, self.replicas, self.evidence = outputs, replicas, replicas.evidence
        self.honest = [replicas.honest(each) for each in outputs]

    def mix(self, scales: Sequence[Scale], weights: NDArray[Any]) -> list[Values]:
        """Mixture of all members at the candidates of every replica's own rows."""
        mixed = mixture(self.outputs, scales, weights)
        pairs = zip(self.replicas.rows, self.replicas.own, strict=True)
        return [own.entries.gather(mixed[rows, k]) for k, (rows, own) in enumerate(pairs)]

    def everywhere(
        self, scales: Sequence[Scale], weights: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Mixtures on all rows, (n, l): honest, and each without its own target only."""
        own = [each[:, 0] for each in self.outputs]
        return mixture(self.honest, scales, weights), mixture(own, scales, weights)


class ArrayBench:
    """Members that judge all rows at once."""

    def __init__(self, jurors: Sequence[Any], replicas: Replicas) -> None:
        self.jurors, self.replicas = jurors, replicas
        self.names = [juror.name for juror in jurors]
        self._last: tuple[Any, Any] = None, None

    def listen(self, targets: Sequence[Values], seed: int) -> ArrayHearing:
        """Let all members learn from the targets of every replica, if they are not the last."""
        if self._last[0] is not targets:
            dense = self.replicas.scatter(targets)
            said = ArrayHearing([each.listen(dense, seed) for each in self.jurors], self.replicas)
            self._last = targets, said
        hearing: ArrayHearing = self._last[1]
        return hearing

    def models(self) -> list[list[Any]]:
        """Return what scores new rows, for every member, after the last hearing."""
        return [juror.models() for juror in self.jurors]


Hearing = ArrayHearing | LandmarkHearing
Bench = ArrayBench | LandmarkBench


def mixture(outputs: Sequence[Scores], scales: Sequence[Scale], weights: NDArray[Any]) -> Scores:
    """``sum_m w_m softmax((output_m + b_m) / T_m)``."""
    total = np.zeros(outputs[0].shape)
    for output, scale, weight in zip(outputs, scales, weights, strict=True):
        if weight > 0:
            total += weight * scale.soften(output)
    return total


@dataclass(frozen=True, eq=False)
class Round:
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
    rows : ndarray, shape (s,)
        Every row's part of the criterion of the mixture.
    """

    targets: list[Values]
    posterior: list[Values]
    scales: list[Scale]
    weights: NDArray[np.float64]
    used: NDArray[np.float64]
    rows: Values

    @property
    def criterion(self) -> float:
        """B of the mixture."""
        return float(self.rows.mean())


def judge(
    hearing: Hearing, replicas: Replicas, tau: float, targets: list[Values], shrink: float = 0.0
) -> Round:
    """Scales, weights and criterion of what was said, and the posterior that follows.

    `shrink` is the share of equal weights in those of posterior and criterion.
    """
    shares = _label_shares(replicas, targets)
    scales = [fit_scale(each, hearing.evidence, tau, shares) for each in hearing.honest]
    weights = weigh(hearing.honest, scales, hearing.evidence, tau)
    used = (1 - shrink) * weights + shrink / len(weights)
    said = mixture(hearing.honest, scales, used)
    parts = zip(hearing.mix(scales, used), replicas.own, replicas.covering, strict=True)
    posterior = [
        estep(mixed, own, tau, groups=groups).astype(mixed.dtype, copy=False)
        for mixed, own, groups in parts
    ]
    rows = row_criterion(said, hearing.evidence, tau)
    return Round(targets, posterior, scales, weights, used, rows)


def weigh(
    honest: Sequence[Scores], scales: Sequence[Scale], evidence: Evidence, tau: float
) -> NDArray[np.float64]:
    """Mixture weights of members by their honest scores."""
    pairs = zip(honest, scales, strict=True)
    return mixture_weights(
        np.column_stack([set_odds(s.soften(h), evidence, tau) for h, s in pairs])
    )


def _label_shares(replicas: Replicas, targets: Sequence[Values]) -> NDArray[np.float64]:
    """Share of every label in the targets of all rows, (l,)."""
    n, _, l = replicas.shape
    return np.bincount(replicas.evidence.entries.labels, weights=targets[0], minlength=l) / n


@dataclass(frozen=True, eq=False)
class Deliberation:
    """The rounds of one jury at every tau that was tried, and what was chosen among them."""

    rounds: dict[float, list[Round]]
    tau: float
    chosen: int

    @property
    def round(self) -> Round:
        """The round that was chosen."""
        return self.rounds[self.tau][self.chosen]

    @property
    def earlier(self) -> Round | None:
        """A round whose criterion is better by more than chance: it is heard beside the other."""
        best = max(self.rounds[self.tau][: self.chosen + 1], key=lambda each: each.criterion)
        return best if above_chance(best.rows - self.round.rows, _DOUBT) else None


def criteria(rounds: dict[float, list[Round]]) -> dict[Any, list[float]]:
    """Criterion of every round by tau."""
    return {tau: [each.criterion for each in done] for tau, done in rounds.items()}


def deliberate(
    bench: Bench,
    replicas: Replicas,
    start: list[Values],
    taus: Sequence[float],
    max_rounds: int,
    on_round: Callable[[int], object] | None,
) -> Deliberation:
    """Run the rounds of a jury and choose tau and round by the criterion.

    Three rounds with each tau; then on with the best until nothing moves. Every round learns
    from the posterior of the one before. Where the first round is the best, or nothing is
    proven, no posterior helps and tau is not identified: label-first.
    """
    if replicas.evidence.entries.counts.max() == 1:
        max_rounds = 1  # there is nothing to find out
    rounds: dict[float, list[Round]] = {tau: [] for tau in taus}
    first = bench.listen(start, 0)

    def run(tau: float) -> Round:
        targets = rounds[tau][-1].posterior if rounds[tau] else start
        hearing = bench.listen(targets, 0) if rounds[tau] else first
        rounds[tau].append(judge(hearing, replicas, tau, targets))
        if on_round is not None:
            on_round(sum(map(len, rounds.values())))
        return rounds[tau][-1]

    for _ in range(min(_PROBES, max_rounds)):
        for tau in taus:
            run(tau)
    tau = choose_tau(criteria(rounds))
    tau = tau if tau in rounds else taus[0]
    for other in set(taus) - {tau}:  # all that is still asked of them
        tried = rounds[other]
        tried[1:] = [replace(each, targets=[], posterior=[]) for each in tried[1:]]
    for _ in range(_PROBES, max_rounds):
        last = run(tau)
        if np.abs(last.posterior[0] - last.targets[0]).mean() < _STILL:
            break
    chosen = choose_round([r.criterion for r in rounds[tau]])
    if not above_chance(rounds[tau][chosen].rows, _PROOF):
        chosen = 0
    if chosen == 0:
        tau = min(taus)
    return Deliberation(rounds, tau, chosen)


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
class Session:
    """One round with all that was said in it, and the members' models for new rows."""

    round: Round
    hearing: Hearing
    names: list[str]
    models: list[list[Any]]

    @classmethod
    def again(cls, bench: Bench, done: Round) -> Session:
        """Let the kernel members learn once more from the targets of a round."""
        return cls(done, bench.listen(done.targets, 0), bench.names, bench.models())

    def everywhere(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Mixtures on all rows, (n, l): honest, and each without its own target only."""
        return self.hearing.everywhere(self.round.scales, self.round.used)


def convene(
    bench: Bench, replicas: Replicas, found: Deliberation, members: Sequence[Expert], rng: Any
) -> tuple[list[Values], NDArray[Any], NDArray[Any], list[Seat], dict[str, Any]]:
    """Let further members hear what the kernel members found, and conclude.

    Jurors sit in up to two panel rounds; experts are heard once, on the targets of the round
    that was kept. New rows are judged by all, training rows by those that sat in the rounds.
    Where an earlier round of the kernel members had a better criterion, by more than chance,
    their output after it is half of everything: sets whose false labels look like the true one
    are learned too well in the end.

    Returns
    -------
    history : list of ndarray
        Posterior of all rows, as entries of the evidence: label-first after one round, then
        round by round.
    honest, output : ndarray, shape (n, l)
        Probabilities by members that never saw the row, and that did not see its target.
    seats : list of Seat
        The members.
    details : dict
        Further fitted attributes, by name.
    """
    session, evidence = Session.again(bench, found.round), replicas.evidence
    honest, output = session.everywhere()
    doubt = suspicion(honest, evidence)
    rounds = [found.rounds[min(found.rounds)][0], *found.rounds[found.tau][: found.chosen + 1]]
    proven = criteria(found.rounds)
    jurors = [each for each in members if isinstance(each, Juror)]
    if jurors and isinstance(bench, ArrayBench):
        sessions, proven["panel"] = _panel(bench, jurors, found, rng)
        rounds += [each.round for each in sessions]
        session = sessions[-1]
        output = session.everywhere()[1]
    last, names, models = session.round, list(session.names), list(session.models)
    voices, scales = list(session.hearing.honest), list(last.scales)
    weights, shares = last.weights, _label_shares(replicas, last.targets)
    for expert in (each for each in members if not isinstance(each, Juror)):
        fitted, said = expert.testify(last.targets, rng.randint(_SEEDS))
        names.append(expert.name)
        models.append(fitted)
        voices.append(said)
        scales.append(fit_scale(said, evidence, found.tau, shares, _EXPERT_TEMPERATURES))
    if len(voices) > len(last.weights):
        weights = weigh(voices, scales, evidence, found.tau)
    if members:
        honest = mixture(voices, scales, weights)
    seats = list(map(Seat, names, weights.tolist(), scales, models))
    history = [each.posterior[0] for each in rounds]
    earlier = found.earlier
    if earlier is not None:
        beside = Session.again(bench, earlier)
        pairs = zip((honest, output), beside.everywhere(), strict=True)
        honest, output = ((one + other) / 2 for one, other in pairs)
        names = [f"{name}, earlier" for name in beside.names]
        seats += map(Seat, names, earlier.weights.tolist(), earlier.scales, beside.models)
        seats = [replace(each, weight=each.weight / 2) for each in seats]
        history.append(estep(output, evidence, found.tau, groups=replicas.covering[0]))
    details = {"ambiguity_": found.tau, "criterion_": proven, "suspicion_": doubt}
    return history, honest, output, seats, details


def _panel(
    bench: ArrayBench, jurors: Sequence[Juror], found: Deliberation, rng: Any
) -> tuple[list[Session], list[float]]:
    """Rounds of kernels and further members up to the one that is kept, and all criteria.

    The second is kept if it has 95 % of the larger criterion; there is none where no round of
    the kernels helped, or no further member counts.
    """
    replicas, targets = bench.replicas, found.round.targets
    sessions: list[Session] = []
    proven: list[float] = []
    for _ in range(_PANELS if found.chosen else 1):
        panel = ArrayBench([*bench.jurors, *jurors], replicas)
        hearing = panel.listen(targets, rng.randint(_SEEDS))
        done = judge(hearing, replicas, found.tau, targets, shrink=0.5)
        proven.append(done.criterion)
        if done.criterion >= _ENOUGH * max(proven) or not sessions:
            sessions.append(Session(done, hearing, panel.names, panel.models()))
        heard = done.weights[len(bench.jurors) :] >= _SILENT
        jurors = [each for each, loud in zip(jurors, heard, strict=True) if loud]
        if not jurors:
            break
        targets = done.posterior
    return sessions, proven


@share_docs
@dataclass(eq=False, repr=False)
class JuryClassifier(AppealClassifier):
    """Partial-label learning by a jury that judges no row by its own label.

    A row's label has the posterior [1]_: what the row looks like, judged by classifiers that
    did not see the row's own label, times what was said of it. A jury of kernel machines,
    forests and networks gives the first, calibrated; candidate sets the second, either
    *label-first* (a label was drawn, and others joined it) or *set-first* (a set was there,
    and one of it is this row's, as with faces and the names in a caption [2]_). Which of the
    two, the members' weights and temperatures and the number of rounds are found from the
    data, without any true label, by how much the jury's honest output proves about the sets
    (`appellate.evidence.criterion`).

    1. kernel members learn from the posterior of the round before (the sets, at first) in all
       rows, and in all but one of K folds, for every fold
    2. temperatures and weights make the criterion of the held-out folds largest; rare labels get
       back half of what shrinkage took from them, unless the sets came first
    3. ``posterior ~ evidence * mixture / pi^tau`` [3]_ [4]_, each row by members that left it
       out
    4. tau is chosen after three rounds, the last good round after eight; where an earlier one
       was better by more than chance, both are averaged
    5. forests join for up to two rounds; networks are heard once at the end

    Cost: four inverses of n x n matrices and a few dozen products, O(n^3), for
    ``members="kernel"``; then the forests and networks, O(n log n). Memory: eight n x n
    matrices. Nystroem features (`GaussianKernel`) make both linear in n.

    Parameters
    ----------
    members : {"auto", "kernel"} or list, default="auto"
        Who sits beside the four kernel members: a random forest and, with torch installed, a
        network; nobody (the light jury); or a list of estimators and the word ``"network"``,
        a small `appellate.deep.PRODENClassifier` whose targets stay what the jury found.
        A member learns from soft targets: a regressor or classifier of scikit-learn, or a
        classifier of candidate sets with ``fit(X, candidates, supervision=)``, PLCP among them.
        Forests with ``bootstrap=True`` and classifiers with ``leave_one_out_decision`` sit in
        the rounds, others are heard once at the end. Beyond some 20,000 rows, where the kernels
        become features, the kernel members are alone.
    ambiguity : {"auto", "label-first", "set-first"} or float, default="auto"
        How the candidate sets arose: tau from 0 to 1, or found from the data.
    n_folds : int, default=5
        Folds K, at most one a row.
    max_rounds : int, default=8
        Rounds of the kernel members.
    covering : bool or "auto", default=False
        Whether every label of a group's set belongs to some row of the group; `fit` needs
        `groups` then. Auto: if the criterion is the larger for it.
    <cost>
    n_jobs : int or None, default=None
        Forests, networks or other members that are fitted at a time, as in joblib. It changes
        no result.
    random_state : int, RandomState instance or None, default=None
        Makes the folds, and seeds forests and networks.
    kernel : {"rbf"} or GaussianKernel, default="rbf"
        Whose width the kernel members take multiples of; it also says how kernels are kept where
        there are many rows.

    Attributes
    ----------
    <classes>
    ambiguity_ : float
        The tau in use: 0 label-first, 1 set-first.
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
    cost: Any = None
    n_jobs: int | None = None
    random_state: Any = None
    kernel: Any = "rbf"

    _parameter_constraints = {
        "members": [StrOptions({"auto", "kernel"}), list, tuple],
        "ambiguity": [StrOptions({"auto", *AMBIGUITIES}), SHARE],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "max_rounds": [COUNT],
        "covering": ["boolean", StrOptions({"auto"})],
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
        return [(self._kernel(width), ridge) for width, ridge in KERNELS]

    def _kernel(self, width: float) -> GaussianKernel:
        """The kernel of a member, whose width is a multiple of the user's."""
        kernel = clone(read_kernel(self.kernel))
        return kernel.set_params(bandwidth=width * kernel.bandwidth)

    def _solve(
        self, problem: Problem, start: Values | None, groups: Any = None, logs: Any = None
    ) -> Result:
        rng, dtype, entries = check_random_state(self.random_state), problem.dtype, problem.entries
        evidence = Evidence.of_sets(problem.candidates)
        evidence = evidence if logs is None else evidence.times(logs)
        first = None if start is None else entries.scatter(start)
        bench, replicas, found = self._judge(problem, evidence, first, groups, rng)
        members = [] if isinstance(bench, LandmarkBench) else self._further(problem, replicas)
        posteriors, honest, output, seats, details = convene(bench, replicas, found, members, rng)
        history = [
            entries.gather(evidence.entries.scatter(values)).astype(dtype) for values in posteriors
        ]
        costs, output = problem.cost, output.astype(dtype)
        ranks = [v if costs is None else -candidate_costs(v, entries, costs) for v in history]
        heard = [each for each in seats if each.weight >= _UNHEARD]
        return Result(
            initial=entries.uniform(dtype),
            confidence=history[-1],
            output=entries.gather(output),
            n_iter=len(history) - 1,
            model=lambda: JuryModel(output, heard),
            ranking=history[-1],
            details={
                **details,
                "covering_": replicas.covering[0] is not None,
                "honest_output_": honest.astype(dtype),
                "label_history_": np.array([entries.argmax(rank) for rank in ranks]),
                "verdict_confidence_": entries.scatter(history[0]),
                "weights_": [(s.name, s.weight, s.scale.temperature) for s in seats],
            },
        )

    def _judge(
        self, problem: Problem, evidence: Evidence, start: Any, groups: Any, rng: Any
    ) -> tuple[Bench, Replicas, Deliberation]:
        """Run the rounds of the kernel members; where it is not said, covering or not."""
        if self.covering is not False and groups is None:
            raise ValueError(f"covering={self.covering!r} needs groups: fit(X, y, groups=...).")
        n = problem.n_rows
        if groups is not None and len(groups) != n:
            raise ValueError(
                f"groups has {len(groups)} values; it needs one for every of {n} rows."
            )
        groups = None if groups is None else number_groups(groups)
        fold = make_folds(n, self.n_folds, groups, rng)
        ways = {False: [None], True: [groups]}.get(self.covering, [None, groups])
        divided, tau = [Replicas.split(evidence, fold, each) for each in ways], self.ambiguity
        taus = TAUS if tau == "auto" else (float(AMBIGUITIES.get(tau, tau)),)
        names = [f"kernel, width {width:g}, ridge {ridge:g}" for width, ridge in KERNELS]
        bench: Bench
        if problem.representation(self._kernel(1.0)).kind == "nystroem":
            bases = {width: problem.basis(self._kernel(width)) for width, _ in KERNELS}
            bench = LandmarkBench(bases, KERNELS, names, divided[0])
        else:
            if problem.dtype != np.float64:
                problem = Problem(problem.matrix.astype(np.float64), problem.sets)
            keeps, problem.keeps_distances = problem.keeps_distances, True
            smoothers: list[Any] = [problem.smoother(*each) for each in self._kernels()]
            problem.keeps_distances = keeps
            pairs = zip(names, smoothers, strict=True)
            bench = ArrayBench([KernelJuror(*each, divided[0]) for each in pairs], divided[0])
        tried = []
        for replicas in divided:
            first = [own.prior for own in replicas.own]
            if start is not None:
                own = zip(replicas.rows, replicas.own, strict=True)
                first = [has.normalize(has.entries.gather(start[rows])) for rows, has in own]
            found = deliberate(bench, replicas, first, taus, self.max_rounds, self._on_round)
            tried.append((bench, replicas, found))
        return max(tried, key=lambda each: each[2].round.criterion)

    def _further(self, problem: Problem, replicas: Replicas) -> list[Expert]:
        """Members beside the kernels."""
        few = min(len(rows) for rows in replicas.rows) < 2 or replicas.shape[2] < 2
        if few or self.members == "kernel":
            return []
        members = self.members
        if isinstance(members, str):
            forest = RandomForestRegressor(40, min_samples_leaf=2, max_features="sqrt")
            members = [forest, "network"] if find_spec("torch") else [forest]
        return [seat(each, problem.matrix, replicas, self.n_jobs) for each in members]


@dataclass(frozen=True)
class JuryModel(ProbabilityModel):
    """The members that predict, mixed by their weights."""

    seats: list[Seat]

    def decision(self, X: Any) -> NDArray[Any]:
        """Mix the members' probabilities of new rows, (m, l)."""
        total = sum(each.weight for each in self.seats)
        parts = (each.weight / total * each.probabilities(X) for each in self.seats)
        return np.asarray(sum(parts), dtype=X.dtype)
