"""Testimony on real answers of people and of labelling functions, next to majority vote."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from appellate import TestimonyClassifier, as_answers
from appellate.datasets import load_cifar10h, load_cifar10n, load_labelme
from appellate.methods.testimony import majority_vote

pytestmark = pytest.mark.realdata


@pytest.fixture(scope="module")
def labelme():
    data = load_labelme()
    return data, TestimonyClassifier().fit(data.X, data.answers)


def loss(p, truth):
    return -np.log(np.maximum(p[np.arange(len(truth)), truth], 1e-3)).mean()


def vote(answers, truth):
    return np.mean(majority_vote(answers).argmax(axis=1) == truth)


def test_labelme_labels_model_and_suspicion(labelme):
    data, model = labelme
    assert vote(data.answers, data.y_true) == pytest.approx(0.769, abs=0.001)
    assert np.mean(model.transduction_ == data.y_true) >= 0.870
    assert model.score(data.X_test, data.y_test) >= 0.855
    assert loss(model.confidence_, data.y_true) <= 0.41
    wrong = model.transduction_ != data.y_true
    assert 0.6 < (1 - model.confidence_.max(axis=1)).sum() / wrong.sum() < 1.6
    outside = ~data.candidates[np.arange(1000), data.y_true]
    assert roc_auc_score(outside, model.suspicion_) >= 0.865
    assert average_precision_score(outside, model.suspicion_) >= 0.59
    assert outside[np.argsort(-model.suspicion_)[:20]].mean() >= 0.85


def test_labelme_with_a_fixed_ridge_as_the_reference_has_it():
    data = load_labelme()
    model = TestimonyClassifier(regularization=0.05).fit(data.X, data.answers)
    assert np.mean(model.transduction_ == data.y_true) >= 0.860
    assert model.score(data.X_test, data.y_test) >= 0.850


def test_labelme_with_useless_features_is_no_worse_than_the_vote(labelme):
    data, _ = labelme
    for seed in range(3):
        X = np.random.default_rng(seed).permutation(data.X)
        model = TestimonyClassifier().fit(X, data.answers)
        assert np.mean(model.transduction_ == data.y_true) >= 0.769 - 0.005


def test_labelme_with_one_answer_a_row():
    data = load_labelme()
    rng = np.random.default_rng(0)
    one = np.array([rng.choice(row[row >= 0]) for row in data.answers.table()])
    answers = as_answers(one, layout="labels", classes=range(8))
    model = TestimonyClassifier().fit(data.X, answers)
    assert np.mean(model.transduction_ == data.y_true) > np.mean(one == data.y_true) + 0.08


def test_a_machine_beside_the_crowd(labelme):
    """A model of known accuracy .84 as one more person, by its labels or its probabilities."""
    data, model = labelme
    rng = np.random.default_rng(0)
    said = np.where(rng.random(1000) < 0.82, data.y_true, rng.integers(8, size=1000))
    joined = TestimonyClassifier().fit(data.X, data.answers.add("machine", said))
    before = np.mean(model.transduction_ == data.y_true)
    assert np.mean(joined.transduction_ == data.y_true) > before + 0.02
    sure = 0.99 * np.eye(8)[said] + 0.01 / 8  # far too sure of an accuracy of .84
    soft = TestimonyClassifier().fit(data.X, data.answers, probabilities=sure)
    assert np.mean(soft.transduction_ == data.y_true) > before + 0.02
    assert soft.model_temperatures_["model"] > 1.3


def test_figures_of_the_guide(labelme):
    data, model = labelme
    outcome = model.docket(output="dict")["outcome"]
    counts = [np.sum(outcome == word) for word in ("unchanged", "changed", "outside the answers")]
    assert np.abs(np.subtract(counts, [877, 96, 27])).max() <= 5
    right = model.transduction_ == data.y_true
    assert right[outcome == "changed"].mean() == pytest.approx(0.79, abs=0.02)
    assert right[outcome == "outside the answers"].mean() == pytest.approx(0.89, abs=0.04)
    people, table = model.annotators_, data.answers.table()
    busy = np.flatnonzero(people["answers"] >= 10)
    hits = (table == data.y_true[:, None]) & (table >= 0)
    true = (hits.sum(axis=0) / (table >= 0).sum(axis=0))[busy]
    for key, figure in (("accuracy", 0.79), ("agreement", 0.62)):
        assert np.corrcoef(people[key][busy], true)[0, 1] == pytest.approx(figure, abs=0.02)
    outside = ~data.candidates[np.arange(1000), data.y_true]
    order = np.argsort(-model.suspicion_)
    assert [outside[order[:k]].sum() for k in (20, 50)] == pytest.approx([18, 38], abs=1)
    audited, rng = np.zeros(1000, dtype=bool), np.random.default_rng(0)
    audited[rng.choice(1000, 30, replace=False)] = True
    reviewed = audited.copy()
    reviewed[order[:20]] = True
    decisions = np.where(reviewed, data.y_true.astype(object), None)
    again = TestimonyClassifier().fit(data.X, data.answers, decisions=decisions, audited=audited)
    found = [again.audit_[key] for key in ("accuracy", "low", "high")]
    assert found == pytest.approx([0.77, 0.60, 0.89], abs=0.01)
    assert again.temperature_ == pytest.approx(1.2, abs=0.1)
    after = np.mean((again.transduction_ == data.y_true)[~reviewed])
    assert [right[~reviewed].mean(), after] == pytest.approx([0.876, 0.883], abs=0.004)
    assert again.score(data.X_test, data.y_test) == pytest.approx(0.865, abs=0.004)


def test_an_audit_of_labelme_is_honest(labelme):
    data, plain = labelme
    audited = np.zeros(1000, dtype=bool)
    audited[np.random.default_rng(0).choice(1000, 100, replace=False)] = True
    decisions = np.where(audited, data.y_true.astype(object), None)
    model = TestimonyClassifier().fit(data.X, data.answers, decisions=decisions, audited=audited)
    assert model.audit_["low"] < np.mean(plain.transduction_ == data.y_true) < model.audit_["high"]
    rest = ~audited
    assert loss(model.confidence_[rest], data.y_true[rest]) < loss(
        plain.confidence_[rest], data.y_true[rest]
    )


# Bounds of docs/results_annotators.md less .006: accuracy, log loss, and the expected number of
# wrong labels divided by the true one.
@pytest.mark.parametrize(
    ("name", "accuracy", "most_loss", "expected"),
    [
        ("semeval", 0.826, 0.66, (0.6, 1.6)),
        ("web", 0.850, 0.43, (0.6, 1.6)),
        ("weather_amt", 0.850, 0.46, (0.6, 1.6)),
        ("youtube", 0.915, 0.29, (0.6, 2.5)),
        ("dog", 0.821, 0.465, (0.6, 1.6)),
        ("zencrowd_us", 0.826, 0.41, (0.55, 1.6)),
    ],
)
def test_crowds_and_functions(name, accuracy, most_loss, expected):
    load = pytest.importorskip("benchmarks.crowd").load_stored
    try:
        X, answers, truth, X_test, y_test = load(name)
    except FileNotFoundError as error:
        pytest.skip(f"the data home has no crowds/{name}.npz: {error}")
    model = TestimonyClassifier().fit(X, answers)
    kept = (answers.votes().sum(axis=1) > 0) & (truth >= 0)
    labels, p, truth = model.transduction_[kept], model.confidence_[kept], truth[kept]
    wrong, sure = labels != truth, p[np.arange(len(truth)), labels]
    assert 1 - wrong.mean() >= accuracy
    assert loss(p, truth) <= most_loss
    assert expected[0] <= (1 - sure).sum() / wrong.sum() <= expected[1]
    assert model.functions_.all() == (name in ("semeval", "youtube"))
    if name == "youtube":
        assert model.score(X_test, y_test) >= 0.94
    if X is not None:
        alone = TestimonyClassifier().fit(None, answers)
        vote_of = answers.votes()
        ties = vote_of == vote_of.max(axis=1, keepdims=True)
        chance = (ties / ties.sum(axis=1, keepdims=True))[kept][np.arange(len(truth)), truth]
        assert np.mean(alone.transduction_[kept] == truth) >= chance.mean() - 0.005


@pytest.mark.slow
@pytest.mark.parametrize(
    ("load", "n", "least"), [(load_cifar10n, 3000, 0.925), (load_cifar10h, 1000, 0.985)]
)
def test_cifar(load, n, least):
    describe = pytest.importorskip("benchmarks.crowd").describe_pictures
    data = load()
    answers, truth = data.answers[:n], data.y_true[:n]
    model = TestimonyClassifier().fit(describe(data.images[:n]), answers)
    accuracy = np.mean(model.transduction_ == truth)
    assert accuracy >= max(least, vote(answers, truth) - 0.005)
