"""The review page: a plain dict of all it shows, rendered as one file, and read back."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate._files import MemberError, parse_json, read_member, write_file
from appellate._palette import DARK, LIGHT, as_css
from appellate._text import import_extra
from appellate.candidates.names import is_missing, scalars
from appellate.docket import Docket, free_separator

__all__ = ["page_data", "read_page", "render_page", "summarize", "write_page"]

FORMAT = 3  # of the dict; a page of another format is refused by the server
#: Keys that a dict has only where there is something to show.
OPTIONAL = (
    "answers", "annotators", "audit", "command", "features", "first", "found", "groups", "images",
    "members", "neighbors", "outside", "rounds", "scores", "suspicion", "texts", "truth", "votes",
    "warnings", "why",
)  # fmt: skip
_ARRAYS = ("neighbors", "votes", "suspicion", "rounds")
CLOSE = 0.10  # a lead below this is a close call
SHOWN_FROM = 0.05  # a label outside the candidates is shown from this confidence on
SUSPECT = 0.5  # a suspicion from here on makes a row suspected
_LARGEST_PAGE = 1 << 30
_N_BINS = 20
_N_LISTED = 12  # labels and changes in the summary; the others are summed up in words
_LEVELS, _ROUND_LEVELS = 10_000, 255  # of confidences in the page, and of those of the rounds
_SCRIPTS = (
    "rows.js", "decisions.js", "address.js", "list.js", "charts.js", "overview.js", "item.js",
    "people.js", "labels.js", "files.js", "start.js",
)  # fmt: skip


def page_data(
    docket: Docket,
    *,
    title: str = "",
    table: str = "",
    first: str = "",
    candidates: Any = None,
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
    differing: int | None = None,
    suspicion: Any = None,
    suspicion_orders: bool = False,
    features: Sequence[Mapping[str, Any]] | None = None,
    scores: Sequence[Mapping[str, Any]] | None = None,
    expected_wrong: float | None = None,
    found: Sequence[str] | None = None,
    warnings: Sequence[str] = (),
    why: Sequence[Mapping[str, Any] | None] | None = None,
    members: Sequence[Mapping[str, Any]] | None = None,
    command: str = "",
) -> dict[str, Any]:
    """Collect what the review page of a docket shows.

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
    first : str, default=""
        What gave the first labels, such as ``"base alone"``. Empty if there is nothing to
        compare the final labels with but the majority vote.
    candidates : ndarray of bool, shape (n, l), default=None
        Labels that a decision can name as a candidate of the row; by default the docket's. Other
        labels are shown next to them: the first label, the final label, and all that have a
        confidence of .05 or more.
    neighbors : ndarray of int, shape (n, k), default=None
        Nearest other rows of every row.
    texts, images, groups : sequence of str, default=None
        A text, the path of an image (relative to the page) and the name of a group, for every
        row; empty for none.
    suggested, audit : sequence of int, default=()
        Rows to review first, in this order, and those among them that were drawn at random.
    decisions : mapping of int to (str, str), default=None
        Earlier decisions by row: the kind and the label (`Decisions.by_row`).
    answers : mapping, default=None
        Answers: ``people`` (names), and of every answer ``row``, ``person`` (an index into
        annotators) and ``label`` (a class index).
    annotators : sequence of mappings, default=None
        One per annotator, in the order of ``answers["people"]``: ``name``, ``answers`` (how
        many), ``agreement`` (with the others) and ``reliability`` (estimated), both 0 to 1 or
        None; ``low`` and ``high``, the interval of the reliability.
    votes : ndarray of int, shape (n,), default=None
        Majority vote as class index; -1 for none and for a tie.
    differing : int, default=None
        How many final labels differ from the majority vote.
    suspicion : ndarray, shape (n,), default=None
        How likely none of the candidates is true.
    suspicion_orders : bool, default=False
        Suspicion is an order, not a probability: the page shows ranks instead of shares.
    features : sequence of mappings, default=None
        What was learned from: ``name``, and where known ``kind``, ``importance`` (0 to 1).
    scores : sequence of mappings, default=None
        Baselines, if there are true labels: ``name`` and ``accuracy`` (0 to 1).
    expected_wrong : float, default=None
        How many labels calibrated confidences expect to be wrong, of all that are not excluded.
    found : sequence of str, default=None
        Sentences about the candidate sets, such as those of
        `appellate.evidence.ambiguity.describe`.
    warnings : sequence of str, default=()
        Advice to the reader.
    why : sequence of mappings, default=None
        The sum behind each row's final label, or None for a row. ``labels``: class indices.
        ``parts``: ``name`` and ``values``, a number for each of these labels; the parts add up to
        the row's log score. ``neighbours``: pairs of a row and its weight. ``members``: for
        every member of a jury its probability of each of these labels.
    members : sequence of mappings, default=None
        Members of a jury: ``name`` and ``weight``.
    command : str, default=""
        Command that runs again with the decisions; by default a line of Python.

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
    named = docket.candidates if candidates is None else np.asarray(candidates)
    owner, labels = np.nonzero(named)
    starts = np.searchsorted(owner, np.arange(n + 1))
    outcomes, outcome = np.unique(docket.outcome.astype(np.str_), return_inverse=True)
    classes = [str(name) for name in scalars(docket.class_names)]
    ids = _distinct_ids(docket)
    decided = {int(i): tuple(decision) for i, decision in (decisions or {}).items()}
    data: dict[str, Any] = {
        "format": FORMAT,
        "title": title,
        "table": table or _hash_table(ids, classes, starts, labels),
        "n": n,
        "classes": classes,
        "separator": free_separator(classes),
        "ids": ids,
        "starts": starts,
        "labels": labels,
        "before": docket.verdict_confidence[owner, labels],
        "after": docket.appeal_confidence[owner, labels],
        "history": docket.label_history,
        "outcomes": outcomes.tolist(),
        "outcome": outcome,
        "contested": docket.contested.astype(np.uint8),
        "margin": docket.margin,
        "suggested": [int(i) for i in suggested],
        "decisions": {str(i): list(decision) for i, decision in decided.items()},
        "summary": summarize(docket, {i: label for i, (_, label) in decided.items()}),
    }
    optional: dict[str, Any] = {
        "first": first or None,
        "outside": _outside(docket, named),
        "audit": [int(i) for i in audit] or None,
        "texts": texts,
        "images": images,
        "groups": None if groups is None else map(str, groups),
        "neighbors": neighbors,
        "votes": votes,
        "suspicion": suspicion,
        "answers": None if answers is None else _sort_answers(answers, n),
        "annotators": annotators,
        "features": features,
        "scores": scores,
        "found": found or None,
        "warnings": warnings or None,
        "why": why,
        "members": members,
        "command": command or None,
    }
    if docket.rounds is not None:
        optional["rounds"] = _shares_by_round(docket.rounds, owner, labels, starts)
    if docket.truth is not None:
        truth = np.asarray(docket.truth, dtype=object).tolist()
        optional["truth"] = [None if is_missing(t) else str(t) for t in truth]
    for name, value in optional.items():
        if value is not None:
            kept = value if isinstance(value, (dict, str)) else list(value)
            data[name] = np.asarray(value) if name in _ARRAYS else kept
    data["suspicion_orders"] = suspicion_orders
    if suspicion is not None and not suspicion_orders:
        data["summary"]["suspected"] = int((np.asarray(suspicion) >= SUSPECT).sum())
    if expected_wrong is not None:
        data["summary"]["expected_wrong"] = round(float(expected_wrong))
    if differing is not None:
        data["summary"]["differing"] = int(differing)
    if votes is not None:
        tied = (np.asarray(votes) < 0) & docket.candidates.any(axis=1)
        data["summary"]["ties"] = int(tied.sum())
    return data


