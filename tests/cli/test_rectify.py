"""From a table to a folder: rectified labels, docket, page, model."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import warnings
from contextlib import redirect_stdout

import numpy as np
import pytest

import appellate
from appellate import _added
from appellate.cli.app import run
from appellate.tables import read_table
from appellate.tables.cells import restore
from tests.cli.tables import HOSTILE, NAMES, make_rows, read_rows, write_rows, write_table
from tests.tables.test_awkward import TABLES

pytest.importorskip("skops")
pytest.importorskip("jinja2")
FILES = {
    "rectified.csv",
    "rectified.parquet",
    "docket.csv",
    "docket.parquet",
    "docket.html",
    "suggested.csv",
    "model",
    "run.json",
}
ADDED = [name for name in _added.ADDED if name != "votes"]


def rectify(*arguments):
    return run(["rectify", *map(str, arguments)])


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    home = tmp_path_factory.mktemp("run")
    rows = write_table(home / "t.csv")
    options = ["--candidates", "labels", "--id", "item", "--truth", "truth"]
    said = io.StringIO()
    with redirect_stdout(said):
        assert rectify(home / "t.csv", *options, "--out", home / "deep" / "out") == 0
    (home / "said.txt").write_text(said.getvalue().split("wrote ")[1].split("next ")[0])
    return home, rows


def test_long_work_says_how_fast_it_is_and_when_it_ends(tmp_path, monkeypatch, capsys):
    from appellate.cli import _terminal
    from appellate.tables import vectors

    monkeypatch.setattr(vectors, "_SECONDS", -1.0)
    monkeypatch.setattr(_terminal, "_WITHIN", -1.0)
    prose = ["a red bird sings", "a blue fish swims"]
    lines = [f"{i},{prose[i % 2]} number {i},{['bird', 'fish|bird'][i % 2]}" for i in range(30)]
    (tmp_path / "t.csv").write_text("\n".join(["n,said,maybe", *lines]))
    options = ["--candidates", "maybe", "--text", "said", "--out", tmp_path / "out"]
    assert rectify(tmp_path / "t.csv", *options) == 0
    told = r"turning columns into numbers, \d+/30 rows, \d+ a second, \d+ s left\n"
    assert len(re.findall(told, capsys.readouterr().err)) == 3


def test_what_is_written(ran):
    home, rows = ran
    out = home / "deep" / "out"
    assert {p.name for p in out.iterdir()} == FILES
    assert all(name in home.joinpath("said.txt").read_text() for name in FILES)
    assert [p.name for p in (home / "deep").iterdir()] == ["out"]
    rectified = read_rows(out / "rectified.csv")
    assert list(rectified[0]) == [*rows[0], *ADDED]
    assert [{k: r[k] for k in rows[0]} for r in rectified] == rows
    assert all(r["label"] in r["labels"].split("|") for r in rectified)
    assert np.mean([r["label"] == r["truth"] for r in rectified]) > 0.8
    docket = read_rows(out / "docket.csv")
    assert [r["label"] for r in docket] == [r["label"] for r in rectified]
    document = json.loads((out / "run.json").read_text())
    assert len(document["settings"]["sha256"]) == 64
    assert document["settings"]["roles"]["candidates"] == ["labels"]
    assert sum(document["scores"]["outcomes"].values()) == 60
    names = ["items with truth", "random candidate", "first round", "rectified"]
    assert list(document["scores"]["accuracy"]) == names
    suggested = read_rows(out / "suggested.csv")
    assert [r["why"] for r in suggested[:5]] == ["doubt"] * 4 + ["audit"]
    assert {r["id"] for r in suggested} <= {r["item"] for r in rows}


def test_what_was_inferred_is_said_first(tmp_path, capsys):
    write_table(tmp_path / "t.csv", extra=lambda i: {"note": f"text {i}", "same": "1", "no": ""})
    assert rectify(tmp_path / "t.csv", "--candidates", "labels", "--out", tmp_path / "o") == 0
    said = re.sub(" +", " ", capsys.readouterr().out)
    for line in (
        "labels candidates specified",
        "truth truth labels of this table",
        "x0 feature numbers",
        "site feature 2 categories",
        "note ignored different in nearly every row",
        "same ignored constant",
        "no ignored empty",
    ):
        assert f" {line}\n" in said
    assert said.index("feature") < said.index("unchanged")


def test_lists_of_labels_are_written_so_that_they_can_be_read(tmp_path):
    rows = write_table(tmp_path / "t.csv", names=("a|x", "b", "c"), separator="&")
    lists = [row | {"labels": row["labels"].split("&")} for row in rows]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, lists)))
    options = ["--candidates", "labels", "--truth", "truth", "--out", tmp_path / "o"]
    assert rectify(tmp_path / "t.jsonl", *options) == 0
    cells = [row["candidates"] for row in read_rows(tmp_path / "o/docket.csv")]
    assert [set(cell.split(";")) for cell in cells] == [set(row["labels"]) for row in lists]
    again = ["--candidates", "labels", "--truth", "truth", "--out", tmp_path / "p"]
    assert rectify(tmp_path / "o/rectified.csv", *again) == 0
    files = [read_rows(tmp_path / folder / "docket.csv") for folder in "op"]
    assert [r["label"] for r in files[0]] == [r["label"] for r in files[1]]


def test_the_run_is_repeatable(ran, tmp_path):
    home, _ = ran
    options = ["--candidates", "labels", "--id", "item", "--truth", "truth"]
    rectify(home / "t.csv", *options, "--out", tmp_path / "again")
    again = (tmp_path / "again" / "rectified.csv").read_bytes()
    assert again == (home / "deep" / "out" / "rectified.csv").read_bytes()


@pytest.mark.parametrize("kind", ["tsv", "semicolon", "jsonl", "parquet", "bom", "crlf", "-"])
def test_kinds_of_files(kind, ran, tmp_path, monkeypatch):
    home, rows = ran
    path = tmp_path / f"t.{kind if kind in ('tsv', 'jsonl', 'parquet') else 'csv'}"
    if kind == "jsonl":
        lists = [r | {"labels": r["labels"].split("|"), "x0": float(r["x0"])} for r in rows]
        path.write_text("\n".join(map(json.dumps, lists)))
    elif kind == "parquet":
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.Table.from_pylist(rows), path)
    elif kind == "-":
        content = (home / "t.csv").read_bytes()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    else:
        options = {"tsv": {"delimiter": "\t"}, "semicolon": {"delimiter": ";"}}
        more = {"bom": {"encoding": "utf-8-sig"}, "crlf": {"lineterminator": "\r\n"}}
        write_rows(path, rows, **(options | more)[kind])
    source = "-" if kind == "-" else path
    options = ["--candidates", "labels", "--id", "item", "--truth", "truth"]
    assert rectify(source, *options, "--out", tmp_path / "o") == 0
    if kind == "parquet":
        labels = parquet.read_table(tmp_path / "o/rectified.parquet")["label"].to_pylist()
    else:
        delimiter = {"tsv": "\t", "semicolon": ";"}.get(kind, ",")
        table = read_rows(tmp_path / "o/rectified.csv", delimiter=delimiter)
        labels = [r["label"] for r in table]
    expected = [r["label"] for r in read_rows(home / "deep/out/rectified.csv")]
    assert labels == expected


@pytest.mark.parametrize("name", [None, "__null_dask_index__"])
def test_an_index_without_a_name_is_no_column(name, ran, tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    home, rows = ran
    index = pd.Index(np.arange(len(rows)) * 1000, name=name)
    pd.DataFrame(rows, index=index).to_parquet(tmp_path / "t.parquet")
    options = ["--candidates", "labels", "--id", "item", "--truth", "truth"]
    assert rectify(tmp_path / "t.parquet", *options, "--out", tmp_path / "o") == 0
    found = pd.read_parquet(tmp_path / "o/rectified.parquet")
    assert list(found) == [*rows[0], *ADDED]
    same = read_rows(home / "deep/out/rectified.csv")
    assert found["label"].tolist() == [r["label"] for r in same]


def test_annotators_and_long_tables_agree(tmp_path, capsys):
    X, candidates, truth = make_rows()
    np.save(tmp_path / "x.npy", X)
    wide, long = [], []
    for i, row in enumerate(candidates):
        cells = {f"w{j}": NAMES[j] if row[j] else "-1" for j in range(3)}
        wide.append({"item": f"i{i}", **cells, "t": NAMES[truth[i]]})
        long += [
            {"item": f"i{i}", "answer": cells[w], "who": w, "t": NAMES[truth[i]]} for w in cells
        ]
    write_rows(tmp_path / "wide.csv", wide)
    write_rows(tmp_path / "long.csv", long)
    more = ["--missing", "-1", "--embeddings", tmp_path / "x.npy", "--truth", "t", "--out"]
    assert rectify(tmp_path / "wide.csv", "--annotators", "w*", *more, tmp_path / "a") == 0
    assert "majority vote" in capsys.readouterr().out
    assert rectify(tmp_path / "long.csv", "--long", "item,answer,who", *more, tmp_path / "b") == 0
    labels = [r["label"] for r in read_rows(tmp_path / "a/rectified.csv")]
    answers = read_rows(tmp_path / "b/rectified.csv")
    assert len(answers) == len(long)
    assert [r["label"] for r in answers[::3]] == labels
    assert run(["predict", str(tmp_path / "a"), str(tmp_path / "wide.csv")]) == 2
    assert "Give --embeddings" in capsys.readouterr().err


def test_name_clashes_and_replacing(tmp_path, capsys):
    write_table(tmp_path / "t.csv", extra=lambda i: {"label": "mine", "outcome": "mine"})
    options = ["--candidates", "labels", "--out", tmp_path / "o"]
    assert rectify(tmp_path / "t.csv", *options) == 0
    first = read_rows(tmp_path / "o/rectified.csv")[0]
    assert first["label"] == "mine"
    assert first["appellate_label"] in NAMES
    (tmp_path / "o" / "decisions.csv").write_text("id,decision,label,time\n")
    assert rectify(tmp_path / "t.csv", *options) == 0, "a run of ours is replaced"
    assert (tmp_path / "o" / "decisions.csv").exists(), "what reviewers wrote is kept"
    said = capsys.readouterr().out.splitlines()
    assert any("--decisions" in line for line in said if line.startswith("note"))
    assert not any("decisions.csv" in line for line in said if line.startswith("written"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("!")
    options[-1] = tmp_path / "mine"
    assert rectify(tmp_path / "t.csv", *options) == 0
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "!"


def test_files_of_others_are_never_replaced(tmp_path, capsys):
    write_table(tmp_path / "t.csv")
    (tmp_path / "o" / "model").mkdir(parents=True)
    (tmp_path / "o" / "model" / "weights.bin").write_text("precious")
    (tmp_path / "o" / "run.json").write_text('{"versions": "mine"}')
    options = ["--candidates", "labels", "--out", tmp_path / "o"]
    assert rectify(tmp_path / "t.csv", *options) == 2
    assert "model, run.json, not from a run of appellate" in capsys.readouterr().err
    assert (tmp_path / "o" / "model" / "weights.bin").read_text() == "precious"
    assert sorted(p.name for p in (tmp_path / "o").iterdir()) == ["model", "run.json"]


def test_a_failed_replacement_leaves_the_earlier_run(tmp_path, monkeypatch, capsys):
    write_table(tmp_path / "t.csv")
    options = ["--candidates", "labels", "--out", tmp_path / "o"]
    assert rectify(tmp_path / "t.csv", *options) == 0
    (tmp_path / "o" / "decisions.csv").write_text("mine")
    before = {p: p.read_bytes() for p in sorted((tmp_path / "o").rglob("*")) if p.is_file()}

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("appellate._files._replace_folder", stopped)
    assert rectify(tmp_path / "t.csv", *options) == 130
    after = {p: p.read_bytes() for p in sorted((tmp_path / "o").rglob("*")) if p.is_file()}
    assert after == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["o", "t.csv"]
    monkeypatch.undo()
    capsys.readouterr()
    assert rectify(tmp_path / "t.csv", *options, "--json") == 0
    assert (tmp_path / "o" / "decisions.csv").read_text() == "mine"
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads((tmp_path / "o" / "run.json").read_text())


def test_through_a_link_and_with_a_narrow_umask(tmp_path):
    write_table(tmp_path / "t.csv")
    (tmp_path / "far").mkdir()
    (tmp_path / "o").symlink_to(tmp_path / "far", target_is_directory=True)
    mask = os.umask(0o077)
    try:
        options = ["--candidates", "labels", "--out"]
        assert rectify(tmp_path / "t.csv", *options, tmp_path / "o") == 0
        assert rectify(tmp_path / "t.csv", *options, tmp_path / "new") == 0
    finally:
        os.umask(mask)
    assert (tmp_path / "o").is_symlink()
    assert {p.name for p in (tmp_path / "far").iterdir()} == FILES
    for path in (tmp_path / "new", *(tmp_path / "new").rglob("*")):
        assert not path.stat().st_mode & 0o077, path


@pytest.mark.filterwarnings("ignore::appellate.NoteWarning")  # of three rows and one feature
@pytest.mark.parametrize("name", TABLES)
def test_awkward_tables_mean_the_same_to_all(name, tmp_path):
    """Command, Python and predict see the classes that the room of tables sees."""
    content, classes, numbers, _ = TABLES[name]
    file = tmp_path / "t.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    options = ["--candidates", "c", "--features", "w", "--out", tmp_path / "o"]
    assert rectify(file, *options) == 0
    run_ = appellate.rectify(file, candidates="c", features="w")
    settings = json.loads((tmp_path / "o/run.json").read_text())["settings"]
    assert settings["labels"] == run_.settings["labels"] == classes.split()
    assert run_.labels["w"].tolist() == numbers
    table, written = read_table(file), read_table(tmp_path / "o/rectified.csv")
    for column in table.names:
        assert written.texts(column).to_pylist() == table.texts(column).to_pylist()
    assert written.texts("label").to_pylist() == run_.labels["label"].tolist()
    out = tmp_path / "p.csv"
    assert run(["predict", str(tmp_path / "o"), str(file), "--out", str(out)]) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", appellate.NoteWarning)
        said = run_.predict(file)
    assert read_table(out).texts("label").to_pylist() == said["label"].tolist()


def assert_excluded(folder, docket, said):
    """Row 2 was excluded: docket, page, run.json and the terminal say nothing else of it."""
    parquet = pytest.importorskip("pyarrow.parquet").read_table(folder / "docket.parquet")
    heard = ("first_label", "label", "confidence", "margin", "since_round", "correct")
    for row, nothing in ((docket[2], ""), (parquet.to_pylist()[2], None)):
        assert row["outcome"] == "excluded"
        assert {row[name] for name in heard} == {nothing}
    assert parquet["outcome"].to_pylist() == [row["outcome"] for row in docket]
    assert str(parquet.schema.field("confidence").type) == "double"
    scores = json.loads((folder / "run.json").read_text())["scores"]
    for name, count in scores["outcomes"].items():
        assert count == sum(row["outcome"] == name for row in docket)
    assert scores["outcomes"]["excluded"] == 1
    assert scores["outcomes"]["reviewed"] == 2
    assert scores["accuracy"]["items with truth"] == 59
    assert "1 excluded" in said


def test_decisions_are_kept_and_move_others(tmp_path, capsys):
    rows = write_table(tmp_path / "t.csv")
    options = ["--candidates", "labels", "--id", "item", "--truth", "truth"]
    lines = [
        {"id": "i0", "decision": "accept", "label": rows[0]["truth"]},
        {"id": "i1", "decision": "none", "label": "owl"},
        {"id": "i2", "decision": "none", "label": ""},
        {"id": "i1", "decision": "accept", "label": rows[1]["truth"]},
        {"id": "i3", "decision": "none", "label": ""},
        {"id": "i3", "decision": "clear", "label": ""},
        {"id": "gone", "decision": "none", "label": ""},
        {"id": "lost", "decision": "keep", "label": "owl"},
    ]
    write_rows(tmp_path / "d.csv", lines)
    more = ["--decisions", tmp_path / "d.csv", "--out", tmp_path / "o"]
    assert rectify(tmp_path / "t.csv", *options, *more) == 0
    said = capsys.readouterr().out
    assert "other labels" in said
    rectified = read_rows(tmp_path / "o/rectified.csv")
    assert [r["label"] for r in rectified[:3]] == [rows[0]["truth"], rows[1]["truth"], ""]
    assert [r["outcome"] for r in rectified[:3]] == ["reviewed", "reviewed", "excluded"]
    assert rectified[3]["outcome"] in ("unchanged", "changed")
    docket = read_rows(tmp_path / "o/docket.csv")
    assert [r["outcome"] for r in docket] == [r["outcome"] for r in rectified]
    assert [r["review"] for r in docket[:4]] == ["accept", "accept", "none", ""]
    assert_excluded(tmp_path / "o", docket, said)
    proposed = {r["id"] for r in read_rows(tmp_path / "o/suggested.csv")}
    assert not proposed & {"i0", "i1", "i2"}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([{"id": "i0", "verdict": "x"}], "not a file of decisions"),
        ([{"id": "i0", "decision": "maybe", "label": ""}], "'maybe', which is none of"),
        ([{"id": "i0", "decision": "keep", "label": "owl"}], "'owl' is not a candidate of 'i0'"),
        ([{"id": "z", "decision": "keep", "label": "cat"}], "none of its 1 ids"),
        ([], "no decisions. Decide on some rows first"),
    ],
)
def test_wrong_decisions(lines, message, tmp_path, capsys):
    write_table(tmp_path / "t.csv")
    if lines:
        write_rows(tmp_path / "d.csv", lines)
    else:
        (tmp_path / "d.csv").write_text("id,decision,label,time\n")
    options = ["--candidates", "labels", "--id", "item", "--decisions", tmp_path / "d.csv"]
    assert rectify(tmp_path / "t.csv", *options, "--out", tmp_path / "o") == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


def test_hostile_content_is_text(tmp_path, capsys):
    ids = [f"{HOSTILE[i % len(HOSTILE)]}{i}" for i in range(60)]
    names = (HOSTILE[0], HOSTILE[2], HOSTILE[4])
    write_table(
        tmp_path / "t.csv", names=names, ids=ids, extra=lambda i: {"t": HOSTILE[i % len(HOSTILE)]}
    )
    options = ["--candidates", "labels", "--id", "item", "--image", "t", "--features", "x*"]
    assert rectify(tmp_path / "t.csv", *options, "--out", tmp_path / "o") == 0
    for file in ("rectified.csv", "docket.csv"):
        rows = read_rows(tmp_path / "o" / file)
        for cell in (cell for row in rows for cell in row.values()):
            assert cell[:1] not in ("=", "@", "\t", "\r"), cell
        column = "item" if file == "rectified.csv" else "id"
        expected = [restore(name).strip() for name in ids]
        assert [restore(row[column]).strip() for row in rows] == expected
        assert {restore(r["label"]) for r in rows} <= set(names)
    page = (tmp_path / "o/docket.html").read_text(encoding="utf-8")
    assert page.count("<script") == page.count("</script>") == 3
    assert "<img src=x" not in page
    assert "{{ 7 * 7 }}" in page
    said = capsys.readouterr()
    assert "60 of 60 image files do not exist" in said.err
    assert not re.search("[\u202e\x1b]", said.out + said.err)


def test_predict_checks_columns_by_name(ran, tmp_path, capsys):
    home, rows = ran
    out, new = str(home / "deep/out"), tmp_path / "new.csv"
    write_rows(new, [{"site": "north", "x2": r["x2"], "x0": r["x0"]} for r in rows])
    assert run(["predict", out, str(new)]) == 2
    assert "lacks columns that the model learned from: 'x1'" in capsys.readouterr().err
    shuffled = [{k: r[k] for k in ("x2", "x1", "x0", "site")} | {"label": "?"} for r in rows]
    write_rows(new, shuffled)
    assert (
        run(["predict", f"{out}/model", str(new), "--proba", "--out", str(tmp_path / "p.csv")])
        == 0
    )
    assert "the model ignores the columns 'label'" in capsys.readouterr().err
    labelled = read_rows(tmp_path / "p.csv")
    assert list(labelled[0])[4:] == ["label", "appellate_label", "confidence"] + [
        f"p({name})" for name in sorted(NAMES)
    ]
    shares = [float(labelled[0][f"p({name})"]) for name in NAMES]
    assert sum(shares) == pytest.approx(1, abs=1e-5)
    accuracy = np.mean([p["appellate_label"] == r["truth"] for p, r in zip(labelled, rows)])  # noqa: B905
    assert accuracy > 0.8
    write_rows(new, [{**shuffled[0], "x0": "many"}])
    assert run(["predict", out, str(new)]) == 0
    said = capsys.readouterr().err
    assert "'x0': 1 of 1 rows hold no number that can be read, e.g. 'many' in row 0" in said
    assert run(["predict", str(tmp_path), str(new)]) == 2
    assert "holds no model" in capsys.readouterr().err


def test_suggestions_help_more_than_chance(tmp_path):
    """Reviewing what is suggested moves the accuracy of all rows at least as far."""
    write_table(tmp_path / "t.csv", n=200)
    rows = read_rows(tmp_path / "t.csv")
    options = ["--candidates", "labels", "--id", "item", "--truth", "truth"]
    rectify(tmp_path / "t.csv", *options, "--out", tmp_path / "o")
    proposed = [r["id"] for r in read_rows(tmp_path / "o/suggested.csv")][:15]
    gains = {}
    chance = np.random.default_rng(0).permutation([r["item"] for r in rows])[:15]
    for name, chosen in {"suggested": proposed, "chance": chance}.items():
        truth = {r["item"]: r["truth"] for r in rows}
        decisions = [{"id": i, "decision": "accept", "label": truth[i]} for i in chosen]
        write_rows(tmp_path / "d.csv", decisions)
        more = ["--decisions", tmp_path / "d.csv", "--out", tmp_path / name]
        rectify(tmp_path / "t.csv", *options, *more)
        scores = json.loads((tmp_path / name / "run.json").read_text())["scores"]
        gains[name] = scores["accuracy"]["rectified"]
    assert gains["suggested"] >= gains["chance"]


@pytest.mark.parametrize(
    ("step", "sign", "expected"),
    [
        *((step, "SIGINT", 130) for step in ("turning", "fitting", "writing")),
        *((step, "SIGTERM", 143) for step in ("fitting", "writing")),
    ],
)
def test_interrupted_at_any_moment(step, sign, expected, tmp_path):
    write_table(tmp_path / "t.csv", n=600)
    code = (  # the handler, because a job in the background inherits that SIGINT is ignored
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from appellate.cli import main; main()"
    )
    command = [sys.executable, "-u", "-c", code, "rectify", "t.csv"]
    command += ["--candidates", "labels", "--base", "sure", "--out", "o"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        env=environment,
    )  # fmt: skip
    for line in process.stderr:
        if step in line:
            process.send_signal(signal.Signals[sign])
            break
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == expected
    assert said.splitlines()[-1] == {130: "interrupted", 143: "terminated"}[expected]
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.parametrize("command", ["rectify", "predict", "serve"])
def test_help_is_quick_and_has_examples(command):
    code = (
        "import sys\n"
        f"sys.argv = ['appellate', '{command}', '--help']\n"
        "from appellate.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "sys.stderr.write('loaded: ' + ' '.join(sys.modules))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(said.stderr.split("loaded: ")[1].split())
    assert not {"numpy", "sklearn", "matplotlib", "jinja2", "skops", "pyarrow"} & loaded
    assert f"Examples:\n    appellate {command}" in said.stdout
    assert max(map(len, said.stdout.splitlines())) <= 80


def test_every_note_is_printed_once(tmp_path, capsys):
    write_table(tmp_path / "t.csv", n=15)
    arguments = [tmp_path / "t.csv", "--candidates", "labels", "--features", "x0"]
    assert rectify(*arguments, "--id", "item", "--out", tmp_path / "o") == 0
    capsys.readouterr()
    name = read_rows(tmp_path / "o" / "docket.csv")[0]["id"]
    (tmp_path / "d.csv").write_text(f"id,decision,label\n{name},none,zebra\n")
    more = ["--decisions", tmp_path / "d.csv", "--out", tmp_path / "p"]
    assert rectify(*arguments, "--id", "item", *more) == 0
    printed = capsys.readouterr()
    said = printed.out + printed.err
    document = json.loads((tmp_path / "p" / "run.json").read_text())
    notes = [*document["settings"]["notes"], *document["scores"]["notes"]]
    assert any("no label 'zebra'" in note for note in notes)
    assert len(notes) > 2
    for note in notes:
        assert said.count(note) == 1, note
