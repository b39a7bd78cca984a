"""Threads over blocks: order, and what they leave behind."""

from __future__ import annotations

import contextlib
import threading
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info, threadpool_limits

from appellate import GaussianKernel, SUREClassifier
from appellate.numerics import threads


def blas_threads():
    return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]


@pytest.fixture(autouse=True)
def two(monkeypatch):
    monkeypatch.setattr(threads, "effective_threads", lambda: 2)
    with threadpool_limits(limits=2, user_api="blas"):
        yield


def test_results_come_in_order():
    assert list(threads.ordered_map(abs, range(-50, 0))) == list(range(50, 0, -1))


def test_overlapping_maps_leave_blas_as_it_was():
    before = blas_threads()
    first = threads.ordered_map(abs, range(20), blas=True)
    second = threads.ordered_map(abs, range(20), blas=True)
    next(first)
    next(second)
    first.close()
    assert blas_threads() == [1] * len(before)
    second.close()
    assert blas_threads() == before


def test_the_limit_ends_also_after_an_error():
    before = blas_threads()

    def fail(item):
        raise RuntimeError(item)

    with pytest.raises(RuntimeError):
        list(threads.ordered_map(fail, range(5), blas=True))
    assert blas_threads() == before
    assert threading.active_count() < 20


def test_a_replaced_worker_is_no_error_where_warnings_are():
    def say():
        try:
            warnings.warn("A worker stopped while some jobs were given to ...", UserWarning, 2)
            told.append("went on")
        except UserWarning:
            told.append("ended")

    told = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for within in (threads.replacing_workers(), contextlib.nullcontext()):
            with within:
                thread = threading.Thread(target=say)
                thread.start()
                thread.join()
    assert told == ["went on", "ended"]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("layout", ["rows", "columns", "part", "sparse"])
@pytest.mark.parametrize("other", ["rows", "columns"])
def test_products_are_those_of_numpy(dtype, layout, other):
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(7, 5)).astype(dtype), rng.normal(size=(5, 3)).astype(dtype)
    expected = left @ right
    left = {
        "rows": left,
        "columns": np.asfortranarray(left),
        "part": np.repeat(left, 2, axis=1)[:, ::2],
        "sparse": sp.csr_array(left),
    }[layout]
    right = right if other == "rows" else np.asfortranarray(right)
    product = threads.multiply(left, right)
    assert product.dtype == dtype
    np.testing.assert_allclose(product, expected, rtol=1e-5)


def test_empty_products_have_their_shape():
    assert threads.multiply(np.zeros((0, 5)), np.zeros((5, 3))).shape == (0, 3)
    assert not threads.multiply(np.zeros((2, 0)), np.zeros((0, 3))).any()


@pytest.mark.parametrize(
    ("rows", "width", "expected"),
    [(1000, 0, 1), (1001, 0, 2), (10**6, 2000, 1), (10**6, 2001, 2), (1000, 3000, 1)],
)
def test_small_matrices_have_one_thread(rows, width, expected):
    before = blas_threads()
    with threads.blas_for(rows, width):
        assert blas_threads() == [expected] * len(before)
    assert blas_threads() == before


def fit_and_count(model, n, monkeypatch):
    """Fit a model to n rows; return the BLAS threads while it solves its equations."""
    told, plain = [], type(model)._solve

    def solve(self, *arguments):
        told.extend(blas_threads())
        return plain(self, *arguments)

    monkeypatch.setattr(type(model), "_solve", solve)
    rng = np.random.default_rng(0)
    model.fit(rng.normal(size=(n, 3)), rng.integers(2, size=n).astype(str))
    return set(told)


@pytest.mark.parametrize(
    ("kernel", "n", "expected"),
    [
        ("rbf", 60, 1),
        (GaussianKernel(approximation="nystroem", n_landmarks=20), 1_100, 1),
        ("linear", 1_100, 1),
        ("rbf", 1_100, 2),
    ],
)
def test_a_fit_has_one_thread_if_its_matrices_are_small(kernel, n, expected, monkeypatch):
    before = blas_threads()
    model = SUREClassifier(kernel=kernel, max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert fit_and_count(model, n, monkeypatch) == {expected}
    assert blas_threads() == before
