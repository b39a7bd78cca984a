"""A user's own CSV files."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from appellate import PLKNNClassifier, as_candidates
from appellate.datasets import load_partial_csv, tables, textfiles

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


@pytest.fixture(params=["python", "polars", "pandas"])
def reader(request, monkeypatch):
    """Read every file, however small, by one reader."""
    small = 0 if request.param != "python" else 2**40
    monkeypatch.setattr(textfiles, "_LARGE", small)
    real = textfiles.find_spec
    monkeypatch.setattr(
        textfiles, "find_spec", lambda name: real(name) if name == request.param else None
    )
    return request.param


def load_faces(path, **options):
    return load_partial_csv(path, truth="truth", ids="file", **options)


@pytest.mark.usefixtures("reader")
def test_read_in_full(write):
    data = load_faces(write(FACES))
    assert data.X.tolist() == [[1.5, 2], [0.5, -300], [2, 0]]
    assert data.candidates.astype(int).tolist() == MATRIX
    assert data.class_names.tolist() == ["anna", "bob", "carl"]
    assert data.y_true.tolist() == [1, 2, 0]
    assert data.feature_names == ["width", "height"]
    assert data.ids.tolist() == ["a.png", "b.png", "c.png"]
    assert data.filename.endswith("own.csv")


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("\n", "\r\n"),
        (",", ";"),
        (",", "\t"),
        ("a.png", '"a.png"'),
        ("anna|bob", '"anna|bob"'),
        ("\n0.5", "\n\n0.5"),
        ("width", "\ufeffwidth"),
        ("height", " height "),
    ],
)
def test_dialects(write, old, new):
    data = load_faces(write(FACES.replace(old, new) if old else FACES))
    assert data.candidates.astype(int).tolist() == MATRIX
    assert data.X[1].tolist() == [0.5, -300]
    assert data.feature_names == ["width", "height"]


@pytest.mark.usefixtures("reader")
def test_quoted_delimiters_quotes_and_line_breaks(write):
    text = 'x,candidates\n1,"a, b|c"\n2,"say ""c"""\n3,"two\nlines|c"\n'
    data = load_partial_csv(write(text))
    assert data.class_names.tolist() == ["a, b", "c", 'say "c"', "two\nlines"]
    assert data.candidates.sum(axis=1).tolist() == [2, 1, 2]


@pytest.mark.usefixtures("reader")
def test_words_that_libraries_take_for_missing_are_labels(write):
    data = load_partial_csv(write("x,candidates\n1,NA|None\n2,nan\n3,null\n4,True\n"))
    assert data.class_names.tolist() == ["NA", "None", "True", "nan", "null"]


@pytest.mark.usefixtures("reader")
def test_whole_numbers_are_sorted_as_numbers(write):
    data = load_partial_csv(write("x,candidates,age\n1,9|10,10\n2,2,2\n"), truth="age")
    assert data.class_names.tolist() == [2, 9, 10]
    assert data.y_true.tolist() == [2, 0]
    data = load_partial_csv(write("x,candidates\n1,01|1\n"))
    assert data.class_names.tolist() == ["01", "1"]


@pytest.mark.usefixtures("reader")
def test_empty_feature_cells(write):
    path = write("x,z,candidates\n1,,a\n,2,b\n")
    with pytest.raises(ValueError, match=r"own.csv: NaN or infinite features in rows 0, 1"):
        load_partial_csv(path)
    X = load_partial_csv(path, allow_nan=True).X
    assert np.isnan(X).tolist() == [[False, True], [True, False]]


