"""Exact kernel or Nystroem features: decided from the number of rows and the free memory."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

DEFAULT_LANDMARKS = 1024  # at least, where they fit; see `default_landmarks`
FEWEST_LANDMARKS = 256
EXACT_ROWS = 20_000  # beyond, the exact kernel takes minutes even where it fits
SMALL_ROWS = 4_000  # up to here the exact kernel is a matter of seconds and 400 MB
_SHARE = 0.8  # of the free memory that a fit may take
_FEATURE_WORK = 4e11  # n m^2, some minute on two cores
_STEPS = 200  # of base and partner together, typical of five rounds
_BANDWIDTH = 6e9  # bytes a second that a pass over the features reads
_WORKSPACE = 300 * 2**20
SAMPLE_ROWS = 4096  # whose mean distance stands for that of all
_SQUARE_BYTES = 40  # m x m matrices of the small algebra, all at once


@dataclass(frozen=True)
class Plan:
    """How the kernel of a fit is represented, and what that costs.

    Attributes
    ----------
    kind : {"exact", "nystroem"}
        The kernel matrix itself, or features by way of landmarks.
    n_landmarks : int
        Number of landmarks; 0 for the exact kernel.
    landmarks : {"uniform", "k-means++"}
        How they are chosen.
    cache_dir : str or None
        Folder for the features; memory if None.
    memory, disk : int
        Bytes that the fit takes beside its data, about; in `cache_dir` or on a cluster.
    flops, traffic : float
        Floating-point operations, and bytes read in the steps, about.
    reason : str
        Why this kind.
    """

    kind: str = "exact"
    n_landmarks: int = 0
    landmarks: str = "uniform"
    cache_dir: str | None = None
    memory: int = 0
    disk: int = 0
    flops: float = 0.0
    traffic: float = 0.0
    reason: str = ""

    @property
    def seconds(self) -> float:
        """About how long a coupled fit takes on this machine."""
        return self.flops / _flops_per_second() + self.traffic / _BANDWIDTH

    def __str__(self) -> str:
        """Say what was chosen, why, and what it will cost."""
        what = "exact kernel matrix"
        if self.kind == "nystroem":
            what = f"Nystroem features of {self.n_landmarks} landmarks"
        needs = f"{what}: {self.reason}; needs about {_gb(self.memory)} of memory"
        if self.disk and self.cache_dir is None:
            return f"{needs} here and {_gb(self.disk)} on the cluster."
        disk = f" and {_gb(self.disk)} of disk in '{self.cache_dir}'" if self.disk else ""
        return f"{needs}{disk}, and some {_duration(self.seconds)}."


def make_plan(
    shape: tuple[int, int],
    n_labels: int,
    dtype: Any,
    *,
    kind: str = "auto",
    n_landmarks: int | None = None,
    landmarks: str = "uniform",
    cache_dir: Any = None,
    free: int | None = None,
    local: bool = True,
    n_matrices: int = 3,
    n_outputs: int = 6,
    at_hand: bool = False,
) -> Plan:
    """Decide how to represent the kernel of n rows.

    ``"auto"`` takes the exact kernel up to 20,000 rows where its n x n matrices fit into
    four fifths of the free memory, else Nystroem features: `default_landmarks`, or as many as
    fit, but no fewer than 256.

    Parameters
    ----------
    shape : tuple of int
        Rows and columns of the features.
    n_labels : int
        Number of labels.
    dtype : dtype
        Of the features.
    kind : {"auto", "exact", "nystroem"}, default="auto"
        What the user asked for.
    n_landmarks : int or None, default=None
        As many as the user asked for.
    landmarks : {"uniform", "k-means++"}, default="uniform"
        How they are chosen.
    cache_dir : str or path, default=None
        Folder for the features of the map.
    free : int, default=None
        Free memory in bytes; looked up if None.
    local : bool, default=True
        Whether the features are kept by this process, not by a cluster.
    n_matrices : int, default=3
        Matrices of size n x n that the method needs with an exact kernel.
    n_outputs : int, default=6
        Matrices of size n x l that the fit leaves behind.
    at_hand : bool, default=False
        Whether this process needs all features in memory, wherever they are kept.

    Raises
    ------
    MemoryError
        If neither fits, with the numbers.

    Examples
    --------
    >>> import numpy as np
    >>> make_plan((1_000_000, 50), 20, np.float32, free=16 * 10**9).kind
    'nystroem'
    """
    n, q = shape
    size = np.dtype(dtype).itemsize
    own = n_outputs * n * n_labels * size
    exact_bytes = n_matrices * n * n * size + own
    if (kind == "auto" and n <= SMALL_ROWS and local) or kind == "exact":
        flops = 4 / 3 * n**3 + 2.0 * n * n * q
        return Plan("exact", memory=exact_bytes, flops=flops, reason=f"{n} rows")
    free = free_memory() if free is None else free
    room = int(_SHARE * free)
    if kind == "auto" and local and n <= EXACT_ROWS and exact_bytes <= room:
        flops = 4 / 3 * n**3 + 2.0 * n * n * q
        reason = f"{n} rows, and {_gb(free)} are free"
        return Plan("exact", memory=exact_bytes, flops=flops, reason=reason)
    reason = f"{n} rows"
    if kind == "auto" and local:
        reason = f"the exact kernel of {n} rows needs {_gb(exact_bytes)}, {_gb(free)} are free"
    fixed = own + _WORKSPACE + 2 * 8 * SAMPLE_ROWS * q
    in_memory = local and cache_dir is None
    feature_bytes = 4 * n if in_memory or at_hand else 0
    row_bytes = feature_bytes + (4 * size + 8) * q  # the landmarks
    m = min(n_landmarks or default_landmarks(n), n)
    if n_landmarks is None and (local or at_hand):
        fitting = int(_largest_root(_SQUARE_BYTES, row_bytes, room - fixed)) // 64 * 64
        m = min(m, max(fitting, FEWEST_LANDMARKS))
    memory = fixed + _SQUARE_BYTES * m * m + row_bytes * m
    if (local or at_hand) and memory > room:
        raise MemoryError(
            f"{n} rows do not fit: the exact kernel would need {_gb(exact_bytes)}, Nystroem "
            f"features of {m} landmarks {_gb(memory)}, and {_gb(free)} are free (of which a fit "
            f"takes {_SHARE:.0%} at most). "
            + _advice(fixed, room, cache_dir is None, n_landmarks is not None, at_hand)
        )
    return Plan(
        "nystroem",
        m,
        landmarks,
        None if cache_dir is None else str(cache_dir),
        memory,
        0 if in_memory else 4 * n * m,
        3.0 * n * m * m + 10.0 * m**3 + 2.0 * n * m * (q + 10),
        _STEPS * 2 * 4.0 * n * m,
        reason,
    )


def linear_plan(shape: tuple[int, int], dtype: Any, local: bool, cache_dir: Any) -> Plan:
    """Plan a linear kernel: one scaled copy of the features, where there are many rows.

    Raises
    ------
    MemoryError
        If the copy does not fit, with the numbers.
    """
    n, q = shape
    size, free = n * q * np.dtype(dtype).itemsize, free_memory()
    if local and cache_dir is None and n > SMALL_ROWS and size > _SHARE * free:
        raise MemoryError(
            f"a linear model of {n} rows keeps a copy of its {q} features, {_gb(size)}, and "
            f"{_gb(free)} are free. Name a cache_dir, so that the copy lives on disk."
        )
    folder = None if cache_dir is None else str(cache_dir)
    return Plan("exact", cache_dir=folder, memory=size, reason=f"{n} rows")


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


def _largest_root(square: float, linear: float, total: float) -> float:
    """Largest x with ``square x^2 + linear x <= total``; 0 if there is none."""
    return (sqrt(linear**2 + 4 * square * max(total, 0)) - linear) / (2 * square)


def _advice(fixed: int, room: int, in_memory: bool, many: bool, at_hand: bool) -> str:
    ways = []
    if in_memory and not at_hand and fixed + _SQUARE_BYTES * FEWEST_LANDMARKS**2 < room:
        ways.append("name a cache_dir, so that the features live on disk")
    if many:
        ways.append("lower n_landmarks")
    other = "another base" if at_hand else "a cluster (Dask arrays)"
    text = ", or ".join([*ways, f"take fewer rows or {other}"])
    return f"{text[0].upper()}{text[1:]}."


def free_memory() -> int:
    """Bytes of memory that this process can still take.

    The least of what the machine has available, its control group leaves and the limit on the
    address space allows; 4 GiB where none of them can be read.
    """
    known = [_available(), _left_in_group(), _left_in_address_space()]
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


def _left_in_group(
    groups: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> int | None:
    """Memory that the control groups of this process leave, of version 1 or 2; None: no limit.

    Files that the system merely keeps at hand count as free.
    """
    try:
        lines = [line.split(":", 2) for line in own.read_text().splitlines()]
    except OSError:
        return None
    found = []
    for _, controllers, place in (line for line in lines if len(line) == 3):
        if controllers == "":
            root, names = groups, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            root = groups / "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        folder = root / place.lstrip("/")
        within = [each for each in (folder, *folder.parents) if each.is_relative_to(root)]
        found += [left for each in within if (left := _left_in(each, *names)) is not None]
    return min(found, default=None)


def _left_in(folder: Path, most: str, used: str, cached: str) -> int | None:
    try:
        left = int((folder / most).read_text()) - int((folder / used).read_text())
        lines = map(str.split, (folder / "memory.stat").read_text().splitlines())
        return left + next((int(value) for name, value in lines if name == cached), 0)
    except (OSError, ValueError):  # no such group, or "max"
        return None


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


@cache
def _flops_per_second() -> float:
    """Speed of a matrix product on this machine, measured once, in some 50 ms."""
    square = np.ones((768, 768))
    square @ square[:, :64]
    started = time.perf_counter()
    square @ square
    return float(2 * 768**3 / max(time.perf_counter() - started, 1e-6))


def _gb(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{max(size / 1e6, 1):.0f} MB"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
