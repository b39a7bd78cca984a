"""Generated crowds: experts, spammers, confusions, and errors that people share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta
from sklearn.utils import Bunch, check_random_state

from appellate.candidates import Answers
from appellate.candidates.names import encode

_PERMUTED = 10_000_000  # pairs of rows and people up to which people are drawn without repeats


def make_crowd(
    y: ArrayLike,
    *,
    n_people: int = 30,
    n_answers: int = 3,
    accuracy: float = 0.7,
    experts: float = 0.0,
    spammers: float = 0.0,
    confusion: float = 0.0,
    shared_errors: float = 0.0,
    random_state: Any = None,
) -> Bunch:
    """Let a crowd answer for rows whose labels are known.

    Parameters
    ----------
    y : array-like, shape (n,)
        True labels.
    n_people, n_answers : int, default=30, 3
        People, and answers to each row.
    accuracy : float, default=0.7
        Mean accuracy; people differ, by a Beta distribution worth ten answers.
    experts : float, default=0.0
        Share of the people who are right in 95 of 100 cases.
    spammers : float, default=0.0
        Share of the people who answer without looking, each with favourites.
    confusion : float, default=0.0
        Share of the errors that go to one look-alike of the true class, the same for all.
    shared_errors : float, default=0.0
        Share of the rows that are hard: people are half as often right there, and all errors
        go to the same wrong label.
    random_state : int, RandomState, Generator or None, default=None
        Source of randomness; an int makes the result repeatable.

    Returns
    -------
    Bunch
        With `answers` (`appellate.Answers`), `accuracy` (p,) and `kind` (p,) of the people:
        ``"worker"``, ``"expert"`` or ``"spammer"``.

    Raises
    ------
    ValueError
        If a share does not lie in [0, 1] or a number is below 1.

    Examples
    --------
    >>> from appellate.datasets import make_crowd
    >>> crowd = make_crowd(["cat", "dog", "cow"] * 20, spammers=0.2, random_state=0)
    >>> crowd.answers
    Answers(60 rows, 180 answers of 30 people, 3 classes)
    """
    shares = {"accuracy": accuracy, "experts": experts, "spammers": spammers}
    shares |= {"confusion": confusion, "shared_errors": shared_errors}
    for name, value in shares.items():
        if not 0 <= value <= 1:
            raise ValueError(f"{name}={value!r} is no share; it lies from 0 to 1.")
    if experts + spammers > 1:
        raise ValueError(f"experts + spammers = {experts + spammers:g}; they are 1 at most.")
    if not 1 <= n_answers <= n_people:
        raise ValueError(f"n_answers={n_answers!r} must lie from 1 to n_people={n_people!r}.")
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    labels = np.asarray(y)
    truth, names = encode(labels, None, np.arange(len(labels)))
    n, l = len(truth), len(names)
    kind = np.full(n_people, "worker", dtype=object)
    n_experts, n_spammers = round(experts * n_people), round(spammers * n_people)
    kind[:n_experts], kind[n_people - n_spammers :] = "expert", "spammer"
    places = (rng.permutation(n_people) + 0.5) / n_people  # so that a small crowd has the mean
    ability = beta.ppf(places, 10 * accuracy + 1e-3, 10 * (1 - accuracy) + 1e-3)
    ability[kind == "expert"] = 0.95
    rows, who = _choose_people(rng, n, n_people, n_answers)
    said = _answer(rng, truth, rows, ability[who], confusion, shared_errors, l)
    favourites = np.cumsum(rng.dirichlet(np.ones(l), size=n_people), axis=1)
    guess = (rng.random(len(rows))[:, None] > favourites[who]).sum(axis=1).clip(max=l - 1)
    said = np.where(kind[who] == "spammer", guess, said)
    right = np.bincount(who, said == truth[rows], minlength=n_people)
    i, j, k = (part.astype(np.int32) for part in (rows, who, said))
    return Bunch(
        answers=Answers(i, j, k, n, names, np.arange(n_people)),
        accuracy=right / np.maximum(np.bincount(who, minlength=n_people), 1),
        kind=kind,
    )


def _choose_people(
    rng: np.random.Generator, n: int, n_people: int, n_answers: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows, ascending, and people of all answers; nobody answers a row twice."""
    if n * n_people <= _PERMUTED:
        chosen = np.argsort(rng.random((n, n_people)), axis=1)[:, :n_answers]
        return np.repeat(np.arange(n), n_answers), np.sort(chosen, axis=1).ravel()
    drawn = np.arange(n)[:, None] * n_people + rng.integers(n_people, size=(n, n_answers))
    pairs = np.unique(drawn)  # a few of many people are drawn twice
    return pairs // n_people, pairs % n_people


def _answer(
    rng: np.random.Generator,
    truth: NDArray[np.intp],
    rows: NDArray[np.intp],
    ability: NDArray[np.float64],
    confusion: float,
    shared_errors: float,
    l: int,
) -> NDArray[np.intp]:
    """Answers of people who look, one a pair of row and person."""
    hard = rng.random(len(truth)) < shared_errors
    right = rng.random(len(rows)) < np.where(hard[rows], ability / 2, ability)
    if l == 1:
        return np.zeros(len(rows), dtype=np.intp)
    look_alike = np.roll(cycle := rng.permutation(l), -1)[np.argsort(cycle)]
    anything = (truth[rows] + rng.integers(1, l, size=len(rows))) % l
    wrong = np.where(rng.random(len(rows)) < confusion, look_alike[truth[rows]], anything)
    common = (truth + rng.integers(1, l, size=len(truth))) % l
    return np.where(right, truth[rows], np.where(hard[rows], common[rows], wrong))
