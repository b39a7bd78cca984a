"""Whether one method is better than another on the same splits of a data set."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, nan, sqrt
from typing import Literal
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.special import nctdtrinc

from appellate.candidates import name_rows

Test = Literal["t", "wilcoxon", "corrected"]
PairOutcome = Literal["win", "tie", "loss"]

TESTS: tuple[Test, ...] = ("t", "wilcoxon", "corrected")
FEWEST = 3  # splits, below which no test is made


@dataclass(frozen=True)
class PairedComparison:
    """How one method compares with another on the same splits.

    Attributes
    ----------
    n_splits : int
        Splits compared.
    means : tuple of float
        Mean score of the first and of the second method.
    difference : float
        Mean of first minus second; positive where the first is better.
    difference_interval : tuple of float
        Confidence interval of the difference, by Student's t over splits.
    t_statistic, t_pvalue : float
        Paired t-test, as in the paper.
    wilcoxon_statistic, wilcoxon_pvalue : float
        Wilcoxon's signed-rank test.
    corrected_statistic, corrected_pvalue : float
        Nadeau and Bengio's corrected resampled t-test.
    effect_size : float
        Cohen's d of the differences: their mean over their standard deviation.
    effect_interval : tuple of float
        Confidence interval of the effect size, from the noncentral t distribution.
    confidence : float
        Level of both intervals.

    Examples
    --------
    >>> comparison = paired_comparison([0.72, 0.70, 0.74], [0.69, 0.68, 0.71])
    >>> comparison.outcome(), round(comparison.difference, 3)
    ('win', 0.027)
    """

    n_splits: int
    means: tuple[float, float]
    difference: float
    difference_interval: tuple[float, float]
    t_statistic: float
    t_pvalue: float
    wilcoxon_statistic: float
    wilcoxon_pvalue: float
    corrected_statistic: float
    corrected_pvalue: float
    effect_size: float
    effect_interval: tuple[float, float]
    confidence: float = 0.95

    def pvalue(self, test: Test = "t") -> float:
        """Two-sided p-value of a test: ``"t"``, ``"wilcoxon"`` or ``"corrected"``."""
        if test not in TESTS:
            raise ValueError(f"unknown test {test!r}. Use one of {', '.join(map(repr, TESTS))}.")
        return float(getattr(self, f"{test}_pvalue"))

    def outcome(self, alpha: float = 0.05, test: Test = "t") -> PairOutcome:
        """Whether the first method wins, ties or loses at a significance level.

        A p-value that does not exist (NaN, see `paired_comparison`) is a tie.
        """
        if not self.pvalue(test) < alpha:
            return "tie"
        return "win" if self.difference > 0 else "loss"

    def __str__(self) -> str:
        """Difference, effect and p-values, in three lines."""
        level = f"{100 * self.confidence:g} %"
        low, high = self.difference_interval
        weak, strong = self.effect_interval
        t, wilcoxon, corrected = (format_p(self.pvalue(test)) for test in TESTS)
        return (
            f"{self.means[0]:.4f} against {self.means[1]:.4f} over {self.n_splits} splits\n"
            f"difference {self.difference:+.4f} ({level}: {low:+.4f} to {high:+.4f}), "
            f"effect size {self.effect_size:+.2f} ({weak:+.2f} to {strong:+.2f})\n"
            f"p = {t} (paired t), {wilcoxon} (Wilcoxon), {corrected} (corrected resampled t)"
        )


def paired_comparison(
    first: ArrayLike,
    second: ArrayLike,
    *,
    test_share: float = 0.5,
    confidence: float = 0.95,
) -> PairedComparison:
    """Compare the scores of two methods on the same splits.

    Three two-sided tests. The paired t-test is the paper's ("pairwise t-test at significance
    level of 0.05"). It takes the splits as independent, but random splits of one data set
    share most of their rows, so it finds differences too easily. The corrected resampled
    t-test [1]_ widens the variance for it, ``(1/J + test rows / training rows) * variance``
    for J splits; Wilcoxon's test asks for no normal distribution.

    Parameters
    ----------
    first, second : array-like, shape (n_splits,)
        Scores, larger is better; entry i of both comes from split i.
    test_share : float, default=0.5
        Share of the rows that a split tests on; the paper's is one half. Only the corrected
        test uses it.
    confidence : float, default=0.95
        Level of the intervals.

    Returns
    -------
    PairedComparison
        Fewer than three splits have no p-value (NaN). Differences that are all the same have
        no t-test: their variance, by which it judges, is zero only because the splits are few.
        As in scipy, Wilcoxon's p-value of identical scores is 1.

    Raises
    ------
    ValueError
        If a score is NaN or infinite: a run that failed is not a tie.

    References
    ----------
    .. [1] Nadeau, Bengio (2003). Inference for the generalization error. Machine Learning 52.

    Examples
    --------
    >>> base = [0.71, 0.69, 0.73, 0.70, 0.72]
    >>> coupled = [0.72, 0.71, 0.73, 0.72, 0.73]
    >>> result = paired_comparison(coupled, base)
    >>> print(result)
    0.7220 against 0.7100 over 5 splits
    difference +0.0120 (95 %: +0.0016 to +0.0224), effect size +1.43 (+0.10 to +2.70)
    p = 0.033 (paired t), 0.125 (Wilcoxon), 0.261 (corrected resampled t)
    >>> result.outcome(), result.outcome(test="corrected")
    ('win', 'tie')
    """
    if not (0 < test_share < 1 and 0 < confidence < 1):
        raise ValueError(
            f"test_share ({test_share!r}) and confidence ({confidence!r}) are shares between 0 "
            "and 1."
        )
    one, two = read_scores(first=first, second=second)
    n, differences = len(one), one - two
    tested = n >= FEWEST
    with catch_warnings(), np.errstate(all="ignore"):  # the degenerate cases described above
        simplefilter("ignore", RuntimeWarning)
        low, high = map(float, stats.ttest_rel(one, two).confidence_interval(confidence))
        t = float(stats.ttest_rel(one, two).statistic)
        ranks = [0.0, 1.0]  # of the same scores, of which scipy knows nothing for one pair
        if not np.array_equal(one, two):
            ranks = [float(found) for found in stats.wilcoxon(one, two)]
    share = 1 / n + test_share / (1 - test_share)
    largest = max(np.abs(one).max(), np.abs(two).max())
    if np.ptp(differences) <= 8 * np.finfo(float).eps * largest:  # the same, but for rounding
        t = corrected = nan
    else:
        corrected = float(differences.mean()) / sqrt(share * float(differences.var(ddof=1)))
    p, corrected_p = (
        float(2 * stats.t.sf(abs(found), n - 1)) if tested else nan for found in (t, corrected)
    )
    return PairedComparison(
        n,
        (float(one.mean()), float(two.mean())),
        float(np.mean(differences)),
        (low, high),
        *(t, p),
        *(ranks[0], ranks[1] if tested else nan),
        *(corrected, corrected_p),
        t / sqrt(n),
        _effect_interval(t, n, confidence),
        confidence,
    )


def _effect_interval(t: float, n: int, confidence: float) -> tuple[float, float]:
    """Noncentralities at which t is just not extreme, in standard deviations."""
    if not isfinite(t):
        return nan, nan
    tail = (1 - confidence) / 2
    low, high = (nctdtrinc(n - 1, p, t) / sqrt(n) for p in (1 - tail, tail))
    return float(low), float(high)


def read_scores(**named: ArrayLike) -> list[NDArray[np.float64]]:
    """Read finite scores, one for each of the same splits or data sets."""
    arrays = {name: np.asarray(values, dtype=float) for name, values in named.items()}
    shapes = {array.shape for array in arrays.values()}
    if len(shapes) > 1 or any(len(shape) != 1 or not shape[0] for shape in shapes):
        shown = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(
            f"both methods need one score for each of the same runs; got shapes {shown}."
        )
    for name, array in arrays.items():
        broken = np.flatnonzero(~np.isfinite(array))
        if broken.size:
            raise ValueError(
                f"{name} is NaN or infinite in {name_rows(broken)}. Leave them out of both."
            )
    return list(arrays.values())


def format_p(value: float) -> str:
    """Three digits of a p-value."""
    return "nan" if value != value else "< 0.001" if value < 0.001 else f"{value:.3f}"
