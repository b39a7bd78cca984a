"""Explanations: the parts sum to the model's score, and each part is what its name says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.ensemble import RandomForestRegressor

from appellate import JuryClassifier, TestimonyClassifier, as_answers
from appellate.core.explanation import Explanation, Part, read_rows
from appellate.evidence.likelihood import Evidence
from appellate.io import load_model, save_model
from appellate.methods.jury.explanation import find_similar
from appellate.methods.testimony import rounds
from appellate.numerics.kernels import GaussianKernel


def crowd(n=90, people=5, l=3, seed=0):
    """Features, a wide table of answers with gaps, and the truth; all names are texts."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(l, size=n)
    X = 1.5 * np.eye(l)[truth] + rng.normal(size=(n, l))
    said = np.where(
        rng.random((n, people)) < 0.7, truth[:, None], rng.integers(l, size=(n, people))
    )
    table = np.array(["cat", "dog", "owl"], dtype=object)[said]
    table[rng.random((n, people)) < 0.4] = None
    return X, table, truth


def sources(n=90, seed=0):
    """Labelling functions: each says one label only, or nothing."""
    rng = np.random.default_rng(seed)
    X, _, truth = crowd(n, seed=seed)
    names, table = np.array(["cat", "dog", "owl"], dtype=object), np.full((n, 6), None)
    for j in range(6):
        speaks = rng.random(n) < np.where(truth == j % 3, 0.7, 0.1)
        table[speaks, j] = names[j % 3]
    return X, table


def probabilities(truth, l=3, seed=1):
    rng = np.random.default_rng(seed)
    made = softmax(np.eye(l)[truth] + rng.normal(size=(len(truth), l)), axis=1)
    made[::7] = np.nan  # rows that the model says nothing of
    return made


def gap(model):
    """Largest difference between the softmax of the parts' sum and the confidence."""
    rows = model.explain(np.arange(len(model.confidence_)))
    return max(np.abs(softmax(each.scores) - model.confidence_[each.row]).max() for each in rows)


def with_sets(table):
    """The same answers; some annotators name two labels."""
    cells = [[None if cell is None else {cell} for cell in row] for row in table]
    for i in range(0, len(cells), 3):
        cells[i][0] = {"cat", "owl"}
    return cells


