"""A model that `rectify` left, on new rows."""

from __future__ import annotations

import os
import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np

from appellate._files import check_member, finish_folder, read_json
from appellate._table_options import ReadingOptions, takes_options
from appellate.notes import NoteWarning, tell
from appellate.rectification.features import LARGEST, Embedder, add_vectors, read_embeddings
from appellate.tables import Roles, Table, TableError, join, read_table
from appellate.tables.cells import name_some
from appellate.tables.encoding import ColumnReading, features
from appellate.tables.vectors import HISTOGRAMS

NO_MODEL = (
    "this run learned from annotators' answers alone: it has labels, but no model for new rows. "
    "Give rectify feature columns, or embeddings=."
)
_LARGEST_DOCUMENT = 1 << 30
_OPTIONS = {"text": "text_model=", "picture": "image_model="}


@takes_options(ReadingOptions)
def predict(
    folder: str | os.PathLike[str],
    data: Any,
    *,
    proba: bool = False,
    embeddings: Any = None,
    text_model: Any = None,
    image_model: Any = None,
    **options: Unpack[ReadingOptions],
) -> Any:
    """Label the rows of a table with the model of a run.

    Parameters
    ----------
    folder : path
        What `rectify` wrote, or the model in it.
    data : path or data frame
        New rows, with the columns that the model learned from.
    proba : bool, default=False
        Add the probability of every label.
    embeddings : array-like or path, default=None
        Vectors of the new rows, if the model learned from embeddings.
    text_model, image_model : object, default=None
        The same as `rectify` got, if any: a saved model names them, but opens no file that it
        names.
    **options
        How to read a file.

    Returns
    -------
    data frame
        The table with ``label`` and ``confidence``.

    Warns
    -----
    NoteWarning
        About cells that cannot be read as in training, and new categories; one warning per note.
    """
    model, meta = open_model(folder)
    table = read_table(data, **options)
    given = {"text": text_model, "picture": image_model}
    added, notes = label_rows(model, meta, table, given, proba, embeddings)
    tell(notes, stacklevel=2)
    return join(table, added)


def read_document(folder: Path) -> dict[str, Any] | None:
    """Return what ``run.json`` of a folder holds; None if it is not a run."""
    try:
        document = read_json(folder, "run.json", _LARGEST_DOCUMENT)
    except (FileNotFoundError, NotADirectoryError):
        return None
    ours = isinstance(document, dict) and {"settings", "scores"} <= document.keys()
    return document if ours else None


def open_model(folder: str | os.PathLike[str]) -> tuple[Any, dict[str, Any]]:
    """Return the model of a run and what is known of its columns."""
    from appellate.io import ModelFileError, load_model, read_meta

    home = Path(folder)
    finish_folder(home)
    if read_document(home) is not None:
        if not os.path.lexists(home / "model"):
            raise ValueError(NO_MODEL)
        home = check_member(home, "model", "a folder")
    meta, model = read_meta(home), load_model(home)
    if "features" not in meta:
        raise ValueError(f"'{folder}' was not written by rectify; load it in Python.")
    if not _is_described(meta):
        raise ModelFileError(f"'{home}' does not say what its columns are: it is damaged.")
    return model, meta


def _is_described(meta: Mapping[str, Any]) -> bool:
    """Tell whether a description has all that is asked of it, in the types that are expected."""
    try:
        roles, columns = meta["roles"], meta["features"]
        texts = [roles[name] for name in ("features", "text", "missing")]
        texts += [[each[name] for each in columns] for name in ("name", "kind")]
        for each in columns:
            ColumnReading.from_dict(each)
    except (KeyError, TypeError, AttributeError, ValueError):
        return False
    return isinstance(meta.get("n_embeddings"), int) and all(
        isinstance(values, list) and all(isinstance(value, str) for value in values)
        for values in texts
    )


def label_rows(
    model: Any,
    settings: Mapping[str, Any],
    table: Table,
    models: Mapping[str, Any],
    proba: bool = False,
    embeddings: Any = None,
) -> tuple[dict[str, list[Any]], list[str]]:
    """Return the columns that a model adds to a table, and what is good to know.

    `models` are the user's of texts and images.
    """
    from appellate.io import ModelFileError

    X, notes = new_features(settings, table, models, embeddings)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoteWarning)  # the notes are known
            rows = np.asarray(model[:-1].transform(X), dtype=np.float64)
        probabilities, labels = model[-1].predict_proba(rows), model[-1].predict(rows).tolist()
        names = model.classes_.tolist()
        fits = np.shape(probabilities) == (len(labels), len(names)) and {*labels} <= {*names}
    except (ValueError, OSError, ImportError, MemoryError):
        raise
    except Exception as error:  # whatever a part raises that was changed in its file
        raise ModelFileError(
            f"the model does not work ({type(error).__name__}: {error}). Its files are damaged, "
            "or from other versions of the libraries: make it again with rectify."
        ) from error
    if not fits:
        raise ModelFileError("the model does not work: it is damaged. Make it again with rectify.")
    place = {name: j for j, name in enumerate(names)}
    sure = [float(row[place[label]]) for row, label in zip(probabilities, labels, strict=True)]
    added: dict[str, list[Any]] = {"label": labels, "confidence": sure}
    if proba:
        added |= {f"p({name})": probabilities[:, j].tolist() for j, name in enumerate(names)}
    return added, notes


