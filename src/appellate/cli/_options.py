"""Options that several commands share; they are called as the parameters in Python are."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Collection, Iterable
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

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
    "candidates": (
        "COL",
        "Column with candidate sets such as 'cat|dog', or 0/1 columns, one per label "
        "(default: detected).",
    ),
    "annotators": (
        "COL",
        "Annotator columns, one per annotator; repeat the option or use a pattern such as 'w*' "
        "(default: detected).",
    ),
    "long": (
        "ITEM,LABEL[,WHO]",
        "Item, label and annotator columns of a table with one answer per row "
        "(default: detected).",
    ),
    "counts": (
        "COL",
        "Vote-count columns, one per label, or a pattern such as 'n_*' (default: detected).",
    ),
    "id": ("COL", "Column with a unique row id (default: detected)."),
    "truth": (
        "COL",
        "Column with the true labels. Only used to report accuracy (default: detected).",
    ),
    "text": (
        "COL",
        "Text column, used as a feature; rectify also shows it on the review page (default: "
        "detected).",
    ),
    "image": (
        "COL",
        "Column with image files, shown on the review page; used as a feature with "
        "--image-model (default: detected).",
    ),
    "features": (
        "COL",
        "Feature columns, or a pattern such as 'p*' (default: all columns that are not ids, "
        "labels or constant).",
    ),
    "model_probabilities": (
        "PATTERN",
        "Pattern of the columns with class probabilities of a model, which count as one more "
        "answer per row: 'p_*' for p_cat and p_dog (default: none).",
    ),
    "ignore": ("COL", "Columns to ignore, or a pattern such as 'x*' (default: none)."),
    "embeddings": (
        "FILE.npy",
        "Precomputed features: a NumPy array with one row per item (default: none).",
    ),
    "text_model": (
        "NAME",
        "Model that turns text into features: a sentence-transformers folder or name "
        "(default: word and letter frequencies).",
    ),
    "image_model": (
        "FILE",
        "Model that turns images into features: a TorchScript or ONNX file, timm/NAME, "
        "torchvision/NAME or histograms (default: histograms, only without other features).",
    ),
    "groups": (
        "COL",
        "Column with the group of each row, such as the photo that a face comes from "
        "(default: none).",
    ),
    "separator": (
        "TEXT",
        "Character between labels within a cell, such as ';'. Use '' if each cell holds one "
        "label (default: detected).",
    ),
    "missing": ("TEXT", "Value that means 'no answer', such as -1 (default: detected)."),
    "delimiter": (
        "CHAR",
        "Column delimiter of a text file; for a tab, type a backslash and t (default: detected).",
    ),
    "encoding": ("NAME", "Text file encoding, such as latin-1 (default: detected)."),
    "decimal": ("[.|,]", "Decimal mark of numbers (default: detected)."),
    "sheet": ("NAME", "Excel sheet to read (default: the first)."),
    "question": (
        "NAME",
        "Question of a labelling-tool export to use (default: the one with the most answers).",
    ),
    "header": (
        "[first|none]",
        "Header row: first, or none if the file has no column names. Columns are then called "
        "0, 1, ... (default: first).",
    ),
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
    "home",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of the data sets (default: APPELLATE_DATA_HOME, or a folder in your cache).",
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
            _number("seed", 0, 2**31, 0, "Seed of the first split; each further split adds 1."),
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
