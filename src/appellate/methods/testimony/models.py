"""Probabilities of a model as one more answer to every row, calibrated without true labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax

from appellate.candidates.names import naming
from appellate.methods.testimony.features import answer_likelihood, least, scale_of
from appellate.methods.testimony.people import EDGE, Matrix, Opinions


@dataclass(frozen=True)
class ModelAnswers:
    """What a model says of every row.

    Attributes
    ----------
    name : str
        What it is called.
    spoke : ndarray of bool, shape (n,)
        The rows that it has probabilities for.
    log : ndarray, shape (n, l)
        Logarithms of its probabilities, 0 if there are none.
    """

    name: Any
    spoke: NDArray[np.bool_]
    log: Matrix

    def __getitem__(self, rows: Any) -> ModelAnswers:
        """Return some rows."""
        return ModelAnswers(self.name, self.spoke[rows], self.log[rows])

    def shares(self) -> Matrix:
        """Its probabilities, (n, l); 0 if there are none."""
        return np.asarray(softmax(self.log, axis=1) * self.spoke[:, None])

    def evidence(self, trust: float) -> Matrix:
        """Log-likelihood ratio of its answer, (n, l): ``log p^t - log mean p^t``, normalised p^t.

        The mean over the rows takes out how frequent the model thinks the labels are.
        """
        if not self.spoke.any():
            return np.zeros_like(self.log)
        powers = log_softmax(trust * self.log, axis=1)
        frequency = np.exp(powers[self.spoke]).mean(axis=0)
        return np.where(self.spoke[:, None], powers - np.log(np.maximum(frequency, EDGE)), 0.0)

    def find_trust(self, others: Matrix, opinions: Opinions) -> float:
        """Inverse temperature that best predicts every answer from the model and all the others.

        Maximises the sum of `answer_likelihood` with the prior ``log t ~ N(0, 1.5^2)``, log t in
        [-3, 4]. Without an answer it is 1.
        """
        answered = self.spoke[opinions.rows]
        if not answered.any():
            return 1.0
        part = opinions[answered]

        def loss(log_t: float) -> float:
            found = answer_likelihood(1.0, self.evidence(np.exp(log_t)), others, part)
            return log_t**2 / (2 * 1.5**2) - float(part.weights @ found)

        return float(np.exp(least(loss).x))

    def match(self, shares: Matrix, answered: NDArray[np.bool_]) -> float:
        """Inverse temperature at which its probabilities are nearest to the vote shares."""
        rows = self.spoke & answered
        return scale_of(self.log[rows], shares[rows])[0] if rows.any() else 1.0


def read_models(
    probabilities: Any, shape: tuple[int, int], n_named: int | None = None
) -> list[ModelAnswers]:
    """Check the probabilities of one model, (n, l), or of several by name.

    A row of NaN is a row that the model has no probabilities for. With `n_named` the classes
    after so many are new to the model.
    """
    if probabilities is None:
        return []
    several = isinstance(probabilities, Mapping)
    named = dict(probabilities) if several else {"model": probabilities}
    columns = shape[1] if n_named is None else n_named
    return [_read(name, values, (shape[0], columns), shape[1]) for name, values in named.items()]


def _read(name: Any, values: Any, shape: tuple[int, int], n_labels: int) -> ModelAnswers:
    try:
        table = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"probabilities of {name!r} must be numbers, one per class.") from error
    if table.shape != shape:
        raise ValueError(
            f"probabilities of {name!r} have shape {table.shape}, but there are {shape[0]} rows "
            f"and {shape[1]} classes. Give one row per row of y and one column per class, in the "
            "order of the classes."
        )
    spoke: NDArray[np.bool_] = ~np.asarray(np.isnan(table).all(axis=1))
    total = table.sum(axis=1)
    wrong = spoke & ~((table >= 0).all(axis=1) & np.isfinite(total) & (total > 0))
    if wrong.any():
        raise ValueError(
            f"probabilities of {name!r}: {naming('row', np.flatnonzero(wrong))} must hold numbers "
            "of 0 or more that do not sum to 0. Fill a row with NaN if the model has none for it."
        )
    if (np.abs(total[spoke] - 1) > 0.01).any():
        row = np.flatnonzero(spoke)[np.abs(total[spoke] - 1) > 0.01][0]
        raise ValueError(
            f"probabilities of {name!r}: row {row} sums to {total[row]:.4g}, not to 1. Give "
            "probabilities, not scores: softmax(scores)."
        )
    table = np.pad(table, ((0, 0), (0, n_labels - shape[1])))
    log = np.log(np.maximum(np.where(spoke[:, None], table, 1.0), EDGE))
    return ModelAnswers(name, spoke, np.where(spoke[:, None], log, 0.0))
