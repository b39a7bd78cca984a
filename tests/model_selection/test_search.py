"""PLCPClassifierCV against trying every setting one by one, and what it shares and refuses."""

from __future__ import annotations

import weakref
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import appellate.core.problem as problem_module
from appellate import (
    AGGDClassifier,
    CLPLClassifier,
    GaussianKernel,
    PLCPClassifier,
    PLKNNClassifier,
    SUREClassifier,
)
from appellate.metrics import candidate_likelihood
from appellate.model_selection import (
    CandidateKFold,
    CandidateStratifiedKFold,
    PLCPClassifierCV,
    get_scorer,
    get_scorer_names,
)
from appellate.numerics import kernels
from appellate.numerics.smoothers import KernelSmoother
from appellate.testing import make_clusters, parametrize_with_pll_checks
from tests.problems import random_candidates

GRID = {
    "bandwidths": [0.5, 2.0],
    "regularizations": [0.05, 0.5],
    "collaborations": [2.0],
    "blurs": [-1.0, None],
}
SMALL = {"bandwidths": (1.0, 2.0), "regularizations": (0.05,), "collaborations": (2.0,)}
ESTIMATORS = [
    PLCPClassifierCV(SUREClassifier(), **SMALL, blurs=(-1.0,), cv=2),
    PLCPClassifierCV(
        SUREClassifier(), **SMALL, blurs=(-1.0, None), scoring="leave_one_out_likelihood"
    ),
    PLCPClassifierCV(
        PLKNNClassifier(),
        **SMALL,
        blurs=(None,),
        scoring="leave_one_out_covering",
        kernel="linear",
    ),
]


@parametrize_with_checks(ESTIMATORS)
def test_sklearn_checks(estimator, check):
    check(estimator)


@parametrize_with_pll_checks(ESTIMATORS)
def test_pll_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    rng = np.random.RandomState(0)
    truth = rng.randint(4, size=80)
    X = rng.normal(size=(4, 3))[truth] * 1.5 + rng.normal(size=(80, 3))
    candidates = random_candidates(rng, 80, 4, 0.3)
    candidates[np.arange(80), truth] = True
    return X, candidates, truth


def one_by_one(base=None, kernel_options=None, **options):
    """The same settings as plain classifiers."""
    for bandwidth, ridge, collaboration, blur in product(*GRID.values()):
        kernel = GaussianKernel(bandwidth, **(kernel_options or {}))
        yield PLCPClassifier(
            base or SUREClassifier(kernel=kernel, regularization=ridge),
            kernel=kernel,
            regularization=ridge,
            collaboration=collaboration,
            blur=blur,
            **options,
        )


@pytest.mark.parametrize("name", ["leave_one_out_likelihood", "covering_rate"])
def test_nystroem_features_equal_trying_one_by_one(data, name, monkeypatch):
    X, candidates, _ = data
    made = []

    def counted(*args):
        made.append(args[2].width)
        return original(*args)

    original = problem_module.nystroem_basis
    options = {"approximation": "nystroem", "n_landmarks": 25}
    models = one_by_one(kernel_options=options)
    if name == "covering_rate":
        cv = CandidateStratifiedKFold(3)
        scores = [
            cross_val_score(model, X, candidates, scoring=get_scorer(name), cv=cv).mean()
            for model in models
        ]
    else:
        scores = [get_scorer(name)(model.fit(X, candidates)) for model in models]
    monkeypatch.setattr(problem_module, "nystroem_basis", counted)
    kernel = GaussianKernel(**options)
    found = PLCPClassifierCV(SUREClassifier(), **GRID, scoring=name, cv=3, kernel=kernel)
    found.fit(X, candidates)
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], scores, atol=1e-5)
    folds = 3 if name == "covering_rate" else 1
    assert len(made) == 2 * folds + 1  # a set of features for each width, one for the best
    best = list(one_by_one(kernel_options=options))[found.best_index_].fit(X, candidates)
    np.testing.assert_allclose(found.predict_proba(X), best.predict_proba(X), atol=1e-5)
    exact = PLCPClassifierCV(SUREClassifier(), **GRID, scoring=name, cv=3).fit(X, candidates)
    assert np.abs(exact.cv_results_["mean_test_score"] - scores).max() > 1e-4


