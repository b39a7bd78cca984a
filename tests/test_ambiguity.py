"""How the sets arose, and whether the labels are ordered."""

from __future__ import annotations

import numpy as np
import pytest

from appellate import JuryClassifier
from appellate.datasets import make_partial_labels
from appellate.evidence.ambiguity import choose_tau, describe, read_ambiguity
from appellate.evidence.order import label_places


def make_rows(n=500, l=6, seed=0):
    """Overlapping classes, some of them rare."""
    rng = np.random.RandomState(seed)
    prior = 0.7 ** np.arange(l)
    truth = rng.choice(l, size=n, p=prior / prior.sum())
    return 1.5 * rng.normal(size=(l, 5))[truth] + rng.normal(size=(n, 5)), truth


@pytest.mark.parametrize("seed", [0, 1])
def test_look_alikes_are_told_from_sets_that_came_first(seed):
    X, truth = make_rows(seed=seed)
    similar = make_partial_labels(
        truth, strategy="instance_dependent", flip_probability=0.5, X=X, random_state=seed
    )
    first = make_partial_labels(truth, strategy="set_first", bag_size=4, random_state=seed)
    one, two = (JuryClassifier("kernel", random_state=0).fit(X, sets) for sets in (similar, first))
    assert one.resemblance_ > 0.65 > two.resemblance_
    assert one.ambiguity_ == 0
    assert two.ambiguity_ > 0


def test_resemblance_is_none_without_label_first_rounds():
    X, truth = make_rows(n=60)
    sets = make_partial_labels(truth, flip_probability=0.4, random_state=0)
    jury = JuryClassifier("kernel", ambiguity="set-first", random_state=0).fit(X, sets)
    assert jury.resemblance_ is None
    assert describe(jury.ambiguity_, None, 0) == [
        "The sets came first: frequent labels are in more sets, and count less (tau 1)."
    ]


def test_tau_follows_the_rules_in_their_order():
    gain = {0.0: [0.5], 0.5: [0.53], 1.0: [0.54]}
    assert choose_tau({0.0: [-0.1], 1.0: [-0.01]}, 0.5) == 0
    assert choose_tau({0.0: [0.5], 0.5: [0.505], 1.0: [0.509]}, 0.9) == 0.5
    same = {0.0: [0.5], 0.5: [0.505], 1.0: [0.509]}
    assert choose_tau(same, 0.5, alike="label-first") == 0
    assert choose_tau(gain, 0.5, alike="label-first") == 1
    assert choose_tau(gain, 0.9) == 0
    assert choose_tau(gain, 0.5) == 1
    assert choose_tau(gain) == 1
    assert choose_tau(gain, 0.5, ordered=True) == 0
    assert choose_tau({0.0: [0.5], 0.5: [0.6], 1.0: [0.54]}, 0.5, ordered=True) == 0.5
    assert choose_tau({0.0: [0.5], 0.5: [0.5399], 1.0: [0.54]}, 0.5) == 0.5


def test_words_are_read_as_numbers():
    assert read_ambiguity("label-first") == (0.0,)
    assert read_ambiguity(0.3) == (0.3,)


# -- order ----------------------------------------------------------------------------------


def make_ages(n=400, l=20, seed=0):
    """Ages with guesses around them."""
    rng = np.random.RandomState(seed)
    age = rng.randint(l, size=n)
    X = np.column_stack([age, age**2 / l]) + 3 * rng.normal(size=(n, 2))
    low, high = rng.randint(4, size=(2, n))
    sets = np.arange(l) >= (age - low)[:, None]
    return X, sets & (np.arange(l) <= (age + high)[:, None]), age


def test_an_order_is_found_and_pays():
    X, sets, age = make_ages()
    found = JuryClassifier("kernel", random_state=0).fit(X[:200], sets[:200])
    without = JuryClassifier("kernel", order=None, random_state=0).fit(X[:200], sets[:200])
    assert found.order_width_ > 0
    assert without.order_width_ == 0
    errors = [np.abs(model.predict(X[200:]) - age[200:]).mean() for model in (found, without)]
    assert errors[0] < errors[1] - 0.1


def test_shuffled_labels_have_no_order_unless_it_is_given():
    X, sets, _ = make_ages()
    shuffle = np.random.RandomState(1).permutation(20)
    mixed = np.empty_like(sets)
    mixed[:, shuffle] = sets
    jury = JuryClassifier("kernel", random_state=0).fit(X[:200], mixed[:200])
    assert jury.order_width_ == 0
    told = JuryClassifier("kernel", order=shuffle, random_state=0).fit(X[:200], mixed[:200])
    plain = JuryClassifier("kernel", random_state=0).fit(X[:200], sets[:200])
    assert told.order_width_ == plain.order_width_ > 0
    np.testing.assert_array_equal(told.predict(X[200:]), shuffle[plain.predict(X[200:])])


def test_a_full_jury_smooths_forests_and_networks_too():
    from sklearn.ensemble import RandomForestRegressor

    X, sets, age = make_ages()
    jury = JuryClassifier([RandomForestRegressor(10)], random_state=0).fit(X[:200], sets[:200])
    alone = JuryClassifier("kernel", random_state=0).fit(X[:200], sets[:200])
    assert jury.order_width_ == alone.order_width_ > 0
    errors = [np.abs(model.predict(X[200:]) - age[200:]).mean() for model in (jury, alone)]
    assert errors[0] < errors[1] + 0.1


def test_numbers_in_texts_are_ordered_as_numbers():
    np.testing.assert_array_equal(label_places(["10", "9", "100"]), [1, 0, 2])
    assert label_places(["10", "nine"]) is None
    assert label_places([1, 2, 3], None) is None


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (["S", "M"], "does not contain L"),
        (["S", "M", "L", "XL"], "contains unknown labels: XL"),
        (["S", "M", "L", "M"], "repeats M"),
        ("size", "order='size': it must be"),
    ],
)
def test_a_wrong_order_is_named(order, message):
    with pytest.raises(ValueError, match=message):
        label_places(["L", "M", "S"], order)
