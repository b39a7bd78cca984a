"""Reports: a table's numbers as sheets of text and as records; Markdown, CSV, LaTeX, a page."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from appellate._text import install, neutralize
from appellate.experiments.figures import draw_table
from appellate.experiments.methods import SETTING
from appellate.experiments.results import Results, TableResult, finite
from appellate.experiments.store import Row
from appellate.metrics.paired import format_p

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    figure : matplotlib Figure or None
        What there is to see of it.
    """

    name: str
    title: str
    caption: str
    sheets: tuple[Sheet, ...]
    records: tuple[dict[str, Any], ...]
    notes: tuple[str, ...] = ()
    figure: Figure | None = None

    def plain(self) -> list[dict[str, Any]]:
        """Return the records with None for what is not a number."""
        return [{k: None if v != v else v for k, v in each.items()} for each in self.records]


def report_table(result: TableResult, results: Results, missing: Mapping[str, str]) -> Report:
    """Report and draw a table over data sets."""
    table = result.table
    sheets = [overview(result), *_details(result)]
    if any(line.compared for line in table.lines):
        sheets.append(_summary(result))
    notes = [f"{len(results.splits)} splits. {FIXED}"]
    if any(method.kind == "deep" for method in table.methods()):
        notes.append(SETTING)
    if table.name == "transductive":
        sheets.append(_ties(result, results))
        notes.append(TIES)
    notes += [f"Left out: {reason}" for reason in missing.values()]
    texts, drawn = (table.name, table.title, table.caption), draw_table(result)
    return Report(*texts, tuple(sheets), tuple(_records(result)), tuple(notes), drawn)


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


def mean_text(
    mean: float | None, std: float | None, percent: bool = False, outcome: str = ""
) -> str:
    """Mean, deviation and mark; one split has no deviation, and no run a dash."""
    text = share(mean, percent) + ("" if std is None else f" ± {share(std, percent)}")
    return f"{text} {MARKS[outcome]}".rstrip()


def p_value(value: float | None) -> str:
    """Three digits of a p-value; a dash if it is missing."""
    return "-" if value is None or value != value else format_p(value)


def overview(result: TableResult) -> Sheet:
    """Lay the table out as the paper does, with one row for it and one for us."""
    percent, rows = result.table.percent, []
    for line in result.table.lines:
        cells = [result.cells[line, column] for column in result.columns]
        papers = [cell.paper for cell in cells]
        printed = [mean_text(p.mean, p.std, percent, p.mark) if p else "-" for p in papers]
        ours = [mean_text(cell.mean, cell.std, percent, cell.outcome) for cell in cells]
        if any(text != "-" for text in printed):
            rows.append((line.title, "paper", *printed))
        rows.append((line.title, "ours", *ours))
    header = ("method", "source", *(column.title for column in result.columns))
    return Sheet("Overview", header, tuple(rows))


def _details(result: TableResult) -> list[Sheet]:
    """One sheet a column: paper, ours, difference, gains and p-value side by side."""
    header: tuple[str, ...] = ("method", "paper", "ours", "ours - paper")
    if any(line.compared for line in result.table.lines):
        header += ("gain in the paper", "our gain", "p", "mark")
    percent, sheets = result.table.percent, []
    for column in result.columns:
        rows = []
        for line in result.table.lines:
            cell = result.cells[line, column]
            printed = cell.paper.mean if cell.paper else None
            figures = (share(each, percent) for each in (printed, cell.mean))
            row = [line.title, *figures, share(cell.difference, percent, sign=True)]
            pair = cell.comparison
            if pair is not None:
                gains = (share(gain, sign=True) for gain in (cell.paper_gain, pair.difference))
                row += [*gains, p_value(pair.t_pvalue), MARKS[cell.outcome]]
            rows.append(tuple(row + [""] * (len(header) - len(row))))
        sheets.append(Sheet(column.title, header, tuple(rows)))
    return sheets


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
    rows: list[tuple[str, ...]] = []
    totals: dict[str, list[tuple[int, ...]]] = {}
    for line in result.table.lines:
        if line.compared is None:
            continue
        (first, second), counts = line.compared, result.counts(line)
        marks = result.counts(line, paper=True)
        row = [f"{first.title} against {second.title}", _counts(marks) if any(marks) else "-"]
        row.append(_counts(counts))
        if couplings:
            known = result.table.published
            printed = known.ratios.get(second.title) if known and not first.settings else None
            ratios = result.improvement(line, paper=True), result.improvement(line)
            row.append("-" if printed is None else f"{printed:.1f} %")
            row += ["-" if ratio is None else f"{100 * ratio:+.1f} %" for ratio in ratios]
        if couplings and first.kind == "plcp":
            name = f"all B-PLCP{'(jury)' if first.settings else ''} against B"
            totals.setdefault(name, []).append(counts)
        rows.append(tuple(row))
    for name, found in totals.items():
        if len(found) > 1:
            sums = tuple(map(sum, zip(*found, strict=True)))
            rows.append((name, "-", _counts(sums), "-", "-", "-"))
    return Sheet("Win/tie/loss", header, tuple(rows))


