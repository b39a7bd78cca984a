"""Generated data: ambiguous problems of any size, long-tailed classes, crowds that answer."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta
from sklearn.utils import Bunch, check_random_state

from appellate.candidates import Answers
from appellate.candidates.names import scalars
from appellate.datasets.generators import BLOCK, encode_truth, hide_truth, summarize_matrix

_PERMUTED = 10_000_000  # pairs of rows and people up to which people are drawn without repeats


def make_ambiguous_classification(
    n_samples: int = 1000,
    n_features: int = 20,
    n_classes: int = 5,
    *,
    class_sep: float = 3.0,
    strategy: Any = "uniform",
    min_candidates: int = 1,
    dtype: Any = np.float64,
    return_X_candidates_y: bool = False,
    random_state: Any = None,
    **options: Any,
) -> Any:
    """Generate a classification problem with candidate sets.

    Every class is a Gaussian cloud of unit variance around a centre of its own; the centres
    are Gaussian too, at the distance `class_sep` from the origin in the mean square.

    Parameters
    ----------
    n_samples, n_features, n_classes : int, default=1000, 20, 5
        Numbers of rows, columns and labels (n, q, l).
    class_sep : float, default=3.0
        How far apart the classes lie; 0 makes them indistinguishable.
    strategy : str, default="uniform"
        How candidate sets are made, see `make_partial_labels`; all but
        ``"instance_dependent"``.
    min_candidates : int, default=1
        Fewest candidates of a sample.
    dtype : numpy.float64 or numpy.float32, default=numpy.float64
        Type of the features.
    return_X_candidates_y : bool, default=False
        Return ``(X, candidates, y_true)`` alone.
    random_state : int, RandomState, Generator or None, default=None
        Source of randomness; an int makes the result repeatable.
    **options
        Options of the strategy, such as `flip_probability`.

    Returns
    -------
    Bunch
        With `X` (n, q), `candidates` (bool, (n, l)), `y_true` (class numbers), `class_names`
        (0 .. l - 1), `centers` (l, q), `summary` of the candidate sets and `description`.

    Notes
    -----
    Needs little more memory than the result, and a few seconds for a million rows.

    Examples
    --------
    >>> from appellate.datasets import make_ambiguous_classification
    >>> data = make_ambiguous_classification(200, 8, 4, flip_probability=0.5, random_state=0)
    >>> data.X.shape, data.candidates.shape
    ((200, 8), (200, 4))
    >>> bool(data.candidates[range(200), data.y_true].all())
    True
    """
    _check_number("n_samples", n_samples)
    _check_number("n_features", n_features)
    _check_number("n_classes", n_classes)
    if isinstance(class_sep, bool) or not isinstance(class_sep, Real) or not 0 <= class_sep < 1e9:
        raise ValueError(f"class_sep={class_sep!r}; give a finite number of at least 0.")
    if np.dtype(dtype) not in (np.float64, np.float32):
        raise ValueError(f"dtype={dtype!r}; use numpy.float64 or numpy.float32.")
    if strategy == "instance_dependent":
        raise ValueError(
            "strategy='instance_dependent' needs features first: generate the problem, then call "
            "make_partial_labels(data.y_true, strategy='instance_dependent', X=data.X)."
        )
    rng = _generator(random_state)
    y_true = rng.choice(n_classes, size=n_samples)
    centers = rng.normal(size=(n_classes, n_features)) * (class_sep / np.sqrt(n_features))
    centers = centers.astype(dtype)
    X = np.empty((n_samples, n_features), dtype=dtype)
    rng.standard_normal(dtype=X.dtype, out=X)
    step = max(1, BLOCK // n_features)
    for start in range(0, n_samples, step):
        X[start : start + step] += centers[y_true[start : start + step]]
    classes = np.arange(n_classes)
    candidates = hide_truth(y_true, classes, strategy, min_candidates, rng, options)
    if return_X_candidates_y:
        return X, candidates, y_true
    return Bunch(
        X=X,
        candidates=candidates,
        y_true=y_true,
        class_names=classes,
        centers=centers,
        summary=summarize_matrix(candidates, y_true),
        description=f"Generated: {n_classes} Gaussian classes in {n_features} dimensions, "
        f"candidates by strategy {strategy!r}.",
    )


def make_long_tailed(
    y: ArrayLike, imbalance: float = 100.0, *, n_head: int | None = None, random_state: Any = None
) -> NDArray[np.intp]:
    """Choose rows so that class sizes fall exponentially, from a head to a tail.

    The k-th largest class keeps ``n_head * imbalance ** (-k / (l - 1))`` of its rows, k from
    0 to l - 1, rounded. Choose first, then make candidate sets for the chosen rows.

    Parameters
    ----------
    y : array-like, shape (n,)
        True labels.
    imbalance : float, default=100.0
        Size of the largest class over that of the smallest, at least 1.
    n_head : int, default=None
        Size of the largest class; by default the largest that the rows allow.
    random_state : int, RandomState, Generator or None, default=None
        Source of randomness; an int makes the result repeatable.

    Returns
    -------
    ndarray, shape (m,)
        Chosen row numbers, ascending.

    Raises
    ------
    ValueError
        If a class has too few rows, or the smallest would get none.

    Examples
    --------
    >>> import numpy as np
    >>> from appellate.datasets import make_long_tailed
    >>> y = np.repeat(["a", "b", "c"], 100)
    >>> np.unique(y[make_long_tailed(y, imbalance=25, random_state=0)], return_counts=True)[1]
    array([100,  20,   4])
    """
    if isinstance(imbalance, bool) or not isinstance(imbalance, Real) or not imbalance >= 1:
        raise ValueError(f"imbalance={imbalance!r}; give a number of at least 1.")
    names, truth = encode_truth(y)
    if len(names) == 1 and imbalance > 1:
        raise ValueError("y has one class; nothing can be unequal.")
    counts = np.bincount(truth)
    order = np.argsort(-counts, kind="stable")  # head first
    share = float(imbalance) ** -(np.arange(len(names)) / max(len(names) - 1, 1))
    head = int((counts[order] / share + 1e-9).min()) if n_head is None else n_head
    _check_number("n_head", head)
    if head < imbalance:
        raise ValueError(
            f"imbalance={imbalance:g} is not possible: with {head} rows in the largest class, the "
            f"smallest, {scalars(names)[order[-1]]!r}, would get less than one. Lower it to "
            f"{head} or less."
        )
    wanted = np.rint(head * share).astype(np.intp)
    wanted = np.minimum(wanted, counts[order]) if n_head is None else wanted
    short = np.flatnonzero(wanted > counts[order])
    if short.size:
        name = scalars(names)[order[short[0]]]
        raise ValueError(
            f"n_head={head} is not possible: class {name!r} would need {wanted[short[0]]} rows, "
            f"but has {counts[order[short[0]]]}."
        )
    rng = _generator(random_state)
    rows = np.argsort(truth, kind="stable")
    stops = np.cumsum(counts)
    chosen = [
        rng.choice(rows[stops[j] - counts[j] : stops[j]], size=size, replace=False)
        for j, size in zip(order, wanted, strict=True)
    ]
    return np.sort(np.concatenate(chosen))


def make_crowd(
    y: ArrayLike,
    *,
    n_people: int = 30,
    n_answers: int = 3,
    accuracy: float = 0.7,
    experts: float = 0.0,
    spammers: float = 0.0,
    confusion: float = 0.0,
    shared_errors: float = 0.0,
    random_state: Any = None,
) -> Bunch:
    """Let a crowd answer for rows whose labels are known.

    Parameters
    ----------
    y : array-like, shape (n,)
        True labels.
    n_people, n_answers : int, default=30, 3
        Number of annotators, and of answers per row.
    accuracy : float, default=0.7
        Mean accuracy; annotators differ, by a Beta distribution worth ten answers.
    experts : float, default=0.0
        Share of the annotators who are correct in 95 of 100 cases.
    spammers : float, default=0.0
        Share of the annotators who answer at random, each with favourite labels.
    confusion : float, default=0.0
        Share of the errors that go to one look-alike of the true class, the same for all.
    shared_errors : float, default=0.0
        Share of the rows that are hard: annotators are half as often correct there, and all
        errors go to the same wrong label.
    random_state : int, RandomState, Generator or None, default=None
        Source of randomness; an int makes the result repeatable.

    Returns
    -------
    Bunch
        With `answers` (`appellate.Answers`), `accuracy` (p,) and `kind` (p,) of the annotators:
        ``"worker"``, ``"expert"`` or ``"spammer"``.

    Raises
    ------
    ValueError
        If a share is not in [0, 1], a number is below 1, or a label is missing.

    Examples
    --------
    >>> from appellate.datasets import make_crowd
    >>> crowd = make_crowd(["cat", "dog", "cow"] * 20, spammers=0.2, random_state=0)
    >>> crowd.answers
    Answers(60 rows, 180 answers of 30 annotators, 3 classes)
    """
    shares = {"accuracy": accuracy, "experts": experts, "spammers": spammers}
    shares |= {"confusion": confusion, "shared_errors": shared_errors}
    for name, value in shares.items():
        if not 0 <= value <= 1:
            raise ValueError(f"{name}={value!r} is not a share; give a number from 0 to 1.")
    if experts + spammers > 1:
        raise ValueError(f"experts + spammers = {experts + spammers:g}; they are 1 at most.")
    if not 1 <= n_answers <= n_people:
        raise ValueError(f"n_answers={n_answers!r} must lie from 1 to n_people={n_people!r}.")
    rng = _generator(random_state, 1)
    names, truth = encode_truth(y)
    n, l = len(truth), len(names)
    kind = np.full(n_people, "worker", dtype=object)
    n_experts, n_spammers = round(experts * n_people), round(spammers * n_people)
    kind[:n_experts], kind[n_people - n_spammers :] = "expert", "spammer"
    places = (rng.permutation(n_people) + 0.5) / n_people  # so that a small crowd has the mean
    ability = beta.ppf(places, 10 * accuracy + 1e-3, 10 * (1 - accuracy) + 1e-3)
    ability[kind == "expert"] = 0.95
    if n * n_people <= _PERMUTED:
        chosen = np.argsort(rng.random((n, n_people)), axis=1)[:, :n_answers]
        rows, who = np.repeat(np.arange(n), n_answers), np.sort(chosen, axis=1).ravel()
    else:
        drawn = np.arange(n)[:, None] * n_people + rng.integers(n_people, size=(n, n_answers))
        rows, who = np.divmod(np.unique(drawn), n_people)  # a few of many people come twice
    hard = rng.random(n) < shared_errors
    able = rng.random(len(rows)) < np.where(hard[rows], ability[who] / 2, ability[who])
    said = np.zeros(len(rows), dtype=np.intp)
    if l > 1:
        look_alike = np.roll(cycle := rng.permutation(l), -1)[np.argsort(cycle)]
        anything = (truth[rows] + rng.integers(1, l, size=len(rows))) % l
        wrong = np.where(rng.random(len(rows)) < confusion, look_alike[truth[rows]], anything)
        common = (truth + rng.integers(1, l, size=n)) % l  # the error that is shared
        said = np.where(able, truth[rows], np.where(hard[rows], common[rows], wrong))
    favourites = np.cumsum(rng.dirichlet(np.ones(l), size=n_people), axis=1)
    guess = (rng.random(len(rows))[:, None] > favourites[who]).sum(axis=1).clip(max=l - 1)
    said = np.where(kind[who] == "spammer", guess, said)
    right = np.bincount(who, said == truth[rows], minlength=n_people)
    i, j, k = (part.astype(np.int32) for part in (rows, who, said))
    return Bunch(
        answers=Answers(i, j, k, n, names, np.arange(n_people)),
        accuracy=right / np.maximum(np.bincount(who, minlength=n_people), 1),
        kind=kind,
    )


def _check_number(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name}={value!r}; give a whole number of at least 1.")


def _generator(random_state: Any, n_words: int = 4) -> np.random.Generator:
    """Return a new-style generator, seeded from whatever scikit-learn accepts."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_random_state(random_state).randint(2**31, size=n_words))
