"""How false labels come into candidate sets: the strategies of `make_partial_labels`.

A strategy is turned into a `Plan`, which draws the candidate sets of one block of rows after
the other, so that memory stays small.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array

from appellate.candidates import name_rows

Floats = NDArray[np.float64]
Draw = Callable[[Any], Floats]
_FOLDS = 5


class Plan(ABC):
    """Draws candidate sets, given the columns of the true labels."""

    @abstractmethod
    def draw(self, truth: NDArray[np.intp], rows: slice, draw: Draw) -> NDArray[np.bool_]:
        """Draw the candidates, (b, l), of a block of rows.

        Parameters
        ----------
        truth : ndarray, shape (b,)
            Columns of the true labels of the block.
        rows : slice
            Where the block lies among all rows.
        draw : callable
            Returns numbers uniform in [0, 1) of a given shape.
        """

    @abstractmethod
    def limits(self, truth: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the largest size that the set of each row can have, (n,)."""


@dataclass(frozen=True)
class Flip(Plan):
    """Every false label joins independently, with a chance of its own.

    Attributes
    ----------
    chance : ndarray, shape (l, l) or (n, l)
        Chances of all labels, for each true label or, `by_row`, for each row; 0 for the truth.
    by_row : bool
        Whether the rows of `chance` are samples.
    left_out : ndarray of bool, shape (n,), or None
        Rows from whose sets the truth is left out.
    fewest : int
        Sets that come out smaller are filled up with labels that have a chance, likelier ones
        first.
    fill_any : bool
        Fill up with any false label instead.
    """

    chance: Floats
    by_row: bool = False
    left_out: NDArray[np.bool_] | None = None
    fewest: int = 1
    fill_any: bool = False

    def draw(self, truth: NDArray[np.intp], rows: slice, draw: Draw) -> NDArray[np.bool_]:
        """Flip every label, add or leave out the truth, and fill up small sets."""
        chance = self.chance[rows] if self.by_row else self.chance[truth]  # (b, l)
        sets = draw(chance.shape) < chance
        keep = np.ones(len(truth), dtype=bool) if self.left_out is None else ~self.left_out[rows]
        sets[np.arange(len(truth)), truth] = keep
        small = np.flatnonzero(np.count_nonzero(sets, axis=1) < self.fewest)
        if small.size:
            weight = self._weight(chance[small], truth[small])
            sets[small] |= _fill(sets[small], weight, self.fewest, draw)
        return sets

    def limits(self, truth: NDArray[np.intp]) -> NDArray[np.intp]:
        """Count the labels that can join, and the truth where it is sure to be there."""
        sure = 1 if self.left_out is None else 0
        if self.by_row:
            return np.count_nonzero(self.chance, axis=1) + sure
        weight = self._weight(self.chance, np.arange(len(self.chance)))
        return (np.count_nonzero(weight, axis=1) + sure)[truth]

    def _weight(self, chance: Floats, truth: NDArray[np.intp]) -> Floats:
        if not self.fill_any:
            return chance
        weight = np.ones_like(chance)
        weight[np.arange(len(truth)), truth] = 0
        return weight


def _fill(sets: NDArray[np.bool_], weight: Floats, fewest: Any, draw: Draw) -> NDArray[np.bool_]:
    """Choose labels with probability proportional to weight until each set has enough."""
    with np.errstate(divide="ignore"):
        waiting = -np.log1p(-draw(sets.shape)) / weight  # the first to arrive are chosen
    waiting[sets | (weight <= 0)] = np.inf
    lacking = fewest - np.count_nonzero(sets, axis=1)
    place = np.argsort(np.argsort(waiting, axis=1), axis=1)
    return place < lacking[:, None]


