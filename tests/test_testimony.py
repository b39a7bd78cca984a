"""Testimony against independent computations, and at its edges."""

from __future__ import annotations

import warnings
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
from appellate.methods.testimony import crowd_posterior, majority_vote
from appellate.methods.testimony.features import (
    Regressions,
    answer_likelihood,
    choose_ridge,
    find_beta,
)
from appellate.methods.testimony.functions import find_functions, one_sided_labels
from appellate.methods.testimony.people import (
    Expectation,
    count_votes,
    estimate_annotators,
    incidence,
    log_likelihoods,
    number_opinions,
    sample_opinions,
    set_rates,
)
from appellate.methods.testimony.rounds import (
    EXPECTATIONS,
    AnswerTable,
    Scores,
    audit_temperature,
    find_shared_errors,
    fit_crowd,
    run_crowd_rounds,
    weigh_by_held_out,
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


def vote_shares(answers):
    """Smoothed shares of the votes, and how many there are."""
    votes, total = count_votes(answers)
    return (votes + 0.5 / votes.shape[1]) / (total[:, None] + 0.5), total


def people(answers, q, *, ordered=False):
    return estimate_annotators(answers, incidence(answers), q, ordered).confusion


# -- the same, written again in loops ---------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def logit(p):
    p = min(max(p, 1e-6), 1 - 1e-6)
    return np.log(p / (1 - p))


def plain_confusions(table, q, alike_errors=False, strength=1.0):
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
            P[c, k] = u if alike_errors else (total[c, k] + l * u) / (total[c].sum() + l)
    M = np.zeros_like(N)
    for j in range(people):
        r = (np.trace(N[j]) + 4 * acc) / (N[j].sum() + 4)
        for c in range(l):
            M[j, c] = 1 - sigmoid(logit(P[c, c]) + logit(r) - logit(acc))
            M[j, c] *= P[c] / (1 - P[c, c])
            M[j, c, c] = sigmoid(logit(P[c, c]) + logit(r) - logit(acc))
    if strength == np.inf:
        return M
    theta = np.zeros_like(N)
    for j in range(people):
        for c in range(l):
            theta[j, c] = (N[j, c] + strength * l * M[j, c]) / (N[j, c].sum() + strength * l)
    return theta


def plain_em(table, l, expectation, rounds=9):
    """Confusions, evidence and prior of the answers alone, by an EM that shares no line."""
    n, people = table.shape
    counts = np.stack([(table == k).sum(axis=1) for k in range(l)], axis=1)
    q = (counts + 0.5 / l) / (counts.sum(axis=1)[:, None] + 0.5)
    for _ in range(rounds):
        theta = plain_confusions(table, q, expectation.alike_errors, expectation.strength)
        L = np.zeros((n, l))
        for i in range(n):
            for j in range(people):
                if table[i, j] >= 0:
                    L[i] += np.log(theta[j, :, table[i, j]])
        frequency = (q.sum(axis=0) + 1) / (n + l)
        q = np.exp(L - L.max(axis=1, keepdims=True)) * frequency
        q /= q.sum(axis=1, keepdims=True)
    return theta, L, np.log(frequency)


def whole_table(answers, regressions=None, ridge=None):
    votes, total = count_votes(answers)
    return AnswerTable(answers, None, (), votes, total, None, False, regressions, ridge)


def test_confusions_are_the_formulas():
    _, table = crowd()
    answers = read(table, 3)
    q = np.random.default_rng(3).dirichlet(np.ones(3), size=len(table))
    np.testing.assert_allclose(people(answers, q), plain_confusions(table, q), rtol=1e-12)
    for alike, strength in ((True, np.inf), (False, np.inf), (True, 2.0)):
        expectation = Expectation(alike, strength)
        found = estimate_annotators(answers, incidence(answers), q, False, expectation).confusion
        np.testing.assert_allclose(found, plain_confusions(table, q, alike, strength), rtol=1e-12)


@pytest.mark.parametrize("expectation", EXPECTATIONS)
def test_the_rounds_without_features_are_an_independent_em(expectation):
    truth, table = crowd()
    theta, L, prior = plain_em(table, 3, expectation)
    found = run_crowd_rounds(whole_table(read(table, 3)), expectation)
    np.testing.assert_allclose(found.annotators.confusion, theta, rtol=1e-9)
    np.testing.assert_allclose(found.scores.evidence, L, atol=1e-9)
    np.testing.assert_allclose(found.scores.prior, prior, atol=1e-9)
    assert ((L + prior).argmax(axis=1) == truth).mean() > 0.8


def test_folds_hold_out_every_opinion_once():
    counts = np.random.default_rng(0).integers(0, 4, size=(30, 3)).astype(float)
    counts[0, 0] = 2.5  # not whole: three votes
    sets = as_answers([["a|b", "a"], ["b", "a|c"], ["c", "a|b|c"]] * 10, separator="|")
    for answers in (read(crowd()[1], 3), as_answers(counts, layout="counts"), sets):
        table = whole_table(answers)
        seen = np.zeros_like(table.votes)
        for rest, held in table.folds():
            np.testing.assert_allclose(count_votes(rest.people)[0], rest.votes, atol=1e-12)
            seen += count_votes(held)[0]
            if held.sizes is not None:  # a set is held out as a whole
                assert (
                    np.bincount(number_opinions(held))
                    == held.sizes[np.unique(number_opinions(held), return_index=True)[1]]
                ).all()
        np.testing.assert_allclose(seen, table.votes)


def test_models_are_weighed_by_held_out_answers_against_loops():
    """Weights, shared errors and posterior, from folds that are fitted and scored in loops."""
    _, table = crowd(n=50, share=0.4)
    whole = whole_table(read(table, 3))
    grid = np.linspace(0, 1.5, 31)
    parts, gains, n_held = [], np.zeros(3), 0
    for rest, held in whole.folds():
        left = rest.people.table()
        m = (left >= 0).sum(axis=1)
        fits = [plain_em(left, 3, expectation, rounds=5) for expectation in EXPECTATIONS]
        for i, j, k in zip(held.rows, held.people, held.labels, strict=True):
            if m[i]:
                parts.append((m[i], [(theta[j, :, k], L[i], prior) for theta, L, prior in fits]))
                n_held += 1
    for e in range(3):
        for _, models in parts:
            chance, evidence, prior = models[e]
            p = np.exp(evidence + prior) / np.exp(evidence + prior).sum()
            gains[e] += np.log(p @ chance)
    weights = np.exp((gains - gains.max()) / n_held / 0.05)
    weights /= weights.sum()
    fit = -((grid - 0.4) ** 2) / 2 / 0.3**2
    for s, shared in enumerate(grid):
        for m, models in parts:
            chance, evidence, prior = (
                sum(w * model[at] for w, model in zip(weights, models, strict=True))
                for at in range(3)
            )
            p = np.exp(evidence / (1 + shared * (m - 1)) + prior)
            fit[s] += np.log(p @ chance / p.sum())
    found, shared = weigh_by_held_out(whole)
    np.testing.assert_allclose(found, weights, rtol=1e-6)
    assert shared == grid[fit.argmax()]
    fits = [plain_em(table, 3, expectation) for expectation in EXPECTATIONS]
    theta, L, prior = (
        sum(w * fit[at] for w, fit in zip(weights, fits, strict=True)) for at in range(3)
    )
    p = np.exp(L / (1 + shared * (whole.total - 1))[:, None] + prior)
    reported = fit_crowd(whole.people)
    np.testing.assert_allclose(reported.posterior, p / p.sum(axis=1, keepdims=True), atol=1e-6)
    np.testing.assert_allclose(reported.confusion, theta, atol=1e-6)
    assert reported.shared == shared


def test_held_out_answers_tell_what_annotators_confuse():
    """The weights go to the model that the answers were drawn from."""
    truth = np.random.default_rng(0).integers(4, size=600)
    options = {"accuracy": 0.6, "n_answers": 5, "n_people": 20, "random_state": 0}
    alike = whole_table(make_crowd(truth, **options).answers)
    assert weigh_by_held_out(alike)[0].argmax() == 0
    confused = whole_table(make_crowd(truth, confusion=0.9, **options).answers)
    weights = weigh_by_held_out(confused)[0]
    assert weights.argmax() == 1
    assert weights[0] < 0.05


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
    one = fit_crowd(as_answers(counts, layout="counts"))
    other = fit_crowd(as_answers(lines, layout="long", classes=range(3)))
    np.testing.assert_allclose(one.posterior, other.posterior, atol=1e-12)


def test_the_ridge_is_that_which_predicts_the_answers_best():
    truth, table = crowd(n=150, accuracy=0.5)
    X = np.hstack([features(truth, 3, signal=1.5), np.random.default_rng(0).normal(size=(150, 8))])
    answers = read(table, 3)
    votes, total = count_votes(answers)
    shares = (votes + 0.1 / 3) / (total[:, None] + 0.1)
    chosen = choose_ridge(Regressions(X, 3), answers, shares)
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
    truth, table = crowd(n=150)
    X = features(truth, 3)
    rng = np.random.default_rng(0)
    rows, order = rng.permutation(150), rng.permutation(6)
    fits = [
        run_crowd_rounds(whole_table(read(part, 3), Regressions(Z, 3), 0.5), EXPECTATIONS[2])
        for part, Z in ((table, X), (table[rows][:, order], X[rows]))
    ]
    p, other = (fit.scores.posterior(0.4) for fit in fits)
    np.testing.assert_allclose(other, p[rows], atol=1e-6)
    np.testing.assert_allclose(
        fits[1].annotators.confusion, fits[0].annotators.confusion[order], atol=1e-6
    )
    # As a whole it depends on the order by the answers that are held out, and no more.
    base = TestimonyClassifier().fit(X, read(table, 3))
    other = TestimonyClassifier().fit(X[rows], read(table[rows][:, order], 3))
    assert np.abs(other.confidence_ - base.confidence_[rows]).mean() < 0.05
    assert np.mean(other.transduction_ == base.transduction_[rows]) > 0.97


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
    assert blind.feature_gain_ < 5 < 50 < model.feature_gain_
    assert (alone.trust_, alone.feature_gain_) == (0, 0)
    assert (blind.transduction_ == truth).mean() > vote - 0.005


@pytest.mark.parametrize("accuracy", [0.6, 0.75])
def test_rare_labels_are_not_thought_as_likely_as_frequent_ones(accuracy):
    """Fifteen rows of a hundred: answers without features are above the vote all the same."""
    gains = []
    for seed in range(4):
        truth = (np.random.default_rng(seed).random(600) < 0.15).astype(int)
        answers = make_crowd(truth, accuracy=accuracy, random_state=seed).answers
        vote = (majority_vote(answers).argmax(axis=1) == truth).mean()
        useless = TestimonyClassifier().fit(
            np.random.default_rng(seed).normal(size=(600, 4)), answers
        )
        gains.append(
            [np.mean(each == truth) - vote for each in (useless.verdict_, useless.transduction_)]
        )
    assert np.min(gains) > -0.005
    assert np.mean(gains, axis=0).min() > 0.02


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
    for p in (fit_crowd(said, regressions).posterior, crowd_posterior(said)):
        loss = -np.log(p[np.arange(500), truth]).mean()
        assert loss < np.log(l) + 0.15


def test_people_who_all_agree_are_believed_without_infinities():
    truth = np.arange(40) % 3
    answers = read(np.repeat(truth[:, None], 4, axis=1), 3)
    model = TestimonyClassifier().fit(features(truth, 3), answers)
    assert np.isfinite(model.confidence_).all()
    assert (model.transduction_ == truth).all()
    assert model.confidence_.max(axis=1).min() > 0.9
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


def test_weak_features_do_not_ruin_single_labels():
    """Features that predict little leave labels that are mostly right nearly as they are."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        truth = rng.integers(8, size=800)
        noisy = np.where(rng.random(800) < 0.2, rng.integers(8, size=800), truth)
        X = rng.normal(size=(800, 3)) + rng.normal(size=(8, 3))[truth]
        model = TestimonyClassifier().fit(X, noisy)
        assert np.mean(model.transduction_ == truth) > np.mean(noisy == truth) - 0.005


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
    evidence = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    flat = Scores(evidence, 0.0, np.array([0.5, 0.0]), np.array([0.0, 1.0, 4.0])).posterior(0.4)
    scores = np.array([1.5, 1.5, 1 / 2.2 + 0.5])  # of the first label over the second
    np.testing.assert_allclose(flat[:, 0], sigmoid(scores), rtol=1e-12)
    shares = majority_vote([["a", "b"], [None, None], ["a", "a"]])
    assert shares.tolist() == [[0.5, 0.5], [0.5, 0.5], [1, 0]]


# -- labelling functions ----------------------------------------------------------------------


def labelling_functions(n=300, l=3, seed=0, precision=0.8, n_functions=12, coverage=0.15):
    """Truth and a wide table: each function says one label or abstains (-1)."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(l, size=n)
    table = np.full((n, n_functions), -1)
    for j in range(n_functions):
        k = j % l
        chance = np.where(truth == k, coverage * precision * l, coverage * (1 - precision) * l / 2)
        table[rng.random(n) < chance, j] = k
    return truth, table


def plain_functions(table, l, output=None, beta=0.0):
    """The model of labelling functions in loops: two passes, then the posterior."""
    n, m = table.shape
    counts = np.array([[np.sum(row == c) for c in range(l)] for row in table], dtype=float)
    total = counts.sum(axis=1)
    V = np.array([(counts[i] + 0.5 / l) / (total[i] + 0.5) for i in range(n)])
    q = V.copy()
    label = [max(table[:, j]) for j in range(m)]
    for _ in range(2):
        P = [(q[:, c].sum() + 1) / (n + l) for c in range(l)]
        N = [[q[table[:, j] >= 0, c].sum() for c in range(l)] for j in range(m)]
        spoke = [np.sum(table[:, j] >= 0) for j in range(m)]
        a = (sum(N[j][label[j]] for j in range(m)) + 1) / (sum(spoke) + 2)
        a = min(max(a, 0.001), 0.999)
        L = np.zeros((n, l))
        for j in range(m):
            for c in range(l):
                M = a if c == label[j] else (1 - a) * P[c] / (1 - P[label[j]])
                pi = (N[j][c] + 200 * M) / (spoke[j] + 200)
                for i in range(n):
                    if table[i, j] >= 0:
                        L[i, c] += np.log(max(pi, 1e-4)) - np.log(P[c])
        scores = L + np.log(P) if output is None else beta * output + L
        q = np.exp(scores - scores.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
    more = 0 if output is None else 1
    p = np.zeros((n, l))
    for i in range(n):
        flat = 1 + 0.4 * (max(total[i] + more, 1) - 1)
        value = L[i] / flat + np.log(P) if output is None else scores[i] / flat
        p[i] = np.exp(value - value.max()) / np.exp(value - value.max()).sum()
    return V, p


@pytest.mark.parametrize("with_features", [False, True])
def test_labelling_functions_are_an_independent_computation(with_features):
    truth, table = labelling_functions(n=120)
    table = table[(table >= 0).any(axis=1)]
    answers, X = read(table, 3), features(truth, 3)[: len(table)]
    if with_features:
        regressions = Regressions(X, 3)
        heard = fit_crowd(answers, regressions)
        V, _ = plain_functions(table, 3)
        output = regressions.leave_one_out(V, 0.5)
        grid = np.exp(np.linspace(-3, 4, 1001))
        losses = [
            -np.mean(np.sum(V * (b * output - logsumexp(b * output, axis=1)[:, None]), 1))
            for b in grid[::400]
        ]
        near = grid[::400][int(np.argmin(losses))]
        assert heard.beta == pytest.approx(near, rel=0.1)
        _, p = plain_functions(table, 3, output, heard.beta)
    else:
        heard = fit_crowd(answers)
        _, p = plain_functions(table, 3)
    np.testing.assert_allclose(heard.posterior, p, atol=1e-8)


def test_one_sided_sources_are_detected():
    _, table = labelling_functions()
    assert find_functions(read(table, 3)).all()
    assert one_sided_labels(read(table, 3)).tolist() == [0, 1, 2] * 4
    assert not find_functions(read(table, 3), False).any()
    _, crowd_table = crowd(n=300)
    assert not find_functions(read(crowd_table, 3)).any()
    assert not find_functions(read(crowd_table, 3), True).any()  # all of them give two labels
    both = np.hstack([table[:, :2], crowd_table])
    assert not find_functions(read(both, 3)).any()  # less than half of the answers
    assert find_functions(read(both, 3), True).tolist() == [True] * 2 + [False] * 6
    assert not find_functions(as_answers(["a", "a"], layout="labels")).any()  # one class


def test_sources_that_are_one_sided_by_chance_are_not_functions():
    """Each of 300 annotators gave one or two answers, nearly always of the frequent label."""
    rng = np.random.default_rng(0)
    truth = (rng.random(400) < 0.1).astype(int)
    lines = [(i, int(c), f"w{i // 2}") for i, c in enumerate(truth)]
    lines += [(i, int(c), f"v{i}") for i, c in enumerate(truth)]
    answers = as_answers(lines, layout="long")
    assert (one_sided_labels(answers) >= 0).mean() > 0.8
    assert not find_functions(answers).any()


def test_functions_beat_a_model_of_confusions():
    truth, table = labelling_functions(n=600)
    answers = read(table, 3)
    spoken = (table >= 0).any(axis=1)
    found = TestimonyClassifier().fit(None, answers)
    assert found.functions_.all()
    assert found.n_iter_ == 2
    vote = answers.votes()
    kept = vote[np.arange(600), found.transduction_] == vote.max(axis=1)
    assert kept[spoken].all()  # without features only ties of the vote are settled
    confused = TestimonyClassifier(functions=False).fit(None, answers)
    chance = [each.confidence_[np.arange(600), truth][spoken] for each in (found, confused)]
    assert -np.log(chance[0]).mean() < -np.log(chance[1]).mean() - 0.1
    with_features = TestimonyClassifier().fit(features(truth, 3), answers)
    right = [np.mean((each.transduction_ == truth)[spoken]) for each in (with_features, found)]
    assert right[0] > right[1]
    assert with_features.score(features(truth, 3, seed=9), truth) > 0.75


def test_a_function_that_abstains_says_nothing():
    """A row's posterior depends on the functions that spoke of it, not on how many are silent."""
    _, table = labelling_functions(n=200)
    silent = np.full((200, 3), -1)
    silent[:, 0] = np.where(np.arange(200) == 0, 0, -1)  # speaks once, of another row
    base = fit_crowd(read(table, 3)).posterior
    wider = fit_crowd(read(np.hstack([table, silent[:, 1:]]), 3)).posterior
    np.testing.assert_allclose(wider, base, atol=1e-12)
    unheard = (table < 0).all(axis=1)
    assert unheard.any()
    assert np.ptp(base[unheard], axis=0).max() < 1e-12  # all like the shares of the labels


def test_people_beside_functions():
    truth, table = labelling_functions(n=400)
    _, said = crowd(n=400, share=0.2)
    said[:, :] = -1
    rng = np.random.default_rng(5)
    for j in range(6):
        spoke = rng.random(400) < 0.15
        right = rng.random(400) < (0.9 if j < 3 else 0.4)
        said[spoke, j] = np.where(right, truth, rng.integers(3, size=400))[spoke]
    both = read(np.hstack([table, said]), 3)
    X = features(truth, 3, signal=1.0)
    for rows in (None, X):
        joined = TestimonyClassifier(functions=True).fit(rows, both)
        assert joined.functions_.tolist() == [True] * 12 + [False] * 6
        one = TestimonyClassifier(functions=True).fit(rows, read(table, 3))
        other = TestimonyClassifier().fit(rows, read(said, 3))
        right = [np.mean(each.transduction_ == truth) for each in (joined, one, other)]
        assert right[0] > max(right[1:]) + 0.02
        people = joined.annotators_
        assert people["confusion"].shape == (18, 3, 3)
        assert people["accuracy"][12:15].min() > people["accuracy"][15:].max()


# -- models that give probabilities -----------------------------------------------------------


def model_probabilities(truth, l, accuracy=0.85, sharpness=1.0, seed=3):
    """Calibrated probabilities of a model, made too sure (above 1) or too modest (below)."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(len(truth), l)) + 3 * accuracy * np.eye(l)[truth]
    p = np.exp(scores * 1.5 * sharpness)
    return p / p.sum(axis=1, keepdims=True)


def test_probabilities_of_a_model_are_one_more_answer():
    truth, table = crowd(n=400, accuracy=0.4, share=0.6)
    answers, p = read(table, 3), model_probabilities(truth, 3)
    alone = TestimonyClassifier().fit(None, answers)
    joined = TestimonyClassifier().fit(None, answers, probabilities=p)
    right = [np.mean(each.transduction_ == truth) for each in (alone, joined)]
    assert right[1] > right[0] + 0.02
    assert right[1] > np.mean(p.argmax(axis=1) == truth)
    assert set(joined.model_temperatures_) == {"model"}
    assert alone.model_temperatures_ == {}
    nothing = np.full((400, 3), np.nan)
    same = TestimonyClassifier().fit(None, answers, probabilities=nothing)
    np.testing.assert_allclose(same.confidence_, alone.confidence_, atol=1e-12)


def test_the_temperature_of_a_model_is_found_from_the_answers():
    truth, table = crowd(n=1500, accuracy=0.6, share=0.8)
    answers = read(table, 3)
    found = {}
    for sharpness in (0.3, 1.0, 4.0):
        p = model_probabilities(truth, 3, sharpness=sharpness)
        model = TestimonyClassifier().fit(None, answers, probabilities={"llm": p})
        found[sharpness] = model.model_temperatures_["llm"]
    assert found[0.3] < found[1.0] < found[4.0]
    assert found[4.0] / found[1.0] == pytest.approx(4, rel=0.2)
    guess = np.random.default_rng(0).dirichlet(np.ones(3), size=1500)
    model = TestimonyClassifier().fit(None, answers, probabilities={"llm": p, "guess": guess})
    assert model.model_temperatures_["guess"] > 3


def test_rows_that_only_a_model_answered():
    truth, table = crowd(n=100)
    table[80:] = -1
    p = model_probabilities(truth, 3)
    model = TestimonyClassifier().fit(None, read(table, 3), probabilities=p)
    assert (model.transduction_ == truth)[80:].mean() > 0.8
    assert not np.isnan(model.suspicion_).any()
    functions = labelling_functions(n=100)[1]
    both = TestimonyClassifier().fit(features(truth, 3), read(functions, 3), probabilities=p)
    np.testing.assert_allclose(both.confidence_.sum(axis=1), 1)


def test_a_model_alone_and_a_class_that_it_does_not_know():
    truth, table = crowd(n=60)
    p = model_probabilities(truth, 3)
    nobody = as_answers(np.zeros((60, 3)), layout="counts")
    alone = TestimonyClassifier().fit(None, nobody, probabilities=p)
    assert np.array_equal(alone.transduction_, p.argmax(axis=1))
    assert alone.model_temperatures_ == {"model": 1.0}
    decisions = np.full(60, None)
    decisions[0] = "new"
    answers = as_answers(table.astype(object), missing=-1, classes=[0, 1, 2])
    model = TestimonyClassifier().fit(None, answers, probabilities=p, decisions=decisions)
    assert model.classes_.tolist() == [0, 1, 2, "new"]
    assert model.transduction_[0] == "new"
    assert np.isfinite(model.confidence_).all()


def test_thousands_of_answers_to_a_row_leave_finite_probabilities():
    counts = np.array([[5000, 10, 0], [3, 4000, 2], [0, 0, 9000]] * 20)
    answers = as_answers(counts, layout="counts")
    for X in (None, np.repeat(np.eye(3), 20, axis=0)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = TestimonyClassifier().fit(X, answers)
        np.testing.assert_allclose(model.confidence_.sum(axis=1), 1)
    alone = TestimonyClassifier().fit(None, answers)
    assert np.array_equal(alone.transduction_, counts.argmax(axis=1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p[:5], r"'model' have shape \(5, 3\), but there are 20 rows and 3 classes"),
        (lambda p: -p, "rows 0, 1"),
        (lambda p: 3 * p, "row 0 sums to 3, not to 1"),
        (lambda p: [*p.tolist(), "x"], "must be numbers"),
    ],
)
def test_probabilities_that_are_none_are_refused(change, message):
    truth, table = crowd(n=20)
    p = model_probabilities(truth, 3)
    with pytest.raises(ValueError, match=message):
        TestimonyClassifier().fit(None, read(table, 3), probabilities=change(p))


# -- which labels, and how good they are ------------------------------------------------------


def test_without_features_labels_stay_among_the_answers():
    """One annotator is nearly always wrong; Dawid and Skene would read a third label."""
    truth, table = crowd(n=300, l=4, accuracy=0.3, share=0.4)
    answers = read(table, 4)
    given = answers.votes() > 0
    alone = TestimonyClassifier().fit(None, answers)
    assert given[np.arange(300), alone.transduction_].all()
    free = TestimonyClassifier(within_answers=False).fit(None, answers)
    assert np.array_equal(free.transduction_, free.confidence_.argmax(axis=1))
    X = features(truth, 4, signal=4)
    informed = TestimonyClassifier().fit(X, answers)
    assert not given[np.arange(300), informed.transduction_].all()
    assert given[np.arange(300), informed.verdict_].all()
    within = TestimonyClassifier(within_answers=True).fit(X, answers)
    assert given[np.arange(300), within.transduction_].all()


def test_label_quality_is_low_where_the_given_label_is_wrong():
    truth, _ = crowd(n=400)
    rng = np.random.default_rng(0)
    noisy = np.where(rng.random(400) < 0.3, rng.integers(3, size=400), truth)
    X = features(truth, 3, signal=3)
    model = TestimonyClassifier().fit(X, noisy)
    quality = model.label_quality_
    np.testing.assert_allclose(quality, model.confidence_[np.arange(400), noisy])
    assert quality[noisy != truth].mean() < quality[noisy == truth].mean() - 0.4
    table = np.where(rng.random((50, 3)) < 0.3, -1, rng.integers(3, size=(50, 3)))
    table[0] = -1
    several = TestimonyClassifier().fit(X[:50], read(table, 3))
    assert np.isnan(several.label_quality_[0])
    assert np.nanmin(several.label_quality_) >= 0
    assert np.nanmax(several.label_quality_) <= 1


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
    assert set(docket["outcome"]) <= {"unchanged", "changed", "outside the answers"}
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


@pytest.mark.parametrize("with_features", [True, False])
@pytest.mark.parametrize("shared", [0.0, 0.5])
def test_many_answers_say_whether_errors_are_shared(shared, with_features):
    """Ten answers that err alone are not taken for one another's echo, but shared errors are."""
    rng = np.random.default_rng(0)
    truth = rng.integers(4, size=600)
    X = np.eye(4)[truth] * 2.5 + rng.normal(size=(600, 4)) if with_features else None
    options = {"n_answers": 10, "accuracy": 0.6, "shared_errors": shared, "random_state": 0}
    model = TestimonyClassifier().fit(X, make_crowd(truth, **options).answers)
    if shared:
        assert model.shared_errors_ >= 0.1
    else:
        assert model.shared_errors_ <= 0.05
        correct, confidence = model.transduction_ == truth, model.confidence_.max(axis=1)
        assert abs(confidence.mean() - correct.mean()) < 0.05


def test_shared_errors_against_a_literal_computation():
    """The correlation under which a Dirichlet-multinomial explains the counts best."""
    rng = np.random.default_rng(1)
    truth = rng.integers(3, size=120)
    answers = make_crowd(
        truth, n_answers=8, n_people=8, accuracy=0.7, shared_errors=0.1, random_state=1
    ).answers
    q = rng.dirichlet(np.ones(3), size=120) * 0.1 + 0.9 * np.eye(3)[truth]
    votes = answers.votes()
    N = np.zeros((3, 3))
    for i in range(120):
        for c in range(3):
            N[c] += q[i, c] * votes[i]
    theta = [
        [max((N[c, k] + (c == k)) / (N[c].sum() + 1), 1e-4) for k in range(3)] for c in range(3)
    ]
    frequency = (q.sum(axis=0) + 1) / 123

    def fit(rho):
        total = 0.0
        for i in range(120):
            each = []
            for c in range(3):
                a = [theta[c][k] * (1 / rho - 1) for k in range(3)]
                value = np.log(frequency[c]) + lgamma(sum(a)) - lgamma(sum(a) + votes[i].sum())
                each.append(
                    value + sum(lgamma(votes[i, k] + a[k]) - lgamma(a[k]) for k in range(3))
                )
            total += logsumexp(each)
        return total

    found = find_shared_errors(answers, q) / 7
    assert 0.002 < found < 0.5 / 7
    assert fit(found) >= max(fit(found * 1.05), fit(found / 1.05))
    assert find_shared_errors(answers[:49], q[:49]) is None


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
    np.testing.assert_array_equal(model.verdict_, docket["first_label"])
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


def test_the_margin_is_the_lead_over_the_runner_up_among_all_labels():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=200)
    X = np.c_[5.0 * truth + rng.normal(size=200), rng.normal(size=200)]
    said = np.where(rng.random((200, 3)) < 0.8, truth[:, None], 1 - truth[:, None])
    heard = rng.random((200, 3)) < 0.5
    heard[~heard.any(axis=1), 0] = True
    answers = np.where(heard, np.array(["cat", "dog"], dtype=object)[said], None).tolist()
    for within in (False, True):
        model = TestimonyClassifier(within_answers=within).fit(X, as_answers(answers))
        docket = model.docket(output="dict")
        lead = docket["confidence"] - docket["runner_up_confidence"]
        np.testing.assert_allclose(docket["margin"], lead, atol=1e-12)
        assert docket["margin"][docket["n_candidates"] == 1].max() < 1
        assert (docket["margin"] < 0).any() == within, "the likeliest label may be nobody's answer"
