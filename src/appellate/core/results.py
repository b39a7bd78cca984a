"""What a fit gives: the result on the training rows, and the model for new rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from numpy.typing import NDArray

from appellate.numerics.entries import CandidateEntries, Values
from appellate.numerics.simplex import project_entries, project_rows


@dataclass(frozen=True)
class Model:
    """What remains of a fit: it scores new rows.

    Attributes
    ----------
    training_output : ndarray, shape (n, l), or None
        Scores of the training rows.
    """

    training_output: NDArray[Any] | None

    @abstractmethod
    def decision(self, X: Any) -> NDArray[Any]:
        """Score validated new rows, (m, l); larger is likelier."""

    def probabilities(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Turn scores into probabilities: projected onto the simplex, which keeps their order."""
        return project_rows(scores)

    def light(self) -> Self:
        """Return the model, and those that it is made of, without their training rows."""
        parts = {name: p.light() for name, p in vars(self).items() if isinstance(p, Model)}
        return replace(self, training_output=None, **parts)


class ProbabilityModel(Model):
    """A model whose scores are probabilities already."""

    def probabilities(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Return the scores."""
        return scores


@dataclass(frozen=True)
class Result:
    """What a method makes of its training rows, as candidate entries.

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
    model : callable
        Makes the fitted `Model`; only the last round of a coupled fit calls it.
    ranking : ndarray, shape (nnz,), or None
        Scores whose largest is the sample's label, where that is not `output`; `confidence`
        must then have the same order.
    details : mapping
        Further fitted attributes, by name.
    """

    initial: Values
    confidence: Values
    output: Values
    n_iter: int
    model: Callable[[], Model]
    ranking: Values | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def distribution(self, entries: CandidateEntries) -> Values:
        """Confidence whose largest is the sample's label.

        The training output projected onto the simplex; a method that ranks by other scores
        has a confidence in the same order.
        """
        return project_entries(self.output, entries) if self.ranking is None else self.confidence
