"""Controls: what the partner, the ridge model and mere luck achieve without PLCP."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate.base import Disambiguation
from appellate.bases.ridge import KernelClassifier
from appellate.numerics.entries import CandidateEntries, Values
from appellate.numerics.geometry import Geometry
from appellate.numerics.graph import Propagation


class RidgeControl(KernelClassifier):
    """Kernel ridge regression on the uniform confidence, without any disambiguation.

    Parameters
    ----------
    regularization : float, default=0.05
        Weight of the squared norm of the coefficients.
    kernel : {"rbf", "linear"}, default="rbf"
        Gaussian or linear.
    bandwidth : float, default=1.0
        Width of the Gaussian kernel in mean distances.
    kernel_approximation : {"auto", "exact", "nystroem"}, default="auto"
        How the kernel is represented.
    n_landmarks : int or None, default=None
        Landmarks of the Nystroem features.
    """

    def __init__(
        self,
        *,
        regularization: float = 0.05,
        kernel: str = "rbf",
        bandwidth: float = 1.0,
        kernel_approximation: str = "auto",
        n_landmarks: int | None = None,
    ) -> None:
        self.regularization = regularization
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.kernel_approximation = kernel_approximation
        self.n_landmarks = n_landmarks

    def _disambiguate(
        self, geometry: Geometry, entries: CandidateEntries, supervision: Values | None
    ) -> Disambiguation:
        uniform = entries.uniform(geometry.X.dtype) if supervision is None else supervision
        output = self._smoother(geometry).on_candidates(entries)(uniform)
        return Disambiguation(uniform, uniform, output)


def graph_confidence(
    X: NDArray[Any], candidates: NDArray[np.bool_], n_neighbors: int = 10
) -> NDArray[Any]:
    """Confidence that the neighbour graph alone gives, the start of PL-AGGD, (n, l)."""
    geometry, entries = Geometry(X), CandidateEntries(candidates)
    graph = geometry.graph(n_neighbors)
    start = Propagation(graph.neighbors, entries).initial_confidence(
        graph.weights(entries), X.dtype
    )
    return entries.scatter(start)


def luck(
    candidates: NDArray[np.bool_], truth: NDArray[np.intp], tolerance: int, *, lowest: bool
) -> float:
    """Transductive accuracy of a random candidate (expected), or of the lowest-numbered.

    Examples
    --------
    >>> sets = np.array([[True, True], [False, True]])
    >>> luck(sets, np.array([1, 1]), 0, lowest=False), luck(sets, np.array([1, 1]), 0, lowest=True)
    (0.75, 0.5)
    """
    near = np.abs(np.arange(candidates.shape[1]) - truth[:, np.newaxis]) <= tolerance  # (n, l)
    if lowest:
        return float(near[np.arange(len(truth)), candidates.argmax(axis=1)].mean())
    return float(((near & candidates).sum(axis=1) / candidates.sum(axis=1)).mean())
