"""Rows of one group, such as the faces of one image, whose labels cover their candidates."""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import ArrayLike

from appellate.numerics.entries import CandidateEntries, Values

__all__ = ["Groups"]

_COVERING_STEPS = 30


class Groups:
    """Rows of one image, page or recording that share a set, every label of which occurs.

    Parameters
    ----------
    groups : array-like, shape (n,)
        Name of every row's group.
    entries : CandidateEntries
        Candidates of the rows.

    Raises
    ------
    ValueError
        If rows of one group have different candidates.

    Examples
    --------
    >>> import numpy as np
    >>> entries = CandidateEntries(np.ones((2, 2), dtype=bool))
    >>> groups = Groups(["photo", "photo"], entries)
    >>> entries.scatter(groups.cover(np.array([0.9, 0.1, 0.8, 0.2]))).round(2)
    array([[0.6, 0.4],
           [0.4, 0.6]])
    """

    def __init__(self, groups: ArrayLike, entries: CandidateEntries) -> None:
        self.entries = entries
        _, codes = np.unique(np.asarray(groups), return_inverse=True)
        self.order = np.argsort(codes, kind="stable")
        sorted_codes = codes[self.order]
        self.starts = np.searchsorted(sorted_codes, np.arange(sorted_codes[-1] + 2))
        sets = entries.scatter(np.ones(len(entries), dtype=bool))[self.order]
        strange = (sets[1:] != sets[:-1]).any(axis=1) & (np.diff(sorted_codes) == 0)
        if strange.any():
            one, two = self.order[np.flatnonzero(strange)[0] :][:2]
            raise ValueError(
                f"rows {one} and {two} are of one group, but have different candidates. "
                "Give all rows of a group the same candidates, or leave groups= out."
            )

    def cover(self, posterior: Values) -> Values:
        """Raise the labels of a group that no row has: 30 times columns, then rows, to one.

        A group of fewer rows than labels, which cannot have them all, is left as it is.
        """
        out = posterior.astype(np.float64)
        _cover(out, self.order, self.starts, self.entries.indptr)
        return out


@nb.njit(cache=True)
def _cover(shares, order, starts, indptr):  # type: ignore[no-untyped-def]
    for g in range(starts.size - 1):
        rows = order[starts[g] : starts[g + 1]]
        count = indptr[rows[0] + 1] - indptr[rows[0]]
        if rows.size < count:
            continue
        for _ in range(_COVERING_STEPS):
            factors = np.zeros(count)
            for i in rows:
                factors += shares[indptr[i] : indptr[i] + count]
            factors = 1 / np.minimum(np.maximum(factors, 1e-300), 1.0)
            for i in rows:
                own = shares[indptr[i] : indptr[i] + count]
                own *= factors
                own /= own.sum()
