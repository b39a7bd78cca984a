"""The problem of one fit: rows, candidates and classes, and what its classifiers share."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from appellate.candidates import CandidateSets
from appellate.numerics import memory
from appellate.numerics.blocks import ArrayBlocks, Blocks
from appellate.numerics.entries import CandidateEntries, Values
from appellate.numerics.graph import (
    NeighborGraph,
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

    Attributes
    ----------
    sample_weight : ndarray, shape (n,), or None
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
    ) -> None:
        self.X, self.sets, self.dtype = X, sets, np.dtype(X.dtype)
        self.candidates, self.classes, self.ids = sets.matrix, sets.class_names, sets.ids
        self.entries = CandidateEntries(sets.matrix)
        self.n_rows = len(sets.matrix)
        self.cost, self.backend = cost, backend
        self.sample_weight: NDArray[Any] | None = None
        self.features = dict(features or {})
        self.keeps_distances = False  # for many widths, one after another
        self._kernels = tuple(kernels)
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
        (n, q), free = self.X.shape, free_memory()
        size = n * q * self.dtype.itemsize
        if size > free:
            raise MemoryError(
                f"this classifier needs all rows in memory, {size / 1e9:.1f} GB; "
                f"{free / 1e9:.1f} GB are free. SURE and the partner read them in blocks, "
                "with Nystroem features or with a linear kernel of fewer features than rows."
            )
        return np.asarray(self.X)

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
            features={"n_features_in_": self.matrix.shape[1]},  # rows without names
        )
        part.sample_weight = None if self.sample_weight is None else self.sample_weight[rows]
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
        key = ("smoother", *kernel_key(kernel), ridge)
        if key not in self._made:
            self._made[key] = self._build_smoother(kernel, ridge)
        found: Smoother = self._made[key]
        return found

    def on_candidates(self, kernel: Kernel, ridge: float, *, keep: bool = True) -> CandidateMap:
        """Return the map from candidate entries of D to those of ``S D``.

        With ``keep=False`` the smoother itself, unless others have it, is given up.
        """
        key = (*kernel_key(kernel), ridge)
        if ("map", *key) not in self._made:
            keep = keep or ("smoother", *key) in self._made
            make = self.smoother if keep else self._build_smoother
            self._made["map", *key] = make(kernel, ridge).on_candidates(self.entries)
        found: CandidateMap = self._made["map", *key]
        return found

    def gram(self, kernel: Kernel) -> tuple[KernelFunction, NDArray[Any]]:
        """Return the kernel and its matrix of all pairs of rows, (n, n), to be read only.

        It is kept: only methods that need the matrix itself in every round ask for it.
        """
        key = ("gram", *kernel_key(kernel))
        if key not in self._made:
            self._made[key] = self._build_gram(kernel)
        found: tuple[KernelFunction, NDArray[Any]] = self._made[key]
        return found

    def basis(self, kernel: Kernel) -> Basis:
        """Return the Nystroem features that stand for a Gaussian kernel."""
        key = ("basis", *kernel_key(kernel))
        if key not in self._made:
            if self.keeps_distances:
                self._forget("basis")
            self._made[key] = self._build_basis(kernel)
        found: Basis = self._made[key]
        return found

    def representation(self, kernel: Kernel) -> Representation:
        """Whether a kernel is the matrix itself or Nystroem features; decided once, and said.

        The message goes to the logger ``"appellate"``: as a warning where an approximation
        was chosen that nobody asked for, which Python shows by default.
        """
        key = ("how", *kernel_key(kernel))
        if key not in self._made:
            plain = kernel == "rbf" and isinstance(self.X, np.ndarray)
            small = plain and self.n_rows <= memory.SMALL_ROWS
            self._made[key] = Representation() if small else self._represent(kernel)
        found: Representation = self._made[key]
        return found

    def forget_smoothers(self) -> None:
        """Give up the factorisations; distances, neighbours and the last features stay."""
        self._forget("smoother", "map")

    # -- neighbours ---------------------------------------------------------------------

    def neighbors(
        self, n_neighbors: int, search: Any = None
    ) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """Distances and indices, (n, k) each, of every row's nearest other rows."""
        k = min(n_neighbors, self.n_rows - 1)
        key = ("neighbors", k, id(search))
        if key not in self._made:
            self._made[key] = find_neighbors(search, self.matrix, k)
        found: tuple[NDArray[Any], NDArray[np.intp]] = self._made[key]
        return found

    def graph(self, n_neighbors: int, search: Any = None) -> NeighborGraph:
        """Neighbour graph of the rows scaled to unit length (PL-AGGD, PL-CL)."""
        k = min(n_neighbors, self.n_rows - 1)
        key = ("graph", k, id(search))
        if key not in self._made:
            self._made[key] = NeighborGraph(self.matrix, k, self.entries, search)
        found: NeighborGraph = self._made[key]
        return found

    def laplacian(self, n_neighbors: int, search: Any = None) -> sp.csr_array:
        """Laplacian of the neighbour graph, at the candidate entries (LALO)."""
        distances, neighbors = self.neighbors(n_neighbors, search)
        key = ("laplacian", neighbors.shape[1], id(search))
        if key not in self._made:
            width = float(distances.mean()) if distances.any() else 1.0
            full = normalized_laplacian(distances, neighbors, width)
            self._made[key] = restrict_graph(full.astype(self.dtype), self.entries)
        return self._made[key]

    # -- how it is made -----------------------------------------------------------------

    def _blocks(self) -> Blocks:
        return self.X if isinstance(self.X, Blocks) else ArrayBlocks(self.X)

    def _represent(self, kernel: Kernel) -> Representation:
        asked = {(kernel_key(each), ridge) for each, ridge in self._kernels}
        setting = read_kernel(kernel)
        alike = {key for key, _ in asked if key[0] == type(setting).__name__}
        found = represent(
            setting,
            self.X.shape,
            self.entries.shape[1],
            self.dtype,
            local=getattr(self.X, "local", True),
            n_matrices=2 + max(1, len(asked)) + self.keeps_distances,
            n_widths=max(1, len(alike)),
            at_hand=any(ridge is None for _, ridge in asked),
        )
        unasked = found.kind == "nystroem" and getattr(setting, "approximation", "") == "auto"
        logger.log(logging.WARNING if unasked else logging.INFO, "%s", found.message)
        return found

    def _build_smoother(self, kernel: Kernel, ridge: float) -> Smoother:
        setting, kind = read_kernel(kernel), self.representation(kernel).kind
        if isinstance(setting, LinearKernel):
            n, q = self.X.shape
            if q < n:
                return FeatureSmoother(self._blocks(), ridge, setting.cache_dir)
            return LinearSmoother(self.matrix, ridge)
        if kind == "nystroem":
            return NystroemSmoother(self.basis(kernel), ridge, self.dtype)
        known = self._made.get(("gram", *kernel_key(kernel)))
        function, gram = self._build_gram(kernel) if known is None else known
        gram = gram if known is None else gram.copy()
        return KernelSmoother(gram, ridge, self.matrix, function)

    def _build_gram(self, kernel: Kernel) -> tuple[KernelFunction, NDArray[Any]]:
        setting = read_kernel(kernel)
        if isinstance(setting, LinearKernel):
            return Linear(), Linear()(self.matrix, self.matrix)
        squared = self._made.get("distances")
        if squared is None:
            squared = squared_distances(self.matrix)
            self._made.setdefault("mean distance", mean_distance(squared))
            if self.keeps_distances:
                self._made["distances"] = squared
        if "distances" in self._made:
            squared = squared.copy()  # which becomes the kernel matrix
        function = Gaussian(setting.bandwidth * self._made["mean distance"])
        return function, function.from_squared(squared)

    def _forget(self, *kinds: str) -> None:
        for key in [key for key in self._made if key[0] in kinds]:
            del self._made[key]  # in place: `with_cost` shares it

    def _build_basis(self, kernel: Kernel) -> Basis:
        setting: Any = read_kernel(kernel)
        rows, m = self._blocks(), self.representation(kernel).n_landmarks
        if ("landmarks", m) not in self._made:
            self._made["landmarks", m] = choose_landmarks(rows, m)
        landmarks, distance = self._made["landmarks", m]
        function = Gaussian(setting.bandwidth * distance)
        return nystroem_basis(rows, landmarks, function, setting.cache_dir)
