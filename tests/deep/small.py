"""Tiny problems, and ways to compare two runs, for the tests of this folder."""

from __future__ import annotations

import numpy as np
import torch

from appellate.deep import Optimizer
from appellate.deep.data import ArrayInputs, InputScaling
from appellate.deep.streams import Streams
from appellate.deep.trainer import Trainer
from appellate.experiments.networks.configuration import make_classifier, merge
from tests.problems import random_candidates

CPU = torch.device("cpu")

# Keys of a record that tell of the machine, not of the method.
CLOCK_KEYS = ("seconds", "rows_per_second", "seconds_left")


def make_table(n=40, n_labels=4, seed=0):
    """Overlapping classes with candidate sets: (X, candidates, truth)."""
    rng = np.random.RandomState(seed)
    truth = rng.randint(n_labels, size=n)
    X = rng.normal(size=(n_labels, 6))[truth] + rng.normal(scale=0.7, size=(n, 6))
    candidates = random_candidates(rng, n, n_labels, 0.3)
    candidates[np.arange(n), truth] = True
    return X.astype(np.float32), candidates, truth


def make_images(n=12, side=8, channels=3, n_labels=3, seed=0):
    """Random bytes, channels first; (X, candidates)."""
    rng = np.random.RandomState(seed)
    X = rng.randint(256, size=(n, channels, side, side)).astype(np.uint8)
    return X, random_candidates(rng, n, n_labels, 0.4)


USUAL = {"network": "mlp", "hidden": (8,), "n_epochs": 4}
USUAL |= {"batch_size": 16, "optimizer": "sgd", "learning_rate": 0.05}
CONTRAST = {"augmentation": ("none", "none")}
CONTRAST |= {"queue_size": 24, "projection_size": 4, "key_momentum": 0.9}
OF_RUN = ("random_state", "warm_start", "folder", "resume", "device", "n_workers", "verbose")


def proden(**options):
    """Settings of all objects in one row, as configurations have them."""
    return _make("PRODEN", merge(USUAL, options))


def pico(**options):
    return _make("PiCO", merge(USUAL | CONTRAST, options))


def _make(method, options):
    run = {"device": "cpu", "random_state": 0}
    run |= {key: options[key] for key in OF_RUN if key in options}
    settings = {key: value for key, value in options.items() if key not in OF_RUN}
    return make_classifier(method, settings, **run)


MAKERS = {"proden": proden, "pico": pico}


def make_trainer(method, X, candidates, views=None, **settings):
    usual = {"batch_size": 4, "learning_rate": 0.1}
    usual |= {"name": "sgd", "momentum": 0.9, "weight_decay": 0.01}
    n_epochs = settings.pop("n_epochs", 2)
    return Trainer(
        method,
        ArrayInputs(X),
        torch.from_numpy(candidates),
        Optimizer(**(usual | settings)),
        n_epochs,
        streams=Streams(0),
        views=views or [lambda x: x],
        scaling=InputScaling(),
        device=CPU,
    )


def even(candidates):
    y = torch.from_numpy(candidates).float()
    return y / y.sum(dim=1, keepdim=True)


def state_of(model, part=""):
    """Weights and buffers of a fitted classifier whose names begin with `part`, without it."""
    state = model._model.method.state_dict()
    return {k.removeprefix(part): v for k, v in state.items() if k.startswith(part)}


def assert_same_state(one, other):
    """Equal to the bit."""
    assert one.keys() == other.keys()
    assert one
    for name, value in one.items():
        assert torch.equal(value, other[name]), name


def timeless(history):
    return [{k: v for k, v in record.items() if k not in CLOCK_KEYS} for record in history]


def assert_same_run(one, other, X):
    """Two fitted classifiers that did the same, to the bit."""
    assert_same_state(state_of(one), state_of(other))
    assert timeless(one.history_) == timeless(other.history_)
    assert one.best_epoch_ == other.best_epoch_
    np.testing.assert_array_equal(one.confidence_, other.confidence_)
    np.testing.assert_array_equal(one.training_output_, other.training_output_)
    for name, probabilities in one.predict_heads(X).items():
        np.testing.assert_array_equal(probabilities, other.predict_heads(X)[name])
