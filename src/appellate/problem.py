"""The problem of one fit: rows, candidates and classes, and what its classifiers share."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from appellate.candidates import CandidateSets
from appellate.numerics.blocks import ArrayBlocks, Blocks
from appellate.numerics.entries import CandidateEntries, Values
from appellate.numerics.graph import (
    NeighborGraph,
    Propagation,
    normalized_laplacian,
    restrict_graph,
)
from appellate.numerics.kernels import (
    Gaussian,
    KernelSetting,
    Linear,
    LinearKernel,
    kernel_key,
    mean_distance,
    read_kernel,
    squared_distances,
)
from appellate.numerics.kernels import Kernel as KernelFunction
from appellate.numerics.memory import Representation, free_memory, represent
from appellate.numerics.neighbors import find_neighbors
from appellate.numerics.nystroem import Basis, choose_landmarks, nystroem_basis
from appellate.numerics.smoothers import (
    CandidateMap,
    FeatureSmoother,
    KernelSmoother,
    LinearSmoother,
    NystroemSmoother,
    Smoother,
)

logger = logging.getLogger("appellate")

Made = TypeVar("Made")
Kernel = str | KernelSetting


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
    kernels : sequence of (kernel, ridge), default=()
        What the classifiers are going to ask for: it says how much memory kernels take. A
        ridge of None stands for a method that needs a kernel's features all at once.
    cost : ndarray, shape (l, l), default=None
        What wrong labels cost.
    backend : {"pandas", "polars"}, default=None
        The kind of data frame that was fitted.
    features : mapping, default=None
        Number and names of the features, as scikit-learn's fitted attributes.
    sample_weight : ndarray, shape (n,), default=None
        Weights of the rows, for the methods that take them.

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
        kernels: Sequence[tuple[Kernel, Any]] = (),
        cost: NDArray[np.float64] | None = None,
        backend: str | None = None,
        features: Mapping[str, Any] | None = None,
        sample_weight: NDArray[Any] | None = None,
    ) -> None:
        self.X, self.sets = X, sets
        self.candidates, self.classes, self.ids = sets.matrix, sets.class_names, sets.ids
        self.entries = CandidateEntries(sets.matrix)
        self.cost, self.backend, self.sample_weight = cost, backend, sample_weight
        self.features = dict(features or {})
        self.keeps_distances = False
        self._kernels = tuple(kernels)
        self._made: dict[tuple[Any, ...], Any] = {}

    # -- rows ---------------------------------------------------------------------------

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.entries.shape[0]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The floating-point type of rows, confidences and outputs."""
        return np.dtype(self.X.dtype)

    @property
    def matrix(self) -> Any:
        """The rows in memory, (n, q): what neighbours and third parties' classifiers need.

        Raises
        ------
        MemoryError
            If they do not fit, with the numbers.
        """
        return self._once(("matrix",), self._read_matrix) if isinstance(self.X, Blocks) else self.X

    def uniform(self, start: Values | None = None) -> Values:
        """Confidence to start from: the given one, else the same for all candidates of a row."""
        return self.entries.uniform(self.dtype) if start is None else start

    def take(self, rows: NDArray[np.intp]) -> Problem:
        """Return the problem of some rows, its kernels represented as in this one."""
        part = Problem(
            self.matrix[rows],
            self.sets[rows],
            kernels=self._kernels,
            cost=self.cost,
            features=self.features,
            sample_weight=None if self.sample_weight is None else self.sample_weight[rows],
        )
        part.representation = self.representation  # type: ignore[method-assign]
        return part

    def with_cost(self, cost: NDArray[np.float64] | None) -> Self:
        """Return this problem, all that was computed included, under another cost."""
        other = copy.copy(self)
        other.cost = cost
        return other

    # -- regressions --------------------------------------------------------------------

    def smoother(self, kernel: Kernel, ridge: float) -> Smoother:
        """Return the ridge smoother of the rows; factored at the first call only."""
        setting = read_kernel(kernel)
        key = ("smoother", kernel_key(setting), ridge)
        return self._once(key, lambda: self._build_smoother(setting, ridge))

    def on_candidates(self, kernel: Kernel, ridge: float, *, keep: bool = True) -> CandidateMap:
        """Return the map from candidate entries of D to those of ``S D``.

        With ``keep=False`` the smoother itself, unless others have it, is given up.
        """
        setting = read_kernel(kernel)
        key = (kernel_key(setting), ridge)

        def make() -> CandidateMap:
            known = keep or ("smoother", *key) in self._made
            smoother = (self.smoother if known else self._build_smoother)(setting, ridge)
            return smoother.on_candidates(self.entries)

        return self._once(("map", *key), make)

    def gram(self, kernel: Kernel) -> tuple[KernelFunction, NDArray[Any]]:
        """Return the kernel and its matrix of all pairs of rows, (n, n), to be read only.

        It is kept: only methods that need the matrix itself in every round ask for it.
        """
        setting = read_kernel(kernel)
        return self._once(("gram", kernel_key(setting)), lambda: self._build_gram(setting))

    def basis(self, kernel: Kernel) -> Basis:
        """Return the Nystroem features that stand for a Gaussian kernel."""
        setting = read_kernel(kernel)
        return self._once(("basis", kernel_key(setting)), lambda: self._build_basis(setting))

    def representation(self, kernel: Kernel) -> Representation:
        """Whether a kernel is the matrix itself or Nystroem features; decided once, and said.

        The message goes to the logger ``"appellate"``: as a warning where an approximation
        was chosen that nobody asked for, which Python shows by default.
        """
        setting = read_kernel(kernel)
        return self._once(("how", kernel_key(setting)), lambda: self._represent(setting))

    def forget_smoothers(self) -> None:
        """Give up factorisations and features; distances and neighbours stay."""
        for key in [key for key in self._made if key[0] in ("smoother", "map", "basis")]:
            del self._made[key]

    # -- neighbours ---------------------------------------------------------------------

    def neighbors(
        self, n_neighbors: int, search: Any = None
    ) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """Distances and indices, (n, k) each, of every row's nearest other rows."""
        k = min(n_neighbors, len(self) - 1)
        key = ("neighbors", k, id(search))
        return self._once(key, lambda: find_neighbors(search, self.matrix, k))

    def graph(self, n_neighbors: int, search: Any = None) -> NeighborGraph:
        """Neighbour graph of the rows scaled to unit length (PL-AGGD, PL-CL)."""
        k = min(n_neighbors, len(self) - 1)
        return self._once(("graph", k, id(search)), lambda: NeighborGraph(self.matrix, k, search))

    def propagation(self, n_neighbors: int, search: Any = None) -> Propagation:
        """Propagation of confidences over that graph."""
        graph = self.graph(n_neighbors, search)
        key = ("propagation", id(graph))
        return self._once(key, lambda: Propagation(graph.neighbors, self.entries))

    def laplacian(self, n_neighbors: int, search: Any = None) -> sp.csr_array:
        """Laplacian of the neighbour graph, at the candidate entries (LALO)."""
        distances, neighbors = self.neighbors(n_neighbors, search)

        def make() -> sp.csr_array:
            width = float(distances.mean()) if distances.any() else 1.0
            full = normalized_laplacian(distances, neighbors, width)
            return restrict_graph(full.astype(self.dtype), self.entries)

        return self._once(("laplacian", neighbors.shape[1], id(search)), make)

    # -- how it is made -----------------------------------------------------------------

    def _once(self, key: tuple[Any, ...], make: Callable[[], Made]) -> Made:
        if key not in self._made:
            self._made[key] = make()
        found: Made = self._made[key]
        return found

    def _read_matrix(self) -> NDArray[Any]:
        (n, q), free = self.X.shape, free_memory()
        size = n * q * self.dtype.itemsize
        if size > free:
            raise MemoryError(
                f"this classifier needs all rows in memory, {size / 1e9:.1f} GB; "
                f"{free / 1e9:.1f} GB are free. SURE and the partner read them in blocks, "
                "with Nystroem features or with a linear kernel of fewer features than rows."
            )
        return np.asarray(self.X)

    def _blocks(self) -> Blocks:
        return self.X if isinstance(self.X, Blocks) else ArrayBlocks(self.X)

    def _represent(self, kernel: KernelSetting) -> Representation:
        asked = {(kernel_key(read_kernel(each)), ridge) for each, ridge in self._kernels}
        alike = {key for key, _ in asked if key[0] == type(kernel).__name__}
        found = represent(
            kernel,
            self.X.shape,
            self.entries.shape[1],
            self.dtype,
            local=getattr(self.X, "local", True),
            n_matrices=2 + max(1, len(asked)) + self.keeps_distances,
            n_widths=max(1, len(alike)),
            at_hand=any(ridge is None for _, ridge in asked),
        )
        unasked = found.kind == "nystroem" and getattr(kernel, "approximation", "") == "auto"
        level = logging.WARNING if unasked else logging.INFO
        if logger.isEnabledFor(level):
            logger.log(level, "%s", found.message)
        return found

    def _build_smoother(self, kernel: KernelSetting, ridge: float) -> Smoother:
        found = self.representation(kernel)
        if isinstance(kernel, LinearKernel):
            n, q = self.X.shape
            if q < n:
                return FeatureSmoother(self._blocks(), ridge, kernel.cache_dir)
            return LinearSmoother(self.matrix, ridge)
        if found.kind == "nystroem":
            return NystroemSmoother(self.basis(kernel), ridge, self.dtype)
        if ("gram", kernel_key(kernel)) in self._made:
            function, gram = self.gram(kernel)
            return KernelSmoother(gram.copy(), ridge, self.matrix, function)
        function, gram = self._build_gram(kernel)
        return KernelSmoother(gram, ridge, self.matrix, function)

    def _build_gram(self, kernel: KernelSetting) -> tuple[KernelFunction, NDArray[Any]]:
        if isinstance(kernel, LinearKernel):
            return Linear(), Linear()(self.matrix, self.matrix)
        squared = self._squared_distances()
        distance = self._once(("mean distance",), lambda: mean_distance(squared))
        function = Gaussian(kernel.bandwidth * distance)
        return function, function.from_squared(squared)

    def _squared_distances(self) -> NDArray[Any]:
        if not self.keeps_distances:
            return squared_distances(self.matrix)
        return self._once(("distances",), lambda: squared_distances(self.matrix)).copy()

    def _build_basis(self, kernel: Any) -> Basis:
        rows, m = self._blocks(), self.representation(kernel).n_landmarks
        landmarks, distance = self._once(("landmarks", m), lambda: choose_landmarks(rows, m))
        return nystroem_basis(
            rows, landmarks, Gaussian(kernel.bandwidth * distance), kernel.cache_dir
        )
