"""What the kernel ridge classifiers share: kernel, ridge and the final regression."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate.base import Model, PartialLabelClassifier, Result
from appellate.numerics.entries import Values
from appellate.numerics.smoothers import Regressor
from appellate.problem import Kernel, Problem


@dataclass(frozen=True)
class RidgeModel(Model):
    """A ridge regression on the final confidence, or on what a label is *not*.

    Attributes
    ----------
    regressor : Regressor
        Scores new rows.
    complement : bool
        Whether it regresses on one minus the confidence, and so do its scores.
    confidence : ndarray, shape (n, l)
        The targets.
    leverage : ndarray, shape (n,)
        Diagonal of the smoother.
    """

    regressor: Regressor
    complement: bool
    confidence: NDArray[Any]
    leverage: NDArray[Any]

    def decision(self, X: Any) -> NDArray[Any]:
        """Score new rows by the regression, (m, l)."""
        scores = self.regressor.predict(X)
        return 1 - scores if self.complement else scores

    def leave_one_out(self) -> NDArray[Any]:
        """Score every training row by the regression on all the other rows, (n, l)."""
        if len(self.leverage) < 2:
            raise ValueError("leave-one-out needs two training rows or more; got n_samples = 1.")
        own = self.leverage[:, np.newaxis]
        room = np.maximum(1 - own, np.finfo(own.dtype).eps)
        scores: NDArray[Any] = (self.training_output - own * self.confidence) / room
        return scores

    def honest_scores(self) -> NDArray[Any]:
        """Leave-one-out scores; of a single row the training output."""
        return self.leave_one_out() if len(self.leverage) > 1 else super().honest_scores()

    def light(self) -> RidgeModel:
        """Return what predicts, alone."""
        nothing = np.empty(0)
        return replace(self, training_output=None, confidence=nothing, leverage=nothing)


class KernelClassifier(PartialLabelClassifier):
    """Base class of the methods whose model is a ridge regression on the confidence.

    A subclass has the parameters `kernel` and `regularization`, and implements `_solve`.
    """

    kernel: Kernel
    regularization: float

    def _kernels(self) -> list[tuple[Kernel, Any]]:
        return [(self.kernel, self.regularization)]

    def _result(
        self,
        problem: Problem,
        initial: Values,
        confidence: Values,
        output: Values,
        n_iter: int,
        *,
        complement: bool = False,
        **details: Any,
    ) -> Result:
        """Wrap up a disambiguation; the model regresses on the final confidence."""
        smoother, entries = problem.smoother(self.kernel, self.regularization), problem.entries
        return Result(
            initial,
            confidence,
            output,
            n_iter,
            model=lambda: RidgeModel(
                *smoother.regress(entries, confidence, complement=complement),
                complement,
                entries.scatter(confidence),
                smoother.diagonal,
            ),
            details=details,
        )
