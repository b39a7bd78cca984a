"""Real data: every figure within its tolerance of an independent implementation's."""

from __future__ import annotations

import pytest

from appellate import PLKNNClassifier, SUREClassifier
from tests.realdata.protocol import run

pytestmark = pytest.mark.realdata

TOLERANCE = 0.006
BASES = {
    "knn": PLKNNClassifier(),
    "knn-distance": PLKNNClassifier(weights="distance"),
    "sure": SUREClassifier(),
}
# test accuracy, transductive accuracy (base, coupled), corrected, broken
REFERENCE = {
    ("knn", "lost"): (0.301, 0.599, 0.561, 0.725, 0.438, 0.050),
    ("knn-distance", "lost"): (0.337, 0.619, 0.588, 0.742, 0.453, 0.054),
    ("sure", "lost"): (0.722, 0.732, 0.801, 0.837, 0.217, 0.009),
    ("knn", "MSRCv2"): (0.389, 0.470, 0.590, 0.644, 0.267, 0.095),
    ("knn-distance", "MSRCv2"): (0.400, 0.470, 0.601, 0.646, 0.256, 0.095),
    ("sure", "MSRCv2"): (0.469, 0.468, 0.639, 0.644, 0.046, 0.017),
    ("knn", "FG-NET"): (0.034, 0.054, 0.199, 0.143, 0.101, 0.686),
    ("sure", "FG-NET"): (0.056, 0.062, 0.151, 0.146, 0.023, 0.161),
}
# within 3 and 5 years, base and coupled
AGES = {
    "knn": (0.280, 0.378, 0.432, 0.530),
    "sure": (0.367, 0.396, 0.502, 0.529),
}
SCORES = ("base", "coupled", "base transductive", "coupled transductive", "corrected", "broken")
AGE_SCORES = ("base within 3", "coupled within 3", "base within 5", "coupled within 5")


@pytest.mark.parametrize(("base", "name"), REFERENCE)
def test_figures(base, name):
    measured = run(BASES[base], name)
    expected = dict(zip(SCORES, REFERENCE[base, name], strict=True))
    if name == "FG-NET":
        expected |= zip(AGE_SCORES, AGES[base], strict=True)
    for score, figure in expected.items():
        assert measured[score] == pytest.approx(figure, abs=TOLERANCE), score
