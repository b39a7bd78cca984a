"""Judge a case: fit a classifier, tabulate what it says of every item, and weigh that.

Beside the labels stand those that anybody could have; then what to look at, what reviewers
decided, and the page that shows it. How long a fit takes is said before it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from appellate._added import ADDED
from appellate._text import did_you_mean, import_extra
from appellate.candidates.names import is_missing, number_groups
from appellate.docket import Docket, find_runner_up, free_separator
from appellate.evidence.ambiguity import describe
from appellate.methods import make_base
from appellate.methods.aggd import AGGDClassifier
from appellate.methods.jury.classifier import JuryClassifier
from appellate.methods.plcp import PLCPClassifier
from appellate.methods.sure import SUREClassifier
from appellate.methods.testimony import TestimonyClassifier, crowd_posterior
from appellate.methods.testimony.features import CHANCE_GAIN
from appellate.methods.testimony.people import share_interval
from appellate.numerics import work
from appellate.numerics.kernels import GaussianKernel, kernel_key, read_kernel
from appellate.numerics.memory import represent
from appellate.rectification.preparation import LARGE, Case, Step, is_file, nobody
from appellate.review import Decisions, page_data, read_decisions
from appellate.review.decisions import Record, as_file, check_kind, say_skipped
from appellate.tables import Table, read_table
from appellate.tables.cells import as_label, as_number, as_text, name_some

_NEEDED = ("id", "decision", "label")  # columns of a table of decisions
_HOW_TO_EXCLUDE = (
    "To say that no label is true, pass a data frame with id, decision ('none') and label (empty)."
)
SUGGESTED = 100  # items that a page and a folder suggest
_AUDIT = 5  # every fifth of them is drawn at random
_AUDITED = 20  # reviewed items drawn at random that make an honest accuracy
_ENOUGH = 50  # items from which on features that show no use are of none
_NEIGHBORS, _COMPONENTS, _MANY = 5, 32, 12_000
_CHUNK = 20_000  # rows of a block of a cluster
_LONG = 20.0  # seconds that are worth a word
_SHORTER = 0.5  # of the time, for another method to be named
_SLOW = work.Work(1e9, 2e7)  # a second of a machine slower than any that is in use
#: What gives the first labels, by method.
FIRST = {"jury": "first round", "plcp": "base alone", "testimony": "Dawid-Skene"}
# Columns of the docket that say nothing of an item that a review decided, or excluded.
_DOUBTS = {"runner_up", "runner_up_confidence", "suspicion"}
_VERDICTS = {"verdict", "verdict_confidence", "verdict_correct"}
_APPEALS = {"appeal", "appeal_confidence", "appeal_correct", "margin", "round"}


# -- how long it takes --------------------------------------------------------------------


def with_time(step: str, case: Case, q: int) -> tuple[str, float | None]:
    """Add to the name of the step that judges how long it takes, if long; q features.

    The machine's speed is measured only where it matters: the seconds are None if the work is
    little, or nobody knows how much a user's own classifier does.
    """
    todo = _count(case, q, case.estimator)
    if todo is None or todo.seconds(_SLOW) < _LONG:
        return step, None
    seconds, n = todo.seconds(work.speed()), len(case.names)
    if seconds >= _LONG:
        step += f", about {spell(seconds)} for {n:,} items on this machine"
        other = None
        if case.method == "jury":
            other = _count(case, q, PLCPClassifier(make_base("sure" if n > LARGE else "aggd")))
        if other is not None and other.seconds(work.speed()) < _SHORTER * seconds:
            step += f" (method 'plcp': about {spell(other.seconds(work.speed()))})"
    return step, float(f"{seconds:.2g}")


def spell(seconds: float) -> str:
    """Write a time in one unit.

    Examples
    --------
    >>> spell(44.0), spell(200.0), spell(9000.0)
    ('44 seconds', '3 minutes', '2.5 hours')
    """
    if seconds < 90:
        return f"{max(seconds, 2):.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def _count(case: Case, q: int, estimator: Any) -> work.Work | None:
    """Count the work of the classifiers that `rectify` makes; None for all others."""
    base = getattr(estimator, "estimator", None)
    if isinstance(estimator, PLCPClassifier):
        known = type(base) in (AGGDClassifier, SUREClassifier)
        known = known and estimator.partner == "complement"
    else:
        known = getattr(estimator, "members", "kernel") == "kernel"
    if not known or case.scheduler:
        return None
    for each in filter(None, (estimator, base)):
        each._validate_params()  # as fit does, but settings are needed now
    kernel = read_kernel((estimator if base is None else base).kernel)
    if not isinstance(kernel, GaussianKernel):
        return None
    shape, jury = case.votes.shape, isinstance(estimator, JuryClassifier)
    many: Any = {"n_matrices": 3, "n_widths": 1}
    if jury:
        kernels = {kernel_key(each) for each, _ in estimator._kernels()}
        many = {"n_matrices": estimator._n_matrices(), "n_widths": len(kernels)}
    try:
        how = represent(kernel, (shape[0], max(q, 1)), shape[1], np.float64, **many)
    except MemoryError:  # which the fit will say
        return None
    m = how.n_landmarks
    if isinstance(estimator, TestimonyClassifier):
        return work.count_testimony(shape, q, answers=len(case.answers.rows), landmarks=m)
    rounds = estimator.max_rounds
    if jury:
        ways, folds = 1 + (estimator.covering == "auto"), estimator.n_folds
        return work.count_jury(shape, q, landmarks=m, folds=folds, rounds=rounds, ways=ways)
    near, sizes = getattr(base, "n_neighbors", 0), case.sets.matrix.sum(axis=0)
    return work.count_plcp(shape, q, sizes=sizes, landmarks=m, rounds=rounds, neighbors=near)


# -- who judges, and what is said ----------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Review:
    """What reviewers decided.

    Attributes
    ----------
    decisions : Decisions
        The latest on every item that has one.
    audited : ndarray of bool, shape (n,)
        Which of these items were drawn at random.
    before : ndarray of str, shape (n,)
        The labels that the items had.
    unaided : Docket
        What was said of the items without any decision: what the audited items judge.
    notes : sequence of str
        How the decisions were read, as far as the user should know.
    """

    decisions: Decisions
    audited: NDArray[np.bool_]
    before: NDArray[Any]
    unaided: Docket
    notes: Sequence[str] = ()

    def labels(self) -> NDArray[Any]:
        """Return the labels of the items without any decision, (n,)."""
        return np.asarray(self.unaided.class_names[self.unaided.appeal])

    def confidence(self) -> NDArray[np.float64]:
        """Return the confidence of these labels, (n,)."""
        return confidence_of(self.unaided)

    def right(self) -> NDArray[np.bool_]:
        """Tell for which items these labels are what was decided, (n,)."""
        found = np.zeros(len(self.audited), dtype=bool)
        found[self.decisions.rows] = self.labels()[self.decisions.rows] == self.decisions.names
        return found


def confidence_of(docket: Docket) -> NDArray[np.float64]:
    """Return the confidence of the final label of every item, (n,)."""
    items = np.arange(len(docket.appeal))
    return np.asarray(docket.appeal_confidence[items, docket.appeal], dtype=np.float64)


def judge(
    case: Case, encoder: Any, rows: Any, step: Step = nobody, review: Review | None = None
) -> Hearing:
    """Fit and tabulate; reviewed items are certain, those without a true label left out.

    Features that say nothing of the labels are put aside, where nobody asked for a method.
    """
    classifier, n, signal = clone(case.estimator), len(case.names), None
    kept, options = np.ones(n, dtype=bool), dict[str, Any]()
    names = {"ids": case.labels.ids, "truth": case.labels.truth}
    if case.method == "testimony":
        answers, options["probabilities"] = case.answers, case.probabilities
        if review is not None:
            certain, decided = np.full(n, None, dtype=object), review.decisions
            certain[decided.rows] = [name or None for name in decided.names]
            kept[decided.rows] = [bool(name) for name in decided.names]
            answers = answers._take(kept[answers.rows])
            options |= {"decisions": certain, "audited": review.audited}
        classifier.fit(rows, answers, **options)
        docket = classifier.docket(**names, output="docket")
        signal = None if case.X is None else bool(classifier.feature_gain_ > CHANCE_GAIN)
        return Hearing(case, encoder, rows, classifier, docket, docket.suspicion, signal, review)
    sets = case.sets
    if review is not None:
        sets, kept = review.decisions.apply(sets)
    if kept.sum() < 2:
        raise ValueError(
            f"the decisions exclude {n - kept.sum()} of {n} items, and nothing can be learned "
            "from what is left. Take some of them back (decision 'clear')."
        )
    if case.method == "jury" and case.groups is not None:
        groups = number_groups(case.groups)
        if review is not None:  # items beside a decided one share no set with it: all stand alone
            settled = review.decisions.rows[review.decisions.labels >= 0]
            alone = np.flatnonzero(np.isin(groups, groups[settled]))
            groups[alone] = n + alone
        options["groups"] = groups[kept]
    # Without features the jury weighs what was said by how frequent the labels are.
    shown = np.zeros((n, 1)) if rows is None else rows
    if case.scheduler is None:
        classifier._on_round = lambda number: step(f"round {number}", within=True)
        classifier.fit(shown[kept], sets[kept], **options)
        del classifier._on_round  # no part of a model
    else:
        with _on_workers(shown[kept], case.scheduler) as spread:
            classifier.fit(spread, sets[kept], **options)
    if rows is None:  # they were put aside
        signal = False
    elif hasattr(classifier, "honest_output_"):
        signal = shared_excess(classifier.honest_output_, classifier.candidates_) > 2
        unasked = case.method == "jury" and case.call["method"] == "auto" and n >= _ENOUGH
        if unasked and not signal and review is None:
            return judge(case, None, None, step)
    docket, suspicion = classifier.docket(output="docket"), getattr(classifier, "suspicion_", None)
    if not kept.all():
        docket, suspicion = _fill(docket, suspicion, case.sets.matrix, kept)
    chosen = np.eye(len(docket.class_names), dtype=bool)[docket.appeal]
    docket = replace(docket, candidates=case.sets.matrix | chosen, **names)
    if hasattr(classifier, "history_"):  # of every round, for the docket only
        slim = {"base_confidence": None, "partner_confidence": None}
        classifier.history_ = [replace(each, **slim) for each in classifier.history_]
    return Hearing(case, encoder, rows, classifier, docket, suspicion, signal, review)


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
            f"no Dask scheduler answers at {scheduler!r} ({error}). Leave scheduler out to fit in "
            "this process."
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


@dataclass(eq=False)
class Hearing:
    """What a fitted classifier says of all items of a case.

    Attributes
    ----------
    case, encoder, rows, classifier
        What was judged, the features as numbers and what made them so, who judged. Encoder and
        rows are None without features, and where those say nothing and were put aside.
    docket : Docket
        Of all items, those that a review excluded too.
    suspicion : ndarray, shape (n,), or None
        That the truth is not among what was named.
    signal : bool or None
        Whether the features inform the labels; None where that is not known. Testimony asks
        whether they predict answers. The jury's honest output must give items' own candidates
        more than if the sets were dealt at random, by two standard deviations.
    review : Review or None
        What reviewers decided.
    appealed : bool
        Whether the labels were decided twice. If the answers alone decide, the first labels are
        the final ones.
    reviewed : dict of int to (str, str)
        Kind and label of every decision by item; the label is empty where none is true.
    neighbors : ndarray of int, shape (n, k), or None
        Nearest other items of every item, by the features as numbers.
    integers : tuple of str
        Columns of the user's table that hold whole numbers; see `find_integers`.
    columns : dict of str to list
        The docket as a table, with what a review decided. Names of items are whole numbers if
        their column holds those.
    added : dict of str to list
        What the user's table gets: label, confidence and more, of every row.
    drawn : list of int
        The items that are not reviewed, in random order.
    suggested : (list of int, list of str)
        The first items that are worth a look, and why; see `suggest`.
    """

    case: Case
    encoder: Any
    rows: NDArray[Any] | None
    classifier: Any
    docket: Docket
    suspicion: NDArray[Any] | None
    signal: bool | None
    review: Review | None

    def __post_init__(self) -> None:
        case, docket, rows = self.case, self.docket, self.rows
        self.reviewed = {} if self.review is None else self.review.decisions.by_row()
        self.appealed = case.method != "testimony" or case.X is not None
        self.neighbors: NDArray[Any] | None = None
        if rows is not None:
            if len(rows) > _MANY and rows.shape[1] > _COMPONENTS:
                rows = PCA(_COMPONENTS, random_state=0).fit_transform(rows)
            search = NearestNeighbors(n_neighbors=min(_NEIGHBORS, len(rows) - 1)).fit(rows)
            self.neighbors = np.asarray(search.kneighbors(return_distance=False))
        names, columns = docket.class_names, docket.columns()
        if "runner_up" not in columns:
            second, share = find_runner_up(docket.appeal_confidence, docket.appeal)
            columns["runner_up"] = np.where(share > 0, names[second].astype(object), np.nan)
            columns["runner_up_confidence"] = np.where(share > 0, share, np.nan)
        if self.suspicion is not None:
            columns["suspicion"] = self.suspicion
        table: dict[str, list[Any]] = {
            name: [None if value != value else value for value in column.tolist()]
            for name, column in columns.items()
        }
        self.integers = find_integers(case)
        if (case.roles.id or next(iter(case.roles.long), None)) in self.integers:
            table["id"] = [int(name) for name in case.names]
        if case.has_answers and "votes" not in table:
            orders = np.argsort(-case.votes, axis=1, kind="stable")
            table["votes"] = [
                "|".join(f"{names[j]}:{row[j]:g}" for j in order if row[j])
                for row, order in zip(case.votes, orders, strict=True)
            ]
        if self.review is not None:
            table["review"] = [""] * len(case.names)
        for i, (kind, label) in self.reviewed.items():
            table["review"][i] = kind
            table["outcome"][i] = "reviewed" if label else "excluded"
            for name in (_DOUBTS if label else _DOUBTS | _VERDICTS | _APPEALS) & table.keys():
                table[name][i] = None
            if label:
                table["appeal"][i], table["appeal_confidence"][i] = label, 1.0
        self.columns = table
        of_item = {"label": table["appeal"], "confidence": table["appeal_confidence"]}
        of_item |= {name: table[name] for name in ADDED if name in table}
        owner = case.labels.owner.tolist()
        self.added = {name: [values[i] for i in owner] for name, values in of_item.items()}
        left = np.setdiff1d(np.arange(len(case.names)), list(self.reviewed))
        order = np.random.default_rng(case.call["random_state"]).permutation(left)
        self.drawn: list[int] = order.tolist()
        self.suggested = self.suggest(SUGGESTED)

    def suggest(self, most: int) -> tuple[list[int], list[str]]:
        """Order the items whose review would help most; every fifth is drawn at random instead.

        An item counts for its own doubt and for the doubt of those that have it among their
        nearest neighbours. Neighbours of a chosen item count half from then on.
        """
        docket, near = self.docket, self.neighbors
        sure = confidence_of(docket) if self.case.method == "testimony" else docket.margin
        doubt = 1.0 - sure
        reviewed = list(self.reviewed)
        doubt[reviewed] = 0.0
        score = np.array(doubt, dtype=np.float64)
        if near is not None and near.shape[1]:
            influence = np.zeros(len(doubt))
            np.add.at(influence, near, np.broadcast_to(doubt[:, np.newaxis], near.shape))
            score *= 1 + influence / near.shape[1]
        drawn = self.drawn
        rows: list[int] = []
        why: list[str] = []
        while len(rows) < min(most, len(drawn)):
            best = int(score.argmax())
            random = (len(rows) + 1) % _AUDIT == 0 or score[best] <= 0
            row = next(i for i in drawn if i not in rows) if random else best
            rows.append(row)
            why.append("audit" if random else "doubt")
            score[row] = 0.0
            if near is not None and not random:
                score[near[row]] *= 0.5
        return rows, why

    def sample(self, rows: Sequence[int], why: Sequence[str]) -> list[int]:
        """Return the items drawn at random for suggestions, those among them that doubt chose too.

        Without the latter the sample would lack the items that are most in doubt.
        """
        chosen = {i for i, each in zip(rows, why, strict=True) if each == "audit"}
        drawn = self.drawn
        last = max((place for place, i in enumerate(drawn) if i in chosen), default=-1)
        return drawn[: last + 1]


# -- what it is worth ---------------------------------------------------------------------


def score(hearing: Hearing) -> dict[str, Any]:
    """Compare the labels with those of trivial rivals, and with the truth where it is known."""
    case, docket, columns = hearing.case, hearing.docket, hearing.columns
    review, n, labels = hearing.review, len(case.names), columns["appeal"]
    truth = [None] * n if case.labels.truth is None else case.labels.truth.tolist()
    outcomes, counts = np.unique(columns["outcome"], return_counts=True)
    scores: dict[str, Any] = {
        "items": n,
        "contested": int((np.count_nonzero(case.sets.matrix, axis=1) > 1).sum()),
        "outcomes": dict(zip(outcomes.tolist(), counts.tolist(), strict=True)),
    }
    if case.method != "plcp":  # whose confidence is not calibrated
        sure = [1.0 if c is None else c for c in columns["appeal_confidence"]]
        scores["expected_wrong"] = round(n - float(np.sum(sure)), 1)
    unchanged = np.array([outcome == "upheld" for outcome in columns["outcome"]])
    scores["single"] = int((unchanged & ~docket.contested).sum())
    scores["first"] = FIRST[case.method] if hearing.appealed else None
    # What everybody could do: labels of each item, and the chance to take them, (n, l + 1), the
    # last that of labels beside all of the docket. An item without an answer has no baseline.
    answered: NDArray[np.bool_] = np.count_nonzero(case.votes, axis=1) > 0
    votes = np.where(case.votes.any(axis=1, keepdims=True), case.votes, 1.0)
    rivals: dict[str, NDArray[Any]] = {"random candidate": votes > 0}
    if case.has_answers:
        rivals["majority vote"] = votes == votes.max(axis=1, keepdims=True)
        if case.method != "testimony":
            crowd = crowd_posterior(case.answers).argmax(axis=1)
            rivals["Dawid-Skene"] = np.eye(len(case.classes))[crowd]
    rivals[FIRST[case.method]] = np.eye(len(docket.class_names))[docket.verdict]
    for name, each in rivals.items():
        beyond = ((0, 0), (0, len(docket.class_names) + 1 - each.shape[1]))
        rivals[name] = np.pad(each / each.sum(axis=1, keepdims=True), beyond)
    scores["differing"] = {
        name: int((chances[np.arange(n), docket.appeal] == 0)[answered].sum())
        for name, chances in rivals.items()
        if name != "random candidate"
    }
    accuracy: dict[str, Any] = {}
    known = [i for i in range(n) if None not in (truth[i], labels[i])]
    scored = [i for i in known if answered[i]]
    if scored:
        place = {name: j for j, name in enumerate(docket.class_names.tolist())}
        codes = [place.get(truth[i], -1) for i in scored]
        right = {name: chances[scored, codes] for name, chances in rivals.items()}
        right["rectified"] = np.array([labels[i] == truth[i] for i in scored])
        accuracy = {name: round(float(np.mean(each)), 4) for name, each in right.items()}
        accuracy = {"items with truth": len(scored)} | accuracy
    scores |= {"accuracy": accuracy or None, "signal": hearing.signal, "audit": None}
    scores["unanswered"] = None
    if not answered.all():
        rest = [labels[i] == truth[i] for i in known if not answered[i]]
        scores["unanswered"] = {
            "items": int((~answered).sum()),
            "items with truth": len(rest),
            "accuracy": round(float(np.mean(rest)), 4) if rest else None,
        }
    if review is not None:
        rows = np.flatnonzero(review.audited).tolist()
        if len(rows) >= _AUDITED:
            if case.method == "testimony":
                audit = hearing.classifier.audit_
            else:
                hits = int(review.right()[rows].sum())
                low, high = share_interval(hits, len(rows))
                audit = {"rows": len(rows), "accuracy": hits / len(rows)}
                audit |= {"low": low, "high": high}
            scores["audit"] = {name: round(float(value), 4) for name, value in audit.items()}
        others = np.ones(n, dtype=bool)
        others[list(hearing.reviewed)] = False
        after = docket.class_names[docket.appeal]
        scores["moved"] = int((review.before != after)[others].sum())
    judge = hearing.classifier
    if hasattr(judge, "ambiguity_"):  # a jury, or PLCP with one
        scores["found"] = describe(judge.ambiguity_, judge.resemblance_, judge.order_width_)
    notes = scores["notes"] = []
    if hearing.signal is False:
        notes.append(
            "the features do not help to predict the answers: look at the labels without them too."
            if case.method == "testimony"
            else "the features do not inform the labels: they foretell held-out candidates no "
            "better than chance. The labels are those of the candidates alone, the most frequent "
            "of each row, little more than guesses; no model is left."
            if hearing.rows is None
            else "the features say no more of the labels than chance does: labels of rows with "
            "several candidates are little more than guesses."
        )
    if review is not None and review.decisions.unknown:
        notes.append(
            f"decisions on {review.decisions.unknown} other ids, which the table does not have, "
            "count for nothing."
        )
    if review is not None and review.decisions.skipped:
        notes.append(f"decisions were skipped: {say_skipped(review.decisions.skipped)}")
    notes.extend(review.notes if review is not None else ())
    for name in rivals if scored else ():
        if accuracy[name] > accuracy["rectified"]:
            both = f"{accuracy[name]:.3f} right, against {accuracy['rectified']:.3f}"
            notes.append(f"{name} is better here: {both}.")
    return scores


# -- what reviewers decide, and the page that asks them ------------------------------------


def take_decisions(
    case: Case, before: Hearing | None, decisions: Any
) -> tuple[Decisions, list[str]]:
    """Read a file of decisions, or add some to those that were made before.

    These are a data frame of decisions, or labels by name. Also return what the user should know
    of how they were read.
    """
    options: dict[str, Any] = {
        "classes": case.classes.tolist(),
        "candidates": case.reviewable,
        "ids": None if case.labels.ids is None else case.names,
        "data": case.data,
    }
    notes: list[str] = []
    if isinstance(decisions, (str, os.PathLike)):
        if not Path(decisions).exists():
            raise ValueError(
                f"there is no file '{os.fspath(decisions)}'. Decide on some rows first."
            )
        found = read_decisions(decisions, **options, spell=lambda them: _spell(case, them, notes))
        return found, notes
    skipped: list[str] = []
    if isinstance(decisions, Mapping) and not {*_NEEDED} <= decisions.keys():
        written = _records_of(case, decisions, skipped)
    else:
        written = _records_in(read_table(decisions))
    records = _spell(case, written, notes)
    if skipped:
        notes.append(
            f"decisions without a label are skipped: {name_some(skipped)}. {_HOW_TO_EXCLUDE}"
        )
    found = read_decisions(records, **options)
    anew = {record["id"] for record in records}
    kept = [
        {"id": case.names[i], "decision": kind, "label": label}
        for i, (kind, label) in (before.reviewed if before else {}).items()
        if case.names[i] not in anew
    ]
    return read_decisions([*kept, *records], **options) if kept else found, notes


def _records_in(table: Table) -> list[Record]:
    """Return the decisions of a table."""
    lacking = [name for name in _NEEDED if name not in table.names]
    if lacking:
        raise ValueError(
            f"the decisions lack the column {name_some(lacking)}. Pass a table with id, decision "
            "and label, or a mapping from ids to labels."
        )
    cells = (table.texts(name).fill_null("").to_pylist() for name in _NEEDED)
    records = [dict(zip(_NEEDED, row, strict=True)) for row in zip(*cells, strict=True)]
    for record in records:
        check_kind(record, "the decisions")
    return records


def _records_of(case: Case, labels: Mapping[Any, Any], skipped: list[str]) -> list[Record]:
    """Return labels by name as decisions; names without a label are skipped."""
    records, rows = [], {name: i for i, name in enumerate(case.names)}
    for key, value in labels.items():
        name = str(key) if str(key) in rows else as_text(key)
        written = None if is_missing(value) else as_label(value)
        label = _find_class(case, written)
        if not label:
            skipped.append(name)
            continue
        row = rows.get(name)
        inside = row is not None and label in case.classes[case.reviewable[row]]
        kind = "other" if inside else "none"
        records.append({"id": name, "decision": kind, "label": written or ""})
    if skipped and not records:
        raise ValueError(f"no decision has a label: {name_some(skipped)}. {_HOW_TO_EXCLUDE}")
    return records


def _find_class(case: Case, label: str | None) -> str:
    """Return the class that a label means, by its number or its letters; empty for none.

    A label that means no class is returned as it is.
    """
    classes = case.classes.tolist()
    if label is None or label in map(as_label, case.roles.missing):
        return ""
    number, folded = as_number(label), label.casefold()
    for alike in (
        [name for name in classes if name == label],
        [name for name in classes if number is not None and as_number(name) == number],
        [name for name in classes if name.casefold() == folded],
    ):
        if len(alike) == 1:
            return str(alike[0])
    return label


def _spell(case: Case, records: Iterable[Record], notes: list[str]) -> list[Record]:
    """Return decisions with their labels spelled as those of the table; add notes on them."""
    spelled, known, rows = [], {*case.classes.tolist()}, {n: i for i, n in enumerate(case.names)}
    respelled: dict[str, str] = {}
    new: dict[str, int] = {}
    for record in records:
        written = as_label(record.get("label", ""))
        label, kind, row = _find_class(case, written), record["decision"], rows.get(record["id"])
        if label and label != written:
            respelled[str(written)] = label
            if kind == "none" and row is not None and label in case.classes[case.reviewable[row]]:
                kind = "other"
        if label and label not in known and kind != "clear":
            new[label] = new.get(label, 0) + 1
        spelled.append({**record, "decision": kind, "label": label})
    for written, label in respelled.items():
        notes.append(
            f"decisions: the label {name_some([written])} is read as {name_some([label])}."
        )
    for label, count in new.items():
        notes.append(
            f"decisions: the table has no label {name_some([label])}."
            f"{did_you_mean(label, case.classes.tolist())} It is taken as a new label of {count} "
            f"item{'' if count == 1 else 's'}."
        )
    return spelled


def find_integers(case: Case) -> tuple[str, ...]:
    """Return the columns of the user's table that hold whole numbers, but for those of labels.

    Cells of a text file are whole numbers if they are written as Python writes these, and none
    is empty: ``01`` is a text.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    table, roles, found = case.table, case.roles, []
    labels = {roles.truth, *(roles.long[1:2] if roles.long else roles.labels)}
    for name in table.names:
        column = table.data.column(name)
        whole = pa.types.is_integer(column.type)
        if table.kind == "csv" and pa.types.is_string(column.type) and not column.null_count:
            whole = pc.all(pc.match_substring_regex(column, r"^(0|-?[1-9][0-9]{0,17})$")).as_py()
        if whole and name not in labels:
            found.append(name)
    return tuple(found)


