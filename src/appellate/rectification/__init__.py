"""From a table to labels, a docket and a model: the practitioner's journey as one object.

`case` understands the table, `hearing` fits a classifier, tabulates what it says, weighs it
against trivial rivals and takes decisions, `run` holds all of it and writes it, `newrows` uses the
model.
"""

from __future__ import annotations

from appellate.rectification.prediction import predict
from appellate.rectification.run import Rectification, load, rectify

__all__ = ["Rectification", "load", "predict", "rectify"]
