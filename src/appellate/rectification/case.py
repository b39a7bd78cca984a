"""A table understood: what was said of every item, what it looks like, and how to judge it.

Everything that can be wrong with a call of `appellate.rectify` is found here, before any work.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from appellate.candidates import Answers, CandidateSets
from appellate.candidates.answers import answers_of_sets
from appellate.costs import WORDS, as_numbers, cost_matrix, is_ordered
from appellate.rectification.models import Embedder, add_vectors, choose_embedders
from appellate.tables import Labels, Roles, Table, TableError, find_roles, read_labels, read_table
from appellate.tables.cells import as_number, name_rows, name_some, printable
from appellate.tables.encoding import FeatureKind, feature_kinds, features, make_encoder

METHODS = ("auto", "jury", "plcp", "testimony")
LARGE = 12_000  # items from which on PL-AGGD's graph is slow
_COMPARED = 1_000  # items on which bases are compared
_BASES = ("aggd", "sure", "knn")
_LARGEST = 1e30
_UNKNOWN = "(nobody named)"
_OTHERS = ("settings", "columns", "step")  # no arguments of `rectify`
Step = Callable[[str], object]
NOT_KEPT = "not kept"  # of an argument that JSON cannot hold: its kind


@dataclass(eq=False)
class Case:
    """A table, what its columns are, and who is to judge it.

    Attributes
    ----------
    table, roles, labels
        The user's table, what its columns are, and what was said of its n items.
    classes : ndarray of str, shape (l,)
        The labels, in their order.
    X : pandas.DataFrame or None
        Features of the items; None if there are none.
    kinds : dict of str to str
        What the features are: number, category, date or text.
    n_embeddings : int
        How many of them are embeddings, the last ones.
    method : str
        ``"jury"``, ``"plcp"`` or ``"testimony"``.
    estimator : estimator
        The classifier, not fitted.
    groups : list of str or None
        Group of every item.
    scheduler : str or None
        Address of a Dask scheduler whose workers fit.
    call : dict
        What `rectify` was called with, in JSON's types.
    notes : list of str
        What the user should know of the table, though it can be used.
    embedders : list of Embedder
        Models of prose and pictures.
    vectors : dict of str to list of str
        Columns of `X` that these made, by column of the table.
    uninformed : bool
        Whether the features turned out to say nothing of the labels.
    estimated_seconds : float or None
        What judging was expected to take.
    """

    table: Table
    roles: Roles
    labels: Labels
    classes: NDArray[Any]
    X: Any
    kinds: Mapping[str, FeatureKind]
    n_embeddings: int
    method: str
    estimator: Any = None
    groups: list[str] | None = None
    scheduler: str | None = None
    call: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    embedders: list[Embedder] = field(default_factory=list)
    vectors: dict[str, list[str]] = field(default_factory=dict)
    uninformed: bool = False
    estimated_seconds: float | None = None

    def __len__(self) -> int:
        """Return the number of items."""
        return self.labels.n_rows

    @property
    def has_answers(self) -> bool:
        """Whether people answered, rather than sets were given."""
        return self.roles.layout != "candidates"

    @property
    def data(self) -> str:
        """Hash of the table, which decisions carry."""
        return f"sha256:{self.table.sha256[:32]}"

    @cached_property
    def votes(self) -> NDArray[np.float64]:
        """How often each label was named, (n, l)."""
        place = {name: j for j, name in enumerate(self.classes.tolist())}
        votes = np.zeros((len(self), len(place)))
        votes[:, [place[name] for name in self.labels.class_names.tolist()]] = self.labels.counts
        return votes

    @cached_property
    def sets(self) -> CandidateSets:
        """Candidate sets: what was named at all."""
        return CandidateSets(self.votes > 0, self.classes)

    @cached_property
    def reviewable(self) -> NDArray[np.bool_]:
        """Candidates as the page shows them, (n, l): all labels where nobody named one."""
        return self.sets.matrix | ~self.sets.matrix.any(axis=1, keepdims=True)

    @cached_property
    def names(self) -> list[str]:
        """What the items are called; their numbers if they have no names."""
        ids = self.labels.ids
        return [str(i) for i in (range(len(self)) if ids is None else ids.tolist())]

    @cached_property
    def answers(self) -> Answers:
        """Who said what."""
        if not self.has_answers:
            return answers_of_sets(self.sets.matrix, self.classes, None)
        if not len(self.labels.people_names):
            rows, labels = np.nonzero(self.votes)
            weights, people, names = self.votes[rows, labels], 0 * rows, None
        else:
            read = self.labels
            place = {name: j for j, name in enumerate(self.classes.tolist())}
            codes = np.array([place[name] for name in read.class_names.tolist()])
            order = np.lexsort((read.people, read.rows))
            rows, people, weights = read.rows[order], read.people[order], read.weights[order]
            labels, names = codes[read.labels[order]], read.people_names
            if (people < 0).any():
                people = np.where(people < 0, len(names), people)
                names = np.array([*names.tolist(), _UNKNOWN])
        once = None if (weights == 1).all() else weights
        who, of_row, what = (each.astype(np.int32) for each in (people, rows, labels))
        return Answers(of_row, who, what, len(self), self.classes, names, once)

    def cells(self, column: str) -> list[str]:
        """Return a column as texts, one an item; empty for none."""
        return _cells(self.table, self.labels, column)

    def images(self, folder: Path | None = None) -> list[str]:
        """Return the pictures' paths, relative to a folder instead of to the table."""
        cells, home = self.cells(self.roles.image or ""), self.home
        if folder is None:
            return cells
        return [
            Path(os.path.relpath((home / cell).absolute(), folder.absolute())).as_posix()
            if cell and _is_file(cell)
            else cell
            for cell in cells
        ]

    @property
    def home(self) -> Path:
        """The folder that paths in the table are relative to."""
        return _home(self.table)

    def make_encoder(self) -> Any:
        """Return what turns the features into numbers, not fitted."""
        vectors = dict(self.vectors)
        made = {name for names in vectors.values() for name in names}
        own = [name for name in self.X.columns if name not in made]
        if self.n_embeddings:
            vectors["embeddings"] = own[len(own) - self.n_embeddings :]
        text = [name for name in own if self.kinds.get(name) == "text"]
        return make_encoder(
            self.X, text=text, vectors=vectors, random_state=self.call["random_state"]
        )

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
        lines.append(f"method {self.method}: {self.estimator}".replace("\n", " "))
        return "\n".join(lines)


