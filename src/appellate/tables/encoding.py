"""Columns to learn from: as a data frame, as numbers, and what each contributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from appellate._text import import_extra
from appellate.notes import tell
from appellate.tables import cells
from appellate.tables.cells import Style, TableError, list_rows, name_some
from appellate.tables.reading import Table, read_table
from appellate.tables.roles import Roles
from appellate.tables.vectors import LONGEST, TellProgress, report_progress

FeatureKind = Literal["number", "category", "date", "text", "picture"]
FitColumns = Callable[[NDArray[np.intp]], Callable[[NDArray[Any]], NDArray[Any]]]

CATEGORIES = 40  # values of a column from which on they are compared as texts
_TERMS = 20_000  # words and sequences of letters, the most frequent ones
_DRAWN = 800  # rows of a larger table by which columns are weighed
_SHUFFLES = 3
_TOGETHER = 4_000  # rows of shuffled tables that are predicted in one call
_COLUMNS = 300  # weighing more would take minutes
_HASHED = {"alternate_sign": False, "norm": None, "strip_accents": "unicode", "dtype": np.float32}
_VECTORIZERS = (  # words and letters have no vocabulary, which would be most of a saved model
    HashingVectorizer(n_features=2**15, ngram_range=(1, 2), token_pattern=r"\b\w+\b", **_HASHED),
    HashingVectorizer(n_features=2**14, analyzer="char_wb", ngram_range=(3, 4), **_HASHED),
)
_BLOCK = 2_000  # texts that are counted at a time
_LEARNED = 20_000  # texts that the reduction is learned from
_CELL = {"number": 3, "category": 15, "date": 60}  # costs as much as so many letters of prose
_LEARNING, _REDUCING = 1.1, 0.1  # of a letter, beside counting it
_heard: ContextVar[Callable[[float], object]] = ContextVar("heard", default=lambda letters: None)


@dataclass(frozen=True)
class ColumnReading:
    """How the cells of a column are read: found when a model is fitted, and kept for new rows.

    Attributes
    ----------
    kind : {"number", "category", "date", "text"}
        What the column holds.
    decimal : {".", ",", "1,234", "1.234"} or None
        How numbers are written, see `appellate.tables.cells.numbers`; None if no cell shows it.
    format : str or None
        How dates are written, see `appellate.tables.cells.date_format`.
    categories : tuple of str or None
        The categories; None if there are too many to tell new ones.

    Examples
    --------
    >>> ColumnReading("date", format="%d/%m/%Y").to_dict()
    {'format': '%d/%m/%Y'}
    """

    kind: FeatureKind
    decimal: Style | None = None
    format: str | None = None
    categories: tuple[str, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return what is known, but for the kind, in JSON's types."""
        found = {"decimal": self.decimal, "format": self.format, "categories": self.categories}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in found.items()
            if value is not None
        }

    @classmethod
    def from_dict(cls, known: Mapping[str, Any]) -> ColumnReading:
        """Read what `to_dict` wrote, with the kind next to it.

        Raises
        ------
        ValueError
            If it is something else.
        """
        decimal, format, categories = (known.get(n) for n in ("decimal", "format", "categories"))
        texts = categories is None or (
            isinstance(categories, list) and all(isinstance(each, str) for each in categories)
        )
        if not texts or decimal not in (None, ".", ",", *cells.GROUPS):
            raise ValueError("neither categories nor a decimal mark")
        if format not in (None, *cells.DATE_FORMATS):
            raise ValueError("not a format of dates")
        kind: FeatureKind = known["kind"]
        return cls(kind, decimal, format, None if categories is None else tuple(categories))


