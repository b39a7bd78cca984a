"""What was said of a row, as likelihoods, and what it proves about a classifier.

A row's label has the posterior ``honest * evidence``: what classifiers that did not see the
row's label say of it, times how likely that which was observed is if the label were true.
Evidence comes in kinds that multiply: candidate sets, weights of candidates, decisions, and
any (n, l) matrix of log-likelihoods, such as that of people's answers.

How candidate sets arise is one number, the *ambiguity* tau. Label-first (0): a label was drawn,
and others joined it. Set-first (1): a set was there, and one of it is this row's (faces and a
caption). A classifier knows that some labels are frequent, pi; a set that came first contains
that already, so that

    P(y = j | x, S)  ~  1[j in S] p_j(x) / pi_j^tau

All of tau, temperatures and weights is found without the truth, by the criterion of this page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numba as nb
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar

from appellate.numerics.entries import CandidateEntries, Values

__all__ = [
    "Evidence",
    "Groups",
    "Scale",
    "above_chance",
    "choose_round",
    "criterion",
    "estep",
    "fit_scale",
    "fit_temperature",
    "mixture_weights",
    "row_criterion",
    "set_odds",
    "soften",
    "suspicion",
]

_RARE = 1e-4  # added to every label's share, so that none is zero
_OUTSIDE = 0.001, 0.05, 0.5  # least, first and largest rate of truths outside their set
_OUTSIDE_STEPS = 30
_ESTEPS = 30
_COVERING_STEPS = 30
_WEIGHT_STEPS = 200
_TEMPERATURES = 0.01, 10.0
_REGAINED = 0.5  # of what shrinkage takes from rare labels, where a label came first
_SHIFT_STEPS, _SHIFT_STILL = 20, 0.01
_ENOUGH = 0.95  # of the best criterion, for a later round


@dataclass(frozen=True, eq=False)
class Evidence:
    """Likelihood of what was observed of every row, at the labels that it leaves possible.

    Attributes
    ----------
    entries : CandidateEntries
        The labels that each of n rows may have, among l.
    likelihood : ndarray, shape (nnz,)
        Of what was observed if the label of the entry were true; the largest of a row is 1.

    Examples
    --------
    >>> import numpy as np
    >>> sets = Evidence.of_sets(np.array([[True, True, False], [False, True, True]]))
    >>> weighted = sets.times(np.log([[3.0, 1.0, 1.0], [1.0, 1.0, 4.0]]))
    >>> weighted.entries.scatter(weighted.likelihood).round(2)
    array([[1.  , 0.33, 0.  ],
           [0.  , 0.25, 1.  ]])
    """

    entries: CandidateEntries
    likelihood: Values

    @classmethod
    def of_sets(cls, candidates: NDArray[np.bool_]) -> Self:
        """Candidate sets, (n, l): all that a set says is 1 inside and 0 outside."""
        entries = CandidateEntries(np.asarray(candidates, dtype=bool))
        return cls(entries, np.ones(len(entries)))

    @classmethod
    def of_logs(cls, logs: ArrayLike) -> Self:
        """(n, l) log-likelihoods; minus infinity rules a label out.

        Raises
        ------
        ValueError
            If a row has no possible label, or an entry is NaN or plus infinity.
        """
        matrix = np.asarray(logs, dtype=np.float64)
        wrong = np.isnan(matrix).any(axis=1) | np.isposinf(matrix).any(axis=1)
        wrong |= np.isneginf(matrix).all(axis=1)
        if wrong.any():
            raise ValueError(
                f"row {np.flatnonzero(wrong)[0]}: evidence must leave a label possible: "
                "log-likelihoods below infinity, not all of them minus infinity."
            )
        entries = CandidateEntries(~np.isneginf(matrix))
        values = entries.gather(matrix)
        return cls(entries, np.exp(values - entries.spread(entries.row_max(values))))

    @property
    def shape(self) -> tuple[int, int]:
        """``(n, l)``."""
        return self.entries.shape

    @cached_property
    def prior(self) -> Values:
        """Posterior of a classifier that knows nothing: the likelihood, normalised."""
        return self.normalize(np.ones(len(self.entries)))

    def logs(self) -> NDArray[np.float64]:
        """Return (n, l) log-likelihoods, minus infinity where a label is ruled out."""
        matrix = np.full(self.shape, -np.inf)
        with np.errstate(divide="ignore"):
            matrix[self.entries.rows, self.entries.labels] = np.log(self.likelihood)
        return matrix

    def times(self, logs: ArrayLike) -> Evidence:
        """Return this and further evidence, (n, l) log-likelihoods: kinds multiply."""
        matrix = np.asarray(logs, dtype=np.float64)
        if matrix.shape != self.shape:
            raise ValueError(
                f"evidence has shape {matrix.shape}; it needs one log-likelihood for every row "
                f"and class: {self.shape}."
            )
        return Evidence.of_logs(self.logs() + matrix)

    def take(self, rows: NDArray[Any]) -> Evidence:
        """Return the evidence of some rows."""
        possible = self.entries.scatter(np.ones(len(self.entries), dtype=bool))
        entries = CandidateEntries(possible[rows])
        return Evidence(entries, entries.gather(self.entries.scatter(self.likelihood)[rows]))

    def normalize(self, values: Values) -> Values:
        """``rownorm(likelihood * values)``; by the likelihood alone where that is zero."""
        out = np.empty(len(self.entries))
        _normalize(values, self.likelihood, self.entries.indptr, out)
        return out


@nb.njit(cache=True)
def _normalize(values, likelihood, indptr, out):  # type: ignore[no-untyped-def]
    for i in range(indptr.size - 1):
        total, plain = 0.0, 0.0
        for e in range(indptr[i], indptr[i + 1]):
            out[e] = likelihood[e] * values[e]
            total += out[e]
            plain += likelihood[e]
        for e in range(indptr[i], indptr[i + 1]):
            out[e] = out[e] / total if total > 0 else likelihood[e] / plain


def soften(scores: NDArray[Any], temperature: float) -> NDArray[np.float64]:
    """``softmax(scores / temperature)`` over the last axis.

    Parameters
    ----------
    scores : ndarray
        Any numbers.
    temperature : float
        The larger, the flatter.

    Returns
    -------
    ndarray of the same shape

    Examples
    --------
    >>> import numpy as np
    >>> soften(np.array([[1.0, 0.0]]), 0.5).round(3)
    array([[0.881, 0.119]])
    """
    out = np.asarray(scores - scores.max(axis=-1, keepdims=True), dtype=np.float64)
    out /= temperature
    np.exp(out, out=out)
    out /= out.sum(axis=-1, keepdims=True)
    return out


def label_shares(probabilities: NDArray[Any]) -> NDArray[np.float64]:
    """pi, (l,): the column means, plus 1e-4, summing to one."""
    shares = probabilities.mean(axis=0) + _RARE
    return np.asarray(shares / shares.sum())


def set_odds(probabilities: NDArray[Any], evidence: Evidence, tau: float) -> Values:
    """How much likelier a row's features are given its set than at large.

    ``L_i = sum_{j in S_i} p_ij pi_j^-tau / sum_{k in S_i} pi_k^(1 - tau)``, which is
    ``p(x_i | S_i) / p(x_i)``; each candidate counts by its likelihood. A classifier that knows
    nothing, ``p_i = pi``, has odds 1.

    Parameters
    ----------
    probabilities : ndarray, shape (n, l)
        Honest ones: of classifiers that saw neither the row nor its set.
    evidence : Evidence
        Of the same rows.
    tau : float
        Ambiguity, from 0 (label-first) to 1 (set-first).

    Examples
    --------
    >>> import numpy as np
    >>> evidence = Evidence.of_sets(np.array([[True, False], [True, False]]))
    >>> set_odds(np.array([[0.9, 0.1], [0.1, 0.9]]), evidence, 0.0).round(2)
    array([1.8, 0.2])
    """
    shares = label_shares(probabilities)
    labels = evidence.entries.labels
    weights = evidence.likelihood * (shares**-tau)[labels]
    inside = evidence.entries.row_sum(weights * evidence.entries.gather(probabilities))
    return inside / evidence.entries.row_sum(weights * shares[labels])


def criterion(probabilities: NDArray[Any], evidence: Evidence, tau: float) -> float:
    """How much honest probabilities prove about the sets; 0 if nothing.

    ``B = mean_i log((1 - e) L_i + e)`` with the odds of `set_odds`; e, the rate at which the
    truth lies outside the set, is found by 30 steps of expectation-maximisation within
    [.001, .5]. It conditions on the sets, so that values of tau can be compared.

    Parameters
    ----------
    probabilities : ndarray of shape (n, l)
        Honest ones: of classifiers that did not see the row's label.
    evidence : Evidence
        What was observed of the rows.
    tau : float
        Ambiguity: 0 for label-first, 1 for set-first.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> evidence = Evidence.of_sets(np.array([[True, False], [False, True]]))
    >>> round(criterion(np.array([[0.9, 0.1], [0.2, 0.8]]), evidence, 0.0), 3)
    0.534
    >>> round(criterion(np.full((2, 2), 0.5), evidence, 0.0), 3)
    0.0
    """
    return float(row_criterion(probabilities, evidence, tau).mean())


def row_criterion(probabilities: NDArray[Any], evidence: Evidence, tau: float) -> Values:
    """Every row's part of the criterion, ``log((1 - e) L_i + e)``, (n,).

    Parameters
    ----------
    probabilities : ndarray of shape (n, l)
        Honest ones: of classifiers that did not see the row's label.
    evidence : Evidence
        What was observed of the rows.
    tau : float
        Ambiguity: 0 for label-first, 1 for set-first.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> evidence = Evidence.of_sets(np.array([[True, False], [False, True]]))
    >>> row_criterion(np.array([[0.9, 0.1], [0.2, 0.8]]), evidence, 0.0).round(2)
    array([0.49, 0.57])
    """
    odds = set_odds(probabilities, evidence, tau)
    outside = _outside_rate(odds)
    return np.log((1 - outside) * odds + outside)


def above_chance(rows: Values, errors: float) -> bool:
    """Whether a mean over rows is more than so many of its standard errors above 0.

    Parameters
    ----------
    rows : ndarray of shape (n,)
        A number a row, such as `row_criterion`.
    errors : float
        Standard errors that count as proof.

    Returns
    -------
    bool

    Examples
    --------
    >>> import numpy as np
    >>> above_chance(np.array([1.0, 2.0, 1.5]), 2), above_chance(np.array([1.0, -2.0, 1.5]), 2)
    (True, False)
    """
    return bool(rows.mean() > max(errors * rows.std() / np.sqrt(len(rows)), 1e-9))


@nb.njit(cache=True)
def _outside_rate(odds):  # type: ignore[no-untyped-def]
    least, rate, largest = _OUTSIDE
    for _ in range(_OUTSIDE_STEPS):
        total = 0.0
        for odd in odds:
            total += rate / ((1 - rate) * odd + rate)
        rate = min(max(total / odds.size, least), largest)
    return rate


def estep(
    probabilities: NDArray[Any],
    evidence: Evidence,
    tau: float,
    *,
    groups: Groups | None = None,
    steps: int = _ESTEPS,
) -> Values:
    """Posterior of the labels, as candidate entries.

    ``Q = rownorm(evidence * P)`` and ``pi = mean of Q + .01 / l``; if tau > 0 then 30 times
    ``Q = rownorm(evidence * P * pi^-tau)``, ``pi <- sqrt(pi (mean of Q + .01 / l))``. The square
    root damps an oscillation.

    Parameters
    ----------
    probabilities : ndarray, shape (n, l) or (nnz,)
        Honest probabilities, all or at the candidates.
    evidence : Evidence
        Of the same rows.
    tau : float
        Ambiguity.
    groups : Groups, default=None
        Groups of rows among which every label of their set occurs.
    steps : int, default=30
        Steps.

    Returns
    -------
    ndarray, shape (nnz,)
        Rows sum to one.

    Examples
    --------
    >>> import numpy as np
    >>> evidence = Evidence.of_sets(np.ones((2, 2), dtype=bool))
    >>> P = np.array([[0.9, 0.1], [0.6, 0.4]])
    >>> evidence.entries.scatter(estep(P, evidence, 0.0)).argmax(axis=1)
    array([0, 0])
    >>> evidence.entries.scatter(estep(P, evidence, 1.0)).argmax(axis=1)
    array([0, 1])
    """
    entries = evidence.entries
    values = entries.gather(probabilities) if probabilities.ndim == 2 else probabilities
    posterior = evidence.normalize(values.astype(np.float64))
    if tau > 0:
        args = entries.labels, entries.indptr, evidence.shape[1], float(tau), steps
        posterior = _estep(posterior, evidence.prior, *args)
    return posterior if groups is None else groups.cover(posterior)


@nb.njit(cache=True)
def _estep(start, prior, labels, indptr, n_labels, tau, steps):  # type: ignore[no-untyped-def]
    n, out = indptr.size - 1, start.copy()
    shares = np.zeros(n_labels)
    for e in range(labels.size):
        shares[labels[e]] += start[e] / n
    shares += 0.01 / n_labels
    for _ in range(steps):
        factors, fresh = shares**-tau, np.zeros(n_labels)
        for i in range(n):
            total = 0.0
            for e in range(indptr[i], indptr[i + 1]):
                out[e] = start[e] * factors[labels[e]]
                total += out[e]
            for e in range(indptr[i], indptr[i + 1]):
                out[e] = out[e] / total if total > 0 else prior[e]
                fresh[labels[e]] += out[e] / n
        shares = np.sqrt(shares * (fresh + 0.01 / n_labels))
    return out


def fit_temperature(
    scores: NDArray[Any],
    evidence: Evidence,
    tau: float,
    bounds: tuple[float, float] = _TEMPERATURES,
) -> float:
    """Temperature at which ``softmax(scores / T)`` has the largest criterion.

    Bounded search over log T to one per cent. Honest scores that say nothing get a large
    temperature.

    Parameters
    ----------
    scores : ndarray of shape (n, l)
        Honest scores.
    evidence : Evidence
        What was observed of the rows.
    tau : float
        Ambiguity: 0 for label-first, 1 for set-first.
    bounds : tuple of float, default=(0.01, 10.0)
        Smallest and largest temperature.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> evidence = Evidence.of_sets(np.array([[True, False], [False, True], [False, True]]))
    >>> scores = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    >>> 0.2 < fit_temperature(scores, evidence, 0.0) < 1.0
    True
    """
    found = minimize_scalar(
        lambda log: -criterion(soften(scores, np.exp(log)), evidence, tau),
        bounds=np.log(bounds),
        method="bounded",
        options={"xatol": 0.01},
    )
    return float(np.exp(found.x))


@dataclass(frozen=True, eq=False)
class Scale:
    """What makes probabilities of a member's scores, ``softmax((scores + shift) / temperature)``.

    Attributes
    ----------
    temperature : float
        The larger, the flatter.
    shift : ndarray of shape (l,) or float
        What every label's score is raised by.

    Examples
    --------
    >>> import numpy as np
    >>> Scale(0.5, np.array([0.0, 1.0])).soften(np.array([[1.0, 0.0]])).round(2)
    array([[0.5, 0.5]])
    """

    temperature: float
    shift: Any = 0.0

    def soften(self, scores: NDArray[Any]) -> NDArray[np.float64]:
        """Probabilities, of the shape of the scores."""
        return soften(scores + self.shift, self.temperature)


def fit_scale(
    scores: NDArray[Any],
    evidence: Evidence,
    tau: float,
    shares: NDArray[np.float64],
    bounds: tuple[float, float] = _TEMPERATURES,
) -> Scale:
    """Temperature and shift of a member: as in `fit_temperature`, and rare labels made good.

    A regression is shrunk to the mean and so gives rare labels less than their share of what it
    learned from; where every round learns from the one before they fade away, and labels take
    over their look-alikes. The shift that gives the mean probabilities these shares is
    ``T b`` with ``b <- b + log(shares / mean softmax(scores / T + b))``; ``(1 - tau) / 2`` of it
    is taken. Sets that came first need none: dividing by the labels' frequency does the same.

    Parameters
    ----------
    scores : ndarray of shape (n, l)
        Honest scores.
    evidence : Evidence
        What was observed of the rows.
    tau : float
        Ambiguity: 0 for label-first, 1 for set-first.
    shares : ndarray of shape (l,)
        Share of every label in what the member learned from.
    bounds : tuple of float, default=(0.01, 10.0)
        Smallest and largest temperature.

    Returns
    -------
    Scale

    Examples
    --------
    >>> import numpy as np
    >>> evidence = Evidence.of_sets(np.array([[True, False], [False, True], [False, True]]))
    >>> scores = np.array([[0.6, 0.4], [0.2, 0.8], [0.1, 0.9]])
    >>> shares = np.array([0.6, 0.4])
    >>> scale = fit_scale(scores, evidence, 0.0, shares)
    >>> plain = soften(scores, scale.temperature).mean(axis=0)
    >>> bool(plain[0] < scale.soften(scores).mean(axis=0)[0] < shares[0])
    True
    """
    temperature = fit_temperature(scores, evidence, tau, bounds)
    wanted, shift = shares + _RARE, np.zeros(len(shares))
    for _ in range(_SHIFT_STEPS if tau < 1 else 0):
        means = soften(scores + temperature * shift, temperature).mean(axis=0)
        step = np.log(wanted / (means + _RARE))
        shift += step - step.mean()
        if np.ptp(step) < _SHIFT_STILL:
            break
    return Scale(temperature, (1 - tau) * _REGAINED * temperature * shift)


def mixture_weights(odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights of members whose odds explain the rows best.

    ``argmax over w on the simplex of mean_i log(sum_m w_m L_im + w_0)``, a concave problem, by
    200 steps of expectation-maximisation from equal weights. Member 0 knows nothing (odds 1)
    and is dropped afterwards.

    Parameters
    ----------
    odds : ndarray, shape (n, M)
        `set_odds` of every member.

    Returns
    -------
    ndarray, shape (M,)
        Weights that sum to one.

    Examples
    --------
    >>> import numpy as np
    >>> mixture_weights(np.array([[2.0, 0.5], [2.0, 0.5], [1.5, 1.6]])).round(2)
    array([1., 0.])
    """
    members = np.column_stack([np.ones(len(odds)), odds])
    members /= members.max(axis=1, keepdims=True)
    weights = np.full(members.shape[1], 1 / members.shape[1])
    for _ in range(_WEIGHT_STEPS):
        weights = weights * (members.T @ (1 / (members @ weights))) / len(members)
    total = weights[1:].sum()
    if not total > 0:
        return np.full(odds.shape[1], 1 / odds.shape[1])
    return np.asarray(weights[1:] / total)


