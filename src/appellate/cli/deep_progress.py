"""Progress of a training run: one line an epoch, and a bar below them on a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

Record = dict[str, Any]
_LOSSES = ("loss_base", "loss_contrast", "loss_partner", "loss_collaborative")


@contextmanager
def epochs(total: int, done: int) -> Iterator[Callable[[Record], None]]:
    """Show the epochs of a run.

    Parameters
    ----------
    total, done : int
        Epochs of the run, and those already done.

    Yields
    ------
    callable
        To be called with the record of every epoch.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield lambda record: click.echo(f"{_line(record, total)}, {_rate(record)}", err=True)
        return
    rate = TextColumn("{task.fields[rate]}")
    columns = (
        BarColumn(24),
        MofNCompleteColumn(),
        TextColumn("epochs"),
        TimeElapsedColumn(),
        rate,
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total, completed=done, rate="")

        def show(record: Record) -> None:
            progress.console.print(_line(record, total), soft_wrap=True)
            progress.update(task, completed=record["epoch"], rate=_rate(record))

        yield show


def _line(record: Record, total: int) -> str:
    """Losses, and how much the labels still move."""
    parts = [f"{name[5:]} {record[name]:.4f}" for name in _LOSSES if name in record]
    losses = f" ({', '.join(parts)})" if len(parts) > 1 else ""
    text = f"epoch {record['epoch']}/{total}: loss {record['loss']:.4f}{losses}"
    text += f", labels changed {record['changed']:.1%}"
    if "agreement" in record:
        text += f", partner agrees {record['agreement']:.1%}"
    if "approximated_accuracy" in record:
        text += f", held-out approximated accuracy {record['approximated_accuracy']:.1%}"
    return text


def _rate(record: Record) -> str:
    """Rows a second, the time to go, and when the run will end."""
    left = record["seconds_left"]
    rate = f"{record['rows_per_second']:.0f} rows/s"
    if not left:
        return rate
    form = "%H:%M" if left < 80000 else "%a %d %b %H:%M"
    end = time.strftime(form, time.localtime(time.time() + left))
    return f"{rate}, {clock(left)} to go, until {end}"


def clock(seconds: float) -> str:
    """Write a duration.

    Examples
    --------
    >>> clock(75), clock(90061)
    ('1:15', '25:01:01')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
