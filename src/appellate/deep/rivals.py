"""Losses of other authors on the one trainer: a class of a few lines each, with its equation.

In all of them p is the softmax of a row's logits f, S its candidates, l the number of labels.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from appellate._parameters import allow
from appellate.deep.estimator import DeepClassifier
from appellate.deep.losses import noncandidate_loss, normalize_over, soft_cross_entropy
from appellate.deep.methods import METHODS, Batch, Proden, Step
from appellate.deep.processes import gather_processes
from appellate.deep.registry import LOSSES


class CC(Proden):
    """Classifier consistent: ``-log sum_S p_j``, in logarithms, so that nothing underflows."""

    def loss(self, logits: Tensor, batch: Batch) -> Tensor:  # noqa: D102
        inside = torch.where(batch.candidates, F.log_softmax(logits, dim=1), -torch.inf)
        return -inside.logsumexp(dim=1).mean()


class LWS(Proden):
    """Leveraged weighted: ``sum_S w_j s(-f_j) + 2 sum_{not S} w_j s(f_j)``, s the sigmoid.

    w is the softmax within either side, of the last visit in S, of this pass outside.
    """

    leverage = 2.0

    def loss(self, logits: Tensor, batch: Batch) -> Tensor:  # noqa: D102
        outside = torch.where(batch.candidates, 0.0, torch.softmax(logits.detach(), dim=1))
        outside = outside / outside.sum(dim=1, keepdim=True).clamp(min=1e-30)
        inside = self.confidence[batch.rows] * torch.sigmoid(-logits)
        return (inside + self.leverage * outside * torch.sigmoid(logits)).sum(dim=1).mean()


class CAVL(Proden):
    """Class activation: ``-log p_k`` for the candidate k of the largest ``|f_k - 1| f_k``.

    At a row's first visit all candidates count alike. The largest is sought among the candidates
    only: a product with the candidate matrix, as public code has it, would prefer any other
    label where all candidates are negative.
    """

    def targets(self, logits: Tensor, batch: Batch) -> Tensor:  # noqa: D102
        value = torch.where(batch.candidates, (logits - 1).abs() * logits, -torch.inf)
        return F.one_hot(value.argmax(dim=1), logits.shape[1]).float()


class MSE(Proden):
    """Several complementary labels: the unbiased estimate of ``|p - e_y|^2``.

    ``1 + |p|^2 - 2 q + 2 (1 - q) (|S| - 1) / (l - |S|)``, q the sum of p in S. A row that has
    every label says nothing.
    """

    def loss(self, logits: Tensor, batch: Batch) -> Tensor:  # noqa: D102
        p = torch.softmax(logits, dim=1)
        size = batch.candidates.sum(dim=1)
        others = logits.shape[1] - size
        inside = (p * batch.candidates).sum(dim=1)
        weight = (size - 1) / others.clamp(min=1)
        losses = 1 + p.square().sum(dim=1) - 2 * inside + 2 * (1 - inside) * weight
        return (losses * (others > 0)).mean()


class EXP(Proden):
    """Several complementary labels, bounded: ``exp(-sum_S p_j) (l - 1) / (l - |S|)``.

    A row that has every label says nothing.
    """

    def loss(self, logits: Tensor, batch: Batch) -> Tensor:  # noqa: D102
        l, size = logits.shape[1], batch.candidates.sum(dim=1)
        inside = (torch.softmax(logits, dim=1) * batch.candidates).sum(dim=1)
        weight = (l - 1) * (size < l) / (l - size).clamp(min=1)
        return (weight * torch.exp(-inside)).mean()


class AbsMAE(Proden):
    """Average of a bounded loss over the candidates: ``mean_S 2 - 2 p_j``."""

    def bounded(self, p: Tensor) -> Tensor:
        """Loss of every label if it were the true one."""
        return 2 - 2 * p

    def loss(self, logits: Tensor, batch: Batch) -> Tensor:  # noqa: D102
        losses = self.bounded(torch.softmax(logits, dim=1)) * batch.candidates
        return (losses.sum(dim=1) / batch.candidates.sum(dim=1)).mean()


class AbsGCE(AbsMAE):
    """Average of a bounded loss over the candidates: ``mean_S (1 - p_j^0.7) / 0.7``."""

    power = 0.7

    def bounded(self, p: Tensor) -> Tensor:  # noqa: D102
        return (1 - p.clamp(min=1e-8) ** self.power) / self.power


class POP(Proden):
    """Progressive purification: ``-sum w_j log p_j``, w the model's p within what is left of S.

    A candidate is dropped for good when the best of the row is ahead of it by more than a
    threshold, which falls evenly from 1 in the first epoch to 1/2 in the last.
    """

    least = 0.5

    def targets(self, logits: Tensor, batch: Batch) -> Tensor:  # noqa: D102
        left = batch.candidates & (self.confidence[batch.rows] > 0)
        share = normalize_over(self._divide(torch.softmax(logits, dim=1)), left)
        threshold = 1 - (1 - self.least) * self.progress
        kept = left & (share.amax(dim=1, keepdim=True) - share <= threshold)
        return normalize_over(share, kept)


class CRDPLL(Proden):
    """Consistency: ``-sum_{not S} log(1 - p_j)``, and views that agree with their common mean.

    Over both views of a row; to it is added, from 0 in the first epoch to its full weight after
    a tenth of them, ``KL(z || p)`` of each view, z the geometric mean of the views' p within S.
    """

    def loss(self, logits: Tensor, batch: Batch) -> Tensor:  # noqa: D102
        outside = noncandidate_loss(logits, batch.candidates)
        z = self.confidence[batch.rows]
        divergence = soft_cross_entropy(logits, z) + torch.xlogy(z, z).sum(dim=1).mean()
        return outside + min(1.0, 10 * self.progress) * divergence

    def forward(self, batch: Batch, epoch: int, n_epochs: int) -> Step:
        """Sum the losses of the views against the common mean of this pass."""
        self.progress = epoch / max(1, n_epochs - 1)
        views = [self.network(view).float() for view in batch.views]
        common = torch.stack([F.log_softmax(each.detach(), dim=1) for each in views]).mean(dim=0)
        self._store(batch.rows, self.targets(common, batch))
        loss = torch.stack([self.loss(each, batch) for each in views]).sum()
        return Step(loss, {"loss_base": loss.detach()}, views[0])


class SoLar(Proden):
    """Optimal transport: ``-sum w_j log p_j``, w the transport of this and earlier batches.

    Rows of ``p^3`` within S are scaled by turns to sum to one, and columns to the frequency of
    the labels, a moving average of the network's best candidates. In the first epoch w stays as
    it started. The authors' choice of rows of small loss and their mixing of rows are left out.
    """

    frequency: Tensor
    queue: Tensor
    filled: Tensor
    sharpness = 3.0
    rate = 0.01
    n_turns = 50
    n_kept = 2048

    def __init__(self, network: nn.Module, confidence: Tensor) -> None:
        super().__init__(network, confidence)
        l = confidence.shape[1]
        self.register_buffer("frequency", torch.full((l,), 1 / l))
        self.register_buffer("queue", torch.zeros(self.n_kept, l))
        self.register_buffer("filled", torch.zeros((), dtype=torch.long))

    def forward(self, batch: Batch, epoch: int, n_epochs: int) -> Step:
        """Transport first, then the loss against it."""
        logits = self.network(batch.views[0]).float()
        found = self.targets(logits.detach(), batch)
        if epoch > 0:
            self._store(batch.rows, found)
        loss = self.loss(logits, batch)
        return Step(loss, {"loss_base": loss.detach()}, logits)

    def targets(self, logits: Tensor, batch: Batch) -> Tensor:  # noqa: D102
        share = normalize_over(torch.softmax(logits, dim=1), batch.candidates)
        own = share**self.sharpness
        earlier = self.queue[: int(self.filled)]
        found = transport(torch.cat([own, earlier]), self.frequency, self.n_turns)[: len(own)]
        found = normalize_over(found, batch.candidates)
        best = gather_processes(F.one_hot(share.argmax(dim=1), logits.shape[1]).float())
        self.frequency.lerp_(best.mean(dim=0), self.rate)
        kept = torch.cat([gather_processes(own), earlier])[: self.n_kept]
        self.queue[: len(kept)] = kept
        self.filled.fill_(len(kept))
        return found


def transport(weights: Tensor, frequency: Tensor, n_turns: int) -> Tensor:
    """Scale columns to the frequencies and rows to one, by turns (Sinkhorn), (m, l).

    Examples
    --------
    >>> even = transport(torch.tensor([[3.0, 1.0], [3.0, 1.0]]), torch.tensor([0.5, 0.5]), 9)
    >>> even.round(decimals=3)
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    rows = weights
    for _ in range(n_turns):
        rows = rows * (frequency / rows.sum(dim=0).clamp(min=1e-30))
        rows = rows / rows.sum(dim=1, keepdim=True).clamp(min=1e-30)
    return rows


