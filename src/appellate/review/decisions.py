"""Decisions of reviewers: the file that keeps them, read in any form a spreadsheet gives it.

A file of decisions has one line a decision, later ones replace earlier ones on the same row, and
nothing is ever changed in it by a later decision. Its columns:

==========  =======================================================================
id          name of the row, or its number where the table has no names
decision    ``accept`` the appeal, ``keep`` the verdict, ``other`` candidate, ``none``
            of the candidates, ``clear``: an earlier decision is taken back
label       the true label. With ``none`` it may be empty, or name a label that is not
            among the row's candidates
time        when it was decided
candidates  the row's candidates, as the reviewer saw them
data        hash of the table, as the reviewer saw it
key         names the decision, so that one that is sent twice is kept once
==========  =======================================================================

The first three are needed, so that a file can be written by hand.
"""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate._files import write_file
from appellate._text import neutralize, restore
from appellate.candidates import CandidateSets
from appellate.candidates.names import listing
from appellate.docket import free_separator

try:
    import fcntl
except ImportError:  # Windows: one server a folder
    fcntl = None  # type: ignore[assignment]

__all__ = ["DecisionError", "DecisionFile", "Decisions", "Rows", "read_decisions"]

COLUMNS = ("id", "decision", "label", "time", "candidates", "data", "key")
_NEEDED = COLUMNS[:3]
#: Accept the appeal, keep the verdict, choose another candidate, none of these, take back.
KINDS = ("accept", "keep", "other", "none", "clear")
_LONGEST = 1000  # characters of a label that a reviewer names

Record = dict[str, str]


class DecisionError(ValueError):
    """A file of decisions, or one decision, that cannot be used; says why and what to do."""


# -- which decisions a docket admits -------------------------------------------------------


class Rows:
    """The rows that can be decided on: their names, their candidates, and of which table.

    Parameters
    ----------
    ids : sequence of str or None
        Names of the rows; None where they are known by number only.
    classes : sequence of str
        Labels.
    starts, labels : sequence of int, shapes (n + 1,) and (entries,)
        Candidates of row i are ``labels[starts[i]:starts[i + 1]]``.
    data : str
        Hash of the table; empty if it is not known.
    """

    def __init__(
        self,
        ids: Sequence[str] | None,
        classes: Sequence[str],
        starts: Sequence[int],
        labels: Sequence[int],
        data: str = "",
    ) -> None:
        self.named, self.classes, self.data = ids is not None, classes, data
        self.starts, self.labels, self.separator = starts, labels, free_separator(classes)
        names = map(str, range(len(starts) - 1)) if ids is None else ids
        self.places = {name: i for i, name in enumerate(names)}

    def candidates(self, row: int) -> list[str]:
        """Return the candidate labels of a row."""
        return [self.classes[j] for j in self.labels[self.starts[row] : self.starts[row + 1]]]

    def refusal(self, record: Mapping[str, str]) -> str:
        """Say why a decision on a known row is none, or may mean another row; empty if it is one.

        Only rows that are known by their number can move; named ones are found by name.
        """
        name, kind, label = (record.get(column, "") for column in _NEEDED)
        row, seen = self.places[name], record.get("candidates", "")
        inside = self.candidates(row)
        if kind in ("accept", "keep", "other") and label not in inside:
            return (
                f"{label!r} is no candidate of {name!r}, which has {listing(inside)}. To name a "
                "label outside the candidates, decide 'none' with that label."
            )
        if kind == "none" and label in inside:
            return f"{label!r} is a candidate of {name!r}: decide 'other', not 'none'."
        if len(label) > _LONGEST:
            return f"the label of {name!r} has more than {_LONGEST} characters."
        if not self.named and record.get("data") and self.data not in ("", record["data"]):
            why = "it was made on another version of the table"
        elif not self.named and seen and seen != self.separator.join(inside):
            why = f"its candidates were {seen}, and now are {listing(inside)}"
        else:
            return ""
        return (
            f"the decision on row {row} is refused: {why}, and the rows have no names, so it may "
            "mean another row. Name a column of row names (id), or use the table as it was."
        )

    def check(self, records: Iterable[Record], source: str) -> Decisions:
        """Return the latest decision on every row that has one, or raise a `DecisionError`."""
        latest = {record["id"]: record for record in records}
        if not latest:
            raise DecisionError(f"{source} has no decisions. Decide on some rows first.")
        for record in (known := [r for r in latest.values() if r["id"] in self.places]):
            if record["decision"] != "clear" and (reason := self.refusal(record)):
                raise DecisionError(f"{source}, decision on {record['id']!r}: {reason}")
        if not known:
            some = listing(map(repr, latest))
            raise DecisionError(
                f"{source}: none of its {len(latest)} ids is in the table, e.g. {some}. Were they "
                "made with another column of row names (id)?"
            )
        codes = {name: j for j, name in enumerate(self.classes)}
        kept = [record for record in known if record["decision"] != "clear"]
        return Decisions(
            np.array([self.places[r["id"]] for r in kept], dtype=np.intp),
            [r["decision"] for r in kept],
            np.array([codes.get(r["label"], -1) for r in kept], dtype=np.intp),
            [r["label"] for r in kept],
            len(latest) - len(known),
        )


