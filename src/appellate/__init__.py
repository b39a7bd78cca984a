"""A second hearing for ambiguous labels: partial label learning with PLCP.

The names below are loaded on first use, so that ``import appellate`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from appellate.methods.registry import BASES as _BASES

if TYPE_CHECKING:
    from appellate.candidates import Answers as Answers
    from appellate.candidates import CandidateSets as CandidateSets
    from appellate.candidates import as_answers as as_answers
    from appellate.candidates import as_candidates as as_candidates
    from appellate.methods.jury.classifier import JuryClassifier as JuryClassifier
    from appellate.methods.partner import PartnerClassifier as PartnerClassifier
    from appellate.methods.plcp import PLCPClassifier as PLCPClassifier
    from appellate.methods.registry import *  # noqa: F403  # the base classifiers
    from appellate.methods.registry import available_bases as available_bases
    from appellate.methods.registry import make_base as make_base
    from appellate.methods.soft_label import SoftLabelClassifier as SoftLabelClassifier
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
    **{base.class_name: base.module for base in _BASES},
    "Answers": "appellate.candidates",
    "CandidateSets": "appellate.candidates",
    "GaussianKernel": "appellate.numerics.kernels",
    "JuryClassifier": "appellate.methods.jury",
    "LaplacianKernel": "appellate.numerics.kernels",
    "LinearKernel": "appellate.numerics.kernels",
    "NoteWarning": "appellate.notes",
    "PLCPClassifier": "appellate.methods.plcp",
    "ParquetRows": "appellate.numerics.sources",
    "PartnerClassifier": "appellate.methods.partner",
    "Rectification": "appellate.rectification",
    "SoftLabelClassifier": "appellate.methods.soft_label",
    "TestimonyClassifier": "appellate.methods.testimony",
    "as_answers": "appellate.candidates",
    "as_candidates": "appellate.candidates",
    "available_bases": "appellate.methods",
    "load": "appellate.rectification",
    "make_base": "appellate.methods",
    "rectify": "appellate.rectification",
}
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("appellate")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'appellate' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
