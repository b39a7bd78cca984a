"""``appellate predict``: a saved model on new rows."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from appellate.cli._options import READING, out_option, table_options
from appellate.cli._terminal import UserError, say, user_errors

if TYPE_CHECKING:
    from appellate.tables import Table

_EPILOG = """\b
Examples:
  appellate predict birds new.csv
  appellate predict birds new.csv --proba --out labelled.parquet
  appellate predict images - --embeddings new.npy < new.csv
"""


@click.command(epilog=_EPILOG, short_help="Label new rows with a saved model.")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", metavar="DATA")
@click.option("--proba", is_flag=True, help="Add the probability of every label.")
@table_options("embeddings", "text_model", "image_model", *READING)
@out_option("CSV, TSV, Parquet or JSON by its name; standard output if none or -.", metavar="FILE")
def predict(
    model: Path,
    data: str,
    proba: bool,
    embeddings: str | None,
    text_model: str | None,
    image_model: str | None,
    out: Path | None,
    **reading: Any,
) -> None:
    """Label the rows of DATA with MODEL, the folder that rectify wrote.

    The result is DATA with the columns label and confidence, and with --proba one column for
    every label.
    """
    with user_errors():
        from appellate._files import check_writable
        from appellate.rectification.newrows import label_rows, open_model
        from appellate.tables import check_ending, read_table, write_csv, write_table

        out = None if out == Path("-") else out
        if out is not None:
            check_ending(out)
            _refuse_input(out, data, embeddings, model)
            check_writable(out)
        pipeline, meta = open_model(model)
        table = read_table(data, **reading)
        if out is not None:
            _refuse_other(out, table, getattr(pipeline, "classes_", ()) if proba else ())
        models = {"text": text_model, "picture": image_model}
        added, notes = label_rows(pipeline, meta, table, models, proba, embeddings)
        for note in notes:
            say(f"note: {note}", err=True)
        if out is None:
            write_csv(table, sys.stdout, added=added, digits=6)
            return
        write_table(table, out, added=added, digits=6)
        say(f"written '{out}': {len(table)} rows", err=True)


def _refuse_input(out: Path, data: str, embeddings: str | None, model: Path) -> None:
    """Refuse to write over what is read."""
    for given in filter(None, (data, embeddings)):
        if out.exists() and Path(given).exists() and out.samefile(given):
            raise UserError(f"'{out}' is read; name another file with --out.")
    if model.is_dir() and out.resolve().is_relative_to(model.resolve()):
        raise UserError(f"'{out}' lies in the model's folder; name another place with --out.")


def _refuse_other(out: Path, table: Table, classes: Iterable[Any]) -> None:
    """Refuse to write over a file that is none of ours."""
    from appellate.tables import TableError, read_table
    from appellate.tables.writing import free_names

    if not out.exists():
        return
    added = ["label", "confidence", *(f"p({name})" for name in classes)]
    ours = [*table.names, *free_names(table.names, added)]
    try:
        names = read_table(out).names
    except TableError:
        names = []
    if set(names) - set(ours) or not {"label", "confidence"} <= {*names}:
        raise UserError(
            f"'{out}' is there, and was not written by predict for such a table. Remove it, or "
            "name another file with --out."
        )
