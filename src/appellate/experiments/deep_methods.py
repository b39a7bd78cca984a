"""Deep methods as rows of the experiments: one small network, one optimiser, for all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from appellate._text import install
from appellate.experiments import methods
from appellate.experiments.methods import Method, parse_method

#: Names for ``--methods`` and titles. RC is left out of tables: here it is PRODEN, to the bit.
DEEP = {
    **{"proden": "PRODEN", "pico": "PiCO", "rc": "RC", "cc": "CC", "lws": "LWS", "cavl": "CAVL"},
    **{"mse": "MSE", "exp": "EXP", "abs-mae": "ABS-MAE", "abs-gce": "ABS-GCE", "pop": "POP"},
    **{"cr-dpll": "CR-DPLL", "solar": "SoLar", "records": "RECORDS"},
}
#: Splits that a deep method has at most: the first of those that are asked for.
DEEP_SPLITS = 5
#: Of every deep method, found on splits 100 and 101 of Lost; PiCO's own are in `_build`.
NETWORK = {"hidden": (200, 200), "n_epochs": 120, "batch_size": 64, "learning_rate": 0.002}
SETTING = (
    f"Deep methods: the first {DEEP_SPLITS} splits at most; an MLP of two layers of 200, 120 "
    "epochs of Adam (learning rate 0.002, cosine, batches of 64), the last epoch; rows of tables "
    "have no views."
)
Item = TypeVar("Item")


class DeepMethod(Method):
    """A deep classifier on the network of the tables; `settings` are those of its class."""

    def base_code(self) -> str | None:
        """Hash of the source of the deep classifiers, and the number of torch."""
        return _deep_code()

    def _build(self, seed: int) -> Any:
        from appellate.deep import (
            Contrast,
            Network,
            Optimizer,
            PiCOClassifier,
            PRODENClassifier,
            RivalClassifier,
        )

        fixed: dict[str, Any] = dict(self.base_settings)
        network = Network("mlp", hidden=tuple(fixed["hidden"]))
        rates = {name: fixed[name] for name in ("batch_size", "learning_rate")}
        given: dict[str, Any] = {
            "n_epochs": fixed["n_epochs"],
            "optimizer": Optimizer("adam", schedule="cosine", **rates),
            "random_state": seed,
        }
        given |= dict(self.settings)
        if self.base == "pico":  # with a queue for hundreds of rows, not for 50,000
            contrast = Contrast(64, queue_size=1024)
            return PiCOClassifier(network, **{"contrast": contrast} | given)
        if self.base == "proden":
            return PRODENClassifier(network, **given)
        return RivalClassifier(network, loss=str(self.base), **given)


def deep(name: str, **settings: Any) -> Method:
    """Make the method of a deep classifier, with settings of its class."""
    title = DEEP[name]
    rest = dict(settings)
    if rest.pop("partner", None) == "non-candidate":
        title += "-PLCP"
    if rest.pop("ambiguity", None) == "auto":
        title += "(auto)"
    said = ", ".join(f"{key}={value}" for key, value in rest.items())
    return DeepMethod(
        title + (f" ({said})" if said else ""),
        "deep",  # type: ignore[arg-type]
        name,
        tuple(sorted(NETWORK.items())),
        tuple(sorted(settings.items())),
    )


def deep_rivals() -> list[Method]:
    """Deep methods of the table of rivals; none without torch."""
    if deep_missing():
        return []
    more = [deep("proden", partner="non-candidate"), deep("proden", ambiguity="auto")]
    return [*(deep(name) for name in DEEP if name != "rc"), *more]


def deep_missing() -> str:
    """Say what deep methods lack; nothing if they can be run."""
    if find_spec("torch") is not None:
        return ""
    return f"deep methods ({', '.join(DEEP.values())}): they need torch, {install('deep')}"


def is_coupled(method: Method) -> bool:
    """Whether a method is a base or a network with a partner."""
    return method.kind == "plcp" or "partner" in dict(method.settings)


def splits_of(method: Method, splits: Sequence[Item]) -> Sequence[Item]:
    """Return the splits that a method is run on: the first five of a deep one."""
    return splits[:DEEP_SPLITS] if isinstance(method, DeepMethod) else splits


def read_methods(texts: Iterable[str]) -> list[Method]:
    """Read methods as `appellate.experiments.methods.read_methods`, deep ones among them.

    A deep method stands alone and with a partner.

    Raises
    ------
    ValueError, ImportError
        If a method is not known, or cannot be made with its settings.
    """
    parts = [part for text in texts for part in ([text] if ":" in text else text.split(","))]
    found: list[Method] = []
    for part in filter(None, map(str.strip, parts)):
        name, settings = parse_method(part)
        if name.lower() not in DEEP:
            found += methods.read_methods([part])
            continue
        if deep_missing():
            raise ImportError(deep_missing())
        partners: list[dict[str, Any]] = [{}, {"partner": "non-candidate"}]
        chosen = [deep(name.lower(), **more | settings) for more in partners]
        for method in chosen:
            try:
                method.build(0)
            except TypeError as error:
                raise ValueError(str(error)) from error
        found += chosen
    return list(dict.fromkeys(found))


@cache
def _deep_code() -> str:
    digest = hashlib.sha256(version("torch").encode())
    for path in sorted(Path(__file__).parents[1].joinpath("deep").glob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]
