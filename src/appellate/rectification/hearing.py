"""Fit a classifier to a case, and tabulate what it says of every item."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate.docket import Docket
from appellate.rectification.case import Case, in_json
from appellate.review import Decisions

# Columns of the docket that say nothing of an item that a review decided, or excluded.
_DOUBTS = {"runner_up", "runner_up_confidence", "suspicion"}
_VERDICTS = {"verdict", "verdict_confidence", "verdict_correct"}
_APPEALS = {"appeal", "appeal_confidence", "appeal_correct", "margin", "round"}
_CHUNK = 20_000  # rows of a block of a cluster


@dataclass(frozen=True, eq=False)
class Hearing:
    """What a fitted classifier says of all items."""

    encoder: Any
    rows: NDArray[Any] | None  # features as numbers
    classifier: Any
    docket: Docket  # of all items, those that a review excluded too
    suspicion: NDArray[Any] | None
    decisions: Decisions | None = None

    @property
    def reviewed(self) -> dict[int, tuple[str, str]]:
        """Kind and label of every decision by item."""
        return {} if self.decisions is None else self.decisions.by_row()

    @property
    def excluded(self) -> NDArray[np.bool_]:
        """Items of which a review said that no label is true."""
        out = np.zeros(len(self.docket.candidates), dtype=bool)
        out[[i for i, (_, label) in self.reviewed.items() if not label]] = True
        return out


def fit(
    case: Case,
    encoder: Any,
    rows: Any,
    decisions: Decisions | None = None,
    audited: NDArray[np.bool_] | None = None,
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
        return Hearing(encoder, rows, classifier, docket, docket.suspicion, decisions)
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
    with _cluster(case.scheduler) as spread:
        classifier.fit(spread(shown[kept]), sets[kept], **options)
    docket = _fill(classifier.docket(output="docket"), case, kept, names)
    suspicion = getattr(classifier, "suspicion_", None)
    if suspicion is not None:
        suspicion, found = np.full(n, np.nan), suspicion
        suspicion[kept] = found
    if hasattr(classifier, "history_"):  # of every round, for the docket only
        slim = {"base_confidence": None, "partner_confidence": None}
        classifier.history_ = [replace(each, **slim) for each in classifier.history_]
    return Hearing(encoder, rows, classifier, docket, suspicion, decisions)


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
def _cluster(scheduler: str | None) -> Iterator[Callable[[Any], Any]]:
    """Lend what lays rows out over the workers of a Dask scheduler, if one is named."""
    if scheduler is None:
        yield lambda rows: rows
        return
    try:
        import dask.array as da
        from distributed import Client
    except ImportError as error:
        raise ImportError("scheduler= needs Dask: pip install 'appellate[dask]'") from error
    try:
        client = Client(scheduler, timeout=10)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise ValueError(
            f"no Dask scheduler answers at {scheduler!r} ({error}). Leave scheduler out to fit in "
            "this process."
        ) from error
    with client:
        yield lambda rows: da.from_array(rows, chunks=(_CHUNK, -1))  # type: ignore[no-untyped-call]


def docket_columns(case: Case, hearing: Hearing) -> dict[str, list[Any]]:
    """Return the docket's columns as lists, with what a review decided."""
    docket = hearing.docket
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
