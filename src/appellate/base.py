"""The contract of every partial-label classifier, and the border work done once for all."""

from __future__ import annotations

import inspect
import logging
import warnings
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import accuracy_score
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted, validate_data

from appellate._compat import fit_context
from appellate.blocks import (
    check_features,
    compute,
    is_lazy,
    open_rows,
    predict_lazily,
    remember_features,
)
from appellate.candidates import CandidateSets, as_candidates, check_length, name_rows
from appellate.costs import candidate_costs, cost_matrix, expected_costs
from appellate.numerics.entries import CandidateEntries, Values
from appellate.numerics.geometry import Geometry
from appellate.numerics.rows import Rows
from appellate.numerics.simplex import project_entries, project_rows

__all__ = ["BaseClassifier", "PartialLabelClassifier", "check_base"]

logger = logging.getLogger("appellate")

_PREDICT_ROWS = 65_536


@runtime_checkable
class BaseClassifier(Protocol):
    """What `PLCPClassifier` asks of a base classifier; a third party's class may meet it.

    ``fit(X, candidates, supervision=None)`` gets the features, the (n, l) boolean candidate
    matrix and, from the second round on, an (n, l) confidence to start from; it leaves the
    (n, l) ``training_output_``: one score for every label of its own training rows, about
    in [0, 1]. ``predict_proba(X)``, (m, l), is used only where PLCP predicts by its base.
    """

    training_output_: NDArray[Any]

    def fit(self, X: Any, candidates: Any, supervision: NDArray[Any] | None = None) -> Self:
        """Train on candidate sets."""
        ...

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return label probabilities of new rows."""
        ...


@dataclass(frozen=True)
class Disambiguation:
    """What a classifier makes of its training samples, as candidate entries.

    Attributes
    ----------
    initial : ndarray, shape (nnz,)
        Confidence before the first step.
    confidence : ndarray, shape (nnz,)
        Confidence after the last step: the targets of the final model.
    output : ndarray, shape (nnz,)
        Training output, at the candidates.
    n_iter : int
        Steps taken.
    objective : tuple of float
        Objective after every step, where the method records one.
    ranking : ndarray, shape (nnz,), or None
        Scores whose largest is the sample's label, where that is not `output`; `confidence`
        must then have the same order.
    state : object
        What the method hands from `_disambiguate` to `_conclude`.
    """

    initial: Values
    confidence: Values
    output: Values
    n_iter: int = 1
    objective: tuple[float, ...] = ()
    ranking: Values | None = None
    state: Any = None

    @property
    def scores(self) -> Values:
        """Candidate entries of the scores whose largest is the sample's label."""
        return self.output if self.ranking is None else self.ranking

    def distribution(self, entries: CandidateEntries) -> Values:
        """Confidence whose largest is the sample's label, as `scores` has it.

        The training output projected onto the simplex; a method that ranks by other scores
        has a confidence in the same order.
        """
        return project_entries(self.output, entries) if self.ranking is None else self.confidence


# A stand-in until the base class of 0.2 is merged: delete.
@dataclass(frozen=True)
class Result:
    """What a method makes of its training rows."""

    initial: Values
    confidence: Values
    output: Values
    n_iter: int
    model: Any
    ranking: Values | None = None
    details: dict[str, Any] | None = None


@dataclass
class Model:
    """What remains of a fit."""

    training_output: NDArray[Any] | None

    def decision(self, X: Any) -> NDArray[Any]:
        """Score new rows."""
        raise NotImplementedError


class PartialLabelClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of all classifiers here: validation, attributes and prediction.

    A method is one subclass with three short methods: `_disambiguate` runs the algorithm on
    candidate entries, `_conclude` keeps what prediction needs, `_decision` scores new rows.
    """

    _parameter_constraints: dict[str, list[Any]] = {"cost": [None, str, dict, "array-like"]}

    # Every wrong label costs the same, for a subclass without the parameter.
    cost: Any = None
    cost_: NDArray[np.float64] | None = None

    # -- what a method implements -------------------------------------------------------

    @abstractmethod
    def _disambiguate(
        self, geometry: Geometry, entries: CandidateEntries, supervision: Values | None
    ) -> Disambiguation:
        """Run the method; `supervision` replaces its initial confidence."""

    @abstractmethod
    def _conclude(
        self, geometry: Geometry, entries: CandidateEntries, result: Disambiguation
    ) -> NDArray[Any]:
        """Keep what prediction needs and return the full training output, (n, l)."""

    @abstractmethod
    def _decision(self, X: NDArray[Any]) -> NDArray[Any]:
        """Score validated new rows, (m, l); larger is likelier."""

    # -- what every method offers -------------------------------------------------------

    @fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, supervision: ArrayLike | None = None) -> Self:
        """Fit to training rows and their candidate sets.

        Parameters
        ----------
        X : array-like, shape (n, q)
            Features; float32 is kept. A memory-mapped array is read where it lies; kernel
            methods also take `appellate.blocks.ParquetRows` and Dask arrays and data frames.
        y : array-like
            An (n, l) 0/1 matrix or data frame is read as **candidate sets** (of which one
            label is true), never as multi-label targets. A 1-D vector gives every row its
            one label; strings in it are split at ``"|"``. Anything else that
            `appellate.candidates.as_candidates` reads is accepted too.
        supervision : array-like, shape (n, l), default=None
            Confidence to start from instead of the method's own: rows on the simplex over
            the candidates.

        Returns
        -------
        self
        """
        X, sets = self._open(X, y)
        self.cost_ = cost_matrix(self.cost, self.classes_)
        entries = CandidateEntries(sets.matrix)
        start = None if supervision is None else check_supervision(supervision, entries, X.dtype)
        geometry = self._geometry(X, sets.shape[1])
        self._keep(geometry, entries, self._disambiguate(geometry, entries, start))
        return self

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Score new rows; predictions are the largest score.

        With a `cost`, the score of a label is minus its expected cost.

        Returns
        -------
        ndarray, shape (m, l), or (m,) for two classes
            With two classes the score of the second minus that of the first, as in
            scikit-learn.
        """
        check_is_fitted(self)
        if is_lazy(X):
            width = None if len(self.classes_) == 2 else len(self.classes_)
            return self._predict_lazily("decision_function", X, None, width)
        scores = self._weigh(self._scores(X))
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Probabilities of every label for new rows, (m, l).

        The scores of a row are projected onto the simplex, which keeps their order. A `cost`
        changes nothing here.
        """
        check_is_fitted(self)
        if is_lazy(X):
            return self._predict_lazily("predict_proba", X, None, len(self.classes_))
        return self._probabilities(self._scores(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Label of new rows, (m,); ties go to the first class.

        The most likely label, or with a `cost` the one of the smallest expected cost,
        ``argmin over j of (predict_proba(X) @ cost_)[:, j]``. Rows are scored in blocks. Of a
        Dask array or data frame the result is a Dask array, not computed yet; so it is with
        `predict_proba` and `decision_function`.
        """
        check_is_fitted(self)
        if is_lazy(X):
            return self._predict_lazily("predict", X, self.classes_.dtype, None)
        columns = self._predict_columns(X)
        labels: NDArray[Any] = self.classes_[columns]
        return labels

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy against a 1-D truth, or covering rate against candidate sets.

        The covering rate is the share of rows whose predicted label is among the
        candidates: it needs no truth, since a label outside the set is certainly wrong.
        """
        columns = self._predict_columns(X)
        if _is_label_vector(y):
            return float(accuracy_score(y, self.classes_[columns], sample_weight=sample_weight))
        sets = as_candidates(y, classes=self.classes_)
        check_length(sets, len(columns))
        covered = sets.matrix[np.arange(len(columns)), columns]
        weights = None if sample_weight is None else np.asarray(sample_weight)
        return float(np.average(covered.astype(float), weights=weights))

    # -- shared machinery ---------------------------------------------------------------

    def _open(self, X: Any, y: Any) -> tuple[NDArray[Any], CandidateSets]:
        """Validate features and candidate sets; remember classes and features."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: "
                "give candidate sets, or one label a row."
            )
        _warn_of_orders(X, y)
        X = self._check_rows(X, reset=True)
        sets = as_candidates(_ravel_column(compute(y)))
        check_length(sets, len(X))
        self.classes_ = sets.class_names
        self.candidates_ = sets.matrix
        self.ids_ = sets.ids
        n_full = np.count_nonzero(sets.matrix.all(axis=1)) if sets.shape[1] > 1 else 0
        if n_full:
            logger.info(
                "%d of %d rows have every label as a candidate: nothing is known of their label.",
                n_full,
                len(X),
            )
        return X, sets

    def _geometry(self, X: Any, n_labels: int) -> Geometry:
        """Lay out the training rows; kernel methods decide about their kernel here."""
        return Geometry(X)

    def _keep(self, geometry: Geometry, entries: CandidateEntries, result: Disambiguation) -> None:
        """Set the fitted attributes from a finished disambiguation."""
        self.training_output_ = self._conclude(geometry, entries, result)
        self.confidence_ = entries.scatter(result.confidence)
        ranking = self._rank(entries, result)
        self.transduction_ = self.classes_[entries.argmax(ranking)]
        self.n_ties_ = entries.count_ties(ranking)
        self.n_iter_ = result.n_iter

    def _predict_columns(self, X: Any) -> NDArray[np.intp]:
        labels = (np.argmax(self._weigh(part), axis=1) for part in self._score_blocks(X))
        return np.concatenate(list(labels))

    def _weigh(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Scores whose largest is the label: as they are, or minus the expected costs, (m, l)."""
        if self.cost_ is None:
            return scores
        return -expected_costs(self._probabilities(scores), self.cost_)

    def _rank(self, entries: CandidateEntries, result: Disambiguation) -> Values:
        """Weigh the candidates of training rows likewise, as entries."""
        if self.cost_ is None:
            return result.scores
        return -candidate_costs(result.distribution(entries), entries, self.cost_)

    def _scores(self, X: Any) -> NDArray[Any]:
        parts = list(self._score_blocks(X))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _score_blocks(self, X: Any) -> Iterator[NDArray[Any]]:
        """Score new rows block by block, so that memory does not grow with their number."""
        check_is_fitted(self)
        X = self._check_rows(X, reset=False)
        if isinstance(X, Rows):
            yield from map(self._decision, X.blocks())
            return
        for block in gen_batches(len(X), _PREDICT_ROWS):
            yield self._decision(X[block])

    def _predict_lazily(self, method: str, X: Any, dtype: Any, width: int | None) -> Any:
        return predict_lazily(self, method, X, dtype, width)

    def _check_rows(self, X: Any, reset: bool) -> Any:
        """Validate features; `reset` remembers their number and names, else they are compared."""
        rows = open_rows(X)
        if rows is None:
            return validate_data(self, X, dtype=[np.float64, np.float32], reset=reset)
        if not len(rows):
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
        if reset:
            remember_features(self, rows)
        else:
            check_features(self, rows.shape[1], getattr(rows, "feature_names", None))
        return rows

    def _probabilities(self, scores: NDArray[Any]) -> NDArray[Any]:
        return project_rows(scores)


def disambiguate(
    classifier: Any, geometry: Geometry, entries: CandidateEntries, supervision: Values | None
) -> Disambiguation:
    """Let any base classifier disambiguate: ours on the shared geometry, others by `fit`."""
    if isinstance(classifier, PartialLabelClassifier):
        return classifier._disambiguate(geometry, entries, supervision)
    candidates = entries.scatter(np.ones(len(entries), dtype=bool))
    classifier.fit(
        geometry.matrix,
        candidates,
        supervision=None if supervision is None else entries.scatter(supervision),
    )
    output = np.asarray(classifier.training_output_)
    if output.shape != entries.shape or not np.isfinite(output).all():
        raise ValueError(
            f"{type(classifier).__name__}.training_output_ must be a finite array of shape "
            f"{entries.shape}, one score for every training row and label; got shape "
            f"{output.shape}{'' if output.shape != entries.shape else ' with NaN or infinity'}."
        )
    values = entries.gather(output).astype(geometry.X.dtype, copy=False)
    start = entries.uniform(values.dtype) if supervision is None else supervision
    return Disambiguation(start, project_entries(values, entries), values)


def conclude(
    classifier: Any,
    owner: PartialLabelClassifier,
    geometry: Geometry,
    entries: CandidateEntries,
    result: Disambiguation,
) -> None:
    """Make a classifier that `disambiguate` trained as good as fitted on the owner's data.

    Its labels follow the owner's cost. Only ours need it: a third party's `fit` has done so
    itself.
    """
    if not isinstance(classifier, PartialLabelClassifier):
        return
    for name in ("classes_", "candidates_", "ids_", "n_features_in_", "feature_names_in_"):
        if hasattr(owner, name):
            setattr(classifier, name, getattr(owner, name))
    classifier.cost_ = owner.cost_
    classifier._keep(geometry, entries, result)


def decide(classifier: Any, X: NDArray[Any]) -> NDArray[Any]:
    """Score validated new rows by any base classifier, (m, l)."""
    if isinstance(classifier, PartialLabelClassifier):
        return classifier._decision(X)
    return np.asarray(classifier.predict_proba(X))


def check_base(estimator: Any) -> None:
    """Raise a TypeError that names what an object lacks to be a base classifier.

    Parameters
    ----------
    estimator : object
        What is to be a base; `BaseClassifier` says what it needs.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> check_base(LogisticRegression())
    Traceback (most recent call last):
    ...
    TypeError: LogisticRegression() cannot be a base classifier: it needs a parameter ...
    """
    if isinstance(estimator, PartialLabelClassifier):
        return
    fit = getattr(estimator, "fit", None)
    lacking = None
    if isinstance(estimator, type):
        lacking = f"an instance, not the class: {estimator.__name__}()"
    elif not callable(fit):
        lacking = "a fit(X, candidates, supervision=None) method"
    elif "supervision" not in inspect.signature(fit).parameters:
        lacking = "a parameter 'supervision=None' in its fit method"
    if lacking is not None:
        raise TypeError(
            f"{estimator!r} cannot be a base classifier: it needs {lacking}. "
            "See appellate.base.BaseClassifier for the protocol."
        )


def check_supervision(supervision: ArrayLike, entries: CandidateEntries, dtype: Any) -> Values:
    """Validate a confidence given as supervision and return its candidate entries."""
    matrix = np.asarray(supervision, dtype=dtype)
    if matrix.shape != entries.shape:
        raise ValueError(
            f"supervision has shape {matrix.shape}; it needs one confidence for every row and "
            f"class: {entries.shape}."
        )
    values = entries.gather(matrix)
    off_simplex = (
        ~np.isfinite(matrix).all(axis=1)
        | (matrix < 0).any(axis=1)
        | (np.abs(matrix.sum(axis=1) - 1) > 1e-3)
        | (np.abs(entries.row_sum(values) - 1) > 1e-3)
    )
    if off_simplex.any():
        raise ValueError(
            f"{name_rows(np.flatnonzero(off_simplex))}: supervision must be non-negative, sum "
            "to 1 over the row's candidates, and be zero elsewhere."
        )
    return values


def _warn_of_orders(X: Any, y: Any) -> None:
    """Warn if X and y are of pandas and name the same rows in another order."""
    one: Any = getattr(X, "index", None)
    two: Any = getattr(y, "index", None)
    if {type(each).__module__.partition(".")[0] for each in (one, two)} != {"pandas"}:
        return
    if len(one) != len(two) or one.equals(two) or set(one) != set(two):
        return
    warnings.warn(
        "X and y have the same index, but in another order. Rows go by position, as everywhere in "
        f"scikit-learn: row 0 of X, {one[0]!r}, is given row 0 of y, {two[0]!r}. If that is not "
        "meant, pass y.loc[X.index].",
        UserWarning,
        stacklevel=5,
    )


def _ravel_column(y: Any) -> Any:
    """Read an (n, 1) array or frame as a vector of labels, with scikit-learn's warning."""
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if len(shape) != 2 or shape[1] != 1 or isinstance(y, CandidateSets) or sp.issparse(y):
        return y
    warnings.warn(
        "A column-vector y was passed when a 1d array was expected. It is read as one label "
        "a row; pass y.ravel() to say so.",
        DataConversionWarning,
        stacklevel=5,
    )
    return np.asarray(y).ravel()


def _is_label_vector(y: Any) -> bool:
    """Whether y holds one label a row (a truth), not candidate sets."""
    if isinstance(y, CandidateSets) or sp.issparse(y):
        return False
    cells = np.asarray(y) if hasattr(y, "shape") else np.asarray(y, dtype=object)
    if cells.ndim != 1:
        return False
    if cells.dtype.kind not in "OUT":
        return True
    collections = (list, tuple, set, frozenset, np.ndarray)
    return not any(isinstance(c, collections) or (isinstance(c, str) and "|" in c) for c in cells)
