"""The kernel members of a jury on many rows: Nystroem features, read in blocks.

In the features Z of `appellate.numerics.smoothers` a ridge regression has r coefficients a label,
and a replica that lacks fold f is a correction of the small system,

    (I - Z_f'Z_f - m m'/n_a + ridge diag(1/s)) c = Z_a'Q_a - m mean(Q_a)',   m = Z_a'1,

so that nothing grows faster than the number of rows. Temperatures, weights and the criterion are
found on a sample of 20,000 rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from appellate.evidence.scales import Scale
from appellate.methods.jury.members import Replicas, Scores, Smoothed
from appellate.numerics.entries import Values
from appellate.numerics.smoothers import Basis, NystroemSmoother

_SAMPLE = 20_000
_PIECE = 2**21  # outputs of all replicas that are under way in a block
_FAINT = 1e-6  # weight below which a member does not change the mixture
_Singles = NDArray[np.float32]
_Part = tuple[Any, ...]


class Features:
    """Features of one kernel, and what is left of their moments without each fold."""

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
    smooth: _Singles | None,
) -> NDArray[Any]:
    """Apply a function to a member's output on the rows, their own targets left out.

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
        if smooth is not None:
            said = said @ smooth
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


def _held_out_block(
    block: NDArray[Any],
    chosen: NDArray[np.intp],
    fold: NDArray[np.intp],
    coefficients: _Singles,
    shifts: _Singles,
    smooth: _Singles | None,
) -> NDArray[Any]:
    """Scores of some rows by the replica that lacks them, (s, l)."""
    out, part = np.empty((len(chosen), shifts.shape[1])), block[chosen]
    for k in np.unique(fold):
        spots = np.flatnonzero(fold == k)
        out[spots] = part[spots] @ coefficients[k].T + shifts[k]
    return out if smooth is None else out @ smooth


class LandmarkBench:
    """Kernel members on Nystroem features, which learn together.

    A replica's own rows are left out one by one by the diagonal of the smoother of all rows,
    its odds raised by the share of rows that the replica lacks; exact for the replica of all.
    The features are where their rows are: in memory, in a file, or with the workers of a
    cluster, who get targets at the candidates and coefficients, and give back the same.

    Cost: n r^2 multiply-adds once for every kernel; a round 2 n r (K + 1) l for every member.
    Memory: the features, and some candidate entries.

    Parameters
    ----------
    members : sequence of (str, Basis, float)
        Name, features of all rows and ridge of every member.
    replicas : Replicas
        Which rows each replica has.
    """

    def __init__(self, members: Sequence[tuple[str, Basis, float]], replicas: Replicas) -> None:
        self.replicas = replicas
        self.names = [name for name, _, _ in members]
        n = len(replicas.fold)
        self.sample = np.arange(n)
        if n > _SAMPLE:
            self.sample = np.sort(np.random.RandomState(0).permutation(n)[:_SAMPLE])
        self.evidence = replicas.evidence.take(self.sample) if n > _SAMPLE else replicas.evidence
        made: dict[int, Features] = {}
        for _, basis, _ in members:
            if id(basis) not in made:
                made[id(basis)] = Features(basis, replicas)
        self.features = [made[id(basis)] for _, basis, _ in members]
        self.systems = [made[id(basis)].systems(ridge) for _, basis, ridge in members]
        self.smoothers = [
            NystroemSmoother(basis, ridge, np.dtype(np.float64)) for _, basis, ridge in members
        ]
        self.diagonals = [np.clip(each.diagonal, 1 / n, 1 - 1e-6) for each in self.smoothers]

    def learn(
        self, targets: Sequence[Values], seed: int = 0, smooth: Scores | None = None
    ) -> LandmarkOutputs:
        """Let all members learn from the targets of every replica.

        `smooth` shares their scores between neighbouring labels (`appellate.evidence.order`).
        """
        told = self.join(targets)
        _, n_replicas, l = self.replicas.shape
        lengths = [len(rows) for rows in self.replicas.rows]
        means = np.array(
            [
                np.bincount(own.entries.labels, weights=values, minlength=l) / length
                for own, values, length in zip(self.replicas.own, targets, lengths, strict=True)
            ]
        )  # (K + 1, l)
        gathered = {each: each.gather(told) for each in dict.fromkeys(self.features)}
        coefficients, shifts = [], []
        for features, systems in zip(self.features, self.systems, strict=True):
            found = np.empty((n_replicas, l, features.features.shape[1]))
            shift = np.empty((n_replicas, l))
            for k, system in enumerate(systems):
                total, sums = features.totals[k], gathered[features][k]
                found[k] = la.cho_solve(system, (sums - np.outer(means[k], total)).T).T
                shift[k] = means[k] - found[k] @ total / lengths[k]
            coefficients.append(found.astype(np.float32))
            shifts.append(shift.astype(np.float32))
        return LandmarkOutputs(self, targets[0], coefficients, shifts, told, smooth)

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


class LandmarkOutputs:
    """Outputs of the members, as coefficients of the features."""

    def __init__(
        self,
        bench: LandmarkBench,
        targets: Values,
        coefficients: list[_Singles],
        shifts: list[_Singles],
        told: _Singles,
        smooth: Scores | None,
    ) -> None:
        self.bench = bench
        self.names = bench.names
        self.evidence = bench.evidence
        self.targets = targets
        self.told = told
        self.smooth = smooth
        self._single = None if smooth is None else smooth.astype(np.float32)
        self.coefficients = coefficients
        self.shifts = shifts
        self.held_out = [self._held_out(m) for m in range(len(coefficients))]

    def models(self) -> list[list[Any]]:
        """Return what scores new rows, for every member."""
        entries = self.bench.replicas.evidence.entries
        found = [each.regress(entries, self.targets)[1] for each in self.bench.smoothers]
        smooth = self.smooth
        return [[each if smooth is None else Smoothed(each, smooth)] for each in found]

    def _held_out(self, m: int) -> Scores:
        """Scores of the sample's rows by the replica that lacks them, (s, l)."""
        bench, features = self.bench, self.bench.features[m].features
        parts = []
        for rows in features.slices:
            chosen = bench.sample[slice(*np.searchsorted(bench.sample, (rows.start, rows.stop)))]
            parts.append((chosen - rows.start, bench.replicas.fold[chosen]))
        member = self.coefficients[m], self.shifts[m], self._single
        said = features.map(_held_out_block, parts, *member)
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
            own, diagonal = self.bench.features[m], self.bench.diagonals[m]
            blocks = list(zip(own.features.slices, own.spots, own.placed, strict=True))
            parts = ((placed, self.told[spots], diagonal[rows]) for rows, spots, placed in blocks)
            member = self.coefficients[m], self.shifts[m], scales[m], self._single
            common = function, sizes[0] / np.array(sizes), *member
            made = own.features.map(_softened, parts, *common)
            for (rows, spots, _), said in zip(blocks, made, strict=True):
                yield np.float32(weights[m]), rows, spots, said
