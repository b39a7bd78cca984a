"""Reports: a table's numbers as sheets of text, and as records, ready to be written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from appellate.experiments.paper import IMPROVEMENT_RATIOS
from appellate.experiments.results import Cell, Results, TableResult, finite
from appellate.experiments.tables import Line

MARKS = {"win": "•", "loss": "○", "tie": "", "": ""}
FIXED = (
    "Parameters are the paper's and fixed; the last round is reported; nothing was chosen by "
    "looking at test rows."
)
TIES = (
    "On FG-NET exact transductive accuracy is near that of a random candidate for every method, "
    "and ties go to the lowest label, which is right more often than chance; read the columns "
    "with a tolerance instead."
)


@dataclass(frozen=True)
class Sheet:
    """A rectangle of text with a heading."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Report:
    """All that is written of one table.

    Attributes
    ----------
    name, title, caption : str
        Stem of the files, heading, and what the table shows.
    sheets : tuple of Sheet
        The first is laid out like the paper's and becomes the LaTeX table.
    records : tuple of dict
        One a number, for the CSV file.
    notes : tuple of str
        What to keep in mind.
    figures : tuple of str
        Stems of its figures.
    """

    name: str
    title: str
    caption: str
    sheets: tuple[Sheet, ...]
    records: tuple[dict[str, Any], ...]
    notes: tuple[str, ...] = ()
    figures: tuple[str, ...] = field(default=())

    def plain(self) -> list[dict[str, Any]]:
        """Return the records with None for what is not a number."""
        return [{k: None if v != v else v for k, v in each.items()} for each in self.records]


def report_table(result: TableResult, results: Results, missing: Mapping[str, str]) -> Report:
    """Report one of the five tables over data sets."""
    table = result.table
    sheets = [_overview(result), *_details(result)]
    if any(line.compared for line in table.lines):
        sheets.append(_summary(result))
    notes = [f"{len(results.splits)} splits. {FIXED}"]
    if table.name == "transductive":
        sheets.append(_ties(result, results))
        notes.append(TIES)
    notes += [f"Left out: {reason}" for reason in missing.values()]
    return Report(
        table.name,
        table.title,
        table.caption,
        tuple(sheets),
        tuple(_records(result)),
        tuple(notes),
        (table.name,),
    )


def share(value: float | None, percent: bool = False, *, sign: bool = False) -> str:
    """Three digits of a share, or per cent with one; a dash for None.

    Examples
    --------
    >>> share(0.7121), share(0.2129, True), share(-0.0104, sign=True), share(None)
    ('0.712', '21.3', '-0.010', '-')
    """
    if value is None:
        return "-"
    digits = f"{'+' if sign else ''}{'.1f' if percent else '.3f'}"
    return format(100 * value if percent else value, digits)


def mean_text(mean: float, std: float | None, percent: bool = False) -> str:
    """Mean and deviation; the mean alone where one split has no deviation."""
    return share(mean, percent) + ("" if std is None else f" ± {share(std, percent)}")


def p_value(value: float | None) -> str:
    """Three digits of a p-value; a dash where there is none."""
    if value is None or value != value:
        return "-"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _overview(result: TableResult) -> Sheet:
    """Lay the table out as the paper does, with one row for it and one for us."""
    rows = []
    for line in result.table.lines:
        cells = [result.cells[line, column] for column in result.columns]
        if any(cell.paper is not None for cell in cells):
            rows.append((line.title, "paper", *(_paper_text(c, result) for c in cells)))
        rows.append((line.title, "ours", *(_our_text(c, result) for c in cells)))
    header = ("method", "source", *(column.title for column in result.columns))
    return Sheet("Overview", header, tuple(rows))


def _paper_text(cell: Cell, result: TableResult) -> str:
    if cell.paper is None:
        return "-"
    percent = result.table.percent
    text = f"{share(cell.paper.mean, percent)} ± {share(cell.paper.std, percent)}"
    return f"{text} {MARKS[cell.paper.mark]}".rstrip()


def _our_text(cell: Cell, result: TableResult) -> str:
    if cell.mean is None:
        return "-"
    percent = result.table.percent
    return f"{mean_text(cell.mean, cell.std, percent)} {MARKS[cell.outcome]}".rstrip()


