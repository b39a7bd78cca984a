"""Data sets with annotators' answers, features and true labels.

`answers` of what the loaders return is an `appellate.Answers` over class numbers, as `y_true`.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from appellate._files import read_csv
from appellate.candidates import Answers, as_answers, as_candidates, name_rows
from appellate.candidates.names import naming
from appellate.datasets.catalogue import find_dataset
from appellate.datasets.download import described_by, require_files
from appellate.datasets.images import load_cifar10
from appellate.datasets.matfiles import check_feature_matrix, reading

# The numbers that the files of LabelMe use for the scenes.
LABELME_CLASSES = [
    *("highway", "inside city", "tall building", "street"),
    *("forest", "coast", "mountain", "open country"),
]


def _answered(
    read: Callable[[dict[str, Path], Callable[..., Bunch]], Bunch],
) -> Callable[..., Any]:
    """Make a loader of a function that reads the files, and perhaps images, of its data set."""

    @described_by(read)
    def load(
        *,
        rule: str = "union",
        data_home: str | os.PathLike[str] | None = None,
        download_if_missing: bool = True,
        return_X_candidates_y: bool = False,
    ) -> Any:
        entry, fetch = find_dataset(read.__name__.removeprefix("load_")), download_if_missing
        found = require_files(entry, data_home, fetch)
        data = read(found, partial(load_cifar10, data_home=data_home, download_if_missing=fetch))
        data.votes = data.answers.votes().astype(np.intp)
        own = {"union": data.votes > 0} | data.pop("rules", {})  # unanswered: an empty set
        if rule not in own:
            own[rule] = as_candidates(data.answers, rule=rule).matrix
        data.candidates = own[rule]
        if return_X_candidates_y:
            return data.X, data.candidates, data.y_true
        texts = entry.description, data.get("description")
        return Bunch(**data | {"description": "\n".join(filter(None, texts))})

    return load


@_answered
def load_labelme(found: dict[str, Path], _: Callable[..., Bunch]) -> Bunch:
    """Load LabelMe: scenes of photographs, each answered by one to three crowd workers.

    For one photograph in nine nobody gave the true label. Put the files into the data home
    yourself.

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
        `class_names`, `answers` (`appellate.Answers` of 59 annotators), `votes` (1000, 8), the
        parts without answers as `X_valid`, `y_valid` (500) and `X_test`, `y_test` (1188),
        `description` and `filename`.

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
    path = found["labelme/answers.txt"]
    l = len(LABELME_CLASSES)
    table = _read_numbers(path, low=-1, high=l)
    parts: dict[str, NDArray[Any]] = {}
    for part in ("train", "valid", "test"):
        features = found[f"labelme/LabelMe_VGG_avg_{part}.npy"]
        truth = found[f"labelme/LabelMe_Z_{part}.txt"]
        X, y = _read_array(features), _read_numbers(truth, low=0, high=l).ravel()
        if len(X) != len(y):
            raise ValueError(
                f"'{features}' has {len(X)} rows, but '{truth}' {len(y)} labels. Have files been "
                "swapped?"
            )
        parts |= {f"X_{part}": X, f"y_{part}": y}
    X, y_true = parts.pop("X_train"), parts.pop("y_train")
    if len(table) != len(X):
        raise ValueError(f"'{path}' has {len(table)} rows, but there are {len(X)} features.")
    answers = as_answers(table, missing=-1, classes=np.arange(l))
    names = np.array(LABELME_CLASSES)
    return Bunch(
        X=X, y_true=y_true, class_names=names, answers=answers, filename=str(path), **parts
    )


