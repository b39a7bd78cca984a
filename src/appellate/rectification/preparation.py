"""Prepare a table for a method: read it, find its labels and features, make the classifier.

Everything that can be wrong with a call of `appellate.rectify` is found here, before any work.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from appellate._table_options import (
    ColumnOptions,
    ReadingOptions,
    TableOptions,
    check_options,
    options_in,
    pick,
)
from appellate._text import did_you_mean
from appellate.candidates import Answers, CandidateSets
from appellate.candidates.answers import answers_of_sets
from appellate.evidence.costs import COST_WORDS, cost_matrix, is_ordered
from appellate.evidence.order import as_numbers
from appellate.methods import make_base
from appellate.methods.jury.classifier import JuryClassifier
from appellate.methods.plcp import PLCPClassifier
from appellate.methods.testimony import TestimonyClassifier
from appellate.numerics.kernels import GaussianKernel
from appellate.rectification.features import (
    Features,
    TellStep,
    find_features,
    is_file,
    item_cells,
    nobody,
)
from appellate.rectification.selection import choose_base
from appellate.tables import Labels, Roles, Table, TableError, find_roles, read_labels, read_table
from appellate.tables.cells import as_number, name_some
from appellate.tables.probabilities import read_probabilities
from appellate.tables.roles import listed

METHOD_NAMES = ("auto", "jury", "plcp", "testimony")
LARGE = 12_000  # items from which on PL-AGGD's graph is slow
_COMPARED = 1_000  # items on which bases are compared
_BASES = ("aggd", "sure", "knn")
_UNKNOWN = "(nobody named)"
NOT_KEPT = "not kept"  # of an argument that JSON cannot hold: its kind
_SETTINGS = " Settings of the classifier are given as settings={'max_rounds': 3}."


@dataclass(eq=False)
class Preparation:
    """A table that was understood, and the classifier that will be fitted.

    Attributes
    ----------
    table, roles, labels
        The user's table, what its columns are, and the labels that its n items have.
    method : str
        ``"jury"``, ``"plcp"`` or ``"testimony"``.
    classes : ndarray of str, shape (l,)
        The labels, in their order.
    probabilities : ndarray, shape (n, l), or None
        Class probabilities of a model; NaN for items that it says nothing about.
    groups : list of str or None
        Group of every item.
    call : dict
        What `rectify` was called with, in JSON's types.
    scheduler : str or None
        Address of a Dask scheduler whose workers fit.
    notes : list of str
        What the user should know about the table, though it can be used.
    features : Features
        What is learned from.
    estimator : estimator
        The classifier, not fitted.
    """

    table: Table
    roles: Roles
    labels: Labels
    method: str
    classes: NDArray[Any]
    probabilities: NDArray[Any] | None
    groups: list[str] | None
    call: dict[str, Any]
    scheduler: str | None = None
    notes: list[str] = field(default_factory=list)
    features: Features = field(default_factory=Features)
    estimator: Any = None

    @property
    def has_answers(self) -> bool:
        """Whether there are annotators' answers rather than candidate sets."""
        return self.roles.layout != "candidates"

    @property
    def data(self) -> str:
        """Hash of the table, which decisions carry."""
        return f"sha256:{self.table.sha256[:32]}"

    @cached_property
    def names(self) -> list[str]:
        """What the items are called; their numbers if they have no names."""
        ids = self.labels.ids
        return list(map(str, range(self.labels.n_rows) if ids is None else ids.tolist()))

    @cached_property
    def votes(self) -> NDArray[np.float64]:
        """How often each label was given, (n, l)."""
        votes = np.zeros((self.labels.n_rows, len(self.classes)))
        votes[:, self._codes] = self.labels.counts
        return votes

    @cached_property
    def sets(self) -> CandidateSets:
        """What was given at all."""
        return CandidateSets(self.votes > 0, self.classes)

    @cached_property
    def reviewable(self) -> NDArray[np.bool_]:
        """Candidates as the page shows them, (n, l): all labels without an answer."""
        return self.sets.matrix | ~self.sets.matrix.any(axis=1, keepdims=True)

    @cached_property
    def _codes(self) -> NDArray[np.intp]:
        """Places of the labels that were read among the classes."""
        place = {name: j for j, name in enumerate(self.classes.tolist())}
        return np.array([place[name] for name in self.labels.class_names.tolist()], dtype=np.intp)

    @cached_property
    def answers(self) -> Answers:
        """Which annotator gave which answer."""
        read, n = self.labels, len(self.names)
        if not self.has_answers:
            return answers_of_sets(self.sets.matrix, self.classes, None)
        if not len(read.people_names):
            rows, labels = np.nonzero(self.votes)
            weights, people = self.votes[rows, labels], 0 * rows
            names = None
        else:
            order = np.lexsort((read.people, read.rows))
            rows, people = read.rows[order], read.people[order]
            weights = read.weights[order]
            labels, names = self._codes[read.labels[order]], read.people_names
            if (people < 0).any():
                people = np.where(people < 0, len(names), people)
                names = np.array([*names.tolist(), _UNKNOWN])
        once = None if (weights == 1).all() else weights
        who, of_row, what = (each.astype(np.int32) for each in (people, rows, labels))
        return Answers(of_row, who, what, n, self.classes, names, once)

    def cells(self, column: str) -> list[str]:
        """Return a column as texts, one per item; empty if there is none."""
        return item_cells(self.table, column, self.labels.first)

    def describe(self, spell: Callable[[str], str] = str) -> str:
        """Say what was understood; `spell` writes names of options as the reader types them."""
        n, l = self.sets.shape
        sizes = np.count_nonzero(self.sets.matrix, axis=1)
        what = "answers" if self.has_answers else "candidates"
        each = self.votes.sum() / n if self.has_answers else sizes.mean()
        lines = [
            f"{self.table.source}: {len(self.table)} rows, {len(self.table.names)} columns",
            *(f"  {line}" for line in spell(str(self.roles)).splitlines()),
            f"{n} items, {l} labels ({name_some(self.classes.tolist(), 6)}), {each:.2f} {what} "
            f"per item, {int((sizes == 1).sum())} with one label",
        ]
        if self.features.n_embeddings:
            lines.append(f"{self.features.n_embeddings} embeddings are used as features")
        estimator = " ".join(str(self.estimator).split())  # which breaks long ones into lines
        lines.append(f"method {self.method}: {estimator}")
        return "\n".join(lines)


