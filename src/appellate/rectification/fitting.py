"""Fit the classifier of a prepared table, and tabulate the labels of all items.

The time left is estimated from the first rounds of a fit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from appellate._added import ADDED, LABELS, SCORED, plain_columns
from appellate._text import import_extra
from appellate.candidates.names import number_groups
from appellate.core.problem import landmarks_told
from appellate.docket import Docket, find_runner_up
from appellate.methods.testimony.features import CHANCE_GAIN
from appellate.numerics.neighbours import nearest_rows
from appellate.rectification.decisions import Review, Reviewed
from appellate.rectification.features import TellStep, nobody
from appellate.rectification.preparation import Preparation

_ENOUGH = 50  # items from which on features that show no use are of none
_NEIGHBORS = 5
_CHUNK = 20_000  # rows of a block of a cluster
_LONG = 5.0  # seconds left that are worth a word
_MEASURED = 2  # rounds before the time left is told
# Columns of the docket that say nothing of an item that a review decided, or excluded.
_DOUBTS = {"runner_up", "runner_up_confidence", "suspicion"}
_LABELS = {*LABELS, *SCORED}


# -- how long it takes --------------------------------------------------------------------


def tell_rounds(step: TellStep) -> Callable[[int, int], None]:
    """Return what a fit calls after every round; it tells `step` the round and the time left.

    The first round prepares the kernels and takes longer than the others. The time of a round is
    therefore the mean of the rounds after the first, and is known from the third round on.
    """
    ends: list[float] = []

    def tell_round(number: int, total: int) -> None:
        ends.append(time.monotonic())
        left = None
        if len(ends) > _MEASURED:
            left = (ends[-1] - ends[0]) / (len(ends) - 1) * (total - number)
        told = {"seconds": left} if left is not None and left >= _LONG else {}
        step(f"round {number} of at most {total}", within=True, **told)

    return tell_round


# -- labels of all items ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FittedLabels:
    """The labels that a fitted classifier gives to all items of a table.

    Attributes
    ----------
    prepared, encoder, rows, classifier
        The table, what turned its features into numbers, these numbers, and the classifier.
        Encoder and rows are None without features, or if the features do not inform the labels.
    docket : Docket
        First and final labels of all items, including those that a review excluded.
    suspicion : ndarray, shape (n,), or None
        How likely none of the candidates is true.
    signal : bool or None
        Whether the features inform the labels; None if that is not known. For testimony: whether
        they predict answers. For the jury: whether the out-of-fold output gives items' own
        candidates more than if the sets were dealt at random, by two standard deviations.
    review : Review or None
        What reviewers decided.
    neighbors : ndarray of int, shape (n, k), or None
        Nearest other items of every item, by the features as numbers.
    integers : tuple of str
        Columns of the user's table that hold whole numbers; see `find_integers`.
    landmarks : int or None
        Rows that every row was compared with, if they are not all rows and nobody asked for it.
    columns : dict of str to list
        The docket as a table, with what a review decided. Names of items are whole numbers if
        their column holds those.
    drawn : list of int
        The items that are not reviewed, in random order.
    """

    prepared: Preparation
    encoder: Any
    rows: NDArray[Any] | None
    classifier: Any
    docket: Docket
    suspicion: NDArray[Any] | None
    signal: bool | None
    review: Review | None
    neighbors: NDArray[Any] | None
    integers: tuple[str, ...]
    landmarks: int | None
    columns: dict[str, list[Any]]
    drawn: list[int]

    @property
    def has_first_labels(self) -> bool:
        """Whether the labels were decided twice.

        If the answers alone decide, the first labels are the final ones.
        """
        return self.prepared.method != "testimony" or self.prepared.features.X is not None

    @property
    def reviewed(self) -> Reviewed:
        """Kind and label of every decision by item; the label is empty if none is true."""
        return {} if self.review is None else self.review.decisions.by_row()

    @property
    def added(self) -> dict[str, list[Any]]:
        """What the user's table gets: label, confidence and more, for every row."""
        owner = self.prepared.labels.owner.tolist()
        return {
            name: [self.columns[name][i] for i in owner] for name in ADDED if name in self.columns
        }


class _Fit(NamedTuple):
    """A fitted classifier, its docket, and whether features inform the labels."""

    classifier: Any
    docket: Docket
    suspicion: NDArray[Any] | None
    signal: bool | None


