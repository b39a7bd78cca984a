"""From the names of tables to runs, and from runs to files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from appellate.experiments.methods import Method, coupled
from appellate.experiments.problems import Problem
from appellate.experiments.protocol import Run, split_rows
from appellate.experiments.reports import Report, report_table
from appellate.experiments.results import Results, fill
from appellate.experiments.studies import BASE, DATASET, sensitivity_methods, trace_methods
from appellate.experiments.study_reports import report_sensitivity, report_trajectories
from appellate.experiments.tables import TABLES, make_table, plan
from appellate.experiments.writing import to_csv, to_latex, to_markdown

STUDIES = ("sensitivity", "trajectories")  # on Lost alone
ENDINGS = ("md", "csv", "tex", "png", "pdf")


@dataclass(frozen=True)
class Reproduction:
    """What shall be reproduced.

    Attributes
    ----------
    tables : tuple of str
        Of `TABLES`.
    bases : tuple of str
        Registered names; the ablation, the collaborative term and the studies have PL-AGGD
        alone, as the paper.
    problems : dict of str to Problem
        Data sets that are there.
    splits : tuple of int
        Their seeds.
    missing : dict of str to str
        Data sets that are not there, and why.
    """

    tables: tuple[str, ...]
    bases: tuple[str, ...]
    problems: dict[str, Problem]
    splits: tuple[int, ...]
    missing: dict[str, str]

    def possible(self) -> tuple[str, ...]:
        """Tables that the data sets at hand allow, in the paper's order."""
        return tuple(
            name
            for name in TABLES
            if name in self.tables
            and (DATASET in self.problems if name in STUDIES else self.problems)
        )

    def impossible(self) -> dict[str, str]:
        """Tables that cannot be made, and why."""
        lost = f"it is made of Lost: {self.missing.get(DATASET, 'which is not among --datasets')}"
        return {
            name: lost if name in STUDIES else "no data set is there"
            for name in self.tables
            if name not in self.possible()
        }

    def methods(self, table: str) -> list[Method]:
        """Methods of a table."""
        if table == "sensitivity":
            return sensitivity_methods()
        if table == "trajectories":
            return list(trace_methods().values())
        return make_table(table, self.bases).methods()

    def runs(self) -> list[Run]:
        """All runs of all tables, each once."""
        found: dict[Run, None] = {}
        for table in self.possible():
            datasets = [DATASET] if table in STUDIES else list(self.problems)
            found |= dict.fromkeys(plan(datasets, self.methods(table), self.splits))
        return list(found)


def file_names(tables: Sequence[str]) -> list[str]:
    """Names of the files that `write_reports` makes, if there is something to draw."""
    return [f"{table}.{ending}" for table in tables for ending in ENDINGS] + ["index.html"]


def write_reports(what: Reproduction, results: Results, folder: Path) -> dict[str, Report]:
    """Write Markdown, CSV, LaTeX, figures and the page into a folder; return the reports.

    Raises
    ------
    ImportError
        If matplotlib (extra ``plot``) or jinja2 (extra ``report``) is missing.
    """
    from appellate.experiments.page import render_page

    reports = {table: _write_one(what, table, results, folder) for table in what.possible()}
    rows = results.used(dict.fromkeys(m for table in reports for m in what.methods(table)))
    page = render_page(
        list(reports.values()),
        {stem: folder / f"{stem}.png" for report in reports.values() for stem in report.figures},
        title="PLCP: the paper's tables, reproduced",
        lead="Every figure that the paper prints stands beside the one computed here, on "
        f"{len(what.splits)} random 50/50 splits of each data set.",
        missing=list(what.missing.values()),
        rows=rows,
    )
    (folder / "index.html").write_text(page, encoding="utf-8")
    return reports


def _write_one(what: Reproduction, table: str, results: Results, folder: Path) -> Report:
    """Write the files of one table and return its report."""
    from appellate.experiments import figures

    if table == "sensitivity":
        report = report_sensitivity(results)
        figures.save(figures.draw_sensitivity(results), folder, table)
    elif table == "trajectories":
        report = report_trajectories(results)
        _draw_trajectories(what.problems[DATASET], results, folder)
    else:
        filled = fill(make_table(table, what.bases), results)
        report = report_table(filled, results, what.missing)
        figures.save(figures.draw_table(filled), folder, table)
    write_texts(report, folder)
    return report


def write_texts(report: Report, folder: Path) -> None:
    """Write the Markdown, CSV and LaTeX files of a report."""
    texts = {"md": to_markdown(report), "csv": to_csv(report), "tex": to_latex(report)}
    for ending, text in texts.items():
        (folder / f"{report.name}.{ending}").write_text(text, encoding="utf-8")


def _draw_trajectories(problem: Problem, results: Results, folder: Path) -> None:
    """Fit PL-AGGD-PLCP on the first split again and draw two samples of each error."""
    from appellate.experiments import figures

    split = results.splits[0]
    row = results.row(DATASET, trace_methods()["PL-AGGD"], split)
    if row is None or row.details is None or problem.truth is None:
        return
    train, _ = split_rows(len(problem.X), split)
    model = coupled(BASE, settings={"keep_confidences": True}).build(split)
    model.fit(problem.X[train], problem.candidates[train])
    kinds = {
        example["position"]: kind
        for kind in ("starts high", "rises")
        for example in row.details["examples"][kind]
    }
    if kinds:
        figure = figures.draw_trajectories(model, kinds, problem.truth[train], train)
        figures.save(figure, folder, "trajectories")
