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
        return represent(kernel, (n, q), 20, np.float32, **options)

    return ask


@pytest.mark.parametrize(
    ("n", "free", "kind", "n_landmarks"),
    [
        (3_000, 1_000, "exact", 0),  # small: the memory is not asked for
        (20_000, 16 * GB, "exact", 0),
        (20_000, 2 * GB, "nystroem", 3968),
        (20_001, 64 * GB, "nystroem", 3968),
        (100_000, 16 * GB, "nystroem", 1984),
        (1_000_000, 16 * GB, "nystroem", 1024),
    ],
)
def test_auto(ask, n, free, kind, n_landmarks):
    made = ask(n, free)
    assert (made.kind, made.n_landmarks) == (kind, n_landmarks)
    assert n == 3_000 or made.memory <= 0.8 * free


@pytest.mark.parametrize(("n", "free", "default"), [(20_000, GB, 3968), (1_000_000, 4 * GB, 1024)])
def test_as_many_landmarks_as_fit(ask, n, free, default):
    made = ask(n, free)
    assert 256 < made.n_landmarks < default
    assert made.memory <= 0.8 * free
    with pytest.raises(MemoryError):
        ask(n, free, n_landmarks=made.n_landmarks + 64)


def test_never_more_landmarks_than_rows(ask):
    assert ask(300, 16 * GB, "nystroem").n_landmarks == 300
    assert ask(300, 16 * GB, "nystroem", n_landmarks=20).n_landmarks == 20


def test_the_message_has_the_numbers(ask):
    said = ask(1_000_000, 16 * GB).message
    assert said.startswith("Nystroem features of 1024 landmarks: the exact kernel of 1000000 rows")
    assert "needs 12000.5 GB, 16.0 GB are free; takes about 4." in said
    on_disk = ask(1_000_000, 4 * GB, cache_dir="/scratch").message
    assert "1024 landmarks" in on_disk
    assert on_disk.endswith("of memory and 4.1 GB of disk in '/scratch'")
    assert ask(1_000_000, 1.5 * GB, local=False).message.endswith("and 4.1 GB on the cluster")
    assert ask(300, GB, "exact").message.startswith("exact kernel matrix: 300 rows, 1.0 GB")


def test_refuses_with_the_numbers(ask):
    with pytest.raises(MemoryError, match=r"256 landmarks .* and 1\.5 GB are free .*Name a cache"):
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
    made = ask(1_000_000, 4 * GB, "nystroem", at_hand=True, **place)
    assert made.n_landmarks < 1024  # as many as fit
    assert 4 * 1_000_000 * made.n_landmarks < made.memory <= 0.8 * 4 * GB
    with pytest.raises(MemoryError, match=r"Lower n_landmarks.*, or take fewer rows or another"):
        ask(1_000_000, 4 * GB, n_landmarks=2048, at_hand=True, **place)


def test_what_a_method_needs_counts(ask):
    assert ask(15_000, 4 * GB).kind == "exact"
    assert ask(15_000, 4 * GB, n_matrices=5).kind == "nystroem"
    wide = ask(50_000, 64 * GB, q=20_000)
    assert wide.memory - ask(50_000, 64 * GB).memory > 1 * GB  # the landmarks themselves


def test_linear_models_that_do_not_fit(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 2 * GB)

    def linear(n, q, cache_dir=None, **options):
        return represent(LinearKernel(cache_dir), (n, q), 3, np.float32, **options)

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