def find_column_readings(
    table: Table,
    roles: Roles,
    *,
    rows: NDArray[np.intp] | None = None,
    notes: list[str] | None = None,
) -> dict[str, ColumnReading]:
    """Find out how the cells of the columns to learn from are read.

    Parameters
    ----------
    table : Table
        The user's.
    roles : Roles
        With `features` and `text`.
    rows : ndarray of int, default=None
        Rows that are learned from; all by default.
    notes : list of str, default=None
        Gets what could be read in another way.

    Returns
    -------
    dict of str to ColumnReading
        By column; none for a column of vectors.

    Examples
    --------
    >>> from appellate.tables import find_roles, read_table
    >>> table = read_table({"day": ["31/12/2023", "01/02/2024"], "y": ["a|b", "a"]})
    >>> find_column_readings(table, find_roles(table))["day"].format
    '%d/%m/%Y'
    """
    words, found = _missing_words(roles), dict[str, ColumnReading]()
    for name in (*roles.features, *roles.text):
        whole = table.data.column(name)
        column = whole if rows is None else whole.take(pa.array(rows))
        if name in roles.text:
            found[name] = ColumnReading("text")
            continue
        if pa.types.is_nested(column.type):
            continue
        if cells.numbers(column, table.style(name), words) is not None:
            style = cells.number_style(column, table.style(name))
            shared: Style | None = "," if table.decimal == "," else None
            found[name] = ColumnReading("number", decimal=style or shared)
            continue
        form = cells.date_format(whole) or cells.date_format(column)
        if form is not None:
            found[name] = ColumnReading("date", format=form)
            if notes is not None and cells.is_ambiguous(column, form):
                notes.append(
                    f"dates of {name_some([name])} fit month/day and day/month; they are read "
                    "month first. If that is wrong, write them as year-month-day."
                )
            continue
        distinct = _without(cells.texts(column), words).unique().drop_null()
        few = len(distinct) < CATEGORIES
        categories = tuple(sorted(distinct.to_pylist())) if few else None
        found[name] = ColumnReading("category", categories=categories)
    return found


def _missing_words(roles: Roles) -> list[str]:
    """Return a marker of a missing label that is not a number, since features may be numbers."""
    return [mark for mark in roles.missing if cells.as_number(mark) is None]


def _without(texts: Any, words: Sequence[str]) -> Any:
    return pc.if_else(pc.is_in(texts, pa.array(words)), None, texts) if words else texts


def features(
    table: Table,
    roles: Roles,
    *,
    rows: NDArray[np.intp] | None = None,
    readings: Mapping[str, ColumnReading] | None = None,
    largest: float = np.inf,
    notes: list[str] | None = None,
) -> Any:
    """Return the columns to learn from as a data frame, ready for `make_encoder`.

    Parameters
    ----------
    table : Table
        The user's.
    roles : Roles
        With `features` and `text`.
    rows : ndarray of int, default=None
        Rows to take, such as `Labels.first` of a long table; all by default.
    readings : mapping of str to ColumnReading, default=None
        How the columns were read when a model was fitted, see `find_column_readings`: every cell
        is then read by itself, whatever the others are, and is missing if it cannot be read. By
        default this is found from the cells.
    largest : float, default=inf
        Numbers of this size and more are refused.
    notes : list of str, default=None
        Gets what could not be read, and categories that `readings` do not have.

    Returns
    -------
    pandas.DataFrame
        Numbers as float64 with NaN, dates as datetimes, all else as strings.

    Raises
    ------
    TableError
        If no column is left to learn from, or a cell is not what it should be.

    Examples
    --------
    >>> from appellate.tables import feature_kinds, features, find_roles, read_table
    >>> columns = {"w": ["1.5", "", "2"], "site": ["n", "s", "n"], "y": ["a|b", "a", "b"]}
    >>> table = read_table(columns)
    >>> feature_kinds(features(table, find_roles(table)))
    {'w': 'number', 'site': 'category'}
    """
    names = (*roles.features, *roles.text)
    if not names:
        why = "; ".join(f"{name_some([n])}: {w}" for n, w in list(roles.ignore.items())[:5])
        raise TableError(
            f"{table.source} has no column to learn from{f' ({why})' if why else ''}. Name "
            "columns with features=, or give embeddings=."
        )
    taken = np.arange(len(table)) if rows is None else rows
    if readings is None:
        readings = find_column_readings(table, roles, rows=rows)
    words, notes = _missing_words(roles), [] if notes is None else notes
    columns, known = dict[str, Any](), {*table.names}
    for name in names:
        (title,) = [name] if name in known else table.find([name], "features")
        column = table.data.column(title).take(pa.array(taken))
        reading = readings.get(name)
        if reading is None:
            matrix = _vectors(column)
            if matrix is None:
                raise TableError(
                    f"{table.where(title)}: not a list of numbers of one length in every row. "
                    "Correct it, or name the column with ignore=."
                )
            columns |= {f"{title}_{j}": each for j, each in enumerate(matrix.T)}
        else:
            read, wrong, why = _read_column(table, column, reading, words)
            columns[title] = read
            at = np.flatnonzero(wrong)
            if len(at):
                cell = name_some([cells.texts(column.slice(at[0], 1))[0].as_py()])
                said = why.format(example=f"e.g. {cell} in {list_rows(taken[at[:1]])}")
                notes.append(f"{table.where(title)}: {len(at)} of {len(taken)} rows {said}.")
    frame = pa.table(columns).to_pandas()
    for title, numbers in frame.select_dtypes("number").items():
        beyond = np.flatnonzero(np.abs(numbers.to_numpy()) >= largest)
        if len(beyond):
            infinite = np.isinf(numbers[beyond[0]])
            raise TableError(
                f"{table.where(title, taken[beyond[:1]])}: "
                f"{'an infinite number' if infinite else 'a number too large to compute with'}. "
                "Correct it, leave the cell empty, or name the column with ignore=."
            )
    return frame


