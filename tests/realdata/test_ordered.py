"""Ages of FG-NET: what decisions by cost must reach on the ten splits."""

from __future__ import annotations

import numpy as np
import pytest

from appellate import AGGDClassifier, PLCPClassifier
from tests.realdata.protocol import SPLITS, load, split

pytestmark = pytest.mark.realdata


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(AGGDClassifier(), marks=pytest.mark.slow),
        PLCPClassifier(AGGDClassifier()),
    ],
    ids=repr,
)
def test_near_misses_on_ages(model):
    X, candidates, truth = load("FG-NET")
    errors = []
    for seed in SPLITS:
        train, test = split(len(X), seed)
        model.set_params(cost="ordinal:5").fit(X[train], candidates[train])
        smoothed = np.abs(model.predict(X[test]) - truth[test])
        plain = np.abs(model.predict_proba(X[test]).argmax(axis=1) - truth[test])
        errors.append([plain, smoothed])
    plain, smoothed = np.array(errors).transpose(1, 0, 2)
    assert np.mean(smoothed <= 3) >= 0.48
    assert np.mean(smoothed <= 5) >= 0.65
    assert np.mean(smoothed == 0) > np.mean(plain == 0) - 0.01
    assert smoothed.mean() < plain.mean() - 0.8