def _counts(counts: Sequence[int]) -> str:
    return "/".join(map(str, counts))


def _ties(result: TableResult, results: Results) -> Sheet:
    """Share of training rows whose label was not the only best candidate."""
    titles = {column.dataset: column.title for column in reversed(result.columns)}
    datasets = dict.fromkeys(column.dataset for column in result.columns)
    rows = []
    for method in dict.fromkeys(m for pair in result.table.pairs for m in reversed(pair)):
        values = [results.scores(dataset, method, "ties") for dataset in datasets]
        rows.append((method.title, *(share(None if v is None else v.mean()) for v in values)))
    title = "Ties: share of training rows without a single best candidate"
    return Sheet(title, ("method", *(titles[dataset] for dataset in datasets)), tuple(rows))


def _records(result: TableResult) -> Iterator[dict[str, Any]]:
    for (line, column), cell in result.cells.items():
        paper, pair = cell.paper, cell.comparison
        yield {
            "table": result.table.name,
            "method": line.title,
            "column": column.title,
            "score": line.score,
            "paper_mean": paper and paper.mean,
            "paper_std": paper and paper.std,
            "paper_mark": paper and paper.mark,
            "our_mean": cell.mean,
            "our_std": cell.std,
            "difference": cell.difference,
            "compared": " against ".join(method.title for method in line.compared or ()),
            "paper_gain": cell.paper_gain,
            "our_gain": pair and pair.difference,
            "p_paired_t": pair and finite(pair.t_pvalue),
            "p_wilcoxon": pair and finite(pair.wilcoxon_pvalue),
            "p_corrected_t": pair and finite(pair.corrected_pvalue),
            "outcome": cell.outcome,
        }


_ESCAPES = str.maketrans(
    {letter: f"\\{letter}" for letter in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"<": "$<$", ">": "$>$", "±": r"$\pm$", "•": r"$\bullet$", "○": r"$\circ$"}
    | {"→": r"$\rightarrow$"}
)


def write_files(report: Report, folder: Path) -> None:
    """Write a report as Markdown, CSV and LaTeX, and its figure as PNG and PDF."""
    texts = {"md": to_markdown(report), "csv": to_csv(report), "tex": to_latex(report)}
    for ending, text in texts.items():
        (folder / f"{report.name}.{ending}").write_text(text, encoding="utf-8")
    if report.figure is not None:
        stem = folder / report.name
        report.figure.savefig(stem.with_suffix(".pdf"), metadata={"CreationDate": None})
        report.figure.savefig(stem.with_suffix(".png"), dpi=150)


