"""Kernel ridge regression with a free bias, seen as one linear map on the training targets.

For fixed rows, kernel and ridge, the regression

    min over W, b of |Phi W + 1 b' - T|^2 + ridge |W|^2

has the training output ``S T`` with a *smoother* ``S`` that does not depend on the targets
``T``. Factor ``K + ridge I`` once, and every later regression is a product. ``S`` is
symmetric and ``S 1 = 1``. In the paper's notation (Eqs. KKT solution, kernel modeling
output) the training output is ``C - A/2``, so the kernel matrix is not needed again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from appellate.numerics.entries import CandidateEntries, Values
from appellate.numerics.kernels import Kernel, LinearKernel

Targets = Any  # an (n, l) ndarray or scipy.sparse.csr_array
CandidateMap = Callable[[Values], Values]

_BLOCK_ROWS = 512
_LARGEST_BLOCKS = 2  # in n x n matrices
_PREDICT_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Regressor:
    """What remains of a fitted regression: enough to score new rows.

    Attributes
    ----------
    kernel : Kernel or None
        None for primal coefficients, which multiply the features themselves.
    rows : ndarray, shape (n, q), or None
        Training rows of a kernel regression, or the landmarks among them.
    coefficients : ndarray, shape (n, l) or (q, l)
        Dual (kernel) or primal coefficients.
    intercept : ndarray, shape (l,)
        Bias of every label; scores have its dtype.
    centre : ndarray, shape (q,), or None
        Subtracted from the features before primal coefficients multiply them.
    """

    kernel: Kernel | None
    rows: NDArray[Any] | None
    coefficients: NDArray[Any]
    intercept: NDArray[Any]
    centre: NDArray[np.float64] | None = None

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """Score new rows, (m, l), in blocks whose kernel values or copies take 64 MiB at most."""
        out = np.empty((len(X), len(self.intercept)), dtype=self.intercept.dtype)
        widest = X.shape[1] if self.rows is None else max(self.rows.shape)
        for block in gen_batches(len(X), max(1, _PREDICT_BYTES // (8 * widest))):
            out[block] = self._features(X[block]) @ self.coefficients + self.intercept
        return out

    def _features(self, X: NDArray[Any]) -> NDArray[Any]:
        if self.kernel is not None and self.rows is not None:
            return self.kernel(X, self.rows)
        if self.centre is None:
            return X
        return np.asarray(X - self.centre, dtype=self.coefficients.dtype)


class Smoother(ABC):
    """The map from targets to training output of one ridge regression.

    Attributes
    ----------
    diagonal : ndarray, shape (n,)
        The diagonal of S: how much a sample's own target counts in its own output.
    """

    diagonal: NDArray[Any]

    @abstractmethod
    def training_output(self, targets: Targets) -> NDArray[Any]:
        """Return ``S @ targets``, (n, l)."""

    @abstractmethod
    def regressor(self, targets: Targets) -> Regressor:
        """Return the regression on these targets, ready for new rows."""

    @abstractmethod
    def regress(
        self, entries: CandidateEntries, values: Values, *, complement: bool = False
    ) -> tuple[NDArray[Any], Regressor]:
        """Return training output and regression on targets that are zero off the candidates.

        With `complement`, on one minus these targets.
        """

    @abstractmethod
    def _build_candidate_map(self, entries: CandidateEntries) -> CandidateMap:
        """Return the map of `on_candidates`, which must not refer to the smoother.

        The smoother keeps the map: a cycle would keep matrices and files beyond a fit.
        """

    def predict(self, X: NDArray[Any], targets: Targets) -> NDArray[Any]:
        """Return the output on new rows of the regression on these targets, (m, l)."""
        return self.regressor(targets).predict(X)

    def leave_one_out(self, targets: Targets) -> NDArray[Any]:
        """Return every row's output by the regression on all the other rows, (n, l).

        In closed form, ``(out_i - S_ii T_i) / (1 - S_ii)``; nothing is refitted.
        """
        if len(self.diagonal) < 2:
            raise ValueError("leave-one-out needs at least two rows, got 1.")
        own = self.diagonal[:, np.newaxis]
        dense = targets.toarray() if sp.issparse(targets) else targets
        out: NDArray[Any] = (self.training_output(targets) - own * dense) / (1 - own)
        return out

    def on_candidates(self, entries: CandidateEntries) -> CandidateMap:
        """Return the map from candidate entries of D to those of ``S @ D``.

        The map is kept, so that a base and its partner share it.
        """
        cached: tuple[CandidateEntries, CandidateMap] | None = getattr(self, "_cached", None)
        if cached is None or cached[0] is not entries:
            cached = self._cached = (entries, self._build_candidate_map(entries))
        return cached[1]


class KernelSmoother(Smoother):
    """The exact smoother of a kernel matrix.

    With ``Hi = (K + ridge I)^-1``, ``v = Hi 1`` and ``B = Hi - v v' / (1'v)``:
    ``S = I - ridge B``, dual coefficients ``B T``, bias ``v'T / (1'v)``. B is kept and not S:
    where S is close to I, ``(T - S T) / ridge`` would have no digits left.

    Cost: one Cholesky factorisation and one inverse, 2 n^3 / 3 multiply-adds together;
    a later training output is n^2 l. Memory: the one n x n matrix, overwritten in place; a
    candidate map gathers the blocks ``B[rows_j, rows_j]`` of the rows that have label j,
    n^2 c^2 / l entries for c candidates a row, and works on B itself where these would take
    more than two n x n matrices.

    Parameters
    ----------
    gram : ndarray, shape (n, n)
        Kernel matrix, C-contiguous. **Overwritten.**
    ridge : float
        Strictly positive.
    rows : ndarray, shape (n, q)
        The training rows, for later predictions.
    kernel : Kernel
        The function that made `gram`.

    Examples
    --------
    >>> import numpy as np
    >>> from appellate.numerics.kernels import LinearKernel
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> smoother = KernelSmoother(X @ X.T, 1e-9, X, LinearKernel())
    >>> smoother.predict(np.array([[3.0]]), np.array([[1.0], [3.0], [5.0]])).round(4)
    array([[7.]])
    """

    def __init__(
        self, gram: NDArray[Any], ridge: float, rows: NDArray[Any], kernel: Kernel
    ) -> None:
        self.ridge, self.rows, self.kernel = float(ridge), rows, kernel
        self.matrix = _invert_in_place(gram, ridge)
        row_sums = self.matrix.sum(axis=1)
        total = row_sums.sum()
        self.weights = row_sums / total  # the bias is weights @ targets
        for block in gen_batches(len(gram), _BLOCK_ROWS):
            self.matrix[block] -= np.outer(self.weights[block], row_sums)
        self.diagonal = 1 - self.ridge * np.einsum("ii->i", self.matrix)

    def training_output(self, targets: Targets) -> NDArray[Any]:  # noqa: D102
        return self._output(targets, self._dual(targets))

    def regressor(self, targets: Targets) -> Regressor:  # noqa: D102
        return self._regressor(targets, self._dual(targets))

    def regress(  # noqa: D102
        self, entries: CandidateEntries, values: Values, *, complement: bool = False
    ) -> tuple[NDArray[Any], Regressor]:
        targets = 1 - entries.scatter(values) if complement else entries.to_sparse(values)
        dual = self._dual(targets)
        return self._output(targets, dual), self._regressor(targets, dual)

    def _dual(self, targets: Targets) -> NDArray[Any]:
        if sp.issparse(targets):
            return np.ascontiguousarray((targets.T @ self.matrix).T)
        return np.asarray(self.matrix @ targets)

    def _output(self, targets: Targets, dual: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(targets - self.ridge * dual)

    def _regressor(self, targets: Targets, dual: NDArray[Any]) -> Regressor:
        return Regressor(self.kernel, self.rows, dual, self.weights @ targets)

    def _build_candidate_map(self, entries: CandidateEntries) -> CandidateMap:
        order, starts = entries.by_label
        sizes, matrix, ridge = np.diff(starts), self.matrix, self.ridge
        if np.sum(sizes.astype(float) ** 2) > _LARGEST_BLOCKS * matrix.size:
            return lambda values: values - ridge * entries.gather(matrix @ entries.scatter(values))
        blocks = np.empty(np.sum(sizes**2), dtype=matrix.dtype)
        _gather_blocks(matrix, entries.rows[order], starts, blocks)

        def apply(values: Values) -> Values:
            out = np.empty_like(values)
            out[order] = _apply_blocks(blocks, starts, values[order])
            out *= -ridge
            out += values
            return out

        return apply


class LinearSmoother(KernelSmoother):
    """The exact smoother of a linear kernel, for as many features as rows or more.

    The bias is free, so that rows may be centred, which keeps the digits of features that are
    far from zero, and any constant may be added to the kernel. That of the trace keeps the
    matrix, which is singular along the constant targets when rows are centred, invertible.

    Parameters
    ----------
    rows : ndarray, shape (n, q)
        The training rows.
    ridge : float
        Strictly positive.
    """

    def __init__(self, rows: NDArray[Any], ridge: float) -> None:
        self.centre = rows.mean(axis=0, dtype=np.float64)
        centred = np.asarray(rows - self.centre, dtype=rows.dtype)
        gram = centred @ centred.T
        gram += np.trace(gram) / len(gram)
        super().__init__(gram, ridge, centred, LinearKernel())

    def _regressor(self, targets: Targets, dual: NDArray[Any]) -> Regressor:
        bias = self.weights @ targets
        return Regressor(None, None, self.rows.T @ dual, bias, self.centre)


@nb.njit(cache=True)
def _gather_blocks(matrix, rows, starts, blocks):  # type: ignore[no-untyped-def]
    """Copy ``matrix[rows_j, rows_j]`` of every label j, one block after another."""
    position = 0
    for j in range(starts.size - 1):
        for a in range(starts[j], starts[j + 1]):
            for b in range(starts[j], starts[j + 1]):
                blocks[position] = matrix[rows[a], rows[b]]
                position += 1


@nb.njit(cache=True, fastmath={"reassoc", "contract"})
def _apply_blocks(blocks, starts, values):  # type: ignore[no-untyped-def]
    """Multiply every block by its part of the values; one thread, no call overhead."""
    out = np.empty_like(values)
    position = 0
    for j in range(starts.size - 1):
        part = values[starts[j] : starts[j + 1]]
        for a in range(starts[j], starts[j + 1]):
            total = values.dtype.type(0)
            for b in range(part.size):
                total += blocks[position + b] * part[b]
            out[a] = total
            position += part.size
    return out


def _invert_in_place(gram: NDArray[Any], ridge: float) -> NDArray[Any]:
    """Overwrite a symmetric positive matrix by the inverse of ``gram + ridge I``."""
    n = len(gram)
    gram.flat[:: n + 1] += ridge
    potrf, potri = la.get_lapack_funcs(("potrf", "potri"), (gram,))
    # LAPACK reads columns first: its lower triangle is the upper one of the C-ordered matrix.
    factor, info = potrf(gram.T, lower=1, clean=0, overwrite_a=1)
    if info == 0:
        inverse, info = potri(factor, lower=1, overwrite_c=1)
    if info != 0:
        digits = " or pass float64 features" if gram.dtype == np.float32 else ""
        raise np.linalg.LinAlgError(
            f"kernel matrix + {ridge:g} I is not positive definite in {gram.dtype}; "
            f"choose a larger regularization{digits}."
        )
    out: NDArray[Any] = inverse.T
    for block in gen_batches(n, _BLOCK_ROWS):
        out[block.stop :, block] = out[block, block.stop :].T
        corner = out[block, block]
        corner[np.tril_indices(len(corner), -1)] = corner.T[np.tril_indices(len(corner), -1)]
    return out
