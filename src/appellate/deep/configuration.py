"""Configurations of deep runs: TOML files, for each method of the paper's CIFAR tables.

A file names a method and a data set, and has the parameters of the classifier::

    title = "PRODEN"
    method = "PRODEN"            # or "PiCO"
    dataset = "cifar10"

    [classifier]                 # parameters of PRODENClassifier or PiCOClassifier, and those
    network = "convnet"          # of their settings objects (Optimizer, Coupling, ...)
    optimizer = "sgd"

    [flip."0.1"]                 # for candidate sets made with this flip probability:
    paper = [89.12, 0.12]        # the paper's mean and deviation, in per cent
    learning_rate = 0.02         # parameters that differ from those above

``extends = "other"`` takes over a configuration, by name or as a file beside this one: its
parameters stand where the file has none, but the flips and the paper's figures are the file's
own. ``"none"`` is Python's None, for `partner` and `blur`. Reading a file does not load torch.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

if TYPE_CHECKING:
    from appellate.deep.estimator import DeepClassifier

METHODS = {"PRODEN": "PRODENClassifier", "PiCO": "PiCOClassifier"}
#: What ``--smoke`` changes: parameters, and rows to train on and to test on.
SMOKE = {"n_epochs": 3, "batch_size": 64, "queue_size": 512, "prototype_start": 1}
SMOKE_ROWS, SMOKE_TEST_ROWS = 2000, 2000
_SMOKE_NETWORKS: dict[str, dict[str, Any]] = {
    "mlp": {"hidden": [64, 64]},
    "convnet": {"width": 0.125},
    "resnet18": {"width": 0.125},
    "resnet32": {"width": 0.5},
}
#: Parameters that the command sets itself.
_RESERVED = (
    *(
        "device",
        "folder",
        "n_jobs",
        "n_workers",
        "random_state",
        "resume",
        "run",
        "verbose",
        "warm_start",
    ),
)
#: Parameters that are settings objects; a configuration names their fields alone.
_GROUPS = {
    **{"network": "Network", "partner": "Coupling", "optimizer": "Optimizer"},
    **{"selection": "Selection", "contrast": "Contrast", "run": "Run"},
    "ambiguity": "Ambiguity",
}
_KEYS = ("extends", "title", "method", "dataset", "classifier", "flip")
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
    method : {"PRODEN", "PiCO"}
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
        known = self._known(flip, dataset)
        return dict(self.settings) if known is None else merge(self.settings, known.settings)

    def paper(self, flip: float | None, dataset: str) -> tuple[float, float] | None:
        """Return the paper's mean and deviation in per cent, where it has them."""
        known = self._known(flip, dataset)
        return None if known is None else known.paper

    def _known(self, flip: float | None, dataset: str) -> Flip | None:
        return None if flip is None or dataset != self.dataset else self.flips.get(flip)


def configuration_names() -> list[str]:
    """Return the names of the configurations of this package.

    Examples
    --------
    >>> configuration_names()[:2]
    ['pico-cifar10', 'pico-cifar100']
    """
    folder = files("appellate.deep").joinpath("configs")
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
    content = _read(name)
    settings, flips, seen = content.get("classifier", {}), _flips(content, name), [name]
    while "extends" in content:
        other = content["extends"]
        if other.endswith(".toml"):
            other = str(Path(seen[-1]).parent / other)
        if other in seen:
            raise ConfigurationError(f"'{name}' extends itself: {' -> '.join([*seen, other])}.")
        seen.append(other)
        below = _read(other)
        settings = merge(below.get("classifier", {}), settings)
        for flip, of_other in _flips(below, other).items():
            if flip in flips:
                own = flips[flip]
                flips[flip] = Flip(merge(of_other.settings, own.settings), own.paper)
        content = {k: v for k, v in below.items() if k != "flip"} | {
            k: v for k, v in content.items() if k != "extends"
        }
    missing = [key for key in ("method", "dataset") if not isinstance(content.get(key), str)]
    if missing:
        raise ConfigurationError(f"'{name}' does not name its {' and '.join(missing)}.")
    method = content["method"]
    if method not in METHODS:
        raise ConfigurationError(
            f"'{name}' has an unknown method '{method}'.{guess(method, METHODS)} Known are "
            f"{', '.join(METHODS)}."
        )
    title = str(content.get("title", method))
    return Configuration(name, title, method, content["dataset"], settings, flips)


