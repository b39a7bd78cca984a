"""Work on blocks in threads, in order, with a bounded number of blocks under way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from appellate._compat import effective_threads

Item = TypeVar("Item")
Result = TypeVar("Result")

_AHEAD = 2  # blocks under way for every thread


def ordered_map(
    function: Callable[[Item], Result], items: Iterable[Item], *, blas: bool = False
) -> Iterator[Result]:
    """Apply a function that releases the interpreter lock to every item, in order.

    As many threads as OpenMP would take. Results do not depend on their number: every item is
    worked on by one thread, and what the caller adds up comes in the order of the items.

    Parameters
    ----------
    function : callable
        Of one item.
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
    waiting: deque[Future[Result]] = deque()
    limits: Any = _controller().limit(limits=1, user_api="blas") if blas else None
    try:
        with ThreadPoolExecutor(n_threads) as pool:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) >= _AHEAD * n_threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
        if limits is not None:
            limits.restore_original_limits()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
