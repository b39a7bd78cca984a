"""
Where candidate sets come from
==============================

The same rows and true labels with three kinds of candidate sets. How the sets arose decides how to
read them, and the data themselves show how they arose.
"""

# %%
# Eight classes with a long tail. *Label-first*: each false label is added with probability
# 0.4, as if annotators add guesses. *Set-first*: four rows share the union of their labels, as
# faces share the names of a caption. *Mixed*: half of the rows of each kind.

import matplotlib.pyplot as plt
import numpy as np

from appellate import JuryClassifier
from appellate._palette import BOTH
from appellate.datasets import make_partial_labels

rng = np.random.RandomState(0)
shares = 0.7 ** np.arange(8)
truth = rng.choice(8, size=600, p=shares / shares.sum())
X = 1.2 * rng.normal(size=(8, 6))[truth] + 1.2 * rng.normal(size=(600, 6))

label_first = make_partial_labels(truth, flip_probability=0.4, random_state=0)
set_first = make_partial_labels(truth, strategy="set_first", bag_size=4, random_state=0)
mixed = np.where((np.arange(600) % 2 == 0)[:, None], label_first, set_first)
problems = {"label-first": label_first, "set-first": set_first, "mixed": mixed}
colors = dict(zip(problems, (BOTH["verdict"], BOTH["appeal"], BOTH["truth"]), strict=True))

# %%
# If a row's label were drawn from its set at random, how many rows of each class would there be?
# Set-first data have about as many, for frequent and rare labels alike, because a frequent label
# is already in more sets. In label-first data frequent labels have more rows than expected.

figure, left = plt.subplots(figsize=(5.5, 3.4), layout="constrained")
for name, sets in problems.items():
    expected = (sets / sets.sum(axis=1, keepdims=True)).sum(axis=0)
    ratio = np.bincount(truth, minlength=8) / expected
    left.plot(ratio, "o-", color=colors[name])
    left.text(7.2, ratio[-1], name, color=colors[name], va="center")
left.axhline(1, color=BOTH["rival"], linewidth=0.8)
left.set(xlabel="class, the most frequent first", ylabel="rows with the label / expected")
left.set(xlim=(-0.3, 8.7), xticks=range(8))
left.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# These ratios need the true labels. The jury's criterion does not: how well do out-of-fold
# predictions explain the sets? It is computed for three values of tau, the power of a label's
# frequency by which the posterior is divided. The largest wins, unless its gain is doubtful. The
# ring is what was chosen. If only half of the sets came first, the gain is doubtful, label-first
# is used, and four points are lost.

figure, right = plt.subplots(figsize=(5.5, 3.4), layout="constrained")
for name, sets in problems.items():
    jury = JuryClassifier("kernel", random_state=0).fit(X, sets)
    best = [max(jury.criterion_[tau]) for tau in (0.0, 0.5, 1.0)]
    gain = np.subtract(best, best[0])
    right.plot([0, 0.5, 1], gain, "o-", color=colors[name])
    right.text(1.03, gain[-1], name, color=colors[name], va="center")
    chosen = [0, 0.5, 1].index(jury.ambiguity_)
    right.scatter(jury.ambiguity_, gain[chosen], s=140, facecolor="none", color=colors[name])
    print(f"{name}: tau = {jury.ambiguity_:g} is chosen;", end=" ")
    for tau in (0.0, 1.0):
        fixed = JuryClassifier("kernel", ambiguity=tau, random_state=0).fit(X, sets)
        print(f"tau = {tau:g} has {np.mean(fixed.transduction_ == truth):.0%} correct", end="; ")
    print(f"chosen {np.mean(jury.transduction_ == truth):.0%}")
right.set(xlabel="tau", ylabel="criterion, beyond that of tau = 0", xticks=[0, 0.5, 1])
right.set_xlim(-0.05, 1.3)
right.spines[["top", "right"]].set_visible(False)
plt.show()
