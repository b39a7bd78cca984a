"""Candidate entries against the same operations on dense matrices."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from appellate.numerics.entries import CandidateEntries

masks = hnp.arrays(bool, hnp.array_shapes(min_dims=2, max_dims=2, max_side=7)).map(
    lambda mask: mask | (~mask.any(axis=1, keepdims=True) & (np.arange(mask.shape[1]) == 0))
)


@given(masks, st.integers(0, 5))
def test_row_operations(mask, seed):
    matrix = np.random.RandomState(seed).randint(-2, 3, size=mask.shape).astype(float)
    entries = CandidateEntries(mask)
    values = entries.gather(matrix)
    hidden = np.where(mask, matrix, -np.inf)
    np.testing.assert_array_equal(entries.scatter(values), np.where(mask, matrix, 0))
    np.testing.assert_array_equal(entries.to_sparse(values).toarray(), np.where(mask, matrix, 0))
    np.testing.assert_array_equal(entries.row_sum(values), np.where(mask, matrix, 0).sum(axis=1))
    np.testing.assert_array_equal(entries.row_max(values), hidden.max(axis=1))
    np.testing.assert_array_equal(entries.argmax(values), hidden.argmax(axis=1))
    np.testing.assert_allclose(entries.row_sum(entries.uniform()), 1)
    best = (hidden == hidden.max(axis=1, keepdims=True)).sum(axis=1)
    labels, n_ties = entries.decide(values)
    np.testing.assert_array_equal(labels, hidden.argmax(axis=1))
    assert n_ties == (best > 1).sum()


@given(masks)
def test_label_order(mask):
    entries = CandidateEntries(mask)
    order, starts = entries.by_label
    for label in range(mask.shape[1]):
        rows = entries.rows[order[starts[label] : starts[label + 1]]]
        np.testing.assert_array_equal(rows, np.flatnonzero(mask[:, label]))
