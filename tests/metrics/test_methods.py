"""Comparisons over data sets against scipy, scikit-posthocs and counts by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

import appellate.metrics.methods as methods_module
from appellate.metrics import compare_methods, paired_comparison, win_tie_loss

# Demsar (2006), Table 6: AUC of four variants of C4.5 on fourteen data sets.
DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ]
)


def test_demsars_example():
    result = compare_methods(DEMSAR, methods=["C4.5", "+m", "+cf", "+m+cf"])
    assert result.average_ranks == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=5e-4)
    tied = 1 - (60 + 3 * 6) / (14 * 4 * 15)  # scipy corrects for ties, his 9.28 does not
    assert result.friedman_statistic * tied == pytest.approx(9.28, abs=0.01)
    assert result.friedman_pvalue < 0.05
    q = 2.569  # critical value of Nemenyi's test for four methods at 0.05
    critical = q * math.sqrt(4 * 5 / (6 * 14))
    gaps = np.abs(result.average_ranks[:, None] - result.average_ranks)
    np.testing.assert_array_equal(result.posthoc_pvalues < 0.05, gaps > critical)
    assert "+m+cf  rank 1.96\n" in str(result)


@given(arrays(float, (6, 3), elements=st.integers(0, 50).map(lambda v: v / 50)))
def test_ranks_and_friedman(scores):
    result = compare_methods(scores, posthoc=None)
    assert result.average_ranks.sum() == pytest.approx(6)  # 1 + 2 + 3
    assert ((result.average_ranks >= 1) & (result.average_ranks <= 3)).all()
    if all(len(set(row)) == 1 for row in scores):
        assert math.isnan(result.friedman_pvalue)
    else:
        assert result.friedman_pvalue == pytest.approx(stats.friedmanchisquare(*scores.T).pvalue)
    order = [2, 0, 1]
    permuted = compare_methods(scores[:, order], posthoc=None)
    np.testing.assert_allclose(permuted.average_ranks, result.average_ranks[order])


def test_posthoc_is_symmetric():
    pairs = compare_methods(DEMSAR).posthoc_pvalues
    np.testing.assert_allclose(pairs, pairs.T)
    np.testing.assert_allclose(np.diag(pairs), 1)
    assert ((pairs >= 0) & (pairs <= 1)).all()


def test_containers_agree():
    names = ["a", "b", "c", "d"]
    by_name = dict(zip(names, DEMSAR.T, strict=True))
    for scores in (by_name, pd.DataFrame(by_name), pl.DataFrame(by_name)):
        result = compare_methods(scores, posthoc=None)
        assert result.methods == tuple(names)
        np.testing.assert_allclose(
            result.average_ranks, compare_methods(DEMSAR, posthoc=None).average_ranks
        )
    assert compare_methods(DEMSAR, posthoc=None).methods == ("0", "1", "2", "3")


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        (DEMSAR[:, :2], {}, "paired_comparison"),
        (DEMSAR[:1], {}, "two data sets"),
        (DEMSAR[0], {}, "data sets and methods"),
        (DEMSAR, {"methods": ["a"]}, "1 methods are named for 4"),
        (DEMSAR, {"posthoc": "tukey"}, "posthoc 'tukey'"),
        (np.where(DEMSAR == 1, np.nan, DEMSAR), {}, "row 9"),
        ({"a": [1, 2], "b": [1], "c": [1, 2]}, {}, "every method"),
        ({"a": [1, 2], "b": [1, 2], "c": [1, 2]}, {"methods": list("abc")}, "leave methods="),
    ],
)
def test_bad_scores_are_refused(scores, options, message):
    with pytest.raises(ValueError, match=message):
        compare_methods(scores, **options)


def test_missing_extra_is_named(monkeypatch):
    monkeypatch.setattr(methods_module, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"appellate\[bench\]"):
        compare_methods(DEMSAR)
    assert compare_methods(DEMSAR, posthoc=None).posthoc_pvalues is None


def test_win_tie_loss_counts():
    noise = np.array([0.01, -0.01, 0.005, 0.0, -0.005])
    base = 0.5 + noise
    scores = {
        "won": {"ours": base + 0.1 + noise[::-1] / 5, "base": base, "other": base},
        "lost": {"ours": base - 0.1 + noise[::-1] / 5, "base": base},
        "tied": {"ours": base, "base": base, "other": base + noise[::-1]},
    }
    table = win_tie_loss(scores, "ours")
    assert table.outcomes["base"] == {"won": "win", "lost": "loss", "tied": "tie"}
    assert table.counts("base") == (1, 1, 1)
    assert table.counts("other") == (1, 1, 0)
    assert table.total == (2, 2, 1)
    assert str(table).splitlines()[-1] == "other  1/1/0"
    strict = win_tie_loss(scores, "ours", test="wilcoxon")
    assert strict.counts("base") == (0, 3, 0)  # five splits are too few


@pytest.mark.parametrize("test", ["t", "wilcoxon", "corrected"])
def test_win_tie_loss_is_the_outcome_of_the_comparison(test):
    rng = np.random.RandomState(0)
    base = 0.5 + 0.02 * rng.normal(size=8)
    for gain in (-0.05, -0.012, 0.0, 0.012, 0.05):
        ours = base + gain + 0.01 * rng.normal(size=8)
        table = win_tie_loss({"set": {"ours": ours, "base": base}}, "ours", test=test)
        expected = paired_comparison(ours, base).outcome(test=test)
        assert table.outcomes["base"]["set"] == expected
    with pytest.raises(ValueError, match="unknown test"):
        win_tie_loss({"set": {"ours": ours, "base": base}}, "ours", test="z")


def test_win_tie_loss_needs_a_reference_and_a_rival():
    with pytest.raises(ValueError, match="'Lost' has no scores of 'ours'"):
        win_tie_loss({"Lost": {"base": [0.5, 0.6]}}, "ours")
    with pytest.raises(ValueError, match="no method to compare"):
        win_tie_loss({"Lost": {"ours": [0.5, 0.6]}}, "ours")
