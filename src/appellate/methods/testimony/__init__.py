"""Testimony: the answers of several annotators to a row, weighed by how far each can be believed.

The label of row i has the posterior

    q[i, c]  ~  exp(beta f[i, c] + L[i, c])

where f is the output of a regression on the features that did not see the row's own answers, and
L is the log-likelihood of the row's answers if c is its label: every annotator j has a confusion
matrix ``Theta_j[c, k]``, the probability of answering k if c is true. beta, the trust in the
features, is the value that best predicts each answer from the features and the row's *other*
answers; true labels are not needed.

Annotators may differ in accuracy only, or in what they confuse. Three such models are fitted, and
their scores are averaged: each counts as much as it predicts answers that were held out of the
fit. Held-out answers also tell how far annotators err together, which flattens the posterior.

Sources that only ever give one label, such as labelling functions, have no confusions; they are
weighed by their precision. A model's probabilities are one more answer to a row, at the
temperature that best predicts the other answers. Without features the shares of the labels take
the place of ``beta f``, and the model is that of Dawid and Skene [1]_ with shrinkage.

`people` has the confusions, `functions` the precisions, `models` the temperatures, `features` the
regression and its trust; `rounds` weighs them: pure functions of arrays.

References
----------
.. [1] Dawid, Skene (1979). Maximum likelihood estimation of observer error-rates using the EM
   algorithm. Journal of the Royal Statistical Society C 28.
"""

from appellate.methods.testimony.classifier import TestimonyClassifier
from appellate.methods.testimony.rounds import crowd_posterior, majority_vote

__all__ = ["TestimonyClassifier", "crowd_posterior", "majority_vote"]
