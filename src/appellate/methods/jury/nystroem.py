"""The kernel members of a jury on many rows: Nystroem features, read in blocks.

In the features Z of `appellate.numerics.smoothers` a ridge regression has r coefficients per
label, and a replica that lacks fold f is a correction of the small system,

    (I - Z_f'Z_f - m m'/n_a + ridge diag(1/s)) c = Z_a'Q_a - m mean(Q_a)',   m = Z_a'1,

so that nothing grows faster than the number of rows. Temperatures, weights and the criterion are
found on a sample of 20,000 rows.

`exact` has the same two functions, `prepare` and `fit_outputs`, for the whole kernel matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from appellate.core.problem import Problem
from appellate.evidence.likelihood import Evidence
from appellate.evidence.scales import Scale
from appellate.methods.jury.members import Doubles, FittedMember, Replicas
from appellate.methods.jury.rounds import FitKernels, NamedKernel, Outputs
from appellate.numerics.blocks import Blocks
from appellate.numerics.entries import Values
from appellate.numerics.smoothers import NystroemSmoother

_SAMPLE = 20_000
_PIECE = 2**21  # outputs of all replicas that are under way in a block
_FAINT = 1e-6  # weight below which a member does not change the mixture
_Singles = NDArray[np.float32]
_Part = tuple[Any, ...]


def prepare(problem: Problem, kernels: Sequence[NamedKernel], replicas: Replicas) -> FitKernels:
    """Make the features; return the function that fits the members to targets."""
    n = problem.n_rows
    sample = np.arange(n)
    evidence = replicas.evidence
    if n > _SAMPLE:
        sample = np.sort(np.random.RandomState(0).permutation(n)[:_SAMPLE])
        evidence = evidence.take(sample)
    laid_out: dict[int, Any] = {}  # once for all members of a kernel
    members = []
    for name, kernel, ridge in kernels:
        basis = problem.basis(kernel)
        if id(basis) not in laid_out:
            laid_out[id(basis)] = _lay_out(basis.features, replicas)
        spans, placed, grams, totals = laid_out[id(basis)]
        systems = []
        for gram, total, rows in zip(grams, totals, replicas.rows, strict=True):
            matrix = -gram - np.outer(total, total / len(rows))
            matrix[np.diag_indices(len(matrix))] += 1 + ridge / basis.strengths
            systems.append(la.cho_factor(matrix))
        smoother = NystroemSmoother(basis, ridge, np.dtype(np.float64))
        diagonal = np.clip(smoother.diagonal, 1 / n, 1 - 1e-6)
        members.append(NystroemMember(name, smoother, diagonal, spans, placed, totals, systems))
    return partial(fit_outputs, members, replicas, sample, evidence)


def _lay_out(features: Blocks, replicas: Replicas) -> _Part:
    """Return candidate entries of every block, here and placed, and the moments of the folds."""
    entries = replicas.evidence.entries
    spans = [slice(entries.indptr[s.start], entries.indptr[s.stop]) for s in features.slices]
    parts = []
    for rows, span in zip(features.slices, spans, strict=True):
        fold = replicas.fold[rows].astype(np.int32)
        within = (entries.rows[span] - rows.start).astype(np.int32)
        parts.append((within, entries.labels[span].astype(np.int32), fold))
    folds = [(fold, replicas.shape[1]) for _, _, fold in parts]
    grams, totals = features.fold(_fold_moments, folds)
    return spans, features.place(parts), grams, totals


def _fold_moments(
    block: NDArray[Any], fold: NDArray[np.int32], n_replicas: int, so_far: Any
) -> tuple[Doubles, Doubles]:
    """Add ``Z_f'Z_f``, (K + 1, r, r), and ``-Z_f'1``, (K + 1, r), of every fold; replica 0: 0."""
    r = block.shape[1]
    grams, totals = so_far or (np.zeros((n_replicas, r, r)), np.zeros((n_replicas, r)))
    for k in range(1, n_replicas):
        part = block[fold == k]
        grams[k] += part.T @ part
        totals[k] -= part.sum(axis=0)
    return grams, totals


@dataclass(frozen=True, eq=False)
class NystroemMember:
    """Ridge regression on Nystroem features, and what its replicas need.

    The features are where their rows are: in memory, in a file, or with the workers of a
    cluster. Workers get targets at the candidates and coefficients, and return the same.

    A replica's own rows are left out one by one by the diagonal of the smoother of all rows. Its
    odds are raised by the share of rows that the replica lacks; this is exact for the replica of
    all rows.

    Cost: n r^2 multiply-adds once per kernel; a round 2 n r (K + 1) l per member. Memory: the
    features, and some candidate entries.

    Attributes
    ----------
    name : str
        What it is called.
    smoother : NystroemSmoother
        Regression on all rows; it has the features Z, (n, r), in blocks.
    diagonal : ndarray, shape (n,)
        Share of every row's own target in its output.
    spans : list of slice
        Candidate entries of every block.
    placed : sequence of tuple
        Rows and labels of these entries and the fold of every row, where the block is.
    totals : ndarray, shape (K + 1, r)
        ``Z_a'1`` of the rows of every replica.
    systems : list of tuple
        Cholesky factor of every replica's small system.
    """

    name: str
    smoother: NystroemSmoother
    diagonal: Values
    spans: list[slice]
    placed: Sequence[_Part]
    totals: Doubles
    systems: list[Any]

    @property
    def features(self) -> Blocks:
        """Z."""
        return self.smoother.features

    def gather(self, targets: _Singles, shape: tuple[int, int]) -> Doubles:
        """``Q'Z`` of every replica, (K + 1, l, r); `shape` is (K + 1, l)."""
        total = np.zeros((shape[0] * shape[1], self.features.shape[1]))
        parts = ((own, targets[s]) for own, s in zip(self.placed, self.spans, strict=True))
        for part in self.features.map(_gather_block, parts, shape[1]):
            total += part
        return total.reshape(*shape, -1)


