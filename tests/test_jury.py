"""The jury: its honest outputs against refitting, its choices, its members, its manners."""

from __future__ import annotations

import warnings
from importlib.util import find_spec

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import BaggingRegressor, ExtraTreesRegressor, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from appellate import (
    CandidateSets,
    CLPLClassifier,
    JuryClassifier,
    PLCPClassifier,
    PLECOCClassifier,
    PLKNNClassifier,
    SoftLabelClassifier,
    SUREClassifier,
)
from appellate.candidates import as_candidates
from appellate.core.problem import Problem
from appellate.datasets import make_partial_labels
from appellate.evidence.likelihood import Evidence, estep
from appellate.evidence.order import order_matrix
from appellate.evidence.scales import Scale
from appellate.io import load_model, save_model
from appellate.methods.jury import exact, nystroem
from appellate.methods.jury.exact import KernelMember
from appellate.methods.jury.members import (
    KERNELS,
    ModelScores,
    Replicas,
    Trees,
    draw_folds,
    fit_forest,
    log_shares,
    sort_members,
)
from appellate.numerics import blocks, memory
from appellate.numerics.kernels import GaussianKernel, LaplacianKernel
from appellate.testing import make_clusters, parametrize_with_pll_checks
from tests.problems import random_candidates

SEED = 0
TORCH = find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not TORCH, reason="torch is not installed")
SMALL_FOREST = RandomForestRegressor(5, min_samples_leaf=2)
ESTIMATORS = [
    JuryClassifier("kernel"),
    JuryClassifier("kernel", ambiguity=0.5, n_folds=2, max_rounds=2),
    JuryClassifier([SMALL_FOREST], ambiguity="set-first", n_folds=2, max_rounds=2),
    JuryClassifier(
        "kernel",
        kernel=GaussianKernel(approximation="nystroem", n_landmarks=40),
        n_folds=2,
        max_rounds=2,
    ),
]


@parametrize_with_checks(ESTIMATORS)
def test_sklearn_checks(estimator, check):
    check(estimator)


@parametrize_with_pll_checks(
    [*ESTIMATORS, JuryClassifier("kernel", cost="absolute", n_folds=2, max_rounds=2)]
)
def test_pll_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    """Overlapping clusters of unequal sizes; sets are drawn around the truth."""
    rng = np.random.RandomState(SEED)
    truth = rng.choice(4, size=90, p=[0.5, 0.25, 0.15, 0.1])
    X = 2 * rng.normal(size=(4, 3))[truth] + rng.normal(size=(90, 3))
    candidates = random_candidates(rng, 90, 4, 0.3)
    candidates[np.arange(90), truth] = True
    return X, candidates, truth


def make_bags(n_bags=120, n_labels=6, spread=1.0, seed=SEED):
    """Bags of four rows that share the union of their labels, which have a long tail."""
    rng = np.random.RandomState(seed)
    prior = 0.6 ** np.arange(n_labels)
    truth = rng.choice(n_labels, size=(n_bags, 4), p=prior / prior.sum())
    candidates = np.zeros((n_bags, n_labels), dtype=bool)
    candidates[np.arange(n_bags)[:, None], truth] = True
    truth, bags = truth.ravel(), np.repeat(np.arange(n_bags), 4)
    X = 2 * rng.normal(size=(n_labels, 5))[truth] + spread * rng.normal(size=(len(truth), 5))
    return X, candidates[bags], truth, bags


# -- numerics -----------------------------------------------------------------------------


def ridge_on(X, width, ridge, Q, new):
    """Kernel ridge regression with a free bias, from its normal equations."""
    n = len(X)

    def kernel(A, B):
        return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2) / (2 * width**2))

    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = kernel(X, X) + ridge * np.eye(n)
    system[:n, n] = system[n, :n] = 1
    solution = np.linalg.solve(system, np.vstack([Q, np.zeros((1, Q.shape[1]))]))
    return kernel(new, X) @ solution[:n] + solution[n]


