"""Figures of the tables: ours beside the paper's; matplotlib (extra ``plot``)."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from appellate._text import install
from appellate.experiments.methods import alone
from appellate.experiments.results import Results, TableResult
from appellate.experiments.studies import BASE, CURVES, DATASET
from appellate.experiments.tables import Line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart with any colour vision; markers differ too.
OURS, PAPER, BASELINE = "#0072B2", "#D55E00", "#6B6B6B"
COLOURS = (
    *((BASELINE, "s"), ("#009E73", "^"), (OURS, "o")),
    *((PAPER, "D"), ("#CC79A7", "v")),
)
_INK, _GRID = "#222222", "#E3E3E3"
_OUR_LOOK: dict[str, Any] = {"color": OURS, "marker": "o", "markersize": 4.6}
_THEIR_LOOK = {"color": PAPER, "marker": "D", "markersize": 4.2, "markerfacecolor": "white"}
_LABELS = {
    "test": "test accuracy",
    "transductive": "transductive accuracy",
    "corrected": "wrong verdicts corrected, right verdicts broken (%)",
}


def save(figure: Figure, folder: Path, stem: str) -> Path:
    """Write a figure as PNG and PDF; return the PNG."""
    figure.savefig(folder / f"{stem}.pdf", metadata={"CreationDate": None})
    figure.savefig(folder / f"{stem}.png", dpi=150)
    return folder / f"{stem}.png"


def draw_table(result: TableResult) -> Figure:
    """Draw a table: one panel a column, one line a method, ours and the paper's means."""
    lines = [line for line in result.table.lines if "unmasked" not in line.score]
    n_columns = max(1, len(result.columns))
    figure = new_figure(2.6 + 1.75 * n_columns, 1.3 + 0.24 * len(lines))
    panels = figure.subplots(1, n_columns, sharey=True, squeeze=False)[0]
    places = _places(lines)
    for panel, column in zip(panels, result.columns, strict=False):
        for line, y in zip(lines, places, strict=True):
            _draw_cell(panel, y, result, line, column)
        panel.locator_params(axis="x", nbins=4)
        panel.set_title(column.title, size=9.5, color=_INK, weight="bold", parse_math=False)
        dress(panel, "x")
        panel.tick_params(left=False)
    panels[0].set_yticks(places, [line.title for line in lines], parse_math=False)
    panels[0].set_ylim(max(places, default=0) + 0.6, -0.6)
    figure.supxlabel(_label({line.score for line in lines}), size=9, color=_INK)
    _draw_legend(figure, paper=any(cell.paper is not None for cell in result.cells.values()))
    return figure


def _label(scores: set[str]) -> str:
    if len(scores) == 1 or scores == {"corrected", "broken"}:
        return _LABELS.get(max(scores), max(scores))
    return "share of rows"


def draw_sensitivity(results: Results) -> Figure:
    """Draw the four curves on Lost: test accuracy, its deviation, and the base alone."""
    figure = new_figure(9.6, 2.9)
    panels = figure.subplots(1, len(CURVES), sharey=True, squeeze=False)[0]
    base = results.scores(DATASET, alone(BASE), "test")
    for panel, curve in zip(panels, CURVES, strict=True):
        scores = [results.scores(DATASET, curve.method(v), "test") for v in curve.values]
        found = [(v, s) for v, s in zip(curve.values, scores, strict=True) if s is not None]
        x = [value for value, _ in found]
        mean = np.array([s.mean() for _, s in found])
        spread = np.array([s.std(ddof=min(1, len(s) - 1)) for _, s in found])
        panel.fill_between(x, mean - spread, mean + spread, color=OURS, alpha=0.16, linewidth=0)
        panel.plot(x, mean, color=OURS, marker="o", markersize=4.5, linewidth=1.6)
        panel.axvline(curve.default, color=_INK, linestyle=(0, (1, 2)), linewidth=1)
        if base is not None:
            panel.axhline(base.mean(), color=BASELINE, linestyle=(0, (5, 2)), linewidth=1.2)
        if curve.log:
            panel.set_xscale("log")
        panel.set_xlabel(f"{_symbol(curve.symbol)}, {curve.meaning}", size=9, color=_INK)
        dress(panel, "both")
    panels[0].set_ylabel("test accuracy on Lost", size=9, color=_INK)
    _draw_curve_legend(figure)
    return figure


