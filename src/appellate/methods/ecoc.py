"""PL-ECOC: many questions with two answers, each asked of the sets that answer it."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from sklearn.utils import check_random_state

from appellate._parameters import allow, share_docs
from appellate.core.base import COUNT, SHARE
from appellate.core.problem import Kernel, Problem
from appellate.core.results import Model, Result
from appellate.evidence.confidence import (
    normalize_entries,
    normalize_rows,
    one_hot,
    reduce_candidates,
)
from appellate.methods.ridge import FeatureClassifier
from appellate.numerics.entries import Values, order_of_appearance
from appellate.numerics.smoothers import Regressor

_DRAWN = 100  # columns drawn for one that is kept
_LARGEST_MARGIN = 50.0


@share_docs
@dataclass(kw_only=True, eq=False, repr=False)
class PLECOCClassifier(FeatureClassifier):
    """Partial-label learning by error-correcting output codes (PL-ECOC).

    Nothing is disambiguated [1]_: every column t of a random code M in {-1, +1} splits the labels
    in two, and a binary classifier h_t learns from the rows whose candidates are *all* on one
    side. A new row gets the label whose code word fits the answers best,

        argmin over j of  sum over t of  R_jt exp(-M_jt h_t(x))

    where R_jt is the share of the rows with candidate j that h_t puts on j's side, every row of R
    divided by its sum. Columns with fewer than `min_share` of the rows are not taken, unless too
    few reach that. The binary classifiers are linear support vector machines (squared hinge) on
    the features of the kernel. With `supervision`, a sample's candidates below their initial
    confidence are dropped first (the paper's operator G).

    Cost: features of the kernel (Gaussian: a Cholesky factorisation, n^3 / 3), then for each of
    some 10 log2(l) columns a few dozen products with at most n x r features. Memory: n (r + l).

    Parameters
    ----------
    n_columns : int or None, default=None
        Columns of the code; None: ``ceil(10 log2 l)``. There are ``2^(l-1) - 1`` at most.
    min_share : float, default=0.1
        Share of the training rows that a column must have an answer for.
    regularization : float, default=0.05
        Weight of the squared norm of the coefficients against the sum of the losses.
    <kernel>
    random_state : int, RandomState instance or None, default=None
        Draws the code.
    <cost>

    Attributes
    ----------
    <classes>
    confidence_ : ndarray, shape (n, l)
        ``1 / (1 + loss)`` of each candidate, divided by their sum.
    training_output_ : ndarray, shape (n, l)
        One-hot winner among all labels, as PL-KNN has it.
    transduction_ : ndarray, shape (n,)
        Label of every training row: the candidate of the smallest loss.
    n_iter_ : int
        Columns of the code.
    code_ : ndarray of int, shape (l, columns)
        The code M.

    References
    ----------
    .. [1] Zhang, Yu, Tang (2017). Disambiguation-free partial label learning. IEEE Transactions
       on Knowledge and Data Engineering 29.

    Examples
    --------
    >>> from appellate import PLECOCClassifier
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> PLECOCClassifier(random_state=0).fit(X, y).predict([[0.05], [4.9]])
    array(['cat', 'dog'], dtype='<U3')
    """

    n_columns: int | None = allow(None, COUNT, None)
    min_share: float = allow(0.1, SHARE)
    regularization: float = 0.05
    kernel: Kernel = "rbf"
    random_state: Any = None
    cost: Any = None

    def _solve(self, problem: Problem, start: Values | None) -> Result:
        entries, initial = problem.entries, problem.uniform()
        sets = reduce_candidates(entries, initial, start).toarray() > 0
        features, code = self._features(problem), self._draw_code(sets)
        rows, n_columns = features.matrix, code.shape[1]
        coefficients, bias = np.zeros((rows.shape[1], n_columns)), np.zeros(n_columns)
        inside, outside = _sides(sets, code > 0)
        binary = LinearSVC(C=0.5 / self.regularization, dual=False, tol=1e-6)
        for t in range(n_columns):
            known = inside[:, t] | outside[:, t]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # rows that say nothing
                binary.fit(rows[known], inside[known, t])
            coefficients[:, t], bias[t] = binary.coef_[0], binary.intercept_[0]
        answers = rows @ coefficients + bias  # (n, columns)
        right = (sets.T[..., np.newaxis] & ((answers > 0) == (code > 0)[:, np.newaxis])).sum(1)
        performance = normalize_rows(right.astype(float), 1 / max(1, n_columns))
        scores = decode(answers, code, performance).astype(problem.dtype)
        winners, ranking = one_hot(scores), entries.gather(scores)

        def make() -> CodeModel:
            return CodeModel(winners, features.regressor(coefficients, bias), code, performance)

        confidence = normalize_entries(ranking, entries)
        scores = entries.gather(winners)
        return Result(initial, confidence, scores, n_columns, make, ranking, {"code_": code})

    def _draw_code(self, sets: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Columns that most rows have an answer for, (l, columns)."""
        rng = check_random_state(self.random_state)
        n, l = sets.shape
        wanted = self.n_columns or math.ceil(10 * math.log2(l)) if l > 1 else 0
        if 2 ** (l - 1) - 1 <= _DRAWN * wanted:  # all there are
            numbers = rng.permutation(np.arange(1, 2 ** (l - 1)))
            drawn = (numbers >> np.arange(l)[:, np.newaxis]) & 1
        else:
            drawn = np.unique(rng.randint(2, size=(l - 1, _DRAWN * wanted)), axis=1)
            drawn = drawn[:, rng.permutation(drawn.shape[1])]
            drawn = np.vstack([drawn, np.zeros_like(drawn[:1])])
        columns = np.empty_like(drawn)
        columns[order_of_appearance(sets)] = drawn  # whatever the names of the classes
        inside, outside = _sides(sets, columns)
        answered = np.where(inside.any(0) & outside.any(0), (inside | outside).sum(axis=0), 0)
        order = np.argsort(-np.minimum(answered, self.min_share * n), kind="stable")[:wanted]
        code: NDArray[np.intp] = 2 * columns[:, order[answered[order] > 0]] - 1
        return code


@dataclass(frozen=True)
class CodeModel(Model):
    """Binary classifiers, their code and how right they were."""

    regressor: Regressor
    code: NDArray[np.intp]
    performance: NDArray[Any]

    def decision(self, X: Any) -> NDArray[Any]:
        """Score new rows by ``1 / (1 + loss)``, (m, l)."""
        answers = self.regressor.predict(X)
        return decode(answers, self.code, self.performance).astype(answers.dtype)


def decode(
    answers: NDArray[Any], code: NDArray[np.intp], performance: NDArray[Any]
) -> NDArray[np.float64]:
    """``1 / (1 + loss)`` of every row and label, (n, l).

    Examples
    --------
    >>> import numpy as np
    >>> decode(np.array([[2.0]]), np.array([[1], [-1]]), np.ones((2, 1))).round(2)
    array([[0.88, 0.12]])
    """
    shown = np.clip(answers, -_LARGEST_MARGIN, _LARGEST_MARGIN).astype(np.float64)
    fits, fails = np.exp(-shown), np.exp(shown)
    loss = fits @ (performance * (code > 0)).T + fails @ (performance * (code < 0)).T
    return np.asarray(1 / (1 + loss))


def _sides(
    sets: NDArray[np.bool_], columns: NDArray[Any]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Rows whose candidates are all inside, and all outside, of every column, (n, columns)."""
    shared = sets.astype(np.float32) @ columns.astype(np.float32)
    return shared == sets.sum(axis=1, keepdims=True), shared == 0
