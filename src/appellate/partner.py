"""The partner: a classifier of what each sample is not."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from appellate._compat import Interval, StrOptions
from appellate.base import Disambiguation
from appellate.bases.ridge import KernelClassifier
from appellate.numerics.entries import CandidateEntries, Values
from appellate.numerics.geometry import Geometry
from appellate.numerics.quadratic import minimize_quadratic


class PartnerClassifier(KernelClassifier):
    """The partner classifier of PLCP, trained on non-candidate labels.

    Solves, given the supervision O of a base classifier (Eqs. 5 and 6 of the paper),

        min over W, b, C of |Phi W + 1 b' - C|^2 + regularization |W|^2 + collaboration tr(O C')
        subject to 1 - Y <= C <= 1 and rows of C summing to l - 1,

    where ``C_ij`` is the confidence that j is *not* the label of sample i. The model is
    eliminated in closed form, and with ``D = 1 - C`` on the candidate simplex there remains
    the convex problem ``min tr(D'(I - S)D) - collaboration tr(O'D)``, solved to a tolerance
    by accelerated projected gradient. One plain step, ``D <- project(S D + collaboration/2
    O)``, is one alternation of the paper.

    Cost: one kernel, factorisation and inverse, O(n^3); then nnz-sized steps. Memory: at
    most two n x n matrices. Nystroem features
    (`kernel_approximation`) make both linear in n.

    Parameters
    ----------
    collaboration : float, default=2.0
        Weight of the link to the base (the paper's gamma).
    regularization : float, default=0.05
        Weight of the squared norm of the coefficients (the paper's lambda).
    link : {"collaborative", "aggressive"}, default="collaborative"
        ``tr(O C')``, or ``|O + C - 1|^2`` for the comparison in the paper.
    target : {"non-candidate", "candidate"}, default="non-candidate"
        Regress on C, or on L = 1 - C (the ablation's partner "O"). **Both are the same
        problem**: W -> -W, b -> 1 - b maps every term and constraint of one onto the other,
        so the predictions agree to rounding. The option is there to show it.
    kernel : {"rbf", "linear"}, default="rbf"
        Gaussian or linear.
    bandwidth : float, default=1.0
        Width of the Gaussian kernel as a multiple of the mean distance of all pairs of
        training rows.
    tol : float, default=1e-6
        Stop when a projected gradient step changes no confidence by more.
    max_iter : int, default=10_000
        Largest number of steps. Stopping early changes the answer; for studies only.
    kernel_approximation : {"auto", "exact", "nystroem"}, default="auto"
        The Gaussian kernel matrix itself, or Nystroem features by way of landmarks, whose cost
        grows linearly with the rows. Auto decides from the number of rows and the free memory;
        the logger ``"appellate"`` says what was chosen and what it costs.
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
        training row among its candidates. None: the most likely one.

    Attributes
    ----------
    classes_ : ndarray, shape (l,)
        Class names.
    cost_ : ndarray, shape (l, l), or None
        Cost of every predicted label (column) where another (row) is true.
    candidates_ : ndarray of bool, shape (n, l)
        Candidate sets of the training rows.
    confidence_ : ndarray, shape (n, l)
        ``D = 1 - C`` at the optimum, rows on the simplex over the candidates.
    training_output_ : ndarray, shape (n, l)
        Scores of the training rows, larger is likelier as everywhere: ``1 - M^`` for the
        paper's output M^ that says what a sample is not.
    transduction_ : ndarray, shape (n,)
        Label of every training row: the candidate that is least "not".
    n_ties_ : int
        Training rows whose label was not the only best candidate.
    n_iter_ : int
        Steps taken.
    objective_ : ndarray
        Objective of the problem in D after every step; it decreases.

    References
    ----------
    .. [1] Si, Wang, Wang, Yang, Shen. Appeal: Allow mislabeled samples the chance to be
       rectified in partial label learning.

    Examples
    --------
    >>> from appellate import PartnerClassifier
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> PartnerClassifier().fit(X, y).predict([[0.05], [4.9]])
    array(['cat', 'dog'], dtype='<U3')
    """

    _parameter_constraints = {
        **KernelClassifier._parameter_constraints,
        "collaboration": [Interval(Real, 0, None, closed="left")],
        "link": [StrOptions({"collaborative", "aggressive"})],
        "target": [StrOptions({"non-candidate", "candidate"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        collaboration: float = 2.0,
        regularization: float = 0.05,
        link: str = "collaborative",
        target: str = "non-candidate",
        kernel: str = "rbf",
        bandwidth: float = 1.0,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        kernel_approximation: str = "auto",
        n_landmarks: int | None = None,
        landmarks: str = "uniform",
        cache_dir: Any = None,
        cost: Any = None,
    ) -> None:
        self.collaboration = collaboration
        self.regularization = regularization
        self.link = link
        self.target = target
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.tol = tol
        self.max_iter = max_iter
        self.kernel_approximation = kernel_approximation
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.cache_dir = cache_dir
        self.cost = cost

    def _disambiguate(
        self, geometry: Geometry, entries: CandidateEntries, supervision: Values | None
    ) -> Disambiguation:
        smooth = self._smoother(geometry).on_candidates(entries)
        initial = entries.uniform(geometry.X.dtype) if supervision is None else supervision
        pull = 0.0 if self.link == "collaborative" else self.collaboration
        weight = self.collaboration / (2.0 if self.link == "collaborative" else 1.0)
        solution = minimize_quadratic(
            lambda d: (1 + pull) * d - smooth(d),
            weight * initial,
            1 + pull,
            entries,
            start=initial,
            tol=self.tol,
            max_iter=self.max_iter,
        )
        if not solution.converged:
            warnings.warn(
                f"The partner stopped after {self.max_iter} steps with a residual of "
                f"{solution.residual:.1e} (tol={self.tol:g}); raise max_iter.",
                ConvergenceWarning,
                stacklevel=2,
            )
        output = (1 + pull) * solution.values - solution.product
        return Disambiguation(
            initial, solution.values, output, solution.n_iter, tuple(solution.objective)
        )

    def _conclude(
        self, geometry: Geometry, entries: CandidateEntries, result: Disambiguation
    ) -> NDArray[Any]:
        self.objective_ = np.array(result.objective)
        if self.target == "candidate":
            return super()._conclude(geometry, entries, result)
        smoother = self._smoother(geometry)
        # Regress on C = 1 - D; the output is M^.
        output, self._regressor = smoother.regress(entries, result.confidence, complement=True)
        self._leverage = smoother.diagonal.copy()
        return 1 - output

    def _decision(self, X: NDArray[Any]) -> NDArray[Any]:
        output = super()._decision(X)
        return output if self.target == "candidate" else 1 - output
