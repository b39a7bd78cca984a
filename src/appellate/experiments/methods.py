"""What is run: bases and networks alone and coupled, variants of PLCP, and controls."""

from __future__ import annotations

import hashlib
from ast import literal_eval
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Literal, TypeVar

from appellate._text import install
from appellate.deep.registry import NETWORKS
from appellate.methods.registry import TITLES

Luck = Literal["random", "lowest", "majority"]
Whole = Literal["jury", "testimony", "partner", "ridge"]
MethodKind = Literal["base", "plcp", "deep"] | Whole | Luck
Item = TypeVar("Item")
MethodSettings = tuple[tuple[str, Any], ...]

# The paper's six bases, in the order of its tables.
PAPER_BASES = {name: TITLES[name] for name in ("plcl", "aggd", "sure", "lalo", "svm", "knn")}

#: Splits that a network has at most: the first of those that are asked for.
DEEP_SPLITS = 5
EXACT_KERNEL_ROWS = 20_000  # all data sets of the paper but one have exact kernels, as published
#: Of every network, found on splits 100 and 101 of Lost.
NETWORK = {"hidden": (200, 200), "n_epochs": 120, "batch_size": 64, "learning_rate": 0.002}
SETTING = (
    f"Deep methods: the first {DEEP_SPLITS} splits at most; an MLP of two layers of 200, 120 "
    "epochs of Adam (learning rate 0.002, cosine, batches of 64), the last epoch; rows of tables "
    "have no views."
)
_CLASSES = {
    "jury": "appellate.methods.jury.classifier:JuryClassifier",
    "testimony": "appellate.methods.testimony:TestimonyClassifier",
    "partner": "appellate.methods.partner:PartnerClassifier",
    "ridge": "appellate.experiments.controls:RidgeControl",
}


@dataclass(frozen=True)
class Method:
    """A classifier with its settings, by names and numbers alone.

    Attributes
    ----------
    title : str
        Name to print; it is not part of the configuration.
    kind : str
        A base alone, a base coupled by PLCP, a network alone or coupled, the jury, testimony
        (for annotators' answers), or a control: the partner alone, ridge regression on the
        uniform confidence, a random or the lowest-numbered candidate, the label that most
        annotators gave.
    base : str or None
        Registered name of the base, or name of the network.
    base_settings, settings : tuple of (str, value)
        Parameters of the base, and of PLCP, the jury or the control, if they are not the
        default; for a network the common ones, and its own.
    start : {"own", "graph"}
        Initial confidence of the base: its own, or that of the neighbour graph.
    details : str or None
        ``"module:function"`` that records more of a fit from the model, the true labels and the
        numbers of the training rows, as plain data.
    """

    title: str = field(compare=False)
    kind: MethodKind
    base: str | None = None
    base_settings: MethodSettings = ()
    settings: MethodSettings = ()
    start: Literal["own", "graph"] = "own"
    details: str | None = None

    def config(self) -> dict[str, Any]:
        """All that decides the result, as plain data."""
        plain = {"base_settings": dict(self.base_settings), "settings": dict(self.settings)}
        return {key: value for key, value in vars(self).items() if key != "title"} | plain

    def base_code(self) -> str | None:
        """Hash of the source of networks or of a third party's base; None if it is ours."""
        if self.kind == "deep":
            return _code("appellate.deep")
        return None if self.base is None else _foreign_code(self.base)

    def build(self, seed: int, n_rows: int = 0) -> Any:
        """Make the unfitted classifier for so many rows; None for luck, which fits nothing.

        Unless the settings say otherwise, the kernel is exact up to 20,000 rows and beyond has
        the default number of landmarks, whatever memory happens to be free: where that does
        not fit, the run fails.
        """
        if self.kind in ("random", "lowest", "majority"):
            return None
        makers = {"base": self._build_base, "plcp": self._build_coupled, "deep": self._build_deep}
        if self.kind in _CLASSES:
            seeded = {"random_state": seed} if self.kind == "jury" else {}
            model = resolve_name(_CLASSES[self.kind])(**seeded | dict(self.settings))
        else:
            model = makers[self.kind](seed)
        _fix_kernels(model, n_rows)
        return model

    def _build_deep(self, seed: int) -> Any:
        from appellate import deep

        fixed: dict[str, Any] = dict(self.base_settings)
        rates = {name: fixed[name] for name in ("batch_size", "learning_rate")}
        given: dict[str, Any] = {
            "network": deep.Network("mlp", hidden=tuple(fixed["hidden"])),
            "n_epochs": fixed["n_epochs"],
            "optimizer": deep.Optimizer("adam", schedule="cosine", **rates),
            "random_state": seed,
        }
        if self.base == "pico":  # with a queue for hundreds of rows, not for 50,000
            contrast = deep.Contrast(64, queue_size=1024)
            return deep.PiCOClassifier(**given | {"contrast": contrast} | dict(self.settings))
        if self.base == "proden":
            return deep.PRODENClassifier(**given | dict(self.settings))
        return deep.RivalClassifier(**given | {"loss": self.base} | dict(self.settings))

    def _build_base(self, seed: int) -> Any:
        from appellate.methods import make_base

        base = make_base(str(self.base), **dict(self.base_settings))
        parameters = base.get_params() if hasattr(base, "get_params") else {}
        if "random_state" in parameters and parameters["random_state"] is None:
            base.set_params(random_state=seed)
        return base

    def _build_coupled(self, seed: int) -> Any:
        from appellate.experiments.controls import CandidatePLCP
        from appellate.methods.plcp import PLCPClassifier

        # The base brings its seed, so that its verdict is that of the base alone; its cost
        # governs both.
        base, settings = self._build_base(seed), dict(self.settings)
        if getattr(base, "cost", None) is not None:
            settings.setdefault("cost", base.cost)
            base.set_params(cost=None)
        if "partner" in settings:  # a jury draws folds
            settings.setdefault("random_state", seed)
        target = settings.pop("target", "non-candidate")
        return (CandidatePLCP if target == "candidate" else PLCPClassifier)(base, **settings)


