"""Benchmarks and studies: each can be begun and says what it does; the Makefile's list is true."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

for package in ("clarabel", "daqp", "pandas", "piqp", "torch"):
    pytest.importorskip(package)

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted((ROOT / "benchmarks").glob("[!_]*.py"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_help_is_what_the_script_says_of_itself(path, monkeypatch, capsys):
    """Names that a study imports and that have gone fail here, not after hours."""
    monkeypatch.syspath_prepend(str(path.parent))
    monkeypatch.setattr(sys, "argv", [path.name, "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    assert ended.value.code == 0
    first = path.read_text(encoding="utf-8").split("\n", 1)[0].strip('"')
    assert first in capsys.readouterr().out


def test_make_bench_names_scripts():
    found = re.search(r"^BENCHMARKS := (.*)$", (ROOT / "Makefile").read_text(), re.M)
    assert {*found.group(1).split()} <= {path.stem for path in SCRIPTS}


@pytest.mark.parametrize("landmarks", [0, 64])
def test_goals_asks_the_jury_for_its_budget(landmarks, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    peak = runpy.run_path(str(ROOT / "benchmarks" / "goals.py"))["peak"]
    budgets = [peak(n, landmarks)[1] for n in (300, 600)]
    assert 0 < budgets[0] < budgets[1]
