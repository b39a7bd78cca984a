"""Scores of predictions and of appeals, and tests of whether one method is better."""

from __future__ import annotations

from appellate.metrics.paired import PairedComparison, paired_comparison
from appellate.metrics.scores import (
    accuracy,
    approximated_accuracy,
    average_improvement_ratio,
    broken_ratio,
    candidate_likelihood,
    correction_ratio,
    covering_rate,
    expected_calibration_error,
    expected_cost,
    mean_absolute_error,
    quadratic_weighted_kappa,
    tolerance_accuracy,
)

__all__ = [
    "PairedComparison",
    "accuracy",
    "approximated_accuracy",
    "average_improvement_ratio",
    "broken_ratio",
    "candidate_likelihood",
    "correction_ratio",
    "covering_rate",
    "expected_calibration_error",
    "expected_cost",
    "mean_absolute_error",
    "paired_comparison",
    "quadratic_weighted_kappa",
    "tolerance_accuracy",
]