@pytest.mark.parametrize(("relative", "ridge"), [(0.5, 0.05), (1.0, 0.5), (2.0, 1e-4)])
def test_kernel_outputs_against_refitting(data, relative, ridge):
    """Every replica's fold and leave-one-out outputs equal those of refitted regressions."""
    X, candidates, _ = (each[:25] for each in data)
    rng = np.random.RandomState(1)
    replicas = Replicas.split(Evidence.of_sets(candidates), draw_folds(25, 3, None, rng))
    problem = Problem(X, as_candidates(candidates))
    smoother = problem.smoother(GaussianKernel(relative), ridge)
    targets = np.where(replicas.scatter([part.prior for part in replicas.parts]) > 0, 1.0, 0.0)
    targets *= rng.uniform(size=targets.shape)
    targets[replicas.fold == 1, 1] = targets[replicas.fold == 2, 2] = 0
    targets[replicas.fold == 3, 3] = 0
    outputs = KernelMember.of("kernel", smoother, replicas).output(targets, replicas)
    width = smoother.function.width
    for k, rows in enumerate(replicas.rows):
        for i in range(25):
            rest = rows[rows != i]
            expected = ridge_on(X[rest], width, ridge, targets[rest, k], X[[i]])[0]
            np.testing.assert_allclose(outputs[i, k], expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize(
    ("kernel", "gap"),
    [
        (GaussianKernel(1.0), 0.02),
        (LaplacianKernel(1.0, root=True), 0.04),  # a row counts more in its own output
    ],
)
def test_landmark_outputs_against_exact(data, monkeypatch, kernel, gap, ordered):
    """With all rows as landmarks, features in small blocks say what the kernel matrix says."""
    X, candidates, _ = data
    rng = np.random.RandomState(1)
    replicas = Replicas.split(Evidence.of_sets(candidates), draw_folds(90, 3, None, rng))
    targets = [part.normalize(rng.uniform(size=len(part.entries))) for part in replicas.parts]
    problem = Problem(X, as_candidates(candidates))
    many = {"approximation": "nystroem", "n_landmarks": 90}
    kernels = [(GaussianKernel(0.5), 0.05), (kernel, 0.5)]
    monkeypatch.setattr(nystroem, "_PIECE", 100)
    monkeypatch.setattr(blocks, "_BLOCK_BYTES", 7000)
    fits = []
    for prepare, options in ((nystroem.prepare, many), (exact.prepare, {})):
        named = [
            (name, clone(kernel).set_params(**options), ridge)
            for name, (kernel, ridge) in zip("ab", kernels, strict=True)
        ]
        fits.append(prepare(problem, named, replicas))
    smooth = order_matrix(np.arange(4), 1) if ordered else None
    found, expected = (fit(targets, smooth) for fit in fits)
    weights = np.array([0.3, 0.7])
    scales = [Scale(0.2, np.array([0.0, 0.05, 0.1, 0.0])), Scale(0.1)]
    new = X[:5] + 0.1
    for m in range(2):
        np.testing.assert_allclose(found.held_out[m], expected.held_out[m], atol=2e-4)
    members = (each.fitted(scales, weights) for each in (found, expected))
    for one, two in zip(*members, strict=True):
        assert (one.name, one.weight) == (two.name, two.weight)
        scores = one.models[0].predict(new)
        if ordered:
            scores = scores @ one.smooth
        np.testing.assert_allclose(scores, two.models[0].predict(new), atol=2e-4)
        np.testing.assert_allclose(one.probabilities(new), two.probabilities(new), atol=5e-3)
    for one, two in zip(
        found.everywhere(scales, weights),
        expected.everywhere(scales, weights),
        strict=True,
    ):
        np.testing.assert_allclose(one, two, atol=5e-3)
    mixed = found.mix(scales, weights), expected.mix(scales, weights)
    np.testing.assert_allclose(mixed[0][0], mixed[1][0], atol=5e-3)
    for one, two in zip(*mixed, strict=True):  # the leverage of replicas is approximate
        assert np.abs(one - two).mean() < gap


def test_criterion_on_a_sample(monkeypatch):
    X, candidates, truth, _ = make_bags(n_bags=200)
    monkeypatch.setattr(nystroem, "_SAMPLE", 300)
    many = GaussianKernel(approximation="nystroem", n_landmarks=100)
    options = {"kernel": many, "random_state": 0}
    jury = JuryClassifier("auto", **options).fit(X, candidates)
    exact = JuryClassifier("kernel", random_state=0).fit(X, candidates)
    assert [name for name, *_ in jury.weights_] == [name for name, *_ in exact.weights_]
    assert jury.honest_output_.shape == candidates.shape
    right = np.mean(jury.transduction_ == truth)
    assert right > np.mean(exact.transduction_ == truth) - 0.03


def test_dask_and_disk_say_what_memory_says(tmp_path):
    """Features with the workers, or in a file: the same jury, lazy on new rows."""
    da = pytest.importorskip("dask.array")
    X, candidates, _, _ = make_bags(n_bags=60)
    many = GaussianKernel(approximation="nystroem", n_landmarks=50)
    here = JuryClassifier("kernel", kernel=many, random_state=0).fit(X, candidates)
    lazy = da.from_array(X, chunks=(37, -1))
    there = JuryClassifier(kernel=many, random_state=0).fit(lazy, candidates)
    filed = clone(here).set_params(kernel__cache_dir=tmp_path).fit(X, candidates)
    for jury in (there, filed):
        assert jury.ambiguity_ == here.ambiguity_
        np.testing.assert_allclose(jury.confidence_, here.confidence_, atol=1e-3)
        np.testing.assert_array_equal(jury.transduction_, here.transduction_)
    predicted = there.predict_proba(lazy)
    assert isinstance(predicted, da.Array)
    np.testing.assert_allclose(predicted.compute(), here.predict_proba(X), atol=1e-3)


def test_first_round_by_hand(data):
    """One kernel, one round: the leave-one-out posterior and the honest output of folds."""
    X, candidates, _ = data
    jury = JuryClassifier("kernel", ambiguity=1.0, max_rounds=1, random_state=0)
    jury.fit(X, candidates)
    evidence = Evidence.of_sets(candidates)
    expected = evidence.entries.scatter(estep(jury.training_output_, evidence, 1.0))
    np.testing.assert_allclose(jury.confidence_, expected, atol=1e-9)
    plain = JuryClassifier("kernel", ambiguity=0.0, max_rounds=1, random_state=0)
    plain.fit(X, candidates)
    Q = plain.training_output_ * candidates
    np.testing.assert_allclose(plain.confidence_, Q / Q.sum(axis=1, keepdims=True), atol=1e-9)


def test_honest_output_never_saw_the_row(data):
    """Other candidates of a row change nothing of what is honestly said of its fold."""
    X, candidates, _ = data
    changed = candidates.copy()
    changed[0] = ~candidates[0]
    changed[0, 0] = True
    options = {"ambiguity": 1.0, "max_rounds": 1, "random_state": 0}
    one, two = (JuryClassifier("kernel", **options).fit(X, Y) for Y in (candidates, changed))
    shift = np.abs(one.honest_output_ - two.honest_output_).max(axis=1)
    own = np.abs(one.training_output_ - two.training_output_).max(axis=1)
    fold = draw_folds(90, 5, None, np.random.RandomState(0))
    mates = fold == fold[0]
    # Temperatures and weights are found on all rows, and move by a little.
    assert shift[mates].max() < 0.1 * own[~mates].max() + 0.05
    smoother = Problem(X, as_candidates(candidates)).smoother("rbf", 0.05)
    held_out = []
    for Y in (candidates, changed):
        replicas = Replicas.split(Evidence.of_sets(Y), fold)
        targets = replicas.scatter([part.prior for part in replicas.parts])
        output = KernelMember.of("kernel", smoother, replicas).output(targets, replicas)
        held_out.append(replicas.held_out(output))
    np.testing.assert_array_equal(held_out[0][mates], held_out[1][mates])
    assert np.abs(held_out[0] - held_out[1])[~mates].max() > 1e-3


def test_forest_is_out_of_bag(data):
    """A forest that knows its rows by heart does not repeat what it was told of them."""
    X, candidates, _ = data
    replicas = Replicas.split(
        Evidence.of_sets(candidates), draw_folds(90, 3, None, np.random.RandomState(0))
    )
    rng = np.random.RandomState(1)
    noise = np.eye(4)[rng.randint(4, size=90)]
    targets = np.repeat(noise[:, None], 4, axis=1)
    forest = RandomForestRegressor(30)
    outputs, trees = fit_forest(forest, targets, 0, X=X, replicas=replicas, n_jobs=None)
    assert np.mean(outputs[:, 0].argmax(axis=1) == noise.argmax(axis=1)) < 0.5
    assert np.mean(trees.predict(X).argmax(axis=1) == noise.argmax(axis=1)) > 0.9


def test_trees_as_arrays(data):
    X, candidates, _ = data
    targets = candidates / candidates.sum(axis=1, keepdims=True)
    single = X.astype(np.float32)
    for forest in (RandomForestRegressor(7), ExtraTreesRegressor(7, max_depth=1)):
        forest.set_params(random_state=0).fit(single, targets)
        new = np.vstack([single, single + 0.05])
        trees = Trees.of(forest)
        np.testing.assert_allclose(trees.average(new), forest.predict(new), atol=1e-6)
        np.testing.assert_array_equal(trees.predict(new), log_shares(trees.average(new), len(new)))


# -- choices ------------------------------------------------------------------------------


def test_set_first_bags_are_recognised():
    X, candidates, truth, bags = make_bags(spread=2.0)
    jury = JuryClassifier("kernel", random_state=0).fit(X, candidates, groups=bags)
    assert jury.ambiguity_ > 0
    wrong = JuryClassifier("kernel", ambiguity="label-first", random_state=0)
    wrong.fit(X, candidates, groups=bags)
    right = np.mean(jury.transduction_ == truth)
    assert right > np.mean(wrong.transduction_ == truth) + 0.03
    assert set(jury.criterion_) == {0.0, 0.5, 1.0}
    assert len(jury.criterion_[jury.ambiguity_]) == 8


def test_label_first_sets_are_recognised():
    rng = np.random.RandomState(SEED)
    truth = rng.choice(6, size=500, p=[0.4, 0.25, 0.15, 0.1, 0.06, 0.04])
    X = 1.5 * rng.normal(size=(6, 5))[truth] + rng.normal(size=(500, 5))
    candidates = random_candidates(rng, 500, 6, 0.5)
    candidates[np.arange(500), truth] = True
    jury = JuryClassifier("kernel", random_state=0).fit(X, candidates)
    assert jury.ambiguity_ == 0
    forced = JuryClassifier("kernel", ambiguity="set-first", random_state=0).fit(X, candidates)
    assert np.mean(jury.transduction_ == truth) > np.mean(forced.transduction_ == truth)


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_label_first(seed):
    rng = np.random.RandomState(seed)
    X, candidates = rng.normal(size=(150, 4)), random_candidates(rng, 150, 5, 0.4)
    jury = JuryClassifier("kernel", random_state=0).fit(X, candidates)
    assert jury.ambiguity_ == 0
    assert jury.n_iter_ == 1


def test_an_earlier_round_is_mixed_in_if_it_was_better():
    """False labels that look like the true one are learned too well in later rounds."""
    rng = np.random.RandomState(2)
    y = rng.choice(5, size=300, p=[0.36, 0.25, 0.18, 0.12, 0.09])
    X = 1.2 * rng.normal(size=(5, 4))[y] + rng.normal(size=(300, 4))
    sets = make_partial_labels(
        y, strategy="instance_dependent", flip_probability=0.3, X=X, random_state=2
    )
    jury = JuryClassifier("kernel", random_state=0).fit(X, sets)
    names = [name for name, *_ in jury.weights_]
    assert len(names) == 2 * len(KERNELS)
    assert sum(name.endswith(", earlier") for name in names) == len(KERNELS)
    assert sum(weight for _, weight, _ in jury.weights_) == pytest.approx(1)
    evidence = Evidence.of_sets(sets)
    expected = estep(jury.training_output_, evidence, jury.ambiguity_)
    np.testing.assert_allclose(jury.confidence_, evidence.entries.scatter(expected), atol=1e-9)


def test_rows_whose_truth_is_missing_are_suspicious(data):
    X, candidates, truth = data
    missing = np.random.RandomState(2).permutation(90)[:9]
    wrong = candidates.copy()
    wrong[missing, truth[missing]] = False
    wrong[missing, (truth[missing] + 1) % 4] = True
    jury = JuryClassifier("kernel", random_state=0).fit(X, wrong)
    order = np.argsort(-jury.suspicion_)
    assert np.isin(order[:12], missing).sum() >= 6


@pytest.mark.parametrize("members", ["kernel", [SMALL_FOREST]])
def test_covering_uses_the_groups(members):
    X, candidates, truth, bags = make_bags(spread=2.5)
    plain = JuryClassifier(members, random_state=0).fit(X, candidates, groups=bags)
    sure = JuryClassifier(members, covering=True, random_state=0)
    sure.fit(X, candidates, groups=bags)
    assert np.mean(sure.transduction_ == truth) > np.mean(plain.transduction_ == truth)
    assert sure.covering_
    assert not plain.covering_
    chosen = JuryClassifier(members, covering="auto", random_state=0)
    chosen.fit(X, candidates, groups=bags)
    assert chosen.covering_
    best = sure if chosen.covering_ else plain
    np.testing.assert_array_equal(chosen.transduction_, best.transduction_)
    with pytest.raises(ValueError, match="needs groups"):
        clone(sure).fit(X, candidates)
    with pytest.raises(ValueError, match="groups has 3 values"):
        clone(sure).fit(X, candidates, groups=[1, 2, 3])
    with pytest.raises(ValueError, match="different candidates"):
        clone(sure).fit(X, candidates, groups=np.zeros(len(X)))


@pytest.mark.parametrize("missing", [None, float("nan"), " "])
def test_rows_without_a_group_stand_alone(missing):
    X, candidates, _, bags = make_bags(spread=2.5)
    gone = np.arange(len(X) - 8, len(X))  # of different candidates
    names = [missing if i in gone else f"{bag:03}" for i, bag in enumerate(bags)]
    alone = np.where(np.isin(np.arange(len(X)), gone), -1 - np.arange(len(X)), bags)
    found, expected = (
        JuryClassifier("kernel", covering=True, random_state=0).fit(X, candidates, groups=each)
        for each in (names, alone)
    )
    np.testing.assert_array_equal(found.confidence_, expected.confidence_)


def test_folds_keep_groups_whole():
    groups = np.repeat(np.arange(11), 5)
    fold = draw_folds(55, 4, groups, np.random.RandomState(0))
    assert all(len(set(fold[groups == g])) == 1 for g in range(11))
    assert set(fold) == {1, 2, 3, 4}
    one_group = draw_folds(10, 3, np.zeros(10), np.random.RandomState(0))
    assert set(one_group) == {1, 2, 3}


@pytest.mark.parametrize(("covering", "n_fits"), [(True, 12), ("auto", 24)])
def test_every_round_is_reported_with_the_largest_possible_number(covering, n_fits):
    X, candidates, _, bags = make_bags(n_bags=30)
    jury = JuryClassifier("kernel", covering=covering, random_state=0)
    reports = []
    jury._on_round = lambda number, total: reports.append((number, total))
    jury.fit(X, candidates, groups=bags)
    numbers = [number for number, _ in reports]
    assert {total for _, total in reports} == {n_fits}
    assert numbers == sorted(set(numbers))  # no number twice
    assert numbers[0] == 1
    assert 7 <= numbers[-1] <= n_fits


def test_evidence_and_decisions(data):
    X, candidates, truth = data
    logs = np.where(np.eye(4, dtype=bool)[truth], 0.0, -20.0)
    jury = JuryClassifier("kernel", random_state=0).fit(X, candidates, evidence=logs)
    assert (jury.transduction_ == truth).all()
    decided = np.zeros(candidates.shape)
    wrong = np.array([np.flatnonzero(row)[-1] for row in candidates])
    decided[:10] = -np.inf
    decided[np.arange(10), wrong[:10]] = 0
    jury.fit(X, candidates, evidence=decided)
    np.testing.assert_array_equal(jury.transduction_[:10], wrong[:10])
    assert jury.confidence_[np.arange(10), wrong[:10]].min() == 1
    with pytest.raises(ValueError, match="evidence has shape"):
        jury.fit(X, candidates, evidence=decided[:, :2])


def test_singletons_are_plain_classification(data):
    X, _, truth = data
    jury = JuryClassifier("kernel", random_state=0).fit(X, truth)
    np.testing.assert_array_equal(jury.transduction_, truth)
    assert jury.n_iter_ == 1
    assert not jury.overturned_.any()
    assert jury.score(X, truth) > 0.9


# -- members ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("member", "is_forest"),
    [
        (RandomForestRegressor(5), True),
        (ExtraTreesRegressor(5, bootstrap=True), True),
        (SoftLabelClassifier(LogisticRegression()), False),
        (SUREClassifier(), False),
        (PLCPClassifier(SUREClassifier()), False),
        (PLCPClassifier(SUREClassifier(), head="base"), False),
        (PLKNNClassifier(), False),
        (CLPLClassifier(), False),
        (PLECOCClassifier(), False),
        pytest.param("network", False, marks=needs_torch),
    ],
)
def test_every_kind_of_member_takes_part(data, member, is_forest):
    X, candidates, truth = data
    forests, late = sort_members([member])
    name = member if isinstance(member, str) else type(member).__name__
    assert [each for each, _ in forests] == [name] * is_forest
    assert [each for each, _ in late] == [name] * (not is_forest)
    jury = JuryClassifier([member], n_folds=3, max_rounds=3, random_state=0).fit(X, candidates)
    assert len(jury.weights_) == len(KERNELS) + 1
    assert jury.weights_[-1][0] == name
    assert sum(weight for _, weight, _ in jury.weights_) == pytest.approx(1)
    assert ("panel" in jury.criterion_) == is_forest
    assert np.mean(jury.predict(X) == truth) > 0.8
    np.testing.assert_allclose(jury.predict_proba(X).sum(axis=1), 1)