@pytest.mark.parametrize("name", ["leave_one_out_likelihood", "leave_one_out_covering"])
def test_leave_one_out_equals_trying_one_by_one(data, name):
    X, candidates, _ = data
    found = PLCPClassifierCV(SUREClassifier(), **GRID, scoring=name).fit(X, candidates)
    models = [model.fit(X, candidates) for model in one_by_one()]
    scores = [get_scorer(name)(model) for model in models]
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], scores, atol=1e-6)
    assert found.best_score_ == found.cv_results_["mean_test_score"].max()
    best = models[found.best_index_]
    params = {**best.get_params(), "bandwidth": best.kernel.bandwidth}
    assert found.best_params_ == {name: params[name] for name in found.best_params_}
    np.testing.assert_allclose(found.decision_function(X), best.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(found.verdict_, best.verdict_)
    np.testing.assert_array_equal(found.transduction_, best.transduction_)
    np.testing.assert_allclose(found.confidence_, best.confidence_, atol=1e-6)
    np.testing.assert_allclose(
        found.leave_one_out_decision(), best.leave_one_out_decision(), atol=1e-6
    )
    assert get_scorer(name)(found) == pytest.approx(found.best_score_, abs=1e-6)


@pytest.mark.parametrize(
    "name", ["covering_rate", "approximated_accuracy", "candidate_likelihood"]
)
def test_held_out_equals_cross_validation(data, name):
    X, candidates, _ = data
    cv = CandidateStratifiedKFold(3)
    found = PLCPClassifierCV(SUREClassifier(), **GRID, scoring=name, cv=3).fit(X, candidates)
    scores = np.array(
        [
            cross_val_score(model, X, candidates, scoring=get_scorer(name), cv=cv)
            for model in one_by_one()
        ]
    )
    results = found.cv_results_
    np.testing.assert_allclose(results["mean_test_score"], scores.mean(axis=1), atol=1e-6)
    np.testing.assert_allclose(results["std_test_score"], scores.std(axis=1), atol=1e-6)
    np.testing.assert_allclose(results["split2_test_score"], scores[:, 2], atol=1e-6)
    best = list(one_by_one())[found.best_index_].fit(X, candidates)
    np.testing.assert_allclose(found.predict_proba(X), best.predict_proba(X), atol=1e-6)


def test_results_are_a_table(data):
    X, candidates, _ = data
    found = PLCPClassifierCV(SUREClassifier(), **GRID, cv=CandidateKFold(2)).fit(X, candidates)
    table = pd.DataFrame(found.cv_results_)
    assert len(table) == 8
    assert table["rank_test_score"].min() == 1
    assert table.loc[found.best_index_, "rank_test_score"] == 1
    assert table.loc[found.best_index_, "params"] == found.best_params_
    assert table["param_blur"].isna().sum() == 4
    order = table.sort_values("rank_test_score")["mean_test_score"]
    assert order.is_monotonic_decreasing


def test_folds_by_number_splitter_or_list(data):
    X, candidates, _ = data
    splitter = CandidateStratifiedKFold(4)
    folds = list(splitter.split(X, candidates))
    scores = [
        PLCPClassifierCV(SUREClassifier(), **SMALL, cv=cv).fit(X, candidates).best_score_
        for cv in (4, splitter, folds)
    ]
    assert scores[0] == scores[1] == scores[2]
    plain = PLCPClassifierCV(SUREClassifier(), **SMALL, cv=KFold(4)).fit(X, candidates)
    assert plain.best_score_ != scores[0]
    five = PLCPClassifierCV(SUREClassifier(), **SMALL).fit(X, candidates)
    assert "split4_test_score" in five.cv_results_


def test_scorer_of_ones_own_sees_names_and_held_out_rows(data):
    X, candidates, _ = data
    names = np.array(["w", "x", "y", "z"])
    seen = []

    def scorer(model, X_test, y_test):
        assert set(model.predict(X_test)) <= set(names)
        assert y_test.class_names.tolist() == names.tolist()
        seen.append((len(model.candidates_), len(X_test)))
        return -model.kernel.bandwidth

    y = ["|".join(names[row]) for row in candidates]
    found = PLCPClassifierCV(SUREClassifier(), **SMALL, blurs=(None,), scoring=scorer, cv=4)
    found.fit(X, y)
    assert seen == [(60, 20)] * 8
    assert found.best_params_["bandwidth"] == 1.0
    assert found.best_score_ == -1.0


def test_chooses_a_width_that_fits():
    """A kernel a thousand times too narrow sees no neighbours; every score notices."""
    X, candidates, truth = make_clusters(n_samples=90)
    for name in get_scorer_names():
        model = PLCPClassifierCV(
            SUREClassifier(), bandwidths=[0.001, 0.5], regularizations=[0.05], scoring=name
        ).fit(X, candidates)
        assert model.best_params_["bandwidth"] == 0.5, name
        assert model.score(X, truth) == 1


@pytest.mark.parametrize(
    ("scoring", "factorisations"), [("leave_one_out_likelihood", 4), ("covering_rate", 3 * 4)]
)
def test_factors_and_distances_are_shared(data, monkeypatch, scoring, factorisations):
    """One factorisation for a width and ridge, one alive at a time, one matrix of distances."""
    alive, most, built, distances = weakref.WeakSet(), [], [], []

    class Counted(KernelSmoother):
        def __init__(self, *args):
            super().__init__(*args)
            built.append(1)
            alive.add(self)
            most.append(len(alive))

    def counted_distances(X, Y=None):
        if Y is None:
            distances.append(len(X))
        return original(X, Y)

    original = kernels.squared_distances
    monkeypatch.setattr(problem_module.smoothers, "KernelSmoother", Counted)
    monkeypatch.setattr(kernels, "squared_distances", counted_distances)
    X, candidates, _ = data
    PLCPClassifierCV(AGGDClassifier(max_iter=2), **GRID, scoring=scoring, cv=3).fit(X, candidates)
    assert len(built) == factorisations + 1  # and that of the best
    assert max(most) == 1
    assert len(distances) == factorisations / 4 + 1


def test_base_follows_the_partner_unless_told_not_to(data):
    X, candidates, _ = data
    base = SUREClassifier(kernel=GaussianKernel(3.0), regularization=0.7, maximization=0.1)
    options = {**SMALL, "scoring": "leave_one_out_likelihood"}
    tied = PLCPClassifierCV(base, **options).fit(X, candidates)
    assert tied.estimator_.kernel.bandwidth == tied.best_params_["bandwidth"]
    assert tied.partner_.kernel.bandwidth == tied.best_params_["bandwidth"]
    assert tied.estimator_.regularization == 0.05
    assert tied.estimator_.maximization == 0.1
    free = PLCPClassifierCV(base, **options, tie_base=False).fit(X, candidates)
    assert (free.estimator_.kernel.bandwidth, free.estimator_.regularization) == (3.0, 0.7)
    assert base.kernel.bandwidth == 3.0
    voting = PLCPClassifierCV(PLKNNClassifier(), **options).fit(X, candidates)
    assert isinstance(voting.estimator_, PLKNNClassifier)
    convex = PLCPClassifierCV(CLPLClassifier(kernel="linear"), **SMALL, cv=2).fit(X, candidates)
    assert (convex.estimator_.kernel, convex.estimator_.regularization) == ("linear", 0.1)
    assert convex.partner_.kernel == "linear"  # as PLCP has it


def test_linear_kernel_has_no_width(data):
    X, candidates, _ = data
    model = PLCPClassifierCV(SUREClassifier(kernel="linear"), **GRID, kernel="linear", cv=2)
    assert len(model.fit(X, candidates).cv_results_["params"]) == 4


def test_is_a_plcp_classifier(data):
    X, candidates, _ = data
    base = SUREClassifier(kernel=GaussianKernel())
    model = PLCPClassifierCV(base, **SMALL, cv=2, head="mean", max_rounds=2)
    frame = pd.DataFrame(X, index=[f"face{i}" for i in range(80)], columns=["a", "b", "c"])
    model.fit(frame, candidates)
    docket = model.docket()
    assert docket["id"].tolist()[0] == "face0"
    assert len(model.history_) == model.n_iter_ == 2
    assert model.partner_.classes_.tolist() == [0, 1, 2, 3]
    assert model.predict(frame).shape == (80,)
    copy = clone(model)
    assert copy.get_params()["estimator__kernel__bandwidth"] == 1.0
    assert not hasattr(copy, "best_params_")


def test_can_itself_be_searched(data):
    X, candidates, _ = data
    search = GridSearchCV(
        PLCPClassifierCV(SUREClassifier(), **SMALL, scoring="leave_one_out_covering"),
        {"estimator__maximization": [0.1, 0.3]},
        scoring=get_scorer("covering_rate"),
        cv=CandidateKFold(2),
    )
    assert 0 < search.fit(X, candidates).best_score_ <= 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scoring": "oracle_accuracy"}, "uses the truth, which PLCPClassifierCV does not have"),
        ({"scoring": "accuracy"}, "'scoring' parameter"),
        ({"bandwidths": []}, "bandwidths has no values"),
        ({"bandwidths": [1.0, -1.0]}, "bandwidth.* must be"),
        ({"blurs": ["much"]}, "'blur' parameter"),
        ({"regularizations": 0.5}, "'regularizations' parameter"),
        ({"cv": 1}, "'cv' parameter"),
        ({"scoring": lambda *_: np.nan, "cv": 2}, "NaN for every setting"),
    ],
)
def test_what_cannot_be_searched_is_an_error(data, options, message):
    with pytest.raises(ValueError, match=message):
        PLCPClassifierCV(SUREClassifier(), **{**SMALL, **options}).fit(*data[:2])


