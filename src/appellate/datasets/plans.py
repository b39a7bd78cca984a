"""From the options of `make_partial_labels` to a plan that draws candidate sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from appellate.candidates.names import scalars
from appellate.datasets.confusions import confusion_scores
from appellate.datasets.strategies import (
    Draw,
    Fixed,
    Flip,
    OneOther,
    Plan,
    scale_to_mean,
    shared_sets,
)

Strategy = Literal[
    "uniform",
    "fixed",
    "cooccurring",
    "pairwise",
    "instance_dependent",
    "hierarchical",
    "noisy",
    "set_first",
]

# What each strategy reads, and what it takes where nothing is given.
OPTIONS: dict[str, dict[str, Any]] = {
    "uniform": {"flip_probability": 0.3},
    "fixed": {"n_false": 1},
    "cooccurring": {"epsilon": 0.5, "partners": None},
    "pairwise": {"flip_probability": 0.3, "partners": None},
    "instance_dependent": {
        "flip_probability": 0.3,
        "X": None,
        "probabilities": None,
        "estimator": None,
        "cv": None,
    },
    "hierarchical": {"flip_probability": 0.3, "groups": None},
    "noisy": {"flip_probability": 0.3, "eta": 0.1},
    "set_first": {"bag_size": 4, "bags": None, "n_distractors": 0},
}


def check_options(strategy: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a strategy, with its defaults for those not given.

    Raises
    ------
    ValueError, TypeError
        If the strategy is unknown, does not read an option, or an option is no probability.
    """
    if strategy not in OPTIONS:
        raise ValueError(
            f"unknown strategy {strategy!r}.{_guess(str(strategy), OPTIONS)} "
            f"Use one of {', '.join(OPTIONS)}."
        )
    own = OPTIONS[strategy]
    known = {name for options in OPTIONS.values() for name in options}
    for name, value in given.items():
        if name not in known:
            raise TypeError(f"unknown option {name!r}.{_guess(name, known)}")
        if value is not None and name not in own:
            raise ValueError(
                f"strategy={strategy!r} does not read {name}; it reads {', '.join(own)}."
            )
    chosen = dict(own) | {name: given[name] for name in own if given.get(name) is not None}
    for name in ("flip_probability", "epsilon", "eta"):
        if name in chosen:
            chosen[name] = _check_probability(name, chosen[name])
    return chosen


def _guess(word: str, known: Iterable[str]) -> str:
    near = get_close_matches(word, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def _check_probability(name: str, chance: Any) -> float:
    if isinstance(chance, bool | np.bool_) or not isinstance(chance, Real):
        raise TypeError(f"{name}={chance!r} is no number; give one in [0, 1].")
    if not 0 <= float(chance) <= 1:
        raise ValueError(f"{name}={chance!r} is no probability; give one in [0, 1].")
    return float(chance)


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


def make_plan(
    strategy: str,
    options: Mapping[str, Any],
    names: NDArray[Any],
    truth: NDArray[np.intp],
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
        return Fixed(check_integer("n_false", options["n_false"], 0, l - 1), l)
    if strategy == "cooccurring":
        return OneOther(_cooccurrence(options["epsilon"], _partners(options["partners"], names)))
    if strategy == "set_first":
        more = check_integer("n_distractors", options["n_distractors"], 0, l - 1)
        sets = shared_sets(truth, _bags(options, truth, draw), l, more, fewest, draw)
        sets[np.arange(len(truth)), truth] = False
        return Flip(sets.astype(float), by_row=True, fewest=fewest)
    chance = options["flip_probability"]
    if strategy == "pairwise":
        allowed = np.arange(l) == _partners(options["partners"], names)[:, None]
        return Flip(chance * allowed, fewest=fewest)
    if strategy == "hierarchical":
        group = _groups(options["groups"], names)
        return Flip(chance * ((group[:, None] == group) & ~np.eye(l, dtype=bool)), fewest=fewest)
    if strategy == "instance_dependent":
        sources = {key: options[key] for key in ("X", "probabilities", "estimator", "cv")}
        score = confusion_scores(truth, names, draw, **sources)
        return Flip(scale_to_mean(score, chance), by_row=True, fewest=fewest)
    uniform = chance * ~np.eye(l, dtype=bool)
    if strategy == "uniform":
        return Flip(uniform, fewest=fewest)
    if options["eta"] == 0:
        return Flip(uniform, fewest=fewest, fill_any=True)
    left_out = draw(len(truth)) < options["eta"]
    if l == 1:
        raise ValueError("y has one class; without it a set would be empty. Set eta=0.")
    return Flip(uniform, left_out=left_out, fewest=fewest, fill_any=True)


def _bags(options: Mapping[str, Any], truth: NDArray[np.intp], draw: Draw) -> NDArray[np.intp]:
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


def _by_class(
    word: str, given: Mapping[Any, Any] | Sequence[Any] | NDArray[Any], names: NDArray[Any]
) -> list[Any]:
    """Return what is given for each class, from a mapping or in the order of the classes."""
    keys = scalars(names)
    if isinstance(given, Mapping):
        absent = [repr(key) for key in keys if key not in given]
        if absent:
            raise ValueError(f"{word} names nothing for class {', '.join(absent[:5])}.")
        return [given[key] for key in keys]
    values = scalars(np.asarray(given)) if isinstance(given, np.ndarray) else list(given)
    if len(values) != len(keys):
        raise ValueError(f"{word} has {len(values)} entries, but there are {len(keys)} classes.")
    return values


def _partners(given: Any, names: NDArray[Any]) -> NDArray[np.intp]:
    l = len(names)
    if l == 1:
        raise ValueError("y has one class, which has no partner. Use another strategy.")
    if given is None:
        return np.roll(np.arange(l), -1)
    column = {name: j for j, name in enumerate(scalars(names))}
    chosen = _by_class("partners", given, names)
    strange = [repr(name) for name in chosen if name not in column]
    if strange:
        raise ValueError(f"partners names unknown class {', '.join(strange[:5])}.")
    partner = np.array([column[name] for name in chosen], dtype=np.intp)
    own = np.flatnonzero(partner == np.arange(l))
    if own.size:
        raise ValueError(f"class {scalars(names)[own[0]]!r} is its own partner.")
    return partner


def _groups(given: Any, names: NDArray[Any]) -> NDArray[np.intp]:
    if given is None:
        raise ValueError(
            "strategy='hierarchical' needs groups, the super-class of each class; for instance "
            "groups={'cat': 'animal', 'cow': 'animal', 'car': 'thing'}."
        )
    position: dict[Any, int] = {}
    values = _by_class("groups", given, names)
    return np.array([position.setdefault(value, len(position)) for value in values])


def _cooccurrence(epsilon: float, partner: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the distribution of the one false label for each class, (l, l)."""
    l = len(partner)
    if l == 2 and epsilon < 1:
        raise ValueError(
            f"epsilon={epsilon:g} cannot be had with two classes: there is no label but the "
            "partner. Set epsilon=1."
        )
    weight = np.full((l, l), (1 - epsilon) / max(l - 2, 1))
    np.fill_diagonal(weight, 0)
    weight[np.arange(l), partner] = epsilon
    return weight