def fit_outputs(
    members: Sequence[NystroemMember],
    replicas: Replicas,
    sample: NDArray[np.intp],
    evidence: Evidence,
    targets: list[Values],
    smooth: Doubles | None = None,
) -> NystroemOutputs:
    """Let all members learn from the targets of every replica.

    Parameters
    ----------
    members : sequence of NystroemMember
        The members.
    replicas : Replicas
        Which rows each replica has.
    sample : ndarray of int, shape (s,)
        Rows on which scales and weights are found.
    evidence : Evidence
        Evidence of the sample.
    targets : list of ndarray
        Targets of every replica, as candidate entries.
    smooth : ndarray, shape (l, l), default=None
        Shares the scores between neighbouring labels (`appellate.evidence.order`).
    """
    _, n_replicas, l = replicas.shape
    joined = _align(targets, replicas)
    lengths = [len(rows) for rows in replicas.rows]
    means = np.empty((n_replicas, l))
    for k, (part, values) in enumerate(zip(replicas.parts, targets, strict=True)):
        means[k] = np.bincount(part.entries.labels, weights=values, minlength=l) / lengths[k]
    gathered: dict[int, Doubles] = {}  # once for all members of a kernel
    coefficients = []
    shifts = []
    for member in members:
        key = id(member.features)
        if key not in gathered:
            gathered[key] = member.gather(joined, (n_replicas, l))
        found = np.empty((n_replicas, l, member.features.shape[1]))
        shift = np.empty((n_replicas, l))
        for k, system in enumerate(member.systems):
            total = member.totals[k]
            right = gathered[key][k] - np.outer(means[k], total)
            found[k] = la.cho_solve(system, right.T).T
            shift[k] = means[k] - found[k] @ total / lengths[k]
        coefficients.append(found.astype(np.float32))
        shifts.append(shift.astype(np.float32))
    held_out = [
        _score_sample(member.features, sample, replicas.fold, found, shift, _single(smooth))
        for member, found, shift in zip(members, coefficients, shifts, strict=True)
    ]
    return NystroemOutputs(
        targets=targets,
        rows=sample,
        evidence=evidence,
        held_out=held_out,
        replicas=replicas,
        members=members,
        joined=joined,
        coefficients=coefficients,
        shifts=shifts,
        smooth=smooth,
    )


