"""Some hundred hostile cases; ``make fuzz`` tries ten thousand."""

from __future__ import annotations

import pytest

from tests.fuzz.trials import KINDS, Trials

pytest.importorskip("jinja2")
pytest.importorskip("openpyxl")
CASES = 60  # of every kind


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_cases(kind, tmp_path):
    """No traceback, no partial output, rows cell by cell, no decision lost or misapplied."""
    if kind == "run":
        pytest.importorskip("torch"), pytest.importorskip("safetensors")
    with Trials(tmp_path) as trials:
        for seed in range(CASES):
            trials.try_case(kind, seed)
    outcomes = {outcome for _, outcome in trials.outcomes}
    assert len(outcomes) > 1, "some are read, some refused"
