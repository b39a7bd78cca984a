"""Answers and features weighed together, round by round, and the posterior to be reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, logsumexp, softmax

from appellate.candidates import Answers, as_answers
from appellate.confidence import normalize_rows
from appellate.testimony.features import Regressions, choose_ridge, find_beta, least
from appellate.testimony.people import (
    EDGE,
    FEW_PAIRS,
    Matrix,
    Opinions,
    credit,
    incidence,
    know_people,
    sample_opinions,
    vote_shares,
)

ROUNDS, ALIKE = 8, 4  # rounds; after so many it is asked how alike people are
SHARED_ERRORS = (0.0, 0.05, 0.1, 0.2, 0.4)  # of a further answer; the last if nothing objects
_WITNESSED = 20_000  # rows whose features say how far errors are shared
_GAIN = 5.0  # nats by which features must predict the answers better, to be heard at all
_CAMPS = 5  # answers to a row from which on two camps can be seen


@dataclass(frozen=True)
class Hearing:
    """What became of the answers.

    Attributes
    ----------
    posterior : ndarray, shape (n, l)
        The posterior to be reported, see `reported_posterior`; certain where it was decided.
    confusion : ndarray, shape (p, l, l)
        Of every person.
    beta : float
        Trust in the features.
    ridge : float or None
        That of the regression on them.
    shared : float
        How much of a further answer repeats the errors of the others.
    """

    posterior: Matrix
    confusion: Matrix
    beta: float
    ridge: float | None
    shared: float


def hear(
    answers: Answers,
    regressions: Regressions | None = None,
    *,
    decided: NDArray[np.intp] | None = None,
    ordered: bool = False,
) -> Hearing:
    """Weigh answers and features: eight rounds on the regression of the votes, one on that of q.

    Features that do not predict the answers, by five nats in the first round, are not heard.

    Parameters
    ----------
    answers : Answers
        Who said what.
    regressions : Regressions, default=None
        The features; None: the crowd alone.
    decided : ndarray of int, shape (n,), default=None
        Class of the rows that are certain, -1 elsewhere.
    ordered : bool, default=False
        Whether the classes are in order, see `confusions`.
    """
    said = incidence(answers)
    shares, n_answers = vote_shares(answers)
    q = certain(shares, decided)
    output, ridge, beta = None, None, 0.0
    if regressions is not None:
        ridge = choose_ridge(regressions, answers, q, ordered=ordered)
        output = regressions.leave_one_out(q, ridge)
    for step in range(ROUNDS + 1):
        if regressions is not None and output is not None and step == ROUNDS:  # more echo
            output = regressions.leave_one_out(q, cast(float, ridge))
        theta, rates, L = know_people(answers, said, q, ordered, alike=step >= ALIKE)
        # How frequent labels are, with one more row for each.
        scores, prior = L, np.log((q.sum(axis=0) + 1) / (len(q) + q.shape[1]))
        if output is not None:
            beta, gain = find_beta(output, L, sample_opinions(answers, theta, rates), prior)
            if step == 0 and gain < _GAIN:
                output, beta = None, 0.0
            else:  # the regression has learned how frequent labels are
                scores, prior = beta * output + L, np.zeros_like(prior)
        q = certain(softmax(scores + prior, axis=1), decided)
    if output is not None:
        shared = find_shared_errors(output, L, n_answers)
    else:
        shared = shared_by_answers(L, n_answers, sample_opinions(answers, theta, rates))
    posterior = reported_posterior(scores, n_answers, shared, prior)
    share = credit(answers, posterior)
    posterior = share * posterior + (1 - share) / posterior.shape[1]
    return Hearing(certain(posterior, decided), theta, beta, ridge, shared)


def certain(posterior: NDArray[Any], decided: NDArray[np.intp] | None) -> NDArray[Any]:
    """Give the rows that were decided their label, and it alone."""
    if decided is None:
        return posterior
    out, rows = posterior.copy(), np.flatnonzero(decided >= 0)
    out[rows] = 0
    out[rows, decided[rows]] = 1
    return out


def reported_posterior(
    scores: Matrix, n_answers: Matrix, shared: float, prior: Any = 0.0
) -> Matrix:
    """``softmax(scores / (1 + s (m - 1)) + prior)``: people err together on hard rows, (n, l)."""
    return np.asarray(softmax(scores / _repeated(n_answers, shared) + prior, axis=1))


def _repeated(n_answers: Matrix, shared: float) -> Matrix:
    return 1 + shared * (np.maximum(n_answers, 1) - 1)[:, None]


def find_shared_errors(output: Matrix, L: Matrix, n_answers: Matrix) -> float:
    """How much of a further answer repeats the errors of the others, by the features.

    Few answers cannot tell: errors that people share look like truth. The features are a witness
    who did not hear them. With ``q = softmax(L / (1 + s (m - 1)))`` by the answers alone and
    ``p = softmax(b f)`` by the features alone, both are explained by

        mean over rows of log(.999 sum_c q[i, c] p[i, c] / mean p[., c] + .001)

    b being the best for each s. The result is the largest s, of 0, .05, .1, .2 and .4, that is not
    worse than the best by more than three standard errors: .4 unless features object.
    """
    step = -(-len(output) // _WITNESSED)
    f, L, n_answers = output[::step], L[::step], n_answers[::step]

    def explained(shared: float) -> Matrix:
        q = softmax(L / _repeated(n_answers, shared), axis=1)

        def rows(log_b: float) -> Matrix:
            p = softmax(np.exp(log_b) * f, axis=1)
            return np.asarray(np.log(0.999 * np.sum(q * p / (p.mean(axis=0) + 1e-4), 1) + 0.001))

        return rows(least(lambda log_b: -rows(log_b).mean()).x)

    return _largest_shared(explained)


def shared_by_answers(L: Matrix, n_answers: Matrix, opinions: Opinions) -> float:
    """How much of a further answer repeats the errors of the others, by the answers alone.

    Where people err together the answers to a row fall into two camps, and each answer is then
    foretold too surely by the others. Rows of fewer than five answers have no two camps: there
    shared errors look like truth. In all others every answer is predicted from the rest,
    ``softmax(L / (1 + s (m - 2)))`` without its own share in L; the result is the largest s that
    is not worse than the best by more than three standard errors, as in `find_shared_errors`; .4
    with fewer than 50 such rows.
    """
    heard = n_answers[opinions.rows] >= _CAMPS
    names, place = np.unique(opinions.rows[heard], return_inverse=True)
    if len(names) < FEW_PAIRS:
        return SHARED_ERRORS[-1]
    rows, weights = opinions.rows[heard], opinions.weights[heard]
    evidence = opinions.evidence[heard]
    others = L[rows] - np.minimum(weights, 1.0)[:, None] * evidence

    def explained(shared: float) -> Matrix:
        believed = log_softmax(others / _repeated(n_answers[rows] - 1, shared), axis=1)
        each = weights * logsumexp(believed + evidence, axis=1)
        return np.bincount(place, each).astype(np.float64)

    return _largest_shared(explained)


def _largest_shared(explained: Callable[[float], Matrix]) -> float:
    """The largest of `SHARED_ERRORS` that explains rows as well as the best does, nearly."""
    found = {shared: explained(shared) for shared in SHARED_ERRORS}
    most = max(found.values(), key=np.mean)
    error = {shared: (most - rows).std() / np.sqrt(len(rows)) for shared, rows in found.items()}
    return max(s for s, rows in found.items() if (most - rows).mean() <= 3 * error[s])


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


def crowd_posterior(answers: Any, *, ordered: bool = False) -> Matrix:
    """Posterior of the crowd alone, without features, (n, l): Dawid and Skene with shrinkage.

    Parameters
    ----------
    answers : Answers or what `as_answers` reads
        What people said of every row.
    ordered : bool, default=False
        Whether labels are ordered: errors are then expected near the truth.

    Returns
    -------
    ndarray of shape (n, l)
        Rows sum to one.

    Examples
    --------
    >>> crowd_posterior([["cat", "cat", "dog"], ["dog", "dog", None]]).argmax(axis=1)
    array([0, 1])
    """
    return hear(as_answers(answers), ordered=ordered).posterior
