"""The driver: it finds what is left to do, hands it out and stores what comes back."""

from __future__ import annotations

import hashlib
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Thread
from typing import Any, Literal

from appellate.experiments.problems import Dataset
from appellate.experiments.protocol import Outcome, Trial, execute
from appellate.experiments.store import Store

Backend = Literal["loky", "dask"]
TellOutcome = Callable[[Trial, Outcome], None]
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "joblib", "threadpoolctl")


class WorkerError(OSError):
    """Worker processes that died; the message says what to do."""


@dataclass
class Summary:
    """What a call of `run_all` did.

    Attributes
    ----------
    total, found, computed : int
        Runs asked for, found in the store, and computed now.
    failures : dict of Run to str
        Runs without scores, and why.
    """

    total: int
    found: int = 0
    computed: int = 0
    failures: dict[Trial, str] = field(default_factory=dict)


def run_all(
    runs: Sequence[Trial],
    problems: Mapping[str, Dataset],
    store: Store,
    *,
    n_jobs: int = 1,
    backend: Backend = "loky",
    scheduler: str | None = None,
    begin: Callable[[int, int], None] = lambda total, found: None,
    report: TellOutcome = lambda run, outcome: None,
) -> Summary:
    """Compute the runs that a store does not have yet.

    Only this process writes the store, each row as soon as it arrives. If it is killed and started
    again, it continues.

    Parameters
    ----------
    runs : sequence of Run
        Wanted; runs with equal configuration are computed once.
    problems : mapping of str to Problem
        Data by the runs' `dataset`.
    store : Store
        Where rows are looked up and added.
    n_jobs : int, default=1
        Worker processes, one thread each; 1 computes here.
    backend : {"loky", "dask"}, default="loky"
        Processes of this machine by joblib, or a Dask cluster.
    scheduler : str, default=None
        Address of a running Dask scheduler; by default a local cluster of `n_jobs` workers
        is started and stopped.
    begin, report : callable
        Told the numbers of runs wanted and found; then every run as it is done.

    Returns
    -------
    Summary
        Counts and failures.
    """
    number, code = package_version(), code_version()
    prints = {name: problem.fingerprint() for name, problem in problems.items()}
    wanted = {run.key(prints[run.dataset], code): run for run in runs}
    present = store.keys()
    left = {key: run for key, run in wanted.items() if key not in present}
    summary = Summary(total=len(wanted), found=len(wanted) - len(left))
    begin(summary.total, summary.found)
    where = environment()
    if backend == "dask" and left:
        from appellate.experiments.cluster import run_on_dask

        outcomes = run_on_dask(left, problems, n_jobs, scheduler)
    elif n_jobs > 1 and left:
        outcomes = _run_on_loky(left, problems, n_jobs)
    else:
        outcomes = (execute_keyed(key, run, problems[run.dataset]) for key, run in left.items())
    for key, outcome in outcomes:
        run = left[key]
        if outcome.error is None:
            found = {"fingerprint": prints[run.dataset], "version": number}
            store.add(key, run, outcome, **found, environment=where)
            summary.computed += 1
        else:
            summary.failures[run] = outcome.error
        report(run, outcome)
    return summary


def _run_on_loky(
    runs: Mapping[str, Trial], problems: Mapping[str, Dataset], n_jobs: int
) -> Iterator[tuple[str, Outcome]]:
    from concurrent.futures.process import BrokenProcessPool

    from joblib import Parallel, delayed, parallel_config

    follow = {"initializer": _follow, "initargs": (os.getpid(),)}
    try:
        with parallel_config("loky", n_jobs=n_jobs, inner_max_num_threads=1, **follow):
            parallel = Parallel(return_as="generator_unordered", batch_size=1)
            yield from parallel(
                delayed(execute_keyed)(key, run, problems[run.dataset])
                for key, run in runs.items()
            )
    except BrokenProcessPool as error:
        raise WorkerError(
            "a worker process died, perhaps because memory ran out. Rows stored so far are kept: "
            "run the same command again, with fewer --n-jobs if it dies again."
        ) from error


def _follow(driver: int) -> None:
    """End this worker soon after its driver was killed, also while it waits for its first run."""

    def watch() -> None:
        while os.getppid() == driver:
            time.sleep(1)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def execute_keyed(key: str, run: Trial, problem: Dataset) -> tuple[str, Outcome]:
    """Execute a run and say which it was."""
    return key, execute(run, problem)


def package_version() -> str:
    """Return the version of appellate."""
    try:
        return version("appellate")
    except PackageNotFoundError:  # pragma: no cover
        return "unknown"


def code_version() -> str:
    """Return version and source of appellate, part of every key: changed code computes again."""
    return f"{package_version()}+{_source_hash()}"


@cache
def environment() -> dict[str, Any]:
    """Versions and machine, and a hash of this package's source, for the record."""
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "packages": {name: version(name) for name in _PACKAGES},
        "source": _source_hash(),
    }


# What no score depends on: it reads data (whose fingerprint is in every key), writes or shows
# results, or is of other experiments. All else counts, a new module too; and so do some within.
_PASSIVE = {
    *("__init__", "__main__", "_added", "_files", "_lazy", "_palette", "_table_formats"),
    *("_table_options", "_text", "cli", "datasets", "deep", "docket", "experiments", "io"),
    *("model_selection", "notes", "paper", "plotting", "rectification", "review", "tables"),
    "testing",
}
_SCORING = {
    *("experiments/controls.py", "experiments/methods.py", "experiments/problems.py"),
    *("experiments/protocol.py", "paper/traces.py", "tables/encoding.py"),
}


def scoring_files() -> list[str]:
    """Return the modules that decide a score, relative to the package."""
    home = Path(__file__).parents[1]
    names = sorted(path.relative_to(home).as_posix() for path in home.rglob("*.py"))
    homes = (name.split("/")[0].removesuffix(".py") for name in names)
    return [n for n, h in zip(names, homes, strict=True) if n in _SCORING or h not in _PASSIVE]


@cache
def _source_hash() -> str:
    """Hash of the modules that decide a score."""
    home = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for name in scoring_files():
        digest.update(name.encode() + (home / name).read_bytes())
    return digest.hexdigest()[:16]
