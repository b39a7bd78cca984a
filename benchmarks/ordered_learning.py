"""Geometry inside the learning: does it help beyond a decision that knows the order?

On FG-NET (the paper's splits), the initial confidence of the base and both blurs of PLCP are
smoothed over related candidates, ``rownorm((P K) * Y)`` with a Gaussian K of width w over ages;
then the coupled classifier decides plainly and by a cost. Beside them the partner alone, which
never hears a base. Printed: exact accuracy, within 3 and 5 years and mean absolute error on new
rows, a star where the paired t-test finds a difference (p < .05) from no smoothing (w = 0) under
the same cost.

Usage: python benchmarks/ordered_learning.py [splits]
"""

from __future__ import annotations

import sys
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from appellate import PartnerClassifier
from appellate.confidence import blur_entries, normalize_entries
from appellate.costs import cost_matrix
from appellate.experiments.controls import graph_confidence
from appellate.experiments.methods import BASES, coupled
from appellate.experiments.problems import load_problem
from appellate.experiments.protocol import split_rows
from appellate.metrics import mean_absolute_error, paired_comparison, tolerance_accuracy
from appellate.numerics.entries import CandidateEntries

SPLITS = 10
METHODS = ["aggd", "sure", "knn"]
WIDTHS = [0, 1, 3, 5]
COSTS = [None, "ordinal:3", "ordinal:5", "absolute"]


def smooth(values, entries, kernel):
    """Smooth a confidence over related candidates."""
    return normalize_entries(entries.gather(entries.to_sparse(values) @ kernel), entries)


def fit(base, X, candidates, width):
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

    with patch("appellate.plcp.blur_entries", smoothed_blur):
        return coupled(base).build(0).fit(X, candidates, supervision=start)


def scores(model, problem, rows, cost):
    """Four scores of new rows under a cost."""
    model.cost_ = cost_matrix(cost, model.classes_)
    labels, truth = model.predict(problem.X[rows]), problem.truth[rows]
    shares = [tolerance_accuracy(truth, labels, t) for t in (0, 3, 5)]
    return [*shares, mean_absolute_error(truth, labels)]


def show(found, plain):
    """Means, with a star where they differ from those without smoothing."""
    cells = []
    for k, mean in enumerate(found.mean(axis=0)):
        said = f"{mean:.2f}" if k == 3 else f"{mean:.3f}"[1:]
        differs = paired_comparison(found[:, k], plain[:, k]).t_pvalue < 0.05
        cells.append(said + ("*" if differs else ""))
    return " ".join(cells)


def main():
    splits = int(sys.argv[1]) if len(sys.argv) > 1 else SPLITS
    problem = load_problem("fgnet")
    print("| method | cost | " + " | ".join(f"w = {w}" for w in WIDTHS) + " |")
    print("| --- " * (2 + len(WIDTHS)) + "|")
    for base in [*METHODS, None]:
        found = {}
        for split in range(splits):
            train, test = split_rows(len(problem.X), split)
            for width in WIDTHS if base else WIDTHS[:1]:
                model = fit(base, problem.X[train], problem.candidates[train], width)
                for cost in COSTS:
                    key = width, cost
                    found.setdefault(key, []).append(scores(model, problem, test, cost))
        name = f"{BASES[base]}-PLCP" if base else "partner alone"
        for cost in COSTS:
            plain = np.array(found[0, cost])
            cells = [
                show(np.array(found[w, cost]), plain) if (w, cost) in found else "" for w in WIDTHS
            ]
            print(f"| {name} | {cost or 'plain'} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    with threadpool_limits(limits=1):
        main()