def _distinct_ids(docket: Docket) -> list[str] | None:
    """Return a different name for every row, or None if the docket has no names.

    A name that occurs more than once gets the number of its row.
    """
    if docket.ids is None:
        return None
    names = [str(name) for name in np.asarray(docket.ids).tolist()]
    counts = Counter(names)
    return [f"{name} #{i}" if counts[name] > 1 else name for i, name in enumerate(names)]


def _hash_table(
    ids: list[str] | None,
    classes: list[str],
    starts: NDArray[np.intp],
    labels: NDArray[np.intp],
) -> str:
    """Return a hash of names, labels and candidates, for a page whose table has none."""
    digest = hashlib.sha256(repr((ids, classes)).encode("utf-8", "replace"))
    for each in (starts, labels):
        digest.update(np.ascontiguousarray(each, "<u4").tobytes())
    return f"sha256:{digest.hexdigest()[:32]}"


def _sort_answers(answers: Mapping[str, Any], n: int) -> dict[str, Any]:
    """Return annotators' answers sorted by row, with the first answer of each of n rows."""
    rows = np.asarray(answers["row"])
    order = np.argsort(rows, kind="stable")
    return {
        "people": [str(person) for person in answers["people"]],
        "starts": np.searchsorted(rows[order], np.arange(n + 1)),
        "person": np.asarray(answers["person"])[order],
        "label": np.asarray(answers["label"])[order],
    }