def _vectors(column: Any) -> NDArray[np.float64] | None:
    """Return lists of numbers of one length as a matrix; None if the column holds others."""
    try:
        matrix = np.array(column.to_pylist(), dtype=np.float64)
    except (ValueError, TypeError):
        return None
    return matrix if matrix.ndim == 2 and pa.types.is_nested(column.type) else None


def _read_column(
    table: Table, column: Any, reading: ColumnReading, words: Sequence[str]
) -> tuple[Any, NDArray[np.bool_], str]:
    """Read the cells of a column, and say which cannot be read or are new, and what follows."""
    if reading.kind == "number":
        said = table.options.get("decimal")
        style: Style | None = "1,234" if said == "." else said or reading.decimal
        style = "1.234" if said == "," and reading.decimal == "1.234" else style
        by_commas = table.kind == "csv" and table.delimiter == ","
        values, wrong = cells.read_numbers(column, style, words, by_commas=by_commas)
        hint = "" if said else ". If the decimal mark differs, name it with decimal="
        why = f"hold no number that can be read, {{example}}; they count as empty{hint}"
        return values, wrong, why
    texts = _without(cells.texts(column), words)
    filled = texts.is_valid().to_numpy(zero_copy_only=False)
    if reading.kind == "date":
        form = reading.format or cells.ISO
        moments = cells.read_dates(column if not cells.is_text(column.type) else texts, form)
        example = "2023-12-31" if form == cells.ISO else f"{datetime(2023, 12, 31):{form}}"
        wrong = filled & moments.is_null().to_numpy(zero_copy_only=False)
        why = f"hold no date such as {example}, {{example}}; they count as empty"
        return moments, wrong, why
    if reading.kind == "text":
        nothing = np.zeros(len(texts), dtype=bool)
        return pc.utf8_slice_codeunits(texts.fill_null(""), 0, LONGEST), nothing, ""
    if reading.categories is None:
        return texts, np.zeros(len(texts), dtype=bool), ""
    texts = cells.as_known(texts, reading.categories)
    same = pc.is_in(texts, pa.array(reading.categories, pa.string()))
    new = filled & ~same.to_numpy(zero_copy_only=False)
    why = "hold a category that the model never saw, {example}; the column says nothing of them"
    return texts, new, why


def feature_kinds(frame: Any, text: Sequence[str] = ()) -> dict[str, FeatureKind]:
    """Say what the columns of `features` are: number, date, text or category.

    Parameters
    ----------
    frame : data frame
        What `features` returned.
    text : sequence of str, default=()
        Columns that hold text.

    Returns
    -------
    dict
        The kind of every column.

    Examples
    --------
    >>> import pandas as pd
    >>> feature_kinds(pd.DataFrame({"weight": [1.5, 2.0], "colour": ["red", "blue"]}))
    {'weight': 'number', 'colour': 'category'}
    """
    found: dict[str, FeatureKind] = {}
    for name, dtype in frame.dtypes.items():
        kind: FeatureKind = {"f": "number", "M": "date"}.get(dtype.kind, "category")  # type: ignore[assignment]
        found[str(name)] = "text" if name in text else kind
    return found


