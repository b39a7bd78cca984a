"""Ordered labels: plain decisions on FG-NET against decisions that know what a near miss is worth.

bases     all six bases alone and coupled, the paper's splits and settings. A cost changes the
          decision only, so that every method is fitted once a split (and once a fold, to choose a
          width without the truth) and decides under every cost: scores of new rows and of the
          training rows, p-values of paired tests against the plain decision, and the regret of
          the chosen width
jury      the same for the light and the full jury, whose probabilities are calibrated, without
          the choice
grades    needs no data: generated answers of people who err along the order, and testimony with
          and without `ordered`
guesses   the light jury with and without the order (splits and draws 100 and above, for choosing):
          FG-NET, and generated ages with guesses on both sides of the age or only above it
learning  geometry inside the learning: the initial confidence of the base and both blurs of PLCP
          smoothed over related candidates, ``rownorm((P K) * Y)`` with a Gaussian K of width w
          over ages, before plain decisions and decisions by a cost; the partner alone beside
          them. A star: differs from no smoothing (w = 0) by the paired t-test at .05

Ten splits of FG-NET (in APPELLATE_DATA_HOME) take a quarter of an hour to an hour. With --write
the tables of bases, jury, grades and guesses replace those of a page (docs/results_ordered.md).
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
from _common import make_parser, replace_measured, table
from sklearn.metrics import cohen_kappa_score, mean_absolute_error
from threadpoolctl import threadpool_limits

from appellate import (
    JuryClassifier,
    PartnerClassifier,
    PLCPClassifier,
    TestimonyClassifier,
    as_answers,
)
from appellate.candidates import as_candidates
from appellate.evidence.confidence import blur_entries, normalize_entries
from appellate.evidence.costs import cost_matrix
from appellate.experiments.controls import graph_confidence
from appellate.experiments.methods import PAPER_BASES, alone, coupled
from appellate.experiments.problems import load_problem
from appellate.experiments.protocol import split_rows
from appellate.methods.ridge import KernelClassifier
from appellate.metrics import paired_comparison, tolerance_accuracy
from appellate.model_selection import CandidateStratifiedKFold, get_scorer
from appellate.numerics.entries import CandidateEntries
from appellate.numerics.simplex import project_entries

WIDTHS = [None, "ordinal:1", "ordinal:2", "ordinal:3", "ordinal:5", "ordinal:8"]
COSTS = [*WIDTHS, "within:3", "within:5", "absolute"]
HELD_OUT = ["candidate_likelihood", "covering_rate"]
LEFT_OUT = ["leave_one_out_likelihood", "leave_one_out_covering"]
MEASURES = ["exact", "within 3", "within 5", "MAE", "kappa"]
METHODS = [make(base) for base in PAPER_BASES for make in (alone, coupled)]
END = "<!-- end of measured -->"
JURIES = [
    SimpleNamespace(
        title=title, build=lambda seed, m=members: JuryClassifier(m, random_state=seed)
    )
    for title, members in (("light jury", "kernel"), ("full jury", "auto"))
]


def measure(truth, labels):
    """All scores of ordered labels, which are whole numbers."""
    every = np.arange(min(*truth, *labels), max(*truth, *labels) + 1)
    return [
        tolerance_accuracy(truth, labels, 0),
        tolerance_accuracy(truth, labels, 3),
        tolerance_accuracy(truth, labels, 5),
        mean_absolute_error(truth, labels),
        cohen_kappa_score(truth, labels, weights="quadratic", labels=every),
    ]


def decide_by(model, cost):
    """Let a fitted classifier decide by another cost."""
    model.cost_ = cost_matrix(cost, model.classes_)
    return model


def transduce(model, cost):
    """Labels of the training rows by a cost, as `fit` would give them."""
    matrix = cost_matrix(cost, model.classes_)
    if matrix is None:
        return model.transduction_
    shares = model.confidence_
    if isinstance(model, KernelClassifier) and not isinstance(model, PLCPClassifier):
        entries = CandidateEntries(model.candidates_)
        output = entries.gather(model.training_output_)
        shares = entries.scatter(project_entries(output, entries))
    expected = np.where(model.candidates_, shares @ matrix, np.inf)
    return (expected <= expected.min(axis=1, keepdims=True) + 1e-12).argmax(axis=1)


def choose(method, X, candidates, model):
    """Width that each truth-free score chooses."""
    said = {name: np.zeros(len(WIDTHS)) for name in HELD_OUT}
    sets = as_candidates(candidates)
    for train, test in CandidateStratifiedKFold(5).split(X, sets):
        fold = method.build(0).fit(X[train], sets[train])
        for i, cost in enumerate(WIDTHS):
            for name in HELD_OUT:
                said[name][i] += get_scorer(name)(decide_by(fold, cost), X[test], sets[test])
    if hasattr(model, "leave_one_out_decision"):
        for name in LEFT_OUT:
            said[name] = [get_scorer(name)(decide_by(model, cost)) for cost in WIDTHS]
    return {name: WIDTHS[int(np.argmax(scores))] for name, scores in said.items()}


def check(problem):
    """The shortcuts give what fitting with the cost gives."""
    train, test = split_rows(len(problem.X), 0)
    X, candidates = problem.X[train], problem.candidates[train]
    for method in (alone("aggd"), alone("knn"), coupled("sure")):
        plain = method.build(0).fit(X, candidates)
        fitted = method.build(0).set_params(cost="ordinal:3").fit(X, candidates)
        labels = decide_by(plain, "ordinal:3").predict(problem.X[test])
        np.testing.assert_array_equal(labels, fitted.predict(problem.X[test]))
        np.testing.assert_array_equal(transduce(plain, "ordinal:3"), fitted.transduction_)


def run(problem, splits, methods, choosing):
    """Scores by method, decision and side, (splits, measures); widths chosen by method."""
    scores, chosen = {}, {}
    for split in range(splits):
        train, test = split_rows(len(problem.X), split)
        X, candidates = problem.X[train], problem.candidates[train]
        for method in methods:
            model = method.build(0).fit(X, candidates)
            found = {}
            for cost in COSTS:
                new = decide_by(model, cost).predict(problem.X[test])
                found[cost] = (
                    measure(problem.truth[test], new),
                    measure(problem.truth[train], transduce(model, cost)),
                )
            picks = choose(method, X, candidates, model) if choosing else {}
            for name, cost in picks.items():
                found[name] = found[cost]
                chosen.setdefault((method.title, name), []).append(cost)
            for decision, sides in found.items():
                for side, values in zip(("test", "training"), sides, strict=True):
                    scores.setdefault((method.title, decision, side), []).append(values)
        print(f"split {split} done", file=sys.stderr)
    return {key: np.array(values) for key, values in scores.items()}, chosen


def against(scores, title, decision, side, k):
    """Mean of a decision, with a mark where it differs from the plain one.

    ``+`` better and ``-`` worse at p < .05 in the paired t-test; doubled where the corrected
    resampled t-test, which knows that splits overlap, agrees.
    """
    plain, other = (scores[title, d, side][:, k] for d in (None, decision))
    said = f"{other.mean():.2f}" if MEASURES[k] == "MAE" else f"{other.mean():.3f}"[1:]
    if np.allclose(plain, other):
        return said
    sign = -1 if MEASURES[k] == "MAE" else 1
    compared = paired_comparison(sign * other, sign * plain)
    if not compared.t_pvalue < 0.05:
        return said
    mark = "+" if compared.difference > 0 else "-"
    return f"{said} {mark * (2 if compared.corrected_pvalue < 0.05 else 1)}"


def comparison(scores, side):
    """Plain against three decisions, all methods."""
    shown = {"plain": None, "within:3": "within:3", "within:5": "within:5"}
    shown["chosen"] = "candidate_likelihood"
    rows = [
        [m.title if name == "plain" else "", name]
        + [against(scores, m.title, d, side, k) for k in range(4)]
        for m in METHODS
        for name, d in shown.items()
    ]
    return table(["method", "decision", *MEASURES[:4]], rows)


def widths(scores, title, side="test"):
    """One method under every cost."""
    rows = [
        [cost or "plain"] + [against(scores, title, cost, side, k) for k in range(5)]
        for cost in COSTS
    ]
    return table(["cost", *MEASURES], rows)


def exact_accuracy(scores):
    """P-values of exact accuracy, the chosen width against plain."""
    rows = []
    for m in METHODS:
        plain, other = (scores[m.title, d, "test"][:, 0] for d in (None, "candidate_likelihood"))
        compared = paired_comparison(other, plain)
        rows.append(
            [m.title, f"{compared.difference:+.4f}"]
            + [f"{compared.pvalue(test):.3f}" for test in ("t", "wilcoxon", "corrected")]
        )
    return table(["method", "difference", "p, paired t", "p, Wilcoxon", "p, corrected t"], rows)


def regrets(scores, chosen):
    """How far each choice stays behind the width that is best on average."""
    rows = []
    for name in [*HELD_OUT, *LEFT_OUT, None]:
        known = [m.title for m in METHODS if name is None or (m.title, name) in chosen]
        lost = []
        for title in known:
            means = [scores[title, cost, "test"].mean(axis=0)[:4] for cost in WIDTHS]
            best = np.append(np.max(means, axis=0)[:3], np.min(means, axis=0)[3])
            lost.append(np.abs(best - scores[title, name, "test"].mean(axis=0)[:4]))
        mean = np.mean(lost, axis=0)
        picks = [c for t in known for c in chosen.get((t, name), [])]
        common = max(dict.fromkeys(picks), key=picks.count) if picks else None
        cells = [name or "always plain", str(len(known)), *(f"{x:.3f}" for x in mean[:3])]
        rows.append([*cells, f"{mean[3]:.2f}", "plain" if common is None else common])
    return table(["chosen by", "methods", *MEASURES[:4], "most often"], rows)


def report(scores, chosen):
    """All tables."""
    parts = [
        "New rows:\n\n" + comparison(scores, "test"),
        "Training rows, each label among its candidates:\n\n" + comparison(scores, "training"),
        "Exact accuracy of new rows, chosen width against plain:\n\n" + exact_accuracy(scores),
        "PL-AGGD under every cost, new rows:\n\n" + widths(scores, "PL-AGGD"),
        "PL-AGGD-PLCP under every cost, new rows:\n\n" + widths(scores, "PL-AGGD-PLCP"),
        "Regret against the best width, new rows, mean over the methods that have the score:\n\n"
        + regrets(scores, chosen),
    ]
    return "\n\n".join(parts)


def report_juries(scores):
    """Both juries under every cost."""
    sides = {"test": "new rows", "training": "training rows"}
    return "\n\n".join(
        f"The {jury.title} under every cost, {rows}:\n\n" + widths(scores, jury.title, side)
        for jury in JURIES
        for side, rows in sides.items()
    )


# -- geometry inside the learning -----------------------------------------------------------

SMOOTHINGS = [0, 1, 3, 5]
DECISIONS = [None, "ordinal:3", "ordinal:5", "absolute"]


def smooth(values, entries, kernel):
    """Smooth a confidence over related candidates."""
    return normalize_entries(entries.gather(entries.to_sparse(values) @ kernel), entries)


def fit_smoothed(base, X, candidates, width):
    """Fit PLCP with smoothed confidences; the partner alone where there is no base."""
    if base is None:
        return PartnerClassifier().fit(X, candidates)
    if width == 0:
        return coupled(base).build(0).fit(X, candidates)
    entries = CandidateEntries(candidates)
    kernel = 1 - cost_matrix(f"ordinal:{width}", range(candidates.shape[1]))
    own = graph_confidence(X, candidates) if base == "aggd" else entries.scatter(entries.uniform())
    start = entries.scatter(smooth(entries.gather(own), entries, kernel))

    def smoothed_blur(values, entries, temperature):
        return smooth(blur_entries(values, entries, temperature), entries, kernel)

    with patch("appellate.methods.plcp.blur_entries", smoothed_blur):
        return coupled(base).build(0).fit(X, candidates, supervision=start)


def show(found, plain):
    """Means, with a star where they differ from those without smoothing."""
    cells = []
    for k, mean in enumerate(found.mean(axis=0)):
        said = f"{mean:.2f}" if MEASURES[k] == "MAE" else f"{mean:.3f}"[1:]
        differs = paired_comparison(found[:, k], plain[:, k]).t_pvalue < 0.05
        cells.append(said + ("*" if differs else ""))
    return " ".join(cells)


def report_learning(problem, splits):
    """Four scores of new rows by method, decision and width of the smoothing."""
    rows = []
    for base in ("aggd", "sure", "knn", None):
        found = {}
        for split in range(splits):
            train, test = split_rows(len(problem.X), split)
            for width in SMOOTHINGS if base else SMOOTHINGS[:1]:
                model = fit_smoothed(base, problem.X[train], problem.candidates[train], width)
                for cost in DECISIONS:
                    labels = decide_by(model, cost).predict(problem.X[test])
                    scores = measure(problem.truth[test], labels)[:4]
                    found.setdefault((width, cost), []).append(scores)
        found = {key: np.array(values) for key, values in found.items()}
        name = f"{PAPER_BASES[base]}-PLCP" if base else "partner alone"
        for cost in DECISIONS:
            keys = [(width, cost) for width in SMOOTHINGS]
            cells = [show(found[k], found[0, cost]) if k in found else "" for k in keys]
            rows.append([name, cost or "plain", *cells])
    return table(["method", "cost", *(f"w = {w}" for w in SMOOTHINGS)], rows)


# -- grades that people give ----------------------------------------------------------------


def draw_grades(seed, n_people, n=400, l=7, n_answers=3):
    """Features, answers and true grades: everybody has a bias and a spread, some guess."""
    rng = np.random.default_rng(seed)
    truth = rng.binomial(l - 1, 0.5, size=n)
    X = truth[:, None] * rng.normal(size=5) / 2 + rng.normal(size=(n, 5))
    bias, spread = rng.normal(0, 0.5, n_people), rng.uniform(0.4, 1.6, n_people)
    guesses = rng.random(n_people) < 0.1
    table = np.full((n, n_people), -1)
    for i in range(n):
        who = rng.choice(n_people, n_answers, replace=False)
        said = np.rint(truth[i] + bias[who] + spread[who] * rng.normal(size=n_answers))
        said = np.where(guesses[who], rng.integers(l, size=n_answers), said)
        table[i, who] = said.clip(0, l - 1)
    return X, as_answers(table, missing=-1, classes=range(l)), table, truth


def judge_grades(seed, n_people):
    """Grades by every way to judge, of one draw."""
    X, answers, table, truth = draw_grades(seed, n_people)
    rng = np.random.default_rng(seed)
    middle = [np.median(row[row >= 0]) for row in table]
    votes = answers.votes()
    found = {
        "majority vote": (votes + rng.random(votes.shape) / 10).argmax(axis=1),
        "median answer": np.rint(middle),
    }
    for rows, title in ((None, "crowd alone"), (X, "with features")):
        for ordered in (False, True):
            for cost in (None, "absolute"):
                model = TestimonyClassifier(ordered=ordered, cost=cost).fit(rows, answers)
                words = [title] + ["`ordered`"] * ordered + ['`cost="absolute"`'] * bool(cost)
                found[", ".join(words)] = model.transduction_
    off = {name: np.abs(np.asarray(grades, float) - truth) for name, grades in found.items()}
    return {name: [np.mean(d == 0), np.mean(d <= 1), d.mean()] for name, d in off.items()}


GRADED = ("exact", "within 1", "mean error")


def report_grades(draws):
    """Means over draws, and what `ordered` adds draw by draw."""
    parts = []
    for n_people in (80, 20):
        scores = [judge_grades(seed, n_people) for seed in range(draws)]
        rows = []
        for name in scores[0]:
            means = np.mean([each[name] for each in scores], axis=0)
            rows.append([name, *(f"{mean:.3f}" for mean in means)])
        gains = []
        for name in (n for n in scores[0] if "`ordered`" in n):
            plain = name.replace(", `ordered`", "")
            gaps = np.array([np.subtract(each[name], each[plain]) for each in scores])
            error = gaps.std(axis=0, ddof=1) / np.sqrt(draws)
            pairs = zip(GRADED, gaps.mean(axis=0), error, strict=True)
            told = ", ".join(f"{title} {gap:+.3f} ({e:.3f})" for title, gap, e in pairs)
            gains.append(f"- {plain}: {told}")
        parts.append(
            f"{n_people} annotators, {1200 // n_people} answers each, mean of {draws} draws:\n\n"
            + table(["", *GRADED], rows)
            + "\n\nWhat `ordered` adds, draw by draw (standard error):\n\n"
            + "\n".join(gains)
        )
    return "\n\n".join(parts)


# -- guesses around a value -----------------------------------------------------------------


def draw_guesses(seed, below, above, n=800, l=20):
    """Features, candidates and true ages; at most so many guesses are below and above."""
    rng = np.random.RandomState(seed)
    age = rng.randint(l, size=n)
    X = np.column_stack([age, age**2 / l, 4 * np.sqrt(age)]) + 1.5 * rng.normal(size=(n, 3))
    first, last = age - rng.randint(below + 1, size=n), age + rng.randint(above + 1, size=n)
    return X, (np.arange(l) >= first[:, None]) & (np.arange(l) <= last[:, None]), age


def report_guesses(problem, draws):
    """Exact and near labels of new and training rows, with and without the order."""
    rows = []
    for title, sides in (("FG-NET", None), ("both sides", (3, 3)), ("above only", (0, 5))):
        found = {"auto": [], None: []}
        for seed in range(100, 100 + draws):
            X, sets, age = problem.X, problem.candidates, problem.truth
            if sides is not None:
                X, sets, age = draw_guesses(seed, *sides)
            train, test = split_rows(len(X), seed)
            for order, scores in found.items():
                model = JuryClassifier("kernel", order=order, random_state=seed)
                labels = model.fit(X[train], sets[train]).predict(X[test])
                errors = np.abs(labels - age[test]), np.abs(model.transduction_ - age[train])
                scores.append([np.mean(e <= most) for e in errors for most in (0, 1)])
        with_order, without = (np.array(scores) for scores in found.values())
        for name, scores in (("found", with_order), ("not used", without)):
            rows.append([title, name, *(f"{mean:.3f}" for mean in scores.mean(axis=0))])
        pairs = [paired_comparison(a, b) for a, b in zip(with_order.T, without.T, strict=True)]
        rows.append([title, "p", *(f"{pair.t_pvalue:.2g}" for pair in pairs)])
    heads = [f"{which} rows, {what}" for which in ("new", "training") for what in GRADED[:2]]
    return table(["guesses", "order", *heads], rows)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("study", choices=["bases", "jury", "grades", "guesses", "learning"])
    parser.add_argument("--splits", type=int, default=10, help="or draws  [default: 10]")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="replace its tables")
    given = parser.parse_args()
    with threadpool_limits(limits=1):
        if given.study == "grades":
            text = report_grades(given.splits)
        else:
            problem = load_problem("fgnet")
            if given.study == "jury":
                text = report_juries(run(problem, given.splits, JURIES, choosing=False)[0])
            elif given.study == "guesses":
                text = report_guesses(problem, given.splits)
            elif given.study == "learning":
                text = report_learning(problem, given.splits)
            else:
                check(problem)
                text = report(*run(problem, given.splits, METHODS, choosing=True))
    print(text)
    if given.write is not None:
        begin = f"<!-- measured by benchmarks/ordered.py {given.study} -->"
        replace_measured(given.write, begin, END, text)


if __name__ == "__main__":
    main()
