"""The protocol: how rows are split, what one run does and what it measures."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from dataclasses import dataclass, field, replace
from pkgutil import resolve_name
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from appellate.experiments.controls import graph_confidence, luck
from appellate.experiments.methods import Method
from appellate.experiments.problems import Dataset
from appellate.metrics import approximated_accuracy, broken_ratio, correction_ratio, covering_rate

SCHEMA = 1  # of the scores: raised when a score changes its meaning


@dataclass(frozen=True)
class Trial:
    """One cell of an experiment.

    Attributes
    ----------
    dataset : str
        Name of the problem.
    method : Method
        The classifier with its settings.
    split : int
        Number of the split: the seed of its permutation.
    seed : int
        Random state of the classifier.
    """

    dataset: str
    method: Method
    split: int
    seed: int

    def __str__(self) -> str:
        """Name the run."""
        return f"{self.method.title} on {self.dataset}, split {self.split}"

    def config(self) -> dict[str, Any]:
        """All that decides the result apart from data and code, as plain data."""
        return {
            "dataset": self.dataset,
            "method": self.method.config(),
            "split": self.split,
            "seed": self.seed,
        }

    def key(self, fingerprint: str, version: str) -> str:
        """Hash of the configuration, the data, the code and the scores' schema.

        `version` is the hash of this package's code; that of a third-party base is added.
        """
        document = self.config() | {
            "data": fingerprint,
            "version": version,
            "base_code": self.method.base_code(),
            "schema": SCHEMA,
        }
        text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Outcome:
    """What a run found.

    Attributes
    ----------
    scores : dict of str to float
        Shares in [0, 1]; a score that does not exist (such as the share of corrected samples
        if none was wrong) is left out. ``name@3`` allows ordered labels a difference of 3.
    details : dict or None
        What the method's `details` recorded.
    fit_seconds, predict_seconds : float
        CPU seconds: other jobs do not count.
    memory : float or None
        Largest resident memory so far of the process that computed it, in MB.
    error : str or None
        Why the run has no scores.
    """

    scores: dict[str, float] = field(default_factory=dict)
    details: dict[str, Any] | None = None
    fit_seconds: float = 0.0
    predict_seconds: float = 0.0
    memory: float | None = None
    error: str | None = None


def split_rows(n: int, split: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the sorted training and test rows of a 50/50 split.

    Examples
    --------
    >>> train, test = split_rows(5, 0)
    >>> train, test
    (array([0, 2]), array([1, 3, 4]))
    """
    order = np.random.RandomState(split).permutation(n)
    return np.sort(order[: n // 2]), np.sort(order[n // 2 :])


def execute(run: Trial, problem: Dataset) -> Outcome:
    """Train on half of the rows, test on the other, on one thread; never raise.

    An exception of the method becomes the `error` of the outcome, so that one impossible
    pair of data set and method does not end all the others.
    """
    try:
        if run.method.kind == "deep":
            import appellate.deep.settings  # noqa: F401  # torch: what is loaded can be limited
        with threadpool_limits(limits=1):
            return _execute(run, problem)
    except Exception as error:
        return Outcome(error=f"{type(error).__name__}: {error}")


def _execute(run: Trial, problem: Dataset) -> Outcome:
    method, answers = run.method, problem.answers
    train, test = split_rows(len(problem.X), run.split)
    candidates = problem.candidates[train]
    truth = None if problem.truth is None else problem.truth[train]
    X, X_test = problem.features(train, test)
    model = method.build(run.seed, len(train))
    if method.kind in ("majority", "testimony") and answers is None:
        raise ValueError("there are candidates, but no annotators' answers.")
    if answers is not None and method.kind == "majority":
        votes = answers[train].votes()
        candidates = votes == votes.max(axis=1, keepdims=True)  # of several, a random one
    if model is None:
        if truth is None or not (known := truth >= 0).any():
            return Outcome()
        sets = candidates[known]
        labels = truth[known]
        lowest = method.kind == "lowest"
        tolerances = (0, *problem.tolerances)
        return Outcome(
            {within("transductive", t): luck(sets, labels, t, lowest=lowest) for t in tolerances}
        )
    if method.details:
        model.set_params(keep_confidences=True)
    start = time.process_time()
    y: Any = answers[train] if answers is not None and method.kind == "testimony" else candidates
    supervision = {}
    if method.start == "graph":
        supervision = {"supervision": graph_confidence(X, candidates)}
    model.fit(X, y, **supervision)
    fitted = time.process_time()
    if hasattr(model, "predict"):
        predicted = np.asarray(model.predict(X_test)).astype(np.intp)
    else:  # whoever wrote the classifier
        predicted = np.argmax(model.predict_proba(X_test), axis=1)
    done = time.process_time()

    scores = {"covering": covering_rate(problem.candidates[test], predicted)}
    if hasattr(model, "predict_proba"):
        chances = model.predict_proba(X_test)
        scores["approximated"] = approximated_accuracy(problem.candidates[test], chances)
    if hasattr(model, "n_ties_"):
        scores["ties"] = model.n_ties_ / len(model.training_output_)
    details = None
    if truth is not None and problem.truth is not None:
        scores |= _true_scores(run, problem, problem.truth, model, X, predicted)
        if method.details:
            details = resolve_name(method.details)(model, truth, train)
    kept = {name: value for name, value in scores.items() if value == value}
    return Outcome(kept, details, fitted - start, done - fitted, peak_memory())


def _true_scores(
    run: Trial,
    problem: Dataset,
    truth: NDArray[np.intp],
    model: Any,
    X: NDArray[Any],
    predicted: NDArray[np.intp],
) -> dict[str, float]:
    """Scores of rows whose truth is known, labels within each tolerance counting as right.

    "unmasked" takes the best of all labels of a training row, candidate or not; the first
    label is then that of the base alone, for PLCP with the paper's settings.
    """
    train, test = split_rows(len(problem.X), run.split)
    candidates, known = problem.candidates[train], train[truth[train] >= 0]
    if not len(known) or not (truth[test] >= 0).any():
        raise ValueError("no training row or no test row of this split has a true label.")
    unmasked = np.argmax(model.training_output_, axis=1)
    if hasattr(model, "transduction_"):
        labels = np.asarray(model.transduction_).astype(np.intp)
    else:
        labels = np.argmax(np.where(candidates, model.training_output_, -np.inf), axis=1)
    appeals = {}  # labels before and after
    if hasattr(model, "verdict_"):
        appeals[""] = np.asarray(model.verdict_).astype(np.intp), labels
    if run.method.kind == "plcp" and not run.method.settings and run.method.start == "own":
        base = replace(run.method, kind="base").build(run.seed, len(X))
        verdict = np.argmax(base.fit(X, candidates).training_output_, axis=1)
        appeals[" unmasked"] = verdict, unmasked

    def right(labels: NDArray[np.intp], rows: NDArray[np.intp], most: int) -> NDArray[np.bool_]:
        return (np.abs(labels - truth[rows]) <= most)[truth[rows] >= 0]

    scores: dict[str, float] = {}
    everywhere = np.ones(len(known), dtype=bool)
    for tolerance in (0, *problem.tolerances):
        found = {
            "test": float(right(predicted, test, tolerance).mean()),
            "transductive": float(right(labels, train, tolerance).mean()),
            "unmasked": float(right(unmasked, train, tolerance).mean()),
        }
        for which, pair in appeals.items():
            before, after = (right(each, train, tolerance) for each in pair)
            found[f"corrected{which}"] = correction_ratio(everywhere, before, after)
            found[f"broken{which}"] = broken_ratio(everywhere, before, after)
        scores |= {within(name, tolerance): value for name, value in found.items()}
    return scores


def within(score: str, tolerance: int) -> str:
    """Name of a score that allows ordered labels a difference."""
    return f"{score}@{tolerance}" if tolerance else score


def peak_memory() -> float | None:
    """Largest resident memory of this process so far, in MB; None if it is not known."""
    try:
        import resource
    except ImportError:  # pragma: no cover  # Windows
        return None
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
