"""Many rows: the same classifiers on Nystroem features, and rows that are not in memory."""

from __future__ import annotations

import logging
import os
import time
import tracemalloc
import warnings

import numpy as np
import pytest
from sklearn.base import clone

import appellate
from appellate import (
    AGGDClassifier,
    GaussianKernel,
    JuryClassifier,
    LALOClassifier,
    LaplacianKernel,
    PartnerClassifier,
    PLCLClassifier,
    PLCPClassifier,
    PLKNNClassifier,
    PLSVMClassifier,
    SUREClassifier,
    make_base,
)
from appellate.methods import registry
from appellate.numerics import memory
from appellate.tables import write_table

BASES = [
    SUREClassifier(),
    LALOClassifier(),
    AGGDClassifier(),
    PLCLClassifier(),
    PLKNNClassifier(),
    PLSVMClassifier(random_state=0),
]

KERNEL_BASES = [
    each.name for each in registry.BASES if "kernel" in make_base(each.name).get_params()
]


def make_problem(n=400, q=5, n_labels=6, dtype=np.float64):
    rng = np.random.RandomState(0)
    truth = rng.randint(n_labels, size=n)
    X = 2 * rng.normal(size=(n_labels, q))[truth] + rng.normal(size=(n, q))
    candidates = rng.uniform(size=(n, n_labels)) < 0.3
    candidates[np.arange(n), truth] = True
    return X.astype(dtype), candidates, truth


def nystroem(n_landmarks=None, **more):
    return GaussianKernel(approximation="nystroem", n_landmarks=n_landmarks, **more)


def coupled(base, kernel):
    """PLCP whose base and partner have a kernel, if the base has one at all."""
    base = clone(base)
    if hasattr(base, "kernel"):
        base.set_params(kernel=kernel)
    return PLCPClassifier(base, kernel=kernel)


@pytest.mark.parametrize("name", KERNEL_BASES)
@pytest.mark.parametrize("root", [False, True])
def test_every_base_takes_a_laplacian_kernel_exact_and_as_features(name, root):
    X, candidates, _ = make_problem(120)
    whole = {"approximation": "nystroem", "n_landmarks": 120}
    scores = []
    for kernel in (
        LaplacianKernel(root=root, approximation="exact"),
        LaplacianKernel(root=root, **whole),
        GaussianKernel(root=root, approximation="exact"),
    ):
        seed = {"random_state": 0} if name in ("ecoc", "svm") else {}
        model = make_base(name, kernel=kernel, **seed).fit(X, candidates)
        scores.append(model.decision_function(X[::3] + 0.1))
    # LinearSVC shrinks the bias, so that PL-ECOC depends on the origin of its features.
    near = 0.02 if name == "ecoc" else 1e-3
    np.testing.assert_allclose(scores[1], scores[0], atol=near * np.abs(scores[0]).max())
    assert np.abs(scores[2] - scores[0]).max() > 1e-2 * np.abs(scores[0]).max()


@pytest.mark.parametrize("base", BASES, ids=lambda b: type(b).__name__)
def test_all_rows_as_landmarks_give_the_exact_labels(base):
    X, candidates, _ = make_problem()
    exact = coupled(base, GaussianKernel(approximation="exact")).fit(X, candidates)
    nearly = coupled(base, nystroem()).fit(X, candidates)
    assert np.mean(nearly.transduction_ == exact.transduction_) > 0.99
    assert np.mean(nearly.predict(X) == exact.predict(X)) > 0.99
    if not isinstance(base, PLSVMClassifier):  # Pegasos magnifies rounding
        np.testing.assert_allclose(nearly.predict_proba(X), exact.predict_proba(X), atol=2e-3)
        np.testing.assert_allclose(nearly.confidence_, exact.confidence_, atol=2e-3)


def test_leave_one_out_of_the_approximation_is_a_refit():
    X, candidates, _ = make_problem(60)
    exact = PartnerClassifier().fit(X, candidates)
    nearly = PartnerClassifier(kernel=nystroem(60)).fit(X, candidates)
    np.testing.assert_allclose(
        nearly.leave_one_out_decision(), exact.leave_one_out_decision(), atol=2e-4
    )


def test_few_landmarks_lose_little():
    X, candidates, truth = make_problem(2000)
    exact = PLCPClassifier(SUREClassifier()).fit(X, candidates)
    nearly = coupled(SUREClassifier(), nystroem(200)).fit(X, candidates)
    assert np.mean(exact.transduction_ == truth) > 0.9
    assert np.mean(nearly.transduction_ == truth) > np.mean(exact.transduction_ == truth) - 0.01