# -- what was decided ---------------------------------------------------------------------


@dataclass(frozen=True)
class Decisions:
    """What was decided of which rows, the latest decision on each.

    Attributes
    ----------
    rows : ndarray of int, shape (m,)
        Row numbers.
    kinds : list of str
        ``accept``, ``keep``, ``other`` or ``none`` each.
    labels : ndarray of int, shape (m,)
        Class index; -1 where the row has no label, or one that is none of the classes.
    names : list of str
        The label as a text; empty where a reviewer said none and named no other.
    unknown : int
        Decisions on ids that the table does not have.

    Examples
    --------
    >>> import numpy as np
    >>> from appellate.candidates import as_candidates
    >>> decisions = Decisions(np.array([0, 2]), ["other", "none"], np.array([1, -1]), ["dog", ""])
    >>> sets, kept = decisions.apply(as_candidates(["cat|dog", "cat", "dog"]))
    >>> sets.matrix[0].tolist(), kept.tolist()
    ([False, True], [True, True, False])
    """

    rows: NDArray[np.intp]
    kinds: list[str]
    labels: NDArray[np.intp]
    names: list[str]
    unknown: int = 0

    def apply(self, sets: CandidateSets) -> tuple[CandidateSets, NDArray[np.bool_]]:
        """Return sets with one candidate for every decided row, and which rows to train on."""
        matrix, kept = sets.matrix.copy(), np.ones(len(sets), dtype=bool)
        decided = self.labels >= 0
        matrix[self.rows[decided]] = False
        matrix[self.rows[decided], self.labels[decided]] = True
        kept[self.rows[~decided]] = False
        return CandidateSets(matrix, sets.class_names, sets.ids), kept

    def by_row(self) -> dict[int, tuple[str, str]]:
        """Return kind and label by row, as the page takes them."""
        both = zip(self.kinds, self.names, strict=True)
        return dict(zip(self.rows.tolist(), both, strict=True))


