"""
Choosing without true labels, against the oracle
================================================

Can candidate sets alone choose the best setting? For 18 settings: a score of held-out rows that
needs no true labels, and the test accuracy that an oracle would use.
"""

# %%
# Digits with candidates that depend on the image: the more an image looks like
# a false digit, the more likely that digit is a candidate.

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import spearmanr
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV

from appellate import GaussianKernel, PLCPClassifier, SUREClassifier
from appellate._palette import BOTH
from appellate.datasets import make_partial_labels
from appellate.model_selection import CandidateStratifiedKFold, get_scorer

images, labels = load_digits(return_X_y=True)
X, truth = images[:300] / 16, labels[:300]
X_test, truth_test = images[900:] / 16, labels[900:]
candidates = make_partial_labels(
    truth, strategy="instance_dependent", X=X, flip_probability=0.5, random_state=0
)

# %%
# One search for every score. A scorer may be any callable, so the last one records the accuracy
# on the test rows: this is the oracle, and only the figure uses it.

# Base and partner share the kernel and the ridge.
model = PLCPClassifier(SUREClassifier(kernel=GaussianKernel()))
grid = [
    {
        "estimator__kernel__bandwidth": [0.3, 1.0, 2.0],
        "estimator__regularization": [ridge],
        "regularization": [ridge],
        "collaboration": [0.5, 2.0],
    }
    for ridge in (0.01, 0.05, 0.5)
]


def oracle(model, X, y):
    """Test accuracy, which needs true labels."""
    return model.score(X_test, truth_test)


searches = {
    scoring: GridSearchCV(
        model, grid, scoring=get_scorer(scoring), cv=CandidateStratifiedKFold(3)
    ).fit(X, candidates)
    for scoring in ("candidate_likelihood", "covering_rate", "evidence", oracle)
}
true = searches.pop(oracle).cv_results_["mean_test_score"]

# %%
# The chosen setting is orange, the best is green. False labels that look like the true one
# can mislead every score: here the evidence, on other draws the likelihood.

figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained", sharey=True)
for ax, (scoring, search) in zip(axes, searches.items(), strict=True):
    scores = search.cv_results_["mean_test_score"]
    chosen, best = search.best_index_, int(np.argmax(true))
    ax.scatter(scores, true, color=BOTH["appeal"], alpha=0.7)
    for index, word, color in ((best, "best", "truth"), (chosen, "chosen", "verdict")):
        ax.scatter(scores[index], true[index], s=80, color=BOTH[color])
        ax.annotate(
            word,
            (scores[index], true[index]),
            (-8, 0),
            textcoords="offset points",
            color=BOTH[color],
            ha="right",
            va="center",
        )
    rho = spearmanr(scores, true).statistic
    regret = 100 * (true[best] - true[chosen])
    ax.set_title(f"{scoring}\nrank correlation {rho:.2f}, regret {regret:.1f} points", fontsize=10)
    ax.set_xlabel("score without true labels")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("true accuracy (mean of 3 folds)")
plt.show()
