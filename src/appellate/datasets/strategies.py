"""How false labels come into candidate sets: the strategies of `make_partial_labels`.

A strategy is turned into a `Plan`, which draws the candidate sets of one block of rows after
the other, so that memory stays small.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array

from appellate.candidates import name_rows
from appellate.candidates.names import scalars

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
Draw = Callable[[Any], Floats]  # numbers uniform in [0, 1) of a given shape
_FOLDS = 5


class Plan(NamedTuple):
    """How to draw the candidates, (b, l), of a block of rows, and their largest number, (n,)."""

    draw: Callable[[slice, Draw], NDArray[np.bool_]]
    largest: Places


def make_plan(
    strategy: str,
    options: Mapping[str, Any],
    names: NDArray[Any],
    truth: Places,
    fewest: int,
    draw: Draw,
) -> Plan:
    """Turn a strategy and its checked options into a plan.

    Parameters
    ----------
    strategy, options
        See `check_options`.
    names : ndarray, shape (l,)
        Class names.
    truth : ndarray, shape (n,)
        Columns of the true labels.
    fewest : int
        Fewest candidates of a row.
    draw : callable
        Source of randomness.

    Raises
    ------
    ValueError
        If what is asked for cannot be had, with the reason.
    """
    l = len(names)
    if strategy == "fixed":
        return _fixed(truth, check_integer("n_false", options["n_false"], 0, l - 1), l)
    if strategy == "cooccurring":
        return _one_other(truth, options["epsilon"], _partners(options["partners"], names))
    if strategy == "set_first":
        more = check_integer("n_distractors", options["n_distractors"], 0, l - 1)
        sets = _shared_sets(truth, _bags(options, truth, draw), l, more, fewest, draw)
        sets[np.arange(len(truth)), truth] = False
        return _flip(truth, sets.astype(float), fewest, by_row=True)
    chance, others = options["flip_probability"], ~np.eye(l, dtype=bool)
    if strategy == "pairwise":
        partner = _partners(options["partners"], names)
        return _flip(truth, chance * (np.arange(l) == partner[:, None]), fewest)
    if strategy == "hierarchical":
        if options["groups"] is None:
            raise ValueError(
                "strategy='hierarchical' needs groups, the super-class of each class; for "
                "instance groups={'cat': 'animal', 'cow': 'animal', 'car': 'thing'}."
            )
        groups = _by_class("groups", options["groups"], names)
        group = np.array([groups.index(each) for each in groups])
        return _flip(truth, chance * ((group[:, None] == group) & others), fewest)
    if strategy == "instance_dependent":
        score = _confusion_scores(truth, names, draw, options)
        return _flip(truth, scale_to_mean(score, chance), fewest, by_row=True)
    if strategy == "uniform":
        return _flip(truth, chance * others, fewest)
    left_out = draw(len(truth)) < options["eta"] if options["eta"] else None
    if l == 1 and left_out is not None:
        raise ValueError("y has one class; without it a set would be empty. Set eta=0.")
    return _flip(truth, chance * others, fewest, left_out=left_out, weight=others.astype(float))


def check_integer(name: str, value: Any, low: int, high: int) -> int:
    """Return a whole number between two limits that follow from the number of classes.

    Raises
    ------
    ValueError, TypeError
        If it is none.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise TypeError(f"{name}={value!r} is no whole number.")
    if not low <= int(value) <= high:
        raise ValueError(
            f"{name}={value} cannot be had with {high if low else high + 1} classes; give a "
            f"number from {low} to {high}."
        )
    return int(value)


def _flip(
    truth: Places,
    chance: Floats,
    fewest: int,
    *,
    by_row: bool = False,
    left_out: NDArray[np.bool_] | None = None,
    weight: Floats | None = None,
) -> Plan:
    """Every false label joins independently, with a chance of its own.

    Parameters
    ----------
    truth : ndarray, shape (n,)
        Columns of the true labels.
    chance : ndarray, shape (l, l) or (n, l)
        Chances of all labels, for each true label or, `by_row`, for each row; 0 for the truth.
    fewest : int
        Sets that come out smaller are filled up.
    by_row : bool
        Whether the rows of `chance` are samples.
    left_out : ndarray of bool, shape (n,), or None
        Rows from whose sets the truth is left out.
    weight : ndarray of the shape of `chance`, or None
        How likely labels fill up a set; as `chance` by default.
    """
    weight = chance if weight is None else weight

    def sample(rows: slice, draw: Draw) -> NDArray[np.bool_]:
        places = rows if by_row else truth[rows]
        sets = draw(chance[places].shape) < chance[places]
        sets[np.arange(len(sets)), truth[rows]] = True if left_out is None else ~left_out[rows]
        small = np.flatnonzero(np.count_nonzero(sets, axis=1) < fewest)
        if small.size:
            sets[small] |= _fill(sets[small], weight[places][small], fewest, draw)
        return sets

    sizes = np.count_nonzero(weight, axis=1) + (left_out is None)
    return Plan(sample, sizes if by_row else sizes[truth])


def _fill(sets: NDArray[np.bool_], weight: Floats, fewest: Any, draw: Draw) -> NDArray[np.bool_]:
    """Choose labels with probability proportional to weight until each set has enough."""
    with np.errstate(divide="ignore"):
        waiting = -np.log1p(-draw(sets.shape)) / weight  # the first to arrive are chosen
    waiting[sets | (weight <= 0)] = np.inf
    lacking = fewest - np.count_nonzero(sets, axis=1)
    place = np.argsort(np.argsort(waiting, axis=1), axis=1)
    return place < lacking[:, None]


