"""From labels to codes, from codes to votes, from votes to candidates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Labels = list[Any] | NDArray[Any]
Columns = Sequence[NDArray[Any]]

SHOWN = 5  # rows, labels or columns that a message names before it says "and N more"


def listing(values: Iterable[Any]) -> str:
    """Name the first few values: ``3, 17`` or ``0, 1, 2, 3, 4 and 12 more``."""
    distinct = list(dict.fromkeys(values))
    shown = ", ".join(str(value) for value in distinct[:SHOWN])
    return shown if len(distinct) <= SHOWN else f"{shown} and {len(distinct) - SHOWN} more"


def naming(word: str, values: Iterable[Any]) -> str:
    """Put a word, in the singular or plural, before its values: ``rows 3, 17``."""
    distinct = list(dict.fromkeys(values))
    return f"{word}{'' if len(distinct) == 1 else 's'} {listing(distinct)}"


def scalars(array: NDArray[Any]) -> list[Any]:
    """Return the entries as Python objects; dates stay what they are."""
    return list(array) if array.dtype.kind in "mM" else array.tolist()


def is_missing(value: Any) -> bool:
    """Tell whether a cell is empty: None, NaN, NaT, NA or a blank string."""
    if isinstance(value, str):
        return not value.strip()
    if isinstance(value, (float, np.floating, np.datetime64, np.timedelta64)):
        return bool(value != value)
    # The NA and NaT of pandas are known by name, so that pandas need not be there.
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def object_array(values: Sequence[Any]) -> NDArray[Any]:
    """Return a 1-D object array, also of lists or tuples of one length."""
    return np.fromiter(values, dtype=object, count=len(values))


def name_array(names: Sequence[Any] | NDArray[Any], *, text: bool = True) -> NDArray[Any]:
    """Return names as an array of their common type, of objects if they have none.

    Parameters
    ----------
    names : sequence
        Hashable names.
    text : bool, default=True
        Give strings a numpy string type; otherwise they stay objects.

    Returns
    -------
    ndarray of shape (n_names,)
        Numbers as numbers, strings as strings, anything else as objects.
    """
    if isinstance(names, np.ndarray) and names.dtype != object:
        return names
    values = list(names)
    kinds = set(map(type, values))
    strings = text and kinds <= {str, np.str_}
    numbers = all(kind in (bool, int, float) or issubclass(kind, np.generic) for kind in kinds)
    if strings or (numbers and np.str_ not in kinds):
        array = np.array(values)
        if array.tolist() == values:  # numpy cuts trailing NULs and rounds huge integers
            return array
    return object_array(values)


def factorize(labels: Labels) -> tuple[Labels, NDArray[np.intp]]:
    """Return the distinct labels and, for every label, its position among them."""
    if isinstance(labels, np.ndarray):
        if labels.dtype.kind in "biufmM":
            distinct, codes = np.unique(labels, return_inverse=True)
            return distinct, codes.astype(np.intp, copy=False)
        labels = scalars(labels)
    try:
        position = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    except TypeError:
        raise TypeError(_unhashable(labels)) from None
    codes = np.fromiter(map(position.__getitem__, labels), dtype=np.intp, count=len(labels))
    return list(position), codes


def _unhashable(labels: list[Any]) -> str:
    for label in labels:
        try:
            hash(label)
        except TypeError:
            return (
                f"a label is {label!r}, a {type(label).__name__}, which cannot be hashed. "
                "A label is a number, a string, a tuple or another hashable object."
            )
    raise AssertionError("every label can be hashed")  # pragma: no cover


def ordered(distinct: Sequence[Any]) -> list[Any]:
    """Sort labels that have one total order; leave others in order of appearance."""
    try:
        candidates = sorted(distinct)
        if all(a < b for a, b in pairwise(candidates)):  # frozensets sort without an order
            return candidates
    except TypeError:
        pass
    return list(distinct)


class Coded(NamedTuple):
    """Labels as column numbers, -1 for a missing label, and the names of the columns."""

    codes: NDArray[np.intp]
    names: NDArray[Any]

    def missing(self) -> NDArray[np.intp]:
        """Return the positions without a label."""
        return np.flatnonzero(self.codes < 0)


def encode(
    labels: Labels,
    classes: NDArray[Any] | None,
    rows: NDArray[np.intp],
    missing: Sequence[Any] = (),
) -> Coded:
    """Turn every label into its column among the classes.

    Parameters
    ----------
    labels : list or ndarray of shape (n_labels,)
        Labels of all rows, one after the other.
    classes : ndarray or None
        Class names, or None to take the distinct labels, sorted if possible.
    rows : ndarray of shape (n_labels,)
        The row each label belongs to, for messages.
    missing : sequence, default=()
        Values that count as missing beside None, NaN, NA and blank strings.

    Returns
    -------
    Coded
        Column numbers and class names.

    Raises
    ------
    ValueError
        If a label is complex or not among the classes.
    """
    distinct, codes = factorize(labels)
    values = scalars(distinct) if isinstance(distinct, np.ndarray) else distinct
    if any(isinstance(value, (complex, np.complexfloating)) for value in values):
        raise ValueError("Complex data not supported: a label cannot be a complex number.")
    absent = np.array([is_missing(v) or v in missing for v in values], dtype=bool)
    if classes is None:
        if isinstance(distinct, np.ndarray):
            classes = distinct[~absent]
        else:
            kept = [value for value, gone in zip(values, absent, strict=True) if not gone]
            text = not (isinstance(labels, np.ndarray) and labels.dtype == object)
            classes = name_array(ordered(kept), text=text)
    column = {name: j for j, name in enumerate(scalars(classes))}
    place = np.array([column.get(v, -2) for v in values], dtype=np.intp)
    place[absent] = -1
    unknown = np.flatnonzero(place == -2)
    if unknown.size:
        where = rows[np.isin(codes, unknown)]
        raise ValueError(
            f"{naming('row', where)}: unknown class {listing(repr(values[i]) for i in unknown)}. "
            "Add it to `classes` or correct the rows."
        )
    return Coded(place[codes], classes)


class Rule(NamedTuple):
    """How votes become candidates: every label, those with k votes, or a share of the votes."""

    kind: str
    threshold: Fraction


def parse_rule(rule: str) -> Rule:
    """Read ``"union"``, ``"votes:k"`` or ``"share:p"``.

    Raises
    ------
    ValueError
        If the rule is none of these, k no positive integer or p not in (0, 1].
    """
    kind, colon, text = rule.partition(":") if isinstance(rule, str) else ("", "", "")
    if kind == "union" and not colon:
        return Rule(kind, Fraction(1))
    if kind not in ("votes", "share") or not colon:
        raise ValueError(f"unknown rule {rule!r}. Use 'union', 'votes:2' or 'share:0.8'.")
    try:
        threshold = Fraction(text)
    except (ValueError, ZeroDivisionError):
        threshold = Fraction(-1)
    if kind == "votes" and (threshold < 1 or threshold.denominator > 1):
        raise ValueError(f"rule {rule!r}: k must be a positive integer, as in 'votes:2'.")
    if kind == "share" and not 0 < threshold <= 1:
        raise ValueError(f"rule {rule!r}: p must lie in (0, 1], as in 'share:0.8'.")
    return Rule(kind, threshold if kind == "votes" else threshold.limit_denominator(10**6))


def elect(
    rows: NDArray[np.intp], codes: NDArray[np.intp], shape: tuple[int, int], rule: Rule
) -> NDArray[np.bool_]:
    """Turn votes, given as pairs of row and column, into a candidate matrix.

    Parameters
    ----------
    rows, codes : ndarray of shape (n_votes,)
        Row and column of every vote.
    shape : tuple of int
        Shape (n, l) of the candidate matrix.
    rule : Rule
        The rule that every row follows.

    Returns
    -------
    ndarray of bool, shape (n, l)
        Candidates; a row may be empty.
    """
    if rule.kind == "union":
        matrix = np.zeros(shape, dtype=bool)
        matrix[rows, codes] = True
        return matrix
    votes = np.bincount(rows * shape[1] + codes, minlength=shape[0] * shape[1]).reshape(shape)
    if rule.kind == "votes":
        return np.asarray(votes >= int(rule.threshold))
    return _smallest_share(votes, rule.threshold)


def _smallest_share(votes: NDArray[np.intp], share: Fraction) -> NDArray[np.bool_]:
    """Keep the most-voted labels that reach the share, with all that tie with the last."""
    descending = -np.sort(-votes, axis=1)  # (n, l)
    needed = votes.sum(axis=1, keepdims=True) * share.numerator  # whole numbers: no rounding
    last = np.argmax(np.cumsum(descending, axis=1) * share.denominator >= needed, axis=1)
    fewest = np.take_along_axis(descending, last[:, None], axis=1)  # (n, 1)
    return (votes >= fewest) & (votes > 0)


def read_annotators(
    columns: Columns, classes: NDArray[Any] | None, rule: Rule, missing: Sequence[Any]
) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Read one column of answers per person.

    Parameters
    ----------
    columns : sequence of ndarray of shape (n,)
        The answers of each person; empty cells are answers not given.
    classes, rule, missing
        See :func:`appellate.candidates.as_candidates`.

    Returns
    -------
    matrix : ndarray of bool, shape (n, l)
        Candidates.
    names : ndarray of shape (l,)
        Class names.
    """
    n = len(columns[0])
    rows = np.tile(np.arange(n), len(columns))
    coded = _answers(np.concatenate(columns), classes, rows, missing)
    given = coded.codes >= 0
    matrix = elect(rows[given], coded.codes[given], (n, len(coded.names)), rule)
    refuse_empty(matrix, rule=rule)
    return matrix, coded.names


