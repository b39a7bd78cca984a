"""Reading .mat files of every layout, and saying what is wrong with the others."""

from __future__ import annotations

import sys

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from appellate.datasets import load_partial_mat
from tests.datasets.layouts import garble, one_hot, small_problem, truncate, write_mat

X, CANDIDATES, TRUTH = small_problem()


def test_read_in_full(tmp_path):
    path = write_mat(tmp_path / "own.mat", X, CANDIDATES, TRUTH)
    data = load_partial_mat(path)
    assert np.array_equal(data.X, X)
    assert np.array_equal(data.candidates, CANDIDATES)
    assert np.array_equal(data.y_true, TRUTH)
    assert data.candidates.dtype == bool
    assert data.class_names.tolist() == [0, 1, 2, 3]
    assert data.filename == str(path)
    assert "own.mat" in data.description
    for one, other in zip(
        load_partial_mat(str(path), return_X_candidates_y=True),
        (X, CANDIDATES, TRUTH),
        strict=True,
    ):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("version", [5, 7.3])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
def test_every_layout_gives_the_same(tmp_path, version, sparse, transposed):
    path = write_mat(
        tmp_path / "own.mat",
        X,
        CANDIDATES,
        TRUTH,
        version=version,
        sparse=sparse,
        transposed=transposed,
    )
    data = load_partial_mat(path)
    assert np.array_equal(data.X, X)
    assert np.array_equal(data.candidates, CANDIDATES)
    assert np.array_equal(data.y_true, TRUTH)


def test_features_may_be_transposed_too(tmp_path):
    path = write_mat(tmp_path / "own.mat", X.T, CANDIDATES, TRUTH)
    assert np.array_equal(load_partial_mat(path).X, X)


def test_as_many_samples_as_classes_means_the_usual_layout(tmp_path):
    square, candidates, truth = small_problem(n=4, q=4, l=4)
    assert not np.array_equal(candidates, candidates.T)
    data = load_partial_mat(write_mat(tmp_path / "own.mat", square, candidates, truth))
    assert np.array_equal(data.X, square)
    assert np.array_equal(data.candidates, candidates)


def test_other_names_types_and_no_truth(tmp_path):
    path = tmp_path / "own.mat"
    content = {"F": X.astype(np.float32), "Y": CANDIDATES.T, "cell": np.array([1], dtype=object)}
    scipy.io.savemat(path, content)
    data = load_partial_mat(path, features="F", candidates="Y", truth=None)
    assert data.X.dtype == np.float32
    assert data.y_true is None
    assert np.array_equal(data.candidates, CANDIDATES)


def test_whole_numbers_and_sparse_features_become_floats(tmp_path):
    counts = np.round(X * 5).astype(int)
    for name, value in (("whole", counts), ("sparse", sp.csc_array(counts.astype(float)))):
        path = write_mat(tmp_path / f"{name}.mat", value, CANDIDATES, TRUTH)
        data = load_partial_mat(path)
        assert data.X.dtype == np.float64
        assert np.array_equal(data.X, counts)


def test_a_sparse_matrix_without_entries(tmp_path):
    path = tmp_path / "own.mat"
    write_mat(path, X, CANDIDATES, TRUTH, version=7.3, sparse=True)
    with h5py.File(path, "r+") as file:
        group = file["partial_target"]
        del group["data"], group["ir"]
        group["jc"][...] = 0
        file.create_group("struct")["field"] = np.ones(2)
    with pytest.raises(ValueError, match="no candidate"):
        load_partial_mat(path)
    with pytest.raises(ValueError, match="has no variable 'struct'"):
        load_partial_mat(path, candidates="struct")


def test_noise_is_refused_unless_it_is_meant(tmp_path):
    candidates = CANDIDATES.copy()
    candidates[3] = ~one_hot(TRUTH, 4)[3].astype(bool)
    path = write_mat(tmp_path / "own.mat", X, candidates, TRUTH)
    with pytest.raises(ValueError, match=r"not a candidate in 1 of 12 rows \(row 3\).*noisy=True"):
        load_partial_mat(path)
    assert np.array_equal(load_partial_mat(path, noisy=True).candidates, candidates)


