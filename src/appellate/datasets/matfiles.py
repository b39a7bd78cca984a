"""Read partial-label data from MATLAB files, version 5 by scipy and version 7.3 by h5py."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import Bunch

from appellate._text import did_you_mean, install
from appellate.candidates import CandidateSets, as_candidates, name_rows

_HDF5 = b"\x89HDF\r\n\x1a\n"


def load_partial_mat(
    path: str | os.PathLike[str],
    *,
    features: str = "data",
    candidates: str = "partial_target",
    truth: str | None = "target",
    noisy: bool = False,
    return_X_candidates_y: bool = False,
) -> Any:
    """Load a ``.mat`` file with features, candidate sets and true labels.

    Parameters
    ----------
    path : path-like
        The file, of MATLAB's version 5 to 7 or, with ``appellate[data]``, 7.3.
    features, candidates : str, default="data", "partial_target"
        Names of the variables that hold the features, (n, q), and the candidates, 0/1 of
        shape (l, n). Label matrices may be sparse.
    truth : str or None, default="target"
        Name of the variable with the true labels, of the same shape as the candidates with
        one 1 for each sample. None if the file has none.
    noisy : bool, default=False
        Accept rows whose truth is not among their candidates.
    return_X_candidates_y : bool, default=False
        Return ``(X, candidates, y_true)`` alone.

    Returns
    -------
    Bunch
        With `X` (n, q), `candidates` (bool, (n, l)), `y_true` (the column of each true
        label, or None), `class_names` (0 .. l - 1), `description` and `filename`.

    Raises
    ------
    ValueError
        If the file is damaged, lacks a variable, or its contents do not fit together.

    Notes
    -----
    The layout is found from the shapes. Label matrices of shape (n, l) are transposed, and
    so are features of shape (q, n) if no label matrix has as many samples as they have rows.
    Where the shapes leave a choice, as for n = l, the layout is the usual one: features
    (n, q), labels (l, n).

    Examples
    --------
    >>> import numpy as np, scipy.io, tempfile
    >>> content = {
    ...     "data": np.eye(3, 2),
    ...     "partial_target": np.array([[1, 0, 1], [1, 1, 0], [0, 0, 1], [0, 0, 0]]),
    ...     "target": np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]]),
    ... }
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     scipy.io.savemat(f"{folder}/own.mat", content)
    ...     own = load_partial_mat(f"{folder}/own.mat")
    >>> own.candidates.astype(int)
    array([[1, 1, 0, 0],
           [0, 1, 0, 0],
           [1, 0, 1, 0]])
    >>> own.y_true
    array([0, 1, 2])
    """
    file = Path(path)
    content = read_mat(file)
    wanted = [features, candidates] + ([truth] if truth is not None else [])
    for name in wanted:
        if content.get(name) is None:
            raise ValueError(
                f"{file.name} has no variable {name!r}, but {', '.join(map(repr, content))}."
                f"{did_you_mean(name, content)} Name the variables with features=, candidates= "
                "and truth=."
            )
    data, labels = _orient([content[name] for name in wanted], file.name)
    X = check_feature_matrix(data, f"{file.name}, {features!r}")
    sets = read_set_matrix(labels[0], f"{file.name}, {candidates!r}")
    y_true = None
    if truth is not None:
        where = f"{file.name}, {truth!r}"
        ones = read_set_matrix(labels[1], where).matrix
        several = np.flatnonzero(np.count_nonzero(ones, axis=1) > 1)
        if several.size:
            raise ValueError(
                f"{where}: several truths in {name_rows(several)}. Each row has one; are truth "
                "and candidates swapped?"
            )
        y_true = ones.argmax(axis=1)
        outside = np.flatnonzero(~sets.matrix[np.arange(len(y_true)), y_true])
        if outside.size and not noisy:
            raise ValueError(
                f"{file.name}: the true label is not a candidate in {outside.size} of "
                f"{len(y_true)} rows "
                f"({name_rows(outside)}). Pass noisy=True if that is meant."
            )
    if return_X_candidates_y:
        return X, sets.matrix, y_true
    return Bunch(
        X=X,
        candidates=sets.matrix,
        y_true=y_true,
        class_names=sets.class_names,
        description=f"Read from {file.name}.",
        filename=str(file),
    )


def read_mat(path: Path) -> dict[str, Any]:
    """Return the variables of a ``.mat`` file as MATLAB shows them: arrays and sparse matrices.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ImportError
        If h5py is needed and not installed.
    ValueError
        If the file cannot be read.
    """
    if path.is_dir():
        raise IsADirectoryError(f"'{path}' is a folder. Name a file in it.")
    if not path.is_file():
        beside = sorted(each.name for each in path.parent.glob(f"*{path.suffix}"))
        there = f" The folder has {', '.join(map(repr, beside[:5]))}." if beside else ""
        where = "" if path.parent.is_dir() else f", nor a folder '{path.parent}'"
        raise FileNotFoundError(f"cannot find the file '{path}'{where}.{there}")
    with path.open("rb") as file:
        head = file.read(520)
    if head.lstrip()[:1] == b"<":
        raise ValueError(f"'{path}' is a web page, not a .mat file. Download the data again.")
    with reading(path, "a .mat file"):
        if _HDF5 not in (head[:8], head[512:]):
            content = scipy.io.loadmat(path)
            return {name: value for name, value in content.items() if not name.startswith("__")}
        try:
            import h5py
        except ImportError as error:
            raise ImportError(
                f"'{path}' is a .mat file of version 7.3, which h5py reads: {install('data')}"
            ) from error
        with h5py.File(path, "r") as file:
            return {name: _from_hdf5(value) for name, value in file.items() if name[0] != "#"}


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Say which file cannot be read; a damaged one makes parsers raise anything at all.

    Parameters
    ----------
    path : Path
        The file.
    kind : str
        What it should be.

    Raises
    ------
    ValueError
        For whatever is raised within, but for a package that is not installed.
    """
    try:
        yield
    except ImportError:
        raise
    except Exception as error:
        raise ValueError(
            f"'{path}' cannot be read as {kind} ({type(error).__name__}: {error}). It is probably "
            "truncated or damaged; get it again."
        ) from error


