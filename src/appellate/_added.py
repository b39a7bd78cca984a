"""The columns that a run adds to a table, and those of its docket: the only list of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: What a run adds to the table, in this order, and what each column holds. What writes the columns
#: goes by this list, and so does what guesses the roles of columns, because the next run must not
#: learn from them.
ADDED = {
    "label": "the final label",
    "confidence": "how confident the final label is",
    "first_label": "the label before the features, or later rounds, were used",
    "runner_up": "the second most likely label",
    "runner_up_confidence": "its confidence",
    "suspicion": "how likely none of the candidates is true",
    "votes": "how many annotators gave each label, if there are annotators",
    "outcome": "``changed``, ``unchanged``, ``reviewed``, ``excluded``, ``unanswered`` or "
    "``outside the answers``",
}
#: Columns of a docket that hold labels and how confident they are.
LABELS = ("first_label", "label", "first_confidence", "confidence", "margin", "since_round")
SCORED = ("first_correct", "correct")
#: Columns that earlier versions added.
FORMERLY_ADDED = ("margin", "evidence")
#: Titles that only a run gives, and those that every run gives.
ONLY_OURS = ("runner_up", "runner_up_confidence", "suspicion")
ALWAYS = ("label", "confidence", "outcome")
#: What stands before the name of an added column that the table has already; formerly "appeal_".
PREFIX = "appellate_"
FORMER_PREFIX = "appeal_"
#: What ``outcome`` holds, in this version and in earlier ones.
OUTCOMES = frozenset(
    {
        *("changed", "unchanged", "reviewed", "excluded", "outside the answers", "unanswered"),
        *("upheld", "overturned"),
    }
)


def plain_columns(docket: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the columns of a docket as lists; NaN becomes None.

    Examples
    --------
    >>> import numpy as np
    >>> plain_columns({"label": np.array(["a"]), "suspicion": np.array([np.nan])})
    {'label': ['a'], 'suspicion': [None]}
    """
    return {
        name: [None if value != value else value for value in column.tolist()]
        for name, column in docket.items()
    }
