"""Vectors of texts and images from a user's model, computed once and kept on disk.

Without a model, images are compared by colours and edges alone.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import os
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate._files import user_cache
from appellate._text import import_extra
from appellate.tables.cells import TableError

CACHE = "APPELLATE_CACHE_HOME"
DOWNLOAD = "download:"  # before the name of a model whose weights may be fetched
LONGEST = 20_000  # letters of a text that are read
_BATCH = 64
_SECONDS = 2.0  # between two reports

TellProgress = Callable[[str], object]
HISTOGRAMS = "histograms"  # the model without a model
_LARGEST_FILE = 64 << 20
_MOST_PIXELS = 64_000_000  # that a file may claim to have
_SIDE = 512  # a model sees no more pixels a side
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
_MEAN, _SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, as networks expect

ImageModel = Callable[[list[Any]], Any]


def cache_home() -> Path:
    """Return the folder in which vectors are kept; it need not exist.

    Returns
    -------
    Path
        What the environment variable ``APPELLATE_CACHE_HOME`` names, else ``appellate`` in the
        user's cache.
    """
    return Path(os.environ.get(CACHE) or user_cache())


def report_progress(total: int, what: str, step: TellProgress) -> Callable[[float], None]:
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
            step(f"{amount:.0f}/{total} {what}, {rate:.0f} a second, {rest:.0f} s left")

    return done


def embed(
    keys: Sequence[str],
    compute: Callable[[list[int]], Any],
    *,
    model: str | None,
    what: str = "items",
    step: TellProgress = lambda text: None,
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
        What the vectors depend on in addition to the content; None if that is not known, and
        nothing is kept on disk.
    what : str, default="items"
        What they are called in reports.
    step : callable, default=no-op
        Told how far it is, how fast, and how long it will take.

    Returns
    -------
    ndarray of float32, shape (n, q)
        NaN if there is nothing; q is 0 if there is nothing at all.

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
        done = report_progress(len(left), what, step)
        for start in range(0, len(left), _BATCH):
            rows = left[start : start + _BATCH]
            block = np.asarray(compute(rows), dtype=np.float32).reshape(len(rows), -1)
            pairs = zip(rows, block, strict=True)
            made = {keys[i]: vector for i, vector in pairs if np.isfinite(vector).all()}
            found |= made
            kept = [(key, each.astype("<f4").tobytes()) for key, each in made.items() if model]
            with suppress(sqlite3.Error), store:  # a full disk is no reason to stop
                store.executemany("INSERT OR REPLACE INTO vector VALUES (?, ?)", kept)
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


def _open_store(model: str | None) -> sqlite3.Connection:
    """Open the vectors of a model; none, in memory, if the file is missing or cannot be used."""
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
        Texts or images.
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


def embed_texts(
    texts: Sequence[str | None], model: Any, *, step: TellProgress = lambda text: None
) -> NDArray[np.float32]:
    """Return vectors of texts by a sentence encoder.

    Parameters
    ----------
    texts : sequence of str
        Text; None and blank texts have no vector.
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
        If the model does not exist on this machine, or it does not give one vector per text.

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
    plain = [(text or "")[:LONGEST] for text in texts]
    keys = [digest(text.encode("utf-8", "replace")) if text.strip() else "" for text in plain]
    encoder = cache(lambda: _text_encoder(model))

    def compute(rows: list[int]) -> Any:
        return run_model(encoder().encode, [plain[i] for i in rows], "text_model=", "texts")

    if not isinstance(model, (str, os.PathLike)) and not hasattr(model, "encode"):
        raise TableError("text_model= must be a folder, a name, or an object with encode(texts).")
    return embed(keys, compute, model=model_key(model, "text"), what="texts", step=step)


def model_key(model: Any, kind: str) -> str | None:
    """Say what vectors depend on: the name of a model, the content of its files."""
    if not isinstance(model, (str, os.PathLike)):
        own = getattr(model, "cache_key", None)
        return None if own is None else f"{kind} {own}"
    path = Path(os.fspath(model))
    if not path.exists():
        return f"{kind} {str(model).removeprefix(DOWNLOAD)}"
    files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
    hashed = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            hashed.update(hashlib.file_digest(stream, "sha256").digest())
    return f"{kind} {hashed.hexdigest()}"


def _text_encoder(model: Any) -> Any:
    if hasattr(model, "encode") and not isinstance(model, str):
        return model
    name = os.fspath(model)
    library = import_extra("sentence_transformers", f"text_model={name!r}", "text")
    fetch = name.startswith(DOWNLOAD)
    try:
        return library.SentenceTransformer(
            name.removeprefix(DOWNLOAD), local_files_only=not fetch, trust_remote_code=False
        )
    except Exception as error:  # whatever the library raises for weights that are not there
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TableError(
            f"text_model={name!r}: the model does not exist on this machine ({said}). Name a "
            f"folder that holds one, or write '{DOWNLOAD}{name.removeprefix(DOWNLOAD)}' to "
            "download it."
        ) from error


