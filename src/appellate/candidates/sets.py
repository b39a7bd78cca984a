"""Candidate sets: a boolean matrix with class names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate.candidates.answers import Answers, choose_rows
from appellate.candidates.names import naming, scalars


@dataclass(frozen=True, eq=False, repr=False)
class CandidateSets:
    """Candidate labels of n rows over l classes.

    Attributes
    ----------
    matrix : ndarray of bool, shape (n, l)
        True where the label is a candidate of the row.
    class_names : ndarray of shape (l,)
        The label of each column.
    ids : ndarray of shape (n,) or None
        What the rows are called, if they have names of their own.
    answers : Answers or None
        Who gave which answer, if the sets were made of answers.

    Examples
    --------
    >>> from appellate import as_candidates
    >>> sets = as_candidates(["anna|bob", "bob", "anna|carl"])
    >>> sets
    CandidateSets(3 rows, 3 classes, 1.67 candidates per row)
    >>> sets[1:].sets()
    [('bob',), ('anna', 'carl')]
    """

    matrix: NDArray[np.bool_]
    class_names: NDArray[Any]
    ids: NDArray[Any] | None = None
    answers: Answers | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.matrix)

    def __repr__(self) -> str:
        """Say how many rows, classes and candidates there are."""
        rows, classes = self.shape
        mean = self.matrix.sum() / max(rows, 1)
        return f"CandidateSets({rows} rows, {classes} classes, {mean:.3g} candidates per row)"

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and classes, (n, l)."""
        return self.matrix.shape[0], self.matrix.shape[1]

    def __getitem__(self, rows: Any) -> CandidateSets:
        """Return the rows of a slice, of an array of row numbers or of a boolean mask."""
        chosen = choose_rows(len(self), rows)
        ids = None if self.ids is None else self.ids[chosen]
        answers = None if self.answers is None else self.answers[chosen]
        return CandidateSets(self.matrix[chosen], self.class_names, ids, answers)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the matrix, so that numpy and scikit-learn can look at it."""
        return np.array(self.matrix, dtype=dtype, copy=copy)

    def sets(self) -> list[tuple[Any, ...]]:
        """Return the candidates of every row by name, in the order of the classes."""
        names = scalars(self.class_names)
        return [tuple(compress(names, row)) for row in self.matrix.tolist()]


def check_length(sets: CandidateSets | Answers, n_samples: int) -> None:
    """Check that there is one candidate set for every row of X.

    Parameters
    ----------
    sets : CandidateSets or Answers
        Candidate sets or answers of the rows.
    n_samples : int
        Rows of X.

    Raises
    ------
    ValueError
        If the numbers differ.

    Examples
    --------
    >>> from appellate import as_candidates
    >>> check_length(as_candidates(["cat|dog", "dog"]), 2)
    """
    if len(sets) != n_samples:
        raise ValueError(
            f"X has {n_samples} rows, but y has candidate sets for {len(sets)}. "
            f"Found inconsistent numbers of samples: [{n_samples}, {len(sets)}]."
        )


def name_rows(rows: Sequence[int] | NDArray[np.intp]) -> str:
    """Name row numbers for a message, five of them at most.

    Parameters
    ----------
    rows : sequence of int
        The numbers, as they are to be printed.

    Returns
    -------
    str

    Examples
    --------
    >>> name_rows([3, 17])
    'rows 3, 17'
    """
    return naming("row", rows)
