"""PLCP against Algorithm 1 typed with dense matrices, its options, and its use in scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from appellate import (
    GaussianKernel,
    PartnerClassifier,
    PLCPClassifier,
    PLKNNClassifier,
    PLSVMClassifier,
    SUREClassifier,
    as_candidates,
)
from appellate.metrics import covering_rate
from appellate.testing import make_clusters
from tests.problems import random_candidates

SEED = 0


@pytest.fixture(scope="module")
def data():
    """Overlapping clusters: verdicts that can be overturned."""
    rng = np.random.RandomState(SEED)
    truth = rng.randint(5, size=120)
    X = rng.normal(size=(5, 4))[truth] * 1.2 + rng.normal(size=(120, 4))
    candidates = random_candidates(rng, 120, 5, 0.35)
    candidates[np.arange(120), truth] = True
    return X, candidates, truth


def algorithm_1(base, X, candidates, *, alpha=0.5, gamma=2.0, lam=0.05, k=-1.0, rounds=5):
    """The paper's pseudo code, with (n, l) matrices and the public estimators only."""
    Y = candidates.astype(float)

    def blurred(confidence):
        if k is None:
            shares = confidence * Y
            totals = shares.sum(axis=1, keepdims=True)
            return np.where(totals > 0, shares / np.where(totals > 0, totals, 1), P0)
        Q = np.exp(np.exp(k) * confidence) * Y
        return Q / Q.sum(axis=1, keepdims=True)

    P = P0 = Y / Y.sum(axis=1, keepdims=True)
    P_hat, O_hat = 1 - Y, None
    for _ in range(rounds):
        M = clone(base).fit(X, candidates, supervision=O_hat).training_output_
        P = np.maximum(np.minimum(alpha * P + (1 - alpha) * M, Y), 0)
        O = blurred(P)
        partner = PartnerClassifier(collaboration=gamma, regularization=lam)
        partner.fit(X, candidates, supervision=O)
        M_hat = 1 - partner.training_output_
        P_hat = np.minimum(np.maximum(alpha * P_hat + (1 - alpha) * M_hat, 1 - Y), 1)
        O_hat = blurred(1 - P_hat)
    return P, P_hat, M_hat, partner


@pytest.mark.parametrize("base", [SUREClassifier(), PLKNNClassifier(7)])
@pytest.mark.parametrize(
    "options",
    [{}, {"alpha": 0.2, "gamma": 0.7, "lam": 0.2, "k": -0.3, "rounds": 3}, {"k": None}],
)
def test_equals_algorithm_1(data, base, options):
    X, candidates, _ = data
    P, P_hat, M_hat, partner = algorithm_1(base, X, candidates, **options)
    names = {"alpha": "smoothing", "gamma": "collaboration", "lam": "regularization"}
    names |= {"k": "blur", "rounds": "max_rounds"}
    model = PLCPClassifier(base, keep_confidences=True)
    model.set_params(**{names[key]: value for key, value in options.items()})
    model.fit(X, candidates)
    np.testing.assert_allclose(model.training_output_, 1 - M_hat, atol=1e-7)
    last = model.history_[-1]
    np.testing.assert_allclose(last.base_confidence, P, atol=1e-7)
    np.testing.assert_allclose(
        last.partner_confidence, np.where(candidates, 1 - P_hat, 0), atol=1e-7
    )
    np.testing.assert_allclose(model.decision_function(X), partner.decision_function(X), atol=1e-7)
    assert model.n_iter_ == options.get("rounds", 5)
    assert model.termination_condition_ == "max_rounds"


def test_verdict_is_that_of_the_base_alone(data):
    X, candidates, _ = data
    model = PLCPClassifier(SUREClassifier()).fit(X, candidates)
    alone = SUREClassifier().fit(X, candidates)
    np.testing.assert_array_equal(model.verdict_, alone.transduction_)
    np.testing.assert_array_equal(model.overturned_, model.verdict_ != model.transduction_)
    assert model.overturned_.any()
    assert not model.overturned_[candidates.sum(axis=1) == 1].any()


def test_the_mean_of_two_classes_keeps_how_sure_each_head_is():
    rng = np.random.RandomState(0)
    truth = rng.randint(2, size=200)
    X = truth[:, None] + rng.normal(size=(200, 3))
    candidates = np.eye(2, dtype=bool)[truth] | (rng.uniform(size=(200, 2)) < 0.5)
    model = PLCPClassifier(SUREClassifier(), head="mean").fit(X, candidates)
    assert len(np.unique(model.predict_proba(rng.normal(size=(50, 3)))[:, 0].round(9))) > 30


