"""Testimony: what several people said of a row, weighed by how far each of them can be believed.

The label of row i has the posterior

    q[i, c]  ~  exp(beta f[i, c] + L[i, c])

where f is what a regression on the features says that did not see the row's own answers, and
L is the log-likelihood of the row's answers if c were its label: every person j has a confusion
matrix ``Theta_j[c, k]``, the probability of answering k where c is true, shrunk towards that of
all people. beta, how far features are to be trusted, is the value that best predicts each answer
from the features and the row's *other* answers; no truth is needed.

The functions here are pure functions of arrays; `TestimonyClassifier` has scikit-learn's manners.
Without features it is the model of Dawid and Skene [1]_ with people who are like one another.

References
----------
.. [1] Dawid, Skene (1979). Maximum likelihood estimation of observer error-rates using the EM
   algorithm. Journal of the Royal Statistical Society C 28.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit, gammaln, log_softmax, logit, logsumexp, softmax
from scipy.stats import beta as beta_distribution

from appellate._compat import StrOptions, fit_context
from appellate._docs import share_docs
from appellate.base import POSITIVE, AppealClassifier, Model, ravel_column
from appellate.candidates import Answers, CandidateSets, as_answers, check_length
from appellate.candidates.containers import row_index
from appellate.candidates.names import encode, name_array, place_columns, scalars
from appellate.confidence import normalize_rows
from appellate.costs import cost_matrix, expected_costs
from appellate.docket import Docket, frame_backend, free_separator
from appellate.numerics.smoothers import Regressor
from appellate.problem import Kernel, Problem

__all__ = ["TestimonyClassifier", "crowd_posterior", "majority_vote"]

Matrix = NDArray[np.float64]

ROUNDS, ALIKE = 8, 4  # rounds; after so many it is asked how alike people are
STRENGTHS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
RIDGES = (0.05, 0.5, 5.0)
MODEL_RIDGES = (0.05, 0.5, 1.5, 5.0)  # of the regression for new rows
SHARED_ERRORS = (0.0, 0.05, 0.1, 0.2, 0.4)  # of a further answer; the last if nothing objects
SHRINKAGE = 4.0  # answers that the crowd's mean weighs beside a person's own
_SAMPLE = 50_000  # opinions that beta is found from
_TRIED_ROWS = 4_000  # that the ridge is chosen on
_WITNESSED = 20_000  # rows whose features say how far errors are shared
_GAIN = 5.0  # nats by which features must predict the answers better, to be heard at all
_FEW_PAIRS, _AUDITED = 50, 20
_CAMPS = 5  # answers to a row from which on two camps can be seen
_EDGE = 1e-6  # probabilities are kept so far from 0 and 1


# -- the steps, as functions of arrays ----------------------------------------------------------


def counted(answers: Answers) -> tuple[Matrix, NDArray[Any]]:
    """How often every answer was given, and among how many labels it was named, (A,) both."""
    once = np.ones(len(answers.rows))
    weights = once if answers.weights is None else answers.weights
    return weights, once if answers.sizes is None else answers.sizes


def opinion_weights(answers: Answers) -> Matrix:
    """Weight of every answer, (A,); a set that a person named counts once, not each label."""
    weights, sizes = counted(answers)
    return np.asarray(weights / sizes)


def vote_shares(answers: Answers) -> tuple[Matrix, Matrix]:
    """Smoothed shares of the votes, (n, l), and the number of answers, (n,).

    ``V = (C + .5 / l) / (m + .5)`` for counts C and m answers; uniform where there are none.
    """
    n, l = answers.shape
    cells = answers.rows.astype(np.int64) * l + answers.labels
    counts = np.bincount(cells, opinion_weights(answers), minlength=n * l).reshape(n, l)
    total = counts.sum(axis=1)
    return (counts + 0.5 / l) / (total[:, None] + 0.5), total


def incidence(answers: Answers) -> sp.csr_array:
    """Sparse matrix, (p l, n), with the weight of answer k of person j to row i at (j l + k, i).

    Of answers that are one label; sets have `set_rates`.
    """
    n, l = answers.shape
    weights, sizes = counted(answers)
    weights = np.where(sizes == 1, weights, 0.0)
    places = answers.people.astype(np.int64) * l + answers.labels
    shape = (answers.n_people * l, n)
    return sp.csr_array(sp.coo_array((weights, (places, answers.rows)), shape=shape))


def person_counts(said: sp.csr_array, posterior: Matrix) -> Matrix:
    """``N_j[c, k]``, the sum of q[i, c] over person j's answers k, (p, l, l)."""
    l = posterior.shape[1]
    return np.asarray(said @ posterior).reshape(-1, l, l).transpose(0, 2, 1)


