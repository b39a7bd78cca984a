"""The search over a log scale, against a fine grid."""

from __future__ import annotations

import numpy as np
import pytest

from appellate.numerics.search import minimize_over_log


@pytest.mark.parametrize("best", [0.02, 1.0, 7.0])
@pytest.mark.parametrize("precision", [1e-5, 1e-2])
def test_finds_the_scale_of_a_grid(best, precision):
    def loss(log):
        return (np.exp(log) / best - 1) ** 2 + abs(log) / 1000

    grid = np.linspace(-5, 3, 400_001)
    expected = grid[np.argmin(loss(grid))]
    found = minimize_over_log(loss, (-5, 3), precision)
    assert np.log(found.scale) == pytest.approx(expected, abs=2 * precision + 1e-4)
    assert found.loss == pytest.approx(float(loss(np.log(found.scale))), abs=1e-9)


def test_stays_within_the_bounds():
    found = minimize_over_log(lambda log: -log, (0.0, 1.0))
    assert np.e * (1 - 1e-4) < found.scale <= np.e