def test_swapped_truth_and_candidates(tmp_path):
    path = tmp_path / "own.mat"
    scipy.io.savemat(
        path, {"data": X, "target": CANDIDATES.T, "partial_target": one_hot(TRUTH, 4).T}
    )
    with pytest.raises(ValueError, match=r"own.mat, 'target': several truths in rows.*swapped"):
        load_partial_mat(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"partial_target": CANDIDATES[:9].T}, "candidates have shape .4, 9., truth .4, 12."),
        ({"data": X[:9]}, r"features of shape \(9, 5\) do not fit labels of shape \(4, 12\)"),
        ({"data": np.where(X > 2, np.nan, X)}, "NaN or infinite features in row"),
        ({"data": np.full_like(X, np.inf)}, "NaN or infinite features in rows 0, 1, 2, 3, 4 and"),
        ({"data": X + 1j}, "not numbers"),
        ({"data": np.array(["a", "b"])}, "must be matrices|not numbers|do not fit"),
        ({"data": np.zeros((0, 12))}, "do not fit|shape"),
        ({"partial_target": 2 * CANDIDATES.T}, "row 0, column .*: 2 is neither 0 nor 1"),
        ({"partial_target": 0 * CANDIDATES.T}, "no candidate"),
        (
            {"target": 0 * CANDIDATES.T},
            "own.mat, 'target': rows 0, 1, 2, 3, 4 and 7 more: no",
        ),
    ],
)
def test_contents_that_do_not_fit(tmp_path, content, message):
    path = tmp_path / "own.mat"
    full = {"data": X, "partial_target": CANDIDATES.T, "target": one_hot(TRUTH, 4).T} | content
    scipy.io.savemat(path, {k: np.asarray(v) * 1 if k != "data" else v for k, v in full.items()})
    with pytest.raises(ValueError, match=message):
        load_partial_mat(path)


def test_missing_variables_are_named_with_the_nearest(tmp_path):
    path = tmp_path / "own.mat"
    scipy.io.savemat(path, {"data": X, "partial_targets": CANDIDATES.T})
    with pytest.raises(ValueError, match=r"no variable 'partial_target'.*mean 'partial_targets'"):
        load_partial_mat(path)


@pytest.mark.parametrize("version", [5, 7.3])
@pytest.mark.parametrize("share", [0, 0.02, 0.3, 0.7, 0.97])
def test_truncated_files(tmp_path, version, share):
    path = write_mat(tmp_path / "own.mat", *small_problem(200, 20), version=version)
    truncate(path, share)
    with pytest.raises(ValueError, match="truncated or damaged; get it again"):
        load_partial_mat(path)


def test_damaged_files(tmp_path):
    path = write_mat(tmp_path / "own.mat", *small_problem(200, 20))
    for at in (0.3, 0.6):
        garble(path, at)
    with pytest.raises(ValueError, match="truncated or damaged; get it again"):
        load_partial_mat(path)


def test_things_that_are_no_mat_files(tmp_path):
    (tmp_path / "page.mat").write_text("\n<!DOCTYPE html><html>Not found</html>")
    (tmp_path / "text.mat").write_text("width,height\n" * 50)
    with pytest.raises(ValueError, match=r"is a web page, not a .mat file"):
        load_partial_mat(tmp_path / "page.mat")
    with pytest.raises(ValueError, match=r"cannot be read as a .mat file"):
        load_partial_mat(tmp_path / "text.mat")
    with pytest.raises(FileNotFoundError, match=r"the file '.*lost.mat'.*'page.mat', 'text.mat'"):
        load_partial_mat(tmp_path / "lost.mat")
    with pytest.raises(FileNotFoundError, match="nor a folder"):
        load_partial_mat(tmp_path / "nowhere" / "lost.mat")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        load_partial_mat(tmp_path)


def test_version_7_3_without_h5py_names_the_extra(tmp_path, monkeypatch):
    path = write_mat(tmp_path / "own.mat", X, CANDIDATES, TRUTH, version=7.3)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=r"version 7.3.*appellate\[data\]"):
        load_partial_mat(path)
