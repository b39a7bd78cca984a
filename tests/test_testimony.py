"""Testimony against independent computations, and at its edges."""

from __future__ import annotations

from math import lgamma

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from appellate import TestimonyClassifier, as_answers
from appellate.candidates import Answers
from appellate.datasets import make_ambiguous_classification, make_crowd
from appellate.io import load_model, save_model
from appellate.testimony import crowd_posterior, majority_vote
from appellate.testimony.features import Regressions, answer_likelihood, choose_ridge, find_beta
from appellate.testimony.people import (
    choose_strength,
    confusions,
    credit,
    expected_confusions,
    incidence,
    log_likelihoods,
    number_opinions,
    person_counts,
    sample_opinions,
    set_rates,
    vote_shares,
)
from appellate.testimony.rounds import (
    audit_temperature,
    hear,
    reported_posterior,
    shared_by_answers,
)


def crowd(n=60, people=6, l=3, accuracy=0.7, share=0.5, seed=0):
    """Truth and a wide table of answers, -1 for none; everybody has confusions of their own."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(l, size=n)
    theta = rng.dirichlet(np.ones(l), size=(people, l)) * (1 - accuracy) + accuracy * np.eye(l)
    table = np.full((n, people), -1)
    for i in range(n):
        for j in np.flatnonzero(rng.random(people) < share):
            table[i, j] = rng.choice(l, p=theta[j, truth[i]])
    table[:, 0] = np.where((table < 0).all(axis=1), truth, table[:, 0])
    return truth, table


def features(truth, l, signal=2.0, seed=1):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(len(truth), 4)) + signal * np.eye(l, 4)[truth]


def read(table, l):
    return as_answers(table, missing=-1, classes=range(l))


def people(answers, q, *, strength=1.0, ordered=False):
    N = person_counts(incidence(answers), q)
    return confusions(N, expected_confusions(N, ordered=ordered), strength)


# -- the same, written again in loops ---------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def logit(p):
    p = min(max(p, 1e-6), 1 - 1e-6)
    return np.log(p / (1 - p))


def plain_confusions(table, q, strengths=(1,)):
    """The formulas of the docstrings, one number at a time."""
    n, people = table.shape
    l = q.shape[1]
    N = np.zeros((people, l, l))
    for i in range(n):
        for j in range(people):
            if table[i, j] >= 0:
                for c in range(l):
                    N[j, c, table[i, j]] += q[i, c]
    total = N.sum(axis=0)
    acc = np.trace(total) / total.sum()
    P = np.zeros((l, l))
    for c in range(l):
        for k in range(l):
            u = acc if c == k else (1 - acc) / (l - 1)
            P[c, k] = (total[c, k] + l * u) / (total[c].sum() + l)
    M = np.zeros_like(N)
    for j in range(people):
        r = (np.trace(N[j]) + 4 * acc) / (N[j].sum() + 4)
        for c in range(l):
            M[j, c] = 1 - sigmoid(logit(P[c, c]) + logit(r) - logit(acc))
            M[j, c] *= P[c] / (1 - P[c, c])
            M[j, c, c] = sigmoid(logit(P[c, c]) + logit(r) - logit(acc))
    best, kept = -np.inf, None
    for s in strengths:
        log_evidence, theta = 0.0, np.zeros_like(N)
        for j in range(people):
            for c in range(l):
                log_evidence += lgamma(s * l) - lgamma(s * l + N[j, c].sum())
                for k in range(l):
                    prior = s * l * M[j, c, k]
                    log_evidence += lgamma(N[j, c, k] + prior) - lgamma(prior)
                    theta[j, c, k] = (N[j, c, k] + prior) / (N[j, c].sum() + s * l)
        if log_evidence > best:
            best, kept = log_evidence, theta
    return kept


def plain_em(table, l, rounds=9):
    """Crowd alone: an EM that shares no line with the library."""
    n, people = table.shape
    counts = np.stack([(table == k).sum(axis=1) for k in range(l)], axis=1)
    m = counts.sum(axis=1)
    q = (counts + 0.5 / l) / (m[:, None] + 0.5)
    for step in range(rounds):
        theta = plain_confusions(table, q, (1,) if step < 4 else (1, 2, 4, 8, 16, 32))
        L = np.zeros((n, l))
        for i in range(n):
            for j in range(people):
                if table[i, j] >= 0:
                    L[i] += np.log(theta[j, :, table[i, j]])
        frequency = (q.sum(axis=0) + 1) / (n + l)
        q = np.exp(L - L.max(axis=1, keepdims=True)) * frequency
        q /= q.sum(axis=1, keepdims=True)
    scaled = L / (1 + 0.4 * (np.maximum(m, 1) - 1))[:, None] + np.log(frequency)
    p = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    return theta, p / p.sum(axis=1, keepdims=True)


def test_confusions_are_the_formulas():
    _, table = crowd()
    answers = read(table, 3)
    q = np.random.default_rng(3).dirichlet(np.ones(3), size=len(table))
    np.testing.assert_allclose(people(answers, q), plain_confusions(table, q), rtol=1e-12)


def test_the_crowd_alone_is_an_independent_em():
    truth, table = crowd()
    theta, p = plain_em(table, 3)
    heard = hear(read(table, 3))
    np.testing.assert_allclose(heard.confusion, theta, rtol=1e-9)
    np.testing.assert_allclose(heard.posterior, p, atol=1e-9)
    assert (p.argmax(axis=1) == truth).mean() > 0.8


def test_the_posterior_is_bayes_rule_by_brute_force():
    """L is the log of the product of all answers' probabilities, up to a constant a row."""
    _, table = crowd(n=12)
    answers = read(table, 3)
    theta = people(answers, vote_shares(answers)[0])
    L = log_likelihoods(answers, incidence(answers), theta, np.full(6, 0.5))
    for i, row in enumerate(table):
        joint = [np.prod([theta[j, c, a] for j, a in enumerate(row) if a >= 0]) for c in range(3)]
        np.testing.assert_allclose(np.exp(L[i]), joint, rtol=1e-12)


