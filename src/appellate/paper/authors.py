"""PLCP as its authors' public code computes it, and the paper's statements on the rounds.

Stored runs carry the hash of this file. The reports are in another module (`studies`), so that a
change of a report does not invalidate the runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate.core.problem import Problem
from appellate.core.results import Result
from appellate.experiments.methods import Method
from appellate.methods.aggd import AGGDClassifier
from appellate.methods.partner import PartnerClassifier
from appellate.methods.plcl import PLCLClassifier
from appellate.methods.plcp import PLCPClassifier
from appellate.numerics.entries import CandidateEntries, Values
from appellate.numerics.simplex import project_entries
from appellate.numerics.smoothers import CandidateMap

_REGRESSIONS = 30


class AuthorsAGGD(AGGDClassifier):
    """PL-AGGD that keeps its old output; supervision enters through the graph only."""

    def _solve(self, problem: Problem, start: Values | None) -> Result:
        if start is None:
            self._before = None
        result = super()._solve(problem, start)
        self._before = result.output
        return result


class AuthorsPartner(PartnerClassifier):
    """The partner after 30 regressions, with a projection between one and the next.

    The first regression is on the supervision O of the base (``C = 1 - O``). The last output
    therefore follows 29 projections.
    """

    def _solve(self, problem: Problem, start: Values | None) -> Result:
        smooth = problem.on_candidates(self.kernel, self.regularization)
        initial = problem.uniform(start)
        current = initial  # C = 1 - O
        aggressive = self.link == "aggressive"
        weight = self.collaboration / (1.0 if aggressive else 2.0)
        room = 1 + self.collaboration * aggressive
        for _ in range(_REGRESSIONS - 1):
            current = project_entries((smooth(current) + weight * initial) / room, problem.entries)
        output = smooth(current)
        return Result(
            initial, current, output, _REGRESSIONS, lambda: self._regress(problem, current)
        )


class AuthorsPLCP(PLCPClassifier):
    """PLCP as its authors' public code computes it.

    Two steps differ from `PLCPClassifier`. The partner makes 30 regressions instead of being
    solved. With PL-AGGD as base, the base keeps its old regression output from the second round
    on.
    """

    _partner_type = AuthorsPartner

    def _make_base(self) -> Any:
        base = super()._make_base()
        if type(base) is AGGDClassifier:
            return AuthorsAGGD(**base.get_params(deep=False))
        return base


class SupplementPLCL(PLCLClassifier):
    """PL-CL whose non-candidate confidence starts as the paper's supplement prints it.

    ``1 / (l - |S|)`` outside the candidates and 0 on them; `PLCLClassifier` starts from 1 - Y.
    """

    def _open_complement(self, problem: Problem, smooth: CandidateMap) -> Values:
        others = CandidateEntries(~problem.candidates)
        start = (1 / np.maximum(others.counts, 1)).astype(problem.dtype)
        smoother = problem.smoother(self.kernel, self._complementary_ridge)
        return 1 - problem.entries.gather(smoother.regress(others, others.spread(start))[0])


class AuthorsMethod(Method):
    """A coupled base as in the authors' code, as a row of the experiments."""

    def base_code(self) -> str | None:
        """Hash of this module, which is not part of the hash of all runs."""
        return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]

    def _build_coupled(self, seed: int) -> Any:
        settings = {key: value for key, value in self.settings if key != "reading"}
        return AuthorsPLCP(self._build_base(seed), **settings)


#: PL-AGGD-PLCP by the authors' code, to compare with ``coupled("aggd")``.
AUTHORS = AuthorsMethod(
    "PL-AGGD-PLCP (authors' reading)", "plcp", "aggd", settings=(("reading", "authors"),)
)


def stopping_round(
    label_history: NDArray[np.intp], truth: NDArray[np.intp], share: float = 0.05
) -> int | None:
    """Round after which the paper's rule stops; None if it never does.

    The rule: "a consistent correction of over 5 % of mislabeled samples across two consecutive
    iterations". That is: in each of two consecutive rounds, more than this share of the wrong rows
    becomes correct. **The rule needs true labels**, so `PLCPClassifier` has `tol` instead.

    Parameters
    ----------
    label_history : ndarray of int, shape (rounds + 1, n)
        As `PLCPClassifier.label_history_`: the first label, then the label after every round.
    truth : ndarray of int, shape (n,)
        True labels.
    share : float, default=0.05
        Share of the mislabelled rows.

    Examples
    --------
    >>> truth = np.zeros(4, dtype=int)
    >>> stopping_round(np.array([[1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 1, 0]]), truth)
    2
    """
    above = corrected_shares(label_history, truth) > share
    twice = np.flatnonzero(above[1:] & above[:-1])
    return int(twice[0]) + 2 if len(twice) else None


def corrected_shares(
    label_history: NDArray[np.intp], truth: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Share of the wrong labels that every round corrects; 0 if none is wrong."""
    right = label_history == truth
    return np.array(
        [np.sum(after & ~before) / max(1, np.sum(~before)) for before, after in pairwise(right)]
    )


def monotone_share(
    confidences: Sequence[NDArray[Any]], candidates: NDArray[np.bool_], tol: float = 1e-6
) -> float:
    """Share of ambiguous candidates whose confidence only rises or only falls over the rounds.

    The paper says that each does. Candidates of rows that have one only do not count.

    Parameters
    ----------
    confidences : sequence of ndarray, shape (n, l)
        One a round, such as ``[r.base_confidence for r in model.history_]`` of a fit with
        ``keep_confidences=True``.
    candidates : ndarray of bool, shape (n, l)
        Candidate sets.
    tol : float, default=1e-6
        Smaller changes are none.

    Examples
    --------
    >>> rounds = [np.array([[0.5, 0.5]]), np.array([[0.6, 0.5]]), np.array([[0.7, 0.4]])]
    >>> monotone_share(rounds, np.array([[True, True]]))
    1.0
    """
    counted = candidates & (candidates.sum(axis=1, keepdims=True) > 1)
    steps = np.diff(np.array([each[counted] for each in confidences]), axis=0)
    rises, falls = (steps >= -tol).all(axis=0), (steps <= tol).all(axis=0)
    return float(np.mean(rises | falls))
