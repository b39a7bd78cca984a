"""Exports of labelling tools: in with their ids, out as suggestions that the tools import."""

from __future__ import annotations

import csv
import io
import json
import os
from importlib.util import find_spec

import pyarrow as pa
import pytest

import appellate
from appellate.cli.app import run as main
from appellate.tables import Table, TableError, find_roles, read_table, write_table
from appellate.tables.tools import TOOLS, find_tool, name_classes, open_export, write_suggestions


def choice(label, question="mood", kind="choices"):
    value = {"choices": [label]} if kind == "choices" else {"rating": label}
    return {
        "id": "Dx_aB91ISN",
        "from_name": question,
        "to_name": "text",
        "type": kind,
        "value": value,
    }


def label_studio():
    annotations = [
        {"id": 1, "completed_by": 10, "was_cancelled": False, "result": [choice("good")]},
        {
            "id": 2,
            "completed_by": {"id": 11, "email": "ben@example.org"},
            "was_cancelled": False,
            "result": [choice("bad"), choice("short", "length")],
        },
        {"id": 3, "completed_by": 12, "was_cancelled": True, "result": [choice("bad")]},
    ]
    first = {
        "id": 101,
        "project": 83,
        "created_at": "2024-03-09T21:52:49.513742Z",
        "data": {"text": "Yes!", "stars": 4, "tokens": ["Yes", "!"]},
        "annotations": annotations,
        "predictions": [],
    }
    second = {"id": 102, "data": {"text": "No."}, "annotations": [], "predictions": []}
    return [first, second]


def argilla():
    return [
        {
            "id": "r1",
            "fields": {"text": "Yes!"},
            "metadata": {"stars": 4},
            "suggestions": {"mood": {"value": "bad", "score": 0.5, "agent": "old"}},
            "responses": {
                "mood": [
                    {"value": "good", "user_id": "u1"},
                    {"value": "bad", "user_id": "u2"},
                    {"value": "bad", "user_id": "u3", "status": "discarded"},
                ],
                "comment": [{"value": "hm", "user_id": "u1"}],
            },
            "vectors": {"bert": [0.5, 1.5]},
            "status": "completed",
            "_server_id": "5f3e",
        },
        {"id": "r2", "fields": {"text": "No."}, "responses": {}, "suggestions": {}},
    ]


def prodigy():
    options = [{"id": "good", "text": "Good"}, {"id": "bad", "text": "Bad"}]

    def line(text, number, accept, who, answer="accept"):
        return {
            "text": text,
            "options": options,
            "accept": accept,
            "answer": answer,
            "meta": {"source": "post"},
            "_input_hash": number,
            "_task_hash": -number,
            "_view_id": "choice",
            "_session_id": f"set-{who}",
            "_annotator_id": f"set-{who}",
            "_timestamp": 1700000000,
        }

    return [
        line("Yes!", 17, ["good"], "ann"),
        line("Yes!", 17, ["bad"], "ben"),
        line("No.", 18, ["bad"], "ann"),
        line("No.", 18, [], "ben", "ignore"),
    ]


def doccano():
    return [
        {"id": 1, "text": "Yes!", "label": ["good", "bad"], "Comments": ["hm"]},
        {"id": 2, "text": "No.", "label": [], "Comments": []},
    ]


EXPORTS = {
    "label-studio": label_studio,
    "argilla": argilla,
    "prodigy": prodigy,
    "doccano": doccano,
}


@pytest.mark.parametrize("tool", EXPORTS)
def test_a_tool_is_known_by_its_records(tool):
    assert find_tool(EXPORTS[tool]()) == tool


def test_other_records_are_of_no_tool():
    assert find_tool([]) is None
    assert find_tool([{"x": 1.0, "label": "a"}]) is None
    assert find_tool([*label_studio(), "no record"]) is None
    assert find_tool([{"id": 1, "text": "a", "label": ["x"], "size": 3}]) is None  # a plain table


