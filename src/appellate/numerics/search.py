"""Search for the best scale: one number, over its logarithm."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar


class BestScale(NamedTuple):
    """The best scale and its loss."""

    scale: float
    loss: float


def minimize_over_log(
    loss: Callable[[float], float], bounds: tuple[float, float], precision: float = 1e-5
) -> BestScale:
    """Find the scale of the smallest loss, by a bounded search over its logarithm.

    Parameters
    ----------
    loss : callable
        Loss of the **logarithm** of a scale.
    bounds : tuple of float
        Smallest and largest logarithm.
    precision : float, default=1e-5
        Precision of the logarithm: 0.01 finds the scale to one per cent.

    Returns
    -------
    BestScale
        With `scale` and `loss`. The bounds themselves are approached, not tried.

    Examples
    --------
    >>> minimize_over_log(lambda log: (log - 1) ** 2, (-3.0, 4.0)).scale.__round__(3)
    2.718
    """
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": precision})
    return BestScale(float(np.exp(found.x)), float(found.fun))
