"""The store: rows once, foreign files untouched, errors explained."""

from __future__ import annotations

import hashlib
import sqlite3

import pytest

from appellate.experiments import store as module
from appellate.experiments.protocol import Outcome
from appellate.experiments.store import Store, StoreError
from tests.experiments.small import make_runs, read_rows

RUN = make_runs(1)[0]
SCORES = {"test": 0.1 + 0.2, "transductive": 1 / 3, "tiny": 5e-324}


def add(store, key="k", scores=SCORES, **more):
    return store.add(
        key,
        RUN,
        Outcome(scores, **more),
        fingerprint="f",
        version="v",
        environment={"python": "3"},
    )


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_rows_come_back_bit_for_bit(tmp_path):
    with Store(tmp_path / "a.sqlite") as store:
        assert add(store, details={"examples": [0.1]}, memory=12.5, fit_seconds=1.5)
    with Store(tmp_path / "a.sqlite") as store:
        row = store.rows()["k"]
    assert row.scores == SCORES
    assert row.details == {"examples": [0.1]}
    assert (row.seconds, row.memory, row.environment) == (1.5, 12.5, {"python": "3"})


def test_the_first_row_of_a_key_stays(tmp_path):
    with Store(tmp_path / "a.sqlite") as store:
        assert add(store)
        assert not add(store, scores={"test": 0.9})
        assert store.rows()["k"].scores == SCORES
        assert store.keys() == {"k"}


def test_it_has_a_write_ahead_log(tmp_path):
    with Store(tmp_path / "a.sqlite") as store:
        mode = store._connection.execute("PRAGMA journal_mode").fetchone()
    assert mode == ("wal",)


def test_an_empty_file_becomes_a_store(tmp_path):
    path = tmp_path / "a.sqlite"
    path.touch()
    with Store(path) as store:
        assert add(store)


def make_text(path):
    path.write_text("name,score\nours,1\n")


def make_foreign(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE runs (key TEXT)")
    connection.commit()
    connection.close()


def make_newer(path):
    Store(path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {module.VERSION + 1}")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (make_text, "is not a store of runs"),
        (make_foreign, "is not a store of runs"),
        (make_newer, f"store of version {module.VERSION + 1}"),
    ],
)
def test_other_files_are_refused_and_left_alone(make, message, tmp_path):
    path = tmp_path / "a.sqlite"
    make(path)
    before, names = digest(path), sorted(tmp_path.iterdir())
    with pytest.raises(StoreError, match=message):
        Store(path)
    assert digest(path) == before
    assert sorted(tmp_path.iterdir()) == names


def test_a_folder_is_no_store(tmp_path):
    with pytest.raises(StoreError, match="directory"):
        Store(tmp_path)


def test_a_full_disk_keeps_what_was_stored(tmp_path):
    path = tmp_path / "a.sqlite"
    with Store(path) as store:
        assert add(store, "first")
        (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match="full"):
            add(store, "large", {f"score {i}": 0.5 for i in range(2000)})
    assert [row[0] for row in read_rows(path)] == ["first"]
    with Store(path) as store:
        assert add(store, "large", {f"score {i}": 0.5 for i in range(2000)})