def _from_hdf5(value: Any) -> Any:
    """Undo what MATLAB does to a matrix when it writes HDF5."""
    if hasattr(value, "keys"):  # a group: a sparse matrix in compressed columns
        if "MATLAB_sparse" not in value.attrs:
            return None
        starts = value["jc"][()]
        entries = [value[key][()] if key in value else np.empty(0) for key in ("data", "ir")]
        shape = int(value.attrs["MATLAB_sparse"]), len(starts) - 1
        return sp.csc_array((entries[0], entries[1].astype(np.int64), starts), shape=shape)
    return np.asarray(value[()]).T  # columns first there, rows first here


def _orient(values: list[Any], where: str) -> tuple[Any, list[Any]]:
    """Bring features to (n, q) and labels to (n, l) by their shapes."""
    data, *labels = values
    for value in values:
        if len(getattr(value, "shape", ())) != 2:
            raise ValueError(f"{where}: features and labels must be matrices.")
    if len({matrix.shape for matrix in labels}) > 1:
        raise ValueError(
            f"{where}: candidates have shape {labels[0].shape}, truth {labels[1].shape}; "
            "they must be the same."
        )
    rows, columns = labels[0].shape
    if data.shape[0] not in (rows, columns) and data.shape[1] in (rows, columns):
        data = data.T
    n = data.shape[0]
    if columns == n:
        return data, [matrix.T for matrix in labels]
    if rows == n:
        return data, labels
    raise ValueError(
        f"{where}: features of shape {data.shape} do not fit labels of shape {(rows, columns)}; "
        "no two sides have the same number of samples."
    )


def check_feature_matrix(data: Any, where: str) -> NDArray[Any]:
    """Return features as a float matrix (n, q); float32 stays float32.

    Raises
    ------
    ValueError
        If they are not numbers, not two-dimensional, or not finite.
    """
    X = data.toarray() if sp.issparse(data) else np.asarray(data)
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{where}: the features are of type {X.dtype}, not numbers.")
    if X.ndim != 2 or not X.size:
        raise ValueError(f"{where}: the features have shape {X.shape}; give rows and columns.")
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    rows = np.flatnonzero(~np.isfinite(X).all(axis=1))
    if rows.size:
        raise ValueError(f"{where}: NaN or infinite features in {name_rows(rows)}.")
    return X


def read_set_matrix(matrix: Any, where: str) -> CandidateSets:
    """Return candidate sets of a 0/1 matrix (n, l), with the file's name in every complaint."""
    try:
        return as_candidates(matrix, layout="indicator")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from error
