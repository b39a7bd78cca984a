"""The kernel members of a jury on many rows: Nystroem features, read in blocks.

In the features Z of `appellate.numerics.nystroem` a ridge regression has r coefficients a label,
and a replica that lacks fold f is a correction of the small system,

    (I - Z_f'Z_f - m m'/n_a + ridge diag(1/s)) c = Z_a'Q_a - m mean(Q_a)',   m = Z_a'1,

so that nothing grows faster than the number of rows. Temperatures, weights and the criterion are
found on a sample of 20,000 rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from appellate.jurors import Replicas, Scores
from appellate.numerics.blocks import StoredBlocks
from appellate.numerics.entries import Values
from appellate.numerics.nystroem import Basis
from appellate.numerics.smoothers import NystroemSmoother
from appellate.numerics.threads import ordered_map

_SAMPLE = 20_000
_BLOCK_ROWS = 4096
_FAINT = 1e-6  # weight below which a member does not change the mixture
_Singles = NDArray[np.float32]


class Width:
    """Features of one kernel width, and what is left of their moments without each fold."""

    def __init__(self, features: StoredBlocks, strengths: Scores, replicas: Replicas) -> None:
        self.features, self.strengths, self.replicas = features, strengths, replicas
        r = features.shape[1]
        self.grams = np.zeros((replicas.shape[1], r, r))
        self.totals = np.zeros((replicas.shape[1], r))
        for rows, block in blocks(features):
            for k in range(1, replicas.shape[1]):
                part = block[replicas.fold[rows] == k]
                self.grams[k] += part.T @ part
                self.totals[k] -= part.sum(axis=0)

    def systems(self, ridge: float) -> list[Any]:
        """Cholesky factors of every replica's small system."""
        out = []
        for k, rows in enumerate(self.replicas.rows):
            matrix = -self.grams[k] - np.outer(self.totals[k], self.totals[k] / len(rows))
            matrix[np.diag_indices(len(matrix))] += 1 + ridge / self.strengths
            out.append(la.cho_factor(matrix))
        return out


def blocks(features: StoredBlocks) -> Iterator[tuple[slice, _Singles]]:
    """Rows of features, a few thousand at a time."""
    for start in range(0, features.shape[0], _BLOCK_ROWS):
        rows = slice(start, min(start + _BLOCK_ROWS, features.shape[0]))
        yield rows, features.read(rows)


class LandmarkBench:
    """Kernel members on features, heard together.

    A replica's own rows are left out one by one by the diagonal of the smoother of all rows,
    its odds raised by the share of rows that the replica lacks; exact for the replica of all.

    Cost: n r^2 multiply-adds once for every width; a round 2 n r (K + 1) l for every member.
    Memory: the features, and some candidate entries.

    Parameters
    ----------
    bases : mapping of float to Basis
        Features of all rows, by width.
    kernels : sequence of (width, ridge)
        Members.
    names : list of str
        What they are called.
    replicas : Replicas
        Which rows each replica has.
    """

    def __init__(
        self,
        bases: Mapping[float, Basis],
        kernels: Sequence[tuple[float, float]],
        names: list[str],
        replicas: Replicas,
    ) -> None:
        self.names, self.kernels, self.replicas = names, kernels, replicas
        n = len(replicas.fold)
        self.sample = np.arange(n)
        if n > _SAMPLE:
            self.sample = np.sort(np.random.RandomState(0).permutation(n)[:_SAMPLE])
        self.evidence = replicas.evidence.take(self.sample) if n > _SAMPLE else replicas.evidence
        self.widths = {}
        for width in dict.fromkeys(width for width, _ in kernels):
            basis, features = bases[width], bases[width].features
            if not isinstance(features, StoredBlocks):
                raise ValueError("JuryClassifier takes no Dask collection. Pass X.compute().")
            self.widths[width] = Width(features, basis.strengths, replicas)
        self.systems = [self.widths[width].systems(ridge) for width, ridge in kernels]
        self.smoothers = [
            NystroemSmoother(bases[width], ridge, np.dtype(np.float64)) for width, ridge in kernels
        ]
        self.leverages = [self._leverage(each.diagonal) for each in self.smoothers]

    def _leverage(self, diagonal: Values) -> _Singles:
        """Share of a row's own target in its output by every replica, (n, K + 1)."""
        n = len(diagonal)
        own = np.clip(diagonal, 1 / n, 1 - 1e-6)[:, np.newaxis]
        sizes = np.array([len(rows) for rows in self.replicas.rows])
        odds = own / (1 - own) * (n / sizes)
        out = odds / (1 + odds)
        held = self.replicas.fold > 0
        out[held, self.replicas.fold[held]] = 0
        return out.astype(np.float32)

    def listen(self, targets: Sequence[Values], seed: int = 0) -> LandmarkHearing:
        """Let all members learn from the targets of every replica."""
        self.heard = targets[0]
        _, n_replicas, l = self.replicas.shape
        lengths = [len(rows) for rows in self.replicas.rows]
        means = np.array(
            [
                np.bincount(own.entries.labels, weights=values, minlength=l) / length
                for own, values, length in zip(self.replicas.own, targets, lengths, strict=True)
            ]
        )  # (K + 1, l)
        gathered = {width: self._gather(each, targets) for width, each in self.widths.items()}
        coefficients, shifts = [], []
        for (width, _), systems in zip(self.kernels, self.systems, strict=True):
            found = np.empty((n_replicas, l, self.widths[width].features.shape[1]))
            shift = np.empty((n_replicas, l))
            for k, system in enumerate(systems):
                total = self.widths[width].totals[k]
                found[k] = la.cho_solve(
                    system, (gathered[width][k] - np.outer(means[k], total)).T
                ).T
                shift[k] = means[k] - found[k] @ total / lengths[k]
            coefficients.append(found)
            shifts.append(shift)
        return LandmarkHearing(self, coefficients, shifts, targets)

    def _gather(self, width: Width, targets: Sequence[Values]) -> Scores:
        """``Q'Z`` of every replica, (K + 1, l, r)."""
        _, n_replicas, l = self.replicas.shape
        total = np.zeros((n_replicas * l, width.features.shape[1]))

        def work(item: tuple[slice, _Singles]) -> _Singles:
            rows, block = item
            dense = self.scatter(targets, rows).reshape(len(block), -1)
            return np.asarray(dense.T @ block)

        for part in ordered_map(work, blocks(width.features), blas=True):
            total += part
        return total.reshape(n_replicas, l, -1)

    def scatter(self, targets: Sequence[Values], rows: slice) -> _Singles:
        """Targets of some rows in every replica, (b, K + 1, l)."""
        out = np.zeros((rows.stop - rows.start, *self.replicas.shape[1:]), dtype=np.float32)
        for k, (here, labels, spots) in enumerate(self.entries(rows)):
            out[here, k, labels] = targets[k][spots]
        return out

    def entries(self, rows: slice) -> Iterator[tuple[Any, Any, slice]]:
        """Rows within a block, labels and places of the candidate entries of every replica."""
        for own, all_rows in zip(self.replicas.own, self.replicas.rows, strict=True):
            first, last = np.searchsorted(all_rows, (rows.start, rows.stop))
            spots = slice(own.entries.indptr[first], own.entries.indptr[last])
            here = all_rows[own.entries.rows[spots]] - rows.start
            yield here, own.entries.labels[spots], spots

    def models(self) -> list[list[Any]]:
        """Return what scores new rows, for every member, after the last hearing."""
        entries = self.replicas.evidence.entries
        return [[each.regress(entries, self.heard)[1]] for each in self.smoothers]


