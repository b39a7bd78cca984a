"""What the kernel ridge classifiers share: their smoother and their prediction."""

from __future__ import annotations

import logging
import os
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from appellate._compat import Interval, StrOptions
from appellate.base import Disambiguation, PartialLabelClassifier
from appellate.numerics.entries import CandidateEntries
from appellate.numerics.geometry import Geometry, Plan
from appellate.numerics.kernels import GaussianKernel, LinearKernel
from appellate.numerics.memory import represent
from appellate.numerics.smoothers import Smoother

logger = logging.getLogger("appellate")

#: Constraints of the parameters that say how a kernel is represented.
APPROXIMATION_CONSTRAINTS: dict[str, list[Any]] = {
    "kernel_approximation": [StrOptions({"auto", "exact", "nystroem"})],
    "n_landmarks": [Interval(Integral, 1, None, closed="left"), None],
    "landmarks": [StrOptions({"uniform", "k-means++"})],
    "cache_dir": [str, os.PathLike, None],
}
APPROXIMATION = {
    "kernel_approximation": "auto",
    "n_landmarks": None,
    "landmarks": "uniform",
    "cache_dir": None,
}


def plan_geometry(
    X: Any,
    n_labels: int,
    kernels: set[str],
    *,
    kernel_approximation: str,
    n_ridges: int = 1,
    **settings: Any,
) -> Geometry:
    """Lay out training rows for Gaussian or linear kernels; say what was chosen and its cost.

    `settings` are those of `appellate.numerics.memory.represent`; `n_ridges` is the number of
    different ridges of linear kernels. The message goes to the logger ``"appellate"``: as a
    warning where an approximation was chosen that nobody asked for, which Python shows by
    default, else as information.
    """
    local, cache_dir = getattr(X, "local", True), settings.pop("cache_dir", None)
    for gone in ("landmarks", "n_outputs"):
        settings.pop(gone, None)
    n_landmarks = settings.pop("n_landmarks", None)
    setting = (
        GaussianKernel(1.0, kernel_approximation, n_landmarks, cache_dir)
        if "rbf" in kernels
        else LinearKernel(cache_dir)
    )
    if "rbf" not in kernels:
        settings["n_widths"] = n_ridges
    made = represent(setting, X.shape, n_labels, X.dtype, local=local, **settings)
    plan = Plan(made.kind, made.n_landmarks, made.message, made.memory, cache_dir)
    unasked = plan.kind == "nystroem" and kernel_approximation == "auto"
    logger.log(logging.WARNING if unasked else logging.INFO, "%s", plan.message)
    return Geometry(X, plan)


class KernelClassifier(PartialLabelClassifier):
    """Base class of the methods whose model is a ridge regression on the confidence.

    A subclass has the parameters `kernel`, `bandwidth` and `regularization`, may have those
    of `APPROXIMATION`, and implements `_disambiguate`; its final model regresses the final
    confidence.
    """

    kernel: str
    bandwidth: float
    regularization: float
    kernel_approximation: str = "auto"
    n_landmarks: int | None = None
    landmarks: str = "uniform"
    cache_dir: Any = None
    _n_ridges = 1
    _n_matrices = 3  # of size n x n at most, coupled with a partner, for the exact kernel

    _parameter_constraints = {
        **PartialLabelClassifier._parameter_constraints,
        "kernel": [StrOptions({"rbf", "linear"})],
        "bandwidth": [Interval(Real, 0, None, closed="neither")],
        "regularization": [Interval(Real, 0, None, closed="neither")],
        **APPROXIMATION_CONSTRAINTS,
    }

    def _geometry(self, X: Any, n_labels: int) -> Geometry:
        settings = {name: getattr(self, name) for name in APPROXIMATION}
        return plan_geometry(
            X,
            n_labels,
            {self.kernel},
            n_matrices=self._n_matrices,
            n_ridges=self._n_ridges,
            **settings,
        )

    def _smoother(self, geometry: Geometry) -> Smoother:
        return geometry.smoother(self.kernel, self.bandwidth, self.regularization)

    def _conclude(
        self, geometry: Geometry, entries: CandidateEntries, result: Disambiguation
    ) -> NDArray[Any]:
        smoother = self._smoother(geometry)
        output, self._regressor = smoother.regress(entries, result.confidence)
        self._leverage = smoother.diagonal.copy()  # a view would keep the n x n matrix alive
        return output

    def _decision(self, X: NDArray[Any]) -> NDArray[Any]:
        return self._regressor.predict(X)

    def leave_one_out_decision(self) -> NDArray[Any]:
        """Score every training row by the regression on all the other rows, (n, l).

        In closed form from the training output, the final confidence T and the diagonal of
        the smoother, ``(output_i - S_ii T_i) / (1 - S_ii)``; nothing is refitted.

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
        check_is_fitted(self)
        if len(self._leverage) < 2:
            raise ValueError("leave-one-out needs two training rows or more; got n_samples = 1.")
        own = self._leverage[:, np.newaxis]
        room = np.maximum(1 - own, np.finfo(own.dtype).eps)
        scores: NDArray[Any] = (self.training_output_ - own * self.confidence_) / room
        return scores
