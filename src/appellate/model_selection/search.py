"""A PLCP classifier that chooses its own parameters, without the truth."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from itertools import groupby, product
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils import get_tags

from appellate._compat import StrOptions
from appellate.candidates.names import object_array
from appellate.core.base import AppealClassifier
from appellate.core.foreign import check_base
from appellate.core.problem import Kernel, Problem
from appellate.core.results import Model, Result
from appellate.evidence.costs import cost_matrix
from appellate.methods.plcp import CoupledModel, PLCPClassifier
from appellate.methods.ridge import KernelClassifier
from appellate.model_selection.scorers import Scorer, get_scorer, get_scorer_names
from appellate.model_selection.splits import make_folds
from appellate.numerics.entries import Values
from appellate.numerics.kernels import GaussianKernel, read_kernel

_SHARED = ("smoothing", "max_rounds", "tol", "link", "head", "random_state")
_LISTS = ("bandwidths", "regularizations", "collaborations", "blurs", "costs")

Setting = dict[str, Any]


@dataclass(eq=False, repr=False)
class PLCPClassifierCV(MetaEstimatorMixin, AppealClassifier):  # type: ignore[misc]
    """PLCP with kernel width, ridge, collaboration, blur and cost chosen by a truth-free score.

    Every combination of the five lists is tried. It then is the `PLCPClassifier` of the best
    combination, fitted to all rows, with its attributes, its docket and its prediction.

    Cost: settings with the same width and ridge share one factorisation and its candidate
    blocks, all widths share one matrix of distances, and graph bases one search for
    neighbours. A leave-one-out score needs no folds: one factorisation, O(n^3), for every
    pair of width and ridge, and one more for the best. A held-out score does the same in
    every fold. Memory: one n x n matrix more than `PLCPClassifier`. With Nystroem features
    (`GaussianKernel`) all of it is linear in n: settings of the same width share the
    features, of which one set is kept at a time. Rows of files or of a cluster are read into
    memory, because folds are drawn from them.

    Parameters
    ----------
    estimator : object
        The base classifier, as in `PLCPClassifier`.
    bandwidths : array-like, default=(0.5, 1.0, 2.0)
        Widths of the Gaussian kernel to try, in mean distances; not used with a linear one.
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
    scoring : str or callable, default="evidence"
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
    classes_, estimator_, partner_, verdict_, transduction_, overturned_, confidence_, \
