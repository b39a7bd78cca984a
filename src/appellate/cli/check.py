"""``appellate check``: whether a table holds the kind of labels that Appellate is for."""

from __future__ import annotations

import json
from typing import Any

import click

from appellate._table_formats import names_formats
from appellate._table_options import (
    ColumnOptions,
    LoadOptions,
    ReadingOptions,
    options_in,
    pick,
)
from appellate.cli._options import json_option, table_options
from appellate.cli._terminal import as_typed, say, user_errors

_EPILOG = """\b
Examples:
  appellate check faces.csv
  appellate check faces.csv --candidates names --separator ";"
  appellate check crowd.parquet --annotators 'w*'    one column per annotator
"""


@click.command(epilog=_EPILOG, short_help="Find out whether Appellate fits a table.")
@click.argument("data")
@table_options(*options_in(LoadOptions))
@json_option
@names_formats
def check(data: str, as_json: bool, **given: Any) -> None:
    """Show what kind of labels a table has, how its columns are used, and the next command.

    DATA is anything that rectify reads: <formats>, a folder or a pattern of such files,
    or - for the standard input. Columns that you do not name are detected automatically. If the
    columns can be read in several ways, the command shows all of them.
    """
    from appellate.tables import TableError, diagnose, read_table

    with user_errors():
        table = read_table(data, **pick(ReadingOptions, given))
        try:
            found = diagnose(table, **pick(ColumnOptions, given))
        except TableError as error:  # how it was read may be why
            notes = "".join(f"\nnote: {note}" for note in table.notes)
            raise TableError(f"{error}{notes}") from error
    if as_json:
        click.echo(json.dumps({"file": data} | found.to_dict(), indent=2))
    else:
        say(found.to_text(as_typed))
