"""The protocol: splits, scores, keys, failures."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from appellate import AGGDClassifier, PLCPClassifier, SUREClassifier
from appellate.experiments import methods, runner
from appellate.experiments.controls import graph_confidence
from appellate.experiments.methods import (
    LOWEST,
    RANDOM,
    Method,
    alone,
    coupled,
    parse_method,
    read_methods,
)
from appellate.experiments.protocol import Trial, execute, split_rows
from appellate.experiments.runner import code_version, package_version, run_all
from appellate.experiments.store import Store
from appellate.methods import registry
from appellate.paper.studies import sensitivity_methods, trace_methods
from appellate.paper.traces import TRACED
from tests.experiments.small import METHODS, make_problem, make_runs, read_rows
from tests.realdata.protocol import split


@pytest.mark.parametrize("n", [1, 2, 61, 1122])
def test_splits_are_those_of_the_reference_figures(n):
    train, test = split_rows(n, 3)
    for ours, theirs in zip((train, test), split(n, 3), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_scores_are_those_of_the_classifiers(problem):
    train, test = split_rows(len(problem.X), 1)
    model = PLCPClassifier(SUREClassifier()).fit(problem.X[train], problem.candidates[train])
    scores = execute(Trial("small", coupled("sure"), 1, 1), problem).scores
    before, after = (labels == problem.truth[train] for labels in model.label_history_[[0, -1]])
    assert scores["test"] == np.mean(model.predict(problem.X[test]) == problem.truth[test])
    assert scores["transductive"] == after.mean()
    assert scores["corrected"] == after[~before].mean()
    assert scores["broken"] == (~after)[before].mean()
    base = execute(Trial("small", alone("sure"), 1, 1), problem).scores
    assert base["transductive"] == before.mean()
    assert "corrected" not in base


def test_tolerances_add_kinder_scores():
    problem = make_problem(tolerances=(1, 3))
    scores = execute(Trial("small", coupled("knn"), 0, 0), problem).scores
    assert scores["test"] <= scores["test@1"] <= scores["test@3"] == 1
    assert scores["transductive"] <= scores["transductive@1"]
    assert "corrected@3" not in scores  # nothing was wrong


def test_without_truth_only_scores_that_need_none(problem):
    scores = execute(Trial("small", coupled("knn"), 0, 0), replace(problem, truth=None)).scores
    assert set(scores) == {"covering", "approximated", "ties"}
    assert execute(Trial("small", RANDOM, 0, 0), replace(problem, truth=None)).scores == {}


def test_luck(problem):
    random, lowest = (execute(Trial("small", m, 0, 0), problem).scores for m in (RANDOM, LOWEST))
    train, _ = split_rows(len(problem.X), 0)
    sets, truth = problem.candidates[train], problem.truth[train]
    assert random["transductive"] == pytest.approx(np.mean(1 / sets.sum(axis=1)))
    assert lowest["transductive"] == np.mean(
        [row.argmax() == t for row, t in zip(sets, truth, strict=True)]
    )


def test_random_bases_get_the_seed_alone_and_coupled():
    assert alone("svm").build(5).random_state == 5
    assert coupled("svm").build(5).estimator.random_state == 5
    assert alone("svm", random_state=1).build(5).random_state == 1


def test_folds_of_the_ambiguity_get_the_seed():
    model = replace(coupled("sure"), settings=(("partner", "jury"),)).build(3)
    assert (type(model.partner).__name__, model.random_state) == ("JuryClassifier", 3)


def test_the_cost_of_a_base_governs_the_coupled_method():
    base, settings = parse_method("sure:cost=within:3")
    model = coupled(base, base_settings=settings).build(0)
    assert model.cost == "within:3"
    assert model.estimator.cost is None


def test_a_method_that_fails_is_reported_not_stored(problem, tmp_path):
    bad = alone("knn", n_neighbors=-1)
    with Store(tmp_path / "a.sqlite") as store:
        runs = make_runs(1, methods=(alone("knn"), bad))
        summary = run_all(runs, {"small": problem}, store)
    assert summary.computed == 1
    (reason,) = summary.failures.values()
    assert "n_neighbors" in reason


def test_keys_know_all_that_matters(problem):
    run = Trial("small", coupled("sure"), 0, 0)
    key = run.key("data", "1.0")
    others = [
        replace(run, split=1),
        replace(run, seed=1),
        replace(run, method=alone("sure")),
        replace(run, method=coupled("sure", settings={"blur": None})),
        replace(run, dataset="other"),
    ]
    keys = {other.key("data", "1.0") for other in others}
    assert len(keys | {key, run.key("data", "1.1"), run.key("atad", "1.0")}) == 8
    renamed = replace(run, method=replace(run.method, title="another title"))
    assert renamed.key("data", "1.0") == key


def test_keys_know_the_code_of_a_third_party(tmp_path, monkeypatch):
    """A base that was mended is computed anew."""
    package = tmp_path / "their_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "base.py").write_text("class Theirs: ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    known = {
        "theirs": "their_package.base:Theirs",
        "sure": "appellate.methods.sure:SUREClassifier",
    }
    monkeypatch.setattr("appellate.methods.available_bases", lambda: known)

    def key(base):
        methods._foreign_code.cache_clear()
        methods._code.cache_clear()
        return Trial("small", alone(base), 0, 0).key("data", "1.0")

    before, ours = key("theirs"), key("sure")
    assert key("theirs") == before
    (package / "base.py").write_text("class Theirs: ...  # mended\n")
    assert key("theirs") != before
    assert key("sure") == ours
    methods._foreign_code.cache_clear()


def test_the_code_that_decides_scores_is_in_the_key():
    assert code_version().startswith(f"{package_version()}+")
    counted = {*runner.scoring_files()}
    bases = {f"methods/{name}.py" for name in ("aggd", "knn", "lalo", "plcl", "sure", "svm")}
    assert {"methods/plcp.py", "methods/jury/classifier.py", "core/base.py", *bases} <= counted
    assert {"experiments/protocol.py", "experiments/methods.py", "tables/encoding.py"} <= counted


def test_what_shows_results_is_not_in_the_key():
    """0.1 counted deep/methods.py by its name, and forgot all runs when a plot was edited."""
    counted = runner.scoring_files()
    for name in ("plotting.py", "io.py", "testing.py", "deep/methods.py", "cli/compare.py"):
        assert name not in counted
    assert not [name for name in counted if name.startswith(("deep/", "report", "cli/"))]


def test_rows_without_truth_are_not_scored(problem):
    some = problem.truth.copy()
    some[::3] = -1
    train, test = split_rows(len(problem.X), 1)
    scores = execute(Trial("small", coupled("sure"), 1, 1), replace(problem, truth=some)).scores
    model = PLCPClassifier(SUREClassifier()).fit(problem.X[train], problem.candidates[train])
    known = some[test] >= 0
    right = model.predict(problem.X[test]) == problem.truth[test]
    assert scores["test"] == right[known].mean()
    known = some[train] >= 0
    assert scores["transductive"] == (model.transduction_ == problem.truth[train])[known].mean()
    none = replace(problem, truth=np.full_like(some, -1))
    assert "without truth" in execute(Trial("small", coupled("sure"), 1, 1), none).error


def test_the_jury_is_a_method(problem):
    (jury,) = read_methods(["jury:max_rounds=1"])
    scores = execute(Trial("small", jury, 0, 0), problem).scores
    assert scores["test"] > 0.5
    assert {"transductive", "corrected", "broken"} <= scores.keys()
    with pytest.raises(ValueError, match="rounds"):
        read_methods(["jury:rounds=1"])


@pytest.mark.parametrize("kind", [alone, coupled])
def test_the_kernel_does_not_depend_on_free_memory(kind, monkeypatch):
    def kernel(method, n_rows):
        model = method.build(0, n_rows)
        return model.estimator.kernel if kind is coupled else model.kernel

    monkeypatch.setattr("appellate.numerics.memory.free_memory", lambda: 10**9)
    assert kernel(kind("sure"), 15_000).approximation == "exact"
    many = kernel(kind("sure"), 100_000)
    assert (many.approximation, many.n_landmarks) == ("nystroem", 1920)
    if kind is coupled:  # the partner follows its base, or has a kernel of its own
        assert coupled("sure").build(0, 50).kernel is None
        assert coupled("knn").build(0, 50).kernel.approximation == "exact"
        linear = coupled("sure", settings={"kernel": "linear"}).build(0, 50)
        assert (linear.kernel, linear.estimator.kernel.approximation) == ("linear", "exact")
    else:
        assert not hasattr(alone("knn").build(0, 50), "kernel")


def test_own_features_are_scaled_by_the_training_rows(problem):
    scaled = replace(problem, standardize=True)
    train, test = split_rows(len(problem.X), 0)
    X, X_test = scaled.features(train, test)
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0, ddof=1), 1)
    back = X_test * problem.X[train].std(axis=0, ddof=1) + problem.X[train].mean(axis=0)
    np.testing.assert_allclose(back, problem.X[test])
    far = problem.X.copy()
    far[test[0]] = 1e6  # an outlier among the test rows changes nothing in training
    run = Trial("small", alone("sure"), 0, 0)
    scores = [execute(run, replace(scaled, X=each)).scores for each in (problem.X, far)]
    assert scores[0]["transductive"] == scores[1]["transductive"]


def test_unmasked_ratios_follow_the_best_of_all_labels(problem):
    train, _ = split_rows(len(problem.X), 0)
    X, sets, truth = problem.X[train], problem.candidates[train], problem.truth[train]
    base, model = SUREClassifier().fit(X, sets), PLCPClassifier(SUREClassifier()).fit(X, sets)
    before = base.training_output_.argmax(axis=1) == truth
    after = model.training_output_.argmax(axis=1) == truth
    scores = execute(Trial("small", coupled("sure"), 0, 0), problem).scores
    assert 0 < before.mean() < 1
    assert scores["corrected unmasked"] == pytest.approx(after[~before].mean())
    assert scores["broken unmasked"] == pytest.approx((~after)[before].mean())
    variant = coupled("sure", settings={"blur": None})
    assert "corrected unmasked" not in execute(Trial("small", variant, 0, 0), problem).scores


def test_fingerprints_know_the_data(problem):
    X = problem.X.copy()
    X[0, 0] += 1e-9
    changed = [
        replace(problem, X=X),
        replace(problem, truth=None),
        replace(problem, tolerances=(3,)),
        replace(problem, standardize=True),
    ]
    assert len({p.fingerprint() for p in (problem, *changed)}) == 5


def test_two_workers_compute_the_same(problem, stored, tmp_path):
    path = tmp_path / "two.sqlite"
    with Store(path) as store:
        run_all(make_runs(3), {"small": problem}, store, n_jobs=2)
    assert read_rows(path) == read_rows(stored)


def test_nothing_is_computed_twice(problem, stored):
    with Store(stored) as store:
        summary = run_all(make_runs(3), {"small": problem}, store)
    assert (summary.found, summary.computed) == (summary.total, 0)


def test_traces_sort_the_corrected(problem):
    method = Method("traced", "plcp", "knn", details=TRACED)
    details = execute(Trial("small", method, 0, 0), problem).details
    assert sum(details["counts"].values()) == details["corrected"] <= details["mislabeled"]
    for kind, examples in details["examples"].items():
        for each in examples:
            false, true = each["false_confidence"], each["true_confidence"]
            assert true[2] >= false[2]
            assert (false[1] > false[0]) == (kind == "rises")


def test_a_graph_start_is_that_of_aggd(problem):
    model = PLCPClassifier(AGGDClassifier(), max_rounds=1).fit(problem.X, problem.candidates)
    start = graph_confidence(problem.X, problem.candidates)
    np.testing.assert_allclose(start, model.initial_confidence_, atol=1e-12)
    own, graph = (Method("m", "plcp", "sure", start=s) for s in ("own", "graph"))
    found = [execute(Trial("small", m, 0, 0), problem) for m in (own, graph)]
    assert [outcome.error for outcome in found] == [None, None]


@pytest.mark.parametrize("text", ["knn:5", "knn:=5"])
def test_settings_must_be_pairs(text):
    with pytest.raises(ValueError, match="parameter=value"):
        parse_method(text)


def test_studies_share_the_default():
    on_lost = sensitivity_methods((), make_problem("lost"))
    assert on_lost.count(coupled("aggd")) == 1
    assert sensitivity_methods((), make_problem()) == []
    assert all(method.details == TRACED for method in trace_methods().values())
    assert len(set(METHODS)) == len(METHODS)


class Prior:
    """A third party's base: it says how frequent labels are, and has no predict."""

    def get_params(self, deep=True):
        return {}

    def set_params(self, **_):
        return self

    def fit(self, X, candidates, supervision=None):
        shares = candidates if supervision is None else supervision
        self.prior_ = shares.mean(axis=0) / shares.mean(axis=0).sum()
        self.training_output_ = np.tile(self.prior_, (len(X), 1))
        return self

    def predict_proba(self, X):
        return np.tile(self.prior_, (len(X), 1))


def test_third_parties_run_alone_and_coupled(problem, monkeypatch):
    prior = registry.Base("prior", f"{__name__}:Prior", "prior", "shares of the labels")
    monkeypatch.setattr(registry, "BASES", (*registry.BASES, prior))
    monkeypatch.setitem(sys.modules, __name__, sys.modules[Prior.__module__])
    before, after = (execute(Trial("small", m("prior"), 0, 0), problem) for m in (alone, coupled))
    assert (before.error, after.error) == (None, None)
    train, test = split_rows(len(problem.X), 0)
    prior = problem.candidates[train].mean(axis=0)
    assert before.scores["test"] == np.mean(problem.truth[test] == prior.argmax())
    best = np.where(problem.candidates[train], prior, -1).argmax(axis=1)
    assert before.scores["transductive"] == np.mean(best == problem.truth[train])
    assert after.scores["test"] > before.scores["test"]


def test_every_passive_module_exists():
    home = Path(runner.__file__).parents[1]
    for name in runner._PASSIVE:
        assert (home / name).is_dir() or (home / f"{name}.py").is_file(), name
