"""Candidate sets made from true labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from appellate.candidates import as_candidates
from appellate.datasets import make_partial_labels


@given(
    y=st.lists(st.sampled_from("abcdef"), min_size=1, max_size=40),
    chance=st.floats(0, 1),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_truth_is_always_a_candidate(y, chance, seed):
    candidates = make_partial_labels(y, flip_probability=chance, random_state=seed)
    classes, columns = np.unique(y, return_inverse=True)
    assert candidates.shape == (len(y), len(classes))
    assert candidates.dtype == bool
    assert candidates[np.arange(len(y)), columns].all()


@pytest.mark.parametrize("chance", [0.1, 0.3, 0.7])
def test_false_labels_join_at_the_given_rate_and_independently(chance):
    y = np.arange(4000) % 5
    candidates = make_partial_labels(y, flip_probability=chance, random_state=0)
    false = candidates[y[:, None] != np.arange(5)].reshape(len(y), 4)
    low, high = binom.interval(1 - 1e-6, false.size, chance)
    assert low <= false.sum() <= high
    for j in range(4):  # every column at the same rate
        low, high = binom.interval(1 - 1e-6, len(y), chance)
        assert low <= false[:, j].sum() <= high
    low, high = binom.interval(1 - 1e-6, len(y), (1 - chance) ** 4)
    assert low <= (false.sum(axis=1) == 0).sum() <= high


@pytest.mark.parametrize(("chance", "size"), [(0, 1), (1, 3)])
def test_the_ends_of_the_range(chance, size):
    candidates = make_partial_labels(list("abcab"), flip_probability=chance, random_state=0)
    assert (candidates.sum(axis=1) == size).all()


def test_a_seed_repeats_and_another_differs():
    y = np.arange(200) % 7
    first = make_partial_labels(y, random_state=3)
    assert np.array_equal(first, make_partial_labels(y, random_state=3))
    assert np.array_equal(first, make_partial_labels(y, random_state=np.random.RandomState(3)))
    assert not np.array_equal(first, make_partial_labels(y, random_state=4))


def test_both_kinds_of_numpy_generators_serve():
    y = np.arange(50) % 4
    first, second = (
        make_partial_labels(y, random_state=np.random.default_rng(1)) for _ in range(2)
    )
    assert np.array_equal(first, second)


@pytest.mark.parametrize(
    "y",
    [
        [2, 0, 2, 1],
        ("b", "a", "b", "c"),
        [True, False, True, True],
        [2.5, 0.5, 2.5, 1.5],
        pd.Series(["b", "a", "b", "c"], index=[7, 8, 9, 10]),
        pl.Series(["b", "a", "b", "c"]),
        np.array(["2020-01-02", "2020-01-01", "2020-01-02", "2021-01-01"], dtype="datetime64[D]"),
    ],
)
def test_any_vector_of_labels_will_do(y):
    candidates = make_partial_labels(y, flip_probability=0, random_state=0)
    assert np.array_equal(candidates.argmax(axis=1), np.unique(y, return_inverse=True)[1])


def test_the_door_reads_the_result():
    y = np.array(["cat", "dog", "cow", "dog"])
    sets = as_candidates(make_partial_labels(y, random_state=0), classes=np.unique(y))
    assert sets.class_names.tolist() == ["cat", "cow", "dog"]


@pytest.mark.parametrize(
    ("y", "options", "error", "message"),
    [
        ([[0, 1], [1, 0]], {}, ValueError, r"y has shape \(2, 2\); give one true label a row"),
        (3, {}, ValueError, r"y has shape \(\)"),
        ([], {}, ValueError, "y is empty"),
        ([0.0, np.nan, np.nan], {}, ValueError, "no label in rows 1, 2. Drop"),
        (["a", None], {}, ValueError, "no label in row 1"),
        (np.array(["a", 1], dtype=object), {}, TypeError, r"cannot be sorted together \(int, str"),
        ([0, 1], {"flip_probability": -0.1}, ValueError, r"-0.1 is no probability"),
        ([0, 1], {"flip_probability": 1.1}, ValueError, r"1.1 is no probability"),
        ([0, 1], {"flip_probability": float("nan")}, ValueError, "nan is no probability"),
        ([0, 1], {"flip_probability": "0.3"}, TypeError, "'0.3' is no number"),
        ([0, 1], {"flip_probability": True}, TypeError, "True is no number"),
        ([0, 1], {"random_state": "seed"}, ValueError, "'seed' cannot be used to seed"),
    ],
)
def test_mistakes_are_named(y, options, error, message):
    with pytest.raises(error, match=message):
        make_partial_labels(y, **options)
