"""The paper's tables: which methods stand in which line, and what is compared with what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

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
    is_coupled,
    splits_of,
    with_jury,
)
from appellate.experiments.problems import DATASETS, Problem
from appellate.experiments.protocol import Run


@dataclass(frozen=True)
class Column:
    """A column of the paper's tables: a data set, maybe with a tolerance, and whose figures."""

    title: str
    dataset: str
    tolerance: int = 0
    paper: str | None = None


COLUMNS = (
    *(Column(each.title, name) for name, each in DATASETS.items()),
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
    compared : tuple of Method or None
        The first is tested against the second; the mark stands in this line.
    paper : str or None
        Name of the line in the paper's table, if it is not the title.
    """

    title: str
    method: Method
    score: str
    compared: tuple[Method, Method] | None = None
    paper: str | None = None


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
    """

    name: str
    title: str
    caption: str
    source: str
    lines: tuple[Line, ...]

    @property
    def percent(self) -> bool:
        """Whether the paper prints per cent."""
        return self.source.endswith("_percent")

    @property
    def pairs(self) -> list[tuple[Method, Method]]:
        """Every coupled base and the base alone, for the improvement ratio."""
        compared = (line.compared for line in self.lines if line.compared)
        return [pair for pair in compared if [each.kind for each in pair] == ["plcp", "base"]]

    def methods(self) -> list[Method]:
        """All methods that the table needs, each once."""
        found = [line.method for line in self.lines]
        found += [method for line in self.lines for method in line.compared or ()]
        return list(dict.fromkeys(found))


def make_table(name: str, bases: Sequence[str]) -> Table:
    """Declare one of the five tables for some of the bases."""
    title, caption, source, lines = DECLARED[name]
    return Table(name, title, caption, source, tuple(lines(bases)))


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


def _coupling(bases: Sequence[str], score: str) -> list[Line]:
    lines = []
    for base in bases:
        before = alone(base)
        lines.append(Line(before.title, before, score))
        for after in (coupled(base), with_jury(base)):
            lines.append(Line(after.title, after, score, (after, before)))
    return [*lines, Line(JURY.title, JURY, score)]


def _controls(score: str, *methods: Method, against: Method | None = None) -> list[Line]:
    pairs = ((method, (against, method) if against else None) for method in methods)
    return [Line(f"control: {method.title}", method, score, pair) for method, pair in pairs]


def _transductive(bases: Sequence[str]) -> list[Line]:
    trivial = (("a random candidate", RANDOM), ("the lowest candidate", LOWEST))
    return [
        *_coupling(bases, "transductive"),
        *(Line(f"control: {title}", method, "transductive") for title, method in trivial),
        *_controls("transductive", PARTNER_ALONE),
        *(
            Line(f"{method.title}, best of all labels", method, "unmasked")
            for base in bases
            for method in (alone(base), coupled(base))
        ),
    ]


def _correction_ratio(bases: Sequence[str]) -> list[Line]:
    scores = {
        "corrected": "",
        "broken": ", broken",
        "corrected unmasked": ", best of all labels",
        "broken unmasked": ", broken, best of all labels",
    }
    named = {BASES.get(base, base): coupled(base) for base in bases}
    return [
        Line(f"{title}{suffix}", method, score)
        for score, suffix in scores.items()
        for title, method in named.items()
    ]


def _ablation(_: Sequence[str]) -> list[Line]:
    full, lines = coupled("aggd"), _coupling(["aggd"], "test")[:1]
    for kernel, partner, blur in product(("no", "yes"), "PO", ("no", "yes")):
        changed = {
            "kernel": ("linear", kernel == "no"),
            "target": ("candidate", partner == "O"),
            "blur": (None, blur == "no"),
        }
        settings = {name: value for name, (value, given) in changed.items() if given}
        title = f"kernel={kernel} partner={partner} blur={blur}"
        name = f"PL-AGGD-PLCP {title}"
        method = coupled("aggd", title=name, settings=settings)
        lines.append(Line(title, method, "test", (full, method) if settings else None, name))
    return lines + _controls("test", PARTNER_ALONE, RIDGE, against=full)


def _collaborative_term(_: Sequence[str]) -> list[Line]:
    base, full = _coupling(["aggd"], "test")[:2]
    other = coupled("aggd", title="PL-AGGD-PLCP(A)", settings={"link": "aggressive"})
    return [
        base,
        Line(other.title, other, "test"),
        replace(full, compared=(full.method, other)),
    ]


def make_comparison(problem: Problem, methods: Sequence[Method]) -> list[Table]:
    """Declare what is compared on a user's data: test rows, and training rows if there is truth.

    Parameters
    ----------
    problem : Problem
        The data.
    methods : sequence of Method
        A coupled base is compared with the base, which stands before it.

    Raises
    ------
    ValueError
        If testimony is to be heard where nobody answered.
    """
    if problem.answers is None and any(method.kind == "testimony" for method in methods):
        raise ValueError(
            f"testimony needs answers of people, but '{problem.name}' has candidates alone. "
            "Leave it out of --methods."
        )
    score, measure = "test", "Accuracy on held-out rows"
    if problem.truth is None:
        score = "covering"
        measure = "Share of held-out rows whose prediction is among their candidates"
    against: dict[Method, tuple[Method, Method]] = {}
    for before, after in pairwise(methods):
        if is_coupled(after) and after.base == before.base:
            against[after] = (after, against[before][1] if before in against else before)
    heard = [MAJORITY, TESTIMONY] if problem.answers is not None else []
    beside = [each for each in heard if problem.truth is not None and each not in methods]
    lines = [Line(method.title, method, score, against.get(method)) for method in methods]
    lines += _controls(score, PARTNER_ALONE, RIDGE)
    lines += [Line(each.title, each, score) for each in beside if each == TESTIMONY]
    marks = _MARKS.format(first="B-PLCP", second="B")
    title = f"Comparison on {problem.title}"
    caption = f"{measure}, mean and standard deviation over splits. {marks}"
    tables = [Table("comparison", title, caption, "", tuple(lines))]
    if problem.truth is None:
        return tables
    lines = []
    for method in methods:
        lines.append(Line(method.title, method, "transductive", against.get(method)))
        if method.kind == "jury" or method in against:
            for which, name in (("wrong", "corrected"), ("right", "broken")):
                lines.append(Line(f"{method.title}, {which} verdicts {name}", method, name))
    trivial = (RANDOM, *beside)
    lines += [Line(f"rival: {each.title}", each, "transductive") for each in trivial]
    caption = (
        "Share of training rows whose label, the best of their candidates, is true, mean and "
        "standard deviation over splits; then the share of wrong verdicts whose appeal is right, "
        f"and of right verdicts whose appeal is wrong. {marks}"
    )
    return [*tables, Table("training-rows", "Training rows", caption, "", tuple(lines))]


_OVER_BASE = _MARKS.format(first="B-PLCP", second="B")
#: Of the paper's tables: title, caption, name in the file of its numbers, and lines.
DECLARED: dict[str, tuple[str, str, str, Callable[[Sequence[str]], list[Line]]]] = {
    "test-accuracy": (
        "Test accuracy (the paper's Table 2)",
        f"Accuracy on held-out rows, mean and standard deviation over splits. {_OVER_BASE}",
        "test_accuracy",
        lambda bases: _coupling(bases, "test") + _controls("test", PARTNER_ALONE, RIDGE),
    ),
    "transductive": (
        "Transductive accuracy",
        "Share of training rows whose label, the best of their candidates, is true. "
        f"{_OVER_BASE} The last lines take the best of all labels instead, candidate or not.",
        "transductive_accuracy",
        _transductive,
    ),
    "correction-ratio": (
        "Correction ratio",
        "Share of the training rows with a wrong verdict whose appeal is right, per cent; "
        "'broken' is the share of right verdicts whose appeal is wrong. Verdict and appeal are "
        "the best of a row's candidates, in the last lines the best of all labels.",
        "correction_ratio_percent",
        _correction_ratio,
    ),
    "ablation": (
        "Ablation of PLCP with PL-AGGD",
        "Test accuracy. "
        + _MARKS.format(first="the full PL-AGGD-PLCP", second="the method of the line"),
        "ablation_accuracy",
        _ablation,
    ),
    "collaborative-term": (
        "Collaborative or aggressive link",
        "Test accuracy; (A) has the aggressive link. "
        + _MARKS.format(first="PL-AGGD-PLCP", second="PL-AGGD-PLCP(A)"),
        "collaborative_term_accuracy",
        _collaborative_term,
    ),
}
#: These, and the paper's studies of Lost.
TABLES = (*DECLARED, "sensitivity", "trajectories")
