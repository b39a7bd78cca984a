"""Common checks for base classifiers: run over every one here, exported for new ones.

Like scikit-learn's `parametrize_with_checks`, to be used next to it::

    @parametrize_with_pll_checks([MyClassifier(), PLCPClassifier(MyClassifier())])
    def test_partial_label_checks(estimator, check):
        check(estimator)

A class that merely meets the protocol `appellate.core.BaseClassifier` gets the checks that
the protocol implies; a subclass of `PartialLabelClassifier` gets all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from appellate.core.base import PartialLabelClassifier, check_base
from appellate.evidence.confidence import blur, initial_confidence
from appellate.evidence.costs import expected_costs
from appellate.methods.plcp import PLCPClassifier

__all__ = ["make_clusters", "parametrize_with_pll_checks", "pll_checks"]

Check = Callable[[Any], None]


def parametrize_with_pll_checks(estimators: Iterable[Any]) -> Any:
    """Pytest decorator that runs a test once for every estimator and check.

    Parameters
    ----------
    estimators : iterable of estimator instances
        Base classifiers, or `PLCPClassifier` over them.

    Returns
    -------
    decorator
        For a test function with the arguments ``estimator`` and ``check``.

    Examples
    --------
    >>> from appellate import SUREClassifier
    >>> @parametrize_with_pll_checks([SUREClassifier()])
    ... def test_sure(estimator, check):
    ...     check(estimator)
    """
    import pytest

    return pytest.mark.parametrize(
        ("estimator", "check"),
        [
            pytest.param(estimator, check, id=f"{_name(estimator)}-{check.__name__}")
            for estimator in estimators
            for check in pll_checks(estimator)
        ],
    )


def pll_checks(estimator: Any) -> Iterator[Check]:
    """Yield the checks that apply to an estimator; each takes it and raises on failure.

    Parameters
    ----------
    estimator : estimator instance
        A base classifier, or `PLCPClassifier` over one.

    Yields
    ------
    callable
        ``check(estimator)``.

    Examples
    --------
    >>> from appellate import SUREClassifier
    >>> for check in pll_checks(SUREClassifier()):
    ...     check(SUREClassifier())
    """
    yield from _PROTOCOL_CHECKS
    if isinstance(estimator, PartialLabelClassifier):
        yield from _CLASSIFIER_CHECKS


def make_clusters(
    n_samples: int = 60, n_classes: int = 3, random_state: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.intp]]:
    """Well separated clusters with ambiguous labels: what any method must solve.

    Parameters
    ----------
    n_samples, n_classes : int, default=60, 3
        Numbers of rows and of labels.
    random_state : int, default=0
        Seed.

    Returns
    -------
    X : ndarray, shape (n, 2)
        Features.
    candidates : ndarray of bool, shape (n, l)
        The true label, and each other one with probability 0.3.
    truth : ndarray of int, shape (n,)
        True labels.

    Examples
    --------
    >>> X, candidates, truth = make_clusters()
    >>> bool(candidates[range(60), truth].all())
    True
    """
    rng = np.random.RandomState(random_state)
    truth = np.arange(n_samples) % n_classes
    angles = 2 * np.pi * truth / n_classes
    centres = 10 * np.column_stack([np.cos(angles), np.sin(angles)])
    X = centres + rng.normal(size=(n_samples, 2))
    candidates = rng.uniform(size=(n_samples, n_classes)) < 0.3
    candidates[np.arange(n_samples), truth] = True
    return X, candidates, truth


# -- what the protocol implies ------------------------------------------------------------


def check_training_output(estimator: Any) -> None:
    """The training output has one finite score for every training row and label."""
    fitted, _, candidates, _ = _solve(estimator)
    output = np.asarray(fitted.training_output_)
    assert output.shape == candidates.shape
    assert np.isfinite(output).all()


def check_proba(estimator: Any) -> None:
    """Probabilities have a column per label and are finite, also far away and for equal rows."""
    fitted, X, candidates, _ = _solve(estimator)
    equal = _fit(estimator, np.repeat(X[:5], 12, axis=0), candidates)
    for model, rows in ((fitted, X), (fitted, 1e3 * X), (equal, X), (equal, X[:1])):
        chances = np.asarray(model.predict_proba(rows))
        assert chances.shape == (len(rows), candidates.shape[1])
        assert np.isfinite(chances).all()


def check_accepts_supervision(estimator: Any) -> None:
    """A confidence is accepted as supervision, also by a classifier fitted before."""
    fitted, X, candidates, truth = _solve(estimator)
    fitted.fit(X, candidates, supervision=blur(np.eye(3)[truth], candidates, 3.0))
    output = np.where(candidates, fitted.training_output_, -np.inf)
    assert np.mean(output.argmax(axis=1) == truth) > 0.9


def check_solves_clusters(estimator: Any) -> None:
    """Well separated clusters are disambiguated and predicted."""
    fitted, X, _, truth = _solve(estimator)
    assert np.mean(np.asarray(fitted.predict_proba(X)).argmax(axis=1) == truth) > 0.95


def check_inputs_unchanged(estimator: Any) -> None:
    """Fitting writes into none of its arguments."""
    X, candidates, _ = make_clusters()
    given = X, candidates, initial_confidence(candidates)
    copies = [each.copy() for each in given]
    clone(estimator).fit(X, candidates, supervision=given[2])
    for each, copy in zip(given, copies, strict=True):
        np.testing.assert_array_equal(each, copy)


def check_deterministic(estimator: Any) -> None:
    """Two fits with one seed, and two predictions of one fit, are equal to the bit."""
    first, X, _, _ = _solve(estimator)
    second, *_ = _solve(estimator)
    np.testing.assert_array_equal(first.training_output_, second.training_output_)
    np.testing.assert_array_equal(first.predict_proba(X), first.predict_proba(X))


def check_works_as_base(estimator: Any) -> None:
    """`PLCPClassifier` couples it, and the label of a row with one candidate does not change."""
    base, cost = clone(estimator), getattr(estimator, "cost", None)
    if cost is not None:  # which the coupled classifier has for both
        base.set_params(cost=None)
    coupled, X, candidates, truth = _solve(PLCPClassifier(base, cost=cost))
    assert np.mean(coupled.predict(X) == truth) > 0.95
    assert not coupled.overturned_[candidates.sum(axis=1) == 1].any()


# -- what every classifier here keeps -----------------------------------------------------


def check_confidence(estimator: Any) -> None:
    """Confidences lie on the simplex over the candidates."""
    fitted, _, candidates, _ = _solve(estimator, random_state=1)
    assert (fitted.confidence_ >= 0).all()
    assert (fitted.confidence_[~candidates] == 0).all()
    np.testing.assert_allclose(fitted.confidence_.sum(axis=1), 1, rtol=1e-6)


def check_transduction_in_candidates(estimator: Any) -> None:
    """A training row's label is one of its candidates, also where features say nothing."""
    X, candidates, _ = make_clusters(random_state=2)
    noise = np.random.RandomState(0).normal(size=X.shape)
    for features in (X, noise, np.zeros_like(X)):
        labels = _fit(estimator, features, candidates).transduction_
        assert candidates[np.arange(len(labels)), labels].all()


