"""Progress on the standard error: a bar on a terminal, one line a step elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console


@contextmanager
def steps(total: int) -> Iterator[Callable[[str], None]]:
    """Show the progress of a known number of steps.

    Yields
    ------
    callable
        To be called with the description of every step when it begins.
    """
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_terminal:
        yield from _bar(console, total)
    else:
        yield from _lines(total)


def _bar(console: Console, total: int) -> Iterator[Callable[[str], None]]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (BarColumn(24), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total, completed=-1)
        yield lambda text: progress.update(task, advance=1, description=text)


def _lines(total: int) -> Iterator[Callable[[str], None]]:
    number = 0

    def begin(text: str) -> None:
        nonlocal number
        number += 1
        click.echo(f"[{number}/{total}] {text}", err=True)

    yield begin
