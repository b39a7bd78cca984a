"""Options that several commands share; they are called as the parameters in Python are."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import reduce
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar, get_args, get_type_hints

import click
from click.core import ParameterSource

from appellate._table_options import ReadingOptions, TableOptions, options_in
from appellate._text import install
from appellate.cli._terminal import UserError, user_errors

Command = TypeVar("Command", bound=Callable[..., Any])


def hang(word: str, text: str, indent: int) -> str:
    """Lay out an entry of a list in a help text: a word, and what follows at an indent.

    Examples
    --------
    >>> print(hang("base", "knn, sure", 10))
      base    knn, sure
    """
    start = f"  {word}".ljust(indent)
    return textwrap.fill(text, 78, initial_indent=start, subsequent_indent=" " * indent)


def _setting(text: str) -> tuple[str, Any]:
    """Read ``name=value``; a value that is not a number, truth value, None or list is a text."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name:
        raise click.BadParameter(f"'{text}' is not NAME=VALUE, as in --set max_rounds=3.")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


_TABLE = options_in(TableOptions)
_TYPES = get_type_hints(TableOptions)
READING = tuple(options_in(ReadingOptions))


class RenamedOption(click.Option):
    """An option whose former name still works, but is not shown.

    Parameters
    ----------
    former : str
        The former name.
    """

    def __init__(self, names: Sequence[str], *, former: str, **options: Any) -> None:
        super().__init__([*names, former], **options)
        self.former = former

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return names and help for ``--help``."""
        every = self.opts
        self.opts = [each for each in every if each != self.former]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = every


def _together(options: Iterable[Any]) -> Callable[[Command], Command]:
    return lambda command: reduce(lambda done, option: option(done), [*options][::-1], command)


def table_options(*names: str) -> Callable[[Command], Command]:
    """Add the options of a table, those named or all; what is not given is guessed.

    They arrive as keyword arguments of the same names that `appellate.rectify` and
    `appellate.tables.find_roles` take; None if not given, "first" for the header.
    """
    options = []
    for name in names or _TABLE:
        option = _TABLE[name]
        more: dict[str, Any] = {"default": option.default}
        if option.choices:
            more["type"] = click.Choice(option.choices)
        elif get_args(_TYPES[name]) == (int, NoneType):
            more["type"] = int
        if option.several:
            more = {"multiple": True, "callback": lambda _, __, given: list(given) or None}
        word = name.replace("_", "-")
        options.append(click.option(f"--{word}", metavar=option.metavar, help=option.help, **more))
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
    name: str, least: int, most: int, default: int, help: str, **more: Any
) -> Callable[[Command], Command]:
    shown: Any = {"type": click.IntRange(least, most), "default": default, "show_default": True}
    return click.option(f"--{name}", metavar="N", help=help, **shown, **more)


def seed_option(help: str) -> Callable[[Command], Command]:
    """Add ``--random-state``, formerly ``--seed``."""
    return _number("random-state", 0, 2**31, 0, help, cls=RenamedOption, former="--seed")


random_state_option = _number("random-state", 0, 2**32 - 1, 0, "Seed of the random numbers.")
set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    type=_setting,
    callback=lambda _, __, given: dict(given),
    metavar="NAME=VALUE",
    help="Setting of the method, such as max_rounds=3; repeatable (default: none).",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
STORE = "runs.sqlite"


home_option = click.option(
    "--data-home",
    "data_home",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of the data sets (default: APPELLATE_DATA_HOME, or a folder in your cache).",
)


def refuse_to_replace(
    out: Path, given: Iterable[str | None], titles: Iterable[str], needed: Iterable[str]
) -> None:
    """Refuse to write over what is read, or over a file that is not an earlier result.

    An earlier result has all columns that are needed, and none except `titles`.
    """
    from numpy import load

    from appellate.tables import read_table

    if not out.exists():
        return
    if any(Path(each).exists() and out.samefile(each) for each in given if each):
        raise UserError(f"--out '{out}' is also the input. Choose another file.")
    try:
        found = {*(load(out) if out.suffix.lower() == ".npz" else read_table(out).names)}
    except (OSError, ValueError):
        found = set()
    if not {*needed} <= found <= {*titles}:
        raise UserError(
            f"--out '{out}' exists and was not written by this command. Choose another file, or "
            "remove this one."
        )


def run_options(folder: str) -> Callable[[Command], Command]:
    """Add the options that say how runs are computed and where results are kept."""
    folder_help = "Output folder for tables, figures and index.html."
    backends = click.Choice(["loky", "dask"])
    store_help = f"File that stores finished runs (default: {STORE} in --out)."
    return _together(
        (
            out_option(folder_help, metavar="DIR", default=folder, show_default=True),
            _number("splits", 1, 1000, 10, "Number of random 50/50 splits."),
            seed_option("Seed of the first split; each further split adds 1."),
            _number("n-jobs", 1, 1024, 2, "Number of worker processes, with one thread each."),
            click.option(
                "--backend",
                type=backends,
                default="loky",
                show_default=True,
                help="Workers: loky, processes on this machine; dask, a Dask cluster.",
            ),
            click.option(
                "--scheduler",
                metavar="ADDRESS",
                help="Address of the Dask scheduler (default: start a local cluster).",
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
        raise UserError("--scheduler needs the Dask backend. Add --backend dask.")
    wanted = {"matplotlib": "plot", "jinja2": "report"}
    wanted |= {"distributed": "dask"} if backend == "dask" else {}
    missing = {name: extra for name, extra in wanted.items() if find_spec(name) is None}
    if missing:
        raise UserError(
            f"This command needs {' and '.join(missing)}: {install(*missing.values())}"
        )
    with user_errors():
        check_writable(out / "index.html")
        page = out / "index.html"
        if page.exists() and b'content="appellate"' not in page.read_bytes()[:2000]:
            raise UserError(
                f"'{page}' exists and was not written by Appellate. Choose another --out, or move "
                "the file."
            )
