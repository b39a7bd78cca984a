"""What is run: base classifiers alone and coupled, variants of PLCP, and controls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["base", "plcp", "partner", "ridge", "random", "lowest"]
Settings = tuple[tuple[str, Any], ...]

# The paper's names of its six bases, in the order of its tables.
BASES = {
    "plcl": "PL-CL",
    "aggd": "PL-AGGD",
    "sure": "SURE",
    "lalo": "LALO",
    "svm": "PL-SVM",
    "knn": "PL-KNN",
}


@dataclass(frozen=True)
class Method:
    """A classifier with its settings, by names and numbers alone.

    Attributes
    ----------
    title : str
        Name to print; it is no part of the configuration.
    kind : str
        A base alone, a base coupled by PLCP, or a control: the partner alone, ridge
        regression on the uniform confidence, a random or the lowest-numbered candidate.
    base : str or None
        Registered name of the base.
    base_settings, settings : tuple of (str, value)
        Parameters of the base, and of PLCP or the control, where they are not the default.
    start : {"own", "graph"}
        Initial confidence of the base: its own, or that of the neighbour graph.
    trace : bool
        Also record samples whose wrong verdict was corrected (`appellate.experiments.traces`).
    """

    title: str = field(compare=False)
    kind: Kind
    base: str | None = None
    base_settings: Settings = ()
    settings: Settings = ()
    start: Literal["own", "graph"] = "own"
    trace: bool = False

    def config(self) -> dict[str, Any]:
        """All that decides the result, as plain data."""
        return {
            "kind": self.kind,
            "base": self.base,
            "base_settings": dict(self.base_settings),
            "settings": dict(self.settings),
            "start": self.start,
            "trace": self.trace,
        }

    def build(self, seed: int) -> Any:
        """Make the unfitted classifier; None for luck, which fits nothing."""
        if self.kind == "partner":
            from appellate.partner import PartnerClassifier

            return PartnerClassifier(**dict(self.settings))
        if self.kind == "ridge":
            from appellate.experiments.controls import RidgeControl

            return RidgeControl(**dict(self.settings))
        if self.kind in ("random", "lowest"):
            return None
        return self._build_base(seed) if self.kind == "base" else self._build_coupled(seed)

    def _build_base(self, seed: int) -> Any:
        from appellate.registry import make_base

        base = make_base(str(self.base), **dict(self.base_settings))
        parameters = base.get_params() if hasattr(base, "get_params") else {}
        if "random_state" in parameters and parameters["random_state"] is None:
            base.set_params(random_state=seed)
        return base

    def _build_coupled(self, seed: int) -> Any:
        from appellate.plcp import PLCPClassifier

        # The base brings its seed, so that its verdict is that of the base alone; its cost
        # governs both.
        base, settings = self._build_base(seed), dict(self.settings)
        if getattr(base, "cost", None) is not None:
            settings.setdefault("cost", base.cost)
            base.set_params(cost=None)
        return PLCPClassifier(base, **settings)


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
                f"'{text}' is no method: write name or name:parameter=value,parameter=value."
            )
        settings[key.strip()] = _value(value.strip())
    return name.strip(), settings


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _title(base: str, settings: dict[str, Any]) -> str:
    said = ", ".join(f"{key}={value}" for key, value in settings.items())
    return BASES.get(base, base) + (f" ({said})" if said else "")


def _settings(settings: dict[str, Any]) -> Settings:
    return tuple(sorted(settings.items()))