def test_head_without_leave_one_out_is_an_error(data):
    model = PLCPClassifierCV(
        PLKNNClassifier(), **SMALL, head="base", scoring="leave_one_out_covering"
    )
    with pytest.raises(TypeError, match="leave-one-out"):
        model.fit(*data[:2])


# -- costs --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ordered():
    """Ten ordered labels whose features are noisy and whose candidates are near the truth."""
    rng = np.random.default_rng(1)
    truth = rng.integers(10, size=80)
    X = np.column_stack([truth + rng.normal(scale=2, size=80), rng.normal(size=80)])
    candidates = np.abs(np.arange(10) - truth[:, None]) <= rng.integers(0, 3, size=(80, 1))
    return X, candidates, truth


COSTS = [None, "ordinal:1", np.abs(np.subtract.outer(np.arange(10.0), np.arange(10.0)))]


@pytest.mark.parametrize("scoring", ["candidate_likelihood", "covering_rate"])
@pytest.mark.parametrize("tol", [None, 0.1])
def test_costs_are_scored_as_one_by_one(scoring, tol, ordered):
    X, candidates, _ = ordered
    options = {
        "bandwidths": [1.0],
        "regularizations": [0.05],
        "blurs": [-1.0],
        "collaborations": [2.0],
    }
    search = PLCPClassifierCV(
        SUREClassifier(), **options, costs=COSTS, scoring=scoring, cv=3, tol=tol
    ).fit(X, candidates)
    folds = CandidateStratifiedKFold(3)
    expected = [
        cross_val_score(
            PLCPClassifier(SUREClassifier(), cost=cost, tol=tol),
            X,
            candidates,
            scoring=get_scorer(scoring),
            cv=folds,
        ).mean()
        for cost in COSTS
    ]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected, rtol=1e-9)
    best = PLCPClassifier(SUREClassifier(), cost=COSTS[int(np.argmax(expected))], tol=tol)
    best.fit(X, candidates)
    np.testing.assert_array_equal(search.predict(X), best.predict(X))
    np.testing.assert_array_equal(search.transduction_, best.transduction_)
    np.testing.assert_array_equal(search.label_history_, best.label_history_)
    np.testing.assert_array_equal(
        search.docket(output="dict")["margin"], best.docket(output="dict")["margin"]
    )


def test_one_fit_serves_all_costs(ordered, monkeypatch):
    X, candidates, _ = ordered
    fits = []
    original = PLCPClassifier._solve

    def counted(self, *args):
        fits.append(self)
        return original(self, *args)

    monkeypatch.setattr(PLCPClassifier, "_solve", counted)
    options = {"bandwidths": [1.0], "regularizations": [0.05], "blurs": [-1.0, None], "cv": 2}
    PLCPClassifierCV(SUREClassifier(), **options, collaborations=[2.0], costs=COSTS).fit(
        X, candidates
    )
    assert len(fits) == 2 * 2 + 1  # blurs times folds, and the best


def test_the_docket_names_the_chosen_cost(ordered):
    X, candidates, _ = ordered
    options = {
        "bandwidths": [1.0],
        "regularizations": [0.05],
        "blurs": [-1.0],
        "collaborations": [2.0],
    }
    model = PLCPClassifierCV(SUREClassifier(), **options, costs=["within:2"]).fit(X, candidates)
    assert model.docket(output="docket").cost_name == "within:2"
    assert model.best_params_["cost"] == "within:2"


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
