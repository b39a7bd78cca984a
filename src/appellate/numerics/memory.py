"""What a fit takes of the memory, what is free, and which switch helps."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from appellate._compat import effective_threads
from appellate.numerics.kernels import KernelSetting, LinearKernel
from appellate.numerics.nystroem import SAMPLE_ROWS

DEFAULT_LANDMARKS = 1024  # at least, where they fit; see `default_landmarks`
FEWEST_LANDMARKS = 256
EXACT_ROWS = 20_000  # beyond, the exact kernel takes minutes even where it fits
SMALL_ROWS = 4_000  # up to here the exact kernel is a matter of seconds and 400 MB
_SHARE = 0.8  # of the free memory that a fit may take
_FEATURE_WORK = 4e11  # n m^2, some minute on two cores
_OUTPUTS = 6  # matrices of size n x l that a coupled fit leaves behind
_WORKSPACE = 172 * 2**20
_THREAD_BYTES = 64 * 2**20  # blocks under way, for every thread (measured)
_SQUARE_BYTES = 40  # m x m matrices of the small algebra, all at once


@dataclass(frozen=True)
class Representation:
    """How the kernel of a fit is represented.

    Attributes
    ----------
    kind : {"exact", "nystroem"}
        The kernel matrix itself (or the linear model's own), or features of landmarks.
    n_landmarks : int
        Number of landmarks; 0 without.
    message : str
        What was chosen, why, and what it takes.
    memory : int
        Bytes that the fit takes beside its data, about.
    """

    kind: str = "exact"
    n_landmarks: int = 0
    message: str = ""
    memory: int = 0


def represent(
    kernel: KernelSetting,
    shape: tuple[int, int],
    n_labels: int,
    dtype: Any,
    *,
    local: bool = True,
    n_matrices: int = 3,
    n_widths: int = 1,
    at_hand: bool = False,
) -> Representation:
    """Decide how to represent a kernel of n rows, or say why it does not fit and what would.

    ``"auto"`` takes the exact kernel up to 20,000 rows where its n x n matrices fit into four
    fifths of the free memory, and always up to 4,000, else Nystroem features:
    `default_landmarks`, or as many as fit, but no fewer than 256. A linear kernel keeps a copy
    of its features where they are fewer than the rows, else n x n matrices.

    Parameters
    ----------
    kernel : GaussianKernel or LinearKernel
        What the user asked for.
    shape : tuple of int
        Rows and columns of the features.
    n_labels : int
        Number of labels.
    dtype : dtype
        Of the features.
    local : bool, default=True
        Whether the features are kept by this process, not by a cluster.
    n_matrices : int, default=3
        Matrices of size n x n that the method needs with an exact kernel.
    n_widths : int, default=1
        How many different features: base and partner share those of equal kernels only.
    at_hand : bool, default=False
        Whether this process needs all features in memory, wherever they are kept.

    Raises
    ------
    MemoryError
        If it does not fit, with the numbers, and what would.

    Examples
    --------
    >>> import numpy as np
    >>> from appellate.numerics.kernels import GaussianKernel
    >>> represent(GaussianKernel(), (3_000, 50), 20, np.float32).kind
    'exact'
    >>> represent(GaussianKernel(n_landmarks=64), (50_000, 5), 3, np.float32).n_landmarks
    64
    """
    (n, q), size = shape, np.dtype(dtype).itemsize
    outputs = _OUTPUTS * n * n_labels * size
    here = at_hand or (local and kernel.cache_dir is None)
    if isinstance(kernel, LinearKernel):
        copies = n_widths * n * q * size
        if q >= n:
            apart = memory = outputs + n_matrices * n * n * size + copies + 8 * n * q
            what, disk = f"kernel matrices of {n} rows and a copy of their {q} features", 0
        else:
            algebra = _SQUARE_BYTES * q * q + 8 * min(n, SAMPLE_ROWS) * q
            apart = outputs + algebra + _under_way(n, q, local)
            what = f"a copy of the {q} features of {n} rows and matrices of {q} x {q}"
            memory, disk = (apart + copies, 0) if here else (apart, copies)
        free = free_memory()
        if memory > _SHARE * free and (local or q >= n) and max(n, q) > SMALL_ROWS:
            ways = ["name a cache_dir, so that the copy lives on disk"] * (apart <= _SHARE * free)
            ways.append("take fewer rows or features, or more memory")
            raise _refuse(f"{what} take {_gb(memory)}", free, ways)
        return _say("exact", 0, f"linear kernel: {what}", memory, disk, kernel.cache_dir)
    exact = n_matrices * n * n * size + outputs
    if kernel.approximation == "exact" and not local:
        raise ValueError(
            "approximation='exact' needs the rows in memory, but X is a Dask collection. Pass "
            "X.compute(), or approximation='auto'."
        )
    auto = kernel.approximation == "auto"
    if kernel.approximation == "exact" or (auto and local and n <= SMALL_ROWS):
        return _say("exact", 0, f"exact kernel matrix: {n} rows", exact)
    free = free_memory()
    if auto and local and n <= EXACT_ROWS and exact <= _SHARE * free:
        return _say("exact", 0, f"exact kernel matrix: {n} rows, {_gb(free)} are free", exact)

    def needs(m: int, here: bool = here) -> int:
        features = 4 * n * m if here else 0
        landmarks = 4 * size * q * m + n_widths * (features + 8 * q * m) + 16 * SAMPLE_ROWS * q
        squares = (_SQUARE_BYTES + 8 * (n_widths - 1)) * m * m
        return outputs + _WORKSPACE + _under_way(n, max(q, m), local) + landmarks + squares

    m = min(kernel.n_landmarks or default_landmarks(n), n)
    limited, room = local or at_hand, _SHARE * free
    while kernel.n_landmarks is None and limited and m > FEWEST_LANDMARKS and needs(m) > room:
        m = max(m - 64, FEWEST_LANDMARKS)
    what = f"Nystroem features of {m} landmarks"
    if limited and needs(m) > room:
        ways = []
        if here and not at_hand and needs(m, False) <= room:
            ways.append("name a cache_dir, so that the features live on disk")
        fewer = next((k for k in range(m, 0, -max(1, m // 64)) if needs(k) <= room), None)
        if fewer:
            ways.append(f"lower n_landmarks to {fewer}")
        ways.append("take fewer rows or " + ("another base" if at_hand else "more memory"))
        raise _refuse(f"{what} of {n} rows take {_gb(needs(m))}", free, ways)
    reason = f"{n} rows"
    if auto and local:
        reason = f"the exact kernel of {n} rows needs {_gb(exact)}, {_gb(free)} are free"
    disk = 0 if local and kernel.cache_dir is None else 4 * n * m * n_widths
    return _say("nystroem", m, f"{what}: {reason}", needs(m), disk, kernel.cache_dir)


def _say(
    kind: str, m: int, reason: str, memory: int, disk: int = 0, folder: Any = None
) -> Representation:
    where = "on the cluster" if folder is None else f"of disk in '{folder}'"
    more = f" and {_gb(disk)} {where}" if disk else ""
    return Representation(kind, m, f"{reason}; takes about {_gb(memory)} of memory{more}", memory)


def _refuse(what: str, free: int, ways: list[str]) -> MemoryError:
    advice = ", or ".join(ways)
    return MemoryError(
        f"{what}, and {_gb(free)} are free (of which a fit takes {_SHARE:.0%} at most). "
        f"{advice[0].upper()}{advice[1:]}."
    )


def _under_way(n: int, width: int, local: bool) -> int:
    """Bytes of the blocks that the threads of this process work on."""
    return min(effective_threads() * _THREAD_BYTES, 16 * n * width) if local else 0


def _gb(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{max(size / 1e6, 1):.0f} MB"


def default_landmarks(n: int) -> int:
    """Return how many landmarks n rows get where nobody says.

    As many as take some minute to make features of, n m^2 = 4e11, since accuracy goes on
    rising with them; but no more than a fifth of the rows, where the exact kernel takes as
    long, and no fewer than 1024.

    Examples
    --------
    >>> [default_landmarks(n) for n in (5_000, 20_000, 100_000, 1_000_000)]
    [1024, 3968, 1984, 1024]
    """
    affordable = min(n / 5, (_FEATURE_WORK / n) ** 0.5)
    return max(DEFAULT_LANDMARKS, int(affordable) // 64 * 64)


def free_memory() -> int:
    """Bytes of memory that this process can still take.

    The least of what the machine has available, its control group leaves and the limit on the
    address space allows; 4 GiB where none of them can be read.
    """
    known = [_available(), *_left_in_groups(), _left_in_address_space()]
    return max(0, min((k for k in known if k is not None), default=4 * 2**30))


def _available() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(l.split()[1]) * 1024 for l in lines if l.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        pass
    try:
        import psutil  # type: ignore[import-untyped]

        return int(psutil.virtual_memory().available)
    except ImportError:
        return None


def _left_in_groups(
    groups: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> list[int]:
    """Memory that each control group (version 2) around this process leaves.

    Files that the system merely keeps at hand count as free.
    """
    found: list[int] = []
    try:
        places = re.findall(r"^0::/(.*)$", own.read_text(), flags=re.M)
        folders = [
            part for place in places for part in (groups / place, *(groups / place).parents)
        ]
    except OSError:
        return found
    for folder in folders:
        with suppress(OSError, ValueError):  # no such group, or "max"
            most, used = (int((folder / f"memory.{k}").read_text()) for k in ("max", "current"))
            cached = re.search(
                r"^inactive_file (\d+)$", (folder / "memory.stat").read_text(), re.M
            )
            found.append(most - used + (int(cached[1]) if cached else 0))
    return found


def _left_in_address_space() -> int | None:
    try:
        import resource

        most, _ = resource.getrlimit(resource.RLIMIT_AS)
        if most == resource.RLIM_INFINITY:
            return None
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        return most - pages * resource.getpagesize()
    except (ImportError, OSError, ValueError):
        return None