def test_auto_says_what_it_chose(caplog, monkeypatch):
    X, candidates, _ = make_problem(300)
    monkeypatch.setattr(memory, "SMALL_ROWS", 100)
    monkeypatch.setattr(memory, "EXACT_ROWS", 200)
    with caplog.at_level(logging.INFO, logger="appellate"):
        PLCPClassifier(SUREClassifier()).fit(X, candidates)
        SUREClassifier(kernel=GaussianKernel(approximation="exact")).fit(X, candidates)
    first, second = (each for each in caplog.records if each.module == "problem")
    assert first.levelname == "WARNING"
    assert first.getMessage().startswith("Nystroem features of 300 landmarks: the exact kernel")
    assert second.levelname == "INFO"
    assert second.getMessage().startswith("exact kernel matrix: 300 rows; takes")


def test_a_fit_with_several_kernels_says_once_that_they_are_approximated(caplog, monkeypatch):
    X, candidates, _ = make_problem(300)
    monkeypatch.setattr(memory, "SMALL_ROWS", 100)
    monkeypatch.setattr(memory, "EXACT_ROWS", 200)
    with caplog.at_level(logging.INFO, logger="appellate"):
        JuryClassifier("kernel", max_rounds=1, random_state=0).fit(X, candidates)
    assert sum("Nystroem" in each.getMessage() for each in caplog.records) == 1


@pytest.fixture
def many_rows(monkeypatch):
    """A table whose kernels are approximated, as those of many rows are."""
    pd = pytest.importorskip("pandas")
    monkeypatch.setattr(memory, "SMALL_ROWS", 100)
    monkeypatch.setenv("APPELLATE_MEMORY", "1MB")
    X, candidates, _ = make_problem(600, n_labels=3)
    table = pd.DataFrame(X, columns=list("pqrst"))
    names = np.array(["ant", "bee", "cat"])
    table["names"] = ["|".join(names[row]) for row in candidates]
    return table


@pytest.mark.parametrize("method", ["jury", "plcp"])
def test_rectify_notes_an_approximation_once(many_rows, caplog, method):
    options = {"candidates": "names", "method": method, "settings": {"max_rounds": 2}}
    with (
        caplog.at_level(logging.INFO, logger="appellate"),
        warnings.catch_warnings(record=True) as w,
    ):
        warnings.simplefilter("always")
        run = appellate.rectify(many_rows, **options)
    notes = [str(each.message) for each in w if each.category is appellate.NoteWarning]
    (note,) = (each for each in notes if "landmarks" in each)
    assert note in run.scores["notes"]
    assert note == (
        "comparing all pairs of 600 rows takes too much time or memory. Each row was compared "
        "with 256 randomly chosen rows (landmarks). Use settings={'n_landmarks': 512} for more of "
        "them. This takes longer and can make the labels better."
    )
    assert not [r for r in caplog.records if r.getMessage().startswith("Nystroem")]
    assert [r for r in caplog.records if "every label as a candidate" in r.getMessage()]


def test_rectify_has_no_note_on_landmarks_that_were_asked_for(many_rows, caplog):
    settings = {"max_rounds": 2, "n_landmarks": 100}
    run = appellate.rectify(many_rows, candidates="names", settings=settings)
    assert not any("landmarks" in note for note in run.scores["notes"])
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]


def test_the_approximation_is_not_noted_again_with_decisions(many_rows):
    with pytest.warns(appellate.NoteWarning, match="landmarks"):
        run = appellate.rectify(many_rows, candidates="names", settings={"max_rounds": 2})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = run.decide({1: many_rows["names"][1].split("|")[0]})
    assert [note for note in again.scores["notes"] if "landmarks" in note]


def test_a_fit_by_itself_logs_after_a_run_as_before(many_rows, caplog):
    with pytest.warns(appellate.NoteWarning, match="landmarks"):
        appellate.rectify(many_rows, candidates="names", settings={"max_rounds": 2})
    X, candidates, _ = make_problem(300)
    PLCPClassifier(SUREClassifier()).fit(X, candidates)
    assert [r for r in caplog.records if r.getMessage().startswith("Nystroem")]


