"""Candidate sets for data whose true labels are known, and what such sets are like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from appellate._text import did_you_mean
from appellate.candidates import as_candidates, check_length, name_rows
from appellate.candidates.names import distinct_names, encode_labels
from appellate.datasets.strategies import OPTIONS, STRATEGIES, Draw, KnownLabels, check_integer

BLOCK = 2**18  # entries that are drawn at once


@dataclass(frozen=True)
class CandidateSummary:
    """What the candidate sets of a data set are like.

    Attributes
    ----------
    n_samples, n_classes : int
        Numbers of rows and of labels.
    mean_size : float
        Mean number of candidates per row.
    min_size, max_size : int
        Smallest and largest number of candidates.
    singleton_share, full_share : float
        Shares of the rows with one candidate, and with every label as candidate.
    truth_coverage : float or None
        Share of the rows whose true label is a candidate; None if no truth was given.

    Examples
    --------
    >>> print(summarize_candidates(["anna|bob", "bob"], ["bob", "bob"]))
    2 samples, 2 classes, 1.50 candidates per sample (1 to 2), 50.0% with one, 50.0% with all,
    truth among them in 100.0%
    """

    n_samples: int
    n_classes: int
    mean_size: float
    min_size: int
    max_size: int
    singleton_share: float
    full_share: float
    truth_coverage: float | None = None

    def __str__(self) -> str:
        """Say it in one line."""
        text = (
            f"{self.n_samples} samples, {self.n_classes} classes, {self.mean_size:.2f} "
            f"candidates per sample ({self.min_size} to {self.max_size}), "
            f"{self.singleton_share:.1%} with one, {self.full_share:.1%} with all"
        )
        if self.truth_coverage is None:
            return text
        return f"{text}, truth among them in {self.truth_coverage:.1%}"

    def to_dict(self) -> dict[str, float | int | None]:
        """Return the numbers as a dictionary."""
        return asdict(self)


@overload
def make_partial_labels(
    y: ArrayLike, *, return_summary: Literal[False] = ..., **options: Any
) -> NDArray[np.bool_]: ...


@overload
def make_partial_labels(
    y: ArrayLike, *, return_summary: Literal[True], **options: Any
) -> tuple[NDArray[np.bool_], CandidateSummary]: ...


def make_partial_labels(
    y: ArrayLike,
    *,
    strategy: str = "uniform",
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
      with `estimator` to choose the classifier, or `probabilities`.
    - ``"hierarchical"``: false labels of the true label's super-class (see `groups`) join,
      each with `flip_probability`.
    - ``"noisy"``: as uniform, but the true label is left out with probability `eta`. A set
      that would then be empty gets a false label at random.
    - ``"set_first"``: rows are grouped into bags, as faces in a photo. All rows of a bag have the
      union of their labels as candidates, as the names in its caption; `n_distractors` further
      names belong to no row. A frequent label is in more sets, but within a set about as likely
      as any other: the opposite of ``"uniform"``.

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
            Candidates of a bag that are not the label of a row; frequent labels are more likely.
        X : array-like, shape (n, q)
            Features from which `estimator` learns.
        estimator : classifier
            Whose confusions to use, with `predict_proba`; by default logistic regression on
            standardized features. It is judged on rows that it was not trained on, in five
            folds, or as many as the smallest class has samples.
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
    chosen = _check_options(strategy, options)
    fewest = check_integer("min_candidates", min_candidates, 1, len(names))
    if isinstance(random_state, np.random.Generator):
        draw: Draw = random_state.random
    else:
        draw = check_random_state(random_state).random_sample
    plan = STRATEGIES[strategy](KnownLabels(names, truth, fewest, draw), **chosen)
    short = np.flatnonzero(plan.largest < fewest)
    if short.size and fewest > 1:
        raise ValueError(
            f"min_candidates={fewest} is not possible with strategy={strategy!r} and these "
            f"options: {name_rows(short)} can have at most {plan.largest[short[0]]}. The true "
            f"label of row {short[0]} is {names[truth[short[0]]]!r}."
        )
    candidates = np.empty((len(truth), len(names)), dtype=bool)
    step = max(1, BLOCK // len(names))
    for start in range(0, len(truth), step):
        rows = slice(start, start + step)
        candidates[rows] = plan.draw(rows)
    return candidates


def encode_truth(
    y: ArrayLike, classes: Sequence[Any] | NDArray[Any] | None = None
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the classes, sorted unless given, and the column of every label.

    Raises
    ------
    ValueError, TypeError
        If `y` is not a vector of labels, or a label is missing or not among the classes.
    """
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(
            f"y has shape {labels.shape}; give one true label a row, a 1-D array. Candidate "
            "sets that already exist are read by appellate.as_candidates."
        )
    if not labels.size:
        raise ValueError("y is empty; give at least one true label.")
    known = None if classes is None else distinct_names(classes, "classes")
    codes, names = encode_labels(labels, known, np.arange(len(labels)))
    if (codes < 0).any():
        raise ValueError(
            f"y has no label in {name_rows(np.flatnonzero(codes < 0))}. Drop the rows."
        )
    return names, codes


