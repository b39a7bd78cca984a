"""Judge a case: fit a classifier, tabulate what it says of every item, and weigh that.

Beside the labels stand those that anybody could have; then what to look at, what reviewers
decided, and the page that shows it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate import review
from appellate._text import install
from appellate.docket import Docket
from appellate.rectification.case import Case, in_json
from appellate.review import Decisions
from appellate.review.decisions import COLUMNS, as_line
from appellate.tables import write_table

Step = Callable[..., object]
SUGGESTED = 100  # items that a page and a folder suggest
_AUDIT = 5  # every fifth of them is drawn at random
_AUDITED = 20  # reviewed items drawn at random that make an honest accuracy
_NEIGHBORS, _COMPONENTS, _MANY = 5, 32, 12_000
_CHUNK = 20_000  # rows of a block of a cluster
_FIRST = {"jury": "first round", "plcp": "base alone", "testimony": "Dawid-Skene"}
# Columns of the docket that say nothing of an item that a review decided, or excluded.
_DOUBTS = {"runner_up", "runner_up_confidence", "suspicion"}
_VERDICTS = {"verdict", "verdict_confidence", "verdict_correct"}
_APPEALS = {"appeal", "appeal_confidence", "appeal_correct", "margin", "round"}


def nobody(text: str, *, within: bool = False) -> None:
    """Hear what begins, or with `within` how far it is, and say nothing."""


@dataclass(frozen=True, eq=False)
class Hearing:
    """What a fitted classifier says of all items of a case."""

    case: Case
    encoder: Any
    rows: NDArray[Any] | None  # features as numbers
    classifier: Any
    docket: Docket  # of all items, those that a review excluded too
    suspicion: NDArray[Any] | None
    decisions: Decisions | None = None

    @cached_property
    def reviewed(self) -> dict[int, tuple[str, str]]:
        """Kind and label of every decision by item."""
        return {} if self.decisions is None else self.decisions.by_row()

    @cached_property
    def excluded(self) -> NDArray[np.bool_]:
        """Items of which a review said that no label is true."""
        out = np.zeros(len(self.case), dtype=bool)
        out[[i for i, (_, label) in self.reviewed.items() if not label]] = True
        return out

    @cached_property
    def neighbors(self) -> NDArray[Any] | None:
        """Nearest other items of every item, (n, k), by the features as numbers."""
        if self.rows is None:
            return None
        from sklearn.decomposition import PCA
        from sklearn.neighbors import NearestNeighbors

        rows = self.rows
        if len(rows) > _MANY and rows.shape[1] > _COMPONENTS:
            rows = PCA(_COMPONENTS, random_state=0).fit_transform(rows)
        search = NearestNeighbors(n_neighbors=min(_NEIGHBORS, len(rows) - 1)).fit(rows)
        return np.asarray(search.kneighbors(return_distance=False))

    @cached_property
    def suggested(self) -> tuple[list[int], list[str]]:
        """The first items that are worth a look, and why; see `suggest`."""
        return suggest(self, SUGGESTED)


def fit(
    case: Case,
    encoder: Any,
    rows: Any,
    decisions: Decisions | None = None,
    audited: NDArray[np.bool_] | None = None,
    step: Step = nobody,
) -> Hearing:
    """Fit and tabulate; reviewed items are certain, those without a true label left out."""
    from sklearn.base import clone

    classifier, n = clone(case.estimator), len(case)
    kept, sets = np.ones(n, dtype=bool), case.sets
    names = {"ids": case.labels.ids, "truth": case.labels.truth, "output": "docket"}
    if case.method == "testimony":
        answers, certain = case.answers, None
        if decisions is not None:
            certain = np.full(n, None, dtype=object)
            certain[decisions.rows] = [name or None for name in decisions.names]
            kept[decisions.rows] = [bool(name) for name in decisions.names]
            answers = answers._take(kept[answers.rows])
        classifier.fit(rows, answers, decisions=certain, audited=audited)
        docket = classifier.docket(**names)
        return Hearing(case, encoder, rows, classifier, docket, docket.suspicion, decisions)
    if decisions is not None:
        sets, kept = decisions.apply(sets)
    if kept.sum() < 2:
        raise ValueError(
            f"the decisions exclude {n - kept.sum()} of {n} items, and nothing can be learned "
            "from what is left. Take some of them back (decision 'clear')."
        )
    options = {}
    if case.method == "jury" and case.groups is not None:
        options["groups"] = np.array(case.groups)[kept]
    # Without features the jury weighs what was said by how frequent the labels are.
    shown = np.zeros((n, 1)) if rows is None else rows
    if case.scheduler is None:
        classifier._on_round = lambda number: step(f"round {number}", within=True)
        classifier.fit(shown[kept], sets[kept], **options)
        del classifier._on_round  # no part of a model
    else:
        with _on_workers(shown[kept], case.scheduler) as spread:
            classifier.fit(spread, sets[kept], **options)
    docket = _fill(classifier.docket(output="docket"), case, kept, names)
    suspicion = getattr(classifier, "suspicion_", None)
    if suspicion is not None:
        suspicion, found = np.full(n, np.nan), suspicion
        suspicion[kept] = found
    if hasattr(classifier, "history_"):  # of every round, for the docket only
        slim = {"base_confidence": None, "partner_confidence": None}
        classifier.history_ = [replace(each, **slim) for each in classifier.history_]
    return Hearing(case, encoder, rows, classifier, docket, suspicion, decisions)


def _fill(docket: Docket, case: Case, kept: NDArray[np.bool_], names: Mapping[str, Any]) -> Docket:
    """Put items that were left out back into a docket, all candidates alike."""
    matrix = case.sets.matrix
    alike = matrix / np.count_nonzero(matrix, axis=1)[:, np.newaxis]

    def whole(part: NDArray[Any]) -> NDArray[Any]:
        out = alike.astype(part.dtype)
        out[kept] = part
        return out

    history = np.tile(alike.argmax(axis=1), (len(docket.label_history), 1))
    history[:, kept] = docket.label_history
    appeal = whole(docket.appeal_confidence)
    chosen = np.zeros_like(matrix)
    chosen[np.arange(len(matrix)), history[-1]] = True
    return replace(
        docket,
        candidates=matrix | chosen,
        verdict_confidence=whole(docket.verdict_confidence),
        appeal_confidence=appeal,
        label_history=history,
        ids=names["ids"],
        truth=names["truth"],
        rounds=None if docket.rounds is None else [whole(each) for each in docket.rounds],
    )


@contextmanager
def _on_workers(rows: NDArray[Any], scheduler: str) -> Iterator[Any]:
    """Lay rows out over the workers of a Dask scheduler."""
    try:
        import dask.array as da
        from distributed import Client
    except ImportError as error:
        raise ImportError(f"scheduler= needs Dask: {install('dask')}") from error
    try:
        client = Client(scheduler, timeout=10)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise ValueError(
            f"no Dask scheduler answers at {scheduler!r} ({error}). Leave scheduler out to fit in "
            "this process."
        ) from error
    with client:
        yield da.from_array(rows, chunks=(_CHUNK, -1))  # type: ignore[no-untyped-call]


def docket_columns(hearing: Hearing) -> dict[str, list[Any]]:
    """Return the docket's columns as lists, with what a review decided."""
    case, docket = hearing.case, hearing.docket
    columns = {name: in_json(values.tolist()) for name, values in docket.columns().items()}
    if "runner_up" not in columns:
        others = docket.appeal_confidence.copy()
        others[np.arange(len(others)), docket.appeal] = -1
        second = others.argmax(axis=1)
        share = others[np.arange(len(others)), second]
        names = docket.class_names[second].tolist()
        columns["runner_up"] = [n if s > 0 else None for n, s in zip(names, share, strict=True)]
        columns["runner_up_confidence"] = [s if s > 0 else None for s in share.tolist()]
    if hearing.suspicion is not None:
        columns["suspicion"] = in_json(hearing.suspicion.tolist())
    if case.has_answers and "votes" not in columns:
        named = docket.class_names.tolist()
        columns["votes"] = [
            "|".join(f"{named[j]}:{row[j]:g}" for j in np.argsort(-row, kind="stable") if row[j])
            for row in case.votes
        ]
    if hearing.decisions is not None:
        columns["review"] = [""] * len(case)
        for i, (kind, label) in hearing.reviewed.items():
            columns["review"][i] = kind
            columns["outcome"][i] = "reviewed" if label else "excluded"
            gone = _DOUBTS if label else _DOUBTS | _VERDICTS | _APPEALS
            for name in gone & columns.keys():
                columns[name][i] = None
            if label:
                columns["appeal"][i], columns["appeal_confidence"][i] = label, 1.0
    return columns