def choose_round(criteria: Sequence[float]) -> int:
    """Choose the last round that has 95 % of the best criterion; the best if none is above 0.

    Parameters
    ----------
    criteria : sequence of float
        The criterion after every round.

    Returns
    -------
    int
        Counted from 0.

    Examples
    --------
    >>> choose_round([0.2, 0.40, 0.39, 0.3]), choose_round([-0.1, -0.2])
    (2, 0)
    """
    top = max(criteria)
    if top <= 0:
        return int(np.argmax(criteria))
    return max(r for r, value in enumerate(criteria) if value >= _ENOUGH * top)


def suspicion(probabilities: NDArray[Any], evidence: Evidence) -> Values:
    """Honest mass outside the possible labels, (n,): an order of rows, not a percentage.

    Parameters
    ----------
    probabilities : ndarray of shape (n, l)
        Honest ones: of classifiers that did not see the row's label.
    evidence : Evidence
        What was observed of the rows.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> evidence = Evidence.of_sets(np.array([[True, True, False]]))
    >>> suspicion(np.array([[0.1, 0.2, 0.7]]), evidence).round(2)
    array([0.7])
    """
    inside = evidence.entries.row_sum(evidence.entries.gather(probabilities))
    return np.clip(1 - inside, 0, 1)


class Groups:
    """Rows of one picture, page or recording that share a set, every label of which occurs.

    Parameters
    ----------
    groups : array-like, shape (n,)
        Name of every row's group.
    entries : CandidateEntries
        Candidates of the rows.

    Raises
    ------
    ValueError
        If rows of one group have different candidates.

    Examples
    --------
    >>> import numpy as np
    >>> entries = CandidateEntries(np.ones((2, 2), dtype=bool))
    >>> groups = Groups(["photo", "photo"], entries)
    >>> entries.scatter(groups.cover(np.array([0.9, 0.1, 0.8, 0.2]))).round(2)
    array([[0.6, 0.4],
           [0.4, 0.6]])
    """

    def __init__(self, groups: ArrayLike, entries: CandidateEntries) -> None:
        self.entries = entries
        _, codes = np.unique(np.asarray(groups), return_inverse=True)
        self.order = np.argsort(codes, kind="stable")
        sorted_codes = codes[self.order]
        self.starts = np.searchsorted(sorted_codes, np.arange(sorted_codes[-1] + 2))
        sets = entries.scatter(np.ones(len(entries), dtype=bool))[self.order]
        strange = (sets[1:] != sets[:-1]).any(axis=1) & (np.diff(sorted_codes) == 0)
        if strange.any():
            one, two = self.order[np.flatnonzero(strange)[0] :][:2]
            raise ValueError(
                f"rows {one} and {two} are of one group, but have different candidates. "
                "Covering needs one set a group: fit with covering=False."
            )

    def cover(self, posterior: Values) -> Values:
        """Raise the labels of a group that no row has: 30 times columns, then rows, to one.

        A group of fewer rows than labels, which cannot have them all, is left as it is.
        """
        out = posterior.astype(np.float64)
        _cover(out, self.order, self.starts, self.entries.indptr)
        return out


@nb.njit(cache=True)
def _cover(shares, order, starts, indptr):  # type: ignore[no-untyped-def]
    for g in range(starts.size - 1):
        rows = order[starts[g] : starts[g + 1]]
        count = indptr[rows[0] + 1] - indptr[rows[0]]
        if rows.size < count:
            continue
        for _ in range(_COVERING_STEPS):
            factors = np.zeros(count)
            for i in rows:
                factors += shares[indptr[i] : indptr[i] + count]
            factors = 1 / np.minimum(np.maximum(factors, 1e-300), 1.0)
            for i in rows:
                own = shares[indptr[i] : indptr[i] + count]
                own *= factors
                own /= own.sum()
