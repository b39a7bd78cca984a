"""What PRODEN and PiCO cost beyond the plain training of their networks, and augmentation.

Every figure is a ratio of two things measured in turn, batch by batch, on one thread.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from _common import make_parser
from sklearn.base import clone
from torch.nn import functional as F

from appellate.deep import Network, Optimizer, PiCOClassifier, PRODENClassifier
from appellate.deep.augment import make_augmentation
from appellate.deep.data import ArrayInputs, InputScaling
from appellate.deep.methods import MethodPlan
from appellate.deep.streams import Streams
from appellate.deep.trainer import Trainer

N_CLASSES = 10


def make_trainer(model, X, candidates, batch_size):
    """Prepare a trainer as `fit` does, to run single steps of it."""
    start = torch.from_numpy(candidates / candidates.sum(axis=1, keepdims=True)).float()
    inputs, streams = ArrayInputs(X), Streams(0)
    shape, sgd = inputs.row_shape, Optimizer("sgd", batch_size=batch_size)
    settled = clone(model).set_params(optimizer=sgd)._settled(shape)
    trainer = Trainer(
        MethodPlan.of(settled, shape).make(start, streams),
        inputs,
        torch.from_numpy(candidates),
        settled.optimizer,
        model.n_epochs,
        streams=streams,
        views=[make_augmentation("none") for _ in model._image_views],
        scaling=InputScaling.of(inputs),
        device=torch.device("cpu"),
    )
    trainer.method.train()
    trainer.epoch = 1  # past PiCO's warm-up
    return trainer


def plain_step(networks, frozen, optimizer, x, labels):
    """Forward and backward of some networks, forward alone of others, and one step."""
    with torch.no_grad():
        for network in frozen:
            network(x)
    loss = 0.0
    for network in networks:
        out = network(x)
        loss = loss + F.cross_entropy(out[0] if isinstance(out, tuple) else out, labels)
        if isinstance(out, tuple):
            loss = loss + out[1].sum() * 0
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()


def compare(title, model, X, candidates, parts, repeats, batch_size=128):
    trainer = make_trainer(model, X, candidates, batch_size)
    reference = make_trainer(model, X, candidates, batch_size).method
    networks, frozen = parts(reference)
    trained = [p for network in networks for p in network.parameters()]
    optimizer = torch.optim.SGD(trained, lr=0.01, momentum=0.9, weight_decay=1e-3)
    labels = torch.from_numpy(candidates[:batch_size].argmax(axis=1))
    rows = np.arange(batch_size)
    x = next(iter(trainer.inputs.batches([rows], torch.device("cpu"))))
    scaled = trainer.scaling(x)
    times = []
    for turn in range(repeats + 2):
        first = time.perf_counter()
        trainer._step(rows, x)
        second = time.perf_counter()
        plain_step(networks, frozen, optimizer, scaled, labels)
        third = time.perf_counter()
        trainer.batch += 1
        if turn >= 2:
            times.append((second - first, third - second))
    ours, plain = np.array(times).T
    rate = batch_size / np.median(ours)
    print(
        f"{title:34s} {rate:7.0f} images/s   {np.median(ours / plain):5.2f} times the plain "
        f"networks (best of each: {ours.min() / plain.min():.2f})"
    )
    return ours.min() / plain.min()


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=15, help="batches  [default: 15]")
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, size=(2048, 3, 32, 32), dtype=np.uint8)
    candidates = rng.random((len(X), N_CLASSES)) < 0.3
    candidates[np.arange(len(X)), rng.integers(N_CLASSES, size=len(X))] = True
    options = {"random_state": 0}

    for name in ("convnet", "resnet18"):
        network = Network(name, width=0.25)
        compare(
            f"PRODEN, {name} (at most 1.15)",
            PRODENClassifier(network, **options),
            X,
            candidates,
            lambda method: ([method.network], []),
            repeats,
        )
        compare(
            f"PRODEN-PLCP, {name}",
            PRODENClassifier(network, partner="non-candidate", **options),
            X,
            candidates,
            lambda method: ([method.base.network, method.partner], []),
            repeats,
        )
    compare(
        "PiCO, resnet18 (at most 1.40)",
        PiCOClassifier(network, **options),
        X,
        candidates,
        lambda method: ([method.query], [method.key]),
        repeats,
    )
    compare(
        "PiCO-PLCP, resnet18",
        PiCOClassifier(network, partner="non-candidate", **options),
        X,
        candidates,
        lambda method: ([method.base.query, method.partner], [method.base.key]),
        repeats,
    )

    images = torch.from_numpy(X[:256]).float() / 255
    for name in ("crop_flip", "simple", "strong"):
        view = make_augmentation(name)
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            view(images)
            times.append(time.perf_counter() - start)
        print(f"augmentation {name:10s} {len(images) / np.median(times):9.0f} images/s")


if __name__ == "__main__":
    main()
