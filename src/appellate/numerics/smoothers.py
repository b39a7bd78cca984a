"""Ridge regression with a free bias, seen as one linear map on the training targets.

For fixed rows, kernel and ridge, the regression

    min over W, b of |Phi W + 1 b' - T|^2 + ridge |W|^2

has the training output ``S T`` with a *smoother* ``S`` that does not depend on the targets
``T``. Factor ``K + ridge I`` once, and every later regression is a product. ``S`` is
symmetric and ``S 1 = 1``. In the paper's notation (Eqs. KKT solution, kernel modeling
output) the training output is ``C - A/2``, so the kernel matrix is not needed again.

With fewer features than rows, ``S = 1 1'/n + Z diag(weights) Z'`` for features Z whose columns
sum to zero: nothing of size n x n is formed.

Nystroem features: a kernel of n rows by way of m landmarks among them. With the kernel matrix
``K_mm = L L'`` of the landmarks and ``K_nm`` of all rows with them, the features
``F = K_nm L'^-1`` have the inner products ``F F' = K_nm K_mm^-1 K_mn``, which is the kernel
matrix itself where all rows are landmarks [1]_. scikit-learn's `Nystroem` makes the same
features up to a rotation; here they are made block by block, and turned so that the centred
features are orthonormal: ``F - 1 f' = Z diag(sqrt(s)) V'``. In these coordinates the ridge
smoother is

    S = 1 1'/n + Z diag(s / (s + ridge)) Z'

for every ridge, so that models of different ridges share the features Z.

References
----------
.. [1] Williams, Seeger (2000). Using the Nystroem method to speed up kernel machines. NIPS.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numba as nb
import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from appellate.numerics import passes
from appellate.numerics.blocks import Blocks
from appellate.numerics.entries import CandidateEntries, Values
from appellate.numerics.kernels import Radial, check_magnitude

CandidateMap = Callable[[Values], Values]

SAMPLE_ROWS = 4096  # whose mean distance stands for that of all
_BATCH_BYTES = 8 * 2**20
_BLOCK_ROWS = 512
_LARGEST_BLOCKS = 2  # in n x n matrices
_PREDICT_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Regressor:
    """What remains of a fitted regression: enough to score new rows.

    Attributes
    ----------
    kernel : Radial or None
        None for primal coefficients, which multiply the features themselves.
    rows : ndarray or sparse array, shape (n, q), or None
        Training rows of a kernel regression, or the landmarks among them.
    coefficients : ndarray, shape (n, l) or (q, l)
        Dual (kernel) or primal coefficients.
    intercept : ndarray, shape (l,)
        Bias of every label; scores have its dtype.
    centre : ndarray, shape (q,), or None
        Subtracted from the features before primal coefficients multiply them.
    """

    kernel: Radial | None
    rows: Any
    coefficients: NDArray[Any]
    intercept: NDArray[Any]
    centre: NDArray[np.float64] | None = None

    def predict(self, X: Any) -> NDArray[Any]:
        """Score new rows, (m, l), in blocks whose kernel values or copies take 64 MiB at most.

        Sparse rows stay sparse if the coefficients are primal, or if the training rows are sparse.
        """
        if sp.issparse(X) and self.rows is None:
            shift = 0.0 if self.centre is None else self.centre @ self.coefficients
            scores = X @ self.coefficients + (self.intercept - shift)
            return np.asarray(scores, dtype=self.intercept.dtype)
        out = np.empty((X.shape[0], len(self.intercept)), dtype=self.intercept.dtype)
        widest = X.shape[1] if self.rows is None else max(self.rows.shape)
        for block in gen_batches(len(out), max(1, _PREDICT_BYTES // (8 * widest))):
            part = X[block]
            if sp.issparse(part) and not sp.issparse(self.rows):
                part = part.toarray()
            if self.kernel is not None and self.rows is not None:
                part = self.kernel(part, self.rows)
            elif self.centre is not None:
                part = np.asarray(part - self.centre, dtype=self.coefficients.dtype)
            out[block] = part @ self.coefficients + self.intercept
        return out


def leave_one_out(
    output: NDArray[Any], targets: NDArray[Any], diagonal: NDArray[Any]
) -> NDArray[Any]:
    """Compute the output on every row of the regression on all the other rows.

    ``(output_i - S_ii t_i) / (1 - S_ii)`` for a smoother S whose output is ``S t``; nothing is
    refitted.

    Parameters
    ----------
    output : ndarray, shape (n, l)
        Output of the regression on all rows.
    targets : ndarray, shape (n, l)
        Its targets.
    diagonal : ndarray, shape (n,)
        Diagonal of the smoother. If an entry is 1, the row alone decides its output; the result
        is then large but finite.

    Returns
    -------
    ndarray, shape (n, l)

    Examples
    --------
    The regression on the mean has the smoother ``1 / n``, and leaves the mean of the others:

    >>> import numpy as np
    >>> targets = np.array([[1.0], [2.0], [6.0]])
    >>> leave_one_out(np.full((3, 1), 3.0), targets, np.full(3, 1 / 3)).ravel()
    array([4. , 3.5, 1.5])
    """
    own = diagonal[:, np.newaxis]
    return np.asarray((output - own * targets) / np.maximum(1 - own, np.finfo(own.dtype).eps))


class KernelSmoother:
    """The exact smoother of a kernel matrix.

    With ``Hi = (K + ridge I)^-1``, ``v = Hi 1`` and ``B = Hi - v v' / (1'v)``:
    ``S = I - ridge B``, dual coefficients ``B T``, bias ``v'T / (1'v)``. B is kept and not S:
    where S is close to I, ``(T - S T) / ridge`` would have no digits left.

    Cost: one Cholesky factorisation and one inverse, 2 n^3 / 3 multiply-adds together;
    a later training output is n^2 l. Memory: the one n x n matrix, overwritten in place; a
    candidate map gathers the blocks ``B[rows_j, rows_j]`` of the rows that have label j,
    n^2 c^2 / l entries for c candidates per row, and works on B itself if these would take
    more than two n x n matrices.

    Parameters
    ----------
    gram : ndarray, shape (n, n)
        Kernel matrix, C-contiguous. **Overwritten.**
    ridge : float
        Strictly positive.
    rows : ndarray, shape (n, q)
        The training rows, for later predictions.
    function : Radial or None
        What made `gram`, for later predictions.

    Attributes
    ----------
    matrix : ndarray, shape (n, n)
        B.
    weights : ndarray, shape (n,)
        The bias is ``weights @ targets``.
    diagonal : ndarray, shape (n,)
        The diagonal of S: how much a sample's own target counts in its own output.

    Examples
    --------
    >>> import numpy as np
    >>> from appellate.numerics.kernels import Gaussian
    >>> X, kernel = np.array([[0.0], [1.0], [2.0]]), Gaussian(1.0)
    >>> smoother = KernelSmoother(kernel(X, X), 1e-9, X, kernel)
    >>> entries = CandidateEntries(np.ones((3, 1), dtype=bool))
    >>> _, regressor = smoother.regress(entries, np.array([1.0, 3.0, 5.0]))
    >>> regressor.predict(np.array([[1.0]])).round(4)
    array([[3.]])
    """

    def __init__(
        self, gram: NDArray[Any], ridge: float, rows: Any, function: Radial | None
    ) -> None:
        self.ridge = float(ridge)
        self.rows = rows
        self.function = function
        n, digits = len(gram), " or pass float64 features" if gram.dtype == np.float32 else ""
        gram.flat[:: n + 1] += ridge
        potrf, potri = la.get_lapack_funcs(("potrf", "potri"), (gram,))
        # LAPACK reads columns first: its lower triangle is the upper one of the C-ordered matrix.
        factor, info = potrf(gram.T, lower=1, clean=0, overwrite_a=1)
        if info == 0:
            inverse, info = potri(factor, lower=1, overwrite_c=1)
        if info != 0:
            raise np.linalg.LinAlgError(
                f"kernel matrix + {ridge:g} I is not positive definite in {gram.dtype}; "
                f"choose a larger regularization{digits}."
            )
        self.matrix: NDArray[Any] = inverse.T
        for block in gen_batches(n, _BLOCK_ROWS):  # the lower triangle mirrors the upper
            self.matrix[block.stop :, block] = self.matrix[block, block.stop :].T
            corner = self.matrix[block, block]
            corner[:] = np.triu(corner) + np.triu(corner, 1).T
        row_sums = self.matrix.sum(axis=1)
        total = row_sums.sum()
        self.weights = row_sums / total
        for block in gen_batches(len(gram), _BLOCK_ROWS):
            self.matrix[block] -= np.outer(self.weights[block], row_sums)
        self.diagonal = 1 - self.ridge * np.einsum("ii->i", self.matrix)

    def regress(
        self, entries: CandidateEntries, values: Values, *, complement: bool = False
    ) -> tuple[NDArray[Any], Regressor]:
        """Return training output and regression on targets that are zero off the candidates.

        With `complement` the regression is on one minus these targets; the output is still that
        of the targets themselves.
        """
        targets: Any
        if complement:
            targets = 1 - entries.scatter(values)
            dual = self.matrix @ targets
        else:
            targets = entries.to_sparse(values)
            dual = np.ascontiguousarray((targets.T @ self.matrix).T)
        output = np.asarray(targets - self.ridge * dual)
        regressor = Regressor(self.function, self.rows, dual, self.weights @ targets)
        return 1 - output if complement else output, regressor

    def on_candidates(self, entries: CandidateEntries) -> CandidateMap:
        """Return the map from candidate entries of D to those of ``S @ D``.

        It does not refer to the smoother: whoever keeps only the map gives up the rest.
        """
        order, starts = entries.by_label
        sizes = np.diff(starts)
        matrix = self.matrix
        ridge = self.ridge
        if np.sum(sizes.astype(float) ** 2) > _LARGEST_BLOCKS * matrix.size:
            return lambda values: values - ridge * entries.gather(matrix @ entries.scatter(values))
        gathered, position = np.empty(np.sum(sizes**2), dtype=matrix.dtype), 0
        for rows in np.split(entries.rows[order], starts[1:-1]):
            block = matrix[np.ix_(rows, rows)].ravel()
            gathered[position : position + block.size] = block
            position += block.size
        return lambda values: values - ridge * _apply_blocks(gathered, starts, order, values)


class LinearSmoother(KernelSmoother):
    """The exact smoother of a linear kernel, for as many features as rows or more.

    The bias is free, so that rows may be centred, which keeps the digits of features that are
    far from zero, and any constant may be added to the kernel. That of the trace keeps the
    matrix, which is singular along the constant targets when rows are centred, invertible.
    Sparse rows are not centred themselves, only their inner products are.

    Parameters
    ----------
    rows : ndarray or scipy.sparse matrix, shape (n, q)
        The training rows.
    ridge : float
        Strictly positive.
    """

    def __init__(self, rows: Any, ridge: float) -> None:
        check_magnitude(rows)
        if sp.issparse(rows):
            self.centre = np.asarray(rows.mean(axis=0, dtype=np.float64)).ravel()
            along = rows @ self.centre
            gram = (rows @ rows.T).toarray() - along - along[:, np.newaxis]
            gram = np.ascontiguousarray(gram + self.centre @ self.centre, dtype=rows.dtype)
        else:
            self.centre = rows.mean(axis=0, dtype=np.float64)
            rows = np.asarray(rows - self.centre, dtype=rows.dtype)
            gram = rows @ rows.T
        gram += np.trace(gram) / len(gram)
        super().__init__(gram, ridge, rows, None)

    def regress(  # noqa: D102
        self, entries: CandidateEntries, values: Values, *, complement: bool = False
    ) -> tuple[NDArray[Any], Regressor]:
        output, found = super().regress(entries, values, complement=complement)
        coefficients = self.rows.T @ found.coefficients
        if sp.issparse(self.rows):
            coefficients -= np.outer(self.centre, found.coefficients.sum(axis=0))
            coefficients = coefficients.astype(self.rows.dtype, copy=False)
        return output, Regressor(None, None, coefficients, found.intercept, self.centre)


class LowRankSmoother:
    """``S = 1 1'/n + Z diag(weights) Z'`` of features Z whose columns sum to zero.

    A candidate map is one pass over the features that gathers candidate entries into (l, r)
    coefficients and one that evaluates candidate entries only: n c r multiply-adds each for c
    candidates per row, linear in n; nothing of size n x n or n x l is formed.

    Parameters
    ----------
    features : Blocks
        Z, (n, r).
    weights : ndarray, shape (r,)
        How much of every feature remains.
    dtype : dtype
        Type of the outputs.
    """

    def __init__(self, features: Blocks, weights: NDArray[Any], dtype: Any) -> None:
        self.features = features
        self.weights = weights
        self.dtype = np.dtype(dtype)

    @cached_property
    def diagonal(self) -> NDArray[Any]:
        """The diagonal of S, (n,)."""
        lengths = passes.weighted_lengths(self.features, self.weights) + 1 / len(self.features)
        return lengths.astype(self.dtype)

    def regress(  # noqa: D102
        self, entries: CandidateEntries, values: Values, *, complement: bool = False
    ) -> tuple[NDArray[Any], Regressor]:
        placed = passes.lay_out(self.features, entries)
        coefficients, mean = _project(self.features, self.weights, placed, values)
        if complement:  # S (1 - D) = 1 - S D
            coefficients, mean = -coefficients, 1 - mean
        kept = coefficients.astype(self.dtype), mean.astype(self.dtype)
        output = passes.product(self.features, *kept)
        return 1 - output if complement else output, self._regressor(coefficients, mean)

    def on_candidates(self, entries: CandidateEntries) -> CandidateMap:  # noqa: D102
        features, weights = self.features, self.weights
        placed = passes.lay_out(features, entries)

        def apply(values: Values) -> Values:
            parts = _project(features, weights, placed, values)
            return passes.evaluate_kernel(
                features, placed, *(p.astype(values.dtype) for p in parts)
            )

        return apply

    @abstractmethod
    def _regressor(self, coefficients: NDArray[Any], mean: NDArray[Any]) -> Regressor:
        """Model of (l, r) coefficients of the features, and the mean target of every label."""


def _project(
    features: Blocks, weights: NDArray[Any], placed: passes.Placed, values: Values
) -> tuple[NDArray[Any], NDArray[Any]]:
    n, l = placed[0].shape
    mean = np.bincount(placed[0].labels, weights=values, minlength=l) / n
    return passes.gather(features, placed, values) * weights, mean


class FeatureSmoother(LowRankSmoother):
    """The smoother of a linear model on given features, for fewer features than rows.

    With centred features F scaled to deviation 1, ``X - 1 c' = F diag(d)``, and
    ``L L' = F'F + ridge diag(1 / d^2)``: ``Z = F L'^-1`` and ``S = 1 1' / n + Z Z'``. Nothing of
    size n x n is formed; centre and scale keep the digits of features that are far from zero
    or of very different sizes.

    Cost: n q^2 once, then n q l a training output. Memory: one (n, q) copy, in `cache_dir` if
    it is given; sparse rows are dense in it.

    Parameters
    ----------
    rows : Blocks
        Features of the training rows.
    ridge : float
        Strictly positive.
    cache_dir : str or path, default=None
        Folder for the copy.
    """

    def __init__(self, rows: Blocks, ridge: float, cache_dir: Any = None) -> None:
        n, q = rows.shape
        sample = sample_rows(rows, SAMPLE_ROWS).astype(np.float64)
        check_magnitude(sample)
        centre, scale = sample.mean(axis=0), sample.std(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        make = partial(_standardized, centre=centre, scale=scale, dtype=rows.dtype)
        features = rows.make(make, q, rows.dtype, cache_dir)
        total, gram = passes.moments(features)
        gram -= np.outer(total, total / n)
        factor = _factor(gram, ridge / scale**2)
        whiten = la.solve_triangular(factor, np.eye(q), lower=True).T  # L'^-1
        passes.turn(features, whiten, total / n @ whiten)
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


@dataclass(frozen=True)
class Basis:
    """Orthonormal centred features of the training rows, and how new rows get theirs.

    Attributes
    ----------
    features : Blocks
        Z, (n, r), with orthonormal columns that sum to zero.
    strengths : ndarray, shape (r,)
        s, the eigenvalues of the centred features' Gram matrix.
    kernel : Radial
        Kernel that the features approximate.
    landmarks : ndarray, shape (m, q)
        Rows that the kernel compares with.
    turn : ndarray, shape (m, r)
        ``Z = k(X, landmarks) turn - offset``.
    offset : ndarray, shape (r,)
        See `turn`.
    common : float
        The constant part that all features of the training rows share:
        ``F F' = (Z + 1 offset') diag(s) (Z + 1 offset')' + common``. A free bias takes it up.
    rest : ndarray, shape (m,)
        ``k(X, landmarks) rest`` is `common` for every training row.
    """

    features: Blocks
    strengths: NDArray[np.float64]
    kernel: Radial
    landmarks: NDArray[np.float64]
    turn: NDArray[np.float64]
    offset: NDArray[np.float64]
    common: float
    rest: NDArray[np.float64]


def sample_rows(rows: Blocks, size: int) -> NDArray[Any]:
    """Return a fixed uniform sample of the rows, in their order; all of them if they are few.

    Examples
    --------
    >>> import numpy as np
    >>> from appellate.numerics.blocks import ArrayBlocks
    >>> sample_rows(ArrayBlocks(np.array([[1.0], [2.0]])), 5)
    array([[1.],
           [2.]])
    """
    n = len(rows)
    indices = np.arange(n)
    if size < n:
        indices = np.sort(np.random.default_rng(0).choice(n, size, replace=False, shuffle=False))
    return rows.take(indices)


def choose_landmarks(
    rows: Blocks, n_landmarks: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draw landmarks from the rows, uniformly, and rows that represent all in mean distances.

    Parameters
    ----------
    rows : Blocks
        The training rows.
    n_landmarks : int
        At most so many; all rows if they are fewer.

    Returns
    -------
    ndarray, shape (m, q)
        The landmarks.
    ndarray, shape (s, q)
        A sample of 4096 rows, or all if they are fewer.
    """
    m = min(n_landmarks, len(rows))
    sample = sample_rows(rows, max(SAMPLE_ROWS, 4 * m))
    rng = np.random.RandomState(0)
    some = sample[np.sort(rng.permutation(len(sample))[:SAMPLE_ROWS])].astype(np.float64)
    if m < len(rows):
        sample = sample[np.sort(rng.permutation(len(sample))[:m])]
    return sample.astype(np.float64), some


def nystroem_basis(
    rows: Blocks, landmarks: NDArray[np.float64], kernel: Radial, cache_dir: Any = None
) -> Basis:
    """Make the features of all rows from their kernel values with the landmarks.

    Landmarks that add nothing to the others (duplicates among them) are left out.

    Cost: n m kernel values and n m^2 multiply-adds in double precision, n m^2 in single, and
    some 10 m^3, in blocks of rows. Memory: n m features in float32, in `cache_dir` if it is
    given.
    """
    factor, order, rank, _ = la.lapack.dpstrf(kernel(landmarks, landmarks), lower=1)
    landmarks = landmarks[order[:rank] - 1]  # those that differ, the most different first
    factor = np.asfortranarray(np.tril(factor[:rank, :rank]))
    # Features are stored about a centre near their mean, so that single precision keeps the
    # digits in which rows differ; the landmarks' own features are the rows of the factor.
    centre = factor.mean(axis=0)
    make = partial(_whitened, kernel=kernel, landmarks=landmarks, factor=factor, centre=centre)
    features = rows.make(make, len(factor), np.float32, cache_dir)
    total, gram = passes.moments(features)
    mean = total / len(rows)
    gram -= np.outer(total, mean)
    strengths, vectors = la.eigh(gram, overwrite_a=True)
    kept = strengths > len(gram) * np.finfo(np.float64).eps * max(strengths[-1], 0.0)
    strengths, vectors = strengths[kept], vectors[:, kept] / np.sqrt(strengths[kept])
    passes.turn(features, vectors, mean @ vectors)
    back = partial(la.solve_triangular, factor, lower=True, trans="T")
    offset, mean = mean @ vectors + centre @ vectors, mean + centre
    rest = mean - (vectors * strengths) @ (vectors.T @ mean)  # across all that differs
    way = (back(vectors), offset, float(rest @ rest), back(rest))
    return Basis(features, strengths, kernel, landmarks, *way)


def _whitened(
    block: NDArray[Any],
    kernel: Radial,
    landmarks: NDArray[np.float64],
    factor: NDArray[np.float64],
    centre: NDArray[np.float64],
) -> NDArray[np.float32]:
    """``k(block, landmarks) L'^-1 - 1 centre'``, bit by bit in double precision."""
    out = np.empty((len(block), len(landmarks)), dtype=np.float32)
    widest = max(block.shape[1], len(landmarks))
    for rows in gen_batches(len(block), max(1, _BATCH_BYTES // (8 * widest))):
        values = kernel(block[rows].astype(np.float64, copy=False), landmarks)
        out[rows] = la.blas.dtrsm(1.0, factor, values.T, lower=1, overwrite_b=1).T - centre
    return out


class NystroemSmoother(LowRankSmoother):
    """The smoother of Nystroem features; that of the kernel itself if all rows are landmarks.

    Parameters
    ----------
    basis : Basis
        Features of the rows; models of different ridges share it.
    ridge : float
        Strictly positive.
    dtype : dtype
        Type of the outputs; the features are float32, the small algebra is done in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from appellate.numerics.blocks import ArrayBlocks
    >>> from appellate.numerics.kernels import Gaussian
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> basis = nystroem_basis(ArrayBlocks(X), X, Gaussian(1.0))
    >>> entries = CandidateEntries(np.ones((3, 1), dtype=bool))
    >>> smoother = NystroemSmoother(basis, 1e-9, X.dtype)
    >>> smoother.regress(entries, np.array([1.0, 3.0, 4.0]))[0].round(4)
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


@nb.njit(cache=True, fastmath={"reassoc", "contract"})
def _apply_blocks(blocks, starts, order, values):  # type: ignore[no-untyped-def]
    """Multiply every label's block by its part of the values; one thread, no call overhead."""
    out = np.empty_like(values)
    position = 0
    for j in range(starts.size - 1):
        rows = order[starts[j] : starts[j + 1]]
        part = values[rows]
        for a in range(part.size):
            total = values.dtype.type(0)
            for b in range(part.size):
                total += blocks[position + b] * part[b]
            out[rows[a]] = total
            position += part.size
    return out


Smoother = KernelSmoother | LowRankSmoother