def _answers(
    labels: NDArray[Any],
    classes: NDArray[Any] | None,
    rows: NDArray[np.intp],
    missing: Sequence[Any],
) -> Coded:
    coded = encode(labels, classes, rows, missing)
    if not len(coded.names):
        raise ValueError("the table holds no label: every cell is missing.")
    codes, names = coded
    # A table stores integers as floats as soon as one cell is empty.
    if classes is None and names.dtype.kind == "f" and (codes < 0).any():
        whole = names.astype(np.int64)
        if np.array_equal(whole, names):
            return Coded(codes, whole)
    return coded


def find_roles(columns: Columns, titles: Sequence[Any] | None) -> Columns:
    """Return the columns item, label and annotator, by title or else by position.

    Raises
    ------
    ValueError
        If it cannot be told which column is which.
    """
    names = ("item", "label", "annotator")
    named = {} if titles is None else dict(zip(titles, columns, strict=True))
    roles = {name: named[name] for name in names if name in named}
    if len(columns) in (2, 3):
        others = [c for i, c in enumerate(columns) if titles is None or titles[i] not in names]
        roles |= dict(zip([name for name in names if name not in roles], others, strict=False))
    if "item" not in roles or "label" not in roles:
        raise ValueError(
            f"the long table has {len(columns)} columns. It needs item, label and, optionally, "
            "annotator: give two or three columns, or columns of these names."
        )
    return [roles[name] for name in names if name in roles]


