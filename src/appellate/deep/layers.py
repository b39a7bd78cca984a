"""A trained network as arrays, which predicts without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Layers:
    """A trained network: standardised features, and ReLU between linear layers.

    Attributes
    ----------
    centre, scale : ndarray, shape (q,)
        Features are ``(X - centre) / scale``.
    layers : list of (ndarray, ndarray)
        Matrix (inputs, outputs) and shift of every layer.

    Examples
    --------
    >>> import numpy as np
    >>> layers = [(np.array([[1.0, -1.0]]), np.zeros(2)), (np.eye(2), np.ones(2))]
    >>> Layers(np.zeros(1), np.ones(1), layers).predict(np.array([[2.0], [-3.0]]))
    array([[3., 1.],
           [1., 4.]])
    """

    centre: NDArray[Any]
    scale: NDArray[Any]
    layers: list[tuple[NDArray[Any], NDArray[Any]]]

    def predict(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Score new rows, (m, l)."""
        out = (X - self.centre) / self.scale
        for i, (matrix, shift) in enumerate(self.layers):
            out = (np.maximum(out, 0) if i else out) @ matrix + shift
        return np.asarray(out)
