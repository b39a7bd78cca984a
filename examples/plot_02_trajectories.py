"""
Confidence over the rounds
==========================

How the confidence of the base and of its partner changes, round by round: the paper's Fig. 2 on
digits.

The setting was chosen for the figure, with true labels, from seven (SURE, LALO and PL-AGGD with 70
or 80 % of the false labels, and SURE with candidates that depend on the image). In two of them
fewer than half of the changed labels, or of the four most confident changes, were correct.
"""

# %%
# ``keep_confidences=True`` stores every round.

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
print(f"{len(overturned)} labels changed, {right.sum()} of them are correct now")

# %%
# The four most confident changes. Solid lines are the base, dashed ones the partner, which
# decides. Dotted lines are the base without a partner. Every confidence is a share among the
# candidates.

margin = model.docket(output="dict")["margin"]
surest = overturned[np.argsort(-margin[overturned])][:4]
plot_trajectories(model, surest, truth=truth)
plt.show()
