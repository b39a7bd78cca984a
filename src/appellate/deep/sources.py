"""Data of deep runs: image sets by name, or arrays in an NPZ file."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate.candidates import name_rows
from appellate.datasets.generators import summarize_matrix
from appellate.datasets.matfiles import read_sets
from appellate.deep.configuration import ConfigurationError, guess

NAMES = ("cifar10", "cifar100", "fashion-mnist", "cifar10n")
_NEEDED = ("X", "candidates")
_OPTIONAL = ("y_true", "X_test", "y_test", "class_names")


@dataclass(frozen=True)
class RunData:
    """Rows to train on with their candidate sets, and rows to test on.

    Attributes
    ----------
    X : ndarray
        Vectors or images, the rows first.
    candidates : ndarray of bool, shape (n, l), or None
        Their candidate sets; None where they are still to be made from the truth.
    class_names : ndarray, shape (l,)
        Names of the labels.
    truth : ndarray of int, shape (n,), or None
        Column of the true label.
    X_test, test_truth : ndarray or None
        Rows to test on, and the columns of their labels.
    ids : ndarray of int, shape (n,), or None
        Which rows of the data set the training rows are, if they are not all.
    """

    X: NDArray[Any]
    candidates: NDArray[np.bool_] | None
    class_names: NDArray[Any]
    truth: NDArray[np.intp] | None = None
    X_test: NDArray[Any] | None = None
    test_truth: NDArray[np.intp] | None = None
    ids: NDArray[np.intp] | None = None

    def flipped(self, flip: float, seed: int) -> RunData:
        """Make candidate sets: every false label joins with a probability."""
        from appellate.datasets import make_partial_labels

        assert self.truth is not None
        candidates = make_partial_labels(
            self.truth,
            classes=range(len(self.class_names)),
            flip_probability=flip,
            random_state=np.random.default_rng(seed),
        )
        return replace(self, candidates=candidates)

    def bagged(self, size: int, seed: int) -> RunData:
        """Make set-first candidates: rows in bags have the union of the labels of their bag."""
        from appellate.datasets import make_partial_labels

        assert self.truth is not None
        candidates = make_partial_labels(
            self.truth,
            strategy="set_first",
            classes=range(len(self.class_names)),
            bag_size=size,
            random_state=np.random.default_rng(seed),
        )
        return replace(self, candidates=candidates)

    def part(self, rows: NDArray[np.intp], test_rows: NDArray[np.intp]) -> RunData:
        """Keep some rows."""

        def of(values: Any, chosen: NDArray[np.intp]) -> Any:
            return None if values is None else values[chosen]

        return RunData(
            self.X[rows],
            of(self.candidates, rows),
            self.class_names,
            of(self.truth, rows),
            of(self.X_test, test_rows),
            of(self.test_truth, test_rows),
            rows,
        )

    def describe_candidates(self) -> dict[str, Any]:
        """Return mean size, share of sets of one, coverage of the truth, and a hash."""
        assert self.candidates is not None
        summary = summarize_matrix(self.candidates, self.truth).to_dict()
        digest = hashlib.sha256(np.packbits(self.candidates, axis=1).tobytes())
        digest.update(str(self.candidates.shape).encode())
        return {**summary, "sha256": digest.hexdigest()}


def needs_flips(source: str) -> bool:
    """Whether a data set has true labels only, so that candidate sets have to be made."""
    return source in NAMES and source != "cifar10n"


def resolve_source(source: str) -> str:
    """Return the known name that is meant, or the whole path of an NPZ file."""
    if source.endswith(".npz") or Path(source).is_file():
        return str(Path(source).absolute())
    for name in NAMES:
        if name.replace("-", "") == source.lower().replace("-", ""):
            return name
    raise ConfigurationError(
        f"unknown data set '{source}'.{guess(source, NAMES)} Known are {', '.join(NAMES)}. Or "
        "give an NPZ file: FILE.npz."
    )


def load(source: str, home: Path | None = None) -> RunData:
    """Load a data set by name or an NPZ file."""
    try:
        return _load_images(source, home) if source in NAMES else _load_npz(Path(source))
    except (ImportError, OSError, ValueError) as error:
        raise ConfigurationError(str(error)) from error


def _load_images(source: str, home: Path | None) -> RunData:
    from appellate import datasets

    test_of = {
        "cifar10": datasets.load_cifar10,
        "cifar10n": datasets.load_cifar10,
        "cifar100": datasets.load_cifar100,
        "fashion-mnist": datasets.load_fashion_mnist,
    }
    if source == "cifar10n":
        train: Any = datasets.load_cifar10n(data_home=home)
    else:
        train = test_of[source](data_home=home)
    test = test_of[source](subset="test", data_home=home)
    return RunData(
        train.images,
        train.get("candidates"),
        train.class_names,
        train.y_true,
        test.images,
        test.y_true,
    )


def _load_npz(path: Path) -> RunData:
    arrays = _read_npz(path)
    X = _check_rows(arrays["X"], "X", path)
    sets = read_sets(arrays["candidates"], f"'candidates' in '{path}'")
    n, l = sets.matrix.shape
    if len(X) != n:
        raise ValueError(f"'{path}': X has {len(X)} rows, but candidates {n}.")
    names = arrays.get("class_names", np.arange(l))
    if names.shape != (l,) or len(np.unique(names)) != l:
        raise ValueError(
            f"'{path}': class_names must be {l} different names, one for each column of "
            f"candidates; it has shape {names.shape}."
        )
    if ("X_test" in arrays) != ("y_test" in arrays):
        raise ValueError(f"'{path}': X_test and y_test must be given together.")
    truth = None
    if "y_true" in arrays:
        truth = _columns(arrays["y_true"], names, n, "y_true", path)
    if "X_test" not in arrays:
        return RunData(X, sets.matrix, names, truth)
    X_test = _check_rows(arrays["X_test"], "X_test", path)
    if X_test.shape[1:] != X.shape[1:]:
        raise ValueError(
            f"'{path}': rows of X_test have shape {X_test.shape[1:]}, those of X {X.shape[1:]}."
        )
    test_truth = _columns(arrays["y_test"], names, len(X_test), "y_test", path)
    return RunData(X, sets.matrix, names, truth, X_test, test_truth)


def _read_npz(path: Path) -> dict[str, NDArray[Any]]:
    try:
        archive = np.load(path, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise ValueError("it is a single array; write it with numpy.savez")
        with archive:
            arrays = {k: archive[k] for k in (*_NEEDED, *_OPTIONAL) if k in archive.files}
            found = ", ".join(archive.files) or "none"
    except FileNotFoundError as error:
        raise ValueError(f"there is no file '{path}'.") from error
    except (zipfile.BadZipFile, EOFError, ValueError) as error:
        raise ValueError(f"'{path}' cannot be read as an NPZ file: {error}.") from error
    missing = [repr(name) for name in _NEEDED if name not in arrays]
    if missing:
        raise ValueError(
            f"'{path}' has no array {' or '.join(missing)}; it has {found}. Needed are X and "
            f"candidates, and {', '.join(_OPTIONAL)} are used if there."
        )
    return arrays


def _check_rows(X: NDArray[Any], name: str, path: Path) -> NDArray[Any]:
    """Take bytes as they are, and other numbers as float32 if they are finite."""
    if X.dtype.kind not in "biuf":
        raise ValueError(f"'{path}': {name} is of type {X.dtype}, not numbers.")
    if X.ndim not in (2, 3, 4) or not X.size:
        raise ValueError(
            f"'{path}': {name} has shape {X.shape}; give vectors (n, q), grey images (n, h, w) "
            "or colour images (n, c, h, w) or (n, h, w, c)."
        )
    if X.dtype == np.uint8:
        return X
    wrong = np.flatnonzero(~np.isfinite(X.reshape(len(X), -1)).all(axis=1))
    if wrong.size:
        raise ValueError(f"'{path}': NaN or infinite values in {name_rows(wrong)} of {name}.")
    return X.astype(np.float32, copy=False)


def _columns(
    labels: NDArray[Any], names: NDArray[Any], n: int, what: str, path: Path
) -> NDArray[np.intp]:
    """Return the column of every label, given as a class name or as a column number."""
    if labels.shape != (n,):
        raise ValueError(
            f"'{path}': {what} has shape {labels.shape}; give one label a row, ({n},)."
        )
    order = np.argsort(names)
    if labels.dtype.kind == names.dtype.kind or {labels.dtype.kind, names.dtype.kind} <= {*"biu"}:
        place = np.minimum(np.searchsorted(names, labels, sorter=order), len(names) - 1)
        columns = order[place]
        wrong = np.flatnonzero(names[columns] != labels)
    elif labels.dtype.kind in "iu":
        columns = labels.astype(np.intp)
        wrong = np.flatnonzero((columns < 0) | (columns >= len(names)))
    else:
        raise ValueError(f"'{path}': {what} is of type {labels.dtype}, class_names {names.dtype}.")
    if wrong.size:
        raise ValueError(f"'{path}': no class of that name in {name_rows(wrong)} of {what}.")
    return columns
