"""Names of labels, rows and annotators: which are missing, which are the same, how to say them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate._text import listing as listing
from appellate._text import naming as naming

LabelValues = list[Any] | NDArray[Any]
Names = NDArray[Any] | None


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


def label_vector(labels: Any) -> NDArray[Any]:
    """Return one label per row, unchanged; numpy would turn NaN and 1 into texts among texts."""
    kinds = set(map(type, labels)) if isinstance(labels, (list, tuple)) else set()
    texts = {kind for kind in kinds if issubclass(kind, str)}
    return object_array(labels) if texts and texts != kinds else np.asarray(labels)


def factorize(labels: LabelValues) -> tuple[LabelValues, NDArray[np.intp]]:
    """Return the distinct labels and, for every label, its position among them."""
    if isinstance(labels, np.ndarray):
        if labels.dtype.kind in "biufmM":
            distinct, codes = np.unique(labels, return_inverse=True)
            return distinct, codes.astype(np.intp, copy=False)
        labels = scalars(labels)
    position: dict[Any, int] = {}
    try:
        for label in labels:
            position.setdefault(label, len(position))
    except TypeError:
        raise TypeError(
            f"a label is {label!r}, a {type(label).__name__}, which cannot be hashed. "
            "A label is a number, a string, a tuple or another hashable object."
        ) from None
    codes = np.fromiter(map(position.__getitem__, labels), dtype=np.intp, count=len(labels))
    return list(position), codes


def ordered(distinct: Sequence[Any]) -> list[Any]:
    """Sort labels that have one total order; leave others in order of appearance."""
    try:
        candidates = sorted(distinct)
        if all(a < b for a, b in pairwise(candidates)):  # frozensets sort without an order
            return candidates
    except TypeError:
        pass
    return list(distinct)


def encode_labels(
    labels: LabelValues, classes: Names, rows: NDArray[np.intp], missing: Sequence[Any] = ()
) -> tuple[NDArray[np.intp], NDArray[Any]]:
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
        Values that count as missing in addition to None, NaN, NA and blank strings.

    Returns
    -------
    codes : ndarray of int, shape (n_labels,)
        Column numbers, -1 for a missing label.
    names : ndarray
        Class names.

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
    return place[codes], classes


def number_groups(groups: Any) -> NDArray[np.intp]:
    """Number the groups of rows, from 0 on; a row without a group is its own group, below 0."""
    values = groups if isinstance(groups, list) else np.asarray(groups)
    rows = np.arange(len(values))
    codes = encode_labels(values, None, rows)[0]
    return np.where(codes < 0, -1 - rows, codes)


def distinct_names(values: Any, word: str) -> NDArray[Any]:
    """Check a sequence of distinct hashable names, such as `classes`.

    Raises
    ------
    TypeError
        If it is not an ordered sequence.
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


def place_columns(
    titles: Sequence[Any] | NDArray[Any], names: NDArray[Any], word: str = "column"
) -> NDArray[np.intp]:
    """Return the place of every title among the names of all classes, or items.

    Raises
    ------
    ValueError
        If a title is not among them.
    """
    place = {name: j for j, name in enumerate(scalars(names))}
    values = scalars(titles) if isinstance(titles, np.ndarray) else titles
    strange = [repr(title) for title in values if title not in place]
    if strange and word == "column":
        raise ValueError(f"{naming(word, strange)} not in `classes`. Add or rename them.")
    if strange:
        raise ValueError(
            f"{naming(word, strange)} of the table not in `{word}s`. Add them to `{word}s` or "
            "drop their rows."
        )
    return np.array([place[title] for title in values], dtype=np.intp)
