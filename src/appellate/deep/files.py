"""A fitted deep classifier in one file: safetensors for arrays, JSON for the rest."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from appellate.candidates.names import scalars
from appellate.costs import cost_matrix
from appellate.deep.checkpoint import CheckpointError, load_tree, save_tree
from appellate.deep.data import Scaling
from appellate.deep.estimator import DeepClassifier
from appellate.deep.streams import Streams, isolated

FORMAT = "appellate-deep-model"
FORMAT_VERSION = 1
_HOMES = {
    "PRODENClassifier": "appellate.deep.proden",
    "PiCOClassifier": "appellate.deep.pico",
}
_ARRAYS = (
    "candidates_",
    "confidence_",
    "label_history_",
    "overturned_",
    "training_output_",
    "verdict_confidence_",
)
_PLAIN = ("best_epoch_", "history_", "n_features_in_", "n_iter_", "n_ties_")
#: Parameters that tell of a place or a machine, and mean nothing elsewhere.
_LEFT_OUT = ("device", "network", "random_state", "resume", "run_dir")


def save_model(model: DeepClassifier, path: str | os.PathLike[str]) -> Path:
    """Write a fitted classifier as one safetensors file; it appears whole or not at all.

    Parameters
    ----------
    model : PRODENClassifier or PiCOClassifier
        Fitted.
    path : str or path
        The file, customarily ending in ``.safetensors``.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from appellate.deep import PRODENClassifier, load_model
    >>> model = PRODENClassifier("linear", n_epochs=1).fit([[0.0], [1.0]], ["a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     same = load_model(save_model(model, f"{folder}/model.safetensors"))
    >>> bool((same.predict_proba([[0.3]]) == model.predict_proba([[0.3]])).all())
    True
    """
    if not isinstance(model, DeepClassifier) or not hasattr(model, "_method"):
        raise TypeError(
            f"save_model writes a fitted PRODENClassifier or PiCOClassifier: {model!r}"
        )
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    params = {k: v for k, v in model.get_params().items() if k not in _LEFT_OUT}
    if not isinstance(model.cost, str | dict | None):
        params["cost"] = np.asarray(model.cost).tolist()
    named = model.network if isinstance(model.network, str) else None
    weights = {k: v for k, v in model._method.state_dict().items() if _is_weight(k)}
    save_tree(
        {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "appellate": version("appellate"),
            "class": type(model).__name__,
            "params": {**params, "network": named},
            "classes": scalars(model.classes_),
            "ids": None if model.ids_ is None else scalars(np.asarray(model.ids_)),
            "feature_names": list(getattr(model, "feature_names_in_", [])),
            "input_shape": model.input_shape_,
            "plain": {name: getattr(model, name) for name in _PLAIN if hasattr(model, name)},
            "arrays": {name: torch.from_numpy(getattr(model, name)) for name in _ARRAYS},
            "scaling": {"mean": model._scaling.mean, "deviation": model._scaling.deviation},
            "weights": weights,
        },
        target,
    )
    return target


def load_model(
    path: str | os.PathLike[str], *, network: Callable[..., Any] | None = None
) -> DeepClassifier:
    """Read a classifier that `save_model` wrote; no code in the file is run.

    Parameters
    ----------
    path : str or path
        The file.
    network : callable, default=None
        The network function of a classifier that was made with one of the user's: a function
        is not stored.

    Returns
    -------
    PRODENClassifier or PiCOClassifier
        Fitted, on the CPU.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    CheckpointError
        If it is damaged, or holds no model of ours.
    """
    tree = load_tree(Path(path))
    if tree.get("format") != FORMAT or tree.get("class") not in _HOMES:
        raise CheckpointError(f"'{path}' holds no deep model of appellate.")
    if tree["format_version"] > FORMAT_VERSION:
        raise CheckpointError(
            f"'{path}' was written by appellate {tree['appellate']}; use that version or a newer."
        )
    params = tree["params"]
    if params["network"] is None and network is None:
        raise CheckpointError(
            f"'{path}' was trained with a network function; name it: load_model(..., network=...)."
        )
    kind = getattr(import_module(_HOMES[tree["class"]]), tree["class"])
    model: DeepClassifier = kind(**{**params, "network": network or params["network"]})
    _restore(model, tree)
    return model


def _restore(model: DeepClassifier, tree: dict[str, Any]) -> None:
    model.classes_ = np.array(tree["classes"])
    model.cost_ = cost_matrix(model.cost, model.classes_)
    model.ids_ = None if tree["ids"] is None else np.array(tree["ids"])
    if tree["feature_names"]:
        model.feature_names_in_ = np.array(tree["feature_names"], dtype=object)
    model.input_shape_ = tuple(tree["input_shape"])
    for name, value in tree["plain"].items():
        setattr(model, name, value)
    for name, tensor in tree["arrays"].items():
        setattr(model, name, tensor.numpy())
    verdict, appeal = model.label_history_
    model.verdict_, model.transduction_ = model.classes_[verdict], model.classes_[appeal]
    model._backend = None
    model._scaling = Scaling(tree["scaling"]["mean"], tree["scaling"]["deviation"])
    l = len(model.classes_)
    with isolated(torch.device("cpu")):
        method = model._make_method(model.input_shape_, torch.full((1, l), 1 / l), Streams(0))
    state = {k: v for k, v in method.state_dict().items() if not _is_weight(k)}
    method.load_state_dict({**state, **tree["weights"]})
    model._method = method


def _is_weight(name: str) -> bool:
    """Whether a part of the state is more than the confidence of the training rows."""
    return not name.endswith("confidence")
