"""A model that `rectify` left, on new rows."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from appellate._files import check_member, finish_folder, read_json
from appellate.rectification.case import LARGEST, Embedder, add_vectors, read_embeddings
from appellate.tables import Roles, Table, TableError, join, read_table
from appellate.tables.cells import name_some
from appellate.tables.encoding import features
from appellate.tables.vectors import HISTOGRAMS

NO_MODEL = (
    "this run learned from people's answers alone: it has labels, but no model for new rows. Give "
    "rectify columns or embeddings to learn from."
)
_LARGEST_DOCUMENT = 1 << 30
_OPTIONS = {"text": "text_model", "picture": "image_model"}


def predict(
    folder: str | os.PathLike[str],
    data: Any,
    *,
    proba: bool = False,
    embeddings: Any = None,
    text_model: Any = None,
    image_model: Any = None,
    **reading: Any,
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
        Of the new rows, if the model learned from embeddings.
    text_model, image_model : object, default=None
        The same as `rectify` got, if any: a saved model names them, but opens no file that it
        names.
    **reading
        How to read a file (`delimiter`, `encoding`, `decimal`, `sheet`, `question`); found by
        default.

    Returns
    -------
    data frame
        The table with ``label`` and ``confidence``.
    """
    model, meta = open_model(folder)
    table = read_table(data, **reading)
    given = {"text": text_model, "picture": image_model}
    return join(table, label_rows(model, meta, table, given, proba, embeddings)[0])


def read_document(folder: Path) -> dict[str, Any] | None:
    """Return what ``run.json`` of a folder holds; None if it is no run."""
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
        texts += [each.get("categories", []) for each in columns]
        texts += [[each[name] for each in columns] for name in ("name", "kind")]
    except (KeyError, TypeError, AttributeError):
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

    `models` are the user's of texts and pictures.
    """
    from appellate.io import ModelFileError

    X, notes = new_features(settings, table, models, embeddings)
    try:
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


def new_features(
    settings: Mapping[str, Any], table: Table, models: Mapping[str, Any], embeddings: Any = None
) -> tuple[Any, list[str]]:
    """Return the columns that a model learned from, of new rows, and what is good to know."""
    roles, kinds = settings["roles"], {e["name"]: e["kind"] for e in settings["features"]}
    notes, n_embeddings = list(table.notes), settings["n_embeddings"]
    embedders = _find_embedders(settings, table, models)
    pictures = [each.column for each in embedders if each.kind == "picture"]
    wanted = [*roles["features"], *roles["text"], *pictures] if kinds else []
    if n_embeddings and embeddings is None:
        raise ValueError("this model learned from embeddings; give embeddings, a FILE.npy.")
    if embeddings is not None and not n_embeddings:
        raise ValueError(
            f"this model learned from columns ({name_some(kinds, 6)}), not from embeddings. Leave "
            "embeddings out."
        )
    titles = {unicodedata.normalize("NFC", title): title for title in table.names}
    composed = {name: unicodedata.normalize("NFC", name) for name in wanted}
    found = {name: titles[title] for name, title in composed.items() if title in titles}
    lacking = [name for name in wanted if name not in found]
    if lacking:
        raise TableError(
            f"{table.source} lacks columns that the model learned from: {name_some(lacking)}. It "
            f"has: {name_some(table.names)}."
        )
    extra = [name for name in table.names if name not in found.values()]
    if extra and wanted:
        notes.append(f"not used by the model: {name_some(extra)}")
    frame = None
    if kinds and (roles["features"] or roles["text"]):
        data = table.data.select(list(found.values())).rename_columns(list(found))
        own = replace(table, data=_as_numbers(data, kinds))
        known: Any = {name: tuple(roles[name]) for name in ("features", "text", "missing")}
        frame = features(own, Roles(**known), kinds=kinds, largest=LARGEST)
        for each in settings["features"]:
            cells = frame[each["name"]].dropna().astype(str) if "categories" in each else None
            new = [] if cells is None else cells[~cells.isin(each["categories"])]
            if len(new):
                notes.append(
                    f"{table.where(each['name'])}: {len(new)} of {len(frame)} rows hold a "
                    f"category that the model never saw, e.g. {name_some(new[:1])}; the column "
                    "says nothing of these rows."
                )
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
                f"this model learned from {name_some([each['name']])} by {option} {meant}: give "
                f"{option} again."
            )
        found.append(Embedder(each["name"], kind, model, table.home))
        if each.get("key") and found[-1].key not in (None, each["key"]):
            raise ValueError(
                f"{option} is not the one that was learned with ({meant}): its content differs."
            )
    return found


def _as_numbers(data: Any, kinds: Mapping[str, str]) -> Any:
    """Write true and false of a text file as numbers, where a model learned from these."""
    import pyarrow as pa
    import pyarrow.compute as pc

    words = pa.array(["true", "false"])
    for i, name in enumerate(data.column_names):
        column = data.column(i)
        if kinds.get(name) == "number" and pa.types.is_string(column.type):
            lower = pc.utf8_lower(pc.utf8_trim_whitespace(column))
            truths = pc.if_else(pc.equal(lower, "true"), "1", "0")
            column = pc.if_else(pc.is_in(lower, words), truths, column)
            data = data.set_column(i, name, column)
    return data
