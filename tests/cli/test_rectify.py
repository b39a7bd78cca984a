"""From a table to a folder: rectified labels, docket, page, model."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from contextlib import redirect_stdout

import numpy as np
import pytest

from appellate.cli.app import run
from tests.cli.tables import HOSTILE, NAMES, make_rows, read_rows, write_rows, write_table

pytest.importorskip("skops")
pytest.importorskip("jinja2")
FILES = {"rectified.csv", "docket.csv", "docket.parquet", "docket.html", "model", "run.json"}


def rectify(*arguments):
    return run(["rectify", *map(str, arguments)])


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    home = tmp_path_factory.mktemp("run")
    rows = write_table(home / "t.csv")
    options = ["--candidates", "labels", "--id", "item", "--truth", "truth", "--suggest", "5"]
    said = io.StringIO()
    with redirect_stdout(said):
        assert rectify(home / "t.csv", *options, "--out", home / "deep" / "out") == 0
    (home / "said.txt").write_text(said.getvalue().split("written ")[1].split("next ")[0])
    return home, rows


def test_what_is_written(ran):
    home, rows = ran
    out = home / "deep" / "out"
    assert {p.name for p in out.iterdir()} == FILES | {"suggested.csv"}
    assert all(name in home.joinpath("said.txt").read_text() for name in FILES | {"suggested.csv"})
    assert [p.name for p in (home / "deep").iterdir()] == ["out"]
    rectified = read_rows(out / "rectified.csv")
    assert list(rectified[0]) == [*rows[0], "label", "confidence", "outcome"]
    assert [{k: r[k] for k in rows[0]} for r in rectified] == rows
    assert all(r["label"] in r["labels"].split("|") for r in rectified)
    assert np.mean([r["label"] == r["truth"] for r in rectified]) > 0.8
    docket = read_rows(out / "docket.csv")
    assert [r["appeal"] for r in docket] == [r["label"] for r in rectified]
    document = json.loads((out / "run.json").read_text())
    assert len(document["data"]["sha256"]) == 64
    assert document["result"]["upheld"] + document["result"]["overturned"] == 60
    assert set(document["result"]["accuracy"]) >= {"any_candidate", "verdict", "appeal"}
    assert document["timings"]["hearing verdicts and appeals"] > 0
    assert len(read_rows(out / "suggested.csv")) == 5


def test_what_was_inferred_is_said_first(tmp_path, capsys):
    write_table(tmp_path / "t.csv", extra=lambda i: {"note": f"text {i}", "same": "1", "no": ""})
    assert rectify(tmp_path / "t.csv", "--candidates", "labels", "--out", tmp_path / "o") == 0
    said = capsys.readouterr().out
    assert "3 numbers: 'x0', 'x1', 'x2'" in said
    assert "one-hot encoded: 'site'\n" in said
    assert "ignored     'truth': holds labels" in said
    assert "'note': text with 60 different values" in said
    assert "'same': the same in all rows" in said
    assert "'no': empty" in said
    assert said.index("features") < said.index("verdicts")


def test_categories_alone_are_features(tmp_path, capsys):
    write_table(tmp_path / "t.csv")
    options = ["--candidates", "labels", "--features", "site", "--out", tmp_path / "o"]
    assert rectify(tmp_path / "t.csv", *options) == 0
    assert "features    1 categories, one-hot encoded: 'site'" in capsys.readouterr().out


def test_lists_of_labels_are_written_so_that_they_can_be_read(tmp_path, capsys):
    rows = write_table(tmp_path / "t.csv", names=("a|x", "b", "c"), separator="&")
    lists = [row | {"labels": row["labels"].split("&")} for row in rows]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, lists)))
    options = ["--candidates", "labels", "--truth", "truth", "--out", tmp_path / "o"]
    assert rectify(tmp_path / "t.jsonl", *options) == 0
    assert "sets of labels are written with ';' between" in capsys.readouterr().out
    for file, column in (("rectified.csv", "labels"), ("docket.csv", "candidates")):
        cells = [row[column] for row in read_rows(tmp_path / "o" / file)]
        assert [set(cell.split(";")) for cell in cells] == [set(row["labels"]) for row in lists]


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
    delimiter = {"tsv": "\t", "semicolon": ";"}.get(kind, ",")
    labels = [r["label"] for r in read_rows(tmp_path / "o/rectified.csv", delimiter=delimiter)]
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
    same = (home / "deep/out/rectified.csv").read_text()
    assert (tmp_path / "o/rectified.csv").read_text() == same


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
    assert "give --embeddings" in capsys.readouterr().err


def test_name_clashes_and_replacing(tmp_path, capsys):
    write_table(tmp_path / "t.csv", extra=lambda i: {"label": "mine", "outcome": "mine"})
    options = ["--candidates", "labels", "--out", tmp_path / "o"]
    assert rectify(tmp_path / "t.csv", *options) == 0
    first = read_rows(tmp_path / "o/rectified.csv")[0]
    assert first["label"] == "mine"
    assert first["appeal_label"] in NAMES
    (tmp_path / "o" / "decisions.csv").write_text("id,decision,label,time\n")
    assert rectify(tmp_path / "t.csv", *options) == 0, "a run of ours is replaced"
    assert (tmp_path / "o" / "decisions.csv").exists(), "what reviewers wrote is kept"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("!")
    options[-1] = tmp_path / "mine"
    assert rectify(tmp_path / "t.csv", *options) == 2
    assert "--force" in capsys.readouterr().err
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["thesis.tex"]
    assert rectify(tmp_path / "t.csv", *options, "--force") == 0
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "!"


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_files_of_others_are_never_replaced(force, tmp_path, capsys):
    write_table(tmp_path / "t.csv")
    (tmp_path / "o" / "model").mkdir(parents=True)
    (tmp_path / "o" / "model" / "weights.bin").write_text("precious")
    (tmp_path / "o" / "run.json").write_text('{"versions": "mine"}')
    options = ["--candidates", "labels", "--out", tmp_path / "o", *force]
    assert rectify(tmp_path / "t.csv", *options) == 2
    assert "model, run.json, not from a run of appellate" in capsys.readouterr().err
    assert (tmp_path / "o" / "model" / "weights.bin").read_text() == "precious"
    assert sorted(p.name for p in (tmp_path / "o").iterdir()) == ["model", "run.json"]


def test_a_failed_replacement_leaves_the_earlier_run(tmp_path, monkeypatch, capsys):
    write_table(tmp_path / "t.csv")
    options = ["--candidates", "labels", "--out", tmp_path / "o"]
    assert rectify(tmp_path / "t.csv", *options, "--suggest", 3) == 0
    (tmp_path / "o" / "decisions.csv").write_text("mine")
    before = {p: p.read_bytes() for p in sorted((tmp_path / "o").rglob("*")) if p.is_file()}
    move = os.replace

    def stuck(source, target):
        if target == (tmp_path / "o" / "rectified.csv") and ".o-old-" not in str(source):
            raise KeyboardInterrupt
        move(source, target)

    monkeypatch.setattr("appellate.cli.outputs.os.replace", stuck)
    assert rectify(tmp_path / "t.csv", *options) == 130
    after = {p: p.read_bytes() for p in sorted((tmp_path / "o").rglob("*")) if p.is_file()}
    assert after == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["o", "t.csv"]
    monkeypatch.undo()
    assert rectify(tmp_path / "t.csv", *options, "--json") == 0
    assert not (tmp_path / "o" / "suggested.csv").exists(), "nothing stale remains"
    assert (tmp_path / "o" / "decisions.csv").read_text() == "mine"
    said = capsys.readouterr().out
    document = json.loads(said[said.rindex("\n{\n") :])
    assert document == json.loads((tmp_path / "o" / "run.json").read_text())


def test_missing_values_and_large_tables(tmp_path, capsys):
    write_table(tmp_path / "t.csv", extra=lambda i: {"x9": "" if i % 3 else str(i), "c": "NA"})
    options = ["--candidates", "labels", "--truth", "truth", "--kernel", "nystroem"]
    assert rectify(tmp_path / "t.csv", *options, "--out", tmp_path / "o") == 0
    said = capsys.readouterr().out
    assert "Nystroem features of 60 landmarks: 60 rows; needs about" in said
    rows = read_rows(tmp_path / "o/rectified.csv")
    assert np.mean([r["label"] == r["truth"] for r in rows]) > 0.8
    write_rows(tmp_path / "new.csv", [{"x0": "", "x1": "1", "x2": "0", "x9": "", "site": "west"}])
    assert run(["predict", str(tmp_path / "o/model"), str(tmp_path / "new.csv")]) == 0
    assert capsys.readouterr().out.splitlines()[1].split(",")[5] in NAMES


def test_options_that_the_exact_kernel_does_not_use_are_said(tmp_path, capsys):
    write_table(tmp_path / "t.csv")
    options = ["--candidates", "labels", "--landmarks", "9", "--cache-dir", tmp_path]
    assert rectify(tmp_path / "t.csv", *options, "--out", tmp_path / "o") == 0
    assert "--landmarks and --cache-dir not used" in capsys.readouterr().out


def test_the_default_base_with_few_rows(tmp_path, capsys):
    write_table(tmp_path / "t.csv")
    arguments = ["--candidates", "labels", "--kernel", "nystroem", "--out", str(tmp_path / "o")]
    assert run(["rectify", str(tmp_path / "t.csv"), *arguments]) == 0
    said = capsys.readouterr().out
    assert "SURE as base, the default with this kernel" in said
    assert "slow at this size" not in said


def test_features_on_disk_leave_a_model_and_no_file(tmp_path, capsys):
    write_table(tmp_path / "t.csv")
    cache = tmp_path / "cache"
    cache.mkdir()
    options = ["--candidates", "labels", "--kernel", "nystroem", "--cache-dir", cache]
    assert rectify(tmp_path / "t.csv", *options, "--out", tmp_path / "o") == 0
    assert "of disk in" in capsys.readouterr().out
    assert run(["predict", str(tmp_path / "o/model"), str(tmp_path / "t.csv")]) == 0
    assert not any(cache.iterdir())


@pytest.fixture
def planned(tmp_path, monkeypatch):
    """Ask the command what a base and further options would take, in bytes."""
    from appellate.numerics.memory import represent

    def refuse(*arguments, **options):
        memory.append(represent(*arguments, **options).memory)
        raise MemoryError

    def ask(kernel, *base):
        options = ["--candidates", "labels", "--kernel", kernel, "--out", str(tmp_path / "o")]
        assert run(["rectify", str(tmp_path / "t.csv"), *options, "--base", *base]) == 2
        return memory.pop()

    write_table(tmp_path / "t.csv")
    monkeypatch.setattr("appellate.numerics.memory.represent", refuse)
    memory = []
    return ask


def test_a_folder_spares_svm_no_memory(planned, tmp_path):
    needed = planned("nystroem", "sure")
    assert planned("nystroem", "svm") == needed
    assert planned("nystroem", "svm", "--cache-dir", str(tmp_path)) == needed


def test_the_plan_knows_the_matrices_of_the_base(planned, tmp_path):
    n = len(read_rows(tmp_path / "t.csv"))
    assert planned("exact", "plcl") == planned("exact", "sure") + 2 * 8 * n * n


def assert_excluded(folder, docket, said):
    """Row 2 was excluded: docket, page, run.json and the terminal say nothing else of it."""
    parquet = pytest.importorskip("pyarrow.parquet").read_table(folder / "docket.parquet")
    heard = ("verdict", "appeal", "appeal_confidence", "margin", "round", "appeal_correct")
    for row, nothing in ((docket[2], ""), (parquet.to_pylist()[2], None)):
        assert row["outcome"] == "excluded"
        assert {row[name] for name in heard} == {nothing}
    assert parquet["outcome"].to_pylist() == [row["outcome"] for row in docket]
    assert str(parquet.schema.field("appeal_confidence").type) == "double"
    result = json.loads((folder / "run.json").read_text())["result"]
    assert result["excluded"] == 1
    assert result["reviewed"] == 2
    assert result["upheld"] + result["overturned"] == 57
    for name in ("upheld", "overturned", "reviewed", "excluded"):
        assert result[name] == sum(row["outcome"] == name for row in docket)
    assert result["accuracy"]["samples_with_truth"] == 59
    assert f"{result['upheld']} upheld, 2 decided and 1 excluded by review" in said
    page = (folder / "docket.html").read_text(encoding="utf-8")
    assert "<dt>excluded by review</dt><dd>1</dd>" in page
    assert "<dt>decided by review</dt><dd>2</dd>" in page
    assert f'<dt>upheld</dt><dd class="upheld">{result["upheld"]}</dd>' in page


def test_decisions_are_kept_and_move_others(tmp_path, capsys):
    rows = write_table(tmp_path / "t.csv")
    options = ["--candidates", "labels", "--id", "item", "--truth", "truth"]
    lines = [
        {"id": "i0", "decision": "accept", "label": rows[0]["truth"]},
        {"id": "i1", "decision": "other", "label": "cow"},
        {"id": "i2", "decision": "none", "label": ""},
        {"id": "i1", "decision": "other", "label": "dog"},
        {"id": "i3", "decision": "none", "label": ""},
        {"id": "i3", "decision": "clear", "label": ""},
        {"id": "gone", "decision": "none", "label": ""},
        {"id": "lost", "decision": "keep", "label": "owl"},
    ]
    write_rows(tmp_path / "d.csv", lines)
    more = ["--decisions", tmp_path / "d.csv", "--suggest", "60", "--out", tmp_path / "o"]
    assert rectify(tmp_path / "t.csv", *options, *more) == 0
    said = capsys.readouterr().out
    assert "3 rows reviewed, 1 of them excluded; 2 of unknown ids ignored" in said
    assert "other labels moved because of the 3 reviewed rows" in said
    rectified = read_rows(tmp_path / "o/rectified.csv")
    assert [r["label"] for r in rectified[:3]] == [rows[0]["truth"], "dog", ""]
    assert [r["outcome"] for r in rectified[:3]] == ["reviewed", "reviewed", "excluded"]
    assert rectified[3]["outcome"] in ("upheld", "overturned")
    docket = read_rows(tmp_path / "o/docket.csv")
    assert [r["outcome"] for r in docket] == [r["outcome"] for r in rectified]
    assert [r["review"] for r in docket[:4]] == ["accept", "other", "none", ""]
    assert_excluded(tmp_path / "o", docket, said)
    proposed = {r["id"] for r in read_rows(tmp_path / "o/suggested.csv")}
    assert not proposed & {"i0", "i1", "i2"}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([{"id": "i0", "verdict": "x"}], "no file of decisions"),
        ([{"id": "i0", "decision": "maybe", "label": ""}], "'maybe' is none of"),
        ([{"id": "i0", "decision": "keep", "label": "owl"}], "'owl' is no candidate of 'i0'"),
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
    from appellate.tables.cells import restore

    ids = [f"{HOSTILE[i % len(HOSTILE)]}{i}" for i in range(60)]
    names = (HOSTILE[0], HOSTILE[2], HOSTILE[4])
    write_table(
        tmp_path / "t.csv", names=names, ids=ids, extra=lambda i: {"t": HOSTILE[i % len(HOSTILE)]}
    )
    options = ["--candidates", "labels", "--id", "item", "--text", "t", "--image", "t"]
    assert rectify(tmp_path / "t.csv", *options, "--out", tmp_path / "o") == 0
    for file in ("rectified.csv", "docket.csv"):
        rows = read_rows(tmp_path / "o" / file)
        for cell in (cell for row in rows for cell in row.values()):
            assert cell[:1] not in ("=", "@", "\t", "\r"), cell
        column = "item" if file == "rectified.csv" else "id"
        assert [restore(row[column]) for row in rows] == ids
        assert {restore(r["label" if column == "item" else "appeal"]) for r in rows} <= set(names)
    page = (tmp_path / "o/docket.html").read_text(encoding="utf-8")
    assert page.count("<script") == page.count("</script>") == 3
    assert "<img src=x" not in page
    assert "{{ 7 * 7 }}" in page
    (note,) = [n for n in capsys.readouterr().err.split("\n") if n.startswith("appellate: ")]
    assert "60 of 60 picture files do not exist" in note


def test_predict_checks_columns_by_name(ran, tmp_path, capsys):
    home, rows = ran
    out, new = str(home / "deep/out"), tmp_path / "new.csv"
    write_rows(new, [{"site": "north", "x2": r["x2"], "x0": r["x0"]} for r in rows])
    assert run(["predict", out, str(new)]) == 2
    assert "lacks columns that the model learned from: 'x1'" in capsys.readouterr().err
    shuffled = [{k: r[k] for k in ("x2", "x1", "x0", "site")} | {"label": "?"} for r in rows]
    write_rows(new, shuffled)
    assert run(["predict", f"{out}/model", str(new), "--proba", "--out", str(tmp_path / "p")]) == 0
    assert "not used by the model: 'label'" in capsys.readouterr().err
    labelled = read_rows(tmp_path / "p")
    assert list(labelled[0])[4:] == ["label", "appeal_label", "confidence"] + [
        f"p({name})" for name in sorted(NAMES)
    ]
    shares = [float(labelled[0][f"p({name})"]) for name in NAMES]
    assert sum(shares) == pytest.approx(1, abs=1e-5)
    accuracy = np.mean([p["appeal_label"] == r["truth"] for p, r in zip(labelled, rows)])  # noqa: B905
    assert accuracy > 0.8
    write_rows(new, [{**shuffled[0], "x0": "many"}])
    assert run(["predict", out, str(new)]) == 2
    assert "column 'x0': row 0 holds 'many'" in capsys.readouterr().err
    assert run(["predict", str(tmp_path), str(new)]) == 2
    assert "holds no model" in capsys.readouterr().err


def test_suggestions_help_more_than_chance(tmp_path):
    """Reviewing what is suggested moves the accuracy of all rows at least as far."""
    write_table(tmp_path / "t.csv", n=200)
    rows = read_rows(tmp_path / "t.csv")
    options = ["--candidates", "labels", "--id", "item", "--truth", "truth", "--seed", "0"]
    rectify(tmp_path / "t.csv", *options, "--suggest", 15, "--out", tmp_path / "o")
    proposed = [r["id"] for r in read_rows(tmp_path / "o/suggested.csv")]
    gains = {}
    chance = np.random.default_rng(0).permutation([r["item"] for r in rows])[:15]
    for name, chosen in {"suggested": proposed, "chance": chance}.items():
        truth = {r["item"]: r["truth"] for r in rows}
        decisions = [{"id": i, "decision": "other", "label": truth[i]} for i in chosen]
        write_rows(tmp_path / "d.csv", decisions)
        more = ["--decisions", tmp_path / "d.csv", "--out", tmp_path / name]
        rectify(tmp_path / "t.csv", *options, *more)
        result = json.loads((tmp_path / name / "run.json").read_text())["result"]
        gains[name] = result["accuracy"]["appeal"]
    assert gains["suggested"] >= gains["chance"]


@pytest.mark.parametrize(
    ("step", "sign", "expected"),
    [
        *((step, "SIGINT", 130) for step in ("preparing", "hearing", "finding", "writing")),
        *((step, "SIGTERM", 143) for step in ("hearing", "writing")),
    ],
)
def test_interrupted_at_any_moment(step, sign, expected, tmp_path):
    write_table(tmp_path / "t.csv", n=1200)
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


@pytest.mark.parametrize("kernel", ["exact", "nystroem"])
def test_select_needs_no_truth(kernel, tmp_path, capsys):
    rows = write_table(tmp_path / "t.csv")
    kept = [{k: v for k, v in row.items() if k != "truth"} for row in rows]
    write_rows(tmp_path / "t.csv", kept)
    arguments = ["rectify", str(tmp_path / "t.csv"), "--candidates", "labels", "--id", "item"]
    arguments += ["--base", "sure", "--select", "--kernel", kernel, "--out", str(tmp_path / "o")]
    assert run(arguments) == 0
    assert "chosen by candidate_likelihood on 60 samples (sure " in capsys.readouterr().out
    settings = json.loads((tmp_path / "o/run.json").read_text())["settings"]
    assert set(settings["params"]) == {"bandwidth", "regularization", "collaboration", "blur"}
    assert run(["predict", str(tmp_path / "o"), str(tmp_path / "t.csv")]) == 0


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
