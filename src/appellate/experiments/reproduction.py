"""From the names of tables to runs, and from runs to files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from appellate._files import whole_folder
from appellate.bases import available_bases
from appellate.experiments.authors import (
    RAW,
    authors_tables,
    load_lost_as_it_stands,
    report_authors,
)
from appellate.experiments.curves import (
    curve_problems,
    draw_curves,
    report_curves,
    rivals_of_curves,
)
from appellate.experiments.deep_methods import deep_missing
from appellate.experiments.methods import BASES, Method
from appellate.experiments.problems import DATASETS, FURTHER, Problem, load_problems, resolve
from appellate.experiments.protocol import Run
from appellate.experiments.reports import Report, Sheet, report_table, write_page, write_texts
from appellate.experiments.results import Results, TableResult, fill
from appellate.experiments.rivals import rank_sheet, report_rivals, rival_methods
from appellate.experiments.studies import DATASET, STUDIES
from appellate.experiments.tables import TABLES, Column, Table, make_table, plan

OWN = ("authors", "rivals", "curves")  # tables that the paper does not have, and "all" leaves out
OF_LOST = {"authors", *STUDIES}  # tables that need it
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
            for name in (*TABLES, *OWN)
            if name in self.tables
            and (DATASET in self.problems if name in OF_LOST else self.problems)
        )

    def left_out(self) -> list[str]:
        """Data sets that are not there and tables that cannot be made, and why."""
        lost = f"it is made of Lost: {self.missing.get(DATASET, 'which is not among --datasets')}"
        absent = [deep_missing()] if "rivals" in self.tables and deep_missing() else []
        return [*self.missing.values(), *absent] + [
            f"{name}: {lost if name in OF_LOST else 'no data set is there'}"
            for name in self.tables
            if name not in self.possible()
        ]

    def methods(self, table: str) -> list[Method]:
        """Methods of a table."""
        if table in OWN:
            found = (m for p in self.problems.values() for m in self._own(table, p))
            return list(dict.fromkeys(found))
        if table in STUDIES:
            return list(STUDIES[table].methods())
        return make_table(table, self.bases).methods()

    def _own(self, table: str, problem: Problem) -> list[Method]:
        if table == "authors":
            return authors_tables(self.bases)[0].methods()
        return rivals_of_curves() if table == "curves" else rival_methods(self.bases, problem)

    def runs(self) -> list[Run]:
        """All runs of all tables, each once."""
        found: dict[Run, None] = {}
        for table in self.possible():
            if table in OWN:
                for name, problem in self.problems.items():
                    found |= dict.fromkeys(plan([name], self._own(table, problem), self.splits))
                continue
            datasets = [DATASET] if table in STUDIES else list(self.problems)
            found |= dict.fromkeys(plan(datasets, self.methods(table), self.splits))
        return list(found)


def request(
    table: str, datasets: Iterable[str], bases: Iterable[str], splits: Iterable[int]
) -> Reproduction:
    """Understand names, separated by commas and however spelled, and load the data.

    Raises
    ------
    ValueError
        If a name is not known, or no table can be made; it says what to do.
    """

    def choose(given: Iterable[str], known: Iterable[str], what: str) -> list[str]:
        names = [name.strip() for each in given for name in each.split(",")]
        return list(dict.fromkeys(resolve(n, list(known), what) for n in names or known))

    (name,) = choose([table], [*TABLES, *OWN, "all"], "table")
    datasets, bases = list(datasets), list(bases)
    known = choose(datasets, [*DATASETS, *FURTHER], "data set")
    if not datasets and name != "rivals":
        known = list(DATASETS)
    chosen = tuple(choose(bases, available_bases(), "base classifier"))
    if not bases and name != "rivals":
        chosen = tuple(BASES)
    problems, missing = (curve_problems(), {}) if name == "curves" else load_problems(known)
    if name == "authors" and DATASET in problems:
        problems[RAW.dataset] = load_lost_as_it_stands()
    tables = TABLES if name == "all" else (name,)
    what = Reproduction(tables, chosen, problems, tuple(splits), missing)
    if {*tables} <= OF_LOST and DATASET not in known:
        raise ValueError(
            f"{', '.join(tables)}: this needs {DATASETS[DATASET].title}. Choose it too: "
            f"--datasets {','.join([*known, DATASET])}"
        )
    if not what.possible():
        raise ValueError(
            "none of the data sets that this needs is there. Name the folder that has them with "
            "the environment variable APPELLATE_DATA_HOME."
        )
    return what


def file_names(tables: Iterable[str]) -> list[str]:
    """Names of the files that are written of some tables, if there is something to draw."""
    return [f"{table}.{ending}" for table in tables for ending in ENDINGS] + ["index.html"]


def write_reports(what: Reproduction, results: Results, folder: Path) -> dict[str, Report]:
    """Write Markdown, CSV, LaTeX, figures and the page into a folder; return the reports.

    Raises
    ------
    ImportError
        If matplotlib (extra ``plot``) or jinja2 (extra ``report``) is missing.
    """
    with whole_folder(folder, owned=file_names(what.possible())) as stage:
        reports = {table: _write_one(what, table, results, stage) for table in what.possible()}
        methods = dict.fromkeys(m for table in reports for m in what.methods(table))
        write_page(
            reports.values(),
            stage,
            title="PLCP: the paper's tables, reproduced",
            lead="Every figure that the paper prints stands beside the one computed here, on "
            f"{len(what.splits)} random 50/50 splits of each data set.",
            missing=list(what.missing.values()),
            rows=results.used(methods),
        )
    return reports


def write_comparison(
    tables: Sequence[Table], problem: Problem, results: Results, folder: Path
) -> list[Report]:
    """Write the tables of `make_comparison` into a folder, as `write_reports` does."""
    with whole_folder(folder, owned=file_names(["comparison", "training-rows"])) as stage:
        columns = [Column(problem.title, problem.name)]
        reports = [
            _write_table(fill(t, results, columns), results, {}, stage, rank_sheet(t, results))
            for t in tables
        ]
        write_page(
            reports,
            stage,
            title=tables[0].title,
            lead=f"{len(problem.X)} samples, {problem.X.shape[1]} features, "
            f"{problem.candidates.shape[1]} classes.",
            rows=results.used(tables[0].methods()),
        )
    return reports


def _write_one(what: Reproduction, table: str, results: Results, folder: Path) -> Report:
    """Write the files of one table and return its report."""
    from appellate.experiments import figures

    if table in OWN:
        if table == "authors":
            report, filled = report_authors(results, what.problems, what.bases, what.missing)
            figures.save(figures.draw_table(filled), folder, table)
        elif table == "rivals":
            report = report_rivals(results, what.problems, what.bases)
        else:
            report = report_curves(results, what.problems)
            figures.save(draw_curves(results), folder, table)
        write_texts(report, folder)
        return report
    if table not in STUDIES:
        filled = fill(make_table(table, what.bases), results)
        return _write_table(filled, results, what.missing, folder)
    report = STUDIES[table].report(results)
    figure = STUDIES[table].draw(what.problems[DATASET], results)
    if figure is not None:
        figures.save(figure, folder, table)
    write_texts(report, folder)
    return report


def _write_table(
    filled: TableResult,
    results: Results,
    missing: Mapping[str, str],
    folder: Path,
    *more: Sheet,
) -> Report:
    from appellate.experiments import figures

    report = report_table(filled, results, missing)
    report = replace(report, sheets=(*report.sheets, *more))
    figures.save(figures.draw_table(filled), folder, report.name)
    write_texts(report, folder)
    return report
