"""What the page shows, as one plain dict: made of a docket first, rendered second."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate.candidates.names import is_missing, scalars
from appellate.docket import Docket, free_separator

__all__ = ["page_data", "summarize"]

FORMAT = 2  # of the dict; a page of another format is refused by the server
#: Keys that a dict has only where there is something to show.
OPTIONAL = (
    "answers", "annotators", "audit", "features", "groups", "images", "neighbors", "outside",
    "rounds", "scores", "suspicion", "texts", "truth", "votes", "warnings", "weights",
)  # fmt: skip
CLOSE = 0.10  # a lead below this is a close call
SUSPECT = 0.5  # a suspicion from here on makes a row suspected
_N_BINS = 20
_N_LISTED = 12  # labels and changes in the summary; the others are summed up in words
_LEVELS, _ROUND_LEVELS = 10_000, 255  # of confidences in the page, and of those of the rounds


def page_data(
    docket: Docket,
    *,
    title: str = "",
    table: str = "",
    neighbors: Any = None,
    texts: Sequence[str] | None = None,
    images: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    suggested: Sequence[int] = (),
    audit: Sequence[int] = (),
    decisions: Mapping[int, tuple[str, str]] | None = None,
    answers: Mapping[str, Any] | None = None,
    annotators: Sequence[Mapping[str, Any]] | None = None,
    votes: Any = None,
    weights: Any = None,
    suspicion: Any = None,
    outside: Any = None,
    features: Sequence[Mapping[str, Any]] | None = None,
    scores: Sequence[Mapping[str, Any]] | None = None,
    expected_wrong: float | None = None,
    warnings: Sequence[str] = (),
) -> dict[str, Any]:
    """Collect what the page of a docket shows.

    Whatever is not given is not on the page.

    Parameters
    ----------
    docket : Docket
        The table and its confidences. Without ids, rows are known by their number.
    title : str, default=""
        What the data are called.
    table : str, default=""
        Hash of the table, which every decision carries; by default a hash of names, labels and
        candidates.
    neighbors : ndarray of int, shape (n, k), default=None
        Nearest other rows of every row.
    texts, images, groups : sequence of str, default=None
        A text, the path of a picture (relative to the page) and the name of a group, for every
        row; empty for none.
    suggested, audit : sequence of int, default=()
        Rows to review first, in this order, and those among them that were drawn at random.
    decisions : mapping of int to (str, str), default=None
        Earlier decisions by row: the kind and the label (`Decisions.by_row`).
    answers : mapping, default=None
        Who said what: ``people`` (names), and of every answer ``row``, ``person`` (an index into
        people) and ``label`` (a class index).
    annotators : sequence of mappings, default=None
        One for every person, in the order of ``answers["people"]``: ``name``, ``answers`` (how
        many), ``agreement`` (with the others) and ``reliability`` (estimated), both 0 to 1 or
        None, ``confusion``: (true label, what was said, how often) or None.
    votes : ndarray of int, shape (n,), default=None
        Majority vote as class index; -1 for none.
    weights : ndarray, shape (n, l), default=None
        Weights of the candidates that the user gave, 0 to 1.
    suspicion : ndarray, shape (n,), default=None
        Probability that the true label is outside the candidates.
    outside : ndarray of int, shape (n,), default=None
        The likeliest label outside; -1 for none.
    features : sequence of mappings, default=None
        What was learned from: ``name``, and where known ``kind``, ``importance`` (0 to 1).
    scores : sequence of mappings, default=None
        Trivial rivals, where the truth is known: ``name`` and ``accuracy`` (0 to 1).
    expected_wrong : float, default=None
        How many labels of contested rows calibrated confidences expect to be wrong.
    warnings : sequence of str, default=()
        What the reader must know before anything else.

    Returns
    -------
    dict
        Columns as arrays or lists; `appellate.review.write_page` takes it. See the guide.

    Examples
    --------
    >>> from appellate import PLCPClassifier, SUREClassifier
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> docket = PLCPClassifier(SUREClassifier()).fit(X, y).docket(output="docket")
    >>> data = page_data(docket, title="animals", suggested=[0])
    >>> data["classes"], data["summary"]["contested"]
    (['cat', 'cow', 'dog'], 4)
    """
    n = len(docket.candidates)
    owner, labels = np.nonzero(docket.candidates)
    starts = np.searchsorted(owner, np.arange(n + 1))
    classes = [str(name) for name in scalars(docket.class_names)]
    ids = None if docket.ids is None else _unique(np.asarray(docket.ids).tolist())
    decided = {int(i): tuple(decision) for i, decision in (decisions or {}).items()}
    excluded = [i for i, (_, label) in decided.items() if not label]
    reviewed = [i for i, (_, label) in decided.items() if label]
    data: dict[str, Any] = {
        "format": FORMAT,
        "title": title,
        "table": table or _hash(ids, classes, starts, labels),
        "n": n,
        "classes": classes,
        "separator": free_separator(classes),
        "ids": ids,
        "starts": starts,
        "labels": labels,
        "before": docket.verdict_confidence[owner, labels],
        "after": docket.appeal_confidence[owner, labels],
        "history": docket.label_history,
        "margin": docket.margin,
        "suggested": [int(i) for i in suggested],
        "decisions": {str(i): list(decision) for i, decision in decided.items()},
        "summary": summarize(docket, excluded, reviewed),
    }
    columns = {
        "neighbors": neighbors,
        "votes": votes,
        "suspicion": suspicion,
        "outside": outside,
    }
    optional: dict[str, Any] = {
        "audit": [int(i) for i in audit] or None,
        "texts": None if texts is None else list(texts),
        "images": None if images is None else list(images),
        "groups": None if groups is None else [str(group) for group in groups],
        **{name: None if value is None else np.asarray(value) for name, value in columns.items()},
        "answers": None if answers is None else _answers(answers, n),
        "annotators": None if annotators is None else [dict(each) for each in annotators],
        "weights": None if weights is None else np.asarray(weights)[owner, labels],
        "features": None if features is None else [dict(each) for each in features],
        "scores": None if scores is None else [dict(each) for each in scores],
        "warnings": list(warnings) or None,
    }
    if docket.rounds is not None:
        parts = [_shares(each[owner, labels], starts, owner) for each in docket.rounds]
        optional["rounds"] = np.stack(parts)
    if docket.truth is not None:
        truth = np.asarray(docket.truth, dtype=object).tolist()
        optional["truth"] = [None if is_missing(t) else str(t) for t in truth]
    data |= {name: value for name, value in optional.items() if value is not None}
    if suspicion is not None:
        data["summary"]["suspected"] = int((np.asarray(suspicion) >= SUSPECT).sum())
    if expected_wrong is not None:
        data["summary"]["expected_wrong"] = round(float(expected_wrong))
    return data


def summarize(
    docket: Docket, excluded: Sequence[int] = (), reviewed: Sequence[int] = ()
) -> dict[str, Any]:
    """Count what happened: the numbers behind the sentences and plots of the page.

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
        In JSON's types: ``n``, ``n_classes``, ``sizes`` (rows by number of candidates),
        ``contested`` (rows with several), ``close``, ``upheld``, ``overturned``, ``reviewed``,
        ``excluded``, ``histogram`` (confidence before and after), ``classes`` (gains and
        losses), ``changes`` (from, to, count), ``truth`` and ``reliability`` where known,
        ``cost`` by which the labels were decided.
    """
    n = len(docket.candidates)
    rows = np.arange(n)
    names = [str(name) for name in scalars(docket.class_names)]
    sizes = docket.candidates.sum(axis=1)
    heard = np.ones(n, dtype=bool)
    heard[list(excluded)] = False
    open_ = heard.copy()
    open_[list(reviewed)] = False
    contested = (sizes > 1) & open_
    changed = docket.overturned & open_
    before = docket.verdict_confidence[rows, docket.verdict]
    after = docket.appeal_confidence[rows, docket.appeal]
    edges = np.linspace(0, 1, _N_BINS + 1)
    overturned, n_open, n_contested = (int(each.sum()) for each in (changed, open_, contested))
    return {
        "n": n,
        "n_classes": len(names),
        "contested": n_contested,
        "suspected": 0,
        "single": int((sizes == 1).sum()),
        "close": int((contested & (np.rint(docket.margin * _LEVELS) < CLOSE * _LEVELS)).sum()),
        "mean_candidates": round(float(sizes.mean()), 2),
        "sizes": [[int(s), int(c)] for s, c in enumerate(np.bincount(sizes)) if c],
        "upheld": n_open - overturned,
        "overturned": overturned,
        "reviewed": int(heard.sum()) - n_open,
        "excluded": n - int(heard.sum()),
        "mean_before": round(float(before[contested].mean()), 3) if n_contested else 1.0,
        "mean_after": round(float(after[contested].mean()), 3) if n_contested else 1.0,
        "histogram": {
            "before": np.histogram(np.clip(before[contested], 0, 1), edges)[0].tolist(),
            "after": np.histogram(np.clip(after[contested], 0, 1), edges)[0].tolist(),
        },
        "classes": _gains(docket, names, changed),
        "changes": _changes(docket, names, changed),
        "truth": _truth(docket, heard),
        "reliability": _reliability(docket, contested, after),
        "cost": docket.cost_name,
        "rounds": len(docket.label_history) - 1,
        "moved": [int(c) for c in (np.diff(docket.label_history, axis=0) != 0).sum(axis=1)],
    }


def _gains(docket: Docket, names: list[str], changed: NDArray[np.bool_]) -> dict[str, Any]:
    """Rows of each class before and after, the largest movers first."""
    lost = np.bincount(docket.verdict[changed], minlength=len(names))
    gained = np.bincount(docket.appeal[changed], minlength=len(names))
    order = np.argsort(-(lost + gained), kind="stable")
    moving = [int(j) for j in order if lost[j] + gained[j]]
    shown = [
        {"name": names[j], "lost": int(lost[j]), "gained": int(gained[j])}
        for j in moving[:_N_LISTED]
    ]
    return {"shown": shown, "hidden": len(moving) - len(shown)}


def _changes(docket: Docket, names: list[str], changed: NDArray[np.bool_]) -> dict[str, Any]:
    """The most frequent changes from verdict to appeal: class indices, names and count."""
    pairs = np.stack([docket.verdict[changed], docket.appeal[changed]], axis=1)
    found, counts = np.unique(pairs, axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_N_LISTED]
    shown = [
        {"from": names[a], "to": names[b], "pair": [a, b], "count": int(counts[k])}
        for k, (a, b) in zip(order.tolist(), found[order].tolist(), strict=True)
    ]
    left = int(counts.sum()) - sum(change["count"] for change in shown)
    return {"shown": shown, "hidden": len(found) - len(shown), "left": left}


def _known(docket: Docket) -> NDArray[np.bool_]:
    truth = np.asarray(docket.truth, dtype=object).tolist()
    return ~np.fromiter(map(is_missing, truth), dtype=bool, count=len(truth))


def _right(docket: Docket, labels: NDArray[Any]) -> NDArray[np.bool_]:
    names = docket.class_names.astype(object)
    return np.asarray(names[labels] == np.asarray(docket.truth, dtype=object), dtype=bool)


def _truth(docket: Docket, heard: NDArray[np.bool_]) -> dict[str, Any] | None:
    """Shares of right verdicts and appeals, where the truth is known."""
    if docket.truth is None or not (known := _known(docket) & heard).any():
        return None
    verdict, appeal = (_right(docket, each)[known] for each in (docket.verdict, docket.appeal))
    return {
        "n": int(known.sum()),
        "verdict": round(100 * float(verdict.mean()), 1),
        "appeal": round(100 * float(appeal.mean()), 1),
        "rectified": int((~verdict & appeal).sum()),
        "spoiled": int((verdict & ~appeal).sum()),
    }


def _reliability(docket: Docket, contested: NDArray[np.bool_], after: NDArray[Any]) -> Any:
    """Confidence, share of right labels and count of ten equal bins of confidence."""
    if docket.truth is None or not (known := _known(docket) & contested).any():
        return None
    confidence, right = after[known], _right(docket, docket.appeal)[known]
    bins = np.minimum((confidence * 10).astype(int), 9)
    return [
        [
            round(float(confidence[bins == b].mean()), 3),
            round(float(right[bins == b].mean()), 3),
            int((bins == b).sum()),
        ]
        for b in np.unique(bins)
    ]


def _unique(ids: Sequence[Any]) -> list[str]:
    """Return names as texts; those that occur more than once get the number of their row."""
    names = [str(name) for name in ids]
    counts = Counter(names)
    return [f"{name} #{i}" if counts[name] > 1 else name for i, name in enumerate(names)]


def _answers(answers: Mapping[str, Any], n: int) -> dict[str, Any]:
    """Sort answers by row."""
    rows = np.asarray(answers["row"])
    order = np.argsort(rows, kind="stable")
    return {
        "people": [str(person) for person in answers["people"]],
        "starts": np.searchsorted(rows[order], np.arange(n + 1)),
        "person": np.asarray(answers["person"])[order],
        "label": np.asarray(answers["label"])[order],
    }


def _shares(values: NDArray[Any], starts: NDArray[Any], owner: NDArray[Any]) -> NDArray[Any]:
    """Divide candidate entries by their sum over the row; zero where that is zero."""
    totals = np.add.reduceat(values, starts[:-1])
    return np.asarray(values / np.maximum(totals, np.finfo(values.dtype).tiny)[owner])


def _hash(ids: Any, classes: list[str], starts: NDArray[Any], labels: NDArray[Any]) -> str:
    digest = hashlib.sha256(repr((ids, classes)).encode("utf-8", "replace"))
    digest.update(np.ascontiguousarray(starts, "<u4").tobytes())
    digest.update(np.ascontiguousarray(labels, "<u4").tobytes())
    return f"sha256:{digest.hexdigest()[:32]}"


# -- numbers as bytes ---------------------------------------------------------------------


def pack(data: Any, name: str = "") -> Any:
    """Write the arrays of a dict as base64 of the smallest whole numbers that hold them.

    Numbers with a fraction lie between 0 and 1 and become whole numbers of 1/10000, those of
    the rounds of 1/255.
    """
    if isinstance(data, Mapping):
        return {key: pack(value, key) for key, value in data.items()}
    if not isinstance(data, np.ndarray):
        return data
    packed: dict[str, Any] = {"shape": list(data.shape)}
    if data.dtype.kind == "f":
        packed["levels"] = _ROUND_LEVELS if name == "rounds" else _LEVELS
        data = np.rint(np.clip(np.nan_to_num(data), 0, 1) * packed["levels"])
    least, most = (int(f(initial=0)) for f in (data.min, data.max))
    kinds = ("u1", "u2", "u4") if least >= 0 else ("i4",)
    packed["type"] = next(k for k in kinds if most <= np.iinfo(k).max)
    content = np.ascontiguousarray(data, "<" + packed["type"]).tobytes()
    return packed | {"bytes": base64.b64encode(content).decode("ascii")}


def unpack(packed: Mapping[str, Any]) -> NDArray[Any]:
    """Return the array of whole numbers that `pack` wrote."""
    content = base64.b64decode(packed["bytes"])
    return np.frombuffer(content, "<" + packed["type"]).reshape(packed["shape"])