def expected_confusions(N: Matrix, *, ordered: bool = False) -> Matrix:
    """What is expected of every person before their own answers are looked at, (p, l, l).

    With the accuracy of all, ``acc = trace(sum_j N_j) / total``, and U with acc on the diagonal,
    (1 - acc) / (l - 1) off it::

        P         = (sum_j N_j + l U) / (row sum + l)                     all people as one
        r_j       = (trace N_j + 4 acc) / (n_j + 4)                       ability of j
        M_j[c, c] = sigmoid(logit P[c, c] + logit r_j - logit acc)
        M_j[c, k] = (1 - M_j[c, c]) P[c, k] / (1 - P[c, c])

    With `ordered`, U spreads errors as far along the order of the labels as all people do,
    whatever the truth: ``U[c, k]`` is the share of answers that lie ``k - c`` off.
    """
    l = N.shape[1]
    if l == 1:
        return np.ones_like(N)
    pooled = N.sum(axis=0)
    accuracy = _inside(np.trace(pooled) / max(pooled.sum(), _EDGE))
    if ordered:
        spread = _spread_along_order(pooled)
    else:
        spread = np.full((l, l), (1 - accuracy) / (l - 1))
        np.fill_diagonal(spread, accuracy)
    P = (pooled + l * spread) / (pooled.sum(axis=1, keepdims=True) + l)
    ability = (np.einsum("jcc->j", N) + SHRINKAGE * accuracy) / (N.sum(axis=(1, 2)) + SHRINKAGE)
    ability = logit(_inside(ability))[:, None] - logit(accuracy)
    right = expit(logit(_inside(np.diag(P))) + ability)  # [j, c]
    wrong = P * (1 - np.eye(l))
    wrong /= wrong.sum(axis=1, keepdims=True)
    expected = (1 - right)[:, :, None] * wrong
    expected[:, np.arange(l), np.arange(l)] = right
    return np.asarray(expected)


def confusions(N: Matrix, expected: Matrix, strength: float = 1.0) -> Matrix:
    """Confusion matrices of all people, (p, l, l): ``Theta[j, c, k] = P_j(answer k | truth c)``.

    ``Theta_j = (N_j + s l M_j) / (row sum + s l)`` for the strength s of what is expected.
    """
    weight = strength * N.shape[1]
    return np.asarray((N + weight * expected) / (N.sum(axis=2, keepdims=True) + weight))


def choose_strength(N: Matrix, expected: Matrix) -> float:
    """How alike people are: the strength s under which their counts are likeliest.

    The rows of ``N_j`` are taken for draws from Dirichlet-multinomial distributions with the
    parameters ``s l M_j``; s is one of 1, 2, 4, ... 32.
    """

    def evidence(strength: float) -> float:
        prior = strength * N.shape[1] * expected
        total = strength * N.shape[1]
        rows = gammaln(total) - gammaln(total + N.sum(axis=2))
        return float(rows.sum() + (gammaln(N + prior) - gammaln(prior)).sum())

    return max(STRENGTHS, key=evidence)


def _spread_along_order(pooled: Matrix) -> Matrix:
    """Share of answers at each signed distance from the truth, as a matrix, (l, l)."""
    l = len(pooled)
    distance = np.arange(l) - np.arange(l)[:, None] + l - 1  # k - c, from 0 on
    profile = np.bincount(distance.ravel(), pooled.ravel(), minlength=2 * l - 1) + 1 / l
    room = np.bincount(distance.ravel())  # pairs of labels that lie so far apart
    spread = (profile / room)[distance]
    return np.asarray(spread / spread.sum(axis=1, keepdims=True))


def set_rates(answers: Answers, posterior: Matrix) -> Matrix:
    """How often the set that a person names holds the truth, (p,).

    The posterior mass on j's sets, shrunk by 4 sets towards the mean over people.
    """
    sizes = counted(answers)[1]
    several = sizes > 1
    who, size = answers.people[several], sizes[several]
    held = posterior[answers.rows[several], answers.labels[several]]
    mass = np.bincount(who, held, minlength=answers.n_people)
    count = np.bincount(who, 1 / size, minlength=answers.n_people)
    mean = mass.sum() / max(count.sum(), _EDGE)
    return _inside((mass + SHRINKAGE * mean) / (count + SHRINKAGE))


def _set_gains(answers: Answers, rates: Matrix, l: int) -> Matrix:
    """What a label gains by standing in a set of size s, ``log(h / s) - log((1 - h)/(l - s))``.

    (A,): 0 for answers that are one label, and for sets of all labels.
    """
    size, rate = counted(answers)[1], rates[answers.people]
    some = (size > 1) & (size < l)
    gain = np.log(rate / size) - np.log((1 - rate) / np.maximum(l - size, 1))
    return np.where(some, gain, 0.0)


def log_likelihoods(answers: Answers, said: sp.csr_array, theta: Matrix, rates: Matrix) -> Matrix:
    """Log-likelihood of every row's answers for every label, (n, l), up to a constant a row.

    ``L[i, c] = sum over j of log Theta_j[c, a_ij]``; a set A of size s that person j named adds
    ``log(h_j / s)`` to the labels in it and ``log((1 - h_j) / (l - s))`` to the others.
    """
    l = theta.shape[1]
    table = np.log(theta).transpose(0, 2, 1).reshape(-1, l)  # [(j, k), c]
    L = np.asarray(said.T @ table)
    if answers.sizes is not None:
        weights, sizes = counted(answers)
        gains = _set_gains(answers, rates, l) * (weights / sizes) * sizes
        np.add.at(L, (answers.rows, answers.labels), gains)
    return L


@dataclass(frozen=True)
class Opinions:
    """A sample of opinions, each with the log-likelihood of the row's label under it alone.

    Attributes
    ----------
    rows : ndarray of int, shape (o,)
        The row of every opinion.
    weights : ndarray, shape (o,)
        How often it was given.
    evidence : ndarray, shape (o, l)
        ``log P(opinion | label c)``.
    """

    rows: NDArray[np.int32]
    weights: Matrix
    evidence: Matrix


