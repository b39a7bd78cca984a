"""Rows of each label against rows expected if labels were drawn evenly from their sets.

Usage: python docs/images/make_found.py     with APPELLATE_DATA_HOME; writes found.svg beside it
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from appellate._palette import BOTH
from appellate.datasets import load_fgnet, load_lost, load_msrcv2

LEAST = 10  # rows of a label, below which a ratio says little

plt.rcParams["svg.hashsalt"] = "appellate"
figure, panels = plt.subplots(
    1, 3, figsize=(8.5, 3.1), sharey=True, sharex=True, layout="constrained"
)
for panel, load, title in zip(
    panels, (load_lost, load_msrcv2, load_fgnet), ("Lost", "MSRCv2", "FG-NET"), strict=True
):
    _, candidates, truth = load(return_X_candidates_y=True)
    expected = (candidates / candidates.sum(axis=1, keepdims=True)).sum(axis=0)
    real = np.bincount(truth, minlength=len(expected))
    often = real >= LEAST
    real, ratio = real[often], real[often] / expected[often]
    panel.scatter(real, ratio, s=24, color=BOTH["appeal"], linewidths=0)
    sys.stdout.write(
        f"{title}: {real.min()} to {real.max()} rows, "
        f"real / expected {ratio.min():.2f} to {ratio.max():.2f}\n"
    )
    panel.axhline(1, color=BOTH["rival"], linewidth=0.8)
    panel.set(xscale="log", yscale="log", title=title)
    panel.spines[["top", "right"]].set_visible(False)
panels[0].set_ylabel("real / expected rows")
panels[0].set_yticks([0.5, 1, 2], ["0.5", "1", "2"])
panels[0].set_xticks([10, 30, 100, 300], ["10", "30", "100", "300"])
panels[0].minorticks_off()
panels[1].set_xlabel("rows that have the label")
figure.savefig(Path(__file__).with_name("found.svg"), metadata={"Date": None})
