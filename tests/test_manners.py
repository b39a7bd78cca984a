"""Manners of scikit-learn that its own checks do not look at, over every classifier."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_score, cross_validate
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from appellate import (
    AGGDClassifier,
    JuryClassifier,
    LALOClassifier,
    LinearKernel,
    PartnerClassifier,
    PLCLClassifier,
    PLCPClassifier,
    PLKNNClassifier,
    PLSVMClassifier,
    SoftLabelClassifier,
    SUREClassifier,
    TestimonyClassifier,
)
from appellate.core.base import PartialLabelClassifier, check_base
from appellate.testing import make_clusters

LEAVES_ONE_OUT = [
    AGGDClassifier(),
    LALOClassifier(),
    PartnerClassifier(),
    PLCLClassifier(),
    SUREClassifier(),
    PLCPClassifier(SUREClassifier()),
    PLCPClassifier(PLKNNClassifier()),
    PLCPClassifier(SUREClassifier(), head="mean"),
]
OTHERS = [
    JuryClassifier("kernel", random_state=0),
    PLKNNClassifier(),
    PLSVMClassifier(random_state=0),
    PLCPClassifier(PLKNNClassifier(), head="base"),
    PLCPClassifier(PLKNNClassifier(), head="mean"),
    SoftLabelClassifier(GaussianNB(), random_state=0),
    TestimonyClassifier(),
]


def name(estimator):
    return repr(estimator).replace("\n", "")


def steady():
    """A classifier whose result depends on the weights, not on how rows are repeated."""
    exact = LogisticRegression(tol=1e-10, max_iter=1000)
    return SoftLabelClassifier(exact, out_of_fold=False)


@pytest.fixture(scope="module")
def data():
    X, candidates, truth = make_clusters(60)
    noise = np.random.RandomState(0).normal(size=(60, 3))
    return np.hstack([X, np.where(noise > 0.3, noise, 0)]), candidates, truth


# -- what is there, and when ----------------------------------------------------------------


@pytest.mark.parametrize("estimator", LEAVES_ONE_OUT, ids=name)
def test_leave_one_out_is_there_after_the_fit(estimator, data):
    X, candidates, _ = data
    assert not hasattr(estimator, "leave_one_out_decision")
    model = clone(estimator).fit(X, candidates)
    assert model.leave_one_out_decision().shape == candidates.shape


@pytest.mark.parametrize("estimator", OTHERS, ids=name)
def test_leave_one_out_is_not_there_where_nothing_has_it(estimator, data):
    X, candidates, _ = data
    assert not hasattr(clone(estimator).fit(X, candidates), "leave_one_out_decision")


@pytest.mark.parametrize("estimator", [*LEAVES_ONE_OUT, *OTHERS], ids=name)
def test_a_failed_fit_leaves_nothing_fitted(estimator, data):
    X, candidates, _ = data
    model = clone(estimator).fit(X, candidates)
    with pytest.raises(ValueError, match="rows"):
        model.fit(X, candidates[:-1])
    asked = [model.predict, model.predict_proba, model.decision_function]
    for ask in asked:
        with pytest.raises(NotFittedError):
            ask(X)
    if hasattr(model, "docket"):
        with pytest.raises(NotFittedError):
            model.docket()


@pytest.mark.parametrize("estimator", [*LEAVES_ONE_OUT, *OTHERS], ids=name)
def test_what_else_a_fit_takes_has_to_be_named(estimator):
    parameters = list(inspect.signature(type(estimator).fit).parameters.values())
    assert [each.name for each in parameters[:3]] == ["self", "X", "y"]
    named = {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD}
    assert {each.kind for each in parameters[3:]} <= named


@pytest.mark.parametrize("estimator", [*LEAVES_ONE_OUT, *OTHERS], ids=name)
def test_who_holds_an_estimator_says_so(estimator):
    assert isinstance(estimator, MetaEstimatorMixin) == hasattr(estimator, "estimator")


def test_testimony_is_no_base(data):
    """It learns from answers, and cannot start from what a partner says."""
    assert isinstance(TestimonyClassifier(), PartialLabelClassifier)
    with pytest.raises(TypeError, match=r"TestimonyClassifier\(\) .* 'supervision=None'"):
        check_base(TestimonyClassifier())
    with pytest.raises(TypeError, match="cannot be a base classifier"):
        PLCPClassifier(TestimonyClassifier()).fit(*data[:2])


# -- folds that lack a class ----------------------------------------------------------------


@pytest.mark.parametrize("estimator", [*LEAVES_ONE_OUT, *OTHERS], ids=name)
@pytest.mark.parametrize("form", ["labels", "strings", "matrix"])
def test_scores_where_a_fold_lacks_a_class(estimator, form):
    """The third class is in the last fold alone: nobody can predict it there."""
    X = np.repeat([[0.0], [5.0], [0.0], [5.0], [9.0]], 6, axis=0)
    X = X + np.linspace(0, 1, 30)[:, np.newaxis]
    truth = np.repeat(["ann", "bob", "ann", "bob", "eve"], 6)
    y = {
        "labels": truth,
        "strings": np.where(truth == "bob", "ann|bob", truth),
        "matrix": truth[:, np.newaxis] == np.unique(truth),
    }[form]
    scores = cross_val_score(estimator, X, y, cv=KFold(5))
    assert np.isfinite(scores).all()
    assert scores[-1] == 0
    assert scores[0] == 1


# -- sparse features, gaps, weights ---------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [
        SUREClassifier(kernel="linear"),
        AGGDClassifier(kernel="linear"),
        LALOClassifier(kernel=LinearKernel()),
        PLCLClassifier(kernel="linear"),
        PartnerClassifier(kernel="linear"),
        PLKNNClassifier(),
        PLSVMClassifier(kernel="linear", random_state=0),
        PLSVMClassifier(random_state=0),
        PLCPClassifier(PLKNNClassifier(), kernel="linear"),
        PLCPClassifier(PLSVMClassifier(kernel="linear"), random_state=0),
        PLCPClassifier(SUREClassifier(kernel="linear")),
        PLCPClassifier(AGGDClassifier(kernel="linear"), head="mean"),
        PLCPClassifier(SoftLabelClassifier(GaussianNB(), random_state=0)),
        SoftLabelClassifier(BernoulliNB(), random_state=0),
        PLCPClassifier(SoftLabelClassifier(BernoulliNB(), random_state=0), kernel="linear"),
    ],
    ids=name,
)
@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_features_give_what_dense_ones_give(estimator, container, data):
    X, candidates, _ = data
    sparse = container(X)
    if not get_tags(estimator).input_tags.sparse:
        with pytest.raises(TypeError, match="dense data is required"):
            clone(estimator).fit(sparse, candidates)
        return
    dense, model = clone(estimator).fit(X, candidates), clone(estimator).fit(sparse, candidates)
    np.testing.assert_array_equal(model.transduction_, dense.transduction_)
    for rows in (X, sparse):
        np.testing.assert_allclose(
            model.decision_function(rows), dense.decision_function(X), atol=1e-9
        )
    np.testing.assert_allclose(model.confidence_, dense.confidence_, atol=1e-9)


def test_gaps_are_for_the_classifier_that_takes_them(data):
    X, candidates, truth = data
    X = X.copy()
    X[::7, 1] = np.nan
    boosting = HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5)
    model = SoftLabelClassifier(boosting, random_state=0).fit(X, candidates)
    assert model.score(X, truth) > 0.8
    for refuses in (SoftLabelClassifier(GaussianNB()), PLCPClassifier(model), SUREClassifier()):
        with pytest.raises(ValueError, match="contains NaN"):
            refuses.fit(X, candidates)


def test_a_weight_counts_as_often_as_the_row_is_there(data):
    X, candidates, _ = data
    weights = np.random.RandomState(1).randint(0, 3, size=len(X))
    rows = np.repeat(np.arange(len(X)), weights)
    weighted = steady().fit(X, candidates, sample_weight=weights)
    repeated = steady().fit(X[rows], candidates[rows])
    np.testing.assert_allclose(
        weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-5, atol=1e-5
    )
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(
            weighted.predict_proba(X), steady().fit(X, candidates).predict_proba(X), atol=1e-5
        )


@pytest.mark.parametrize("weights", [np.ones(59), -np.ones(60), np.full(60, np.nan), 1.0])
def test_weights_that_are_none(weights, data):
    X, candidates, _ = data
    with pytest.raises(ValueError, match="sample_weight must be 60 finite numbers"):
        steady().fit(X, candidates, sample_weight=weights)


def test_weights_of_one_fold_alone_are_an_error(data):
    X, candidates, _ = data
    for some, message in ((0, "zero in all rows. Give"), (1, "all rows but those of one fold")):
        weights = np.arange(len(X)) < some
        with pytest.raises(ValueError, match=message):
            SoftLabelClassifier(GaussianNB()).fit(X, candidates, sample_weight=weights)


def test_plcp_takes_no_weights(data):
    X, candidates, _ = data
    with pytest.raises(TypeError, match="sample_weight"):
        PLCPClassifier(steady()).fit(X, candidates, sample_weight=np.ones(len(X)))


def test_weights_are_routed_to_the_classifier_that_asks(data):
    X, candidates, truth = data
    weights = np.random.RandomState(1).randint(0, 3, size=len(X))
    expected = steady().fit(X, candidates, sample_weight=weights)
    by_hand = [
        steady()
        .fit(X[train], truth[train], sample_weight=weights[train])
        .score(X[test], truth[test])
        for train, test in KFold(3).split(X)
    ]
    with sklearn.config_context(enable_metadata_routing=True):
        asks = steady()
        asks.set_fit_request(sample_weight=True)
        scaler = StandardScaler(with_mean=False, with_std=False)
        scaler.set_fit_request(sample_weight=False)
        model = make_pipeline(scaler, asks).fit(X, candidates, sample_weight=weights)
        np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
        asks.set_score_request(sample_weight=False)
        routed = cross_validate(asks, X, truth, params={"sample_weight": weights}, cv=KFold(3))
        np.testing.assert_array_equal(routed["test_score"], by_hand)
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            make_pipeline(scaler, steady()).fit(X, candidates, sample_weight=weights)
        asks.set_fit_request(sample_weight=False)
        unweighted = make_pipeline(scaler, asks)
        with pytest.raises(TypeError, match="sample_weight"):
            unweighted.fit(X, candidates, sample_weight=weights)