@pytest.mark.usefixtures("reader")
@given(number=st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_read_to_the_last_bit(tmp_path_factory, number):
    path = tmp_path_factory.mktemp("n") / "own.csv"
    path.write_text(f"x,candidates\n{number!r},a\n")
    assert load_partial_csv(path).X[0, 0] == number


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_a_large_file_is_read_by_a_library(write, monkeypatch, library):
    monkeypatch.setattr(textfiles, "_LARGE", 100)
    monkeypatch.setattr(textfiles, "find_spec", lambda name: name == library)
    monkeypatch.setattr(tables, "read_columns", None)
    path = write("x,z,candidates\n" + "1.5,2,a|b\n" * 1000)
    assert load_partial_csv(path).X.tolist() == [[1.5, 2]] * 1000


def test_several_columns_of_0_and_1(write):
    text = "x,cat,dog,cow,truth\n1,1,0,1,cow\n2,0,1,0,dog\n"
    data = load_partial_csv(write(text), candidates=["cow", "dog", "cat"], truth="truth")
    assert data.class_names.tolist() == ["cow", "dog", "cat"]
    assert data.candidates.astype(int).tolist() == [[1, 0, 1], [0, 1, 0]]
    assert data.y_true.tolist() == [0, 1]


def test_answers_of_people(write):
    text = "x,ann,ben,cid\n1,cat,cat,dog\n2,dog,,-1\n"
    people = {"candidates": ["ann", "ben", "cid"], "layout": "annotators", "missing": -1}
    data = load_partial_csv(write(text), **people)
    assert data.candidates.astype(int).tolist() == [[1, 1], [0, 1]]
    data = load_partial_csv(write(text), rule="share:0.6", **people)
    assert data.candidates.astype(int).tolist() == [[1, 0], [0, 1]]


def test_other_separators_labels_and_classes(write):
    path = write("x,names\n1,a;b\n2,c|d\n")
    data = load_partial_csv(
        path, candidates="names", separator=";", classes=["c|d", "b", "a", "z"]
    )
    assert data.candidates.astype(int).tolist() == [[0, 1, 1, 0], [1, 0, 0, 0]]
    data = load_partial_csv(path, candidates="names", layout="labels")
    assert data.class_names.tolist() == ["a;b", "c|d"]
    path = write("x,candidates,truth\n1,1|2,3\n")
    data = load_partial_csv(path, classes=[1, 2, 3], truth="truth", noisy=True)
    assert data.class_names.tolist() == [1, 2, 3]
    assert data.y_true.tolist() == [2]


def test_some_features_only(write):
    path = write(FACES)
    data = load_partial_csv(path, features=["height"])
    assert data.X.tolist() == [[2], [-300], [0]]
    data = load_partial_csv(path, ignore=["file", "truth"])
    assert data.feature_names == ["width", "height"]
    assert data.y_true is None
    assert data.ids is None


def test_noise_is_refused_unless_it_is_meant(write):
    path = write("x,candidates,truth\n1,a|b,a\n2,a,c\n3,b,a\n")
    with pytest.raises(ValueError, match=r"no candidate in row 1, for instance 'c'.*noisy=True"):
        load_partial_csv(path, truth="truth")
    data = load_partial_csv(path, truth="truth", noisy=True)
    assert data.class_names.tolist() == ["a", "b", "c"]
    assert data.y_true.tolist() == [0, 2, 0]
    path = write("x,candidates,truth\n1,a|b,a\n2,a,b\n")
    with pytest.raises(ValueError, match=r"no candidate in 1 of 2 rows \(row 1\)"):
        load_partial_csv(path, truth="truth")


def test_tuples_and_names_for_fitting(write):
    path = write(FACES)
    X, candidates, y_true = load_faces(path, return_X_candidates_y=True)
    assert (X.shape, candidates.shape, y_true.shape) == ((3, 2), (3, 3), (3,))
    data = load_faces(path)
    sets = as_candidates(data.candidates, classes=data.class_names)
    model = PLKNNClassifier(n_neighbors=1).fit(data.X, sets)
    assert set(model.predict(data.X)) <= {"anna", "bob", "carl"}


def test_latin_letters(write):
    path = write("x,candidates\n1,Jörg|Zoë\n", encoding="latin-1")
    with pytest.raises(ValueError, match=r"no text in utf-8.*'latin-1'"):
        load_partial_csv(path)
    data = load_partial_csv(path, encoding="latin-1")
    assert data.class_names.tolist() == ["Jörg", "Zoë"]


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "own.csv' is empty"),
        ("x,candidates\n", {}, "has a header, but no rows"),
        ("x,candidates\n1,a\n2\n", {}, "line 3: 1 cells, but the header has 2. The line is cut"),
        ("x,candidates\n1,a\n2,b,c\n", {}, "line 3: 3 cells"),
        ("x,candidates\n1,a,b\n2,b,c\n", {}, "line 2: 3 cells"),
        ('x,candidates\n1,"a\n2,b\n', {}, "is no delimited text: unexpected end of data"),
        ("x,x,candidates\n1,2,a\n", {}, "title 'x' more than once"),
        ("x,,candidates\n1,2,a\n", {}, "a column without title"),
        ("x,candidates\nwide,a\n", {}, "column 'x' holds 'wide' in row 0, which is no number"),
        ("x,candidates\n1,a\nTrue,a\n", {}, "holds 'True' in row 1"),
        ("x,candidates\nTrue,a\nFalse,a\n", {}, "holds 'True' in row 0"),
        ("x,candidates\ninf,a\n", {}, "infinite features in row 0"),
        ("x,candidates\n1,\n", {}, "own.csv: row 0: no candidate"),
        ("x,candidates\n1,a||b\n", {}, "own.csv: row 0: an empty label"),
        ("x,candidate\n1,a\n", {}, r"no column 'candidates'. Did you mean 'candidate'\?"),
        ("x,candidates\n1,a\n", {"truth": "gold"}, "no column 'gold'. Its columns are x, candid"),
        ("x,candidates\n1,a\n", {"features": []}, "no column left for features"),
        ("candidates\na\n", {}, "no column left for features"),
        ("x,candidates,t\n1,a,\n", {"truth": "t"}, "no truth in row 0"),
        ("x,candidates\n1,a\n", {"classes": ["b"]}, "unknown class 'a'"),
        ("x,candidates,t\n1,a,b\n", {"classes": ["a"], "truth": "t"}, "Add it to `classes`"),
        ("x,candidates\n1,a\n", {"layout": "annotators"}, "does not go with one column"),
        ("x,candidates\n1,a\n", {"rule": "votes:2"}, 'are for layout="annotators"'),
        ("x,a\n1,2\n", {"candidates": ["a"]}, "2.0 is neither 0 nor 1"),
        ("x,a\n1,b\n", {"candidates": ["a"]}, "holds 'b' in row 0"),
        ("x,a\n1,2\n", {"candidates": ["a"], "layout": "sets"}, "not go with several columns"),
        ("x,candidates\n1,a\n", {"delimiter": "::"}, "delimiter '::' is not one character"),
        ("x,candidates\n1,a\n", {"encoding": "utf-99"}, "unknown encoding 'utf-99'"),
    ],
)
def test_what_is_wrong_is_said(write, text, options, message):
    with pytest.raises(ValueError, match=message):
        load_partial_csv(write(text), **options)


def test_things_that_are_no_csv_files(tmp_path):
    (tmp_path / "binary.csv").write_bytes(bytes(range(256)) * 10)
    with pytest.raises(ValueError, match="no text in utf-8"):
        load_partial_csv(tmp_path / "binary.csv")
    with pytest.raises(FileNotFoundError, match=r"Beside it there is 'binary.csv'"):
        load_partial_csv(tmp_path / "nothing.csv")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        load_partial_csv(tmp_path)


def test_labels_are_features_only_by_name(write):
    rows = ["1,1|2,2", "2,1|3,1", "3,3,3", "4,2,2"]
    path = write("\n".join(["x,candidates,kind", *rows * 3]))
    with pytest.raises(ValueError, match=r"column 'kind' holds labels of this table.*truth="):
        load_partial_csv(path)
    assert load_partial_csv(path, truth="kind").feature_names == ["x"]
    assert load_partial_csv(path, features=["x", "kind"]).feature_names == ["x", "kind"]
