"""All methods side by side: which are run, how they are ranked, what is said of them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from appellate.candidates import as_answers
from appellate.datasets import make_crowd
from appellate.experiments import methods as registry
from appellate.experiments.layouts import Column, make_comparison, plan
from appellate.experiments.methods import MAJORITY, RANDOM, TESTIMONY, alone, network, read_methods
from appellate.experiments.protocol import Trial, execute, split_rows
from appellate.experiments.ranks import critical_difference, mean_ranks, rank_sheet
from appellate.experiments.reports import report_table
from appellate.experiments.results import Results, fill
from appellate.experiments.runner import run_all
from appellate.experiments.store import Store
from appellate.methods import available_bases
from appellate.paper.curves import CURVES, curve_problems
from appellate.paper.rivals import report_rivals, rival_methods


@pytest.fixture(scope="module")
def crowd(problem):
    answers = make_crowd(problem.truth, random_state=0).answers
    answers = as_answers(answers.votes(), layout="counts")
    return replace(problem, candidates=answers.votes() > 0, answers=answers)


def test_every_registered_base_is_a_rival(problem, crowd):
    methods = rival_methods(available_bases(), problem)
    assert {m.base for m in methods if m.kind == "base"} == {*available_bases()}
    assert len(methods) >= 20
    assert {*rival_methods(["knn"], crowd)} - {*rival_methods(["knn"], problem)} == {
        TESTIMONY,
        MAJORITY,
    }


def test_majority_is_the_expected_share_of_right_votes(crowd):
    train, _ = split_rows(len(crowd.X), 1)
    votes, right = crowd.answers[train].votes(), 0.0
    for row, truth in zip(votes, crowd.truth[train], strict=True):
        best = np.flatnonzero(row == row.max())
        right += (truth in best) / len(best)
    outcome = execute(Trial("small", MAJORITY, 1, 1), crowd)
    assert outcome.scores == {"transductive": pytest.approx(right / len(train))}


def test_rows_without_truth_count_for_nobody(crowd):
    train, _ = split_rows(len(crowd.X), 1)
    truth = crowd.truth.copy()
    truth[train[: len(train) // 2]] = -1
    known = train[truth[train] >= 0]
    sets = crowd.candidates[known]
    expected = (sets[np.arange(len(known)), truth[known]] / sets.sum(axis=1)).mean()
    scores = execute(Trial("small", RANDOM, 1, 1), replace(crowd, truth=truth)).scores
    assert scores["transductive"] == pytest.approx(expected)


def test_testimony_hears_answers_and_says_when_there_are_none(problem, crowd):
    scores = execute(Trial("small", TESTIMONY, 0, 0), crowd).scores
    assert {"test", "transductive"} <= scores.keys()
    assert "no annotators' answers" in execute(Trial("small", TESTIMONY, 0, 0), problem).error


def test_answers_are_part_of_the_fingerprint(crowd):
    assert crowd.fingerprint() != replace(crowd, answers=None).fingerprint()


def test_ranks_and_critical_difference():
    # Demsar's table of q (2006): 2.569 for four methods.
    assert critical_difference(4, 14) == pytest.approx(2.569 * np.sqrt(4 * 5 / (6 * 14)), abs=2e-3)
    assert mean_ranks({"a": [3, 1], "b": [2, 2], "c": [1, 2]}) == {"a": 2.0, "b": 1.75, "c": 2.25}


def test_the_report_has_what_was_run_and_a_dash_for_the_rest(stored, problem):
    with Store(stored) as store:
        results = Results(store, {"small": problem}, range(3))
    report = report_rivals(results, ["knn", "sure"])
    test = {row[0]: row[1:] for row in report.sheets[0].rows}
    mean = results.scores("small", alone("sure"), "test").mean()
    assert float(test["SURE"][1]) >= 0  # seconds
    assert test["SURE"][2].startswith(f"{mean:.3f} ± ")
    ranks = [float(row[1]) for row in report.sheets[0].rows]
    assert ranks == sorted(ranks)
    assert "jury" not in test
    counts = {row[:2]: row[2:] for row in report.sheets[-1].rows}
    assert counts["B-PLCP against B", "test"][0] == "2"
    assert counts["B-PLCP(jury) against B", "test"][0] == "0"


def test_where_every_run_failed_the_report_is_empty(problem, tmp_path):
    """It ended with an error of numpy."""
    with Store(tmp_path / "runs.sqlite") as store:
        report = report_rivals(Results(store, {"small": problem}, range(3)), ["knn"])
    assert [sheet.rows for sheet in report.sheets[:3]] == [(), (), ()]
    assert report.notes[0] == "Test accuracy: Ranks over 0 data sets: too few to test."


def test_curves_vary_what_they_say():
    problems = curve_problems()
    assert len(problems) == sum(len(values) for _, values in CURVES.values())
    sizes = [problems[f"digits-flip-{q:g}"].candidates.sum() for q in CURVES["flip"][1]]
    assert sizes == sorted(sizes)
    for value in CURVES["noise"][1]:
        each = problems[f"digits-noise-{value:g}"]
        hit = each.candidates[np.arange(len(each.truth)), each.truth].mean()
        assert hit == pytest.approx(1 - value, abs=0.03)


def test_networks_are_rivals_where_torch_is(problem, stored, monkeypatch):
    pytest.importorskip("torch")
    titles = {method.title for method in rival_methods([], problem)}
    assert titles >= {"PRODEN", "PRODEN-PLCP", "PRODEN(auto)", "PiCO", "CC", "SoLar", "RECORDS"}
    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    assert not {m for m in rival_methods(["knn"], problem) if m.kind == "deep"}
    with Store(stored) as store:
        results = Results(store, {"small": problem}, range(3))
    report = report_rivals(results, ["knn"])
    assert any("need torch" in note and "PRODEN" in note for note in report.notes)
    with pytest.raises(ImportError, match="need torch"):
        read_methods(["proden"])


def test_a_network_has_five_of_ten_splits():
    runs = plan(["small"], [alone("knn"), network("cc")], range(100, 110))
    splits = {m: [r.split for r in runs if r.method == m] for m in (alone("knn"), network("cc"))}
    assert splits == {alone("knn"): [*range(100, 110)], network("cc"): [*range(100, 105)]}


def test_networks_are_run_stored_and_ranked_beside_the_rest(problem, tmp_path):
    pytest.importorskip("torch")
    methods = [alone("knn"), *read_methods(["cc:n_epochs=3"])]
    assert [m.title for m in methods[1:]] == ["CC (n_epochs=3)", "CC-PLCP (n_epochs=3)"]
    with Store(tmp_path / "runs.sqlite") as store:
        summary = run_all(plan(["small"], methods, range(7)), {"small": problem}, store)
        assert not summary.failures
        assert summary.computed == 7 + 5 + 5
        results = Results(store, {"small": problem}, range(7))
    scores = [results.scores("small", method, "test") for method in methods]
    assert [len(each) for each in scores] == [7, 5, 5]
    assert execute(Trial("small", methods[1], 0, 0), problem).scores["test"] == scores[1][0]
    table = make_comparison(problem, methods)[0]
    assert table.lines[2].compared == (methods[2], methods[1])
    assert "over 5 splits" in rank_sheet(table, results).title
    filled = fill(table, results, [Column("small", "small")])
    assert any("the first 5 splits" in note for note in report_table(filled, results, {}).notes)


def test_settings_and_code_of_a_network_are_in_its_key():
    pytest.importorskip("torch")
    keys = {
        Trial("small", method, 0, 0).key("data", "version")
        for method in (network("cc"), network("lws"), network("cc", n_epochs=3))
    }
    assert len(keys) == 3
    assert network("cc").base_code() is not None
    assert alone("knn").base_code() is None
    assert network("proden").config()["base_settings"]["n_epochs"] == 120


PROBE = """
from appellate.experiments.methods import Method, network
from appellate.experiments.protocol import Trial, execute
from tests.experiments.small import make_problem

class Probe(Method):
    def build(self, seed, n_rows):
        import torch
        print(torch.get_num_threads())
        return super().build(seed, n_rows)

method = Probe("probe", "deep", "cc", network("cc").base_settings, (("n_epochs", 1),))
print(execute(Trial("small", method, 0, 0), make_problem()).error)
"""


def test_the_first_network_of_a_process_has_one_thread_too():
    pytest.importorskip("torch")
    root = Path(__file__).parents[2]
    modules = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    env = os.environ | {"OMP_NUM_THREADS": "2", "PYTHONPATH": modules}
    words = [sys.executable, "-c", PROBE]
    done = subprocess.run(words, cwd=root, env=env, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["1", "None"], done.stderr