def _fixed(truth: Places, n_false: int, l: int) -> Plan:
    """The same number of false labels for every row, all choices equally likely."""

    def sample(rows: slice, draw: Draw) -> NDArray[np.bool_]:
        keys = draw((len(truth[rows]), l))
        keys[np.arange(len(keys)), truth[rows]] = -1  # the truth always comes first
        chosen = np.argpartition(keys, n_false, axis=1)[:, : n_false + 1]
        sets = np.zeros(keys.shape, dtype=bool)
        np.put_along_axis(sets, chosen, True, axis=1)
        return sets

    return Plan(sample, np.full(len(truth), n_false + 1))


def _one_other(truth: Places, epsilon: float, partner: Places) -> Plan:
    """One false label for every row: the partner of the true one, or any other."""
    l = len(partner)
    if l == 2 and epsilon < 1:
        raise ValueError(
            f"epsilon={epsilon:g} cannot be had with two classes: there is no label but the "
            "partner. Set epsilon=1."
        )
    weight = np.full((l, l), (1 - epsilon) / max(l - 2, 1))  # rows sum to 1
    np.fill_diagonal(weight, 0)
    weight[np.arange(l), partner] = epsilon
    passed = np.cumsum(weight, axis=1)
    passed[:, -1] = 1

    def sample(rows: slice, draw: Draw) -> NDArray[np.bool_]:
        own = np.arange(len(truth[rows]))
        other = np.argmax(passed[truth[rows]] > draw((len(own), 1)), axis=1)
        sets = np.zeros((len(own), l), dtype=bool)
        sets[own, truth[rows]] = sets[own, other] = True
        return sets

    return Plan(sample, np.full(len(truth), 2))


def _shared_sets(
    truth: Places, bags: Places, n_classes: int, n_distractors: int, fewest: int, draw: Draw
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


def _bags(options: Mapping[str, Any], truth: Places, draw: Draw) -> Places:
    """Return the bag of every row by number: those given, or rows drawn together."""
    n, given, size = len(truth), options["bags"], options["bag_size"]
    if given is not None:
        if len(given) != n:
            raise ValueError(f"bags has {len(given)} entries, but there are {n} rows.")
        return np.asarray(np.unique(np.asarray(given), return_inverse=True)[1], dtype=np.intp)
    if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
        raise ValueError(f"bag_size={size!r} is no number of rows; give 1 or more.")
    bags = np.empty(n, dtype=np.intp)
    # The first n numbers of a seed may be those that y was drawn with: bags would be sorted.
    bags[np.argsort(draw((2, n))[1], kind="stable")] = np.arange(n) // int(size)
    return bags


def _by_class(word: str, given: Any, names: NDArray[Any]) -> list[Any]:
    """Return what is given for each class, from a mapping or in the order of the classes."""
    keys = scalars(names)
    if isinstance(given, Mapping):
        absent = [repr(key) for key in keys if key not in given]
        if absent:
            raise ValueError(f"{word} names nothing for class {', '.join(absent[:5])}.")
        return [given[key] for key in keys]
    values = scalars(given) if isinstance(given, np.ndarray) else list(given)
    if len(values) != len(keys):
        raise ValueError(f"{word} has {len(values)} entries, but there are {len(keys)} classes.")
    return values


def _partners(given: Any, names: NDArray[Any]) -> Places:
    keys = scalars(names)
    if len(keys) == 1:
        raise ValueError("y has one class, which has no partner. Use another strategy.")
    chosen = [*keys[1:], keys[0]] if given is None else _by_class("partners", given, names)
    strange = [repr(name) for name in chosen if name not in keys]
    if strange:
        raise ValueError(f"partners names unknown class {', '.join(strange[:5])}.")
    own = [name for name, partner in zip(keys, chosen, strict=True) if name == partner]
    if own:
        raise ValueError(f"class {own[0]!r} is its own partner.")
    return np.array([keys.index(name) for name in chosen], dtype=np.intp)


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


def _confusion_scores(
    truth: Places, names: NDArray[Any], draw: Draw, options: Mapping[str, Any]
) -> Floats:
    """Return how much each sample looks like each false label, (n, l); 0 for the true one."""
    X, given, estimator = (options[key] for key in ("X", "probabilities", "estimator"))
    if given is None:
        if X is None:
            raise ValueError("strategy='instance_dependent' needs features X, or probabilities.")
        score = _predict(X, truth, names, draw, estimator)
    else:
        spare = [key for key in ("X", "estimator") if options[key] is not None]
        if spare:
            raise ValueError(f"with probabilities, {', '.join(spare)} would not be read.")
        score = check_array(given, dtype=np.float64, copy=True, input_name="probabilities")
        shape = len(truth), len(names)
        if score.shape != shape:
            raise ValueError(f"probabilities have shape {score.shape}; {shape} is needed.")
        negative = np.flatnonzero((score < 0).any(axis=1))
        if negative.size:
            raise ValueError(f"probabilities are negative in {name_rows(negative)}.")
    score[np.arange(len(truth)), truth] = 0
    return np.asarray(score)


def _predict(X: Any, truth: Places, names: NDArray[Any], draw: Draw, estimator: Any) -> Floats:
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
    if counts.min() < 2:
        rare = names[present[counts.argmin()]]
        raise ValueError(
            f"class {rare!r} has one sample; a classifier cannot be judged on it. Drop it, or "
            "give probabilities."
        )
    folds, seed = min(_FOLDS, int(counts.min())), int(draw(1)[0] * 2**31)
    cv = StratifiedKFold(folds, shuffle=True, random_state=seed)
    score = np.zeros((len(truth), len(names)))
    score[:, present] = cross_val_predict(
        estimator, features, truth, cv=cv, method="predict_proba"
    )
    return score
