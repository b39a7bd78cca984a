"""Decisions of reviewers: the file that keeps them, read in any form a spreadsheet gives it.

A file of decisions has one line per decision, later ones replace earlier ones on the same row, and
nothing is ever changed in it by a later decision. Its columns:

==========  ==========================================================================
id          name of the row, or its number where the table has no names
decision    ``accept`` the final label, ``keep`` the first label, ``other`` candidate, ``none``
            of the candidates, ``clear``: an earlier decision is taken back
label       the true label. With ``none`` it may be empty, or name a label that is not
            among the row's candidates
time        when it was decided
candidates  the row's candidates, as the reviewer saw them
data        hash of the table, as the reviewer saw it
key         names the decision, so that one that is sent twice is kept once. The keys of rows
            that were accepted together, without a look at each, begin with ``b``
note        what the reviewer wrote about the row
==========  ==========================================================================

The first three are needed, so that a file can be written by hand. A line that cannot be read is
skipped and reported with its number; the other lines count, and the file keeps it as it is.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from appellate._files import (
    MemberError,
    check_members,
    parse_json,
    read_member,
    write_file,
)
from appellate._text import SHOWN, neutralize, restore
from appellate.candidates import CandidateSets
from appellate.candidates.names import listing
from appellate.docket import free_separator

try:
    import fcntl
except ImportError:  # Windows: one server a folder
    fcntl = None  # type: ignore[assignment]

__all__ = ["DecisionError", "DecisionFile", "Decisions", "Rows", "read_decisions"]

COLUMNS = ("id", "decision", "label", "time", "candidates", "data", "key", "note")
_NEEDED = COLUMNS[:3]
#: Accept the final label, keep the first one, choose another candidate, none of these, take back.
KINDS = ("accept", "keep", "other", "none", "clear")
DECISIONS = "decisions.csv"  # the file of decisions in the folder of a run
_LONGEST = 1000  # characters of a label that a reviewer names
_LARGEST_LINE = 16 << 20  # bytes of one decision
_LARGEST = 1 << 30  # bytes of a file of decisions
_BREAK = re.compile(rb"\r\n|\n|\r")

DecisionRecord = dict[str, str]


class DecisionError(ValueError):
    """A file of decisions, or one decision, that cannot be used; says why and what to do."""


# -- which decisions a docket admits -------------------------------------------------------


class Rows:
    """The rows that can be decided on: their names, their candidates, and of which table.

    Parameters
    ----------
    ids : sequence of str or None
        Names of the rows; None if they are known by number only.
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
        self.named = ids is not None
        self.classes = classes
        self.data = data
        self.starts = starts
        self.labels = labels
        self.separator = free_separator(classes)
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
                f"{label!r} is not a candidate of {name!r}, which has {listing(inside)}. To name "
                "a label outside the candidates, decide 'none' with that label."
            )
        if kind == "none" and label in inside:
            return f"{label!r} is a candidate of {name!r}: decide 'other', not 'none'."
        if kind == "none" and len(label) > _LONGEST:
            return f"the new label of {name!r} has more than {_LONGEST} characters. Shorten it."
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

    def check(
        self, records: Iterable[DecisionRecord], source: str, skipped: Sequence[str] = ()
    ) -> Decisions:
        """Return the latest decision on every row that has one, or raise a `DecisionError`."""
        latest = {record["id"]: record for record in records}
        if not latest and skipped:
            raise DecisionError(f"{source}: no line can be read. {say_skipped(skipped)}")
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
            tuple(skipped),
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
    skipped : tuple of str
        Lines of the file that could not be read: the number of each, and why.

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
    skipped: tuple[str, ...] = ()

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
    path: str | os.PathLike[str] | Sequence[DecisionRecord],
    *,
    classes: Sequence[Any],
    candidates: NDArray[np.bool_],
    ids: Sequence[Any] | None = None,
    data: str = "",
    spell: Callable[[list[DecisionRecord]], list[DecisionRecord]] | None = None,
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
        If the file is none of decisions, has no line that can be read, or decides what cannot
        be. Single lines that cannot be read are in `Decisions.skipped`.

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
    place = Path(path)
    try:
        content = read_member(place.parent, place.name, _LARGEST)
    except MemberError as error:
        raise DecisionError(str(error)) from error
    found = read_records(content, f"'{path}'")
    records = found.records if spell is None else spell(found.records)
    return rows.check(records, f"'{path}'", found.skipped)


