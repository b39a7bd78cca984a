"""Which labels can be accepted without review, by a sample of rows that was reviewed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta, binom

if TYPE_CHECKING:
    from appellate.rectification.fitting import FittedLabels

#: Reviewed rows drawn at random from which on `acceptable` is asked.
ENOUGH = 50
_SHARES = np.arange(1, 21) / 20  # of the rows, from the most confident ones to all
_LIKELY = 0.9  # that the strictest threshold has enough reviewed rows to pass at all


@dataclass(frozen=True)
class Acceptance:
    """A threshold on the confidence, and why it holds.

    Attributes
    ----------
    threshold : float or None
        Rows of this confidence or more can be accepted; None if no rows can.
    bound : float
        Upper bound of their error rate. Without a threshold it is the bound of the strictest
        threshold that was tested, the one that failed.
    audited, wrong : int
        Reviewed rows of that confidence, and how many of their labels were wrong.
    """

    threshold: float | None
    bound: float
    audited: int
    wrong: int


def acceptable(
    confidence: ArrayLike,
    audited_confidence: ArrayLike,
    audited_right: ArrayLike,
    max_error: float = 0.02,
    level: float = 0.95,
) -> Acceptance:
    """Find the lowest confidence whose rows have an error rate of `max_error` at most.

    Shares of the rows are tested one after the other, from the most confident rows to all rows.
    A share passes if the Clopper-Pearson upper bound [1]_ of its error rate, by the reviewed rows
    in it, is `max_error` at most. The first share that fails ends the test. The shares and
    their order do not depend on what the review found. So the probability that the error rate
    of the accepted rows exceeds `max_error` is ``1 - level`` at most, whatever the confidences
    are worth, and without a correction for several tests (fixed-sequence testing [2]_).

    Parameters
    ----------
    confidence : array-like, shape (n,)
        Confidence of all rows that the reviewed rows were drawn from, including the reviewed rows.
    audited_confidence : array-like, shape (m,)
        Confidence of the reviewed rows, which were drawn at random.
    audited_right : array-like of bool, shape (m,)
        Whether the review found the label correct.
    max_error : float, default=0.02
        The error rate to accept, between 0 and 1.
    level : float, default=0.95
        The probability that the error rate is not larger, between 0 and 1.

    Returns
    -------
    Acceptance
        The threshold, and the bound of the error rate.

    Raises
    ------
    ValueError
        If a number is outside its range, or lengths differ.

    Notes
    -----
    The tested shares are 5 %, 10 % ... 100 % of the rows. The first of them is the smallest share
    that has, with a probability of .9, as many reviewed rows as a test needs to pass if none is
    wrong (`rows_needed`).

    References
    ----------
    .. [1] Clopper, Pearson (1934). The use of confidence or fiducial limits illustrated in the
       case of the binomial. Biometrika 26.
    .. [2] Angelopoulos, Bates, Candès, Jordan, Lei (2021). Learn then test: calibrating predictive
       algorithms to achieve risk control. arXiv:2110.01052.

    Examples
    --------
    >>> import numpy as np
    >>> confidence = np.linspace(0, 1, 1000)
    >>> audited = confidence[::5]  # 200 rows; labels below .3 are wrong
    >>> found = acceptable(confidence, audited, audited > 0.3, max_error=0.05)
    >>> round(found.threshold, 2), found.audited, found.wrong
    (0.3, 140, 0)
    """
    check_shares(max_error=max_error, level=level)
    sure = np.asarray(confidence, dtype=np.float64)
    sampled = np.asarray(audited_confidence, dtype=np.float64)
    right = np.asarray(audited_right, dtype=bool)
    if len(sampled) != len(right):
        raise ValueError(
            f"audited_confidence has {len(sampled)} rows, but audited_right has {len(right)}. "
            "Give one of each per reviewed row."
        )
    if not len(sure):
        return Acceptance(None, 1.0, 0, 0)
    shares = _tested(len(sampled), rows_needed(max_error, level))
    places = np.ceil(shares * len(sure)).astype(int) - 1
    thresholds = np.sort(sure)[::-1][places]
    inside = sampled >= thresholds[:, np.newaxis]
    audited = np.count_nonzero(inside, axis=1)
    wrong = np.count_nonzero(inside & ~right, axis=1)
    bounds = upper_bound(wrong, audited, level)
    failed = np.flatnonzero(bounds > max_error)
    passed = int(failed[0]) if len(failed) else len(bounds)
    last = max(passed - 1, 0)
    threshold = float(thresholds[last]) if passed else None
    return Acceptance(threshold, float(bounds[last]), int(audited[last]), int(wrong[last]))


def check_shares(**shares: float) -> None:
    """Refuse numbers that are not between 0 and 1."""
    for name, value in shares.items():
        if not 0 < value < 1:
            raise ValueError(f"{name}={value!r} must be between 0 and 1, such as .05.")


def _tested(m: int, needed: int) -> NDArray[np.float64]:
    """Return the shares to test by m reviewed rows; all rows alone if these are too few."""
    likely = binom.sf(needed - 1, m, _SHARES) >= _LIKELY
    likely[-1] = True
    return np.asarray(_SHARES[int(np.argmax(likely)) :])


def upper_bound(wrong: Any, total: Any, level: float = 0.95) -> NDArray[np.float64]:
    """Return the Clopper-Pearson upper bound of a share; 1 without a row.

    Examples
    --------
    >>> upper_bound([0, 0, 1], [50, 0, 50]).round(3)
    array([0.058, 1.   , 0.091])
    """
    wrong, total = np.asarray(wrong, dtype=np.float64), np.asarray(total, dtype=np.float64)
    rest = np.maximum(total - wrong, 1)
    return np.where(wrong < total, beta.ppf(level, wrong + 1, rest), 1.0)


def rows_needed(max_error: float, level: float = 0.95) -> int:
    """Return how many reviewed rows without a wrong label bound the error rate.

    Examples
    --------
    >>> rows_needed(0.02), rows_needed(0.05)
    (149, 59)
    """
    return math.ceil(math.log1p(-level) / math.log1p(-max_error))


def estimate(confidence: ArrayLike, max_error: float) -> float | None:
    """Return the lowest confidence whose rows are expected to have an error rate of `max_error`.

    This takes the confidences as probabilities. It is an estimate and guarantees nothing.

    Examples
    --------
    >>> estimate([0.99, 0.97, 0.6], 0.02), estimate([0.6], 0.02)
    (0.97, None)
    """
    ordered = np.sort(np.asarray(confidence, dtype=np.float64))[::-1]
    expected = np.cumsum(1 - ordered) / np.arange(1, len(ordered) + 1)
    # Rows of the same confidence are accepted together or not at all.
    last = np.append(ordered[1:] < ordered[:-1], True)[: len(ordered)]
    fits = np.flatnonzero((expected <= max_error + 1e-12) & last)
    return float(ordered[fits[-1]]) if len(fits) else None


def steps(n: int) -> list[int]:
    """Return numbers of rows to review, from none to all n.

    Examples
    --------
    >>> steps(150), steps(1000)
    ([0, 10, 25, 50, 100, 150], [0, 10, 25, 50, 100, 200, 400, 800, 1000])
    """
    found = [0, 10, 25, 50]
    while found[-1] < n:
        found.append(2 * found[-1])
    return [*(k for k in found if k < n), n]


def _why_none(found: Acceptance, audited: int, max_error: float, level: float) -> str:
    """Say why no item is accepted by a guarantee."""
    needed = rows_needed(max_error, level)
    what = f"no item can be accepted with an error rate of {max_error:.1%}:"
    more = "Review more items of run.suggest(n, audit=True), or raise max_error."
    if audited < needed:
        return (
            f"{what} {audited} reviewed items drawn at random are too few to show it. At least "
            f"{needed} are needed, if none of their labels is wrong. {more}"
        )
    return (
        f"{what} {found.wrong} of the {found.audited} audited items of the highest confidence had "
        f"a wrong label, so the error rate may be {found.bound:.1%}. {more}"
    )


def _why_estimate(
    threshold: float | None, audited: int, n: int, max_error: float, level: float
) -> str:
    """Say that items are accepted by an estimate, and what a guarantee needs."""
    needed = max(ENOUGH, rows_needed(max_error, level))
    said = (
        f"this is an estimate by the confidences, not a guarantee: {audited} reviewed items were "
        f"drawn at random, and a guarantee needs {needed} or more. "
        + (
            f"The table has {n} items: raise max_error."
            if needed > n
            else f"Review run.suggest({needed}, audit=True), decide, and accept again."
        )
    )
    if threshold is not None:
        return said
    rate = f"with an error rate of {max_error:.1%}"
    return f"no item can be accepted {rate}: every confidence is too low; {said}"


def accept_items(
    fitted: FittedLabels, max_error: float, level: float
) -> tuple[dict[str, Any], NDArray[np.bool_], list[str]]:
    """Choose the items for `Rectification.accept`: a table of all, which are accepted, and notes.

    The labels of a guarantee are those without any decision, except for reviewed items.
    """
    review, notes = fitted.review, list[str]()
    n, columns = len(fitted.prepared.names), fitted.columns
    labels, shown = list(columns["label"]), list(columns["confidence"])
    audited = 0 if review is None else int(review.audited.sum())
    sure = np.array([np.nan if c is None else c for c in shown])
    if review is not None and audited >= ENOUGH:
        sure, drawn = review.confidence(), review.audited
        pool = drawn.copy()  # what the audited items stand for: all but other reviewed items
        pool[fitted.drawn] = True
        right = review.right()[drawn]
        found = acceptable(sure[pool], sure[drawn], right, max_error, level)
        threshold = found.threshold
        if threshold is None:
            notes.append(_why_none(found, audited, max_error, level))
        for i, label in enumerate(review.labels().tolist()):
            if i not in fitted.reviewed:
                labels[i], shown[i] = label, float(sure[i])
    else:
        threshold = estimate(sure[~np.isnan(sure)], max_error)
        notes.append(_why_estimate(threshold, audited, n, max_error, level))
    excluded = [i for i, (_, label) in fitted.reviewed.items() if not label]
    accepted = sure >= (np.inf if threshold is None else threshold)
    accepted[excluded] = False
    moved = sum(labels[i] != columns["label"][i] for i in np.flatnonzero(accepted))
    if moved:
        notes.append(
            f"{moved} of the {accepted.sum()} accepted items have another label in "
            "run.labels since the decisions. The guarantee is for the labels of accept."
        )
    table: dict[str, Any] = {"id": columns["id"], "label": labels, "confidence": shown}
    table["guaranteed"] = [audited >= ENOUGH] * n
    return table, accepted, notes
