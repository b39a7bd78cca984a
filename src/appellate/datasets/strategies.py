"""How false labels come into candidate sets: the strategies of `make_partial_labels`.

A strategy is a function whose keyword arguments are its options. It returns a `SetPlan`, which
draws the candidate sets of one block of rows after the other, so that memory stays small.
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


class SetPlan(NamedTuple):
    """How to draw the candidates, (b, l), of a block of rows, and their largest number, (n,)."""

    draw: Callable[[slice], NDArray[np.bool_]]
    largest: Places


class KnownLabels(NamedTuple):
    """What every strategy starts from.

    Attributes
    ----------
    names : ndarray, shape (l,)
        Class names.
    truth : ndarray, shape (n,)
        Columns of the true labels.
    fewest : int
        Fewest candidates of a row.
    draw : callable
        Source of randomness.
    """

    names: NDArray[Any]
    truth: Places
    fewest: int
    draw: Draw

    @property
    def others(self) -> NDArray[np.bool_]:
        """Whether two classes differ, (l, l)."""
        return ~np.eye(len(self.names), dtype=bool)


def uniform(labels: KnownLabels, *, flip_probability: float = 0.3) -> SetPlan:
    """Every false label joins independently, with the same chance."""
    return _flip(labels, flip_probability * labels.others.astype(float))


def fixed(labels: KnownLabels, *, n_false: int = 1) -> SetPlan:
    """The same number of false labels for every row, all choices equally likely."""
    truth, l = labels.truth, len(labels.names)
    n_false = check_integer("n_false", n_false, 0, l - 1)

    def sample(rows: slice) -> NDArray[np.bool_]:
        keys = labels.draw((len(truth[rows]), l))
        keys[np.arange(len(keys)), truth[rows]] = -1  # the truth always comes first
        chosen = np.argpartition(keys, n_false, axis=1)[:, : n_false + 1]
        sets = np.zeros(keys.shape, dtype=bool)
        np.put_along_axis(sets, chosen, True, axis=1)
        return sets

    return SetPlan(sample, np.full(len(truth), n_false + 1))


def cooccurring(labels: KnownLabels, *, epsilon: float = 0.5, partners: Any = None) -> SetPlan:
    """One false label for every row: the partner of the true one, or any other."""
    partner = _partners(partners, labels.names)
    truth = labels.truth
    l = len(labels.names)
    if l == 2 and epsilon < 1:
        raise ValueError(
            f"epsilon={epsilon:g} is not possible with two classes: the only other label is the "
            "partner. Set epsilon=1."
        )
    weight = np.full((l, l), (1 - epsilon) / max(l - 2, 1))  # rows sum to 1
    np.fill_diagonal(weight, 0)
    weight[np.arange(l), partner] = epsilon
    passed = np.cumsum(weight, axis=1)
    passed[:, -1] = 1

    def sample(rows: slice) -> NDArray[np.bool_]:
        own = np.arange(len(truth[rows]))
        other = np.argmax(passed[truth[rows]] > labels.draw((len(own), 1)), axis=1)
        sets = np.zeros((len(own), l), dtype=bool)
        sets[own, truth[rows]] = sets[own, other] = True
        return sets

    return SetPlan(sample, np.full(len(truth), 2))


def pairwise(
    labels: KnownLabels, *, flip_probability: float = 0.3, partners: Any = None
) -> SetPlan:
    """The partner of the true label joins, and nothing else."""
    partner = _partners(partners, labels.names)
    return _flip(labels, flip_probability * (np.arange(len(partner)) == partner[:, None]))


def instance_dependent(
    labels: KnownLabels,
    *,
    flip_probability: float = 0.3,
    X: Any = None,
    probabilities: Any = None,
    estimator: Any = None,
) -> SetPlan:
    """A false label joins the likelier, the more the row looks like it."""
    truth, shape = labels.truth, (len(labels.truth), len(labels.names))
    if probabilities is None:
        if X is None:
            raise ValueError(
                "strategy='instance_dependent' needs X= (the features) or probabilities=."
            )
        score = _predict(X, labels, estimator)
    else:
        given = {"X": X, "estimator": estimator}
        spare = [name for name, value in given.items() if value is not None]
        if spare:
            raise ValueError(
                f"with probabilities=, leave {', '.join(f'{each}=' for each in spare)} out."
            )
        score = check_array(probabilities, dtype=np.float64, copy=True, input_name="probabilities")
        if score.shape != shape:
            raise ValueError(f"probabilities have shape {score.shape}; {shape} is needed.")
        negative = np.flatnonzero((score < 0).any(axis=1))
        if negative.size:
            raise ValueError(f"probabilities are negative in {name_rows(negative)}.")
    score[np.arange(len(truth)), truth] = 0
    return _flip(labels, scale_to_mean(score, flip_probability), by_row=True)


def hierarchical(
    labels: KnownLabels, *, flip_probability: float = 0.3, groups: Any = None
) -> SetPlan:
    """False labels of the true label's super-class join."""
    if groups is None:
        raise ValueError(
            "strategy='hierarchical' needs groups=, the super-class of each class, such as "
            "{'cat': 'animal', 'cow': 'animal', 'car': 'thing'}."
        )
    named = _by_class("groups", groups, labels.names)
    group = np.array([named.index(each) for each in named])
    return _flip(labels, flip_probability * ((group[:, None] == group) & labels.others))