def score(
    hearing: Hearing,
    columns: Mapping[str, list[Any]],
    before: Hearing | None,
    audited: NDArray[np.bool_] | None,
) -> dict[str, Any]:
    """Compare the labels with those of trivial rivals, and with the truth where it is known."""
    case, docket, n = hearing.case, hearing.docket, len(hearing.case)
    outcomes, counts = np.unique(columns["outcome"], return_counts=True)
    scores: dict[str, Any] = {
        "items": n,
        "contested": int((np.count_nonzero(case.sets.matrix, axis=1) > 1).sum()),
        "outcomes": dict(zip(outcomes.tolist(), counts.tolist(), strict=True)),
    }
    if case.method != "plcp":  # whose confidence is not calibrated
        sure = [1.0 if c is None else c for c in columns["appeal_confidence"]]
        scores["expected_wrong"] = round(n - float(np.sum(sure)), 1)
    rivals = _rivals(hearing)
    chosen = docket.appeal
    scores["differing"] = {
        name: int((shares[np.arange(n), np.minimum(chosen, shares.shape[1] - 1)] == 0).sum())
        for name, shares in rivals.items()
        if name != "random candidate"
    }
    scores["accuracy"] = _accuracies(hearing, rivals)
    scores["signal"] = informs(hearing)
    scores["audit"] = None
    if before is not None:
        if audited is not None and audited.sum() >= _AUDITED:
            scores["audit"] = _audit(hearing, before, np.flatnonzero(audited).tolist())
        others = np.ones(n, dtype=bool)
        others[list(hearing.reviewed)] = False
        one, two = (h.docket.class_names[h.docket.appeal] for h in (before, hearing))
        scores["moved"] = int((one != two)[others].sum())
    scores["notes"] = list(_warnings(case, scores))
    return scores


