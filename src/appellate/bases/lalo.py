"""LALO: latent label distributions with a neighbourhood Laplacian."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from appellate._compat import Interval
from appellate.base import Disambiguation
from appellate.bases.ridge import KernelClassifier
from appellate.numerics.entries import CandidateEntries, Values
from appellate.numerics.geometry import Geometry
from appellate.numerics.quadratic import minimize_quadratic


class LALOClassifier(KernelClassifier):
    """Leveraging latent label distributions (LALO).

    Minimises over the model and the confidence P, each row on its candidate simplex,

        |Phi W + 1 b' - P|^2 + regularization |W|^2 + 2 laplacian_weight tr(P' L P)

    by turns [1]_: the ridge regression is ``Q = S P``; for a fixed regression P minimises
    ``|P - Q|^2 + 2 laplacian_weight tr(P' L P)``, with L the normalised Laplacian of the
    symmetrised nearest-neighbour graph with Gaussian weights.

    Cost: one kernel, factorisation and inverse, O(n^3); then O(k nnz) a turn and step.
    Memory: at most three n x n matrices. Nystroem features
    (`kernel_approximation`) make both linear in n.

    Parameters
    ----------
    laplacian_weight : float, default=0.005
        Weight of the agreement with the neighbours (mu).
    n_neighbors : int, default=10
        Neighbours in the graph (k).
    regularization : float, default=0.05
        Weight of the squared norm of the coefficients (lambda).
    kernel : {"rbf", "linear"}, default="rbf"
        Gaussian or linear.
    bandwidth : float, default=1.0
        Width of the Gaussian kernel as a multiple of the mean distance of all pairs of
        training rows.
    max_iter : int, default=30
        Largest number of turns.
    tol : float, default=1e-3
        Stop when the confidence changes by less (Frobenius norm).
    neighbors : object or None, default=None
        How neighbours are searched: any object with ``fit(X)`` and ``kneighbors(X, k)``, or one
        of scikit-learn's neighbour transformers, such as
        pynndescent's; None: exactly. The logger ``"appellate"``
        tells its recall on a sample.
    kernel_approximation : {"auto", "exact", "nystroem"}, default="auto"
        The Gaussian kernel matrix itself, or Nystroem features by way of landmarks, whose cost
        grows linearly with the rows. Auto decides from the number of rows and the free memory;
        the logger ``"appellate"`` says what was chosen and what it costs.
    n_landmarks : int or None, default=None
        Landmarks of the Nystroem features; None: 1024 or more, by the number of rows, or as
        many as fit into memory.
    landmarks : {"uniform", "k-means++"}, default="uniform"
        How the landmarks are chosen among the rows.
    cache_dir : str, path or None, default=None
        Folder for the Nystroem features, n x n_landmarks numbers in float32; memory if None.
    cost : None, str, dict or (l, l) matrix, default=None
        What a wrong label costs (`appellate.costs.cost_matrix`), such as ``"absolute"`` or
        ``"within:3"``: the label of the smallest expected cost is predicted, and given to a
        training row among its candidates. None: the most likely one.

    Attributes
    ----------
    classes_ : ndarray, shape (l,)
        Class names.
    cost_ : ndarray, shape (l, l), or None
        Cost of every predicted label (column) where another (row) is true.
    candidates_ : ndarray of bool, shape (n, l)
        Candidate sets of the training rows.
    confidence_ : ndarray, shape (n, l)
        Final confidence, rows on the simplex over the candidates.
    training_output_ : ndarray, shape (n, l)
        Output of the final regression on the training rows.
    transduction_ : ndarray, shape (n,)
        Label of every training row: the largest training output among its candidates.
    n_ties_ : int
        Training rows whose label was not the only best candidate.
    n_iter_ : int
        Turns taken.

    References
    ----------
    .. [1] Feng, An (2018). Leveraging latent label distributions for partial label learning.
       IJCAI.

    Examples
    --------
    >>> from appellate import LALOClassifier
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> LALOClassifier(n_neighbors=2).fit(X, y).transduction_
    array(['cat', 'cat', 'cat', 'dog', 'dog', 'dog'], dtype='<U3')
    """

    _parameter_constraints = {
        **KernelClassifier._parameter_constraints,
        "laplacian_weight": [Interval(Real, 0, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "neighbors": [object],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        laplacian_weight: float = 0.005,
        n_neighbors: int = 10,
        regularization: float = 0.05,
        kernel: str = "rbf",
        bandwidth: float = 1.0,
        max_iter: int = 30,
        tol: float = 1e-3,
        neighbors: Any = None,
        kernel_approximation: str = "auto",
        n_landmarks: int | None = None,
        landmarks: str = "uniform",
        cache_dir: Any = None,
        cost: Any = None,
    ) -> None:
        self.laplacian_weight = laplacian_weight
        self.n_neighbors = n_neighbors
        self.regularization = regularization
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.max_iter = max_iter
        self.tol = tol
        self.neighbors = neighbors
        self.kernel_approximation = kernel_approximation
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.cache_dir = cache_dir
        self.cost = cost

    def _disambiguate(
        self, geometry: Geometry, entries: CandidateEntries, supervision: Values | None
    ) -> Disambiguation:
        smooth = self._smoother(geometry).on_candidates(entries)
        laplacian = geometry.laplacian(self.n_neighbors, entries, self.neighbors)
        initial = entries.uniform(geometry.X.dtype) if supervision is None else supervision
        confidence, n_iter = initial, 0
        output = smooth(confidence)
        pull = 2 * self.laplacian_weight
        while n_iter < self.max_iter:
            previous = confidence
            confidence = minimize_quadratic(
                lambda p: p + pull * (laplacian @ p),
                output,
                1 + 2 * pull,  # the eigenvalues of a normalised Laplacian are at most 2
                entries,
                start=confidence,
            ).values
            output = smooth(confidence)
            n_iter += 1
            if np.linalg.norm(confidence - previous) < self.tol:
                break
        return Disambiguation(initial, confidence, output, n_iter)
