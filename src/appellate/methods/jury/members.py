"""Members of a jury: classifiers that judge rows whose label they did not see.

A jury keeps K + 1 *replicas* of its targets: replica 0 has all rows, replica k all but fold k.
What a member says is an (n, K + 1, l) array: entry ``[i, k]`` is its output on row i after
learning from replica k, row i's own target left out: by leave-one-out or out of bag where
the replica has the row, and because the row was never there where it has not. The output on
fold k by replica k is honest: no round ever saw the row.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import scipy.linalg as la
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.model_selection import GroupKFold
from sklearn.utils.validation import has_fit_parameter

from appellate.core.base import PartialLabelClassifier
from appellate.core.foreign import seeded
from appellate.core.results import ProbabilityModel
from appellate.evidence.groups import Groups
from appellate.evidence.likelihood import Evidence
from appellate.numerics.entries import Values
from appellate.numerics.smoothers import KernelSmoother, Regressor

Scores = NDArray[np.float64]
MakeModels = Callable[[], list[Any]]
_DOUBLE_ROWS = 2_000  # up to here a member keeps its inverse in double precision
_LEAST_SHARE = 1e-3  # of a label in the output of a forest, before its logarithm


@dataclass(frozen=True, eq=False)
class Replicas:
    """Which rows each replica has, and the evidence of these.

    Attributes
    ----------
    evidence : Evidence
        Of all n rows.
    fold : ndarray of int, shape (n,)
        Replica that never sees the row, from 1 to K; 0 if there is one row only.
    rows : list of ndarray of int
        Rows of every replica.
    own : list of Evidence
        Evidence of these rows.
    covering : list of Groups, or list of None
        Groups that lie wholly in each replica, if they are to be covered.
    """

    evidence: Evidence
    fold: NDArray[np.intp]
    rows: list[NDArray[np.intp]]
    own: list[Evidence]
    covering: Sequence[Groups | None]

    @classmethod
    def split(cls, evidence: Evidence, fold: NDArray[np.intp], groups: Any = None) -> Replicas:
        """Make the replicas of a division into folds; `groups`, if given, are to be covered."""
        rows = [np.flatnonzero(fold != k) for k in range(int(fold.max()) + 1)]
        rows[0] = np.arange(len(fold))
        own = [evidence, *(evidence.take(each) for each in rows[1:])]
        covering: list[Groups | None] = [None] * len(rows)
        if groups is not None:
            names = np.asarray(groups)
            pairs = zip(rows, own, strict=True)
            covering = [Groups(names[some], said.entries) for some, said in pairs]
        return cls(evidence, fold, rows, own, covering)

    @property
    def shape(self) -> tuple[int, int, int]:
        """``(n, K + 1, l)``."""
        n, l = self.evidence.shape
        return n, len(self.rows), l

    def held_out(self) -> Iterator[tuple[int, NDArray[np.intp], NDArray[np.intp]]]:
        """Yield every replica but the first, its rows and the rows of its fold."""
        for k, rest in enumerate(self.rows[1:], 1):
            yield k, rest, np.flatnonzero(self.fold == k)

    def scatter(self, targets: Sequence[Values]) -> Scores:
        """Targets of every replica, as candidate entries, in one array, (n, K + 1, l)."""
        out = np.zeros(self.shape)
        for k, (rows, own, values) in enumerate(zip(self.rows, self.own, targets, strict=True)):
            out[rows[own.entries.rows], k, own.entries.labels] = values
        return out

    def honest(self, outputs: Scores) -> Scores:
        """What is said of every row by the replica that never saw it, (n, l)."""
        return np.asarray(outputs[np.arange(len(self.fold)), self.fold])


def make_folds(n: int, n_folds: int, groups: Any, rng: np.random.RandomState) -> NDArray[np.intp]:
    """Draw the fold of every row, from 1 on, groups whole; all 0 for a single row.

    Examples
    --------
    >>> import numpy as np
    >>> np.bincount(make_folds(7, 3, None, np.random.RandomState(0)))
    array([0, 3, 2, 2])
    """
    order, seed = rng.permutation(n), rng.randint(np.iinfo(np.int32).max)
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


class KernelJuror:
    """Kernel ridge regression whose replicas all come from one inverse.

    With B of `appellate.numerics.smoothers.KernelSmoother` (smoother ``S = I - ridge B``), a
    fold f and the rest a, the regression on a alone has the output ``H = -B_ff^-1 B_fa Q_a``
    on the fold, and ``B_aa - B_af B_ff^-1 B_fa`` in the place of B; leave-one-out is
    ``Q - B Q / diag(B)``. With the fold's targets set to H both are read off one product. A
    replica of one row says nothing of it.

    Beyond 2,000 rows the inverse is kept in single precision, which changes outputs by some
    1e-6 (measured) and halves the time of a round.

    Cost: K + 1 products of n^2 l multiply-adds a round, after n^3 / 2K once. Memory: n^2 / 2
    for the inverse, n^2 / K for the folds.

    Parameters
    ----------
    name : str
        What it is called.
    smoother : KernelSmoother
        Of all rows.
    replicas : Replicas
        Which rows each replica has.
    """

    def __init__(self, name: str, smoother: KernelSmoother, replicas: Replicas) -> None:
        self.name = name
        self.replicas = replicas
        self.function = smoother.function
        self.rows = smoother.rows
        self.weights = smoother.weights
        matrix = smoother.matrix
        self.matrix = matrix if len(matrix) <= _DOUBLE_ROWS else matrix.astype(np.float32)
        own = np.diag(matrix) if len(matrix) > 1 else np.array([np.inf])
        self.room = np.repeat(own[:, np.newaxis], replicas.shape[1], axis=1)
        self.factors: list[Scores] = []
        for k, rest, fold in replicas.held_out():
            lines = matrix[fold]
            factor = la.cholesky(lines[:, fold], lower=True)  # L L' = B_ff
            across = la.solve_triangular(factor, lines[:, rest], lower=True, check_finite=False)
            self.room[rest, k] -= np.einsum("fa,fa->a", across, across)
            if len(rest) < 2:  # nothing is left without it
                self.room[rest, k] = np.inf
            self.factors.append(factor)

    def learn(self, targets: Scores, seed: int = 0) -> tuple[Scores, MakeModels]:
        """Learn from the targets of every replica, (n, K + 1, l), which are 0 on its fold.

        Returns the output on all rows, (n, K + 1, l), and what makes models of new rows.
        """
        filled = targets.copy()
        for (k, _, fold), factor in zip(self.replicas.held_out(), self.factors, strict=True):
            passed = self._times(targets[:, k], fold)  # B_fa Q_a
            filled[fold, k] = -la.cho_solve((factor, True), passed, check_finite=False)
        product = self._times(filled.reshape(len(filled), -1))
        filled -= product.reshape(filled.shape) / self.room[:, :, np.newaxis]
        filled[np.isinf(self.room)] = 0
        return filled, lambda: [self._regressor(targets[:, 0])]

    def _times(self, values: Scores, lines: Any = slice(None)) -> Scores:
        """``B values``, or some lines of it, in the precision of B."""
        matrix = self.matrix[lines]
        return np.asarray(matrix @ values.astype(matrix.dtype), dtype=np.float64)

    def _regressor(self, targets: Scores) -> Regressor:
        return Regressor(self.function, self.rows, self._times(targets), self.weights @ targets)


# -- members that a user names ------------------------------------------------------------------


class Expert:
    """A member that is fitted once, at the end: it can judge the rows of held-out folds only.

    Parameters
    ----------
    model : estimator or str
        What learns from soft targets.
    X : ndarray, shape (n, q)
        All rows.
    replicas : Replicas
        Which rows each replica has.
    n_jobs : int or None
        Fits at a time.
    """

    def __init__(self, model: Any, X: NDArray[Any], replicas: Replicas, n_jobs: Any) -> None:
        self.name, self.model = model if isinstance(model, str) else type(model).__name__, model
        self.X, self.replicas, self.n_jobs = X, replicas, n_jobs

    @abstractmethod
    def fit(self, X: NDArray[Any], own: Evidence, targets: Scores, seed: int) -> Any:
        """Return an object with `predict`, scores of new rows, trained on (n, l) targets."""

    def learn(self, targets: Sequence[Values], seed: int) -> tuple[list[Any], Scores]:
        """Return models of every replica that lacks a fold, and their scores of it, (n, l)."""
        own, said = self.replicas.own, np.empty(self.replicas.evidence.shape)
        jobs = (
            delayed(self.fit)(self.X[rest], own[k], own[k].entries.scatter(targets[k]), seed + k)
            for k, rest, _ in self.replicas.held_out()
        )
        models = Parallel(self.n_jobs)(jobs)
        for model, (_, _, fold) in zip(models, self.replicas.held_out(), strict=True):
            said[fold] = model.predict(self.X[fold])
        return models, said


@dataclass(frozen=True)
class LogShares:
    """A regressor of label shares whose scores are their logarithms."""

    regressor: Any

    def predict(self, X: NDArray[Any]) -> Scores:
        """Score new rows, (m, l)."""
        return log_shares(self.regressor.predict(X.astype(np.float32, copy=False)), len(X))


def log_shares(output: NDArray[Any], n: int) -> Scores:
    """``log rownorm(output + .001)`` of n rows."""
    shares = np.maximum(output.reshape(n, -1), 0) + _LEAST_SHARE
    return np.asarray(np.log(shares / shares.sum(axis=1, keepdims=True)))


class ForestJuror:
    """A forest of scikit-learn with ``bootstrap=True``, which judges its own rows out of bag.

    Cost: K + 1 fits a round.

    Parameters
    ----------
    model : RandomForestRegressor or ExtraTreesRegressor
        The forest, not fitted.
    X : ndarray, shape (n, q)
        All rows.
    replicas : Replicas
        Which rows each replica has.
    n_jobs : int or None
        Fits at a time.
    """

    def __init__(self, model: Any, X: NDArray[Any], replicas: Replicas, n_jobs: Any) -> None:
        self.name = type(model).__name__
        self.model = model
        self.X = X.astype(np.float32)
        self.replicas = replicas
        self.n_jobs = n_jobs

    def learn(self, targets: Scores, seed: int) -> tuple[Scores, MakeModels]:
        """Learn from the targets of every replica, (n, K + 1, l).

        Returns the output on all rows, (n, K + 1, l), and what makes models of new rows.
        """
        numbers = range(len(self.replicas.rows))
        jobs = (delayed(self._fit)(targets[:, k], k, seed) for k in numbers)
        forests, outputs = zip(*Parallel(self.n_jobs)(jobs), strict=True)
        return np.stack(outputs, axis=1), lambda: [forests[0]]

    def _fit(self, targets: Scores, k: int, seed: int) -> tuple[LogShares, Scores]:
        """Learn from replica k; return the forest, and its output on all rows, (n, l)."""
        n, l = targets.shape
        rows = self.replicas.rows[k]
        forest = seeded(self.model, seed + k).fit(self.X[rows], targets[rows])
        total = np.zeros((n, l))
        votes = np.zeros(n)
        strangers = np.setdiff1d(np.arange(n), rows)
        for tree, drawn in zip(forest.estimators_, forest.estimators_samples_, strict=True):
            judged = np.concatenate([np.delete(rows, np.unique(drawn)), strangers])
            total[judged] += tree.tree_.predict(self.X[judged]).reshape(len(judged), l)
            votes[judged] += 1
        unknown = votes == 0
        total[unknown] = 1
        votes[unknown] = l
        return LogShares(Trees.of(forest)), log_shares(total / votes[:, np.newaxis], n)


@dataclass(frozen=True)
class Trees:
    """A fitted forest of regression trees as arrays, which a model file may hold.

    Attributes
    ----------
    roots : ndarray of int, shape (T,)
        First node of every tree.
    left, right, feature : ndarray of int, shape (nodes,)
        Children, a leaf being its own, and the column that is compared.
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
        own, first = np.arange(len(left)), np.repeat(roots, sizes)
        left, right = (np.where(child < 0, own, child + first) for child in (left, right))
        feature, value = np.maximum(feature, 0), value[:, :, 0].astype(np.float32)
        return cls(roots, left, right, feature, threshold, value)

    def predict(self, X: NDArray[Any]) -> Scores:
        """Mean output of all trees, (m, l)."""
        out = np.zeros((len(X), self.value.shape[1]))
        rows = np.arange(len(X))
        for root in self.roots:
            nodes, before = np.full(len(X), root), None
            while before is None or (nodes != before).any():
                before = nodes
                small = X[rows, self.feature[nodes]] <= self.threshold[nodes]
                nodes = np.where(small, self.left[nodes], self.right[nodes])
            out += self.value[nodes]
        return out / len(self.roots)