def _rivals(hearing: Hearing) -> dict[str, NDArray[Any]]:
    """Return what everybody could do: labels of each item and the chance to take them, (n, l)."""
    case = hearing.case
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


def _accuracies(hearing: Hearing, rivals: Mapping[str, NDArray[Any]]) -> dict[str, Any] | None:
    truth = hearing.case.labels.truth
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


def informs(hearing: Hearing) -> bool | None:
    """Tell whether the features inform the labels; None where that is not known.

    Testimony asks whether they predict answers. The jury's honest output must give items' own
    candidates more than if the sets were dealt at random, by two standard deviations.
    """
    case, classifier = hearing.case, hearing.classifier
    if case.uninformed:
        return False
    if case.X is None:
        return None
    if case.method == "testimony":
        return bool(classifier.trust_ > 0)
    honest = getattr(classifier, "honest_output_", None)
    if honest is None:
        return None
    return shared_excess(honest, classifier.candidates_) > 2


def shared_excess(output: NDArray[Any], sets: NDArray[np.bool_]) -> float:
    """Return how much more items give to their own candidates than to those of others.

    In standard deviations of the same sum with the sets dealt to the items at random, which over
    all deals has mean 0 and variance ``tr(O'O S'S) / (n - 1)``, O and S being output and sets
    less their column means (Hoeffding's for sums over a permutation).
    """
    apart = output - output.mean(axis=0), sets - sets.mean(axis=0)
    first, second = (each.T @ each for each in apart)
    spread = np.sqrt((first * second).sum() / max(len(sets) - 1, 1))
    return float((apart[0] * apart[1]).sum() / spread) if spread > 0 else 0.0


def _audit(hearing: Hearing, before: Hearing, rows: list[int]) -> dict[str, float]:
    """Return the share of labels that are right, by reviewed items that were drawn at random."""
    from appellate.testimony import share_interval

    if hearing.case.method == "testimony":
        found = hearing.classifier.audit_
    else:
        labels = before.docket.class_names[before.docket.appeal].tolist()
        right = sum(labels[i] == hearing.reviewed[i][1] for i in rows)
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


