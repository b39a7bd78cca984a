"""The kernel members of a jury on many rows: Nystroem features, read in blocks.

In the features Z of `appellate.numerics.smoothers` a ridge regression has r coefficients a label,
and a replica that lacks fold f is a correction of the small system,

    (I - Z_f'Z_f - m m'/n_a + ridge diag(1/s)) c = Z_a'Q_a - m mean(Q_a)',   m = Z_a'1,

so that nothing grows faster than the number of rows. Temperatures, weights and the criterion are
found on a sample of 20,000 rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from appellate.evidence import Scale
from appellate.jurors import Replicas, Scores
from appellate.numerics.entries import Values
from appellate.numerics.smoothers import Basis, NystroemSmoother

_SAMPLE = 20_000
_PIECE = 2**21  # outputs of all replicas that are under way in a block
_FAINT = 1e-6  # weight below which a member does not change the mixture
_Singles = NDArray[np.float32]
_Part = tuple[Any, ...]


class Width:
    """Features of one kernel width, and what is left of their moments without each fold."""

    def __init__(self, basis: Basis, replicas: Replicas) -> None:
        self.features, self.strengths, self.replicas = basis.features, basis.strengths, replicas
        entries, slices = replicas.evidence.entries, self.features.slices
        self.spots = [slice(entries.indptr[s.start], entries.indptr[s.stop]) for s in slices]
        parts = [
            (
                (entries.rows[spots] - rows.start).astype(np.int32),
                entries.labels[spots].astype(np.int32),
                replicas.fold[rows].astype(np.int32),
            )
            for rows, spots in zip(slices, self.spots, strict=True)
        ]
        folds = [(fold, replicas.shape[1]) for _, _, fold in parts]
        self.grams, self.totals = self.features.fold(_fold_moments, folds)
        self.placed = self.features.place(parts)

    def systems(self, ridge: float) -> list[Any]:
        """Cholesky factors of every replica's small system."""
        out = []
        for k, rows in enumerate(self.replicas.rows):
            matrix = -self.grams[k] - np.outer(self.totals[k], self.totals[k] / len(rows))
            matrix[np.diag_indices(len(matrix))] += 1 + ridge / self.strengths
            out.append(la.cho_factor(matrix))
        return out

    def gather(self, told: _Singles) -> Scores:
        """``Q'Z`` of every replica, (K + 1, l, r), of its targets at the candidates."""
        _, n_replicas, l = self.replicas.shape
        total = np.zeros((n_replicas * l, self.features.shape[1]))
        parts = ((own, told[s]) for own, s in zip(self.placed, self.spots, strict=True))
        for part in self.features.map(_gather_block, parts, l):
            total += part
        return total.reshape(n_replicas, l, -1)


def _fold_moments(
    block: NDArray[Any], fold: NDArray[np.int32], n_replicas: int, so_far: Any
) -> tuple[Scores, Scores]:
    """Add ``Z_f'Z_f``, (K + 1, r, r), and ``-Z_f'1``, (K + 1, r), of every fold; replica 0: 0."""
    r = block.shape[1]
    grams, totals = so_far or (np.zeros((n_replicas, r, r)), np.zeros((n_replicas, r)))
    for k in range(1, n_replicas):
        part = block[fold == k]
        grams[k] += part.T @ part
        totals[k] -= part.sum(axis=0)
    return grams, totals


