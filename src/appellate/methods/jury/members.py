"""Members of a jury: what each kind learns from, and what it returns.

A jury keeps K + 1 *replicas* of its targets: replica 0 has all rows, replica k has all rows but
those of fold k. A member that takes part in the rounds (kernel, forest) returns an
(n, K + 1, l) array: entry ``[i, k]`` is its output on row i after it learned from replica k. The
target of row i itself is left out: by leave-one-out or out of bag if the replica has the row, and
because the row is in fold k otherwise. The output on fold k by replica k is *held out*: the row
was in no round of that replica.

Networks and classifiers with ``fit(X, candidates, supervision=)`` are fitted once, after the
rounds, on every replica that lacks a fold. They judge held-out rows and new rows only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold
from sklearn.utils import gen_batches
from sklearn.utils.validation import has_fit_parameter

from appellate.core.base import PartialLabelClassifier
from appellate.core.foreign import seeded
from appellate.core.results import Model, ProbabilityModel
from appellate.evidence.groups import Groups
from appellate.evidence.likelihood import Evidence
from appellate.evidence.scales import Scale
from appellate.numerics.entries import Values
from appellate.numerics.kernels import GaussianKernel, LaplacianKernel, RadialKernel
from appellate.numerics.smoothers import Regressor
from appellate.numerics.threads import replacing_workers

Doubles = NDArray[np.float64]
#: Fits a model to rows, their evidence, (n, l) targets and a seed; it scores rows by `predict`.
FitModel = Callable[[NDArray[Any], Evidence, Doubles, int], Any]
#: Name of a member that is fitted once, its held-out scores (n, l), and its models for new rows.
LateMember = tuple[str, Doubles, list[Any]]

#: Kernel, with its width in mean distances, and ridge of every kernel member.
KERNELS: tuple[tuple[RadialKernel, float], ...] = (
    (GaussianKernel(0.5), 0.05),
    (GaussianKernel(1.0), 0.05),
    (GaussianKernel(1.0), 0.5),
    (GaussianKernel(0.5, root=True), 0.05),
    (LaplacianKernel(1.0), 0.05),
    (LaplacianKernel(1.0, root=True), 0.05),
)
_LEAST_SHARE = 1e-3  # of a label in the output of a forest, before its logarithm
_DIGITS = 10  # decimals of the targets of a forest
_DENSE_BYTES = 64 * 2**20  # of sparse new rows that are dense at a time


def name_kernel(kernel: RadialKernel, ridge: float) -> str:
    """Return the name of a kernel member.

    Examples
    --------
    >>> name_kernel(*KERNELS[3])
    'Gaussian of square roots, width 0.5, ridge 0.05'
    """
    kind = type(kernel).__name__.removesuffix("Kernel")
    roots = " of square roots" if kernel.root else ""
    return f"{kind}{roots}, width {kernel.bandwidth:g}, ridge {ridge:g}"


# -- replicas ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Replicas:
    """Which rows each replica has, and the evidence of its rows.

    Attributes
    ----------
    evidence : Evidence
        Evidence of all n rows.
    fold : ndarray of int, shape (n,)
        Number of the replica that lacks the row, from 1 to K; 0 if there is only one row.
    rows : list of ndarray of int
        Rows of every replica.
    parts : list of Evidence
        Evidence of the rows of every replica.
    shape : tuple of int
        ``(n, K + 1, l)``.
    """

    evidence: Evidence
    fold: NDArray[np.intp]
    rows: list[NDArray[np.intp]]
    parts: list[Evidence]
    shape: tuple[int, int, int]

    @classmethod
    def split(cls, evidence: Evidence, fold: NDArray[np.intp]) -> Replicas:
        """Make the replicas of a division into folds."""
        rows = [np.flatnonzero(fold != k) for k in range(int(fold.max()) + 1)]
        rows[0] = np.arange(len(fold))
        parts = [evidence, *(evidence.take(each) for each in rows[1:])]
        n, l = evidence.entries.shape
        return cls(evidence, fold, rows, parts, (n, len(rows), l))

    def folds(self) -> Iterator[tuple[int, NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the number of every replica but the first, its rows and the rows of its fold."""
        for k, rest in enumerate(self.rows[1:], 1):
            yield k, rest, np.flatnonzero(self.fold == k)

    def cover(self, groups: NDArray[Any]) -> list[Groups | None]:
        """Return the groups of every replica's rows, whose labels are to be covered."""
        pairs = zip(self.rows, self.parts, strict=True)
        return [Groups(groups[rows], part.entries) for rows, part in pairs]

    def divide(self, start: Doubles) -> list[Values]:
        """Return an (n, l) confidence as targets of every replica, as candidate entries."""
        pairs = zip(self.rows, self.parts, strict=True)
        return [part.normalize(part.entries.gather(start[rows])) for rows, part in pairs]

    def scatter(self, targets: Sequence[Values]) -> Doubles:
        """Write the targets of every replica, candidate entries, into an (n, K + 1, l) array."""
        out = np.zeros(self.shape)
        for k, (rows, part, values) in enumerate(zip(self.rows, self.parts, targets, strict=True)):
            out[rows[part.entries.rows], k, part.entries.labels] = values
        return out

    def held_out(self, output: Doubles) -> Doubles:
        """Read every row's output by the replica that lacks it, (n, l)."""
        return np.asarray(output[np.arange(len(self.fold)), self.fold])