def test_left_out_answers_by_brute_force():
    truth, table = crowd(n=15)
    answers = read(table, 3)
    theta = people(answers, vote_shares(answers)[0])
    L = log_likelihoods(answers, incidence(answers), theta, np.full(6, 0.5))
    output = features(truth, 3)[:, :3]
    opinions = sample_opinions(answers, theta, np.full(6, 0.5))
    found = answer_likelihood(0.7, output, L, opinions)
    expected = []
    for i, j in np.argwhere(table >= 0):
        weight = np.exp(0.7 * output[i])
        for other, a in enumerate(table[i]):
            if a >= 0 and other != j:
                weight = weight * theta[other, :, a]
        expected.append(np.log(weight @ theta[j, :, table[i, j]] / weight.sum()))
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    beta, gain = find_beta(output, L, opinions)

    def penalised(b):
        fit = answer_likelihood(b, output, L, opinions).sum()
        return fit - 1e-3 * len(found) * (np.log(b) - 1.5) ** 2

    best = max(map(penalised, np.exp(np.linspace(-3, 4, 2000))))
    assert penalised(beta) == pytest.approx(best, abs=1e-4)
    at_zero = answer_likelihood(0, output, L, opinions).sum()
    assert gain == pytest.approx(answer_likelihood(beta, output, L, opinions).sum() - at_zero)


def test_the_ridge_leaves_rows_out_as_refitting_does():
    truth, _ = crowd(n=25)
    X = features(truth, 3)
    targets = np.eye(3)[truth]
    left_out = Regressions(X, 3).leave_one_out(targets, 0.05)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    width = np.mean([np.linalg.norm(Z[i] - Z[j]) for i in range(25) for j in range(i)])
    for i in range(25):
        rest = np.arange(25) != i
        # a free bias: as a kernel with a large constant
        K = np.exp(-((Z[:, None] - Z) ** 2).sum(axis=2) / (2 * width**2)) + 1e6
        model = KernelRidge(alpha=0.05, kernel="precomputed")
        model.fit(K[np.ix_(rest, rest)], targets[rest])
        np.testing.assert_allclose(model.predict(K[[i]][:, rest])[0], left_out[i], atol=1e-5)


def test_sets_with_people_by_brute_force():
    cells = [["a|b", "a"], ["b", "a|c"], ["a|b|c", "c"], ["b|c", None]]
    answers = as_answers(cells, separator="|")
    l, q = 3, np.random.default_rng(0).dirichlet(np.ones(3), size=4)
    rates = set_rates(answers, q)
    sets = {(0, 0): "ab", (1, 1): "ac", (2, 0): "abc", (3, 0): "bc"}
    mass = [[], []]
    for (i, j), names in sets.items():
        mass[j].append(q[i, ["abc".index(x) for x in names]].sum())
    mean = (sum(mass[0]) + sum(mass[1])) / 4
    expected = [(sum(mass[j]) + 4 * mean) / (len(mass[j]) + 4) for j in (0, 1)]
    np.testing.assert_allclose(rates, expected, rtol=1e-12)
    theta = people(answers, q)
    L = log_likelihoods(answers, incidence(answers), theta, rates)
    singles = {(0, 1): 0, (1, 0): 1, (2, 1): 2}
    plain = np.zeros((4, l))
    for (i, j), k in singles.items():
        plain[i] += np.log(theta[j, :, k])
    for (i, j), s in sets.items():
        for c in range(l):
            if len(s) < l:
                inside = "abc"[c] in s
                h = rates[j]
                plain[i, c] += np.log(h / len(s) if inside else (1 - h) / (l - len(s)))
    np.testing.assert_allclose(
        L - logsumexp(L, axis=1)[:, None], plain - logsumexp(plain, axis=1)[:, None], atol=1e-12
    )
    opinions = sample_opinions(answers, theta, rates)
    assert len(opinions.rows) == 7
    whole = np.zeros((4, l))
    np.add.at(whole, opinions.rows, opinions.evidence)
    np.testing.assert_allclose(
        whole - logsumexp(whole, axis=1)[:, None], L - logsumexp(L, axis=1)[:, None], atol=1e-12
    )


