"""Finished deep runs from their folders to a table on the terminal or in a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from appellate.cli.deep_runs import count_epochs, read_record, resume_command
from appellate.cli.errors import UserError
from appellate.cli.files import check_folder, staged

if TYPE_CHECKING:
    from appellate.experiments.reports import Report, Sheet

ENDINGS = (".md", ".csv", ".tex", ".json")


def check_target(target: Path) -> None:
    """Refuse a file that cannot be written, before any work."""
    if target.suffix not in ENDINGS:
        raise UserError(
            f"cannot write '{target}': name a file with --out that ends in {', '.join(ENDINGS)}."
        )
    check_folder(target.parent, [target.name])


def make_report(folders: Sequence[Path], *, all_heads: bool) -> Report:
    """Read the records of all folders, name those that are not finished, and report the rest."""
    from appellate.experiments.deep_lines import DeepTableError
    from appellate.experiments.deep_reports import report_deep

    records, left_out = {}, []
    for folder in dict.fromkeys(folders):
        record = read_record(folder)
        if record.get("results") is not None:
            records[str(folder)] = record
            continue
        settings = record.get("settings")
        total = settings.get("n_epochs", "?") if isinstance(settings, dict) else "?"
        left_out.append(
            f"'{folder}' is not finished ({count_epochs(folder)} of {total} epochs); go on with "
            f"it: {resume_command(folder)}"
        )
    try:
        return report_deep(records, all_heads=all_heads, left_out=left_out)
    except DeepTableError as error:
        raise UserError(str(error)) from error


def show(report: Report) -> None:
    """Print tables and notes."""
    from rich.console import Console

    console = Console(highlight=False)
    for sheet in report.sheets:
        console.print(_as_table(sheet))
        console.print()
    click.echo(report.caption)
    for note in report.notes:
        click.echo(f"- {note}")


def write(report: Report, target: Path) -> None:
    """Write the report in the format that the ending of the file names."""
    from appellate.cli.outputs import write_columns, write_json
    from appellate.experiments.writing import to_latex, to_markdown

    with staged(target.parent) as stage:
        path = stage / target.name
        if target.suffix == ".csv":
            names = list(report.records[0])
            write_columns({name: [r[name] for r in report.records] for name in names}, path)
        elif target.suffix == ".json":
            write_json(as_document(report), path)
        else:
            text = to_markdown(report) if target.suffix == ".md" else to_latex(report)
            path.write_text(text, encoding="utf-8")


def as_document(report: Report) -> dict[str, Any]:
    """Return all numbers and notes, for JSON."""
    return {"table": list(report.records), "notes": list(report.notes)}


def _as_table(sheet: Sheet) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=sheet.title, title_justify="left", box=None, pad_edge=False)
    for name in sheet.header:
        table.add_column(name, overflow="fold")
    for row in sheet.rows:
        table.add_row(*(Text(cell) for cell in row))  # a file name is no markup
    return table