def read_decisions(
    path: str | os.PathLike[str] | Sequence[Record],
    *,
    classes: Sequence[Any],
    candidates: NDArray[np.bool_],
    ids: Sequence[Any] | None = None,
    data: str = "",
    spell: Callable[[list[Record]], list[Record]] | None = None,
) -> Decisions:
    r"""Read a file of decisions and check it against the rows that it decides.

    Parameters
    ----------
    path : str, path or list of dict
        CSV with commas, semicolons or tabs, with or without a byte order mark, or JSON lines; or
        the decisions themselves, with ``id``, ``decision`` and ``label`` each.
    classes : sequence
        Names of the labels.
    candidates : ndarray of bool, shape (n, l)
        Candidate sets.
    ids : sequence, default=None
        Names of the rows. Without, a row is known by its number, and a decision that was made
        on another version of the table, or with other candidates, is refused.
    data : str, default=""
        Hash of the table.
    spell : callable, default=None
        Changes the decisions of a file before they are checked, so that their labels are spelled
        as those of the table.

    Returns
    -------
    Decisions
        The latest decision on every row that has one.

    Raises
    ------
    DecisionError
        If the file is none of decisions, or decides what cannot be.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "decisions.csv")
    ...     _ = path.write_text("id;decision;label\na;other;dog\nb;none;cow\n")
    ...     found = read_decisions(
    ...         path, classes=["cat", "dog"], candidates=np.ones((2, 2), bool), ids=["a", "b"]
    ...     )
    >>> found.by_row()
    {0: ('other', 'dog'), 1: ('none', 'cow')}
    """
    owner, labels = np.nonzero(candidates)
    starts = np.searchsorted(owner, np.arange(len(candidates) + 1)).tolist()
    names = None if ids is None else list(map(str, ids))
    rows = Rows(names, list(map(str, classes)), starts, labels.tolist(), data)
    if not isinstance(path, (str, os.PathLike)):
        return rows.check(path, "the decisions")
    records = parse(_content(Path(path)), f"'{path}'")
    return rows.check(records if spell is None else spell(records), f"'{path}'")


# -- the file -----------------------------------------------------------------------------


