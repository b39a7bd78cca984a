"""What was observed of a row, as likelihoods, and what it proves about a classifier.

A row's label has the posterior ``held_out * evidence``: what classifiers that did not see the
row's label say of it, times how likely that which was observed is if the label were true.
Evidence comes in kinds that multiply: candidate sets, weights of candidates, decisions, and
any (n, l) matrix of log-likelihoods, such as that of annotators' answers.

How candidate sets arise is one number, the *ambiguity* tau. Label-first (0): a label was drawn,
and others joined it. Set-first (1): a set was there, and one of it is this row's (faces and a
caption). A classifier knows that some labels are frequent, pi; a set that came first contains
that already, so that

    P(y = j | x, S)  ~  1[j in S] p_j(x) / pi_j^tau

All of tau, temperatures and weights is found without true labels, by the criterion of this page.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numba as nb
import numpy as np
from numpy.typing import ArrayLike, NDArray

from appellate.evidence.groups import Groups
from appellate.numerics.entries import CandidateEntries, Values

__all__ = ["Evidence", "estep", "set_odds"]

RARE = 1e-4  # added to every label's share, so that none is zero
_ESTEPS = 30


@dataclass(frozen=True, eq=False)
class Evidence:
    """Likelihood of what was observed of every row, at the labels that it leaves possible.

    Attributes
    ----------
    entries : CandidateEntries
        The labels that each of n rows may have, among l.
    likelihood : ndarray, shape (nnz,)
        Likelihood of what was observed if the label of the entry were true; the largest
        of a row is 1.

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

    @cached_property
    def prior(self) -> Values:
        """Posterior of a classifier that knows nothing: the likelihood, normalised."""
        return self.normalize(np.ones(len(self.entries)))

    def logs(self) -> NDArray[np.float64]:
        """Return (n, l) log-likelihoods, minus infinity where a label is ruled out."""
        matrix = np.full(self.entries.shape, -np.inf)
        with np.errstate(divide="ignore"):
            matrix[self.entries.rows, self.entries.labels] = np.log(self.likelihood)
        return matrix

    def times(self, logs: ArrayLike) -> Evidence:
        """Return this and further evidence, (n, l) log-likelihoods: kinds multiply."""
        matrix = np.asarray(logs, dtype=np.float64)
        if matrix.shape != self.entries.shape:
            raise ValueError(
                f"evidence has shape {matrix.shape}; it needs one log-likelihood for every row "
                f"and class: {self.entries.shape}."
            )
        return Evidence.of_logs(self.logs() + matrix)

    def take(self, rows: NDArray[Any]) -> Evidence:
        """Return the evidence of some rows."""
        possible = self.entries.scatter(np.ones(len(self.entries), dtype=bool))
        entries = CandidateEntries(possible[rows])
        return Evidence(entries, entries.gather(self.entries.scatter(self.likelihood)[rows]))

    def normalize(self, values: Values) -> Values:
        """``rownorm(likelihood * values)``; by the likelihood alone where that is zero."""
        return _normalize(values, self.likelihood, self.entries.indptr)


def label_shares(probabilities: NDArray[Any]) -> NDArray[np.float64]:
    """pi, (l,): the column means, plus 1e-4, summing to one."""
    shares = probabilities.mean(axis=0) + RARE
    return np.asarray(shares / shares.sum())


def set_odds(probabilities: NDArray[Any], evidence: Evidence, tau: float) -> Values:
    """How much likelier a row's features are given its set than at large.

    ``L_i = sum_{j in S_i} p_ij pi_j^-tau / sum_{k in S_i} pi_k^(1 - tau)``, which is
    ``p(x_i | S_i) / p(x_i)``; each candidate counts by its likelihood. A classifier that knows
    nothing, ``p_i = pi``, has odds 1.

    Parameters
    ----------
    probabilities : ndarray, shape (n, l)
        Held-out: of classifiers that saw neither the row nor its set.
    evidence : Evidence
        Evidence of the same rows.
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
        Out-of-fold probabilities, all or at the candidates.
    evidence : Evidence
        Evidence of the same rows.
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
        args = entries.labels, entries.indptr, entries.shape[1], float(tau), steps
        posterior = _estep(posterior, evidence.prior, *args)[0]
    return posterior if groups is None else groups.cover(posterior)


def estep_shares(
    probabilities: NDArray[Any], evidence: Evidence, tau: float, *, steps: int = _ESTEPS
) -> NDArray[np.float64]:
    """Return pi of the last step of `estep`: its posterior is ``rownorm(evidence * P * pi^-tau)``.

    Parameters
    ----------
    probabilities : ndarray, shape (n, l) or (nnz,)
        Out-of-fold probabilities, all or at the candidates.
    evidence : Evidence
        Evidence of the same rows.
    tau : float
        Ambiguity, above 0.
    steps : int, default=30
        Steps.

    Returns
    -------
    ndarray, shape (l,)

    Examples
    --------
    >>> import numpy as np
    >>> evidence = Evidence.of_sets(np.ones((2, 2), dtype=bool))
    >>> P = np.array([[0.9, 0.1], [0.6, 0.4]])
    >>> shares = estep_shares(P, evidence, 1.0)
    >>> found = P / shares
    >>> found /= found.sum(axis=1, keepdims=True)
    >>> bool(np.allclose(found, evidence.entries.scatter(estep(P, evidence, 1.0))))
    True
    """
    entries = evidence.entries
    values = entries.gather(probabilities) if probabilities.ndim == 2 else probabilities
    posterior = evidence.normalize(values.astype(np.float64))
    args = entries.labels, entries.indptr, entries.shape[1], float(tau), steps
    return np.asarray(_estep(posterior, evidence.prior, *args)[1])


@nb.njit(cache=True)
def _normalize(values, likelihood, indptr):  # type: ignore[no-untyped-def]
    """Divide every row's products by their sum, in double precision; or the likelihood alone."""
    out = np.empty(values.size)
    for i in range(indptr.size - 1):
        total = 0.0
        plain = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            out[e] = likelihood[e] * values[e]
            total += out[e]
            plain += likelihood[e]
        for e in range(indptr[i], indptr[i + 1]):
            out[e] = out[e] / total if total > 0 else likelihood[e] / plain
    return out


@nb.njit(cache=True)
def _estep(start, prior, labels, indptr, n_labels, tau, steps):  # type: ignore[no-untyped-def]
    n, out = indptr.size - 1, start.copy()
    shares = np.zeros(n_labels)
    for e in range(labels.size):
        shares[labels[e]] += start[e] / n
    shares += 0.01 / n_labels
    used = shares.copy()
    for _ in range(steps):
        used[:] = shares
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
    return out, used
