"""Runs on a Dask cluster: an existing one, or a temporary one on this computer."""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from appellate._text import install
from appellate.experiments.problems import Dataset
from appellate.experiments.protocol import Outcome, Trial
from appellate.experiments.runner import execute_keyed

_RETRIES = 3
_TIMEOUT = 10  # seconds until a scheduler must have answered


class ClusterError(OSError):
    """A cluster that cannot be used; the message says why."""


def run_on_dask(
    runs: Mapping[str, Trial],
    problems: Mapping[str, Dataset],
    n_jobs: int,
    scheduler: str | None,
) -> Iterator[tuple[str, Outcome]]:
    """Yield the outcomes of runs on a cluster in the order in which they arrive.

    Tasks and data are held by the scheduler, so those of a worker that dies are computed
    again by another. (joblib's own Dask backend scatters the data to workers, and
    loses it with them.)

    Parameters
    ----------
    runs : mapping of str to Run
        Runs by key.
    problems : mapping of str to Problem
        Data by name.
    n_jobs : int
        Workers of a local cluster.
    scheduler : str or None
        Address of a running scheduler; None starts and stops a local cluster.
    """
    with connect(n_jobs, scheduler) as client:
        from distributed import as_completed

        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            data = {  # as results of tasks, which the scheduler can repeat
                name: client.submit(_same, problem, key=f"data-{problem.fingerprint()}")
                for name, problem in problems.items()
            }
        futures = {
            client.submit(
                execute_keyed, key, run, data[run.dataset], key=f"run-{key}", retries=_RETRIES
            ): key
            for key, run in runs.items()
        }
        for future in as_completed(list(futures)):  # type: ignore[no-untyped-call]
            if future.status == "finished":
                yield future.result()
            else:
                error = future.exception() if future.status == "error" else None
                reason = future.status if error is None else f"{type(error).__name__}: {error}"
                yield futures[future], Outcome(error=reason)
            future.release()


@contextmanager
def connect(n_jobs: int, scheduler: str | None) -> Iterator[Any]:
    """Lend a client of a running scheduler, or of a local cluster that ends with it."""
    try:
        from dask import config
        from distributed import Client, LocalCluster, Security

        # Whoever reaches a scheduler can run code: certificates keep other users out.
        secret = Security.temporary() if scheduler is None else None  # type: ignore[no-untyped-call]
    except ImportError as error:
        raise ClusterError(
            f"the Dask backend needs dask, distributed and cryptography: {install('dask')}"
        ) from error
    if scheduler is None:
        routes: dict[str, list[str]] = {
            f"distributed.{who}.http.routes": [] for who in ("scheduler", "worker")
        }
        with (
            config.set(routes),
            LocalCluster(  # type: ignore[no-untyped-call]
                n_workers=n_jobs,
                threads_per_worker=1,
                security=secret,
                dashboard_address=None,
                # Its HTTP server has no pages, and a port that no other cluster has.
                scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                silence_logs=logging.ERROR,
            ) as cluster,
            Client(cluster) as client,  # type: ignore[no-untyped-call]
        ):
            yield client
        return
    try:
        _ask(scheduler)
    except Exception as error:
        raise ClusterError(
            f"cannot reach a Dask scheduler at '{scheduler}': {error}. Start one with 'dask "
            "scheduler', or leave --scheduler out for a cluster of this machine."
        ) from error
    with Client(scheduler, timeout=_TIMEOUT) as client:  # type: ignore[no-untyped-call]
        yield client


def _ask(scheduler: str) -> None:
    """Connect to a scheduler and disconnect, or raise the reason why not.

    A client that fails to start stays the one that Dask computes with, so the next lazy array
    of this process would wait for ever; and it never fails where something else listens.
    """
    from distributed import Security
    from distributed.comm.core import connect as open_connection

    async def ask() -> None:
        arguments = Security().get_connection_args("client")  # type: ignore[no-untyped-call]
        opened = open_connection(scheduler, timeout=_TIMEOUT, **arguments)  # type: ignore[no-untyped-call]
        try:
            connection = await asyncio.wait_for(opened, _TIMEOUT + 1)
        except TimeoutError as error:
            raise TimeoutError("the server at this address is not a scheduler") from error
        connection.abort()

    with ThreadPoolExecutor(1) as pool:  # a notebook has a loop in its own thread
        pool.submit(asyncio.run, ask()).result()


def _same(problem: Dataset) -> Dataset:
    return problem
