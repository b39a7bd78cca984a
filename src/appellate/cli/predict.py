"""``appellate predict``: a saved model on new rows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from appellate.cli._options import READING, out_option, refuse_to_replace, table_options
from appellate.cli._terminal import UserError, as_typed, say, user_errors

_EPILOG = """\b
Examples:
  appellate predict birds new.csv
  appellate predict birds new.csv --proba --out labelled.parquet
  appellate predict images - --embeddings new.npy < new.csv
"""


@click.command(epilog=_EPILOG, short_help="Label new rows with a saved model.")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", metavar="DATA")
@click.option("--proba", is_flag=True, help="Add one column per label with its probability.")
@click.option(
    "--embeddings",
    metavar="FILE.npy",
    help="Precomputed features of the new rows, if the model uses them (default: none).",
)
@click.option(
    "--text-model", metavar="NAME", help="Text model that rectify got, if any (default: none)."
)
@click.option(
    "--image-model", metavar="FILE", help="Image model that rectify got, if any (default: none)."
)
@table_options(*READING)
@out_option(
    "Output file: .csv, .tsv, .parquet, .jsonl or .json; - is the standard output (default: -).",
    metavar="FILE",
)
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

    The output is DATA with two more columns, label and confidence.
    """
    with user_errors():
        from appellate._files import check_writable
        from appellate.rectification.prediction import label_rows, open_model, unused_columns
        from appellate.tables import check_ending, read_table, write_csv, write_table
        from appellate.tables.cells import name_some
        from appellate.tables.writing import free_names

        out = None if out == Path("-") else out
        if out is not None:
            check_ending(out)
            if model.is_dir() and out.resolve().is_relative_to(model.resolve()):
                raise UserError(f"--out '{out}' is in the model's folder. Choose another place.")
            check_writable(out)
        pipeline, meta = open_model(model)
        table = read_table(data, **reading)
        if out is not None:
            classes = getattr(pipeline, "classes_", ()) if proba else ()
            beside = ["label", "confidence", *(f"p({name})" for name in classes)]
            titles = [*table.names, *free_names(table.names, beside)]
            refuse_to_replace(out, (data, embeddings), titles, beside[:2])
        models = {"text": text_model, "picture": image_model}
        added, notes = label_rows(pipeline, meta, table, models, proba, embeddings)
        unused = unused_columns(meta, table)
        if unused:
            notes.append(f"the model ignores the columns {name_some(unused)}")
        for note in notes:
            say(f"note: {as_typed(note)}", err=True)
        if out is None:
            write_csv(table, sys.stdout, added=added, digits=6)
            return
        write_table(table, out, added=added, digits=6)
        say(f"wrote {len(table)} rows to '{out}'", err=True)
