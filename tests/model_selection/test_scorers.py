"""Scorers by name: what they compute, where they work, and that only one sees the truth."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from appellate import (
    AGGDClassifier,
    GaussianKernel,
    LALOClassifier,
    PartnerClassifier,
    PLCLClassifier,
    PLCPClassifier,
    PLKNNClassifier,
    SoftLabelClassifier,
    SUREClassifier,
    as_candidates,
)
from appellate.evidence.ambiguity import TAUS
from appellate.evidence.held_out import criterion
from appellate.evidence.likelihood import Evidence
from appellate.evidence.scales import fit_temperature, soften
from appellate.experiments.controls import CandidatePartner
from appellate.metrics import approximated_accuracy, candidate_likelihood, covering_rate
from appellate.model_selection import (
    CandidateKFold,
    CandidateStratifiedKFold,
    get_scorer,
    get_scorer_names,
    scorers,
    with_truth,
)
from appellate.numerics.simplex import project_rows
from appellate.testing import make_clusters
from tests import literal_jury
from tests.problems import random_candidates

HELD_OUT = ["covering_rate", "approximated_accuracy", "candidate_likelihood", "evidence"]
LEAVE_ONE_OUT = [
    "leave_one_out_covering",
    "leave_one_out_likelihood",
    "leave_one_out_evidence",
]


@pytest.fixture(scope="module")
def data():
    rng = np.random.RandomState(0)
    truth = rng.randint(4, size=90)
    X = rng.normal(size=(4, 3))[truth] * 1.5 + rng.normal(size=(90, 3))
    candidates = random_candidates(rng, 90, 4, 0.3)
    candidates[np.arange(90), truth] = True
    return X, candidates, truth


@pytest.fixture(scope="module")
def model(data):
    return PLCPClassifier(SUREClassifier()).fit(data[0][:60], data[1][:60])


def test_names():
    assert get_scorer_names() == [*HELD_OUT, *LEAVE_ONE_OUT]
    assert get_scorer_names(uses_truth=True) == ["oracle_accuracy"]
    for name in (*get_scorer_names(), "oracle_accuracy"):
        scorer = get_scorer(name)
        assert scorer.leave_one_out == (name in LEAVE_ONE_OUT)
        assert scorer.uses_truth == (name == "oracle_accuracy")
        assert pickle.loads(pickle.dumps(scorer)) == scorer
    with pytest.raises(ValueError, match="covering_rate, approximated_accuracy"):
        get_scorer("accuracy")
    assert get_scorer(len) is len


def test_held_out_scores_are_the_metrics(data, model):
    X, candidates, truth = (part[60:] for part in data)
    assert get_scorer("covering_rate")(model, X, candidates) == covering_rate(
        candidates, model.predict(X)
    )
    assert get_scorer("approximated_accuracy")(model, X, candidates) == approximated_accuracy(
        candidates, model.predict_proba(X)
    )
    assert get_scorer("candidate_likelihood")(model, X, candidates) == candidate_likelihood(
        candidates, model.decision_function(X)
    )
    assert get_scorer("oracle_accuracy")(model, X, truth) == np.mean(model.predict(X) == truth)


@pytest.mark.parametrize("name", HELD_OUT)
def test_class_names_and_order_do_not_matter(data, name):
    X, candidates, _ = data
    names = np.array(["w", "x", "y", "z"])
    scorer = get_scorer(name)
    plain = scorer(SUREClassifier().fit(X[:60], candidates[:60]), X[60:], candidates[60:])
    named = SUREClassifier().fit(X[:60], as_candidates(candidates[:60], classes=names))
    strings = ["|".join(names[row]) for row in candidates[60:]]
    backwards = as_candidates(candidates[60:, ::-1], classes=names[::-1])
    for y in (strings, backwards, candidates[60:]):
        assert scorer(named, X[60:], y) == pytest.approx(plain)


@pytest.mark.parametrize("name", HELD_OUT)
def test_labels_that_the_model_never_saw_are_not_covered(data, name):
    X, candidates, _ = data
    model = SUREClassifier().fit(X, candidates)
    known, unknown = as_candidates([{0}, {1}]), [{0}, {99}]
    scorer = get_scorer(name)
    assert scorer(model, X[:2], unknown) <= scorer(model, X[:2], known)
    assert np.isfinite(scorer(model, X[:2], unknown))


def test_two_classes(data):
    X, candidates, _ = data
    sets = np.stack([candidates[:, 0] | ~candidates[:, 1], candidates[:, 1]], axis=1)
    model = SUREClassifier().fit(X, sets)
    assert model.decision_function(X).ndim == 1
    for name in get_scorer_names():
        assert np.isfinite(get_scorer(name)(model, X, sets))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_that_are_probabilities_are_taken_as_such(n_classes):
    X, candidates, _ = make_clusters(n_classes=n_classes, random_state=3)
    rng = np.random.default_rng(0)
    noisy = X + rng.normal(scale=6, size=X.shape)
    model = SoftLabelClassifier(GaussianNB()).fit(noisy, candidates)
    chances = model.predict_proba(noisy)
    grid = []
    for sharpness in 1 / np.geomspace(0.1, 10, 400):
        powers = chances**sharpness
        inside = (powers * candidates).sum(axis=1) / powers.sum(axis=1)
        grid.append(np.mean(np.log(np.maximum(inside, 1e-6))))
    best = max(grid)
    found = get_scorer("candidate_likelihood")(model, noisy, candidates)
    assert found == pytest.approx(best, abs=2e-3)
    assert found == candidate_likelihood(candidates, chances, probabilities=True)
    sets, log = Evidence.of_sets(candidates), np.log(chances)
    heats = {tau: fit_temperature(log, sets, tau) for tau in TAUS}
    chances = {tau: soften(log, heat) for tau, heat in heats.items()}
    B = {tau: [criterion(each, sets, tau)] for tau, each in chances.items()}
    tau = literal_jury.choose_tau(B, literal_jury.resemblance(chances[0.0], candidates), False)
    np.testing.assert_allclose(get_scorer("evidence")(model, noisy, candidates), B[tau][0])


class GivenScores:
    """A classifier whose scores are its features."""

    classes_ = np.arange(4)

    def decision_function(self, X):
        return X


@pytest.mark.parametrize(("kind", "expected"), [("look-alikes", 0.0), ("bags", 1.0)])
def test_evidence_is_that_of_the_way_in_which_the_sets_arose(kind, expected):
    """Look-alikes prove more at tau = .5 than at 0; their resemblance says label-first."""
    rng = np.random.RandomState(2)
    shares = 0.5 ** np.arange(4) / np.sum(0.5 ** np.arange(4))
    truth = rng.choice(4, size=400, p=shares)
    sets = np.eye(4, dtype=bool)[truth]
    scores = 2.0 * sets + rng.normal(size=sets.shape)
    if kind == "look-alikes":
        others = np.where(sets, -np.inf, scores + 0.3 * rng.normal(size=sets.shape))
        sets[np.arange(400), others.argmax(axis=1)] = True
    else:
        for mates in rng.choice(4, size=(2, 400), p=shares):
            sets[np.arange(400), mates] = True
    evidence = Evidence.of_sets(sets)
    B = {}
    for tau in TAUS:
        heat = literal_jury.temperature(scores, sets, tau)
        B[tau] = criterion(literal_jury.softmax(scores, heat), evidence, tau)
    assert max(B, key=B.get) == (0.5 if kind == "look-alikes" else 1.0)
    for found in (
        get_scorer("evidence")(GivenScores(), scores, sets),
        scorers._LEFT_OUT["evidence"](scores, sets),
    ):
        assert found == pytest.approx(B[expected], abs=1e-4)
    assert max(B.values()) - B[0.0] > 5e-3  # so that the largest would be seen


@pytest.mark.parametrize("name", ["candidate_likelihood", "evidence"])
def test_one_score_for_all_ridges_of_one_classifier(name, monkeypatch):
    """Scores of a ridge sum to one; with a large ridge none is negative, yet they stay scores."""
    X, truth = make_blobs(300, centers=4, cluster_std=3.0, random_state=1)
    candidates = np.eye(4, dtype=bool)[truth] | (np.random.RandomState(0).rand(300, 4) < 0.3)
    kinds = set()
    original = scorers._held_out

    def spy(estimator, rows):
        found = original(estimator, rows)
        kinds.add(found[1])
        return found

    monkeypatch.setattr(scorers, "_held_out", spy)
    for ridge in (0.05, 1.0, 25.0, 1000.0):
        model = SUREClassifier(regularization=ridge).fit(X[:150], candidates[:150])
        piped = make_pipeline(StandardScaler(), SUREClassifier(regularization=ridge))
        piped.fit(X[:150], candidates[:150])
        for each in (model, piped):
            get_scorer(name)(each, X[150:], candidates[150:])
    assert (model.decision_function(X[150:]) >= 0).all()  # else the ridge shows nothing
    assert kinds == {False}


def test_scorer_asks_the_classifier_inside_and_its_cost():
    X, candidates, _ = make_clusters(n_classes=3, random_state=3)
    plain = SoftLabelClassifier(GaussianNB())
    assert scorers._held_out(plain.fit(X, candidates), X)[1]
    assert scorers._held_out(make_pipeline(StandardScaler(), plain).fit(X, candidates), X)[1]
    costly = SoftLabelClassifier(GaussianNB(), cost="absolute").fit(X, candidates)
    scores, probable = scorers._held_out(costly, X)
    assert not probable  # minus expected costs
    np.testing.assert_array_equal(scores, costly.decision_function(X))
    foreign = GaussianNB().fit(X, candidates.argmax(axis=1))
    scores, probable = scorers._held_out(foreign, X)
    assert probable
    np.testing.assert_array_equal(scores, foreign.predict_proba(X))


@pytest.mark.parametrize("name", [*HELD_OUT, "oracle_accuracy"])
def test_a_fold_without_a_class_has_a_score(name):
    X, y = np.arange(9.0)[:, None] ** 2, ["a|b", "b", "a", "b|a", "a", "b", "a|c", "c", "b|c"]
    given = with_truth(y, [cell[0] for cell in y]) if name == "oracle_accuracy" else y
    scores = cross_val_score(
        SUREClassifier(), X, given, scoring=get_scorer(name), cv=CandidateKFold(3)
    )
    assert np.isfinite(scores).all()  # the last fold alone knows c


# -- leave one out ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "classifier",
    [
        SUREClassifier(),
        SUREClassifier(kernel="linear"),
        LALOClassifier(regularization=0.5),
        AGGDClassifier(kernel=GaussianKernel(2.0)),
        PLCLClassifier(),
        PartnerClassifier(),
        PartnerClassifier(link="aggressive"),
        CandidatePartner(),
    ],
)
def test_leave_one_out_equals_refitting_without_the_row(data, classifier):
    X, candidates = data[0][:40], data[1][:40]
    model = clone(classifier).fit(X, candidates)
    gram = X @ X.T if model.kernel == "linear" else model._model.regressor.kernel(X, X)
    scores = model.leave_one_out_decision()
    for i in (0, 7, 39):
        rest = np.delete(np.arange(40), i)
        system = np.block(
            [
                [gram[np.ix_(rest, rest)] + model.regularization * np.eye(39), np.ones((39, 1))],
                [np.ones((1, 39)), np.zeros((1, 1))],
            ]
        )
        right = np.vstack([model.confidence_[rest], np.zeros((1, 4))])
        solution = np.linalg.solve(system, right)
        expected = gram[i, rest] @ solution[:-1] + solution[-1]
        np.testing.assert_allclose(scores[i], expected, atol=1e-6)


def test_leave_one_out_scores_are_the_metrics(model):
    scores = model.leave_one_out_decision()
    assert get_scorer("leave_one_out_covering")(model) == covering_rate(
        model.candidates_, scores.argmax(axis=1)
    )
    assert get_scorer("leave_one_out_likelihood")(model) == candidate_likelihood(
        model.candidates_, scores
    )


def test_leave_one_out_is_by_the_head(data, model):
    partner = model.partner_.leave_one_out_decision()
    base = model.estimator_.leave_one_out_decision()
    heads = {
        head: clone(model).set_params(head=head).fit(data[0][:60], data[1][:60])
        for head in ("partner", "base", "mean")
    }
    found = {head: each.leave_one_out_decision() for head, each in heads.items()}
    np.testing.assert_allclose(found["partner"], partner, atol=1e-12)
    np.testing.assert_allclose(found["base"], base, atol=1e-12)
    np.testing.assert_allclose(
        found["mean"], (project_rows(partner) + project_rows(base)) / 2, atol=1e-12
    )


def test_leave_one_out_needs_a_kernel_classifier(data):
    X, candidates, _ = data
    scorer = get_scorer("leave_one_out_covering")
    assert 0 < scorer(PLCPClassifier(PLKNNClassifier()).fit(X, candidates)) <= 1
    with pytest.raises(TypeError, match="PLKNNClassifier has no closed-form"):
        scorer(PLKNNClassifier().fit(X, candidates))
    with pytest.raises(TypeError, match="PLCPClassifier has no closed-form"):
        scorer(PLCPClassifier(PLKNNClassifier(), head="base").fit(X, candidates))
    with pytest.raises(ValueError, match="two training rows"):
        SUREClassifier().fit(X[:1], candidates[:1]).leave_one_out_decision()


def test_leave_one_out_finds_the_classifier_inside(data):
    X, candidates, _ = data
    scorer = get_scorer("leave_one_out_likelihood")
    scaled = StandardScaler().fit_transform(X)
    classifier = SUREClassifier(kernel=GaussianKernel(2.0))
    expected = scorer(clone(classifier).fit(scaled, candidates))
    pipeline = make_pipeline(StandardScaler(), classifier).fit(X, candidates)
    assert scorer(pipeline, X, candidates) == pytest.approx(expected)
    everything = [(np.arange(90), np.arange(90))]  # leave-one-out needs no rows held out
    search = GridSearchCV(
        pipeline, {"sureclassifier__kernel__bandwidth": [2.0]}, scoring=scorer, cv=everything
    ).fit(X, candidates)
    assert search.best_score_ == pytest.approx(expected)
    assert scorer(search) == pytest.approx(expected)


def test_leave_one_out_keeps_no_square_matrix(data):
    model = SUREClassifier().fit(data[0], data[1])
    assert model._model.targets.shape == model.training_output_.shape
    assert model._model.diagonal.shape == (len(data[0]),)
    assert model._model.diagonal.base is None


# -- in scikit-learn ----------------------------------------------------------------------


@pytest.mark.parametrize("name", get_scorer_names())
def test_usable_as_scoring(data, name):
    X, candidates, _ = data
    scorer = get_scorer(name)
    cv = CandidateStratifiedKFold(3)
    scores = cross_val_score(SUREClassifier(), X, candidates, scoring=scorer, cv=cv)
    by_hand = [
        scorer(SUREClassifier().fit(X[a], candidates[a]), X[b], candidates[b])
        for a, b in cv.split(X, candidates)
    ]
    np.testing.assert_allclose(scores, by_hand)
    classifier = SUREClassifier(kernel=GaussianKernel())
    search = GridSearchCV(classifier, {"kernel__bandwidth": [0.01, 1]}, scoring=scorer, cv=cv)
    assert search.fit(X, candidates).best_params_ == {"kernel__bandwidth": 1}


def test_several_scorers_at_once(data):
    X, candidates, truth = data
    scoring = {name: get_scorer(name) for name in (*get_scorer_names(), "oracle_accuracy")}
    judged, cv = with_truth(candidates, truth), CandidateKFold(2)
    together = cross_validate(SUREClassifier(), X, judged, scoring=scoring, cv=cv)
    for name, scorer in scoring.items():
        alone = cross_val_score(SUREClassifier(), X, judged, scoring=scorer, cv=cv)
        np.testing.assert_allclose(together[f"test_{name}"], alone)


# -- the truth ----------------------------------------------------------------------------


def test_oracle_sees_the_truth_of_every_fold(data):
    X, candidates, truth = data
    judged = with_truth(candidates, truth)
    scorer, cv = get_scorer("oracle_accuracy"), CandidateKFold(3)
    scores = cross_val_score(SUREClassifier(), X, judged, scoring=scorer, cv=cv)
    by_hand = [
        np.mean(SUREClassifier().fit(X[a], candidates[a]).predict(X[b]) == truth[b])
        for a, b in cv.split(X, candidates)
    ]
    np.testing.assert_allclose(scores, by_hand)
    classifier = SUREClassifier(kernel=GaussianKernel())
    search = GridSearchCV(classifier, {"kernel__bandwidth": [0.01, 1]}, scoring=scorer, cv=cv)
    assert search.fit(X, judged).best_params_ == {"kernel__bandwidth": 1}


def test_fit_does_not_see_the_truth(data):
    X, candidates, truth = data
    plain = SUREClassifier().fit(X, candidates)
    told = SUREClassifier().fit(X, with_truth(candidates, truth))
    misled = SUREClassifier().fit(X, with_truth(candidates, (truth + 1) % 4))
    for other in (told, misled):
        np.testing.assert_array_equal(plain.training_output_, other.training_output_)
    assert not any("truth" in name for name in vars(told))


def test_rows_of_judged_sets_keep_their_truth(data):
    _, candidates, truth = data
    judged = with_truth(as_candidates(candidates, classes=list("abcd")), truth)
    for rows in (slice(3, 9), [4, 2], truth == 1, (np.array([5, 0]), ...)):
        index = rows[0] if isinstance(rows, tuple) else rows
        np.testing.assert_array_equal(judged[rows].truth, truth[index])
        np.testing.assert_array_equal(judged[rows].matrix, candidates[index])
    assert judged[5].truth.shape == (1,)
    assert judged[:4].class_names.tolist() == list("abcd")


def test_oracle_without_truth_is_an_error(data, model):
    X, candidates, truth = data
    scorer = get_scorer("oracle_accuracy")
    for y in (candidates, as_candidates(candidates)):
        with pytest.raises(ValueError, match="with_truth"):
            scorer(model, X, y)
    with pytest.raises(ValueError, match="candidate sets for 90"):
        with_truth(candidates, truth[:-1])
    with pytest.raises(ValueError, match="one label per row"):
        with_truth(candidates, candidates)


@pytest.fixture(scope="module")
def ordered():
    """Ten ordered labels whose features are noisy and whose candidates are near the truth."""
    rng = np.random.default_rng(1)
    truth = rng.integers(10, size=80)
    X = np.column_stack([truth + rng.normal(scale=2, size=80), rng.normal(size=80)])
    candidates = np.abs(np.arange(10) - truth[:, None]) <= rng.integers(0, 3, size=(80, 1))
    return X, candidates, truth


@pytest.mark.parametrize("scoring", ["leave_one_out_covering", "leave_one_out_likelihood"])
def test_leave_one_out_scores_follow_the_cost(scoring, ordered):
    X, candidates, _ = ordered
    model = SUREClassifier(cost="ordinal:2").fit(X, candidates)
    scores = -(model._head().probabilities(model.leave_one_out_decision()) @ model.cost_)
    if scoring == "leave_one_out_covering":
        expected = np.mean(candidates[np.arange(80), scores.argmax(axis=1)])
    else:
        expected = candidate_likelihood(candidates, scores)
    assert get_scorer(scoring)(model) == pytest.approx(expected)
