"""Which of several methods is best over data sets: ranks, tests and win/tie/loss tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from appellate.candidates import name_rows
from appellate.metrics.paired import Outcome, Test, format_p, paired_outcome, quiet


@dataclass(frozen=True, eq=False)
class MethodComparison:
    """How several methods compare over data sets.

    Attributes
    ----------
    methods : tuple of str
        Their names.
    n_datasets : int
        Data sets compared.
    average_ranks : ndarray, shape (k,)
        Mean rank of every method, 1 is best; ties share their ranks.
    friedman_statistic, friedman_pvalue : float
        Friedman's test that all methods are equal; NaN if all scores of every data set are.
    posthoc_pvalues : ndarray, shape (k, k), or None
        Nemenyi's test of every pair.

    Examples
    --------
    >>> scores = {"a": [0.3, 0.4, 0.3], "b": [0.7, 0.5, 0.4], "c": [0.6, 0.6, 0.5]}
    >>> compare_methods(scores, posthoc=None).average_ranks.round(2).tolist()
    [3.0, 1.67, 1.33]
    """

    methods: tuple[str, ...]
    n_datasets: int
    average_ranks: NDArray[np.float64]
    friedman_statistic: float
    friedman_pvalue: float
    posthoc_pvalues: NDArray[np.float64] | None = None

    def __str__(self) -> str:
        """Friedman's test and the methods from best to worst."""
        lines = [
            f"{len(self.methods)} methods over {self.n_datasets} data sets, "
            f"Friedman p = {format_p(self.friedman_pvalue)}"
        ]
        order = np.argsort(self.average_ranks, kind="stable")
        width = max(map(len, self.methods))
        for i in order:
            line = f"{self.methods[i]:{width}}  rank {self.average_ranks[i]:.2f}"
            if self.posthoc_pvalues is not None and i != order[0]:
                line += f"  p = {format_p(self.posthoc_pvalues[order[0], i])} against the best"
            lines.append(line)
        return "\n".join(lines)


def compare_methods(
    scores: Mapping[str, ArrayLike] | ArrayLike,
    *,
    methods: Sequence[str] | None = None,
    posthoc: Literal["nemenyi"] | None = "nemenyi",
) -> MethodComparison:
    """Compare three or more methods over several data sets.

    Friedman's test on the ranks, then Nemenyi's test of every pair [1]_. Compare two methods
    by `paired_comparison`.

    Parameters
    ----------
    scores : mapping or array-like, shape (n_datasets, k)
        For every method its scores, one a data set, larger is better; or a matrix (or data
        frame) with one column a method.
    methods : sequence of str, default=None
        Names of the columns of a matrix that has none.
    posthoc : {"nemenyi", None}, default="nemenyi"
        The test of pairs, by scikit-posthocs (extra ``bench``); None leaves it out.

    Returns
    -------
    MethodComparison
        Average ranks and p-values.

    References
    ----------
    .. [1] Demsar (2006). Statistical comparisons of classifiers over multiple data sets.
       JMLR 7.

    Examples
    --------
    >>> scores = {
    ...     "knn": [0.30, 0.39, 0.28, 0.45],
    ...     "sure": [0.72, 0.47, 0.37, 0.63],
    ...     "aggd": [0.71, 0.46, 0.43, 0.61],
    ... }
    >>> print(compare_methods(scores, posthoc=None))
    3 methods over 4 data sets, Friedman p = 0.039
    sure  rank 1.25
    aggd  rank 1.75
    knn   rank 3.00
    """
    names, matrix = _score_matrix(scores, methods)
    if posthoc not in ("nemenyi", None):
        raise ValueError(f"unknown posthoc {posthoc!r}. Use 'nemenyi' or None.")
    if matrix.shape[1] < 3 or matrix.shape[0] < 2:
        raise ValueError(
            f"Friedman's test needs at least three methods and two data sets; got "
            f"{matrix.shape[1]} and {matrix.shape[0]}. Use paired_comparison for two methods."
        )
    with quiet():
        friedman = stats.friedmanchisquare(*matrix.T)
    pairs = None if posthoc is None else _nemenyi(matrix)
    return MethodComparison(
        methods=names,
        n_datasets=len(matrix),
        average_ranks=stats.rankdata(-matrix, axis=1).mean(axis=0),
        friedman_statistic=float(friedman.statistic),
        friedman_pvalue=float(friedman.pvalue),
        posthoc_pvalues=pairs,
    )


