"""A small problem, and a store with its runs."""

from __future__ import annotations

import pytest

from appellate.experiments.runner import run_all
from appellate.experiments.store import Store
from tests.experiments.small import make_problem, make_runs


@pytest.fixture(scope="session")
def problem():
    return make_problem()


@pytest.fixture(scope="session")
def stored(problem, tmp_path_factory):
    """Path of a store with three splits of all small methods."""
    path = tmp_path_factory.mktemp("store") / "runs.sqlite"
    with Store(path) as store:
        summary = run_all(make_runs(3), {"small": problem}, store)
    assert not summary.failures
    return path