def suggest(hearing: Hearing, most: int) -> tuple[list[int], list[str]]:
    """Order the items whose review would help most; every fifth is drawn at random instead.

    An item counts for its own doubt and for the doubt of those that have it among their nearest
    neighbours. Neighbours of a chosen item count half from then on.
    """
    case, docket, near = hearing.case, hearing.docket, hearing.neighbors
    sure = docket.appeal_confidence[np.arange(len(case)), docket.appeal]
    doubt = 1.0 - (sure if case.method == "testimony" else docket.margin)
    reviewed = list(hearing.reviewed)
    doubt[reviewed] = 0.0
    score = np.array(doubt, dtype=np.float64)
    if near is not None and near.shape[1]:
        influence = np.zeros(len(doubt))
        np.add.at(influence, near, np.broadcast_to(doubt[:, np.newaxis], near.shape))
        score *= 1 + influence / near.shape[1]
    left = np.setdiff1d(np.arange(len(case)), reviewed)
    drawn = np.random.default_rng(case.call["random_state"]).permutation(left).tolist()
    rows: list[int] = []
    why: list[str] = []
    while len(rows) < min(most, len(left)):
        best = int(score.argmax())
        random = (len(rows) + 1) % _AUDIT == 0 or score[best] <= 0
        row = next(i for i in drawn if i not in rows) if random else best
        rows.append(row)
        why.append("audit" if random else "doubt")
        score[row] = 0.0
        if near is not None and not random:
            score[near[row]] *= 0.5
    return rows, why


def read_decisions(case: Case, before: Hearing | None, decisions: Any) -> Decisions:
    """Read a file of decisions, or add some to those that were made before."""
    options: dict[str, Any] = {
        "classes": case.classes.tolist(),
        "candidates": case.reviewable,
        "ids": None if case.labels.ids is None else case.names,
        "data": case.data,
    }
    if isinstance(decisions, (str, os.PathLike)):
        if not Path(decisions).exists():
            raise ValueError(
                f"there is no file '{os.fspath(decisions)}'. Decide on some rows first."
            )
        return review.read_decisions(decisions, **options)
    table = _decision_table(case, decisions)
    with tempfile.TemporaryDirectory() as folder:
        found = review.read_decisions(write_table(table, f"{folder}/decisions.csv"), **options)
    earlier = None if before is None else before.decisions
    if earlier is None:
        return found
    kept = ~np.isin(earlier.rows, found.rows)
    return Decisions(
        np.concatenate([earlier.rows[kept], found.rows]),
        [k for k, keep in zip(earlier.kinds, kept, strict=True) if keep] + found.kinds,
        np.concatenate([earlier.labels[kept], found.labels]),
        [n for n, keep in zip(earlier.names, kept, strict=True) if keep] + found.names,
        found.unknown,
    )


def _decision_table(case: Case, decisions: Any) -> Any:
    """Write labels by name as decisions; a data frame of decisions is taken as it is."""
    if not isinstance(decisions, Mapping) or {"id", "decision", "label"} <= decisions.keys():
        return decisions
    names, matrix = case.names, case.reviewable
    rows = {name: i for i, name in enumerate(names)}
    places = {name: j for j, name in enumerate(case.classes.tolist())}
    table: dict[str, list[str]] = {"id": [], "decision": [], "label": []}
    for name, label in decisions.items():
        i, j = rows.get(str(name)), places.get(str(label))
        inside = i is not None and j is not None and bool(matrix[i, j])
        table["id"].append(str(name))
        table["decision"].append("other" if inside else "none")
        table["label"].append("" if label is None else str(label))
    return table


def decisions_csv(hearing: Hearing) -> str:
    """Write the decisions of a run as the file that the page and its server go on with."""
    case, lines = hearing.case, [",".join(COLUMNS) + "\n"]
    for i, (kind, label) in hearing.reviewed.items():
        seen = "|".join(case.classes[case.reviewable[i]].tolist())
        record = {"id": case.names[i], "decision": kind, "label": label}
        lines.append(as_line(record | {"candidates": seen, "data": case.data}))
    return "".join(lines)


