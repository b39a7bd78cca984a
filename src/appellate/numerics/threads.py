"""Work on blocks in threads, in order, with a bounded number of blocks under way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import cache
from threading import Lock
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from appellate._compat import effective_threads

TaskItem = TypeVar("TaskItem")
TaskResult = TypeVar("TaskResult")

_AHEAD = 2  # blocks under way for every thread


def ordered_map(
    function: Callable[[TaskItem], TaskResult], items: Iterable[TaskItem], *, blas: bool = False
) -> Iterator[TaskResult]:
    """Apply a function that releases the interpreter lock to every item, in order.

    As many threads as OpenMP would take. Results do not depend on their number: every item is
    worked on by one thread, and what the caller adds up comes in the order of the items.

    Parameters
    ----------
    function : callable
        Function of one item.
    items : iterable
        Read as it is needed: two items for each thread are under way.
    blas : bool, default=False
        Whether the function multiplies matrices. BLAS then gets one thread a call, so that the
        threads do not compete.

    Examples
    --------
    >>> list(ordered_map(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    n_threads = effective_threads()
    if n_threads == 1:
        yield from map(function, items)
        return
    waiting: deque[Future[TaskResult]] = deque()
    with _single_blas() if blas else nullcontext(), ThreadPoolExecutor(n_threads) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) >= _AHEAD * n_threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


@contextmanager
def _single_blas() -> Iterator[None]:
    """One BLAS thread a call for as long as anybody works in threads; then as before."""
    with _lock:
        if not _users:
            _users.append(_controller().limit(limits=1, user_api="blas"))
        _users.append(None)
    try:
        yield
    finally:
        with _lock:
            _users.pop()
            if len(_users) == 1:
                _users.pop().restore_original_limits()


_lock = Lock()
_users: list[Any] = []  # the limits, and one entry for everybody under them


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