def draw_folds(n: int, n_folds: int, groups: Any, rng: np.random.RandomState) -> NDArray[np.intp]:
    """Draw the fold of every row, from 1 on. Groups stay whole; a single row has fold 0.

    Examples
    --------
    >>> import numpy as np
    >>> np.bincount(draw_folds(7, 3, None, np.random.RandomState(0)))
    array([0, 3, 2, 2])
    """
    order = rng.permutation(n)
    seed = rng.randint(np.iinfo(np.int32).max)
    n_folds = min(n_folds, n)
    if n < 2:
        return np.zeros(n, dtype=np.intp)
    fold = np.empty(n, dtype=np.intp)
    fold[order] = np.arange(n) % n_folds + 1
    n_groups = 0 if groups is None else len(np.unique(groups))
    if n_groups > 1:
        splits = GroupKFold(min(n_folds, n_groups), shuffle=True, random_state=seed)
        for k, (_, held) in enumerate(splits.split(order, groups=groups), 1):
            fold[held] = k
    return fold


# -- members that a user names -------------------------------------------------------------


def sort_members(
    members: Iterable[Any],
) -> tuple[list[tuple[str, Any]], list[tuple[str, FitModel]]]:
    """Return name and forest of the forests; name and fit of the members that are fitted once.

    Raises
    ------
    TypeError
        If a member cannot learn from soft targets.
    """
    from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

    forests: list[tuple[str, Any]] = []
    late: list[tuple[str, FitModel]] = []
    for member in members:
        if member == "network":  # by name: `appellate.deep` imports this module, and needs torch
            late.append((member, import_module("appellate.deep").fit_network))
        elif isinstance(member, type) or not callable(getattr(member, "fit", None)):
            raise TypeError(f"{member!r} cannot be a member of a jury: give a fresh estimator.")
        elif has_fit_parameter(member, "supervision"):
            late.append((type(member).__name__, partial(fit_supervised, member)))
        elif isinstance(member, RandomForestRegressor | ExtraTreesRegressor) and member.bootstrap:
            forests.append((type(member).__name__, member))
        else:
            raise TypeError(
                f"{member!r} cannot be a member of a jury: give a forest of regression trees with "
                "bootstrap=True, the word 'network', or a classifier with fit(X, candidates, "
                "supervision=). SoftLabelClassifier makes one of a classifier or regressor of "
                "scikit-learn."
            )
    return forests, late


def fit_supervised(
    estimator: Any, X: NDArray[Any], evidence: Evidence, targets: Doubles, seed: int
) -> ModelScores:
    """Fit a classifier of candidate sets that takes soft targets as supervision."""
    candidates = evidence.entries.scatter(np.ones(len(evidence.entries), dtype=bool))
    return ModelScores(seeded(estimator, seed).fit(X, candidates, supervision=targets))


