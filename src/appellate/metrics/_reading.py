"""Read the arguments of the scores: pairs of labels, sets with probabilities."""

from __future__ import annotations

from itertools import repeat
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from appellate.candidates import CandidateSets, as_candidates, check_length, name_rows
from appellate.candidates.names import label_vector


def paired(**named: ArrayLike) -> list[NDArray[Any]]:
    """Read 1-D arrays of one length, all of them text or none."""
    arrays = {name: label_vector(values) for name, values in named.items()}
    *first, last = arrays
    who, shapes = f"{', '.join(first)} and {last}", {array.shape for array in arrays.values()}
    if len(shapes) > 1 or arrays[last].ndim != 1:
        shown = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(f"{who} need one label per sample each; got shapes {shown}.")
    if not arrays[last].size:
        raise ValueError(f"{who} are empty.")
    _check_kinds(arrays)
    return list(arrays.values())


def _check_kinds(arrays: dict[str, NDArray[Any]]) -> None:
    """Refuse to compare names with numbers: they never agree, as if the classifier were bad."""
    kinds = {name: _kind(array) for name, array in arrays.items()}
    if {"text", "numbers"} <= set(kinds.values()):
        shown = ", ".join(f"{name} holds {kind}" for name, kind in kinds.items())
        raise TypeError(f"{shown}: compare names with names, or class numbers with class numbers.")


def _kind(array: NDArray[Any]) -> str:
    if array.dtype.kind in "biuf":
        return "numbers"
    text = array.dtype.kind in "UT" or all(isinstance(entry, str) for entry in array.tolist())
    return "text" if text else "objects"


def read_named(candidates: Any, classes: Any) -> CandidateSets:
    """Candidate sets; `classes` names the columns of a matrix that has no names."""
    unnamed = sp.issparse(candidates) or (
        isinstance(candidates, np.ndarray) and candidates.ndim == 2
    )
    return as_candidates(candidates, classes=classes if unnamed else None)


def find_columns(
    labels: NDArray[Any], names: NDArray[Any], argument: str = ""
) -> NDArray[np.intp]:
    """Column of every label among the names, -1 for none of them; with `argument` an error."""
    _check_kinds({"predicted": labels, "candidates": names})
    position = {name: j for j, name in enumerate(names.tolist())}
    found = map(position.get, labels.tolist(), repeat(-1))
    columns = np.fromiter(found, dtype=np.intp, count=len(labels))
    unknown = np.flatnonzero(columns < 0)
    if argument and unknown.size:
        raise ValueError(
            f"{name_rows(unknown)}: {labels.tolist()[unknown[0]]!r} is not in {argument}=."
        )
    return columns


def read_ordered(
    truth: ArrayLike, predicted: ArrayLike, order: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Read ordered labels as numbers: their values, or their places in an order."""
    true, guess = paired(truth=truth, predicted=predicted)
    if order is not None:
        names = label_vector(order)
        true, guess = (find_columns(labels, names, "order") for labels in (true, guess))
    elif not all(labels.dtype.kind in "biuf" for labels in (true, guess)):
        raise ValueError(
            "labels that are not numbers have no distance. Give all classes from first to last: "
            "order=[...]."
        )
    true, guess = true.astype(float), guess.astype(float)
    missing = np.flatnonzero(~np.isfinite(true) | ~np.isfinite(guess))
    if missing.size:
        raise ValueError(f"{name_rows(missing)}: NaN or infinity in truth or predicted.")
    return true, guess


def arrange_candidates(candidates: Any, classes: Any, scores: NDArray[Any]) -> NDArray[np.bool_]:
    """Candidate matrix with the columns of the scores; a class unknown to it is empty."""
    sets = read_named(candidates, classes)
    check_length(sets, len(scores))
    names = sets.class_names if classes is None else label_vector(classes)
    if len(names) != scores.shape[1]:
        raise ValueError(
            f"there are {scores.shape[1]} columns of scores for {len(names)} classes; "
            "name them in order: classes=model.classes_."
        )
    if np.array_equal(names, sets.class_names):
        return sets.matrix
    columns = find_columns(names, sets.class_names)
    return sets.matrix[:, columns] & (columns >= 0)


def checked_probabilities(probabilities: ArrayLike) -> NDArray[Any]:
    """Read an (n, l) matrix of probabilities whose rows sum to one."""
    chances = np.asarray(probabilities, dtype=float)
    if chances.ndim != 2 or not chances.size:
        raise ValueError(
            f"probabilities has shape {chances.shape}; it needs rows and classes, (n, l)."
        )
    off = ~np.isfinite(chances).all(axis=1) | (chances < 0).any(axis=1)
    off |= np.abs(chances.sum(axis=1) - 1) > 1e-3
    if off.any():
        raise ValueError(
            f"{name_rows(np.flatnonzero(off))}: probabilities must be non-negative and sum to 1."
        )
    return chances
