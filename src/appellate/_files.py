"""Files and folders that are written whole or not at all: the one atomic writer.

What is written appears under its name when it is complete. Until then it lies beside its place
under a hidden name that holds the number of the process, so that what a killed run left behind
is known as such and removed by the next one.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import secrets
import shutil
import socket
import sys
import zlib
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

_COMMIT = ".appellate-commit"  # a folder of finished files that still have to be moved up
_PLAN = ".plan.json"
_HOST = f"{zlib.crc32(socket.gethostname().encode()):08x}"
_LITTER = re.compile(rf"\.appellate-{_HOST}-(\d+)-[0-9a-f]{{8}}")
_EXCHANGE = 2  # RENAME_EXCHANGE of Linux


class WriteError(OSError):
    """A place that cannot be written to: which, why, and what to do."""


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
    exchanged at once. Where that is not possible (another system, a mount, the folder in which
    the user stands), finished files are moved one by one after a plan that lies among them, and
    `finish_folder` goes on with it; every writer and reader of such folders calls it first.

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
    """
    target = Path(path).resolve()
    with contextlib.suppress(OSError, ValueError, TypeError, RecursionError):
        if (target / _COMMIT).is_dir():
            _move_up(target / _COMMIT, target)
    _sweep(target)


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
        trial.rmdir()
    except OSError as error:
        raise _unwritable(path, error) from error


@contextmanager
def _whole(
    path: str | os.PathLike[str], *, folder: bool, owned: Collection[str] | None = None
) -> Iterator[Path]:
    """Lend a hidden name beside the target, and put what is there then in its place."""
    target = Path(path).resolve()
    stage = target.parent / _hidden()
    made = [place for place in target.parents if not place.exists()]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target.parent)
        if folder:
            if target.is_file():
                raise FileExistsError
            finish_folder(target)
            stage.mkdir()
        yield stage
        for file in (stage, *stage.rglob("*")):  # on the disk before their names are
            if file.is_file():
                with file.open("rb") as stream:
                    os.fsync(stream.fileno())
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
        _remove(stage)
        for place in made:
            with contextlib.suppress(OSError):
                place.rmdir()  # only where it is empty


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
                if source.is_dir() and not source.is_symlink():
                    shutil.copytree(source, stage / name, symlinks=True, copy_function=os.link)
                else:
                    os.link(source, stage / name, follow_symlinks=False)
            if _exchange(stage, target):
                return
        for name in old - new - gone:
            _remove(stage / name)
    (stage / _PLAN).write_text(json.dumps(sorted(gone)), encoding="utf-8")
    inside = target / _hidden()
    try:
        os.rename(stage, inside)
    except OSError:  # a mount
        shutil.copytree(stage, inside, symlinks=True)
    os.rename(inside, target / _COMMIT)
    _move_up(target / _COMMIT, target)


def _can_exchange(target: Path) -> bool:
    """Tell whether a folder can give its place to another, and nobody stands in it."""
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


def _move_up(commit: Path, target: Path) -> None:
    """Move finished files up into their folder; can be called again after a kill anywhere."""
    plan = commit / _PLAN
    for entry in sorted(commit.iterdir()):
        place = target / entry.name
        if entry != plan:
            _set_aside(place, only_folders=True)
            os.replace(entry, place)
    if plan.exists():
        gone = json.loads(plan.read_text(encoding="utf-8"))
        for name in set(os.listdir(target)).intersection(gone):  # what lies elsewhere stays
            _set_aside(target / name)
    _remove(commit)


def _set_aside(place: Path, *, only_folders: bool = False) -> None:
    if place.is_dir() and not place.is_symlink():
        aside = place.parent / _hidden()
        os.rename(place, aside)
        _remove(aside)
    elif not only_folders:
        place.unlink(missing_ok=True)


def _hidden() -> str:
    return f".appellate-{_HOST}-{os.getpid()}-{secrets.token_hex(4)}"


def _sweep(folder: Path) -> None:
    """Remove what processes of this machine that are no more left in a folder."""
    if sys.platform == "win32":  # where asking for a process ends it
        return
    with contextlib.suppress(OSError):
        for entry in folder.iterdir():
            if found := _LITTER.fullmatch(entry.name):
                try:
                    os.kill(int(found[1]), 0)
                except (ProcessLookupError, OverflowError):  # no process has such a number
                    _remove(entry)
                except OSError:  # it runs, and is another user's
                    continue


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
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
