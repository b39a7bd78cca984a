"""The base classifier of the guide is complete: it passes the exported checks."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from appellate import PLCPClassifier
from appellate.testing import make_clusters, parametrize_with_pll_checks

PAGE = Path(__file__).parents[1] / "docs" / "nearest_mean.py"
if not PAGE.exists():
    pytest.skip("the guide is not part of this installation", allow_module_level=True)
NearestMeanClassifier = runpy.run_path(str(PAGE))["NearestMeanClassifier"]


@parametrize_with_pll_checks([NearestMeanClassifier(), NearestMeanClassifier(max_iter=1)])
def test_partial_label_checks(estimator, check):
    check(estimator)


def test_it_predicts_by_every_head():
    X, candidates, truth = make_clusters()
    model = PLCPClassifier(NearestMeanClassifier(), random_state=0).fit(X, candidates)
    for head in ("partner", "base", "mean"):
        assert np.mean(model.set_params(head=head).predict(X) == truth) > 0.95


def test_it_is_as_short_as_the_guide_says():
    code = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.strip()]
    assert len(code) <= 40
