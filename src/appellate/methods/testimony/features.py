"""What a regression on the features says of rows whose answers it did not see, and its trust."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from appellate.candidates import Answers, CandidateSets
from appellate.core.problem import Kernel, Problem
from appellate.core.results import Model
from appellate.methods.testimony.people import (
    EDGE,
    Matrix,
    Opinions,
    estimate_annotators,
    incidence,
    sample_opinions,
)
from appellate.numerics.kernels import check_magnitude
from appellate.numerics.smoothers import Regressor

RIDGES = (0.05, 0.5, 5.0)
CHANCE_GAIN = 5.0  # nats that features without any use may gain by chance
MODEL_RIDGES = (0.05, 0.5, 1.5, 5.0)  # of the regression for new rows
_TRIED_ROWS = 4_000  # that the ridge is chosen on


class Regressions:
    """Kernel ridge regressions on z-scored features, and what they say of rows left out.

    Ridges are compared on 4,000 rows at most.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n, q)
        Features; sparse ones need a linear kernel.
    n_labels : int
        l.
    kernel : {"rbf", "linear"}, GaussianKernel or LinearKernel, default="rbf"
        Kernel of the regressions.
    ridges : tuple of float
        Weights of the squared norm to choose from.
    """

    def __init__(
        self,
        X: Any,
        n_labels: int,
        kernel: Kernel = "rbf",
        ridges: tuple[float, ...] = RIDGES,
    ) -> None:
        self.kernel = kernel
        self.ridges = ridges
        self.n_labels = n_labels
        self.scaling = Scaling.of(X)
        rows, n = self.scaling.apply(X), X.shape[0]
        self.sample = np.arange(0, n, -(-n // _TRIED_ROWS))
        self._some = self._problem(rows[self.sample])
        self._all = self._some if len(self.sample) == n else self._problem(rows)
        self._ridge: float | None = None

    def _problem(self, rows: Any) -> Problem:
        n = rows.shape[0]
        every = CandidateSets(np.ones((n, self.n_labels), bool), np.arange(self.n_labels))
        return Problem(rows, every, kernels=lambda: [(self.kernel, self.ridges[0])])

    def leave_one_out(self, targets: Matrix, ridge: float) -> Matrix:
        """Output on every row of the regression on all the others, (n, l).

        If there are as many targets as rows in the sample, these are the rows.
        """
        if len(targets) == 1:
            return np.zeros_like(targets)
        problem = self._some
        if len(targets) != len(self.sample):
            problem = self._all
            if ridge != self._ridge:
                problem.forget_smoothers()  # one large matrix at a time
                self._ridge = ridge
        own = problem.smoother(self.kernel, ridge).diagonal[:, np.newaxis]
        output = problem.on_candidates(self.kernel, ridge)(targets.ravel()).reshape(targets.shape)
        return np.asarray((output - own * targets) / np.maximum(1 - own, np.finfo(float).eps))

    def model(self, targets: Matrix) -> TestimonyModel:
        """The regression whose leave-one-out probabilities are nearest to the targets.

        New rows have ``softmax(b f(x))``, b by `scale_of` on the leave-one-out output.
        """
        some = targets[self.sample]
        tried = MODEL_RIDGES if self.ridges == RIDGES else self.ridges
        ridge = min(tried, key=lambda r: scale_of(self.leave_one_out(some, r), some)[1])
        scale = scale_of(self.leave_one_out(targets, ridge), targets)[0]
        smoother = self._all.smoother(self.kernel, ridge)
        output, regressor = smoother.regress(self._all.entries, targets.ravel())
        return TestimonyModel(output, regressor, self.scaling, scale)


@dataclass(frozen=True)
class Scaling:
    """Centre and deviation of every feature, (q,) both."""

    centre: Matrix
    deviation: Matrix

    @classmethod
    def of(cls, X: Any) -> Scaling:
        """Measure the training rows.

        Sparse rows are not centred: they stay sparse, and the free bias of the regression makes
        up for it.
        """
        rows = X.astype(np.float64)
        check_magnitude(rows)
        if sp.issparse(rows):
            mean = np.asarray(rows.mean(axis=0)).ravel()
            variance = np.asarray(rows.multiply(rows).mean(axis=0)).ravel() - mean**2
            deviation, mean = np.sqrt(np.maximum(variance, 0)), np.zeros_like(mean)
        else:
            mean, deviation = rows.mean(axis=0), rows.std(axis=0)
        return cls(mean, np.where(deviation > 0, deviation, 1.0))

    def apply(self, X: Any) -> Any:
        """Scale rows, (m, q); sparse rows stay sparse."""
        if sp.issparse(X):
            return sp.csr_array(X.multiply(1 / self.deviation))
        return (X - self.centre) / self.deviation


@dataclass(frozen=True)
class TestimonyModel(Model):
    """What remains for new rows."""

    regressor: Regressor
    scaling: Scaling
    scale: float

    __test__ = False  # for pytest: no test, despite its name

    def decision(self, X: NDArray[Any]) -> Matrix:
        """Scores whose softmax are probabilities, (m, l)."""
        return self.scale * self.regressor.predict(self.scaling.apply(X))

    def probabilities(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Softmax of the scores."""
        return np.asarray(softmax(scores, axis=1))