verdict_confidence_, initial_confidence_, training_output_, label_history_, history_, \
candidates_, cost_, n_iter_, n_ties_, termination_condition_
        Those of the best `PLCPClassifier`.

    Notes
    -----
    The default score is the one with the smallest mean regret (accuracy of the best setting
    minus that of the chosen one) in ``python benchmarks/selection.py 2 100``: SURE, 36
    settings, two 50/50 splits each (100 and 101, on which it was chosen).

    ========================  =====  ======  ======  ================  =====
    regret                    Lost   MSRCv2  FG-NET  FG-NET, within 3  mean
    ========================  =====  ======  ======  ================  =====
    evidence                  .0080  .0193   .0040   .0030             .0086
    candidate_likelihood      .0107  .0193   .0090   .0060             .0113
    the paper's setting       .0160  .0233   .0060   .0150             .0151
    leave_one_out_evidence    .0045  .0182   .0090   .0359             .0169
    covering_rate             .0134  .0245   .0120   .0180             .0169
    leave_one_out_likelihood  .0134  .0182   .0090   .0359             .0191
    leave_one_out_covering    .0160  .0273   .0090   .0359             .0221
    approximated_accuracy     .0000  .0279   .0150   .0669             .0274
    a random setting          .0621  .0498   .0163   .0490             .0443
    ========================  =====  ======  ======  ================  =====

    Among costs of wrong labels ``candidate_likelihood`` was measured to choose well; ``evidence``
    was not tried there.

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

    estimator: Any
    _: KW_ONLY
    bandwidths: Any = (0.5, 1.0, 2.0)
    regularizations: Any = (0.01, 0.05, 0.25)
    collaborations: Any = (0.5, 2.0)
    blurs: Any = (-1.0, None)
    costs: Any = (None,)
    scoring: str | Callable[..., float] = "evidence"
    cv: Any = None
    tie_base: bool = True
    smoothing: float = 0.5
    max_rounds: int = 5
    tol: float | None = None
    link: str = "collaborative"
    kernel: Kernel | None = None
    head: str = "partner"
    random_state: Any = None

    _parameter_constraints = {
        **{
            name: PLCPClassifier._parameter_constraints[name]
            for name in ("estimator", "kernel", *_SHARED)
        },
        **{name: ["array-like"] for name in _LISTS},
        "scoring": [StrOptions({*get_scorer_names(), "oracle_accuracy"}), callable],
        "cv": ["cv_object"],
        "tie_base": ["boolean"],
    }

    def _solve(self, problem: Problem, start: Values | None) -> Result:
        """Score every setting, then be the best."""
        check_base(self.estimator)
        settings, scorer = self._settings(), get_scorer(self.scoring)
        if isinstance(scorer, Scorer) and scorer.uses_truth:
            raise ValueError(
                f"scoring={scorer.name!r} uses the truth, which {type(self).__name__} does not "
                "have. For an upper bound use GridSearchCV with y = with_truth(y, truth)."
            )
        problem.keeps_distances = True
        folds: Iterable[Any] = [(np.arange(problem.n_rows),) * 2]
        if not getattr(scorer, "leave_one_out", False):
            folds = make_folds(self.cv, problem.matrix, problem.sets)
        scores = np.column_stack(
            [self._score_fold(settings, problem, start, fold) for fold in folds]
        )  # (settings, folds)
        found = self._report(settings, scores)
        best = self._make_model(found["best_params_"])
        # The cost decides the labels of the whole fit, those that the caller keeps included.
        problem.cost = cost_matrix(best.cost, problem.classes)
        result = best._solve(problem, start)
        return replace(result, details={**result.details, **found})

    def _head(self) -> Model:
        return cast(CoupledModel, self._model).choose(self.head)

    def _kernels(self) -> list[tuple[Kernel, Any]]:
        return self._make_model(self._settings()[0])._kernels()  # one setting at a time

    def __sklearn_tags__(self) -> Any:
        """Take sparse features where base and partner do."""
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "fit"):
            model = PLCPClassifier(self.estimator, kernel=self.kernel)
            tags.input_tags.sparse = get_tags(model).input_tags.sparse
        return tags

    def _score_fold(
        self, settings: list[Setting], whole: Problem, start: Values | None, fold: Any
    ) -> list[float]:
        """Fit every setting to some rows and score it on others."""
        scorer, (train, test) = get_scorer(self.scoring), fold
        problem = whole.take(train)
        problem.keeps_distances = True
        if start is not None:
            start = problem.entries.gather(whole.entries.scatter(start)[train])
        X, sets, scores = whole.matrix[test], whole.sets[test], []
        for _, same in groupby(settings, lambda s: (s["bandwidth"], s["regularization"])):
            fitted: Setting = {}
            for setting in same:
                model = self._make_model(setting)
                under_cost = problem.with_cost(cost_matrix(model.cost, problem.classes))
                key = {name: value for name, value in setting.items() if name != "cost"}
                if key != fitted or self.tol is not None:  # a cost decides nothing in the rounds
                    result, fitted = model._solve(under_cost, start), key
                    result = replace(result, model=partial(lambda made: made, result.model()))
                model._keep(under_cost, result)
                scores.append(float(scorer(model, X, sets)))
            problem.forget_smoothers()
        return scores

    def _settings(self) -> list[Setting]:
        """All combinations; those that share a factorisation follow one another."""
        lists = {name.removesuffix("s"): getattr(self, name) for name in _LISTS}
        if self._gaussian() is None:
            lists["bandwidth"] = [1.0]
        settings = [dict(zip(lists, values, strict=True)) for values in product(*lists.values())]
        if not settings:
            empty = ", ".join(f"{name}s" for name, values in lists.items() if not len(values))
            raise ValueError(f"there is nothing to choose from: {empty} has no values.")
        for setting in settings:
            self._make_model(setting)._validate_params()
        return settings

    def _gaussian(self) -> GaussianKernel | None:
        """The kernel whose width is chosen, if it has one."""
        coupled = PLCPClassifier(self.estimator, kernel=self.kernel)
        setting = read_kernel(coupled._make_partner().kernel)
        return setting if isinstance(setting, GaussianKernel) else None

    def _make_model(self, setting: Setting) -> PLCPClassifier:
        base, gaussian = clone(self.estimator, safe=False), self._gaussian()
        kernel: Kernel | None = self.kernel
        if gaussian is not None:
            kernel = clone(gaussian).set_params(bandwidth=setting["bandwidth"])
        if self.tie_base and isinstance(base, KernelClassifier):
            ridge = setting["regularization"]
            base.set_params(kernel=kernel or base.kernel, regularization=ridge)
        shared = {name: getattr(self, name) for name in _SHARED}
        chosen = {name: setting[name] for name in setting if name != "bandwidth"}
        return PLCPClassifier(base, kernel=kernel, **shared, **chosen)

    def _report(self, settings: list[Setting], scores: NDArray[np.float64]) -> dict[str, Any]:
        """Fitted attributes that tell how the best setting was found."""
        means = scores.mean(axis=1)
        usable = np.where(np.isnan(means), -np.inf, means)
        if np.isnan(means).all():
            raise ValueError(f"scoring={self.scoring!r} gave NaN for every setting.")
        results: dict[str, Any] = {
            f"param_{name}": object_array([setting[name] for setting in settings])
            for name in settings[0]
        }
        results["params"] = settings
        results["mean_test_score"] = means
        results["rank_test_score"] = rankdata(-usable, method="min").astype(int)
        if scores.shape[1] > 1:
            results["std_test_score"] = scores.std(axis=1)
            results |= {f"split{k}_test_score": fold for k, fold in enumerate(scores.T)}
        best = int(np.argmax(usable))
        return {
            "cv_results_": results,
            "best_index_": best,
            "best_params_": settings[best],
            "_cost_followed": settings[best]["cost"],
            "best_score_": float(means[best]),
        }