def unused_columns(settings: Mapping[str, Any], table: Table) -> list[str]:
    """Return the columns of new rows that a model did not learn from."""
    wanted = _wanted(settings)
    used = {*_find_columns(wanted, table).values()}
    return [name for name in table.names if name not in used] if wanted else []


def _wanted(settings: Mapping[str, Any]) -> list[str]:
    """Return the columns that a model learned from."""
    roles, features = settings["roles"], settings["features"]
    pictures = [each["name"] for each in features if each["kind"] == "picture"]
    return [*roles["features"], *roles["text"], *pictures] if features else []


def _find_columns(wanted: Sequence[str], table: Table) -> dict[str, str]:
    """Return the titles of columns in a table, whether letters are composed or not."""
    titles = {unicodedata.normalize("NFC", title): title for title in table.names}
    composed = {name: unicodedata.normalize("NFC", name) for name in wanted}
    return {name: titles[title] for name, title in composed.items() if title in titles}


def new_features(
    settings: Mapping[str, Any], table: Table, models: Mapping[str, Any], embeddings: Any = None
) -> tuple[Any, list[str]]:
    """Return the columns that a model learned from, of new rows, and what is good to know."""
    roles, kinds = settings["roles"], {e["name"]: e["kind"] for e in settings["features"]}
    notes = [note for note in table.notes if note not in table.guessed]
    n_embeddings = settings["n_embeddings"]
    embedders = _find_embedders(settings, table, models)
    wanted = _wanted(settings)
    if n_embeddings and embeddings is None:
        raise ValueError(
            "this model learned from embeddings. Give embeddings=, an array or a .npy file."
        )
    if embeddings is not None and not n_embeddings:
        raise ValueError(
            f"this model learned from columns ({name_some(kinds, 6)}), not from embeddings. Leave "
            "embeddings= out."
        )
    found = _find_columns(wanted, table)
    lacking = [name for name in wanted if name not in found]
    if lacking:
        untitled = all(name.isdecimal() for name in lacking) and table.kind in ("csv", "excel")
        hint = " If the file has no header, give header='none'."
        raise TableError(
            f"{table.source} lacks columns that the model learned from: {name_some(lacking)}. It "
            f"has: {name_some(table.names)}.{hint if untitled else ''}"
        )
    frame = None
    if kinds and (roles["features"] or roles["text"]):
        data = table.data.select(list(found.values())).rename_columns(list(found))
        known: Any = {name: tuple(roles[name]) for name in ("features", "text", "missing")}
        readings = {e["name"]: ColumnReading.from_dict(e) for e in settings["features"]}
        how: Any = {"readings": readings, "largest": LARGEST, "notes": notes}
        frame = features(replace(table, data=data), Roles(**known), **how)
    if n_embeddings:
        numbers = read_embeddings(embeddings, len(table))
        if numbers.shape[1] != n_embeddings:
            raise ValueError(
                f"the embeddings have {numbers.shape[1]} columns, but the model learned from "
                f"{n_embeddings}."
            )
        frame = numbers if frame is None else frame.join(numbers)

    def cells_of(name: str) -> list[str]:
        return [text or "" for text in table.texts(found[name]).to_pylist()]

    return add_vectors(frame, embedders, cells_of, notes)[0], notes


def _find_embedders(
    settings: Mapping[str, Any], table: Table, models: Mapping[str, Any]
) -> list[Embedder]:
    """Return the models that new rows need, of those that the user gives again.

    A saved model names them but is not believed: what it names is not opened.
    """
    found: list[Embedder] = []
    for each in settings["features"]:
        if "model" not in each:
            continue
        kind: Literal["text", "picture"] = "text" if each["kind"] == "text" else "picture"
        model = HISTOGRAMS if each["model"] == HISTOGRAMS else models.get(kind)
        option, meant = _OPTIONS[kind], name_some([each["model"]])
        if model is None:
            raise ValueError(
                f"this model learned from {name_some([each['name']])} by {option} {meant}. Give "
                f"{option} again."
            )
        found.append(Embedder(each["name"], kind, model, table.home))
        if each.get("key") and found[-1].key not in (None, each["key"]):
            raise ValueError(
                f"{option} is not the model that was used for training ({meant}): its content "
                "differs. Give that model."
            )
    return found
