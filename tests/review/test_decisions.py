"""The file of decisions: whole or not at all, in any form a spreadsheet gives it."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appellate.review import decisions
from appellate.review.decisions import (
    COLUMNS,
    DecisionError,
    DecisionFile,
    Rows,
    as_line,
    parse,
    read_decisions,
    read_records,
)
from tests.test_files import SPECIAL, make_special

HEAD = ",".join(COLUMNS) + "\n"
CLASSES = ["cat", "dog", "cow"]
SETS = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 0]], dtype=bool)


def record(name="a", kind="accept", label="cat", key=""):
    return {"id": name, "decision": kind, "label": label, "time": "t", "key": key}


def read(path, text, ids=("a", "b", "c"), data="", encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return read_decisions(path, classes=CLASSES, candidates=SETS, ids=ids, data=data)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "decisions.csv"


def test_the_latest_decision_counts(path):
    text = "id,decision,label\na,accept,cat\nb,keep,dog\nb,clear,\na,other,dog\nx,none,\nc,none,\n"
    found = read(path, text)
    assert found.by_row() == {0: ("other", "dog"), 2: ("none", "")}
    assert found.labels.tolist() == [1, -1]
    assert found.unknown == 1


def test_none_of_these_may_name_a_label(path):
    found = read(path, "id,decision,label\na,none,cow\nb,none,zebra\n")
    assert found.names == ["cow", "zebra"]
    assert found.labels.tolist() == [2, -1], "a new label has no class"


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_forms_of_spreadsheets(path, mark, encoding, end):
    rows = [
        ["label", "note", "ID", "decision"],
        ["dog", "é", "b", "other"],
        ["cat", "", "a", "accept"],
    ]
    text = end.join(mark.join(row) for row in rows)  # no final line end
    found = read(path, text, encoding=encoding)
    assert found.by_row() == {1: ("other", "dog"), 0: ("accept", "cat")}


def test_json_lines(path):
    found = read(path, '{"id": "a", "decision": "other", "label": "dog"}\n\n')
    assert found.by_row() == {0: ("other", "dog")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a file of decisions"),
        ("a,b\n", "not a file of decisions"),
        ("id,decision\r,label\na,accept,cat\n", "not a file of decisions"),
        ("id,decision,label\na,drop,cat\n", "Line 2 has the decision 'drop', which is none"),
        ("id,decision,label\na,accept\n", "Line 2 has 2 cells, but the head of the file has 3"),
        ('id,decision,label\na,accept,"cat\n', "Line 2 has a quotation mark that is not closed"),
        ("id,decision,label\na,accept,cow\n", "'cow' is not a candidate of 'a', which has cat"),
        ("id,decision,label\na,none,cat\n", "'cat' is a candidate of 'a'"),
        ("id,decision,label\nx,accept,cat\n", "none of its 1 ids is in the table"),
        ("id,decision,label\na,none," + "x" * 1001 + "\n", "more than 1000 characters"),
        ('{"id": "a"}', "Line 1 has no id, decision, label"),
        ("{", "Line 1 is not JSON"),
    ],
)
def test_what_is_refused(path, text, message):
    with pytest.raises(DecisionError, match=message):
        read(path, text)


def test_latin_1_is_refused(path):
    with pytest.raises(DecisionError, match="UTF-8"):
        read(path, "id,decision,label\né,none,\n", encoding="latin-1")


def test_a_row_number_on_a_table_that_changed(path):
    line = as_line(record("1", label="dog") | {"data": "sha256:1", "candidates": "dog|cow"})
    assert read(path, HEAD + line, ids=None, data="sha256:1").rows.tolist() == [1]
    with pytest.raises(DecisionError, match=r"another version of the table.*Name a column"):
        read(path, HEAD + line, ids=None, data="sha256:2")
    moved = as_line(record("1", label="dog") | {"candidates": "cat|dog"})
    with pytest.raises(DecisionError, match=r"its candidates were cat\|dog, and now are dog, cow"):
        read(path, HEAD + moved, ids=None)
    named = as_line(record("b", label="dog") | {"data": "sha256:1", "candidates": "cat|dog"})
    assert read(path, HEAD + named, data="sha256:2").rows.tolist() == [1], "found by name"


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@given(st.lists(st.fixed_dictionaries({"id": TEXTS, "label": TEXTS, "key": TEXTS}), max_size=5))
def test_every_text_comes_back(records):
    lines = [as_line(r | {"decision": "none"}) for r in records]
    found = parse((HEAD + "".join(lines)).encode(), "it")
    assert [{k: r[k] for k in ("id", "label", "key")} for r in found] == records


def test_appending(path):
    file = DecisionFile(path)
    assert file.records() == []
    assert file.append(record(key="k1"))
    assert not file.append(record(key="k1")), "kept once"
    assert file.append(record("b", "none", "=x\r", "k2"))
    assert path.read_bytes().startswith(f'{HEAD}a,accept,cat,t,,,k1,\nb,none,"\'=x\r"'.encode())
    assert [(r["id"], r["label"]) for r in DecisionFile(path).records()] == [
        ("a", "cat"),
        ("b", "=x\r"),
    ]


@pytest.mark.parametrize(
    "before",
    [
        "id,decision,label,time\na,accept,cat,t",
        "id;decision;label;time\na;accept;cat;t\n",
        "\ufeffid\tdecision\tlabel\tnote\na\taccept\tcat\tmine\n",
        "label,decision,id\r\ncat,accept,a\r\n",
        HEAD + "a,accept,cat,t,,,,",
    ],
)
def test_appending_to_what_a_spreadsheet_saved(path, before):
    path.write_bytes(before.encode())
    file = DecisionFile(path)
    assert file.append(record("b", "none", "", "k"))
    found = parse(path.read_bytes(), "it")
    assert [(r["id"], r["decision"], r["label"]) for r in found] == [
        ("a", "accept", "cat"),
        ("b", "none", ""),
    ]
    assert found[0]["note"] == ("mine" if "mine" in before else "")
    assert file.append(record("c", "none", "", "k2"))
    assert len(parse(path.read_bytes(), "it")) == 3
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_line_that_a_killed_server_left_torn_is_left_out(path):
    path.write_text(HEAD + as_line(record("a")) + "b,acc")
    assert DecisionFile(path).append(record("c"))
    assert [r["id"] for r in parse(path.read_bytes(), "it")] == ["a", "c"]


@pytest.mark.parametrize(
    "before", ["x,y\n1,2\n", "\xff", "id;decision;label\na;acc;x\nb;none;\n", '{"id": 1}\n{']
)
def test_a_file_that_cannot_be_read_is_never_touched(path, before):
    path.write_bytes(before.encode("latin-1"))
    with pytest.raises(DecisionError):
        DecisionFile(path).append(record())
    assert path.read_bytes() == before.encode("latin-1")


BAD = {
    "a,acc": "has 2 cells, but the head of the file has 8",
    'a,"acc': "has a quotation mark that is not closed",
    'a,none,x"y,,,,,': "has a quotation mark that is not closed",
    "a,drop,cat,,,,,": "has the decision 'drop', which is none of",
    "\xff,none,,,,,,": "is not written in UTF-8",
    'a,none,"x\ny",t': "has 4 cells",
}


@pytest.mark.parametrize(("line", "reason"), BAD.items())
@pytest.mark.parametrize("end", ["", "\n"])
def test_skips_a_bad_line_and_keeps_it(path, line, reason, end):
    good = [as_line(record(name, "none", 'a "b",\n')) for name in "xyz"]
    before = (HEAD + good[0] + good[1] + line + end).encode("latin-1")
    path.write_bytes(before)
    file = DecisionFile(path)
    assert file.append(record("c", "none", '"q",\n', "k1"))
    assert file.append(record("d", "none", ",x", "k2"))
    assert not file.append(record("d", "none", ",x", "k2"))
    for found in (file.read(), DecisionFile(path).read()):
        assert [r["id"] for r in found.records] == ["x", "y", "c", "d"]
        assert found.skipped[0].startswith(f"line 6 {reason}") or "\n" in line
    assert path.read_bytes().startswith(before), "nothing is lost"


def test_reports_skipped_lines_to_the_caller(path):
    found = read(path, "id,decision,label\na,accept,cat\nb,acccept,dog\n")
    assert found.by_row() == {0: ("accept", "cat")}
    assert found.skipped == (
        "line 3 has the decision 'acccept', which is none of accept, keep, other, none, clear",
    )


@pytest.mark.parametrize("length", [131_072, 131_073, 900_000])
def test_every_decision_that_was_taken_can_be_read(path, length):
    """Python's csv module stops at cells of 131,072 characters."""
    file = DecisionFile(path)
    for name in "abc":
        long = record(name, "none", "x" * length, f"k{name}") | {"candidates": "y|" * length}
        assert file.append(long)
    assert [len(r["label"]) for r in DecisionFile(path).records()] == [length] * 3
    assert read_records(path.read_bytes(), "it").skipped == []


