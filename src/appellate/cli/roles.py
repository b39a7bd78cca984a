"""What the columns of a table are: candidates, features, names, truth; said before the work."""

from __future__ import annotations

import fnmatch
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from appellate.cli.cells import as_label, as_text, is_empty, match, restore
from appellate.cli.errors import UserError
from appellate.cli.features_in import FROM_ZERO, read_embeddings, read_feature
from appellate.cli.tables_in import Table, name_some

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from appellate.candidates import CandidateSets

_LARGEST = 50_000_000  # rows times classes


@dataclass(frozen=True)
class Labels:
    """How the user names the columns of labels; one of the three ways.

    Attributes
    ----------
    candidates : str or None
        Column of candidate sets.
    annotators : tuple of str
        Names or patterns of one column a person.
    long : tuple of str
        Columns item, label and, optionally, annotator of a table of answers.
    separator, rule, missing : str, str, tuple of str
        As in `appellate.as_candidates`.
    """

    candidates: str | None = None
    annotators: tuple[str, ...] = ()
    long: tuple[str, ...] = ()
    separator: str = "|"
    rule: str = "union"
    missing: tuple[str, ...] = ()

    @property
    def option(self) -> str:
        """The option that names the columns."""
        if self.candidates:
            return "--candidates"
        return "--annotators" if self.annotators else "--long"


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
    ignored: dict[str, str] = field(default_factory=dict)
    booleans: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.sets)

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


def expand(table: Table, patterns: Sequence[str], option: str) -> list[str]:
    """Return the columns that names or patterns such as ``x*`` stand for, in their order."""
    found: list[str] = []
    for pattern in patterns:
        exact = match(pattern, table.columns)
        names = [exact] if exact in table.columns else fnmatch.filter(table.columns, pattern)
        if not names:
            table.column(pattern, option)
        found += [name for name in names if name not in found]
    return found


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

    used = {name: option for option, name in set_aside.items()}
    used |= {id_column: "--id"} if id_column else {}
    sets, owner, votes, mine = _read_labels(table, labels)
    used |= dict.fromkeys(mine, labels.option)
    _check_sets(table, sets)
    first = np.full(len(sets), len(table), dtype=np.intp)
    np.minimum.at(first, owner, np.arange(len(table)))
    case = Case(sets, {}, None, [], owner, first, votes)
    case.ids = _ids(table, case, labels, id_column)
    case.notes += _doubtful_names(case, labels)
    if embeddings is not None:
        case.embeddings = read_embeddings(embeddings, len(case))
    else:
        _choose_features(table, case, used, patterns)
        case.notes += _differing_features(table, case)
    return case


def _read_labels(
    table: Table, labels: Labels
) -> tuple[CandidateSets, NDArray[np.intp], list[Any] | None, list[str]]:
    import numpy as np

    from appellate.candidates import as_candidates

    everyone = np.arange(len(table))
    missing = list(labels.missing) or None
    try:
        if labels.candidates is not None:
            cells = table.column(labels.candidates, "--candidates")
            listed = any(isinstance(cell, (list, tuple)) for cell in cells)
            rows: list[Any] = [[] if cell is None else cell for cell in cells]
            if not listed:
                rows = _unescaped([as_text(cell) for cell in cells], labels.separator)
            sets = as_candidates(rows, layout="sets", separator=labels.separator)
            return sets, everyone, None, [labels.candidates]
        if labels.annotators:
            names = expand(table, labels.annotators, "--annotators")
            answers = [[as_label(c) for c in table.columns[name]] for name in names]
            people = [list(row) for row in zip(*answers, strict=True)]
            sets = as_candidates(people, layout="annotators", rule=labels.rule, missing=missing)
            return sets, everyone, _majority(people, labels.missing), names
        return _read_long(table, labels, missing)
    except (ValueError, TypeError) as error:
        where = labels.candidates or name_some(labels.annotators or labels.long)
        raise UserError(f"{table.source}, labels in {where}: {error} {FROM_ZERO}") from error


def _unescaped(cells: list[str], separator: str) -> list[str]:
    """Undo the apostrophes of an earlier run before labels that occur without them too."""
    escaped = [restore(cell) != cell for cell in cells]
    if not any(escaped):
        return cells
    rows = [[part.strip() for part in cell.split(separator)] for cell in cells]
    known = {part for row, e in zip(rows, escaped, strict=True) for part in row[e:]}
    return [
        restore(cell) if row[0] not in known and match(row[0], known) in known else cell
        for cell, row in zip(cells, rows, strict=True)
    ]


def _read_long(
    table: Table, labels: Labels, missing: list[str] | None
) -> tuple[CandidateSets, NDArray[np.intp], list[Any] | None, list[str]]:
    import numpy as np

    from appellate.candidates import as_candidates

    columns = [[as_label(c) for c in table.column(name, "--long")] for name in labels.long]
    empty = [i for i, item in enumerate(columns[0]) if item is None]
    if empty:
        raise UserError(
            f"{table.source}, column '{labels.long[0]}': row {empty[0]} names no item {FROM_ZERO}."
        )
    items = list(dict.fromkeys(columns[0]))
    number = {item: i for i, item in enumerate(items)}
    sets = as_candidates(
        [list(row) for row in zip(*columns, strict=True)],
        layout="long",
        rule=labels.rule,
        missing=missing,
        items=items,
    )
    owner = np.array([number[item] for item in columns[0]], dtype=np.intp)
    answers: list[list[Any]] = [[] for _ in items]
    for i, label in zip(owner.tolist(), columns[1], strict=True):
        answers[i].append(label)
    return sets, owner, _majority(answers, labels.missing), list(labels.long)


def _majority(answers: list[list[Any]], missing: Sequence[str]) -> list[Any]:
    """Most frequent answer of every sample; the first in order among equals."""
    from collections import Counter

    winners = []
    for row in answers:
        counts = Counter(a for a in row if a is not None and a not in missing)
        winners.append(min(counts, key=lambda a: (-counts[a], a)) if counts else None)
    return winners


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
    for name in wanted or table.columns:
        if name not in used and name not in case.ignored:
            values, reason = read_feature(
                case.per_sample(table.columns[name]), name, table.source, forced=bool(wanted)
            )
            if values is None:
                case.ignored[name] = reason
            else:
                case.features[name] = values
                if {type(cell) for cell in table.columns[name]} - {type(None)} == {bool}:
                    case.booleans.add(name)
    if not case.features:
        why = "; ".join(f"'{name}': {reason}" for name, reason in list(case.ignored.items())[:5])
        raise UserError(
            f"{table.source} has no column to learn from{f' ({why})' if why else ''}. Name "
            "features with --features, or give --embeddings FILE.npy."
        )


def _no_features(table: Table, case: Case, used: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the columns that are no features though they could be read as such, and why."""
    from appellate.datasets.asides import EARLIER, LABELS, find_earlier, holds_labels

    names = [str(name) for name in case.sets.class_names.tolist()]
    known = frozenset(names)
    earlier = find_earlier(table.columns)
    for title in table.columns:
        if title in used:
            continue
        cells = case.per_sample(table.columns[title])
        if title in earlier:
            yield title, f"{EARLIER}; name it with --features if it is a feature"
        elif holds_labels(title, _texts(cells, known), names, case.sets.matrix):
            yield title, f"{LABELS}; name it with --truth, or with --features if it is a feature"


def _texts(cells: list[Any], names: frozenset[str]) -> Iterator[str]:
    """Yield cells as texts, blank where they are empty and no label is called so."""
    for cell in cells:
        text = as_label(cell) or ""
        yield "" if is_empty(text) and text not in names else match(text, names)
