"""How did the candidate sets arise? One place answers for all methods.

*Label-first* (tau = 0): a label was drawn, and false labels joined it. *Set-first* (tau = 1): a
set was there, and one of its labels is this row's, as with faces and the names in a caption.
`appellate.evidence.likelihood` explains what follows from tau.

The criterion B (`held_out.criterion`) compares values of tau without the true labels. B alone
cannot tell set-first data from label-first data whose false labels look like the row, because
both gain a little from tau > 0. `resemblance` tells them apart: it asks whether false candidates
look like the row. They do if annotators or models added plausible mistakes. They do not if the
set came first, or if false labels were added at random.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from appellate.evidence.likelihood import Evidence

__all__ = ["choose_tau", "read_ambiguity", "resemblance"]

#: Values of tau among which the criterion chooses.
TAUS = (0.0, 0.5, 1.0)
#: Words for tau.
AMBIGUITY_WORDS = {"label-first": 0.0, "set-first": 1.0}
#: Standard errors by which a criterion must be above 0 to be more than chance.
PROOF = 2.0

# Chosen on the tuning panel, see docs/ambiguity.md.
_CONFIDENT = 0.8  # posterior of a row's label that is believed when resemblance is measured
_FEWEST = 8  # rows with and without a label that one comparison needs
_RESEMBLING = 0.65  # resemblance above which false labels look like the true ones
_SAME = 1e-3  # criteria of two taus that differ by less are equal
_ALIKE = 0.98  # of the best: if all taus reach it, they cannot be told apart
_GAIN, _RATIO = 0.06, 1.15  # of the criterion over tau = 0, if the labels are ordered


def read_ambiguity(ambiguity: Any) -> tuple[float, ...]:
    """Return the values of tau that a parameter `ambiguity` leaves open.

    Parameters
    ----------
    ambiguity : {"auto", "label-first", "set-first"} or float
        The value of the parameter.

    Examples
    --------
    >>> read_ambiguity("auto"), read_ambiguity("set-first"), read_ambiguity(0.25)
    ((0.0, 0.5, 1.0), (1.0,), (0.25,))
    """
    return TAUS if ambiguity == "auto" else (float(AMBIGUITY_WORDS.get(ambiguity, ambiguity)),)


def resemblance(probabilities: NDArray[Any], evidence: Evidence) -> float | None:
    """Measure whether false candidates look like their row: .5 if not, up to 1 if they do.

    Rows whose posterior ``rownorm(evidence * probabilities)`` has a label of at least .8 are
    grouped by that label j. For every other label k with at least 8 rows that have k as a
    candidate and 8 that have not, the area under the ROC curve says whether the probability of
    k is larger in the rows that have it. The result is the mean over all pairs (j, k), weighted
    by the smaller number of rows.

    Parameters
    ----------
    probabilities : ndarray, shape (n, l)
        Out-of-fold probabilities of a classifier that takes the sets as label-first.
    evidence : Evidence
        Evidence of the same rows.

    Returns
    -------
    float or None
        None if no pair of labels has enough confident rows.

    Examples
    --------
    >>> import numpy as np
    >>> P = np.tile([0.6, 0.1, 0.3], (20, 1))
    >>> P[:10] = [0.6, 0.3, 0.1]  # the first rows look more like label 1, the others like label 2
    >>> sets = np.ones((20, 3), dtype=bool)
    >>> sets[:10, 2] = sets[10:, 1] = False
    >>> P = P**3 / (P**3).sum(axis=1, keepdims=True)
    >>> resemblance(P, Evidence.of_sets(sets))
    1.0
    >>> resemblance(np.full((20, 3), 1 / 3), Evidence.of_sets(sets)) is None
    True
    """
    entries = evidence.entries
    posterior = evidence.normalize(entries.gather(probabilities).astype(np.float64))
    confident = entries.row_max(posterior) >= _CONFIDENT
    labels = entries.argmax(posterior)
    member = entries.scatter(np.ones(len(entries), dtype=bool))
    total = weight = 0.0
    for label in np.unique(labels[confident]):
        rows = np.flatnonzero(confident & (labels == label))
        inside = member[rows]
        n_inside = inside.sum(axis=0)
        n_outside = len(rows) - n_inside
        smaller = np.minimum(n_inside, n_outside)
        compared = np.flatnonzero(smaller >= _FEWEST)
        compared = compared[compared != label]
        if len(compared) == 0:
            continue
        ranks = rankdata(probabilities[np.ix_(rows, compared)], axis=0)
        inside = inside[:, compared]
        n_inside = n_inside[compared]
        n_outside = n_outside[compared]
        above = (ranks * inside).sum(axis=0) - n_inside * (n_inside + 1) / 2
        areas = above / (n_inside * n_outside)
        total += float(areas @ smaller[compared])
        weight += float(smaller[compared].sum())
    return total / weight if weight else None


def choose_tau(
    criteria: Mapping[float, Sequence[float]],
    resemblance: float | None = None,
    *,
    ordered: bool = False,
    alike: Literal["middle", "label-first"] = "middle",
) -> float:
    """Choose how the sets arose. The first rule that applies decides.

    1. No criterion is above 0: label-first.
    2. The labels are ordered, and the best tau gains less than .06 and less than 15 %:
       label-first. Guesses around a value gain a little from tau > 0.
    3. All taus are within 2 % of the best criterion: what `alike` says. Labels are then about
       equally frequent, and dividing by their frequency only keeps a label from taking over its
       look-alikes.
    4. False labels look like the true ones (resemblance above .65): label-first.
    5. Otherwise the smallest tau within 1e-3 of the best criterion.

    Parameters
    ----------
    criteria : dict
        For every tau the criterion after each of its rounds.
    resemblance : float or None, default=None
        What `resemblance` found; None if it found nothing.
    ordered : bool, default=False
        Whether an order among the labels was found.
    alike : {"middle", "label-first"}, default="middle"
        What to choose if the taus cannot be told apart: the middle one, or 0. Networks choose
        0, because they gain nothing from a larger tau there and pay with more rounds.

    Returns
    -------
    float

    Examples
    --------
    >>> proven = {0.0: [0.85, 0.86], 0.5: [0.88, 0.89], 1.0: [0.87, 0.90]}
    >>> choose_tau(proven, 0.47), choose_tau(proven, 0.77), choose_tau(proven, ordered=True)
    (1.0, 0.0, 0.0)
    """
    best = {tau: max(values) for tau, values in criteria.items()}
    top = max(best.values())
    plain = best.get(0.0, -np.inf)
    if top <= 0:
        return 0.0
    if ordered and top - plain < _GAIN and top < _RATIO * plain:
        return 0.0
    if min(best.values()) >= _ALIKE * top:
        return 0.0 if alike == "label-first" else sorted(best)[len(best) // 2]
    if resemblance is not None and resemblance > _RESEMBLING:
        return 0.0
    return min(tau for tau, value in best.items() if value >= top - _SAME)


def describe(tau: float, resemblance: float | None, order_width: int) -> list[str]:
    """Say in sentences what was found about the candidate sets.

    Parameters
    ----------
    tau : float
        How the sets arose.
    resemblance : float or None
        From `resemblance`.
    order_width : int
        Width of the order among the labels; 0 without.

    Examples
    --------
    >>> for line in describe(1.0, 0.49, 0):
    ...     print(line)
    The sets came first: frequent labels are in more sets, and count less (tau 1).
    False candidates do not look like their row (resemblance .49).
    >>> for line in describe(0.0, None, 8):
    ...     print(line)
    The labels came first: false labels were added to the true one (tau 0).
    Neighbouring labels look alike: evidence reaches 8 labels along their order.
    """
    if tau == 0:
        lines = ["The labels came first: false labels were added to the true one (tau 0)."]
    elif tau == 1:
        lines = ["The sets came first: frequent labels are in more sets, and count less (tau 1)."]
    else:
        lines = [f"The sets are between label-first and set-first (tau {tau:g})."]
    if resemblance is not None:
        verb = "look" if resemblance > _RESEMBLING else "do not look"
        number = f"{resemblance:.2f}".removeprefix("0")
        lines.append(f"False candidates {verb} like their row (resemblance {number}).")
    if order_width:
        lines.append(
            f"Neighbouring labels look alike: evidence reaches {order_width} labels along their "
            "order."
        )
    return lines
