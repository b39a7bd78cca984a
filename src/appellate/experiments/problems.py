"""The data sets of the paper, scaled as it scaled them, and a user's own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate.candidates import Answers, as_answers
from appellate.datasets.catalogue import known_datasets
from appellate.datasets.home import resolve, simplify
from appellate.datasets.matfiles import read_mat


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set as experiments use it.

    Attributes
    ----------
    name, title : str
        Short name, and the one to print.
    X : ndarray, shape (n, q), or data frame
        Features, scaled if the data set's authors did so; or columns of a table, encoded by
        the training rows of each split.
    candidates : ndarray of bool, shape (n, l)
        Candidate sets.
    truth : ndarray of int, shape (n,), or None
        Column of each true label, -1 if it is not known; None if none is.
    tolerances : tuple of int
        Differences of ordered labels that count as right in further scores.
    standardize : bool
        Shift and scale every feature by the training rows of each split.
    text : tuple of str
        Text columns of a data frame.
    answers : Answers or None
        Annotators' answers, if the candidates are made from them.
    """

    name: str
    title: str
    X: Any
    candidates: NDArray[np.bool_]
    truth: NDArray[np.intp] | None
    tolerances: tuple[int, ...] = ()
    standardize: bool = False
    text: tuple[str, ...] = ()
    answers: Answers | None = None

    def features(
        self, train: NDArray[np.intp], test: NDArray[np.intp]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the features of training and test rows, encoded or scaled by the former."""
        if not isinstance(self.X, np.ndarray):
            from appellate.tables import make_encoder

            frame = self.X.iloc[train].reset_index(drop=True)
            encoder = make_encoder(frame, text=self.text)
            numbers = encoder.fit_transform(frame)
            return numbers, encoder.transform(self.X.iloc[test].reset_index(drop=True))
        X, X_test = self.X[train], self.X[test]
        if not self.standardize:
            return X, X_test
        return standardize(X, by=X), standardize(X_test, by=X)

    def fingerprint(self) -> str:
        """Hash of features, candidates and truth, in hexadecimal."""
        digest = hashlib.sha256()
        frame = not isinstance(self.X, np.ndarray)
        for name in self.X if frame else ():
            column = self.X[name].to_numpy()
            column = column if column.dtype.kind in "fM" else column.astype(str)
            digest.update(f"{name}\0{column.dtype.kind}".encode() + column.tobytes())
        for array in (None if frame else self.X, self.candidates, self.truth):
            if array is not None:
                digest.update(f"{array.dtype.str}{array.shape}".encode())
                digest.update(np.ascontiguousarray(array).tobytes())
        if self.answers is not None:
            said = self.answers.rows, self.answers.people, self.answers.labels
            digest.update(b"".join(np.ascontiguousarray(part).tobytes() for part in said))
        digest.update(repr((self.tolerances, self.standardize, *self.text)).encode())
        return digest.hexdigest()


@dataclass(frozen=True)
class Recipe:
    """What is made of a data set for the experiments.

    Attributes
    ----------
    title : str
        To print.
    standardize : bool
        Z-score every feature over all rows.
    tolerances : tuple of int
        As `Problem.tolerances`.
    source : str
        The data set that is loaded, if it has another name.
    hidden : mapping or None
        Options that make candidate sets for 2,000 images.
    """

    title: str
    standardize: bool = False
    tolerances: tuple[int, ...] = ()
    source: str = ""
    hidden: Mapping[str, Any] | None = None


def _fashion(title: str, **hidden: Any) -> Recipe:
    return Recipe(title, source="fashion_mnist", hidden=hidden)


# The paper's. As in the authors' data, Lost is z-scored over all rows; FG-NET is shipped so.
DATASETS = {
    "fgnet": Recipe("FG-NET", tolerances=(3, 5)),
    "lost": Recipe("Lost", standardize=True),
    "msrcv2": Recipe("MSRCv2"),
    "mirflickr": Recipe("Mirflickr"),
    "soccer_player": Recipe("Soccer Player"),
    "yahoo_news": Recipe("Yahoo!News"),
}
# Further sets of the table of rivals.
FURTHER = {
    "birdsong": Recipe("BirdSong"),
    "labelme": Recipe("LabelMe"),
    "music_genre": Recipe("Music", standardize=True),
    "fashion_uniform": _fashion("Fashion, uniform", strategy="uniform", flip_probability=0.5),
    "fashion_instance": _fashion("Fashion, instance-dependent", strategy="instance_dependent"),
    "fashion_set_first": _fashion("Fashion, set-first", strategy="set_first"),
}
# Lost without scaling, as the authors' PL-AGGD and PLCP have it; their PL-CL z-scores it.
RAW = {"lost_raw": Recipe("Lost (as it stands)", source="lost")}
_FASHION_ROWS = 2000


class UnavailableError(OSError):
    """A data set that is not there; the message says why and where to get it."""


def load_problem(name: str) -> Dataset:
    """Load one of the paper's data sets from the data home, as the paper prepared it.

    Parameters
    ----------
    name : str
        A key of `DATASETS`, `FURTHER` or `RAW`.

    Raises
    ------
    UnavailableError
        If its file is missing or cannot be read. Nothing is downloaded.
    """
    from appellate import datasets

    known = (DATASETS | FURTHER | RAW)[name]
    try:
        data = getattr(datasets, f"load_{known.source or name}")(download_if_missing=False)
        if known.hidden is not None:  # the same pictures and sets for every split
            rows = np.random.default_rng(0).choice(len(data.X), _FASHION_ROWS, replace=False)
            X = data.X[rows] / 255.0
            truth = data.y_true[rows]
            options = dict(known.hidden)
            if options["strategy"] == "instance_dependent":
                options["X"] = X
            options |= {"classes": list(range(10)), "random_state": 0}
            sets = datasets.make_partial_labels(truth, **options)
            return Dataset(name, known.title, X, sets, truth)
    except (OSError, ValueError, ImportError) as error:
        raise UnavailableError(str(error).replace("data_home= or ", "")) from error
    X, answers = np.asarray(data.X, dtype=np.float64), data.get("answers")
    candidates = np.asarray(data.candidates, dtype=bool)
    answered = candidates.any(axis=1)
    return Dataset(
        name=name,
        title=known.title,
        X=(standardize(X, by=X) if known.standardize else X)[answered],
        candidates=candidates[answered],
        truth=np.asarray(data.y_true, dtype=np.intp)[answered],
        tolerances=known.tolerances,
        answers=None if answers is None else answers[answered],
    )


def standardize(X: NDArray[Any], by: NDArray[Any]) -> NDArray[Any]:
    """Shift and scale every feature by the mean and deviation (ddof 1) of some rows."""
    deviation = by.std(axis=0, ddof=min(1, len(by) - 1))
    return np.asarray((X - by.mean(axis=0)) / np.where(deviation > 0, deviation, 1))


def load_problems(names: list[str]) -> tuple[dict[str, Dataset], dict[str, str]]:
    """Load the available data sets; return them, and the reason for each missing one."""
    found, missing = {}, {}
    for name in names:
        try:
            found[name] = load_problem(name)
        except UnavailableError as error:
            missing[name] = str(error)
    return found, missing


def load_own(source: str, *, scale: bool = True, **options: Any) -> Dataset:
    """Load a user's data: a table, a ``.mat`` file, or the name of one of the paper's data sets.

    Parameters
    ----------
    source : str
        What `appellate.datasets.load_partial_csv` takes, a ``.mat`` file, or a name.
    scale : bool, default=True
        Standardise the features by the training rows of every split; those of a table are
        encoded as by `appellate.rectify`. Without it they must be numbers, and none missing.
    **options
        Columns of a table, see `appellate.tables.find_roles`; or variables of a ``.mat`` file.

    Raises
    ------
    ValueError, OSError
        If the data do not exist or cannot be learned from, or columns are named for a data set.
    """
    from appellate import datasets

    path = Path(source)
    if path.suffix.lower() == ".mat":
        strange = options.keys() - {"features", "candidates", "truth"}
        if strange:
            raise ValueError(f"{min(strange)} is for tables, but '{source}' is none.")
        one: Any = {k: ",".join([v] if isinstance(v, str) else v) for k, v in options.items()}
        if "truth" not in one and "target" not in read_mat(path):
            one["truth"] = None
        data = datasets.load_partial_mat(path, noisy=True, **one)
        X = np.asarray(data.X, dtype=np.float64)
        truth = data.y_true
        return Dataset(path.stem, path.stem, X, data.candidates, truth, standardize=scale)
    if source == "-" or path.exists() or path.suffix or len(path.parts) > 1:
        data = datasets.load_partial_csv(source, **options)
        X = data.frame if scale else data.X
        if not scale and (not isinstance(X, np.ndarray) or np.isnan(X).any()):
            raise ValueError(
                "features can be left as they are only if all are numbers and none is missing. "
                "Leave out --no-scaling, or name the features."
            )
        truth = data.y_true if data.y_true is not None and (data.y_true >= 0).any() else None
        told = data.roles.annotators or data.roles.long or data.roles.counts
        answers = as_answers(data.counts, layout="counts") if told else None
        named = (path.stem, path.stem)
        return Dataset(*named, X, data.candidates, truth, text=data.text, answers=answers)
    if simplify(source) in {simplify(name) for name in known_datasets().keys() - DATASETS.keys()}:
        raise ValueError(
            f"'{source}' cannot be compared by its name. Give a table, a .mat file, or one of "
            f"the paper's data sets: {', '.join(DATASETS)}."
        )
    name = resolve(source, list(DATASETS), "data set")
    if options:
        raise ValueError(
            f"the data set '{name}' already has its columns, so {' and '.join(options)} cannot be "
            "named. They are for files."
        )
    return load_problem(name)
