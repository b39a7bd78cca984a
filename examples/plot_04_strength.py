"""
Where an appeal helps and where it does not
===========================================

The weaker the base, the more it gains. Six bases on three problems of growing ambiguity: what the
base reaches alone, and what the coupling adds.
"""

# %%
# Digits with 20, 50 and 80 % of the false labels among the candidates.

import matplotlib.pyplot as plt
from sklearn.base import clone
from sklearn.datasets import load_digits

from appellate import PLCPClassifier, make_base
from appellate._palette import BOTH
from appellate.datasets import make_partial_labels

images, labels = load_digits(return_X_y=True)
X, truth = images[:500] / 16, labels[:500]
X_test, truth_test = images[900:] / 16, labels[900:]
bases = {
    "knn": "PL-KNN",
    "svm": "PL-SVM",
    "sure": "SURE",
    "lalo": "LALO",
    "aggd": "PL-AGGD",
    "plcl": "PL-CL",
}
results = []
for ambiguity in (0.2, 0.5, 0.8):
    candidates = make_partial_labels(truth, flip_probability=ambiguity, random_state=0)
    for name in bases:
        base = make_base(name, **({"random_state": 0} if name == "svm" else {}))
        alone = clone(base).fit(X, candidates).score(X_test, truth_test)
        coupled = PLCPClassifier(base).fit(X, candidates)
        results.append((name, ambiguity, alone, coupled.score(X_test, truth_test) - alone))

# %%
# Points above the line gained. The picture is that of the paper's data sets too, see
# :doc:`/reproduction`: PL-KNN gains most, strong bases little or nothing.

colors = (BOTH["verdict"], "#CC79A7", BOTH["appeal"], "#56B4E9", BOTH["truth"], BOTH["rival"])
markers = {0.2: "o", 0.5: "s", 0.8: "^"}
figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
ax.axhline(0, color=BOTH["rival"], linewidth=0.8)
for name, ambiguity, alone, gain in results:
    color = colors[list(bases).index(name)]
    ax.scatter(alone, 100 * gain, s=55, color=color, marker=markers[ambiguity], alpha=0.9)
for color, title in zip(colors, bases.values(), strict=True):
    ax.scatter([], [], color=color, label=title)
for ambiguity, marker in markers.items():
    ax.scatter([], [], color="#555555", marker=marker, label=f"{ambiguity:.0%} of false labels")
ax.set(xlabel="test accuracy of the base alone", ylabel="gain by the appeal, in points")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, fontsize=8, ncols=2)
plt.show()
