"""Passes over tall features that are read in blocks: what a smoother of low rank is made of.

A smoother of low rank, ``S = 1 1'/n + Z diag(w) Z'``, maps candidate entries of D to those of
``S D`` in two passes over the features Z: one *gathers* ``D'Z``, (l, r), touching for every sample
the few labels that it has, one *evaluates* the candidate entries of ``Z C'`` for (l, r)
coefficients C. Nothing of size n x n or n x l is formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba as nb
import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from appellate.numerics.blocks import Blocks
from appellate.numerics.entries import CandidateEntries, Values

Placed = tuple[CandidateEntries, Sequence[Any]]


def lay_out(features: Blocks, entries: CandidateEntries) -> Placed:
    """Bring labels and row starts of the candidates to the blocks, for many passes."""
    parts = []
    for rows in features.slices:
        indptr = entries.indptr[rows.start : rows.stop + 1]
        labels = entries.labels[indptr[0] : indptr[-1]].astype(np.int32)
        parts.append((labels, (indptr - indptr[0]).astype(np.int32)))
    return entries, features.place(parts)


def gather(features: Blocks, placed: Placed, values: Values) -> NDArray[np.float64]:
    """``D'Z``, (l, r), of a matrix D given by its candidate entries."""
    entries, candidates = placed
    total = np.zeros((placed[0].shape[1], features.shape[1]))
    parts = [
        (part, values[entries.indptr[rows.start] : entries.indptr[rows.stop]])
        for rows, part in zip(features.slices, candidates, strict=True)
    ]
    for part in features.map(_gather, parts, entries.shape[1]):
        total += part
    return total


def evaluate_kernel(
    features: Blocks, placed: Placed, coefficients: NDArray[Any], shift: NDArray[Any]
) -> Values:
    """Candidate entries of ``Z C' + 1 shift'`` for (l, r) coefficients C."""
    parts = [(part,) for part in placed[1]]
    return np.concatenate(list(features.map(_evaluate, parts, coefficients, shift)))


def product(features: Blocks, coefficients: NDArray[Any], shift: NDArray[Any]) -> NDArray[Any]:
    """``Z C' + 1 shift'``, (n, l): the one matrix of this size that a fit leaves behind."""
    out = np.empty((len(features), len(coefficients)), dtype=coefficients.dtype)
    results = features.map(product_block, None, coefficients, shift)
    for rows, part in zip(features.slices, results, strict=True):
        out[rows] = part
    return out


def moments(features: Blocks) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Column sums, (r,), and ``Z'Z``, (r, r), in double precision."""
    total, gram = features.fold(_add_moments)
    gram += np.tril(gram, -1).T
    return total, gram


def turn(features: Blocks, turn: NDArray[Any], offset: NDArray[Any]) -> None:
    """Overwrite Z by ``Z turn - 1 offset'``, which may be narrower but not wider."""
    common = turn.astype(features.dtype).T, -offset.astype(features.dtype)
    features.rewrite(product_block, turn.shape[1], *common)


def weighted_lengths(features: Blocks, weights: NDArray[Any]) -> NDArray[np.float64]:
    """Diagonal of ``Z diag(w) Z'``, (n,)."""
    return np.concatenate(list(features.map(_length_block, None, weights)))


def product_block(
    features: NDArray[Any], coefficients: NDArray[Any], shift: NDArray[Any]
) -> NDArray[Any]:
    """``Z C' + 1 shift'`` of one block."""
    return np.asarray(features @ coefficients.T + shift)


def _length_block(features: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.float64]:
    return np.einsum("ij,ij,j->i", features, features, weights)


def _add_moments(block: NDArray[Any], so_far: Any) -> tuple[Any, Any]:
    exact, r = block.astype(np.float64), block.shape[1]
    total, gram = so_far or (np.zeros(r), np.zeros((r, r), order="F"))
    total += exact.sum(axis=0)
    return total, la.blas.dsyrk(1.0, exact.T, beta=1.0, c=gram, lower=1, overwrite_c=1)


@nb.njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _gather(features, candidates, values, n_labels):  # type: ignore[no-untyped-def]
    """``D'Z`` of one block, (l, r), added up in double precision."""
    labels, indptr = candidates
    out = np.zeros((n_labels, features.shape[1]))
    for i in range(indptr.size - 1):
        for entry in range(indptr[i], indptr[i + 1]):
            value = values[entry]
            if value != 0:
                row = out[labels[entry]]
                for p in range(row.size):
                    row[p] += value * features[i, p]
    return out


@nb.njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _evaluate(features, candidates, coefficients, shift):  # type: ignore[no-untyped-def]
    """Candidate entries of ``Z C' + 1 shift'`` of one block."""
    labels, indptr = candidates
    out = np.empty(labels.size, coefficients.dtype)
    for i in range(indptr.size - 1):
        for entry in range(indptr[i], indptr[i + 1]):
            row = coefficients[labels[entry]]
            total = shift[labels[entry]]
            for p in range(row.size):
                total += row[p] * features[i, p]
            out[entry] = total
    return out
