"""The contract of every partial-label classifier, and the border work done once for all."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import gen_batches, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from appellate._compat import Interval, StrOptions, fit_context
from appellate._parameters import stated_constraints
from appellate.candidates import as_candidates, check_length, name_rows
from appellate.candidates.alignment import ravel_column, read_sets, warn_of_orders
from appellate.candidates.containers import row_index
from appellate.core.problem import Kernel, Problem
from appellate.core.results import Model, Result
from appellate.docket import Docket, frame_backend
from appellate.evidence.costs import cost_matrix, describe_cost, expected_costs
from appellate.numerics.blocks import Blocks
from appellate.numerics.entries import Values
from appellate.numerics.kernels import KERNEL_CONSTRAINT, LinearKernel
from appellate.numerics.sources import check_features, is_lazy, open_blocks, predict_lazily

__all__ = ["BaseClassifier", "PartialLabelClassifier"]

_logger = logging.getLogger("appellate")

_PREDICT_ROWS = 65_536
COUNT = Interval(Integral, 1, None, closed="left")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
POSITIVE = Interval(Real, 0, None, closed="neither")
SHARE = Interval(Real, 0, 1, closed="both")


@runtime_checkable
class BaseClassifier(Protocol):
    """The methods that `PLCPClassifier` needs of a base classifier, also of your own.

    ``fit(X, candidates, supervision=None)`` gets the features, the (n, l) boolean candidate
    matrix and, from the second round on, an (n, l) confidence to start from; it leaves the
    (n, l) ``training_output_``: one score for every label of its own training rows, about
    in [0, 1]. ``predict_proba(X)``, (m, l), is used only where PLCP predicts by its base.
    """

    training_output_: NDArray[Any]

    def fit(self, X: Any, candidates: Any, *, supervision: NDArray[Any] | None = None) -> Self:
        """Train on candidate sets."""
        ...

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return label probabilities of new rows."""
        ...


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
    lacking = None
    if isinstance(estimator, type):
        lacking = f"an instance, not the class: {estimator.__name__}()"
    elif not callable(getattr(estimator, "fit", None)):
        lacking = "a fit(X, candidates, supervision=None) method"
    elif not has_fit_parameter(estimator, "supervision"):
        lacking = "a parameter 'supervision=None' in its fit method"
    if lacking is not None:
        raise TypeError(
            f"{estimator!r} cannot be a base classifier: it needs {lacking}. "
            "See appellate.core.BaseClassifier for the protocol."
        )


def _has_leave_one_out(classifier: PartialLabelClassifier) -> bool:
    return hasattr(classifier._head(), "leave_one_out") if hasattr(classifier, "_model") else False


class PartialLabelClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of all classifiers here: validation, attributes and prediction.

    A method is one subclass with one method, `_solve`, which runs the algorithm on a
    `Problem` and returns a `Result`, whose model scores new rows.
    """

    # A name means the same in every classifier that has the parameter.
    _parameter_constraints: dict[str, list[Any]] = {
        "collaboration": [NOT_NEGATIVE],
        "confidence_weight": [POSITIVE],
        "cost": [None, str, "array-like"],
        "estimator": [object],
        "feature_weight": [POSITIVE],
        "kernel": KERNEL_CONSTRAINT,
        "link": [StrOptions({"collaborative", "aggressive"})],
        "max_iter": [COUNT],
        "n_neighbors": [COUNT],
        "neighbors": [object],
        "random_state": ["random_state"],
        "regularization": [POSITIVE],
        "tol": [NOT_NEGATIVE],
    }

    # Every wrong label costs the same, for a subclass without the parameter.
    cost: Any = None
    label_history_: NDArray[np.intp]

    def __init_subclass__(cls, **options: Any) -> None:
        """Add the constraints of the classes above to those that a class states."""
        super().__init_subclass__(**options)
        cls._parameter_constraints = stated_constraints(cls)

    # -- what a method implements -------------------------------------------------------

    @abstractmethod
    def _solve(self, problem: Problem, start: Values | None) -> Result:
        """Run the method; `start` replaces its initial confidence."""

    def _kernels(self) -> list[tuple[Kernel, Any]]:
        """Kernels and ridges whose n x n matrices the method needs."""
        return []

    def _n_matrices(self) -> float | None:
        """How many n x n matrices of doubles the exact kernels take; None: by the kernels."""
        return None

    def _n_squares(self) -> float | None:
        """How many m x m matrices of doubles m landmarks take; None: by the kernels."""
        return None

    # -- what every method offers -------------------------------------------------------

    @fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, *, supervision: ArrayLike | None = None) -> Self:
        """Fit to training rows and their candidate sets.

        Parameters
        ----------
        X : array-like, shape (n, q)
            Features; float32 is kept. A memory-mapped array is not copied; kernel
            methods also take `appellate.ParquetRows` and Dask arrays and data frames; those
            with a linear kernel, PL-KNN and `JuryClassifier` sparse arrays.
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
        problem, start = self._open(X, y, supervision)
        with problem.blas():
            self._keep(problem, self._solve(problem, start))
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

        By default the scores of a row are projected onto the simplex, which keeps their order.
        A `cost` changes nothing here.
        """
        check_is_fitted(self)
        if is_lazy(X):
            return self._predict_lazily("predict_proba", X, None, len(self.classes_))
        return self._head().probabilities(self._scores(X))

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
        labels: NDArray[Any] = self.classes_[self._predict_columns(X)]
        return labels

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Covering rate against candidate sets, which is accuracy against one label per row.

        The covering rate is the share of rows whose predicted label is among the
        candidates: it needs no truth, since a label outside the set is certainly wrong. A
        class that `fit` has not seen is never predicted.
        """
        columns = self._predict_columns(X)
        sets = read_sets(ravel_column(y, stacklevel=3), self.classes_)
        check_length(sets, len(columns))
        covered = sets.matrix[np.arange(len(columns)), columns]
        weights = None if sample_weight is None else np.asarray(sample_weight)
        return float(np.average(covered.astype(float), weights=weights))

    @available_if(_has_leave_one_out)  # type: ignore[untyped-decorator]
    def leave_one_out_decision(self) -> NDArray[Any]:
        """Score every training row by the regression on all the other rows, (n, l).

        There only where the fitted model has it in closed form, as kernel ridge regression
        does: ``(output_i - S_ii T_i) / (1 - S_ii)``, with T the final confidence and S the
        smoother; nothing is refitted.

        Only the regression leaves the row out: the confidences of the other rows were found
        with this row's candidates among the data. Scores made of it are therefore a little
        kinder than those of new rows.

        Returns
        -------
        ndarray, shape (n, l)
            Larger is likelier, as in `decision_function`.

        Examples
        --------
        >>> from appellate import SUREClassifier
        >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
        >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
        >>> model = SUREClassifier().fit(X, y)
        >>> model.classes_[model.leave_one_out_decision().argmax(axis=1)]
        array(['cat', 'cat', 'cat', 'dog', 'dog', 'dog'], dtype='<U3')
        """
        scores: NDArray[Any] = self._head().leave_one_out()  # type: ignore[attr-defined]
        return scores

    # -- from X and y to a problem, from a result to fitted attributes ------------------

    def _open(
        self, X: Any, y: Any, supervision: ArrayLike | None
    ) -> tuple[Problem, Values | None]:
        """Validate features, candidate sets and the confidence to start from."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: "
                "give candidate sets, or one label per row."
            )
        self.__dict__.pop("_model", None)  # a failed fit leaves no half-fitted classifier
        backend = index = None
        if not isinstance(X, np.ndarray) or not isinstance(y, np.ndarray):
            backend = frame_backend(y, X)
            index = None if is_lazy(X) else row_index(X)
            y = y.compute() if is_lazy(y) else y
            warn_of_orders(X, y)
        X = self._check_rows(X, reset=True)
        sets = as_candidates(ravel_column(y) if getattr(y, "shape", ())[1:] == (1,) else y)
        if len(sets.matrix) != X.shape[0]:
            check_length(sets, X.shape[0])
        if sets.ids is None and index is not None:
            sets = replace(sets, ids=index)
        n_full = np.count_nonzero(sets.matrix.all(axis=1))
        n, l = sets.matrix.shape
        if n_full and l > 1:
            _logger.info(
                "%d of %d rows have every label as a candidate: their labels are unknown.",
                n_full,
                n,
            )
        names = ("n_features_in_", "feature_names_in_")
        problem = Problem(
            X,
            sets,
            kernels=self._kernels,
            n_matrices=self._n_matrices,
            n_squares=self._n_squares,
            cost=None if self.cost is None else cost_matrix(self.cost, sets.class_names),
            backend=backend,
            features={name: getattr(self, name) for name in names if hasattr(self, name)},
        )
        if supervision is None:
            return problem, None
        matrix, entries = np.asarray(supervision, dtype=problem.dtype), problem.entries
        if matrix.shape != entries.shape:
            raise ValueError(
                f"supervision has shape {matrix.shape}; it needs one confidence for every row and "
                f"class: {entries.shape}."
            )
        start = entries.gather(matrix)
        off_simplex = (
            ~np.isfinite(matrix).all(axis=1)
            | (matrix < 0).any(axis=1)
            | (np.abs(matrix.sum(axis=1) - 1) > 1e-3)
            | (np.abs(entries.row_sum(start) - 1) > 1e-3)
        )
        if off_simplex.any():
            raise ValueError(
                f"{name_rows(np.flatnonzero(off_simplex))}: supervision must be non-negative, sum "
                "to 1 over the row's candidates, and be zero elsewhere."
            )
        return problem, start

    def _keep(self, problem: Problem, result: Result) -> None:
        """Set the fitted attributes."""
        entries = problem.entries
        ranking = problem.rank(result)
        self._model = result.model()
        output = self._model.training_output
        if output is None or not np.isfinite(output).all():
            self.__dict__.pop("_model")
            raise ValueError(
                f"{type(self).__name__} gave scores that are not finite. Scale the features, for "
                "instance by StandardScaler, or raise the regularization."
            )
        self.training_output_ = output
        self.confidence_ = entries.scatter(result.confidence)
        self.classes_, self.candidates_ = problem.classes, problem.candidates
        self.ids_ = problem.ids
        self.cost_ = problem.cost
        self._backend = problem.backend
        labels, self.n_ties_ = entries.decide(ranking)
        self.transduction_ = self.classes_[labels]
        self.n_iter_ = result.n_iter
        self._cost_followed = self.cost  # which `set_params` may change
        for name, value in {**problem.features, **result.details}.items():
            setattr(self, name, value)
        if "label_history_" in result.details:
            first, last = self.label_history_[[0, -1]]
            self.verdict_, self.overturned_ = self.classes_[first], first != last

    def _head(self) -> Model:
        """Who predicts."""
        return self._model

    def __sklearn_is_fitted__(self) -> bool:
        """Tell whether `fit` came to its end."""
        return hasattr(self, "_model")

    def __sklearn_tags__(self) -> Any:
        """Take sparse features where the kernel is linear."""
        tags, kernel = super().__sklearn_tags__(), getattr(self, "kernel", None)
        tags.input_tags.sparse = kernel == "linear" or isinstance(kernel, LinearKernel)
        return tags

    # -- scores of new rows -------------------------------------------------------------

    def _predict_columns(self, X: Any) -> NDArray[np.intp]:
        labels = (np.argmax(self._weigh(part), axis=1) for part in self._score_blocks(X))
        return np.concatenate(list(labels))

    def _weigh(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Scores whose largest is the label: as they are, or minus the expected costs, (m, l)."""
        if self.cost_ is None:
            return scores
        return -expected_costs(self._head().probabilities(scores), self.cost_)

    def _scores(self, X: Any) -> NDArray[Any]:
        parts = list(self._score_blocks(X))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _score_blocks(self, X: Any) -> Iterator[NDArray[Any]]:
        """Score new rows block by block, so that memory does not grow with their number."""
        check_is_fitted(self)
        X, head = self._check_rows(X, reset=False), self._head()
        for block in self._blocks_of(X):
            scores = head.decision(block)
            if not np.isfinite(scores).all():
                raise ValueError(
                    f"{type(self).__name__} gave scores that are not finite: these rows are too "
                    "far from those that were fitted. Scale them as those were."
                )
            yield scores

    def _blocks_of(self, X: Any) -> Iterator[Any]:
        if isinstance(X, Blocks):
            return X.blocks()
        return (X[rows] for rows in gen_batches(X.shape[0], _PREDICT_ROWS))

    def _predict_lazily(self, method: str, X: Any, dtype: Any, width: int | None) -> Any:
        """Apply a method to every chunk of a Dask collection, later."""
        light = PartialLabelClassifier()  # all that predicts, with the head alone
        light.classes_, light.cost_ = self.classes_, self.cost_
        light.n_features_in_, light._model = self.n_features_in_, self._head().light()
        return predict_lazily(getattr(light, method), X, dtype, width, model=self)

    def _check_rows(self, X: Any, reset: bool) -> Any:
        """Validate features; `reset` remembers their number and names, else they are compared."""
        rows = None if type(X) is np.ndarray else open_blocks(X)
        if rows is None:
            tags = get_tags(self).input_tags
            return validate_data(
                self,
                X,
                dtype=[np.float64, np.float32],
                accept_sparse="csr" if tags.sparse else False,
                ensure_all_finite="allow-nan" if tags.allow_nan else True,
                reset=reset,
            )
        if not len(rows):
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
        check_features(self, rows, rows.feature_names, reset=reset)
        return rows