def fit_labels(
    prepared: Preparation,
    encoder: Any,
    rows: Any,
    step: TellStep = nobody,
    review: Review | None = None,
) -> FittedLabels:
    """Fit the classifier and tabulate the labels of all items.

    Reviewed items are certain; those without a true label are left out. Features that do not
    inform the labels are not used if the user did not ask for a method.
    """
    with landmarks_told() as told:
        if prepared.method == "testimony":
            found = _fit_answers(prepared, rows, review)
        else:
            found = _fit_sets(prepared, rows, step, review)
            unasked = prepared.method == "jury" and prepared.call["method"] == "auto"
            enough = len(prepared.names) >= _ENOUGH and review is None
            if unasked and enough and rows is not None and found.signal is False:
                encoder = rows = None
                found = _fit_sets(prepared, None, step, None)
    integers = find_integers(prepared)
    decided: Any = [] if review is None else review.decisions.rows
    left = np.setdiff1d(np.arange(len(prepared.names)), decided)
    rng = np.random.default_rng(prepared.call["random_state"])
    return FittedLabels(
        prepared,
        encoder,
        rows,
        *found,
        review,
        neighbors=None if rows is None else nearest_rows(rows, _NEIGHBORS),
        integers=integers,
        landmarks=None if rows is None else min(told, default=None),
        columns=_tabulate(prepared, found, review, integers),
        drawn=rng.permutation(left).tolist(),
    )


def _fit_answers(prepared: Preparation, rows: Any, review: Review | None) -> _Fit:
    """Fit testimony to annotators' answers."""
    classifier, answers = clone(prepared.estimator), prepared.answers
    options: dict[str, Any] = {"probabilities": prepared.probabilities}
    if review is not None:
        decided, n = review.decisions, len(prepared.names)
        certain, kept = np.full(n, None, dtype=object), np.ones(n, dtype=bool)
        certain[decided.rows] = [name or None for name in decided.names]
        kept[decided.rows] = [bool(name) for name in decided.names]
        answers = answers._take(kept[answers.rows])
        options |= {"decisions": certain, "audited": review.audited}
    classifier.fit(rows, answers, **options)
    names = {"ids": prepared.labels.ids, "truth": prepared.labels.truth}
    docket = classifier.docket(**names, output="docket")
    known = prepared.features.X is not None
    signal = bool(classifier.feature_gain_ > CHANCE_GAIN) if known else None
    return _Fit(classifier, docket, docket.suspicion, signal)


def _fit_sets(prepared: Preparation, rows: Any, step: TellStep, review: Review | None) -> _Fit:
    """Fit the jury or PLCP to candidate sets; without rows, to how frequent the labels are."""
    classifier, n = clone(prepared.estimator), len(prepared.names)
    sets, kept = prepared.sets, np.ones(n, dtype=bool)
    if review is not None:
        sets, kept = review.decisions.apply(sets)
    if kept.sum() < 2:
        raise ValueError(
            f"the decisions exclude {n - kept.sum()} of {n} items. The others are not enough "
            "to learn from. Take some decisions back (decision 'clear')."
        )
    options: dict[str, Any] = {}
    if prepared.method == "jury" and prepared.groups is not None:
        options["groups"] = _open_groups(prepared.groups, review)[kept]
    shown = np.zeros((n, 1)) if rows is None else rows
    if prepared.scheduler is None:
        classifier._on_round = tell_rounds(step)
        classifier.fit(shown[kept], sets[kept], **options)
        del classifier._on_round  # no part of a model
    else:
        with _on_workers(shown[kept], prepared.scheduler) as spread:
            classifier.fit(spread, sets[kept], **options)
    signal = None
    if rows is None:  # they were left out
        signal = False
    elif hasattr(classifier, "honest_output_"):
        signal = shared_excess(classifier.honest_output_, classifier.candidates_) > 2
    docket, suspicion = classifier.docket(output="docket"), getattr(classifier, "suspicion_", None)
    if not kept.all():
        docket, suspicion = _fill(docket, suspicion, prepared.sets.matrix, kept)
    chosen = np.eye(len(docket.class_names), dtype=bool)[docket.appeal]
    names = {"ids": prepared.labels.ids, "truth": prepared.labels.truth}
    docket = replace(docket, candidates=prepared.sets.matrix | chosen, **names)
    if hasattr(classifier, "history_"):  # of every round, for the docket only
        slim = {"base_confidence": None, "partner_confidence": None}
        classifier.history_ = [replace(each, **slim) for each in classifier.history_]
    return _Fit(classifier, docket, suspicion, signal)


