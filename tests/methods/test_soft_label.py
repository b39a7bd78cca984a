"""SoftLabelClassifier against the loop written out, and what its models get to see."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import (
    AdaBoostClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from appellate import PLCPClassifier
from appellate.evidence.confidence import initial_confidence
from appellate.methods.soft_label import SoftLabelClassifier
from appellate.testing import make_clusters
from tests.problems import random_candidates, random_confidence


@pytest.fixture
def data():
    rng = np.random.RandomState(0)
    return rng.normal(size=(30, 2)), random_candidates(rng, 30, 4), rng.normal(size=(8, 2))


class Spy(ClassifierMixin, BaseEstimator):
    """Predicts what it is told to and writes down what it was given.

    The first feature is the number of the row.
    """

    log: list[dict] = []

    def __init__(self, scores=None):
        self.scores = scores

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        self.note_ = {"rows": X[:, 0].astype(int), "targets": y, "weights": sample_weight}
        self.log.append(self.note_)
        return self

    def predict_proba(self, X):
        self.note_["judged"] = X[:, 0].astype(int)
        scores = np.ones(len(self.classes_)) if self.scores is None else np.asarray(self.scores)
        return np.tile(scores / scores.sum(), (len(X), 1))


@pytest.fixture
def log(monkeypatch):
    notes = []
    monkeypatch.setattr(Spy, "log", notes)
    return notes


def numbered(candidates):
    return np.arange(len(candidates), dtype=float).reshape(-1, 1)


# -- the loop -----------------------------------------------------------------------------


def literal_probabilities(X, confidence, queries):
    """One classifier on the pairs, spread over all labels."""
    pairs = [(i, j) for i, j in np.ndindex(*confidence.shape) if confidence[i, j] > 0]
    model = GaussianNB().fit(
        np.array([X[i] for i, _ in pairs]),
        np.array([j for _, j in pairs]),
        sample_weight=np.array([confidence[pair] for pair in pairs]),
    )
    out = np.zeros((len(queries), confidence.shape[1]))
    out[:, model.classes_] = model.predict_proba(queries)
    return out


@pytest.mark.parametrize("supervised", [False, True])
@pytest.mark.parametrize("out_of_fold", [False, True])
def test_equals_the_literal_loop(data, out_of_fold, supervised):
    """Leaving one row out needs no random folds."""
    X, candidates, new = data
    n = len(X)
    confidence = initial_confidence(candidates)
    supervision = None
    if supervised:
        confidence = supervision = random_confidence(np.random.RandomState(2), candidates)
    for _ in range(3):
        if out_of_fold:
            others = [np.arange(n) != i for i in range(n)]
            output = np.vstack([literal_probabilities(X[o], confidence[o], X[~o]) for o in others])
        else:
            output = literal_probabilities(X, confidence, X)
        confidence = output * candidates
        confidence /= confidence.sum(axis=1, keepdims=True)
    model = SoftLabelClassifier(GaussianNB(), n_rounds=3, out_of_fold=out_of_fold, n_folds=n).fit(
        X, candidates, supervision=supervision
    )
    np.testing.assert_allclose(model.training_output_, output, atol=1e-10)
    np.testing.assert_allclose(model.confidence_, confidence, atol=1e-10)
    np.testing.assert_allclose(
        model.predict_proba(new), literal_probabilities(X, confidence, new), atol=1e-10
    )
    masked = np.where(candidates, output, -1)
    np.testing.assert_array_equal(model.transduction_, masked.argmax(axis=1))
    assert model.n_iter_ == 3


def test_models_judge_only_rows_that_they_have_not_seen(log):
    candidates = random_candidates(np.random.RandomState(0), 23, 4)
    SoftLabelClassifier(Spy(), n_rounds=2, n_folds=5).fit(numbered(candidates), candidates)
    *fold_models, final = log
    assert len(fold_models) == 2 * 5
    for note in fold_models:
        assert not set(note["rows"]) & set(note["judged"])
        assert set(note["rows"]) | set(note["judged"]) == set(range(23))
    for models in (fold_models[:5], fold_models[5:]):
        np.testing.assert_array_equal(
            np.sort(np.concatenate([note["judged"] for note in models])), np.arange(23)
        )
    assert set(final["rows"]) == set(range(23))


def test_pairs_carry_the_confidence_and_zeros_are_dropped(log):
    candidates = np.array([[1, 1, 0], [1, 0, 1], [0, 0, 1], [0, 1, 1]], dtype=bool)
    supervision = np.array([[0.7, 0.3, 0], [0, 0, 1], [0, 0, 1], [0, 0.4, 0.6]])
    model = SoftLabelClassifier(Spy(scores=[6, 3, 1]), n_rounds=1, out_of_fold=False)
    model.fit(numbered(candidates), candidates, supervision=supervision)
    first, final = log
    np.testing.assert_array_equal(first["rows"], [0, 0, 1, 2, 3, 3])
    np.testing.assert_array_equal(first["targets"], [0, 1, 2, 2, 1, 2])
    np.testing.assert_allclose(first["weights"], [0.7, 0.3, 1, 1, 0.4, 0.6])
    np.testing.assert_allclose(model.training_output_, np.tile([0.6, 0.3, 0.1], (4, 1)))
    expected = [[2 / 3, 1 / 3, 0], [6 / 7, 0, 1 / 7], [0, 0, 1], [0, 3 / 4, 1 / 4]]
    np.testing.assert_allclose(model.confidence_, expected)
    np.testing.assert_allclose(final["weights"], [2 / 3, 1 / 3, 6 / 7, 1 / 7, 1, 3 / 4, 1 / 4])


def test_in_sample_probabilities_of_a_flexible_model_change_nothing():
    """A grown tree returns the weights that it was given; out of fold it disambiguates."""
    X, candidates, truth = make_clusters()
    tree = DecisionTreeClassifier(random_state=0)
    memory = SoftLabelClassifier(tree, out_of_fold=False, n_rounds=10).fit(X, candidates)
    np.testing.assert_allclose(memory.confidence_, initial_confidence(candidates))
    assert memory.n_ties_ == np.count_nonzero(candidates.sum(axis=1) > 1)
    honest = SoftLabelClassifier(tree, random_state=0).fit(X, candidates)
    assert np.mean(honest.transduction_ == truth) > np.mean(memory.transduction_ == truth) + 0.05


# -- borders ------------------------------------------------------------------------------


def test_a_label_that_no_other_fold_has_is_legal(data):
    X, _, _ = data
    labels = np.array(["a", "b"] * 15, dtype=object)
    labels[4] = "rare"
    model = SoftLabelClassifier(GaussianNB(), random_state=0).fit(X, labels)
    rare = list(model.classes_).index("rare")
    assert model.training_output_[4, rare] == 0
    assert model.confidence_[4, rare] == 1
    assert model.transduction_[4] == "rare"
    np.testing.assert_allclose(model.training_output_.sum(axis=1), 1)


def test_a_row_without_a_likely_candidate_keeps_its_confidence(log):
    """A model that gives all candidates of a row no chance says nothing about them."""
    candidates = np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1]], dtype=bool)
    supervision = np.array([[0.2, 0.8, 0], [0, 0.5, 0.5], [0, 0, 1]])
    model = SoftLabelClassifier(Spy(scores=[0, 0, 1]), n_rounds=3, out_of_fold=False)
    model.fit(numbered(candidates), candidates, supervision=supervision)
    np.testing.assert_allclose(model.confidence_, [[0.2, 0.8, 0], [0, 0, 1], [0, 0, 1]])
    assert model.transduction_[0] == 1


@pytest.mark.parametrize(("n", "folds"), [(1, 1), (2, 2), (3, 3), (5, 4), (9, 4)])
def test_few_rows_mean_few_folds(log, n, folds):
    candidates = np.ones((n, 2), dtype=bool)
    SoftLabelClassifier(Spy(), n_rounds=1, n_folds=4).fit(numbered(candidates), candidates)
    assert len(log) == folds + 1


@pytest.mark.parametrize("estimator", [LogisticRegression(), HistGradientBoostingClassifier()])
def test_one_label_in_a_fold(estimator):
    """Classifiers that refuse a single class are spared it."""
    X = np.arange(4.0).reshape(-1, 1)
    model = SoftLabelClassifier(estimator, n_folds=4).fit(X, ["a", "b", "b", "b"])
    np.testing.assert_array_equal(model.training_output_[0], [0, 1])  # none other has an "a"
    alone = SoftLabelClassifier(estimator).fit(X[:1], ["a"])
    np.testing.assert_array_equal(alone.predict_proba(X), np.ones((4, 1)))


def test_labels_are_numbered_without_gaps(log):
    """Some classifiers accept 0 .. k - 1 only."""
    candidates = np.zeros((6, 5), dtype=bool)
    candidates[:3, 4] = candidates[3:, 1] = True
    SoftLabelClassifier(Spy(), n_rounds=1).fit(numbered(candidates), candidates)
    for note in log:
        assert set(note["targets"]) == {0, 1}


def test_class_names_do_not_matter_to_a_random_classifier(data):
    X, candidates, new = data
    order = np.array([2, 3, 0, 1])
    model = SoftLabelClassifier(RandomForestClassifier(5), n_folds=2, random_state=0)
    plain = model.fit(X, candidates).predict_proba(new)
    permuted = model.fit(X, candidates[:, order]).predict_proba(new)
    np.testing.assert_array_equal(permuted, plain[:, order])


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (KNeighborsClassifier(), "a parameter 'sample_weight' in its fit method"),
        (LinearSVC(), "a predict_proba method"),
        (LogisticRegression, r"an instance, not the class: LogisticRegression\(\)"),
        (None, "a fit method"),
        (
            make_pipeline(StandardScaler(), LogisticRegression()),
            r"make_pipeline\(scaler, SoftLabelClassifier\(classifier\)\)",
        ),
    ],
)
def test_what_an_estimator_lacks_is_named(data, estimator, message):
    X, candidates, _ = data
    model = SoftLabelClassifier(estimator)
    with pytest.raises(TypeError, match=message):
        model.fit(X, candidates)
    if not isinstance(estimator, type) and estimator is not None:
        with pytest.raises(TypeError, match=message):
            PLCPClassifier(model).fit(X, candidates)


def test_nan_probabilities_are_an_error(data):
    X, candidates, _ = data
    with pytest.raises(ValueError, match=r"Spy\.predict_proba returned NaN"):
        SoftLabelClassifier(Spy(scores=[np.nan] * 4)).fit(X, candidates)


# -- randomness and company ---------------------------------------------------------------


def test_random_state_reaches_the_estimator(data):
    X, candidates, new = data
    nested = AdaBoostClassifier(DecisionTreeClassifier(max_features=1), n_estimators=2)
    model = SoftLabelClassifier(nested, n_rounds=1, n_folds=2, random_state=3)
    params = model.fit(X, candidates).estimator_.get_params()
    assert params["random_state"] == params["estimator__random_state"] is not None
    np.testing.assert_array_equal(
        model.predict_proba(new), model.fit(X, candidates).predict_proba(new)
    )
    assert nested.random_state is None


def test_without_random_state_the_estimator_keeps_its_own(data):
    X, candidates, _ = data
    forest = RandomForestClassifier(2, random_state=11)
    model = SoftLabelClassifier(forest, n_rounds=1).fit(X, candidates)
    assert model.estimator_.random_state == 11


def test_a_scaler_goes_outside():
    X, candidates, truth = make_clusters()
    model = make_pipeline(StandardScaler(), SoftLabelClassifier(LogisticRegression()))
    assert np.mean(model.fit(X, candidates).predict(X) == truth) > 0.95


def test_plcp_over_gradient_boosting():
    X, candidates, truth = make_clusters(90)
    boosting = HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5)
    base = SoftLabelClassifier(boosting, n_rounds=1, n_folds=2)
    model = PLCPClassifier(base, random_state=0, max_rounds=2).fit(X, candidates)
    assert np.mean(model.predict(X) == truth) > 0.95
    assert np.mean(model.set_params(head="base").predict(X) == truth) > 0.95


@pytest.mark.parametrize(
    ("module", "name", "params"),
    [
        ("lightgbm", "LGBMClassifier", {"n_estimators": 5, "verbose": -1}),
        ("xgboost", "XGBClassifier", {"n_estimators": 5}),
    ],
)
def test_other_libraries(module, name, params):
    library = pytest.importorskip(module)
    X, candidates, truth = make_clusters(90)
    wider = np.insert(candidates, 1, False, axis=1)  # a label that no row has
    base = SoftLabelClassifier(getattr(library, name)(**params), n_rounds=2, random_state=0)
    model = base.fit(X.astype(np.float32), wider)
    assert np.mean(model.predict(X) == np.array([0, 2, 3])[truth]) > 0.9
    assert model.training_output_.dtype == np.float32
