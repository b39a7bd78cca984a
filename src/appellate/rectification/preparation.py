"""A table understood: what was said of every item, what it looks like, and how to judge it.

Everything that can be wrong with a call of `appellate.rectify` is found here, before any work.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from appellate.candidates import Answers, CandidateSets
from appellate.candidates.answers import answers_of_sets
from appellate.evidence.costs import WORDS, as_numbers, cost_matrix, is_ordered
from appellate.methods import make_base
from appellate.methods.jury.classifier import JuryClassifier
from appellate.methods.plcp import PLCPClassifier
from appellate.methods.testimony import TestimonyClassifier
from appellate.model_selection import PLCPClassifierCV
from appellate.numerics.kernels import GaussianKernel
from appellate.tables import Roles, Table, TableError, find_roles, read_labels, read_table
from appellate.tables.cells import as_number, name_rows, name_some, printable
from appellate.tables.encoding import (
    ColumnReading,
    FeatureKind,
    feature_kinds,
    features,
    find_column_readings,
    make_encoder,
)
from appellate.tables.probabilities import read_probabilities
from appellate.tables.reading import READING
from appellate.tables.roles import listed
from appellate.tables.vectors import (
    HISTOGRAMS,
    embed_pictures,
    embed_texts,
    model_key,
    name_problems,
)

METHODS = ("auto", "jury", "plcp", "testimony")
LARGE = 12_000  # items from which on PL-AGGD's graph is slow
_COMPARED = 1_000  # items on which bases are compared
_BASES = ("aggd", "sure", "knn")
LARGEST = 1e30  # numbers of this size overflow on the way
_UNKNOWN = "(nobody named)"
_OTHERS = ("self", "settings", "columns", "step")  # no arguments of `rectify`
Step = Callable[..., object]
NOT_KEPT = "not kept"  # of an argument that JSON cannot hold: its kind
_WEAK = (
    "pictures are told apart by histograms of colours and edges, which tell little: give "
    "image_model, or embeddings."
)


def nobody(text: str, *, within: bool = False, seconds: float | None = None) -> None:
    """Hear what begins and how long it may take, or with `within` how far it is. Say nothing."""


class Case:
    """A table, what its columns are, and who is to judge it.

    Parameters
    ----------
    data, embeddings, text_model, image_model, groups, method, base, cost, order, random_state
        See `appellate.rectify`, as are those that say how to read a file.
    settings : mapping, default=None
        Of the method's classifier, or of its kernel; and `scheduler`.
    step : callable, default=no-op
        Told how far models of prose and pictures are.
    **columns
        What the columns are, see `appellate.tables.find_roles`; None where that is not said.

    Attributes
    ----------
    table, roles, labels
        The user's table, what its columns are, and what was said of its n items.
    classes : ndarray of str, shape (l,)
        The labels, in their order.
    method : str
        ``"jury"``, ``"plcp"`` or ``"testimony"``.
    has_answers : bool
        Whether people answered, rather than sets were given.
    data : str
        Hash of the table, which decisions carry.
    names : list of str
        What the items are called; their numbers if they have no names.
    probabilities : ndarray, shape (n, l), or None
        What a model says of every item; NaN for the items of which it says nothing.
    votes : ndarray, shape (n, l)
        How often each label was named.
    sets : CandidateSets
        What was named at all.
    reviewable : ndarray of bool, shape (n, l)
        Candidates as the page shows them: all labels where nobody named one.
    notes : list of str
        What the user should know of the table, though it can be used.
    call : dict
        What `rectify` was called with, in JSON's types.
    estimator : estimator
        The classifier, not fitted.
    X : pandas.DataFrame or None
        Features of the items; None if there are none.
    kinds : dict of str to str
        What the features are: number, category, date, text or picture.
    readings : dict of str to ColumnReading
        How the cells of the columns were read, for those of new rows.
    n_embeddings : int
        How many of them are embeddings, the last ones.
    embedders : list of Embedder
        Models of prose and pictures.
    vectors : dict of str to list of str
        Columns of `X` that these made, by column of the table.
    encoder : transformer or None
        What turns the features into numbers, not fitted.
    groups : list of str or None
        Group of every item.
    scheduler : str or None
        Address of a Dask scheduler whose workers fit.
    """

    def __init__(
        self,
        data: Any,
        *,
        embeddings: Any = None,
        text_model: Any = None,
        image_model: Any = None,
        groups: str | None = None,
        delimiter: str | None = None,
        encoding: str | None = None,
        decimal: str | None = None,
        sheet: str | int | None = None,
        question: str | None = None,
        header: str | None = "first",
        method: str = "auto",
        base: Any = None,
        cost: Any = None,
        order: Any = None,
        random_state: int | None = 0,
        settings: Mapping[str, Any] | None = None,
        step: Step = nobody,
        **columns: Any,
    ) -> None:
        call = {name: value for name, value in locals().items() if name not in _OTHERS}
        further = dict(settings or {})
        if method not in METHODS:
            raise ValueError(f"method={method!r} is none of {', '.join(METHODS)}.")
        table = self.table = read_table(data, **{name: call[name] for name in READING})
        self.data = f"sha256:{table.sha256[:32]}"

        named = {name: value for name, value in columns.items() if value is not None}
        if groups is not None:
            (groups,) = table.find([groups], "groups")
            named["ignore"] = [*listed(named.get("ignore")), groups]
        roles = self.roles = find_roles(table, **named)
        labels = self.labels = read_labels(table, roles)
        self.groups = None if groups is None else self.cells(groups)
        self.has_answers = roles.layout != "candidates"
        if method == "auto":
            several = np.bincount(labels.rows, labels.weights, minlength=1).max() > 1
            people = self.has_answers and (roles.annotators or len(roles.long) > 2 or several)
            people = people or roles.model_probabilities
            method = "plcp" if base is not None else "testimony" if people else "jury"
        if roles.model_probabilities and method != "testimony":
            raise ValueError(
                f"method {method!r} takes no model_probabilities. Use method 'testimony', or "
                "leave model_probabilities out."
            )
        self.method = method
        problems = labels.problems(answers=method == "testimony")
        if problems:
            raise TableError(f"{table.source}: {problems[0]}")
        if not self.has_answers and labels.matrix.sum(axis=1).max() < 2:
            raise TableError(f"{table.source}: {_nothing_to_decide(roles)}")
        if order is not None and method == "plcp" and not is_ordered(cost):
            raise ValueError(
                "method 'plcp' uses order only with a cost that needs one: give cost 'absolute', "
                "'within:N' or 'ordinal:W', or use method 'jury'."
            )
        names: list[str] = labels.class_names.tolist()
        if order is not None:
            names = _read_order(order, names)
        if cost is not None:
            cost = _read_cost(cost, order, names)
        self.classes = np.array(names, dtype=np.str_)
        items = range(labels.n_rows) if labels.ids is None else labels.ids.tolist()
        self.names = list(map(str, items))
        place = {name: j for j, name in enumerate(self.classes.tolist())}
        self._codes = np.array([place[name] for name in labels.class_names.tolist()])
        self.probabilities = read_probabilities(table, roles, labels, names)
        self.votes = np.zeros((labels.n_rows, len(self.classes)))
        self.votes[:, self._codes] = labels.counts
        self.sets = CandidateSets(self.votes > 0, self.classes)
        self.reviewable = self.sets.matrix | ~self.sets.matrix.any(axis=1, keepdims=True)

        call |= {"data": table.path, **columns, **further}
        self.call = {name: _plain(value) for name, value in call.items()}
        self.notes = [*table.notes, *roles.notes, *labels.notes]
        self.scheduler: str | None = further.pop("scheduler", None)
        beside = "features" in named or "text" in named
        self._find_features(embeddings, beside, text_model, image_model, step)
        self.estimator = _make_estimator(self, base, cost, further)
        self.notes.extend(_notes(self))

    def _find_features(
        self, embeddings: Any, beside: bool, text_model: Any, image_model: Any, step: Step
    ) -> None:
        """Collect what is learned from: columns, embeddings, vectors of prose and pictures.

        Columns stand beside embeddings only if they were named. Without a model, prose is
        learned from by its words and letters, and pictures by histograms, but only if there is
        nothing else.
        """
        roles, n = self.roles, len(self.names)
        others = bool(roles.features or roles.text)
        if text_model is not None and not roles.text:
            raise TableError("text_model needs a column of prose: name it with text=.")
        if image_model and roles.image is None:
            raise TableError("image_model needs a column of pictures: name it with image=.")
        if roles.image and image_model is None and embeddings is None and not others:
            cells = [cell for cell in self.cells(roles.image) if cell]
            if any(c.startswith("data:") or os.path.isfile(self.table.home / c) for c in cells):
                image_model = HISTOGRAMS
        prose = roles.text if text_model is not None else ()
        self.embedders = [Embedder(name, "text", text_model) for name in prose]
        if roles.image and image_model:
            self.embedders.append(Embedder(roles.image, "picture", image_model, self.table.home))

        self.X: Any = None
        self.kinds: dict[str, FeatureKind] = {}
        self.readings: dict[str, ColumnReading] = {}
        self.n_embeddings = 0
        self.vectors: dict[str, list[str]] = {}
        wanted = others or (self.method != "testimony" and not self.embedders)
        if wanted and (beside or embeddings is None):
            rows = self.labels.first
            self.readings = find_column_readings(self.table, roles, rows=rows, notes=self.notes)
            known: Any = {"rows": rows, "readings": self.readings, "largest": LARGEST}
            self.X = features(self.table, roles, **known)
            self.kinds = feature_kinds(self.X, roles.text)
        if embeddings is not None:
            numbers = read_embeddings(embeddings, n)
            self.X, self.n_embeddings = _beside(self.X, numbers), numbers.shape[1]
        if self.embedders:
            self.X, self.vectors = add_vectors(
                self.X, self.embedders, self.cells, self.notes, step
            )
            self.kinds |= {each.column: each.kind for each in self.embedders}
        self.encoder = None
        if self.X is not None:
            groups, seed = dict(self.vectors), self.call["random_state"]
            if self.n_embeddings:
                groups["embeddings"] = [f"embedding_{j}" for j in range(self.n_embeddings)]
            text = [n for n, kind in self.kinds.items() if kind == "text" and n not in groups]
            how: Any = {"readings": self.readings, "missing": self.roles.missing}
            self.encoder = make_encoder(
                self.X, text=text, vectors=groups, random_state=seed, **how
            )

    @cached_property
    def answers(self) -> Answers:
        """Who said what."""
        read, n = self.labels, len(self.names)
        if not self.has_answers:
            return answers_of_sets(self.sets.matrix, self.classes, None)
        if not len(read.people_names):
            rows, labels = np.nonzero(self.votes)
            weights, people, names = self.votes[rows, labels], 0 * rows, None
        else:
            order = np.lexsort((read.people, read.rows))
            rows, people, weights = read.rows[order], read.people[order], read.weights[order]
            labels, names = self._codes[read.labels[order]], read.people_names
            if (people < 0).any():
                people = np.where(people < 0, len(names), people)
                names = np.array([*names.tolist(), _UNKNOWN])
        once = None if (weights == 1).all() else weights
        who, of_row, what = (each.astype(np.int32) for each in (people, rows, labels))
        return Answers(of_row, who, what, n, self.classes, names, once)

    def cells(self, column: str) -> list[str]:
        """Return a column as texts, one an item; empty for none."""
        texts = self.table.texts(column).take(self.labels.first).to_pylist()
        return [text or "" for text in texts]

    def describe(self) -> str:
        """Say what was understood."""
        n, l = self.sets.shape
        sizes = np.count_nonzero(self.sets.matrix, axis=1)
        what = "answers" if self.has_answers else "candidates"
        each = self.votes.sum() / n if self.has_answers else sizes.mean()
        lines = [
            f"{self.table.source}: {len(self.table)} rows, {len(self.table.names)} columns",
            *(f"  {line}" for line in str(self.roles).splitlines()),
            f"{n} items, {l} labels ({name_some(self.classes.tolist(), 6)}), {each:.2f} {what} "
            f"each, {int((sizes == 1).sum())} with one label",
        ]
        if self.n_embeddings:
            lines.append(f"{self.n_embeddings} embeddings are learned from")
        estimator = " ".join(str(self.estimator).split())  # which breaks long ones into lines
        lines.append(f"method {self.method}: {estimator}")
        return "\n".join(lines)


def _nothing_to_decide(roles: Roles) -> str:
    """Say that every row has one candidate, and what to do if labels may be wrong."""
    said = "every row has one candidate, so there is nothing to decide."
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
        raise ValueError(f"order: {name_some(twice[:1])} comes twice.")
    if lacking:
        raise ValueError(f"order: it lacks labels of the table: {name_some(lacking, 8)}.")
    if len(ordered) < 2 or not all(ordered):
        raise ValueError("order: name two labels or more, such as small,medium,large.")
    if odd and as_numbers(names) is not None:
        raise ValueError(f"order: {name_some(odd[:1])} is no number, but the labels are.")
    return ordered


def _read_cost(cost: Any, order: Any, names: list[str]) -> Any:
    """Return what the classifiers take as `cost`, checked.

    A file holds a table of costs, or of labels and their paths in a tree.
    """
    if order is None and is_ordered(cost) and as_numbers(names) is None:
        raise ValueError(
            f"cost {cost!r} needs an order, and not all labels are numbers. Name all labels from "
            f"first to last with order: {','.join(names[:4])}{',...' if len(names) > 4 else ''}"
        )
    if isinstance(cost, (str, os.PathLike)):
        path = os.fspath(cost)
        if path.partition(":")[0] not in WORDS and Path(path).suffix:
            cost = _read_costs(read_table(path), names)
    cost_matrix(cost, names)
    return cost


def _read_costs(table: Table, names: list[str]) -> Any:
    """Read a table of costs, or of labels and their paths in a tree."""
    first, *others = table.names
    rows = {text: i for i, text in enumerate(table.texts(first).to_pylist())}
    missing = [name for name in names if len(others) > 1 and name not in others]
    lacking = [name for name in names if name not in rows]
    if lacking or missing:
        kind = "row" if lacking else "column"
        raise TableError(
            f"cost: {table.source} has no {kind} for the label "
            f"{name_some((lacking or missing)[:1])}. A table of costs has the true labels in its "
            "first column and one column for every predicted label; a table of paths has two "
            "columns."
        )
    places = [rows[name] for name in names]
    if len(others) == 1:
        paths = table.texts(others[0]).to_pylist()
        return {name: paths[i] or "" for name, i in zip(names, places, strict=True)}
    columns = []
    for name in names:
        values = table.numbers(name)
        if values is None or np.isnan(values[places]).any():
            raise TableError(f"cost: {table.where(name)} holds no number.")
        columns.append(values[places])
    return np.stack(columns, axis=1).tolist()


def read_embeddings(embeddings: Any, n: int) -> Any:
    """Read a matrix of numbers, one row an item, from an array or a file of numpy.

    Returns
    -------
    pandas.DataFrame
        Columns ``embedding_0`` and so on.
    """
    where = "embeddings"
    if isinstance(embeddings, (str, os.PathLike)):
        where = f"'{printable(os.fspath(embeddings))}'"
        try:
            with open(embeddings, "rb") as file:
                embeddings = np.load(file, allow_pickle=False)
            if not isinstance(embeddings, np.ndarray):
                raise ValueError("it holds several arrays")
        except FileNotFoundError:
            raise TableError(f"there is no file {where}. Check the path.") from None
        except Exception as error:  # a damaged file raises what zip, tokens and memory raise
            said = printable(str(error).partition("\n")[0])
            raise TableError(
                f"{where} is no file of numpy ({said}). Write one with numpy.save(path, X)."
            ) from error
    try:
        matrix = np.asarray(embeddings, dtype=np.float64)
    except (ValueError, TypeError):
        matrix = np.empty(0)
    if matrix.ndim != 2 or not matrix.shape[1]:
        raise TableError(f"{where}: a matrix of numbers is needed, one row an item.")
    if len(matrix) != n:
        raise TableError(
            f"{where} has {len(matrix)} rows, but there are {n} items. Give one each."
        )
    if np.isnan(matrix).all():
        raise TableError(f"{where} holds no number.")
    wrong = np.flatnonzero((np.abs(matrix) > LARGEST).any(axis=1))
    if len(wrong):
        what = (
            "infinite numbers" if np.isinf(matrix).any() else "numbers too large to compute with"
        )
        raise TableError(f"{where}: {name_rows(wrong)}: {what}. Correct them.")
    import pyarrow as pa

    return pa.table({f"embedding_{j}": column for j, column in enumerate(matrix.T)}).to_pandas()


@dataclass(frozen=True)
class Embedder:
    """The model of one column of prose or pictures.

    Attributes
    ----------
    column : str
        The column.
    kind : {"text", "picture"}
        What it holds.
    model : object
        See `embed_texts` and `embed_pictures`.
    home : Path
        The folder that names of pictures are relative to.
    """

    column: str
    kind: Literal["text", "picture"]
    model: Any
    home: Path = Path()

    @property
    def key(self) -> str | None:
        """A hash of what is in the model, None if nobody knows."""
        return None if self.model == HISTOGRAMS else model_key(self.model, self.kind)

    @property
    def name(self) -> str:
        """What the model is called."""
        named = isinstance(self.model, (str, os.PathLike))
        return os.fspath(self.model) if named else type(self.model).__name__


def add_vectors(
    frame: Any,
    embedders: Sequence[Embedder],
    cells_of: Callable[[str], Sequence[str]],
    notes: list[str],
    step: Step = nobody,
) -> tuple[Any, dict[str, list[str]]]:
    """Put vectors beside the columns of a frame, in the place of prose that has a model.

    Returns
    -------
    frame : pandas.DataFrame
        With the vectors last.
    vectors : dict of str to list of str
        Which columns of it are the vectors of which column of the table.
    """
    import pyarrow as pa

    vectors: dict[str, list[str]] = {}
    for each in embedders:
        cells, name = cells_of(each.column), each.column
        if each.kind == "text":
            found: NDArray[Any] = embed_texts(cells, each.model, step=step)
        else:
            found, problems = embed_pictures(cells, each.model, home=each.home, step=step)
            notes.extend(name_problems(problems, cells))
        if not found.shape[1]:
            raise TableError(
                f"column {name_some([name])}: no {each.kind} can be learned from. "
                + (" ".join(notes[-1:]) or "It is empty.")
            )
        wide = np.ascontiguousarray(found.T, dtype=np.float64)
        columns = pa.table({f"{name} {j}": row for j, row in enumerate(wide)}).to_pandas()
        vectors[name] = list(columns.columns)
        if each.kind == "picture" and each.model == HISTOGRAMS:
            notes.append(_WEAK)
        if frame is not None and name in frame.columns:
            frame = frame.drop(columns=name)
        frame = _beside(frame, columns)
    return frame, vectors


def _beside(frame: Any, columns: Any) -> Any:
    return columns if frame is None else frame.join(columns)


def _make_estimator(case: Case, base: Any, cost: Any, settings: dict[str, Any]) -> Any:
    """Make the classifier of a method, with the settings that were given."""
    if case.method != "plcp" and base is not None:
        raise ValueError(f"base={base!r} is for method 'plcp'; this is {case.method!r}.")
    seed = case.call["random_state"]
    estimator: Any
    if case.method == "testimony":
        ordered = is_ordered(cost) or case.call["order"] is not None
        estimator = TestimonyClassifier(cost=cost, ordered=ordered)
    elif case.method == "jury":
        covering = "auto" if case.groups else False
        order = "auto" if case.call["order"] is None else case.classes.tolist()
        estimator = JuryClassifier(
            "kernel", covering=covering, order=order, cost=cost, random_state=seed
        )
    else:
        many = len(case.names) > LARGE or settings.get("approximation") == "nystroem"
        base = base or ("sure" if many else "aggd")
        first = make_base("aggd" if base == "auto" else base) if isinstance(base, str) else base
        estimator = PLCPClassifier(first, cost=cost, random_state=seed, keep_confidences=True)
        if base == "auto":
            _select(case, estimator)
    names, owner = GaussianKernel().get_params(), getattr(estimator, "estimator", estimator)
    kernel = {name: settings.pop(name) for name in [*settings] if name in names}
    if kernel:
        has_kernel = hasattr(owner, "get_params") and "kernel" in owner.get_params()
        (owner if has_kernel else estimator).set_params(kernel=GaussianKernel(**kernel))
    return estimator.set_params(**settings)


def _select(case: Case, estimator: PLCPClassifier) -> None:
    """Choose base and settings of PLCP by a score that needs no truth, on some of the items."""
    seed, n = case.call["random_state"], len(case.names)
    rows = np.random.default_rng(seed).permutation(n)[:_COMPARED]
    X, sets = clone(case.encoder).fit_transform(case.X.iloc[rows]), case.sets[rows]
    tried = []
    for name in ("sure",) if n > LARGE else _BASES:
        base = make_base(name)
        search = PLCPClassifierCV(base, costs=[estimator.cost], random_state=seed).fit(X, sets)
        tried.append((float(search.best_score_), name, base, dict(search.best_params_)))
    _, name, base, params = max(tried, key=lambda each: each[0])
    scores = ", ".join(f"{name} {score:.4f}" for score, name, *_ in tried)
    case.notes.append(
        f"{name} was chosen as base without the truth, on {len(rows)} items: {scores}."
    )
    known, width = base.get_params(), params.pop("bandwidth")
    (base if "kernel" in known else estimator).set_params(kernel=GaussianKernel(width))
    if "regularization" in known:
        base.set_params(regularization=params["regularization"])
    estimator.set_params(estimator=base, **params)


def _notes(case: Case) -> Iterator[str]:
    """Say what is thin about a case, and of how many items the page will show no picture."""
    n, image = len(case.names), case.roles.image
    if n < 20:
        yield f"{n} items are few to learn from: look at every label."
    if case.X is None:
        yield "there is nothing to learn from, so the answers alone decide; no model is left."
    elif not case.n_embeddings and not case.vectors and len(case.kinds) == 1:
        yield f"{name_some(case.kinds)} is the only column that is learned from."
    if image is None:
        return
    cells, where = [*filter(None, case.cells(image))], f"{case.table.where(image)} (image)"
    files = [cell for cell in cells if is_file(cell)]
    gone = [cell for cell in files if not os.path.isfile(case.table.home / cell)]
    if gone:
        yield (
            f"{where}: {len(gone)} of {len(files)} picture files do not exist, e.g. "
            f"{name_some(gone[:1])}. Paths are relative to the table."
        )
    away = [cell for cell in cells if cell.lower().startswith(("http://", "https://"))]
    if away:
        yield (
            f"{where}: {len(away)} pictures are addresses on the web; the page opens no "
            "connection and shows none of them. Name local files instead."
        )


def is_file(cell: str) -> bool:
    """Tell whether a cell of pictures names a file, rather than an address or what is in one."""
    return "://" not in cell and not cell.startswith("data:")


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
