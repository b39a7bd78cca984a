"""Why a row has its label: the score of every label as a sum of named parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from appellate._text import printable

Numbers = NDArray[np.float64]

MOST_SHOWN = 6  # labels, and similar rows, that are shown
_PARTS = 12  # parts that are shown; further ones are summed up
_FAINT = 0.001  # confidence below which a label is not shown, unless it is one of the first two
_FLAT = 1e-8  # a part that differs less between the shown labels is not shown
_DECIMALS = 7  # of a number on a page, which then equals the model's to 1e-6
_UNHEARD = 0.005  # weight below which a member is not shown
_WIDTH = 48  # characters of a name in the table


@dataclass(frozen=True, eq=False)
class Part:
    """One term of the sum.

    Attributes
    ----------
    name : str
        What it is, such as ``"w11 said cat"``.
    values : ndarray, shape (l,)
        What every label gains by it, as a logarithm; minus infinity rules a label out.
    annotator : int or None
        Number of the annotator whose answer it is.
    """

    name: str
    values: Numbers
    annotator: int | None = None


@dataclass(frozen=True, eq=False)
class Member:
    """What one member of a jury says of the row, next to the sum.

    Attributes
    ----------
    name : str
        What it is called.
    weight : float
        Its part in the mixture.
    probabilities : ndarray, shape (l,)
        Probabilities of the candidates, by a fit without the row's own target; NaN elsewhere.
    """

    name: str
    weight: float
    probabilities: Numbers


@dataclass(frozen=True, eq=False)
class Neighbor:
    """A similar row.

    Attributes
    ----------
    row : int
        Its number among the training rows.
    weight : float
        By which its target counts in the leave-one-out score; the weights of all other rows sum
        to one.
    label : object
        Its label.
    name : str
        What it is called; its number if it has no name.
    """

    row: int
    weight: float
    label: Any
    name: str


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """The score of a row as a sum; its softmax is the confidence. Printed as a table.

    Attributes
    ----------
    row : int
        Number of the training row.
    classes : ndarray, shape (l,)
        Class names.
    parts : sequence of Part
        The terms of the sum.
    confidence : ndarray, shape (l,)
        What the model reports.
    label : object
        The label of the row.
    members : sequence of Member
        What the members of a jury say, if it was kept.
    neighbors : sequence of Neighbor
        The most similar rows, if they are known.
    name : str
        What the row is called.

    Examples
    --------
    >>> import numpy as np
    >>> looks, said = np.array([1.0, 0.0]), np.array([-2.0, 0.0])
    >>> parts = [Part("features", looks), Part("w1 said dog", said)]
    >>> Explanation(0, np.array(["cat", "dog"]), parts, np.array([0.269, 0.731]), "dog")
    Row 0: dog, confidence 0.73
                    dog    cat
    features      -0.50  +0.50
    w1 said dog   +1.00  -1.00
    sum           +0.50  -0.50
    confidence     0.73   0.27
    """

    row: int
    classes: NDArray[Any]
    parts: Sequence[Part]
    confidence: Numbers
    label: Any
    members: Sequence[Member] = ()
    neighbors: Sequence[Neighbor] = ()
    name: str = field(default="")

    @property
    def scores(self) -> Numbers:
        """Sum of the parts, (l,): its softmax is the confidence."""
        return np.sum([part.values for part in self.parts], axis=0)

    def shown(self, most: int = MOST_SHOWN) -> list[int]:
        """Class indices of the labels worth showing: possible, the most probable first.

        At most so many, and from the third on only with a confidence of 0.001 or more. The row's
        own label is always one of them: if a cost decides, it need not be among the most probable.
        """
        order = np.argsort(-self.confidence, kind="stable")
        order = order[np.isfinite(self.scores[order])]
        kept = order[: max(2, int(np.sum(self.confidence[order] >= _FAINT)))]
        shown = [int(j) for j in kept[:most]]
        own = self._own()
        if own is None or own in shown or not np.isfinite(self.scores[own]):
            return shown
        return [*shown[: most - 1], own]

    def _own(self) -> int | None:
        """Class index of the row's label; None if it is not a class."""
        return next(
            (j for j, name in enumerate(self.classes.tolist()) if name == self.label), None
        )

    def table(self, labels: Sequence[int]) -> list[tuple[Part, Numbers]]:
        """Return the parts that tell these labels apart, with their values less the mean.

        At most twelve; if there are more, annotators that say little are summed up.
        """
        rows = []
        for part in self.parts:
            values = part.values[list(labels)]
            values = values - values.mean()
            if np.ptp(values) >= _FLAT:
                rows.append((part, values))
        answers = [k for k, (part, _) in enumerate(rows) if part.annotator is not None]
        surplus = len(rows) - _PARTS
        if surplus > 0 and len(answers) > surplus:
            weak = sorted(answers, key=lambda k: float(np.ptp(rows[k][1])))[: surplus + 1]
            total = np.sum([rows[k][1] for k in weak], axis=0)
            place = max(weak)
            rows[place] = Part(f"{len(weak)} other answers", total), total
            rows = [row for k, row in enumerate(rows) if k == place or k not in weak]
        return rows

    def to_page(self) -> dict[str, Any]:
        """Return what a review page shows, in JSON's types, to seven decimals.

        ``labels`` are class indices, at most six, with the row's own label; ``parts`` have a
        ``name`` and ``values``, one per shown label, and the number of the ``annotator`` if it is
        an answer; ``neighbours`` are pairs of row and weight, at most six; ``members`` are the
        probabilities by every member of `heard`, if there are any.
        """
        labels = self.shown()
        parts: list[dict[str, Any]] = []
        for part, values in self.table(labels):
            parts.append(
                {"name": part.name, "values": [round(float(v), _DECIMALS) for v in values]}
            )
            if part.annotator is not None:
                parts[-1]["annotator"] = part.annotator
        near = [[each.row, round(each.weight, _DECIMALS)] for each in self.neighbors[:MOST_SHOWN]]
        page = {"parts": parts, "labels": labels, "neighbours": near}
        said = [np.round(each.probabilities[labels], _DECIMALS).tolist() for each in self.heard()]
        return page | ({"members": said} if said else {})

    def heard(self) -> list[Member]:
        """Return the members of a jury that are shown: those with a weight of 0.005 or more."""
        return [each for each in self.members if each.weight >= _UNHEARD]

    def named(self, names: Sequence[Any]) -> Explanation:
        """Return the same with the names of all rows."""
        near = [replace(each, name=str(names[each.row])) for each in self.neighbors]
        return replace(self, name=str(names[self.row]), neighbors=near)

    def __repr__(self) -> str:
        """Write the sum as a table: one line per part, one column per label."""
        labels = self.shown()
        heads = [_short(self.classes[j]) for j in labels]
        confidence = self.confidence[labels]
        lines = [
            (_short(part.name, _WIDTH), [f"{value:+.2f}" for value in values])
            for part, values in self.table(labels)
        ]
        total = self.scores[labels]
        lines.append(("sum", [f"{value:+.2f}" for value in total - total.mean()]))
        lines.append(("confidence", [f"{value:.2f}" for value in confidence]))
        for each in self.heard():
            said = [f"{value:.2f}" for value in each.probabilities[labels]]
            lines.append((f"  {_short(each.name, _WIDTH)} x {each.weight:.2f}", said))
        at = self._own()
        sure = "" if at is None else f", confidence {self.confidence[at]:.2f}"
        left = max(len(name) for name, _ in lines) + 1
        widths = [max(6, len(head)) + 1 for head in heads]
        pairs = list(zip(heads, widths, strict=True))
        out = [f"Row {self.name or self.row}: {self.label}{sure}"]
        if len(labels) == 1:
            out[0] += ", the only possible label"
        out.append(" " * left + "".join(f"{head:>{width}}" for head, width in pairs))
        for name, cells in lines:
            if name.startswith("  ") and not out[-1].startswith("  "):
                out.append("members, by a fit without this row's own target:")
            written = zip(cells, widths, strict=True)
            out.append(f"{name:{left}}" + "".join(f"{cell:>{width}}" for cell, width in written))
        if self.neighbors:
            near = ", ".join(f"{n.name} {n.label} ({n.weight:.2f})" for n in self.neighbors)
            out.append(f"similar rows: {near}")
        return "\n".join(map(printable, out))