def _shares_by_round(
    rounds: Sequence[NDArray[Any]],
    owner: NDArray[np.intp],
    labels: NDArray[np.intp],
    starts: NDArray[np.intp],
) -> list[NDArray[Any]]:
    """Return the confidences of the candidates after each round, as shares of their row."""
    shares = []
    for confidence in rounds:
        part = confidence[owner, labels]
        total = np.add.reduceat(part, starts[:-1])[owner]
        shares.append(part / np.maximum(total, np.finfo(part.dtype).tiny))
    return shares


def _outside(docket: Docket, named: NDArray[np.bool_]) -> dict[str, NDArray[Any]] | None:
    """Return the labels to show that are not candidates, with their confidence."""
    rows, shown = np.arange(len(named)), docket.appeal_confidence >= SHOWN_FROM
    for labels in (docket.verdict, docket.appeal):
        shown[rows, labels] = True
    owner, labels = np.nonzero(shown & ~named)
    if not len(owner):
        return None
    return {
        "starts": np.searchsorted(owner, np.arange(len(named) + 1)),
        "labels": labels,
        "before": docket.verdict_confidence[owner, labels],
        "after": docket.appeal_confidence[owner, labels],
    }


def summarize(docket: Docket, decided: Mapping[int, str] | None = None) -> dict[str, Any]:
    """Count what happened: the numbers behind the sentences and plots of the page.

    Parameters
    ----------
    docket : Docket
        The table and its confidences.
    decided : mapping of int to str, default=None
        Labels that a review decided, by row: these rows are neither unchanged nor changed. The
        label of a row that the review excluded is empty: it is counted as such and nowhere else.

    Returns
    -------
    dict
        In JSON's types: ``n``, ``n_classes``, ``sizes`` (rows by number of candidates),
        ``contested`` (rows whose label could change), ``single`` (rows with one candidate that
        could not), ``close``, ``upheld`` and ``overturned`` (of the contested rows), ``outside``
        (rows with a label that is not among the answers), ``unanswered``, ``reviewed``,
        ``excluded``, ``histogram`` (confidence before and after), ``classes`` (gains and
        losses), ``changes`` (from, to, count), ``truth`` and ``reliability`` where known,
        ``cost`` by which the labels were decided.
    """
    n = len(docket.candidates)
    rows = np.arange(n)
    names = [str(name) for name in scalars(docket.class_names)]
    sizes = docket.candidates.sum(axis=1)
    decided = decided or {}
    heard, open_ = np.ones(n, dtype=bool), np.ones(n, dtype=bool)
    heard[[i for i, label in decided.items() if not label]] = False
    open_[list(decided)] = False
    contested, outcome = docket.contested & open_, docket.outcome
    changed = (outcome == "changed") & open_
    before = docket.verdict_confidence[rows, docket.verdict]
    after = docket.appeal_confidence[rows, docket.appeal]
    edges = np.linspace(0, 1, _N_BINS + 1)
    n_contested = int(contested.sum())
    truth = reliability = None
    if docket.truth is not None:
        truth, reliability = _compare(docket, heard, contested, decided)
    # Rows of each class before and after, the largest movers first.
    pairs = np.stack([docket.verdict[changed], docket.appeal[changed]], axis=1)
    lost, gained = (np.bincount(each, minlength=len(names)) for each in pairs.T)
    order = np.argsort(-(lost + gained), kind="stable")
    moving = [int(j) for j in order if lost[j] + gained[j]]
    # The most frequent changes from first to final label.
    found, counts = np.unique(pairs, axis=0, return_counts=True)
    most = np.argsort(-counts, kind="stable")[:_N_LISTED]
    return {
        "n": n,
        "n_classes": len(names),
        "contested": n_contested,
        "suspected": 0,
        "ties": 0,
        "single": int(((sizes == 1) & ~docket.contested).sum()),
        "close": int((contested & (np.rint(docket.margin * _LEVELS) < CLOSE * _LEVELS)).sum()),
        "mean_candidates": round(float(sizes.mean()), 2),
        "sizes": [[int(s), int(c)] for s, c in enumerate(np.bincount(sizes)) if c],
        "upheld": int(((outcome == "unchanged") & contested).sum()),
        "overturned": int(changed.sum()),
        "outside": int(((outcome == "outside the answers") & open_).sum()),
        "unanswered": int(((outcome == "unanswered") & open_).sum()),
        "reviewed": int((heard & ~open_).sum()),
        "excluded": n - int(heard.sum()),
        "mean_before": round(float(before[contested].mean()), 3) if n_contested else 1.0,
        "mean_after": round(float(after[contested].mean()), 3) if n_contested else 1.0,
        "histogram": {
            "before": np.histogram(np.clip(before[contested], 0, 1), edges)[0].tolist(),
            "after": np.histogram(np.clip(after[contested], 0, 1), edges)[0].tolist(),
        },
        "classes": {
            "shown": [
                {"name": names[j], "lost": int(lost[j]), "gained": int(gained[j])}
                for j in moving[:_N_LISTED]
            ],
            "hidden": max(0, len(moving) - _N_LISTED),
        },
        "changes": {
            "shown": [
                {"from": names[a], "to": names[b], "pair": [a, b], "count": int(count)}
                for (a, b), count in zip(found[most].tolist(), counts[most], strict=True)
            ],
            "hidden": len(found) - len(most),
            "left": int(counts.sum() - counts[most].sum()),
        },
        "truth": truth,
        "reliability": reliability,
        "cost": docket.cost_name,
        "rounds": len(docket.label_history) - 1,
        "moved": [int(c) for c in (np.diff(docket.label_history, axis=0) != 0).sum(axis=1)],
    }


