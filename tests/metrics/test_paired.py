"""Comparisons over splits against scipy, textbook formulas and degenerate cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from appellate.metrics import paired_comparison

scores = st.lists(st.integers(0, 100), min_size=3, max_size=7).map(lambda v: np.array(v) / 100)
pairs = st.integers(2, 7).flatmap(
    lambda n: st.tuples(*(st.lists(st.integers(0, 100), min_size=n, max_size=n),) * 2)
)


@pytest.fixture
def runs():
    rng = np.random.RandomState(0)
    second = 0.7 + 0.02 * rng.normal(size=10)
    return second + 0.01 + 0.01 * rng.normal(size=10), second


def test_agrees_with_scipy(runs):
    result = paired_comparison(*runs)
    student, ranks = stats.ttest_rel(*runs), stats.wilcoxon(*runs)
    assert result.t_statistic == student.statistic
    assert result.t_pvalue == pytest.approx(student.pvalue, rel=1e-12)
    assert (result.wilcoxon_statistic, result.wilcoxon_pvalue) == (ranks.statistic, ranks.pvalue)
    interval = student.confidence_interval(0.95)
    assert result.difference_interval == pytest.approx((interval.low, interval.high))
    assert result.means == pytest.approx((runs[0].mean(), runs[1].mean()))
    assert result.n_splits == 10


@pytest.mark.parametrize("test_share", [0.5, 0.2])
def test_corrected_test_by_hand(runs, test_share):
    d = runs[0] - runs[1]
    variance = np.sum((d - d.mean()) ** 2) / 9
    t = d.mean() / math.sqrt((1 / 10 + test_share / (1 - test_share)) * variance)
    result = paired_comparison(*runs, test_share=test_share)
    assert result.corrected_statistic == pytest.approx(t)
    assert result.corrected_pvalue == pytest.approx(2 * stats.t(9).sf(abs(t)))
    assert result.corrected_pvalue > result.t_pvalue


@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_effect_interval_inverts_the_noncentral_t(runs, confidence):
    result = paired_comparison(*runs, confidence=confidence)
    d = runs[0] - runs[1]
    assert result.effect_size == pytest.approx(d.mean() / d.std(ddof=1))
    low, high = result.effect_interval
    assert low < result.effect_size < high
    tail = (1 - confidence) / 2
    for bound, share in ((low, tail), (high, 1 - tail)):
        noncentral = stats.nct(9, bound * math.sqrt(10))
        assert noncentral.sf(result.t_statistic) == pytest.approx(share, abs=1e-4)


@settings(max_examples=40)  # scipy runs through all signs where ranks tie
@given(pairs)
def test_swapping_the_methods_changes_signs_only(pair):
    first, second = (np.array(each) / 100 for each in pair)
    here, there = paired_comparison(first, second), paired_comparison(second, first)
    for test in ("t", "wilcoxon", "corrected"):
        assert here.pvalue(test) == pytest.approx(there.pvalue(test), nan_ok=True)
        assert math.isnan(here.pvalue(test)) or 0 <= here.pvalue(test) <= 1
        swapped = {"win": "loss", "loss": "win", "tie": "tie"}
        assert there.outcome(test=test) == swapped[here.outcome(test=test)]
    assert here.difference == pytest.approx(-there.difference)
    assert here.effect_size == pytest.approx(-there.effect_size, nan_ok=True)
    assert here.effect_interval == pytest.approx(
        (-there.effect_interval[1], -there.effect_interval[0]), abs=1e-5, nan_ok=True
    )


@settings(max_examples=10)
@given(scores)
def test_identical_scores_are_a_tie(same):
    result = paired_comparison(same, same)
    assert math.isnan(result.t_pvalue)
    assert math.isnan(result.corrected_pvalue)
    assert math.isnan(result.effect_size)
    assert result.wilcoxon_pvalue == 1
    assert result.difference == 0
    assert {result.outcome(test=test) for test in ("t", "wilcoxon", "corrected")} == {"tie"}


def all_outcomes(first, second):
    result = paired_comparison(first, second)
    return {test: result.outcome(test=test) for test in ("t", "wilcoxon", "corrected")}


@pytest.mark.parametrize("base", [[0.5, 0.25, 0.75], [0.6, 0.7, 0.3]])
def test_constant_gain_has_no_t_test(base):
    result = paired_comparison(np.add(base, 0.1), base)
    assert math.isnan(result.t_pvalue)
    assert math.isnan(result.corrected_pvalue)
    assert math.isnan(result.effect_size)
    assert result.difference == pytest.approx(0.1)
    assert set(all_outcomes(np.add(base, 0.1), base).values()) == {"tie"}
    many = np.linspace(0, 0.5, 10)
    found = all_outcomes(many + 0.1, many)
    assert found == {"t": "tie", "wilcoxon": "win", "corrected": "tie"}, "ranks need no variance"


def test_two_splits_have_no_p_value():
    result = paired_comparison([0.7, 0.8], [0.6, 0.7001])
    assert all(math.isnan(result.pvalue(test)) for test in ("t", "wilcoxon", "corrected"))
    assert result.t_statistic > 100
    assert set(all_outcomes([0.7, 0.8], [0.6, 0.7001]).values()) == {"tie"}


def test_one_split_has_no_test():
    result = paired_comparison([0.7], [0.6])
    assert result.difference == pytest.approx(0.1)
    assert math.isnan(result.t_pvalue)
    assert math.isnan(result.corrected_pvalue)
    assert result.outcome() == "tie"
    assert "nan (paired t)" in str(result)


def test_one_split_without_a_difference():
    result = paired_comparison([0.7], [0.7])
    assert result.wilcoxon_statistic == 0
    assert math.isnan(result.wilcoxon_pvalue)
    assert result.outcome(test="wilcoxon") == "tie"


def test_failed_runs_are_refused():
    with pytest.raises(ValueError, match="second is NaN or infinite in row 1"):
        paired_comparison([0.5, 0.6, 0.7], [0.5, np.nan, 0.7])
    with pytest.raises(ValueError, match="one score for each"):
        paired_comparison([0.5, 0.6], [0.5])
    with pytest.raises(ValueError, match="one score for each"):
        paired_comparison([], [])


@pytest.mark.parametrize("option", [{"test_share": 0}, {"test_share": 1}, {"confidence": 1.5}])
def test_options_are_checked(option):
    with pytest.raises(ValueError, match="between 0"):
        paired_comparison([0.5, 0.6], [0.5, 0.7], **option)


def test_unknown_test(runs):
    with pytest.raises(ValueError, match="'t', 'wilcoxon', 'corrected'"):
        paired_comparison(*runs).pvalue("z")
