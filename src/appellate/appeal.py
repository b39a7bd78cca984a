"""Classifiers that hear appeals: they leave a docket of verdicts and what became of them."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from appellate.base import PartialLabelClassifier
from appellate.blocks import is_lazy
from appellate.candidates import CandidateSets
from appellate.costs import describe_cost
from appellate.docket import Docket, frame_backend, row_index


class AppealClassifier(PartialLabelClassifier):
    """Base class of the classifiers that give every training row a verdict and an appeal.

    A subclass leaves `verdict_confidence_`, `confidence_` and `label_history_`.
    """

    def docket(
        self, *, ids: Any = None, truth: Any = None, output: str = "auto", separator: str = "|"
    ) -> Any:
        """Tabulate verdict, appeal and outcome of every training sample.

        Parameters
        ----------
        ids : array-like, shape (n,), default=None
            Names of the samples; by default the index of the data frame or series that was
            fitted, else 0 .. n - 1.
        truth : array-like, shape (n,), default=None
            True labels, where they are known; adds what was right before and after.
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
        table = Docket(
            candidates=self.candidates_,
            class_names=self.classes_,
            verdict_confidence=self.verdict_confidence_,
            appeal_confidence=self.confidence_,
            label_history=self.label_history_,
            ids=self.ids_ if ids is None else ids,
            truth=truth,
            rounds=self._rounds(),
            cost=self.cost_,
            cost_name=describe_cost(self._cost_in_use()),
        )
        if output == "docket":
            return table
        return table.to_frame(self._backend if output == "auto" else output, separator=separator)

    def _cost_in_use(self) -> Any:
        """The cost that `cost_` was made of."""
        return getattr(self, "_cost_followed", self.cost)

    def _rounds(self) -> list[NDArray[Any]] | None:
        """Confidence after each round, if the model kept it."""
        return None

    def _open(self, X: Any, y: Any) -> tuple[Any, CandidateSets]:
        self._backend, self._cost_followed = frame_backend(y, X), self.cost
        index = None if is_lazy(X) else row_index(X)
        X, sets = super()._open(X, y)
        self.ids_ = index if self.ids_ is None else self.ids_
        return X, sets
