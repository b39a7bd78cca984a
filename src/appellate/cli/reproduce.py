"""``appellate reproduce``: the paper's tables and figures, ours beside its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from appellate.cli.errors import UserError
from appellate.cli.files import check_folder, staged

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from appellate.experiments.problems import Problem
    from appellate.experiments.protocol import Run
    from appellate.experiments.reports import Report
    from appellate.experiments.reproduction import Reproduction
    from appellate.experiments.runner import Summary
    from appellate.experiments.store import Store

STORE = "runs.sqlite"

_EPILOG = """\b
Tables:
  test-accuracy       Table 2: B and B-PLCP on held-out rows
  transductive        B and B-PLCP on their training rows
  correction-ratio    wrong verdicts that appeals correct, right ones they break
  ablation            without kernel, with the other partner, without blur
  collaborative-term  collaborative or aggressive link
  sensitivity         four curves over lambda, alpha, gamma, k on Lost
  trajectories        samples whose false label led and was corrected (Fig. 2)
  all                 all of them

\b
Examples:
  appellate reproduce test-accuracy --datasets lost --bases sure,aggd
  appellate reproduce all --out reproduction
  appellate reproduce all --backend dask --scheduler tcp://10.0.0.1:8786

A run that was killed goes on where it was when the same command is given
again. The data sets are looked for in APPELLATE_DATA_HOME.
"""


def run_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how runs are computed and where they are kept."""
    options = (
        click.option(
            "--splits",
            type=click.IntRange(1, 1000),
            metavar="N",
            default=10,
            show_default=True,
            help="Number of random 50/50 splits.",
        ),
        click.option(
            "--seed",
            type=click.IntRange(0, 2**31),
            metavar="N",
            default=0,
            show_default=True,
            help="Seed of the first split; the next follow it.",
        ),
        click.option(
            "--n-jobs",
            type=click.IntRange(1, 1024),
            metavar="N",
            default=2,
            show_default=True,
            help="Worker processes, one thread each.",
        ),
        click.option(
            "--backend",
            type=click.Choice(["loky", "dask"]),
            default="loky",
            show_default=True,
            help="Processes of this machine, or a Dask cluster.",
        ),
        click.option(
            "--scheduler",
            metavar="ADDRESS",
            help="Dask scheduler to use; without it a local cluster is started.",
        ),
        click.option(
            "--store",
            "store_path",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help=f"File that keeps finished runs.  [default: {STORE} in --out]",
        ),
        click.option(
            "--json", "as_json", is_flag=True, help="Print the numbers as JSON, nothing else."
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


@click.command(epilog=_EPILOG, short_help="Reproduce the paper's tables and figures.")
@click.argument("table")
@click.option(
    "--datasets",
    metavar="NAMES",
    multiple=True,
    help="Data sets, separated by commas.  [default: the paper's six]",
)
@click.option(
    "--bases",
    metavar="NAMES",
    multiple=True,
    help="Base classifiers, separated by commas.  [default: the paper's six]",
)
@click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    default="appellate-reproduction",
    show_default=True,
    help="Folder for tables, figures and index.html; made if it does not exist.",
)
@run_options
def reproduce(
    table: str,
    datasets: tuple[str, ...],
    bases: tuple[str, ...],
    folder: Path,
    splits: int,
    seed: int,
    n_jobs: int,
    backend: str,
    scheduler: str | None,
    store_path: Path | None,
    as_json: bool,
) -> int:
    """Run TABLE of the paper on the data sets at hand, and show ours beside its own.

    B and B-PLCP run on the same splits with the same seeds. Data sets that are not there are
    named with the reason and left out.
    """
    check_setting(backend, scheduler)
    what = _read_request(table, datasets, bases, splits, seed)
    from appellate.experiments.reproduction import file_names, write_reports
    from appellate.experiments.results import Results

    check_folder(folder, file_names(what.possible()))
    with open_store(store_path or folder / STORE) as store:
        summary = compute(what.runs(), what.problems, store, n_jobs, backend, scheduler)
        results = Results(store, what.problems, what.splits)
    with staged(folder) as stage:
        reports = write_reports(what, results, stage)
    files = [str(path) for name in file_names(tuple(reports)) if (path := folder / name).exists()]
    if as_json:
        click.echo(_as_json(what, summary, reports, files))
    else:
        show_reports(reports.values())
        show_end(summary, what, folder)
    return 1 if summary.failures else 0


def check_setting(backend: str, scheduler: str | None) -> None:
    """Refuse before the work what would fail after it."""
    from importlib.util import find_spec

    if scheduler is not None and backend != "dask":
        raise UserError("--scheduler is for the Dask backend; add --backend dask.")
    wanted = {"matplotlib": "plot", "jinja2": "report"}
    wanted |= {"distributed": "dask"} if backend == "dask" else {}
    missing = {name: extra for name, extra in wanted.items() if find_spec(name) is None}
    if missing:
        raise UserError(
            f"this needs {' and '.join(missing)}: pip install 'appellate"
            f"[{','.join(missing.values())}]'"
        )


def _read_request(
    table: str, datasets: Sequence[str], bases: Sequence[str], splits: int, seed: int
) -> Reproduction:
    """Understand names, load data, and say what is missing."""
    from appellate.experiments.methods import BASES
    from appellate.experiments.problems import DATASETS, load_problems
    from appellate.experiments.reproduction import STUDIES, Reproduction
    from appellate.experiments.studies import DATASET
    from appellate.experiments.tables import TABLES

    names = choose([table], [*TABLES, "all"], "table")
    known = choose(split_names(datasets) or list(DATASETS), list(DATASETS), "data set")
    problems, missing = load_problems(known)
    what = Reproduction(
        tables=TABLES if "all" in names else tuple(names),
        bases=tuple(choose(split_names(bases) or list(BASES), list(BASES), "base classifier")),
        problems=problems,
        splits=tuple(range(seed, seed + splits)),
        missing=missing,
    )
    for reason in missing.values():
        click.echo(f"left out: {reason}", err=True)
    for name, reason in what.impossible().items():
        click.echo(f"left out: {name}: {reason}", err=True)
    if set(what.tables) <= set(STUDIES) and DATASET not in known:
        raise UserError(
            f"{', '.join(what.tables)}: this needs {DATASETS[DATASET].title}. Choose it too: "
            f"--datasets {','.join([*known, DATASET])}"
        )
    if not what.possible():
        raise UserError(
            "none of the data sets that this needs is there. Name the folder that has them "
            "with the environment variable APPELLATE_DATA_HOME."
        )
    return what


def split_names(values: Sequence[str]) -> list[str]:
    """Names given one by one or separated by commas."""
    return [name.strip() for value in values for name in value.split(",") if name.strip()]


def choose(names: Sequence[str], known: list[str], what: str) -> list[str]:
    """Resolve names whatever their spelling, each once; suggest the nearest to unknown ones."""
    from appellate.experiments.problems import resolve

    try:
        return list(dict.fromkeys(resolve(name, known, what) for name in names))
    except ValueError as error:
        raise UserError(str(error)) from error


def open_store(path: Path) -> Store:
    """Open the store, or say why not."""
    from appellate.experiments.store import Store, StoreError

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return Store(path)
    except OSError as error:
        raise UserError(
            f"cannot write the store '{path}': {error.strerror or error}. "
            "Name another file with --store."
        ) from error
    except StoreError as error:
        raise UserError(str(error)) from error


def compute(
    runs: Sequence[Run],
    problems: dict[str, Problem],
    store: Store,
    n_jobs: int,
    backend: str,
    scheduler: str | None,
) -> Summary:
    """Compute what the store does not have, under a display of the progress."""
    from appellate.cli.live import watch
    from appellate.experiments.cluster import ClusterError
    from appellate.experiments.runner import WorkerError, run_all
    from appellate.experiments.store import StoreError

    try:
        with watch(n_jobs) as monitor:
            return run_all(
                runs,
                problems,
                store,
                n_jobs=n_jobs,
                backend="dask" if backend == "dask" else "loky",
                scheduler=scheduler,
                begin=monitor.begin,
                report=monitor.report,
            )
    except (StoreError, ClusterError, WorkerError) as error:
        raise UserError(str(error)) from error


def show_reports(reports: Any) -> None:
    """Print the first sheet of every report."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    for report in reports:
        sheet = report.sheets[0]
        table = Table(
            title=report.title,
            title_justify="left",
            caption=report.caption,
            caption_justify="left",
            box=None,
            pad_edge=False,
        )
        for name in sheet.header:
            table.add_column(name, overflow="fold")
        for row in sheet.rows:
            table.add_row(*row, style="dim" if "paper" in row[:3] else None)
        console.print(table)
        console.print()


def show_end(summary: Summary, what: Reproduction, folder: Path) -> None:
    """Say what was computed, what failed, and where everything is."""
    click.echo(
        f"{summary.total} runs: {summary.found} were stored, {summary.computed} computed now."
    )
    show_failures(summary)
    from appellate.experiments.tables import TABLES

    page, made = folder / "index.html", what.possible()
    earlier = [t for t in TABLES if t not in made and (folder / f"{t}.md").exists()]
    click.echo(f"Tables, figures and a page with {', '.join(made)}: {page}")
    if earlier:
        click.echo(
            f"The page does not have {', '.join(earlier)}, made before; 'appellate reproduce all' "
            "makes one with everything."
        )


def show_failures(summary: Summary) -> None:
    """Name the runs that failed, and why."""
    from appellate.cli.live import describe

    for run, reason in summary.failures.items():
        click.echo(f"failed: {describe(run)}: {reason}", err=True)


def _as_json(
    what: Reproduction, summary: Summary, reports: dict[str, Report], files: list[str]
) -> str:
    import json

    from appellate.cli.live import describe

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
            "failures": {describe(run): why for run, why in summary.failures.items()},
        },
        "tables": {name: plain(report.records) for name, report in reports.items()},
        "files": files,
    }
    return json.dumps(document, indent=2, allow_nan=False)


def plain(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records with null for what is not a number."""
    return [
        {key: None if value != value else value for key, value in record.items()}
        for record in records
    ]
