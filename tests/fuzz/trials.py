"""One hostile case after another through the doors of the program; what is wrong is a `Found`."""

from __future__ import annotations

import ast
import contextlib
import csv
import io
import json
import math
import re
import shutil
import socket
import stat
import threading
import time
import traceback
import unicodedata
import warnings
from collections import Counter
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow.parquet
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from appellate._text import defuse
from appellate.cli.app import run
from appellate.io import ModelFileError, load_model, save_model
from appellate.methods import make_base
from appellate.rectification.decisions import take_decisions
from appellate.rectification.preparation import prepare_table
from appellate.review.decisions import DecisionError, DecisionFile, parse
from appellate.review.server import DocketServer
from tests.fuzz.hostile import (
    change_byte,
    generator,
    make_arrow,
    make_cells,
    make_columns,
    make_decisions,
    make_model,
    make_request,
    make_review,
    make_run,
    make_table,
    same,
)

RAW = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
COMPUTED = re.compile(r"encountered in|invalid value|ill-conditioned|Warning")
FORMULA = re.compile("[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
NUMBER = re.compile(r"[+-]?([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][+-]?[0-9]+)?")
CHEAP = ("--method=plcp", "--base=knn")
BYTES = ("stream", "file", "parquet")  # of which one byte is changed
KINDS = ("table", "cell", "arrow", *BYTES, "model", "decisions", "request", "run")


class Found(AssertionError):
    """What a case found."""


def expect(condition, *said):
    if not condition:
        raise Found(" ".join(map(str, said)))


class Trials:
    """Cases by kind and seed, all within one folder.

    `outcomes` counts what became of the cases: read, refused, or not even answered.
    """

    def __init__(self, folder):
        self.folder, self.outcomes, self.commands = Path(folder), Counter(), 0
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stack.close()

    def try_case(self, kind, seed):
        """Try one case; a `Found` or any other error is a defect."""
        home = self.folder / "case"
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        with contextlib.chdir(home):
            outcome = getattr(self, f"_{kind}")(generator(kind, seed), home)
        self.outcomes[kind, outcome] += 1
        return outcome

    def command(self, *arguments):
        """Run a command in this process; return its code and what it said."""
        self.commands += 1
        out, err = io.StringIO(), io.StringIO()
        streams = contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
        with streams[0], streams[1], warnings.catch_warnings():
            warnings.simplefilter("default")
            try:
                code = run([*map(str, arguments)])
            except Exception as error:
                raise Found(f"{arguments}: {traceback.format_exc()}") from error
        said = out.getvalue() + err.getvalue()
        expect(code in (0, 2), arguments, "ended with", code, said)
        expect("Traceback" not in said, arguments, said)
        expect(not RAW.search(said), arguments, "printed", RAW.findall(said), "raw:", repr(said))
        if arguments[1] != "m":  # a spoilt model may compute nonsense
            expect(not COMPUTED.search(err.getvalue()), arguments, err.getvalue())
        return code, out.getvalue(), err.getvalue()

    # -- tables ----------------------------------------------------------------------------------

    def _arrow(self, rnd, home):
        return self._columns(rnd, home, make_arrow(rnd, rnd.choice(["stream", "file"])))

    def _stream(self, rnd, home):
        return self._columns(rnd, home, change_byte(rnd, make_columns(rnd, "stream")))

    def _file(self, rnd, home):
        return self._columns(rnd, home, change_byte(rnd, make_columns(rnd, "file")))

    def _parquet(self, rnd, home):
        return self._columns(rnd, home, change_byte(rnd, make_columns(rnd, "parquet")))

    def _columns(self, rnd, home, content):
        """Read a damaged file of columns in three commands; none leaves half a result."""
        Path("t").write_bytes(content)
        checked, *_ = self.command("check", "t")
        named, before = ("--candidates=names", "--id=id"), files(home)
        with mock.patch("appellate.io.save_model"):
            code, _, said = self.command("rectify", "t", *named, *CHEAP, "--out", "o")
        if code:
            expect(files(home) == before and said.strip(), "left behind:", files(home) - before)
        else:
            check_folder(Path("o"), False)
            table = pyarrow.parquet.read_table("o/rectified.parquet")
            inside = [{*map(same, cell.split("|"))} for cell in table["names"].to_pylist()]
            labels = map(same, table["label"].to_pylist())
            wrong = [each for each in zip(labels, inside, strict=True) if each[0] not in each[1]]
            expect(not wrong, "not in the cell:", wrong)
        out = f"p.{rnd.choice(['csv', 'jsonl', 'parquet'])}"
        predicted, *_ = self.command("predict", self._columns_model(), "t", "--out", out)
        expect(Path(out).exists() == (predicted == 0), "predict left half a file, or none")
        return "read" if checked == code == predicted == 0 else "refused"

    def _columns_model(self):
        """Return a run on the file of columns before it was damaged."""
        folder = self.folder / "columns"
        if not folder.exists():
            path = self.folder / "whole.arrow"
            path.write_bytes(make_columns(generator("whole", 0), "file"))
            code, _, said = self.command(
                "rectify", path, *CHEAP, "--candidates=names", "--id=id", "--out", folder
            )
            expect(code == 0, said)
        return folder

    def _table(self, rnd, home):
        table = make_table(rnd)
        Path(table.name).write_bytes(table.content)
        if table.embeddings is not None:
            Path("x.npy").write_bytes(table.embeddings)
        reading = [o for o in table.options if o.startswith(("--enc", "--del"))]
        self.command("check", table.name, *table.options)
        if rnd.random() < 0.1:
            self._generate(rnd, table, reading)
        before = files(home)
        whole = rnd.random() < 0.15
        options = [*table.options, *(CHEAP if rnd.random() < 0.9 else ())]
        options += ["--embeddings=x.npy"] if table.embeddings is not None else []
        options += ["--json"] if rnd.random() < 0.1 else []
        keep = contextlib.nullcontext() if whole else mock.patch("appellate.io.save_model")
        with keep:  # writing a model takes longer than all else
            code, _, said = self.command("rectify", table.name, *options, "--out", "o")
        if code:
            expect(files(home) == before, "left behind:", files(home) - before)
            expect(said.strip(), "nothing was said")
            return "refused"
        document = json.loads(Path("o", "run.json").read_text(encoding="utf-8"))
        check_folder(Path("o"), whole)
        if table.rows:
            check_rows(Path("o"), table, document["settings"]["columns"])
        if whole:
            given = reading + [o for o in options if o.startswith("--emb")]
            code, _, said = self.command("predict", "o", table.name, *given, "--out", "p.csv")
            expect(code == 0, "its own rows were refused:", said)
            if table.rows and not table.name.startswith(("t.j", "t.p")):
                expect_cells(read_csv(Path("p.csv"), table.mark), table)
        return "read"

    def _cell(self, rnd, home):
        """The label of a row is one of its own cell, or the output says that it is not."""
        table = make_cells(rnd)
        Path(table.name).write_bytes(table.content)
        options = [*table.options, *(CHEAP if rnd.random() < 0.75 else ["--method=jury"])]
        if rnd.random() < 0.2:
            content, _ = make_review(rnd, table)
            Path("d.csv").write_bytes(content)
            options.append("--decisions=d.csv")
        before = files(home)
        with mock.patch("appellate.io.save_model"):
            code, _, said = self.command("rectify", table.name, *options, "--out", "o")
        if code:
            expect(files(home) == before and said.strip(), "left behind:", files(home) - before)
            return "refused"
        document = json.loads(Path("o", "run.json").read_text(encoding="utf-8"))
        settings, titles = document["settings"], document["settings"]["columns"]
        if table.name.endswith("parquet"):
            found = pyarrow.parquet.read_table("o/rectified.parquet")
            columns = {name: map(plain, column) for name, column in found.to_pydict().items()}
        else:
            header, *rows = read_csv(Path("o/rectified.csv"), table.mark)
            columns = dict(zip(header, zip(*rows, strict=True), strict=True))
        lists = any("are read as lists of labels" in note for note in settings["notes"])
        labels, outcomes = columns[titles["label"]], columns[titles["outcome"]]
        for row, label, outcome in zip(table.rows, labels, outcomes, strict=True):
            inside = cell_labels(row[-1], settings["roles"]["separator"], lists)
            written = {text for each in inside for text in spellings(str(each))} | inside
            told = outcome in ("reviewed", "excluded")
            expect(told or same(label) in written, repr(label), "is none of", row[-1], settings)
        return "read"

    def _generate(self, rnd, table, reading):
        named = next((o for o in table.options if o.startswith("--candidates=")), "--truth=c")
        truth = "--truth=" + named.partition("=")[2]
        code, _, _ = self.command(
            "generate", "--from", table.name, truth, *reading, "--flip=.3", "--separator=~",
            "--out", "g.csv",
        )  # fmt: skip
        expect(Path("g.csv").exists() == (code == 0), "generate left half a file, or none")
        if code == 0 and table.rows and not table.name.startswith(("t.j", "t.p")):
            expect_cells(read_csv(Path("g.csv"), table.mark), table)
        Path("g.csv").unlink(missing_ok=True)

    # -- models ----------------------------------------------------------------------------------

    def _model(self, rnd, home):
        whole = rnd.random() < 0.2
        shutil.copytree(self._whole_model() if whole else self._bare_model(), home / "m")
        make_model(rnd, home / "m")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # another version of scikit-learn
                load_model(home / "m", max_bytes=64 << 20)
            outcome = "read"
        except ModelFileError as error:
            expect(str(error), "nothing was said")
            outcome = "refused"
        if whole:
            before = files(home)
            code, _, _ = self.command("predict", "m", self.folder / "small.csv", "--out", "p.csv")
            expect(code == 0 or files(home) == before, "left behind:", files(home) - before)
        return outcome

    def _whole_model(self):
        folder = self.folder / "whole"
        if not folder.exists():
            self._small()
            code, _, said = self.command(
                "rectify", self.folder / "small.csv", *CHEAP, "--candidates=c", "--id=id",
                "--out", folder,
            )  # fmt: skip
            expect(code == 0, said)
        return folder / "model"

    def _bare_model(self):
        folder = self.folder / "bare"
        if not folder.exists():
            rows, labels = [[0.0], [1.0], [4.0], [5.0]], ["cat|dog", "cat", "dog", "dog|cow"]
            save_model(
                make_pipeline(StandardScaler(), make_base("sure")).fit(rows, labels), folder
            )
        return folder

    def _small(self):
        lines = ["id,x,y,c"]
        for i in range(12):
            labels = ("cat|dog", "dog", "=cow|\x1bcat", "cat")[i % 4]
            lines.append(f"r {i},{i % 4 + i / 10},{i % 3},{labels}")
        path = self.folder / "small.csv"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    # -- deep runs -------------------------------------------------------------------------------

    def _run(self, rnd, home):
        finished = rnd.random() < 0.5
        shutil.copytree(self._deep_run(finished), home / "r")
        outside = home / "elsewhere"
        outside.write_text("mine")
        make_run(rnd, home / "r")
        commands = ["evaluate", "table", "resume"] if finished else ["resume", "resume", "table"]
        if _is_long(home / "r"):
            commands.remove("resume")
            commands.remove("resume") if not finished else None
        code, _, said = self.command("deep", rnd.choice(commands), "r")
        expect(code == 0 or said.strip(), "nothing was said")
        expect(outside.read_text() == "mine", "a file elsewhere was changed")
        return "read" if code == 0 else "refused"

    def _deep_run(self, finished):
        """Return a small run that is finished, or one that was stopped after an epoch."""
        folders = self.folder / "deep finished", self.folder / "deep stopped"
        if not folders[0].exists():
            board = mock.patch("appellate.deep.checkpoint.find_spec", return_value=None)
            self._stack.enter_context(board)  # TensorBoard takes longer than all else
            rng = np.random.default_rng(0)
            y = rng.integers(0, 3, 30)
            X = (rng.normal(size=(30, 4)) + 3 * np.eye(3, 4)[y]).astype(np.float32)
            candidates = (rng.random((30, 3)) < 0.3) | np.eye(3, dtype=bool)[y]
            arrays = {"X": X, "candidates": candidates, "y_true": y, "X_test": X, "y_test": y}
            np.savez(self.folder / "deep.npz", **arrays)
            small = ("network=mlp", "hidden=[4]", "batch_size=16", "n_epochs=2")
            options = [part for each in small for part in ("--set", each)]
            code, _, said = self.command(
                "deep", "train", "--config", "proden-plcp-cifar10", *options,
                "--data", self.folder / "deep.npz", "--out", folders[0],
            )  # fmt: skip
            expect(code == 0, said)
            shutil.copytree(folders[0], folders[1])
            record = json.loads((folders[1] / "run.json").read_text())
            (folders[1] / "run.json").write_text(json.dumps(record | {"results": None}))
        return folders[not finished]

    # -- decisions -------------------------------------------------------------------------------

    def _decisions(self, rnd, home):
        if not hasattr(self, "_case"):
            self._case = prepare_table(self._small(), candidates="c", id="id", method="plcp")
        case, path = self._case, home / "d.csv"
        names, classes = case.names, case.classes.tolist()
        inside = [case.classes[row].tolist() for row in case.sets.matrix]
        content, meant = make_decisions(rnd, names, inside, classes)
        path.write_bytes(content)
        try:
            found, _ = take_decisions(case, {}, path)
        except DecisionError as error:
            expect(meant is None or not meant, "refused:", error, content)
            outcome = "refused"
        else:
            outcome = "read"
            if meant is not None:
                by_name = {names[i]: what for i, what in found.by_row().items()}
                expect(by_name == meant, by_name, "is not", meant, content)
        self._append(path, content)
        return outcome

    def _append(self, path, content):
        """What a server adds to the file leaves all that was in it."""
        record = {"id": "r 1", "decision": "accept", "label": "dog", "key": "new"}
        try:
            before = parse(content, "it")
            DecisionFile(path).append(record)
        except DecisionError:
            expect(path.read_bytes() == content, "a file that cannot be read was changed")
            return
        after = parse(path.read_bytes(), "it")
        again = any(each.get("key") == "new" for each in before)
        expect(len(after) == len(before) + (not again), content, path.read_bytes())
        for one, two in zip(before, after, strict=False):
            kept = {(name.lower(), value) for name, value in one.items() if value}
            expect(kept <= {(name.lower(), value) for name, value in two.items()}, one, two)

    # -- requests --------------------------------------------------------------------------------

    def _request(self, rnd, home):
        server, path, rows = self._served()
        before = parse(path.read_bytes(), "it") if path.exists() else []
        key = f"k{rnd.random()}"
        host = f"127.0.0.1:{server.server_address[1]}"
        request = make_request(
            rnd, host, server.token, list(rows.places), rows.classes, rows.data, key
        )
        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            answer = ask(server.server_address[:2], request)
        expect(not err.getvalue(), request, err.getvalue())
        if not answer:
            time.sleep(0.1)  # a thread may still be at work for nobody
        after = parse(path.read_bytes(), "it") if path.exists() else []
        status = answer.split(b" ", 2)[1] if answer.startswith(b"HTTP/1") else b""
        expect(after[: len(before)] == before, "earlier decisions changed", request)
        added = after[len(before) :]
        posted = request.startswith(b"POST /decisions ") and status == b"200"
        repeated = posted and key.encode() not in request  # another key, perhaps of an earlier one
        unheard = not status and len(added) == 1  # the connection went before the answer came
        fits = len(added) == posted or (repeated and not added) or unheard
        expect(fits, status, request, added)
        for record in added:
            row = rows.places[record["id"]]
            outside = record["decision"] == "none" and record["label"] not in rows.candidates(row)
            fits = record["label"] in rows.candidates(row) or record["decision"] == "clear"
            expect(outside or fits, "an impossible decision was taken:", record)
        if not status:
            return "closed"
        return "taken" if status in (b"200", b"303") else "refused"

    def _served(self):
        if not hasattr(self, "_server"):
            self._whole_model()
            server = self._stack.enter_context(DocketServer(self.folder / "whole"))
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
            thread.start()
            self._stack.callback(thread.join)
            self._stack.callback(server.shutdown)
            path = self.folder / "whole" / "decisions.csv"
            self._server = server, path, server.docket().rows
        return self._server


def _is_long(folder):
    """Whether a spoilt record asks for more work than a trial may take."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        if stat.S_ISREG((folder / "run.json").lstat().st_mode):
            record = json.loads((folder / "run.json").read_bytes())
            return record["settings"]["n_epochs"] > 2
    return False


def ask(address, request):
    """Send bytes, and return whatever comes back."""
    with socket.create_connection(address, timeout=20) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
        parts = []
        with contextlib.suppress(ConnectionError):
            while part := connection.recv(1 << 16):
                parts.append(part)
    return b"".join(parts)


def files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def check_folder(folder, whole):
    found = {path.name for path in folder.iterdir()}
    wanted = {"docket.csv", "docket.parquet", "docket.html", "suggested.csv", "run.json"}
    wanted |= {"model"} if whole else set()
    rest = found - wanted - {"annotators.csv", "model", "rectified.csv", "rectified.parquet"}
    expect(wanted <= found | {"model"} and not rest, "not whole:", found)


def read_csv(path, mark):
    """Read a file that we wrote with Python's own reader, and look for formulas in it."""
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream, delimiter=mark, strict=True))
    for cell in (cell for row in rows for cell in row):
        expect(not FORMULA.match(cell) or NUMBER.fullmatch(cell), "a formula:", repr(cell))
        inner = re.search("[,;\t\r\n]=", cell)
        expect(not inner, "a formula behind a separator:", repr(cell))
    return rows


