"""Small random problems and independent solvers that the tests compare with."""

from __future__ import annotations

from itertools import combinations

import clarabel
import numpy as np
import scipy.sparse as sp


def random_candidates(rng, n, n_labels, rate=0.4):
    candidates = rng.uniform(size=(n, n_labels)) < rate
    candidates[np.arange(n), rng.randint(n_labels, size=n)] = True
    return candidates


def random_confidence(rng, candidates):
    weights = rng.uniform(0.05, 1, size=candidates.shape) * candidates
    return weights / weights.sum(axis=1, keepdims=True)


def solve_qp(P, q, equality, equality_rhs, inequality, inequality_rhs, tol=1e-12):
    """Generic convex QP, min x'Px/2 + q'x, by the interior-point solver Clarabel."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    settings.max_iter = 500
    A = sp.vstack([sp.csc_array(equality), sp.csc_array(inequality)], format="csc")
    b = np.concatenate([equality_rhs, inequality_rhs])
    cones = [
        clarabel.ZeroConeT(len(equality_rhs)),
        clarabel.NonnegativeConeT(len(inequality_rhs)),
    ]
    P = sp.csc_matrix(sp.triu(sp.csc_matrix(P)))
    solution = clarabel.DefaultSolver(P, q, sp.csc_matrix(A), b, cones, settings).solve()
    return np.array(solution.x), solution.obj_val


def exact_simplex_projection(values):
    """Projection of a few numbers in rational arithmetic, by trying every support."""
    from fractions import Fraction

    exact = [Fraction(float(v)) for v in values]
    best, best_distance = None, None
    for size in range(1, len(exact) + 1):
        for support in combinations(range(len(exact)), size):
            shift = (sum(exact[i] for i in support) - 1) / size
            point = [exact[i] - shift if i in support else Fraction(0) for i in range(len(exact))]
            if min(point) < 0:
                continue
            distance = sum((p - v) ** 2 for p, v in zip(point, exact, strict=True))
            if best_distance is None or distance < best_distance:
                best, best_distance = point, distance
    return np.array([float(p) for p in best])
