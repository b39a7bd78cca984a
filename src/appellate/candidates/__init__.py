"""Read candidate labels and answers from whatever a user has: the only way in for labels.

`as_candidates` turns matrices, frames, lists, delimited strings, label vectors and tables of
answers into one boolean matrix with class names; `as_answers` keeps who gave which answer. `sets`
has the matrix with its names, `reading` the layouts, `answers` the answers, `alignment` compares
y with X and with the classes of a fitted classifier.
"""

from appellate.candidates.answers import Answers
from appellate.candidates.reading import as_answers, as_candidates
from appellate.candidates.sets import CandidateSets, check_length, name_rows

__all__ = ["Answers", "CandidateSets", "as_answers", "as_candidates", "check_length", "name_rows"]
