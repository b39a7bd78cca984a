"""Some hundred hostile cases; ``make fuzz`` tries ten thousand."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.fuzz.guard import try_cases
from tests.fuzz.trials import BYTES, KINDS, Trials

pytest.importorskip("jinja2")
pytest.importorskip("openpyxl")
CASES = dict.fromkeys(KINDS, 30) | {"arrow": 10} | dict.fromkeys(BYTES, 5)


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_cases(kind, tmp_path):
    """No traceback, no partial output, rows cell by cell, no decision lost or misapplied."""
    if kind == "run":
        pytest.importorskip("torch"), pytest.importorskip("safetensors")
    with Trials(tmp_path) as trials:
        for seed in range(CASES[kind]):
            trials.try_case(kind, seed)
    outcomes = {outcome for _, outcome in trials.outcomes}
    assert len(outcomes) > 1, "some are read, some refused"


class Wild:
    """Cases that end badly, as `Trials` of a kind each."""

    def __init__(self, folder):
        self.commands = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def try_case(self, kind, seed):
        match kind:
            case "dies":
                os.kill(os.getpid(), signal.SIGKILL)
            case "leaves":
                os._exit(3)
            case "loops":
                while True:
                    pass
            case "waits":
                time.sleep(100)
            case "raises":
                raise ValueError("wrong")
        return "read"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the guard forks")
def test_the_guard_counts_crashes_and_endless_cases_and_goes_on():
    kinds = ["fine", "dies", "fine", "loops", "raises", "leaves", "waits", "fine"]
    found = try_cases(zip(kinds, range(8), strict=True), Wild, seconds=0.2, wait=2)
    assert found.outcomes == {("fine", "read"): 3, ("raises", "wrong"): 1}
    said = {kind: text for kind, _, text in found.wrong}
    assert "ended by SIGKILL" in said["dies"]
    assert "more than 0.2 processor seconds" in said["loops"]
    assert "ValueError: wrong" in said["raises"]
    assert "ended with 3" in said["leaves"]
    assert "waited for 2 s" in said["waits"]
    assert len(found.wrong) == 5


@pytest.mark.slow
@pytest.mark.parametrize("kind", BYTES)
def test_no_changed_byte_of_a_file_of_columns_ends_a_process(kind):
    """A thousand files with one changed byte, each in check, rectify and predict."""
    found = try_cases((kind, seed) for seed in range(1000))
    assert not found.wrong, found.wrong[:3]
    assert {outcome for _, outcome in found.outcomes} == {"read", "refused"}
