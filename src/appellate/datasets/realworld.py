"""The data sets of one ``.mat`` file: a function each, made from its entry in the catalogue."""

from __future__ import annotations

import os
import textwrap
import warnings
from collections.abc import Callable
from typing import Any

from appellate.datasets.catalogue import KnownDataset, known_datasets
from appellate.datasets.download import require_files
from appellate.datasets.home import sha256
from appellate.datasets.matfiles import load_partial_mat

_DOC = """Load {title}: {task}.

{facts}

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
>>> from appellate.datasets import load_{name}
>>> data = load_{name}()  # doctest: +SKIP
>>> data.X.shape, data.candidates.shape  # doctest: +SKIP
(({n}, {q}), ({n}, {l}))
"""


def _make_loader(entry: KnownDataset) -> Callable[..., Any]:
    """Make the function that loads a data set."""

    def load(
        *,
        data_home: str | os.PathLike[str] | None = None,
        download_if_missing: bool = True,
        return_X_candidates_y: bool = False,
    ) -> Any:
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

    load.__name__ = load.__qualname__ = f"load_{entry.name}"
    load.__doc__ = _describe(entry)
    return load


def _describe(entry: KnownDataset) -> str:
    """Write the docstring of a loader."""
    n, q, l = entry.shape
    facts = f"{n} samples, {q} features, {l} classes"
    if entry.mean_candidates is not None:
        facts += f", {entry.mean_candidates:.2f} candidates per sample"
    by_hand = "" if entry.downloads else "Put the file into the data home yourself."
    said = " ".join(filter(None, (f"{facts}.", entry.note, by_hand)))
    words = {"title": entry.title, "task": entry.task, "name": entry.name}
    return _DOC.format(**words, facts=textwrap.fill(said, 92), n=n, q=q, l=l)


_LOADERS = {
    f"load_{name}": _make_loader(entry)
    for name, entry in known_datasets().items()
    if entry.loader == "realworld"
}


def __getattr__(name: str) -> Any:
    if name in _LOADERS:
        return _LOADERS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
