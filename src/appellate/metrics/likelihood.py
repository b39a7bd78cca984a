"""How likely a classifier finds the candidate sets; no truth is needed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from appellate.metrics._reading import arrange_candidates

_LOG_TEMPERATURES = np.log([1e-3, 1e1])
_LEAST = float(np.log(1e-6))


def candidate_likelihood(candidates: Any, scores: ArrayLike, *, classes: Any = None) -> float:
    """Mean log-probability of the candidate sets under the scores of a classifier.

    With ``p = softmax(scores / t)``, the mean of ``log(sum of p over the candidates)`` at the
    temperature t in [0.001, 10] that makes it largest. That one fitted number takes out the
    scale of the scores, in which ridge regressions of different width and penalty differ. No
    set is given less than 1e-6.

    Unlike the covering rate it looks at more than the largest score, and it does not jump.

    Parameters
    ----------
    candidates : array-like
        Candidate sets, anything that `as_candidates` reads.
    scores : array-like, shape (n, l), or (n,) for two classes
        As of ``decision_function``.
    classes : sequence, default=None
        Class of every column of `scores`, as `classes_` of a classifier; by default the
        classes of `candidates`, in their order.

    Returns
    -------
    float
        At most 0, where all the probability is on the candidates; constant scores get the
        mean log of ``candidates / classes``.

    Examples
    --------
    >>> y, names = ["a|b", "b|c"], ["a", "b", "c"]
    >>> candidate_likelihood(y, [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], classes=names).__round__(3)
    -0.405
    >>> candidate_likelihood(y, [[0.9, 0.1, 0.0], [0.2, 0.1, 0.0]], classes=names).__round__(3)
    -0.316
    """
    values = np.asarray(scores, dtype=float)
    if values.ndim == 1:
        values = np.stack([-values / 2, values / 2], axis=1)
    if values.ndim != 2 or not np.isfinite(values).all():
        raise ValueError(
            f"scores of shape {values.shape} must be finite, one for every row and class (n, l)."
        )
    inside = np.where(arrange_candidates(candidates, classes, values), values, -np.inf)

    def loss(log_temperature: float) -> float:
        sharpness = np.exp(-log_temperature)
        logs = logsumexp(sharpness * inside, axis=1) - logsumexp(sharpness * values, axis=1)
        return -float(np.mean(np.clip(logs, _LEAST, 0)))

    low, high = _LOG_TEMPERATURES
    found = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 0.02})
    return -min(float(found.fun), loss(low), loss(high))