def make_encoder(
    frame: Any,
    *,
    text: Sequence[str] = (),
    vectors: Mapping[str, Sequence[str]] | None = None,
    n_components: int = 100,
    random_state: Any = 0,
    readings: Mapping[str, ColumnReading] | None = None,
    missing: Sequence[str] = (),
) -> ColumnTransformer:
    """Return a transformer that turns a data frame into numbers of one scale.

    Numbers are imputed by their median and scaled; categories of fewer than 40 values become
    indicators; more of them, and short strings, are compared by their letters; dates give
    year, month, day, hour, weekday and seconds; text is compared by words and letters. Text,
    and every group of vectors, weighs as much as all plain columns together, so that none drowns
    the others.

    Parameters
    ----------
    frame : pandas.DataFrame
        From `features`, and vectors.
    text : sequence of str, default=()
        Its text columns.
    vectors : mapping of str to sequence of str, default=None
        Groups of columns that are one vector per row, such as those of images.
    n_components : int, default=100
        Numbers that a text column becomes, at most.
    random_state : int or None, default=0
        Seed of the reduction of texts.
    readings : mapping of str to ColumnReading, default=None
        How cells were read, see `find_column_readings`. A frame whose cells are still texts is
        then encoded as if `features` had read them in this way.
    missing : sequence of str, default=()
        Texts that mean an empty cell, in addition to `readings`.

    Returns
    -------
    ColumnTransformer
        Not fitted yet; it can be cloned, put into a pipeline, and saved.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"w": [1.5, None, 2.0], "site": ["n", "s", "n"]})
    >>> make_encoder(frame).fit_transform(frame).shape
    (3, 3)
    """
    vectors = vectors or {}
    grouped = {name for names in vectors.values() for name in names}
    others = [name for name in frame.columns if name not in text and name not in grouped]
    known = {name: each for name, each in (readings or {}).items() if name in others}
    parts: list[tuple[str, Any, Any]] = []
    for kind, own in _by_part(frame[others], known).items():
        part = {"numbers": _numbers, "categories": _categories}.get(kind)
        made = _vectorizer(random_state) if part is None else part()
        read = {n: {"kind": e.kind, **e.to_dict()} for n, e in known.items() if n in own}
        if read:
            steps = list(made) if isinstance(made, Pipeline) else [made]
            made = make_pipeline(ColumnReader(read, missing=list(missing)), *steps)
        parts.append((kind, made, own))
    weights = {}
    for name in frame.columns:
        if name in text:
            parts.append(
                (f"text {name}", TextEncoder(n_components, random_state=random_state), name)
            )
            weights[parts[-1][0]] = float(np.sqrt(max(1, len(others))))
    for group, names in vectors.items():
        parts.append((f"vectors {group}", _numbers(), list(names)))
        weights[parts[-1][0]] = float(np.sqrt(max(1, len(others)) / len(names)))
    return ColumnTransformer(
        parts,
        sparse_threshold=0.0,
        transformer_weights=weights if weights and len(parts) > 1 else None,
        verbose_feature_names_out=False,
    )


def _numbers() -> Pipeline:
    return make_pipeline(SimpleImputer(strategy="median"), StandardScaler())


def _categories() -> OneHotEncoder:
    return OneHotEncoder(handle_unknown="ignore", sparse_output=False)


def _vectorizer(random_state: Any) -> Any:
    """Encode dates, and texts of many values."""
    skrub = import_extra("skrub", "Encoding dates and texts of many values", "table")
    moments = make_pipeline(skrub.DatetimeEncoder(add_weekday=True), *_numbers())
    return skrub.TableVectorizer(
        cardinality_threshold=CATEGORIES,
        low_cardinality=_categories(),
        high_cardinality=skrub.StringEncoder(n_components=30, random_state=random_state),
        numeric=_numbers(),
        datetime=moments,
    )


def _by_part(frame: Any, readings: Mapping[str, ColumnReading]) -> dict[str, list[str]]:
    """Say which columns are numbers, which few categories, and which only skrub encodes.

    Numbers and categories become one table of arrays each. skrub has an object for every column,
    and its import takes as long as the fit of a small table. An empty column is in no part.
    """
    found: dict[str, list[str]] = {"numbers": [], "categories": [], "columns": []}
    filled = frame.notna().any().to_dict()  # at once: pandas takes long for one column
    for name, dtype in frame.dtypes.items():
        reading = readings.get(name)
        kind = {"f": "number", "i": "number", "u": "number", "M": "date"}.get(dtype.kind)
        kind = reading.kind if reading is not None else kind
        if kind == "number" and dtype.kind in "fiu":
            if filled[name]:
                found["numbers"].append(name)
        elif kind in (None, "category") and _are_few_texts(frame[name]):
            found["categories"].append(name)
        else:
            found["columns"].append(name)
    if not any(found.values()):  # all are empty
        found["columns"] = list(frame.columns)
    return {part: names for part, names in found.items() if names}


