"""Scores against hand-computed cases, limits and the ranges they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import accuracy_score

from appellate import as_candidates
from appellate.metrics import (
    accuracy,
    approximated_accuracy,
    broken_ratio,
    correction_ratio,
    covering_rate,
    expected_calibration_error,
    expected_cost,
    tolerance_accuracy,
)
from appellate.model_selection import with_truth

N, L = 8, 4
labels = st.lists(st.integers(0, L - 1), min_size=N, max_size=N)
candidate_sets = arrays(bool, (N, L)).filter(lambda matrix: matrix.any(axis=1).all())


@st.composite
def probability_matrices(draw):
    weights = draw(arrays(float, (N, L), elements=st.floats(0, 1))) + 1e-6
    return weights / weights.sum(axis=1, keepdims=True)


# -- accuracy and tolerance ---------------------------------------------------------------


def test_labels_of_several_types_in_a_list_stay_what_they_are():
    truth, predicted = ["a", 1, 2.5], np.array(["a", 1, 2.5], dtype=object)
    assert accuracy(truth, predicted) == accuracy(predicted, truth) == 1
    assert expected_cost(truth, predicted, None) == 0
    assert covering_rate([["a", 1], [1], [2.5]], truth) == 1
    assert approximated_accuracy([["a"], [1], [2.5]], np.eye(3), classes=truth) == 1
    assert with_truth([["a", 1], [1], [2.5]], truth).truth.tolist() == truth


@given(labels, labels)
def test_accuracy_is_that_of_scikit_learn(truth, predicted):
    assert accuracy(truth, predicted) == pytest.approx(accuracy_score(truth, predicted))
    assert accuracy(truth, predicted) == accuracy(predicted, truth)
    assert accuracy(truth, truth) == 1


@given(labels, labels, st.integers(0, 5))
def test_tolerance_widens_accuracy(truth, predicted, tolerance):
    within = tolerance_accuracy(truth, predicted, tolerance)
    assert tolerance_accuracy(truth, predicted, 0) == accuracy(truth, predicted)
    assert within <= tolerance_accuracy(truth, predicted, tolerance + 1) <= 1
    assert tolerance_accuracy(truth, predicted, L) == 1
    assert within == pytest.approx(np.mean(np.abs(np.subtract(truth, predicted)) <= tolerance))
    names = np.array(["xs", "s", "m", "l"])
    by_order = tolerance_accuracy(names[truth], names[predicted], tolerance, order=names)
    assert by_order == pytest.approx(within)


def test_tolerance_needs_numbers_or_an_order():
    with pytest.raises(ValueError, match="order="):
        tolerance_accuracy(["a", "b"], ["a", "b"], 1)
    with pytest.raises(ValueError, match=r"row 1: .*'z'.* is not in order"):
        tolerance_accuracy(["a", "b"], ["a", "z"], 1, order=["a", "b"])
    with pytest.raises(ValueError, match="row 0: NaN"):
        tolerance_accuracy([np.nan, 2], [1, 2], 1)
    for wrong in (-1, np.nan):
        with pytest.raises(ValueError, match="tolerance"):
            tolerance_accuracy([1], [1], wrong)


def test_names_are_not_compared_with_numbers():
    with pytest.raises(TypeError, match="truth holds text, predicted holds numbers"):
        accuracy(["a", "b"], [0, 1])
    with pytest.raises(TypeError, match="names with names"):
        covering_rate(np.eye(2, dtype=bool), ["a", "b"])
    assert accuracy(np.array(["a", "b"], dtype=object), ["a", "c"]) == 0.5


def test_lengths_are_checked():
    with pytest.raises(ValueError, match="one label per sample"):
        correction_ratio([0, 1], [0, 1], [0])
    with pytest.raises(ValueError, match="truth and predicted"):
        accuracy([[0, 1]], [[0, 1]])
    with pytest.raises(ValueError, match="empty"):
        accuracy([], [])


# -- appeals ------------------------------------------------------------------------------


@given(labels, labels, labels)
def test_ratios_account_for_the_change_of_accuracy(truth, verdict, appeal):
    before, after = accuracy(truth, verdict), accuracy(truth, appeal)
    corrected, broken = (
        correction_ratio(truth, verdict, appeal),
        broken_ratio(truth, verdict, appeal),
    )
    gained = 0 if math.isnan(corrected) else corrected * (1 - before)
    lost = 0 if math.isnan(broken) else broken * before
    assert after == pytest.approx(before + gained - lost)
    assert math.isnan(corrected) == (before == 1)
    assert math.isnan(broken) == (before == 0)
    assert correction_ratio(truth, verdict, verdict) in (0, pytest.approx(math.nan, nan_ok=True))


# -- without the truth --------------------------------------------------------------------


def test_covering_rate_counts_predictions_among_candidates():
    candidates = np.array([[1, 1, 0], [0, 1, 0], [1, 0, 1]])
    assert covering_rate(candidates, [1, 0, 2]) == pytest.approx(2 / 3)
    assert covering_rate(candidates, ["b", "b", "z"], classes=list("abc")) == pytest.approx(2 / 3)
    assert covering_rate([{"a", ("b", 1)}, {"c"}], np.array(["a", "b"], dtype=object)) == 0.5


def test_covering_rate_checks_lengths():
    with pytest.raises(ValueError, match="3"):
        covering_rate(["a", "b"], ["a", "b", "c"])


@given(candidate_sets, labels)
def test_covering_rate_bounds_accuracy(candidates, predicted):
    rate = covering_rate(candidates, predicted)
    assert rate == pytest.approx(np.mean([row[j] for row, j in zip(candidates, predicted)]))  # noqa: B905
    truth = candidates.argmax(axis=1)
    assert accuracy(truth, predicted) <= rate <= 1
    assert covering_rate(candidates, truth) == 1
    assert covering_rate(np.ones((N, L)), predicted) == 1


def test_approximated_accuracy_by_hand():
    candidates = [[1, 1, 0], [0, 1, 1], [1, 0, 0]]
    chances = [[0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0.4, 0.3, 0.3]]
    by_hand = (0.5 / 0.75 + 0 + 1) / 3
    assert approximated_accuracy(np.array(candidates), chances) == pytest.approx(by_hand)


@given(candidate_sets, probability_matrices())
def test_approximated_accuracy_lies_below_covering(candidates, chances):
    score = approximated_accuracy(candidates, chances)
    assert 0 <= score <= covering_rate(candidates, chances.argmax(axis=1)) + 1e-12
    sure = np.eye(L)[candidates.argmax(axis=1)]
    assert approximated_accuracy(candidates, sure) == 1
    single = np.eye(L, dtype=bool)[chances.argmin(axis=1)]
    assert approximated_accuracy(single, chances) == pytest.approx(
        accuracy(chances.argmin(axis=1), chances.argmax(axis=1))
    )


def test_classes_arrange_the_columns():
    sets = as_candidates(["a|b", "b|c", "zebra"])
    chances = np.array([[0.2, 0.3, 0.5], [0.6, 0.4, 0.0], [1.0, 0.0, 0.0]])  # c, b, a
    names = np.array(["c", "b", "a"])
    assert approximated_accuracy(sets, chances, classes=names) == pytest.approx(
        (0.5 / 0.8 + 0.6 + 0) / 3
    )
    with pytest.raises(ValueError, match="3 columns of scores for 2 classes"):
        approximated_accuracy(sets, chances, classes=["a", "b"])
    with pytest.raises(ValueError, match=r"name them in order: classes="):
        approximated_accuracy(sets, chances)


@pytest.mark.parametrize("score", [approximated_accuracy, expected_calibration_error])
@pytest.mark.parametrize(
    "chances", [[0.5, 0.5], [[0.5, 0.6], [1, 0]], [[np.nan, 1], [1, 0]], [[-0.5, 1.5], [1, 0]]]
)
def test_probabilities_are_checked(score, chances):
    with pytest.raises(ValueError, match="probabilities"):
        score(np.array([0, 1]), chances)


# -- calibration --------------------------------------------------------------------------


def test_calibration_error_by_hand():
    chances = np.array([[0.9, 0.1], [0.8, 0.2], [0.35, 0.65], [0.4, 0.6]])
    truth = [0, 1, 1, 1]
    # Two bins of five, (0.6, 0.8] and (0.8, 1], and (0.4, 0.6]
    bins = [abs(1 - 0.9), abs(0 + 1 - 0.8 - 0.65), abs(1 - 0.6)]
    assert expected_calibration_error(truth, chances, n_bins=5) == pytest.approx(sum(bins) / 4)
    names = ["no", "yes"]
    by_name = expected_calibration_error(np.take(names, truth), chances, classes=names, n_bins=5)
    assert by_name == pytest.approx(sum(bins) / 4)


@given(labels, probability_matrices(), st.integers(1, 20))
def test_calibration_error_limits(truth, chances, n_bins):
    error = expected_calibration_error(truth, chances, n_bins=n_bins)
    assert 0 <= error <= 1
    assert expected_calibration_error(truth, np.eye(L)[truth], n_bins=n_bins) == 0
    wrong = np.eye(L)[(np.array(truth) + 1) % L]
    assert expected_calibration_error(truth, wrong, n_bins=n_bins) == 1
    one_bin = abs(accuracy(truth, chances.argmax(axis=1)) - chances.max(axis=1).mean())
    assert expected_calibration_error(truth, chances, n_bins=1) == pytest.approx(one_bin)
    assert error >= one_bin - 1e-12


def test_calibration_error_checks():
    with pytest.raises(ValueError, match="n_bins"):
        expected_calibration_error([0], [[1.0]], n_bins=0)
    with pytest.raises(ValueError, match="2 columns for 3 classes"):
        expected_calibration_error([0], [[1.0, 0.0]], classes=[0, 1, 2])
