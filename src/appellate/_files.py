"""Files and folders that are written whole or not at all, and the safe reader of their members.

The one atomic writer: a file or folder appears under its name when it is complete. Until then it
is in a hidden folder next to its place. The writer holds a lock on this hidden folder, so the next
writer can tell what a killed run left behind, also across containers, and removes it.

The one safe reader: `read_member` and `read_json` open only regular files that are in the folder
itself. They never follow a link, never wait for a FIFO, and never read more than a limit.
"""

from __future__ import annotations

import contextlib
import csv
import ctypes
import errno
import json
import os
import re
import secrets
import shutil
import socket
import stat
import sys
import time
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows: hidden folders of killed runs stay
    fcntl = None  # type: ignore[assignment]

_COMMIT = ".appellate-commit"  # a folder of finished files that still have to be moved up
_PLAN = ".plan.json"
_STAGED = "new"  # what is being written, in its hidden folder
_HOST = f"{zlib.crc32(socket.gethostname().encode()):08x}"
_LITTER = re.compile(rf"\.appellate-{_HOST}-\d+-[0-9a-f]{{8}}")
_EXCHANGE = 2  # RENAME_EXCHANGE of Linux
_LARGEST_PLAN = 1 << 20
_DEEPEST = 100  # lists and objects within each other in a JSON file
_PATIENCE = 60.0  # seconds to wait for another process that finishes the same folder
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
    stat.S_IFREG: "a file",
}


class WriteError(OSError):
    """A place that cannot be written to: which, why, and what to do."""


class MemberError(ValueError):
    """A member of a folder that must not be read or moved: which, why, and what to do."""


def read_member(folder: str | os.PathLike[str], name: str, limit: int) -> bytes:
    """Read a small file of a folder that may come from others.

    Parameters
    ----------
    folder : path-like
        The folder; the caller chose it, so it may be named by a link.
    name : str
        Name of the file in it.
    limit : int
        Largest size in bytes.

    Returns
    -------
    bytes
        All of the file.

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        If the file does not exist.
    MemberError
        If it is not a regular file (a link, a FIFO, a device, a socket, a folder), is larger than
        the limit, or cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_file(f"{folder}/a.json", "[1]")
    ...     read_member(folder, "a.json", 100)
    b'[1]'
    """
    path = check_member(folder, name, "a file")
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        with open(os.open(path, flags | getattr(os, "O_BINARY", 0)), "rb") as stream:
            found = os.fstat(stream.fileno())
            if not stat.S_ISREG(found.st_mode):  # replaced since it was looked at
                raise _unsafe(path, found.st_mode, "a file")
            # Python makes room for as many bytes as it is asked for; some files have more to read
            # than their size.
            content = b"" if found.st_size > limit else stream.read(found.st_size + 1)
            while found.st_size < len(content) <= limit and (more := stream.read(1 << 16)):
                content += more
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise MemberError(f"'{path}' cannot be read: {error.strerror or error}.") from error
    if found.st_size > limit or len(content) > limit:
        raise MemberError(
            f"'{path}' is larger than {limit} bytes, so it was not read. Move it away, or get "
            "the folder again."
        )
    return content


def read_json(folder: str | os.PathLike[str], name: str, limit: int) -> Any:
    """Read a small JSON file of a folder that may come from others.

    Parameters
    ----------
    folder, name, limit
        See `read_member`.

    Returns
    -------
    object
        What the file holds.

    Raises
    ------
    FileNotFoundError, NotADirectoryError, MemberError
        As `read_member` does; also if the file is not JSON, or nested too deeply.
    """
    content = read_member(folder, name, limit)
    try:
        return parse_json(content)
    except ValueError as error:
        raise MemberError(
            f"'{Path(folder) / name}' is damaged ({error}). Move it away, or get the folder again."
        ) from error


def read_csv(path: str | os.PathLike[str], delimiter: str = ",") -> dict[str, list[str]]:
    r"""Read a small CSV file that a program wrote: cells as texts, by column.

    Tables of users are read by `appellate.tables.read_table`, which detects how they are written.

    Raises
    ------
    ValueError
        If the file is empty, a column name occurs twice, a row has more or fewer cells than the
        header, or a quotation mark is not closed; with the line.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "t.csv").write_text('id,label\n1,"a,b"\n')
    ...     read_csv(f"{folder}/t.csv")
    {'id': ['1'], 'label': ['a,b']}
    """
    rows: list[list[str]] = []
    with open(path, newline="", encoding="utf-8") as file:
        lines = csv.reader(file, delimiter=delimiter, strict=True)
        try:
            head = next(lines, [])
            for row in lines:
                if row and len(row) != len(head):
                    raise ValueError(f"{len(row)} cells, but the header has {len(head)}")
                rows += [row] if row else []
            if not head or len({*head}) < len(head):
                raise ValueError("no header" if not head else "a column name occurs twice")
        except (csv.Error, ValueError) as error:
            raise ValueError(
                f"'{os.fspath(path)}', line {lines.line_num}: {error}. The file is damaged."
            ) from error
    return {name: [row[i] for row in rows] for i, name in enumerate(head)}