def _open_groups(names: list[str], review: Review | None) -> NDArray[np.intp]:
    """Number the groups; the items of a group with a decided item are groups of their own.

    The other items of such a group share no candidate set with the decided item.
    """
    groups = number_groups(names)
    if review is not None:
        settled = review.decisions.rows[review.decisions.labels >= 0]
        alone = np.flatnonzero(np.isin(groups, groups[settled]))
        groups[alone] = len(groups) + alone
    return groups


def _fill(
    docket: Docket, suspicion: Any, matrix: NDArray[np.bool_], kept: NDArray[np.bool_]
) -> tuple[Docket, Any]:
    """Put items that were left out back into a docket, all candidates alike."""
    alike = matrix / np.count_nonzero(matrix, axis=1)[:, np.newaxis]

    def whole(part: NDArray[Any], blank: NDArray[Any] = alike) -> NDArray[Any]:
        out = blank.astype(part.dtype)
        out[kept] = part
        return out

    filled = replace(
        docket,
        verdict_confidence=whole(docket.verdict_confidence),
        appeal_confidence=whole(docket.appeal_confidence),
        label_history=np.stack([whole(h, alike.argmax(axis=1)) for h in docket.label_history]),
        rounds=None if docket.rounds is None else [whole(each) for each in docket.rounds],
    )
    return filled, None if suspicion is None else whole(suspicion, np.full(len(kept), np.nan))


@contextmanager
def _on_workers(rows: NDArray[Any], scheduler: str) -> Iterator[Any]:
    """Lay rows out over the workers of a Dask scheduler."""
    distributed = import_extra("distributed", "scheduler=", "dask")
    array = import_extra("dask.array", "scheduler=", "dask")
    try:
        client = distributed.Client(scheduler, timeout=10)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"cannot reach a Dask scheduler at {scheduler!r} ({error}). Leave the setting out to "
            "fit in this process."
        ) from error
    with client:
        yield array.from_array(rows, chunks=(_CHUNK, -1))


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


def _tabulate(
    prepared: Preparation, fit: _Fit, review: Review | None, integers: tuple[str, ...]
) -> dict[str, list[Any]]:
    """Return the docket as a table, with what a review decided."""
    docket = fit.docket
    names, columns = docket.class_names, docket.columns()
    if "runner_up" not in columns:
        second, share = find_runner_up(docket.appeal_confidence, docket.appeal)
        columns["runner_up"] = np.where(share > 0, names[second].astype(object), np.nan)
        columns["runner_up_confidence"] = np.where(share > 0, share, np.nan)
    if fit.suspicion is not None:
        columns["suspicion"] = fit.suspicion
    table = plain_columns(columns)
    if (prepared.roles.id or next(iter(prepared.roles.long), None)) in integers:
        table["id"] = [int(name) for name in prepared.names]
    if prepared.has_answers and "votes" not in table:
        orders = np.argsort(-prepared.votes, axis=1, kind="stable")
        table["votes"] = [
            "|".join(f"{names[j]}:{row[j]:g}" for j in order if row[j])
            for row, order in zip(prepared.votes, orders, strict=True)
        ]
    if review is None:
        return table
    table["review"] = [""] * len(prepared.names)
    for i, (kind, label) in review.decisions.by_row().items():
        table["review"][i] = kind
        table["outcome"][i] = "reviewed" if label else "excluded"
        for name in (_DOUBTS if label else _DOUBTS | _LABELS) & table.keys():
            table[name][i] = None
        if label:
            table["label"][i] = label
            table["confidence"][i] = 1.0
    return table


def find_integers(prepared: Preparation) -> tuple[str, ...]:
    """Return the columns of the user's table that hold whole numbers, but for those of labels.

    Cells of a text file are whole numbers if they are written as Python writes these, and none
    is empty: ``01`` is a text.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    table, roles = prepared.table, prepared.roles
    found = []
    labels = {roles.truth, *(roles.long[1:2] if roles.long else roles.labels)}
    for name in table.names:
        column = table.data.column(name)
        whole = pa.types.is_integer(column.type)
        if table.kind == "csv" and pa.types.is_string(column.type) and not column.null_count:
            whole = pc.all(pc.match_substring_regex(column, r"^(0|-?[1-9][0-9]{0,17})$")).as_py()
        if whole and name not in labels:
            found.append(name)
    return tuple(found)
