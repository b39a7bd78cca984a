"""Is this my problem? What kind of labels a table has, and what to do with them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Unpack

import numpy as np

from appellate._table_options import ColumnOptions, takes_options
from appellate.tables import cells
from appellate.tables.cells import list_rows, name_some, printable
from appellate.tables.commands import command, in_python, options_of
from appellate.tables.labels import Labels, read_labels
from appellate.tables.reading import Table, read_table
from appellate.tables.roles import Readings, Roles, find_readings

Kind = Literal["partial-label", "answers", "multi-label", "noisy", "plain", "unclear"]

#: What each kind is called, and what it means.
MEANING: dict[Kind, tuple[str, str]] = {
    "partial-label": (
        "candidate sets",
        "One of each row's labels is true: Appellate is made for this.",
    ),
    "answers": ("annotators' answers", "Annotators disagree: Appellate is made for this."),
    "multi-label": (
        "several true labels",
        "All labels of a row are true: Appellate is not for this.",
    ),
    "noisy": ("wrong labels", "Each row has one label, and some labels are wrong."),
    "plain": ("one label per row", "Nothing is ambiguous."),
    "unclear": ("unclear", "The labels can be read in several ways: choose one."),
}
_FACTS = {
    "rows": "rows",
    "classes": "classes",
    "people": "annotators",
    "answers": "answers",
    "mean_size": "labels per row on average",
    "largest": "labels in the largest set",
    "singletons": "rows with one label",
    "several": "rows with several labels",
    "full_sets": "rows with all labels",
    "empty": "rows without a label",
    "truth_coverage": "of the rows have the true label in the set",
    "features": "feature columns",
    "missing_cells": "empty feature cells",
}
_EMPTY_SETS = 0.05  # share of empty sets from which they look meant
_MULTI = """\
# All labels of a row are true: use a multi-label classifier of scikit-learn.
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

model = OneVsRestClassifier(LogisticRegression())  # .fit(X, indicator_matrix)"""
_PLAIN = "# Nothing is ambiguous: any classifier of scikit-learn will do."
_DOUBTED = "# To look for wrong labels, compare them with the features:"


@dataclass(frozen=True)
class Diagnosis:
    """The kind of labels that a table holds. Print it to read it.

    Attributes
    ----------
    kind : str
        ``"partial-label"`` (candidate sets; one label of each is true), ``"answers"`` (annotators
        disagree), ``"multi-label"`` (all labels of a row are true), ``"noisy"`` (one label per
        row, and some are wrong), ``"plain"`` (one label per row) or ``"unclear"`` (see
        `readings`).
    reason : str
        Why it looks like that.
    roles : Roles or None
        What the columns are; None if that is unclear.
    facts : dict
        Counts: rows, classes, sizes of the sets, rows without label, features, ...
    problems : list of str
        What has to be fixed first, with row numbers.
    notes : list of str
        What is good to know, though nothing has to be done.
    command : str or None
        What to type next in a terminal; None if Appellate is of no use. With one label per row
        it looks for wrong labels.
    python : str
        What to type next in Python.
    source : str
        What the table is called.
    doubt : str
        Why `appellate.rectify` does not read the table like this unless the user says so; empty
        if it does.
    readings : list of Diagnosis
        Ways to read the table, if there are several; the user has to choose.
    """

    kind: Kind
    reason: str
    roles: Roles | None
    facts: dict[str, Any]
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    command: str | None = None
    python: str = ""
    source: str = "the table"
    doubt: str = ""
    readings: list[Diagnosis] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as a dictionary of JSON's types."""
        roles = None if self.roles is None else self.roles.to_dict()
        return {**vars(self), "roles": roles, "readings": [r.to_dict() for r in self.readings]}

    def __str__(self) -> str:
        """Say everything."""
        return self.to_text()

    def to_text(self, spell: Callable[[str], str] = str) -> str:
        """Say everything; `spell` writes names of options as the reader types them."""
        title, meaning = MEANING[self.kind]
        lines = [f"{self.source}: {title}", f"  {meaning}", ""]
        lines += [f"Why: {spell(self.reason)}", ""]
        for i, reading in enumerate(self.readings):
            told = reading.to_text(spell).splitlines()
            lines += [
                f"Reading {i + 1}: {MEANING[reading.kind][0]}",
                *(f"  {line}".rstrip() for line in told[1:]),
                "",
            ]
        if self.readings:
            return "\n".join(map(printable, lines)).rstrip()
        if self.doubt:
            lines += ["To confirm: rectify does not read the table like this unless you say so:"]
            lines += [f"  {spell(self.doubt)}", ""]
        roles = spell(str(self.roles)).splitlines()
        lines += ["How the columns are used:", *(f"  {line}" for line in roles), ""]
        for name, text in _FACTS.items():
            value = self.facts.get(name)
            if value is not None:
                shown = f"{value:.1%}" if name == "truth_coverage" else f"{value:.4g}"
                shown = str(value) if isinstance(value, int) else shown
                lines.append(f"  {shown:>8}  {text}")
        fix = "Fix these first (rows are counted from 0, without the header; lines from 1):"
        for heading, said in {fix: self.problems, "Note:": self.notes}.items():
            lines += ["", heading, *(f"  - {spell(text)}" for text in said)] if said else []
        if self.command:
            aim = "To look for wrong labels" if self.kind == "plain" else "Next"
            lines += ["", f"{aim}, in the terminal:", "", f"    {self.command}"]
        lines += ["", "Or in Python:" if self.command else "Next, in Python:", ""]
        lines += [f"    {line}".rstrip() for line in self.python.splitlines()]
        return "\n".join(map(printable, lines))


