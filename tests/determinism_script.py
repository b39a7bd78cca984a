"""Fit every public estimator; print what it predicts and its file, for tests/test_determinism.py.

``python -m tests.determinism_script N_JOBS``
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import appellate
from appellate import (
    JuryClassifier,
    PartnerClassifier,
    PLCPClassifier,
    SoftLabelClassifier,
    TestimonyClassifier,
    as_answers,
    available_bases,
    make_base,
)
from appellate.io import save_model


def estimators(n_jobs):
    """Return every public estimator by a name, seeded where it draws."""
    made = {name: make_base(name) for name in available_bases()}
    for base in made.values():
        if "random_state" in base.get_params():
            base.set_params(random_state=0)
    coupled = {
        f"{name} with PLCP": PLCPClassifier(clone(base), random_state=0)
        for name, base in made.items()
    }
    forest = RandomForestRegressor(8, random_state=0)
    return {
        **made,
        **coupled,
        "partner": PartnerClassifier(),
        "soft labels": SoftLabelClassifier(GaussianNB(), random_state=0),
        "light jury": JuryClassifier("kernel", random_state=0, n_jobs=n_jobs),
        "jury of a forest and a model": JuryClassifier(
            [forest, SoftLabelClassifier(LogisticRegression(), random_state=0)],
            random_state=0,
            n_jobs=n_jobs,
        ),
        "jury as partner": PLCPClassifier(make_base("sure"), partner="jury", random_state=0),
        "testimony": TestimonyClassifier(),
    }


def make_data():
    """Return features without ties, candidate sets and answers of three annotators."""
    rng = np.random.default_rng(0)
    truth = np.arange(150) % 3
    X = rng.normal(size=(150, 6)) + 1.5 * np.eye(3, 6)[truth]
    candidates = rng.random((150, 3)) < 0.4
    candidates[np.arange(150), truth] = True
    noise = rng.random((150, 3))
    answers = np.where(noise < 0.7, truth[:, np.newaxis], rng.integers(0, 3, (150, 3)))
    return X, candidates, np.array(["cat", "dog", "owl"])[answers]


def hash_model(model):
    """Save a model and return the hash of its file; members of other processes share no parts."""
    if "n_jobs" in model.get_params(deep=False):
        return None
    with tempfile.TemporaryDirectory() as folder:
        save_model(model, folder)
        return hashlib.sha256((Path(folder) / "model.skops").read_bytes()).hexdigest()


def main():
    X, candidates, answers = make_data()
    told = {}
    for name, estimator in estimators(int(sys.argv[1])).items():
        y = as_answers(answers) if isinstance(estimator, TestimonyClassifier) else candidates
        model = estimator.fit(X[:110], y[:110])
        told[name] = {
            "probabilities": model.predict_proba(X[110:]).tolist(),
            "confidence": np.asarray(model.confidence_).tolist(),
            "labels": [str(label) for label in model.transduction_],
            "file": hash_model(model),
        }
    names = np.array(["cat", "dog", "owl"])
    table = {name: X[:, j].tolist() for j, name in enumerate("pqrstu")}
    table["maybe"] = ["|".join(names[row]) for row in candidates]
    run = appellate.rectify(table, candidates="maybe", random_state=0)
    told["rectify"] = run.labels.astype(str).to_dict("list") | {"file": hash_model(run.model)}
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
