"""Load a user's own table: features, candidate labels and, perhaps, the truth."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from appellate.candidates import CandidateSets, as_candidates, name_rows
from appellate.candidates.names import encode, name_array, scalars
from appellate.datasets.asides import LABELS, holds_labels
from appellate.datasets.integrity import check_features, check_truth
from appellate.datasets.spellings import read_lists
from appellate.datasets.textfiles import (
    Header,
    check_titles,
    decimal_points,
    read_columns,
    read_header,
    read_quickly,
    to_numbers,
)

Layout = Literal["sets", "labels", "indicator", "annotators"]

_WHOLE = re.compile(r"0|-?[1-9][0-9]*")


def load_partial_csv(
    path: str | os.PathLike[str],
    *,
    candidates: str | Sequence[str] = "candidates",
    truth: str | None = None,
    features: Sequence[str] | None = None,
    ids: str | None = None,
    ignore: Sequence[str] = (),
    layout: Layout | None = None,
    separator: str | None = "|",
    rule: str = "union",
    missing: Any = None,
    classes: Sequence[Any] | NDArray[Any] | None = None,
    noisy: bool = False,
    allow_nan: bool = False,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    return_X_candidates_y: bool = False,
) -> Any:
    r"""Load a CSV file with features and candidate labels.

    Parameters
    ----------
    path : path-like
        The file; its first line holds the titles of the columns.
    candidates : str or sequence of str, default="candidates"
        The column of candidate labels, such as ``anna|bob`` or ``['anna', 'bob']``; or several
        columns, of 0 and 1 or, with ``layout="annotators"``, of one person's answers each.
    truth : str, default=None
        Column of the true labels, if they are known.
    features : sequence of str, default=None
        Columns of the features; by default all others that have a title, which must then hold
        numbers, and no labels of the rows. Decimal commas are read where a comma does not part
        the cells.
    ids : str, default=None
        Column of the names of the rows.
    ignore : sequence of str, default=()
        Columns to leave out.
    layout : str, default=None
        How to read the candidates, see `appellate.as_candidates`: ``"sets"`` (default for one
        column), ``"labels"``, ``"indicator"`` (default for several) or ``"annotators"``.
    separator : str or None, default="|"
        What parts the labels in a cell.
    rule, missing
        Which answers of annotators become candidates, and what marks an answer not given
        beside an empty cell; see `appellate.as_candidates`.
    classes : sequence, default=None
        All class names, in order; by default the labels that occur, sorted, as numbers if all
        are whole numbers.
    noisy : bool, default=False
        Accept rows whose truth is not among their candidates.
    allow_nan : bool, default=False
        Accept empty feature cells, as NaN; impute them before fitting.
    delimiter : str, default=None
        What parts the cells; by default the comma, semicolon or tab most frequent in the first
        line.
    encoding : str, default="utf-8"
        How the letters are stored.
    return_X_candidates_y : bool, default=False
        Return ``(X, candidates, y_true)`` alone.

    Returns
    -------
    Bunch
        With `X` (n, q), `candidates` (bool, (n, l)), `y_true` (the column of each true label,
        or None), `class_names`, `feature_names`, `ids` (or None), `description` and
        `filename`. ``as_candidates(data.candidates, classes=data.class_names)`` is what to
        fit if predictions shall have names.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If a column is not there, a cell cannot be read, a row has no candidate, or the truth
        is no candidate. Rows count from 0, without the header.

    Notes
    -----
    A large file without flaws is read by polars or pandas if one of them is installed, any
    other by Python itself; the result is the same.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from appellate.datasets import load_partial_csv
    >>> text = "width,height,candidates\n1.5,2,anna|bob\n0.5,3,bob\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "own.csv").write_text(text)
    ...     own = load_partial_csv(f"{folder}/own.csv")
    >>> own.X
    array([[1.5, 2. ],
           [0.5, 3. ]])
    >>> own.candidates, own.class_names.tolist()
    (array([[ True,  True],
           [False,  True]]), ['anna', 'bob'])
    """
    file = Path(path)
    header = read_header(file, delimiter=delimiter, encoding=encoding)
    labels = [candidates] if isinstance(candidates, str) else list(candidates)
    form = _check_layout(layout, isinstance(candidates, str))
    texts = [*labels, *([truth] if truth else []), *([ids] if ids else [])]
    numbers = _feature_titles(header, features, texts, ignore, file.name)
    X, cells = _read(file, header, numbers, texts, encoding)
    X = check_features(X, file.name, allow_nan=allow_nan)
    known = None if classes is None else [str(name) for name in classes]
    try:
        sets = _read_candidates(
            [cells[name] for name in labels], labels, form, separator, rule, missing, known
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"{file.name}: {error}") from error
    if features is None:
        _refuse_labels(X, numbers, sets, file.name)
    answers = [cell.strip() for cell in cells[truth]] if truth else None
    order = _order(sets, answers, known, noisy, form, file.name)
    matrix = as_candidates(sets, classes=order).matrix
    y_true = None
    if answers is not None:
        y_true = encode(answers, name_array(order), np.arange(len(answers))).codes
        check_truth(matrix, y_true, file.name, noisy=noisy)
    if return_X_candidates_y:
        return X, matrix, y_true
    return Bunch(
        X=X,
        candidates=matrix,
        y_true=y_true,
        class_names=_names(order) if classes is None else name_array(classes),
        feature_names=numbers,
        ids=np.array(cells[ids]) if ids else None,
        description=f"Read from {file.name}.",
        filename=str(file),
    )


def _check_layout(layout: str | None, single: bool) -> Layout:
    if layout is None:
        return "sets" if single else "indicator"
    fitting: tuple[Layout, ...] = ("sets", "labels") if single else ("indicator", "annotators")
    for form in fitting:
        if layout == form:
            return form
    number = "one column" if single else "several columns"
    raise ValueError(
        f"layout={layout!r} does not go with {number} of candidates; use "
        f"{' or '.join(map(repr, fitting))}."
    )


def _feature_titles(
    header: Header,
    features: Sequence[str] | None,
    texts: Sequence[str],
    ignore: Sequence[str],
    where: str,
) -> list[str]:
    check_titles([*texts, *ignore, *(features or ())], header.titles, where)
    if features is None:
        features = [title for title in header.titles if title and title not in {*texts, *ignore}]
    if not len(features):
        raise ValueError(f"{where} has no column left for features. Name them with features=.")
    return list(features)


def _read(
    file: Path, header: Header, numbers: list[str], texts: list[str], encoding: str
) -> tuple[NDArray[np.float64], dict[str, list[str]]]:
    quick = read_quickly(file, header, numbers, texts) if encoding == "utf-8" else None
    if quick is not None:
        return quick
    columns = read_columns(file, header, encoding=encoding)
    cells = [decimal_points(columns[name], header.delimiter) or columns[name] for name in numbers]
    pairs = zip(cells, numbers, strict=True)
    return np.stack([to_numbers(cell, name, file.name) for cell, name in pairs], axis=1), columns


def _read_candidates(
    columns: list[list[str]],
    titles: list[str],
    form: Layout,
    separator: str | None,
    rule: str,
    missing: Any,
    classes: list[str] | None,
) -> CandidateSets:
    if form == "indicator":
        ones = [to_numbers(c, t, "candidates") for c, t in zip(columns, titles, strict=True)]
        sets = as_candidates(np.stack(ones, axis=1), layout=form, classes=titles)
        return sets if classes is None else as_candidates(sets, classes=classes)
    if form == "annotators":
        answers = np.array([[cell.strip() for cell in column] for column in columns]).T
        marks = missing if missing is None or isinstance(missing, str) else str(missing)
        return as_candidates(answers, layout=form, rule=rule, missing=marks, classes=classes)
    if rule != "union" or missing is not None:
        raise ValueError('rule and missing are for layout="annotators".')
    lists = read_lists(columns[0]) if form == "sets" else None
    cells = columns[0] if lists is None else lists
    return as_candidates(cells, layout=form, separator=separator, classes=classes)


def _refuse_labels(
    X: NDArray[np.float64], titles: list[str], sets: CandidateSets, where: str
) -> None:
    """Raise ValueError if a column holds labels and nobody said that it is a feature."""
    names = list(map(str, scalars(sets.class_names)))
    for title, column in zip(titles, X.T, strict=True):
        cells = ("" if np.isnan(number) else str(number) for number in column)
        if holds_labels(title, cells, names, sets.matrix):
            raise ValueError(
                f"{where}: column {title!r} {LABELS}. Name it with truth=, leave it out with "
                "ignore=, or name the features with features=."
            )


def _order(
    sets: CandidateSets,
    truth: list[str] | None,
    classes: list[str] | None,
    noisy: bool,
    form: Layout,
    where: str,
) -> list[str]:
    """Return all class names in the order of the columns, true labels included."""
    names = scalars(sets.class_names)
    strange: set[str] = set()
    if truth is not None:
        blank = [i for i, label in enumerate(truth) if not label]
        if blank:
            raise ValueError(f"{where}: no truth in {name_rows(blank)}. Fill or drop the rows.")
        strange = set(truth) - set(names)
    if strange and (classes is not None or not noisy):
        rows = [i for i, label in enumerate(truth or ()) if label in strange]
        raise ValueError(
            f"{where}: the truth is no candidate in {name_rows(rows)}, for instance "
            f"{(truth or [''])[rows[0]]!r}. "
            + ("Add it to `classes`." if classes else "Pass noisy=True if that is meant.")
        )
    if classes is not None:
        return classes
    if form == "indicator":
        return names + sorted(strange)
    names = sorted({*names, *strange})
    return sorted(names, key=int) if all(map(_WHOLE.fullmatch, names)) else names


def _names(order: list[str]) -> NDArray[Any]:
    """Return class names, as numbers if all are whole numbers."""
    whole = all(map(_WHOLE.fullmatch, order))
    return name_array([int(name) for name in order] if whole else order)
