"""Draw the pictures of the README and the guide from real runs on handwritten digits.

Run ``python docs/images/make_docket.py`` with ``appellate[cli,io,plot,report,table]``, Playwright
and Chromium installed. It writes ``docket.png``, a drawing of a few rows of PL-KNN with a partner,
and ``page-light.png``, ``page-dark.png`` and ``page-phone.png``, the page that ``appellate demo``
leaves, as a browser shows it. The rows of the drawing are not picked by hand: they are the first
three changed labels and the first unchanged one of the docket, in its own order.
"""

from __future__ import annotations

import csv
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.utils import Bunch

from appellate import PLCPClassifier, PLKNNClassifier
from appellate._palette import LIGHT
from appellate.cli.app import run
from appellate.datasets import make_partial_labels

VERDICT, APPEAL, INK, MUTED, FAINT = (
    LIGHT[name] for name in ("verdict", "appeal", "ink", "soft", "line")
)
OVERTURNED = LIGHT["overturned"]
WIDTH, TOP, ROW, FOOT = 100.0, 6.5, 8.0, 6.0  # of the drawing, heading, a row, the footer
DIGIT, SAMPLE, SET, LABELS, OUTCOME, BEFORE, AFTER, TRUTH = 6.5, 13, 22, 47, 59.5, 67, 80, 95
BAR = 7.5
NOTE = (
    "Handwritten digits; on average {share:.0f} of 10 labels are candidates. The model never saw "
    "the true labels. First rows of each outcome, as they come."
)


def load() -> Bunch:
    """Hide the labels of half of the digits in candidate sets."""
    X, y = load_digits(return_X_y=True)
    ids, _ = train_test_split(np.arange(len(y)), test_size=0.5, random_state=0)
    candidates = make_partial_labels(y[ids], flip_probability=0.7, random_state=0)
    return Bunch(ids=ids, train=X[ids] / 16, candidates=candidates, truth=y[ids])


def main() -> None:
    """Fit, draw and write the pictures."""
    data = load()
    model = PLCPClassifier(PLKNNClassifier(), random_state=0, keep_confidences=True)
    model.fit(data.train, data.candidates)
    draw_docket(model, data)
    show_page()


def show_page() -> None:
    """Take images of the page that the demo leaves: overview, review, and on a phone.

    The row is the first whose label changed and is correct now.
    """
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        run(["demo", "--out", folder])
        with Path(folder, "docket.csv").open(encoding="utf-8", newline="") as file:
            rows = [r for r in csv.DictReader(file) if r["outcome"] == "changed"]
        row = next(r["id"] for r in rows if r["label"] == r["truth"])
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, size, scheme, view in (
            ("light", (1280, 800), "light", "overview"),
            ("dark", (1280, 800), "dark", f"review&show=changed&row={row}"),
            ("phone", (390, 844), "light", f"review&show=changed&row={row}"),
        ):
            shown = browser.new_page(
                viewport={"width": size[0], "height": size[1]}, color_scheme=scheme
            )
            shown.goto(Path(folder, "docket.html").as_uri() + f"#{view}")
            shown.wait_for_selector("html[data-ready]")
            shown.screenshot(path=Path(__file__).with_name(f"page-{name}.png"))
        browser.close()


def draw_docket(model: PLCPClassifier, data: Bunch) -> None:
    """Choose rows and draw them."""
    docket = model.docket(ids=data.ids, truth=data.truth, output="dict")
    rows = choose(docket)

    height = TOP + ROW * len(rows) + FOOT
    figure = Figure(figsize=(9, 9 * height / WIDTH))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(height, 0))
    axes.set_axis_off()
    axes.add_patch(rounded(0.3, 0.3, WIDTH - 0.6, height - 0.6, "white", edge="#D0D7DE", radius=2))
    draw_heading(axes)
    for position, row in enumerate(rows):
        draw_row(axes, TOP + ROW * position, model, data, docket, row)
    draw_line(axes, height - FOOT)
    note = NOTE.format(share=data.candidates.sum(axis=1).mean())
    axes.text(2.5, height - FOOT / 2 - 0.2, note, va="center", size=7.6, color=MUTED)
    path = Path(__file__).with_name("docket.png")
    figure.savefig(path, dpi=150, transparent=True, pil_kwargs={"optimize": True})


def choose(docket: dict[str, Any]) -> list[int]:
    """Rows of the picture, by the rule above."""
    overturned = docket["outcome"] == "changed"
    return [*np.flatnonzero(overturned)[:3].tolist(), *np.flatnonzero(~overturned)[:1].tolist()]


def draw_heading(axes: Axes) -> None:
    """Write the names of the columns."""
    style = {"va": "center", "size": 9, "color": MUTED}
    y = TOP / 2 + 0.4
    axes.text(SAMPLE, y, "sample", **style)
    axes.text(SET, y, "candidates", **style)
    axes.text(LABELS - 3.5, y, "first", **style | {"ha": "center", "color": VERDICT})
    axes.text(LABELS + 3.5, y, "final", **style | {"ha": "center", "color": APPEAL})
    axes.text(OUTCOME, y, "outcome", **style | {"ha": "center"})
    axes.text(BEFORE, y, "base alone", **style)
    axes.text(AFTER, y, "with partner", **style)
    axes.text(TRUTH, y, "true", **style | {"ha": "center"})


