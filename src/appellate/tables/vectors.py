"""Vectors of texts and pictures from a user's model, computed once and kept on disk."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate._files import user_cache
from appellate._text import install
from appellate.tables.cells import TableError

CACHE = "APPELLATE_CACHE_HOME"
DOWNLOAD = "download:"  # before the name of a model whose weights may be fetched
_LONGEST = 20_000  # letters of a text that are read
_BATCH = 64
_SECONDS = 2.0  # between two reports

Step = Callable[[str], object]


def cache_home() -> Path:
    """Return the folder in which vectors are kept; it need not exist.

    Returns
    -------
    Path
        What the environment variable ``APPELLATE_CACHE_HOME`` names, else ``appellate`` in the
        user's cache.
    """
    return Path(os.environ.get(CACHE) or user_cache())


def embed(
    keys: Sequence[str],
    compute: Callable[[list[int]], Any],
    *,
    model: str | None,
    what: str = "items",
    step: Step = lambda text: None,
) -> NDArray[np.float32]:
    """Return a vector for every row; those of known content are taken from the disk.

    Parameters
    ----------
    keys : sequence of str, length n
        Hash of the content of every row, empty if there is none. Rows of one content are
        computed once.
    compute : callable
        Given the places of some rows, returns one vector each, (m, q); NaN for none.
    model : str or None
        What the vectors depend on beside the content; None if that is not known, and nothing is
        kept on disk.
    what : str, default="items"
        What they are called in reports.
    step : callable, default=no-op
        Told how far it is, how fast, and how long it will take.

    Returns
    -------
    ndarray of float32, shape (n, q)
        NaN where there is nothing; q is 0 if there is nothing at all.

    Examples
    --------
    >>> embed(["a", "b", "a", ""], lambda rows: [[float(i)] for i in rows], model=None).T
    array([[ 0.,  1.,  0., nan]], dtype=float32)
    """
    place: dict[str, int] = {}
    for i, key in enumerate(keys):
        if key:
            place.setdefault(key, i)
    found: dict[str, NDArray[np.float32]] = {}
    with closing(_open_store(model)) as store:
        with suppress(sqlite3.Error, ValueError, TypeError):  # damaged: computed anew
            for key in place:
                for (value,) in store.execute("SELECT value FROM vector WHERE key = ?", (key,)):
                    found[key] = np.frombuffer(value, dtype="<f4")
        left = [i for key, i in place.items() if key not in found]
        started = said = time.monotonic()
        for start in range(0, len(left), _BATCH):
            rows = left[start : start + _BATCH]
            block = np.asarray(compute(rows), dtype=np.float32).reshape(len(rows), -1)
            pairs = zip(rows, block, strict=True)
            made = {keys[i]: vector for i, vector in pairs if np.isfinite(vector).all()}
            found |= made
            kept = [(key, each.astype("<f4").tobytes()) for key, each in made.items() if model]
            with suppress(sqlite3.Error), store:  # a full disk is no reason to stop
                store.executemany("INSERT OR REPLACE INTO vector VALUES (?, ?)", kept)
            now, done = time.monotonic(), start + len(rows)
            if now - said > _SECONDS:
                said, rate = now, done / (now - started)
                rest = (len(left) - done) / rate
                step(f"{done}/{len(left)} {what}, {rate:.0f} a second, {rest:.0f} s to go")
    widths = {len(vector) for vector in found.values()}
    if len(widths) > 1:
        raise TableError(
            f"the model gives {what} vectors of different lengths: "
            f"{', '.join(map(str, sorted(widths)))}. It must give one length."
        )
    out = np.full((len(keys), max(widths, default=0)), np.nan, dtype=np.float32)
    for i, key in enumerate(keys):
        if key in found:
            out[i] = found[key]
    return out


def _open_store(model: str | None) -> sqlite3.Connection:
    """Open the vectors of a model; none, in memory, if there is no file or it cannot be used."""
    create = "CREATE TABLE IF NOT EXISTS vector (key PRIMARY KEY, value)"
    if model is not None:
        path = cache_home() / "vectors" / f"{digest(model.encode())[:32]}.sqlite"
        with suppress(OSError, sqlite3.Error), ExitStack() as undo:
            path.parent.mkdir(parents=True, exist_ok=True)
            store = undo.enter_context(closing(sqlite3.connect(path, timeout=30)))
            with store:
                store.execute(create)
            undo.pop_all()
            return store
    store = sqlite3.connect(":memory:")
    store.execute(create)
    return store


def run_model(
    model: Callable[[list[Any]], Any], items: list[Any], option: str, what: str
) -> NDArray[np.float32]:
    """Run a user's model and check what it gives.

    Parameters
    ----------
    model : callable
        Given the items, returns numbers, one row each.
    items : list
        Texts or pictures.
    option, what : str
        What the model and the items are called in messages.

    Raises
    ------
    TableError
        If it gives something else.
    """
    try:
        vectors = np.asarray(model(items), dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise TableError(
            f"{option} failed: {str(error).splitlines()[0] if str(error) else repr(error)}. It "
            f"gets a list of {what} and must give numbers, one row each."
        ) from error
    if len(vectors) != len(items) or vectors.ndim < 2 or not vectors.size:
        raise TableError(
            f"{option} gave {vectors.shape} for {len(items)} {what}. It must give one row of "
            "numbers each."
        )
    return vectors.reshape(len(vectors), -1)


def digest(content: bytes) -> str:
    """Return the SHA-256 of some content."""
    return hashlib.sha256(content).hexdigest()


def digest_files(path: Path) -> str:
    """Return the SHA-256 of a file, or of all files in a folder."""
    files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
    hashed = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            hashed.update(hashlib.file_digest(stream, "sha256").digest())
    return hashed.hexdigest()


def load(module: str, what: str, extra: str) -> Any:
    """Import a module that an extra brings, or say which."""
    if find_spec(module) is None:
        raise ImportError(f"{what} needs {module.replace('_', '-')}: {install(extra)}")
    return import_module(module)


def embed_texts(
    texts: Sequence[str | None], model: Any, *, step: Step = lambda text: None
) -> NDArray[np.float32]:
    """Return vectors of texts by a sentence encoder.

    Parameters
    ----------
    texts : sequence of str
        Prose; None and blank texts have no vector.
    model : str, path or object
        A folder with a model of sentence-transformers; the name of one whose weights are on this
        machine, or ``"download:NAME"`` to fetch them; or an object with ``encode(texts)``. Its
        vectors are kept on disk if it has a `cache_key`.
    step : callable, default=no-op
        Told how far it is.

    Returns
    -------
    ndarray of float32, shape (n, q)
        NaN for blank texts.

    Raises
    ------
    ImportError
        If sentence-transformers is needed and not installed.
    TableError
        If there is no such model on this machine, or it does not give one vector a text.

    Examples
    --------
    >>> class Lengths:
    ...     def encode(self, texts):
    ...         return [[len(text), text.count("a")] for text in texts]
    >>> embed_texts(["banana", "fig", None], Lengths())
    array([[ 6.,  3.],
           [ 3.,  0.],
           [nan, nan]], dtype=float32)
    """
    plain = [(text or "")[:_LONGEST] for text in texts]
    keys = [digest(text.encode("utf-8", "replace")) if text.strip() else "" for text in plain]
    encoder = cache(lambda: _text_encoder(model))

    def compute(rows: list[int]) -> Any:
        return run_model(encoder().encode, [plain[i] for i in rows], "text_model", "texts")

    if not isinstance(model, (str, os.PathLike)) and not hasattr(model, "encode"):
        raise TableError("text_model: give a folder, a name, or an object with encode(texts).")
    return embed(keys, compute, model=model_key(model, "text"), what="texts", step=step)


def model_key(model: Any, kind: str) -> str | None:
    """Say what vectors depend on: the name of a model, the content of its files."""
    if not isinstance(model, (str, os.PathLike)):
        own = getattr(model, "cache_key", None)
        return None if own is None else f"{kind} {own}"
    path = Path(os.fspath(model))
    named = digest_files(path) if path.exists() else str(model).removeprefix(DOWNLOAD)
    return f"{kind} {named}"


def _text_encoder(model: Any) -> Any:
    if hasattr(model, "encode") and not isinstance(model, str):
        return model
    name = os.fspath(model)
    library = load("sentence_transformers", f"text_model={name!r}", "text")
    fetch = name.startswith(DOWNLOAD)
    try:
        return library.SentenceTransformer(
            name.removeprefix(DOWNLOAD), local_files_only=not fetch, trust_remote_code=False
        )
    except Exception as error:  # whatever the library raises for weights that are not there
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TableError(
            f"text_model: there is no model {name!r} on this machine ({said}). Name a folder that "
            f"holds one, or write '{DOWNLOAD}{name.removeprefix(DOWNLOAD)}' to fetch it."
        ) from error