@dataclass(frozen=True)
class Decision:
    """A fitted classifier of candidate sets, by its scores, or logarithms of probabilities."""

    model: Any

    def predict(self, X: NDArray[Any]) -> Scores:
        """Score new rows, (m, l), also where there are two labels."""
        ours = isinstance(self.model, PartialLabelClassifier)
        shares = ours and isinstance(self.model._head(), ProbabilityModel)
        if shares or not hasattr(self.model, "decision_function"):
            return log_shares(np.asarray(self.model.predict_proba(X)), len(X))
        if ours:  # whatever wrong labels cost: that is for the jury to weigh
            return np.asarray(self.model._scores(X), dtype=np.float64)
        scores = np.asarray(self.model.decision_function(X), dtype=np.float64)
        return scores if scores.ndim == 2 else np.column_stack([-scores / 2, scores / 2])


class SupervisedExpert(Expert):
    """A classifier of candidate sets without an honest output of its own rows.

    Any with ``fit(X, candidates, supervision=)``.
    """

    def fit(self, X: NDArray[Any], own: Evidence, targets: Scores, seed: int) -> Decision:  # noqa: D102
        candidates = own.entries.scatter(np.ones(len(own.entries), dtype=bool))
        return Decision(seeded(self.model, seed).fit(X, candidates, supervision=targets))


