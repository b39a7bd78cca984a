"""``appellate demo``: what it prints, writes, and leaves behind."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from appellate import SUREClassifier, plotting
from appellate.cli import demo, show
from appellate.cli.app import run
from appellate.cli.digits import Comparison, Score

COLUMNS = [
    "id",
    "candidates",
    "n_candidates",
    "verdict",
    "appeal",
    "outcome",
    "verdict_confidence",
    "appeal_confidence",
    "margin",
    "round",
    "truth",
    "verdict_correct",
    "appeal_correct",
]


def test_the_table_has_both_bases_alone_and_coupled(ran, comparisons):
    assert ran.code == 0
    assert "candidate with probability 0.7: 7.3 candidates of 10" in ran.out
    for comparison in comparisons.values():
        for row in comparison.rows():
            numbers = [row[name] for name in list(show._NUMBERS)[:-1]]
            cells = ["-" if number is None else f"{number:.3f}" for number in numbers]
            assert re.search(r" *".join([re.escape(row["classifier"]), *cells]), ran.out)


def test_it_fits_80_columns_of_plain_text(ran):
    assert "\x1b" not in ran.out
    shown, _ = ran.out.split("wrote ", 1)
    assert max(map(len, shown.splitlines())) <= 80


def test_progress_goes_to_the_standard_error_line_by_line(ran):
    lines = ran.err.splitlines()
    assert [line.split()[0] for line in lines] == [f"[{i}/6]" for i in range(1, 7)]
    assert "SURE with its partner" in ran.err


def test_the_most_confident_appeals_are_shown_right_or_wrong(ran, comparisons, data):
    model = comparisons["PL-KNN"].model
    docket = model.docket(ids=data.ids, output="dict")
    overturned = np.flatnonzero(docket["outcome"] == "overturned")
    best = overturned[np.argsort(-docket["margin"][overturned], kind="stable")][:5]
    assert re.findall(r"sample (\d+)", ran.out) == [str(i) for i in data.ids[best]]
    assert len(re.findall("verdict [0-9] 0", ran.out)) == 5
    assert "with the largest margin" in ran.out
    assert "%%" in ran.out  # a picture


def test_the_docket_is_written_in_full(ran, comparisons, data):
    with (ran.folder / "docket.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == COLUMNS
    assert [int(row["id"]) for row in rows] == data.ids.tolist()
    model = comparisons["PL-KNN"].model
    assert [int(row["appeal"]) for row in rows] == model.transduction_.tolist()
    assert {row["outcome"] for row in rows} == {"upheld", "overturned"}
    assert all(str(row["truth"]) in row["candidates"].split("|") for row in rows)


def test_the_figure_opens(ran):
    with Image.open(ran.folder / "trajectories.png") as image:
        image.verify()
        assert image.format == "PNG"
        assert min(image.size) > 500


def test_nothing_else_is_written_and_all_is_named(ran):
    assert sorted(p.name for p in ran.folder.iterdir()) == ["docket.csv", "trajectories.png"]
    for name in ("docket.csv", "trajectories.png"):
        assert f"wrote {ran.folder / name}" in ran.out
    assert "model.docket()" in ran.out


def test_the_lines_to_type_next_are_right():
    X, candidates = [[0.0], [0.1], [5.0], [5.1]], ["cat|dog", "cat", "dog", "cat|dog"]
    scope = {"X": X, "candidates": candidates}
    exec(show._NEXT, scope)
    assert len(show._NEXT.splitlines()) == 4
    assert scope["model"].transduction_.tolist() == ["cat", "cat", "dog", "dog"]


@pytest.mark.usefixtures("trained")
def test_json_is_all_there_is_on_the_standard_output(tmp_path, capsys, comparisons):
    assert run(["demo", "--json", "--out", str(tmp_path)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["classifier"] for row in document["table"]] == [
        "PL-KNN",
        "PL-KNN-PLCP",
        "SURE",
        "SURE-PLCP",
    ]
    base, coupled = document["table"][2:]
    assert base["correction_ratio"] is None
    assert coupled["correction_ratio"] == comparisons["SURE"].correction_ratio
    assert coupled["seconds"] > 0
    assert document["setting"]["flip_probability"] == 0.7
    assert document["setting"]["n_train"] == 898
    assert document["files"] == {
        "docket": str(tmp_path / "docket.csv"),
        "trajectories": str(tmp_path / "trajectories.png"),
    }


@pytest.mark.usefixtures("trained")
def test_another_base_and_files_replaced(tmp_path, capsys, comparisons):
    for name in ("docket.csv", "mine.txt"):
        (tmp_path / name).write_text("old")
    assert run(["demo", "--base", "pl-knn", "--out", str(tmp_path)]) == 0
    assert "Overturned verdicts of PL-KNN: the 5" in capsys.readouterr().out
    with (tmp_path / "docket.csv").open(encoding="utf-8", newline="") as file:
        appeals = [int(row["appeal"]) for row in csv.DictReader(file)]
    assert appeals == comparisons["PL-KNN"].model.transduction_.tolist()
    assert (tmp_path / "mine.txt").read_text() == "old"


@pytest.mark.usefixtures("trained")
def test_without_matplotlib_the_docket_is_still_written(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run(["demo", "--json", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert "trajectories.png is not written" in said.err
    assert "appellate[plot]" in said.err
    assert list(json.loads(said.out)["files"]) == ["docket"]
    assert [path.name for path in tmp_path.iterdir()] == ["docket.csv"]


def test_a_folder_that_cannot_be_is_refused_before_training(tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        assert run(["demo", "--out", str(folder)]) == 2
        said = capsys.readouterr()
        assert "is a file, not a folder" in said.err
        assert "[1/6]" not in said.err
        assert "Traceback" not in said.err
    assert (tmp_path / "file").read_text() == "mine"


def test_an_interrupted_fit_leaves_nothing(tmp_path, capsys, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(SUREClassifier, "_solve", interrupt)
    assert run(["demo", "--out", str(tmp_path / "out")]) == 130
    said = capsys.readouterr()
    assert said.err.splitlines()[-1] == "interrupted"
    assert "Traceback" not in said.err
    assert not said.out
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("trained")
def test_interrupted_writing_leaves_what_was_there(tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(plotting, "save_trajectories", interrupt)
    (tmp_path / "docket.csv").write_text("old")
    for folder in (tmp_path, tmp_path / "new"):
        assert run(["demo", "--out", str(folder)]) == 130
    assert [path.name for path in tmp_path.iterdir()] == ["docket.csv"]
    assert (tmp_path / "docket.csv").read_text() == "old"


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT for a child process on Windows")
def test_control_c(tmp_path):
    code = (  # the handler, because a job in the background inherits that SIGINT is ignored
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from appellate.cli import main; main()"
    )
    command = [sys.executable, "-c", code, "demo", "--out", str(tmp_path / "out")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        for line in process.stderr:
            if line.startswith("[2/6]"):
                break
        process.send_signal(signal.SIGINT)
        said, complained = process.communicate(timeout=60)
    assert process.returncode == 130
    assert complained.splitlines()[-1] == "interrupted"
    assert "Traceback" not in complained
    assert not said
    assert not list(tmp_path.iterdir())


def test_a_terminal_with_colours_gets_half_blocks(comparisons, data):
    file = io.TextIOWrapper(io.BytesIO(), "utf-8")
    console = Console(file=file, force_terminal=True, color_system="truecolor", width=80)
    show.show_appeals(console, "SURE", comparisons["PL-KNN"].model, data, np.arange(3))
    file.seek(0)
    said = file.read()
    assert "\N{UPPER HALF BLOCK}" in said
    assert "\x1b[38;2;" in said


def test_without_appeals_it_says_so(comparisons, data):
    console = Console(file=io.StringIO(), width=80)
    none = np.empty(0, dtype=int)
    show.show_appeals(console, "SURE", comparisons["PL-KNN"].model, data, none)
    assert "No verdict of SURE was overturned" in console.file.getvalue()


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [(0.9, 0.8, "lower than"), (0.8, 0.9, "higher than"), (0.9, 0.9, "as high as")],
)
def test_the_summary_tells_good_and_bad(before, after, words):
    comparison = Comparison(
        "X", None, Score(before, 1, 1), Score(after, 1, 1), None, 0.5, 9, corrected=4, broken=3
    )
    assert show.summary(comparison, 20) == (
        "X: 9 of 20 verdicts overturned: 4 rectified, 3 broken, 2 wrong before and after. "
        f"Test accuracy {words} alone."
    )


def test_four_rows_are_drawn_however_few_were_overturned():
    docket = {
        "outcome": np.array(["upheld", "overturned", "upheld", "upheld", "upheld"], dtype=object),
        "n_candidates": np.array([1, 2, 3, 2, 1]),
        "margin": np.array([1, 0.2, 0.5, 0.1, 1]),
    }
    assert demo._rows_to_draw(docket).tolist() == [1, 3, 2, 0]
