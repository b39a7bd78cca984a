"""PL-KNN: the labels of the nearest neighbours vote."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from appellate._parameters import allow, share_docs
from appellate.core.base import PartialLabelClassifier
from appellate.core.problem import Problem
from appellate.core.results import Model, Result
from appellate.evidence.confidence import (
    normalize_entries,
    normalize_rows,
    one_hot,
    reduce_candidates,
)
from appellate.numerics.entries import Values
from appellate.numerics.graph import NeighborSearch, link_matrix


@share_docs
@dataclass(eq=False, repr=False)
class PLKNNClassifier(PartialLabelClassifier):
    """Partial-label k nearest neighbours (PL-KNN).

    Each neighbour votes for all its candidate labels; the label with the most votes wins:
    ``score_j(x) = sum over neighbours i of w_i [j in S_i]`` [1]_. A training row is not its
    own neighbour. The training output is one-hot at the winner among all labels, as in the
    paper on PLCP. With `supervision`, a sample's candidates below their initial confidence
    are dropped before the vote (the paper's operator G).

    Cost: one neighbour search, then n k c for c candidates per sample. Memory: n x l.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbours that vote; all others if there are fewer.
    weights : {"uniform", "distance"}, default="uniform"
        One vote each, or ``1 - d_i / sum of d`` as in the original paper.
    <neighbors>
    <cost>

    Attributes
    ----------
    <classes>
    confidence_ : ndarray, shape (n, l)
        Share of the votes of each candidate.
    training_output_ : ndarray, shape (n, l)
        One-hot winner among all labels.
    transduction_ : ndarray, shape (n,)
        Label of every training row: the candidate with the most votes.
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

    n_neighbors: int = 10
    _: KW_ONLY
    weights: str = allow("uniform", {"uniform", "distance"})
    neighbors: Any = None
    cost: Any = None

    def __sklearn_tags__(self) -> Any:
        """Take sparse features, as the search for neighbours does."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _solve(self, problem: Problem, start: Values | None) -> Result:
        entries, initial = problem.entries, problem.uniform()
        votes_for = reduce_candidates(entries, initial, start)
        found = problem.neighbors(self.n_neighbors, self.neighbors)
        by_distance = self.weights == "distance"
        votes = _vote(*found, votes_for, by_distance=by_distance)
        candidate_votes, winners = entries.gather(votes), one_hot(votes)
        k = min(self.n_neighbors, problem.n_rows)
        search = NeighborSearch(self.neighbors, problem.matrix, k)
        model = partial(VotesModel, winners, search, votes_for, by_distance)
        confidence = normalize_entries(candidate_votes, entries)
        output = entries.gather(winners)
        return Result(initial, confidence, output, 1, model, ranking=candidate_votes)


@dataclass(frozen=True)
class VotesModel(Model):
    """Training rows that vote for all their candidates."""

    search: NeighborSearch
    votes_for: sp.csr_array
    by_distance: bool

    def decision(self, X: Any) -> NDArray[Any]:
        """Count the votes of the nearest training rows, (m, l)."""
        return _vote(*self.search.ask(X), self.votes_for, by_distance=self.by_distance)

    def probabilities(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Shares of the votes; even where nobody votes."""
        return normalize_rows(scores)


def _vote(
    distances: NDArray[Any],
    indices: NDArray[np.intp],
    votes_for: sp.csr_array,
    *,
    by_distance: bool,
) -> NDArray[Any]:
    """Add up the votes of the neighbours, (m, l)."""
    m, k = indices.shape
    weights = np.ones((m, k), dtype=votes_for.dtype)
    if by_distance and k > 1:
        weights -= normalize_rows(distances, otherwise=0)
    ballots = link_matrix(weights, indices, votes_for.shape[0])
    return np.asarray((ballots @ votes_for).toarray())
