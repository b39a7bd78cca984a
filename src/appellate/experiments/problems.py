"""The data sets of the paper, scaled as it scaled them, and a user's own."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Problem:
    """A data set as experiments use it.

    Attributes
    ----------
    name, title : str
        Short name, and the one to print.
    X : ndarray, shape (n, q)
        Features, scaled if the data set's authors did so.
    candidates : ndarray of bool, shape (n, l)
        Candidate sets.
    truth : ndarray of int, shape (n,), or None
        Column of each true label, where known.
    tolerances : tuple of int
        Differences of ordered labels that count as right in further scores.
    standardize : bool
        Shift and scale every feature by the training rows of each split.
    """

    name: str
    title: str
    X: NDArray[Any]
    candidates: NDArray[np.bool_]
    truth: NDArray[np.intp] | None
    tolerances: tuple[int, ...] = ()
    standardize: bool = False

    def features(
        self, train: NDArray[np.intp], test: NDArray[np.intp]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the features of training and test rows, scaled by the former if asked for."""
        X, X_test = self.X[train], self.X[test]
        if not self.standardize:
            return X, X_test
        return standardize(X, by=X), standardize(X_test, by=X)

    def fingerprint(self) -> str:
        """Hash of features, candidates and truth, in hexadecimal."""
        digest = hashlib.sha256()
        for array in (self.X, self.candidates, self.truth):
            if array is not None:
                digest.update(f"{array.dtype.str}{array.shape}".encode())
                digest.update(np.ascontiguousarray(array).tobytes())
        digest.update(repr((self.tolerances, self.standardize)).encode())
        return digest.hexdigest()


@dataclass(frozen=True)
class PaperDataset:
    """One of the paper's real-world data sets and how it is prepared."""

    name: str
    title: str
    standardize: bool = False
    tolerances: tuple[int, ...] = ()


# As in the authors' data, Lost is z-scored over all rows; FG-NET is shipped so.
DATASETS = {
    each.name: each
    for each in (
        PaperDataset("fgnet", "FG-NET", tolerances=(3, 5)),
        PaperDataset("lost", "Lost", standardize=True),
        PaperDataset("msrcv2", "MSRCv2"),
        PaperDataset("mirflickr", "Mirflickr"),
        PaperDataset("soccer_player", "Soccer Player"),
        PaperDataset("yahoo_news", "Yahoo!News"),
    )
}


class UnavailableError(Exception):
    """A data set that is not there; the message says why and where to get it."""


def load_problem(name: str) -> Problem:
    """Load one of the paper's data sets from the data home, as the paper prepared it.

    Parameters
    ----------
    name : str
        A key of `DATASETS`.

    Raises
    ------
    UnavailableError
        If its file is missing or cannot be read. Nothing is downloaded.
    """
    from appellate import datasets

    known = DATASETS[name]
    try:
        data = getattr(datasets, f"load_{name}")(download_if_missing=False)
    except (OSError, ValueError, ImportError) as error:
        raise UnavailableError(str(error).replace("data_home= or ", "")) from error
    X = np.asarray(data.X, dtype=np.float64)
    return Problem(
        name=name,
        title=known.title,
        X=standardize(X, by=X) if known.standardize else X,
        candidates=np.asarray(data.candidates, dtype=bool),
        truth=np.asarray(data.y_true, dtype=np.intp),
        tolerances=known.tolerances,
    )


def standardize(X: NDArray[Any], by: NDArray[Any]) -> NDArray[Any]:
    """Shift and scale every feature by the mean and deviation (ddof 1) of some rows."""
    deviation = by.std(axis=0, ddof=min(1, len(by) - 1))
    return np.asarray((X - by.mean(axis=0)) / np.where(deviation > 0, deviation, 1))


def load_problems(names: list[str]) -> tuple[dict[str, Problem], dict[str, str]]:
    """Load what is there; return it, and the reason for each data set that is not."""
    found, missing = {}, {}
    for name in names:
        try:
            found[name] = load_problem(name)
        except UnavailableError as error:
            missing[name] = str(error)
    return found, missing


def problem_from(data: Any, name: str, *, scale: bool = True) -> Problem:
    """Make a problem of a loaded data set (`X`, `candidates`, maybe `y_true`).

    Parameters
    ----------
    data : Bunch
        What the loaders of `appellate.datasets` return; `y_true` may be missing or None, and
        holds columns of `candidates` or names of `class_names`.
    name : str
        Name to print.
    scale : bool, default=True
        Standardise the features, by the training rows of every split.
    """
    X = np.asarray(data.X, dtype=np.float64)
    truth = getattr(data, "y_true", None)
    if truth is not None:
        truth = np.asarray(truth)
        if truth.dtype.kind not in "iu":
            position = {label: j for j, label in enumerate(np.asarray(data.class_names).tolist())}
            truth = np.array([position[label] for label in truth.tolist()])
        truth = truth.astype(np.intp)
    return Problem(
        name=name,
        title=name,
        X=X,
        candidates=np.asarray(data.candidates, dtype=bool),
        truth=truth,
        standardize=scale,
    )


def load_own(source: str, *, scale: bool = True, **options: Any) -> Problem:
    """Load a user's data: a ``.mat`` or table file, or the name of one of the paper's data sets.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file or data set, or if columns are named of a data set.
    """
    from appellate import datasets
    from appellate.datasets.catalogue import known_datasets

    path = Path(source)
    if path.suffix.lower() == ".mat" or path.exists():
        mat = path.suffix.lower() == ".mat"
        load = datasets.load_partial_mat if mat else datasets.load_partial_csv
        return problem_from(load(path, **options), path.stem, scale=scale)
    if path.suffix or len(path.parts) > 1:
        raise FileNotFoundError(f"there is no file '{source}'.")
    if simplify(source) in {simplify(name) for name in known_datasets().keys() - DATASETS.keys()}:
        raise ValueError(
            f"'{source}' cannot be compared by its name. Give a CSV or .mat file, or one of the "
            f"paper's data sets: {', '.join(DATASETS)}."
        )
    name = resolve(source, list(DATASETS), "data set")
    if options:
        raise ValueError(
            f"the data set '{name}' has columns of its own, so {' and '.join(options)} cannot be "
            "named. They are for files."
        )
    return load_problem(name)


def simplify(name: str) -> str:
    """Letters and digits of a name, in lower case."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def resolve(name: str, known: list[str], what: str) -> str:
    """Return the known name that is meant, whatever its spelling.

    Raises
    ------
    ValueError
        If there is none; it suggests the nearest.

    Examples
    --------
    >>> resolve("FG-NET", ["lost", "fgnet"], "data set")
    'fgnet'
    >>> resolve("lots", ["lost", "fgnet"], "data set")
    Traceback (most recent call last):
    ValueError: unknown data set 'lots'. Did you mean 'lost'? Known are lost, fgnet.
    """
    spellings = {simplify(each): each for each in known}
    if simplify(name) in spellings:
        return spellings[simplify(name)]
    near = get_close_matches(simplify(name), spellings, n=1, cutoff=0.4)
    guess = f" Did you mean '{spellings[near[0]]}'?" if near else ""
    raise ValueError(f"unknown {what} '{name}'.{guess} Known are {', '.join(known)}.")
