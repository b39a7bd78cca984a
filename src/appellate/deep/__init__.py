"""Deep partial-label classifiers: PRODEN and PiCO, alone and coupled with a partner network.

Needs the extra ``deep`` (torch); importing `appellate` itself does not load it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["PRODENClassifier", "PiCOClassifier", "load_model", "save_model"]

_HOMES = {
    "PRODENClassifier": "proden",
    "PiCOClassifier": "pico",
    "load_model": "files",
    "save_model": "files",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'appellate.deep' has no attribute {name!r}")
    try:
        import_module("torch")
    except ImportError as error:
        raise ImportError(
            f"appellate.deep.{name} needs torch. Install the extra 'deep': "
            "pip install 'appellate[deep]'"
        ) from error
    return getattr(import_module(f"appellate.deep.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
