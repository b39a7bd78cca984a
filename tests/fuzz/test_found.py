"""What hostile cases found once: one test each."""

from __future__ import annotations

import json

import numpy as np
import pytest

from appellate.cli.app import run
from appellate.rectification.prediction import label_rows
from appellate.tables import read_table
from tests.cli.tables import write_table
from tests.fuzz.trials import RAW, Trials

SAFE = ["--candidates", "labels", "--method", "plcp", "--base", "knn"]


def npz(path):
    np.savez_compressed(path.with_suffix(".npz"), X=np.ones((60, 2)))
    path.with_suffix(".npz").replace(path)


def cut_npz(path):
    npz(path)
    path.write_bytes(path.read_bytes()[:-9])


def broken_header(path):
    np.save(path, np.ones((60, 2)))
    path.write_bytes(path.read_bytes().replace(b"(60, 2)", b"((((((("))


def large(path):
    np.save(path, np.full((60, 2), 1e160))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (npz, "it holds several arrays"),
        (cut_npz, "is not a NumPy file"),
        (broken_header, "is not a NumPy file"),
        (large, "numbers too large to compute with"),
    ],
)
def test_embeddings_that_cannot_be_used(make, message, tmp_path, capsys):
    write_table(tmp_path / "t.csv")
    make(tmp_path / "x.npy")
    arguments = ["rectify", str(tmp_path / "t.csv"), *SAFE, "--out", str(tmp_path / "o")]
    assert run([*arguments, "--embeddings", str(tmp_path / "x.npy")]) == 2
    assert message in capsys.readouterr().err


def test_json_prints_nothing_raw(tmp_path, capsys):
    write_table(tmp_path / "t.csv", ids=[f"\u202e{i}\x9b" for i in range(60)])
    arguments = ["rectify", str(tmp_path / "t.csv"), *SAFE, "--id", "item", "--json"]
    assert run([*arguments, "--out", str(tmp_path / "o")]) == 0
    printed = capsys.readouterr().out
    assert not RAW.search(printed)
    assert json.loads(printed)["settings"]["audit"][0][0] == "\u202e"


@pytest.mark.parametrize(
    "meta",
    [{"features": 7}, {"features": [7]}, {"roles": []}, {"n_embeddings": "x"},
     {"features": [{"name": "x", "kind": "number", "categories": 7}]}],
)  # fmt: skip
def test_a_model_whose_description_is_damaged(meta, tmp_path, capsys):
    with Trials(tmp_path) as trials:
        folder = trials._whole_model()
    path = folder / "meta.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | meta))
    assert run(["predict", str(folder), str(tmp_path / "small.csv")]) == 2
    assert "does not say what its columns are" in capsys.readouterr().err


def test_a_model_whose_parts_do_not_work():
    class Broken(list):
        def __getitem__(self, place):
            raise AttributeError("no part")

    known = {"roles": {"features": ["x"], "text": [], "missing": []}, "n_embeddings": 0}
    known["features"] = [{"name": "x", "kind": "number"}]
    with pytest.raises(ValueError, match=r"the model does not work \(AttributeError: no part\)"):
        label_rows(Broken(), known, read_table({"x": [1.0, 2.0]}), {})
