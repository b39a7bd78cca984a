"""``appellate datasets``: which data sets are known, which are downloaded, and how to get them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.filesize import decimal

from appellate.cli._options import home_option, json_option
from appellate.cli._terminal import as_typed, user_errors

if TYPE_CHECKING:
    from appellate.datasets.catalogue import DataFile, KnownDataset

_EPILOG = """\b
Examples:
  appellate datasets list          all data sets, and which ones you have
  appellate datasets info lost     size, files, terms of use and citation
  appellate datasets fetch lost    show the terms of use, then download
"""


@click.group(epilog=_EPILOG, short_help="List, describe and fetch data sets.")
def datasets() -> None:
    """List, describe and fetch the data sets that Appellate can load.

    They are stored in the data home. Set the environment variable APPELLATE_DATA_HOME to choose
    this folder.
    """


@datasets.command("list", short_help="List all data sets, and which ones you have.")
@home_option
@json_option
def list_datasets(data_home: Path | None, as_json: bool) -> None:
    """List the known data sets, and show which of them are in the data home."""
    from rich.console import Console
    from rich.table import Table

    from appellate.datasets.catalogue import known_datasets
    from appellate.datasets.home import get_data_home

    folder = get_data_home(data_home)
    rows = [_status(entry, folder) for entry in known_datasets().values()]
    if as_json:
        click.echo(json.dumps({"data_home": str(folder), "datasets": rows}, indent=2))
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("name", "samples", "features", "classes", "candidates", "in the data home"):
        left = heading.startswith(("name", "in "))
        table.add_column(heading, justify="left" if left else "right", no_wrap=True)
    for row in rows:
        mean = "-" if row["mean_candidates"] is None else f"{row['mean_candidates']:.2f}"
        numbers = [str(row[key]) for key in ("samples", "features", "classes")]
        there = "no" if row["can_be_fetched"] else "no, by hand"
        if row["files_present"]:
            there = f"{row['files_present']} of {row['files_needed']} files"
        if row["present"]:
            there = f"yes, {decimal(row['bytes'])}"
        table.add_row(row["name"], *numbers, mean, there)
    Console(highlight=False).print(table)
    click.echo(f"data home: {folder}")
    click.echo("next: appellate datasets info NAME, or appellate datasets fetch NAME")


@datasets.command(short_help="Show size, files, terms of use and citation.")
@click.argument("name")
@home_option
@json_option
def info(name: str, data_home: Path | None, as_json: bool) -> None:
    """Describe the data set NAME, and check those of its files that you have."""
    from appellate.datasets.home import get_data_home

    entry, folder = _find(name), get_data_home(data_home)
    told = {key: getattr(entry, key) for key in ("task", "page", "terms", "citation", "needs")}
    files = [_file_status(entry, file, folder) for file in entry.files]
    row = _status(entry, folder) | told | {"files": files}
    if as_json:
        click.echo(json.dumps(row, indent=2))
        return
    click.echo(f"{entry.title}: {entry.task}")
    click.echo("  {} samples, {} features, {} classes".format(*entry.shape))
    if entry.mean_candidates is not None:
        click.echo(f"  {entry.mean_candidates:.2f} candidates per sample")
    click.echo(f"  load:  appellate.datasets.load_{entry.name}()\n  page:  {entry.page}")
    click.echo(f"  terms: {entry.terms}\n  cite:  {entry.citation}")
    if entry.needs:
        click.echo(f"  needs: {', '.join(entry.needs)}")
    click.echo("  files:")
    words = {True: "as published", False: "NOT the published file", None: "no known checksum"}
    for file in files:
        there = f"{file['found']}: {decimal(file['bytes'] or 0)}, {words[file['published']]}"
        click.echo(f"    {there if file['found'] else file['path'] + ': missing'}")
    missing = [file["path"] for file in files if file["found"] is None]
    if missing and entry.downloads:
        click.echo(f"  get it: appellate datasets fetch {entry.name}")
    elif missing:
        click.echo(as_typed(f"  {entry.instructions(folder, missing)}"))


@datasets.command(short_help="Show the terms of use, then download.")
@click.argument("name")
@home_option
@json_option
def fetch(name: str, data_home: Path | None, as_json: bool) -> None:
    """Show the terms of use of the data set NAME, then download its missing files."""
    from appellate.datasets.download import fetch_dataset

    entry = _find(name)
    with user_errors():
        paths = fetch_dataset(
            entry.name, data_home=data_home, announce=lambda text: click.echo(text, err=True)
        )
    if as_json:
        files = {path: str(place) for path, place in paths.items()}
        click.echo(json.dumps({"name": entry.name, "files": files}, indent=2))
        return
    for place in paths.values():
        click.echo(f"{place} ({decimal(place.stat().st_size)})")


def _find(name: str) -> KnownDataset:
    from appellate.datasets.catalogue import find_dataset

    with user_errors():
        return find_dataset(name)


def _status(entry: KnownDataset, folder: Path) -> dict[str, Any]:
    found = entry.find(folder)
    there = [place for place in found.values() if place is not None]
    return {
        "name": entry.name,
        "title": entry.title,
        **dict(zip(("samples", "features", "classes"), entry.shape, strict=True)),
        "mean_candidates": entry.mean_candidates,
        "present": len(there) == len(found),
        "files_present": len(there),
        "files_needed": len(found),
        "bytes": sum(place.stat().st_size for place in there),
        "can_be_fetched": bool(entry.downloads),
    }


def _file_status(entry: KnownDataset, file: DataFile, folder: Path) -> dict[str, Any]:
    """Say where a file is and whether it is the published one."""
    from appellate.datasets.home import sha256

    place = file.find(folder, entry.name)
    if place is None:
        return {"path": file.path, "found": None, "bytes": None, "published": None}
    known = file.sha256 and place.suffix == Path(file.path).suffix
    published = sha256(place) in file.sha256 if known else None
    size = place.stat().st_size
    return {"path": file.path, "found": str(place), "bytes": size, "published": published}
