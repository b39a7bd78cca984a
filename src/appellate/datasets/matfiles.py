"""Read partial-label data from MATLAB files, version 5 by scipy and version 7.3 by h5py."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp
from sklearn.utils import Bunch

from appellate._text import install
from appellate.datasets.integrity import (
    check_features,
    check_is_file,
    check_truth,
    read_sets,
    read_truth,
)

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
        Name of the variable that holds the truth, of the same shape as the candidates with
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
    wanted = [features, candidates] + ([truth] if truth is not None else [])
    values = _select(read_mat(file), wanted, file.name)
    data, labels = _orient(values, file.name)
    X = check_features(data, f"{file.name}, {features!r}")
    sets = read_sets(labels[0], f"{file.name}, {candidates!r}")
    y_true = None
    if truth is not None:
        y_true = read_truth(labels[1], f"{file.name}, {truth!r}")
        check_truth(sets.matrix, y_true, file.name, noisy=noisy)
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
        If there is no such file.
    ImportError
        If h5py is needed and not installed.
    ValueError
        If the file cannot be read.
    """
    with check_is_file(path).open("rb") as file:
        head = file.read(520)
    if head.lstrip()[:1] == b"<":
        raise ValueError(f"'{path}' is a web page, not a .mat file. Download the data again.")
    try:
        return _read_hdf5(path) if _HDF5 in (head[:8], head[512:]) else _read_version_5(path)
    except ImportError:
        raise
    except Exception as error:  # a damaged file makes the parsers raise anything at all
        raise ValueError(
            f"'{path}' cannot be read as a .mat file ({type(error).__name__}: {error}). "
            "It is probably truncated or damaged; get it again."
        ) from error


def _read_version_5(path: Path) -> dict[str, Any]:
    content = scipy.io.loadmat(path)
    return {name: value for name, value in content.items() if not name.startswith("__")}


def _read_hdf5(path: Path) -> dict[str, Any]:
    try:
        import h5py
    except ImportError as error:
        raise ImportError(
            f"'{path}' is a .mat file of version 7.3, which h5py reads: {install('data')}"
        ) from error
    with h5py.File(path, "r") as file:
        return {name: _from_hdf5(value) for name, value in file.items() if name[0] != "#"}


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


def _select(content: dict[str, Any], wanted: list[str], where: str) -> list[Any]:
    for name in wanted:
        if content.get(name) is None:
            near = get_close_matches(name, content, n=1, cutoff=0.5)
            guess = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"{where} has no variable {name!r}, but {', '.join(map(repr, content))}.{guess} "
                "Name the variables with features=, candidates= and truth=."
            )
    return [content[name] for name in wanted]


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
