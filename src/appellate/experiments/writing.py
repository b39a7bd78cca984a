"""Reports as Markdown, CSV, LaTeX and as a page."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Collection, Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from appellate.experiments.reports import Report, Sheet
from appellate.experiments.store import Row

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "±": r"$\pm$",
    "•": r"$\bullet$",
    "○": r"$\circ$",
    "→": r"$\rightarrow$",
}


def write_texts(report: Report, folder: Path) -> None:
    """Write the Markdown, CSV and LaTeX files of a report."""
    texts = {"md": to_markdown(report), "csv": to_csv(report), "tex": to_latex(report)}
    for ending, text in texts.items():
        (folder / f"{report.name}.{ending}").write_text(text, encoding="utf-8")


def write_page(
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
        In the order of the page; their figures are PNG files in the folder.
    folder : Path
        Where it is written.
    title, lead : str
        Heading and first sentence.
    missing : sequence of str
        Reasons for data sets that are not there.
    rows : sequence of Row
        The runs behind the numbers, for what is said of time and versions.
    """
    if find_spec("jinja2") is None:
        raise ImportError("The page needs jinja2: pip install 'appellate[report]'")
    from jinja2 import Environment, StrictUndefined

    text = files("appellate.experiments").joinpath("page.html").read_text(encoding="utf-8")
    machine = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    stems = [stem for report in reports for stem in report.figures]
    drawn = {stem: folder / f"{stem}.png" for stem in stems}
    page = machine.from_string(text).render(
        title=title,
        lead=lead,
        reports=reports,
        pictures={
            stem: base64.b64encode(file.read_bytes()).decode() if file.exists() else ""
            for stem, file in drawn.items()
        },
        missing=list(missing),
        facts=_facts(rows),
    )
    (folder / "index.html").write_text(page, encoding="utf-8")


def to_markdown(report: Report) -> str:
    """Return the whole report as Markdown."""
    parts = [f"# {report.title}", report.caption]
    for sheet in report.sheets:
        parts += [f"## {sheet.title}", _pipe_table(sheet)]
    parts += [f"![{report.title}]({stem}.png)" for stem in report.figures]
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
    writer.writerows(report.records)
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
    sheet = report.sheets[0]
    lines = [
        r"% Needs \usepackage{booktabs}.",
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{_escape(report.title)}. {_escape(report.caption)}}}",
        rf"  \label{{tab:{report.name}}}",
        rf"  \begin{{tabular}}{{{'l' * len(sheet.header)}}}",
        r"    \toprule",
        f"    {_latex_row(sheet.header)}",
        r"    \midrule",
    ]
    for number, row in enumerate(sheet.rows):
        if number and _begins_group(sheet.rows[number - 1], row):
            lines.append(r"    \addlinespace")
        shown = ("", *row[1:]) if number and row[0] == sheet.rows[number - 1][0] else row
        lines.append(f"    {_latex_row(shown)}")
    lines += [r"    \bottomrule", r"  \end{tabular}", r"\end{table}"]
    return "\n".join(lines) + "\n"


def _begins_group(above: Sequence[str], row: Sequence[str]) -> bool:
    """Whether a row starts a new method: it follows ours, and is not the coupled one."""
    return row[0] != above[0] and not row[0].startswith(f"{above[0]}-PLCP")


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(map(_escape, cells)) + r" \\"


def _escape(text: str) -> str:
    return "".join(_ESCAPES.get(letter, letter) for letter in text)


def _pipe_table(sheet: Sheet) -> str:
    rows = [sheet.header, tuple("---" for _ in sheet.header), *sheet.rows]
    return "\n".join("| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in rows)


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
