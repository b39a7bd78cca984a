"""The store of runs: a single SQLite file, one row a run, safe to kill and to share."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from appellate.experiments.protocol import Outcome, Trial

VERSION = 1  # of the file's layout
_APPLICATION = 0x41505043  # marks the file as ours
_BUSY_SECONDS = 60.0
_MAGIC = b"SQLite format 3\x00"
_TABLE = """
CREATE TABLE IF NOT EXISTS runs (
    key TEXT PRIMARY KEY, dataset TEXT NOT NULL, method TEXT NOT NULL,
    split INTEGER NOT NULL, seed INTEGER NOT NULL,
    data_hash TEXT NOT NULL, version TEXT NOT NULL, config TEXT NOT NULL,
    scores TEXT NOT NULL, details TEXT,
    fit_seconds REAL NOT NULL, predict_seconds REAL NOT NULL, memory_mb REAL,
    environment TEXT NOT NULL, finished REAL NOT NULL
) WITHOUT ROWID
"""


class StoreError(OSError):
    """A store that cannot be used; the message says why and what to do."""


@dataclass(frozen=True)
class Row:
    """One stored run.

    Attributes
    ----------
    scores : dict of str to float
        As `Outcome.scores`.
    details : dict or None
        As `Outcome.details`.
    seconds : float
        Time to fit and predict.
    memory : float or None
        As `Outcome.memory`.
    environment : dict
        Versions and machine that computed it.
    """

    scores: dict[str, float]
    details: dict[str, Any] | None
    seconds: float
    memory: float | None
    environment: dict[str, Any]


class Store:
    """Rows of finished runs in a SQLite file with a write-ahead log.

    A row is written in a transaction of its own as soon as its run is done, so a killed
    process loses only the runs that were under way. Keys are unique and the first row of a
    key stays, so that resuming never doubles one and several processes may share the file.

    Parameters
    ----------
    path : path
        The file; made if it does not exist.

    Raises
    ------
    StoreError
        If the file is not a store, is one of another version, or cannot be written. It is
        then left as it is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._explained():
            path.parent.mkdir(parents=True, exist_ok=True)
            _check_file(path)
            self._connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def keys(self) -> set[str]:
        """Return the keys of all rows."""
        with self._explained():
            return {key for (key,) in self._connection.execute("SELECT key FROM runs")}

    def add(
        self,
        key: str,
        run: Trial,
        outcome: Outcome,
        *,
        fingerprint: str,
        version: str,
        environment: dict[str, Any],
    ) -> bool:
        """Store the outcome of a run; return False if its row was there already."""
        known = (key, run.dataset, run.method.title, run.split, run.seed, fingerprint, version)
        details = None if outcome.details is None else _dump(outcome.details)
        found = (_dump(run.config()), _dump(outcome.scores), details)
        taken = (outcome.fit_seconds, outcome.predict_seconds, outcome.memory)
        values = (*known, *found, *taken, _dump(environment), time.time())
        marks = ",".join("?" * len(values))
        with self._explained():
            cursor = self._connection.execute(
                f"INSERT OR IGNORE INTO runs VALUES ({marks})", values
            )
        return cursor.rowcount == 1

    def rows(self) -> dict[str, Row]:
        """Return all rows by their keys."""
        query = (
            "SELECT key, scores, coalesce(details, 'null'), fit_seconds + predict_seconds, "
            "memory_mb, environment FROM runs"
        )
        load = json.loads
        with self._explained():
            return {
                key: Row(load(scores), load(details), seconds, memory, load(environment))
                for key, scores, details, seconds, memory, environment in (
                    self._connection.execute(query)
                )
            }

    def _prepare(self) -> None:
        """Make the table, unless another process just did."""
        execute = self._connection.execute
        execute("PRAGMA synchronous = FULL")
        execute("BEGIN IMMEDIATE")
        with self._connection:  # which commits, or rolls back
            execute(_TABLE)
            execute(f"PRAGMA application_id = {_APPLICATION}")
            execute(f"PRAGMA user_version = {VERSION}")
        deadline = time.monotonic() + _BUSY_SECONDS
        while True:  # changing the journal does not wait for another process
            try:
                execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors of SQLite and of files into ours."""
        try:
            yield
        except StoreError:
            raise
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                f"cannot use the store '{self.path}': {error}. Rows stored so far are kept; "
                "fix the cause and run the same command again to continue, "
                "or name another file with --store."
            ) from error


def _check_file(path: Path) -> None:
    """Refuse a file that is not a store of this version by its first bytes, without opening it."""
    if not path.exists():
        return
    with path.open("rb") as file:
        head = file.read(100)
    found, what = int.from_bytes(head[60:64]), ""
    if head and (not head.startswith(_MAGIC) or int.from_bytes(head[68:72]) != _APPLICATION):
        what = "is not a store of runs"
    elif head and found != VERSION:
        what = f"is a store of version {found}, this appellate reads version {VERSION}"
    if what:
        raise StoreError(f"'{path}' {what}; it is left as it is. Name another file with --store.")


def _dump(document: Any) -> str:
    """JSON that gives every float back bit for bit."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
