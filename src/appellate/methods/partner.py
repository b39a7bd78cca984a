"""The partner: a classifier of what each sample is not."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from appellate._parameters import share_docs
from appellate.core.problem import Kernel, Problem
from appellate.core.results import Result
from appellate.methods.ridge import KernelClassifier
from appellate.numerics.entries import Values
from appellate.numerics.simplex import minimize_quadratic


@share_docs
@dataclass(kw_only=True, eq=False, repr=False)
class PartnerClassifier(KernelClassifier):
    """The partner classifier of PLCP, trained on non-candidate labels.

    Solves, given the supervision O of a base classifier (Eqs. 5 and 6 of the paper),

        min over W, b, C of |Phi W + 1 b' - C|^2 + regularization |W|^2 + collaboration tr(O C')
        subject to 1 - Y <= C <= 1 and rows of C summing to l - 1,

    where ``C_ij`` is the confidence that j is *not* the label of sample i. The model is
    eliminated in closed form, and with ``D = 1 - C`` on the candidate simplex there remains
    the convex problem ``min tr(D'(I - S)D) - collaboration tr(O'D)``, solved to a tolerance
    by accelerated projected gradient. One plain step, ``D <- project(S D + collaboration/2
    O)``, is one alternation of the paper.

    Cost: one kernel, factorisation and inverse, O(n^3); then steps of the size of the candidate
    entries. Memory: at most two n x n matrices. Nystroem features (`GaussianKernel`) make both
    linear in n.

    Parameters
    ----------
    collaboration : float, default=2.0
        Weight of the link to the base (the paper's gamma).
    regularization : float, default=0.05
        Weight of the squared norm of the coefficients (the paper's lambda).
    link : {"collaborative", "aggressive"}, default="collaborative"
        ``tr(O C')``, or ``|O + C - 1|^2`` for the comparison in the paper.
    <kernel>
    tol : float, default=1e-6
        Stop when a projected gradient step changes every confidence by at most this much.
    max_iter : int, default=10_000
        Largest number of steps. Stopping early changes the answer; for studies only.
    <cost>

    Attributes
    ----------
    <classes>
    confidence_ : ndarray, shape (n, l)
        ``D = 1 - C`` at the optimum, rows on the simplex over the candidates.
    training_output_ : ndarray, shape (n, l)
        Scores of the training rows, larger is likelier: ``1 - M^``, where the paper's output M^
        says what a sample is not.
    transduction_ : ndarray, shape (n,)
        Label of every training row: the candidate that is least "not".
    n_iter_ : int
        Steps taken.
    objective_ : ndarray
        Objective of the problem in D after every step; it decreases.

    References
    ----------
    .. [1] Si, Wang, Wang, Yang, Shen. Appeal: Allow mislabeled samples the chance to be
       rectified in partial label learning.

    Examples
    --------
    >>> from appellate import PartnerClassifier
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> PartnerClassifier().fit(X, y).predict([[0.05], [4.9]])
    array(['cat', 'dog'], dtype='<U3')
    """

    collaboration: float = 2.0
    regularization: float = 0.05
    link: str = "collaborative"
    kernel: Kernel = "rbf"
    tol: float = 1e-6
    max_iter: int = 10_000
    cost: Any = None

    #: Regress on C as the paper does; on D = 1 - C it is the same problem (the ablation's "O").
    _complement = True

    def _solve(self, problem: Problem, start: Values | None) -> Result:
        smooth = problem.on_candidates(self.kernel, self.regularization)
        initial = problem.uniform(start)
        pull = 0.0 if self.link == "collaborative" else self.collaboration
        weight = self.collaboration / (2.0 if self.link == "collaborative" else 1.0)
        solution = minimize_quadratic(
            lambda d: (1 + pull) * d - smooth(d),
            weight * initial,
            1 + pull,
            problem.entries,
            start=initial,
            tol=self.tol,
            max_iter=self.max_iter,
        )
        if not solution.converged:
            warnings.warn(
                f"The partner stopped after {self.max_iter} steps with a residual of "
                f"{solution.residual:.1e} (tol={self.tol:g}); raise max_iter.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return Result(
            initial=initial,
            confidence=solution.values,
            output=(1 + pull) * solution.values - solution.product,
            n_iter=solution.n_iter,
            model=lambda: self._regress(problem, solution.values),
            details={"objective_": np.array(solution.objective)},
        )
