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
from appellate.numerics.smoothers import SAMPLE_ROWS

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
        Bytes that the fit needs in addition to its data, about.
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
    n_matrices: float = 3,
    n_widths: int = 1,
    at_hand: bool = False,
) -> Representation:
    """Decide how to represent a kernel of n rows, or say why it does not fit and what would.

    ``"auto"`` takes the exact kernel up to 20,000 rows where its n x n matrices fit into four
    fifths of the free memory, and always up to 4,000, else Nystroem features:
    `default_landmarks`, or as many as fit, but no fewer than 256. A linear kernel keeps a copy
    of its features if they are fewer than the rows, otherwise n x n matrices.

    Parameters
    ----------
    kernel : GaussianKernel or LinearKernel
        What the user asked for.
    shape : tuple of int
        Rows and columns of the features.
    n_labels : int
        Number of labels.
    dtype : dtype
        Type of the features.
    local : bool, default=True
        Whether the features are kept by this process, not by a cluster.
    n_matrices : float, default=3
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
    (n, q), size, folder = shape, np.dtype(dtype).itemsize, kernel.cache_dir
    linear, asked = isinstance(kernel, LinearKernel), getattr(kernel, "approximation", "exact")
    if asked == "exact" and not linear and not local:
        raise ValueError(
            "approximation='exact' needs the rows in memory, but X is a Dask collection. Pass "
            "X.compute(), or approximation='auto'."
        )
    free = free_memory()
    room, outputs = _SHARE * free, _OUTPUTS * n * n_labels * size
    exact = outputs + round(n_matrices * n * n * size)
    small = n <= SMALL_ROWS or (n <= EXACT_ROWS and exact <= room)
    if not linear and (asked == "exact" or (asked == "auto" and local and small)):
        what = f"exact kernel matrix: {n} rows, {_gb(free)} are free"
        return Representation("exact", 0, f"{what}; takes about {_gb(exact)} of memory", exact)
    here, whole = at_hand or (local and folder is None), linear and q >= n

    def needs(m: int, here: bool = here) -> int:
        """Bytes with features of this width, or with linear kernel matrices."""
        if whole:
            return exact + n * q * (n_widths * size + 8)
        features = n_widths * n * m * (size if linear else 4) * here
        landmarks = 0 if linear else q * m * (4 * size + 8 * n_widths)
        under_way = min(effective_threads() * _THREAD_BYTES, 16 * n * max(q, m)) * local
        algebra = (_SQUARE_BYTES + 8 * (n_widths - 1)) * m * m + 16 * SAMPLE_ROWS * q
        return outputs + _WORKSPACE + under_way + features + landmarks + algebra

    given, limited = getattr(kernel, "n_landmarks", q), local or at_hand or whole
    m = q if linear else min(given or default_landmarks(n), n)
    while given is None and limited and m > FEWEST_LANDMARKS and needs(m) > room:
        m = max(m - 64, FEWEST_LANDMARKS)
    what = f"Nystroem features of {m} landmarks"
    if linear:
        what = f"linear kernel, {'n x n matrices and ' * whole}a copy of the {q} features"
    if limited and needs(m) > room and not (linear and max(n, q) <= SMALL_ROWS):
        ways = []
        if here and not at_hand and needs(m, False) <= room:
            ways.append("name a cache_dir, so that the features live on disk")
        fewer = next((k for k in range(m, 0, -max(1, m // 64)) if needs(k) <= room), None)
        if fewer and not linear:
            ways.append(f"lower n_landmarks to {fewer}")
        other = "features, or more memory" if linear else "more memory"
        ways.append(f"take fewer rows or {'another base' if at_hand else other}")
        advice = ", or ".join(ways)
        raise MemoryError(
            f"{what} of {n} rows take {_gb(needs(m))}, and {_gb(free)} are free (of which a fit "
            f"takes {_SHARE:.0%} at most). {advice[0].upper()}{advice[1:]}."
        )
    reason = f"{n} rows"
    if asked == "auto" and local:
        reason = f"the exact kernel of {n} rows needs {_gb(exact)}, {_gb(free)} are free"
    said = f"{what}: {reason}; takes about {_gb(needs(m))} of memory"
    if not whole and not (local and folder is None):
        where = "on the cluster" if folder is None else f"of disk in '{folder}'"
        said += f" and {_gb(n_widths * n * m * (size if linear else 4))} {where}"
    kind = "exact" if linear else "nystroem"
    return Representation(kind, 0 if linear else m, said, needs(m))


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
    address space allows; 4 GiB if none of them can be read.
    """
    known = _left_in_groups()
    with suppress(OSError):
        said = Path("/proc/meminfo").read_text()
        known += [1024 * int(each) for each in re.findall(r"^MemAvailable: *(\d+)", said, re.M)]
    if not known:
        with suppress(ImportError):
            import psutil  # type: ignore[import-untyped]

            known.append(int(psutil.virtual_memory().available))
    with suppress(ImportError, OSError, ValueError):
        import resource

        most, _ = resource.getrlimit(resource.RLIMIT_AS)
        if most != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            known.append(most - pages * resource.getpagesize())
    return max(0, min(known, default=4 * 2**30))


def _left_in_groups(
    groups: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> list[int]:
    """Memory that each control group (version 2) around this process leaves.

    Files that the system merely keeps at hand count as free.
    """
    found: list[int] = []
    with suppress(OSError):
        for place in re.findall(r"^0::/(.*)$", own.read_text(), flags=re.M):
            for folder in (groups / place, *(groups / place).parents):
                with suppress(OSError, ValueError):  # no such group, or "max"
                    files = (folder / f"memory.{k}" for k in ("max", "current", "stat"))
                    most, used, stat = (file.read_text() for file in files)
                    cached = re.findall(r"^inactive_file (\d+)$", stat, re.M)
                    found.append(int(most) - int(used) + sum(map(int, cached)))
    return found
