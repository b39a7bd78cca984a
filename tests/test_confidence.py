"""Blur and smoothing: the paper's formulas and its theory (Sec. 4.4) as properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from appellate.evidence.confidence import (
    blur,
    blur_entries,
    initial_confidence,
    normalize_entries,
    normalize_rows,
)
from appellate.numerics.entries import CandidateEntries
from tests.problems import random_candidates, random_confidence

finite = st.floats(allow_nan=False, allow_infinity=False)
probabilities = hnp.arrays(float, (3, 4), elements=st.floats(0, 1))


def test_initial_confidence():
    candidates = random_candidates(np.random.RandomState(0), 20, 5)
    expected = candidates / candidates.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(initial_confidence(candidates), expected)


@pytest.mark.parametrize("temperature", [-3.0, -1.0, 0.0, 2.0])
def test_blur_is_the_papers_formula(temperature):
    rng = np.random.RandomState(0)
    candidates = random_candidates(rng, 30, 6)
    confidence = random_confidence(rng, candidates)
    Q = np.exp(np.exp(temperature) * confidence) * candidates
    expected = Q / np.abs(Q).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(blur(confidence, candidates, temperature), expected, atol=1e-15)


@given(probabilities, st.floats(-6, -1e-3))
def test_blur_shrinks_every_gap_and_keeps_the_order(confidence, temperature):
    blurred = blur(confidence, np.ones((3, 4), bool), temperature)
    gaps = confidence[:, :, None] - confidence[:, None, :]
    blurred_gaps = blurred[:, :, None] - blurred[:, None, :]
    positive = gaps > 1e-9
    assert (blurred_gaps[positive] < gaps[positive]).all()
    assert (blurred_gaps[positive] > 0).all()


@given(st.floats(0, 1), st.floats(0, 1), st.floats(-6, -1e-3))
def test_gap_of_two_candidates_is_the_papers(a, b, temperature):
    first, second = blur(np.array([[a, b]]), np.ones((1, 2), bool), temperature)[0]
    expected = 1 - 2 / (np.exp(np.exp(temperature) * (a - b)) + 1)
    assert first - second == pytest.approx(expected, abs=1e-12)


@given(st.floats(1e-4, 1), st.floats(-6, 4))
def test_beyond_the_logarithm_of_two_small_gaps_are_amplified(gap, temperature):
    """The paper's threshold, k > ln 2: below it every gap of two candidates shrinks."""
    first, second = blur(np.array([[gap, 0.0]]), np.ones((1, 2), bool), temperature)[0]
    if temperature <= np.log(2):
        assert first - second <= gap + 1e-12
    small = min(gap, 1e-3)
    first, second = blur(np.array([[small, 0.0]]), np.ones((1, 2), bool), temperature)[0]
    if temperature > np.log(2) + 1e-3:
        assert first - second > small


@given(st.integers(2, 8), st.floats(-3, 3))
def test_around_equal_shares_the_threshold_is_the_logarithm_of_their_number(m, temperature):
    """For two candidates this is the paper's ln 2."""
    shares = np.full((1, m), 1 / m)
    shares[0, :2] += 0.5e-4, -0.5e-4
    first, second = blur(shares, np.ones((1, m), bool), temperature)[0, :2]
    assert first - second == pytest.approx(1e-4 * np.exp(temperature) / m, rel=1e-4)


@given(hnp.arrays(float, (2, 3), elements=finite), st.one_of(st.none(), finite))
def test_blur_is_safe_for_any_finite_input(values, temperature):
    candidates = np.array([[True, True, False], [True, True, True]])
    blurred = blur(values, candidates, temperature)
    assert np.isfinite(blurred).all()
    assert (blurred[~candidates] == 0).all()
    np.testing.assert_allclose(blurred.sum(axis=1), 1, rtol=1e-9)


@given(hnp.arrays(np.float32, (2, 3), elements=st.floats(-(2.0**100), 2.0**100, width=32)), finite)
def test_blur_is_safe_in_single_precision(values, temperature):
    blurred = blur(values, np.ones((2, 3), bool), temperature)
    assert blurred.dtype == np.float32
    np.testing.assert_allclose(blurred.sum(axis=1), 1, rtol=1e-5)


def test_blur_off_is_the_row_share():
    candidates = np.array([[True, True, False], [True, False, True]])
    off = blur(np.array([[3.0, 1.0, 5.0], [0.0, 2.0, -1.0]]), candidates, None)
    np.testing.assert_allclose(off, [[0.75, 0.25, 0.0], [0.5, 0.0, 0.5]])


def test_blur_reads_integers():
    np.testing.assert_allclose(blur(np.array([[1, 1]]), np.ones((1, 2), bool)), [[0.5, 0.5]])


@given(probabilities, hnp.arrays(float, (3, 4), elements=st.floats(-5, 5)), st.floats(0, 1))
def test_smoothing_is_both_of_the_papers_thresholds(previous, output, smoothing):
    """Eq. 2 for P and Eq. 8 for P-hat agree on candidates, and are constant elsewhere."""
    candidates = random_candidates(np.random.RandomState(1), 3, 4)
    entries, Y = CandidateEntries(candidates), candidates.astype(float)
    mixed = smoothing * previous + (1 - smoothing) * output
    eq2 = np.maximum(np.minimum(mixed, Y), 0)
    eq8 = np.minimum(np.maximum(mixed, 1 - Y), 1)
    ours = np.clip(entries.gather(mixed), 0, 1)  # what PLCP does in a round
    np.testing.assert_allclose(ours, entries.gather(eq2))
    np.testing.assert_allclose(ours, entries.gather(eq8))
    assert (eq2[~candidates] == 0).all()
    assert (eq8[~candidates] == 1).all()


def test_singletons_stay_certain():
    entries = CandidateEntries(np.array([[False, True], [True, False]]))
    np.testing.assert_array_equal(blur_entries(np.array([0.3, -7.0]), entries, -1.0), 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_to_divide_by_a_sum_that_may_be_zero(dtype):
    candidates = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 0]], dtype=bool)
    matrix = np.array([[1, 3, 0], [0, 0, 0], [0, 2, 0]], dtype=dtype)
    entries = CandidateEntries(candidates)
    expected = np.array([[0.25, 0.75, 0], [1 / 3, 1 / 3, 1 / 3], [0, 1, 0]])
    for found in (
        normalize_rows(matrix),
        entries.scatter(normalize_entries(entries.gather(matrix), entries)),
    ):
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    kept = normalize_entries(
        entries.gather(matrix), entries, entries.gather(np.full((3, 3), 7, dtype=dtype))
    )
    np.testing.assert_array_equal(entries.scatter(kept)[1], 7)
    np.testing.assert_array_equal(normalize_rows(matrix, otherwise=0)[1], 0)