def parse_json(content: str | bytes) -> Any:
    """Read JSON that may come from others.

    Parameters
    ----------
    content : str or bytes
        The text; bytes are UTF-8.

    Returns
    -------
    object
        What it says.

    Raises
    ------
    ValueError
        If it is not JSON, or is nested too deeply to be looked through by recursion.

    Examples
    --------
    >>> parse_json("[" * 200_000)
    Traceback (most recent call last):
    ...
    ValueError: more than 100 lists or objects are nested
    """
    text = content.decode("utf-8") if isinstance(content, bytes) else content
    depth = 0
    for bracket in re.sub(r'"(?:[^"\\]|\\.)*+"|[^][{}"]++', "", text, flags=re.DOTALL):
        depth += (bracket in "[{") - (bracket in "]}")
        if depth > _DEEPEST:
            raise ValueError(f"more than {_DEEPEST} lists or objects are nested")
    return json.loads(text)


def check_member(folder: str | os.PathLike[str], name: str, kind: str = "a file") -> Path:
    """Return the path of a member of a folder that may come from others, if it is not a link.

    Parameters
    ----------
    folder : path-like
        The folder.
    name : str
        Name of the member.
    kind : str, default="a file"
        ``"a file"`` or ``"a folder"``: what the member has to be.

    Returns
    -------
    Path
        Where it is.

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        If the member does not exist.
    MemberError
        If it is anything else: a link, a FIFO, a device, a socket.
    """
    path = Path(folder) / name
    mode = os.lstat(path).st_mode
    if _KINDS.get(stat.S_IFMT(mode)) != kind:
        raise _unsafe(path, mode, kind)
    return path


def check_members(folder: str | os.PathLike[str], kinds: Mapping[str, str]) -> None:
    """Check, before they are opened by others, that members of a folder are not links.

    Parameters
    ----------
    folder : path-like
        The folder.
    kinds : mapping of str to str
        ``"a file"`` or ``"a folder"`` by the name of the member; it need not be there.

    Raises
    ------
    MemberError
        As `check_member` does.
    """
    for name, kind in kinds.items():
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            check_member(folder, name, kind)


def _unsafe(path: Path, mode: int, kind: str) -> MemberError:
    found = _KINDS.get(stat.S_IFMT(mode), "something else")
    return MemberError(
        f"'{path}' is {found}, not {kind}, so it was not opened. Move it away, or get the folder "
        "again."
    )


def is_own(found: os.stat_result) -> bool:
    """Tell whether this user owns a file or folder; on Windows everything counts as own."""
    return not hasattr(os, "geteuid") or found.st_uid == os.geteuid()


