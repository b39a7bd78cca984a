"""Scores as probabilities: temperatures, shifts, and the weights of several classifiers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate.evidence.held_out import criterion
from appellate.evidence.likelihood import RARE, Evidence
from appellate.numerics.search import minimize_over_log

__all__ = ["Scale", "fit_scale", "fit_temperature", "mixture_weights", "soften"]

_WEIGHT_STEPS = 200
_TEMPERATURES = 0.01, 10.0
_REGAINED = 0.5  # of what shrinkage takes from rare labels, where a label came first
_SHIFT_STEPS, _SHIFT_STILL = 20, 0.01


def soften(scores: NDArray[Any], temperature: float) -> NDArray[np.float64]:
    """``softmax(scores / temperature)`` over the last axis.

    Parameters
    ----------
    scores : ndarray
        Any numbers.
    temperature : float
        The larger, the flatter.

    Returns
    -------
    ndarray of the same shape

    Examples
    --------
    >>> import numpy as np
    >>> soften(np.array([[1.0, 0.0]]), 0.5).round(3)
    array([[0.881, 0.119]])
    """
    out = np.asarray(scores - scores.max(axis=-1, keepdims=True), dtype=np.float64)
    out /= temperature
    np.exp(out, out=out)
    out /= out.sum(axis=-1, keepdims=True)
    return out


def fit_temperature(
    scores: NDArray[Any],
    evidence: Evidence,
    tau: float,
    bounds: tuple[float, float] = _TEMPERATURES,
) -> float:
    """Temperature at which ``softmax(scores / T)`` has the largest criterion.

    Bounded search over log T to one per cent. Out-of-fold scores that say nothing get a large
    temperature.

    Parameters
    ----------
    scores : ndarray of shape (n, l)
        Out-of-fold scores.
    evidence : Evidence
        What was observed of the rows.
    tau : float
        Ambiguity: 0 for label-first, 1 for set-first.
    bounds : tuple of float, default=(0.01, 10.0)
        Smallest and largest temperature.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> evidence = Evidence.of_sets(np.array([[True, False], [False, True], [False, True]]))
    >>> scores = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    >>> 0.2 < fit_temperature(scores, evidence, 0.0) < 1.0
    True
    """

    def loss(log_temperature: float) -> float:
        return -criterion(soften(scores, np.exp(log_temperature)), evidence, tau)

    low, high = np.log(bounds)
    return minimize_over_log(loss, (low, high), precision=0.01).scale


@dataclass(frozen=True, eq=False)
class Scale:
    """What makes probabilities of a member's scores, ``softmax((scores + shift) / temperature)``.

    Attributes
    ----------
    temperature : float
        The larger, the flatter.
    shift : ndarray of shape (l,) or float
        What every label's score is raised by.

    Examples
    --------
    >>> import numpy as np
    >>> Scale(0.5, np.array([0.0, 1.0])).soften(np.array([[1.0, 0.0]])).round(2)
    array([[0.5, 0.5]])
    """

    temperature: float
    shift: Any = 0.0

    def soften(self, scores: NDArray[Any]) -> NDArray[np.float64]:
        """Probabilities, of the shape of the scores."""
        return soften(scores + self.shift, self.temperature)


def fit_scale(
    scores: NDArray[Any],
    evidence: Evidence,
    tau: float,
    shares: NDArray[np.float64],
    bounds: tuple[float, float] = _TEMPERATURES,
) -> Scale:
    """Temperature and shift of a member: as in `fit_temperature`, and rare labels made good.

    A regression is shrunk to the mean and so gives rare labels less than their share of what it
    learned from; where every round learns from the one before they fade away, and labels take
    over their look-alikes. The shift that gives the mean probabilities these shares is
    ``T b`` with ``b <- b + log(shares / mean softmax(scores / T + b))``; ``(1 - tau) / 2`` of it
    is taken. Sets that came first need none: dividing by the labels' frequency does the same.

    Parameters
    ----------
    scores : ndarray of shape (n, l)
        Out-of-fold scores.
    evidence : Evidence
        What was observed of the rows.
    tau : float
        Ambiguity: 0 for label-first, 1 for set-first.
    shares : ndarray of shape (l,)
        Share of every label in what the member learned from.
    bounds : tuple of float, default=(0.01, 10.0)
        Smallest and largest temperature.

    Returns
    -------
    Scale

    Examples
    --------
    >>> import numpy as np
    >>> evidence = Evidence.of_sets(np.array([[True, False], [False, True], [False, True]]))
    >>> scores = np.array([[0.6, 0.4], [0.2, 0.8], [0.1, 0.9]])
    >>> shares = np.array([0.6, 0.4])
    >>> scale = fit_scale(scores, evidence, 0.0, shares)
    >>> plain = soften(scores, scale.temperature).mean(axis=0)
    >>> bool(plain[0] < scale.soften(scores).mean(axis=0)[0] < shares[0])
    True
    """
    temperature = fit_temperature(scores, evidence, tau, bounds)
    wanted, shift = shares + RARE, np.zeros(len(shares))
    for _ in range(_SHIFT_STEPS if tau < 1 else 0):
        means = soften(scores + temperature * shift, temperature).mean(axis=0)
        step = np.log(wanted / (means + RARE))
        shift += step - step.mean()
        if np.ptp(step) < _SHIFT_STILL:
            break
    return Scale(temperature, (1 - tau) * _REGAINED * temperature * shift)


def mixture_weights(odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights of members whose odds explain the rows best.

    ``argmax over w on the simplex of mean_i log(sum_m w_m L_im + w_0)``, a concave problem, by
    200 steps of expectation-maximisation from equal weights. Member 0 knows nothing (odds 1)
    and is dropped afterwards.

    Parameters
    ----------
    odds : ndarray, shape (n, M)
        `set_odds` of every member.

    Returns
    -------
    ndarray, shape (M,)
        Weights that sum to one.

    Examples
    --------
    >>> import numpy as np
    >>> mixture_weights(np.array([[2.0, 0.5], [2.0, 0.5], [1.5, 1.6]])).round(2)
    array([1., 0.])
    """
    members = np.column_stack([np.ones(len(odds)), odds])
    members /= members.max(axis=1, keepdims=True)
    weights = np.full(members.shape[1], 1 / members.shape[1])
    for _ in range(_WEIGHT_STEPS):
        weights = weights * (members.T @ (1 / (members @ weights))) / len(members)
    total = weights[1:].sum()
    if not total > 0:
        return np.full(odds.shape[1], 1 / odds.shape[1])
    return np.asarray(weights[1:] / total)
