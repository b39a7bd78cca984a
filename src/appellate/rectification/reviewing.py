"""Which items to look at, what was decided of them, and the page that shows it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate import review
from appellate.docket import Docket
from appellate.rectification.case import Case
from appellate.rectification.hearing import Hearing
from appellate.review import Decisions
from appellate.review.decisions import COLUMNS, as_line
from appellate.tables import write_table

SUGGESTED = 100  # items that a page and a folder suggest
_AUDIT = 5  # every fifth of them is drawn at random
_NEIGHBORS, _COMPONENTS, _MANY = 5, 32, 12_000


def item_names(case: Case) -> list[str]:
    """Return what the items are called; their numbers if they have no names."""
    ids = case.labels.ids
    return [str(i) for i in (range(len(case)) if ids is None else ids.tolist())]


def _reviewable(case: Case) -> NDArray[np.bool_]:
    """Candidates as the page shows them, (n, l): all labels where nobody named one."""
    return case.sets.matrix | ~case.sets.matrix.any(axis=1, keepdims=True)


def read_decisions(case: Case, before: Hearing | None, decisions: Any) -> Decisions:
    """Read a file of decisions, or add some to those that were made before."""
    options: dict[str, Any] = {
        "classes": case.classes.tolist(),
        "candidates": _reviewable(case),
        "ids": None if case.labels.ids is None else item_names(case),
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
    names, matrix = item_names(case), _reviewable(case)
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


def decisions_csv(case: Case, hearing: Hearing) -> str:
    """Write the decisions of a run as the file that the page and its server go on with."""
    names, matrix = item_names(case), _reviewable(case)
    lines = [",".join(COLUMNS) + "\n"]
    for i, (kind, label) in hearing.reviewed.items():
        seen = "|".join(case.classes[matrix[i]].tolist())
        record = {"id": names[i], "decision": kind, "label": label}
        lines.append(as_line(record | {"candidates": seen, "data": case.data}))
    return "".join(lines)


def _neighbors(rows: NDArray[Any] | None, k: int = _NEIGHBORS) -> NDArray[Any] | None:
    """Nearest other items of every item, (n, k), by the features as numbers."""
    if rows is None:
        return None
    from sklearn.decomposition import PCA
    from sklearn.neighbors import NearestNeighbors

    if len(rows) > _MANY and rows.shape[1] > _COMPONENTS:
        rows = PCA(_COMPONENTS, random_state=0).fit_transform(rows)
    search = NearestNeighbors(n_neighbors=min(k, len(rows) - 1)).fit(rows)
    return np.asarray(search.kneighbors(return_distance=False))


def suggest(case: Case, hearing: Hearing, most: int) -> tuple[list[int], list[str]]:
    """Order the items whose review would help most; every fifth is drawn at random instead.

    An item counts for its own doubt and for the doubt of those that have it among their nearest
    neighbours. Neighbours of a chosen item count half from then on.
    """
    docket = hearing.docket
    sure = docket.appeal_confidence[np.arange(len(case)), docket.appeal]
    doubt = 1.0 - (sure if case.method == "testimony" else docket.margin)
    reviewed = list(hearing.reviewed)
    doubt[reviewed] = 0.0
    near = _neighbors(hearing.rows)
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


def page_data(
    case: Case,
    hearing: Hearing,
    settings: Mapping[str, Any],
    scores: Mapping[str, Any],
    folder: Path | None = None,
) -> dict[str, Any]:
    """Return what the page of a run shows, as `appellate.review.write_page` takes it.

    Paths of pictures become relative to the folder in which the page will be.
    """
    docket, outside = _page_docket(case, hearing)
    rows, why = suggest(case, hearing, SUGGESTED)
    options: dict[str, Any] = {
        "title": Path(case.table.path or "table").name,
        "table": case.data,
        "neighbors": _neighbors(hearing.rows),
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
        options |= _page_people(case, hearing)
    return review.page_data(docket, **options)


def _page_docket(case: Case, hearing: Hearing) -> tuple[Docket, NDArray[Any] | None]:
    """Return a docket whose labels are all among the candidates, and the likeliest outside."""
    docket, rows = hearing.docket, np.arange(len(case))
    matrix = np.zeros(docket.candidates.shape, dtype=bool)
    matrix[:, : len(case.classes)] = _reviewable(case)
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


def _page_people(case: Case, hearing: Hearing) -> dict[str, Any]:
    """Return who said what, and how far each is to be believed."""
    answers = case.answers
    votes = case.votes
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
