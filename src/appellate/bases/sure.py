"""SURE: self-training that pulls each sample towards its currently best candidate."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from appellate._compat import Interval
from appellate.base import Disambiguation
from appellate.bases.ridge import KernelClassifier
from appellate.numerics.entries import CandidateEntries, Values
from appellate.numerics.geometry import Geometry
from appellate.numerics.simplex import project_entries


class SUREClassifier(KernelClassifier):
    """Self-guided retraining for partial-label learning (SURE).

    Minimises over the model and the confidence P, each row on its candidate simplex,

        |Phi W + 1 b' - P|^2 + ridge |W|^2 - maximization * sum over i of max over j of P_ij

    by turns [1]_: the ridge regression is ``Q = S P``; for a fixed regression, with j the
    best candidate of row i of Q, the confidence is the projection of ``Q + maximization / 2``
    at j onto the simplex.

    Cost: one kernel, factorisation and inverse, O(n^3); then nnz-sized steps. Memory: at
    most two n x n matrices. Nystroem features
    (`kernel_approximation`) make both linear in n.

    Parameters
    ----------
    maximization : float, default=0.3
        Pull towards the best candidate (the original's lambda).
    regularization : float, default=0.05
        Weight of the squared norm of the coefficients (the original's beta).
    kernel : {"rbf", "linear"}, default="rbf"
        Gaussian or linear.
    bandwidth : float, default=1.0
        Width of the Gaussian kernel as a multiple of the mean distance of all pairs of
        training rows.
    max_iter : int, default=100
        Largest number of turns.
    tol : float, default=1e-3
        Stop when the confidence changes by less (Frobenius norm).
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
        Final confidence, rows on the simplex over the candidates.
    training_output_ : ndarray, shape (n, l)
        Output of the final regression on the training rows.
    transduction_ : ndarray, shape (n,)
        Label of every training row: the largest training output among its candidates.
    n_ties_ : int
        Training rows whose label was not the only best candidate.
    n_iter_ : int
        Turns taken.

    References
    ----------
    .. [1] Feng, An (2019). Partial label learning with self-guided retraining. AAAI.

    Examples
    --------
    >>> from appellate import SUREClassifier
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> SUREClassifier().fit(X, y).transduction_
    array(['cat', 'cat', 'cat', 'dog', 'dog', 'dog'], dtype='<U3')
    """

    _parameter_constraints = {
        **KernelClassifier._parameter_constraints,
        "maximization": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        maximization: float = 0.3,
        regularization: float = 0.05,
        kernel: str = "rbf",
        bandwidth: float = 1.0,
        max_iter: int = 100,
        tol: float = 1e-3,
        kernel_approximation: str = "auto",
        n_landmarks: int | None = None,
        landmarks: str = "uniform",
        cache_dir: Any = None,
        cost: Any = None,
    ) -> None:
        self.maximization = maximization
        self.regularization = regularization
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.max_iter = max_iter
        self.tol = tol
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
        confidence, n_iter = initial, 0
        output = smooth(confidence)
        while n_iter < self.max_iter:
            pulled = output.copy()
            pulled[entries.first_max(output)] += self.maximization / 2
            previous, confidence = confidence, project_entries(pulled, entries)
            output = smooth(confidence)
            n_iter += 1
            if np.linalg.norm(confidence - previous) < self.tol:
                break
        return Disambiguation(initial, confidence, output, n_iter)
