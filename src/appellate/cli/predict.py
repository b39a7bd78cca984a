"""``appellate predict``: a saved model on new rows."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from appellate.cli.errors import UserError

if TYPE_CHECKING:
    from appellate.cli.tables_in import Table

_EPILOG = """\b
Examples:
  appellate predict birds/model new.csv
  appellate predict birds/model new.csv --proba --out labelled.csv
  appellate predict images/model - --embeddings new.npy < new.csv
"""


@click.command(epilog=_EPILOG, short_help="Label new rows with a saved model.")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", metavar="DATA")
@click.option("--proba", is_flag=True, help="Add the probability of every label.")
@click.option(
    "--embeddings", type=click.Path(path_type=Path), metavar="FILE.npy", help="Features of DATA."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="CSV; standard output if none or -.",
)
def predict(
    model: Path, data: str, proba: bool, embeddings: Path | None, out: Path | None
) -> None:
    """Label the rows of DATA with MODEL, the folder that rectify wrote.

    The result is DATA with the columns label and confidence, and with --proba one column for
    every label.
    """
    from appellate.cli.tables_in import read_table

    out = None if out == Path("-") else out
    if out is not None and not out.absolute().parent.is_dir():
        raise UserError(f"cannot write '{out}': there is no folder '{out.absolute().parent}'.")
    if out is not None and out.is_dir():
        raise UserError(f"cannot write '{out}': it is a folder. Name a file with --out.")
    folder = model / "model" if (model / "run.json").is_file() else model
    pipeline, meta = _load(folder)
    table = read_table(data, "Give at least one row to label.")
    X = _features(table, meta, embeddings, _categories(pipeline))
    labels, probabilities = _label(pipeline, X, table)
    place = {name: j for j, name in enumerate(pipeline.classes_.tolist())}
    added: dict[str, Any] = {
        "label": labels,
        "confidence": [
            round(float(row[place[label]]), 6)
            for row, label in zip(probabilities, labels, strict=True)
        ],
    }
    if proba:
        for name, column in zip(pipeline.classes_.tolist(), probabilities.T, strict=True):
            added[f"p({name})"] = [round(float(p), 6) for p in column]
    _write(table, added, out)


def _label(pipeline: Any, X: Any, table: Table) -> tuple[list[Any], Any]:
    """Return labels and probabilities; refuse a row whose numbers overflow on the way."""
    import numpy as np

    with np.errstate(all="ignore"):
        rows = pipeline[:-1].transform(X)
        _check_finite(rows, table)
        probabilities = pipeline[-1].predict_proba(rows)
        _check_finite(probabilities, table)
        return pipeline[-1].predict(rows).tolist(), probabilities


def _check_finite(numbers: Any, table: Table) -> None:
    import numpy as np

    from appellate.cli.features_in import FROM_ZERO

    bad = np.flatnonzero(~np.isfinite(numbers).all(axis=1))
    if bad.size:
        raise UserError(
            f"{table.source}: row {bad[0]} holds a number too large to compute with {FROM_ZERO}. "
            "Correct it, or leave the row out."
        )


def _load(folder: Path) -> tuple[Any, dict[str, Any]]:
    from appellate.io import ModelFileError, load_model, read_meta

    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            meta, pipeline = read_meta(folder), load_model(folder)
    except (ModelFileError, FileNotFoundError, OSError, ImportError) as error:
        raise UserError(str(error)) from error
    for warning in {str(w.message) for w in caught}:
        click.echo(f"appellate: {warning}", err=True)
    if "columns" not in meta:
        raise UserError(f"'{folder}' was not written by rectify; load it in Python.")
    return pipeline, meta


def _categories(pipeline: Any) -> dict[str, set[str]]:
    """Return the categories that a pipeline learned, by column."""
    for name, encoder, columns in getattr(pipeline[0], "transformers_", ()):
        if name == "categories":
            pairs = zip(columns, encoder.categories_, strict=True)
            return {column: {c for c in seen if isinstance(c, str)} for column, seen in pairs}
    return {}


def _features(
    table: Table, meta: dict[str, Any], embeddings: Path | None, known: dict[str, set[str]]
) -> Any:
    from appellate.cli.cells import match
    from appellate.cli.features_in import read_commas, read_embeddings
    from appellate.cli.hearing import frame_of
    from appellate.cli.tables_in import name_some

    if meta["columns"] is None:
        if embeddings is None:
            raise UserError("this model learned from embeddings; give --embeddings FILE.npy.")
        rows = read_embeddings(embeddings, len(table))
        if rows.shape[1] != meta["n_embeddings"]:
            raise UserError(
                f"'{embeddings}' has {rows.shape[1]} columns, but the model learned from "
                f"{meta['n_embeddings']}."
            )
        return rows
    if embeddings is not None:
        raise UserError(
            f"this model learned from columns ({name_some(meta['columns'], 6)}), not from "
            "embeddings. Leave --embeddings out."
        )
    places = {name: match(name, table.columns) for name in meta["columns"]}
    lacking = [name for name, place in places.items() if place not in table.columns]
    if lacking:
        raise UserError(
            f"{table.source} lacks columns that the model learned from: {name_some(lacking)}. "
            f"It has: {name_some(table.columns)}."
        )
    extra = [name for name in table.columns if name not in places.values()]
    if extra:
        click.echo(f"not used by the model: {name_some(extra)}", err=True)
    columns: dict[str, Any] = {}
    for name, kind in meta["columns"].items():
        cells = table.columns[places[name]]
        where = f"{table.source}, column '{places[name]}'"
        if kind == "category":
            columns[name] = _as_categories(cells, where, known[name])
        else:
            points = read_commas(cells, table.delimiter)
            columns[name] = _as_numbers(points or cells, where, truths=kind == "boolean")
    return frame_of(columns)


def _as_numbers(cells: list[Any], where: str, *, truths: bool) -> Any:
    import numpy as np

    from appellate.cli.cells import as_text
    from appellate.cli.features_in import FROM_ZERO, as_numbers

    if truths:  # true and false of Parquet or JSON are texts in CSV
        words = {"true": 1.0, "false": 0.0}
        cells = [words.get(as_text(cell).strip().lower(), cell) for cell in cells]
    numbers, (row, _) = as_numbers(cells)
    if numbers is None or np.isinf(numbers).any():
        row = row if numbers is None else int(np.flatnonzero(np.isinf(numbers))[0])
        raise UserError(
            f"{where}: row {row} holds {as_text(cells[row])!r}, but the model learned from "
            f"{'true and false' if truths else 'finite numbers'} there {FROM_ZERO}."
        )
    return numbers


def _as_categories(cells: list[Any], where: str, known: set[str]) -> Any:
    """Return texts, None for empty cells; say how many the model never saw."""
    import numpy as np

    from appellate.cli.cells import as_text, is_empty, match

    texts = [None if is_empty(cell) else match(as_text(cell), known) for cell in cells]
    new = [text for text in texts if text is not None and text not in known]
    if new:
        click.echo(
            f"appellate: note: {where}: {len(new)} of {len(cells)} rows hold a category that the "
            f"model never saw, e.g. {new[0][:40]!r}; the column says nothing of these rows.",
            err=True,
        )
    return np.array(texts, dtype=object)


def _write(table: Table, added: dict[str, Any], out: Path | None) -> None:
    from appellate.cli.files import staged
    from appellate.cli.outputs import print_rectified, write_rectified

    if out is not None:
        with staged(out.absolute().parent) as stage:
            write_rectified(table, added, stage / out.name)
    else:
        print_rectified(table, added, sys.stdout)