def test_people_who_name_several_labels_are_told_apart():
    rng = np.random.default_rng(0)
    truth, holds = rng.integers(6, size=500), np.linspace(0.4, 0.95, 12)
    lines = []
    for i, c in enumerate(truth):
        for j in rng.choice(12, 4, replace=False):
            size, others = rng.integers(1, 4), rng.permutation(np.delete(np.arange(6), c))
            named = [c, *others[: size - 1]] if rng.random() < holds[j] else others[:size]
            lines.append((i, [int(k) for k in named], int(j)))
    answers = as_answers(lines, layout="long", classes=range(6))
    model = TestimonyClassifier().fit(None, answers)
    most = answers.votes().argmax(axis=1)
    assert (model.transduction_ == truth).mean() > (most == truth).mean() + 0.02
    people = model.annotators_
    assert np.corrcoef(people["accuracy"], holds[people["person"]])[0, 1] > 0.8
    assert people["answers"].sum() == pytest.approx(2000)


def test_a_count_is_as_many_answers_of_unknown_people():
    rng = np.random.default_rng(0)
    counts = rng.multinomial(5, [0.6, 0.3, 0.1], size=30)
    lines = [(i, k) for i, row in enumerate(counts) for k in np.repeat(range(3), row)]
    one = hear(as_answers(counts, layout="counts"))
    other = hear(as_answers(lines, layout="long", classes=range(3)))
    np.testing.assert_allclose(one.posterior, other.posterior, atol=1e-12)


def test_people_are_found_to_be_alike_or_not():
    """Strength is large where all confuse alike, small where everybody has confusions."""
    rng = np.random.default_rng(0)
    truth = rng.integers(4, size=2000)
    shared = np.full((4, 4), 0.1) + 0.6 * np.eye(4)
    own = 0.5 * np.eye(4) + 0.5 * rng.dirichlet(np.full(4, 0.2), size=(8, 4))
    for theta, low, high in ((np.repeat(shared[None], 8, axis=0), 16, 32), (own, 1, 2)):
        table = [[rng.choice(4, p=theta[j, c]) for j in range(8)] for c in truth]
        N = person_counts(incidence(read(np.array(table), 4)), np.eye(4)[truth])
        assert low <= choose_strength(N, expected_confusions(N)) <= high


def test_the_ridge_is_that_which_predicts_the_answers_best():
    truth, table = crowd(n=150, accuracy=0.5)
    X = np.hstack([features(truth, 3, signal=1.5), np.random.default_rng(0).normal(size=(150, 8))])
    answers = read(table, 3)
    chosen = choose_ridge(Regressions(X, 3), answers, vote_shares(answers)[0])
    assert chosen > 0.05
    model = TestimonyClassifier().fit(X, answers)
    assert model.regularization_ == chosen
    given = TestimonyClassifier(regularization=chosen).fit(X, answers)
    np.testing.assert_allclose(given.confidence_, model.confidence_)


def test_grades_are_confused_with_their_neighbours():
    """Errors of five grades are all one step off: unseen confusions follow the others."""
    rng = np.random.default_rng(0)
    truth = rng.integers(1, 5, size=300)  # nobody has grade 0 but answers go down to it
    table = np.clip(truth[:, None] + rng.choice([-1, 0, 0, 1], size=(300, 3)), 0, 4)
    answers = read(table, 5)
    q = np.eye(5)[truth]
    ordered = people(answers, q, ordered=True)[0]
    plain = people(answers, q)[0]
    assert np.allclose(ordered.sum(axis=1), 1)
    assert ordered[0, 1] > 3 * ordered[0, 4]  # grade 0 was never true
    assert plain[0, 1] == pytest.approx(plain[0, 4])


# -- what must hold for all -------------------------------------------------------------------


def test_people_and_rows_may_be_permuted():
    truth, table = crowd()
    X = features(truth, 3)
    base = TestimonyClassifier().fit(X, read(table, 3))
    rng = np.random.default_rng(0)
    rows, order = rng.permutation(60), rng.permutation(6)
    other = TestimonyClassifier().fit(X[rows], read(table[rows][:, order], 3))
    np.testing.assert_allclose(other.confidence_, base.confidence_[rows], atol=1e-6)
    np.testing.assert_allclose(
        other.annotators_["accuracy"], base.annotators_["accuracy"][order], atol=1e-6
    )
    new = features(truth, 3, seed=5)
    np.testing.assert_allclose(other.predict_proba(new), base.predict_proba(new), atol=1e-5)


