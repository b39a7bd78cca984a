"""Options that several commands share; they are called as the parameters in Python are."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from appellate._text import install
from appellate.cli._terminal import UserError, user_errors

Command = TypeVar("Command", bound=Callable[..., Any])


def _setting(text: str) -> tuple[str, Any]:
    """Read ``name=value``; a value that is no number, truth value, None or list is a text."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name:
        raise click.BadParameter(f"'{text}' is not NAME=VALUE, as in --set max_rounds=3.")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


# What an option of a table takes, and its help.
_TABLE = {
    "candidates": ("COL", "Column of candidates ('cat|dog'), or 0/1 columns, one per label."),
    "annotators": ("COL", "One column per annotator; or 'w*'."),
    "long": ("ITEM,LABEL[,WHO]", "Columns of a table with one answer per row."),
    "counts": ("COL", "One column per label: how many chose it; or 'n_*'."),
    "id": ("COL", "Column that names the rows."),
    "truth": ("COL", "True labels, to score with only."),
    "text": ("COL", "Column of prose, to learn from and to show."),
    "image": ("COL", "Column of picture files, to show and to learn from."),
    "features": ("COL", "Columns to learn from, ids and the like only if named here; or 'p*'."),
    "model_probabilities": (
        "PATTERN",
        "Class probabilities of a model, one more answer per row: 'p_*' for p_cat, p_dog.",
    ),
    "ignore": ("COL", "Columns to ignore; or 'x*'."),
    "embeddings": ("FILE.npy", "Numbers of every item, one row each."),
    "text_model": ("NAME", "Folder or name of sentence-transformers: makes numbers of prose."),
    "image_model": (
        "FILE",
        "TorchScript or ONNX, timm/NAME, torchvision/NAME, or histograms: makes numbers of "
        "pictures.",
    ),
    "groups": ("COL", "Column of groups, such as the page."),
    "separator": ("TEXT", "Between two labels of a cell; '' for none. Default: found, and told."),
    "missing": ("TEXT", "Text that stands for no label, such as -1."),
    "delimiter": ("CHAR", "Between two cells of a text file; for a tab a backslash and t."),
    "encoding": ("NAME", "How letters are stored, such as latin-1."),
    "decimal": ("[.|,]", "Of numbers in texts; found by default."),
    "sheet": ("NAME", "Of an Excel file; the first if not given."),
    "question": ("NAME", "Of a labelling tool's export; else the most answered."),
    "header": ("[first|none]", "Row of titles: the first (default), or none: columns 0, 1..."),
}
_SEVERAL = ("candidates", "annotators", "long", "counts", "text", "features", "ignore", "missing")
READING = ("delimiter", "encoding", "decimal", "sheet", "question", "header")
_CHOICES: dict[str, dict[str, Any]] = {
    "decimal": {"type": click.Choice([".", ","])},
    "header": {"type": click.Choice(["first", "none"]), "default": "first"},  # None means none
}


def _together(options: Iterable[Any]) -> Callable[[Command], Command]:
    return lambda command: reduce(lambda done, option: option(done), [*options][::-1], command)


def table_options(*names: str, but: Collection[str] = ()) -> Callable[[Command], Command]:
    """Add the options of a table, those named or all but some; what is not given is guessed.

    They arrive as keyword arguments of the same names that `appellate.rectify` and
    `appellate.tables.find_roles` take; None if not given, "first" for the header.
    """
    options = []
    for name in names or [name for name in _TABLE if name not in but]:
        metavar, help = _TABLE[name]
        more: dict[str, Any] = dict(_CHOICES.get(name, {}))
        if name in _SEVERAL:
            more = {"multiple": True, "callback": lambda _, __, given: list(given) or None}
        word = name.replace("_", "-")
        options.append(click.option(f"--{word}", metavar=metavar, help=help, **more))
    return _together(options)


def typed_options(but: Collection[str]) -> dict[str, Any]:
    """Return the options that the user typed for the command that runs, all but some.

    Names are those of the terminal, without dashes at their start.
    """
    context, typed = click.get_current_context(), {}
    for option in context.command.params:
        name = option.name or ""
        source = context.get_parameter_source(name)
        if name in but or source is not ParameterSource.COMMANDLINE:
            continue
        if isinstance(option, click.Option) and not option.is_flag:
            value = context.params[name]
            pairs = value.items() if isinstance(value, dict) else ()
            word = option.opts[0].removeprefix("--")
            typed[word] = [f"{key}={each}" for key, each in pairs] or value
    return typed


def out_option(help: str, **options: Any) -> Callable[[Command], Command]:
    """Add ``--out``."""
    return click.option("--out", type=click.Path(path_type=Path), help=help, **options)


def _number(
    name: str, least: int, most: int, default: int, help: str
) -> Callable[[Command], Command]:
    shown: Any = {"type": click.IntRange(least, most), "default": default, "show_default": True}
    return click.option(f"--{name}", metavar="N", help=help, **shown)


random_state_option = _number("random-state", 0, 2**32 - 1, 0, "Seed of everything random.")
set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    type=_setting,
    callback=lambda _, __, given: dict(given),
    metavar="NAME=VALUE",
    help="A setting of the method, for experts.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")
STORE = "runs.sqlite"


home_option = click.option(
    "--data-home",
    "home",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of the data sets; by default APPELLATE_DATA_HOME, or else one in your cache.",
)


def refuse_to_replace(
    out: Path, given: Iterable[str | None], titles: Iterable[str], needed: Iterable[str]
) -> None:
    """Refuse to write over what is read, or over a file that is no earlier result.

    An earlier result has all columns that are needed, and none beside `titles`.
    """
    from numpy import load

    from appellate.tables import read_table

    if not out.exists():
        return
    if any(Path(each).exists() and out.samefile(each) for each in given if each):
        raise UserError(f"'{out}' is read. Name another file with --out.")
    try:
        found = {*(load(out) if out.suffix.lower() == ".npz" else read_table(out).names)}
    except (OSError, ValueError):
        found = set()
    if not {*needed} <= found <= {*titles}:
        raise UserError(
            f"'{out}' is there already and is no earlier result of this. Remove it, or name "
            "another file with --out."
        )


def run_options(folder: str) -> Callable[[Command], Command]:
    """Add the options that say how runs are computed and where results are kept."""
    folder_help = "Folder for tables, figures and index.html; made if it does not exist."
    backends = click.Choice(["loky", "dask"])
    store_help = f"File that keeps finished runs.  [default: {STORE} in --out]"
    return _together(
        (
            out_option(folder_help, metavar="DIR", default=folder, show_default=True),
            _number("splits", 1, 1000, 10, "Number of random 50/50 splits."),
            _number("seed", 0, 2**31, 0, "Seed of the first split; the next follow it."),
            _number("n-jobs", 1, 1024, 2, "Worker processes, one thread each."),
            click.option(
                "--backend",
                type=backends,
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
                "--store", type=click.Path(path_type=Path), metavar="FILE", help=store_help
            ),
            json_option,
        )
    )


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