# -- the file -----------------------------------------------------------------------------


class DecisionFile:
    """A file to which decisions are added, each whole and once, or not at all.

    Parameters
    ----------
    path : Path
        The file; it need not exist.

    Notes
    -----
    A decision that `append` took is on disk and can be read again. One that could not be written
    whole leaves the file as it was. Lines that cannot be read stay where they are. A file that a
    spreadsheet saved in its own way is read as it is, and written again in our form, with every
    cell, before the first decision is added; if not all of its lines can be read, it is not
    touched. Several threads and processes may append to one file.

    The file is parsed once. Later only the lines are parsed that were added, as long as the part
    before them has not changed.
    """

    _version: str  # of what is known of the file, in the marks of `since`
    _stamp: tuple[int, ...]
    _records: list[DecisionRecord]
    _skipped: list[str]
    _keys: set[str]
    _head: list[str]
    _ours: bool  # a line can be added to the file as it is
    _whole: bool  # the last line has its end
    # Up to `_end`, of the check sum `_sum`, all lines are good and are not parsed again: so many
    # records (`_settled`) and line breaks.
    _end: int
    _sum: int
    _settled: int
    _breaks: int

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._forget()

    def records(self) -> list[DecisionRecord]:
        """Return all decisions, the earliest first."""
        return self.read().records

    def read(self) -> Parsed:
        """Return all decisions, and what lines had to be skipped."""
        with self._lock:
            try:
                with self._open(os.O_RDONLY) as handle:
                    self._refresh(handle)
            except FileNotFoundError:
                self._forget()
            return Parsed(list(self._records), list(self._skipped))

    def since(self, mark: str = "") -> Change:
        """Return the decisions that were added since a mark of an earlier call.

        All decisions are returned if the file was replaced in the meantime, and for any other
        mark. Lines that may still change, at the end of the file, are returned every time.
        """
        with self._lock:
            try:
                with self._open(os.O_RDONLY) as handle:
                    self._refresh(handle)
            except FileNotFoundError:
                if self._stamp:
                    self._forget()
            version, _, place = mark.partition(".")
            known = version == self._version and place.isascii() and place.isdigit()
            start = int(place[:20]) if known else 0
            whole = not known or start > self._settled
            records = self._records[0 if whole else start :]
            return Change(records, whole, f"{self._version}.{self._settled}")

    def append(self, record: Mapping[str, str]) -> bool:
        """Add a decision; False if it exists already, by its key. See `extend`."""
        return self.extend([record]) == 1

    def extend(self, records: Iterable[Mapping[str, str]]) -> int:
        """Add decisions, all of them or none; return how many were not there already, by key.

        Raises
        ------
        DecisionError
            If the file cannot be read, or the decision could not be read again.
        OSError
            If the decision cannot be written.
        """
        with self._lock, self._open(os.O_RDWR | os.O_APPEND | os.O_CREAT) as handle:
            self._refresh(handle)
            late = {each.get("key") for each in self._records[self._settled :]}
            fresh: list[Mapping[str, str]] = []
            for record in records:
                key = record.get("key")
                if not key or not (key in self._keys or key in late):
                    fresh.append(record)
                    late.add(key)
            if not fresh:
                return 0
            if not self._ours:  # written again; further columns of the user's stay, at the end
                self._rewrite(fresh)
                return len(fresh)
            size = os.fstat(handle).st_size
            content = b"" if self._whole else b"\n"  # a killed server left half a line
            content = content if size else _HEAD.encode()
            lines = []
            for record in fresh:
                line = as_line(record, self._head[len(COLUMNS) :]).encode()
                lines.append(self._read_back(record, line, size + len(content)))
                content += line
            _write(handle, content, size)
            if self._whole and self._end == size:
                self._settle(lines, content)
                self._stamp = _stamp(os.fstat(handle))
        return len(fresh)

    def _rewrite(self, records: Sequence[Mapping[str, str]]) -> None:
        if self._skipped:
            raise DecisionError(
                f"'{self.path.name}' has lines that cannot be read and would be lost. "
                f"{say_skipped(self._skipped)} Correct or remove these lines."
            )
        write_file(self.path, as_file([*self._records, *records]))
        self._forget()

    def _read_back(self, record: Mapping[str, str], line: bytes, size: int) -> _Line:
        """Read a line before it is written; refuse a decision that could not be read again."""
        fits = len(line) <= _LARGEST_LINE and size + len(line) <= _LARGEST
        found = list(_lines(_Form(line, self._head, b",", 0), 1)) if fits else []
        meant = {name: str(record.get(name, "") or "") for name in COLUMNS}
        again = found[0].record if len(found) == 1 else None
        if again is not None and meant.items() <= again.items():
            return found[0]
        reason = "it could not be read again" if fits else f"it takes {len(line)} bytes, too many"
        raise DecisionError(f"the decision on {meant['id'][:50]!r} was not saved: {reason}.")

    # -- what is known of the file ------------------------------------------------------------

    def _forget(self) -> None:
        """Know nothing of the file: it is parsed from its start the next time."""
        self._version = secrets.token_hex(6)
        self._stamp, self._head = (), list(COLUMNS)
        self._records = []
        self._skipped = []
        self._keys = set()
        self._ours = self._whole = True
        self._end = self._sum = self._settled = self._breaks = 0

    def _refresh(self, handle: int) -> None:
        """Parse what was added to the file since it was looked at; all of it if it changed."""
        found = os.fstat(handle)
        if _stamp(found) == self._stamp:
            return
        if found.st_size > _LARGEST:
            raise DecisionError(
                f"'{self.path.name}' is larger than {_LARGEST} bytes. Move it away, and keep it."
            )
        with open(os.dup(handle), "rb") as stream:
            stream.seek(0)
            content = stream.read()
        if not (self._end and zlib.crc32(content[: self._end]) == self._sum):
            self._forget()
            form = _find_form(content, f"'{self.path.name}'") if content else None
            self._ours = form is None or (form.content == content and form.is_ours)
            if form is not None and not self._ours:
                self._records, self._skipped = read_records(content, f"'{self.path.name}'")
                self._stamp = _stamp(found)
                return
            if form is not None:
                self._head, self._end = form.head, form.start
                self._sum, self._breaks = zlib.crc32(content[: form.start]), 1
        del self._records[self._settled :]
        self._skipped = []
        form = _Form(content, self._head, b",", self._end)
        lines = list(_lines(form, self._breaks + 1))
        good = next((i for i, line in enumerate(lines) if line.record is None), len(lines))
        if lines and good == len(lines) and not content.endswith(b"\n"):
            good -= 1  # it may be half a line
        self._settle(lines[:good], content[self._end : lines[good - 1].end] if good else b"")
        self._records += [line.record for line in lines[good:] if line.record is not None]
        self._skipped = [line.reason for line in lines[good:] if line.record is None]
        self._whole = not content or content.endswith(b"\n")
        self._stamp = _stamp(found)

    def _settle(self, lines: Sequence[_Line], content: bytes) -> None:
        """Take lines for good: they are not parsed again."""
        records = [line.record for line in lines if line.record is not None]
        self._records[self._settled :] = records
        self._keys.update(record["key"] for record in records if record.get("key"))
        self._settled += len(records)
        self._end += len(content)
        self._sum = zlib.crc32(content, self._sum)
        self._breaks += len(_BREAK.findall(content))

    @contextmanager
    def _open(self, flags: int) -> Iterator[int]:
        """Open the file, alone among the processes that append to it."""
        careful = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        writing = flags != os.O_RDONLY
        while True:
            try:
                check_members(self.path.parent, {self.path.name: "a file"})
            except MemberError as error:
                raise DecisionError(str(error)) from error
            handle = os.open(self.path, flags | careful | getattr(os, "O_BINARY", 0), 0o666)
            try:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    continue  # it was replaced, and is refused now
                if fcntl is not None:
                    fcntl.flock(handle, fcntl.LOCK_EX if writing else fcntl.LOCK_SH)
                # Another process may have put a new file in the place of the one we waited for.
                if os.path.samestat(os.fstat(handle), os.lstat(self.path)):
                    yield handle
                    return
            finally:
                os.close(handle)


