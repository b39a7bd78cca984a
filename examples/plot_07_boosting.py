"""
Gradient boosting as a base
===========================

Any scikit-learn classifier that accepts sample weights learns from candidate sets through
`SoftLabelClassifier`. This example has boosted trees as base and a kernel method as partner.
"""

# %%
# Two features, four classes in stripes and corners, two candidates per row.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from appellate import PLCPClassifier, SoftLabelClassifier
from appellate.datasets import make_partial_labels


def make_stripes(n, seed):
    """Draw points in the unit square; the class is the stripe, but for one corner."""
    rng = np.random.RandomState(seed)
    X = rng.uniform(size=(n, 2))
    return X, np.where(X.sum(axis=1) > 1.6, 3, (X[:, 0] * 3).astype(int))


X, truth = make_stripes(400, 0)
X_test, truth_test = make_stripes(1000, 1)
candidates = make_partial_labels(truth, strategy="fixed", n_false=1, random_state=0)
trees = HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=5)
base = SoftLabelClassifier(trees, n_folds=3, n_rounds=2, random_state=0)
model = PLCPClassifier(base, max_rounds=2, random_state=0).fit(X, candidates)

# %%
# One fit serves all three heads; `head` is read at prediction. Trees are good at straight edges,
# so here the paper's choice, the partner, is not the best. The mean of both is.

step = np.linspace(0, 1, 120)
mesh = np.column_stack([grid.ravel() for grid in np.meshgrid(step, step)])
palette = np.array(["#56B4E9", "#E69F00", "#009E73", "#CC79A7"])
figure, axes = plt.subplots(1, 3, figsize=(10, 3.7), layout="constrained", sharey=True)
for ax, head in zip(axes, ("base", "partner", "mean"), strict=True):
    model.set_params(head=head)
    areas = model.predict(mesh).reshape(120, 120)
    ax.contourf(step, step, areas, levels=np.arange(5) - 0.5, colors=palette, alpha=0.35)
    shown = X_test[:300]
    ax.scatter(*shown.T, s=9, c=palette[truth_test[:300]], edgecolor="#333333", linewidth=0.2)
    ax.set_title(f"{head} predicts: {model.score(X_test, truth_test):.3f}", fontsize=10)
    ax.set_aspect("equal")
plt.show()
