"""Metrics against hand-computed cases and limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from appellate.metrics import broken_ratio, correction_ratio, covering_rate, transductive_accuracy

labels = st.lists(st.integers(0, 3), min_size=8, max_size=8)


def test_covering_rate_counts_predictions_among_candidates():
    candidates = np.array([[1, 1, 0], [0, 1, 0], [1, 0, 1]])
    assert covering_rate(candidates, [1, 0, 2]) == pytest.approx(2 / 3)
    assert covering_rate(candidates, ["b", "b", "z"], classes=list("abc")) == pytest.approx(2 / 3)


def test_covering_rate_checks_lengths():
    with pytest.raises(ValueError, match="3"):
        covering_rate(["a", "b"], ["a", "b", "c"])


@given(labels, labels, labels)
def test_ratios_account_for_the_change_of_accuracy(truth, verdict, appeal):
    before, after = transductive_accuracy(truth, verdict), transductive_accuracy(truth, appeal)
    corrected, broken = (
        correction_ratio(truth, verdict, appeal),
        broken_ratio(truth, verdict, appeal),
    )
    gained = 0 if math.isnan(corrected) else corrected * (1 - before)
    lost = 0 if math.isnan(broken) else broken * before
    assert after == pytest.approx(before + gained - lost)
    assert math.isnan(corrected) == (before == 1)
    assert math.isnan(broken) == (before == 0)


def test_ratios_check_shapes():
    with pytest.raises(ValueError, match="one label a sample"):
        correction_ratio([0, 1], [0, 1], [0])