def _pieces(
    block: NDArray[Any], placed: _Part, told: _Singles, n_labels: int
) -> Iterator[tuple[slice, _Singles, tuple[Any, Any, Any]]]:
    """Rows of a block, their targets in every replica, (b, K + 1, l), and the candidates."""
    rows, labels, _ = placed
    size = max(1, _PIECE // (told.shape[1] * n_labels))
    for start, stop in pairwise([*range(0, len(block), size), len(block)]):
        spots = slice(*np.searchsorted(rows, (start, stop)))
        here = rows[spots] - start, labels[spots], spots
        out = np.zeros((stop - start, told.shape[1], n_labels), dtype=np.float32)
        out[here[0], :, here[1]] = told[spots]
        yield slice(start, stop), out, here


def _gather_block(
    block: NDArray[Any], placed: _Part, told: _Singles, n_labels: int
) -> NDArray[Any]:
    total = np.zeros((told.shape[1] * n_labels, block.shape[1]))
    for rows, targets, _ in _pieces(block, placed, told, n_labels):
        total += targets.reshape(len(targets), -1).T @ block[rows]
    return total


def _softened(
    block: NDArray[Any],
    placed: _Part,
    told: _Singles,
    diagonal: Values,
    function: Callable[..., Any],
    growth: Values,
    coefficients: _Singles,
    shifts: _Singles,
    scale: Scale,
) -> NDArray[Any]:
    """Apply a function to what a member says of the rows, their own targets left out.

    A row has some share in its own output, the diagonal of the smoother; its odds grow as the
    replica has fewer rows, and it has none in a replica that lacks it.
    """
    odds = (diagonal / (1 - diagonal))[:, np.newaxis] * growth
    shares = (odds / (1 + odds)).astype(np.float32)
    held = np.flatnonzero(placed[2])
    shares[held, placed[2][held]] = 0
    flat, out = coefficients.reshape(shifts.size, -1), []
    for rows, targets, here in _pieces(block, placed, told, shifts.shape[1]):
        own = shares[rows, :, np.newaxis]
        said = (block[rows] @ flat.T).reshape(targets.shape)
        said += shifts
        said -= own * targets
        said /= 1 - own
        said += np.float32(scale.shift)
        said /= np.float32(scale.temperature)
        said -= said.max(axis=2, keepdims=True)
        np.exp(said, out=said)
        said /= said.sum(axis=2, keepdims=True)
        out.append(function(said, placed[2][rows], here))
    return np.concatenate(out)


def _at_candidates(said: _Singles, fold: Any, here: _Part) -> NDArray[Any]:
    """Of every replica at the candidates, (nnz, K + 1)."""
    return said[here[0], :, here[1]]


def _of_all_labels(said: _Singles, fold: Any, here: _Part) -> NDArray[Any]:
    """Honest, and without the own target only, (b, 2, l)."""
    return np.stack([said[np.arange(len(said)), fold], said[:, 0]], axis=1)


def _honest_block(
    block: NDArray[Any],
    chosen: NDArray[np.intp],
    fold: NDArray[np.intp],
    coefficients: _Singles,
    shifts: _Singles,
) -> NDArray[Any]:
    """Scores of some rows by the replica that lacks them, (s, l)."""
    out, part = np.empty((len(chosen), shifts.shape[1])), block[chosen]
    for k in np.unique(fold):
        spots = np.flatnonzero(fold == k)
        out[spots] = part[spots] @ coefficients[k].T + shifts[k]
    return out


class LandmarkBench:
    """Kernel members on features, heard together.

    A replica's own rows are left out one by one by the diagonal of the smoother of all rows,
    its odds raised by the share of rows that the replica lacks; exact for the replica of all.
    The features are where their rows are: in memory, in a file, or with the workers of a
    cluster, who get targets at the candidates and coefficients, and give back the same.

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
        self.names, self.replicas = names, replicas
        n = len(replicas.fold)
        self.sample = np.arange(n)
        if n > _SAMPLE:
            self.sample = np.sort(np.random.RandomState(0).permutation(n)[:_SAMPLE])
        self.evidence = replicas.evidence.take(self.sample) if n > _SAMPLE else replicas.evidence
        widths = {width: Width(bases[width], replicas) for width in dict(kernels)}
        self.widths = [widths[width] for width, _ in kernels]
        self.systems = [widths[width].systems(ridge) for width, ridge in kernels]
        self.smoothers = [
            NystroemSmoother(bases[width], ridge, np.dtype(np.float64)) for width, ridge in kernels
        ]
        self.diagonals = [np.clip(each.diagonal, 1 / n, 1 - 1e-6) for each in self.smoothers]

    def listen(self, targets: Sequence[Values], seed: int = 0) -> LandmarkHearing:
        """Let all members learn from the targets of every replica."""
        self.heard, told = targets[0], self.join(targets)
        _, n_replicas, l = self.replicas.shape
        lengths = [len(rows) for rows in self.replicas.rows]
        means = np.array(
            [
                np.bincount(own.entries.labels, weights=values, minlength=l) / length
                for own, values, length in zip(self.replicas.own, targets, lengths, strict=True)
            ]
        )  # (K + 1, l)
        gathered = {width: width.gather(told) for width in dict.fromkeys(self.widths)}
        coefficients, shifts = [], []
        for width, systems in zip(self.widths, self.systems, strict=True):
            found = np.empty((n_replicas, l, width.features.shape[1]))
            shift = np.empty((n_replicas, l))
            for k, system in enumerate(systems):
                total, sums = width.totals[k], gathered[width][k]
                found[k] = la.cho_solve(system, (sums - np.outer(means[k], total)).T).T
                shift[k] = means[k] - found[k] @ total / lengths[k]
            coefficients.append(found.astype(np.float32))
            shifts.append(shift.astype(np.float32))
        return LandmarkHearing(self, coefficients, shifts, told)

    def join(self, targets: Sequence[Values]) -> _Singles:
        """Targets of every replica at the candidates of all rows, (nnz, K + 1); 0 if it has no."""
        entries = self.replicas.evidence.entries
        out = np.zeros((len(entries), len(targets)), dtype=np.float32)
        for k, values in enumerate(targets):
            out[self.kept(k), k] = values
        return out

    def kept(self, k: int) -> Any:
        """Candidate entries that a replica has."""
        entries = self.replicas.evidence.entries
        return slice(None) if k == 0 else (self.replicas.fold != k)[entries.rows]

    def models(self) -> list[list[Any]]:
        """Return what scores new rows, for every member, after the last hearing."""
        entries = self.replicas.evidence.entries
        return [[each.regress(entries, self.heard)[1]] for each in self.smoothers]


class LandmarkHearing:
    """What the members said, as coefficients of the features."""

    def __init__(
        self,
        bench: LandmarkBench,
        coefficients: list[_Singles],
        shifts: list[_Singles],
        told: _Singles,
    ) -> None:
        self.bench, self.told, self.evidence = bench, told, bench.evidence
        self.coefficients, self.shifts = coefficients, shifts
        self.honest = [self._honest(m) for m in range(len(coefficients))]

    def _honest(self, m: int) -> Scores:
        bench, features = self.bench, self.bench.widths[m].features
        parts = []
        for rows in features.slices:
            chosen = bench.sample[slice(*np.searchsorted(bench.sample, (rows.start, rows.stop)))]
            parts.append((chosen - rows.start, bench.replicas.fold[chosen]))
        said = features.map(_honest_block, parts, self.coefficients[m], self.shifts[m])
        return np.concatenate(list(said))

    def mix(self, scales: Sequence[Scale], weights: NDArray[Any]) -> list[Values]:
        """Mixture of all members at the candidates of every replica's own rows."""
        mixed = np.zeros_like(self.told)
        for weight, _, spots, said in self._said(_at_candidates, scales, weights):
            mixed[spots] += weight * said
        return [mixed[self.bench.kept(k), k] for k in range(mixed.shape[1])]

    def everywhere(
        self, scales: Sequence[Scale], weights: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Mixtures on all rows, (n, l): honest, and each without its own target only."""
        n, _, l = self.bench.replicas.shape
        mixed = np.zeros((n, 2, l), dtype=np.float32)
        for weight, rows, _, said in self._said(_of_all_labels, scales, weights):
            mixed[rows] += weight * said
        return mixed[:, 0], mixed[:, 1]

    def _said(
        self, function: Callable[..., Any], scales: Sequence[Scale], weights: NDArray[Any]
    ) -> Iterator[tuple[np.float32, slice, slice, Any]]:
        """Weight of every member that counts; rows, entries and what it says, block by block."""
        sizes = [len(rows) for rows in self.bench.replicas.rows]
        for m in np.flatnonzero(weights > _FAINT).tolist():
            width, diagonal = self.bench.widths[m], self.bench.diagonals[m]
            blocks = list(zip(width.features.slices, width.spots, width.placed, strict=True))
            parts = ((placed, self.told[spots], diagonal[rows]) for rows, spots, placed in blocks)
            member = self.coefficients[m], self.shifts[m], scales[m]
            common = function, sizes[0] / np.array(sizes), *member
            made = width.features.map(_softened, parts, *common)
            for (rows, spots, _), said in zip(blocks, made, strict=True):
                yield np.float32(weights[m]), rows, spots, said
