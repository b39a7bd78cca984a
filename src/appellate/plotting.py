"""Figures of a hearing; matplotlib (extra ``plot``) is loaded when one is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from itertools import zip_longest
from os import PathLike
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from appellate._palette import BOTH
from appellate._text import install
from appellate.candidates import name_rows
from appellate.candidates.names import is_missing
from appellate.confidence import normalize_rows

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from appellate.plcp import PLCPClassifier

__all__ = ["plot_trajectories", "save_trajectories"]

_COLORS = {role: BOTH[role] for role in ("verdict", "appeal", "truth", "rival")}
_ROLES = {
    "verdict": "label of the verdict",
    "appeal": "label of the appeal",
    "truth": "true label, if neither",
    "rival": "next candidate",
}
_BASE: dict[str, Any] = {"linestyle": "-", "marker": "o", "markersize": 4.5}
_HOLLOW = {"markerfacecolor": "white"}
_PARTNER: dict[str, Any] = {**_BASE, **_HOLLOW, "linestyle": (0, (4, 2)), "marker": "D"}
_ALONE: dict[str, Any] = {"linestyle": (0, (1, 1.6)), "linewidth": 1.2}
_INK, _MUTED = "#222222", "#6B6B6B"
_PANEL = (3.35, 2.55)  # inches
_NAME_WIDTH = 16  # characters of a label in a title


@dataclass(frozen=True)
class Trajectory:
    """Confidence of one label of one sample over the rounds.

    Attributes
    ----------
    name : object
        The label.
    role : {"verdict", "appeal", "truth", "rival"}
        Why it is drawn.
    is_true : bool
        Whether it is the true label.
    base, partner : ndarray, shape (rounds + 1,)
        Confidence of the base and of the partner: at the start, then after each round.
    alone : float
        Confidence of the base without a partner.
    """

    name: Any
    role: str
    is_true: bool
    base: NDArray[Any]
    partner: NDArray[Any]
    alone: float


def plot_trajectories(
    model: PLCPClassifier,
    samples: ArrayLike,
    *,
    truth: ArrayLike | None = None,
    ids: ArrayLike | None = None,
    figure: Figure | None = None,
) -> NDArray[Any]:
    """Draw how the confidence in contested labels moves from round to round.

    One panel a sample (the paper's Fig. 2): for the label of the verdict, that of the appeal
    and, if it is another one, the true label, the confidence of the base and that of the
    partner at the start and after each round, and what the base said alone. For a verdict
    that was upheld the next candidate is drawn beside it. Every confidence is divided by its
    sum over the candidates, so that base and partner share one scale.

    Parameters
    ----------
    model : PLCPClassifier
        Fitted with ``keep_confidences=True``.
    samples : int or array-like
        Training rows to draw: numbers counted from 0, or a boolean mask.
    truth : array-like, shape (n,), default=None
        True labels of the training rows, where known; None or NaN elsewhere.
    ids : array-like, shape (n,), default=None
        Names of the training rows; by default as in ``model.docket()``.
    figure : matplotlib Figure, default=None
        Empty figure with constrained layout to draw in; by default a new one of pyplot.

    Returns
    -------
    ndarray of matplotlib Axes, shape (number of samples,)
        The panels, in the order of `samples`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from appellate import PLCPClassifier, SUREClassifier
    >>> from appellate.plotting import plot_trajectories
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> model = PLCPClassifier(SUREClassifier(), keep_confidences=True).fit(X, y)
    >>> panels = plot_trajectories(model, [0, 5], figure=Figure(layout="constrained"))
    >>> panels.shape
    (2,)
    """
    _require_matplotlib()
    rows = _check_samples(model, samples)
    n = len(model.candidates_)
    names = _column(model.ids_ if ids is None else ids, n, "ids", default=np.arange(n))
    true = _column(truth, n, "truth", default=np.full(n, None))
    drawn = [_trajectories(model, row, true[row]) for row in rows]

    panels = _make_panels(figure or _new_figure(len(rows)), len(rows))
    for panel, row, lines in zip(panels, rows, drawn, strict=True):
        _draw_panel(panel, lines)
        _entitle(panel, f"sample {names[row]}", lines)
    panels[0].set_ylim(bottom=0)  # shared, so only when every curve is there
    _draw_legend(panels[0].figure, {line.role for lines in drawn for line in lines})
    return panels


def save_trajectories(
    path: str | PathLike[str], model: PLCPClassifier, samples: ArrayLike, **options: Any
) -> None:
    """Write the figure of `plot_trajectories` to a file, without a window or pyplot.

    Parameters
    ----------
    path : str or path
        File; the ending chooses the format.
    model, samples, **options
        As for `plot_trajectories`.

    Examples
    --------
    >>> import tempfile
    >>> from appellate import PLCPClassifier, SUREClassifier
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> model = PLCPClassifier(SUREClassifier(), keep_confidences=True).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_trajectories(f"{folder}/figure.png", model, [0, 5])
    """
    _require_matplotlib()
    from matplotlib.figure import Figure

    rows = _check_samples(model, samples)
    figure = Figure(figsize=_size(len(rows)), layout="constrained", facecolor="white")
    plot_trajectories(model, rows, figure=figure, **options)
    figure.savefig(path, dpi=160)


# -- what to draw -----------------------------------------------------------------------


def _trajectories(model: PLCPClassifier, row: int, truth: Any) -> list[Trajectory]:
    """Trajectories of the labels that matter for one sample, the contested first."""
    start = model.initial_confidence_[row]
    base = _shares(start, [each.base_confidence for each in model.history_], row)
    partner = _shares(start, [each.partner_confidence for each in model.history_], row)
    names, alone = model.classes_.tolist(), model.verdict_confidence_[row].tolist()
    return [
        Trajectory(names[j], role, bool(names[j] == truth), base[:, j], partner[:, j], alone[j])
        for j, role in _roles(model, row, truth).items()
    ]


def _roles(model: PLCPClassifier, row: int, truth: Any) -> dict[int, str]:
    """Labels to draw and why: at least two where there are two candidates."""
    verdict, appeal = (int(labels[row]) for labels in model.label_history_[[0, -1]])
    roles = {verdict: "verdict"} if verdict != appeal else {}
    roles[appeal] = "appeal"
    names = model.classes_.tolist()
    if not is_missing(truth) and truth in names:
        roles.setdefault(names.index(truth), "truth")
    others = [j for j in np.flatnonzero(model.candidates_[row]).tolist() if j not in roles]
    if len(roles) == 1 and others:
        roles[max(others, key=lambda j: float(model.confidence_[row, j]))] = "rival"
    return roles


def _shares(start: NDArray[Any], rounds: list[Any], row: int) -> NDArray[Any]:
    """Confidences of one sample, each divided by its sum; rows of zeros stay."""
    return normalize_rows(np.stack([start, *(each[row] for each in rounds)]), otherwise=0)


# -- how to draw it ---------------------------------------------------------------------


def _make_panels(figure: Figure, n_panels: int) -> NDArray[Any]:
    """Lay out empty panels; axes are labelled on the left and where nothing is below."""
    n_columns = _n_columns(n_panels)
    n_rows = -(-n_panels // n_columns)
    grid = figure.subplots(n_rows, n_columns, sharey=True, squeeze=False).ravel()
    for spare in grid[n_panels:]:
        spare.remove()
    for position, panel in enumerate(grid[:n_panels]):
        lowest = position + n_columns >= n_panels
        panel.tick_params(labelbottom=lowest)
        if lowest:
            panel.set_xlabel("round of mutual supervision", color=_INK, size=9)
        if position % n_columns == 0:
            panel.set_ylabel("confidence", color=_INK, size=9)
    return np.asarray(grid[:n_panels])


def _draw_panel(panel: Axes, lines: list[Trajectory]) -> None:
    last = len(lines[0].base) - 1
    rounds = np.arange(last + 1)
    for line in lines:
        color = _COLORS[line.role]
        panel.axhline(line.alone, color=color, zorder=1, **_ALONE)
        panel.plot(rounds, line.partner, color=color, zorder=2, linewidth=1.4, **_PARTNER)
        panel.plot(rounds, line.base, color=color, zorder=3, linewidth=1.8, **_BASE)
    panel.set_xticks(rounds, ["start", *map(str, rounds[1:])])
    panel.set_xlim(-0.25, last + 0.25)
    panel.grid(axis="y", color="#E3E3E3", linewidth=0.7)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
    panel.spines[["left", "bottom"]].set_color(_MUTED)
    panel.tick_params(colors=_MUTED, labelcolor=_INK, labelsize=8.5)


def _entitle(panel: Axes, name: str, lines: list[Trajectory]) -> None:
    """Write the sample above a panel, and its labels in the colours of their lines."""
    from matplotlib.offsetbox import AnchoredOffsetbox, HPacker, TextArea, VPacker

    labels: list[Artist] = [
        TextArea(_describe(line), textprops={"color": _COLORS[line.role], "size": 9})
        for line in lines
    ]
    title = TextArea(name, textprops={"color": _INK, "size": 9.5, "weight": "bold"})
    row = HPacker(children=labels, align="baseline", pad=0, sep=9)
    panel.add_artist(
        AnchoredOffsetbox(
            loc="lower left",
            child=VPacker(children=[title, row], align="left", pad=0, sep=3),
            frameon=False,
            pad=0,
            borderpad=0,
            bbox_to_anchor=(0, 1.03),
            bbox_transform=panel.transAxes,
        )
    )


def _describe(line: Trajectory) -> str:
    name = shorten(str(line.name), _NAME_WIDTH, placeholder="...") or str(line.name)[:_NAME_WIDTH]
    return f"{line.role} {name}{' (true)' if line.is_true and line.role != 'truth' else ''}"


def _draw_legend(figure: Figure, roles: set[str]) -> None:
    from matplotlib.lines import Line2D

    above = [
        Line2D([], [], color=_COLORS[role], linewidth=3, label=_ROLES[role])
        for role in sorted(roles, key=list(_ROLES).index)
    ]
    voices = (("base", _BASE), ("partner", _PARTNER), ("base without partner", _ALONE))
    below = [Line2D([], [], color=_INK, label=text, **style) for text, style in voices]
    blank = Line2D([], [], linestyle="", label=" ")
    # A legend is filled column by column; roles shall stand above, voices below.
    columns = zip_longest(above, below, fillvalue=blank)
    handles = [handle for column in columns for handle in column]
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=len(handles) // 2,
        frameon=False,
        fontsize=8.5,
        handlelength=2.6,
        labelcolor=_INK,
    )


def _n_columns(n_panels: int) -> int:
    return min(n_panels, 2 if n_panels <= 4 else 3)


def _size(n_panels: int) -> tuple[float, float]:
    n_columns = _n_columns(n_panels)
    width, height = _PANEL
    return max(5.4, width * n_columns), height * -(-n_panels // n_columns) + 0.6


def _new_figure(n_panels: int) -> Figure:
    from matplotlib import pyplot

    return pyplot.figure(figsize=_size(n_panels), layout="constrained")


# -- what can be wrong ------------------------------------------------------------------


def _require_matplotlib() -> None:
    if find_spec("matplotlib") is None:
        raise ImportError(f"Figures need matplotlib: {install('plot')}")


def _check_samples(model: PLCPClassifier, samples: ArrayLike) -> NDArray[np.intp]:
    """Return the row numbers, after checking that the model has something to draw."""
    check_is_fitted(model, "history_")
    if model.history_[0].base_confidence is None:
        raise ValueError(
            "The confidences of the rounds were not kept. Fit "
            f"{type(model).__name__}(..., keep_confidences=True) and draw again."
        )
    rows, n = np.atleast_1d(np.asarray(samples)), len(model.candidates_)
    if rows.dtype == bool and rows.shape == (n,):
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or not rows.size or rows.dtype.kind not in "iu":
        raise ValueError(
            f"samples must be one or more numbers of training rows, or a mask of {n} booleans; "
            f"got {rows.dtype} of shape {rows.shape}."
        )
    outside = [row for row in rows.tolist() if not 0 <= row < n]
    if outside:
        raise ValueError(f"{name_rows(outside)}: no such training row; they go from 0 to {n - 1}.")
    return rows.astype(np.intp)


def _column(values: Any, n: int, name: str, *, default: NDArray[Any]) -> list[Any]:
    column = default if values is None else np.asarray(values)
    if column.shape != (n,):
        raise ValueError(
            f"{name} has shape {column.shape}, but {n} samples were fitted; pass one value a "
            "sample, in the order of training."
        )
    return list(column.tolist())
