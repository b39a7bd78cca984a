"""What the terminal shows: texts made safe, mistakes of the user, progress, reports.

Progress goes to the standard error: a bar on a terminal, plain lines elsewhere; nothing stays.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from appellate import _table_options
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
_WHOLE = 10_000  # columns for the tables that other programs read
_NARROW = 24  # columns of a terminal below which nothing is wrapped
_COLUMNS = re.compile(r"(?: *\S+(?: \S+)*? {2,})+(?=\S)|(?: *- | *note: )")
_COMMAND = re.compile(r" {2,}(?:(?:appellate|pip|python) |(?:run = )?appellate\.)")
_TRAILING = re.compile(r"(?<=: )(?:appellate|pip install) \S.*$")
_OPTION = re.compile(r"--[a-z-]+")


def say(text: str, *, err: bool = False, bold: bool = False) -> None:
    """Print text whose lines hold names from a table; escape sequences are made visible.

    On a terminal, lines are wrapped at its width (`wrap_line`), and the text may be bold.
    Elsewhere every line stays whole, so that other programs can read it.
    """
    lines = list(map(printable, text.split("\n")))
    stream = sys.stderr if err else sys.stdout
    if stream.isatty():
        width = shutil.get_terminal_size().columns
        lines = [part for line in lines for part in wrap_line(line, width)]
        if bold and os.environ.get("TERM") != "dumb":
            lines = [click.style(line, bold=True) for line in lines]
    click.echo("\n".join(lines), err=err)


def wrap_line(line: str, width: int) -> list[str]:
    """Wrap a line at spaces, with a hanging indent.

    Further lines begin below the text after the first column: two spaces or more end a column. A
    command at the end of the line, an indented line of a shell or of Python, and an option with
    its value are never broken: they can be copied, even if they are wider than the terminal.

    Parameters
    ----------
    line : str
        One line of text.
    width : int
        Columns of the terminal; below 24 nothing is wrapped.

    Returns
    -------
    list of str

    Examples
    --------
    >>> for part in wrap_line("written     'birds': docket.csv, docket.html, model", 34):
    ...     print(part)
    written     'birds': docket.csv,
                docket.html, model
    """
    from rich.cells import cell_len

    if width < _NARROW or cell_len(line) <= width or _COMMAND.match(line):
        return [line]
    leading = len(line) - len(line.lstrip(" "))
    head = _COLUMNS.match(line)
    start = head.group() if head else line[:leading]
    hang = cell_len(start)
    if hang > width // 2:  # too little room is left
        start, hang = line[:leading], min(leading + 2, width // 2)
    words = _words(line[len(start) :])
    out, current = [], start
    empty = True
    for gap, word in words:
        spaced = current + ("" if empty else gap) + word
        if empty or cell_len(spaced) <= width:
            current, empty = spaced, False
        else:
            out.append(current)
            current, empty = " " * hang + word, False
    return [*out, current]


def _words(text: str) -> list[tuple[str, str]]:
    """Split a text at spaces, into the spaces before a word and the word.

    A command at the end of the text, and an option with its value, are one word.
    """
    command = _TRAILING.search(text)
    words: list[tuple[str, str]] = []
    for gap, word in re.findall(r"(\s*)(\S+)", text[: command.start()] if command else text):
        if words and _OPTION.fullmatch(words[-1][1]) and not word.startswith("--"):
            words[-1] = words[-1][0], f"{words[-1][1]} {word}"
        else:
            words.append((gap, word))
    return [*words, (" ", command.group())] if command else words


def as_typed(message: str) -> str:
    """Return a message of the library with the options of the command that runs, as typed.

    An option that has two names is named as the user typed it, otherwise by its first name.
    """
    context = click.get_current_context(silent=True)
    if context is None:
        return _table_options.with_options(message)
    typed = {word.partition("=")[0] for word in context.find_root().obj or ()}
    options = (each for each in context.command.params if isinstance(each, click.Option))
    names = {
        str(each.name): next((word for word in each.opts if word in typed), each.opts[0])
        for each in options
    }
    return _table_options.with_options(message, names)


class UserError(click.ClickException):
    """What was wrong, where, and what to do; ends the command with exit code 2."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        """Write the message to the standard error."""
        text = "\n".join(map(printable, self.format_message().splitlines()))
        if file is not None:
            click.echo(f"appellate: {text}", file=file)
        else:
            say(f"appellate: {text}", err=True)


@contextmanager
def user_errors() -> Iterator[None]:
    """Tell what the library says of the user's input, as it is, without a traceback.

    The library raises these for input that it refuses; a file that cannot be read or written,
    a package that is not installed and memory that is not there are the user's to fix too.
    """

    def tell(message: Warning | str, *_: Any) -> None:
        UserError(f"note: {as_typed(str(message))}").show()

    shown = warnings.showwarning
    warnings.showwarning = tell  # type: ignore[assignment]
    try:
        yield
    except BrokenPipeError:
        raise
    except (ValueError, OSError, ImportError, MemoryError) as error:
        text = " ".join(map(str, error.args)) if not isinstance(error, OSError) else str(error)
        text = _readings(error) or as_typed(text)
        raise UserError(text or "There is not enough memory. Use fewer rows.") from error
    finally:
        warnings.showwarning = shown


def _readings(error: Exception) -> str:
    """Write the ways to read an unclear table as options; empty for all other errors."""
    readings = getattr(error, "readings", None)
    if readings is None:
        return ""
    from appellate.tables.commands import in_terminal, options_of

    said = (shlex.join(in_terminal(options_of(readings.table, each))) for each in readings.roles)
    start = f"{readings.table.source}: {readings.doubt} {readings.advice}"
    return "\n".join([as_typed(start), *(f"    {line}" for line in said)])


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
        self._end: float | None = None  # when this step is expected to end
        self._since = time.monotonic()  # of this step
        self._start = self._last = time.monotonic()
        self._bar, self._task = bar, None if bar is None else bar.add_task("", total=None)

    def begin(self, total: int, found: int = 0) -> None:
        """Learn how much there is to do, and how much of it was done in an earlier run."""
        self.total, self.found = total, found
        self._start = self._last = time.monotonic()
        self._show(f"{total} runs" + (f", {found} of them stored earlier" if found else ""))

    def step(self, text: str, *, within: bool = False, seconds: float | None = None) -> None:
        """Begin the next of the steps, those before it are done; or say how far this one is.

        `seconds` is how long the step is expected to take from now on, if known: the time left is
        counted down.
        """
        self._end = None if seconds is None else time.monotonic() + seconds
        if within:
            self.note = f"{self.note.partition(', ')[0]}, {text}"
            self._show("")
            return
        self._begun += 1
        self._since = time.monotonic()
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

    def countdown(self) -> str:
        """Say how many steps are left after this one, and how much time this one needs."""
        parts = []
        left = self.total - self._begun
        if self._begun and self.total:
            parts.append(
                "last step" if left <= 0 else f"{left} more step{'' if left == 1 else 's'}"
            )
        if self._end is not None:
            rest = self._end - time.monotonic()
            parts.append(f"{clock(rest)} left" if rest >= 1 else "longer than expected")
        return " · ".join(parts)

    def share(self) -> float:
        """Steps that are done, with the part of this one that its expected time tells."""
        if self._end is None:
            return float(self.found + self.ended)
        part = (time.monotonic() - self._since) / max(self._end - self._since, 1e-9)
        return self.found + self.ended + min(part, 0.95)

    def _show(self, text: str) -> None:
        """Move the bar; without one, say the text, or at times how far a step is."""
        if self._bar is not None:
            shown = self.note if self._begun else self.line()
            change = {"total": self.total or None, "completed": self.share()}
            self._bar.update(self._task, description=printable(shown), **change)
        elif text or time.monotonic() - self._last > _WITHIN:
            self._last = time.monotonic()
            rest = "" if text or self._end is None else f" ({self.countdown()})"
            say((text or self.note) + rest, err=True)


@contextmanager
def progress(total: int = 0) -> Iterator[Progress]:
    """Show progress while a block runs; see `Progress`."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield Progress(total)
        return
    from rich.progress import BarColumn, ProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Rich
    from rich.table import Column
    from rich.text import Text

    made: list[Progress] = []

    class Countdown(ProgressColumn):
        """What is left; asked at every refresh of the bar."""

        def render(self, task: Any) -> Text:
            shown = made[0].countdown() if made else ""
            if made and made[0]._end is not None and task.total:
                task.completed = made[0].share()
            return Text(shown, style="dim")

    room = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    text = TextColumn("{task.description}", markup=False, table_column=room)
    columns = (BarColumn(16), TimeElapsedColumn(), Countdown(), text)
    with Rich(*columns, console=console, transient=True, expand=True) as bar:
        made.append(Progress(total, bar))
        yield made[0]


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
    """Print the first sheet of every report; without a terminal, cells are not wrapped."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _WHOLE
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
