"""What auto decides, says and refuses."""

from __future__ import annotations

import re

import numpy as np
import pytest

from appellate.numerics.plan import _left_in_group, free_memory, linear_plan, make_plan

GB = 10**9


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    monkeypatch.setattr("appellate.numerics.plan.effective_threads", lambda: 2)


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
    with pytest.raises(MemoryError, match=r"\. Take fewer rows or a machine with more memory\."):
        plan(10_000_000, 1 * GB)


def test_advice_helps():
    """What a refusal offers would fit, and what would fit is offered."""
    rng = np.random.default_rng(0)
    refused = 0
    for trial in range(400):
        n, q = int(10 ** rng.uniform(4, 7)), int(10 ** rng.uniform(0, 4))
        asked, in_memory = trial % 2, trial // 2 % 2
        given = {
            "free": int(10 ** rng.uniform(8.5, 10)),
            "n_landmarks": int(10 ** rng.uniform(1, 4.5)) if asked else None,
            "cache_dir": None if in_memory else "/scratch",
            "n_widths": 1 + trial // 4 % 2,
        }

        def refusal(n=n, q=q, given=given, **other):
            try:
                make_plan((n, q), 20, np.float32, kind="nystroem", **(given | other))
            except MemoryError as error:
                return str(error).split("at most). ")[1]
            return ""

        if not (advice := refusal()):
            continue
        refused += 1
        elsewhere = not refusal(cache_dir="/scratch")
        assert ("cluster" in advice) == elsewhere
        assert ("ame a cache_dir, so" in advice) == (in_memory and elsewhere)
        if fewer := re.search(r"(and l|L|or l)ower n_landmarks to (\d+)", advice):
            both = {"cache_dir": "/scratch"} if fewer[1] == "and l" else {}
            assert not refusal(n_landmarks=int(fewer[2]), **both)
            assert not both or (refusal(n_landmarks=1) and not elsewhere)
        elif asked:
            assert refusal(n_landmarks=1)
            assert elsewhere or refusal(n_landmarks=1, cache_dir="/scratch")
    assert refused > 100


def test_every_width_has_its_features():
    one, two = (plan(300_000, 16 * GB, n_landmarks=512, n_widths=k) for k in (1, 2))
    assert two.memory - one.memory == pytest.approx(4 * 300_000 * 512, rel=0.01)
    kept = plan(300_000, 16 * GB, n_landmarks=512, n_widths=2, cache_dir="/scratch")
    assert kept.disk == 2 * 4 * 300_000 * 512


def test_threads_need_blocks(monkeypatch):
    few, small = plan(400_000, 16 * GB, n_landmarks=512), plan(2_000, 16 * GB, "nystroem")
    monkeypatch.setattr("appellate.numerics.plan.effective_threads", lambda: 32)
    many, same = plan(400_000, 16 * GB, n_landmarks=512), plan(2_000, 16 * GB, "nystroem")
    assert many.memory - few.memory == 30 * 64 * 2**20
    assert same.memory == small.memory  # there are no more blocks than rows
    both = plan(400_000, 16 * GB, n_landmarks=512, beside=linear(400_000, 50, n_outputs=0))
    copy, square = 4 * 50 * 400_000, 40 * 50**2 + 8 * 50 * 4096
    assert both.memory - many.memory == copy + square  # of blocks there are no more


def test_a_cluster_keeps_the_features():
    made = plan(1_000_000, 1.5 * GB, local=False)
    assert (made.kind, made.n_landmarks) == ("nystroem", 1024)
    assert str(made).endswith("needs about 0.7 GB of memory here and 4.1 GB on the cluster.")


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


def linear(n, q, **options):
    return linear_plan((n, q), 3, np.float32, **options)


def test_linear_models_that_do_not_fit(monkeypatch):
    monkeypatch.setattr("appellate.numerics.plan.free_memory", lambda: 2 * GB)
    with pytest.raises(MemoryError, match=r"100 features .* 4\.9 GB, and 2\.0 GB .* Name a"):
        linear(10_000_000, 100)
    kept = linear(10_000_000, 100, cache_dir="/scratch")
    assert (kept.cache_dir, kept.disk) == ("/scratch", 4 * GB)
    assert linear(10_000_000, 100, local=False).disk == 4 * GB
    assert linear(4_000, 4_000)  # small: the memory is not asked for
    for shape in ((30_000, 29_000), (3_000, 200_000)):  # its matrices are never on disk
        for options in ({}, {"cache_dir": "/scratch"}):
            with pytest.raises(MemoryError, match=r"free .*\)\. Take fewer rows or features"):
                linear(*shape, **options)


def test_linear_models_need_their_matrices():
    assert linear(4_600, 4_000).memory == pytest.approx(0.9 * GB, rel=0.1)  # measured: 0.8
    assert linear(10_000, 40_000).memory > (3 * 4 * 10_000**2) + (4 + 8) * 10_000 * 40_000
    copy = 4 * 100_000 * 600
    assert linear(100_000, 600, n_ridges=2).memory - linear(100_000, 600).memory == copy
    assert plan(50_000, 16 * GB, beside=linear(50_000, 50)).memory > plan(50_000, 16 * GB).memory
