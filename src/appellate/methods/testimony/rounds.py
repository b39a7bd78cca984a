"""Answers and features weighed together, round by round, and the posterior to be reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, log_softmax, logsumexp, softmax

from appellate.candidates import Answers, as_answers
from appellate.evidence.confidence import normalize_rows
from appellate.methods.testimony.explanation import Account
from appellate.methods.testimony.features import Regressions, choose_ridge, find_beta, scale_of
from appellate.methods.testimony.functions import PASSES, Functions, find_functions
from appellate.methods.testimony.models import ModelAnswers
from appellate.methods.testimony.people import (
    EDGE,
    Matrix,
    Opinions,
    count_votes,
    credit,
    incidence,
    know_people,
    sample_opinions,
)

ROUNDS = 8
DOUBT = 0.5  # votes that are spread evenly over the labels of every row at the start
# With features less: a start in doubt of single labels would believe weak features instead.
DOUBT_WITH_FEATURES = 0.1
SHARED_ERRORS = 0.4  # share of a further answer that repeats the errors of the others, at most
SHARED_ALONE = 0.5  # the same without features
_PER_CORRELATION = 7.0  # shared errors for each unit of correlation that the answers show
_MANY, _ENOUGH = 5, 50  # answers to a row, and such rows, that can show a correlation
_ASKED = 5_000  # rows that the correlation is found from
FUNCTIONS_RIDGE = 0.5


@dataclass(frozen=True)
class Hearing:
    """What became of the answers.

    Attributes
    ----------
    posterior : ndarray, shape (n, l)
        The posterior to be reported; certain where it was decided.
    confusion : ndarray, shape (p, l, l)
        Of every person.
    beta : float
        Trust in the features.
    gain : float
        Nats by which the features predict left-out answers better than the shares of the labels.
    ridge : float or None
        That of the regression on them.
    shared : float
        How much of a further answer repeats the errors of the others.
    trusts : dict
        Inverse temperature of every model's probabilities.
    account : Account or None
        The parts of the scores.
    """

    posterior: Matrix
    confusion: Matrix
    beta: float
    gain: float
    ridge: float | None
    shared: float
    trusts: dict[Any, float] = field(default_factory=dict)
    account: Account | None = None


@dataclass(frozen=True)
class Table:
    """Everything that was said of the rows, and where to start from.

    Attributes
    ----------
    people : Answers
        Of people; the answers of functions are left out.
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
    """

    people: Answers
    functions: Functions | None
    models: Sequence[ModelAnswers]
    votes: Matrix
    total: Matrix
    decided: NDArray[np.intp] | None
    ordered: bool

    def shares(self, doubt: float = DOUBT) -> Matrix:
        """Shares of the votes with so many more spread evenly, (n, l); certain where decided."""
        smoothed = (self.votes + doubt / self.votes.shape[1]) / (self.total + doubt)[:, None]
        return certain(smoothed, self.decided)


def hear(
    answers: Answers,
    regressions: Regressions | None = None,
    *,
    decided: NDArray[np.intp] | None = None,
    ordered: bool = False,
    functions: bool | str = "auto",
    models: Sequence[ModelAnswers] = (),
) -> Hearing:
    """Weigh answers and features.

    Parameters
    ----------
    answers : Answers
        Who said what.
    regressions : Regressions, default=None
        The features; None: the answers alone.
    decided : ndarray of int, shape (n,), default=None
        Class of the rows that are certain, -1 elsewhere.
    ordered : bool, default=False
        Whether the classes are in order, see `confusions`.
    functions : bool or "auto", default="auto"
        Which sources are labelling functions, see `find_functions`.
    models : sequence of ModelAnswers
        Models that gave probabilities.
    """
    said, members = incidence(answers), find_functions(answers, functions)
    votes, total = count_votes(answers)
    for model in models:
        votes, total = votes + model.shares(), total + model.spoke
    table = Table(
        people=answers._take(~members[answers.people]),
        functions=Functions.of(answers, said, members) if members.any() else None,
        models=models,
        votes=votes,
        total=total,
        decided=decided,
        ordered=ordered,
    )
    alone = table.functions is not None and not len(table.people.rows)
    found = (_hear_functions if alone else _hear_people)(table, regressions)
    theta = know_people(answers, said, found.posterior, ordered)[0] if alone else found.confusion
    return replace(found, confusion=theta)


def _hear_people(table: Table, regressions: Regressions | None) -> Hearing:
    """Run eight rounds on the regression of the votes, and one on that of the posterior.

    Functions next to people add their evidence in every round.
    """
    people, said = table.people, incidence(table.people)
    q = table.shares(DOUBT if regressions is None else DOUBT_WITH_FEATURES)
    output, ridge, beta, gain, weights = None, None, 0.0, 0.0, None
    trusts = {model.name: 1.0 for model in table.models}
    if regressions is not None:
        ridge = choose_ridge(regressions, people, q, ordered=table.ordered)
        output = regressions.leave_one_out(q, ridge)
    for step in range(ROUNDS + 1):
        if regressions is not None and ridge is not None and step == ROUNDS:  # more would echo
            output = regressions.leave_one_out(q, ridge)
        theta, rates, told = know_people(people, said, q, table.ordered)
        frequency = class_shares(q)
        prior = np.log(frequency)
        if table.functions is not None:
            weights = table.functions.weights(q, frequency)
            told = told + table.functions.evidence(weights)
        if output is not None or table.models:
            opinions = sample_opinions(people, theta, rates)
        if table.models:
            trusts, told = _weigh_models(table.models, trusts, told, prior, opinions)
        if output is not None:  # the regression has learned how frequent labels are
            beta, gain = find_beta(output, told, opinions, prior)
        looks = prior if output is None else beta * output
        q = certain(softmax(told + looks, axis=1), table.decided)
    alone = output is None
    shared = find_shared_errors(people, q, SHARED_ALONE if alone else SHARED_ERRORS)
    # The features may repeat the errors of a single answer.
    repeats = repeated(table.total if alone else np.maximum(table.total, 2), shared)
    share = credit(people, softmax(told / repeats + prior, axis=1))
    believed = told / repeats
    if share < 1:
        believed = np.log(with_chance(softmax(believed, axis=1), share))
    posterior = softmax(believed + (looks if alone else looks / repeats), axis=1)
    if alone:  # the votes keep a part: the model of the people may be wrong
        posterior = (1 - shared) * posterior + shared * with_chance(table.shares(), share)
    account = _account(table, looks, not alone, theta, rates, weights, trusts)
    posterior = certain(posterior, table.decided)
    return Hearing(posterior, theta, beta, gain, ridge, shared, trusts, account)


def _account(
    table: Table,
    looks: Matrix,
    informed: bool,
    theta: Matrix,
    rates: Matrix,
    weights: Matrix | None,
    trusts: dict[Any, float],
) -> Account:
    """Keep the parts that the scores of the last round were summed from."""
    p, (n, l) = table.people.n_people, table.votes.shape
    members, spoken = np.zeros(p, dtype=bool), np.zeros((p, l))
    if table.functions is not None and weights is not None:
        members[table.functions.members] = True
        spoken[members] = weights
    models = {each.name: each.evidence(trusts[each.name]) for each in table.models}
    looks = np.broadcast_to(looks, (n, l))
    return Account(looks, informed, theta, rates, members, spoken, models)


def with_chance(p: Matrix, share: float) -> Matrix:
    """Mix probabilities with chance, (n, l)."""
    return share * p + (1 - share) / p.shape[1]


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


def _hear_functions(table: Table, regressions: Regressions | None) -> Hearing:
    """Pass twice over labelling functions, without people.

    The words that a function looks for are among the features, so that a regression predicts which
    function speaks. It therefore learns from the vote shares, never from the posterior, and it is
    trusted as far as it agrees with the shares, not as far as it predicts answers. The features
    count as one more answer.
    """
    assert table.functions is not None
    q = shares = table.shares()
    spoken = np.asarray(table.functions.spoke.sum(axis=0)).ravel() > 0
    trusts = {model.name: model.match(shares, spoken) for model in table.models}
    told = sum((m.evidence(trusts[m.name]) for m in table.models), np.zeros_like(q))
    output, ridge, beta, gain = None, None, 0.0, 0.0
    if regressions is not None:
        ridge = FUNCTIONS_RIDGE if FUNCTIONS_RIDGE in regressions.ridges else regressions.ridges[0]
        output = regressions.leave_one_out(shares, ridge)
        beta = scale_of(output, shares)[0]
        better = log_softmax(beta * output, axis=1) - np.log(shares.mean(axis=0))
        gain = float(np.sum(shares * better))
    for _ in range(PASSES):
        frequency = class_shares(q)
        weights, prior = table.functions.weights(q, frequency), np.log(frequency)
        scores, looks = told + table.functions.evidence(weights), prior
        if output is not None:
            looks = beta * output
            scores, prior = looks + scores, np.zeros_like(prior)
        q = certain(softmax(scores + prior, axis=1), table.decided)
    total = table.total + (output is not None)
    posterior = softmax(scores / repeated(total, SHARED_ERRORS) + prior, axis=1)
    nobody = np.empty((0, *2 * q.shape[1:]))
    rates = np.full(table.people.n_people, 0.5)  # nobody named a set
    account = _account(table, looks, output is not None, nobody, rates, weights, trusts)
    posterior = certain(posterior, table.decided)
    return Hearing(posterior, nobody, beta, gain, ridge, SHARED_ERRORS, trusts, account)


def class_shares(q: Matrix) -> Matrix:
    """How frequent labels are, with one more row for each, (l,)."""
    return np.asarray((q.sum(axis=0) + 1) / (len(q) + q.shape[1]))


def certain(posterior: NDArray[Any], decided: NDArray[np.intp] | None) -> NDArray[Any]:
    """Give the rows that were decided their label, and it alone."""
    if decided is None:
        return posterior
    out, rows = posterior.copy(), np.flatnonzero(decided >= 0)
    out[rows] = 0
    out[rows, decided[rows]] = 1
    return out


def repeated(n_answers: Matrix, shared: float) -> Matrix:
    """``1 + s (m - 1)``, (n, 1): by how much m answers to a row say less than independent ones.

    People err together on hard rows.
    """
    return np.asarray(1 + shared * (np.maximum(n_answers, 1) - 1)[:, None])


def find_shared_errors(answers: Answers, q: Matrix, most: float = SHARED_ALONE) -> float:
    """How much of a further answer repeats the errors of the others: ``min(most, 7 rho)``.

    rho is the correlation of the answers to one row beyond what its label explains: counts of row
    i are taken for draws from a Dirichlet-multinomial distribution with the parameters
    ``(1 / rho - 1) Theta_c``, where Theta is the confusion matrix of all people by q and c has
    the posterior frequencies; rho in [.001, .5] is the value under which the counts of the rows
    of five answers or more are likeliest. Rows of fewer answers cannot show it: with fewer than
    50 such rows the result is `most`. At most 5,000 rows are asked, evenly over all.
    """
    votes, total = count_votes(answers)
    rows = np.flatnonzero(total >= _MANY)
    if len(rows) < _ENOUGH or q.shape[1] == 1:
        return most
    rows = rows[:: -(-len(rows) // _ASKED)]
    votes, total, believed = votes[rows], total[rows], q[rows]
    l = q.shape[1]
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
    return min(most, _PER_CORRELATION * rho)


def audit_temperature(posterior: Matrix, truth: NDArray[np.intp]) -> float:
    """Temperature of the posterior of rows that were reviewed at random, (o, l).

    Maximises their likelihood with the prior ``log t ~ N(0, .7^2)``.
    """
    logs = np.log(np.maximum(posterior, EDGE))

    def loss(log_t: float) -> float:
        right = log_softmax(logs / np.exp(log_t), axis=1)[np.arange(len(truth)), truth]
        return float(log_t**2 / (2 * 0.7**2) - right.sum())

    return float(np.exp(minimize_scalar(loss, bounds=(-3, 3), method="bounded").x))


def majority_vote(answers: Any) -> Matrix:
    """Share of the votes that each label of a row has, (n, l); uniform without votes.

    Parameters
    ----------
    answers : Answers or what `as_answers` reads
        What people said of every row.

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
        What people said of every row.
    ordered : bool, default=False
        Whether labels are ordered: errors are then expected near the truth.
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
    return hear(as_answers(answers), ordered=ordered, functions=functions).posterior
