"""``appellate check``: what it says of a file."""

from __future__ import annotations

import json
import shlex

import pytest

from appellate.cli.app import run
from appellate.tables import write_table

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
        f"'{faces}': candidate sets",
        "Appellate is made for this",
        "the one true label is always among them",
        "candidates  candidates  several labels per cell, separated by '|'",
        "truth       truth       labels of this table",
        "id          id          unique in every row",
        "3  classes",
        "1.667  labels per row",
        "2  rows with several labels",
        "1  empty feature cells",
        "run = appellate.rectify(",
    ):
        assert words in said
    assert "\x1b" not in said


def test_the_answer_as_json(faces, capsys):
    assert run(["check", str(faces), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["file"] == str(faces)
    assert document["kind"] == "partial-label"
    assert document["facts"]["rows"] == 3
    assert document["roles"]["truth"] == "truth"
    compile(document["python"], "next", "exec")


def test_options(tmp_path, capsys):
    path = tmp_path / "own.csv"
    path.write_text("x~ann~ben\n1~cat~dog\n2~dog~dog\n")
    command = ["check", str(path), "--annotators", "ann,ben"]
    assert run([*command, "--delimiter", "~"]) == 0
    said = capsys.readouterr().out
    assert "Annotators disagree: Appellate is made for this." in said
    assert "2 annotators disagree on 1 of 2 rows (50.0%)" in said
    assert "--delimiter '~'" in said
    path.write_text("x,who,gold\n1,a+b,a\n2,b,b\n")
    assert run(["check", str(path), "--candidates", "who", "--separator", "+", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["roles"]["separator"] == "+"
    assert document["roles"]["truth"] == "gold"
    options = ["--candidates", "gold", "--truth", "who", "--separator", ""]
    assert run(["check", str(path), *options]) == 0
    assert "not the true label in 50.0%" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (None, [], "cannot find the file"),
        ("", [], "is empty"),
        ("x,label\n1,a\n2\n3,b\n", [], "line 3"),
        ("x,z\n1,2\n", [], "no label column found. Name it with --candidates"),
        ("x,label\n1,a\n", ["--candidates", "lable"], "Did you mean 'label'?"),
        ("x,label\n1,a\n", ["--encoding", "klingon"], "klingon"),
        ("x,label\n1,a\n", ["--delimiter", "ab"], "'ab'"),
        ("x,label\n1,a\n", ["--truth", "label", "--candidates", "label"], "one role"),
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


def test_escape_sequences_do_not_reach_the_terminal(tmp_path, capsys):
    path = tmp_path / "own.csv"
    path.write_text("x,labels\n1,\x1b]0;title\x07a|b\n2,b\n3,c\n")
    assert run(["check", str(path)]) == 0
    assert run(["check", str(path), "--truth", "\x1b[2J"]) == 2
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err


def sets_of_thirty():
    names = [("b",), ("a", "b"), ("b", "c")]
    rows = [{"width": i % 3, "height": i / 7, "names": list(names[i % 3])} for i in range(30)]
    return [row | {"truth": "b"} for row in rows]


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "jsonl", "json", "xlsx"])
def test_every_format_that_rectify_reads(ending, tmp_path, monkeypatch, capsys):
    """0.1 read CSV only, and called a JSON array one that rectify reads, which it did not."""
    monkeypatch.chdir(tmp_path)
    if ending == "xlsx":
        import pandas as pd

        rows = [row | {"names": "|".join(row["names"])} for row in sets_of_thirty()]
        pd.DataFrame(rows).to_excel("own.xlsx", index=False)
    else:
        write_table(sets_of_thirty(), f"own.{ending}")
    assert run(["check", f"own.{ending}", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["kind"] == "partial-label"
    assert found["facts"]["classes"] == 3
    assert found["roles"]["features"] == ["width", "height"]


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
    options = ["--annotators", "worker 1", "--annotators", "worker 2", "--id", "item_id"]
    assert command == ["rectify", "t.csv", *options, "--truth", "gold", "--out", "t"]


def test_the_command_for_one_answer_a_row(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [(item, x, both[who], who) for item, x, *both in people() for who in range(2)]
    lines = [f"{item},{x},{answer},{who}" for item, x, answer, who in rows]
    (tmp_path / "t.csv").write_text("\n".join(["image,x,answer,who", *lines]))
    (tmp_path / "t").mkdir()
    command, said = proposed("t.csv", capsys)
    assert command == ["rectify", "t.csv", "--long", "image,answer,who", "--out", "t-2"]
    assert "2 annotators disagree" in said


def test_titles_with_spaces_around_them(tmp_path, monkeypatch, capsys):
    """The command that 0.1 proposed named a column that rectify did not find."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own data.csv").write_text("w, names, truth\n1,a|b,a\n2,b,b\n3,a|c,c\n")
    command, said = proposed("own data.csv", capsys)
    assert command[1:4] == ["own data.csv", "--candidates", "names"]
    assert "appellate rectify 'own data.csv'" in said


def test_proposes_to_look_for_wrong_labels_in_a_plain_table(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = [f"{i},{i % 2 * 5 + i / 7:.3f},{'ab'[i % 2]}" for i in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["id,x,label", *lines]))
    command, said = proposed("t.csv", capsys)
    assert command == ["rectify", "t.csv", "--annotators", "label", "--id", "id", "--out", "t"]
    assert "any classifier of scikit-learn will do" in said
    assert "To look for wrong labels, in the terminal:" in said
    assert run(command) == 0
    assert "method testimony" in "".join(capsys.readouterr())


def test_a_plain_table_without_features_gets_no_command(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("id,label\nr1,a\nr2,b\nr3,a\n")
    command, said = proposed(path, capsys)
    assert command is None
    assert "wrong labels" not in said


def test_a_feature_called_y_is_no_label(tmp_path, capsys):
    """0.1 called this table plain, with labels 0.91, 0.12, ..."""
    path = tmp_path / "t.csv"
    rows = ["r0,1.1,0.91,a|b", "r1,2.2,0.12,b|c", "r2,1.3,0.33,a", "r3,2.4,0.64,b|a"]
    path.write_text("\n".join(["id,x,y,cands", *rows, "r4,3.5,0.25,c", "r5,3.6,0.76,c|a"]))
    command, said = proposed(path, capsys)
    assert command[2:4] == ["--candidates", "cands"]
    assert "2  feature columns" in said


def test_the_commands_to_type_next_run(tmp_path, monkeypatch, capsys):
    """Pasted as they are: sets, one column a person, one answer a row."""
    monkeypatch.chdir(tmp_path)
    rows = [row | {"names": ";".join(row["names"])} for row in sets_of_thirty()]
    write_table(rows, "own data.csv")
    crowd = [f"{item},{x},{one},{two}" for item, x, one, two in people()]
    (tmp_path / "wide.csv").write_text("\n".join(["item_id,x,worker 1,worker 2", *crowd]))
    long = [(item, x, both[who], who) for item, x, *both in people() for who in range(2)]
    lines = [",".join(map(str, line)) for line in long]
    (tmp_path / "long.csv").write_text("\n".join(["image,x,answer,who", *lines]))
    (tmp_path / "comma.csv").write_text("\n".join(['"image, large",x,answer,who', *lines]))
    for name in ("own data.csv", "wide.csv", "long.csv", "comma.csv"):
        command, _ = proposed(name, capsys)
        assert run(command) == 0, command
        assert (tmp_path / command[-1] / "rectified.csv").is_file()


def test_sheet_and_decimal_are_options(tmp_path, capsys):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("openpyxl")
    pytest.importorskip("python_calamine")
    book = tmp_path / "book.xlsx"
    with pd.ExcelWriter(book) as writer:
        pd.DataFrame({"a": [1, 2]}).to_excel(writer, sheet_name="cover", index=False)
        pd.DataFrame({"w": ["1,5", "2,5", "0,5"], "names": ["a|b", "b", "a|c"]}).to_excel(
            writer, sheet_name="data", index=False
        )
    assert run(["check", str(book)]) == 2
    capsys.readouterr()
    assert run(["check", str(book), "--sheet", "data", "--decimal", ","]) == 0
    said = capsys.readouterr().out
    assert "decimal commas are read in 'w'" in said
    assert "--decimal , --sheet data" in said  # the command that it proposes
    options = ["--candidates", "names", "--sheet", "data", "--decimal", ","]
    assert run(["rectify", str(book), *options, "--out", str(tmp_path / "o")]) == 0
    assert "w      feature     numbers" in capsys.readouterr().out
    assert run(["predict", str(tmp_path / "o"), str(book), *options[2:]]) == 0


def test_reads_a_file_without_a_header(tmp_path, capsys):
    file = tmp_path / "crowd.csv"
    rows = [f"w{w},t{t},{'cat' if (t + w) % 3 else 'dog'}" for t in range(12) for w in range(3)]
    file.write_text("\n".join(rows) + "\n")
    assert run(["check", str(file)]) == 2
    assert "give --header 'none'" in capsys.readouterr().err
    assert run(["check", str(file), "--header", "none", "--long", "1,2,0"]) == 0
    said = capsys.readouterr().out
    assert "give header" not in said
    assert "--header none" in said  # in the command that comes next
    assert "--long 1,2,0" in said


def test_a_matlab_file_names_what_reads_it(tmp_path, capsys):
    from scipy.io import savemat

    savemat(tmp_path / "a.mat", {"data": [[1.0, 2.0]]})
    assert run(["check", str(tmp_path / "a.mat")]) == 2
    assert "load_partial_mat" in capsys.readouterr().err
