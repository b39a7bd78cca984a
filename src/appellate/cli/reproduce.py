"""``appellate reproduce``: the paper's tables and figures, ours next to its own."""

from __future__ import annotations

import json
from pathlib import Path

import click

from appellate.cli._options import STORE, check_run_options, hang, run_options
from appellate.cli._terminal import compute_runs, outside_errors, show_reports, user_errors
from appellate.experiments.methods import PAPER_BASES as PAPER
from appellate.methods.registry import TITLES as BASES

_OTHERS = (
    f"{', '.join(name for name in BASES if name not in PAPER)}, and those of installed plugins"
)
_EPILOG = f"""\b
Tables:
  test-accuracy       Table 2: B and B-PLCP on held-out rows
  transductive        B and B-PLCP on their training rows
  correction-ratio    first labels: wrong ones corrected, correct ones lost
  ablation            without kernel, with the other partner, without blur
  collaborative-term  collaborative or aggressive link
  sensitivity         four curves over lambda, alpha, gamma, k on Lost
  trajectories        samples whose wrong first label was corrected (Fig. 2)
  all                 all tables of this list

\b
Beyond the paper:
  authors             PLCP as in its authors' code, on Lost raw and z-scored,
                      and the effect of the paper's stopping rule
  rivals              ranking of all methods on all data sets you have: each
                      base alone, with PLCP, with a jury; jury; networks
  curves              accuracy with more candidates, missing true labels or
                      shared sets

\b
Examples:
  appellate reproduce test-accuracy --datasets lost --bases sure,aggd
  appellate reproduce all --out reproduction
  appellate reproduce all --backend dask --scheduler tcp://10.0.0.1:8786

\b
Names:
  the paper's data sets   fgnet, lost, msrcv2, mirflickr, soccer_player,
                          yahoo_news
  other data sets         birdsong, labelme, music_genre, fashion_uniform,
                          fashion_instance, fashion_set_first
{hang("the paper's bases", ", ".join(PAPER), 26)}
{hang("other bases", _OTHERS, 26)}

Data sets are read from APPELLATE_DATA_HOME. Networks need torch and run on the
first five splits. An interrupted run resumes when you repeat the command.
"""


@click.command(epilog=_EPILOG, short_help="Reproduce the paper's tables and figures.")
@click.argument("table")
@click.option(
    "--datasets",
    metavar="NAMES",
    multiple=True,
    help="Data sets, separated by commas (default: the paper's six; for rivals, all).",
)
@click.option(
    "--bases",
    metavar="NAMES",
    multiple=True,
    help="Base classifiers, separated by commas (default: the paper's six; for rivals, all).",
)
@run_options("appellate-reproduction")
def reproduce(
    table: str,
    datasets: tuple[str, ...],
    bases: tuple[str, ...],
    out: Path,
    splits: int,
    random_state: int,
    n_jobs: int,
    backend: str,
    scheduler: str | None,
    store: Path | None,
    as_json: bool,
) -> int:
    """Recompute TABLE of the paper, and compare our results with the published ones.

    Each base classifier B and its coupled version B-PLCP run on the same splits with the same
    seeds. The command skips data sets that you do not have, and says why. The exit code is 1 if
    a run failed.
    """
    check_run_options(out, backend, scheduler)
    from appellate.experiments.writing import file_names
    from appellate.paper.layouts import TABLES
    from appellate.paper.reproduction import request, write_reports

    with user_errors():
        what = request(table, datasets, bases, range(random_state, random_state + splits))
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
        f"{summary.total} runs: {summary.found} stored earlier, {summary.computed} computed now."
    )
    click.echo(
        f"wrote tables, figures and a page with {', '.join(reports)}: open {out / 'index.html'}"
    )
    earlier = [t for t in TABLES if t not in reports and (out / f"{t}.md").exists()]
    if earlier:
        click.echo(
            f"The page does not show the earlier {', '.join(earlier)}. Run 'appellate reproduce "
            "all' for a page with everything."
        )
    return 1 if summary.failures else 0
