"""Figures of a run or a docket; matplotlib (extra ``plot``) is loaded when one is drawn."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from html import escape
from importlib.util import find_spec
from io import BytesIO
from itertools import zip_longest
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from appellate._palette import BOTH, LIGHT
from appellate._text import install
from appellate.candidates import name_rows
from appellate.candidates.names import is_missing, label_vector
from appellate.docket import Docket, free_separator
from appellate.evidence.confidence import normalize_rows
from appellate.methods.testimony.people import share_interval

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from appellate.methods.plcp import PLCPClassifier

__all__ = [
    "plot_annotators",
    "plot_confusion",
    "plot_effort",
    "plot_reliability",
    "plot_trajectories",
]

_ROLES = {
    "verdict": "first label",
    "appeal": "final label",
    "truth": "true label",
    "rival": "next candidate",
}
_BASE: dict[str, Any] = {"linestyle": "-", "marker": "o", "markersize": 4.5}
_HOLLOW = {"markerfacecolor": "white", "marker": "D"}
_PARTNER: dict[str, Any] = {**_BASE, **_HOLLOW, "linestyle": (0, (4, 2))}
_ALONE: dict[str, Any] = {"linestyle": (0, (1, 1.6)), "linewidth": 1.2}
INK, MUTED = "#222222", "#6B6B6B"
_PANEL = (3.35, 2.55)  # inches
_NAME_WIDTH = 16  # characters of a label in a title
_BINS = 10  # of confidence
_LABELS = 20  # of a confusion matrix
_ANNOTATORS = 40  # of a figure
_REVIEWED = 100  # rows whose review is marked


def plot_trajectories(
    model: PLCPClassifier,
    samples: ArrayLike,
    *,
    truth: ArrayLike | None = None,
    ids: ArrayLike | None = None,
    figure: Figure | None = None,
) -> NDArray[Any]:
    """Draw how the confidence in contested labels moves from round to round.

    One panel per sample (the paper's Fig. 2): for the first label, the final
    label and, if it differs, the true label, the confidence of the base and that of the
    partner at the start and after each round, and what the base said alone. If the label
    is unchanged, the next candidate is drawn too. Every confidence is divided by its
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


@dataclass(frozen=True, eq=False)
class _Table:
    """What the figures need of a run or of a docket.

    Attributes
    ----------
    classes : list of str
        The labels.
    label, first : ndarray of int, shape (n,)
        Final and first label, as class index; -1 for none.
    truth : ndarray of int, shape (n,), or None
        True label; -1 if it is not known, -2 if it is not a class. None if none is known.
    confidence : ndarray, shape (n,)
        Confidence of the final label.
    open : ndarray of bool, shape (n,)
        Rows that nobody reviewed.
    votes : ndarray, shape (n, l), or None
        How many annotators gave every label.
    """

    classes: list[str]
    label: NDArray[np.intp]
    first: NDArray[np.intp]
    truth: NDArray[np.intp] | None
    confidence: NDArray[np.float64]
    open: NDArray[np.bool_]
    votes: NDArray[np.float64] | None


def plot_reliability(source: Any, *, truth: ArrayLike | None = None, axes: Any = None) -> Axes:
    """Draw how often labels of some confidence are correct.

    One dot per tenth of confidence: the mean confidence of its labels, the share of them that
    is correct, with a 95 % interval (Jeffreys), and how many labels they are. Dots on the line
    mean that a confidence can be read as a probability. Reviewed rows are left out.

    Parameters
    ----------
    source : Rectification or Docket
        A run, or what ``model.docket(output="docket")`` returns.
    truth : array-like, shape (n,), default=None
        True labels, missing if they are not known; by default those of the run or docket.
    axes : matplotlib Axes, default=None
        Where to draw; by default a new figure of pyplot.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If no true label is known.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from appellate import JuryClassifier
    >>> from appellate.plotting import plot_reliability
    >>> from appellate.testing import make_clusters
    >>> X, candidates, y_true = make_clusters()
    >>> jury = JuryClassifier("kernel", random_state=0).fit(X, candidates)
    >>> docket = jury.docket(truth=y_true, output="docket")
    >>> axes = plot_reliability(docket, axes=Figure().subplots())
    >>> axes.get_xlabel()
    'confidence of the label'
    """
    table = _read(source, truth)
    known = table.open & (_needed(table) != -1) & ~np.isnan(table.confidence)
    confidence, right = table.confidence[known], (table.label == _needed(table))[known]
    axes = _new_axes(axes, 4.2, 4.0)
    axes.plot([0, 1], [0, 1], color=BOTH["rival"], linewidth=0.8, zorder=1)
    tenth = np.minimum((confidence * _BINS).astype(int), _BINS - 1)
    used = np.unique(tenth)
    x = np.array([confidence[tenth == b].mean() for b in used])
    hits = np.array([right[tenth == b].sum() for b in used])
    total = np.array([(tenth == b).sum() for b in used])
    y = hits / np.maximum(total, 1)
    low, high = share_interval(hits, total) if len(used) else (y, y)
    if len(used):
        axes.vlines(x, low, high, color=BOTH["appeal"], alpha=0.4, linewidth=3, zorder=2)
        axes.plot(x, y, "o", color=BOTH["appeal"], markersize=6, zorder=3, clip_on=False)
    for at, top, count in zip(x, np.maximum(high, y), total.tolist(), strict=True):
        axes.annotate(
            f"{count:,}", (at, top), (0, 5), textcoords="offset points", ha="center",
            color=MUTED, size=8, zorder=4, path_effects=_halo(),
        )  # fmt: skip
    axes.set(xlim=(0, 1.03), ylim=(0, 1.1), aspect="equal")  # with room for the counts
    axes.set_xlabel("confidence of the label", color=INK, size=9)
    axes.set_ylabel("share of correct labels", color=INK, size=9)
    off = float(np.sum(total * np.abs(y - x)) / max(total.sum(), 1))
    if len(right):
        share = f"{right.mean():.1%} of {len(right):,} labels are correct"
        _title(axes, share, f"calibration error {off:.3f}; counts above the bars")
    dress(axes, "both")
    return axes


def plot_confusion(
    source: Any, *, against: str = "auto", truth: ArrayLike | None = None, axes: Any = None
) -> Axes:
    """Draw which labels are mixed up, as a table of counts.

    Parameters
    ----------
    source : Rectification or Docket
        A run, or what ``model.docket(output="docket")`` returns.
    against : {"auto", "truth", "answers", "first"}, default="auto"
        What the final labels are compared with: the true labels (rows) and the final labels
        (columns); the final labels (rows) and what annotators answered (columns); or the first
        labels (rows) and the final labels (columns). Auto: the first of these that is known.
    truth : array-like, shape (n,), default=None
        True labels, missing if they are not known; by default those of the run or docket.
    axes : matplotlib Axes, default=None
        Where to draw; by default a new figure of pyplot.

    Returns
    -------
    matplotlib Axes
        Beyond 20 labels only those of the most mistakes are drawn.

    Raises
    ------
    ValueError
        If `against` is not known of the source.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from appellate import TestimonyClassifier, as_answers
    >>> from appellate.plotting import plot_confusion
    >>> answers = as_answers([["cat", "cat", "dog"], ["dog"] * 3, ["cat"] * 3])
    >>> docket = TestimonyClassifier().fit(None, answers).docket(output="docket")
    >>> axes = plot_confusion(docket, axes=Figure().subplots())
    >>> axes.get_xlabel(), axes.get_ylabel()
    ('answer of an annotator', 'final label')
    """
    table = _read(source, truth)
    known = {"truth": table.truth is not None, "answers": table.votes is not None, "first": True}
    if against == "auto":
        against = next(name for name, there in known.items() if there)
    if against not in known:
        words = ", ".join(map(repr, ("auto", *known)))
        raise ValueError(f"against={against!r} is not known. Choose one of {words}.")
    if against == "truth":
        _needed(table)
    if not known[against]:
        raise ValueError(
            "The source has no annotators' answers. Choose against='truth' or against='first'."
        )
    counts, rows, columns = _confusion(table, against)
    names, hidden = table.classes, 0
    if len(names) > _LABELS:
        wrong = counts * (1 - np.eye(len(names)))
        kept = np.sort(np.argsort(-(wrong.sum(axis=0) + wrong.sum(axis=1)))[:_LABELS])
        hidden = len(names) - len(kept)
        counts, names = counts[np.ix_(kept, kept)], [names[j] for j in kept]
    l = len(names)
    side = min(9.0, 2.2 + 0.42 * l)
    axes = _new_axes(axes, side + 0.6, side)
    _fill(axes, counts)
    size = 8 if l <= 12 else 6.5
    for i, j in zip(*np.nonzero(counts), strict=True):
        bold = {} if i == j else {"weight": "bold"}
        axes.text(
            j, i, f"{counts[i, j]:,.3g}" if counts[i, j] % 1 else f"{int(counts[i, j]):,}",
            ha="center", va="center", size=size, color=INK, **bold,
        )  # fmt: skip
    short = [_shorten(name) for name in names]
    turned = {"rotation": 40, "ha": "right"} if max(map(len, short)) > 3 else {}
    axes.set_xticks(range(l), short, parse_math=False, **turned)
    axes.set_yticks(range(l), short, parse_math=False)
    axes.set_xlabel(columns, color=INK, size=9)
    axes.set_ylabel(rows, color=INK, size=9)
    off = counts.sum() - np.trace(counts)
    note = f"{off:,.0f} of {counts.sum():,.0f} differ"
    _title(axes, note, f"{hidden} labels with fewer mistakes are left out" if hidden else "")
    dress(axes, "both", size)
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return axes


def plot_annotators(source: Any, *, most: int = _ANNOTATORS, axes: Any = None) -> Axes:
    """Draw how reliable every annotator is, the least reliable first.

    A dot is the estimated share of correct answers, the line its 95 % interval, the number how
    many answers the annotator gave. The colour tells annotators apart whose interval lies below
    the mean of all.

    Parameters
    ----------
    source : Rectification or TestimonyClassifier
        A run with annotators, or a fitted classifier. A docket does not hold annotators.
    most : int, default=40
        How many annotators are drawn.
    axes : matplotlib Axes, default=None
        Where to draw; by default a new figure of pyplot.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If the source has no annotators.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from appellate import TestimonyClassifier, as_answers
    >>> from appellate.plotting import plot_annotators
    >>> answers = as_answers([["cat", "cat", "dog"], ["dog"] * 3, ["cat"] * 3])
    >>> model = TestimonyClassifier().fit(None, answers)
    >>> axes = plot_annotators(model, axes=Figure().subplots())
    >>> [tick.get_text() for tick in axes.get_yticklabels()][0]
    '2'
    """
    people = getattr(source, "annotators_", None)
    if people is None and getattr(source, "annotators", None) is not None:
        people = nw.from_native(source.annotators, eager_only=True).to_dict(as_series=False)
    if people is None:
        raise ValueError(
            "The source has no annotators. Pass a run of a table with annotators, or a fitted "
            "TestimonyClassifier."
        )
    accuracy, low, high, count = (
        np.asarray(people[name], dtype=np.float64)
        for name in ("accuracy", "low", "high", "answers")
    )
    names = [str(name) for name in np.asarray(people["person"], dtype=object).tolist()]
    mean = float(count @ accuracy / max(count.sum(), 1e-9))
    order = np.argsort(accuracy, kind="stable")[: max(1, most)]
    axes = _new_axes(axes, 5.4, 0.9 + 0.22 * len(order))
    axes.axvline(mean, color=BOTH["rival"], linewidth=0.8, zorder=1)
    for place, j in enumerate(order):
        colour = BOTH["verdict" if high[j] < mean else "appeal"]
        axes.hlines(place, low[j], high[j], color=colour, alpha=0.4, linewidth=3, zorder=2)
        axes.plot(accuracy[j], place, "o", color=colour, markersize=5, zorder=3)
        axes.annotate(
            f"{count[j]:,.0f}", (1.0, place), (6, 0), xycoords=("axes fraction", "data"),
            textcoords="offset points", va="center", color=MUTED, size=8, annotation_clip=False,
        )  # fmt: skip
    axes.annotate(
        "answers", (1.0, 1.0), (6, 4), xycoords="axes fraction", textcoords="offset points",
        color=MUTED, size=8, annotation_clip=False,
    )  # fmt: skip
    ticks = [_shorten(names[j]) for j in order]
    axes.set_yticks(range(len(order)), ticks, parse_math=False)
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.set_xlim(max(0.0, float(low[order].min()) - 0.03), 1.0)
    axes.set_xlabel("estimated share of correct answers", color=INK, size=9)
    below = int(np.sum(high < mean))
    more = len(names) - len(order)
    note = f"line: mean {mean:.2f}" + (f"; {more} more are not shown" if more else "")
    _title(axes, f"{below} of {len(names)} annotators are clearly below the mean", note)
    dress(axes, "x")
    axes.tick_params(axis="y", length=0)
    return axes


def plot_effort(source: Any, *, truth: ArrayLike | None = None, axes: Any = None) -> Axes:
    """Draw how many wrong labels are left after a review of the least certain rows.

    By the confidences: after k rows the sum of ``1 - confidence`` over all others. If true
    labels are known, how many labels really are wrong after the same review is drawn too.

    Parameters
    ----------
    source : Rectification or Docket
        A run, or what ``model.docket(output="docket")`` returns. The confidences of PLCP are not
        calibrated: a run of it is refused, and of its docket the true labels only are meaningful.
    truth : array-like, shape (n,), default=None
        True labels, missing if they are not known; by default those of the run or docket.
    axes : matplotlib Axes, default=None
        Where to draw; by default a new figure of pyplot.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from appellate import JuryClassifier
    >>> from appellate.plotting import plot_effort
    >>> from appellate.testing import make_clusters
    >>> X, candidates, y_true = make_clusters()
    >>> jury = JuryClassifier("kernel", random_state=0).fit(X, candidates)
    >>> axes = plot_effort(jury.docket(output="docket"), axes=Figure().subplots())
    >>> axes.get_xlabel()
    'rows reviewed, the least certain first'
    """
    if hasattr(source, "effort"):
        source._check_calibrated("expect wrong labels")
    table = _read(source, truth)
    some = table.open & ~np.isnan(table.confidence)
    order = np.flatnonzero(some)[np.argsort(table.confidence[some], kind="stable")]
    left = _remaining(1 - table.confidence[order])
    reviewed = np.arange(len(left))
    axes = _new_axes(axes, 5.4, 3.2)
    axes.plot(reviewed, left, color=BOTH["appeal"], linewidth=1.8, zorder=3)
    axes.fill_between(reviewed, left, color=BOTH["appeal"], alpha=0.08, linewidth=0)
    lines = [("expected, by the confidences", BOTH["appeal"])]
    if table.truth is not None and (table.truth[order] != -1).all() and len(order):
        wrong = _remaining((table.label != table.truth)[order].astype(np.float64))
        axes.plot(reviewed, wrong, color=BOTH["truth"], linewidth=1.4, zorder=2)
        lines.append(("by the true labels", BOTH["truth"]))
    marks = [0, *([_REVIEWED] if len(order) > 2 * _REVIEWED else [])]
    for at in marks:
        axes.plot(at, left[at], "o", color=BOTH["appeal"], markersize=5, zorder=4)
        text = f"{left[at]:,.0f} now" if at == 0 else f"{left[at]:,.0f} after {at} rows"
        axes.annotate(
            text, (at, left[at]), (7, 5), textcoords="offset points", color=INK, size=9, zorder=5,
            path_effects=_halo(),
        )  # fmt: skip
    for place, (text, colour) in enumerate(lines):
        axes.text(
            0.99, 0.95 - 0.08 * place, text, transform=axes.transAxes, ha="right", va="top",
            color=colour, size=9,
        )  # fmt: skip
    axes.set_xlim(-0.02 * max(len(order), 1), max(len(order), 1))
    axes.set_ylim(0, 1.15 * max(float(left[0]), *(line.get_ydata()[0] for line in axes.lines), 1))
    axes.set_xlabel("rows reviewed, the least certain first", color=INK, size=9)
    axes.set_ylabel("wrong labels left", color=INK, size=9)
    dress(axes, "y")
    return axes


def inline_figures(source: Any) -> str:
    """Return two figures of a run as images for a notebook, as HTML; empty without matplotlib.

    What review is worth (not for PLCP), and how reliable the confidences are if true labels are
    known, else how reliable the annotators are, else which labels changed.
    """
    if find_spec("matplotlib") is None:
        return ""
    table = _read(source, None)
    drawn: list[tuple[str, Callable[..., Any], tuple[float, float]]] = []
    if source.settings["method"] != "plcp":
        drawn.append(("Wrong labels left by rows reviewed", plot_effort, (5.0, 3.2)))
    if table.truth is not None:
        drawn.append(("Share of correct labels by confidence", plot_reliability, (3.4, 3.2)))
    elif source.annotators is not None and len(source.annotators) > 1:
        height = 0.9 + 0.22 * min(len(source.annotators), 12)
        few = partial(plot_annotators, most=12)
        drawn.append(("Reliability of the annotators", few, (4.6, height)))
    elif 1 < len(table.classes) <= _LABELS:
        drawn.append(("First and final labels", plot_confusion, (4.4, 4.0)))
    out = []
    for name, draw, size in drawn:
        figure = new_figure(*size)
        draw(source, axes=figure.subplots())
        with BytesIO() as file:
            figure.savefig(file, format="png", dpi=110)
            content = b64encode(file.getvalue()).decode("ascii")
        style = f"max-width: 100%; width: {size[0] * 96:.0f}px"
        out.append(
            f'<img alt="{escape(name)}" style="{style}" src="data:image/png;base64,{content}">'
        )
    return "".join(out)


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


# -- a run or a docket as arrays -----------------------------------------------------------


def _read(source: Any, truth: Any) -> _Table:
    """Collect what the figures need."""
    _require_matplotlib()
    if isinstance(source, Docket):
        n = len(source.candidates)
        given = source.truth if truth is None else truth
        classes = [str(name) for name in source.class_names.tolist()]
        sure = source.appeal_confidence[np.arange(n), source.appeal].astype(np.float64)
        votes = getattr(source, "votes", None)
        known = _codes(given, classes, n)
        every = np.ones(n, dtype=bool)
        return _Table(classes, source.appeal, source.verdict, known, sure, every, votes)
    if not hasattr(source, "docket") or not hasattr(source, "settings"):
        raise TypeError(
            f"A figure needs a run of appellate.rectify or a Docket, not a "
            f"{type(source).__name__}. Call model.docket(output='docket') on a classifier."
        )
    frame = nw.from_native(source.docket, eager_only=True)
    columns = {name: frame[name].to_list() for name in frame.columns}
    n = len(frame)
    named = [columns[name] for name in ("label", "first_label")]
    spare = {str(v) for values in named for v in values if not is_missing(v)}
    classes = [str(name) for name in source.settings["labels"]]
    classes += sorted(spare - set(classes))
    label, first = (_codes(values, classes, n) for values in named)
    sure = np.array([np.nan if c is None else c for c in columns["confidence"]], float)
    closed = {"reviewed", "excluded"}
    open_ = np.array([outcome not in closed for outcome in columns["outcome"]], dtype=bool)
    votes = _read_votes(columns["votes"], classes) if "votes" in columns else None
    known = _codes(columns.get("truth") if truth is None else truth, classes, n)
    nobody = np.full(n, -1)
    label, first = (nobody if each is None else each for each in (label, first))
    return _Table(classes, label, first, known, sure, open_, votes)


def _codes(values: Any, classes: list[str], n: int) -> NDArray[np.intp] | None:
    """Class indices of labels: -1 for a missing one, -2 for one that is not a class."""
    if values is None:
        return None
    column = label_vector(values).tolist()
    if len(column) != n:
        raise ValueError(f"truth has {len(column)} values, but there are {n} rows.")
    place = {name: j for j, name in enumerate(classes)}
    found = [-1 if is_missing(v) or str(v) == "" else place.get(str(v), -2) for v in column]
    return None if set(found) <= {-1} else np.array(found, dtype=np.intp)


def _read_votes(cells: list[Any], classes: list[str]) -> NDArray[np.float64]:
    """Read cells such as ``cat:3|dog:1``, (n, l)."""
    glue, place = free_separator(classes), {name: j for j, name in enumerate(classes)}
    votes = np.zeros((len(cells), len(classes)))
    for i, cell in enumerate(cells):
        for part in filter(None, ("" if is_missing(cell) else str(cell)).split(glue)):
            name, _, count = part.rpartition(":")
            if name in place:
                votes[i, place[name]] = float(count)
    return votes


def _needed(table: _Table) -> NDArray[np.intp]:
    if table.truth is None:
        raise ValueError(
            "No true label is known. Pass truth=, one label per row, or call rectify with truth=."
        )
    return table.truth


def _confusion(table: _Table, against: str) -> tuple[NDArray[Any], str, str]:
    """Counts, (l, l), and what their rows and columns are."""
    l, counts = len(table.classes), np.zeros((len(table.classes),) * 2)
    if against == "answers":
        assert table.votes is not None
        labelled = table.label >= 0
        np.add.at(counts, table.label[labelled], table.votes[labelled][:, :l])
        return counts, "final label", "answer of an annotator"
    rows = table.first if against == "first" else _needed(table)
    both = (rows >= 0) & (table.label >= 0)
    np.add.at(counts, (rows[both], table.label[both]), 1)
    return counts, "first label" if against == "first" else "true label", "final label"


def _remaining(parts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum of all parts from the k-th on, (n + 1,)."""
    return np.append(np.cumsum(parts[::-1])[::-1], 0.0)


# -- what all figures share -----------------------------------------------------------------


def _new_axes(axes: Any, width: float, height: float) -> Any:
    if axes is not None:
        return axes
    _require_matplotlib()
    from matplotlib import pyplot

    return pyplot.figure(figsize=(width, height), layout="constrained").subplots()


def _halo() -> list[Any]:
    """Return a white edge for text that may cross a line."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=2.5, foreground="white")]


def _fill(axes: Axes, counts: NDArray[Any]) -> None:
    """Colour the cells: agreement in the colour of marks, mistakes by how many they are."""
    from matplotlib.colors import to_rgb

    l = len(counts)
    wrong = counts * (1 - np.eye(l))
    depth = (np.sqrt(wrong / max(wrong.max(), 1)))[:, :, np.newaxis]
    paper, colour, same = (
        np.array(to_rgb(c)) for c in ("#FFFFFF", BOTH["verdict"], LIGHT["mark"])
    )
    shade = paper + 0.75 * depth * (colour - paper)
    empty = np.array(to_rgb("#F7F7F5"))
    shade[wrong == 0] = empty
    shade[np.arange(l), np.arange(l)] = np.where((np.diag(counts) > 0)[:, None], same, empty)
    axes.imshow(shade, aspect="equal")
    axes.set_xticks(np.arange(l + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(l + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=2)
    axes.tick_params(which="minor", length=0)


def _title(axes: Axes, text: str, note: str = "") -> None:
    axes.set_title(text, loc="left", color=INK, size=10, weight="bold", pad=18 if note else 6)
    if note:
        axes.annotate(
            note, (0, 1), (0, 6), xycoords="axes fraction", textcoords="offset points",
            color=MUTED, size=8.5,
        )  # fmt: skip


def _shorten(name: str) -> str:
    return name if len(name) <= _NAME_WIDTH else name[: _NAME_WIDTH - 1] + "…"


# -- what to draw -----------------------------------------------------------------------


def _roles(model: PLCPClassifier, row: int, truth: Any) -> dict[int, str]:
    """Labels to draw and why: at least two if there are two candidates."""
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
        text = (
            f"{_ROLES[role]} {shorten(text, _NAME_WIDTH, placeholder='...') or text[:_NAME_WIDTH]}"
        )
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
            f"{name} has shape {column.shape}, but {n} samples were fitted; pass one value "
            "per sample, in the order of training."
        )
    return list(column.tolist())
