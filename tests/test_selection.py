"""The choice of a base for a table, against trying every setting one by one."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

from appellate import GaussianKernel, PLCPClassifier, as_candidates, make_base
from appellate.model_selection import CandidateStratifiedKFold, get_scorer
from appellate.rectification import selection
from appellate.rectification.selection import choose_base
from tests.problems import random_candidates


@pytest.fixture(scope="module")
def data():
    rng = np.random.RandomState(0)
    truth = rng.randint(4, size=60)
    X = rng.normal(size=(4, 3))[truth] * 1.5 + rng.normal(size=(60, 3))
    candidates = random_candidates(rng, 60, 4, 0.3)
    candidates[np.arange(60), truth] = True
    return X, as_candidates(candidates)


def score(model, data):
    folds = CandidateStratifiedKFold(5)
    return cross_val_score(model, *data, scoring=get_scorer("evidence"), cv=folds).mean()


@pytest.mark.parametrize("cost", [None, "absolute"])
def test_chooses_what_trying_one_by_one_finds_best(data, cost, monkeypatch):
    monkeypatch.setattr(selection, "_BANDWIDTHS", (0.5, 2.0))
    monkeypatch.setattr(selection, "_REGULARIZATIONS", (0.05, 0.5))
    best = {}
    for name in ("knn", "sure"):
        scores = {}
        for width, ridge, weight, blur in product(
            (0.5, 2.0), (0.05, 0.5), (0.5, 2.0), (-1.0, None)
        ):
            kernel = GaussianKernel(width)
            own = {"kernel": kernel, "regularization": ridge} if name == "sure" else {}
            model = PLCPClassifier(
                make_base(name, **own),
                kernel=kernel,
                regularization=ridge,
                collaboration=weight,
                blur=blur,
                cost=cost,
            )
            scores[width, ridge, weight, blur] = score(model, data)
        best[name] = max(scores.items(), key=lambda each: each[1])
    choice = choose_base(*data, ["knn", "sure"], cost=cost)
    assert choice.scores == {name: pytest.approx(each[1]) for name, each in best.items()}
    assert choice.name == max(best, key=lambda name: best[name][1])
    width, ridge, weight, blur = best[choice.name][0]
    chosen = PLCPClassifier(**choice.params, cost=cost)
    assert (chosen.regularization, chosen.collaboration, chosen.blur) == (ridge, weight, blur)
    assert chosen._make_partner().kernel.bandwidth == width
    assert score(chosen, data) == pytest.approx(best[choice.name][1])
