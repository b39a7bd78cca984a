"""Ranks of methods over data sets or splits, and how far apart they must be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import rankdata, studentized_range

from appellate.experiments.layouts import ResultTable
from appellate.experiments.reports import Sheet
from appellate.experiments.results import Results


def critical_difference(n_methods: int, n_blocks: int, level: float = 0.05) -> float:
    """Difference of mean ranks beyond which two methods differ by Nemenyi's test.

    Examples
    --------
    >>> round(critical_difference(4, 14), 2)
    1.25
    """
    quantile = studentized_range.ppf(1 - level, n_methods, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(n_methods * (n_methods + 1) / (6 * n_blocks)))


def mean_ranks(scores: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Mean rank of every method over blocks, 1 the best; equals share their ranks.

    Examples
    --------
    >>> mean_ranks({"a": [0.9, 0.5], "b": [0.8, 0.5]})
    {'a': 1.25, 'b': 1.75}
    """
    if not scores:
        return {}
    ranks = rankdata(-np.array(list(scores.values())), axis=0).mean(axis=1)
    return dict(zip(scores, ranks.tolist(), strict=True))


def rank_note(n_methods: int, n_blocks: int, blocks: str) -> str:
    """Say how far apart mean ranks must lie."""
    if n_methods < 2 or n_blocks < 2:
        return f"Ranks over {n_blocks} {blocks}: too few to test."
    distance = critical_difference(n_methods, n_blocks)
    return (
        f"Mean ranks of {n_methods} methods over {n_blocks} {blocks}; two of them differ by "
        f"Nemenyi's test at 0.05 if they are {distance:.2f} or more apart."
    )


def rank_sheet(table: ResultTable, results: Results) -> Sheet:
    """Rank the methods of a comparison over the splits of its one data set.

    The test takes splits for independent, which they are not: it finds too many differences.
    """
    (name,), score = results.problems, table.lines[0].score
    found = {e.title: results.scores(name, e.method, e.score) for e in table.lines}
    wanted = {e.title for e in table.lines if e.score == score}
    there = {t: v for t, v in found.items() if v is not None and t in wanted}
    common = min(map(len, there.values()), default=0)  # deep methods have the first few
    ranks = mean_ranks({t: v[:common].tolist() for t, v in there.items()})
    rows = [(t, f"{r:.2f}") for t, r in sorted(ranks.items(), key=lambda pair: pair[1])]
    title = f"Ranks. {rank_note(len(ranks), common, 'splits')}"
    return Sheet(title, ("method", "mean rank"), tuple(rows))
