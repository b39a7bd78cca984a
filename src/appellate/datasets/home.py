"""The data home: the folder in which data sets are looked for and into which they are fetched."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from appellate._files import user_cache
from appellate._text import did_you_mean

ENVIRONMENT = "APPELLATE_DATA_HOME"


def get_data_home(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of the data sets; it need not exist.

    Parameters
    ----------
    data_home : path-like, default=None
        The folder. By default the environment variable ``APPELLATE_DATA_HOME``, or else the
        folder ``appellate`` in the user's cache: ``~/.cache`` (or ``XDG_CACHE_HOME``) on
        Linux, ``~/Library/Caches`` on macOS, ``%LOCALAPPDATA%`` on Windows.

    Returns
    -------
    Path
        The folder.

    Examples
    --------
    >>> get_data_home("my/data").as_posix()
    'my/data'
    """
    chosen = data_home or os.environ.get(ENVIRONMENT)
    return Path(chosen).expanduser() if chosen else user_cache()


def simplify(name: str) -> str:
    """Reduce a name to its letters and digits, so that spellings of it compare equal.

    Examples
    --------
    >>> simplify("FG-NET.mat") == simplify("fgnet.mat")
    True
    >>> simplify("Yahoo! News.mat")
    'yahoonewsmat'
    """
    return "".join(letter for letter in name.lower() if letter.isalnum())


def resolve(
    name: str, known: Collection[str], what: str, titles: Mapping[str, str] | None = None
) -> str:
    """Return the known name that is meant, whatever its spelling.

    Parameters
    ----------
    name : str
        As it was typed.
    known : collection of str
        The names.
    what : str
        What they are names of.
    titles : mapping of str to str, default=None
        Further names of some of them.

    Raises
    ------
    ValueError
        If there is none; it suggests the nearest.

    Examples
    --------
    >>> resolve("FG-NET", ["lost", "fgnet"], "data set")
    'fgnet'
    >>> resolve("lots", ["lost", "fgnet"], "data set")
    Traceback (most recent call last):
    ValueError: unknown data set 'lots'. Did you mean 'lost'? Known are lost, fgnet.
    """
    names = dict(titles or {}) | {each: each for each in known}
    spellings = {simplify(each): meant for each, meant in names.items()}
    if simplify(name) in spellings:
        return spellings[simplify(name)]
    guess = did_you_mean(name, known)
    raise ValueError(f"unknown {what} '{name}'.{guess} Known are {', '.join(known)}.")


def find_file(home: Path, names: Collection[str], folder: str | None = None) -> Path | None:
    """Look for a file in the data home, whatever the spelling of its name.

    Parameters
    ----------
    home : Path
        The data home.
    names : collection of str
        Accepted names; only their letters and digits count.
    folder : str, default=None
        How the name of the folder that holds the file begins, by letters and digits: a
        folder in the data home, or the data home itself. By default the file may be in the
        data home or in any folder in it.

    Returns
    -------
    Path or None
        The file; of several the one in the data home itself, then the first by folder and
        name. None if there is none.
    """
    wanted = {simplify(name) for name in names}
    for place in _places(home, folder):
        for path in sorted(place.iterdir()):
            if simplify(path.name) in wanted and path.is_file():
                return path
    return None


def _places(home: Path, folder: str | None) -> Iterator[Path]:
    try:
        below = sorted(p for p in home.iterdir() if p.is_dir() and os.access(p, os.R_OK | os.X_OK))
    except OSError:
        return
    start = simplify(folder or "")
    if folder is None or simplify(home.absolute().name).startswith(start):
        yield home
    yield from (path for path in below if simplify(path.name).startswith(start))


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
