"""Data whose candidate sets come from people: LabelMe, CIFAR-10N and CIFAR-10H."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from appellate.candidates import as_candidates, name_rows
from appellate.datasets.catalogue import find_dataset
from appellate.datasets.download import require_files
from appellate.datasets.home import get_data_home
from appellate.datasets.images import load_cifar10
from appellate.datasets.integrity import check_features

PathLike = str | os.PathLike[str]

# The numbers that the files of LabelMe use for the scenes.
LABELME_CLASSES = [
    "highway",
    "inside city",
    "tall building",
    "street",
    "forest",
    "coast",
    "mountain",
    "open country",
]


def load_labelme(
    *,
    rule: str = "union",
    data_home: PathLike | None = None,
    download_if_missing: bool = True,
    return_X_candidates_y: bool = False,
) -> Any:
    """Load LabelMe: scenes of photographs, each answered by about three crowd workers.

    A real noisy case: for one photograph in nine the truth is among nobody's answers. The
    files have to be put into the data home by hand.

    Parameters
    ----------
    rule : str, default="union"
        Which answers become candidates, see `appellate.as_candidates`.
    data_home : path-like, default=None
        Folder to find the files in, see `get_data_home`.
    download_if_missing : bool, default=True
        Has no effect as long as no address is known to rely on.
    return_X_candidates_y : bool, default=False
        Return ``(X, candidates, y_true)`` alone.

    Returns
    -------
    Bunch
        With `X` (1000, 512), `candidates` (bool, (1000, 8)), `y_true` (class numbers),
        `class_names`, `answers` (1000, 59) with -1 where a person was not asked, `votes`
        (1000, 8), the parts without answers as `X_valid`, `y_valid` (500) and `X_test`,
        `y_test` (1188), `description` and `filename`.

    Raises
    ------
    FileNotFoundError
        If a file is not there.
    ValueError
        If a file is damaged, or files do not fit together.

    Examples
    --------
    >>> from appellate.datasets import load_labelme
    >>> data = load_labelme()  # doctest: +SKIP
    >>> data.X.shape, data.candidates.shape  # doctest: +SKIP
    ((1000, 512), (1000, 8))
    """
    entry = find_dataset("labelme")
    found = require_files(entry, get_data_home(data_home), download_if_missing=download_if_missing)
    path = found["labelme/answers.txt"]
    l = len(LABELME_CLASSES)
    answers = _read_numbers(path, low=-1, high=l)
    parts = {}
    for part in ("train", "valid", "test"):
        features, truth = (
            found[f"labelme/LabelMe_{kind}_{part}.{suffix}"]
            for kind, suffix in (("VGG_avg", "npy"), ("Z", "txt"))
        )
        parts[part] = _read_array(features), _read_numbers(truth, low=0, high=l).ravel()
        if len(parts[part][0]) != len(parts[part][1]):
            raise ValueError(
                f"'{features}' has {len(parts[part][0])} rows, but '{truth}' "
                f"{len(parts[part][1])} labels. Have files been swapped?"
            )
    X, y_true = parts["train"]
    if len(answers) != len(X):
        raise ValueError(f"'{path}' has {len(answers)} rows, but there are {len(X)} features.")
    votes = np.stack([np.count_nonzero(answers == j, axis=1) for j in range(l)], axis=1)
    candidates = as_candidates(
        answers, layout="annotators", rule=rule, missing=-1, classes=np.arange(l)
    ).matrix
    if return_X_candidates_y:
        return X, candidates, y_true
    return Bunch(
        X=X,
        candidates=candidates,
        y_true=y_true,
        class_names=np.array(LABELME_CLASSES),
        answers=answers,
        votes=votes,
        X_valid=parts["valid"][0],
        y_valid=parts["valid"][1],
        X_test=parts["test"][0],
        y_test=parts["test"][1],
        description=entry.description,
        filename=str(path),
    )


def load_cifar10n(
    *,
    rule: str = "union",
    data_home: PathLike | None = None,
    download_if_missing: bool = True,
    return_X_candidates_y: bool = False,
) -> Any:
    """Load CIFAR-10N: the CIFAR-10 training images, each labelled by three people.

    For one image in fifty the truth is among none of the three labels. The file of labels has
    to be put into the data home by hand; the images are those of `load_cifar10`.

    Parameters
    ----------
    rule : str, default="union"
        Which of the three labels become candidates, see `appellate.as_candidates`.
    data_home, download_if_missing, return_X_candidates_y
        See `load_labelme`.

    Returns
    -------
    Bunch
        As that of `load_cifar10`, and `candidates` (bool, (50000, 10)), `votes` (50000, 10)
        and `answers` (50000, 3).

    Examples
    --------
    >>> from appellate.datasets import load_cifar10n
    >>> data = load_cifar10n()  # doctest: +SKIP
    >>> data.X.shape, data.candidates.shape  # doctest: +SKIP
    ((50000, 3072), (50000, 10))
    """
    name = "CIFAR-10N_train_labels.npz"
    entry = find_dataset("cifar10n")
    found = require_files(entry, get_data_home(data_home), download_if_missing=download_if_missing)
    path = found[f"cifar-10n/{name}"]
    keys = ["random_label1", "random_label2", "random_label3", "clean_label"]
    columns = _read_archive(path, keys)
    answers = np.stack(columns[:3], axis=1)
    if answers.min() < 0 or answers.max() > 9:
        raise ValueError(f"'{path}' has labels outside 0 .. 9; it is damaged.")
    data = load_cifar10(data_home=data_home, download_if_missing=download_if_missing)
    if not np.array_equal(columns[3], data.y_true):
        raise ValueError(
            f"the true labels in '{path}' are not those of the images beside '{data.filename}': "
            "one of the two is damaged, or not in the official order."
        )
    votes = np.stack([np.count_nonzero(answers == j, axis=1) for j in range(10)], axis=1)
    return _with_votes(data, votes, rule, entry.description, path, return_X_candidates_y, answers)


def load_cifar10h(
    *,
    rule: str = "union",
    data_home: PathLike | None = None,
    download_if_missing: bool = True,
    return_X_candidates_y: bool = False,
) -> Any:
    """Load CIFAR-10H: the CIFAR-10 test images, each labelled by about 51 people.

    Parameters
    ----------
    rule : str, default="union"
        Which labels become candidates, see `appellate.as_candidates`; with so many votes
        ``"votes:2"`` or ``"share:0.95"`` leaves slips out.
    data_home, download_if_missing, return_X_candidates_y
        See `load_labelme`; the counts can be fetched.

    Returns
    -------
    Bunch
        As that of ``load_cifar10(subset="test")``, and `candidates` (bool, (10000, 10)) and
        `votes` (10000, 10).

    Examples
    --------
    >>> from appellate.datasets import load_cifar10h
    >>> data = load_cifar10h()  # doctest: +SKIP
    >>> data.X.shape, data.candidates.shape  # doctest: +SKIP
    ((10000, 3072), (10000, 10))
    """
    entry = find_dataset("cifar10h")
    found = require_files(entry, get_data_home(data_home), download_if_missing=download_if_missing)
    path = found["cifar-10h/cifar10h-counts.npy"]
    votes = _read_array(path)
    data = load_cifar10(
        subset="test", data_home=data_home, download_if_missing=download_if_missing
    )
    if votes.shape != (len(data.X), 10):
        raise ValueError(
            f"'{path}' has shape {votes.shape}, not ({len(data.X)}, 10): it does not belong to "
            f"the images of '{data.filename}'."
        )
    return _with_votes(data, votes, rule, entry.description, path, return_X_candidates_y)


def _with_votes(
    data: Bunch,
    votes: NDArray[Any],
    rule: str,
    description: str,
    path: Path,
    as_tuple: bool,
    answers: NDArray[Any] | None = None,
) -> Any:
    """Add candidate sets to images."""
    candidates = as_candidates(votes, layout="counts", rule=rule).matrix
    if as_tuple:
        return data.X, candidates, data.y_true
    extra = {} if answers is None else {"answers": answers}
    return Bunch(
        **data
        | {
            "candidates": candidates,
            "votes": votes.astype(np.intp),
            "description": description + "\n" + data.description,
            "filename": str(path),
        }
        | extra
    )


def _read_array(path: Path) -> NDArray[Any]:
    """Read a matrix of numbers from a .npy file, without executing anything in it."""
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(f"'{path}' is truncated or damaged ({error}); get it again.") from error
    return check_features(array, f"'{path}'")


def _read_archive(path: Path, keys: list[str]) -> list[NDArray[Any]]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            missing = [key for key in keys if key not in archive]
            if missing:
                raise ValueError(f"it has no {', '.join(missing)}, but {', '.join(archive)}")
            columns = [archive[key] for key in keys]
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise ValueError(f"'{path}' cannot be read: {error}. Get it again.") from error
    if len({column.shape for column in columns}) > 1 or columns[0].ndim != 1:
        raise ValueError(f"the arrays in '{path}' have different lengths; it is damaged.")
    return columns


def _read_numbers(path: Path, *, low: int, high: int) -> NDArray[np.intp]:
    """Read a table of whole numbers from low to high - 1."""
    try:
        numbers = np.loadtxt(path, dtype=np.intp, ndmin=2)
    except (ValueError, UnicodeDecodeError) as error:
        raise ValueError(f"'{path}' is no table of class numbers: {error}") from error
    outside = np.flatnonzero(((numbers < low) | (numbers >= high)).any(axis=1))
    if outside.size:
        raise ValueError(
            f"'{path}' has numbers outside {low} .. {high - 1} in {name_rows(outside)}; it is "
            "damaged or another file."
        )
    return numbers