def _short(name: Any, width: int = 16) -> str:
    text = str(name)
    return text if len(text) <= width else text[: width - 1] + "…"


def read_rows(rows: ArrayLike, n: int) -> list[int]:
    """Return the numbers of training rows that were asked for.

    Parameters
    ----------
    rows : int, array-like of int, or array-like of bool, shape (n,)
        Numbers counted from 0, or a mask.
    n : int
        Number of training rows.

    Raises
    ------
    ValueError
        If they are not such numbers, or a row does not exist.

    Examples
    --------
    >>> read_rows(-1, 5), read_rows([True, False, True], 3)
    ([4], [0, 2])
    """
    asked = np.atleast_1d(np.asarray(rows))
    if asked.dtype == bool and asked.shape == (n,):
        asked = np.flatnonzero(asked)
    if asked.ndim != 1 or (asked.size and asked.dtype.kind not in "iu"):
        raise ValueError(
            f"rows has dtype {asked.dtype} and shape {asked.shape}. Give the number of a training "
            f"row, several numbers, or a mask of {n} booleans."
        )
    outside = [int(i) for i in asked if not -n <= i < n]
    if outside:
        raise ValueError(f"Row {outside[0]} does not exist. The {n} rows go from 0 to {n - 1}.")
    return [int(i) % n for i in asked]


def log(values: Any) -> Numbers:
    """Return logarithms; a probability that is zero by rounding counts as 1e-300."""
    return np.asarray(np.log(np.maximum(np.asarray(values, dtype=np.float64), 1e-300)))


def plain(value: Any) -> Any:
    """Return a Python object instead of a scalar of numpy."""
    return value.item() if isinstance(value, np.generic) else value
