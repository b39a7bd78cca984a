"""Splits of rows with candidate sets; no split puts a row on both sides."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import check_random_state

from appellate.candidates import CandidateSets, as_candidates, check_length
from appellate.numerics.entries import CandidateEntries


class CandidateKFold(KFold):  # type: ignore[misc]
    """Folds of rows with candidate sets, whatever form these have.

    scikit-learn's `KFold`, which looks at the number of rows only, with the candidate sets
    checked before any model is trained: one for every row, none of them empty.

    Pass `as_candidates(y)` rather than strings or lists to ``cross_val_score``: its parts keep
    the names of all classes, also of those that a part happens to lack.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    shuffle : bool, default=False
        Whether to shuffle the rows first.
    random_state : int, RandomState instance or None, default=None
        Order of the rows, if shuffled.

    Examples
    --------
    >>> import numpy as np
    >>> y = ["cat|dog", "cat", "dog|cow", "cow"]
    >>> for train, test in CandidateKFold(2).split(np.zeros((4, 1)), y):
    ...     print(train, test)
    [2 3] [0 1]
    [0 1] [2 3]
    """

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the row numbers of the training and of the test side of every fold.

        Parameters
        ----------
        X : array-like, shape (n, q)
            Features; only their number counts.
        y : array-like, default=None
            Candidate sets, anything that `as_candidates` reads; stratification needs them.
        groups : object
            Not used.

        Yields
        ------
        train, test : ndarray of int
            Disjoint, together all rows.
        """
        if y is not None:
            y = as_candidates(y)
            check_length(y, count_rows(X))
        yield from super().split(X, y, groups)


class CandidateStratifiedKFold(CandidateKFold):
    """Folds that share out the candidates of every class evenly.

    Stratification by label needs true labels, and scikit-learn's `StratifiedKFold` refuses 0/1
    matrices. Here each class's *candidates* are shared out, by a variant of iterative
    stratification [1]_: the class with the fewest rows left is dealt first, and each of its
    rows goes to the fold that lacks the largest share of its due, summed over the candidates
    of the row and the size of the fold. Rows with the same set follow one another, so that
    sets are shared out too. Fold sizes differ by one row at most.

    A class with fewer rows than folds is missing from some. Cost: one pass over the
    candidates.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    shuffle : bool, default=False
        Whether to deal the rows of a class in random order instead of their own.
    random_state : int, RandomState instance or None, default=None
        That order, if shuffled.

    References
    ----------
    .. [1] Sechidis, Tsoumakas, Vlahavas (2011). On the stratification of multi-label data.
       ECML PKDD.

    Examples
    --------
    >>> import numpy as np
    >>> y = ["cat|dog", "cat", "dog|cow", "cow", "cat|dog", "cat", "dog|cow", "cow"]
    >>> for _, test in CandidateStratifiedKFold(2).split(np.zeros((8, 1)), y):
    ...     print([y[i] for i in test])
    ['cat|dog', 'cat', 'dog|cow', 'cow']
    ['cat|dog', 'cat', 'dog|cow', 'cow']
    """

    def _iter_test_indices(
        self, X: Any = None, y: Any = None, groups: Any = None
    ) -> Iterator[NDArray[np.intp]]:
        if y is None:
            raise ValueError("stratification needs the candidate sets: split(X, y).")
        n, k = len(y), self.n_splits
        sizes = np.bincount(np.arange(n) % k, minlength=k)
        order = check_random_state(self.random_state).permutation(n) if self.shuffle else None
        parts = deal_rows(y.matrix, sizes, order)
        yield from (np.flatnonzero(parts == fold) for fold in range(k))


