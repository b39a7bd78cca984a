"""From the names of tables to runs, and from runs to files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from appellate.datasets.home import resolve
from appellate.experiments.layouts import plan
from appellate.experiments.methods import PAPER_BASES, Method, deep_missing
from appellate.experiments.problems import DATASETS, FURTHER, Dataset, load_problems
from appellate.experiments.protocol import Trial
from appellate.experiments.reports import Report, report_table
from appellate.experiments.results import Results, fill
from appellate.experiments.writing import write_folder
from appellate.methods import available_bases
from appellate.paper import studies
from appellate.paper.curves import CURVE_METHODS, curve_problems, report_curves
from appellate.paper.layouts import DECLARED, MEASURES, TABLES, make_table
from appellate.paper.rivals import report_rivals, rival_methods
from appellate.paper.studies import DATASET


@dataclass(frozen=True)
class Reproduction:
    """What shall be reproduced.

    Attributes
    ----------
    tables : tuple of str
        Tables of `EXPERIMENTS` that the available data sets allow.
    bases : tuple of str
        Registered names; the ablation, the collaborative term and the studies have PL-AGGD
        alone, as the paper.
    problems : dict of str to Problem
        Available data sets.
    splits : tuple of int
        Their seeds.
    missing : dict of str to str
        Data sets that are not there, and why.
    left_out : tuple of str
        Why data sets, tables and networks are left out.
    """

    tables: tuple[str, ...]
    bases: tuple[str, ...]
    problems: dict[str, Dataset]
    splits: tuple[int, ...]
    missing: dict[str, str]
    left_out: tuple[str, ...]

    def runs(self) -> list[Trial]:
        """All runs of all tables, each once."""
        found: dict[Trial, None] = {}
        for table, (name, problem) in product(self.tables, self.problems.items()):
            methods = EXPERIMENTS[table].methods(self.bases, problem)
            found |= dict.fromkeys(plan([name], methods, self.splits))
        return list(found)


@dataclass(frozen=True)
class Experiment:
    """A table or study.

    Attributes
    ----------
    methods : callable
        What is run on a problem, for some bases.
    report : callable
        From results, bases and reasons for data sets that are not there to the report.
    needs_lost : bool
        Whether it cannot be made without Lost.
    has_all : bool
        Whether all data sets and bases that are known are the default, not the paper's; and
        networks.
    load : callable
        From names of data sets to problems and reasons, as `load_problems`.
    """

    methods: Callable[[Sequence[str], Dataset], Iterable[Method]]
    report: Callable[[Results, Sequence[str], Mapping[str, str]], Report]
    needs_lost: bool = False
    has_all: bool = False
    load: Callable[[list[str]], tuple[dict[str, Dataset], dict[str, str]]] = load_problems


def _of_paper(name: str) -> Experiment:
    def report(results: Results, bases: Sequence[str], missing: Mapping[str, str]) -> Report:
        return report_table(fill(make_table(name, bases), results, MEASURES), results, missing)

    return Experiment(lambda bases, _: make_table(name, bases).methods(), report)


EXPERIMENTS = {name: _of_paper(name) for name in DECLARED} | {
    "sensitivity": Experiment(studies.sensitivity_methods, studies.report_sensitivity, True),
    "trajectories": Experiment(studies.traced, studies.report_trajectories, True),
    "authors": Experiment(
        lambda bases, _: studies.authors_tables(bases)[0].methods(),
        studies.report_authors,
        needs_lost=True,
        load=studies.load_with_raw_lost,
    ),
    "rivals": Experiment(rival_methods, report_rivals, has_all=True),
    "curves": Experiment(
        lambda *_: CURVE_METHODS, report_curves, load=lambda _: (curve_problems(), {})
    ),
}


def request(
    table: str, datasets: Iterable[str], bases: Iterable[str], splits: Iterable[int]
) -> Reproduction:
    """Understand names, separated by commas and however spelled, and load the data.

    Raises
    ------
    ValueError
        If a name is not known, or no table can be made; it says what to do.
    """

    def choose(
        given: Iterable[str], known: Iterable[str], usual: Iterable[str], what: str
    ) -> list[str]:
        names = [name.strip() for each in given for name in each.split(",")]
        return list(dict.fromkeys(resolve(n, list(known), what) for n in names or usual))

    name = resolve(table, [*EXPERIMENTS, "all"], "table")
    tables = TABLES if name == "all" else (name,)
    first, sets = EXPERIMENTS[tables[0]], [*DATASETS, *FURTHER]
    known = choose(datasets, sets, sets if first.has_all else DATASETS, "data set")
    usual = available_bases() if first.has_all else PAPER_BASES
    chosen = choose(bases, available_bases(), usual, "base classifier")
    problems, missing = first.load(known)
    lacking = [t for t in tables if EXPERIMENTS[t].needs_lost and DATASET not in problems]
    if DATASET not in known and len(lacking) == len(tables):
        raise ValueError(
            f"{', '.join(tables)}: this needs {DATASETS[DATASET].title}. Choose it too: "
            f"--datasets {','.join([*known, DATASET])}"
        )
    if not problems or len(lacking) == len(tables):
        reasons = "\n".join(missing.values())
        raise ValueError(f"all data sets that this needs are missing.\n{reasons}")
    why = f"it is made of Lost: {missing.get(DATASET, 'which is not among --datasets')}"
    networks = [deep_missing()] if first.has_all and deep_missing() else []
    left_out = (*missing.values(), *networks, *(f"{table}: {why}" for table in lacking))
    there = tuple(table for table in tables if table not in lacking)
    return Reproduction(there, tuple(chosen), problems, tuple(splits), missing, left_out)


def write_reports(what: Reproduction, results: Results, folder: Path) -> dict[str, Report]:
    """Write Markdown, CSV, LaTeX, figures and the page into a folder; return the reports.

    Raises
    ------
    ImportError
        If matplotlib (extra ``plot``) or jinja2 (extra ``report``) is missing.
    """
    reports = {
        table: EXPERIMENTS[table].report(results, what.bases, what.missing)
        for table in what.tables
    }
    write_folder(
        reports.values(),
        folder,
        what.tables,
        title="PLCP: the paper's tables, reproduced",
        lead="Every figure that the paper prints is next to the one computed here, on "
        f"{len(what.splits)} random 50/50 splits of each data set.",
        missing=list(what.missing.values()),
        rows=results.used(run.method for run in what.runs()),
    )
    return reports
