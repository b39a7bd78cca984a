"""The problem of one fit: rows, candidates and classes, and what its classifiers share."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property, wraps
from numbers import Real
from threading import get_ident
from typing import Any, TypeVar, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from appellate.candidates import CandidateSets
from appellate.core.results import Result
from appellate.evidence.costs import candidate_costs
from appellate.numerics import memory, smoothers
from appellate.numerics.blocks import ArrayBlocks, Blocks
from appellate.numerics.entries import CandidateEntries, Values
from appellate.numerics.graph import (
    Found,
    NeighborGraph,
    find_neighbors,
    normalized_laplacian,
    restrict_graph,
)
from appellate.numerics.kernels import (
    KernelSetting,
    LinearKernel,
    Radial,
    kernel_key,
    read_kernel,
)
from appellate.numerics.smoothers import Basis, choose_landmarks, nystroem_basis
from appellate.numerics.threads import blas_for

_logger = logging.getLogger("appellate")
_LANDMARKS = "appellate_landmarks"  # attribute of the log records that tell an approximation

Kernel = str | KernelSetting
Gram = tuple[Radial, NDArray[Any]]
AnyMethod = TypeVar("AnyMethod", bound=Callable[..., Any])


def _once(method: AnyMethod) -> AnyMethod:
    """Keep what a method of a problem computes for its arguments, unless ``keep=False``."""

    @wraps(method)
    def ask(self: Problem, *args: Any, keep: bool = True) -> Any:
        values = [kernel_key(a) if isinstance(a, Kernel) else a for a in args]
        key = method.__name__, *(a if isinstance(a, str | Real) else id(a) for a in values)
        if key in self._made:
            return self._made[key]
        made = method(self, *args)
        if keep:
            self._made[key] = made
        return made

    return cast(AnyMethod, ask)


@contextmanager
def landmarks_told() -> Iterator[list[int]]:
    """Collect how many landmarks the fits of a block use unasked, in place of logging each.

    All other messages of the logger are logged as ever, and those of other threads.

    Yields
    ------
    list of int
        One number for every kernel that was approximated; it grows within the block.

    Examples
    --------
    >>> import numpy as np
    >>> from appellate import as_candidates
    >>> problem = Problem(np.array([[0.0], [1.0]]), as_candidates(["a", "b"]))
    >>> with landmarks_told() as told:
    ...     how = problem.representation("rbf")
    >>> how.kind, told
    ('exact', [])
    """
    told: list[int] = []
    thread = get_ident()

    def take(record: logging.LogRecord) -> bool:
        landmarks = getattr(record, _LANDMARKS, None)
        if landmarks is None or record.thread != thread:
            return True
        told.append(landmarks)
        return False

    _logger.addFilter(take)
    try:
        yield told
    finally:
        _logger.removeFilter(take)


class Problem:
    """Training rows with their candidate sets, as all classifiers of one fit see them.

    Distances, kernel matrices, smoothers, neighbours and graphs are computed at the first
    question and kept, so that a base, its partner and every round share them.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n, q), Blocks, or the inputs of a network
        The training rows.
    sets : CandidateSets
        Their candidate labels, class names and ids.
    kernels : callable, default=list
        Gives the pairs of kernel and ridge that the classifiers are going to ask for: they say
        how much memory kernels take. A ridge of None means a method that needs a kernel's
        features all at once.
    n_matrices, n_squares : callable, default=None
        Return how many n x n matrices of doubles exact kernels take, and how many m x m matrices
        m landmarks take; None, or a function that returns None, if the kernels tell.
    cost : ndarray, shape (l, l), default=None
        What wrong labels cost.
    backend : {"pandas", "polars"}, default=None
        The kind of data frame that was fitted.
    features : mapping, default=None
        Number and names of the features, as scikit-learn's fitted attributes.

    Examples
    --------
    >>> import numpy as np
    >>> from appellate.candidates import as_candidates
    >>> problem = Problem(np.array([[0.0], [1.0], [5.0]]), as_candidates(["a|b", "a", "b"]))
    >>> problem.smoother("rbf", 0.1) is problem.smoother("rbf", 0.1)
    True
    >>> problem.neighbors(1)[1].ravel()
    array([1, 0, 1])
    """

    def __init__(
        self,
        X: Any,
        sets: CandidateSets,
        *,
        kernels: Callable[[], Sequence[tuple[Kernel, Any]]] = list,
        n_matrices: Callable[[], float | None] | None = None,
        n_squares: Callable[[], float | None] | None = None,
        cost: NDArray[np.float64] | None = None,
        backend: str | None = None,
        features: Mapping[str, Any] | None = None,
    ) -> None:
        self.X = X
        self.sets = sets
        self.dtype = np.dtype(X.dtype)
        self.candidates = sets.matrix
        self.classes = sets.class_names
        self.ids = sets.ids
        self.entries = CandidateEntries(sets.matrix)
        self.n_rows = len(sets.matrix)
        self.cost, self.backend = cost, backend
        self.features = dict(features or {})
        self._kernels = kernels
        self._n_matrices = n_matrices
        self._n_squares = n_squares
        self._made: dict[Any, Any] = {}
        if not isinstance(X, Blocks):
            self.matrix = X

    # -- rows ---------------------------------------------------------------------------

    @cached_property
    def matrix(self) -> Any:
        """The rows in memory, (n, q): what neighbours and third parties' classifiers need.

        Raises
        ------
        MemoryError
            If they do not fit, with the numbers.
        """
        self._check_room(
            "SURE and the partner read them in blocks, with Nystroem features or with a linear "
            "kernel of fewer features than rows."
        )
        return np.asarray(self.X)

    def dense(self) -> NDArray[Any]:
        """Return the rows in memory, (n, q), as an array also if they are sparse."""
        if not sp.issparse(self.matrix):
            return np.asarray(self.matrix)
        self._check_room("Take fewer features, or members that are kernels: members='kernel'.")
        return np.asarray(self.matrix.toarray())

    def _check_room(self, advice: str) -> None:
        """Raise a MemoryError if the rows as an array do not fit into the free memory."""
        n, q = self.X.shape
        free = memory.free_memory()
        size = n * q * self.dtype.itemsize
        if size > free:
            raise MemoryError(
                f"this classifier needs all rows in memory, {size / 1e9:.1f} GB; "
                f"{free / 1e9:.1f} GB are free. {advice}"
            )

    def uniform(self, start: Values | None = None) -> Values:
        """Confidence to start from: the given one, else the same for all candidates of a row."""
        return self.entries.uniform(self.dtype) if start is None else start

    def take(self, rows: NDArray[np.intp]) -> Problem:
        """Return the problem of some rows, its kernels represented as in this one.

        It has no cost.
        """
        X, features = self.matrix[rows], {"n_features_in_": self.matrix.shape[1]}  # no names
        part = Problem(X, self.sets[rows], kernels=self._kernels, features=features)
        part.representation = self.representation  # type: ignore[method-assign]
        return part

    def rank(self, result: Result) -> Values:
        """Scores whose largest is the label: as they are, or minus the expected costs."""
        if self.cost is None:
            return result.output if result.ranking is None else result.ranking
        return -candidate_costs(result.distribution(self.entries), self.entries, self.cost)

    # -- regressions --------------------------------------------------------------------

    @_once
    def smoother(self, kernel: Kernel, ridge: float, *, keep: bool = True) -> smoothers.Smoother:
        """Return the ridge smoother of the rows; factored at the first call only."""
        setting = read_kernel(kernel)
        how = self.representation(kernel)
        n, q = self.X.shape
        if isinstance(setting, LinearKernel):
            if q < n:
                return smoothers.FeatureSmoother(self._blocks(), ridge, setting.cache_dir)
            return smoothers.LinearSmoother(self.matrix, ridge)
        if how.kind == "nystroem":
            return smoothers.NystroemSmoother(self.basis(kernel), ridge, self.dtype)
        function, gram = self.gram(kernel, keep=False)
        return smoothers.KernelSmoother(gram, ridge, self.matrix, function)

    def on_candidates(
        self, kernel: Kernel, ridge: float, *, keep: bool = True
    ) -> smoothers.CandidateMap:
        """Return the map from candidate entries of D to those of ``S D``.

        With ``keep=False`` the smoother itself, unless others have it, is given up.
        """
        key = ("map", kernel_key(kernel), ridge)
        if key not in self._made:
            smoother = self.smoother(kernel, ridge, keep=keep)
            self._made[key] = smoother.on_candidates(self.entries)
        found: smoothers.CandidateMap = self._made[key]
        return found

    def gram(self, kernel: Kernel, *, keep: bool = True) -> Gram:
        """Return the kernel and its matrix of all pairs of rows, (n, n).

        Kept, and then to be read only, for methods that need the matrix itself in every round;
        else the caller's own.
        """
        setting: Any = read_kernel(kernel)
        key = ("gram", kernel_key(kernel))
        known: Gram | None = self._made.get(key)
        if known is not None:
            return known if keep else (known[0], known[1].copy())
        unit = setting.unit
        distances = unit.distances(self.matrix)
        if ("mean distance", unit) not in self._made:
            self._made["mean distance", unit] = unit.mean_distance(distances)
        function = setting.at(self._made["mean distance", unit])
        made = function, function.from_distances(distances)
        if keep:
            self._made[key] = made
        return made

    @_once
    def basis(self, kernel: Kernel) -> Basis:
        """Return the Nystroem features that replace a kernel."""
        setting: Any = read_kernel(kernel)
        m = self.representation(kernel).n_landmarks
        if ("landmarks", m) not in self._made:
            self._made["landmarks", m] = choose_landmarks(self._blocks(), m)
        landmarks, sample = self._made["landmarks", m]
        key = ("mean distance of a sample", setting.unit)
        if key not in self._made:
            self._made[key] = setting.unit.mean_distance(setting.unit.distances(sample))
        function = setting.at(self._made[key])
        return nystroem_basis(self._blocks(), landmarks, function, setting.cache_dir)

    @_once
    def representation(self, kernel: Kernel) -> memory.Representation:
        """Whether a kernel is the matrix itself or Nystroem features; decided once, and logged.

        The message goes to the logger ``"appellate"``: as a warning where an approximation
        was chosen that nobody asked for, which Python shows by default; see `landmarks_told`.
        """
        setting = read_kernel(kernel)
        usual = getattr(setting, "approximation", "") == "auto" and not isinstance(self.X, Blocks)
        if usual and self.n_rows <= memory.SMALL_ROWS:
            return memory.Representation()  # whatever memory is free
        made = memory.represent(self._demand(setting))
        if ("told", made.message) in self._made:  # as of another kernel of this fit
            return made
        self._made["told", made.message] = None
        automatic = getattr(setting, "approximation", "") == "auto" and setting.n_landmarks is None
        if made.kind == "nystroem" and automatic:
            _logger.warning("%s", made.message, extra={_LANDMARKS: made.n_landmarks})
        else:
            _logger.info("%s", made.message)
        return made

    def _demand(self, setting: Any) -> memory.Demand:
        """Say what a kernel takes of the memory, next to the others of this fit."""
        asked = [(read_kernel(each), ridge) for each, ridge in self._kernels()]
        linear = isinstance(setting, LinearKernel)
        alike = {kernel_key(each) for each, _ in asked if isinstance(each, LinearKernel) == linear}
        n_smoothers = len({(kernel_key(each), ridge) for each, ridge in asked})
        doubles = 8 / self.dtype.itemsize
        n_matrices = None if self._n_matrices is None else self._n_matrices()
        return memory.ask(
            setting,
            self.X.shape,
            self.entries.shape[1],
            self.dtype,
            local=getattr(self.X, "local", True),
            n_matrices=2 + max(1, n_smoothers) if n_matrices is None else doubles * n_matrices,
            n_squares=None if self._n_squares is None else self._n_squares(),
            n_widths=max(1, len(alike)),
            at_hand=any(ridge is None for _, ridge in asked),
        )

    def blas(self) -> AbstractContextManager[None]:
        """One BLAS thread for fits whose matrices are small: see `blas_for`."""
        try:
            demands = [self._demand(read_kernel(kernel)) for kernel, _ in self._kernels()]
            widths = [memory.width(demand) for demand in demands]
        except (TypeError, ValueError):  # the fit names the wrong parameter
            widths = []
        return blas_for(self.n_rows, max(widths) if widths and all(widths) else 0)

    def forget_smoothers(self) -> None:
        """Give up the factorisations; neighbours and features stay."""
        for key in [key for key in self._made if key[0] in ("smoother", "map")]:
            del self._made[key]

    def _blocks(self) -> Blocks:
        return self.X if isinstance(self.X, Blocks) else ArrayBlocks(self.X)

    # -- neighbours ---------------------------------------------------------------------

    @_once
    def neighbors(self, n_neighbors: int, search: Any = None) -> Found:
        """Distances and indices, (n, k) each, of every row's nearest other rows."""
        return find_neighbors(search, self.matrix, min(n_neighbors, self.n_rows - 1))

    @_once
    def graph(self, n_neighbors: int, search: Any = None) -> NeighborGraph:
        """Neighbour graph of the rows scaled to unit length (PL-AGGD, PL-CL)."""
        k = min(n_neighbors, self.n_rows - 1)
        return NeighborGraph(self.matrix, k, self.entries, search)

    @_once
    def laplacian(self, n_neighbors: int, search: Any = None) -> sp.csr_array:
        """Laplacian of the neighbour graph, at the candidate entries (LALO)."""
        distances, neighbors = self.neighbors(n_neighbors, search)
        width = float(distances.mean()) if distances.any() else 1.0
        full = normalized_laplacian(distances, neighbors, width)
        return restrict_graph(full.astype(self.dtype), self.entries)
