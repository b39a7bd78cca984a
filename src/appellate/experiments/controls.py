"""Controls: what the partner, the ridge model and mere luck achieve without PLCP."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate.candidates import CandidateSets
from appellate.core.problem import Kernel, Problem
from appellate.core.results import Result
from appellate.methods.partner import PartnerClassifier
from appellate.methods.plcp import PLCPClassifier
from appellate.methods.ridge import KernelClassifier
from appellate.numerics.entries import Values


class RidgeControl(KernelClassifier):
    """Kernel ridge regression on the uniform confidence, without any disambiguation.

    Parameters
    ----------
    regularization : float, default=0.05
        Weight of the squared norm of the coefficients.
    kernel : {"rbf", "linear"}, GaussianKernel or LinearKernel, default="rbf"
        Gaussian or linear.
    """

    def __init__(self, *, regularization: float = 0.05, kernel: Kernel = "rbf") -> None:
        self.regularization = regularization
        self.kernel = kernel

    def _solve(self, problem: Problem, start: Values | None) -> Result:
        uniform = problem.uniform(start)
        smooth = problem.on_candidates(self.kernel, self.regularization)
        output = smooth(uniform)
        return Result(uniform, uniform, output, 1, lambda: self._regress(problem, uniform))


class CandidatePartner(PartnerClassifier):
    """The ablation's partner "O", which regresses on D = 1 - C instead of on C.

    **Both are the same problem**: W -> -W, b -> 1 - b maps every term and constraint of one onto
    the other, so the predictions agree to rounding.
    """

    _complement = False


class CandidatePLCP(PLCPClassifier):
    """PLCP with that partner."""

    _partner_type = CandidatePartner


def graph_confidence(
    X: NDArray[Any], candidates: NDArray[np.bool_], n_neighbors: int = 10
) -> NDArray[Any]:
    """Confidence that the neighbour graph alone gives, the start of PL-AGGD, (n, l)."""
    problem = Problem(X, CandidateSets(candidates, np.arange(candidates.shape[1])))
    graph = problem.graph(n_neighbors)
    start = graph.propagate(graph.weights(), problem.uniform()).values
    return problem.entries.scatter(start)


def luck(
    candidates: NDArray[np.bool_], truth: NDArray[np.intp], tolerance: int, *, lowest: bool
) -> float:
    """Transductive accuracy of a random candidate (expected), or of the lowest-numbered.

    Examples
    --------
    >>> sets = np.array([[True, True], [False, True]])
    >>> luck(sets, np.array([1, 1]), 0, lowest=False), luck(sets, np.array([1, 1]), 0, lowest=True)
    (0.75, 0.5)
    """
    near = np.abs(np.arange(candidates.shape[1]) - truth[:, np.newaxis]) <= tolerance  # (n, l)
    if lowest:
        return float(near[np.arange(len(truth)), candidates.argmax(axis=1)].mean())
    return float(((near & candidates).sum(axis=1) / candidates.sum(axis=1)).mean())
