"""Files that are either whole or not there."""

from __future__ import annotations

import csv
import os

import numpy as np
import pytest

from appellate.cli.errors import UserError
from appellate.cli.files import check_folder, staged, write_csv


def test_staged_files_appear_together(tmp_path):
    folder = tmp_path / "a" / "b"
    with staged(folder) as stage:
        (stage / "one").write_text("1")
        (stage / "two").write_text("2")
        assert not (folder / "one").exists()
    assert sorted(path.name for path in folder.iterdir()) == ["one", "two"]


def test_staged_files_replace_and_leave_the_rest(tmp_path):
    (tmp_path / "one").write_text("old")
    (tmp_path / "mine").write_text("mine")
    with staged(tmp_path) as stage:
        (stage / "one").write_text("new")
    assert (tmp_path / "one").read_text() == "new"
    assert (tmp_path / "mine").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_failure_leaves_no_trace(tmp_path, error):
    def write_half(folder):
        with staged(folder) as stage:
            (stage / "one").write_text("half")
            raise error

    (tmp_path / "one").write_text("old")
    for folder in (tmp_path, tmp_path / "a" / "b"):
        with pytest.raises(error):
            write_half(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["one"]
    assert (tmp_path / "one").read_text() == "old"


def test_an_error_of_the_system_becomes_a_message(tmp_path):
    with pytest.raises(UserError, match="No space left"), staged(tmp_path / "a"):
        raise OSError(28, "No space left on device")
    assert not list(tmp_path.iterdir())


def test_folders_are_checked_without_being_made(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "full" / "docket.csv").mkdir(parents=True)
    check_folder(tmp_path / "new" / "folder", ["docket.csv"])
    for folder, message in (
        (tmp_path / "file", "is a file, not a folder"),
        (tmp_path / "file" / "below", "is a file, not a folder"),
        (tmp_path / "full", "a folder has that name"),
        (tmp_path / ("x" * 5000), "name too long"),
    ):
        with pytest.raises(UserError, match=rf"(?i){message}.*--out") as refused:
            check_folder(folder, ["docket.csv"])
        assert refused.value.exit_code == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "full"]


def test_a_folder_without_permission(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(UserError, match="no permission to write in"):
        check_folder(tmp_path / "new", [])


def test_csv(tmp_path):
    columns = {
        "id": np.array([3, 4]),
        "name": np.array(["a,b", 'say "é"'], dtype=object),
        "share": np.array([1 / 3, 1.0], dtype=np.float32),
        "right": np.array([True, False]),
    }
    write_csv(columns, tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [
            ["id", "name", "share", "right"],
            ["3", "a,b", "0.333333", "True"],
            ["4", 'say "é"', "1", "False"],
        ]
