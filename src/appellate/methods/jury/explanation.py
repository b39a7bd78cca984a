"""Why a row with a candidate set has its label: what the members say, and how the set arose.

The score of a candidate is ``log mixture - tau log pi`` plus the logarithm of what else is known
of the row. The mixture is that of the members without the row's own target. A jury mixes
probabilities, so that the members are not terms of a sum of logarithms: what each of them says is
kept next to the sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate.core.explanation import MOST_SHOWN, Explanation, Member, Neighbor, Part, log, plain
from appellate.evidence.likelihood import Evidence, estep_shares
from appellate.methods.jury.exact import ArrayOutputs
from appellate.methods.jury.members import Doubles
from appellate.methods.jury.rounds import JuryRound, Outputs, mixture
from appellate.numerics.entries import CandidateEntries

SET = "candidate set"
MEMBERS = "members"
ORDER = "neighbouring labels"
EVIDENCE = "evidence"
FREQUENCY = "label frequency"
COVERED = "labels of the group"
_BLOCK = 1 << 22  # weights that are looked at in one piece


@dataclass(frozen=True, eq=False)
class SetAccount:
    """What the scores of the training rows are made of, beyond the fitted attributes.

    Attributes
    ----------
    evidence : ndarray, shape (n, l), or None
        Log-likelihoods that were given to `fit`.
    shares : ndarray, shape (l,), or None
        pi, by whose power tau the mixture is divided; None if tau is 0.
    unordered : ndarray, shape (n, l), or None
        The mixture before neighbouring labels share their scores; None without an order.
    names, weights : list of str, list of float
        Those of the members.
    said : ndarray, shape (nnz, M)
        Probabilities of every member at the candidates.
    near, closeness : ndarray, shape (n, k)
        The most similar rows, and their weights in the leave-one-out score of the kernel member
        with the largest weight. Empty if the kernels are Nystroem features.
    """

    evidence: Doubles | None
    shares: NDArray[np.float64] | None
    unordered: Doubles | None
    names: list[str]
    weights: list[float]
    said: NDArray[np.float32]
    near: NDArray[np.int32]
    closeness: NDArray[np.float32]


def take_account(
    rounds: Sequence[tuple[JuryRound, Outputs]],
    evidence: Evidence,
    tau: float,
    smooth: Doubles | None,
    output: Doubles,
    logs: Any = None,
) -> SetAccount:
    """Keep what the posterior of the training rows was made of.

    Parameters
    ----------
    rounds : sequence of (JuryRound, Outputs)
        The rounds whose mixtures are averaged: the last one, and an earlier one if it was
        better.
    evidence : Evidence
        The one of all rows.
    tau : float
        How the sets arose.
    smooth : ndarray, shape (l, l), or None
        What shares scores between neighbouring labels.
    output : ndarray, shape (n, l)
        The mixture of the rounds, without every row's own target.
    logs : array-like, shape (n, l), default=None
        Further evidence that was given to `fit`.
    """
    shares = estep_shares(output, evidence, tau) if tau > 0 else None
    given = None if logs is None else np.asarray(logs, dtype=np.float64)
    exact = [(done, each) for done, each in rounds if isinstance(each, ArrayOutputs)]
    if not exact:
        empty = np.empty((len(output), 0))
        said = np.empty((len(evidence.entries), 0), dtype=np.float32)
        near, closeness = empty.astype(np.int32), empty.astype(np.float32)
        return SetAccount(given, shares, None, [], [], said, near, closeness)
    names: list[str] = []
    weights: list[float] = []
    columns = []
    for number, (done, outputs) in enumerate(exact):
        own = [each.name for each in outputs.members] + [name for name, _ in outputs.forests]
        names += [f"{name}, earlier" if number else name for name in own]
        weights += (done.used / len(exact)).tolist()
        for scores, scale in zip(outputs.arrays, done.scales, strict=True):
            columns.append(evidence.entries.gather(scale.soften(scores[:, 0])))
    last, outputs = exact[0]
    leading = outputs.members[int(np.argmax(last.used[: len(outputs.members)]))]
    near, closeness = find_similar(leading.matrix)
    unordered = None
    if smooth is not None:
        unordered = np.mean([_without_order(evidence, *each) for each in exact], axis=0)
    said = np.stack(columns, axis=1).astype(np.float32)
    return SetAccount(given, shares, unordered, names, weights, said, near, closeness)


def _without_order(evidence: Evidence, done: JuryRound, outputs: ArrayOutputs) -> Doubles:
    """Mixture of a round if the kernel members had learned from targets as they are, (n, l).

    Further members are as they are in the mixture: they would have to learn again.
    """
    targets = evidence.entries.scatter(done.targets[0])
    scores = [each[:, 0] for each in outputs.arrays]
    for m, each in enumerate(outputs.members):
        scores[m] = each.leave_one_out(targets)
    return mixture(scores, done.scales, done.used)


def find_similar(
    matrix: NDArray[Any], most: int = MOST_SHOWN
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Find the rows that count most in the leave-one-out scores of a kernel regression.

    With B of `KernelMember`, row i has the score ``sum over j of w_ij Q_j`` with
    ``w_ij = -B_ij / B_ii``; these weights sum to one.

    Parameters
    ----------
    matrix : ndarray, shape (n, n)
        B.
    most : int, default=6
        How many rows.

    Returns
    -------
    rows, weights : ndarray, shape (n, k)
        The largest weights first; only rows of a positive weight, the others are -1 with a
        weight of 0.

    Examples
    --------
    >>> import numpy as np
    >>> rows, weights = find_similar(np.array([[1.0, -0.9, -0.1], [-0.9, 1.0, -0.1], [-0.1] * 3]))
    >>> rows[:2].tolist(), weights[0].round(1).tolist()
    ([[1, 2], [0, 2]], [0.8999999761581421, 0.10000000149011612])
    """
    n = len(matrix)
    k = min(most, n - 1)
    rows, weights = np.empty((n, k), np.int32), np.empty((n, k), np.float32)
    step = max(1, _BLOCK // max(n, 1))
    for start in range(0, n if k else 0, step):
        some = np.arange(start, min(start + step, n))
        block = -matrix[some] / matrix[some, some][:, np.newaxis]
        block[np.arange(len(some)), some] = -np.inf
        best = np.argpartition(block, n - k, axis=1)[:, n - k :]
        found = np.take_along_axis(block, best, axis=1)
        order = np.argsort(-found, axis=1, kind="stable")
        rows[some] = np.take_along_axis(best, order, axis=1)
        weights[some] = np.take_along_axis(found, order, axis=1)
    rows[weights <= 0], weights[weights <= 0] = -1, 0
    return rows, weights


def explain_sets(
    account: SetAccount,
    rows: Iterable[int],
    *,
    candidates: NDArray[np.bool_],
    classes: NDArray[Any],
    output: Doubles,
    confidence: Doubles,
    labels: NDArray[Any],
    tau: float,
    covering: bool,
) -> list[Explanation]:
    """Split the scores of some rows into their parts.

    Parameters
    ----------
    account : Account
        The one of all rows.
    rows : iterable of int
        The rows.
    candidates, classes, output, confidence, labels
        Fitted attributes of the jury.
    tau : float
        How the sets are taken, from 0 (label-first) to 1 (set-first).
    covering : bool
        Whether groups were covered.
    """
    possible = candidates
    if account.evidence is not None:
        possible = candidates & ~np.isneginf(account.evidence)
    entries = CandidateEntries(possible)
    out = []
    for i in rows:
        with np.errstate(divide="ignore"):
            parts = [Part(SET, np.log(candidates[i].astype(np.float64)))]
        mixed = log(output[i])
        if account.unordered is None:
            parts.append(Part(MEMBERS, mixed))
        else:
            before = log(account.unordered[i])
            parts += [Part(MEMBERS, before), Part(ORDER, mixed - before)]
        if account.evidence is not None:
            parts.append(Part(EVIDENCE, account.evidence[i]))
        if account.shares is not None:
            parts.append(Part(FREQUENCY, -tau * np.log(account.shares)))
        if covering:
            total = np.sum([part.values for part in parts], axis=0)
            values = log(confidence[i]) - np.where(np.isfinite(total), total, 0.0)
            parts.append(Part(COVERED, np.where(np.isfinite(total), values, 0.0)))
        spots = slice(entries.indptr[i], entries.indptr[i + 1])
        members = []
        for m, (name, weight) in enumerate(zip(account.names, account.weights, strict=True)):
            said = np.full(len(classes), np.nan)
            said[entries.labels[spots]] = account.said[spots, m]
            members.append(Member(name, weight, said))
        pairs = zip(account.near[i].tolist(), account.closeness[i].tolist(), strict=True)
        near = [Neighbor(j, w, plain(labels[j]), str(j)) for j, w in pairs if j >= 0]
        parts_of_row = (parts, confidence[i], plain(labels[i]), members, near)
        out.append(Explanation(i, classes, *parts_of_row))
    return out
