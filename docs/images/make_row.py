"""Draw row.png: one row of ``appellate demo``, its candidates, its label, and why.

Run ``python docs/images/make_row.py`` with ``appellate[cli,io,plot,report,table]`` installed. The
row is not picked by hand: it is the first row of the demo's table with five candidates or fewer
whose first label was wrong and whose final label is correct.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import imread

import appellate
from appellate._palette import LIGHT
from appellate.cli.app import run as run_command

FIRST, FINAL, INK, SOFT, LINE, GOOD = (
    LIGHT[name] for name in ("verdict", "appeal", "ink", "soft", "line", "good")
)
MOST = 5  # candidates
WIDTH, HEIGHT = 9.0, 2.9


def main() -> None:
    """Run the demo and draw the row."""
    with tempfile.TemporaryDirectory() as folder:
        run_command(["demo", "--out", folder, "--json"])
        columns = {"candidates": "labels", "truth": "truth", "image": "image"}
        run = appellate.rectify(f"{folder}/digits.csv", **columns)
        pictures = [imread(Path(folder) / name) for name in run.labels["image"]]
        figure = draw(run, pictures, choose(run.docket))
    path = Path(__file__).with_name("row.png")
    figure.savefig(path, dpi=150, pil_kwargs={"optimize": True})


def choose(docket: Any) -> int:
    """Return the row of the picture, by the rule above."""
    rescued = ~docket["first_correct"].astype(bool) & docket["correct"].astype(bool)
    return int(np.flatnonzero(rescued & (docket["n_candidates"] <= MOST))[0])


def draw(run: appellate.Rectification, pictures: list[Any], row: int) -> Figure:
    """Draw the row: the image, its candidates, and the rows that it resembles."""
    item, why = run.docket.iloc[row], run.explain(row)
    figure = Figure(figsize=(WIDTH, HEIGHT), facecolor="white")
    image = figure.add_axes((0.015, 0.14, 0.21, 0.66))
    show(image, pictures[row])
    figure.text(0.015, 0.9, f"row {item['id']}", color=SOFT, size=10)
    labels = item["candidates"].split("|")
    shares = dict(zip(map(str, why.classes), why.confidence, strict=True))
    labels.sort(key=lambda label: -shares[label])
    bars = figure.add_axes((0.29, 0.14, 0.33, 0.66))
    draw_candidates(bars, labels, shares, item)
    figure.text(0.27, 0.9, "Exactly one candidate is true:", color=INK, size=10)
    figure.text(0.67, 0.9, "It resembles these rows:", color=INK, size=10)
    for place, near in enumerate(why.neighbors[:6]):
        x, y = 0.675 + 0.108 * (place % 3), 0.5 - 0.42 * (place // 3)
        show(figure.add_axes((x, y, 0.07, 0.27)), pictures[near.row])
        colour = FINAL if near.label == item["label"] else SOFT
        figure.text(x + 0.078, y + 0.12, str(near.label), color=colour, size=12, weight="bold")
    figure.text(
        0.27, 0.03, f"first label {item['first_label']}, final label {item['label']}: correct",
        color=GOOD, size=10, weight="bold",
    )  # fmt: skip
    return figure


def show(axes: Axes, picture: Any) -> None:
    """Show an image without ticks."""
    axes.imshow(picture, cmap="gray", vmin=0, vmax=1)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_color(LINE)


def draw_candidates(axes: Axes, labels: list[str], shares: dict[str, float], item: Any) -> None:
    """Draw one bar per candidate: its confidence; the first label is marked."""
    places = range(len(labels))
    values = [shares[label] for label in labels]
    colours = [FINAL if label == item["label"] else LINE for label in labels]
    axes.barh(places, values, color=colours, height=0.62)
    for place, (label, value) in enumerate(zip(labels, values, strict=True)):
        share = f"{value:.0%}" if value >= 0.005 else "<1%"
        text = share + (" (first label)" if label == item["first_label"] else "")
        inside = value > 0.75
        axes.text(
            value - 0.02 if inside else value + 0.02, place, text, va="center",
            ha="right" if inside else "left", size=9,
            color="white" if inside else FIRST if label == item["first_label"] else SOFT,
        )  # fmt: skip
    axes.set_yticks(places, labels, size=12, color=INK)
    axes.set(xlim=(0, 1), xticks=[], ylim=(len(labels) - 0.4, -0.6))
    axes.tick_params(axis="y", length=0)
    axes.spines[:].set_visible(False)


if __name__ == "__main__":
    main()
