"""What the terminal shows: texts made safe, mistakes of the user, progress, reports.

Progress goes to the standard error: a bar on a terminal, plain lines elsewhere; nothing stays.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from appellate._text import printable

if TYPE_CHECKING:
    from appellate.experiments.problems import Dataset
    from appellate.experiments.protocol import Outcome, Trial
    from appellate.experiments.reports import Report
    from appellate.experiments.results import Results
    from appellate.experiments.runner import Summary

INTERRUPTED = 130  # 128 + SIGINT, as shells report it
_LINES = 20  # plain lines in all, about
_SECONDS = 30.0  # between plain lines, at most
_WITHIN = 5.0  # between plain lines on one step, at least


def say(text: str, *, err: bool = False) -> None:
    """Print text whose lines hold names from a table; escape sequences are made visible."""
    click.echo("\n".join(map(printable, text.split("\n"))), err=err)


class UserError(click.ClickException):
    """What was wrong, where, and what to do; ends the command with exit code 2."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        """Write the message to the standard error."""
        text = "\n".join(map(printable, self.format_message().splitlines()))
        click.echo(f"appellate: {text}", file=file, err=True)


@contextmanager
def user_errors() -> Iterator[None]:
    """Tell what the library says of the user's input, as it is, without a traceback.

    The library raises these for input that it refuses; a file that cannot be read or written,
    a package that is not installed and memory that is not there are the user's to mend too.
    """

    def tell(message: Warning | str, *_: Any) -> None:
        UserError(f"note: {message}").show()

    shown = warnings.showwarning
    warnings.showwarning = tell  # type: ignore[assignment]
    try:
        yield
    except BrokenPipeError:
        raise
    except (ValueError, OSError, ImportError, MemoryError) as error:
        text = " ".join(map(str, error.args)) if not isinstance(error, OSError) else str(error)
        raise UserError(text or "There is not enough memory. Use fewer rows.") from error
    finally:
        warnings.showwarning = shown


@contextmanager
def outside_errors() -> Iterator[None]:
    """Tell what went wrong outside of this program: files, the store, workers, the cluster."""
    try:
        yield
    except OSError as error:
        raise UserError(str(error)) from error


class Progress:
    """How much is done, of how much, since when.

    Either steps with names, of which `step` begins the next one; or many equal pieces of work,
    of which `done` ends one.

    Parameters
    ----------
    total : int
        Steps or pieces of work; 0 if `begin` will say so.
    bar : rich.progress.Progress or None
        What shows it; None for plain lines, now and then.
    """

    def __init__(self, total: int, bar: Any = None) -> None:
        self.total, self.note = total, ""
        self.found = self.ended = self.failed = 0
        self._begun = 0  # steps
        self._start = self._last = time.monotonic()
        self._bar, self._task = bar, None if bar is None else bar.add_task("", total=None)

    def begin(self, total: int, found: int = 0) -> None:
        """Learn how much there is to do, and how much of it was done in an earlier run."""
        self.total, self.found = total, found
        self._start = self._last = time.monotonic()
        self._show(f"{total} runs" + (f", {found} of them stored earlier" if found else ""))

    def step(self, text: str, *, within: bool = False) -> None:
        """Begin the next of the steps, those before it are done; or say how far this one is."""
        if within:
            self.note = f"{self.note.partition(', ')[0]}, {text}"
            self._show("")
            return
        self._begun += 1
        self.ended, self.note = self._begun - 1, text
        self._show(f"[{self._begun}/{max(self.total, self._begun)}] {text}")

    def done(self, note: str = "") -> None:
        """End a piece of work; the note is shown after the numbers."""
        self.ended, self.note = self.ended + 1, note or self.note
        every = max(1, (self.total - self.found) // _LINES)
        late = time.monotonic() - self._last > _SECONDS
        if self._bar is not None or late or not self.left or self.ended % every == 0:
            self._show(self.line())

    def fail(self, text: str) -> None:
        """End a piece of work that went wrong."""
        self.failed += 1
        if self._bar is None:
            say(f"failed: {text}", err=True)
        else:
            self._bar.console.print(printable(f"failed: {text}"), markup=False, highlight=False)
        self.done()

    @property
    def left(self) -> int:
        """Pieces of work that are not done yet."""
        return max(0, self.total - self.found - self.ended)

    def line(self) -> str:
        """Say how much is done, how fast, and when it will end by the work done so far."""
        seconds = time.monotonic() - self._start
        parts = [f"{self.found + self.ended} of {self.total} runs", f"{clock(seconds)} elapsed"]
        if self.ended and seconds > 0:
            rate = self.ended / seconds
            parts.append(f"{clock(self.left / rate)} left")
        parts += [f"{self.failed} failed"] if self.failed else []
        return " · ".join([*parts, self.note] if self.note else parts)

    def _show(self, text: str) -> None:
        """Move the bar; without one, say the text, or at times how far a step is."""
        if self._bar is not None:
            shown, done = self.note if self._begun else self.line(), self.found + self.ended
            change = {"total": self.total or None, "completed": done}
            self._bar.update(self._task, description=printable(shown), **change)
        elif text or time.monotonic() - self._last > _WITHIN:
            self._last = time.monotonic()
            say(text or self.note, err=True)


@contextmanager
def progress(total: int = 0) -> Iterator[Progress]:
    """Show progress while a block runs; see `Progress`."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield Progress(total)
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Rich

    columns = (BarColumn(24), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Rich(*columns, console=console, transient=True) as bar:
        yield Progress(total, bar)


def clock(seconds: float) -> str:
    """Write a time such as 1:02:03.

    Examples
    --------
    >>> clock(62), clock(3723)
    ('1:02', '1:02:03')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def compute_runs(
    runs: Sequence[Trial],
    problems: Mapping[str, Dataset],
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
    with outside_errors(), Store(path) as store:
        with progress() as shown:

            def report(run: Trial, outcome: Outcome) -> None:
                if outcome.error is not None:
                    shown.fail(f"{run}: {outcome.error}")
                    return
                score = outcome.scores.get("test", outcome.scores.get("covering"))
                if score is not None:
                    found = means.setdefault(run.dataset, {})
                    found.setdefault(run.method.title, []).append(score)
                best = (
                    (name, max((sum(each) / len(each), title) for title, each in some.items()))
                    for name, some in means.items()
                )
                told = (f"{title} {score:.3f} on {name}" for name, (score, title) in best)
                shown.done(f"best so far: {', '.join(told)}" if means else "")

            place = {"n_jobs": n_jobs, "backend": backend, "scheduler": scheduler}
            summary = run_all(runs, problems, store, begin=shown.begin, report=report, **place)
        return summary, Results(store, problems, splits)


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
