"""Choose an epoch by rows kept aside, from their candidate sets alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from appellate.deep.data import Rows
from appellate.metrics import approximated_accuracy, candidate_likelihood, covering_rate


class HeldOut:
    """Rows kept aside, and the epoch that did best on them.

    Parameters
    ----------
    rows : ndarray of int
        Rows that are not trained on.
    candidates : ndarray of bool, shape (n, l)
        Candidate sets of all rows.
    score : str
        One of `appellate.deep.settings.SCORES` to choose the epoch by, or ``"last"`` to only
        record all of them.
    head : str
        Whose probabilities are scored.
    """

    def __init__(self, rows: Rows, candidates: NDArray[np.bool_], score: str, head: str) -> None:
        self.rows, self.score, self.head = rows, score, head
        self._candidates = candidates[rows]
        self.best: dict[str, Any] | None = None
        self.best_epoch, self.best_score = 0, -np.inf

    def judge(
        self, heads: dict[str, NDArray[np.float32]], epoch: int, method: nn.Module
    ) -> dict[str, float]:
        """Score an epoch, and keep its state if none before was better."""
        probabilities = heads.get(self.head, heads["base"])
        names = np.arange(probabilities.shape[1])
        predicted = probabilities.argmax(axis=1)
        scores = {
            "covering_rate": covering_rate(self._candidates, predicted, classes=names),
            "approximated_accuracy": approximated_accuracy(
                self._candidates, probabilities, classes=names
            ),
            "candidate_likelihood": candidate_likelihood(
                self._candidates, probabilities, classes=names, probabilities=True
            ),
        }
        if self.score in scores and scores[self.score] > self.best_score:
            self.best_epoch, self.best_score = epoch, scores[self.score]
            state = method.state_dict()
            self.best = {name: value.detach().clone() for name, value in state.items()}
        return scores

    def state(self) -> dict[str, Any]:
        """Return the best so far, for a checkpoint."""
        score = None if self.best is None else self.best_score
        return {"best": self.best, "epoch": self.best_epoch, "score": score}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take up the best so far."""
        self.best, self.best_epoch = state["best"], state["epoch"]
        self.best_score = -np.inf if state["score"] is None else state["score"]
