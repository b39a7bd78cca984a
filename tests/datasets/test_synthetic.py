"""Generated problems and long-tailed classes."""

from __future__ import annotations

import tracemalloc
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier

from appellate import PLKNNClassifier
from appellate.datasets import make_ambiguous_classification, make_long_tailed

seeds = st.integers(0, 2**32 - 1)


@given(
    n=st.integers(1, 60),
    q=st.integers(1, 8),
    l=st.integers(1, 7),
    chance=st.floats(0, 1),
    seed=seeds,
)
def test_any_size_and_ambiguity(n, q, l, chance, seed):
    data = make_ambiguous_classification(n, q, l, flip_probability=chance, random_state=seed)
    assert data.X.shape == (n, q)
    assert data.candidates.shape == (n, l)
    assert data.candidates[np.arange(n), data.y_true].all()
    assert data.class_names.tolist() == list(range(l))
    assert np.isfinite(data.X).all()
    again = make_ambiguous_classification(n, q, l, flip_probability=chance, random_state=seed)
    assert np.array_equal(data.X, again.X)
    assert np.array_equal(data.candidates, again.candidates)


def test_classes_lie_apart_as_told():
    scores = []
    for distance in (0, 2, 8):
        data = make_ambiguous_classification(600, 10, 4, class_sep=distance, random_state=0)
        half = KNeighborsClassifier().fit(data.X[:300], data.y_true[:300])
        scores.append(half.score(data.X[300:], data.y_true[300:]))
    assert scores[0] < 0.35
    assert scores[0] + 0.2 < scores[1] < scores[2]
    assert scores[2] > 0.99


def test_clouds_have_unit_variance_around_their_centres():
    data = make_ambiguous_classification(20000, 5, 3, random_state=0)
    rest = data.X - data.centers[data.y_true]
    assert np.allclose(rest.mean(axis=0), 0, atol=0.05)
    assert np.allclose(rest.std(axis=0), 1, atol=0.05)


def test_strategy_and_type():
    data = make_ambiguous_classification(
        2000,
        3,
        3,
        strategy="fixed",
        n_false=2,
        dtype=np.float32,
        random_state=0,
    )
    assert data.X.dtype == np.float32
    assert data.centers.dtype == np.float32
    assert np.allclose(np.bincount(data.y_true) / 2000, 1 / 3, atol=0.05)
    assert data.candidates.all()
    assert data.summary.mean_size == 3
    X, candidates, y_true = make_ambiguous_classification(
        50, min_candidates=2, random_state=np.random.default_rng(0), return_X_candidates_y=True
    )
    assert X.shape == (50, 20)
    assert candidates.sum(axis=1).min() >= 2
    assert y_true.max() < 5


def test_a_classifier_can_learn_from_it():
    data = make_ambiguous_classification(300, 6, 3, class_sep=6, random_state=0)
    model = PLKNNClassifier().fit(data.X[:200], data.candidates[:200])
    assert model.score(data.X[200:], data.y_true[200:]) > 0.9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_samples": 0}, "n_samples=0; give a whole number"),
        ({"n_features": 2.5}, "n_features=2.5"),
        ({"n_classes": True}, "n_classes=True"),
        ({"class_sep": -1}, "class_sep=-1"),
        ({"class_sep": float("nan")}, "class_sep=nan"),
        ({"dtype": np.int64}, "dtype=.*use numpy.float64"),
        ({"strategy": "instance_dependent"}, "needs features first"),
        ({"n_false": 2}, "'uniform' does not use n_false="),
    ],
)
def test_mistakes_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        make_ambiguous_classification(**options)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_memory_is_little_more_than_the_result(dtype):
    peak, data, _ = measure(100_000, dtype)
    assert peak < 3 * data.X.nbytes


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_million_rows(dtype):
    peak, data, seconds = measure(1_000_000, dtype)
    assert peak < 3 * data.X.nbytes
    assert seconds < 15


def measure(n, dtype):
    tracemalloc.start()
    start = perf_counter()
    data = make_ambiguous_classification(n, 20, 10, dtype=dtype, random_state=0)
    seconds = perf_counter() - start
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, data, seconds


@given(
    counts=st.lists(st.integers(20, 60), min_size=2, max_size=6),
    imbalance=st.floats(1, 10),
    seed=seeds,
)
def test_long_tails_fall_exponentially(counts, imbalance, seed):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    rows = make_long_tailed(y, imbalance, random_state=seed)
    assert np.array_equal(rows, np.unique(rows))
    sizes = np.bincount(y[rows], minlength=len(counts))
    order = np.argsort(-np.bincount(y), kind="stable")
    head = sizes[order[0]]
    share = imbalance ** -(np.arange(len(counts)) / (len(counts) - 1))
    assert np.abs(sizes[order] - head * share).max() <= 1
    assert np.array_equal(rows, make_long_tailed(y, imbalance, random_state=seed))


def test_the_head_may_be_chosen():
    y = np.repeat([0, 1, 2], 100)
    rows = make_long_tailed(y, 4, n_head=40, random_state=0)
    assert np.bincount(y[rows]).tolist() == [40, 20, 10]


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        ([0, 1] * 10, {"imbalance": 0.5}, "imbalance=0.5; give a number of at least 1"),
        ([0, 1] * 10, {"imbalance": 11}, "imbalance=11 is not possible.*Lower it to 10"),
        ([0, 1] * 10, {"imbalance": 2, "n_head": 20}, "class 0 would need 20 rows, but has 10"),
        ([0, 1] * 10, {"imbalance": 2, "n_head": 0}, "n_head=0; give a whole number"),
        ([0, 0], {"imbalance": 2}, "one class"),
        ([], {}, "y is empty"),
    ],
)
def test_tails_that_cannot_be_had(y, options, message):
    with pytest.raises(ValueError, match=message):
        make_long_tailed(y, **options)
