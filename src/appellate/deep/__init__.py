"""Deep partial-label classifiers: PRODEN and PiCO, alone and coupled with a partner network.

Needs the extra ``deep`` (torch); importing `appellate` itself does not load it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from appellate._text import install

_HOMES = {
    "PRODENClassifier": "estimator",
    "PiCOClassifier": "estimator",
    "RivalClassifier": "rivals",
    **dict.fromkeys(
        ("Ambiguity", "Contrast", "Coupling", "Network", "Optimizer", "Run", "Selection"),
        "settings",
    ),
}
__all__ = sorted(_HOMES)
_HOMES["fit_network"] = "juror"  # for the jury


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'appellate.deep' has no attribute {name!r}")
    try:
        import_module("torch")
    except ImportError as error:
        raise ImportError(
            f"appellate.deep.{name} needs torch. Install the extra 'deep': {install('deep')}"
        ) from error
    return getattr(import_module(f"appellate.deep.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
