"""Vectors of texts and pictures from a user's model, computed once and kept on disk."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    named = os.environ.get(CACHE)
    if named:
        return Path(named)
    if sys.platform == "win32":  # pragma: no cover
        return Path(os.environ.get("LOCALAPPDATA") or Path.home()) / "appellate" / "Cache"
    base = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    return Path(os.environ.get("XDG_CACHE_HOME") or base) / "appellate"


def progress(total: int, what: str, step: Step) -> Callable[[float], None]:
    """Return what is told how much of the work is done; at times it tells how fast, and the end.

    Parameters
    ----------
    total : int
        Pieces of work.
    what : str
        What they are called.
    step : callable
        Told at most every two seconds.
    """
    started = said = time.monotonic()

    def done(amount: float) -> None:
        nonlocal said
        now = time.monotonic()
        if amount and now - said > _SECONDS:
            said, rate = now, amount / (now - started)
            rest = (total - amount) / rate
            step(f"{amount:.0f}/{total} {what}, {rate:.0f} a second, {rest:.0f} s to go")

    return done


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
    store = _Store(model)
    with closing(store):
        found = store.get(list(place))
        left = [i for key, i in place.items() if key not in found]
        done = progress(len(left), what, step)
        for start in range(0, len(left), _BATCH):
            rows = left[start : start + _BATCH]
            block = np.asarray(compute(rows), dtype=np.float32).reshape(len(rows), -1)
            pairs = zip(rows, block, strict=True)
            made = {keys[i]: vector for i, vector in pairs if np.isfinite(vector).all()}
            found |= made
            store.put(made)
            done(start + len(rows))
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


class _Store:
    """Vectors of one model in a file; without a file if there is none or it cannot be used."""

    def __init__(self, model: str | None) -> None:
        self.file: sqlite3.Connection | None = None
        if model is None:
            return
        name = hashlib.sha256(model.encode()).hexdigest()[:32]
        path = cache_home() / "vectors" / f"{name}.sqlite"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.file = sqlite3.connect(path, timeout=30)
            with self.file:
                self.file.execute("CREATE TABLE IF NOT EXISTS vector (key PRIMARY KEY, value)")
        except (OSError, sqlite3.Error):
            self.close()

    def get(self, keys: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        found: dict[str, NDArray[np.float32]] = {}
        try:
            for start in range(0, len(keys) if self.file else 0, 500):
                some = keys[start : start + 500]
                marks = ",".join("?" * len(some))
                assert self.file is not None
                rows = self.file.execute(
                    f"SELECT key, value FROM vector WHERE key IN ({marks})", some
                )
                found |= {key: np.frombuffer(value, dtype="<f4") for key, value in rows}
        except (sqlite3.Error, ValueError, TypeError):  # damaged: computed anew
            self.close()
            return {}
        return found

    def put(self, vectors: dict[str, NDArray[np.float32]]) -> None:
        if self.file is None:
            return
        rows = [(key, each.astype("<f4").tobytes()) for key, each in vectors.items()]
        try:
            with self.file:
                self.file.executemany("INSERT OR REPLACE INTO vector VALUES (?, ?)", rows)
        except sqlite3.Error:  # a full disk is no reason to stop
            self.close()

    def close(self) -> None:
        if self.file is not None:
            self.file.close()
        self.file = None


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
    encoder: Any = None

    def compute(rows: list[int]) -> Any:
        nonlocal encoder
        encoder = encoder or _text_encoder(model)
        try:
            vectors = np.asarray(encoder.encode([plain[i] for i in rows]), dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise TableError(f"text_model: {error}. encode(texts) must give numbers.") from error
        if vectors.ndim != 2 or len(vectors) != len(rows):
            raise TableError(
                f"text_model gave {vectors.shape} for {len(rows)} texts. encode(texts) must give "
                "one vector a text."
            )
        return vectors

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