class DecisionFile:
    """A file to which decisions are added, each whole and once, or not at all.

    Parameters
    ----------
    path : Path
        The file; it need not exist.

    Notes
    -----
    A decision that `append` took is on disk. One that could not be written whole leaves the
    file as it was. A file that a spreadsheet saved in its own way is read as it is, and written
    anew in ours, with every cell, before the first decision is added; one that cannot be read
    is refused and never touched. Several threads and processes may append to one file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def records(self) -> list[Record]:
        """Return all decisions, the earliest first."""
        with self._lock:
            return self._read()[0]

    def append(self, record: Mapping[str, str]) -> bool:
        """Add a decision; False if it is there already, by its key.

        Raises
        ------
        DecisionError
            If the file cannot be read.
        OSError
            If the decision cannot be written.
        """
        with self._lock, self._open() as handle:
            records, ours = self._read()
            key = record.get("key")
            if key and any(each.get("key") == key for each in records):
                return False
            if not ours:  # written anew; further columns of the user's stay, at the end
                write_file(self.path, as_file([*records, record]))
                return True
            size = os.fstat(handle).st_size
            rest = (as_line(record) if size else _HEAD + as_line(record)).encode()
            try:
                while rest:
                    written = os.write(handle, rest)
                    if not written:
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    rest = rest[written:]
                os.fsync(handle)
            except OSError:
                os.ftruncate(handle, size)
                raise
        return True

    def _read(self) -> tuple[list[Record], bool]:
        """Return all decisions, and whether a line can be added to the file as it is."""
        try:
            content = _content(self.path)
        except FileNotFoundError:
            content = b""
        records = parse(content, f"'{self.path.name}'") if content else []
        ours = content.startswith(_HEAD.encode()) and content.endswith(b"\n")
        return records, ours or not content

    @contextmanager
    def _open(self) -> Iterator[int]:
        """Open the file for appending, alone among the processes that do so."""
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        while True:
            handle = os.open(self.path, flags, 0o666)
            try:
                if fcntl is not None:
                    fcntl.flock(handle, fcntl.LOCK_EX)
                # Another process may have put a new file in the place of the one we waited for.
                if os.path.samestat(os.fstat(handle), os.stat(self.path)):
                    yield handle
                    return
            finally:
                os.close(handle)


def parse(content: bytes, source: str) -> list[Record]:
    """Read the records of a file of decisions, all of it or nothing.

    A last line without its end, in a file of ours, is left out if it cannot be read: a server
    was killed while it wrote it, and never said that it had.

    Raises
    ------
    DecisionError
        With the line that cannot be read.
    """
    try:
        return _parse(content, source)
    except DecisionError:
        whole, end, torn = content.rpartition(b"\n")
        if not torn or not content.startswith(_HEAD.encode()):
            raise
        return _parse(whole + end, source)


def _parse(content: bytes, source: str) -> list[Record]:
    wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        text = content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError:
        raise DecisionError(
            f"{source} is not written in UTF-8. Save it as 'CSV UTF-8' and try again."
        ) from None
    # Old spreadsheets end lines by a carriage return alone.
    text = text if "\n" in text else text.replace("\r", "\n")
    records: list[Record] = []
    if text.lstrip().startswith("{"):
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip():
                continue
            where = f"{source}, line {number}"
            try:
                found = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise DecisionError(
                    f"{where} is no JSON: {error}. Mend the line, or remove it."
                ) from None
            if not isinstance(found, dict) or not set(_NEEDED) <= set(found):
                raise DecisionError(f"{where} has no {', '.join(_NEEDED)}. Mend it, or remove it.")
            texts = {str(name): "" if v is None else str(v) for name, v in found.items()}
            records.append(check_kind(texts, where))
        return records
    first = text.partition("\n")[0].rstrip("\r").replace("\r", " ")
    heads = {d: [name.strip().lower() for name in next(csv.reader([first], delimiter=d), [])]
             for d in ",;\t"}  # fmt: skip
    mark = next((d for d, head in heads.items() if set(_NEEDED) <= set(head)), None)
    if mark is None:
        raise DecisionError(
            f"{source} is no file of decisions: its first line lacks the columns "
            f"{', '.join(_NEEDED)}. Export one from the docket page."
        )
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
    try:
        head = [name.strip() for name in next(reader)]
        head = [name.lower() if name.lower() in COLUMNS else name for name in head]
        for cells in filter(any, reader):
            where = f"{source}, line {reader.line_num}"
            if len(cells) != len(head):
                raise DecisionError(
                    f"{where} has {len(cells)} cells, but the head of the file has {len(head)}. "
                    "Mend the line, or remove it."
                )
            record = dict(zip(head, map(restore, cells), strict=True))
            records.append(check_kind(record, where))
    except csv.Error as error:
        raise DecisionError(
            f"{source}, line {reader.line_num}: {error}. Mend the line, or remove it."
        ) from error
    return records


def check_kind(record: Record, where: str) -> Record:
    """Return a decision of a kind that there is, or raise a `DecisionError`."""
    if record["decision"] not in KINDS:
        raise DecisionError(
            f"{where}: the decision {record['decision']!r} is none of {', '.join(KINDS)}."
        )
    return record


def _content(path: Path) -> bytes:
    try:
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DecisionError(f"'{path}' cannot be read: {error.strerror or error}.") from error


# -- cells --------------------------------------------------------------------------------


def as_line(record: Mapping[str, str], more: Sequence[str] = ()) -> str:
    """Write one decision as a line of CSV, formulas neutralised."""
    return _line(neutralize(str(record.get(name, "") or "")) for name in (*COLUMNS, *more))


def as_file(records: Iterable[Mapping[str, str]]) -> str:
    """Write decisions as a file of ours; further columns are the last ones."""
    kept = list(records)
    more = list(dict.fromkeys(name for record in kept for name in record if name not in COLUMNS))
    return _line([*COLUMNS, *more]) + "".join(as_line(record, more) for record in kept)


def _line(cells: Iterable[str]) -> str:
    """Join cells; unlike csv.writer before Python 3.13, quote a lone carriage return."""
    quoted = (
        '"' + c.replace('"', '""') + '"' if re.search('[",;\t\r\n]', c) else c for c in cells
    )
    return ",".join(quoted) + "\n"


_HEAD = ",".join(COLUMNS) + "\n"
