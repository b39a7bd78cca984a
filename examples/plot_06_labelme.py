"""
Annotators' answers: LabelMe
============================

1,000 photographs of eight kinds of scene, with one to three answers each by 59 annotators. The
example finds the labels, the reliable annotators, and the photographs whose true label nobody
gave. :doc:`/annotators` explains each step.

The answers are those of LabelMe if its files are in the data home (see
`appellate.datasets.load_labelme`). Otherwise annotators are generated, so the example runs
anywhere.
"""

# %%
# Answers, features, and the true labels, which only the figures use.

import matplotlib.pyplot as plt
import numpy as np

from appellate import TestimonyClassifier
from appellate._palette import BOTH
from appellate.datasets import load_labelme, make_ambiguous_classification, make_crowd
from appellate.methods.testimony import crowd_posterior, majority_vote

try:
    data = load_labelme(download_if_missing=False)
    X, answers, truth = data.X, data.answers, data.y_true
except FileNotFoundError:
    data = make_ambiguous_classification(600, 10, 6, class_sep=2.0, random_state=0)
    X, truth = data.X, data.y_true
    answers = make_crowd(truth, n_people=40, accuracy=0.6, spammers=0.2, random_state=0).answers
print(answers)

# %%
# `TestimonyClassifier` estimates a confusion matrix per annotator, and combines the answers with a
# regression on the features that did not see the row's own answers.

model = TestimonyClassifier().fit(X, answers)
labels = {
    "majority vote": majority_vote(answers).argmax(axis=1),
    "the crowd alone": crowd_posterior(answers).argmax(axis=1),
    "testimony": model.confidence_.argmax(axis=1),
}
named = answers.votes() > 0
named = named / named.sum(axis=1, keepdims=True)
rows = np.arange(len(truth))
right = {"random answer": named[rows, truth].mean()}
right |= {name: np.mean(each == truth) for name, each in labels.items()}
outside = named[rows, truth] == 0
for name, share in right.items():
    print(f"{name:22} {share:.3f}")
print(f"nobody gave the true label for {outside.mean():.1%} of the rows")

# %%
# Left: share of correct labels; the dashed line is the limit of methods that keep to the answers.
# Middle: estimated accuracy of each annotator with ten answers or more, without true labels.
# Right: rows found whose true label nobody gave, when the most suspicious rows are checked first.

people, table = model.annotators_, answers.table()
busy = np.flatnonzero(np.asarray(people["answers"]) >= 10)
true = [np.mean(table[table[:, j] >= 0, j] == truth[table[:, j] >= 0]) for j in busy]

figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
for place, (name, share) in enumerate(right.items()):
    color = BOTH["appeal" if name == "testimony" else "rival"]
    axes[0].plot(share, place, "o", color=color, markersize=9)
    axes[0].annotate(
        f"{name}  {share:.3f}", (share, place), (-9, -3), textcoords="offset points", ha="right"
    )
axes[0].axvline(1 - outside.mean(), color=BOTH["truth"], linestyle="--", linewidth=1)
axes[0].set(xlabel="share of correct labels", yticks=[], ylim=(-0.5, 3.7))
axes[0].set_xlim(min(right.values()) * 1.9 - 0.9, 1)
axes[1].plot([0, 1], [0, 1], color=BOTH["rival"], linewidth=0.8)
axes[1].plot(true, np.asarray(people["agreement"])[busy], "x", color=BOTH["verdict"])
axes[1].plot(true, np.asarray(people["accuracy"])[busy], "o", color=BOTH["appeal"], markersize=4)
axes[1].set(xlabel="true accuracy of a person", ylabel="estimate")
axes[1].text(1, 0.1, "agreement with the majority", color=BOTH["verdict"], fontsize=9, ha="right")
axes[1].text(1, 0.02, "testimony", color=BOTH["appeal"], fontsize=9, ha="right")
found = np.cumsum(outside[np.argsort(-model.suspicion_)]) / max(1, outside.sum())
axes[2].plot(rows + 1, found, color=BOTH["appeal"])
axes[2].plot([0, len(rows)], [0, 1], color=BOTH["rival"])
axes[2].set(xlabel="rows checked", ylabel="found, of those without their true label")
axes[2].text(0.35 * len(rows), 0.75, "by suspicion", color=BOTH["appeal"], fontsize=9)
axes[2].text(0.6 * len(rows), 0.5, "at random", color=BOTH["rival"], fontsize=9)
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
axes[0].spines["left"].set_visible(False)
plt.show()
