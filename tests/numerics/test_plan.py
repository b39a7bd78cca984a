"""What auto decides, says and refuses."""

from __future__ import annotations

import numpy as np
import pytest

from appellate.numerics.plan import _left_in_group, free_memory, linear_plan, make_plan

GB = 10**9


def plan(n, free, kind="auto", **options):
    return make_plan((n, 50), 20, np.float32, kind=kind, free=free, **options)


@pytest.mark.parametrize(
    ("n", "free", "kind", "n_landmarks"),
    [
        (3_000, 1_000, "exact", 0),  # small: the memory is not asked for
        (20_000, 16 * GB, "exact", 0),
        (20_000, 2 * GB, "nystroem", 3968),
        (20_000, 1 * GB, "nystroem", 2560),  # as many as fit, with the small algebra
        (20_001, 64 * GB, "nystroem", 3968),
        (100_000, 16 * GB, "nystroem", 1984),
        (1_000_000, 16 * GB, "nystroem", 1024),
        (1_000_000, 4 * GB, "nystroem", 576),  # as many as fit
    ],
)
def test_auto(n, free, kind, n_landmarks):
    made = plan(n, free)
    assert (made.kind, made.n_landmarks) == (kind, n_landmarks)
    assert n == 3_000 or made.memory <= 0.8 * free


def test_more_landmarks_for_fewer_rows():
    made = [plan(n, 64 * GB, "nystroem") for n in (5_000, 30_000, 300_000, 3_000_000)]
    assert [each.n_landmarks for each in made] == [1024, 3648, 1152, 1024]


def test_never_more_landmarks_than_rows():
    assert plan(300, 16 * GB, "nystroem").n_landmarks == 300
    assert plan(300, 16 * GB, "nystroem", n_landmarks=20).n_landmarks == 20


def test_the_message_has_the_numbers():
    said = str(plan(1_000_000, 16 * GB))
    assert said.startswith("Nystroem features of 1024 landmarks: the exact kernel of 1000000 rows")
    assert "needs 12000.5 GB, 16.0 GB are free; needs about 4.9 GB of memory, and some" in said
    on_disk = str(plan(1_000_000, 4 * GB, cache_dir="/scratch"))
    assert "1024 landmarks" in on_disk
    assert "of memory and 4.1 GB of disk in '/scratch'" in on_disk


def test_refuses_with_the_numbers():
    with pytest.raises(MemoryError) as caught:
        plan(1_000_000, 1.5 * GB)
    said = str(caught.value)
    assert "exact kernel would need 12000.5 GB" in said
    assert "Nystroem features of 256 landmarks 1.8 GB, and 1.5 GB are free" in said
    assert "Name a cache_dir" in said
    assert plan(1_000_000, 1.5 * GB, cache_dir="/scratch").kind == "nystroem"
    with pytest.raises(MemoryError, match="ower n_landmarks, or take fewer rows"):
        plan(1_000_000, 4 * GB, n_landmarks=2048)
    with pytest.raises(MemoryError, match=r"free .*\. Take fewer rows or a cluster"):
        plan(10_000_000, 1 * GB)


def test_a_cluster_keeps_the_features():
    made = plan(1_000_000, 1.5 * GB, local=False)
    assert (made.kind, made.n_landmarks) == ("nystroem", 1024)
    assert str(made).endswith("needs about 0.8 GB of memory here and 4.1 GB on the cluster.")


@pytest.mark.parametrize("place", [{}, {"cache_dir": "/scratch"}, {"local": False}])
def test_features_at_hand_count_wherever_they_are_kept(place):
    made = plan(1_000_000, 4 * GB, "nystroem", at_hand=True, **place)
    assert made.n_landmarks < 1024  # as many as fit
    assert 4 * 1_000_000 * made.n_landmarks < made.memory <= 0.8 * 4 * GB
    with pytest.raises(MemoryError, match=r"Lower n_landmarks.*, or take fewer rows or another"):
        plan(1_000_000, 4 * GB, n_landmarks=2048, at_hand=True, **place)


def test_free_memory_is_read_and_limited():
    assert 2**20 < free_memory() < 2**50
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (200 * 2**30, hard))
    try:
        assert free_memory() < 200 * 2**30
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.parametrize(
    ("version", "stat"), [(1, "total_inactive_file 5000"), (2, "inactive_file 5000")]
)
def test_control_groups_of_both_versions(version, stat, tmp_path):
    """The tightest of nested groups counts; files at hand are free."""
    root = tmp_path / "memory" if version == 1 else tmp_path
    names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
    names = names if version == 1 else ("memory.max", "memory.current")
    for place, most, used in [
        (root, "max", 0),
        (root / "a", 90_000, 20_000),
        (root / "a/b", 80_000, 40_000),
    ]:
        place.mkdir(parents=True, exist_ok=True)
        (place / names[0]).write_text(f"{most}\n")
        (place / names[1]).write_text(f"{used}\n")
        (place / "memory.stat").write_text(f"anon 7\n{stat}\n")
    own = tmp_path / "own"
    own.write_text("3:cpu:/x\n" + ("4:memory,hugetlb:/a/b\n" if version == 1 else "0::/a/b\n"))
    assert _left_in_group(tmp_path, own) == 80_000 - 40_000 + 5_000
    assert _left_in_group(tmp_path, tmp_path / "none") is None


def test_what_a_method_needs_counts():
    assert plan(15_000, 4 * GB).kind == "exact"
    assert plan(15_000, 4 * GB, n_matrices=5).kind == "nystroem"
    assert plan(15_000, 4 * GB, n_outputs=2_000).kind == "nystroem"
    wide = make_plan((50_000, 20_000), 20, np.float32, free=64 * GB)
    assert wide.memory - plan(50_000, 64 * GB).memory > 1 * GB  # the landmarks themselves


def test_linear_models_that_do_not_fit(monkeypatch):
    monkeypatch.setattr("appellate.numerics.plan.free_memory", lambda: 1 * GB)
    with pytest.raises(MemoryError, match=r"100 features, 4\.0 GB, and 1\.0 GB are free. Name a"):
        linear_plan((10_000_000, 100), np.float32, True, None)
    assert linear_plan((10_000_000, 100), np.float32, True, "/scratch").cache_dir == "/scratch"
