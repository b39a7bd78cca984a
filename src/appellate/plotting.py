"""Figures of a hearing; matplotlib (extra ``plot``) is loaded when one is drawn."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import zip_longest
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from appellate._palette import BOTH
from appellate._text import install
from appellate.candidates import name_rows
from appellate.candidates.names import is_missing
from appellate.evidence.confidence import normalize_rows

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from appellate.methods.plcp import PLCPClassifier

__all__ = ["plot_trajectories"]

_ROLES = {
    "verdict": "label of the verdict",
    "appeal": "label of the appeal",
    "truth": "true label, if neither",
    "rival": "next candidate",
}
_BASE: dict[str, Any] = {"linestyle": "-", "marker": "o", "markersize": 4.5}
_HOLLOW = {"markerfacecolor": "white", "marker": "D"}
_PARTNER: dict[str, Any] = {**_BASE, **_HOLLOW, "linestyle": (0, (4, 2))}
_ALONE: dict[str, Any] = {"linestyle": (0, (1, 1.6)), "linewidth": 1.2}
INK, MUTED = "#222222", "#6B6B6B"
_PANEL = (3.35, 2.55)  # inches
_NAME_WIDTH = 16  # characters of a label in a title


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
        The panels, in the order of `samples`; ``panels[0].figure.savefig`` writes them to a file.

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
    rows = _check_samples(model, samples)
    n, n_panels = len(model.candidates_), len(rows)
    names = _column(model.ids_ if ids is None else ids, n, "ids", default=np.arange(n))
    true = _column(truth, n, "truth", default=np.full(n, None))
    n_columns = min(n_panels, 2 if n_panels <= 4 else 3)
    n_rows = -(-n_panels // n_columns)
    if figure is None:
        from matplotlib import pyplot

        size = max(5.4, _PANEL[0] * n_columns), _PANEL[1] * n_rows + 0.6
        figure = pyplot.figure(figsize=size, layout="constrained")
    grid = figure.subplots(n_rows, n_columns, sharey=True, squeeze=False).ravel()
    for spare in grid[n_panels:]:
        spare.remove()
    panels, drawn = np.asarray(grid[:n_panels]), set[str]()
    for position, (panel, row) in enumerate(zip(panels, rows, strict=True)):
        # Axes are labelled on the left and where nothing is below.
        lowest = position + n_columns >= n_panels
        panel.tick_params(labelbottom=lowest)
        if lowest:
            panel.set_xlabel("round of mutual supervision", color=INK, size=9)
        if position % n_columns == 0:
            panel.set_ylabel("confidence", color=INK, size=9)
        roles = _roles(model, row, true[row])
        _draw_panel(panel, model, row, roles)
        _entitle(panel, f"sample {names[row]}", model.classes_.tolist(), roles, true[row])
        drawn.update(roles.values())
    panels[0].set_ylim(bottom=0)  # shared, so only when every curve is there
    _draw_legend(panels[0].figure, drawn)
    return panels


def new_figure(width: float, height: float) -> Figure:
    """Make an empty figure of a size in inches, without pyplot."""
    _require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def dress(panel: Axes, grid: Any, size: float = 8) -> None:
    """Give a panel a light grid, quiet axes and labels of a size."""
    panel.grid(axis=grid, color="#E3E3E3", linewidth=0.7)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
    panel.spines[["left", "bottom"]].set_color(MUTED)
    panel.tick_params(colors=MUTED, labelcolor=INK, labelsize=size)


# -- what to draw -----------------------------------------------------------------------


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


# -- how to draw it ---------------------------------------------------------------------


def _draw_panel(panel: Axes, model: PLCPClassifier, row: int, roles: dict[int, str]) -> None:
    rounds, shares = np.arange(len(model.history_) + 1), {}
    for voice in ("partner_confidence", "base_confidence"):
        said = [getattr(each, voice)[row] for each in model.history_]
        shares[voice] = normalize_rows(
            np.stack([model.initial_confidence_[row], *said]), otherwise=0
        )
    for j, role in roles.items():
        partner, base = (said[:, j] for said in shares.values())
        panel.axhline(model.verdict_confidence_[row, j], color=BOTH[role], zorder=1, **_ALONE)
        panel.plot(rounds, partner, color=BOTH[role], zorder=2, linewidth=1.4, **_PARTNER)
        panel.plot(rounds, base, color=BOTH[role], zorder=3, linewidth=1.8, **_BASE)
    panel.set_xticks(rounds, ["start", *map(str, rounds[1:])])
    panel.set_xlim(-0.25, len(rounds) - 0.75)
    dress(panel, "y", 8.5)


def _entitle(panel: Axes, name: str, names: list[Any], roles: dict[int, str], truth: Any) -> None:
    """Write the sample above a panel, and its labels in the colours of their lines."""
    from matplotlib.offsetbox import AnchoredOffsetbox, HPacker, TextArea, VPacker

    labels: list[Artist] = []
    for j, role in roles.items():
        text = str(names[j])
        text = f"{role} {shorten(text, _NAME_WIDTH, placeholder='...') or text[:_NAME_WIDTH]}"
        text += " (true)" if names[j] == truth and role != "truth" else ""
        labels.append(TextArea(text, textprops={"color": BOTH[role], "size": 9}))
    title = TextArea(name, textprops={"color": INK, "size": 9.5, "weight": "bold"})
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


def _draw_legend(figure: Figure, roles: set[str]) -> None:
    from matplotlib.lines import Line2D

    above = [
        Line2D([], [], color=BOTH[role], linewidth=3, label=_ROLES[role])
        for role in sorted(roles, key=list(_ROLES).index)
    ]
    voices = (("base", _BASE), ("partner", _PARTNER), ("base without partner", _ALONE))
    below = [Line2D([], [], color=INK, label=text, **style) for text, style in voices]
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
        labelcolor=INK,
    )


# -- what can be wrong ------------------------------------------------------------------


def _require_matplotlib() -> None:
    if find_spec("matplotlib") is None:
        raise ImportError(f"Figures need matplotlib: {install('plot')}")


def _check_samples(model: PLCPClassifier, samples: ArrayLike) -> NDArray[np.intp]:
    """Return the row numbers, after checking that the model has something to draw."""
    _require_matplotlib()
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
