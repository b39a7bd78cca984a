"""A Dask cluster of processes that loses a worker gives the rows of one process."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from appellate.experiments import cluster as cluster_module
from appellate.experiments.cluster import ClusterError, connect
from tests.experiments.small import make_runs, read_rows

ROOT = Path(__file__).parents[2]

pytest.importorskip("distributed")


def test_a_killed_worker_changes_nothing(tmp_path, stored):
    path = tmp_path / "runs.sqlite"
    modules = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": modules}
    done = subprocess.run(
        [sys.executable, "-m", "tests.experiments.cluster_script", str(path), "3"],
        cwd=ROOT,
        env=os.environ | one,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["workers"] == 2
    assert told["killed"]
    assert told["failures"] == []
    assert told["computed"] == len(make_runs(3))
    assert read_rows(path) == read_rows(stored)


@pytest.fixture
def listener():
    """Something that takes connections and says nothing, as a dashboard would."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield "tcp://127.0.0.1:{1}".format(*server.getsockname())


def assert_no_client():
    import dask
    from distributed import Client

    assert dask.config.get("scheduler", None) is None
    with pytest.raises(ValueError, match="No client"):
        Client.current()


@pytest.mark.parametrize("address", ["nonsense://x", "127.0.0.1", "inproc://a/1/2", "tls://a:1"])
def test_what_is_no_address_leaves_no_client(address):
    with (
        pytest.raises(ClusterError, match=f"cannot reach a Dask scheduler at '{address}': "),
        connect(2, address),
    ):
        pass
    assert_no_client()


def test_nobody_at_the_address(listener, monkeypatch):
    monkeypatch.setattr(cluster_module, "_TIMEOUT", 2)  # it connects, also on a busy machine
    with (
        pytest.raises(ClusterError, match=r"server at this address is not a scheduler\. Start"),
        connect(2, listener),
    ):
        pass
    monkeypatch.setattr(cluster_module, "_TIMEOUT", 0.2)
    with pytest.raises(ClusterError, match="Timed out"), connect(2, "tcp://127.0.0.1:9"):
        pass
    assert_no_client()


def test_a_local_cluster_refuses_other_users():
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # another program, or cluster, has the usual port
            stack.enter_context(socket.create_server(("127.0.0.1", 8787)))
        client = stack.enter_context(connect(1, None))
        port = urllib.parse.urlsplit(client.dashboard_link).port
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/info/main/workers.html")
        address = client.scheduler.address
        assert client.submit(sum, (1, 2)).result() == 3
        for scheme in ("tcp", "tls"):
            other = address.replace("tls", scheme)
            with pytest.raises(ClusterError, match="cannot reach"), connect(1, other):
                pass


def test_names_the_extra_if_there_are_no_certificates(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(ClusterError, match=r"needs .*cryptography.*\[dask\]"), connect(1, None):
        pass


def test_a_running_scheduler_computes_while_it_is_lent():
    import dask.array as da
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=1, processes=False, dashboard_address=":0", silence_logs=logging.ERROR
    ) as cluster:
        with connect(2, cluster.scheduler_address) as client:
            lazy = da.ones(4).sum().persist()
            assert client.futures_of(lazy)
            assert lazy.compute() == 4
        assert_no_client()