@pytest.mark.parametrize(
    "member",
    [
        RandomForestRegressor,
        ExtraTreesRegressor(5),  # without out-of-bag rows
        BaggingRegressor(max_features=0.5),
        LogisticRegression(),
        Ridge(),
        object(),
        "forest",
    ],
)
def test_refuses_what_cannot_learn_from_soft_targets(data, member, monkeypatch):
    X, candidates, _ = data
    monkeypatch.setattr(exact, "prepare", None)  # the error comes before any work
    with pytest.raises(TypeError, match="cannot be a member of a jury"):
        JuryClassifier([member]).fit(X, candidates)


@pytest.mark.parametrize(
    "member",
    [
        SoftLabelClassifier(LogisticRegression()),
        PLCPClassifier(SoftLabelClassifier(LogisticRegression()), head="base"),
        PLCPClassifier(SUREClassifier(), head="mean"),
        pytest.param("PRODENClassifier", marks=needs_torch),
    ],
)
def test_scores_of_probabilities_are_logarithms(data, member):
    X, candidates, _ = data
    if isinstance(member, str):
        from appellate.deep import PRODENClassifier

        member = PRODENClassifier("linear", n_epochs=1, random_state=0)
    member = clone(member).fit(X, candidates)
    expected = log_shares(member.predict_proba(X), len(X))
    np.testing.assert_array_equal(ModelScores(member).predict(X), expected)


