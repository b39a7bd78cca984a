"""The protocol: how rows are split, what one run does and what it measures."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from appellate.experiments.controls import graph_confidence, luck
from appellate.experiments.methods import Method
from appellate.experiments.problems import Problem
from appellate.experiments.traces import representative_errors
from appellate.metrics import approximated_accuracy, broken_ratio, correction_ratio, covering_rate

SCHEMA = 1  # of the scores: raised when a score changes its meaning


@dataclass(frozen=True)
class Run:
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

        `version` stands for this package's code; that of a third party's base is added.
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
        where none was wrong) is left out. ``name@3`` allows ordered labels a difference of 3.
    details : dict or None
        Examples, where the method is traced.
    fit_seconds, predict_seconds : float
        Processor times: other jobs beside the run do not count.
    memory : float or None
        Largest resident memory so far of the process that computed it, in MB.
    error : str or None
        Why there are no scores.
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


def execute(run: Run, problem: Problem) -> Outcome:
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


def _execute(run: Run, problem: Problem) -> Outcome:
    train, test = split_rows(len(problem.X), run.split)
    candidates = problem.candidates[train]
    truth = None if problem.truth is None else problem.truth[train]
    X, X_test = problem.features(train, test)
    model = run.method.build(run.seed, len(train))
    if run.method.kind in ("majority", "testimony") and problem.answers is None:
        raise ValueError("there are candidates, but no answers of people.")
    if problem.answers is not None and run.method.kind == "majority":
        votes = problem.answers[train].votes()
        candidates = votes == votes.max(axis=1, keepdims=True)  # of several, a random one
    if model is None:
        return Outcome(_luck_scores(run.method, candidates, truth, problem.tolerances))
    if run.method.trace:
        model.set_params(keep_confidences=True)
    start = time.process_time()
    y: Any = problem.answers[train] if run.method.kind == "testimony" else candidates  # type: ignore[index]
    supervision = {}
    if run.method.start == "graph":
        supervision = {"supervision": graph_confidence(X, candidates)}
    model.fit(X, y, **supervision)
    fitted = time.process_time()
    predicted = _predict(model, X_test)
    done = time.process_time()

    scores = _free_scores(model, X_test, problem.candidates[test], predicted)
    details = None
    if truth is not None and problem.truth is not None:
        verdict = _unmasked_verdict(run, X, candidates)
        for tolerance in (0, *problem.tolerances):
            scores |= _true_scores(
                model, candidates, truth, predicted, problem.truth[test], verdict, tolerance
            )
        if run.method.trace:
            details = representative_errors(model, truth, train)
    kept = {name: value for name, value in scores.items() if value == value}
    return Outcome(kept, details, fitted - start, done - fitted, peak_memory())


def _predict(model: Any, X: NDArray[Any]) -> NDArray[np.intp]:
    """Columns of the predicted labels, whoever wrote the classifier."""
    if hasattr(model, "predict"):
        return np.asarray(model.predict(X)).astype(np.intp)
    return np.argmax(model.predict_proba(X), axis=1)


def _transduce(model: Any, candidates: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Label of every training row: the best of its candidates."""
    if hasattr(model, "transduction_"):
        return np.asarray(model.transduction_).astype(np.intp)
    return np.argmax(np.where(candidates, model.training_output_, -np.inf), axis=1)


def _unmasked_verdict(
    run: Run, X: NDArray[Any], candidates: NDArray[np.bool_]
) -> NDArray[np.intp] | None:
    """Best of all labels by the base alone, for PLCP as the paper sets it."""
    if run.method.kind != "plcp" or run.method.settings or run.method.start != "own":
        return None
    base = replace(run.method, kind="base").build(run.seed, len(X))
    return np.argmax(base.fit(X, candidates).training_output_, axis=1)


def _true_scores(
    model: Any,
    candidates: NDArray[np.bool_],
    truth: NDArray[np.intp],
    predicted: NDArray[np.intp],
    expected: NDArray[np.intp],
    unmasked_verdict: NDArray[np.intp] | None,
    tolerance: int,
) -> dict[str, float]:
    """Scores of rows whose truth is known, labels within the tolerance counting as right.

    "unmasked" takes the best of all labels of a training row, candidate or not.
    """
    known, tested = truth >= 0, expected >= 0
    if not known.any() or not tested.any():
        raise ValueError("training or test rows of this split are all without truth.")

    def is_right(labels: NDArray[np.intp]) -> NDArray[np.bool_]:
        return (np.abs(labels - truth) <= tolerance)[known]

    right = is_right(_transduce(model, candidates))
    unmasked = is_right(np.argmax(model.training_output_, axis=1))
    scores = {
        "test": float(np.mean((np.abs(predicted - expected) <= tolerance)[tested])),
        "transductive": float(right.mean()),
        "unmasked": float(unmasked.mean()),
    }
    if hasattr(model, "verdict_"):
        before = is_right(np.asarray(model.verdict_).astype(np.intp))
        everywhere = np.ones(len(right), dtype=bool)
        scores["corrected"] = correction_ratio(everywhere, before, right)
        scores["broken"] = broken_ratio(everywhere, before, right)
        if unmasked_verdict is not None:
            before = is_right(unmasked_verdict)
            scores["corrected unmasked"] = correction_ratio(everywhere, before, unmasked)
            scores["broken unmasked"] = broken_ratio(everywhere, before, unmasked)
    suffix = f"@{tolerance}" if tolerance else ""
    return {f"{name}{suffix}": value for name, value in scores.items()}


def _free_scores(
    model: Any, X: NDArray[Any], candidates: NDArray[np.bool_], predicted: NDArray[np.intp]
) -> dict[str, float]:
    """Scores of test rows that need no truth, and the share of tied training rows."""
    scores = {"covering": covering_rate(candidates, predicted)}
    if hasattr(model, "predict_proba"):
        scores["approximated"] = approximated_accuracy(candidates, model.predict_proba(X))
    if hasattr(model, "n_ties_"):
        scores["ties"] = model.n_ties_ / len(model.training_output_)
    return scores


def _luck_scores(
    method: Method,
    candidates: NDArray[np.bool_],
    truth: NDArray[np.intp] | None,
    tolerances: tuple[int, ...],
) -> dict[str, float]:
    if truth is None or not (truth >= 0).any():
        return {}
    lowest, known = method.kind == "lowest", truth >= 0
    return {
        f"transductive{f'@{t}' if t else ''}": luck(
            candidates[known], truth[known], t, lowest=lowest
        )
        for t in (0, *tolerances)
    }


def peak_memory() -> float | None:
    """Largest resident memory of this process so far, in MB; None where it is not known."""
    try:
        import resource
    except ImportError:  # pragma: no cover  # Windows
        return None
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
