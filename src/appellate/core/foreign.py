"""Base classifiers of third parties, as our own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from appellate.core.base import PartialLabelClassifier
from appellate.core.problem import Problem
from appellate.core.results import ProbabilityModel, Result
from appellate.numerics.entries import Values
from appellate.numerics.simplex import project_entries


class Foreign(PartialLabelClassifier):
    """A third party's base classifier, which solves a problem by its `fit`."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def _solve(self, problem: Problem, start: Values | None) -> Result:
        entries = problem.entries
        supervision = None if start is None else entries.scatter(start)
        inside = self.estimator
        inside.fit(problem.matrix, problem.candidates.copy(), supervision=supervision)
        output = np.asarray(inside.training_output_)
        if output.shape != entries.shape or not np.isfinite(output).all():
            wrong = "" if output.shape != entries.shape else " with NaN or infinity"
            raise ValueError(
                f"{type(inside).__name__}.training_output_ must be a finite array of shape "
                f"{entries.shape}, one score for every training row and label; got shape "
                f"{output.shape}{wrong}."
            )
        values = entries.gather(output).astype(problem.dtype, copy=False)
        confidence = project_entries(values, entries)
        model = partial(ForeignModel, output, inside, entries.shape[1])
        return Result(problem.uniform(start), confidence, values, 1, model)


@dataclass(frozen=True)
class ForeignModel(ProbabilityModel):
    """A third party's fitted base classifier, which predicts by `predict_proba`."""

    classifier: Any
    n_labels: int

    def decision(self, X: Any) -> NDArray[Any]:
        """Take the probabilities of new rows, if there is one for every label."""
        scores = np.asarray(self.classifier.predict_proba(X))
        if scores.shape != (X.shape[0], self.n_labels):
            raise ValueError(
                f"{type(self.classifier).__name__}.predict_proba returned shape {scores.shape}; "
                f"it must be {(X.shape[0], self.n_labels)}: one column for every class, those "
                "that are nobody's candidate included."
            )
        return scores


def seeded(estimator: Any, seed: int) -> Any:
    """Clone an estimator; every random part of it is given the seed."""
    fresh = clone(estimator)
    for name in fresh.get_params():
        if name.rpartition("__")[2] == "random_state":
            fresh.set_params(**{name: seed})
    return fresh
