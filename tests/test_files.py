"""Files that are written whole or not at all, whatever kills the writer."""

from __future__ import annotations

import errno
import os
import stat

import pytest

from appellate import _files
from appellate._files import (
    WriteError,
    check_writable,
    finish_folder,
    whole_file,
    whole_folder,
    write_file,
)

OLD = {"run.json": "old", "docket.csv": "old", "gone.csv": "old", "model/a": "old"}
NEW = {"run.json": "new", "docket.csv": "new", "model/a": "new", "model/b": "new"}
OWNED = ("run.json", "docket.csv", "gone.csv", "model")


def fill(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def seen(folder):
    """What a person sees: all files that are not hidden."""
    return {
        str(file.relative_to(folder)): file.read_text()
        for file in folder.rglob("*")
        if file.is_file() and not any(p.startswith(".") for p in file.relative_to(folder).parts)
    }


def hidden(folder):
    return [entry.name for entry in folder.iterdir() if entry.name.startswith(".")]


def test_a_file_is_replaced_and_a_link_stays_a_link(tmp_path):
    write_file(tmp_path / "real.txt", "old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    write_file(tmp_path / "link.txt", b"new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"
    assert not hidden(tmp_path)


def test_a_failed_block_changes_nothing(tmp_path):
    write_file(tmp_path / "a.txt", "old")

    def half(lend):
        with lend as stage:
            stage.joinpath("a").write_text("half") if stage.is_dir() else stage.write_text("half")
            raise KeyError

    for lend in (whole_file(tmp_path / "a.txt"), whole_folder(tmp_path / "new" / "run")):
        with pytest.raises(KeyError):
            half(lend)
    assert (tmp_path / "a.txt").read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize(
    ("mask", "file", "folder"), [(0o077, 0o600, 0o700), (0o022, 0o644, 0o755)]
)
def test_umask_is_honoured(tmp_path, mask, file, folder):
    before = os.umask(mask)
    try:
        write_file(tmp_path / "a.txt", "x")
        with whole_folder(tmp_path / "run") as stage:
            fill(stage, NEW)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == file
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == folder
    assert stat.S_IMODE((tmp_path / "run" / "run.json").stat().st_mode) == file
    assert stat.S_IMODE((tmp_path / "run" / "model").stat().st_mode) == folder


def test_permissions_of_what_was_there_are_kept(tmp_path):
    write_file(tmp_path / "a.txt", "x")
    (tmp_path / "a.txt").chmod(0o640)
    write_file(tmp_path / "a.txt", "y")
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o640


@pytest.fixture(params=["exchange", "one by one"])
def way(request, monkeypatch):
    """Both ways of replacing a folder; on other systems than Linux they are the same."""
    if request.param == "one by one":
        monkeypatch.setattr(_files, "_can_exchange", lambda target: False)
    return request.param


def test_a_folder_is_replaced_with_all_that_is_in_it(tmp_path, way):
    fill(tmp_path / "run", OLD)
    with whole_folder(tmp_path / "run") as stage:
        fill(stage, NEW)
    assert seen(tmp_path / "run") == NEW
    assert hidden(tmp_path) == hidden(tmp_path / "run") == []


def test_what_is_not_owned_stays_and_can_be_appended_to(tmp_path, way):
    fill(tmp_path / "run", OLD | {"decisions.csv": "1\n", "notes/b.txt": "mine"})
    with (tmp_path / "run" / "decisions.csv").open("a") as server:
        with whole_folder(tmp_path / "run", owned=OWNED) as stage:
            fill(stage, NEW)
        server.write("2\n")
    assert seen(tmp_path / "run") == NEW | {"decisions.csv": "1\n2\n", "notes/b.txt": "mine"}


def test_the_folder_in_which_the_user_stands_stays_the_same(tmp_path, monkeypatch):
    fill(tmp_path / "run", OLD)
    monkeypatch.chdir(tmp_path / "run")
    with whole_folder(".", owned=OWNED) as stage:
        fill(stage, NEW)
    assert sorted(os.listdir(".")) == ["docket.csv", "model", "run.json"]


def test_through_a_link_to_another_file_system(tmp_path):
    other = "/dev/shm"
    if not os.path.isdir(other) or os.stat(other).st_dev == tmp_path.stat().st_dev:
        pytest.skip("needs a second file system")
    real = _files.Path(other) / f"appellate-test-{os.getpid()}"
    real.mkdir()
    try:
        (tmp_path / "out").symlink_to(real)
        for files in (OLD, NEW):
            with whole_folder(tmp_path / "out", owned=OWNED) as stage:
                fill(stage, files)
            assert seen(real) == files
        assert (tmp_path / "out").is_symlink()
    finally:
        _files.shutil.rmtree(real)


def test_a_folder_that_cannot_be_moved_is_filled_in_place(tmp_path, monkeypatch):
    """A bind mount: neither exchanged nor a target of a rename from outside."""
    fill(tmp_path / "run", OLD)
    rename = os.rename

    def refuse(source, target):
        if os.path.dirname(source) != os.path.dirname(target):
            inside = os.path.dirname(source).startswith(str(tmp_path / "run"))
            if not inside:
                raise OSError(errno.EXDEV, "Invalid cross-device link")
        return rename(source, target)

    monkeypatch.setattr(os, "rename", refuse)
    monkeypatch.setattr(_files, "_exchange", lambda one, other: False)
    with whole_folder(tmp_path / "run", owned=OWNED) as stage:
        fill(stage, NEW)
    assert seen(tmp_path / "run") == NEW
    assert hidden(tmp_path) == hidden(tmp_path / "run") == []


def test_a_file_system_without_links(tmp_path, monkeypatch):
    fill(tmp_path / "run", OLD | {"decisions.csv": "kept"})

    def refuse(*_, **__):
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    with whole_folder(tmp_path / "run", owned=OWNED) as stage:
        fill(stage, NEW)
    assert seen(tmp_path / "run") == NEW | {"decisions.csv": "kept"}


STEPS = ("replace", "rename", "unlink", "rmdir", "link", "mkdir", "fsync", "exchange")


def crash(number, work):
    """Run work in a process that dies before its number-th change of the disk; tell if it did."""
    process = os.fork()
    if process:
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 9
    left = [number]

    def dying(change):
        def wrapped(*args, **kwargs):
            left[0] -= 1
            if left[0] < 0:
                os._exit(9)
            return change(*args, **kwargs)

        return wrapped

    for name in STEPS[:-1]:
        setattr(os, name, dying(getattr(os, name)))
    _files._exchange = dying(_files._exchange)
    try:
        work()
    finally:
        os._exit(0)


def test_killed_before_any_change_the_old_or_the_new_file_is_there(tmp_path):
    for number in range(100):
        write_file(tmp_path / "a.txt", "old")
        died = crash(number, lambda: write_file(tmp_path / "a.txt", "new"))
        assert (tmp_path / "a.txt").read_text() in ("old", "new")
        write_file(tmp_path / "a.txt", "newest")
        assert os.listdir(tmp_path) == ["a.txt"]
        if not died:
            return
    raise AssertionError("never came to an end")


@pytest.mark.parametrize("owned", [None, OWNED])
def test_killed_before_any_change_the_old_or_the_new_folder_is_there(tmp_path, way, owned):
    run = tmp_path / "run"
    kept = {} if owned is None else {"decisions.csv": "kept"}

    def work():
        with whole_folder(run, owned=owned) as stage:
            fill(stage, NEW)

    for number in range(200):
        _files.shutil.rmtree(run, ignore_errors=True)
        fill(run, OLD | kept)
        died = crash(number, work)
        if way == "exchange":
            assert seen(run) in (OLD | kept, NEW | kept), number
        finish_folder(run)
        assert seen(run) in (OLD | kept, NEW | kept), number
        work()
        assert seen(run) == NEW | kept
        assert hidden(tmp_path) == hidden(run) == [], number
        if not died:
            return
    raise AssertionError("never came to an end")


@pytest.mark.parametrize("plan", ['["../other", "..", "here"]', "[[1]]", "{", "7"])
def test_a_plan_of_a_strangers_folder_removes_nothing_elsewhere(tmp_path, plan):
    commit = tmp_path / "folder" / _files._COMMIT
    commit.mkdir(parents=True)
    (commit / _files._PLAN).write_text(plan)
    for place in (tmp_path / "other", tmp_path / "folder" / "here"):
        place.write_text("")
    finish_folder(tmp_path / "folder")
    assert (tmp_path / "other").exists()
    assert (tmp_path / "folder" / "here").exists() == ("here" not in plan)


def test_litter_of_a_living_process_is_left_alone(tmp_path):
    living = tmp_path / f".appellate-{_files._HOST}-{os.getpid()}-00000000"
    dead, none = (
        tmp_path / f".appellate-{_files._HOST}-{number}-00000000" for number in (2**22 + 1, 10**20)
    )
    foreign = tmp_path / ".appellate-notes"
    for folder in (living, dead, none, foreign):
        folder.mkdir()
    write_file(tmp_path / "a.txt", "x")
    assert [path.exists() for path in (living, foreign, dead, none)] == [True, True, False, False]


def test_a_place_is_tried_before_the_work(tmp_path):
    check_writable(tmp_path / "new" / "run")
    write_file(tmp_path / "file", "x")
    check_writable(tmp_path / "file")
    assert os.listdir(tmp_path) == ["file"]
    with pytest.raises(WriteError, match=r"file is where a folder .* Name another place"):
        check_writable(tmp_path / "file" / "run")
    if os.path.isdir("/proc"):
        with pytest.raises(WriteError, match="cannot write '/proc/nope'"):
            check_writable("/proc/nope")


def test_errors_say_what_and_where(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(WriteError, match="a folder has that name"):
        write_file(tmp_path / "folder", "x")
    write_file(tmp_path / "file", "x")
    with pytest.raises(WriteError, match="cannot write"), whole_folder(tmp_path / "file") as stage:
        fill(stage, NEW)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]
