"""Files of reports, and those of a comparison on a user's data."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from appellate._files import whole_folder
from appellate.experiments.layouts import Column, ResultTable
from appellate.experiments.problems import Dataset
from appellate.experiments.ranks import rank_sheet
from appellate.experiments.reports import Report, report_table, write_files, write_index
from appellate.experiments.results import Results, fill

REPORT_ENDINGS = ("md", "csv", "tex", "png", "pdf")


def file_names(tables: Iterable[str]) -> list[str]:
    """Names of the files that are written of some tables, if there is something to draw."""
    return [f"{table}.{ending}" for table in tables for ending in REPORT_ENDINGS] + ["index.html"]


def write_comparison(
    tables: Sequence[ResultTable], problem: Dataset, results: Results, folder: Path
) -> list[Report]:
    """Write the tables of `make_comparison` into a folder."""
    reports = []
    for table in tables:
        filled = fill(table, results, [Column(problem.title, problem.name)])
        report = report_table(filled, results, {})
        reports.append(replace(report, sheets=(*report.sheets, rank_sheet(table, results))))
    write_folder(
        reports,
        folder,
        ["comparison", "training-rows"],
        title=tables[0].title,
        lead=f"{len(problem.X)} samples, {problem.X.shape[1]} features, "
        f"{problem.candidates.shape[1]} classes.",
        rows=results.used(tables[0].methods()),
    )
    return reports


def write_folder(
    reports: Collection[Report], folder: Path, tables: Iterable[str], **page: Any
) -> None:
    """Write all files of some reports and their page; files of these tables are replaced."""
    with whole_folder(folder, owned=file_names(tables)) as stage:
        for report in reports:
            write_files(report, stage)
        write_index(reports, stage, **page)
