r"""
Answers of a crowd: LabelMe
===========================

1,000 photographs of eight kinds of scene, two or three answers each, by 59 people. Needs the
LabelMe files; the figures here are stored. :doc:`/labelme` has the commands that made them:

.. code-block:: sh

    appellate rectify train.csv --annotators 'w*' --embeddings train.npy \
        --truth truth --out labelme
    appellate predict labelme test.csv --embeddings test.npy --out labelled.csv
"""

# %%
# Accuracy on the photographs with answers and on 1,188 that nobody answered for.

import matplotlib.pyplot as plt
import numpy as np

ANY, MAJORITY, CEILING = 0.735, 0.769, 0.889
TRAIN = {"PL-AGGD": (0.828, 0.846), "SURE": (0.834, 0.844), "PL-KNN": (0.837, 0.844)}
TEST = {"PL-AGGD": (0.843, 0.844), "SURE": (0.842, 0.843), "PL-KNN": (0.792, 0.847)}

# %%
# Looking at the photographs is worth more than six points over counting votes; the partner adds
# one or two. No method that keeps to the answers can pass the upper line: for one photograph of
# nine nobody was right.

figure, axes = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained", sharey=True)
for ax, results, title in zip(
    axes, (TRAIN, TEST), ("photographs with answers", "photographs without"), strict=True
):
    places = np.arange(len(results))
    alone, coupled = np.transpose(list(results.values()))
    ax.bar(places - 0.18, alone, 0.34, color="#D55E00", label="base alone")
    ax.bar(places + 0.18, coupled, 0.34, color="#0072B2", label="after the appeal")
    for place, values in zip(places, results.values(), strict=True):
        for shift, value in zip((-0.18, 0.18), values, strict=True):
            ax.text(place + shift, value + 0.002, f"{value:.3f}", ha="center", fontsize=8)
    ax.set_xticks(places, list(results))
    ax.set_title(title, fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
for height, text in ((ANY, "any answer"), (MAJORITY, "majority vote"), (CEILING, "ceiling")):
    axes[0].axhline(height, color="#333333", linestyle="--", linewidth=0.9)
    axes[0].text(3.05, height, text, va="center", fontsize=8, backgroundcolor="white")
axes[0].set(ylim=(0.7, 0.91), ylabel="accuracy", xlim=(-0.5, 3.7))
axes[1].legend(frameon=False, loc="upper left")
plt.show()
