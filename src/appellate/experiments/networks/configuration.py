"""Configurations of deep runs: TOML files, for each method of the paper's CIFAR tables.

A file names a method and a data set, and has the parameters of the classifier::

    title = "PRODEN"
    method = "PRODEN"            # or "PiCO", or "rival", whose loss is a parameter
    dataset = "cifar10"

    [classifier]                 # parameters of the classifier, and those of its settings
    network = "convnet"          # objects (Network, Optimizer, Coupling, ...) in one row
    optimizer = "sgd"

    [flip."0.1"]                 # for candidate sets made with this flip probability:
    paper = [89.12, 0.12]        # the paper's mean and deviation, in per cent
    learning_rate = 0.02         # parameters that differ from those above

``extends = "other"`` inherits from a configuration, by name or as a file in the same folder: its
parameters apply if the file has none, but the flips and the paper's figures are the file's
own. ``"none"`` is Python's None, for `partner` and `blur`. Reading a file does not load torch.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from appellate._text import did_you_mean

if TYPE_CHECKING:
    from appellate.deep.estimator import DeepClassifier

CLASSES = {"PRODEN": "PRODENClassifier", "PiCO": "PiCOClassifier", "rival": "RivalClassifier"}
#: What ``--smoke`` changes: parameters, and rows to train and to test on, at most so many each.
SMOKE = {"n_epochs": 3, "batch_size": 64, "queue_size": 512, "prototype_start": 1}
SMOKE_ROWS = 2000
_SMOKE_NETWORKS: dict[Any, dict[str, Any]] = {
    "mlp": {"hidden": [64, 64]},
    "convnet": {"width": 0.125},
    "resnet18": {"width": 0.125},
    "resnet32": {"width": 0.5},
}
#: Parameters that the command sets itself.
_RESERVED = (
    *("device", "folder", "n_jobs", "n_workers", "resume", "verbose"),
    *("random_state", "run", "warm_start"),
)
_OF_NETWORK = ("hidden", "norm", "start", "width")
_TEXTS, _TABLES = ("extends", "title", "method", "dataset"), ("classifier", "flip")
_MAY_BE_NONE = ("blur", "partner")


class ConfigurationError(ValueError):
    """What is wrong with a configuration, and where."""


@dataclass(frozen=True)
class Flip:
    """What a configuration says of one flip probability.

    Attributes
    ----------
    settings : dict
        Parameters that differ from those of the configuration.
    paper : tuple of two floats, or None
        The paper's mean and deviation, in per cent.
    """

    settings: dict[str, Any]
    paper: tuple[float, float] | None = None


@dataclass(frozen=True)
class Configuration:
    """A method with its settings, and the data set that they are for.

    Attributes
    ----------
    name : str
        Its name, or the path of its file.
    title : str
        What the paper calls the method.
    method : {"PRODEN", "PiCO", "rival"}
        The base method.
    dataset : str
        The data set of the paper's figures.
    settings : dict
        Parameters of the classifier.
    flips : dict of float to Flip
        Flip probabilities of the paper's candidate sets; 0 is full supervision.
    """

    name: str
    title: str
    method: str
    dataset: str
    settings: dict[str, Any]
    flips: dict[float, Flip]

    def settings_for(self, flip: float | None, dataset: str) -> dict[str, Any]:
        """Return the parameters for candidate sets made with a flip probability."""
        return merge(self.settings, self._known(flip, dataset).settings)

    def paper(self, flip: float | None, dataset: str) -> tuple[float, float] | None:
        """Return the paper's mean and deviation in per cent, if it has them."""
        return self._known(flip, dataset).paper

    def _known(self, flip: float | None, dataset: str) -> Flip:
        known = None if flip is None or dataset != self.dataset else self.flips.get(flip)
        return known or Flip({})


def configuration_names() -> list[str]:
    """Return the names of the configurations of this package.

    Examples
    --------
    >>> configuration_names()[:2]
    ['pico-cifar10', 'pico-cifar100']
    """
    folder = files("appellate.experiments.networks").joinpath("configs")
    return sorted(file.name[:-5] for file in folder.iterdir() if file.name.endswith(".toml"))