def fit_held_out(
    name: str,
    fit: FitModel,
    targets: Sequence[Values],
    seed: int,
    *,
    X: NDArray[Any],
    replicas: Replicas,
    n_jobs: int | None,
) -> LateMember:
    """Fit a model to every replica that lacks a fold; every model scores the fold it lacks.

    Parameters
    ----------
    name : str
        Name of the member.
    fit : callable
        Fits one model.
    targets : sequence of ndarray
        Targets of every replica, as candidate entries.
    seed : int
        Replica k is fitted with ``seed + k``.
    X : ndarray, shape (n, q)
        All rows.
    replicas : Replicas
        Which rows each replica has.
    n_jobs : int or None
        Fits at a time.

    Returns
    -------
    name : str
        The same.
    scores : ndarray, shape (n, l)
        Scores of every row, by the model that did not see it.
    models : list
        Objects with ``predict(X)``.
    """
    jobs = []
    for k, rest, _ in replicas.folds():
        part = replicas.parts[k]
        jobs.append(delayed(fit)(X[rest], part, part.entries.scatter(targets[k]), seed + k))
    with replacing_workers():
        models = Parallel(n_jobs)(jobs)
    scores = np.empty(replicas.evidence.entries.shape)
    for model, (_, _, fold) in zip(models, replicas.folds(), strict=True):
        scores[fold] = model.predict(X[fold])
    return name, scores, models


def fit_forest(
    forest: Any,
    targets: Doubles,
    seed: int,
    *,
    X: NDArray[Any],
    replicas: Replicas,
    n_jobs: int | None,
) -> tuple[Doubles, Trees]:
    """Fit a forest with ``bootstrap=True`` to every replica; it judges its own rows out of bag.

    Cost: K + 1 fits.

    Parameters
    ----------
    forest : RandomForestRegressor or ExtraTreesRegressor
        Not fitted.
    targets : ndarray, shape (n, K + 1, l)
        Targets of every replica. Ten decimals of them count.
    seed : int
        Replica k is fitted with ``seed + k``.
    X : ndarray, shape (n, q)
        All rows.
    replicas : Replicas
        Which rows each replica has.
    n_jobs : int or None
        Fits at a time.

    Returns
    -------
    output : ndarray, shape (n, K + 1, l)
        Logarithms of label shares; row i's own target is left out.
    model : Trees
        The forest of all rows.
    """
    single = X.astype(np.float32)
    # A last digit, which depends on the number of threads, must not move a split.
    targets = np.round(targets, _DIGITS)
    jobs = (
        delayed(_fit_out_of_bag)(seeded(forest, seed + k), single, rows, targets[:, k])
        for k, rows in enumerate(replicas.rows)
    )
    with replacing_workers():
        forests, outputs = zip(*Parallel(n_jobs)(jobs), strict=True)
    return np.stack(outputs, axis=1), Trees.of(forests[0])


def _fit_out_of_bag(
    forest: Any, X: NDArray[np.float32], rows: NDArray[np.intp], targets: Doubles
) -> tuple[Any, Doubles]:
    """Fit a forest to some rows; return it, and its output on all rows, (n, l)."""
    n, l = targets.shape
    forest.fit(X[rows], targets[rows])
    total = np.zeros((n, l))
    votes = np.zeros(n)
    others = np.setdiff1d(np.arange(n), rows)
    for tree, drawn in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        judged = np.concatenate([np.delete(rows, np.unique(drawn)), others])
        total[judged] += tree.tree_.predict(X[judged]).reshape(len(judged), l)
        votes[judged] += 1
    unknown = votes == 0
    total[unknown] = 1
    votes[unknown] = l
    return forest, log_shares(total / votes[:, np.newaxis], n)


def log_shares(output: NDArray[Any], n: int) -> Doubles:
    """``log rownorm(output + .001)`` of n rows."""
    shares = np.maximum(output.reshape(n, -1), 0) + _LEAST_SHARE
    return np.asarray(np.log(shares / shares.sum(axis=1, keepdims=True)))


# -- models for new rows -------------------------------------------------------------------


