"""Rows that are not in memory: Parquet, memory maps, Dask collections of any chunks."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from appellate import (
    AGGDClassifier,
    GaussianKernel,
    LALOClassifier,
    LinearKernel,
    PLCLClassifier,
    PLCPClassifier,
    PLKNNClassifier,
    PLSVMClassifier,
    SUREClassifier,
)
from appellate.numerics import blocks as blocks_module
from appellate.numerics import sources
from appellate.numerics.blocks import ArrayBlocks, Blocks
from appellate.numerics.entries import CandidateEntries
from appellate.numerics.passes import (
    evaluate_kernel,
    gather,
    lay_out,
    moments,
    product,
    turn,
    weighted_lengths,
)
from appellate.numerics.sources import DaskBlocks, ParquetRows, open_blocks, predict_lazily
from tests.test_large import make_problem

OPTIONS = {"kernel": GaussianKernel(approximation="nystroem", n_landmarks=40)}


@pytest.fixture(scope="module")
def problem():
    return make_problem(300)


@pytest.fixture(scope="module")
def in_memory(problem):
    X, candidates, _ = problem
    return PLCPClassifier(SUREClassifier(**OPTIONS)).fit(X, candidates)


def assert_same(model, reference, X):
    np.testing.assert_array_equal(model.transduction_, reference.transduction_)
    np.testing.assert_array_equal(model.verdict_, reference.verdict_)
    np.testing.assert_allclose(model.confidence_, reference.confidence_, atol=2e-4)
    np.testing.assert_array_equal(model.predict(X), reference.predict(X))


# -- Dask ---------------------------------------------------------------------------------


@pytest.mark.parametrize("chunks", [300, 64, (1, 100, 0, 3, 196), ((100, 200), (2, 3))])
def test_dask_array(problem, in_memory, chunks):
    da = pytest.importorskip("dask.array")
    X, candidates, _ = problem
    shape = chunks if isinstance(chunks, tuple) and isinstance(chunks[0], tuple) else None
    lazy = da.from_array(X, chunks=shape or (chunks, -1))
    model = PLCPClassifier(SUREClassifier(**OPTIONS))
    assert_same(model.fit(lazy, candidates), in_memory, X)
    labels = model.predict(lazy)
    assert isinstance(labels, da.Array)
    np.testing.assert_array_equal(labels.compute(), in_memory.predict(X))
    shares = model.predict_proba(lazy)
    assert shares.shape == (300, 6)
    np.testing.assert_allclose(shares.compute(), in_memory.predict_proba(X), atol=1e-4)
    np.testing.assert_allclose(
        model.decision_function(lazy).compute(), in_memory.decision_function(X), atol=1e-4
    )
    assert model.score(lazy, candidates) == in_memory.score(X, candidates)


@pytest.mark.parametrize(
    "base",
    [LALOClassifier(), AGGDClassifier(), PLCLClassifier(), PLKNNClassifier()],
    ids=lambda b: type(b).__name__,
)
def test_every_base_takes_dask(problem, base):
    da = pytest.importorskip("dask.array")
    X, candidates, _ = problem
    if hasattr(base, "kernel"):
        base = clone(base).set_params(**OPTIONS)
    reference = PLCPClassifier(base, **OPTIONS).fit(X, candidates)
    lazy = PLCPClassifier(base, **OPTIONS).fit(da.from_array(X, chunks=(70, -1)), candidates)
    assert np.mean(lazy.transduction_ == reference.transduction_) > 0.99
    assert np.mean(lazy.predict(X) == reference.predict(X)) > 0.99


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_dask_candidates_and_kernels(problem, kernel):
    da = pytest.importorskip("dask.array")
    X, candidates, _ = problem
    options = OPTIONS if kernel == "rbf" else {"kernel": kernel}
    reference = SUREClassifier(**options).fit(X, candidates)
    lazy = SUREClassifier(**options).fit(
        da.from_array(X, chunks=(70, -1)), da.from_array(candidates, chunks=(90, 3))
    )
    np.testing.assert_array_equal(lazy.transduction_, reference.transduction_)
    np.testing.assert_allclose(lazy.predict_proba(X), reference.predict_proba(X), atol=1e-3)


def test_dask_data_frame(problem, in_memory):
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    X, candidates, _ = problem
    frame = pd.DataFrame(X, columns=list("abcde"))
    lazy = dd.from_pandas(frame, npartitions=3)
    y = dd.from_pandas(pd.DataFrame(candidates.astype(int)), npartitions=2)
    model = PLCPClassifier(SUREClassifier(**OPTIONS)).fit(lazy, y)
    assert list(model.feature_names_in_) == list("abcde")
    np.testing.assert_array_equal(model.transduction_, in_memory.transduction_)
    np.testing.assert_array_equal(model.predict(frame), model.predict(lazy).compute())
    assert len(model.docket()) == 300
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(lazy[list("bacde")])
    with pytest.raises(ValueError, match="X has 4 features, but PLCPClassifier is expecting 5"):
        model.predict(lazy[list("abcd")])


def test_nan_in_the_last_chunk_is_named(problem):
    da = pytest.importorskip("dask.array")
    X, candidates, _ = problem
    broken = X.copy()
    broken[297, 2] = np.nan
    with pytest.raises(ValueError, match=r"in chunk 4, row 17 of the chunk \(row 297 of all"):
        SUREClassifier().fit(da.from_array(broken, chunks=(70, -1)), candidates)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_nan_in_a_lazy_prediction_is_named(problem, in_memory, method):
    da = pytest.importorskip("dask.array")
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    broken = problem[0].copy()
    broken[297, 2] = np.nan
    labels = getattr(in_memory, method)(da.from_array(broken, chunks=(70, 2)))
    with pytest.raises(ValueError, match=r"in chunk 4, row 17 of the chunk \(row 297 of all"):
        labels.compute()
    frame = dd.from_pandas(pd.DataFrame(broken), npartitions=3)  # of unknown lengths
    with pytest.raises(ValueError, match=r"in chunk 2, row 97 of the chunk \(counted from 0\)"):
        getattr(in_memory, method)(frame).compute()


def test_columns_without_names(problem, recwarn):
    """As in scikit-learn, only texts are names of features."""
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    X, candidates, _ = problem
    frame = pd.DataFrame(X)
    model = SUREClassifier(**OPTIONS).fit(dd.from_pandas(frame, npartitions=2), candidates)
    assert not hasattr(model, "feature_names_in_")
    labels = model.predict(frame)
    assert not recwarn.list
    lazy = dd.from_pandas(frame, npartitions=2)
    np.testing.assert_array_equal(model.predict(lazy).compute(), labels)


def test_exact_kernel_of_a_dask_array_is_refused(problem):
    da = pytest.importorskip("dask.array")
    X, candidates, _ = problem
    with pytest.raises(ValueError, match=r"'exact' needs the rows in memory.*X\.compute\(\)"):
        SUREClassifier(kernel=GaussianKernel(approximation="exact")).fit(
            da.from_array(X), candidates
        )
    linear = SUREClassifier(kernel="linear")
    labels = linear.fit(da.from_array(X, chunks=(70, -1)), candidates).transduction_
    np.testing.assert_array_equal(labels, linear.fit(X, candidates).transduction_)


def test_rows_that_must_be_compared_have_to_fit(problem, monkeypatch):
    da = pytest.importorskip("dask.array")
    X, candidates, _ = problem
    monkeypatch.setattr("appellate.numerics.memory.free_memory", lambda: 1000)
    for model in (PLKNNClassifier(), PLSVMClassifier(kernel="linear")):
        with pytest.raises(MemoryError, match=r"needs all rows in memory, .* GB are free"):
            model.fit(da.from_array(X), candidates)
    for kernel in ("rbf", "linear"):
        SUREClassifier(kernel=kernel).fit(da.from_array(X), candidates)


def test_lengths_must_agree(problem):
    da = pytest.importorskip("dask.array")
    X, candidates, _ = problem
    with pytest.raises(ValueError, match="299"):
        SUREClassifier().fit(da.from_array(X), candidates[:-1])


@pytest.mark.parametrize(("dtype", "width"), [(None, 5), (np.float32, 5), (np.int64, None)])
def test_any_function_of_a_block_is_applied_later(problem, dtype, width):
    da = pytest.importorskip("dask.array")
    X = problem[0]
    call = np.square if width else largest_column
    lazy = predict_lazily(call, da.from_array(X, chunks=(70, 2)), dtype, width)
    assert lazy.shape == ((300, 5) if width else (300,))
    assert lazy.dtype == (dtype or np.float64)
    np.testing.assert_allclose(lazy.compute(), call(X), rtol=1e-6)


def largest_column(block):
    return block.argmax(axis=1)


# -- all kinds do the same ----------------------------------------------------------------


@pytest.fixture(params=["array", "mapped", "sparse", "stored", "file", "parquet", "dask"])
def kind(request, problem, tmp_path, monkeypatch):
    """The same table in every form, in several blocks."""
    monkeypatch.setattr(blocks_module, "_BLOCK_ROWS", 64)
    monkeypatch.setattr(sources, "_BATCH_ROWS", 70)
    monkeypatch.setattr(blocks_module, "_BLOCK_BYTES", 50 * 5 * 8)
    monkeypatch.setattr(blocks_module, "_PIECE_BYTES", 30 * 5 * 8)
    X = problem[0]
    if request.param == "mapped":
        np.save(tmp_path / "X.npy", X)
        return X, ArrayBlocks(np.load(tmp_path / "X.npy", mmap_mode="r"))
    if request.param == "sparse":
        return X, ArrayBlocks(sp.csc_matrix(X))
    if request.param in ("stored", "file"):
        folder = tmp_path if request.param == "file" else None
        return X, ArrayBlocks(X).make(np.copy, 5, X.dtype, folder)
    if request.param == "parquet":
        write_parts(
            tmp_path, *({f"f{j}": part[:, j] for j in range(5)} for part in (X[:99], X[99:]))
        )
        return X, ParquetRows(tmp_path)
    if request.param == "dask":
        da = pytest.importorskip("dask.array")
        return X, open_blocks(da.from_array(X, chunks=(90, 3)))
    return X, ArrayBlocks(X)


def test_every_kind_has_the_same_rows(kind):
    X, table = kind
    assert (table.shape, table.dtype, len(table)) == (X.shape, X.dtype, 300)
    assert table.local is not isinstance(table, DaskBlocks)
    assert len(table.slices) > 3
    for rows, block in zip(table.slices, table.blocks(), strict=True):
        np.testing.assert_array_equal(block, X[rows])
    some = np.array([0, 7, 63, 64, 200, 299])
    np.testing.assert_array_equal(table.take(some), X[some])
    np.testing.assert_array_equal(table.toarray(), X)
    np.testing.assert_array_equal(np.asarray(table, dtype=np.float32), X.astype(np.float32))


def test_every_kind_maps_and_makes(kind, tmp_path):
    X, table = kind
    parts = [(start,) for start in table.place([rows.start for rows in table.slices])]
    sums = list(table.map(shifted_sum, parts, 2.0))
    expected = [X[rows].sum() + rows.start + 2 for rows in table.slices]
    np.testing.assert_allclose(sums, expected, rtol=1e-12)
    assert [len(block) for block in table.map(np.abs)] == [r.stop - r.start for r in table.slices]
    for folder in (None, tmp_path):
        made = table.make(first_columns, 3, np.float32, folder)
        assert (made.shape, made.dtype) == ((300, 3), np.float32)
        np.testing.assert_allclose(made.toarray(), X[:, :3], atol=1e-6)
        total, gram = moments(made)
        np.testing.assert_allclose(total, made.toarray().sum(axis=0), rtol=1e-4)
        np.testing.assert_allclose(gram, X[:, :3].T @ X[:, :3], rtol=1e-5)
        turn(made, np.eye(3)[:, :2], np.array([1.0, 2.0]))
        np.testing.assert_allclose(made.toarray(), X[:, :2] - [1, 2], atol=1e-6)
        np.testing.assert_allclose(
            weighted_lengths(made, np.array([1.0, 3.0])),
            (X[:, 0] - 1) ** 2 + 3 * (X[:, 1] - 2) ** 2,
            rtol=1e-4,
        )


def test_every_kind_is_passed_over(kind, problem):
    X, table = kind
    entries = CandidateEntries(problem[1])
    values, C = entries.uniform(), np.random.RandomState(0).normal(size=(6, 5))
    placed = lay_out(table, entries)
    np.testing.assert_allclose(gather(table, placed, values), entries.scatter(values).T @ X)
    scores = X @ C.T + np.arange(6.0)
    np.testing.assert_allclose(product(table, C, np.arange(6.0)), scores)
    found = evaluate_kernel(table, placed, C, np.arange(6.0))
    np.testing.assert_allclose(found, entries.gather(scores))


def shifted_sum(block, start, shift):
    return block.sum() + start + shift


def first_columns(block):
    return block[:, :3]


def test_what_is_given_is_only_read(problem):
    with pytest.raises(TypeError, match="can only be read"):
        turn(ArrayBlocks(problem[0]), np.eye(5), np.zeros(5))


@pytest.mark.parametrize("head", ["partner", "mean", "base"])
@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_what_a_lazy_prediction_carries_does_not_grow_with_the_training_rows(
    problem, head, method, monkeypatch
):
    da, carried = pytest.importorskip("dask.array"), []
    X, candidates, _ = problem
    landmarks = GaussianKernel(approximation="nystroem", n_landmarks=20)
    monkeypatch.setattr(
        "appellate.core.base.predict_lazily",
        lambda call, *args, **options: carried.append(len(pickle.dumps(call))),
    )
    for times in (1, 8):
        # The nearest neighbours are the rows themselves: only a head that votes may carry them.
        base = PLKNNClassifier() if head == "partner" else SUREClassifier(kernel=landmarks)
        model = PLCPClassifier(base, kernel=landmarks, head=head)
        model.fit(np.tile(X, (times, 1)), np.tile(candidates, (times, 1)))
        getattr(model, method)(da.from_array(X))
    assert carried[1] < 1.1 * carried[0]


def test_importing_appellate_imports_no_dask():
    code = "import sys, appellate; sys.exit('dask' in sys.modules or 'pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# -- Parquet and memory maps ----------------------------------------------------------------


def test_parquet(problem, in_memory, tmp_path, monkeypatch):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    monkeypatch.setattr("appellate.numerics.sources._BATCH_ROWS", 37)
    X, candidates, _ = problem
    frame = pd.DataFrame(X, columns=list("abcde")).assign(name="text")
    frame[:123].to_parquet(tmp_path / "1.parquet")
    frame[123:].to_parquet(tmp_path / "2.parquet")
    rows = ParquetRows(tmp_path, columns=list("abcde"))
    assert rows.shape == (300, 5)
    assert {len(block) for block in rows.blocks()} == {37, 12, 29}
    np.testing.assert_array_equal(np.asarray(rows), X)
    model = PLCPClassifier(SUREClassifier(**OPTIONS)).fit(rows, candidates)
    np.testing.assert_array_equal(model.transduction_, in_memory.transduction_)
    np.testing.assert_array_equal(model.predict(rows), in_memory.predict(X))
    exact = SUREClassifier(kernel=GaussianKernel(approximation="exact")).fit(rows, candidates)
    reference = SUREClassifier().fit(X, candidates)
    np.testing.assert_array_equal(exact.predict(rows), reference.predict(X))


def test_parquet_errors_name_the_place(tmp_path, monkeypatch):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    monkeypatch.setattr("appellate.numerics.sources._BATCH_ROWS", 10)
    values = np.arange(35.0)
    values[33] = np.nan
    pd.DataFrame({"x": values, "t": "text"}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"t\.parquet' contains NaN .* chunk 3, row 3 .*row 33"):
        SUREClassifier().fit(ParquetRows(tmp_path / "t.parquet", columns=["x"]), [0, 1] * 17 + [0])
    with pytest.raises(ValueError, match="columns 't' are not numbers"):
        ParquetRows(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="has no column 'z'"):
        ParquetRows(tmp_path / "t.parquet", columns=["z"])
    (tmp_path / "nothing").mkdir()
    with pytest.raises(FileNotFoundError, match=r"cannot find a \*\.parquet file"):
        ParquetRows(tmp_path / "nothing")


def test_a_memory_map_is_read_where_it_lies(problem, in_memory, tmp_path):
    X, candidates, _ = problem
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = PLCPClassifier(
        SUREClassifier(kernel=clone(OPTIONS["kernel"]).set_params(cache_dir=tmp_path))
    ).fit(mapped, candidates)
    assert_same(model, in_memory, X)
    assert [p.name for p in tmp_path.iterdir()] == ["X.npy"]


@pytest.mark.parametrize("kind", [np.uint8, np.int64, np.float16, ">f4", bool])
@pytest.mark.parametrize("options", [OPTIONS, {"kernel": "linear"}, {}])
def test_a_memory_map_of_any_numbers_is_read_in_blocks(kind, options, problem, tmp_path):
    X, candidates, _ = problem
    numbers = (20 * (X - X.min())).astype(kind)
    np.save(tmp_path / "X.npy", numbers)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert isinstance(SUREClassifier()._check_rows(mapped, reset=True), Blocks)
    model = SUREClassifier(**options).fit(mapped, candidates)
    reference = SUREClassifier(**options).fit(numbers, candidates)
    np.testing.assert_array_equal(model.confidence_, reference.confidence_)
    shares = model.predict_proba(mapped)
    assert shares.dtype == np.float64
    np.testing.assert_array_equal(shares, reference.predict_proba(numbers))


def test_gaps_and_shapes_of_memory_maps(problem, tmp_path):
    X, candidates, _ = problem
    broken = X.astype(np.float16)
    broken[297, 2] = np.inf
    for values, said in [
        (broken, r"NaN or infinity in chunk 0, row 297"),
        (broken[0], "Expected 2D array, got 1D"),
        (broken[:, :0], r"0 feature\(s\)"),
    ]:
        np.save(tmp_path / "X.npy", values)
        with pytest.raises(ValueError, match=said):
            SUREClassifier().fit(np.load(tmp_path / "X.npy", mmap_mode="r"), candidates)


# -- prediction in blocks -------------------------------------------------------------------


@pytest.mark.parametrize("head", ["partner", "base", "mean"])
def test_predictions_do_not_depend_on_the_blocks(problem, head, monkeypatch):
    X, candidates, _ = problem
    model = PLCPClassifier(PLKNNClassifier(), head=head).fit(X, candidates)
    whole = [getattr(model, m)(X) for m in ("predict", "predict_proba", "decision_function")]
    monkeypatch.setattr("appellate.core.base._PREDICT_ROWS", 7)
    parts = [getattr(model, m)(X) for m in ("predict", "predict_proba", "decision_function")]
    np.testing.assert_array_equal(parts[0], whole[0])
    for one, other in zip(parts[1:], whole[1:], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_lazy_prediction_before_the_fit(method):
    da = pytest.importorskip("dask.array")
    with pytest.raises(NotFittedError):
        getattr(SUREClassifier(), method)(da.zeros((4, 2)))


# -- Parquet files that do not fit together -----------------------------------------------


def write_parts(folder, *frames):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    for k, columns in enumerate(frames):
        pd.DataFrame(columns).to_parquet(folder / f"{k}.parquet")
    return folder


@pytest.mark.parametrize("index", ["__index_level_0__", "id", "__null_dask_index__"])
def test_a_stored_index_is_no_feature(index, tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}, index=[7, 5])
    frame.index.name = None if index.startswith("__i") else index
    frame.to_parquet(tmp_path / "0.parquet")
    assert ParquetRows(tmp_path).feature_names.tolist() == ["a", "b"]
    asked = ParquetRows(tmp_path, columns=["b", index])
    np.testing.assert_array_equal(asked, [[3.0, 7.0], [4.0, 5.0]])


def test_numbered_files_are_read_as_they_count(tmp_path):
    """Dask names the parts of a frame part.0.parquet, ..., part.10.parquet."""
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    for k in range(12):
        pd.DataFrame({"a": [float(k)]}).to_parquet(tmp_path / f"part.{k}.parquet")
    np.testing.assert_array_equal(np.ravel(ParquetRows(tmp_path)), np.arange(12))


def test_one_name_is_no_sequence_of_names(tmp_path):
    folder = write_parts(tmp_path, {"a": [1.0], "b": [2.0]})
    with pytest.raises(TypeError, match=r"columns must be a sequence of names.*\['ab'\]"):
        ParquetRows(folder, columns="ab")


def test_every_file_has_the_columns(tmp_path):
    folder = write_parts(tmp_path, {"a": [1.0], "b": [2.0]}, {"a": [1.0]})
    with pytest.raises(ValueError, match=r"1\.parquet' has no column 'b'"):
        ParquetRows(folder)


@pytest.mark.parametrize("kind", ["str", "category"])
def test_every_file_has_numbers(kind, tmp_path):
    values = pytest.importorskip("pandas").Series(["1.5"], dtype=kind)
    folder = write_parts(tmp_path, {"a": [1.0]}, {"a": values})
    with pytest.raises(ValueError, match=r"1\.parquet': columns 'a' are not numbers"):
        ParquetRows(folder)


def test_the_widest_type_of_all_files(tmp_path):
    narrow = {"a": np.array([1.0], dtype=np.float32)}
    assert ParquetRows(write_parts(tmp_path, narrow)).dtype == np.float32
    assert ParquetRows(write_parts(tmp_path, narrow, {"a": [1 + 1e-12]})).dtype == np.float64


def test_rows_that_change_after_they_were_opened(tmp_path):
    folder = write_parts(tmp_path, {"a": np.arange(60.0)})
    y = ["x|y", "x", "y"] * 20
    for n, said in ((40, "now only 40"), (80, "now more than 60")):
        rows = ParquetRows(folder)
        write_parts(tmp_path, {"a": np.arange(float(n))})
        for options in (OPTIONS, {"kernel": "linear"}):
            with pytest.raises(ValueError, match=said):
                SUREClassifier(**options).fit(rows, y)
        write_parts(tmp_path, {"a": np.arange(60.0)})


def test_no_rows(tmp_path, in_memory):
    folder = write_parts(tmp_path, {f"f{j}": np.empty(0) for j in range(5)})
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        in_memory.predict(ParquetRows(folder))


def test_linear_features_in_cache_dir(tmp_path, monkeypatch):
    opened = []
    keep = blocks_module._open_unnamed
    monkeypatch.setattr(
        blocks_module, "_open_unnamed", lambda *args: opened.append(args) or keep(*args)
    )
    folder = write_parts(tmp_path, {"a": np.arange(60.0)})
    model = SUREClassifier(kernel=LinearKernel(cache_dir=tmp_path))
    model.fit(ParquetRows(folder), ["x|y", "x", "y"] * 20)
    assert [size for _, size in opened] == [60 * 8]


@pytest.mark.parametrize("kinds", [(np.float32, np.float64), (np.float64, np.float32)])
def test_lazy_results_have_the_type_they_declare(problem, kinds):
    da = pytest.importorskip("dask.array")
    X, candidates, _ = problem
    model = SUREClassifier(**OPTIONS).fit(X.astype(kinds[0]), candidates)
    lazy = model.predict_proba(da.from_array(X.astype(kinds[1]), chunks=100))
    assert lazy.dtype == lazy.compute().dtype
    with pytest.raises(ValueError, match="Expected 2D array, got 1D"):
        model.predict(da.zeros(4))
