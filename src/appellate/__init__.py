"""A second hearing for ambiguous labels: partial label learning with PLCP.

The names below are loaded on first use, so that ``import appellate`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from appellate.candidates import Answers as Answers
    from appellate.candidates import CandidateSets as CandidateSets
    from appellate.candidates import as_answers as as_answers
    from appellate.candidates import as_candidates as as_candidates
    from appellate.methods import available_bases as available_bases
    from appellate.methods import make_base as make_base
    from appellate.methods.aggd import AGGDClassifier as AGGDClassifier
    from appellate.methods.clpl import CLPLClassifier as CLPLClassifier
    from appellate.methods.ecoc import PLECOCClassifier as PLECOCClassifier
    from appellate.methods.ipal import IPALClassifier as IPALClassifier
    from appellate.methods.jury.classifier import JuryClassifier as JuryClassifier
    from appellate.methods.knn import PLKNNClassifier as PLKNNClassifier
    from appellate.methods.lalo import LALOClassifier as LALOClassifier
    from appellate.methods.partner import PartnerClassifier as PartnerClassifier
    from appellate.methods.plcl import PLCLClassifier as PLCLClassifier
    from appellate.methods.plcp import PLCPClassifier as PLCPClassifier
    from appellate.methods.soft_label import SoftLabelClassifier as SoftLabelClassifier
    from appellate.methods.sure import SUREClassifier as SUREClassifier
    from appellate.methods.svm import PLSVMClassifier as PLSVMClassifier
    from appellate.methods.testimony import TestimonyClassifier as TestimonyClassifier
    from appellate.notes import NoteWarning as NoteWarning
    from appellate.numerics.kernels import GaussianKernel as GaussianKernel
    from appellate.numerics.kernels import LaplacianKernel as LaplacianKernel
    from appellate.numerics.kernels import LinearKernel as LinearKernel
    from appellate.numerics.sources import ParquetRows as ParquetRows
    from appellate.rectification import Rectification as Rectification
    from appellate.rectification import load as load
    from appellate.rectification import rectify as rectify

    __version__: str

_HOMES = {
    "AGGDClassifier": "methods.aggd",
    "Answers": "candidates",
    "CLPLClassifier": "methods.clpl",
    "CandidateSets": "candidates",
    "GaussianKernel": "numerics.kernels",
    "IPALClassifier": "methods.ipal",
    "JuryClassifier": "methods.jury",
    "LALOClassifier": "methods.lalo",
    "LaplacianKernel": "numerics.kernels",
    "LinearKernel": "numerics.kernels",
    "NoteWarning": "notes",
    "PLCLClassifier": "methods.plcl",
    "PLCPClassifier": "methods.plcp",
    "PLECOCClassifier": "methods.ecoc",
    "PLKNNClassifier": "methods.knn",
    "PLSVMClassifier": "methods.svm",
    "ParquetRows": "numerics.sources",
    "PartnerClassifier": "methods.partner",
    "Rectification": "rectification",
    "SUREClassifier": "methods.sure",
    "SoftLabelClassifier": "methods.soft_label",
    "TestimonyClassifier": "methods.testimony",
    "as_answers": "candidates",
    "as_candidates": "candidates",
    "available_bases": "methods",
    "load": "rectification",
    "make_base": "methods",
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