@dataclass(frozen=True)
class Layers:
    """A trained network as arrays: standardised features, ReLU between linear layers."""

    centre: NDArray[Any]
    scale: NDArray[Any]
    layers: list[tuple[NDArray[Any], NDArray[Any]]]

    def predict(self, X: NDArray[Any]) -> Scores:
        """Score new rows, (m, l)."""
        out = (X - self.centre) / self.scale
        for i, (matrix, shift) in enumerate(self.layers):
            out = (np.maximum(out, 0) if i else out) @ matrix + shift
        return np.asarray(out)


@dataclass(frozen=True)
class Smoothed:
    """A model whose scores are shared between neighbouring labels (`appellate.evidence.order`)."""

    model: Any
    matrix: Scores

    def predict(self, X: NDArray[Any]) -> Scores:
        """Score new rows, (m, l)."""
        return np.asarray(self.model.predict(X) @ self.matrix)


def seat(member: Any, X: NDArray[Any], replicas: Replicas, n_jobs: Any) -> ForestJuror | Expert:
    """Find out how a member judges rows that it did not see: out of bag, or by folds only.

    Raises
    ------
    TypeError
        If it cannot learn from soft targets.
    """
    if member == "network":  # by name: it lies above, and needs torch
        kind: Any = import_module("appellate.deep").NetworkExpert
    elif isinstance(member, type) or not callable(getattr(member, "fit", None)):
        raise TypeError(f"{member!r} cannot be a member of a jury: give a fresh estimator.")
    elif has_fit_parameter(member, "supervision"):
        kind = SupervisedExpert
    elif isinstance(member, RandomForestRegressor | ExtraTreesRegressor) and member.bootstrap:
        kind = ForestJuror
    else:
        raise TypeError(
            f"{member!r} cannot be a member of a jury: give a forest of regression trees with "
            "bootstrap=True, the word 'network', or a classifier with fit(X, candidates, "
            "supervision=). SoftLabelClassifier makes one of a classifier or regressor of "
            "scikit-learn."
        )
    return kind(member, X, replicas, n_jobs)
