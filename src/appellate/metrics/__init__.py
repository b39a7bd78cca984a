"""Scores of predictions and of appeals, and tests of whether one method is better."""

from __future__ import annotations

from appellate.metrics.likelihood import candidate_likelihood
from appellate.metrics.methods import (
    MethodComparison,
    WinTieLoss,
    compare_methods,
    win_tie_loss,
)
from appellate.metrics.ordered import (
    expected_cost,
    mean_absolute_error,
    quadratic_weighted_kappa,
)
from appellate.metrics.paired import PairedComparison, paired_comparison
from appellate.metrics.scores import (
    accuracy,
    approximated_accuracy,
    average_improvement_ratio,
    broken_ratio,
    correction_ratio,
    covering_rate,
    expected_calibration_error,
    tolerance_accuracy,
    transductive_accuracy,
)

__all__ = [
    "MethodComparison",
    "PairedComparison",
    "WinTieLoss",
    "accuracy",
    "approximated_accuracy",
    "average_improvement_ratio",
    "broken_ratio",
    "candidate_likelihood",
    "compare_methods",
    "correction_ratio",
    "covering_rate",
    "expected_calibration_error",
    "expected_cost",
    "mean_absolute_error",
    "paired_comparison",
    "quadratic_weighted_kappa",
    "tolerance_accuracy",
    "transductive_accuracy",
    "win_tie_loss",
]