def test_label_studio():
    export = open_export(label_studio(), "label-studio")
    assert export.columns == {
        "task": ["101", "101", "102"],
        "label": ["good", "bad", None],
        "worker": ["10", "ben@example.org", None],
        "text": ["Yes!", "Yes!", "No."],
        "stars": [4, 4, None],
    }
    assert export.roles == {"long": ("task", "label", "worker")}
    assert export.question == "mood"
    assert "'length'" in export.notes[1]
    assert open_export(label_studio(), "label-studio", question="length").columns["label"] == [
        "short",
        None,
    ]
    with pytest.raises(TableError, match="no question 'size', but 'mood'"):
        open_export(label_studio(), "label-studio", question="size")


def test_label_studio_and_back():
    export = open_export(label_studio(), "label-studio")
    text = write_suggestions(
        "label-studio", ["101", "102"], ["good", None], [0.87654321, None], ["bad", "good"],
        items=export.items, question=export.question,
    )  # fmt: skip
    first, second = json.loads(text)
    assert first["id"] == 101
    assert first["data"] == label_studio()[0]["data"]
    assert first["predictions"] == [
        {
            "model_version": "appellate",
            "score": 0.876543,
            "result": [
                {
                    "from_name": "mood",
                    "to_name": "text",
                    "type": "choices",
                    "value": {"choices": ["good"]},
                }
            ],
        }
    ]
    assert "annotations" not in first
    assert second["predictions"][0]["result"] == []
    # The tool's next export, with the reviewer's answer to our prediction, is read again.
    first["annotations"] = [{"completed_by": 10, "result": first["predictions"][0]["result"]}]
    again = open_export([first, {**second, "annotations": []}], "label-studio")
    assert again.columns["label"] == ["good", None]


def test_label_studio_ratings():
    task = {"id": 1, "data": {"text": "x"}}
    task["annotations"] = [{"completed_by": 1, "result": [choice(4, "stars", "rating")]}]
    export = open_export([task], "label-studio")
    assert export.columns["label"] == ["4"]
    (made,) = json.loads(
        write_suggestions(
            "label-studio", ["1"], ["5"], [0.5], ["4", "5"], items=export.items, question="stars"
        )
    )
    (result,) = made["predictions"][0]["result"]
    assert result["type"] == "rating"
    assert result["value"] == {"rating": 5}


def test_argilla_and_back():
    export = open_export(argilla(), "argilla")
    assert export.columns == {
        "task": ["r1", "r1", "r2"],
        "label": ["good", "bad", None],
        "worker": ["u1", "u2", None],
        "bert": [[0.5, 1.5], [0.5, 1.5], None],
        "stars": [4, 4, None],
        "text": ["Yes!", "Yes!", "No."],
    }
    made = json.loads(
        write_suggestions(
            "argilla",
            ["r1", "r2"],
            ["good", "bad"],
            [0.9, 0.6],
            ["bad", "good"],
            items=export.items,
            question=export.question,
        )
    )
    assert [record["id"] for record in made] == ["r1", "r2"]
    assert made[0]["suggestions"] == {
        "mood": {"value": "good", "score": 0.9, "agent": "appellate"}
    }
    assert made[0]["fields"] == {"text": "Yes!"}
    assert made[0]["vectors"] == {"bert": [0.5, 1.5]}
    assert made[0]["_server_id"] == "5f3e"
    made[1]["responses"] = {"mood": [{"value": "bad", "user_id": "u1"}]}
    assert open_export(made, "argilla").columns["label"] == [None, "bad"]


def test_prodigy_and_back():
    export = open_export(prodigy(), "prodigy")
    assert export.columns == {
        "task": ["17", "17", "18"],
        "label": ["good", "bad", "bad"],
        "worker": ["set-ann", "set-ben", "set-ann"],
        "text": ["Yes!", "Yes!", "No."],
        "source": ["post", "post", "post"],
    }
    text = write_suggestions("prodigy", ["17", "18"], ["good", "bad"], [0.9, 0.6], ["bad", "good"],
                             items=export.items)  # fmt: skip
    first, second = map(json.loads, text.splitlines())
    assert first["accept"] == ["good"]
    assert first["options"] == prodigy()[0]["options"]
    assert first["meta"] == {"source": "post", "score": 0.9}
    assert (first["_input_hash"], second["_input_hash"]) == (17, 18)
    assert not {"answer", "_task_hash", "_session_id"} & first.keys()
    again = [{**each, "answer": "accept", "_session_id": "ann"} for each in (first, second)]
    assert open_export(again, "prodigy").columns["label"] == ["good", "bad"]


