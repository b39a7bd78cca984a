"""Scorers by name, for choosing a model: seven that need no truth, one that does.

All are callables ``scorer(estimator, X, y)`` for the argument ``scoring`` of scikit-learn's
``cross_val_score`` and ``GridSearchCV``, where y holds candidate sets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from appellate import metrics
from appellate.candidates import CandidateSets, as_candidates, check_length
from appellate.candidates.alignment import read_sets
from appellate.candidates.names import label_vector
from appellate.core.base import PartialLabelClassifier
from appellate.core.results import ProbabilityModel
from appellate.evidence.ambiguity import TAUS, choose_tau, resemblance
from appellate.evidence.held_out import criterion
from appellate.evidence.likelihood import Evidence
from appellate.evidence.scales import fit_temperature, soften


@dataclass(frozen=True)
class Scorer:
    """A score of a fitted classifier, larger is better.

    Attributes
    ----------
    name : str
        What it is called.
    function : callable
        ``function(estimator, X, y) -> float``.
    uses_truth : bool
        Whether it reads true labels. A model chosen by it is an upper bound, not a result.
    leave_one_out : bool
        Whether it judges the classifier's own training rows, each left out in turn, so that
        X and y are not looked at and no row has to be held out.
    """

    name: str
    function: Callable[[Any, Any, Any], float]
    uses_truth: bool = False
    leave_one_out: bool = False

    def __call__(self, estimator: Any, X: Any = None, y: Any = None) -> float:
        """Score a fitted estimator on rows and their candidate sets."""
        return self.function(estimator, X, y)

    def __getstate__(self) -> dict[str, Any]:
        """Keep but the name of a scorer of ours, so that files need to name no function."""
        return {"name": self.name} if _SCORERS.get(self.name) == self else dict(self.__dict__)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what there is, or what the name says."""
        known = len(state) == 1
        self.__dict__.update(_SCORERS[state["name"]].__dict__ if known else state)

    def __repr__(self) -> str:
        """Name the scorer and warn of one that uses true labels."""
        return f"<scorer {self.name}{', uses true labels' if self.uses_truth else ''}>"


def get_scorer(scoring: str | Callable[..., float]) -> Callable[..., float]:
    """Return the scorer of a name; a callable is returned as it is.

    Parameters
    ----------
    scoring : str or callable
        - ``"covering_rate"``: share of held-out rows whose predicted label is a candidate.
        - ``"approximated_accuracy"``: mean share of the predicted label in the probability
          of the candidates, on held-out rows.
        - ``"candidate_likelihood"``: mean log-probability of the candidate sets of held-out
          rows, at the best temperature (`appellate.metrics.candidate_likelihood`); of a
          classifier that says its scores are probabilities, such as a network, by their
          logarithms.
        - ``"evidence"``: how much held-out probabilities prove about the sets
          (`appellate.evidence.criterion`), at the best temperature and for the way in which the
          sets arose (`appellate.evidence.choose_tau`). It conditions on the sets, so that mass
          on just any candidate is worth nothing.
        - ``"leave_one_out_covering"``, ``"leave_one_out_likelihood"``, \
``"leave_one_out_evidence"``: the same of the **training** rows of the estimator, each left out of
          the regression in closed form. They are quick and need no folds, but only the
          regression leaves the row out: the confidences of the other rows were found with its
          candidates among the data, so they are kinder than held-out scores and more so
          the more a model adapts. Only kernel ridge classifiers, and PLCP where such a one
          predicts, have them; the last step of a pipeline is asked.
        - ``"oracle_accuracy"``: accuracy against the true labels. **It uses true labels**: for
          studies,
          as an upper bound. y is then a vector of true labels, or, for cross-validation, what
          `with_truth` makes of candidate sets.

    All follow the `cost` of a classifier: covering by the labels that it then predicts,
    likelihood by minus its expected costs. So they also choose among costs, such as the width
    of ``"ordinal:w"``, where the held-out ``"candidate_likelihood"`` did best.

    Returns
    -------
    callable
        ``scorer(estimator, X, y)``.

    Examples
    --------
    >>> from appellate import SUREClassifier
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> model = SUREClassifier().fit(X, y)
    >>> get_scorer("covering_rate")(model, X, y)
    1.0
    >>> get_scorer("oracle_accuracy")
    <scorer oracle_accuracy, uses true labels>
    """
    if callable(scoring):
        return scoring
    if scoring not in _SCORERS:
        raise ValueError(f"unknown scorer {scoring!r}. Use one of {', '.join(_SCORERS)}.")
    return _SCORERS[scoring]


