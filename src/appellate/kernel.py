"""What the kernel ridge classifiers share: their smoother and their prediction."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

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
        **PartialLabelClassifier._parameter_constraints,
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