def test_classes_may_be_permuted():
    truth, table = crowd()
    X, order = features(truth, 3), [2, 0, 1]
    base = TestimonyClassifier().fit(X, read(table, 3))
    other = TestimonyClassifier().fit(X, as_answers(table, missing=-1, classes=order))
    np.testing.assert_allclose(other.confidence_, base.confidence_[:, order], atol=1e-6)


def test_features_help_and_useless_ones_do_not_harm():
    truth, table = crowd(n=300, accuracy=0.4, share=0.4)
    answers, X = read(table, 3), features(truth, 3)
    vote = (majority_vote(answers).argmax(axis=1) == truth).mean()
    model = TestimonyClassifier().fit(X, answers)
    alone = TestimonyClassifier().fit(None, answers)
    assert (model.transduction_ == truth).mean() > vote + 0.05
    assert model.score(features(truth, 3, seed=9), truth) > 0.8
    shuffled = np.random.default_rng(0).permutation(X)
    blind = TestimonyClassifier().fit(shuffled, answers)
    assert blind.trust_ == 0
    np.testing.assert_allclose(blind.confidence_, alone.confidence_)
    assert (blind.transduction_ == truth).mean() > vote - 0.005


@pytest.mark.parametrize("accuracy", [0.6, 0.75])
def test_rare_labels_are_not_thought_as_likely_as_frequent_ones(accuracy):
    """Fifteen rows of a hundred: a crowd without features is above the vote all the same."""
    for seed in (0, 1):
        truth = (np.random.default_rng(seed).random(600) < 0.15).astype(int)
        answers = make_crowd(truth, accuracy=accuracy, random_state=seed).answers
        vote = (majority_vote(answers).argmax(axis=1) == truth).mean()
        assert (crowd_posterior(answers).argmax(axis=1) == truth).mean() > vote + 0.02
        useless = TestimonyClassifier().fit(
            np.random.default_rng(seed).normal(size=(600, 4)), answers
        )
        assert (useless.transduction_ == truth).mean() > vote + 0.02


CROWDS = {
    "workers": {"accuracy": 0.6},
    "spammers": {"accuracy": 0.7, "spammers": 0.5, "experts": 0.1},
    "confusions": {"accuracy": 0.6, "confusion": 0.9},
    "shared errors": {"accuracy": 0.8, "shared_errors": 0.3},
    "many answers": {"accuracy": 0.4, "n_answers": 10},
    "one answer": {"accuracy": 0.7, "n_answers": 1},
}


@pytest.mark.parametrize("kind", CROWDS)
def test_generated_crowds(kind):
    data = make_ambiguous_classification(600, 10, 5, class_sep=2.0, random_state=0)
    made = make_crowd(data.y_true, random_state=1, **CROWDS[kind])
    vote = (majority_vote(made.answers).argmax(axis=1) == data.y_true).mean()
    model = TestimonyClassifier().fit(data.X, made.answers)
    assert (model.transduction_ == data.y_true).mean() > vote + 0.01
    shuffled = np.random.default_rng(0).permutation(data.X)
    blind = TestimonyClassifier().fit(shuffled, made.answers)
    assert (blind.transduction_ == data.y_true).mean() >= vote - 0.005
    if kind == "spammers":  # they are found out
        guessing = model.annotators_["accuracy"][made.kind == "spammer"]
        assert guessing.max() < model.annotators_["accuracy"][made.kind == "expert"].min()


@pytest.mark.parametrize(("answers", "l"), [(3, 8), (5, 2), (2, 4)])
def test_random_answers_are_not_believed(answers, l):
    rng = np.random.default_rng(0)
    truth, table = rng.integers(l, size=500), np.full((500, 20), -1)
    for row in table:
        row[rng.choice(20, answers, replace=False)] = rng.integers(l, size=answers)
    said = read(table, l)
    regressions = Regressions(rng.normal(size=(500, 5)), l)
    for p in (hear(said, regressions).posterior, crowd_posterior(said)):
        loss = -np.log(p[np.arange(500), truth]).mean()
        assert loss < np.log(l) + 0.02
    assert credit(said, vote_shares(said)[0]) < 0.3


def test_people_who_all_agree_are_believed_without_infinities():
    truth = np.arange(40) % 3
    answers = read(np.repeat(truth[:, None], 4, axis=1), 3)
    model = TestimonyClassifier().fit(features(truth, 3), answers)
    assert np.isfinite(model.confidence_).all()
    assert (model.transduction_ == truth).all()
    assert model.confidence_.max(axis=1).min() > 0.9
    assert credit(answers, model.confidence_) == 1
    assert (model.annotators_["low"] < model.annotators_["accuracy"]).all()


