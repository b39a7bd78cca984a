"""The classifier for answers; it follows the scikit-learn API."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from appellate._compat import StrOptions, fit_context
from appellate._parameters import share_docs
from appellate.candidates import Answers, as_answers, check_length
from appellate.candidates.alignment import ravel_column
from appellate.candidates.containers import row_index
from appellate.candidates.names import encode_labels, name_array, place_columns, scalars
from appellate.core.base import POSITIVE, AppealClassifier
from appellate.core.explanation import Explanation, read_rows
from appellate.core.problem import Kernel
from appellate.core.results import Model
from appellate.docket import Docket, find_runner_up, frame_backend, free_separator
from appellate.evidence.costs import cost_matrix, expected_costs
from appellate.methods.testimony.explanation import explain_answers
from appellate.methods.testimony.features import RIDGES, Regressions
from appellate.methods.testimony.functions import PASSES, find_functions
from appellate.methods.testimony.models import ModelAnswers, read_models
from appellate.methods.testimony.people import EDGE, Matrix, describe_people, share_interval
from appellate.methods.testimony.rounds import ROUNDS, audit_temperature, certain, fit_crowd
from appellate.numerics.threads import blas_for

_AUDITED = 20


@dataclass(frozen=True)
class OpenAnswers:
    """What a fit starts from.

    Attributes
    ----------
    answers : Answers
        Who gave which label.
    n_named : int
        Number of classes before reviewers named further ones.
    decided : ndarray of int, shape (n,)
        Class of every reviewed row, -1 elsewhere.
    drawn : ndarray of bool, shape (n,)
        Which of the reviewed rows were drawn at random.
    """

    answers: Answers
    n_named: int
    decided: NDArray[np.intp]
    drawn: NDArray[np.bool_]


@share_docs
@dataclass(kw_only=True, eq=False, repr=False)
class TestimonyClassifier(AppealClassifier):
    """Label rows that several annotators answered, and leave a model for new rows.

    Every annotator's answers are weighed by how often the annotator is correct [1]_, and the
    answers by the features: rows that look alike tend to have the same label. The results say
    how confident each label is, which annotators to trust, and in which rows the true label is
    not among the answers.

    Parameters
    ----------
    <kernel>
        Features are z-scored.
    regularization : float or "auto", default="auto"
        Ridge of the regression; ``"auto"``: .5, or .05 or 5 if that predicts the answers
        clearly better; for new rows the one of them and 1.5 that predicts the posterior best.
    within_answers : bool or "auto", default="auto"
        Whether labels of training rows are chosen among the row's answers only. ``"auto"``: only
        without features, because answers alone say little for a label that nobody gave.
    functions : bool or "auto", default="auto"
        Whether sources that give one label only are labelling functions, which are weighed by
        their precision. ``"auto"``: if they gave more than half of the answers.
    ordered : bool, default=False
        The classes are in order (grades): errors are expected near the true label.
    cost : None, str, mapping or array-like, default=None
        What wrong labels cost, see `appellate.evidence.cost_matrix`: labels are those of the
        smallest expected cost under the posterior.

    Attributes
    ----------
    classes_ : ndarray, shape (l,)
        Class names.
    confidence_ : ndarray, shape (n, l)
        Posterior of every training row over **all** labels.
    transduction_ : ndarray, shape (n,)
        Label of every training row.
    verdict_ : ndarray, shape (n,)
        Label of every training row by the answers alone, without features.
    verdict_confidence_ : ndarray, shape (n, l)
        Posterior by the answers alone.
    overturned_ : ndarray of bool, shape (n,)
        Whether the features changed the label.
    n_ties_ : int
        Number of training rows with more than one best label.
    suspicion_ : ndarray, shape (n,)
        How likely none of the row's answers is true; NaN in rows without answers.
    label_quality_ : ndarray, shape (n,)
        Posterior mass of the label that most of the row's answers gave, from 0 (look at it) to
        1; NaN in rows without answers.
    candidates_ : ndarray of bool, shape (n, l)
        The labels that were answered.
    answers_ : Answers
        Who gave which label.
    annotators_ : dict of ndarray
        One entry per annotator: ``person``, ``answers`` (how many), ``accuracy`` with ``low`` and
        ``high`` (a 95 % interval), ``agreement`` (share of the answers that are among the
        row's most given ones), ``confusion`` (p, l, l): row c holds the probabilities of the
        answers if c is true.
    functions_ : ndarray of bool, shape (p,)
        Which of the sources were treated as labelling functions.
    regularization_ : float or None
        The ridge by which the answers were weighed.
    shared_errors_ : float
        How much of a further answer repeats the errors of the others. With features, or with
        fewer than five answers per row: the value that best predicts held-out answers. Without
        features: by how far the answers of a row are correlated.
    trust_ : float
        How far the features were trusted, beta; 0 without features.
    feature_gain_ : float
        Nats by which the features predict the answers better than the shares of the labels do;
        features without any use gain up to 5 by chance.
    model_temperatures_ : dict
        By which the probabilities of every model were flattened; above 1: it was overconfident.
    temperature_ : float
        By which audited rows recalibrated the posterior; 1 without audited rows.
    audit_ : dict or None
        With 20 audited rows or more: ``rows``, ``accuracy``, ``low``, ``high`` (95 %).

    See Also
    --------
    appellate.candidates.as_answers : reads the tables that answers come in.

    Notes
    -----
    In the docket the first label is by the answers alone, the final label by answers and
    features; the outcome is ``unchanged``, ``changed``, ``outside the answers`` if the final
    label is a label that nobody gave, or ``unanswered``. It has the columns of
    `appellate.docket.Docket`, and ``runner_up``, ``runner_up_confidence``, ``suspicion`` and
    ``votes`` (``cat:3|dog:1``).

    Annotators are modelled in three ways: an accuracy each, the confusions of all annotators
    together, and confusions of their own. The scores of the three are averaged; each counts as
    much as it predicts held-out answers. Folds are drawn with a fixed seed.

    Cost: the kernel, n^3 per ridge (n m^2 by way of m landmarks beyond 9,000 rows), then about
    a hundred rounds of A l for A answers (two for labelling functions).
    `appellate.methods.testimony` gives the formulas and the constants, function by function;
    without features the model is that of [1]_ with shrinkage.

    References
    ----------
    .. [1] Dawid, Skene (1979). Maximum likelihood estimation of observer error-rates using the
       EM algorithm. Journal of the Royal Statistical Society C 28.

    Examples
    --------
    >>> import numpy as np
    >>> from appellate import TestimonyClassifier, as_answers
    >>> X = np.repeat([[0.0], [5.0]], 10, axis=0) + np.linspace(0, 1, 20)[:, None]
    >>> answers = 9 * [["cat", "cat", "dog"]] + [["dog", None, None]] + 10 * [["dog"] * 3]
    >>> model = TestimonyClassifier().fit(X, as_answers(answers))
    >>> model.transduction_[[0, -1]], model.predict([[0.2], [5.5]])
    (array(['cat', 'dog'], dtype=object), array(['cat', 'dog'], dtype=object))
    >>> model.annotators_["agreement"].round(2)
    array([1.  , 1.  , 0.53])
    """

    __test__ = False  # pytest would take it for a test by its name
    kernel: Kernel = "rbf"
    regularization: float | str = "auto"
    within_answers: bool | str = "auto"
    functions: bool | str = "auto"
    ordered: bool = False
    cost: Any = None

    _parameter_constraints = {
        "regularization": [POSITIVE, StrOptions({"auto"})],
        "within_answers": ["boolean", StrOptions({"auto"})],
        "functions": ["boolean", StrOptions({"auto"})],
        "ordered": ["boolean"],
    }

    @fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        probabilities: Any = None,
        decisions: Any = None,
        audited: Any = None,
    ) -> Self:
        """Fit to features and answers.

        Parameters
        ----------
        X : array-like, shape (n, q), or None
            Features; None: the answers alone, which leaves labels but no model for new rows.
        y : Answers or array-like
            Who gave which label: `as_answers` reads tables. Candidate sets count as answers of
            one unknown annotator, one label per row as one answer each (noisy labels).
        probabilities : array-like, shape (n, l), or dict of them, default=None
            Probabilities of a model for every row, or of several models by their names: one
            column per class in the order of the classes, NaN in rows without them. A model is
            one more answer to a row; its temperature best predicts the other answers.
            Give out-of-fold probabilities if the model was trained on these rows.
        decisions : array-like, shape (n,), default=None
            Labels of the rows that were reviewed, missing elsewhere; they are certain.
        audited : array-like of bool, shape (n,), default=None
            Which of the reviewed rows were drawn at random. With 20 of them or more the
            posterior is recalibrated, and `audit_` gives an unbiased accuracy: both by the
            posterior of these rows without their decisions.

        Returns
        -------
        self
        """
        opened = self._open_answers(X, y, decisions, audited)
        with blas_for(len(opened.answers)):
            self._weigh_answers(X, opened, probabilities)
        return self

    def _weigh_answers(self, X: Any, opened: OpenAnswers, probabilities: Any) -> None:
        """Fit to answers that were read."""
        answers = opened.answers
        decided = opened.decided
        drawn = opened.drawn
        models = (
            []
            if probabilities is None
            else read_models(probabilities, answers.shape, opened.n_named)
        )
        for model in models:  # its likeliest label counts among the answers to a row
            spoken = np.flatnonzero(model.spoke)
            self.candidates_[spoken, model.log[spoken].argmax(axis=1)] = True
        self.functions_ = find_functions(answers, self.functions)
        known = self.candidates_.any(axis=1) | (decided >= 0)
        if not known.any():
            raise ValueError(
                "no row has an answer, a decision or a model's probabilities; there is nothing to "
                "learn from."
            )
        kept, kept_decided = answers[known], decided[known]
        rows = regressions = None
        if X is not None:
            rows = self._check_rows(X, reset=True)
            if not sp.issparse(rows):
                rows = np.asarray(rows)
            check_length(answers, rows.shape[0])
            ridges = RIDGES if isinstance(self.regularization, str) else (self.regularization,)
            regressions = Regressions(rows[known], len(self.classes_), self.kernel, ridges)
        options: dict[str, Any] = {
            "ordered": self.ordered,
            "functions": self.functions,
            "models": [model[known] for model in models],
        }
        self.temperature_ = 1.0
        self.audit_: dict[str, Any] | None = None
        if drawn.sum() >= _AUDITED:
            blind = np.where(drawn[known], -1, kept_decided)
            before = fit_crowd(kept, regressions, decided=blind, **options).posterior
            before, truth = before[drawn[known]], decided[drawn]
            self.temperature_ = audit_temperature(before, truth)
            allowed = self._allowed(answers, models, X is not None)[drawn]
            correct = int(np.sum(self._choose(before, allowed) == truth))
            low, high = share_interval(correct, len(truth))
            accuracy = correct / len(truth)
            self.audit_ = {"rows": len(truth), "accuracy": accuracy, "low": low, "high": high}
        alone = found = fit_crowd(kept, decided=kept_decided, **options)
        if regressions is not None:
            found = fit_crowd(kept, regressions, decided=kept_decided, **options)
        posterior = found.posterior
        if self.audit_ is not None:
            logs = np.log(np.maximum(posterior, EDGE)) / self.temperature_
            posterior = np.asarray(softmax(logs, axis=1))
        posterior = certain(posterior, kept_decided)
        self._model = CrowdModel(None) if regressions is None else regressions.model(posterior)
        self.training_output_ = posterior
        # Rows that nobody answered are like all the others, or new rows to the model.
        self.verdict_confidence_ = np.tile(alone.posterior.mean(axis=0), (len(known), 1))
        self.confidence_ = np.tile(posterior.mean(axis=0), (len(known), 1))
        self.verdict_confidence_[known] = alone.posterior
        self.confidence_[known] = posterior
        if rows is not None and not known.all():
            scores = self._model.decision(rows[~known])
            self.confidence_[~known] = self._model.probabilities(scores)
        self._account = replace(found.account, known=known, decided=decided)
        self.annotators_ = describe_people(kept, posterior, found.confusion)
        self.trust_ = found.beta
        self.feature_gain_ = found.gain
        self.n_iter_ = PASSES if self.functions_[kept.people].all() else ROUNDS + 1
        self.regularization_ = found.ridge
        self.shared_errors_ = found.shared
        self.model_temperatures_ = {name: 1 / t for name, t in found.trusts.items()}
        self._keep_labels(answers, models, decided, X is not None)

    def explain(self, rows: Any) -> list[Explanation]:
        """Say why training rows have their labels: the score of each as a sum.

        Parameters
        ----------
        rows : int, array-like of int, or mask
            Training rows, counted from 0.

        Returns
        -------
        list of Explanation
            One per row. The parts are the features (without features, how frequent the labels
            are), each answer, each model's probabilities, and last that annotators err together:
            what makes their sum the posterior. Without features, if rows have five answers or
            more, the share of the votes in the posterior follows. The softmax of the sum is the
            row's ``confidence_``.

        Examples
        --------
        >>> from appellate import TestimonyClassifier, as_answers
        >>> answers = as_answers([["cat", "cat", "dog"], ["dog"] * 3, ["cat"] * 3])
        >>> (why,) = TestimonyClassifier().fit(None, answers).explain(0)
        >>> [part.name for part in why.parts][1:4]
        ['0 said cat', '1 said cat', '2 said dog']
        """
        check_is_fitted(self)
        return explain_answers(
            self._account.everywhere(self.confidence_),
            self.answers_,
            read_rows(rows, len(self.confidence_)),
            self.confidence_,
            self.transduction_,
            self.audit_ is not None,
        )

    def _keep_labels(
        self,
        answers: Answers,
        models: list[ModelAnswers],
        decided: NDArray[np.intp],
        features: bool,
    ) -> None:
        """Leave first and final labels, what changed, ties, and how doubtful the answers are."""
        history = []
        for posterior, informed in (
            (self.verdict_confidence_, False),
            (self.confidence_, features),
        ):
            allowed = certain(self._allowed(answers, models, informed), decided)
            history.append(self._choose(posterior, allowed))
        self.label_history_ = np.stack(history)
        first, last = self.label_history_
        self.verdict_, self.transduction_ = self.classes_[first], self.classes_[last]
        self.overturned_ = first != last
        best = self._merits(self.confidence_, allowed)
        self.n_ties_ = int(np.sum(np.sum(best == best.max(axis=1, keepdims=True), axis=1) > 1))
        answered = self.candidates_.any(axis=1)
        outside = 1 - np.sum(self.confidence_ * self.candidates_, axis=1)
        self.suspicion_ = np.where(answered, np.clip(outside, 0, 1), np.nan)
        most = np.where(_most_given(answers, models), self.confidence_, 0.0).max(axis=1)
        self.label_quality_ = np.where(answered, np.clip(most, 0, 1), np.nan)

    def _allowed(
        self, answers: Answers, models: list[ModelAnswers], features: bool
    ) -> NDArray[np.bool_]:
        """Tell which labels the rows may have, (n, l).

        Labelling functions without annotators and features only settle ties of the vote.
        """
        if self.within_answers is False or (self.within_answers == "auto" and features):
            return np.ones_like(self.candidates_)
        if not features and self.functions_[answers.people].all():
            return _most_given(answers, models)
        return self.candidates_

    def _tabulate(self, **parts: Any) -> Docket:
        parts |= {"cost": None, "cost_name": ""}
        return CrowdDocket(**parts, votes=self.answers_.votes(), suspicion=self.suspicion_)

    def _open_answers(self, X: Any, y: Any, decisions: Any, audited: Any) -> OpenAnswers:
        """Read answers, decisions and which of these were drawn at random."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: "
                "give answers, candidate sets, or one label per row."
            )
        self.__dict__.pop("_model", None)
        answers = y
        if not isinstance(y, Answers):
            answers = as_answers(ravel_column(y), layout="auto")
        n, n_named = answers.shape
        for name, given in (("decisions", decisions), ("audited", audited)):
            if given is not None and len(given) != n:
                raise ValueError(f"{name} has {len(given)} values, but y has {n} rows.")
        decided = np.full(n, -1)
        if decisions is not None:
            codes, found = encode_labels(np.asarray(decisions, dtype=object), None, np.arange(n))
            known = scalars(answers.class_names)
            further = [name for name in scalars(found) if name not in known]
            if further:  # a reviewer knows more labels than the crowd
                answers = answers.rename(name_array([*known, *further]))
            decided[codes >= 0] = place_columns(found, answers.class_names)[codes[codes >= 0]]
        self._backend = frame_backend(y, X)
        self.ids_ = row_index(X) if answers.ids is None else answers.ids
        self.answers_, self.classes_ = answers, answers.class_names
        self.candidates_ = answers.votes() > 0
        self.cost_, self._cost_followed = cost_matrix(self.cost, self.classes_), self.cost
        drawn = np.zeros(n, dtype=bool) if audited is None else np.asarray(audited, dtype=bool)
        return OpenAnswers(answers, n_named, decided, drawn & (decided >= 0))

    def _choose(self, posterior: Matrix, allowed: NDArray[Any]) -> NDArray[np.intp]:
        """Label of every row: the likeliest, or the one of the smallest expected cost."""
        return np.argmax(self._merits(posterior, allowed), axis=1)

    def _merits(self, posterior: Matrix, allowed: NDArray[Any]) -> Matrix:
        """Posterior, or minus the expected cost, of the allowed labels; minus infinity elsewhere.

        All labels of a row are allowed if none is marked.
        """
        scores = posterior if self.cost_ is None else -expected_costs(posterior, self.cost_)
        shut = (allowed == 0) & (allowed > 0).any(axis=1, keepdims=True)
        return np.where(shut, -np.inf, scores)