def _write(handle: int, content: bytes, size: int) -> None:
    """Add to a file of a size, on disk at the end; all of it or nothing."""
    rest = content
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


def _stamp(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


# -- lines ----------------------------------------------------------------------------------


class Change(NamedTuple):
    """Decisions added to a file, or all if `whole`; and the mark for the next reading."""

    records: list[DecisionRecord]
    whole: bool
    mark: str


class Parsed(NamedTuple):
    """The decisions of a file, and what lines had to be skipped: the number of each, and why."""

    records: list[DecisionRecord]
    skipped: list[str]


class _Form(NamedTuple):
    """How a file is written: its text in UTF-8, columns, separator, where its lines begin."""

    content: bytes
    head: list[str]
    mark: bytes  # empty for JSON lines
    start: int

    @property
    def is_ours(self) -> bool:
        """Whether a line can be added to the file as it is."""
        return self.mark == b"," and self.head[: len(COLUMNS)] == list(COLUMNS)


class _Line(NamedTuple):
    """What a line of a file says; its place; why it says nothing."""

    start: int
    end: int
    record: DecisionRecord | None
    reason: str = ""


def say_skipped(skipped: Sequence[str]) -> str:
    """Tell in one text which lines were skipped, and why."""
    rest = len(skipped) - SHOWN
    more = f" And {rest} more." if rest > 0 else ""
    return " ".join(f"{each[:1].upper()}{each[1:]}." for each in skipped[:SHOWN]) + more


def parse(content: bytes, source: str) -> list[DecisionRecord]:
    """Return the decisions of a file; see `read_records`."""
    return read_records(content, source).records


def read_records(content: bytes, source: str) -> Parsed:
    """Read a file of decisions; lines that cannot be read are skipped and told.

    Parameters
    ----------
    content : bytes
        The file.
    source : str
        What messages call it.

    Returns
    -------
    Parsed
        The decisions, the earliest first, and the skipped lines.

    Raises
    ------
    DecisionError
        If it is not a file of decisions.
    """
    form = _find_form(content, source)
    lines = list(_lines(form, 2) if form.mark else _json_lines(form.content))
    return Parsed(
        [line.record for line in lines if line.record is not None],
        [line.reason for line in lines if line.record is None],
    )


def _find_form(content: bytes, source: str) -> _Form:
    """Find out how a file is written, by its first bytes and its first line."""
    for start, encoding in _MARKS_OF_ENCODINGS.items():
        if content.startswith(start):
            try:
                content = content.decode(encoding).encode()
            except UnicodeError:
                raise DecisionError(
                    f"{source} is not written in UTF-8. Save it as 'CSV UTF-8' and try again."
                ) from None
            break
    if b"\n" not in content:  # old spreadsheets end lines by a carriage return alone
        content = content.replace(b"\r", b"\n")
    if content.lstrip().startswith(b"{"):
        return _Form(content, [], b"", 0)
    for mark in (b",", b";", b"\t"):
        cells, end = _cells(content, 0, mark, _CELL) or ([], 0)
        head = [cell.decode("utf-8", "replace").strip() for cell in cells]
        head = [name.lower() if name.lower() in COLUMNS else name for name in head]
        if set(_NEEDED) <= set(head):
            return _Form(content, head, mark, end)
    raise DecisionError(
        f"{source} is not a file of decisions: its first line lacks the columns "
        f"{', '.join(_NEEDED)}. Export one from the review page."
    )


_MARKS_OF_ENCODINGS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}
# A cell in quotation marks, or one without; ours has none within.
_CELL, _OUR_CELL = (
    {
        mark: re.compile(
            rb'(?:"([^"]*+(?:""[^"]*+)*+)"|((?!")[^%b%b\r\n]*+))(%b|\r\n|\n|\r|\Z)'
            % (mark, within, mark)
        )
        for mark in (b",", b";", b"\t")
    }
    for within in (b"", b'"')
)