def read_configuration(name: str) -> Configuration:
    """Read a configuration of this package, or a TOML file.

    Parameters
    ----------
    name : str
        One of `configuration_names`, or the path of a file, which ends in ``.toml``.

    Raises
    ------
    ConfigurationError
        If there is none, or if it is not written as it should be.

    Examples
    --------
    >>> read_configuration("proden-plcp-cifar10").paper(0.1, "cifar10")
    (89.63, 0.15)
    """
    chain = {name: _read(name)}
    while "extends" in (content := chain[last := next(reversed(chain))]):
        other = content["extends"]
        if other.endswith(".toml"):
            other = str(Path(last).parent / other)
        if other in chain:
            raise ConfigurationError(f"'{name}' extends itself: {' -> '.join([*chain, other])}.")
        chain[other] = _read(other)
    told: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    below: dict[float, dict[str, Any]] = {}
    for content in reversed(chain.values()):
        told |= content
        settings = merge(settings, content.get("classifier", {}))
        own: dict[float, Flip] = content.get("flip", {})
        below |= {q: merge(below.get(q, {}), flip.settings) for q, flip in own.items()}
    missing = [key for key in ("method", "dataset") if key not in told]
    if missing:
        raise ConfigurationError(f"'{name}' does not name its {' and '.join(missing)}.")
    check_word(told["method"], CLASSES, f"'{name}' has an unknown method")
    flips = {q: Flip(below[q], flip.paper) for q, flip in own.items()}
    title = told.get("title", told["method"])
    return Configuration(name, title, told["method"], told["dataset"], settings, flips)


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Put settings over others; those of another network are dropped with it."""
    same = above.get("network", below.get("network")) == below.get("network")
    kept = {k: v for k, v in below.items() if same or k not in _OF_NETWORK}
    return kept | dict(above)


def shrink(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings for a trial of minutes: a narrow network, few epochs, a short queue."""
    usual = ("n_epochs", "batch_size")
    small = {k: v for k, v in SMOKE.items() if k in settings or k in usual}
    return settings | small | _SMOKE_NETWORKS.get(settings.get("network"), {})


def make_classifier(
    method: str,
    settings: Mapping[str, Any],
    *,
    random_state: Any = None,
    warm_start: bool = False,
    **run: Any,
) -> DeepClassifier:
    """Make a classifier from settings, and check them; loads torch.

    Parameters
    ----------
    method : {"PRODEN", "PiCO", "rival"}
        The base method.
    settings : mapping
        Its parameters and those of its settings objects, as a configuration has them.
    random_state, warm_start, **run
        Parameters that no configuration may set: of the classifier, and of its `Run`.

    Raises
    ------
    ConfigurationError
        If a parameter is unknown or has a wrong value.
    """
    check_word(method, CLASSES, "unknown method")
    kind = getattr(import_module("appellate.deep"), CLASSES[method])
    classifier: DeepClassifier = kind(random_state=random_state, warm_start=warm_start)
    for name, group in kind._groups.items():
        setattr(classifier, name, group.of(getattr(classifier, name)))
    known = _nested(classifier)
    nested = {f"run__{key}": value for key, value in run.items()}
    for key, value in settings.items():
        if key in _RESERVED:
            raise ConfigurationError(
                f"'{key}' cannot be set in a configuration or by --set: the command sets it."
            )
        check_word(key, known, f"{kind.__name__} has no parameter")
        if isinstance(value, list):
            value = tuple(value)
        nested[known[key]] = None if key in _MAY_BE_NONE and value == "none" else value
    try:
        classifier.set_params(**nested)._validate_params()
        classifier._settled()
    except (TypeError, ValueError) as error:
        raise ConfigurationError(str(error)) from error
    return classifier