def test_a_decision_without_room_is_refused_before_it_is_written(path):
    file = DecisionFile(path)
    file.append(record("a"))
    before = path.read_bytes()
    with pytest.raises(DecisionError, match="was not saved: it takes 2097"):
        file.append(record("b", label="x" * (20 << 20)))
    assert path.read_bytes() == before
    assert file.append(record("c"))


def test_a_long_candidate_can_be_chosen():
    rows = Rows(["a"], ["x" * 5000, "y"], [0, 2], [0, 1])
    assert rows.refusal(record("a", "other", "x" * 5000)) == ""
    assert "more than 1000 characters" in rows.refusal(record("a", "none", "z" * 1001))


def test_lines_are_parsed_once(path, monkeypatch):
    file, parsed = DecisionFile(path), []
    real = decisions._as_record

    def count(cells, head):
        parsed.append(cells)
        return real(cells, head)

    monkeypatch.setattr(decisions, "_as_record", count)
    for i in range(50):
        assert file.append(record(str(i), key=f"k{i}"))
        assert len(file.records()) == i + 1
    assert len(parsed) == 50
    other = DecisionFile(path)
    other.append(record("50", key="k50"))
    assert len(parsed) == 101, "another server reads it once, and its own line"
    assert not file.append(record("50", key="k50"))
    assert len(parsed) == 102
    path.write_bytes(path.read_bytes().replace(b"7,accept,cat,t,,,k7", b"7,accept,cow,t,,,k7"))
    assert [r["label"] for r in file.records()].count("cow") == 1, "changed by hand"


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            TEXTS.map(lambda label: as_line(record("a", "none", label))),
            st.text('a,"\n\r', max_size=9),
            st.sampled_from([HEAD, "", "\n", '"', 'a,none,"x']),
        ),
        max_size=12,
    )
)
def test_reading_bit_by_bit_is_reading_at_once(parts):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "decisions.csv")
        path.write_text(HEAD)
        file = DecisionFile(path)
        for part in parts:
            with path.open("ab") as stream:
                stream.write(part.encode())
            os.utime(path, ns=(1, len(path.read_bytes())))
            assert file.read() == read_records(path.read_bytes(), "'decisions.csv'")


