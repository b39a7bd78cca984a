"""PLCP: a base classifier and its partner supervise each other (Algorithm 1 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from appellate._compat import Interval, StrOptions
from appellate.appeal import AppealClassifier
from appellate.base import (
    Disambiguation,
    PartialLabelClassifier,
    check_base,
    conclude,
    decide,
    disambiguate,
)
from appellate.bases.ridge import (
    APPROXIMATION,
    APPROXIMATION_CONSTRAINTS,
    KernelClassifier,
    plan_geometry,
)
from appellate.candidates import CandidateSets
from appellate.confidence import blur_entries, smooth_entries
from appellate.numerics.entries import CandidateEntries, Values
from appellate.numerics.geometry import Geometry
from appellate.partner import PartnerClassifier


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
        The paper's P and 1 - P-hat after the round, if ``keep_confidences=True``.
    """

    number: int
    changed: float
    base_steps: int
    partner_steps: int
    base_confidence: NDArray[Any] | None = None
    partner_confidence: NDArray[Any] | None = None


class PLCPClassifier(AppealClassifier):
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
    further ridge or kernel of the base. Nystroem features (`kernel_approximation`) make both
    linear in n.

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
    tol : float or None, default=None
        Stop after two rounds in a row in each of which fewer than this share of the
        training samples changed their label. None: all rounds are run, as in the authors'
        code. (The paper's rule needs the truth.)
    link : {"collaborative", "aggressive"}, default="collaborative"
        How the partner is tied to the base.
    kernel : {"rbf", "linear"}, default="rbf"
        Kernel of the partner.
    bandwidth : float, default=1.0
        Width of the partner's kernel in mean distances.
    target : {"non-candidate", "candidate"}, default="non-candidate"
        What the partner regresses on; both are one problem, see `PartnerClassifier`.
    head : {"partner", "base", "mean"}, default="partner"
        Who predicts new rows: the partner of the last round (the paper), the base of the
        last round, or the mean of both scores, each standardised by row. It is read at
        prediction, so one fit serves all three through ``set_params(head=...)``.
    partner_tol, partner_max_iter : float, int, default=1e-6, 10_000
        How far each partner is solved. Stopping early changes the answer; for studies only.
    keep_confidences : bool, default=False
        Keep every round's (n, l) confidences in `history_`.
    random_state : int, RandomState instance or None, default=None
        Seed of the base, where that is random and has none of its own: an integer as it is,
        so that the verdict is what the base alone finds with it.
    kernel_approximation : {"auto", "exact", "nystroem"}, default="auto"
        The Gaussian kernel matrix itself, or Nystroem features by way of landmarks, whose cost
        grows linearly with the rows. Auto decides from the number of rows and the free memory;
        the logger ``"appellate"`` says what was chosen and what it costs.
        Holds for base and partner, which share it; of this and the next three, what is left at
        its default is as the base has it.
    n_landmarks : int or None, default=None
        Landmarks of the Nystroem features; None: 1024 or more, by the number of rows, or as
        many as fit into memory.
    landmarks : {"uniform", "k-means++"}, default="uniform"
        How the landmarks are chosen among the rows.
    cache_dir : str, path or None, default=None
        Folder for the Nystroem features, n x n_landmarks numbers in float32; memory if None.
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
    classes_ : ndarray, shape (l,)
        Class names.
    cost_ : ndarray, shape (l, l), or None
        Cost of every predicted label (column) where another (row) is true.
    candidates_ : ndarray of bool, shape (n, l)
        Candidate sets of the training rows.
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
    label_history_ : ndarray of int, shape (rounds + 1, n)
        Class index of every training row: verdict first, then each round's appeal.
    history_ : list of Round
        One entry a round.
    n_iter_ : int
        Rounds run.
    termination_condition_ : {"max_rounds", "tol"}
        What ended them.
    n_ties_ : int
        Training rows whose label was not the only best candidate.

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

    _parameter_constraints = {
        **PartialLabelClassifier._parameter_constraints,
        "estimator": [object],
        "smoothing": [Interval(Real, 0, 1, closed="left")],
        "collaboration": [Interval(Real, 0, None, closed="left")],
        "regularization": [Interval(Real, 0, None, closed="neither")],
        "blur": [Interval(Real, None, None, closed="neither"), None],
        "max_rounds": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, 1, closed="both"), None],
        "link": [StrOptions({"collaborative", "aggressive"})],
        "kernel": [StrOptions({"rbf", "linear"})],
        "bandwidth": [Interval(Real, 0, None, closed="neither")],
        "target": [StrOptions({"non-candidate", "candidate"})],
        "head": [StrOptions({"partner", "base", "mean"})],
        "partner_tol": [Interval(Real, 0, None, closed="left")],
        "partner_max_iter": [Interval(Integral, 1, None, closed="left")],
        "keep_confidences": ["boolean"],
        "random_state": ["random_state"],
        **APPROXIMATION_CONSTRAINTS,
    }

    _more_matrices = 0  # n x n matrices beside those of base and partner

    def __init__(
        self,
        estimator: Any,
        *,
        smoothing: float = 0.5,
        collaboration: float = 2.0,
        regularization: float = 0.05,
        blur: float | None = -1.0,
        max_rounds: int = 5,
        tol: float | None = None,
        link: str = "collaborative",
        kernel: str = "rbf",
        bandwidth: float = 1.0,
        target: str = "non-candidate",
        head: str = "partner",
        partner_tol: float = 1e-6,
        partner_max_iter: int = 10_000,
        keep_confidences: bool = False,
        random_state: Any = None,
        kernel_approximation: str = "auto",
        n_landmarks: int | None = None,
        landmarks: str = "uniform",
        cache_dir: Any = None,
        cost: Any = None,
    ) -> None:
        self.estimator = estimator
        self.smoothing = smoothing
        self.collaboration = collaboration
        self.regularization = regularization
        self.blur = blur
        self.max_rounds = max_rounds
        self.tol = tol
        self.link = link
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.target = target
        self.head = head
        self.partner_tol = partner_tol
        self.partner_max_iter = partner_max_iter
        self.keep_confidences = keep_confidences
        self.random_state = random_state
        self.kernel_approximation = kernel_approximation
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.cache_dir = cache_dir
        self.cost = cost

    def _geometry(self, X: Any, n_labels: int) -> Geometry:
        settings = {name: getattr(self, name) for name in APPROXIMATION}
        base = self.estimator if isinstance(self.estimator, PartialLabelClassifier) else None
        if base is not None:
            base._validate_params()
        for name, default in APPROXIMATION.items():
            if settings[name] == default:
                settings[name] = getattr(base, name, default)
        widths, ridges = self._count_smoothers()
        return plan_geometry(
            X,
            n_labels,
            {self.kernel, getattr(base, "kernel", self.kernel)},
            n_matrices=getattr(base, "_n_matrices", 3) + self._more_matrices,
            n_outputs=6 + 2 * self.max_rounds * self.keep_confidences,
            n_widths=widths,
            n_ridges=ridges,
            at_hand=getattr(base, "_at_hand", False),
            **settings,
        )

    def _count_smoothers(self) -> tuple[int, int]:
        """Widths of Gaussian kernels, and ridges of linear ones, in base and partner."""
        widths, ridges, more = set(), set(), 0
        for each in (self.estimator, self._make_partner()):
            if isinstance(each, PartialLabelClassifier) and getattr(each, "kernel", "") == "rbf":
                widths.add(getattr(each, "bandwidth", None))  # a CV has many, one at a time
            elif isinstance(each, KernelClassifier):
                ridges.add(each.regularization)
                more += each._n_ridges - 1
        return max(1, len(widths)), len(ridges) + more

    def _disambiguate(
        self, geometry: Geometry, entries: CandidateEntries, supervision: Values | None
    ) -> Disambiguation:
        """Algorithm 1, on candidate entries."""
        base, partner = self._make_base(), self._make_partner()
        history: list[Round] = []
        doubt = np.zeros(len(entries), dtype=geometry.X.dtype)  # P^ at the candidates
        for number in range(1, self.max_rounds + 1):
            heard = disambiguate(base, geometry, entries, supervision)  # M
            if number == 1:
                confidence, verdict = heard.initial, heard
                labels = [entries.argmax(self._rank(entries, verdict))]
            confidence = smooth_entries(confidence, heard.output, self.smoothing)  # P
            from_base = blur_entries(confidence, entries, self.blur)  # O
            replied = disambiguate(partner, geometry, entries, from_base)  # 1 - M^
            doubt = smooth_entries(doubt, 1 - replied.output, self.smoothing)  # P^
            supervision = blur_entries(1 - doubt, entries, self.blur)  # O^

            labels.append(entries.argmax(self._rank(entries, replied)))
            kept = [entries.scatter(v) for v in (confidence, 1 - doubt) if self.keep_confidences]
            history.append(self._record(labels, heard, replied, kept))
            if self._settled(history):
                break
        self.termination_condition_ = "tol" if self._settled(history) else "max_rounds"
        self.history_, self.label_history_ = history, np.array(labels)
        self.initial_confidence_ = entries.scatter(verdict.initial)
        self.verdict_confidence_ = entries.scatter(verdict.distribution(entries))
        return Disambiguation(
            initial=entries.uniform(geometry.X.dtype),
            confidence=replied.distribution(entries),
            output=replied.output,
            n_iter=len(history),
            state=(base, heard, partner, replied),
        )

    def _conclude(
        self, geometry: Geometry, entries: CandidateEntries, result: Disambiguation
    ) -> NDArray[Any]:
        base, heard, partner, replied = result.state
        conclude(base, self, geometry, entries, heard)
        conclude(partner, self, geometry, entries, replied)
        self.estimator_, self.partner_ = base, partner
        self.verdict_ = self.classes_[self.label_history_[0]]
        self.overturned_ = self.label_history_[0] != self.label_history_[-1]
        return np.asarray(partner.training_output_)

    def _decision(self, X: NDArray[Any]) -> NDArray[Any]:
        return _combine([decide(each, X) for each in self._heads()])

    def leave_one_out_decision(self) -> NDArray[Any]:
        """Score every training row by the regression on all the other rows, (n, l).

        By the classifier that predicts (`head`), in closed form; the others' confidences were
        found with the row's candidates among the data, see
        `KernelClassifier.leave_one_out_decision`.
        """
        check_is_fitted(self)
        for each in self._heads():
            if not hasattr(each, "leave_one_out_decision"):
                raise TypeError(
                    f"{type(each).__name__} has no closed-form leave-one-out, only kernel ridge "
                    f"classifiers have; with head={self.head!r} it predicts. Use head='partner' "
                    "or score held-out rows."
                )
        return _combine([each.leave_one_out_decision() for each in self._heads()])

    def _heads(self) -> list[Any]:
        """The fitted classifiers that predict."""
        heads = {"partner": [self.partner_], "base": [self.estimator_]}
        return heads.get(self.head, [self.partner_, self.estimator_])

    def _probabilities(self, scores: NDArray[Any]) -> NDArray[Any]:
        if self.head == "mean":
            return np.asarray(softmax(scores, axis=1))
        heard = self.partner_ if self.head == "partner" else self.estimator_
        return (
            heard._probabilities(scores) if isinstance(heard, PartialLabelClassifier) else scores
        )

    # -- parts of a round ---------------------------------------------------------------

    def _open(self, X: Any, y: Any) -> tuple[NDArray[Any], CandidateSets]:
        check_base(self.estimator)
        ours = isinstance(self.estimator, PartialLabelClassifier)
        if self.head != "partner" and not ours and not hasattr(self.estimator, "predict_proba"):
            raise TypeError(
                f"{self.estimator!r} has no predict_proba, but head={self.head!r} lets it "
                "predict. Add one, or take head='partner'."
            )
        return super()._open(X, y)

    def _rounds(self) -> list[NDArray[Any]] | None:
        kept = (each.partner_confidence for each in self.history_)
        return [confidence for confidence in kept if confidence is not None] or None

    def _make_base(self) -> Any:
        base = clone(self.estimator, safe=False)
        params = base.get_params(deep=False) if hasattr(base, "get_params") else {}
        if self.random_state is not None and params.get("random_state", 0) is None:
            seed = self.random_state
            if not isinstance(seed, Integral):
                seed = check_random_state(seed).randint(np.iinfo(np.int32).max)
            base.set_params(random_state=seed)
        if isinstance(base, PartialLabelClassifier):
            base._validate_params()
            if base.cost is not None:
                raise ValueError(
                    f"the base {type(base).__name__} has a cost of its own, which nothing would "
                    "follow. Give it to the coupled classifier: PLCPClassifier(base, cost=...)."
                )
        return base

    def _make_partner(self) -> PartnerClassifier:
        return PartnerClassifier(
            collaboration=self.collaboration,
            regularization=self.regularization,
            link=self.link,
            target=self.target,
            kernel=self.kernel,
            bandwidth=self.bandwidth,
            tol=self.partner_tol,
            max_iter=self.partner_max_iter,
        )

    def _record(
        self,
        labels: list[NDArray[np.intp]],
        heard: Disambiguation,
        replied: Disambiguation,
        confidences: list[NDArray[Any]],
    ) -> Round:
        changed = float(np.mean(labels[-1] != labels[-2]))
        return Round(len(labels) - 1, changed, heard.n_iter, replied.n_iter, *confidences)

    def _settled(self, history: list[Round]) -> bool:
        """Whether two rounds in a row changed fewer labels than `tol`."""
        return (
            self.tol is not None
            and len(history) > 1
            and max(history[-1].changed, history[-2].changed) < self.tol
        )


def _combine(scores: list[NDArray[Any]]) -> NDArray[Any]:
    """One classifier's scores as they are, those of several standardised by row and averaged."""
    if len(scores) == 1:
        return scores[0]
    return np.asarray(np.mean([_standardize(each) for each in scores], axis=0))


def _standardize(scores: NDArray[Any]) -> NDArray[Any]:
    """Shift and scale every row to mean 0 and deviation 1 (0 for a constant row)."""
    centred = scores - scores.mean(axis=1, keepdims=True)
    deviation = centred.std(axis=1, keepdims=True)
    return np.asarray(centred / np.where(deviation > 0, deviation, 1))