def test_the_partner_takes_the_kernel_of_the_base(caplog):
    X, candidates, _ = make_problem(100)
    base = SUREClassifier(kernel=nystroem(30))
    with caplog.at_level(logging.INFO, logger="appellate"):
        model = PLCPClassifier(base).fit(X, candidates)
        own = PLCPClassifier(base, kernel="rbf").fit(X, candidates)
    assert model.partner_._model.regressor.rows.shape == (30, 5)
    assert model.estimator_._model.regressor.rows.shape == (30, 5)
    assert own.partner_._model.regressor.rows.shape == (100, 5)
    said = [r.getMessage() for r in caplog.records if r.module == "problem"]
    assert [each.split(":")[0] for each in said] == [
        "Nystroem features of 30 landmarks",
        "Nystroem features of 30 landmarks",
    ]  # few rows and an exact kernel go without saying


class TheirBase:
    """A third party's base whose parameters have our names but mean other things."""

    def __init__(self, kernel=()):
        self.kernel = kernel

    def fit(self, X, candidates, supervision=None):
        self.training_output_ = candidates / candidates.sum(axis=1, keepdims=True)
        return self


def test_parameters_of_a_third_party_are_its_own():
    X, candidates, _ = make_problem(60)
    base = TheirBase(kernel=["unhashable"])
    assert PLCPClassifier(base).fit(X, candidates).partner_.kernel == "rbf"
    model = PLCPClassifier(base, kernel=nystroem(10)).fit(X, candidates)
    assert model.partner_._model.regressor.rows.shape == (10, 5)


@pytest.mark.parametrize("name", ["kernel", "maximization", "regularization"])
def test_wrong_parameters_of_a_base_are_named(name):
    X, candidates, _ = make_problem(60)
    with pytest.raises(ValueError, match=f"The '{name}' parameter of SUREClassifier must be"):
        PLCPClassifier(SUREClassifier(**{name: ["several"]})).fit(X, candidates)


def test_refuses_before_it_starts(monkeypatch):
    X, candidates, _ = make_problem(300)
    monkeypatch.setattr(memory, "SMALL_ROWS", 100)
    monkeypatch.setattr(memory, "free_memory", lambda: 10**6)
    with pytest.raises(MemoryError, match=r"of 300 rows take .* are free"):
        SUREClassifier().fit(X, candidates)


def test_cache_dir_gives_the_same_and_leaves_nothing(tmp_path):
    X, candidates, _ = make_problem()
    kept = coupled(SUREClassifier(), nystroem(50)).fit(X, candidates)
    model = coupled(SUREClassifier(), nystroem(50, cache_dir=tmp_path)).fit(X, candidates)
    np.testing.assert_array_equal(model.training_output_, kept.training_output_)
    assert os.listdir(tmp_path) == []


def test_a_label_that_is_never_a_candidate():
    X, candidates, _ = make_problem()
    candidates[:, 2] = False
    rows = candidates.any(axis=1)
    model = coupled(SUREClassifier(), nystroem(50)).fit(X[rows], candidates[rows])
    assert 2 not in model.transduction_
    assert np.isfinite(model.predict_proba(X)).all()


def test_threads_do_not_change_the_result(monkeypatch):
    from appellate.numerics import blocks, threads

    X, candidates, _ = make_problem(dtype=np.float32)
    monkeypatch.setattr(blocks, "_BLOCK_BYTES", 4 * 50 * 33)
    model = SUREClassifier(kernel=nystroem(50))
    outputs = []
    for n_threads in (1, 3):
        monkeypatch.setattr(threads, "effective_threads", lambda n=n_threads: n)
        outputs.append(model.fit(X, candidates).training_output_)
    np.testing.assert_array_equal(*outputs)


def test_saved_and_loaded(tmp_path):
    pytest.importorskip("skops")
    from appellate.io import load_model, save_model

    X, candidates, _ = make_problem(dtype=np.float32)
    model = coupled(SUREClassifier(), nystroem(50))
    save_model(model.fit(X, candidates), tmp_path / "m")
    shares = load_model(tmp_path / "m").predict_proba(X)
    assert shares.dtype == np.float32
    np.testing.assert_array_equal(shares, model.predict_proba(X))


def test_svm_alone_on_features():
    X, candidates, _ = make_problem(300)
    exact = PLSVMClassifier(random_state=0).fit(X, candidates)
    model = PLSVMClassifier(random_state=0, kernel=nystroem(200))
    model.fit(X, candidates)
    assert model._model.regressor.rows.shape == (200, 5)
    assert np.mean(model.transduction_ == exact.transduction_) > 0.9


