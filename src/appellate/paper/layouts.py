"""The paper's tables: the methods of their lines, and what is compared with what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

from appellate.experiments.layouts import (
    MARKS_MEAN,
    Column,
    Line,
    ResultTable,
    control_lines,
    coupling_lines,
)
from appellate.experiments.methods import (
    LOWEST,
    PAPER_BASES,
    PARTNER_ALONE,
    RANDOM,
    RIDGE,
    alone,
    coupled,
)
from appellate.experiments.problems import DATASETS
from appellate.paper.printed import published

MEASURES = (
    *(Column(each.title, name) for name, each in DATASETS.items()),
    Column("FG-NET(MAE3)", "fgnet", 3),
    Column("FG-NET(MAE5)", "fgnet", 5),
)


def make_table(name: str, bases: Sequence[str]) -> ResultTable:
    """Declare one of the five tables for some of the bases."""
    title, caption, source, lines = DECLARED[name]
    return ResultTable(name, title, caption, tuple(lines(bases)), published(source))


def _transductive(bases: Sequence[str]) -> list[Line]:
    trivial = (("a random candidate", RANDOM), ("the lowest candidate", LOWEST))
    return [
        *coupling_lines(bases, "transductive"),
        *(Line(f"control: {title}", method, "transductive") for title, method in trivial),
        *control_lines("transductive", PARTNER_ALONE),
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
    named = {PAPER_BASES.get(base, base): coupled(base) for base in bases}
    return [
        Line(f"{title}{suffix}", method, score)
        for score, suffix in scores.items()
        for title, method in named.items()
    ]


def _ablation(_: Sequence[str]) -> list[Line]:
    full, lines = coupled("aggd"), coupling_lines(["aggd"], "test")[:1]
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
    return lines + control_lines("test", PARTNER_ALONE, RIDGE, against=full)


def _collaborative_term(_: Sequence[str]) -> list[Line]:
    base, full = coupling_lines(["aggd"], "test")[:2]
    other = coupled("aggd", title="PL-AGGD-PLCP(A)", settings={"link": "aggressive"})
    return [
        base,
        Line(other.title, other, "test"),
        replace(full, compared=(full.method, other)),
    ]


_OVER_BASE = MARKS_MEAN.format(first="B-PLCP", second="B")
#: Of the paper's tables: title, caption, name in the file of its numbers, and lines.
DECLARED: dict[str, tuple[str, str, str, Callable[[Sequence[str]], list[Line]]]] = {
    "test-accuracy": (
        "Test accuracy (the paper's Table 2)",
        f"Accuracy on held-out rows, mean and standard deviation over splits. {_OVER_BASE}",
        "test_accuracy",
        lambda bases: coupling_lines(bases, "test") + control_lines("test", PARTNER_ALONE, RIDGE),
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
        "Share of the training rows with a wrong first label whose final label is correct, per "
        "cent; 'broken' is the share of correct first labels whose final label is wrong. Both are "
        "the best of a row's candidates, in the last lines the best of all labels.",
        "correction_ratio_percent",
        _correction_ratio,
    ),
    "ablation": (
        "Ablation of PLCP with PL-AGGD",
        "Test accuracy. "
        + MARKS_MEAN.format(first="the full PL-AGGD-PLCP", second="the method of the line"),
        "ablation_accuracy",
        _ablation,
    ),
    "collaborative-term": (
        "Collaborative or aggressive link",
        "Test accuracy; (A) has the aggressive link. "
        + MARKS_MEAN.format(first="PL-AGGD-PLCP", second="PL-AGGD-PLCP(A)"),
        "collaborative_term_accuracy",
        _collaborative_term,
    ),
}
#: These, and the paper's studies of Lost.
TABLES = (*DECLARED, "sensitivity", "trajectories")
