"""Scores of ordered labels, against scikit-learn and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mean_absolute_error

from appellate.metrics import accuracy, expected_cost, tolerance_accuracy

pairs = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=30)


@given(pairs, st.integers(0, 6))
def test_expected_cost_generalises_the_others(labels, tolerance):
    truth, predicted = np.array(labels).T
    classes = range(7)
    assert expected_cost(truth, predicted, "absolute") == pytest.approx(
        mean_absolute_error(truth, predicted)
    )
    assert expected_cost(truth, predicted, f"within:{tolerance}") == pytest.approx(
        1 - tolerance_accuracy(truth, predicted, tolerance)
    )
    for zero_one in (None, 1 - np.eye(7)):
        assert expected_cost(truth, predicted, zero_one, classes=classes) == pytest.approx(
            1 - accuracy(truth, predicted)
        )


@pytest.mark.parametrize("offset", [0.0, 20.0, 2000.0])
@pytest.mark.parametrize("tolerance", [0.1, 0.3])
def test_a_tolerance_has_slack_for_rounding(offset, tolerance):
    truth = offset + np.array([0.4, 0.7, 1.1, 2.3])
    near, far = truth - tolerance, truth + 1.01 * tolerance
    for predicted, expected in ((near, 1.0), (far, 0.0)):
        assert tolerance_accuracy(truth, predicted, tolerance) == expected
        assert expected_cost(truth, predicted, f"within:{tolerance}") == 1 - expected
    assert tolerance_accuracy([0.4, 0.7, 1.1], [0.3, 0.6, 1.0], 0.1) == 1
    assert tolerance_accuracy([0.1 + 0.2], [0.3], 0) == accuracy([0.1 + 0.2], [0.3]) == 0


def test_rows_are_true_and_columns_predicted():
    cost = [[0, 1], [10, 0]]
    assert expected_cost(["a"], ["b"], cost, classes=["a", "b"]) == 1
    assert expected_cost(["b"], ["a"], cost, classes=["a", "b"]) == 10


def test_places_in_an_order():
    sizes = ["S", "M", "L", "XL"]
    predicted = ["M", "S"]
    shares = [tolerance_accuracy(["S", "XL"], predicted, t, order=sizes) for t in (0, 1, 2, 3)]
    assert shares == [0, 0.5, 0.5, 1]


def test_what_has_no_distance():
    with pytest.raises(ValueError, match="order="):
        tolerance_accuracy(["S", "M"], ["M", "M"], 1)
    with pytest.raises(ValueError, match="'XXL' is not in order="):
        tolerance_accuracy(["S", "XXL"], ["S", "S"], 1, order=["S", "M"])
    with pytest.raises(ValueError, match="row 1"):
        tolerance_accuracy([1.0, np.nan], [1.0, 2.0], 1)


def test_labels_beyond_the_classes():
    with pytest.raises(ValueError, match="is not in classes="):
        expected_cost(["a", "c"], ["a", "a"], "absolute", classes=["a", "b"])
