"""A user's own table as arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from appellate import PLKNNClassifier, as_candidates
from appellate.datasets import load_partial_csv
from appellate.tables import TableError, make_encoder, write_table

FACES = """\
width,height,candidates,truth,file
1.5,2,anna|bob,bob,a.png
0.5,-3e2,carl,carl,b.png
2,0, anna | carl ,anna,c.png
"""
MATRIX = [[1, 1, 0], [0, 0, 1], [1, 0, 1]]


@pytest.fixture
def write(tmp_path):
    def write(text, name="own.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return path

    return write


def test_read_in_full(write):
    data = load_partial_csv(write(FACES), id="file")
    assert data.X.tolist() == [[1.5, 2], [0.5, -300], [2, 0]]
    assert data.candidates.astype(int).tolist() == MATRIX
    assert data.class_names.tolist() == ["anna", "bob", "carl"]
    assert data.y_true.tolist() == [1, 2, 0]
    assert data.feature_names == ["width", "height"]
    assert data.ids.tolist() == ["a.png", "b.png", "c.png"]
    assert data.roles.truth == "truth"
    assert data.filename.endswith("own.csv")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\n", "\r\n"),
        (",", ";"),
        (",", "\t"),
        ("anna|bob", '"anna|bob"'),
        ("\n0.5", "\n\n0.5"),
        ("width", "\ufeffwidth"),
        ("height", " height "),
    ],
)
def test_dialects(write, old, new):
    data = load_partial_csv(write(FACES.replace(old, new)), id="file")
    assert data.candidates.astype(int).tolist() == MATRIX
    assert data.X[1].tolist() == [0.5, -300]
    assert data.feature_names == ["width", "height"]


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "tsv"])
def test_other_formats_and_frames(write, tmp_path, ending):
    columns = {"x": [1.5, 2.5], "names": ["a|b", "b"]}
    path = write_table(columns, tmp_path / f"t.{ending}")
    for source in (path, columns):
        assert load_partial_csv(source).candidates.tolist() == [[True, True], [False, True]]


@given(number=st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_read_to_the_last_bit(tmp_path_factory, number):
    path = tmp_path_factory.mktemp("n") / "own.csv"
    path.write_text(f"x,candidates\n{number!r},a|b\n")
    assert load_partial_csv(path, features="x").X[0, 0] == number


def test_empty_cells_and_categories(write):
    path = write("x,z,site,candidates\n1,,n,a|b\n,2,s,b\n3,4,n,a\n")
    X = load_partial_csv(path, features="x,z").X
    assert np.isnan(X).tolist() == [[False, True], [True, False], [False, False]]
    data = load_partial_csv(path)
    assert data.X is data.frame
    assert data.X["site"].tolist() == ["n", "s", "n"]
    encoded = make_encoder(data.X, text=data.text).fit_transform(data.X)
    assert np.isfinite(encoded).all()


def test_several_columns_of_0_and_1(write):
    text = "x,cat,dog,cow,truth\n1,1,0,1,cow\n2,0,1,0,dog\n"
    data = load_partial_csv(write(text), candidates=["cow", "dog", "cat"], truth="truth")
    assert data.class_names.tolist() == ["cow", "dog", "cat"]
    assert data.candidates.astype(int).tolist() == [[1, 0, 1], [0, 1, 0]]
    assert data.y_true.tolist() == [0, 1]


def test_answers_of_people(write):
    text = "x,ann,ben,cid\n1,cat,cat,dog\n2,dog,,-1\n"
    data = load_partial_csv(write(text), annotators="ann,ben,cid", missing="-1")
    assert data.candidates.astype(int).tolist() == [[1, 1], [0, 1]]
    assert data.counts.tolist() == [[2, 1], [0, 1]]
    text = "item,x,label,who\nu,1,cat,ann\nu,1,dog,ben\nv,2,dog,ann\n"
    data = load_partial_csv(write(text), long="item,label,who")
    assert data.candidates.astype(int).tolist() == [[1, 1], [0, 1]]
    assert data.X.tolist() == [[1], [2]]
    assert data.ids.tolist() == ["u", "v"]


def test_truths_that_are_no_candidates_or_not_known(write):
    data = load_partial_csv(write("x,candidates,truth\n1,10|9,9\n2,9,2\n3,10,\n"), truth="truth")
    assert data.class_names.tolist() == ["2", "9", "10"]
    assert data.y_true.tolist() == [1, 0, -1]
    assert data.candidates.astype(int).tolist() == [[0, 1, 1], [0, 1, 0], [0, 0, 1]]


def test_tuples_and_names_for_fitting(write):
    path = write(FACES)
    X, candidates, y_true = load_partial_csv(path, return_X_candidates_y=True)
    assert (X.shape, candidates.shape, y_true.shape) == ((3, 2), (3, 3), (3,))
    data = load_partial_csv(path)
    sets = as_candidates(data.candidates, classes=data.class_names)
    model = PLKNNClassifier(n_neighbors=1).fit(data.X, sets)
    assert set(model.predict(data.X)) <= {"anna", "bob", "carl"}


def test_latin_letters(write):
    path = write("x,candidates\n1,Jörg|Zoë\n2,Zoë\n", encoding="latin-1")
    for options in ({}, {"encoding": "latin-1"}):
        assert load_partial_csv(path, **options).class_names.tolist() == ["Jörg", "Zoë"]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("x,candidates\n1,a\n2,\n", {}, "no label in row 1"),
        ("x,candidates\ninf,a|b\n2,b\n", {}, "infinite"),
        ("x,candidate\n1,a\n", {"candidates": "candidates"}, "Did you mean 'candidate'"),
        ("x,candidates\n1,a\n", {"truth": "gold"}, r"no column 'gold' \(truth\)"),
        ("candidates\na|b\nb\n", {}, "no column to learn from"),
        ("x,candidates\n1,a\n", {"delimiter": "::"}, "'::'"),
    ],
)
def test_what_is_wrong_is_said(write, text, options, message):
    with pytest.raises(TableError, match=message):
        load_partial_csv(write(text), **options)


def test_labels_are_features_only_by_name(write):
    rows = ["1,1|2,2", "2,1|3,1", "3,3,3", "4,2,2"]
    path = write("\n".join(["x,candidates,kind", *rows * 3]))
    assert load_partial_csv(path).feature_names == ["x"]
    assert load_partial_csv(path, truth="kind").y_true is not None
    assert load_partial_csv(path, features=["x", "kind"]).feature_names == ["x", "kind"]


def test_a_file_without_a_header_has_numbered_columns(write):
    file = write("1.5,anna|bob\n0.5,bob\n")
    own = load_partial_csv(file, candidates="1", header="none")
    assert own.feature_names == ["0"]
    assert own.X.ravel().tolist() == [1.5, 0.5]
