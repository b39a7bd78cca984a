"""What the page shows, as plain dicts: the summary, and the rows in compact columns."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate.candidates.names import scalars
from appellate.docket import Docket

N_BINS = 20
N_CLASSES = 12  # classes in the plots; the others are summed up in words
_SCALE = 10_000  # confidences as whole numbers


def decided_rows(decisions: Mapping[str, Sequence[Any]]) -> tuple[list[int], list[int]]:
    """Return the rows of which a review said that no label is true, and those it gave one."""
    excluded = [int(i) for i, (kind, _) in decisions.items() if kind == "none"]
    return excluded, [int(i) for i, (kind, _) in decisions.items() if kind != "none"]


def summarize(
    docket: Docket, excluded: Sequence[int] = (), reviewed: Sequence[int] = ()
) -> dict[str, Any]:
    """Count what happened: the numbers behind the plots at the top of the page.

    Parameters
    ----------
    docket : Docket
        The table and its confidences.
    excluded : sequence of int, default=()
        Rows that a review excluded; they are counted as such and nowhere else.
    reviewed : sequence of int, default=()
        Rows whose label a review decided; they are neither upheld nor overturned.

    Returns
    -------
    dict
        In JSON's types: ``n``, ``n_classes``, ``sizes`` (samples by number of candidates),
        ``upheld``, ``overturned``, ``reviewed``, ``excluded``, ``histogram`` (confidence before
        and after), ``classes`` (gains and losses), ``confusion`` (verdict by appeal), ``truth``
        where known, ``cost`` by which the labels were decided.
    """
    n = len(docket.candidates)
    rows = np.arange(n)
    names = [_name(name) for name in scalars(docket.class_names)]
    sizes = docket.candidates.sum(axis=1)
    heard = np.ones(n, dtype=bool)
    heard[list(excluded)] = False
    contested = (sizes > 1) & heard
    before = docket.verdict_confidence[rows, docket.verdict]
    after = docket.appeal_confidence[rows, docket.appeal]
    edges = np.linspace(0, 1, N_BINS + 1)
    contestable = heard.copy()
    contestable[list(reviewed)] = False
    changed = docket.overturned & contestable
    overturned, n_appeals = int(changed.sum()), int(contestable.sum())
    counts = np.bincount(sizes)
    return {
        "n": n,
        "n_classes": len(names),
        "contested": int(contested.sum()),
        "mean_candidates": round(float(sizes.mean()), 2),
        "sizes": [[int(s), int(c)] for s, c in enumerate(counts) if c],
        "upheld": n_appeals - overturned,
        "overturned": overturned,
        "reviewed": int(heard.sum()) - n_appeals,
        "excluded": n - int(heard.sum()),
        "share": round(100 * overturned / max(n_appeals, 1), 1),
        "mean_before": round(float(before[contested].mean()), 3) if contested.any() else 1.0,
        "mean_after": round(float(after[contested].mean()), 3) if contested.any() else 1.0,
        "histogram": {
            "before": np.histogram(np.clip(before[contested], 0, 1), edges)[0].tolist(),
            "after": np.histogram(np.clip(after[contested], 0, 1), edges)[0].tolist(),
        },
        "classes": _gains(docket, names, changed),
        "confusion": _confusion(docket, names, changed),
        "truth": _truth(docket, heard),
        "cost": docket.cost_name,
        "rounds": len(docket.label_history) - 1,
        "moved": [int(c) for c in (np.diff(docket.label_history, axis=0) != 0).sum(axis=1)],
    }


def _name(value: Any) -> str:
    return str(value)


def _gains(docket: Docket, names: list[str], changed: NDArray[np.bool_]) -> dict[str, Any]:
    """Samples of each class before and after, the largest movers first."""
    l = len(names)
    lost = np.bincount(docket.verdict[changed], minlength=l)
    gained = np.bincount(docket.appeal[changed], minlength=l)
    order = np.argsort(-(lost + gained), kind="stable")
    moving = [int(j) for j in order if lost[j] + gained[j]]
    shown: list[dict[str, Any]] = [
        {"name": names[j], "lost": int(lost[j]), "gained": int(gained[j])}
        for j in moving[:N_CLASSES]
    ]
    most = max([1, *(max(row["lost"], row["gained"]) for row in shown)])
    return {"shown": shown, "hidden": max(0, len(moving) - N_CLASSES), "most": most}


def _confusion(docket: Docket, names: list[str], changed: NDArray[np.bool_]) -> dict[str, Any]:
    """Overturned samples by verdict and appeal, for the classes that move most."""
    pairs = np.stack([docket.verdict[changed], docket.appeal[changed]])
    l = len(names)
    weight = np.bincount(pairs.ravel(), minlength=l)
    chosen = np.sort(np.argsort(-weight, kind="stable")[: min(N_CLASSES, int((weight > 0).sum()))])
    place = np.full(l, -1)
    place[chosen] = np.arange(len(chosen))
    table = np.zeros((len(chosen), len(chosen)), dtype=int)
    inside = (place[pairs] >= 0).all(axis=0)
    np.add.at(table, tuple(place[pairs[:, inside]]), 1)
    return {
        "names": [names[j] for j in chosen],
        "table": table.tolist(),
        "most": int(table.max(initial=1)) or 1,
        "left_out": int((~inside).sum()),
    }


def _truth(docket: Docket, heard: NDArray[np.bool_]) -> dict[str, Any] | None:
    """Shares of right verdicts and appeals, where the truth is known."""
    if docket.truth is None:
        return None
    truth = np.asarray(docket.truth, dtype=object)
    known = np.array([t is not None and t == t for t in truth.tolist()]) & heard
    if not known.any():
        return None
    names = docket.class_names.astype(object)
    verdict = (names[docket.verdict] == truth)[known]
    appeal = (names[docket.appeal] == truth)[known]
    return {
        "n": int(known.sum()),
        "verdict": round(100 * float(verdict.mean()), 1),
        "appeal": round(100 * float(appeal.mean()), 1),
        "rectified": int((~verdict & appeal).sum()),
        "spoiled": int((verdict & ~appeal).sum()),
    }


def encode_rows(
    docket: Docket,
    *,
    neighbors: Any = None,
    texts: Sequence[str] | None = None,
    images: Sequence[str] | None = None,
    suggested: Sequence[int] = (),
    decisions: Mapping[int, tuple[str, int]],
) -> dict[str, Any]:
    """Encode all rows for the script: candidate entries only, numbers as bytes in base64.

    Confidences are whole numbers of 1/10000, those of the rounds of 1/255.
    """
    n = len(docket.candidates)
    owner, labels = np.nonzero(docket.candidates)
    starts = np.searchsorted(owner, np.arange(n + 1))
    ids = np.arange(n) if docket.ids is None else np.asarray(docket.ids, dtype=object)
    encoded: dict[str, Any] = {
        "n": n,
        "classes": [_name(name) for name in scalars(docket.class_names)],
        "ids": None if docket.ids is None else [_name(i) for i in ids.tolist()],
        "starts": _bytes(starts, "<u4"),
        "labels": _bytes(labels, "<u4"),
        "before": _bytes(_whole(docket.verdict_confidence[owner, labels], _SCALE), "<u2"),
        "after": _bytes(_whole(docket.appeal_confidence[owner, labels], _SCALE), "<u2"),
        "history": _bytes(docket.label_history, "<u4"),
        "margin": _bytes(_whole(docket.margin, _SCALE), "<u2"),
        "rounds": len(docket.label_history) - 1,
        "suggested": [int(i) for i in suggested],
        "decisions": {str(i): list(decision) for i, decision in decisions.items()},
        "texts": None if texts is None else list(texts),
        "images": None if images is None else list(images),
    }
    if docket.rounds is not None:
        parts = [_shares(each[owner, labels], starts, owner) for each in docket.rounds]
        encoded["trajectory"] = _bytes(_whole(np.stack(parts), 255), "<u1")
    if neighbors is not None:
        encoded["neighbors"] = _bytes(np.asarray(neighbors), "<u4")
        encoded["k"] = int(np.asarray(neighbors).shape[1])
    if docket.truth is not None:
        truth = np.asarray(docket.truth, dtype=object).tolist()
        encoded["truth"] = [None if t is None or t != t else _name(t) for t in truth]
    return encoded


def _shares(values: NDArray[Any], starts: NDArray[Any], owner: NDArray[Any]) -> NDArray[Any]:
    """Divide candidate entries by their sum over the sample; zero where that is zero."""
    totals = np.add.reduceat(values, starts[:-1])
    return np.asarray(values / np.maximum(totals, np.finfo(values.dtype).tiny)[owner])


def _whole(values: NDArray[Any], scale: int) -> NDArray[Any]:
    return np.rint(np.clip(values, 0, 1) * scale)


def _bytes(values: NDArray[Any], kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode("ascii")
