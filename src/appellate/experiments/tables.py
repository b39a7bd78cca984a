"""The paper's tables: which methods stand in which line, and what is compared with what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from appellate.experiments.deep_methods import is_coupled, splits_of
from appellate.experiments.methods import (
    BASES,
    JURY,
    LOWEST,
    MAJORITY,
    PARTNER_ALONE,
    RANDOM,
    RIDGE,
    TESTIMONY,
    Method,
    alone,
    coupled,
    coupled_auto,
)
from appellate.experiments.problems import DATASETS, Problem
from appellate.experiments.protocol import Run

TABLES = (
    "test-accuracy",
    "transductive",
    "correction-ratio",
    "ablation",
    "collaborative-term",
    "sensitivity",
    "trajectories",
)


_COUPLING = ("plcp", "base")


@dataclass(frozen=True)
class Column:
    """A column of the paper's tables: a data set, maybe with a tolerance, and whose figures."""

    title: str
    dataset: str
    tolerance: int = 0
    paper: str | None = None

    def score(self, name: str) -> str:
        """Name of a score in this column."""
        return f"{name}@{self.tolerance}" if self.tolerance else name


COLUMNS = (
    *(Column(each.title, each.name) for each in DATASETS.values()),
    Column("FG-NET(MAE3)", "fgnet", 3),
    Column("FG-NET(MAE5)", "fgnet", 5),
)


@dataclass(frozen=True)
class Line:
    """A line of a table.

    Attributes
    ----------
    title : str
        As printed.
    method : Method
        Whose score.
    score : str
        Which score.
    paper : str or None
        Name of the line in the paper's table.
    compared : tuple of Method or None
        The first is tested against the second; the mark stands in this line.
    """

    title: str
    method: Method
    score: str
    paper: str | None = None
    compared: tuple[Method, Method] | None = None


@dataclass(frozen=True)
class Table:
    """A table of the paper.

    Attributes
    ----------
    name, title, caption : str
        Name for the command, heading, and what the marks mean.
    source : str
        Its name in the file of the paper's numbers.
    lines : tuple of Line
        The paper's, then our controls.
    percent : bool
        Whether the paper prints per cent.
    """

    name: str
    title: str
    caption: str
    source: str
    lines: tuple[Line, ...]
    percent: bool = False

    @property
    def pairs(self) -> list[tuple[Method, Method]]:
        """Every coupled base and the base alone, for the improvement ratio."""
        compared = (line.compared for line in self.lines)
        return [each for each in compared if each and (each[0].kind, each[1].kind) == _COUPLING]

    def methods(self) -> list[Method]:
        """All methods that the table needs, each once."""
        found = [line.method for line in self.lines]
        found += [method for line in self.lines for method in line.compared or ()]
        return list(dict.fromkeys(found))


def make_table(name: str, bases: Sequence[str]) -> Table:
    """Declare one of the five tables for some of the bases."""
    return _MAKERS[name](bases)


def plan(datasets: Iterable[str], methods: Iterable[Method], splits: Iterable[int]) -> list[Run]:
    """List the runs of some methods: B and B-PLCP on the same splits with the same seeds."""
    methods, splits = list(methods), list(splits)
    return [
        Run(d, m, split, seed=split)
        for d in datasets
        for split in splits
        for m in methods
        if split in splits_of(m, splits)
    ]


_MARKS = (
    "A bullet (•) or circle (○) means that {first} is significantly better or worse than "
    "{second} (paired t-test at 0.05 over the splits)."
)


def _coupling_lines(bases: Sequence[str], score: str) -> tuple[Line, ...]:
    lines = []
    for base in bases:
        before, after, heard = alone(base), coupled(base), coupled_auto(base)
        lines += [
            Line(before.title, before, score, before.title),
            Line(after.title, after, score, after.title, (after, before)),
            Line(heard.title, heard, score, None, (heard, before)),
        ]
    return (*lines, Line(JURY.title, JURY, score))


def _test_accuracy(bases: Sequence[str]) -> Table:
    controls = (
        Line("control: partner alone", PARTNER_ALONE, "test"),
        Line("control: ridge on uniform confidence", RIDGE, "test"),
    )
    return Table(
        "test-accuracy",
        "Test accuracy (the paper's Table 2)",
        "Accuracy on held-out rows, mean and standard deviation over splits. "
        + _MARKS.format(first="B-PLCP", second="B"),
        "test_accuracy",
        _coupling_lines(bases, "test") + controls,
    )


def _transductive(bases: Sequence[str]) -> Table:
    lines = list(_coupling_lines(bases, "transductive"))
    for method, title in ((RANDOM, "a random candidate"), (LOWEST, "the lowest candidate")):
        lines.append(Line(f"control: {title}", method, "transductive"))
    lines.append(Line("control: partner alone", PARTNER_ALONE, "transductive"))
    lines += [
        Line(f"{method.title}, best of all labels", method, "unmasked")
        for base in bases
        for method in (alone(base), coupled(base))
    ]
    return Table(
        "transductive",
        "Transductive accuracy",
        "Share of training rows whose label, the best of their candidates, is true. "
        + _MARKS.format(first="B-PLCP", second="B")
        + " The last lines take the best of all labels instead, candidate or not.",
        "transductive_accuracy",
        tuple(lines),
    )