@takes_options(ColumnOptions)
def diagnose(
    source: Any, roles: Roles | None = None, **options: Unpack[ColumnOptions]
) -> Diagnosis:
    r"""Tell what kind of labels a table holds, and what to do with them.

    Parameters
    ----------
    source : Table, path or data frame
        See `read_table`.
    roles : Roles, default=None
        What its columns are; guessed by default.
    **options
        The columns that are known.

    Returns
    -------
    Diagnosis
        Kind of the labels, the facts behind it, what to fix, and what to type next.

    Raises
    ------
    TableError
        If the table cannot be read, or no column looks like labels.

    Notes
    -----
    Candidate sets and multi-label targets look alike: the table cannot tell whether one label
    of a set is true or all are. Without a column of true labels the answer is a guess, and
    `reason` says so.

    Examples
    --------
    >>> table = {"w": [1.5, 0.5], "names": ["anna|bob", "carl"], "truth": ["bob", "carl"]}
    >>> found = diagnose(table)
    >>> found.kind, found.facts["singletons"], found.facts["truth_coverage"]
    ('partial-label', 1, 1.0)
    """
    table = read_table(source)
    found = Readings(table, (roles,)) if roles else find_readings(table, **options)
    alone = len(found.roles) == 1
    made = [_diagnose(table, each, alone=alone) for each in found.roles]
    if alone:
        return replace(made[0], doubt=found.doubt)
    facts = {"rows": len(table)}
    calls = [line for each in made for line in each.python.splitlines() if line[:6] == "run = "]
    said = "\n".join(["import appellate", "", *calls])
    return Diagnosis(
        "unclear", found.doubt, None, facts,
        notes=list(table.notes), python=said, source=table.source, readings=made,
    )  # fmt: skip


def _diagnose(table: Table, roles: Roles, *, alone: bool) -> Diagnosis:
    """Tell what kind of labels a table holds whose columns are known.

    Plain labels get a command if there are features that show which labels may be wrong, or if
    they are one reading of several.
    """
    read = read_labels(table, roles)
    facts = _count(table, roles, read)
    kind, reason = _judge(table, roles, read, facts)
    people = roles.layout != "candidates"  # whose rows may lack answers
    problems = read.problems(answers=people) if kind != "multi-label" else []
    if not facts["features"] and roles.layout == "candidates" and kind != "multi-label":
        problems.append("No feature column is left. Name some with features=.")
    notes = [*table.notes, *roles.notes, *read.notes, *_notes(table, roles, read)]
    options = options_of(table, roles)
    single = kind in ("plain", "answers", "noisy") and len(roles.candidates) == 1
    if single:  # one annotator's answers, some of which may be wrong
        options = {"annotators": list(roles.labels)} | options
        options.pop("candidates", None)
        options.pop("separator", None)
    data = "table" if table.path is None else repr(table.path)
    python = f"import appellate\n\nrun = appellate.rectify({data}, {in_python(options)})"
    said = None if table.path is None else command(table.path, options)
    if kind == "multi-label":
        said, python = None, _MULTI
    elif kind == "plain":
        doubted = single and facts["features"] > 0
        said = said if doubted or not alone else None
        python = f"{_PLAIN}\n{_DOUBTED}\n{python}" if doubted else _PLAIN
    return Diagnosis(kind, reason, roles, facts, problems, notes, said, python, table.source)