def prepare_table(
    data: Any,
    *,
    method: str = "auto",
    base: Any = None,
    cost: Any = None,
    order: Any = None,
    random_state: int | None = 0,
    settings: Mapping[str, Any] | None = None,
    step: TellStep = nobody,
    **options: Unpack[TableOptions],
) -> Preparation:
    """Read a table and make the classifier that will be fitted to it.

    Parameters
    ----------
    data, method, base, cost, order, random_state, settings
        See `appellate.rectify`.
    step : callable, default=no-op
        Told how far models of text and images are.
    **options
        Options of the table, see `appellate.rectify`; None for those that are not given.
    """
    check_options("rectify", TableOptions, options, _SETTINGS)
    if method not in METHOD_NAMES:
        raise ValueError(f"method={method!r} is none of {', '.join(METHOD_NAMES)}.")
    table = read_table(data, **pick(ReadingOptions, options))
    call: dict[str, Any] = {name: each.default for name, each in options_in(TableOptions).items()}
    call |= dict(options)
    call |= {"data": table.path, "method": method, "base": base, "cost": cost, "order": order}
    call |= {"random_state": random_state, "settings": dict(settings or {})}

    named = pick(ColumnOptions, options)
    groups = options.get("groups")
    if groups is not None:
        (groups,) = table.find([groups], "groups")
        named["ignore"] = [*listed(named.get("ignore")), groups]
    roles = find_roles(table, **named)
    labels = read_labels(table, roles)
    method = _choose_method(method, base, roles, labels)
    _check_labels(table, roles, labels, method)
    if order is not None and method == "plcp" and not is_ordered(cost):
        raise ValueError(
            "method 'plcp' uses order= only with a cost that needs one. Give cost= 'absolute', "
            "'within:N' or 'ordinal:W', or use method 'jury'."
        )
    names: list[str] = labels.class_names.tolist()
    if order is not None:
        names = _read_order(order, names)
    if cost is not None:
        cost = _read_cost(cost, order, names)
    further = dict(settings or {})
    prepared = Preparation(
        table,
        roles,
        labels,
        method,
        np.array(names, dtype=np.str_),
        read_probabilities(table, roles, labels, names) if roles.model_probabilities else None,
        None if groups is None else item_cells(table, groups, labels.first),
        {name: _plain(value) for name, value in call.items()},
        further.pop("scheduler", None),
        [*table.notes, *roles.notes, *labels.notes],
    )
    prepared.features = find_features(
        table,
        roles,
        labels.first,
        options,
        needed=method != "testimony",
        random_state=prepared.call["random_state"],
        notes=prepared.notes,
        step=step,
    )
    prepared.estimator = _make_estimator(prepared, base, cost, further)
    prepared.notes.extend(_notes(prepared))
    return prepared


