"""``appellate check``: whether a table holds the kind of labels that Appellate is for."""

from __future__ import annotations

import json
from typing import Any

import click

from appellate.cli._options import READING, json_option, table_options
from appellate.cli._terminal import say, user_errors

_EPILOG = """\b
Examples:
  appellate check faces.csv
  appellate check faces.csv --candidates names --separator ";"
  appellate check crowd.parquet --annotators 'w*'    one column per annotator
"""


@click.command(epilog=_EPILOG, short_help="Find out whether Appellate fits a table.")
@click.argument("data")
@table_options(but=("embeddings", "groups"))
@json_option
def check(data: str, as_json: bool, **given: Any) -> None:
    """Show what kind of labels a table has, how its columns are used, and the next command.

    DATA is anything that rectify reads: CSV, Parquet, Arrow, JSON or Excel, a folder or a
    pattern of such files, or - for the standard input. Columns that you do not name are detected
    automatically. If the columns can be read in several ways, the command shows all of them.
    """
    from appellate.tables import TableError, diagnose, read_table

    with user_errors():
        known = {name: value for name, value in given.items() if value is not None}
        reading = {name: known.pop(name) for name in READING if name in known}
        table = read_table(data, **reading)
        try:
            found = diagnose(table, **known)
        except TableError as error:  # how it was read may be why
            notes = "".join(f"\nnote: {note}" for note in table.notes)
            raise TableError(f"{error}{notes}") from error
    if as_json:
        click.echo(json.dumps({"file": data} | found.to_dict(), indent=2))
    else:
        say(str(found))
