"""LALO: latent label distributions with a neighbourhood Laplacian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from appellate._parameters import allow, share_docs
from appellate.core.base import NOT_NEGATIVE
from appellate.core.problem import Kernel, Problem
from appellate.core.results import Result
from appellate.methods.ridge import KernelClassifier
from appellate.numerics.entries import Values
from appellate.numerics.simplex import minimize_quadratic


@share_docs
@dataclass(kw_only=True, eq=False, repr=False)
class LALOClassifier(KernelClassifier):
    """Leveraging latent label distributions (LALO).

    Minimises over the model and the confidence P, each row on its candidate simplex,

        |Phi W + 1 b' - P|^2 + regularization |W|^2 + 2 laplacian_weight tr(P' L P)

    by turns [1]_: the ridge regression is ``Q = S P``; for a fixed regression P minimises
    ``|P - Q|^2 + 2 laplacian_weight tr(P' L P)``, with L the normalised Laplacian of the
    symmetrised nearest-neighbour graph with Gaussian weights.

    Cost: one kernel, factorisation and inverse, O(n^3); then O(k nnz) a turn and step.
    Memory: at most three n x n matrices. Nystroem features (`GaussianKernel`)
    make both linear in n.

    Parameters
    ----------
    laplacian_weight : float, default=0.005
        Weight of the agreement with the neighbours (mu).
    n_neighbors : int, default=10
        Neighbours in the graph (k).
    regularization : float, default=0.05
        Weight of the squared norm of the coefficients (lambda).
    <kernel>
    max_iter : int, default=30
        Largest number of turns.
    tol : float, default=1e-3
        Stop when the confidence changes by less (Frobenius norm).
    <neighbors>
    <cost>

    Attributes
    ----------
    <classes>
    <regression>

    References
    ----------
    .. [1] Feng, An (2018). Leveraging latent label distributions for partial label learning.
       IJCAI.

    Examples
    --------
    >>> from appellate import LALOClassifier
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> LALOClassifier(n_neighbors=2).fit(X, y).transduction_
    array(['cat', 'cat', 'cat', 'dog', 'dog', 'dog'], dtype='<U3')
    """

    laplacian_weight: float = allow(0.005, NOT_NEGATIVE)
    n_neighbors: int = 10
    regularization: float = 0.05
    kernel: Kernel = "rbf"
    max_iter: int = 30
    tol: float = 1e-3
    neighbors: Any = None
    cost: Any = None

    def _solve(self, problem: Problem, start: Values | None) -> Result:
        smooth = problem.on_candidates(self.kernel, self.regularization)
        laplacian = problem.laplacian(self.n_neighbors, self.neighbors)
        initial = confidence = problem.uniform(start)
        output, n_iter = smooth(confidence), 0
        pull = 2 * self.laplacian_weight
        while n_iter < self.max_iter:
            previous = confidence
            confidence = minimize_quadratic(
                lambda p: p + pull * (laplacian @ p),
                output,
                1 + 2 * pull,  # the eigenvalues of a normalised Laplacian are at most 2
                problem.entries,
                start=confidence,
            ).values
            output = smooth(confidence)
            n_iter += 1
            if np.linalg.norm(confidence - previous) < self.tol:
                break
        return Result(
            initial, confidence, output, n_iter, lambda: self._regress(problem, confidence)
        )