def read_long(
    columns: Columns,
    classes: NDArray[Any] | None,
    rule: Rule,
    missing: Sequence[Any],
    items: Sequence[Any] | NDArray[Any] | None,
) -> tuple[NDArray[np.bool_], NDArray[Any], NDArray[Any]]:
    """Read a table with one answer a row.

    Parameters
    ----------
    columns : sequence of two or three ndarray
        Items, labels and, if known, annotators.
    classes, rule, missing, items
        See :func:`appellate.candidates.as_candidates`.

    Returns
    -------
    matrix : ndarray of bool, shape (n, l)
        Candidates.
    names : ndarray of shape (l,)
        Class names.
    ids : ndarray of shape (n,)
        The items, one a row of the matrix.
    """
    lines = np.arange(len(columns[0]))
    owner, ids = _code_items(scalars(columns[0]), items)
    coded = _answers(columns[1], classes, lines, missing)
    shape = len(ids), len(coded.names)
    votes = np.stack([owner, coded.codes])[:, coded.codes >= 0]
    if len(columns) == 3:
        people, who = factorize(scalars(columns[2]))
        _refuse_missing("annotator", people, who)
        vote = np.ravel_multi_index((*votes, who[coded.codes >= 0]), (*shape, len(people)))
        votes = np.stack(np.unravel_index(np.unique(vote), (*shape, len(people)))[:2])
    matrix = elect(votes[0], votes[1], shape, rule)
    refuse_empty(matrix, rule=rule, items=scalars(ids))
    return matrix, coded.names, ids