def decisions_csv(hearing: Hearing) -> str:
    """Write the decisions of a run as the file that the page and its server go on with."""
    case = hearing.case
    glue = free_separator(case.classes)
    return as_file(
        {
            "id": case.names[i],
            "decision": kind,
            "label": label,
            "candidates": glue.join(case.classes[case.reviewable[i]].tolist()),
            "data": case.data,
        }
        for i, (kind, label) in hearing.reviewed.items()
    )


def collect_page(
    hearing: Hearing, settings: Mapping[str, Any], scores: Mapping[str, Any], folder: Path
) -> dict[str, Any]:
    """Return what the page of a run shows, as `appellate.review.write_page` takes it.

    Paths of pictures become relative to the folder in which the page will be.
    """
    case, docket, (rows, why) = hearing.case, hearing.docket, hearing.suggested
    candidates = np.zeros(docket.candidates.shape, dtype=bool)
    candidates[:, : len(case.classes)] = case.reviewable
    options: dict[str, Any] = {
        "first": FIRST[case.method] if hearing.appealed else "",
        "candidates": candidates,
        "title": Path(case.table.path or "table").name,
        "table": case.data,
        "neighbors": hearing.neighbors,
        "suggested": rows,
        "audit": [i for i, each in zip(rows, why, strict=True) if each == "audit"],
        "decisions": hearing.reviewed,
        "groups": case.groups,
        "suspicion": None if hearing.suspicion is None else np.nan_to_num(hearing.suspicion),
        "suspicion_orders": case.method == "jury",
        "differing": scores["differing"].get("majority vote"),
        "features": settings["features"] or None,
        "expected_wrong": scores.get("expected_wrong"),
        "found": scores.get("found"),
        "warnings": [*scores["notes"], *case.notes],
        "command": _with_decisions(settings.get("command", "")),
    }
    if case.roles.text:
        texts = [case.cells(name) for name in case.roles.text]
        options["texts"] = ["\n".join(filter(None, parts)) for parts in zip(*texts, strict=True)]
    if case.roles.image:
        home = folder.absolute()
        options["images"] = [
            Path(os.path.relpath((case.table.home / cell).absolute(), home)).as_posix()
            if cell and is_file(cell)
            else cell
            for cell in case.cells(case.roles.image)
        ]
    if scores["accuracy"]:
        options["scores"] = [
            {"name": name, "accuracy": value}
            for name, value in scores["accuracy"].items()
            if name not in ("items with truth", "rectified")
        ]
    if case.has_answers:
        options |= _page_people(hearing)
    return page_data(docket, **options)


