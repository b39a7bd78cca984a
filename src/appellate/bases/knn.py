"""PL-KNN: the labels of the nearest neighbours vote."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from appellate._compat import Interval, StrOptions
from appellate.base import Disambiguation, PartialLabelClassifier
from appellate.confidence import normalize_entries, reduce_candidates
from appellate.numerics.entries import CandidateEntries, Values
from appellate.numerics.geometry import Geometry
from appellate.numerics.neighbors import NeighborSearch, found_all


class PLKNNClassifier(PartialLabelClassifier):
    """Partial-label k nearest neighbours (PL-KNN).

    Each neighbour votes for all its candidate labels; the label with the most votes wins:
    ``score_j(x) = sum over neighbours i of w_i [j in S_i]`` [1]_. A training row is not its
    own neighbour. The training output is one-hot at the winner among all labels, as in the
    paper on PLCP. With `supervision`, a sample's candidates below their initial confidence
    are dropped before the vote (the paper's operator G).

    Cost: one neighbour search, then n k c for c candidates a sample. Memory: n x l.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbours that vote; all others where there are fewer.
    weights : {"uniform", "distance"}, default="uniform"
        One vote each, or ``1 - d_i / sum of d`` as in the original paper.
    neighbors : object or None, default=None
        How neighbours are searched: any object with ``fit(X)`` and ``kneighbors(X, k)``, or one
        of scikit-learn's neighbour transformers, such as
        pynndescent's; None: exactly. The logger ``"appellate"``
        tells its recall on a sample.
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
        Share of the votes of each candidate.
    training_output_ : ndarray, shape (n, l)
        One-hot winner among all labels.
    transduction_ : ndarray, shape (n,)
        Label of every training row: the candidate with the most votes.
    n_ties_ : int
        Training rows whose label was not the only best candidate. Ties among all labels, which
        the training output breaks for the first class, are more.
    n_iter_ : int
        Always 1.

    References
    ----------
    .. [1] Huellermeier, Beringer (2006). Learning from ambiguously labeled examples.
       Intelligent Data Analysis 10.

    Examples
    --------
    >>> from appellate import PLKNNClassifier
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> PLKNNClassifier(n_neighbors=2).fit(X, y).predict([[0.05], [4.9]])
    array(['cat', 'dog'], dtype='<U3')
    """

    _parameter_constraints = {
        **PartialLabelClassifier._parameter_constraints,
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "weights": [StrOptions({"uniform", "distance"})],
        "neighbors": [object],
    }

    def __init__(
        self,
        n_neighbors: int = 10,
        *,
        weights: str = "uniform",
        neighbors: Any = None,
        cost: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.neighbors = neighbors
        self.cost = cost

    def _disambiguate(
        self, geometry: Geometry, entries: CandidateEntries, supervision: Values | None
    ) -> Disambiguation:
        initial = entries.uniform(geometry.X.dtype)
        votes_for = reduce_candidates(entries, initial, supervision)
        votes = self._vote(*geometry.neighbors(self.n_neighbors, self.neighbors), votes_for)
        winners = np.zeros_like(votes)
        winners[np.arange(len(votes)), votes.argmax(axis=1)] = 1
        candidate_votes = entries.gather(votes)
        return Disambiguation(
            initial=initial,
            confidence=normalize_entries(candidate_votes, entries),
            output=entries.gather(winners),
            ranking=candidate_votes,
            state=(winners, votes_for),
        )

    def _conclude(
        self, geometry: Geometry, entries: CandidateEntries, result: Disambiguation
    ) -> NDArray[Any]:
        winners, self._votes_for = result.state
        k = min(self.n_neighbors, len(geometry.matrix))
        self._search = NeighborSearch(self.neighbors, geometry.matrix, k)
        return np.asarray(winners)

    def _decision(self, X: NDArray[Any]) -> NDArray[Any]:
        found = found_all(self.neighbors, *self._search.ask(X))
        return self._vote(*found, self._votes_for)

    def _probabilities(self, scores: NDArray[Any]) -> NDArray[Any]:
        totals = scores.sum(axis=1, keepdims=True)
        even = np.full_like(scores, 1 / scores.shape[1])
        return np.where(totals > 0, scores / np.where(totals > 0, totals, 1), even)

    def _vote(
        self, distances: NDArray[Any], indices: NDArray[np.intp], votes_for: sp.csr_array
    ) -> NDArray[Any]:
        """Add up the votes of the neighbours, (m, l)."""
        m, k = indices.shape
        weights = np.ones((m, k), dtype=votes_for.dtype)
        if self.weights == "distance" and k > 1:
            totals = distances.sum(axis=1, keepdims=True)
            weights -= distances / np.where(totals > 0, totals, 1)
        ballots = sp.csr_array(
            (weights.ravel(), indices.ravel(), np.arange(m + 1) * k),
            shape=(m, votes_for.shape[0]),
        )
        return np.asarray((ballots @ votes_for).toarray())