def expect_cells(rows, table):
    """Expect the user's cells in their places; an apostrophe may stand before a formula."""
    expect(len(rows) == len(table.rows) + 1, len(rows) - 1, "rows of", len(table.rows))
    wanted = [[title.strip() for title in table.titles], *table.rows]
    for number, (row, cells) in enumerate(zip(rows, wanted, strict=True)):
        expect(len({len(each) for each in rows}) == 1, "ragged")
        for got, cell in zip(row, cells, strict=False):
            expect(got in spellings(cell), "row", number, repr(got), "is not", repr(cell))


def plain(value):
    return "" if value is None else str(value)


def cell_labels(cell, separator, lists):
    """Return the labels of a cell by an own reading of it."""
    if lists and isinstance(cell, str):
        try:
            parts = json.loads(cell)
        except ValueError:
            parts = ast.literal_eval(cell)
    elif isinstance(cell, str):
        parts = cell.split(separator) if separator else [cell]
    else:
        parts = cell
    texts = [unicodedata.normalize("NFC", str(part)).strip() for part in parts]
    return {same(text) for text in texts if text}


def spellings(cell):
    """What a cell may be written as: an apostrophe may stand before formulas."""
    return {f"{mark}{text}" for mark in ("", "'") for text in (cell, defuse(cell))}


