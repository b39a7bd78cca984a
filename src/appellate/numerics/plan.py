"""Exact kernel or Nystroem features: decided from the number of rows and the free memory."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cache
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from appellate._compat import effective_threads

DEFAULT_LANDMARKS = 1024  # at least, where they fit; see `default_landmarks`
FEWEST_LANDMARKS = 256
EXACT_ROWS = 20_000  # beyond, the exact kernel takes minutes even where it fits
SMALL_ROWS = 4_000  # up to here the exact kernel is a matter of seconds and 400 MB
_SHARE = 0.8  # of the free memory that a fit may take
_FEATURE_WORK = 4e11  # n m^2, some minute on two cores
_STEPS = 200  # of base and partner together, typical of five rounds
_BANDWIDTH = 6e9  # bytes a second that a pass over the features reads
_WORKSPACE = 172 * 2**20
_THREAD_BYTES = 64 * 2**20  # blocks under way, for every thread (measured)
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
    n_widths: int = 1,
    beside: Plan | None = None,
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
    n_widths : int, default=1
        Widths of the kernel: base and partner share features of the same width only.
    beside : Plan, default=None
        Of a linear kernel in the same fit.
    at_hand : bool, default=False
        Whether this process needs all features in memory, wherever they are kept.

    Raises
    ------
    MemoryError
        If neither fits, with the numbers, and what would.

    Examples
    --------
    >>> import numpy as np
    >>> make_plan((1_000_000, 50), 20, np.float32, free=16 * 10**9).kind
    'nystroem'
    """
    n, q = shape
    size = np.dtype(dtype).itemsize
    beside = beside or Plan()
    own = n_outputs * n * n_labels * size + beside.memory
    exact_bytes = n_matrices * n * n * size + own
    exact = Plan(
        "exact",
        cache_dir=beside.cache_dir,
        memory=exact_bytes,
        disk=beside.disk,
        flops=4 / 3 * n**3 + 2.0 * n * n * q,
        reason=f"{n} rows",
    )
    if (kind == "auto" and n <= SMALL_ROWS and local) or kind == "exact":
        return exact
    free = free_memory() if free is None else free
    room = int(_SHARE * free)
    if kind == "auto" and local and n <= EXACT_ROWS and exact_bytes <= room:
        return replace(exact, reason=f"{n} rows, and {_gb(free)} are free")
    reason = f"{n} rows"
    if kind == "auto" and local:
        reason = f"the exact kernel of {n} rows needs {_gb(exact_bytes)}, {_gb(free)} are free"
    fixed = own + 2 * 8 * SAMPLE_ROWS * q
    if beside.memory and q < n:
        fixed -= _blocks(n, q, local)  # the kernels do not work at the same time
    needs = _Needs(n, q, size, fixed, n_widths, local)
    in_memory = local and cache_dir is None
    here = in_memory or at_hand
    m = min(n_landmarks or default_landmarks(n), n)
    if n_landmarks is None and (local or at_hand):
        m = min(m, max(needs.most(room, here) // 64 * 64, FEWEST_LANDMARKS))
    memory = needs(m, here)
    if (local or at_hand) and memory > room:
        raise MemoryError(
            f"{n} rows do not fit: the exact kernel would need {_gb(exact_bytes)}, Nystroem "
            f"features of {m} landmarks {_gb(memory)}, and {_gb(free)} are free (of which a fit "
            f"takes {_SHARE:.0%} at most). "
            + _advice(needs, m, room, here, n_landmarks is not None, at_hand)
        )
    return Plan(
        "nystroem",
        m,
        landmarks,
        None if cache_dir is None else str(cache_dir),
        memory,
        beside.disk + (0 if in_memory else 4 * n * m * n_widths),
        n_widths * (3.0 * n * m * m + 10.0 * m**3 + 2.0 * n * m * (q + 10)),
        _STEPS * 2 * 4.0 * n * m,
        reason,
    )


def linear_plan(
    shape: tuple[int, int],
    n_labels: int,
    dtype: Any,
    *,
    cache_dir: Any = None,
    local: bool = True,
    n_matrices: int = 3,
    n_outputs: int = 6,
    n_ridges: int = 1,
) -> Plan:
    """Plan a linear kernel.

    For fewer features than rows a scaled copy of them for every ridge, in `cache_dir` or on a
    cluster if there is one, and the algebra of q x q matrices. Else kernel matrices, n x n, and
    a centred copy of the rows, in memory. The parameters are those of `make_plan`.

    Raises
    ------
    MemoryError
        If that does not fit, with the numbers, and what would.
    """
    n, q = shape
    size, free = np.dtype(dtype).itemsize, free_memory()
    own, copies = n_outputs * n * n_labels * size, n_ridges * n * q * size
    folder = None if cache_dir is None else str(cache_dir)
    if q >= n:
        memory = own + n_matrices * n * n * size + copies + 8 * n * q
        what = f"kernel matrices of its {n} rows and a copy of their {q} features"
        disk, apart = 0, memory
    else:
        algebra = _SQUARE_BYTES * q * q + 8 * min(n, SAMPLE_ROWS) * q
        apart = own + algebra + _blocks(n, q, local)
        what = f"a copy of the {q} features of its {n} rows and matrices of {q} x {q}"
        in_memory = local and cache_dir is None
        memory, disk = (apart + copies, 0) if in_memory else (apart, copies)
    room = _SHARE * free
    if memory > room and (local or q >= n) and max(n, q) > SMALL_ROWS:
        advice = "Take fewer rows or features, or a machine with more memory."
        if apart <= room:
            advice = "Name a cache_dir, so that the copy lives on disk."
        raise MemoryError(
            f"a linear model keeps {what}, {_gb(memory)}, and {_gb(free)} are free (of which a "
            f"fit takes {_SHARE:.0%} at most). {advice}"
        )
    return Plan("exact", cache_dir=folder, memory=memory, disk=disk, reason=f"{n} rows")


@dataclass(frozen=True)
class _Needs:
    """Bytes of memory that Nystroem features need, by the number of landmarks."""

    n: int
    q: int
    size: int
    fixed: int
    n_widths: int
    local: bool

    def __call__(self, m: int, in_memory: bool) -> int:
        square, linear = self._weights(in_memory)
        work = _WORKSPACE + _blocks(self.n, max(self.q, m), self.local)
        return self.fixed + work + square * m * m + linear * m

    def most(self, room: int, in_memory: bool) -> int:
        """Landmarks that fit, with all threads at work; 0 if none does."""
        work = _WORKSPACE + _blocks(self.n, self.n, self.local)
        return int(_largest_root(*self._weights(in_memory), room - self.fixed - work))

    def _weights(self, in_memory: bool) -> tuple[int, int]:
        k = self.n_widths  # every one with its features, landmarks, and way to get them
        features = 4 * self.n * k if in_memory else 0
        return _SQUARE_BYTES + 8 * (k - 1), features + (4 * self.size + 8 * k) * self.q


def _blocks(n: int, width: int, local: bool) -> int:
    """Bytes of the blocks that the threads of this process have under way."""
    return min(effective_threads() * _THREAD_BYTES, 16 * n * width) if local else 0


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


def _advice(needs: _Needs, m: int, room: int, in_memory: bool, asked: bool, at_hand: bool) -> str:
    """Say what would fit: features elsewhere, fewer landmarks than were asked for, or both."""
    ways = []
    elsewhere = not at_hand and needs(m, False) <= room
    if in_memory and elsewhere:
        ways.append("name a cache_dir, so that the features live on disk")
    if asked and needs(1, in_memory) <= room:
        ways.append(f"lower n_landmarks to {max(1, needs.most(room, in_memory))}")
    elif asked and in_memory and not (at_hand or elsewhere) and needs(1, False) <= room:
        fewer = max(1, needs.most(room, False))
        ways.append(f"name a cache_dir and lower n_landmarks to {fewer}")
    more = "a cluster (Dask arrays)" if elsewhere else "a machine with more memory"
    more = "another base" if at_hand else more
    text = ", or ".join([*ways, f"take fewer rows or {more}"])
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