def _cells(table: Table, labels: Labels, column: str) -> list[str]:
    texts = table.texts(column).take(labels.first).to_pylist()
    return [text or "" for text in texts]


def _home(table: Table) -> Path:
    path = Path(table.path or "")
    return path if path.is_dir() else path.parent


def understand(
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
    method: str = "auto",
    base: Any = None,
    cost: Any = None,
    order: Any = None,
    random_state: int | None = 0,
    settings: Mapping[str, Any] | None = None,
    step: Step = lambda text: None,
    **columns: Any,
) -> Case:
    """Read a table and settle how to judge it; see `appellate.rectify`."""
    call = {name: value for name, value in locals().items() if name not in _OTHERS}
    further = dict(settings or {})
    if method not in METHODS:
        raise ValueError(f"method={method!r} is none of {', '.join(METHODS)}.")
    if order is not None and not is_ordered(cost):
        raise ValueError(
            "order is for a cost that needs one: give cost 'absolute', 'within:N' or 'ordinal:W'."
        )
    reading: dict[str, Any] = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal}
    table = read_table(data, **reading, sheet=sheet, question=question)
    call = {**call, "data": table.path, **columns, **further}
    named = {name: value for name, value in columns.items() if value is not None}
    if groups is not None:
        (groups,) = table.find([groups], "groups")
        ignored = named.get("ignore", [])
        named["ignore"] = [*([ignored] if isinstance(ignored, str) else ignored), groups]
    roles = find_roles(table, **named)
    labels = read_labels(table, roles)
    if method == "auto":
        several = np.bincount(labels.rows, labels.weights, minlength=1).max() > 1
        people = roles.layout != "candidates" and (
            roles.annotators or len(roles.long) > 2 or several
        )
        method = "plcp" if base is not None else "testimony" if people else "jury"
    problems = labels.problems(answers=method == "testimony")
    if problems:
        raise TableError(f"{table.source}: {problems[0]}")
    classes = _in_order(labels.class_names, order)
    cost = _read_cost(cost, classes.tolist(), order)
    wanted = embeddings is None or "features" in named or "text" in named
    alone = embeddings is None and not roles.features and not roles.text
    X, n_embeddings, notes = None, 0, [*table.notes, *roles.notes, *labels.notes]

    def cells(name: str) -> list[str]:
        return _cells(table, labels, name)

    embedders = choose_embedders(roles, cells, _home(table), text_model, image_model, alone=alone)
    others = bool(roles.features or roles.text)
    if wanted and (others or (method != "testimony" and not embedders)):
        X = features(table, roles, rows=labels.first)
        check_size(table, X)
    kinds: dict[str, FeatureKind] = {} if X is None else feature_kinds(X, roles.text)
    if embeddings is not None:
        numbers = read_embeddings(embeddings, labels.n_rows)
        X, n_embeddings = numbers if X is None else X.join(numbers), numbers.shape[1]
    X, vectors = add_vectors(X, embedders, cells, notes, step)
    kinds |= {each.column: each.kind for each in embedders}
    case = Case(
        table,
        roles,
        labels,
        classes,
        X,
        kinds,
        n_embeddings,
        method,
        scheduler=further.pop("scheduler", None),
        call={name: _plain(value) for name, value in call.items()},
        notes=notes,
        embedders=embedders,
        vectors=vectors,
    )
    if groups is not None:
        case.groups = case.cells(groups)
    case.estimator = _make_estimator(case, base, cost, further)
    case.notes.extend(_notes(case))
    return case


