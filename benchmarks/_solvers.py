"""A general QP solver, to be compared with; apart from what studies import."""

from __future__ import annotations

import daqp
import numpy as np


def solve_daqp(linear, quadratic=None):
    """Min x'Qx/2 + linear'x over the simplex."""
    m = len(linear)
    quadratic = np.eye(m) if quadratic is None else quadratic
    sense = np.zeros(m + 1, dtype=np.int32)
    sense[-1] = 5
    upper, lower = np.append(np.full(m, 1e30), 1.0), np.append(np.zeros(m), 1.0)
    return daqp.solve(quadratic, linear, np.ones((1, m)), upper, lower, sense)[0]
