"""The columns that a run adds to a user's table: the only list of them."""

from __future__ import annotations

#: In this order. What writes these columns goes by it, and so does what guesses the roles of
#: columns, because the next run must not learn from them.
ADDED = (
    "label", "confidence", "runner_up", "runner_up_confidence", "suspicion", "votes", "outcome",
)  # fmt: skip
#: Columns that earlier versions added.
FORMERLY_ADDED = ("margin", "evidence")
#: What the column ``outcome`` holds.
OUTCOMES = frozenset(
    {"upheld", "overturned", "reviewed", "excluded", "outside the answers", "unanswered"}
)
