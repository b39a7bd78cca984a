"""The jury on the ten splits: what it must reach, and what it costs nobody."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

from appellate import JuryClassifier, PLCPClassifier, make_base
from appellate.metrics import expected_calibration_error
from tests.realdata.protocol import SPLITS, load, split

pytestmark = [pytest.mark.realdata, pytest.mark.slow]


def run(name, members):
    """Means over the splits: test exact, within 3, within 5, training rows, ECE, tau, width."""
    X, candidates, truth = load(name)
    rows = []
    for seed in SPLITS:
        train, test = split(len(X), seed)
        jury = JuryClassifier(members, random_state=seed).fit(X[train], candidates[train])
        P = jury.predict_proba(X[test])
        errors = np.abs(jury.classes_[P.argmax(axis=1)] - truth[test])
        right = np.mean(jury.transduction_ == truth[train])
        near = [np.mean(errors <= size) for size in (0, 3, 5)]
        error = expected_calibration_error(truth[test], P)
        rows.append([*near, right, error, jury.ambiguity_, jury.order_width_])
    return np.array(rows)


@pytest.mark.parametrize(
    ("name", "test", "training"), [("lost", 0.785, 0.915), ("MSRCv2", 0.675, 0.83)]
)
def test_light_jury(name, test, training):
    found = run(name, "kernel")
    exact, _, _, right, *_ = found.mean(axis=0)
    assert exact >= test
    assert right >= training
    assert (found[:, 5] == 1).all()  # both arose set-first
    assert (found[:, 6] == 0).all()  # names and objects have no order


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize(
    ("name", "test", "training"), [("lost", 0.785, 0.915), ("MSRCv2", 0.68, 0.838)]
)
def test_full_jury(name, test, training):
    exact, _, _, right, *_ = run(name, "auto").mean(axis=0)
    assert exact >= test
    assert right >= training


def test_ages_are_label_first_and_ordered():
    found = run("FG-NET", "kernel")
    exact, near, within_5, _, error, *_ = found.mean(axis=0)
    assert (found[:, 5] == 0).all()
    assert (found[:, 6] >= 4).all()
    assert exact >= 0.085
    assert near >= 0.51
    assert within_5 >= 0.66
    assert error <= 0.05


def test_shuffled_ages_have_no_order():
    X, candidates, _ = load("FG-NET")
    for seed in (0, 1, 2):
        train, _ = split(len(X), seed)
        shuffle = np.random.RandomState(seed).permutation(candidates.shape[1])
        jury = JuryClassifier("kernel", max_rounds=1, random_state=seed)
        assert jury.fit(X[train], candidates[train][:, shuffle]).order_width_ == 0


@pytest.mark.parametrize("name", ["lost", "MSRCv2", "FG-NET"])
def test_a_jury_as_partner_helps_every_base(name):
    """On two splits; `docs/appeal.md` has all ten."""
    X, candidates, truth = load(name)
    for base in ("knn", "sure", "aggd"):
        gains = []
        for seed in (0, 1):
            train, test = split(len(X), seed)
            alone = make_base(base).fit(X[train], candidates[train])
            coupled = PLCPClassifier(make_base(base), partner="jury", random_state=seed)
            coupled.fit(X[train], candidates[train])
            gains.append(coupled.score(X[test], truth[test]) - alone.score(X[test], truth[test]))
        assert np.mean(gains) > 0.01