def test_a_label_that_nobody_gave_can_be_the_truth():
    """Eight rows of the third class were taken for the first, each by one person."""
    truth, table = crowd(n=200, l=3, accuracy=0.6, share=0.6)
    table[:8] = -1
    truth[:8] = 2
    table[np.arange(8), np.arange(8) % 6] = 0
    X = features(truth, 3, signal=6)
    model = TestimonyClassifier().fit(X, read(table, 3))
    assert (model.transduction_[:8] == 2).sum() >= 6
    assert (model.suspicion_[:8] > 0.5).sum() >= 6
    outcome = model.docket(output="dict")["outcome"]
    assert (outcome[:8] == "outside the answers").sum() >= 6
    within = TestimonyClassifier(within_answers=True).fit(X, read(table, 3))
    assert (within.transduction_[:8] == 0).all()
    wider = TestimonyClassifier().fit(X, as_answers(table, missing=-1, classes=range(5)))
    assert wider.confidence_.shape == (200, 5)
    assert np.allclose(wider.confidence_.sum(axis=1), 1)


def test_one_person_one_label_one_row():
    truth = np.arange(20) % 2
    X = features(truth, 2)
    alone = TestimonyClassifier().fit(X, as_answers(truth[:, None]))
    assert (alone.transduction_ == truth).all()
    only = TestimonyClassifier().fit(X, np.full(20, "cat"))
    assert set(only.predict(X)) == set(only.transduction_) == {"cat"}
    assert only.docket(output="dict")["runner_up"][0] is None
    single = TestimonyClassifier().fit(X[:1], ["cat"])
    assert single.predict(X[:1]) == ["cat"]


@pytest.mark.parametrize("kind", range(5))
def test_odd_tables_give_probabilities(kind):
    """Few rows, one class or many, constant features, decisions that contradict all."""
    rng = np.random.default_rng(kind)
    for _ in range(8):
        n, people, l = (int(rng.integers(1, high)) for high in (20, 6, 12))
        table = rng.integers(-1, l, size=(n, people))
        table[0, 0] = 0
        X = [rng.normal(size=(n, 3)), np.ones((n, 2)), 1e6 * rng.normal(size=(n, 1)), None][
            kind % 4
        ]
        decisions = np.where(rng.random(n) < 0.3, object(), None)
        decisions[[d is not None for d in decisions]] = int(rng.integers(l))
        model = TestimonyClassifier(ordered=kind == 4).fit(X, read(table, l), decisions=decisions)
        np.testing.assert_allclose(model.confidence_.sum(axis=1), 1)
        assert all(np.isfinite(v).all() for k, v in model.annotators_.items() if k != "person")
        if X is not None:
            np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_people_who_answered_once_are_like_all():
    _, table = crowd(n=40, people=1, share=1.0)
    lines = [(i, a[0], f"w{i}") for i, a in enumerate(table)]
    heard = TestimonyClassifier().fit(None, as_answers(lines, layout="long"))
    found = heard.annotators_
    assert found["answers"].tolist() == [1] * 40
    assert np.ptp(found["accuracy"]) < 0.2
    assert (found["high"] - found["low"] > 0.3).all()


def test_a_person_twice_on_one_row():
    lines = [("x", "a", "p"), ("x", "b", "p"), ("x", "b", "q"), ("y", "a", "q"), ("y", "a", "p")]
    answers = as_answers(lines, layout="long")
    model = TestimonyClassifier().fit(None, answers)
    assert model.transduction_.tolist() == ["b", "a"]
    assert model.annotators_["answers"].tolist() == [3, 2]
    assert model.docket(output="dict")["votes"].tolist() == ["b:2|a:1", "a:2"]


def test_noisy_labels_are_one_answer_a_row():
    truth, _ = crowd(n=300)
    rng = np.random.default_rng(0)
    noisy = np.where(rng.random(300) < 0.3, rng.integers(3, size=300), truth)
    model = TestimonyClassifier().fit(features(truth, 3, signal=4), noisy)
    assert (model.transduction_ == truth).mean() > (noisy == truth).mean() + 0.1


def test_rows_without_answers_are_new_rows():
    truth, table = crowd(n=120)
    table[80:] = -1
    X = features(truth, 3)
    model = TestimonyClassifier().fit(X, read(table, 3))
    fewer = TestimonyClassifier().fit(X[:80], read(table[:80], 3))
    np.testing.assert_allclose(model.confidence_[:80], fewer.confidence_)
    np.testing.assert_allclose(model.confidence_[80:], fewer.predict_proba(X[80:]))
    assert np.isnan(model.suspicion_[80:]).all()
    pairs = zip(model.confidence_[:80], table[:80], strict=True)
    outside = [p[~np.isin(np.arange(3), said)].sum() for p, said in pairs]
    np.testing.assert_allclose(model.suspicion_[:80], outside, atol=1e-12)
    docket = model.docket(output="dict", truth=truth)
    assert set(docket["outcome"][80:]) == {"unanswered"}
    assert docket["votes"][100] == ""
    alone = TestimonyClassifier().fit(None, read(table, 3))
    assert np.allclose(alone.confidence_[80:], alone.confidence_[:80].mean(axis=0))


