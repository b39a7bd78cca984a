"""``appellate compare``: methods side by side, on a user's own data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from appellate.cli._options import STORE, check_run_options, run_options, table_options
from appellate.cli._terminal import (
    UserError,
    compute_runs,
    outside_errors,
    show_reports,
    user_errors,
)

_EPILOG = """\b
Examples:
  appellate compare my.csv --truth label
  appellate compare crowd.parquet --annotators 'w*' --methods jury,knn
  appellate compare lost --methods sure --methods knn:n_neighbors=5
  appellate compare my.mat --methods aggd,their-base --splits 20

A method is jury, testimony (where people answered), a base classifier (knn,
svm, sure, lalo, aggd, plcl, ipal, clpl, ecoc, or an installed third party's)
or a network (proden, pico, rc, cc, lws, cavl, mse, exp, abs-mae, abs-gce, pop,
cr-dpll, solar, records; they need torch and have five splits at most), with
settings after a colon if wanted, such as proden:ambiguity=auto.
"""


@click.command(epilog=_EPILOG, short_help="Compare methods on your own data.")
@click.argument("data")
@click.option(
    "--methods",
    metavar="NAMES",
    multiple=True,
    default=["jury,knn,sure,aggd"],
    show_default=True,
    help="Separated by commas; several settings of one need an option each.",
)
@table_options(but=("image", "embeddings", "groups", "model_probabilities"))
@click.option(
    "--no-scaling",
    is_flag=True,
    help="Leave numbers as they are. By default features of a file are encoded and scaled by the "
    "training rows of every split.",
)
@run_options("appellate-comparison")
def compare(
    data: str,
    methods: tuple[str, ...],
    no_scaling: bool,
    out: Path,
    splits: int,
    seed: int,
    n_jobs: int,
    backend: str,
    scheduler: str | None,
    store: Path | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Compare the jury, and base classifiers and networks with and without a partner, on DATA.

    DATA is a table as for rectify, a .mat file, or the name of one of the paper's data sets.
    Every base B and its coupled version B-PLCP run on the same random 50/50 splits; the partner
    alone and plain ridge regression stand beside them. Without true labels the share of test
    rows whose prediction is among their candidates is compared instead of the accuracy. With
    them, a second table has the labels that training rows get, and how many wrong verdicts were
    corrected.

    The exit code is 1 if a method failed on a split, or all did: the table shows what is left.
    """
    check_run_options(out, backend, scheduler)
    from appellate.experiments.methods import read_methods
    from appellate.experiments.problems import load_own
    from appellate.experiments.reproduction import write_comparison
    from appellate.experiments.tables import make_comparison, plan

    with user_errors():
        chosen = read_methods(methods)
        if given["header"] == "first":
            del given["header"]  # which is for tables alone
        columns = {name: value for name, value in given.items() if value is not None}
        problem = load_own(data, scale=not no_scaling, **columns)
        if problem.candidates.shape[1] < 2:
            raise UserError(
                f"'{data}': all rows have the same label, so there is nothing to compare. Name "
                "the column of labels with --candidates."
            )
        tables = make_comparison(problem, chosen)
    numbers = range(seed, seed + splits)
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
        click.echo(f"Tables, figures and a page with all of them: {out / 'index.html'}")
    return 1 if summary.failures else 0