def _are_few_texts(column: Any) -> bool:
    """Tell whether a column holds texts, and fewer than 40 different ones."""
    filled = column.dropna().unique()
    return 0 < len(filled) < CATEGORIES and all(isinstance(each, str) for each in filled)


def encode(encoder: ColumnTransformer, frame: Any, step: TellProgress = lambda text: None) -> Any:
    """Fit an encoder to a data frame and return its numbers, as ``fit_transform`` does.

    Parameters
    ----------
    encoder : ColumnTransformer
        From `make_encoder`.
    frame : pandas.DataFrame
        What it was made for.
    step : callable, default=no-op
        Told how many rows are done, how many a second, and how long it will take: by the letters
        of text that are read, all other columns counting for a few.

    Returns
    -------
    ndarray of float64, shape (n, q)

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"w": [1.5, None, 2.0], "site": ["n", "s", "n"]})
    >>> encode(make_encoder(frame), frame).shape
    (3, 3)
    """
    prose = [column for name, _, column in encoder.transformers if name.startswith("text ")]
    if not prose:  # all else takes moments
        return np.asarray(encoder.fit_transform(frame), dtype=np.float64)
    kinds = feature_kinds(frame, prose)
    each = 1 + _REDUCING + _LEARNING * min(1, _LEARNED / max(len(frame), 1))
    letters = each * sum(frame[name].str.len().sum() for name in prose)
    others = sum(len(frame) * _CELL[kind] for kind in kinds.values() if kind in _CELL)
    done, told = float(others), report_progress(len(frame), "rows", step)

    def hear(read: float) -> None:
        nonlocal done
        done += read
        told(len(frame) * done / max(others + letters, 1))

    before = _heard.set(hear)
    try:
        return np.asarray(encoder.fit_transform(frame), dtype=np.float64)
    finally:
        _heard.reset(before)


def column_places(encoder: ColumnTransformer) -> dict[str, NDArray[np.intp]]:
    """Say which of its numbers a fitted encoder makes of which column, or group of vectors.

    Parameters
    ----------
    encoder : ColumnTransformer
        From `make_encoder`, fitted.

    Returns
    -------
    dict of str to ndarray of int

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"site": ["n", "s", "o"], "w": [1.5, None, 2.0]})
    >>> column_places(make_encoder(frame).fit(frame))
    {'site': array([1, 2, 3]), 'w': array([0])}
    """
    found: dict[str, NDArray[np.intp]] = {}
    for name, part, columns in encoder.transformers_:
        if name == "remainder":
            continue
        places = np.arange(*encoder.output_indices_[name].indices(1 << 40)[:2])
        if name not in ("numbers", "categories", "columns"):
            found[name.partition(" ")[2]] = places
            continue
        steps = part.steps if isinstance(part, Pipeline) else [("", part)]
        read = [each for _, each in steps if not isinstance(each, ColumnReader)]
        outputs = _outputs(name, read[0], list(columns))
        found |= {column: places[np.array(own, dtype=np.intp)] for column, own in outputs.items()}
    empty = np.zeros(0, dtype=np.intp)
    asked = [name for name in encoder.feature_names_in_ if name not in _grouped(encoder)]
    return {str(name): found.pop(name, empty) for name in asked} | found


def _grouped(encoder: ColumnTransformer) -> set[str]:
    """Columns that are parts of vectors."""
    groups = (c for name, _, c in encoder.transformers if name.startswith("vectors "))
    return {column for columns in groups for column in columns}


def _outputs(kind: str, fitted: Any, columns: Sequence[str]) -> dict[str, list[int]]:
    """Number the outputs that a part of an encoder makes of each of its columns."""
    if kind == "columns":
        number = {output: i for i, output in enumerate(fitted.all_outputs_)}
        # skrub drops a column without a filled cell, but still names an output of it.
        return {
            column: [number[output] for output in outputs if output in number]
            for column, outputs in fitted.input_to_outputs_.items()
        }
    if kind == "numbers":  # a column without a filled cell is dropped
        widths = (~np.isnan(fitted.statistics_)).astype(int)
    else:
        widths = np.array([len(each) for each in fitted.categories_])
    ends = np.cumsum(widths)
    parts = zip(columns, ends - widths, ends, strict=True)
    return {column: list(range(start, stop)) for column, start, stop in parts}


