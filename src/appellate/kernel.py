"""What the kernel ridge classifiers share: their smoother and their prediction."""

from __future__ import annotations

from numbers import Real
from typing import Any

from numpy.typing import NDArray

from appellate._compat import Interval, StrOptions
from appellate.base import Disambiguation, PartialLabelClassifier
from appellate.numerics.entries import CandidateEntries
from appellate.numerics.geometry import Geometry
from appellate.numerics.ridge import Smoother


class KernelClassifier(PartialLabelClassifier):
    """Base class of the methods whose model is a ridge regression on the confidence.

    A subclass has the parameters `kernel`, `bandwidth` and `regularization` and implements
    `_disambiguate`; its final model regresses the final confidence.
    """

    kernel: str
    bandwidth: float
    regularization: float

    _parameter_constraints = {
        "kernel": [StrOptions({"rbf", "linear"})],
        "bandwidth": [Interval(Real, 0, None, closed="neither")],
        "regularization": [Interval(Real, 0, None, closed="neither")],
    }

    def _smoother(self, geometry: Geometry) -> Smoother:
        return geometry.smoother(self.kernel, self.bandwidth, self.regularization)

    def _conclude(
        self, geometry: Geometry, entries: CandidateEntries, result: Disambiguation
    ) -> NDArray[Any]:
        smoother = self._smoother(geometry)
        targets = entries.to_sparse(result.confidence)
        output = smoother.training_output(targets)
        self._regressor = smoother.regressor(targets, output)
        return output

    def _decision(self, X: NDArray[Any]) -> NDArray[Any]:
        return self._regressor.predict(X)
