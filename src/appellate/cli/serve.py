"""``appellate serve``: the docket page on localhost, with decisions saved to disk at once."""

from __future__ import annotations

import os
from pathlib import Path

import click

from appellate.cli._terminal import UserError, say, user_errors

_EPILOG = """\b
Examples:
  appellate serve birds
  appellate serve birds --port 9000 --open
  appellate serve birds --host 0.0.0.0
"""


@click.command(epilog=_EPILOG, short_help="Review a docket in the browser, saved to disk.")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8088, show_default=True, help="0 for any."
)
@click.option("--token", metavar="TEXT", help="Secret of the address; by default a random one.")
@click.option("--open", "browse", is_flag=True, help="Open the page in the browser.")
def serve(folder: Path, host: str, port: int, token: str | None, browse: bool) -> None:
    """Serve the docket page of DIR; decisions are appended to DIR/decisions.csv.

    Whoever has the address, with its token, can read and decide; nobody else can. The page is
    served on this machine only, unless --host says otherwise. Requests that name another host or
    port are refused: forward the same port if you work over SSH. Of other files only the pictures
    that the page names are served.
    """
    from appellate import review
    from appellate._files import WriteError, finish_folder
    from appellate.review.decisions import DecisionFile, say_skipped

    with user_errors():
        finish_folder(folder)
    if not os.path.lexists(folder / "docket.html"):
        raise UserError(f"'{folder}' has no docket.html. Name a folder that rectify wrote.")
    if token is not None and len(token) < 16:
        raise UserError("--token must have 16 characters or more, so that it cannot be guessed.")

    file = folder / "decisions.csv"

    def ready(address: str) -> None:
        say(f"{address}\ndecisions are saved in '{file}'; Ctrl-C ends")
        if skipped := DecisionFile(file).read().skipped:
            say(f"'{file}' has lines that are skipped. {say_skipped(skipped)}", err=True)
        if browse:
            click.launch(address)

    with user_errors():
        try:
            review.serve(folder, host=host, port=port, token=token, ready=ready)
        except WriteError:
            raise
        except OSError as error:
            raise UserError(
                f"cannot serve '{folder}' on {host}:{port}: {error.strerror or error}. Choose "
                "another --host or --port."
            ) from error