def _details(result: TableResult) -> list[Sheet]:
    """One sheet a column: paper, ours, difference, gains and p-value side by side."""
    header: tuple[str, ...] = ("method", "paper", "ours", "ours - paper")
    compared = any(line.compared for line in result.table.lines)
    if compared:
        header += ("gain in the paper", "our gain", "p", "mark")
    percent = result.table.percent
    sheets = []
    for column in result.columns:
        rows = []
        for line in result.table.lines:
            cell = result.cells[line, column]
            row = [
                line.title,
                share(None if cell.paper is None else cell.paper.mean, percent),
                share(cell.mean, percent),
                share(cell.difference, percent, sign=True),
            ]
            rows.append(tuple(row + (_tests(line, cell) if compared else [])))
        sheets.append(Sheet(column.title, header, tuple(rows)))
    return sheets


def _tests(line: Line, cell: Cell) -> list[str]:
    if line.compared is None or cell.comparison is None:
        return ["", "", "", ""]
    return [
        share(cell.paper_gain, sign=True),
        share(cell.comparison.difference, sign=True),
        p_value(cell.comparison.t_pvalue),
        MARKS[cell.outcome],
    ]


def _summary(result: TableResult) -> Sheet:
    """Wins, ties and losses of every comparison, and improvement ratios of couplings."""
    couplings = bool(result.table.pairs)
    header: tuple[str, ...] = ("comparison", "win/tie/loss in the paper", "our win/tie/loss")
    if couplings:
        header += (
            "average improvement ratio, printed (8 columns)",
            "the paper's on these columns",
            "ours on these columns",
        )
    rows = []
    for line in result.table.lines:
        if line.compared is None:
            continue
        first, second = line.compared
        row = [
            f"{first.title} against {second.title}",
            _counted(result.paper_counts(line)),
            _counted(result.counts(line)),
        ]
        if couplings:
            printed = IMPROVEMENT_RATIOS.get(second.title)
            show = printed is not None and result.table.name == "test-accuracy"
            row += [
                f"{printed:.1f} %" if show else "-",
                _ratio(result.improvement(line, paper=True)),
                _ratio(result.improvement(line)),
            ]
        rows.append(tuple(row))
    return Sheet("Win/tie/loss", header, tuple(rows))


def _counted(counts: tuple[int, int, int] | None) -> str:
    return "-" if counts is None else "/".join(map(str, counts))


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:+.1f} %"


def _ties(result: TableResult, results: Results) -> Sheet:
    """Share of training rows whose label was not the only best candidate."""
    datasets = dict.fromkeys(column.dataset for column in result.columns)
    titles = {column.dataset: column.title for column in reversed(result.columns)}
    rows = []
    for _, *methods in result.table.pairs:
        for method in methods:
            values = [results.scores(dataset, method, "ties") for dataset in datasets]
            means = [None if v is None else float(v.mean()) for v in values]
            rows.append((method.title, *(share(mean) for mean in means)))
    header = ("method", *(titles[dataset] for dataset in datasets))
    return Sheet(
        "Ties: share of training rows without a single best candidate", header, tuple(rows)
    )


def _records(result: TableResult) -> list[dict[str, Any]]:
    records = []
    for (line, column), cell in result.cells.items():
        pair = cell.comparison
        records.append(
            {
                "table": result.table.name,
                "method": line.title,
                "column": column.title,
                "score": line.score,
                "paper_mean": None if cell.paper is None else cell.paper.mean,
                "paper_std": None if cell.paper is None else cell.paper.std,
                "paper_mark": None if cell.paper is None else cell.paper.mark,
                "our_mean": cell.mean,
                "our_std": cell.std,
                "difference": cell.difference,
                "compared": ""
                if line.compared is None
                else " against ".join(method.title for method in line.compared),
                "paper_gain": cell.paper_gain,
                "our_gain": None if pair is None else pair.difference,
                "p_paired_t": None if pair is None else finite(pair.t_pvalue),
                "p_wilcoxon": None if pair is None else finite(pair.wilcoxon_pvalue),
                "p_corrected_t": None if pair is None else finite(pair.corrected_pvalue),
                "outcome": cell.outcome,
            }
        )
    return records