def _correction_ratio(bases: Sequence[str]) -> Table:
    corrected = [Line(BASES.get(b, b), coupled(b), "corrected", BASES.get(b, b)) for b in bases]
    broken = [Line(f"{BASES.get(b, b)}, broken", coupled(b), "broken") for b in bases]
    unmasked = [
        Line(f"{BASES.get(b, b)}, {name}best of all labels", coupled(b), f"{score} unmasked")
        for score, name in (("corrected", ""), ("broken", "broken, "))
        for b in bases
    ]
    return Table(
        "correction-ratio",
        "Correction ratio",
        "Share of the training rows with a wrong verdict whose appeal is right, per cent; "
        "'broken' is the share of right verdicts whose appeal is wrong. Verdict and appeal are "
        "the best of a row's candidates, in the last lines the best of all labels.",
        "correction_ratio_percent",
        (*corrected, *broken, *unmasked),
        percent=True,
    )


def _ablation(_: Sequence[str]) -> Table:
    full, base = coupled("aggd"), alone("aggd")
    variants = [
        _variant(kernel, partner, blur)
        for kernel in (False, True)
        for partner in "PO"
        for blur in (False, True)
    ]
    lines = [Line(base.title, base, "test", base.title)]
    for title, method in variants:
        mark = None if method.config() == full.config() else (full, method)
        lines.append(Line(title, method, "test", f"PL-AGGD-PLCP {title}", mark))
    lines += [
        Line("control: partner alone", PARTNER_ALONE, "test", None, (full, PARTNER_ALONE)),
        Line("control: ridge on uniform confidence", RIDGE, "test", None, (full, RIDGE)),
    ]
    return Table(
        "ablation",
        "Ablation of PLCP with PL-AGGD",
        "Test accuracy. "
        + _MARKS.format(first="the full PL-AGGD-PLCP", second="the method of the line"),
        "ablation_accuracy",
        tuple(lines),
    )


def _variant(kernel: bool, partner: str, blur: bool) -> tuple[str, Method]:
    settings: dict[str, Any] = {}
    if not kernel:
        settings["kernel"] = "linear"
    if partner == "O":
        settings["target"] = "candidate"
    if not blur:
        settings["blur"] = None
    yes = {True: "yes", False: "no"}
    title = f"kernel={yes[kernel]} partner={partner} blur={yes[blur]}"
    return title, coupled("aggd", title=f"PL-AGGD-PLCP {title}", settings=settings)


def _collaborative_term(_: Sequence[str]) -> Table:
    full, base = coupled("aggd"), alone("aggd")
    aggressive = coupled("aggd", title="PL-AGGD-PLCP(A)", settings={"link": "aggressive"})
    return Table(
        "collaborative-term",
        "Collaborative or aggressive link",
        "Test accuracy; (A) has the aggressive link. "
        + _MARKS.format(first="PL-AGGD-PLCP", second="PL-AGGD-PLCP(A)"),
        "collaborative_term_accuracy",
        (
            Line(base.title, base, "test", base.title),
            Line(aggressive.title, aggressive, "test", aggressive.title),
            Line(full.title, full, "test", full.title, (full, aggressive)),
        ),
    )


def make_comparison(problem: Problem, methods: Sequence[Method]) -> list[Table]:
    """Declare what is compared on a user's data: test rows, and training rows if there is truth.

    Parameters
    ----------
    problem : Problem
        The data.
    methods : sequence of Method
        A coupled base is compared with the base, which stands before it.
    """
    score, measure = "test", "Accuracy on held-out rows"
    if problem.truth is None:
        score = "covering"
        measure = "Share of held-out rows whose prediction is among their candidates"
    pairs = pairwise(methods)
    against: dict[Method, tuple[Method, Method]] = {}
    for before, after in pairs:
        if is_coupled(after) and after.base == before.base:
            against[after] = (after, against[before][1] if before in against else before)
    lines = [Line(method.title, method, score, None, against.get(method)) for method in methods]
    lines += [Line(f"control: {each.title}", each, score) for each in (PARTNER_ALONE, RIDGE)]
    if problem.truth is not None and problem.answers is not None:
        lines.append(Line(TESTIMONY.title, TESTIMONY, score))
    marks = _MARKS.format(first="B-PLCP", second="B")
    title = f"Comparison on {problem.title}"
    caption = f"{measure}, mean and standard deviation over splits. {marks}"
    tables = [Table("comparison", title, caption, "", tuple(lines))]
    if problem.truth is None:
        return tables
    lines = []
    for method in methods:
        lines.append(Line(method.title, method, "transductive", None, against.get(method)))
        if method.kind not in ("base", "deep") or method in against:
            title = method.title
            lines.append(Line(f"{title}, wrong verdicts corrected", method, "corrected"))
            lines.append(Line(f"{title}, right verdicts broken", method, "broken"))
    trivial = [RANDOM] if problem.answers is None else [RANDOM, MAJORITY, TESTIMONY]
    lines += [Line(f"rival: {each.title}", each, "transductive") for each in trivial]
    caption = (
        "Share of training rows whose label, the best of their candidates, is true, mean and "
        "standard deviation over splits; then the share of wrong verdicts whose appeal is right, "
        f"and of right verdicts whose appeal is wrong. {marks}"
    )
    return [*tables, Table("training-rows", "Training rows", caption, "", tuple(lines))]


_MAKERS = {
    "test-accuracy": _test_accuracy,
    "transductive": _transductive,
    "correction-ratio": _correction_ratio,
    "ablation": _ablation,
    "collaborative-term": _collaborative_term,
}
