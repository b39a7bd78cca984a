"""``appellate datasets``: which data sets are known, which are there, and how to get them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from appellate.cli._options import json_option
from appellate.cli._terminal import user_errors

if TYPE_CHECKING:
    from appellate.datasets.catalogue import KnownDataset

_EPILOG = """\b
Examples:
  appellate datasets list          what is known, and what is in the data home
  appellate datasets info lost     its size, files, terms of use and citation
  appellate datasets fetch lost    show the terms of use, then download it
"""

_home = click.option(
    "--data-home",
    "home",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of the data sets; by default APPELLATE_DATA_HOME, or else one in your cache.",
)


@click.group(epilog=_EPILOG, short_help="List, describe and fetch data sets.")
def datasets() -> None:
    """List, describe and fetch the data sets that Appellate can load.

    They live in the data home, a folder that the environment variable APPELLATE_DATA_HOME
    names.
    """


@datasets.command("list", short_help="What is known, and what is in the data home.")
@_home
@json_option
def list_datasets(home: Path | None, as_json: bool) -> None:
    """List the known data sets and say which are in the data home."""
    from appellate.datasets.catalogue import known_datasets
    from appellate.datasets.home import get_data_home

    folder = get_data_home(home)
    rows = [_status(entry, folder) for entry in known_datasets().values()]
    if as_json:
        click.echo(json.dumps({"data_home": str(folder), "datasets": rows}, indent=2))
        return
    _show_list(folder, rows)


@datasets.command(short_help="Size, files, terms of use and citation of one.")
@click.argument("name")
@_home
@json_option
def info(name: str, home: Path | None, as_json: bool) -> None:
    """Say what is known of a data set, and check the files of it that are there."""
    from appellate.datasets.home import get_data_home

    entry, folder = _find(name), get_data_home(home)
    row = _status(entry, folder) | {
        "task": entry.task,
        "page": entry.page,
        "terms": entry.terms,
        "citation": entry.citation,
        "needs": list(entry.needs),
        "files": [_file_status(entry, folder, path) for path in entry.find(folder)],
    }
    if as_json:
        click.echo(json.dumps(row, indent=2))
        return
    _show_info(entry, folder, row)


@datasets.command(short_help="Show the terms of use, then download.")
@click.argument("name")
@_home
@json_option
def fetch(name: str, home: Path | None, as_json: bool) -> None:
    """Show the terms of use of a data set, then download what the data home lacks of it."""
    from appellate.datasets.download import fetch_dataset

    entry = _find(name)
    with user_errors():
        paths = fetch_dataset(
            entry.name, data_home=home, announce=lambda text: click.echo(text, err=True)
        )
    if as_json:
        files = {path: str(place) for path, place in paths.items()}
        click.echo(json.dumps({"name": entry.name, "files": files}, indent=2))
        return
    for place in paths.values():
        click.echo(f"{place} ({_size(place.stat().st_size)})")


def _find(name: str) -> KnownDataset:
    from appellate.datasets.catalogue import find_dataset

    with user_errors():
        return find_dataset(name)


def _status(entry: KnownDataset, folder: Path) -> dict[str, Any]:
    found = entry.find(folder)
    there = [place for place in found.values() if place is not None]
    n, q, l = entry.shape
    return {
        "name": entry.name,
        "title": entry.title,
        "samples": n,
        "features": q,
        "classes": l,
        "mean_candidates": entry.mean_candidates,
        "present": len(there) == len(found),
        "files_present": len(there),
        "files_needed": len(found),
        "bytes": sum(place.stat().st_size for place in there),
        "can_be_fetched": bool(entry.downloads),
    }


def _file_status(entry: KnownDataset, folder: Path, path: str) -> dict[str, Any]:
    """Say where a file is and whether it is the published one."""
    from appellate.datasets.home import sha256

    (file,) = (file for file in entry.files if file.path == path)
    place = file.find(folder, entry.name)
    published = None
    if place is not None and file.sha256 and place.suffix == Path(path).suffix:
        published = sha256(place) in file.sha256
    return {
        "path": path,
        "found": None if place is None else str(place),
        "bytes": None if place is None else place.stat().st_size,
        "published": published,
    }


def _show_list(folder: Path, rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("name", no_wrap=True)
    for heading in ("samples", "features", "classes", "candidates"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("in the data home", no_wrap=True)
    for row in rows:
        mean = "-" if row["mean_candidates"] is None else f"{row['mean_candidates']:.2f}"
        numbers = [str(row[key]) for key in ("samples", "features", "classes")]
        table.add_row(row["name"], *numbers, mean, _presence(row))
    console.print(table)
    click.echo(f"data home: {folder}")
    click.echo("appellate datasets info NAME says more, fetch NAME downloads.")


def _presence(row: dict[str, Any]) -> str:
    if row["present"]:
        return f"yes, {_size(row['bytes'])}"
    if row["files_present"]:
        return f"{row['files_present']} of {row['files_needed']} files"
    return "no" if row["can_be_fetched"] else "no, by hand"


def _show_info(entry: KnownDataset, folder: Path, row: dict[str, Any]) -> None:
    click.echo(f"{entry.title}: {entry.task}")
    click.echo(f"  {row['samples']} samples, {row['features']} features, {row['classes']} classes")
    if entry.mean_candidates is not None:
        click.echo(f"  {entry.mean_candidates:.2f} candidates a sample")
    click.echo(f"  load:  appellate.datasets.load_{entry.name}()")
    click.echo(f"  page:  {entry.page}")
    click.echo(f"  terms: {entry.terms}")
    click.echo(f"  cite:  {entry.citation}")
    if entry.needs:
        click.echo(f"  needs: {', '.join(entry.needs)}")
    click.echo("  files:")
    words = {True: "as published", False: "NOT the published file", None: "no known checksum"}
    for file in row["files"]:
        if file["found"] is None:
            click.echo(f"    {file['path']}: missing")
        else:
            size = _size(file["bytes"])
            click.echo(f"    {file['found']}: {size}, {words[file['published']]}")
    missing = [file["path"] for file in row["files"] if file["found"] is None]
    if missing and entry.downloads:
        click.echo(f"  get it: appellate datasets fetch {entry.name}")
    elif missing:
        click.echo(f"  {entry.instructions(folder, missing)}")


def _size(count: int) -> str:
    """Write a number of bytes in a few characters."""
    size = float(count)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
