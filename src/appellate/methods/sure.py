"""SURE: self-training that pulls each sample towards its currently best candidate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from appellate._parameters import allow, share_docs
from appellate.core.base import NOT_NEGATIVE
from appellate.core.problem import Kernel, Problem
from appellate.core.results import Result
from appellate.methods.ridge import KernelClassifier
from appellate.numerics.entries import Values, first_max
from appellate.numerics.simplex import project_entries


@share_docs
@dataclass(kw_only=True, eq=False, repr=False)
class SUREClassifier(KernelClassifier):
    """Self-guided retraining for partial-label learning (SURE).

    Minimises over the model and the confidence P, each row on its candidate simplex,

        |Phi W + 1 b' - P|^2 + ridge |W|^2 - maximization * sum over i of max over j of P_ij

    by turns [1]_: the ridge regression is ``Q = S P``; for a fixed regression, with j the
    best candidate of row i of Q, the confidence is the projection of ``Q + maximization / 2``
    at j onto the simplex.

    Cost: one kernel, factorisation and inverse, O(n^3); then nnz-sized steps. Memory: at
    most two n x n matrices. Nystroem features (`GaussianKernel`)
    make both linear in n.

    Parameters
    ----------
    maximization : float, default=0.3
        Pull towards the best candidate (the original's lambda).
    regularization : float, default=0.05
        Weight of the squared norm of the coefficients (the original's beta).
    <kernel>
    max_iter : int, default=100
        Largest number of turns.
    tol : float, default=1e-3
        Stop when the confidence changes by less (Frobenius norm).
    <cost>

    Attributes
    ----------
    <classes>
    <regression>

    References
    ----------
    .. [1] Feng, An (2019). Partial label learning with self-guided retraining. AAAI.

    Examples
    --------
    >>> from appellate import SUREClassifier
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> SUREClassifier().fit(X, y).transduction_
    array(['cat', 'cat', 'cat', 'dog', 'dog', 'dog'], dtype='<U3')
    """

    maximization: float = allow(0.3, NOT_NEGATIVE)
    regularization: float = 0.05
    kernel: Kernel = "rbf"
    max_iter: int = 100
    tol: float = 1e-3
    cost: Any = None

    def _solve(self, problem: Problem, start: Values | None) -> Result:
        smooth = problem.on_candidates(self.kernel, self.regularization)
        entries = problem.entries
        initial = confidence = problem.uniform(start)
        output, n_iter = smooth(confidence), 0
        while n_iter < self.max_iter:
            pulled = output.copy()
            pulled[first_max(output, entries.indptr)] += self.maximization / 2
            previous, confidence = confidence, project_entries(pulled, entries)
            output = smooth(confidence)
            n_iter += 1
            if np.linalg.norm(confidence - previous) < self.tol:
                break
        return Result(
            initial, confidence, output, n_iter, lambda: self._regress(problem, confidence)
        )