@_answered
def load_cifar10n(found: dict[str, Path], images: Callable[..., Bunch]) -> Bunch:
    """Load CIFAR-10N: the CIFAR-10 training images, each labelled by three annotators.

    For one image in fifty none of the three labels is true. Put the file of labels into the data
    home yourself; the images are those of `load_cifar10`.

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
        and `answers` (three per row, of unknown annotators).

    Examples
    --------
    >>> from appellate.datasets import load_cifar10n
    >>> data = load_cifar10n()  # doctest: +SKIP
    >>> data.X.shape, data.candidates.shape  # doctest: +SKIP
    ((50000, 3072), (50000, 10))
    """
    path = found["cifar-10n/CIFAR-10N_train_labels.npz"]
    keys = ["random_label1", "random_label2", "random_label3", "clean_label"]
    with reading(path, "arrays"), path.open("rb") as file, np.load(file) as archive:
        missing = [key for key in keys if key not in archive]
        if missing:
            raise ValueError(f"it has no {', '.join(missing)}, but {', '.join(archive)}")
        columns = [archive[key] for key in keys]
    if len({column.shape for column in columns}) > 1 or columns[0].ndim != 1:
        raise ValueError(f"the arrays in '{path}' have different lengths; it is damaged.")
    table = np.stack(columns[:3], axis=1)
    if table.min() < 0 or table.max() > 9:
        raise ValueError(f"'{path}' has labels outside 0 .. 9; it is damaged.")
    data = images()
    if not np.array_equal(columns[3], data.y_true):
        raise ValueError(
            f"the true labels in '{path}' are not those of the images in '{data.filename}': "
            "one of the two is damaged, or not in the official order."
        )
    votes = np.stack([np.count_nonzero(table == j, axis=1) for j in range(10)], axis=1)
    return Bunch(**data | {"answers": as_answers(votes, layout="counts"), "filename": str(path)})


@_answered
def load_cifar10h(found: dict[str, Path], images: Callable[..., Bunch]) -> Bunch:
    """Load CIFAR-10H: the CIFAR-10 test images, each labelled by about 51 annotators.

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
        As that of ``load_cifar10(subset="test")``, and `candidates` (bool, (10000, 10)),
        `votes` (10000, 10) and `answers` (counts of unknown annotators).

    Examples
    --------
    >>> from appellate.datasets import load_cifar10h
    >>> data = load_cifar10h()  # doctest: +SKIP
    >>> data.X.shape, data.candidates.shape  # doctest: +SKIP
    ((10000, 3072), (10000, 10))
    """
    path = found["cifar-10h/cifar10h-counts.npy"]
    votes, data = _read_array(path), images(subset="test")
    if votes.shape != (len(data.X), 10):
        raise ValueError(
            f"'{path}' has shape {votes.shape}, not ({len(data.X)}, 10): it does not belong to "
            f"the images of '{data.filename}'."
        )
    return Bunch(**data | {"answers": as_answers(votes, layout="counts"), "filename": str(path)})


@_answered
def load_plcifar10(found: dict[str, Path], images: Callable[..., Bunch]) -> Bunch:
    """Load PLCIFAR10: the CIFAR-10 training images, with label sets of about ten annotators.

    The published file is a pickle. It is read without executing anything in it: dictionaries,
    lists and whole numbers are made, all else is refused.

    Parameters
    ----------
    rule : str, default="union"
        Which labels become candidates, see `appellate.as_candidates`. The two published sets are
        ``"aggregate"``, all labels that any annotator gave, as the union, and ``"vaguest"``, those
        of the annotator who gave most, the first of several.
    data_home, download_if_missing, return_X_candidates_y
        See `load_labelme`.

    Returns
    -------
    Bunch
        As that of `load_cifar10`, and `candidates`, `votes` (how many annotators gave the label)
        and `answers`, with the sets that were given.

    Examples
    --------
    >>> from appellate.datasets import load_plcifar10
    >>> data = load_plcifar10()  # doctest: +SKIP
    >>> data.answers.sizes.max()  # doctest: +SKIP
    """
    path, data = found["plcifar10/plcifar10.pkl"], images()
    lines = _named_sets(read_plain_pickle(path), len(data.X), path)
    answers = as_answers(lines, layout="long", classes=np.arange(10), items=range(len(data.X)))
    vaguest = np.zeros((len(data.X), 10), dtype=bool)
    for row, labels in sorted(lines, key=lambda line: len({*line[1]}), reverse=True):
        if not vaguest[row].any():
            vaguest[row, labels] = True
    rules = {"vaguest": vaguest, "aggregate": answers.votes() > 0}
    return Bunch(**data | {"answers": answers, "filename": str(path), "rules": rules})


