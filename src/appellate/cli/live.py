"""The progress of many runs: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

    from appellate.experiments.protocol import Outcome, Run

_LINES = 20  # plain lines in all, about
_SECONDS = 30.0  # between plain lines, at most


class Monitor:
    """Counts of a series of runs, and what to say of them.

    Parameters
    ----------
    n_jobs : int
        Runs that may be under way at once.
    """

    def __init__(self, n_jobs: int) -> None:
        self.n_jobs = n_jobs
        self.total = self.found = self.done = self.failed = 0
        self.best: dict[str, tuple[float, str]] = {}
        self._start = time.monotonic()
        self._sums: dict[tuple[str, str], tuple[float, int]] = {}

    def begin(self, total: int, found: int) -> None:
        """Learn how many runs are wanted and how many were there."""
        self.total, self.found = total, found
        self._start = time.monotonic()

    def report(self, run: Run, outcome: Outcome) -> None:
        """Count a run that is done."""
        self.done += 1
        self.failed += outcome.error is not None
        score = outcome.scores.get("test", outcome.scores.get("covering"))
        if score is not None:
            key = run.dataset, run.method.title
            total, n = self._sums.get(key, (0.0, 0))
            self._sums[key] = total + score, n + 1
            self.best[run.dataset] = max(
                (s / n, title)
                for (name, title), (s, n) in self._sums.items()
                if name == run.dataset
            )

    @property
    def left(self) -> int:
        """Runs not done yet."""
        return self.total - self.found - self.done

    def line(self) -> str:
        """Say done, running, left, rate, time to go, failures and the best so far."""
        seconds = time.monotonic() - self._start
        rate = self.done / seconds if seconds > 0 else 0.0
        parts = [
            f"{self.found + self.done}/{self.total} done",
            f"{min(self.n_jobs, self.left)} running",
            f"{self.left} left",
        ]
        if self.done:
            parts.append(f"{rate:.1f} runs/s")
            parts.append(f"{_clock(self.left / rate if rate else 0.0)} to go")
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.best:
            best = (f"{name} {score:.3f} {title}" for name, (score, title) in self.best.items())
            parts.append("best so far " + ", ".join(best))
        return " · ".join(parts)


@contextmanager
def watch(n_jobs: int) -> Iterator[Monitor]:
    """Show a monitor on the standard error while runs go on."""
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_terminal:
        yield from _live(console, n_jobs)
    else:
        yield _Lines(n_jobs)


class _Lines(Monitor):
    """Says a line now and then."""

    _last = 0.0

    def begin(self, total: int, found: int) -> None:
        super().begin(total, found)
        self._last = time.monotonic()
        click.echo(f"{total} runs, {found} of them stored already", err=True)

    def report(self, run: Run, outcome: Outcome) -> None:
        super().report(run, outcome)
        step = max(1, (self.total - self.found) // _LINES)
        if outcome.error is not None:
            click.echo(f"failed: {describe(run)}: {outcome.error}", err=True)
        if self.done % step == 0 or not self.left or time.monotonic() - self._last > _SECONDS:
            self._last = time.monotonic()
            click.echo(self.line(), err=True)


def _live(console: Console, n_jobs: int) -> Iterator[Monitor]:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(24), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)
        yield _Bar(n_jobs, progress, task)


class _Bar(Monitor):
    """Moves a bar."""

    def __init__(self, n_jobs: int, progress: Any, task: Any) -> None:
        super().__init__(n_jobs)
        self._progress, self._task = progress, task

    def begin(self, total: int, found: int) -> None:
        super().begin(total, found)
        self._move()

    def report(self, run: Run, outcome: Outcome) -> None:
        super().report(run, outcome)
        self._move()

    def _move(self) -> None:
        self._progress.update(
            self._task,
            total=self.total,
            completed=self.found + self.done,
            description=self.line(),
        )


def describe(run: Run) -> str:
    """Name a run."""
    return f"{run.method.title} on {run.dataset}, split {run.split}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
