"""Anything that a user has, read as candidate sets: the only door for labels."""

from appellate.candidates.reading import CandidateSets, as_candidates, check_length, name_rows

__all__ = ["CandidateSets", "as_candidates", "check_length", "name_rows"]