@dataclass(frozen=True)
class WinTieLoss:
    """How often one method wins, ties and loses against each of the others.

    Attributes
    ----------
    reference : str
        The method that is counted for.
    outcomes : dict
        ``outcomes[method][dataset]`` is ``"win"``, ``"tie"`` or ``"loss"`` of the reference.

    Examples
    --------
    >>> WinTieLoss("a", {"b": {"lost": "win", "msrcv2": "tie"}}).total
    (1, 1, 0)
    """

    reference: str
    outcomes: dict[str, dict[str, Outcome]]

    def counts(self, method: str) -> tuple[int, int, int]:
        """Wins, ties and losses of the reference against a method."""
        found = list(self.outcomes[method].values())
        return found.count("win"), found.count("tie"), found.count("loss")

    @property
    def total(self) -> tuple[int, int, int]:
        """Wins, ties and losses of the reference against all methods together."""
        wins, ties, losses = zip(*map(self.counts, self.outcomes), strict=True)
        return sum(wins), sum(ties), sum(losses)

    def __str__(self) -> str:
        """One line a method: wins/ties/losses."""
        width = max(map(len, self.outcomes))
        lines = [f"{self.reference} against", f"{'':{width}}  win/tie/loss"]
        lines += [f"{m:{width}}  {'/'.join(map(str, self.counts(m)))}" for m in self.outcomes]
        return "\n".join(lines)


def win_tie_loss(
    scores: Mapping[str, Mapping[str, ArrayLike]],
    reference: str,
    *,
    alpha: float = 0.05,
    test: Test = "t",
    test_share: float = 0.5,
) -> WinTieLoss:
    """Count on how many data sets one method is better, equal or worse than each other one.

    The paper's bullets: "whether B-PLCP is statistically superior/inferior to B according to
    pairwise t-test at significance level of 0.05".

    Parameters
    ----------
    scores : mapping
        ``scores[dataset][method]`` holds one score a split, larger is better. A method may be
        missing from a data set, the reference may not.
    reference : str
        The method to count for.
    alpha : float, default=0.05
        Significance level.
    test : {"t", "wilcoxon", "corrected"}, default="t"
        See `paired_comparison`.
    test_share : float, default=0.5
        Share of the rows that a split tests on, for the corrected test.

    Returns
    -------
    WinTieLoss
        Outcomes and counts.

    Examples
    --------
    >>> scores = {
    ...     "Lost": {"B": [0.71, 0.69, 0.73, 0.70], "B-PLCP": [0.72, 0.71, 0.74, 0.71]},
    ...     "FG-NET": {"B": [0.06, 0.07, 0.06, 0.07], "B-PLCP": [0.07, 0.06, 0.06, 0.07]},
    ... }
    >>> print(win_tie_loss(scores, "B-PLCP"))
    B-PLCP against
       win/tie/loss
    B  1/1/0
    """
    outcomes: dict[str, dict[str, Outcome]] = {}
    for dataset, by_method in scores.items():
        if reference not in by_method:
            raise ValueError(f"{dataset!r} has no scores of {reference!r}.")
        for method, found in by_method.items():
            if method != reference:
                outcomes.setdefault(method, {})[dataset] = paired_outcome(
                    by_method[reference], found, alpha=alpha, test=test, test_share=test_share
                )
    if not outcomes:
        raise ValueError(f"there is no method to compare {reference!r} with.")
    return WinTieLoss(reference, outcomes)


def _score_matrix(
    scores: Any, methods: Sequence[str] | None
) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    if isinstance(scores, Mapping):
        if methods is not None:
            raise ValueError("scores name their methods already; leave methods= out.")
        columns = [np.asarray(column, dtype=float) for column in scores.values()]
        if len({column.shape for column in columns}) != 1 or columns[0].ndim != 1:
            raise ValueError("every method needs one score for each of the data sets.")
        titles: Any = list(scores)
        matrix = np.stack(columns, axis=1)
    else:
        titles = getattr(scores, "columns", None) if methods is None else methods
        matrix = np.asarray(scores, dtype=float)
        if matrix.ndim != 2:
            raise ValueError(f"scores has shape {matrix.shape}; it needs data sets and methods.")
        titles = list(range(matrix.shape[1]) if titles is None else titles)
    if len(titles) != matrix.shape[1]:
        raise ValueError(f"{len(titles)} methods are named for {matrix.shape[1]} columns.")
    broken = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if broken.size:
        raise ValueError(f"scores has NaN or infinity in {name_rows(broken)}.")
    return tuple(map(str, titles)), matrix


def _nemenyi(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    if find_spec("scikit_posthocs") is None:
        raise ImportError(
            "Tests of pairs need scikit-posthocs: pip install 'appellate[bench]'; or leave them "
            "out, posthoc=None."
        )
    pairs = import_module("scikit_posthocs").posthoc_nemenyi_friedman(matrix)
    return np.asarray(pairs, dtype=float)