@pytest.mark.parametrize("member", [SUREClassifier(), PLKNNClassifier()])
def test_cost_of_a_member_does_not_change_its_scores(data, member):
    X, candidates, _ = data
    jury = JuryClassifier([member], n_folds=3, max_rounds=2, random_state=0)
    costly = clone(jury).set_params(members=[clone(member).set_params(cost="absolute")])
    one, two = (each.fit(X, candidates) for each in (jury, costly))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    np.testing.assert_array_equal(one.confidence_, two.confidence_)


@needs_torch
def test_a_network_is_fitted_once():
    """Its partner is a network too, which has no leave-one-out output."""
    from appellate.deep import PRODENClassifier

    member = PRODENClassifier("linear", n_epochs=1, partner="non-candidate", head="partner")
    forests, late = sort_members([member])
    assert not forests
    assert [name for name, _ in late] == ["PRODENClassifier"]


def test_members_of_two_labels():
    X, candidates, truth = make_clusters(n_classes=2)
    members = [SUREClassifier(), SMALL_FOREST, SoftLabelClassifier(LogisticRegression())]
    jury = JuryClassifier(members, random_state=0).fit(X, candidates)
    assert (jury.predict(X) == truth).mean() > 0.95


def test_a_forest_that_knows_more_gets_the_weight():
    """Kernels cannot see a label that a forest finds in one of many noisy columns."""
    rng = np.random.RandomState(SEED)
    truth = rng.randint(3, size=300)
    X = np.hstack([truth[:, None] + 0.1 * rng.normal(size=(300, 1)), rng.normal(size=(300, 400))])
    candidates = random_candidates(rng, 300, 3, 0.3)
    candidates[np.arange(300), truth] = True
    forest = RandomForestRegressor(30, min_samples_leaf=2, max_features=0.5)
    light = JuryClassifier("kernel", random_state=0).fit(X, candidates)
    full = JuryClassifier([forest], random_state=0).fit(X, candidates)
    name, weight, _ = full.weights_[-1]
    assert name == "RandomForestRegressor"
    assert weight > 0.5
    assert np.mean(full.transduction_ == truth) > np.mean(light.transduction_ == truth) + 0.05


