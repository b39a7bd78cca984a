"""All registered methods on all data sets at hand: means, ranks, significance, time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate.experiments.methods import (
    JURY,
    MAJORITY,
    PARTNER_ALONE,
    RANDOM,
    RIDGE,
    SETTING,
    TESTIMONY,
    Method,
    alone,
    coupled,
    deep_missing,
    deep_rivals,
    with_jury,
)
from appellate.experiments.problems import Dataset
from appellate.experiments.ranks import mean_ranks, rank_note
from appellate.experiments.reports import FIXED, Report, Sheet, mean_text
from appellate.experiments.results import Results, mean_spread
from appellate.metrics import paired_comparison

ScoreTable = dict[str, dict[str, NDArray[np.float64]]]  # by method, then by data set
Seconds = dict[tuple[str, str], float]  # by method and data set


def rival_methods(bases: Iterable[str], problem: Dataset) -> list[Method]:
    """All that can be run on a problem: controls, jury, bases alone and coupled, networks."""
    heard = [TESTIMONY, MAJORITY] if problem.answers is not None else []
    kinds = (alone, coupled, with_jury)
    controls = [RANDOM, PARTNER_ALONE, RIDGE]
    named = [kind(base) for base in bases for kind in kinds]
    return [*controls, JURY, *heard, *named, *deep_rivals()]


def report_rivals(results: Results, bases: Sequence[str], *_: object) -> Report:
    """Report every method on every data set, the best mean rank first.

    A circle marks a mean that is significantly below the best of its column by Nadeau and
    Bengio's test at 0.05, on the splits that both have. Ranks count methods that have a score
    on all sets.
    """
    problems = results.problems
    runs = [(n, m) for n, problem in problems.items() for m in rival_methods(bases, problem)]
    seconds = _seconds(results, runs)
    sheets = []
    records: list[dict[str, Any]] = []
    notes = []
    for score, title in (("test", "Test accuracy"), ("transductive", "Transductive accuracy")):
        found: ScoreTable = {}
        for name, method in runs:
            values = results.scores(name, method, score)
            if values is not None:
                found.setdefault(method.title, {})[name] = values
        sheet, note = _ranking(title, found, problems, seconds)
        sheets.append(sheet)
        notes.append(f"{title}: {note}")
        records += _records(score, found, seconds)
    spent = [
        (m, *(f"{seconds[m, n]:.2f}" if (m, n) in seconds else "-" for n in problems))
        for m in dict.fromkeys(m for m, _ in seconds)
    ]
    title = "CPU seconds to fit and predict, one thread"
    sheets += [Sheet(title, ("method", *problems), tuple(spent)), _couplings(results, bases)]
    caption = (
        "Mean and standard deviation over splits, the best mean rank first. CPU seconds to fit "
        "and predict are the mean over the data sets. A circle (○): significantly below the best "
        "of the column (Nadeau and Bengio's test at 0.05 on the splits that both have; it needs "
        "at least three splits)."
    )
    notes.append(f"{len(results.splits)} splits. {FIXED}")
    notes.append(f"Left out: {deep_missing()}" if deep_missing() else SETTING)
    return Report("rivals", "Rivals", caption, tuple(sheets), tuple(records), tuple(notes))


def _seconds(results: Results, runs: Iterable[tuple[str, Method]]) -> Seconds:
    """Return the mean CPU seconds of every run that fits a model."""
    seconds: Seconds = {}
    for name, method in runs:
        rows = (results.row(name, method, split) for split in results.splits)
        taken = [row.seconds for row in rows if row is not None and row.seconds > 0]
        if taken:
            seconds[method.title, name] = float(np.mean(taken))
    return seconds


def _ranking(
    title: str, found: ScoreTable, problems: Mapping[str, Dataset], seconds: Seconds
) -> tuple[Sheet, str]:
    """Return one line per method, the best mean rank first, and a note on the ranks."""
    datasets = [name for name in problems if any(name in each for each in found.values())]
    whole = {m: each for m, each in found.items() if len(each) == len(datasets)}
    ranks = mean_ranks({m: [each[n].mean() for n in datasets] for m, each in whole.items()})
    best = {
        n: max((each[n] for each in found.values() if n in each), key=np.mean) for n in datasets
    }
    lines = []
    for m in sorted(found, key=lambda m: (ranks.get(m, np.inf), m)):
        cells = [_cell(found[m][n], best[n]) if n in found[m] else "-" for n in datasets]
        taken = [seconds[m, n] for n in datasets if (m, n) in seconds]
        mean = f"{np.mean(taken):.1f}" if taken else "-"
        lines.append((m, f"{ranks[m]:.1f}" if m in ranks else "-", mean, *cells))
    header = ("method", "rank", "seconds", *(problems[n].title for n in datasets))
    return Sheet(title, header, tuple(lines)), rank_note(len(ranks), len(datasets), "data sets")


def _records(score: str, found: ScoreTable, seconds: Seconds) -> Iterator[dict[str, Any]]:
    """Return one record per method and data set."""
    for method, scores in found.items():
        for name, values in scores.items():
            mean, deviation = mean_spread(values)
            yield {
                "score": score,
                "method": method,
                "dataset": name,
                "splits": len(values),
                "mean": mean,
                "deviation": deviation,
                "seconds": seconds.get((method, name)),
            }


def _cell(values: NDArray[np.float64], best: NDArray[np.float64]) -> str:
    both, worse = min(len(values), len(best)), "tie"
    if both > 1:
        worse = paired_comparison(values[:both], best[:both]).outcome(test="corrected")
    return mean_text(*mean_spread(values), outcome=worse)


def _couplings(results: Results, bases: Sequence[str]) -> Sheet:
    """Wins, ties and losses of coupled over base, by both tests."""
    rows = []
    for title, kind in (("B-PLCP", coupled), ("B-PLCP(jury)", with_jury)):
        for score in ("test", "transductive"):
            outcomes: dict[str, list[str]] = {"t": [], "corrected": []}
            for name, base in product(results.problems, bases):
                one, two = (results.scores(name, m, score) for m in (kind(base), alone(base)))
                if one is not None and two is not None and len(one) > 1:
                    pair = paired_comparison(one, two)
                    outcomes["t"].append(pair.outcome())
                    outcomes["corrected"].append(pair.outcome(test="corrected"))
            words = ("win", "tie", "loss")
            counts = ("/".join(str(o.count(w)) for w in words) for o in outcomes.values())
            rows.append((f"{title} against B", score, str(len(outcomes["t"])), *counts))
    header = ("comparison", "score", "cells", "win/tie/loss, paired t", "by Nadeau and Bengio")
    return Sheet("Coupled over base", header, tuple(rows))
