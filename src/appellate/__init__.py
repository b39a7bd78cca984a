"""A second hearing for ambiguous labels: partial label learning with PLCP.

The names below are loaded on first use, so that ``import appellate`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from appellate.aggd import AGGDClassifier
    from appellate.candidates import CandidateSets, as_candidates
    from appellate.lalo import LALOClassifier
    from appellate.neighbors import PLKNNClassifier
    from appellate.partner import PartnerClassifier
    from appellate.plcl import PLCLClassifier
    from appellate.plcp import PLCPClassifier
    from appellate.sure import SUREClassifier

    __version__: str

__all__ = [
    "AGGDClassifier",
    "CandidateSets",
    "LALOClassifier",
    "PLCLClassifier",
    "PLCPClassifier",
    "PLKNNClassifier",
    "PartnerClassifier",
    "SUREClassifier",
    "__version__",
    "as_candidates",
]

_HOMES = {
    "PLCLClassifier": "plcl",
    "LALOClassifier": "lalo",
    "AGGDClassifier": "aggd",
    "CandidateSets": "candidates",
    "PLCPClassifier": "plcp",
    "PLKNNClassifier": "neighbors",
    "PartnerClassifier": "partner",
    "SUREClassifier": "sure",
    "as_candidates": "candidates",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("appellate")
    if name in _HOMES:
        return getattr(import_module(f"appellate.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'appellate' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
