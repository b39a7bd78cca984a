"""Odd numbers, narrow terminals, no network: what must not break, and what must be said."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import appellate
from appellate import JuryClassifier, PartnerClassifier, PLCPClassifier
from appellate.cli.app import run
from appellate.datasets.catalogue import known_datasets
from appellate.methods import available_bases, make_base
from tests.cli.tables import write_table
from tests.test_files import make_special

PLAIN = ["--candidates", "labels", "--method", "plcp", "--base", "knn"]


def judges():
    yield from ((name, make_base(name)) for name in available_bases())
    yield "partner", PartnerClassifier()
    yield "plcp", PLCPClassifier(make_base("aggd"), random_state=0)
    yield "jury", JuryClassifier("kernel", random_state=0)


def rows(kind):
    """Rows in which numbers are too large, or of which 62 of 63 are the same."""
    rng = np.random.RandomState(0)
    if kind == "equal":
        X = np.full((63, 1), -0.34050261)
        X[1] = 4.76703657
        return X
    X = rng.normal(size=(63, 2))
    if kind.startswith("one"):
        X[5, 0] = float(kind.removeprefix("one "))
        return X
    return X * float(kind)


@pytest.mark.parametrize("kind", ["1e160", "1e300", "one 1e160", "one 1e300", "one 1e30", "equal"])
@pytest.mark.parametrize("name", [name for name, _ in judges()])
def test_numbers_give_a_finite_answer_or_an_error(kind, name):
    """Sets of 63 rows with 8 labels, as those on which PL-AGGD once returned NaN."""
    rng = np.random.RandomState(1)
    candidates = rng.uniform(size=(63, 8)) < 0.3
    candidates[np.arange(63), rng.randint(8, size=63)] = True
    X, judge = rows(kind), dict(judges())[name]
    try:
        judge.fit(X, candidates)
        found = judge.predict_proba(X)
    except ValueError:
        if kind == "equal":
            raise
        return
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e160, 1e300])
@pytest.mark.parametrize("name", [name for name, _ in judges()])
def test_new_rows_that_are_too_large_give_a_finite_answer_or_an_error(size, name):
    X, y = rows("1"), np.resize(["a|b", "b", "a", "c|a", "c"], 63)
    judge = dict(judges())[name].fit(X, y)
    with contextlib.suppress(ValueError):
        assert np.isfinite(judge.predict_proba(np.full((2, 2), size))).all()


@pytest.mark.filterwarnings("error")
def test_rows_too_far_for_ipal_are_a_value_error():
    """It was a FloatingPointError, after warnings of numpy."""
    judge = make_base("ipal").fit(rows("1"), np.resize(["a|b", "b", "a"], 63))
    with pytest.raises(ValueError, match="too far from those that were fitted"):
        judge.predict_proba(np.full((2, 2), 1e200))


def test_a_partner_that_meets_no_number_stops_at_once(monkeypatch):
    from appellate.core.problem import Problem

    calls = []

    def smooth(self, *_):
        def apply(values):
            calls.append(1)
            return values * np.nan

        return apply

    monkeypatch.setattr(Problem, "on_candidates", smooth)
    with pytest.raises(ValueError, match="no finite objective"):
        PartnerClassifier().fit([[0.0], [1.0]], ["a|b", "b"])
    assert len(calls) == 1


def test_memory_that_is_not_there_is_said(tmp_path, capsys, monkeypatch):
    def fail(*_, **__):
        raise MemoryError

    write_table(tmp_path / "t.csv")
    monkeypatch.setattr("appellate.rectification.run.fit_labels", fail)
    assert run(["rectify", str(tmp_path / "t.csv"), *PLAIN, "--out", str(tmp_path / "o")]) == 2
    assert "not enough memory" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


# -- what is said of too little ----------------------------------------------------------------


def test_too_little_is_said_first_and_stays_on_the_page(tmp_path, capsys):
    sets, said = ["cat|dog", "dog", "cat"], "only 3 items to learn from"
    lines = [f"{i},{i % 3 + i / 100},{labels}" for i, labels in enumerate(sets)]
    (tmp_path / "t.csv").write_text("\n".join(["id,x,labels", *lines]))
    out = tmp_path / "o"
    assert run(["rectify", str(tmp_path / "t.csv"), *PLAIN, "--id", "id", "--out", str(out)]) == 0
    printed = capsys.readouterr().err
    assert said in printed.partition("fitting")[0], "before the work"
    notes = json.loads((out / "run.json").read_text())["settings"]["notes"]
    assert [note for note in notes if said in note]
    assert said in (out / "docket.html").read_text(encoding="utf-8")


# -- terminals and the network -----------------------------------------------------------------


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("narrow") / "t.csv"
    write_table(path, names=("żółw", "кот", "鳥"))
    return path


def test_a_narrow_code_page(table):
    """What Python takes on Windows where the output goes to a file."""
    out = table.parent / "o"
    said = {}
    for name, *arguments in (("rectify", table, *PLAIN, "--out", out), ("predict", out, table)):
        narrow = io.TextIOWrapper(io.BytesIO(), encoding="cp1252", newline="\n")
        with contextlib.redirect_stdout(narrow), contextlib.redirect_stderr(narrow):
            assert run([name, *map(str, arguments)]) == 0
        narrow.flush()
        said[name] = narrow.buffer.getvalue().decode("cp1252")
    assert r"\u9ce5" in said["rectify"], "a letter that is not there is shown by its number"
    assert said["predict"].count("\n") >= 61, "no half a file"


WATCHED = """
import sys
def watch(event, args):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto", "socket.gethostbyname"):
        sys.stderr.write(f"NETWORK {event} {args}")
        __import__("os")._exit(99)
