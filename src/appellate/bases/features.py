"""Kernels as features, for the methods that train linear models on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import NDArray

from appellate.bases.ridge import KernelClassifier
from appellate.numerics.kernels import LinearKernel, check_magnitude, read_kernel
from appellate.numerics.smoothers import Regressor
from appellate.problem import Kernel, Problem

_JITTER = 1e-6  # of the diagonal: what keeps the factor of repeated rows


@dataclass(frozen=True)
class Features:
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


class FeatureClassifier(KernelClassifier):
    """Base class of the methods that train linear models on the features of a kernel."""

    def _kernels(self) -> list[tuple[Kernel, Any]]:
        linear = isinstance(read_kernel(self.kernel), LinearKernel)
        return [] if linear else [(self.kernel, None)]

    def _features(self, problem: Problem) -> Features:
        """Features of the kernel, of a size that does not depend on the unit of the rows.

        Linear: the rows, centred (unless sparse) and of mean squared length one. Gaussian: the
        Cholesky factor of the kernel matrix, or Nystroem features.
        """
        if not self._kernels():
            return _linear(problem)
        if problem.representation(self.kernel).kind == "nystroem":
            return _nystroem(problem, self.kernel)
        return _exact(problem, self.kernel)


def _linear(problem: Problem) -> Features:
    rows, dtype = problem.matrix, problem.dtype
    check_magnitude(rows)
    centre = None if sp.issparse(rows) else rows.mean(axis=0, dtype=np.float64)
    moved = rows.astype(np.float64) if centre is None else rows - centre
    squares = moved.multiply(moved) if sp.issparse(moved) else moved**2
    scale = np.sqrt(squares.sum() / problem.n_rows) or 1.0

    def regressor(coefficients: NDArray[Any], bias: NDArray[Any]) -> Regressor:
        return Regressor(None, None, coefficients / scale, bias.astype(dtype), centre)

    return Features(moved / scale, regressor)


def _exact(problem: Problem, kernel: Kernel) -> Features:
    function, gram = problem.gram(kernel)
    raised = gram.astype(np.float64)
    raised.flat[:: len(raised) + 1] += _JITTER
    factor = la.cholesky(raised, lower=True, overwrite_a=True)

    def regressor(coefficients: NDArray[Any], bias: NDArray[Any]) -> Regressor:
        dual = la.solve_triangular(factor, coefficients, lower=True, trans="T")
        return Regressor(function, problem.matrix, dual, bias.astype(problem.dtype))

    return Features(factor, regressor)


def _nystroem(problem: Problem, kernel: Kernel) -> Features:
    basis, dtype = problem.basis(kernel), problem.dtype
    scale = np.sqrt(basis.strengths)

    def regressor(coefficients: NDArray[Any], bias: NDArray[Any]) -> Regressor:
        level = bias - (basis.offset * scale) @ coefficients
        weights = (basis.turn * scale) @ coefficients
        return Regressor(basis.kernel, basis.landmarks, weights, level.astype(dtype))

    return Features(basis.features.toarray() * scale, regressor)
