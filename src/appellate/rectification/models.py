"""Texts and pictures that a user's models turn into vectors, beside the columns of a table."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from appellate.tables import Roles, TableError
from appellate.tables.cells import name_some
from appellate.tables.encoding import column_places, contributions
from appellate.tables.vectors import (
    HISTOGRAMS,
    embed_pictures,
    embed_texts,
    model_key,
    name_problems,
)

if TYPE_CHECKING:
    from appellate.rectification.hearing import Hearing

Step = Callable[[str], object]
_OPTIONS = {"text": "text_model", "picture": "image_model"}
_WEAK = (
    "pictures are told apart by histograms of colours and edges, which tell little: give "
    "image_model, or embeddings."
)


@dataclass(frozen=True)
class Embedder:
    """The model of one column of prose or pictures.

    Attributes
    ----------
    column : str
        The column.
    kind : {"text", "picture"}
        What it holds.
    model : object
        See `embed_texts` and `embed_pictures`.
    home : Path
        The folder that names of pictures are relative to.
    """

    column: str
    kind: Literal["text", "picture"]
    model: Any
    home: Path = Path()

    def run(self, cells: Sequence[Any], step: Step, notes: list[str]) -> dict[str, Any]:
        """Return the vectors as columns of numbers."""
        if self.kind == "text":
            found: NDArray[Any] = embed_texts(cells, self.model, step=step)
        else:
            found, problems = embed_pictures(cells, self.model, home=self.home, step=step)
            notes.extend(name_problems(problems, cells))
        if not found.shape[1]:
            raise TableError(
                f"column {name_some([self.column])}: no {self.kind} can be learned from. "
                + (" ".join(notes[-1:]) or "It is empty.")
            )
        wide = np.ascontiguousarray(found.T, dtype=np.float64)
        return {f"{self.column} {j}": each for j, each in enumerate(wide)}

    def describe(self) -> dict[str, Any]:
        """Say which model it is, for `predict`: its name, and a hash of what is in it."""
        named = isinstance(self.model, (str, os.PathLike))
        return {
            "model": os.fspath(self.model) if named else type(self.model).__name__,
            "key": None if self.model == HISTOGRAMS else model_key(self.model, self.kind),
        }


def choose_embedders(
    roles: Roles,
    cells: Callable[[str], Sequence[str]],
    home: Path,
    text_model: Any,
    image_model: Any,
    *,
    alone: bool,
) -> list[Embedder]:
    """Return the models of the columns of prose and of pictures.

    Without a model, prose is learned from by its words and letters, and pictures by histograms,
    but only if there is nothing else (`alone`).
    """
    image = roles.image
    found = [Embedder(name, "text", text_model) for name in roles.text if text_model is not None]
    if text_model is not None and not roles.text:
        raise TableError("text_model needs a column of prose: name it with text=.")
    if image is None:
        if image_model:
            raise TableError("image_model needs a column of pictures: name it with image=.")
        return found
    if image_model is None and alone and not found:
        here = (
            cell.startswith("data:") or (home / cell).is_file() for cell in cells(image) if cell
        )
        image_model = HISTOGRAMS if any(here) else None
    if image_model:
        found.append(Embedder(image, "picture", image_model, home))
    return found


def add_vectors(
    frame: Any,
    embedders: Sequence[Embedder],
    cells: Callable[[str], Sequence[str]],
    notes: list[str],
    step: Step = lambda text: None,
) -> tuple[Any, dict[str, list[str]]]:
    """Put vectors beside the columns of a frame, in the place of prose that has a model.

    Returns
    -------
    frame : pandas.DataFrame
        With the vectors last.
    vectors : dict of str to list of str
        Which columns of it are the vectors of which column of the table.
    """
    vectors: dict[str, list[str]] = {}
    for each in embedders:
        columns = pa.table(each.run(cells(each.column), step, notes)).to_pandas()
        vectors[each.column] = list(columns.columns)
        if each.kind == "picture" and each.model == HISTOGRAMS:
            notes.append(_WEAK)
        if frame is not None and each.column in frame.columns:
            frame = frame.drop(columns=each.column)
        frame = columns if frame is None else frame.join(columns)
    return frame, vectors


def find_embedders(
    features: Sequence[Mapping[str, Any]], home: Path, text_model: Any, image_model: Any
) -> list[Embedder]:
    """Return the models that new rows need, of those that the user gives again.

    A saved model names them but is not believed: what it names is not opened.
    """
    given = {"text": text_model, "picture": image_model}
    found = []
    for each in features:
        if "model" not in each:
            continue
        name: str = each["name"]
        kind: Literal["text", "picture"] = "text" if each["kind"] == "text" else "picture"
        model = HISTOGRAMS if each["model"] == HISTOGRAMS else given[kind]
        if model is None:
            raise ValueError(
                f"this model learned from {name_some([name])} by {_OPTIONS[kind]} "
                f"{name_some([str(each['model'])])}: give {_OPTIONS[kind]} again."
            )
        own = Embedder(name, kind, model, home)
        key = own.describe()["key"]
        if each.get("key") and key and key != each["key"]:
            raise ValueError(
                f"{_OPTIONS[kind]} is not the one that was learned with "
                f"({name_some([str(each['model'])])}): its content differs."
            )
        found.append(own)
    return found


def weigh_columns(hearing: Hearing) -> dict[str, float]:
    """Say what every column contributes, by classifiers of halves of some items."""
    from sklearn.base import clone

    case = hearing.case
    if hearing.encoder is None or hearing.rows is None or case.scheduler is not None:
        return {}
    rows, width = hearing.rows, len(case.classes)
    said = case.answers if case.method == "testimony" else case.sets

    def fit(places: NDArray[np.intp]) -> Callable[[NDArray[Any]], NDArray[Any]]:
        classifier = clone(case.estimator)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # half of the items are few
            classifier.fit(rows[places], said[places])
        order = [case.classes.tolist().index(name) for name in classifier.classes_.tolist()]

        def foretell(some: NDArray[Any]) -> NDArray[Any]:
            out = np.zeros((len(some), width))
            out[:, order] = classifier.predict_proba(some)
            return out

        return foretell

    evidence = case.votes if case.has_answers else case.sets.matrix.astype(np.float64)
    seed = case.call["random_state"]
    try:
        found = contributions(
            fit, rows, evidence, column_places(hearing.encoder), random_state=seed
        )
    except ValueError:  # halves of a small table may lack what a classifier needs
        return {}
    return {name: round(value, 4) for name, value in found.items()}
