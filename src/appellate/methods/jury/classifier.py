"""The jury as users see it: parameters, `fit` and fitted attributes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from importlib.util import find_spec
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from appellate._compat import Interval, StrOptions, fit_context
from appellate._parameters import share_docs
from appellate.candidates.names import number_groups
from appellate.core.base import COUNT, SHARE, AppealClassifier
from appellate.core.explanation import Explanation, read_rows
from appellate.core.problem import Kernel, Problem
from appellate.core.results import Result
from appellate.evidence.ambiguity import AMBIGUITY_WORDS, read_ambiguity
from appellate.evidence.costs import candidate_costs
from appellate.evidence.groups import Groups
from appellate.evidence.likelihood import Evidence
from appellate.evidence.order import label_places
from appellate.methods.jury import exact, nystroem
from appellate.methods.jury.explanation import explain_sets, take_account
from appellate.methods.jury.members import (
    KERNELS,
    JuryModel,
    LateMember,
    Replicas,
    draw_folds,
    fit_forest,
    fit_held_out,
    name_kernel,
    sort_members,
)
from appellate.methods.jury.rounds import (
    Choice,
    FitKernels,
    FitMember,
    FitOnce,
    find_order,
    mix_members,
    run_rounds,
)
from appellate.numerics.entries import Values
from appellate.numerics.kernels import GaussianKernel, kernel_key, read_kernel

__all__ = ["JuryClassifier"]

_LEAST_WEIGHT = 1e-4  # weight below which a member does not predict


@share_docs
@dataclass(eq=False, repr=False)
class JuryClassifier(AppealClassifier):
    """Partial-label learning by a jury, whose members never judge rows they were trained on.

    The posterior of a row's label is a product [1]_: how well the label suits the features,
    judged by members that did not see the row's own label, times how likely the candidate set is
    if the label is true. Kernel machines, forests and networks give calibrated probabilities for
    the first factor. The second factor depends on how the sets arose: *label-first* (a label was
    drawn, and others joined it) or *set-first* (a set was there, and one of its labels is this
    row's, as with faces and the names in a caption [2]_). The jury finds the origin of the sets,
    an order among the labels, the weights and temperatures of its members and the number of
    rounds from the data, without any true label. It maximises what out-of-fold probabilities
    prove about the sets (`appellate.evidence.criterion`).

    1. The kernel members learn from the posterior of the round before (from the sets, at first):
       from all rows, and for each of K folds from all rows of the other folds.
    2. Temperatures and weights make the criterion of the held-out folds largest. Rare labels get
       back half of what shrinkage took from them, unless the sets came first.
    3. ``posterior ~ evidence * mixture / pi^tau`` [3]_ [4]_, each row by members that left it
       out.
    4. The jury chooses tau after three rounds (`appellate.evidence.choose_tau`), and the last
       good round after eight. If an earlier round was better by more than chance, both are
       averaged.
    5. Forests join for up to two rounds. Networks and other classifiers are fitted once, at the
       end.

    If the labels are numbers, or `order` gives their order, the criterion decides before the
    first round whether neighbouring labels share their scores (`appellate.evidence.order`).

    Cost: six inverses of n x n matrices and a few dozen products, O(n^3), for
    ``members="kernel"``; then the forests and networks, O(n log n). Memory: six n x n matrices
    of doubles; beyond 2,000 rows kernel matrices are in single precision.
    Nystroem features (`GaussianKernel`) make both linear in n.

    Parameters
    ----------
    members : {"auto", "kernel"} or list, default="auto"
        Members next to the six kernel members. ``"auto"``: a random forest and, if torch is
        installed, a network. ``"kernel"``: none (the light jury). A list may have

        - a ``RandomForestRegressor`` or ``ExtraTreesRegressor`` with ``bootstrap=True``, which
          takes part in the rounds
        - the word ``"network"``, a small `appellate.deep.PRODENClassifier`
        - a classifier with ``fit(X, candidates, supervision=)``, such as those of this library;
          `SoftLabelClassifier` makes one of any classifier or regressor of scikit-learn

        If the kernels become Nystroem features (beyond 9,000 rows), the jury has kernel
        members only.
    ambiguity : {"auto", "label-first", "set-first"} or float, default="auto"
        How the candidate sets arose: tau from 0 to 1, or found from the data.
    n_folds : int, default=5
        Folds K, at most one per row.
    max_rounds : int, default=8
        Rounds of the kernel members, at most.
    covering : bool or "auto", default=False
        Whether every label of a group's set belongs to some row of the group; `fit` then needs
        `groups`. ``"auto"``: whichever has the larger criterion.
    order : {"auto"}, None or sequence of labels, default="auto"
        The labels in their order, such as ``["small", "medium", "large"]``. ``"auto"``: the
        order of the numbers if all labels are numbers. None: the labels have no order. An order
        is used only if the data show that neighbouring labels look alike.
    <cost>
    n_jobs : int or None, default=None
        Forests, networks or other members that are fitted at the same time, as in joblib. It
        does not change the result.
    random_state : int, RandomState instance or None, default=None
        Draws the folds, and seeds forests and networks.
    kernel : {"rbf"} or GaussianKernel, default="rbf"
        The widths of the kernel members are multiples of its width. It also says how kernels
        are represented if there are many rows.

    Attributes
    ----------
    <classes>
    ambiguity_ : float
        The tau in use: 0 label-first, 1 set-first.
    resemblance_ : float or None
        Whether false candidates look like their row: .5 if not, 1 if always; None if too few
        rows are confident (`appellate.evidence.resemblance`).
    order_width_ : int
        How far the evidence of a label reaches along the order, in labels; 0: no order was found.
    covering_ : bool
        Whether the labels of groups were covered.
    weights_ : list of tuple
        Name, weight and temperature of every member.
    criterion_ : dict
        What each round proved about the sets, a list for every tau that was tried; under
        ``"panel"`` the rounds with further members.
    verdict_ : ndarray, shape (n,)
        Label of every training row after one round, the sets treated as label-first.
    transduction_ : ndarray, shape (n,)
        Label of every training row at the end.
    overturned_ : ndarray of bool, shape (n,)
        Whether the two differ; never for a row with one candidate.
    verdict_confidence_, confidence_ : ndarray, shape (n, l)
        Posterior behind them, rows on the simplex over the candidates.
    honest_output_ : ndarray, shape (n, l)
        Probabilities of the training rows by members that never saw them.
    training_output_ : ndarray, shape (n, l)
        Probabilities of the training rows by members that left the row's own target out.
    suspicion_ : ndarray, shape (n,)
        How likely none of the candidates is true: look first at the rows with large values. It
        is not a calibrated probability.
    label_history_ : ndarray of int, shape (rounds + 1, n)
        Class index of every training row: first label, then round by round.
    n_iter_ : int
        Rounds behind the final labels.

    References
    ----------
    .. [1] Jin, Ghahramani (2002). Learning with multiple labels. NIPS.
    .. [2] Cour, Sapp, Taskar (2011). Learning from partial labels. JMLR 12.
    .. [3] Menon et al. (2021). Long-tail learning via logit adjustment. ICLR. (Divides by label
       frequency if data are long-tailed. The jury divides because of the origin of the sets, and
       finds from the data whether to divide.)
    .. [4] Hong et al. (2023). Long-tailed partial label learning via dynamic rebalancing. ICLR.
       (The same for partial labels and networks.)

    Examples
    --------
    >>> from appellate import JuryClassifier
    >>> from appellate.testing import make_clusters
    >>> X, candidates, truth = make_clusters()
    >>> jury = JuryClassifier("kernel", random_state=0).fit(X, candidates)
    >>> bool((jury.transduction_ == truth).all())
    True
    >>> jury.predict_proba([[10.0, 0.0]]).round(1)
    array([[1., 0., 0.]])
    """

    members: Any = "auto"
    _: KW_ONLY
    ambiguity: Any = "auto"
    n_folds: int = 5
    max_rounds: int = 8
    covering: Any = False
    order: Any = "auto"
    cost: Any = None
    n_jobs: int | None = None
    random_state: Any = None
    kernel: Any = "rbf"

    _parameter_constraints = {
        "members": [StrOptions({"auto", "kernel"}), list, tuple],
        "ambiguity": [StrOptions({"auto", *AMBIGUITY_WORDS}), SHARE],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "max_rounds": [COUNT],
        "covering": ["boolean", StrOptions({"auto"})],
        "order": [StrOptions({"auto"}), None, "array-like"],
        "n_jobs": [None, Integral],
        "kernel": [StrOptions({"rbf"}), GaussianKernel],
    }

    @fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        supervision: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        evidence: ArrayLike | None = None,
    ) -> Self:
        """Fit to training rows and their candidate sets.

        Parameters
        ----------
        X : array-like, shape (n, q)
            Features, dense or sparse; a Dask array or `ParquetRows` if kernels become Nystroem
            features. Kernel members compare sparse rows as they are; forests, networks and other
            members get dense rows.
        y : array-like
            Candidate sets, as everywhere (`PartialLabelClassifier.fit`).
        supervision : array-like, shape (n, l), default=None
            Confidence to start from: rows on the simplex over the candidates.
        groups : array-like, shape (n,), default=None
            Photo, page or recording of every row. Rows of a group are held out together. A row
            without one (None, NaN, a blank) is a group of its own.
        evidence : array-like, shape (n, l), default=None
            Log-likelihoods of further evidence for every label; they are added to those of the
            sets.

        Returns
        -------
        self
        """
        problem, start = self._open(X, y, supervision)
        with problem.blas():
            self._keep(problem, self._solve(problem, start, groups, evidence))
        return self

    def explain(self, rows: Any) -> list[Explanation]:
        """Say why training rows have their labels: the score of each as a sum.

        Parameters
        ----------
        rows : int, array-like of int, or mask
            Training rows, counted from 0.

        Returns
        -------
        list of Explanation
            One per row. The parts are the candidate set, the logarithm of what the members say
            together, what neighbouring labels share if the labels are ordered, further evidence,
            and how frequent the labels are, if the sets came first. The softmax of the sum is
            the row's ``confidence_``. Next to it: what each member says, and the most similar
            rows with their weights in the leave-one-out score of the kernel member that counts
            most. These two are empty if the kernels are Nystroem features.

        Examples
        --------
        >>> from appellate import JuryClassifier
        >>> from appellate.testing import make_clusters
        >>> X, candidates, truth = make_clusters()
        >>> (why,) = JuryClassifier("kernel", random_state=0).fit(X, candidates).explain(0)
        >>> [part.name for part in why.parts][:2]
        ['candidate set', 'members']
        """
        check_is_fitted(self)
        return explain_sets(
            self._account,
            read_rows(rows, len(self.confidence_)),
            candidates=self.candidates_,
            classes=self.classes_,
            output=self.training_output_,
            confidence=self.confidence_,
            labels=self.transduction_,
            tau=self.ambiguity_,
            covering=self.covering_,
        )

    def __sklearn_tags__(self) -> Any:
        """Take sparse features."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _kernels(self) -> list[tuple[Kernel, Any]]:
        """Return kernel and ridge of every kernel member, in the user's representation."""
        settings = read_kernel(self.kernel).get_params()
        found: list[tuple[Kernel, Any]] = []
        for kernel, ridge in KERNELS:
            changed = {"root": kernel.root, "bandwidth": settings["bandwidth"] * kernel.bandwidth}
            found.append((type(kernel)(**settings | changed), ridge))
        return found

    def _n_matrices(self) -> float:
        """Matrices of n x n doubles: every member's inverse and folds, distances, and new ones."""
        return len(KERNELS) * (0.5 + 0.5 / self.n_folds) + 2.5

    def _n_squares(self) -> float:
        """Matrices of m x m doubles: a member and a kind of features have one per replica."""
        kinds = len({kernel_key(kernel) for kernel, _ in self._kernels()})
        return (self.n_folds + 1) * (len(KERNELS) + kinds) + 5

    def _solve(
        self,
        problem: Problem,
        start: Values | None,
        groups: Any = None,
        logs: Any = None,
        base: Callable[[Replicas], LateMember] | None = None,
    ) -> Result:
        """Run the rounds of the kernel members, then mix all; `base` is weighed with them."""
        rng = check_random_state(self.random_state)
        groups = self._read_groups(groups, problem.n_rows)
        places = label_places(problem.classes, self.order)
        evidence = Evidence.of_sets(problem.candidates)
        evidence = evidence if logs is None else evidence.times(logs)
        fold = draw_folds(problem.n_rows, self.n_folds, groups, rng)
        replicas = Replicas.split(evidence, fold)
        named: Any = [
            (name_kernel(*plain), *given)
            for plain, given in zip(KERNELS, self._kernels(), strict=True)
        ]
        many = problem.representation(named[0][1]).kind == "nystroem"
        forests, late = ([], []) if many else self._further(problem, replicas)
        prepare = nystroem.prepare if many else exact.prepare
        fit = prepare(problem, named, replicas)
        targets = [part.prior for part in replicas.parts]
        if start is not None:
            targets = replicas.divide(problem.entries.scatter(start))
        width, smooth = order = find_order(fit, targets, places)
        choice = self._run_rounds(fit, replicas, groups, targets, order)
        held = None if base is None else base(replicas)
        mixed = mix_members(fit, choice, replicas, smooth, rng, forests, late, held)

        entries = problem.entries
        history = [
            entries.gather(evidence.entries.scatter(values)).astype(problem.dtype)
            for values in mixed.history
        ]
        ranks = history
        if problem.cost is not None:
            ranks = [-candidate_costs(values, entries, problem.cost) for values in history]
        output = mixed.output.astype(problem.dtype)
        account = None
        if base is None:
            account = take_account(mixed.rounds, evidence, choice.tau, smooth, mixed.output, logs)
        predicting = [each for each in mixed.members if each.weight >= _LEAST_WEIGHT]
        return Result(
            initial=entries.uniform(problem.dtype),
            confidence=history[-1],
            output=entries.gather(output),
            n_iter=len(history) - 1,
            model=lambda: JuryModel(output, predicting),
            ranking=history[-1],
            details={
                "_account": account,
                "ambiguity_": choice.tau,
                "covering_": choice.covering[0] is not None,
                "criterion_": mixed.criteria,
                "honest_output_": mixed.held_out.astype(problem.dtype),
                "label_history_": np.array([entries.argmax(rank) for rank in ranks]),
                "order_width_": width,
                "resemblance_": choice.resemblance,
                "suspicion_": mixed.suspicion,
                "verdict_confidence_": entries.scatter(history[0]),
                "weights_": [(m.name, m.weight, m.scale.temperature) for m in mixed.members],
            },
        )

    def _read_groups(self, groups: Any, n: int) -> Any:
        """Number the groups of n rows, if there are any."""
        if groups is None:
            if self.covering is not False:
                raise ValueError(
                    f"covering={self.covering!r} needs groups: fit(X, y, groups=...)."
                )
            return None
        if len(groups) != n:
            raise ValueError(
                f"groups has {len(groups)} values; it needs one for each of {n} rows."
            )
        return np.asarray(number_groups(groups))

    def _run_rounds(
        self,
        fit: FitKernels,
        replicas: Replicas,
        groups: Any,
        targets: list[Values],
        order: tuple[int, Any],
    ) -> Choice:
        """Run the rounds, with ``covering="auto"`` twice; return the better."""
        coverings: list[list[Groups | None]] = []
        if self.covering in (False, "auto"):
            coverings.append([None] * len(replicas.rows))
        if self.covering:
            coverings.append(replicas.cover(groups))
        tried: list[Choice] = []
        for covering in coverings:
            report = None
            if self._on_round is not None:
                report = partial(self._report, len(tried), len(coverings))
            taus = read_ambiguity(self.ambiguity)
            tried.append(
                run_rounds(fit, replicas, covering, targets, taus, self.max_rounds, order, report)
            )
        return max(tried, key=lambda choice: choice.rounds[-1].criterion)

    def _report(self, tried: int, n_tries: int, number: int, total: int) -> None:
        """Tell how many rounds are done, of how many at most, over all coverings."""
        if self._on_round is not None:
            self._on_round(tried * total + number, n_tries * total)

    def _further(
        self, problem: Problem, replicas: Replicas
    ) -> tuple[list[tuple[str, FitMember]], list[FitOnce]]:
        """Return what fits the forests, and the members that are fitted once."""
        few = min(len(rows) for rows in replicas.rows) < 2 or replicas.shape[2] < 2
        if few or self.members == "kernel":
            return [], []
        members = self.members
        if isinstance(members, str):
            from sklearn.ensemble import RandomForestRegressor  # not for the light jury

            forest = RandomForestRegressor(40, min_samples_leaf=2, max_features="sqrt")
            members = [forest, "network"] if find_spec("torch") else [forest]
        named_forests, named_fits = sort_members(members)
        common: Any = {"X": problem.dense(), "replicas": replicas, "n_jobs": self.n_jobs}
        forests: list[tuple[str, FitMember]] = []
        for name, forest in named_forests:
            forests.append((name, partial(fit_forest, forest, **common)))
        late: list[FitOnce] = []
        for name, fit in named_fits:
            late.append(partial(fit_held_out, name, fit, **common))
        return forests, late
