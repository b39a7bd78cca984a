"""Progress on the standard error: a bar on a terminal, plain lines elsewhere; nothing stays."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

_LINES = 20  # plain lines in all, about
_SECONDS = 30.0  # between plain lines, at most


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

    def step(self, text: str) -> None:
        """Begin the next of the steps; those before it are done."""
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
        self._say(text)

    def _say(self, text: str) -> None:
        say(text, err=True)

    def _move(self) -> None:
        raise NotImplementedError


class _Lines(Progress):
    """Says a line now and then."""

    _last = 0.0

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
        self._bar.console.print(_printable(text), markup=False, highlight=False)

    def _move(self) -> None:
        named = self._begun > 0
        self._bar.update(
            self._task,
            total=self.total or None,
            completed=self.found + self.ended,
            description=_printable(self.note if named else self.line()),
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
    click.echo("\n".join(map(_printable, text.split("\n"))), err=err)


def _printable(text: str) -> str:
    from appellate.tables.cells import printable

    return printable(text)


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
