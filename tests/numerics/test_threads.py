"""Threads over blocks: order, and what they leave behind."""

from __future__ import annotations

import threading

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

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
