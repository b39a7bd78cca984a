"""Any scikit-learn classifier as a base: trained on weighted candidate pairs."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import has_fit_parameter

from appellate._compat import Interval, fit_context
from appellate._parameters import allow, share_docs
from appellate.core.base import COUNT, PartialLabelClassifier
from appellate.core.foreign import seeded
from appellate.core.problem import Problem
from appellate.core.results import ProbabilityModel, Result
from appellate.evidence.confidence import normalize_entries
from appellate.numerics.entries import Values, order_of_appearance

_LARGEST_SEED = np.iinfo(np.int32).max


@share_docs
@dataclass(eq=False, repr=False)
class SoftLabelClassifier(MetaEstimatorMixin, PartialLabelClassifier):  # type: ignore[misc]
    """Make a classifier that takes sample weights learn from candidate sets.

    Row i is given to the classifier once for each candidate j, with label j and weight
    P_ij; its predicted probabilities, kept to the candidates and normalised, are the next
    confidence P:

        P <- rownorm(Y * probabilities of the classifier fitted on the pairs (x_i, j; P_ij))

    which are expectation-maximisation steps for a probabilistic classifier [1]_. The final
    model is fitted on the pairs of the last confidence.

    By default a row's probabilities come from a model that has not seen the row: each of
    `n_folds` models is fitted on the pairs of all other folds. A flexible model (a forest,
    boosted trees) otherwise returns the very weights that it was given, and nothing is ever
    disambiguated. With `supervision`, the confidence starts there.

    Cost: ``n_rounds * n_folds + 1`` fits of the classifier (``n_rounds + 1`` within the
    sample) on the candidate pairs. Memory: one copy of the features of the pairs, n c q for c
    candidates per row, and n x l.

    Parameters
    ----------
    estimator : object
        A scikit-learn classifier whose ``fit`` takes ``sample_weight`` and that has
        ``predict_proba``, such as `LogisticRegression`, `RandomForestClassifier`,
        `HistGradientBoostingClassifier`, or those of LightGBM and XGBoost. A pipeline takes
        no plain ``sample_weight``: put the other steps before this classifier.
    n_rounds : int, default=3
        Times that the confidence is estimated.
    out_of_fold : bool, default=True
        Whether a row's probabilities come from a model that has not seen it.
    n_folds : int, default=5
        Number of such models, at most one per row. All pairs of a row are in one fold.
    random_state : int, RandomState instance or None, default=None
        Makes the folds, and replaces the `random_state` of the classifier if it has one.
    <cost>

    Attributes
    ----------
    estimator_ : object
        The classifier fitted on the final pairs; its labels are integers. A
        `DummyClassifier` where only one label is left.
    label_columns_ : ndarray of int
        Label k of that classifier is the class ``classes_[label_columns_[k]]``.
    <classes>
    confidence_ : ndarray, shape (n, l)
        Final confidence, rows on the simplex over the candidates.
    training_output_ : ndarray, shape (n, l)
        Probabilities of the training rows in the last round, out of fold by default; 0 for
        labels that a model has not seen.
    transduction_ : ndarray, shape (n,)
        Label of every training row: the candidate of the largest confidence.
    n_iter_ : int
        Rounds run.

    References
    ----------
    .. [1] Jin, Ghahramani (2002). Learning with multiple labels. NIPS.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from appellate import SoftLabelClassifier
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> model = SoftLabelClassifier(LogisticRegression(), random_state=0).fit(X, y)
    >>> model.predict([[0.05], [4.9]])
    array(['cat', 'dog'], dtype='<U3')
    """

    estimator: Any
    _: KW_ONLY
    n_rounds: int = allow(3, COUNT)
    out_of_fold: bool = allow(True, "boolean")
    n_folds: int = allow(5, Interval(Integral, 2, None, closed="left"))
    random_state: Any = None
    cost: Any = None

    @fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        supervision: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit to training rows and their candidate sets.

        Parameters
        ----------
        X : array-like, shape (n, q)
            Features, as the classifier inside takes them.
        y : array-like
            Candidate sets, see `PartialLabelClassifier.fit`.
        supervision : array-like, shape (n, l), default=None
            Confidence to start from.
        sample_weight : array-like, shape (n,), default=None
            Weights of the rows: the pairs of a row are weighted by its confidence times its
            weight.

        Returns
        -------
        self
        """
        problem, start = self._open(X, y, supervision)
        weights = None if sample_weight is None else _check_weights(sample_weight, problem.n_rows)
        with problem.blas():
            self._keep(problem, self._solve(problem, start, weights))
        return self

    def _solve(
        self, problem: Problem, start: Values | None, weights: NDArray[Any] | None = None
    ) -> Result:
        _check_estimator(self.estimator)
        entries = problem.entries
        rng = check_random_state(self.random_state)
        everyone = np.arange(problem.n_rows)
        n_folds = min(self.n_folds, problem.n_rows)
        splits = [(everyone, everyone)]  # rows that a model sees, and rows that it judges
        if self.out_of_fold and n_folds > 1:
            folds = KFold(n_folds, shuffle=True, random_state=rng.randint(_LARGEST_SEED))
            splits = list(folds.split(everyone))
        prototype = self.estimator
        if self.random_state is not None:
            prototype = seeded(prototype, rng.randint(_LARGEST_SEED))
        row_weights = 1.0 if weights is None else weights[entries.rows]
        initial = confidence = problem.uniform(start)
        for _ in range(self.n_rounds):
            output = np.empty(entries.shape, dtype=problem.dtype)
            for seen, judged in splits:
                model = _fit_pairs(prototype, problem, confidence * row_weights, seen)
                output[judged] = model.decision(problem.matrix[judged])
            # Where no candidate has a chance, what was there stays.
            confidence = normalize_entries(entries.gather(output), entries, confidence)

        def make() -> SoftLabelModel:
            final = _fit_pairs(prototype, problem, confidence * row_weights, everyone)
            return replace(final, training_output=output)

        return Result(
            initial, confidence, entries.gather(output), self.n_rounds, make, ranking=confidence
        )

    def _keep(self, problem: Problem, result: Result) -> None:
        super()._keep(problem, result)
        fitted: Any = self._model
        self.estimator_, self.label_columns_ = fitted.estimator, fitted.columns

    def __sklearn_tags__(self) -> Any:
        """Take the features that the classifier takes."""
        tags, estimator = super().__sklearn_tags__(), self.estimator
        if hasattr(estimator, "__sklearn_tags__") and not isinstance(estimator, type):
            theirs = get_tags(estimator).input_tags
            tags.input_tags.sparse, tags.input_tags.allow_nan = theirs.sparse, theirs.allow_nan
        return tags


