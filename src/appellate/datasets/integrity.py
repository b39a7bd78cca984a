"""Checks that every loader makes, with messages that name the file and the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from appellate.candidates import CandidateSets, as_candidates, name_rows


def check_features(data: Any, where: str, *, allow_nan: bool = False) -> NDArray[Any]:
    """Return features as a float matrix (n, q); float32 stays float32.

    Raises
    ------
    ValueError
        If they are no numbers, not two-dimensional, or not finite.
    """
    X = data.toarray() if sp.issparse(data) else np.asarray(data)
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{where}: the features are of type {X.dtype}, not numbers.")
    if X.ndim != 2 or not X.size:
        raise ValueError(f"{where}: the features have shape {X.shape}; give rows and columns.")
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    wrong = np.isinf(X) if allow_nan else ~np.isfinite(X)
    if wrong.any():
        rows = np.flatnonzero(wrong.any(axis=1))
        raise ValueError(f"{where}: NaN or infinite features in {name_rows(rows)}.")
    return X


def read_sets(matrix: Any, where: str) -> CandidateSets:
    """Return candidate sets of a 0/1 matrix (n, l), with the file's name in every complaint."""
    try:
        return as_candidates(matrix, layout="indicator")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from error


def read_truth(matrix: Any, where: str) -> NDArray[np.intp]:
    """Return the column of the single 1 in each row of a 0/1 matrix (n, l).

    Raises
    ------
    ValueError
        If an entry is neither 0 nor 1, or a row has no or several truths.
    """
    ones = read_sets(matrix, where).matrix
    several = np.flatnonzero(np.count_nonzero(ones, axis=1) > 1)
    if several.size:
        raise ValueError(
            f"{where}: several truths in {name_rows(several)}. Each row has one; are truth and "
            "candidates swapped?"
        )
    truth: NDArray[np.intp] = ones.argmax(axis=1)
    return truth


def check_truth(
    candidates: NDArray[np.bool_], truth: NDArray[np.intp], where: str, *, noisy: bool = False
) -> None:
    """Check that the truth of every row is a candidate, unless the data may be noisy.

    Raises
    ------
    ValueError
        With the rows concerned.
    """
    outside = np.flatnonzero(~candidates[np.arange(len(truth)), truth])
    if outside.size and not noisy:
        raise ValueError(
            f"{where}: the truth is no candidate in {outside.size} of {len(truth)} rows "
            f"({name_rows(outside)}). Pass noisy=True if that is meant."
        )


def check_is_file(path: Path) -> Path:
    """Check that a user's file is there, with the files beside it in the message if not.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        If it is not, or is a folder.
    """
    if path.is_dir():
        raise IsADirectoryError(f"'{path}' is a folder. Name a file in it.")
    if not path.is_file():
        try:
            beside = sorted(p.name for p in path.parent.iterdir() if p.suffix == path.suffix)
        except OSError:
            raise FileNotFoundError(
                f"there is no file '{path}', nor a folder '{path.parent}'."
            ) from None
        there = f" Beside it there is {', '.join(map(repr, beside[:5]))}." if beside else ""
        raise FileNotFoundError(f"there is no file '{path}'.{there}")
    return path
