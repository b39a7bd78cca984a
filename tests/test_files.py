"""Files that are written whole or not at all, whatever kills the writer."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import stat
import subprocess
import sys
import threading
import tracemalloc

import pytest

from appellate import _files
from appellate._files import (
    MemberError,
    WriteError,
    check_writable,
    finish_folder,
    read_csv,
    read_json,
    read_member,
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


@pytest.mark.parametrize("owned", [pytest.param(None, marks=pytest.mark.slow), OWNED])
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


# -- folders of others -------------------------------------------------------------------------


def leave_commit(folder, plan="[]", **files):
    commit = folder / _files._COMMIT
    commit.mkdir(parents=True)
    fill(commit, files)
    if plan is not None:
        (commit / _files._PLAN).write_text(plan)
    return commit


def test_a_plan_removes_nothing_outside_its_folder(tmp_path):
    leave_commit(tmp_path / "folder", '["../other", "..", "here", ""]')
    for place in (tmp_path / "other", tmp_path / "folder" / "here"):
        place.write_text("")
    finish_folder(tmp_path / "folder")
    assert (tmp_path / "other").exists()
    assert os.listdir(tmp_path / "folder") == []


@pytest.mark.parametrize("plan", ["[[1]]", "{", "7", "[" * 200_000, '"' * 2_000_000, "\xff", None])
def test_moves_nothing_if_the_plan_is_nonsense(tmp_path, plan):
    commit = leave_commit(tmp_path / "folder", plan, new="new")
    with pytest.raises(MemberError, match=r"\.appellate-commit.*(Remove|Move it away)") as caught:
        finish_folder(tmp_path / "folder")
    assert len(str(caught.value)) < 1000
    assert (commit / "new").read_text() == "new"
    assert os.listdir(tmp_path / "folder") == [_files._COMMIT]


@pytest.mark.parametrize("where", ["..", "/proc/self", "gone", "."])
def test_moves_nothing_if_the_commit_is_a_link(tmp_path, where):
    """Once every entry of the linked folder was moved into the model."""
    folder = tmp_path / "home" / "folder"
    fill(folder, OLD)
    fill(tmp_path / "home", {"a.txt": "mine", ".hidden/b": "mine"})
    (folder / _files._COMMIT).symlink_to(where)
    before = set(tmp_path.rglob("*"))
    with pytest.raises(MemberError, match="is a symbolic link, not a folder"):
        finish_folder(folder)
    with pytest.raises(MemberError, match="is a symbolic link"), whole_folder(folder) as stage:
        fill(stage, NEW)
    assert set(tmp_path.rglob("*")) == before


def make_special(path, kind):
    """Put something at a path that is not a regular file."""
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "socket":
            listening = socket.socket(socket.AF_UNIX)
            with contextlib.chdir(path.parent):
                listening.bind(path.name)
            listening.close()
        case "folder":
            path.mkdir()
        case _:
            path.symlink_to(kind)


SPECIAL = ["fifo", "socket", "folder", "/dev/zero", "/dev/tty", "/etc/passwd", "gone", "loop"]


@pytest.mark.parametrize("kind", SPECIAL)
def test_reads_regular_files_only(tmp_path, kind):
    path = tmp_path / "loop"
    make_special(path, kind)
    with pytest.raises(MemberError, match=rf"'{path}' is .*, not a file.*Move it away"):
        read_member(tmp_path, "loop", 1000)


@pytest.mark.parametrize("kind", [kind for kind in SPECIAL if kind != "folder"])
def test_a_plan_or_commit_that_is_not_a_file_or_folder(tmp_path, kind):
    one, other = tmp_path / "one", tmp_path / "other"
    make_special(leave_commit(one, None) / _files._PLAN, kind)
    other.mkdir()
    make_special(other / _files._COMMIT, kind)
    for folder in (one, other):
        with pytest.raises(MemberError, match="so it was not opened"):
            finish_folder(folder)


def test_reads_no_more_than_the_limit(tmp_path):
    fill(tmp_path, {"a": "x" * 10})
    assert read_member(tmp_path, "a", 10) == b"x" * 10
    with pytest.raises(MemberError, match="larger than 9 bytes"):
        read_member(tmp_path, "a", 9)
    with pytest.raises(FileNotFoundError):
        read_member(tmp_path, "b", 9)
    if os.path.exists("/proc/self/maps"):  # says to be empty, and is not
        with pytest.raises(MemberError, match="larger than 9 bytes"):
            read_member("/proc/self", "maps", 9)


def test_takes_no_more_memory_than_a_file_has(tmp_path):
    """It asked for as many bytes as the limit: 16 GiB for every model."""
    write_file(tmp_path / "a", "[1]")
    tracemalloc.start()
    try:
        assert read_member(tmp_path, "a", 1 << 34) == b"[1]"
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "text", ["[" * 200_000, '{"a":' * 101 + "1" + "}" * 101, "[1", "\xff", ""]
)
def test_names_a_file_that_is_not_json(tmp_path, text):
    (tmp_path / "a.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(MemberError, match=r"a.json' is damaged"):
        read_json(tmp_path, "a.json", 10**6)


def test_brackets_in_texts_are_not_depth(tmp_path):
    value = {"a": "[" * 1000, 'b\\"[': ['"[' * 200], "c": [[[]]]}
    fill(tmp_path, {"a.json": json.dumps(value)})
    assert read_json(tmp_path, "a.json", 10**6) == value


def test_does_not_repair_the_folder_of_another_user(tmp_path, monkeypatch):
    leave_commit(tmp_path / "folder", new="new")
    litter = tmp_path / "folder" / f".appellate-{_files._HOST}-1-00000000"
    litter.mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(MemberError, match="belongs to another user"):
        finish_folder(tmp_path / "folder")
    assert not (tmp_path / "folder" / "new").exists()
    _files._sweep(tmp_path / "folder")
    assert litter.exists()


def test_a_folder_takes_the_place_of_a_link_when_a_commit_is_finished(tmp_path):
    leave_commit(tmp_path / "folder", **{"model/a": "new"})
    (tmp_path / "folder" / "model").symlink_to(tmp_path)
    finish_folder(tmp_path / "folder")
    assert seen(tmp_path / "folder") == {"model/a": "new"}


def test_removes_only_litter_that_nobody_has_locked(tmp_path):
    """The number of the process says nothing: it may count in another container."""
    dead, odd, link = (
        tmp_path / f".appellate-{_files._HOST}-{number}-00000000" for number in (1, 10**20, 7)
    )
    foreign = tmp_path / ".appellate-notes"
    for folder in (dead, foreign):
        folder.mkdir()
    odd.write_text("a file")
    link.symlink_to(foreign)
    with whole_folder(tmp_path / "run") as stage:
        write_file(tmp_path / "a.txt", "x")
        assert stage.is_dir()
        assert [path.exists() for path in (foreign, link, dead, odd)] == [True, True, False, False]
        fill(stage, NEW)
    assert seen(tmp_path / "run") == NEW


def test_a_stage_is_kept_while_a_process_of_another_container_writes(tmp_path):
    """What matters of a container: the number of its process means nothing here."""
    script = (
        "import sys, time, secrets, os; os.getpid = lambda: 2**22 + 1\n"
        "from appellate._files import whole_folder\n"
        f"with whole_folder({str(tmp_path / 'run')!r}) as stage:\n"
        "    (stage / 'a').write_text('whole'); print('ready', flush=True); sys.stdin.read()\n"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", script], **pipes) as process:
        assert process.stdout.readline() == "ready\n"
        write_file(tmp_path / "a.txt", "x")
        assert hidden(tmp_path)
        process.stdin.close()
        assert process.wait(30) == 0
    assert seen(tmp_path / "run") == {"a": "whole"}
    assert not hidden(tmp_path)


def test_two_readers_finish_a_folder_once(tmp_path):
    for _ in range(20):
        leave_commit(tmp_path / "folder", **{f"f{i}": "new" for i in range(30)})
        errors = []

        def finish(errors=errors):
            try:
                finish_folder(tmp_path / "folder")
                assert len(seen(tmp_path / "folder")) == 30
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=finish) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        _files.shutil.rmtree(tmp_path / "folder")


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


# -- reading CSV ----------------------------------------------------------------------------


def test_csv_is_read_by_column(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text('a\tb\n1\t"x\ty"\n\n2\t\n', encoding="utf-8")
    assert read_csv(path, "\t") == {"a": ["1", "2"], "b": ["x\ty", ""]}
    path.write_text("a,b\n", encoding="utf-8")
    assert read_csv(path) == {"a": [], "b": []}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no header"),
        ("a,a\n1,2\n", "a column name occurs twice"),
        ("a,b\n1,2\n3\n", "line 3: 1 cells, but the header has 2"),
        ('a,b\n1,"2\n', "line 2: unexpected end of data"),
    ],
)
def test_damaged_csv_is_refused_with_its_line(tmp_path, text, message):
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_csv(path)
