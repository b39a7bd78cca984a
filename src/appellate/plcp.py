"""PLCP: a base classifier and its partner supervise each other (Algorithm 1 of the paper)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if

from appellate._compat import Interval, StrOptions
from appellate._docs import share_docs
from appellate.base import (
    COUNT,
    SHARE,
    AppealClassifier,
    Foreign,
    Model,
    PartialLabelClassifier,
    ProbabilityModel,
    Result,
    RoutingClassifier,
    check_base,
)
from appellate.confidence import blur_entries
from appellate.evidence import Evidence, estep, fit_temperature, label_shares, soften
from appellate.jury import AMBIGUITIES, JuryClassifier
from appellate.numerics.entries import Values
from appellate.numerics.kernels import KERNEL_CONSTRAINT
from appellate.partner import PartnerClassifier
from appellate.problem import Kernel, Problem


@dataclass(frozen=True)
class Round:
    """What happened in one round of mutual supervision.

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
        The paper's P and 1 - P-hat after the round, if ``keep_confidences=True``; with another
        `ambiguity` than label-first the posteriors by either.
    """

    number: int
    changed: float
    base_steps: int
    partner_steps: int
    base_confidence: NDArray[Any] | None = None
    partner_confidence: NDArray[Any] | None = None


class Exchange(NamedTuple):
    """What base and partner say to each other in a round."""

    heard: Result  # from the base
    replied: Result  # by the partner
    told: Result  # the reply as it is taken
    confidences: tuple[Values, Values]
    temperatures: tuple[float, float] | None = None  # of partner and base


@share_docs
@dataclass(eq=False, repr=False)
class PLCPClassifier(RoutingClassifier, AppealClassifier):
    """Partial-label learning with a classifier as partner (PLCP).

    Any base classifier is coupled with a partner that learns which labels a sample does
    *not* have. In each round both hand the other a blurred confidence as supervision, so
    that a sample that the base mislabeled has the chance to be rectified [1]_:

    1. train the base, supervised by the partner; it returns its training output M
    2. ``P <- clip(smoothing P + (1 - smoothing) M, 0, Y)``
    3. ``O <- rownorm(exp(e^blur P) * Y)``
    4. train the partner, supervised by O; it returns its training output M^
    5. ``P^ <- clip(smoothing P^ + (1 - smoothing) M^, 1 - Y, 1)``
    6. ``O^ <- rownorm(exp(e^blur (1 - P^)) * Y)``, the supervision of the next round

    Cost: that of one kernel matrix, factorisation and inverse, O(n^3), shared by base and
    partner where their kernels agree; the rounds touch candidate entries only. Memory: at
    most three n x n matrices, and n^2 c^2 / l numbers, with c candidates a row, for each
    further ridge or kernel of the base. Nystroem features (`GaussianKernel`) make both linear
    in n.

    Parameters
    ----------
    estimator : object
        The base classifier: one of this library, or any object with
        ``fit(X, candidates, supervision=None)`` and ``training_output_``, and with
        ``predict_proba`` if it is to predict (`appellate.base.BaseClassifier`).
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
    ambiguity : {"label-first", "set-first", "auto"} or float, default="label-first"
        How the candidate sets arose. Label-first is Algorithm 1 as printed: a label was drawn and
        others joined it. Set-first: the set was there and one of it is the row's, as with faces
        and the names in a caption, so that a frequent label is in more sets already; a number
        from 0 to 1 is in between (tau). Base and partner then hand each other honest posteriors,
        ``rownorm(Y * P / pi^tau)`` with P the mean of their leave-one-out probabilities and pi
        the label shares, without smoothing and blur. ``"auto"`` lets the kernel members of
        `JuryClassifier` find out, without the truth, and is Algorithm 1 where no evidence of
        another way is found.
    tol : float or None, default=None
        Stop after two rounds in a row in each of which fewer than this share of the
        training samples changed their label. None: all rounds are run, as in the authors'
        code. (The paper's rule needs the truth.)
    link : {"collaborative", "aggressive"}, default="collaborative"
        How the partner is tied to the base.
    kernel : {"rbf", "linear"}, GaussianKernel, LinearKernel or None, default=None
        Kernel of the partner; None: that of the base, Gaussian if it has none.
    head : {"partner", "base", "mean"}, default="partner"
        Who predicts new rows: the partner of the last round (the paper), the base of the
        last round, or the mean of both probabilities. It is read at prediction, so one fit
        serves all three through ``set_params(head=...)``.
    keep_confidences : bool, default=False
        Keep every round's (n, l) confidences in `history_`.
    random_state : int, RandomState instance or None, default=None
        Seed of the base, where that is random and has none of its own: an integer as it is,
        so that the verdict is what the base alone finds with it.
    cost : None, str, dict or (l, l) matrix, default=None
        What a wrong label costs (`appellate.costs.cost_matrix`), such as ``"absolute"`` or
        ``"within:3"``: the label of the smallest expected cost is predicted, and given to a
        training row among its candidates as verdict and as appeal. None: the most likely one.
        It governs base and partner; the base has none of its own.

    Attributes
    ----------
    estimator_ : object
        The base of the last round, fitted.
    partner_ : PartnerClassifier
        The partner of the last round, fitted.
    <classes>
    verdict_ : ndarray, shape (n,)
        Label that the base alone gives every training row.
    transduction_ : ndarray, shape (n,)
        Label of every training row after appeal.
    overturned_ : ndarray of bool, shape (n,)
        Where the two differ; never for a row with one candidate.
    initial_confidence_ : ndarray, shape (n, l)
        Confidence from which the base started.
    verdict_confidence_, confidence_ : ndarray, shape (n, l)
        Confidence behind verdict and appeal: training outputs projected onto the simplex
        over the candidates (for a base that votes, shares of the votes).
    training_output_ : ndarray, shape (n, l)
        Scores of the training rows by the last partner, ``1 - M^``.
    ambiguity_ : float or None
        The tau that was followed; None: Algorithm 1 as printed.
    label_history_ : ndarray of int, shape (rounds + 1, n)
        Class index of every training row: verdict first, then each round's appeal.
    history_ : list of Round
        One entry a round.
    n_iter_ : int
        Rounds run.
    termination_condition_ : {"max_rounds", "tol"}
        What ended them.

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
    array(['upheld', 'upheld'], dtype=object)
    """

    estimator: Any
    _: KW_ONLY
    smoothing: float = 0.5
    collaboration: float = 2.0
    regularization: float = 0.05
    blur: float | None = -1.0
    max_rounds: int = 5
    ambiguity: str | float = "label-first"
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
        "ambiguity": [StrOptions({"auto", *AMBIGUITIES}), SHARE],
        "kernel": [*KERNEL_CONSTRAINT, None],
        "head": [StrOptions({"partner", "base", "mean"})],
        "keep_confidences": ["boolean"],
    }

    _partner_type = PartnerClassifier  # the ablation has another

    def _solve(self, problem: Problem, start: Values | None) -> Result:
        """Run the rounds and keep their records."""
        base, partner, entries = self._make_base(), self._make_partner(), problem.entries
        if problem.sample_weight is not None:
            weights = problem.sample_weight[entries.rows]
            mass = np.bincount(entries.labels, weights, len(problem.classes))
            if (mass == 0).any():
                raise ValueError(
                    f"sample_weight is 0 in all rows that have the class "
                    f"'{problem.classes[mass.argmin()]}', but the partner takes all rows alike. "
                    "Leave these rows out, or give them weight."
                )
        tau = None if self.ambiguity == "label-first" else self._find_tau(problem)
        parts = problem, base, partner, start
        rounds = self._algorithm_1(*parts) if tau is None else self._by_evidence(*parts, tau)
        history: list[Round] = []
        for number, last in enumerate(rounds, 1):
            if number == 1:
                verdict = last.heard
                labels = [entries.argmax(verdict.rank(problem))]
            labels.append(entries.argmax(last.told.rank(problem)))
            changed = float(np.mean(labels[-1] != labels[-2]))
            steps = last.heard.n_iter, last.replied.n_iter
            kept = map(entries.scatter, last.confidences) if self.keep_confidences else ()
            history.append(Round(number, changed, *steps, *kept))
            if self._on_round is not None:
                self._on_round(number)
            moved = max(each.changed for each in history[-2:]) if number > 1 else 1.0
            settled = self.tol is not None and moved < self.tol
            if settled:
                break

        def conclude() -> CoupledModel:
            """Make base and partner as good as fitted on the problem, and their models one."""
            partner._keep(problem, last.replied)
            base._keep(problem, last.heard)
            heads: list[Model] = [partner._model, base._head()]
            if last.temperatures is not None:
                pairs = zip(heads, last.temperatures, strict=True)
                heads = [Tempered(each.training_output, each, t) for each, t in pairs]
            return CoupledModel(partner.training_output_, *heads)

        return Result(
            initial=problem.uniform(),
            confidence=last.told.distribution(entries),
            output=last.told.output,
            n_iter=len(history),
            model=conclude,
            ranking=last.told.ranking,
            details={
                "ambiguity_": tau,
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
        entries, kept, supervision = problem.entries, self.smoothing, start
        confidence: Any = None  # P
        doubt = np.zeros(len(entries.labels), dtype=problem.dtype)  # P^, at the candidates
        for _ in range(self.max_rounds):
            heard = base._solve(problem, supervision)  # 1: M
            confidence = heard.initial if confidence is None else confidence
            confidence = np.clip(kept * confidence + (1 - kept) * heard.output, 0, 1)  # 2: P
            to_partner = blur_entries(confidence, entries, self.blur)  # 3: O
            replied = partner._solve(problem, to_partner)  # 4: 1 - M^
            doubt = np.clip(kept * doubt + (1 - kept) * (1 - replied.output), 0, 1)  # 5: P^
            supervision = blur_entries(1 - doubt, entries, self.blur)  # 6: O^
            yield Exchange(heard, replied, replied, (confidence, 1 - doubt))

    def _by_evidence(
        self,
        problem: Problem,
        base: Any,
        partner: PartnerClassifier,
        start: Values | None,
        tau: float,
    ) -> Iterator[Exchange]:
        """The same rounds, in which both hand each other honest posteriors."""
        evidence, dtype, supervision = Evidence.of_sets(problem.candidates), problem.dtype, start
        reply: Any = None  # honest probabilities by the partner
        for _ in range(self.max_rounds):
            heard = base._solve(problem, supervision)
            said, warm = _temper(heard.model(), evidence, tau)
            mixed = said if reply is None else (said + reply) / 2
            to_partner = _divide(mixed, evidence, tau, dtype)
            replied = partner._solve(problem, to_partner)
            reply, cold = _temper(replied.model(), evidence, tau)
            supervision = _divide((said + reply) / 2, evidence, tau, dtype)
            posterior = estep(reply, evidence, tau).astype(dtype)
            told = replace(replied, confidence=posterior, ranking=posterior)
            both = estep(said, evidence, tau), posterior
            yield Exchange(heard, replied, told, both, (cold, warm))

    def _find_tau(self, problem: Problem) -> float | None:
        """How the sets arose; None where the data show no other way than Algorithm 1's."""
        if self.ambiguity != "auto":
            return float(AMBIGUITIES.get(self.ambiguity, self.ambiguity))  # type: ignore[arg-type]
        found = JuryClassifier("kernel", random_state=self.random_state)._solve(problem, None)
        best = max(max(rounds) for rounds in found.details["criterion_"].values())
        return None if found.n_iter == 1 or best <= 0 else found.details["ambiguity_"]

    def _head(self) -> Model:
        return cast(CoupledModel, self._model).choose(self.head)

    def _kernels(self) -> list[tuple[Kernel, Any]]:
        base = self.estimator if isinstance(self.estimator, PartialLabelClassifier) else None
        return [*([] if base is None else base._kernels()), *self._make_partner()._kernels()]

    def __sklearn_tags__(self) -> Any:
        """Take sparse features where base and partner do."""
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
        if self.head != "partner" and not ours and not hasattr(self.estimator, "predict_proba"):
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

    def _make_partner(self) -> PartnerClassifier:
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


def _temper(model: Model, evidence: Evidence, tau: float) -> tuple[NDArray[Any], float]:
    """Honest probabilities of the training rows, and the temperature that makes them."""
    scores = model.honest_scores()
    temperature = fit_temperature(scores, evidence, tau)
    return soften(scores, temperature), temperature


def _divide(P: NDArray[Any], evidence: Evidence, tau: float, dtype: Any) -> Values:
    """``rownorm(Y * P * pi^-tau)`` with pi the column means of P, as candidate entries."""
    shares = label_shares(P)
    return evidence.normalize(evidence.entries.gather(P * shares**-tau)).astype(dtype)


@dataclass(frozen=True)
class Tempered(Model):
    """A model whose probabilities are the softmax of its scores by a temperature."""

    model: Model
    temperature: float

    def decision(self, X: Any) -> NDArray[Any]:
        """Score new rows, (m, l)."""
        return self.model.decision(X)

    def probabilities(self, scores: NDArray[Any]) -> NDArray[Any]:
        """``softmax(scores / temperature)``."""
        return soften(scores, self.temperature).astype(scores.dtype)

    @available_if(lambda self: hasattr(self.model, "leave_one_out"))  # type: ignore[untyped-decorator]
    def leave_one_out(self) -> NDArray[Any]:
        """Score every training row by all the other rows, (n, l)."""
        scores: NDArray[Any] = self.model.leave_one_out()  # type: ignore[attr-defined]
        return scores


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