def test_prodigy_that_asks_yes_or_no():
    lines = [
        {"text": "a", "label": "SPAM", "answer": "accept", "_input_hash": 1, "_session_id": "x"},
        {"text": "b", "label": "SPAM", "answer": "reject", "_input_hash": 2, "_session_id": "x"},
    ]
    export = open_export(lines, "prodigy")
    assert export.columns["label"] == ["SPAM", "not SPAM"]
    text = write_suggestions("prodigy", ["1", "2"], ["not SPAM", "SPAM"], [0.9, 0.6], ["SPAM"],
                             items=export.items)  # fmt: skip
    made = [json.loads(line) for line in text.splitlines()]
    assert [(each["label"], each["answer"]) for each in made] == [
        ("SPAM", "reject"),
        ("SPAM", "accept"),
    ]
    assert open_export(made, "prodigy").columns["label"] == [["not SPAM"], ["SPAM"]]


def test_doccano_and_back():
    export = open_export(doccano(), "doccano")
    assert export.columns == {
        "task": ["1", "2"],
        "label": [["good", "bad"], []],
        "text": ["Yes!", "No."],
    }
    assert export.roles == {"candidates": "label", "id": "task"}
    text = write_suggestions("doccano", ["1", "2"], ["good", "bad"], [0.9, 0.6], [],
                             items=export.items)  # fmt: skip
    made = [json.loads(line) for line in text.splitlines()]
    assert made[0] == {
        "id": 1,
        "text": "Yes!",
        "Comments": ["hm"],
        "label": ["good"],
        "score": 0.9,
    }
    assert find_tool(made) == "doccano"
    assert open_export(made, "doccano").columns["label"] == [["good"], ["bad"]]


def test_doccano_with_a_file_a_person():
    lines = [*doccano(), {"id": 2, "text": "No.", "label": ["bad"], "Comments": []}]
    export = open_export(lines, "doccano", people=["ann", "ann", "ben"])
    assert export.columns["worker"] == ["ann", "ann", "ben"]
    assert export.columns["label"] == ["good", "bad", "bad"]
    older = [{"doc_id": 4, "text": "a", "labels": ["x"], "username": "ann"}]
    assert find_tool(older) == "doccano"
    assert open_export(older, "doccano").columns["worker"] == ["ann"]


@pytest.mark.parametrize("tool", TOOLS)
def test_a_plain_table_goes_to_every_tool(tool):
    rows = [{"text": "=1+1", "size": 2.5, "none": None}]
    text = write_suggestions(tool, ["row 1"], ["good"], [0.75], ["bad", "good"], rows=rows)
    if tool == "crowd-kit":
        (made,) = csv.DictReader(io.StringIO(text))
        assert made == {"task": "row 1", "agg_label": "good", "score": "0.75"}
        text = write_suggestions(tool, ["=1+1"], ["a\rb"], [0.5], ["a\rb"])
        (made,) = csv.DictReader(io.StringIO(text, newline=""))
        assert made == {"task": "'=1+1", "agg_label": "a\rb", "score": "0.5"}
        return
    made = json.loads(text)
    record = made[0] if isinstance(made, list) else made
    assert "row 1" in json.dumps(record)
    assert "0.75" in text
    assert "=1+1" in text
    assert '"none"' not in text
    if tool != "doccano":  # whose import needs no more than text and label
        assert find_tool([{**record, "annotations": [], "_input_hash": 1}]) is not None


def test_what_is_wrong_is_said():
    empty = open_export([{"id": 1, "data": {"x": 2}, "annotations": []}], "label-studio")
    assert empty.roles == {}
    assert empty.columns["x"] == [2]  # predict needs no labels
    with pytest.raises(TableError, match="nobody chose a label"):
        find_roles(Table("x", pa.table(empty.columns), "json", export=empty))
    with pytest.raises(TableError, match=r"'x\.json' looks like an export of Argilla, but"):
        open_export([{"fields": {}, "responses": {"q": ["good"]}}], "argilla", source="'x.json'")
    with pytest.raises(ValueError, match="not a known labelling tool: label-studio, argilla"):
        write_suggestions("excel", [], [], [], [])