def make_folds(
    cv: Any, X: Any, sets: CandidateSets
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Split by whatever scikit-learn takes as `cv`; a number of folds is stratified."""
    if cv is None or isinstance(cv, Integral):
        cv = CandidateStratifiedKFold(int(cv or min(5, len(sets))))
    return iter(check_cv(cv).split(X, sets))


def cross_val_predict(
    estimator: Any, X: Any, y: Any, *, cv: Any = None, method: str = "predict"
) -> NDArray[Any]:
    """Predict every row by a clone that was fitted without its fold.

    scikit-learn's function of this name gives every distinct string such as ``"cat|dog"`` a
    number before it fits, so that its probabilities have a column a string, and renumbers the
    columns of a matrix. This one passes candidate sets as they are.

    Parameters
    ----------
    estimator : estimator
        A classifier of this library, or a pipeline or search that ends in one.
    X : array-like, shape (n, q)
        Features: an array, sparse matrix, data frame or list.
    y : array-like
        Candidate sets, anything that `as_candidates` reads.
    cv : int, splitter, iterable or None, default=None
        Folds that hold every row once; a number is one of `CandidateStratifiedKFold`, None
        five of them.
    method : {"predict", "predict_proba", "decision_function"}, default="predict"
        What to ask the clones for.

    Returns
    -------
    ndarray, shape (n,) or (n, l)
        The columns are the classes of all rows, ``as_candidates(y).class_names``.

    Examples
    --------
    >>> from appellate import SUREClassifier
    >>> X = [[0.0], [5.0], [0.1], [5.1], [0.2], [5.2]]
    >>> y = ["cat|dog", "dog", "cat", "dog|cow", "cat|cow", "cat|dog"]
    >>> cross_val_predict(SUREClassifier(), X, y, cv=3, method="predict_proba").shape
    (6, 3)
    """
    sets = as_candidates(y)
    parts = []
    seen = []
    for train, test in make_folds(cv, X, sets):
        model = clone(estimator).fit(take_rows(X, train), sets[train])
        parts.append(getattr(model, method)(take_rows(X, test)))
        seen.append(test)
    rows = np.concatenate(seen)
    if not np.array_equal(np.sort(rows), np.arange(len(sets))):
        raise ValueError("cv must test every row exactly once, as folds do.")
    return np.concatenate(parts)[np.argsort(rows)]


def candidate_train_test_split(
    X: Any,
    y: Any,
    *others: Any,
    test_size: float | int = 0.25,
    stratify: bool = True,
    random_state: Any = None,
) -> list[Any]:
    """Hold out a part of the rows, with every class's candidates shared out in proportion.

    Parameters
    ----------
    X : array-like, shape (n, q)
        Features: an array, sparse matrix, data frame or list.
    y : array-like
        Candidate sets, anything that `as_candidates` reads.
    *others : array-like
        Anything else with one entry per row, such as the true labels.
    test_size : float or int, default=0.25
        Share or number of rows to hold out.
    stratify : bool, default=True
        Whether to share out the candidates of every class (see `CandidateStratifiedKFold`),
        or to draw rows at random.
    random_state : int, RandomState instance or None, default=None
        Which rows are held out.

    Returns
    -------
    list
        ``X_train, X_test, y_train, y_test`` and likewise two parts of each of the others. Both
        parts of y are `CandidateSets` over all classes.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(6.0).reshape(6, 1)
    >>> y = ["cat|dog", "cat", "cow", "dog|cow", "cow", "cat"]
    >>> X_train, X_test, y_train, y_test = candidate_train_test_split(
    ...     X, y, test_size=2, random_state=0
    ... )
    >>> len(X_train), y_test
    (4, CandidateSets(2 rows, 3 classes, 1.5 candidates per row))
    """
    sets = as_candidates(y)
    n = len(sets)
    for rows in (X, *others):
        check_length(sets, count_rows(rows))
    held_out = test_size if isinstance(test_size, Integral) else round(float(test_size) * n)
    if isinstance(test_size, bool) or not 0 < held_out < n:
        raise ValueError(
            f"test_size={test_size!r} leaves no row on one side of {n}. Give a share between 0 "
            "and 1, or a number of rows."
        )
    order = check_random_state(random_state).permutation(n)
    if stratify:
        in_test = deal_rows(sets.matrix, np.array([n - held_out, held_out]), order) == 1
    else:
        in_test = np.isin(np.arange(n), order[:held_out])
    sides = np.flatnonzero(~in_test), np.flatnonzero(in_test)
    return [take_rows(rows, side) for rows in (X, sets, *others) for side in sides]


def deal_rows(
    candidates: NDArray[np.bool_],
    sizes: NDArray[np.intp],
    order: NDArray[np.intp] | None = None,
) -> NDArray[np.intp]:
    """Deal rows to parts of given sizes by iterative stratification.

    Parameters
    ----------
    candidates : ndarray of bool, shape (n, l)
        Every row has at least one candidate.
    sizes : ndarray of int
        Rows of every part, together n.
    order : ndarray of int, shape (n,), default=None
        Order in which the rows of a class are dealt; by default their own.

    Returns
    -------
    ndarray of int, shape (n,)
        The part of every row.

    Examples
    --------
    >>> import numpy as np
    >>> deal_rows(np.eye(2, dtype=bool)[[0, 0, 1, 1]], np.array([2, 2]))
    array([0, 1, 0, 1])
    """
    order = np.arange(len(candidates)) if order is None else order
    packed = np.ascontiguousarray(np.packbits(candidates[order], axis=1))
    keys = packed.view(f"V{packed.shape[1]}").ravel()
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    order = order[np.argsort(first[group], kind="stable")]  # equal sets follow one another
    entries = CandidateEntries(candidates[order])
    by_label, starts = entries.by_label
    left = np.diff(starts)  # undealt rows of every label
    due = np.outer(np.maximum(left, 1), sizes / len(candidates))  # (labels, parts)
    lacking = np.ones_like(due)  # share of the due
    room = sizes.astype(float)
    parts = np.full(len(candidates), -1)
    while left.any():
        label = np.argmin(np.where(left > 0, left, np.inf))
        for row in entries.rows[by_label[starts[label] : starts[label + 1]]]:
            if parts[row] >= 0:
                continue
            labels = entries.labels[entries.indptr[row] : entries.indptr[row + 1]]
            wanted = lacking[labels].sum(axis=0) + room / sizes
            part = parts[row] = np.argmax(np.where(room > 0, wanted, -np.inf))
            lacking[labels, part] -= 1 / due[labels, part]
            left[labels] -= 1
            room[part] -= 1
    dealt = np.empty_like(parts)
    dealt[order] = parts
    return dealt


def count_rows(rows: Any) -> int:
    """Number of rows of any container."""
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)


def take_rows(rows: Any, chosen: NDArray[np.intp]) -> Any:
    """Select rows of any container."""
    if hasattr(rows, "iloc"):
        return rows.iloc[chosen]
    if hasattr(rows, "tocsr"):
        return rows.tocsr()[chosen]
    if hasattr(rows, "to_pylist"):  # Arrow's `[]` takes no row numbers
        return rows.take(chosen)
    return rows[chosen] if hasattr(rows, "shape") else [rows[i] for i in chosen]
