"""A user's own table as arrays: features, candidates and, if known, true labels."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from sklearn.utils import Bunch

from appellate._table_formats import names_formats
from appellate._table_options import (
    ColumnOptions,
    LoadOptions,
    ReadingOptions,
    check_options,
    pick,
    takes_options,
)


@takes_options(LoadOptions)
@names_formats
def load_partial_csv(
    path: Any, *, return_X_candidates_y: bool = False, **options: Unpack[LoadOptions]
) -> Any:
    r"""Load a table with features and candidate labels.

    It is read and understood as by `appellate.rectify` and every command, see
    `appellate.tables`; roles of columns that are not given are guessed.

    Parameters
    ----------
    path : path-like or data frame
        What `appellate.tables.read_table` takes: a file of <formats>, a folder or a pattern of
        such files, or a data frame.
    return_X_candidates_y : bool, default=False
        Return ``(X, candidates, y_true)`` alone.
    **options
        How to read the file, and what its columns are.

    Returns
    -------
    Bunch
        With `X`, an array (n, q) if all features are numbers, NaN where a cell is empty, and
        else a data frame, which ``appellate.tables.make_encoder(X, text=text)`` turns into
        numbers; `frame`, always that data frame; `candidates` (bool, (n, l)); `counts` (n, l),
        how often each label was given; `y_true`, the column of each true label, -1 if it is
        not known, or None; `class_names`, `feature_names`, `text`, `ids` (or None), `roles`,
        `notes`, `filename`.
        ``as_candidates(data.candidates, classes=data.class_names)`` is what to fit if
        predictions shall have names.

    Raises
    ------
    TableError
        A ValueError, if the table cannot be read, a column is not there, or a row has no label.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from appellate.datasets import load_partial_csv
    >>> text = "width,height,names\n1.5,2,anna|bob\n0.5,3,bob\n"
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
    from appellate.tables import TableError, features, find_roles, read_labels, read_table
    from appellate.tables.cells import in_order, list_rows

    check_options("load_partial_csv", LoadOptions, options)
    table = read_table(path, **pick(ReadingOptions, options))
    roles = find_roles(table, **pick(ColumnOptions, options))
    read = read_labels(table, roles)
    empty = np.flatnonzero(~read.matrix.any(axis=1))
    if len(empty):
        raise TableError(
            f"{table.source}: no label in {list_rows(empty, read.lines)}. Add one, or drop the "
            "rows."
        )
    frame = features(table, roles, rows=read.first)
    numbers = all(dtype.kind == "f" for dtype in frame.dtypes)
    names = read.class_names.tolist()
    truth = [] if read.truth is None else read.truth.tolist()
    strange = {*truth} - {*names, None}
    names = names + sorted(strange) if len(roles.labels) > 1 else in_order([*names, *strange])
    counts = np.zeros((read.n_rows, len(names)))
    counts[:, [names.index(name) for name in read.class_names]] = read.counts
    place = {name: j for j, name in enumerate(names)} | {None: -1}
    y_true = np.array([place[label] for label in truth], dtype=np.intp) if roles.truth else None
    X = frame.to_numpy() if numbers else frame
    if return_X_candidates_y:
        return X, counts > 0, y_true
    return Bunch(
        X=X,
        frame=frame,
        candidates=counts > 0,
        counts=counts,
        y_true=y_true,
        class_names=np.array(names, dtype=np.str_),
        feature_names=list(frame.columns),
        text=roles.text,
        ids=read.ids,
        roles=roles,
        notes=(*table.notes, *roles.notes, *read.notes),
        filename=table.path,
    )
