"""What a fit takes of the memory, what is free, and which switch helps."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from appellate._compat import effective_threads
from appellate.numerics.kernels import KernelSetting, LinearKernel
from appellate.numerics.smoothers import SAMPLE_ROWS

BUDGET = 8 * 10**9  # bytes that a fit may take where APPELLATE_MEMORY does not say otherwise
DEFAULT_LANDMARKS = 1024  # at least, where they fit; see `default_landmarks`
FEWEST_LANDMARKS = 256
EXACT_ROWS = 9_000  # beyond, Nystroem features of the default landmarks take less time
SMALL_ROWS = 4_000  # up to here the exact kernel is a matter of seconds and 400 MB
_SHARE = 0.8  # of the free memory that a fit may take
_FEATURE_WORK = 4e11  # n m^2 + 3 m^3, some minute on two cores
_OUTPUTS = 6  # matrices of size n x l that a coupled fit leaves behind
_WORKSPACE = 172 * 2**20
_THREAD_BYTES = 64 * 2**20  # blocks under way, for every thread (measured)
_SQUARES = 5  # m x m matrices of the small algebra, all at once
_UNITS = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}


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


@dataclass(frozen=True)
class Demand:
    """What a fit asks for, and what it takes of the memory.

    Attributes
    ----------
    kernel : GaussianKernel, LaplacianKernel or LinearKernel
        What the user asked for.
    shape : tuple of int
        Rows and columns of the features.
    n_labels : int
        Number of labels.
    size : int
        Bytes of a number of the features.
    local : bool
        Whether the features are kept by this process, not by a cluster.
    n_matrices, n_squares : float
        Matrices of n x n with an exact kernel, and of m x m doubles with m landmarks.
    n_widths : int
        How many different features.
    at_hand : bool
        Whether this process needs all features in memory, wherever they are kept.
    """

    kernel: KernelSetting
    shape: tuple[int, int]
    n_labels: int
    size: int
    local: bool
    n_matrices: float
    n_squares: float
    n_widths: int
    at_hand: bool

    @property
    def linear(self) -> bool:
        """Whether the model is linear in the features."""
        return isinstance(self.kernel, LinearKernel)

    @property
    def asked(self) -> str:
        """Which approximation the user wants."""
        return str(getattr(self.kernel, "approximation", "exact"))

    @property
    def given(self) -> int | None:
        """How many landmarks the user wants."""
        given: int | None = getattr(self.kernel, "n_landmarks", None)
        return given

    @property
    def whole(self) -> bool:
        """Whether a linear kernel needs n x n matrices."""
        return self.linear and self.shape[1] >= self.shape[0]

    @property
    def here(self) -> bool:
        """Whether the features are in the memory of this process."""
        return self.at_hand or (self.local and self.kernel.cache_dir is None)

    @property
    def limited(self) -> bool:
        """Whether the memory of this process limits the features."""
        return self.local or self.at_hand or self.whole

    def outputs(self) -> int:
        """Bytes of what a fit leaves behind."""
        return _OUTPUTS * self.shape[0] * self.n_labels * self.size

    def exact(self) -> int:
        """Bytes with n x n kernel matrices."""
        return self.outputs() + round(self.n_matrices * self.shape[0] ** 2 * self.size)

    def stored(self, m: int) -> int:
        """Bytes of the features themselves, m of every width."""
        n, each = self.shape[0], self.size if self.linear else 4
        return self.n_widths * n * m * each

    def counted(self, m: int) -> int:
        """Bytes that count against the budget, the same on every machine and cluster.

        Features that the workers of a cluster keep count; threads beyond two do not.
        """
        held = self.at_hand or self.kernel.cache_dir is None
        return replace(self, local=True).features(m, held, n_threads=2)

    def features(self, m: int, here: bool | None = None, n_threads: int | None = None) -> int:
        """Bytes with features of this width, or with linear kernel matrices."""
        n, q = self.shape
        if self.whole:
            return self.exact() + n * q * (self.n_widths * self.size + 8)
        stored = self.stored(m) * (self.here if here is None else here)
        landmarks = 0 if self.linear else q * m * (4 * self.size + 8 * self.n_widths)
        blocks = (n_threads or effective_threads()) * _THREAD_BYTES
        under_way = min(blocks, 16 * n * max(q, m)) * self.local
        algebra = round(8 * self.n_squares) * m * m + 16 * SAMPLE_ROWS * q
        return self.outputs() + _WORKSPACE + under_way + stored + landmarks + algebra


def ask(
    kernel: KernelSetting,
    shape: tuple[int, int],
    n_labels: int,
    dtype: Any,
    *,
    local: bool = True,
    n_matrices: float = 3,
    n_squares: float | None = None,
    n_widths: int = 1,
    at_hand: bool = False,
) -> Demand:
    """Say what a fit asks for, for `represent` and `decide`.

    Parameters
    ----------
    kernel : GaussianKernel, LaplacianKernel or LinearKernel
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
    n_squares : float, default=None
        Matrices of m x m doubles that it needs with m landmarks; by default 4 and one for every
        kind of features.
    n_widths : int, default=1
        How many different features: base and partner share those of equal kernels only.
    at_hand : bool, default=False
        Whether this process needs all features in memory, wherever they are kept.

    Examples
    --------
    >>> import numpy as np
    >>> from appellate.numerics.kernels import GaussianKernel
    >>> ask(GaussianKernel(), (3_000, 50), 20, np.float32).exact()
    109440000
    """
    squares = _SQUARES + n_widths - 1 if n_squares is None else n_squares
    size = np.dtype(dtype).itemsize
    return Demand(kernel, shape, n_labels, size, local, n_matrices, squares, n_widths, at_hand)


def represent(demand: Demand) -> Representation:
    """Decide how to represent a kernel of n rows, or say why it does not fit and what would.

    ``"auto"`` takes the exact kernel up to 9,000 rows if its n x n matrices fit into the budget
    (`memory_budget`), and always up to 4,000, else Nystroem features: `default_landmarks`, or as
    many as fit into the budget, but no fewer than 256. Features that the workers of a cluster keep
    count too, so that the same rows get the same landmarks there. A linear kernel keeps a copy of
    its features if they are fewer than the rows, else n x n matrices. What else runs on the
    machine changes nothing, except that a fit that does not fit into the free memory is refused.

    Parameters
    ----------
    demand : Demand
        What a fit asks for.

    Raises
    ------
    MemoryError
        If it does not fit, with the numbers, and what would.

    Examples
    --------
    >>> import numpy as np
    >>> from appellate.numerics.kernels import GaussianKernel
    >>> represent(ask(GaussianKernel(), (3_000, 50), 20, np.float32)).kind
    'exact'
    >>> kernel = GaussianKernel(n_landmarks=64)
    >>> represent(ask(kernel, (50_000, 5), 3, np.float32)).n_landmarks
    64
    """
    if demand.asked == "exact" and not demand.linear and not demand.local:
        raise ValueError(
            "approximation='exact' needs the rows in memory, but X is a Dask collection. Pass "
            "X.compute(), or approximation='auto'."
        )
    budget = memory_budget()
    kind, m = decide(demand, budget)
    exact = kind == "exact" and not demand.linear
    width = demand.shape[1] if demand.linear else m
    needed = demand.exact() if exact else demand.features(width)
    free = free_memory()
    if needed > _SHARE * free and not _may_be_tried(demand, exact):
        advice = _advice(demand, width, free)
        raise MemoryError(f"{_taken(demand, kind, m, needed, free)} {advice}")
    return Representation(kind, m, _message(demand, kind, m, needed, budget), needed)


def decide(demand: Demand, budget: int) -> tuple[str, int]:
    """Choose between the kernel matrix and features, and how many landmarks; a pure function.

    Parameters
    ----------
    demand : Demand
        What a fit asks for.
    budget : int
        Bytes that a fit may take.

    Returns
    -------
    kind : {"exact", "nystroem"}
        A linear kernel is always exact.
    m : int
        Number of landmarks; 0 without.
    """
    n, given = demand.shape[0], demand.given
    if demand.linear:
        return "exact", 0
    small = n <= SMALL_ROWS or (n <= EXACT_ROWS and demand.exact() <= budget)
    if demand.asked == "exact" or (demand.asked == "auto" and demand.local and small):
        return "exact", 0
    m = min(given or default_landmarks(n), n)
    while given is None and m > FEWEST_LANDMARKS:
        if demand.counted(m) <= budget:
            break
        m = max(m - 64, FEWEST_LANDMARKS)
    return "nystroem", m


def width(demand: Demand) -> int:
    """Columns of the features that stand for a kernel, or 0 if there are n x n matrices.

    Examples
    --------
    >>> import numpy as np
    >>> from appellate.numerics.kernels import GaussianKernel, LinearKernel
    >>> kernels = GaussianKernel(), LinearKernel()
    >>> [width(ask(each, (500_000, 50), 3, np.float32)) for each in kernels]
    [1024, 50]
    """
    if demand.linear:
        return 0 if demand.whole else demand.shape[1]
    return decide(demand, memory_budget())[1]


def _may_be_tried(demand: Demand, exact: bool) -> bool:
    """Whether a fit is not refused, whatever memory is free: it is small, or was asked for."""
    n, q = demand.shape
    if exact:
        return demand.asked == "exact" or n <= SMALL_ROWS
    return not demand.limited or (demand.linear and max(n, q) <= SMALL_ROWS)


def _what(demand: Demand, kind: str, m: int) -> str:
    if demand.linear:
        matrices = "n x n matrices and " * demand.whole
        return f"linear kernel, {matrices}a copy of the {demand.shape[1]} features"
    return "exact kernel matrix" if kind == "exact" else f"Nystroem features of {m} landmarks"


def _message(demand: Demand, kind: str, m: int, needed: int, budget: int) -> str:
    """Say what was chosen, why, and what it takes."""
    n, folder = demand.shape[0], demand.kernel.cache_dir
    reason = f"{n} rows"
    if kind == "nystroem" and demand.asked == "auto" and demand.local:
        reason = f"the exact kernel of {n} rows needs {_gb(demand.exact())}"
        beyond = f"the budget is {_gb(budget)} (APPELLATE_MEMORY)"
        slow = f"is slower beyond {EXACT_ROWS} rows"
        reason += f" and {slow}" if demand.exact() <= budget else f", {beyond}"
    elif kind == "nystroem" and demand.given is None and m < min(default_landmarks(n), n):
        reason += f", and no more fit into the budget of {_gb(budget)} (APPELLATE_MEMORY)"
    said = f"{_what(demand, kind, m)}: {reason}; takes about {_gb(needed)} of memory"
    beside = not demand.whole and not (demand.local and folder is None)
    if beside and (demand.linear or kind == "nystroem"):
        where = "on the cluster" if folder is None else f"of disk in '{folder}'"
        said += f" and {_gb(demand.stored(m or demand.shape[1]))} {where}"
    return said


def _taken(demand: Demand, kind: str, m: int, needed: int, free: int) -> str:
    """Say what does not fit."""
    return (
        f"{_what(demand, kind, m)} of {demand.shape[0]} rows take {_gb(needed)}, and {_gb(free)} "
        f"are free (a fit takes {_SHARE:.0%} at most)."
    )


def _advice(demand: Demand, m: int, free: int) -> str:
    """Say what would fit into the free memory."""
    room, ways = _SHARE * free, list[str]()
    most = m or min(default_landmarks(demand.shape[0]), demand.shape[0])
    if m and demand.here and not demand.at_hand and demand.features(m, False) <= room:
        ways.append("name a cache_dir, so that the features live on disk")
    steps = range(most, 0, -max(1, most // 64))
    fewer = next((k for k in steps if demand.features(k) <= room), None)
    if fewer and not demand.linear:
        known = f"lower n_landmarks to {fewer}"
        other = f"pass GaussianKernel(approximation='nystroem', n_landmarks={fewer}) as kernel"
        ways.append(known if m else other)
    more = "features, or more memory" if demand.linear else "more memory"
    ways.append(f"take fewer rows or {'another base' if demand.at_hand else more}")
    advice = ", or ".join(ways)
    return f"{advice[0].upper()}{advice[1:]}."


def memory_budget() -> int:
    """Bytes that a fit may take: 8 GB, or what the environment variable APPELLATE_MEMORY says.

    It decides between the exact kernel and Nystroem features, and how many landmarks there are.
    The results of a fit depend on it, but not on the memory that is free.

    Raises
    ------
    ValueError
        If APPELLATE_MEMORY is not a size such as ``16GB``.

    Examples
    --------
    >>> memory_budget()
    8000000000
    """
    said = os.environ.get("APPELLATE_MEMORY", "").strip()
    if not said:
        return BUDGET
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", said.lower())
    if found is None or found[2] not in _UNITS:
        raise ValueError(
            f"APPELLATE_MEMORY={said!r} is not a size. Set it to a number of bytes, or to a size "
            "such as 16GB."
        )
    return round(float(found[1]) * _UNITS[found[2]])


def _gb(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{max(size / 1e6, 1):.0f} MB"


def default_landmarks(n: int) -> int:
    """Return how many landmarks n rows get where nobody says.

    As many as take some minute to make features of, n m^2 + 3 m^3 = 4e11, since accuracy goes on
    rising with them, but no fewer than 1024. So the features of more rows never take less time
    than those of fewer, or than the exact kernel of 9,000. Fewer rows have no more landmarks
    than a fifth of them, or 1024.

    Examples
    --------
    >>> [default_landmarks(n) for n in (5_000, 10_000, 100_000, 1_000_000)]
    [1024, 4160, 1920, 1024]
    """
    m = (_FEATURE_WORK / n) ** 0.5
    for _ in range(50):  # Newton's method, from above
        m -= (n * m**2 + 3 * m**3 - _FEATURE_WORK) / (2 * n * m + 9 * m**2)
    affordable = m if n > EXACT_ROWS else min(m, n / 5)
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
