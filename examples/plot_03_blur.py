"""
Blur at several temperatures
============================

Before one classifier passes its confidence to the other, the confidence is blurred: the order of
the candidates stays, the differences shrink. This example shows the effect of the temperature on
one confidence and on a result.
"""

# %%
# One sample with five candidates
# -------------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from appellate import AGGDClassifier, PLCPClassifier
from appellate._palette import BOTH
from appellate.datasets import make_ambiguous_classification
from appellate.evidence import blur

confidence = np.array([[0.62, 0.21, 0.1, 0.05, 0.02]])
everything = np.ones_like(confidence, dtype=bool)
temperatures = (2, 1, 0, -1, -3, -6)
handed_on = [blur(confidence, everything, each)[0] for each in temperatures]

figure, ax = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
lines = ax.plot(np.array([confidence[0], *handed_on]), marker="o", color=BOTH["rival"])
lines[0].set_color(BOTH["appeal"])
ax.text(1.15, 0.9, "first candidate", color=BOTH["appeal"])
ax.text(3, 0.13, "the other four", color=BOTH["rival"], va="top")
ax.set(xlim=(-0.6, 6.3), ylim=(0, 1), ylabel="confidence")
ax.set_xticks(range(7), ["as it was", *(f"blur {each}" for each in temperatures)])
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# A whole fit
# -----------
# Test accuracy of PL-AGGD-PLCP on three generated problems, each with its own seed. Low
# temperatures give the partner almost no information. Which high one is best depends on the data.

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
    ax.plot(grid, scores, marker="o", color=shade)
    ax.text(2.15, scores[-1], f"problem {seed + 1}", color=shade, va="center")
    base = AGGDClassifier().fit(X[train], candidates[train]).score(X[test], truth[test])
    ax.axhline(base, color=shade, linestyle=":", linewidth=1)
ax.axvline(-1, color=BOTH["rival"], linewidth=0.8)
ax.set(xlabel="blur (line: the paper's)", ylabel="test accuracy (dotted: base alone)")
ax.set_xlim(-6.3, 3.4)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
