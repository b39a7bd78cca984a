"""The projection against a generic QP solver and against exact arithmetic."""

from __future__ import annotations

import daqp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from appellate.numerics.entries import CandidateEntries
from appellate.numerics.simplex import project_entries, project_rows
from tests.problems import exact_simplex_projection

numbers = st.one_of(
    st.floats(-3, 3),
    st.sampled_from([0.0, 0.25, 0.5, 1.0]),  # ties
    st.floats(-1e-12, 1e-12),
    st.floats(-50, 50),
)
huge = st.one_of(numbers, st.floats(-1e15, 1e15), st.floats(-1e-200, 1e-200))


def masked(elements):
    shapes = hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=6)
    return shapes.flatmap(
        lambda shape: st.tuples(
            hnp.arrays(float, shape, elements=elements), hnp.arrays(bool, shape)
        )
    )


def qp_projection(values):
    """Min |p - v|^2 over the simplex, by an active-set QP solver."""
    m = len(values)
    A = np.ones((1, m))
    upper = np.concatenate([np.full(m, 1e30), [1.0]])
    lower = np.concatenate([np.zeros(m), [1.0]])
    sense = np.zeros(m + 1, dtype=np.int32)
    sense[-1] = 5  # an equality
    x, _, flag, _ = daqp.solve(np.eye(m), -values, A, upper, lower, sense)
    assert flag == 1
    return np.array(x)


def project(matrix, mask):
    entries = CandidateEntries(mask)
    return entries.scatter(project_entries(entries.gather(matrix), entries))


@given(masked(numbers))
def test_equals_generic_qp_solver(problem):
    matrix, mask = problem
    mask[:, 0] |= ~mask.any(axis=1)
    projected = project(matrix, mask)
    for row, candidates, result in zip(matrix, mask, projected, strict=True):
        expected = np.zeros(len(row))
        expected[candidates] = qp_projection(row[candidates])
        np.testing.assert_allclose(result, expected, atol=1e-10)


@given(masked(huge))
def test_equals_exact_arithmetic(problem):
    matrix, mask = problem
    mask[:, -1] |= ~mask.any(axis=1)
    projected = project(matrix, mask)
    for row, candidates, result in zip(matrix, mask, projected, strict=True):
        expected = np.zeros(len(row))
        expected[candidates] = exact_simplex_projection(row[candidates])
        np.testing.assert_allclose(result, expected, atol=1e-10)


@given(hnp.arrays(float, (4, 5), elements=numbers))
def test_all_candidates_equals_rows(matrix):
    np.testing.assert_array_equal(project(matrix, np.ones((4, 5), bool)), project_rows(matrix))


def test_single_candidate_takes_all():
    np.testing.assert_array_equal(
        project(np.array([[-1e300, 3.0]]), np.array([[True, False]])), [[1.0, 0.0]]
    )


@pytest.mark.parametrize("size", [32, 33, 200])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_long_rows(size, dtype):
    matrix = np.random.RandomState(size).normal(scale=0.05, size=(3, size)).astype(dtype)
    projected = project_rows(matrix)
    assert projected.dtype == dtype
    for row, result in zip(matrix.astype(float), projected, strict=True):
        np.testing.assert_allclose(result, qp_projection(row), atol=1e-6)


@given(hnp.arrays(float, (3, 4), elements=numbers))
def test_keeps_order_and_is_idempotent(matrix):
    projected = project_rows(matrix)
    for row, result in zip(matrix, projected, strict=True):
        order = np.argsort(row, kind="stable")
        assert (np.diff(result[order]) >= 0).all()
    np.testing.assert_allclose(project_rows(projected), projected, atol=1e-12)
