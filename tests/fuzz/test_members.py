"""Every member of a run folder, every thing that is not a file, every way to open the folder."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest

import appellate
from appellate.cli.app import run
from appellate.review.server import DocketServer
from tests.test_files import make_special

pytest.importorskip("jinja2")
pytest.importorskip("skops")
pytestmark = [
    pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs"),
    pytest.mark.filterwarnings("ignore::appellate.NoteWarning"),
    pytest.mark.slow,
]
NAMED = ["--candidates=c", "--id=id", "--method=plcp", "--base=knn"]
KINDS = ["fifo", "socket", "/dev/zero", "a file", "a folder", "gone", "itself"]
MEMBERS = [
    *("run.json", "rectified.csv", "rectified.parquet", "docket.csv", "docket.parquet"),
    *("docket.html", "suggested.csv", "annotators.csv", "decisions.csv", ".appellate-token"),
    *("model", "model/meta.json", "model/model.skops", "model/.appellate-commit"),
    *(".appellate-commit", ".appellate-commit/.plan.json"),
]


def serve(folder, table):
    with DocketServer(folder) as server:
        server.docket()


OPEN = {
    "predict": lambda f, t: run(["predict", str(f), str(t), "--out", str(t.parent / "p.csv")]),
    "rectify": lambda f, t: run(["rectify", str(t), *NAMED, "--out", str(f)]),
    "decisions": lambda f, t: run(
        ["rectify", str(t), *NAMED, f"--decisions={f / 'decisions.csv'}", "--out", str(f)]
    ),
    "serve": serve,
    "load": lambda f, t: len(appellate.load(f).labels),
    "decide": lambda f, t: len(appellate.load(f).decide(f / "decisions.csv").labels),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    home = tmp_path_factory.mktemp("whole")
    sets = ("cat|dog", "dog", "cow|cat", "cat")
    rows = [f"r{i},{i % 4 + i / 10},{i % 3},{sets[i % 4]}\n" for i in range(12)]
    (home / "t.csv").write_text("id,x,y,c\n" + "".join(rows))
    assert run(["rectify", str(home / "t.csv"), *NAMED, "--out", str(home / "run")]) == 0
    (home / "run" / "decisions.csv").write_text("id,decision,label\nr0,accept,cat\n")
    return home


def look(home):
    """Return what is there besides the run: names, links, and contents."""
    found = {}
    for path in home.rglob("*"):
        if path.relative_to(home).parts[0] not in ("run", "p.csv"):
            regular = path.is_file() and not path.is_symlink()
            found[path] = hashlib.sha256(path.read_bytes()).hexdigest() if regular else ""
    return found


@pytest.mark.parametrize("member", MEMBERS)
def test_nothing_in_a_run_folder_is_followed_or_waited_for(member, whole, tmp_path, capsys):
    """No command hangs, fails without a message, tells a foreign file or changes one."""
    for kind in KINDS:
        for name, call in OPEN.items():
            home = tmp_path / "home"
            shutil.rmtree(home, ignore_errors=True)
            shutil.copytree(whole, home)
            (home / "mine").write_text("secret" * 9)
            (home / "folder").mkdir()
            (home / "folder" / "mine").write_text("mine")
            place = home / "run" / member
            place.parent.mkdir(exist_ok=True)
            shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
            links = {"a file": home / "mine", "a folder": "../folder", "itself": Path(member).name}
            make_special(place, links.get(kind, kind))
            before = look(home)
            try:
                code, raised = call(home / "run", home / "t.csv"), ""
            except (ValueError, OSError) as error:
                code, raised = 2, str(error)
            printed = capsys.readouterr()
            said = printed.out + printed.err + raised
            where = (member, kind, name, said)
            assert code != 2 or said.strip(), where
            assert "secret" not in said, where
            assert look(home) == before, where
