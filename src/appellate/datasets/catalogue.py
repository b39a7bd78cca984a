"""The known data sets: what they are, where their files come from and on what terms."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from appellate.datasets.home import ENVIRONMENT, find_file, resolve


@dataclass(frozen=True)
class DataFile:
    """One file of a data set.

    Attributes
    ----------
    path : str
        Its place, relative to the data home.
    sha256 : tuple of str
        Its checksum, or those of all variants of equal content; empty if none is confirmed.
    aliases : tuple of str
        Other names under which the file is found.
    """

    path: str
    sha256: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()

    def find(self, home: Path, dataset: str) -> Path | None:
        """Return the file in the data home, or None.

        A file that belongs into a folder is found in any folder whose name begins like that
        folder's or that of the data set, so that a ``test.bin`` of something else is not taken.
        """
        folder, _, name = self.path.rpartition("/")
        names = (name, *self.aliases)
        if not folder:
            return find_file(home, names)
        return find_file(home, names, dataset) or find_file(home, names, folder.partition("/")[0])


@dataclass(frozen=True)
class Download:
    """A public address and what it brings.

    Attributes
    ----------
    url : str
        The address of a file, or of an archive (.tar.gz, .rar).
    paths : tuple of str
        The files it brings, as `DataFile.path`; in an archive, the names of its members.
    sha256 : str or None
        Checksum of what is downloaded. None for an archive if only the checksums of
        its members are known; they are checked after unpacking.
    """

    url: str
    paths: tuple[str, ...]
    sha256: str | None = None


@dataclass(frozen=True)
class KnownDataset:
    """What is known of a data set without having it.

    Attributes
    ----------
    name, title, task : str
        Its key, its usual name, and what is to be told apart.
    shape : tuple of int
        Numbers of training samples, features and classes.
    mean_candidates : float or None
        Mean number of candidates; None if the data set has no candidate sets.
    files : tuple of DataFile
        All that has to be there.
    downloads : tuple of Download
        Addresses of the files; empty if there is none to rely on.
    page : str
        Web page with the files.
    terms, citation : str
        Conditions of use and what to cite.
    hint : str
        What else to know when getting the files by hand.
    needs : tuple of str
        Names of other data sets that its loader reads too.
    loader : str
        Module of `appellate.datasets` with the function that loads it. By default the set is one
        ``.mat`` file, and its function is made from this entry.
    note : str
        What else to know before it is used.
    """

    name: str
    title: str
    task: str
    shape: tuple[int, int, int]
    page: str
    terms: str
    citation: str
    files: tuple[DataFile, ...]
    downloads: tuple[Download, ...] = ()
    mean_candidates: float | None = None
    hint: str = ""
    needs: tuple[str, ...] = ()
    loader: str = "realworld"
    note: str = ""

    @property
    def description(self) -> str:
        """Source, terms and citation, for the `description` of a loaded set."""
        return (
            f"{self.title}: {self.task}.\n\nSource: {self.page}\nTerms: {self.terms}\n"
            f"Cite: {self.citation}\n"
        )

    def find(self, home: Path) -> dict[str, Path | None]:
        """Return where in the data home each file is, by its `path`; None if missing."""
        return {file.path: file.find(home, self.name) for file in self.files}

    def instructions(self, home: Path, paths: Sequence[str]) -> str:
        """Say where to get files by hand and where to put them."""
        places = ", ".join(f"'{home / path}'" for path in paths)
        terms = self.terms.rstrip(".")
        return (
            f"Get {self.title} from {self.page} ({terms}) and put it at {places}, or name the "
            f"folder that has it with data_home= or {ENVIRONMENT}. {self.hint}"
        ).rstrip()


@cache
def known_datasets() -> dict[str, KnownDataset]:
    """Return all known data sets by name.

    Examples
    --------
    >>> known_datasets()["lost"].shape
    (1122, 108, 16)
    """
    text = files("appellate.datasets").joinpath("catalogue.toml").read_text(encoding="utf-8")
    found: dict[str, KnownDataset] = {}
    for name, fields in tomllib.loads(text).items():
        parts = tuple(_frozen(DataFile, entry) for entry in fields.pop("file"))
        downloads = tuple(_frozen(Download, entry) for entry in fields.pop("download", ()))
        fields |= {"name": name, "files": parts, "downloads": downloads}
        found[name] = _frozen(KnownDataset, fields)
    return found


def find_dataset(name: str) -> KnownDataset:
    """Return a known data set by any spelling of its name.

    Raises
    ------
    ValueError
        If there is none, with the nearest names.

    Examples
    --------
    >>> find_dataset("FG-NET").name
    'fgnet'
    """
    known = known_datasets()
    titles = {entry.title: key for key, entry in known.items()}
    return known[resolve(name, known, "data set", titles)]


def _frozen(kind: Any, fields: dict[str, Any]) -> Any:
    return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()})
