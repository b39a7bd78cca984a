"""Anything that a user has, read as candidate sets or answers: the only door for labels."""

from appellate.candidates.answers import Answers
from appellate.candidates.sets import (
    CandidateSets,
    as_answers,
    as_candidates,
    check_length,
    name_rows,
)

__all__ = [
    "Answers",
    "CandidateSets",
    "as_answers",
    "as_candidates",
    "check_length",
    "name_rows",
]
