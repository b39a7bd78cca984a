"""Costs of wrong labels: their matrices, and decisions that keep to them."""

from __future__ import annotations

from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appellate import (
    PLCPClassifier,
    PLKNNClassifier,
    PLSVMClassifier,
    SUREClassifier,
    as_candidates,
)
from appellate.core.problem import Problem
from appellate.core.results import Result
from appellate.evidence.costs import candidate_costs, cost_matrix, describe_cost, expected_costs
from appellate.numerics.entries import CandidateEntries
from appellate.numerics.simplex import project_entries
from appellate.testing import make_clusters

# -- the matrices -------------------------------------------------------------------------


def test_no_cost_has_no_matrix():
    assert cost_matrix(None, ["a", "b"]) is None


@pytest.mark.parametrize("ages", [[3, 10, 21], ["3", "10", "21"], [3.0, 10.0, 21.0]])
def test_numbers_are_as_far_apart_as_their_values(ages):
    np.testing.assert_array_equal(
        cost_matrix("absolute", ages), [[0, 7, 18], [7, 0, 11], [18, 11, 0]]
    )
    np.testing.assert_array_equal(cost_matrix("within:7", ages), [[0, 0, 1], [0, 0, 1], [1, 1, 0]])


@pytest.mark.parametrize("names", [["S", "M", "L"], ["<18", "18", "65"], ["1", "2", "nan"]])
def test_names_that_are_no_numbers_count_in_places(names):
    np.testing.assert_array_equal(
        cost_matrix("absolute", names), [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    )


def test_tolerance_is_not_lost_to_rounding():
    assert cost_matrix("within:0.1", [0.1, 0.2, 0.3]).tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]


def test_ordinal_is_one_minus_a_gaussian():
    matrix = cost_matrix("ordinal:2.5", [0, 1, 4])
    expected = [[1 - np.exp(-((a - b) ** 2) / 12.5) for b in (0, 1, 4)] for a in (0, 1, 4)]
    np.testing.assert_allclose(matrix, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("cost", "classes", "said"),
    [
        ("absolut", [1, 2], "Did you mean 'absolute'"),
        ("within", [1, 2], "0 or more"),
        ("within:-1", [1, 2], "0 or more"),
        ("within:three", [1, 2], "0 or more"),
        ("within:inf", [1, 2], "0 or more"),
        ("within:1.2.3", [1, 2], "0 or more"),
        ("ordinal:0", [1, 2], "above 0"),
        ("ordinal:1e400", [1, 2], "above 0"),
        ("", [1, 2], "unknown cost"),
        ("tree", ["cat", "dog"], "unknown cost 'tree'"),
        ([[0, 1], [1, 0]], [1, 2, 3], r"\(3, 3\)"),
        ([[0, np.nan], [1, 0]], ["a", "b"], "predicting 'b' where 'a' is true is not finite"),
        ([[1, 0], [0, 1]], ["a", "b"], "similarities"),
        ([["x", "y"], ["z", "w"]], ["a", "b"], "not a number"),
    ],
)
def test_errors_say_what_to_do(cost, classes, said):
    with pytest.raises(ValueError, match=said):
        cost_matrix(cost, classes)


def test_names_of_a_data_frame_say_which_cost_is_which():
    pd = pytest.importorskip("pandas")
    matrix = np.array([[0, 1, 5], [1, 0, 1], [2, 1, 0]])
    frame = pd.DataFrame(matrix, index=[30, 20, 10], columns=[30, 20, 10])
    for classes in ([10, 20, 30], ["10", "20", "30"]):
        np.testing.assert_array_equal(cost_matrix(frame, classes), matrix[::-1, ::-1])
    np.testing.assert_array_equal(cost_matrix(pd.DataFrame(matrix), [10, 20, 30]), matrix)
    with pytest.raises(ValueError, match=r"index 30, 20, 10, but the classes are a, b, c\."):
        cost_matrix(frame, ["a", "b", "c"])


def test_descriptions():
    assert [describe_cost(c) for c in (None, "within:3", np.eye(3))] == [
        "",
        "within:3",
        "3 x 3 matrix",
    ]


# -- the decision, as properties ----------------------------------------------------------