class AppealClassifier(PartialLabelClassifier):
    """Base class of the classifiers that give every training row a first and a final label.

    A subclass leaves `verdict_confidence_`, `confidence_` and `label_history_`.
    """

    # Called after every round of a fit with its number and the largest possible number.
    _on_round: Callable[[int, int], object] | None = None

    def docket(
        self, *, ids: Any = None, truth: Any = None, output: str = "auto", separator: str = "|"
    ) -> Any:
        """Tabulate the first label, the final label and the outcome of every training sample.

        Parameters
        ----------
        ids : array-like, shape (n,), default=None
            Names of the samples; by default the index of the data frame or series that was
            fitted, else 0 .. n - 1.
        truth : array-like, shape (n,), default=None
            True labels, if they are known; adds whether both labels are correct.
        output : {"auto", "pandas", "polars", "dict", "docket"}, default="auto"
            A data frame of the kind that was fitted; after fitting arrays whichever of
            pandas and polars is installed, else a dict of arrays. ``"docket"`` returns the
            `appellate.docket.Docket` itself, for its `to_html` and arrays.
        separator : str, default="|"
            Between the labels in the column of candidates.

        Returns
        -------
        DataFrame, dict of ndarray, or Docket
            Columns as `appellate.docket.Docket` describes.
        """
        check_is_fitted(self)
        table = self._tabulate(
            candidates=self.candidates_,
            class_names=self.classes_,
            verdict_confidence=self.verdict_confidence_,
            appeal_confidence=self.confidence_,
            label_history=self.label_history_,
            ids=self.ids_ if ids is None else ids,
            truth=truth,
            rounds=self._rounds(),
            cost=self.cost_,
            cost_name=describe_cost(self._cost_followed),
        )
        if output == "docket":
            return table
        return table.to_frame(self._backend if output == "auto" else output, separator=separator)

    def _tabulate(self, **parts: Any) -> Docket:
        return Docket(**parts)

    def _rounds(self) -> list[NDArray[Any]] | None:
        """Confidence after each round, if the model kept it."""
        return None