def embed_pictures(
    cells: Sequence[str | None],
    model: Any = None,
    *,
    home: Path | str = "",
    step: TellProgress = lambda text: None,
) -> tuple[NDArray[np.float32], dict[int, str]]:
    """Return vectors of images, and why some have none.

    Parameters
    ----------
    cells : sequence of str, length n
        Names of files, or images in ``data:image/...`` themselves. Addresses on the web are
        not opened.
    model : str, path or callable, default=None
        A function of a list of images (of Pillow, in RGB, at most 512 pixels per side) that
        returns one vector each; or an ONNX file (``.onnx``), which gets 224 x 224 pixels (or the
        size that it asks for), normalised as for ImageNet. By default histograms of colours and
        of edges, which contain little information.
    home : path, default=""
        The folder that names of files are relative to.
    step : callable, default=no-op
        Told how far it is.

    Returns
    -------
    vectors : ndarray of float32, shape (n, q)
        NaN for images that cannot be read.
    problems : dict of int to str
        Why, by row.

    Examples
    --------
    >>> dot = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAAAAAAALAAAAAABAAEAAAIBRAA7"
    >>> vectors, problems = embed_pictures([dot, "gone.png"])
    >>> vectors.shape, problems
    ((2, 192), {1: 'no such file'})
    """
    folder = Path(home)
    problems: dict[int, str] = {}
    keys = []
    for i, cell in enumerate(cells):
        try:
            keys.append(digest(_content(cell, folder)) if cell else "")
        except ValueError as error:
            problems[i] = str(error)
            keys.append("")
    opened = cache(lambda: picture_model(model))
    bad: dict[str, str] = {}

    def read(row: int) -> Any:
        try:
            return open_picture(_content(cells[row] or "", folder))
        except ValueError as error:
            bad[keys[row]] = str(error)
            return None

    def compute(rows: list[int]) -> Any:
        # The filters of warnings belong to the process, so they are set outside of the threads.
        with warnings.catch_warnings(), ThreadPoolExecutor(2) as pool:
            warnings.simplefilter("ignore")  # of sizes, which are checked, and of metadata
            found = list(pool.map(read, rows))
        pictures = [each for each in found if each is not None]
        if not pictures:
            return np.full((len(rows), 1), np.nan)
        made = run_model(opened(), pictures, "image_model=", "images")
        block = np.full((len(rows), made.shape[1]), np.nan, dtype=np.float32)
        block[[each is not None for each in found]] = made
        return block

    plain = model in (None, HISTOGRAMS)
    key = f"picture {HISTOGRAMS}" if plain else model_key(model, "picture")
    vectors = embed(keys, compute, model=key, what="pictures", step=step)
    problems |= {i: bad[key] for i, key in enumerate(keys) if key in bad}
    return vectors, dict(sorted(problems.items()))


def _content(cell: str, home: Path) -> bytes:
    """Return the bytes of an image, or say in a ValueError why there are none."""
    if cell.lower().startswith("data:"):
        head, _, body = cell.partition(",")
        if len(body) > _LARGEST_FILE * 4 // 3:
            raise ValueError(f"larger than {_LARGEST_FILE >> 20} MB")
        try:
            return base64.b64decode(body, validate=False) if "base64" in head else body.encode()
        except (binascii.Error, ValueError):
            raise ValueError("not in base64") from None
    if "://" in cell:
        raise ValueError("an address on the web, which is not opened")
    try:
        path = home / cell
        if not path.is_file():
            raise ValueError("no such file")
        if path.stat().st_size > _LARGEST_FILE:
            raise ValueError(f"larger than {_LARGEST_FILE >> 20} MB")
        return path.read_bytes()
    except OSError as error:
        raise ValueError(error.strerror or "cannot be read") from None


def open_picture(content: bytes) -> Any:
    """Open an image from bytes that anybody may have made.

    Parameters
    ----------
    content : bytes
        PNG, JPEG, GIF, WebP, BMP or TIFF.

    Returns
    -------
    PIL.Image.Image
        In RGB, the first frame, upright, at most 512 pixels a side.

    Raises
    ------
    ValueError
        If it is none, is damaged, or claims to have more than 64 million pixels.
    """
    image = import_extra("PIL.Image", "Reading pictures", "image")
    operations = import_extra("PIL.ImageOps", "Reading pictures", "image")
    try:
        with image.open(io.BytesIO(content), formats=_FORMATS) as opened:
            width, height = opened.size
            if width * height > _MOST_PIXELS:
                raise ValueError(
                    f"claims {width} x {height} pixels, more than {_MOST_PIXELS // 10**6} million"
                )
            opened.draft("RGB", (_SIDE, _SIDE))  # decodes a large JPEG smaller
            picture = operations.exif_transpose(opened).convert("RGB")
            picture.thumbnail((_SIDE, _SIDE))
            return picture
    except ValueError as error:
        raise ValueError(str(error) or "damaged") from None
    except image.DecompressionBombError:
        raise ValueError(f"claims more than {_MOST_PIXELS // 10**6} million pixels") from None
    except image.UnidentifiedImageError:
        raise ValueError(
            "not an image in a known format (PNG, JPEG, GIF, WebP, BMP, TIFF)"
        ) from None
    except Exception as error:  # decoders raise anything at damaged files
        raise ValueError(f"damaged ({type(error).__name__})") from None


