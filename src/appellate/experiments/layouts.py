"""Tables of results: the methods of their lines, and what is compared with what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from appellate.experiments.methods import (
    JURY,
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
from appellate.experiments.problems import Dataset
from appellate.experiments.protocol import Trial


@dataclass(frozen=True)
class Column:
    """A column: a data set, a tolerance for ordered labels, and its title in the paper."""

    title: str
    dataset: str
    tolerance: int = 0
    paper: str | None = None


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
        The first is tested against the second; the mark is in this line.
    paper : str or None
        Name of the line in the paper's table, if it is not the title.
    """

    title: str
    method: Method
    score: str
    compared: tuple[Method, Method] | None = None
    paper: str | None = None


@dataclass(frozen=True)
class Figure:
    """One published figure.

    Attributes
    ----------
    mean, std : float
        As published, divided by 100 if the paper prints per cent.
    mark : str
        ``"win"`` for a bullet, ``"loss"`` for a circle, else empty.
    """

    mean: float
    std: float
    mark: str


@dataclass(frozen=True)
class Published:
    """The published figures of a table.

    Attributes
    ----------
    figures : mapping of (str, str) to Figure
        By method and column.
    percent : bool
        Whether the paper prints per cent.
    ratios : mapping of str to float
        Published average improvement ratio of a coupled base, per cent, by the base's title.
    """

    figures: Mapping[tuple[str, str], Figure]
    percent: bool = False
    ratios: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ResultTable:
    """A table of results.

    Attributes
    ----------
    name, title, caption : str
        Name for the command, heading, and what the marks mean.
    lines : tuple of Line
        The methods, then the controls.
    published : Published or None
        The same table in the paper; None if the paper does not have it.
    """

    name: str
    title: str
    caption: str
    lines: tuple[Line, ...]
    published: Published | None = None

    @property
    def percent(self) -> bool:
        """Whether the paper prints per cent."""
        return self.published is not None and self.published.percent

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


def plan(datasets: Iterable[str], methods: Iterable[Method], splits: Iterable[int]) -> list[Trial]:
    """List the runs of some methods: B and B-PLCP on the same splits with the same seeds."""
    methods, splits = list(methods), list(splits)
    return [
        Trial(d, m, split, seed=split)
        for d in datasets
        for split in splits
        for m in methods
        if split in splits_of(m, splits)
    ]


MARKS_MEAN = (
    "A bullet (•) or circle (○) means that {first} is significantly better or worse than "
    "{second} (paired t-test at 0.05 over the splits)."
)


def coupling_lines(bases: Sequence[str], score: str) -> list[Line]:
    """Return the lines of every base alone, with PLCP and with a jury, and of the jury."""
    lines = []
    for base in bases:
        before = alone(base)
        lines.append(Line(before.title, before, score))
        for after in (coupled(base), with_jury(base)):
            lines.append(Line(after.title, after, score, (after, before)))
    return [*lines, Line(JURY.title, JURY, score)]


def control_lines(score: str, *methods: Method, against: Method | None = None) -> list[Line]:
    """Return the lines of controls, each compared with one method."""
    pairs = ((method, (against, method) if against else None) for method in methods)
    return [Line(f"control: {method.title}", method, score, pair) for method, pair in pairs]


def make_comparison(problem: Dataset, methods: Sequence[Method]) -> list[ResultTable]:
    """Declare what is compared on a user's data: test rows, and training rows if there is truth.

    Parameters
    ----------
    problem : Problem
        The data.
    methods : sequence of Method
        A coupled base is compared with the base before it.

    Raises
    ------
    ValueError
        If testimony is to be heard where nobody answered.
    """
    if problem.answers is None and any(method.kind == "testimony" for method in methods):
        raise ValueError(
            f"testimony needs annotators' answers, but '{problem.name}' has only candidates. "
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
    lines += control_lines(score, PARTNER_ALONE, RIDGE)
    lines += [Line(each.title, each, score) for each in beside if each == TESTIMONY]
    marks = MARKS_MEAN.format(first="B-PLCP", second="B")
    title = f"Comparison on {problem.title}"
    caption = f"{measure}, mean and standard deviation over splits. {marks}"
    tables = [ResultTable("comparison", title, caption, tuple(lines))]
    if problem.truth is None:
        return tables
    lines = []
    for method in methods:
        lines.append(Line(method.title, method, "transductive", against.get(method)))
        if method.kind == "jury" or method in against:
            for which, name in (("wrong", "corrected"), ("correct", "broken")):
                lines.append(Line(f"{method.title}, {which} first labels {name}", method, name))
    trivial = (RANDOM, *beside)
    lines += [Line(f"baseline: {each.title}", each, "transductive") for each in trivial]
    caption = (
        "Share of training rows whose label, the best of their candidates, is true, mean and "
        "standard deviation over splits; then the share of wrong first labels that were corrected "
        f"and of correct ones that were broken. {marks}"
    )
    return [*tables, ResultTable("training-rows", "Training rows", caption, tuple(lines))]
