"""Candidate sets made from true labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from appellate.candidates import as_candidates
from appellate.datasets import generators, make_partial_labels
from appellate.datasets.strategies import OPTIONS, scale_to_mean

CLASSES = list("abcdef")
PARTNERS = dict(zip("abcdef", "bafecd", strict=True))
GROUPS = dict(zip("abcdef", "xxxyyy", strict=True))
# Every strategy with options that serve any y over six classes.
SETTINGS = {
    "uniform": {"flip_probability": 0.4},
    "fixed": {"n_false": 2},
    "cooccurring": {"epsilon": 0.7, "partners": PARTNERS},
    "pairwise": {"flip_probability": 0.4, "partners": PARTNERS},
    "hierarchical": {"flip_probability": 0.4, "groups": GROUPS},
    "instance_dependent": {"flip_probability": 0.4},
    "noisy": {"flip_probability": 0.4, "eta": 0.3},
    "set_first": {"bag_size": 3, "n_distractors": 1},
}
every_strategy = pytest.mark.parametrize("strategy", SETTINGS)
labels = st.lists(st.sampled_from(CLASSES), min_size=1, max_size=40)
seeds = st.integers(0, 2**32 - 1)


def make(y, strategy, seed, *, rename=None, **more):
    """Candidate sets over six classes, whose names may be changed."""
    rename = rename or {}
    options = dict(SETTINGS[strategy])
    if strategy == "instance_dependent":
        options["probabilities"] = np.random.default_rng(len(y)).random((len(y), 6))
    for name in ("partners", "groups"):
        if name in options:
            options[name] = {rename.get(k, k): rename.get(v, v) for k, v in options[name].items()}
    return make_partial_labels(
        [rename.get(label, label) for label in y],
        strategy=strategy,
        classes=[rename.get(label, label) for label in CLASSES],
        random_state=seed,
        **options | more,
    )


def codes(y):
    return np.array([CLASSES.index(label) for label in y])


def within(count, n, chance):
    low, high = binom.interval(1 - 1e-7, n, chance)
    return low <= count <= high


def test_every_strategy_is_tested():
    assert set(SETTINGS) == set(OPTIONS)


@every_strategy
@given(y=labels, seed=seeds)
def test_the_truth_is_a_candidate_unless_noisy(strategy, y, seed):
    candidates = make(y, strategy, seed)
    assert candidates.shape == (len(y), 6)
    assert candidates.dtype == bool
    assert candidates.any(axis=1).all()
    if strategy != "noisy":
        assert candidates[np.arange(len(y)), codes(y)].all()


@every_strategy
@given(y=labels, seed=seeds)
def test_a_seed_repeats(strategy, y, seed):
    first = make(y, strategy, seed)
    assert np.array_equal(first, make(y, strategy, seed))
    assert np.array_equal(first, make(y, strategy, np.random.RandomState(seed)))


@every_strategy
@given(y=labels, seed=seeds, names=st.permutations(["u", "v", "w", "x", "a", "b"]))
def test_the_names_of_the_classes_do_not_matter(strategy, y, seed, names):
    renamed = make(y, strategy, seed, rename=dict(zip(CLASSES, names, strict=True)))
    assert np.array_equal(renamed, make(y, strategy, seed))


@every_strategy
@given(y=labels, seed=seeds, fewest=st.integers(1, 6))
def test_no_set_is_smaller_than_allowed(strategy, y, seed, fewest):
    limits = {"fixed": 3, "cooccurring": 2, "pairwise": 2, "hierarchical": 3, "noisy": 5}
    if fewest > limits.get(strategy, 6):
        with pytest.raises(ValueError, match=f"min_candidates={fewest} is not possible"):
            make(y, strategy, seed, min_candidates=fewest)
        return
    candidates = make(y, strategy, seed, min_candidates=fewest)
    assert candidates.sum(axis=1).min() >= fewest
    if strategy != "noisy":  # sets are only ever filled up
        assert (make(y, strategy, seed) <= candidates).all()


@every_strategy
def test_another_seed_differs_and_so_does_another_generator(strategy):
    y = CLASSES * 40
    first = make(y, strategy, 3)
    assert not np.array_equal(first, make(y, strategy, 4))
    generator = [make(y, strategy, np.random.default_rng(1)) for _ in range(2)]
    assert np.array_equal(*generator)


@every_strategy
def test_the_summary_counts_what_was_realised(strategy):
    y = CLASSES * 50
    candidates, summary = make(y, strategy, 0, return_summary=True)
    sizes = candidates.sum(axis=1)
    assert summary.mean_size == pytest.approx(sizes.mean())
    assert summary.singleton_share == pytest.approx(np.mean(sizes == 1))
    covered = candidates[np.arange(len(y)), codes(y)].mean()
    assert summary.truth_coverage == pytest.approx(covered)
    assert (covered < 1) == (strategy == "noisy")
    assert summary.n_samples, summary.n_classes == candidates.shape


@every_strategy
def test_large_data_are_drawn_in_blocks(strategy, monkeypatch):
    y = CLASSES * 40
    whole = make(y, strategy, 0)
    monkeypatch.setattr(generators, "BLOCK", 100)
    parts = make(y, strategy, 0)
    if strategy == "noisy":  # empty sets are filled up block by block, with other draws
        whole, parts = (sets[np.arange(len(y)), codes(y)] for sets in (whole, parts))
    assert np.array_equal(whole, parts)


@pytest.mark.parametrize("chance", [0.1, 0.3, 0.7])
def test_uniform_false_labels_join_at_the_given_rate_and_independently(chance):
    y = np.arange(4000) % 5
    candidates = make_partial_labels(y, flip_probability=chance, random_state=0)
    false = candidates[y[:, None] != np.arange(5)].reshape(len(y), 4)
    assert within(false.sum(), false.size, chance)
    for j in range(4):  # every column at the same rate
        assert within(false[:, j].sum(), len(y), chance)
    assert within((false.sum(axis=1) == 0).sum(), len(y), (1 - chance) ** 4)


@given(n_false=st.integers(0, 4), seed=seeds)
def test_fixed_has_exactly_so_many_false_labels_all_equally_likely(n_false, seed):
    y = np.arange(500) % 5
    candidates = make_partial_labels(y, strategy="fixed", n_false=n_false, random_state=seed)
    assert (candidates.sum(axis=1) == n_false + 1).all()
    for shift in range(1, 5):
        joined = candidates[np.arange(500), (y + shift) % 5].sum()
        assert within(joined, 500, n_false / 4)


@given(epsilon=st.floats(0, 1), seed=seeds)
def test_cooccurring_takes_the_partner_with_epsilon(epsilon, seed):
    y = np.arange(500) % 5
    candidates = make_partial_labels(y, strategy="cooccurring", epsilon=epsilon, random_state=seed)
    assert (candidates.sum(axis=1) == 2).all()
    assert within(candidates[np.arange(500), (y + 1) % 5].sum(), 500, epsilon)
    for shift in range(2, 5):
        joined = candidates[np.arange(500), (y + shift) % 5].sum()
        assert within(joined, 500, (1 - epsilon) / 3)


@given(chance=st.floats(0, 1), seed=seeds)
def test_pairwise_adds_the_partner_and_nothing_else(chance, seed):
    y = np.arange(500) % 5
    candidates = make_partial_labels(
        y, strategy="pairwise", flip_probability=chance, random_state=seed
    )
    rows = np.arange(500)
    assert within(candidates[rows, (y + 1) % 5].sum(), 500, chance)
    candidates[rows, y] = candidates[rows, (y + 1) % 5] = False
    assert not candidates.any()


@given(chance=st.floats(0, 1), seed=seeds)
def test_hierarchical_stays_within_the_super_class(chance, seed):
    y, group = np.arange(600) % 6, np.array([0, 0, 1, 1, 1, 1])
    candidates = make_partial_labels(
        y, strategy="hierarchical", groups=group, flip_probability=chance, random_state=seed
    )
    same = group[y][:, None] == group
    assert not candidates[~same].any()
    false = candidates[same & (y[:, None] != np.arange(6))]
    assert within(false.sum(), false.size, chance)


@given(chance=st.floats(0, 1), eta=st.floats(0, 1), seed=seeds)
def test_noisy_leaves_the_truth_out_at_the_given_rate(chance, eta, seed):
    y = np.arange(600) % 6
    candidates = make_partial_labels(
        y, strategy="noisy", flip_probability=chance, eta=eta, random_state=seed
    )
    kept = candidates[np.arange(600), y]
    assert within((~kept).sum(), 600, eta)
    assert candidates.any(axis=1).all()
    false = candidates[kept][y[kept][:, None] != np.arange(6)]
    assert within(false.sum(), false.size, chance)


@given(chance=st.floats(0, 1), seed=seeds)
def test_instance_dependent_rates_follow_the_probabilities(chance, seed):
    rng = np.random.default_rng(seed)
    y, scores = np.arange(600) % 6, rng.random((600, 6)) ** 3
    candidates = make_partial_labels(
        y,
        strategy="instance_dependent",
        probabilities=scores,
        flip_probability=chance,
        random_state=seed,
    )
    false = y[:, None] != np.arange(6)
    assert within(candidates[false].sum(), false.sum(), chance)
    if 0.1 < chance < 0.6:
        assert scores[false & candidates].mean() > scores[false & ~candidates].mean()


@given(
    score=st.lists(st.floats(0, 10), min_size=4, max_size=30).map(np.array),
    mean=st.floats(0, 1),
)
def test_scores_are_scaled_to_the_mean_or_refused(score, mean):
    matrix = np.column_stack([score, np.zeros(len(score))])  # two classes, the second is true
    positive = np.count_nonzero(score > 0) / len(score)
    if mean > positive * (1 + 1e-9):
        with pytest.raises(ValueError, match=r"is not possible: only a share"):
            scale_to_mean(matrix, mean)
        return
    chance = scale_to_mean(matrix, mean)
    assert chance[:, 0].mean() == pytest.approx(mean, abs=1e-9)
    assert (chance >= 0).all()
    assert (chance <= 1).all()
    free = (chance[:, 0] < 1) & (score > 1e-100)
    ratio = chance[free, 0] / score[free]
    assert np.allclose(ratio, ratio[0] if free.any() else 0, rtol=1e-6)


def test_a_classifier_confuses_what_looks_alike():
    X, y = load_iris(return_X_y=True)
    options = {"strategy": "instance_dependent", "X": X, "flip_probability": 0.2}
    candidates = make_partial_labels(y, random_state=0, **options)
    assert candidates[y == 0].sum() < 55  # setosa is apart, the other two overlap
    assert candidates[y == 1, 2].mean() > 0.3
    assert np.array_equal(candidates, make_partial_labels(y, random_state=0, **options))
    other = make_partial_labels(y, random_state=0, estimator=GaussianNB(), **options)
    assert not np.array_equal(candidates, other)


def test_classes_that_do_not_occur_are_never_confused_with():
    X, y = load_iris(return_X_y=True)
    candidates = make_partial_labels(
        y, classes=[0, 1, 2, 3], strategy="instance_dependent", X=X, random_state=0
    )
    assert candidates.shape == (150, 4)
    assert not candidates[:, 3].any()


@pytest.mark.parametrize(("chance", "size"), [(0, 1), (1, 3)])
def test_the_ends_of_the_range(chance, size):
    candidates = make_partial_labels(list("abcab"), flip_probability=chance, random_state=0)
    assert (candidates.sum(axis=1) == size).all()


def test_pure_noise_is_one_wrong_label():
    y = np.arange(200) % 4
    candidates, summary = make_partial_labels(
        y, strategy="noisy", eta=1, flip_probability=0, return_summary=True, random_state=0
    )
    assert (candidates.sum(axis=1) == 1).all()
    assert summary.truth_coverage == 0


def test_options_of_sequences_are_in_the_order_of_the_classes():
    y = list("abc") * 5
    candidates = make_partial_labels(
        y, strategy="pairwise", partners=["c", "a", "b"], flip_probability=1, random_state=0
    )
    assert candidates[:3].astype(int).tolist() == [[1, 0, 1], [1, 1, 0], [0, 1, 1]]


def test_none_means_the_default():
    y = np.arange(50) % 4
    first = make_partial_labels(y, random_state=0)
    assert np.array_equal(first, make_partial_labels(y, flip_probability=None, random_state=0))
    assert np.array_equal(first, make_partial_labels(y, n_false=None, random_state=0))


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
        ([0, 1], {"flip_probability": -0.1}, ValueError, r"-0.1 is not a probability"),
        ([0, 1], {"flip_probability": 1.1}, ValueError, r"1.1 is not a probability"),
        ([0, 1], {"flip_probability": float("nan")}, ValueError, "nan is not a probability"),
        ([0, 1], {"flip_probability": "0.3"}, TypeError, "'0.3' is not a number"),
        ([0, 1], {"flip_probability": True}, TypeError, "True is not a number"),
        ([0, 1], {"random_state": "seed"}, ValueError, "'seed' cannot be used to seed"),
        ([0, 1], {"classes": [0]}, ValueError, "unknown class 1"),
        ([0, 1], {"classes": [0, 0, 1]}, ValueError, "duplicate 0"),
        ([0, 1], {"min_candidates": 3}, ValueError, "min_candidates=3 is not possible with 2"),
        ([0, 1], {"min_candidates": 0}, ValueError, "number from 1 to 2"),
        ([0, 1], {"min_candidates": 1.5}, TypeError, "1.5 is not a whole number"),
        ([0, 1], {"strategy": "unifrom"}, ValueError, "Did you mean 'uniform'"),
        ([0, 1], {"flip_probabilty": 1}, TypeError, "Did you mean 'flip_probability'"),
        ([0, 1], {"flip_probability": 0, "min_candidates": 2}, ValueError, "at most 1"),
        ([0, 1], {"n_false": 1}, ValueError, "'uniform' does not use n_false="),
    ],
)
def test_mistakes_are_named(y, options, error, message):
    with pytest.raises(error, match=message):
        make_partial_labels(y, **options)


@pytest.mark.parametrize(
    ("y", "options", "error", "message"),
    [
        (
            "abc",
            {"strategy": "fixed", "n_false": 3},
            ValueError,
            "n_false=3 is not possible with 3",
        ),
        ("abc", {"strategy": "fixed", "n_false": -1}, ValueError, "from 0 to 2"),
        ("abc", {"strategy": "fixed", "n_false": True}, TypeError, "True is not a whole number"),
        ("ab", {"strategy": "cooccurring"}, ValueError, "two classes.*Set epsilon=1"),
        ("aa", {"strategy": "cooccurring"}, ValueError, "one class, which has no partner"),
        ("abc", {"strategy": "cooccurring", "epsilon": 2}, ValueError, "epsilon=2 is not a prob"),
        ("abc", {"strategy": "pairwise", "partners": "ab"}, ValueError, "2 entries.*3 classes"),
        ("abc", {"strategy": "pairwise", "partners": "bbc"}, ValueError, "'b' is its own partner"),
        ("abc", {"strategy": "pairwise", "partners": "bcz"}, ValueError, "unknown class: 'z'"),
        (
            "abc",
            {"strategy": "pairwise", "partners": {"a": "b"}},
            ValueError,
            "lacks the class 'b', 'c'",
        ),
        ("abc", {"strategy": "hierarchical"}, ValueError, "needs groups="),
        ("abc", {"strategy": "noisy", "eta": 7}, ValueError, "eta=7 is not a probability"),
        ("aa", {"strategy": "noisy"}, ValueError, "one class; without it"),
        ("abc", {"strategy": "noisy", "min_candidates": 3}, ValueError, "at most 2"),
        ("abc", {"strategy": "instance_dependent"}, ValueError, "needs X="),
        ("abc", {"strategy": "set_first", "bag_size": 0}, ValueError, "not a number of rows"),
        ("abc", {"strategy": "set_first", "bags": [1, 1]}, ValueError, "2 entries.*3 rows"),
        ("abc", {"strategy": "set_first", "n_distractors": 3}, ValueError, "n_distractors=3"),
    ],
)
def test_what_cannot_be_had_is_an_error(y, options, error, message):
    with pytest.raises(error, match=message):
        make_partial_labels(list(y), **options)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"X": np.eye(3)}, ValueError, "X has 3 rows, but y has 4"),
        ({"X": np.full((4, 2), np.nan)}, ValueError, "NaN"),
        (
            {"X": np.eye(4), "estimator": LinearSVC()},
            TypeError,
            "not a classifier with predict_proba",
        ),
        ({"probabilities": np.eye(4)}, ValueError, r"shape \(4, 4\); \(4, 2\) is needed"),
        ({"probabilities": -np.ones((4, 2))}, ValueError, "negative in rows 0, 1, 2, 3"),
        ({"probabilities": np.zeros((4, 2))}, ValueError, "only a share of 0"),
        ({"probabilities": np.ones((4, 2)), "X": np.eye(4)}, ValueError, "leave X= out"),
    ],
)
def test_mistakes_with_features(options, error, message):
    with pytest.raises(error, match=message):
        make_partial_labels([0, 0, 1, 1], strategy="instance_dependent", **options)


@pytest.mark.parametrize(
    ("y", "message"), [([0, 0, 1], "class .*1.* has one sample"), ([0, 0, 0], "one class; a clas")]
)
def test_a_classifier_needs_classes_to_confuse(y, message):
    with pytest.raises(ValueError, match=message):
        make_partial_labels(y, strategy="instance_dependent", X=np.eye(3))


def test_bags_share_the_union_of_their_labels():
    y, bags = list("aabcddefab"), list("xxxyyyzzzw")
    sets = make_partial_labels(y, strategy="set_first", bags=bags, classes=CLASSES)
    expected = {"x": "ab", "y": "cd", "z": "efa", "w": "b"}
    for row, bag in zip(sets, bags, strict=True):
        assert {CLASSES[j] for j in np.flatnonzero(row)} == set(expected[bag])
    more = make_partial_labels(
        y, strategy="set_first", bags=bags, n_distractors=2, classes=CLASSES, random_state=0
    )
    assert (sets <= more).all()
    np.testing.assert_array_equal(more.sum(axis=1), sets.sum(axis=1) + 2)


def test_frequent_labels_are_in_more_sets_but_no_likelier_within_them():
    rng = np.random.RandomState(0)
    y = rng.choice(6, size=6000, p=[0.5, 0.2, 0.12, 0.08, 0.06, 0.04])
    ratios = {}
    for strategy in ("uniform", "set_first"):
        sets = make_partial_labels(y, strategy=strategy, random_state=0)
        expected = (sets / sets.sum(axis=1, keepdims=True)).sum(axis=0)
        ratios[strategy] = np.bincount(y) / expected
    assert sets.sum(axis=1).mean() > 2  # though y and the bags have the same seed
    assert np.ptp(np.log(ratios["set_first"])) < 0.5 * np.ptp(np.log(ratios["uniform"]))
    sizes = make_partial_labels(y, strategy="set_first", bag_size=8, random_state=0).sum(axis=1)
    assert sizes.mean() > sets.sum(axis=1).mean()
