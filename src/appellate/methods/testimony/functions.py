"""Sources that only ever give one label, such as labelling functions, weighed by precision.

A confusion matrix says how often a source answers k if c is true, *given that it answers*. Of a
source that only ever says k all rows of it are the same: its answers carry no evidence. Such a
source tells something by speaking at all, so it is weighed by what is true where it speaks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from appellate.candidates import Answers
from appellate.methods.testimony.people import Matrix, counted, incidence

PASSES = 2  # more of them let the shares of the labels drift
PRECEDENT = 200.0  # answers that the precision of all functions weighs next to one's own
_LEAST = 1e-4


def one_sided_labels(answers: Answers) -> NDArray[np.intp]:
    """Label of every source that gave one label only, -1 for all others, (p,)."""
    p, l = answers.n_people, answers.shape[1]
    given = np.zeros((p, l), dtype=bool)
    given[answers.people, answers.labels] = True
    if answers.sizes is not None:  # a named set is not one label
        given[answers.people[answers.sizes > 1]] = True
    alone = given.sum(axis=1) == 1
    return np.where(alone & (l > 1), given.argmax(axis=1), -1)


def find_functions(answers: Answers, functions: bool | str = "auto") -> NDArray[np.bool_]:
    """Tell which sources are labelling functions, (p,).

    Parameters
    ----------
    answers : Answers
        Who said what.
    functions : bool or "auto", default="auto"
        True: all one-sided sources; False: none. ``"auto"``: all one-sided sources, if they gave
        more than half of the answers that chance would not give to one-sided sources, else
        none. Chance: a source of m answers gives label k to all of them with probability
        ``share_k^m``; a source of one answer says nothing either way.
    """
    one_sided = one_sided_labels(answers) >= 0
    if functions == "auto":
        weights, sizes = counted(answers)
        once = weights / sizes
        n_answers = np.bincount(answers.people, once, minlength=answers.n_people)
        shares = np.bincount(answers.labels, once, minlength=answers.shape[1])
        shares = shares / max(shares.sum(), 1.0)
        chance = np.sum(shares ** np.maximum(n_answers, 1.0)[:, None], axis=1)
        beyond = n_answers[one_sided].sum() - n_answers @ chance
        functions = bool(beyond > n_answers @ (1 - chance) / 2)
    return one_sided if functions else np.zeros_like(one_sided)


@dataclass(frozen=True)
class Functions:
    """Labelling functions of a table.

    Attributes
    ----------
    labels : ndarray of int, shape (F,)
        The label of each.
    spoke : sparse array, shape (F, n)
        Where each spoke, and how often.
    members : ndarray of int, shape (F,)
        Their numbers among all sources.
    """

    labels: NDArray[np.intp]
    spoke: sp.csr_array
    members: NDArray[np.intp]

    @classmethod
    def of(cls, answers: Answers, members: NDArray[np.bool_]) -> Functions:
        """Take the answers of the members out of all answers."""
        labels, l = one_sided_labels(answers)[members], answers.shape[1]
        numbers = np.flatnonzero(members)
        return cls(labels, incidence(answers)[:, numbers * l + labels].T.tocsr(), numbers)

    def precisions(self, q: Matrix, shares: Matrix) -> Matrix:
        """What is true where each function speaks, by the posterior q, (F, l).

        With the class shares P, ``N_j[c]`` the sum of q[i, c] over the rows where j spoke,
        ``n_j`` their number and ``a`` the precision of all functions::

            a        = (sum_j N_j[k_j] + 1) / (sum_j n_j + 2), in [.001, .999]
            M_j[k_j] = a,   M_j[c] = (1 - a) P[c] / (1 - P[k_j])
            pi_j     = (N_j + 200 M_j) / (n_j + 200)
        """
        N = np.asarray(self.spoke @ q)
        count, own = N.sum(axis=1), (np.arange(len(N)), self.labels)
        precision = np.clip((N[own].sum() + 1) / (count.sum() + 2), 0.001, 0.999)
        expected = (1 - precision) * shares / (1 - shares[self.labels])[:, None]
        expected[own] = precision
        return np.asarray((N + PRECEDENT * expected) / (count + PRECEDENT)[:, None])

    def weights(self, q: Matrix, shares: Matrix) -> Matrix:
        """``log max(pi_j, 1e-4) - log P``, (F, l): evidence of each function where it speaks."""
        return np.asarray(np.log(np.maximum(self.precisions(q, shares), _LEAST)) - np.log(shares))

    def evidence(self, weights: Matrix) -> Matrix:
        """Sum of the weights of the functions that spoke, (n, l).

        A function that abstains says nothing.
        """
        return np.asarray(self.spoke.T @ weights)
