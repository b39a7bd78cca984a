"""Why a row that annotators answered has its label: features and answers, one by one.

The score of a label is ``beta f + sum of log P(answer | label)``, averaged over the models of the
annotators. Every answer is one part of it: the mean of its log-likelihood over these models. The
last part is what is left to the posterior: annotators err together on hard rows, so that many
answers say less than their sum. If the votes have a share in the posterior, it is one more part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from appellate.candidates import Answers
from appellate.core.explanation import Explanation, Part, log, plain
from appellate.methods.testimony.people import Matrix, _set_gains, counted, number_opinions

FEATURES, WITHOUT_FEATURES = "features", "how frequent the labels are"
TOGETHER, VOTES = "annotators err together", "share of the votes"
AUDIT, REVIEWED = "audited rows", "decided in review"


@dataclass(frozen=True, eq=False)
class Account:
    """What the rows' scores are made of, as the last round left it: means over the models.

    The n rows of a fit are those that something is known of, until `everywhere` adds the others.

    Attributes
    ----------
    looks : ndarray, shape (n, l)
        What the features say, or how frequent the labels are without features.
    informed : bool
        Whether it is the features.
    log_theta : ndarray, shape (p, l, l)
        Logarithms of the annotators' confusions; those of functions are not used.
    odds : ndarray, shape (p,)
        Log odds that the set that an annotator names holds the true label.
    functions : ndarray of bool, shape (p,)
        Which of them are labelling functions.
    weights : ndarray, shape (p, l)
        Evidence of a function that speaks; 0 for annotators.
    models : mapping of str to ndarray, shape (n, l)
        Evidence of every model's probabilities.
    scored : ndarray, shape (n, l)
        Posterior by the scores if annotators err together.
    voted : bool
        Whether the votes have a share in the posterior next to the scores.
    posterior : ndarray, shape (n, l)
        What was made of it, before audited rows recalibrated it.
    known : ndarray of bool, shape (N,)
        Which of all rows something is known of.
    decided : ndarray of int, shape (N,)
        Class of the rows that were reviewed, -1 elsewhere.
    """

    looks: Matrix
    informed: bool
    log_theta: Matrix
    odds: Matrix
    functions: NDArray[np.bool_]
    weights: Matrix
    models: Mapping[Any, Matrix] = field(default_factory=dict)
    scored: Matrix = field(default_factory=lambda: np.empty((0, 0)))
    voted: bool = False
    posterior: Matrix = field(default_factory=lambda: np.empty((0, 0)))
    known: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, dtype=bool))
    decided: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    def everywhere(self, confidence: Matrix) -> Account:
        """Return the account of all rows, whose confidence is given.

        Rows that nothing is known of have what the model says of new rows, or the mean.
        """
        known = self.known
        looks = log(confidence)
        scored = confidence.copy()
        before = confidence.copy()
        looks[known] = self.looks
        scored[known] = self.scored
        before[known] = self.posterior
        models = {}
        for name, evidence in self.models.items():
            models[name] = np.zeros_like(looks)
            models[name][known] = evidence
        return replace(self, looks=looks, models=models, scored=scored, posterior=before)


def explain_answers(
    account: Account,
    answers: Answers,
    rows: Iterable[int],
    confidence: Matrix,
    labels: NDArray[Any],
    audited: bool,
) -> list[Explanation]:
    """Split the scores of some rows into their parts.

    Parameters
    ----------
    account : Account
        The one of all rows.
    answers : Answers
        Who said what.
    rows : iterable of int
        The rows.
    confidence : ndarray, shape (n, l)
        What is reported.
    labels : ndarray, shape (n,)
        Labels of all rows.
    audited : bool
        Whether audited rows recalibrated the posterior.
    """
    number = number_opinions(answers)
    starts = np.searchsorted(answers.rows, np.arange(len(answers) + 1))
    answered = np.diff(starts) > 0
    for evidence in account.models.values():
        answered |= evidence.any(axis=1)
    out = []
    for i in rows:
        entries = np.arange(starts[i], starts[i + 1])
        looks = FEATURES if account.informed else WITHOUT_FEATURES
        parts = [Part(looks, account.looks[i]), *_opinions(account, answers, entries, number)]
        for name, evidence in account.models.items():
            if evidence[i].any():
                said = "model" if name == "model" else f"model {name}"
                parts.append(Part(f"{said} (probabilities)", evidence[i]))
        total = np.sum([part.values for part in parts], axis=0)
        decided = int(account.decided[i])
        if decided >= 0:
            certain = np.full(len(total), -np.inf)
            certain[decided] = 0.0
            parts.append(Part(REVIEWED, certain))
        else:
            before = log(account.posterior[i])
            if answered[i]:
                scored = log(account.scored[i])
                parts.append(Part(TOGETHER, scored - total))
                if account.voted:
                    parts.append(Part(VOTES, before - scored))
            if audited:
                parts.append(Part(AUDIT, log(confidence[i]) - before))
        out.append(Explanation(i, answers.class_names, parts, confidence[i], plain(labels[i])))
    return out


def _opinions(
    account: Account, answers: Answers, entries: NDArray[np.intp], number: NDArray[np.intp]
) -> list[Part]:
    """Return one part per answer of a row; a set that an annotator named is one answer."""
    weights, sizes = counted(answers)
    gains = np.zeros(len(entries))
    if answers.sizes is not None:
        gains = _set_gains(answers._take(entries), expit(account.odds), answers.shape[1])
    parts = []
    for opinion in np.unique(number[entries]):
        own = entries[number[entries] == opinion]
        who, weight = int(answers.people[own[0]]), float(weights[own[0]])
        values = np.zeros(answers.shape[1])
        if account.functions[who]:
            values += weight * account.weights[who]
        elif sizes[own[0]] > 1:
            values[answers.labels[own]] = weight * gains[np.searchsorted(entries, own)]
        else:
            values += weight * account.log_theta[who, :, answers.labels[own[0]]]
        said = " or ".join(str(answers.class_names[k]) for k in answers.labels[own])
        if answers.person_names is None:
            name = f"{weight:g} annotator{'' if weight == 1 else 's'} said {said}"
        else:
            times = "" if weight == 1 else f" ({weight:g} times)"
            name = f"{answers.person_names[who]} said {said}{times}"
        parts.append(Part(name, values, None if answers.person_names is None else who))
    return parts