@pytest.mark.parametrize(
    "members",
    [
        pytest.param("auto", marks=pytest.mark.slow),
        [SMALL_FOREST, SoftLabelClassifier(LogisticRegression())],
    ],
)
def test_jobs_and_seeds(data, members):
    X, candidates, _ = data
    options = {"max_rounds": 2, "n_folds": 3}
    one, two, other = (
        JuryClassifier(members, n_jobs=jobs, random_state=seed, **options).fit(X, candidates)
        for jobs, seed in ((None, 0), (2, 0), (None, 1))
    )
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    np.testing.assert_array_equal(one.confidence_, two.confidence_)
    assert (one.honest_output_ != other.honest_output_).any()


# -- manners ------------------------------------------------------------------------------


def test_docket_and_history():
    X, candidates, truth, _ = make_bags(spread=2.0)
    jury = JuryClassifier("kernel", random_state=0).fit(X, candidates)
    docket = jury.docket(output="dict", truth=truth)
    np.testing.assert_array_equal(docket["first_label"], jury.verdict_)
    np.testing.assert_array_equal(docket["label"], jury.transduction_)
    np.testing.assert_array_equal(docket["outcome"] == "changed", jury.overturned_)
    assert jury.overturned_.any()
    assert len(jury.label_history_) == jury.n_iter_ + 1
    Q = jury.verdict_confidence_
    np.testing.assert_array_equal(jury.verdict_, Q.argmax(axis=1))