def write_index(
    reports: Collection[Report],
    folder: Path,
    *,
    title: str,
    lead: str,
    missing: Sequence[str] = (),
    rows: Sequence[Row] = (),
) -> None:
    """Write ``index.html``, a page that needs no other file, script or network.

    Parameters
    ----------
    reports : collection of Report
        In the order of the page; figures are PNG files in the folder.
    folder : Path
        Folder to write to.
    title, lead : str
        Heading and first sentence.
    missing : sequence of str
        Reasons for data sets that are not there.
    rows : sequence of Row
        The runs behind the numbers, for the notes on time and versions.
    """
    if find_spec("jinja2") is None:
        raise ImportError(f"The page needs jinja2: {install('report')}")
    from jinja2 import Environment, StrictUndefined

    text = files("appellate.experiments").joinpath("page.html").read_text(encoding="utf-8")
    machine = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    page = machine.from_string(text).render(
        title=title,
        lead=lead,
        reports=reports,
        pictures={
            each.name: base64.b64encode((folder / f"{each.name}.png").read_bytes()).decode()
            for each in reports
            if each.figure is not None
        },
        missing=list(missing),
        facts=_facts(rows),
    )
    (folder / "index.html").write_text(page, encoding="utf-8")


def to_markdown(report: Report) -> str:
    """Return the whole report as Markdown."""
    parts = [f"# {report.title}", report.caption]
    for sheet in report.sheets:
        rows = [sheet.header, ["---"] * len(sheet.header), *sheet.rows]
        cells = (" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows)
        parts += [f"## {sheet.title}", "\n".join(f"| {row} |" for row in cells)]
    if report.figure is not None:
        parts.append(f"![{report.title}]({report.name}.png)")
    if report.notes:
        parts.append("\n".join(f"- {note}" for note in report.notes))
    return "\n\n".join(parts) + "\n"


def to_csv(report: Report) -> str:
    """Return the numbers as CSV with a header; floats are exact, None is empty."""
    if not report.records:
        return ""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(report.records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {name: neutralize(v) if isinstance(v, str) else v for name, v in record.items()}
        for record in report.records
    )
    return text.getvalue()


def to_latex(report: Report) -> str:
    r"""Return the first sheet as a LaTeX table; it needs the package ``booktabs``.

    Examples
    --------
    >>> sheet = Sheet("Overview", ("method", "Lost"), (("A & B", "0.71 ± 0.02 •"),))
    >>> print(to_latex(Report("t", "T", "100 %.", (sheet,), ())))
    % Needs \usepackage{booktabs}.
    \begin{table}
      \centering
      \caption{T. 100 \%.}
      \label{tab:t}
      \begin{tabular}{ll}
        \toprule
        method & Lost \\
        \midrule
        A \& B & 0.71 $\pm$ 0.02 $\bullet$ \\
        \bottomrule
      \end{tabular}
    \end{table}
    <BLANKLINE>
    """
    sheet, caption = report.sheets[0], f"{report.title}. {report.caption}".translate(_ESCAPES)
    rows: list[str] = []
    above: Sequence[str] = ("",)
    for row in sheet.rows:
        if rows and row[0] != above[0] and not row[0].startswith(f"{above[0]}-PLCP"):
            rows.append(r"\addlinespace")  # a new method, not the same one coupled
        rows.append(_latex_row(("", *row[1:]) if row[0] == above[0] else row))
        above = row
    body = "\n    ".join(
        [r"\toprule", _latex_row(sheet.header), r"\midrule", *rows, r"\bottomrule"]
    )
    return rf"""% Needs \usepackage{{booktabs}}.
\begin{{table}}
  \centering
  \caption{{{caption}}}
  \label{{tab:{report.name}}}
  \begin{{tabular}}{{{"l" * len(sheet.header)}}}
    {body}
  \end{{tabular}}
\end{{table}}
"""


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(cell.translate(_ESCAPES) for cell in cells) + r" \\"


def _facts(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return ["No runs."]
    seconds = sum(row.seconds for row in rows)
    memory = max((row.memory for row in rows if row.memory is not None), default=None)
    facts = [f"{len(rows)} runs, {seconds:.0f} seconds of training and prediction in all."]
    if memory is not None:
        facts.append(f"Largest resident memory of a worker: {memory:.0f} MB.")
    for where in {repr(row.environment): row.environment for row in rows}.values():
        packages = ", ".join(f"{name} {number}" for name, number in where["packages"].items())
        facts.append(
            f"Python {where['python']} on {where['system']} {where['machine']}, {packages}; "
            f"source {where['source']}."
        )
    return facts