def _fix_kernels(model: Any, n_rows: int) -> None:
    """Represent kernels by the number of rows alone."""
    from sklearn.base import clone

    from appellate.methods.jury.classifier import JuryClassifier
    from appellate.numerics.kernels import RadialKernel, read_kernel
    from appellate.numerics.memory import default_landmarks

    base: Any = getattr(model, "estimator", None)
    owner = model
    if getattr(model, "partner", None) == "jury":  # which has the kernels of the coupling
        owner = JuryClassifier("kernel")
        model.set_params(partner=owner)
    each: Any
    for each in (owner, base):
        kernel = getattr(each, "kernel", None)
        if each is model and kernel is None and hasattr(model, "kernel"):
            kernel = None if hasattr(base, "kernel") else "rbf"
        if kernel is None:
            continue
        setting = clone(read_kernel(kernel))
        if isinstance(setting, RadialKernel) and setting.approximation == "auto":
            setting.approximation = "exact" if n_rows <= EXACT_KERNEL_ROWS else "nystroem"
            if n_rows > EXACT_KERNEL_ROWS and setting.n_landmarks is None:
                setting.n_landmarks = default_landmarks(n_rows)
            each.set_params(kernel=setting)


@cache
def _foreign_code(base: str) -> str | None:
    """Hash of all modules of the package that a third party's base comes from."""
    from appellate.methods import available_bases

    package = available_bases().get(base, "appellate").partition(":")[0].partition(".")[0]
    return None if package == "appellate" else _code(package)


@cache
def _code(package: str) -> str:
    """Hash of all modules of a package."""
    try:
        spec = find_spec(package)
    except ValueError:  # made at run time, without a file
        spec = None
    places = [] if spec is None else list(spec.submodule_search_locations or [])
    files = sorted(path for place in places for path in Path(place).rglob("*.py"))
    if not files and spec is not None and spec.has_location and spec.origin:
        files = [Path(spec.origin)]
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def alone(base: str, **base_settings: Any) -> Method:
    """Make the method of a base without a partner."""
    return Method(_title(base, base_settings), "base", base, _settings(base_settings))


def coupled(
    base: str,
    *,
    title: str | None = None,
    base_settings: dict[str, Any] | None = None,
    settings: dict[str, Any] | None = None,
) -> Method:
    """Make the method of a base coupled with a partner by PLCP, with settings of both."""
    own = base_settings or {}
    name = title or f"{_title(base, own)}-PLCP"
    return Method(name, "plcp", base, _settings(own), _settings(settings or {}))


def with_jury(base: str, **base_settings: Any) -> Method:
    """Make the method of a base whose partner is a jury."""
    title = f"{_title(base, base_settings)}-PLCP(jury)"
    settings = {"partner": "jury"}
    return coupled(base, title=title, base_settings=base_settings, settings=settings)


