"""Mistakes of the user: told in one message, never with a traceback."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

import click


class UserError(click.ClickException):
    """What was wrong, where, and what to do; ends the command with exit code 2."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        """Write the message to the standard error."""
        click.echo(f"appellate: {self.format_message()}", file=file, err=True)


def in_options(message: str, words: Mapping[str, str]) -> str:
    """Name the options of the command line where a message of the library names parameters.

    Examples
    --------
    >>> in_options("name a cache_dir.", {"cache_dir": "--cache-dir"})
    'name a --cache-dir.'
    """
    for there, here in words.items():
        message = message.replace(there, here)
    return message
