"""Choosing a model without the truth: how well each score follows the true test accuracy.

For Lost, MSRCv2 and FG-NET, each split in halves, PLCP over SURE is fitted to the training half
with each of the 36 settings that `rectify` tries (base "auto"). Printed for each score that needs
no true labels, as means over the splits:

- rho: Spearman's correlation, over the grid, of the score with the true test accuracy;
- regret: true test accuracy of the best setting minus that of the setting it chooses.

Held-out scores are means over five folds of the training half. Beside them: the paper's
setting (bandwidth 1, regularization 0.05, collaboration 2, blur -1) and one drawn at random.

Minutes a split of each data set; they are in APPELLATE_DATA_HOME.
"""

from __future__ import annotations

import time

import numpy as np
from _common import make_parser
from scipy.stats import spearmanr
from sklearn.model_selection import GridSearchCV

from appellate import PLCPClassifier, SUREClassifier
from appellate.experiments.problems import DATASETS, load_problems
from appellate.experiments.protocol import split_rows
from appellate.metrics import accuracy, tolerance_accuracy
from appellate.model_selection import CandidateStratifiedKFold, get_scorer, get_scorer_names
from appellate.rectification.selection import SCORING, settings_of

NAMES = ["lost", "msrcv2", "fgnet"]
PAPER = {"bandwidth": 1.0, "regularization": 0.05, "collaboration": 2.0, "blur": -1.0}
WITHIN_3 = "FG-NET, within 3"


def sweep(X, candidates, judge, cv):
    """What `judge` says of every setting of the grid: its settings, and one array per score."""
    grid = [
        {key: [value] for key, value in each.items()} for each in settings_of(SUREClassifier())
    ]
    search = GridSearchCV(
        PLCPClassifier(SUREClassifier()), grid, scoring=judge, cv=cv, refit=False
    ).fit(X, candidates)
    settings = [
        {"bandwidth": each["kernel"].bandwidth}
        | {name: each[name] for name in PAPER if name in each}
        for each in search.cv_results_["params"]
    ]
    start = "mean_test_"
    scores = {
        key.removeprefix(start): value
        for key, value in search.cv_results_.items()
        if key.startswith(start)
    }
    return settings, scores


def measure(problem, seed):
    """Truth-free scores and true accuracies of every setting on one split."""
    X, candidates, truth = problem.X, problem.candidates, problem.truth
    train, test = split_rows(len(X), seed)
    loo = [n for n in get_scorer_names() if get_scorer(n).leave_one_out]
    held_out = [n for n in get_scorer_names() if n not in loo]

    def judge_here(model, X_, y_):
        predicted = model.predict(X[test])
        scores = {problem.title: accuracy(truth[test], predicted)}
        if problem.name == "fgnet":
            scores[WITHIN_3] = tolerance_accuracy(truth[test], predicted, 3)
        return scores | {n: get_scorer(n)(model) for n in loo}

    def judge_fold(model, X, y):
        return {n: get_scorer(n)(model, X, y) for n in held_out}

    everything = [(np.arange(len(train)),) * 2]
    settings, found = sweep(X[train], candidates[train], judge_here, everything)
    _, more = sweep(X[train], candidates[train], judge_fold, CandidateStratifiedKFold(5))
    return settings, found | more


def summarize(target, runs):
    """For every score and rival: correlation, regret, accuracy of the choice."""
    rows = {name: [] for name in (*get_scorer_names(), "paper's setting", "random setting")}
    for settings, found in runs:
        reached = found[target]
        for name in get_scorer_names():
            chosen = reached[np.argmax(found[name])]
            rho = spearmanr(found[name], reached).statistic
            rows[name].append((rho, reached.max() - chosen, chosen))
        for name, value in (
            ("paper's setting", reached[settings.index(PAPER)]),
            ("random setting", reached.mean()),
        ):
            rows[name].append((np.nan, reached.max() - value, value))
    return {name: np.mean(values, axis=0) for name, values in rows.items()}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("splits", nargs="?", type=int, default=3, help="[default: 3]")
    parser.add_argument("first", nargs="?", type=int, default=0, help="split  [default: 0]")
    given = parser.parse_args()
    splits, first = given.splits, given.first
    start, tables = time.perf_counter(), {}
    problems, missing = load_problems(NAMES)
    for name, reason in missing.items():
        print(f"{DATASETS[name].title} is skipped: {reason}")
    for name, problem in problems.items():
        runs = [measure(problem, seed) for seed in range(first, first + splits)]
        for target in (problem.title, WITHIN_3) if name == "fgnet" else (problem.title,):
            tables[target] = summarize(target, runs)
            print(f"{target}: {splits} splits, {len(runs[0][0])} settings", flush=True)
            print(f"  {'':26}    rho  regret  accuracy")
            for label, (rho, regret, reached) in tables[target].items():
                shown = "      " if np.isnan(rho) else f"{rho:+6.2f}"
                print(f"  {label:26} {shown}  {regret:6.4f}    {reached:6.4f}")
    if not tables:
        return
    means = {
        label: np.mean([table[label][1] for table in tables.values()])
        for label in next(iter(tables.values()))
    }
    print("mean regret over the tables above")
    for label, regret in sorted(means.items(), key=lambda pair: pair[1]):
        print(f"  {label:26} {regret:.4f}")
    best = min(get_scorer_names(), key=means.get)
    print(f"smallest: {best}; rectify chooses a base by: {SCORING}")
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
