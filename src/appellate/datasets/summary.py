"""The size and quality of candidate sets in a few numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from appellate.candidates import as_candidates, check_length
from appellate.candidates.names import encode


@dataclass(frozen=True)
class CandidateSummary:
    """What the candidate sets of a data set are like.

    Attributes
    ----------
    n_samples, n_classes : int
        Numbers of rows and of labels.
    mean_size : float
        Mean number of candidates a row.
    min_size, max_size : int
        Smallest and largest number of candidates.
    singleton_share, full_share : float
        Shares of the rows with one candidate, and with every label as candidate.
    truth_coverage : float or None
        Share of the rows whose true label is a candidate; None if no truth was given.

    Examples
    --------
    >>> print(summarize_candidates(["anna|bob", "bob"], ["bob", "bob"]))
    2 samples, 2 classes, 1.50 candidates a sample (1 to 2), 50.0% with one, 50.0% with all, truth
    among them in 100.0%
    """

    n_samples: int
    n_classes: int
    mean_size: float
    min_size: int
    max_size: int
    singleton_share: float
    full_share: float
    truth_coverage: float | None = None

    def __str__(self) -> str:
        """Say it in one line."""
        text = (
            f"{self.n_samples} samples, {self.n_classes} classes, {self.mean_size:.2f} candidates "
            f"a sample ({self.min_size} to {self.max_size}), {self.singleton_share:.1%} with one, "
            f"{self.full_share:.1%} with all"
        )
        if self.truth_coverage is None:
            return text
        return f"{text}, truth among them in {self.truth_coverage:.1%}"

    def to_dict(self) -> dict[str, float | int | None]:
        """Return the numbers as a dictionary."""
        return asdict(self)


def summarize_candidates(
    candidates: Any, y_true: ArrayLike | None = None, *, classes: Any = None
) -> CandidateSummary:
    """Count how large candidate sets are and how often they hold the truth.

    Parameters
    ----------
    candidates : array-like
        Candidate sets, anything that `appellate.as_candidates` reads.
    y_true : array-like, shape (n,), default=None
        True labels; column numbers for a matrix without names.
    classes : sequence, default=None
        Names of the columns, see `appellate.as_candidates`.

    Returns
    -------
    CandidateSummary
        The counts.

    Examples
    --------
    >>> summary = summarize_candidates(["cat|dog", "cow", "cat|cow|dog"], ["cat", "dog", "cow"])
    >>> print(summary)
    3 samples, 3 classes, 2.00 candidates a sample (1 to 3), 33.3% with one, 33.3% with all,
    truth among them in 66.7%
    """
    sets = as_candidates(candidates, classes=classes)
    if y_true is None:
        return summarize_matrix(sets.matrix)
    labels = np.asarray(y_true)
    if labels.ndim != 1:
        raise ValueError(f"y_true has shape {labels.shape}; give one true label a row.")
    check_length(sets, len(labels))
    codes, _ = encode(labels, sets.class_names, np.arange(len(labels)))
    if (codes < 0).any():
        raise ValueError("y_true has missing labels; drop the rows, or give no truth.")
    return summarize_matrix(sets.matrix, codes)


def summarize_matrix(
    matrix: NDArray[np.bool_], truth: NDArray[np.intp] | None = None
) -> CandidateSummary:
    """Summarize a candidate matrix, given the columns of the true labels if they are known."""
    n, l = matrix.shape
    sizes = np.count_nonzero(matrix, axis=1)
    covered = None if truth is None else float(matrix[np.arange(n), truth].mean())
    return CandidateSummary(
        n_samples=n,
        n_classes=l,
        mean_size=float(sizes.mean()),
        min_size=int(sizes.min()),
        max_size=int(sizes.max()),
        singleton_share=float(np.mean(sizes == 1)),
        full_share=float(np.mean(sizes == l)),
        truth_coverage=covered,
    )
