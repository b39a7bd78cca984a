"""The average improvement ratio, against the figures that the paper prints."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from appellate.experiments.results import average_improvement_ratio

TABLE_2 = {  # base, coupled, printed ratio
    "PL-CL": (
        [0.072, 0.710, 0.469, 0.647, 0.534, 0.618, 0.433, 0.575],
        [0.081, 0.762, 0.496, 0.667, 0.545, 0.628, 0.450, 0.595],
        0.0361,
    ),
    "SURE": (
        [0.052, 0.709, 0.445, 0.630, 0.519, 0.598, 0.356, 0.494],
        [0.077, 0.719, 0.460, 0.657, 0.526, 0.608, 0.443, 0.584],
        0.1224,
    ),
    "PL-KNN": (
        [0.036, 0.300, 0.393, 0.454, 0.492, 0.368, 0.288, 0.440],
        [0.077, 0.668, 0.469, 0.608, 0.523, 0.597, 0.434, 0.578],
        0.5398,
    ),
}


@pytest.mark.parametrize("name", TABLE_2)
def test_average_improvement_is_near_what_the_paper_prints(name):
    base, coupled, printed = TABLE_2[name]
    assert average_improvement_ratio(base, coupled) == pytest.approx(printed, abs=0.015)


@given(arrays(float, 5, elements=st.floats(0.01, 1)), st.floats(0, 3))
def test_average_improvement_of_equal_gains_is_the_gain(base, factor):
    assert average_improvement_ratio(base, factor * base) == pytest.approx(factor - 1)


@pytest.mark.parametrize(
    ("base", "coupled"),
    [([0, 0.5], [1, 1]), ([0.5], [-0.1]), ([np.nan], [0.5]), ([0.5], [0.5, 1])],
)
def test_average_improvement_refuses_what_has_no_ratio(base, coupled):
    with pytest.raises(ValueError, match=r"gain|NaN|one score"):
        average_improvement_ratio(base, coupled)
