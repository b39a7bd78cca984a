"""
Confidence trajectories of an appeal
====================================

How the base and its partner change their minds, round by round: the paper's Fig. 2 on digits.
"""

# %%
# ``keep_confidences=True`` makes the model remember every round.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from appellate import PLCPClassifier, SUREClassifier
from appellate.datasets import make_partial_labels
from appellate.plotting import plot_trajectories

images, truth = load_digits(return_X_y=True)
X, truth = images[:600] / 16, truth[:600]
candidates = make_partial_labels(
    truth, strategy="instance_dependent", X=X, flip_probability=0.5, random_state=0
)
model = PLCPClassifier(SUREClassifier(), keep_confidences=True, random_state=0).fit(X, candidates)

# %%
# Four overturned verdicts, the surest first (and upheld ones, the closest first, if there are
# fewer). The base (solid) hardly moves from its verdict; the partner (dashed) does, and it
# decides.

margin = model.docket(output="dict")["margin"]
overturned = np.flatnonzero(model.overturned_)
upheld = np.flatnonzero(~model.overturned_ & (candidates.sum(axis=1) > 1))
rows = [*overturned[np.argsort(-margin[overturned])], *upheld[np.argsort(margin[upheld])]][:4]
plot_trajectories(model, rows, truth=truth)
plt.show()