def _in_order(found: NDArray[Any], order: Any) -> NDArray[Any]:
    """Put labels into the user's order; labels that no row has are added."""
    if order is None:
        return found
    text = isinstance(order, str)
    names = next(csv.reader([order], skipinitialspace=True), []) if text else map(str, order)
    same = {as_number(name): name for name in found.tolist()} | {None: None}
    given = [same.get(as_number(name.strip())) or name.strip() for name in names]
    twice = [name for i, name in enumerate(given) if name in given[:i]]
    lacking = [name for name in found.tolist() if name not in given]
    if len(given) < 2 or not all(given) or twice or lacking:
        wrong = "name two labels or more, such as small,medium,large."
        if twice:
            wrong = f"{name_some(twice[:1])} comes twice."
        elif lacking:
            wrong = f"it lacks labels of the table: {name_some(lacking, 8)}."
        raise ValueError(f"order: {wrong}")
    odd = [name for name in given if as_number(name) is None]
    if odd and as_numbers(found.tolist()) is not None:
        raise ValueError(f"order: {name_some(odd[:1])} is no number, but the labels are.")
    return np.array(given, dtype=np.str_)


def _read_cost(cost: Any, names: list[str], order: Any) -> Any:
    """Return what the classifiers take as `cost`, checked."""
    if is_ordered(cost) and order is None and as_numbers(names) is None:
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
            raise TableError(f"cost: {table.source}, column {name_some([name])} holds no number.")
        columns.append(values[places])
    return np.stack(columns, axis=1).tolist()


def check_size(table: Table, frame: Any) -> None:
    """Refuse numbers that are too large to compute with."""
    for name, column in frame.select_dtypes("number").items():
        wrong = np.flatnonzero(np.abs(column.to_numpy()) > _LARGEST)
        if len(wrong):
            raise TableError(
                f"{table.source}, column {name_some([name])}: row {wrong[0]} holds a number too "
                "large to compute with. Correct it, or leave the row out."
            )


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
    wrong = np.flatnonzero((np.abs(matrix) > _LARGEST).any(axis=1))
    if len(wrong):
        what = (
            "infinite numbers" if np.isinf(matrix).any() else "numbers too large to compute with"
        )
        raise TableError(f"{where}: {name_rows(wrong)}: {what}. Correct them.")
    return pa.table({f"embedding_{j}": column for j, column in enumerate(matrix.T)}).to_pandas()


