"""What the kernel classifiers share: ridge and final regression, or features of the kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import NDArray

from appellate.core.base import PartialLabelClassifier
from appellate.core.problem import Kernel, Problem
from appellate.core.results import Model
from appellate.numerics.entries import Values
from appellate.numerics.kernels import LinearKernel, check_magnitude, read_kernel
from appellate.numerics.smoothers import Regressor, leave_one_out

_JITTER = 1e-6  # of the diagonal: what keeps the factor of repeated rows


@dataclass(frozen=True)
class RidgeModel(Model):
    """A ridge regression on the final confidence, or on what a label is *not*.

    Attributes
    ----------
    regressor : Regressor
        Scores new rows.
    complement : bool
        Whether it regresses on one minus the confidence, and so do its scores.
    targets : ndarray, shape (n, l), or None
        The final confidence, of which the scores are the regression.
    diagonal : ndarray, shape (n,), or None
        How much a training row's own target counts in its score.
    """

    regressor: Regressor
    complement: bool
    targets: NDArray[Any] | None
    diagonal: NDArray[Any] | None

    def decision(self, X: Any) -> NDArray[Any]:
        """Score new rows by the regression, (m, l)."""
        scores = self.regressor.predict(X)
        return 1 - scores if self.complement else scores

    def leave_one_out(self) -> NDArray[Any]:
        """Score every training row by the regression on all the other rows, (n, l)."""
        output = np.asarray(self.training_output)
        if len(output) < 2:
            raise ValueError("leave-one-out needs two training rows or more; got n_samples = 1.")
        return leave_one_out(output, np.asarray(self.targets), np.asarray(self.diagonal))

    def light(self) -> Self:
        """Return the model without its training rows."""
        return replace(super().light(), targets=None, diagonal=None)


class KernelClassifier(PartialLabelClassifier):
    """Base class of the methods whose model is a ridge regression on the confidence.

    A subclass has the parameters `kernel` and `regularization`, and implements `_solve`.
    """

    kernel: Kernel
    regularization: float

    #: Whether the model regresses on what a label is *not*, one minus the confidence.
    _complement = False

    def _kernels(self) -> list[tuple[Kernel, Any]]:
        return [(self.kernel, self.regularization)]

    def _regress(self, problem: Problem, confidence: Values) -> RidgeModel:
        """Make the model of the final confidence."""
        entries = problem.entries
        smoother = problem.smoother(self.kernel, self.regularization)
        scores, regressor = smoother.regress(entries, confidence, complement=self._complement)
        targets = entries.scatter(confidence)
        return RidgeModel(scores, regressor, self._complement, targets, smoother.diagonal)


@dataclass(frozen=True)
class FeatureMap:
    """Rows whose inner products are a kernel, and the way back to new rows.

    Attributes
    ----------
    matrix : ndarray or sparse array, shape (n, r)
        One row of features a training row.
    regressor : callable
        Coefficients (r, m) and bias (m,) of these features -> `Regressor` of the rows.
    """

    matrix: Any
    regressor: Callable[[NDArray[Any], NDArray[Any]], Regressor]


class FeatureClassifier(PartialLabelClassifier):
    """Base class of the methods that train on a kernel or its features, without a smoother.

    A subclass has the parameter `kernel`, and implements `_solve`.
    """

    kernel: Kernel

    def _kernels(self) -> list[tuple[Kernel, Any]]:
        linear = isinstance(read_kernel(self.kernel), LinearKernel)
        return [] if linear else [(self.kernel, None)]

    def _features(self, problem: Problem) -> FeatureMap:
        """Features of the kernel, of a size that does not depend on the unit of the rows.

        Linear: the rows, centred (unless sparse) and of mean squared length one. Gaussian: the
        Cholesky factor of the kernel matrix, or Nystroem features.
        """
        dtype = problem.dtype
        if not self._kernels():
            rows = problem.matrix
            check_magnitude(rows)
            centre = None if sp.issparse(rows) else rows.mean(axis=0, dtype=np.float64)
            moved = rows.astype(np.float64) if centre is None else rows - centre
            squares = moved.multiply(moved) if sp.issparse(moved) else moved**2
            size = np.sqrt(squares.sum() / problem.n_rows) or 1.0

            def linear(coefficients: NDArray[Any], bias: NDArray[Any]) -> Regressor:
                return Regressor(None, None, coefficients / size, bias.astype(dtype), centre)

            return FeatureMap(moved / size, linear)
        if problem.representation(self.kernel).kind == "nystroem":
            basis = problem.basis(self.kernel)
            scale = np.sqrt(basis.strengths)

            def nystroem(coefficients: NDArray[Any], bias: NDArray[Any]) -> Regressor:
                level = bias - (basis.offset * scale) @ coefficients
                weights = (basis.turn * scale) @ coefficients
                return Regressor(basis.kernel, basis.landmarks, weights, level.astype(dtype))

            return FeatureMap(basis.features.toarray() * scale, nystroem)
        function, gram = problem.gram(self.kernel)
        raised = gram.copy()
        if dtype == np.float32:  # whose rounding is larger than the jitter
            rows = problem.matrix.astype(np.float64)
            raised = function(rows, rows)
        raised.flat[:: len(raised) + 1] += _JITTER
        factor = la.cholesky(raised, lower=True, overwrite_a=True)

        def exact(coefficients: NDArray[Any], bias: NDArray[Any]) -> Regressor:
            dual = la.solve_triangular(factor, coefficients, lower=True, trans="T")
            return Regressor(function, problem.matrix, dual, bias.astype(dtype))

        return FeatureMap(factor, exact)
