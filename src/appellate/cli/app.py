"""The group of all commands, and what becomes of errors and interrupts."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from appellate.cli._terminal import INTERRUPTED
from appellate.cli.check import check
from appellate.cli.compare import compare
from appellate.cli.datasets import datasets
from appellate.cli.deep import deep
from appellate.cli.demo import demo
from appellate.cli.generate import generate
from appellate.cli.predict import predict
from appellate.cli.rectify import rectify
from appellate.cli.reproduce import reproduce
from appellate.cli.serve import serve

TERMINATED = 143  # 128 + SIGTERM

_EPILOG = """\b
Examples:
  appellate demo                     try everything on handwritten digits
  appellate check my.csv             see whether Appellate fits your table
  appellate rectify my.csv --candidates names --out result
  appellate reproduce test-accuracy  recompute Table 2 of the paper
  appellate datasets list            list the known data sets
"""


@click.group(
    commands=[check, compare, datasets, deep, demo, generate, predict, rectify, reproduce, serve],
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_EPILOG,
)
@click.version_option(package_name="appellate", message="%(prog)s %(version)s")
def app() -> None:
    """Find the true label of rows that have several candidate labels.

    Each row of your table has several candidate labels, or the answers of several annotators,
    and exactly one label is true. Appellate picks it, says how confident it is, lists the rows
    worth checking, rates the annotators, and saves a model for new rows.
    """


class _Terminated(BaseException):
    """SIGTERM, raised so that what was begun is cleaned up, as after Ctrl-C."""


@contextmanager
def _termination() -> Iterator[None]:
    """Turn SIGTERM into an exception, unless someone handles it already."""
    usable = threading.current_thread() is threading.main_thread()
    if not usable or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    owner = os.getpid()

    def end(number: int, _: Any) -> None:
        if os.getpid() == owner:
            raise _Terminated
        signal.signal(number, signal.SIG_DFL)  # a forked worker just ends
        os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, default=None
        What follows the program's name; by default that of this process.

    Returns
    -------
    int
        0 for success; 1 if single runs of compare or reproduce failed, as it says, and the
        tables show the others; 2 for a mistake of the user, 130 after Ctrl-C, 143 after SIGTERM.
        Anything else that goes wrong is ours, and raises. (If the reader of a pipe has closed it,
        click exits with 1 and says nothing.)
    """
    for stream in (sys.stdout, sys.stderr):  # a letter that is not there is shown by its number
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with _termination():
            words = tuple(sys.argv[1:] if arguments is None else arguments)
            result = app.main(words, prog_name="appellate", standalone_mode=False, obj=words)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except _Terminated:
        click.echo("terminated", err=True)
        return TERMINATED
    return result if isinstance(result, int) else 0