def parse_settings(texts: Sequence[str]) -> dict[str, Any]:
    """Read parameters given as ``key=value``; values are TOML, and bare words are strings.

    Examples
    --------
    >>> parse_settings(["n_epochs=5", "network=mlp", "network_options.hidden=[30, 30]"])
    {'n_epochs': 5, 'network': 'mlp', 'network_options': {'hidden': [30, 30]}}
    """
    settings: dict[str, Any] = {}
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not key or not value:
            raise ConfigurationError(f"'{text}' is not of the form key=value.")
        try:
            parsed = tomllib.loads(f"{key} = {value}")
        except tomllib.TOMLDecodeError:
            quoted = value.replace("\\", "\\\\").replace('"', '\\"')
            try:
                parsed = tomllib.loads(f'{key} = "{quoted}"')
            except tomllib.TOMLDecodeError as error:
                raise ConfigurationError(f"'{text}' cannot be read: {error}.") from error
        settings = merge(settings, parsed)
    return settings


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Put settings over others; tables in them are merged too.

    A network's options belong to that network, so those of another network are dropped.
    """
    merged = dict(below)
    if above.get("network", below.get("network")) != below.get("network"):
        merged.pop("network_options", None)
    for key, value in above.items():
        old = merged.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        merged[key] = merge(old, value) if both else value  # type: ignore[arg-type]
    return merged


def shrink(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings for a trial of minutes: a narrow network, few epochs, a short queue."""
    small: dict[str, Any] = {key: value for key, value in SMOKE.items() if key in settings}
    small["n_epochs"], small["batch_size"] = SMOKE["n_epochs"], SMOKE["batch_size"]
    network = settings.get("network")
    if isinstance(network, str) and network in _SMOKE_NETWORKS:
        small["network_options"] = _SMOKE_NETWORKS[network]
    return merge(settings, small)


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
    method : {"PRODEN", "PiCO"}
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
    kind = getattr(import_module("appellate.deep"), METHODS[method])
    known, views = _nested(kind), {}
    nested = {f"run__{key}": value for key, value in run.items()}
    for key, value in settings.items():
        if key in _RESERVED:
            raise ConfigurationError(
                f"'{key}' cannot be set in a configuration or by --set: the command sets it."
            )
        if key not in known:
            raise ConfigurationError(
                f"{kind.__name__} has no parameter '{key}'.{guess(key, known)} It has "
                f"{', '.join(known)}."
            )
        if key == "network_options":
            nested |= {f"network__{k}": _python(k, v) for k, v in (value or {}).items()}
        elif known[key] == "augmentation":
            views[key] = value
        else:
            nested[known[key]] = _python(key, value)
    classifier: DeepClassifier = kind(random_state=random_state, warm_start=warm_start)
    try:
        _open(classifier, {key.partition("__")[0] for key in nested}).set_params(**nested)
        if views:
            usual = zip(_views(kind), kind._image_views, strict=True)
            classifier.augmentation = tuple(views.get(*each) for each in usual)
        classifier._validate_params()
        classifier._check_params()
    except (TypeError, ValueError) as error:
        raise ConfigurationError(str(error)) from error
    return classifier


def all_settings(
    classifier: DeepClassifier, shape: tuple[int, ...] = (3, 32, 32)
) -> dict[str, Any]:
    """Return all settings of a classifier that a configuration may set, with nothing left open.

    Parameters
    ----------
    classifier : PRODENClassifier or PiCOClassifier
        Not fitted.
    shape : tuple of int
        Of the rows: what ``"auto"`` means depends on it.
    """
    kind, opened = type(classifier), _open(clone(classifier), _GROUPS)
    opened.optimizer = opened.optimizer.settled(opened._usual, shape)
    opened.selection.validation_fraction = opened.selection.fraction
    params = opened.get_params()
    options = {k: v for k, v in opened.network.get_params().items() if k != "name" and v}
    return (
        {name: params[key] for name, key in _nested(kind).items()}
        | {"network_options": options or None}
        | dict(zip(_views(kind), classifier._views(shape), strict=True))
    )


def try_out(classifier: DeepClassifier, X: NDArray[Any], n_classes: int) -> str:
    """Make what a fit would make first, so that a mistake is told before anything is written.

    Parameters
    ----------
    classifier : PRODENClassifier or PiCOClassifier
        Not fitted; stays so.
    X : ndarray
        Training rows; two of them are used.
    n_classes : int
        Number of labels.

    Returns
    -------
    str
        The device that will be used.

    Raises
    ------
    ConfigurationError
        If device, network or augmentation do not exist, or do not fit the rows.
    """
    import torch

    from appellate.deep.augment import make_augmentation
    from appellate.deep.data import ArrayInputs
    from appellate.deep.settings import Run
    from appellate.deep.streams import isolated

    inputs = ArrayInputs(X[:2])
    try:
        device = Run.of(classifier.run).find_device()
        torch.zeros(1, device=device)
        with isolated(torch.device("cpu")):
            (images,) = inputs.batches([np.arange(len(X[:2]))], torch.device("cpu"))
            for name in classifier._views(inputs.row_shape):
                make_augmentation(name)(images)
            classifier._plan(inputs.row_shape).network.make(inputs.row_shape, n_classes)
    except (AssertionError, RuntimeError, TypeError, ValueError) as error:
        vectors = " The rows are vectors: set network=mlp, and no augmentation."
        raise ConfigurationError(f"{error}{vectors if X.ndim == 2 else ''}") from error
    return str(device)