def _named_sets(content: Any, n: int, path: Path) -> list[tuple[int, list[int]]]:
    """Return row and labels of every set that an annotator gave."""
    whole = isinstance(content, dict) and all(
        isinstance(key, int) and 0 <= key < n and isinstance(sets, list)
        for key, sets in content.items()
    )
    lines = [(key, named) for key in sorted(content) for named in content[key]] if whole else []
    if not lines or not all(
        isinstance(named, list) and all(isinstance(j, int) and 0 <= j < 10 for j in named)
        for _, named in lines
    ):
        raise ValueError(
            f"'{path}' is not a dictionary of {n} image numbers with lists of label lists; it is "
            "damaged or another file."
        )
    return [line for line in lines if line[1]]


class _PlainUnpickler(pickle.Unpickler):
    """Makes numbers, texts, lists, tuples and dictionaries, and calls nothing."""

    def find_class(self, module: str, name: str) -> Any:
        """Refuse whatever a pickle could call."""
        raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is not executed")


def read_plain_pickle(path: Path) -> Any:
    """Read a pickle that holds plain data only; one that could run code is refused.

    Raises
    ------
    ValueError
        If the pickle asks for anything but plain data, or is damaged.
    """
    with reading(path, "a pickle of plain lists and numbers"), path.open("rb") as file:
        return _PlainUnpickler(file).load()


@_answered
def load_music_genre(found: dict[str, Path], _: Callable[..., Bunch]) -> Bunch:
    """Load Music genre: 700 pieces of ten genres, answered by 44 annotators, with audio features.

    Parameters
    ----------
    rule, data_home, download_if_missing, return_X_candidates_y
        See `load_labelme`.

    Returns
    -------
    Bunch
        With `X` (700, 124), `answers`, `candidates`, `votes`, `y_true` (class numbers),
        `class_names`, `X_test`, `y_test`, `description` and `filename`.

    Examples
    --------
    >>> from appellate.datasets import load_music_genre
    >>> data = load_music_genre()  # doctest: +SKIP
    """
    start = "music_genre_classification/music_genre_"
    files = [found[f"{start}{part}.csv"] for part in ("gold", "mturk", "test")]
    return _read_tables(files, "id", "annotator", "class")


@_answered
def load_sentence_polarity(found: dict[str, Path], _: Callable[..., Bunch]) -> Bunch:
    """Load Sentence polarity: 5,000 sentences of film reviews, answered by 203 annotators.

    Features are topics of the sentences, as published.

    Parameters
    ----------
    rule, data_home, download_if_missing, return_X_candidates_y
        See `load_labelme`.

    Returns
    -------
    Bunch
        As that of `load_music_genre`, with 1,200 features and two classes.

    Examples
    --------
    >>> from appellate.datasets import load_sentence_polarity
    >>> data = load_sentence_polarity()  # doctest: +SKIP
    """
    names = "polarity_gold_lsa_topics", "mturk_answers", "polarity_test_lsa_topics"
    files = [found[f"sentiment_polarity/{name}.csv"] for name in names]
    return _read_tables(files, "Input.id", "WorkerId", "Answer.sent")