sys.addaudithook(watch)
import appellate.datasets, appellate.experiments.runner, appellate.review.server
from appellate.cli.app import run
data, out, *options = sys.argv[1:]
codes = [
    run(["check", data]),
    run(["rectify", data, *options, "--out", out]),
    run(["predict", out, data, "--out", out + ".csv"]),
    run(["datasets", "list"]),
]
sys.exit(max(codes))
"""


def test_nothing_connects_anywhere(table):
    """Importing and the commands on a user's table ask for no address and connect to none."""
    out = table.parent / "quiet"
    command = [sys.executable, "-c", WATCHED, str(table), str(out), *PLAIN]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_download_has_a_checksum():
    """An archive's own, or those of all that is taken from it."""
    known = known_datasets()
    assert any(entry.downloads for entry in known.values())
    for name, entry in known.items():
        sums = {file.path: file.sha256 for file in entry.files}
        for download in entry.downloads:
            assert download.url.startswith("https://"), name
            assert download.sha256 or all(sums[path] for path in download.paths), name


# -- folders of others -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole_run(table):
    out = table.parent / "run"
    assert run(["rectify", str(table), *PLAIN, "--out", str(out)]) == 0
    return out


@pytest.fixture
def folder(whole_run, tmp_path):
    return Path(shutil.copytree(whole_run, tmp_path / "home" / "run"))


def put(folder, name, kind):
    place = folder / name
    shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
    make_special(place, kind)


@pytest.mark.parametrize("kind", ["fifo", "socket", "/dev/zero", "/etc/passwd", "..", "gone"])
@pytest.mark.parametrize("name", ["run.json", "model", ".appellate-commit", "model/meta.json"])
def test_commands_name_a_member_that_is_not_a_file(name, kind, folder, table, capsys):
    put(folder, name, kind)
    before = sorted(folder.parent.rglob("*"))
    assert run(["predict", str(folder), str(table)]) == 2
    said = capsys.readouterr().err
    assert f"{name.rpartition('/')[2]}' is a" in said
    assert "not opened. Move it away" in said
    if name != "model/meta.json":
        with pytest.raises(ValueError, match="not opened"):
            appellate.load(folder)
    if name in ("run.json", ".appellate-commit"):
        assert run(["rectify", str(table), *PLAIN, "--out", str(folder)]) == 2
        assert "not opened" in capsys.readouterr().err
    assert sorted(folder.parent.rglob("*")) == before


@pytest.mark.parametrize(
    "name", ["rectified.parquet", "docket.parquet", "suggested.csv", "annotators.csv", "model"]
)
def test_load_names_a_member_that_is_not_a_file(name, folder):
    put(folder, name, "fifo")
    with pytest.raises(ValueError, match=f"{name}' is a FIFO"):
        appellate.load(folder)


@pytest.mark.parametrize("text", ["[" * 200_000, "{", "\xff"])
def test_commands_name_a_record_that_is_nonsense(text, folder, table, capsys):
    (folder / "run.json").write_bytes(text.encode("latin-1"))
    for arguments in (["predict", str(folder), str(table)],
                      ["rectify", str(table), *PLAIN, "--out", str(folder)]):  # fmt: skip
        assert run(arguments) == 2
        assert "run.json' is damaged" in capsys.readouterr().err


def test_a_model_whose_commit_is_a_link_moves_no_file(folder, table, capsys):
    """The proof of the review: files of the folder above were moved into the model."""
    (folder / "mine.txt").write_text("mine")
    (folder / "model" / ".appellate-commit").symlink_to("..")
    before = sorted(folder.parent.rglob("*"))
    for name in (folder, folder / "model"):
        assert run(["predict", str(name), str(table)]) == 2
        assert ".appellate-commit' is a symbolic link, not a folder" in capsys.readouterr().err
    assert sorted(folder.parent.rglob("*")) == before


@pytest.mark.filterwarnings("ignore::appellate.NoteWarning")
def test_decisions_are_not_written_through_a_link(tmp_path):
    table = {"w": [0.0, 0.2, 4.9, 5.1] * 5, "y": ["a|b", "a", "b", "a|b"] * 5}
    decided = appellate.rectify(table, candidates="y").decide({0: "b"})
    decided.save(tmp_path / "run")
    (tmp_path / "run" / "decisions.csv").unlink()
    (tmp_path / "run" / "decisions.csv").symlink_to(tmp_path / "elsewhere")
    decided.save(tmp_path / "run")
    assert not (tmp_path / "elsewhere").exists()
