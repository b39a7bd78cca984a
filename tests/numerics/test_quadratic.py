"""The accelerated loop against a generic QP solver."""

from __future__ import annotations

import numpy as np
import pytest

from appellate.numerics.entries import CandidateEntries
from appellate.numerics.simplex import minimize_quadratic
from tests.problems import random_candidates, solve_qp


def random_problem(seed, n=6, n_labels=4):
    rng = np.random.RandomState(seed)
    entries = CandidateEntries(random_candidates(rng, n, n_labels, 0.5))
    root = rng.normal(size=(len(entries), len(entries)))
    A = root @ root.T / len(entries)
    return entries, A, rng.normal(size=len(entries))


@pytest.mark.parametrize("seed", range(5))
def test_equals_generic_solver(seed):
    entries, A, F = random_problem(seed)
    m, n = len(entries), entries.shape[0]
    rows = np.zeros((n, m))
    rows[entries.rows, np.arange(m)] = 1
    expected, _ = solve_qp(2 * A, -2 * F, rows, np.ones(n), -np.eye(m), np.zeros(m))
    solution = minimize_quadratic(
        lambda d: A @ d, F, np.linalg.eigvalsh(A)[-1], entries, tol=1e-12, max_iter=100_000
    )
    assert solution.converged
    assert solution.residual <= 1e-12 or solution.residual <= 50 * np.finfo(float).eps
    np.testing.assert_allclose(solution.values, expected, atol=1e-6)
    np.testing.assert_allclose(solution.product, A @ solution.values, atol=1e-12)


def test_objective_never_rises_and_start_does_not_matter():
    entries, A, F = random_problem(7)
    top = np.linalg.eigvalsh(A)[-1]
    one = minimize_quadratic(lambda d: A @ d, F, top, entries, tol=1e-13)
    start = np.random.RandomState(0).normal(size=len(entries))
    two = minimize_quadratic(lambda d: A @ d, F, top, entries, start=start, tol=1e-13)
    assert (np.diff(one.objective) <= 1e-12).all()
    assert one.n_iter == len(one.objective) - 1 > 1
    np.testing.assert_allclose(one.values, two.values, atol=1e-7)


def test_one_step_is_the_plain_projected_gradient_step():
    from appellate.numerics.simplex import project_entries

    entries, A, F = random_problem(3)
    start = entries.uniform()
    solution = minimize_quadratic(lambda d: A @ d, F, 9.0, entries, max_iter=1)
    expected = project_entries(start - (A @ start - F) / 9.0, entries)
    np.testing.assert_allclose(solution.values, expected, atol=1e-15)
    assert not solution.converged


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("at", [0, 3])
def test_a_product_that_is_not_finite_ends_at_once(bad, at):
    entries, A, F = random_problem(0)
    calls = []

    def apply(values):
        calls.append(1)
        return A @ values if len(calls) <= at else np.full_like(values, bad)

    said = r"no finite objective.*Scale the features"
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match=said):
        minimize_quadratic(apply, F, np.linalg.eigvalsh(A)[-1], entries, tol=1e-13)
    assert len(calls) == at + 1
