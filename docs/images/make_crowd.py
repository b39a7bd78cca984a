"""Draw crowd.png: what LabelMe's people are worth, and where the truth is missing.

APPELLATE_DATA_HOME=... python docs/images/make_crowd.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from appellate import TestimonyClassifier
from appellate.datasets import load_labelme

data = load_labelme()
model = TestimonyClassifier().fit(data.X, data.answers)
people, table = model.annotators_, data.answers.table()
busy = np.flatnonzero(people["answers"] >= 10)
true = np.array(
    [np.mean(table[table[:, j] >= 0, j] == data.y_true[table[:, j] >= 0]) for j in busy]
)
accuracy, low, high = (people[key][busy] for key in ("accuracy", "low", "high"))

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), constrained_layout=True)
left.plot([0, 1], [0, 1], color="0.7", linewidth=1)
left.errorbar(
    true, accuracy, [accuracy - low, high - accuracy], fmt="o", markersize=4, color="#0072b2",
    ecolor="#9ecae1", label="testimony, 95 % interval",
)  # fmt: skip
left.plot(true, people["agreement"][busy], "x", color="#d55e00", label="agreement with the most")
left.set(xlabel="true accuracy of a person", ylabel="estimate", xlim=(0.2, 1.02), ylim=(0.2, 1.02))
left.legend(loc="lower right", fontsize=8)
outside = ~data.candidates[np.arange(1000), data.y_true]
found = np.cumsum(outside[np.argsort(-model.suspicion_)])
looked = np.arange(1, 1001)
right.plot(looked, found / outside.sum(), color="#0072b2", label="by suspicion")
right.plot([0, 1000], [0, 1], color="0.7", label="at random")
right.set(xlabel="photographs looked at", ylabel="found, of 111 without their truth")
right.legend(loc="lower right", fontsize=8)
figure.savefig(Path(__file__).with_name("crowd.png"), dpi=110)
