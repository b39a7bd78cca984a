"""A second hearing for ambiguous labels: partial label learning with PLCP.

The names below are loaded on first use, so that ``import appellate`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from appellate.bases import available_bases, make_base
    from appellate.bases.aggd import AGGDClassifier
    from appellate.bases.knn import PLKNNClassifier
    from appellate.bases.lalo import LALOClassifier
    from appellate.bases.plcl import PLCLClassifier
    from appellate.bases.soft_label import SoftLabelClassifier
    from appellate.bases.sure import SUREClassifier
    from appellate.bases.svm import PLSVMClassifier
    from appellate.candidates import Answers, CandidateSets, as_answers, as_candidates
    from appellate.numerics.search import FaissNeighbors
    from appellate.partner import PartnerClassifier
    from appellate.plcp import PLCPClassifier
    from appellate.testimony import TestimonyClassifier

    __version__: str

__all__ = [
    "AGGDClassifier",
    "Answers",
    "CandidateSets",
    "FaissNeighbors",
    "LALOClassifier",
    "PLCLClassifier",
    "PLCPClassifier",
    "PLKNNClassifier",
    "PLSVMClassifier",
    "PartnerClassifier",
    "SUREClassifier",
    "SoftLabelClassifier",
    "TestimonyClassifier",
    "__version__",
    "as_answers",
    "as_candidates",
    "available_bases",
    "make_base",
]

_HOMES = {
    "AGGDClassifier": "bases.aggd",
    "Answers": "candidates",
    "CandidateSets": "candidates",
    "FaissNeighbors": "numerics.search",
    "LALOClassifier": "bases.lalo",
    "PLCLClassifier": "bases.plcl",
    "PLCPClassifier": "plcp",
    "PLKNNClassifier": "bases.knn",
    "PLSVMClassifier": "bases.svm",
    "PartnerClassifier": "partner",
    "SUREClassifier": "bases.sure",
    "SoftLabelClassifier": "bases.soft_label",
    "TestimonyClassifier": "testimony",
    "as_answers": "candidates",
    "as_candidates": "candidates",
    "available_bases": "bases",
    "make_base": "bases",
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
