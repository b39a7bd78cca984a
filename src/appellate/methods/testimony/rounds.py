"""Answers and features weighed together, round by round, and the posterior to be reported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, log_softmax, logit, logsumexp, softmax

from appellate.candidates import Answers, as_answers
from appellate.evidence.confidence import normalize_rows
from appellate.methods.testimony.explanation import Account
from appellate.methods.testimony.features import Regressions, choose_ridge, find_beta, scale_of
from appellate.methods.testimony.functions import PASSES, Functions, find_functions
from appellate.methods.testimony.models import ModelAnswers
from appellate.methods.testimony.people import (
    EDGE,
    Annotators,
    Expectation,
    Matrix,
    Opinions,
    count_votes,
    counted,
    estimate_annotators,
    incidence,
    number_opinions,
    sample_opinions,
)

ROUNDS = 8
DOUBT = 0.5  # votes that are spread evenly over the labels of every row at the start
# With features less: a start in doubt of single labels would believe weak features instead.
DOUBT_WITH_FEATURES = 0.1
# How annotators are modelled: an accuracy each; an accuracy each and the confusions of all
# together; confusions of their own.
EXPECTATIONS = (
    Expectation(alike_errors=True, strength=np.inf),
    Expectation(strength=np.inf),
    Expectation(strength=1.0),
)
_HELD_OUT_SCALE = 0.05  # nats per held-out answer that lower the weight of a model by a factor e
SHARED_ERRORS = 0.4  # how much of a further answer repeats errors, if the answers do not tell
_SHARED_SPREAD = 0.3  # standard deviation of that before the answers tell
_SHARED = np.linspace(0, 1.5, 31)  # values that are tried
_TINY = np.finfo(float).tiny
_FOLDS, _FOLD_ROUNDS = 5, 4
_HELD_OUT = 50_000  # opinions that are enough to choose by
_PER_CORRELATION = 7.0  # shared errors for each unit of correlation that the answers show
_MOST_SHARED = 0.5  # by correlation
_MANY, _ENOUGH = 5, 50  # answers to a row, and such rows, that can show a correlation
_ASKED = 5_000  # rows that the correlation is found from
FUNCTIONS_RIDGE = 0.5


@dataclass(frozen=True)
class CrowdFit:
    """What became of the answers.

    Attributes
    ----------
    posterior : ndarray, shape (n, l)
        The posterior to be reported; certain in the rows that were decided.
    confusion : ndarray, shape (p, l, l)
        Confusion matrix of every annotator.
    beta : float
        Trust in the features.
    gain : float
        Nats by which the features predict left-out answers better than the shares of the labels.
    ridge : float or None
        That of the regression on the features.
    shared : float
        How much of a further answer repeats the errors of the others.
    account : Account
        The parts of the scores.
    trusts : dict
        Inverse temperature of every model's probabilities.
    """

    posterior: Matrix
    confusion: Matrix
    beta: float
    gain: float
    ridge: float | None
    shared: float
    account: Account
    trusts: dict[Any, float] = field(default_factory=dict)


@dataclass(frozen=True)
class AnswerTable:
    """All answers to the rows, and where to start from.

    Attributes
    ----------
    people : Answers
        Answers of annotators; the answers of functions are left out.
    functions : Functions or None
        Labelling functions.
    models : sequence of ModelAnswers
        Probabilities, each as one more answer.
    votes : ndarray, shape (n, l)
        All votes, a named set as one, a model's probabilities as parts of one.
    total : ndarray, shape (n,)
        Number of answers, functions and models included.
    decided : ndarray of int, shape (n,), or None
        Class of the rows that are certain, -1 elsewhere.
    ordered : bool
        Whether the classes are in order.
    regressions : Regressions or None
        The features.
    ridge : float or None
        That of the regression on the features.
    """

    people: Answers
    functions: Functions | None
    models: Sequence[ModelAnswers]
    votes: Matrix
    total: Matrix
    decided: NDArray[np.intp] | None
    ordered: bool
    regressions: Regressions | None = None
    ridge: float | None = None

    @cached_property
    def counts(self) -> sp.csr_array:
        """`incidence` of the annotators' answers."""
        return incidence(self.people)

    def shares(self, doubt: float = DOUBT) -> Matrix:
        """Shares of the votes with so many more spread evenly, (n, l); certain where decided."""
        smoothed = (self.votes + doubt / self.votes.shape[1]) / (self.total + doubt)[:, None]
        return certain(smoothed, self.decided)

    def folds(self) -> Iterator[tuple[AnswerTable, Answers]]:
        """Yield the table without a fifth of the annotators' answers, and these answers.

        Every opinion is drawn for one of five folds, every vote of a count by itself. A count
        that is not whole is as many votes as the next whole number. Folds are left out once
        50,000 opinions were held out.
        """
        people, number = self.people, number_opinions(self.people)
        weights = counted(people)[0]
        first = np.flatnonzero(np.diff(number, prepend=-1))
        times = np.ceil(np.maximum(weights[first], EDGE)).astype(np.int64)
        drawn = np.random.default_rng(0).multinomial(times, np.full(_FOLDS, 1 / _FOLDS))
        enough = -(-_HELD_OUT * _FOLDS // max(len(first), 1))
        for fold in drawn.T[:enough]:
            part = (fold / times)[number] * weights
            held = replace(people._take(part > 0), weights=part[part > 0])
            left = weights - part
            rest = replace(people._take(left > 0), weights=left[left > 0])
            votes, total = count_votes(held)
            yield (
                replace(self, people=rest, votes=self.votes - votes, total=self.total - total),
                held,
            )


@dataclass(frozen=True)
class Scores:
    """What every label of every row has for it, by answers and features.

    Attributes
    ----------
    evidence : ndarray, shape (n, l)
        Log-likelihood of the answers.
    looks : ndarray, shape (n, l), or float
        What the features say; 0 without features.
    prior : ndarray, shape (l,), or float
        How frequent labels are; 0 with features, which have learned it.
    total : ndarray, shape (n,)
        Number of answers; with features one more, because they may repeat the errors of the
        answers.
    """

    evidence: Matrix
    looks: Matrix | float
    prior: Matrix | float
    total: Matrix

    def __getitem__(self, rows: NDArray[Any]) -> Scores:
        """Return the scores of some rows."""
        looks = self.looks if isinstance(self.looks, float) else self.looks[rows]
        return Scores(self.evidence[rows], looks, self.prior, self.total[rows])

    def posterior(self, shared: float) -> Matrix:
        """Posterior if annotators err together, (n, l).

        ``softmax((evidence + looks) / (1 + s (m - 1)) + prior)`` for m answers: annotators err
        together on hard rows, so that m answers say less than independent ones.
        """
        scores = self.evidence + self.looks
        if shared:
            scores /= (1 + shared * (np.maximum(self.total, 1) - 1))[:, None]
        scores += self.prior
        scores -= scores.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= np.einsum("ic->i", scores)[:, None]
        return scores


@dataclass(frozen=True)
class CrowdRound:
    """What one round found.

    Attributes
    ----------
    annotators : Annotators
        Their confusions.
    scores : Scores
        The one of all rows.
    beta, gain : float
        Trust in the features, and what they gain.
    trusts : dict
        Inverse temperature of every model's probabilities.
    functions : ndarray, shape (F, l), or None
        Evidence of every labelling function in the rows where it speaks.
    """

    annotators: Annotators
    scores: Scores
    beta: float = 0.0
    gain: float = 0.0
    trusts: dict[Any, float] = field(default_factory=dict)
    functions: Matrix | None = None


def fit_crowd(
    answers: Answers,
    regressions: Regressions | None = None,
    *,
    decided: NDArray[np.intp] | None = None,
    ordered: bool = False,
    functions: bool | str = "auto",
    models: Sequence[ModelAnswers] = (),
) -> CrowdFit:
    """Weigh answers and features.

    Parameters
    ----------
    answers : Answers
        Who gave which label.
    regressions : Regressions, default=None
        The features; None: the answers alone.
    decided : ndarray of int, shape (n,), default=None
        Class of the rows that are certain, -1 elsewhere.
    ordered : bool, default=False
        Whether the classes are in order, see `expected_confusions`.
    functions : bool or "auto", default="auto"
        Which sources are labelling functions, see `find_functions`.
    models : sequence of ModelAnswers
        Models that gave probabilities.
    """
    members = find_functions(answers, functions)
    votes, total = count_votes(answers)
    for model in models:
        votes, total = votes + model.shares(), total + model.spoke
    table = AnswerTable(
        people=answers._take(~members[answers.people]),
        functions=Functions.of(answers, members) if members.any() else None,
        models=models,
        votes=votes,
        total=total,
        decided=decided,
        ordered=ordered,
        regressions=regressions,
    )
    if table.functions is None or len(table.people.rows):
        return _fit_annotators(table)
    found = _fit_functions(table)
    known = estimate_annotators(answers, incidence(answers), found.posterior, ordered)
    return replace(found, confusion=known.confusion)


def _fit_annotators(table: AnswerTable) -> CrowdFit:
    """Weigh the models of the annotators by held-out answers, and average their scores."""
    if table.regressions is not None:
        start = table.shares(DOUBT_WITH_FEATURES)
        ridge = choose_ridge(table.regressions, table.people, start, ordered=table.ordered)
        table = replace(table, ridge=ridge)
    weights, shared = weigh_by_held_out(table)
    found = [run_crowd_rounds(table, expectation, ROUNDS) for expectation in EXPECTATIONS]
    scores = average_scores([each.scores for each in found], weights)
    correlated = None
    if table.regressions is None:
        q = certain(scores.posterior(0.0), table.decided)
        correlated = find_shared_errors(table.people, q)
    if correlated is not None:
        shared = correlated
    posterior = scored = scores.posterior(shared)
    if correlated is not None:
        # The votes keep a part, because the models of the annotators are wrong on some rows.
        posterior = (1 - shared) * scored + shared * table.shares()
    account = _account(table, found, weights)
    posterior = certain(posterior, table.decided)
    return CrowdFit(
        posterior=posterior,
        confusion=_mean([each.annotators.confusion for each in found], weights),
        beta=_mean([each.beta for each in found], weights),
        gain=_mean([each.gain for each in found], weights),
        ridge=table.ridge,
        shared=shared,
        trusts={
            name: _mean([each.trusts[name] for each in found], weights) for name in found[0].trusts
        },
        account=replace(account, scored=scored, voted=correlated is not None, posterior=posterior),
    )


def _account(table: AnswerTable, found: Sequence[CrowdRound], weights: Matrix) -> Account:
    """Average the parts that the scores of the last rounds were summed from."""
    p, (n, l) = table.people.n_people, table.votes.shape
    members, spoken = np.zeros(p, dtype=bool), np.zeros((p, l))
    if table.functions is not None:
        members[table.functions.members] = True
        spoken[members] = _mean([each.functions for each in found], weights)
    scores = average_scores([each.scores for each in found], weights)
    return Account(
        looks=np.broadcast_to(scores.looks + scores.prior, (n, l)),
        informed=table.regressions is not None,
        log_theta=_mean([np.log(each.annotators.confusion) for each in found], weights),
        odds=_mean([logit(each.annotators.rates) for each in found], weights),
        functions=members,
        weights=spoken,
        models={
            model.name: _mean([model.evidence(each.trusts[model.name]) for each in found], weights)
            for model in table.models
        },
    )


def _mean(values: Sequence[Any], weights: Matrix) -> Any:
    """Weighted mean of numbers or arrays."""
    return sum(w * value for w, value in zip(weights.tolist(), values, strict=True))


def average_scores(scores: Sequence[Scores], weights: Matrix) -> Scores:
    """Average the scores of the same rows by several models."""
    return replace(
        scores[0],
        evidence=_mean([each.evidence for each in scores], weights),
        looks=_mean([each.looks for each in scores], weights),
        prior=_mean([each.prior for each in scores], weights),
    )


def run_crowd_rounds(
    table: AnswerTable, expectation: Expectation, rounds: int = ROUNDS
) -> CrowdRound:
    """Run some rounds on the regression of the votes, and one on that of the posterior.

    Functions next to annotators add their evidence in every round.
    """
    regressions, ridge = table.regressions, table.ridge
    q = table.shares(DOUBT if regressions is None else DOUBT_WITH_FEATURES)
    output = last = None
    for step in range(rounds + 1):
        # Between the first and the last round, features would echo what they said.
        if regressions is not None and ridge is not None and step in (0, rounds):
            output = regressions.leave_one_out(q, ridge)
        last = _next_round(table, expectation, q, output, last)
        q = certain(last.scores.posterior(0.0), table.decided)
    assert last is not None
    return last


def _next_round(
    table: AnswerTable,
    expectation: Expectation,
    q: Matrix,
    output: Matrix | None,
    before: CrowdRound | None,
) -> CrowdRound:
    """Estimate annotators, models and the trust in the features by the posterior q."""
    known = estimate_annotators(table.people, table.counts, q, table.ordered, expectation)
    frequency = class_shares(q)
    prior, evidence = np.log(frequency), known.evidence
    spoken = None
    if table.functions is not None:
        spoken = table.functions.weights(q, frequency)
        evidence = evidence + table.functions.evidence(spoken)
    trusts = {model.name: 1.0 for model in table.models} if before is None else before.trusts
    if output is None and not table.models:
        return CrowdRound(known, Scores(evidence, 0.0, prior, table.total), functions=spoken)
    opinions = sample_opinions(table.people, known.confusion, known.rates)
    if table.models:
        trusts, evidence = _weigh_models(table.models, trusts, evidence, prior, opinions)
    if output is None:
        scores = Scores(evidence, 0.0, prior, table.total)
        return CrowdRound(known, scores, trusts=trusts, functions=spoken)
    beta, gain = find_beta(output, evidence, opinions, prior)
    scores = Scores(evidence, beta * output, 0.0, table.total + 1)
    return CrowdRound(known, scores, beta, gain, trusts, spoken)


@dataclass(frozen=True)
class HeldOutAnswers:
    """Answers of one fold that were predicted by every model of the annotators.

    Attributes
    ----------
    weights : ndarray, shape (o,)
        How often the opinions were given.
    scores : list of Scores
        Scores of the rows of the opinions, by the answers that are left; one per model.
    chances : list of ndarray, shape (o, l)
        Probability of the opinions under every label; one per model.
    """

    weights: Matrix
    scores: list[Scores]
    chances: list[Matrix]

    def likelihoods(self, models: Matrix, shared: Sequence[float]) -> Matrix:
        """Log-likelihoods of the opinions, one per value of what is repeated.

        The models of the annotators have the weights `models`.
        """
        scores, chances = average_scores(self.scores, models), _mean(self.chances, models)
        mixed = [np.einsum("oc,oc->o", scores.posterior(s), chances) for s in shared]
        return np.array([self.weights @ np.log(np.maximum(m, _TINY)) for m in mixed])


def weigh_by_held_out(table: AnswerTable) -> tuple[Matrix, float]:
    """Weigh the models of the annotators, and find how far they err together.

    A fifth of the answers is predicted from the others, five times. A model that predicts them
    with the log-likelihood h per answer has the weight ``exp(h / .05)`` over the sum of all. How
    much of a further answer repeats the errors of the others is the value under which held-out
    answers are likeliest, with the prior N(.4, .3^2); without any it is .4. Features also predict
    the answers to rows that have no other answer.

    Returns
    -------
    weights : ndarray, shape (3,)
        One per expectation.
    shared : float
        How much is repeated.
    """
    n_models = len(EXPECTATIONS)
    folds = [_hold_out(rest, held) for rest, held in table.folds()]
    n_held = max(sum(float(fold.weights.sum()) for fold in folds), 1.0)
    gains = np.zeros(n_models)
    for e, alone in enumerate(np.eye(n_models)):
        gains[e] = sum(fold.likelihoods(alone, [0.0]).item() for fold in folds) / n_held
    weights = np.asarray(softmax(gains / _HELD_OUT_SCALE))
    best = -np.square((_SHARED - SHARED_ERRORS) / _SHARED_SPREAD) / 2
    best += sum(fold.likelihoods(weights, _SHARED.tolist()) for fold in folds)
    return weights, float(_SHARED[best.argmax()])


def _hold_out(rest: AnswerTable, held: Answers) -> HeldOutAnswers:
    """Fit every model of the annotators to the answers that are left."""
    scores, chances = [], []
    for expectation in EXPECTATIONS:
        last = run_crowd_rounds(rest, expectation, _FOLD_ROUNDS)
        known = last.annotators
        opinions = sample_opinions(held, known.confusion, known.rates)
        if rest.regressions is None:
            opinions = opinions[rest.total[opinions.rows] > 0]
        scores.append(last.scores[opinions.rows])
        chances.append(np.exp(opinions.evidence))
    return HeldOutAnswers(opinions.weights, scores, chances)


def _weigh_models(
    models: Sequence[ModelAnswers],
    trusts: dict[Any, float],
    scores: Matrix,
    prior: Matrix,
    opinions: Opinions,
) -> tuple[dict[Any, float], Matrix]:
    """Find the trust of every model, the others as they were, and add their evidence."""
    evidence = {model.name: model.evidence(trusts[model.name]) for model in models}
    found = dict(trusts)
    for model in models:
        others = sum((each for name, each in evidence.items() if name != model.name), scores)
        found[model.name] = model.find_trust(others + prior, opinions)
    for model in models:
        scores = scores + model.evidence(found[model.name])
    return found, scores


def _fit_functions(table: AnswerTable) -> CrowdFit:
    """Pass twice over labelling functions, without annotators.

    The words that a function looks for are among the features, so that a regression predicts which
    function speaks. It therefore learns from the vote shares, never from the posterior, and it is
    trusted as far as it agrees with the shares, not as far as it predicts answers. The features
    count as one more answer.
    """
    assert table.functions is not None
    q = shares = table.shares()
    spoken = np.asarray(table.functions.spoke.sum(axis=0)).ravel() > 0
    trusts = {model.name: model.match(shares, spoken) for model in table.models}
    of_models = sum((m.evidence(trusts[m.name]) for m in table.models), np.zeros_like(q))
    looks: Matrix | float = 0.0
    ridge = None
    beta = gain = 0.0
    regressions = table.regressions
    if regressions is not None:
        ridge = FUNCTIONS_RIDGE if FUNCTIONS_RIDGE in regressions.ridges else regressions.ridges[0]
        output = regressions.leave_one_out(shares, ridge)
        beta = scale_of(output, shares)[0]
        looks = beta * output
        better = log_softmax(looks, axis=1) - np.log(shares.mean(axis=0))
        gain = float(np.sum(shares * better))
    total = table.total + (regressions is not None)
    for _ in range(PASSES):
        frequency = class_shares(q)
        weights = table.functions.weights(q, frequency)
        evidence = of_models + table.functions.evidence(weights)
        prior = np.log(frequency) if regressions is None else 0.0
        scores = Scores(evidence, looks, prior, total)
        q = certain(scores.posterior(0.0), table.decided)
    l, nobody = q.shape[1], table.people.n_people
    unasked = Annotators(np.full((nobody, l, l), 1 / l), np.full(nobody, 0.5), np.zeros_like(q))
    last = CrowdRound(unasked, scores, beta, gain, trusts, weights)
    account = _account(table, [last], np.ones(1))
    scored = scores.posterior(SHARED_ERRORS)
    posterior = certain(scored, table.decided)
    return CrowdFit(
        posterior=posterior,
        confusion=np.empty((0, l, l)),
        beta=beta,
        gain=gain,
        ridge=ridge,
        shared=SHARED_ERRORS,
        trusts=trusts,
        account=replace(account, scored=scored, posterior=posterior),
    )


def class_shares(q: Matrix) -> Matrix:
    """How frequent labels are, with one more row for each, (l,)."""
    return np.asarray((q.sum(axis=0) + 1) / (len(q) + q.shape[1]))


def certain(posterior: NDArray[Any], decided: NDArray[np.intp] | None) -> NDArray[Any]:
    """Give the rows that were decided their label, and it alone."""
    if decided is None or not (decided >= 0).any():
        return posterior
    out, rows = posterior.copy(), np.flatnonzero(decided >= 0)
    out[rows] = 0
    out[rows, decided[rows]] = 1
    return out


def find_shared_errors(answers: Answers, q: Matrix) -> float | None:
    """How much of a further answer repeats the errors of the others: ``min(.5, 7 rho)``.

    rho is the correlation of the answers to one row beyond what its label explains: counts of row
    i are treated as draws from a Dirichlet-multinomial distribution with the parameters
    ``(1 / rho - 1) Theta_c``, where Theta is the confusion matrix of all annotators by q and c has
    the posterior frequencies; rho in [.001, .5] is the value under which the counts of the rows
    of five answers or more are likeliest. Rows of fewer answers cannot show it: with fewer than
    50 such rows the result is None. At most 5,000 rows are used, evenly over all.
    """
    votes, total = count_votes(answers)
    rows = np.flatnonzero(total >= _MANY)
    l = q.shape[1]
    if len(rows) < _ENOUGH or l == 1:
        return None
    rows = rows[:: -(-len(rows) // _ASKED)]
    votes = votes[rows]
    total = total[rows]
    believed = q[rows]
    counts = believed.T @ votes
    theta = np.maximum((counts + np.eye(l)) / (counts.sum(axis=1, keepdims=True) + 1), 1e-4)
    frequency = np.log(class_shares(believed))

    def loss(log_rho: float) -> float:
        weights = theta * (1 / np.exp(log_rho) - 1)
        size = weights.sum(axis=1)
        fit = gammaln(size) - gammaln(size + total[:, None]) + frequency
        for c in range(l):
            fit[:, c] += np.sum(gammaln(votes + weights[c]) - gammaln(weights[c]), axis=1)
        return -float(logsumexp(fit, axis=1).sum())

    bounds = (np.log(1e-3), np.log(0.5))
    rho = float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x))
    return min(_MOST_SHARED, _PER_CORRELATION * rho)


def audit_temperature(posterior: Matrix, truth: NDArray[np.intp]) -> float:
    """Temperature of the posterior of rows that were reviewed at random, (o, l).

    Maximises their likelihood with the prior ``log t ~ N(0, .7^2)``.
    """
    logs = np.log(np.maximum(posterior, EDGE))

    def loss(log_t: float) -> float:
        correct = log_softmax(logs / np.exp(log_t), axis=1)[np.arange(len(truth)), truth]
        return float(log_t**2 / (2 * 0.7**2) - correct.sum())

    return float(np.exp(minimize_scalar(loss, bounds=(-3, 3), method="bounded").x))


def majority_vote(answers: Any) -> Matrix:
    """Share of the votes that each label of a row has, (n, l); uniform without votes.

    Parameters
    ----------
    answers : Answers or what `as_answers` reads
        Who gave which label.

    Returns
    -------
    ndarray of shape (n, l)
        Rows sum to one.

    Examples
    --------
    >>> majority_vote([["cat", "cat", "dog"], ["dog", None, None]]).argmax(axis=1)
    array([0, 1])
    """
    return np.asarray(normalize_rows(as_answers(answers).votes()))


def crowd_posterior(
    answers: Any, *, ordered: bool = False, functions: bool | str = "auto"
) -> Matrix:
    """Posterior by the answers alone, without features, (n, l): Dawid and Skene with shrinkage.

    Parameters
    ----------
    answers : Answers or what `as_answers` reads
        Who gave which label.
    ordered : bool, default=False
        Whether labels are ordered: errors are then expected near the true label.
    functions : bool or "auto", default="auto"
        Whether sources that give one label only are labelling functions, see
        `TestimonyClassifier`.

    Returns
    -------
    ndarray of shape (n, l)
        Rows sum to one.

    Examples
    --------
    >>> crowd_posterior([["cat", "cat", "dog"], ["dog", "dog", None]]).argmax(axis=1)
    array([0, 1])
    """
    return fit_crowd(as_answers(answers), ordered=ordered, functions=functions).posterior
