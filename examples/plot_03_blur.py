"""
Blur at several temperatures
============================

Before one classifier hands its confidence to the other, it is blurred: the order of the
candidates is kept, the certainty is not. Here is what the temperature does, to one confidence and
to a result.
"""

# %%
# One sample with five candidates
# -------------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from appellate import AGGDClassifier, PLCPClassifier
from appellate._palette import BOTH
from appellate.confidence import blur
from appellate.datasets import make_ambiguous_classification

confidence = np.array([[0.62, 0.21, 0.1, 0.05, 0.02]])
everything = np.ones_like(confidence, dtype=bool)
temperatures = (-6, -3, -1, 0, 1, 2)

figure, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
shades = plt.colormaps["viridis"](np.linspace(0.05, 0.85, len(temperatures)))
ax.scatter(np.arange(5) - 0.32, confidence[0], marker="_", s=90, color="k", label="as it was")
for i, (temperature, shade) in enumerate(zip(temperatures, shades, strict=True)):
    softened = blur(confidence, everything, temperature)[0]
    beside = np.arange(5) - 0.2 + 0.1 * i
    ax.vlines(beside, 0, softened, color=shade, linewidth=1)
    ax.scatter(beside, softened, s=22, color=shade, label=f"blur = {temperature}")
ax.set(xlabel="candidate", ylabel="confidence handed on", xticks=range(5), ylim=(0, None))
ax.set_xticklabels(["first", "second", "third", "fourth", "fifth"])
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, fontsize=8)

# %%
# A whole fit
# -----------
# Test accuracy of PL-AGGD-PLCP on three generated problems, each with its own seed. Low
# temperatures tell the partner next to nothing; which high one is best depends on the data.

figure, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
shades = (BOTH["appeal"], BOTH["verdict"], BOTH["truth"])
grid = (-6, -4, -2, -1, 0, 1, 2)
for seed, shade in enumerate(shades):
    X, candidates, truth = make_ambiguous_classification(
        600,
        12,
        8,
        class_sep=2.2,
        strategy="cooccurring",
        epsilon=0.9,
        random_state=seed,
        return_X_candidates_y=True,
    )
    train, test = train_test_split(np.arange(len(X)), test_size=0.5, random_state=seed)
    scores = []
    for temperature in grid:
        model = PLCPClassifier(AGGDClassifier(), blur=temperature)
        model.fit(X[train], candidates[train])
        scores.append(model.score(X[test], truth[test]))
    ax.plot(grid, scores, marker="o", color=shade, label=f"problem {seed + 1}")
    base = AGGDClassifier().fit(X[train], candidates[train]).score(X[test], truth[test])
    ax.axhline(base, color=shade, linestyle=":", linewidth=1)
ax.axvline(-1, color=BOTH["rival"], linewidth=0.8)
ax.set(xlabel="blur (line: the paper's)", ylabel="test accuracy (dotted: base alone)")
ax.legend(frameon=False, fontsize=8)
plt.show()
