"""The network of a jury: `PRODENClassifier` on targets that stay as they are.

`appellate.methods.jury.members` finds it by name, so that a jury without networks needs no torch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from appellate.deep.estimator import PRODENClassifier
from appellate.deep.layers import Layers
from appellate.deep.settings import Ambiguity, Network, Optimizer, Run
from appellate.evidence.likelihood import Evidence
from appellate.methods.jury.members import Doubles

_ROWS = 128  # of a batch, about


def fit_network(X: NDArray[Any], evidence: Evidence, targets: Doubles, seed: int) -> Layers:
    """Fit a small network to soft targets by cross-entropy.

    Two layers of 200 units, ReLU then batch norm; Adam with a cosine schedule, 30 epochs of
    equal batches of about 128 rows; features standardised. The result consists of arrays: it
    predicts, and is saved, without torch.

    Parameters
    ----------
    X : ndarray, shape (n, q)
        Training rows.
    evidence : Evidence
        Evidence of these rows.
    targets : ndarray, shape (n, l)
        Confidence of every label, zero outside the candidates.
    seed : int
        Seed of weights and batches.
    """
    size = len(X) // max(1, round(len(X) / _ROWS))
    optimizer = Optimizer(
        "adam",
        learning_rate=2e-3,
        weight_decay=0.0,
        schedule="cosine",
        batch_size=size,
        drop_last=True,
        fused=True,
    )
    model = PRODENClassifier(
        Network("mlp", hidden=(200, 200), norm="after", start="torch"),
        ambiguity=Ambiguity("label-first", targets="given"),
        optimizer=optimizer,
        n_epochs=30,
        run=Run(device="cpu"),
        random_state=seed,
    )
    candidates = evidence.entries.scatter(np.ones(len(evidence.entries), dtype=bool))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # sums do not depend on the machine
    try:
        networks = model.fit(X, candidates, supervision=targets)._fitted
    finally:
        torch.set_num_threads(threads)
    centre, scale = (each.numpy()[0] for each in networks.scaling)
    return Layers(centre, scale, affine_layers(networks.method.network))


@torch.inference_mode()
def affine_layers(network: Any) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Matrix (inputs, outputs) and shift of every part between the ReLUs of a trained MLP.

    Linear layers and batch norms are affine together: what they make of zero is the shift, and
    of the unit vectors, less the shift, the matrix.
    """
    parts: list[list[nn.Module]] = [[]]
    for module in (*network.encoder, network.classifier):
        if isinstance(module, nn.ReLU):
            parts.append([])
        else:
            parts[-1].append(module)
    width, layers = network.encoder[1].in_features, []
    for part in parts:
        affine = nn.Sequential(*part).double().eval()
        shift = affine(torch.zeros(1, width, dtype=torch.float64))
        matrix = affine(torch.eye(width, dtype=torch.float64)) - shift
        layers.append((matrix.numpy(), shift.numpy()[0]))
        width = matrix.shape[1]
    return layers
