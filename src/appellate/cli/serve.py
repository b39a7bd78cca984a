"""``appellate serve``: the docket page on localhost, with decisions saved to disk at once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from appellate.cli._terminal import UserError, say, user_errors

_EPILOG = """\b
Examples:
  appellate serve birds
  appellate serve birds --port 9000 --open
  appellate serve birds --host 0.0.0.0
"""


@click.command(epilog=_EPILOG, short_help="Review labels in the browser.")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Network address to listen on."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8088,
    show_default=True,
    help="Port; 0 picks a free one.",
)
@click.option("--token", metavar="TEXT", help="Access token in the URL (default: random).")
@click.option("--open", "browse", is_flag=True, help="Open the review page in the browser.")
def serve(folder: Path, host: str, port: int, token: str | None, browse: bool) -> None:
    """Serve the review page of DIR. Decisions are saved to DIR/decisions.csv.

    Anyone with the full URL, including its token, can view the page and save decisions. By
    default only this machine can reach the page; --host changes this. Requests for another host
    or port are refused: over SSH, forward the same port. The server sends the page and the images
    it shows, and no other file.
    """
    from appellate import review
    from appellate._files import WriteError, finish_folder
    from appellate.review.decisions import DecisionFile, say_skipped

    with user_errors():
        finish_folder(folder)
    if not os.path.lexists(folder / "docket.html"):
        raise UserError(f"'{folder}' has no docket.html. Give a folder that rectify wrote.")
    if token is not None and len(token) < 16:
        raise UserError("--token must have 16 characters or more, so that nobody can guess it.")

    file = folder / "decisions.csv"

    def ready(address: str) -> None:
        say(f"{address}\nSaving decisions to '{file}'. Press Ctrl-C to stop.")
        if skipped := DecisionFile(file).read().skipped:
            say(f"Some lines of '{file}' are skipped. {say_skipped(skipped)}", err=True)
        if browse:
            click.launch(address)

    runs: dict[int, Any] = {}  # the run of the folder, by the time at which it was written

    def explain(name: str) -> Any:
        from appellate.rectification import load

        written = (folder / "run.json").stat().st_mtime_ns
        if written not in runs:
            runs.clear()
            runs[written] = load(folder)
        return runs[written].explain(name)

    with user_errors():
        try:
            review.serve(folder, host=host, port=port, token=token, ready=ready, explain=explain)
        except WriteError:
            raise
        except OSError as error:
            raise UserError(
                f"Cannot serve '{folder}' on {host}:{port}: {error.strerror or error}. Choose "
                "another --host or --port."
            ) from error
