"""What a classifier takes each sample for: the scores behind instance-dependent candidates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array

from appellate.candidates import name_rows
from appellate.datasets.strategies import Draw

_FOLDS = 5


def confusion_scores(
    truth: NDArray[np.intp],
    names: NDArray[Any],
    draw: Draw,
    *,
    X: ArrayLike | None,
    probabilities: ArrayLike | None,
    estimator: Any,
    cv: Any,
) -> NDArray[np.float64]:
    """Return how much each sample looks like each false label, (n, l); 0 for the true one.

    Parameters
    ----------
    truth : ndarray, shape (n,)
        Columns of the true labels.
    names : ndarray, shape (l,)
        Class names.
    draw : callable
        Source of randomness, for the folds.
    X, probabilities, estimator, cv
        See `make_partial_labels`.

    Raises
    ------
    ValueError
        If neither features nor probabilities are given, both are, or they do not fit.
    """
    if probabilities is not None:
        spare = [
            name
            for name, value in (("X", X), ("estimator", estimator), ("cv", cv))
            if value is not None
        ]
        if spare:
            raise ValueError(f"with probabilities, {', '.join(spare)} would not be read.")
        score = _check_scores(probabilities, (len(truth), len(names)))
    elif X is None:
        raise ValueError("strategy='instance_dependent' needs features X, or probabilities.")
    else:
        score = _predict(X, truth, names, draw, estimator, cv)
    score[np.arange(len(truth)), truth] = 0
    return score


def _check_scores(probabilities: ArrayLike, shape: tuple[int, int]) -> NDArray[np.float64]:
    score = check_array(probabilities, dtype=np.float64, copy=True, input_name="probabilities")
    if score.shape != shape:
        raise ValueError(f"probabilities have shape {score.shape}; {shape} is needed.")
    if (score < 0).any():
        rows = np.flatnonzero((score < 0).any(axis=1))
        raise ValueError(f"probabilities are negative in {name_rows(rows)}.")
    return np.asarray(score)


def _predict(
    X: ArrayLike,
    truth: NDArray[np.intp],
    names: NDArray[Any],
    draw: Draw,
    estimator: Any,
    cv: Any,
) -> NDArray[np.float64]:
    """Return out-of-fold probabilities, (n, l)."""
    features = check_array(X, accept_sparse="csr", input_name="X")
    if features.shape[0] != len(truth):
        raise ValueError(f"X has {features.shape[0]} rows, but y has {len(truth)} labels.")
    if estimator is None:
        scaler = StandardScaler(with_mean=isinstance(features, np.ndarray))
        estimator = make_pipeline(scaler, LogisticRegression(max_iter=1000))
    elif not is_classifier(estimator) or not hasattr(estimator, "predict_proba"):
        raise TypeError(f"{estimator!r} is no classifier with predict_proba.")
    present, counts = np.unique(truth, return_counts=True)
    if len(present) < 2:
        raise ValueError("y has one class; a classifier needs two to confuse.")
    if cv is None or isinstance(cv, int):
        if counts.min() < 2:
            rare = names[present[counts.argmin()]]
            raise ValueError(
                f"class {rare!r} has one sample; a classifier cannot be judged on it. Drop it, "
                "or give probabilities."
            )
        folds = min(cv or _FOLDS, int(counts.min()))
        seed = int(draw(1)[0] * 2**31)
        cv = StratifiedKFold(folds, shuffle=True, random_state=seed)
    predicted = cross_val_predict(estimator, features, truth, cv=cv, method="predict_proba")
    score = np.zeros((len(truth), len(names)))
    score[:, present] = predicted
    return score