def test_titles_that_the_tool_uses_itself_keep_apart():
    task = {"id": 1, "data": {"label": "blue", "task": "t"}}
    task["annotations"] = [{"completed_by": 1, "result": [choice("good")]}]
    columns = open_export([task], "label-studio").columns
    assert list(columns) == ["_task", "_label", "worker", "label", "task"]
    assert columns["_label"] == ["good"]


def test_names_of_classes_of_a_saved_data_set(tmp_path):
    features = {
        "mood": {"names": ["bad", "good"], "_type": "ClassLabel"},
        "maybe": {"feature": {"names": ["a", "b"], "_type": "ClassLabel"}, "_type": "Sequence"},
        "x": {"dtype": "int64", "_type": "Value"},
    }
    (tmp_path / "dataset_info.json").write_text(json.dumps({"features": features}))
    data = pa.table(
        {"mood": [1, 0, None, -1], "maybe": [[0, 1], [1], [], None], "x": [1, 2, 3, 4]}
    )
    named = name_classes(data, tmp_path).to_pydict()
    assert named["mood"] == ["good", "bad", None, None]
    assert named["maybe"] == [["a", "b"], ["b"], [], None]
    assert named["x"] == [1, 2, 3, 4]
    assert name_classes(data, tmp_path / "nowhere") is data


@pytest.mark.parametrize(
    "info",
    [
        "[1]",
        "[" * 200_000,
        '{"features": {"mood": {"_type": "ClassLabel", "names": 7}}}',
        '{"features": {"mood": {"_type": "ClassLabel", "names": {"a": 1}}}}',
        '{"features": {"word": {"_type": "ClassLabel", "names": ["a"]}}}',
        '{"features": [["mood", 7]]}',
        None,
    ],
)
def test_a_damaged_description_of_a_data_set_names_no_class(tmp_path, info):
    data = pa.table({"mood": [1, 0], "word": [{"a": 1}, None]})
    place = tmp_path / "dataset_info.json"
    if info is None:
        os.mkfifo(place)  # which nobody writes to
    else:
        place.write_text(info)
    assert name_classes(data, tmp_path) is data


def write_lines(path, records):
    path.write_text("".join(json.dumps(each) + "\n" for each in records))


@pytest.mark.parametrize("tool", EXPORTS)
def test_files_of_tools_are_read_as_tables(tmp_path, tool):
    path = tmp_path / ("export.json" if tool in ("label-studio", "argilla") else "export.jsonl")
    if path.suffix == ".json":
        path.write_text(json.dumps(EXPORTS[tool]()))
    else:
        write_lines(path, EXPORTS[tool]())
    table = read_table(path)
    assert table.export.tool == tool
    assert any("read as an export of" in note for note in table.notes)
    roles = find_roles(table)
    assert roles.layout == ("candidates" if tool == "doccano" else "long")
    assert set(table.names) >= {"task", "label", "text"}
    assert "task" not in roles.features
    own = find_roles(table, candidates="text")  # what the user says counts
    assert own.candidates == ("text",)


def test_a_folder_of_doccano_has_a_file_a_person(tmp_path):
    write_lines(tmp_path / "ann.jsonl", doccano())
    write_lines(tmp_path / "ben.jsonl", [{**doccano()[0], "label": ["bad"]}])
    table = read_table(tmp_path)
    assert table.texts("worker").to_pylist() == ["ann", "ann", "ben", None]
    assert table.texts("task").to_pylist() == ["1", "1", "1", "2"]
    assert len(table.export.items) == 2


def test_crowd_kit_is_a_plain_table():
    """Its tables hold task, worker and label, in this order."""
    rows = [
        {"task": f"t{i}", "worker": f"w{j}", "label": "cat" if (i + j) % 3 else "dog"}
        for i in range(20)
        for j in range(3)
    ]
    roles = find_roles(read_table(rows))
    assert roles.long == ("task", "label", "worker")


