"""What the classifiers of one fit ask of the same training rows, computed once, on demand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from appellate.numerics.blocks import ArrayBlocks, Blocks
from appellate.numerics.entries import CandidateEntries
from appellate.numerics.graph import (
    NeighborGraph,
    Propagation,
    normalized_laplacian,
    restrict_graph,
)
from appellate.numerics.kernels import (
    Gaussian,
    Kernel,
    Linear,
    mean_distance,
    squared_distances,
)
from appellate.numerics.memory import Representation, free_memory
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


@dataclass(frozen=True)
class Plan(Representation):
    """How the kernel is represented, and where its features live."""

    cache_dir: Any = None


class Geometry:
    """Smoothers and neighbours of fixed training rows, shared by a base and its partner.

    Parameters
    ----------
    X : ndarray, shape (n, q), or Blocks
        The training rows.
    plan : Plan, default=None
        How the Gaussian kernel is represented: exactly if None.

    Examples
    --------
    >>> import numpy as np
    >>> geometry = Geometry(np.array([[0.0], [1.0], [5.0]]))
    >>> geometry.smoother("rbf", 1.0, 0.1) is geometry.smoother("rbf", 1.0, 0.1)
    True
    >>> geometry.neighbors(1)[1].ravel()
    array([1, 0, 1])
    """

    def __init__(self, X: Any, plan: Plan | None = None) -> None:
        self.X, self.plan = X, plan or Plan()
        self.rows: Blocks = X if isinstance(X, Blocks) else ArrayBlocks(X)
        self._matrix: NDArray[Any] | None = None if isinstance(X, Blocks) else X
        self._landmarks: tuple[NDArray[np.float64], float] | None = None
        self._bases: dict[float, Basis] = {}
        self._smoothers: dict[tuple[str, float, float], Smoother] = {}
        self._grams: dict[tuple[str, float], tuple[Kernel, NDArray[Any]]] = {}
        self._mean_distance: float | None = None
        self._maps: dict[tuple[str, float, float], tuple[CandidateEntries, CandidateMap]] = {}
        self._laplacians: dict[int, tuple[CandidateEntries, sp.csr_array]] = {}
        self._graphs: dict[int, NeighborGraph] = {}
        self._propagations: dict[int, Propagation] = {}
        self._neighbors: dict[int, tuple[NDArray[Any], NDArray[np.intp]]] = {}

    @property
    def matrix(self) -> NDArray[Any]:
        """The rows in memory, (n, q): what neighbours and third parties' classifiers need.

        Raises
        ------
        MemoryError
            If they do not fit, with the numbers.
        """
        if self._matrix is None:
            (n, q), free = self.rows.shape, free_memory()
            size = n * q * self.rows.dtype.itemsize
            if size > free:
                raise MemoryError(
                    f"this classifier needs all rows in memory, {size / 1e9:.1f} GB; "
                    f"{free / 1e9:.1f} GB are free. SURE and the partner read them in blocks, "
                    "with Nystroem features or with a linear kernel of fewer features than rows."
                )
            self._matrix = np.asarray(self.rows)
        return self._matrix

    def smoother(self, kernel: str, bandwidth: float, ridge: float) -> Smoother:
        """Return the ridge smoother of the rows; factored at the first call only.

        Parameters
        ----------
        kernel : {"rbf", "linear"}
            Gaussian or linear.
        bandwidth : float
            Width of the Gaussian kernel as a multiple of the mean distance of all pairs.
        ridge : float
            Weight of the squared norm of the coefficients.
        """
        key = (kernel, bandwidth if kernel == "rbf" else 1.0, ridge)
        if key not in self._smoothers:
            self._smoothers[key] = self._build_smoother(*key)
        return self._smoothers[key]

    def gram(self, kernel: str, bandwidth: float) -> tuple[Kernel, NDArray[Any]]:
        """Return the kernel and its matrix of all pairs of rows, (n, n), to be read only.

        It is kept: only methods that need the matrix itself in every round ask for it.
        """
        key = (kernel, bandwidth if kernel == "rbf" else 1.0)
        if key not in self._grams:
            self._grams[key] = self._build_gram(*key)
        return self._grams[key]

    def candidate_map(
        self, kernel: str, bandwidth: float, ridge: float, entries: CandidateEntries
    ) -> CandidateMap:
        """Return only the candidate map of a smoother, which itself is given up."""
        key = (kernel, bandwidth if kernel == "rbf" else 1.0, ridge)
        if key not in self._maps or self._maps[key][0] is not entries:
            known = self._smoothers.get(key) or self._build_smoother(*key)
            self._maps[key] = (entries, known.on_candidates(entries))
        return self._maps[key][1]

    def propagation(self, graph: NeighborGraph, entries: CandidateEntries) -> Propagation:
        """Propagation over a graph; its pattern is found once for the same candidates."""
        key = graph.neighbors.shape[1]
        if key not in self._propagations or self._propagations[key].entries is not entries:
            self._propagations[key] = Propagation(graph.neighbors, entries)
        return self._propagations[key]

    def neighbors(
        self, n_neighbors: int, search: Any = None
    ) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """Distances and indices, (n, k) each, of every row's nearest other rows.

        `search` is as in `appellate.numerics.neighbors.NeighborSearch`; its recall is logged.
        """
        k = min(n_neighbors, len(self.X) - 1)
        if k not in self._neighbors:
            self._neighbors[k] = find_neighbors(search, self.matrix, k)
        return self._neighbors[k]

    def graph(self, n_neighbors: int, search: Any = None) -> NeighborGraph:
        """Neighbour graph of the rows scaled to unit length (PL-AGGD, PL-CL)."""
        k = min(n_neighbors, len(self.X) - 1)
        if k not in self._graphs:
            self._graphs[k] = NeighborGraph(self.matrix, k, search)
        return self._graphs[k]

    def laplacian(
        self, n_neighbors: int, entries: CandidateEntries, search: Any = None
    ) -> sp.csr_array:
        """Laplacian of the neighbour graph, at the candidate entries (LALO)."""
        distances, neighbors = self.neighbors(n_neighbors, search)
        k = neighbors.shape[1]
        if k not in self._laplacians or self._laplacians[k][0] is not entries:
            width = float(distances.mean()) if distances.any() else 1.0
            full = normalized_laplacian(distances, neighbors, width)
            self._laplacians[k] = (entries, restrict_graph(full.astype(self.X.dtype), entries))
        return self._laplacians[k][1]

    def _build_smoother(self, kernel: str, bandwidth: float, ridge: float) -> Smoother:
        n, q = self.X.shape
        if kernel == "linear":
            if q < n:
                return FeatureSmoother(self.rows, ridge, self.plan.cache_dir)
            return LinearSmoother(self.matrix, ridge)
        if self.plan.kind == "nystroem":
            return NystroemSmoother(self.basis(bandwidth), ridge, self.X.dtype)
        if (kernel, bandwidth) in self._grams:
            function, gram = self._grams[kernel, bandwidth]
            return KernelSmoother(gram.copy(), ridge, self.matrix, function)
        function, gram = self._build_gram(kernel, bandwidth)
        return KernelSmoother(gram, ridge, self.matrix, function)

    def basis(self, bandwidth: float) -> Basis:
        """Return the features that stand for a Gaussian kernel, made at the first call only."""
        if bandwidth not in self._bases:
            self._bases[bandwidth] = self._build_basis(bandwidth)
        return self._bases[bandwidth]

    def _build_basis(self, bandwidth: float) -> Basis:
        if self._landmarks is None:
            self._landmarks = choose_landmarks(self.rows, self.plan.n_landmarks)
        landmarks, distance = self._landmarks
        gaussian = Gaussian(bandwidth * distance)
        return nystroem_basis(self.rows, landmarks, gaussian, self.plan.cache_dir)

    def _build_gram(self, kernel: str, bandwidth: float) -> tuple[Kernel, NDArray[Any]]:
        if kernel == "linear":
            return Linear(), Linear()(self.matrix, self.matrix)
        squared = squared_distances(self.matrix)
        if self._mean_distance is None:
            self._mean_distance = mean_distance(squared)
        gaussian = Gaussian(bandwidth * self._mean_distance)
        return gaussian, gaussian.from_squared(squared)