def draw_trajectories(
    model: Any, kinds: dict[int, str], truth: NDArray[Any], rows: NDArray[Any]
) -> Figure:
    """Draw the confidences of some training samples, each under the name of its error."""
    from appellate.plotting import plot_trajectories

    names = [f"{row}: false label {kinds[i]}" if i in kinds else row for i, row in enumerate(rows)]
    figure = new_figure(6.8, 0.6 + 2.6 * -(-len(kinds) // 2))
    panels = plot_trajectories(
        model, list(kinds), truth=truth, ids=np.array(names, dtype=object), figure=figure
    )
    # The panels share one scale, which must hold them all.
    highest = max(np.max(line.get_ydata()) for panel in panels for line in panel.lines)
    panels[0].set_ylim(0, 1.06 * highest)
    return figure


def _symbol(name: str) -> str:
    """Symbol of a parameter as mathematical text."""
    return f"${name}$" if len(name) == 1 else rf"$\{name}$"


def _places(lines: list[Line]) -> list[float]:
    """Heights of the lines: a base and its coupled version close together."""
    places, y = [], 0.0
    for number, line in enumerate(lines):
        if number:
            pair = line.title == f"{lines[number - 1].title}-PLCP"
            y += 0.8 if pair else 1.25
        places.append(y)
    return places


def _draw_cell(panel: Axes, y: float, result: TableResult, line: Line, column: Any) -> None:
    cell = result.cells[line, column]
    unit = 100.0 if result.table.percent else 1.0
    for source, place, look in ((cell.paper, y - 0.13, _THEIR_LOOK), (cell, y + 0.13, _OUR_LOOK)):
        if source is not None and source.mean is not None:
            spread = None if source.std is None else [unit * source.std]
            style: dict[str, Any] = {"linestyle": "", "capsize": 0, "elinewidth": 1.1} | look
            panel.errorbar([unit * source.mean], [place], xerr=spread, **style)


def dress(panel: Axes, grid: Any) -> None:
    """Give a panel a light grid and quiet axes."""
    panel.grid(axis=grid, color=_GRID, linewidth=0.7)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
    panel.spines[["left", "bottom"]].set_color(BASELINE)
    panel.tick_params(colors=BASELINE, labelcolor=_INK, labelsize=8)


def _draw_legend(figure: Figure, *, paper: bool) -> None:
    from matplotlib.lines import Line2D

    looks = {"ours": _OUR_LOOK} | ({"paper": _THEIR_LOOK} if paper else {})
    names = ((f"{who}, mean ± deviation", look | {"markersize": 5}) for who, look in looks.items())
    place_legend(figure, [Line2D([], [], label=name, **look) for name, look in names])


def _draw_curve_legend(figure: Figure) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Line2D([], [], color=OURS, marker="o", markersize=5, label="PL-AGGD-PLCP"),
        Patch(facecolor=OURS, alpha=0.16, label="± deviation over splits"),
        Line2D([], [], color=BASELINE, linestyle=(0, (5, 2)), label="PL-AGGD alone"),
        Line2D([], [], color=_INK, linestyle=(0, (1, 2)), label="the paper's value"),
    ]
    place_legend(figure, handles)


def place_legend(figure: Figure, handles: list[Any]) -> None:
    """Put the legend above all panels."""
    look: dict[str, Any] = {"frameon": False, "fontsize": 8.5, "labelcolor": _INK}
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), **look)


def new_figure(width: float, height: float) -> Figure:
    """Make an empty figure of a size in inches."""
    if find_spec("matplotlib") is None:
        raise ImportError(f"Figures need matplotlib: {install('plot')}")
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", facecolor="white")
