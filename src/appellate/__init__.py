"""A second hearing for ambiguous labels: partial label learning with PLCP.

The names below are loaded on first use, so that ``import appellate`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from appellate.adapter import SoftLabelClassifier
    from appellate.aggd import AGGDClassifier
    from appellate.candidates import CandidateSets, as_candidates
    from appellate.jury import JuryClassifier
    from appellate.lalo import LALOClassifier
    from appellate.neighbors import PLKNNClassifier
    from appellate.numerics.search import FaissNeighbors
    from appellate.partner import PartnerClassifier
    from appellate.plcl import PLCLClassifier
    from appellate.plcp import PLCPClassifier
    from appellate.registry import available_bases, make_base
    from appellate.sure import SUREClassifier
    from appellate.svm import PLSVMClassifier

    __version__: str

__all__ = [
    "AGGDClassifier",
    "CandidateSets",
    "FaissNeighbors",
    "JuryClassifier",
    "LALOClassifier",
    "PLCLClassifier",
    "PLCPClassifier",
    "PLKNNClassifier",
    "PLSVMClassifier",
    "PartnerClassifier",
    "SUREClassifier",
    "SoftLabelClassifier",
    "__version__",
    "as_candidates",
    "available_bases",
    "make_base",
]

_HOMES = {
    "AGGDClassifier": "aggd",
    "CandidateSets": "candidates",
    "FaissNeighbors": "numerics.search",
    "JuryClassifier": "jury",
    "LALOClassifier": "lalo",
    "PLCLClassifier": "plcl",
    "PLCPClassifier": "plcp",
    "PLKNNClassifier": "neighbors",
    "PLSVMClassifier": "svm",
    "PartnerClassifier": "partner",
    "SUREClassifier": "sure",
    "SoftLabelClassifier": "adapter",
    "as_candidates": "candidates",
    "available_bases": "registry",
    "make_base": "registry",
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
