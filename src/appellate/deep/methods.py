"""What is trained: PRODEN and PiCO, alone or with a second network.

A method is a module whose forward pass takes a batch, updates the method's own state (its
confidence in the candidates, its queue, its prototypes) and returns the loss. All of the state
is in buffers, so ``state_dict`` holds everything that a checkpoint must.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from appellate.deep import losses
from appellate.deep.networks import Shape, count_features
from appellate.deep.processes import gather_processes
from appellate.deep.settings import Contrast, Coupling, Network
from appellate.deep.streams import Streams


class Batch(NamedTuple):
    """Some training rows.

    Attributes
    ----------
    rows : Tensor of int, shape (m,)
        Their numbers.
    views : tuple of Tensor
        Inputs of the network, one or more augmented versions of each row.
    candidates : Tensor of bool, shape (m, l)
        Their candidate sets.
    """

    rows: Tensor
    views: tuple[Tensor, ...]
    candidates: Tensor


class Step(NamedTuple):
    """What a method makes of a batch: the loss, its parts for the log, and the logits."""

    loss: Tensor
    parts: dict[str, Tensor]
    logits: Tensor


class ClassPrior(nn.Module):
    """How frequent each label is among the targets, a moving average over batches.

    Set-first candidates contain that already, so that it is divided out of a network's
    probabilities: ``w = rownorm(y * g / (prior + .01 / l)^tau)``.

    Parameters
    ----------
    start : Tensor, shape (n, l)
        Confidence that the network starts from.
    tau : float
        Ambiguity, from 0 (label-first) to 1 (set-first).
    """

    shares: Tensor
    rate = 0.05  # of a batch in the average

    def __init__(self, start: Tensor, tau: float) -> None:
        super().__init__()
        self.tau = tau
        self.register_buffer("shares", start.mean(dim=0))

    def logs(self) -> Tensor:
        """Logarithm of what a label's probability is multiplied with, (l,)."""
        return -self.tau * torch.log(self.shares + 0.01 / len(self.shares))


class DeepMethod(nn.Module, ABC):
    """What the trainer asks of a method.

    Attributes
    ----------
    confidence : Tensor, shape (n, l)
        Confidence in the candidates of every training row, rows summing to one.
    """

    confidence: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.prior: ClassPrior | None = None
        self.fixed = False  # whether the confidence stays as it is

    @abstractmethod
    def forward(self, batch: Batch, epoch: int, n_epochs: int) -> Step:
        """Return the loss on a batch, and learn from it what is not learnt by gradient."""

    @abstractmethod
    def heads(self, x: Tensor) -> dict[str, Tensor]:
        """Probabilities of new inputs, (m, l), by every network that can predict."""

    def take_over(self, before: nn.Module | None) -> Self:
        """Take the weights of another one, if there is one and they fit."""
        state, kept = self.state_dict(), {} if before is None else weights(before.state_dict())
        if kept and all(k in state and state[k].shape == v.shape for k, v in kept.items()):
            self.load_state_dict({**state, **kept})
        return self

    def _store(self, rows: Tensor, confidence: Tensor) -> None:
        """Keep the confidence of a batch, in all processes, unless it is fixed."""
        if self.fixed:
            return
        heard = gather_processes(confidence.to(self.confidence.dtype))
        self.confidence[gather_processes(rows)] = heard
        if self.prior is not None:
            self.prior.shares.lerp_(heard.mean(dim=0), self.prior.rate)

    def _divide(self, probabilities: Tensor) -> Tensor:
        """``g_j / prior_j^tau``, if a prior is known."""
        return probabilities if self.prior is None else probabilities * self.prior.logs().exp()


class Proden(DeepMethod):
    """Progressive identification: the network's own probabilities become its targets.

    Other methods of one network that sees one view have another `loss` or other `targets`.

    Parameters
    ----------
    network : Module
        Gives logits, (m, l).
    confidence : Tensor, shape (n, l)
        To start from.

    Attributes
    ----------
    progress : float
        0 in the first epoch, 1 in the last.
    """

    progress = 0.0

    def __init__(self, network: nn.Module, confidence: Tensor) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("confidence", confidence.clone())

    @classmethod
    def make(cls, network: Network, shape: Shape, start: Tensor, options: Any) -> Self:
        """Make the method with fresh networks for rows of a shape."""
        return cls(network.make(shape, start.shape[1]), start)

    def loss(self, logits: Tensor, batch: Batch) -> Tensor:
        """Mean loss of a batch: the cross entropy against the confidence."""
        return losses.soft_cross_entropy(logits, self.confidence[batch.rows])

    def targets(self, logits: Tensor, batch: Batch) -> Tensor:
        """Confidence of a batch after its step: ``rownorm(y * g)``, a prior divided out."""
        return losses.normalize_over(self._divide(torch.softmax(logits, dim=1)), batch.candidates)

    def forward(self, batch: Batch, epoch: int, n_epochs: int) -> Step:
        """Return the loss, then set the next targets by the same pass."""
        self.progress = epoch / max(1, n_epochs - 1)
        logits = self.network(batch.views[0]).float()
        loss = self.loss(logits, batch)
        if not self.fixed:
            self._store(batch.rows, self.targets(logits.detach(), batch))
        return Step(loss, {"loss_base": loss.detach()}, logits)

    def heads(self, x: Tensor) -> dict[str, Tensor]:
        """Probabilities by the network."""
        return {"base": torch.softmax(self.network(x).float(), dim=1)}


