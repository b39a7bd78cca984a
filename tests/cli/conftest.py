"""One run of the demo, shared by the tests of the command line."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from appellate.cli.app import run


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str
    folder: Path


@pytest.fixture(scope="session")
def ran(tmp_path_factory):
    """The demo, in full, as it looks when its output is piped."""
    folder = tmp_path_factory.mktemp("demo") / "deep" / "out"
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        code = run(["demo", "--out", str(folder)])
    return Ran(code, out.getvalue(), err.getvalue(), folder)
