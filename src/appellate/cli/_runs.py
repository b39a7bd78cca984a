"""What the commands that compute many runs share: options, their computation, the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from appellate.cli._options import Command, json_option, out_option
from appellate.cli._progress import progress
from appellate.cli.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from appellate.experiments.problems import Problem
    from appellate.experiments.protocol import Outcome, Run
    from appellate.experiments.reports import Report
    from appellate.experiments.results import Results
    from appellate.experiments.runner import Summary

_STORE = "runs.sqlite"


def _number(name: str, least: int, most: int, default: int, help: str) -> Any:
    return click.option(
        f"--{name}",
        type=click.IntRange(least, most),
        metavar="N",
        default=default,
        show_default=True,
        help=help,
    )


def run_options(folder: str) -> Callable[[Command], Command]:
    """Add the options that say how runs are computed and where results are kept."""
    options = (
        out_option(
            "Folder for tables, figures and index.html; made if it does not exist.",
            metavar="DIR",
            default=folder,
            show_default=True,
        ),
        _number("splits", 1, 1000, 10, "Number of random 50/50 splits."),
        _number("seed", 0, 2**31, 0, "Seed of the first split; the next follow it."),
        _number("n-jobs", 1, 1024, 2, "Worker processes, one thread each."),
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
            type=click.Path(path_type=Path),
            metavar="FILE",
            help=f"File that keeps finished runs.  [default: {_STORE} in --out]",
        ),
        json_option,
    )

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def check_setting(out: Path, backend: str, scheduler: str | None) -> None:
    """Refuse before the work what would fail after it."""
    from importlib.util import find_spec

    from appellate._files import check_writable

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
    with told():
        check_writable(out / "index.html")


@contextmanager
def told() -> Iterator[None]:
    """Tell what went wrong outside of this program: files, the store, workers, the cluster."""
    try:
        yield
    except OSError as error:
        raise UserError(str(error)) from error


def compute(
    runs: Sequence[Run],
    problems: Mapping[str, Problem],
    splits: Sequence[int],
    path: Path,
    n_jobs: int,
    backend: Any,
    scheduler: str | None,
) -> tuple[Summary, Results]:
    """Compute what the store does not have, and show how far it is."""
    from appellate.experiments.results import Results
    from appellate.experiments.runner import run_all
    from appellate.experiments.store import Store

    means: dict[str, dict[str, list[float]]] = {}
    with told(), Store(path) as store:
        with progress() as shown:

            def report(run: Run, outcome: Outcome) -> None:
                if outcome.error is not None:
                    shown.fail(f"{run}: {outcome.error}")
                    return
                score = outcome.scores.get("test", outcome.scores.get("covering"))
                if score is not None:
                    found = means.setdefault(run.dataset, {})
                    found.setdefault(run.method.title, []).append(score)
                shown.done(_best(means))

            summary = run_all(
                runs,
                problems,
                store,
                n_jobs=n_jobs,
                backend=backend,
                scheduler=scheduler,
                begin=shown.begin,
                report=report,
            )
        return summary, Results(store, problems, splits)


def _best(means: dict[str, dict[str, list[float]]]) -> str:
    """Say which method is the best so far, by data set."""
    best = {
        name: max((sum(scores) / len(scores), title) for title, scores in found.items())
        for name, found in means.items()
    }
    said = (f"{name} {score:.3f} {title}" for name, (score, title) in best.items())
    return f"best so far {', '.join(said)}" if best else ""


def store_path(store: Path | None, out: Path) -> Path:
    """Return the file that keeps the runs."""
    return store or out / _STORE


def show_reports(reports: Iterable[Report]) -> None:
    """Print the first sheet of every report."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    for report in reports:
        sheet = report.sheets[0]
        table = Table(
            title=escape(report.title),
            title_justify="left",
            caption=escape(report.caption),
            caption_justify="left",
            box=None,
            pad_edge=False,
        )
        for name in map(escape, sheet.header):
            table.add_column(name, overflow="fold")
        for row in sheet.rows:
            table.add_row(*map(escape, row), style="dim" if "paper" in row[:3] else None)
        console.print(table)
        console.print()
