"""PL-AGGD: adaptive graph guided disambiguation."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from appellate._compat import Interval
from appellate.base import Disambiguation
from appellate.bases.ridge import KernelClassifier
from appellate.numerics.entries import CandidateEntries, Values
from appellate.numerics.geometry import Geometry


class AGGDClassifier(KernelClassifier):
    """Adaptive graph guided disambiguation (PL-AGGD).

    Minimises over the model, the graph W and the confidence P, each row of P on its
    candidate simplex and each row of W on the simplex over the sample's neighbours,

        |Phi W' + 1 b' - P|^2 + regularization |W'|^2
            + feature_weight sum_i |x_i - sum_j W_ij x_j|^2
            + confidence_weight |(I - W) P|^2

    by turns [1]_: the graph from features and confidences, the confidence by propagation
    over the graph towards the model's output, the model by ridge regression ``M = S P``.
    The first confidence is the one that the feature graph alone rebuilds best; under PLCP it
    is the partner's supervision.

    Cost: one kernel, factorisation and inverse, O(n^3); then O(n k^3 + k nnz) a turn and
    step. Memory: at most three n x n matrices. Nystroem features
    (`kernel_approximation`) make both linear in n.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbours in the graph (k), among rows scaled to unit length.
    feature_weight : float, default=1.0
        Weight of the features in the graph (mu).
    confidence_weight : float, default=1.0
        Weight of the confidences in the graph and of the graph in the confidences (gamma).
    regularization : float, default=0.05
        Weight of the squared norm of the coefficients (lambda).
    kernel : {"rbf", "linear"}, default="rbf"
        Gaussian or linear.
    bandwidth : float, default=1.0
        Width of the Gaussian kernel as a multiple of the mean distance of all pairs of
        training rows.
    max_iter : int, default=10
        Turns.
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
    .. [1] Wang, Zhang, Li (2022). Adaptive graph guided disambiguation for partial label
       learning. IEEE TPAMI 44.

    Examples
    --------
    >>> from appellate import AGGDClassifier
    >>> X = [[0.0, 1.0], [0.1, 1.0], [0.2, 1.0], [1.0, 0.0], [1.0, 0.1], [1.0, 0.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> AGGDClassifier(n_neighbors=2).fit(X, y).transduction_
    array(['cat', 'cat', 'cat', 'dog', 'dog', 'dog'], dtype='<U3')
    """

    _parameter_constraints = {
        **KernelClassifier._parameter_constraints,
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "neighbors": [object],
        "feature_weight": [Interval(Real, 0, None, closed="neither")],
        "confidence_weight": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        n_neighbors: int = 10,
        feature_weight: float = 1.0,
        confidence_weight: float = 1.0,
        regularization: float = 0.05,
        kernel: str = "rbf",
        bandwidth: float = 1.0,
        max_iter: int = 10,
        neighbors: Any = None,
        kernel_approximation: str = "auto",
        n_landmarks: int | None = None,
        landmarks: str = "uniform",
        cache_dir: Any = None,
        cost: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.feature_weight = feature_weight
        self.confidence_weight = confidence_weight
        self.regularization = regularization
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.max_iter = max_iter
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
        graph = geometry.graph(self.n_neighbors, self.neighbors)
        propagation = geometry.propagation(graph, entries)
        weights = graph.weights(entries)
        initial = supervision
        if initial is None:
            initial = propagation.initial_confidence(weights, geometry.X.dtype)
        confidence = initial
        output = smooth(confidence)
        for _ in range(self.max_iter):
            weights = graph.weights(
                entries, confidence, self.feature_weight, self.confidence_weight, weights
            )
            fidelity = 1 / self.confidence_weight
            confidence = propagation.solve(weights, output, fidelity, confidence).values
            output = smooth(confidence)
        return Disambiguation(initial, confidence, output, self.max_iter)