def test_confidences_agree_with_labels(data):
    X, candidates, _ = data
    model = PLCPClassifier(SUREClassifier()).fit(X, candidates)
    np.testing.assert_array_equal(model.confidence_.argmax(axis=1), model.transduction_)
    np.testing.assert_array_equal(model.verdict_confidence_.argmax(axis=1), model.verdict_)


def test_heads_come_from_one_fit(data):
    X, candidates, _ = data
    new = np.random.RandomState(1).normal(size=(30, 4))
    model = PLCPClassifier(SUREClassifier()).fit(X, candidates)
    partner = model.partner_.decision_function(new)
    base = model.estimator_.decision_function(new)
    np.testing.assert_array_equal(model.decision_function(new), partner)
    np.testing.assert_array_equal(model.set_params(head="base").decision_function(new), base)
    both = model.partner_.predict_proba(new) + model.estimator_.predict_proba(new)
    mean = model.set_params(head="mean")
    np.testing.assert_allclose(mean.predict_proba(new), both / 2, atol=1e-12)
    np.testing.assert_array_equal(mean.predict(new), both.argmax(axis=1))
    assert model.estimator_.transduction_.shape == (120,)
    assert model.estimator_.n_features_in_ == 4


def test_tol_stops_when_few_labels_change(data):
    X, candidates, _ = data
    everything = PLCPClassifier(SUREClassifier(), max_rounds=8).fit(X, candidates)
    shares = [r.changed for r in everything.history_]
    labels = everything.label_history_
    np.testing.assert_allclose(shares, (labels[1:] != labels[:-1]).mean(axis=1))
    stopped = PLCPClassifier(SUREClassifier(), max_rounds=8, tol=0.02).fit(X, candidates)
    settled = [i for i in range(1, 8) if max(shares[i - 1 : i + 1]) < 0.02]
    assert stopped.n_iter_ == settled[0] + 1 < 8
    assert stopped.termination_condition_ == "tol"
    assert everything.history_[0].base_confidence is None


def test_works_in_pipeline_and_grid_search_without_truth(data):
    X, candidates, _ = data
    base = SUREClassifier(kernel=GaussianKernel())
    pipeline = make_pipeline(StandardScaler(), PLCPClassifier(base))
    grid = {
        "plcpclassifier__collaboration": [0.5, 2.0],
        "plcpclassifier__estimator__kernel__bandwidth": [1.0, 2.0],
    }
    scoring = make_scorer(covering_rate)
    search = GridSearchCV(pipeline, grid, scoring=scoring, cv=KFold(3)).fit(X, candidates)
    assert 0 < search.best_score_ <= 1
    assert search.predict(X).shape == (120,)
    by_method = cross_val_score(pipeline, X, candidates, cv=KFold(3))
    by_scorer = cross_val_score(pipeline, X, candidates, cv=KFold(3), scoring=scoring)
    np.testing.assert_allclose(by_method, by_scorer)


def test_cross_validation_keeps_class_names(data):
    X, candidates, _ = data
    sets = as_candidates(candidates, classes=list("abcde"))
    named = cross_val_score(SUREClassifier(), X, sets, cv=KFold(3))
    np.testing.assert_allclose(
        named, cross_val_score(SUREClassifier(), X, candidates, cv=KFold(3))
    )


def test_clone_keeps_parameters():
    model = PLCPClassifier(SUREClassifier(kernel=GaussianKernel(3.0)), blur=None, head="mean")
    copy = clone(model)
    assert copy.get_params()["estimator__kernel__bandwidth"] == 3.0
    assert repr(copy) == repr(model)


def test_the_given_estimator_is_not_fitted(data):
    base = SUREClassifier()
    PLCPClassifier(base).fit(*data[:2])
    assert not hasattr(base, "classes_")


def test_score_by_truth_and_by_candidates(data):
    X, candidates, truth = data
    model = PLCPClassifier(SUREClassifier()).fit(X, candidates)
    predicted = model.predict(X)
    assert model.score(X, truth) == pytest.approx(np.mean(predicted == truth))
    covered = candidates[np.arange(120), predicted]
    assert model.score(X, candidates) == pytest.approx(covered.mean())
    weights = np.arange(120)
    assert model.score(X, candidates, weights) == pytest.approx(
        np.average(covered, weights=weights)
    )


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_score_of_strings_and_frames(container):
    frames = pytest.importorskip(container)
    X, candidates, truth = make_clusters()
    names = np.array(["a", "b", "c"])
    frame = frames.DataFrame({name: candidates[:, j] for j, name in enumerate(names)})
    model = PLCPClassifier(SUREClassifier()).fit(X, frame)
    assert model.score(X, names[truth]) == 1.0
    assert model.score(X, frame) == 1.0
    assert model.score(X, ["|".join(names[row]) for row in candidates]) == 1.0


