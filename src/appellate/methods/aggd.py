"""PL-AGGD: adaptive graph guided disambiguation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from appellate._parameters import share_docs
from appellate.core.problem import Kernel, Problem
from appellate.core.results import Result
from appellate.methods.ridge import KernelClassifier
from appellate.numerics.entries import Values


@share_docs
@dataclass(kw_only=True, eq=False, repr=False)
class AGGDClassifier(KernelClassifier):
    """Adaptive graph guided disambiguation (PL-AGGD).

    Minimises over the model, the graph W and the confidence P, each row of P on its
    candidate simplex and each row of W on the simplex over the sample's neighbours,

        |Phi W' + 1 b' - P|^2 + regularization |W'|^2
            + feature_weight sum_i |x_i - sum_j W_ij x_j|^2
            + confidence_weight |(I - W) P|^2

    by turns [1]_: the graph from features and confidences, the confidence by propagation
    over the graph towards the model's output, the model by ridge regression ``M = S P``.
    The first confidence is the one that the feature graph alone rebuilds best; under PLCP it
    is the partner's supervision.

    Cost: one kernel, factorisation and inverse, O(n^3); then O(n k^3 + k nnz) a turn and
    step. Memory: at most three n x n matrices. Nystroem features (`GaussianKernel`)
    make both linear in n.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbours in the graph (k), among rows scaled to unit length.
    feature_weight : float, default=1.0
        Weight of the features in the graph (mu).
    confidence_weight : float, default=1.0
        Weight of the confidences in the graph and of the graph in the confidences (gamma).
    regularization : float, default=0.05
        Weight of the squared norm of the coefficients (lambda).
    <kernel>
    max_iter : int, default=10
        Turns.
    <neighbors>
    <cost>

    Attributes
    ----------
    <classes>
    <regression>

    References
    ----------
    .. [1] Wang, Zhang, Li (2022). Adaptive graph guided disambiguation for partial label
       learning. IEEE TPAMI 44.

    Examples
    --------
    >>> from appellate import AGGDClassifier
    >>> X = [[0.0, 1.0], [0.1, 1.0], [0.2, 1.0], [1.0, 0.0], [1.0, 0.1], [1.0, 0.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> AGGDClassifier(n_neighbors=2).fit(X, y).transduction_
    array(['cat', 'cat', 'cat', 'dog', 'dog', 'dog'], dtype='<U3')
    """

    n_neighbors: int = 10
    feature_weight: float = 1.0
    confidence_weight: float = 1.0
    regularization: float = 0.05
    kernel: Kernel = "rbf"
    max_iter: int = 10
    neighbors: Any = None
    cost: Any = None

    # The authors' code begins with the output of its last round.
    _before = cast("Values | None", None)

    def _solve(self, problem: Problem, start: Values | None) -> Result:
        smooth = problem.on_candidates(self.kernel, self.regularization)
        graph = problem.graph(self.n_neighbors, self.neighbors)
        weights = graph.weights()
        if start is None:
            start = graph.propagate(weights, problem.uniform()).values
        confidence, output = start, smooth(start) if self._before is None else self._before
        for _ in range(self.max_iter):
            weights = graph.weights(
                confidence, self.feature_weight, self.confidence_weight, weights
            )
            fidelity = 1 / self.confidence_weight
            confidence = graph.propagate(weights, confidence, output, fidelity).values
            output = smooth(confidence)
        return Result(
            start, confidence, output, self.max_iter, lambda: self._regress(problem, confidence)
        )