def _refuse_missing(word: str, distinct: Labels, codes: NDArray[np.intp]) -> None:
    gone = [i for i, value in enumerate(distinct) if is_missing(value)]
    if gone:
        lines = np.flatnonzero(np.isin(codes, gone))
        raise ValueError(f"{naming('row', lines)}: no {word}. Fill the cells or drop the rows.")


def _code_items(
    values: list[Any], items: Sequence[Any] | NDArray[Any] | None
) -> tuple[NDArray[np.intp], NDArray[Any]]:
    found, codes = factorize(values)
    _refuse_missing("item", found, codes)
    if items is None:
        return codes, name_array(found)
    order = distinct_names(items, "items")
    place = {item: i for i, item in enumerate(scalars(order))}
    strange = [repr(item) for item in found if item not in place]
    if strange:
        raise ValueError(
            f"{naming('item', strange)} of the table not in `items`. "
            "Add them to `items` or drop their rows."
        )
    known = set(found)
    absent = [repr(item) for item in place if item not in known]
    if absent:
        raise ValueError(
            f"{naming('item', absent)} of `items` not in the table. "
            "Add their answers or drop them from `items` and from X."
        )
    return np.array([place[item] for item in found], dtype=np.intp)[codes], order


def distinct_names(values: Any, word: str) -> NDArray[Any]:
    """Check a sequence of distinct hashable names, such as `classes`.

    Raises
    ------
    TypeError
        If it is no ordered sequence.
    ValueError
        If it is empty, or a name is missing or comes twice.
    """
    if isinstance(values, (str, bytes, dict, set, frozenset)) or not hasattr(values, "__len__"):
        raise TypeError(f"`{word}` is a {type(values).__name__}. Give a list, in order.")
    entries = scalars(values) if isinstance(values, np.ndarray) else list(values)
    distinct, codes = factorize(entries)
    if not len(distinct):
        raise ValueError(f"`{word}` is empty. Name at least one.")
    if any(is_missing(entry) for entry in distinct):
        raise ValueError(f"`{word}` holds a missing name (None, NaN or blank). Name every one.")
    twice = [repr(distinct[i]) for i in np.flatnonzero(np.bincount(codes) > 1)]
    if twice:
        raise ValueError(f"duplicate {listing(twice)} in `{word}`. Give each name once.")
    return name_array(values if isinstance(values, np.ndarray) else entries)


def refuse_empty(
    matrix: NDArray[np.bool_], *, rule: Rule | None = None, items: Sequence[Any] | None = None
) -> None:
    """Raise ValueError that names the rows, or items, without a candidate."""
    empty = np.flatnonzero(~matrix.any(axis=1)).tolist()
    if not empty:
        return
    where = (
        naming("row", empty) if items is None else naming("item", [repr(items[i]) for i in empty])
    )
    if rule is not None and rule.kind == "votes":
        raise ValueError(
            f"{where}: no candidate, as no label has {rule.threshold} votes. "
            "Lower k, use the rule 'union', or drop the rows."
        )
    raise ValueError(
        f"{where}: no candidate. Every row needs at least one; "
        "drop the rows or give them all classes."
    )