def get_scorer_names(*, uses_truth: bool = False) -> list[str]:
    """Names that `get_scorer` knows, by default of those that need no truth.

    Parameters
    ----------
    uses_truth : bool, default=False
        Whether to name those that read true labels, for studies, instead.

    Returns
    -------
    list of str
        The names.

    Examples
    --------
    >>> get_scorer_names(uses_truth=True)
    ['oracle_accuracy']
    """
    return [name for name, scorer in _SCORERS.items() if scorer.uses_truth == uses_truth]


@dataclass(frozen=True, eq=False, repr=False)
class CandidatesWithTruth(CandidateSets):
    """Candidate sets that carry true labels past `fit`, for scorers that use true labels.

    Attributes
    ----------
    matrix, class_names, ids, answers
        Those of `CandidateSets`.
    truth : ndarray, shape (n,)
        True labels.

    Examples
    --------
    >>> with_truth(["cat|dog", "cow"], ["dog", "cow"])[1:].truth
    array(['cow'], dtype='<U3')
    """

    truth: Any = None

    def __getitem__(self, rows: Any) -> CandidatesWithTruth:
        """Return some rows, with their truth."""
        part = super().__getitem__(rows)
        chosen = np.atleast_1d(self.truth[rows[0] if isinstance(rows, tuple) else rows])
        return CandidatesWithTruth(part.matrix, part.class_names, part.ids, part.answers, chosen)


def with_truth(y: Any, truth: ArrayLike) -> CandidatesWithTruth:
    """Let candidate sets carry true labels, so that they are at hand in every fold.

    No classifier here reads them in `fit`; only a scorer that uses true labels does.

    Parameters
    ----------
    y : array-like
        Candidate sets, anything that `as_candidates` reads.
    truth : array-like, shape (n,)
        True labels.

    Returns
    -------
    CandidatesWithTruth
        To be passed as y.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from appellate import SUREClassifier
    >>> from appellate.model_selection import CandidateKFold
    >>> X = [[0.0], [5.0], [0.1], [5.1], [0.2], [5.2]]
    >>> y = ["cat|dog", "dog", "cat", "dog|cow", "cat|cow", "cat|dog"]
    >>> judged = with_truth(y, ["cat", "dog"] * 3)
    >>> scorer = get_scorer("oracle_accuracy")
    >>> cross_val_score(SUREClassifier(), X, judged, scoring=scorer, cv=CandidateKFold(3))
    array([1., 1., 1.])
    """
    sets, labels = as_candidates(y), label_vector(truth)
    if labels.ndim != 1:
        raise ValueError(f"truth has shape {labels.shape}; it needs one label a row.")
    check_length(sets, len(labels))
    return CandidatesWithTruth(sets.matrix, sets.class_names, sets.ids, sets.answers, labels)


# -- the scores ---------------------------------------------------------------------------


def _held_out(estimator: Any, X: Any) -> tuple[NDArray[Any], bool]:
    """Probabilities of new rows if the classifier scores by them, else scores; and which."""
    probable = _scores_by_probabilities(estimator)
    return (estimator.predict_proba if probable else estimator.decision_function)(X), probable


def _scores_by_probabilities(estimator: Any) -> bool:
    """Ask the classifier inside; its values cannot tell, since ridge scores sum to one too.

    With a cost the scores are minus expected costs. A third party's classifier is asked for
    its scores, and for its probabilities if it has no scores.
    """
    model = estimator
    while not isinstance(model, PartialLabelClassifier):
        if (inside := _inside(model)) is None:
            return not hasattr(estimator, "decision_function")
        model = inside
    return model.cost_ is None and isinstance(model._head(), ProbabilityModel)


