"""Draw crowd.svg: how reliable LabelMe's annotators are, and rows without a true answer.

APPELLATE_DATA_HOME=... python docs/images/make_crowd.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from appellate import TestimonyClassifier
from appellate._palette import BOTH
from appellate.datasets import load_labelme

data = load_labelme()
model = TestimonyClassifier().fit(data.X, data.answers)
people, table = model.annotators_, data.answers.table()
busy = np.flatnonzero(people["answers"] >= 10)
true = np.array(
    [np.mean(table[table[:, j] >= 0, j] == data.y_true[table[:, j] >= 0]) for j in busy]
)
accuracy, low, high = (people[key][busy] for key in ("accuracy", "low", "high"))

plt.rcParams["svg.hashsalt"] = "appellate"
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.plot([0, 1], [0, 1], color=BOTH["rival"], linewidth=0.8)
left.errorbar(
    true, accuracy, [accuracy - low, high - accuracy], fmt="o", markersize=4, color=BOTH["appeal"],
    ecolor="#9ecae1",
)  # fmt: skip
left.plot(true, people["agreement"][busy], "x", color=BOTH["verdict"])
left.text(1, 0.3, "agreement with the majority", color=BOTH["verdict"], ha="right")
left.text(1, 0.24, "testimony, with 95 % interval", color=BOTH["appeal"], ha="right")
left.set(
    xlabel="true accuracy of an annotator", ylabel="estimate", xlim=(0.2, 1.02), ylim=(0.2, 1.02)
)
outside = ~data.candidates[np.arange(1000), data.y_true]
found = np.cumsum(outside[np.argsort(-model.suspicion_)])
looked = np.arange(1, 1001)
right.plot(looked, found / outside.sum(), color=BOTH["appeal"])
right.plot([0, 1000], [0, 1], color=BOTH["rival"])
right.text(430, 0.78, "by suspicion", color=BOTH["appeal"])
right.text(520, 0.46, "at random", color=BOTH["rival"])
right.set(xlabel="photographs checked", ylabel="found, of 111 without a true answer")
for panel in (left, right):
    panel.spines[["top", "right"]].set_visible(False)
figure.savefig(Path(__file__).with_name("crowd.svg"), metadata={"Date": None})
