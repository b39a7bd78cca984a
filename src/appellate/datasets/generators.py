"""Candidate sets for data whose true labels are known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from appellate.candidates import name_rows
from appellate.candidates.names import distinct_names, encode, is_missing, scalars
from appellate.datasets.strategies import (
    Draw,
    Fixed,
    Flip,
    OneOther,
    Plan,
    check_limits,
    confusion_scores,
    scale_to_mean,
    shared_sets,
)
from appellate.datasets.summary import CandidateSummary, summarize_matrix

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
BLOCK = 2**18  # entries that are drawn at once


@overload
def make_partial_labels(
    y: ArrayLike,
    *,
    strategy: Strategy = ...,
    min_candidates: int = ...,
    classes: Sequence[Any] | NDArray[Any] | None = ...,
    return_summary: Literal[False] = ...,
    random_state: Any = ...,
    **options: Any,
) -> NDArray[np.bool_]: ...


@overload
def make_partial_labels(
    y: ArrayLike,
    *,
    strategy: Strategy = ...,
    min_candidates: int = ...,
    classes: Sequence[Any] | NDArray[Any] | None = ...,
    return_summary: Literal[True],
    random_state: Any = ...,
    **options: Any,
) -> tuple[NDArray[np.bool_], CandidateSummary]: ...


def make_partial_labels(
    y: ArrayLike,
    *,
    strategy: Strategy = "uniform",
    min_candidates: int = 1,
    classes: Sequence[Any] | NDArray[Any] | None = None,
    return_summary: bool = False,
    random_state: Any = None,
    **options: Any,
) -> NDArray[np.bool_] | tuple[NDArray[np.bool_], CandidateSummary]:
    """Hide true labels in candidate sets.

    The true label is always a candidate, but for ``strategy="noisy"``. The strategies, each
    with its options:

    - ``"uniform"``: every false label joins independently with `flip_probability` (q in the
      literature). A set of one has probability ``(1 - q) ** (l - 1)``.
    - ``"fixed"``: `n_false` false labels (r), all choices equally likely.
    - ``"cooccurring"``: one false label: with probability `epsilon` the partner of the true
      one (see `partners`), else another at random.
    - ``"pairwise"``: only the partner of the true label joins, with `flip_probability`.
    - ``"instance_dependent"``: a false label joins the likelier, the more a classifier takes
      the sample for it; `flip_probability` is the mean over all false labels. It needs `X`,
      with `estimator` and `cv` to choose the classifier, or `probabilities`.
    - ``"hierarchical"``: false labels of the true label's super-class (see `groups`) join,
      each with `flip_probability`.
    - ``"noisy"``: as uniform, but the true label is left out with probability `eta`. A set
      that would then be empty gets a false label at random.
    - ``"set_first"``: rows lie in bags, as faces in a photo, and all rows of a bag have the union
      of their labels as candidates, as the names in its caption; `n_distractors` further names
      belong to no row. A frequent label is in more sets, but within a set about as likely as
      any other: the opposite of ``"uniform"``.

    Parameters
    ----------
    y : array-like, shape (n,)
        True labels of any type that can be sorted. Generate before splitting, so that
        training and test rows have the same columns, or give `classes`.
    strategy : str, default="uniform"
        How false labels are chosen.
    min_candidates : int, default=1
        Fewest candidates of a sample; 2 forbids sets of one. Sets that come out smaller are
        filled up with labels that the strategy may add, likelier ones first, so the rates
        above are then exceeded.
    classes : sequence, default=None
        All class names in the order of the columns; by default those in `y`, sorted.
    return_summary : bool, default=False
        Also return what was realised.
    random_state : int, RandomState, Generator or None, default=None
        Source of randomness; an int makes the result repeatable.
    **options
        Options of the strategy; one that it does not read is an error:

        flip_probability : float, default=0.3
            Probability, in [0, 1], with which a false label becomes a candidate.
        n_false : int, default=1
            Number of false candidates, at most l - 1.
        epsilon : float, default=0.5
            Probability, in [0, 1], that the false candidate is the partner.
        partners : mapping or sequence
            The partner of each class: a mapping by name, or names in the order of the
            classes. By default the next class, and the first after the last.
        groups : mapping or sequence
            The super-class of each class: a mapping by name, or in the order of the classes.
        eta : float, default=0.1
            Probability, in [0, 1], that the true label is left out.
        bag_size : int, default=4
            Rows of a bag, which are drawn at random.
        bags : array-like, shape (n,)
            Bag of every row by name, in place of bags at random.
        n_distractors : int, default=0
            Candidates of a bag that are no row's label, frequent labels likelier.
        X : array-like, shape (n, q)
            Features from which `estimator` learns.
        estimator : classifier
            Whose confusions to use, with `predict_proba`; by default logistic regression on
            standardized features. It is judged on rows that it was not trained on.
        cv : int or splitter
            How to split the rows for that: five folds by default, and no more than the
            smallest class has samples.
        probabilities : array-like, shape (n, l)
            How likely each label is for each sample, in place of features; any non-negative
            scores will do.

    Returns
    -------
    candidates : ndarray of bool, shape (n, l)
        True where the label is a candidate. Columns are the `classes`, or else the labels in
        the order of ``numpy.unique(y)``.
    summary : CandidateSummary
        Mean size, share of singletons, truth coverage and more; only if `return_summary`.

    Raises
    ------
    ValueError, TypeError
        If an option is wrong or not read by the strategy, or if what is asked for cannot be
        had, with the reason.

    See Also
    --------
    appellate.as_candidates : Read candidate sets that already exist.
    make_long_tailed : Make the classes unequal first.

    Examples
    --------
    >>> from appellate.datasets import make_partial_labels
    >>> make_partial_labels(["cat", "dog", "cow"], flip_probability=0.5, random_state=0)
    array([[ True, False, False],
           [False,  True,  True],
           [ True,  True, False]])
    >>> candidates, summary = make_partial_labels(
    ...     [0, 1, 2, 3] * 50, strategy="fixed", n_false=2, return_summary=True, random_state=0
    ... )
    >>> summary.mean_size, summary.singleton_share, summary.truth_coverage
    (3.0, 0.0, 1.0)
    """
    names, truth = encode_truth(y, classes)
    candidates = hide_truth(truth, names, strategy, min_candidates, random_state, options)
    return (candidates, summarize_matrix(candidates, truth)) if return_summary else candidates


def hide_truth(
    truth: NDArray[np.intp],
    names: NDArray[Any],
    strategy: str,
    min_candidates: int,
    random_state: Any,
    options: Mapping[str, Any],
) -> NDArray[np.bool_]:
    """Draw candidate sets for true labels that are given as columns.

    Parameters
    ----------
    truth : ndarray, shape (n,)
        Columns of the true labels.
    names : ndarray, shape (l,)
        Class names.
    strategy, min_candidates, random_state, options
        See `make_partial_labels`.
    """
    chosen = check_options(strategy, options)
    fewest = check_integer("min_candidates", min_candidates, 1, len(names))
    draw = _source(random_state)
    plan = make_plan(strategy, chosen, names, truth, fewest, draw)
    check_limits(plan, truth, names, fewest, strategy)
    candidates = np.empty((len(truth), len(names)), dtype=bool)
    step = max(1, BLOCK // len(names))
    for start in range(0, len(truth), step):
        rows = slice(start, min(start + step, len(truth)))
        candidates[rows] = plan.draw(truth[rows], rows, draw)
    return candidates


def encode_truth(
    y: ArrayLike, classes: Sequence[Any] | NDArray[Any] | None = None
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the classes, sorted unless given, and the column of every label.

    Raises
    ------
    ValueError, TypeError
        If `y` is no vector of labels, or a label is missing or not among the classes.
    """
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(
            f"y has shape {labels.shape}; give one true label a row, a 1-D array. Candidate "
            "sets that already exist are read by appellate.as_candidates."
        )
    if not labels.size:
        raise ValueError("y is empty; give at least one true label.")
    missing = _missing(labels)
    if len(missing):
        raise ValueError(f"y has no label in {name_rows(missing)}. Drop the rows.")
    if classes is not None:
        codes, names = encode(labels, distinct_names(classes, "classes"), np.arange(len(labels)))
        return names, codes
    try:
        found, columns = np.unique(labels, return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in labels.tolist()})
        raise TypeError(
            f"y mixes labels that cannot be sorted together ({', '.join(kinds)}). Make them "
            "all of one type, for example strings."
        ) from error
    return found, columns


def _missing(labels: NDArray[Any]) -> Sequence[int] | NDArray[np.intp]:
    if labels.dtype.kind in "biu":
        return ()
    if labels.dtype.kind == "f":
        return np.flatnonzero(np.isnan(labels))
    return [i for i, label in enumerate(scalars(labels)) if is_missing(label)]


def _source(random_state: Any) -> Draw:
    """Return a function that draws uniform numbers from either kind of numpy generator."""
    if isinstance(random_state, np.random.Generator):
        return random_state.random
    generator = check_random_state(random_state)
    return lambda shape: np.asarray(generator.random_sample(shape))


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
