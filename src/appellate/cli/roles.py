"""What the columns of a table are: candidates, features, names, truth; said before the work."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from appellate.cli.cells import as_label, as_text, is_empty, match
from appellate.cli.errors import UserError
from appellate.cli.features_in import read_commas, read_embeddings, read_feature
from appellate.cli.labels_in import Labels, compose, read_labels
from appellate.cli.tables_in import Table, expand, name_some

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from appellate.candidates import CandidateSets

__all__ = ["Case", "Labels", "understand"]

_LARGEST = 50_000_000  # rows times classes


@dataclass
class Case:
    """A table understood: candidate sets and features of n samples.

    Attributes
    ----------
    sets : CandidateSets
        Candidates of the samples.
    features : dict of str to ndarray
        Numbers (NaN where missing) and texts (None where missing), by column.
    embeddings : ndarray, shape (n, q), or None
        Features from a file of their own.
    ids : list
        Names of the samples.
    owner : ndarray of int, shape (rows of the table,)
        The sample that a row of the table belongs to.
    first : ndarray of int, shape (n,)
        The first row of the table that belongs to a sample.
    votes : list or None
        Majority vote of every sample, where the table holds answers.
    spellings : dict of str to str
        Labels that are numbers in one of several spellings, and what they are called.
    ignored : dict of str to str
        Columns that are no features, and why.
    booleans : set of str
        Numbers that the table has as true and false.
    notes : list of str
        What the user should know of the table, though it can be used.
    """

    sets: CandidateSets
    features: dict[str, NDArray[Any]]
    embeddings: NDArray[Any] | None
    ids: list[Any]
    owner: NDArray[np.intp]
    first: NDArray[np.intp]
    votes: list[Any] | None = None
    spellings: dict[str, str] = field(default_factory=dict)
    ignored: dict[str, str] = field(default_factory=dict)
    booleans: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.sets)

    @property
    def named(self) -> bool:
        """Whether the samples have names, not merely numbers."""
        return self.ids != list(range(len(self)))

    def per_sample(self, column: list[Any]) -> list[Any]:
        """Return a column of the table, one cell a sample."""
        return [column[i] for i in self.first.tolist()]

    def differing(self, column: list[Any]) -> set[int]:
        """Return the samples whose rows differ in a column."""
        if len(column) == len(self):
            return set()
        texts = list(map(as_label, column))
        firsts = self.per_sample(texts)
        owners = zip(self.owner.tolist(), texts, strict=True)
        return {i for i, text in owners if text != firsts[i]}


def understand(
    table: Table,
    labels: Labels,
    *,
    id_column: str | None,
    set_aside: Mapping[str, str],
    patterns: Sequence[str],
    embeddings: Path | None,
) -> Case:
    """Read candidates and features from a table.

    Parameters
    ----------
    table : Table
        The user's.
    labels : Labels
        Where the labels are.
    id_column : str or None
        Column that names the samples.
    set_aside : mapping of str to str
        Further columns that are no features, by option: ``--truth``, ``--image``, ``--text``.
    patterns : sequence of str
        Columns to take as features; empty for all that can be.
    embeddings : Path or None
        File of features, one row a sample.
    """
    import numpy as np

    from appellate.datasets.spellings import say_cases, say_numbers

    used = {name: option for option, name in set_aside.items()}
    used |= {id_column: "--id"} if id_column else {}
    read = read_labels(table, labels, set_aside.get("--truth"))
    used |= dict.fromkeys(read.columns, labels.option)
    _check_sets(table, read.sets)
    first = np.full(len(read.sets), len(table), dtype=np.intp)
    np.minimum.at(first, read.owner, np.arange(len(table)))
    case = Case(read.sets, {}, None, [], read.owner, first, read.votes, read.spellings)
    case.ids = _ids(table, case, labels, id_column)
    case.notes += [*read.notes, *say_numbers(read.spellings), *_doubtful_names(case, labels)]
    case.notes += say_cases(map(str, case.sets.class_names.tolist()))
    if embeddings is not None:
        case.embeddings = read_embeddings(embeddings, len(case))
    else:
        _choose_features(table, case, used, patterns)
        case.notes += _differing_features(table, case)
    return case


def _doubtful_names(case: Case, labels: Labels) -> list[str]:
    """Say which labels of people are called as an empty cell often is."""
    names = [name for name in map(str, case.sets.class_names.tolist()) if is_empty(name)]
    if labels.candidates or not names:
        return []
    return [
        f"taken as labels: {name_some(names)}. If that means that there is no answer, add "
        + " ".join(f"--missing {shlex.quote(name)}" for name in names)
        + "."
    ]


def _differing_features(table: Table, case: Case) -> list[str]:
    """Say which features are not the same in all rows of an item; its first row counts."""
    counts = {name: len(case.differing(table.columns[name])) for name in case.features}
    wrong = {name: count for name, count in counts.items() if count}
    if not wrong:
        return []
    return [
        f"columns that differ between the rows of one item: {name_some(wrong)} (up to "
        f"{max(wrong.values())} of {len(case)} items). The value of an item's first row is used; "
        "if such a column describes the answer, leave it out by naming the others with --features."
    ]


def _check_sets(table: Table, sets: CandidateSets) -> None:
    n, l = sets.shape
    if n < 2:
        raise UserError(f"{table.source} has one sample only; nothing can be compared with it.")
    if l < 2:
        raise UserError(
            f"{table.source}: every row has the one label {name_some(sets.class_names)}, so there "
            "is nothing to decide. Is it the right column, and the right --separator?"
        )
    if sets.matrix.all():
        raise UserError(
            f"{table.source}: every row has all {l} labels as candidates, so nothing can be "
            "learned. Narrow the sets of some rows; or is another column meant?"
        )
    if l > max(50, n // 2):
        raise UserError(
            f"{table.source} has {l} different labels in {n} rows, e.g. "
            f"{name_some(sets.class_names[:3])}; labels that hardly ever recur cannot be learned. "
            "Is it the right column, and the right --separator?"
        )
    if n * l > _LARGEST:
        raise UserError(
            f"{table.source}: {n} rows x {l} labels are too many for this machine's memory "
            f"(about {n * l * 8 * 15 / 1e9:.0f} GB). Merge rare labels or take fewer rows."
        )


def _ids(table: Table, case: Case, labels: Labels, id_column: str | None) -> list[Any]:
    if id_column is None:
        if case.sets.ids is not None and labels.long:
            return list(case.sets.ids.tolist())
        return list(range(len(case)))
    from collections import Counter

    cells = [as_text(cell) for cell in case.per_sample(table.column(id_column, "--id"))]
    twice = [cell for cell, count in Counter(cells).items() if count > 1]
    if twice:
        raise UserError(
            f"{table.source}, column '{id_column}' (--id): {name_some(twice, 3)} occurs more than "
            "once. Give every row its own id; if a row is one answer of several, use --long."
        )
    return cells


def _choose_features(
    table: Table, case: Case, used: Mapping[str, str], patterns: Sequence[str]
) -> None:
    wanted = expand(table, patterns, "--features")
    named = [name for name in wanted if name in used]
    if named and (set(wanted) <= set(used) or set(named) & set(patterns)):
        name = next((name for name in named if name in patterns), named[0])
        raise UserError(f"column '{name}' is that of {used[name]}; it can be no feature too.")
    case.ignored |= {} if wanted else dict(_no_features(table, case, used))
    commas = []
    for name in wanted or table.columns:
        if name not in used and name not in case.ignored:
            cells = case.per_sample(table.columns[name])
            points = read_commas(cells, table.delimiter)
            commas += [name] if points else []
            values, reason = read_feature(points or cells, name, table.source, forced=bool(wanted))
            if values is None:
                case.ignored[name] = reason
            else:
                case.features[name] = values
                if {type(cell) for cell in table.columns[name]} - {type(None)} == {bool}:
                    case.booleans.add(name)
    if commas:
        case.notes.append(f"decimal commas are read in {name_some(commas)}.")
    if not case.features:
        why = "; ".join(f"'{name}': {reason}" for name, reason in list(case.ignored.items())[:5])
        raise UserError(
            f"{table.source} has no column to learn from{f' ({why})' if why else ''}. Name "
            "features with --features, or give --embeddings FILE.npy."
        )


def _no_features(table: Table, case: Case, used: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the columns that are no features though they could be read as such, and why."""
    from appellate.datasets import asides

    names = [str(name) for name in case.sets.class_names.tolist()]
    known = frozenset(names)
    earlier = asides.find_earlier(table.columns)
    insist = "with --features if it is a feature"
    for title in table.columns:
        if title in used:
            continue
        cells = case.per_sample(table.columns[title])
        if not title.strip():
            yield title, asides.UNTITLED
        elif title in earlier:
            yield title, f"{asides.EARLIER}; name it {insist}"
        elif asides.holds_labels(title, _texts(cells, known), names, case.sets.matrix):
            yield title, f"{asides.LABELS}; name it with --truth, or {insist}"
        elif asides.counts_rows(as_text(cell).strip() for cell in cells):
            yield title, f"{asides.COUNTER}; name it {insist}"


def _texts(cells: list[Any], names: frozenset[str]) -> Iterator[str]:
    """Yield cells as texts, blank where they are empty and no label is called so."""
    for cell in cells:
        text = compose(as_label(cell) or "")
        yield "" if is_empty(text) and text not in names else match(text, names)