def _check_options(strategy: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a strategy, with its defaults for those not given."""
    if strategy not in OPTIONS:
        raise ValueError(
            f"strategy={strategy!r} does not exist.{did_you_mean(str(strategy), OPTIONS)} "
            f"Use one of {', '.join(OPTIONS)}."
        )
    own = OPTIONS[strategy]
    known = {name for options in OPTIONS.values() for name in options}
    for name, value in given.items():
        if name not in known:
            raise TypeError(f"unknown option {name!r}.{did_you_mean(name, known)}")
        if value is not None and name not in own:
            raise ValueError(
                f"strategy={strategy!r} does not use {name}=. Leave it out, or choose another "
                "strategy."
            )
    chosen = dict(own) | {name: given[name] for name in own if given.get(name) is not None}
    for name in ("flip_probability", "epsilon", "eta"):
        chance = chosen.get(name, 0)
        if isinstance(chance, bool | np.bool_) or not isinstance(chance, Real):
            raise TypeError(f"{name}={chance!r} is not a number; give one in [0, 1].")
        if not 0 <= float(chance) <= 1:
            raise ValueError(f"{name}={chance!r} is not a probability; give one in [0, 1].")
    return chosen


def summarize_candidates(
    candidates: Any, y_true: ArrayLike | None = None, *, classes: Any = None
) -> CandidateSummary:
    """Count how large candidate sets are and how often they contain the true label.

    Parameters
    ----------
    candidates : array-like
        Candidate sets, anything that `appellate.as_candidates` reads.
    y_true : array-like, shape (n,), default=None
        True labels; column numbers for a matrix without names.
    classes : sequence, default=None
        Names of the columns, see `appellate.as_candidates`.

    Returns
    -------
    CandidateSummary
        The counts.

    Examples
    --------
    >>> summary = summarize_candidates(["cat|dog", "cow", "cat|cow|dog"], ["cat", "dog", "cow"])
    >>> print(summary)
    3 samples, 3 classes, 2.00 candidates per sample (1 to 3), 33.3% with one, 33.3% with all,
    truth among them in 66.7%
    """
    sets = as_candidates(candidates, classes=classes)
    if y_true is None:
        return summarize_matrix(sets.matrix)
    labels = np.asarray(y_true)
    if labels.ndim != 1:
        raise ValueError(f"y_true has shape {labels.shape}; give one true label a row.")
    check_length(sets, len(labels))
    codes, _ = encode_labels(labels, sets.class_names, np.arange(len(labels)))
    if (codes < 0).any():
        raise ValueError("y_true has missing labels; drop the rows, or give no truth.")
    return summarize_matrix(sets.matrix, codes)


def summarize_matrix(
    matrix: NDArray[np.bool_], truth: NDArray[np.intp] | None = None
) -> CandidateSummary:
    """Summarize a candidate matrix, given the columns of the true labels if they are known."""
    n, l = matrix.shape
    sizes = np.count_nonzero(matrix, axis=1)
    covered = None if truth is None else float(matrix[np.arange(n), truth].mean())
    return CandidateSummary(
        n_samples=n,
        n_classes=l,
        mean_size=float(sizes.mean()),
        min_size=int(sizes.min()),
        max_size=int(sizes.max()),
        singleton_share=float(np.mean(sizes == 1)),
        full_share=float(np.mean(sizes == l)),
        truth_coverage=covered,
    )