def test_reviewed_rows_are_certain_also_when_they_contradict_each_other():
    truth, table = crowd(n=80)
    X = features(truth, 3)
    X[1] = X[0]
    decisions = np.full(80, None)
    decisions[:4] = [0, 1, 2, "new"]
    answers = as_answers(table.astype(object), missing=-1, classes=[0, 1, 2])
    model = TestimonyClassifier().fit(X, answers, decisions=decisions)
    assert model.classes_.tolist() == [0, 1, 2, "new"]
    assert model.transduction_[:4].tolist() == [0, 1, 2, "new"]
    assert model.confidence_[:4].max(axis=1).tolist() == [1, 1, 1, 1]
    assert np.isfinite(model.confidence_).all()
    within = TestimonyClassifier(within_answers=True).fit(X, answers, decisions=decisions)
    assert within.transduction_[:4].tolist() == [0, 1, 2, "new"]


def test_audited_rows_give_an_accuracy_and_a_temperature():
    truth, table = crowd(n=400, accuracy=0.45)
    X = features(truth, 3, signal=1.0)
    rng = np.random.default_rng(0)
    audited = np.zeros(400, dtype=bool)
    audited[rng.choice(400, 100, replace=False)] = True
    decisions = np.where(audited, truth, -1).astype(object)
    decisions[~audited] = None
    answers = read(table, 3)
    plain = TestimonyClassifier().fit(X, answers)
    model = TestimonyClassifier().fit(X, answers, decisions=decisions, audited=audited)
    right = (plain.transduction_ == truth)[audited].mean()
    assert model.audit_["rows"] == 100
    assert model.audit_["accuracy"] == right
    assert model.audit_["low"] < right < model.audit_["high"]
    assert model.temperature_ != 1
    few = np.cumsum(audited) <= 19
    small = TestimonyClassifier().fit(X, answers, decisions=decisions, audited=audited & few)
    assert (small.audit_, small.temperature_) == (None, 1.0)


def test_a_temperature_is_found_on_overconfident_rows():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), size=2000)
    truth = np.array([rng.choice(4, p=row) for row in p])
    sharp = p**3 / (p**3).sum(axis=1, keepdims=True)
    assert audit_temperature(sharp, truth) == pytest.approx(3, rel=0.15)
    assert audit_temperature(p, truth) == pytest.approx(1, rel=0.1)


def test_costs_decide_on_the_posterior():
    truth, table = crowd(n=80, accuracy=0.4)
    cost = np.array([[0, 1, 1], [1, 0, 1], [20, 20, 0]])
    answers, X = read(table, 3), features(truth, 3, signal=0.5)
    model = TestimonyClassifier(cost=cost).fit(X, answers)
    expected = (model.confidence_ @ cost).argmin(axis=1)
    assert np.array_equal(model.transduction_, expected)
    assert (model.transduction_ == 2).sum() > (model.confidence_.argmax(axis=1) == 2).sum()
    assert np.array_equal(model.predict(X), (model.predict_proba(X) @ cost).argmin(axis=1))


def test_a_good_model_is_a_good_witness():
    truth, table = crowd(n=300, accuracy=0.4)
    rng = np.random.default_rng(0)
    machine = np.where(rng.random(300) < 0.9, truth, rng.integers(3, size=300))
    answers = read(table, 3)
    before = crowd_posterior(answers).argmax(axis=1)
    joined = TestimonyClassifier().fit(None, answers.add("machine", machine))
    assert (joined.transduction_ == truth).mean() > (before == truth).mean() + 0.05
    found = joined.annotators_
    assert found["person"][np.argmax(found["accuracy"])] == "machine"


def test_small_pieces():
    scores = np.log([[0.8, 0.2]])
    np.testing.assert_allclose(reported_posterior(scores, np.array([1.0]), 0.4), [[0.8, 0.2]])
    four = np.array([[0.8, 0.2]]) ** (1 / 2.2)
    np.testing.assert_allclose(reported_posterior(scores, np.array([4.0]), 0.4), four / four.sum())
    shares = majority_vote([["a", "b"], [None, None], ["a", "a"]])
    assert shares.tolist() == [[0.5, 0.5], [0.5, 0.5], [1, 0]]


# -- manners ----------------------------------------------------------------------------------


def test_it_is_a_scikit_learn_estimator():
    done = check_estimator(TestimonyClassifier(), on_skip=None, on_fail="raise")
    assert len(done) > 40


