"""A second hearing for ambiguous labels: partial label learning with PLCP.

The names below are loaded on first use, so that ``import appellate`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from appellate.bases import available_bases as available_bases
    from appellate.bases import make_base as make_base
    from appellate.bases.aggd import AGGDClassifier as AGGDClassifier
    from appellate.bases.clpl import CLPLClassifier as CLPLClassifier
    from appellate.bases.ecoc import PLECOCClassifier as PLECOCClassifier
    from appellate.bases.ipal import IPALClassifier as IPALClassifier
    from appellate.bases.knn import PLKNNClassifier as PLKNNClassifier
    from appellate.bases.lalo import LALOClassifier as LALOClassifier
    from appellate.bases.plcl import PLCLClassifier as PLCLClassifier
    from appellate.bases.soft_label import SoftLabelClassifier as SoftLabelClassifier
    from appellate.bases.sure import SUREClassifier as SUREClassifier
    from appellate.bases.svm import PLSVMClassifier as PLSVMClassifier
    from appellate.candidates import Answers as Answers
    from appellate.candidates import CandidateSets as CandidateSets
    from appellate.candidates import as_answers as as_answers
    from appellate.candidates import as_candidates as as_candidates
    from appellate.jury import JuryClassifier as JuryClassifier
    from appellate.notes import NoteWarning as NoteWarning
    from appellate.numerics.kernels import GaussianKernel as GaussianKernel
    from appellate.numerics.kernels import LinearKernel as LinearKernel
    from appellate.numerics.sources import ParquetRows as ParquetRows
    from appellate.partner import PartnerClassifier as PartnerClassifier
    from appellate.plcp import PLCPClassifier as PLCPClassifier
    from appellate.rectification import Rectification as Rectification
    from appellate.rectification import load as load
    from appellate.rectification import rectify as rectify
    from appellate.testimony import TestimonyClassifier as TestimonyClassifier

    __version__: str

_HOMES = {
    "AGGDClassifier": "bases.aggd",
    "Answers": "candidates",
    "CLPLClassifier": "bases.clpl",
    "CandidateSets": "candidates",
    "GaussianKernel": "numerics.kernels",
    "IPALClassifier": "bases.ipal",
    "JuryClassifier": "jury",
    "LALOClassifier": "bases.lalo",
    "LinearKernel": "numerics.kernels",
    "NoteWarning": "notes",
    "PLCLClassifier": "bases.plcl",
    "PLCPClassifier": "plcp",
    "PLECOCClassifier": "bases.ecoc",
    "PLKNNClassifier": "bases.knn",
    "PLSVMClassifier": "bases.svm",
    "ParquetRows": "numerics.sources",
    "PartnerClassifier": "partner",
    "Rectification": "rectification",
    "SUREClassifier": "bases.sure",
    "SoftLabelClassifier": "bases.soft_label",
    "TestimonyClassifier": "testimony",
    "as_answers": "candidates",
    "as_candidates": "candidates",
    "available_bases": "bases",
    "load": "rectification",
    "make_base": "bases",
    "rectify": "rectification",
}
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("appellate")
    if name in _HOMES:
        return getattr(import_module(f"appellate.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'appellate' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
