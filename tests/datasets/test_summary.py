"""Counts of candidate sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from appellate.datasets import summarize_candidates


def test_by_hand():
    summary = summarize_candidates([["a"], ["a", "b"], ["a", "b", "c"], ["c"]], list("aaca"))
    assert summary.to_dict() == {
        "n_samples": 4,
        "n_classes": 3,
        "mean_size": 1.75,
        "min_size": 1,
        "max_size": 3,
        "singleton_share": 0.5,
        "full_share": 0.25,
        "truth_coverage": 0.75,
    }
    assert "75.0%" in str(summary)
    assert "truth" not in str(summarize_candidates(np.eye(2)))


@given(arrays(bool, st.tuples(st.integers(1, 8), st.integers(1, 5))), st.integers(0, 99))
def test_ranges(matrix, seed):
    matrix[:, 0] |= ~matrix.any(axis=1)
    truth = np.random.default_rng(seed).integers(matrix.shape[1], size=len(matrix))
    summary = summarize_candidates(matrix, truth)
    assert 1 <= summary.min_size <= summary.mean_size <= summary.max_size <= matrix.shape[1]
    for share in (summary.singleton_share, summary.full_share, summary.truth_coverage):
        assert 0 <= share <= 1
    assert summarize_candidates(matrix, matrix.argmax(axis=1)).truth_coverage == 1


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        (["a"], "X has 1 rows|inconsistent"),
        ([["a"], ["b"]], r"y_true has shape \(2, 1\)"),
        (["a", None], "missing labels"),
        (["a", "z"], "unknown class 'z'"),
    ],
)
def test_mistakes(truth, message):
    with pytest.raises(ValueError, match=message):
        summarize_candidates(["a|b", "b"], truth)