def _fit_pairs(
    prototype: Any, problem: Problem, weights: Values, seen: NDArray[np.intp]
) -> SoftLabelModel:
    """Fit a clone on the weighted candidate pairs of the rows `seen`.

    Labels are numbered as they come up in the rows: a random classifier then sees the same
    data whatever the classes are called.
    """
    entries = problem.entries
    columns = order_of_appearance(problem.candidates)
    codes = np.argsort(columns)[entries.labels]
    order = np.lexsort((codes, entries.rows))
    used = order[(np.isin(entries.rows, seen) & (weights > 0))[order]]
    if not len(used):
        raise ValueError(
            "sample_weight is zero in all rows but those of one fold. Use out_of_fold=False, or "
            "give more rows a positive weight."
        )
    labels, targets = np.unique(codes[used], return_inverse=True)
    one_label = len(labels) == 1  # which many classifiers refuse
    model = DummyClassifier(strategy="prior") if one_label else clone(prototype)
    model.fit(problem.matrix[entries.rows[used]], targets, sample_weight=weights[used])
    return SoftLabelModel(None, model, columns[labels], entries.shape[1])


@dataclass(frozen=True)
class SoftLabelModel(ProbabilityModel):
    """A fitted classifier and the columns, among all l, of the labels that it knows."""

    estimator: Any
    columns: NDArray[np.intp]
    n_labels: int

    def decision(self, X: Any) -> NDArray[Any]:
        """Predict probabilities of all labels, (m, l)."""
        out = np.zeros((X.shape[0], self.n_labels), dtype=X.dtype)
        out[:, self.columns] = self.estimator.predict_proba(X)
        if not np.isfinite(out).all():
            raise ValueError(
                f"{type(self.estimator).__name__}.predict_proba returned NaN or infinity."
            )
        return out


def _check_weights(sample_weight: ArrayLike, n: int) -> NDArray[np.float64]:
    """Read one finite weight per row, none negative."""
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,) or not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(
            f"sample_weight must be {n} finite numbers, none negative, one per row; got shape "
            f"{weights.shape}."
        )
    if not weights.any():
        raise ValueError("sample_weight is zero in all rows. Give some rows a positive weight.")
    return weights


def _check_estimator(estimator: Any) -> None:
    """Raise a TypeError that names what a classifier lacks to be trained on weighted pairs."""
    lacking, way_out = None, ""
    if isinstance(estimator, type):
        lacking = f"an instance, not the class: {estimator.__name__}()"
    elif not callable(getattr(estimator, "fit", None)):
        lacking = "a fit method"
    elif not has_fit_parameter(estimator, "sample_weight"):
        lacking = "a parameter 'sample_weight' in its fit method"
        if hasattr(estimator, "steps"):
            way_out = (
                " Put the other steps of the pipeline outside: "
                "make_pipeline(scaler, SoftLabelClassifier(classifier))."
            )
    elif not hasattr(estimator, "predict_proba"):
        lacking = "a predict_proba method"
    if lacking is not None:
        raise TypeError(
            f"SoftLabelClassifier cannot train {estimator!r} on weighted candidate pairs: it "
            f"needs {lacking}.{way_out}"
        )