def _with_decisions(command: str) -> str:
    """Return a command with the decisions that are saved in its output folder.

    Examples
    --------
    >>> _with_decisions("appellate rectify t.csv --out birds --decisions old.csv")
    'appellate rectify t.csv --out birds --decisions birds/decisions.csv'
    """
    words, kept, out = iter(shlex.split(command)), [], ""
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


def _page_people(hearing: Hearing) -> dict[str, Any]:
    """Return who said what, and how far each is to be believed."""
    answers, votes = hearing.case.answers, hearing.case.votes
    leading = votes == votes.max(axis=1, keepdims=True)
    majority = np.where(np.count_nonzero(leading, axis=1) == 1, votes.argmax(axis=1), -1)
    parts: dict[str, Any] = {"votes": majority}
    if answers.person_names is None:
        return parts
    who = getattr(hearing.classifier, "annotators_", None)
    parts["answers"] = {
        "people": answers.person_names.tolist(),
        "row": answers.rows,
        "person": answers.people,
        "label": answers.labels,
    }
    if who is None or len(who["person"]) != answers.n_people:
        return parts
    parts["annotators"] = []
    for k, name in enumerate(who["person"]):
        shares = {
            "agreement": "agreement",
            "reliability": "accuracy",
            "low": "low",
            "high": "high",
        }
        parts["annotators"].append(
            {"name": str(name), "answers": int(who["answers"][k])}
            | {key: round(float(who[column][k]), 4) for key, column in shares.items()}
        )
    return parts
