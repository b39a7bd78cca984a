"""The kernel members of a jury on the whole kernel matrix, and the forests next to them.

`nystroem` has the same two functions, `prepare` and `fit_outputs`, for many rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from appellate.core.problem import Problem
from appellate.evidence.scales import Scale
from appellate.methods.jury.members import Doubles, FittedMember, Replicas
from appellate.methods.jury.rounds import FitKernels, FitMember, NamedKernel, Outputs, mixture
from appellate.numerics.entries import Values
from appellate.numerics.kernels import Radial
from appellate.numerics.smoothers import KernelSmoother, Regressor
from appellate.numerics.threads import multiply

_DOUBLE_ROWS = 2_000  # up to here kernel matrices are in double precision


def prepare(problem: Problem, kernels: Sequence[NamedKernel], replicas: Replicas) -> FitKernels:
    """Invert the kernel matrices; return the function that fits the members to targets."""
    rows = problem.matrix.astype(np.float64, copy=False)
    dtype = np.float64 if problem.n_rows <= _DOUBLE_ROWS else np.float32
    members = []
    unit = None
    for name, kernel, ridge in kernels:
        if kernel.unit != unit:  # kernels of equal units follow each other
            unit = kernel.unit
            distances = unit.distances(rows)
            mean = unit.mean_distance(distances)
            distances = distances.astype(dtype, copy=False)
        function = kernel.at(mean)
        gram = function.from_distances(distances.copy())
        smoother = KernelSmoother(gram, ridge, rows, function)
        members.append(KernelMember.of(name, smoother, replicas))
    return partial(fit_outputs, members, replicas)


@dataclass(frozen=True, eq=False)
class KernelMember:
    """Kernel ridge regression whose replicas all come from one inverse.

    With B of `appellate.numerics.smoothers.KernelSmoother` (smoother ``S = I - ridge B``), a
    fold f and the rest a, the regression on a alone has the output ``H = -B_ff^-1 B_fa Q_a``
    on the fold, and ``B_aa - B_af B_ff^-1 B_fa`` in the place of B; leave-one-out is
    ``Q - B Q / diag(B)``. With the fold's targets set to H both are read off one product. The
    output of a replica on its only row is 0.

    Beyond 2,000 rows the kernel matrix and all that is made of it are in single precision. This
    changed no label and posteriors by 6e-4 at most in 14 fits on Lost, MSRCv2 and FG-NET. It
    halves time and memory.

    Cost: K + 1 products of n^2 l multiply-adds per round, after n^3 / 2K once. Memory: n^2 / 2
    for the inverse, n^2 / K for the folds.

    Attributes
    ----------
    name : str
        What it is called.
    matrix : ndarray, shape (n, n)
        B.
    diagonals : ndarray, shape (n, K + 1)
        Diagonal of what every replica has in the place of B; infinite if nothing is left of the
        replica without the row.
    factors : list of ndarray
        Cholesky factor of ``B_ff`` for every fold.
    function, rows, weights
        Those of the smoother, for models of new rows.
    """

    name: str
    matrix: NDArray[Any]
    diagonals: Doubles
    factors: list[NDArray[Any]]
    function: Radial | None
    rows: Any
    weights: NDArray[Any]

    @classmethod
    def of(cls, name: str, smoother: KernelSmoother, replicas: Replicas) -> KernelMember:
        """Make the member of a smoother of all rows."""
        matrix = smoother.matrix
        own = np.diag(matrix).astype(np.float64) if len(matrix) > 1 else np.array([np.inf])
        diagonals = np.repeat(own[:, np.newaxis], replicas.shape[1], axis=1)
        factors = []
        for k, rest, fold in replicas.folds():
            lines = matrix[fold]
            factor = la.cholesky(lines[:, fold], lower=True)  # L L' = B_ff
            across = la.solve_triangular(factor, lines[:, rest], lower=True, check_finite=False)
            diagonals[rest, k] -= np.einsum("fa,fa->a", across, across)
            if len(rest) < 2:  # nothing is left without the row
                diagonals[rest, k] = np.inf
            factors.append(factor)
        return cls(
            name, matrix, diagonals, factors, smoother.function, smoother.rows, smoother.weights
        )

    def output(self, targets: Doubles, replicas: Replicas) -> Doubles:
        """Learn from the targets of every replica, 0 on its fold; return (n, K + 1, l) scores."""
        out = targets.copy()
        for (k, _, fold), factor in zip(replicas.folds(), self.factors, strict=True):
            passed = _product(self.matrix[fold], targets[:, k])  # B_fa Q_a
            passed = passed.astype(factor.dtype, copy=False)
            out[fold, k] = -la.cho_solve((factor, True), passed, check_finite=False)
        product = _product(self.matrix, out.reshape(len(out), -1))
        out -= product.reshape(out.shape) / self.diagonals[:, :, np.newaxis]
        out[np.isinf(self.diagonals)] = 0
        return out

    def leave_one_out(self, targets: Doubles) -> Doubles:
        """Scores of all rows, (n, l), each without its own target."""
        return targets - _product(self.matrix, targets) / self.diagonals[:, :1]

    def model(self, targets: Doubles) -> Regressor:
        """Return the regression on (n, l) targets of all rows."""
        dual = _product(self.matrix, targets)
        return Regressor(self.function, self.rows, dual, self.weights @ targets)


def _product(matrix: NDArray[Any], values: Doubles) -> Doubles:
    """Multiply in the precision of the matrix."""
    return np.asarray(multiply(matrix, values.astype(matrix.dtype)), dtype=np.float64)


def fit_outputs(
    members: Sequence[KernelMember],
    replicas: Replicas,
    targets: list[Values],
    smooth: Doubles | None = None,
    forests: Sequence[tuple[str, FitMember]] = (),
    seed: int = 0,
) -> ArrayOutputs:
    """Let kernel members, and forests, learn from the targets of every replica.

    Parameters
    ----------
    members : sequence of KernelMember
        The kernel members.
    replicas : Replicas
        Which rows each replica has.
    targets : list of ndarray
        Targets of every replica, as candidate entries.
    smooth : ndarray, shape (l, l), default=None
        Shares the targets, and with them the scores, between neighbouring labels.
    forests : sequence of (str, callable), default=()
        Name and fit of further members that return such arrays.
    seed : int, default=0
        Seed of the forests.
    """
    dense = replicas.scatter(targets)
    if smooth is not None:
        dense = dense @ smooth
    arrays = [each.output(dense, replicas) for each in members]
    fitted = []
    for name, fit in forests:
        array, model = fit(dense, seed)
        arrays.append(array)
        fitted.append((name, model))
    held_out = [replicas.held_out(each) for each in arrays]
    return ArrayOutputs(
        targets=targets,
        rows=slice(None),
        evidence=replicas.evidence,
        held_out=held_out,
        replicas=replicas,
        arrays=arrays,
        members=members,
        dense=dense[:, 0],
        forests=fitted,
    )


@dataclass(frozen=True, eq=False)
class ArrayOutputs(Outputs):
    """Outputs of members that judge all rows at once; all rows are judged.

    Attributes
    ----------
    arrays : list of ndarray, shape (n, K + 1, l)
        Every member's output.
    members : sequence of KernelMember
        The kernel members.
    dense : ndarray, shape (n, l)
        Targets of the replica of all rows, smoothed.
    forests : list of (str, Trees)
        Names and models of the other members.
    """

    arrays: list[Doubles]
    members: Sequence[KernelMember]
    dense: Doubles
    forests: Sequence[tuple[str, Any]]

    def mix(self, scales: Sequence[Scale], weights: NDArray[Any]) -> list[Values]:
        """Mixture of the members at the candidates of every replica's own rows."""
        mixed = mixture(self.arrays, scales, weights)
        pairs = zip(self.replicas.rows, self.replicas.parts, strict=True)
        return [part.entries.gather(mixed[rows, k]) for k, (rows, part) in enumerate(pairs)]

    def everywhere(
        self, scales: Sequence[Scale], weights: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Mixtures on all rows, (n, l): held out, and with only the own target left out."""
        own = [each[:, 0] for each in self.arrays]
        return mixture(self.held_out, scales, weights), mixture(own, scales, weights)

    def fitted(self, scales: Sequence[Scale], weights: NDArray[Any]) -> list[FittedMember]:
        """Return the members as they judge new rows."""
        named = [(each.name, each.model(self.dense)) for each in self.members]
        parts = zip([*named, *self.forests], weights.tolist(), scales, strict=True)
        return [FittedMember(name, weight, scale, [one]) for (name, one), weight, scale in parts]