def sample_opinions(answers: Answers, theta: Matrix, rates: Matrix) -> Opinions:
    """Take at most 50,000 opinions, evenly over all."""
    # The labels of a set follow one another.
    number = np.ceil(np.cumsum(1 / counted(answers)[1]) - 1e-6).astype(int) - 1
    step = max(1, -(-len(np.unique(number)) // _SAMPLE))
    entries = np.flatnonzero(number % step == 0)
    part, l = answers._take(entries), theta.shape[1]
    weights, sizes = counted(part)
    place, first = np.unique(number[entries], return_index=True)
    evidence = np.log(theta[part.people[first], :, part.labels[first]])
    rate, size = rates[part.people[first]], sizes[first]
    others = np.log((1 - rate) / np.maximum(l - size, 1))
    evidence[size > 1] = np.where(size < l, others, 0.0)[size > 1, None]
    several = np.flatnonzero(sizes > 1)
    opinion = np.searchsorted(place, number[entries][several])
    evidence[opinion, part.labels[several]] += _set_gains(part, rates, l)[several]
    return Opinions(part.rows[first], weights[first], evidence)


def answer_likelihood(beta: float, output: Matrix, L: Matrix, opinions: Opinions) -> Matrix:
    """Log-probability of every opinion given the features and the row's *other* answers, (o,).

    ``log sum_c softmax_c(beta f_i + L_i - log P(a | c)) P(a | c)``.
    """
    rows = opinions.rows
    own = np.minimum(opinions.weights, 1.0)[:, None] * opinions.evidence
    others = log_softmax(beta * output[rows] + L[rows] - own, axis=1)
    return np.asarray(logsumexp(others + opinions.evidence, axis=1))


def find_beta(
    output: Matrix, L: Matrix, opinions: Opinions, prior: Any = 0.0
) -> tuple[float, float]:
    """How far the features are to be trusted, by how well they predict left-out answers.

    Maximises ``sum of answer_likelihood - 1e-3 A (log beta - 1.5)^2``, log beta in [-3, 4].

    Returns
    -------
    beta : float
        The best one.
    gain : float
        By how much the log-likelihood of the answers is larger than by `prior` instead of the
        features.
    """
    weights = opinions.weights
    total = max(weights.sum(), _EDGE)

    def likelihood(beta: float) -> float:
        return float(weights @ answer_likelihood(beta, output, L, opinions))

    def loss(log_beta: float) -> float:
        return 1e-3 * (log_beta - 1.5) ** 2 - likelihood(np.exp(log_beta)) / total

    beta = float(np.exp(_least(loss).x))
    without = weights @ answer_likelihood(0.0, output, L + prior, opinions)
    return beta, likelihood(beta) - float(without)


def credit(answers: Answers, posterior: Matrix) -> float:
    """Share of the posterior to be believed, by how often people agree; 1 unless they echo.

    Answers of random people still look reliable to a model that believes the votes. Two people
    of accuracy a agree on a row with probability ``a^2 + (1 - a)^2 / (l - 1)``: that gives a,
    less one standard error, without any model. Where the posterior credits the answers with
    more, it is to be mixed with chance until it does not. Without pairs of answers it is 1.
    """
    l, weights, votes = posterior.shape[1], counted(answers)[0], answers.votes()
    own = weights @ np.minimum(weights, 1)  # a person is no pair
    pairs = np.square(votes.sum(axis=1)).sum() - own
    if answers.sizes is not None or l == 1 or pairs < _FEW_PAIRS:
        return 1.0
    agreement = (np.square(votes).sum() - own) / pairs
    agreement -= np.sqrt(agreement * (1 - agreement) / pairs * 2)
    accuracy = np.sqrt(max(agreement - 1 / l, 0) * (l - 1) / l)  # above chance
    believed = weights @ posterior[answers.rows, answers.labels] / weights.sum() - 1 / l
    return float(np.clip(accuracy / max(believed, _EDGE), 0.01, 1))


def log_frequencies(posterior: Matrix) -> Matrix:
    """How frequent labels are by a posterior, in logarithms, (l,); one more row for each."""
    n, l = posterior.shape
    return np.asarray(np.log((posterior.sum(axis=0) + 1) / (n + l)))


def reported_posterior(
    scores: Matrix, n_answers: Matrix, shared: float, prior: Any = 0.0
) -> Matrix:
    """``softmax(scores / (1 + s (m - 1)) + prior)``: people err together on hard rows, (n, l)."""
    return np.asarray(softmax(scores / _repeated(n_answers, shared) + prior, axis=1))


def _repeated(n_answers: Matrix, shared: float) -> Matrix:
    return 1 + shared * (np.maximum(n_answers, 1) - 1)[:, None]


def find_shared_errors(output: Matrix, L: Matrix, n_answers: Matrix) -> float:
    """How much of a further answer repeats the errors of the others, by the features.

    Few answers cannot tell: errors that people share look like truth. The features are a witness
    who did not hear them. With ``q = softmax(L / (1 + s (m - 1)))`` by the answers alone and
    ``p = softmax(b f)`` by the features alone, both are explained by

        mean over rows of log(.999 sum_c q[i, c] p[i, c] / mean p[., c] + .001)

    b being the best for each s. The result is the largest s, of 0, .05, .1, .2 and .4, that is not
    worse than the best by more than three standard errors: .4 unless features object.
    """
    step = -(-len(output) // _WITNESSED)
    f, L, n_answers = output[::step], L[::step], n_answers[::step]

    def explained(shared: float) -> Matrix:
        q = softmax(L / _repeated(n_answers, shared), axis=1)

        def rows(log_b: float) -> Matrix:
            p = softmax(np.exp(log_b) * f, axis=1)
            return np.asarray(np.log(0.999 * np.sum(q * p / (p.mean(axis=0) + 1e-4), 1) + 0.001))

        return rows(_least(lambda log_b: -rows(log_b).mean()).x)

    return _largest_shared(explained)


def shared_by_answers(L: Matrix, n_answers: Matrix, opinions: Opinions) -> float:
    """How much of a further answer repeats the errors of the others, by the answers alone.

    Where people err together the answers to a row fall into two camps, and each answer is then
    foretold too surely by the others. Rows of fewer than five answers have no two camps: there
    shared errors look like truth. In all others every answer is predicted from the rest,
    ``softmax(L / (1 + s (m - 2)))`` without its own share in L; the result is the largest s that
    is not worse than the best by more than three standard errors, as in `find_shared_errors`; .4
    with fewer than 50 such rows.
    """
    heard = n_answers[opinions.rows] >= _CAMPS
    names, place = np.unique(opinions.rows[heard], return_inverse=True)
    if len(names) < _FEW_PAIRS:
        return SHARED_ERRORS[-1]
    rows, weights = opinions.rows[heard], opinions.weights[heard]
    evidence = opinions.evidence[heard]
    others = L[rows] - np.minimum(weights, 1.0)[:, None] * evidence

    def explained(shared: float) -> Matrix:
        believed = log_softmax(others / _repeated(n_answers[rows] - 1, shared), axis=1)
        each = weights * logsumexp(believed + evidence, axis=1)
        return np.bincount(place, each).astype(np.float64)

    return _largest_shared(explained)


def _largest_shared(explained: Callable[[float], Matrix]) -> float:
    """The largest of `SHARED_ERRORS` that explains rows as well as the best does, nearly."""
    found = {shared: explained(shared) for shared in SHARED_ERRORS}
    most = max(found.values(), key=np.mean)
    error = {shared: (most - rows).std() / np.sqrt(len(rows)) for shared, rows in found.items()}
    return max(s for s, rows in found.items() if (most - rows).mean() <= 3 * error[s])


def suspicion(posterior: Matrix, answered: NDArray[np.bool_]) -> Matrix:
    """Posterior mass outside the answered labels, (n,); NaN for a row without answers."""
    outside = 1 - np.sum(posterior * answered, axis=1)
    return np.where(answered.any(axis=1), np.clip(outside, 0, 1), np.nan)


def _inside(values: Any) -> Any:
    return np.clip(values, _EDGE, 1 - _EDGE)


def _least(loss: Callable[[float], float], xatol: float = 1e-2) -> Any:
    """Where a function of the logarithm of a scale is least, and how small it is there."""
    return minimize_scalar(loss, bounds=(-3, 4), method="bounded", options={"xatol": xatol})


# -- the whole hearing ---------------------------------------------------------------------------


class Regressions:
    """Kernel ridge regressions on z-scored features, and what they say of rows left out.

    Ridges are compared on 4,000 rows at most.

    Parameters
    ----------
    X : ndarray, shape (n, q)
        Features.
    n_labels : int
        l.
    kernel : {"rbf", "linear"}, GaussianKernel or LinearKernel, default="rbf"
        Of the regressions.
    ridges : tuple of float
        Weights of the squared norm to choose from.
    """

    def __init__(
        self,
        X: NDArray[Any],
        n_labels: int,
        kernel: Kernel = "rbf",
        ridges: tuple[float, ...] = RIDGES,
    ) -> None:
        rows = np.asarray(X, dtype=np.float64)
        deviation = rows.std(axis=0)
        self.centre, self.deviation = rows.mean(axis=0), np.where(deviation > 0, deviation, 1.0)
        self.kernel, self.ridges, self.n_labels = kernel, ridges, n_labels
        rows = (rows - self.centre) / self.deviation
        self.sample = np.arange(0, len(rows), -(-len(rows) // _TRIED_ROWS))
        self._some = self._problem(rows[self.sample])
        self._all = self._some if len(self.sample) == len(rows) else self._problem(rows)
        self._ridge: float | None = None

    def _problem(self, rows: Matrix) -> Problem:
        every = CandidateSets(np.ones((len(rows), self.n_labels), bool), np.arange(self.n_labels))
        return Problem(rows, every, kernels=lambda: [(self.kernel, self.ridges[0])])

    def leave_one_out(self, targets: Matrix, ridge: float) -> Matrix:
        """Output on every row of the regression on all the others, (n, l).

        Where there are as many targets as rows in the sample, these are the rows.
        """
        if len(targets) == 1:
            return np.zeros_like(targets)
        problem = self._some
        if len(targets) != len(self.sample):
            problem = self._all
            if ridge != self._ridge:
                problem.forget_smoothers()  # one large matrix at a time
                self._ridge = ridge
        own = problem.smoother(self.kernel, ridge).diagonal[:, np.newaxis]
        output = problem.on_candidates(self.kernel, ridge)(targets.ravel()).reshape(targets.shape)
        return np.asarray((output - own * targets) / np.maximum(1 - own, np.finfo(float).eps))

    def model(self, targets: Matrix) -> TestimonyModel:
        """The regression whose leave-one-out probabilities are nearest to the targets.

        New rows have ``softmax(b f(x))``, b by `scale_of` on the leave-one-out output.
        """
        some = targets[self.sample]
        tried = MODEL_RIDGES if self.ridges == RIDGES else self.ridges
        ridge = min(tried, key=lambda r: scale_of(self.leave_one_out(some, r), some)[1])
        scale = scale_of(self.leave_one_out(targets, ridge), targets)[0]
        smoother = self._all.smoother(self.kernel, ridge)
        output, regressor = smoother.regress(self._all.entries, targets.ravel())
        return TestimonyModel(output, regressor, self.centre, self.deviation, scale)


@dataclass(frozen=True)
class TestimonyModel(Model):
    """What remains for new rows."""

    regressor: Regressor
    centre: Matrix
    deviation: Matrix
    scale: float

    __test__ = False  # for pytest: no test, despite its name

    def decision(self, X: NDArray[Any]) -> Matrix:
        """Scores whose softmax are probabilities, (m, l)."""
        return self.scale * self.regressor.predict((X - self.centre) / self.deviation)

    def probabilities(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Softmax of the scores."""
        return np.asarray(softmax(scores, axis=1))


@dataclass(frozen=True)
class CrowdModel(Model):
    """What remains of a fit without features: nothing for new rows."""

    def decision(self, X: Any) -> Matrix:
        """Say why there is no score."""
        raise ValueError(
            "this model was fitted without features (X=None): transduction_ has the labels of "
            "the training rows, but there is nothing to predict new rows from."
        )


@dataclass(frozen=True)
class Hearing:
    """What became of the answers.

    Attributes
    ----------
    posterior : ndarray, shape (n, l)
        The posterior to be reported, see `reported_posterior`; certain where it was decided.
    confusion : ndarray, shape (p, l, l)
        Of every person.
    beta : float
        Trust in the features.
    ridge : float or None
        That of the regression on them.
    shared : float
        How much of a further answer repeats the errors of the others.
    """

    posterior: Matrix
    confusion: Matrix
    beta: float
    ridge: float | None
    shared: float


def hear(
    answers: Answers,
    regressions: Regressions | None = None,
    *,
    decided: NDArray[np.intp] | None = None,
    ordered: bool = False,
) -> Hearing:
    """Weigh answers and features: eight rounds on the regression of the votes, one on that of q.

    Features that do not predict the answers, by five nats in the first round, are not heard.

    Parameters
    ----------
    answers : Answers
        Who said what.
    regressions : Regressions, default=None
        The features; None: the crowd alone.
    decided : ndarray of int, shape (n,), default=None
        Class of the rows that are certain, -1 elsewhere.
    ordered : bool, default=False
        Whether the classes are in order, see `confusions`.
    """
    said = incidence(answers)
    shares, n_answers = vote_shares(answers)
    q = certain(shares, decided)
    output, ridge, beta = None, None, 0.0
    if regressions is not None:
        ridge = choose_ridge(regressions, answers, q, ordered=ordered)
        output = regressions.leave_one_out(q, ridge)
    for step in range(ROUNDS + 1):
        if regressions is not None and output is not None and step == ROUNDS:  # more echo
            output = regressions.leave_one_out(q, cast(float, ridge))
        theta, rates, L = know_people(answers, said, q, ordered, alike=step >= ALIKE)
        scores, prior = L, log_frequencies(q)
        if output is not None:
            beta, gain = find_beta(output, L, sample_opinions(answers, theta, rates), prior)
            if step == 0 and gain < _GAIN:
                output, beta = None, 0.0
            else:  # the regression has learned how frequent labels are
                scores, prior = beta * output + L, np.zeros_like(prior)
        q = certain(softmax(scores + prior, axis=1), decided)
    if output is not None:
        shared = find_shared_errors(output, L, n_answers)
    else:
        shared = shared_by_answers(L, n_answers, sample_opinions(answers, theta, rates))
    posterior = reported_posterior(scores, n_answers, shared, prior)
    share = credit(answers, posterior)
    posterior = share * posterior + (1 - share) / posterior.shape[1]
    return Hearing(certain(posterior, decided), theta, beta, ridge, shared)


def know_people(
    answers: Answers, said: sp.csr_array, q: Matrix, ordered: bool, *, alike: bool = False
) -> tuple[Matrix, Matrix, Matrix]:
    """Confusions and rates of all people by the posterior q, and what their answers say then.

    With `alike` it is asked how alike people are.
    """
    N = person_counts(said, q)
    expected = expected_confusions(N, ordered=ordered)
    theta = confusions(N, expected, choose_strength(N, expected) if alike else 1.0)
    rates = set_rates(answers, q)
    return theta, rates, log_likelihoods(answers, said, theta, rates)


def choose_ridge(
    regressions: Regressions, answers: Answers, shares: Matrix, *, ordered: bool = False
) -> float:
    """Choose the ridge whose output best predicts the answers.

    By `find_beta`'s gain in the first round, where the people are known by the votes alone: the
    middle one, unless another gains a tenth more.
    """
    if len(regressions.ridges) == 1:
        return regressions.ridges[0]
    some, q = answers[regressions.sample], shares[regressions.sample]
    theta, rates, L = know_people(some, incidence(some), q, ordered)
    opinions, ridges = sample_opinions(some, theta, rates), regressions.ridges
    gains = {r: find_beta(regressions.leave_one_out(q, r), L, opinions)[1] for r in ridges}
    middle, best = ridges[len(gains) // 2], max(gains, key=gains.__getitem__)
    return best if gains[best] > 1.1 * gains[middle] else middle


def certain(posterior: NDArray[Any], decided: NDArray[np.intp] | None) -> NDArray[Any]:
    """Give the rows that were decided their label, and it alone."""
    if decided is None:
        return posterior
    out, rows = posterior.copy(), np.flatnonzero(decided >= 0)
    out[rows] = 0
    out[rows, decided[rows]] = 1
    return out


def scale_of(scores: Matrix, posterior: Matrix) -> tuple[float, float]:
    """Return b of the smallest cross-entropy of softmax(b scores) and the posterior, and it."""

    def loss(log_b: float) -> float:
        return float(-np.mean(np.sum(posterior * log_softmax(np.exp(log_b) * scores, axis=1), 1)))

    best = _least(loss, 1e-3)
    return float(np.exp(best.x)), float(best.fun)


def audit_temperature(posterior: Matrix, truth: NDArray[np.intp]) -> float:
    """Temperature of the posterior of rows that were reviewed at random, (o, l).

    Maximises their likelihood with the prior ``log t ~ N(0, .7^2)``.
    """
    logs = np.log(np.maximum(posterior, _EDGE))

    def loss(log_t: float) -> float:
        right = log_softmax(logs / np.exp(log_t), axis=1)[np.arange(len(truth)), truth]
        return float(log_t**2 / (2 * 0.7**2) - right.sum())

    return float(np.exp(minimize_scalar(loss, bounds=(-3, 3), method="bounded").x))


# -- trivial rivals ------------------------------------------------------------------------------


def majority_vote(answers: Any) -> Matrix:
    """Share of the votes that each label of a row has, (n, l); uniform without votes.

    Parameters
    ----------
    answers : Answers or what `as_answers` reads
        What people said of every row.

    Returns
    -------
    ndarray of shape (n, l)
        Rows sum to one.

    Examples
    --------
    >>> majority_vote([["cat", "cat", "dog"], ["dog", None, None]]).argmax(axis=1)
    array([0, 1])
    """
    return np.asarray(normalize_rows(as_answers(answers).votes()))


def crowd_posterior(answers: Any, *, ordered: bool = False) -> Matrix:
    """Posterior of the crowd alone, without features, (n, l): Dawid and Skene with shrinkage.

    Parameters
    ----------
    answers : Answers or what `as_answers` reads
        What people said of every row.
    ordered : bool, default=False
        Whether labels are ordered: errors are then expected near the truth.

    Returns
    -------
    ndarray of shape (n, l)
        Rows sum to one.

    Examples
    --------
    >>> crowd_posterior([["cat", "cat", "dog"], ["dog", "dog", None]]).argmax(axis=1)
    array([0, 1])
    """
    return hear(as_answers(answers), ordered=ordered).posterior


# -- the classifier ------------------------------------------------------------------------------


@share_docs
@dataclass(kw_only=True, eq=False, repr=False)
class TestimonyClassifier(AppealClassifier):
    """Labels of rows that several people answered for, and a model for new rows.

    It weighs every person's answers by how far they can be believed [1]_, and the answers by the
    features: rows that look alike tend to have the same label. It says how sure it is, whom
    to trust, and where the truth is among nobody's answers.

    Parameters
    ----------
    <kernel>
        Features are z-scored.
    regularization : float or "auto", default="auto"
        Ridge of the regression; ``"auto"``: .5, or .05 or 5 where that predicts the answers
        clearly better; for new rows the one of them and 1.5 that predicts the posterior best.
    within_answers : bool, default=False
        Choose labels of training rows among the answers only; by default among all labels.
    ordered : bool, default=False
        The classes are in order (grades): errors are taken to be near the truth.
    cost : None, str, mapping or array-like, default=None
        What wrong labels cost, see `appellate.costs.cost_matrix`: labels are those of the
        smallest expected cost under the posterior.

    Attributes
    ----------
    classes_ : ndarray, shape (l,)
        Class names.
    confidence_ : ndarray, shape (n, l)
        Posterior of every training row over **all** labels.
    transduction_ : ndarray, shape (n,)
        Label of every training row.
    verdict_confidence_ : ndarray, shape (n, l)
        Posterior of the crowd alone, without features.
    suspicion_ : ndarray, shape (n,)
        Posterior mass outside the row's answers; NaN where there are none.
    candidates_ : ndarray of bool, shape (n, l)
        The labels that were answered.
    answers_ : Answers
        Who said what.
    annotators_ : dict of ndarray
        One entry a person: ``person``, ``answers`` (how many), ``accuracy`` with ``low`` and
        ``high`` (a 95 % interval), ``agreement`` (share of the answers that are among the
        row's most given ones), ``confusion`` (p, l, l): row c holds the probabilities of the
        answers where c is true.
    regularization_ : float or None
        The ridge by which the answers were weighed.
    shared_errors_ : float
        How much of a further answer repeats the errors of the others; .4 unless the features,
        or without them rows of five answers or more, say that people err on their own.
    trust_ : float
        How far the features were trusted, beta; 0: they were not heard.
    temperature_ : float
        By which audited rows recalibrated the posterior; 1 without.
    audit_ : dict or None
        With 20 audited rows or more: ``rows``, ``accuracy``, ``low``, ``high`` (95 %).

    See Also
    --------
    appellate.candidates.as_answers : reads the tables that answers come in.

    Notes
    -----
    Cost: the kernel, n^3 once a ridge (n m^2 by way of m landmarks beyond 20,000 rows), then
    nine rounds of A l for A answers. `appellate.testimony` gives the formulas, function by
    function. People are like one another as far as their answers say, and features are heard
    only where they predict answers; the model of the crowd alone is that of [1]_.

    References
    ----------
    .. [1] Dawid, Skene (1979). Maximum likelihood estimation of observer error-rates using the
       EM algorithm. Journal of the Royal Statistical Society C 28.

    Examples
    --------
    >>> import numpy as np
    >>> from appellate import TestimonyClassifier, as_answers
    >>> X = np.repeat([[0.0], [5.0]], 10, axis=0) + np.linspace(0, 1, 20)[:, None]
    >>> answers = 9 * [["cat", "cat", "dog"]] + [["dog", None, None]] + 10 * [["dog"] * 3]
    >>> model = TestimonyClassifier().fit(X, as_answers(answers))
    >>> model.transduction_[[0, -1]], model.predict([[0.2], [5.5]])
    (array(['cat', 'dog'], dtype=object), array(['cat', 'dog'], dtype=object))
    >>> model.annotators_["agreement"].round(2)
    array([1.  , 1.  , 0.53])
    """

    __test__ = False  # for pytest: no test, despite its name
    kernel: Kernel = "rbf"
    regularization: float | str = "auto"
    within_answers: bool = False
    ordered: bool = False
    cost: Any = None

    _parameter_constraints = {
        **AppealClassifier._parameter_constraints,
        "regularization": [POSITIVE, StrOptions({"auto"})],
        "within_answers": ["boolean"],
        "ordered": ["boolean"],
    }

    @fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, *, decisions: Any = None, audited: Any = None) -> Self:
        """Fit to features and answers.

        Parameters
        ----------
        X : array-like, shape (n, q), or None
            Features; None: the crowd alone, which leaves labels but no model for new rows.
        y : Answers or array-like
            Who said what: `as_answers` reads tables. Candidate sets count as what one unknown
            person named, a label a row as one answer each (noisy labels).
        decisions : array-like, shape (n,), default=None
            Labels of the rows that were reviewed, missing elsewhere; they are certain.
        audited : array-like of bool, shape (n,), default=None
            Which of the reviewed rows were drawn at random. With 20 of them or more the
            posterior is recalibrated, and `audit_` gives an honest accuracy: both by what the
            model says of these rows without their decisions.

        Returns
        -------
        self
        """
        answers, decided, drawn = self._open_answers(X, y, decisions, audited)
        known = (answers.votes() > 0).any(axis=1) | (decided >= 0)
        if not known.any():
            raise ValueError("no row has an answer or a decision; there is nothing to learn from.")
        heard, certainly = answers[known], decided[known]
        rows = regressions = None
        if X is not None:
            rows = np.asarray(self._check_rows(X, reset=True))
            check_length(answers, len(rows))
            ridges = RIDGES if isinstance(self.regularization, str) else (self.regularization,)
            regressions = Regressions(rows[known], len(self.classes_), self.kernel, ridges)
        self.temperature_ = 1.0
        self.audit_: dict[str, Any] | None = None
        if drawn.sum() >= _AUDITED:
            blind = np.where(drawn[known], -1, certainly)
            before = hear(heard, regressions, decided=blind, ordered=self.ordered).posterior
            self._audit(before[drawn[known]], decided[drawn])
        crowd = hearing = hear(heard, decided=certainly, ordered=self.ordered)
        if regressions is not None:
            hearing = hear(heard, regressions, decided=certainly, ordered=self.ordered)
        posterior = hearing.posterior
        if self.audit_ is not None:
            logs = np.log(np.maximum(posterior, _EDGE)) / self.temperature_
            posterior = np.asarray(softmax(logs, axis=1))
        posterior = certain(posterior, certainly)
        self._model = CrowdModel(None) if regressions is None else regressions.model(posterior)
        self.training_output_ = posterior
        unheard = None if rows is None else rows[~known]
        self.confidence_ = self._fill(posterior, known, unheard)
        self.verdict_confidence_ = self._fill(crowd.posterior, known, None)
        self.annotators_ = describe_people(heard, posterior, hearing.confusion)
        self.trust_, self.n_iter_ = hearing.beta, ROUNDS + 1
        self.regularization_, self.shared_errors_ = hearing.ridge, hearing.shared
        self.suspicion_ = suspicion(self.confidence_, self.candidates_)
        allowed = self.candidates_ if self.within_answers else np.ones_like(self.candidates_)
        allowed = certain(allowed, decided)
        self.label_history_ = np.stack(
            [self._choose(p, allowed) for p in (self.verdict_confidence_, self.confidence_)]
        )
        self.transduction_ = self.classes_[self.label_history_[-1]]
        return self

    def docket(
        self, *, ids: Any = None, truth: Any = None, output: str = "auto", separator: str = "|"
    ) -> Any:
        """Tabulate what the crowd said and what became of it, row by row.

        The verdict is the crowd alone, the appeal crowd and features; the outcome ``upheld``,
        ``overturned``, ``outside the answers`` where the appeal is a label that nobody gave, or
        ``unanswered``.

        Parameters
        ----------
        ids, truth, output, separator
            As in `PLCPClassifier.docket`.

        Returns
        -------
        DataFrame, dict of ndarray, or Docket
            The columns of `appellate.docket.Docket`, and ``runner_up``,
            ``runner_up_confidence``, ``suspicion`` and ``votes`` (``cat:3|dog:1``).
        """
        plain = vars(super().docket(ids=ids, truth=truth, output="docket"))
        plain |= {"cost": None, "cost_name": ""}
        table = CrowdDocket(**plain, votes=self.answers_.votes(), suspicion=self.suspicion_)
        if output == "docket":
            return table
        return table.to_frame(self._backend if output == "auto" else output, separator=separator)

    def _open_answers(
        self, X: Any, y: Any, decisions: Any, audited: Any
    ) -> tuple[Answers, NDArray[np.intp], NDArray[np.bool_]]:
        """Answers, classes of the reviewed rows (-1 elsewhere), and which were drawn at random."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: "
                "give answers, candidate sets, or one label a row."
            )
        self.__dict__.pop("_model", None)
        answers = as_answers(ravel_column(y), layout="auto")
        n = len(answers)
        for name, given in (("decisions", decisions), ("audited", audited)):
            if given is not None and len(given) != n:
                raise ValueError(f"{name} has {len(given)} values, but y has {n} rows.")
        decided = np.full(n, -1)
        if decisions is not None:
            codes, found = encode(np.asarray(decisions, dtype=object), None, np.arange(n))
            known = scalars(answers.class_names)
            further = [name for name in scalars(found) if name not in known]
            if further:  # a reviewer knows more labels than the crowd
                answers = answers.rename(name_array([*known, *further]))
            decided[codes >= 0] = place_columns(found, answers.class_names)[codes[codes >= 0]]
        self._backend = frame_backend(y, X)
        self.ids_ = row_index(X) if answers.ids is None else answers.ids
        self.answers_, self.classes_ = answers, answers.class_names
        self.candidates_ = answers.votes() > 0
        self.cost_, self._cost_followed = cost_matrix(self.cost, self.classes_), self.cost
        drawn = np.zeros(n, dtype=bool) if audited is None else np.asarray(audited, dtype=bool)
        return answers, decided, drawn & (decided >= 0)

    def _audit(self, posterior: Matrix, truth: NDArray[np.intp]) -> None:
        self.temperature_ = audit_temperature(posterior, truth)
        right = int(np.sum(self._choose(posterior, np.ones(posterior.shape, dtype=bool)) == truth))
        low, high = share_interval(right, len(truth))
        accuracy = right / len(truth)
        self.audit_ = {"rows": len(truth), "accuracy": accuracy, "low": low, "high": high}

    def _fill(
        self, posterior: Matrix, known: NDArray[np.bool_], unheard: NDArray[Any] | None
    ) -> Matrix:
        """Add the rows that nobody answered: new rows to the model, or like all the others."""
        out = np.tile(posterior.mean(axis=0), (len(known), 1))
        out[known] = posterior
        if unheard is not None and len(unheard):
            out[~known] = self._model.probabilities(self._model.decision(unheard))
        return out

    def _choose(self, posterior: Matrix, allowed: NDArray[Any]) -> NDArray[np.intp]:
        """Label of every row: the likeliest, or the one of the smallest expected cost."""
        scores = posterior if self.cost_ is None else -expected_costs(posterior, self.cost_)
        shut = (allowed == 0) & (allowed > 0).any(axis=1, keepdims=True)
        return np.argmax(np.where(shut, -np.inf, scores), axis=1)


def share_interval(right: Any, total: Any) -> Any:
    """95 % interval of a share (Jeffreys): low and high."""
    return [beta_distribution.ppf(x, right + 0.5, total - right + 0.5) for x in (0.025, 0.975)]


def describe_people(answers: Answers, posterior: Matrix, confusion: Matrix) -> dict[str, Any]:
    """How many answers each person gave, how many of them are right, how many are common.

    Accuracy is the posterior mass on the person's answers, shrunk by 4 answers towards that of
    all people; the interval is that of these counts.
    """
    p, who = answers.n_people, answers.people
    once = opinion_weights(answers)
    each = once * counted(answers)[1]
    count = np.bincount(who, once, minlength=p)
    right = np.bincount(who, each * posterior[answers.rows, answers.labels], minlength=p)
    votes = answers.votes()
    common = (votes == votes.max(axis=1, keepdims=True))[answers.rows, answers.labels]
    mean = _inside(right.sum() / max(count.sum(), _EDGE))
    hits = right + SHRINKAGE * mean
    low, high = share_interval(hits, count + SHRINKAGE)
    named = answers.person_names
    return {
        "person": np.array(["everyone"]) if named is None else named,
        "answers": count,
        "accuracy": hits / (count + SHRINKAGE),
        "low": low,
        "high": high,
        "agreement": np.bincount(who, once * common, minlength=p) / np.maximum(count, _EDGE),
        "confusion": confusion,
    }


@dataclass(frozen=True)
class CrowdDocket(Docket):
    """The docket of answers: beside the usual columns votes, suspicion and the runner-up."""

    votes: Matrix = field(default_factory=lambda: np.empty((0, 0)))
    suspicion: Matrix = field(default_factory=lambda: np.empty(0))

    def columns(self, separator: str = "|") -> dict[str, NDArray[Any]]:
        """Return the table as a dict of arrays, one a column."""
        table = super().columns(separator)
        rows = np.arange(len(self.candidates))
        answered = self.candidates.any(axis=1)
        outside = ~self.candidates[rows, self.appeal]
        outcome = table["outcome"].copy()
        outcome[outside] = "outside the answers"
        outcome[~answered] = "unanswered"
        others = self.appeal_confidence.copy()
        others[rows, self.appeal] = -1
        second = others.argmax(axis=1)
        names, confidence = self.class_names.astype(object), self.appeal_confidence
        if self.appeal_confidence.shape[1] == 1:
            names, confidence = np.array([None]), np.zeros_like(confidence)
        return table | {
            "outcome": outcome,
            "runner_up": names[second],
            "runner_up_confidence": confidence[rows, second],
            "suspicion": self.suspicion,
            "votes": self._counted(separator),
        }

    def _counted(self, separator: str) -> NDArray[np.object_]:
        names = [str(name) for name in self.class_names.tolist()]
        glue = free_separator(names, separator)
        out = np.empty(len(self.votes), dtype=object)
        for i, row in enumerate(self.votes):
            given = np.argsort(-row, kind="stable")[: np.count_nonzero(row)]
            out[i] = glue.join(f"{names[j]}:{row[j]:g}" for j in given)
        return out
