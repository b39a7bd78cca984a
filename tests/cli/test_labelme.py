"""LabelMe from its files to rectified labels by the commands of the guide."""

from __future__ import annotations

import json

import numpy as np
import pytest

from appellate.cli.app import run
from appellate.datasets import load_labelme
from appellate.io import load_model
from appellate.rectification.features import read_embeddings
from appellate.review.page import read_page
from tests.cli.tables import read_rows, write_rows
from tests.review.dockets import shown

pytestmark = pytest.mark.realdata
pytest.importorskip("skops")
pytest.importorskip("jinja2")

# base: verdict and appeal on the training images, base alone and coupled on the test images
GUIDE = {
    "aggd": (0.828, 0.846, 0.843, 0.844),
    "sure": (0.834, 0.844, 0.842, 0.843),
    "knn": (0.837, 0.844, 0.792, 0.847),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The tables that the guide makes."""
    home = tmp_path_factory.mktemp("labelme")
    data = load_labelme()
    names = [*data.class_names.tolist(), ""]  # -1, not asked, is the last
    rows = [
        {f"w{j}": names[a] for j, a in enumerate(row)} | {"truth": names[t]}
        for row, t in zip(data.answers.table().tolist(), data.y_true.tolist(), strict=True)
    ]
    write_rows(home / "train.csv", rows)
    write_rows(home / "test.csv", [{"truth": names[t]} for t in data.y_test.tolist()])
    np.save(home / "train.npy", data.X)
    np.save(home / "test.npy", data.X_test)
    return home, data


@pytest.mark.parametrize("base", GUIDE)
def test_figures_of_the_guide(base, files, tmp_path):
    home, data = files
    arguments = [str(home / "train.csv"), "--annotators", "w*", "--embeddings"]
    arguments += [str(home / "train.npy"), "--truth", "truth", "--base", base, "--out"]
    assert run(["rectify", *arguments, str(tmp_path / "o")]) == 0
    scores = json.loads((tmp_path / "o/run.json").read_text())["scores"]["accuracy"]
    assert scores["majority vote"] == pytest.approx(0.769, abs=0.01)
    arguments = [str(home / "test.csv"), "--embeddings", str(home / "test.npy"), "--out"]
    assert run(["predict", str(tmp_path / "o"), *arguments, str(tmp_path / "test.csv")]) == 0
    rows = read_rows(tmp_path / "test.csv")
    coupled = np.mean([r["label"] == r["truth"] for r in rows])
    pipeline = load_model(tmp_path / "o/model")
    alone = pipeline[-1].estimator.fit(
        pipeline[0].transform(read_embeddings(data.X, len(data.X))), data.candidates
    )
    found = alone.predict(pipeline[0].transform(read_embeddings(data.X_test, len(data.X_test))))
    figures = scores["base alone"], scores["rectified"], np.mean(found == data.y_test), coupled
    np.testing.assert_allclose(figures, GUIDE[base], atol=0.006)


def test_the_page_shows_the_labels_of_the_files(files, tmp_path):
    """The page once said .852 where the files said .875: it left out labels nobody gave."""
    home, _ = files
    arguments = [str(home / "train.csv"), "--annotators", "w*", "--truth", "truth"]
    arguments += ["--embeddings", str(home / "train.npy"), "--out", str(tmp_path / "o")]
    assert run(["rectify", *arguments]) == 0
    page, rows = read_page(tmp_path / "o/docket.html"), read_rows(tmp_path / "o/docket.csv")
    found = shown(page)
    for row in rows:
        label, _, outcome = found[row["id"]]
        assert (label, outcome) == (row["label"], row["outcome"])
    scores = json.loads((tmp_path / "o/run.json").read_text())["scores"]
    right = round(100 * scores["accuracy"]["rectified"], 1)
    assert page["summary"]["truth"]["appeal"] == right
    assert page["summary"]["outside"] == scores["outcomes"]["outside the answers"] > 0
