"""The command ``appellate``: one file a command group, heavy imports inside the commands."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from appellate._text import install

_NEEDED = ("click", "rich")


def main() -> None:
    """Run the command line and exit: 0 for success, 2 for a mistake of the user."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        sys.stderr.write(
            f"appellate: the command line needs {' and '.join(missing)}: {install('cli')}\n"
        )
        raise SystemExit(2)
    from appellate.cli.app import run

    raise SystemExit(run())