def _compare(
    docket: Docket,
    heard: NDArray[np.bool_],
    contested: NDArray[np.bool_],
    decided: Mapping[int, str],
) -> tuple[dict[str, Any] | None, list[Any] | None]:
    """Compare with the true labels, if they are known.

    Shares of correct first and final labels, of rows that have candidates; rows without any are
    counted apart. And of ten equal bins of confidence the mean, the share of correct labels and
    the count.
    """
    truth = np.asarray(docket.truth, dtype=object)
    known = ~np.fromiter(map(is_missing, truth.tolist()), dtype=bool, count=len(truth))
    known &= heard
    after = docket.appeal_confidence[np.arange(len(truth)), docket.appeal]
    verdict, appeal = (
        docket.class_names.astype(object)[labels] for labels in (docket.verdict, docket.appeal)
    )
    spelled = {str(name): name for name in scalars(docket.class_names)}
    for i, label in decided.items():
        appeal[i] = spelled.get(label, label)
    before, right = (np.asarray(labels == truth, dtype=bool) for labels in (verdict, appeal))
    answered = docket.candidates.any(axis=1)
    shares = None
    bins = None
    if (some := known & answered).any():
        shares = {
            "n": int(some.sum()),
            "verdict": round(100 * float(before[some].mean()), 1),
            "appeal": round(100 * float(right[some].mean()), 1),
            "rectified": int((~before & right)[some].sum()),
            "spoiled": int((before & ~right)[some].sum()),
            "unanswered": int((known & ~answered).sum()),
            "unanswered_right": int((known & ~answered & right).sum()),
        }
    if (some := known & contested).any():
        tenth = np.minimum((after[some] * 10).astype(int), 9)
        bins = [
            [*(round(float(each[some][tenth == b].mean()), 3) for each in (after, right)),
             int((tenth == b).sum())]
            for b in np.unique(tenth)
        ]  # fmt: skip
    return shares, bins


def write_page(data: Mapping[str, Any], path: str | os.PathLike[str]) -> Path:
    """Write the review page of a docket to a file, which appears whole or not at all.

    Parameters
    ----------
    data : dict
        What it shows, as `page_data` makes it.
    path : str or path
        The file.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from appellate import PLCPClassifier, SUREClassifier
    >>> from appellate.review.page import page_data, read_page
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> docket = PLCPClassifier(SUREClassifier()).fit(X, y).docket(output="docket")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_page(page_data(docket, title="animals"), f"{folder}/docket.html")
    ...     read_page(path)["title"]
    'animals'
    """
    return write_file(path, render_page(data))