@pytest.mark.parametrize("kind", SPECIAL)
def test_a_file_that_is_not_one_is_named(path, kind):
    make_special(path, kind)
    for use in (DecisionFile(path).records, lambda: DecisionFile(path).append(record())):
        with pytest.raises(DecisionError, match=r"decisions.csv' is .*not opened"):
            use()
    with pytest.raises(DecisionError, match="not opened"):
        read_decisions(path, classes=CLASSES, candidates=SETS)


@pytest.mark.parametrize("room", [0, 7])
def test_a_short_write_leaves_the_file_as_it_was(path, room, monkeypatch):
    file = DecisionFile(path)
    file.append(record(key="k1"))
    before = path.read_bytes()
    write, left = os.write, [room]

    def full(handle, content):
        if not left[0]:
            raise OSError(28, "No space left on device")
        part, left[0] = content[: left[0]], 0
        return write(handle, part)

    monkeypatch.setattr("appellate.review.decisions.os.write", full)
    with pytest.raises(OSError, match="No space"):
        file.append(record("b", key="k2"))
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert file.append(record("b", key="k2")), "it can be sent again"
    assert len(file.records()) == 2


def test_many_writers_one_head_nothing_twice(path):
    files = [DecisionFile(path) for _ in range(2)]

    def work(file, start):
        for i in range(start, start + 40):
            file.append(record(str(i), key=f"k{i}"))

    threads = [threading.Thread(target=work, args=(f, s)) for f in files for s in (0, 20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = parse(path.read_bytes(), "it")
    assert sorted(r["key"] for r in found) == sorted(f"k{i}" for i in range(60))


def test_a_link_is_not_followed(path, tmp_path):
    (tmp_path / "other").write_text(HEAD)
    path.symlink_to(tmp_path / "other")
    with pytest.raises((DecisionError, OSError)):
        DecisionFile(path).append(record())
    assert (tmp_path / "other").read_text() == HEAD


@pytest.mark.filterwarnings("ignore::appellate.NoteWarning")  # of one feature
def test_the_file_of_a_run_is_read_by_the_next_whatever_labels_are_made_of(tmp_path):
    """Its labels hold the usual separator, and its rows have no names."""
    pytest.importorskip("pyarrow"), pytest.importorskip("skrub")
    from appellate import rectify

    table = {"w": [0.0, 0.2, 4.9, 5.1] * 5, "y": ["a|x;b|y", "a|x", "b|y", "a|x;b|y"] * 5}
    run = rectify(table, candidates="y", separator=";").decide(
        {"id": ["0", "3"], "decision": ["other", "none"], "label": ["b|y", ""]}
    )
    saved = run.save(tmp_path / "run")
    again = rectify(table, candidates="y", separator=";").decide(saved / "decisions.csv")
    assert again.labels["label"][0] == "b|y"


@pytest.mark.filterwarnings("ignore::appellate.NoteWarning")
def test_a_run_reports_the_lines_that_it_skipped(tmp_path):
    pytest.importorskip("pyarrow"), pytest.importorskip("skrub")
    from appellate import rectify

    table = {"n": list("abcdefghij"), "w": [0.0, 5.0] * 5, "y": ["a|b", "b"] * 5}
    (tmp_path / "d.csv").write_text("id,decision,label\na,accept,a\nb,acept,b\n")
    run = rectify(table, candidates="y", id="n", decisions=tmp_path / "d.csv")
    assert [note for note in run.scores["notes"] if "Line 3 has the decision 'acept'" in note]