def _single(matrix: Doubles | None) -> _Singles | None:
    return None if matrix is None else matrix.astype(np.float32)


def _align(targets: Sequence[Values], replicas: Replicas) -> _Singles:
    """Targets of every replica at the candidates of all rows, (nnz, K + 1); 0 if it lacks them."""
    out = np.zeros((len(replicas.evidence.entries), len(targets)), dtype=np.float32)
    for k, values in enumerate(targets):
        out[_kept(replicas, k), k] = values
    return out


def _kept(replicas: Replicas, k: int) -> Any:
    """Candidate entries that a replica has."""
    return slice(None) if k == 0 else (replicas.fold != k)[replicas.evidence.entries.rows]


def _score_sample(
    features: Blocks,
    sample: NDArray[np.intp],
    fold: NDArray[np.intp],
    coefficients: _Singles,
    shifts: _Singles,
    smooth: _Singles | None,
) -> Doubles:
    """Doubles of the sample's rows by the replica that lacks them, (s, l)."""
    parts = []
    for rows in features.slices:
        chosen = sample[slice(*np.searchsorted(sample, (rows.start, rows.stop)))]
        parts.append((chosen - rows.start, fold[chosen]))
    found = features.map(_held_out_block, parts, coefficients, shifts, smooth)
    return np.concatenate(list(found))


