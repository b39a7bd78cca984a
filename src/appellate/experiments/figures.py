"""Figures of the tables: ours next to the paper's; matplotlib (extra ``plot``)."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from appellate.experiments.results import TableResult
from appellate.plotting import INK, MUTED, dress, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart with any colour vision; markers differ too.
OURS, PAPER = "#0072B2", "#D55E00"
COLOURS = (
    *((MUTED, "s"), ("#009E73", "^"), (OURS, "o")),
    *((PAPER, "D"), ("#CC79A7", "v")),
)
_OUR_LOOK: dict[str, Any] = {"color": OURS, "marker": "o", "markersize": 4.6}
_THEIR_LOOK = {"color": PAPER, "marker": "D", "markersize": 4.2, "markerfacecolor": "white"}
_LABELS = {
    "test": "test accuracy",
    "transductive": "transductive accuracy",
    "corrected": "wrong first labels corrected, correct first labels broken (%)",
}


def draw_table(result: TableResult) -> Figure:
    """Draw a table: one panel a column, one line a method, ours and the paper's means."""
    from matplotlib.lines import Line2D

    lines = [line for line in result.table.lines if "unmasked" not in line.score]
    n_columns = max(1, len(result.columns))
    figure = new_figure(2.6 + 1.75 * n_columns, 1.3 + 0.24 * len(lines))
    panels = figure.subplots(1, n_columns, sharey=True, squeeze=False)[0]
    steps = (  # a base and its coupled version stand close together
        0.8 if after.title == f"{before.title}-PLCP" else 1.25 for before, after in pairwise(lines)
    )
    places = list(accumulate(steps, initial=0.0))[: len(lines)]
    unit = 100.0 if result.table.percent else 1.0
    for panel, column in zip(panels, result.columns, strict=False):
        for line, y in zip(lines, places, strict=True):
            cell = result.cells[line, column]
            for source, shift, look in ((cell.paper, -0.13, _THEIR_LOOK), (cell, 0.13, _OUR_LOOK)):
                if source is not None and source.mean is not None:
                    spread = None if source.std is None else [unit * source.std]
                    style: dict[str, Any] = {"linestyle": "", "capsize": 0, "elinewidth": 1.1}
                    panel.errorbar([unit * source.mean], [y + shift], xerr=spread, **style | look)
        panel.locator_params(axis="x", nbins=4)
        panel.set_title(column.title, size=9.5, color=INK, weight="bold", parse_math=False)
        dress(panel, "x")
        panel.tick_params(left=False)
    panels[0].set_yticks(places, [line.title for line in lines], parse_math=False)
    panels[0].set_ylim(max(places, default=0) + 0.6, -0.6)
    scores, label = {line.score for line in lines}, "share of rows"
    if len(scores) == 1 or scores == {"corrected", "broken"}:
        label = _LABELS.get(max(scores), max(scores))
    figure.supxlabel(label, size=9, color=INK)
    looks = {"ours": _OUR_LOOK}
    if any(cell.paper is not None for cell in result.cells.values()):
        looks["paper"] = _THEIR_LOOK
    names = ((f"{who}, mean ± deviation", look | {"markersize": 5}) for who, look in looks.items())
    place_legend(figure, [Line2D([], [], label=name, **look) for name, look in names])
    return figure


def place_legend(figure: Figure, handles: list[Any]) -> None:
    """Put the legend above all panels."""
    look: dict[str, Any] = {"frameon": False, "fontsize": 8.5, "labelcolor": INK}
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), **look)