class ContrastNetwork(nn.Module):
    """An encoder with a classifier and a projection to unit length on top."""

    def __init__(self, encoder: nn.Module, n_features: int, n_classes: int, size: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.classifier = nn.Linear(n_features, n_classes)
        self.projection = nn.Sequential(
            nn.Linear(n_features, n_features), nn.ReLU(), nn.Linear(n_features, size)
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits, (m, l), and embeddings, (m, d)."""
        features = self.encoder(x)
        embedding = F.normalize(self.projection(features).float(), dim=1)
        return self.classifier(features).float(), embedding


class Pico(DeepMethod):
    """Contrastive label disambiguation: class prototypes of embeddings choose the targets.

    Parameters
    ----------
    network : ContrastNetwork
        The query network; the key network starts as its copy.
    confidence : Tensor, shape (n, l)
        To start from.
    settings : Contrast
        Its constants.
    """

    queue: Tensor
    queue_labels: Tensor
    position: Tensor
    prototypes: Tensor

    def __init__(self, network: ContrastNetwork, confidence: Tensor, settings: Contrast) -> None:
        super().__init__()
        self.settings = settings
        self.query = network
        self.key = copy.deepcopy(network).requires_grad_(False)
        size, n_labels = settings.projection_size, confidence.shape[1]
        queue = F.normalize(torch.randn(settings.queue_size, size), dim=1)
        self.register_buffer("confidence", confidence.clone())
        self.register_buffer("queue", queue)
        self.register_buffer("queue_labels", torch.full((settings.queue_size,), -1))
        self.register_buffer("position", torch.zeros((), dtype=torch.long))
        self.register_buffer("prototypes", torch.zeros(n_labels, size))

    @classmethod
    def make(cls, network: Network, shape: Shape, start: Tensor, options: Contrast) -> Self:
        """Put classifier and projection on an encoder."""
        encoder, l = network.make(shape, None), start.shape[1]
        features = count_features(encoder, shape)
        return cls(ContrastNetwork(encoder, features, l, options.projection_size), start, options)

    def forward(self, batch: Batch, epoch: int, n_epochs: int) -> Step:
        """Classify the weak view and contrast it with the strong one."""
        s = self.settings
        logits, embedding = self.query(batch.views[0])
        with torch.no_grad():
            guess = _best_candidate(self._divide(torch.softmax(logits, dim=1)), batch.candidates)
            nearness = losses.inner_products(embedding, self.prototypes)
            if self.prior is not None:
                nearness = nearness / s.temperature + self.prior.logs()
            nearest = _best_candidate(nearness, batch.candidates)
            self._update_prototypes(gather_processes(embedding), gather_processes(guess))
            for key, query in zip(self.key.parameters(), self.query.parameters(), strict=True):
                key.lerp_(query, 1 - s.key_momentum)
            keys = self.key(batch.views[1])[1]
        if epoch >= s.prototype_start:
            chosen = F.one_hot(nearest, logits.shape[1])
            keep = s.keep(epoch, n_epochs)
            target = keep * self.confidence[batch.rows] + (1 - keep) * chosen
            self._store(batch.rows, target)
            contrast = torch.cat([embedding, keys, self.queue])
            labels = torch.cat([guess, guess, self.queue_labels])
            positives = guess[:, None] == labels
            contrasted = losses.contrastive_loss(embedding, contrast, positives, s.temperature)
        else:
            contrasted = losses.instance_loss(embedding, keys, self.queue.clone(), s.temperature)
        self._enqueue(gather_processes(keys), gather_processes(guess))
        classified = losses.soft_cross_entropy(logits, self.confidence[batch.rows])
        loss = classified + s.contrast_weight * contrasted
        parts = {"loss_base": classified.detach(), "loss_contrast": contrasted.detach()}
        return Step(loss, parts, logits)

    def heads(self, x: Tensor) -> dict[str, Tensor]:
        """Probabilities by the query network's classifier."""
        return {"base": torch.softmax(self.query(x)[0], dim=1)}

    def _update_prototypes(self, embedding: Tensor, labels: Tensor) -> None:
        """Move each prototype towards its samples one after another, all at once.

        The r-th last of t samples of a class has the weight
        ``(1 - momentum) momentum^r``, the old prototype ``momentum^t``.
        """
        momentum = self.settings.prototype_momentum
        member = F.one_hot(labels, len(self.prototypes)).to(embedding.dtype)
        later = member.flip(0).cumsum(0).flip(0) - member
        weight = (1 - momentum) * momentum**later * member
        kept = momentum ** member.sum(dim=0)
        moved = kept[:, None] * self.prototypes + losses.inner_products(weight.T, embedding.T)
        self.prototypes.copy_(F.normalize(moved, dim=1))

    def _enqueue(self, keys: Tensor, labels: Tensor) -> None:
        """Write keys over the oldest of the queue, which is a ring."""
        size = len(self.queue)
        keys, labels = keys[-size:], labels[-size:]
        places = (self.position + torch.arange(len(keys), device=keys.device)) % size
        self.queue[places], self.queue_labels[places] = keys, labels
        self.position.copy_((self.position + len(keys)) % size)


class Coupled(DeepMethod):
    """A base, whose confidence counts, and a partner network that learns what a sample is not.

    ``L = L_base + L_com + collaboration * L_col``: the partner's own loss on non-candidates,
    and the disagreement of both blurred confidences. The base's targets stay its own.
    """

    def __init__(self, base: DeepMethod, partner: nn.Module, settings: Coupling) -> None:
        super().__init__()
        self.base = base
        self.partner = partner
        self.settings = settings

    @property
    def confidence(self) -> Tensor:  # type: ignore[override]
        """Confidence of the base."""
        return self.base.confidence

    def heads(self, x: Tensor) -> dict[str, Tensor]:
        """Probabilities by base, partner and the mean of both."""
        base, partner = self.base.heads(x)["base"], self.second_opinion(x)
        return {"base": base, "partner": partner, "mean": (base + partner) / 2}

    def forward(self, batch: Batch, epoch: int, n_epochs: int) -> Step:
        """Sum the losses of base and partner and their disagreement."""
        step, (own, belief) = self.base(batch, epoch, n_epochs), self._hear(batch)
        s = self.settings
        from_base = losses.blur_tensor(torch.softmax(step.logits, dim=1), batch.candidates, s.blur)
        from_partner = losses.blur_tensor(belief, batch.candidates, s.blur)
        agreement = (from_base.argmax(1) == from_partner.argmax(1)).float().mean()
        if s.direction == "to_base":
            from_partner = from_partner.detach()
        elif s.direction == "to_partner":
            from_base = from_base.detach()
        collaborative = losses.collaborative_loss(from_base, from_partner)
        parts = {"loss_partner": own.detach(), "agreement": agreement}
        parts = {**step.parts, **parts, "loss_collaborative": collaborative.detach()}
        return Step(step.loss + own + s.collaboration * collaborative, parts, step.logits)

    def second_opinion(self, x: Tensor) -> Tensor:
        """What the partner does not rule out, normalised."""
        belief = 1 - losses.noncandidate_confidence(self.partner(x), self.settings.partner_output)
        return losses.normalize_over(belief, torch.ones_like(belief, dtype=torch.bool))

    def _hear(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the partner's own loss, and what it believes each label to be worth."""
        s, logits = self.settings, self.partner(batch.views[0])
        own = losses.noncandidate_loss(logits, batch.candidates, s.partner_output, s.reduction)
        return own, 1 - losses.noncandidate_confidence(logits, s.partner_output)


class CoupledTwin(Coupled):
    """Ablation: the partner is an ordinary classifier with PRODEN's targets (the paper's "O")."""

    partner: DeepMethod

    def second_opinion(self, x: Tensor) -> Tensor:
        """Probabilities by the partner."""
        return self.partner.heads(x)["base"]

    def _hear(self, batch: Batch) -> tuple[Tensor, Tensor]:
        step = self.partner(batch, 0, 1)
        return step.loss, torch.softmax(step.logits, dim=1)


class Ensemble(CoupledTwin):
    """Control: two methods of the same kind, trained at the same time, that never meet."""

    def forward(self, batch: Batch, epoch: int, n_epochs: int) -> Step:
        """Sum the losses of both."""
        one, two = (each(batch, epoch, n_epochs) for each in (self.base, self.partner))
        parts = {**one.parts, "loss_partner": two.loss.detach()}
        return Step(one.loss + two.loss, parts, one.logits)


class Committee(nn.Module):
    """Methods of one kind that were trained one by one; the first one gives the first label.

    Parameters
    ----------
    members : sequence of Method
        Trained.
    others : bool
        Whether the first is not among those whose mean predicts.
    """

    def __init__(self, members: Sequence[nn.Module], others: bool) -> None:
        super().__init__()
        self.members, self.others = nn.ModuleList(members), others

    @property
    def confidence(self) -> Tensor:
        """Confidence of the first."""
        return cast(Tensor, self.members[0].confidence)

    def heads(self, x: Tensor) -> dict[str, Tensor]:
        """Probabilities by the first, by each member, and their mean; and of the partners."""
        said = [cast(DeepMethod, member).heads(x) for member in self.members]
        return combine(said, self.others)


def make_committee(members: Sequence[DeepMethod], others: bool) -> DeepMethod | Committee:
    """Let members sit in a committee; one alone needs none."""
    return members[0] if len(members) == 1 else Committee(members, others)


def combine(said: Sequence[dict[str, Any]], others: bool) -> dict[str, Any]:
    """Probabilities by the first of several members, by each, their mean, and their partners'.

    What one alone says is left as it is.

    Parameters
    ----------
    said : sequence of dict
        The heads of every member, tensors or arrays.
    others : bool
        Whether the first is not among those whose mean predicts.
    """
    if len(said) == 1:
        return said[0]
    judges = said[others:]
    each = [one.get("mean", one["base"]) for one in judges]
    heads = {"base": said[0]["base"]}
    if "partner" in judges[0]:
        heads["partner"] = sum(one["partner"] for one in judges) / len(judges)
    heads |= {f"network {k}": one for k, one in enumerate(each, 1)}
    return heads | {"mean": sum(each) / len(each)}


def weights(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Keep of a state all but what was learnt of the training rows' labels."""
    return {k: v for k, v in state.items() if not k.endswith(("confidence", "prior.shares"))}


def _best_candidate(scores: Tensor, candidates: Tensor) -> Tensor:
    """Label of the largest score among the candidates, (m,)."""
    return torch.where(candidates, scores, -torch.inf).argmax(dim=1)


#: Every method by its name: a new one is a class, and a line here.
METHODS: dict[str, type[Proden | Pico]] = {"PRODEN": Proden, "PiCO": Pico}


@dataclass(frozen=True)
class MethodPlan:
    """The plan of a method: for `fit`, and to make it again for saved weights.

    Attributes
    ----------
    method : str
        One of `METHODS`.
    network : Network
        Network of base and partner.
    coupling : Coupling
        Whether there is a partner, and what it hears.
    options : object or None
        Constants of the method, such as `Contrast`.
    shape : tuple of int
        Shape of a row.
    tau : float, default=0.0
        Power of the class prior that is divided out of the targets.
    fixed : bool, default=False
        Whether the targets stay the confidence that a method starts from.
    n_members : int, default=1
        Networks of a `Committee`.
    others : bool, default=False
        Whether its first is not among those that predict.
    """

    method: str
    network: Network
    coupling: Coupling
    options: Any
    shape: Shape
    tau: float = 0.0
    fixed: bool = False
    n_members: int = 1
    others: bool = False

    @classmethod
    def of(cls, settings: Any, shape: Shape) -> MethodPlan:
        """Take the parts from a classifier whose settings are objects."""
        constants = getattr(settings, "contrast", None)
        return cls(settings._method, settings.network, settings.partner, constants, shape)

    def make(self, start: Tensor, streams: Streams) -> DeepMethod:
        """Make the networks, each from a stream of its own, and a confidence to start from."""
        with streams.drawing("base"):
            base = self._make_base(start)
        if self.coupling.partner is None:
            return base
        with streams.drawing("partner"):
            if self.coupling.partner == "independent":
                return Ensemble(base, self._make_base(start), self.coupling)
            network = self.network.make(self.shape, start.shape[1])
            if self.coupling.partner == "non-candidate":
                return Coupled(base, network, self.coupling)
            return CoupledTwin(base, self._inform(Proden(network, start)), self.coupling)

    def _make_base(self, start: Tensor) -> DeepMethod:
        kind = METHODS[self.method]
        return self._inform(kind.make(self.network, self.shape, start, self.options))

    def _inform(self, method: DeepMethod) -> DeepMethod:
        """Tell a method how candidate sets arise."""
        method.fixed = self.fixed
        if self.tau:
            method.prior = ClassPrior(method.confidence, self.tau)
        return method