def noisy(labels: KnownLabels, *, flip_probability: float = 0.3, eta: float = 0.1) -> SetPlan:
    """As uniform, but the true label may be left out."""
    left_out = labels.draw(len(labels.truth)) < eta if eta else None
    if len(labels.names) == 1 and left_out is not None:
        raise ValueError("y has one class; without it a set would be empty. Set eta=0.")
    weight = labels.others.astype(float)
    return _flip(labels, flip_probability * weight, left_out=left_out, weight=weight)


def set_first(
    labels: KnownLabels, *, bag_size: int = 4, bags: Any = None, n_distractors: int = 0
) -> SetPlan:
    """All rows of a bag have the union of their labels, and distractors, as candidates.

    Distractors are labels of no row of the bag, frequent ones likelier, and as many more as a
    set of `fewest` needs.
    """
    truth = labels.truth
    n = len(labels.truth)
    l = len(labels.names)
    n_distractors = check_integer("n_distractors", n_distractors, 0, l - 1)
    if bags is not None:
        if len(bags) != n:
            raise ValueError(f"bags has {len(bags)} entries, but there are {n} rows.")
        bag = np.asarray(np.unique(np.asarray(bags), return_inverse=True)[1], dtype=np.intp)
    else:
        if isinstance(bag_size, bool) or not isinstance(bag_size, Integral) or bag_size < 1:
            raise ValueError(f"bag_size={bag_size!r} is not a number of rows; give 1 or more.")
        bag = np.empty(n, dtype=np.intp)
        # The first n numbers of a seed may be those that y was drawn with: bags would be sorted.
        bag[np.argsort(labels.draw((2, n))[1], kind="stable")] = np.arange(n) // int(bag_size)
    union = np.zeros((bag.max() + 1, l), dtype=bool)
    union[bag, truth] = True
    size = np.count_nonzero(union, axis=1)
    wanted = np.maximum(size + n_distractors, labels.fewest)
    if (wanted > size).any():
        frequency = np.bincount(truth, minlength=l) + 1e-9
        union |= _fill(union, np.tile(frequency, (len(union), 1)), wanted, labels.draw)
    sets = union[bag]
    sets[np.arange(n), truth] = False
    return _flip(labels, sets.astype(float), by_row=True)


_ALL = (uniform, fixed, cooccurring, pairwise, instance_dependent, hierarchical, noisy, set_first)
#: By their names for users; what each reads, and what it takes where nothing is given.
STRATEGIES: dict[str, Callable[..., SetPlan]] = {each.__name__: each for each in _ALL}
OPTIONS = {name: dict(each.__kwdefaults__ or {}) for name, each in STRATEGIES.items()}