def _open(classifier: DeepClassifier, names: Iterable[str]) -> Any:
    """Put settings objects where a classifier has words for them."""
    home = import_module("appellate.deep")
    for name in names:
        if name in _GROUPS and hasattr(classifier, name):
            group, value = getattr(home, _GROUPS[name]), getattr(classifier, name)
            of_authors = name == "contrast" and value is None
            setattr(classifier, name, group() if of_authors else group.of(value))
    return classifier


def _views(kind: type[DeepClassifier]) -> tuple[str, ...]:
    names = ("weak_augmentation", "strong_augmentation")
    return names if len(kind._image_views) == 2 else ("augmentation",)


def _nested(kind: type[DeepClassifier]) -> dict[str, str]:
    """Names that a configuration may use, and how scikit-learn nests them."""
    nested = {"network_options": "network"} | dict.fromkeys(_views(kind), "augmentation")
    for key in _open(kind(), _GROUPS).get_params():
        parameter, _, field = key.partition("__")
        name = parameter if field in ("name", parameter) else field or parameter
        of_network = parameter == "network" and name != parameter
        if (field or parameter not in (*_GROUPS, "augmentation")) and not of_network:
            nested |= {name: key} if name not in _RESERVED else {}
    return nested


def _read(name: str) -> dict[str, Any]:
    """Parse a file and check its top level."""
    if name.endswith(".toml"):
        try:
            text = Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ConfigurationError(f"cannot read '{name}': {reason}.") from error
    else:
        known = configuration_names()
        if name not in known:
            raise ConfigurationError(
                f"there is no configuration '{name}'.{guess(name, known)} Names are "
                f"{', '.join(known)}; a file of your own ends in .toml."
            )
        place = files("appellate.deep").joinpath("configs", f"{name}.toml")
        text = place.read_text(encoding="utf-8")
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"'{name}' is not valid TOML: {error}.") from error
    for key, value in content.items():
        if key not in _KEYS:
            raise ConfigurationError(
                f"'{name}' has an unknown key '{key}'.{guess(key, _KEYS)} Keys are "
                f"{', '.join(_KEYS)}."
            )
        kind = dict if key in ("classifier", "flip") else str
        if not isinstance(value, kind):
            what = "a table" if kind is dict else "a text"
            raise ConfigurationError(f"'{key}' in '{name}' must be {what}, not {value!r}.")
    return content


def _flips(content: Mapping[str, Any], name: str) -> dict[float, Flip]:
    flips = {}
    for key, fields in content.get("flip", {}).items():
        try:
            flip = float(key)
        except ValueError:
            flip = math.nan
        if not 0 <= flip < 1 or not isinstance(fields, dict):
            raise ConfigurationError(
                f"'{name}' has a table [flip.{key}]; name a probability: [flip.\"0.1\"]."
            )
        paper = fields.get("paper")
        if paper is not None and not _is_figure(paper):
            raise ConfigurationError(
                f"'paper' of flip {key} in '{name}' must be [mean, deviation], not {paper!r}."
            )
        settings = {k: v for k, v in fields.items() if k != "paper"}
        flips[flip] = Flip(settings, None if paper is None else (paper[0], paper[1]))
    return flips


def _is_figure(value: Any) -> bool:
    numbers = isinstance(value, list) and len(value) == 2
    return numbers and all(isinstance(number, int | float) for number in value)


def _python(key: str, value: Any) -> Any:
    """Turn a TOML value into the parameter that is meant."""
    if key in _MAY_BE_NONE and value == "none":
        return None
    return tuple(value) if isinstance(value, list) else value


def guess(word: str, known: Iterable[str]) -> str:
    """Ask whether a known word was meant that is near, if there is one."""
    spellings = {each.lower(): each for each in known}
    near = get_close_matches(word.lower(), spellings, n=1)
    return f" Did you mean '{spellings[near[0]]}'?" if near else ""