def _inside(model: Any) -> Any:
    """Return the classifier that a search has chosen or a pipeline ends with, else None."""
    if hasattr(model, "best_estimator_"):
        return model.best_estimator_
    return model.steps[-1][1] if hasattr(model, "steps") else None


def _held_out_likelihood(model: Any, X: Any, y: Any) -> float:
    scores, probable = _held_out(model, X)
    return metrics.candidate_likelihood(y, scores, classes=model.classes_, probabilities=probable)


def _held_out_evidence(estimator: Any, X: Any, y: Any) -> float:
    scores, probable = _held_out(estimator, X)
    if probable:
        scores = np.log(np.maximum(scores, 1e-12))
    elif scores.ndim == 1:
        scores = np.column_stack([np.zeros_like(scores), scores])
    sets = read_sets(y, estimator.classes_)
    known = sets.matrix.any(axis=1)  # a row of classes that `fit` has not seen says nothing
    return _evidence(scores[known], sets.matrix[known])


def _evidence(scores: NDArray[Any], candidates: NDArray[np.bool_]) -> float:
    """Criterion at the best temperature, for the way in which the sets arose."""
    if not len(scores):
        return float("nan")
    sets = Evidence.of_sets(candidates)
    likely = {tau: soften(scores, fit_temperature(scores, sets, tau)) for tau in TAUS}
    criteria = {tau: criterion(each, sets, tau) for tau, each in likely.items()}
    found = {tau: [value] for tau, value in criteria.items()}
    return criteria[choose_tau(found, resemblance(likely[0.0], sets))]


def _oracle(estimator: Any, X: Any, y: Any) -> float:
    labels = y.truth if isinstance(y, CandidatesWithTruth) else y
    if isinstance(labels, CandidateSets) or np.ndim(labels) != 1:
        raise ValueError(
            "oracle_accuracy uses true labels, but y holds candidate sets only. Pass a vector of "
            "true labels, or y = with_truth(candidates, truth) for cross-validation."
        )
    return metrics.accuracy(labels, estimator.predict(X))


def _leave_one_out(score: Callable[..., float], estimator: Any, X: Any, y: Any) -> float:
    """Score what the classifier inside says of its training rows, each left out."""
    model = estimator
    while not hasattr(model, "leave_one_out_decision"):
        if (inside := _inside(model)) is None:
            raise TypeError(
                f"{type(model).__name__} has no closed-form leave-one-out, only kernel ridge "
                "classifiers have. Score held-out rows: 'covering_rate'."
            )
        model = inside
    return score(model._weigh(model.leave_one_out_decision()), model.candidates_)


_HELD_OUT: dict[str, Callable[[Any, Any, Any], float]] = {
    "covering_rate": lambda m, X, y: metrics.covering_rate(y, m.predict(X), classes=m.classes_),
    "approximated_accuracy": lambda m, X, y: metrics.approximated_accuracy(
        y, m.predict_proba(X), classes=m.classes_
    ),
    "candidate_likelihood": _held_out_likelihood,
    "evidence": _held_out_evidence,
}
_LEFT_OUT: dict[str, Callable[[Any, Any], float]] = {
    "covering": lambda scores, sets: metrics.covering_rate(sets, scores.argmax(axis=1)),
    "likelihood": lambda scores, sets: metrics.candidate_likelihood(sets, scores),
    "evidence": _evidence,
}
_SCORERS: dict[str, Scorer] = {
    scorer.name: scorer
    for scorer in (
        *(Scorer(name, score) for name, score in _HELD_OUT.items()),
        *(
            Scorer(f"leave_one_out_{name}", partial(_leave_one_out, score), leave_one_out=True)
            for name, score in _LEFT_OUT.items()
        ),
        Scorer("oracle_accuracy", _oracle, uses_truth=True),
    )
}
