"""What auto decides, says and refuses."""

from __future__ import annotations

import re

import numpy as np
import pytest

from appellate.numerics import memory
from appellate.numerics.kernels import GaussianKernel, LinearKernel
from appellate.numerics.memory import _left_in_groups, free_memory, represent

GB = 10**9


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    monkeypatch.setattr(memory, "effective_threads", lambda: 2)


@pytest.fixture
def ask(monkeypatch):
    """Ask for the representation of a Gaussian kernel where so much memory is free."""

    def ask(n, free, approximation="auto", q=50, **options):
        monkeypatch.setattr(memory, "free_memory", lambda: int(free))
        settings = {k: options.pop(k) for k in ("n_landmarks", "cache_dir") if k in options}
        kernel = GaussianKernel(approximation=approximation, **settings)
        return represent(memory.ask(kernel, (n, q), 20, np.float32, **options))

    return ask


@pytest.mark.parametrize(
    ("n", "free", "kind", "n_landmarks"),
    [
        (3_000, 1_000, "exact", 0),  # small: the memory is not asked for
        (9_000, 16 * GB, "exact", 0),
        (9_001, 16 * GB, "nystroem", 4224),
        (9_001, 64 * GB, "nystroem", 4224),
        (100_000, 16 * GB, "nystroem", 1920),
        (1_000_000, 16 * GB, "nystroem", 1024),
    ],
)
def test_auto(ask, n, free, kind, n_landmarks):
    made = ask(n, free)
    assert (made.kind, made.n_landmarks) == (kind, n_landmarks)
    assert n == 3_000 or made.memory <= 0.8 * free


@pytest.mark.parametrize(("n", "budget", "default"), [(20_000, 1, 3520), (1_000_000, 4, 1024)])
def test_as_many_landmarks_as_fit_into_the_budget(ask, n, budget, default, monkeypatch):
    monkeypatch.setenv("APPELLATE_MEMORY", f"{budget} GB")
    made = ask(n, 64 * GB)
    assert 256 < made.n_landmarks < default
    assert budget * GB - 64 * (5 * n + 50 * 1000) < made.memory <= budget * GB


def kind_of(made):
    return made.kind, made.n_landmarks


@pytest.mark.parametrize("n", [3_000, 8_000, 9_000, 9_500, 30_000, 200_000])
def test_the_choice_does_not_depend_on_what_else_runs(ask, n):
    """It is refused where it does not fit, but it never becomes another one."""
    found = {kind_of(ask(n, free)) for free in (8 * GB, 16 * GB, 640 * GB)}
    assert len(found) == 1
    if n > 4_000:
        with pytest.raises(MemoryError, match=r"and 0\.6 GB are free .*n_landmarks"):
            ask(n, 0.6 * GB)


@pytest.mark.parametrize("budget", ["1GB", "3GB", "8GB"])
def test_threads_and_workers_change_no_landmark(ask, budget, monkeypatch):
    monkeypatch.setenv("APPELLATE_MEMORY", budget)
    for n in (100_000, 300_000, 700_000, 1_000_000):
        found = set()
        for n_threads in (1, 2, 64):
            monkeypatch.setattr(memory, "effective_threads", lambda n_threads=n_threads: n_threads)
            for local in (True, False):
                found.add(ask(n, 640 * GB, local=local, n_widths=5).n_landmarks)
        assert len(found) == 1, n
    said = ask(1_000_000, 640 * GB, local=False, n_widths=5).message
    assert f"no more fit into the budget of {budget[0]}.0 GB (APPELLATE_MEMORY)" in said


@pytest.mark.parametrize(
    ("said", "budget"),
    [("", 8 * GB), ("16GB", 16 * GB), ("2.5 gb", 2.5 * GB), ("1GiB", 2**30), ("5000", 5000)],
)
def test_the_budget_is_a_setting(said, budget, monkeypatch):
    monkeypatch.setenv("APPELLATE_MEMORY", said)
    assert memory.memory_budget() == budget


def test_a_budget_that_is_not_a_size_is_named(monkeypatch):
    monkeypatch.setenv("APPELLATE_MEMORY", "much")
    with pytest.raises(ValueError, match=r"APPELLATE_MEMORY='much' is not a size.*such as 16GB"):
        memory.memory_budget()


