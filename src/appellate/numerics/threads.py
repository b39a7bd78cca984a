"""Threads that work on blocks, in order, and those of BLAS; worker processes."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from threading import Lock
from typing import Any, TypeVar

import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import get_blas_funcs
from threadpoolctl import ThreadpoolController

from appellate._compat import effective_threads

TaskItem = TypeVar("TaskItem")
TaskResult = TypeVar("TaskResult")

_AHEAD = 2  # blocks under way for every thread
# Up to here a second BLAS thread saves a tenth of the time and takes up to twice the CPU time
# (measured on two cores). Features are worked on in blocks, by all threads anyway.
_ONE_THREAD_ROWS = 1_000  # n x n matrices
_ONE_THREAD_WIDTH = 2_000  # features of n rows, and m x m matrices


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


def multiply(left: Any, right: NDArray[Any]) -> NDArray[Any]:
    """Product of two matrices by SciPy's BLAS, as in `scipy.linalg` and `scipy.optimize`.

    NumPy has a BLAS of its own. If calls of both take turns, the threads of the one that wait for
    work keep those of the other from working: milliseconds for every turn. `left` may be sparse.

    Examples
    --------
    >>> import numpy as np
    >>> multiply(np.eye(2), np.array([[1.0], [2.0]]))
    array([[1.],
           [2.]])
    """
    product: NDArray[Any]
    if sp.issparse(left):
        product = left @ right
        return product
    (gemm,) = get_blas_funcs(("gemm",), (left, right))
    # The transposed product of rows in C order takes no copy, as these are columns to Fortran.
    across = left.flags.f_contiguous and not left.flags.c_contiguous
    product = gemm(1, right.T, left if across else left.T, trans_b=across).T
    return product


def blas_for(n_rows: int, width: int = 0) -> AbstractContextManager[None]:
    """One BLAS thread for fits of small matrices; others have as many as there are.

    The results of such a fit are the same at any number of BLAS threads.

    Parameters
    ----------
    n_rows : int
        Rows; 1,000 or fewer are small.
    width : int, default=0
        Columns of the features that stand for a kernel; 2,000 or fewer are small. 0: the kernel
        is exact.

    Examples
    --------
    >>> with blas_for(100):
    ...     pass
    """
    small = n_rows <= _ONE_THREAD_ROWS or 0 < width <= _ONE_THREAD_WIDTH
    return _single_blas() if small else nullcontext()


@contextmanager
def replacing_workers() -> Iterator[None]:
    """Let joblib replace worker processes without a warning.

    It replaces a worker that has grown by 300 MB since its first job, and warns of a leak. A
    worker grows as much when a later job imports torch. Where warnings are errors, joblib's own
    thread would end with this one, and its caller would wait for ever.

    Examples
    --------
    >>> from joblib import Parallel, delayed
    >>> with replacing_workers():
    ...     Parallel(1)(delayed(abs)(x) for x in (-1, 2))
    [1, 2]
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        yield


@contextmanager
def _single_blas() -> Iterator[None]:
    """One BLAS thread a call for as long as anybody is within; then as before."""
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