def check_integer(name: str, value: Any, low: int, high: int) -> int:
    """Return a whole number between two limits that follow from the number of classes.

    Raises
    ------
    ValueError, TypeError
        If it is none.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise TypeError(f"{name}={value!r} is not a whole number.")
    if not low <= int(value) <= high:
        raise ValueError(
            f"{name}={value} is not possible with {high if low else high + 1} classes. Give a "
            f"number from {low} to {high}."
        )
    return int(value)


def _flip(
    labels: KnownLabels,
    chance: Floats,
    *,
    by_row: bool = False,
    left_out: NDArray[np.bool_] | None = None,
    weight: Floats | None = None,
) -> SetPlan:
    """Every false label joins independently, with a chance of its own.

    Parameters
    ----------
    labels : Labels
        True labels; sets that come out smaller than its `fewest` are filled up.
    chance : ndarray, shape (l, l) or (n, l)
        Chances of all labels, for each true label or, `by_row`, for each row; the true label
        has 0.
    by_row : bool
        Whether the rows of `chance` are samples.
    left_out : ndarray of bool, shape (n,), or None
        Rows from whose sets the true label is left out.
    weight : ndarray of the shape of `chance`, or None
        How likely labels fill up a set; as `chance` by default.
    """
    truth, fewest = labels.truth, labels.fewest
    weight = chance if weight is None else weight

    def sample(rows: slice) -> NDArray[np.bool_]:
        places = rows if by_row else truth[rows]
        sets = labels.draw(chance[places].shape) < chance[places]
        sets[np.arange(len(sets)), truth[rows]] = True if left_out is None else ~left_out[rows]
        small = np.flatnonzero(np.count_nonzero(sets, axis=1) < fewest)
        if small.size:
            sets[small] |= _fill(sets[small], weight[places][small], fewest, labels.draw)
        return sets

    sizes = np.count_nonzero(weight, axis=1) + (left_out is None)
    return SetPlan(sample, sizes if by_row else sizes[truth])


def _fill(sets: NDArray[np.bool_], weight: Floats, fewest: Any, draw: Draw) -> NDArray[np.bool_]:
    """Choose labels with probability proportional to weight until each set has enough."""
    with np.errstate(divide="ignore"):
        waiting = -np.log1p(-draw(sets.shape)) / weight  # the first to arrive are chosen
    waiting[sets | (weight <= 0)] = np.inf
    lacking = fewest - np.count_nonzero(sets, axis=1)
    place = np.argsort(np.argsort(waiting, axis=1), axis=1)
    return place < lacking[:, None]


def _by_class(word: str, given: Any, names: NDArray[Any]) -> list[Any]:
    """Return what is given for each class, from a mapping or in the order of the classes."""
    keys = scalars(names)
    if isinstance(given, Mapping):
        absent = [repr(key) for key in keys if key not in given]
        if absent:
            raise ValueError(f"{word}= lacks the class {', '.join(absent[:5])}. Add it.")
        return [given[key] for key in keys]
    values = scalars(given) if isinstance(given, np.ndarray) else list(given)
    if len(values) != len(keys):
        raise ValueError(f"{word}= has {len(values)} entries, but there are {len(keys)} classes.")
    return values


def _partners(given: Any, names: NDArray[Any]) -> Places:
    keys = scalars(names)
    if len(keys) == 1:
        raise ValueError("y has one class, which has no partner. Use another strategy.")
    chosen = [*keys[1:], keys[0]] if given is None else _by_class("partners", given, names)
    strange = [repr(name) for name in chosen if name not in keys]
    if strange:
        raise ValueError(f"partners= names an unknown class: {', '.join(strange[:5])}.")
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
            f"flip_probability={mean:g} is not possible: only a share of "
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


def _predict(X: Any, labels: KnownLabels, estimator: Any) -> Floats:
    """Return how much each row looks like each label, out-of-fold probabilities, (n, l)."""
    names, truth = labels.names, labels.truth
    features = check_array(X, accept_sparse="csr", input_name="X")
    if features.shape[0] != len(truth):
        raise ValueError(f"X has {features.shape[0]} rows, but y has {len(truth)} labels.")
    if estimator is None:
        scaler = StandardScaler(with_mean=isinstance(features, np.ndarray))
        estimator = make_pipeline(scaler, LogisticRegression(max_iter=1000))
    elif not is_classifier(estimator) or not hasattr(estimator, "predict_proba"):
        raise TypeError(f"{estimator!r} is not a classifier with predict_proba.")
    present, counts = np.unique(truth, return_counts=True)
    if len(present) < 2:
        raise ValueError("y has one class; a classifier needs two to confuse.")
    if counts.min() < 2:
        rare = names[present[counts.argmin()]]
        raise ValueError(
            f"class {rare!r} has one sample; a classifier cannot be judged on it. Drop it, or "
            "give probabilities."
        )
    folds, seed = min(_FOLDS, int(counts.min())), int(labels.draw(1)[0] * 2**31)
    cv = StratifiedKFold(folds, shuffle=True, random_state=seed)
    score = np.zeros((len(truth), len(names)))
    score[:, present] = cross_val_predict(
        estimator, features, truth, cv=cv, method="predict_proba"
    )
    return score