def _choose_method(method: str, base: Any, roles: Roles, labels: Labels) -> str:
    """Return the method; "auto" means PLCP with a base, testimony with annotators, else jury."""
    if method == "auto":
        several = np.bincount(labels.rows, labels.weights, minlength=1).max() > 1
        answers = roles.layout != "candidates"
        annotated = answers and bool(roles.annotators or len(roles.long) > 2 or several)
        annotated = annotated or bool(roles.model_probabilities)
        method = "plcp" if base is not None else "testimony" if annotated else "jury"
    if roles.model_probabilities and method != "testimony":
        raise ValueError(
            f"method {method!r} cannot use model_probabilities=. Use method 'testimony', or leave "
            "model_probabilities= out."
        )
    return method


def _check_labels(table: Table, roles: Roles, labels: Labels, method: str) -> None:
    """Refuse labels that cannot be used, and sets that leave nothing to decide."""
    problems = labels.problems(answers=method == "testimony")
    if problems:
        raise TableError(f"{table.source}: {problems[0]}")
    if roles.layout == "candidates" and labels.matrix.sum(axis=1).max() < 2:
        raise TableError(f"{table.source}: {_nothing_to_decide(roles)}")


def _nothing_to_decide(roles: Roles) -> str:
    """Say that every row has one candidate, and what to do if labels may be wrong."""
    said = "every row has a single candidate, so no label can change."
    if len(roles.labels) > 1:
        return f"{said} Any classifier of scikit-learn learns from such labels."
    name = name_some(roles.labels)
    return (
        f"{said} If some labels may be wrong, name the column {name} with annotators= instead of "
        "candidates=: its labels are compared with the features. If cells hold several labels, "
        "give separator=."
    )


def _read_order(order: Any, names: list[str]) -> list[str]:
    """Return all labels in the user's order, checked; labels that no row has are added."""
    text = isinstance(order, str)
    given = next(csv.reader([order], skipinitialspace=True), []) if text else map(str, order)
    same = {as_number(name): name for name in names} | {None: None}
    ordered = [same.get(as_number(name.strip())) or name.strip() for name in given]
    twice = [name for i, name in enumerate(ordered) if name in ordered[:i]]
    lacking = [name for name in names if name not in ordered]
    odd = [name for name in ordered if as_number(name) is None]
    if twice:
        raise ValueError(f"order= has {name_some(twice[:1])} twice. Name each label once.")
    if lacking:
        raise ValueError(f"order= lacks labels of the table: {name_some(lacking, 8)}. Add them.")
    if len(ordered) < 2 or not all(ordered):
        raise ValueError("order= needs two labels or more, such as small,medium,large.")
    if odd and as_numbers(names) is not None:
        raise ValueError(
            f"order= has {name_some(odd[:1])}, which is not a number, but the labels are. Correct "
            "it."
        )
    return ordered


def _read_cost(cost: Any, order: Any, names: list[str]) -> Any:
    """Return what the classifiers take as `cost`, checked.

    A file holds a table of costs.
    """
    if order is None and is_ordered(cost) and as_numbers(names) is None:
        raise ValueError(
            f"cost {cost!r} needs an order, and not all labels are numbers. Name all labels from "
            f"first to last with order=: {','.join(names[:4])}{',...' if len(names) > 4 else ''}"
        )
    if isinstance(cost, (str, os.PathLike)):
        path = os.fspath(cost)
        if path.partition(":")[0] not in COST_WORDS and Path(path).suffix:
            cost = _read_costs(read_table(path), names)
    cost_matrix(cost, names)
    return cost


def _read_costs(table: Table, names: list[str]) -> Any:
    """Read a table of costs."""
    first, *others = table.names
    rows = {text: i for i, text in enumerate(table.texts(first).to_pylist())}
    missing = [name for name in names if name not in others]
    lacking = [name for name in names if name not in rows]
    if lacking or missing:
        kind = "row" if lacking else "column"
        raise TableError(
            f"cost=: {table.source} has no {kind} for the label "
            f"{name_some((lacking or missing)[:1])}. A table of costs has the true labels in its "
            "first column and one column for every predicted label."
        )
    places = [rows[name] for name in names]
    columns = []
    for name in names:
        values = table.numbers(name)
        if values is None or np.isnan(values[places]).any():
            raise TableError(f"cost=: {table.where(name)} must hold numbers.")
        columns.append(values[places])
    return np.stack(columns, axis=1).tolist()