def check_class_names(estimator: Any) -> None:
    """Class names come back in every output."""
    X, candidates, truth = make_clusters()
    names = np.array(["anna", "bob", "eve"])
    fitted = _fit(estimator, X, ["|".join(names[row]) for row in candidates])
    np.testing.assert_array_equal(fitted.classes_, names)
    assert np.mean(fitted.predict(X) == names[truth]) > 0.95
    assert set(fitted.transduction_) <= set(names)


def check_probabilities(estimator: Any) -> None:
    """Probabilities sum to one; the prediction is their largest, or costs least under them."""
    fitted, *_ = _solve(estimator)
    new = np.random.RandomState(1).normal(scale=8, size=(40, 2))
    probabilities = fitted.predict_proba(new)
    assert (probabilities >= 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-6)
    plain = fitted.cost_ is None
    merits = probabilities if plain else -expected_costs(probabilities, fitted.cost_)
    np.testing.assert_array_equal(fitted.predict(new), merits.argmax(axis=1))


def check_cost(estimator: Any) -> None:
    """A cost moves labels as its expectation says, and no probability or confidence."""
    if "cost" not in estimator.get_params():
        return
    dear = np.array([[0.0, 9.0, 9.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])  # to miss the first
    (plain, *_), (fitted, X, candidates, _) = (
        _solve(clone(estimator).set_params(cost=c), random_state=3) for c in (None, dear)
    )
    new = np.random.RandomState(1).normal(scale=8, size=(40, 2))
    np.testing.assert_array_equal(fitted.confidence_, plain.confidence_)
    np.testing.assert_array_equal(fitted.predict_proba(new), plain.predict_proba(new))
    expected = fitted.predict_proba(new) @ dear
    chosen = expected[np.arange(len(new)), fitted.predict(new)]
    np.testing.assert_allclose(chosen, expected.min(axis=1), atol=1e-5)
    assert np.mean(fitted.predict(new) == 0) >= np.mean(plain.predict(new) == 0)
    assert candidates[np.arange(len(X)), fitted.transduction_].all()


def check_permuted_classes(estimator: Any) -> None:
    """Renaming the classes renames the outputs and changes nothing else."""
    fitted, X, candidates, _ = _solve(estimator)
    order = np.array([2, 0, 1])
    permuted = _fit(estimator, X, candidates[:, order]).predict_proba(X)
    np.testing.assert_allclose(permuted, fitted.predict_proba(X)[:, order], atol=1e-4)


def check_permuted_samples(estimator: Any) -> None:
    """The order of the training rows does not matter to a deterministic method."""
    base = estimator.estimator if isinstance(estimator, PLCPClassifier) else estimator
    if "random_state" in base.get_params():
        return
    fitted, X, candidates, _ = _solve(estimator)
    order = np.random.RandomState(0).permutation(len(X))
    permuted = _fit(estimator, X[order], candidates[order]).predict_proba(X)
    np.testing.assert_allclose(permuted, fitted.predict_proba(X), atol=1e-4)


def check_unused_class(estimator: Any) -> None:
    """A class that no row has is legal and gets a column."""
    X, candidates, truth = make_clusters()
    fitted = _fit(estimator, X, np.pad(candidates, ((0, 0), (0, 1))))
    assert fitted.predict_proba(X).shape == (len(X), 4)
    assert np.mean(fitted.predict(X) == truth) > 0.95


def check_one_class(estimator: Any) -> None:
    """A single class is predicted for everything."""
    X, _, _ = make_clusters(n_samples=12)
    fitted = _fit(estimator, X, np.full(12, "only"))
    assert (fitted.predict(X) == "only").all()
    np.testing.assert_allclose(fitted.predict_proba(X), 1)


def check_degenerate_rows(estimator: Any) -> None:
    """Few or repeated rows, constant features, full candidate sets: the answers are finite."""
    X, candidates, _ = make_clusters()
    cases = {
        "repeated rows": (np.repeat(X[:10], 6, axis=0), candidates),
        "constant features": (np.ones_like(X), candidates),
        "every label a candidate": (X, np.ones_like(candidates)),
        "huge features": (X * 1e6 + 1e9, candidates),
        **{f"{n} rows": make_clusters(n_samples=n)[:2] for n in (2, 3, 5)},
    }
    for case, (features, sets) in cases.items():
        fitted = _fit(estimator, features, sets)
        assert np.isfinite(fitted.training_output_).all(), case
        assert np.isfinite(fitted.predict_proba(features)).all(), case


def check_float32(estimator: Any) -> None:
    """Single precision is kept and agrees with double precision."""
    X, candidates, _ = make_clusters()
    short = X.astype(np.float32)
    single, double = (_fit(estimator, rows, candidates) for rows in (short, short.astype(float)))
    probabilities = single.predict_proba(short)
    for found in (single.training_output_, single.confidence_, probabilities):
        assert found.dtype == np.float32
    np.testing.assert_allclose(probabilities, double.predict_proba(X), atol=2e-2)


def check_rejects_bad_labels(estimator: Any) -> None:
    """Empty candidate sets, wrong lengths and bad supervision are errors that say where."""
    X, candidates, _ = make_clusters()
    empty, broken = candidates.copy(), initial_confidence(candidates)
    empty[[3, 7]], broken[5] = False, np.nan
    for expected, sets, supervision in (
        ("3, 7", empty, None),
        ("60", candidates[:-1], None),
        ("5", candidates, broken),
        ("shape", candidates, broken[:, :2]),
    ):
        message = "no ValueError"
        try:
            clone(estimator).fit(X, sets, supervision=supervision)
        except ValueError as error:
            message = str(error)
        assert expected in message, f"{message} does not say {expected!r}"


def _checks_between(first: Check, last: Check | None = None) -> tuple[Check, ...]:
    """Checks in the order of this module, from one to before another."""
    checks = [value for name, value in globals().items() if name.startswith("check_")]
    return tuple(checks[checks.index(first) : None if last is None else checks.index(last)])


_PROTOCOL_CHECKS = (check_base, *_checks_between(check_training_output, check_confidence))
_CLASSIFIER_CHECKS = _checks_between(check_confidence)


def _solve(estimator: Any, **options: Any) -> tuple[Any, Any, Any, Any]:
    """Fit a clone to clusters; return it, their features, candidates and truth."""
    X, candidates, truth = make_clusters(**options)
    return _fit(estimator, X, candidates), X, candidates, truth


def _fit(estimator: Any, X: Any, y: Any) -> Any:
    fresh = clone(estimator)
    if "random_state" in getattr(fresh, "get_params", dict)():
        fresh.set_params(random_state=0)
    return fresh.fit(X, y)


def _name(estimator: Any) -> str:
    """One line, the same in every process."""
    return re.sub(r" at 0x\w+|\n|  +", "", repr(estimator))