def draw_row(
    axes: Axes, top: float, model: PLCPClassifier, data: Bunch, docket: dict[str, Any], row: int
) -> None:
    """Draw one sample: picture, labels, outcome and confidences."""
    middle = top + ROW / 2
    draw_line(axes, top)
    verdict, appeal, truth = (int(docket[name][row]) for name in ("first_label", "label", "truth"))

    half = ROW / 2 - 0.7
    axes.imshow(
        data.train[row].reshape(8, 8),
        cmap="gray_r",
        extent=(DIGIT - half, DIGIT + half, middle + half, middle - half),
        interpolation="nearest",
        aspect="auto",
        zorder=3,
    )
    axes.set(xlim=(0, WIDTH), ylim=(axes.get_ylim()[0], 0))
    axes.text(SAMPLE, middle, docket["id"][row], va="center", size=10, color=INK)
    draw_candidates(axes, middle, data.candidates[row], verdict, appeal)
    for x, label, color in ((LABELS - 3.5, verdict, VERDICT), (LABELS + 3.5, appeal, APPEAL)):
        axes.text(x, middle, label, ha="center", va="center", size=14, color=color, weight="bold")
    axes.annotate(
        "",
        (LABELS + 1.4, middle),
        (LABELS - 1.6, middle),
        arrowprops={"arrowstyle": "-|>", "color": MUTED, "linewidth": 1, "mutation_scale": 8},
    )
    draw_outcome(axes, middle, docket["outcome"][row])

    labels = [verdict, appeal] if verdict != appeal else [verdict]
    for x, confidence in ((BEFORE, model.verdict_confidence_), (AFTER, model.confidence_)):
        draw_bars(axes, x, middle, confidence[row], labels)
    draw_truth(axes, middle, truth, right=appeal == truth)


def draw_line(axes: Axes, y: float) -> None:
    """Draw a line between rows."""
    axes.plot([2.5, WIDTH - 2.5], [y, y], color=FAINT, linewidth=0.9)


def draw_candidates(axes: Axes, y: float, candidates: Any, verdict: int, appeal: int) -> None:
    """Write all labels in a line, those outside the set in a faint grey."""
    colors = {verdict: VERDICT} | {appeal: APPEAL}
    for label, inside in enumerate(candidates):
        axes.text(
            SET + 0.8 + 1.9 * label,
            y,
            label,
            ha="center",
            va="center",
            size=9.2,
            color=colors.get(label, INK) if inside else "#D0D4D9",
            weight="bold" if label in colors else "normal",
        )


def draw_outcome(axes: Axes, y: float, outcome: str) -> None:
    """Draw the outcome as a chip."""
    back, front = (OVERTURNED, "white") if outcome == "changed" else (FAINT, INK)
    axes.add_patch(rounded(OUTCOME - 5.1, y - 1.7, 10.2, 3.4, back, radius=1.7))
    axes.text(OUTCOME, y, outcome, ha="center", va="center", size=7.6, color=front, weight="bold")


def draw_bars(axes: Axes, x: float, y: float, confidence: Any, labels: list[int]) -> None:
    """Draw the confidence in the first and in the final label as bars."""
    pairs = zip(labels, (VERDICT, APPEAL) if len(labels) == 2 else (APPEAL,), strict=True)
    for position, (label, color) in enumerate(pairs):
        middle = y + 2.9 * (position - (len(labels) - 1) / 2)
        axes.barh(middle, BAR, 1.7, left=x, color=FAINT)
        axes.barh(middle, BAR * confidence[label], 1.7, left=x, color=color)
        axes.text(
            x + BAR + 0.7, middle, f"{confidence[label]:.2f}", va="center", size=8, color=INK
        )


def draw_truth(axes: Axes, y: float, truth: int, *, right: bool) -> None:
    """Write the true label, and whether the final label equals it."""
    axes.text(TRUTH - 1, y, truth, ha="center", va="center", size=12, color=INK, weight="bold")
    mark, color = ("\N{CHECK MARK}", "#1A7F37") if right else ("\N{BALLOT X}", "#CF222E")
    axes.text(TRUTH + 1.8, y, mark, ha="center", va="center", size=10, color=color)


def rounded(
    x: float, y: float, width: float, height: float, color: str, *, radius: float, edge: str = ""
) -> FancyBboxPatch:
    """Make a filled box with round corners."""
    return FancyBboxPatch(
        (x + radius, y + radius),
        width - 2 * radius,
        height - 2 * radius,
        boxstyle=f"round,pad={radius}",
        facecolor=color,
        edgecolor=edge or color,
        linewidth=1.2 if edge else 0,
    )


if __name__ == "__main__":
    main()
