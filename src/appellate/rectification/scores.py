"""What the labels of a run are worth, beside those that anybody could have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate.rectification.case import Case
from appellate.rectification.hearing import Hearing

_FIRST = {"jury": "first round", "plcp": "base alone", "testimony": "Dawid-Skene"}
_AUDITED = 20  # reviewed items drawn at random that make an honest accuracy


def score(
    case: Case,
    hearing: Hearing,
    columns: Mapping[str, list[Any]],
    before: Hearing | None,
    audited: NDArray[np.bool_] | None,
) -> dict[str, Any]:
    """Compare the labels with those of trivial rivals, and with the truth where it is known."""
    docket, n = hearing.docket, len(case)
    outcomes, counts = np.unique(columns["outcome"], return_counts=True)
    scores: dict[str, Any] = {
        "items": n,
        "contested": int((np.count_nonzero(case.sets.matrix, axis=1) > 1).sum()),
        "outcomes": dict(zip(outcomes.tolist(), counts.tolist(), strict=True)),
    }
    if case.method != "plcp":  # whose confidence is not calibrated
        sure = [1.0 if c is None else c for c in columns["appeal_confidence"]]
        scores["expected_wrong"] = round(n - float(np.sum(sure)), 1)
    rivals = _rivals(case, hearing)
    chosen = docket.appeal
    scores["differing"] = {
        name: int((shares[np.arange(n), np.minimum(chosen, shares.shape[1] - 1)] == 0).sum())
        for name, shares in rivals.items()
        if name != "random candidate"
    }
    scores["accuracy"] = _accuracies(case, hearing, rivals)
    scores["signal"] = informs(case, hearing)
    scores["audit"] = _audit(case, hearing, before, audited)
    if before is not None:
        others = np.ones(n, dtype=bool)
        others[list(hearing.reviewed)] = False
        one, two = (h.docket.class_names[h.docket.appeal] for h in (before, hearing))
        scores["moved"] = int((one != two)[others].sum())
    scores["notes"] = list(_warnings(case, scores))
    return scores


def _rivals(case: Case, hearing: Hearing) -> dict[str, NDArray[Any]]:
    """Return what everybody could do: labels of each item and the chance to take them, (n, l)."""
    votes = np.where(case.votes.any(axis=1, keepdims=True), case.votes, 1.0)

    def alike(chosen: NDArray[np.bool_]) -> NDArray[Any]:
        return np.asarray(chosen / np.count_nonzero(chosen, axis=1)[:, np.newaxis])

    found = {"random candidate": alike(votes > 0)}
    if case.has_answers:
        found["majority vote"] = alike(votes == votes.max(axis=1, keepdims=True))
        if case.method != "testimony":
            from appellate.testimony import crowd_posterior

            found["Dawid-Skene"] = np.eye(len(case.classes))[
                crowd_posterior(case.answers).argmax(axis=1)
            ]
    first = np.zeros((len(case), len(hearing.docket.class_names)))
    first[np.arange(len(case)), hearing.docket.verdict] = 1.0
    return found | {_FIRST[case.method]: first}


def _accuracies(
    case: Case, hearing: Hearing, rivals: Mapping[str, NDArray[Any]]
) -> dict[str, Any] | None:
    truth = case.labels.truth
    if truth is None:
        return None
    names = hearing.docket.class_names
    place = {name: j for j, name in enumerate(names.tolist())}
    known = np.array([t is not None for t in truth]) & ~hearing.excluded
    codes = np.array([place.get(t, -1) for t in truth])[known]
    if not known.any():
        return None
    scores: dict[str, Any] = {"items with truth": int(known.sum())}
    for name, shares in rivals.items():
        right = np.where((codes >= 0) & (codes < shares.shape[1]), codes, -1)
        padded = np.hstack([shares[known], np.zeros((len(right), 1))])
        scores[name] = round(float(padded[np.arange(len(right)), right].mean()), 4)
    reviewed = {i: label for i, (_, label) in hearing.reviewed.items()}
    final = names[hearing.docket.appeal].tolist()
    labels = [reviewed.get(i, label) for i, label in enumerate(final)]
    right = np.array([a == b for a, b in zip(labels, truth, strict=True)])[known]
    return scores | {"rectified": round(float(right.mean()), 4)}


def informs(case: Case, hearing: Hearing) -> bool | None:
    """Tell whether the features inform the labels; None where that is not known.

    Testimony asks whether they predict answers. The jury's honest output must give an item's own
    candidates more than it gives to those of any item, by two standard errors.
    """
    if case.uninformed:
        return False
    if case.X is None:
        return None
    classifier = hearing.classifier
    if case.method == "testimony":
        return bool(classifier.trust_ > 0)
    honest = getattr(classifier, "honest_output_", None)
    if honest is None:
        return None
    matrix = classifier.candidates_
    some = ~matrix.all(axis=1)
    size = matrix.sum(axis=1)
    chance = (honest @ matrix.mean(axis=0)) * size / size.mean()
    gain = ((honest * matrix).sum(axis=1) - chance)[some]
    return bool(len(gain) > 1 and gain.mean() > 2 * gain.std() / np.sqrt(len(gain)))


def _audit(
    case: Case, hearing: Hearing, before: Hearing | None, audited: NDArray[np.bool_] | None
) -> dict[str, Any] | None:
    """Return the share of labels that are right, by reviewed items that were drawn at random."""
    from appellate.testimony import share_interval

    if audited is None or before is None or audited.sum() < _AUDITED:
        return None
    if case.method == "testimony":
        return {n: round(float(v), 4) for n, v in hearing.classifier.audit_.items()}
    labels = before.docket.class_names[before.docket.appeal].tolist()
    reviewed = hearing.reviewed
    rows = np.flatnonzero(audited).tolist()
    right = sum(labels[i] == reviewed[i][1] for i in rows)
    low, high = share_interval(right, len(rows))
    found = {"rows": len(rows), "accuracy": right / len(rows), "low": low, "high": high}
    return {name: round(float(value), 4) for name, value in found.items()}


def _warnings(case: Case, scores: Mapping[str, Any]) -> Iterator[str]:
    if scores["signal"] is False:
        yield (
            "the features do not help to predict the answers: the labels are those of the people "
            "alone."
            if case.method == "testimony"
            else "the features do not inform the labels: they foretell held-out candidates no "
            "better than chance. The labels are those of the candidates alone, the most frequent "
            "of each row, little more than guesses; no model is left."
            if case.uninformed
            else "the features say no more of the labels than chance does: labels of rows with "
            "several candidates are little more than guesses."
        )
    accuracy = scores["accuracy"] or {}
    for name, value in accuracy.items():
        if name not in ("items with truth", "rectified") and value > accuracy["rectified"]:
            yield f"{name} is better here: {value:.3f} right, against {accuracy['rectified']:.3f}."


def summarize(settings: Mapping[str, Any], scores: Mapping[str, Any]) -> Iterator[str]:
    """Say what came out, line by line."""
    counts = ", ".join(f"{count} {name}" for name, count in scores["outcomes"].items())
    yield f"labels      {scores['items']} items by {settings['method']}: {counts}"
    if "expected_wrong" in scores:
        wrong = scores["expected_wrong"]
        yield f"            about {wrong:.0f} of them wrong, by their confidence"
    for name, count in scores["differing"].items():
        yield f"            {count} differ from: {name}"
    if "moved" in scores:
        yield f"decisions   {scores['moved']} other labels moved because of them"
    if scores["audit"]:
        audit = scores["audit"]
        yield (
            f"audit       {audit['accuracy']:.1%} of the labels are right ({audit['low']:.1%} to "
            f"{audit['high']:.1%}), by {audit['rows']:.0f} reviewed items drawn at random"
        )
    for name, value in (scores["accuracy"] or {}).items():
        if name != "items with truth":
            yield f"accuracy    {value:.3f} {name}"
    for note in scores["notes"]:
        yield f"note        {note}"
