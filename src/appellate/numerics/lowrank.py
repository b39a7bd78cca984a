"""Smoothers of low rank: ridge regression on fewer features than rows."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import NDArray

from appellate.numerics.entries import CandidateEntries, Values
from appellate.numerics.features import Features
from appellate.numerics.nystroem import Basis, sample_rows
from appellate.numerics.plan import SAMPLE_ROWS
from appellate.numerics.ridge import CandidateMap, Regressor, Smoother, Targets
from appellate.numerics.rows import Rows


class LowRankSmoother(Smoother):
    """``S = 1 1'/n + Z diag(weights) Z'`` of features Z whose columns sum to zero.

    A candidate map is one pass over the features that gathers candidate entries into (l, r)
    coefficients and one that evaluates candidate entries only: n c r multiply-adds each for c
    candidates a row, linear in n; nothing of size n x n or n x l is formed.

    Parameters
    ----------
    features : Features
        Z, (n, r).
    weights : ndarray, shape (r,)
        How much of every feature remains.
    dtype : dtype
        Of outputs.
    """

    def __init__(self, features: Features, weights: NDArray[Any], dtype: Any) -> None:
        self.features, self.weights, self.dtype = features, weights, np.dtype(dtype)

    @cached_property
    def diagonal(self) -> NDArray[Any]:  # type: ignore[override]
        """The diagonal of S, (n,)."""
        lengths = self.features.weighted_lengths(self.weights) + 1 / self.features.shape[0]
        return lengths.astype(self.dtype)

    def training_output(self, targets: Targets) -> NDArray[Any]:  # noqa: D102
        return self._output(*self._project(targets))

    def regressor(self, targets: Targets) -> Regressor:  # noqa: D102
        return self._regressor(*self._project(targets))

    def regress(  # noqa: D102
        self, entries: CandidateEntries, values: Values, *, complement: bool = False
    ) -> tuple[NDArray[Any], Regressor]:
        coefficients, mean = _project_entries(self.features, self.weights, entries, values)
        if complement:  # S (1 - D) = 1 - S D
            coefficients, mean = -coefficients, 1 - mean
        return self._output(coefficients, mean), self._regressor(coefficients, mean)

    def _build_candidate_map(self, entries: CandidateEntries) -> CandidateMap:
        features, weights = self.features, self.weights

        def apply(values: Values) -> Values:
            coefficients, mean = _project_entries(features, weights, entries, values)
            return features.evaluate(
                entries, coefficients.astype(values.dtype), mean.astype(values.dtype)
            )

        return apply

    @abstractmethod
    def _regressor(self, coefficients: NDArray[Any], mean: NDArray[Any]) -> Regressor:
        """Model of (l, r) coefficients of the features, and the mean target of every label."""

    def _output(self, coefficients: NDArray[Any], mean: NDArray[Any]) -> NDArray[Any]:
        return self.features.product(coefficients.astype(self.dtype), mean.astype(self.dtype))

    def _project(self, targets: Targets) -> tuple[NDArray[Any], NDArray[Any]]:
        dense = targets.toarray() if sp.issparse(targets) else targets
        return self.features.gather_dense(dense) * self.weights, dense.mean(axis=0)


def _project_entries(
    features: Features, weights: NDArray[Any], entries: CandidateEntries, values: Values
) -> tuple[NDArray[Any], NDArray[Any]]:
    n, l = entries.shape
    mean = np.bincount(entries.labels, weights=values, minlength=l) / n
    return features.gather(entries, values) * weights, mean


class FeatureSmoother(LowRankSmoother):
    """The smoother of a linear model on given features, for fewer features than rows.

    With centred features F scaled to deviation 1, ``X - 1 c' = F diag(d)``, and
    ``L L' = F'F + ridge diag(1 / d^2)``: ``Z = F L'^-1`` and ``S = 1 1' / n + Z Z'``. Nothing of
    size n x n is formed; centre and scale keep the digits of features that are far from zero
    or of very different sizes.

    Cost: n q^2 once, then n q l a training output. Memory: one (n, q) copy, in `cache_dir` if
    it is given.

    Parameters
    ----------
    rows : Rows
        Features of the training rows.
    ridge : float
        Strictly positive.
    cache_dir : str or path, default=None
        Folder for the copy.
    """

    def __init__(self, rows: Rows, ridge: float, cache_dir: Any = None) -> None:
        (n, q), sample = rows.shape, sample_rows(rows, SAMPLE_ROWS).astype(np.float64)
        centre, scale = sample.mean(axis=0), sample.std(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        make = partial(_standardized, centre=centre, scale=scale, dtype=rows.dtype)
        features = rows.features(make, q, cache_dir, rows.dtype)
        total, gram = features.moments()
        gram -= np.outer(total, total / n)
        factor = _factor(gram, ridge / scale**2)
        whiten = la.solve_triangular(factor, np.eye(q), lower=True).T  # L'^-1
        features.turn(whiten, total / n @ whiten)
        self.centre, self.primal = centre + total / n * scale, whiten / scale[:, np.newaxis]
        super().__init__(features, np.ones(q), rows.dtype)

    def _regressor(self, coefficients: NDArray[Any], mean: NDArray[Any]) -> Regressor:
        weights = (self.primal @ coefficients.T).astype(self.dtype)
        return Regressor(None, None, weights, mean.astype(self.dtype), self.centre)


def _standardized(
    block: NDArray[Any], centre: NDArray[np.float64], scale: NDArray[np.float64], dtype: Any
) -> NDArray[Any]:
    return np.asarray((block - centre) / scale, dtype=dtype)


def _factor(gram: NDArray[np.float64], ridges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cholesky factor of ``gram + diag(ridges)``, raised where rounding makes it indefinite."""
    raised, largest = 0.0, max(float(np.diag(gram).max()), np.finfo(np.float64).tiny)
    while True:
        try:
            shifted = gram + np.diag(ridges + raised)
            return np.asarray(la.cholesky(shifted, lower=True, overwrite_a=True))
        except la.LinAlgError:
            if raised > largest:
                raise
            raised = max(10 * raised, len(gram) * np.finfo(np.float64).eps * largest)


class NystroemSmoother(LowRankSmoother):
    """The smoother of Nystroem features; that of the kernel itself if all rows are landmarks.

    Parameters
    ----------
    basis : Basis
        Features of the rows; models of different ridges share it.
    ridge : float
        Strictly positive.
    dtype : dtype
        Of outputs; the features are float32, the small algebra is done in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from appellate.numerics.kernels import GaussianKernel
    >>> from appellate.numerics.nystroem import nystroem_basis
    >>> from appellate.numerics.rows import ArrayRows
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> basis = nystroem_basis(ArrayRows(X), X, GaussianKernel(1.0))
    >>> smoother = NystroemSmoother(basis, 1e-9, X.dtype)
    >>> smoother.predict(X, np.array([[1.0], [3.0], [4.0]])).round(4)
    array([[1.],
           [3.],
           [4.]])
    """

    def __init__(self, basis: Basis, ridge: float, dtype: Any) -> None:
        self.basis = basis
        super().__init__(basis.features, basis.strengths / (basis.strengths + ridge), dtype)

    def _regressor(self, coefficients: NDArray[Any], mean: NDArray[Any]) -> Regressor:
        basis = self.basis
        weights = basis.turn @ coefficients.T  # (m, l)
        intercept = np.asarray(mean - basis.offset @ coefficients.T, dtype=self.dtype)
        return Regressor(basis.kernel, basis.landmarks, weights, intercept)