class Records(Proden):
    """Rebalanced: ``-sum w_j log p_j``, w within S of the softmax of ``f - log r``.

    r is the softmax of a moving average of f; the authors ask the classifier, as it is now, about
    a moving average of the features.
    """

    average: Tensor
    momentum = 0.9

    def __init__(self, network: nn.Module, confidence: Tensor) -> None:
        super().__init__(network, confidence)
        self.register_buffer("average", torch.zeros(confidence.shape[1]))

    def targets(self, logits: Tensor, batch: Batch) -> Tensor:  # noqa: D102
        self.average.lerp_(gather_processes(logits).mean(dim=0), 1 - self.momentum)
        debiased = logits - F.log_softmax(self.average, dim=0)
        return super().targets(debiased, batch)


#: Class of every loss, by its name.
RIVALS: dict[str, type[Proden]] = {loss.name: globals()[loss.class_name] for loss in LOSSES}
METHODS.update(RIVALS)
_LOSSES = {loss.name: loss for loss in LOSSES}
_WITH_TARGETS = [loss.name for loss in LOSSES if loss.has_targets]


def _describe_losses(documented: type) -> type:
    """Write the rows of the registry into a docstring: losses and their papers."""
    papers = list(dict.fromkeys(loss.reference for loss in LOSSES))
    width = max(len(name) for name in RIVALS) + 4
    rows = [
        f"{f'``{loss.name}``':{width}}  {loss.help} [{papers.index(loss.reference) + 1}]_"
        for loss in LOSSES
    ]
    rule = f"{'=' * width}  {'=' * (max(map(len, rows)) - width - 2)}"
    parts = {
        "losses": [rule, *rows, rule],
        "papers": [f".. [{i}] {paper}" for i, paper in enumerate(papers, 1)],
        "with_targets": [", ".join(_WITH_TARGETS)],
    }
    for name, lines in parts.items():
        documented.__doc__ = (documented.__doc__ or "").replace(f"@{name}@", "\n".join(lines))
    return documented