def test_score_of_a_column_is_that_of_its_labels_as_in_fit(data):
    X, _, truth = data
    column = truth[:, np.newaxis]
    with pytest.warns(DataConversionWarning):
        model = SUREClassifier().fit(X, column)
    with pytest.warns(DataConversionWarning) as caught:
        assert model.score(X, column) == model.score(X, truth)
    assert caught[0].filename == __file__


def test_columns_of_a_matrix_are_no_names_where_classes_have_names(data):
    X, candidates, truth = data
    wider = np.hstack([candidates, candidates[:, :1]])
    for model in (SUREClassifier().fit(X, truth.astype(str)), SUREClassifier().fit(X, truth + 1)):
        with pytest.raises(ValueError, match="5 names, but the matrix has 6 columns"):
            model.score(X, wider)
    model = SUREClassifier().fit(X, candidates)
    assert model.score(X, wider) == model.score(X, candidates)


def test_supervision_reaches_the_base(data):
    X, candidates, truth = data
    supervision = np.eye(5)[truth]
    model = PLCPClassifier(SUREClassifier(), max_rounds=1).fit(
        X, candidates, supervision=supervision
    )
    told = SUREClassifier().fit(X, candidates, supervision=supervision)
    np.testing.assert_array_equal(model.verdict_, told.transduction_)


class RandomBase(BaseEstimator):
    """A base that is nothing but its seed."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, candidates, supervision=None):
        self.training_output_ = np.random.RandomState(self.random_state).uniform(
            size=candidates.shape
        )
        return self


def test_random_state_is_passed_to_a_random_base(data):
    X, candidates, _ = data
    one, two, other = (
        PLCPClassifier(RandomBase(), random_state=seed).fit(X, candidates) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one.verdict_, two.verdict_)
    assert (one.verdict_ != other.verdict_).any()
    for seed in (None, 3):
        kept = PLCPClassifier(RandomBase(random_state=7), random_state=seed).fit(X, candidates)
        assert kept.estimator_.random_state == 7
    drawn = PLCPClassifier(RandomBase(), random_state=np.random.RandomState(5)).fit(X, candidates)
    assert isinstance(drawn.estimator_.random_state, int)


def test_the_verdict_is_that_of_the_base_alone_with_the_same_seed(data):
    X, candidates = data[:2]
    base = PLSVMClassifier(random_state=4).fit(X, candidates)
    for own, seed in ((4, None), (4, 0), (None, 4)):
        model = PLCPClassifier(PLSVMClassifier(random_state=own), random_state=seed)
        np.testing.assert_array_equal(model.fit(X, candidates).verdict_, base.transduction_)


class BareBase:
    """No more than the protocol asks for: neither parameters nor a prediction."""

    def fit(self, X, candidates, supervision=None):
        start = candidates / candidates.sum(axis=1, keepdims=True)
        self.training_output_ = start if supervision is None else supervision
        return self


def test_a_base_with_nothing_but_the_protocol(data):
    X, candidates = data[:2]
    base = BareBase()
    model = PLCPClassifier(base, random_state=0).fit(X, candidates)
    assert model.predict(X).shape == (len(X),)
    assert not hasattr(base, "training_output_")  # a copy was fitted
    with pytest.raises(TypeError, match=r"no predict_proba, but head='mean' lets it predict"):
        PLCPClassifier(base, head="mean").fit(X, candidates)


class NoFit(BaseEstimator):
    pass


class NoSupervision(BaseEstimator):
    def fit(self, X, candidates):
        return self


class WrongShape(BaseEstimator):
    def fit(self, X, candidates, supervision=None):
        self.training_output_ = np.zeros((2, 2))
        return self


@pytest.mark.parametrize(
    ("base", "error", "message"),
    [
        (NoFit(), TypeError, r"needs a fit\(X, candidates, supervision=None\)"),
        (NoSupervision(), TypeError, "'supervision=None' in its fit"),
        (SUREClassifier, TypeError, r"not the class: SUREClassifier\(\)"),
        (None, TypeError, "None cannot be a base classifier"),
        (WrongShape(), ValueError, r"shape \(120, 5\).*got shape \(2, 2\)"),
        (SUREClassifier(maximization=-1), ValueError, "'maximization' parameter"),
    ],
)
def test_unfit_bases_are_refused(data, base, error, message):
    with pytest.raises(error, match=message):
        PLCPClassifier(base).fit(*data[:2])


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("smoothing", 1.0), ("blur", np.inf), ("head", "both"), ("max_rounds", 0), ("tol", -0.1)],
)
def test_parameters_are_validated(data, parameter, value):
    with pytest.raises(ValueError, match=f"'{parameter}' parameter"):
        PLCPClassifier(SUREClassifier(), **{parameter: value}).fit(*data[:2])
