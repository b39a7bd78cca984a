"""``appellate check``: what it says of a file."""

from __future__ import annotations

import json
import shlex

import pytest

from appellate.cli.app import run

FACES = """\
id,width,note,candidates,truth
1,0.5,x,anna|bob,bob
2,1.5,y,carl,carl
3,,z,anna|carl,anna
"""


@pytest.fixture
def faces(tmp_path):
    path = tmp_path / "faces.csv"
    path.write_text(FACES)
    return path


def test_the_answer_in_words(faces, capsys):
    assert run(["check", str(faces)]) == 0
    said = capsys.readouterr().out
    for words in (
        f"{faces}: partial-label",
        "this is what Appellate is for",
        "the one true label is always among them",
        "labels in 'candidates', parted by '|', truth in 'truth', row names in 'id'.",
        "3  classes",
        "1.67  labels a row",
        "2  rows with several labels",
        "other columns: note",
        "- empty cells (1) in column 'width'",
        "load_partial_csv(",
        "model.docket(ids=data.ids)",
    ):
        assert words in said
    assert "\x1b" not in said


def test_the_answer_as_json(faces, capsys):
    assert run(["check", str(faces), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["file"] == str(faces)
    assert document["kind"] == "partial-label"
    assert document["facts"]["rows"] == 3
    assert document["truth"] == "truth"
    exec(document["next"].split("model =")[0], {})


def test_options(tmp_path, capsys):
    path = tmp_path / "own.csv"
    path.write_text("x\tann\tben\n1\tcat\tdog\n2\tdog\tdog\n")
    command = ["check", str(path), "--candidates", "ann", "--candidates", "ben"]
    assert run([*command, "--delimiter", "\\t"]) == 0
    said = capsys.readouterr().out
    assert "noisy" in said
    assert "2 people disagree on 1 of 2 rows (50.0%)" in said
    path.write_text("x,who,gold\n1,a+b,a\n2,b,b\n")
    assert run(["check", str(path), "--candidates", "who", "--separator", "+", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["separator"] == "+"
    assert document["truth"] == "gold"
    assert run(["check", str(path), "--candidates", "gold", "--truth", "who"]) == 0
    assert "not the truth in 50.0%" in capsys.readouterr().out


def test_a_table_with_one_answer_a_row(tmp_path, capsys):
    path = tmp_path / "own.csv"
    path.write_text("item,label,annotator\n1,cat,x\n1,dog,y\n2,dog,x\n")
    assert run(["check", str(path)]) == 0
    said = capsys.readouterr().out
    assert "2 people disagree" in said
    assert 'layout="long"' in said


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (None, [], "there is no file"),
        ("", [], "is empty"),
        ("x,label\n1,a\n2\n", [], "line 3: 1 cells"),
        ("x,z\n1,2\n", [], "no column looks like labels. Name it with --candidates COL;"),
        ("x,label\n1,a\n", ["--candidates", "lable"], "Did you mean 'label'?"),
        ("x,label\n1,a\n", ["--encoding", "klingon"], "unknown encoding"),
        ("x,label\n1,a\n", ["--delimiter", "ab"], "is not one character"),
    ],
)
def test_mistakes_end_with_2(tmp_path, text, options, message, capsys):
    path = tmp_path / "own.csv"
    if text is not None:
        path.write_text(text)
    assert run(["check", str(path), *options]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert "Traceback" not in said.err
    assert not said.out


def test_one_label_a_row_names_the_option(tmp_path, capsys):
    path = tmp_path / "own.csv"
    path.write_text("x,label\n1,a\n2,b\n")
    assert run(["check", str(path)]) == 0
    said = capsys.readouterr().out
    assert "one label a row" in said
    assert "name their column with --candidates COL" in said


@pytest.mark.parametrize("name", ["t.jsonl", "t.parquet", "-"])
def test_other_kinds_of_files(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text('{"x": 1, "label": "a"}\n')
    assert run(["check", name]) == 2
    said = capsys.readouterr().err
    assert "check reads CSV files only" in said
    assert "appellate rectify reads it as it is" in said


def test_the_command_to_type_next_runs(tmp_path, monkeypatch, capsys):
    """Where one column holds the candidates, the printed command is a real one."""
    sets = ["b", "a;b", "b;c"]
    rows = [f"{i % 3},{i / 7},{sets[i % 3]},b" for i in range(30)]
    (tmp_path / "own data.csv").write_text("\n".join(["width,height,names,truth", *rows]))
    monkeypatch.chdir(tmp_path)
    assert run(["check", "own data.csv"]) == 0
    said = capsys.readouterr().out.splitlines()
    (line,) = [text.strip() for text in said if "appellate rectify" in text]
    assert run(shlex.split(line)[1:]) == 0
    assert (tmp_path / "own data" / "rectified.csv").is_file()


def proposed(path, capsys, *options):
    """Return the rectify command that check proposes for a file, and what stands before it."""
    assert run(["check", str(path), *options]) == 0
    said = capsys.readouterr().out
    lines = [line.strip() for line in said.splitlines() if "  appellate rectify" in line]
    return shlex.split(lines[0])[1:] if lines else None, said


def people(n=30):
    """Items with a feature, and the answers of two people."""
    return [(f"i{i}", i % 3 + i / 70, "abc"[i % 3], "abc"[i % 2]) for i in range(n)]


def test_the_command_for_one_column_a_person(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [f"{item},{x},{one},{two},{one if x > 1 else ''}" for item, x, one, two in people()]
    (tmp_path / "t.csv").write_text("\n".join(["item_id,x,worker 1,worker 2,gold", *rows]))
    command, _ = proposed("t.csv", capsys)
    options = ["--annotators", "worker 1", "--annotators", "worker 2", "--truth", "gold"]
    assert command == ["rectify", "t.csv", *options, "--id", "item_id", "--out", "t"]
    assert run([*command, "--base", "sure"]) == 0
    assert "accuracy    majority vote" in capsys.readouterr().out


def test_the_command_for_one_answer_a_row(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [(item, x, both[who], who) for item, x, *both in people() for who in range(2)]
    lines = [f"{item},{x},{answer},{who}" for item, x, answer, who in rows]
    (tmp_path / "t.csv").write_text("\n".join(["image,x,answer,who", *lines]))
    command, said = proposed("t.csv", capsys)
    assert command == ["rectify", "t.csv", "--long", "image,answer,who", "--out", "t"]
    assert "2 people disagree" in said
    assert run([*command, "--base", "sure"]) == 0
    lines = [f"{item},{answer},{who}" for item, x, answer, who in rows]
    (tmp_path / "t.csv").write_text("\n".join(["image,answer,who", *lines]))
    assert "--embeddings FILE.npy" in proposed("t.csv", capsys)[1]


def test_a_table_that_rectify_reads_otherwise_is_to_be_saved_anew(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("x~labels\n1.5~a|b\n2.5~b\n3~a\n")
    assert "once the table is saved in UTF-8" in proposed(path, capsys, "--delimiter", "~")[1]
    path.write_text("x;labels\n1.5;a|b\n2.5;b\n3;a\n")
    assert "once" not in proposed(path, capsys, "--delimiter", ";")[1]
    assert "once" in proposed(path, capsys, "--encoding", "latin-1")[1]


def test_a_table_parted_by_bars(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("x|labels\n1.5|a;b\n2.5|b\n")
    assert run(["check", str(path)]) == 2
    assert "t.csv looks delimited by '|'" in capsys.readouterr().err
    assert run(["check", str(path), "--delimiter", "|"]) == 0


def test_one_row_gets_no_command(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("x,labels\n1.5,a|b\n")
    command, said = proposed(path, capsys)
    assert command is None
    assert "- one row only" in said


def test_a_truth_with_holes_stays_in_the_command(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("x,labels,gold\n1.5,a|b,\n2.5,b,b\n3,a,\n")
    assert "--truth" in proposed(path, capsys)[0]