def answer_likelihood(beta: float, output: Matrix, L: Matrix, opinions: Opinions) -> Matrix:
    """Log-probability of every opinion given the features and the row's *other* answers, (o,).

    ``log sum_c softmax_c(beta f_i + L_i - log P(a | c)) P(a | c)``.
    """
    scores = beta * output + L
    joint = np.exp(scores - scores.max(axis=1, keepdims=True))[opinions.rows]
    mixed = np.einsum("oc,oc->o", joint, opinions.once)
    mixed /= np.einsum("oc,oc->o", joint, opinions.without)
    return np.log(np.maximum(mixed, np.finfo(float).tiny))


def find_beta(
    output: Matrix, L: Matrix, opinions: Opinions, prior: Any = 0.0
) -> tuple[float, float]:
    """How far the features are to be trusted, by how well they predict left-out answers.

    Maximises ``sum of answer_likelihood - 1e-3 A (log beta - 1.5)^2``, log beta in [-3, 4].

    Returns
    -------
    beta : float
        The best one.
    gain : float
        By how much the log-likelihood of the answers is larger than by `prior` instead of the
        features.
    """
    weights = opinions.weights
    total = max(weights.sum(), EDGE)

    def likelihood(beta: float) -> float:
        return float(weights @ answer_likelihood(beta, output, L, opinions))

    best = least(lambda x: 1e-3 * (x - 1.5) ** 2 - likelihood(np.exp(x)) / total)
    beta = float(np.exp(best.x))
    without = weights @ answer_likelihood(0.0, output, L + prior, opinions)
    return beta, likelihood(beta) - float(without)


def choose_ridge(
    regressions: Regressions, answers: Answers, shares: Matrix, *, ordered: bool = False
) -> float:
    """Choose the ridge whose output best predicts the answers.

    By `find_beta`'s gain in the first round, when the annotators are known by the votes alone: the
    middle one, unless another gains a tenth more.
    """
    if len(regressions.ridges) == 1:
        return regressions.ridges[0]
    some, q = answers[regressions.sample], shares[regressions.sample]
    known = estimate_annotators(some, incidence(some), q, ordered)
    opinions = sample_opinions(some, known.confusion, known.rates)
    ridges, L = regressions.ridges, known.evidence
    gains = {r: find_beta(regressions.leave_one_out(q, r), L, opinions)[1] for r in ridges}
    middle, best = ridges[len(gains) // 2], max(gains, key=gains.__getitem__)
    return best if gains[best] > 1.1 * gains[middle] else middle


def scale_of(scores: Matrix, posterior: Matrix) -> tuple[float, float]:
    """Return b of the smallest cross-entropy of softmax(b scores) and the posterior, and it."""
    best = least(
        lambda x: -np.mean(np.sum(posterior * log_softmax(np.exp(x) * scores, axis=1), 1)), 1e-3
    )
    return float(np.exp(best.x)), float(best.fun)


def least(loss: Callable[[float], float], xatol: float = 1e-2) -> Any:
    """Where a function of the logarithm of a scale is least, and how small it is there."""
    return minimize_scalar(loss, bounds=(-3, 4), method="bounded", options={"xatol": xatol})
