"""
A sensitivity map
=================

How the test accuracy depends on the two settings that matter most: the ridge of the partner and
the weight of the base.
"""

# %%
# Digits, about half of the false labels among the candidates; SURE as the base.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from appellate import PLCPClassifier, SUREClassifier
from appellate.datasets import make_partial_labels

images, labels = load_digits(return_X_y=True)
X, truth = images[:360] / 16, labels[:360]
X_test, truth_test = images[900:] / 16, labels[900:]
candidates = make_partial_labels(
    truth, strategy="instance_dependent", X=X, flip_probability=0.5, random_state=0
)
ridges = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0)
collaborations = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
scores = np.array(
    [
        [
            PLCPClassifier(SUREClassifier(), regularization=ridge, collaboration=weight)
            .fit(X, candidates)
            .score(X_test, truth_test)
            for ridge in ridges
        ]
        for weight in collaborations
    ]
)
alone = SUREClassifier().fit(X, candidates).score(X_test, truth_test)

# %%
# Violet is better than the base alone, orange worse; the frame is the paper's setting. A large
# ridge cancels the gain of more collaboration. ``appellate reproduce sensitivity`` draws the same
# curves for Lost, see :doc:`/reproduction`.

gain = 100 * (scores - alone)
reach = np.abs(gain).max()
figure, ax = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
picture = ax.imshow(gain, cmap="PuOr", vmin=-reach, vmax=reach, origin="lower", aspect="auto")
for (i, j), value in np.ndenumerate(scores):
    ink = "white" if abs(gain[i, j]) > 0.6 * reach else "black"
    ax.text(j, i, f"{value:.3f}", ha="center", va="center", fontsize=8, color=ink)
ax.set_xticks(range(len(ridges)), ridges)
ax.set_yticks(range(len(collaborations)), collaborations)
ax.add_patch(plt.Rectangle((2.5, 2.5), 1, 1, fill=False, linewidth=2))
ax.set(xlabel="ridge of the partner (lambda)", ylabel="collaboration (gamma)")
figure.colorbar(picture, label=f"points over the base alone ({alone:.3f})")
plt.show()
