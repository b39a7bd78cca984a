"""PL-CL: partial label learning with a complementary classifier."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from appellate._compat import Interval
from appellate.base import Disambiguation
from appellate.bases.ridge import KernelClassifier
from appellate.numerics.entries import CandidateEntries, Values
from appellate.numerics.geometry import Geometry


class PLCLClassifier(KernelClassifier):
    """Partial label learning with a complementary classifier (PL-CL).

    Minimises over an ordinary model with confidence P, a complementary model with
    non-candidate confidence Q, and a graph W over the neighbours [1]_,

        |M(P) - P|^2 + complementary_weight |M(Q) - Q|^2 + agreement |P + Q - 1|^2
            + feature_weight sum_i |x_i - sum_j W_ij x_j|^2 + confidence_weight |(I - W) P|^2
            + regularization (|W_P|^2 + |W_Q|^2)

    with every row of P on its candidate simplex and ``1 - Y <= Q <= 1``, by turns: graph; Q
    in closed form; P by propagation; both models by ridge regression. The first P is the one
    that the feature graph alone rebuilds best; under PLCP it is the partner's supervision.

    Cost: two factorisations and inverses (the models' ridges differ), O(n^3); then
    O(n k^3 + k nnz) a turn and step. Memory: at most three n x n matrices, and for each of the
    two ridges n^2 c^2 / l numbers with c candidates a row. Nystroem features
    (`kernel_approximation`) make both linear in n.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbours in the graph (k), among rows scaled to unit length.
    complementary_weight : float, default=0.5
        Weight of the complementary model (alpha_1); its ridge is
        ``regularization / complementary_weight``.
    agreement : float, default=0.5
        Weight of the link between both confidences (alpha_2).
    feature_weight : float, default=1.0
        Weight of the features in the graph (alpha_3).
    confidence_weight : float, default=1.0
        Weight of the confidences in the graph and of the graph in the confidences (alpha_4).
    regularization : float, default=0.03
        Weight of the squared norm of the coefficients (lambda).
    kernel : {"rbf", "linear"}, default="rbf"
        Gaussian or linear.
    bandwidth : float, default=1.0
        Width of the Gaussian kernel as a multiple of the mean distance of all pairs of
        training rows.
    max_iter : int, default=8
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
        Final confidence P, rows on the simplex over the candidates.
    training_output_ : ndarray, shape (n, l)
        Output of the final ordinary model on the training rows.
    transduction_ : ndarray, shape (n,)
        Label of every training row: the largest training output among its candidates.
    n_ties_ : int
        Training rows whose label was not the only best candidate.
    n_iter_ : int
        Turns taken.

    References
    ----------
    .. [1] Si, Jia, Wang, Zhang, Feng, Qu (2023). Complementary classifier induced partial
       label learning. KDD.

    Examples
    --------
    >>> from appellate import PLCLClassifier
    >>> X = [[0.0, 1.0], [0.1, 1.0], [0.2, 1.0], [1.0, 0.0], [1.0, 0.1], [1.0, 0.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> PLCLClassifier(n_neighbors=2).fit(X, y).transduction_
    array(['cat', 'cat', 'cat', 'dog', 'dog', 'dog'], dtype='<U3')
    """

    _n_ridges = 2
    _n_matrices = 5  # its two ridges, and the partner's

    _parameter_constraints = {
        **KernelClassifier._parameter_constraints,
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "neighbors": [object],
        "complementary_weight": [Interval(Real, 0, None, closed="neither")],
        "agreement": [Interval(Real, 0, None, closed="left")],
        "feature_weight": [Interval(Real, 0, None, closed="neither")],
        "confidence_weight": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        n_neighbors: int = 10,
        complementary_weight: float = 0.5,
        agreement: float = 0.5,
        feature_weight: float = 1.0,
        confidence_weight: float = 1.0,
        regularization: float = 0.03,
        kernel: str = "rbf",
        bandwidth: float = 1.0,
        max_iter: int = 8,
        neighbors: Any = None,
        kernel_approximation: str = "auto",
        n_landmarks: int | None = None,
        landmarks: str = "uniform",
        cache_dir: Any = None,
        cost: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.complementary_weight = complementary_weight
        self.agreement = agreement
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
        complementary_ridge = self.regularization / self.complementary_weight
        smooth_complement = geometry.candidate_map(
            self.kernel, self.bandwidth, complementary_ridge, entries
        )
        smooth = self._smoother(geometry).on_candidates(entries)
        graph = geometry.graph(self.n_neighbors, self.neighbors)
        propagation = geometry.propagation(graph, entries)
        weights = graph.weights(entries)
        initial = supervision
        if initial is None:
            initial = propagation.initial_confidence(weights, geometry.X.dtype)
        confidence = initial
        output = smooth(confidence)
        # 1 - Q is zero outside the candidates and S 1 = 1, so it stands for Q in every step.
        complement = np.ones_like(confidence)
        complement_output = smooth_complement(complement)
        for _ in range(self.max_iter):
            weights = graph.weights(
                entries, confidence, self.feature_weight, self.confidence_weight, weights
            )
            complement = self._update_complement(complement_output, confidence)
            target = (output + self.agreement * complement) / (1 + self.agreement)
            fidelity = (1 + self.agreement) / self.confidence_weight
            confidence = propagation.solve(weights, target, fidelity, confidence).values
            output = smooth(confidence)
            complement_output = smooth_complement(complement)
        return Disambiguation(initial, confidence, output, self.max_iter)

    def _update_complement(self, complement_output: Values, confidence: Values) -> Values:
        """``Q = clip((alpha_1 M(Q) + alpha_2 (1 - P)) / (alpha_1 + alpha_2), 1 - Y, 1)``."""
        model, link = self.complementary_weight, self.agreement
        mixed = (model * complement_output + link * confidence) / (model + link)
        clipped: Values = np.clip(mixed, 0, 1)
        return clipped
