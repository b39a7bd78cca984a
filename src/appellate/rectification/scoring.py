"""What labels are worth: baselines, expected errors, accuracy; and which items to review first."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from appellate.core.problem import landmarks_told
from appellate.evidence.ambiguity import describe
from appellate.methods.testimony import crowd_posterior
from appellate.methods.testimony.people import share_interval
from appellate.rectification.decisions import Review, confidence_of
from appellate.rectification.fitting import FittedLabels
from appellate.review.decisions import say_skipped
from appellate.tables.encoding import column_places, contributions

SUGGESTED = 100  # items that a page and a folder suggest
_AUDIT = 5  # every fifth of them is drawn at random
_AUDITED = 20  # reviewed items drawn at random from which on their accuracy is reported
#: What gives the first labels, by method.
FIRST = {"jury": "first round", "plcp": "base alone", "testimony": "Dawid-Skene"}
RANDOM_CANDIDATE = "random candidate"
RECTIFIED = "rectified"
N_TRUE = "items with truth"


# -- which items to review ----------------------------------------------------------------


def suggest(fitted: FittedLabels, most: int) -> tuple[list[int], list[str]]:
    """Order the items whose review would help most, and say why: "doubt" or "audit".

    Every fifth item is drawn at random instead (an audit). An item counts for its own doubt and
    for the doubt of those that have it among their nearest neighbours. Neighbours of a chosen
    item count half from then on.
    """
    docket, near = fitted.docket, fitted.neighbors
    testimony = fitted.prepared.method == "testimony"
    doubt = 1.0 - (confidence_of(docket) if testimony else docket.margin)
    doubt[list(fitted.reviewed)] = 0.0
    score = np.array(doubt, dtype=np.float64)
    if near is not None and near.shape[1]:
        influence = np.zeros(len(doubt))
        np.add.at(influence, near, np.broadcast_to(doubt[:, np.newaxis], near.shape))
        score *= 1 + influence / near.shape[1]
    drawn = fitted.drawn
    rows: list[int] = []
    why: list[str] = []
    while len(rows) < min(most, len(drawn)):
        best = int(score.argmax())
        random = (len(rows) + 1) % _AUDIT == 0 or score[best] <= 0
        row = next(i for i in drawn if i not in rows) if random else best
        rows.append(row)
        why.append("audit" if random else "doubt")
        score[row] = 0.0
        if near is not None and not random:
            score[near[row]] *= 0.5
    return rows, why


def sample(fitted: FittedLabels, rows: Sequence[int], why: Sequence[str]) -> list[int]:
    """Return the items drawn at random for suggestions, including those that doubt chose too.

    Without the latter the sample would lack the items that are most in doubt.
    """
    chosen = {i for i, each in zip(rows, why, strict=True) if each == "audit"}
    drawn = fitted.drawn
    last = max((place for place, i in enumerate(drawn) if i in chosen), default=-1)
    return drawn[: last + 1]


# -- scores -------------------------------------------------------------------------------


def score(fitted: FittedLabels) -> dict[str, Any]:
    """Compare the labels with those of baselines, and with the true labels if there are some."""
    prepared, docket = fitted.prepared, fitted.docket
    columns = fitted.columns
    n, review = len(prepared.names), fitted.review
    outcomes, counts = np.unique(columns["outcome"], return_counts=True)
    scores: dict[str, Any] = {
        "items": n,
        "contested": int((np.count_nonzero(prepared.sets.matrix, axis=1) > 1).sum()),
        "outcomes": dict(zip(outcomes.tolist(), counts.tolist(), strict=True)),
    }
    if prepared.method != "plcp":  # its confidence is not calibrated
        sure = [1.0 if c is None else c for c in columns["confidence"]]
        scores["expected_wrong"] = round(n - float(np.sum(sure)), 1)
    unchanged = np.array([outcome == "unchanged" for outcome in columns["outcome"]])
    scores["single"] = int((unchanged & ~docket.contested).sum())
    scores["first"] = FIRST[prepared.method] if fitted.has_first_labels else None
    answered: NDArray[np.bool_] = np.count_nonzero(prepared.votes, axis=1) > 0
    baselines = _find_baselines(fitted)
    scores["differing"] = {
        name: int((chances[np.arange(n), docket.appeal] == 0)[answered].sum())
        for name, chances in baselines.items()
        if name != RANDOM_CANDIDATE
    }
    scores["accuracy"] = _find_accuracy(fitted, baselines, answered)
    scores |= {"signal": fitted.signal, "audit": None}
    scores["unanswered"] = None if answered.all() else _score_unanswered(fitted, ~answered)
    if review is not None:
        if np.count_nonzero(review.audited) >= _AUDITED:
            scores["audit"] = _find_audit(fitted, review)
        others = np.ones(n, dtype=bool)
        others[list(fitted.reviewed)] = False
        after = docket.class_names[docket.appeal]
        scores["moved"] = int((review.before != after)[others].sum())
    made = fitted.classifier
    if hasattr(made, "ambiguity_"):  # a jury, or PLCP with one
        scores["found"] = describe(made.ambiguity_, made.resemblance_, made.order_width_)
    scores["notes"] = list(_notes(fitted, scores["accuracy"] or {}))
    return scores


def _find_baselines(fitted: FittedLabels) -> dict[str, NDArray[Any]]:
    """Return what simpler methods would do: the probability of each label, (n, l + 1), by name.

    The last column is for labels that the docket does not have.
    """
    prepared, docket = fitted.prepared, fitted.docket
    votes = np.where(prepared.votes.any(axis=1, keepdims=True), prepared.votes, 1.0)
    found: dict[str, NDArray[Any]] = {RANDOM_CANDIDATE: votes > 0}
    if prepared.has_answers:
        found["majority vote"] = votes == votes.max(axis=1, keepdims=True)
        if prepared.method != "testimony":
            crowd = crowd_posterior(prepared.answers).argmax(axis=1)
            found["Dawid-Skene"] = np.eye(len(prepared.classes))[crowd]
    found[FIRST[prepared.method]] = np.eye(len(docket.class_names))[docket.verdict]
    for name, each in found.items():
        beyond = ((0, 0), (0, len(docket.class_names) + 1 - each.shape[1]))
        found[name] = np.pad(each / each.sum(axis=1, keepdims=True), beyond)
    return found


def _true_and_final(fitted: FittedLabels) -> Iterator[tuple[int, str, str]]:
    """Return the items that have both labels, the true label, and the final label."""
    truth = fitted.prepared.labels.truth
    for i, label in enumerate(fitted.columns["label"]):
        if truth is not None and truth[i] is not None and label is not None:
            yield i, truth[i], label


def _find_accuracy(
    fitted: FittedLabels, baselines: Mapping[str, NDArray[Any]], answered: NDArray[np.bool_]
) -> dict[str, Any] | None:
    """Return the accuracy of all labels on the items with an answer and a true label."""
    scored = [each for each in _true_and_final(fitted) if answered[each[0]]]
    if not scored:
        return None
    rows = [i for i, _, _ in scored]
    place = {name: j for j, name in enumerate(fitted.docket.class_names.tolist())}
    codes = [place.get(true, -1) for _, true, _ in scored]
    right = {name: chances[rows, codes] for name, chances in baselines.items()}
    right[RECTIFIED] = np.array([label == true for _, true, label in scored])
    shares = {name: round(float(np.mean(each)), 4) for name, each in right.items()}
    return {N_TRUE: len(scored), **shares}


def _score_unanswered(fitted: FittedLabels, unanswered: NDArray[np.bool_]) -> dict[str, Any]:
    """Return the accuracy on the items without an answer, for which there is no baseline."""
    right = [label == true for i, true, label in _true_and_final(fitted) if unanswered[i]]
    return {
        "items": int(unanswered.sum()),
        N_TRUE: len(right),
        "accuracy": round(float(np.mean(right)), 4) if right else None,
    }


def _find_audit(fitted: FittedLabels, review: Review) -> dict[str, float]:
    """Return the accuracy on reviewed items that were drawn at random, with its interval."""
    if fitted.prepared.method == "testimony":
        audit = fitted.classifier.audit_
    else:
        rows = np.flatnonzero(review.audited)
        hits = int(review.right()[rows].sum())
        low, high = share_interval(hits, len(rows))
        audit = {"rows": len(rows), "accuracy": hits / len(rows), "low": low, "high": high}
    return {name: round(float(value), 4) for name, value in audit.items()}


def _notes(fitted: FittedLabels, accuracy: Mapping[str, float]) -> Iterator[str]:
    """Say what must be known about the labels."""
    review, m = fitted.review, fitted.landmarks
    if m is not None:
        n = len(fitted.prepared.names)
        yield (
            f"comparing all pairs of {n:,} rows takes too much time or memory. Each row was "
            f"compared with {m:,} randomly chosen rows (landmarks). Use "
            f"settings={{'n_landmarks': {min(2 * m, n)}}} for more of them. This takes longer and "
            "can make the labels better."
        )
    if fitted.signal is False:
        if fitted.prepared.method == "testimony":
            yield (
                "the features do not help to predict the answers. Check the labels without "
                "features, too."
            )
        elif fitted.rows is None:
            yield (
                "the features do not predict held-out candidates better than chance, so they are "
                "not used. Each label is the most frequent candidate of its row, which is little "
                "more than a guess, and no model is made for new rows."
            )
        else:
            yield (
                "the features do not predict the labels better than chance. For rows with several "
                "candidates the labels are little more than guesses."
            )
    if review is not None and review.decisions.unknown:
        yield (
            f"{review.decisions.unknown} decisions are ignored: their ids are not in the table."
        )
    if review is not None and review.decisions.skipped:
        yield f"decisions were skipped: {say_skipped(review.decisions.skipped)}"
    yield from review.notes if review is not None else ()
    for name, share in accuracy.items():
        if name not in (N_TRUE, RECTIFIED) and share > accuracy[RECTIFIED]:
            yield f"{name} is more accurate here: {share:.3f} against {accuracy[RECTIFIED]:.3f}."


def weigh_columns(fitted: FittedLabels) -> dict[str, float]:
    """Say what every column contributes to knowing the labels; see `Rectification.importance`."""
    rows, prepared = fitted.rows, fitted.prepared
    found: dict[str, float] = {}
    several = len(prepared.features.kinds) + (prepared.features.n_embeddings > 0) > 1
    if fitted.encoder is None or rows is None or prepared.scheduler is not None or not several:
        return found
    said = prepared.answers if prepared.method == "testimony" else prepared.sets
    known = prepared.classes.tolist()

    def learn(some: NDArray[np.intp]) -> Callable[[NDArray[Any]], NDArray[Any]]:
        model = clone(prepared.estimator)
        with warnings.catch_warnings(), landmarks_told():
            warnings.simplefilter("ignore")  # half of the items are few
            model.fit(rows[some], said[some])
        order = np.eye(len(known))[[known.index(name) for name in model.classes_.tolist()]]
        return lambda new: np.asarray(model.predict_proba(new) @ order)

    evidence = prepared.votes if prepared.has_answers else prepared.sets.matrix.astype(np.float64)
    places, seed = column_places(fitted.encoder), prepared.call["random_state"]
    with suppress(ValueError):  # halves of a small table may lack what a classifier needs
        found = contributions(learn, rows, evidence, places, random_state=seed)
    return {name: round(value, 4) for name, value in found.items()}
