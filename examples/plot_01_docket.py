"""
A docket of digits
==================

Handwritten digits with candidate sets. Each row of the figure is a digit whose label changed, the
most confident change first.
"""

# %%
# Half of scikit-learn's digits; every false digit is a candidate with probability 0.7, so a
# sample has about seven candidates. The model never sees the true labels.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from appellate import PLCPClassifier, PLKNNClassifier
from appellate._palette import BOTH
from appellate.datasets import make_partial_labels

images, labels = load_digits(return_X_y=True)
X, _, truth, _ = train_test_split(images / 16, labels, test_size=0.5, random_state=0)
candidates = make_partial_labels(truth, flip_probability=0.7, random_state=0)
model = PLCPClassifier(PLKNNClassifier(), random_state=0).fit(X, candidates)
docket = model.docket(truth=truth, output="dict")
print(f"{model.overturned_.sum()} of {len(X)} labels changed")

# %%
# The eight changes with the largest margin. Orange is the first label, blue the final label. The
# bars are the confidences before and after. A tick means that the final label is true.

VERDICT, APPEAL, REST = BOTH["verdict"], BOTH["appeal"], "#C8CCD0"
overturned = np.flatnonzero(model.overturned_)
rows = overturned[np.argsort(-docket["margin"][overturned])][:8]

figure, axes = plt.subplots(
    len(rows), 3, figsize=(7.5, 8), layout="constrained", width_ratios=(1, 4, 4), sharey="col"
)
for line, row in zip(axes, rows, strict=True):
    line[0].imshow(X[row].reshape(8, 8), cmap="gray_r")
    line[0].set_axis_off()
    colors = [REST] * 10
    colors[docket["first_label"][row]], colors[docket["label"][row]] = VERDICT, APPEAL
    for ax, confidence in zip(
        line[1:], (model.verdict_confidence_, model.confidence_), strict=True
    ):
        ax.bar(range(10), confidence[row], color=colors)
        ax.set_xticks(range(10), [str(j) if candidates[row, j] else "" for j in range(10)])
        ax.tick_params(labelsize=7, length=0)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.set_yticks([])
    right = docket["label"][row] == truth[row]
    line[2].set_title("\N{CHECK MARK}" if right else "\N{BALLOT X}", loc="right", fontsize=10)
axes[0, 1].set_title("base alone", fontsize=10)
axes[0, 2].set_title("final label", fontsize=10)
plt.show()