def histograms(pictures: Sequence[Any]) -> NDArray[np.float32]:
    """Return how often colours occur in images, and which way edges run where.

    They tell little: expect far less of them than of a network's vectors.

    Parameters
    ----------
    pictures : sequence of PIL.Image.Image
        In RGB.

    Returns
    -------
    ndarray of float32, shape (n, 192)
        Square roots of the shares of 64 colours, and of edges of 8 directions in 16 fields.

    References
    ----------
    Dalal, Triggs. Histograms of oriented gradients for human detection. CVPR, 2005.

    Examples
    --------
    >>> from PIL import Image
    >>> histograms([Image.new("RGB", (9, 5), "red")])[0].nonzero()[0]
    array([48])
    """
    out = np.empty((len(pictures), 64 + 128), dtype=np.float32)
    for i, picture in enumerate(pictures):
        pixels = np.asarray(picture.resize((64, 64)), dtype=np.int64)
        colours = np.bincount((pixels // 64 @ (16, 4, 1)).ravel(), minlength=64) / 64**2
        down, across = np.gradient(pixels.mean(axis=2))
        strength = np.hypot(down, across)
        turned = np.floor((np.arctan2(down, across) % np.pi) / np.pi * 8).astype(np.int64) % 8
        fields = np.arange(64) // 16
        places = (fields[:, np.newaxis] * 4 + fields) * 8 + turned
        edges = np.bincount(places.ravel(), strength.ravel(), minlength=128)
        out[i] = np.sqrt([*colours, *edges / max(edges.sum(), 1e-9)])
    return out


def picture_model(model: Any) -> ImageModel:
    """Return a function of images for what the user named, see `embed_pictures`."""
    if model is None or model == HISTOGRAMS:
        return histograms
    if callable(model):
        return model
    name = os.fspath(model)
    if not name.lower().endswith(".onnx"):
        raise TableError(
            f"image_model={name!r} is not an ONNX file. Give a file that ends with .onnx, "
            "'histograms', or in Python a function of a list of images."
        )
    if not Path(name).is_file():
        raise TableError(f"image_model={name!r}: the file does not exist. Check the path.")
    return _onnx(name)


def _batch(pictures: Sequence[Any], size: tuple[int, int]) -> NDArray[np.float32]:
    """Return images as numbers of one size, (n, 3, height, width), normalised."""
    height, width = size
    pixels = np.stack([np.asarray(p.resize((width, height)), dtype=np.float32) for p in pictures])
    scaled = (pixels / 255 - np.array(_MEAN)) / np.array(_SPREAD)
    return np.ascontiguousarray(scaled.transpose(0, 3, 1, 2), dtype=np.float32)


def _onnx(name: str) -> ImageModel:
    runtime = import_extra("onnxruntime", "image_model of ONNX", "image")
    wanted = ("CUDAExecutionProvider", "CPUExecutionProvider")
    providers = [each for each in wanted if each in runtime.get_available_providers()]
    try:
        session = runtime.InferenceSession(name, providers=providers)
    except Exception as error:  # of types of its own
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TableError(
            f"image_model={name!r} cannot be opened as ONNX ({said}). Export the model again."
        ) from error
    first = session.get_inputs()[0]
    sides = [side for side in first.shape[2:4] if isinstance(side, int)]
    size = (sides[0], sides[1]) if len(sides) == 2 else (224, 224)
    return lambda pictures: session.run(None, {first.name: _batch(pictures, size)})[0]


def name_problems(problems: dict[int, str], cells: Sequence[str | None]) -> Iterator[str]:
    """Say which images could not be read, the first of every kind of trouble."""
    kinds: dict[str, list[int]] = {}
    for row, reason in problems.items():
        kinds.setdefault(reason, []).append(row)
    for reason, rows in sorted(kinds.items(), key=lambda pair: -len(pair[1]))[:5]:
        first = cells[rows[0]] or ""
        shown = first if len(first) <= 60 else first[:59] + "…"
        some = f"{len(rows)} of {len(cells)} images"
        yield f"{some} are not used as features, e.g. {shown!r}: {reason}."