def test_scikit_learn_slices_answers():
    truth, table = crowd(n=90)
    scores = cross_val_score(TestimonyClassifier(), features(truth, 3, signal=4), read(table, 3))
    assert len(scores) == 5
    assert scores.mean() > 0.8  # the predicted label is among the answers


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_go_in_and_come_out(library):
    frames = pytest.importorskip(library)
    truth, table = crowd(n=30)
    names = np.array(["ant", "bee", "cow", None], dtype=object)
    answers = frames.DataFrame({f"w{j}": names[column] for j, column in enumerate(table.T)})
    X = frames.DataFrame({f"x{j}": column for j, column in enumerate(features(truth, 3).T)})
    model = TestimonyClassifier().fit(X, answers)
    docket = model.docket(truth=names[truth])
    assert type(docket).__module__.startswith(library)
    assert list(docket.columns)[-4:] == ["runner_up", "runner_up_confidence", "suspicion", "votes"]
    assert set(docket["outcome"]) <= {"upheld", "overturned", "outside the answers"}
    assert model.annotators_["person"].tolist() == [f"w{j}" for j in range(6)]
    assert model.annotators_["confusion"].shape == (6, 3, 3)


@pytest.mark.parametrize("with_features", [True, False])
def test_a_model_is_saved_with_its_answers(with_features, tmp_path):
    pytest.importorskip("skops")
    truth, table = crowd(n=30)
    X = features(truth, 3)
    model = TestimonyClassifier().fit(X if with_features else None, read(table, 3))
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert np.array_equal(again.answers_.table(), model.answers_.table())
    assert np.array_equal(again.confidence_, model.confidence_)
    assert (
        again.docket(output="dict")["votes"].tolist()
        == model.docket(output="dict")["votes"].tolist()
    )
    if with_features:
        assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


