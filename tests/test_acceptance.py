"""Rows whose labels need no review: the guarantee, the estimate, and the effort that is left."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import appellate
from appellate import NoteWarning
from appellate.rectification.acceptance import (
    acceptable,
    estimate,
    rows_needed,
    steps,
    upper_bound,
)

pd = pytest.importorskip("pandas")
NAMES = np.array(["cat", "cow", "dog"])
SIMULATIONS = 1000


def failures(wrong_at, max_error, n=3000, m=400, level=0.95):
    """Count simulations whose accepted rows exceed the error rate, and those that accept rows.

    `wrong_at` gives the probability of a wrong label by the rank of the confidence, from 0 to 1.
    """
    exceeded = accepted = 0
    for seed in range(SIMULATIONS):
        rng = np.random.default_rng(seed)
        confidence = rng.random(n)
        wrong = rng.random(n) < wrong_at(confidence)
        audited = rng.choice(n, m, replace=False)
        found = acceptable(confidence, confidence[audited], ~wrong[audited], max_error, level)
        if found.threshold is not None:
            accepted += 1
            exceeded += wrong[confidence >= found.threshold].mean() > max_error
    return exceeded, accepted


@pytest.mark.parametrize(
    ("wrong_at", "accepts"),
    [
        (lambda c: 0.3 * (1 - c), 0.08),  # an informative confidence
        (lambda c: np.full_like(c, 0.0515), 0.0),  # never acceptable, but only just
        (lambda c: np.where(c > 0.5, 0.001, 0.25), 0.85),  # an edge between two thresholds
        (lambda c: np.where(c > 0.9, 0.2, 0.01), 0.0),  # the most confident rows are the worst
    ],
)
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_accepted_rows_keep_the_error_rate_at_the_stated_level(wrong_at, accepts, level):
    """Coverage is the level at least; 3 standard deviations of a binomial count are noise."""
    exceeded, accepted = failures(wrong_at, 0.05, level=level)
    allowed = (1 - level) * SIMULATIONS
    assert exceeded <= allowed + 3 * np.sqrt(allowed * level)
    assert accepted >= accepts * SIMULATIONS


def test_the_largest_acceptable_share_is_found():
    confidence = np.linspace(0, 1, 2000)
    audited = confidence[::4]
    found = acceptable(confidence, audited, audited > 0.3)
    assert found.threshold == pytest.approx(0.3, abs=0.002)
    assert (found.audited, found.wrong) == (350, 0)
    assert found.bound == pytest.approx(1 - 0.05 ** (1 / 350))


def test_too_few_audited_rows_prove_nothing():
    confidence = np.linspace(0, 1, 500)
    found = acceptable(confidence, confidence[:50], np.ones(50, dtype=bool))
    assert found.threshold is None
    assert (found.audited, found.wrong) == (50, 0)
    assert found.bound == pytest.approx(0.0582, abs=1e-4)
    needed = rows_needed(0.02)
    some = confidence[:needed]
    assert acceptable(confidence, some, np.ones(needed, dtype=bool)).threshold == 0.0
    assert acceptable(confidence, some[1:], np.ones(needed - 1, dtype=bool)).threshold is None


def test_rows_of_one_confidence_are_accepted_together():
    found = acceptable(np.ones(300), np.ones(200), np.ones(200, dtype=bool))
    assert found.threshold == 1.0
    assert found.audited == 200
    assert estimate([0.9, 0.9, 1.0], 0.06) is not None
    assert estimate([0.9, 0.9, 1.0], 0.06) == 1.0


def test_bounds_are_those_of_clopper_and_pearson():
    from scipy.stats import binomtest

    for wrong, total in ((0, 10), (3, 40), (10, 10)):
        known = binomtest(wrong, total, alternative="less").proportion_ci(0.95, "exact").high
        assert upper_bound(wrong, total) == pytest.approx(known)


@pytest.mark.parametrize("name", ["max_error", "level"])
@pytest.mark.parametrize("value", [0, 1, -0.1, float("nan")])
def test_numbers_outside_their_range_are_refused(name, value):
    with pytest.raises(ValueError, match=rf"^{name}=.* between 0 and 1"):
        acceptable([0.5], [0.5], [True], **{name: value})


def test_lengths_that_differ_are_refused():
    with pytest.raises(ValueError, match="has 1 rows, but audited_right has 2"):
        acceptable([0.5], [0.5], [True, True])
    assert acceptable([], [], []).threshold is None


def test_the_estimate_takes_confidences_as_probabilities():
    assert estimate([1.0, 0.98, 0.96, 0.5], 0.02) == 0.96
    assert estimate([], 0.02) is None
    assert estimate([0.97], 0.02) is None


def test_steps_double_and_end_with_all_rows():
    assert steps(0) == [0]
    assert steps(10) == [0, 10]
    assert steps(401) == [0, 10, 25, 50, 100, 200, 400, 401]


# -- of a run on a table -------------------------------------------------------------------


@pytest.fixture(scope="module")
def noisy():
    """A run of the jury on 400 rows, of which some cannot be told apart, and their true labels."""
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=400)
    X = rng.normal(size=(400, 2)) + 2.5 * np.eye(3)[truth][:, :2]
    sets = ["|".join(NAMES[(rng.random(3) < 0.3) | (np.arange(3) == t)]) for t in truth]
    table = pd.DataFrame({"name": [f"i{i}" for i in range(400)], "x": X[:, 0], "y": X[:, 1]})
    table["maybe"] = sets
    run = appellate.rectify(table, candidates="maybe")
    return run, table, dict(zip(table["name"], NAMES[truth], strict=True))


def decide_drawn(run, truth, n):
    return run.decide({name: truth[name] for name in run.suggest(n, audit=True)["id"]})


def test_accept_guarantees_by_audited_rows(noisy):
    run, table, truth = noisy
    decided = decide_drawn(run, truth, 150)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = decided.accept(0.1)
    assert list(found) == ["id", "label", "confidence", "guaranteed"]
    assert found["guaranteed"].all()
    assert len(found) > 100
    assert np.mean(found["label"] != found["id"].map(truth)) <= 0.1
    reviewed = found[found["id"].isin(run.settings["audit"]) & (found["confidence"] == 1)]
    assert (reviewed["label"] == reviewed["id"].map(truth)).all()
    before = dict(zip(table["name"], run.labels["label"], strict=True))
    others = found[~found["id"].isin(run.suggest(150, audit=True)["id"])]
    assert (others["label"] == others["id"].map(before)).all(), "the labels that were audited"
    moved = (
        found["label"].to_numpy() != decided.docket.set_index("id")["label"][found["id"]]
    ).sum()
    assert any("have another label" in str(each.message) for each in caught) == (moved > 0)


def test_accept_estimates_before_50_audited_rows_and_says_so(noisy):
    run, _, truth = noisy
    decided = decide_drawn(run, truth, 49)
    for each, audited in ((run, 0), (decided, 49)):
        said = f"estimate by the confidences, not a guarantee: {audited} reviewed.* needs 149 "
        with pytest.warns(NoteWarning, match=said):
            found = each.accept()
        assert len(found)
        assert not found["guaranteed"].any()
        sure = each.docket["confidence"]
        assert (1 - found["confidence"]).mean() <= 0.02 + 1e-9
        assert len(found) == (sure >= found["confidence"].min()).sum()


def test_accept_returns_no_row_and_says_why(noisy):
    run, _, truth = noisy
    decided = decide_drawn(run, truth, 60)
    with pytest.warns(NoteWarning, match=r"error rate of 2\.0%: 60 .* too few.* 149 are needed"):
        found = decided.accept()
    assert found.empty
    assert list(found) == ["id", "label", "confidence", "guaranteed"]
    wrong = {name: str(NAMES[(list(NAMES).index(t) + 1) % 3]) for name, t in truth.items()}
    refuted = decide_drawn(run, wrong, 60)
    with pytest.warns(NoteWarning, match=r"of the \d+ audited items .* a wrong label"):
        assert refuted.accept(0.1).empty


def test_rows_without_a_true_label_count_as_wrong_and_are_not_accepted(noisy):
    run, _, truth = noisy
    drawn = run.suggest(100, audit=True)["id"].tolist()
    table = pd.DataFrame({"id": drawn, "decision": "other", "label": [truth[i] for i in drawn]})
    table.loc[:1, ["decision", "label"]] = "none", ""
    decided = run.decide(table)
    assert decided._fitted.review.audited.sum() == 100
    assert not decided._fitted.review.right()[[int(name[1:]) for name in drawn[:2]]].any()
    assert not {*drawn[:2]} & {*decided.accept(0.3)["id"]}


def test_audited_rows_are_drawn_from_all_rows(noisy):
    """Rows that doubt chose are in the sample too if they are drawn; else it is too easy."""
    run, _, _ = noisy
    suggested = run.suggest(100)
    order = run._fitted.drawn
    last = max(order.index(int(name[1:])) for name in suggested.query("why == 'audit'")["id"])
    assert {f"i{i}" for i in order[: last + 1]} <= {*run.settings["audit"]}
    doubted = suggested.query("why == 'doubt'")["id"]
    assert {*doubted} & {*run.settings["audit"]}


def test_audits_of_several_reviews_judge_labels_without_decisions(noisy):
    """A row that an earlier review decided is not counted as correct for that."""
    run, _, truth = noisy
    wrong = {name: str(NAMES[(list(NAMES).index(t) + 1) % 3]) for name, t in truth.items()}
    drawn = run.suggest(40, audit=True)["id"].tolist()
    labels = dict(zip(run.docket["id"], run.docket["label"], strict=True))
    expected = np.mean([labels[name] == wrong[name] for name in drawn])
    first = run.decide({name: wrong[name] for name in drawn[:30]})
    second = first.decide({name: wrong[name] for name in drawn[30:]})
    assert second.scores["audit"]["rows"] == 40
    assert second.scores["audit"]["accuracy"] == pytest.approx(expected)


@pytest.mark.filterwarnings("ignore::appellate.NoteWarning")
def test_plcp_accepts_by_audited_rows_only(noisy):
    _, table, truth = noisy
    run = appellate.rectify(table, candidates="maybe", base="knn")
    with pytest.raises(ValueError, match=r"PLCP cannot accept by an estimate: .*not calibrated"):
        run.accept()
    with pytest.raises(ValueError, match=r"PLCP cannot expect wrong labels: .*not calibrated"):
        run.effort()
    found = decide_drawn(run, truth, 100).accept(0.3)
    assert len(found)
    assert found["guaranteed"].all()


@pytest.mark.filterwarnings("ignore::appellate.NoteWarning")
def test_frames_are_of_the_kind_that_was_given(noisy):
    pl = pytest.importorskip("polars")
    _, table, _ = noisy
    answers = {f"w{k}": table["maybe"].str.split("|").str[-k] for k in (0, 1)}
    people = pl.DataFrame(
        {"name": table["name"].tolist()} | {k: v.tolist() for k, v in answers.items()}
    )
    run = appellate.rectify(people, annotators="w*")
    assert isinstance(run.accept(0.2), pl.DataFrame)
    with pytest.warns(NoteWarning, match="every confidence is too low; this is an estimate"):
        assert run.accept(1e-9).is_empty()
    assert run.accept(1e-9).schema["label"] == pl.String
    assert isinstance(run.effort(), pl.DataFrame)


def test_effort_counts_expected_wrong_labels_of_the_rest(noisy, tmp_path):
    run, _, truth = noisy
    found = run.effort()
    assert found["reviewed"].tolist() == [0, 10, 25, 50, 100, 200, 400]
    assert found["expected_wrong"][0] == pytest.approx(run.scores["expected_wrong"], abs=0.06)
    least = run.docket["confidence"].sort_values().to_numpy()
    assert found["expected_wrong"][2] == pytest.approx((1 - least[25:]).sum(), abs=0.006)
    assert found["expected_wrong"].iloc[-1] == 0
    assert found["expected_wrong"].is_monotonic_decreasing
    decided = decide_drawn(run, truth, 30)
    assert decided.effort()["reviewed"].iloc[-1] == 370
    decided.save(tmp_path / "run")
    loaded = appellate.load(tmp_path / "run")
    pd.testing.assert_frame_equal(loaded.effort(), decided.effort())
    with pytest.raises(ValueError, match=r"this run was loaded.*accept then"):
        loaded.accept()
    with pytest.raises(ValueError, match=r"this run was loaded.*suggest then"):
        loaded.suggest(5, audit=True)


def test_a_rate_outside_its_range_is_refused_by_a_run(noisy):
    with pytest.raises(ValueError, match="max_error=2 must be between 0 and 1"):
        noisy[0].accept(2)
