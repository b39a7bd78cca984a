"""Choose the base of PLCP and its settings for a table, without the true labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

from sklearn.model_selection import GridSearchCV

from appellate.candidates import CandidateSets
from appellate.methods import make_base
from appellate.methods.plcp import PLCPClassifier
from appellate.model_selection import CandidateStratifiedKFold, get_scorer
from appellate.numerics.kernels import GaussianKernel

# Chosen by the smallest mean regret, see docs/selection.md.
SCORING = "evidence"
_BANDWIDTHS = (0.5, 1.0, 2.0)
_REGULARIZATIONS = (0.01, 0.05, 0.25)
_COLLABORATIONS = (0.5, 2.0)
_BLURS = (-1.0, None)


@dataclass(frozen=True)
class BaseChoice:
    """What `choose_base` found.

    Attributes
    ----------
    params : dict
        Parameters of the `PLCPClassifier`; `estimator` is the base.
    scores : dict of str to float
        Best score of every base, by its short name.
    """

    params: dict[str, Any]
    scores: dict[str, float]

    @property
    def name(self) -> str:
        """Short name of the chosen base."""
        return max(self.scores, key=self.scores.__getitem__)


def choose_base(
    X: Any,
    sets: CandidateSets,
    names: Iterable[str],
    *,
    cost: Any = None,
    random_state: Any = None,
) -> BaseChoice:
    """Choose base, kernel width, ridge, collaboration and blur of PLCP.

    Every base is tried with 36 settings on five folds; the held-out score ``"evidence"`` decides.
    A base that has a kernel and a ridge gets those of the partner, so that both share one
    factorisation. The first of equally good settings wins.

    Parameters
    ----------
    X : array-like, shape (n, q)
        Features.
    sets : CandidateSets
        Candidate sets of the rows.
    names : iterable of str
        Short names of the bases to try.
    cost : None, str or (l, l) matrix, default=None
        What a wrong label costs.
    random_state : int, RandomState instance or None, default=None
        Seed of a random base.

    Returns
    -------
    Choice

    Examples
    --------
    >>> from appellate import as_candidates
    >>> from appellate.testing import make_clusters
    >>> X, candidates, _ = make_clusters(24)
    >>> choice = choose_base(X, as_candidates(candidates), ["knn"])
    >>> choice.name, sorted(choice.params)
    ('knn', ['blur', 'collaboration', 'estimator', 'kernel', 'regularization'])
    """
    found: dict[str, tuple[float, dict[str, Any]]] = {}
    for name in names:
        base = make_base(name)
        search = GridSearchCV(
            PLCPClassifier(base, cost=cost, random_state=random_state),
            [{key: [value] for key, value in each.items()} for each in settings_of(base)],
            scoring=get_scorer(SCORING),
            cv=CandidateStratifiedKFold(min(5, len(sets))),
            refit=False,
            error_score="raise",
        ).fit(X, sets)
        found[name] = float(search.best_score_), dict(search.best_params_)
    scores = {name: score for name, (score, _) in found.items()}
    best = max(scores, key=scores.__getitem__)
    params = found[best][1]
    own = {key: params.pop(key) for key in [*params] if key.startswith("estimator__")}
    base = make_base(best, **{key.removeprefix("estimator__"): own[key] for key in own})
    if "estimator__kernel" in own:
        del params["kernel"]  # the partner takes the kernel of its base
    return BaseChoice({"estimator": base, **params}, scores)


def settings_of(base: Any) -> Iterable[dict[str, Any]]:
    """All settings that are tried with a base."""
    shared = {"kernel", "regularization"} & {*base.get_params()}
    for width, ridge in product(_BANDWIDTHS, _REGULARIZATIONS):
        partner = {"kernel": GaussianKernel(width), "regularization": ridge}
        tied = {f"estimator__{name}": partner[name] for name in sorted(shared)}
        for collaboration, blur in product(_COLLABORATIONS, _BLURS):
            yield {"collaboration": collaboration, "blur": blur, **partner, **tied}
