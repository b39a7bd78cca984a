"""The authors' reading of PLCP done again with dense matrices, and the paper's rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from appellate import AGGDClassifier, PLCPClassifier, SUREClassifier
from appellate.evidence.confidence import blur
from appellate.experiments.layouts import plan
from appellate.experiments.methods import coupled
from appellate.experiments.problems import standardize
from appellate.experiments.protocol import Trial, split_rows
from appellate.experiments.results import Results
from appellate.experiments.runner import run_all
from appellate.experiments.store import Store
from appellate.paper.authors import (
    AUTHORS,
    AuthorsPartner,
    AuthorsPLCP,
    monotone_share,
    stopping_round,
)
from appellate.paper.studies import authors_tables, load_with_raw_lost, report_authors
from tests.literal import graph, neighbors, propagate, smoother
from tests.problems import exact_simplex_projection, random_candidates


def project(matrix, candidates):
    out = np.zeros_like(matrix)
    for i, row in enumerate(candidates):
        out[i, row] = exact_simplex_projection(matrix[i, row])
    return out


def test_equals_both_habits_typed_literally():
    """From round 2 on the base keeps its output; the partner makes 30 regressions from O."""
    rng = np.random.RandomState(0)
    X, Y = rng.normal(size=(14, 5)), random_candidates(rng, 14, 3, 0.4)
    unit, near = neighbors(X, 4)
    S, uniform = smoother(X, 0.05), Y / Y.sum(axis=1, keepdims=True)
    W = graph(unit, uniform, near, 1.0, 0.0)
    start = P = propagate(W, Y, np.zeros(Y.shape), 0.0)
    M, C, P_hat = S @ P, P, 1.0 - Y
    for _ in range(2):
        for _ in range(3):
            W = graph(unit, P, near, 1.0, 1.0)
            P = propagate(W, Y, M, 1.0)
            M = S @ P
        C = np.clip(0.5 * C + 0.5 * M, 0, Y)
        O = blur(C, Y, -1.0)
        D = O
        for _ in range(29):
            D = project(S @ D + O, Y)  # gamma / 2 = 1
        P_hat = np.clip(0.5 * P_hat + 0.5 * (1 - S @ D), 1 - Y, 1)
        P = blur(1 - P_hat, Y, -1.0)
    model = AuthorsPLCP(AGGDClassifier(n_neighbors=4, max_iter=3), max_rounds=2).fit(X, Y)
    np.testing.assert_allclose(model.initial_confidence_, start, atol=1e-3)
    np.testing.assert_allclose(model.training_output_, S @ D, atol=2e-3)
    ours = PLCPClassifier(AGGDClassifier(n_neighbors=4, max_iter=3), max_rounds=2).fit(X, Y)
    assert np.abs(ours.training_output_ - S @ D).max() > 5e-3  # the reading matters


def test_partner_starts_from_the_supervision_and_makes_30_regressions():
    rng = np.random.RandomState(0)
    X, Y = rng.normal(size=(14, 5)), random_candidates(rng, 14, 3, 0.4)
    O = blur(Y * rng.uniform(size=Y.shape), Y, -1.0)
    S, C = smoother(X, 0.05), 1 - O
    for _ in range(30):
        M = S @ C
        C = 1 - project(1 - M + O, Y)  # the nearest C to M - O whose rows sum to l - 1
    partner = AuthorsPartner().fit(X, Y, supervision=O)
    np.testing.assert_allclose(partner.training_output_, 1 - M, atol=1e-9)


def test_it_is_a_row_of_its_own(tmp_path):
    ours, theirs = coupled("aggd"), AUTHORS
    assert isinstance(theirs.build(0, 10), AuthorsPLCP)
    keys = {Trial("lost", method, 0, 0).key("data", "code") for method in (ours, theirs)}
    assert len(keys) == 2


def test_fitted_twice_it_forgets_the_first_fit():
    rng = np.random.RandomState(0)
    X, Y = rng.normal(size=(20, 4)), random_candidates(rng, 20, 3, 0.4)
    model = AuthorsPLCP(AGGDClassifier())
    one = model.fit(X, Y).training_output_
    np.testing.assert_array_equal(one, model.fit(X, Y).training_output_)
    AuthorsPLCP(SUREClassifier(), link="aggressive").fit(X, Y)


def test_lost_as_it_stands_is_not_scaled():
    found, missing = load_with_raw_lost(["lost"])
    if missing:
        pytest.skip(missing["lost"])
    raw, scaled = found["lost_raw"], found["lost"]
    assert raw.fingerprint() != scaled.fingerprint()
    np.testing.assert_allclose(standardize(raw.X, by=raw.X), scaled.X)
    np.testing.assert_array_equal(raw.candidates, scaled.candidates)


@pytest.mark.parametrize(
    ("corrected", "expected"),
    [([6, 6, 0], 2), ([6, 0, 6, 6], 4), ([4, 4, 4], None), ([0, 0], None), ([5, 5, 5], None)],
)
def test_the_papers_rule(corrected, expected):
    """Of 100 wrong rows so many are corrected in each round and as many others broken."""
    truth, labels = np.zeros(200, dtype=int), np.r_[np.ones(100, int), np.zeros(100, int)]
    history = [labels]
    for count in corrected:
        labels = labels.copy()
        wrong, right = np.flatnonzero(labels == 1), np.flatnonzero(labels == 0)
        labels[wrong[:count]], labels[right[:count]] = 0, 1
        history.append(labels)
    assert stopping_round(np.array(history), truth) == expected


def test_monotone_share_counts_rises_and_falls():
    sets = np.array([[True, True], [True, False], [True, True]])
    rounds = [[[0.5, 0.5], [1, 0], [0.5, 0.5]], [[0.6, 0.6], [0, 0], [0.4, 0.6]],
              [[0.7, 0.5], [1, 0], [0.4, 0.7]]]  # fmt: skip
    assert monotone_share([np.array(each) for each in rounds], sets) == 0.75


def test_the_table_has_both_readings_both_scalings_and_the_rule(problem, tmp_path):
    problems = {
        "lost": problem,
        "lost_raw": replace(problem, title="raw", X=problem.X * [1, 9, 1, 1, 1]),
    }
    with Store(tmp_path / "runs.sqlite") as store:
        methods = authors_tables(["knn", "aggd"])[0].methods()
        summary = run_all(plan(problems, methods, range(2)), problems, store)
        assert not summary.failures
        results = Results(store, problems, range(2))
    report = report_authors(results, ["knn", "aggd"], {})
    first = {row[:2]: row[2:] for row in report.sheets[0].rows}
    assert first["PL-AGGD-PLCP", "paper"] == ("0.717 ± 0.020 •",) * 2
    mean = results.scores("lost_raw", AUTHORS, "test").mean()
    assert first[AUTHORS.title, "ours"][1].startswith(f"{mean:.3f}")
    rule = {row[:2]: row[2:] for row in report.sheets[-1].rows}
    corrected = []
    for split in range(2):
        train, _ = split_rows(60, split)
        model = PLCPClassifier(AGGDClassifier(), max_rounds=1)
        model.fit(problem.X[train], problem.candidates[train])
        truth = problem.truth[train]
        wrong = model.label_history_[0] != truth
        corrected.append((model.label_history_[1][wrong] == truth[wrong]).mean())
    assert rule["small", "PL-AGGD-PLCP"][0] == f"{100 * np.mean(corrected):.1f}"
    assert rule["small", "PL-AGGD-PLCP"][-1].endswith(" of 2")
