"""Why items of a run have their labels: the items of the model, and what the page shows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate._text import did_you_mean
from appellate.core.explanation import Explanation

#: Bytes that the explanations take on a page, at most: some 2,000 rows of three answers each. With
#: them a page of 20,000 rows needs as much CPU time until it is ready as that of version 0.2 did.
BYTES = 1_000_000
_BLOCK = 2000  # items that are explained before their bytes are counted


def find_item(item: Any, names: Sequence[str]) -> int:
    """Return the number of an item by its name, or by this number if no item has the name.

    Examples
    --------
    >>> find_item("b", ["a", "b"]), find_item(0, ["a", "b"]), find_item(7, ["7", "8"])
    (1, 0, 0)
    """
    text = str(item)
    found = [i for i, name in enumerate(names) if name == text]
    if len(found) > 1:
        rows = ", ".join(map(str, found[:3]))
        raise ValueError(f"{len(found)} items are called {text!r}: items {rows}. Give a number.")
    if found:
        return found[0]
    number = isinstance(item, int | np.integer) and not isinstance(item, bool)
    if number and -len(names) <= item < len(names):
        return int(item) % len(names)
    raise ValueError(
        f"Cannot find the item {text!r}.{did_you_mean(text, names)} Give a name of the docket's "
        f"column 'id', or a number from 0 to {len(names) - 1}."
    )


def fitted_items(classifier: Any, outcomes: Sequence[str], labels: Sequence[Any]) -> list[int]:
    """Return the items that a classifier was fitted to.

    Candidate sets are without the items that a review excluded, or gave a label that the table
    does not have.

    Parameters
    ----------
    classifier : estimator
        Fitted.
    outcomes, labels : sequence of str
        Outcome and final label of all items.
    """
    if len(classifier.confidence_) == len(outcomes):
        return list(range(len(outcomes)))
    known = {str(name) for name in classifier.classes_.tolist()}
    return [
        i
        for i, (outcome, label) in enumerate(zip(outcomes, labels, strict=True))
        if outcome != "excluded" and (outcome != "reviewed" or str(label) in known)
    ]


def page_why(
    classifier: Any,
    outcomes: Sequence[str],
    labels: Sequence[Any],
    confidence: NDArray[np.float64],
    contested: NDArray[np.bool_],
    class_names: Sequence[Any],
    first: Iterable[int] = (),
    *,
    features: bool = True,
) -> dict[str, Any]:
    """Return why items have their labels, as the review page takes it.

    Those that the page suggests come first, then the items of the least confidence, up to a
    million bytes.

    Parameters
    ----------
    classifier : estimator
        Fitted; a classifier without `explain` has nothing to show.
    outcomes, labels : sequence of str
        Outcome and final label of every item; reviewed and excluded items are left out.
    confidence : ndarray, shape (n,)
        Confidence of every item's label.
    contested : ndarray of bool, shape (n,)
        Items whose label could change; the others have nothing to explain.
    class_names : sequence
        Labels of the page.
    first : iterable of int, default=()
        Items that the page suggests.
    features : bool, default=True
        Whether the items have features; if not, none is similar to another.

    Returns
    -------
    dict
        ``why``: by the number of the item, as text, what `Explanation.to_page` returns, with
        items of the page and its labels. ``members`` of a jury: ``name`` and ``weight``. Empty
        if there is nothing to show.
    """
    if not hasattr(classifier, "explain"):
        return {}
    kept = fitted_items(classifier, outcomes, labels)
    row_of = {item: row for row, item in enumerate(kept)}
    place = {name: j for j, name in enumerate(class_names)}
    code = [place[name] for name in classifier.classes_.tolist()]
    order = dict.fromkeys([*first, *np.argsort(confidence, kind="stable").tolist()])
    closed = {"reviewed", "excluded"}
    items = [i for i in order if contested[i] and outcomes[i] not in closed and i in row_of]
    why: dict[str, Any] = {}
    members: list[dict[str, Any]] = []
    size = 0
    for i, explained in zip(items, _explain(classifier, [row_of[i] for i in items]), strict=True):
        shown = explained.to_page()
        if len(shown["labels"]) < 2:  # nothing was to decide
            continue
        shown["labels"] = [code[j] for j in shown["labels"]]
        near = shown["neighbours"] if features else []
        shown["neighbours"] = [[kept[row], weight] for row, weight in near]
        text = json.dumps(shown, separators=(",", ":"), ensure_ascii=False)
        size += len(text.encode()) + len(f'"{i}":,')
        if size > BYTES:
            break
        why[str(i)] = shown
        members = [{"name": each.name, "weight": each.weight} for each in explained.heard()]
    found = {"why": why, "members": members}
    return {name: values for name, values in found.items() if values}


def _explain(classifier: Any, rows: Sequence[int]) -> Iterator[Explanation]:
    """Explain rows in blocks, so that no more is computed than is asked for."""
    for start in range(0, len(rows), _BLOCK):
        yield from classifier.explain(rows[start : start + _BLOCK])
