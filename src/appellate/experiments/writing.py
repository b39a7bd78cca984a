"""Reports as Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from appellate.experiments.reports import Report, Sheet

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
