"""Every public estimator: cloned, pickled, saved and read, and its dockets."""

from __future__ import annotations

import pickle
from inspect import isclass

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import appellate
from appellate import (
    JuryClassifier,
    PartnerClassifier,
    PLCPClassifier,
    PLKNNClassifier,
    SoftLabelClassifier,
    SUREClassifier,
    TestimonyClassifier,
    model_selection,
)
from appellate.core.foreign import seeded
from appellate.io import load_model, save_model
from appellate.methods import make_base, registry
from appellate.testing import make_clusters

BASES = [
    *(seeded(make_base(base.name), 0) for base in registry.BASES),
    JuryClassifier("kernel", random_state=0),
    PartnerClassifier(),
    SoftLabelClassifier(GaussianNB(), random_state=0),
]
COUPLED = [PLCPClassifier(base) for base in BASES if not isinstance(base, PartnerClassifier)]
ESTIMATORS = [
    *BASES,
    *COUPLED,
    PLCPClassifier(PLCPClassifier(SUREClassifier())),
    PLCPClassifier(SUREClassifier(), head="base", keep_confidences=True),
    JuryClassifier(
        [RandomForestRegressor(5), SoftLabelClassifier(GaussianNB()), SUREClassifier()],
        random_state=0,
    ),
    PLCPClassifier(SUREClassifier(), cost="absolute"),
    PLCPClassifier(SUREClassifier(), partner="jury", random_state=0),
    PLCPClassifier(PLKNNClassifier(), partner="jury", head="mean", random_state=0),
    TestimonyClassifier(),
    TestimonyClassifier(kernel="linear", within_answers=True, cost="absolute"),
    make_pipeline(StandardScaler(), PLCPClassifier(SUREClassifier())),
    make_pipeline(StandardScaler(), JuryClassifier("kernel", random_state=0)),
]


def deep_estimators():
    """The deep ones, where torch is installed."""
    pytest.importorskip("torch")
    from appellate import deep

    return [getattr(deep, name) for name in deep.__all__ if name.endswith("Classifier")]


@pytest.fixture(scope="module")
def data():
    X, candidates, _ = make_clusters(30)
    names = np.array(["ann", "bob", "eve"])
    return X, ["|".join(names[row]) for row in candidates]


def parts(model):
    """The classifiers inside that have been fitted with it."""
    last = model[-1] if hasattr(model, "steps") else model
    yield last
    for name in ("estimator_", "partner_"):
        if isinstance(getattr(last, name, None), appellate.core.PartialLabelClassifier):
            yield from parts(getattr(last, name))


def check_twin(model, twin, X):
    """Another copy of a model says the same of new rows and of its training rows."""
    np.testing.assert_array_equal(twin.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(twin.predict(X), model.predict(X))
    ours, theirs = list(parts(model)), list(parts(twin))
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one.transduction_, other.transduction_)
        np.testing.assert_array_equal(one.confidence_, other.confidence_)
        if hasattr(one, "docket"):
            table, same = (each.docket(output="dict") for each in (one, other))
            assert list(table) == list(same)
            for name, column in table.items():
                np.testing.assert_array_equal(column, same[name])


def check_everything(estimator, data, folder):
    X, y = data
    model = clone(estimator).fit(X, y)
    check_twin(model, clone(model).fit(X, y), X)
    check_twin(model, pickle.loads(pickle.dumps(model)), X)
    check_twin(model, load_model(save_model(model, folder)), X)
    for each in parts(model):
        assert each.classes_.tolist() == ["ann", "bob", "eve"]
        assert len(each.transduction_) == len(X)
        if hasattr(each, "docket"):
            assert len(each.docket()["first_label"]) == len(X)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: repr(e).replace("\n", ""))
def test_every_estimator_is_kept_whole(estimator, data, tmp_path):
    check_everything(estimator, data, tmp_path / "model")


def test_every_deep_estimator_is_kept_whole(data, tmp_path):
    for kind in deep_estimators():
        estimator = kind("mlp", n_epochs=2, random_state=0)
        check_everything(estimator, data, tmp_path / kind.__name__)
        check_everything(PLCPClassifier(estimator), data, tmp_path / f"PLCP {kind.__name__}")


def test_no_estimator_is_left_out():
    public = {getattr(module, name) for module in (appellate, model_selection)
              for name in module.__all__}  # fmt: skip
    classifiers = {
        each
        for each in public
        if isclass(each) and issubclass(each, BaseEstimator) and hasattr(each, "predict")
    }
    assert classifiers <= {type(each) for each in ESTIMATORS}
