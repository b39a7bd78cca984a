"""CLPL: a convex loss that asks the candidates to score well on average."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from appellate._parameters import share_docs
from appellate.core.problem import Kernel, Problem
from appellate.core.results import Model, Result
from appellate.methods.ridge import FeatureClassifier
from appellate.numerics.entries import Values
from appellate.numerics.simplex import project_entries
from appellate.numerics.smoothers import Regressor
from appellate.numerics.threads import multiply


@share_docs
@dataclass(kw_only=True, eq=False, repr=False)
class CLPLClassifier(FeatureClassifier):
    """Convex learning from partial labels (CLPL).

    Minimises over a linear model with bias, F(x) = W'phi(x) + b, the convex loss [1]_

        sum over i of  psi(mean over j in S_i of F_j(x_i)) + sum over j not in S_i of
        psi(-F_j(x_i)),   plus   regularization |W|^2

    with the squared hinge ``psi(u) = max(0, 1 - u)^2``: the candidates must score well on
    average, every other label badly. Under PLCP the mean is weighted by the partner's
    supervision.

    Cost: features of the kernel (Gaussian: a Cholesky factorisation, n^3 / 3), then n r l a
    step of L-BFGS for r features. Memory: n (r + l).

    Parameters
    ----------
    regularization : float, default=0.1
        Weight of the squared norm of the coefficients.
    <kernel>
        The original is linear.
    max_iter : int, default=1000
        Largest number of steps.
    tol : float, default=1e-5
        Stop when no entry of the gradient, divided by the number of rows, is larger.
    <cost>

    Attributes
    ----------
    <classes>
    confidence_ : ndarray, shape (n, l)
        Training output projected onto the simplex over the candidates.
    training_output_ : ndarray, shape (n, l)
        ``(1 + F) / 2`` of the training rows: 1 where a candidate has its margin, 0 where
        another label has.
    transduction_ : ndarray, shape (n,)
        Label of every training row: the largest training output among its candidates.
    n_iter_ : int
        Steps taken.
    objective_ : float
        The minimum.

    References
    ----------
    .. [1] Cour, Sapp, Taskar (2011). Learning from partial labels. Journal of Machine Learning
       Research 12.

    Examples
    --------
    >>> from appellate import CLPLClassifier
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> CLPLClassifier().fit(X, y).predict([[0.05], [4.9]])
    array(['cat', 'dog'], dtype='<U3')
    """

    regularization: float = 0.1
    kernel: Kernel = "rbf"
    max_iter: int = 1000
    tol: float = 1e-5
    cost: Any = None

    def _solve(self, problem: Problem, start: Values | None) -> Result:
        entries, initial = problem.entries, problem.uniform(start)
        features, ridge = self._features(problem), self.regularization
        weights, others = entries.scatter(initial.astype(np.float64)), ~problem.candidates
        rows = features.matrix
        n, l = weights.shape

        def objective(flat: NDArray[Any]) -> tuple[float, NDArray[Any]]:
            model = flat.reshape(-1, l)
            value, slope = convex_loss(multiply(rows, model[:-1]) + model[-1], weights, others)
            pull = multiply(rows.T, slope) + 2 * ridge * model[:-1]
            gradient = np.vstack([pull, slope.sum(axis=0)])
            return (value + ridge * np.sum(model[:-1] ** 2)) / n, gradient.ravel() / n

        found = minimize(
            objective,
            np.zeros((rows.shape[1] + 1) * l),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": self.max_iter, "gtol": self.tol, "ftol": 0.0},
        )
        if found.nit >= self.max_iter:
            warnings.warn(
                f"CLPL stopped after {self.max_iter} steps with a gradient of "
                f"{np.abs(found.jac).max():.1e} (tol={self.tol:g}); raise max_iter.",
                ConvergenceWarning,
                stacklevel=2,
            )
        model = found.x.reshape(-1, l)
        output = ((1 + rows @ model[:-1] + model[-1]) / 2).astype(problem.dtype)
        scores = entries.gather(output)
        details = {"objective_": found.fun * n}

        def make() -> HalvedModel:
            return HalvedModel(output, features.regressor(model[:-1], model[-1]))

        confidence = project_entries(scores, entries)
        return Result(initial, confidence, scores, found.nit, make, details=details)


@dataclass(frozen=True)
class HalvedModel(Model):
    """Margins of new rows, brought from -1 .. 1 to 0 .. 1."""

    regressor: Regressor

    def decision(self, X: Any) -> NDArray[Any]:
        """Score new rows by ``(1 + F) / 2``, (m, l)."""
        return (1 + self.regressor.predict(X)) / 2


def convex_loss(
    scores: NDArray[Any], weights: NDArray[Any], others: NDArray[np.bool_]
) -> tuple[float, NDArray[Any]]:
    """Value and slope of CLPL's loss in the scores, (n, l).

    Parameters
    ----------
    scores : ndarray, shape (n, l)
        F.
    weights : ndarray, shape (n, l)
        Weight of every candidate in its row's mean, 0 elsewhere.
    others : ndarray of bool, shape (n, l)
        True where a label is not a candidate.

    Examples
    --------
    >>> import numpy as np
    >>> convex_loss(np.zeros((1, 3)), np.array([[0.5, 0.5, 0]]), np.array([[False, False, True]]))
    (2.0, array([[-1., -1.,  2.]]))
    """
    short = np.maximum(0, 1 - np.sum(weights * scores, axis=1, keepdims=True))
    above = np.maximum(0, 1 + scores) * others
    return float(np.sum(short**2) + np.sum(above**2)), 2 * (above - short * weights)
