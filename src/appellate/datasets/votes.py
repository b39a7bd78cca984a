"""From counted votes to candidate sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate.candidates import CandidateSets
from appellate.candidates.containers import open_labels, table_columns
from appellate.candidates.votes import (
    distinct_names,
    elect,
    name_array,
    parse_rule,
    refuse_empty,
    scalars,
)


def candidates_from_votes(
    votes: Any, *, rule: str = "union", classes: Sequence[Any] | NDArray[Any] | None = None
) -> CandidateSets:
    """Make candidate sets of the numbers of votes that each label got.

    Answers that are not counted yet, one column a person or one row an answer, are read by
    `appellate.as_candidates` with the same rules.

    Parameters
    ----------
    votes : array-like, shape (n, l)
        How many people gave row i the label j: whole numbers, in an array or a data frame,
        whose columns name the classes.
    rule : str, default="union"
        ``"union"``: all labels with a vote; ``"votes:k"``: those with at least k votes;
        ``"share:p"``: the fewest most-voted labels that together have the share p of the
        row's votes, with all that tie with the last.
    classes : sequence, default=None
        Names of the columns of an array; 0 .. l - 1 by default.

    Returns
    -------
    CandidateSets
        Matrix and class names.

    Raises
    ------
    ValueError
        If an entry is no number of votes, or a row is left without a candidate.

    Examples
    --------
    >>> from appellate.datasets import candidates_from_votes
    >>> votes = [[9, 1, 0], [5, 4, 1], [0, 0, 2]]
    >>> candidates_from_votes(votes, rule="share:0.8", classes=["cat", "dog", "cow"]).sets()
    [('cat',), ('cat', 'dog'), ('cow',)]
    >>> candidates_from_votes(votes, rule="votes:2").matrix.sum(axis=1)
    array([1, 2, 1])
    """
    parsed = parse_rule(rule)
    source, ids = open_labels(votes)
    if isinstance(source, np.ndarray) and source.ndim != 2:
        raise ValueError(f"votes have shape {source.shape}; give rows and classes.")
    columns, titles = table_columns(source)
    counts = _check_counts(columns)
    if classes is not None:
        titles = scalars(distinct_names(classes, "classes"))
        if len(titles) != counts.shape[1]:
            raise ValueError(
                f"`classes` has {len(titles)} names, but the votes {counts.shape[1]} columns."
            )
    rows, codes = np.nonzero(counts)
    times = counts[rows, codes] if parsed.kind != "union" else 1
    matrix = elect(np.repeat(rows, times), np.repeat(codes, times), counts.shape, parsed)
    refuse_empty(matrix, rule=parsed)
    names = np.arange(counts.shape[1]) if titles is None else name_array(titles)
    return CandidateSets(matrix, names, ids)


def _check_counts(columns: Sequence[NDArray[Any]]) -> NDArray[np.intp]:
    try:
        votes = np.stack(columns, axis=1).astype(float)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "votes are no numbers. Count them first, or read answers with "
            'as_candidates(answers, layout="annotators").'
        ) from error
    wrong = ~(np.isfinite(votes) & (votes >= 0) & (votes == np.trunc(votes)))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ValueError(
            f"row {row}, column {column}: {votes[row, column]:g} is no number of votes, which is "
            "0 or a positive whole number. If the table holds answers, read it with "
            'as_candidates(answers, layout="annotators").'
        )
    return votes.astype(np.intp)
