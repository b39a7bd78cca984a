"""PL-CL: partial label learning with a complementary classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from appellate._parameters import allow, share_docs
from appellate.core.base import NOT_NEGATIVE, POSITIVE
from appellate.core.problem import Kernel, Problem
from appellate.core.results import Result
from appellate.methods.ridge import KernelClassifier
from appellate.numerics.entries import Values
from appellate.numerics.smoothers import CandidateMap


@share_docs
@dataclass(kw_only=True, eq=False, repr=False)
class PLCLClassifier(KernelClassifier):
    """Partial label learning with a complementary classifier (PL-CL).

    Minimises over an ordinary model with confidence P, a complementary model with
    non-candidate confidence Q, and a graph W over the neighbours [1]_,

        |M(P) - P|^2 + complementary_weight |M(Q) - Q|^2 + agreement |P + Q - 1|^2
            + feature_weight sum_i |x_i - sum_j W_ij x_j|^2 + confidence_weight |(I - W) P|^2
            + regularization (|W_P|^2 + |W_Q|^2)

    with every row of P on its candidate simplex and ``1 - Y <= Q <= 1``, by turns: graph; Q
    in closed form; P by propagation; both models by ridge regression. The first P is the one
    that the feature graph alone rebuilds best; under PLCP it is the partner's supervision. The
    first Q is 1 - Y, as in the authors' code; the supplement of the paper on PLCP prints
    ``1 / (l - |S|)`` outside the candidates, which changes hardly anything.

    Cost: two factorisations and inverses (the models' ridges differ), O(n^3); then
    O(n k^3 + k nnz) a turn and step. Memory: at most three n x n matrices, and for each of the
    two ridges n^2 c^2 / l numbers with c candidates per row. Nystroem features (`GaussianKernel`)
    make both linear in n.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbours in the graph (k), among rows scaled to unit length.
    complementary_weight : float, default=0.5
        Weight of the complementary model (alpha_1); its ridge is
        ``regularization / complementary_weight``.
    agreement : float, default=0.5
        Weight of the link between both confidences (alpha_2).
    feature_weight : float, default=1.0
        Weight of the features in the graph (alpha_3).
    confidence_weight : float, default=1.0
        Weight of the confidences in the graph and of the graph in the confidences (alpha_4).
    regularization : float, default=0.03
        Weight of the squared norm of the coefficients (lambda).
    <kernel>
    max_iter : int, default=8
        Turns.
    <neighbors>
    <cost>

    Attributes
    ----------
    <classes>
    confidence_ : ndarray, shape (n, l)
        Final confidence P, rows on the simplex over the candidates.
    training_output_ : ndarray, shape (n, l)
        Output of the final ordinary model on the training rows.
    transduction_ : ndarray, shape (n,)
        Label of every training row: the largest training output among its candidates.
    n_iter_ : int
        Turns taken.

    References
    ----------
    .. [1] Si, Jia, Wang, Zhang, Feng, Qu (2023). Complementary classifier induced partial
       label learning. KDD.

    Examples
    --------
    >>> from appellate import PLCLClassifier
    >>> X = [[0.0, 1.0], [0.1, 1.0], [0.2, 1.0], [1.0, 0.0], [1.0, 0.1], [1.0, 0.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> PLCLClassifier(n_neighbors=2).fit(X, y).transduction_
    array(['cat', 'cat', 'cat', 'dog', 'dog', 'dog'], dtype='<U3')
    """

    n_neighbors: int = 10
    complementary_weight: float = allow(0.5, POSITIVE)
    agreement: float = allow(0.5, NOT_NEGATIVE)
    feature_weight: float = 1.0
    confidence_weight: float = 1.0
    regularization: float = 0.03
    kernel: Kernel = "rbf"
    max_iter: int = 8
    neighbors: Any = None
    cost: Any = None

    def _kernels(self) -> list[tuple[Kernel, Any]]:
        return [*super()._kernels(), (self.kernel, self._complementary_ridge)]

    @property
    def _complementary_ridge(self) -> float:
        return self.regularization / self.complementary_weight

    def _solve(self, problem: Problem, start: Values | None) -> Result:
        smooth_complement = problem.on_candidates(
            self.kernel, self._complementary_ridge, keep=False
        )
        smooth = problem.on_candidates(self.kernel, self.regularization)
        graph = problem.graph(self.n_neighbors, self.neighbors)
        weights = graph.weights()
        model = self.complementary_weight
        link = self.agreement
        if start is None:
            start = graph.propagate(weights, problem.uniform()).values
        confidence, output = start, smooth(start)
        # 1 - Q is zero outside the candidates and S 1 = 1, so it stands for Q in every step.
        complement_output = self._open_complement(problem, smooth_complement)
        for _ in range(self.max_iter):
            weights = graph.weights(
                confidence, self.feature_weight, self.confidence_weight, weights
            )
            # Q = clip((alpha_1 M(Q) + alpha_2 (1 - P)) / (alpha_1 + alpha_2), 1 - Y, 1)
            mixed = (model * complement_output + link * confidence) / (model + link)
            complement: Values = np.clip(mixed, 0, 1)
            target = (output + link * complement) / (1 + link)
            fidelity = (1 + link) / self.confidence_weight
            confidence = graph.propagate(weights, confidence, target, fidelity).values
            output = smooth(confidence)
            complement_output = smooth_complement(complement)
        return Result(
            start, confidence, output, self.max_iter, lambda: self._regress(problem, confidence)
        )

    def _open_complement(self, problem: Problem, smooth: CandidateMap) -> Values:
        """First output of the complementary model, 1 - M(Q), for Q = 1 - Y as in its code."""
        return smooth(np.ones(len(problem.entries), dtype=problem.dtype))