@_answered
def load_rte(found: dict[str, Path], _: Callable[..., Bunch]) -> Bunch:
    """Load RTE: does one sentence follow from another? 800 pairs, 164 annotators, no features.

    Parameters
    ----------
    rule, data_home, download_if_missing, return_X_candidates_y
        See `load_labelme`.

    Returns
    -------
    Bunch
        As that of `load_music_genre`, with `X` None and without a test part.

    Examples
    --------
    >>> from appellate.datasets import load_rte
    >>> data = load_rte()  # doctest: +SKIP
    """
    path = found["rte/rte.standardized.tsv"]
    lines = _read_columns(path, "orig_id", "!amt_worker_ids", "response", "gold")
    truth = dict(zip(lines["orig_id"], lines["gold"], strict=True))
    table = list(zip(lines["orig_id"], lines["response"], lines["!amt_worker_ids"], strict=True))
    answers = as_answers(table, layout="long", items=list(truth))
    return _crowd_bunch(None, answers, list(truth.values()), path)


def _read_tables(files: list[Path], *columns: str) -> Bunch:
    """Read a table of features and truth, one of answers and one to test on."""
    gold, said, test = files
    lines = _read_columns(said, *columns)
    item, person, label = (lines[title] for title in columns)
    parts = [_read_columns(path, "id", "class", features=True) for path in (gold, test)]
    table = list(zip(item, label, person, strict=True))
    answers = as_answers(table, layout="long", items=parts[0]["id"])
    data = _crowd_bunch(parts[0][""], answers, parts[0]["class"], gold)
    data.X_test, data.y_test = parts[1][""], _numbers(parts[1]["class"], data.class_names, test)
    return data


def _crowd_bunch(X: NDArray[Any] | None, answers: Answers, truth: list[str], path: Path) -> Bunch:
    names, y_true = answers.class_names, _numbers(truth, answers.class_names, path)
    answers = replace(answers, class_names=np.arange(len(names)))
    return Bunch(X=X, answers=answers, y_true=y_true, class_names=names, filename=str(path))


def _numbers(labels: Sequence[str], names: NDArray[Any], path: Path) -> NDArray[np.intp]:
    place = {name: j for j, name in enumerate(names.tolist())}
    strange = {repr(label) for label in labels if label not in place}
    if strange:
        raise ValueError(f"'{path}' has {naming('class', sorted(strange))} that nobody answered.")
    return np.array([place[label] for label in labels], dtype=np.intp)


def _read_columns(path: Path, *titles: str, features: bool = False) -> dict[str, Any]:
    """Read some columns of a table as text; with `features`, all others as numbers, as ""."""
    with reading(path, "a table of text"):
        columns = read_csv(path, "\t" if path.suffix == ".tsv" else ",")
    lacking = [repr(title) for title in titles if title not in columns]
    if lacking:
        raise ValueError(
            f"'{path}' has no {naming('column', lacking)}. It is damaged, or another file."
        )
    if not columns[titles[0]]:
        raise ValueError(f"'{path}' has no rows. It is damaged, or another file.")
    out: dict[str, Any] = {title: columns.pop(title) for title in titles}
    if features:
        with reading(path, "a table of numbers"):
            numbers = np.array([[float(cell) for cell in cells] for cells in columns.values()]).T
        out[""] = check_feature_matrix(numbers, f"'{path}'")
    return out


def _read_array(path: Path) -> NDArray[Any]:
    """Read a matrix of numbers from a .npy file, without executing anything in it."""
    with reading(path, "an array"):
        array = np.load(path, allow_pickle=False)
    return check_feature_matrix(array, f"'{path}'")


def _read_numbers(path: Path, *, low: int, high: int) -> NDArray[np.intp]:
    """Read a table of whole numbers from low to high - 1."""
    with reading(path, "a table of class numbers"):
        numbers = np.loadtxt(path, dtype=np.intp, ndmin=2)
    outside = np.flatnonzero(((numbers < low) | (numbers >= high)).any(axis=1))
    if outside.size:
        raise ValueError(
            f"'{path}' has numbers outside {low} .. {high - 1} in {name_rows(outside)}; it is "
            "damaged or another file."
        )
    return numbers
