"""Answers of several annotators: kept as they were given, and elected to candidates by a rule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from sys import intern
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from appellate.candidates.containers import open_labels, table_columns
from appellate.candidates.names import (
    Names,
    distinct_names,
    encode_labels,
    factorize,
    is_missing,
    name_array,
    naming,
    object_array,
    place_columns,
    scalars,
)

Indices = NDArray[np.int32]
COLLECTIONS = (list, tuple, set, frozenset, np.ndarray)
_COLUMNS = ("rows", "people", "labels", "weights", "sizes")
NAMED_SETS = (list, set, np.ndarray)  # in a cell; tuples and frozensets are labels


def choose_rows(n: int, rows: Any) -> NDArray[np.intp]:
    """Return the numbers of the rows of a slice, of an array of numbers or of a mask."""
    if isinstance(rows, tuple):  # scikit-learn asks for [rows, ...]
        if len(rows) != 2 or rows[1] is not Ellipsis:
            raise IndexError("only rows can be selected; use `matrix` for entries.")
        rows = rows[0]
    return np.atleast_1d(np.arange(n)[rows])


@dataclass(frozen=True, eq=False, repr=False)
class Answers:
    """Who gave which answer about which row.

    An answer is a row, an annotator and a label, as three whole numbers; one after the other they
    are sorted by row. A model is one more annotator (`add`). Rows may be without an answer.

    Attributes
    ----------
    rows, people, labels : ndarray of int, shape (A,)
        Row, annotator and class of every answer.
    n_rows : int
        Number of rows, n.
    class_names : ndarray, shape (l,)
        The labels that could be given.
    person_names : ndarray, shape (p,), or None
        Who the annotators are; None if nobody knows: all answers are then those of annotator 0.
    weights : ndarray of float, shape (A,), or None
        How often the answer was given, or how probable it is to a model; None: once each.
    sizes : ndarray of int, shape (A,), or None
        If annotators may name several labels of a row: how many this one was named among.
        None: every answer is one label.
    ids : ndarray, shape (n,), or None
        What the rows are called.

    Examples
    --------
    >>> from appellate.candidates import as_answers
    >>> answers = as_answers([["cat", "cat", "dog"], ["dog", None, None]])
    >>> answers
    Answers(2 rows, 4 answers of 3 annotators, 2 classes)
    >>> answers.votes()
    array([[2., 1.],
           [0., 1.]])
    >>> answers.add("model", [[0.9, 0.1], [0.2, 0.8]]).votes()
    array([[2.9, 1.1],
           [0.2, 1.8]])
    """

    rows: Indices
    people: Indices
    labels: Indices
    n_rows: int
    class_names: NDArray[Any]
    person_names: NDArray[Any] | None = None
    weights: NDArray[np.float64] | None = None
    sizes: Indices | None = None
    ids: NDArray[Any] | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.n_rows

    def __repr__(self) -> str:
        """Say how many rows, answers, annotators and classes there are."""
        who = "" if self.person_names is None else f" of {len(self.person_names)} annotators"
        return (
            f"Answers({self.n_rows} rows, {len(self.rows)} answers{who}, "
            f"{len(self.class_names)} classes)"
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and classes, (n, l)."""
        return self.n_rows, len(self.class_names)

    @property
    def n_people(self) -> int:
        """Number of annotators; one if nobody knows who they are."""
        return 1 if self.person_names is None else len(self.person_names)

    def __getitem__(self, rows: Any) -> Answers:
        """Return the answers on a slice, an array of row numbers or a mask of rows."""
        chosen = choose_rows(self.n_rows, rows)
        starts = np.searchsorted(self.rows, np.arange(self.n_rows + 1))
        lengths = np.diff(starts)[chosen]
        shift = np.repeat(starts[chosen] - np.cumsum(lengths) + lengths, lengths)
        kept = np.arange(len(shift)) + shift
        return replace(
            self._take(kept),
            rows=np.repeat(np.arange(len(chosen), dtype=np.int32), lengths),
            n_rows=len(chosen),
            ids=None if self.ids is None else self.ids[chosen],
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return which labels were given, (n, l), so that scikit-learn can look at it."""
        return np.array(self.votes() > 0, dtype=dtype)

    def _take(self, kept: NDArray[Any]) -> Answers:
        parts: dict[str, Any] = {
            name: None if (values := getattr(self, name)) is None else values[kept]
            for name in _COLUMNS
        }
        return replace(self, **parts)

    def votes(self) -> NDArray[np.float64]:
        """Count the answers for every label of every row, (n, l)."""
        n, l = self.shape
        cells = self.rows.astype(np.int64) * l + self.labels
        return np.bincount(cells, self.weights, minlength=n * l).reshape(n, l).astype(float)

    def table(self) -> NDArray[np.int32]:
        """Return one column per annotator, (n, p): class numbers, -1 for an answer not given.

        If an annotator answered a row several times, it has the last answer.
        """
        out = np.full((self.n_rows, self.n_people), -1, dtype=np.int32)
        out[self.rows, self.people] = self.labels
        return out

    def add(self, person: Any, answers: Any) -> Answers:
        """Return the answers with those of one more annotator, for instance a model.

        Parameters
        ----------
        person : hashable
            Who it is.
        answers : array-like
            One label per row, missing if there is none; or an (n, l) matrix of
            probabilities of the classes, which become weights.
        """
        table = answers.to_numpy() if hasattr(answers, "columns") else np.asarray(answers)
        layout = "counts" if table.ndim == 2 else "labels"
        more = read_answers(table, layout, self.class_names, None, None, None)
        if len(more) != self.n_rows:
            raise ValueError(f"{person!r} answers {len(more)} rows, but there are {self.n_rows}.")
        known = [""] if self.person_names is None else scalars(self.person_names)
        if person in known:
            raise ValueError(f"{person!r} is already an annotator. Choose another name.")
        more = replace(more, people=more.people + np.int32(len(known)))
        both: dict[str, Any] = {}
        for name in _COLUMNS:
            parts = [(getattr(each, name), len(each.rows)) for each in (self, more)]
            if any(part is not None for part, _ in parts):
                both[name] = np.concatenate(
                    [np.ones(n, np.int32) if part is None else part for part, n in parts]
                )
        joined = replace(self, person_names=name_array([*known, person]), **both)
        return joined._take(np.lexsort((joined.people, joined.rows)))

    def rename(self, names: NDArray[Any]) -> Answers:
        """Return the same answers over all the classes of `names`, in their order."""
        columns = place_columns(self.class_names, names).astype(np.int32)
        return replace(self, labels=columns[self.labels], class_names=names)


def elect(answers: Answers, rule: str, items: Names) -> NDArray[np.bool_]:
    """Turn votes into candidates, (n, l), by ``"union"``, ``"votes:k"`` or ``"share:p"``.

    Raises
    ------
    ValueError
        If the rule is none of these, k no positive integer or p not in (0, 1]; if a row, or
        item, is left without a candidate.
    """
    votes, wanted = answers.votes(), ""
    kind, colon, text = rule.partition(":") if isinstance(rule, str) else ("", "", "")
    if rule != "union" and (kind not in ("votes", "share") or not colon):
        raise ValueError(f"unknown rule {rule!r}. Use 'union', 'votes:2' or 'share:0.8'.")
    try:
        threshold = Fraction(text or 0)
    except (ValueError, ZeroDivisionError):
        threshold = Fraction(-1)
    chosen = votes > 0
    if kind == "votes":
        if threshold < 1 or threshold.denominator > 1:
            raise ValueError(f"rule {rule!r}: k must be a positive integer, as in 'votes:2'.")
        chosen, wanted = votes >= int(threshold), str(threshold)
    elif kind == "share":
        if not 0 < threshold <= 1:
            raise ValueError(f"rule {rule!r}: p must be in (0, 1], as in 'share:0.8'.")
        # The fewest most-voted labels that reach the share, with all that tie with the last.
        share, descending = threshold.limit_denominator(10**6), -np.sort(-votes, axis=1)
        needed = votes.sum(axis=1, keepdims=True) * share.numerator  # whole: no rounding
        last = np.argmax(np.cumsum(descending, axis=1) * share.denominator >= needed, axis=1)
        chosen &= votes >= np.take_along_axis(descending, last[:, None], axis=1)
    refuse_empty(chosen, wanted, items)
    return np.asarray(chosen)


def read_answers(
    y: Any, layout: str, classes: Names, missing: Any, items: Any, separator: str | None
) -> Answers:
    """Read answers in one of the layouts of `as_answers`."""
    if isinstance(y, Answers):
        return y if classes is None else y.rename(classes)
    source, ids = open_labels(y)
    if layout == "counts":
        return _read_counts(source, classes, ids)
    people: Names = None
    weights: Names = None
    if layout == "long":
        roles = _find_roles(*table_columns(source))
        ids, rows = _factorize_all("item", roles["item"])
        if items is not None:
            found, ids = ids, distinct_names(items, "items")
            rows = place_columns(found, ids, "item")[rows]
        cells = roles["label"]
        who = np.zeros_like(rows)
        n = len(ids)
        where = np.arange(len(cells))  # in messages: the line of the table
        if "annotator" in roles:
            people, who = _factorize_all("annotator", roles["annotator"])
        if "weight" in roles:
            weights = check_weights(roles["weight"][:, None])[:, 0]
    else:
        columns, titles = [source], None
        if layout == "annotators":
            columns, titles = table_columns(source)
        elif not isinstance(source, np.ndarray):
            columns = [object_array(source)]
        cells, n = np.concatenate(columns), len(columns[0])
        who, rows = np.divmod(np.arange(len(cells)), n)
        where = rows
        people = np.arange(len(columns)) if titles is None else name_array(titles)
    lines, labels = np.arange(len(cells)), cells
    if cells.dtype == object or (separator is not None and cells.dtype.kind in "UT"):
        lines, several = unpack(cells.tolist(), separator, NAMED_SETS)
        labels = object_array(several)
    extra = list(missing) if isinstance(missing, COLLECTIONS) else [missing]
    if layout == "annotators" and missing is None and _abstains(cells, classes):
        extra = [-1]
    codes, names = encode_labels(labels, classes, where[lines], extra)
    if not len(names):
        raise ValueError("the table holds no label: every cell is missing.")
    # A table stores integers as floats as soon as one cell is empty.
    if classes is None and names.dtype.kind == "f" and (codes < 0).any():
        whole = names.astype(np.int64)
        names = whole if np.array_equal(whole, names) else names
    given = codes >= 0
    lines, codes = lines[given], codes[given]
    row, person, label = (part.astype(np.int32) for part in (rows[lines], who[lines], codes))
    weights = None if weights is None else weights[lines]
    answers = _join(Answers(row, person, label, n, names, people, weights, ids=ids), lines)
    return replace(answers, person_names=None) if layout == "labels" else answers


def _abstains(cells: NDArray[Any], classes: Names) -> bool:
    """Tell whether -1 is an abstention: a label matrix of Snorkel has whole numbers from -1 on.

    It is a label if it is among the classes, or if -1 and 1 are the only answers. Numbers may be
    stored as floats, which a missing cell makes of them.
    """
    if cells.dtype == object:
        values = [cell for cell in cells.tolist() if not is_missing(cell)]
        if not all(type(cell) in (int, float) for cell in values):
            return False
        cells = np.array(values)
    if cells.dtype.kind == "f":
        cells = cells[~np.isnan(cells)]
    if cells.dtype.kind not in "if" or not len(cells) or cells.min() != -1:
        return False
    if (cells % 1 != 0).any():
        return False
    if classes is not None:
        return -1 not in scalars(classes)
    return not np.isin(cells, (-1, 1)).all()


def _read_counts(source: Any, classes: Names, ids: Names) -> Answers:
    """Read how often each label was given to each row: one column per label, nobody named."""
    if getattr(source, "ndim", 2) != 2:
        raise ValueError(f"counts have shape {source.shape}; give rows and classes.")
    titles = None
    if sp.issparse(source):
        entries = sp.csr_array(source)
        entries.sum_duplicates()
        rows, labels = entries.tocoo().coords
        shape = entries.shape
        weights = check_weights(entries.data, np.stack([rows, labels]))
    else:
        columns, titles = table_columns(source)
        table = check_weights(np.stack(columns, axis=1))
        rows, labels = np.nonzero(table)
        shape = table.shape
        weights = table[rows, labels]
    if classes is not None and titles is None and len(classes) != shape[1]:
        raise ValueError(
            f"`classes` has {len(classes)} names, but the counts have {shape[1]} columns."
        )
    unnamed = np.arange(shape[1]) if classes is None else classes
    names = unnamed if titles is None else distinct_names(titles, "columns")
    rows, labels = rows.astype(np.int32), labels.astype(np.int32)
    answers = Answers(rows, 0 * rows, labels, shape[0], names, weights=weights, ids=ids)
    return answers if titles is None or classes is None else answers.rename(classes)


def check_weights(values: NDArray[Any], places: Names = None) -> NDArray[np.float64]:
    """Check numbers of votes, or weights, of a table, or of some places in it, (2, values)."""
    try:
        weights = values.astype(float)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "counts must be numbers. Count the answers first, or read them with "
            'as_candidates(answers, layout="annotators").'
        ) from error
    wrong = np.argwhere(~(np.isfinite(weights) & (weights >= 0)))
    if wrong.size:
        value = weights[tuple(wrong[0])]
        row, column = wrong[0] if places is None else places[:, wrong[0, 0]]
        raise ValueError(
            f"row {row}, column {column}: {value:g} is not a number of votes. If the "
            'table holds answers, read it with as_candidates(answers, layout="annotators").'
        )
    return weights


def _find_roles(columns: list[NDArray[Any]], titles: list[Any] | None) -> dict[str, NDArray[Any]]:
    """Find the columns item, label, annotator and weight, by title or else by position.

    Raises
    ------
    ValueError
        If it cannot be told which column is which.
    """
    names = ("item", "label", "annotator", "weight")
    named = {} if titles is None else dict(zip(titles, columns, strict=True))
    roles = {name: named[name] for name in names if name in named}
    if len(columns) - ("weight" in roles) in (2, 3):
        others = [c for i, c in enumerate(columns) if titles is None or titles[i] not in names]
        roles |= dict(zip([name for name in names if name not in roles], others, strict=False))
    if "item" not in roles or "label" not in roles:
        raise ValueError(
            f"the long table has {len(columns)} columns. It needs item, label and, optionally, "
            "annotator: give two or three columns, or columns of these names."
        )
    return roles


def _join(answers: Answers, lines: NDArray[np.intp]) -> Answers:
    """Sort answers by row and join repeated ones; `lines` are the cells that hold them.

    An annotator who repeats an answer gave it once; answers of unknown annotators add up.
    """
    several = len(np.unique(lines)) < len(lines)  # labels in a cell
    who: NDArray[Any] = answers.people
    known = answers.person_names is not None
    n_people = answers.n_people
    weights = answers.weights
    if several and not known:  # every line is somebody else's set
        who = lines
        n_people = int(lines.max()) + 1
        known = True
    shape = (answers.n_rows, n_people, len(answers.class_names))
    key = np.ravel_multi_index((answers.rows, who, answers.labels), shape)
    distinct, first, place, times = np.unique(
        key, return_index=True, return_inverse=True, return_counts=True
    )
    if weights is not None:
        weights = weights[first] if known else np.bincount(place, weights).astype(float)
    elif not known and (times > 1).any():
        weights = times.astype(float)
    sizes = None
    if several:  # all that a person named for a row
        _, place, times = np.unique(distinct // shape[2], return_inverse=True, return_counts=True)
        sizes = times.astype(np.int32)[place]
    return replace(answers._take(first), weights=weights, sizes=sizes)


def answers_of_sets(matrix: NDArray[np.bool_], class_names: NDArray[Any], ids: Names) -> Answers:
    """Take every candidate set as what one unknown annotator named."""
    rows, labels = (a.astype(np.int32) for a in np.nonzero(matrix))
    sizes = np.count_nonzero(matrix, axis=1).astype(np.int32)[rows]
    several = sizes if (sizes > 1).any() else None
    return Answers(rows, 0 * rows, labels, len(matrix), class_names, sizes=several, ids=ids)


def unpack(
    cells: list[Any], separator: str | None, collections: tuple[type[Any], ...]
) -> tuple[NDArray[np.intp], list[Any]]:
    """Return every label and the cell that holds it; a blank text holds none.

    A cell may name several: in one of the collections, or in a text with separators.
    """
    named: list[list[Any]] = []
    for cell in cells:
        if isinstance(cell, str) and not cell.strip():
            named.append([])
        elif isinstance(cell, str) and separator is not None:
            named.append([intern(part.strip()) for part in cell.split(separator)])
        elif isinstance(cell, collections):
            named.append(cell.tolist() if isinstance(cell, np.ndarray) else list(cell))
        else:
            named.append([cell])
    if len(set(map(type, chain.from_iterable(named)))) > 1:
        for i, cell in enumerate(cells):
            if isinstance(cell, (set, frozenset)):  # whose order changes with every start
                named[i].sort(key=repr)
    owner = np.repeat(np.arange(len(cells)), [len(labels) for labels in named])
    return owner, list(chain.from_iterable(named))


def _factorize_all(word: str, values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the distinct values in order of first appearance, and every value's place."""
    found, codes = factorize(scalars(values))
    gone = [i for i, value in enumerate(found) if is_missing(value)]
    if gone:
        lines = np.flatnonzero(np.isin(codes, gone))
        raise ValueError(f"{naming('row', lines)}: no {word}. Fill the cells or drop the rows.")
    return name_array(found), codes


def refuse_empty(matrix: NDArray[np.bool_], votes: str = "", items: Names = None) -> None:
    """Raise ValueError that names the rows, or items, without a candidate."""
    empty = np.flatnonzero(~matrix.any(axis=1))
    if not empty.size:
        return
    where = naming("row", empty)
    if items is not None:
        where = naming("item", map(repr, scalars(items[empty])))
    advice = ". Every row needs at least one; drop the rows or give them all classes."
    if votes:
        advice = (
            f", as no label has {votes} votes. Lower k, use the rule 'union', or drop the rows."
        )
    raise ValueError(f"{where}: no candidate{advice}")