def render_page(data: Mapping[str, Any], server: Mapping[str, Any] | None = None) -> str:
    """Render the review page of a docket.

    Parameters
    ----------
    data : dict
        What it shows, as `page_data` or `read_page` return it.
    server : mapping, default=None
        Server of the page, if it is served: ``endpoint`` of decisions, ``token``, ``folder``,
        which names the folder in the browser's storage, and ``explains``, whether it explains
        rows whose explanation is not on the page.

    Returns
    -------
    str
        The page.
    """
    template, script, style = _parts()
    from markupsafe import Markup  # which comes with jinja2

    hashes = (hashlib.sha256(text.encode()).digest() for text in (script, style))
    script_hash, style_hash = (f"'sha256-{base64.b64encode(h).decode()}'" for h in hashes)
    policy = (
        f"default-src 'none'; script-src {script_hash}; style-src {style_hash}; "
        f"img-src 'self' data:{' file:' if server is None else ''}; "
        f"connect-src '{'none' if server is None else 'self'}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return str(
        template.render(
            data=dict.fromkeys(OPTIONAL) | dict(data),
            summary=data["summary"],
            policy=policy,
            script=Markup(script),
            style=Markup(style),
            json=Markup(as_json(pack({**data, "close": CLOSE, "suspect": SUSPECT}))),
            server=Markup(as_json(server)),
            served=server is not None,
        )
    )


@cache
def _parts() -> tuple[Any, str, str]:
    """Return the template, the script and the style of every page."""
    jinja2 = import_extra("jinja2", "The review page", "report")
    home = files("appellate.review") / "page"

    def read(name: str) -> str:
        return (home / name).read_text(encoding="utf-8")

    script = '(() => {\n"use strict";\n' + "\n".join(map(read, _SCRIPTS)) + "\n})();"
    dark = f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {as_css(DARK)} }} }}"
    style = f":root {{ {as_css(LIGHT)} }}\n{dark}\n{read('page.css')}"
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["whole_options"] = _whole_options
    return environment.from_string(read("page.html.jinja")), script, style


def _whole_options(text: str) -> Any:
    """Escape a text, and keep options such as ``--image`` whole where a line is broken."""
    from markupsafe import Markup, escape

    marked = r'<span class="option">\g<0></span>'
    return Markup(re.sub(r"--[a-z][a-z-]*", marked, str(escape(text))))


def read_page(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the data of a page that `write_page` wrote, arrays still packed.

    Raises
    ------
    PageError
        If the file is not such a page, or is one of another version; a link is not followed.
    """
    finder, place = _Finder(), Path(path)
    try:
        finder.feed(read_member(place.parent, place.name, _LARGEST_PAGE).decode("utf-8"))
        data = parse_json("".join(finder.found))
    except MemberError as error:
        raise PageError(str(error)) from error
    except ValueError:
        data = None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise PageError(
            f"'{path}' is not a review page of this version of Appellate. Write it again with "
            "rectify."
        )
    return data


class PageError(ValueError):
    """A file that is not a review page of this version."""


class _Finder(HTMLParser):
    """Collects the content of the element that holds the data."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag == "script" and ("id", "data") in attrs

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.found.append(data)


def as_json(value: Any) -> str:
    """Write JSON that cannot end the element that holds it, nor break a line of script."""
    text = json.dumps(
        value,
        ensure_ascii=False,
        separators=(",", ":"),
        allow_nan=False,
        default=lambda number: number.item(),  # of numpy
    )
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    # A lone surrogate cannot be written as UTF-8.
    return text.encode("utf-8", "replace").decode("utf-8")


# -- numbers as bytes ---------------------------------------------------------------------


def pack(data: Any, name: str = "") -> Any:
    """Write the arrays of a dict as base64 of the smallest whole numbers that hold them.

    Numbers with a fraction lie between -1 and 1 and become whole numbers of 1/10000, those of
    the rounds of 1/255.
    """
    if isinstance(data, Mapping):
        return {key: pack(value, key) for key, value in data.items()}
    if not isinstance(data, np.ndarray):
        return data
    packed: dict[str, Any] = {"shape": list(data.shape)}
    if data.dtype.kind == "f":
        packed["levels"] = _ROUND_LEVELS if name == "rounds" else _LEVELS
        data = np.rint(np.clip(np.nan_to_num(data), -1, 1) * packed["levels"])
    least, most = (int(f(initial=0)) for f in (data.min, data.max))
    kinds = ("u1", "u2", "u4") if least >= 0 else ("i4",)
    packed["type"] = next(k for k in kinds if most <= np.iinfo(k).max)
    content = np.ascontiguousarray(data, "<" + packed["type"]).tobytes()
    return packed | {"bytes": base64.b64encode(content).decode("ascii")}


def unpack_page(packed: Mapping[str, Any]) -> NDArray[Any]:
    """Return the array of whole numbers that `pack` wrote."""
    content = base64.b64decode(packed["bytes"])
    return np.frombuffer(content, "<" + packed["type"]).reshape(packed["shape"])