def _make_estimator(prepared: Preparation, base: Any, cost: Any, settings: dict[str, Any]) -> Any:
    """Make the classifier of a method, with the settings that were given."""
    if prepared.method != "plcp" and base is not None:
        raise ValueError(f"base={base!r} is for method 'plcp'; this is {prepared.method!r}.")
    seed = prepared.call["random_state"]
    estimator: Any
    if prepared.method == "testimony":
        ordered = is_ordered(cost) or prepared.call["order"] is not None
        estimator = TestimonyClassifier(cost=cost, ordered=ordered)
    elif prepared.method == "jury":
        covering = "auto" if prepared.groups else False
        order = "auto" if prepared.call["order"] is None else prepared.classes.tolist()
        estimator = JuryClassifier(
            "kernel", covering=covering, order=order, cost=cost, random_state=seed
        )
    else:
        many = len(prepared.names) > LARGE or settings.get("approximation") == "nystroem"
        base = base or ("sure" if many else "aggd")
        first = make_base("aggd" if base == "auto" else base) if isinstance(base, str) else base
        estimator = PLCPClassifier(first, cost=cost, random_state=seed, keep_confidences=True)
        if base == "auto":
            _select(prepared, estimator)
    names, owner = GaussianKernel().get_params(), getattr(estimator, "estimator", estimator)
    kernel = {name: settings.pop(name) for name in [*settings] if name in names}
    if kernel:
        has_kernel = hasattr(owner, "get_params") and "kernel" in owner.get_params()
        (owner if has_kernel else estimator).set_params(kernel=GaussianKernel(**kernel))
    known = estimator.get_params()
    unknown = next((name for name in settings if name not in known), None)
    if unknown is not None:
        own = [name for name in known if "__" not in name and name != "estimator"]
        raise ValueError(
            f"{type(estimator).__name__} has no setting {unknown!r}.{did_you_mean(unknown, own)} "
            f"Its settings: {', '.join(own)}."
        )
    return estimator.set_params(**settings)


def _select(prepared: Preparation, estimator: PLCPClassifier) -> None:
    """Choose base and settings of PLCP without the true labels, on some of the items."""
    seed = prepared.call["random_state"]
    n = len(prepared.names)
    rows = np.random.default_rng(seed).permutation(n)[:_COMPARED]
    features = prepared.features
    X = clone(features.encoder).fit_transform(features.X.iloc[rows])
    names = ("sure",) if n > LARGE else _BASES
    choice = choose_base(X, prepared.sets[rows], names, cost=estimator.cost, random_state=seed)
    scores = ", ".join(f"{name} {score:.4f}" for name, score in choice.scores.items())
    prepared.notes.append(
        f"{choice.name} was chosen as base without true labels, on {len(rows)} items: {scores}."
    )
    estimator.set_params(**choice.params)


def _notes(prepared: Preparation) -> Iterator[str]:
    """Say how few items or features there are, and how many images the page cannot show."""
    n, features = len(prepared.names), prepared.features
    image = prepared.roles.image
    if n < 20:
        yield f"only {n} items to learn from: check every label."
    if features.X is None:
        yield (
            "the table has no features: only the answers decide, and no model is made for new "
            "rows."
        )
    elif not features.n_embeddings and not features.vectors and len(features.kinds) == 1:
        yield f"{name_some(features.kinds)} is the only feature column."
    if image is None:
        return
    cells = [*filter(None, prepared.cells(image))]
    where = f"{prepared.table.where(image)} (image)"
    files = [cell for cell in cells if is_file(cell)]
    gone = [cell for cell in files if not os.path.isfile(prepared.table.home / cell)]
    if gone:
        yield (
            f"{where}: {len(gone)} of {len(files)} image files do not exist, e.g. "
            f"{name_some(gone[:1])}. Paths are relative to the table."
        )
    away = [cell for cell in cells if cell.lower().startswith(("http://", "https://"))]
    if away:
        yield (
            f"{where}: {len(away)} images are web addresses, which the review page does not open. "
            "Name local files instead."
        )


def _plain(value: Any) -> Any:
    """Return a value in JSON's types; of what is none, or too much, what it was."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, (Sequence, np.ndarray)) and getattr(value, "size", len(value)) <= 1000:
        return [_plain(each) for each in (value.tolist() if hasattr(value, "tolist") else value)]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return {NOT_KEPT: type(value).__name__}
