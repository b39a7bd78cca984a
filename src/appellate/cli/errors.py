"""Mistakes of the user: told in one message, never with a traceback."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import click


class UserError(click.ClickException):
    """What was wrong, where, and what to do; ends the command with exit code 2."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        """Write the message to the standard error."""
        from appellate._text import printable

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
    except (BrokenPipeError, NotImplementedError):
        raise
    except (ValueError, OSError, ImportError, MemoryError) as error:
        text = " ".join(map(str, error.args)) if not isinstance(error, OSError) else str(error)
        raise UserError(text or "there is not enough memory. Take fewer rows.") from error
    finally:
        warnings.showwarning = shown


@contextmanager
def outside_errors() -> Iterator[None]:
    """Tell what went wrong outside of this program: files, the store, workers, the cluster."""
    try:
        yield
    except OSError as error:
        raise UserError(str(error)) from error
