"""``appellate rectify`` on a Dask cluster gives the labels of one process."""

from __future__ import annotations

import logging

import pytest

from tests.cli.tables import read_rows, write_table
from tests.cli.test_rectify import rectify

distributed = pytest.importorskip("distributed")


def test_the_cluster_finds_the_same_labels(tmp_path, capsys):
    write_table(tmp_path / "t.csv")
    options = ["--candidates", "labels", "--base", "sure"]
    options += ["--set", "approximation=nystroem", "--set", "n_landmarks=30"]
    assert rectify(tmp_path / "t.csv", *options, "--out", tmp_path / "here") == 0
    with distributed.LocalCluster(
        n_workers=1, processes=False, dashboard_address=":0", silence_logs=logging.ERROR
    ) as cluster:
        options += ["--set", f"scheduler={cluster.scheduler_address}"]
        assert rectify(tmp_path / "t.csv", *options, "--out", tmp_path / "there") == 0
    here, there = (read_rows(tmp_path / d / "rectified.csv") for d in ("here", "there"))
    assert [r["label"] for r in here] == [r["label"] for r in there]
    assert "n_landmarks=30" in capsys.readouterr().out


def test_what_cannot_be(tmp_path, capsys):
    write_table(tmp_path / "t.csv")
    options = ["--candidates", "labels", "--base", "sure", "--out", tmp_path / "o"]
    assert rectify(tmp_path / "t.csv", *options, "--set", "scheduler=nonsense://x") == 2
    said = capsys.readouterr().err
    assert "cannot reach a Dask scheduler at 'nonsense://x'" in said
    assert "Leave the setting out to fit in this process" in said
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]
