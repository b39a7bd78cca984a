"""
When the coupling helps
=======================

The weaker the base, the more it gains. Six bases on three problems of growing ambiguity: the
accuracy of the base alone, and the gain of the coupling.
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
# Orange is the base alone, blue the same base with a partner. The result is the same on the data
# sets of the paper, see :doc:`/reproduction`: PL-KNN gains most, strong bases little or nothing.

figure, panels = plt.subplots(
    1, 3, figsize=(8, 3.2), sharey=True, sharex=True, layout="constrained"
)
for panel, ambiguity in zip(panels, (0.2, 0.5, 0.8), strict=True):
    for row, (_, _, alone, gain) in enumerate(r for r in results if r[1] == ambiguity):
        panel.plot([alone, alone + gain], [row, row], color=BOTH["rival"], linewidth=1.2, zorder=0)
        panel.scatter(alone, row, s=42, color=BOTH["verdict"])
        panel.scatter(alone + gain, row, s=42, color=BOTH["appeal"])
    panel.set_title(f"{ambiguity:.0%} of the false labels", fontsize=9)
    panel.spines[["top", "right"]].set_visible(False)
panels[0].set_yticks(range(len(bases)), bases.values())
panels[0].invert_yaxis()
panels[1].set_xlabel("test accuracy")
_, _, alone, gain = results[-len(bases)]
for x, word, role in ((alone, "alone", "verdict"), (alone + gain, "with a partner", "appeal")):
    panels[2].text(x, 0.45, word, color=BOTH[role], fontsize=8, ha="center")
plt.show()
