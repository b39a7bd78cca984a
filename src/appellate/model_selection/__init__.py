"""Choose a model without the true labels: splits of candidate sets, and scorers."""

from __future__ import annotations

from appellate.model_selection.scorers import (
    CandidatesWithTruth,
    Scorer,
    get_scorer,
    get_scorer_names,
    with_truth,
)
from appellate.model_selection.splits import (
    CandidateKFold,
    CandidateStratifiedKFold,
    candidate_train_test_split,
    cross_val_predict,
)

__all__ = [
    "CandidateKFold",
    "CandidateStratifiedKFold",
    "CandidatesWithTruth",
    "Scorer",
    "candidate_train_test_split",
    "cross_val_predict",
    "get_scorer",
    "get_scorer_names",
    "with_truth",
]