CASES = {
    "people": lambda: (*crowd()[:2], {}),
    "people without features": lambda: (None, crowd()[1], {}),
    "functions": lambda: (*sources(), {}),
    "functions without features": lambda: (None, sources()[1], {}),
    "people and functions": lambda: (
        crowd()[0],
        np.hstack([crowd()[1][:, :1], sources()[1]]),
        {},
    ),
    "people and probabilities": lambda: (
        *crowd()[:2],
        {"probabilities": {"net": probabilities(crowd()[2])}},
    ),
    "functions and probabilities": lambda: (
        *sources(),
        {"probabilities": {"net": probabilities(crowd()[2])}},
    ),
    "reviewed": lambda: (
        *crowd()[:2],
        {"decisions": np.where(np.arange(90) % 9 == 0, "dog", None)},
    ),
    "audited": lambda: (
        *crowd()[:2],
        {
            "decisions": np.where(
                np.arange(90) < 30, np.array(["cat", "dog", "owl"])[crowd()[2]], None
            ),
            "audited": np.arange(90) < 30,
        },
    ),
    "sets that annotators named": lambda: (crowd()[0], with_sets(crowd()[1]), {}),
    "sets of many annotators": lambda: (None, with_sets(crowd(people=9)[1]), {}),
    "probabilities without features": lambda: (
        None,
        crowd(people=9)[1],
        {"probabilities": {"net": probabilities(crowd()[2])}},
    ),
    "people and functions without features": lambda: (
        None,
        np.hstack([crowd()[1][:, :1], sources()[1]]),
        {},
    ),
    "many answers, reviewed": lambda: (
        None,
        crowd(people=9)[1],
        {"decisions": np.where(np.arange(90) % 9 == 0, "dog", None)},
    ),
    "rows without an answer": lambda: (
        crowd()[0],
        np.where(np.arange(90)[:, None] % 10 == 0, None, crowd()[1]),
        {},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_parts_of_answers_sum_to_the_confidence(name):
    X, table, options = CASES[name]()
    model = TestimonyClassifier().fit(X, as_answers(table), **options)
    assert gap(model) < 1e-6
    speak = model.explain(np.arange(len(model.confidence_)))
    if "functions" in name:
        assert model.functions_.any()
    if name == "reviewed":
        assert model.confidence_[9].tolist() == [0, 1, 0]
        assert speak[9].parts[-1].name == "decided in review"
    if name == "audited":
        assert speak[40].parts[-1].name == "audited rows"
    if "probabilities" in name:
        assert "model net (probabilities)" in [part.name for part in speak[1].parts]
        assert "model net (probabilities)" not in [part.name for part in speak[0].parts]


def test_every_answer_is_the_mean_logarithm_of_the_confusions(monkeypatch):
    X, table, _ = crowd()
    found = []
    weigh = rounds.weigh_by_held_out

    def keep_weights(*args):
        found.append(weigh(*args))
        return found[-1]

    monkeypatch.setattr(rounds, "weigh_by_held_out", keep_weights)
    model = TestimonyClassifier().fit(X, as_answers(table))
    weights, shared = found[-1]  # the first ones are those without features
    assert weights.max() < 0.9
    alone = []
    for only in np.eye(len(weights)):
        monkeypatch.setattr(rounds, "weigh_by_held_out", lambda *_, only=only: (only, shared))
        each = TestimonyClassifier().fit(X, as_answers(table))
        alone.append(np.log(each.annotators_["confusion"]))
    logs, names = np.einsum("e,ejck->jck", weights, alone), model.classes_.tolist()
    for i, why in enumerate(model.explain(np.arange(len(X)))):
        said = [(j, cell) for j, cell in enumerate(table[i]) if cell is not None]
        found = [part for part in why.parts if part.annotator is not None]
        assert [(part.annotator, part.name) for part in found] == [
            (j, f"{j} said {cell}") for j, cell in said
        ]
        for (j, cell), part in zip(said, found, strict=True):
            expected = logs[j][:, names.index(cell)]
            np.testing.assert_allclose(part.values, expected, atol=1e-12)


def test_the_last_part_takes_away_what_shared_errors_repeat():
    X, table, _ = crowd()
    model = TestimonyClassifier().fit(X, as_answers(table))
    assert model.shared_errors_ > 0.01
    for i, why in enumerate(model.explain(np.arange(len(X)))):
        *parts, last = why.parts
        count = sum(cell is not None for cell in table[i])
        if not count:
            continue
        count += 1  # the features may repeat the errors of the answers
        share = 1 + model.shared_errors_ * (count - 1)
        total = np.sum([part.values for part in parts], axis=0)
        expected = total / share - total
        assert last.name == "annotators err together"
        np.testing.assert_allclose(
            last.values - last.values.mean(), expected - expected.mean(), atol=1e-6
        )


def test_votes_keep_a_share_of_the_posterior_of_many_answers():
    _, table, _ = crowd(people=9)
    model = TestimonyClassifier().fit(None, as_answers(table))
    shared = model.shared_errors_
    assert shared > 0.005
    for i, why in enumerate(model.explain(np.arange(len(table)))):
        given = [cell for cell in table[i] if cell is not None]
        if not given:
            continue
        frequency, *answers, together, votes = why.parts
        assert frequency.name == "how frequent the labels are"
        assert (together.name, votes.name) == ("annotators err together", "share of the votes")
        evidence = np.sum([part.values for part in answers], axis=0)
        share = 1 + shared * (len(given) - 1)
        scored = softmax(evidence / share + frequency.values)
        counts = np.array([given.count(name) for name in model.classes_])
        expected = (1 - shared) * scored + shared * (counts + 0.5 / 3) / (len(given) + 0.5)
        np.testing.assert_allclose(model.confidence_[i], expected, atol=1e-9)
        without = softmax(np.sum([part.values for part in why.parts[:-1]], axis=0))
        np.testing.assert_allclose(without, scored, atol=1e-9)
    assert gap(model) < 1e-6


def test_features_are_the_only_part_of_a_row_that_nobody_answered():
    X, table, options = CASES["rows without an answer"]()
    model = TestimonyClassifier().fit(X, as_answers(table), **options)
    (why,) = model.explain(0)
    assert [part.name for part in why.parts] == ["features"]
    np.testing.assert_allclose(softmax(why.scores), model.predict_proba(X[:1])[0], atol=1e-6)


def test_unknown_annotators_are_counted():
    counts = np.array([[2, 1], [0, 3], [3, 0]])
    model = TestimonyClassifier().fit(None, as_answers(counts, layout="counts"))
    (why,) = model.explain(0)
    assert [part.name for part in why.parts[1:3]] == ["2 annotators said 0", "1 annotator said 1"]
    assert gap(model) < 1e-6


# -- candidate sets -----------------------------------------------------------------------


def candidate_rows(n=110, l=4, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(l, size=n)
    X = 2 * np.eye(l)[truth] + rng.normal(size=(n, l))
    sets = rng.random((n, l)) < 0.4
    sets[np.arange(n), truth] = True
    return X, sets, truth


def ages(n=150, l=12, seed=0):
    """Ordered labels: sets of neighbouring numbers."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(l, size=n)
    X = np.column_stack([truth + 1.5 * rng.normal(size=n), rng.normal(size=n)])
    return X, np.abs(np.arange(l) - truth[:, None]) <= rng.integers(4, size=n)[:, None], truth


JURIES = {
    "label-first": {"ambiguity": "label-first"},
    "set-first": {"ambiguity": "set-first"},
    "in between": {"ambiguity": 0.5},
    "forest": {
        "members": [RandomForestRegressor(15, min_samples_leaf=2, max_features="sqrt")],
        "ambiguity": "set-first",
    },
    "nystroem": {
        "kernel": GaussianKernel(approximation="nystroem", n_landmarks=20),
        "ambiguity": "set-first",
    },
}


@pytest.mark.parametrize("name", JURIES)
def test_parts_of_sets_sum_to_the_confidence(name):
    X, sets, _ = candidate_rows()
    model = JuryClassifier(**{"members": "kernel", "random_state": 0} | JURIES[name]).fit(X, sets)
    assert gap(model) < 1e-6
    (why,) = model.explain(5)
    shown = [part.name for part in why.parts]
    assert shown[:2] == ["candidate set", "members"]
    assert ("label frequency" in shown) == (name != "label-first")
    assert bool(why.members) == bool(why.neighbors) == (name != "nystroem")


def test_parts_of_ordered_sets_and_what_neighbouring_labels_add():
    X, sets, _ = ages()
    model = JuryClassifier("kernel", random_state=0, max_rounds=1).fit(X, sets)
    assert model.order_width_ > 0
    assert gap(model) < 1e-6
    flat = JuryClassifier("kernel", random_state=0, order=None, max_rounds=1).fit(X, sets)
    assert "neighbouring labels" not in [part.name for part in flat.explain(0)[0].parts]
    # The members on targets as they are, each row left out, with the scales of the jury.
    problem, _ = model._open(X, sets, None)
    model.fit(X, sets)
    targets, mixed = sets / sets.sum(axis=1, keepdims=True), 0.0
    seats = {each.name: each for each in model._model.members}
    for (kernel, ridge), (name, weight, _) in zip(model._kernels(), model.weights_, strict=True):
        B = problem.smoother(kernel, ridge).matrix
        scores = targets - (B @ targets) / np.diag(B)[:, np.newaxis]
        if name in seats:  # others have next to no weight
            mixed = mixed + weight * seats[name].scale.soften(scores)
    for i, why in enumerate(model.explain(np.arange(len(X)))):
        said, order = why.parts[1:3]
        assert (said.name, order.name) == ("members", "neighbouring labels")
        np.testing.assert_allclose(np.exp(said.values), mixed[i], atol=1e-3)
        together = np.exp(said.values + order.values)
        np.testing.assert_allclose(together, model.training_output_[i], atol=1e-9)


def test_parts_of_an_average_with_an_earlier_round():
    rng = np.random.default_rng(3)
    for seed in range(40):  # sets whose false labels look like the true one
        X, sets, truth = candidate_rows(n=80, l=5, seed=seed)
        sets[:] = False
        sets[np.arange(80), truth] = sets[np.arange(80), (truth + 1) % 5] = True
        sets[rng.random(80) < 0.2, 0] = True
        model = JuryClassifier("kernel", random_state=0, ambiguity=1.0).fit(X, sets)
        if any("earlier" in name for name, _, _ in model.weights_):
            break
    else:
        pytest.fail("no jury averaged an earlier round")
    assert gap(model) < 1e-6
    (why,) = model.explain(0)
    assert np.isclose(sum(each.weight for each in why.members), 1)
    assert any(each.name.endswith("earlier") for each in why.members)


def test_parts_of_further_evidence_and_of_groups():
    X, sets, truth = candidate_rows(n=120)
    logs = np.random.default_rng(2).normal(size=sets.shape)
    logs[0] = -np.inf
    logs[0, truth[0]] = 0  # a reviewed row: all other labels are ruled out
    settings = {"members": "kernel", "random_state": 0, "ambiguity": 1.0}
    model = JuryClassifier(**settings).fit(X, sets, evidence=logs)
    assert gap(model) < 1e-6
    assert model.explain(0)[0].shown() == [truth[0]]
    groups = np.repeat(np.arange(40), 3)
    same = np.repeat(sets.reshape(40, 3, -1).any(axis=1), 3, axis=0)
    covered = JuryClassifier(**settings, covering=True).fit(X, same, groups=groups)
    assert gap(covered) < 1e-6
    assert covered.explain(0)[0].parts[-1].name == "labels of the group"


def test_label_frequency_is_that_of_the_rows_where_the_sets_came_first():
    X, sets, _ = candidate_rows()
    model = JuryClassifier("kernel", random_state=0, ambiguity="set-first").fit(X, sets)
    values = model.explain(0)[0].parts[-1].values
    # In the fixed point pi is the share of every label in the posterior, plus 0.01 / l.
    expected = -np.log(model.confidence_.mean(axis=0) + 0.01 / 4)
    np.testing.assert_allclose(values, expected, atol=1e-3)


def test_members_mix_to_the_part_of_the_members():
    X, sets, _ = candidate_rows()
    model = JuryClassifier("kernel", random_state=0).fit(X, sets)
    entries = Evidence.of_sets(sets).entries
    for i, why in enumerate(model.explain(np.arange(len(X)))):
        mixed = sum(each.weight * each.probabilities for each in why.members)
        own = entries.labels[entries.rows == i]
        assert np.isnan(mixed[~sets[i]]).all()
        np.testing.assert_allclose(np.log(mixed[own]), why.parts[1].values[own], atol=1e-5)


def test_similar_rows_have_the_weights_of_a_regression_without_the_row():
    rng = np.random.default_rng(0)
    n, ridge = 30, 0.3
    X = rng.normal(size=(n, 3))
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    ones, inverse = np.ones(n), np.linalg.inv(K + ridge * np.eye(n))
    B = inverse - np.outer(inverse @ ones, ones @ inverse) / (ones @ inverse @ ones)
    rows, weights = find_similar(B)
    for i in (0, 7, 29):  # a fit on all other rows, a free bias included
        rest = np.delete(np.arange(n), i)
        system = np.block(
            [
                [K[np.ix_(rest, rest)] + ridge * np.eye(n - 1), np.ones((n - 1, 1))],
                [np.ones((1, n - 1)), np.zeros((1, 1))],
            ]
        )
        expected = np.zeros(n)
        expected[rest] = np.linalg.solve(system, np.append(K[i, rest], 1))[:-1]
        assert np.isclose(expected.sum(), 1)
        best = np.argsort(-expected)[:6]
        assert rows[i].tolist() == best.tolist()
        np.testing.assert_allclose(weights[i], expected[best], atol=1e-6)


def test_similar_rows_of_two_rows_and_of_one():
    rows, weights = find_similar(np.array([[1.0, -1.0], [-1.0, 1.0]]))
    assert rows.tolist() == [[1], [0]]
    assert weights.tolist() == [[1], [1]]
    assert find_similar(np.array([[1.0]]))[0].shape == (1, 0)


def test_a_model_from_a_file_explains_the_same(tmp_path):
    X, sets, _ = candidate_rows(n=40)
    jury = JuryClassifier("kernel", random_state=0, ambiguity=1.0).fit(X, sets)
    X, table, _ = crowd(n=40)
    people = TestimonyClassifier().fit(X, as_answers(table))
    for name, model in (("jury", jury), ("people", people)):
        again = load_model(save_model(model, tmp_path / name))
        assert repr(again.explain([0, 3])) == repr(model.explain([0, 3]))


# -- what is shown --------------------------------------------------------------------------


def example(n_answers=2, l=3):
    classes = np.array([f"label{j}" for j in range(l)])
    rng = np.random.default_rng(0)
    parts = [Part("features", rng.normal(size=l))]
    parts += [Part(f"w{j} said label0", rng.normal(size=l), j) for j in range(n_answers)]
    confidence = softmax(np.sum([part.values for part in parts], axis=0))
    return Explanation(0, classes, parts, confidence, classes[confidence.argmax()])


def test_a_page_gets_at_most_six_labels_and_keeps_the_differences():
    why = example(l=40)
    page = why.to_page()
    assert len(page["labels"]) == 6
    assert page["labels"] == np.argsort(-why.confidence)[:6].tolist()
    total = np.sum([part["values"] for part in page["parts"]], axis=0)
    expected = why.scores[page["labels"]]
    np.testing.assert_allclose(total - total[0], expected - expected[0], atol=1e-6)


def test_the_own_label_is_shown_if_a_cost_decided_for_an_improbable_one():
    base = example(l=40)
    order = np.argsort(-base.confidence)
    for rank in (6, 39):
        why = replace(base, label=base.classes[order[rank]])
        assert why.shown() == [*order[:5], order[rank]]
        assert why.shown(2) == [order[0], order[rank]]
        assert str(why.label) in repr(why).splitlines()[1]
        page = why.to_page()
        total = np.sum([part["values"] for part in page["parts"]], axis=0)
        expected = why.scores[page["labels"]]
        np.testing.assert_allclose(total - total[0], expected - expected[0], atol=1e-6)
    few = Explanation(
        0,
        np.array(["a", "b", "c"]),
        [Part("x", np.array([0.0, -1.0, -9.0]))],
        softmax([0.0, -1.0, -9.0]),
        "c",
    )
    assert few.shown() == [0, 1, 2]
    ruled_out = replace(few, parts=[Part("x", np.array([0.0, -1.0, -np.inf]))])
    assert ruled_out.shown() == [0, 1]


def test_many_answers_are_summed_up_and_the_sum_stays():
    why = example(n_answers=30)
    shown = why.table(why.shown())
    assert len(shown) == 12
    assert [part.name for part, _ in shown if "other" in part.name] == ["20 other answers"]
    expected = why.scores[why.shown()]
    np.testing.assert_allclose(
        np.sum([values for _, values in shown], axis=0), expected - expected.mean(), atol=1e-9
    )


def test_control_characters_of_names_are_made_visible():
    why = Explanation(
        0, np.array(["a\x1b[2J", "b"]), [Part("x", np.array([1.0, 0.0]))], softmax([1.0, 0.0]), "b"
    )
    assert "\x1b" not in repr(why)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (7, "Row 7 does not exist"),
        ("a", "Give the number"),
        ([[0]], r"shape \(1, 1\)"),
        (-8, "Row -8 does not exist"),
    ],
)
def test_refuses_rows_that_do_not_exist(rows, message):
    with pytest.raises(ValueError, match=message):
        read_rows(rows, 7)
