"""PLCP: a base classifier and its partner supervise each other (Algorithm 1 of the paper)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, fields, replace
from numbers import Integral, Real
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if

from appellate._compat import Interval, StrOptions
from appellate._parameters import share_docs
from appellate.core.base import (
    COUNT,
    SHARE,
    AppealClassifier,
    PartialLabelClassifier,
    check_base,
)
from appellate.core.foreign import Foreign
from appellate.core.problem import Kernel, Problem
from appellate.core.results import Model, ProbabilityModel, Result
from appellate.evidence.confidence import blur_entries
from appellate.methods.jury.classifier import JuryClassifier
from appellate.methods.jury.members import LateMember, ModelScores, Replicas
from appellate.methods.partner import PartnerClassifier
from appellate.numerics.entries import Values
from appellate.numerics.kernels import KERNEL_CONSTRAINT

#: Parameters that only Algorithm 1 reads.
_ALGORITHM_1 = (
    "smoothing",
    "collaboration",
    "regularization",
    "blur",
    "max_rounds",
    "tol",
    "link",
    "kernel",
    "keep_confidences",
)


@dataclass(frozen=True)
class Round:
    """The record of one round of mutual supervision.

    Attributes
    ----------
    number : int
        Counted from 1.
    changed : float
        Share of training samples whose label differs from the round before (in round 1:
        from the verdict of the base alone).
    base_steps, partner_steps : int
        Steps that each classifier took.
    base_confidence, partner_confidence : ndarray, shape (n, l), or None
        The paper's P and 1 - P-hat after the round, if ``keep_confidences=True``.
    """

    number: int
    changed: float
    base_steps: int
    partner_steps: int
    base_confidence: NDArray[Any] | None = None
    partner_confidence: NDArray[Any] | None = None


class Exchange(NamedTuple):
    """What base and partner give each other in a round."""

    base: Result
    partner: Result
    confidences: tuple[Values, Values]  # P and 1 - P^


@share_docs
@dataclass(eq=False, repr=False)
class PLCPClassifier(MetaEstimatorMixin, AppealClassifier):  # type: ignore[misc]
    """Partial-label learning with a classifier as partner (PLCP).

    Any base classifier is coupled with a partner that learns which labels a sample does
    *not* have. In each round, each gives the other a blurred confidence as supervision, so
    that a sample that the base mislabeled has the chance to be rectified [1]_:

    1. train the base, supervised by the partner; it returns its training output M
    2. ``P <- clip(smoothing P + (1 - smoothing) M, 0, Y)``
    3. ``O <- rownorm(exp(e^blur P) * Y)``
    4. train the partner, supervised by O; it returns its training output M^
    5. ``P^ <- clip(smoothing P^ + (1 - smoothing) M^, 1 - Y, 1)``
    6. ``O^ <- rownorm(exp(e^blur (1 - P^)) * Y)``, the supervision of the next round

    With ``partner="jury"`` the partners are the kernel members of a `JuryClassifier`, and the
    base is weighed with them:

    1. the base is fitted alone, on all rows and on all but one of K folds; its label is the
       verdict
    2. the partners run the rounds of the jury, which find how the sets arose and whether the
       labels are ordered
    3. the out-of-fold scores of the base join those of the partners; temperatures and weights
       make `appellate.evidence.criterion` largest
    4. new rows get the label of the mixture; training rows get the label of the posterior, to
       which the base contributes its out-of-fold scores only

    The partners do most of the work: on set-first data the base has a weight of a few per cent.
    The parameters of Algorithm 1 (`smoothing` to `keep_confidences`, except `head`) must then
    keep their defaults. Set the parameters of the jury on the `JuryClassifier`.

    Cost: one kernel matrix, factorisation and inverse, O(n^3), shared by base and partner if
    their kernels agree; the rounds touch candidate entries only. Memory: at
    most three n x n matrices, and n^2 c^2 / l numbers, with c candidates per row, for each
    further ridge or kernel of the base. Nystroem features (`GaussianKernel`) make both linear
    in n.

    Parameters
    ----------
    estimator : object
        The base classifier: one of this library, or any object with
        ``fit(X, candidates, supervision=None)`` and ``training_output_``, and with
        ``predict_proba`` if it is to predict (`appellate.core.BaseClassifier`).
    partner : {"complement", "jury"} or JuryClassifier, default="complement"
        ``"complement"`` is the paper's partner, a classifier of what a sample is not:
        Algorithm 1 as published. ``"jury"`` (short for ``JuryClassifier("kernel")``) is another
        coupling, not the paper's: the base is one member of a jury, weighed by what its
        out-of-fold scores prove about the sets, as described above.
    smoothing : float, default=0.5
        Share of the old confidence that is kept (the paper's alpha).
    collaboration : float, default=2.0
        Weight of the partner's link to the base (gamma).
    regularization : float, default=0.05
        Ridge of the partner (lambda).
    blur : float or None, default=-1.0
        Temperature of the blur (k); None turns blurring off.
    max_rounds : int, default=5
        Rounds of mutual supervision.
    tol : float or None, default=None
        Stop after two rounds in a row in each of which fewer than this share of the
        training samples changed their label. None: all rounds are run, as in the authors'
        code. (The paper's rule needs the true labels.)
    link : {"collaborative", "aggressive"}, default="collaborative"
        How the partner is tied to the base.
    kernel : {"rbf", "laplacian", "linear"}, a kernel object or None, default=None
        Kernel of the partner. None: the kernel of the base, Gaussian if the base has none.
    head : {"partner", "base", "mean"}, default="partner"
        Who predicts new rows: the partner of the last round (the paper), which may be a jury,
        the base of the last round, or the mean of both probabilities. It is read at prediction,
        so one fit serves all three through ``set_params(head=...)``.
    keep_confidences : bool, default=False
        Keep every round's (n, l) confidences in `history_`.
    random_state : int, RandomState instance or None, default=None
        Seed of the base, if the base is random and has no seed of its own. An integer is passed
        on as it is, so that the verdict is what the base alone finds with it.
    cost : None, str or (l, l) matrix, default=None
        What a wrong label costs (`appellate.evidence.cost_matrix`), such as ``"absolute"`` or
        ``"within:3"``: the label of the smallest expected cost is predicted, and given to a
        training row among its candidates as verdict and as appeal. None: the most likely one.
        It governs base and partner; the base must not have a cost of its own.

    Attributes
    ----------
    estimator_ : object
        The base of the last round, fitted.
    partner_ : PartnerClassifier or JuryClassifier
        The partner of the last round, fitted; or the jury, in which the base is a member.
    <classes>
    verdict_ : ndarray, shape (n,)
        Label that the base alone gives every training row.
    transduction_ : ndarray, shape (n,)
        Label of every training row after appeal.
    overturned_ : ndarray of bool, shape (n,)
        Whether the two differ; never for a row with one candidate.
    initial_confidence_ : ndarray, shape (n, l)
        Confidence from which the base started.
    verdict_confidence_, confidence_ : ndarray, shape (n, l)
        Confidence behind verdict and appeal: training outputs projected onto the simplex
        over the candidates (for a base that votes, shares of the votes).
    training_output_ : ndarray, shape (n, l)
        Scores of the training rows by the last partner, ``1 - M^``.
    ambiguity_, order_width_, resemblance_, criterion_, weights_, suspicion_
        With a jury as partner: as in `JuryClassifier`. The weight of the base comes after those
        of the partners, and before those of an earlier round.
    label_history_ : ndarray of int, shape (rounds + 1, n)
        Class index of every training row: verdict first, then each round's appeal.
    history_ : list of Round
        One entry per round.
    n_iter_ : int
        Rounds run.
    termination_condition_ : {"max_rounds", "tol"}
        What ended the rounds.

    References
    ----------
    .. [1] Si, Wang, Wang, Yang, Shen. Appeal: Allow mislabeled samples the chance to be
       rectified in partial label learning.

    Examples
    --------
    >>> from appellate import PLCPClassifier, SUREClassifier
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> model = PLCPClassifier(SUREClassifier()).fit(X, y)
    >>> model.predict([[0.05], [4.9]])
    array(['cat', 'dog'], dtype='<U3')
    >>> model.docket(output="dict")["outcome"][:2]
    array(['unchanged', 'unchanged'], dtype=object)
    """

    estimator: Any
    _: KW_ONLY
    partner: Any = "complement"
    smoothing: float = 0.5
    collaboration: float = 2.0
    regularization: float = 0.05
    blur: float | None = -1.0
    max_rounds: int = 5
    tol: float | None = None
    link: str = "collaborative"
    kernel: Kernel | None = None
    head: str = "partner"
    keep_confidences: bool = False
    random_state: Any = None
    cost: Any = None

    _parameter_constraints = {
        "smoothing": [Interval(Real, 0, 1, closed="left")],
        "blur": [Interval(Real, None, None, closed="neither"), None],
        "max_rounds": [COUNT],
        "tol": [SHARE, None],
        "partner": [StrOptions({"complement", "jury"}), JuryClassifier],
        "kernel": [*KERNEL_CONSTRAINT, None],
        "head": [StrOptions({"partner", "base", "mean"})],
        "keep_confidences": ["boolean"],
    }

    _partner_type = PartnerClassifier  # the ablation has another

    def _solve(self, problem: Problem, start: Values | None) -> Result:
        """Run the rounds and keep their records."""
        entries = problem.entries
        if self.partner != "complement":
            return self._with_jury(problem, start)
        base = self._make_base()
        partner = self._make_partner()
        rounds = self._algorithm_1(problem, base, partner, start)
        history: list[Round] = []
        for number, last in enumerate(rounds, 1):
            if number == 1:
                verdict = last.base
                labels = [entries.argmax(problem.rank(verdict))]
            labels.append(entries.argmax(problem.rank(last.partner)))
            changed = float(np.mean(labels[-1] != labels[-2]))
            steps = last.base.n_iter, last.partner.n_iter
            kept = map(entries.scatter, last.confidences) if self.keep_confidences else ()
            history.append(Round(number, changed, *steps, *kept))
            if self._on_round is not None:
                self._on_round(number, self.max_rounds)
            moved = max(each.changed for each in history[-2:]) if number > 1 else 1.0
            settled = self.tol is not None and moved < self.tol
            if settled:
                break

        def make_model() -> CoupledModel:
            """Make base and partner as good as fitted on the problem, and their models one."""
            partner._keep(problem, last.partner)
            base._keep(problem, last.base)
            return CoupledModel(partner.training_output_, partner._model, base._head())

        return Result(
            initial=problem.uniform(),
            confidence=last.partner.distribution(entries),
            output=last.partner.output,
            n_iter=len(history),
            model=make_model,
            ranking=last.partner.ranking,
            details={
                "estimator_": base.estimator if isinstance(base, Foreign) else base,
                "partner_": partner,
                "history_": history,
                "label_history_": np.array(labels),
                "initial_confidence_": entries.scatter(verdict.initial),
                "verdict_confidence_": entries.scatter(verdict.distribution(entries)),
                "termination_condition_": "tol" if settled else "max_rounds",
            },
        )

    def _algorithm_1(
        self, problem: Problem, base: Any, partner: PartnerClassifier, start: Values | None
    ) -> Iterator[Exchange]:
        """Algorithm 1, on candidate entries; the numbers are those of the class's docstring."""
        entries = problem.entries
        kept = self.smoothing
        supervision = start
        confidence: Any = None  # P
        doubt = np.zeros(len(entries.labels), dtype=problem.dtype)  # P^, at the candidates
        for _ in range(self.max_rounds):
            of_base = base._solve(problem, supervision)  # 1: M
            confidence = of_base.initial if confidence is None else confidence
            confidence = np.clip(kept * confidence + (1 - kept) * of_base.output, 0, 1)  # 2: P
            to_partner = blur_entries(confidence, entries, self.blur)  # 3: O
            of_partner = partner._solve(problem, to_partner)  # 4: 1 - M^
            doubt = np.clip(kept * doubt + (1 - kept) * (1 - of_partner.output), 0, 1)  # 5: P^
            supervision = blur_entries(1 - doubt, entries, self.blur)  # 6: O^
            yield Exchange(of_base, of_partner, (confidence, 1 - doubt))

    def _with_jury(self, problem: Problem, start: Values | None) -> Result:
        """Weigh the base with the members of a jury, by scores of rows that it did not see."""
        jury = self._make_partner()
        base = self._make_base()
        entries = problem.entries
        verdict = base._solve(problem, start)
        made = verdict.model()  # once, for the jury and for the fitted base
        verdict = replace(verdict, model=lambda: made)
        jury._on_round = self._on_round

        def fit_base(replicas: Replicas) -> LateMember:
            """Score every row by a base that did not see it; new rows by the base of all rows."""
            whole = ModelScores(made)
            scores = np.empty(entries.shape)
            for _, rest, fold in replicas.folds():
                part = problem.take(rest)
                first = None
                if start is not None:
                    first = part.entries.gather(entries.scatter(start)[rest])
                held = ModelScores(self._make_base()._solve(part, first).model())
                scores[fold] = held.predict(problem.matrix[fold])
            if len(replicas.rows) == 1:  # a single row has no folds
                scores[:] = whole.predict(problem.matrix)
            return type(self.estimator).__name__, scores, [whole]

        result = jury._solve(problem, start, base=fit_base)
        first = entries.argmax(problem.rank(verdict))
        labels = np.array([first, *result.details["label_history_"][1:]])
        changed = np.mean(labels[1:] != labels[:-1], axis=1).tolist()
        history = [
            Round(number, share, verdict.n_iter if number == 1 else 0, 1)
            for number, share in enumerate(changed, 1)
        ]

        def make_model() -> CoupledModel:
            """Make base and jury as good as fitted on the problem, and their models one."""
            jury._keep(problem, result)
            base._keep(problem, verdict)
            return CoupledModel(jury.training_output_, jury._model, base._head())

        settled = len(result.details["criterion_"][result.details["ambiguity_"]]) < jury.max_rounds
        return replace(
            result,
            n_iter=len(history),
            model=make_model,
            details={
                **result.details,
                "estimator_": base.estimator if isinstance(base, Foreign) else base,
                "partner_": jury,
                "history_": history,
                "label_history_": labels,
                "initial_confidence_": entries.scatter(verdict.initial),
                "verdict_confidence_": entries.scatter(verdict.distribution(entries)),
                "termination_condition_": "tol" if settled else "max_rounds",
            },
        )

    def _head(self) -> Model:
        return cast(CoupledModel, self._model).choose(self.head)

    def _kernels(self) -> list[tuple[Kernel, Any]]:
        ours = isinstance(self.estimator, PartialLabelClassifier)
        return [*(self.estimator._kernels() if ours else []), *self._make_partner()._kernels()]

    def _n_matrices(self) -> float | None:
        if self.partner == "complement":
            return None
        ours = isinstance(self.estimator, PartialLabelClassifier)
        own = len(self.estimator._kernels()) + 2 if ours else 0
        return own + cast(float, self._make_partner()._n_matrices())

    def _n_squares(self) -> float | None:
        return None if self.partner == "complement" else self._make_partner()._n_squares()

    def __sklearn_tags__(self) -> Any:
        """Take sparse features if base and partner take them."""
        tags = super().__sklearn_tags__()
        if isinstance(self.estimator, PartialLabelClassifier):
            both = (get_tags(each).input_tags for each in (self.estimator, self._make_partner()))
            tags.input_tags.sparse = all(each.sparse for each in both)
        return tags

    # -- parts of a round ---------------------------------------------------------------

    def _rounds(self) -> list[NDArray[Any]] | None:
        kept = (each.partner_confidence for each in self.history_)
        return [confidence for confidence in kept if confidence is not None] or None

    def _make_base(self) -> Any:
        check_base(self.estimator)
        ours = isinstance(self.estimator, PartialLabelClassifier)
        silent = not ours and not hasattr(self.estimator, "predict_proba")
        if silent and self.partner != "complement":
            raise TypeError(
                f"{self.estimator!r} has no predict_proba, which a jury as partner needs to weigh "
                "it. Add one, or use partner='complement'."
            )
        if silent and self.head != "partner":
            raise TypeError(
                f"{self.estimator!r} has no predict_proba, but head={self.head!r} lets it "
                "predict. Add one, or take head='partner'."
            )
        base: Any = clone(self.estimator, safe=False)
        params = base.get_params(deep=False) if hasattr(base, "get_params") else {}
        if self.random_state is not None and params.get("random_state", 0) is None:
            seed = self.random_state
            if not isinstance(seed, Integral):
                seed = check_random_state(seed).randint(np.iinfo(np.int32).max)
            base.set_params(random_state=seed)
        if not ours:
            return Foreign(base)
        base._validate_params()
        if base.cost is not None:
            raise ValueError(
                f"the base {type(base).__name__} has a cost of its own, which nothing would "
                "follow. Give it to the coupled classifier: PLCPClassifier(base, cost=...)."
            )
        return base

    def _make_partner(self) -> Any:
        """Return a fresh partner: the paper's, or a jury."""
        if self.partner != "complement":
            return self._make_jury()
        kernel = self.kernel
        if kernel is None:  # a third party's `kernel` may be anything
            ours = isinstance(self.estimator, PartialLabelClassifier)
            kernel = getattr(self.estimator, "kernel", None) if ours else None
        return self._partner_type(
            collaboration=self.collaboration,
            regularization=self.regularization,
            link=self.link,
            kernel="rbf" if kernel is None else kernel,
        )

    def _make_jury(self) -> JuryClassifier:
        given = JuryClassifier("kernel") if self.partner == "jury" else self.partner
        for each in fields(PLCPClassifier):
            if each.name in _ALGORITHM_1 and getattr(self, each.name) != each.default:
                raise ValueError(
                    f"{each.name}={getattr(self, each.name)!r} belongs to Algorithm 1, which a "
                    "jury as partner does not run. Remove it, or use partner='complement'."
                )
        if given.cost is not None:
            raise ValueError(
                "the jury has a cost of its own, which nothing would follow. Give it to the "
                "coupled classifier: PLCPClassifier(base, partner=..., cost=...)."
            )
        jury: JuryClassifier = clone(given)
        jury._validate_params()
        if jury.random_state is None:
            jury.set_params(random_state=self.random_state)
        return jury


@dataclass(frozen=True)
class CoupledModel(ProbabilityModel):
    """The models of the last round, which predict by the mean of both, or one by itself."""

    partner: Model
    base: Model

    def choose(self, head: str) -> Model:
        """Return the model that predicts, by its name."""
        return {"partner": self.partner, "base": self.base, "mean": self}[head]

    def decision(self, X: Any) -> NDArray[Any]:
        """Average the probabilities of new rows, (m, l)."""
        return self._mean(self.partner.decision(X), self.base.decision(X))

    @available_if(
        lambda self: all(hasattr(each, "leave_one_out") for each in (self.partner, self.base))
    )  # type: ignore[untyped-decorator]
    def leave_one_out(self) -> NDArray[Any]:
        """Average the probabilities of the training rows by all the other rows, (n, l)."""
        one, other = (each.leave_one_out() for each in (self.partner, self.base))  # type: ignore[attr-defined]
        return self._mean(one, other)

    def _mean(self, one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
        return (self.partner.probabilities(one) + self.base.probabilities(other)) / 2