def test_the_budget_decides_between_exact_and_nystroem(ask, monkeypatch):
    needed = ask(8_000, 64 * GB).memory
    monkeypatch.setenv("APPELLATE_MEMORY", str(needed))
    assert ask(8_000, 64 * GB).kind == "exact"
    monkeypatch.setenv("APPELLATE_MEMORY", str(needed - 1))
    made = ask(8_000, 64 * GB)
    assert made.kind == "nystroem"
    assert "the budget is" in made.message
    assert "(APPELLATE_MEMORY)" in made.message


def operations(name, n, m, labels=10, passes=50):
    """Additions and multiplications of a fit: factorisations or features, and passes over them."""
    some = min(n, 4_000)
    kinds, members, exact = {"jury": (5, 6, 7.0), "SURE-PLCP": (1, 1, 1.0)}.get(name, (1, 1, 1.5))
    tried = 3 * some**3 if name == "testimony" else 0
    if not m:
        return tried + exact * n**3 + members * passes * 2 * n**2 * labels
    features = kinds * (3 * n * m**2 + 9 * m**3)
    if name == "jury":  # what is left of the moments without each fold
        features += kinds * n * m**2 + members * 6 * m**3 / 3
    return tried + features + members * passes * 2 * n * m * labels


@pytest.mark.parametrize("name", ["jury", "SURE-PLCP", "testimony"])
def test_twice_the_rows_never_cost_less(name, monkeypatch):
    """The work grows with the rows, from the exact kernel to Nystroem features too.

    The budget is large here: landmarks that do not fit into it are left out, which costs less.
    """
    monkeypatch.setenv("APPELLATE_MEMORY", "64GB")
    monkeypatch.setattr(memory, "free_memory", lambda: 1000 * GB)
    options = {}
    if name == "jury":
        options = {"n_matrices": 7.7, "n_widths": 5, "n_squares": 71}

    def cost(n):
        made = represent(memory.ask(GaussianKernel(), (n, 20), 10, np.float64, **options))
        return operations(name, n, made.n_landmarks)

    sizes = np.unique(np.geomspace(1_000, 400_000, 60).astype(int))
    sizes = np.unique([*sizes, 4_001, 4_500, 4_501, 9_000, 9_001]).tolist()
    for n in sizes:
        assert cost(2 * n) >= cost(n), n


def test_never_more_landmarks_than_rows(ask):
    assert ask(300, 16 * GB, "nystroem").n_landmarks == 300
    assert ask(300, 16 * GB, "nystroem", n_landmarks=20).n_landmarks == 20


def test_the_message_has_the_numbers(ask):
    said = ask(1_000_000, 16 * GB).message
    assert said.startswith("Nystroem features of 1024 landmarks: the exact kernel of 1000000 rows")
    assert "needs 12000.5 GB, the budget is 8.0 GB (APPELLATE_MEMORY); takes about 4." in said
    on_disk = ask(1_000_000, 4 * GB, cache_dir="/scratch").message
    assert "1024 landmarks" in on_disk
    assert on_disk.endswith("of memory and 4.1 GB of disk in '/scratch'")
    assert ask(1_000_000, 1.5 * GB, local=False).message.endswith("and 4.1 GB on the cluster")
    assert ask(300, GB, "exact").message.startswith("exact kernel matrix: 300 rows; takes about")
    slow = ask(10_000, 16 * GB).message
    assert "of 10000 rows needs 1.2 GB and is slower beyond 9000 rows; takes" in slow


def test_refuses_with_the_numbers(ask):
    with pytest.raises(MemoryError, match=r"1024 landmarks .* 1\.5 GB are free .*Name a cache"):
        ask(1_000_000, 1.5 * GB)
    assert ask(1_000_000, 1.5 * GB, cache_dir="/scratch").kind == "nystroem"
    with pytest.raises(MemoryError, match=r"\)\. Take fewer rows or more memory\."):
        ask(10_000_000, 1 * GB)


