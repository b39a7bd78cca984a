"""What a deep run has reached, as a dict for the run record and as text for the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from appellate.cli.errors import UserError
from appellate.metrics import accuracy, approximated_accuracy, covering_rate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from appellate.cli.deep_data import DeepData
    from appellate.deep.estimator import DeepClassifier

Record = dict[str, Any]
SMOKE_WARNING = "SMOKE RUN: few rows, a narrow network, few epochs. Its accuracy means nothing."
_HELD_OUT = ("covering_rate", "approximated_accuracy", "candidate_likelihood")


def measure(model: DeepClassifier, data: DeepData, folder: Path) -> Record:
    """Score a fitted model: test rows by every head, training rows, appeals.

    The model is that of the last epoch, or of the one that was selected without the truth;
    then the last epoch is scored too. No epoch is ever chosen by the test rows.
    """
    head = model.head if model.partner is not None else "base"
    selected = model.selection != "last"
    results: Record = {
        "epoch": model.best_epoch_,
        "n_epochs": model.n_iter_,
        "selected_by": model.selection if selected else None,
        "head": head,
        "test": None,
        "training": None,
        "candidates": _score_candidates(model),
        "held_out": _held_out(model),
    }
    if data.X_test is not None and data.test_truth is not None:
        results["test"] = score_heads(model, data.X_test, data.test_truth)
        if selected:
            last = load_last_epoch(folder)
            results["test_last_epoch"] = score_heads(last, data.X_test, data.test_truth)
    if data.truth is not None:
        results["training"] = _score_training(model, data.truth, head)
    return results


def score_heads(model: DeepClassifier, X: NDArray[Any], truth: NDArray[np.intp]) -> Record:
    """Accuracy of new rows by every network that can predict."""
    heads = model.predict_heads(X)
    scores = {name: accuracy(truth, p.argmax(axis=1)) for name, p in heads.items()}
    return {"rows": len(X), "accuracy": scores}


def score_other(model: DeepClassifier, data: DeepData) -> Record:
    """Score a model on data that it was not trained on: their test rows, or else all rows."""
    X, truth = (data.X, data.truth) if data.X_test is None else (data.X_test, data.test_truth)
    if truth is None:
        raise UserError("these data have no true labels to test on: y_test, or y_true.")
    names, own = data.class_names.astype(str).tolist(), model.classes_.astype(str).tolist()
    if sorted(names) == sorted(own):
        truth = np.array([own.index(name) for name in names])[truth]
    elif len(names) != len(own) or data.class_names.dtype.kind not in "iu":
        raise UserError(f"these data have the classes {_some(names)}, the model {_some(own)}.")
    return {"head": model.head, "test": score_heads(model, X, truth)}


def load_last_epoch(folder: Path) -> DeepClassifier:
    """Return the model with the networks of its last epoch, which the checkpoint holds."""
    from appellate.deep.checkpoint import load_tree
    from appellate.deep.files import load_model
    from appellate.deep.runs import CHECKPOINT

    model = load_model(folder / "model.safetensors")
    state = model._method.state_dict()
    last = load_tree(folder / CHECKPOINT)["trainer"]["method"]
    same = {k: v for k, v in last.items() if k in state and v.shape == state[k].shape}
    model._method.load_state_dict({**state, **same})
    return model


def _score_training(model: DeepClassifier, truth: NDArray[np.intp], head: str) -> Record:
    """Labels of the training rows before and after the appeal, against the truth."""
    verdict, appeal = model.label_history_
    before, after = verdict == truth, appeal == truth
    scores = {"base": float(before.mean()), head: float(after.mean())}
    return {
        "rows": len(truth),
        "accuracy": scores,
        "appeals": {
            "overturned": int(np.count_nonzero(verdict != appeal)),
            "corrected": int(np.count_nonzero(~before & after)),
            "broken": int(np.count_nonzero(before & ~after)),
            "wrong_verdicts": int(np.count_nonzero(~before)),
            "right_verdicts": int(np.count_nonzero(before)),
        },
    }


def _score_candidates(model: DeepClassifier) -> Record:
    """Scores of the training rows that need no truth."""
    output, candidates = model.training_output_, model.candidates_
    names = np.arange(candidates.shape[1])
    return {
        "covering_rate": covering_rate(candidates, output.argmax(axis=1), classes=names),
        "approximated_accuracy": approximated_accuracy(candidates, output, classes=names),
    }


def _held_out(model: DeepClassifier) -> Record | None:
    """Scores, of the epoch that was kept, of rows that were not trained on."""
    record = model.history_[model.best_epoch_ - 1]
    return {name: record[name] for name in _HELD_OUT if name in record} or None


def describe(record: Record) -> list[str]:
    """Say the results of a finished run in a few lines."""
    results = record["results"]
    epoch = f"epoch {results['epoch']} of {results['n_epochs']}"
    if results["selected_by"]:
        epoch += f", selected by {results['selected_by']} without the truth"
    lines = [SMOKE_WARNING] if record["smoke"] else []
    if results["test"] is None:
        lines.append("test accuracy: no test rows with labels in the data")
    else:
        lines += _accuracies(f"test accuracy, {epoch}", results["test"], results["head"])
    if "test_last_epoch" in results:
        lines += _accuracies("test accuracy, last epoch", results["test_last_epoch"], "")
    lines += _paper(record)
    training = results["training"]
    if training is None:
        lines.append("training rows: no true labels in the data, so no accuracy and no appeals")
    else:
        lines += _accuracies("labels of the training rows", training, results["head"])
        if record["settings"]["partner"] is not None:
            lines.append(_appeals(training["appeals"]))
    lines.append(_without_truth("training rows", results["candidates"]))
    if results["held_out"]:
        lines.append(_without_truth("held-out rows", results["held_out"]))
    return lines


def describe_other(record: Record, name: str) -> list[str]:
    """Say how a model does on other data than its own."""
    results = record["results"]
    return _accuracies(f"accuracy on {name}", results["test"], results["head"])


def _accuracies(heading: str, scores: Record, head: str) -> list[str]:
    lines = [f"{heading}, {scores['rows']} rows:"]
    for name, value in scores["accuracy"].items():
        mark = "  (predicts)" if name == head and len(scores["accuracy"]) > 1 else ""
        lines.append(f"  {name:<8} {100 * value:6.2f} %{mark}")
    return lines


def _paper(record: Record) -> list[str]:
    paper = record["paper"]
    if paper is None:
        return []
    lines = [f"  paper    {paper['mean']:6.2f} ± {paper['deviation']:.2f} %, mean of five runs"]
    if record["changes"]:
        lines.append(f"           not comparable, this run has {'; '.join(record['changes'])}")
    return lines


def _appeals(appeals: Record) -> str:
    wrong, right = appeals["wrong_verdicts"], appeals["right_verdicts"]
    return (
        f"appeals: {appeals['overturned']} overturned; corrected {appeals['corrected']} of "
        f"{wrong} wrong verdicts, broke {appeals['broken']} of {right} right ones"
    )


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _without_truth(rows: str, scores: Record) -> str:
    return (
        f"without the truth, {rows}: covering rate {scores['covering_rate']:.1%}, "
        f"approximated accuracy {scores['approximated_accuracy']:.1%}"
    )
