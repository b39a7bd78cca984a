"""PL-SVM: the best candidate keeps a margin over the best other label."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils import check_random_state

from appellate._parameters import allow, share_docs
from appellate.core.base import COUNT
from appellate.core.problem import Kernel, Problem
from appellate.core.results import Model, Result
from appellate.evidence.confidence import one_hot, reduce_candidates
from appellate.methods.ridge import FeatureClassifier
from appellate.numerics.blocks import ArrayBlocks, Blocks
from appellate.numerics.entries import Values, order_of_appearance
from appellate.numerics.passes import product
from appellate.numerics.simplex import project_entries
from appellate.numerics.smoothers import Regressor


@share_docs
@dataclass(kw_only=True, eq=False, repr=False)
class PLSVMClassifier(FeatureClassifier):
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
    <kernel>
        Neither has a bias: centre the features for the linear one.
    output : {"margin", "one-hot"}, default="margin"
        What is handed to PLCP as training output: the margins F, whose scale depends on
        `regularization`, or 1 at the largest of all labels and 0 elsewhere.
    random_state : int, RandomState instance or None, default=None
        Order of the visits.
    <cost>

    Attributes
    ----------
    <classes>
    confidence_ : ndarray, shape (n, l)
        Margins projected onto the simplex over the candidates.
    training_output_ : ndarray, shape (n, l)
        Margins of the training rows, or their one-hot winner among all labels.
    transduction_ : ndarray, shape (n,)
        Label of every training row: the candidate with the largest margin.
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

    regularization: float = 1e-3
    n_epochs: int = allow(20, COUNT)
    kernel: Kernel = "rbf"
    output: str = allow("margin", {"margin", "one-hot"})
    random_state: Any = None
    cost: Any = None

    def _solve(self, problem: Problem, start: Values | None) -> Result:
        entries, initial = problem.entries, problem.uniform()
        candidates = reduce_candidates(entries, initial, start).toarray() > 0
        exact = self._kernels() and problem.representation(self.kernel).kind == "exact"
        train = self._train_on_kernel if exact else self._train_on_features
        regressor, margins = train(problem, candidates)
        output = margins if self.output == "margin" else one_hot(margins)
        ranking = entries.gather(margins)
        confidence = project_entries(ranking, entries)
        model = partial(MarginModel, output, regressor)
        scores = entries.gather(output)
        return Result(initial, confidence, scores, self.n_epochs, model, ranking=ranking)

    def _train_on_kernel(
        self, problem: Problem, candidates: NDArray[np.bool_]
    ) -> tuple[Regressor, NDArray[Any]]:
        """Run Pegasos; return the model and its margins of the training rows, (n, l)."""
        n, l = candidates.shape
        X = problem.matrix
        kernel, gram = problem.gram(self.kernel)
        scores, coefficients = np.zeros((l, n)), np.zeros((n, l))
        labels, ridge = order_of_appearance(candidates), self.regularization
        rng = check_random_state(self.random_state)
        for step in range(0, self.n_epochs * n, n):
            order = rng.permutation(n)
            _visit_kernel(gram, candidates, labels, order, step, ridge, scores, coefficients)
        scale = 1 / (ridge * self.n_epochs * n)
        margins = (scale * scores.T).astype(X.dtype, order="C")
        coefficients = (scale * coefficients).astype(X.dtype)
        return Regressor(kernel, X, coefficients, np.zeros(l, dtype=X.dtype)), margins

    def _train_on_features(
        self, problem: Problem, candidates: NDArray[np.bool_]
    ) -> tuple[Regressor, NDArray[Any]]:
        """Run the linear version on the rows, or on their Nystroem features as they lie."""
        basis = problem.basis(self.kernel) if self._kernels() else None
        if basis is None:
            features: Blocks = ArrayBlocks(problem.matrix)
            scale = np.ones(features.shape[1])
            shift = np.zeros(features.shape[1])
            common = 0.0
        else:
            features = basis.features
            scale = np.sqrt(basis.strengths)
            common = basis.common
            shift = basis.offset * scale
        n, l = candidates.shape
        dtype = problem.dtype
        labels, ridge = order_of_appearance(candidates), self.regularization
        space = (features.toarray(), scale, shift, common)
        coefficients, steps = np.zeros((len(shift), l)), np.zeros(l)
        rng = check_random_state(self.random_state)
        for step in range(0, self.n_epochs * n, n):
            order = rng.permutation(n)
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


@dataclass(frozen=True)
class MarginModel(Model):
    """Margins of new rows."""

    regressor: Regressor

    def decision(self, X: Any) -> NDArray[Any]:
        """Score new rows by their margins, (m, l)."""
        return self.regressor.predict(X)

    def probabilities(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Softmax of the margins, .99 for a label that is ahead of all others by 1."""
        rivals = max(scores.shape[1] - 1, 1)
        return np.asarray(softmax(scores * scores.dtype.type(np.log(99 * rivals)), axis=1))


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