def write_file(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """Write a file whole or not at all.

    Parameters
    ----------
    path : path-like
        The file; a symbolic link stays one. Folders on the way to it are made.
    content : str or bytes
        What it shall hold; text is written in UTF-8.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_file(f"{folder}/new/a.txt", "whole").read_text()
    'whole'
    """
    with whole_file(path) as stage:
        stage.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return Path(path)


def user_cache() -> Path:
    """Return the folder of this user for what can be fetched or computed again; it need not exist.

    Returns
    -------
    Path
        The folder that platformdirs would name, without needing it.
    """
    home = Path.home()
    if sys.platform == "win32":  # pragma: no cover
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
        return base / "appellate" / "appellate" / "Cache"
    base = home / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    return Path(os.environ.get("XDG_CACHE_HOME") or base) / "appellate"


def whole_file(path: str | os.PathLike[str]) -> AbstractContextManager[Path]:
    """Lend the path of a temporary file that takes its place when the block ends well.

    Parameters
    ----------
    path : path-like
        Where the file shall be. One that is there keeps its permissions; a new one gets those
        that the umask leaves.

    Yields
    ------
    Path
        Where to write it.

    Raises
    ------
    WriteError
        If that is not possible; nothing has changed then.
    """
    return _whole(path, folder=False)


def whole_folder(
    path: str | os.PathLike[str], *, owned: Collection[str] | None = None
) -> AbstractContextManager[Path]:
    """Lend a temporary folder that takes its place when the block ends well.

    Killed at any moment, the old folder or the new one is there whole: on Linux the two are
    exchanged at once. If that is not possible (another system, a mount, the user's
    current folder), finished files are moved one by one after a plan that is stored with them,
    and `finish_folder` continues it; every writer and reader of such folders calls it first.

    Parameters
    ----------
    path : path-like
        Where the folder shall be.
    owned : collection of str, default=None
        Names of the entries that may be replaced or removed; all others stay, as they are and
        when they change meanwhile. By default the folder is replaced with all that is in it.

    Yields
    ------
    Path
        Where to write its files.

    Raises
    ------
    WriteError
        If that is not possible; nothing has changed then.
    """
    return _whole(path, folder=True, owned=owned)


def finish_folder(path: str | os.PathLike[str]) -> None:
    """Finish what a killed writer of a folder had decided, and remove what it left behind.

    Parameters
    ----------
    path : path-like
        The folder; it need not be there.

    Raises
    ------
    MemberError
        If what a writer seems to have left is a link, is not the work of a writer, or is in a
        folder of another user. Nothing was moved then.
    WriteError
        If the folder cannot be written.
    """
    target = Path(path).resolve()
    deadline = time.monotonic() + _PATIENCE
    while os.path.lexists(target / _COMMIT):
        try:
            with contextlib.suppress(FileNotFoundError):  # another process has just finished it
                if _finish(target):
                    break
        except OSError as error:
            raise _unwritable(path, error) from error
        if time.monotonic() > deadline:
            raise MemberError(
                f"another process has been writing '{target}' for {_PATIENCE:.0f} seconds. Try "
                "again when it has ended."
            )
        time.sleep(0.02)
    _sweep(target)


def _finish(target: Path) -> bool:
    """Move up what a killed writer left; False while another process does so."""
    commit = check_member(target, _COMMIT, "a folder")
    if not (is_own(os.lstat(commit)) and is_own(os.lstat(target))):
        raise MemberError(
            f"a writer of '{target}' was stopped before its end ('{commit}' is there), and the "
            "folder belongs to another user. Ask its owner to open it, or copy the folder."
        )
    with _lock(commit) as locked:
        if locked:
            _move_up(commit, target, _read_plan(commit))
        return locked


def _read_plan(commit: Path) -> list[str]:
    """Return the names that a writer wants to remove, before anything is moved."""
    try:
        plan = read_json(commit, _PLAN, _LARGEST_PLAN)
    except FileNotFoundError:
        if any(commit.iterdir()):
            raise MemberError(
                f"'{commit}' has no {_PLAN}, so no writer left it. Remove it."
            ) from None
        return []
    if not isinstance(plan, list) or not all(isinstance(name, str) for name in plan):
        raise MemberError(f"'{commit / _PLAN}' is not a list of names. Remove '{commit}'.")
    return plan


def check_writable(path: str | os.PathLike[str]) -> None:
    """Try whether a file or folder can be written, before the work and without a trace.

    Parameters
    ----------
    path : path-like
        Where something shall be written later.

    Raises
    ------
    WriteError
        If it cannot be.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     check_writable(f"{folder}/some/where")
    """
    target = Path(path).resolve()
    try:
        if target.is_file():
            os.close(os.open(target, os.O_WRONLY | os.O_APPEND))
        nearest = next(place for place in (target, *target.parents) if place.exists())
        nearest = nearest.parent if nearest == target and target.is_file() else nearest
        trial = nearest / _hidden()
        trial.mkdir()
        with contextlib.suppress(FileNotFoundError):  # another process took it for litter
            trial.rmdir()
    except OSError as error:
        raise _unwritable(path, error) from error


@contextmanager
def _whole(
    path: str | os.PathLike[str], *, folder: bool, owned: Collection[str] | None = None
) -> Iterator[Path]:
    """Lend a hidden name next to the target, and put what is there then in its place."""
    target = Path(path).resolve()
    made = [place for place in target.parents if not place.exists()]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target.parent)
        if folder:
            if target.is_file():
                raise FileExistsError
            finish_folder(target)
        with _stage(target.parent) as stage:
            if folder:
                stage.mkdir()
            yield stage
            for file in (stage, *stage.rglob("*")):  # on the disk before their names are
                if file.is_file():
                    _flush(file)
            if folder and target.exists():
                _replace_folder(stage, target, owned)
            else:
                if target.exists():
                    shutil.copymode(target, stage)
                os.replace(stage, target)
    except WriteError:
        raise
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        for place in made:
            with contextlib.suppress(OSError):
                place.rmdir()  # only where it is empty


@contextmanager
def _stage(parent: Path) -> Iterator[Path]:
    """Lend a free name in a hidden folder that is locked; both are removed at the end."""
    while True:
        home = parent / _hidden()
        home.mkdir()
        with _lock(home) as locked:
            if not locked:  # another process took it for litter, before it was locked
                continue
            try:
                yield home / _STAGED
            finally:
                _remove(home)
            return