class LandmarkHearing:
    """What the members said, as coefficients of the features."""

    def __init__(
        self,
        bench: LandmarkBench,
        coefficients: list[Scores],
        shifts: list[Scores],
        targets: Sequence[Values],
    ) -> None:
        self.bench, self.targets, self.evidence = bench, targets, bench.evidence
        self.coefficients = [each.astype(np.float32) for each in coefficients]
        self.shifts = [each.astype(np.float32) for each in shifts]
        self.honest = [self._honest(m) for m in range(len(coefficients))]

    def _honest(self, m: int) -> Scores:
        bench = self.bench
        features = bench.widths[bench.kernels[m][0]].features
        out = np.empty((len(bench.sample), bench.replicas.shape[2]))
        for rows, block in blocks(features):
            first, last = np.searchsorted(bench.sample, (rows.start, rows.stop))
            chosen = bench.sample[first:last]
            part, fold = block[chosen - rows.start], bench.replicas.fold[chosen]
            for k in np.unique(fold):
                spots = np.flatnonzero(fold == k)
                out[first + spots] = part[spots] @ self.coefficients[m][k].T + self.shifts[m][k]
        return out

    def mix(self, temperatures: Sequence[float], weights: NDArray[Any]) -> list[Values]:
        """Mixture of all members at the candidates of every replica's own rows."""
        out: list[Values] = [np.empty(len(own.entries)) for own in self.bench.replicas.own]
        for rows, mixed in self._mixtures(temperatures, weights):
            for k, (here, labels, spots) in enumerate(self.bench.entries(rows)):
                out[k][spots] = mixed[here, k, labels]
        return out

    def everywhere(
        self, temperatures: Sequence[float], weights: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Mixtures on all rows, (n, l): honest, and each without its own target only."""
        n, _, l = self.bench.replicas.shape
        honest, own = np.empty((n, l), dtype=np.float32), np.empty((n, l), dtype=np.float32)
        for rows, mixed in self._mixtures(temperatures, weights):
            own[rows] = mixed[:, 0]
            honest[rows] = mixed[np.arange(len(mixed)), self.bench.replicas.fold[rows]]
        return honest, own

    def _mixtures(
        self, temperatures: Sequence[float], weights: NDArray[Any]
    ) -> Iterator[tuple[slice, _Singles]]:
        """Mixtures of all replicas, (b, K + 1, l), block by block."""
        heard = [m for m, weight in enumerate(weights) if weight > _FAINT]
        n = self.bench.replicas.shape[0]
        slices = [slice(s, min(s + _BLOCK_ROWS, n)) for s in range(0, n, _BLOCK_ROWS)]

        def work(rows: slice) -> _Singles:
            told = self.bench.scatter(self.targets, rows)
            total = np.zeros_like(told)
            for m in heard:
                total += np.float32(weights[m]) * self._soften(m, rows, told, temperatures[m])
            return total

        return zip(slices, ordered_map(work, slices, blas=True), strict=True)

    def _soften(self, m: int, rows: slice, told: _Singles, temperature: float) -> _Singles:
        bench = self.bench
        block = bench.widths[bench.kernels[m][0]].features.read(rows)
        coefficients = self.coefficients[m].reshape(told[0].size, -1)
        out = (block @ coefficients.T).reshape(told.shape)
        out += self.shifts[m]
        own = bench.leverages[m][rows][:, :, np.newaxis]
        out -= own * told
        out /= (1 - own) * np.float32(temperature)
        out -= out.max(axis=2, keepdims=True)
        np.exp(out, out=out)
        out /= out.sum(axis=2, keepdims=True)
        return out