def _count(table: Table, roles: Roles, read: Labels) -> dict[str, Any]:
    sizes = np.count_nonzero(read.matrix, axis=1)
    l = len(read.class_names)
    empty = 0
    for name in roles.features:
        column = table.data.column(name)
        text = column.type in cells.TEXTS
        empty += cells.texts(column).null_count if text else column.null_count
    covered, truth = None, [] if read.truth is None else read.truth.tolist()
    told = [i for i, label in enumerate(truth) if label is not None]
    if told and l:
        place = {name: j for j, name in enumerate(read.class_names.tolist())}
        codes = np.array([place.get(truth[i], -1) for i in told])
        covered = float(np.mean((codes >= 0) & read.matrix[told, codes]))
    facts: dict[str, Any] = {
        "rows": read.n_rows,
        "classes": l,
        "mean_size": float(sizes.mean()),
        "largest": int(sizes.max()),
        "singletons": int(np.count_nonzero(sizes == 1)),
        "several": int(np.count_nonzero(sizes > 1)),
        "full_sets": int(np.count_nonzero(sizes == l)) if l > 1 else 0,
        "empty": int(np.count_nonzero(sizes == 0)),
        "truth_coverage": covered,  # of the rows that have a truth
        "features": len(roles.features) + len(roles.text),
        "missing_cells": empty,
        "ignored": list(roles.ignore),
    }
    if not roles.candidates:
        people = len(np.unique(read.people)) if not roles.counts else None
        facts |= {"people": people, "answers": int(read.weights.sum())}
    return facts


def _judge(table: Table, roles: Roles, read: Labels, facts: dict[str, Any]) -> tuple[Kind, str]:
    n, several = facts["rows"], facts["several"]
    covered = facts["truth_coverage"]
    if not roles.candidates:
        who = f"{facts['people']} annotators" if facts["people"] else "annotators"
        if not several:
            return "plain", f"{who} agree on every row."
        said = f"{several} of {n} rows ({several / n:.1%})"
        return "answers", f"{who} disagree on {said}."
    if not several:
        if covered is not None and covered < 1:
            wrong = f"{1 - covered:.1%} of the rows"
            return "noisy", f"every row has one label, which is not the true label in {wrong}."
        return "plain", "every row has one label at most."
    start = f"{several / n:.1%} of the rows have several labels"
    truths = table.texts(roles.truth).drop_null().to_pylist() if roles.truth else []
    if roles.separator and any(
        len(cells.distinct_labels(t.split(roles.separator))) > 1 for t in truths
    ):
        return "multi-label", f"{start}, and so do the true labels: all labels of a set are true."
    if covered == 1:
        return "partial-label", f"{start}, and the one true label is always among them."
    if covered is not None:
        among = f"among them in {covered:.1%} of the rows."
        return "partial-label", f"{start}, and the one true label is {among}"
    if facts["empty"] >= _EMPTY_SETS * n:
        start += f" and {facts['empty'] / n:.1%} have none. A candidate set is never empty, so"
        unsure = "this looks like all labels of a set being true; the table alone cannot tell."
        return "multi-label", f"{start} {unsure}"
    unsure = "if one label of each set is true. The table alone cannot tell whether all are true."
    return "partial-label", f"{start}. These are candidate sets {unsure}"


def _notes(table: Table, roles: Roles, read: Labels) -> Iterator[str]:
    """Say which labels look like one label, where truth is missing, what differs in an item."""
    often = np.count_nonzero(read.matrix, axis=0)
    rare, common = read.class_names[often == 1].tolist(), read.class_names[often > 2].tolist()
    twins = [(one, other) for one in rare[:200] for other in common if _near(one, other)]
    for one, other in twins[:3]:
        yield f"{name_some([one])} occurs once and is close to {name_some([other])}. A typo?"
    values = [cells.as_number(name) for name in read.class_names.tolist()]
    if len(values) > 2 and all(value is not None and value == value for value in values):
        yield (
            "all labels are numbers. If they are ratings, ages or sizes, and near labels are "
            "better than far ones, add cost='absolute'."
        )
    blank = [] if read.truth is None else [i for i, t in enumerate(read.truth) if t is None]
    if blank:
        yield f"no true label in {list_rows(blank, read.lines)}. Accuracy is for the other rows."
    for name in roles.features if roles.long else ():
        texts = table.texts(name).to_pylist()
        if len({*zip(read.owner.tolist(), texts, strict=True)}) > len(read.first):
            yield (
                f"column {name_some([name])} differs between the rows of one item; the first "
                "counts. If it describes the answer, ignore it with ignore=."
            )


def _near(one: str, other: str) -> bool:
    """Tell whether two words differ in one letter, one too many, or two exchanged ones."""
    short, long = sorted((one, other), key=len)
    if len(short) < 4 or len(long) - len(short) > 1 or short.casefold() == long.casefold():
        return False
    pairs = enumerate(zip(short, long, strict=False))
    start = next((i for i, (a, b) in pairs if a != b), len(short))
    one, other = short[start:], long[start:]
    if re.search(r"\d", one[:1] + other[:1]):
        return False
    if len(one) < len(other):
        return one == other[1:]
    return one[1:] == other[1:] or (one[:2] == other[:2][::-1] and one[2:] == other[2:])
