"""``appellate compare``: base classifiers with and without a partner, on a user's own data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from appellate.cli.errors import UserError, in_options
from appellate.cli.files import check_folder, staged
from appellate.cli.reproduce import (
    STORE,
    check_setting,
    compute,
    open_store,
    plain,
    run_options,
    show_failures,
    show_reports,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from appellate.experiments.methods import Method
    from appellate.experiments.problems import Problem
    from appellate.experiments.tables import Table

_NAMES = [
    f"{table}.{ending}"
    for table in ("comparison", "training-rows")
    for ending in ("md", "csv", "tex", "png", "pdf")
]

_OPTIONS = {
    "Name the feature columns with features=, or the others with ids= and ignore=.": (
        "If the column is no feature, name it with --ids, --truth or --ignore."
    ),
    "Name it with truth=, leave it out with ignore=, or name the features with features=.": (
        "Name it with --truth, or leave it out with --ignore."
    ),
    "Name them with features=.": "Leave fewer out with --ignore.",
    "Pass noisy=True if that is meant.": (
        "Correct these rows, or take --truth away and leave its column out with --ignore."
    ),
}

_EPILOG = """\b
Examples:
  appellate compare my.csv --truth label
  appellate compare lost --methods sure --methods knn:n_neighbors=5
  appellate compare my.mat --methods aggd,their-base --splits 20

