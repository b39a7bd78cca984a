"""The docket: first label, final label and outcome of every training sample, as a table."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import compress
from pathlib import Path
from typing import Any, cast

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from appellate.candidates.names import is_missing, label_vector
from appellate.evidence.costs import candidate_costs
from appellate.numerics.entries import CandidateEntries

__all__ = ["Docket"]

_SEPARATORS = ("|", ";", "\t", "\x1f")
_N_SHOWN = 10  # rows in a notebook


@dataclass(frozen=True)
class Docket:
    """First and final label of all training samples, with confidences.

    Attributes
    ----------
    candidates : ndarray of bool, shape (n, l)
        Candidate sets.
    class_names : ndarray, shape (l,)
        Names of the labels.
    verdict_confidence, appeal_confidence : ndarray, shape (n, l)
        Confidence before and after, rows on the simplex over the candidates.
    label_history : ndarray of int, shape (rounds + 1, n)
        Class index of every sample: the first label, then the label after each round.
    ids : ndarray, shape (n,), or None
        Names of the samples.
    truth : array-like, shape (n,), or None
        True labels, where known.
    rounds : sequence of ndarray, shape (n, l), or None
        Confidence of the partner after each round, if the model kept it.
    cost : ndarray, shape (l, l), or None
        Costs by which the labels were decided, the smallest 0 (`appellate.evidence.costs`).
    cost_name : str
        What they are called.

    Notes
    -----
    The table has one row per sample, in the order of training, and the columns

    ==================  ===============================================================
    id                  name of the sample
    candidates          its candidate labels, joined by the separator
    n_candidates        how many they are
    first_label         label after the first round, for PLCP by the base alone
    label               final label
    outcome             ``unchanged`` or ``changed``; a single candidate never changes
    first_confidence    confidence of the first label
    confidence          confidence of the final label
    margin              its confidence minus that of the next candidate; 1 if there is none.
                        With a cost, how much more the next candidate is expected to cost, as a
                        share of the largest cost; for 0/1 costs both are the same
    since_round         last round in which the label changed; 0 if it never changed
    truth               (only with truth) the true label
    first_correct       (only with truth) whether the first label is true; None if unknown
    correct             (only with truth) whether the final label is true; None if unknown
    ==================  ===============================================================

    Examples
    --------
    >>> from appellate import PLCPClassifier, SUREClassifier
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> docket = PLCPClassifier(SUREClassifier()).fit(X, y).docket(output="docket")
    >>> int(docket.overturned.sum()), docket.columns()["label"][:2].tolist()
    (0, ['cat', 'cat'])
    """

    candidates: NDArray[np.bool_]
    class_names: NDArray[Any]
    verdict_confidence: NDArray[Any]
    appeal_confidence: NDArray[Any]
    label_history: NDArray[np.intp]
    ids: Any = None
    truth: Any = None
    rounds: Sequence[NDArray[Any]] | None = None
    cost: NDArray[Any] | None = None
    cost_name: str = ""

    def __post_init__(self) -> None:
        """Check that there is one name and one true label per sample, if they are given."""
        for name in ("ids", "truth"):
            given = getattr(self, name)
            if given is not None and len(given) != (n := len(self.candidates)):
                raise ValueError(
                    f"{name} has {len(given)} values, but {n} samples were fitted; pass one value "
                    "per sample, in the order of training."
                )
        if self.truth is None:
            return
        # Class numbers never agree with class names, as if all were wrong.
        known = [value for value in label_vector(self.truth).tolist() if not is_missing(value)]
        names = self.class_names.tolist()
        texts, numbers = (
            [all(isinstance(v, kind) for v in values) for values in (known, names)]
            for kind in (str, int | float)
        )
        if known and ((texts[0] and numbers[1]) or (numbers[0] and texts[1])):
            raise TypeError(
                f"truth has values such as {known[0]!r}, but the classes are {names[0]!r} and so "
                "on: pass the names of the true labels, for class numbers classes_[truth]."
            )

    @cached_property
    def verdict(self) -> NDArray[np.intp]:
        """Class index of every sample's first label, (n,)."""
        return self.label_history[0]

    @cached_property
    def appeal(self) -> NDArray[np.intp]:
        """Class index of every sample's final label, (n,)."""
        return self.label_history[-1]

    @cached_property
    def overturned(self) -> NDArray[np.bool_]:
        """Whether the final label differs from the first, (n,)."""
        return self.verdict != self.appeal

    @cached_property
    def contested(self) -> NDArray[np.bool_]:
        """Whether more than one label was open to the sample, so that it could change, (n,)."""
        return np.count_nonzero(self.candidates, axis=1) > 1

    @cached_property
    def outcome(self) -> NDArray[Any]:
        """Outcome of every sample as in the table, (n,)."""
        return np.where(self.overturned, "changed", "unchanged").astype(object)

    @cached_property
    def margin(self) -> NDArray[Any]:
        """Confidence of the final label minus that of the next candidate, (n,); or their costs."""
        merits, scale = self.appeal_confidence, 1.0
        if self.cost is not None:
            entries = CandidateEntries(self.candidates)
            costs = candidate_costs(entries.gather(merits), entries, self.cost)
            scale, merits = self.cost.max() or 1, np.full_like(merits, -np.inf)
            merits[entries.rows, entries.labels] = -costs
        nobody = np.full_like(merits[:, :1], -np.inf)  # beside the only class
        second, first = np.partition(np.hstack([merits, nobody]), -2, axis=1)[:, -2:].T
        alone = np.count_nonzero(self.candidates, axis=1) == 1
        return np.where(alone, 1, (first - second) / scale).astype(merits.dtype)

    def columns(self, separator: str = "|") -> dict[str, NDArray[Any]]:
        """Return the table as a dict of arrays, one per column."""
        n = len(self.candidates)
        rows = np.arange(n)
        names = self.class_names
        labels = list(map(str, names.tolist()))
        glue = free_separator(labels, separator)
        sets = [glue.join(compress(labels, row)) for row in self.candidates.tolist()]
        differs = self.label_history != self.appeal  # (rounds + 1, n)
        last = len(differs) - 1 - np.argmax(differs[::-1], axis=0)
        table = {
            "id": rows if self.ids is None else np.asarray(self.ids),
            "candidates": np.array(sets, dtype=object),
            "n_candidates": np.count_nonzero(self.candidates, axis=1),
            "first_label": names[self.verdict],
            "label": names[self.appeal],
            "outcome": self.outcome,
            "first_confidence": self.verdict_confidence[rows, self.verdict],
            "confidence": self.appeal_confidence[rows, self.appeal],
            "margin": self.margin,
            "since_round": np.where(differs.any(axis=0), last + 1, 0),
        }
        if self.truth is not None:
            truth = table["truth"] = label_vector(self.truth)
            known = ~np.fromiter(map(is_missing, truth.tolist()), dtype=bool, count=n)
            for name, label in (("first_correct", "first_label"), ("correct", "label")):
                right = np.asarray(table[label] == truth, dtype=bool)
                if not known.all():
                    right = right.astype(object)
                    right[~known] = None
                table[name] = right
        return table

    def to_frame(self, backend: str | None = None, *, separator: str = "|") -> Any:
        """Return the table as a pandas or polars data frame, or as a dict of arrays.

        Parameters
        ----------
        backend : {"pandas", "polars", "dict"} or None, default=None
            None takes whichever of pandas and polars is installed, else a dict.
        separator : str, default="|"
            Between the labels in the column of candidates; where a label contains it,
            the first of ``;``, tab and the ASCII unit separator that no label contains.
        """
        if backend not in (None, "pandas", "polars", "dict"):
            raise ValueError(
                f"output={backend!r} is not known; choose 'auto', 'pandas', 'polars' or 'dict'."
            )
        backend = backend or next(filter(importlib.util.find_spec, ("pandas", "polars")), "dict")
        columns = self.columns(separator)
        if backend == "dict":
            return columns
        lists = {name: _plain(column) for name, column in columns.items()}
        return nw.from_dict(lists, backend=cast(Any, backend)).to_native()

    def to_html(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write the docket as one self-contained page to look at and to review.

        Parameters
        ----------
        path : str or path
            The file to write.
        **options
            Title, neighbours, texts and images, see `appellate.review.page_data`.

        Returns
        -------
        Path
            The file.
        """
        review: Any = importlib.import_module("appellate.review")  # it lies above this module
        return Path(review.write_page(review.page_data(self, **options), path))

    def _repr_html_(self) -> str:
        """Show a summary and the first rows in a notebook."""
        table = {name: column[:_N_SHOWN] for name, column in self.columns().items()}
        head = "".join(f"<th>{escape(name)}</th>" for name in table)
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(_short(cell))}</td>" for cell in row) + "</tr>"
            for row in zip(*table.values(), strict=True)
        )
        n, changed = len(self.candidates), int(np.count_nonzero(self.overturned))
        return (
            f"<p>Docket of {n} samples: {changed} labels changed, {n - changed} unchanged.</p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
            + (f"<p>{n - _N_SHOWN} more rows</p>" if n > _N_SHOWN else "")
        )


def find_runner_up(
    confidence: NDArray[Any], labels: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return the likeliest label except the given one of every row, and its confidence.

    With a single class there is no other label: its confidence is NaN.

    Examples
    --------
    >>> second, share = find_runner_up(np.array([[0.5, 0.2, 0.3]]), np.array([1]))
    >>> second.tolist(), share.tolist()
    ([0], [0.5])
    """
    rows, others = np.arange(len(confidence)), np.array(confidence)
    if others.shape[1] < 2:
        return labels, np.full(len(others), np.nan)
    others[rows, labels] = -np.inf
    second = others.argmax(axis=1)
    return second, others[rows, second]


def free_separator(labels: Iterable[Any], first: str = "|") -> str:
    """Return the first separator that no label contains; the given one if there is none.

    Examples
    --------
    >>> free_separator(["cat", "dog"]), free_separator(["a|x", "b"])
    ('|', ';')
    """
    names = [str(label) for label in labels]
    free = (s for s in (first, *_SEPARATORS) if not any(s in name for name in names))
    return next(free, first)


def frame_backend(*objects: Any) -> str | None:
    """Name the data-frame library that any of the objects comes from, the first found."""
    for each in objects:
        native = nw.from_native(each, pass_through=True, allow_series=True)
        kind = getattr(native, "implementation", None)
        if kind in (nw.Implementation.PANDAS, nw.Implementation.POLARS):
            return str(kind.value)
    return None


def _plain(column: NDArray[Any]) -> Any:
    """Lists of Python objects for object columns; labels of several types become text."""
    if column.dtype.kind not in "OUST":
        return column
    values = column.tolist()
    several = len({type(v) for v in values} - {type(None)}) > 1
    return [str(v) if several and v is not None else v for v in values]


def _short(cell: Any) -> str:
    text = f"{cell:.3g}" if isinstance(cell, (float, np.floating)) else str(cell)
    return text if len(text) <= 60 else text[:59] + "…"
