"""scikit-learn's checks and ours, over every classifier and a grid of parameters."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from appellate import (
    AGGDClassifier,
    CLPLClassifier,
    GaussianKernel,
    IPALClassifier,
    LALOClassifier,
    LaplacianKernel,
    LinearKernel,
    PartnerClassifier,
    PLCLClassifier,
    PLCPClassifier,
    PLECOCClassifier,
    PLKNNClassifier,
    PLSVMClassifier,
    SoftLabelClassifier,
    SUREClassifier,
)
from appellate.methods import make_base, registry
from appellate.testing import parametrize_with_pll_checks, pll_checks

BASES = [
    *(make_base(base.name) for base in registry.BASES),
    PLKNNClassifier(n_neighbors=7, weights="distance"),
    SUREClassifier(kernel="linear", maximization=0.1),
    SUREClassifier(kernel=LaplacianKernel(0.5, root=True)),
    SUREClassifier(kernel=LaplacianKernel(approximation="nystroem", n_landmarks=60)),
    SUREClassifier(kernel=GaussianKernel(approximation="nystroem", n_landmarks=40)),
    PLSVMClassifier(kernel="linear", output="one-hot", regularization=0.1),
    SoftLabelClassifier(LogisticRegression(), n_rounds=2, n_folds=3),
    SoftLabelClassifier(LogisticRegression(), out_of_fold=False, n_rounds=2),
    LALOClassifier(n_neighbors=3, laplacian_weight=0.5, kernel="linear"),
    AGGDClassifier(n_neighbors=3, feature_weight=2.0, confidence_weight=0.5, kernel="linear"),
    PLCLClassifier(
        n_neighbors=3, agreement=0.1, complementary_weight=2.0, kernel=GaussianKernel(2.0)
    ),
    IPALClassifier(n_neighbors=3, inertia=0.5),
    CLPLClassifier(kernel="linear", regularization=1.0),
    CLPLClassifier(kernel="laplacian"),
    CLPLClassifier(kernel=GaussianKernel(approximation="nystroem", n_landmarks=40)),
    PLECOCClassifier(kernel="linear", regularization=0.1),
]
PARTNERS = [
    PartnerClassifier(),
    PartnerClassifier(link="aggressive", kernel="linear"),
    PartnerClassifier(kernel=LinearKernel(), collaboration=0.5),
]
# A forest draws rows, so that a weight is not a repeated row, as one check of scikit-learn asks; a
# single tree passes it, but does not solve our clusters.
TREE = SoftLabelClassifier(DecisionTreeClassifier(max_depth=2), n_rounds=2, n_folds=3)
FOREST = SoftLabelClassifier(RandomForestClassifier(10, max_depth=2), n_rounds=2, n_folds=3)
COUPLED = [
    *(PLCPClassifier(make_base(base.name)) for base in registry.BASES),
    PLCPClassifier(SoftLabelClassifier(LogisticRegression(), n_rounds=1, n_folds=2), max_rounds=2),
    PLCPClassifier(
        AGGDClassifier(), kernel=GaussianKernel(approximation="nystroem", n_landmarks=60)
    ),
    PLCPClassifier(SUREClassifier(), head="mean", blur=None, tol=0.01),
    PLCPClassifier(PLKNNClassifier(), head="base", link="aggressive"),
    PLCPClassifier(SUREClassifier(kernel=GaussianKernel(2.0)), keep_confidences=True),
]
# scikit-learn's checks take the most likely label to be the prediction, which under a cost it
# need not be: they get costs that are nearly 0/1.
NEARLY_PLAIN = [
    SUREClassifier(cost="ordinal:0.1"),
    PLKNNClassifier(cost="ordinal:0.1"),
    PLCPClassifier(SUREClassifier(), cost="ordinal:0.1"),
]
WITH_COST = [
    SUREClassifier(cost="absolute"),
    PLKNNClassifier(cost="ordinal:0.5"),
    SoftLabelClassifier(LogisticRegression(), n_rounds=1, n_folds=2, cost="absolute"),
    PLCPClassifier(SUREClassifier(), cost="absolute"),
    PLCPClassifier(PLKNNClassifier(), head="base", cost="ordinal:1"),
]


@parametrize_with_checks([*BASES, TREE, *PARTNERS, *COUPLED, *NEARLY_PLAIN])
def test_sklearn_checks(estimator, check):
    check(estimator)


@parametrize_with_pll_checks([*BASES, FOREST, *PARTNERS, *COUPLED, *WITH_COST])
def test_pll_checks(estimator, check):
    check(estimator)


class ThirdParty:
    """The smallest object that meets the protocol: nearest class mean."""

    def get_params(self, deep=True):
        return {}

    def __sklearn_clone__(self):
        return ThirdParty()

    def fit(self, X, candidates, supervision=None):
        weights = np.asarray(candidates if supervision is None else supervision, dtype=float)
        self.means_ = (weights.T @ X) / np.maximum(weights.sum(axis=0), 1e-12)[:, None]
        self.training_output_ = self.predict_proba(X)
        return self

    def predict_proba(self, X):
        distances = ((X[:, None, :] - self.means_) ** 2).sum(axis=2)
        scores = np.exp(-(distances - distances.min(axis=1, keepdims=True)) / 20)
        return scores / scores.sum(axis=1, keepdims=True)


@parametrize_with_pll_checks([ThirdParty()])
def test_third_party(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("defect", "check_name"),
    [
        ("shape", "check_training_output"),
        ("nan", "check_training_output"),
        ("writes", "check_inputs_unchanged"),
        ("random", "check_deterministic"),
        ("deaf", "check_base"),
        ("constant", "check_solves_clusters"),
        ("narrow", "check_proba"),
        ("far", "check_proba"),
    ],
)
def test_checks_find_defects(defect, check_name):
    """A check that cannot fail is no check."""

    class Defective(ThirdParty):
        def __sklearn_clone__(self):
            return Defective()

        def fit(self, X, candidates, supervision=None):
            super().fit(X, candidates, supervision)
            if defect == "shape":
                self.training_output_ = self.training_output_[:-1]
            if defect == "nan":
                self.training_output_[0, 0] = np.nan
            if defect == "writes":
                X[0] = 0
            if defect == "random":
                self.training_output_ = self.training_output_ + np.random.default_rng().uniform()
            return self

        def predict_proba(self, X):
            out = super().predict_proba(X)
            if defect == "narrow" and hasattr(self, "training_output_"):
                return out[:, :-1]
            if defect == "far":
                out[np.abs(X).max(axis=1) > 1e3] = np.nan
            return np.full_like(out, 1 / 3) if defect == "constant" else out

    class Deaf(Defective):
        def fit(self, X, candidates):
            return super().fit(X, candidates)

    estimator = Deaf() if defect == "deaf" else Defective()
    check = next(c for c in pll_checks(estimator) if c.__name__ == check_name)
    with pytest.raises((AssertionError, TypeError)):
        check(estimator)
