"""Options that several commands share; they are called as the parameters in Python are."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, TypeVar

import click

from appellate._text import install
from appellate.cli.errors import UserError, user_errors

Command = TypeVar("Command", bound=Callable[..., Any])


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
    def given(_: click.Context, __: click.Parameter, value: tuple[str, ...]) -> list[str] | None:
        return list(value) or None  # None where an option was not given, as in Python

    return click.option(f"--{name}", multiple=True, callback=given, metavar=metavar, help=help)


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
    "image": click.option(
        "--image", metavar="COL", help="Column of picture files, to show and to learn from."
    ),
    "features": _many("features", "COL", "Columns to learn from; or 'p*'."),
    "ignore": _many("ignore", "COL", "Columns to leave out; or 'x*'."),
    "embeddings": click.option(
        "--embeddings", metavar="FILE.npy", help="Numbers to learn from, one row an item."
    ),
    "text_model": click.option(
        "--text-model",
        metavar="NAME",
        help="Folder or name of sentence-transformers, to learn from prose by it.",
    ),
    "image_model": click.option(
        "--image-model",
        metavar="FILE",
        help="TorchScript or ONNX, timm/NAME, torchvision/NAME, or histograms: learn from "
        "pictures by it.",
    ),
    "groups": click.option("--groups", metavar="COL", help="Column of groups, such as the page."),
    "separator": click.option(
        "--separator", metavar="TEXT", help="Between two labels of a cell; '' if nothing is."
    ),
    "missing": _many("missing", "TEXT", "A label not given, such as -1."),
    "delimiter": click.option(
        "--delimiter", metavar="CHAR", help="Between two cells of a text file; \\t for a tab."
    ),
    "encoding": click.option(
        "--encoding", metavar="NAME", help="How letters are stored, such as latin-1."
    ),
    "decimal": click.option(
        "--decimal", type=click.Choice([".", ","]), help="Of numbers in texts; found by default."
    ),
    "sheet": click.option(
        "--sheet", metavar="NAME", help="Of an Excel file; the first if not given."
    ),
    "question": click.option(
        "--question", metavar="NAME", help="Of a labelling tool's export; else the most answered."
    ),
}


READING = ("delimiter", "encoding", "decimal", "sheet", "question")


def table_options(*names: str, but: Collection[str] = ()) -> Callable[[Command], Command]:
    """Add the options of a table, those named or all but some; what is not given is guessed.

    They arrive as keyword arguments of the same names that `appellate.rectify` and
    `appellate.tables.find_roles` take; None if not given.
    """

    def decorate(command: Command) -> Command:
        for name in reversed(names or [name for name in _TABLE if name not in but]):
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
STORE = "runs.sqlite"


def _number(name: str, least: int, most: int, default: int, help: str) -> Any:
    return click.option(
        f"--{name}",
        type=click.IntRange(least, most),
        metavar="N",
        default=default,
        show_default=True,
        help=help,
    )


def run_options(folder: str) -> Callable[[Command], Command]:
    """Add the options that say how runs are computed and where results are kept."""
    options = (
        out_option(
            "Folder for tables, figures and index.html; made if it does not exist.",
            metavar="DIR",
            default=folder,
            show_default=True,
        ),
        _number("splits", 1, 1000, 10, "Number of random 50/50 splits."),
        _number("seed", 0, 2**31, 0, "Seed of the first split; the next follow it."),
        _number("n-jobs", 1, 1024, 2, "Worker processes, one thread each."),
        click.option(
            "--backend",
            type=click.Choice(["loky", "dask"]),
            default="loky",
            show_default=True,
            help="Processes of this machine, or a Dask cluster.",
        ),
        click.option(
            "--scheduler",
            metavar="ADDRESS",
            help="Dask scheduler to use; without it a local cluster is started.",
        ),
        click.option(
            "--store",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help=f"File that keeps finished runs.  [default: {STORE} in --out]",
        ),
        json_option,
    )

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def check_run_options(out: Path, backend: str, scheduler: str | None) -> None:
    """Refuse before the work what would fail after it."""
    from importlib.util import find_spec

    from appellate._files import check_writable

    if scheduler is not None and backend != "dask":
        raise UserError("--scheduler is for the Dask backend; add --backend dask.")
    wanted = {"matplotlib": "plot", "jinja2": "report"}
    wanted |= {"distributed": "dask"} if backend == "dask" else {}
    missing = {name: extra for name, extra in wanted.items() if find_spec(name) is None}
    if missing:
        raise UserError(f"this needs {' and '.join(missing)}: {install(*missing.values())}")
    with user_errors():
        check_writable(out / "index.html")
        page = out / "index.html"
        if page.exists() and b'content="appellate"' not in page.read_bytes()[:2000]:
            raise UserError(
                f"'{page}' is there, and is no page of ours. Name another folder with --out, or "
                "move it away."
            )
