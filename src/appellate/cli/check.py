"""``appellate check``: whether a file holds the kind of labels that Appellate is for."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from appellate.cli.errors import UserError

if TYPE_CHECKING:
    from appellate.datasets.diagnosis import Diagnosis

_EPILOG = """\b
Examples:
  appellate check faces.csv
  appellate check faces.csv --candidates names --separator ";"
  appellate check crowd.csv --candidates ann --candidates ben    one a person
"""

_MEANING = {
    "partial-label": "of each row's labels one is true: this is what Appellate is for",
    "multi-label": "all labels of a row are true: Appellate is not for this",
    "noisy": "labels disagree",
    "plain": "one label a row: nothing is ambiguous",
}
_OTHER_KINDS = {
    ".jsonl": "JSON lines",
    ".ndjson": "JSON lines",
    ".json": "JSON",
    ".parquet": "Parquet",
    ".pq": "Parquet",
}
_FACTS = {
    "rows": "rows",
    "classes": "classes",
    "people": "people",
    "answers": "answers",
    "mean_size": "labels a row, on average",
    "largest": "labels in the largest set",
    "singletons": "rows with one label",
    "several": "rows with several labels",
    "full_sets": "rows with all labels",
    "empty": "rows without label",
    "truth_coverage": "of the rows have the truth in the set",
    "features": "features (columns of numbers)",
    "missing_cells": "empty feature cells",
}


@click.command(epilog=_EPILOG, short_help="Is this my problem? Look at a CSV file's labels.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--candidates",
    multiple=True,
    metavar="COL",
    help="Column of the labels; several times for one column a person. Guessed by default.",
)
@click.option("--truth", metavar="COL", help="Column of the true labels, if there is one.")
@click.option(
    "--separator",
    metavar="TEXT",
    help="What parts labels in a cell, '' if nothing does. Guessed by default.",
)
@click.option("--delimiter", metavar="CHAR", help="What parts cells. Guessed by default.")
@click.option("--encoding", default="utf-8", show_default=True, help="How letters are stored.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")
def check(
    file: Path,
    candidates: tuple[str, ...],
    truth: str | None,
    separator: str | None,
    delimiter: str | None,
    encoding: str,
    as_json: bool,
) -> None:
    """Say what kind of labels a CSV file holds, and what to type next.

    Partial-label, multi-label, noisy or plain, with the facts behind it.
    """
    from appellate.datasets.diagnosis import diagnose_csv

    if str(file) == "-" or file.suffix.lower() in _OTHER_KINDS:
        raise UserError(
            f"check reads CSV files only, not {_OTHER_KINDS.get(file.suffix.lower(), '-')}. Save "
            "the table as CSV to check it; appellate rectify reads it as it is."
        )
    delimiter = "\t" if delimiter == "\\t" else delimiter
    try:
        found = diagnose_csv(
            file,
            candidates=candidates or None,
            truth=truth,
            separator=separator,
            delimiter=delimiter,
            encoding=encoding,
        )
    except (OSError, ValueError) as error:
        said = str(error).replace("Name it;", "Name it with --candidates COL;")
        raise UserError(said) from error
    if as_json:
        click.echo(json.dumps({"file": str(file)} | found.to_dict(), indent=2))
    else:
        _show(file, found, converted=not _is_known(file, delimiter, encoding))


def _is_known(file: Path, delimiter: str | None, encoding: str) -> bool:
    """Tell whether rectify, which has no such options, reads a file in the same way."""
    from appellate.datasets.textfiles import read_header

    if encoding.lower() not in ("utf-8", "utf8", "utf-8-sig", "ascii"):
        return False
    try:
        mark = read_header(file).delimiter
    except ValueError:
        return False
    return delimiter in (None, mark)


def _show(file: Path, found: Diagnosis, *, converted: bool) -> None:
    click.secho(f"{file}: {found.kind}", bold=True)
    click.echo(f"  {_MEANING[found.kind]}\n")
    click.echo(f"Why: {found.reason}")
    click.echo(f"Read: {_read(found)}\n")
    for key, text in _FACTS.items():
        value = found.facts.get(key)
        if value is not None:
            number = f"{value:.1%}" if key == "truth_coverage" else _number(value)
            click.echo(f"  {number:>8}  {text}")
    if found.facts.get("other_columns"):
        click.echo(f"  other columns: {', '.join(found.facts['other_columns'])}")
    if found.problems:
        click.echo("\nMend first (rows count from 0, without the header):")
        for problem in found.problems:
            click.echo(f"  - {problem}")
    if found.notes:
        click.echo("\nNote:")
        for note in found.notes:
            click.echo(f"  - {note}")
    if found.kind == "plain" and len(found.columns) == 1:
        click.echo(
            "\nIf the candidates are elsewhere, name their column with --candidates COL (again "
            "for each person),\nor what parts them with --separator."
        )
    command = _rectify_command(file, found)
    if command:
        first = ", once the table is saved in UTF-8 and with commas between its cells"
        click.echo(f"\nNext, in the terminal{first if converted else ''}:\n")
        click.secho(f"    {command}", fg="cyan")
    click.echo("\nNext, in Python:\n" if not command else "\nOr in Python:\n")
    click.secho("\n".join(f"    {line}".rstrip() for line in found.next.splitlines()), fg="cyan")


def _rectify_command(file: Path, found: Diagnosis) -> str | None:
    """Return the command that rectifies the file, where it has candidates or answers."""
    labels = _label_options(found)
    if not labels or found.facts["rows"] < 2 or found.facts["full_sets"] == found.facts["rows"]:
        return None
    words = ["appellate", "rectify", str(file), *labels]
    words += ["--truth", found.truth] if found.truth else []
    words += ["--id", found.ids] if found.ids else []
    if labels[0] == "--long" and not found.facts["other_columns"]:
        words += ["--embeddings", "FILE.npy"]
    return shlex.join([*words, "--out", file.stem])


def _label_options(found: Diagnosis) -> list[str]:
    """Return how rectify is told where the labels are; nothing if it cannot be."""
    if found.kind == "noisy" and found.layout == "long":
        return [] if "," in "".join(found.columns) else ["--long", ",".join(found.columns)]
    if found.kind == "noisy" and found.layout == "annotators":
        return [word for name in found.columns for word in ("--annotators", name)]
    if found.kind != "partial-label" or len(found.columns) != 1:
        return []
    parted = found.separator not in (None, "|")
    options = ["--separator", str(found.separator)] if parted else []
    return ["--candidates", found.columns[0], *options]


def _read(found: Diagnosis) -> str:
    names = ", ".join(repr(name) for name in found.columns)
    parts = [f"labels in {names}"]
    if found.separator:
        parts.append(f"parted by {found.separator!r}")
    if found.truth:
        parts.append(f"truth in {found.truth!r}")
    if found.ids:
        parts.append(f"row names in {found.ids!r}")
    return ", ".join(parts) + "."


def _number(value: Any) -> str:
    return str(value) if isinstance(value, int) else f"{value:.3g}"
