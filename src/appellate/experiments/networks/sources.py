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
from appellate.datasets.matfiles import check_feature_matrix, read_set_matrix
from appellate.experiments.networks.configuration import ConfigurationError, check_word

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
        Their candidate sets; None if they are still to be made from the true labels.
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

    def with_sets(self, seed: int, flip: float | None, bag_size: int | None = None) -> RunData:
        """Make candidate sets: false labels join with a probability, or rows are put in bags.

        The rows of a bag have the union of their labels, which is set-first.
        """
        from appellate.datasets import make_partial_labels

        assert self.truth is not None
        bags = {"strategy": "set_first", "bag_size": bag_size}
        how: Any = {"flip_probability": flip} if bag_size is None else bags
        labels, rng = range(len(self.class_names)), np.random.default_rng(seed)
        sets = make_partial_labels(self.truth, classes=labels, random_state=rng, **how)
        return replace(self, candidates=sets)

    def part(self, rows: NDArray[np.intp], test_rows: NDArray[np.intp]) -> RunData:
        """Keep some rows."""
        kept: dict[str, Any] = {"ids": rows}
        for name in ("X", "candidates", "truth", "X_test", "test_truth"):
            values, chosen = getattr(self, name), test_rows if "test" in name else rows
            kept[name] = None if values is None else values[chosen]
        return replace(self, **kept)

    def describe_candidates(self) -> dict[str, Any]:
        """Return mean size, share of sets of one, coverage of the true labels, and a hash."""
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
    check_word(source, [*NAMES, "FILE.npz"], "unknown data set")
    return source


def load_run_data(source: str, home: Path | None = None) -> RunData:
    """Load a data set by name or an NPZ file."""
    try:
        return _load_images(source, home) if source in NAMES else _load_npz(Path(source))
    except (ImportError, OSError, ValueError) as error:
        raise ConfigurationError(str(error)) from error


def _load_images(source: str, home: Path | None) -> RunData:
    from appellate import datasets

    name = "cifar10" if source == "cifar10n" else source.replace("-", "_")
    labelled = getattr(datasets, f"load_{name}")
    train: Any = (datasets.load_cifar10n if source == "cifar10n" else labelled)(data_home=home)
    test = labelled(subset="test", data_home=home)
    rows = train.images
    sets = train.get("candidates")
    names = train.class_names
    return RunData(rows, sets, names, train.y_true, test.images, test.y_true)


def _load_npz(path: Path) -> RunData:
    try:
        archive = np.load(path, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise ValueError("it is a single array; write it with numpy.savez")
        with archive:
            arrays = {k: archive[k] for k in archive.files if k in (*_NEEDED, *_OPTIONAL)}
            found = ", ".join(archive.files) or "none"
    except FileNotFoundError as error:
        raise ValueError(f"cannot find the file '{path}'.") from error
    except (zipfile.BadZipFile, EOFError, ValueError) as error:
        raise ValueError(f"'{path}' cannot be read as an NPZ file: {error}.") from error
    missing = [repr(name) for name in _NEEDED if name not in arrays]
    if missing:
        raise ValueError(
            f"'{path}' has no array {' or '.join(missing)}; it has {found}. Needed are X and "
            f"candidates, and {', '.join(_OPTIONAL)} are optional."
        )
    try:
        return _check_arrays(arrays)
    except ValueError as error:
        raise ValueError(f"'{path}': {error}") from error


def _check_arrays(arrays: dict[str, NDArray[Any]]) -> RunData:
    X, sets = _check_rows(arrays, "X"), read_set_matrix(arrays["candidates"], "'candidates'")
    n, l = sets.matrix.shape
    if len(X) != n:
        raise ValueError(f"X has {len(X)} rows, but candidates {n}.")
    names = arrays.get("class_names", np.arange(l))
    if names.shape != (l,) or len(np.unique(names)) != l:
        raise ValueError(
            f"class_names must be {l} different names, one for each column of candidates; it has "
            f"shape {names.shape}."
        )
    if ("X_test" in arrays) != ("y_test" in arrays):
        raise ValueError("X_test and y_test must be given together.")
    truth = _columns(arrays, "y_true", names, n)
    if "X_test" not in arrays:
        return RunData(X, sets.matrix, names, truth)
    X_test = _check_rows(arrays, "X_test")
    if X_test.shape[1:] != X.shape[1:]:
        raise ValueError(
            f"rows of X_test have shape {X_test.shape[1:]}, those of X {X.shape[1:]}."
        )
    test_truth = _columns(arrays, "y_test", names, len(X_test))
    return RunData(X, sets.matrix, names, truth, X_test, test_truth)


def _check_rows(arrays: dict[str, NDArray[Any]], name: str) -> NDArray[Any]:
    """Take bytes as they are, and other numbers as float32 if they are finite."""
    X = arrays[name]
    if X.ndim not in (2, 3, 4) or not X.size:
        raise ValueError(
            f"{name} has shape {X.shape}; give vectors (n, q), grey images (n, h, w) or colour "
            "images (n, c, h, w) or (n, h, w, c)."
        )
    if X.dtype == np.uint8:
        return X
    checked = check_feature_matrix(X.reshape(len(X), -1), name)
    return checked.reshape(X.shape).astype(np.float32, copy=False)


def _columns(
    arrays: dict[str, NDArray[Any]], what: str, names: NDArray[Any], n: int
) -> NDArray[np.intp] | None:
    """Return the column of every label, given as a class name or as a column number."""
    labels = arrays.get(what)
    if labels is None:
        return None
    if labels.shape != (n,):
        raise ValueError(f"{what} has shape {labels.shape}; give one label per row, ({n},).")
    numbers = labels.dtype.kind in "iu" and names.dtype.kind not in "biu"
    known = {name: k for k, name in enumerate(range(len(names)) if numbers else names.tolist())}
    columns = np.array([known.get(label, -1) for label in labels.tolist()])
    wrong = np.flatnonzero(columns < 0)
    if wrong.size:
        raise ValueError(f"no class of that name in {name_rows(wrong)} of {what}.")
    return columns
