"""The real-world partial-label data sets of the literature."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

from appellate.datasets.catalogue import find_dataset, known_datasets
from appellate.datasets.download import described_by, require_files
from appellate.datasets.home import sha256
from appellate.datasets.matfiles import load_partial_mat


def _published(described: Callable[[], None]) -> Callable[..., Any]:
    """Make a loader of a function that only names and describes its data set."""

    @described_by(described)
    def load(
        *,
        data_home: str | os.PathLike[str] | None = None,
        download_if_missing: bool = True,
        return_X_candidates_y: bool = False,
    ) -> Any:
        entry = find_dataset(described.__name__.removeprefix("load_"))
        (path,) = require_files(entry, data_home, download_if_missing).values()
        data = load_partial_mat(path)
        shape = (*data.X.shape, data.candidates.shape[1])
        others = [other for other in known_datasets().values() if other.shape == shape]
        if shape != entry.shape and others:
            raise ValueError(
                f"'{path}' holds {others[0].title} ({shape[0]} samples, {shape[1]} features, "
                f"{shape[2]} classes), not {entry.title}. Have files been swapped?"
            )
        known = entry.files[0].sha256
        if sha256(path) not in known if known else shape != entry.shape:
            warnings.warn(
                f"'{path}' is not the published file of {entry.title}, which has {entry.shape[0]} "
                f"samples, {entry.shape[1]} features and {entry.shape[2]} classes. Its contents "
                "fit together, but figures obtained with it do not compare. load_partial_mat "
                "reads it without this warning.",
                stacklevel=2,
            )
        data.description = entry.description
        return (data.X, data.candidates, data.y_true) if return_X_candidates_y else data

    return load


@_published
def load_lost() -> None:
    """Load Lost: names of faces in a television series.

    1122 samples, 108 features, 16 classes, 2.23 candidates per sample. Two labels are never
    true. The experiments of the literature z-score the features over all rows.

    Parameters
    ----------
    data_home : path-like, default=None
        Folder to find the file in, whatever the spelling of its name; see `get_data_home`.
    download_if_missing : bool, default=True
        Fetch the file if it is missing, after showing its terms of use, if the catalogue has
        its address and checksum (see `fetch_dataset`). Without one, or without network, a missing
        file is an error that says which file to put where.
    return_X_candidates_y : bool, default=False
        Return ``(X, candidates, y_true)`` alone.

    Returns
    -------
    Bunch
        With `X` (n, q), `candidates` (bool, (n, l)), `y_true` (the column of each true
        label), `class_names` (0 .. l - 1), `description` (source, terms, citation) and
        `filename`.

    Raises
    ------
    FileNotFoundError, ConnectionError
        If the file is not there and cannot be fetched.
    ValueError
        If it is damaged, or holds another data set.

    Warns
    -----
    UserWarning
        If the file can be read but is not the published one: its checksum differs or, if
        none is known, its shape. Figures obtained with it do not compare.

    Examples
    --------
    >>> from appellate.datasets import load_lost
    >>> data = load_lost()  # doctest: +SKIP
    >>> data.X.shape, data.candidates.shape  # doctest: +SKIP
    ((1122, 108), (1122, 16))
    """


@_published
def load_msrcv2() -> None:
    """Load MSRCv2: objects in segments of photographs.

    1758 samples, 48 features, 23 classes, 3.16 candidates per sample. Five rows of features
    occur twice.

    Parameters
    ----------
    data_home, download_if_missing, return_X_candidates_y
        As of `load_lost`.

    Returns
    -------
    Bunch, or tuple of ndarray
        As that of `load_lost`.

    Examples
    --------
    >>> from appellate.datasets import load_msrcv2
    >>> data = load_msrcv2()  # doctest: +SKIP
    >>> data.X.shape, data.candidates.shape  # doctest: +SKIP
    ((1758, 48), (1758, 23))
    """


@_published
def load_fgnet() -> None:
    """Load FG-NET: ages of faces.

    1002 samples, 262 features, 78 classes, 7.48 candidates per sample. The labels are ages in
    order, so a near miss is less wrong than a far one; 15 of them are never true.

    Parameters
    ----------
    data_home, download_if_missing, return_X_candidates_y
        As of `load_lost`.

    Returns
    -------
    Bunch, or tuple of ndarray
        As that of `load_lost`.

    Examples
    --------
    >>> from appellate.datasets import load_fgnet
    >>> data = load_fgnet()  # doctest: +SKIP
    >>> data.X.shape, data.candidates.shape  # doctest: +SKIP
    ((1002, 262), (1002, 78))
    """


@_published
def load_mirflickr() -> None:
    """Load Mirflickr: subjects of photographs with tags from the web.

    2780 samples, 1536 features, 14 classes, 2.76 candidates per sample.
    Put the file into the data home yourself.

    Parameters
    ----------
    data_home, download_if_missing, return_X_candidates_y
        As of `load_lost`.

    Returns
    -------
    Bunch, or tuple of ndarray
        As that of `load_lost`.

    Examples
    --------
    >>> from appellate.datasets import load_mirflickr
    >>> data = load_mirflickr()  # doctest: +SKIP
    >>> data.X.shape, data.candidates.shape  # doctest: +SKIP
    ((2780, 1536), (2780, 14))
    """


@_published
def load_soccer_player() -> None:
    """Load Soccer Player: names of players' faces in captioned news photographs.

    17472 samples, 279 features, 171 classes, 2.09 candidates per sample.
    Put the file into the data home yourself.

    Parameters
    ----------
    data_home, download_if_missing, return_X_candidates_y
        As of `load_lost`.

    Returns
    -------
    Bunch, or tuple of ndarray
        As that of `load_lost`.

    Examples
    --------
    >>> from appellate.datasets import load_soccer_player
    >>> data = load_soccer_player()  # doctest: +SKIP
    >>> data.X.shape, data.candidates.shape  # doctest: +SKIP
    ((17472, 279), (17472, 171))
    """


@_published
def load_yahoo_news() -> None:
    """Load Yahoo! News: names of faces in captioned news photographs.

    22991 samples, 163 features, 219 classes, 1.91 candidates per sample.
    Put the file into the data home yourself.

    Parameters
    ----------
    data_home, download_if_missing, return_X_candidates_y
        As of `load_lost`.

    Returns
    -------
    Bunch, or tuple of ndarray
        As that of `load_lost`.

    Examples
    --------
    >>> from appellate.datasets import load_yahoo_news
    >>> data = load_yahoo_news()  # doctest: +SKIP
    >>> data.X.shape, data.candidates.shape  # doctest: +SKIP
    ((22991, 163), (22991, 219))
    """


@_published
def load_birdsong() -> None:
    """Load BirdSong: bird species by their songs.

    4998 samples, 38 features, 13 classes, 2.18 candidates per sample.
    Put the file into the data home yourself.

    Parameters
    ----------
    data_home, download_if_missing, return_X_candidates_y
        As of `load_lost`.

    Returns
    -------
    Bunch, or tuple of ndarray
        As that of `load_lost`.

    Examples
    --------
    >>> from appellate.datasets import load_birdsong
    >>> data = load_birdsong()  # doctest: +SKIP
    >>> data.X.shape, data.candidates.shape  # doctest: +SKIP
    ((4998, 38), (4998, 13))
    """
