"""Data to learn from: generators of candidate sets."""

from __future__ import annotations

from appellate.datasets.generators import make_partial_labels

__all__ = ["make_partial_labels"]
