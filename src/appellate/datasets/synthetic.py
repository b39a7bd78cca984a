"""Generated data: ambiguous classification problems of any size, and long-tailed classes."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch, check_random_state

from appellate.candidates.names import scalars
from appellate.datasets.generators import BLOCK, encode_truth, hide_truth
from appellate.datasets.summary import summarize_matrix


def make_ambiguous_classification(
    n_samples: int = 1000,
    n_features: int = 20,
    n_classes: int = 5,
    *,
    class_sep: float = 3.0,
    weights: ArrayLike | None = None,
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
    weights : array-like, shape (l,), default=None
        Probability of each class, up to a factor; equal by default.
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
    for name, value in (
        ("n_samples", n_samples),
        ("n_features", n_features),
        ("n_classes", n_classes),
    ):
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
            raise ValueError(f"{name}={value!r}; give a whole number of at least 1.")
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
    y_true = rng.choice(n_classes, size=n_samples, p=_check_weights(weights, n_classes))
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
    if isinstance(head, bool) or not isinstance(head, Integral) or head < 1:
        raise ValueError(f"n_head={n_head!r}; give a whole number of at least 1.")
    wanted = np.rint(head * share).astype(np.intp)
    wanted = np.minimum(wanted, counts[order]) if n_head is None else wanted
    _check_sizes(wanted, counts[order], scalars(names[order]), float(imbalance), head)
    rng = _generator(random_state)
    rows = np.argsort(truth, kind="stable")
    stops = np.cumsum(counts)
    chosen = [
        rng.choice(rows[stops[j] - counts[j] : stops[j]], size=size, replace=False)
        for j, size in zip(order, wanted, strict=True)
    ]
    return np.sort(np.concatenate(chosen))


def _check_sizes(
    wanted: NDArray[np.intp],
    counts: NDArray[np.intp],
    names: list[Any],
    imbalance: float,
    head: int,
) -> None:
    if head < imbalance:
        raise ValueError(
            f"imbalance={imbalance:g} cannot be had: with {head} rows in the largest class, the "
            f"smallest, {names[-1]!r}, would get less than one. Lower it to {head} or less."
        )
    short = np.flatnonzero(wanted > counts)
    if short.size:
        first = short[0]
        raise ValueError(
            f"n_head={head} cannot be had: class {names[first]!r} would need {wanted[first]} "
            f"rows, but has {counts[first]}."
        )


def _check_weights(weights: ArrayLike | None, n_classes: int) -> NDArray[np.float64] | None:
    if weights is None:
        return None
    share = np.asarray(weights, dtype=float)
    if share.shape != (n_classes,) or not np.isfinite(share).all() or (share < 0).any():
        raise ValueError(f"weights need {n_classes} non-negative numbers, one a class.")
    if not share.sum():
        raise ValueError("weights are all zero; some class must be possible.")
    return np.asarray(share / share.sum())


def _generator(random_state: Any) -> np.random.Generator:
    """Return a new-style generator, seeded from whatever scikit-learn accepts."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_random_state(random_state).randint(2**31, size=4))
