"""Read candidate sets and answers in all their layouts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, Literal, get_args

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from appellate.candidates.answers import (
    COLLECTIONS,
    Answers,
    answers_of_sets,
    elect,
    read_answers,
    refuse_empty,
    unpack,
)
from appellate.candidates.containers import open_labels, plain_column, table_columns
from appellate.candidates.names import (
    Names,
    distinct_names,
    encode_labels,
    is_missing,
    place_columns,
    scalars,
)
from appellate.candidates.sets import CandidateSets, name_rows

Layout = Literal[
    "auto", "indicator", "sets", "labels", "complementary", "annotators", "long", "counts"
]

ANSWERS = ("annotators", "long", "counts")
LAYOUTS = (
    'as_candidates(y, layout="annotators") reads one column per annotator, '
    'as_candidates(y, layout="long") reads columns item, label[, annotator], '
    'as_candidates(y, layout="counts") reads one column of counts per label.'
)


def as_candidates(
    y: Any,
    *,
    classes: Sequence[Any] | NDArray[Any] | None = None,
    layout: Layout = "auto",
    separator: str | None = "|",
    rule: str = "union",
    missing: Any = None,
    items: Sequence[Any] | NDArray[Any] | None = None,
) -> CandidateSets:
    """Read candidate labels from any common form.

    Parameters
    ----------
    y : object
        One of

        - a 0/1 matrix (n, l): numpy, scipy sparse or a data frame, whose columns name the
          classes; its rows are candidate sets, not multi-label targets;
        - a sequence or series of lists, tuples, sets or arrays of labels;
        - a sequence or series of strings such as ``"anna|bob"``;
        - a sequence or series of labels, one per row;
        - a table of answers, see `layout`, or `Answers`;
        - `CandidateSets`, returned as they are.

        Data frames and series may come from any eager library that narwhals knows.
    classes : sequence, default=None
        All class names, in order; some may be no row's candidate. They name the columns of a
        matrix that has no names. By default the labels that occur, sorted if they can be
        sorted and otherwise in order of appearance.
    layout : str, default="auto"
        How to read `y`: ``"indicator"`` (0/1 matrix), ``"sets"`` (collections or delimited
        strings), ``"labels"`` (one label per row; strings are not split), ``"complementary"``
        (one label or several that a row does *not* have, in any of these forms),
        ``"annotators"`` (one column per annotator; an empty cell is an answer not given),
        ``"long"`` (one answer per row, in columns item, label and, optionally, annotator, found
        by these names or else by position) or ``"counts"`` (one column per label: how often it
        was given). ``"auto"`` finds out, but for the tables of answers and complementary
        labels.
    separator : str or None, default="|"
        What parts the labels in a string; blanks around a label are dropped. With None a
        string is one label.
    rule : str, default="union"
        Which answers become candidates: ``"union"`` all; ``"votes:k"`` those with at least k
        votes; ``"share:p"`` the fewest most-voted labels that together have the share p of
        the row's votes, with all that tie with the last. In a long table an annotator who
        repeats an answer has one vote; without annotators every row is a vote. The rule only
        says what is called a candidate: the answers are kept.
    missing : object or list, default=None
        Value, or list of values, that marks an answer not given, in addition to None, NaN, NA and
        blank strings; for instance -1.
    items : sequence, default=None
        The items of a long table in the order of the rows of X; by default in order of first
        appearance.

    Returns
    -------
    CandidateSets
        Matrix, class names and row ids: the index of a pandas object unless it merely counts
        the rows, or the items of a long table. Made of answers, they keep them in `answers`.

    Raises
    ------
    ValueError, TypeError
        If `y` cannot be read, with the rows or columns concerned and what to do.

    Notes
    -----
    Time and memory grow with n l for a matrix and with the number of labels otherwise; the
    result takes n l bytes.

    Examples
    --------
    >>> import numpy as np
    >>> as_candidates(["anna|bob", "bob", "anna|carl"]).matrix.astype(int)
    array([[1, 1, 0],
           [0, 1, 0],
           [1, 0, 1]])
    >>> as_candidates([{3, 7}, {5}], classes=[3, 5, 7, 9]).shape
    (2, 4)
    >>> answers = [["cat", "cat", "dog"], ["dog", None, "cow"]]
    >>> as_candidates(answers, layout="annotators", rule="share:0.5").sets()
    [('cat',), ('cow', 'dog')]
    """
    asked = (layout, separator, rule) != ("auto", "|", "union") or any(
        each is not None for each in (classes, missing, items)
    )
    boolean = type(y) is np.ndarray and y.dtype == bool and y.ndim == 2 and y.shape[1] > 0
    if boolean and not asked and y.any(axis=1).all():
        return CandidateSets(y.copy(order="C"), np.arange(y.shape[1]))  # it is that already
    names = _check_options(layout, separator, items, classes)
    answered = isinstance(y, Answers) or layout in ANSWERS
    if not answered and (rule != "union" or missing is not None):
        option = f"rule={rule!r}" if rule != "union" else f"missing={missing!r}"
        raise ValueError(
            f"{option} is for tables of answers, not for layout={layout!r}. {LAYOUTS}"
        )
    if isinstance(y, CandidateSets) and layout not in ("auto", "indicator", "complementary"):
        raise TypeError(f"y already is CandidateSets; it has no layout={layout!r}.")
    if answered:
        answers = read_answers(y, layout, names, missing, items, None)
        matrix = elect(answers, rule, answers.ids if layout == "long" else None)
        return CandidateSets(matrix, answers.class_names, answers.ids, answers)
    sets = _read(y, layout, separator, names)
    if layout == "complementary":
        sets = CandidateSets(~sets.matrix, sets.class_names, sets.ids)
    refuse_empty(sets.matrix)
    return sets


def as_answers(
    y: Any,
    *,
    layout: Layout = "annotators",
    classes: Sequence[Any] | NDArray[Any] | None = None,
    separator: str | None = None,
    missing: Any = None,
    items: Sequence[Any] | NDArray[Any] | None = None,
) -> Answers:
    """Read who gave which answer about which row; rows without any answer are allowed.

    Parameters
    ----------
    y : object
        A table of answers, see `layout`; or anything that `as_candidates` reads: a label a
        row is the answer of an unknown annotator, a candidate set is what one named.
    layout : str, default="annotators"
        One column per annotator, model or labelling function. In a table of whole numbers from -1
        on, such as Snorkel's label matrix L, -1 is an abstention; give ``classes=[-1, 0, 1]``
        if it is a label. ``"long"``: one answer per row, a column ``weight`` may say how
        often it was given; ``"counts"``: one column per label, of whole numbers or weights,
        scipy sparse matrices too; ``"labels"``: one label per row, which may be missing.
        ``"auto"`` finds out: frames with columns item and label are long, those of text are
        of annotators, all else is read by `as_candidates`.
    classes, missing, items
        As in `as_candidates`; `items` may name rows that nobody answered.
    separator : str, default=None
        Between the labels of a cell if annotators may name several; a cell may also be a list
        or a set of labels.

    Returns
    -------
    Answers
        Whole numbers, not Python objects.

    Examples
    --------
    >>> as_answers([("x", "cat", "ann"), ("x", "dog", "bob"), ("y", "dog", "bob")], layout="long")
    Answers(2 rows, 3 answers of 2 annotators, 2 classes)
    >>> as_answers([[9, 1, 0], [0, 0, 0]], layout="counts").votes()
    array([[9., 1., 0.],
           [0., 0., 0.]])
    >>> as_answers([["cat|dog", "cat"], ["dog", None]], separator="|").sizes
    array([2, 2, 1, 1], dtype=int32)
    >>> as_answers([[0, -1, 0], [-1, -1, 1], [-1, 1, -1]])  # Snorkel's L
    Answers(3 rows, 4 answers of 3 annotators, 2 classes)
    """
    names = _check_options(layout, separator, items, classes)
    if not isinstance(y, CandidateSets):
        with_gaps = layout == "labels"
        if layout == "auto" and not isinstance(y, Answers):
            layout = _guess(open_labels(y)[0], table="annotators")
        if isinstance(y, Answers) or layout in ANSWERS or with_gaps:
            return read_answers(y, layout, names, missing, items, separator)
    sets = _read(y, layout, separator or "|", names)
    return sets.answers or answers_of_sets(sets.matrix, sets.class_names, sets.ids)


def _check_options(layout: str, separator: Any, items: Any, classes: Any) -> Names:
    """Check what all layouts have in common, and return the class names, if there are any."""
    if layout not in get_args(Layout):
        words = ", ".join(map(repr, get_args(Layout)))
        raise ValueError(f"unknown layout {layout!r}. Use one of {words}.")
    if separator is not None and (not isinstance(separator, str) or not separator):
        raise ValueError(
            f"separator {separator!r} is not a string. Use '|', for instance, or None."
        )
    if layout != "long" and items is not None:
        raise ValueError(f'`items` is for layout="long", not for layout={layout!r}.')
    return None if classes is None else distinct_names(classes, "classes")


def _read(y: Any, layout: str, separator: str | None, names: Names) -> CandidateSets:
    """Read candidate sets over the classes of `names`, or else over those that occur."""
    if isinstance(y, CandidateSets):
        return _arrange(y, names)
    source, ids = open_labels(y)
    if layout in ("auto", "complementary"):
        layout = _guess(source)
    if layout == "indicator":
        matrix, titles = _read_indicator(source, names)
        return _arrange(CandidateSets(matrix, titles, ids), names)
    if layout == "sets":
        rows, columns, titles = _read_collections(source, separator, names)
    else:
        rows, columns, titles = _read_labels(source, names)
    matrix = np.zeros((len(source), len(titles)), dtype=bool)
    matrix[rows, columns] = True
    return CandidateSets(matrix, titles, ids)


def _arrange(sets: CandidateSets, names: Names) -> CandidateSets:
    """Bring the columns into the order of the names, with empty columns for new ones."""
    if names is None or names is sets.class_names:
        return sets
    matrix = np.zeros((len(sets), len(names)), dtype=bool)
    matrix[:, place_columns(sets.class_names, names)] = sets.matrix
    answers = None if sets.answers is None else sets.answers.rename(names)
    return CandidateSets(matrix, names, sets.ids, answers)


def _guess(source: Any, table: Layout | None = None) -> Layout:
    """Find out how y is laid out, or say why that is not possible; `table`: what tables are."""
    framed = isinstance(source, nw.DataFrame)
    if framed or sp.issparse(source) or (isinstance(source, np.ndarray) and source.ndim == 2):
        named = framed and {"item", "label"} <= set(source.columns)
        columns = map(plain_column, source.iter_columns()) if framed else [source]
        if not named and all(column.dtype.kind in "biuf" for column in columns):
            return "indicator"
        if table is not None:
            return "long" if named else table
        one = " Or give one column of it." if framed else ""
        raise ValueError(f"y is a table, but not of 0 and 1. Say how to read it: {LAYOUTS}{one}")
    if isinstance(source, np.ndarray) and source.dtype.kind not in "OUT":
        return "labels"
    kinds = set(map(type, source))
    if all(issubclass(kind, str) for kind in kinds):
        return "sets"
    if not any(issubclass(kind, COLLECTIONS) for kind in kinds):
        return "labels"
    rowlike = all(issubclass(kind, (list, tuple, np.ndarray)) for kind in kinds)
    if (
        rowlike
        and {len(row) for row in source} == {len(source[0]) or -1}
        and all(
            isinstance(entry, (int, float, np.number, np.bool_)) and 0 <= entry <= 1
            for entry in chain.from_iterable(source)
        )
    ):
        raise ValueError(
            "y is a list of equally long lists of numbers from 0 to 1: a matrix or lists of "
            'class numbers? Pass np.asarray(list(y)) or layout="indicator" for a 0/1 matrix, '
            'layout="sets" for lists of class numbers.'
        )
    return "sets"


def _read_indicator(source: Any, names: Names) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Return the matrix, and what its columns are called."""
    if isinstance(source, nw.DataFrame):
        titles = distinct_names(source.columns, "columns")
        matrix = np.empty(source.shape, dtype=bool)
        for j, column in enumerate(source.iter_columns()):
            matrix[:, j] = _ones(plain_column(column)[:, None], titles[j:])[:, 0]
        return matrix, titles
    if isinstance(source, list) or (source.ndim == 1 and not sp.issparse(source)):
        source = np.stack(table_columns(source)[0], axis=1)
    if source.ndim != 2 or not source.shape[1]:
        raise ValueError(f"y has shape {source.shape}; a 0/1 matrix has rows and classes.")
    count = source.shape[1]
    if names is not None and len(names) != count:
        raise ValueError(f"`classes` has {len(names)} names, but the matrix has {count} columns.")
    titles = np.arange(count) if names is None else names
    if sp.issparse(source):
        entries = source.tocoo()
        plain = np.isin(entries.data, (0, 1)).all()  # not larger then than the result
        source = (entries.astype(np.int8) if plain else entries).toarray()
    return np.ascontiguousarray(_ones(source, titles)), titles


