"""
Ages: decisions with a cost
===========================

Several annotators guess the age in every photograph; their guesses are the candidates. An error of
two years is better than one of twenty, but a classifier that predicts the most likely label does
not know that 31 is next to 32. With ``cost="absolute"`` the same model predicts the age with the
smallest expected error. The training and ``predict_proba`` do not change.

The ages are those of FG-NET if its file is in the data home (see `appellate.datasets.load_fgnet`).
Otherwise they are generated, so the example runs anywhere.
"""

# %%
# The data
# --------
# Half of the rows to learn from, half to predict. The true ages are used only for the figure.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import cohen_kappa_score, mean_absolute_error

from appellate import AGGDClassifier, PLCPClassifier
from appellate._palette import BOTH
from appellate.datasets import load_fgnet
from appellate.metrics import tolerance_accuracy


def make_ages(n=600, oldest=70, seed=0):
    """Make up ages, features that follow them loosely, and three to ten guesses of each."""
    rng = np.random.default_rng(seed)
    truth = np.minimum(rng.gamma(1.6, 11, size=n).astype(int), oldest - 1)
    slow = np.column_stack([np.sin(truth / s) for s in (8, 15, 30)])
    X = np.hstack([slow + rng.normal(scale=0.35, size=slow.shape), rng.normal(size=(n, 5))])
    candidates = np.zeros((n, oldest), dtype=bool)
    for row, age in zip(candidates, truth, strict=True):
        guesses = rng.normal(age, 2 + age / 10, size=rng.integers(2, 10)).round().astype(int)
        row[np.clip([age, *guesses], 0, oldest - 1)] = True
    return X, candidates, truth


try:
    X, candidates, truth = load_fgnet(download_if_missing=False, return_X_candidates_y=True)
    source = "FG-NET"
except FileNotFoundError:
    X, candidates, truth = make_ages()
    source = "made-up ages"
order = np.random.RandomState(0).permutation(len(X))
train, test = order[: len(X) // 2], order[len(X) // 2 :]

# %%
# Two decisions of one model
# --------------------------

model = PLCPClassifier(AGGDClassifier())
predicted = {}
for name, cost in {"most likely age": None, "smallest expected error": "absolute"}.items():
    model.set_params(cost=cost).fit(X[train], candidates[train])
    predicted[name] = model.predict(X[test])
    print(
        f"{name:24} mean error {mean_absolute_error(truth[test], predicted[name]):.2f}, "
        f"within 5 years {tolerance_accuracy(truth[test], predicted[name], 5):.3f}, "
        f"kappa {cohen_kappa_score(truth[test], predicted[name], weights='quadratic'):.3f}"
    )

# %%
# Predicted against true age
# --------------------------
# The most likely age is often correct to the year and sometimes wrong by decades: the stripes are
# frequent predictions. The cost moves large errors towards the diagonal. High ages are then rarely
# predicted, because few training rows have them.

colors = dict(zip(predicted, (BOTH["verdict"], BOTH["appeal"]), strict=True))
figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
limit = int(max(truth.max(), *(p.max() for p in predicted.values()))) + 2
for ax, (name, ages) in zip(axes, predicted.items(), strict=False):
    ax.fill_between([0, limit], [-5, limit - 5], [5, limit + 5], color="#E8E8E8", lw=0)
    ax.plot([0, limit], [0, limit], color=BOTH["rival"], lw=0.8)
    ax.scatter(truth[test], ages, s=14, alpha=0.45, lw=0, color=colors[name])
    error = mean_absolute_error(truth[test], ages)
    ax.set(xlim=(-1, limit), ylim=(-1, limit), xlabel="true age", ylabel="predicted age")
    ax.set_title(f"{name}\nmean error {error:.1f} years", fontsize=10)
    ax.set_aspect("equal")
    ax.text(limit - 1, 1, "grey: within 5 years", ha="right", fontsize=8, color="#555555")
years = np.arange(31)
for height, (name, ages) in zip((0.06, 0.14), predicted.items(), strict=True):
    share = [tolerance_accuracy(truth[test], ages, t) for t in years]
    axes[2].step(years, share, where="post", color=colors[name])
    axes[2].text(29, height, name, ha="right", fontsize=9, color=colors[name])
axes[2].set(xlabel="years off, at most", ylabel=f"share of {source}", xlim=(0, 30), ylim=(0, 1))
axes[2].set_title("how far off", fontsize=10)
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
