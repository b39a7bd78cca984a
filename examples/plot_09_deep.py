"""
A small network and its partner
===============================

PRODEN, alone and coupled with a partner network, on images of clothes (Fashion-MNIST) if its files
are in the data home, otherwise on scikit-learn's digits. Needs the extra ``deep``. For
larger networks and more images see :doc:`/results_networks`.
"""

# %%
# 600 images to train on; each false label is a candidate with probability 0.5.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from appellate._palette import BOTH, LIGHT
from appellate.datasets import load_fashion_mnist, make_partial_labels
from appellate.deep import Network, PRODENClassifier

try:
    data = load_fashion_mnist(download_if_missing=False)
    images, labels = data.images[:2000] / 255, data.y_true[:2000]
    names = [str(name) for name in data.class_names]
except FileNotFoundError:
    digits = load_digits()
    images, labels = digits.images / 16, digits.target
    names = [str(name) for name in digits.target_names]
images = images.astype(np.float32)
train, test = slice(0, 600), slice(600, None)
candidates = make_partial_labels(labels[train], flip_probability=0.5, random_state=0)

network = Network("mlp", hidden=(64,))
settings = {"n_epochs": 15, "random_state": 0}
X, X_test = images[train].reshape(600, -1), images[test].reshape(len(images) - 600, -1)
models = {
    "PRODEN": PRODENClassifier(network, **settings).fit(X, candidates),
    "PRODEN-PLCP": PRODENClassifier(network, partner="non-candidate", **settings).fit(
        X, candidates
    ),
}
for name, model in models.items():
    print(f"{name:12} test accuracy {model.score(X_test, labels[test]):.3f}")

# %%
# Confidence in the true label of every training image, and the twelve least certain images. A
# title is the label of the coupled model. If it is wrong, the title begins with *not*.

figure = plt.figure(figsize=(10, 4.2), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=(1, 1.25))
ax = left.subplots()
for (name, model), color in zip(models.items(), (BOTH["verdict"], BOTH["appeal"]), strict=True):
    sure = np.sort(model.confidence_[np.arange(600), labels[train]])
    ax.plot(sure, np.linspace(0, 1, 600), color=color)
    left_of = name == "PRODEN"  # the curve of the less sure model
    at = 300 if left_of else 60
    ax.annotate(
        name,
        (sure[at], at / 600),
        (-8, 0) if left_of else (10, -12),
        textcoords="offset points",
        color=color,
        ha="right" if left_of else "left",
    )
ax.set(xlabel="confidence in the true label", ylabel="share of images below")
ax.spines[["top", "right"]].set_visible(False)

coupled = models["PRODEN-PLCP"]
unsure = np.argsort(coupled.confidence_.max(axis=1))[:12]
for panel, row in zip(right.subplots(3, 4).ravel(), unsure, strict=True):
    panel.imshow(images[train][row], cmap="gray_r")
    label = coupled.transduction_[row]
    right_label = label == labels[row]
    panel.set_title(
        names[label] if right_label else f"not: {names[label]}",
        fontsize=8,
        color="black" if right_label else LIGHT["bad"],
    )
    panel.set_axis_off()
plt.show()