@pytest.mark.parametrize(
    "members",
    ["kernel", [SMALL_FOREST, SoftLabelClassifier(LogisticRegression()), SUREClassifier()]]
    + [["network"]] * TORCH,
)
def test_saved_and_loaded(data, members, tmp_path):
    X, candidates, _ = data
    jury = JuryClassifier(members, n_folds=3, max_rounds=2, random_state=0).fit(X, candidates)
    same = load_model(save_model(jury, tmp_path / "model"))
    np.testing.assert_array_equal(same.predict_proba(X), jury.predict_proba(X))
    assert same.criterion_ == jury.criterion_
    assert same.weights_ == jury.weights_


@pytest.mark.parametrize(
    "members", ["kernel", [SMALL_FOREST, SUREClassifier()]] + [["network"]] * TORCH
)
@pytest.mark.parametrize("landmarks", [None, 40])
def test_sparse_rows_give_what_dense_rows_give(data, members, landmarks, tmp_path):
    X, candidates, _ = data
    X = np.where(np.abs(X) > 0.8, X, 0.0)
    way = "exact" if landmarks is None else "nystroem"
    kernel = GaussianKernel(approximation=way, n_landmarks=landmarks)
    jury = JuryClassifier(members, kernel=kernel, n_folds=3, max_rounds=3, random_state=0)
    assert get_tags(jury).input_tags.sparse
    dense = clone(jury).fit(X, candidates)
    sparse = clone(jury).fit(sp.csr_array(X), candidates)
    same = load_model(save_model(sparse, tmp_path / "model"))
    np.testing.assert_allclose(sparse.confidence_, dense.confidence_, atol=1e-8)
    np.testing.assert_array_equal(sparse.transduction_, dense.transduction_)
    expected = dense.predict_proba(X)
    for rows in (X, sp.csr_array(X), sp.coo_matrix(X)):
        for fitted in (sparse, same):
            np.testing.assert_allclose(fitted.predict_proba(rows), expected, atol=1e-8)
            np.testing.assert_array_equal(fitted.predict(rows), dense.predict(X))
    np.testing.assert_allclose(dense.predict_proba(sp.csr_array(X)), expected, atol=1e-8)