def contributions(
    fit: FitColumns,
    rows: NDArray[Any],
    evidence: NDArray[Any],
    columns: Mapping[str, NDArray[np.intp]],
    *,
    random_state: int | None = 0,
) -> dict[str, float]:
    """Measure how much every column helps to predict the labels of held-out rows.

    A model of one half of the rows predicts the labels of the other half, and the other way
    round; then again with one column shuffled. What is lost is what the column contributes
    in addition to all others: nothing, if another column has the same information.

    Parameters
    ----------
    fit : callable
        Learns from the rows that it is given the places of, and returns a function from features
        to probabilities of the labels.
    rows : ndarray, shape (n, d)
        Features as numbers. If there are more than 800 rows, some are drawn.
    evidence : ndarray, shape (n, l)
        Evidence of the labels of each row: its candidates, or votes.
    columns : mapping of str to ndarray of int
        Places of the numbers that a column became.
    random_state : int or None, default=0
        Seed of drawing, halving and shuffling.

    Returns
    -------
    dict of str to float
        Loss of the probability of the evidence, between -1 and 1, the largest first; empty
        for more than 300 columns.

    References
    ----------
    Breiman. Random forests. Machine Learning 45, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> size, other = np.array([0.0, 1.0] * 20), np.arange(40) // 8
    >>> rows, said = np.stack([size, other], axis=1), np.eye(2)[size.astype(int)]
    >>> def fit(places):
    ...     return lambda some: np.eye(2)[some[:, 0].astype(int)]
    >>> found = contributions(fit, rows, said, {"size": np.array([0]), "other": np.array([1])})
    >>> list(found), found["other"]
    (['size', 'other'], 0.0)
    """
    if not 1 <= len(columns) <= _COLUMNS or len(rows) < 4:
        return {}
    random = np.random.default_rng(random_state)
    told = np.flatnonzero(evidence.any(axis=1) & ~evidence.all(axis=1))
    chosen = random.permutation(told)[:_DRAWN]
    lost = dict.fromkeys(columns, 0.0)
    halves = np.array_split(chosen, 2)
    for known, asked in (halves, halves[::-1]):
        if len(known) < 2 or not len(asked):
            return {}
        foretell = fit(np.sort(known))
        said = evidence[asked] / evidence[asked].max(axis=1, keepdims=True)
        plain = rows[asked]
        full = np.sum(foretell(plain) * said, axis=1).mean()
        share = len(asked) / len(chosen) / _SHUFFLES
        shuffles = [each for each in columns.items() for _ in range(_SHUFFLES)]
        for batch in gen_batches(len(shuffles), max(1, _TOGETHER // len(plain))):
            some = shuffles[batch]
            copies = np.tile(plain, (len(some), 1, 1))
            for copy, (_, places) in zip(copies, some, strict=True):
                copy[:, places] = plain[random.permutation(len(plain))][:, places]
            foretold = foretell(copies.reshape(-1, plain.shape[1])).reshape(-1, *said.shape)
            left = np.sum(foretold * said, axis=2).mean(axis=1)
            for (name, _), each in zip(some, left.tolist(), strict=True):
                lost[name] += share * float(full - each)
    return dict(sorted(lost.items(), key=lambda pair: -pair[1]))


class ColumnReader(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Read the cells of a frame as they were read when a model was fitted.

    What `features` returned passes as it is. Dates and numbers that are texts, and categories in
    another spelling, are read by `readings`; what cannot be read is missing, with a
    `NoteWarning`.

    Parameters
    ----------
    readings : dict of str to dict
        By column, `ColumnReading.to_dict` with the kind.
    missing : list of str, default=None
        Texts that mean an empty cell.

    Examples
    --------
    >>> import pandas as pd
    >>> reader = ColumnReader({"day": {"kind": "date", "format": "%d/%m/%Y"}})
    >>> reader.fit_transform(pd.DataFrame({"day": ["03/04/2024"]}))["day"].dt.month.tolist()
    [4]
    """

    def __init__(
        self, readings: dict[str, dict[str, Any]], *, missing: list[str] | None = None
    ) -> None:
        self.readings = readings
        self.missing = missing

    def fit(self, X: Any, y: Any = None) -> ColumnReader:
        """Remember the names of the columns."""
        self.columns_ = list(map(str, X.columns))
        return self

    def transform(self, X: Any) -> Any:
        """Return the frame with its cells read."""
        check_is_fitted(self, "columns_")
        known = {n: ColumnReading.from_dict(each) for n, each in self.readings.items()}
        unread = [n for n, each in known.items() if n in X.columns and not _is_read(X[n], each)]
        if not unread:
            return X
        notes: list[str] = []
        table = read_table(X[unread].reset_index(drop=True))
        roles = Roles(features=tuple(unread), missing=tuple(self.missing or ()))
        read = features(table, roles, readings=known, notes=notes)
        tell(notes, stacklevel=2)
        return X.assign(**{name: read[name].set_axis(X.index) for name in unread})

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Name the columns."""
        return np.array(self.columns_, dtype=object)


def _is_read(column: Any, reading: ColumnReading) -> bool:
    """Tell whether a column of a frame is as `features` returns it."""
    if reading.kind in ("number", "date"):
        return bool(column.dtype.kind == ("f" if reading.kind == "number" else "M"))
    return reading.categories is None or bool(column.dropna().isin(reading.categories).all())


class TextEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn texts into a few numbers: TF-IDF of words and letters, reduced by truncated SVD.

    Cost: linear in the length of all texts, and in rows times components.

    Parameters
    ----------
    n_components : int, default=100
        Numbers a text becomes, at most.
    random_state : int or None, default=0
        Seed of the reduction.

    Attributes
    ----------
    n_features_out_ : int
        Numbers a text became.

    References
    ----------
    Deerwester, Dumais, Furnas, Landauer, Harshman. Indexing by latent semantic analysis. Journal
    of the American Society for Information Science 41, 1990.

    Examples
    --------
    >>> texts = ["a red bird", "a blue bird", "two red fish", "one blue fish"]
    >>> TextEncoder(n_components=3).fit_transform(texts).shape
    (4, 3)
    """

    def __init__(self, n_components: int = 100, *, random_state: Any = 0) -> None:
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> TextEncoder:
        """Learn words, letters and the reduction from texts."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None, **_: Any) -> NDArray[np.float64]:
        """Learn from texts and return their numbers."""
        counts, letters = self._count(X)
        step = max(1, -(-len(letters) // _LEARNED))
        often = counts.getnnz(axis=0)
        self.columns_ = np.sort(
            np.argsort(-often, kind="stable")[: min(_TERMS, (often > 0).sum())]
        )
        self.reduction_, self.scale_ = None, 1.0
        if len(self.columns_) > 1:
            self.weights_ = TfidfTransformer(sublinear_tf=True)
            matrix = self.weights_.fit_transform(counts[:, self.columns_])
            most = min(self.n_components, len(letters[::step]), matrix.shape[1])
            with np.errstate(divide="ignore", invalid="ignore"):  # all texts alike
                self.reduction_ = TruncatedSVD(most, random_state=self.random_state)
                self.reduction_.fit(matrix[::step])
            _heard.get()(_LEARNING * letters[::step].sum())
            self.reduction_.components_ = self.reduction_.components_.astype(np.float32)
        found = self._reduce(counts)
        _heard.get()(_REDUCING * letters.sum())
        self.n_features_out_ = found.shape[1]
        self.scale_ = float(np.sqrt(found.var(axis=0).sum())) or 1.0
        return found / self.scale_

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the numbers of texts."""
        check_is_fitted(self, "columns_")
        return self._reduce(self._count(X)[0])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Name the numbers."""
        names = ["text"] if input_features is None else list(input_features)
        return np.array([f"{names[0]}_{i}" for i in range(self.n_features_out_)], dtype=object)

    def _count(self, X: Any) -> tuple[Any, NDArray[np.intp]]:
        """Return how often words and letters come in each text, and how many letters it has."""
        texts = [t[:LONGEST] if isinstance(t, str) else "" for t in np.asarray(X).tolist()]
        letters, blocks = np.array([len(text) for text in texts], dtype=np.intp), []
        for start in range(0, max(len(texts), 1), _BLOCK):
            part = slice(start, start + _BLOCK)
            counts = [each.transform(texts[part]) for each in _VECTORIZERS]
            blocks.append(sp.hstack(counts, format="csr"))
            _heard.get()(letters[part].sum())
        return sp.vstack(blocks, format="csr"), letters

    def _reduce(self, counts: Any) -> NDArray[np.float64]:
        if self.reduction_ is None:
            return np.zeros((counts.shape[0], 1))
        matrix = self.weights_.transform(counts[:, self.columns_])
        return self.reduction_.transform(matrix).astype(np.float64) / self.scale_