@pytest.mark.parametrize("kind", ["array", "duplicates", "dask"])
@pytest.mark.parametrize("bandwidth", [1.0, 0.3])
def test_svm_on_all_rows_as_landmarks_is_exact(kind, bandwidth):
    """It has no bias: the kernel must be right to a constant."""
    X, candidates, _ = make_problem(200)
    new = np.random.RandomState(1).normal(size=(50, 5))
    if kind == "duplicates":
        X[100:120] = X[:20]
    exact = PLSVMClassifier(random_state=0, kernel=GaussianKernel(bandwidth)).fit(X, candidates)
    given = X
    if kind == "dask":
        given = pytest.importorskip("dask.array").from_array(X, chunks=(70, -1))
    for n_landmarks, atol in ((199, 1e-3), (200, 1e-4), (250, 1e-4)):
        if n_landmarks < len(X) and bandwidth < 1:
            continue  # so narrow a kernel does not see the row that is missing
        model = clone(exact).set_params(kernel=nystroem(n_landmarks, bandwidth=bandwidth))
        model.fit(given, candidates)
        for found, wanted in (
            (model.training_output_, exact.training_output_),
            (model.decision_function(new), exact.decision_function(new)),
        ):
            np.testing.assert_allclose(found, wanted, atol=atol)


def test_svm_on_rows_that_all_coincide():
    _, candidates, _ = make_problem(30)
    X, model = np.ones((30, 2)), PLSVMClassifier(random_state=0)
    exact = model.fit(X, candidates).training_output_
    model.set_params(kernel=nystroem()).fit(X, candidates)
    np.testing.assert_allclose(model.training_output_, exact, atol=1e-9)


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("coupled", [False, True])
def test_svm_keeps_its_features_once(on_disk, coupled, tmp_path, monkeypatch):
    monkeypatch.setattr("appellate.numerics.blocks._BLOCK_BYTES", 2**18)
    monkeypatch.setattr("appellate.numerics.blocks._PIECE_BYTES", 2**18)
    monkeypatch.setattr("appellate.numerics.smoothers.SAMPLE_ROWS", 256)
    X, candidates, _ = make_problem(20_000, n_labels=3, dtype=np.float32)
    kernel = nystroem(256, bandwidth=0.3, cache_dir=tmp_path if on_disk else None)
    model = PLSVMClassifier(n_epochs=1, kernel=kernel, random_state=0)
    if coupled:
        model = PLCPClassifier(model, max_rounds=1)
    model.fit(X[:300], candidates[:300])  # compiles
    tracemalloc.start()
    model.fit(X, candidates)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.9 < peak / (4 * len(X) * 256) < 1.6


@pytest.mark.parametrize("coupled", [False, True])
def test_svm_refuses_before_it_makes_features(coupled, tmp_path, monkeypatch):
    """A folder does not help: the features are needed in memory."""
    X, candidates, _ = make_problem(20_000, dtype=np.float32)
    model = PLSVMClassifier(random_state=0, kernel=nystroem(2000, cache_dir=tmp_path))
    monkeypatch.setattr(memory, "free_memory", lambda: 650 * 10**6)
    monkeypatch.delattr("appellate.core.problem.nystroem_basis")
    with pytest.raises(MemoryError, match=r"ower n_landmarks.* another base"):
        (PLCPClassifier(model) if coupled else model).fit(X, candidates)


def test_distances_that_overflow_are_said():
    X, candidates, _ = make_problem(50)
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="scale the features"):
        SUREClassifier().fit((X * 1e25).astype(np.float32), candidates)


def test_rows_with_every_label_are_counted(caplog):
    X, candidates, _ = make_problem(60)
    candidates = candidates & ~candidates.all(axis=1, keepdims=True)
    candidates[~candidates.any(axis=1), 0] = True
    with caplog.at_level(logging.INFO, logger="appellate"):
        SUREClassifier().fit(X, candidates)
        assert "every label" not in caplog.text
        candidates[:3] = True
        SUREClassifier().fit(X, candidates)
    assert "3 of 60 rows have every label as a candidate" in caplog.text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::appellate.NoteWarning")
def test_time_grows_linearly_with_the_columns(tmp_path):
    """10,000 columns had not ended after 50 CPU seconds."""
    rng, names = np.random.default_rng(0), ["cat", "dog", "cat|dog"] * 5

    def measure(columns):
        table = {"names": names} | {f"x{j}": rng.normal(size=15) for j in range(columns)}
        write_table(table, tmp_path / "wide.csv")
        begun = time.process_time()
        appellate.rectify(tmp_path / "wide.csv", candidates="names").save(tmp_path / f"{columns}")
        return time.process_time() - begun

    measure(10)  # imports
    few, many = measure(1000), measure(8000)
    assert many < 12 * few
