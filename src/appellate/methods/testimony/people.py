"""Answers of annotators: how often each of them is correct, and what their answers say then."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import beta as beta_distribution

from appellate.candidates import Answers

Matrix = NDArray[np.float64]

SHRINKAGE = 4.0  # answers that the mean of all annotators weighs next to one's own
EDGE = 1e-6  # probabilities are kept so far from 0 and 1
INSIDE = (EDGE, 1 - EDGE)
_SAMPLE = 50_000  # opinions that beta is found from


def counted(answers: Answers) -> tuple[Matrix, NDArray[Any]]:
    """How often every answer was given, and among how many labels it was named, (A,) both."""
    once = np.ones(len(answers.rows))
    weights = once if answers.weights is None else answers.weights
    return weights, once if answers.sizes is None else answers.sizes


def count_votes(answers: Answers) -> tuple[Matrix, Matrix]:
    """Votes for every label of every row, (n, l), and their number, (n,).

    A set that an annotator named counts once, not each of its labels.
    """
    weights, sizes = counted(answers)
    votes = replace(answers, weights=weights / sizes).votes()
    return votes, votes.sum(axis=1)


def incidence(answers: Answers) -> sp.csr_array:
    """Sparse matrix, (n, p l): the weight of answer k of annotator j to row i at (i, j l + k).

    Only answers that are one label; sets have `set_rates`. Products of it pass over the rows, so
    that large posteriors are read in order.
    """
    n, l = answers.shape
    weights, sizes = counted(answers)
    weights = np.where(sizes == 1, weights, 0.0)
    places = answers.people.astype(np.int64) * l + answers.labels
    shape = (n, answers.n_people * l)
    return sp.csr_array(sp.coo_array((weights, (answers.rows, places)), shape=shape))


@dataclass(frozen=True)
class Expectation:
    """How much annotators are expected to differ, before their own answers are looked at.

    Attributes
    ----------
    alike_errors : bool
        Whether all wrong labels are equally likely and all labels equally hard; with ordered
        labels, whether errors depend on the distance only. If False, the confusions of all
        annotators together are expected.
    strength : float
        Answers per label that the expectation weighs next to an annotator's own. Infinity: an
        annotator has an accuracy, and no confusions of their own.
    """

    alike_errors: bool = False
    strength: float = 1.0


OWN_CONFUSIONS = Expectation()


@dataclass(frozen=True)
class Annotators:
    """What is known of all annotators by a posterior, and what their answers say then.

    Attributes
    ----------
    confusion : ndarray, shape (p, l, l)
        ``Theta[j, c, k] = P_j(answer k | label c)``.
    rates : ndarray, shape (p,)
        How often the set that an annotator names holds the true label.
    evidence : ndarray, shape (n, l)
        Log-likelihood of every row's answers.
    """

    confusion: Matrix
    rates: Matrix
    evidence: Matrix


def estimate_annotators(
    answers: Answers,
    counts: sp.csr_array,
    posterior: Matrix,
    ordered: bool = False,
    expectation: Expectation = OWN_CONFUSIONS,
) -> Annotators:
    """Estimate confusions and rates of all annotators by the posterior q.

    `counts` is the `incidence` of the answers. With ``N_j[c, k]``, the sum of q[i, c] over
    annotator j's answers k, and the strength s of the expected confusions M_j::

        Theta_j[c, k] = P_j(answer k | label c) = (N_j + s l M_j) / (row sum + s l)

    It is M_j if s is infinite.
    """
    l = posterior.shape[1]
    N = np.asarray(counts.T @ posterior).reshape(-1, l, l).transpose(0, 2, 1)
    theta = expected_confusions(N, ordered=ordered, alike_errors=expectation.alike_errors)
    if np.isfinite(expectation.strength):
        weight = expectation.strength * l
        theta = (N + weight * theta) / (N.sum(axis=2, keepdims=True) + weight)
    rates = np.full(len(N), EDGE)
    if answers.sizes is not None:
        rates = set_rates(answers, posterior)
    return Annotators(theta, rates, log_likelihoods(answers, counts, theta, rates))


def expected_confusions(N: Matrix, *, ordered: bool = False, alike_errors: bool = False) -> Matrix:
    """What is expected of every annotator before their own answers are looked at, (p, l, l).

    With the accuracy of all, ``acc = trace(sum_j N_j) / total``, and U with acc on the diagonal,
    (1 - acc) / (l - 1) off it::

        P         = (sum_j N_j + l U) / (row sum + l)           all annotators as one
        r_j       = (trace N_j + 4 acc) / (n_j + 4)             ability of j
        M_j[c, c] = sigmoid(logit P[c, c] + logit r_j - logit acc)
        M_j[c, k] = (1 - M_j[c, c]) P[c, k] / (1 - P[c, c])

    With `alike_errors`, ``P = U``, so that ``M_j[c, c] = r_j``. With `ordered`, U spreads errors
    as far along the order of the labels as all annotators do, whatever the true label:
    ``U[c, k]`` is the share of answers that are ``k - c`` off.
    """
    l = N.shape[1]
    if l == 1:
        return np.ones_like(N)
    pooled = N.sum(axis=0)
    accuracy = np.clip(np.trace(pooled) / max(pooled.sum(), EDGE), *INSIDE)
    if ordered:
        distance = np.arange(l) - np.arange(l)[:, None] + l - 1  # k - c, from 0 on
        pairs = np.bincount(distance.ravel())  # of labels that are so far apart
        spread = ((np.bincount(distance.ravel(), pooled.ravel()) + 1 / l) / pairs)[distance]
        spread /= spread.sum(axis=1, keepdims=True)
    else:
        spread = np.full((l, l), (1 - accuracy) / (l - 1))
        np.fill_diagonal(spread, accuracy)
    P = spread
    if not alike_errors:
        P = (pooled + l * spread) / (pooled.sum(axis=1, keepdims=True) + l)
    ability = (np.einsum("jcc->j", N) + SHRINKAGE * accuracy) / (N.sum(axis=(1, 2)) + SHRINKAGE)
    ability = logit(np.clip(ability, *INSIDE))[:, None] - logit(accuracy)
    correct = expit(logit(np.clip(np.diag(P), *INSIDE)) + ability)  # [j, c]
    wrong = P * (1 - np.eye(l))
    wrong /= wrong.sum(axis=1, keepdims=True)
    expected = (1 - correct)[:, :, None] * wrong
    expected[:, np.arange(l), np.arange(l)] = correct
    return np.asarray(expected)


def set_rates(answers: Answers, posterior: Matrix) -> Matrix:
    """How often the set that an annotator names holds the true label, (p,).

    The posterior mass on j's sets, shrunk by 4 sets towards the mean over annotators.
    """
    sizes = counted(answers)[1]
    several = sizes > 1
    who, size = answers.people[several], sizes[several]
    held = posterior[answers.rows[several], answers.labels[several]]
    mass = np.bincount(who, held, minlength=answers.n_people)
    count = np.bincount(who, 1 / size, minlength=answers.n_people)
    mean = mass.sum() / max(count.sum(), EDGE)
    return np.clip((mass + SHRINKAGE * mean) / (count + SHRINKAGE), *INSIDE)


def log_likelihoods(
    answers: Answers, counts: sp.csr_array, theta: Matrix, rates: Matrix
) -> Matrix:
    """Log-likelihood of every row's answers for every label, (n, l), up to a constant per row.

    ``L[i, c] = sum over j of log Theta_j[c, a_ij]``; a set A of size s that annotator j named adds
    ``log(h_j / s)`` to the labels in it and ``log((1 - h_j) / (l - s))`` to the others.
    """
    l = theta.shape[1]
    table = np.log(theta).transpose(0, 2, 1).reshape(-1, l)  # [(j, k), c]
    L = np.asarray(counts @ table)
    if answers.sizes is not None:
        gains = _set_gains(answers, rates, l) * counted(answers)[0]
        np.add.at(L, (answers.rows, answers.labels), gains)
    return L


def _set_gains(answers: Answers, rates: Matrix, l: int) -> Matrix:
    """What a label gains by being in a set of size s, ``log(h / s) - log((1 - h)/(l - s))``.

    (A,): 0 for answers that are one label, and for sets of all labels.
    """
    size, rate = counted(answers)[1], rates[answers.people]
    some = (size > 1) & (size < l)
    gain = np.log(rate / size) - np.log((1 - rate) / np.maximum(l - size, 1))
    return np.where(some, gain, 0.0)


@dataclass(frozen=True)
class Opinions:
    """A sample of opinions, each with the log-likelihood of the row's label under it alone.

    Attributes
    ----------
    rows : ndarray of int, shape (o,)
        The row of every opinion.
    weights : ndarray, shape (o,)
        How often it was given.
    evidence : ndarray, shape (o, l)
        ``log P(opinion | label c)``.
    """

    rows: NDArray[np.int32]
    weights: Matrix
    evidence: Matrix

    @cached_property
    def without(self) -> Matrix:
        """What takes an opinion out of the likelihood of its row, ``P(opinion | c)^-w``, (o, l).

        w is the weight, at most 1.
        """
        return np.exp(-np.minimum(self.weights, 1.0)[:, None] * self.evidence)

    @cached_property
    def once(self) -> Matrix:
        """What takes it out and counts it once, ``P(opinion | c)^(1 - w)``, (o, l)."""
        return np.exp(self.evidence) * self.without

    def __getitem__(self, kept: NDArray[np.bool_]) -> Opinions:
        """Return some of the opinions."""
        return Opinions(self.rows[kept], self.weights[kept], self.evidence[kept])


def number_opinions(answers: Answers) -> NDArray[np.intp]:
    """Number of the opinion that every answer belongs to, (A,): a named set is one opinion.

    The labels of a set follow one another; an unknown annotator may have several sets of
    one row.
    """
    sizes = np.asarray(counted(answers)[1], dtype=np.intp)
    entry = np.arange(len(sizes))
    new_run = np.ones(len(sizes), dtype=bool)
    for column in (answers.rows, answers.people, sizes):
        new_run[1:] &= column[1:] == column[:-1]
    new_run[1:] = ~new_run[1:]
    place = entry - np.maximum.accumulate(np.where(new_run, entry, 0))
    return np.cumsum(place % sizes == 0) - 1


def sample_opinions(answers: Answers, theta: Matrix, rates: Matrix) -> Opinions:
    """Take at most 50,000 opinions, evenly over all."""
    number = number_opinions(answers)
    step = max(1, -(-(int(number[-1]) + 1) // _SAMPLE)) if len(number) else 1
    entries = np.flatnonzero(number % step == 0)
    part, l = answers._take(entries), theta.shape[1]
    weights, sizes = counted(part)
    place, first = np.unique(number[entries], return_index=True)
    evidence = np.log(theta[part.people[first], :, part.labels[first]])
    if part.sizes is not None:
        rate, size = rates[part.people[first]], sizes[first]
        others = np.log((1 - rate) / np.maximum(l - size, 1))
        evidence[size > 1] = np.where(size < l, others, 0.0)[size > 1, None]
        several = np.flatnonzero(sizes > 1)
        opinion = np.searchsorted(place, number[entries][several])
        evidence[opinion, part.labels[several]] += _set_gains(part, rates, l)[several]
    return Opinions(part.rows[first], weights[first], evidence)


def describe_people(answers: Answers, posterior: Matrix, confusion: Matrix) -> dict[str, Any]:
    """How many answers each annotator gave, how many of them are correct, how many are common.

    Accuracy is the posterior mass on the annotator's answers, shrunk by 4 answers towards that
    of all annotators; the interval is that of these counts.
    """
    p, who = answers.n_people, answers.people
    weights, sizes = counted(answers)
    once = weights / sizes
    count = np.bincount(who, once, minlength=p)
    correct = np.bincount(who, weights * posterior[answers.rows, answers.labels], minlength=p)
    votes = answers.votes()
    common = (votes == votes.max(axis=1, keepdims=True))[answers.rows, answers.labels]
    mean = np.clip(correct.sum() / max(count.sum(), EDGE), *INSIDE)
    hits = correct + SHRINKAGE * mean
    low, high = share_interval(hits, count + SHRINKAGE)
    named = answers.person_names
    return {
        "person": np.array(["everyone"]) if named is None else named,
        "answers": count,
        "accuracy": hits / (count + SHRINKAGE),
        "low": low,
        "high": high,
        "agreement": np.bincount(who, once * common, minlength=p) / np.maximum(count, EDGE),
        "confusion": confusion,
    }


def share_interval(correct: Any, total: Any) -> Any:
    """95 % interval of a share (Jeffreys): low and high."""
    a, b = correct + 0.5, total - correct + 0.5
    return [beta_distribution.ppf(x, a, b) for x in (0.025, 0.975)]