@dataclass(frozen=True)
class Fixed(Plan):
    """The same number of false labels for every row, all choices equally likely."""

    n_false: int
    n_classes: int

    def draw(self, truth: NDArray[np.intp], rows: slice, draw: Draw) -> NDArray[np.bool_]:
        """Shuffle the false labels of every row and take the first ones."""
        keys = draw((len(truth), self.n_classes))
        own = np.arange(len(truth))
        keys[own, truth] = -1  # the truth always comes first
        chosen = np.argpartition(keys, self.n_false, axis=1)[:, : self.n_false + 1]
        sets = np.zeros(keys.shape, dtype=bool)
        sets[own[:, None], chosen] = True
        return sets

    def limits(self, truth: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the one size that there is."""
        return np.full(len(truth), self.n_false + 1)


@dataclass(frozen=True)
class OneOther(Plan):
    """Exactly one false label for every row, drawn from the distribution of its class."""

    weight: Floats  # (l, l), rows sum to 1

    def draw(self, truth: NDArray[np.intp], rows: slice, draw: Draw) -> NDArray[np.bool_]:
        """Draw one false label a row."""
        passed = np.cumsum(self.weight, axis=1)[truth]  # (b, l)
        passed[:, -1] = 1
        other = np.argmax(passed > draw((len(truth), 1)), axis=1)
        sets = np.zeros(passed.shape, dtype=bool)
        own = np.arange(len(truth))
        sets[own, truth] = sets[own, other] = True
        return sets

    def limits(self, truth: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return two."""
        return np.full(len(truth), 2)


def shared_sets(
    truth: NDArray[np.intp],
    bags: NDArray[np.intp],
    n_classes: int,
    n_distractors: int,
    fewest: int,
    draw: Draw,
) -> NDArray[np.bool_]:
    """Sets that all rows of a bag share, (n, l): the union of their labels, and distractors.

    Distractors are labels of no row of the bag, frequent ones likelier, and as many more as a
    set of `fewest` needs.
    """
    union = np.zeros((bags.max() + 1, n_classes), dtype=bool)
    union[bags, truth] = True
    size = np.count_nonzero(union, axis=1)
    wanted = np.maximum(size + n_distractors, fewest)
    if (wanted > size).any():
        frequency = np.bincount(truth, minlength=n_classes) + 1e-9
        union |= _fill(union, np.tile(frequency, (len(union), 1)), wanted, draw)
    return union[bags]


def scale_to_mean(score: Floats, mean: float) -> Floats:
    """Turn scores of false labels into chances, proportional to them and capped at 1.

    Parameters
    ----------
    score : ndarray, shape (n, l)
        Non-negative scores, 0 for the true label of each row.
    mean : float
        Wanted mean of the chances over the n (l - 1) false labels.

    Raises
    ------
    ValueError
        If too few scores are positive.
    """
    n, l = score.shape
    needed = mean * n * (l - 1)
    ranked = -np.sort(-score, axis=None)
    ranked = ranked[ranked > 0]
    if needed > len(ranked) * (1 + 1e-12):
        raise ValueError(
            f"flip_probability={mean:g} cannot be had: only a share of "
            f"{len(ranked) / max(n * (l - 1), 1):.3g} of the false labels has any probability. "
            "Lower it, or give smoother probabilities."
        )
    rest = np.cumsum(ranked[::-1])[::-1]  # what the scores from here on add up to
    capped = np.arange(len(ranked))
    fits = ranked * (needed - capped) <= rest
    if not fits.any():
        return (score > 0).astype(float)
    first = int(np.argmax(fits))
    with np.errstate(over="ignore", invalid="ignore"):  # scores of wildly different size
        chance = np.minimum(score * ((needed - first) / rest[first]), 1.0)
    chance[score == 0] = 0
    return chance


def check_limits(
    plan: Plan, truth: NDArray[np.intp], classes: NDArray[Any], fewest: int, strategy: str
) -> None:
    """Raise ValueError if sets of the wanted size cannot be had."""
    if fewest == 1:
        return
    limits = plan.limits(truth)
    short = np.flatnonzero(limits < fewest)
    if short.size:
        first = short[0]
        raise ValueError(
            f"min_candidates={fewest} cannot be had with strategy={strategy!r} and these options: "
            f"{name_rows(short)} can have at most {limits[first]}, the true label of row {first} "
            f"being {classes[truth[first]]!r}."
        )


def confusion_scores(
    truth: NDArray[np.intp],
    names: NDArray[Any],
    draw: Draw,
    *,
    X: ArrayLike | None,
    probabilities: ArrayLike | None,
    estimator: Any,
    cv: Any,
) -> NDArray[np.float64]:
    """Return how much each sample looks like each false label, (n, l); 0 for the true one.

    Parameters
    ----------
    truth : ndarray, shape (n,)
        Columns of the true labels.
    names : ndarray, shape (l,)
        Class names.
    draw : callable
        Source of randomness, for the folds.
    X, probabilities, estimator, cv
        See `make_partial_labels`.

    Raises
    ------
    ValueError
        If neither features nor probabilities are given, both are, or they do not fit.
    """
    if probabilities is not None:
        spare = [
            name
            for name, value in (("X", X), ("estimator", estimator), ("cv", cv))
            if value is not None
        ]
        if spare:
            raise ValueError(f"with probabilities, {', '.join(spare)} would not be read.")
        score = _check_scores(probabilities, (len(truth), len(names)))
    elif X is None:
        raise ValueError("strategy='instance_dependent' needs features X, or probabilities.")
    else:
        score = _predict(X, truth, names, draw, estimator, cv)
    score[np.arange(len(truth)), truth] = 0
    return score


def _check_scores(probabilities: ArrayLike, shape: tuple[int, int]) -> NDArray[np.float64]:
    score = check_array(probabilities, dtype=np.float64, copy=True, input_name="probabilities")
    if score.shape != shape:
        raise ValueError(f"probabilities have shape {score.shape}; {shape} is needed.")
    if (score < 0).any():
        rows = np.flatnonzero((score < 0).any(axis=1))
        raise ValueError(f"probabilities are negative in {name_rows(rows)}.")
    return np.asarray(score)


def _predict(
    X: ArrayLike,
    truth: NDArray[np.intp],
    names: NDArray[Any],
    draw: Draw,
    estimator: Any,
    cv: Any,
) -> NDArray[np.float64]:
    """Return out-of-fold probabilities, (n, l)."""
    features = check_array(X, accept_sparse="csr", input_name="X")
    if features.shape[0] != len(truth):
        raise ValueError(f"X has {features.shape[0]} rows, but y has {len(truth)} labels.")
    if estimator is None:
        scaler = StandardScaler(with_mean=isinstance(features, np.ndarray))
        estimator = make_pipeline(scaler, LogisticRegression(max_iter=1000))
    elif not is_classifier(estimator) or not hasattr(estimator, "predict_proba"):
        raise TypeError(f"{estimator!r} is no classifier with predict_proba.")
    present, counts = np.unique(truth, return_counts=True)
    if len(present) < 2:
        raise ValueError("y has one class; a classifier needs two to confuse.")
    if cv is None or isinstance(cv, int):
        if counts.min() < 2:
            rare = names[present[counts.argmin()]]
            raise ValueError(
                f"class {rare!r} has one sample; a classifier cannot be judged on it. Drop it, "
                "or give probabilities."
            )
        folds = min(cv or _FOLDS, int(counts.min()))
        seed = int(draw(1)[0] * 2**31)
        cv = StratifiedKFold(folds, shuffle=True, random_state=seed)
    predicted = cross_val_predict(estimator, features, truth, cv=cv, method="predict_proba")
    score = np.zeros((len(truth), len(names)))
    score[:, present] = predicted
    return score
