"""What the review page of a run shows."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from appellate._table_options import with_options
from appellate.rectification.decisions import confidence_of
from appellate.rectification.explanation import page_why
from appellate.rectification.features import is_file
from appellate.rectification.fitting import FittedLabels
from appellate.rectification.scoring import FIRST, SUGGESTED, suggest
from appellate.review import page_data


def collect_page(
    fitted: FittedLabels, settings: Mapping[str, Any], scores: Mapping[str, Any], folder: Path
) -> dict[str, Any]:
    """Return what the page of a run shows, as `appellate.review.write_page` takes it.

    Paths of images become relative to the folder in which the page will be.
    """
    prepared, docket = fitted.prepared, fitted.docket
    rows, why = suggest(fitted, SUGGESTED)
    command = settings.get("command", "")
    worded = with_options if command else str  # options as the reader types them
    candidates = np.zeros(docket.candidates.shape, dtype=bool)
    candidates[:, : len(prepared.classes)] = prepared.reviewable
    options: dict[str, Any] = {
        "first": FIRST[prepared.method] if fitted.has_first_labels else "",
        "candidates": candidates,
        "title": Path(prepared.table.path or "table").name,
        "table": prepared.data,
        "neighbors": fitted.neighbors,
        "suggested": rows,
        "audit": [i for i, each in zip(rows, why, strict=True) if each == "audit"],
        "decisions": fitted.reviewed,
        "groups": prepared.groups,
        "suspicion": None if fitted.suspicion is None else np.nan_to_num(fitted.suspicion),
        "suspicion_orders": prepared.method == "jury",
        "differing": scores["differing"].get("majority vote"),
        "features": settings["features"] or None,
        "expected_wrong": scores.get("expected_wrong"),
        "found": scores.get("found"),
        "warnings": list(map(worded, [*scores["notes"], *prepared.notes])),
        "command": _with_decisions(command),
    }
    if prepared.roles.text:
        texts = [prepared.cells(name) for name in prepared.roles.text]
        options["texts"] = ["\n".join(filter(None, parts)) for parts in zip(*texts, strict=True)]
    if prepared.roles.image:
        home = folder.absolute()
        options["images"] = [
            Path(os.path.relpath((prepared.table.home / cell).absolute(), home)).as_posix()
            if cell and is_file(cell)
            else cell
            for cell in prepared.cells(prepared.roles.image)
        ]
    if scores["accuracy"]:
        options["scores"] = [
            {"name": name, "accuracy": value}
            for name, value in scores["accuracy"].items()
            if name not in ("items with truth", "rectified")
        ]
    if prepared.has_answers:
        options |= _page_people(fitted)
    return page_data(docket, **options) | page_why(
        fitted.classifier,
        fitted.columns["outcome"],
        fitted.columns["label"],
        confidence_of(docket),
        docket.contested,
        docket.class_names.tolist(),
        rows,
        features=fitted.rows is not None,
    )


def _with_decisions(command: str) -> str:
    """Return a command with the decisions that are saved in its output folder.

    Examples
    --------
    >>> _with_decisions("appellate rectify t.csv --out birds --decisions old.csv")
    'appellate rectify t.csv --out birds --decisions birds/decisions.csv'
    """
    words = iter(shlex.split(command))
    kept = []
    out = ""
    for word in words:
        name, _, value = word.partition("=")
        if name == "--decisions":
            value = value or next(words, "")
            continue
        kept.append(word)
        if name == "--out":
            if not value:
                kept.append(value := next(words, ""))
            out = value
    place = str(PurePath(out) / "decisions.csv")
    return shlex.join([*kept, "--decisions", place]) if kept else ""


def _page_people(fitted: FittedLabels) -> dict[str, Any]:
    """Return the answers, and how reliable each annotator is."""
    answers, votes = fitted.prepared.answers, fitted.prepared.votes
    leading = votes == votes.max(axis=1, keepdims=True)
    majority = np.where(np.count_nonzero(leading, axis=1) == 1, votes.argmax(axis=1), -1)
    parts: dict[str, Any] = {"votes": majority}
    if answers.person_names is None:
        return parts
    who = getattr(fitted.classifier, "annotators_", None)
    parts["answers"] = {
        "people": answers.person_names.tolist(),
        "row": answers.rows,
        "person": answers.people,
        "label": answers.labels,
    }
    if who is None or len(who["person"]) != answers.n_people:
        return parts
    parts["annotators"] = []
    shares = {"agreement": "agreement", "reliability": "accuracy", "low": "low", "high": "high"}
    for k, name in enumerate(who["person"]):
        parts["annotators"].append(
            {"name": str(name), "answers": int(who["answers"][k])}
            | {key: round(float(who[column][k]), 4) for key, column in shares.items()}
        )
    return parts