@pytest.mark.filterwarnings("ignore")  # its own
def test_a_data_set_of_hugging_face_on_disk(tmp_path):
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {"text": datasets.Value("string"), "mood": datasets.ClassLabel(names=["bad", "good"])}
    )
    data = datasets.Dataset.from_dict({"text": ["a", "b"], "mood": [1, 0]}, features=features)
    data.save_to_disk(str(tmp_path / "saved"))
    table = read_table(tmp_path / "saved")
    assert table.texts("mood").to_pylist() == ["good", "bad"]


@pytest.mark.filterwarnings("ignore")  # its own
def test_a_run_as_a_data_set_of_hugging_face(tmp_path):
    datasets = pytest.importorskip("datasets")
    columns = {"x": [0.0, 0.1, 5.0, 5.1] * 5, "maybe": ["cat|dog", "cat", "dog", "dog"] * 5}
    run = appellate.rectify(columns, candidates="maybe")
    assert run.export(tmp_path / "set", tool="hugging-face") == tmp_path / "set"
    found = datasets.load_from_disk(str(tmp_path / "set"))
    assert found.features["label"].names == ["cat", "dog"]
    assert found.features["label"].int2str(found["label"][:4]) == ["cat", "cat", "dog", "dog"]
    assert found["x"][:4] == columns["x"][:4]
    assert min(found["score"]) > 0.5
    table = read_table(tmp_path / "set")  # and back
    assert table.texts("label").to_pylist() == run.labels["label"].tolist()
    again = run.decide({"0": "ape", "1": None}).export(tmp_path / "set", tool="hugging-face")
    found = datasets.load_from_disk(str(again))
    assert found.features["label"].names == ["cat", "dog", "ape"]
    assert found["label"][:3] == [2, None, 1]
    run.save(tmp_path / "out", tool="hugging-face")
    assert datasets.load_from_disk(str(tmp_path / "out" / "suggestions")).num_rows == 20
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "letter.txt").write_text("dear")
    with pytest.raises(TableError, match="is not a data set"):
        run.export(tmp_path / "own", tool="hugging-face")


def test_without_the_library_of_hugging_face_the_extra_is_named(tmp_path, capsys):
    if find_spec("datasets"):
        pytest.skip("datasets is installed")
    write_table({"x": [0.0, 1.0], "maybe": ["a|b", "b"]}, tmp_path / "t.csv")
    arguments = ["rectify", str(tmp_path / "t.csv"), "--tool", "hugging-face"]
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 2
    assert "needs datasets: pip install 'appellate[tools]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.filterwarnings("ignore::appellate.NoteWarning")  # but for the one that is expected
def test_one_of_several_questions(tmp_path):
    tasks = label_studio()
    tasks[1]["annotations"] = [{"completed_by": 10, "result": [choice("long", "length")]}]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    with pytest.warns(appellate.NoteWarning, match="read as an export of Label Studio"):
        run = appellate.rectify(tmp_path / "export.json", question="length")
    assert run.labels["label"].tolist() == ["short", "long"]
    run.export(tmp_path / "back.json")
    (result,) = json.loads((tmp_path / "back.json").read_text())[0]["predictions"][0]["result"]
    assert result["from_name"] == "length"
    with pytest.raises(TableError, match="asks no question 'size'"):
        read_table(tmp_path / "export.json", question="size")
    with pytest.raises(TableError, match="not an export of a labelling tool"):
        read_table({"x": [1]}, question="length")
    halves = tmp_path / "halves"
    halves.mkdir()
    for i, task in enumerate(tasks):
        (halves / f"{i}.json").write_text(json.dumps([task]))
    assert read_table(halves, question="length").texts("label").to_pylist() == ["short", "long"]


def test_the_layout_of_a_saved_data_set_without_the_library(tmp_path):
    data = pa.table({"text": ["a", "b"], "mood": [1, 0]})
    with pa.ipc.new_stream(str(tmp_path / "data-00000-of-00001.arrow"), data.schema) as stream:
        stream.write_table(data)
    features = {"mood": {"names": ["bad", "good"], "_type": "ClassLabel"}}
    (tmp_path / "dataset_info.json").write_text(json.dumps({"features": features}))
    (tmp_path / "state.json").write_text("{}")
    assert read_table(tmp_path).texts("mood").to_pylist() == ["good", "bad"]