@st.composite
def problems(draw):
    """Draw probabilities, candidates and a cost whose diagonal is the smallest of its row."""
    n, l = draw(st.integers(1, 8)), draw(st.integers(1, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    chances = rng.dirichlet(np.full(l, draw(st.sampled_from([0.1, 1.0, 10.0]))), size=n)
    candidates = rng.uniform(size=(n, l)) < 0.5
    candidates[np.arange(n), rng.integers(l, size=n)] = True
    cost = rng.uniform(size=(l, l)) * 5
    np.fill_diagonal(cost, 0)
    return chances, candidates, cost


def inside(chances, candidates):
    """Confidences of the candidates, as entries."""
    entries = CandidateEntries(candidates)
    values = entries.gather(chances) + 1e-3
    return values / entries.spread(entries.row_sum(values)), entries


@given(problems())
def test_zero_one_cost_is_the_most_likely_label(problem):
    chances, candidates, cost = problem
    zero_one = 1 - np.eye(len(cost))
    np.testing.assert_array_equal(
        expected_costs(chances, zero_one).argmin(axis=1), chances.argmax(axis=1)
    )
    values, entries = inside(chances, candidates)
    np.testing.assert_array_equal(
        entries.argmax(-candidate_costs(values, entries, zero_one)), entries.argmax(values)
    )


@given(problems())
def test_no_other_label_is_expected_to_cost_less(problem):
    chances, candidates, cost = problem
    chosen = expected_costs(chances, cost).argmin(axis=1)
    for p, j in zip(chances, chosen, strict=True):
        each = [sum(p[k] * cost[k, other] for k in range(len(p))) for other in range(len(p))]
        assert each[j] <= min(each) + 1e-9
    values, entries = inside(chances, candidates)
    labels = entries.argmax(-candidate_costs(values, entries, cost))
    matrix = entries.scatter(values)
    for p, j, allowed in zip(matrix, labels, candidates, strict=True):
        assert allowed[j]
        each = {o: float(p @ cost[:, o]) for o in np.flatnonzero(allowed)}
        assert each[j] <= min(each.values()) + 1e-9


@given(problems(), st.floats(-1e6, 1e6))
def test_a_constant_added_changes_nothing(problem, constant):
    chances, _, cost = problem
    names = list(range(len(cost)))
    decisions = [
        expected_costs(chances, cost_matrix(c, names)).argmin(axis=1)
        for c in (cost, cost + constant)
    ]
    if abs(constant) < 1e3:  # beyond, the sum itself has rounded the costs
        np.testing.assert_array_equal(*decisions)
    else:
        losses = [(chances @ cost)[np.arange(len(chances)), d] for d in decisions]
        np.testing.assert_allclose(*losses, atol=1e-8)


@given(problems(), st.randoms(use_true_random=False))
def test_permuted_labels_with_permuted_costs_change_nothing(problem, random):
    chances, candidates, cost = problem
    order = np.array(random.sample(range(len(cost)), len(cost)))
    plain = expected_costs(chances, cost).argmin(axis=1)
    permuted = expected_costs(chances[:, order], cost[np.ix_(order, order)]).argmin(axis=1)
    np.testing.assert_array_equal(order[permuted], plain)
    values, entries = inside(chances, candidates)
    plain = entries.argmax(-candidate_costs(values, entries, cost))
    values, entries = inside(chances[:, order], candidates[:, order])
    permuted = entries.argmax(-candidate_costs(values, entries, cost[np.ix_(order, order)]))
    np.testing.assert_array_equal(order[permuted], plain)


@given(problems(), st.floats(1e-3, 1e3))
def test_the_unit_of_cost_does_not_matter(problem, unit):
    chances, _, cost = problem
    np.testing.assert_array_equal(
        expected_costs(chances, cost * unit).argmin(axis=1),
        expected_costs(chances, cost).argmin(axis=1),
    )


@given(st.integers(2, 40), st.integers(0, 2**32 - 1), st.sampled_from([np.float64, np.float32]))
def test_ties_go_to_the_first_label_whatever_the_rounding(l, seed, dtype):
    """Windows over the same probabilities in another order of summation are tied."""
    rng = np.random.default_rng(seed)
    chances = np.zeros((1, 3 * l))
    chances[0, l : 2 * l] = rng.dirichlet(np.ones(l))
    windows = cost_matrix(f"within:{l}", range(3 * l))
    costs = expected_costs(chances.astype(dtype), windows)
    # Everything from l - 1 .. 2 l covers all the mass; ``first`` is found by exact counting.
    support = np.flatnonzero(chances[0])
    first = min(j for j in range(3 * l) if np.abs(support - j).max() <= l)
    assert costs.argmin() == first
    tied = [j for j in range(3 * l) if np.abs(support - j).max() <= l]
    assert (costs[0, tied] == costs.min()).all()


def test_ties_are_counted():
    """With probabilities .5, 0, .5 every middle label costs the same."""
    X = np.array([[0.0], [0.0], [5.0], [5.0]])
    candidates = np.array([[1, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 0]], dtype=bool)
    values = np.array([0.5, 0.5, 0.5, 0.5, 0.2, 0.2, 0.6, 1.0])
    problem = Problem(X, as_candidates(candidates), cost=cost_matrix("absolute", range(3)))
    model = SUREClassifier()
    result = Result(*[values] * 3, 1, lambda: Mock(training_output=np.zeros((4, 3))))
    model._keep(problem, result)
    np.testing.assert_array_equal(model.transduction_, [0, 0, 2, 1])
    assert model.n_ties_ == 2


@pytest.mark.parametrize("block", [1, 7, 20, 10**6])
def test_blocks_do_not_matter(block, monkeypatch):
    rng = np.random.default_rng(0)
    candidates = rng.uniform(size=(9, 4)) < 0.5
    candidates[:, 0] = True
    values, entries = inside(rng.dirichlet(np.ones(4), size=9), candidates)
    cost = rng.uniform(size=(4, 4))
    expected = entries.gather(entries.scatter(values) @ cost)
    monkeypatch.setattr("appellate.evidence.costs._BLOCK", block)
    np.testing.assert_allclose(candidate_costs(values, entries, cost), expected, atol=1e-12)


# -- in the classifiers -------------------------------------------------------------------


@pytest.fixture(scope="module")
def ages():
    """Noisy features of 15 ordered labels, candidates around the truth."""
    rng = np.random.default_rng(0)
    truth = rng.integers(15, size=150)
    X = np.column_stack([truth + rng.normal(scale=2, size=150), rng.normal(size=150)])
    candidates = np.abs(np.arange(15) - truth[:, None]) <= rng.integers(0, 4, size=(150, 1))
    candidates &= rng.uniform(size=(150, 15)) < 0.7
    candidates[np.arange(150), truth] = True
    return X, candidates, truth


CASES = [
    SUREClassifier(),
    PLKNNClassifier(),
    PLSVMClassifier(random_state=0),
    PLCPClassifier(SUREClassifier()),
    PLCPClassifier(SUREClassifier(), head="mean"),
]


@pytest.mark.parametrize("model", CASES, ids=repr)
@pytest.mark.parametrize("cost", ["absolute", "within:2", "ordinal:2"])
def test_predictions_match_an_independent_computation(model, cost, ages):
    X, candidates, _ = ages
    fitted = model.set_params(cost=cost).fit(X[:100], candidates[:100])
    distance = np.abs(np.subtract.outer(np.arange(15.0), np.arange(15.0)))
    matrix = {
        "absolute": distance,
        "within:2": (distance > 2) * 1.0,
        "ordinal:2": 1 - np.exp(-(distance**2) / 8),
    }[cost]
    chances = fitted.predict_proba(X[100:])
    expected = np.einsum("ik,kj->ij", chances, matrix)
    predicted = fitted.predict(X[100:])
    rows = np.arange(50)
    np.testing.assert_allclose(expected[rows, predicted], expected.min(axis=1), atol=1e-12)
    clear = np.sort(expected, axis=1)[:, 1] > expected.min(axis=1) + 1e-9
    np.testing.assert_array_equal(predicted[clear], expected.argmin(axis=1)[clear])
    np.testing.assert_allclose(fitted.decision_function(X[100:]), -expected, atol=1e-12)

    shares = fitted.confidence_
    if not isinstance(model, PLKNNClassifier | PLSVMClassifier):
        entries = CandidateEntries(candidates[:100])
        output = entries.gather(fitted.training_output_)
        shares = entries.scatter(project_entries(output, entries))
    among = np.where(candidates[:100], shares @ matrix, np.inf)
    chosen = among[np.arange(100), fitted.transduction_]
    np.testing.assert_allclose(chosen, among.min(axis=1), atol=1e-9)


@pytest.mark.parametrize("model", CASES, ids=repr)
def test_probabilities_know_no_cost(model, ages):
    X, candidates, _ = ages
    plain, costly = (
        model.set_params(cost=cost).fit(X, candidates).predict_proba(X)
        for cost in (None, "absolute")
    )
    np.testing.assert_array_equal(plain, costly)


def test_zero_one_matrix_predicts_as_no_cost(ages):
    X, candidates, _ = ages
    for model in CASES:
        plain = model.set_params(cost=None).fit(X, candidates)
        labels = plain.transduction_, plain.predict(X)
        zero_one = model.set_params(cost=1 - np.eye(15)).fit(X, candidates)
        np.testing.assert_array_equal(zero_one.transduction_, labels[0])
        np.testing.assert_array_equal(zero_one.predict(X), labels[1])


def test_near_misses_get_nearer(ages):
    X, candidates, truth = ages
    model = PLCPClassifier(SUREClassifier())
    errors = [
        np.abs(
            model.set_params(cost=cost).fit(X[:100], candidates[:100]).predict(X[100:])
            - truth[100:]
        )
        for cost in (None, "absolute")
    ]
    assert errors[1].mean() < errors[0].mean()


def test_coupled_labels_and_docket_follow_the_cost(ages):
    X, candidates, _ = ages
    model = PLCPClassifier(SUREClassifier(), cost="absolute").fit(X, candidates)
    for labels, shares in (
        (model.verdict_, model.verdict_confidence_),
        (model.transduction_, model.confidence_),
    ):
        among = np.where(candidates, shares @ model.cost_, np.inf)
        np.testing.assert_allclose(among[np.arange(150), labels], among.min(axis=1), atol=1e-9)
    np.testing.assert_array_equal(model.label_history_[0], model.verdict_)
    np.testing.assert_array_equal(model.label_history_[-1], model.transduction_)
    np.testing.assert_array_equal(model.overturned_, model.verdict_ != model.transduction_)
    assert (model.estimator_.cost_ == model.cost_).all()

    table = model.docket(output="dict")
    among = np.where(candidates, model.confidence_ @ model.cost_, np.inf)
    first, second = np.sort(among, axis=1)[:, :2].T
    margin = np.where(candidates.sum(axis=1) > 1, (second - first) / 14, 1)
    np.testing.assert_allclose(table["margin"], margin, atol=1e-9)
    np.testing.assert_array_equal(table["label"], model.transduction_)


def test_zero_one_margins_are_those_without_a_cost(ages):
    X, candidates, _ = ages
    plain, zero_one = (
        PLCPClassifier(SUREClassifier(), cost=cost).fit(X, candidates).docket(output="dict")
        for cost in (None, 1 - np.eye(15))
    )
    np.testing.assert_allclose(plain["margin"], zero_one["margin"], atol=1e-9)


def test_named_labels_count_in_the_order_of_the_classes(ages):
    """Sizes sort wrongly by name; the order of the candidate sets is the one that counts."""
    X, candidates, _ = ages
    names = [f"size-{chr(ord('z') - j)}" for j in range(15)]
    sets = as_candidates(["|".join(np.array(names)[row]) for row in candidates], classes=names)
    named = SUREClassifier(cost="absolute").fit(X, sets)
    plain = SUREClassifier(cost="absolute").fit(X, candidates)
    np.testing.assert_array_equal(named.predict(X), np.array(names)[plain.predict(X)])


def test_costs_are_checked_before_any_work(ages):
    X, candidates, _ = ages
    with pytest.raises(ValueError, match="15"):
        SUREClassifier(cost=np.zeros((3, 3))).fit(X, candidates)
    with pytest.raises(ValueError, match="Give it to the coupled classifier"):
        PLCPClassifier(SUREClassifier(cost="absolute")).fit(X, candidates)


def test_single_precision_decides_alike():
    X, candidates, _ = make_clusters(n_classes=5)
    labels = [
        SUREClassifier(cost="absolute").fit(X.astype(kind), candidates).predict(X.astype(kind))
        for kind in (np.float32, np.float64)
    ]
    np.testing.assert_array_equal(*labels)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_smoothing_by_a_gaussian_is_the_ordinal_cost(seed):
    """The issue's reading: convolve the probabilities, take the largest."""
    rng = np.random.default_rng(seed)
    chances = rng.dirichlet(np.full(20, 0.3), size=5)
    smoothed = np.zeros_like(chances)
    for shift in range(-19, 20):
        part = np.zeros_like(chances)
        if shift >= 0:
            part[:, shift:] = chances[:, : 20 - shift]
        else:
            part[:, :shift] = chances[:, -shift:]
        smoothed += np.exp(-(shift**2) / 18) * part
    costs = expected_costs(chances, cost_matrix("ordinal:3", range(20)))
    np.testing.assert_allclose(1 - smoothed, costs, atol=1e-12)
    np.testing.assert_array_equal(smoothed.argmax(axis=1), costs.argmin(axis=1))