@dataclass(frozen=True)
class Trees:
    """A fitted forest of regression trees as arrays, which a model file may hold.

    Attributes
    ----------
    roots : ndarray of int, shape (T,)
        First node of every tree.
    left, right, feature : ndarray of int, shape (nodes,)
        Children (a leaf is its own child), and the column that is compared.
    threshold : ndarray, shape (nodes,)
        Rows at most as large go left.
    value : ndarray, shape (nodes, l)
        Output.
    """

    roots: NDArray[np.intp]
    left: NDArray[np.intp]
    right: NDArray[np.intp]
    feature: NDArray[np.intp]
    threshold: NDArray[np.float64]
    value: NDArray[np.float32]

    @classmethod
    def of(cls, forest: Any) -> Trees:
        """Copy a fitted forest of scikit-learn."""
        trees = [each.tree_ for each in forest.estimators_]
        sizes = [tree.node_count for tree in trees]
        roots = np.cumsum([0, *sizes[:-1]])
        left, right, feature, threshold, value = (
            np.concatenate([getattr(tree, name) for tree in trees])
            for name in ("children_left", "children_right", "feature", "threshold", "value")
        )
        own = np.arange(len(left))
        first = np.repeat(roots, sizes)
        return cls(
            roots,
            np.where(left < 0, own, left + first),
            np.where(right < 0, own, right + first),
            np.maximum(feature, 0),
            threshold,
            value[:, :, 0].astype(np.float32),
        )

    def predict(self, X: NDArray[Any]) -> Doubles:
        """Return logarithms of the label shares of new rows, (m, l)."""
        return log_shares(self.average(X.astype(np.float32, copy=False)), len(X))

    def average(self, X: NDArray[np.float32]) -> Doubles:
        """Return the mean output of all trees, (m, l)."""
        out = np.zeros((len(X), self.value.shape[1]))
        rows = np.arange(len(X))
        for root in self.roots:
            nodes = np.full(len(X), root)
            before = None
            while before is None or (nodes != before).any():
                before = nodes
                small = X[rows, self.feature[nodes]] <= self.threshold[nodes]
                nodes = np.where(small, self.left[nodes], self.right[nodes])
            out += self.value[nodes]
        return out / len(self.roots)


@dataclass(frozen=True)
class ModelScores:
    """Doubles of a fitted classifier or `Model`; logarithms if it gives probabilities.

    Attributes
    ----------
    model : Model, or classifier of candidate sets
        What is fitted. A classifier was fitted to dense rows, and gets dense rows.
    """

    model: Any

    def predict(self, X: Any) -> Doubles:
        """Score new rows, (m, l), also if there are two labels.

        A classifier of this library gives its scores, whatever `cost` it has: the jury weighs
        labels by a cost of its own.
        """
        model = self.model
        if isinstance(model, Model):
            scores = np.asarray(model.decision(X), dtype=np.float64)
            shares = isinstance(model, ProbabilityModel)
            return log_shares(scores, len(scores)) if shares else scores
        X = X.toarray() if sp.issparse(X) else X
        ours = isinstance(model, PartialLabelClassifier)
        shares = ours and isinstance(model._head(), ProbabilityModel)
        if shares or not hasattr(model, "decision_function"):
            return log_shares(np.asarray(model.predict_proba(X)), len(X))
        scores = np.asarray(
            model._scores(X) if ours else model.decision_function(X), dtype=np.float64
        )
        return scores if scores.ndim == 2 else np.column_stack([-scores / 2, scores / 2])


@dataclass(frozen=True, eq=False)
class FittedMember:
    """A member of a fitted jury.

    Attributes
    ----------
    name : str
        What it is called.
    weight : float
        Its part in the mixture.
    scale : Scale
        Makes probabilities of its scores.
    models : list
        Objects with ``predict(X)``, scores of new rows; their probabilities are averaged.
    smooth : ndarray, shape (l, l), or None
        Shares the scores between neighbouring labels (`appellate.evidence.order`).
    """

    name: str
    weight: float
    scale: Scale
    models: list[Any]
    smooth: Doubles | None = None

    def probabilities(self, X: Any) -> Doubles:
        """Return probabilities of new rows, (m, l)."""
        total: Any = 0
        for model in self.models:
            dense = sp.issparse(X) and not isinstance(model, Regressor | ModelScores)
            scores = model.predict(X.toarray() if dense else X)
            if self.smooth is not None:
                scores = np.asarray(scores @ self.smooth)
            total = total + self.scale.soften(scores)
        return np.asarray(total / len(self.models))


@dataclass(frozen=True)
class JuryModel(ProbabilityModel):
    """The members that predict, mixed by their weights."""

    members: list[FittedMember]

    def decision(self, X: Any) -> NDArray[Any]:
        """Mix the members' probabilities of new rows, (m, l)."""
        if sp.issparse(X):  # of which some members make dense rows
            batches = gen_batches(X.shape[0], max(1, _DENSE_BYTES // (8 * X.shape[1])))
            return np.concatenate([self._mix(X[rows]) for rows in batches])
        return self._mix(X)

    def _mix(self, X: Any) -> NDArray[Any]:
        total = sum(each.weight for each in self.members)
        parts = (each.weight / total * each.probabilities(X) for each in self.members)
        return np.asarray(sum(parts), dtype=X.dtype)
