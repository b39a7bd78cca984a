"""A PLCP classifier that chooses its own parameters, without the truth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby, product
from numbers import Integral
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.model_selection import check_cv

from appellate._compat import StrOptions
from appellate.base import Disambiguation, conclude
from appellate.bases.ridge import APPROXIMATION, KernelClassifier
from appellate.candidates import CandidateSets
from appellate.costs import cost_matrix
from appellate.model_selection.scorers import Scorer, get_scorer, get_scorer_names
from appellate.model_selection.splits import CandidateStratifiedKFold
from appellate.numerics.blocks import Blocks
from appellate.numerics.entries import CandidateEntries, Values
from appellate.numerics.geometry import Geometry, Plan
from appellate.numerics.kernels import (
    Gaussian,
    Kernel,
    mean_distance,
    squared_distances,
)
from appellate.numerics.nystroem import Basis
from appellate.plcp import PLCPClassifier

_N_FOLDS = 5
_FOUND = (
    "history_",
    "label_history_",
    "initial_confidence_",
    "verdict_confidence_",
    "termination_condition_",
)

Setting = dict[str, Any]


class PLCPClassifierCV(PLCPClassifier):
    """PLCP with kernel width, ridge, collaboration, blur and cost chosen by a truth-free score.

    Every combination of the five lists is tried. It then is the `PLCPClassifier` of the best
    combination, fitted to all rows, with its attributes, its docket and its prediction.

    Cost: settings with the same width and ridge share one factorisation and its candidate
    blocks, all widths share one matrix of distances, and graph bases one search for
    neighbours. A leave-one-out score needs no folds: one factorisation, O(n^3), for every
    pair of width and ridge, and one more for the best. A held-out score does the same in
    every fold. Memory: one n x n matrix more than `PLCPClassifier`. With Nystroem features
    (`kernel_approximation`) all of it is linear in n: settings of the same width share the
    features, of which one set is kept at a time. Rows of files or of a cluster are read into
    memory, because folds are drawn from them.

    Parameters
    ----------
    estimator : object
        The base classifier, as in `PLCPClassifier`.
    bandwidths : array-like, default=(0.5, 1.0, 2.0)
        Widths of the kernel to try, in mean distances; not used with ``kernel="linear"``.
    regularizations : array-like, default=(0.01, 0.05, 0.25)
        Ridges to try.
    collaborations : array-like, default=(0.5, 2.0)
        Weights of the partner's link to the base to try.
    blurs : array-like, default=(-1.0, None)
        Temperatures of the blur to try; None is no blur.
    costs : sequence, default=(None,)
        Costs of wrong labels to try, as `PLCPClassifier` takes them. They change the decision
        only, so one fit serves them all (but with `tol`, where labels decide when to stop).
        ``[None, "ordinal:1", "ordinal:2", "ordinal:4", "ordinal:8"]`` lets the candidates say
        how far neighbouring labels should be smoothed.
    scoring : str or callable, default="candidate_likelihood"
        What to choose by: a name that `get_scorer` knows, but for the oracle's, or a callable
        ``scorer(estimator, X, y)`` on held-out rows, larger is better. The first of equally
        good settings wins.
    cv : int, splitter, iterable or None, default=None
        Folds of a held-out score; an integer or None (5) means `CandidateStratifiedKFold`.
        Leave-one-out scores do not look at it.
    tie_base : bool, default=True
        Give a base that is a kernel ridge classifier the partner's width and ridge, so that
        both share one factorisation. With False it keeps its own.
    smoothing, max_rounds, tol, link, kernel, head, random_state
        As in `PLCPClassifier`.
    kernel_approximation, n_landmarks, landmarks, cache_dir
        As in `PLCPClassifier`; every setting and fold has the kernel represented as the final
        fit has.

    Attributes
    ----------
    best_params_ : dict
        The chosen `bandwidth`, `regularization`, `collaboration`, `blur` and `cost`.
    best_score_ : float
        Its score (mean over folds).
    best_index_ : int
        Its place in `cv_results_`.
    cv_results_ : dict of ndarray
        One entry for every setting, as in `GridSearchCV`: ``param_*``, ``params``,
        ``mean_test_score``, ``rank_test_score`` and, with folds, ``split*_test_score`` and
        ``std_test_score``.
    classes_, estimator_, partner_, verdict_, transduction_, confidence_, ...
        Those of `PLCPClassifier`.

    Notes
    -----
    The default score is the one with the smallest mean regret (accuracy of the best setting
    minus that of the chosen one) in ``benchmarks/selection.py``: SURE, 36 settings, five
    50/50 splits each.

    ========================  =====  ======  ======  ================  =====
    regret                    Lost   MSRCv2  FG-NET  FG-NET, within 3  mean
    ========================  =====  ======  ======  ================  =====
    candidate_likelihood      .0082  .0264   .0072   .0080             .0125
    covering_rate             .0093  .0123   .0164   .0375             .0189
    leave_one_out_likelihood  .0125  .0218   .0108   .0439             .0223
    leave_one_out_covering    .0203  .0250   .0100   .0455             .0252
    the paper's setting       .0100  .0330   .0140   .0427             .0249
    approximated_accuracy     .0157  .0152   .0168   .0794             .0318
    a random setting          .0758  .0518   .0170   .0629             .0519
    ========================  =====  ======  ======  ================  =====

    Where only exact accuracy counts, ``covering_rate`` was as good (.0126 on average, .0139
    for the default).

    Examples
    --------
    >>> from appellate import SUREClassifier
    >>> from appellate.model_selection import PLCPClassifierCV
    >>> from appellate.testing import make_clusters
    >>> X, candidates, truth = make_clusters()
    >>> model = PLCPClassifierCV(SUREClassifier(), regularizations=[0.05]).fit(X, candidates)
    >>> sorted(model.best_params_)
    ['bandwidth', 'blur', 'collaboration', 'cost', 'regularization']
    >>> model.score(X, truth)
    1.0
    """

    _parameter_constraints = {
        **{
            name: PLCPClassifier._parameter_constraints[name]
            for name in (
                "estimator",
                "smoothing",
                "max_rounds",
                "tol",
                "link",
                "kernel",
                "head",
                "random_state",
                *APPROXIMATION,
            )
        },
        "bandwidths": ["array-like"],
        "regularizations": ["array-like"],
        "collaborations": ["array-like"],
        "blurs": ["array-like"],
        "costs": ["array-like"],
        "scoring": [StrOptions({*get_scorer_names(), "oracle_accuracy"}), callable],
        "cv": ["cv_object"],
        "tie_base": ["boolean"],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        bandwidths: Any = (0.5, 1.0, 2.0),
        regularizations: Any = (0.01, 0.05, 0.25),
        collaborations: Any = (0.5, 2.0),
        blurs: Any = (-1.0, None),
        costs: Any = (None,),
        scoring: str | Callable[..., float] = "candidate_likelihood",
        cv: Any = None,
        tie_base: bool = True,
        smoothing: float = 0.5,
        max_rounds: int = 5,
        tol: float | None = None,
        link: str = "collaborative",
        kernel: str = "rbf",
        head: str = "partner",
        random_state: Any = None,
        kernel_approximation: str = "auto",
        n_landmarks: int | None = None,
        landmarks: str = "uniform",
        cache_dir: Any = None,
    ) -> None:
        self.estimator = estimator
        self.bandwidths = bandwidths
        self.regularizations = regularizations
        self.collaborations = collaborations
        self.blurs = blurs
        self.costs = costs
        self.scoring = scoring
        self.cv = cv
        self.tie_base = tie_base
        self.smoothing = smoothing
        self.max_rounds = max_rounds
        self.tol = tol
        self.link = link
        self.kernel = kernel
        self.head = head
        self.random_state = random_state
        self.kernel_approximation = kernel_approximation
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.cache_dir = cache_dir

    keep_confidences = False
    _more_matrices = 1  # the distances, which serve all widths

    def _geometry(self, X: Any, n_labels: int) -> Geometry:
        if isinstance(X, Blocks):
            X = Geometry(X).matrix  # folds are drawn from rows in memory
        return super()._geometry(X, n_labels)

    def _count_smoothers(self) -> tuple[int, int]:
        counts = [self._make_model(each)._count_smoothers() for each in self._settings()]
        return max(widths for widths, _ in counts), max(ridges for _, ridges in counts)

    def _disambiguate(
        self, geometry: Geometry, entries: CandidateEntries, supervision: Values | None
    ) -> Disambiguation:
        """Score every setting, then be the best."""
        settings, scorer = self._settings(), self._check_scorer()
        names = getattr(self, "classes_", np.arange(entries.shape[1]))
        sets = CandidateSets(entries.scatter(np.ones(len(entries), dtype=bool)), names)
        given = None if supervision is None else entries.scatter(supervision)
        scores = np.column_stack(
            [
                self._score_settings(settings, scorer, geometry, sets, given, train, test)
                for train, test in self._folds(scorer, geometry.matrix, sets)
            ]
        )  # (settings, folds)
        self._report(settings, scores)
        best = self._make_model(self.best_params_)
        self.cost_ = best.cost_ = cost_matrix(best.cost, names)
        result = best._disambiguate(geometry, entries, supervision)
        for name in _FOUND:
            setattr(self, name, getattr(best, name))
        return result

    def _cost_in_use(self) -> Any:
        return self.best_params_["cost"]

    def _folds(self, scorer: Any, X: NDArray[Any], sets: CandidateSets) -> Iterator[Any]:
        """Training and test rows; a leave-one-out score takes all rows for both."""
        if getattr(scorer, "leave_one_out", False):
            return iter([(np.arange(len(X)),) * 2])
        if self.cv is None or isinstance(self.cv, Integral):
            return CandidateStratifiedKFold(int(self.cv or min(_N_FOLDS, len(X)))).split(X, sets)
        return check_cv(self.cv).split(X, sets)

    def _score_settings(
        self,
        settings: list[Setting],
        scorer: Callable[..., float],
        whole: Geometry,
        sets: CandidateSets,
        supervision: NDArray[Any] | None,
        train: NDArray[np.intp],
        test: NDArray[np.intp],
    ) -> list[float]:
        """Fit every setting to some rows and score it on others."""
        X, known = whole.matrix, sets.matrix[train]
        geometry = SharedGeometry(X[train], whole.plan)
        entries = CandidateEntries(known)
        start = None if supervision is None else entries.gather(supervision[train])
        owner: Any = SimpleNamespace(
            classes_=sets.class_names, candidates_=known, ids_=None, n_features_in_=X.shape[1]
        )
        scores = []
        for _, same in groupby(settings, lambda s: (s["bandwidth"], s["regularization"])):
            previous = None
            for setting in same:
                model = self._make_model(setting)
                model.cost_ = owner.cost_ = cost_matrix(model.cost, sets.class_names)
                if previous is None or not self._shares_fit(setting, previous):
                    result = model._disambiguate(geometry, entries, start)
                    conclude(model, owner, geometry, entries, result)
                    fitted, previous = model, setting
                fitted.cost, fitted.cost_ = model.cost, model.cost_
                scores.append(float(scorer(fitted, X[test], sets[test])))
            geometry.forget_smoothers()
        return scores

    def _shares_fit(self, setting: Setting, other: Setting) -> bool:
        """Whether settings differ in the cost alone, which then decides nothing in the rounds."""
        return self.tol is None and all(
            other[name] == value for name, value in setting.items() if name != "cost"
        )

    def _settings(self) -> list[Setting]:
        """All combinations; those that share a factorisation follow one another."""
        lists = {
            "bandwidth": self.bandwidths if self.kernel == "rbf" else [1.0],
            "regularization": self.regularizations,
            "collaboration": self.collaborations,
            "blur": self.blurs,
            "cost": self.costs,
        }
        settings = [dict(zip(lists, values, strict=True)) for values in product(*lists.values())]
        if not settings:
            empty = ", ".join(f"{name}s" for name, values in lists.items() if not len(values))
            raise ValueError(f"there is nothing to choose from: {empty} has no values.")
        for setting in settings:
            self._make_model(setting)._validate_params()
        return settings

    def _make_model(self, setting: Setting) -> PLCPClassifier:
        base = clone(self.estimator)
        if self.tie_base and isinstance(base, KernelClassifier):
            base.set_params(**{name: setting[name] for name in ("bandwidth", "regularization")})
        return PLCPClassifier(
            base,
            smoothing=self.smoothing,
            max_rounds=self.max_rounds,
            tol=self.tol,
            link=self.link,
            kernel=self.kernel,
            head=self.head,
            random_state=self.random_state,
            **setting,
        )

    def _check_scorer(self) -> Callable[..., float]:
        scorer = get_scorer(self.scoring)
        if isinstance(scorer, Scorer) and scorer.uses_truth:
            raise ValueError(
                f"scoring={scorer.name!r} uses the truth, which {type(self).__name__} does not "
                "have. For an upper bound use GridSearchCV with y = with_truth(y, truth)."
            )
        return scorer

    def _report(self, settings: list[Setting], scores: NDArray[np.float64]) -> None:
        means = scores.mean(axis=1)
        usable = np.where(np.isnan(means), -np.inf, means)
        if np.isnan(means).all():
            raise ValueError(f"scoring={self.scoring!r} gave NaN for every setting.")
        results: dict[str, Any] = {
            f"param_{name}": _objects([setting[name] for setting in settings])
            for name in settings[0]
        }
        results["params"] = settings
        results["mean_test_score"] = means
        results["rank_test_score"] = rankdata(-usable, method="min").astype(int)
        if scores.shape[1] > 1:
            results["std_test_score"] = scores.std(axis=1)
            results |= {f"split{k}_test_score": fold for k, fold in enumerate(scores.T)}
        self.cv_results_ = results
        self.best_index_ = int(np.argmax(usable))
        self.best_params_ = settings[self.best_index_]
        self.best_score_ = float(means[self.best_index_])


def _objects(values: list[Any]) -> NDArray[Any]:
    """One entry a value, also where the values are matrices."""
    out = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        out[i] = value
    return out


class SharedGeometry(Geometry):
    """A geometry for many smoothers of the same rows, of which few are kept at a time.

    The squared distances are kept beside them, one n x n matrix, and serve every width.
    Nystroem features serve every ridge of their width, and make room for the next width's.
    """

    def __init__(self, X: NDArray[Any], plan: Plan | None = None) -> None:
        super().__init__(X, plan)
        self._squared: NDArray[Any] | None = None

    def forget_smoothers(self) -> None:
        """Give up the factorisations; distances and neighbours stay, and the last features."""
        self._smoothers.clear()
        self._maps.clear()

    def _build_basis(self, bandwidth: float) -> Basis:
        self._bases.clear()  # the next settings have another width
        return super()._build_basis(bandwidth)

    def _build_gram(self, kernel: str, bandwidth: float) -> tuple[Kernel, NDArray[Any]]:
        if kernel != "rbf":
            return super()._build_gram(kernel, bandwidth)
        if self._squared is None:
            self._squared = squared_distances(self.X)
            self._mean_distance = mean_distance(self._squared)
        gaussian = Gaussian(bandwidth * (self._mean_distance or 1.0))
        return gaussian, gaussian.from_squared(self._squared.copy())
