"""The ten 50/50 splits on which the reference figures were measured."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from sklearn.base import clone

from appellate import PLCPClassifier
from appellate.metrics import accuracy, broken_ratio, correction_ratio

SPLITS = range(10)


@cache
def load(name):
    """Features, candidates and truth of a .mat file in the data home."""
    home = os.environ.get("APPELLATE_DATA_HOME")
    path = Path(home or ".") / f"{name}.mat"
    if home is None or not path.is_file():
        pytest.skip(f"{path.name} is not in the data home (APPELLATE_DATA_HOME={home})")
    content = scipy.io.loadmat(path)
    X, candidates, truth = (
        content[key].toarray() if sp.issparse(content[key]) else content[key]
        for key in ("data", "partial_target", "target")
    )
    X = X.astype(float)
    if name == "lost":  # z-scored over the whole set, as in the authors' experiments
        X = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    return X, candidates.T > 0, truth.T.argmax(axis=1)


def split(n, seed):
    order = np.random.RandomState(seed).permutation(n)
    return np.sort(order[: n // 2]), np.sort(order[n // 2 :])


def run(base, name):
    """Mean over the splits of every score of a base and its coupled version."""
    X, candidates, truth = load(name)
    rows = []
    for seed in SPLITS:
        train, test = split(len(X), seed)
        alone = clone(base)
        if "random_state" in alone.get_params():
            alone.set_params(random_state=seed)
        coupled = PLCPClassifier(clone(alone)).fit(X[train], candidates[train])
        alone.fit(X[train], candidates[train])
        labels = truth[train], coupled.verdict_, coupled.transduction_
        scores = {}
        for kind, model in (("base", alone), ("coupled", coupled)):
            errors = np.abs(model.predict(X[test]) - truth[test])
            scores[f"{kind}"] = np.mean(errors == 0)
            scores[f"{kind} within 3"] = np.mean(errors <= 3)
            scores[f"{kind} within 5"] = np.mean(errors <= 5)
            scores[f"{kind} transductive"] = accuracy(truth[train], model.transduction_)
        scores["corrected"] = correction_ratio(*labels)
        scores["broken"] = broken_ratio(*labels)
        rows.append(scores)
    return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
