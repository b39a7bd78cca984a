"""Fetch data sets from their public addresses into the data home."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from appellate._text import install
from appellate.datasets.catalogue import Download, KnownDataset, find_dataset
from appellate.datasets.home import get_data_home, sha256

Loader = TypeVar("Loader", bound=Callable[..., Any])
# How each program writes one member of a RAR archive to its standard output.
UNPACKERS = {
    "bsdtar": ("-xOf",),
    "unrar": ("p", "-inul"),
    "7z": ("e", "-so"),
    "7zz": ("e", "-so"),
}


def fetch_dataset(
    name: str,
    *,
    data_home: str | os.PathLike[str] | None = None,
    announce: Callable[[str], object] | None = None,
    downloader: Callable[..., object] | None = None,
) -> dict[str, Path]:
    """Download the files of a known data set that the data home does not have.

    The terms of use are shown before anything is downloaded. A file whose SHA-256 is not the
    confirmed one is refused; a download that fails or is interrupted leaves nothing behind.

    Parameters
    ----------
    name : str
        Name of the data set, in any spelling: ``"lost"``, ``"FG-NET"``, ``"cifar10"``, ...
    data_home : path-like, default=None
        Where to put it, see `get_data_home`.
    announce : callable, default=None
        Told the terms of use; by default they are logged as a warning, which Python prints.
    downloader : callable, default=None
        How to download, as `pooch.retrieve` takes it; by default pooch chooses by protocol.

    Returns
    -------
    dict of str to Path
        Where every file of the data set now is.

    Raises
    ------
    FileNotFoundError
        If the catalogue has no address with a checksum, or no program can unpack the archive;
        the message names the file and its place.
    ConnectionError
        If the download fails, with the same advice.
    ValueError
        If the name is unknown, or a file is not the published one.

    Examples
    --------
    >>> from appellate.datasets import fetch_dataset
    >>> fetch_dataset("fashion-mnist")  # doctest: +SKIP
    """
    entry, home = find_dataset(name), get_data_home(data_home)
    found = entry.find(home)
    missing = [path for path, place in found.items() if place is None]
    if missing:
        chosen = [download for download in entry.downloads if {*download.paths} & {*missing}]
        if {*missing} - {path for download in chosen for path in download.paths}:
            raise _not_found(entry, home, missing)
        if any(download.url.endswith(".rar") for download in chosen) and _unpacker() is None:
            raise FileNotFoundError(
                f"{chosen[0].url} is a RAR archive, and none of {', '.join(UNPACKERS)} is "
                "installed to unpack it. Install one of them, or: "
                f"{entry.instructions(home, missing)}"
            )
        try:
            import pooch
        except ImportError as error:
            raise ImportError(
                f"downloading {entry.title} needs pooch: {install('data')}. "
                f"Or: {entry.instructions(home, missing)}"
            ) from error
        (announce or logging.getLogger("appellate").warning)(
            f"{entry.title} is fetched from {entry.page}. Terms of use: {entry.terms} "
            f"Cite: {entry.citation}"
        )
        for download in chosen:
            _fetch(pooch, download, entry, home, downloader)
        found |= entry.find(home)
    return {path: place for path, place in found.items() if place is not None}


def require_files(
    entry: KnownDataset,
    data_home: str | os.PathLike[str] | None,
    download_if_missing: bool,
    paths: Iterable[str] = (),
) -> dict[str, Path]:
    """Return the files of a data set, fetching them if they are missing and may be fetched.

    Parameters
    ----------
    entry : KnownDataset
        The data set.
    data_home : path-like or None
        See `get_data_home`.
    download_if_missing : bool
        Whether to fetch.
    paths : iterable of str, default=()
        The files that are needed; all by default.

    Raises
    ------
    FileNotFoundError, ConnectionError, ValueError
        As `fetch_dataset`.
    """
    home = get_data_home(data_home)
    needed = set(paths) or {file.path for file in entry.files}
    found = entry.find(home)
    missing = [path for path in found if path in needed and found[path] is None]
    if missing and not download_if_missing:
        raise _not_found(entry, home, missing)
    places = fetch_dataset(entry.name, data_home=home) if missing else found
    return {path: place for path, place in places.items() if place is not None}


def described_by(function: Callable[..., Any]) -> Callable[[Loader], Loader]:
    """Give a loader name and docstring of a function; its signature stays its own."""

    def describe(load: Loader) -> Loader:
        for word in ("__module__", "__name__", "__qualname__", "__doc__"):
            setattr(load, word, getattr(function, word))
        return load

    return describe


def _not_found(entry: KnownDataset, home: Path, missing: list[str]) -> FileNotFoundError:
    return FileNotFoundError(
        f"{entry.title} is not in the data home '{home}'. {entry.instructions(home, missing)}"
    )


def _fetch(
    pooch: Any,
    download: Download,
    entry: KnownDataset,
    home: Path,
    downloader: Callable[..., object] | None,
) -> None:
    """Download, unpack and check in a temporary folder; then move the files to their places."""
    home.mkdir(parents=True, exist_ok=True)
    known = {file.path: file.sha256 for file in entry.files}
    logger = pooch.get_logger()
    level = logger.level
    with tempfile.TemporaryDirectory(prefix=".appellate-", dir=home) as folder:
        where = {"fname": download.url.rpartition("/")[2], "path": folder}
        try:
            logger.setLevel(logging.WARNING)  # it would advise to write down the checksum
            brought = Path(
                pooch.retrieve(download.url, download.sha256, downloader=downloader, **where)
            )
        except ValueError as error:  # pooch's word for a wrong checksum
            raise ValueError(f"{download.url} is not the published file: {error}") from error
        except OSError as error:  # among them all errors of requests
            raise ConnectionError(
                f"{download.url} could not be downloaded ({error}). "
                f"{entry.instructions(home, list(download.paths))}"
            ) from error
        finally:
            logger.setLevel(level)
        for path in download.paths:
            unpacked = Path(folder) / "unpacked" / path
            unpacked.parent.mkdir(parents=True, exist_ok=True)
            _unpack(brought, path, unpacked)
            if known[path] and sha256(unpacked) not in known[path]:
                raise ValueError(
                    f"'{path}' from {download.url} is not the published file: its SHA-256 is "
                    f"{sha256(unpacked)}, not {known[path][0]}. It was not kept."
                )
        for path in download.paths:
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            os.replace(Path(folder) / "unpacked" / path, home / path)


def _unpacker() -> str | None:
    return next((program for program in UNPACKERS if shutil.which(program)), None)


def _unpack(brought: Path, member: str, target: Path) -> None:
    """Write one member of an archive, or the file itself, to the target."""
    if brought.name.endswith(".tar.gz"):
        with tarfile.open(brought) as archive, target.open("wb") as file:
            source = archive.extractfile(member)
            if source is None:
                raise ValueError(f"'{member}' in {brought.name} is not a file.")
            shutil.copyfileobj(source, file)
    elif brought.suffix == ".rar":
        program = _unpacker() or "bsdtar"
        command = [program, *UNPACKERS[program], str(brought), member]
        with target.open("wb") as file:
            done = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, check=False)
        if done.returncode:
            reason = done.stderr.decode(errors="replace").strip()
            raise ValueError(f"{program} could not unpack '{member}' of {brought.name}: {reason}")
    else:
        shutil.copyfile(brought, target)
