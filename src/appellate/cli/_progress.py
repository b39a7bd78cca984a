"""Progress on the standard error: a bar on a terminal, plain lines elsewhere; nothing stays."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from appellate._text import printable
from appellate.cli.errors import outside_errors

if TYPE_CHECKING:
    from appellate.experiments.problems import Problem
    from appellate.experiments.protocol import Outcome, Run
    from appellate.experiments.reports import Report
    from appellate.experiments.results import Results
    from appellate.experiments.runner import Summary

_LINES = 20  # plain lines in all, about
_SECONDS = 30.0  # between plain lines, at most
_WITHIN = 5.0  # between plain lines on one step, at least


class Progress:
    """How much is done, of how much, since when.

    Either steps with names, of which `step` begins the next one; or many equal pieces of work,
    of which `done` ends one.
    """

    def __init__(self) -> None:
        self.total = self.found = self.ended = self.failed = 0
        self.note = ""
        self._begun = 0  # steps
        self._start = time.monotonic()

    def begin(self, total: int, found: int = 0) -> None:
        """Learn how much there is to do, and how much of it was done in an earlier run."""
        self.total, self.found = total, found
        self._start = time.monotonic()
        self._show(f"{total} to do" + (f", {found} of them done already" if found else ""))

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
        self._move()

    def fail(self, text: str) -> None:
        """End a piece of work that went wrong."""
        self.failed += 1
        self._say(f"failed: {text}")
        self.done()

    @property
    def left(self) -> int:
        """Pieces of work that are not done yet."""
        return max(0, self.total - self.found - self.ended)

    def line(self) -> str:
        """Say how much is done, how fast, and when it will end by the work done so far."""
        seconds = time.monotonic() - self._start
        parts = [f"{self.found + self.ended}/{self.total}", f"{clock(seconds)} gone"]
        if self.ended and seconds > 0:
            rate = self.ended / seconds
            fast = f"{rate:.1f} a second" if rate >= 1 else f"{1 / rate:.1f} s each"
            parts += [fast, f"{clock(self.left / rate)} to go"]
        parts += [f"{self.failed} failed"] if self.failed else []
        return " · ".join([*parts, self.note] if self.note else parts)

    def _show(self, text: str) -> None:
        if text:
            self._say(text)

    def _say(self, text: str) -> None:
        say(text, err=True)

    def _move(self) -> None:
        raise NotImplementedError


class _Lines(Progress):
    """Says a line now and then."""

    _last = 0.0

    def _show(self, text: str) -> None:
        now = time.monotonic()
        if text or now - self._last > _WITHIN:  # how far a step is, at times
            self._last = now
            self._say(text or self.note)

    def _move(self) -> None:
        now, step = time.monotonic(), max(1, (self.total - self.found) // _LINES)
        waited = now - max(self._last, self._start)
        if self.ended % step == 0 or not self.left or waited > _SECONDS:
            self._last = now
            self._say(self.line())


class _Bar(Progress):
    """Moves a bar."""

    def __init__(self, bar: Any) -> None:
        super().__init__()
        self._bar, self._task = bar, bar.add_task("", total=None)

    def _show(self, text: str) -> None:
        self._move()

    def _say(self, text: str) -> None:
        self._bar.console.print(printable(text), markup=False, highlight=False)

    def _move(self) -> None:
        named = self._begun > 0
        self._bar.update(
            self._task,
            total=self.total or None,
            completed=self.found + self.ended,
            description=printable(self.note if named else self.line()),
        )


@contextmanager
def progress(total: int = 0) -> Iterator[Progress]:
    """Show progress while a block runs.

    Parameters
    ----------
    total : int, default=0
        Steps or pieces of work; 0 if `Progress.begin` will say so.
    """
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        shown: Progress = _Lines()
        shown.total = total
        yield shown
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Rich

    columns = (BarColumn(24), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Rich(*columns, console=console, transient=True) as bar:
        shown = _Bar(bar)
        shown.total = total
        yield shown


def say(text: str, *, err: bool = False) -> None:
    """Print text whose lines hold names from a table; escape sequences are made visible."""
    click.echo("\n".join(map(printable, text.split("\n"))), err=err)


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
    with outside_errors(), Store(path) as store:
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