def _cells(
    content: bytes, at: int, mark: bytes, pattern: Mapping[bytes, re.Pattern[bytes]]
) -> tuple[list[bytes], int] | None:
    """Return the cells of the line that begins at a place, and its end; None if it is torn."""
    cells = []
    while found := pattern[mark].match(content, at):
        quoted, plain, end = found.groups()
        cells.append(plain if quoted is None else quoted.replace(b'""', b'"'))
        at = found.end()
        if end != mark:
            return cells, at
    return None


def _lines(form: _Form, number: int) -> Iterator[_Line]:
    """Yield what every line of CSV says; after a bad one go on at the next line break."""
    content, at = form.content, form.start
    pattern = _OUR_CELL if form.is_ours else _CELL
    while at < len(content):
        cells, end = _cells(content, at, form.mark, pattern) or (None, at)
        if cells is None or any(cells):
            record, reason = _as_record(cells, form.head)
            if record is None:
                found = _BREAK.search(content, at)
                end, reason = found.end() if found else len(content), f"line {number} {reason}"
            yield _Line(at, end, record, reason)
        number += len(_BREAK.findall(content, at, end))
        at = end


def _as_record(cells: list[bytes] | None, head: list[str]) -> tuple[DecisionRecord | None, str]:
    """Return the decision that cells make, or why they make none."""
    if cells is None:
        return None, "has a quotation mark that is not closed"
    if len(cells) != len(head):
        return None, f"has {len(cells)} cells, but the head of the file has {len(head)}"
    try:
        texts = [restore(cell.decode()) for cell in cells]
    except UnicodeDecodeError:
        return None, "is not written in UTF-8"
    return _of_a_kind(dict(zip(head, texts, strict=True)))


def _of_a_kind(record: DecisionRecord) -> tuple[DecisionRecord | None, str]:
    kind = record["decision"]
    if kind in KINDS:
        return record, ""
    return None, f"has the decision {kind[:50]!r}, which is none of {', '.join(KINDS)}"


def _json_lines(content: bytes) -> Iterator[_Line]:
    """Yield what every line of JSON says."""
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            found = parse_json(line)
        except ValueError as error:
            record, reason = None, f"is not JSON: {error}"
        else:
            if isinstance(found, dict) and set(_NEEDED) <= set(found):
                texts = {str(name): "" if v is None else str(v) for name, v in found.items()}
                record, reason = _of_a_kind(texts)
            else:
                record, reason = None, f"has no {', '.join(_NEEDED)}"
        yield _Line(0, 0, record, f"line {number} {reason}" if reason else "")


def check_kind(record: DecisionRecord, where: str) -> DecisionRecord:
    """Return a decision of a kind that there is, or raise a `DecisionError`."""
    if record["decision"] not in KINDS:
        raise DecisionError(
            f"{where}: the decision {record['decision']!r} is none of {', '.join(KINDS)}."
        )
    return record


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
