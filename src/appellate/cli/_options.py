"""Options that several commands share; they are called as the parameters in Python are."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def _columns(_: click.Context, __: click.Parameter, value: tuple[str, ...]) -> Any:
    """None where an option was not given, as in Python."""
    return list(value) or None


def _tab(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    return "\t" if value == "\\t" else value


def _settings(_: click.Context, __: click.Parameter, value: tuple[str, ...]) -> dict[str, Any]:
    """Read ``name=value``; a value that is no number, truth value, None or list is a text."""
    found: dict[str, Any] = {}
    for each in value:
        name, equals, text = each.partition("=")
        if not equals or not name.strip():
            raise click.BadParameter(f"'{each}' is not NAME=VALUE, as in --set max_rounds=3.")
        try:
            found[name.strip()] = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError):
            found[name.strip()] = text.strip()
    return found


def _many(name: str, metavar: str, help: str) -> Any:
    return click.option(f"--{name}", multiple=True, callback=_columns, metavar=metavar, help=help)


_TABLE = {
    "candidates": _many("candidates", "COL", "Column of candidates ('cat|dog'), or 0/1 columns."),
    "annotators": _many("annotators", "COL", "One column a person; or 'w*'."),
    "long": click.option(
        "--long", metavar="ITEM,LABEL[,WHO]", help="Columns of a table with one answer a row."
    ),
    "counts": _many("counts", "COL", "One column a label: how many chose it; or 'n_*'."),
    "id": click.option("--id", metavar="COL", help="Column that names the rows."),
    "truth": click.option("--truth", metavar="COL", help="True labels, to score with only."),
    "text": _many("text", "COL", "Column of prose, to learn from and to show."),
    "image": click.option("--image", metavar="COL", help="Column of picture files, to show."),
    "features": _many("features", "COL", "Columns to learn from; or 'p*'."),
    "ignore": _many("ignore", "COL", "Columns to leave out; or 'x*'."),
    "embeddings": click.option(
        "--embeddings", metavar="FILE.npy", help="Numbers to learn from, one row an item."
    ),
    "groups": click.option("--groups", metavar="COL", help="Column of groups, such as the page."),
    "separator": click.option(
        "--separator", metavar="TEXT", help="Between two labels of a cell; '' if nothing is."
    ),
    "missing": _many("missing", "TEXT", "A label not given, such as -1."),
    "delimiter": click.option(
        "--delimiter", callback=_tab, metavar="CHAR", help="Between two cells of a text file."
    ),
    "encoding": click.option(
        "--encoding", metavar="NAME", help="How letters are stored, such as latin-1."
    ),
}


def table_options(*names: str) -> Callable[[Command], Command]:
    """Add the options of a table, all or those named; what is not given is guessed.

    They arrive as keyword arguments of the same names that `appellate.rectify` and
    `appellate.tables.find_roles` take; None if not given.
    """

    def decorate(command: Command) -> Command:
        for name in reversed(names or tuple(_TABLE)):
            command = _TABLE[name](command)
        return command

    return decorate


def out_option(help: str, **options: Any) -> Callable[[Command], Command]:
    """Add ``--out``."""
    return click.option("--out", type=click.Path(path_type=Path), help=help, **options)


random_state_option: Callable[[Command], Command] = click.option(
    "--random-state",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    metavar="N",
    help="Seed of everything random.",
)
set_option: Callable[[Command], Command] = click.option(
    "--set",
    "settings",
    multiple=True,
    callback=_settings,
    metavar="NAME=VALUE",
    help="A setting of the method, for experts.",
)
json_option: Callable[[Command], Command] = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, nothing else."
)
