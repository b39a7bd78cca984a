"""Testimony: what several people said of a row, weighed by how far each of them can be believed.

The label of row i has the posterior

    q[i, c]  ~  exp(beta f[i, c] + L[i, c])

where f is what a regression on the features says that did not see the row's own answers, and
L is the log-likelihood of the row's answers if c were its label: every person j has a confusion
matrix ``Theta_j[c, k]``, the probability of answering k where c is true, shrunk towards that of
all people. beta, how far features are to be trusted, is the value that best predicts each answer
from the features and the row's *other* answers; no truth is needed.

Sources that only ever give one label, such as labelling functions, have no confusions; they are
weighed by what is true where they speak. A model's probabilities are one more answer to a row,
at the temperature that best predicts the other answers. Without features the shares of the labels
take the place of ``beta f``, and the model is that of Dawid and Skene [1]_ with shrinkage.

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