@contextmanager
def _lock(place: Path) -> Iterator[bool]:
    """Lock a hidden folder, and tell whether it is ours now.

    A lock ends with the process that holds it, in whatever container that runs. File systems
    without locks count as locked: there nothing is treated as litter, see `_remove_litter`.
    """
    if fcntl is None:
        yield True
        return
    try:
        handle = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        yield False
        return
    try:
        yield _take(handle) is not False and _is_there(handle, place)
    finally:
        os.close(handle)


def _take(handle: int) -> bool | None:
    """Lock an open file or folder; False if another holds it, None if there are no locks here."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return False if error.errno in (errno.EAGAIN, errno.EACCES) else None
    return True


def _is_there(handle: int, place: Path) -> bool:
    """Tell whether an open file still has its name."""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(place))
    except FileNotFoundError:
        return False


def _flush(file: Path) -> None:
    with file.open("rb") as stream:
        os.fsync(stream.fileno())


def _replace_folder(stage: Path, target: Path, owned: Collection[str] | None) -> None:
    """Put a finished folder in the place of another one."""
    new = {entry.name for entry in stage.iterdir()}
    old = {entry.name for entry in target.iterdir() if not _LITTER.fullmatch(entry.name)}
    gone = (old if owned is None else old & {*owned}) - new
    shutil.copymode(target, stage)
    if _can_exchange(target):
        with contextlib.suppress(OSError):  # not every file system has links
            # What stays gets a second name in the new folder: who appends to it goes on.
            for name in old - new - gone:
                source = target / name
                if _is_folder(source):
                    shutil.copytree(source, stage / name, symlinks=True, copy_function=os.link)
                else:
                    os.link(source, stage / name, follow_symlinks=False)
            if _exchange(stage, target):
                return
        for name in old - new - gone:
            _remove(stage / name)
    (stage / _PLAN).write_text(json.dumps(sorted(gone)), encoding="utf-8")
    _flush(stage / _PLAN)
    with _stage(target) as inside:
        try:
            os.rename(stage, inside)
        except OSError:  # a mount
            shutil.copytree(stage, inside, symlinks=True)
        with _lock(inside):
            os.rename(inside, target / _COMMIT)
            _move_up(target / _COMMIT, target, sorted(gone))


def _can_exchange(target: Path) -> bool:
    """Tell whether a folder can give its place to another, and is not the current folder."""
    try:
        stands = Path.cwd().is_relative_to(target)
    except FileNotFoundError:
        stands = False
    same = target.stat().st_dev == target.parent.stat().st_dev
    return sys.platform == "linux" and same and not stands


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders at once; False where the system cannot."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "renameat2"):
        return False
    here = -100  # AT_FDCWD
    return not libc.renameat2(here, os.fsencode(one), here, os.fsencode(other), _EXCHANGE)


def _move_up(commit: Path, target: Path, gone: Collection[str]) -> None:
    """Move finished files up into their folder; can be called again after a kill anywhere."""
    for entry in sorted(commit.iterdir()):
        if entry.name != _PLAN:
            place = target / entry.name
            if _is_folder(place) or _is_folder(entry):  # a file replaces a file at once
                _set_aside(place)
            os.replace(entry, place)
    for name in set(os.listdir(target)).intersection(gone):  # files elsewhere stay
        _set_aside(target / name)
    _remove(commit)


def _is_folder(place: Path) -> bool:
    return place.is_dir() and not place.is_symlink()


def _set_aside(place: Path) -> None:
    if _is_folder(place):
        aside = place.parent / _hidden()
        os.rename(place, aside)
        _remove(aside)
    else:
        place.unlink(missing_ok=True)


def _hidden() -> str:
    return f".appellate-{_HOST}-{os.getpid()}-{secrets.token_hex(4)}"


def _sweep(folder: Path) -> None:
    """Remove what this user's killed processes left in a folder."""
    if fcntl is None:
        return
    with contextlib.suppress(OSError):
        for entry in folder.iterdir():
            if _LITTER.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    _remove_litter(entry)


def _remove_litter(entry: Path) -> None:
    """Remove a hidden folder of ours unless a living process, wherever it runs, has locked it."""
    found = os.lstat(entry)
    if not is_own(found) or not (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)):
        return
    handle = os.open(entry, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if _take(handle):
            _remove(entry)
    finally:
        os.close(handle)


def _remove(place: Path) -> None:
    if _is_folder(place):
        shutil.rmtree(place, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            place.unlink()


def _unwritable(path: str | os.PathLike[str], error: OSError) -> WriteError:
    reason = error.strerror or str(error)
    place = f" ('{error.filename}')" if error.filename else ""
    if isinstance(error, (FileExistsError, NotADirectoryError)):
        reason = "a file is where a folder would have to be"
    elif isinstance(error, IsADirectoryError):
        reason = "a folder has that name"
    return WriteError(f"cannot write '{os.fspath(path)}': {reason}{place}. Name another place.")