def test_what_cannot_be_done_is_said():
    truth, table = crowd(n=20)
    answers = read(table, 3)
    alone = TestimonyClassifier().fit(None, answers)
    with pytest.raises(ValueError, match="fitted without features"):
        alone.predict(features(truth, 3))
    for call, message in (
        (lambda m: m.fit(features(truth, 3), None), "target y is None"),
        (lambda m: m.fit(features(truth, 3)[:5], answers), "X has 5 rows, but y"),
        (lambda m: m.fit(None, answers, decisions=[1]), "decisions has 1 values, but y has 20"),
        (lambda m: m.fit(None, answers, audited=[1]), "audited has 1 values, but y has 20"),
        (
            lambda m: m.fit(None, as_answers(np.zeros((3, 2)), layout="counts")),
            "no row has an answer",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call(TestimonyClassifier())


@pytest.mark.parametrize(("shared", "most"), [(0.0, 0.1), (0.5, 0.4)])
def test_features_say_whether_errors_are_shared(shared, most):
    """Ten answers that err alone are not taken for one another's echo, but shared errors are."""
    rng = np.random.default_rng(0)
    truth = rng.integers(4, size=600)
    X = np.eye(4)[truth] * 2.5 + rng.normal(size=(600, 4))
    options = {"n_answers": 10, "accuracy": 0.5, "shared_errors": shared, "random_state": 0}
    answers = make_crowd(truth, **options).answers
    model = TestimonyClassifier().fit(X, answers)
    assert model.shared_errors_ <= most
    right, sure = model.transduction_ == truth, model.confidence_.max(axis=1)
    if shared:
        assert model.shared_errors_ >= 0.2
    else:
        assert abs(sure.mean() - right.mean()) < 0.03
    few = make_crowd(truth, **options | {"n_answers": 3}).answers
    assert TestimonyClassifier().fit(None, few).shared_errors_ == 0.4


@pytest.mark.parametrize("shared", [0.0, 0.5])
def test_many_answers_say_whether_errors_are_shared(shared):
    """Without features: rows of ten answers have two camps where people err together."""
    rng = np.random.default_rng(0)
    truth = rng.integers(4, size=600)
    options = {"n_answers": 10, "accuracy": 0.6, "shared_errors": shared, "random_state": 0}
    model = TestimonyClassifier().fit(None, make_crowd(truth, **options).answers)
    if shared:
        assert model.shared_errors_ >= 0.1
    else:
        assert model.shared_errors_ <= 0.1
        right, sure = model.transduction_ == truth, model.confidence_.max(axis=1)
        assert abs(sure.mean() - right.mean()) < 0.05
    assert TestimonyClassifier().fit(None, as_answers([["a", "b"] * 3] * 9)).shared_errors_ == 0.4


def test_shared_errors_by_answers_against_a_literal_computation():
    rng = np.random.default_rng(1)
    truth = rng.integers(3, size=200)
    answers = make_crowd(truth, n_answers=8, n_people=8, accuracy=0.6, random_state=1).answers
    theta = np.tile(np.full((3, 3), 0.2) + np.eye(3) * 0.4, (8, 1, 1))
    theta += 0.05 * rng.random((8, 3, 3))
    theta /= theta.sum(axis=2, keepdims=True)
    rates = np.full(8, 0.5)
    L = log_likelihoods(answers, incidence(answers), theta, rates)
    found = shared_by_answers(L, np.full(200, 8.0), sample_opinions(answers, theta, rates))
    table, explained = answers.table(), {}
    for s in (0.0, 0.05, 0.1, 0.2, 0.4):
        explained[s] = np.zeros(200)
        for i in range(200):
            people = np.flatnonzero(table[i] >= 0)
            for j in people:
                q = np.ones(3)
                for k in people[people != j]:
                    q *= theta[k, :, table[i, k]] ** (1 / (1 + 6 * s))
                explained[s][i] += np.log(q / q.sum() @ theta[j, :, table[i, j]])
    best = max(explained.values(), key=np.mean)
    gaps = {s: best - each for s, each in explained.items()}
    assert found == max(s for s, g in gaps.items() if g.mean() <= 3 * g.std() / np.sqrt(200))
    assert found < 0.4


def test_many_named_sets_keep_their_own_labels():
    """300,000 sets of three: each sampled opinion speaks for the labels that were named."""
    m, s, l = 300_000, 3, 6
    named = np.sort(np.argsort(np.random.RandomState(0).rand(m, l), axis=1)[:, :s], axis=1)
    rows = np.repeat(np.arange(m, dtype=np.int32), s)
    sizes = np.full(m * s, s, dtype=np.int32)
    flat = named.ravel().astype(np.int32)
    answers = Answers(rows, 0 * rows, flat, m, np.arange(l), None, None, sizes)
    opinions = sample_opinions(answers, np.full((1, l, l), 1 / l), np.array([0.8]))
    expected = np.zeros((m, l), dtype=bool)
    expected[np.arange(m)[:, None], named] = True
    inside = np.isclose(opinions.evidence, np.log(0.8 / s))
    assert np.array_equal(inside, expected[opinions.rows])
    assert (np.diff(opinions.rows) > 0).all()


def test_sets_of_unknown_annotators_to_one_row_are_numbered_apart():
    lines = [
        ("x", ["a", "b"]),
        ("x", ["b", "c"]),
        ("x", ["a"]),
        ("y", ["a", "b", "c"]),
        ("y", ["c"]),
    ]
    answers = as_answers(lines, layout="long")
    sizes = answers.sizes.tolist()
    numbers = number_opinions(answers).tolist()
    assert numbers == sorted(numbers)
    assert sorted(np.bincount(numbers)) == sorted([2, 2, 1, 3, 1])
    for number in set(numbers):
        own = {size for size, other in zip(sizes, numbers, strict=True) if other == number}
        assert own == {numbers.count(number)}


@pytest.mark.parametrize("l", [2, 3])
def test_sparse_rows_of_a_linear_kernel_are_as_dense_ones(l):
    truth, table = crowd(n=90, l=l)
    X = np.hstack([features(truth, l), np.random.default_rng(2).normal(size=(90, 3))])
    X[np.abs(X) < 0.7] = 0
    table[80:] = -1
    answers = read(table, l)
    dense = TestimonyClassifier(kernel="linear").fit(X, answers)
    assert dense.trust_ > 0
    for form in (sp.csr_matrix, sp.coo_array):
        sparse = TestimonyClassifier(kernel="linear").fit(form(X), answers)
        np.testing.assert_allclose(sparse.confidence_, dense.confidence_, atol=1e-6)
        np.testing.assert_allclose(
            sparse.predict_proba(sp.csr_matrix(X[:9])), dense.predict_proba(X[:9]), atol=1e-6
        )
        assert np.array_equal(sparse.transduction_, dense.transduction_)


def test_first_labels_changes_and_ties_are_left():
    truth, table = crowd(n=200, accuracy=0.4, share=0.4)
    model = TestimonyClassifier().fit(features(truth, 3), read(table, 3))
    docket = model.docket(output="dict")
    np.testing.assert_array_equal(model.verdict_, docket["verdict"])
    np.testing.assert_array_equal(model.overturned_, model.verdict_ != model.transduction_)
    assert model.overturned_.any()
    assert model.n_ties_ == 0
    tied = TestimonyClassifier().fit(
        None, as_answers([["a", "b"], ["b", "a"], ["a", "a"], ["b", "b"]])
    )
    assert tied.n_ties_ == 2


def test_numbers_whose_deviation_overflows_are_refused():
    X = np.repeat([[-1e200], [1e200]], 4, axis=0)  # divided by an infinite deviation: all alike
    with pytest.raises(ValueError, match="too large for float64: scale the features"):
        TestimonyClassifier().fit(X, ["a"] * 4 + ["b"] * 4)