@_describe_losses
@dataclass(eq=False, repr=False)
class RivalClassifier(DeepClassifier):
    """Other authors' losses for partial labels, on the same networks, alone or coupled.

    With p the softmax of a row's logits f, S its candidates among l labels and w its targets:

    @losses@

    Cost: that of plain training of the same network, twice with a partner or with two views
    (``cr-dpll``). Memory: the network, one batch, and n x l confidences.

    Parameters
    ----------
    network : str, callable or Network, default="mlp"
        As of `PRODENClassifier`.
    @parameters@
    loss : str, default="cc"
        One of the table. Another `ambiguity` than label-first needs targets to correct:
        @with_targets@ have such.

    Attributes
    ----------
    @attributes@

    References
    ----------
    @papers@

    Examples
    --------
    >>> from appellate.deep import RivalClassifier
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> RivalClassifier(loss="cc", n_epochs=60, random_state=0).fit(X, y).predict([[0.05], [4.9]])
    array(['cat', 'dog'], dtype='<U3')
    """

    _: KW_ONLY
    loss: str = allow("cc", {*RIVALS})

    @property
    def _method(self) -> str:  # type: ignore[override]
        return self.loss

    @property
    def _image_views(self) -> tuple[str, ...]:  # type: ignore[override]
        return _LOSSES[self.loss].views

    def _settled(self, shape: tuple[int, ...] = ()) -> Any:
        settled = super()._settled(shape)
        ambiguity = settled.ambiguity
        corrected = ambiguity.tau != 0 or ambiguity.targets == "given"
        if corrected and self.loss not in _WITH_TARGETS:
            raise ValueError(
                f"loss={self.loss!r} has no targets that ambiguity={self.ambiguity!r} could "
                f"correct: take ambiguity='label-first', or one of {', '.join(_WITH_TARGETS)}."
            )
        return settled
