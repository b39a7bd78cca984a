"""The classifiers: one file per base classifier, PLCP, the jury and testimony.

`registry` lists the base classifiers with their short names.
"""

from appellate.methods.registry import available_bases, make_base

__all__ = ["available_bases", "make_base"]