def all_settings(
    classifier: DeepClassifier, shape: tuple[int, ...] = (3, 32, 32)
) -> dict[str, Any]:
    """Return all settings of a classifier that a configuration may set, with nothing left open.

    Parameters
    ----------
    classifier : PRODENClassifier, PiCOClassifier or RivalClassifier
        Not fitted.
    shape : tuple of int
        Shape of the rows: what ``"auto"`` means depends on it.
    """
    settled = classifier._settled(shape)
    settled.selection.validation_fraction = settled.selection.fraction
    params = settled.get_params()
    return {name: params[key] for name, key in _nested(settled).items()}


def _nested(classifier: DeepClassifier) -> dict[str, str]:
    """Names that a configuration may use, and how scikit-learn nests them."""
    nested = {}
    for key in classifier.get_params():
        parameter, _, field = key.partition("__")
        name = parameter if field in ("", "name", parameter) else field
        if (field or parameter not in classifier._groups) and name not in _RESERVED:
            nested[name] = key
    return nested


def try_out(classifier: DeepClassifier, X: NDArray[Any], n_classes: int) -> None:
    """Make what a fit makes first, so that a mistake is reported before anything is written.

    Parameters
    ----------
    classifier : PRODENClassifier or PiCOClassifier
        Not fitted; stays so.
    X : ndarray
        Training rows; two of them are used.
    n_classes : int
        Number of labels.

    Raises
    ------
    ConfigurationError
        If device, network or augmentation do not exist, or do not fit the rows.
    """
    import torch

    from appellate.deep.augment import make_augmentation
    from appellate.deep.data import ArrayInputs
    from appellate.deep.streams import isolated

    inputs, cpu = ArrayInputs(X[:2]), torch.device("cpu")
    settled, advice = classifier._settled(inputs.row_shape), ""
    try:
        torch.zeros(1, device=settled.run.find_device())
        if X.ndim == 2:
            advice = " The rows are vectors: set network=mlp, and no augmentation."
        with isolated(cpu):
            (images,) = inputs.batches([np.arange(len(inputs))], cpu)
            for name in settled.augmentation:
                make_augmentation(name)(images)
            settled.network.make(inputs.row_shape, n_classes)
    except (AssertionError, RuntimeError, TypeError, ValueError) as error:
        raise ConfigurationError(f"{error}{advice}") from error


def _read(name: str) -> dict[str, Any]:
    """Parse a file and check its keys and flips."""
    if name.endswith(".toml"):
        place: Any = Path(name)
    else:
        check_word(name, [*configuration_names(), "FILE.toml"], "unknown configuration")
        place = files("appellate.experiments.networks").joinpath("configs", f"{name}.toml")
    try:
        content = tomllib.loads(place.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"'{name}' is not valid TOML: {error}.") from error
    except RecursionError as error:
        raise ConfigurationError(f"'{name}' is nested too deeply.") from error
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigurationError(f"cannot read '{name}': {reason}.") from error
    for key, value in content.items():
        check_word(key, (*_TEXTS, *_TABLES), f"'{name}' has an unknown key")
        kind, what = (str, "a text") if key in _TEXTS else (dict, "a table")
        if not isinstance(value, kind):
            raise ConfigurationError(f"'{key}' in '{name}' must be {what}, not {value!r}.")
    flips = {}
    for key, fields in content.get("flip", {}).items():
        flip = float(key) if key.replace(".", "", 1).isdecimal() else math.nan
        if not 0 <= flip < 1 or not isinstance(fields, dict):
            raise ConfigurationError(
                f"'{name}' has a table [flip.{key}]; name a probability: [flip.\"0.1\"]."
            )
        paper = fields.pop("paper", None)
        figures = [type(each) in (int, float) for each in paper] if isinstance(paper, list) else []
        if paper is not None and figures != [True, True]:
            raise ConfigurationError(
                f"'paper' of flip {key} in '{name}' must be [mean, deviation], not {paper!r}."
            )
        flips[flip] = Flip(fields, None if paper is None else (paper[0], paper[1]))
    return content | {"flip": flips}


def check_word(word: str, known: Iterable[str], what: str) -> None:
    """Refuse a word that is not known, and ask whether one was meant that is near."""
    words = list(known)
    if word not in words:
        guess = did_you_mean(word, words)
        raise ConfigurationError(f"{what} '{word}'.{guess} Known are {', '.join(words)}.")
