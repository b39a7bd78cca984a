"""``appellate demo``: a table with pictures, rectified as any other."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import sklearn.datasets
from PIL import Image

import appellate
from appellate.cli.app import run
from appellate.cli.demo import _png
from appellate.tables import read_table

FILES = {"docket.html", "docket.csv", "rectified.csv", "suggested.csv", "model", "run.json"}


def test_it_ends_with_labels_a_model_and_a_page(ran):
    assert ran.code == 0
    assert [line.split()[0] for line in ran.err.splitlines()] == [f"[{i}/3]" for i in (1, 2, 3)]
    assert "898 handwritten digits" in ran.out
    (result,) = [line for line in ran.out.splitlines() if line.startswith("result")]
    assert re.fullmatch(r"result      9\d\.\d% of 898 labels are correct\.", result)
    accuracy = {name: float(value) for value, name in re.findall(r"accuracy +(\S+) (.+)", ran.out)}
    assert accuracy["random candidate (baseline)"] < 0.2
    assert accuracy["Appellate"] > 0.95
    assert accuracy["Appellate"] > accuracy["first round (baseline)"]
    assert float(re.search(r"model is ([\d.]+)% accurate", ran.out)[1]) > 93
    assert f"open {ran.folder / 'docket.html'}" in ran.out
    assert {path.name for path in ran.folder.iterdir()} >= FILES


def test_the_table_is_what_it_says(ran):
    table = read_table(ran.folder / "digits.csv")
    assert len(table) == 898
    labels, truth = (table.data.column(name).to_pylist() for name in ("labels", "truth"))
    assert all(t in cell.split("|") for t, cell in zip(truth, labels, strict=True))
    assert sum(cell.count("|") + 1 for cell in labels) / 898 == pytest.approx(7.3, abs=0.2)
    images = table.data.column("image").to_pylist()
    digits = sklearn.datasets.load_digits()
    for name, label in list(zip(images, truth, strict=True))[::100]:
        number = int(name.removeprefix("pictures/").removesuffix(".png"))
        assert str(digits.target[number]) == label
        with Image.open(ran.folder / name) as picture:
            assert (picture.format, picture.size, picture.mode) == ("PNG", (48, 48), "L")
    assert images[0] in (ran.folder / "docket.html").read_text(encoding="utf-8")


def test_the_run_can_be_loaded_and_its_commands_typed(ran, tmp_path, monkeypatch):
    labels = appellate.load(ran.folder).labels
    assert labels["label"].astype(str).tolist() != labels["labels"].tolist()
    commands = re.findall(r"^    appellate (predict .*|check .*)$", ran.out, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        assert run(command.split()) == 0


def test_json_is_all_there_is_on_the_standard_output(tmp_path, capsys, monkeypatch):
    few = partial(sklearn.datasets.load_digits, n_class=3)
    monkeypatch.setattr(sklearn.datasets, "load_digits", few)
    (tmp_path / "mine.txt").write_text("old")
    command = ["demo", "--json", "--out", str(tmp_path), "--flip", "0.5", "--random-state", "2"]
    assert run(command) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["setting"] == {"random_state": 2, "flip_probability": 0.5}
    assert document["scores"]["accuracy"]["rectified"] > 0.95
    assert document["test_accuracy"] > 0.95
    assert (tmp_path / "mine.txt").read_text() == "old"


def test_a_folder_that_cannot_be_is_refused_before_the_work(tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        assert run(["demo", "--out", str(folder)]) == 2
        said = capsys.readouterr()
        assert "a file is where a folder would have to be" in said.err
        assert "[1/3]" not in said.err
    assert (tmp_path / "file").read_text() == "mine"


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
            if line.startswith("[2/3]"):
                break
        process.send_signal(signal.SIGINT)
        said, complained = process.communicate(timeout=60)
    assert process.returncode == 130
    assert complained.splitlines()[-1] == "interrupted"
    assert "Traceback" not in complained
    assert not said
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "digits.csv",
        "new.csv",
        "pictures",
    }


def test_pictures_are_what_they_were(tmp_path):
    grey = np.linspace(0, 1, 20).reshape(4, 5)
    (tmp_path / "p.png").write_bytes(_png(grey))
    with Image.open(tmp_path / "p.png") as picture:
        assert np.array_equal(np.asarray(picture), np.round(255 * grey))


def test_the_site_gets_the_review_page_as_one_file(ran, tmp_path):
    pytest.importorskip("jinja2")
    from appellate.review.page import read_page

    docs = Path(__file__).parents[2] / "docs"
    spec = importlib.util.spec_from_file_location("demo_page", docs / "_ext" / "demo_page.py")
    demo_page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo_page)
    before = read_page(ran.folder / "docket.html")
    after = read_page(demo_page.inline_images(ran.folder, tmp_path / demo_page.PAGE))
    head, *rest = (image.partition(",") for image in after["images"])
    assert len(rest) + 1 == len(before["images"])
    assert head[0] == "data:image/png;base64"
    assert base64.b64decode(head[2]) == (ran.folder / before["images"][0]).read_bytes()
    assert {name: value for name, value in after.items() if name != "images"} == {
        name: value for name, value in before.items() if name != "images"
    }
    assert f"{{button-link}} {demo_page.PAGE}" in (docs / "index.md").read_text(encoding="utf-8")