def test_advice_helps(ask):
    """What a refusal offers would fit."""
    rng = np.random.default_rng(0)
    refused = 0
    for trial in range(200):
        n, q = int(10 ** rng.uniform(4, 7)), int(10 ** rng.uniform(0, 4))
        free, given = int(10 ** rng.uniform(8.5, 10)), {"q": q, "n_widths": 1 + trial // 4 % 2}
        if trial % 2:
            given["n_landmarks"] = int(10 ** rng.uniform(1, 4.5))
        if trial // 2 % 2:
            given["cache_dir"] = "/scratch"
        try:
            ask(n, free, "nystroem", **given)
        except MemoryError as error:
            advice = str(error)
        else:
            continue
        refused += 1
        if fewer := re.search(r"ower n_landmarks to (\d+)", advice):
            assert ask(n, free, "nystroem", **given | {"n_landmarks": int(fewer[1])})
        if "ame a cache_dir" in advice:
            assert ask(n, free, "nystroem", **given | {"cache_dir": "/scratch"})
    assert refused > 50


def test_every_width_has_its_features(ask):
    one, two = (ask(300_000, 16 * GB, n_landmarks=512, n_widths=k) for k in (1, 2))
    assert two.memory - one.memory == pytest.approx(4 * 300_000 * 512, rel=0.01)


def test_a_cluster_keeps_the_features(ask):
    made = ask(1_000_000, 1.5 * GB, local=False)
    assert (made.kind, made.n_landmarks) == ("nystroem", 1024)
    with pytest.raises(ValueError, match=r"'exact' needs the rows in memory.*X\.compute\(\)"):
        ask(1_000, GB, "exact", local=False)


@pytest.mark.parametrize("place", [{}, {"cache_dir": "/scratch"}, {"local": False}])
def test_features_at_hand_count_wherever_they_are_kept(ask, place):
    made = ask(2_000_000, 16 * GB, "nystroem", at_hand=True, **place)
    assert made.n_landmarks < 1024  # as many as fit into the budget
    assert 4 * 2_000_000 * made.n_landmarks < made.memory <= 8 * GB
    with pytest.raises(MemoryError, match=r"Lower n_landmarks.*, or take fewer rows or another"):
        ask(1_000_000, 4 * GB, n_landmarks=2048, at_hand=True, **place)


def test_what_a_method_needs_counts(ask):
    assert ask(8_900, 16 * GB).kind == "exact"
    assert ask(8_900, 16 * GB, n_matrices=26).kind == "nystroem"
    assert ask(50_000, 64 * GB, n_squares=60).memory > ask(50_000, 64 * GB).memory
    wide = ask(50_000, 64 * GB, q=20_000)
    assert wide.memory - ask(50_000, 64 * GB).memory > 1 * GB  # the landmarks themselves


def test_linear_models_that_do_not_fit(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 2 * GB)

    def linear(n, q, cache_dir=None, **options):
        return represent(memory.ask(LinearKernel(cache_dir), (n, q), 3, np.float32, **options))

    with pytest.raises(MemoryError, match=r"100 features .* and 2\.0 GB .* Name a cache_dir"):
        linear(10_000_000, 100)
    assert linear(10_000_000, 100, "/scratch").message.endswith("4.0 GB of disk in '/scratch'")
    assert linear(10_000_000, 100, local=False).message.endswith("4.0 GB on the cluster")
    assert linear(4_000, 4_000).kind == "exact"  # small: the memory is not asked for
    for shape in ((30_000, 29_000), (3_000, 200_000)):  # its matrices are never on disk
        for folder in (None, "/scratch"):
            with pytest.raises(MemoryError, match=r"free .*\)\. Take fewer rows or features"):
                linear(*shape, folder)
    two, one = (linear(1_000_000, 60, n_widths=k).memory for k in (2, 1))
    assert two - one == pytest.approx(4 * 1_000_000 * 60, rel=0.01)


def test_free_memory_is_read_and_limited():
    assert 2**20 < free_memory() < 2**50
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (200 * 2**30, hard))
    try:
        assert free_memory() < 200 * 2**30
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def test_the_tightest_control_group_counts(tmp_path):
    """Files at hand are free."""
    root = tmp_path
    for place, most, used in [
        (root, "max", 0),
        (root / "a", 90_000, 20_000),
        (root / "a/b", 80_000, 40_000),
    ]:
        place.mkdir(parents=True, exist_ok=True)
        (place / "memory.max").write_text(f"{most}\n")
        (place / "memory.current").write_text(f"{used}\n")
        (place / "memory.stat").write_text("anon 7\ninactive_file 5000\n")
    own = tmp_path / "own"
    own.write_text("3:cpu:/x\n0::/a/b\n")
    assert min(_left_in_groups(tmp_path, own)) == 80_000 - 40_000 + 5_000
    assert _left_in_groups(tmp_path, tmp_path / "none") == []
