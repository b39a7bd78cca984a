"""How much there is to do in a fit, counted before it, and how fast this machine does it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from timeit import repeat
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as la

from appellate.numerics.smoothers import SAMPLE_ROWS

# What is not known before a fit, as found on generated tables of 500 to 1000 rows.
_LATER = 0.6  # share of the rounds after the third that a jury runs
_SEARCH = 12  # evaluations of a search for a temperature or the trust in features
_TURNS, _PARTNER, _SPREAD = 10, 40, 20  # of a base and the partner a round, a propagation
_DECOMPOSITION = 9  # m^3 operations of eigenvalues with vectors


class Work(NamedTuple):
    """What there is to do, or what is done in a second.

    Attributes
    ----------
    operations : float
        Additions and multiplications in products and factorisations of matrices, in double
        precision; single precision counts half.
    entries : float
        Numbers that are read or made one by one; a landmark's share in a candidate entry counts
        a quarter, since features are at hand.
    """

    operations: float
    entries: float

    def seconds(self, speed: Work) -> float:
        """Time at a speed.

        Examples
        --------
        >>> Work(2e9, 1e6).seconds(Work(1e9, 1e6))
        3.0
        """
        return self.operations / speed.operations + self.entries / speed.entries


def count_features(n: int, q: int, m: int) -> float:
    """Operations of Nystroem features of m landmarks (`appellate.numerics.smoothers`)."""
    sample = min(n, SAMPLE_ROWS)
    return 2 * (n * m + sample**2) * q + 3 * n * m**2 + _DECOMPOSITION * m**3


def count_jury(
    shape: tuple[int, int],
    q: int,
    *,
    landmarks: int = 0,
    folds: int = 5,
    rounds: int = 8,
    ways: int = 1,
) -> Work:
    """Work of kernel members on n rows with l labels; `ways` to cover groups are compared."""
    (n, l), members, widths, metrics = shape, 6, 5, 4
    hearings = ways * (3 * min(rounds, 3) + _LATER * max(rounds - 3, 0))  # three ambiguities
    searched = min(n, 20_000) if landmarks else n
    outputs = 4 * hearings * members * l * (_SEARCH * searched + (folds + 1) * n)
    if landmarks:
        m, replicas = landmarks, folds + 1
        round_work = replicas * l * m * ((widths + members) * n + 2 * members * m)
        operations = widths * (count_features(n, q, m) + n * m**2) + members * replicas * m**3 / 3
        return Work(operations + hearings * round_work, outputs + members * n * m)
    without_fold = (folds - 2 / 3) / folds**2  # of n^3: a factor of every fold, and across it
    product = 2 * (folds + 1) + 2 - 1 / folds  # of n^2 l: all replicas, and across every fold
    operations = n**3 * (1 + without_fold) + hearings * product * n**2 * l
    return Work(2 * metrics * n**2 * q + members * operations, outputs + 4 * members * n**2)


def count_plcp(
    shape: tuple[int, int],
    q: int,
    *,
    sizes: Any,
    landmarks: int = 0,
    rounds: int = 5,
    neighbors: int = 0,
) -> Work:
    """Work of a base and its partner on one kernel; `sizes` is how many rows have each label.

    A base takes so many turns a round, PL-AGGD with a graph of neighbours, SURE without.
    """
    (n, l), maps, counts = shape, rounds * (_TURNS + _PARTNER), np.asarray(sizes, dtype=float)
    held, pairs = float(counts.sum()), float(counts @ counts)
    a_row = neighbors**3 + 2 * _SPREAD * (neighbors + 1) * held / n if neighbors else 0.0
    entries, operations = rounds * _TURNS * n * a_row, 2.0 * n**2 * q * (neighbors > 0)
    if landmarks:
        operations += count_features(n, q, landmarks)
        return Work(operations, entries + maps * held * landmarks / 2)
    operations += 2 * n**2 * q + n**3 + 4 * n**2 * l
    if pairs > 2 * n**2:
        return Work(operations + maps * 2 * n**2 * l, entries + 4 * n**2)
    return Work(operations, entries + 4 * n**2 + (maps + 1) * pairs)


def count_testimony(
    shape: tuple[int, int], q: int, *, answers: int, landmarks: int = 0, tried: int = 4_000
) -> Work:
    """Work of testimony, whose ridges are tried on some rows; q = 0: without features."""
    (n, l), ridges, rounds = shape, 3, 9
    entries = 4.0 * rounds * answers * l
    if q == 0:
        return Work(0, entries)
    some = min(n, tried)
    operations = 1.0 * ridges * (some**3 + 2 * some**2 * q + 4 * some**2 * l)
    if landmarks:
        operations += count_features(n, q, landmarks)
        entries += 4 * n * l * landmarks / 2
    elif n > some:
        operations += 1.5 * (n**3 + 2 * n**2 * q) + 4 * 2 * n**2 * l  # the ridge may change once
    heard = rounds * min(answers, 50_000) + 5 * min(n, 20_000) + ridges * some
    return Work(operations, entries + 4 * _SEARCH * heard * l + 4 * ridges * some**2)


@cache
def speed() -> Work:
    """What this machine does in a second, by a product, an inverse and a few passes."""
    matrix = np.eye(600) + np.random.default_rng(0).random((600, 600)) / 1200
    square = matrix @ matrix.T
    potrf, potri = la.get_lapack_funcs(("potrf", "potri"), (square,))

    def best(function: Callable[[], object]) -> float:
        return max(min(repeat(function, number=1, repeat=3)), 1e-6)

    product = best(lambda: matrix @ matrix)
    inverse = best(lambda: potri(potrf(square, lower=1)[0], lower=1))
    n, values, room = len(matrix), np.linspace(-1, 0, 10**6), np.empty(10**6)
    entries = best(lambda: np.exp(values, out=room).sum() + np.square(room, out=room).sum())
    return Work(3 * n**3 / (product + inverse), len(values) / entries)