A method is the name of a base classifier, ours (knn, svm, sure, lalo, aggd,
plcl) or an installed third party's, with settings after a colon if wanted.
"""


@click.command(epilog=_EPILOG, short_help="Compare methods on your own data.")
@click.argument("data")
@click.option(
    "--methods",
    metavar="NAMES",
    multiple=True,
    help="Base classifiers, separated by commas; several settings of one need an option "
    "each.  [default: knn,sure,aggd]",
)
@click.option("--candidates", metavar="COL", help="Column of the candidates in a CSV file.")
@click.option("--separator", help="Between two candidates in a CSV file.  [default: |]")
@click.option("--truth", metavar="COL", help="Column of the true labels in a CSV file, if known.")
@click.option("--ids", metavar="COL", help="Column of the names of the rows in a CSV file.")
@click.option("--ignore", metavar="COL", multiple=True, help="Column of a CSV file to leave out.")
@click.option(
    "--no-scaling",
    is_flag=True,
    help="Leave the features as they are. By default those of a file are shifted and scaled to "
    "mean 0 and deviation 1 of the training rows of every split.",
)
@click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    default="appellate-comparison",
    show_default=True,
    help="Folder for the table, the figure and index.html; made if it does not exist.",
)
@run_options
def compare(
    data: str,
    methods: tuple[str, ...],
    candidates: str | None,
    separator: str | None,
    truth: str | None,
    ids: str | None,
    ignore: tuple[str, ...],
    no_scaling: bool,
    folder: Path,
    splits: int,
    seed: int,
    n_jobs: int,
    backend: str,
    scheduler: str | None,
    store_path: Path | None,
    as_json: bool,
) -> int:
    """Compare base classifiers with and without a partner on DATA.

    DATA is a CSV or .mat file, or the name of one of the paper's data sets. Every base B and
    its coupled version B-PLCP run on the same random 50/50 splits; the partner alone and plain
    ridge regression stand beside them. Without true labels the share of test rows whose prediction
    is among their candidates is compared instead of the accuracy. With them, a second table
    has the labels that training rows get, and how many wrong verdicts were corrected.
    """
    check_setting(backend, scheduler)
    check_folder(folder, [*_NAMES, "index.html"])
    pairs = _read_methods(methods)
    problem = _load(
        data,
        candidates=candidates,
        separator=separator,
        truth=truth,
        ids=ids,
        ignore=ignore,
        scale=not no_scaling,
    )
    tables = [_declare(problem, pairs)]
    if problem.truth is not None:
        tables.append(_declare_training(pairs))
    from appellate.experiments.results import Results
    from appellate.experiments.tables import plan

    problems, numbers = {problem.name: problem}, range(seed, seed + splits)
    with open_store(store_path or folder / STORE) as store:
        methods_used = [method for table in tables for method in table.methods()]
        runs = plan([problem.name], methods_used, numbers)
        summary = compute(runs, problems, store, n_jobs, backend, scheduler)
        results = Results(store, problems, numbers)
    reports = _write(tables, problem, results, folder)
    if as_json:
        import json

        names = ("table", "training_rows")
        told = {name: plain(each.records) for name, each in zip(names, reports, strict=False)}
        click.echo(json.dumps(told, indent=2, allow_nan=False))
    else:
        show_reports(reports)
        show_failures(summary)
        click.echo(f"Tables, figures and a page with all of them: {folder / 'index.html'}")
    return 1 if summary.failures else 0


def _load(data: str, *, scale: bool, **given: Any) -> Problem:
    from appellate.experiments.problems import UnavailableError, load_own

    idle = [name for name in ("separator", "ids", "ignore") if given[name]]
    if idle and Path(data).suffix.lower() == ".mat":
        raise UserError(f"--{idle[0]} is for CSV files; '{data}' is none. Leave it out.")
    try:
        return load_own(data, scale=scale, **{name: v for name, v in given.items() if v})
    except (UnavailableError, OSError, ValueError, ImportError) as error:
        raise UserError(in_options(str(error), _OPTIONS)) from error


def _read_methods(methods: Sequence[str]) -> list[tuple[str, Method, Method]]:
    """Read every base, and return its title, itself alone and coupled."""
    from appellate.bases import make_base
    from appellate.experiments.methods import alone, coupled, parse_method

    pairs = []
    try:
        for text in _split(methods) or ["knn", "sure", "aggd"]:
            name, settings = parse_method(text)
            make_base(name, **settings)
            before = alone(name, **settings)
            pairs.append((before.title, before, coupled(name, base_settings=settings)))
    except (ValueError, TypeError, ImportError) as error:
        raise UserError(str(error)) from error
    return list(dict.fromkeys(pairs))


def _declare(problem: Problem, pairs: Sequence[tuple[str, Method, Method]]) -> Table:
    """Declare the table: every base alone and coupled, then the controls."""
    from appellate.experiments.methods import PARTNER_ALONE, RIDGE
    from appellate.experiments.tables import Line, Table

    known = problem.truth is not None
    score = "test" if known else "covering"
    lines = [
        line
        for title, before, after in pairs
        for line in (
            Line(title, before, score),
            Line(after.title, after, score, None, (after, before)),
        )
    ]
    lines += [
        Line("control: partner alone", PARTNER_ALONE, score),
        Line("control: ridge on uniform confidence", RIDGE, score),
    ]
    measure = "Accuracy on held-out rows"
    if not known:
        measure = "Share of held-out rows whose prediction is among their candidates"
    return Table(
        "comparison",
        f"Comparison on {problem.title}",
        f"{measure}, mean and standard deviation over splits. A bullet (•) or circle (○) means "
        "that B-PLCP is significantly better or worse than B (paired t-test at 0.05).",
        "",
        tuple(lines),
        pairs=tuple(pairs),
    )


def _declare_training(pairs: Sequence[tuple[str, Method, Method]]) -> Table:
    """Declare the table of training rows: their labels, and what the appeals changed."""
    from appellate.experiments.tables import Line, Table

    lines = [
        line
        for title, before, after in pairs
        for line in (
            Line(title, before, "transductive"),
            Line(after.title, after, "transductive", None, (after, before)),
            Line(f"{after.title}, wrong verdicts corrected", after, "corrected"),
            Line(f"{after.title}, right verdicts broken", after, "broken"),
        )
    ]
    return Table(
        "training-rows",
        "Training rows",
        "Share of training rows whose label, the best of their candidates, is true, mean and "
        "standard deviation over splits; then the share of wrong verdicts whose appeal is right, "
        "and of right verdicts whose appeal is wrong. A bullet (•) or circle (○) means that "
        "B-PLCP is significantly better or worse than B (paired t-test at 0.05).",
        "",
        tuple(lines),
        pairs=tuple(pairs),
    )


def _split(methods: Sequence[str]) -> list[str]:
    """Separate names at commas, but keep the commas of settings."""
    return [
        part.strip()
        for text in methods
        for part in ([text] if ":" in text else text.split(","))
        if part.strip()
    ]


def _write(tables: Sequence[Table], problem: Problem, results: Any, folder: Path) -> list[Any]:
    from appellate.experiments.figures import draw_table, save
    from appellate.experiments.page import render_page
    from appellate.experiments.reports import report_table
    from appellate.experiments.reproduction import write_texts
    from appellate.experiments.results import fill
    from appellate.experiments.tables import Column

    filled = [fill(table, results, [Column(problem.title, problem.name)]) for table in tables]
    reports = [report_table(each, results, {}) for each in filled]
    with staged(folder) as stage:
        pictures = {}
        for each, report in zip(filled, reports, strict=True):
            write_texts(report, stage)
            pictures[report.name] = save(draw_table(each), stage, report.name)
        page = render_page(
            reports,
            pictures,
            title=tables[0].title,
            lead=f"{len(problem.X)} samples, {problem.X.shape[1]} features, "
            f"{problem.candidates.shape[1]} classes.",
            rows=results.used(tables[0].methods()),
        )
        (stage / "index.html").write_text(page, encoding="utf-8")
    return reports