def network(name: str, **settings: Any) -> Method:
    """Make the method of a network, with settings of its class."""
    rest, title = dict(settings), ""
    if rest.pop("partner", None) == "non-candidate":
        title = "-PLCP"
    if rest.pop("ambiguity", None) == "auto":
        title += "(auto)"
    title = _title(name, rest).replace(NETWORKS[name], NETWORKS[name] + title, 1)
    return Method(title, "deep", name, _settings(NETWORK), _settings(settings))


def deep_rivals() -> list[Method]:
    """Networks of the table of all methods; none without torch. RC here is PRODEN, to the bit."""
    if deep_missing():
        return []
    more = [network("proden", partner="non-candidate"), network("proden", ambiguity="auto")]
    return [*(network(name) for name in NETWORKS if name != "rc"), *more]


def deep_missing() -> str:
    """Say what networks lack; nothing if they can be run."""
    if find_spec("torch") is not None:
        return ""
    return f"deep methods ({', '.join(NETWORKS.values())}): they need torch, {install('deep')}"


def is_coupled(method: Method) -> bool:
    """Whether a method is a base or a network with a partner."""
    return method.kind == "plcp" or "partner" in dict(method.settings)


def splits_of(method: Method, splits: Sequence[Item]) -> Sequence[Item]:
    """Return the splits that a method is run on: the first five of a network."""
    return splits[:DEEP_SPLITS] if method.kind == "deep" else splits


JURY = Method("jury", "jury")
TESTIMONY = Method("testimony", "testimony")
MAJORITY = Method("majority vote", "majority")
PARTNER_ALONE = Method("partner alone", "partner")
RIDGE = Method("ridge on uniform confidence", "ridge")
RANDOM = Method("random candidate", "random")
LOWEST = Method("lowest-numbered candidate", "lowest")


def parse_method(text: str) -> tuple[str, dict[str, Any]]:
    """Read a base with settings, ``name`` or ``name:parameter=value,parameter=value``.

    Examples
    --------
    >>> parse_method("knn:n_neighbors=5,weights=distance")
    ('knn', {'n_neighbors': 5, 'weights': 'distance'})
    """
    name, _, rest = text.partition(":")
    settings = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise ValueError(
                f"'{text}' is not a method: write name or name:parameter=value,parameter=value."
            )
        settings[key.strip()] = _value(value.strip())
    return name.strip(), settings


def read_methods(texts: Iterable[str]) -> list[Method]:
    """Read methods, separated by commas.

    Every base is run alone, coupled as published, and with a jury as partner; a network alone
    and with a partner.

    Raises
    ------
    ValueError, ImportError
        If a method is not known, or cannot be made with its settings.

    Examples
    --------
    >>> [method.title for method in read_methods(["jury", "knn:n_neighbors=5"])]
    ['jury', 'PL-KNN (n_neighbors=5)', 'PL-KNN (n_neighbors=5)-PLCP',
    'PL-KNN (n_neighbors=5)-PLCP(jury)']
    """
    from appellate.datasets.home import resolve
    from appellate.methods import available_bases

    parts = [part for text in texts for part in ([text] if ":" in text else text.split(","))]
    known = ["jury", "testimony", *available_bases(), *NETWORKS]
    found: list[Method] = []
    each: Any
    for part in list(filter(None, map(str.strip, parts))) or [""]:  # which is no method
        name, settings = parse_method(part)
        name = name if name in known else resolve(name, known, "method")
        if name in NETWORKS:
            if deep_missing():
                raise ImportError(deep_missing())
            partner = {"partner": "non-candidate"}
            chosen = [network(name, **more | settings) for more in ({}, partner)]
        elif name in ("jury", "testimony"):
            chosen = [Method(_title(name, settings), name, settings=_settings(settings))]  # type: ignore[arg-type]
        else:
            chosen = [alone(name, **settings), coupled(name, base_settings=settings)]
            chosen.append(with_jury(name, **settings))
        try:
            for method in chosen:
                model = method.build(0)
                for each in (model, getattr(model, "estimator", None)):
                    if hasattr(each, "_parameter_constraints"):
                        each._validate_params()  # as fit does, but before the work
        except TypeError as error:
            raise ValueError(str(error)) from error
        found += chosen
    return list(dict.fromkeys(found))


def _value(text: str) -> Any:
    try:
        return literal_eval(text.title() if text.lower() in ("true", "false", "none") else text)
    except (ValueError, SyntaxError):
        return text


def _title(base: str, settings: dict[str, Any]) -> str:
    said = ", ".join(f"{key}={value}" for key, value in settings.items())
    return (TITLES | NETWORKS).get(base, base) + (f" ({said})" if said else "")


def _settings(settings: dict[str, Any]) -> MethodSettings:
    return tuple(sorted(settings.items()))