def _make_estimator(case: Case, base: Any, cost: Any, settings: dict[str, Any]) -> Any:
    """Make the classifier of a method, with the settings that were given."""
    from appellate.numerics.kernels import GaussianKernel

    if case.method != "plcp" and base is not None:
        raise ValueError(f"base={base!r} is for method 'plcp'; this is {case.method!r}.")
    random_state = case.call["random_state"]
    estimator: Any
    owner: Any = None
    if case.method == "testimony":
        from appellate.testimony import TestimonyClassifier

        estimator = TestimonyClassifier(cost=cost, ordered=is_ordered(cost))
    elif case.method == "jury":
        from appellate.jury import JuryClassifier

        covering = "auto" if case.groups else False
        estimator = JuryClassifier(
            "kernel", covering=covering, cost=cost, random_state=random_state
        )
    else:
        from appellate.bases import make_base
        from appellate.plcp import PLCPClassifier

        many = len(case) > LARGE or settings.get("approximation") == "nystroem"
        base = base or ("sure" if many else "aggd")
        owner = make_base("aggd" if base == "auto" else base) if isinstance(base, str) else base
        estimator = PLCPClassifier(
            owner, cost=cost, random_state=random_state, keep_confidences=True
        )
        if base == "auto":
            estimator = _select(case, estimator)
            owner = estimator.estimator
    names = GaussianKernel().get_params()
    kernel = {name: settings.pop(name) for name in [*settings] if name in names}
    if kernel:
        has_kernel = hasattr(owner, "get_params") and "kernel" in owner.get_params()
        (owner if has_kernel else estimator).set_params(kernel=GaussianKernel(**kernel))
    estimator.set_params(**settings)
    return estimator


def _select(case: Case, estimator: Any) -> Any:
    """Choose base and settings of PLCP by a score that needs no truth, on some of the items."""
    from appellate.bases import make_base
    from appellate.model_selection import PLCPClassifierCV

    seed = case.call["random_state"]
    rows = np.random.default_rng(seed).permutation(len(case))[:_COMPARED]
    X, sets = case.make_encoder().fit_transform(case.X.iloc[rows]), case.sets[rows]
    tried = []
    for name in ("sure",) if len(case) > LARGE else _BASES:
        base = make_base(name)
        search = PLCPClassifierCV(base, costs=[estimator.cost], random_state=seed).fit(X, sets)
        tried.append((float(search.best_score_), name, base, search.best_params_))
    _, name, base, params = max(tried, key=lambda each: each[0])
    scores = ", ".join(f"{name} {score:.4f}" for score, name, *_ in tried)
    case.notes.append(
        f"{name} was chosen as base without the truth, on {len(rows)} items: {scores}."
    )
    return _with_params(estimator.set_params(estimator=base), params)


def _with_params(estimator: Any, params: Mapping[str, Any]) -> Any:
    """Give PLCP and its base what a search found."""
    from appellate.numerics.kernels import GaussianKernel

    base = estimator.estimator
    known = base.get_params()
    chosen = {name: value for name, value in params.items() if name not in ("cost", "bandwidth")}
    if "bandwidth" in params:
        kernel = GaussianKernel(params["bandwidth"])
        (base if "kernel" in known else estimator).set_params(kernel=kernel)
    if "regularization" in params and "regularization" in known:
        base.set_params(regularization=params["regularization"])
    return estimator.set_params(**chosen)


def _notes(case: Case) -> Iterator[str]:
    """Say what is thin about a case, and of how many items the page will show no picture."""
    contested = int((np.count_nonzero(case.sets.matrix, axis=1) > 1).sum())
    if len(case) < 20:
        yield f"{len(case)} items are few to learn from: look at every label."
    if not contested and not case.has_answers:
        yield "no row has several candidates: there is nothing to decide."
    if case.X is None:
        yield "there is nothing to learn from, so the answers alone decide; no model is left."
    elif not case.n_embeddings and not case.vectors and len(case.kinds) == 1:
        yield f"{name_some(case.kinds)} is the only column that is learned from."

    if case.roles.image is None:
        return
    cells = [cell for cell in case.images() if cell]
    where = f"{case.table.source}, column {name_some([case.roles.image])} (image)"
    files = [cell for cell in cells if _is_file(cell)]
    gone = [cell for cell in files if not os.path.isfile(case.home / cell)]
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


def _is_file(cell: str) -> bool:
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


def in_json(values: Iterable[Any]) -> list[Any]:
    """Return values of numpy as those of Python, None for NaN."""
    plain = (value.item() if hasattr(value, "item") else value for value in values)
    return [None if value != value else value for value in plain]