def _ones(block: NDArray[Any], titles: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where a block of a matrix is 1; anything but 0 elsewhere is refused."""
    if block.dtype.kind not in "biuf":
        block = block.astype(object)
        block[np.frompyfunc(is_missing, 1, 1)(block).astype(bool)] = np.nan
    ones = np.asarray(block == 1)
    rows, columns = np.nonzero(~(ones | (block == 0)))
    if not rows.size:
        return ones
    values = block[rows, columns]
    unknown = values != values
    if unknown.any():
        raise ValueError(
            f"Input y contains NaN in {name_rows(rows[unknown])}. Fill the entries with 0 or 1 "
            f"or drop the rows. If the table holds answers: {LAYOUTS}"
        )
    raise ValueError(
        f"row {rows[0]}, column {scalars(titles)[columns[0]]!r}: {values.tolist()[0]!r} is "
        "neither 0 nor 1. Pass y > 0 to make candidates of counts or confidences. "
        f"If the table holds answers: {LAYOUTS} Add missing=-1 if -1 means no answer."
    )


def _read_collections(source: Any, separator: str | None, classes: Names) -> Any:
    """Return row and column of every candidate, and the class names."""
    if isinstance(source, nw.DataFrame) or sp.issparse(source):
        raise TypeError('layout="sets" takes one column. Select it, as in y["candidates"].')
    rows = scalars(source) if isinstance(source, np.ndarray) else source
    kinds = set(map(type, rows))
    if not any(all(issubclass(kind, one) for kind in kinds) for one in (str, COLLECTIONS)):
        _refuse_missing([i for i, row in enumerate(rows) if is_missing(row)])
        first = {type(row).__name__: i for i, row in reversed(list(enumerate(rows)))}
        found = [f"row {i} is a {kind}" for kind, i in sorted(first.items(), key=itemgetter(1))]
        raise TypeError(
            f"{', '.join(found)}. Make every row a list of labels, or every row a string."
        )
    owner, labels = unpack(rows, separator, COLLECTIONS)
    codes, names = encode_labels(labels, classes, owner)
    if (codes < 0).any():
        raise ValueError(
            f"{name_rows(owner[codes < 0])}: an empty label (None, NaN or nothing between "
            "two separators, as in 'anna||bob'). Correct the rows."
        )
    if classes is None and names.dtype.kind == "U" and _is_object(source):
        names = names.astype(object)  # as np.unique does
    return owner, codes, names


def _read_labels(source: Any, classes: Names) -> Any:
    """Return row and column of every label, and the class names."""
    if not isinstance(source, list) and len(source.shape) != 1:
        raise ValueError('layout="labels" takes one label per row. Select one column of y.')
    labels, rows = source, np.arange(len(source))
    if isinstance(labels, list) or _is_object(labels):  # numbers, with floats among them?
        kinds, numbers = set(map(type, labels)), (int, float, np.integer, np.floating, np.bool_)
        if all(issubclass(k, numbers) for k in kinds) and kinds & {float, np.float64}:
            labels = np.array(labels, dtype=float)
    if isinstance(labels, np.ndarray) and labels.dtype.kind == "f":
        _refuse_missing(np.flatnonzero(np.isnan(labels)))
        infinite = np.flatnonzero(np.isinf(labels))
        if infinite.size:
            raise ValueError(f"Input y contains infinity in {name_rows(infinite)}. Drop the rows.")
        broken = np.flatnonzero(labels != np.trunc(labels))
        if broken.size:
            raise ValueError(
                f"Unknown label type: continuous. {name_rows(broken)}: numbers such as "
                f"{labels[broken[0]]} are not classes. Bin the values, or write classes as text."
            )
    codes, names = encode_labels(labels, classes, rows)
    _refuse_missing(np.flatnonzero(codes < 0))
    return rows, codes, names


def _is_object(source: Any) -> bool:
    return isinstance(source, np.ndarray) and source.dtype == object


def _refuse_missing(rows: Sequence[int] | NDArray[np.intp]) -> None:
    if len(rows):
        raise ValueError(
            f"Input y contains NaN or another missing label in {name_rows(rows)}. "
            "Drop the rows or give them all classes."
        )