def test_sparse_rows_of_a_forest_that_do_not_fit_are_refused(data, monkeypatch):
    X, candidates, _ = data
    monkeypatch.setattr(memory, "free_memory", lambda: 1000)
    with pytest.raises(MemoryError, match="members='kernel'"):
        JuryClassifier([SMALL_FOREST]).fit(sp.csr_array(X), candidates)


def test_single_precision_finds_what_double_precision_finds(monkeypatch):
    X, candidates, _, _ = make_bags(n_bags=60)
    fits = []
    for rows in (len(X), 0):
        monkeypatch.setattr(exact, "_DOUBLE_ROWS", rows)
        fits.append(JuryClassifier("kernel", max_rounds=4, random_state=0).fit(X, candidates))
    double, single = fits
    np.testing.assert_array_equal(single.transduction_, double.transduction_)
    for tau, values in double.criterion_.items():
        np.testing.assert_allclose(single.criterion_[tau], values, atol=1e-4)
    np.testing.assert_allclose(single.confidence_, double.confidence_, atol=5e-3)
    np.testing.assert_allclose(single.predict_proba(X), double.predict_proba(X), atol=5e-3)
    assert np.abs(single.predict_proba(X) - double.predict_proba(X)).max() > 0


def test_calibration_of_new_rows():
    X, candidates, truth, _ = make_bags(n_bags=200, spread=2.0)
    jury = JuryClassifier("kernel", random_state=0).fit(X[:400], candidates[:400])
    P = jury.predict_proba(X[400:])
    assert abs(P.max(axis=1).mean() - np.mean(P.argmax(axis=1) == truth[400:])) < 0.08


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 9),
    l=st.integers(1, 4),
    kind=st.sampled_from(["random", "single", "full", "never", "same row", "constant", "huge"]),
    members=st.sampled_from(["kernel", "forest"]),
    seed=st.integers(0, 50),
)
def test_degenerate_problems(n, l, kind, members, seed):
    """Nothing breaks, nothing is NaN, and single candidates stay."""
    rng = np.random.RandomState(seed)
    candidates = random_candidates(rng, n, l)
    X = rng.normal(size=(n, 2))
    if kind == "single":
        candidates = np.eye(l, dtype=bool)[rng.randint(l, size=n)]
    elif kind == "full":
        candidates[:] = True
    elif kind == "never" and l > 1:
        candidates = np.hstack(
            [
                candidates[:, :-1] | ~candidates[:, :-1].any(axis=1)[:, None],
                np.zeros((n, 1), dtype=bool),
            ]
        )
    elif kind in ("same row", "constant"):
        X[:] = X[0] if kind == "same row" else 1.0
    elif kind == "huge":
        X = 1e6 * X + 1e9
    chosen = [SMALL_FOREST] if members == "forest" else "kernel"
    jury = JuryClassifier(chosen, max_rounds=4, random_state=0)
    jury.fit(X, CandidateSets(candidates, np.arange(candidates.shape[1]), None))
    P = jury.predict_proba(np.vstack([X, X + 100]))
    assert np.isfinite(P).all()
    np.testing.assert_allclose(P.sum(axis=1), 1)
    assert not jury.confidence_[~candidates].any()
    np.testing.assert_allclose(jury.confidence_.sum(axis=1), 1)
    assert np.isfinite(jury.suspicion_).all()
    assert not jury.overturned_[candidates.sum(axis=1) == 1].any()


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9, 1.1, 1.6, 2.5])
def test_single_precision_fits_at_any_budget(data, monkeypatch, share):
    """The kernels are represented once: rows in double precision do not decide anew."""
    X, candidates, _ = data
    needed = 8 * 90 * 90 * JuryClassifier("kernel")._n_matrices()
    monkeypatch.setattr(memory, "SMALL_ROWS", 10)
    monkeypatch.setattr(memory, "DEFAULT_LANDMARKS", 40)
    monkeypatch.setattr(memory, "FEWEST_LANDMARKS", 20)
    monkeypatch.setattr(memory, "_WORKSPACE", 0)
    monkeypatch.setattr(memory, "_THREAD_BYTES", 0)
    monkeypatch.setattr(memory, "SAMPLE_ROWS", 10)
    monkeypatch.setenv("APPELLATE_MEMORY", str(round(share * needed) + 200_000))
    jury = JuryClassifier("kernel", max_rounds=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jury.fit(X.astype(np.float32), candidates)
    assert np.isfinite(jury.predict_proba(X.astype(np.float32))).all()
