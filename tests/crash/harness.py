"""Stop writers before every change of the disk: run as a script, tells the points tried as JSON.

A process of its own forks quickly and safely: nothing here has started a thread. Each scenario is
repeated with the stop one change later, until the work ends undisturbed. ``kill`` ends the
process; ``full`` makes every write from that point on fail, as a full disk does.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import signal
import sys
from pathlib import Path

from appellate import _files

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
EVENTS = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate"}
TAKES_ROOM = {"os.mkdir", "os.link", "os.symlink"}
ENDED, REFUSED, BROKEN = 0, 3, 1


def stop_before(number, home, work, how):
    """Work in a child that is stopped before its number-th change; tell whether it was."""
    child = os.fork()
    if child:
        status = os.waitpid(child, 0)[1]
        if os.WIFSIGNALED(status):
            return True
        assert os.WEXITSTATUS(status) != BROKEN, "the work ended with an error of another kind"
        return os.WEXITSTATUS(status) == REFUSED
    left = [number]

    def change():
        left[0] -= 1
        if left[0] < 0 and how == "full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(event, args):
        written = event == "open" and (args[2] or 0) & WRITING
        counted = TAKES_ROOM if how == "full" else EVENTS
        if (written or event in counted) and str(args[0]).startswith(str(home)):
            change()

    def stopping(function):
        def call(*args, **options):
            change()
            return function(*args, **options)

        return call

    def torn(handle, content, write=os.write):
        change()
        half = write(handle, content[: len(content) // 2])
        change()
        return half + write(handle, content[half:])

    os.write = torn
    os.fsync = stopping(os.fsync)
    if how == "kill":
        os.ftruncate = stopping(os.ftruncate)
        _files._exchange = stopping(_files._exchange)
    sys.addaudithook(hook)
    try:
        code = work()
        os._exit(code if type(code) is int else ENDED)
    except OSError as error:
        told = "No space left" in str(error)
        os._exit(REFUSED if how == "full" and told else report())
    except BaseException:
        os._exit(report())


def report():
    """Print the error of a child and return its exit code."""
    sys.excepthook(*sys.exc_info())
    sys.stderr.flush()
    return BROKEN


def try_all(home, prepare, work, check):
    """Try every point, and return how many there are; `check` is told whether the work ended."""
    number, stopped = -1, True
    while stopped:
        number += 1
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        prepare()
        stopped = stop_before(number, home, work, HOW)
        check(not stopped)
    return number


def hidden(folder):
    return [p.name for p in folder.rglob(".appellate-*") if p.name != ".appellate-token"]


# -- rectify and save_model ------------------------------------------------------------------


def make_run(labels):
    import numpy as np

    from appellate import rectify

    rows = np.arange(12.0)[:, np.newaxis] % 5
    table = {"id": [f"r{i}" for i in range(12)], "names": [labels[i % 3] for i in range(12)]}
    return rectify(table, candidates="names", id="id", embeddings=rows, base="sure")


def picture(folder):
    """What a folder holds: its files, and of the model what it says."""
    from appellate import load

    run, found = load(folder), {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.is_file() and inside.parts[0] != "model" and not inside.name.startswith("."):
            found[str(inside)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found, run.labels["label"].tolist(), run.model.classes_.tolist()


def rectify_scenario(home, again, exchange=True):
    from appellate.rectification.folder import check_folder

    old, new = make_run(["cat|dog", "dog", "cat"]), make_run(["ant|bee", "bee", "ant"])
    out, notes = home / "o", home / "o" / "notes.txt"
    pictures = []
    for run in (old, new):
        shutil.rmtree(home, ignore_errors=True)
        run.save(out)
        notes.write_text("mine")
        pictures.append(picture(out))
    can = _files._can_exchange
    _files._can_exchange = can if exchange else lambda target: False

    def prepare():
        if again:
            old.save(out)
            notes.write_text("mine")

    def work():
        check_folder(out)
        new.save(out)

    def check(ended):
        if again:
            assert picture(out) in pictures, "neither the old nor the new"
            assert notes.read_text() == "mine"
        elif out.exists():
            assert picture(out)[1:] == pictures[1][1:], "half a folder"
        work()
        assert picture(out)[1:] == pictures[1][1:]
        assert not hidden(home), hidden(home)

    try:
        return try_all(home, prepare, work, check)
    finally:
        _files._can_exchange = can


def model_scenario(home, again):
    from appellate.io import load_model, save_model
    from appellate.methods import make_base

    old, new = (make_base("sure").fit([[0.0], [1.0]], [name, "b"]) for name in ("old", "new"))
    folder = home / "m"

    def check(ended):
        if again or (folder / "meta.json").exists():  # which puts a model in force
            assert load_model(folder).classes_[-1] in (("old", "new") if again else ("new",))
        save_model(new, folder)
        assert load_model(folder).classes_[-1] == "new"
        assert len(os.listdir(folder)) == 2
        assert len(os.listdir(home)) == 1, os.listdir(home)

    prepare = (lambda: save_model(old, folder)) if again else (lambda: None)
    return try_all(home, prepare, lambda: save_model(new, folder), check)


# -- the server's append ---------------------------------------------------------------------


def append_scenario(home, form):
    from appellate.review.decisions import COLUMNS, DecisionFile, as_line, parse

    path = home / "decisions.csv"
    records = [{"id": f"r{i}", "decision": "none", "label": "a\rb\n=c", "key": f"k{i}"}
               for i in range(3)]  # fmt: skip
    ours = ",".join(COLUMNS) + "\n" + "".join(map(as_line, records[:2]))
    foreign = "key;label;id;decision\nk0;x;r0;none\nk1;y;r1;none"
    content = {"new": "", "ours": ours, "foreign": foreign}[form]

    def names():
        return [r["id"] for r in parse(path.read_bytes(), "it")] if path.stat().st_size else []

    def check(ended):
        before = [] if form == "new" else ["r0", "r1"]
        found = names() if path.exists() else []
        assert found in (before, [*before, "r2"]), found
        assert not ended or found[-1:] == ["r2"], "acknowledged, and lost"
        DecisionFile(path).append(records[2])  # the page sends it again
        assert names() == [*before, "r2"], path.read_bytes()

    def prepare():
        if content:
            path.write_text(content, newline="")

    return try_all(home, prepare, lambda: DecisionFile(path).append(records[2]), check)


# -- a checkpoint ----------------------------------------------------------------------------


def checkpoint_scenario(home, again):
    import torch

    from appellate.deep import checkpoint

    path = home / "checkpoint.safetensors"
    trees = [{"epoch": i, "weights": torch.full((50,), float(i))} for i in (1, 2)]
    save_file = checkpoint.save_file

    def torn(tensors, file, metadata=None):
        """Write as safetensors does, in Python, where a kill can come between."""
        save_file(tensors, home / "whole", metadata=metadata)
        content = (home / "whole").read_bytes()
        (home / "whole").unlink()
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as stream:
            os.write(stream.fileno(), content)

    def work():
        checkpoint.save_file = torn
        checkpoint.save_tree(trees[1], path)

    def check(ended):
        if again or path.exists():
            tree = checkpoint.load_tree(path)
            assert tree["epoch"] in ((1, 2) if again else (2,))
            assert (tree["weights"] == tree["epoch"]).all()
        checkpoint.save_tree(trees[1], path)
        assert checkpoint.load_tree(path)["epoch"] == 2

    prepare = (lambda: checkpoint.save_tree(trees[0], path)) if again else (lambda: None)
    return try_all(home, prepare, work, check)


# -- predict and reproduce -------------------------------------------------------------------


def predict_scenario(home, ending):
    """The command writes over the labels of an earlier `predict`."""
    import contextlib
    import io

    import numpy as np

    from appellate.cli.app import run

    place = home.parent
    make_run(["cat|dog", "dog", "cat"]).save(place / "model")
    (place / "new.csv").write_text("id\n" + "".join(f"r{i}\n" for i in range(12)))
    rows = np.arange(12.0)[:, np.newaxis] % 5
    np.save(place / "old.npy", rows[::-1])
    np.save(place / "new.npy", rows)
    out = home / f"labels.{ending}"

    def label(version):
        given = [str(place / "model"), str(place / "new.csv")]
        given += ["--embeddings", str(place / f"{version}.npy"), "--out", str(out)]
        with contextlib.redirect_stderr(io.StringIO()):
            return run(["predict", *given])

    def work():
        return {0: ENDED, 2: REFUSED}.get(label("new"), BROKEN)

    def check(ended):
        assert out.read_bytes() in (old, new), "neither the old nor the new"
        assert label("new") == 0
        assert out.read_bytes() == new
        assert os.listdir(home) == [out.name], os.listdir(home)

    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    assert label("old") == 0
    old = out.read_bytes()
    assert label("new") == 0
    new = out.read_bytes()
    assert old != new
    return try_all(home, lambda: out.write_bytes(old), work, check)


def reports_scenario(home):
    """What `reproduce` writes at its end: tables in three formats, and their page."""
    from appellate.experiments.reports import Report, Sheet
    from appellate.experiments.writing import write_folder

    def reports(value):
        sheet = Sheet("Sheet", ("method", "score"), (("SURE", value),))
        return [Report("small", "Small", "A caption.", (sheet,), ({"score": value},), ("Note.",))]

    out = home / "out"

    def write(value):
        write_folder(reports(value), out, ["small"], title="Title", lead="Lead.", rows=[])

    def found():
        return {path.name: path.read_bytes() for path in sorted(out.iterdir())}

    write("old")
    (out / "mine.txt").write_text("mine")
    old = found()
    write("new")
    new = found()

    def prepare():
        out.mkdir()
        for name, content in old.items():
            (out / name).write_bytes(content)

    def check(ended):
        assert found() in (old, new), "neither the old nor the new"
        write("new")
        assert found() == new
        assert os.listdir(home) == ["out"], os.listdir(home)

    return try_all(home, prepare, lambda: write("new"), check)


SCENARIOS = {
    "rectify": lambda home: rectify_scenario(home, False),
    "rectify again": lambda home: rectify_scenario(home, True),
    "rectify again, one by one": lambda home: rectify_scenario(home, True, exchange=False),
    "save_model": lambda home: model_scenario(home, False),
    "save_model again": lambda home: model_scenario(home, True),
    "append to nothing": lambda home: append_scenario(home, "new"),
    "append": lambda home: append_scenario(home, "ours"),
    "append to a spreadsheet's file": lambda home: append_scenario(home, "foreign"),
    "predict": lambda home: predict_scenario(home, "csv"),
    "predict to Parquet": lambda home: predict_scenario(home, "parquet"),
    "reproduce": reports_scenario,
    "checkpoint": lambda home: checkpoint_scenario(home, False),
    "checkpoint again": lambda home: checkpoint_scenario(home, True),
}

if __name__ == "__main__":
    place = Path(sys.argv[1]) / "home"
    HOW = sys.argv[2]
    tried = {name: SCENARIOS[name](place) for name in sys.argv[3:] or SCENARIOS}
    sys.stdout.write(json.dumps(tried))
