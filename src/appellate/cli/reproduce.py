"""``appellate reproduce``: the paper's tables and figures, ours beside its own."""

from __future__ import annotations

import json
from pathlib import Path

import click

from appellate.cli._options import STORE, check_run_options, run_options
from appellate.cli._terminal import compute_runs, outside_errors, show_reports, user_errors

_EPILOG = """\b
Tables:
  test-accuracy       Table 2: B and B-PLCP on held-out rows
  transductive        B and B-PLCP on their training rows
  correction-ratio    wrong verdicts that appeals correct, right ones they break
  ablation            without kernel, with the other partner, without blur
  collaborative-term  collaborative or aggressive link
  sensitivity         four curves over lambda, alpha, gamma, k on Lost
  trajectories        samples whose false label led and was corrected (Fig. 2)
  all                 all of these

\b
Beyond the paper:
  authors             PLCP as its authors' code has it, Lost raw and z-scored, and
                      what the paper's rule to stop would do
  rivals              every base alone, coupled as published, and with a jury as partner,
                      the jury and the networks, on every data set at hand, ranked
  curves              accuracy over more candidates, missing truth, shared sets

\b
Examples:
  appellate reproduce test-accuracy --datasets lost --bases sure,aggd
  appellate reproduce all --out reproduction
  appellate reproduce all --backend dask --scheduler tcp://10.0.0.1:8786

Data sets are fgnet, lost, msrcv2, mirflickr, soccer_player and yahoo_news of the
paper, and birdsong, labelme, music_genre, fashion_uniform, fashion_instance and
fashion_set_first; they are looked for in APPELLATE_DATA_HOME. Bases are plcl,
aggd, sure, lalo, svm and knn of the paper, ipal, clpl and ecoc, and those of
installed third parties. Networks need torch and have the first five splits.
A run that was killed goes on where it was when the same command is given again.
"""


@click.command(epilog=_EPILOG, short_help="Reproduce the paper's tables and figures.")
@click.argument("table")
@click.option(
    "--datasets",
    metavar="NAMES",
    multiple=True,
    help="Data sets, separated by commas.  [default: the paper's six, for rivals all]",
)
@click.option(
    "--bases",
    metavar="NAMES",
    multiple=True,
    help="Base classifiers, separated by commas.  [default: the paper's six, for rivals all]",
)
@run_options("appellate-reproduction")
def reproduce(
    table: str,
    datasets: tuple[str, ...],
    bases: tuple[str, ...],
    out: Path,
    splits: int,
    seed: int,
    n_jobs: int,
    backend: str,
    scheduler: str | None,
    store: Path | None,
    as_json: bool,
) -> int:
    """Run TABLE of the paper on the data sets at hand, and show ours beside its own.

    B and B-PLCP run on the same splits with the same seeds. Data sets that are not there are
    named with the reason and left out. The exit code is 1 if single runs failed.
    """
    check_run_options(out, backend, scheduler)
    from appellate.experiments.reproduction import file_names, request, write_reports
    from appellate.experiments.tables import TABLES

    with user_errors():
        what = request(table, datasets, bases, range(seed, seed + splits))
    for reason in what.left_out:
        click.echo(f"left out: {reason}", err=True)
    path = store or out / STORE
    summary, results = compute_runs(
        what.runs(), what.problems, what.splits, path, n_jobs, backend, scheduler
    )
    with outside_errors():
        reports = write_reports(what, results, out)
    if as_json:
        files = [str(file) for name in file_names(reports) if (file := out / name).exists()]
        document = {
            "setting": {
                "datasets": list(what.problems),
                "bases": list(what.bases),
                "splits": list(what.splits),
            },
            "missing": what.missing,
            "runs": {
                "total": summary.total,
                "stored": summary.found,
                "computed": summary.computed,
                "failures": {str(run): why for run, why in summary.failures.items()},
            },
            "tables": {name: report.plain() for name, report in reports.items()},
            "files": files,
        }
        click.echo(json.dumps(document, indent=2, allow_nan=False))
        return 1 if summary.failures else 0
    show_reports(reports.values())
    click.echo(
        f"{summary.total} runs: {summary.found} were stored, {summary.computed} computed now."
    )
    click.echo(f"Tables, figures and a page with {', '.join(reports)}: {out / 'index.html'}")
    earlier = [t for t in TABLES if t not in reports and (out / f"{t}.md").exists()]
    if earlier:
        click.echo(
            f"The page does not have {', '.join(earlier)}, made before; 'appellate reproduce all' "
            "makes one with everything."
        )
    return 1 if summary.failures else 0
