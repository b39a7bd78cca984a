"""How long a case will take to judge, said before it is judged."""

from __future__ import annotations

from typing import Any

import numpy as np

from appellate.numerics import work
from appellate.numerics.kernels import GaussianKernel, read_kernel
from appellate.numerics.memory import represent
from appellate.rectification.case import LARGE, Case

_LONG = 20.0  # seconds that are worth a word
_SHORTER = 0.5  # of the time, for another method to be named


def with_time(step: str, case: Case, q: int) -> str:
    """Add to the name of the step that judges how long it takes, if long; q features.

    The case keeps the seconds, None if nobody knows how much a user's own classifier does.
    """
    from appellate.bases import make_base
    from appellate.plcp import PLCPClassifier

    seconds = _seconds(case, q, case.estimator)
    case.estimated_seconds = None if seconds is None else float(f"{seconds:.2g}")
    if seconds is None or seconds < _LONG:
        return step
    said = f"{step}, about {spell(seconds)} for {len(case):,} items on this machine"
    if case.method == "jury":
        base = make_base("sure" if len(case) > LARGE else "aggd")
        other = _seconds(case, q, PLCPClassifier(base))
        if other is not None and other < _SHORTER * seconds:
            said += f" (method 'plcp': about {spell(other)})"
    return said


def spell(seconds: float) -> str:
    """Write a time in one unit.

    Examples
    --------
    >>> spell(44.0), spell(200.0), spell(9000.0)
    ('44 seconds', '3 minutes', '2.5 hours')
    """
    if seconds < 90:
        return f"{max(seconds, 2):.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def _seconds(case: Case, q: int, estimator: Any) -> float | None:
    todo = None if case.scheduler else _count(case, q, estimator)
    return None if todo is None else todo.seconds(work.speed())


def _count(case: Case, q: int, estimator: Any) -> work.Work | None:
    """Count the work of the classifiers that `rectify` makes; None for all others."""
    from appellate.bases.aggd import AGGDClassifier
    from appellate.bases.sure import SUREClassifier
    from appellate.jury import JuryClassifier
    from appellate.plcp import PLCPClassifier
    from appellate.testimony import TestimonyClassifier

    base = getattr(estimator, "estimator", None)
    if type(estimator) is PLCPClassifier:
        known = type(base) in (AGGDClassifier, SUREClassifier)
        known = known and estimator.ambiguity == "label-first"
    else:
        known = getattr(estimator, "members", "kernel") == "kernel"
    if not known:
        return None
    for each in (estimator, base):
        if each is not None:
            each._validate_params()  # as fit does, but settings are needed now
    kernel = read_kernel((estimator if base is None else base).kernel)
    if not isinstance(kernel, GaussianKernel):
        return None
    shape, jury = (len(case), len(case.classes)), isinstance(estimator, JuryClassifier)
    rows = len(case), max(q, 1)
    n_matrices, n_widths = (6, 3) if jury else (3, 1)
    try:
        how = represent(
            kernel, rows, shape[1], np.float64, n_matrices=n_matrices, n_widths=n_widths
        )
    except MemoryError:  # which the fit will say
        return None
    if isinstance(estimator, TestimonyClassifier):
        said = len(case.answers.rows)
        return work.count_testimony(shape, q, answers=said, landmarks=how.n_landmarks)
    if jury:
        return work.count_jury(
            shape,
            q,
            landmarks=how.n_landmarks,
            folds=estimator.n_folds,
            rounds=estimator.max_rounds,
            ways=1 + (estimator.covering == "auto"),
        )
    return work.count_plcp(
        shape,
        q,
        sizes=case.sets.matrix.sum(axis=0),
        landmarks=how.n_landmarks,
        rounds=estimator.max_rounds,
        neighbors=getattr(base, "n_neighbors", 0),
    )