def page_data(
    hearing: Hearing,
    settings: Mapping[str, Any],
    scores: Mapping[str, Any],
    folder: Path | None = None,
) -> dict[str, Any]:
    """Return what the page of a run shows, as `appellate.review.write_page` takes it.

    Paths of pictures become relative to the folder in which the page will be.
    """
    case, (rows, why) = hearing.case, hearing.suggested
    docket, outside = _page_docket(hearing)
    options: dict[str, Any] = {
        "title": Path(case.table.path or "table").name,
        "table": case.data,
        "neighbors": hearing.neighbors,
        "suggested": rows,
        "audit": [i for i, each in zip(rows, why, strict=True) if each == "audit"],
        "decisions": hearing.reviewed,
        "groups": case.groups,
        "suspicion": None if hearing.suspicion is None else np.nan_to_num(hearing.suspicion),
        "outside": outside,
        "features": [*settings["features"]] or None,
        "expected_wrong": scores.get("expected_wrong"),
        "warnings": [*scores["notes"], *case.notes],
    }
    if case.roles.text:
        texts = [case.cells(name) for name in case.roles.text]
        options["texts"] = ["\n".join(filter(None, parts)) for parts in zip(*texts, strict=True)]
    if case.roles.image:
        options["images"] = case.images(folder)
    if scores["accuracy"]:
        options["scores"] = [
            {"name": name, "accuracy": value}
            for name, value in scores["accuracy"].items()
            if name not in ("items with truth", "rectified")
        ]
    if case.has_answers:
        options |= _page_people(hearing)
    return review.page_data(docket, **options)


def _page_docket(hearing: Hearing) -> tuple[Docket, NDArray[Any] | None]:
    """Return a docket whose labels are all among the candidates, and the likeliest outside."""
    case, docket, rows = hearing.case, hearing.docket, np.arange(len(hearing.case))
    matrix = np.zeros(docket.candidates.shape, dtype=bool)
    matrix[:, : len(case.classes)] = case.reviewable
    for i, (_, label) in hearing.reviewed.items():
        matrix[i] |= docket.class_names == label
    if case.method != "testimony":
        return replace(docket, candidates=matrix | docket.candidates), None
    beyond = np.where(matrix, -1.0, docket.appeal_confidence)
    outside = np.where(beyond.max(axis=1) > 0, beyond.argmax(axis=1), -1)

    def inside(confidence: NDArray[Any]) -> NDArray[Any]:
        held = np.where(matrix, confidence, 0.0)
        return np.asarray(held / np.maximum(held.sum(axis=1, keepdims=True), 1e-300))

    verdict, appeal = inside(docket.verdict_confidence), inside(docket.appeal_confidence)
    history = [
        np.where(matrix[rows, each], each, np.where(matrix, shares, -1.0).argmax(axis=1))
        for each, shares in zip(docket.label_history, (verdict, appeal), strict=True)
    ]
    known = Docket(
        matrix, docket.class_names, verdict, appeal, np.stack(history), docket.ids, docket.truth
    )
    return known, outside


def _page_people(hearing: Hearing) -> dict[str, Any]:
    """Return who said what, and how far each is to be believed."""
    answers, votes = hearing.case.answers, hearing.case.votes
    parts: dict[str, Any] = {"votes": np.where(votes.any(axis=1), votes.argmax(axis=1), -1)}
    if answers.person_names is None:
        return parts
    who = getattr(hearing.classifier, "annotators_", None)
    parts["answers"] = {
        "people": answers.person_names.tolist(),
        "row": answers.rows,
        "person": answers.people,
        "label": answers.labels,
    }
    if who is not None and len(who["person"]) == answers.n_people:
        parts["annotators"] = [
            {
                "name": str(who["person"][k]),
                "answers": int(who["answers"][k]),
                "agreement": round(float(who["agreement"][k]), 4),
                "reliability": round(float(who["accuracy"][k]), 4),
                "confusion": _worst(who["confusion"][k], hearing.docket.class_names),
            }
            for k in range(answers.n_people)
        ]
    return parts


def _worst(confusion: NDArray[Any], names: NDArray[Any]) -> list[Any] | None:
    """Return the most frequent mistake: true label, what was said, how often."""
    wrong = confusion * (1 - np.eye(len(confusion)))
    true, said = divmod(int(wrong.argmax()), len(confusion))
    return [str(names[true]), str(names[said]), round(float(wrong[true, said]), 4)]