def _most_given(answers: Answers, models: list[ModelAnswers]) -> NDArray[np.bool_]:
    """Tell which labels of every row have the most answers, (n, l); all of them without any."""
    votes = sum((model.shares() for model in models), answers.votes())
    return np.asarray(votes == votes.max(axis=1, keepdims=True))


@dataclass(frozen=True)
class CrowdModel(Model):
    """The model of a fit without features: it cannot predict new rows."""

    def decision(self, X: Any) -> Matrix:
        """Say why `score` does not exist."""
        raise ValueError(
            "this model was fitted without features (X=None): transduction_ has the labels of "
            "the training rows, but there is nothing to predict new rows from."
        )


@dataclass(frozen=True, kw_only=True)
class CrowdDocket(Docket):
    """The docket of answers: next to the usual columns votes, suspicion and the runner-up.

    All labels are open to every row that has an answer. The margin is the confidence of the
    final label minus that of the runner-up among all labels; it is negative if the answers, or a
    cost, kept the likeliest label from being the final label.
    """

    votes: Matrix
    suspicion: Matrix

    @cached_property
    def contested(self) -> NDArray[np.bool_]:
        """Whether more than one label was open to the row, (n,)."""
        return self.candidates.any(axis=1) & (self.candidates.shape[1] > 1)

    @cached_property
    def outcome(self) -> NDArray[Any]:
        """Outcome of every row as in the table, (n,)."""
        rows, outcome = np.arange(len(self.candidates)), super().outcome.copy()
        outcome[~self.candidates[rows, self.appeal]] = "outside the answers"
        outcome[~self.candidates.any(axis=1)] = "unanswered"
        return outcome

    @cached_property
    def margin(self) -> NDArray[Any]:
        """Confidence of the final label minus that of the runner-up among all labels, (n,)."""
        rows = np.arange(len(self.candidates))
        _, share = find_runner_up(self.appeal_confidence, self.appeal)
        lead = self.appeal_confidence[rows, self.appeal] - share
        return np.where(np.isnan(share), 1.0, lead).astype(self.appeal_confidence.dtype)

    def columns(self, separator: str = "|") -> dict[str, NDArray[Any]]:
        """Return the table as a dict of arrays, one per column."""
        table = super().columns(separator)
        second, share = find_runner_up(self.appeal_confidence, self.appeal)
        names = self.class_names.astype(object)
        if len(names) == 1:
            names, share = np.array([None]), np.zeros_like(share)
        labels = [str(name) for name in self.class_names.tolist()]
        glue, votes = free_separator(labels, separator), np.empty(len(second), dtype=object)
        for i, row in enumerate(self.votes):
            given = np.argsort(-row, kind="stable")[: np.count_nonzero(row)]
            votes[i] = glue.join(f"{labels[j]}:{row[j]:g}" for j in given)
        return table | {
            "runner_up": names[second],
            "runner_up_confidence": share,
            "suspicion": self.suspicion,
            "votes": votes,
        }
