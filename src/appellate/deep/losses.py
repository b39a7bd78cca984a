"""The losses of PRODEN, PiCO and their coupling with a partner, one function each.

Everything here works on logits or probabilities of a batch, (m, l), and returns the mean over
the batch as a scalar in float32, whatever the precision of the network.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

#: How the partner's logits are read as non-candidate confidence; see `noncandidate_confidence`.
PARTNER_OUTPUTS = ("complement", "softmax", "softmax_rescaled", "sigmoid")
_NEARLY_ONE = 1 - 1e-6
_SHARP, _SHARPEST = 20.0, 1e4


def soft_cross_entropy(logits: Tensor, confidence: Tensor) -> Tensor:
    """Cross entropy against a confidence: ``-mean_i sum_j W_ij log g_ij``.

    Examples
    --------
    >>> soft_cross_entropy(torch.zeros(1, 2), torch.tensor([[0.5, 0.5]])).item().__round__(4)
    0.6931
    """
    return -(confidence * F.log_softmax(logits.float(), dim=1)).sum(dim=1).mean()


def noncandidate_confidence(logits: Tensor, output: str = "complement") -> Tensor:
    """Read the partner's logits as the confidence that a label is not the true one, (m, l).

    Parameters
    ----------
    logits : Tensor, shape (m, l)
        Logits of the partner.
    output : {"complement", "softmax", "softmax_rescaled", "sigmoid"}
        ``complement``: ``1 - softmax``, whose rows sum to l - 1 as the paper asks of a
        non-candidate confidence, and which can be zero for exactly one label. ``softmax``: the
        paper's words taken literally. ``softmax_rescaled``: ``min(1, (l - 1) softmax)``.
        ``sigmoid``: each label for itself.

    Examples
    --------
    >>> noncandidate_confidence(torch.zeros(1, 4)).sum().item()
    3.0
    """
    logits = logits.float()
    if output == "sigmoid":
        return torch.sigmoid(logits)
    share = torch.softmax(logits, dim=1)
    if output == "complement":
        return 1 - share
    if output == "softmax":
        return share
    return torch.clamp(share * (logits.shape[1] - 1), max=1.0)


def noncandidate_loss(
    logits: Tensor, candidates: Tensor, output: str = "complement", reduction: str = "auto"
) -> Tensor:
    """Loss of the partner on labels that are not candidates (L_com): ``-sum log p^`` over them.

    Parameters
    ----------
    logits : Tensor, shape (m, l)
        Logits of the partner.
    candidates : Tensor of bool, shape (m, l)
        A row that holds every label adds nothing.
    output : str
        Reading of the logits, see `noncandidate_confidence`.
    reduction : {"auto", "sum", "mean"}
        Over the non-candidates of a row. ``auto`` is the sum, the paper's formula, but the
        mean for the two readings by softmax, whose sum grows with l log l.

    Examples
    --------
    >>> candidates = torch.tensor([[True, False]])
    >>> noncandidate_loss(torch.zeros(1, 2), candidates).item().__round__(4)
    0.6931
    """
    logits = logits.float()
    if output == "complement":
        logs = torch.log1p(-torch.softmax(logits, dim=1).clamp(max=_NEARLY_ONE))
    elif output == "sigmoid":
        logs = F.logsigmoid(logits)
    else:
        logs = F.log_softmax(logits, dim=1)
        if output == "softmax_rescaled":
            logs = torch.clamp(logs + math.log(max(logits.shape[1] - 1, 1)), max=0.0)
    losses = -torch.where(candidates, 0.0, logs).sum(dim=1)
    if reduction == "mean" or (reduction == "auto" and output.startswith("softmax")):
        losses = losses / (~candidates).sum(dim=1).clamp(min=1)
    return losses.mean()


def normalize_over(weights: Tensor, candidates: Tensor) -> Tensor:
    """Divide the candidates' weights by their sum; where that is zero, share out evenly."""
    inside = torch.where(candidates, weights, 0.0)
    total = inside.sum(dim=1, keepdim=True)
    even = candidates / candidates.sum(dim=1, keepdim=True)
    return torch.where(total > 0, inside / torch.where(total > 0, total, 1.0), even)


def blur_tensor(
    probabilities: Tensor, candidates: Tensor, temperature: float | None = -1.0
) -> Tensor:
    """Soften probabilities within the candidates: ``rownorm(exp(e^k g) * y)``.

    As `appellate.evidence.blur`; a temperature of None only normalises. Beyond k = 9.2 it
    stays constant, nearly a choice of the largest, because its gradient would overflow.

    Examples
    --------
    >>> blurred = blur_tensor(torch.tensor([[1.0, 0.0]]), torch.tensor([[True, True]]))
    >>> round(blurred[0, 0].item(), 3)
    0.591
    """
    if temperature is None:
        return normalize_over(probabilities, candidates)
    sharpness = min(math.exp(min(temperature, 100.0)), _SHARPEST)
    if sharpness > _SHARP:  # else exp cannot overflow
        inside = torch.where(candidates, probabilities, 0.0)
        probabilities = probabilities - inside.detach().amax(dim=1, keepdim=True)
        probabilities = torch.where(candidates, probabilities, 0.0)
    return normalize_over(torch.exp(sharpness * probabilities), candidates)


def collaborative_loss(from_base: Tensor, from_partner: Tensor) -> Tensor:
    """Disagreement of two blurred confidences v and u (L_col): ``mean_i 1 - <v_i, u_i>``.

    The paper writes ``sum_j v_j v^_j`` with ``v^ = 1 - u``, which is the same because v sums
    to one.
    """
    return (from_base * (1 - from_partner)).sum(dim=1).mean()


def inner_products(ones: Tensor, others: Tensor) -> Tensor:
    """Every row with every row, in float32 also where autocast would halve a matrix product."""
    with torch.autocast(ones.device.type, enabled=False):
        return ones.float() @ others.float().T


def contrastive_loss(
    anchors: Tensor, contrast: Tensor, positives: Tensor, temperature: float = 0.07
) -> Tensor:
    """Supervised contrastive loss: the mean log-probability of an anchor's positives.

    Parameters
    ----------
    anchors : Tensor, shape (m, d)
        Unit vectors, which must also be the first m rows of `contrast`.
    contrast : Tensor, shape (c, d)
        All that an anchor is compared with; itself is left out.
    positives : Tensor of bool, shape (m, c)
        Members that belong to the anchor; its own column is ignored.
    """
    similarity = inner_products(anchors, contrast) / temperature
    itself = torch.eye(*similarity.shape, dtype=torch.bool, device=similarity.device)
    logs = F.log_softmax(similarity.masked_fill(itself, -torch.inf), dim=1)
    positives = positives & ~itself
    chosen = torch.where(positives, logs, 0.0).sum(dim=1)
    return -(chosen / positives.sum(dim=1).clamp(min=1)).mean()


def instance_loss(
    anchors: Tensor, keys: Tensor, queue: Tensor, temperature: float = 0.07
) -> Tensor:
    """Instance contrast (MoCo): each anchor finds its own key among the queue."""
    own = (anchors.float() * keys.float()).sum(dim=1, keepdim=True)
    logits = torch.cat([own, inner_products(anchors, queue)], dim=1) / temperature
    return -F.log_softmax(logits, dim=1)[:, 0].mean()
