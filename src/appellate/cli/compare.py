"""``appellate compare``: methods side by side, on a user's own data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from appellate._table_options import LoadOptions, options_in
from appellate.cli._options import STORE, check_run_options, hang, run_options, table_options
from appellate.cli._terminal import (
    UserError,
    compute_runs,
    outside_errors,
    say,
    show_reports,
    user_errors,
)
from appellate.deep.registry import NETWORKS
from appellate.methods.registry import TITLES as BASES

_BASES = f"{', '.join(BASES)}, or a base classifier of an installed plugin"
_NETWORKS = f"{', '.join(NETWORKS)}; networks need torch and run on at most five splits"
_EPILOG = f"""\b
Examples:
  appellate compare my.csv --truth label
  appellate compare crowd.parquet --annotators 'w*' --methods jury,knn
  appellate compare lost --methods sure --methods knn:n_neighbors=5
  appellate compare my.mat --methods aggd,their-base --splits 20

\b
Methods:
  jury        the default of rectify
  testimony   for tables with annotators
{hang("base", _BASES, 14)}
{hang("network", _NETWORKS, 14)}

Settings follow a colon, for example proden:ambiguity=auto.
"""


# Images are not features here, and probabilities of a model are not a method.
_COLUMNS = [n for n in options_in(LoadOptions) if n not in ("image", "model_probabilities")]


@click.command(epilog=_EPILOG, short_help="Compare methods on your own data.")
@click.argument("data")
@click.option(
    "--methods",
    metavar="NAMES",
    multiple=True,
    default=["jury,knn,sure,aggd"],
    show_default=True,
    help="Methods to compare, separated by commas. Repeat the option to give one method several "
    "settings.",
)
@table_options(*_COLUMNS)
@click.option(
    "--no-scaling",
    is_flag=True,
    help="Leave numbers as they are (default: features of a file are encoded and scaled with the "
    "training rows of each split).",
)
@run_options("appellate-comparison")
def compare(
    data: str,
    methods: tuple[str, ...],
    no_scaling: bool,
    out: Path,
    splits: int,
    random_state: int,
    n_jobs: int,
    backend: str,
    scheduler: str | None,
    store: Path | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Compare methods on DATA: their accuracy on the same random 50/50 splits.

    DATA is a table as for rectify, a .mat file, or the name of one of the paper's data sets.
    Each base classifier B runs alone and with a partner (B-PLCP). The partner alone and ridge
    regression are included as baselines.

    If the table has no true labels, the command compares how often the prediction for a test row
    is one of its candidates. If it has true labels, a second table shows the accuracy on training
    rows, and how many wrong first labels were corrected.

    The exit code is 1 if a method failed on a split. The table then shows the other runs.
    """
    check_run_options(out, backend, scheduler)
    from appellate.experiments.layouts import make_comparison, plan
    from appellate.experiments.methods import read_methods
    from appellate.experiments.problems import load_own
    from appellate.experiments.writing import write_comparison

    with user_errors():
        chosen = read_methods(methods)
        if given["header"] == "first":
            del given["header"]  # which is for tables alone
        columns = {name: value for name, value in given.items() if value is not None}
        problem = load_own(data, scale=not no_scaling, **columns)
        if problem.candidates.shape[1] < 2:
            raise UserError(
                f"'{data}': all rows have the same label, so there is nothing to compare. Name "
                "the label column with --candidates."
            )
        tables = make_comparison(problem, chosen)
    numbers = range(random_state, random_state + splits)
    runs = plan([problem.name], (m for table in tables for m in table.methods()), numbers)
    path, problems = store or out / STORE, {problem.name: problem}
    summary, results = compute_runs(runs, problems, numbers, path, n_jobs, backend, scheduler)
    with outside_errors():
        reports = write_comparison(tables, problem, results, out)
    if as_json:
        names = ("table", "training_rows")
        document = {n: report.plain() for n, report in zip(names, reports, strict=False)}
        click.echo(json.dumps(document, indent=2, allow_nan=False))
    else:
        show_reports(reports)
        say(f"wrote tables, figures and a page with all of them: open {out / 'index.html'}")
    return 1 if summary.failures else 0