@dataclass(frozen=True, eq=False)
class NystroemOutputs(Outputs):
    """Outputs of the members, as coefficients of the features; a sample of rows is judged.

    Attributes
    ----------
    members : sequence of NystroemMember
        The members.
    joined : ndarray, shape (nnz, K + 1)
        The targets of every replica at the candidates of all rows.
    coefficients, shifts : list of ndarray, shape (K + 1, l, r) and (K + 1, l)
        Every member's regressions.
    smooth : ndarray, shape (l, l), or None
        Shares the scores between neighbouring labels.
    """

    members: Sequence[NystroemMember]
    joined: _Singles
    coefficients: list[_Singles]
    shifts: list[_Singles]
    smooth: Doubles | None

    def mix(self, scales: Sequence[Scale], weights: NDArray[Any]) -> list[Values]:
        """Mixture of the members at the candidates of every replica's own rows."""
        mixed = np.zeros_like(self.joined)
        for weight, _, span, part in self._soften(_at_candidates, scales, weights):
            mixed[span] += weight * part
        return [mixed[_kept(self.replicas, k), k] for k in range(mixed.shape[1])]

    def everywhere(
        self, scales: Sequence[Scale], weights: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Mixtures on all rows, (n, l): held out, and with only the own target left out."""
        n, _, l = self.replicas.shape
        mixed = np.zeros((n, 2, l), dtype=np.float32)
        for weight, rows, _, part in self._soften(_of_all_labels, scales, weights):
            mixed[rows] += weight * part
        return mixed[:, 0], mixed[:, 1]

    def fitted(self, scales: Sequence[Scale], weights: NDArray[Any]) -> list[FittedMember]:
        """Return the members as they judge new rows."""
        found = []
        for member, weight, scale in zip(self.members, weights.tolist(), scales, strict=True):
            model = member.smoother.regress(self.replicas.evidence.entries, self.targets[0])[1]
            found.append(FittedMember(member.name, weight, scale, [model], self.smooth))
        return found

    def _soften(
        self, function: Callable[..., Any], scales: Sequence[Scale], weights: NDArray[Any]
    ) -> Iterator[tuple[np.float32, slice, slice, Any]]:
        """Yield weight, rows, entries and a function of the probabilities, block by block."""
        sizes = [len(rows) for rows in self.replicas.rows]
        growth = sizes[0] / np.array(sizes)
        for m in np.flatnonzero(weights > _FAINT).tolist():
            member = self.members[m]
            blocks = list(zip(member.features.slices, member.spans, member.placed, strict=True))
            parts = (
                (placed, self.joined[span], member.diagonal[rows]) for rows, span, placed in blocks
            )
            found = member.features.map(
                _soften_block,
                parts,
                function,
                growth,
                self.coefficients[m],
                self.shifts[m],
                scales[m],
                _single(self.smooth),
            )
            for (rows, span, _), part in zip(blocks, found, strict=True):
                yield np.float32(weights[m]), rows, span, part


# -- work on one block, where its rows are ---------------------------------------------------


def _pieces(
    block: NDArray[Any], placed: _Part, targets: _Singles, n_labels: int
) -> Iterator[tuple[slice, _Singles, tuple[Any, Any, Any]]]:
    """Rows of a block, their targets in every replica, (b, K + 1, l), and the candidates."""
    rows, labels, _ = placed
    size = max(1, _PIECE // (targets.shape[1] * n_labels))
    for start, stop in pairwise([*range(0, len(block), size), len(block)]):
        span = slice(*np.searchsorted(rows, (start, stop)))
        here = rows[span] - start, labels[span], span
        out = np.zeros((stop - start, targets.shape[1], n_labels), dtype=np.float32)
        out[here[0], :, here[1]] = targets[span]
        yield slice(start, stop), out, here


def _gather_block(
    block: NDArray[Any], placed: _Part, targets: _Singles, n_labels: int
) -> NDArray[Any]:
    total = np.zeros((targets.shape[1] * n_labels, block.shape[1]))
    for rows, dense, _ in _pieces(block, placed, targets, n_labels):
        total += dense.reshape(len(dense), -1).T @ block[rows]
    return total


def _soften_block(
    block: NDArray[Any],
    placed: _Part,
    targets: _Singles,
    diagonal: Values,
    function: Callable[..., Any],
    growth: Values,
    coefficients: _Singles,
    shifts: _Singles,
    scale: Scale,
    smooth: _Singles | None,
) -> NDArray[Any]:
    """Apply a function to a member's probabilities of the rows, their own targets left out.

    A row has some share in its own output, the diagonal of the smoother. The odds of this share
    grow as the replica has fewer rows; the share is 0 in a replica that lacks the row.
    """
    odds = (diagonal / (1 - diagonal))[:, np.newaxis] * growth
    shares = (odds / (1 + odds)).astype(np.float32)
    fold = placed[2]
    held = np.flatnonzero(fold)
    shares[held, fold[held]] = 0
    flat = coefficients.reshape(shifts.size, -1)
    out = []
    for rows, dense, here in _pieces(block, placed, targets, shifts.shape[1]):
        own = shares[rows, :, np.newaxis]
        scores = (block[rows] @ flat.T).reshape(dense.shape)
        scores += shifts
        scores -= own * dense
        scores /= 1 - own
        if smooth is not None:
            scores = scores @ smooth
        scores += np.float32(scale.shift)
        scores /= np.float32(scale.temperature)
        scores -= scores.max(axis=2, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=2, keepdims=True)
        out.append(function(scores, fold[rows], here))
    return np.concatenate(out)


def _at_candidates(probabilities: _Singles, fold: Any, here: _Part) -> NDArray[Any]:
    """Output of every replica at the candidates, (nnz, K + 1)."""
    return probabilities[here[0], :, here[1]]


def _of_all_labels(probabilities: _Singles, fold: Any, here: _Part) -> NDArray[Any]:
    """Held out, and with only the own target left out, (b, 2, l)."""
    held_out = probabilities[np.arange(len(probabilities)), fold]
    return np.stack([held_out, probabilities[:, 0]], axis=1)


def _held_out_block(
    block: NDArray[Any],
    chosen: NDArray[np.intp],
    fold: NDArray[np.intp],
    coefficients: _Singles,
    shifts: _Singles,
    smooth: _Singles | None,
) -> NDArray[Any]:
    """Doubles of some rows by the replica that lacks them, (s, l)."""
    out = np.empty((len(chosen), shifts.shape[1]))
    part = block[chosen]
    for k in np.unique(fold):
        places = np.flatnonzero(fold == k)
        out[places] = part[places] @ coefficients[k].T + shifts[k]
    return out if smooth is None else out @ smooth