def expect_beside(path, rows):
    """Expect the cells of a CSV file in the Parquet file beside it; numbers are rounded in CSV."""
    columns = pyarrow.parquet.read_table(path).to_pydict().values()
    for stored, row in zip(zip(*columns, strict=True), rows[1:], strict=True):
        for value, cell in zip(stored, row, strict=True):
            text = "" if value is None else str(value)
            alike = cell in spellings(text)
            if not alike and isinstance(value, (int, float)):
                alike = math.isclose(value, float(cell.replace(",", ".")), rel_tol=1e-5)
            expect(alike, repr(value), "is not", repr(cell))


def check_rows(folder, table, columns):
    """Compare what came out with what went in, by other readers than ours."""
    if table.name.startswith("t.p"):
        data = pyarrow.parquet.read_table(folder / "rectified.parquet").to_pydict()
        rows = [list(data), *map(list, zip(*data.values(), strict=True))]
        for i in (0, 3, 4):
            got = [row[i] for row in rows[1:]]
            expect(got == [row[i] for row in table.rows], "column", i, got)
    else:
        csv_like = not table.name.endswith(("json", "jsonl"))
        rows = read_csv(folder / "rectified.csv", table.mark)
        if csv_like:
            expect_cells(rows, table)
        else:
            for row, cells in zip(rows[1:], table.rows, strict=True):
                for i in (0, 3):  # others may be numbers and lists there
                    expect(row[i] in spellings(cells[i]), row[i], "is not", cells[i])
        expect_beside(folder / "rectified.parquet", rows)
    place = rows[0].index(columns["label"])
    for row, inside in zip(rows[1:], table.sets, strict=True):
        written = {text for each in inside for text in spellings(str(each))} | inside
        expect(same(row[place]) in written, repr(row[place]), "is none of", inside)
