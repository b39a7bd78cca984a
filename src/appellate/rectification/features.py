"""The features of a table: columns, embeddings, vectors of text and of images."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from appellate.tables import Roles, Table, TableError
from appellate.tables.cells import list_rows, name_some, printable
from appellate.tables.encoding import (
    ColumnReading,
    FeatureKind,
    feature_kinds,
    features,
    find_column_readings,
    make_encoder,
)
from appellate.tables.vectors import (
    HISTOGRAMS,
    embed_pictures,
    embed_texts,
    model_key,
    name_problems,
)

LARGEST = 1e30  # numbers of this size overflow on the way
TellStep = Callable[..., object]
_KINDS = {"text": "text", "picture": "image"}
_WEAK = (
    "images are compared by histograms of colours and edges, which contain little information. "
    "Give image_model= or embeddings=."
)


def nobody(text: str, *, within: bool = False, seconds: float | None = None) -> None:
    """Ignore what begins, or with `within` how far it is and how many seconds are left."""


@dataclass(frozen=True, eq=False)
class Features:
    """What is learned from.

    Attributes
    ----------
    X : pandas.DataFrame or None
        One row per item; None if there is nothing to learn from.
    encoder : transformer or None
        What turns `X` into numbers, not fitted.
    kinds : dict of str to str
        What the columns are: ``number``, ``category``, ``date``, ``text`` or ``picture``.
    readings : dict of str to ColumnReading
        How the cells of the columns were read, for those of new rows.
    n_embeddings : int
        How many columns of `X` are embeddings, the last ones.
    embedders : list of Embedder
        Models of text and images.
    vectors : dict of str to list of str
        Columns of `X` that these made, by column of the table.
    """

    X: Any = None
    encoder: Any = None
    kinds: dict[str, FeatureKind] = field(default_factory=dict)
    readings: dict[str, ColumnReading] = field(default_factory=dict)
    n_embeddings: int = 0
    embedders: Sequence[Embedder] = ()
    vectors: dict[str, list[str]] = field(default_factory=dict)


def item_cells(table: Table, column: str, rows: NDArray[np.intp]) -> list[str]:
    """Return a column as texts, one per item; empty if there is none."""
    return [text or "" for text in table.texts(column).take(rows).to_pylist()]


def find_features(
    table: Table,
    roles: Roles,
    rows: NDArray[np.intp],
    options: Mapping[str, Any],
    *,
    needed: bool,
    random_state: int | None,
    notes: list[str],
    step: TellStep = nobody,
) -> Features:
    """Collect what is learned from: columns, embeddings, vectors of text and images.

    Columns are used next to embeddings only if the user named them. Without a model, text is
    compared by words and letters, and images by histograms, but only if there is nothing else.

    Parameters
    ----------
    table, roles
        The user's table, and what its columns are.
    rows : ndarray of int, shape (n,)
        The first row of every item.
    options : mapping
        Options of the table; embeddings and models are used.
    needed : bool
        Whether a table without features is refused.
    random_state : int or None
        Seed of the encoder.
    notes : list of str
        What the user should know is added here.
    step : callable, default=no-op
        Told how far models are.
    """
    embeddings, others = options.get("embeddings"), bool(roles.features or roles.text)
    named = any(options.get(name) is not None for name in ("features", "text"))
    embedders = _find_embedders(table, roles, rows, options)
    X: Any = None
    kinds: dict[str, FeatureKind] = {}
    readings: dict[str, ColumnReading] = {}
    n_embeddings = 0
    if (others or (needed and not embedders)) and (named or embeddings is None):
        readings = find_column_readings(table, roles, rows=rows, notes=notes)
        X = features(table, roles, rows=rows, readings=readings, largest=LARGEST)
        kinds = feature_kinds(X, roles.text)
    if embeddings is not None:
        numbers = read_embeddings(embeddings, len(rows))
        X, n_embeddings = join_columns(X, numbers), numbers.shape[1]
    vectors: dict[str, list[str]] = {}
    if embedders:
        X, vectors = add_vectors(
            X, embedders, lambda column: item_cells(table, column, rows), notes, step
        )
        kinds |= {each.column: each.kind for each in embedders}
    if X is None:
        return Features(kinds=kinds, readings=readings, embedders=embedders)
    groups = dict(vectors)
    if n_embeddings:
        groups["embeddings"] = [f"embedding_{j}" for j in range(n_embeddings)]
    encoder = make_encoder(
        X,
        text=[name for name, kind in kinds.items() if kind == "text" and name not in groups],
        vectors=groups,
        random_state=random_state,
        readings=readings,
        missing=roles.missing,
    )
    return Features(X, encoder, kinds, readings, n_embeddings, embedders, vectors)


def _find_embedders(
    table: Table, roles: Roles, rows: NDArray[np.intp], options: Mapping[str, Any]
) -> list[Embedder]:
    """Return the models of text and images that are needed; histograms by default."""
    text_model, image_model = options.get("text_model"), options.get("image_model")
    if text_model is not None and not roles.text:
        raise TableError("text_model= needs a text column. Name it with text=.")
    if image_model and roles.image is None:
        raise TableError("image_model= needs an image column. Name it with image=.")
    alone = not (roles.features or roles.text) and options.get("embeddings") is None
    if roles.image and image_model is None and alone:
        cells = filter(None, item_cells(table, roles.image, rows))
        if any(c.startswith("data:") or os.path.isfile(table.home / c) for c in cells):
            image_model = HISTOGRAMS
    texts = roles.text if text_model is not None else ()
    found = [Embedder(name, "text", text_model) for name in texts]
    if roles.image and image_model:
        found.append(Embedder(roles.image, "picture", image_model, table.home))
    return found


def read_embeddings(embeddings: Any, n: int) -> Any:
    """Read a matrix of numbers, one row per item, from an array or a file of numpy.

    Returns
    -------
    pandas.DataFrame
        Columns ``embedding_0`` and so on.
    """
    where = "embeddings="
    if isinstance(embeddings, (str, os.PathLike)):
        where = f"'{printable(os.fspath(embeddings))}'"
        try:
            with open(embeddings, "rb") as file:
                embeddings = np.load(file, allow_pickle=False)
            if not isinstance(embeddings, np.ndarray):
                raise ValueError("it holds several arrays")
        except FileNotFoundError:
            raise TableError(f"cannot find the file {where}. Check the path.") from None
        except Exception as error:  # a damaged file raises what zip, tokens and memory raise
            said = printable(str(error).partition("\n")[0])
            raise TableError(
                f"{where} is not a NumPy file ({said}). Write one with numpy.save(path, X)."
            ) from error
    try:
        matrix = np.asarray(embeddings, dtype=np.float64)
    except (ValueError, TypeError):
        matrix = np.empty(0)
    if matrix.ndim != 2 or not matrix.shape[1]:
        raise TableError(f"{where}: a matrix of numbers is needed, one row per item.")
    if len(matrix) != n:
        raise TableError(
            f"{where} has {len(matrix)} rows, but there are {n} items. Give one row per item."
        )
    if np.isnan(matrix).all():
        raise TableError(f"{where} holds no number.")
    wrong = np.flatnonzero((np.abs(matrix) > LARGEST).any(axis=1))
    if len(wrong):
        what = (
            "infinite numbers" if np.isinf(matrix).any() else "numbers too large to compute with"
        )
        raise TableError(f"{where}: {list_rows(wrong)}: {what}. Correct them.")
    import pyarrow as pa

    return pa.table({f"embedding_{j}": column for j, column in enumerate(matrix.T)}).to_pandas()


@dataclass(frozen=True)
class Embedder:
    """The model of one column of text or images.

    Attributes
    ----------
    column : str
        The column.
    kind : {"text", "picture"}
        What it holds.
    model : object
        See `embed_texts` and `embed_pictures`.
    home : Path
        The folder that names of image files are relative to.
    """

    column: str
    kind: Literal["text", "picture"]
    model: Any
    home: Path = Path()

    @property
    def key(self) -> str | None:
        """A hash of what is in the model, None if nobody knows."""
        return None if self.model == HISTOGRAMS else model_key(self.model, self.kind)

    @property
    def name(self) -> str:
        """What the model is called."""
        named = isinstance(self.model, (str, os.PathLike))
        return os.fspath(self.model) if named else type(self.model).__name__


def add_vectors(
    frame: Any,
    embedders: Sequence[Embedder],
    cells_of: Callable[[str], Sequence[str]],
    notes: list[str],
    step: TellStep = nobody,
) -> tuple[Any, dict[str, list[str]]]:
    """Add vectors to the columns of a frame, in the place of text that has a model.

    Returns
    -------
    frame : pandas.DataFrame
        With the vectors last.
    vectors : dict of str to list of str
        Which columns of it are the vectors of which column of the table.
    """
    import pyarrow as pa

    vectors: dict[str, list[str]] = {}
    for each in embedders:
        cells, name = cells_of(each.column), each.column
        if each.kind == "text":
            found: NDArray[Any] = embed_texts(cells, each.model, step=step)
        else:
            found, problems = embed_pictures(cells, each.model, home=each.home, step=step)
            notes.extend(name_problems(problems, cells))
        if not found.shape[1]:
            raise TableError(
                f"column {name_some([name])}: no {_KINDS[each.kind]} can be used as a feature. "
                + (" ".join(notes[-1:]) or "It is empty.")
            )
        wide = np.ascontiguousarray(found.T, dtype=np.float64)
        columns = pa.table({f"{name} {j}": row for j, row in enumerate(wide)}).to_pandas()
        vectors[name] = list(columns.columns)
        if each.kind == "picture" and each.model == HISTOGRAMS:
            notes.append(_WEAK)
        if frame is not None and name in frame.columns:
            frame = frame.drop(columns=name)
        frame = join_columns(frame, columns)
    return frame, vectors


def join_columns(frame: Any, columns: Any) -> Any:
    """Return a frame with further columns."""
    return columns if frame is None else frame.join(columns)


def is_file(cell: str) -> bool:
    """Tell whether a cell of images names a file, rather than an address or what is in one."""
    return "://" not in cell and not cell.startswith("data:")
