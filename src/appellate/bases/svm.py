"""PL-SVM: the best candidate keeps a margin over the best other label."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils import check_random_state

from appellate._compat import Interval, StrOptions
from appellate.base import Disambiguation, PartialLabelClassifier
from appellate.bases.ridge import APPROXIMATION, APPROXIMATION_CONSTRAINTS, plan_geometry
from appellate.confidence import reduce_candidates
from appellate.numerics.blocks import ArrayBlocks, product
from appellate.numerics.entries import CandidateEntries, Values, order_of_appearance
from appellate.numerics.geometry import Geometry
from appellate.numerics.nystroem import Basis
from appellate.numerics.simplex import project_entries
from appellate.numerics.smoothers import Regressor


class PLSVMClassifier(PartialLabelClassifier):
    """Partial-label support vector machine (PL-SVM), trained by Pegasos.

    Minimises over a model F without bias, F_j(x) = <W_j, phi(x)>, the hinge loss of the best
    candidate against the best non-candidate [1]_,

        lambda / 2 |W|^2 + 1/n sum over i of max(0, 1 - (max over j in S_i of F_j(x_i)
                                                        - max over j not in S_i of F_j(x_i)))

    by the stochastic subgradient steps of Pegasos [2]_. In step t the row i of a shuffled
    order is visited; with a, b its best candidate and best non-candidate under ``F = K A``,

        if (F_ia - F_ib) / (lambda t) < 1:   A_ia <- A_ia + 1,   A_ib <- A_ib - 1

    and after T steps the model is ``K A / (lambda T)``. The problem is convex where every row
    has one candidate. A row whose candidates are all labels never takes a step. Ties, as in
    the first step, go to the label that comes up first in the rows, so that the names of the
    classes do not matter. With `supervision`, a sample's candidates below their initial
    confidence are dropped first (the paper's operator G).

    Cost: one kernel matrix, n^2 q, then at most ``n_epochs`` n (2 n + l), no factorisation;
    linear: ``n_epochs`` n q l. Memory: one n x n matrix and three n x l; linear: no n x n.

    Parameters
    ----------
    regularization : float, default=1e-3
        Weight of the squared norm of the coefficients (lambda).
    n_epochs : int, default=20
        Visits of every row; T is `n_epochs` times n.
    kernel : {"rbf", "linear"}, default="rbf"
        Gaussian or linear. Neither has a bias: centre the features for the linear one.
    bandwidth : float, default=1.0
        Width of the Gaussian kernel as a multiple of the mean distance of all pairs of
        training rows.
    output : {"margin", "one-hot"}, default="margin"
        What is handed to PLCP as training output: the margins F, whose scale depends on
        `regularization`, or 1 at the largest of all labels and 0 elsewhere.
    random_state : int, RandomState instance or None, default=None
        Order of the visits.
    kernel_approximation : {"auto", "exact", "nystroem"}, default="auto"
        The Gaussian kernel matrix itself, or the linear version on Nystroem features by way of
        landmarks, whose cost grows linearly with the rows. Auto decides from the number of
        rows and the free memory; the logger ``"appellate"`` says what was chosen and what it
        costs. Rows are visited in random order, so the features are always in memory.
    n_landmarks : int or None, default=None
        Landmarks of the Nystroem features; None: 1024 or more, by the number of rows, or as
        many as fit into memory.
    landmarks : {"uniform", "k-means++"}, default="uniform"
        How the landmarks are chosen among the rows.
    cache_dir : str, path or None, default=None
        Folder for the Nystroem features that a partner shares.
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
        Margins projected onto the simplex over the candidates.
    training_output_ : ndarray, shape (n, l)
        Margins of the training rows, or their one-hot winner among all labels.
    transduction_ : ndarray, shape (n,)
        Label of every training row: the candidate with the largest margin.
    n_ties_ : int
        Training rows whose label was not the only best candidate.
    n_iter_ : int
        Epochs run.

    Notes
    -----
    `predict_proba` is the softmax of the margins, which keeps their order and is never exactly
    0 or 1, as the projection onto the simplex would be wherever the margin holds. They are
    scaled so that a label ahead of all others by the margin, 1, has the probability 0.99,
    however many labels there are. It is not calibrated.

    References
    ----------
    .. [1] Nguyen, Caruana (2008). Classification with partial labels. KDD.
    .. [2] Shalev-Shwartz, Singer, Srebro, Cotter (2011). Pegasos: primal estimated
       sub-gradient solver for SVM. Mathematical Programming 127.

    Examples
    --------
    >>> from appellate import PLSVMClassifier
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> PLSVMClassifier(random_state=0).fit(X, y).predict([[0.05], [4.9]])
    array(['cat', 'dog'], dtype='<U3')
    """

    _parameter_constraints = {
        **PartialLabelClassifier._parameter_constraints,
        "regularization": [Interval(Real, 0, None, closed="neither")],
        "n_epochs": [Interval(Integral, 1, None, closed="left")],
        "kernel": [StrOptions({"rbf", "linear"})],
        "bandwidth": [Interval(Real, 0, None, closed="neither")],
        "output": [StrOptions({"margin", "one-hot"})],
        "random_state": ["random_state"],
        **APPROXIMATION_CONSTRAINTS,
    }

    def __init__(
        self,
        *,
        regularization: float = 1e-3,
        n_epochs: int = 20,
        kernel: str = "rbf",
        bandwidth: float = 1.0,
        output: str = "margin",
        random_state: Any = None,
        kernel_approximation: str = "auto",
        n_landmarks: int | None = None,
        landmarks: str = "uniform",
        cache_dir: Any = None,
        cost: Any = None,
    ) -> None:
        self.regularization = regularization
        self.n_epochs = n_epochs
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.output = output
        self.random_state = random_state
        self.kernel_approximation = kernel_approximation
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.cache_dir = cache_dir
        self.cost = cost

    def _geometry(self, X: Any, n_labels: int) -> Geometry:
        if self.kernel == "linear":
            return Geometry(X)
        settings = {name: getattr(self, name) for name in APPROXIMATION}
        return plan_geometry(X, n_labels, {self.kernel}, at_hand=self._at_hand, **settings)

    @property
    def _at_hand(self) -> bool:
        """Whether all Nystroem features must be in memory: rows are visited in random order."""
        return self.kernel == "rbf"

    def _disambiguate(
        self, geometry: Geometry, entries: CandidateEntries, supervision: Values | None
    ) -> Disambiguation:
        initial = entries.uniform(geometry.X.dtype)
        candidates = reduce_candidates(entries, initial, supervision).toarray() > 0
        regressor, margins = self._train(geometry, candidates)
        output = margins if self.output == "margin" else _one_hot(margins)
        ranking = entries.gather(margins)
        return Disambiguation(
            initial=initial,
            confidence=project_entries(ranking, entries),
            output=entries.gather(output),
            n_iter=self.n_epochs,
            ranking=ranking,
            state=(regressor, output),
        )

    def _conclude(
        self, geometry: Geometry, entries: CandidateEntries, result: Disambiguation
    ) -> NDArray[Any]:
        self._regressor, output = result.state
        return np.asarray(output)

    def _decision(self, X: NDArray[Any]) -> NDArray[Any]:
        return self._regressor.predict(X)

    def _probabilities(self, scores: NDArray[Any]) -> NDArray[Any]:
        rivals = max(scores.shape[1] - 1, 1)
        return np.asarray(softmax(scores * scores.dtype.type(np.log(99 * rivals)), axis=1))

    def _train(
        self, geometry: Geometry, candidates: NDArray[np.bool_]
    ) -> tuple[Regressor, NDArray[Any]]:
        """Run Pegasos; return the model and its margins of the training rows, (n, l)."""
        if self.kernel == "rbf" and geometry.plan.kind == "exact":
            return self._train_on_kernel(geometry, candidates)
        return self._train_on_features(geometry, candidates)

    def _train_on_kernel(
        self, geometry: Geometry, candidates: NDArray[np.bool_]
    ) -> tuple[Regressor, NDArray[Any]]:
        n, l = candidates.shape
        X, (kernel, gram) = geometry.matrix, geometry.gram("rbf", self.bandwidth)
        scores, coefficients = np.zeros((l, n)), np.zeros((n, l))
        labels, ridge = order_of_appearance(candidates), self.regularization
        for order, step in self._epochs(n):
            _visit_kernel(gram, candidates, labels, order, step, ridge, scores, coefficients)
        scale = 1 / (ridge * self.n_epochs * n)
        margins = (scale * scores.T).astype(X.dtype, order="C")
        coefficients = (scale * coefficients).astype(X.dtype)
        return Regressor(kernel, X, coefficients, np.zeros(l, dtype=X.dtype)), margins

    def _train_on_features(
        self, geometry: Geometry, candidates: NDArray[np.bool_]
    ) -> tuple[Regressor, NDArray[Any]]:
        """Run the linear version on the rows, or on their Nystroem features as they lie."""
        basis: Basis | None = None
        if self.kernel == "rbf":
            basis = geometry.basis(self.bandwidth)
            features, scale, common = basis.features, np.sqrt(basis.strengths), basis.common
            shift = basis.offset * scale
        else:
            X = geometry.matrix
            features = ArrayBlocks(X)
            scale, shift, common = np.ones(X.shape[1]), np.zeros(X.shape[1]), 0.0
        (n, l), dtype = candidates.shape, geometry.X.dtype
        labels, ridge = order_of_appearance(candidates), self.regularization
        space = (features.toarray(), scale, shift, common)
        coefficients, steps = np.zeros((len(shift), l)), np.zeros(l)
        for order, step in self._epochs(n):
            _visit_linear(space, candidates, labels, order, step, ridge, coefficients, steps)
        coefficients /= ridge * self.n_epochs * n
        steps /= ridge * self.n_epochs * n
        level = shift @ coefficients + common * steps
        margins = product(features, coefficients.T * scale, level).astype(dtype)
        intercept = np.zeros(l, dtype=dtype)
        if basis is None:
            return Regressor(None, None, coefficients.astype(dtype), intercept), margins
        coefficients = basis.turn * scale @ coefficients + np.outer(basis.rest, steps)
        return Regressor(basis.kernel, basis.landmarks, coefficients, intercept), margins

    def _epochs(self, n: int) -> Iterator[tuple[NDArray[np.intp], int]]:
        """Yield the order of the rows in every epoch and the steps taken before it."""
        rng = check_random_state(self.random_state)
        for epoch in range(self.n_epochs):
            yield rng.permutation(n), epoch * n


def _one_hot(margins: NDArray[Any]) -> NDArray[Any]:
    """Set the largest entry of every row to one, all others to zero."""
    winners = np.zeros_like(margins)
    winners[np.arange(len(margins)), margins.argmax(axis=1)] = 1
    return winners


@nb.njit(cache=True)
def _contenders(scores, candidates, labels):  # type: ignore[no-untyped-def]
    """Find the best candidate, the best non-candidate (-1 if there is none) and the gap."""
    best, rival = -1, -1
    for j in labels:
        if candidates[j]:
            if best < 0 or scores[j] > scores[best]:
                best = j
        elif rival < 0 or scores[j] > scores[rival]:
            rival = j
    return best, rival, scores[best] - scores[rival] if rival >= 0 else np.inf


@nb.njit(cache=True)
def _visit_kernel(  # type: ignore[no-untyped-def]
    gram, candidates, labels, order, step, regularization, scores, coefficients
):
    """Visit every row once; keep the scores ``(K A)'``, (l, n), up to date.

    A step touches two rows of the scores and one of the kernel matrix, all contiguous.
    """
    for i in order:
        step += 1
        best, rival, gap = _contenders(scores[:, i], candidates[i], labels)
        if gap < regularization * step:
            coefficients[i, best] += 1
            coefficients[i, rival] -= 1
            for p in range(len(gram)):
                scores[best, p] += gram[i, p]
                scores[rival, p] -= gram[i, p]


@nb.njit(cache=True)
def _visit_linear(  # type: ignore[no-untyped-def]
    space, candidates, labels, order, step, regularization, coefficients, steps
):
    """Visit every row once; the coefficients, (q, l), are those of the features.

    With ``space = (rows, scale, shift, common)`` they are ``rows * scale + shift``; the inner
    product of two rows has `common` more, which only needs the sum of the `steps`, (l,).
    """
    rows, scale, shift, common = space
    features = np.empty(rows.shape[1])
    scores = np.empty(candidates.shape[1])
    for i in order:
        step += 1
        scores[:] = common * steps
        for p in range(features.size):
            features[p] = rows[i, p] * scale[p] + shift[p]
            for j in range(scores.size):
                scores[j] += features[p] * coefficients[p, j]
        best, rival, gap = _contenders(scores, candidates[i], labels)
        if gap < regularization * step:
            steps[best] += 1
            steps[rival] -= 1
            for p in range(features.size):
                coefficients[p, best] += features[p]
                coefficients[p, rival] -= features[p]
